/* event.c: defines the forms of events, and encodes events.  SPDX-License-Identifier: ISC */
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
    [WEFT_OP_BELONGS] = {"belongs", "promise", "owner", NULL, NULL, AB},
    [WEFT_OP_AWAITS_NO_MORE] = {"awaits_no_more", "promise", "input", NULL, NULL, AB},
    [WEFT_OP_HOLD] = {"hold", "promise", "lock", NULL, NULL, AB},
    [WEFT_OP_RELEASE] = {"release", "promise", "lock", NULL, NULL, AB},
    [WEFT_OP_LEVEL] = {"level", "promise", NULL, "value", NULL, A | WEFT_FIELD_VALUE},
    [WEFT_OP_SENT] = {"sent", "connection", NULL, "position", NULL, A | WEFT_FIELD_LOW},
    [WEFT_OP_RECEIVED] = {"received", "connection", NULL, "position", NULL, A | WEFT_FIELD_LOW},
    [WEFT_OP_CANCEL] = {"cancel", "by", "promise", NULL, NULL, AB},
    [WEFT_OP_DETAIL] = {"detail", "promise", NULL, "value", "text", A | WEFT_FIELD_WHAT | WEFT_FIELD_LONG | TEXT},
};

#undef A
#undef AB
#undef TEXT

void weft__form_of_op(struct weft_wire_form *out, uint8_t op)
{
	const struct weft_op_form *form = &weft__op_forms[op];
	const struct {
		uint16_t bit;
		enum weft_field_type type;
		const char *name;
	} all[] = {
	    {WEFT_FIELD_A, WEFT_TYPE_ID, form->a},
	    {WEFT_FIELD_B, WEFT_TYPE_ID, form->b},
	    {WEFT_FIELD_KIND, WEFT_TYPE_U8, "kind"},
	    {WEFT_FIELD_WHAT, WEFT_TYPE_U8, "what"},
	    {WEFT_FIELD_SITE, WEFT_TYPE_U16, "site"},
	    {WEFT_FIELD_VALUE, WEFT_TYPE_NUMBER, form->value},
	    {WEFT_FIELD_WHY, WEFT_TYPE_U8, form->value},
	    {WEFT_FIELD_LOW, WEFT_TYPE_U32, form->value},
	    {WEFT_FIELD_SINCE, WEFT_TYPE_U64, form->value},
	    {WEFT_FIELD_LONG, WEFT_TYPE_I64, form->value},
	    {WEFT_FIELD_TEXT, WEFT_TYPE_TEXT, form->text},
	};
	out->count = 0;
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
		if (form->fields & all[i].bit)
			out->fields[out->count++] = (struct weft_wire_field){.name = all[i].name,
			    .name_bytes = (uint32_t)__builtin_strlen(all[i].name),
			    .type = all[i].type,
			    .bit = all[i].bit};
}

static const char *const type_names[WEFT_TYPE_COUNT] = {
#define NAME(NAME, name, tsdl) [WEFT_TYPE_##NAME] = name,
    WEFT_FIELD_TYPES(NAME)
#undef NAME
};

static bool is_equal_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	size_t i = 0;
	while (i < a_bytes && i < b_bytes && a[i] == b[i])
		i++;
	return i == a_bytes && i == b_bytes;
}

static bool is_name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static bool find_type(const char *name, size_t bytes, enum weft_field_type *out)
{
	for (unsigned i = 0; i < WEFT_TYPE_COUNT; i++)
		if (is_equal_text(name, bytes, type_names[i], __builtin_strlen(type_names[i]))) {
			*out = (enum weft_field_type)i;
			return true;
		}
	return false;
}

bool weft__form_parse(struct weft_wire_form *out, const char *text, size_t bytes)
{
	const char *at = text, *end = text + bytes;
	unsigned texts = 0;
	out->count = 0;
	while (at < end) {
		struct weft_wire_field field = {.name = at};
		while (at < end && is_name_char(*at, at == field.name))
			at++;
		field.name_bytes = (uint32_t)(at - field.name);
		if (!field.name_bytes || end - at < 2 || *at++ != ':' || *at++ != ' ')
			return false;
		const char *type = at;
		while (at < end && *at != ',')
			at++;
		if (out->count == WEFT_FIELDS_MAX || !find_type(type, (size_t)(at - type), &field.type))
			return false;
		texts += field.type == WEFT_TYPE_TEXT;
		out->fields[out->count++] = field;
		if (at < end && (end - at < 3 || *at++ != ',' || *at++ != ' '))
			return false;
	}
	/* The id byte has bits for one text only. */
	return texts <= 1;
}

