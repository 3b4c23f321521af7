/* delays.h: finds promises that were ready but did not run, and what ran instead.
 *
 * A stall is an interval in which a thread did not return to its event loop: a long run, a long pause, or a synchronous call.
 * A promise is ready from the end of its input until it reads the result.  A stall delayed the promise if it covers most of
 * that time.  If many other promises ran instead, and enough of them became ready later than the promise, this is starvation.
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_DELAYS_H
#define WEFT_ANALYSIS_INDEX_DELAYS_H

#include "analysis/index/link_index.h"
#include "base/vec.h"
#include "model/kernel.h"

/* A promise that was ready from `from_ns` to `to_ns`. */
struct weft__ready {
	int64_t from_ns, to_ns;
	uint32_t promise, input;
	uint16_t stream;
};

/* Parts of a stall.  How the time of a stall divides: the thread was on CPU except for off_ns. */
struct weft__cpu_breakdown {
	/* true if the kernel's counters are known; otherwise only blocked_ns is known, from calls that the trace has as
	 * pauses */
	bool is_known;
	/* true if other promises ran in the same rounds: then off_ns and its parts are lower bounds, otherwise upper bounds */
	bool is_lower_bound;
	int64_t off_ns;     /* off CPU */
	int64_t waiting_ns; /* part of off_ns: runnable */
	/* part of off_ns in which the thread was blocked; in the rest of off_ns it was runnable or blocked */
	int64_t blocked_ns;
	uint64_t voluntary_switches;
	uint64_t preemptions;                /* involuntary context switches */
	uint64_t minor_faults, major_faults; /* number of page faults without and with a read from a disk */
	uint32_t call;                       /* text of the pause with the largest part of calls_ns; WEFT_NONE if there is none */
	uint32_t call_site;                  /* place at which the code made that call; WEFT_NONE if unknown */
	uint32_t calls;                      /* number of pauses */
	int64_t calls_ns;                    /* total length of the pauses; the rest of blocked_ns was spent in unknown calls */
	/* true if the trace has each context switch (model/kernel.h); then off_ns is waiting_ns + blocked_ns, and the fields
	 * below are set */
	bool is_exact;
	/* enum weft_kernel_call: the system call in which the thread was blocked for longest */
	uint8_t kernel_call;
	int64_t kernel_call_ns;                        /* total time for which the thread was blocked in kernel_call */
	const struct weft_off_cpu *longest_sleep;      /* NULL: none */
	const struct weft_off_cpu *longest_preemption; /* NULL: none */
	struct weft_wait_target wait_target;           /* the object for which the thread waited in kernel_call */
	int64_t interrupts_ns;                         /* time for which interrupts used the thread's CPU */
	uint32_t interrupts;                           /* number of interrupts */
	/* name of the interrupt that took most time; NULL if there was no interrupt or its name is unknown */
	const char *interrupt;
	int64_t interrupt_ns, first_interrupt_ns; /* time that `interrupt` took; time of the first interrupt */
	int64_t faulting_ns;                      /* upper bound of the time spent in page faults */
	int64_t gc_ns;                            /* time of garbage collection, from the kernel's records or from pauses */
	/* name of the runtime whose GC the kernel's records have, such as "Python"; or NULL */
	const char *gc_name;
};

/* A long run, a long pause, or a callback that sleeps until its own request is answered. */
struct weft__stall {
	int64_t start_ns, end_ns;
	bool is_pause;
	bool is_on_loop;  /* true if an event loop of the thread had begun before the stall, and returned after it or never */
	bool is_open;     /* true if the stall lasts until the end of the thread's events */
	uint32_t request; /* the request for whose answer a callback sleeps, or WEFT_NONE */
	uint32_t promise; /* promise that ran or paused; WEFT_SYSTEM if unknown */
	uint32_t pause;   /* text of the pause */
	uint16_t stream;
	struct weft__cpu_breakdown breakdown;
	/* lower bound of the stall's length without the time in which the thread was runnable; -1 if unknown */
	int64_t own_ns;
	int64_t victims;   /* number of promises that were ready meanwhile; while counting: the difference to the stall before */
	int64_t delay_ns;  /* total time by which the stall delayed its victims */
	int64_t before_ns; /* total length of the stalls before this stall, of all threads */
	/* number of victims that were ready for the whole stall; while counting: the difference to the stall before */
	int64_t spanning;
};

