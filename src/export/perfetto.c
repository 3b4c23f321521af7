/* perfetto.c: writes a model as a trace for ui.perfetto.dev.
 *
 * The field numbers are those of perfetto_trace.proto (https://perfetto.dev/docs/reference/trace-packet-proto).  Perfetto's
 * importer silently drops packets that break its rules, which are these.  Each event packet contains the id of its sequence.
 * Names are defined before packets refer to them by number.  An end event closes the newest open start event of its track.
 * Packets with equal times keep their order, so ends are written before starts of the same time.  To keep these rules, tracks
 * are written one after another, each in time order.
 *
 * Each row of the layout becomes a track.  Perfetto merges the rows of one thread into one track, which is as deep as the number
 * of pending promises.  A promise that never ends has a track of its own, because later promises on its row would be nested in
 * it.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/utf8.h"
#include "export/budget.h"
#include "export/flows.h"
#include "export/proto.h"
#include "model/kernel.h"

enum { SEQUENCE = 1, FLUSH_BYTES = 1 << 16, MARK_BYTES = 320, START = 1000000000 };

enum trace_field { TRACE_PACKET = 1 };
enum packet_field {
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_TRACK = 60,
	PACKET_SAMPLE = 66
};
enum { FLAG_CLEARED = 1, FLAG_NEEDS_NAMES = 2 };
enum clock_field { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6 };
enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_ORDERING = 11,
	TRACK_RANK = 12,
	TRACK_MERGING = 15,
	TRACK_MERGE_KEY = 16
};
enum { ORDERED_BY_RANK = 3, MERGED_BY_KEY = 3 };
enum process_field { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum thread_field { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum event_field {
	EVENT_ANNOTATION = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_NUMBER = 10,
	EVENT_TRACK = 11,
	EVENT_CATEGORY = 22,
	EVENT_NAME = 23,
	EVENT_VALUE = 30,
	EVENT_SOURCE = 33,
	EVENT_FLOW = 47,
	EVENT_LAST_FLOW = 48,
	EVENT_CORRELATION = 52
};
enum event_type { EVENT_BEGIN = 1, EVENT_END, EVENT_INSTANT, EVENT_COUNTER };
enum annotation_field { ANNOTATION_NAME_NUMBER = 1, ANNOTATION_INT = 4, ANNOTATION_TEXT = 6 };
enum source_field { SOURCE_FILE = 2, SOURCE_FUNCTION = 3, SOURCE_LINE = 4 };
enum interned_field {
	INTERNED_EVENTS = 2,
	INTERNED_ANNOTATIONS = 3,
	INTERNED_FUNCTIONS = 5,
	INTERNED_FRAMES = 6,
	INTERNED_STACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_PATHS = 17,
	INTERNED_SOURCES = 18,
	INTERNED_MAPPINGS = 19,
	INTERNED_NUMBER = 1,
	INTERNED_NAME = 2
};
enum mapping_field { MAPPING_NUMBER = 1, MAPPING_BUILD_ID = 2, MAPPING_START = 4, MAPPING_END = 5, MAPPING_PATH = 7 };
enum frame_field { FRAME_NUMBER = 1, FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_OFFSET = 4, FRAME_SOURCE = 5, FRAME_LINE = 6 };
enum stack_field { STACK_NUMBER = 1, STACK_FRAME = 2 };
enum sample_field { SAMPLE_PID = 2, SAMPLE_TID = 3, SAMPLE_STACK = 4, SAMPLE_MODE = 5 };
enum { MODE_USER = 2 };

/* Names that the first packet defines; the numbers of the model's texts follow after these. */
enum name {
	NAME_RUNNING = 1,
	NAME_READS,
	NAME_SEVERAL,
	NAME_READY,
	NAME_SIGNALS,
	NAME_SIGNALLED,
	NAME_RESOLVES,
	NAME_RESOLVED,
	NAMES
};
static const char *const names[NAMES] = {[NAME_RUNNING] = "running",
    [NAME_READS] = "reads",
    [NAME_SEVERAL] = "waits for several",
    [NAME_READY] = "runnable, without a CPU",
    [NAME_SIGNALS] = "signals",
    [NAME_SIGNALLED] = "signalled",
    [NAME_RESOLVES] = "resolves",
    [NAME_RESOLVED] = "resolved"};

enum note { NOTE_PROMISE = 1, NOTE_KIND, NOTE_END, NOTE_ERROR, NOTE_CREATED_BY, NOTE_RESOLVED_BY, NOTES };
static const char *const notes[NOTES] = {[NOTE_PROMISE] = "promise",
    [NOTE_KIND] = "kind",
    [NOTE_END] = "end",
    [NOTE_ERROR] = "error",
    [NOTE_CREATED_BY] = "created by",
    [NOTE_RESOLVED_BY] = "resolved by"};

/* Types of tracks, which are the upper half of a 64-bit track number. */
enum track { OF_PROCESS = 1, OF_THREAD, OF_BAND, OF_ROW, OF_COUNTER, OF_PAUSES, OF_PROCESSOR, OF_PENDING };

