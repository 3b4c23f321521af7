/* packet.h: one packet of a native trace: what its header says, and how it is copied while its program may be writing it (private
 * to src/trace).
 *
 * A directory's files, a buffer and the image of a memory hold the same packets; whoever finds one asks here what it is worth.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PACKET_H
#define WEFT_TRACE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

#define WEFT_PACKET_AT(field) offsetof(struct weft_packet_header, field)

enum { WEFT_PACKET_HEADER = sizeof(struct weft_packet_header), WEFT_PACKET_PAGE = 4096 };

/* What a header says. */
struct weft_packet {
	uint8_t uuid[16];
	char thread_name[WEFT_THREAD_NAME_SIZE]; /* perhaps not terminated */
	uint64_t tid;
	uint64_t bytes;         /* of header, content and the room that is not used */
	uint64_t content_bytes; /* header included */
	uint64_t begin;         /* ticks */
	uint64_t sequence, events_before, lost_full, lost_nested, lost_no_stream;
	uint64_t clock_hz, pair_clock, pair_wall_ns;
	uint32_t stream_class, instance, lock;
	uint16_t version, header_bytes;
};

/* The first thing that is wrong with a header.  What is from WEFT_PACKET_CONTENT on may be gone at another look, while the
 * packet's program runs. */
enum weft_packet_fault {
	WEFT_PACKET_FINE,
	WEFT_PACKET_NONE,       /* no packet begins there */
	WEFT_PACKET_BIG_ENDIAN, /* one of a big-endian machine does */
	WEFT_PACKET_VERSION,    /* of a version that this reader does not know */
	WEFT_PACKET_SIZES,      /* sizes that contradict each other */
	WEFT_PACKET_CLASS,      /* of a class of streams that this reader does not know */
	WEFT_PACKET_TIME,       /* a time that no clock shows */
	WEFT_PACKET_CONTENT,    /* more content than the packet has room for, or less than its header */
	WEFT_PACKET_REUSED      /* its program stood between INVALIDATE and VALIDATE (src/record/core.c) */
};

/* Whether a packet begins in these bytes: FINE, NONE or BIG_ENDIAN. */
enum weft_packet_fault weft__packet_probe(const unsigned char *bytes, size_t left);

/* Fills *out from WEFT_PACKET_HEADER bytes.  *out says what the header says, whatever is wrong with it. */
enum weft_packet_fault weft__packet_parse(struct weft_packet *out, const unsigned char *header);

/* Where bytes stand that somebody may be writing.  `read` copies at most `bytes` of what stands at `at` now, each aligned word of
 * 8 bytes whole, and returns how many it could copy. */
struct weft_packet_memory {
	size_t (*read)(const void *ctx, uint64_t at, void *to, size_t bytes);
	const void *ctx;
};

/* Bytes of this process, aligned to 8; ctx points to the byte that `at` 0 means. */
size_t weft__packet_read_own(const void *ctx, uint64_t at, void *to, size_t bytes);

/* A packet as it was at one moment. */
struct weft_packet_copy {
	struct weft_packet packet;
	unsigned char *bytes; /* header and content, to be freed; its .content_size is packet.content_bytes */
	size_t size;          /* less than packet.content_bytes where the rest was not there */
};

/* Copies the packet at `at`, of which no more than `room` bytes are its own.  What is read between two looks that find the same
 * even lock is of one use of the packet.
 *
 * Returns 1, also for one whose time is impossible; 0: there is no packet, or it was being reused at each of many looks;
 * WEFT_ENOMEM. */
int weft__packet_copy(struct weft_packet_copy *out, const struct weft_packet_memory *memory, uint64_t at, uint64_t room);

/* Reads what a copy of `size` bytes lacks of its packet's content, of which *packet was read since, with the same lock; `bytes`
 * has room for it.  false: the packet is being reused, or was not written as a whole, and is to be copied anew. */
bool weft__packet_read_on(
    unsigned char *bytes, size_t size, const struct weft_packet *packet, const struct weft_packet_memory *memory, uint64_t at);

/* Where the first page of zeros begins, at or behind `from`: a page that a power failure kept from the disk, or a hole of an
 * image; `end` if there is none.  `address` is that of packet[0]; pages are counted from address 0.  No events have so many zeros
 * in a row. */
size_t weft__packet_lost_page(const unsigned char *packet, uint64_t address, size_t from, size_t end);

#endif
