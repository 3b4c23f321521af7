/* cancel_token.h: reports the progress of a long computation and lets its caller cancel it.  Private to analysis/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_CANCEL_TOKEN_H
#define WEFT_ANALYSIS_INDEX_CANCEL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* State of one long computation with several stages. */
struct weft__cancel_token {
	/* callback with the progress in percent, which returns false to cancel; NULL if the computation cannot be cancelled */
	bool (*go_on)(void *ctx, unsigned percent);
	void *ctx;
	unsigned from, to; /* percentages at the start and at the end of the current stage */
	unsigned last;     /* highest percentage that was passed to go_on */
	bool was_cancelled;
};

/* Number of iterations of a loop between two calls of go_on: 3 ms at 100 ns an iteration. */
#define WEFT__CANCEL_CHECK_ITERATIONS 32768u

/* Calls go_on now; returns false if the computation was cancelled. */
static inline bool weft__cancel_token_check(struct weft__cancel_token *cancel, unsigned percent)
{
	cancel->last = percent > cancel->last ? percent : cancel->last;
	if (!cancel->was_cancelled && cancel->go_on && !cancel->go_on(cancel->ctx, cancel->last))
		cancel->was_cancelled = true;
	return !cancel->was_cancelled;
}

/* Returns whether a loop may continue after `done` of `all` iterations; calls go_on only once in many iterations.  `cancel` may
 * be NULL. */
static inline bool weft__cancel_token_may_continue(struct weft__cancel_token *cancel, size_t done, size_t all)
{
	if (!cancel)
		return true;
	if (done % WEFT__CANCEL_CHECK_ITERATIONS)
		return !cancel->was_cancelled;
	return weft__cancel_token_check(cancel, cancel->from + (unsigned)((cancel->to - cancel->from) * done / (all + 1)));
}

/* Begins a stage that ends at `to` percent; it starts at the percentage where the previous stage ended. */
static inline void weft__cancel_token_begin_stage(struct weft__cancel_token *cancel, unsigned to)
{
	cancel->from = cancel->to;
	cancel->to = to;
}

#endif
