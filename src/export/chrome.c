/* chrome.c: writes a model in the trace event format of Chrome's old tracing page, which many tools read
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
 *
 * Promises are asynchronous slices, each with an id of its own, because slices with the same id must not overlap.  Runs of
 * promises are slices on the tracks of threads.  Arrows are left out, because the format's arrows only connect runs; perfetto.c
 * writes all arrows.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/budget.h"
#include "export/json.h"
#include "model/kernel.h"

enum { NAME_BYTES = 320 };

struct writer {
	const struct weft_model *model;
	struct weft__json json;
	bool has_begun;
};

static struct weft_str str_of(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

static void put_field(struct writer *w, const char *name, struct weft_str text)
{
	weft__json_format(&w->json, ",\"%s\":", name);
	weft__json_string(&w->json, text);
}

static void put_time(struct writer *w, const char *name, int64_t ns)
{
	enum { NS_OF_US = 3 }; /* decimals */
	weft__json_format(&w->json, ",\"%s\":", name);
	weft__json_fraction(&w->json, ns, NS_OF_US);
}

/* ---- Events ---- */

static uint64_t pid_of(const struct weft_trace_info *info, uint32_t part)
{
	const uint64_t pid = part < info->part_count ? info->parts[part].pid : info->pid;
	return pid ? pid : 1 + part;
}

static void begin_event(struct writer *w, char phase, uint64_t pid, uint64_t tid)
{
	weft__json_flush(&w->json, false);
	weft__json_format(
	    &w->json, "%s{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64, w->has_begun ? ",\n" : "", phase, pid, tid);
	w->has_begun = true;
}

static void end_event(struct writer *w)
{
	weft__json_format(&w->json, "}");
}

/* Begins an event on a stream, with the ids of its process and thread.  If the tid of a thread is unknown, the thread gets a
 * number that no thread has. */
static void begin_on(struct writer *w, char phase, size_t stream)
{
	const struct weft_trace_info *info = w->model->trace;
	const uint32_t part = stream < info->stream_count ? info->streams[stream].part : 0;
	const uint64_t tid =
	    stream < info->stream_count && info->streams[stream].tid ? info->streams[stream].tid : (UINT64_C(1) << 30) + stream;
	begin_event(w, phase, pid_of(info, part), tid);
}

static void put_meta(struct writer *w, const char *what, struct weft_str name)
{
	weft__json_format(&w->json, ",\"name\":\"%s\",\"args\":{\"name\":", what);
	weft__json_string(&w->json, name);
	weft__json_format(&w->json, "}");
	end_event(w);
}

static void put_names(struct writer *w)
{
	const struct weft_trace_info *info = w->model->trace;
	for (uint32_t i = 0; i < (info->part_count ? info->part_count : 1); i++) {
		const struct weft_str name = i < info->part_count ? info->parts[i].process : info->process;
		begin_event(w, 'M', pid_of(info, i), 0);
		put_meta(w, "process_name", name.len ? name : str_of("traced program"));
	}
	for (size_t i = 0; i < info->stream_count; i++)
		if (info->streams[i].name.len) {
			begin_on(w, 'M', i);
			put_meta(w, "thread_name", info->streams[i].name);
		}
}

static void put_name(struct writer *w, uint32_t promise)
{
	const uint32_t text = weft_model_name_text(w->model, promise);
	char name[NAME_BYTES];
	if (text == WEFT_NONE)
		weft_model_name(w->model, promise, name, sizeof name);
	put_field(w, "name", text != WEFT_NONE ? weft_model_text(w->model, text) : str_of(name));
}

/* Begins an event of a promise: the promise's start, its end, or a label. */
static void begin_of_promise(struct writer *w, char phase, uint32_t promise, int64_t time_ns)
{
	const struct weft_promise *p = &w->model->promises[promise];
	begin_on(w, phase, p->stream);
	weft__json_format(&w->json, ",\"cat\":\"promise\",\"id2\":{\"local\":\"0x%" PRIx64 "\"}", (uint64_t)p->id);
	put_time(w, "ts", time_ns);
}

static void put_promise(struct writer *w, uint32_t promise)
{
	const struct weft_model *m = w->model;
	const struct weft_promise *p = &m->promises[promise];
	begin_of_promise(w, 'b', promise, p->start_ns);
	put_name(w, promise);
	weft__json_format(&w->json, ",\"args\":{\"promise\":%" PRId64, p->id);
	put_field(w, "kind", str_of(weft_model_kind_name(m, p->kind)));
	if (p->failure != WEFT_NONE)
		put_field(w, "error", weft_model_text(m, p->failure));
	if (p->created_by != WEFT_NONE)
		weft__json_format(&w->json, ",\"created by\":%" PRId64, m->promises[p->created_by].id);
	if (p->site != WEFT_NONE) {
		char site[NAME_BYTES];
		weft_site_format(&m->trace->sites[p->site], site, sizeof site);
		put_field(w, "site", str_of(site));
	}
	weft__json_format(&w->json, "}");
	end_event(w);
	for (uint32_t l = p->labels; l < p[1].labels; l++)
		if (!m->labels[l].is_counter && m->labels[l].text != weft_model_name_text(m, promise)) {
			begin_of_promise(w, 'n', promise, m->labels[l].time_ns);
			put_field(w, "name", weft_model_text(m, m->labels[l].text));
			end_event(w);
		}
	if (p->end != WEFT_END_PENDING) {
		begin_of_promise(w, 'e', promise, p->end_ns);
		put_name(w, promise);
		end_event(w);
	}
	for (uint32_t r = p->runs; r < p[1].runs; r++) {
		begin_on(w, 'X', m->run_streams ? m->run_streams[r] : 0);
		put_field(w, "cat", str_of("run"));
		put_time(w, "ts", m->runs[r].start_ns);
		put_time(w, "dur", m->runs[r].end_ns - m->runs[r].start_ns);
		put_name(w, promise);
		weft__json_format(&w->json, ",\"args\":{\"promise\":%" PRId64 "}", p->id);
		end_event(w);
	}
}

/* A pause may start in one run and end in another run, so it is written as an asynchronous slice too. */
static void put_pauses(struct writer *w)
{
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->pause_count && !weft__json_has_trouble(&w->json); i++)
		for (int end = 0; end < 2; end++) {
			begin_on(w, end ? 'e' : 'b', m->pauses[i].stream);
			weft__json_format(&w->json, ",\"cat\":\"pause\",\"id2\":{\"local\":\"0x%zx\"}", i);
			put_time(w, "ts", end ? m->pauses[i].end_ns : m->pauses[i].start_ns);
			put_field(w, "name", weft_model_text(m, m->pauses[i].text));
			end_event(w);
		}
}

