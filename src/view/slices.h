/* slices.h: finds the position of a time in a long list of times with two memory accesses, however long the list is.  Private to
 * view/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_SLICES_H
#define WEFT_VIEW_SLICES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Time is divided into slices of about eight items.  For each item, 16 bits of its time are kept, which distinguish it from
 * nearly all other items of its slice. */
struct weft_slices {
	int64_t first_ns, last_ns;
	unsigned slice_shift, time_bits_shift;
	size_t count;
	uint32_t *begin;     /* array of count + 1 positions: first position of each slice */
	uint16_t *time_bits; /* by position */
};

/* Creates slices for up to max_items items, with times from first_ns to last_ns.  Put all items in, and then call
 * weft__slices_end().  Returns false without memory; then there is nothing to free. */
bool weft__slices_create(struct weft_slices *slices, int64_t first_ns, int64_t last_ns, size_t max_items);
void weft__slices_end(struct weft_slices *slices);
void weft__slices_free(struct weft_slices *slices);

/* Stores the item at a position; its time must not be before the time at the previous position.  If is_kept is false, the next
 * item takes the same position. */
static inline void weft__slices_put(struct weft_slices *slices, size_t place, int64_t time_ns, bool is_kept)
{
	const uint64_t since = (uint64_t)time_ns - (uint64_t)slices->first_ns;
	assert(time_ns >= slices->first_ns && time_ns <= slices->last_ns);
	slices->time_bits[place] = (uint16_t)(since >> slices->time_bits_shift);
	slices->begin[(since >> slices->slice_shift) + 1] = (uint32_t)(place + is_kept);
}

/* Result of a search: items before `first` are before the time, items from `end` on are not, and items between them must be
 * compared. */
struct weft_index_range {
	size_t first, end;
};
struct weft_index_range weft__slices_find(const struct weft_slices *slices, int64_t time_ns);

#endif
