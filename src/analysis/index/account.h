/* account.h: the one account of time: what each promise and each OS thread did at each moment.
 *
 * All of a promise's time is attributed once.  Between its start and its end a promise is in one of three states:
 *
 *   running: its runs;
 *   ready:   it does not run, although nothing that it waits for is left: an input has ended, another promise has signalled it,
 *            its message has arrived, or it continues after code that interrupted it;
 *   waiting: the rest.
 *
 * Each state has several uses of time, enum weft_use, which name a cause: the promise that ran meanwhile, the promise that is
 * awaited, the peer.  So waiting + ready + running is the duration of every promise of every trace, to the ns, and the uses of a
 * state add up to it.  A promise that became another one continues as that one.  The time of a thread is attributed in the same
 * way.
 *
 * Readers: stats, its table, the panel of a promise, flame graphs and the ready promises of stalls take the states as they are;
 * stalls and held locks take the sleeps of a thread.  A critical path is a route through accounts: it chooses the promise that
 * matters at each moment, and the account says what that promise did, so that the steps of path, blame and explain cannot
 * contradict stats.
 *
 * Cost: an index is built at the first need (timeline.h: n log n in runs, 8 bytes a run).  The states of a promise take time
 * near-linear in its runs and links; uses also need the runs of other promises in the time in which it was ready.  Both are
 * computed for one promise at a time, so that only what is asked for costs.  The states of the promises of a route are kept, in
 * at most 48 MB.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_ACCOUNT_H
#define WEFT_ANALYSIS_INDEX_ACCOUNT_H

#include "analysis/index/link_index.h"
#include "analysis/index/state_times.h"

/* X(NAME, "name") */
#define WEFT_STEPS(X)                                                                                                            \
	X(RUNNING, "running") /* the promise's code ran */                                                                       \
	X(READY, "ready")     /* the promise could have run, but others ran */                                                   \
	X(WAITING, "waiting") /* the promise waited for an external event; for the system: unknown */

/* The state of a promise. */
enum weft_step_kind {
#define WEFT_STEP_ENUM(NAME, name) WEFT_STEP_##NAME,
	WEFT_STEPS(WEFT_STEP_ENUM)
#undef WEFT_STEP_ENUM
	    WEFT_STEP_KINDS
};

/* X(NAME, STATE, "text"): what the time was used for; `by` is the promise that a use names. */
#define WEFT_USES(X)                                                                                                             \
	X(RAN, RUNNING, "running")                       /* on CPU, or unknown */                                                \
	X(RUNNABLE, RUNNING, "runnable")                 /* its thread had no CPU */                                             \
	X(BLOCKED, RUNNING, "blocked")                   /* its thread was blocked in a call */                                  \
	X(BEHIND, READY, "ready while another ran")      /* by: what its thread ran */                                           \
	X(ASLEEP, READY, "ready while its thread slept") /* no event woke the thread */                                          \
	X(QUEUED, READY, "ready")                        /* the trace does not tell what its thread did */                       \
	X(AWAITING, WAITING, "waiting for a promise")    /* by: the promise that it waits for, or that resolved it */            \
	X(POOL, WAITING, "queued for the thread pool")   /* by: what the thread ran that took it at last; may be WEFT_NONE */    \
	X(PEER, WAITING, "waiting for a peer")           /* by: the connection */                                                \
	X(TIMER, WAITING, "waiting for a time")          /* it is a timer */                                                     \
	X(OUTSIDE, WAITING, "waiting for an external event")                                                                     \
	X(UNKNOWN, WAITING, "waiting for something that the trace does not have")

enum weft_use {
#define WEFT_USE_ENUM(NAME, STATE, text) WEFT_USE_##NAME,
	WEFT_USES(WEFT_USE_ENUM)
#undef WEFT_USE_ENUM
	    WEFT_USE_COUNT
};

/* Returns the state that a use belongs to, and its text. */
enum weft_step_kind weft_use_state(enum weft_use use);
const char *weft_use_text(enum weft_use use);
const char *weft_step_name(enum weft_step_kind kind);

/* An interval with one use. */
struct weft_spent_time {
	int64_t start_ns, end_ns;
	uint32_t by;  /* WEFT_NONE: the use names no promise */
	uint8_t use;  /* enum weft_use */
	uint8_t call; /* for BLOCKED: enum weft_kernel_call */
};

struct weft_accounts;

/* Makes the accounts of a model; NULL when out of memory.  weft_link_index_init() does so for an index with all lists, which owns
 * them: link_index->accounts. */
struct weft_accounts *weft_accounts_create(const struct weft_link_index *link_index);
void weft_accounts_destroy(struct weft_accounts *a); /* accepts NULL */

/* Returns the end of a promise, or until when the trace has its thread's events if the promise is pending. */
int64_t weft_account_end_ns(const struct weft_model *model, uint32_t promise);

/* Returns the promise that a promise continues as after its end: what it became, if that existed and had not ended; WEFT_NONE:
 * none. */
uint32_t weft_account_continuation(const struct weft_model *model, uint32_t promise);

/* Returns how long threads ran a promise, or the system: also after its end, and on several threads at once. */
int64_t weft_account_ran_ns(const struct weft_model *model, uint32_t promise);

/* Measures a promise from its start to weft_account_end_ns().  The system, which is no promise, waits for all of its time.
 * Returns false when out of memory. */
bool weft_account_measure(struct weft_accounts *a, uint32_t promise, struct weft_state_times *out);

/* The same for the part of that time from..to. */
bool weft_account_measure_between(
    struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_state_times *out);

/* The same for a promise together with its continuations. Linear in the length of the chain. */
bool weft_account_measure_life(struct weft_accounts *a, uint32_t promise, struct weft_state_times *out);

/* Lists the uses of the promise's time from..to, in order of time without gap or overlap.  After its end, a promise that was
 * closed still runs.  The list is valid until the next call.  Returns false when out of memory. */
bool weft_account_list(struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns,
    const struct weft_spent_time **list, size_t *count);

/* Returns the state of a promise just before a time, and sets *since_ns to when that state began.  Without memory the state is
 * WEFT_STEP_WAITING, which weft_accounts_failed() tells. */
enum weft_step_kind weft_account_state_before(struct weft_accounts *a, uint32_t promise, int64_t time_ns, int64_t *since_ns);

/* Returns for how much of the interval the promise was ready while its thread slept. */
int64_t weft_account_asleep_ns(struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* Returns for how much of the interval a thread slept.  Logarithmic, then linear in the sleeps of the interval. */
int64_t weft_account_slept_ns(struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* The runs of a thread in an interval. */
struct weft_runner {
	uint32_t promise; /* ran longest at once; WEFT_NONE: the thread ran none */
	int64_t ran_ns;   /* length of that run */
	int64_t sum_ns;   /* total length of all runs */
};

/* Returns what a thread ran in the interval, without the runs of `except`. */
struct weft_runner weft_account_runner(struct weft_accounts *a, uint16_t stream, uint32_t except, int64_t from_ns, int64_t to_ns);

/* Lists what a thread did, like weft_account_list(): the promise that it runs is `by`.  Other time is
 * ASLEEP, or QUEUED if it is unknown. */
bool weft_account_list_thread(
    struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns, const struct weft_spent_time **list, size_t *count);

struct weft__activations;
/* Returns the causes of runs that the accounts use.  Private to analysis/index. */
struct weft__activations *weft__account_activations(struct weft_accounts *a);

/* Returns whether an allocation failed since the accounts were made. */
bool weft_accounts_failed(const struct weft_accounts *a);

#endif
