/* packet.c: parses and copies packets (packet.h).
 * SPDX-License-Identifier: ISC */
#include "trace/packet.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <weft/status.h>

#include "base/cursor.h"
#include "base/vec.h"

enum { MAX_TRIES = 100, PIECE_BYTES = 1 << 16, MIN_ZERO_BYTES = 64 };

enum weft_packet_fault weft__packet_probe(const unsigned char *bytes, size_t left)
{
	if (left < WEFT_PACKET_HEADER)
		return WEFT_PACKET_NONE;
	uint32_t magic = weft_load_u32(bytes), mark = weft_load_u32(bytes + WEFT_PACKET_AT(mark));
	if (magic == WEFT_PACKET_MAGIC && mark == WEFT_PACKET_MARK)
		return WEFT_PACKET_FINE;
	bool swapped = magic == __builtin_bswap32(WEFT_PACKET_MAGIC) && mark == __builtin_bswap32(WEFT_PACKET_MARK);
	return swapped ? WEFT_PACKET_BIG_ENDIAN : WEFT_PACKET_NONE;
}

enum weft_packet_fault weft__packet_parse(struct weft_packet *out, const unsigned char *h)
{
	const uint64_t content_bits = weft_load_u64(h + WEFT_PACKET_AT(content_size)),
		       bits = weft_load_u64(h + WEFT_PACKET_AT(packet_size));
	*out = (struct weft_packet){
	    .tid = weft_load_u64(h + WEFT_PACKET_AT(tid)),
	    .bytes = bits / 8,
	    .content_bytes = content_bits / 8,
	    .begin = weft_load_u64(h + WEFT_PACKET_AT(timestamp_begin)),
	    .sequence = weft_load_u64(h + WEFT_PACKET_AT(sequence)),
	    .events_before = weft_load_u64(h + WEFT_PACKET_AT(events_before)),
	    .lost_full = weft_load_u64(h + WEFT_PACKET_AT(lost_full)),
	    .lost_nested = weft_load_u64(h + WEFT_PACKET_AT(lost_nested)),
	    .lost_no_stream = weft_load_u64(h + WEFT_PACKET_AT(lost_no_stream)),
	    .clock_hz = weft_load_u64(h + WEFT_PACKET_AT(clock_hz)),
	    .pair_clock = weft_load_u64(h + WEFT_PACKET_AT(pair_clock)),
	    .pair_wall_ns = weft_load_u64(h + WEFT_PACKET_AT(pair_wall_ns)),
	    .stream_class = weft_load_u32(h + WEFT_PACKET_AT(stream_id)),
	    .instance = weft_load_u32(h + WEFT_PACKET_AT(stream_instance_id)),
	    .lock = weft_load_u32(h + WEFT_PACKET_AT(lock)),
	    .version = weft_load_u16(h + WEFT_PACKET_AT(version)),
	    .header_bytes = weft_load_u16(h + WEFT_PACKET_AT(header_bytes)),
	};
	memcpy(out->uuid, h + WEFT_PACKET_AT(uuid), sizeof out->uuid);
	memcpy(out->thread_name, h + WEFT_PACKET_AT(thread_name), sizeof out->thread_name);
	enum weft_packet_fault probed = weft__packet_probe(h, WEFT_PACKET_HEADER);
	if (probed != WEFT_PACKET_FINE)
		return probed;
	if (out->version < 1 || out->version > WEFT_WIRE_VERSION)
		return WEFT_PACKET_VERSION;
	if (bits % 8 || out->bytes > UINT32_MAX || out->header_bytes < WEFT_PACKET_HEADER || out->bytes < out->header_bytes)
		return WEFT_PACKET_SIZES;
	if (out->stream_class > WEFT_CLASS_MEMORY)
		return WEFT_PACKET_CLASS;
	if (out->begin > INT64_MAX)
		return WEFT_PACKET_TIME;
	if (content_bits % 8 || out->content_bytes < out->header_bytes || out->content_bytes > out->bytes)
		return WEFT_PACKET_CONTENT;
	return out->lock & 1 ? WEFT_PACKET_REUSED : WEFT_PACKET_FINE;
}

size_t weft__packet_read_own(const void *ctx, uint64_t at, void *to, size_t bytes)
{
	const unsigned char *from = (const unsigned char *)ctx + at;
	size_t words = bytes / 8 * 8;
	for (size_t i = 0; i < words; i += 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)(from + i), __ATOMIC_RELAXED);
		memcpy((unsigned char *)to + i, &word, sizeof word);
	}
	memcpy((unsigned char *)to + words, from + words, bytes - words);
	return bytes;
}

typedef WEFT_VEC(unsigned char) byte_vec;

