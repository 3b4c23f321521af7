/* fxt.c: reads Fuchsia traces that eio-trace made from OCaml's runtime events.
 *
 * Such a trace has fibers, contexts, operations and collections, but not which promise ends which: promises, mutexes and
 * semaphores appear only in the operations that waited for them.  Ring R is the thread with id 4R + 1, fiber F the thread with
 * id 4F + 2; a wake-up of a fiber means that it runs.  The rings are stored one after another in pieces, so all items are
 * sorted by time.
 *
 * A record consists of 64-bit words, little-endian; the first word has the type and the length: `length << 4 | type`.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/sort.h"
#include "trace/ocaml_eio.h"

#define MAGIC UINT64_C(0x0016547846040010)

enum { WORD = 8, STRINGS = 0x8000, THREADS = 256, RINGS = 4096, BATCH = 512, AHEAD = 256, NAME = 24 };
enum { R_META, R_STRING = 2, R_THREAD, R_EVENT, R_OBJECT = 6, R_SCHEDULING = 8 };
enum { E_INSTANT, E_BEGIN = 2, E_END };

/* Types of the items of a ring, in addition to those of Eio. */
enum { DOMAIN_SPAWN = 200, DOMAIN_TERMINATE, GC_BEGIN, GC_END };

struct item {
	uint64_t time_ns;
	/* event; ev.what is enum weft__eio_what, or one of the values above; the text of a GC phase is its name */
	struct weft__eio_event ev;
	uint32_t order;
	uint16_t stream;
};

struct fxt {
	struct weft__eio eio;
	WEFT_VEC(struct item) items;
	struct weft_idmap ring_of; /* by fiber */
	struct weft_str strings[STRINGS];
	uint64_t threads[THREADS], pid;
	uint16_t stream_of[RINGS]; /* by ring: its stream + 1; 0 if no item of the ring was read yet */
	uint32_t most;
	struct weft_stream_info *streams;
	char (*names)[NAME];
	unsigned *depths; /* nesting depth of collections, by stream */
	size_t stream_count, at;
	uint16_t ring; /* ring of the newest event */
	int64_t main;  /* the first fiber, with which the program ends; or -1 */
	bool is_eio, is_over;
	struct weft_event batch[BATCH + WEFT__EIO_MAX_EVENTS];
};

static enum weft_confidence probe_source(const struct weft_source *source)
{
	const bool is =
	    source->blob_count == 1 && source->blobs[0].size >= WORD && weft_load_u64(source->blobs[0].bytes) == MAGIC;
	return is ? WEFT_CONFIDENCE_SURE : WEFT_CONFIDENCE_NONE;
}

/* ---- Records ---- */

