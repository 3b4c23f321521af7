/* standing.h: what is the case at a moment of a trace: as a ring would tell it that has forgotten the rest.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_STANDING_H
#define WEFT_MODEL_STANDING_H

#include "base/vec.h"
#include "model/tally.h"
#include "trace/trace.h"

/* What was pending, awaited, held and counted at a moment, told as state dumps tell it. */
struct weft_state {
	WEFT_VEC(struct weft_event) events; /* each of the stream that it was told in, with its own time where it has one */
	WEFT_VEC(char *) texts;             /* those of them that stand nowhere else */
};

/* What holds by now, of events that come one after the other.  Memory: for what is pending at once. */
struct weft_standing;

struct weft_standing *weft_standing_create(void); /* NULL: there is no memory */
void weft_standing_destroy(struct weft_standing *standing);

/* Texts are copied.  WEFT_ENOMEM: it is to be destroyed.  About 50 ns an event. */
int weft_standing_take(struct weft_standing *standing, const struct weft_event *events, size_t count);

/* A time by a clock that was taken to go so fast, by what is known of it now. */
static inline int64_t weft_time_again(int64_t time_ns, uint64_t hz, uint64_t now_hz)
{
	return (int64_t)((double)time_ns * (double)hz / (double)now_hz);
}

static inline void weft_event_time_again(struct weft_event *event, uint64_t hz, uint64_t now_hz)
{
	event->time_ns = weft_time_again(event->time_ns, hz, now_hz);
	if (event->op == WEFT_OP_PENDING)
		event->value = weft_time_again(event->value, hz, now_hz);
}

/* All times of what holds. */
void weft_standing_time_again(struct weft_standing *standing, uint64_t hz, uint64_t now_hz);

/* What the program asked for by weft_snapshot(), the newest of it, oldest first; it lives until the next take. */
const struct weft_event *weft_standing_snapshots(const struct weft_standing *standing, size_t *count);

/* From now on promises that are over and leave count in these tallies, which are the caller's. */
void weft_standing_count(struct weft_standing *standing, struct weft_tally *tallies, size_t count);

/* The same tallies with those that are still known: of all promises that ever were.  Linear in what is pending. */
void weft_standing_sum(const struct weft_standing *standing, struct weft_tally *out);

/* Whether an await that was told earlier still holds, or ended as one of both did; false: it gave way to others.  Linear in what
 * is known of who awaits. */
bool weft_standing_keeps(const struct weft_standing *standing, const struct weft_event *still_awaits);

/* *out is the caller's to free, on failure too; texts live until the next take.  WEFT_ENOMEM.  Linear in what is pending. */
int weft_standing_tell(struct weft_standing *standing, struct weft_state *out);

/* Reads the trace from where it stands up to the last event before from_ns (as weft_event.time_ns), and tells what holds then.
 *
 * *out is the caller's to free, on failure too; texts stay the trace's.  WEFT_EIO, WEFT_ENOMEM.  Linear. */
int weft_state_before(struct weft_state *out, struct weft_trace *trace, int64_t from_ns);
void weft_state_free(struct weft_state *state);

#endif
