/* live_state.h: keeps the facts in force at a moment of a trace, as the state dump of a ring records them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_LIVE_STATE_H
#define WEFT_MODEL_LIVE_STATE_H

#include "base/vec.h"
#include "model/running_stats.h"
#include "trace/trace.h"

/* Everything that is pending, awaited, held or counted at a moment, as events of a state dump. */
struct weft_checkpoint {
	/* events of the checkpoint in their original streams; events with their own time keep it */
	WEFT_VEC(struct weft_event) events;
	WEFT_VEC(char *) texts; /* texts of the events that are stored nowhere else */
};

/* A promise that has ended, itself or as the promise that it became. */
struct weft_ended_promise {
	struct weft_str label; /* first label of the promise, or "" */
	int64_t start_ns, end_ns;
	uint16_t kind;
	uint8_t op; /* how the promise ended: WEFT_OP_RESOLVE, WEFT_OP_FAIL or WEFT_OP_CANCEL */
};

/* An interval in which a thread ran one promise, slept, or was paused while no promise ran. */
struct weft_ended_run {
	int64_t start_ns, end_ns;
	uint16_t stream;
	uint16_t kind;       /* kind of the promise; WEFT_KIND_UNKNOWN if it is unknown */
	bool is_sleep;       /* the thread slept */
	bool is_pause;       /* nothing could run */
	bool has_slept;      /* the thread slept before */
	bool is_loop_thread; /* true if an event loop runs on the thread, or did before */
};

/* Callbacks that receive each end of a promise and each run once, while events are applied.  The texts are valid during the
 * call; a callback returns false when out of memory. */
struct weft_live_observer {
	bool (*add_end)(void *ctx, const struct weft_ended_promise *promise);
	bool (*add_run)(void *ctx, const struct weft_ended_run *run);
	void *ctx;
};

/* A promise in flight. */
struct weft_live_promise {
	struct weft_str label; /* first label of the promise, or "" */
	int64_t start_ns;
	int64_t level, bound; /* number of elements in a queue or pool; largest number of elements; -1 if unknown */
	uint16_t kind;
};

/* The facts in force after all events that were applied.  Memory is proportional to the largest number of promises that were
 * pending at once. */
struct weft_live_state;

struct weft_live_state *weft_live_state_create(void); /* NULL: out of memory */
void weft_live_state_destroy(struct weft_live_state *standing);

/* Applies events; copies texts.  After WEFT_ENOMEM the state can only be destroyed.  Takes about 50 ns per event. */
int weft_live_state_apply(struct weft_live_state *standing, const struct weft_event *events, size_t count);

/* Converts a time of a clock from the assumed rate to the rate that is known now. */
static inline int64_t weft_rescale_time(int64_t time_ns, uint64_t hz, uint64_t now_hz)
{
	return (int64_t)((double)time_ns * (double)hz / (double)now_hz);
}

static inline void weft_event_rescale_times(struct weft_event *event, uint64_t hz, uint64_t now_hz)
{
	event->time_ns = weft_rescale_time(event->time_ns, hz, now_hz);
	if (event->op == WEFT_OP_PENDING)
		event->value = weft_rescale_time(event->value, hz, now_hz);
}

/* Converts all times of the state to another rate of the clock. */
void weft_live_state_rescale_times(struct weft_live_state *standing, uint64_t hz, uint64_t now_hz);

/* Returns the newest requests of the program by weft_snapshot(), the oldest first; valid until the next
 * weft_live_state_apply(). */
const struct weft_event *weft_live_state_snapshots(const struct weft_live_state *standing, size_t *count);

/* Sets the statistics that count promises from now on when they end and leave the state; the caller owns the statistics. */
void weft_live_state_set_stats(struct weft_live_state *standing, struct weft_running_stats *tallies, size_t count);

/* Adds the statistics of the promises that have left the state and of the promises that are still stored: together all promises
 * that ever existed.  Takes time linear in the number of pending promises. */
void weft_live_state_sum_stats(const struct weft_live_state *standing, struct weft_running_stats *out);

/* Sets the observer of ends and runs from now on; the observer must live as long as the state.  Ends and runs until after_ns
 * are known to the observer already, and are not reported. */
void weft_live_state_set_observer(struct weft_live_state *standing, const struct weft_live_observer *observer, int64_t after_ns);

/* Reports the ends of promises that are not reported yet: an end is reported late, because a label may follow it.  Takes time
 * linear in the number of stored promises. */
int weft_live_state_report_ends(struct weft_live_state *standing);

/* Calls add() for each pending promise, until add() returns false. */
void weft_live_state_each_pending(
    const struct weft_live_state *standing, bool (*add)(void *ctx, const struct weft_live_promise *promise), void *ctx);

/* Returns the counters, with their sums as values; valid until the next weft_live_state_apply(). */
const struct weft_event *weft_live_state_counters(const struct weft_live_state *standing, size_t *count);

/* Returns since when a stream runs a promise; INT64_MAX if it sleeps or that is unknown. */
int64_t weft_live_state_runs_since_ns(const struct weft_live_state *standing, uint16_t stream, bool *is_loop_thread);
size_t weft_live_state_stream_count(const struct weft_live_state *standing);

/* Returns true if an earlier await is still in force, or ended because one of the two promises ended; false if other awaits
 * replaced it.  Takes time linear in the number of facts of the awaiting promise. */
bool weft_live_state_has_await(const struct weft_live_state *standing, const struct weft_event *still_awaits);

/* Makes a checkpoint.  Makes a checkpoint of the state.  The caller frees *out, on failure too; the texts are valid until the
 * next weft_live_state_apply().  WEFT_ENOMEM.  Takes time linear in the number of pending promises. */
int weft_live_state_checkpoint(struct weft_live_state *standing, struct weft_checkpoint *out);

/* Reads the trace from its position to the last event before from_ns (as in weft_event.time_ns), and makes a checkpoint of that
 * moment.
 *
 * The caller frees *out, on failure too; the texts belong to the trace.  WEFT_EIO, WEFT_ENOMEM.  Linear. */
int weft_checkpoint_before(struct weft_checkpoint *out, struct weft_trace *trace, int64_t from_ns);
void weft_checkpoint_free(struct weft_checkpoint *state);

#endif
