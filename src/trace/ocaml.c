/* ocaml.c: reads the runtime events of OCaml 5.  Garbage collections become pauses, events of Eio and Lwt become promises
 * (ocaml_eio.c, ocaml_lwt.c), and events of other libraries become notes and counters.
 *
 * The rings of all domains have one clock.  The rings are merged by time; if times are equal, the event of the lower ring comes
 * first.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/utf8.h"
#include "trace/ocaml_eio.h"
#include "trace/ocaml_lwt.h"
#include "trace/ocaml_note.h"

enum { BATCH = 512, PHASES_OPEN = 32, MAX_LOOKAHEAD = 64, STREAM_NAME = 24 };

struct ring {
	const struct weft__ocaml_ring *ring;
	struct weft__ocaml_event ev; /* the next event */
	uint64_t at;                 /* position after it */
	int64_t last_ns;
	uint16_t open[PHASES_OPEN]; /* phases of the collector that have not ended, the innermost last */
	unsigned depth;
};

struct ocaml {
	struct weft__ocaml_file file;
	struct weft__eio eio;
	struct weft__lwt lwt;
	int64_t first_ns;   /* time of the first event */
	struct ring *rings; /* by stream */
	uint16_t *heap;     /* streams that have a next event, the earliest first */
	size_t heap_count;
	struct weft_stream_info *streams;
	char (*names)[STREAM_NAME];
	WEFT_VEC(struct weft_gap) gaps;
	uint8_t what_of[WEFT__OCAML_NAMES]; /* by name of a user event: its enum weft__eio_what + 1; 0 if not determined yet */
	uint8_t lwt_of[WEFT__OCAML_NAMES];  /* by name of a user event: its enum weft__lwt_what + 1; 0 if not determined yet */
	char *unread;                       /* text of weft_trace_info.unread */
	struct weft_event batch[BATCH + WEFT__EIO_MAX_EVENTS];
};

static const struct weft_blob *find_blob(const struct weft_source *source)
{
	for (size_t i = 0; i < source->blob_count; i++)
		if (weft__ocaml_is(source->blobs[i].bytes, source->blobs[i].size))
			return &source->blobs[i];
	return NULL;
}

static enum weft_confidence probe_source(const struct weft_source *source)
{
	return find_blob(source) ? WEFT_CONFIDENCE_LIKELY : WEFT_CONFIDENCE_NONE;
}

/* ---- Merge ---- */

static bool is_before(const struct ocaml *o, uint16_t a, uint16_t b)
{
	const uint64_t x = o->rings[a].ev.time_ns, y = o->rings[b].ev.time_ns;
	return x < y || (x == y && a < b);
}

static void sift_down(struct ocaml *o, size_t at)
{
	const uint16_t sinks = o->heap[at];
	for (size_t child = 2 * at + 1; child < o->heap_count; child = 2 * at + 1) {
		child += child + 1 < o->heap_count && is_before(o, o->heap[child + 1], o->heap[child]);
		if (!is_before(o, o->heap[child], sinks))
			break;
		o->heap[at] = o->heap[child];
		at = child;
	}
	o->heap[at] = sinks;
}

static void rewind_events(struct weft_trace *trace)
{
	struct ocaml *o = trace->state;
	weft__eio_rewind(&o->eio);
	weft__lwt_rewind(&o->lwt);
	o->heap_count = 0;
	for (size_t i = 0; i < o->file.ring_count; i++) {
		struct ring *r = &o->rings[i];
		*r = (struct ring){.ring = &o->file.rings[i], .at = o->file.rings[i].head, .last_ns = INT64_MIN};
		if (weft__ocaml_read(&o->file, r->ring, &r->at, &r->ev))
			o->heap[o->heap_count++] = (uint16_t)i;
	}
	for (size_t i = o->heap_count / 2; i-- > 0;)
		sift_down(o, i);
	const uint64_t first_ns = o->heap_count ? o->rings[o->heap[0]].ev.time_ns : 0;
	o->first_ns = first_ns > INT64_MAX ? INT64_MAX : (int64_t)first_ns;
}

