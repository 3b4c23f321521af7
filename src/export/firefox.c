/* firefox.c: writes the stack samples of a model for profiler.firefox.com.
 *
 * The format is the profiler's own ("processed profile") in version 48, which later versions convert when they open it
 * (https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md).  Each thread has tables of its
 * own: a sample refers to a stack, a stack to its caller and a frame, a frame to a function, and a function to texts.  Runs of
 * promises are markers.  The format has no promises that do not run, links and counters of promises.  SPDX-License-Identifier:
 * ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "export/budget.h"
#include "export/json.h"
#include "model/kernel.h"
#include "wire/profile.h"

enum { NAME_BYTES = 320, MS_DECIMALS = 6, FORMAT_VERSION = 48, RECORDER_VERSION = 27 };
enum category { CATEGORY_PROGRAM, CATEGORY_LIBRARY };

/* A function of the thread that is being written; sites in one function share it. */
struct function {
	uint32_t site;
};

struct writer {
	const struct weft_model *model;
	struct weft__json json;
	/* Tables of a thread: the number in the thread of each stack and site that its samples have, else WEFT_NONE. */
	uint32_t *stack_of, *site_of, *function_of; /* function_of: by site */
	uint32_t *stacks, *sites;                   /* by number in the thread */
	size_t stack_count, site_count;
	WEFT_VEC(struct function) functions;
	struct weft_intern names; /* keys of the functions */
	WEFT_VEC(char *) owned;   /* texts of `names` */
};

static struct weft_str str_of(const char *text)
{
	return (struct weft_str){text, (uint32_t)strlen(text)};
}

static void put(struct writer *w, const char *text)
{
	weft__json_format(&w->json, "%s", text);
}

/* Begins an item of a list. */
static void put_comma(struct writer *w, size_t index)
{
	if (index)
		put(w, ",");
	weft__json_flush(&w->json, false);
}

/* ---- Tables of a thread ---- */

static const struct weft_site *get_site(const struct writer *w, uint32_t number)
{
	return &w->model->trace->sites[w->sites[number]];
}

/* Finds the function of a site, which is added if it is new.  Returns false without memory. */
static bool find_function(struct writer *w, uint32_t index)
{
	struct weft_site function = w->model->trace->sites[index];
	char name[NAME_BYTES];
	function.line = 0;
	weft_site_format(&function, name, sizeof name);
	char **slot = weft_vec_push(&w->owned), *copy = slot ? strdup(name) : NULL;
	if (slot)
		*slot = copy;
	const size_t known = w->names.texts.count;
	const uint32_t number = copy ? weft_intern(&w->names, str_of(copy)) : WEFT_INTERN_FAILED;
	if (number == WEFT_INTERN_FAILED)
		return false;
	w->function_of[index] = number;
	struct function *added = number == known ? weft_vec_push(&w->functions) : NULL;
	if (added)
		added->site = index;
	return added || number < known;
}

/* Collects the stacks, sites and functions that the samples of a thread have. */
static bool find_tables(struct writer *w, const struct weft_stack_sample *samples, size_t count)
{
	const struct weft_trace_info *info = w->model->trace;
	memset(w->stack_of, 0xff, info->profile.stack_count * sizeof *w->stack_of);
	memset(w->site_of, 0xff, info->site_count * sizeof *w->site_of);
	for (size_t i = 0; i < count; i++)
		for (uint32_t at = samples[i].stack; at != WEFT_NO_STACK && w->stack_of[at] == WEFT_NONE;
		     at = info->profile.stacks[at].caller)
			w->stack_of[at] = 0;
	w->stack_count = w->site_count = w->functions.count = 0;
	bool ok = true;
	/* A caller has a lower number than the stacks above it. */
	for (uint32_t i = 0; ok && i < info->profile.stack_count; i++) {
		const uint32_t site = info->profile.stacks[i].site;
		if (w->stack_of[i] == WEFT_NONE)
			continue;
		w->stacks[w->stack_count] = i;
		w->stack_of[i] = (uint32_t)w->stack_count++;
		if (w->site_of[site] != WEFT_NONE)
			continue;
		w->sites[w->site_count] = site;
		w->site_of[site] = (uint32_t)w->site_count++;
		ok = find_function(w, site);
	}
	return ok;
}