struct writer {
	const struct weft_model *model;
	const struct weft_perfetto_rows *rows;
	struct weft__flows flows;
	weft_export_write_fn *write;
	void *write_ctx;
	struct weft__proto out, packet, event, part, inner;
	WEFT_VEC(char) text;
	uint64_t *stats; /* bits by text of the model, set if the text's number is defined */
	int64_t shift_ns;
	uint64_t budget;
	struct weft_losses losses;
	uint64_t slices, arrows;
	bool has_begun, has_failed;
};

static uint64_t track_uuid(enum track what, uint64_t number)
{
	return (uint64_t)what << 32 | number;
}

/* ---- Packets ---- */

static void flush_output(struct writer *w)
{
	w->has_failed |=
	    !w->out.no_memory && w->out.bytes.count > 0 && w->write(w->write_ctx, w->out.bytes.items, w->out.bytes.count) != 0;
	weft__proto_reset(&w->out);
}

static bool has_trouble(const struct writer *w)
{
	return w->has_failed || w->out.no_memory || w->packet.no_memory || w->event.no_memory;
}

static void begin_packet(struct writer *w, int64_t time_ns)
{
	weft__proto_reset(&w->packet);
	weft__proto_uint(&w->packet, PACKET_TIME, (uint64_t)time_ns + (uint64_t)w->shift_ns);
	weft__proto_uint(&w->packet, PACKET_SEQUENCE, SEQUENCE);
}

static void end_packet(struct writer *w)
{
	weft__proto_uint(&w->packet, PACKET_FLAGS, w->has_begun ? FLAG_NEEDS_NAMES : FLAG_CLEARED | FLAG_NEEDS_NAMES);
	w->has_begun = true;
	weft__proto_message(&w->out, TRACE_PACKET, &w->packet);
	if (w->out.bytes.count >= FLUSH_BYTES)
		flush_output(w);
}

static void put_interned(
    struct weft__proto *to, struct weft__proto *inner, enum interned_field field, uint64_t number, const char *name)
{
	weft__proto_reset(inner);
	weft__proto_uint(inner, INTERNED_NUMBER, number);
	weft__proto_text(inner, INTERNED_NAME, name);
	weft__proto_message(to, field, inner);
}

/* Returns the text as valid UTF-8; the result is valid until the next call. */
static const char *clean_text(struct writer *w, struct weft_str text)
{
	/* Factor by which a text may grow, because each invalid byte becomes U+FFFD, which has three bytes. */
	enum { GROWTH = 3 };
	text = weft__export_text(text, &w->budget, &w->losses);
	w->text.count = 0;
	if (!weft_vec_reserve(&w->text, (size_t)text.len * GROWTH + 1)) {
		w->out.no_memory = true;
		return "";
	}
	weft_utf8_copy(w->text.items, (size_t)text.len * GROWTH + 1, text);
	return w->text.items;
}

/* Writes the first packet of the trace, with numbered names and the wall-clock time. */
static void put_begin(struct writer *w)
{
	begin_packet(w, 0);
	weft__proto_reset(&w->part);
	for (unsigned i = 1; i < NAMES; i++)
		put_interned(&w->part, &w->inner, INTERNED_EVENTS, i, names[i]);
	for (unsigned i = 1; i < NOTES; i++)
		put_interned(&w->part, &w->inner, INTERNED_ANNOTATIONS, i, notes[i]);
	weft__proto_message(&w->packet, PACKET_INTERNED, &w->part);
	const struct weft_trace_info *info = w->model->trace;
	if (info->has_origin) {
		weft__proto_reset(&w->part);
		const uint64_t clocks[2][2] = {{CLOCK_BOOTTIME_ID, (uint64_t)w->shift_ns},
		    {CLOCK_REALTIME_ID, (uint64_t)info->clock_origin_ns + (uint64_t)w->model->start_ns}};
		for (int i = 0; i < 2; i++) {
			weft__proto_reset(&w->inner);
			weft__proto_uint(&w->inner, CLOCK_ID, clocks[i][0]);
			weft__proto_uint(&w->inner, CLOCK_TIME, clocks[i][1]);
			weft__proto_message(&w->part, CLOCKS_CLOCK, &w->inner);
		}
		weft__proto_message(&w->packet, PACKET_CLOCKS, &w->part);
	}
	end_packet(w);
}

/* ---- Tracks ---- */

static void begin_track(struct writer *w, uint64_t number, uint64_t parent)
{
	begin_packet(w, 0);
	weft__proto_reset(&w->part);
	weft__proto_uint(&w->part, TRACK_UUID, number);
	if (parent)
		weft__proto_uint(&w->part, TRACK_PARENT, parent);
}

static void end_track(struct writer *w)
{
	weft__proto_message(&w->packet, PACKET_TRACK, &w->part);
	end_packet(w);
}

static uint64_t pid_of(const struct weft_trace_info *info, uint32_t part)
{
	const uint64_t pid = part < info->part_count ? info->parts[part].pid : info->pid;
	return pid && pid <= INT32_MAX ? pid : 1 + part;
}

/* Returns the tid of a stream.  If the tid of a thread is unknown, the thread gets a number that no thread has. */
static uint64_t tid_of(const struct weft_trace_info *info, size_t stream)
{
	const uint64_t tid = info->streams[stream].tid;
	return tid && tid <= INT32_MAX ? tid : (UINT64_C(1) << 30) + stream;
}

