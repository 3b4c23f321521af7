/* metadata.c: formats the description that a trace has of its own layout, in TSDL 1.8.  SPDX-License-Identifier: ISC */
#include "wire/kernel.h"
#include "wire/memory.h"
#include "wire/profile.h"
#include "wire/wire.h"

/* A text that may be longer than its buffer; `length` counts the bytes that do not fit, too.  The file uses no libc, because
 * the freestanding core includes it. */
struct text {
	char *buf;
	size_t size, length;
};

static void append_char(struct text *t, char c)
{
	if (t->length + 1 < t->size)
		t->buf[t->length] = c;
	t->length++;
}

static void append_text(struct text *t, const char *s)
{
	while (*s)
		append_char(t, *s++);
}

static void append_number(struct text *t, uint64_t n)
{
	char digits[20];
	unsigned count = 0;
	do
		digits[count++] = (char)('0' + n % 10);
	while (n /= 10);
	while (count)
		append_char(t, digits[--count]);
}

static void append_line_number(struct text *t, const char *before, uint64_t n, const char *after)
{
	append_text(t, before);
	append_number(t, n);
	append_text(t, after);
}

/* Appends a TSDL string; bytes other than printable ASCII and the upper half of UTF-8 become octal escapes. */
static void append_quoted(struct text *t, const char *s)
{
	append_char(t, '"');
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\') {
			append_char(t, '\\');
			append_char(t, *s);
		} else if (c < 0x20 || c == 0x7f) {
			append_char(t, '\\');
			append_char(t, (char)('0' + (c >> 6)));
			append_char(t, (char)('0' + (c >> 3 & 7)));
			append_char(t, (char)('0' + (c & 7)));
		} else {
			append_char(t, *s);
		}
	}
	append_char(t, '"');
}

static void append_env(struct text *t, const char *name, const char *value)
{
	append_text(t, "\t");
	append_text(t, name);
	append_text(t, " = ");
	append_quoted(t, value ? value : "");
	append_text(t, ";\n");
}

static void append_uuid(struct text *t, const uint8_t uuid[16])
{
	static const char hex[] = "0123456789abcdef";
	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			append_char(t, '-');
		append_char(t, hex[uuid[i] >> 4]);
		append_char(t, hex[uuid[i] & 15]);
	}
}

static void append_bytes(struct text *t, const char *s, uint32_t bytes)
{
	while (bytes--)
		append_char(t, *s++);
}

struct label {
	const char *name;
	unsigned value;
};

static void append_enum(struct text *t, const char *name, const struct label *labels, size_t count)
{
	append_text(t, "enum ");
	append_text(t, name);
	append_text(t, " : uint8_t {");
	for (size_t i = 0; i < count; i++) {
		append_text(t, i ? ",\n\t" : "\n\t");
		append_quoted(t, labels[i].name);
		append_line_number(t, " = ", labels[i].value, "");
	}
	append_text(t, "\n};\n");
}

#define KIND(NAME, value, name, traits) {name, value},
#define DETAIL(NAME, value, name) {name, value},
static const struct label kinds[] = {WEFT_KINDS(KIND)};
static const struct label details[] = {WEFT_DETAILS(DETAIL){"definition", WEFT_DETAIL_DEFINITION}};
#undef KIND
#undef DETAIL

static void append_field(struct text *t, const struct weft_wire_field *f, uint8_t id)
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
		append_text(t, " uint32_t cut;");
	append_char(t, ' ');
	append_text(t, type);
	append_char(t, ' ');
	append_bytes(t, f->name, f->name_bytes);
	append_text(t, f->type == WEFT_TYPE_TEXT && !(id & WEFT_ID_INLINE) ? "_key;" : ";");
}

