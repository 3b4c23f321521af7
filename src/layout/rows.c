/* rows.c: keeps the times of rows in a tree with 8 children for each node, stored in arrays, which grows at its right end.
 * SPDX-License-Identifier: ISC */
#include "layout/rows.h"

#define NONE UINT32_MAX

void weft__rows_clear(struct weft__rows *rows)
{
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++)
		rows->level[l].count = 0;
	rows->root = 0;
}

void weft__rows_finish(struct weft__rows *rows)
{
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++)
		weft_vec_free(&rows->level[l]);
}

/* Returns a bit for each of the 8 items below item i of a level, set if the item is at most `time`.  The function has no branch,
 * because a branch predictor would often be wrong here. */
static inline unsigned free_below(const struct weft__rows *rows, int level, size_t i, int64_t time)
{
	const int64_t *t = rows->level[level - 1].items + i * WEFT__ROWS_FAN;
	const size_t count = rows->level[level - 1].count - i * WEFT__ROWS_FAN;
	unsigned bits = 0;
	for (unsigned k = 0; k < WEFT__ROWS_FAN; k++)
		bits |= (unsigned)(t[k] <= time) << k;
	return count < WEFT__ROWS_FAN ? bits & ((1u << count) - 1) : bits;
}

uint32_t weft__rows_find_free(const struct weft__rows *rows, uint32_t row, int64_t time)
{
	size_t i = row;
	int l = rows->root;
	if (row >= weft__rows_count(rows) || rows->level[l].items[0] > time)
		return NONE;
	for (l = row == 0 ? l : 0; row > 0;) {
		unsigned bits = free_below(rows, l + 1, i / WEFT__ROWS_FAN, time) >> i % WEFT__ROWS_FAN;
		if (bits) {
			i += (unsigned)__builtin_ctz(bits);
			break;
		}
		i = i / WEFT__ROWS_FAN + 1;
		if (i >= rows->level[++l].count)
			return NONE;
	}
	while (l-- > 0)
		i = i * WEFT__ROWS_FAN + (unsigned)__builtin_ctz(free_below(rows, l + 1, i, time));
	return (uint32_t)i;
}

uint32_t weft__rows_find_free_block(const struct weft__rows *rows, uint32_t row, uint32_t count, int64_t time, unsigned tries)
{
	const uint32_t all = weft__rows_count(rows);
	for (; tries > 0 && row < all; tries--) {
		uint32_t first = weft__rows_find_free(rows, row, time), end;
		if (first == NONE)
			break;
		for (end = first + 1; end < all && end - first < count && rows->level[0].items[end] <= time; end++)
			continue;
		if (end - first == count || (end == all && count > 1))
			return first;
		row = end + 1;
	}
	return NONE;
}

static inline int64_t min_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns the minimum of the 8 items below item i of level l. */
static inline int64_t min_time_below(const struct weft__rows *rows, int l, size_t i)
{
	const int64_t *t = rows->level[l - 1].items + i * WEFT__ROWS_FAN;
	return min_time(
	    min_time(min_time(t[0], t[1]), min_time(t[2], t[3])), min_time(min_time(t[4], t[5]), min_time(t[6], t[7])));
}

bool weft__rows_occupy(struct weft__rows *rows, uint32_t row, int64_t time)
{
	size_t i = row;
	int64_t was = INT64_MAX; /* previous value of the item on the level below */
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++, i /= WEFT__ROWS_FAN) {
		int64_t now = time;
		if (i == rows->level[l].count) {
			int64_t *added = weft_vec_push(&rows->level[l]);
			if (!added)
				return false;
			for (size_t k = 0; k < WEFT__ROWS_FAN && i % WEFT__ROWS_FAN == 0; k++)
				added[k] = INT64_MAX;
			*added = l > 0 ? min_time_below(rows, l, i) : time;
			was = INT64_MAX;
			time = *added;
		} else {
			int64_t here = rows->level[l].items[i];
			if (l > 0 && time >= here)
				now = was == here ? min_time_below(rows, l, i) : here;
			if (now == here)
				return true;
			rows->level[l].items[i] = now;
			was = here;
			time = now;
		}
		if (rows->level[l].count == 1) {
			rows->root = l;
			return true;
		}
	}
	return true;
}