static void put_process(struct writer *w, uint32_t part)
{
	const struct weft_trace_info *info = w->model->trace;
	const struct weft_str name = part < info->part_count ? info->parts[part].process : info->process;
	begin_track(w, track_uuid(OF_PROCESS, part), 0);
	weft__proto_reset(&w->inner);
	weft__proto_uint(&w->inner, PROCESS_PID, pid_of(info, part));
	weft__proto_text(&w->inner, PROCESS_NAME, name.len ? clean_text(w, name) : "traced program");
	weft__proto_message(&w->part, TRACK_PROCESS, &w->inner);
	end_track(w);
}

static uint32_t part_of(const struct weft_trace_info *info, size_t stream)
{
	return stream < info->stream_count ? info->streams[stream].part : 0;
}

static void put_thread(struct writer *w, uint16_t stream)
{
	const struct weft_trace_info *info = w->model->trace;
	char name[MARK_BYTES];
	begin_track(w, track_uuid(OF_THREAD, stream), 0);
	weft__proto_reset(&w->inner);
	weft__proto_uint(&w->inner, THREAD_PID, pid_of(info, part_of(info, stream)));
	weft__proto_uint(&w->inner, THREAD_TID, tid_of(info, stream));
	if (info->streams[stream].name.len)
		weft__proto_text(&w->inner, THREAD_NAME, clean_text(w, info->streams[stream].name));
	weft__proto_message(&w->part, TRACK_THREAD, &w->inner);
	end_track(w);
	/* Perfetto draws tracks below the track of a process or thread beside that track, so promises get a track that groups
	 * them. */
	snprintf(name, sizeof name, "promises of %.200s",
	    info->streams[stream].name.len ? clean_text(w, info->streams[stream].name) : "a thread");
	begin_track(w, track_uuid(OF_BAND, stream), track_uuid(OF_PROCESS, part_of(info, stream)));
	weft__proto_text(&w->part, TRACK_NAME, name);
	weft__proto_uint(&w->part, TRACK_ORDERING, ORDERED_BY_RANK);
	end_track(w);
}

static void put_named_track(struct writer *w, uint64_t number, uint64_t parent, const char *name)
{
	begin_track(w, number, parent);
	weft__proto_text(&w->part, TRACK_NAME, name);
	end_track(w);
}

/* Writes a track for one line of a band (the rows of one thread); the lines of one band have the same merge key. */
static void put_line(struct writer *w, uint64_t number, uint16_t stream, uint32_t rank)
{
	char key[32];
	snprintf(key, sizeof key, "band %u", stream);
	begin_track(w, number, track_uuid(OF_BAND, stream));
	weft__proto_text(&w->part, TRACK_NAME, "promises");
	weft__proto_uint(&w->part, TRACK_RANK, rank);
	weft__proto_uint(&w->part, TRACK_MERGING, MERGED_BY_KEY);
	weft__proto_text(&w->part, TRACK_MERGE_KEY, key);
	end_track(w);
}

/* ---- Events ---- */

static void begin_event(struct writer *w, int64_t time_ns, enum event_type type, uint64_t track)
{
	begin_packet(w, time_ns);
	weft__proto_reset(&w->event);
	weft__proto_uint(&w->event, EVENT_TYPE, type);
	weft__proto_uint(&w->event, EVENT_TRACK, track);
	w->slices += type == EVENT_BEGIN || type == EVENT_INSTANT;
}

static void end_event(struct writer *w)
{
	weft__proto_message(&w->packet, PACKET_EVENT, &w->event);
	end_packet(w);
}

static void put_end(struct writer *w, int64_t time_ns, uint64_t track)
{
	begin_event(w, time_ns, EVENT_END, track);
	end_event(w);
}

/* Writes the name of an event as a number, which is defined at the first use of the text. */
static void put_text_name(struct writer *w, uint32_t text)
{
	const uint64_t number = (uint64_t)NAMES + text, bit = UINT64_C(1) << text % 64;
	if (!(w->stats[text / 64] & bit)) {
		w->stats[text / 64] |= bit;
		const char *name = clean_text(w, weft_model_text(w->model, text));
		weft__proto_reset(&w->part);
		put_interned(&w->part, &w->inner, INTERNED_EVENTS, number, name);
		weft__proto_message(&w->packet, PACKET_INTERNED, &w->part);
	}
	weft__proto_uint(&w->event, EVENT_NAME_NUMBER, number);
}

static void put_promise_name(struct writer *w, uint32_t promise)
{
	const uint32_t text = weft_model_name_text(w->model, promise);
	char name[MARK_BYTES];
	if (text != WEFT_NONE) {
		put_text_name(w, text);
		return;
	}
	const struct weft_promise *p = &w->model->promises[promise];
	int length = snprintf(name, sizeof name, "%s %" PRId64, weft_model_kind_name(w->model, p->kind), p->id);
	if (p->site != WEFT_NONE && length > 0 && length < 64) {
		memcpy(name + length, " at ", 5);
		weft_site_format(&w->model->trace->sites[p->site], name + length + 4, sizeof name - (size_t)length - 4);
	}
	weft__proto_text(&w->event, EVENT_NAME, name);
}

