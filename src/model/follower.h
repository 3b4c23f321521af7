/* follower.h: keeps a model of a trace that a program still writes; a refresh costs only what is new.
 *
 *	weft_follower_open(&f, path, NULL, &err);
 *	// for example every 100 ms:
 *	if (weft_follower_refresh(f, &err) > 0)
 *		... weft_follower_model(f) is a new model; the previous one is freed
 *
 * The model covers a *window*, the newest events, and older facts that still hold when the window starts: pending promises,
 * awaits, labels, counters.  A ring that has overwritten older events and has a state dump holds the same facts, so every query
 * on models works.  Promises that ended before the window are in no model.  Statistics of all promises that ever existed, as
 * rules need them, are counted when promises leave (running_stats.h).
 *
 * Times are since the first event that was ever read, and ids are as recorded.  The numbers of promises differ between models.
 *
 * A trace that cannot be followed (a single file, another format) is read again as a whole whenever it has changed.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWER_H
#define WEFT_MODEL_FOLLOWER_H

#include "model/live_state.h"
#include "model/model.h"
#include "model/running_stats.h"

struct weft_follower;

/* A picture of up to twice this many events can be redrawn several times a second.  Viewers show a window of this size while a
 * larger trace is recorded. */
#define WEFT_FOLLOWER_WINDOW_EVENTS 250000

struct weft_follower_options {
	struct weft_model_options model;
	/* minimum length of the window; the maximum is twice that and a refresh; 0: events since the last refresh */
	int64_t window_ns;
	uint64_t window_events; /* maximum number of events of a window, if that is shorter; 0: no limit */
	/* For pictures: times of the model are since the window's start, and the checkpoint is at that time.  A window that would
	 * pass within a second has a fifth of window_events. */
	bool begins_at_window;
	/* weft_follower_refresh_newest() shows up to so many events completely at first, if two windows have fewer. */
	uint64_t first_events;
	bool makes_no_model; /* build no model, only open the trace */
	/* queries, owned by the caller; counted again after each refresh that finds something */
	struct weft_running_stats *stats;
	size_t stats_count;
	/* Unless NULL: receives each end and each run once, whatever the window is, also after the ring was overwritten between
	 * two refreshes.  Owned by the caller. */
	const struct weft_live_observer *observer;
};

/* Creates a follower; reads nothing, and the path need not exist.  Free it with weft_follower_close().  `options` may be NULL.
 * WEFT_ENOMEM. */
int weft_follower_open(
    struct weft_follower **out, const char *path, const struct weft_follower_options *options, struct weft_error *err);
void weft_follower_close(struct weft_follower *follower); /* accepts NULL */

/* Returns 1 if there is a new model, 0 if nothing has changed, or an error of weft_trace_open() or weft_model_build(); after an
 * error the previous model stays.  Time and memory are linear in the window, in pending promises and in new events.  The first
 * refresh reads the whole trace and models all of it.  A refresh that is too late for a ring reads all of it again and models
 * only a window. */
int weft_follower_refresh(struct weft_follower *follower, struct weft_error *err);

/* Refreshes for a caller that shows only the window: after a long first read, the window covers what came meanwhile. */
int weft_follower_refresh_newest(struct weft_follower *follower, struct weft_error *err);

/* Applies new events without building a model; 1: there were new events, 0: none, or before the first refresh.  If more events
 * follow the window's start than a window has, the next window starts here.  So a later model is small, although many events
 * came. */
int weft_follower_skip(struct weft_follower *follower, struct weft_error *err);

/* Makes the next refresh build a model even if nothing has changed, because waiting times have grown. */
void weft_follower_mark_stale(struct weft_follower *follower);

/* Returns the weft_snapshot() requests of the program, also those before the window: the newest 64, oldest first.  They are valid
 * until the next refresh or skip.  NULL: the trace is read again as a whole, and its events have the requests. */
const struct weft_event *weft_follower_snapshots(const struct weft_follower *follower, size_t *count);

/* Returns how far the statistics reach back from the last event; -1: they do not count, because the trace is read again as a
 * whole. */
int64_t weft_follower_stats_span_ns(const struct weft_follower *follower);

/* Returns the newest model, valid until the next refresh that finds something; NULL: there is none yet, or it was detached. */
const struct weft_model *weft_follower_model(const struct weft_follower *follower);

/* A model that outlives later refreshes. */
struct weft_followed_model {
	struct weft_model *model; /* NULL: the options asked for the trace only */
	struct weft_trace
	    *trace; /* a caller that closes it earlier sets it to NULL; do not read it after weft_followed_model_destroy() */
	bool has_checkpoint; /* the value for weft_model_options.knows_pending */
	struct weft_followed_model_private *priv;
};

/* Passes the newest model and its trace to the caller, which frees them with weft_followed_model_destroy(); any thread may use
 * them.  The follower has no model until it finds something.  NULL: already detached, or out of memory. */
struct weft_followed_model *weft_follower_detach(struct weft_follower *follower);
void weft_followed_model_destroy(struct weft_followed_model *followed); /* accepts NULL */

/* Writes the trace's files as a ring would have them that has overwritten everything before the window and has a state dump; of a
 * joined trace (followers.h) one folder for each part.  Works as weft_trace_save(), for traces that can be followed. */
int weft_followed_model_save(
    const struct weft_followed_model *followed, weft_trace_file_fn *file, void *ctx, struct weft_error *err);

/* Sets the minimum length of later windows; it holds once enough events have come. */
void weft_follower_set_window(struct weft_follower *follower, int64_t window_ns);

/* Returns the trace, for weft_trace_info() and site names; its events are those of the window. */
struct weft_trace *weft_follower_trace(const struct weft_follower *follower);

/* Returns the start of the window, since the first event that was ever read. */
int64_t weft_follower_window_start_ns(const struct weft_follower *follower);

/* Returns true if the window has half of the requested events, or will have at its rate within two seconds.  A window shorter
 * than 0.1 s has no rate. */
bool weft_follower_is_filled(const struct weft_follower *follower);

/* Returns how long to wait after a refresh that used so much CPU time, including the work done with its model.  Events appear
 * soon, and following uses at most a fifth of a CPU.  The result is 20 ms to 400 ms. */
int64_t weft_follower_rest_ns(int64_t used_ns);

/* Returns how often all was read again because a ring was overwritten between two refreshes.  Promises pending then are lost
 * unless a state dump repeats them. */
uint64_t weft_follower_restarts(const struct weft_follower *follower);

/* Returns the number of events read so far. */
uint64_t weft_follower_events(const struct weft_follower *follower);

/* Returns the same, with the events before the last restart. */
uint64_t weft_follower_all_events(const struct weft_follower *follower);

/* Returns for how long events were overwritten before they were read: the sum over all restarts of the longest time that a thread
 * lost.  Needs an observer. */
int64_t weft_follower_unread_ns(const struct weft_follower *follower);

/* Returns the facts that hold after all events that were read; NULL: nothing was read yet, or the trace is read again as a whole.
 * Valid until the next refresh or skip. */
const struct weft_live_state *weft_follower_live_state(const struct weft_follower *follower);

/* Returns the name of a stream of the live state and of the observer. */
struct weft_str weft_follower_stream_name(const struct weft_follower *follower, uint16_t stream);

#endif
