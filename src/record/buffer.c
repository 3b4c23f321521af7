/* buffer.c: packets in the caller's memory: the metadata, the definitions, then a ring for each OS thread.
 *
 * SPDX-License-Identifier: ISC */
#include "record/core.h"

#define METADATA_BYTES 2048u
#define PACKET_LEAST 512u

static struct {
	unsigned char *buffer, *rings;
	size_t ring_bytes, packet_bytes, metadata_bytes, definitions_bytes;
	unsigned streams, packets, definitions; /* packets: of a ring; definitions: packets of them */
} cut;

int weft__ring_check(uint64_t size, unsigned packets, uint64_t least, const char **why)
{
	if (packets < 2 || packets > 65536) {
		*why = "a ring has 2 to 65536 packets";
		return WEFT_EINVAL;
	}
	if (size / packets < least) {
		*why = "the ring is too small for so many packets";
		return WEFT_ETOOBIG;
	}
	if (size / packets > UINT32_MAX / 2) {
		*why = "a packet of the ring would be larger than 2 GiB";
		return WEFT_EINVAL;
	}
	return WEFT_OK;
}

void weft__buffer_metadata(const struct weft_metadata *metadata)
{
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)cut.buffer;
	weft__packet_init(h, weft__recording.origin.uuid, WEFT_CLASS_METADATA, 0, cut.metadata_bytes);
	size_t length = weft__metadata_format((char *)(h + 1), METADATA_BYTES - sizeof *h, metadata);
	if (length > METADATA_BYTES - sizeof *h - 1)
		length = METADATA_BYTES - sizeof *h - 1;
	h->content_size = (sizeof *h + length) * 8;
	h->clock_hz = weft__recording.origin.clock_hz;
}

/* The definitions go on in the packet behind the one that is full. */
static bool next_definitions(struct weft__stream *s)
{
	if (s->slot + 1 >= cut.definitions)
		return false;
	s->slot++;
	s->storage.base += s->storage.packet_bytes;
	return true;
}

/* Packets of options->packet_bytes each, so that a page holds whole ones; metadata and definitions too. */
static int cut_pages(const struct weft_record_options *o, size_t size, unsigned streams, const char **why)
{
	uint64_t packet = o->packet_bytes;
	if (packet % 8 || packet < METADATA_BYTES || packet > UINT32_MAX / 2) {
		*why = "packets of a buffer have 2048 bytes at least, a multiple of 8";
		return WEFT_EINVAL;
	}
	uint64_t count = size / packet, definitions = count / 16 ? count / 16 : 1;
	definitions = definitions * packet > 1 << 20 ? ((1 << 20) + packet - 1) / packet : definitions;
	uint64_t packets = count > definitions + 1 ? (count - definitions - 1) / streams : 0;
	int status = weft__ring_check(packets * packet, packets < 65536 ? (unsigned)packets : 65536, PACKET_LEAST, why);
	if (status < 0)
		return status;
	cut.packets = packets < 65536 ? (unsigned)packets : 65536;
	cut.metadata_bytes = cut.definitions_bytes = cut.packet_bytes = (size_t)packet;
	cut.definitions = (unsigned)definitions;
	return WEFT_OK;
}

static int cut_ring(const struct weft_record_options *o, size_t size, unsigned streams, const char **why)
{
	size_t definitions = size / 16 < 4096 ? 4096 : size / 16 > 1 << 20 ? 1 << 20 : size / 16 & ~(size_t)7;
	unsigned packets = o->packets ? o->packets : 16;
	size_t rest = size > METADATA_BYTES + definitions ? size - METADATA_BYTES - definitions : 0;
	int status = weft__ring_check(rest / streams, packets, PACKET_LEAST, why);
	if (status < 0)
		return status;
	cut.packets = packets;
	cut.packet_bytes = rest / streams / packets & ~(size_t)7;
	cut.metadata_bytes = METADATA_BYTES;
	cut.definitions_bytes = definitions;
	cut.definitions = 1;
	return WEFT_OK;
}

int weft__buffer_start(const struct weft_record_options *o, const struct weft_metadata *metadata, bool is_clean, const char **why)
{
	unsigned char *buffer = o->buffer;
	size_t size = o->buffer_bytes & ~(size_t)7;
	if ((uintptr_t)buffer & 7) {
		*why = "the buffer is not aligned to 8 bytes";
		return WEFT_EINVAL;
	}
	unsigned streams = o->streams ? o->streams : 1;
	int status = (o->packet_bytes ? cut_pages : cut_ring)(o, size, streams, why);
	if (status < 0)
		return status;
	cut.streams = streams;
	cut.ring_bytes = cut.packet_bytes * cut.packets;
	cut.rings = buffer + cut.metadata_bytes + cut.definitions_bytes * cut.definitions;
	if (!is_clean)
		__builtin_memset(buffer, 0, size);

	cut.buffer = buffer;
	weft__buffer_metadata(metadata);

	struct weft__stream *d = &weft__recording.definitions;
	d->stream_class = WEFT_CLASS_DEFINITIONS;
	d->storage = (struct weft__storage){
	    .base = buffer + cut.metadata_bytes, .packet_bytes = cut.definitions_bytes, .count = 1, .grow = next_definitions};
	weft__stream_begin(d);
	return WEFT_OK;
}

bool weft__buffer_storage(struct weft__storage *out, unsigned index)
{
	if (index >= cut.streams)
		return false;
	*out = (struct weft__storage){
	    .base = cut.rings + index * cut.ring_bytes,
	    .packet_bytes = cut.packet_bytes,
	    .count = cut.packets,
	    .most = cut.packets,
	    .once = weft__recording.origin.mode == WEFT_RECORD_GROW,
	};
	return true;
}
