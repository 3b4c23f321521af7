/* ticks.h: chooses the times of the grid's and the ruler's lines, and formats their texts.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_TICKS_H
#define WEFT_DRAW_TICKS_H

#include "draw/frame.h"

struct weft__ticks {
	const struct weft_model *model;
	struct weft_clock clock;
	int64_t shift_ns;     /* time of day at trace time 0, or 0; ticks are where time + shift_ns is a multiple of step_ns */
	int64_t step_ns;      /* interval between ticks with a text */
	int64_t minor_ns;     /* interval between all ticks, a divisor of step_ns */
	int64_t base_ns;      /* time from which the texts of ticks count, if full times would be too long */
	int64_t base_unit_ns; /* unit of base_ns, which is a multiple of this unit */
	bool has_base;
};

/* Chooses the ticks with the smallest step for which there is space. */
struct weft__ticks weft__ticks_choose(struct weft__frame *f);

/* Returns the shortest round duration that is not below `ns`: 1, 2, 5, 10 ... ns, then divisors of minutes, hours and days. */
int64_t weft__round_up_ns(int64_t ns);

/* Returns the time of the first tick at or after a time, for ticks step_ns apart. */
int64_t weft__tick_from(const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* Returns the time of a tick or, if it is within folded sleep, the time of the first tick after the sleep. */
int64_t weft__tick_past_lull(const struct weft_view *view, const struct weft__ticks *t, int64_t step_ns, int64_t time_ns);

/* Writes the text of a tick. */
size_t weft__tick_print(const struct weft__ticks *t, char *buf, size_t size, int64_t time_ns);

/* Writes the base time of the ticks, or the date of a time of day; returns 0 if neither is needed. */
size_t weft__ticks_print_base(const struct weft__ticks *t, char *buf, size_t size);

#endif