static void put_note_int(struct writer *w, enum note note, int64_t value)
{
	weft__proto_reset(&w->part);
	weft__proto_uint(&w->part, ANNOTATION_NAME_NUMBER, note);
	weft__proto_uint(&w->part, ANNOTATION_INT, (uint64_t)value);
	weft__proto_message(&w->event, EVENT_ANNOTATION, &w->part);
}

static void put_note_text(struct writer *w, enum note note, const char *value)
{
	weft__proto_reset(&w->part);
	weft__proto_uint(&w->part, ANNOTATION_NAME_NUMBER, note);
	weft__proto_text(&w->part, ANNOTATION_TEXT, value);
	weft__proto_message(&w->event, EVENT_ANNOTATION, &w->part);
}

static void put_flow(struct writer *w, bool is_last, uint32_t link)
{
	weft__proto_fixed64(&w->event, is_last ? EVENT_LAST_FLOW : EVENT_FLOW, (uint64_t)link + 1);
	w->arrows += is_last;
}

/* ---- Promises ---- */

static const char *end_of(const struct weft_promise *p)
{
	return p->end == WEFT_END_RESOLVED              ? "resolved"
	       : p->end == WEFT_END_BECAME              ? "became another"
	       : p->end != WEFT_END_FAILED              ? "pending"
	       : p->flags & WEFT_PROMISE_NEVER_RESOLVED ? "never resolved"
							: "failed";
}

static void put_promise_begin(struct writer *w, uint32_t promise, uint64_t track, enum event_type type)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *p = &m->promises[promise];
	begin_event(w, p->start_ns, type, track);
	put_promise_name(w, promise);
	weft__proto_text(&w->event, EVENT_CATEGORY, "promise");
	if (weft_promise_went_wrong(p))
		weft__proto_text(&w->event, EVENT_CATEGORY, "failed");
	put_note_int(w, NOTE_PROMISE, p->id);
	put_note_text(w, NOTE_KIND, weft_model_kind_name(m, p->kind));
	put_note_text(w, NOTE_END, end_of(p));
	if (p->failure != WEFT_NONE)
		put_note_text(w, NOTE_ERROR, clean_text(w, weft_model_text(m, p->failure)));
	if (p->created_by != WEFT_NONE)
		put_note_int(w, NOTE_CREATED_BY, m->promises[p->created_by].id);
	if (w->flows.resolved_by[promise] != WEFT_NONE)
		put_note_int(w, NOTE_RESOLVED_BY, m->promises[w->flows.resolved_by[promise]].id);
	if (p->site != WEFT_NONE && m->trace->sites[p->site].line) {
		const struct weft_site *site = &m->trace->sites[p->site];
		weft__proto_reset(&w->part);
		weft__proto_text(&w->part, SOURCE_FILE, clean_text(w, site->file));
		weft__proto_text(&w->part, SOURCE_FUNCTION, clean_text(w, site->function));
		weft__proto_uint(&w->part, SOURCE_LINE, site->line);
		weft__proto_message(&w->event, EVENT_SOURCE, &w->part);
	}
	for (uint32_t i = w->flows.to_begin[promise]; i < w->flows.to_begin[promise + 1]; i++)
		if (m->links[w->flows.by_to[i]].kind == WEFT_LINK_READ)
			put_flow(w, false, w->flows.by_to[i]);
	end_event(w);
}

/* Cursor over the events of one promise, in time order. */
struct line {
	uint32_t promise;
	uint64_t track;
	uint32_t from, to, label; /* indexes of the promise's next outgoing link, next incoming link, and next label */
	uint32_t awaits;          /* number of awaits since the promise last ran */
	uint32_t awaited;         /* promise of the newest await */
};

/* Writes a mark (an instant event) with an end of an arrow.  Both ends of an arrow have the same time, and the order in which
 * the importer reads them depends on their tracks.  So each end is written as a flow that continues, unless is_last. */
static void put_mark(struct writer *w, const struct line *line, int64_t time_ns, enum name name, uint32_t link, bool is_last)
{
	begin_event(w, time_ns, EVENT_INSTANT, line->track);
	weft__proto_uint(&w->event, EVENT_NAME_NUMBER, name);
	weft__proto_text(&w->event, EVENT_CATEGORY, "link");
	put_flow(w, is_last, link);
	end_event(w);
}

static void put_label(struct writer *w, const struct line *line, const struct weft_label *label)
{
	begin_event(w, label->time_ns, EVENT_INSTANT, line->track);
	put_text_name(w, label->text);
	weft__proto_text(&w->event, EVENT_CATEGORY, "label");
	end_event(w);
}

