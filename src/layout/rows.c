/* rows.c: a tree of fan-out 16 in arrays, which grows at its right end.  SPDX-License-Identifier: ISC */
#include "layout/rows.h"

#define NONE UINT32_MAX

void weft__rows_clear(struct weft__rows *rows)
{
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++)
		rows->level[l].count = 0;
}

void weft__rows_finish(struct weft__rows *rows)
{
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++)
		weft_vec_free(&rows->level[l]);
}

uint32_t weft__rows_first(const struct weft__rows *rows, uint32_t row, int64_t time)
{
	size_t i = row;
	int l = 0;
	for (;;) {
		size_t end = (i | (WEFT__ROWS_FAN - 1)) + 1;
		if (end > rows->level[l].count)
			end = rows->level[l].count;
		while (i < end && rows->level[l].items[i] > time)
			i++;
		if (i < end)
			break;
		i = (i + WEFT__ROWS_FAN - 1) / WEFT__ROWS_FAN;
		if (++l == WEFT__ROWS_LEVELS || i >= rows->level[l].count)
			return NONE;
	}
	while (l-- > 0)
		for (i *= WEFT__ROWS_FAN; rows->level[l].items[i] > time;)
			i++;
	return (uint32_t)i;
}

uint32_t weft__rows_last(const struct weft__rows *rows, uint32_t row, int64_t time)
{
	if (rows->level[0].count == 0)
		return NONE;
	size_t i = row < rows->level[0].count ? row : rows->level[0].count - 1;
	int l = 0;
	for (;;) {
		size_t begin = i & ~(size_t)(WEFT__ROWS_FAN - 1);
		size_t end = i + 1;
		while (end > begin && rows->level[l].items[end - 1] > time)
			end--;
		if (end > begin) {
			i = end - 1;
			break;
		}
		if (begin == 0 || ++l == WEFT__ROWS_LEVELS)
			return NONE;
		i = begin / WEFT__ROWS_FAN - 1;
	}
	while (l-- > 0) {
		size_t end = (i + 1) * WEFT__ROWS_FAN;
		for (i = (end > rows->level[l].count ? rows->level[l].count : end) - 1; rows->level[l].items[i] > time;)
			i--;
	}
	return (uint32_t)i;
}

bool weft__rows_take(struct weft__rows *rows, uint32_t row, int64_t time)
{
	size_t i = row;
	for (int l = 0; l < WEFT__ROWS_LEVELS; l++, i /= WEFT__ROWS_FAN) {
		if (i == rows->level[l].count) {
			int64_t *added = weft_vec_push(&rows->level[l]);
			if (!added)
				return false;
			*added = time;
		} else {
			int64_t was = rows->level[l].items[i];
			int64_t least = time;
			if (l > 0) {
				size_t from = i * WEFT__ROWS_FAN;
				size_t to = from + WEFT__ROWS_FAN;
				if (to > rows->level[l - 1].count)
					to = rows->level[l - 1].count;
				least = rows->level[l - 1].items[from];
				while (++from < to)
					if (rows->level[l - 1].items[from] < least)
						least = rows->level[l - 1].items[from];
			}
			if (least == was)
				return true;
			rows->level[l].items[i] = least;
		}
		/* A level of one item is the root, unless one above it stands already. */
		if (rows->level[l].count == 1 && (l + 1 == WEFT__ROWS_LEVELS || rows->level[l + 1].count == 0))
			return true;
		/* A new level begins with what its first child has, of which all but the last were taken before. */
		if (l + 1 < WEFT__ROWS_LEVELS && rows->level[l + 1].count == 0) {
			int64_t *root = weft_vec_push(&rows->level[l + 1]);
			if (!root)
				return false;
			*root = rows->level[l].items[0];
			for (size_t k = 1; k < rows->level[l].count && k < WEFT__ROWS_FAN; k++)
				if (rows->level[l].items[k] < *root)
					*root = rows->level[l].items[k];
		}
	}
	return true;
}
