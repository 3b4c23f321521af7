/* packet.h: parses the header of a native packet, and copies a packet to which its program may be writing (private to
 * src/trace).
 *
 * The files of a directory, buffers and memory images contain the same kind of packets.  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PACKET_H
#define WEFT_TRACE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define WEFT_PACKET_AT(field) offsetof(struct weft_packet_header, field)

enum { WEFT_PACKET_HEADER = sizeof(struct weft_packet_header), WEFT_PACKET_PAGE = 4096 };

/* The fields of a packet header. */
struct weft_packet {
	uint8_t uuid[16];
	char thread_name[WEFT_THREAD_NAME_SIZE]; /* perhaps not terminated */
	uint64_t tid;
	uint64_t bytes;         /* size of the whole packet: header, content and unused space */
	uint64_t content_bytes; /* includes the header */
	uint64_t begin;         /* ticks */
	uint64_t sequence, events_before, lost_full, lost_nested, lost_no_stream;
	uint64_t clock_hz, pair_clock, pair_wall_ns;
	uint32_t stream_class, instance, lock;
	uint16_t version, header_bytes;
};

/* The first fault that was found in a packet header.  While the program runs, the faults from WEFT_PACKET_CONTENT on may
 * disappear when the header is read again. */
enum weft_packet_fault {
	WEFT_PACKET_FINE,
	WEFT_PACKET_NONE,       /* no packet starts here */
	WEFT_PACKET_BIG_ENDIAN, /* the packet was written by a big-endian machine */
	WEFT_PACKET_VERSION,    /* the packet has a version that this reader does not know */
	WEFT_PACKET_SIZES,      /* contradictory sizes */
	WEFT_PACKET_CLASS,      /* the packet has a stream class that this reader does not know */
	WEFT_PACKET_TIME,       /* an impossible time */
	WEFT_PACKET_CONTENT,    /* the content is larger than the packet, or smaller than its header */
	WEFT_PACKET_REUSED      /* the program was between INVALIDATE and VALIDATE (src/record/core.c) */
};

/* Checks whether a packet starts at `bytes`; returns FINE, NONE or BIG_ENDIAN. */
enum weft_packet_fault weft__packet_probe(const unsigned char *bytes, size_t left);

/* Parses WEFT_PACKET_HEADER bytes into *out, even if the header has a fault. */
enum weft_packet_fault weft__packet_parse(struct weft_packet *out, const unsigned char *header);

/* Memory to which a program may be writing.  `read` copies up to `bytes` present bytes at `at`, each aligned 8-byte word
 * atomically, and returns the number of bytes copied. */
struct weft_packet_memory {
	size_t (*read)(const void *ctx, uint64_t at, void *to, size_t bytes);
	const void *ctx;
};

/* Reads bytes of this process, aligned to 8; ctx points to offset 0. */
size_t weft__packet_read_own(const void *ctx, uint64_t at, void *to, size_t bytes);

/* A copy of a packet as it was at one moment. */
struct weft_packet_copy {
	struct weft_packet packet;
	/* header and content of the packet, which the caller frees; .content_size of the header is packet.content_bytes */
	unsigned char *bytes;
	size_t size; /* number of bytes of the copy; less than packet.content_bytes if the rest was not available */
};

/* Copies the packet at `at`, which has at most max_bytes bytes.  Bytes that were read between two reads of the same even lock
 * belong to one use of the packet.
 *
 * Returns 1, even if the packet's time is impossible; 0 if there is no packet, or if it was being reused at each of many
 * attempts; WEFT_ENOMEM when out of memory. */
int weft__packet_copy(struct weft_packet_copy *out, const struct weft_packet_memory *memory, uint64_t at, uint64_t max_bytes);

/* Reads the content that a copy of `size` bytes lacks, after *packet was read again with the same lock; `bytes` must have
 * capacity for it.  Returns false if the packet is being reused, or was written incompletely, and must be copied again. */
bool weft__packet_read_on(
    unsigned char *bytes, size_t size, const struct weft_packet *packet, const struct weft_packet_memory *memory, uint64_t at);

/* Returns the start of the first page of zeros at or after `from`; `end` if there is none.  A page of zeros never reached the
 * disk before a power failure, or is a hole of an image.  `address` is the address of packet[0]; pages are counted from address
 * 0.  Events never contain so many consecutive zeros. */
size_t weft__packet_lost_page(const unsigned char *packet, uint64_t address, size_t from, size_t end);

#endif
