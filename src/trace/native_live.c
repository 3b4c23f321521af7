/* native_live.c: the packets of a trace that its program may be writing meanwhile.
 *
 * Each stream is copied as one stretch (stretch.h).  Streams are copied one after the other, so that a later one has events which
 * an earlier one lacks: they are cut off at a moment up to which all are whole, that of the newest event that was there before
 * the last look began.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "trace/native.h"
#include "trace/stretch.h"

enum { ROUNDS = 8 };

/* The places of events, and what stands there. */
struct live {
	struct weft_trace *trace;
	WEFT_VEC(struct weft_slot) slots;
	WEFT_VEC(size_t) places;            /* for each slot: index in native.places */
	WEFT_VEC(struct native_walk) walks; /* for each slot */
	struct native_live *blobs;          /* by index: what slots read */
	size_t blob_count, known_places;
	uint64_t step;
};

/* ---- Places ---- */

/* What a slot's memory points to, for as many blobs as there are. */
static bool point_to_blobs(struct live *live)
{
	struct native *n = live->trace->state;
	const struct weft_source *source = &live->trace->source;
	struct native_live *blobs = realloc(live->blobs, (source->blob_count ? source->blob_count : 1) * sizeof *blobs);
	if (!blobs)
		return false;
	live->blobs = blobs;
	for (size_t i = 0; i < source->blob_count; i++)
		blobs[i] = (struct native_live){source, (uint32_t)i};
	for (size_t i = 0; i < live->slots.count; i++)
		live->slots.items[i].memory = weft__native_memory(&blobs[n->places.items[live->places.items[i]].blob]);
	return true;
}

/* A slot for each place of events that has none.  What was read of it already is its first copy, unless that is the memory which
 * the program writes. */
static bool add_slots(struct live *live)
{
	struct native *n = live->trace->state;
	const struct weft_source *source = &live->trace->source;
	for (; live->known_places < n->places.count; live->known_places++) {
		const struct native_place *place = &n->places.items[live->known_places];
		const struct weft_blob *blob = &source->blobs[place->blob];
		if (place->is_definitions || place->is_kernel)
			continue;
		struct weft_slot *slot = weft_vec_push(&live->slots);
		size_t *index = slot ? weft_vec_push(&live->places) : NULL;
		struct native_walk *walk = index ? weft_vec_push(&live->walks) : NULL;
		if (!walk)
			return false;
		*walk = (struct native_walk){0};
		*index = live->known_places;
		*slot = (struct weft_slot){.at = place->offset, .room = blob->size - place->offset};
		if (source->reread && weft__packet_parse(&slot->packet, blob->bytes + place->offset) == WEFT_PACKET_FINE &&
		    slot->packet.content_bytes <= slot->room) {
			slot->bytes = blob->bytes + place->offset;
			slot->size = (size_t)slot->packet.content_bytes;
		}
	}
	return point_to_blobs(live);
}

/* Numbers the places' blobs anew, after there came more. */
static void renumber(struct native *n, const struct weft_source *source, char *const *names)
{
	for (size_t i = 0; i < n->places.count; i++)
		n->places.items[i].blob = (uint32_t)(weft_source_find(source, names[n->places.items[i].blob]) - source->blobs);
}

/* Finds the packets of files that came since. */
static int find_more(struct live *live, struct weft_error *err)
{
	struct weft_source *source = &live->trace->source;
	const size_t count = source->blob_count;
	if (!source->reload)
		return WEFT_OK;
	char **names = malloc((count ? count : 1) * sizeof *names);
	if (!names)
		return weft__native_no_memory(err);
	for (size_t i = 0; i < count; i++)
		names[i] = source->blobs[i].name;
	int status = source->reload(source, err);
	renumber(live->trace->state, source, names);
	for (size_t i = 0, known = 0; i < source->blob_count && status == WEFT_OK; i++) {
		if (known < count && source->blobs[i].name == names[known])
			known++;
		else if (strcmp(source->blobs[i].name, "metadata") != 0)
			status = weft__native_find(live->trace, (uint32_t)i, err);
	}
	free(names);
	return status;
}

/* ---- One stretch ---- */

static uint64_t newest_time(struct live *live)
{
	uint64_t newest = 0;
	for (size_t i = 0; i < live->slots.count; i++) {
		const struct weft_slot *slot = &live->slots.items[i];
		if (!slot->oldest)
			continue;
		struct native_walk *walk = &live->walks.items[i];
		weft__native_end_at(live->trace->state, &slot->packet, slot->bytes, slot->size, UINT64_MAX, walk);
		newest = walk->last > newest ? walk->last : newest;
	}
	return newest;
}

