/* account.h: computes what each promise and each OS thread did at each moment.
 *
 * Every moment in the life of a promise is attributed exactly once.  Between its start and its end a promise is in one of three
 * states:
 *
 *	running: its code runs;
 *	ready:   it does not run, although it waits for nothing any more: an input has ended, another promise has signalled it,
 *	         its message has arrived, or it continues after code that interrupted it;
 *	waiting: the rest of the time.
 *
 * Each state is divided into uses of time (enum weft_use), which name a cause: the promise that ran meanwhile, the promise that
 * is awaited, or the peer.  Therefore waiting + ready + running is the exact duration of every promise, to the ns, and the uses
 * of a state add up to the time in that state.  If a promise became another promise, its account continues with the account of
 * that promise.  The time of a thread is attributed in the same way.
 *
 * The command stats, its table, the panel of a promise and flame graphs use the states as they are.  Stalls use them for the
 * promises that were ready; stalls and held locks also use the sleeps of a thread.  A critical path is a route through accounts:
 * it chooses the promise that matters at each moment, and the account says what that promise did.  Therefore the steps of path,
 * blame and explain cannot contradict stats.
 *
 * An index is built when it is first needed (timeline.h: n log n in the number of runs, 8 bytes a run).  The states of a promise
 * take time nearly linear in the number of its runs and links; uses also need the runs of other promises in the time in which
 * it was ready.  States and uses are computed for one promise at a time, so a caller pays only for the promises that it asks
 * for.  The states of the promises of a critical path are kept for reuse, in at most 48 MB.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_ACCOUNT_H
#define WEFT_ANALYSIS_INDEX_ACCOUNT_H

#include "analysis/index/link_index.h"
#include "analysis/index/state_times.h"

/* X(NAME, "name") */
#define WEFT_STEPS(X)                                                                                                            \
	X(RUNNING, "running") /* the promise's code ran */                                                                       \
	X(READY, "ready")     /* the promise could have run, but other promises ran */                                           \
	X(WAITING, "waiting") /* the promise waited for an external event; for the promise `system`, the state is unknown */

/* The state of a promise at a time. */
enum weft_step_kind {
#define WEFT_STEP_ENUM(NAME, name) WEFT_STEP_##NAME,
	WEFT_STEPS(WEFT_STEP_ENUM)
#undef WEFT_STEP_ENUM
	    WEFT_STEP_KINDS
};

/* X(NAME, STATE, "text"): what time in a state was used for; the field `by` has the promise that a use names. */
#define WEFT_USES(X)                                                                                                             \
	X(RAN, RUNNING, "running")                       /* on CPU, or unknown */                                                \
	X(RUNNABLE, RUNNING, "runnable")                 /* the promise's thread was ready to run but had no CPU */              \
	X(BLOCKED, RUNNING, "blocked")                   /* the promise's thread was blocked in a call */                        \
	X(BEHIND, READY, "ready while another ran")      /* by: the promise that ran on its thread meanwhile */                  \
	X(ASLEEP, READY, "ready while its thread slept") /* no event woke the promise's thread */                                \
	X(QUEUED, READY, "ready")                        /* the trace does not tell what the promise's thread did */             \
	X(AWAITING, WAITING, "waiting for a promise")    /* by: the promise for which it waits, or which resolved it */          \
	X(POOL, WAITING, "queued for the thread pool") /* by: the promise that the pool's thread ran before; may be WEFT_NONE */ \
	X(PEER, WAITING, "waiting for a peer")         /* by: the connection */                                                  \
	X(TIMER, WAITING, "waiting for a time")        /* it is a timer */                                                       \
	X(OUTSIDE, WAITING, "waiting for an external event")                                                                     \
	X(UNKNOWN, WAITING, "waiting for something that the trace does not record")

enum weft_use {
#define WEFT_USE_ENUM(NAME, STATE, text) WEFT_USE_##NAME,
	WEFT_USES(WEFT_USE_ENUM)
#undef WEFT_USE_ENUM
	    WEFT_USE_COUNT
};