/* Writes the marks of a promise up to a time, either within a run, or outside of runs if `run` is WEFT_NONE. */
static void put_marks(struct writer *w, struct line *line, int64_t until_ns, uint32_t run)
{
	const struct weft_model *m = w->model;
	const struct weft__flows *f = &w->flows;
	const uint32_t from_end = f->from_begin[line->promise + 1], to_end = f->to_begin[line->promise + 1];
	const uint32_t label_end = m->promises[line->promise + 1].labels;
	for (;;) {
		while (line->to < to_end && m->links[f->by_to[line->to]].kind == WEFT_LINK_READ)
			line->to++;
		const struct weft_link *from = line->from < from_end ? &m->links[f->by_from[line->from]] : NULL;
		const struct weft_link *to = line->to < to_end ? &m->links[f->by_to[line->to]] : NULL;
		const struct weft_label *label = line->label < label_end ? &m->labels[line->label] : NULL;
		const int64_t from_ns = from ? from->time_ns : INT64_MAX, to_ns = to ? to->time_ns : INT64_MAX,
			      label_ns = label ? label->time_ns : INT64_MAX;
		if (from && from_ns <= until_ns && from_ns <= to_ns && from_ns <= label_ns) {
			const uint32_t link = f->by_from[line->from++];
			if (from->kind == WEFT_LINK_AWAIT) {
				line->awaits++;
				line->awaited = from->to;
			} else if (from->kind != WEFT_LINK_READ) {
				put_mark(
				    w, line, from_ns, from->kind == WEFT_LINK_SIGNAL ? NAME_SIGNALS : NAME_RESOLVES, link, false);
			} else if (!weft__flows_enters_run(m, from, run)) {
				put_mark(w, line, from_ns, NAME_READS, link, true);
			}
		} else if (to && to_ns <= until_ns && to_ns <= label_ns) {
			const uint32_t link = f->by_to[line->to++];
			put_mark(w, line, to_ns, to->kind == WEFT_LINK_SIGNAL ? NAME_SIGNALLED : NAME_RESOLVED, link, false);
			w->arrows++;
		} else if (label && label_ns <= until_ns) {
			/* The first label is skipped because it is the promise's name, and counters are skipped because they
			 * have tracks of their own. */
			if (!label->is_counter && label->text != weft_model_name_text(m, line->promise))
				put_label(w, line, label);
			line->label++;
		} else {
			return;
		}
	}
}

/* Writes the interval between two runs of a promise, before the first run, or after the last run. is_open means that it follows
 * the last run of a pending promise. */
static void put_gap(struct writer *w, struct line *line, int64_t from_ns, int64_t to_ns, bool is_last, bool is_open)
{
	const bool waits = line->awaits > 0 && (to_ns > from_ns || is_open);
	if (waits) {
		char name[MARK_BYTES];
		const size_t length = 10;
		begin_event(w, from_ns, EVENT_BEGIN, line->track);
		if (line->awaits == 1) {
			memcpy(name, "waits for ", length);
			weft_model_name(w->model, line->awaited, name + length, sizeof name - length);
			weft__proto_text(&w->event, EVENT_NAME, name);
		} else {
			weft__proto_uint(&w->event, EVENT_NAME_NUMBER, NAME_SEVERAL);
			w->losses.counts[WEFT_LOSS_WAIT]++;
		}
		weft__proto_text(&w->event, EVENT_CATEGORY, "wait");
		end_event(w);
	}
	put_marks(w, line, is_last || to_ns == INT64_MIN ? to_ns : to_ns - 1, WEFT_NONE);
	if (waits && !is_open)
		put_end(w, to_ns, line->track);
	line->awaits = 0;
}

static void put_run(struct writer *w, struct line *line, uint32_t run, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = w->model;
	const uint32_t end = w->flows.from_begin[line->promise + 1];
	begin_event(w, from_ns, to_ns > from_ns ? EVENT_BEGIN : EVENT_INSTANT, line->track);
	weft__proto_uint(&w->event, EVENT_NAME_NUMBER, NAME_RUNNING);
	weft__proto_text(&w->event, EVENT_CATEGORY, "run");
	for (uint32_t i = line->from; i < end && m->links[w->flows.by_from[i]].time_ns <= to_ns; i++)
		if (m->links[w->flows.by_from[i]].kind == WEFT_LINK_READ &&
		    weft__flows_enters_run(m, &m->links[w->flows.by_from[i]], run))
			put_flow(w, true, w->flows.by_from[i]);
	end_event(w);
	put_marks(w, line, to_ns, run);
	if (to_ns > from_ns)
		put_end(w, to_ns, line->track);
}

static void put_promise(struct writer *w, uint32_t promise)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *p = &m->promises[promise];
	const bool is_open = p->end == WEFT_END_PENDING;
	struct line line = {.promise = promise,
	    .track = track_uuid(OF_ROW, w->rows->row_of[promise]),
	    .from = w->flows.from_begin[promise],
	    .to = w->flows.to_begin[promise],
	    .label = p->labels};
	if (is_open) {
		line.track = track_uuid(OF_PENDING, promise);
		put_line(w, line.track, p->stream, w->rows->row_of[promise]);
	}
	const bool is_instant = !is_open && p->end_ns <= p->start_ns;
	put_promise_begin(w, promise, line.track, is_instant ? EVENT_INSTANT : EVENT_BEGIN);
	if (is_instant) {
		put_marks(w, &line, p->start_ns, WEFT_NONE);
		return;
	}
	int64_t at_ns = p->start_ns;
	for (uint32_t r = p->runs; r < p[1].runs; r++) {
		int64_t from_ns = m->runs[r].start_ns, to_ns = m->runs[r].end_ns;
		if (from_ns < at_ns || (!is_open && to_ns > p->end_ns)) {
			from_ns = from_ns < at_ns ? at_ns : from_ns;
			to_ns = !is_open && to_ns > p->end_ns ? p->end_ns : to_ns;
			w->losses.counts[WEFT_LOSS_OVERLAP] += to_ns <= from_ns;
			if (to_ns <= from_ns)
				continue;
		}
		put_gap(w, &line, at_ns, from_ns, false, false);
		put_run(w, &line, r, from_ns, to_ns);
		at_ns = to_ns;
	}
	put_gap(w, &line, at_ns, is_open ? INT64_MAX : p->end_ns, true, is_open);
	if (!is_open)
		put_end(w, p->end_ns, line.track);
}

