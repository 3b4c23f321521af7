/* follower.h: the model of a trace that a program still writes, at a cost of what came since.
 *
 *	weft_follower_open(&f, path, NULL, &err);
 *	// every 100 ms, say:
 *	if (weft_follower_look(f, &err) > 0)
 *		... weft_follower_model(f) is a newer one; the one before is gone
 *
 * The model is of a *window*, the newest events, and of whatever is older and still the case when the window begins: who is
 * pending, for whom they wait, their names, what counters show.  That is what a ring would have that forgot the rest and was told
 * again what is pending; so every question about a model can be asked.  What is older and over is in no model any more.
 * What is asked of all that ever was, as a rule does, is counted as promises leave (tally.h).
 *
 * Times are since the first event that was ever read, ids are as recorded; numbers of promises are others in each model.
 *
 * A trace that cannot be followed this way (a file, another format) is read anew whenever it has changed.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWER_H
#define WEFT_MODEL_FOLLOWER_H

#include "model/model.h"
#include "model/tally.h"

struct weft_follower;

/* A picture of so many events, or twice as many, is drawn again several times a second; a window of them is what a viewer shows
 * of a larger trace while it is recorded. */
#define WEFT_FOLLOWER_SEEN 250000

struct weft_follower_options {
	struct weft_model_options model;
	int64_t window_ns; /* the window is at least so long, and at most as long again and a look; 0: what came since a look */
	uint64_t window_events; /* ... or has so many events, if that is shorter; 0: however many */
	/* For a picture: times of the model are since the window's begin, what holds then is told then, and a window of events
	 * that would come within a second has a fifth of them. */
	bool begins_at_window;
	/* weft_follower_look_newest() shows so many as a whole at first, if that is more than two windows have. */
	uint64_t first_events;
	bool makes_no_model;        /* the trace alone is wanted */
	struct weft_tally *tallies; /* what is asked; the caller's, counted anew after each look that finds something */
	size_t tally_count;
};

/* Nothing is read yet, and nothing need be there.  The follower is the caller's, to be given to weft_follower_close().
 * `options` may be NULL.  WEFT_ENOMEM. */
int weft_follower_open(
    struct weft_follower **out, const char *path, const struct weft_follower_options *options, struct weft_error *err);
void weft_follower_close(struct weft_follower *follower); /* accepts NULL */

/* Returns 1: there is another model; 0: nothing has changed; or why it cannot be read now, as weft_trace_open() and
 * weft_model_build() do: the model of before stays.  Time and memory: linear in the window, in what is pending, and in what came
 * since the last look.  The first look reads all that is there, and its model is of that; one that came too late for a ring reads
 * all, and its model is of a window. */
int weft_follower_look(struct weft_follower *follower, struct weft_error *err);

/* The same for who shows the window alone: where all was read, which takes long, the window is what came meanwhile. */
int weft_follower_look_newest(struct weft_follower *follower, struct weft_error *err);

/* As a look that makes no model: 1: something was new.  If there is more behind the window's begin than a window has, the next
 * window begins here: so that a model is of few events, though much has come since the last.  0 before the first look. */
int weft_follower_skip(struct weft_follower *follower, struct weft_error *err);

/* The next look makes a model though nothing has changed: who waits has waited for longer by then. */
void weft_follower_renew(struct weft_follower *follower);

/* What the program asked for by weft_snapshot(), also what came before the window: the newest 64, oldest first, until the next
 * look or skip.  NULL: the trace is read anew as a whole, and its events say it. */
const struct weft_event *weft_follower_snapshots(const struct weft_follower *follower, size_t *count);

/* How far back the tallies count, from the last event; -1: they do not, since the trace is read anew as a whole. */
int64_t weft_follower_counted_ns(const struct weft_follower *follower);

/* The newest; NULL: none yet, or taken.  It lives until the next look that finds something. */
const struct weft_model *weft_follower_model(const struct weft_follower *follower);

/* A model that outlives the next looks. */
struct weft_followed {
	struct weft_model *model; /* NULL: the trace alone was wanted */
	struct weft_trace *trace; /* who closes it earlier sets it to NULL; it is not to be read after weft_followed_destroy() */
	bool is_told;             /* weft_model_options.knows_pending is true of it */
	struct weft_followed_private *priv;
};

/* The newest model and its trace become the caller's, to be given to weft_followed_destroy(), both in any OS thread; the follower
 * has none until it finds something.  NULL: they were taken before, or there is no memory. */
struct weft_followed *weft_follower_take(struct weft_follower *follower);
void weft_followed_destroy(struct weft_followed *followed); /* accepts NULL */

/* Gives its trace's files as those of a ring that has forgotten what is older than the window, and was told again what still
 * holds; of several traces (followers.h) a folder for each.  As weft_trace_save(), of traces that can be followed. */
int weft_followed_save(const struct weft_followed *followed, weft_trace_file_fn *file, void *ctx, struct weft_error *err);

/* Later windows are at least so long, once so much has come. */
void weft_follower_set_window(struct weft_follower *follower, int64_t window_ns);

/* Its trace, for weft_trace_info() and names of places; its events are those of the window. */
struct weft_trace *weft_follower_trace(const struct weft_follower *follower);

/* When the window begins, since the first event that was ever read. */
int64_t weft_follower_window(const struct weft_follower *follower);

/* Whether the window has half as many events as were asked for, or will within two seconds at its pace, if it is a
 * tenth of a second long. */
bool weft_follower_is_filled(const struct weft_follower *follower);

/* How long to rest after a look that took so much of a processor with all that was done with it, so that an event is shown soon
 * and following takes a fifth of a processor at most: 20 ms to 400 ms. */
int64_t weft_follower_rest_ns(int64_t used_ns);

/* How often so much was overwritten between two looks that all was read anew: what was pending then and not told again is lost.
 */
uint64_t weft_follower_restarts(const struct weft_follower *follower);

/* How many events were read in all. */
uint64_t weft_follower_events(const struct weft_follower *follower);

#endif