/* Returns the state to which a use of time belongs, and the text of a use. */
enum weft_step_kind weft_use_state(enum weft_use use);
const char *weft_use_text(enum weft_use use);
const char *weft_step_name(enum weft_step_kind kind);

/* An interval that was spent on one use. */
struct weft_spent_time {
	int64_t start_ns, end_ns;
	uint32_t by;  /* the promise that the use names; WEFT_NONE if the use names none */
	uint8_t use;  /* enum weft_use */
	uint8_t call; /* for BLOCKED: enum weft_kernel_call */
};

struct weft_accounts;

/* Makes the accounts of a model; returns NULL when out of memory. weft_link_index_init() calls this function for an index with
 * all lists; that index then owns the accounts as link_index->accounts. */
struct weft_accounts *weft_accounts_create(const struct weft_link_index *link_index);
void weft_accounts_destroy(struct weft_accounts *a); /* accepts NULL */

/* Returns the end of a promise; for a pending promise, the time until which the trace has the events of its thread. */
int64_t weft_account_end_ns(const struct weft_model *model, uint32_t promise);

/* Returns the promise as which a promise continues after its end: the promise that it became, if that promise existed and had
 * not ended; else WEFT_NONE. */
uint32_t weft_account_continuation(const struct weft_model *model, uint32_t promise);

/* Returns for how long threads ran a promise or the system, also after its end, and on several threads at once. */
int64_t weft_account_ran_ns(const struct weft_model *model, uint32_t promise);

/* Measures the times in each state of a promise, from its start to weft_account_end_ns().  The system, which is no promise,
 * counts as waiting all the time.  Returns false when out of memory. */
bool weft_account_measure(struct weft_accounts *a, uint32_t promise, struct weft_state_times *out);

/* Measures the times in each state of a promise within from_ns..to_ns. */
bool weft_account_measure_between(
    struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns, struct weft_state_times *out);

/* Measures the times in each state of a promise and its continuations together. Takes time linear in the number of
 * continuations. */
bool weft_account_measure_life(struct weft_accounts *a, uint32_t promise, struct weft_state_times *out);

/* Lists the uses of the promise's time within from_ns..to_ns, in order of time without gap or overlap.  A promise that was
 * closed may still run after its end.  The list is valid until the next call.  Returns false when out of memory. */
bool weft_account_list(struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns,
    const struct weft_spent_time **list, size_t *count);

/* Returns the state of a promise just before a time; sets *since_ns to the start of that state.  When out of memory the state
 * is WEFT_STEP_WAITING, and weft_accounts_failed() returns true. */
enum weft_step_kind weft_account_state_before(struct weft_accounts *a, uint32_t promise, int64_t time_ns, int64_t *since_ns);

/* Returns for how much of the interval the promise was ready while its thread slept. */
int64_t weft_account_asleep_ns(struct weft_accounts *a, uint32_t promise, int64_t from_ns, int64_t to_ns);

/* Returns for how much of the interval a thread slept.  Takes logarithmic time, plus time linear in the number of sleeps in the
 * interval. */
int64_t weft_account_slept_ns(struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* The runs of a thread in an interval. */
struct weft_runner {
	uint32_t promise; /* the promise with the longest single run; WEFT_NONE if the thread ran no promise */
	int64_t ran_ns;   /* length of that run */
	int64_t sum_ns;   /* total length of all runs of the thread in the interval */
};

/* Returns the promise that a thread ran longest in the interval, apart from the promise `except`. */
struct weft_runner weft_account_runner(struct weft_accounts *a, uint16_t stream, uint32_t except, int64_t from_ns, int64_t to_ns);

/* Lists what a thread did, like weft_account_list(); `by` is the promise that the thread runs.  The time in which it ran no
 * promise is ASLEEP, or QUEUED if it is unknown. */
bool weft_account_list_thread(
    struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns, const struct weft_spent_time **list, size_t *count);

struct weft__activations;
/* Returns the causes of runs (activation.h) that the accounts use.  Private to analysis/index. */
struct weft__activations *weft__account_activations(struct weft_accounts *a);

/* Returns whether an allocation has failed since the accounts were made. */
bool weft_accounts_failed(const struct weft_accounts *a);

#endif
