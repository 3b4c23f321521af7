/* standby.h: defines a memory page by which another process starts and stops the recording of a program on standby.
 *
 * The kernel decides which users may write to the page: root, and users who may attach a debugger.  Therefore the program needs
 * no new trust: no file, no socket and no signal.  The program reads the page when one of its events takes the slow path.  The
 * other process forces the slow path by two stores: gate_on into the low byte of `gate`, which says that recording is on, and 0
 * into the limits of streams.  Both stores are harmless at any moment, even if another process makes the same stores.  Numbers
 * in the page have the byte order and the sizes of the program.
 *
 * An OS thread that sleeps for long makes no event.  If the thread sleeps in a call that resumes after an interruption
 * (`waits_begin`), the other process interrupts the call as a debugger does.  While the thread is stopped, the other process
 * increments `wakes`; the call sees the change, reads the page, and sleeps again.
 *
 * A request is valid only if its check value matches.  A request that is half written, or that two processes write at once, has
 * no effect, and its writer repeats it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_STANDBY_H
#define WEFT_WIRE_STANDBY_H

#include <weft/record.h>

/* ---- The page; the pages before and after it are not accessible ---- */
#define WEFT_STANDBY_MARK "weft standby 2\n"

enum weft_standby_verb { WEFT_STANDBY_ON = 1, WEFT_STANDBY_OFF = 2 };

struct weft_standby_request {
	uint64_t number; /* random, never 0 */
	uint64_t size_bytes;
	uint32_t verb, packets;
	/* enum weft_record_mode plus 1; here and in the other fields, 0 keeps the value with which the program started */
	uint32_t mode;
	uint32_t stacks; /* depth of call stacks plus 1, for programs without calls of weft */
	uint64_t check;
};

struct weft_standby_answer {
	uint64_t number; /* number of the request; written last */
	int32_t status;  /* enum weft_status */
	uint32_t is_on;  /* whether recording is on; any process may have started it */
	char path[4096]; /* path of the current trace, or of the last one */
	char why[512];   /* description of the problem, if the status is negative */
};

struct weft_standby {
	char mark[16];
	uint64_t self;    /* address of this struct; a struct at another address is a copy */
	uint64_t gate;    /* address of an unsigned, whose low byte becomes gate_on while nothing records */
	uint64_t threads; /* address of a pointer to the first member of a list of threads */
	uint32_t gate_on;
	uint32_t pointer_bytes;
	/* offsets in a list member of the pointer to the next member, and of the pointer to its stream */
	uint32_t next_at, stream_at;
	uint32_t limit_at; /* offset of the 32-bit limit in a stream */
	uint32_t wakes;
	uint64_t waits_begin,
	    /* code of the interruptible calls: a thread in such a call has an address of this code on its stack; 0 if there is
	     * none */
	    waits_end;
	struct weft_standby_request request;
	struct weft_standby_answer answer;
};

/* ---- Interface for a recorder of programs without calls of weft (adapters/hook) ---- */

struct weft__standby_host {
	void *gate; /* variable whose low byte becomes gate_on when recording is requested */
	uint32_t gate_on;
	const void *waits_begin, *waits_end;
	const uint32_t **wakes; /* place that receives the address of `wakes`; NULL before that */
	/* Reports that another process stopped the recording; `again` says that recording restarts at once.  Called on any OS
	 * thread, in an event, perhaps in a signal handler. */
	void (*stopped)(bool again);
};

/* Puts this process on standby for a recorder.  Returns false without memory.  Must be called once, before other OS threads
 * exist.
 */
WEFT__API bool weft__standby_as(const struct weft__standby_host *by) WEFT__NAMED("weft__standby_as");

/* Returns whether recording is requested; stores requested values that differ from the initial values in *options and
 * *stacks.  The caller then starts the recording and calls weft__standby_answer(); until then the request is the caller's. */
WEFT__API bool weft__standby_asked(struct weft_record_options *options, unsigned *stacks) WEFT__NAMED("weft__standby_asked");

/* Answers the request with a status as of weft_start(), and with one clause if the status is negative. */
WEFT__API void weft__standby_answer(int status, const char *why) WEFT__NAMED("weft__standby_answer");

static inline uint64_t weft__standby_check(const struct weft_standby_request *r)
{
	const uint64_t words[] = {
	    r->number, r->size_bytes, (uint64_t)r->verb << 32 | r->packets, (uint64_t)r->mode << 32 | r->stacks};
	uint64_t sum = 1;
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
		sum = (sum ^ words[i]) * 0xd6e8feb86659fd93u;
		sum ^= sum >> 32;
	}
	return sum;
}

#endif
