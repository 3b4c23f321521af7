/* buffer.c: divides the caller's memory into packets: the metadata, the definitions, and then a ring for each OS thread.
 *
 * SPDX-License-Identifier: ISC */
#include "record/core.h"

#define METADATA_BYTES 2048u
#define MIN_PACKET_BYTES 512u

static struct {
	unsigned char *buffer, *rings;
	size_t ring_bytes, packet_bytes, metadata_bytes, definitions_bytes;
	/* Packets: number of packets in one ring; definitions: number of packets of the definitions stream. */
	unsigned streams, packets, definitions;
} layout;

int weft__ring_check(uint64_t size, unsigned packets, uint64_t min_packet_bytes, const char **why)
{
	if (packets < 2 || packets > 65536) {
		*why = "a ring has 2 to 65536 packets";
		return WEFT_EINVAL;
	}
	if (size / packets < min_packet_bytes) {
		*why = "the ring is too small for that many packets";
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
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)layout.buffer;
	weft__packet_init(h, weft__recording.origin.uuid, WEFT_CLASS_METADATA, 0, layout.metadata_bytes);
	size_t length = weft__metadata_format((char *)(h + 1), METADATA_BYTES - sizeof *h, metadata);
	if (length > METADATA_BYTES - sizeof *h - 1)
		length = METADATA_BYTES - sizeof *h - 1;
	h->content_size = (sizeof *h + length) * 8;
	h->clock_hz = weft__recording.origin.clock_hz;
}

/* Continues the definitions stream in the next packet. */
static bool open_next_definitions(struct weft__stream *s)
{
	if (s->slot + 1 >= layout.definitions)
		return false;
	s->slot++;
	s->storage.base += s->storage.packet_bytes;
	return true;
}

/* Plans packets of options->packet_bytes each, so that a page contains whole packets, also those of metadata and definitions. */
static int plan_pages(const struct weft_record_options *o, size_t size, unsigned streams, const char **why)
{
	uint64_t packet = o->packet_bytes;
	if (packet % 8 || packet < METADATA_BYTES || packet > UINT32_MAX / 2) {
		*why = "packets of a buffer need at least 2048 bytes, a multiple of 8";
		return WEFT_EINVAL;
	}
	uint64_t count = size / packet, definitions = count / 16 ? count / 16 : 1;
	definitions = definitions * packet > 1 << 20 ? ((1 << 20) + packet - 1) / packet : definitions;
	uint64_t packets = count > definitions + 1 ? (count - definitions - 1) / streams : 0;
	int status = weft__ring_check(packets * packet, packets < 65536 ? (unsigned)packets : 65536, MIN_PACKET_BYTES, why);
	if (status < 0)
		return status;
	layout.packets = packets < 65536 ? (unsigned)packets : 65536;
	layout.metadata_bytes = layout.definitions_bytes = layout.packet_bytes = (size_t)packet;
	layout.definitions = (unsigned)definitions;
	return WEFT_OK;
}

static int plan_ring(const struct weft_record_options *o, size_t size, unsigned streams, const char **why)
{
	size_t definitions = size / 16 < 4096 ? 4096 : size / 16 > 1 << 20 ? 1 << 20 : size / 16 & ~(size_t)7;
	unsigned packets = o->packets ? o->packets : 16;
	size_t rest = size > METADATA_BYTES + definitions ? size - METADATA_BYTES - definitions : 0;
	int status = weft__ring_check(rest / streams, packets, MIN_PACKET_BYTES, why);
	if (status < 0)
		return status;
	layout.packets = packets;
	layout.packet_bytes = rest / streams / packets & ~(size_t)7;
	layout.metadata_bytes = METADATA_BYTES;
	layout.definitions_bytes = definitions;
	layout.definitions = 1;
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
	int status = (o->packet_bytes ? plan_pages : plan_ring)(o, size, streams, why);
	if (status < 0)
		return status;
	layout.streams = streams;
	layout.ring_bytes = layout.packet_bytes * layout.packets;
	layout.rings = buffer + layout.metadata_bytes + layout.definitions_bytes * layout.definitions;
	if (!is_clean)
		__builtin_memset(buffer, 0, size);

	layout.buffer = buffer;
	weft__buffer_metadata(metadata);

	struct weft__stream *d = &weft__recording.definitions;
	d->stream_class = WEFT_CLASS_DEFINITIONS;
	d->storage = (struct weft__storage){.base = buffer + layout.metadata_bytes,
	    .packet_bytes = layout.definitions_bytes,
	    .count = 1,
	    .grow = open_next_definitions};
	weft__stream_begin(d);
	return WEFT_OK;
}

bool weft__buffer_storage(struct weft__storage *out, unsigned index)
{
	if (index >= layout.streams)
		return false;
	*out = (struct weft__storage){
	    .base = layout.rings + index * layout.ring_bytes,
	    .packet_bytes = layout.packet_bytes,
	    .count = layout.packets,
	    .most = layout.packets,
	    .once = weft__recording.origin.mode == WEFT_RECORD_GROW,
	};
	return true;
}
