/* mirage.c: reads the traces of mirage-profile: one file, a ring of CTF packets, one stream.
 *
 * The header of a packet has 30 bytes, little-endian:
 *
 *	0        4                     20       24     26       30
 *	| magic  | UUID                | size   | count| content|
 *
 * Sizes are in bits and include the header.  An event is a u64 time in ns, a u8 operation, and the operands of the operation
 * (see decode_event()).  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/vec.h"
#include "trace/format.h"

#define HEADER_BYTES 30u
#define MAGIC_BYTES 20u
#define BATCH 256

static const unsigned char magic[MAGIC_BYTES] = {
    0xC1, 0x1F, 0xFC, 0xC1, 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97, 0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c};

struct packet {
	uint64_t offset, end; /* range of the packet's content in the file; includes the header */
	uint64_t index;       /* in the file */
	uint16_t count;
};

struct mirage {
	WEFT_VEC(struct packet) packets; /* oldest first */
	struct weft_stream_info stream;
	size_t at; /* index into packets */
	struct weft_cursor cursor;
	int64_t last_ns;
	struct weft_event batch[BATCH];
};

static enum weft_confidence probe_source(const struct weft_source *source)
{
	if (source->blob_count != 1)
		return WEFT_CONFIDENCE_NONE;
	const struct weft_blob *blob = &source->blobs[0];
	bool has_magic = blob->size >= MAGIC_BYTES && memcmp(blob->bytes, magic, MAGIC_BYTES) == 0;
	return has_magic ? WEFT_CONFIDENCE_SURE : WEFT_CONFIDENCE_NONE;
}

/* Finds the next packet header at or after `from`; returns the size of the file if there is none. */
static uint64_t find_header(const struct weft_blob *blob, uint64_t from)
{
	for (size_t at = from < blob->size ? (size_t)from : blob->size; at < blob->size;) {
		/* Holes of the file are skipped, because they may be larger than memory. */
		const struct weft_span data = weft__blob_data(blob, at);
		const unsigned char *found = memmem(blob->bytes + data.begin, data.end - data.begin, magic, MAGIC_BYTES);
		if (found)
			return (uint64_t)(found - blob->bytes);
		at = data.end;
	}
	return blob->size;
}

/* Notes the packet at `offset`; *next is the start of the next packet. */
static int read_header(struct weft_trace *trace, uint64_t offset, uint64_t index, uint64_t *next)
{
	struct mirage *m = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[0];
	uint64_t left = blob->size - offset;
	if (left < HEADER_BYTES) {
		weft__trace_skip(trace, blob, index, offset, left, "the file ends in the middle of a packet header");
		*next = blob->size;
		return WEFT_OK;
	}
	const unsigned char *header = blob->bytes + offset;
	uint64_t size = weft_load_u32(header + 20) / 8, content = weft_load_u32(header + 26) / 8;
	bool truncated = size > left;
	if (size < HEADER_BYTES) {
		/* The end of the packet is unknown, but not after the next header. */
		*next = find_header(blob, offset + HEADER_BYTES);
		size = *next - offset;
		weft__trace_skip(
		    trace, blob, index, offset, 0, "packet size %u bits is below the header's", weft_load_u32(header + 20));
	} else if (truncated) {
		weft__trace_skip(trace, blob, index, offset, size - left,
		    "truncated: the packet has %llu bytes, the file only %llu of them", (unsigned long long)size,
		    (unsigned long long)left);
		size = left;
		*next = blob->size;
	} else
		*next = offset + size;
	if (content > size) {
		if (!truncated)
			weft__trace_skip(trace, blob, index, offset, content - size,
			    "content size %llu is above the %llu bytes of the packet", (unsigned long long)content,
			    (unsigned long long)size);
		content = size;
	} else if (content < HEADER_BYTES) {
		weft__trace_skip(trace, blob, index, offset, size - HEADER_BYTES, "content size %llu is below the header's",
		    (unsigned long long)content);
		content = HEADER_BYTES;
	}
	m->stream.packets++;
	m->stream.bytes += content;
	if (content == HEADER_BYTES)
		return WEFT_OK;
	struct packet *packet = weft_vec_push(&m->packets);
	if (!packet)
		return WEFT_ENOMEM;
	*packet = (struct packet){.offset = offset, .end = offset + content, .index = index, .count = weft_load_u16(header + 24)};
	return WEFT_OK;
}