static enum weft__eio_what get_event_type(struct ocaml *o, uint16_t id)
{
	if (!o->what_of[id])
		o->what_of[id] = (uint8_t)(weft__eio_what(weft__ocaml_name(&o->file, id)) + 1);
	return (enum weft__eio_what)(o->what_of[id] - 1);
}

static enum weft__lwt_what get_lwt_type(void *ctx, uint16_t id)
{
	struct ocaml *o = ctx;
	if (!o->lwt_of[id])
		o->lwt_of[id] = (uint8_t)(weft__lwt_what(weft__ocaml_name(&o->file, id)) + 1);
	return (enum weft__lwt_what)(o->lwt_of[id] - 1);
}

/* Returns whether code other than Lwt's runs from this event on. */
static bool breaks_lwt(void *ctx, const struct weft__ocaml_event *ev)
{
	if (ev->what == WEFT__OCAML_LIFECYCLE)
		return ev->id == WEFT__OCAML_RING_STOP || ev->id == WEFT__OCAML_DOMAIN_TERMINATE;
	const enum weft__eio_what what = ev->is_user ? get_event_type(ctx, ev->id) : WEFT__EIO_NONE;
	return what == WEFT__EIO_FIBER || what == WEFT__EIO_EXIT_FIBER || what == WEFT__EIO_SUSPEND_FIBER ||
	       what == WEFT__EIO_SUSPEND_DOMAIN;
}

static bool peek_event(void *ctx, unsigned nth, struct weft__eio_event *out)
{
	struct ocaml *o = ctx;
	const struct ring *r = &o->rings[o->eio.stream];
	struct weft__ocaml_event ev;
	uint64_t at = r->at;
	for (int i = 0; i < MAX_LOOKAHEAD && weft__ocaml_read(&o->file, r->ring, &at, &ev); i++) {
		const enum weft__eio_what what = ev.is_user ? get_event_type(o, ev.id) : WEFT__EIO_NONE;
		if (what != WEFT__EIO_NONE && weft__eio_decode(out, what, &ev) && nth-- == 0)
			return true;
	}
	return false;
}

/* ---- Runtime events ---- */

static struct weft_str make_str(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

/* Returns the reason why nothing runs in a phase.  In a phase for which all domains stop, the phases inside it have the
 * reason. */
static const char *find_pause_reason(const struct ocaml *o, const struct ring *r, const struct weft__ocaml_phase *phase)
{
	struct weft__ocaml_event ev;
	uint64_t at = r->at;
	if (phase->why)
		return phase->why;
	for (int i = 0; i < MAX_LOOKAHEAD && weft__ocaml_read(&o->file, r->ring, &at, &ev); i++) {
		if (ev.what == WEFT__OCAML_BEGIN && weft__ocaml_phase(&o->file, ev.id)->why_stop)
			return weft__ocaml_phase(&o->file, ev.id)->why_stop;
		if (ev.what == WEFT__OCAML_END && ev.id == r->ev.id)
			break;
	}
	return "gc, all domains stop";
}

/* Converts a phase; an outermost phase is a pause.  The first end of a phase may have no start, if the recording started within
 * the phase. */
static void convert_phase(struct ocaml *o, struct ring *r)
{
	const struct weft__ocaml_phase *phase = weft__ocaml_phase(&o->file, r->ev.id);
	if (weft__ocaml_is_wait(phase))
		return;
	if (r->ev.what == WEFT__OCAML_BEGIN) {
		if (r->depth == 0)
			weft__eio_put_event(&o->eio, WEFT_OP_PAUSE_BEGIN, 0, 0)->text = make_str(find_pause_reason(o, r, phase));
		if (r->depth < PHASES_OPEN)
			r->open[r->depth++] = r->ev.id;
		return;
	}
	for (unsigned i = r->depth; i-- > 0;)
		if (r->open[i] == r->ev.id) {
			r->depth = i;
			if (i == 0)
				weft__eio_put_event(&o->eio, WEFT_OP_PAUSE_END, 0, 0);
			break;
		}
}

/* Converts the counters of live words and of words that minor collections keep.  Other counters concern only developers of the
 * runtime. */
static void convert_counter(struct ocaml *o, const struct weft__ocaml_event *ev)
{
	enum { PROMOTED = 4, ALIVE = 12 };
	if ((ev->id != PROMOTED && ev->id != ALIVE) || !ev->has_value)
		return;
	struct weft_event *out = weft__eio_put_event(&o->eio, WEFT_OP_COUNTER, WEFT_SYSTEM_ID, 0);
	out->text = make_str(ev->id == ALIVE ? "words of the heap in use" : "words promoted");
	out->value = ev->value;
}

static void convert_lifecycle(struct ocaml *o, const struct weft__ocaml_event *ev)
{
	struct weft__eio_event next;
	if (ev->id == WEFT__OCAML_RING_START || ev->id == WEFT__OCAML_DOMAIN_SPAWN) {
		const bool is_eio = peek_event(o, 0, &next) && next.what == WEFT__EIO_DOMAIN_SPAWN;
		weft__eio_domain_begins(&o->eio, is_eio ? next.id : -1);
	} else if (ev->id == WEFT__OCAML_RING_STOP || ev->id == WEFT__OCAML_DOMAIN_TERMINATE)
		weft__eio_domain_ends(&o->eio);
}

/* Returns whether bytes are a text that can be shown as it is. */
static bool is_text(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0, length; i < size; i += length) {
		length = weft_utf8_char_bytes(bytes + i, size - i);
		if (length == 0 || weft_utf8_control_code(bytes + i, length))
			return false;
	}
	return size > 0;
}