/* Reads the bytes that exist in pieces, because a damaged header may claim too many bytes. */
static bool read_content(byte_vec *out, const struct weft_packet_memory *memory, uint64_t at, uint64_t bytes)
{
	while (out->count < bytes) {
		size_t wanted = bytes - out->count < PIECE_BYTES ? (size_t)(bytes - out->count) : PIECE_BYTES,
		       before = out->count;
		if (!weft_vec_reserve(out, wanted))
			return false;
		size_t got = memory->read(memory->ctx, at + before, out->items + before, wanted);
		/* A page that started in the previous piece can be recognized as zeros only when its rest was read. */
		size_t from = before < WEFT_PACKET_PAGE ? 0 : before - WEFT_PACKET_PAGE;
		out->count = weft__packet_lost_page(out->items, at, from, before + got);
		if (out->count < before + wanted)
			break;
	}
	return true;
}

/* Reads the packet header at `at`.  The fence orders later reads after the read of the header. */
static enum weft_packet_fault read_packet_header(
    struct weft_packet *out, unsigned char *header, const struct weft_packet_memory *memory, uint64_t at)
{
	bool is_there = memory->read(memory->ctx, at, header, WEFT_PACKET_HEADER) == WEFT_PACKET_HEADER;
	WEFT__FENCE(__ATOMIC_ACQUIRE);
	return is_there ? weft__packet_parse(out, header) : WEFT_PACKET_NONE;
}

/* Stores the bytes as a copy of the packet with the given header; content that came later is not included. */
static void store_copy(
    struct weft_packet_copy *out, byte_vec *bytes, const struct weft_packet *packet, const unsigned char *header)
{
	memcpy(bytes->items, header, WEFT_PACKET_HEADER);
	unsigned char *trimmed = realloc(bytes->items, bytes->count);
	*out = (struct weft_packet_copy){*packet, trimmed ? trimmed : bytes->items, bytes->count};
}

int weft__packet_copy(struct weft_packet_copy *out, const struct weft_packet_memory *memory, uint64_t at, uint64_t max_bytes)
{
	_Alignas(8) unsigned char header[WEFT_PACKET_HEADER], after[WEFT_PACKET_HEADER];
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		struct weft_packet packet, now;
		enum weft_packet_fault fault = read_packet_header(&packet, header, memory, at);
		if (fault >= WEFT_PACKET_CONTENT) {
			sched_yield();
			continue;
		}
		if (fault != WEFT_PACKET_FINE && fault != WEFT_PACKET_TIME)
			return 0;
		byte_vec bytes = {0};
		if (!read_content(&bytes, memory, at, packet.content_bytes < max_bytes ? packet.content_bytes : max_bytes)) {
			weft_vec_free(&bytes);
			return WEFT_ENOMEM;
		}
		/* The fence pairs with the fence after INVALIDATE: if any byte belonged to the next use of the packet, the lock
		 * that is read after the fence would differ. */
		WEFT__FENCE(__ATOMIC_ACQUIRE);
		if (bytes.count >= WEFT_PACKET_HEADER && read_packet_header(&now, after, memory, at) != WEFT_PACKET_NONE &&
		    now.lock == packet.lock) {
			store_copy(out, &bytes, &packet, header);
			return 1;
		}
		bool is_short = bytes.count < WEFT_PACKET_HEADER;
		weft_vec_free(&bytes);
		if (is_short)
			return 0;
	}
	return 0;
}

bool weft__packet_read_on(
    unsigned char *bytes, size_t size, const struct weft_packet *packet, const struct weft_packet_memory *memory, uint64_t at)
{
	_Alignas(8) unsigned char after[WEFT_PACKET_HEADER];
	struct weft_packet now;
	const size_t from = size / 8 * 8, end = (size_t)packet->content_bytes;
	WEFT__FENCE(__ATOMIC_ACQUIRE);
	if (memory->read(memory->ctx, at + from, bytes + from, end - from) < end - from ||
	    weft__packet_lost_page(bytes, at, from < WEFT_PACKET_PAGE ? 0 : from - WEFT_PACKET_PAGE, end) < end)
		return false;
	WEFT__FENCE(__ATOMIC_ACQUIRE); /* as in weft__packet_copy() */
	return read_packet_header(&now, after, memory, at) != WEFT_PACKET_NONE && now.lock == packet->lock;
}

size_t weft__packet_lost_page(const unsigned char *packet, uint64_t address, size_t from, size_t end)
{
	size_t first = (size_t)((WEFT_PACKET_PAGE - (address + from) % WEFT_PACKET_PAGE) % WEFT_PACKET_PAGE);
	for (size_t at = from + first; at < end && end - at >= MIN_ZERO_BYTES; at += WEFT_PACKET_PAGE) {
		size_t i = 0, stop = end - at < WEFT_PACKET_PAGE ? end - at : WEFT_PACKET_PAGE;
		while (i < stop && packet[at + i] == 0)
			i++;
		if (i == stop)
			return at;
	}
	return end;
}
