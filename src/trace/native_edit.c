/* native_edit.c: makes edited copies of the packets of a native trace: with other texts, or cut at a time.
 *
 * Packets keep their order, numbers and losses, so that a copy is read like the original.  A cut trace is like a ring with less
 * capacity: facts that were recorded in the removed part and are still in force are recorded again in front of the rest.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "trace/native.h"
#include "wire/kernel.h"
#include "wire/memory.h"
#include "wire/profile.h"

static void set_size(struct native_copy *copy, size_t size)
{
	const uint64_t bits = (uint64_t)size * 8;
	copy->size = size;
	memcpy(copy->bytes + WEFT_PACKET_AT(content_size), &bits, sizeof bits);
	memcpy(copy->bytes + WEFT_PACKET_AT(packet_size), &bits, sizeof bits);
}

/* Returns the content of a packet, which follows its header. */
static struct weft_cursor get_content(const struct native_copy *copy)
{
	return (struct weft_cursor){
	    copy->bytes + weft_load_u16(copy->bytes + WEFT_PACKET_AT(header_bytes)), copy->bytes + copy->size};
}

/* ---- Texts ---- */

/* Edits a text if it is in the copy of the packet; other texts are in the definitions. */
static void edit_text(const struct native_copy *copy, struct weft_str text, const struct weft_trace_edit *edit)
{
	const uintptr_t begin = (uintptr_t)copy->bytes, at = (uintptr_t)text.ptr;
	if (text.len > 0 && at >= begin && at - begin < copy->size)
		edit->text(edit->ctx, (char *)copy->bytes + (at - begin), text.len);
}

/* Returns the text after the byte `mark` has occurred `times` times; "" if it occurs less often. */
static struct weft_str skip_past(struct weft_str text, char mark, unsigned times)
{
	while (times-- > 0) {
		const char *at = memchr(text.ptr, mark, text.len);
		const uint32_t gone = at ? (uint32_t)(at - text.ptr) + 1 : text.len;
		text.ptr += gone;
		text.len -= gone;
	}
	return text;
}

static unsigned count_leading_numbers(struct weft_str definition)
{
	switch (definition.len ? definition.ptr[0] - '0' : -1) {
	case WEFT_DEFINE_SITE: return 2;
	case WEFT_DEFINE_PLACE:
	case WEFT_DEFINE_MODULE: return 3;
	default: return 1;
	}
}

static void edit_detail(const struct native_copy *copy, const struct weft_event *e, const struct weft_trace_edit *edit)
{
	struct weft_str text = e->text;
	switch (e->kind) {
	case WEFT_DETAIL_STACK:
	case WEFT_DETAIL_ROUND:
	case WEFT_DETAIL_BLOCKED:
	case WEFT_DETAIL_PLACE:
	case WEFT_DETAIL_CALLBACK:
	case WEFT_DETAIL_DIED: return; /* the text has only numbers, and names from libc */
	case WEFT_DETAIL_DEFINITION: text = skip_past(text, '\n', count_leading_numbers(text)); break;
	case WEFT_DETAIL_CONNECTION: /* the text has a protocol, two addresses and a number */
		text = skip_past(text, ' ', 1);
		while (text.len > 0 && text.ptr[text.len - 1] != ' ')
			text.len--;
		break;
	default: break;
	}
	edit_text(copy, text, edit);
}

/* Edits a digest, so that the bytes of a message cannot be found by trying which bytes give the digest.  The digest is replaced
 * like a word, and another digest is made of the replacement. */
static void edit_digest(const struct native_copy *copy, size_t at, int64_t digest, const struct weft_trace_edit *edit)
{
	static const char letters[] = "bcdfghjklmnpqrst"; /* no word of a known meaning consists of these letters */
	char word[17] = "z";
	uint64_t rest = digest < 0 ? 0 - (uint64_t)digest : (uint64_t)digest, sum = 0;
	for (size_t i = 1; i < sizeof word; i++, rest /= 16)
		word[i] = letters[rest % 16];
	edit->text(edit->ctx, word, sizeof word);
	for (size_t i = 0; i < sizeof word; i++)
		sum = (sum + (unsigned char)word[i]) * UINT64_C(0x100000001b3);
	const int64_t new = (int64_t)(sum >> 1 | 1), edited = digest < 0 ? -new : new;
	memcpy(copy->bytes + at, &edited, sizeof edited);
}

