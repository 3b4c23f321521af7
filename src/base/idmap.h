/* idmap.h: from recorded ids to small numbers.
 *
 * Ids that follow one another, as those of a recorder do, live in an array, 4 to 16 bytes each; others in a hash table.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_IDMAP_H
#define WEFT_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define WEFT_IDMAP_NONE UINT32_MAX

struct weft_idmap_slot {
	int64_t id;
	uint32_t number; /* + 1; 0 in a free slot */
};

/* A zeroed one is empty. */
struct weft_idmap {
	uint32_t *near; /* number + 1 of the ids from `base` on; 0 for none */
	uint64_t base;
	size_t near_count, near_capacity, near_used;
	bool has_base;                 /* though it is empty */
	struct weft_idmap_slot *slots; /* the others: open addressing */
	size_t slot_count, slots_used;
	struct weft_hash_key key;      /* of slots */
	int64_t slots_low, slots_high; /* no id of theirs is below or above */
	size_t rebase_at;              /* how many ids there must be before the array may move again ... */
	size_t absorb_at;              /* ... or it is looked whether the others belong into it */
	struct weft_idmap *lanes;      /* by id % lane_count, what is left of the ids; NULL: it is one */
	uint32_t lane_count;
	uint64_t lane_reciprocal; /* 2^64 / lane_count, and a little more */
};

/* So far that reciprocal is exact enough: for at most 2^13 lanes. */
#define WEFT__IDMAP_DIVIDED ((uint64_t)1 << 51)

uint32_t weft__idmap_find_slot(const struct weft_idmap *map, int64_t id);

/* Of an empty one: its ids are those of `lanes` recorders, 2 to 2^13, each with its number as id % lanes; so each has an array of
 * its own.  false: no memory. */
bool weft_idmap_split(struct weft_idmap *map, uint32_t lanes);
uint32_t weft__idmap_find_in_lane(const struct weft_idmap *map, int64_t id);

/* False: the hash table need not be asked. */
static inline bool weft__idmap_may_have_slot(const struct weft_idmap *map, int64_t id)
{
	return map->slots_used && id >= map->slots_low && id <= map->slots_high;
}

/* The number of an id, or WEFT_IDMAP_NONE. */
static inline uint32_t weft_idmap_get(const struct weft_idmap *map, int64_t id)
{
	uint64_t offset = (uint64_t)id - map->base;
	if (offset < map->near_count && map->near[offset])
		return map->near[offset] - 1;
	if (map->lanes) {
#ifndef __wasm__ /* which has no product of 128 bits */
		if ((uint64_t)id < WEFT__IDMAP_DIVIDED) {
			__extension__ typedef unsigned __int128 wide;
			const uint64_t left = (uint64_t)((wide)map->lane_reciprocal * (uint64_t)id >> 64);
			const struct weft_idmap *lane = &map->lanes[(uint64_t)id - left * map->lane_count];
			offset = left - lane->base;
			if (offset < lane->near_count && lane->near[offset])
				return lane->near[offset] - 1;
		}
#endif
		return weft__idmap_find_in_lane(map, id);
	}
	return weft__idmap_may_have_slot(map, id) ? weft__idmap_find_slot(map, id) : WEFT_IDMAP_NONE;
}

/* Gives an id a number below WEFT_IDMAP_NONE, in place of the one that it may have; false, with nothing changed, when out of
 * memory. */
bool weft_idmap_set(struct weft_idmap *map, int64_t id, uint32_t number);

/* Of an empty one: most ids will follow this one, whichever are the first. */
static inline void weft_idmap_expect(struct weft_idmap *map, int64_t id)
{
	map->base = (uint64_t)id;
	map->has_base = true;
}

void weft_idmap_finish(struct weft_idmap *map);

#endif