static bool str_equals(struct weft_str text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

static bool read_word(struct weft_cursor *c, uint64_t *out)
{
	return weft_read_u64(c, out);
}

/* Reads a string: a reference to an earlier string, or the text itself, padded to whole words. */
static bool read_string(struct fxt *x, struct weft_cursor *c, uint64_t reference, struct weft_str *out)
{
	if (!(reference & STRINGS)) {
		*out = reference ? x->strings[reference] : (struct weft_str){"", 0};
		return true;
	}
	const size_t length = reference & (STRINGS - 1), padded = (length + WORD - 1) / WORD * WORD;
	if (weft_cursor_left(c) < padded)
		return false;
	*out = (struct weft_str){(const char *)c->at, (uint32_t)length};
	c->at += padded;
	return true;
}

struct arguments {
	int64_t id, other;
	struct weft_str text;
};

/* Reads the arguments that eio-trace writes, and skips other arguments. */
static bool read_arguments(struct fxt *x, struct weft_cursor *c, unsigned count, struct arguments *out)
{
	for (; count > 0; count--) {
		const unsigned char *begin = c->at;
		uint64_t header, value;
		struct weft_str name, text;
		if (!read_word(c, &header))
			return false;
		const size_t length = (size_t)(header >> 4 & 0xfff) * WORD;
		struct weft_cursor rest = {c->at, begin + length};
		if (length < WORD || length - WORD > weft_cursor_left(c) || !read_string(x, &rest, header >> 16 & 0xffff, &name))
			return false;
		c->at = begin + length;
		if ((header & 15) == 6 && read_string(x, &rest, header >> 32 & 0xffff, &text))
			out->text = text;
		else if ((header & 15) == 7 && read_word(&rest, &value))
			*(str_equals(name, "cc") ? &out->other : &out->id) = (int64_t)value;
	}
	return true;
}

static uint8_t find_context_type(struct weft_str name)
{
	for (unsigned type = WEFT__EIO_SWITCH; type <= WEFT__EIO_ANY; type++)
		if (str_equals(name, weft__eio_type_name(WEFT__EIO_CREATE_CC, (uint8_t)type)))
			return (uint8_t)type;
	return 0;
}

static bool add_item(struct fxt *x, uint64_t time_ns, uint16_t ring, struct weft__eio_event ev)
{
	if (!x->stream_of[ring])
		x->stream_of[ring] = (uint16_t)++x->stream_count;
	struct item *item = x->items.count < UINT32_MAX ? weft_vec_push(&x->items) : NULL;
	if (item)
		*item = (struct item){.time_ns = time_ns,
		    .ev = ev,
		    .order = (uint32_t)(item - x->items.items),
		    .stream = (uint16_t)(x->stream_of[ring] - 1)};
	return item != NULL;
}

/* Converts an event of eio-trace; .what of the result is 0 if the event has no meaning for weft. */
static struct weft__eio_event convert_record(
    unsigned type, struct weft_str category, struct weft_str name, const struct arguments *a)
{
	struct weft__eio_event ev = {.id = a->id, .other = a->other, .text = a->text};
	if (str_equals(category, "gc")) {
		ev.what = type == E_BEGIN ? GC_BEGIN : type == E_END ? GC_END : WEFT__EIO_NONE;
		ev.text = name;
	} else if (str_equals(category, "ocaml")) {
		ev.what = str_equals(name, "domain-spawn")       ? DOMAIN_SPAWN
			  : str_equals(name, "domain-terminate") ? DOMAIN_TERMINATE
								 : WEFT__EIO_NONE;
	} else if (str_equals(category, "eio.suspend")) {
		/* the suspension ends when the fiber runs */
		ev.what = type == E_BEGIN ? WEFT__EIO_SUSPEND_FIBER : WEFT__EIO_NONE;
		ev.text = name;
	} else if (str_equals(category, "eio.span")) {
		ev.what = type == E_BEGIN ? WEFT__EIO_ENTER_SPAN : WEFT__EIO_EXIT_SPAN;
		ev.text = name;
	} else if (!str_equals(category, "eio")) {
		return ev;
	} else if (str_equals(name, "cc")) {
		ev.what = type == E_BEGIN ? WEFT__EIO_CREATE_CC : WEFT__EIO_EXIT_CC;
		ev.type = find_context_type(a->text);
	} else if (str_equals(name, "suspend-domain")) {
		ev.what = WEFT__EIO_SUSPEND_DOMAIN;
		ev.is_end = type == E_END;
	} else if (str_equals(name, "create-fiber"))
		ev.what = WEFT__EIO_CREATE_FIBER;
	else if (str_equals(name, "exit-fiber"))
		ev.what = WEFT__EIO_EXIT_FIBER;
	else if (str_equals(name, "error"))
		ev.what = WEFT__EIO_ERROR;
	else if (str_equals(name, "log"))
		ev.what = WEFT__EIO_LOG;
	else if (str_equals(name, "domain-spawn"))
		ev.what = WEFT__EIO_DOMAIN_SPAWN;
	return ev;
}

/* Returns the ring of a thread of eio-trace, or the ring in which a fiber runs. */
static uint16_t find_ring(const struct fxt *x, uint64_t thread)
{
	if (thread % 4 == 1)
		return thread / 4 < RINGS ? (uint16_t)(thread / 4) : 0;
	const uint32_t ring = weft_idmap_get(&x->ring_of, (int64_t)(thread / 4 & UINT32_MAX));
	return ring == WEFT_IDMAP_NONE ? x->ring : (uint16_t)ring;
}

static bool read_event(struct fxt *x, struct weft_cursor *c, uint64_t header)
{
	const unsigned type = header >> 16 & 15;
	uint64_t time_ns, thread = x->threads[header >> 24 & 0xff], unused;
	struct weft_str category, name;
	struct arguments a = {0};
	if (!read_word(c, &time_ns) || (!(header >> 24 & 0xff) && (!read_word(c, &unused) || !read_word(c, &thread))) ||
	    !read_string(x, c, header >> 32 & 0xffff, &category) || !read_string(x, c, header >> 48, &name) ||
	    !read_arguments(x, c, header >> 20 & 15, &a))
		return true;
	const struct weft__eio_event ev = convert_record(type, category, name, &a);
	x->is_eio |= category.len >= 3 && memcmp(category.ptr, "eio", 3) == 0;
	x->ring = find_ring(x, thread);
	if (ev.what == WEFT__EIO_CREATE_FIBER) {
		/* A fiber has a wake-up at its creation and another one when it runs. */
		const struct item *last = x->items.count ? &x->items.items[x->items.count - 1] : NULL;
		if (last && last->ev.what == WEFT__EIO_FIBER && last->ev.id == ev.id && last->time_ns == time_ns)
			x->items.count--;
		x->most = (uint32_t)ev.id > x->most ? (uint32_t)ev.id : x->most;
		if (!weft_idmap_set(&x->ring_of, (int64_t)(uint32_t)ev.id, x->ring))
			return false;
		x->main = x->main < 0 ? ev.id : x->main;
	}
	x->is_over |= ev.what == WEFT__EIO_EXIT_FIBER && ev.id == x->main;
	if (ev.what == WEFT__EIO_CREATE_CC)
		x->most = (uint32_t)ev.id > x->most ? (uint32_t)ev.id : x->most;
	return ev.what == WEFT__EIO_NONE || add_item(x, time_ns, x->ring, ev);
}

/* Reads a wake-up, which means that the fiber runs. */
static bool read_wakeup(struct fxt *x, struct weft_cursor *c, uint64_t header)
{
	uint64_t time_ns, fiber;
	if (header >> 60 != 2 || !read_word(c, &time_ns) || !read_word(c, &fiber))
		return true;
	x->ring = header >> 20 & (RINGS - 1);
	return weft_idmap_set(&x->ring_of, (int64_t)(uint32_t)fiber, x->ring) &&
	       add_item(x, time_ns, x->ring, (struct weft__eio_event){.id = (int64_t)fiber, .what = WEFT__EIO_FIBER});
}

/* Reads the name of a context or object; its time is that of the newest event. */
static bool read_object(struct fxt *x, struct weft_cursor *c, uint64_t header)
{
	uint64_t id;
	struct weft_str name;
	if (!x->items.count || !read_word(c, &id) || !read_string(x, c, header >> 24 & 0xffff, &name))
		return true;
	const uint64_t time_ns = x->items.items[x->items.count - 1].time_ns;
	return add_item(x, time_ns, x->ring, (struct weft__eio_event){.id = (int64_t)id, .text = name, .what = WEFT__EIO_NAME});
}

static bool read_record(struct fxt *x, struct weft_cursor *c, uint64_t header)
{
	uint64_t pid = 0;
	switch (header & 15) {
	case R_STRING:
		if (header >> 16 & (STRINGS - 1))
			(void)read_string(
			    x, c, STRINGS | (header >> 32 & (STRINGS - 1)), &x->strings[header >> 16 & (STRINGS - 1)]);
		return true;
	case R_THREAD:
		if (read_word(c, &pid) && read_word(c, &x->threads[header >> 16 & 0xff]))
			x->pid = pid;
		return true;
	case R_EVENT: return read_event(x, c, header);
	case R_OBJECT: return read_object(x, c, header);
	case R_SCHEDULING: return read_wakeup(x, c, header);
	default: return true;
	}
}

static int read_records(struct weft_trace *trace, struct fxt *x)
{
	const struct weft_blob *blob = &trace->source.blobs[0];
	for (size_t at = 0; at < blob->size;) {
		const size_t left = blob->size - at;
		const uint64_t header = left >= WORD ? weft_load_u64(blob->bytes + at) : 0;
		const size_t length = (size_t)(header >> 4 & 0xfff) * WORD;
		if (length == 0 || length > left) {
			weft__trace_skip(trace, blob, WEFT_NO_OFFSET, at, left,
			    length ? "the file ends in the middle of a record" : "no valid record; the rest is skipped");
			break;
		}
		struct weft_cursor c = {blob->bytes + at + WORD, blob->bytes + at + length};
		if (!read_record(x, &c, header))
			return WEFT_ENOMEM;
		at += length;
	}
	return WEFT_OK;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->order, y->order);
}