/* Edits the texts of an event whose form is in the trace or in a table; `edit` may be NULL.  False: damaged. */
static bool edit_fields(const struct native *n, const struct native_copy *copy, struct weft_cursor *in,
    const struct weft_wire_form *form, uint8_t id, const struct weft_trace_edit *edit)
{
	for (unsigned i = 0; i < form->count; i++) {
		struct weft_field field;
		if (!weft__native_read_field(n, in, &form->fields[i], id, &field))
			return false;
		if (field.is_text && edit)
			edit_text(copy, field.text, edit);
	}
	return true;
}

static bool edit_event(const struct native *n, const struct native_copy *copy, unsigned version, struct weft_cursor *in,
    uint64_t *last, const struct weft_trace_edit *edit)
{
	const unsigned char *at = in->at;
	struct weft_event event;
	bool is_unknown;
	if (!weft__native_decode(n, version, in, last, &event, &is_unknown))
		return false;
	const bool extended = at[0] == WEFT_ID_EXTENDED;
	const uint8_t id = at[extended];
	const struct native_form *form = &n->forms[version - 1].forms[id];
	if (form->is_extra) {
		struct weft_cursor fields = {at + (extended ? WEFT_EXTENDED_HEADER : WEFT_COMPACT_HEADER), in->at};
		return edit_fields(n, copy, &fields, &n->extras.items[form->extra].form, id, edit);
	}
	if (event.op == WEFT_OP_DETAIL && event.kind == WEFT_DETAIL_DATAGRAM) {
		const size_t before = (extended ? WEFT_EXTENDED_HEADER : WEFT_COMPACT_HEADER) + (id & WEFT_ID_WIDE ? 8 : 4) + 1;
		edit_digest(copy, (size_t)(at - copy->bytes) + before, event.value, edit);
	}
	if (event.op == WEFT_OP_DETAIL)
		edit_detail(copy, &event, edit);
	else
		edit_text(copy, event.text, edit);
	return true;
}

/* Edits the name of the thread in the packet header. */
static void edit_name(const struct native_copy *copy, const struct weft_trace_edit *edit)
{
	const char *name = (const char *)copy->bytes + WEFT_PACKET_AT(thread_name);
	edit_text(copy, (struct weft_str){name, (uint32_t)strnlen(name, WEFT_THREAD_NAME_SIZE)}, edit);
}

void weft__native_edit_events(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	const unsigned version = weft_load_u16(copy->bytes + WEFT_PACKET_AT(version));
	uint64_t last = weft_load_u64(copy->bytes + WEFT_PACKET_AT(timestamp_begin));
	struct weft_cursor in = get_content(copy);
	edit_name(copy, edit);
	while (in.at < in.end) {
		const size_t whole = (size_t)(in.at - copy->bytes);
		if (!edit_event(n, copy, version, &in, &last, edit)) {
			set_size(copy, whole);
			return;
		}
	}
}

/* The form of an event of another class, with its id; the last entry of a table has no fields. */
struct named_form {
	const char *fields;
	uint8_t id;
};

static const struct named_form definition_forms[] = {
#define FORM(NAME, value, name, fields) {fields, value},
    WEFT_DEFINITIONS(FORM)
#undef FORM
	{NULL, 0},
};

static const struct named_form kernel_forms[] = {
#define FORM(NAME, value, name, fields) {fields, value},
    WEFT_KERNEL_OPS(FORM)
#undef FORM
	{NULL, 0},
};

static const struct named_form profile_forms[] = {
#define FORM(NAME, value, name, fields) {fields, value},
    WEFT_PROFILE_OPS(FORM)
#undef FORM
	{NULL, 0},
};