bool weft__form_match(struct weft_wire_form *form, uint8_t op)
{
	struct weft_wire_form known;
	unsigned found = 0;
	weft__form_of_op(&known, op);
	for (unsigned i = 0; i < form->count; i++) {
		struct weft_wire_field *f = &form->fields[i];
		f->bit = 0;
		for (unsigned k = 0; k < known.count; k++)
			if (f->type == known.fields[k].type &&
			    is_equal_text(f->name, f->name_bytes, known.fields[k].name, known.fields[k].name_bytes))
				f->bit = known.fields[k].bit;
		found |= f->bit;
	}
	return found == weft__op_forms[op].fields;
}

unsigned weft__form_payload_bytes(const struct weft_wire_form *form, uint8_t id)
{
	unsigned word = id & WEFT_ID_WIDE ? 8 : 4, n = 0;
	bool has_word = false, has_text = false;
	for (unsigned i = 0; i < form->count; i++)
		switch (form->fields[i].type) {
		case WEFT_TYPE_ID:
		case WEFT_TYPE_NUMBER:
			has_word = true;
			n += word;
			break;
		case WEFT_TYPE_TEXT:
			has_text = true;
			n += !(id & WEFT_ID_INLINE) ? 2 : id & WEFT_ID_CUT ? 4 : 0;
			break;
		case WEFT_TYPE_U8: n += 1; break;
		case WEFT_TYPE_U16: n += 2; break;
		case WEFT_TYPE_U32: n += 4; break;
		case WEFT_TYPE_U64:
		case WEFT_TYPE_I64: n += 8; break;
		case WEFT_TYPE_STRING:
		case WEFT_TYPE_COUNT: break;
		}
	bool is_none = id == WEFT_ID_EXTENDED || (id & WEFT_ID_WIDE && !has_word) || (id & WEFT_ID_INLINE && !has_text) ||
		       (id & WEFT_ID_CUT && !(id & WEFT_ID_INLINE));
	return is_none ? 0 : n + 1;
}

/* Writes a value in host byte order, unaligned. */
#define WRITE_VALUE(to, type, v)                                                                                                 \
	do {                                                                                                                     \
		type value_ = (type)(v);                                                                                         \
		__builtin_memcpy(to, &value_, sizeof value_);                                                                    \
		(to) += sizeof value_;                                                                                           \
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
	n += f & WEFT_FIELD_WHAT ? 1 : 0;
	n += f & WEFT_FIELD_SITE ? 2 : 0;
	n += f & WEFT_FIELD_VALUE ? word : 0;
	n += f & WEFT_FIELD_WHY ? 1 : 0;
	n += f & WEFT_FIELD_LOW ? 4 : 0;
	n += f & (WEFT_FIELD_SINCE | WEFT_FIELD_LONG) ? 8 : 0;
	if (f & WEFT_FIELD_TEXT)
		n += !(id & WEFT_ID_INLINE) ? 2 : id & WEFT_ID_CUT ? 4 : 0;
	return n + 1;
}

static bool needs_64_bits(int64_t v)
{
	return v != (int32_t)v;
}

uint8_t weft__event_id(const struct weft_wire_event *event)
{
	unsigned f = weft__op_forms[event->op].fields, id = event->op;
	if ((f & WEFT_FIELD_A && needs_64_bits(event->a)) || (f & WEFT_FIELD_B && needs_64_bits(event->b)) ||
	    (f & WEFT_FIELD_VALUE && needs_64_bits(event->value)))
		id |= WEFT_ID_WIDE;
	if (f & WEFT_FIELD_TEXT && !event->key)
		id |= WEFT_ID_INLINE | (event->cut ? WEFT_ID_CUT : 0);
	return (uint8_t)id;
}

size_t weft__event_payload(const struct weft_wire_event *event, uint8_t id)
{
	return weft__payload_bytes(id) - 1 + (id & WEFT_ID_INLINE ? (size_t)event->text_bytes + 1 : 0);
}

void weft__event_cut(struct weft_wire_event *event, size_t max_bytes)
{
	struct weft_wire_event bare = *event;
	bare.text_bytes = 0;
	bare.cut = 1;
	size_t fixed = weft__event_payload(&bare, weft__event_id(&bare)), old_bytes = event->text_bytes;
	size_t keep = max_bytes > fixed ? max_bytes - fixed : 0;
	if (event->key || keep >= old_bytes)
		return;
	event->cut += (uint32_t)(old_bytes - keep);
	event->text_bytes = (uint32_t)keep;
}

