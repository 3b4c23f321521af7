/* dump.c: weft dump: every promise, counter and pause as the model has it, a line each.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "layout/layout.h"

static const char *const end_names[] = {
    [WEFT_END_PENDING] = "pending",
    [WEFT_END_RESOLVED] = "resolved",
    [WEFT_END_FAILED] = "failed",
    [WEFT_END_BECAME] = "became",
};
static const char *const link_names[WEFT_LINK_KINDS] = {
    [WEFT_LINK_RESOLVE] = "resolve",
    [WEFT_LINK_READ] = "read",
    [WEFT_LINK_AWAIT] = "await",
    [WEFT_LINK_SIGNAL] = "signal",
};

struct dump {
	const struct weft_model *model;
	const struct weft_layout *layout;
	uint32_t (*links)[WEFT_LINK_KINDS]; /* by promise: how often it did this to others */
	uint32_t *awaits;                   /* numbers of links, by promise, [first_await[p], first_await[p + 1]) */
	uint32_t *first_await;
	char *text; /* a label */
	size_t text_size;
};

/* A label's text, whatever its length; false when out of memory. */
static bool get_label(struct dump *dump, const struct weft_label *label, struct weft_str *out)
{
	size_t length = weft_model_label(dump->model, label, dump->text, dump->text_size);
	if (length >= dump->text_size) {
		char *grown = realloc(dump->text, length + 1);
		if (!grown)
			return false;
		dump->text = grown;
		dump->text_size = length + 1;
		weft_model_label(dump->model, label, dump->text, dump->text_size);
	}
	*out = (struct weft_str){dump->text, (uint32_t)length};
	return true;
}

/* The recorded id of a promise by its index, or null. */
static void put_id(const struct dump *dump, uint32_t promise)
{
	if (promise == WEFT_NONE)
		fputs("null", stdout);
	else
		printf("%" PRId64, dump->model->promises[promise].id);
}

static bool put_promise_json(struct dump *dump, uint32_t i)
{
	const struct weft_model *model = dump->model;
	const struct weft_promise *p = &model->promises[i];
	printf("{\"promise\":%" PRId64 ",\"kind\":", p->id);
	cli_put_cstring(weft_model_kind_name(model, p->kind));
	printf(",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"end\":\"%s\"", p->start_ns, p->end_ns, end_names[p->end]);
	fputs(",\"failure\":", stdout);
	if (p->failure == WEFT_NONE)
		fputs("null", stdout);
	else
		cli_put_string(weft_model_text(model, p->failure));
	fputs(",\"became\":", stdout);
	put_id(dump, p->became);
	fputs(",\"created_by\":", stdout);
	put_id(dump, p->created_by);
	fputs(",\"parent\":", stdout);
	put_id(dump, p->parent);
	printf(",\"creation_drawn\":%s,\"labels\":[", p->flags & WEFT_PROMISE_CREATION_DRAWN ? "true" : "false");
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		struct weft_str text;
		if (!get_label(dump, &model->labels[l], &text))
			return false;
		printf("%s[%" PRId64 ",", l > p->labels ? "," : "", model->labels[l].time_ns);
		cli_put_string(text);
		putchar(']');
	}
	if (p->labels == p[1].labels) {
		/* What has no label is called by its id, as mirage-trace-viewer has it. */
		printf("[%" PRId64 ",\"%" PRId64 "\"]", p->start_ns, p->id);
	}
	fputs("],\"links\":{", stdout);
	for (int k = 0; k < WEFT_LINK_KINDS; k++)
		printf("%s\"%s\":%" PRIu32, k > 0 ? "," : "", link_names[k], dump->links[i][k]);
	fputs("},\"awaits\":[", stdout);
	const char *comma = "";
	for (uint32_t a = dump->first_await[i]; a < dump->first_await[i + 1]; a++) {
		fputs(comma, stdout);
		put_id(dump, model->links[dump->awaits[a]].to);
		comma = ",";
	}
	fputs("],\"running\":[", stdout);
	for (uint32_t r = p->runs; r < p[1].runs; r++)
		printf("%s[%" PRId64 ",%" PRId64 "]", r > p->runs ? "," : "", model->runs[r].start_ns, model->runs[r].end_ns);
	fputs("],\"row\":", stdout);
	if (dump->layout->rows[i] == WEFT_NONE)
		fputs("null", stdout);
	else
		printf("%" PRIu32, dump->layout->rows[i]);
	fputs(",\"site\":", stdout);
	cli_put_site_json(model->trace, p->site);
	putchar(',');
	cli_put_stream_json(model->trace, p->stream);
	fputs("}\n", stdout);
	return true;
}

static bool put_promise(struct dump *dump, uint32_t i)
{
	const struct weft_model *model = dump->model;
	const struct weft_promise *p = &model->promises[i];
	printf("promise %" PRId64 " %s  ", p->id, weft_model_kind_name(model, p->kind));
	cli_put_seconds(p->start_ns);
	fputs(" .. ", stdout);
	cli_put_seconds(p->end_ns);
	printf("  %s", p->flags & WEFT_PROMISE_NEVER_RESOLVED ? "never resolved" : end_names[p->end]);
	if (p->end == WEFT_END_BECAME) {
		putchar(' ');
		put_id(dump, p->became);
	}
	if (p->failure != WEFT_NONE && !(p->flags & WEFT_PROMISE_NEVER_RESOLVED)) {
		putchar(' ');
		cli_put_string(weft_model_text(model, p->failure));
	}
	if (p->created_by != WEFT_NONE) {
		fputs("  by ", stdout);
		put_id(dump, p->created_by);
	}
	if (p->parent != p->created_by && p->parent != WEFT_NONE) {
		fputs(" under ", stdout);
		put_id(dump, p->parent);
	}
	if (dump->layout->rows[i] != WEFT_NONE)
		printf("  row %" PRIu32, dump->layout->rows[i]);
	if (p[1].runs > p->runs)
		printf("  ran %" PRIu32 "x", p[1].runs - p->runs);
	for (int k = 0; k < WEFT_LINK_KINDS; k++)
		if (dump->links[i][k] > 0)
			printf("  %s %" PRIu32, link_names[k], dump->links[i][k]);
	for (uint32_t l = p->labels; l < p[1].labels; l++) {
		struct weft_str text;
		if (!get_label(dump, &model->labels[l], &text))
			return false;
		fputs("  ", stdout);
		cli_put_string(text);
	}
	cli_put_site(model->trace, p->site);
	if (i != WEFT_SYSTEM)
		cli_put_stream(model->trace, p->stream);
	putchar('\n');
	return true;
}