static void put_promises(struct writer *w)
{
	uint32_t row = WEFT_NONE;
	for (size_t i = 0; i < w->rows->count && !has_trouble(w); i++) {
		const uint32_t promise = w->rows->order[i];
		if (w->rows->row_of[promise] != row) {
			row = w->rows->row_of[promise];
			put_line(w, track_uuid(OF_ROW, row), w->model->promises[promise].stream, row);
		}
		put_promise(w, promise);
	}
}

/* ---- Threads ---- */

struct thread_interval {
	int64_t start_ns, end_ns;
	uint32_t what;
	uint16_t stream;
};

static int compare_intervals(const void *x, const void *y)
{
	const struct thread_interval *a = x, *b = y;
	return WEFT_ORDER(a->stream, b->stream)
		   ?: WEFT_ORDER(a->start_ns, b->start_ns) ?: WEFT_ORDER(b->end_ns, a->end_ns) ?: WEFT_ORDER(a->what, b->what);
}

/* Writes for each thread the promises that ran on it. */
static void put_runs(struct writer *w)
{
	const struct weft_model *m = w->model;
	struct thread_interval *all = malloc((m->run_count + 1) * sizeof *all);
	size_t count = 0;
	if (!all) {
		w->out.no_memory = true;
		return;
	}
	for (uint32_t p = 0; p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; p != WEFT_SYSTEM && r < m->promises[p + 1].runs; r++)
			all[count++] = (struct thread_interval){
			    m->runs[r].start_ns, m->runs[r].end_ns, p, m->run_streams ? m->run_streams[r] : 0};
	weft_sort(all, count, sizeof *all, compare_intervals);
	int64_t until_ns = INT64_MIN;
	for (size_t i = 0; i < count && !has_trouble(w); i++) {
		const uint64_t track = track_uuid(OF_THREAD, all[i].stream);
		if (i == 0 || all[i].stream != all[i - 1].stream)
			until_ns = INT64_MIN;
		if (all[i].start_ns < until_ns) {
			w->losses.counts[WEFT_LOSS_OVERLAP]++;
			continue;
		}
		const bool is_instant = all[i].end_ns <= all[i].start_ns;
		begin_event(w, all[i].start_ns, is_instant ? EVENT_INSTANT : EVENT_BEGIN, track);
		put_promise_name(w, all[i].what);
		weft__proto_text(&w->event, EVENT_CATEGORY, "run");
		put_note_int(w, NOTE_PROMISE, m->promises[all[i].what].id);
		end_event(w);
		if (!is_instant)
			put_end(w, all[i].end_ns, track);
		until_ns = all[i].end_ns;
	}
	free(all);
}

static void put_interval(struct writer *w, uint64_t track, int64_t from_ns, int64_t to_ns, const char *name, const char *category)
{
	begin_event(w, from_ns, to_ns > from_ns ? EVENT_BEGIN : EVENT_INSTANT, track);
	weft__proto_text(&w->event, EVENT_NAME, name);
	weft__proto_text(&w->event, EVENT_CATEGORY, category);
	end_event(w);
	if (to_ns > from_ns)
		put_end(w, to_ns, track);
}

static void put_pauses(struct writer *w)
{
	const struct weft_model *m = w->model;
	const size_t streams = m->trace->stream_count;
	int64_t *until_ns = malloc((streams + 1) * sizeof *until_ns);
	if (!until_ns) {
		w->out.no_memory = true;
		return;
	}
	for (size_t i = 0; i <= streams; i++)
		until_ns[i] = INT64_MIN;
	for (size_t i = 0; i < m->pause_count && !has_trouble(w); i++) {
		const struct weft_interval *pause = &m->pauses[i];
		const uint64_t track = track_uuid(OF_PAUSES, pause->stream);
		if (pause->stream >= streams || pause->start_ns < until_ns[pause->stream]) {
			w->losses.counts[WEFT_LOSS_OVERLAP]++;
			continue;
		}
		if (until_ns[pause->stream] == INT64_MIN)
			put_named_track(w, track, track_uuid(OF_PROCESS, part_of(m->trace, pause->stream)), "pauses");
		until_ns[pause->stream] = pause->end_ns;
		put_interval(w, track, pause->start_ns, pause->end_ns, clean_text(w, weft_model_text(m, pause->text)), "pause");
	}
	free(until_ns);
	w->losses.counts[WEFT_LOSS_SLEEP] += m->sleep_count;
}

static const char *off_name(const struct weft_kernel *k, const struct weft_off_cpu *off, char *buf, size_t size)
{
	const char *call = weft_kernel_call_name(off->call);
	const uint32_t by = off->by != WEFT_NO_TID ? weft_kernel_thread(k, off->by) : WEFT_NONE;
	if (off->why == WEFT_OFF_PREEMPTED && by != WEFT_NONE)
		snprintf(buf, size, "preempted by %.*s", (int)(k->threads[by].name.len < 64 ? k->threads[by].name.len : 64),
		    k->threads[by].name.ptr);
	else if (off->why == WEFT_OFF_PREEMPTED)
		snprintf(buf, size, "preempted");
	else
		snprintf(buf, size, off->why == WEFT_OFF_DISK ? "waits for a disk%s%s" : "blocked%s%s", call ? " in " : "",
		    call ? call : "");
	weft_utf8_sanitize(buf);
	return buf;
}