static unsigned char *write_text(unsigned char *to, const char *text, uint32_t n)
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
		WRITE_VALUE(to, uint64_t, time);
	} else {
		*to++ = id;
		WRITE_VALUE(to, uint32_t, time);
	}
	unsigned f = weft__op_forms[event->op].fields;
	bool wide = id & WEFT_ID_WIDE;
	const int64_t words[] = {event->a, event->b};
	for (unsigned i = 0; i < 2; i++)
		if (f & (WEFT_FIELD_A << i)) {
			if (wide)
				WRITE_VALUE(to, int64_t, words[i]);
			else
				WRITE_VALUE(to, int32_t, words[i]);
		}
	if (f & (WEFT_FIELD_KIND | WEFT_FIELD_WHAT))
		*to++ = event->kind;
	if (f & WEFT_FIELD_SITE)
		WRITE_VALUE(to, uint16_t, event->site);
	if (f & WEFT_FIELD_VALUE) {
		if (wide)
			WRITE_VALUE(to, int64_t, event->value);
		else
			WRITE_VALUE(to, int32_t, event->value);
	}
	if (f & WEFT_FIELD_WHY)
		*to++ = (unsigned char)event->value;
	if (f & WEFT_FIELD_LOW)
		WRITE_VALUE(to, uint32_t, event->value);
	if (f & (WEFT_FIELD_SINCE | WEFT_FIELD_LONG))
		WRITE_VALUE(to, int64_t, event->value);
	if (f & WEFT_FIELD_TEXT) {
		if (!(id & WEFT_ID_INLINE)) {
			WRITE_VALUE(to, uint16_t, event->key);
		} else {
			if (id & WEFT_ID_CUT)
				WRITE_VALUE(to, uint32_t, event->cut);
			to = write_text(to, event->text, event->text_bytes);
			if (id & WEFT_ID_CUT && event->text_bytes >= 3)
				__builtin_memcpy(to - 4, "\xe2\x80\xa6", 3);
		}
	}
	return to;
}

size_t weft__definition_bytes(const struct weft_wire_definition *d)
{
	size_t n = WEFT_EXTENDED_HEADER, text = (size_t)d->text_bytes + 1, second = (size_t)d->second_bytes + 1;
	switch (d->what) {
	case WEFT_DEFINE_STRING: return n + 2 + text;
	case WEFT_DEFINE_SITE: return n + 2 + 4 + text + second;
	case WEFT_DEFINE_THREAD: return n + 4 + 8 + text;
	case WEFT_DEFINE_MODULE: return n + 2 + 8 + 8 + text + second;
	case WEFT_DEFINE_PLACE: return n + 2 + 2 + 8;
	case WEFT_DEFINE_FORM: return n + 1 + 1 + text + second;
	}
	return n;
}

unsigned char *weft__definition_write(unsigned char *to, const struct weft_wire_definition *d, uint64_t time)
{
	*to++ = WEFT_ID_EXTENDED;
	*to++ = (unsigned char)d->what;
	WRITE_VALUE(to, uint64_t, time);
	switch (d->what) {
	case WEFT_DEFINE_STRING: WRITE_VALUE(to, uint16_t, d->key); break;
	case WEFT_DEFINE_SITE:
		WRITE_VALUE(to, uint16_t, d->key);
		WRITE_VALUE(to, uint32_t, d->line);
		break;
	case WEFT_DEFINE_THREAD:
		WRITE_VALUE(to, uint32_t, d->stream);
		WRITE_VALUE(to, uint64_t, d->tid);
		break;
	case WEFT_DEFINE_MODULE:
		WRITE_VALUE(to, uint16_t, d->key);
		WRITE_VALUE(to, uint64_t, d->address);
		WRITE_VALUE(to, uint64_t, d->size);
		break;
	case WEFT_DEFINE_PLACE:
		WRITE_VALUE(to, uint16_t, d->key);
		WRITE_VALUE(to, uint16_t, d->module);
		WRITE_VALUE(to, uint64_t, d->address);
		return to;
	case WEFT_DEFINE_FORM:
		*to++ = d->stream_class;
		*to++ = d->id;
		break;
	}
	to = write_text(to, d->text, d->text_bytes);
	if (d->what == WEFT_DEFINE_SITE || d->what == WEFT_DEFINE_MODULE || d->what == WEFT_DEFINE_FORM)
		to = write_text(to, d->second, d->second_bytes);
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
