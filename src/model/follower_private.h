/* follower_private.h: declares functions of a follower that followers.c uses.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWER_PRIVATE_H
#define WEFT_MODEL_FOLLOWER_PRIVATE_H

#include "model/follower.h"

/* Compute the number of events of a window from the event rate, and whether a window has enough events to be shown. */
uint64_t weft__window_events(const struct weft_follower_options *options, uint64_t events, int64_t since_ns);
bool weft__window_is_filled(uint64_t most, uint64_t events, int64_t since_ns);

/* Sets whether weft__follower_move_window() decides when windows start (is_part), or the follower itself. */
void weft__follower_set_part(struct weft_follower *follower, bool is_part, bool makes_no_model);

/* Returns true if a refresh would find new events. */
bool weft__follower_has_news(const struct weft_follower *follower);

struct weft__read_progress {
	bool is_known; /* false if the whole trace is read again at each refresh */
	int64_t first_ns, last_ns;
	/* number of events since the start of the window; number of events since the start of the next window */
	uint64_t in_window, in_next;
};
struct weft__read_progress weft__follower_read_progress(const struct weft_follower *follower);

/* Replaces the window's start by the next start, and saves a new next start at the end of what was read.  Returns false, with
 * nothing changed, when out of memory. */
bool weft__follower_move_window(struct weft_follower *follower);

/* Starts the window at the end of what was read; returns false, with nothing changed, when out of memory. */
bool weft__follower_restart_window(struct weft_follower *follower);

/* Returns the start of the window by the trace's own clock; false if the model covers the whole trace. */
bool weft__followed_window_start(const struct weft_followed_model *followed, int64_t *begin_ns);

/* Moves the checkpoint of the model, if it has one, to a time of the trace's own clock, or to its first event if that is later.
 * `trace` is the trace of the model, which must be at its start.  Fails as weft_trace_next() does. */
int weft__followed_move_checkpoint(struct weft_followed_model *followed, struct weft_trace *trace, int64_t begin_ns);

/* Combines several models into one, which then owns the parts and their array; the caller sets model and trace.  Returns NULL
 * when out of memory; then the caller still owns the parts and the array. */
struct weft_followed_model *weft__followed_from_parts(struct weft_followed_model **parts, size_t count);
struct weft_followed_model *const *weft__followed_parts(const struct weft_followed_model *followed, size_t *count);

#endif