static void free_names(struct writer *w)
{
	for (size_t i = 0; i < w->owned.count; i++)
		free(w->owned.items[i]);
	w->owned.count = 0;
	weft_intern_finish(&w->names);
	w->names = (struct weft_intern){0};
}

/* Writes a column of a table: `value` returns each item, or -1 for null. */
static void put_column(struct writer *w, const char *name, size_t count, int64_t (*value)(const struct writer *, uint32_t))
{
	weft__json_format(&w->json, "\"%s\":[", name);
	for (uint32_t i = 0; i < count; i++) {
		const int64_t item = value(w, i);
		put_comma(w, i);
		if (item < 0)
			put(w, "null");
		else
			weft__json_format(&w->json, "%" PRId64, item);
	}
	put(w, "],");
}

static void put_length(struct writer *w, size_t count)
{
	weft__json_format(&w->json, "\"length\":%zu},", count);
}

static int64_t get_nothing(const struct writer *w, uint32_t i)
{
	(void)w;
	(void)i;
	return -1;
}

static int64_t get_zero(const struct writer *w, uint32_t i)
{
	(void)w;
	(void)i;
	return 0;
}

static int64_t get_caller(const struct writer *w, uint32_t i)
{
	const uint32_t caller = w->model->trace->profile.stacks[w->stacks[i]].caller;
	return caller == WEFT_NO_STACK ? -1 : (int64_t)w->stack_of[caller];
}

static int64_t get_frame(const struct writer *w, uint32_t i)
{
	return w->site_of[w->model->trace->profile.stacks[w->stacks[i]].site];
}

static int64_t get_category(const struct writer *w, uint32_t i)
{
	const struct weft_site *site = get_site(w, (uint32_t)get_frame(w, i));
	return site->module && site->module->role == WEFT_PROFILE_LIBRARY ? CATEGORY_LIBRARY : CATEGORY_PROGRAM;
}

static int64_t get_function(const struct writer *w, uint32_t i)
{
	return w->function_of[w->sites[i]];
}

static int64_t get_line(const struct writer *w, uint32_t i)
{
	const uint32_t line = get_site(w, i)->line;
	return line ? (int64_t)line : -1;
}

/* The texts of function i are its name, 2 i, and its file, 2 i + 1. */
static int64_t get_name(const struct writer *w, uint32_t i)
{
	(void)w;
	return 2 * (int64_t)i;
}

static int64_t get_file(const struct writer *w, uint32_t i)
{
	return w->model->trace->sites[w->functions.items[i].site].file.len ? 2 * (int64_t)i + 1 : -1;
}

static void put_tables(struct writer *w)
{
	const size_t functions = w->functions.count;
	put(w, "\"stackTable\":{");
	put_column(w, "prefix", w->stack_count, get_caller);
	put_column(w, "frame", w->stack_count, get_frame);
	put_column(w, "category", w->stack_count, get_category);
	put_column(w, "subcategory", w->stack_count, get_zero);
	put_length(w, w->stack_count);
	put(w, "\"frameTable\":{");
	put_column(w, "func", w->site_count, get_function);
	put_column(w, "line", w->site_count, get_line);
	put_column(w, "column", w->site_count, get_nothing);
	put_column(w, "category", w->site_count, get_nothing);
	put_column(w, "subcategory", w->site_count, get_nothing);
	put_column(w, "nativeSymbol", w->site_count, get_nothing);
	put_column(w, "innerWindowID", w->site_count, get_nothing);
	put_column(w, "implementation", w->site_count, get_nothing);
	put_column(w, "inlineDepth", w->site_count, get_zero);
	put(w, "\"address\":[");
	for (size_t i = 0; i < w->site_count; i++) {
		put_comma(w, i);
		put(w, "-1");
	}
	put(w, "],");
	put_length(w, w->site_count);
	put(w, "\"funcTable\":{");
	put_column(w, "name", functions, get_name);
	put_column(w, "fileName", functions, get_file);
	put_column(w, "lineNumber", functions, get_nothing);
	put_column(w, "columnNumber", functions, get_nothing);
	static const char *const constants[][2] = {{"isJS", "false"}, {"relevantForJS", "false"}, {"resource", "-1"}};
	for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
		weft__json_format(&w->json, "\"%s\":[", constants[c][0]);
		for (size_t i = 0; i < functions; i++) {
			put_comma(w, i);
			put(w, constants[c][1]);
		}
		put(w, "],");
	}
	put_length(w, functions);
}