/* Returns the content of a custom event, which follows the event's name. */
static struct weft_str format_custom(struct ocaml *o, struct weft_str name, const struct weft__ocaml_event *ev)
{
	char prefix[WEFT__OCAML_NAME + 3];
	if (ev->size == 0)
		return name;
	if (!is_text(ev->bytes, ev->size))
		return weft__eio_join_hex(&o->eio, name, ev->bytes, ev->size);
	snprintf(prefix, sizeof prefix, "%.*s: ", (int)name.len, name.ptr);
	return weft__eio_join_text(&o->eio, prefix, (struct weft_str){(const char *)ev->bytes, (uint32_t)ev->size});
}

/* Converts an event of a library other than Eio and Lwt. */
static void convert_other(struct ocaml *o, const struct weft__ocaml_event *ev)
{
	const struct weft_str name = weft__ocaml_name(&o->file, ev->id);
	if (ev->what == WEFT__OCAML_UNKNOWN || name.len == 0)
		return;
	const bool counts = ev->what == WEFT__OCAML_INT && ev->has_value;
	struct weft_event *out =
	    weft__eio_put_event(&o->eio, counts ? WEFT_OP_COUNTER : WEFT_OP_NOTE, weft__eio_actor(&o->eio), 0);
	out->value = counts ? ev->value : 0;
	out->text = ev->what == WEFT__OCAML_SPAN_BEGIN ? weft__eio_join_text(&o->eio, "begins ", name)
		    : ev->what == WEFT__OCAML_SPAN_END ? weft__eio_join_text(&o->eio, "ends ", name)
		    : ev->what == WEFT__OCAML_CUSTOM   ? format_custom(o, name, ev)
						       : name;
}

