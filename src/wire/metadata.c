/* metadata.c: the trace's description of itself, in TSDL 1.8.  SPDX-License-Identifier: ISC */
#include "wire/kernel.h"
#include "wire/wire.h"

/* A text that knows how long it would be; no libc, so that the freestanding core can describe its trace too. */
struct text {
	char *buf;
	size_t size, length;
};

static void put_char(struct text *t, char c)
{
	if (t->length + 1 < t->size)
		t->buf[t->length] = c;
	t->length++;
}

static void put(struct text *t, const char *s)
{
	while (*s)
		put_char(t, *s++);
}

static void put_number(struct text *t, uint64_t n)
{
	char digits[20];
	unsigned count = 0;
	do
		digits[count++] = (char)('0' + n % 10);
	while (n /= 10);
	while (count)
		put_char(t, digits[--count]);
}

static void put_line_number(struct text *t, const char *before, uint64_t n, const char *after)
{
	put(t, before);
	put_number(t, n);
	put(t, after);
}

/* A TSDL string; what is not printable ASCII or UTF-8's upper half is escaped in octal. */
static void put_quoted(struct text *t, const char *s)
{
	put_char(t, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') {
			put_char(t, '\\');
			put_char(t, *s);
		} else if (c < 0x20 || c == 0x7f) {
			put_char(t, '\\');
			put_char(t, (char)('0' + (c >> 6)));
			put_char(t, (char)('0' + (c >> 3 & 7)));
			put_char(t, (char)('0' + (c & 7)));
		} else {
			put_char(t, *s);
		}
	}
	put_char(t, '"');
}

static void put_env(struct text *t, const char *name, const char *value)
{
	put(t, "\t");
	put(t, name);
	put(t, " = ");
	put_quoted(t, value ? value : "");
	put(t, ";\n");
}

static void put_uuid(struct text *t, const uint8_t uuid[16])
{
	static const char hex[] = "0123456789abcdef";
	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			put_char(t, '-');
		put_char(t, hex[uuid[i] >> 4]);
		put_char(t, hex[uuid[i] & 15]);
	}
}

static void put_bytes(struct text *t, const char *s, uint32_t bytes)
{
	while (bytes--)
		put_char(t, *s++);
}

struct label {
	const char *name;
	unsigned value;
};

static void put_enum(struct text *t, const char *name, const struct label *labels, size_t count)
{
	put(t, "enum ");
	put(t, name);
	put(t, " : uint8_t {");
	for (size_t i = 0; i < count; i++) {
		put(t, i ? ",\n\t" : "\n\t");
		put_quoted(t, labels[i].name);
		put_line_number(t, " = ", labels[i].value, "");
	}
	put(t, "\n};\n");
}

#define KIND(NAME, value, name, traits) {name, value},
#define DETAIL(NAME, value, name) {name, value},
static const struct label kinds[] = {WEFT_KINDS(KIND)};
static const struct label details[] = {WEFT_DETAILS(DETAIL){"definition", WEFT_DETAIL_DEFINITION}};
#undef KIND
#undef DETAIL

static void put_field(struct text *t, const struct weft_wire_field *f, uint8_t id)
{
	static const char *const types[WEFT_TYPE_COUNT] = {
#define TYPE(NAME, name, tsdl) [WEFT_TYPE_##NAME] = tsdl,
	    WEFT_FIELD_TYPES(TYPE)
#undef TYPE
	};
	const char *type = types[f->type];
	if (f->type == WEFT_TYPE_ID || f->type == WEFT_TYPE_NUMBER)
		type = id & WEFT_ID_WIDE ? "int64_t" : "int32_t";
	if (f->type == WEFT_TYPE_TEXT)
		type = id & WEFT_ID_INLINE ? "string" : "uint16_t";
	if (f->bit == WEFT_FIELD_KIND)
		type = "enum kind_names";
	if (f->bit == WEFT_FIELD_WHAT)
		type = "enum detail_names";
	if (f->type == WEFT_TYPE_TEXT && id & WEFT_ID_CUT)
		put(t, " uint32_t cut;");
	put_char(t, ' ');
	put(t, type);
	put_char(t, ' ');
	put_bytes(t, f->name, f->name_bytes);
	put(t, f->type == WEFT_TYPE_TEXT && !(id & WEFT_ID_INLINE) ? "_key;" : ";");
}

