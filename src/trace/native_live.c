/* native_live.c: copies the packets of a trace that its program may be writing.
 *
 * Each stream is copied as a contiguous snapshot (ring_snapshot.h).  The streams are copied one after another, so a later copy
 * has events whose predecessors are missing in earlier copies.  Therefore all copies are cut at a time up to which all are
 * complete: the time of the newest event that existed before the last refresh started.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "trace/native.h"
#include "trace/ring_snapshot.h"

enum { MAX_ROUNDS = 8 };

/* The locations of packets of events, and their copies. */
struct live {
	struct weft_trace *trace;
	WEFT_VEC(struct weft_slot) slots;
	WEFT_VEC(size_t) locations;         /* by slot: index into native.locations */
	WEFT_VEC(struct native_walk) walks; /* by slot */
	struct native_live *blobs;          /* by index of the blob: the memory that its slots read */
	size_t blob_count, known_locations;
	uint64_t step;
};

/* ---- Locations ---- */

/* Sets the memory of the slots, for the blobs that exist now. */
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
		live->slots.items[i].memory = weft__native_memory(&blobs[n->locations.items[live->locations.items[i]].blob]);
	return true;
}

/* Adds a slot for each location of a packet of events that has none.  Bytes that were already read are the first copy of the
 * packet, unless they are the memory to which the program writes. */
static bool add_slots(struct live *live)
{
	struct native *n = live->trace->state;
	const struct weft_source *source = &live->trace->source;
	for (; live->known_locations < n->locations.count; live->known_locations++) {
		const struct native_location *location = &n->locations.items[live->known_locations];
		const struct weft_blob *blob = &source->blobs[location->blob];
		if (location->is_definitions || location->is_kernel || location->is_profile || location->is_memory)
			continue;
		struct weft_slot *slot = weft_vec_push(&live->slots);
		size_t *index = slot ? weft_vec_push(&live->locations) : NULL;
		struct native_walk *walk = index ? weft_vec_push(&live->walks) : NULL;
		if (!walk)
			return false;
		*walk = (struct native_walk){0};
		*index = live->known_locations;
		*slot = (struct weft_slot){.at = location->offset, .max_bytes = blob->size - location->offset};
		if (source->reread && weft__packet_parse(&slot->packet, blob->bytes + location->offset) == WEFT_PACKET_FINE &&
		    slot->packet.content_bytes <= slot->max_bytes) {
			slot->bytes = blob->bytes + location->offset;
			slot->size = (size_t)slot->packet.content_bytes;
		}
	}
	return point_to_blobs(live);
}

/* Updates the numbers of blobs in locations after files were added. */
static void renumber_blobs(struct native *n, const struct weft_source *source, char *const *names)
{
	for (size_t i = 0; i < n->locations.count; i++)
		n->locations.items[i].blob =
		    (uint32_t)(weft_source_find(source, names[n->locations.items[i].blob]) - source->blobs);
}

/* Finds the packets of new files. */
static int find_new_files(struct live *live, struct weft_error *err)
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
	renumber_blobs(live->trace->state, source, names);
	for (size_t i = 0, known = 0; i < source->blob_count && status == WEFT_OK; i++) {
		if (known < count && source->blobs[i].name == names[known])
			known++;
		else if (strcmp(source->blobs[i].name, "metadata") != 0)
			status = weft__native_find_packets(live->trace, (uint32_t)i, err);
	}
	free(names);
	return status;
}

/* ---- Consistent snapshot ---- */

static uint64_t find_newest_time(struct live *live)
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

/* Returns true if every stream is complete up to a time: no stream had all of its packets before that time overwritten.  If
 * there is only one stream, it is always complete. */
static bool covers_time(const struct live *live, uint64_t time)
{
	bool is_late = false;
	for (size_t i = 0; i < live->slots.count; i++) {
		const struct weft_slot *oldest = live->slots.items[i].oldest;
		is_late = is_late || (oldest && oldest->packet.begin > time && oldest->packet.sequence > 0);
	}
	return !is_late || count_streams(live) < 2;
}

