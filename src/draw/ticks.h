/* ticks.h: the times of the grid's and ruler's lines, and their texts.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_TICKS_H
#define WEFT_DRAW_TICKS_H

#include "draw/frame.h"

struct weft__ticks {
	const struct weft_model *model;
	struct weft_clock clock;
	int64_t shift_ns;     /* ticks are where time + shift_ns is a multiple of step_ns; the wall-clock time at time 0, or 0 */
	int64_t step_ns;      /* between ticks with a text */
	int64_t minor_ns;     /* between all ticks; divides step_ns */
	int64_t base_ns;      /* if full times would be too long, they count from here */
	int64_t base_unit_ns; /* base_ns is a multiple of it */
	bool has_base;
};

/* Chooses the smallest step for which there is space. */
struct weft__ticks weft__ticks_choose(struct weft__frame *f);

/* Returns the first tick at or after a time, for ticks step_ns apart. */
int64_t weft__tick_from(const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* Returns the same tick or, if it is within folded sleep, the first one after it. */
int64_t weft__tick_past_lull(const struct weft_view *view, const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* Writes the text of a tick. */
size_t weft__tick_print(const struct weft__ticks *t, char *buf, size_t size, int64_t time_ns);

/* Writes the base time, or the day of a wall clock; returns 0 if neither is needed. */
size_t weft__ticks_print_base(const struct weft__ticks *t, char *buf, size_t size);

#endif
