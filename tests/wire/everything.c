/* everything.c: a trace with every element of the format, and with elements of a later version: an operation and a definition
 * whose fields only the trace defines, and a known operation with a further field.  Writes the directory that WEFT_TRACE names.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/wire.h"

#define STRING(s) .text = (s), .text_bytes = sizeof(s) - 1
#define SECOND(s) .second = (s), .second_bytes = sizeof(s) - 1

enum { ROOM = 65536, INVENTED = 31, COLOUR = 6, TICK = 1000 };

static const char invented[] =
    "promise: id, load: value, flags: u8, port: u16, size: u32, when: u64, change: i64, name: string, why: text";
static const char longer_level[] = "promise: id, unit: u8, value: value, remark: text";
static const char colour[] = "key: u16, red: u8, name: string";

static const uint8_t uuid[16] = {1, 2, 3, 4, 5, 6, 0x47, 8, 0x89, 10, 11, 12, 13, 14, 15, 16};
static const char *dir;

struct packet {
	_Alignas(8) unsigned char bytes[ROOM];
	unsigned char *at;
	uint64_t time;
};

static void begin(struct packet *p, enum weft_stream_class stream_class)
{
	struct weft_packet_header header = {0};
	weft__packet_init(&header, uuid, stream_class, 0, 0);
	header.clock_hz = 1000000000;
	strcpy(header.thread_name, "main");
	memcpy(p->bytes, &header, sizeof header);
	p->at = p->bytes + sizeof header;
	p->time = 0;
}

static void save(const char *name, const void *bytes, size_t size)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		exit(2);
}

static void end(struct packet *p, const char *name)
{
	const uint64_t bytes = (uint64_t)(p->at - p->bytes), bits = bytes * 8;
	memcpy(p->bytes + offsetof(struct weft_packet_header, content_size), &bits, sizeof bits);
	memcpy(p->bytes + offsetof(struct weft_packet_header, packet_size), &bits, sizeof bits);
	save(name, p->bytes, bytes);
}

/* Writes every operation in every form. */
static void put_ops(struct packet *p)
{
	for (unsigned op = 0; op < WEFT_OP_COUNT; op++)
		for (unsigned bits = 0; bits < 8 && op != WEFT_OP_LEVEL; bits++) {
			struct weft_wire_event e = {.op = (uint8_t)op, .a = 100 + op, .b = 200 + op, .value = 3000000000 + op};
			if (!weft__payload_bytes((uint8_t)(op | bits << 5)))
				continue;
			if (weft__op_forms[op].fields & (WEFT_FIELD_VALUE | WEFT_FIELD_WHY))
				e.value = op == WEFT_OP_IDLE ? WEFT_IDLE_SUSPEND : -7;
			if (bits << 5 & WEFT_ID_WIDE)
				e.a = e.b = e.value = INT64_C(-5000000000) - op;
			if (op == WEFT_OP_PENDING)
				e.value = 30;
			e.kind = op == WEFT_OP_DETAIL ? WEFT_DETAIL_STACK + bits % 7 : WEFT_KIND_TIMER;
			e.site = (uint16_t)(2 + bits % 3);
			e.key = bits << 5 & WEFT_ID_INLINE ? 0 : 1;
			e.text = "in the event\xe2\x80\xa6";
			e.text_bytes = 15;
			e.cut = bits << 5 & WEFT_ID_CUT ? 9 : 0;
			p->at = weft__event_write(p->at, &e, weft__event_id(&e), p->time += TICK, bits % 2);
		}
}

static void put(struct packet *p, const void *bytes, size_t size)
{
	memcpy(p->at, bytes, size);
	p->at += size;
}

static void put_number(struct packet *p, int64_t value, size_t size)
{
	put(p, &value, size); /* little-endian, like this machine */
}

static void put_head(struct packet *p, unsigned id)
{
	put_number(p, id, 1);
	put_number(p, (int64_t)(p->time += TICK), 4);
}