static const struct named_form memory_forms[] = {
#define FORM(NAME, value, name, fields) {fields, value},
    WEFT_MEMORY_OPS(FORM)
#undef FORM
	{NULL, 0},
};

static bool find_form(const struct native *n, const struct named_form *forms, uint8_t id, struct weft_wire_form *own,
    const struct weft_wire_form **out)
{
	for (; forms->fields; forms++)
		if (forms->id == id) {
			*out = own;
			return weft__form_parse(own, forms->fields, strlen(forms->fields));
		}
	for (size_t i = 0; i < n->extras.count; i++)
		if (n->extras.items[i].stream_class == WEFT_CLASS_DEFINITIONS && n->extras.items[i].id == id) {
			*out = &n->extras.items[i].form;
			return true;
		}
	return false;
}

static void edit_others(
    const struct native *n, const struct named_form *forms, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	struct weft_cursor in = get_content(copy);
	edit_name(copy, edit);
	while (in.at < in.end) {
		const size_t whole = (size_t)(in.at - copy->bytes);
		const struct weft_wire_form *form;
		struct weft_wire_form own;
		uint8_t id;
		uint32_t low;
		uint64_t time;
		bool ok = weft_read_u8(&in, &id) && (id == WEFT_ID_EXTENDED ? weft_read_u8(&in, &id) && weft_read_u64(&in, &time)
									    : weft_read_u32(&in, &low));
		/* The names in the trace's own forms define the meaning of its events, so they are not changed. */
		const bool is_form = forms == definition_forms && ok && id == WEFT_DEFINE_FORM;
		if (!ok || !find_form(n, forms, id, &own, &form) || !edit_fields(n, copy, &in, form, id, is_form ? NULL : edit)) {
			set_size(copy, whole);
			return;
		}
	}
}

void weft__native_edit_definitions(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	edit_others(n, definition_forms, copy, edit);
}

void weft__native_edit_kernel(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	edit_others(n, kernel_forms, copy, edit);
}

void weft__native_edit_profile(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	edit_others(n, profile_forms, copy, edit);
}

void weft__native_edit_memory(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	edit_others(n, memory_forms, copy, edit);
}

/* ---- Metadata ---- */

static bool describes_format(const char *name, size_t bytes)
{
	static const char *const retained[] = {"domain", "tracer_name", "tracer_major", "tracer_minor", "clock_source",
	    "clock_measured", "mode", "state", "stream_packets"};
	for (size_t i = 0; i < sizeof retained / sizeof *retained; i++)
		if (strlen(retained[i]) == bytes && memcmp(name, retained[i], bytes) == 0)
			return true;
	return false;
}

/* Edits a quoted string, but not its escapes; returns the end of the string. */
static char *edit_quoted(char *at, bool is_retained, const struct weft_trace_edit *edit)
{
	while (*at && *at != '"') {
		const size_t plain = strcspn(at, "\\\"");
		if (plain > 0 && !is_retained)
			edit->text(edit->ctx, at, (uint32_t)plain);
		at += plain;
		if (*at != '\\')
			continue;
		at++;
		const size_t octal = strspn(at, "01234567");
		if (octal >= 3 && !is_retained)
			memcpy(at, "077", 3); /* '?' */
		at += octal >= 3 ? 3 : *at != '\0';
	}
	return at + (*at == '"');
}

void weft__native_edit_metadata(char *text, const struct weft_trace_edit *edit)
{
	static const char block[] = "env {", ring[] = "ring", grow[] = "\"grow\"";
	char *at = strstr(text, block), *name = at;
	size_t name_bytes = 0;
	if (!at)
		return;
	for (at += sizeof block - 1; *at && *at != '}';) {
		const size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
		if (word > 0) {
			if (strspn(at + word, " \t=") > 0) {
				name = at;
				name_bytes = word;
			}
			at += word;
		} else if (*at == '"') {
			if (edit->is_cut && name_bytes == 4 && memcmp(name, "mode", 4) == 0 &&
			    strncmp(at, grow, sizeof grow - 1) == 0)
				memcpy(at + 1, ring, sizeof ring - 1);
			at = edit_quoted(at + 1, !edit->text || describes_format(name, name_bytes), edit);
		} else
			at++;
	}
}

