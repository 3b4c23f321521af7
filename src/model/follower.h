/* follower.h: keeps a model of a trace that a program still writes; a refresh reads only new events.
 *
 *	weft_follower_open(&f, path, NULL, &err);
 *	// for example every 100 ms:
 *	if (weft_follower_refresh(f, &err) > 0)
 *		... weft_follower_model(f) is a new model; the previous one is freed
 *
 * The model covers a *window*: the newest events, and older facts that are in force when the window starts, such as pending
 * promises, awaits, labels and counters.  A ring that has overwritten older events and has a state dump contains the same facts,
 * so every query on models works.  Promises that ended before the window are in no model.  Statistics of all promises that ever
 * existed, which rules need, count each promise when it leaves the live state (running_stats.h).
 *
 * Times count from the first event that was ever read, and ids are those of the trace.  The numbers of promises differ between
 * models.
 *
 * A trace that cannot be followed (a single file, or another format) is read again as a whole whenever it has changed.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWER_H
#define WEFT_MODEL_FOLLOWER_H

#include "model/live_state.h"
#include "model/model.h"
#include "model/running_stats.h"

struct weft_follower;

/* A picture of up to twice this number of events can be redrawn several times a second.  Viewers show a window of this size
 * while a program writes a larger trace. */
#define WEFT_FOLLOWER_WINDOW_EVENTS 250000

struct weft_follower_options {
	struct weft_model_options model;
	/* minimum length of the window; its maximum length is twice that, plus the time of a refresh; 0 for a window of the
	 * events since the last refresh */
	int64_t window_ns;
	uint64_t window_events; /* maximum number of events of a window, if that makes it shorter; 0 for no limit */
	/* For pictures: the times of the model count from the start of the window, and the checkpoint has that time.  A window
	 * that would pass within a second has only a fifth of window_events. */
	bool begins_at_window;
	/* At first, weft_follower_refresh_newest() shows up to this number of events completely, if two windows have fewer
	 * events. */
	uint64_t first_events;
	bool makes_no_model; /* true to open the trace without building a model */
	/* queries that the caller owns; counted again after each refresh that finds new events */
	struct weft_running_stats *stats;
	size_t stats_count;
	/* NULL, or an observer that receives each end of a promise and each run once, whatever the window is, even if a ring
	 * was overwritten between two refreshes.  Owned by the caller. */
	const struct weft_live_observer *observer;
};

/* Creates a follower without reading anything; the path need not exist yet.  Free it with weft_follower_close().  `options` may
 * be NULL.  WEFT_ENOMEM. */
int weft_follower_open(
    struct weft_follower **out, const char *path, const struct weft_follower_options *options, struct weft_error *err);
void weft_follower_close(struct weft_follower *follower); /* accepts NULL */

/* Returns 1 if there is a new model, 0 if nothing has changed, or an error of weft_trace_open() or weft_model_build(); after an
 * error the previous model stays valid.  Time and memory are linear in the number of events of the window, of pending promises
 * and of new events.  The first refresh reads the whole trace and builds a model of the whole trace.  A refresh that is too
 * late for a ring reads the whole trace again, but builds a model of only one window. */
int weft_follower_refresh(struct weft_follower *follower, struct weft_error *err);

/* Refreshes the model for a caller that shows only the window: after a long first read, the window covers the events that came
 * meanwhile. */
int weft_follower_refresh_newest(struct weft_follower *follower, struct weft_error *err);

/* Applies new events without building a model; returns 1 if there were new events, 0 if there were none or if there was no
 * refresh yet.  If more events follow the window's start than a window has, the next window starts at the present end.
 * Therefore a later model is small even if many events came. */
int weft_follower_skip(struct weft_follower *follower, struct weft_error *err);

/* Makes the next refresh build a model even if nothing has changed, because waiting times have grown. */
void weft_follower_mark_stale(struct weft_follower *follower);

