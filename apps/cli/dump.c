/* dump.c: implements weft dump: prints every promise, counter and pause of the model, one a line.  SPDX-License-Identifier: ISC
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "layout/layout.h"

struct dump {
	const struct weft_model *model;
	const struct weft_layout *layout;
	uint32_t (*links)[WEFT_LINK_KINDS]; /* number of links from each promise, by kind of link */
	/* Indices of links, grouped by promise: those of promise p are at [first_await[p], first_await[p + 1]). */
	uint32_t *awaits;
	uint32_t *first_await;
};

static void put_label(const struct dump *dump, const struct weft_label *label)
{
	cli_put("\"");
	cli_put_text(weft_model_text(dump->model, label->text));
	if (label->is_counter) {
		int64_t change = weft_model_change(dump->model, label);
		cli_put(change < 0 ? "" : "+");
		cli_put_int(change);
	}
	cli_put("\"");
}

/* Prints the recorded id of the promise with the given index, or null. */
static void put_id(const struct dump *dump, uint32_t promise)
{
	if (promise == WEFT_NONE)
		cli_put("null");
	else
		cli_put_int(dump->model->promises[promise].id);
}

/* Prints the name of a field of a JSON object. */
static void put_name(const char *name)
{
	cli_put(",\"");
	cli_put(name);
	cli_put("\":");
}

static void put_pair(int64_t first, int64_t second)
{
	cli_put("[");
	cli_put_int(first);
	cli_put(",");
	cli_put_int(second);
	cli_put("]");
}

/* Returns the actor to whose track the promise belongs. */
static uint32_t find_actor(const struct dump *dump, uint32_t promise)
{
	uint32_t track = dump->layout->track_of[promise];
	return track == WEFT_NONE ? WEFT_NONE : dump->layout->tracks[track].actor;
}

static void put_labels_json(const struct dump *dump, const struct weft_promise *p)
{
	const struct weft_model *model = dump->model;
	put_name("labels");
	cli_put("[");
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		cli_put(l > p->labels ? ",[" : "[");
		cli_put_int(model->labels[l].time_ns);
		cli_put(",");
		put_label(dump, &model->labels[l]);
		cli_put("]");
	}
	if (p->labels == p[1].labels) {
		/* A promise without a label is shown by its id, as in mirage-trace-viewer. */
		cli_put("[");
		cli_put_int(p->start_ns);
		cli_put(",\"");
		cli_put_int(p->id);
		cli_put("\"]");
	}
	cli_put("]");
}

static void put_links_json(const struct dump *dump, uint32_t i)
{
	put_name("links");
	for (int k = 0; k < WEFT_LINK_KINDS; k++) {
		cli_put(k > 0 ? ",\"" : "{\"");
		cli_put(cli_link_names[k]);
		cli_put("\":");
		cli_put_uint(dump->links[i][k]);
	}
	cli_put("}");
	put_name("awaits");
	cli_put("[");
	for (uint32_t a = dump->first_await[i]; a < dump->first_await[i + 1]; a++) {
		if (a > dump->first_await[i])
			cli_put(",");
		put_id(dump, dump->model->links[dump->awaits[a]].to);
	}
	cli_put("]");
}

static void put_callers_json(const struct weft_model *model, uint32_t promise)
{
	enum { MAX_CALLERS = 64 };
	uint32_t sites[MAX_CALLERS];
	size_t count = weft_trace_callers(model->trace, weft_model_callers(model, promise), sites, MAX_CALLERS);
	for (size_t i = 0; i < count && i < MAX_CALLERS; i++) {
		cli_put(i > 0 ? "," : ",\"callers\":[");
		cli_put_site_json(model->trace, sites[i]);
	}
	cli_put(count > 0 ? "]" : "");
}

