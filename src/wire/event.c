/* event.c: the forms of events, and writing them.  SPDX-License-Identifier: ISC */
#include "wire/wire.h"

#define A WEFT_FIELD_A
#define AB (WEFT_FIELD_A | WEFT_FIELD_B)
#define TEXT WEFT_FIELD_TEXT

const struct weft_op_form weft__op_forms[WEFT_OP_COUNT] = {
    [WEFT_OP_CREATE] = {"create", "by", "promise", NULL, NULL, AB | WEFT_FIELD_KIND | WEFT_FIELD_SITE},
    [WEFT_OP_READ] = {"read", "promise", "input", NULL, NULL, AB},
    [WEFT_OP_RESOLVE] = {"resolve", "by", "promise", NULL, NULL, AB},
    [WEFT_OP_FAIL] = {"fail", "by", "promise", NULL, "error", AB | TEXT},
    [WEFT_OP_BECOME] = {"become", "promise", "into", NULL, NULL, AB},
    [WEFT_OP_LABEL] = {"label", "promise", NULL, NULL, "text", A | TEXT},
    [WEFT_OP_COUNTER_ADD] = {"counter_add", "by", NULL, "change", "counter", A | WEFT_FIELD_VALUE | TEXT},
    [WEFT_OP_RUN] = {"run", "promise", NULL, NULL, NULL, A},
    [WEFT_OP_PAUSE] = {"pause", NULL, NULL, "duration_ns", "why", WEFT_FIELD_VALUE | TEXT},
    [WEFT_OP_SIGNAL] = {"signal", "from", "promise", NULL, NULL, AB},
    [WEFT_OP_AWAIT] = {"await", "promise", "input", NULL, NULL, AB},
    [WEFT_OP_COUNTER] = {"counter", "by", NULL, "value", "counter", A | WEFT_FIELD_VALUE | TEXT},
    [WEFT_OP_READ_LATER] = {"read_later", "promise", "input", NULL, NULL, AB},
    [WEFT_OP_SIGNAL_ONLY] = {"signal_only", "from", "promise", NULL, NULL, AB},
    [WEFT_OP_SHOULD_RESOLVE] = {"should_resolve", "promise", NULL, NULL, NULL, A},
    [WEFT_OP_IDLE] = {"idle", NULL, NULL, "why", NULL, WEFT_FIELD_WHY},
    [WEFT_OP_RESUME] = {"resume", "promise", NULL, NULL, NULL, A},
    [WEFT_OP_NOTE] = {"note", "promise", NULL, NULL, "text", A | TEXT},
    [WEFT_OP_PENDING] = {"pending", "by", "promise", "since", "label",
	AB | WEFT_FIELD_KIND | WEFT_FIELD_SITE | WEFT_FIELD_SINCE | TEXT},
    [WEFT_OP_PAUSE_BEGIN] = {"pause_begin", NULL, NULL, NULL, "why", TEXT},
    [WEFT_OP_PAUSE_END] = {"pause_end", NULL, NULL, NULL, NULL, 0},
    [WEFT_OP_STILL_AWAITS] = {"still_awaits", "promise", "input", NULL, NULL, AB},
};

#undef A
#undef AB
#undef TEXT

/* Host byte order, unaligned. */
#define PUT(to, type, v)                                                                                                         \
	do {                                                                                                                     \
		type put_ = (type)(v);                                                                                           \
		__builtin_memcpy(to, &put_, sizeof put_);                                                                        \
		(to) += sizeof put_;                                                                                             \
	} while (0)

unsigned weft__payload_bytes(uint8_t id)
{
	unsigned op = id & WEFT_ID_OP;
	if (op >= WEFT_OP_COUNT)
		return 0;
	unsigned f = weft__op_forms[op].fields, word = id & WEFT_ID_WIDE ? 8 : 4;
	if (!(f & WEFT_FIELD_TEXT) && id & (WEFT_ID_INLINE | WEFT_ID_CUT))
		return 0;
	if (id & WEFT_ID_CUT && !(id & WEFT_ID_INLINE))
		return 0;
	if (id & WEFT_ID_WIDE && !(f & (WEFT_FIELD_A | WEFT_FIELD_B | WEFT_FIELD_VALUE)))
		return 0;
	unsigned n = 0;
	n += f & WEFT_FIELD_A ? word : 0;
	n += f & WEFT_FIELD_B ? word : 0;
	n += f & WEFT_FIELD_KIND ? 1 : 0;
	n += f & WEFT_FIELD_SITE ? 2 : 0;
	n += f & WEFT_FIELD_VALUE ? word : 0;
	n += f & WEFT_FIELD_WHY ? 1 : 0;
	n += f & WEFT_FIELD_SINCE ? 8 : 0;
	if (f & WEFT_FIELD_TEXT)
		n += !(id & WEFT_ID_INLINE) ? 2 : id & WEFT_ID_CUT ? 4 : 0;
	return n + 1;
}

static bool is_wide(int64_t v)
{
	return v != (int32_t)v;
}