/* Refreshes all copies until they are complete up to one time, *cut, in ticks.  If that fails, the events that may be missing
 * are noted as doubtful. */
static int copy_consistently(struct live *live, uint64_t *cut, struct weft_error *err)
{
	struct native *n = live->trace->state;
	bool is_good = false;
	for (int round = 0; round < MAX_ROUNDS && !is_good; round++) {
		/* All events before the newest time that was found already exist. */
		*cut = round ? find_newest_time(live) : 0;
		int status = find_new_files(live, err);
		if (status < 0)
			return status;
		if (!add_slots(live) || weft__ring_snapshot_refresh(live->slots.items, live->slots.count, &live->step) < 0)
			return weft__native_no_memory(err);
		is_good = round && weft__ring_snapshot_is_good(live->slots.items, live->slots.count) && covers_time(live, *cut);
	}
	if (!covers_time(live, *cut))
		n->doubtful_since = *cut;
	if (n->doubtful_since != UINT64_MAX || count_streams(live) < 2)
		*cut = UINT64_MAX;
	return WEFT_OK;
}

/* ---- Result ---- */

/* Adds the bytes of a slot up to the cut; the trace owns the bytes and may write to them. */
static int add_slot_packet(struct live *live, size_t number, uint64_t cut)
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
		if (!weft__native_adopt(n, copy))
			return WEFT_ENOMEM;
	}
	return weft__native_add_packet(live->trace, &n->locations.items[live->locations.items[number]], slot->bytes, slot->size);
}

static int add_event_packets(struct live *live, uint64_t cut)
{
	int status = WEFT_OK;
	for (size_t i = 0; i < live->slots.count && status == WEFT_OK; i++) {
		const struct weft_slot *slot = &live->slots.items[i];
		if (slot->is_retained && slot->packet.begin <= cut)
			status = add_slot_packet(live, i, cut);
	}
	return status;
}

/* Adds the other packets.  Definitions are copied last, so that they cover all events.  Kernel records are written by weft
 * record, separately for each CPU. */
static int add_other_packets(struct live *live)
{
	struct native *n = live->trace->state;
	for (size_t i = 0; i < n->locations.count; i++) {
		const struct native_location *location = &n->locations.items[i];
		if (!location->is_definitions && !location->is_kernel && !location->is_profile && !location->is_memory)
			continue;
		const struct weft_packet_memory memory = weft__native_memory(&live->blobs[location->blob]);
		struct weft_packet_copy copy;
		int got = weft__packet_copy(
		    &copy, &memory, location->offset, live->trace->source.blobs[location->blob].size - location->offset);
		if (got < 0 || (got && !weft__native_adopt(n, copy.bytes)))
			return WEFT_ENOMEM;
		if (got && weft__native_add_packet(live->trace, location, copy.bytes, copy.size) < 0)
			return WEFT_ENOMEM;
	}
	return WEFT_OK;
}

int weft__native_read_live(struct weft_trace *trace, struct weft_error *err)
{
	struct native *n = trace->state;
	struct live live = {.trace = trace};
	uint64_t cut = UINT64_MAX;
	int status = weft__native_begin_keys(n) ? copy_consistently(&live, &cut, err) : weft__native_no_memory(err);
	/* Definitions may have been written to a new file meanwhile. */
	if (status == WEFT_OK)
		status = find_new_files(&live, err);
	if (status == WEFT_OK && (!add_slots(&live) || add_event_packets(&live, cut) < 0 || add_other_packets(&live) < 0))
		status = weft__native_no_memory(err);
	for (size_t i = 0; i < live.slots.count; i++)
		free(live.slots.items[i].copy.bytes);
	weft_vec_free(&live.slots);
	weft_vec_free(&live.locations);
	weft_vec_free(&live.walks);
	free(live.blobs);
	return status;
}
