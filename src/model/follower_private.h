/* follower_private.h: what followers.c needs of each follower.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_FOLLOWER_PRIVATE_H
#define WEFT_MODEL_FOLLOWER_PRIVATE_H

#include "model/follower.h"

/* How many events a window of these options has, at the pace at which it got so many; whether it has enough to be shown. */
uint64_t weft__window_events(const struct weft_follower_options *options, uint64_t events, int64_t since_ns);
bool weft__window_is_filled(uint64_t most, uint64_t events, int64_t since_ns);

/* Whether its windows begin when weft__follower_move() says so, or by themselves. */
void weft__follower_be_part(struct weft_follower *follower, bool is_part, bool makes_no_model);

/* Whether a look would find something. */
bool weft__follower_is_new(const struct weft_follower *follower);

struct weft__reading {
	bool is_known; /* it is followed; else it is read anew as a whole */
	int64_t first_ns, last_ns;
	uint64_t in_window, in_next; /* events behind the window's begin, and behind that of the next one */
};
struct weft__reading weft__follower_reading(const struct weft_follower *follower);

/* The next window takes over, and one after that will begin at the end of what was read; false: there is no memory, and nothing
 * has changed. */
bool weft__follower_move(struct weft_follower *follower);

/* The window begins at the end of what was read; false: likewise. */
bool weft__follower_begin_here(struct weft_follower *follower);

/* When its window begins, by its own clock; false: it is all that there is. */
bool weft__followed_window(const struct weft_followed *followed, int64_t *begin_ns);

/* What holds is told at that time of its own, or at its first event's; of one that is told.  `trace` is its, and to be read from
 * its begin.  What weft_trace_next() fails of. */
int weft__followed_tell_at(struct weft_followed *followed, struct weft_trace *trace, int64_t begin_ns);

/* Several as one, which owns the parts and their array; model and trace are to be set.  NULL: there is no memory, and both stay
 * the caller's. */
struct weft_followed *weft__followed_of_parts(struct weft_followed **parts, size_t count);
struct weft_followed *const *weft__followed_parts(const struct weft_followed *followed, size_t *count);

#endif