/* Writes the off-CPU intervals of the program's threads. */
static void put_kernel(struct writer *w)
{
	const struct weft_kernel *k = w->model->kernel;
	char name[MARK_BYTES];
	for (size_t i = 0; k && i < k->thread_count && !has_trouble(w); i++) {
		const struct weft_os_thread *thread = &k->threads[i];
		const uint64_t track = track_uuid(OF_PROCESSOR, i);
		if (!thread->pid || thread[1].offs == thread->offs)
			continue;
		snprintf(name, sizeof name, "%.64s %" PRIu32 " off CPU", clean_text(w, thread->name), thread->tid);
		put_named_track(w, track, track_uuid(OF_PROCESS, 0), name);
		for (size_t o = thread->offs; o < thread[1].offs && !has_trouble(w); o++) {
			const struct weft_off_cpu *off = &k->offs[o];
			const bool is_preempted = off->why == WEFT_OFF_PREEMPTED;
			put_interval(w, track, off->start_ns, is_preempted ? off->end_ns : off->ready_ns,
			    off_name(k, off, name, sizeof name), "kernel");
			if (!is_preempted && off->end_ns > off->ready_ns)
				put_interval(w, track, off->ready_ns, off->end_ns, names[NAME_READY], "kernel");
		}
	}
}

static void put_counters(struct writer *w)
{
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->counter_count && !has_trouble(w); i++) {
		const uint64_t track = track_uuid(OF_COUNTER, i);
		const char *name = clean_text(w, m->counters[i].name);
		begin_track(w, track, track_uuid(OF_PROCESS, 0));
		weft__proto_text(&w->part, TRACK_NAME, name);
		weft__proto_bytes(&w->part, TRACK_COUNTER, NULL, 0);
		end_track(w);
		for (size_t s = 0; s < m->counters[i].count && !has_trouble(w); s++) {
			begin_event(w, m->counters[i].samples[s].time_ns, EVENT_COUNTER, track);
			weft__proto_uint(&w->event, EVENT_VALUE, (uint64_t)m->counters[i].samples[s].value);
			end_event(w);
		}
	}
}

/* ---- Stack samples ---- */

static void end_interned(struct writer *w)
{
	weft__proto_message(&w->packet, PACKET_INTERNED, &w->part);
	end_packet(w);
}

/* Defines a file of machine code. */
static void put_mapping(struct writer *w, size_t module)
{
	const struct weft_module *m = &w->model->trace->modules[module];
	begin_packet(w, 0);
	weft__proto_reset(&w->part);
	put_interned(&w->part, &w->inner, INTERNED_PATHS, module + 1, clean_text(w, m->path));
	if (m->build_id.len)
		put_interned(&w->part, &w->inner, INTERNED_BUILD_IDS, module + 1, clean_text(w, m->build_id));
	weft__proto_reset(&w->inner);
	weft__proto_uint(&w->inner, MAPPING_NUMBER, module + 1);
	if (m->build_id.len)
		weft__proto_uint(&w->inner, MAPPING_BUILD_ID, module + 1);
	weft__proto_uint(&w->inner, MAPPING_START, m->address);
	weft__proto_uint(&w->inner, MAPPING_END, m->address + m->size);
	weft__proto_uint(&w->inner, MAPPING_PATH, module + 1);
	weft__proto_message(&w->part, INTERNED_MAPPINGS, &w->inner);
	end_interned(w);
}

/* Defines a frame, whose number is that of its site. */
static void put_frame(struct writer *w, uint32_t site)
{
	const struct weft_trace_info *info = w->model->trace;
	const struct weft_site *s = &info->sites[site];
	char name[MARK_BYTES];
	if (!s->function.len)
		weft_site_format(s, name, sizeof name);
	begin_packet(w, 0);
	weft__proto_reset(&w->part);
	put_interned(
	    &w->part, &w->inner, INTERNED_FUNCTIONS, (uint64_t)site + 1, s->function.len ? clean_text(w, s->function) : name);
	if (s->file.len)
		put_interned(&w->part, &w->inner, INTERNED_SOURCES, (uint64_t)site + 1, clean_text(w, s->file));
	weft__proto_reset(&w->inner);
	weft__proto_uint(&w->inner, FRAME_NUMBER, (uint64_t)site + 1);
	weft__proto_uint(&w->inner, FRAME_FUNCTION, (uint64_t)site + 1);
	if (s->module) {
		weft__proto_uint(&w->inner, FRAME_MAPPING, (uint64_t)(s->module - info->modules) + 1);
		weft__proto_uint(&w->inner, FRAME_OFFSET, s->offset);
	}
	if (s->file.len)
		weft__proto_uint(&w->inner, FRAME_SOURCE, (uint64_t)site + 1);
	if (s->line)
		weft__proto_uint(&w->inner, FRAME_LINE, s->line);
	weft__proto_message(&w->part, INTERNED_FRAMES, &w->inner);
	end_interned(w);
}

