/* rows.h: knows the time at which each row of a band becomes free, and finds free rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_ROWS_H
#define WEFT_LAYOUT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

#define WEFT__ROWS_FAN 8u
#define WEFT__ROWS_LEVELS 11 /* number of levels, because 8^11 is more than 2^32 */

/* Tree of minima: level[0] has the time from which each row is free, and an item of a higher level is the minimum of 8 items of
 * the level below. */
struct weft__rows {
	WEFT_VEC(int64_t) level[WEFT__ROWS_LEVELS];
	int root; /* level that has a single item */
};

void weft__rows_clear(struct weft__rows *rows);
void weft__rows_finish(struct weft__rows *rows);

/* Returns the first row from `row` on that is free at `time`, or UINT32_MAX.  Logarithmic. */
uint32_t weft__rows_find_free(const struct weft__rows *rows, uint32_t row, int64_t time);

/* Returns the first of `count` consecutive rows that are all free at `time`; the last of these rows may be new rows.  Examines
 * at most `tries` sequences of free rows, and returns UINT32_MAX if none is long enough. */
uint32_t weft__rows_find_free_block(const struct weft__rows *rows, uint32_t row, uint32_t count, int64_t time, unsigned tries);

/* Marks a row as taken until `time`; the row may be the one after the last row.  Returns false without memory. */
bool weft__rows_occupy(struct weft__rows *rows, uint32_t row, int64_t time);

static inline uint32_t weft__rows_count(const struct weft__rows *rows)
{
	return (uint32_t)rows->level[0].count;
}

#endif
