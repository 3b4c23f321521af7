/* otlp_sender.h: sends messages to a receiver of OTLP by HTTP, in an OS thread of its own.
 *
 * A message stays in a bounded queue until the receiver has taken it.  A receiver that is down, slow or busy costs no more than
 * this queue.  Each span that does not arrive is counted.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CLI_OTLP_SENDER_H
#define WEFT_CLI_OTLP_SENDER_H

#include <stddef.h>
#include <stdint.h>

struct cli_otlp_sender;

struct cli_otlp_counts {
	uint64_t sent;        /* spans that the receiver has confirmed */
	uint64_t unconfirmed; /* spans in requests that the receiver took, with an answer that is not of OTLP */
	uint64_t rejected;    /* spans that the receiver refused */
	uint64_t lost;        /* spans that were left out because the queue was full, or at the end */
	uint64_t queued;      /* spans that still wait */
};

/* Starts to send to http[s]://HOST[:PORT][/PATH]; without a path, to /v1/traces.  Returns -1 to continue; otherwise an error was
 * printed, and the result is the exit status. */
int cli_otlp_sender_start(struct cli_otlp_sender **out, const char *verb, const char *url);

/* Queues a message, or counts its spans as lost.  Never waits. */
void cli_otlp_sender_add(struct cli_otlp_sender *sender, const void *bytes, size_t size, size_t spans);

/* Returns the counts; accepts NULL. */
struct cli_otlp_counts cli_otlp_sender_count(struct cli_otlp_sender *sender);

/* Sends the rest of the queue for some seconds, prints the counts, and frees the sender; accepts NULL. */
void cli_otlp_sender_stop(struct cli_otlp_sender *sender);

#endif
