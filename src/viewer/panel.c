/* panel.c: fills the side panel with the details of a promise.  SPDX-License-Identifier: ISC */
#include "viewer/panel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/index/account.h"
#include "analysis/index/hot_function.h"
#include "analysis/index/memory.h"
#include "analysis/index/names.h"
#include "base/utf8.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

struct writer {
	const struct weft_panel_source *source;
	const struct weft_model *model;
	struct weft_rows *to;
};

#define TEXT(...) weft__rows_text(w->to, __VA_ARGS__)

static struct weft_row *add_row(struct writer *w, enum weft_row_kind kind, size_t name, size_t value)
{
	return weft__rows_add(w->to, kind, name, value);
}

static void alarm_if(struct weft_row *row, bool is)
{
	row->tone = is ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
}

/* Copies a text as one line of valid UTF-8. */
static void copy_clean(char *out, size_t size, struct weft_str text)
{
	weft_utf8_copy(out, size, text);
	for (; *out; out++)
		if ((unsigned char)*out < ' ' || *out == 127)
			*out = ' ';
}

static const char *name_of(const struct writer *w, uint32_t promise, char *buf, size_t size)
{
	if (promise == WEFT_SYSTEM) {
		snprintf(buf, size, "the system");
		return buf;
	}
	char raw[200];
	size_t len = weft_model_name(w->model, promise, raw, sizeof raw);
	copy_clean(buf, size, (struct weft_str){raw, (uint32_t)(len < sizeof raw ? len : sizeof raw - 1)});
	return buf;
}

static const char *time_text(const struct writer *w, char buf[80], int64_t time_ns)
{
	weft_clock_print(buf, 80, w->model, w->source->clock, time_ns, 1);
	return buf;
}

/* Formats a duration with about four digits. */
static const char *length_text(char buf[80], int64_t length_ns)
{
	int64_t step = 1;
	while (length_ns / step >= 10000)
		step *= 10;
	weft_duration_print(buf, 80, length_ns, step);
	return buf;
}

static void write_title(struct writer *w, uint32_t promise)
{
	static const char *const ends[] = {[WEFT_END_PENDING] = "pending",
	    [WEFT_END_RESOLVED] = "resolved",
	    [WEFT_END_FAILED] = "failed",
	    [WEFT_END_BECAME] = "became another promise"};
	const struct weft_promise *p = &w->model->promises[promise];
	char name[256];
	bool never = (p->flags & WEFT_PROMISE_NEVER_RESOLVED) != 0;
	struct weft_row *row = add_row(w, WEFT_ROW_TITLE, TEXT("%s", name_of(w, promise, name, sizeof name)),
	    TEXT("%s, %s", weft_model_kind_name(w->model, p->kind), never ? "never resolved" : ends[p->end]));
	alarm_if(row, weft_promise_went_wrong(p));
	row->leads = promise == w->source->selected;
}

static void write_labels(struct writer *w, const struct weft_promise *p)
{
	enum { SHOWN = 5 };
	char text[300], time[80];
	uint32_t count = p[1].labels - p->labels, first = count > SHOWN ? p[1].labels - SHOWN : p->labels;
	if (count < 2 + (p->failure != WEFT_NONE)) /* the first label is the panel's title, so it is not listed again */
		return;
	for (uint32_t l = first; l < p[1].labels; l++) {
		char raw[300];
		const struct weft_label *label = &w->model->labels[l];
		size_t len = weft_model_label(w->model, label, raw, sizeof raw);
		copy_clean(text, sizeof text, (struct weft_str){raw, (uint32_t)(len < sizeof raw ? len : sizeof raw - 1)});
		if (!label->is_counter && label->text == p->failure)
			continue;
		add_row(w, WEFT_ROW_FACT, TEXT("label"), TEXT("%s, at %s", text, time_text(w, time, label->time_ns)));
	}
	if (first > p->labels) {
		char number[28];
		add_row(w, WEFT_ROW_MORE, TEXT("%s earlier labels", weft_number_text(number, first - p->labels)), 0);
	}
}

static void write_site(struct writer *w, const struct weft_promise *p)
{
	const struct weft_trace_info *info = w->model->trace;
	char text[256], function[256];
	if (p->site != WEFT_NONE) {
		const struct weft_site *site = &info->sites[p->site];
		char place[256];
		copy_clean(text, sizeof text, site->file);
		copy_clean(function, sizeof function, site->function);
		weft_site_format(site, place, sizeof place);
		if (weft_site_is_machine_code(site)) {
			copy_clean(text, sizeof text, (struct weft_str){place, (uint32_t)strlen(place)});
			add_row(w, WEFT_ROW_FACT, TEXT("site"), TEXT("%s", text));
		} else
			add_row(w, WEFT_ROW_FACT, TEXT("site"),
			    TEXT("%s:%" PRIu32 "%s%s", text, site->line, *function ? " " : "", function));
	}
	if (info->stream_count > 1 && p->stream < info->stream_count) {
		const struct weft_stream_info *stream = &info->streams[p->stream];
		copy_clean(text, sizeof text, stream->name);
		add_row(w, WEFT_ROW_FACT, TEXT("OS thread"),
		    stream->name.len ? TEXT("%s (%" PRIu64 ")", text, stream->tid) : TEXT("%" PRIu64, stream->tid));
	}
}