static void put_promise_json(const struct dump *dump, uint32_t i)
{
	const struct weft_model *model = dump->model;
	const struct weft_promise *p = &model->promises[i];
	cli_put("{\"promise\":");
	cli_put_int(p->id);
	put_name("kind");
	cli_put_cstring(weft_model_kind_name(model, p->kind));
	put_name("start_ns");
	cli_put_int(p->start_ns);
	put_name("end_ns");
	cli_put_int(p->end_ns);
	put_name("end");
	cli_put_cstring(cli_end_names[p->end]);
	put_name("failure");
	if (p->failure == WEFT_NONE)
		cli_put("null");
	else
		cli_put_string(weft_model_text(model, p->failure));
	put_name("became");
	put_id(dump, p->became);
	put_name("created_by");
	put_id(dump, p->created_by);
	put_name("parent");
	put_id(dump, p->parent);
	put_name("creation_drawn");
	cli_put(p->flags & WEFT_PROMISE_CREATION_DRAWN ? "true" : "false");
	put_labels_json(dump, p);
	put_links_json(dump, i);
	put_name("running");
	cli_put("[");
	for (uint32_t r = p->runs; r < p[1].runs; r++) {
		if (r > p->runs)
			cli_put(",");
		put_pair(model->runs[r].start_ns, model->runs[r].end_ns);
	}
	cli_put("]");
	if (p->flags & WEFT_PROMISE_INFERRED) {
		put_name("inferred");
		cli_put("true");
	}
	put_name("row");
	if (dump->layout->rows[i] == WEFT_NONE)
		cli_put("null");
	else
		cli_put_uint(dump->layout->rows[i]);
	put_name("track");
	put_id(dump, find_actor(dump, i));
	put_name("site");
	cli_put_site_json(model->trace, p->site);
	put_callers_json(model, i);
	cli_put(",");
	cli_put_stream_json(model->trace, p->stream);
	cli_put("}\n");
}

static void put_count(const char *name, uint64_t count)
{
	cli_put("  ");
	cli_put(name);
	cli_put(" ");
	cli_put_uint(count);
}

static void put_promise(const struct dump *dump, uint32_t i)
{
	const struct weft_model *model = dump->model;
	const struct weft_promise *p = &model->promises[i];
	cli_put("promise ");
	cli_put_int(p->id);
	cli_put(" ");
	cli_put(weft_model_kind_name(model, p->kind));
	cli_put("  ");
	cli_put_seconds(p->start_ns);
	cli_put(" .. ");
	cli_put_seconds(p->end_ns);
	cli_put("  ");
	cli_put(p->flags & WEFT_PROMISE_NEVER_RESOLVED ? "never resolved" : cli_end_names[p->end]);
	if (p->end == WEFT_END_BECAME) {
		cli_put(" ");
		put_id(dump, p->became);
	}
	if (p->flags & WEFT_PROMISE_INFERRED)
		cli_put(" (inferred)");
	if (p->failure != WEFT_NONE && !(p->flags & WEFT_PROMISE_NEVER_RESOLVED)) {
		cli_put(" ");
		cli_put_string(weft_model_text(model, p->failure));
	}
	if (p->created_by != WEFT_NONE) {
		cli_put("  by ");
		put_id(dump, p->created_by);
	}
	if (p->parent != p->created_by && p->parent != WEFT_NONE) {
		cli_put(" under ");
		put_id(dump, p->parent);
	}
	if (dump->layout->rows[i] != WEFT_NONE)
		put_count("row", dump->layout->rows[i]);
	if (find_actor(dump, i) != WEFT_NONE) {
		cli_put("  track ");
		put_id(dump, find_actor(dump, i));
	}
	if (p[1].runs > p->runs) {
		put_count("ran", p[1].runs - p->runs);
		cli_put("x");
	}
	for (int k = 0; k < WEFT_LINK_KINDS; k++)
		if (dump->links[i][k] > 0)
			put_count(cli_link_names[k], dump->links[i][k]);
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		cli_put("  ");
		put_label(dump, &model->labels[l]);
	}
	cli_put_site(model->trace, p->site);
	if (i != WEFT_SYSTEM)
		cli_put_stream(model->trace, p->stream);
	cli_put("\n");
}

static void put_trace(const struct weft_model *model, bool json)
{
	const struct weft_trace_info *info = model->trace;
	if (json) {
		printf("{\"trace\":{\"format\":\"%s\",\"start_ns\":0,\"end_ns\":%" PRId64 ",\"events\":%" PRIu64
		       ",\"promises\":%zu,\"streams\":%zu,\"lost\":%" PRIu64 ",\"pid\":%" PRIu64,
		    info->format, model->end_ns, model->events, model->promise_count - 1, info->stream_count,
		    cli_count_lost(info), info->pid);
		put_name("host");
		cli_put_string(info->host);
		put_name("process");
		cli_put_string(info->process);
		put_name("start_utc_ns");
		if (info->has_origin)
			cli_put_int((int64_t)((uint64_t)info->clock_origin_ns + (uint64_t)model->start_ns));
		else
			cli_put("null");
		cli_put("}}\n");
	} else {
		printf("trace %s  0 .. ", info->format);
		cli_put_seconds(model->end_ns);
		printf("  events %" PRIu64 "  promises %zu  streams %zu  lost %" PRIu64 "\n", model->events,
		    model->promise_count - 1, info->stream_count, cli_count_lost(info));
	}
}