uint8_t weft__event_id(const struct weft_wire_event *event)
{
	unsigned f = weft__op_forms[event->op].fields, id = event->op;
	if ((f & WEFT_FIELD_A && is_wide(event->a)) || (f & WEFT_FIELD_B && is_wide(event->b)) ||
	    (f & WEFT_FIELD_VALUE && is_wide(event->value)))
		id |= WEFT_ID_WIDE;
	if (f & WEFT_FIELD_TEXT && !event->key)
		id |= WEFT_ID_INLINE | (event->cut ? WEFT_ID_CUT : 0);
	return (uint8_t)id;
}

size_t weft__event_payload(const struct weft_wire_event *event, uint8_t id)
{
	return weft__payload_bytes(id) - 1 + (id & WEFT_ID_INLINE ? (size_t)event->text_bytes + 1 : 0);
}

void weft__event_cut(struct weft_wire_event *event, size_t room)
{
	struct weft_wire_event bare = *event;
	bare.text_bytes = 0;
	bare.cut = 1;
	size_t fixed = weft__event_payload(&bare, weft__event_id(&bare)), had = event->text_bytes;
	size_t keep = room > fixed ? room - fixed : 0;
	if (event->key || keep >= had)
		return;
	event->cut += (uint32_t)(had - keep);
	event->text_bytes = (uint32_t)keep;
}

static unsigned char *put_text(unsigned char *to, const char *text, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = text[i] ? (unsigned char)text[i] : 0x1a;
	to[n] = 0;
	return to + n + 1;
}

unsigned char *weft__event_write(unsigned char *to, const struct weft_wire_event *event, uint8_t id, uint64_t time, bool extended)
{
	if (extended) {
		*to++ = WEFT_ID_EXTENDED;
		*to++ = id;
		PUT(to, uint64_t, time);
	} else {
		*to++ = id;
		PUT(to, uint32_t, time);
	}
	unsigned f = weft__op_forms[event->op].fields;
	bool wide = id & WEFT_ID_WIDE;
	const int64_t words[] = {event->a, event->b};
	for (unsigned i = 0; i < 2; i++)
		if (f & (WEFT_FIELD_A << i)) {
			if (wide)
				PUT(to, int64_t, words[i]);
			else
				PUT(to, int32_t, words[i]);
		}
	if (f & WEFT_FIELD_KIND)
		*to++ = event->kind;
	if (f & WEFT_FIELD_SITE)
		PUT(to, uint16_t, event->site);
	if (f & WEFT_FIELD_VALUE) {
		if (wide)
			PUT(to, int64_t, event->value);
		else
			PUT(to, int32_t, event->value);
	}
	if (f & WEFT_FIELD_WHY)
		*to++ = (unsigned char)event->value;
	if (f & WEFT_FIELD_SINCE)
		PUT(to, int64_t, event->value);
	if (f & WEFT_FIELD_TEXT) {
		if (!(id & WEFT_ID_INLINE)) {
			PUT(to, uint16_t, event->key);
		} else {
			if (id & WEFT_ID_CUT)
				PUT(to, uint32_t, event->cut);
			to = put_text(to, event->text, event->text_bytes);
			if (id & WEFT_ID_CUT && event->text_bytes >= 3)
				__builtin_memcpy(to - 4, "\xe2\x80\xa6", 3);
		}
	}
	return to;
}

size_t weft__definition_bytes(const struct weft_wire_definition *d)
{
	size_t n = WEFT_EXTENDED_HEADER + (size_t)d->text_bytes + 1;
	switch (d->what) {
	case WEFT_DEFINE_STRING: return n + 2;
	case WEFT_DEFINE_SITE: return n + 2 + 4 + (size_t)d->function_bytes + 1;
	case WEFT_DEFINE_THREAD: return n + 4 + 8;
	}
	return n;
}

unsigned char *weft__definition_write(unsigned char *to, const struct weft_wire_definition *d, uint64_t time)
{
	*to++ = WEFT_ID_EXTENDED;
	*to++ = (unsigned char)d->what;
	PUT(to, uint64_t, time);
	if (d->what == WEFT_DEFINE_THREAD) {
		PUT(to, uint32_t, d->stream);
		PUT(to, uint64_t, d->tid);
	} else {
		PUT(to, uint16_t, d->key);
		if (d->what == WEFT_DEFINE_SITE)
			PUT(to, uint32_t, d->line);
	}
	to = put_text(to, d->text, d->text_bytes);
	if (d->what == WEFT_DEFINE_SITE)
		to = put_text(to, d->function, d->function_bytes);
	return to;
}

void weft__packet_init(struct weft_packet_header *header, const uint8_t uuid[16], enum weft_stream_class stream_class,
    uint32_t instance, uint64_t packet_bytes)
{
	uint32_t lock = header->lock;
	*header = (struct weft_packet_header){
	    .magic = WEFT_PACKET_MAGIC,
	    .stream_id = stream_class,
	    .stream_instance_id = instance,
	    .mark = WEFT_PACKET_MARK,
	    .version = WEFT_WIRE_VERSION,
	    .header_bytes = sizeof *header,
	    .lock = lock,
	    .content_size = sizeof *header * 8,
	    .packet_size = packet_bytes * 8,
	};
	__builtin_memcpy(header->uuid, uuid, 16);
}
