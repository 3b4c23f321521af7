/* packet.h: parses the header of a native packet, and copies a packet that its program may be writing (private to src/trace).
 *
 * Files of a directory, buffers and memory images contain the same packets.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PACKET_H
#define WEFT_TRACE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define WEFT_PACKET_AT(field) offsetof(struct weft_packet_header, field)

enum { WEFT_PACKET_HEADER = sizeof(struct weft_packet_header), WEFT_PACKET_PAGE = 4096 };

/* The fields of a header. */
struct weft_packet {
	uint8_t uuid[16];
	char thread_name[WEFT_THREAD_NAME_SIZE]; /* perhaps not terminated */
	uint64_t tid;
	uint64_t bytes;         /* header, content and unused space */
	uint64_t content_bytes; /* includes the header */
	uint64_t begin;         /* ticks */
	uint64_t sequence, events_before, lost_full, lost_nested, lost_no_stream;
	uint64_t clock_hz, pair_clock, pair_wall_ns;
	uint32_t stream_class, instance, lock;
	uint16_t version, header_bytes;
};

/* The first fault of a header.  While the program runs, faults from WEFT_PACKET_CONTENT on may disappear on another read. */
enum weft_packet_fault {
	WEFT_PACKET_FINE,
	WEFT_PACKET_NONE,       /* no packet starts here */
	WEFT_PACKET_BIG_ENDIAN, /* a packet of a big-endian machine starts here */
	WEFT_PACKET_VERSION,    /* a version that this reader does not know */
	WEFT_PACKET_SIZES,      /* contradictory sizes */
	WEFT_PACKET_CLASS,      /* a stream class that this reader does not know */
	WEFT_PACKET_TIME,       /* an impossible time */
	WEFT_PACKET_CONTENT,    /* more content than the packet's size, or less than its header */
	WEFT_PACKET_REUSED      /* its program was between INVALIDATE and VALIDATE (src/record/core.c) */
};

/* Checks whether a packet starts here; returns FINE, NONE or BIG_ENDIAN. */
enum weft_packet_fault weft__packet_probe(const unsigned char *bytes, size_t left);

/* Fills *out from WEFT_PACKET_HEADER bytes, even if the header has a fault. */
enum weft_packet_fault weft__packet_parse(struct weft_packet *out, const unsigned char *header);

/* Memory that may be written concurrently.  `read` copies up to `bytes` present bytes at `at`, each aligned 8-byte word
 * atomically, and returns the number of bytes copied. */
struct weft_packet_memory {
	size_t (*read)(const void *ctx, uint64_t at, void *to, size_t bytes);
	const void *ctx;
};

/* Reads bytes of this process, aligned to 8; ctx points to offset 0. */
size_t weft__packet_read_own(const void *ctx, uint64_t at, void *to, size_t bytes);

/* A packet as it was at one moment. */
struct weft_packet_copy {
	struct weft_packet packet;
	unsigned char *bytes; /* header and content, freed by the caller; its .content_size is packet.content_bytes */
	size_t size;          /* less than packet.content_bytes if the rest was not available */
};

/* Copies the packet at `at`, which has at most max_bytes bytes.  Bytes read between two reads of the same even lock belong to one
 * use of the packet.
 *
 * Returns 1, also if the time is impossible; 0: there is no packet, or it was being reused at each of many tries; WEFT_ENOMEM. */
int weft__packet_copy(struct weft_packet_copy *out, const struct weft_packet_memory *memory, uint64_t at, uint64_t max_bytes);

/* Reads the content that a copy of `size` bytes misses, after *packet was read again with the same lock; `bytes` has capacity for
 * it.  False: the packet is being reused, or was written incompletely, and must be copied again. */
bool weft__packet_read_on(
    unsigned char *bytes, size_t size, const struct weft_packet *packet, const struct weft_packet_memory *memory, uint64_t at);

/* Returns the start of the first page of zeros at or after `from`; `end` if there is none.  Such a page never reached the disk
 * before a power failure, or is a hole of an image.  `address` is the address of packet[0]; pages are counted from address 0.
 * Events never contain so many consecutive zeros. */
size_t weft__packet_lost_page(const unsigned char *packet, uint64_t address, size_t from, size_t end);

#endif