/* ---- Cut ---- */

uint64_t weft__native_ticks(uint64_t hz, int64_t ns)
{
	if (ns <= 0)
		return 0;
	if (hz == 1000000000u)
		return (uint64_t)ns;
	uint64_t ticks = (uint64_t)((double)ns * ((double)hz / 1e9));
	while (ticks > 0 && weft__ticks_ns(ticks - 1, hz) >= ns)
		ticks--;
	while (weft__ticks_ns(ticks, hz) < ns)
		ticks++;
	return ticks;
}

/* Returns the key of each site; the caller frees the array. */
static uint16_t *map_sites_to_keys(const struct native *n)
{
	uint16_t *keys = calloc(n->sites.count + 1, sizeof *keys);
	for (uint32_t key = 1; keys && key < n->key_count; key++)
		if (n->site_index[key] != WEFT_NO_SITE)
			keys[n->site_index[key]] = (uint16_t)key;
	return keys;
}

/* Writes an event at a time; returns the size of the event, also if `to` is NULL. */
static size_t write_event(
    const struct native *n, const struct weft_event *e, const uint16_t *keys, uint64_t ticks, unsigned char *to)
{
	struct weft_wire_event event = {.op = e->op,
	    .kind = e->kind,
	    .a = e->a,
	    .b = e->b,
	    .value = e->op == WEFT_OP_PENDING ? (int64_t)weft__native_ticks(n->clock.hz, e->value) : e->value,
	    .text = e->text.len ? e->text.ptr : "",
	    .text_bytes = e->text.len};
	if (e->site != WEFT_NO_SITE)
		event.site = keys[e->site];
	const uint8_t id = weft__event_id(&event);
	if (to)
		weft__event_write(to, &event, id, ticks, true);
	return WEFT_EXTENDED_HEADER + weft__event_payload(&event, id);
}

/* Sets the thread to which an instance belonged at a time, because it may have changed since the start of the packet. */
static void set_thread(const struct native *n, unsigned char *header, uint32_t instance, uint64_t ticks)
{
	const uint64_t begin = weft_load_u64(header + WEFT_PACKET_AT(timestamp_begin));
	for (size_t i = 0; i < n->changes.count; i++) {
		const struct native_change *c = &n->changes.items[i];
		if (c->instance != instance || c->since <= begin || c->since > ticks)
			continue;
		char name[WEFT_THREAD_NAME_SIZE] = {0};
		memcpy(name, c->name.ptr, c->name.len < sizeof name ? c->name.len : sizeof name - 1);
		memcpy(header + WEFT_PACKET_AT(thread_name), name, sizeof name);
		memcpy(header + WEFT_PACKET_AT(tid), &c->tid, sizeof c->tid);
	}
}

/* Moves behind the position that was reached in the packet.  The events of the checkpoint must not be later than the first
 * event that is kept, because its time is stored as a difference to the previous event. */
static void seek_to_position(
    const struct native *n, const struct native_packet *p, struct weft_cursor *in, uint64_t *ticks, uint64_t *before)
{
	const struct weft_stream_position *reached = weft_position_of_stream(n->from, p->instance);
	struct weft_event event;
	bool is_unknown;
	uint64_t last = p->begin;
	if (reached && reached->sequence == p->sequence) {
		in->at = p->bytes + (reached->bytes < p->content_bytes ? reached->bytes : p->content_bytes);
		*before = reached->events;
		last = reached->last > last ? reached->last : last;
	}
	struct weft_cursor first = *in;
	uint64_t next = last;
	*ticks = *ticks > last ? *ticks : last;
	if (first.at < first.end && weft__native_decode(n, p->version, &first, &next, &event, &is_unknown) && next < *ticks)
		*ticks = last;
}

