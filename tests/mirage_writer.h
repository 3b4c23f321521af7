/* mirage_writer.h: writes traces in mirage-profile's format, also invalid ones that no recorder would write.
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_MIRAGE_WRITER_H
#define TESTS_MIRAGE_WRITER_H

#include <stdint.h>
#include <string.h>

#include "weft/vocabulary.h"

struct mirage_writer {
	unsigned char bytes[1 << 16];
	size_t size;   /* bytes of all packets so far */
	size_t packet; /* offset of the current packet */
};

static inline void mw_bytes(struct mirage_writer *w, const void *bytes, size_t len)
{
	memcpy(w->bytes + w->size, bytes, len);
	w->size += len;
}

static inline void mw_u64(struct mirage_writer *w, int64_t value)
{
	unsigned char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)((uint64_t)value >> 8 * i);
	mw_bytes(w, bytes, 8);
}

/* Sets the sizes of the current packet, in bytes. */
static inline void mw_sizes(struct mirage_writer *w, uint32_t packet_bytes, uint32_t content_bytes)
{
	uint32_t size = packet_bytes * 8, content = content_bytes * 8;
	memcpy(w->bytes + w->packet + 20, &size, 4);
	memcpy(w->bytes + w->packet + 26, &content, 4);
}

static inline void mw_packet(struct mirage_writer *w, uint16_t count)
{
	static const unsigned char start[20] = {0xC1, 0x1F, 0xFC, 0xC1, 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3,
	    0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c};
	w->packet = w->size;
	mw_bytes(w, start, 20);
	mw_bytes(w, "\0\0\0\0", 4);
	mw_bytes(w, &count, 2);
	mw_bytes(w, "\0\0\0\0", 4);
}

/* Ends the current packet, with `unused` bytes of zeros behind its content. */
static inline void mw_end(struct mirage_writer *w, size_t unused)
{
	uint32_t content = (uint32_t)(w->size - w->packet);
	memset(w->bytes + w->size, 0, unused);
	w->size += unused;
	mw_sizes(w, content + (uint32_t)unused, content);
}

static inline void mw_op(struct mirage_writer *w, int64_t time_ns, unsigned char op, int64_t first)
{
	mw_u64(w, time_ns);
	mw_bytes(w, &op, 1);
	mw_u64(w, first);
}

static inline void mw_link(struct mirage_writer *w, int64_t time_ns, unsigned char op, int64_t first, int64_t second)
{
	mw_op(w, time_ns, op, first);
	mw_u64(w, second);
}

static inline void mw_create(struct mirage_writer *w, int64_t time_ns, int64_t creator, int64_t id, unsigned char kind)
{
	mw_link(w, time_ns, WEFT_OP_CREATE, creator, id);
	mw_bytes(w, &kind, 1);
}

static inline void mw_label(struct mirage_writer *w, int64_t time_ns, int64_t id, const char *text)
{
	mw_op(w, time_ns, WEFT_OP_LABEL, id);
	mw_bytes(w, text, strlen(text) + 1);
}

/* fail, counter, counter_add */
static inline void mw_text(
    struct mirage_writer *w, int64_t time_ns, unsigned char op, int64_t first, int64_t second, const char *text)
{
	mw_link(w, time_ns, op, first, second);
	mw_bytes(w, text, strlen(text) + 1);
}

#endif
