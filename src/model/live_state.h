/* live_state.h: the facts that hold at a moment of a trace, as the state dump of a ring records them.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_LIVE_STATE_H
#define WEFT_MODEL_LIVE_STATE_H

#include "base/vec.h"
#include "model/running_stats.h"
#include "trace/trace.h"

/* Everything pending, awaited, held and counted at a moment, as events of a state dump. */
struct weft_checkpoint {
	WEFT_VEC(struct weft_event) events; /* in their original streams; those with a time of their own keep it */
	WEFT_VEC(char *) texts;             /* texts that are stored nowhere else */
};

/* Facts that hold after all events applied so far.  Memory is proportional to what is pending at once. */
struct weft_live_state;

struct weft_live_state *weft_live_state_create(void); /* NULL: out of memory */
void weft_live_state_destroy(struct weft_live_state *standing);

/* Applies events; copies texts.  After WEFT_ENOMEM only destroy it.  About 50 ns per event. */
int weft_live_state_apply(struct weft_live_state *standing, const struct weft_event *events, size_t count);

/* Converts a time of a clock with an assumed rate to the rate that is known now. */
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

/* Converts all times of the state. */
void weft_live_state_rescale_times(struct weft_live_state *standing, uint64_t hz, uint64_t now_hz);

/* Returns the newest weft_snapshot() requests of the program, oldest first; valid until the next weft_live_state_apply(). */
const struct weft_event *weft_live_state_snapshots(const struct weft_live_state *standing, size_t *count);

/* Sets the statistics that count promises from now on when they end and leave; the caller owns them. */
void weft_live_state_set_stats(struct weft_live_state *standing, struct weft_running_stats *tallies, size_t count);

/* Adds the statistics of promises that have left and of those still known: all promises that ever existed.  Linear in what is
 * pending. */
void weft_live_state_sum_stats(const struct weft_live_state *standing, struct weft_running_stats *out);

/* Returns true if an earlier await still holds, or ended because one of the two ended; false: other awaits replaced it.  Linear
 * in the facts of the awaiting promise. */
bool weft_live_state_has_await(const struct weft_live_state *standing, const struct weft_event *still_awaits);

/* Makes a checkpoint.  The caller frees *out, on failure too; texts are valid until the next weft_live_state_apply().
 * WEFT_ENOMEM.  Linear in what is pending. */
int weft_live_state_checkpoint(struct weft_live_state *standing, struct weft_checkpoint *out);

/* Reads the trace from its position to the last event before from_ns (as weft_event.time_ns), and makes a checkpoint of that
 * moment.
 *
 * The caller frees *out, on failure too; texts belong to the trace.  WEFT_EIO, WEFT_ENOMEM.  Linear. */
int weft_checkpoint_before(struct weft_checkpoint *out, struct weft_trace *trace, int64_t from_ns);
void weft_checkpoint_free(struct weft_checkpoint *state);

#endif
