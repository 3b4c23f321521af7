/* delays.h: promises that were ready but did not run, and what ran instead.
 *
 * A stall is an interval in which a thread did not return to its event loop: a long run, a long pause, or a synchronous call.
 * A promise is ready from the end of its input until it reads the result.  A stall that covers most of that time delayed it.  If
 * many other promises ran, and enough of them became ready later, it is starvation.  Private to analysis/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_DELAYS_H
#define WEFT_ANALYSIS_INDEX_DELAYS_H

#include "analysis/index/link_index.h"
#include "base/vec.h"
#include "model/kernel.h"

/* A promise was ready from `from_ns` to `to_ns`. */
struct weft__ready {
	int64_t from_ns, to_ns;
	uint32_t promise, input;
	uint16_t stream;
};

/* Parts of a stall.  The thread was on CPU for the time that is not in off_ns. */
struct weft__cpu_breakdown {
	/* The kernel's counters are known; otherwise only blocked_ns is, from calls that the trace has as pauses. */
	bool is_known;
	bool is_lower_bound; /* other promises ran in the same rounds: off_ns and its parts are lower bounds, not upper bounds */
	int64_t off_ns;      /* off CPU */
	int64_t waiting_ns;  /* part of off_ns: runnable */
	int64_t blocked_ns;  /* part of off_ns: blocked; the rest of off_ns is either of the two */
	uint64_t voluntary_switches;
	uint64_t preemptions;                /* involuntary context switches */
	uint64_t minor_faults, major_faults; /* page faults; a major fault reads from a disk */
	uint32_t call;                       /* text of the pause with the largest part of calls_ns; WEFT_NONE: there is none */
	uint32_t call_site;                  /* where the code made that call; WEFT_NONE: unknown */
	uint32_t calls;                      /* number of pauses */
	int64_t calls_ns;                    /* total length of the pauses; the rest of blocked_ns was in unknown calls */
	/* The trace has each context switch (model/kernel.h); then off_ns is waiting_ns + blocked_ns, and the fields below are
	 * set. */
	bool is_exact;
	uint8_t kernel_call;                           /* enum weft_kernel_call in which it was blocked for longest */
	int64_t kernel_call_ns;                        /* total time blocked in kernel_call */
	const struct weft_off_cpu *longest_sleep;      /* NULL: none */
	const struct weft_off_cpu *longest_preemption; /* NULL: none */
	struct weft_wait_target wait_target;           /* what it waited for in kernel_call */
	int64_t interrupts_ns;                         /* time that interrupts used its CPU */
	uint32_t interrupts;                           /* number of interrupts */
	const char *interrupt; /* name of the interrupt with the most time; NULL: there was none, or its name is unknown */
	int64_t interrupt_ns, first_interrupt_ns; /* time of that interrupt; time of the first interrupt */
	int64_t faulting_ns;                      /* time of page faults, an upper bound */
	int64_t gc_ns;                            /* garbage collection, from the kernel's records or from pauses */
	const char *gc_name;                      /* runtime whose GC the kernel's records have, such as "Python"; or NULL */
};

/* A long run, a long pause, or a callback that sleeps until its request is answered. */
struct weft__stall {
	int64_t start_ns, end_ns;
	bool is_pause;
	bool is_on_loop;  /* an event loop of the thread had begun before it, and returned after it, if ever */
	bool is_open;     /* it lasts until the end of the thread's events */
	uint32_t request; /* the request whose answer a callback awaits in its sleep, or WEFT_NONE */
	uint32_t promise; /* promise that ran or paused; WEFT_SYSTEM: unknown */
	uint32_t pause;   /* text of the pause */
	uint16_t stream;
	struct weft__cpu_breakdown breakdown;
	int64_t own_ns;    /* length without the time that it was runnable, a lower bound; -1: unknown */
	int64_t victims;   /* promises that were ready meanwhile; while counting: the difference to the stall before */
	int64_t delay_ns;  /* total time that the victims lost */
	int64_t before_ns; /* total length of the stalls before it, of all threads */
	int64_t spanning;  /* victims that were ready for the whole stall; while counting: the difference to the stall before */
};

typedef WEFT_VEC(struct weft__stall) weft__stalls_vec;

/* Lists the stalls of at least least_ns by stream and time; the only list of stalls, which explain, check, watch and top read
 * (stalls.c).  Only the interval, its kind and its promise are set.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; free *out
 * in any case.  n log n. */
int weft__stalls_find(weft__stalls_vec *out, const struct weft_model *m, int64_t least_ns, struct weft__cancel_token *cancel);

/* Finds the longest stall of an event loop, or of any thread in a process that has no loop.  Returns 1, 0 if there is none, or
 * WEFT_ENOMEM. */
int weft__stalls_find_longest(struct weft__stall *out, const struct weft_model *m);

/* An interval in which some promises were ready all the time while others ran. */
struct weft__starvation_period {
	int64_t start_ns, end_ns;
	struct weft__ready longest; /* the victim that was ready for longest */
	size_t victims;
	size_t overtakers;  /* promises that became ready later than `longest`, and ran before it */
	size_t first, last; /* the victims, as indexes into weft__delays.starving */
};

struct weft__delays {
	const struct weft_link_index *link_index;
	int64_t least_ns, stall_ns;         /* shortest wait that counts; shortest stall */
	WEFT_VEC(struct weft__ready) ready; /* by the time of the read */
	weft__stalls_vec stalls;            /* by stream and time */
	struct weft__ready *starving;       /* items of `ready` that no stall explains, by stream and time */
	size_t starving_count;
	WEFT_VEC(struct weft__starvation_period) starvation_periods;
};

/* Finds all delays.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure; call weft__delays_finish() in any case.  Near-linear. */
int weft__delays_init(
    struct weft__delays *d, const struct weft_link_index *link_index, int64_t stall_ns, struct weft__cancel_token *cancel);
void weft__delays_finish(struct weft__delays *d);

/* Computes the parts of all stalls (cpu_breakdown.c); false when out of memory.  Near-linear. */
bool weft__delays_add_cpu_breakdowns(struct weft__delays *d);

/* Returns whether a pause with that text is a garbage collection. */
bool weft__is_gc_pause(struct weft_str text);

/* A promise that an external event ended or called back right after a stall. */
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

/* Returns the last stall of a stream that has ended at the time; NULL: there is none. */
const struct weft__stall *weft__delays_stall_before(const struct weft__delays *d, uint16_t stream, int64_t time_ns);

/* Returns whether the program restarted the timer. */
bool weft__timer_is_restarted(const struct weft_model *model, uint32_t timer);

/* Returns whether the thread slept for more than a fifth of the time in which the promise was ready. */
bool weft__delays_was_asleep(const struct weft__delays *d, const struct weft__ready *ready);

#endif