typedef WEFT_VEC(struct weft__stall) weft__stalls_vec;

/* Lists the stalls of at least least_ns, sorted by stream and time. explain, check, watch and top all use this list (stalls.c).
 * Only the interval, the kind and the promise of each stall are set.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; the
 * caller frees *out in any case.  Takes n log n time. */
int weft__stalls_find(weft__stalls_vec *out, const struct weft_model *m, int64_t least_ns, struct weft__cancel_token *cancel);

/* Finds the longest stall of an event loop, or of any thread if the process has no loop.  Returns 1, or 0 if there is no stall,
 * or WEFT_ENOMEM. */
int weft__stalls_find_longest(struct weft__stall *out, const struct weft_model *m);

/* An interval in which some promises were ready all the time while others ran. */
struct weft__starvation_period {
	int64_t start_ns, end_ns;
	struct weft__ready longest; /* the victim that was ready for longest */
	size_t victims;
	size_t overtakers;  /* number of promises that became ready later than `longest`, but ran before it */
	size_t first, last; /* range of the victims: indexes into weft__delays.starving */
};

struct weft__delays {
	const struct weft_link_index *link_index;
	int64_t least_ns, stall_ns;         /* shortest wait of a ready promise that counts; shortest stall */
	WEFT_VEC(struct weft__ready) ready; /* promises that were ready for long, sorted by the time of their read */
	weft__stalls_vec stalls;            /* by stream and time */
	struct weft__ready *starving;       /* items of `ready` that no stall explains, sorted by stream and time */
	size_t starving_count;
	WEFT_VEC(struct weft__starvation_period) starvation_periods;
};

/* Finds all delays.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; the caller calls weft__delays_finish() in any case.
 * Near-linear. */
int weft__delays_init(
    struct weft__delays *d, const struct weft_link_index *link_index, int64_t stall_ns, struct weft__cancel_token *cancel);
void weft__delays_finish(struct weft__delays *d);

/* Computes the CPU breakdowns of all stalls (cpu_breakdown.c); returns false when out of memory.  Near-linear. */
bool weft__delays_add_cpu_breakdowns(struct weft__delays *d);

/* Returns whether a pause with the given text is a garbage collection. */
bool weft__is_gc_pause(struct weft_str text);

/* A promise that an external event resolved or called back right after a stall. */
struct weft__late_promise {
	uint32_t promise;
	int64_t time_ns;
	int64_t due_ns; /* INT64_MIN: unknown */
	bool ended;     /* false: it was called back and is pending, such as a repeating timer */
};

/* Returns when a timer was due that was not called before time_ns: its label has the time since its creation.  INT64_MIN: the
 * trace does not show it exactly. */
int64_t weft__timer_due_ns(const struct weft_link_index *link_index, uint32_t timer, int64_t time_ns);

/* Returns how many promises older than the stall got an external event between the stall and the next sleep of the thread, or are
 * timers that were due during the stall; writes the first max_count of them to `list`.  Repeated events of a promise count once
 * if it is in `list`. */
uint32_t weft__delays_find_late(
    const struct weft__delays *d, const struct weft__stall *stall, struct weft__late_promise *list, uint32_t max_count);

/* Returns the time until which callbacks may be late because of the stall: the next sleep of the thread, or the next stall. */
int64_t weft__delays_late_until_ns(const struct weft__delays *d, const struct weft__stall *stall);

/* Returns the last stall of a stream that has ended at a time; NULL if there is none. */
const struct weft__stall *weft__delays_stall_before(const struct weft__delays *d, uint16_t stream, int64_t time_ns);

/* Returns whether a label of the timer says that the program restarted it. */
bool weft__timer_is_restarted(const struct weft_model *model, uint32_t timer);

/* Returns whether the thread slept for more than a fifth of the time in which the promise was ready. */
bool weft__delays_was_asleep(const struct weft__delays *d, const struct weft__ready *ready);

#endif
