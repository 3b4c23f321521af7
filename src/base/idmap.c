/* idmap.c: see idmap.h.  SPDX-License-Identifier: ISC */
#include "base/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Ids beside each other are so here, too: who has asked for one has the next ones in the processor's cache. */
static struct weft_idmap_slot *slot_of(const struct weft_idmap *map, int64_t id)
{
	enum { BESIDE = 8 };
	const uint64_t place = weft_hash_keyed_u64(&map->key, (uint64_t)id / BESIDE) * BESIDE + (uint64_t)id % BESIDE;
	size_t at = place & (map->slot_count - 1);
	while (map->slots[at].number && map->slots[at].id != id)
		at = (at + 1) & (map->slot_count - 1);
	return &map->slots[at];
}

uint32_t weft__idmap_find_slot(const struct weft_idmap *map, int64_t id)
{
	return slot_of(map, id)->number - 1;
}

/* Room for n more in the hash table, which stays at most 3/4 full. */
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
			*slot_of(&bigger, map->slots[i].id) = map->slots[i];
	free(map->slots);
	map->slots = bigger.slots;
	map->key = bigger.key;
	map->slot_count = count;
	return true;
}

/* For an id that is not in it yet, where there is room. */
static void add_to_slots(struct weft_idmap *map, int64_t id, uint32_t number)
{
	map->slots_low = map->slots_used && map->slots_low < id ? map->slots_low : id;
	map->slots_high = map->slots_used && map->slots_high > id ? map->slots_high : id;
	map->slots_used++;
	*slot_of(map, id) = (struct weft_idmap_slot){id, number};
}

/* Moves the array to where the ids are now: the first ones were exceptions, as in a ring that begins with a few old promises. */
static bool rebase(struct weft_idmap *map, int64_t id)
{
	if (!reserve_slots(map, map->near_used))
		return false;
	for (size_t i = 0; i < map->near_count; i++)
		if (map->near[i])
			add_to_slots(map, (int64_t)(map->base + i), map->near[i]);
	map->near_used = map->near_count = 0;
	map->base = (uint64_t)id;
	map->rebase_at = map->slots_used * 2;
	return true;
}

/* Makes offset one of the array's. */
static bool reach(struct weft_idmap *map, size_t offset)
{
	if (offset >= map->near_capacity &&
	    !weft__vec_grow((void **)&map->near, &map->near_capacity, offset + 1, sizeof *map->near))
		return false;
	/* A little more than asked for, so that this is rare, but not all: memory that is not touched costs nothing. */
	size_t count = map->near_capacity - offset > 1024 ? offset + 1024 : map->near_capacity;
	memset(map->near + map->near_count, 0, (count - map->near_count) * sizeof *map->near);
	map->near_count = count;
	return true;
}

/* Makes room before the array too, where ids go downwards: as much again as it has, so that moving it is rare, but not more than
 * `most` in all.  Where there is no such room, or no memory, nothing changes. */
static void reach_down(struct weft_idmap *map, uint64_t below, size_t most)
{
	size_t room = most > map->near_count ? most - map->near_count : 0;
	size_t more = below > map->near_count ? (size_t)below : map->near_count;
	more = more < room ? more : room;
	if (more < below || more < map->near_count / 2)
		return;
	if (map->near_count + more > map->near_capacity &&
	    !weft__vec_grow((void **)&map->near, &map->near_capacity, map->near_count + more, sizeof *map->near))
		return;
	memmove(map->near + more, map->near, map->near_count * sizeof *map->near);
	memset(map->near, 0, more * sizeof *map->near);
	map->near_count += more;
	map->base -= more;
}

/* Takes the hash table's ids into the array, if all of them belong there by now: then nothing is hashed any more.  Ids far ahead
 * of the others do, as soon as there are enough of these. */
static void absorb(struct weft_idmap *map, size_t most)
{
	size_t last = 0;
	for (size_t i = 0; i < map->slot_count; i++) {
		const uint64_t offset = map->slots[i].number ? (uint64_t)map->slots[i].id - map->base : 0;
		if (offset >= most)
			return;
		last = offset > last ? (size_t)offset : last;
	}
	if (last >= map->near_count && !reach(map, last))
		return;
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i].number)
			map->near[(uint64_t)map->slots[i].id - map->base] = map->slots[i].number;
	map->near_used += map->slots_used;
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

/* The lane of an id, which becomes what it is there. */
static struct weft_idmap *lane_of(const struct weft_idmap *map, int64_t *id)
{
	const uint64_t size = *id < 0 ? 0 - (uint64_t)*id : (uint64_t)*id, left = size / map->lane_count;
	const int64_t sign = *id < 0 ? -1 : 1;
	*id = left > 0 || sign > 0 ? sign * (int64_t)left : INT64_MIN; /* there is no -0 */
	return &map->lanes[size - left * map->lane_count];
}

uint32_t weft__idmap_find_in_lane(const struct weft_idmap *map, int64_t id)
{
	const struct weft_idmap *lane = lane_of(map, &id);
	const uint64_t offset = (uint64_t)id - lane->base;
	if (offset < lane->near_count && lane->near[offset])
		return lane->near[offset] - 1;
	return weft__idmap_may_have_slot(lane, id) ? slot_of(lane, id)->number - 1 : WEFT_IDMAP_NONE;
}

bool weft_idmap_set(struct weft_idmap *map, int64_t id, uint32_t number)
{
	if (map->lanes)
		map = lane_of(map, &id);
	size_t used = map->near_used + map->slots_used;
	if (used == 0 && !map->has_base)
		map->base = (uint64_t)id < 65536 ? 0 : (uint64_t)id;
	if (weft__idmap_may_have_slot(map, id)) {
		struct weft_idmap_slot *slot = slot_of(map, id);
		if (slot->number) {
			slot->number = number + 1;
			return true;
		}
	}
	if (map->slots_used > 1024 && map->near_used * 4 < map->slots_used && used >= map->rebase_at && !rebase(map, id))
		return false;
	const size_t most = used * 3 + 4096;
	if (map->slots_used && used >= map->absorb_at) {
		map->absorb_at = used * 2;
		absorb(map, most);
	}
	const uint64_t below = map->base - (uint64_t)id;
	if (below > 0 && below < most)
		reach_down(map, below, most);
	const uint64_t offset = (uint64_t)id - map->base;
	if (offset < map->near_count || offset < most) {
		if (offset >= map->near_count && !reach(map, (size_t)offset))
			return false;
		map->near_used += map->near[offset] == 0;
		map->near[offset] = number + 1;
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
		free(map->lanes[i].near);
		free(map->lanes[i].slots);
	}
	free(map->lanes);
	free(map->near);
	free(map->slots);
	*map = (struct weft_idmap){0};
}