static size_t count_streams(const struct live *live)
{
	size_t streams = 0;
	for (size_t i = 0; i < live->slots.count; i++)
		streams += live->slots.items[i].oldest != NULL;
	return streams;
}

/* Whether every stream has what it did up to then: of none all packets of before were overwritten since.  One stream alone is
 * whole as it is. */
static bool reaches(const struct live *live, uint64_t time)
{
	bool is_late = false;
	for (size_t i = 0; i < live->slots.count; i++) {
		const struct weft_slot *oldest = live->slots.items[i].oldest;
		is_late = is_late || (oldest && oldest->packet.begin > time && oldest->packet.sequence > 0);
	}
	return !is_late || count_streams(live) < 2;
}

/* Looks at all until they are one stretch up to one moment, *cut, in ticks; what is then still missing is doubtful. */
static int look(struct live *live, uint64_t *cut, struct weft_error *err)
{
	struct native *n = live->trace->state;
	bool is_good = false;
	for (int round = 0; round < ROUNDS && !is_good; round++) {
		/* Whatever came before this moment is there already. */
		*cut = round ? newest_time(live) : 0;
		int status = find_more(live, err);
		if (status < 0)
			return status;
		if (!add_slots(live) || weft__stretch_look(live->slots.items, live->slots.count, &live->step) < 0)
			return weft__native_no_memory(err);
		is_good = round && weft__stretch_is_good(live->slots.items, live->slots.count) && reaches(live, *cut);
	}
	if (!reaches(live, *cut))
		n->doubtful = *cut;
	if (n->doubtful != UINT64_MAX || count_streams(live) < 2)
		*cut = UINT64_MAX;
	return WEFT_OK;
}

/* ---- Taking ---- */

/* Takes the bytes of a slot, up to the moment; they are the trace's, which may write into them. */
static int take_slot(struct live *live, size_t number, uint64_t cut)
{
	struct native *n = live->trace->state;
	struct weft_slot *slot = &live->slots.items[number];
	const size_t end = slot->until <= cut
			       ? slot->size
			       : weft__native_end_at(n, &slot->packet, slot->bytes, slot->size, cut, &live->walks.items[number]);
	if (end < slot->size) {
		const uint64_t bits = (uint64_t)end * 8;
		memcpy((unsigned char *)(uintptr_t)slot->bytes + WEFT_PACKET_AT(content_size), &bits, sizeof bits);
	}
	if (slot->copy.bytes) {
		unsigned char *copy = slot->copy.bytes;
		slot->copy.bytes = NULL;
		if (!weft__native_keep(n, copy))
			return WEFT_ENOMEM;
	}
	return weft__native_take(live->trace, &n->places.items[live->places.items[number]], slot->bytes, slot->size);
}

static int take_events(struct live *live, uint64_t cut)
{
	int status = WEFT_OK;
	for (size_t i = 0; i < live->slots.count && status == WEFT_OK; i++) {
		const struct weft_slot *slot = &live->slots.items[i];
		if (slot->is_kept && slot->packet.begin <= cut)
			status = take_slot(live, i, cut);
	}
	return status;
}

/* Copied last: definitions say what all of the events refer to.  What the kernel said, weft record writes, each processor by
 * itself.
 */
static int take_others(struct live *live)
{
	struct native *n = live->trace->state;
	for (size_t i = 0; i < n->places.count; i++) {
		const struct native_place *place = &n->places.items[i];
		if (!place->is_definitions && !place->is_kernel)
			continue;
		const struct weft_packet_memory memory = weft__native_memory(&live->blobs[place->blob]);
		struct weft_packet_copy copy;
		int got =
		    weft__packet_copy(&copy, &memory, place->offset, live->trace->source.blobs[place->blob].size - place->offset);
		if (got < 0 || (got && !weft__native_keep(n, copy.bytes)))
			return WEFT_ENOMEM;
		if (got && weft__native_take(live->trace, place, copy.bytes, copy.size) < 0)
			return WEFT_ENOMEM;
	}
	return WEFT_OK;
}

int weft__native_take_live(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	struct live live = {.trace = trace};
	uint64_t cut = UINT64_MAX;
	int status = weft__native_begin_keys(n) ? look(&live, &cut, err) : weft__native_no_memory(err);
	/* Once more: definitions may have needed another file. */
	if (status == WEFT_OK)
		status = find_more(&live, err);
	if (status == WEFT_OK && (!add_slots(&live) || take_events(&live, cut) < 0 || take_others(&live) < 0))
		status = weft__native_no_memory(err);
	for (size_t i = 0; i < live.slots.count; i++)
		free(live.slots.items[i].copy.bytes);
	weft_vec_free(&live.slots);
	weft_vec_free(&live.places);
	weft_vec_free(&live.walks);
	free(live.blobs);
	return status;
}