/* ---- Trace interface ---- */

static void rewind_events(struct weft_trace *trace)
{
	struct fxt *x = trace->state;
	weft__eio_rewind(&x->eio);
	memset(x->depths, 0, x->stream_count * sizeof *x->depths);
	x->at = 0;
}

static bool peek_event(void *ctx, unsigned nth, struct weft__eio_event *out)
{
	const struct fxt *x = ctx;
	for (size_t i = x->at + 1; i < x->items.count && i <= x->at + AHEAD; i++) {
		const struct item *item = &x->items.items[i];
		if (item->stream != x->eio.stream || item->ev.what >= DOMAIN_SPAWN || nth-- > 0)
			continue;
		*out = item->ev;
		return true;
	}
	return false;
}

static void convert_item(struct fxt *x, const struct item *item)
{
	unsigned *depth = &x->depths[item->stream];
	struct weft__eio_event next;
	switch (item->ev.what) {
	case DOMAIN_SPAWN:
		weft__eio_domain_begins(&x->eio, peek_event(x, 0, &next) && next.what == WEFT__EIO_DOMAIN_SPAWN ? next.id : -1);
		break;
	case DOMAIN_TERMINATE: weft__eio_domain_ends(&x->eio); break;
	case GC_BEGIN:
		if ((*depth)++ == 0)
			weft__eio_put_event(&x->eio, WEFT_OP_PAUSE_BEGIN, 0, 0)->text =
			    weft__eio_join_text(&x->eio, "gc, ", item->ev.text);
		break;
	case GC_END:
		if (*depth && --*depth == 0)
			weft__eio_put_event(&x->eio, WEFT_OP_PAUSE_END, 0, 0);
		break;
	default: weft__eio_convert(&x->eio, &item->ev);
	}
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct fxt *x = trace->state;
	size_t n = 0;
	for (; n < BATCH && x->at < x->items.count && x->eio.status == WEFT_OK; x->at++) {
		const struct item *item = &x->items.items[x->at];
		x->eio.out = x->batch + n;
		x->eio.count = 0;
		x->eio.now_ns = item->time_ns > INT64_MAX ? INT64_MAX : (int64_t)item->time_ns;
		x->eio.stream = item->stream;
		convert_item(x, item);
		n += x->eio.count;
	}
	if (x->eio.status < 0)
		return x->eio.status;
	if (n == 0)
		weft__eio_clear(&x->eio);
	*events = x->batch;
	*count = n;
	return n > 0;
}

