/* generate_mirage.c: writes events into a file of the mirage-profile format, in packets of 1 MB that never wrap.
 * SPDX-License-Identifier: ISC */
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_BYTES (1u << 20)
#define HEADER_BYTES 30u
#define FIXED_BYTES 33u /* the longest event without its string and the NUL */

struct mirage {
	struct sink sink;
	FILE *file;
	uint32_t used;
	uint16_t count;
	unsigned char packet[PACKET_BYTES];
};

static void packet_begin(struct mirage *m)
{
	static const unsigned char start[20] = {0xC1, 0x1F, 0xFC, 0xC1, 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3,
	    0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c};
	memcpy(m->packet, start, sizeof start);
	memcpy(m->packet + 24, &m->count, 2);
	m->used = HEADER_BYTES;
}

/* The last packet is as long as its contents. */
static void packet_end(struct mirage *m, bool last)
{
	uint32_t bytes = last ? m->used : PACKET_BYTES, size_bits = bytes * 8, content_bits = m->used * 8;
	memcpy(m->packet + 20, &size_bits, 4);
	memcpy(m->packet + 26, &content_bits, 4);
	memset(m->packet + m->used, 0, bytes - m->used);
	if (fwrite(m->packet, 1, bytes, m->file) != bytes)
		die("cannot write");
	m->count++;
	packet_begin(m);
}

static unsigned char *put_u64(unsigned char *at, int64_t value)
{
	memcpy(at, &value, 8);
	return at + 8;
}

static unsigned char *put_text(unsigned char *at, struct weft_str text)
{
	const char *nul = memchr(text.ptr, 0, text.len);
	size_t len = nul ? (size_t)(nul - text.ptr) : text.len;
	memcpy(at, text.ptr, len);
	at[len] = 0;
	return at + len + 1;
}

static void put(struct sink *sink, const struct weft_event *e)
{
	struct mirage *m = (struct mirage *)sink;
	struct weft_str text = e->text.ptr ? e->text : (struct weft_str){"", 0};
	uint8_t op = e->op;

	/* An op that the format lacks is written as the most similar op. */
	switch (e->op) {
	case WEFT_OP_SHOULD_RESOLVE:
		op = WEFT_OP_LABEL;
		text = (struct weft_str){"__should_resolve", 16};
		break;
	case WEFT_OP_NOTE: op = WEFT_OP_LABEL; break;
	case WEFT_OP_RESUME:
	case WEFT_OP_IDLE: op = WEFT_OP_RUN; break;
	case WEFT_OP_PENDING: op = WEFT_OP_CREATE; break;
	case WEFT_OP_PAUSE_BEGIN:
	case WEFT_OP_PAUSE_END: return;
	}
	if (PACKET_BYTES - m->used < FIXED_BYTES + text.len + 1) {
		if (text.len > PACKET_BYTES / 2)
			die("a text of %u bytes does not fit in a packet", text.len);
		packet_end(m, false);
	}
	unsigned char *at = put_u64(m->packet + m->used, e->time_ns);
	*at++ = op;
	switch (op) {
	case WEFT_OP_CREATE:
		at = put_u64(put_u64(at, e->a), e->b);
		*at++ = e->kind;
		break;
	case WEFT_OP_SIGNAL: /* the receiver comes first, since it runs */
	case WEFT_OP_SIGNAL_ONLY: at = put_u64(put_u64(at, e->b), e->a); break;
	case WEFT_OP_FAIL: at = put_text(put_u64(put_u64(at, e->a), e->b), text); break;
	case WEFT_OP_LABEL: at = put_text(put_u64(at, e->a), text); break;
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD: at = put_text(put_u64(put_u64(at, e->a), e->value), text); break;
	case WEFT_OP_RUN: at = put_u64(at, e->op == WEFT_OP_IDLE ? WEFT_SYSTEM_ID : e->a); break;
	case WEFT_OP_PAUSE: at = put_u64(at, e->value); break;
	default: at = put_u64(put_u64(at, e->a), e->b);
	}
	m->used = (uint32_t)(at - m->packet);
}

static void mirage_close(struct sink *sink)
{
	struct mirage *m = (struct mirage *)sink;
	packet_end(m, true);
	if (fflush(m->file) || ferror(m->file) || (m->file != stdout && fclose(m->file)))
		die("cannot write");
	free(m);
}

struct sink *sink_mirage(const char *path)
{
	struct mirage *m = malloc(sizeof *m);
	if (!m)
		die("out of memory");
	m->sink = (struct sink){.put = put, .close = mirage_close};
	m->count = 0;
	m->file = strcmp(path, "-") ? fopen(path, "wb") : stdout;
	if (!m->file)
		die("%s: cannot create", path);
	packet_begin(m);
	return &m->sink;
}