static void put_function_texts(struct writer *w)
{
	char name[NAME_BYTES];
	for (size_t i = 0; i < w->functions.count; i++) {
		const struct weft_site *site = &w->model->trace->sites[w->functions.items[i].site];
		put_comma(w, i);
		if (!site->function.len)
			weft_site_format(site, name, sizeof name);
		weft__json_string(&w->json, site->function.len ? site->function : str_of(name));
		put(w, ",");
		weft__json_string(&w->json, site->file);
	}
}

/* ---- Threads ---- */

static void put_samples(struct writer *w, const struct weft_stack_sample *samples, size_t count)
{
	put(w, "\"samples\":{\"weightType\":\"samples\",\"weight\":null,\"stack\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		weft__json_format(&w->json, "%" PRIu32, w->stack_of[samples[i].stack]);
	}
	put(w, "],\"time\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		weft__json_fraction(&w->json, samples[i].time_ns, MS_DECIMALS);
	}
	put(w, "],");
	put_length(w, count);
}

/* A run of a promise, which is written as a marker. */
struct marker {
	uint32_t run, promise;
};

/* Lists the runs of the promises on a thread. */
static bool find_markers(const struct weft_model *m, uint16_t stream, struct marker **out, size_t *count)
{
	struct marker *markers = malloc((m->run_count + 1) * sizeof *markers);
	*count = 0;
	for (uint32_t p = 0; markers && p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; p != WEFT_SYSTEM && r < m->promises[p + 1].runs; r++)
			if ((m->run_streams ? m->run_streams[r] : 0) == stream)
				markers[(*count)++] = (struct marker){r, p};
	*out = markers;
	return markers != NULL;
}

static void put_markers(struct writer *w, const struct marker *markers, size_t count)
{
	const struct weft_model *m = w->model;
	const size_t first_text = 2 * w->functions.count;
	enum { INTERVAL = 1 }; /* phase of a marker with two times */
	put(w, "\"markers\":{\"name\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		weft__json_format(&w->json, "%zu", first_text + i);
	}
	for (int end = 0; end < 2; end++) {
		put(w, end ? "],\"endTime\":[" : "],\"startTime\":[");
		for (size_t i = 0; i < count; i++) {
			const struct weft_run *run = &m->runs[markers[i].run];
			put_comma(w, i);
			weft__json_fraction(&w->json, end ? run->end_ns : run->start_ns, MS_DECIMALS);
		}
	}
	put(w, "],\"phase\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		weft__json_format(&w->json, "%d", INTERVAL);
	}
	put(w, "],\"category\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		put(w, "0");
	}
	put(w, "],\"data\":[");
	for (size_t i = 0; i < count; i++) {
		put_comma(w, i);
		weft__json_format(&w->json, "{\"type\":\"promise\",\"id\":%" PRId64 "}", m->promises[markers[i].promise].id);
	}
	put(w, "],");
	put_length(w, count);
}

static void put_thread(struct writer *w, uint16_t stream, const struct weft_stack_sample *samples, size_t count)
{
	const struct weft_trace_info *info = w->model->trace;
	const struct weft_stream_info *s = &info->streams[stream];
	const bool is_part = s->part < info->part_count;
	const struct weft_str process = is_part ? info->parts[s->part].process : info->process;
	const uint64_t pid = is_part ? info->parts[s->part].pid : info->pid;
	struct marker *markers = NULL;
	size_t marker_count;
	char name[NAME_BYTES];
	if (!find_markers(w->model, stream, &markers, &marker_count) || !find_tables(w, samples, count)) {
		w->json.no_memory = true;
		free(markers);
		free_names(w);
		return;
	}
	put(w, "{\"name\":");
	weft__json_string(&w->json, s->name.len ? s->name : str_of("thread"));
	put(w, ",\"processName\":");
	weft__json_string(&w->json, process.len ? process : str_of("traced program"));
	weft__json_format(&w->json,
	    ",\"pid\":\"%" PRIu64 "\",\"tid\":%" PRIu64
	    ",\"isMainThread\":%s,\"processType\":\"default\",\"processStartupTime\":0,"
	    "\"processShutdownTime\":null,",
	    pid, s->tid, s->tid == pid ? "true" : "false");
	put(w, "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],");
	put_samples(w, samples, count);
	put_tables(w);
	put_markers(w, markers, marker_count);
	put(w, "\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],\"type\":[],\"length\":0},");
	put(w, "\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0},");
	put(w, "\"stringArray\":[");
	put_function_texts(w);
	for (size_t i = 0; i < marker_count; i++) {
		put_comma(w, 2 * w->functions.count + i);
		weft_model_name(w->model, markers[i].promise, name, sizeof name);
		weft__json_string(&w->json, str_of(name));
	}
	put(w, "]}");
	free(markers);
	free_names(w);
}

