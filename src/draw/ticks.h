/* ticks.h: where the grid and the ruler have their lines, and what is written there.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_TICKS_H
#define WEFT_DRAW_TICKS_H

#include "draw/frame.h"

struct weft__ticks {
	const struct weft_model *model;
	struct weft_clock clock;
	int64_t shift_ns; /* a tick is where time + shift_ns is a multiple of step_ns: 0, or what the wall clock said at time 0 */
	int64_t step_ns;  /* between ticks that have their time */
	int64_t minor_ns; /* between all; divides step_ns */
	int64_t base_ns;  /* where times would be too long, they count from here */
	int64_t base_unit_ns; /* what that is a multiple of */
	bool has_base;
};

/* The finest for which there is room. */
struct weft__ticks weft__ticks_choose(struct weft__frame *f);

/* The first tick at or after a time, of those that are `step_ns` apart. */
int64_t weft__tick_from(const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* The same tick, or, where that is within folded sleep, the first one after it. */
int64_t weft__tick_past_lull(const struct weft_view *view, const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* What is written at a tick. */
size_t weft__tick_print(const struct weft__ticks *t, char *buf, size_t size, int64_t time_ns);

/* Where times count from if not from the start, or the day if the clock tells it; 0 if neither needs saying. */
size_t weft__ticks_print_base(const struct weft__ticks *t, char *buf, size_t size);

#endif