/* One of the forms in which an op is written, or a definition. */
static void put_event(struct text *t, const char *name, unsigned stream, uint8_t id, const struct weft_wire_form *form)
{
	put(t, "event { name = ");
	put_quoted(t, name);
	put_line_number(t, "; id = ", id, "; stream_id = ");
	put_number(t, stream);
	put(t, "; fields := struct {");
	for (unsigned i = 0; i < form->count; i++)
		put_field(t, &form->fields[i], id);
	put(t, " }; };\n");
}

void weft__origin_split(int64_t origin_ns, uint64_t hz, int64_t *offset_s, uint64_t *offset_ticks)
{
	int64_t s = origin_ns / 1000000000, rest = origin_ns % 1000000000;
	if (rest < 0) {
		rest += 1000000000;
		s--;
	}
	*offset_s = s;
	*offset_ticks = hz == 1000000000u ? (uint64_t)rest : (uint64_t)((double)rest * (double)hz / 1e9 + 0.5);
}

static const char types[] = "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
			    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char_t;\n"
			    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
			    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
			    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
			    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
			    "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n";

static const char clocked_types[] =
    "typealias integer { size = 64; align = 8; signed = false; map = clock.weft.value; } := ticks_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; map = clock.weft.value; } := ticks32_t;\n"
    "struct packet_context {\n"
    "\tuint32_t mark; uint16_t version; uint16_t header_bytes; uint32_t lock;\n"
    "\tticks_t timestamp_begin; uint64_t content_size; uint64_t packet_size; uint64_t sequence; uint64_t events_discarded;\n"
    "\tuint64_t lost_full; uint64_t lost_nested; uint64_t lost_no_stream; uint64_t events_before;\n"
    "\tuint64_t clock_hz; uint64_t pair_clock; uint64_t pair_wall_ns; uint64_t tid; char_t thread_name[16];\n"
    "};\n"
    "struct event_header {\n"
    "\tenum : uint8_t { compact = 0 ... 254, extended = 255 } id;\n"
    "\tvariant <id> {\n"
    "\t\tstruct { ticks32_t timestamp; } compact;\n"
    "\t\tstruct { uint8_t id; ticks_t timestamp; } extended;\n"
    "\t} v;\n"
    "};\n"
    "stream { id = 0; packet.context := struct packet_context; event.header := struct event_header; };\n"
    "stream { id = 1; packet.context := struct packet_context; event.header := struct event_header; };\n"
    "stream { id = 3; packet.context := struct packet_context; event.header := struct event_header; };\n";

static bool is_extra(const struct weft_metadata *m, unsigned stream_class, unsigned id)
{
	for (size_t i = 0; i < m->extra_count; i++)
		if (m->extra[i].stream_class == stream_class && m->extra[i].id == id)
			return true;
	return false;
}

static void put_op(struct text *t, const char *name, unsigned op, const struct weft_wire_form *form)
{
	for (unsigned bits = 0; bits < 8; bits++)
		if (weft__form_payload_bytes(form, (uint8_t)(op | bits << 5)))
			put_event(t, name, WEFT_CLASS_EVENTS, (uint8_t)(op | bits << 5), form);
}

/* What has one form. */
struct listed {
	const char *name, *fields;
	unsigned id;
};

#define LISTED(NAME, value, name, fields) {name, fields, value},
static const struct listed definitions[] = {WEFT_DEFINITIONS(LISTED)};
/* What weft record may put beside the program's packets, long after this was written. */
static const struct listed kernel_ops[] = {WEFT_KERNEL_OPS(LISTED)};
#undef LISTED