static void close_trace(struct weft_trace *trace)
{
	struct fxt *x = trace->state;
	weft__eio_finish(&x->eio);
	weft_vec_free(&x->items);
	weft_idmap_finish(&x->ring_of);
	free(x->streams);
	free(x->names);
	free(x->depths);
	free(x);
}

static int describe_rings(struct weft_trace *trace, struct fxt *x)
{
	x->streams = calloc(x->stream_count, sizeof *x->streams);
	x->names = calloc(x->stream_count, sizeof *x->names);
	x->depths = calloc(x->stream_count, sizeof *x->depths);
	if (!x->streams || !x->names || !x->depths)
		return WEFT_ENOMEM;
	for (size_t ring = 0; ring < RINGS; ring++) {
		if (!x->stream_of[ring])
			continue;
		const size_t i = x->stream_of[ring] - 1u;
		const int length = snprintf(x->names[i], NAME, "domain %zu", ring);
		x->streams[i] = (struct weft_stream_info){.name = {x->names[i], (uint32_t)length}, .packets = 1};
	}
	x->streams[0].bytes = trace->source.blobs[0].size;
	x->eio.peek = peek_event;
	x->eio.peek_ctx = x;
	x->eio.omits_wakers = true;
	trace->info.pid = x->pid;
	trace->info.unfinished = !x->is_over;
	trace->info.streams = x->streams;
	trace->info.stream_count = x->stream_count;
	trace->info.runtimes = (struct weft_str){"OCaml 5, Eio", 12};
	trace->info.missing_data = (struct weft_str){
	    "promises, mutexes, semaphores, and which fiber ends a wait (eio-trace drops them; the .events file has them)", 108};
	return WEFT_OK;
}

static int open_trace(struct weft_trace *trace, struct weft_error *err)
{
	struct fxt *x = trace->state = calloc(1, sizeof *x);
	if (x)
		x->main = -1;
	int status = x ? read_records(trace, x) : WEFT_ENOMEM;
	if (status == WEFT_OK && (!x->is_eio || !x->items.count)) {
		close_trace(trace);
		return weft__trace_fail(err, WEFT_EFORMAT, &trace->source, NULL,
		    "a Fuchsia trace, but not one of eio-trace's; open it in ui.perfetto.dev");
	}
	if (status == WEFT_OK) {
		weft_sort(x->items.items, x->items.count, sizeof *x->items.items, compare_items);
		status = weft__eio_init(&x->eio, x->stream_count, x->most);
	}
	if (status == WEFT_OK)
		status = describe_rings(trace, x);
	if (status < 0) {
		if (x)
			close_trace(trace);
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	rewind_events(trace);
	return WEFT_OK;
}

const struct weft_trace_format weft__format_fxt = {
    "fxt", probe_source, open_trace, read_events, rewind_events, close_trace, NULL, NULL, NULL, NULL};
