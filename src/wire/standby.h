/* standby.h: how a program that stands by is told to record, and to stop: by another process, in a page of the program's memory.
 *
 * The kernel says who may write there: root, and who may attach a debugger.  So the program trusts nobody anew: no file, no
 * socket, no signal.  It looks at the page when an event of its takes the slow path; the other process sees to that by two stores
 * that are harmless at any moment, whoever else stores there: a low byte of what says that recording is on (`gate`), and 0 in the
 * limits of streams, which sends their OS threads to the slow path.  Numbers are of the program's own byte order and sizes.
 *
 * An OS thread that is asleep for long makes no event.  Where it sleeps in a call that goes on by itself after it was interrupted
 * (`waits_begin`), the other process interrupts that as a debugger does, and counts it in `wakes` while the OS thread stands
 * still: by that the call knows that it is the one meant, looks what is asked, and sleeps on.
 *
 * A request counts when its check fits: of one that is written half, or by two at once, nothing comes; who wrote it asks again.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_STANDBY_H
#define WEFT_WIRE_STANDBY_H

#include <weft/record.h>

/* The page stands alone: what is mapped before and behind it cannot be read. */
#define WEFT_STANDBY_MARK "weft standby 2\n"

enum weft_standby_verb { WEFT_STANDBY_ON = 1, WEFT_STANDBY_OFF = 2 };

struct weft_standby_request {
	uint64_t number; /* by chance, never 0 */
	uint64_t size_bytes;
	uint32_t verb, packets;
	uint32_t mode;   /* enum weft_record_mode, and 1; 0 here and elsewhere: as the program was started with */
	uint32_t stacks; /* of programs that do not know weft; and 1 */
	uint64_t check;
};

struct weft_standby_answer {
	uint64_t number; /* of the request; written last */
	int32_t status;  /* enum weft_status */
	uint32_t is_on;  /* now, whoever began it */
	char path[4096]; /* of the trace: what is recorded, or was last */
	char why[512];   /* where the status is negative */
};

struct weft_standby {
	char mark[16];
	uint64_t self;    /* where this is: what has another address is a copy */
	uint64_t gate;    /* the address of an unsigned, whose low byte becomes gate_on while nothing records */
	uint64_t threads; /* of a pointer to the first of a list */
	uint32_t gate_on;
	uint32_t pointer_bytes;
	uint32_t next_at, stream_at; /* in a member of that list, where the pointers to the next one and to its stream are */
	uint32_t limit_at;           /* in a stream, where its limit is: 32 bits */
	uint32_t wakes;
	uint64_t waits_begin, waits_end; /* the code of such calls: it is on the stack of who is in one; 0: there is none */
	struct weft_standby_request request;
	struct weft_standby_answer answer;
};

/* ---- What the recorder offers to who records programs that do not know weft ---- */

struct weft__standby_host {
	void *gate; /* of which the low byte becomes gate_on when recording is asked for */
	uint32_t gate_on;
	const void *waits_begin, *waits_end;
	const uint32_t **wakes; /* gets the place of the count; before it is there it is NULL */
	/* Recording was ended from outside; `again`: it is to begin anew at once.  On any OS thread, in an event, perhaps of a
	 * signal handler. */
	void (*stopped)(bool again);
};

/* From now on this process stands by, for the host; false: there is no memory.  Once, before there are other OS threads. */
WEFT__API bool weft__standby_as(const struct weft__standby_host *by) WEFT__NAMED("weft__standby_as");

/* Whether it is asked to record; what of that differs from what it was started with goes into *options and *stacks. */
WEFT__API bool weft__standby_asked(struct weft_record_options *options, unsigned *stacks) WEFT__NAMED("weft__standby_asked");

/* How it began, or why it did not: a status as of weft_start(), and one clause. */
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