static void write_ends(struct writer *w, uint32_t promise, const struct weft_promise *p)
{
	char time[80], length[80], text[300];
	int64_t age = 0;
	if (__builtin_sub_overflow(weft_account_end_ns(w->model, promise), p->start_ns, &age))
		age = INT64_MAX;
	length_text(length, age);
	if (p->flags & WEFT_PROMISE_START_UNKNOWN)
		add_row(w, WEFT_ROW_FACT, TEXT("created"), TEXT("before the trace begins"));
	else
		add_row(w, WEFT_ROW_FACT, TEXT(p->flags & WEFT_PROMISE_CREATION_DRAWN ? "created" : "woken"),
		    TEXT("%s", time_text(w, time, p->start_ns)));
	time_text(w, time, p->end_ns);
	switch ((enum weft_end)p->end) {
	case WEFT_END_RESOLVED: add_row(w, WEFT_ROW_FACT, TEXT("resolved"), TEXT("%s", time)); break;
	case WEFT_END_BECAME: add_row(w, WEFT_ROW_FACT, TEXT("became another promise"), TEXT("%s", time)); break;
	case WEFT_END_PENDING:
		add_row(w, WEFT_ROW_FACT, TEXT(p->end_ns < weft_model_until(w->model, promise) ? "last event" : "still pending"),
		    TEXT("%s", time));
		break;
	case WEFT_END_FAILED:
		if (!(p->flags & WEFT_PROMISE_NEVER_RESOLVED))
			alarm_if(add_row(w, WEFT_ROW_FACT, TEXT("failed"), TEXT("%s", time)), weft_promise_went_wrong(p));
		if (p->failure != WEFT_NONE) {
			copy_clean(text, sizeof text, weft_model_text(w->model, p->failure));
			alarm_if(add_row(w, WEFT_ROW_FACT, TEXT("error"), TEXT("%s", text)), weft_promise_went_wrong(p));
		}
		break;
	}
	add_row(w, WEFT_ROW_FACT, TEXT("age"), TEXT("%s", length));
}

static void write_time(struct writer *w, const char *name, int64_t ns, int64_t all_ns)
{
	char text[80];
	length_text(text, ns);
	double part = all_ns > 0 ? (double)ns * 100 / (double)all_ns : 0;
	int percent = (int)(part + 0.5);
	if (ns > 0 && percent == 0)
		add_row(w, WEFT_ROW_FACT, TEXT("%s", name), TEXT("%s, below 1%%", text));
	else
		add_row(w, WEFT_ROW_FACT, TEXT("%s", name), TEXT("%s, %d%%", text, percent));
}

static int64_t get_length_ns(const struct weft_run *run)
{
	int64_t length_ns;
	return __builtin_sub_overflow(run->end_ns, run->start_ns, &length_ns) ? INT64_MAX : length_ns;
}

/* Writes the longest run of a promise, if samples say in which function the run was. */
static void write_longest_run(struct writer *w, uint32_t promise)
{
	const struct weft_model *m = w->model;
	size_t longest = m->promises[promise].runs;
	const size_t end = m->promises[promise + 1].runs;
	for (size_t i = longest; i < end; i++)
		if (get_length_ns(&m->runs[i]) > get_length_ns(&m->runs[longest]))
			longest = i;
	if (longest >= end)
		return;
	const struct weft_run *run = &m->runs[longest];
	struct weft__hot_function hot;
	char length[80], place[WEFT_NAME_BYTES];
	const uint16_t stream = m->run_streams ? m->run_streams[longest] : 0;
	if (weft__hot_function_find(&hot, m, stream, run->start_ns, run->end_ns) > 0)
		add_row(w, WEFT_ROW_FACT, TEXT("longest run"),
		    TEXT("%s, %zu of %zu samples in %s", length_text(length, get_length_ns(run)), hot.inside, hot.samples,
			weft_name_place(m, hot.site, place)));
}

/* Writes the memory that a promise allocated if its allocations were sampled. */
static void write_memory(struct writer *w, uint32_t promise)
{
	struct weft_promise_memory memory;
	char size[WEFT_BYTES_BYTES], place[WEFT_NAME_BYTES];
	if (weft_promise_memory(&memory, w->model, promise) < 0 || !memory.samples)
		return;
	add_row(w, WEFT_ROW_FACT, TEXT("allocated"),
	    TEXT("about %s (%zu samples)", weft_bytes_text(size, memory.allocated), memory.samples));
	add_row(w, WEFT_ROW_FACT, TEXT("not freed"), TEXT("about %s", weft_bytes_text(size, memory.held)));
	if (memory.site != WEFT_NONE && *weft_name_place(w->model, memory.site, place))
		add_row(w, WEFT_ROW_FACT, TEXT("mostly in"), TEXT("%s", place));
}

