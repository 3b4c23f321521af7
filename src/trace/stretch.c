/* stretch.c: see stretch.h.  SPDX-License-Identifier: ISC */
#include "trace/stretch.h"

#include <stdlib.h>
#include <string.h>
#include <weft/status.h>

#include "base/sort.h"

bool weft__packet_is_unused(const struct weft_packet *packet)
{
	return packet->stream_class == WEFT_CLASS_EVENTS && packet->content_bytes == packet->header_bytes && !packet->tid &&
	       !packet->thread_name[0];
}

/* Whether there is a copy of what stands there now, which may have grown since; its header is *now. */
static bool is_same_use(const struct weft_slot *slot, unsigned char header[WEFT_PACKET_HEADER], struct weft_packet *now)
{
	if (!slot->bytes || slot->memory.read(slot->memory.ctx, slot->at, header, WEFT_PACKET_HEADER) < WEFT_PACKET_HEADER)
		return false;
	/* As in weft__packet_copy(): an equal even lock means that nothing of the next use was copied. */
	return weft__packet_parse(now, header) == WEFT_PACKET_FINE && now->lock == slot->packet.lock &&
	       now->sequence == slot->packet.sequence && memcmp(now->uuid, slot->packet.uuid, sizeof now->uuid) == 0;
}

/* Adds to the copy what came since; false: it is to be made anew. */
static bool grow(struct weft_slot *slot, const unsigned char header[WEFT_PACKET_HEADER], const struct weft_packet *now)
{
	unsigned char *bytes = (unsigned char *)(uintptr_t)slot->bytes;
	if (slot->size != slot->packet.content_bytes || now->content_bytes < slot->size || now->content_bytes > slot->room)
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

static int copy_anew(struct weft_slot *slot)
{
	struct weft_packet_copy copy;
	const int got = weft__packet_copy(&copy, &slot->memory, slot->at, slot->room);
	if (got < 0)
		return got;
	slot->is_changed = slot->is_changed || (slot->looked && got);
	free(slot->copy.bytes);
	slot->copy = got ? copy : (struct weft_packet_copy){0};
	slot->bytes = slot->copy.bytes;
	slot->size = slot->copy.size;
	slot->packet = slot->copy.packet;
	return WEFT_OK;
}

static int look(struct weft_slot *slot, uint64_t *step)
{
	_Alignas(8) unsigned char header[WEFT_PACKET_HEADER];
	struct weft_packet now;
	const uint64_t begin = ++*step;
	const bool is_same = is_same_use(slot, header, &now);
	if (!is_same || now.content_bytes != slot->packet.content_bytes) {
		slot->is_changed = slot->is_changed || slot->bytes;
		const int status = is_same && grow(slot, header, &now) ? WEFT_OK : copy_anew(slot);
		if (status < 0)
			return status;
		slot->seen = 0;
	}
	slot->looked = begin;
	slot->seen = slot->seen ? slot->seen : ++*step;
	return WEFT_OK;
}

/* Streams apart; in each the newest packet first. */
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

/* Keeps the newest packet and those that lead to it.  One that was last looked at before its successor was there may have grown
 * since, and is looked at again: then it is whole, or gone. */
static int settle(struct weft_slot **slots, size_t count, uint64_t *step)
{
	slots[0]->is_kept = true;
	for (size_t i = 1; i < count; i++) {
		struct weft_slot *slot = slots[i];
		slot->until = slots[i - 1]->packet.begin;
		const uint64_t sequence = slots[i - 1]->packet.sequence - 1;
		if (slot->packet.sequence != sequence)
			break;
		if (slot->looked <= slots[i - 1]->seen) {
			const int status = look(slot, step);
			if (status < 0)
				return status;
			if (!slot->bytes || slot->packet.sequence != sequence)
				break;
		}
		slot->is_kept = true;
		slots[0]->oldest = slot;
	}
	return WEFT_OK;
}

/* The slots of one stream, newest first. */
static int settle_stream(struct weft_slot **slots, size_t count, uint64_t *step)
{
	bool is_changed = false;
	for (size_t i = 0; i < count; i++)
		is_changed = is_changed || slots[i]->is_changed;
	slots[0]->oldest = slots[0];
	slots[0]->until = UINT64_MAX;
	if (is_changed)
		return settle(slots, count, step);
	for (size_t i = 0; i < count; i++) {
		slots[i]->is_kept = true;
		if (i)
			slots[i]->until = slots[i - 1]->packet.begin;
	}
	slots[0]->oldest = slots[count - 1];
	return WEFT_OK;
}

int weft__stretch_look(struct weft_slot *slots, size_t count, uint64_t *step)
{
	struct weft_slot **order = malloc((count ? count : 1) * sizeof *order);
	size_t used = 0;
	int status = order ? WEFT_OK : WEFT_ENOMEM;
	for (size_t i = 0; i < count && status == WEFT_OK; i++) {
		slots[i].is_kept = false;
		slots[i].oldest = NULL;
		status = look(&slots[i], step);
		if (slots[i].bytes && !weft__packet_is_unused(&slots[i].packet))
			order[used++] = &slots[i];
	}
	if (status == WEFT_OK)
		weft_sort(order, used, sizeof *order, compare_slots);
	for (size_t i = 0, end; i < used && status == WEFT_OK; i = end) {
		for (end = i + 1; end < used && is_of_stream(order[i], order[end]); end++)
			;
		status = settle_stream(order + i, end - i, step);
	}
	free(order);
	return status;
}

bool weft__stretch_is_good(const struct weft_slot *slots, size_t count)
{
	size_t used = 0, kept = 0;
	for (size_t i = 0; i < count; i++) {
		used += !slots[i].bytes || !weft__packet_is_unused(&slots[i].packet);
		kept += slots[i].is_kept;
	}
	return kept >= used - used / 4;
}