static void convert_event(struct weft_trace *trace, uint16_t stream, size_t *count)
{
	struct ocaml *o = trace->state;
	struct ring *r = &o->rings[stream];
	const struct weft__ocaml_event *ev = &r->ev;
	int64_t time_ns = ev->time_ns > INT64_MAX ? INT64_MAX : (int64_t)ev->time_ns;
	if (time_ns < r->last_ns) {
		weft__trace_skip(trace, o->file.blob, r->ring->number, WEFT_NO_OFFSET, 0, "time goes back by %llu ns",
		    (unsigned long long)r->last_ns - (unsigned long long)time_ns);
		time_ns = r->last_ns;
	}
	r->last_ns = time_ns;
	o->eio.out = o->batch + *count;
	o->eio.count = 0;
	o->eio.now_ns = time_ns;
	o->eio.stream = stream;
	struct weft__eio_event e;
	struct weft__lwt_event l;
	if (o->lwt.is_there && breaks_lwt(o, ev))
		weft__lwt_interrupt(&o->lwt, &o->eio);
	switch ((enum weft__ocaml_what)ev->what) {
	case WEFT__OCAML_BEGIN:
	case WEFT__OCAML_END: convert_phase(o, r); break;
	case WEFT__OCAML_COUNTER: convert_counter(o, ev); break;
	case WEFT__OCAML_LIFECYCLE: convert_lifecycle(o, ev); break;
	case WEFT__OCAML_ALLOC: break;
	case WEFT__OCAML_UNIT:
	case WEFT__OCAML_INT:
	case WEFT__OCAML_SPAN_BEGIN:
	case WEFT__OCAML_SPAN_END:
	case WEFT__OCAML_CUSTOM:
	case WEFT__OCAML_UNKNOWN: {
		const enum weft__eio_what what = ev->is_user ? get_event_type(o, ev->id) : WEFT__EIO_NONE;
		const enum weft__lwt_what lwt = ev->is_user ? get_lwt_type(o, ev->id) : WEFT__LWT_NONE;
		if (what != WEFT__EIO_NONE && weft__eio_decode(&e, what, ev))
			weft__eio_convert(&o->eio, &e);
		else if (lwt != WEFT__LWT_NONE && weft__lwt_decode(&l, lwt, ev))
			weft__lwt_convert(&o->lwt, &o->eio, &l, o->first_ns);
		else if (ev->is_user)
			convert_other(o, ev);
		break;
	}
	}
	*count += o->eio.count;
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct ocaml *o = trace->state;
	size_t n = 0;
	while (n < BATCH && o->heap_count > 0 && o->eio.status == WEFT_OK) {
		const uint16_t stream = o->heap[0];
		struct ring *r = &o->rings[stream];
		convert_event(trace, stream, &n);
		if (!weft__ocaml_read(&o->file, r->ring, &r->at, &r->ev))
			o->heap[0] = o->heap[--o->heap_count];
		if (o->heap_count > 1)
			sift_down(o, 0);
	}
	/* Events behind a damaged place may have ended any wait, so waits are reported only if there are no gaps. */
	for (bool more = o->heap_count == 0 && o->gaps.count == 0; more && n < BATCH; n += o->eio.count) {
		o->eio.out = o->batch + n;
		o->eio.count = 0;
		more = weft__eio_put_pending_wait(&o->eio) || weft__lwt_put_pending_wait(&o->lwt, &o->eio);
	}
	if (o->eio.status < 0)
		return o->eio.status;
	if (n == 0)
		weft__eio_clear(&o->eio);
	*events = o->batch;
	*count = n;
	return n > 0;
}

/* ---- Open ---- */

static void close_trace(struct weft_trace *trace)
{
	struct ocaml *o = trace->state;
	weft__ocaml_close(&o->file);
	weft__eio_finish(&o->eio);
	weft__lwt_finish(&o->lwt);
	free(o->unread);
	weft_vec_free(&o->gaps);
	free(o->rings);
	free(o->heap);
	free(o->streams);
	free(o->names);
	free(o);
}

/* Finds the largest number that Eio has assigned; sets *is_eio if the file has events of Eio. */
static uint32_t find_max_number(struct ocaml *o, bool *is_eio)
{
	uint64_t most = 0;
	for (unsigned id = 0; id < WEFT__OCAML_NAMES; id++) {
		const uint64_t number = o->file.most[id];
		const enum weft__eio_what what = number ? get_event_type(o, (uint16_t)id) : WEFT__EIO_NONE;
		*is_eio |= what != WEFT__EIO_NONE;
		if ((what == WEFT__EIO_CREATE_FIBER || what == WEFT__EIO_CREATE_CC || what == WEFT__EIO_CREATE_OBJ) &&
		    number > most)
			most = number;
	}
	return (uint32_t)(most ? most - 1 : 0);
}

/* Adds the description of a ring as a stream; returns false when out of memory. */
static bool describe_ring(struct weft_trace *trace, struct ocaml *o, size_t i)
{
	enum { WORDS_OF_AN_EVENT = 3 };
	const struct weft__ocaml_ring *ring = &o->file.rings[i];
	const int length = snprintf(o->names[i], sizeof o->names[i], "domain %u", (unsigned)ring->number);
	o->streams[i] = (struct weft_stream_info){.name = {o->names[i], (uint32_t)length},
	    .bytes = (ring->tail - ring->head) * 8,
	    .packets = 1,
	    .lost_overwritten = ring->lost / WORDS_OF_AN_EVENT};
	trace->info.wrapped |= ring->lost > 0;
	if (!ring->is_damaged)
		return true;
	struct weft_gap *gap = weft_vec_push(&o->gaps);
	if (gap)
		*gap = (struct weft_gap){.from_ns = ring->events ? (int64_t)(ring->last_ns & INT64_MAX) : INT64_MIN,
		    .to_ns = INT64_MAX,
		    .stream = (uint16_t)i};
	weft__trace_mark_placed(trace, 1);
	return gap != NULL;
}

