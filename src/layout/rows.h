/* rows.h: when each row of a band is free again, and which are free now.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_ROWS_H
#define WEFT_LAYOUT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define WEFT__ROWS_FAN 8u
#define WEFT__ROWS_LEVELS 11 /* 8^11 are more than 2^32 */

/* level[0] has the time from which each row is free; an item of a level above has the least of 8 below. */
struct weft__rows {
	WEFT_VEC(int64_t) level[WEFT__ROWS_LEVELS];
	int root; /* the level of one item */
};

void weft__rows_clear(struct weft__rows *rows);
void weft__rows_finish(struct weft__rows *rows);

/* The first row from `row` on that is free at `time`; UINT32_MAX if none is.  Logarithmic. */
uint32_t weft__rows_first(const struct weft__rows *rows, uint32_t row, int64_t time);

/* The first of `count` rows, one below the other, that are all free at `time`; the last of them may be new ones.  At most `tries`
 * stretches of free rows are looked at; UINT32_MAX if none of them will do. */
uint32_t weft__rows_first_of(const struct weft__rows *rows, uint32_t row, uint32_t count, int64_t time, unsigned tries);

/* Says that a row, at most one past the last, is taken until `time`; false when out of memory. */
bool weft__rows_take(struct weft__rows *rows, uint32_t row, int64_t time);

static inline uint32_t weft__rows_count(const struct weft__rows *rows)
{
	return (uint32_t)rows->level[0].count;
}

#endif