static void write_times(struct writer *w, uint32_t promise)
{
	struct weft_state_times t = weft_promise_info_times(w->source->facts, promise);
	int64_t all = t.waiting_ns + t.ready_ns + t.running_ns;
	add_row(w, WEFT_ROW_HEADING, TEXT("Time of this promise"), 0);
	write_time(w, "waiting", t.waiting_ns, all);
	write_time(w, "ready", t.ready_ns, all);
	write_time(w, "running", t.running_ns, all);
	if (t.off_ns > 0)
		write_time(w, "of that off CPU", t.off_ns, all);
	if (w->model->sample_count)
		write_longest_run(w, promise);
	write_memory(w, promise);
}

/* Sections of the panel, in the order of questions about a waiting promise. */
static const struct section {
	enum weft_relation relation;
	const char *heading;
	bool last; /* whether to show the last links, because they are more useful than the first ones */
} sections[] = {
    {WEFT_RELATION_AWAITS, "Waits for", true},
    {WEFT_RELATION_READ, "Awaited and read", true},
    {WEFT_RELATION_CREATED_BY, "Created by", false},
    {WEFT_RELATION_SIGNALLED_BY, "Signalled by", true},
    {WEFT_RELATION_RESOLVED_BY, "Resolved by", false},
    {WEFT_RELATION_BECAME, "Became", false},
    {WEFT_RELATION_CAME_FROM, "Merged from", false},
    {WEFT_RELATION_AWAITED_BY, "Waited for by", false},
    {WEFT_RELATION_READ_BY, "Result read by", false},
    {WEFT_RELATION_SIGNALLED, "Signalled", false},
    {WEFT_RELATION_RESOLVED, "Resolved", false},
    {WEFT_RELATION_CREATED, "Created", false},
};

static void write_link(struct writer *w, const struct weft_related_promise *fact)
{
	char name[256], time[80];
	const struct weft_promise *other = &w->model->promises[fact->promise];
	const char *kind = weft_model_kind_name(w->model, other->kind);
	bool is_system = fact->promise == WEFT_SYSTEM;
	name_of(w, fact->promise, name, sizeof name);
	struct weft_row *row = add_row(w, WEFT_ROW_LINK, is_system ? TEXT("%s", name) : TEXT("%s \xc2\xb7 %s", name, kind),
	    TEXT("%s%s", time_text(w, time, fact->time_ns), fact->is_open ? ", still" : ""));
	row->promise = is_system ? WEFT_NONE : fact->promise;
	row->leads = !is_system;
	alarm_if(row, fact->is_open);
}

static void write_section(struct writer *w, uint32_t promise, const struct section *section)
{
	struct weft_related_promise facts[WEFT_PANEL_LINKS];
	size_t count = weft_promise_info_count(w->source->facts, promise, section->relation);
	size_t first = section->last && count > WEFT_PANEL_LINKS ? count - WEFT_PANEL_LINKS : 0;
	size_t shown = weft_promise_info_list(w->source->facts, promise, section->relation, first, facts, WEFT_PANEL_LINKS);
	char number[28];
	if (count == 0)
		return;
	add_row(w, WEFT_ROW_HEADING, TEXT("%s", section->heading), count > 1 ? TEXT("%s", weft_number_text(number, count)) : 0);
	if (first > 0)
		add_row(w, WEFT_ROW_MORE, TEXT("%s earlier promises are not shown", weft_number_text(number, first)), 0);
	for (size_t i = 0; i < shown; i++)
		write_link(w, &facts[i]);
	if (first + shown < count)
		add_row(w, WEFT_ROW_MORE, TEXT("%s more", weft_number_text(number, count - first - shown)), 0);
}

static void write_all(struct writer *w, uint32_t promise)
{
	const struct weft_promise *p = &w->model->promises[promise];
	write_title(w, promise);
	add_row(w, WEFT_ROW_FACT, TEXT("id"), TEXT("%" PRId64, p->id));
	write_labels(w, p);
	write_site(w, p);
	write_ends(w, promise, p);
	write_times(w, promise);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
		write_section(w, promise, &sections[i]);
}

int weft_panel_fill_from(struct weft_rows *rows, const struct weft_panel_source *source, uint32_t promise, struct weft_error *err)
{
	struct writer all = {.source = source, .model = source->model, .to = rows}, *w = &all;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	if (promise != WEFT_SYSTEM && promise < source->model->promise_count)
		write_all(w, promise);
	else
		add_row(w, WEFT_ROW_NOTHING, TEXT("No promise"), TEXT("Point at a line or select one to see its details"));
	return weft__rows_end(rows, err);
}

int weft_panel_fill(struct weft_rows *rows, const struct weft_viewer *v, uint32_t promise, struct weft_error *err)
{
	const struct weft_panel_source source = {v->model, v->facts, &v->clock, v->selected};
	return weft_panel_fill_from(rows, &source, promise, err);
}

uint32_t weft_panel_subject(const struct weft_viewer *v)
{
	return v->hovered != WEFT_NONE ? v->hovered : v->selected;
}
