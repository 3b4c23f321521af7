/* ring_snapshot.c: copies a ring consistently (ring_snapshot.h).
 * SPDX-License-Identifier: ISC */
#include "trace/ring_snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <weft/status.h>

#include "base/sort.h"

bool weft__packet_is_unused(const struct weft_packet *packet)
{
	return packet->stream_class == WEFT_CLASS_EVENTS && packet->content_bytes == packet->header_bytes && !packet->tid &&
	       !packet->thread_name[0];
}

/* Returns true if the slot has a copy of the present use of the packet, which may have grown since; *now is the packet's
 * header. */
static bool is_same_use(const struct weft_slot *slot, unsigned char header[WEFT_PACKET_HEADER], struct weft_packet *now)
{
	if (!slot->bytes || slot->memory.read(slot->memory.ctx, slot->at, header, WEFT_PACKET_HEADER) < WEFT_PACKET_HEADER)
		return false;
	/* As in weft__packet_copy(), an equal even lock means that no byte of the next use was copied. */
	return weft__packet_parse(now, header) == WEFT_PACKET_FINE && now->lock == slot->packet.lock &&
	       now->sequence == slot->packet.sequence && memcmp(now->uuid, slot->packet.uuid, sizeof now->uuid) == 0;
}

/* Adds new content to the copy; returns false if the packet must be copied again. */
static bool extend_copy(struct weft_slot *slot, const unsigned char header[WEFT_PACKET_HEADER], const struct weft_packet *now)
{
	unsigned char *bytes = (unsigned char *)(uintptr_t)slot->bytes;
	if (slot->size != slot->packet.content_bytes || now->content_bytes < slot->size || now->content_bytes > slot->max_bytes)
		return false;
	if (slot->copy.bytes) {
		bytes = realloc(slot->copy.bytes, (size_t)now->content_bytes);
		if (!bytes)
			return false;
		slot->bytes = slot->copy.bytes = bytes;
	}
	if (!weft__packet_read_on(bytes, slot->size, now, &slot->memory, slot->at))
		return false;
	memcpy(bytes, header, WEFT_PACKET_HEADER);
	slot->size = (size_t)now->content_bytes;
	slot->packet = *now;
	if (slot->copy.bytes)
		slot->copy = (struct weft_packet_copy){*now, bytes, slot->size};
	return true;
}

static int recopy_slot(struct weft_slot *slot)
{
	struct weft_packet_copy copy;
	const int got = weft__packet_copy(&copy, &slot->memory, slot->at, slot->max_bytes);
	if (got < 0)
		return got;
	slot->is_changed = slot->is_changed || (slot->checked_step && got);
	free(slot->copy.bytes);
	slot->copy = got ? copy : (struct weft_packet_copy){0};
	slot->bytes = slot->copy.bytes;
	slot->size = slot->copy.size;
	slot->packet = slot->copy.packet;
	return WEFT_OK;
}

static int refresh_slot(struct weft_slot *slot, uint64_t *step)
{
	_Alignas(8) unsigned char header[WEFT_PACKET_HEADER];
	struct weft_packet now;
	const uint64_t begin = ++*step;
	const bool is_same = is_same_use(slot, header, &now);
	if (!is_same || now.content_bytes != slot->packet.content_bytes) {
		slot->is_changed = slot->is_changed || slot->bytes;
		const int status = is_same && extend_copy(slot, header, &now) ? WEFT_OK : recopy_slot(slot);
		if (status < 0)
			return status;
		slot->copied_step = 0;
	}
	slot->checked_step = begin;
	slot->copied_step = slot->copied_step ? slot->copied_step : ++*step;
	return WEFT_OK;
}

/* Sorts the slots by stream, and the slots of a stream with the newest packet first. */
static int compare_slots(const void *x, const void *y)
{
	const struct weft_slot *a = *(struct weft_slot *const *)x, *b = *(struct weft_slot *const *)y;
	return memcmp(a->packet.uuid, b->packet.uuid, sizeof a->packet.uuid) ?:
	       WEFT_ORDER(a->packet.instance, b->packet.instance) ?: WEFT_ORDER(b->packet.sequence, a->packet.sequence) ?:
	       WEFT_ORDER(a, b);
}

static bool is_of_stream(const struct weft_slot *a, const struct weft_slot *b)
{
	return a->packet.instance == b->packet.instance && memcmp(a->packet.uuid, b->packet.uuid, sizeof a->packet.uuid) == 0;
}

/* Keeps the newest packet of a stream and its contiguous predecessors.  A packet that was last read before its successor
 * existed may have grown since.  A packet that may have grown is read again, and is then either complete or overwritten. */
static int select_retained(struct weft_slot **slots, size_t count, uint64_t *step)
{
	slots[0]->is_retained = true;
	for (size_t i = 1; i < count; i++) {
		struct weft_slot *slot = slots[i];
		slot->until = slots[i - 1]->packet.begin;
		const uint64_t sequence = slots[i - 1]->packet.sequence - 1;
		if (slot->packet.sequence != sequence)
			break;
		if (slot->checked_step <= slots[i - 1]->copied_step) {
			const int status = refresh_slot(slot, step);
			if (status < 0)
				return status;
			if (!slot->bytes || slot->packet.sequence != sequence)
				break;
		}
		slot->is_retained = true;
		slots[0]->oldest = slot;
	}
	return WEFT_OK;
}

/* Selects the packets to keep among the slots of one stream, the newest first. */
static int select_retained_of_stream(struct weft_slot **slots, size_t count, uint64_t *step)
{
	bool is_changed = false;
	for (size_t i = 0; i < count; i++)
		is_changed = is_changed || slots[i]->is_changed;
	slots[0]->oldest = slots[0];
	slots[0]->until = UINT64_MAX;
	if (is_changed)
		return select_retained(slots, count, step);
	for (size_t i = 0; i < count; i++) {
		slots[i]->is_retained = true;
		if (i)
			slots[i]->until = slots[i - 1]->packet.begin;
	}
	slots[0]->oldest = slots[count - 1];
	return WEFT_OK;
}

int weft__ring_snapshot_refresh(struct weft_slot *slots, size_t count, uint64_t *step)
{
	struct weft_slot **order = malloc((count ? count : 1) * sizeof *order);
	size_t used = 0;
	int status = order ? WEFT_OK : WEFT_ENOMEM;
	for (size_t i = 0; i < count && status == WEFT_OK; i++) {
		slots[i].is_retained = false;
		slots[i].oldest = NULL;
		status = refresh_slot(&slots[i], step);
		if (slots[i].bytes && !weft__packet_is_unused(&slots[i].packet))
			order[used++] = &slots[i];
	}
	if (status == WEFT_OK)
		weft_sort(order, used, sizeof *order, compare_slots);
	for (size_t i = 0, end; i < used && status == WEFT_OK; i = end) {
		for (end = i + 1; end < used && is_of_stream(order[i], order[end]); end++)
			;
		status = select_retained_of_stream(order + i, end - i, step);
	}
	free(order);
	return status;
}

bool weft__ring_snapshot_is_good(const struct weft_slot *slots, size_t count)
{
	size_t used = 0, retained = 0;
	for (size_t i = 0; i < count; i++) {
		used += !slots[i].bytes || !weft__packet_is_unused(&slots[i].packet);
		retained += slots[i].is_retained;
	}
	return retained >= used - used / 4;
}