static int open_rings(struct weft_trace *trace, struct ocaml *o, bool *is_eio)
{
	const struct weft_blob *blob = find_blob(&trace->source);
	int status = blob ? weft__ocaml_open(&o->file, trace, blob) : WEFT_EFORMAT;
	if (status < 0)
		return status;
	const size_t count = o->file.ring_count, capacity = count ? count : 1;
	o->rings = calloc(capacity, sizeof *o->rings);
	o->heap = calloc(capacity, sizeof *o->heap);
	o->streams = calloc(capacity, sizeof *o->streams);
	o->names = calloc(capacity, sizeof *o->names);
	if (!o->rings || !o->heap || !o->streams || !o->names)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!describe_ring(trace, o, i))
			return WEFT_ENOMEM;
	const struct weft__lwt_reader reader = {get_lwt_type, breaks_lwt, o};
	status = weft__eio_init(&o->eio, count, find_max_number(o, is_eio));
	return status < 0 ? status : weft__lwt_init(&o->lwt, &o->file, &reader);
}

/* Counts, by name, the custom events that neither this reader nor a person can read; returns WEFT_ENOMEM on failure. */
static int count_unread(struct weft_trace *trace, struct ocaml *o)
{
	enum { MOST_NAMES = 16, NUMBER = 24 };
	uint32_t *counts = calloc(WEFT__OCAML_NAMES, sizeof *counts);
	if (!counts)
		return WEFT_ENOMEM;
	struct weft__ocaml_event ev;
	struct weft__eio_event e;
	struct weft__lwt_event l;
	size_t names = 0, bytes = 0;
	for (size_t i = 0; i < o->file.ring_count; i++)
		for (uint64_t at = o->file.rings[i].head; weft__ocaml_read(&o->file, &o->file.rings[i], &at, &ev);) {
			if (ev.what != WEFT__OCAML_CUSTOM || ev.size == 0 || counts[ev.id] == UINT32_MAX)
				continue;
			const enum weft__eio_what what = get_event_type(o, ev.id);
			const enum weft__lwt_what lwt = get_lwt_type(o, ev.id);
			const struct weft_str name = weft__ocaml_name(&o->file, ev.id);
			if (name.len == 0 || is_text(ev.bytes, ev.size) ||
			    (what != WEFT__EIO_NONE && weft__eio_decode(&e, what, &ev)) ||
			    (lwt != WEFT__LWT_NONE && weft__lwt_decode(&l, lwt, &ev)))
				continue;
			if (counts[ev.id]++ == 0 && names++ < MOST_NAMES)
				bytes += name.len + NUMBER;
		}
	o->unread = bytes ? malloc(bytes + NUMBER) : NULL;
	size_t length = 0, shown = 0;
	for (unsigned id = 0; o->unread && id < WEFT__OCAML_NAMES && shown < MOST_NAMES; id++) {
		const struct weft_str name = weft__ocaml_name(&o->file, (uint16_t)id);
		if (counts[id] && length + name.len + NUMBER < bytes + NUMBER) {
			length += (size_t)snprintf(o->unread + length, bytes + NUMBER - length, "%s%.*s %u", shown ? ", " : "",
			    (int)name.len, name.ptr, counts[id]);
			shown++;
		}
	}
	if (o->unread && names > shown)
		length += (size_t)snprintf(o->unread + length, bytes + NUMBER - length, ", ...");
	free(counts);
	if (o->unread)
		trace->info.unread = (struct weft_str){o->unread, (uint32_t)length};
	return bytes && !o->unread ? WEFT_ENOMEM : WEFT_OK;
}