int weft__native_cut(const struct native *n, const struct native_packet *p, unsigned first_stream, unsigned end_stream,
    const struct weft_trace_edit *edit, struct native_copy *out, uint64_t *more)
{
	uint64_t ticks = weft__native_ticks(n->clock.hz, edit->from_ns), last = p->begin, before = p->events_before;
	struct weft_cursor in = {p->bytes + p->header_bytes, p->bytes + p->content_bytes};
	const unsigned char *from;
	size_t bytes = p->header_bytes;
	struct weft_event event;
	bool is_unknown;
	uint16_t *keys = map_sites_to_keys(n);
	*more = 0;
	if (!keys)
		return WEFT_ENOMEM;
	if (n->from)
		seek_to_position(n, p, &in, &ticks, &before);
	from = in.at;
	while (
	    !n->from && in.at < in.end && weft__native_decode(n, p->version, &in, &last, &event, &is_unknown) && last < ticks) {
		from = in.at;
		before++;
	}
	for (size_t i = 0; i < edit->checkpoint_count; i++)
		if (edit->checkpoint[i].stream >= first_stream && edit->checkpoint[i].stream < end_stream) {
			bytes += write_event(n, &edit->checkpoint[i], keys, ticks, NULL);
			++*more;
		}
	const size_t rest = (size_t)(p->bytes + p->content_bytes - from);
	unsigned char *at = malloc(bytes + rest);
	if (!at || bytes + rest > UINT32_MAX) {
		free(at);
		free(keys);
		return WEFT_ENOMEM;
	}
	out->bytes = at;
	memcpy(at, p->bytes, p->header_bytes);
	set_thread(n, at, p->instance, ticks);
	if (ticks > p->begin)
		memcpy(at + WEFT_PACKET_AT(timestamp_begin), &ticks, sizeof ticks);
	memcpy(at + WEFT_PACKET_AT(events_before), &before, sizeof before);
	at += p->header_bytes;
	for (size_t i = 0; i < edit->checkpoint_count; i++)
		if (edit->checkpoint[i].stream >= first_stream && edit->checkpoint[i].stream < end_stream)
			at += write_event(n, &edit->checkpoint[i], keys, ticks, at);
	memcpy(at, from, rest);
	free(keys);
	set_size(out, bytes + rest);
	return WEFT_OK;
}

/* ---- Reason ---- */

/* Returns the newest time, in ticks, in any packet of events. */
static uint64_t last_tick(const struct native *n)
{
	uint64_t newest = 0;
	for (size_t i = 0; i < n->packets.count; i++) {
		const struct native_packet *p = &n->packets.items[i];
		const bool is_last = i + 1 == n->packets.count || p[1].instance != p->instance;
		struct weft_cursor in = {p->bytes + p->header_bytes, p->bytes + p->content_bytes};
		uint64_t last = p->begin;
		struct weft_event event;
		bool is_unknown;
		while (is_last && in.at < in.end && weft__native_decode(n, p->version, &in, &last, &event, &is_unknown))
			;
		newest = last > newest ? last : newest;
	}
	return newest;
}

int weft__native_append_reason(const struct native *n, struct native_copy *copy, const struct weft_trace_edit *edit)
{
	const struct weft_wire_event event = {.op = WEFT_OP_DETAIL,
	    .kind = WEFT_DETAIL_SNAPSHOT,
	    .a = WEFT_SYSTEM_ID,
	    .value = edit->runs_on ? 2 : 1,
	    .text = edit->reason,
	    .text_bytes = (uint32_t)strlen(edit->reason)};
	const uint8_t id = weft__event_id(&event);
	/* Version 1 of the format has no such event. */
	if (weft_load_u16(copy->bytes + WEFT_PACKET_AT(version)) < WEFT_WIRE_VERSION)
		return WEFT_OK;
	unsigned char *bytes = realloc(copy->bytes, copy->size + WEFT_EXTENDED_HEADER + weft__event_payload(&event, id));
	if (!bytes)
		return WEFT_ENOMEM;
	copy->bytes = bytes;
	set_size(copy, (size_t)(weft__event_write(bytes + copy->size, &event, id, last_tick(n), true) - bytes));
	return WEFT_OK;
}
