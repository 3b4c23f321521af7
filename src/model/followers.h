/* followers.h: follows one or several live traces, given by their paths, and joins them into one model.
 *
 *	weft_followers_open(&f, &options, &err);
 *	// for example every 100 ms:
 *	if (weft_followers_refresh(f, paths, count, true, &err) > 0)
 *		... weft_followers_detach(f)
 *
 * Each trace has its own follower.  The windows of all traces start at the same time and are joined (trace/join.h), each with
 * its checkpoint.  Therefore a refresh reads only the windows, and messages between processes are seen.  Connections in the
 * windows align the clocks of several hosts.
 *
 * Traces keep their order while the paths name them, and new traces come last.  A trace is left out if its program ended before
 * the window.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWERS_H
#define WEFT_MODEL_FOLLOWERS_H

#include "model/follower.h"

struct weft_followers;

/* Creates followers without reading anything. weft_followers_stats_span_ns() stores sums over all traces in options->stats.
 * WEFT_ENOMEM.
 */
int weft_followers_open(struct weft_followers **out, const struct weft_follower_options *options, struct weft_error *err);
void weft_followers_close(struct weft_followers *followers); /* accepts NULL */

/* Refreshes the traces that the paths name, like weft_follower_refresh(); with begins_at_window or first_events, like
 * weft_follower_refresh_newest(). is_session says that the user named only the session, so that unreadable traces are noted as
 * skipped, unless all are unreadable.  Also returns WEFT_EINVAL, like weft_trace_join(), if the windows cannot be joined,
 * although the whole traces perhaps can. */
int weft_followers_refresh(
    struct weft_followers *followers, const char *const *paths, size_t count, bool is_session, struct weft_error *err);

/* Applies new events of the traces of the last refresh, like weft_follower_skip(). */
int weft_followers_skip(struct weft_followers *followers, struct weft_error *err);

/* Passes the newest model to the caller, which frees it with weft_followed_model_destroy().  Returns NULL if the model was
 * already detached, or when out of memory. */
struct weft_followed_model *weft_followers_detach(struct weft_followers *followers);

/* The following functions work like those of one follower, for the newest refresh. */
void weft_followers_mark_stale(struct weft_followers *followers);
void weft_followers_set_window(struct weft_followers *followers, int64_t window_ns);
int64_t weft_followers_window_start_ns(const struct weft_followers *followers);
bool weft_followers_is_filled(const struct weft_followers *followers);
/* returns true if at least one trace is followed, false if all are read again as a whole */
bool weft_followers_are_incremental(const struct weft_followers *followers);
uint64_t weft_followers_restarts(const struct weft_followers *followers);
uint64_t weft_followers_events(const struct weft_followers *followers);

/* Adds up the statistics of the options over all traces, and returns how far back they reach; see
 * weft_follower_stats_span_ns(). */
int64_t weft_followers_stats_span_ns(struct weft_followers *followers);

/* Returns a number that changes when promise ids change their meaning, because a trace was added or removed. */
unsigned weft_followers_generation(const struct weft_followers *followers);

#endif