static void put_counters(struct writer *w)
{
	const struct weft_model *m = w->model;
	for (size_t i = 0; i < m->counter_count; i++)
		for (size_t s = 0; s < m->counters[i].count && !weft__json_has_trouble(&w->json); s++) {
			begin_event(w, 'C', pid_of(m->trace, 0), 0);
			put_time(w, "ts", m->counters[i].samples[s].time_ns);
			put_field(w, "name", m->counters[i].name);
			weft__json_format(&w->json, ",\"args\":{\"value\":%" PRId64 "}", m->counters[i].samples[s].value);
			end_event(w);
		}
}

int weft_export_chrome(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err)
{
	struct writer w = {
	    .model = model, .json = {.write = write, .write_ctx = write_ctx, .budget = weft__export_budget(trace)}};
	weft__json_format(&w.json, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	put_names(&w);
	for (uint32_t p = 0; p < model->promise_count && !weft__json_has_trouble(&w.json); p++)
		if (p != WEFT_SYSTEM)
			put_promise(&w, p);
	put_pauses(&w);
	put_counters(&w);
	weft__json_format(&w.json, "\n]}\n");
	w.json.losses.counts[WEFT_LOSS_LINK] += model->link_count;
	w.json.losses.counts[WEFT_LOSS_SLEEP] += model->sleep_count;
	w.json.losses.counts[WEFT_LOSS_KERNEL] += model->kernel ? model->kernel->off_count : 0;
	return weft__json_end(&w.json, losses, err);
}
