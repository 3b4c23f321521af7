/* slices.c: slices of time.  SPDX-License-Identifier: ISC */
#include "view/slices.h"

#include <stdlib.h>

#include "base/large.h"
#include "base/search.h"

#define SLICE_ITEMS 8
#define PART_BITS 16
#define FEW 32 /* so many are counted faster than they are halved */

bool weft__slices_create(struct weft_slices *slices, int64_t first_ns, int64_t last_ns, size_t most)
{
	const uint64_t span = (uint64_t)last_ns - (uint64_t)first_ns;
	unsigned shift = 0;
	while (shift < 63 && span >> shift > most / SLICE_ITEMS)
		shift++;
	*slices = (struct weft_slices){.first_ns = first_ns,
	    .last_ns = last_ns,
	    .slice_shift = shift,
	    .part_shift = shift > PART_BITS ? shift - PART_BITS : 0,
	    .count = (size_t)(span >> shift) + 1};
	slices->begin = calloc(slices->count + 1, sizeof *slices->begin);
	slices->part = weft_large_alloc(most + 1, sizeof *slices->part);
	if (slices->begin && slices->part)
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
	free(slices->part);
	slices->begin = NULL;
	slices->part = NULL;
}

struct weft_places weft__slices_find(const struct weft_slices *slices, int64_t time_ns)
{
	if (time_ns <= slices->first_ns || !slices->begin)
		return (struct weft_places){0, 0};
	if (time_ns > slices->last_ns)
		return (struct weft_places){slices->begin[slices->count], slices->begin[slices->count]};
	const uint64_t since = (uint64_t)time_ns - (uint64_t)slices->first_ns;
	const uint16_t part = (uint16_t)(since >> slices->part_shift), *parts = slices->part;
	size_t i = slices->begin[since >> slices->slice_shift], end = slices->begin[(since >> slices->slice_shift) + 1];
	size_t first = i;
	if (end - i > FEW)
		first = WEFT_FIRST(k, i, end, parts[k] >= part);
	else
		for (; i < end; i++)
			first += parts[i] < part;
	if (slices->part_shift == 0 || first == end || parts[first] != part)
		return (struct weft_places){first, first};
	return (struct weft_places){first, WEFT_FIRST_NEAR(k, first + 1, end, parts[k] > part)};
}