/* Defines a stack, and its frames and files that are not defined yet; Perfetto lists the outermost frame first. */
static void put_stack(struct writer *w, uint32_t stack, bool *has_mapping, bool *has_frame)
{
	enum { MAX_FRAMES = 64 };
	const struct weft_trace_info *info = w->model->trace;
	uint32_t sites[MAX_FRAMES];
	size_t depth = 0;
	for (uint32_t at = stack; at != WEFT_NO_STACK && depth < MAX_FRAMES; at = info->profile.stacks[at].caller) {
		const uint32_t site = sites[depth++] = info->profile.stacks[at].site;
		const struct weft_module *module = info->sites[site].module;
		if (module && !has_mapping[module - info->modules])
			put_mapping(w, (size_t)(module - info->modules));
		if (module)
			has_mapping[module - info->modules] = true;
		if (!has_frame[site])
			put_frame(w, site);
		has_frame[site] = true;
	}
	begin_packet(w, 0);
	weft__proto_reset(&w->part);
	weft__proto_reset(&w->inner);
	weft__proto_uint(&w->inner, STACK_NUMBER, (uint64_t)stack + 1);
	while (depth-- > 0)
		weft__proto_uint(&w->inner, STACK_FRAME, (uint64_t)sites[depth] + 1);
	weft__proto_message(&w->part, INTERNED_STACKS, &w->inner);
	end_interned(w);
}

static void put_samples(struct writer *w)
{
	const struct weft_model *m = w->model;
	const struct weft_trace_info *info = m->trace;
	bool *has_stack = calloc(info->profile.stack_count + 1, 1), *has_frame = calloc(info->site_count + 1, 1),
	     *has_mapping = calloc(info->module_count + 1, 1);
	w->out.no_memory |= !has_stack || !has_frame || !has_mapping;
	for (size_t i = 0; i < m->sample_count && !has_trouble(w); i++) {
		const struct weft_stack_sample *s = &m->samples[i];
		if (!has_stack[s->stack])
			put_stack(w, s->stack, has_mapping, has_frame);
		has_stack[s->stack] = true;
		begin_packet(w, s->time_ns);
		weft__proto_reset(&w->part);
		weft__proto_uint(&w->part, SAMPLE_PID, pid_of(info, part_of(info, s->stream)));
		weft__proto_uint(&w->part, SAMPLE_TID, tid_of(info, s->stream));
		weft__proto_uint(&w->part, SAMPLE_STACK, (uint64_t)s->stack + 1);
		weft__proto_uint(&w->part, SAMPLE_MODE, MODE_USER);
		weft__proto_message(&w->packet, PACKET_SAMPLE, &w->part);
		end_packet(w);
	}
	free(has_stack);
	free(has_frame);
	free(has_mapping);
}

/* ---- Whole trace ---- */

static void put_all(struct writer *w)
{
	const struct weft_model *m = w->model;
	int64_t min_ns = 0;
	for (size_t i = 0; i < w->rows->count; i++)
		if (m->promises[w->rows->order[i]].start_ns < min_ns)
			min_ns = m->promises[w->rows->order[i]].start_ns;
	/* Perfetto's importer takes a time of 0 for a missing time. */
	if (__builtin_sub_overflow((int64_t)START, min_ns, &w->shift_ns))
		w->shift_ns = START;
	put_begin(w);
	for (uint32_t i = 0; i < (m->trace->part_count ? m->trace->part_count : 1); i++)
		put_process(w, i);
	for (size_t i = 0; i < m->trace->stream_count; i++)
		put_thread(w, (uint16_t)i);
	put_promises(w);
	put_runs(w);
	put_pauses(w);
	put_kernel(w);
	put_counters(w);
	put_samples(w);
	flush_output(w);
}

int weft_export_perfetto(const struct weft_trace *trace, const struct weft_model *model, const struct weft_perfetto_rows *rows,
    enum weft_flows flows, const uint64_t *only, weft_export_write_fn *write, void *write_ctx, struct weft_losses *losses,
    struct weft_perfetto_stats *stats, struct weft_error *err)
{
	struct writer w = {
	    .model = model, .rows = rows, .write = write, .write_ctx = write_ctx, .budget = weft__export_budget(trace)};
	int status = weft__flows_find(&w.flows, model, flows, only);
	w.stats = calloc(weft_model_text_count(model) / 64 + 1, sizeof *w.stats);
	if (status == WEFT_OK && w.stats)
		put_all(&w);
	if (status == WEFT_OK)
		status = w.has_failed ? WEFT_EIO : !w.stats || has_trouble(&w) ? WEFT_ENOMEM : WEFT_OK;
	w.losses.counts[WEFT_LOSS_ARROW] = w.flows.left_out;
	*stats = (struct weft_perfetto_stats){w.slices, w.arrows, w.flows.largest};
	weft__flows_finish(&w.flows);
	struct weft__proto *messages[] = {&w.out, &w.packet, &w.event, &w.part, &w.inner};
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		weft_vec_free(&messages[i]->bytes);
	weft_vec_free(&w.text);
	free(w.stats);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	*losses = w.losses;
	return WEFT_OK;
}