static void put_counter(const struct weft_counter *counter, bool json)
{
	if (json) {
		cli_put("{\"counter\":");
		cli_put_string(counter->name);
		put_name("values");
		cli_put("[");
		for (size_t i = 0; i < counter->count; i++) {
			if (i > 0)
				cli_put(",");
			put_pair(counter->samples[i].time_ns, counter->samples[i].value);
		}
		cli_put("]}\n");
	} else {
		cli_put("counter ");
		cli_put_string(counter->name);
		printf("  %zu values, %" PRId64 " .. %" PRId64, counter->count, counter->min, counter->max);
		if (counter->count > 0)
			printf(", last %" PRId64, counter->samples[counter->count - 1].value);
		cli_put("\n");
	}
}

static void put_pause(const struct weft_model *model, const struct weft_interval *pause, bool json)
{
	cli_put(json ? "{\"pause\":" : "pause ");
	cli_put_string(weft_model_text(model, pause->text));
	if (json) {
		put_name("start_ns");
		cli_put_int(pause->start_ns);
		put_name("end_ns");
		cli_put_int(pause->end_ns);
		cli_put("}\n");
	} else {
		cli_put("  ");
		cli_put_seconds(pause->start_ns);
		cli_put(" .. ");
		cli_put_seconds(pause->end_ns);
		cli_put("\n");
	}
}

static bool is_open(const struct weft_promise *p)
{
	return p->end == WEFT_END_PENDING || p->flags & WEFT_PROMISE_NEVER_RESOLVED;
}

/* Returns whether the link is an await that a pending promise still waits for at the trace's end. */
static bool is_waiting(const struct weft_model *model, const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT && is_open(&model->promises[link->from]) && is_open(&model->promises[link->to]) &&
	       weft_model_await_end(model, link) == INT64_MAX;
}

/* Returns false without memory. */
static bool find_awaits(struct dump *dump)
{
	const struct weft_model *model = dump->model;
	dump->first_await = calloc(model->promise_count + 2, sizeof *dump->first_await);
	dump->awaits = malloc((model->link_count + 1) * sizeof *dump->awaits);
	if (!dump->first_await || !dump->awaits)
		return false;
	/* The index of each list's start is shifted by two, so that filling the lists moves each start to its final place. */
	for (size_t l = 0; l < model->link_count; l++)
		if (is_waiting(model, &model->links[l]))
			dump->first_await[model->links[l].from + 2]++;
	for (size_t p = 2; p < model->promise_count + 2; p++)
		dump->first_await[p] += dump->first_await[p - 1];
	for (size_t l = 0; l < model->link_count; l++)
		if (is_waiting(model, &model->links[l]))
			dump->awaits[dump->first_await[model->links[l].from + 1]++] = (uint32_t)l;
	return true;
}

/* Returns false without memory. */
static bool put_model(const struct weft_model *model, const struct weft_layout *layout, bool json)
{
	struct dump dump = {.model = model, .layout = layout};
	dump.links = calloc(model->promise_count, sizeof *dump.links);
	bool ok = dump.links && find_awaits(&dump);
	if (ok) {
		for (size_t l = 0; l < model->link_count; l++)
			dump.links[model->links[l].from][model->links[l].kind]++;
		put_trace(model, json);
	}
	for (uint32_t i = 0; ok && i < model->promise_count && cli_stdout_ok(); i++)
		(json ? put_promise_json : put_promise)(&dump, i);
	for (size_t c = 0; ok && c < model->counter_count; c++)
		put_counter(&model->counters[c], json);
	for (size_t p = 0; ok && p < model->pause_count; p++)
		put_pause(model, &model->pauses[p], json);
	free(dump.links);
	free(dump.awaits);
	free(dump.first_await);
	return ok;
}

int cli_dump(struct cli_args *args)
{
	bool json = false, no_simplify = false, parts = false;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"no-simplify", 0, CLI_FLAG, &no_simplify, NULL, "start each bind at its creation, not at its first read"},
	    CLI_OPTION_PARTS(&parts),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;

	struct cli_input input;
	exit = cli_open_model(&input, args, (no_simplify ? CLI_KEEP_BINDS : 0) | (parts ? CLI_KEEP_PARTS : 0));
	if (exit >= 0)
		return exit;
	struct weft_layout *layout = NULL;
	struct weft_error err;
	if (weft_layout_create(&layout, input.model, &err) < 0)
		exit = cli_fail_error(&err);
	else if (!put_model(input.model, layout, json))
		exit = cli_fail("%s: %s", input.name, weft_status_string(WEFT_ENOMEM));
	else
		exit = cli_finish(CLI_OK);
	weft_layout_destroy(layout);
	cli_close(&input);
	return exit;
}
