/* watch.h: does somebody still want the answer?  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_WATCH_H
#define WEFT_ANALYSIS_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* One long computation.  It has stages; in each of them the percentage goes from `from` to `to`. */
struct weft__watch {
	bool (*go_on)(void *ctx, unsigned percent); /* NULL: nobody calls it off */
	void *ctx;
	unsigned from, to, last; /* it never goes back */
	bool called_off;
};

/* Loops ask once in so many turns: at 100 ns a turn, every 3 ms. */
#define WEFT__WATCH_TURNS 32768u

/* Asks now. */
static inline bool weft__watch_ask(struct weft__watch *watch, unsigned percent)
{
	watch->last = percent > watch->last ? percent : watch->last;
	if (!watch->called_off && watch->go_on && !watch->go_on(watch->ctx, watch->last))
		watch->called_off = true;
	return !watch->called_off;
}

/* Whether a loop is to go on, in turn `done` of `all`; it asks now and then only.  `watch` may be NULL. */
static inline bool weft__watch_goes_on(struct weft__watch *watch, size_t done, size_t all)
{
	if (!watch)
		return true;
	if (done % WEFT__WATCH_TURNS)
		return !watch->called_off;
	return weft__watch_ask(watch, watch->from + (unsigned)((watch->to - watch->from) * done / (all + 1)));
}

/* A stage begins where the one before it ended. */
static inline void weft__watch_stage(struct weft__watch *watch, unsigned to)
{
	watch->from = watch->to;
	watch->to = to;
}

#endif
