/* buffer.c: packets in the caller's memory: the metadata, the definitions, then a ring for each OS thread.
 *
 * SPDX-License-Identifier: ISC */
#include "record/core.h"

#define METADATA_BYTES 2048u
#define PACKET_LEAST 512u

static struct {
	unsigned char *buffer, *rings;
	size_t ring_bytes, packet_bytes;
	unsigned streams, packets;
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
	weft__packet_init(h, weft__recording.uuid, WEFT_CLASS_METADATA, 0, METADATA_BYTES);
	size_t length = weft__metadata_format((char *)(h + 1), METADATA_BYTES - sizeof *h, metadata);
	if (length > METADATA_BYTES - sizeof *h - 1)
		length = METADATA_BYTES - sizeof *h - 1;
	h->content_size = (sizeof *h + length) * 8;
	h->clock_hz = weft__recording.clock_hz;
}

int weft__buffer_start(const struct weft_record_options *o, const struct weft_metadata *metadata, const char **why)
{
	unsigned char *buffer = o->buffer;
	size_t size = o->buffer_bytes & ~(size_t)7;
	if ((uintptr_t)buffer & 7) {
		*why = "the buffer is not aligned to 8 bytes";
		return WEFT_EINVAL;
	}
	size_t definitions = size / 16 < 4096 ? 4096 : size / 16 > 1 << 20 ? 1 << 20 : size / 16 & ~(size_t)7;
	unsigned streams = o->streams ? o->streams : 1, packets = o->packets ? o->packets : 16;
	size_t rest = size > METADATA_BYTES + definitions ? size - METADATA_BYTES - definitions : 0;
	int status = weft__ring_check(rest / streams, packets, PACKET_LEAST, why);
	if (status < 0)
		return status;
	cut.streams = streams;
	cut.packets = packets;
	cut.packet_bytes = rest / streams / packets & ~(size_t)7;
	cut.ring_bytes = cut.packet_bytes * packets;
	cut.rings = buffer + METADATA_BYTES + definitions;
	__builtin_memset(buffer, 0, size);

	cut.buffer = buffer;
	weft__buffer_metadata(metadata);

	struct weft__stream *d = &weft__recording.definitions;
	d->stream_class = WEFT_CLASS_DEFINITIONS;
	d->storage =
	    (struct weft__storage){.base = buffer + METADATA_BYTES, .packet_bytes = definitions, .count = 1, .once = true};
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
	    .once = weft__recording.mode == WEFT_RECORD_GROW,
	};
	return true;
}
