/* slices.c: divides time into slices, for fast searches.  SPDX-License-Identifier: ISC */
#include "view/slices.h"

#include <stdlib.h>

#include "base/large.h"
#include "base/search.h"

#define SLICE_ITEMS 8
#define TIME_BITS 16
#define LINEAR_SEARCH_ITEMS 32 /* number of items up to which a linear search is faster than a binary search */

bool weft__slices_create(struct weft_slices *slices, int64_t first_ns, int64_t last_ns, size_t max_items)
{
	const uint64_t span = (uint64_t)last_ns - (uint64_t)first_ns;
	unsigned shift = 0;
	while (shift < 63 && span >> shift > max_items / SLICE_ITEMS)
		shift++;
	*slices = (struct weft_slices){.first_ns = first_ns,
	    .last_ns = last_ns,
	    .slice_shift = shift,
	    .time_bits_shift = shift > TIME_BITS ? shift - TIME_BITS : 0,
	    .count = (size_t)(span >> shift) + 1};
	slices->begin = calloc(slices->count + 1, sizeof *slices->begin);
	slices->time_bits = weft_large_alloc(max_items + 1, sizeof *slices->time_bits);
	if (slices->begin && slices->time_bits)
		return true;
	weft__slices_free(slices);
	return false;
}

void weft__slices_end(struct weft_slices *slices)
{
	for (size_t s = 1; s <= slices->count; s++)
		if (slices->begin[s] < slices->begin[s - 1])
			slices->begin[s] = slices->begin[s - 1];
}

void weft__slices_free(struct weft_slices *slices)
{
	free(slices->begin);
	free(slices->time_bits);
	slices->begin = NULL;
	slices->time_bits = NULL;
}

struct weft_index_range weft__slices_find(const struct weft_slices *slices, int64_t time_ns)
{
	if (time_ns <= slices->first_ns || !slices->begin)
		return (struct weft_index_range){0, 0};
	if (time_ns > slices->last_ns)
		return (struct weft_index_range){slices->begin[slices->count], slices->begin[slices->count]};
	const uint64_t since = (uint64_t)time_ns - (uint64_t)slices->first_ns;
	const uint16_t time_bits = (uint16_t)(since >> slices->time_bits_shift), *all_bits = slices->time_bits;
	size_t i = slices->begin[since >> slices->slice_shift], end = slices->begin[(since >> slices->slice_shift) + 1];
	size_t first = i;
	if (end - i > LINEAR_SEARCH_ITEMS)
		first = WEFT_FIND_FIRST(k, i, end, all_bits[k] >= time_bits);
	else
		for (; i < end; i++)
			first += all_bits[i] < time_bits;
	if (slices->time_bits_shift == 0 || first == end || all_bits[first] != time_bits)
		return (struct weft_index_range){first, first};
	return (struct weft_index_range){first, WEFT_FIND_FIRST_NEAR(k, first + 1, end, all_bits[k] > time_bits)};
}
