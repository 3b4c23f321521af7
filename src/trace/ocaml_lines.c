/* ocaml_lines.c: prints runtime events as OCaml's own reader does: one ring after another, one line for each event.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/utf8.h"
#include "trace/ocaml_eio.h"
#include "trace/ocaml_lwt.h"

/* Size of the longest line: an allocation with 20 numbers, or a text of 1,024 bytes that are printed as four characters
 * each. */
enum { LINE = 8192 };

struct line {
	char text[LINE];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void append_format(struct line *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int length = vsnprintf(line->text + line->length, LINE - line->length, format, args);
	va_end(args);
	line->length += length > 0 ? (size_t)length : 0;
	line->length = line->length < LINE - 1 ? line->length : LINE - 1;
}

static void append_quoted(struct line *line, struct weft_str text)
{
	char valid[3 * 1024 + 1];
	const size_t length = weft_utf8_copy(valid, sizeof valid, text);
	append_format(line, " \"");
	for (size_t i = 0; i < length && i < sizeof valid - 1; i++) {
		const unsigned char c = (unsigned char)valid[i];
		if (c == '"' || c == '\\')
			append_format(line, "\\%c", c);
		else if (c == '\n')
			append_format(line, "\\n");
		else if (c < ' ')
			append_format(line, "\\x%02x", c);
		else
			append_format(line, "%c", c);
	}
	append_format(line, "\"");
}

/* Appends a text in the form that OCaml's %S prints. */
static void append_ocaml_string(struct line *line, struct weft_str text)
{
	append_format(line, "\"");
	for (size_t i = 0; i < text.len; i++) {
		static const char escapes[] = "\"\"\\\\\nn\tt\rr\bb";
		const unsigned char c = (unsigned char)text.ptr[i];
		const char *escape = escapes;
		while (*escape && (unsigned char)*escape != c)
			escape += 2;
		if (*escape)
			append_format(line, "\\%c", escape[1]);
		else
			append_format(line, c < ' ' || c >= 127 ? "\\%03u" : "%c", c);
	}
	append_format(line, "\"");
}

static void append_lwt_wait(struct line *line, const struct weft__lwt_event *e)
{
	char file[256 * 3 + 1];
	weft_utf8_copy(file, sizeof file, e->file);
	weft_utf8_sanitize(file);
	append_format(line, " %s %s:%" PRIu32 " context=", e->is_end ? "end" : "begin", file, e->line);
	if (e->has_context)
		append_ocaml_string(line, e->context);
	else
		append_format(line, "-");
}

static void append_custom(
    struct line *line, enum weft__eio_what what, enum weft__lwt_what lwt, const struct weft__ocaml_event *ev)
{
	struct weft__eio_event e;
	struct weft__lwt_event wait;
	if (lwt == WEFT__LWT_TRACE && weft__lwt_decode(&wait, lwt, ev)) {
		append_lwt_wait(line, &wait);
		return;
	}
	if (!weft__eio_decode(&e, what, ev)) {
		append_format(line, ev->size ? " " : " -");
		for (size_t i = 0; i < ev->size; i++)
			append_format(line, "%02x", ev->bytes[i]);
		return;
	}
	if (what == WEFT__EIO_CREATE_FIBER)
		append_format(line, " %" PRId64 " %" PRId64, e.id, e.other);
	else if (what == WEFT__EIO_CREATE_CC || what == WEFT__EIO_CREATE_OBJ) {
		const char *name = weft__eio_type_name(what, e.type);
		append_format(line, name ? " %" PRId64 " %s" : " %" PRId64 " type", e.id, name);
		if (!name)
			append_format(line, "%u", e.type);
	} else {
		if (what == WEFT__EIO_ERROR || what == WEFT__EIO_NAME)
			append_format(line, " %" PRId64, e.id);
		append_quoted(line, e.text);
	}
}

static void append_event(
    struct line *line, const struct weft__ocaml_file *file, uint32_t ring, const struct weft__ocaml_event *ev)
{
	static const char *const whats[] = {
	    "lifecycle", "begin", "end", "counter", "alloc", "unit", "int", "span", "span", "custom", "unknown"};
	static const char *const lives[] = {"ring_start", "ring_stop", "ring_pause", "ring_resume", "fork_parent", "fork_child",
	    "domain_spawn", "domain_terminate"};
	append_format(line, "%" PRIu32 " %" PRIu64 " %s", ring, ev->time_ns, whats[ev->what]);
	const char *kind = NULL, *name = NULL;
	if (ev->what == WEFT__OCAML_LIFECYCLE) {
		kind = "lifecycle";
		name = ev->id < sizeof lives / sizeof lives[0] ? lives[ev->id] : NULL;
	} else if (ev->what == WEFT__OCAML_BEGIN || ev->what == WEFT__OCAML_END) {
		kind = "phase";
		name = weft__ocaml_phase(file, ev->id)->name;
	} else if (ev->what == WEFT__OCAML_COUNTER) {
		kind = "counter";
		name = weft__ocaml_counter(ev->id);
	}
	if (name)
		append_format(line, " %s", name);
	else if (kind)
		append_format(line, " %s%u", kind, ev->id);
	const struct weft_str user = ev->is_user ? weft__ocaml_name(file, ev->id) : (struct weft_str){0};
	if (user.len)
		append_format(line, " %.*s", (int)user.len, user.ptr);
	if (ev->has_value || ev->what == WEFT__OCAML_UNKNOWN)
		append_format(line, " %" PRId64, ev->value);
	else if (ev->what == WEFT__OCAML_SPAN_BEGIN || ev->what == WEFT__OCAML_SPAN_END)
		append_format(line, ev->what == WEFT__OCAML_SPAN_BEGIN ? " begin" : " end");
	else if (ev->what == WEFT__OCAML_CUSTOM)
		append_custom(line, weft__eio_what(user), weft__lwt_what(user), ev);
	else if (ev->what == WEFT__OCAML_ALLOC)
		for (size_t i = 0; i + 8 <= ev->size; i += 8) {
			const uint64_t value = weft_load_u64(ev->bytes + i);
			append_format(line, "%c%" PRIu64, i ? ',' : ' ', file->is_big ? __builtin_bswap64(value) : value);
		}
}

int weft__ocaml_lines(const struct weft__ocaml_file *file, weft_trace_line_fn *write_line, void *ctx)
{
	struct line line;
	int status = 0;
	for (size_t i = 0; i < file->ring_count && status == 0; i++) {
		const struct weft__ocaml_ring *ring = &file->rings[i];
		if (ring->lost) {
			line.length = 0;
			append_format(&line, "%" PRIu32 " - lost %" PRIu64, ring->number, ring->lost);
			status = write_line(ctx, line.text);
		}
		struct weft__ocaml_event ev;
		for (uint64_t at = ring->head; status == 0 && weft__ocaml_read(file, ring, &at, &ev);) {
			line.length = 0;
			append_event(&line, file, ring->number, &ev);
			status = write_line(ctx, line.text);
		}
	}
	return status;
}