static struct weft_str note_text(const unsigned char *note, unsigned at, unsigned end)
{
	return (struct weft_str){(const char *)note + at, (uint32_t)strnlen((const char *)note + at, end - at)};
}

/* Reads the note that weft added to the file. */
static void read_note(struct weft_trace *trace, const struct weft_blob *blob)
{
	const size_t size = blob->size;
	const unsigned char *note = size >= WEFT_OCAML_NOTE_BYTES ? blob->bytes + size - WEFT_OCAML_NOTE_BYTES : NULL;
	struct weft_trace_info *info = &trace->info;
	if (!note || !weft_ocaml_note_is(note))
		return;
	info->host = note_text(note, WEFT_OCAML_NOTE_HOST, WEFT_OCAML_NOTE_PROCESS);
	info->process = note_text(note, WEFT_OCAML_NOTE_PROCESS, WEFT_OCAML_NOTE_COMMAND);
	info->command = note_text(note, WEFT_OCAML_NOTE_COMMAND, WEFT_OCAML_NOTE_BYTES);
	trace->pair_ns = (int64_t)(weft_load_u64(note + WEFT_OCAML_NOTE_CLOCK) & INT64_MAX);
	trace->pair_wall_ns = (int64_t)(weft_load_u64(note + WEFT_OCAML_NOTE_WALL) & INT64_MAX);
	info->has_origin = true;
	info->clock_origin_ns = trace->pair_wall_ns - trace->pair_ns;
	const int64_t died_wall_ns = (int64_t)weft_load_u64(note + WEFT_OCAML_NOTE_DIED_WALL);
	if (info->unfinished && died_wall_ns > 0)
		weft__trace_set_lived_until(trace, died_wall_ns);
	info->has_died = info->until_ns != 0;
}

#define EIO_LACKS "which fiber ends a wait for a stream, condition or pool (Eio does not record it)"
#define LWT_LACKS "waits of >>= and let*, and which of several waits at one line ends (Lwt does not record it)"

static void describe_runtimes(struct weft_trace *trace, bool is_eio, bool is_lwt)
{
	struct ocaml *o = trace->state;
	trace->info.runtimes = make_str(is_eio && is_lwt ? "OCaml 5, Eio, Lwt"
					: is_eio         ? "OCaml 5, Eio"
					: is_lwt         ? "OCaml 5, Lwt"
							 : "OCaml 5");
	if (is_eio || is_lwt)
		trace->info.missing_data = make_str(is_eio && is_lwt ? EIO_LACKS "; " LWT_LACKS : is_eio ? EIO_LACKS : LWT_LACKS);
	/* Lwt records each end of what it began; Eio does not record the end of a promise that is no longer needed. */
	for (size_t i = 0; i < o->file.ring_count; i++)
		o->streams[i].records_all_ends = is_lwt && !is_eio;
}

static int open_trace(struct weft_trace *trace, struct weft_error *err)
{
	struct ocaml *o = trace->state = calloc(1, sizeof *o);
	bool is_eio = false;
	int status = o ? open_rings(trace, o, &is_eio) : WEFT_ENOMEM;
	if (status >= 0)
		status = count_unread(trace, o);
	if (status < 0) {
		if (o)
			close_trace(trace);
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	o->eio.peek = peek_event;
	o->eio.peek_ctx = o;
	trace->info.pid = o->file.pid;
	trace->info.unfinished = !o->file.is_stopped;
	read_note(trace, o->file.blob);
	describe_runtimes(trace, is_eio, o->lwt.is_there);
	trace->info.sites = o->lwt.sites.items;
	trace->info.site_count = o->lwt.sites.count;
	trace->info.streams = o->streams;
	trace->info.stream_count = o->file.ring_count;
	trace->info.gaps = o->gaps.items;
	trace->info.gap_count = o->gaps.count;
	rewind_events(trace);
	return WEFT_OK;
}

static int print_lines(const struct weft_trace *trace, weft_trace_line_fn *write_line, void *ctx)
{
	return weft__ocaml_lines(&((const struct ocaml *)trace->state)->file, write_line, ctx);
}

const struct weft_trace_format weft__format_ocaml = {
    "ocaml", probe_source, open_trace, read_events, rewind_events, close_trace, NULL, NULL, NULL, print_lines};