/* Appends the description of a definition, or of one encoding of an op. */
static void append_event(struct text *t, const char *name, unsigned stream, uint8_t id, const struct weft_wire_form *form)
{
	append_text(t, "event { name = ");
	append_quoted(t, name);
	append_line_number(t, "; id = ", id, "; stream_id = ");
	append_number(t, stream);
	append_text(t, "; fields := struct {");
	for (unsigned i = 0; i < form->count; i++)
		append_field(t, &form->fields[i], id);
	append_text(t, " }; };\n");
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
    "stream { id = 3; packet.context := struct packet_context; event.header := struct event_header; };\n"
    "stream { id = 4; packet.context := struct packet_context; event.header := struct event_header; };\n"
    "stream { id = 5; packet.context := struct packet_context; event.header := struct event_header; };\n";

static bool has_extra_form(const struct weft_metadata *m, unsigned stream_class, unsigned id)
{
	for (size_t i = 0; i < m->extra_count; i++)
		if (m->extra[i].stream_class == stream_class && m->extra[i].id == id)
			return true;
	return false;
}

static void append_op(struct text *t, const char *name, unsigned op, const struct weft_wire_form *form)
{
	for (unsigned bits = 0; bits < 8; bits++)
		if (weft__form_payload_bytes(form, (uint8_t)(op | bits << 5)))
			append_event(t, name, WEFT_CLASS_EVENTS, (uint8_t)(op | bits << 5), form);
}

/* An event type that has only one encoding. */
struct form_entry {
	const char *name, *fields;
	unsigned id;
};

#define FORM_ENTRY(NAME, value, name, fields) {name, fields, value},
static const struct form_entry definitions[] = {WEFT_DEFINITIONS(FORM_ENTRY)};
/* The events that weft record may add beside the program's packets after this metadata was written. */
static const struct form_entry kernel_ops[] = {WEFT_KERNEL_OPS(FORM_ENTRY)};
static const struct form_entry profile_ops[] = {WEFT_PROFILE_OPS(FORM_ENTRY)};
static const struct form_entry memory_ops[] = {WEFT_MEMORY_OPS(FORM_ENTRY)};
#undef FORM_ENTRY

static void append_form_entries(
    struct text *t, const struct weft_metadata *m, unsigned stream_class, const struct form_entry *all, size_t count)
{
	struct weft_wire_form form;
	for (size_t i = 0; i < count; i++)
		if (!has_extra_form(m, stream_class, all[i].id) &&
		    weft__form_parse(&form, all[i].fields, __builtin_strlen(all[i].fields)))
			append_event(t, all[i].name, stream_class, (uint8_t)all[i].id, &form);
}

static void append_layout(struct text *t, const struct weft_metadata *m)
{
	struct weft_wire_form form;
	append_enum(t, "kind_names", kinds, sizeof kinds / sizeof kinds[0]);
	append_enum(t, "detail_names", details, sizeof details / sizeof details[0]);
	append_text(t, clocked_types);
	append_form_entries(t, m, WEFT_CLASS_DEFINITIONS, definitions, sizeof definitions / sizeof *definitions);
	append_form_entries(t, m, WEFT_CLASS_KERNEL, kernel_ops, sizeof kernel_ops / sizeof *kernel_ops);
	append_form_entries(t, m, WEFT_CLASS_PROFILE, profile_ops, sizeof profile_ops / sizeof *profile_ops);
	append_form_entries(t, m, WEFT_CLASS_MEMORY, memory_ops, sizeof memory_ops / sizeof *memory_ops);
	for (unsigned op = 0; op < WEFT_OP_COUNT; op++) {
		weft__form_of_op(&form, (uint8_t)op);
		if (!has_extra_form(m, WEFT_CLASS_EVENTS, op))
			append_op(t, weft__op_forms[op].name, op, &form);
	}
	for (size_t i = 0; i < m->extra_count; i++) {
		const struct weft_wire_extra *e = &m->extra[i];
		if (e->stream_class == WEFT_CLASS_EVENTS)
			append_op(t, e->name, e->id, &e->form);
		else
			append_event(t, e->name, e->stream_class, e->id, &e->form);
	}
}

size_t weft__metadata_format(char *buf, size_t size, const struct weft_metadata *m)
{
	struct text t = {buf, size, 0};
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;
	append_text(&t, "/* CTF 1.8 */\n");
	append_text(&t, "env {\n");
	append_env(&t, "tracer_name", "weft");
	append_line_number(&t, "\tweft_version = ", WEFT_WIRE_VERSION, ";\n");
	append_env(&t, "hostname", m->host);
	append_env(&t, "procname", m->process);
	append_env(&t, "command", m->command);
	append_line_number(&t, "\tvpid = ", m->pid, ";\n");
	if (m->recorder)
		append_env(&t, "recorder", m->recorder);
	if (m->runtimes)
		append_env(&t, "runtimes", m->runtimes);
	append_env(&t, "mode", m->mode);
	append_env(&t, "state", m->state);
	if (m->seen_ns > 0)
		append_line_number(&t, "\tseen_ns = ", (uint64_t)m->seen_ns, ";\n");
	if (m->definitions)
		append_line_number(&t, "\tdefinitions = ", m->definitions, ";\n");
	if (m->stream_packets) {
		append_text(&t, "\tstream_packets = \"");
		for (size_t i = 0; i < m->stream_count; i++)
			append_line_number(&t, i ? " " : "", m->stream_packets[i], "");
		append_text(&t, "\";\n");
	}
	append_env(&t, "clock_source", m->clock_source);
	append_env(&t, "clock_measured", m->clock_measured);
	append_text(&t, "};\n");
	if (!m->brief)
		append_text(&t, types);
	append_text(&t, "trace {\n\tmajor = 1; minor = 8;\n\tuuid = \"");
	append_uuid(&t, m->uuid);
	append_text(&t, little ? "\";\n\tbyte_order = le;\n" : "\";\n\tbyte_order = be;\n");
	append_text(&t, "\tpacket.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint32_t "
			"stream_instance_id; };\n};\n");
	int64_t offset_s;
	uint64_t offset_ticks;
	weft__origin_split(m->clock_origin_ns, m->clock_hz, &offset_s, &offset_ticks);
	append_line_number(&t, "clock {\n\tname = \"weft\";\n\tfreq = ", m->clock_hz, ";\n\toffset_s = ");
	if (offset_s < 0)
		append_char(&t, '-');
	append_number(&t, offset_s < 0 ? -(uint64_t)offset_s : (uint64_t)offset_s);
	append_line_number(&t, ";\n\toffset = ", offset_ticks, ";\n};\n");
	if (!m->brief)
		append_layout(&t, m);
	if (size)
		buf[t.length < size ? t.length : size - 1] = 0;
	return t.length;
}