/* ---- Whole profile ---- */

static void put_meta(struct writer *w)
{
	const struct weft_trace_info *info = w->model->trace;
	put(w, "{\"meta\":{\"interval\":");
	weft__json_fraction(&w->json, info->profile.period_ns > 0 ? info->profile.period_ns : 1000000, MS_DECIMALS);
	put(w, ",\"startTime\":");
	weft__json_fraction(&w->json, info->has_origin ? info->clock_origin_ns + w->model->start_ns : 0, MS_DECIMALS);
	put(w, ",\"product\":");
	weft__json_string(&w->json, info->process.len ? info->process : str_of("traced program"));
	weft__json_format(&w->json, ",\"importedFrom\":\"weft\",\"version\":%d,\"preprocessedProfileVersion\":%d,",
	    RECORDER_VERSION, FORMAT_VERSION);
	put(w,
	    "\"processType\":0,\"stackwalk\":1,\"symbolicated\":true,\"debug\":false,\"abi\":\"\",\"misc\":\"\",\"oscpu\":\"\",");
	put(w, "\"platform\":\"\",\"toolkit\":\"\",\"appBuildID\":\"\",\"sourceURL\":\"\",\"physicalCPUs\":0,\"logicalCPUs\":0,");
	put(w, "\"extensions\":{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0},\"categories\":[");
	put(w, "{\"name\":\"Program\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},");
	put(w, "{\"name\":\"Library\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],");
	put(w, "\"markerSchema\":[{\"name\":\"promise\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],");
	put(w, "\"data\":[{\"key\":\"id\",\"label\":\"Promise\",\"format\":\"integer\"}]}]},\n");
	put(w, "\"libs\":[],\"pages\":[],\"threads\":[\n");
}

static void put_threads(struct writer *w)
{
	size_t written = 0;
	for (size_t i = 0; i < w->model->trace->stream_count && !weft__json_has_trouble(&w->json); i++) {
		size_t count;
		const struct weft_stack_sample *samples = weft_model_samples(w->model, (uint16_t)i, 0, INT64_MAX, &count);
		if (!count)
			continue;
		if (written++)
			put(w, ",\n");
		put_thread(w, (uint16_t)i, samples, count);
	}
}

int weft_export_firefox(const struct weft_trace *trace, const struct weft_model *model, weft_export_write_fn *write,
    void *write_ctx, struct weft_losses *losses, struct weft_error *err)
{
	const struct weft_trace_info *info = model->trace;
	const size_t stacks = info->profile.stack_count, sites = info->site_count;
	struct writer w = {.model = model,
	    .json = {.write = write, .write_ctx = write_ctx, .budget = weft__export_budget(trace)},
	    .stack_of = malloc((stacks + 1) * sizeof *w.stack_of),
	    .site_of = malloc((sites + 1) * sizeof *w.site_of),
	    .function_of = malloc((sites + 1) * sizeof *w.function_of),
	    .stacks = malloc((stacks + 1) * sizeof *w.stacks),
	    .sites = malloc((sites + 1) * sizeof *w.sites)};
	w.json.no_memory = !w.stack_of || !w.site_of || !w.function_of || !w.stacks || !w.sites;
	if (!w.json.no_memory) {
		put_meta(&w);
		put_threads(&w);
		put(&w, "\n]}\n");
	}
	w.json.losses.counts[WEFT_LOSS_LINK] = model->link_count;
	w.json.losses.counts[WEFT_LOSS_SLEEP] = model->sleep_count;
	w.json.losses.counts[WEFT_LOSS_KERNEL] = model->kernel ? model->kernel->off_count : 0;
	free(w.stack_of);
	free(w.site_of);
	free(w.function_of);
	free(w.stacks);
	free(w.sites);
	weft_vec_free(&w.functions);
	weft_vec_free(&w.owned);
	return weft__json_end(&w.json, losses, err);
}
