/* followers.h: whatever traces paths name by now, followed as one: follower.h for one, and for several.
 *
 *	weft_followers_open(&f, &options, &err);
 *	// every 100 ms, say:
 *	if (weft_followers_look(f, paths, count, true, &err) > 0)
 *		... weft_followers_take(f)
 *
 * Of several traces each has a follower.  Their windows begin together, and are joined (trace/join.h) with what still holds in
 * front of each: so a look costs what the windows have, and what goes between processes is seen.  Clocks of several hosts are
 * tied by what the windows have of their connections.
 *
 * Traces keep their places among the others as long as the paths name them, new ones come behind them; who has ended before the
 * window begins is left out.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWERS_H
#define WEFT_MODEL_FOLLOWERS_H

#include "model/follower.h"

struct weft_followers;

/* Nothing is read yet.  The tallies of the options are sums over all traces.  WEFT_ENOMEM. */
int weft_followers_open(struct weft_followers **out, const struct weft_follower_options *options, struct weft_error *err);
void weft_followers_close(struct weft_followers *followers); /* accepts NULL */

/* As weft_follower_look(), and for pictures or with first_events weft_follower_look_newest(), of the traces that the paths name.
 * Of a session, whose traces nobody named one by one, those that cannot be read are left out and noted as skipped, unless that
 * are all.  Also WEFT_EINVAL, as weft_trace_join(): the windows alone cannot be joined, all that there is may be. */
int weft_followers_look(
    struct weft_followers *followers, const char *const *paths, size_t count, bool is_session, struct weft_error *err);

/* As weft_follower_skip(), of the traces of the last look. */
int weft_followers_skip(struct weft_followers *followers, struct weft_error *err);

/* The newest of a look that found something, to be given to weft_followed_destroy().  NULL: it was taken, or there is no memory.
 */
struct weft_followed *weft_followers_take(struct weft_followers *followers);

/* Of the newest look: as of one follower. */
void weft_followers_renew(struct weft_followers *followers);
void weft_followers_set_window(struct weft_followers *followers, int64_t window_ns);
int64_t weft_followers_window(const struct weft_followers *followers);
bool weft_followers_is_filled(const struct weft_followers *followers);
bool weft_followers_are_followed(const struct weft_followers *followers); /* one at least; else all are read anew */
uint64_t weft_followers_restarts(const struct weft_followers *followers);
uint64_t weft_followers_events(const struct weft_followers *followers);

/* How far back the tallies of the options count, which it sums up; as weft_follower_counted_ns(). */
int64_t weft_followers_counted_ns(struct weft_followers *followers);

/* Another number once ids are others: a trace came or went. */
unsigned weft_followers_generation(const struct weft_followers *followers);

#endif
