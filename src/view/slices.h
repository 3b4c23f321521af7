/* slices.h: where a time stands in a long list of times: found in two looks at memory, however long the list is.
 * Private to view/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SLICES_H
#define WEFT_VIEW_SLICES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time is cut into slices of about eight items; of each item 16 bits of its time are kept, which tell it from nearly all others
 * of its slice. */
struct weft_slices {
	int64_t first_ns, last_ns;
	unsigned slice_shift, part_shift;
	size_t count;
	uint32_t *begin; /* [count + 1]: the first place of each slice */
	uint16_t *part;  /* by place */
};

/* For up to `most` items from first_ns to last_ns, to be put in and then ended.  False when out of memory, with nothing to free.
 */
bool weft__slices_create(struct weft_slices *slices, int64_t first_ns, int64_t last_ns, size_t most);
void weft__slices_end(struct weft_slices *slices);
void weft__slices_free(struct weft_slices *slices);

/* The next item, which is not before the one that was put at the place before; if it is not `kept`, the next one has its place.
 */
static inline void weft__slices_put(struct weft_slices *slices, size_t place, int64_t time_ns, bool kept)
{
	const uint64_t since = (uint64_t)time_ns - (uint64_t)slices->first_ns;
	assert(time_ns >= slices->first_ns && time_ns <= slices->last_ns);
	slices->part[place] = (uint16_t)(since >> slices->part_shift);
	slices->begin[(since >> slices->slice_shift) + 1] = (uint32_t)(place + kept);
}

/* Items before place `first` are before a time, those from `end` on are not; what is between, if anything, is to be looked at. */
struct weft_places {
	size_t first, end;
};
struct weft_places weft__slices_find(const struct weft_slices *slices, int64_t time_ns);

#endif
