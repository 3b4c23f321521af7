/* followers.h: follows the traces that paths name, one or several, as one model.
 *
 *	weft_followers_open(&f, &options, &err);
 *	// for example every 100 ms:
 *	if (weft_followers_refresh(f, paths, count, true, &err) > 0)
 *		... weft_followers_detach(f)
 *
 * Each trace has a follower of its own.  All windows start together and are joined (trace/join.h), each with its checkpoint.  So
 * a refresh costs only the windows, and messages between processes are seen.  Connections in the windows align the clocks of
 * several hosts.
 *
 * Traces keep their order while the paths name them, and new traces come last.  A trace is left out if its program ended before
 *the window. SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWERS_H
#define WEFT_MODEL_FOLLOWERS_H

#include "model/follower.h"

struct weft_followers;

/* Creates followers; reads nothing.  weft_followers_stats_span_ns() stores sums over all traces in options->stats.  WEFT_ENOMEM.
 */
int weft_followers_open(struct weft_followers **out, const struct weft_follower_options *options, struct weft_error *err);
void weft_followers_close(struct weft_followers *followers); /* accepts NULL */

/* Refreshes the traces that the paths name, as weft_follower_refresh(); with begins_at_window or first_events, as
 * weft_follower_refresh_newest(). is_session: the user named the session only, so unreadable traces are noted as skipped, unless
 * all are unreadable.  Also WEFT_EINVAL, as weft_trace_join(): the windows cannot be joined, but the whole traces perhaps can. */
int weft_followers_refresh(
    struct weft_followers *followers, const char *const *paths, size_t count, bool is_session, struct weft_error *err);

/* Applies new events of the traces of the last refresh, as weft_follower_skip(). */
int weft_followers_skip(struct weft_followers *followers, struct weft_error *err);

/* Passes the newest model to the caller, which frees it with weft_followed_model_destroy().  NULL: already detached, or out of
 * memory. */
struct weft_followed_model *weft_followers_detach(struct weft_followers *followers);

/* Same as the functions of one follower, for the newest refresh. */
void weft_followers_mark_stale(struct weft_followers *followers);
void weft_followers_set_window(struct weft_followers *followers, int64_t window_ns);
int64_t weft_followers_window_start_ns(const struct weft_followers *followers);
bool weft_followers_is_filled(const struct weft_followers *followers);
/* true if at least one is followed; else all are read again as a whole */
bool weft_followers_are_incremental(const struct weft_followers *followers);
uint64_t weft_followers_restarts(const struct weft_followers *followers);
uint64_t weft_followers_events(const struct weft_followers *followers);

/* Returns how far back the statistics of the options count, after adding them up; as weft_follower_stats_span_ns(). */
int64_t weft_followers_stats_span_ns(struct weft_followers *followers);

/* Returns a number that changes when promise ids change their meaning, because a trace came or went. */
unsigned weft_followers_generation(const struct weft_followers *followers);

#endif