/* Moves the oldest packet to the front.  The packets of the ring are in order, except at the place that was being written;
 * unused packets are not in the list. */
static bool rotate_packets(struct mirage *m)
{
	size_t count = m->packets.count, oldest = 0;
	for (size_t i = 1; i < count && !oldest; i++)
		if ((uint16_t)(m->packets.items[i].count - m->packets.items[i - 1].count) > 0x8000)
			oldest = i;
	if (oldest) {
		struct packet *turned = malloc(count * sizeof *turned);
		if (!turned)
			return false;
		memcpy(turned, m->packets.items + oldest, (count - oldest) * sizeof *turned);
		memcpy(turned + count - oldest, m->packets.items, oldest * sizeof *turned);
		free(m->packets.items);
		m->packets.items = turned;
		m->packets.capacity = count;
	}
	return true;
}

static void enter_packet(struct weft_trace *trace)
{
	struct mirage *m = trace->state;
	m->cursor = (struct weft_cursor){0};
	if (m->at < m->packets.count) {
		const struct packet *packet = &m->packets.items[m->at];
		m->cursor.at = trace->source.blobs[0].bytes + packet->offset + HEADER_BYTES;
		m->cursor.end = trace->source.blobs[0].bytes + packet->end;
	}
}

static void rewind_events(struct weft_trace *trace)
{
	struct mirage *m = trace->state;
	m->at = 0;
	m->last_ns = 0;
	enter_packet(trace);
}

static void close_trace(struct weft_trace *trace)
{
	struct mirage *m = trace->state;
	weft_vec_free(&m->packets);
	free(m);
}