/* Returns the requests that the program made by weft_snapshot(), also those before the window: the newest 64, the oldest first.
 * The requests are valid until the next refresh or skip.  Returns NULL if the whole trace is read again at each refresh: then
 * the events of the trace have the requests. */
const struct weft_event *weft_follower_snapshots(const struct weft_follower *follower, size_t *count);

/* Returns how far the statistics reach back from the last event; -1 if they do not count, because the whole trace is read again
 * at each refresh. */
int64_t weft_follower_stats_span_ns(const struct weft_follower *follower);

/* Returns the newest model, which is valid until the next refresh that finds new events; NULL if there is none yet or it was
 * detached. */
const struct weft_model *weft_follower_model(const struct weft_follower *follower);

/* A model that stays valid after later refreshes. */
struct weft_followed_model {
	struct weft_model *model; /* the model; NULL if the options asked only for the trace */
	struct weft_trace
	    /* the trace; a caller that closes it earlier sets this field to NULL; invalid after
	     * weft_followed_model_destroy() */
	    *trace;
	bool has_checkpoint; /* the value for weft_model_options.knows_pending */
	struct weft_followed_model_private *priv;
};

/* Passes the newest model and its trace to the caller, which frees them with weft_followed_model_destroy(); any thread may use
 * them.  The follower then has no model until a refresh finds new events.  Returns NULL if the model was already detached, or
 * when out of memory. */
struct weft_followed_model *weft_follower_detach(struct weft_follower *follower);
void weft_followed_model_destroy(struct weft_followed_model *followed); /* accepts NULL */

/* Writes the files of the trace as a ring would have them that has overwritten everything before the window and has a state
 * dump.  For a joined trace (followers.h) it writes one folder for each part.  Works like weft_trace_save(), for traces that
 * can be followed. */
int weft_followed_model_save(
    const struct weft_followed_model *followed, weft_trace_file_fn *file, void *ctx, struct weft_error *err);

/* Sets the minimum length of later windows; it takes effect once enough events have come. */
void weft_follower_set_window(struct weft_follower *follower, int64_t window_ns);

/* Returns the trace, for weft_trace_info() and the names of sites; the trace has the events of the window. */
struct weft_trace *weft_follower_trace(const struct weft_follower *follower);

/* Returns the start of the window, in ns since the first event that was ever read. */
int64_t weft_follower_window_start_ns(const struct weft_follower *follower);

/* Returns true if the window has half of the requested number of events, or will have that number within two seconds at its
 * event rate.  A window that is shorter than 0.1 s has no event rate. */
bool weft_follower_is_filled(const struct weft_follower *follower);

/* Returns how long to wait after a refresh that used `used_ns` of CPU time, including the work that was done with its model.
 * With this wait, events appear soon, and following uses at most a fifth of a CPU.  The result is 20 ms to 400 ms. */
int64_t weft_follower_rest_ns(int64_t used_ns);

/* Returns how often the whole trace was read again because a ring was overwritten between two refreshes (a restart).  Promises
 * that are pending at a restart are lost unless a state dump repeats them. */
uint64_t weft_follower_restarts(const struct weft_follower *follower);

/* Returns the number of events read since the last restart. */
uint64_t weft_follower_events(const struct weft_follower *follower);

/* Returns the number of events read so far, including the events before the last restart. */
uint64_t weft_follower_all_events(const struct weft_follower *follower);

/* Returns for how long events were overwritten before they were read: the sum, over all restarts, of the longest time that a
 * thread lost.  Needs an observer. */
int64_t weft_follower_unread_ns(const struct weft_follower *follower);

/* Returns the facts in force after all events that were read; NULL if nothing was read yet, or if the whole trace is read again
 * at each refresh.  The facts are valid until the next refresh or skip. */
const struct weft_live_state *weft_follower_live_state(const struct weft_follower *follower);

/* Returns the name of a stream, given the number that the live state and the observer use. */
struct weft_str weft_follower_stream_name(const struct weft_follower *follower, uint16_t stream);

#endif