static void put_trace(const struct weft_model *model, bool json)
{
	const struct weft_trace_info *info = model->trace;
	if (json) {
		printf("{\"trace\":{\"format\":\"%s\",\"start_ns\":0,\"end_ns\":%" PRId64 ",\"events\":%" PRIu64
		       ",\"promises\":%zu,\"streams\":%zu,\"lost\":%" PRIu64 "}}\n",
		    info->format, model->end_ns, model->events, model->promise_count - 1, info->stream_count, cli_lost(info));
	} else {
		printf("trace %s  0 .. ", info->format);
		cli_put_seconds(model->end_ns);
		printf("  events %" PRIu64 "  promises %zu  streams %zu  lost %" PRIu64 "\n", model->events,
		    model->promise_count - 1, info->stream_count, cli_lost(info));
	}
}

static void put_counter(const struct weft_counter *counter, bool json)
{
	if (json) {
		fputs("{\"counter\":", stdout);
		cli_put_string(counter->name);
		fputs(",\"values\":[", stdout);
		for (size_t i = 0; i < counter->count; i++)
			printf("%s[%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", counter->samples[i].time_ns,
			    counter->samples[i].value);
		fputs("]}\n", stdout);
	} else {
		fputs("counter ", stdout);
		cli_put_string(counter->name);
		printf("  %zu values, %" PRId64 " .. %" PRId64, counter->count, counter->min, counter->max);
		if (counter->count > 0)
			printf(", last %" PRId64, counter->samples[counter->count - 1].value);
		putchar('\n');
	}
}

static void put_pause(const struct weft_model *model, const struct weft_stretch *pause, bool json)
{
	struct weft_str text = weft_model_text(model, pause->text);
	fputs(json ? "{\"pause\":" : "pause ", stdout);
	cli_put_string(text);
	if (json) {
		printf(",\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 "}\n", pause->start_ns, pause->end_ns);
	} else {
		fputs("  ", stdout);
		cli_put_seconds(pause->start_ns);
		fputs(" .. ", stdout);
		cli_put_seconds(pause->end_ns);
		putchar('\n');
	}
}

static bool is_open(const struct weft_promise *p)
{
	return p->end == WEFT_END_PENDING || p->flags & WEFT_PROMISE_NEVER_RESOLVED;
}

/* At the end, a pending promise still waits for what it awaited and is pending. */
static bool is_waiting(const struct weft_model *model, const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT && is_open(&model->promises[link->from]) && is_open(&model->promises[link->to]);
}

/* False when out of memory. */
static bool find_awaits(struct dump *dump)
{
	const struct weft_model *model = dump->model;
	dump->first_await = calloc(model->promise_count + 2, sizeof *dump->first_await);
	dump->awaits = malloc((model->link_count + 1) * sizeof *dump->awaits);
	if (!dump->first_await || !dump->awaits)
		return false;
	/* Shifted by two, so that placing them leaves each count where it belongs. */
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

/* False when out of memory. */
static bool put_model(const struct weft_model *model, const struct weft_layout *layout, bool json)
{
	struct dump dump = {.model = model, .layout = layout, .text_size = 256};
	dump.text = malloc(dump.text_size);
	dump.links = calloc(model->promise_count, sizeof *dump.links);
	bool ok = dump.text && dump.links && find_awaits(&dump);
	if (ok) {
		for (size_t l = 0; l < model->link_count; l++)
			dump.links[model->links[l].from][model->links[l].kind]++;
		put_trace(model, json);
	}
	for (uint32_t i = 0; ok && i < model->promise_count && cli_stdout_ok(); i++)
		ok = (json ? put_promise_json : put_promise)(&dump, i);
	for (size_t c = 0; ok && c < model->counter_count; c++)
		put_counter(&model->counters[c], json);
	for (size_t p = 0; ok && p < model->pause_count; p++)
		put_pause(model, &model->pauses[p], json);
	free(dump.text);
	free(dump.links);
	free(dump.awaits);
	free(dump.first_await);
	return ok;
}

int cli_dump(struct cli_args *args)
{
	bool json = false, no_simplify = false;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"no-simplify", 0, CLI_FLAG, &no_simplify, NULL, "leave binds where they were created"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, 1);
	if (exit >= 0)
		return exit;

	struct cli_input input;
	exit = cli_open_model(&input, args->argv[0], no_simplify);
	if (exit >= 0)
		return exit;
	struct weft_layout *layout = NULL;
	struct weft_error err;
	if (weft_layout_create(&layout, input.model, &err) < 0)
		exit = cli_fail_error(&err);
	else if (!put_model(input.model, layout, json))
		exit = cli_fail("%s: %s", input.name, weft_status_string(WEFT_ENOMEM));
	else
		exit = cli_finish(CLI_FINE);
	weft_layout_destroy(layout);
	cli_close(&input);
	return exit;
}
