/* idmap.h: maps ids from a trace to small numbers.
 *
 * Consecutive ids, which are usual for a recorder, are stored in an array of 4 to 16 bytes an id.  Other ids are stored in a
 * hash table.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_IDMAP_H
#define WEFT_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define WEFT_IDMAP_NONE UINT32_MAX

struct weft_idmap_slot {
	int64_t id;
	uint32_t number; /* number of the id + 1; 0 in a free slot */
};

/* A map from ids to numbers, which is empty when zero-initialized. */
struct weft_idmap {
	uint32_t *dense; /* number + 1 of the ids from `base` on; 0 if an id has no number */
	uint64_t base;
	size_t dense_count, dense_capacity, dense_used;
	bool has_base;                 /* true if `base` is set, even if the array is empty */
	struct weft_idmap_slot *slots; /* hash table of the ids outside the array, with open addressing */
	size_t slot_count, slots_used;
	struct weft_hash_key key;      /* key of slots */
	int64_t slots_low, slots_high; /* lowest id in slots; highest id in slots */
	size_t rebase_at;              /* number of ids from which on the array may be moved again */
	size_t absorb_at;              /* number of ids from which on ids may be moved from slots into the array */
	/* sub-maps by id % lane_count, whose ids are id / lane_count; NULL if this map is not split */
	struct weft_idmap *lanes;
	uint32_t lane_count;
	uint64_t lane_reciprocal; /* 2^64 / lane_count, rounded up, which replaces a division */
};

/* Limit of the dividends for which the reciprocal is exact, for at most 2^13 lanes. */
#define WEFT__IDMAP_MAX_DIVIDEND ((uint64_t)1 << 51)

uint32_t weft__idmap_find_slot_number(const struct weft_idmap *map, int64_t id);

/* Splits an empty map whose ids come from `lanes` recorders (2 to 2^13): id % lanes is the number of the recorder.  Each
 * recorder then has its own array.  Returns false without memory. */
bool weft_idmap_split(struct weft_idmap *map, uint32_t lanes);
uint32_t weft__idmap_find_in_lane(const struct weft_idmap *map, int64_t id);

/* Returns false if the hash table certainly does not have the id. */
static inline bool weft__idmap_may_have_slot(const struct weft_idmap *map, int64_t id)
{
	return map->slots_used && id >= map->slots_low && id <= map->slots_high;
}

/* Returns the number of an id, or WEFT_IDMAP_NONE. */
static inline uint32_t weft_idmap_get(const struct weft_idmap *map, int64_t id)
{
	uint64_t offset = (uint64_t)id - map->base;
	if (offset < map->dense_count && map->dense[offset])
		return map->dense[offset] - 1;
	if (map->lanes) {
#ifndef __wasm__ /* WebAssembly has no 128-bit product */
		if ((uint64_t)id < WEFT__IDMAP_MAX_DIVIDEND) {
			__extension__ typedef unsigned __int128 wide;
			const uint64_t left = (uint64_t)((wide)map->lane_reciprocal * (uint64_t)id >> 64);
			const struct weft_idmap *lane = &map->lanes[(uint64_t)id - left * map->lane_count];
			offset = left - lane->base;
			if (offset < lane->dense_count && lane->dense[offset])
				return lane->dense[offset] - 1;
		}
#endif
		return weft__idmap_find_in_lane(map, id);
	}
	return weft__idmap_may_have_slot(map, id) ? weft__idmap_find_slot_number(map, id) : WEFT_IDMAP_NONE;
}

/* Maps an id to a number below WEFT_IDMAP_NONE, in place of an earlier number.  Returns false, with the map unchanged, when out
 * of memory. */
bool weft_idmap_set(struct weft_idmap *map, int64_t id, uint32_t number);

/* Tells an empty map that most ids will be higher than this id, whichever ids come first. */
static inline void weft_idmap_expect(struct weft_idmap *map, int64_t id)
{
	map->base = (uint64_t)id;
	map->has_base = true;
}

void weft_idmap_finish(struct weft_idmap *map);

#endif
