/* native_redefine.c: restores names if definitions are truncated or lost: a stream repeats each definition before it uses it
 * for the first time.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/cursor.h"
#include "trace/native.h"

/* Takes the next line from a text; returns false if there is none. */
static bool next_line(struct weft_str *text, struct weft_str *out)
{
	const char *end = text->len ? memchr(text->ptr, '\n', text->len) : NULL;
	if (!text->len)
		return false;
	*out = (struct weft_str){text->ptr, end ? (uint32_t)(end - text->ptr) : text->len};
	text->len -= out->len + (end != NULL);
	text->ptr += out->len + (end != NULL);
	return true;
}

static bool next_number(struct weft_str *text, uint64_t *out)
{
	struct weft_str line;
	if (!next_line(text, &line) || line.len == 0 || line.len > 16)
		return false;
	*out = 0;
	for (uint32_t i = 0; i < line.len; i++) {
		const char c = line.ptr[i];
		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		*out = *out << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return true;
}

static void set_text(struct weft_str text, const char **out, uint32_t *bytes)
{
	*out = text.ptr;
	*bytes = text.len;
}

/* Parses a detail that repeats a definition; returns false if the detail is damaged or cut. */
static bool parse_redefinition(const struct weft_event *event, struct weft_wire_definition *out)
{
	struct weft_str text = event->text, second = {"", 0};
	uint64_t what, number = 0;
	if (event->value <= 0 || event->value > UINT16_MAX || !next_number(&text, &what) || what > WEFT_DEFINE_PLACE)
		return false;
	*out = (struct weft_wire_definition){.what = (enum weft_definition)what, .key = (uint16_t)event->value};
	const bool has_second = what == WEFT_DEFINE_SITE || what == WEFT_DEFINE_MODULE;
	if ((what == WEFT_DEFINE_SITE || what == WEFT_DEFINE_PLACE) && (!next_number(&text, &number) || number > UINT32_MAX))
		return false;
	if ((what == WEFT_DEFINE_PLACE || what == WEFT_DEFINE_MODULE) && !next_number(&text, &out->address))
		return false;
	if ((what == WEFT_DEFINE_MODULE && !next_number(&text, &out->size)) || (has_second && !next_line(&text, &second)))
		return false;
	out->line = (uint32_t)number;
	out->module = (uint16_t)number;
	set_text(text, &out->text, &out->text_bytes);
	set_text(second, &out->second, &out->second_bytes);
	return true;
}

enum pass { PASS_MODULES, PASS_OTHERS, PASS_UNKNOWN };

/* Adds the definitions that a packet repeats, or searches the packet for a key without a definition.  Returns 1 if such a key
 * is found, 0 if not, or WEFT_ENOMEM. */
static int scan_packet(struct native *n, const struct native_packet *p, enum pass pass)
{
	struct weft_cursor in = {p->bytes + p->header_bytes, p->bytes + p->content_bytes};
	struct weft_wire_definition definition;
	struct weft_event event;
	uint64_t last = p->begin;
	bool is_unknown = false;
	while (!is_unknown && in.at < in.end && weft__native_decode(n, p->version, &in, &last, &event, &is_unknown)) {
		is_unknown &= pass == PASS_UNKNOWN;
		if (pass != PASS_UNKNOWN && event.op == WEFT_OP_DETAIL && event.kind == WEFT_DETAIL_DEFINITION &&
		    parse_redefinition(&event, &definition) &&
		    (definition.what == WEFT_DEFINE_MODULE) == (pass == PASS_MODULES) && weft__native_define(n, &definition) < 0)
			return WEFT_ENOMEM;
	}
	return is_unknown;
}

int weft__native_read_redefinitions(struct weft_trace *trace)
{
	struct native *n = trace->state;
	int found = 0;
	/* Modules are read first, because places name their modules. */
	for (enum pass pass = PASS_MODULES; pass <= PASS_UNKNOWN; pass++)
		for (size_t i = 0; i < n->packets.count && found == 0; i++)
			found = scan_packet(n, &n->packets.items[i], pass);
	trace->info.has_missing_names = found != 0;
	return found < 0 ? WEFT_ENOMEM : WEFT_OK;
}