/* Writes operations that only the trace defines, in every form. */
static void put_others(struct packet *p)
{
	for (unsigned bits = 0; bits < 7; bits++) {
		const bool wide = bits << 5 & WEFT_ID_WIDE, in_event = bits << 5 & WEFT_ID_INLINE, cut = bits << 5 & WEFT_ID_CUT;
		if (cut && !in_event)
			continue;
		for (unsigned which = 0; which < 2; which++) {
			put_head(p, (which ? INVENTED : WEFT_OP_LEVEL) | bits << 5);
			put_number(p, wide ? INT64_C(1) << 40 : 41, wide ? 8 : 4);
			if (!which)
				put_number(p, 9, 1);
			put_number(p, -12 - (int64_t)bits, wide ? 8 : 4);
			if (which) {
				put_number(p, 200, 1);
				put_number(p, 60000, 2);
				put_number(p, 4000000000, 4);
				put_number(p, INT64_MAX, 8);
				put_number(p, INT64_MIN, 8);
				put(p, "a \"name\"", 9);
			}
			if (cut)
				put_number(p, 3, 4);
			put(p, in_event ? "becaus\xe2\x80\xa6" : "\1", in_event ? 10 : 2);
		}
	}
	/* Readers must still read the next event. */
	const struct weft_wire_event last = {.op = WEFT_OP_NOTE, .a = 1, .key = 1};
	p->at = weft__event_write(p->at, &last, weft__event_id(&last), p->time += TICK, false);
}

static void define(struct packet *p, struct weft_wire_definition d)
{
	p->at = weft__definition_write(p->at, &d, p->time++);
}

static void put_definitions(struct packet *p)
{
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_STRING, .key = 1, STRING("a keyed \"text\"")});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_FORM, .id = INVENTED, STRING("invented"), SECOND(invented)});
	define(p,
	    (struct weft_wire_definition){.what = WEFT_DEFINE_FORM, .id = WEFT_OP_LEVEL, STRING("level"), SECOND(longer_level)});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_FORM,
		      .stream_class = WEFT_CLASS_DEFINITIONS,
		      .id = COLOUR,
		      STRING("colour"),
		      SECOND(colour)});
	*p->at++ = WEFT_ID_EXTENDED;
	*p->at++ = COLOUR;
	put_number(p, (int64_t)p->time++, 8);
	put_number(p, 77, 2);
	put_number(p, 255, 1);
	put(p, "red", 4);
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_SITE, .key = 2, .line = 12, STRING("a.c"), SECOND("serve")});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_MODULE,
		      .key = 1,
		      .address = 0x7f0000001000,
		      .size = 0x9000,
		      STRING("/usr/lib/libuv.so.1.0.0"),
		      SECOND("deadbeef01")});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_PLACE, .key = 3, .module = 1, .address = 0x1234});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_PLACE, .key = 4, .address = 0xffffffff80001000});
	define(p, (struct weft_wire_definition){.what = WEFT_DEFINE_THREAD, .tid = 5, STRING("main")});
}

int main(void)
{
	static struct packet packet;
	static char text[1 << 17];
	struct weft_wire_extra extra[] = {{.name = "invented", .id = INVENTED}, {.name = "level", .id = WEFT_OP_LEVEL},
	    {.name = "colour", .stream_class = WEFT_CLASS_DEFINITIONS, .id = COLOUR}};
	const struct weft_metadata metadata = {.clock_hz = 1000000000,
	    .clock_source = "caller",
	    .clock_measured = "exact",
	    .mode = "grow",
	    .state = "finished",
	    .extra = extra,
	    .extra_count = 3};
	struct weft_metadata whole = metadata;
	memcpy(whole.uuid, uuid, sizeof uuid);
	if (!weft__form_parse(&extra[0].form, invented, sizeof invented - 1) ||
	    !weft__form_parse(&extra[1].form, longer_level, sizeof longer_level - 1) ||
	    !weft__form_parse(&extra[2].form, colour, sizeof colour - 1))
		return 2;
	dir = getenv("WEFT_TRACE");
	if (!dir || mkdir(dir, 0700))
		return 2;
	begin(&packet, WEFT_CLASS_DEFINITIONS);
	put_definitions(&packet);
	end(&packet, "definitions-0");
	begin(&packet, WEFT_CLASS_EVENTS);
	put_ops(&packet);
	put_others(&packet);
	end(&packet, "stream-0-0");
	save("metadata", text, weft__metadata_format(text, sizeof text, &whole));
	return 0;
}
