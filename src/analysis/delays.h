/* delays.h: who was ready and did not run, and what ran instead.
 *
 * A promise is ready from when what it waits for has ended until it reads that.  Where one run or pause covers most of that, it
 * is a stall; where many others ran, of which enough became ready later, it is starvation.  Private to analysis/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_DELAYS_H
#define WEFT_ANALYSIS_DELAYS_H

#include "analysis/ties.h"
#include "base/vec.h"
#include "model/kernel.h"

/* A promise was ready from `from_ns` to `to_ns`. */
struct weft__ready {
	int64_t from_ns, to_ns;
	uint32_t promise, input;
	uint16_t stream;
};

/* What became of a long run's time: on a processor, but for off_ns. */
struct weft__parts {
	bool is_known;         /* the kernel was asked; else only of calls that the trace tells of is known that they blocked */
	bool is_least;         /* others ran in the stretch that it was asked about: .off_ns and its parts are at least so long */
	int64_t off_ns;        /* without a processor; unless .is_least, at most */
	int64_t waiting_ns;    /* of that: waited for one, since others had it */
	int64_t blocked_ns;    /* of that: blocked.  Of what both lack of off_ns nobody knows which it was */
	uint64_t given;        /* how often it gave the processor up */
	uint64_t taken;        /* how often that was taken away */
	uint64_t minor, major; /* page faults; major: a disk was read */
	uint32_t call;         /* the pause, a text, that made up most of called_ns; WEFT_NONE: there is none */
	uint32_t calls;        /* how many pauses there were */
	int64_t called_ns;     /* how long they were: the rest of blocked_ns was in what nobody knows */
	/* Where the kernel told of all of it (model/kernel.h); then off_ns is waiting_ns and blocked_ns. */
	bool is_exact;
	uint8_t kernel_call;              /* enum weft_kernel_call in which it was blocked for longest */
	int64_t kernel_call_ns;           /* in all */
	const struct weft_off *slept;     /* the longest sleep; NULL: none */
	const struct weft_off *preempted; /* when others had its processor for longest; NULL: never */
	struct weft_waited waited;        /* what it waited for in that call */
	int64_t interrupts_ns;            /* interrupts had its processor */
	uint32_t interrupts;
	const char *interrupt; /* that of the most time; NULL: there was none, or nobody knows its name */
	int64_t interrupt_ns, first_interrupt_ns;
	int64_t faulting_ns; /* what its page faults took, at most */
	/* The program's runtime collected garbage, by the kernel, or by pauses that the program told. */
	int64_t collected_ns;
	const char *collector; /* "Python"; NULL: the program told it itself, or there was none */
};

/* A long run, or a long pause. */
struct weft__stall {
	int64_t start_ns, end_ns;
	bool is_pause;
	uint32_t promise; /* who ran; of a pause who paused, or the system if nobody knows */
	uint32_t pause;   /* of a pause: its text */
	uint16_t stream;
	struct weft__parts parts;
	int64_t own_ns;    /* less what it waited for a processor at most; -1: nobody knows */
	int64_t victims;   /* how many were ready meanwhile; while counting: the difference to the stall before */
	int64_t delay_ns;  /* what they lost, in all */
	int64_t before_ns; /* the length of all stalls before it, of all OS threads */
	int64_t whole;     /* how many were ready all the time: likewise a difference */
};

/* A stretch in which some were ready all the time, and others ran. */
struct weft__famine {
	int64_t start_ns, end_ns;
	struct weft__ready longest;
	size_t victims, overtakers; /* overtakers became ready later than the longest, and ran before it */
	size_t first, last;         /* the victims: numbers of starving ones */
};

struct weft__delays {
	const struct weft_ties *ties;
	int64_t least_ns, stall_ns;          /* a shorter wait is none; a shorter run is no stall */
	WEFT_VEC(struct weft__ready) ready;  /* by the time of the read */
	WEFT_VEC(struct weft__stall) stalls; /* by OS thread and time */
	struct weft__ready *starving;        /* those of `ready` that no stall explains, by OS thread and time */
	size_t starving_count;
	WEFT_VEC(struct weft__famine) famines;
};

/* WEFT_ENOMEM, WEFT_ECANCELLED.  Near-linear.  Finish it in any case. */
int weft__delays_init(struct weft__delays *d, const struct weft_ties *ties, int64_t stall_ns, struct weft__watch *watch);
void weft__delays_finish(struct weft__delays *d);

/* parts.c: the parts of all stalls.  False: WEFT_ENOMEM.  Near-linear. */
bool weft__delays_split(struct weft__delays *d);

/* Whether a pause of that name is a collection of garbage. */
bool weft__is_collector(struct weft_str text);

/* A promise that heard from outside as soon as a stall was over. */
struct weft__late {
	uint32_t promise;
	int64_t time_ns;
	bool ended; /* or it was called back, as a timer that goes on */
};

/* Promises from before the stall that the outside ended or called back after it, before the OS thread slept: how many; the first
 * `most` of them are put into list.  Each counts once, as far as `most` reaches. */
uint32_t weft__delays_late(const struct weft__delays *d, const struct weft__stall *stall, struct weft__late *list, uint32_t most);

/* When what was late because of a stall has been called: the OS thread sleeps, or the next stall begins. */
int64_t weft__delays_after(const struct weft__delays *d, const struct weft__stall *stall);

/* The last stall of that OS thread that is over at the time; NULL: there is none. */
const struct weft__stall *weft__delays_stall_before(const struct weft__delays *d, uint16_t stream, int64_t time_ns);

/* Whether the OS thread slept for a good part of the time in which the promise was ready. */
bool weft__delays_slept(const struct weft__delays *d, const struct weft__ready *ready);

#endif