static int open_trace(struct weft_trace *trace, struct weft_error *err)
{
	const struct weft_blob *blob = &trace->source.blobs[0];
	struct mirage *m = trace->state = calloc(1, sizeof *m);
	int status = m ? WEFT_OK : WEFT_ENOMEM;
	uint64_t offset = 0, index = 0;
	while (status == WEFT_OK && offset < blob->size) {
		uint64_t header = offset;
		if (blob->size - offset < MAGIC_BYTES || memcmp(blob->bytes + offset, magic, MAGIC_BYTES) != 0) {
			header = find_header(blob, offset);
			weft__trace_skip(trace, blob, index, offset, header - offset, "no packet header");
		}
		if (header < blob->size)
			status = read_header(trace, header, index++, &offset);
		else
			offset = header;
	}
	if (status == WEFT_OK && !rotate_packets(m))
		status = WEFT_ENOMEM;
	if (status < 0) {
		if (m)
			close_trace(trace);
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	/* Packets are counted from 0, so another number means that older packets were overwritten. */
	trace->info.wrapped = m->packets.count && m->packets.items[0].count != 0;
	trace->info.streams = &m->stream;
	trace->info.stream_count = 1;
	rewind_events(trace);
	return WEFT_OK;
}

static void skip_rest(struct weft_trace *trace, const unsigned char *event, const char *what)
{
	struct mirage *m = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[0];
	weft__trace_skip(trace, blob, m->packets.items[m->at].index, (uint64_t)(event - blob->bytes),
	    (uint64_t)(m->cursor.end - event), "%s; the rest of the packet is skipped", what);
	m->cursor.at = m->cursor.end;
}

/* Minimum number of operand bytes of each operation (including the NUL of a string), and whether the operands end with a
 * string. */
static const struct {
	uint8_t bytes;
	bool text;
} payloads[14] = {{17, false}, {16, false}, {16, false}, {17, true}, {16, false}, {9, true}, {17, true}, {8, false}, {8, false},
    {16, false}, {16, false}, {17, true}, {16, false}, {16, false}};

/* Decodes one event; returns false if no complete event is left in the packet. */
static bool decode_event(struct weft_trace *trace, struct weft_event *ev)
{
	static const char should_resolve[] = "__should_resolve";
	struct mirage *m = trace->state;
	const unsigned char *event = m->cursor.at;
	size_t left = weft_cursor_left(&m->cursor);
	if (left < 9 + 8) {
		skip_rest(trace, event, "the last event is cut off");
		return false;
	}
	int64_t time_ns = (int64_t)weft_load_u64(event);
	uint8_t op = event[8];
	if (op >= sizeof payloads / sizeof payloads[0]) {
		skip_rest(trace, event, "unknown operation");
		return false;
	}
	if (left - 9 < payloads[op].bytes) {
		skip_rest(trace, event, "the last event is cut off");
		return false;
	}
	const unsigned char *payload = event + 9;
	m->cursor.at = payload + payloads[op].bytes;
	*ev = (struct weft_event){.time_ns = time_ns, .a = (int64_t)weft_load_u64(payload), .site = WEFT_NO_SITE, .op = op};
	if (payloads[op].text) {
		m->cursor.at--;
		if (!weft_read_string(&m->cursor, &ev->text)) {
			skip_rest(trace, event, "a string without a terminating NUL");
			return false;
		}
	}
	switch (op) {
	case WEFT_OP_CREATE: ev->kind = payload[16]; /* fall through */
	case WEFT_OP_READ:
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_BECOME:
	case WEFT_OP_AWAIT:
	case WEFT_OP_READ_LATER: ev->b = (int64_t)weft_load_u64(payload + 8); break;
	case WEFT_OP_SIGNAL:
	case WEFT_OP_SIGNAL_ONLY: /* the receiver comes first in the file, because it is the promise that runs */
		ev->b = ev->a;
		ev->a = (int64_t)weft_load_u64(payload + 8);
		break;
	case WEFT_OP_LABEL:
		if (ev->text.len == sizeof should_resolve - 1 && memcmp(ev->text.ptr, should_resolve, ev->text.len) == 0) {
			ev->op = WEFT_OP_SHOULD_RESOLVE;
			ev->text = (struct weft_str){0};
		}
		break;
	case WEFT_OP_PAUSE:
		ev->value = ev->a;
		ev->a = 0;
		ev->text = (struct weft_str){"gc", 2};
		break;
	case WEFT_OP_COUNTER_ADD:
	case WEFT_OP_COUNTER: ev->value = (int64_t)weft_load_u64(payload + 8); break;
	default: break;
	}
	if (time_ns < m->last_ns) {
		/* The recorder increases the content size first, so an event that was not written yet consists of zeros. */
		if (time_ns == 0 && op == 0 && ev->a == 0 && ev->b == 0 && m->cursor.at == m->cursor.end &&
		    m->at + 1 == m->packets.count) {
			skip_rest(trace, event, "the last event was never written");
			return false;
		}
		const struct weft_blob *blob = &trace->source.blobs[0];
		weft__trace_skip(trace, blob, m->packets.items[m->at].index, (uint64_t)(event - blob->bytes), 0,
		    "time goes back by %llu ns", (unsigned long long)m->last_ns - (unsigned long long)time_ns);
		ev->time_ns = m->last_ns;
	}
	m->last_ns = ev->time_ns;
	return true;
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct mirage *m = trace->state;
	size_t n = 0;
	while (n < BATCH) {
		if (m->cursor.at == m->cursor.end) {
			if (m->at >= m->packets.count)
				break;
			m->at++;
			enter_packet(trace);
		} else if (decode_event(trace, &m->batch[n]))
			n++;
	}
	if (n == 0)
		return 0;
	*events = m->batch;
	*count = n;
	return 1;
}

const struct weft_trace_format weft__format_mirage = {
    "mirage", probe_source, open_trace, read_events, rewind_events, close_trace, NULL, NULL, NULL, NULL};