static void put_listed(
    struct text *t, const struct weft_metadata *m, unsigned stream_class, const struct listed *all, size_t count)
{
	struct weft_wire_form form;
	for (size_t i = 0; i < count; i++)
		if (!is_extra(m, stream_class, all[i].id) &&
		    weft__form_parse(&form, all[i].fields, __builtin_strlen(all[i].fields)))
			put_event(t, all[i].name, stream_class, (uint8_t)all[i].id, &form);
}

static void put_layout(struct text *t, const struct weft_metadata *m)
{
	struct weft_wire_form form;
	put_enum(t, "kind_names", kinds, sizeof kinds / sizeof kinds[0]);
	put_enum(t, "detail_names", details, sizeof details / sizeof details[0]);
	put(t, clocked_types);
	put_listed(t, m, WEFT_CLASS_DEFINITIONS, definitions, sizeof definitions / sizeof *definitions);
	put_listed(t, m, WEFT_CLASS_KERNEL, kernel_ops, sizeof kernel_ops / sizeof *kernel_ops);
	for (unsigned op = 0; op < WEFT_OP_COUNT; op++) {
		weft__form_of_op(&form, (uint8_t)op);
		if (!is_extra(m, WEFT_CLASS_EVENTS, op))
			put_op(t, weft__op_forms[op].name, op, &form);
	}
	for (size_t i = 0; i < m->extra_count; i++) {
		const struct weft_wire_extra *e = &m->extra[i];
		if (e->stream_class == WEFT_CLASS_EVENTS)
			put_op(t, e->name, e->id, &e->form);
		else
			put_event(t, e->name, e->stream_class, e->id, &e->form);
	}
}

size_t weft__metadata_format(char *buf, size_t size, const struct weft_metadata *m)
{
	struct text t = {buf, size, 0};
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;
	put(&t, "/* CTF 1.8 */\n");
	put(&t, "env {\n");
	put_env(&t, "tracer_name", "weft");
	put_line_number(&t, "\tweft_version = ", WEFT_WIRE_VERSION, ";\n");
	put_env(&t, "hostname", m->host);
	put_env(&t, "procname", m->process);
	put_env(&t, "command", m->command);
	put_line_number(&t, "\tvpid = ", m->pid, ";\n");
	if (m->recorder)
		put_env(&t, "recorder", m->recorder);
	if (m->runtimes)
		put_env(&t, "runtimes", m->runtimes);
	put_env(&t, "mode", m->mode);
	put_env(&t, "state", m->state);
	if (m->definitions)
		put_line_number(&t, "\tdefinitions = ", m->definitions, ";\n");
	if (m->stream_packets) {
		put(&t, "\tstream_packets = \"");
		for (size_t i = 0; i < m->stream_count; i++)
			put_line_number(&t, i ? " " : "", m->stream_packets[i], "");
		put(&t, "\";\n");
	}
	put_env(&t, "clock_source", m->clock_source);
	put_env(&t, "clock_measured", m->clock_measured);
	put(&t, "};\n");
	if (!m->brief)
		put(&t, types);
	put(&t, "trace {\n\tmajor = 1; minor = 8;\n\tuuid = \"");
	put_uuid(&t, m->uuid);
	put(&t, little ? "\";\n\tbyte_order = le;\n" : "\";\n\tbyte_order = be;\n");
	put(&t, "\tpacket.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint32_t "
		"stream_instance_id; };\n};\n");
	int64_t offset_s;
	uint64_t offset_ticks;
	weft__origin_split(m->clock_origin_ns, m->clock_hz, &offset_s, &offset_ticks);
	put_line_number(&t, "clock {\n\tname = \"weft\";\n\tfreq = ", m->clock_hz, ";\n\toffset_s = ");
	if (offset_s < 0)
		put_char(&t, '-');
	put_number(&t, offset_s < 0 ? -(uint64_t)offset_s : (uint64_t)offset_s);
	put_line_number(&t, ";\n\toffset = ", offset_ticks, ";\n};\n");
	if (!m->brief)
		put_layout(&t, m);
	if (size)
		buf[t.length < size ? t.length : size - 1] = 0;
	return t.length;
}
