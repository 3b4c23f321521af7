/* idmap.c: see idmap.h.  SPDX-License-Identifier: ISC */
#include "base/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Returns the slot of an id, or the free slot in which it should be stored.  Consecutive ids share cache lines: a search for
 * one of them also loads the next ones. */
static struct weft_idmap_slot *find_slot(const struct weft_idmap *map, int64_t id)
{
	enum { GROUP_IDS = 8 };
	const uint64_t hash = weft_hash_keyed_u64(&map->key, (uint64_t)id / GROUP_IDS) * GROUP_IDS + (uint64_t)id % GROUP_IDS;
	size_t at = hash & (map->slot_count - 1);
	while (map->slots[at].number && map->slots[at].id != id)
		at = (at + 1) & (map->slot_count - 1);
	return &map->slots[at];
}

uint32_t weft__idmap_find_slot_number(const struct weft_idmap *map, int64_t id)
{
	return find_slot(map, id)->number - 1;
}

/* Makes space for n more ids in the hash table, which stays at most 3/4 full. */
static bool reserve_slots(struct weft_idmap *map, size_t n)
{
	size_t count = map->slot_count ? map->slot_count : 64;
	while ((map->slots_used + n) * 4 >= count * 3)
		count *= 2;
	if (count == map->slot_count)
		return true;
	struct weft_idmap bigger = {.slots = calloc(count, sizeof *bigger.slots),
	    .slot_count = count,
	    .key = map->slot_count ? map->key : weft_hash_key_new()};
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i].number)
			*find_slot(&bigger, map->slots[i].id) = map->slots[i];
	free(map->slots);
	map->slots = bigger.slots;
	map->key = bigger.key;
	map->slot_count = count;
	return true;
}

/* Adds an id that the hash table does not have yet; the table must have a free slot. */
static void add_to_slots(struct weft_idmap *map, int64_t id, uint32_t number)
{
	map->slots_low = map->slots_used && map->slots_low < id ? map->slots_low : id;
	map->slots_high = map->slots_used && map->slots_high > id ? map->slots_high : id;
	map->slots_used++;
	*find_slot(map, id) = (struct weft_idmap_slot){id, number};
}

/* Moves the start of the array to the ids that come now.  The first ids were exceptions, as in a ring that starts with a few
 * old promises. */
static bool rebase_array(struct weft_idmap *map, int64_t id)
{
	if (!reserve_slots(map, map->dense_used))
		return false;
	for (size_t i = 0; i < map->dense_count; i++)
		if (map->dense[i])
			add_to_slots(map, (int64_t)(map->base + i), map->dense[i]);
	map->dense_used = map->dense_count = 0;
	map->base = (uint64_t)id;
	map->rebase_at = map->slots_used * 2;
	return true;
}

/* Extends the array so that it contains the given offset. */
static bool extend_array(struct weft_idmap *map, size_t offset)
{
	if (offset >= map->dense_capacity &&
	    !weft__vec_grow((void **)&map->dense, &map->dense_capacity, offset + 1, sizeof *map->dense))
		return false;
	/* The array grows by a little more than needed, so that it grows rarely.  Only a part of the capacity is cleared,
	 * because memory that is never touched costs nothing. */
	size_t count = map->dense_capacity - offset > 1024 ? offset + 1024 : map->dense_capacity;
	memset(map->dense + map->dense_count, 0, (count - map->dense_count) * sizeof *map->dense);
	map->dense_count = count;
	return true;
}

/* Extends the array downwards, for ids that decrease.  The array is doubled, so that it is moved rarely, up to `max_count`
 * entries.  If max_count is reached or memory runs out, nothing changes. */
static void extend_array_down(struct weft_idmap *map, uint64_t below, size_t max_count)
{
	size_t max_more = max_count > map->dense_count ? max_count - map->dense_count : 0;
	size_t more = below > map->dense_count ? (size_t)below : map->dense_count;
	more = more < max_more ? more : max_more;
	if (more < below || more < map->dense_count / 2)
		return;
	if (map->dense_count + more > map->dense_capacity &&
	    !weft__vec_grow((void **)&map->dense, &map->dense_capacity, map->dense_count + more, sizeof *map->dense))
		return;
	memmove(map->dense + more, map->dense, map->dense_count * sizeof *map->dense);
	memset(map->dense, 0, more * sizeof *map->dense);
	map->dense_count += more;
	map->base -= more;
}

/* Moves the hash table's ids into the array if all of them fit there by now; then lookups need no hash.  Ids far ahead of the
 * other ids fit as soon as the array has enough ids. */
static void move_slots_to_array(struct weft_idmap *map, size_t max_count)
{
	size_t last = 0;
	for (size_t i = 0; i < map->slot_count; i++) {
		const uint64_t offset = map->slots[i].number ? (uint64_t)map->slots[i].id - map->base : 0;
		if (offset >= max_count)
			return;
		last = offset > last ? (size_t)offset : last;
	}
	if (last >= map->dense_count && !extend_array(map, last))
		return;
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i].number)
			map->dense[(uint64_t)map->slots[i].id - map->base] = map->slots[i].number;
	map->dense_used += map->slots_used;
	free(map->slots);
	map->slots = NULL;
	map->slot_count = map->slots_used = 0;
}

bool weft_idmap_split(struct weft_idmap *map, uint32_t lanes)
{
	map->lanes = calloc(lanes, sizeof *map->lanes);
	map->lane_count = map->lanes ? lanes : 0;
	map->lane_reciprocal = UINT64_MAX / lanes + 1;
	return map->lanes;
}

/* Returns the sub-map of the recorder that made an id, and replaces *id by the id within that sub-map. */
static struct weft_idmap *find_lane(const struct weft_idmap *map, int64_t *id)
{
	const uint64_t size = *id < 0 ? 0 - (uint64_t)*id : (uint64_t)*id, left = size / map->lane_count;
	const int64_t sign = *id < 0 ? -1 : 1;
	*id = left > 0 || sign > 0 ? sign * (int64_t)left : INT64_MIN; /* there is no -0 */
	return &map->lanes[size - left * map->lane_count];
}

uint32_t weft__idmap_find_in_lane(const struct weft_idmap *map, int64_t id)
{
	const struct weft_idmap *lane = find_lane(map, &id);
	const uint64_t offset = (uint64_t)id - lane->base;
	if (offset < lane->dense_count && lane->dense[offset])
		return lane->dense[offset] - 1;
	return weft__idmap_may_have_slot(lane, id) ? find_slot(lane, id)->number - 1 : WEFT_IDMAP_NONE;
}

bool weft_idmap_set(struct weft_idmap *map, int64_t id, uint32_t number)
{
	if (map->lanes)
		map = find_lane(map, &id);
	size_t used = map->dense_used + map->slots_used;
	if (used == 0 && !map->has_base)
		map->base = (uint64_t)id < 65536 ? 0 : (uint64_t)id;
	if (weft__idmap_may_have_slot(map, id)) {
		struct weft_idmap_slot *slot = find_slot(map, id);
		if (slot->number) {
			slot->number = number + 1;
			return true;
		}
	}
	if (map->slots_used > 1024 && map->dense_used * 4 < map->slots_used && used >= map->rebase_at && !rebase_array(map, id))
		return false;
	const size_t max_count = used * 3 + 4096;
	if (map->slots_used && used >= map->absorb_at) {
		map->absorb_at = used * 2;
		move_slots_to_array(map, max_count);
	}
	const uint64_t below = map->base - (uint64_t)id;
	if (below > 0 && below < max_count)
		extend_array_down(map, below, max_count);
	const uint64_t offset = (uint64_t)id - map->base;
	if (offset < map->dense_count || offset < max_count) {
		if (offset >= map->dense_count && !extend_array(map, (size_t)offset))
			return false;
		map->dense_used += map->dense[offset] == 0;
		map->dense[offset] = number + 1;
		return true;
	}
	if (!reserve_slots(map, 1))
		return false;
	add_to_slots(map, id, number + 1);
	return true;
}

void weft_idmap_finish(struct weft_idmap *map)
{
	for (uint32_t i = 0; i < map->lane_count; i++) {
		free(map->lanes[i].dense);
		free(map->lanes[i].slots);
	}
	free(map->lanes);
	free(map->dense);
	free(map->slots);
	*map = (struct weft_idmap){0};
}
