/* top.c: implements weft top, which shows promises in progress, what they wait for, and the work of the last second.
 * SPDX-License-Identifier: ISC
 */
#include "analysis/queries/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "analysis/index/names.h"
#include "cli.h"
#include "top_ui.h"
#include "trace/multi_open.h"
#include "viewer/live.h"

struct options {
	bool json, once;
	uint64_t rows;
	int64_t window_ns;
};

/* Returns how many of `count` rows are printed. */
static size_t count_shown(const struct options *o, size_t count)
{
	return o->json || count < o->rows ? count : (size_t)o->rows;
}

static void put_more_count(size_t all, size_t done)
{
	if (done < all)
		printf("  and %zu more\n", all - done);
}

/* ---- For programs ---- */

static void put_head_json(const struct cli_input *input, const struct weft_top *top, bool is_recorded)
{
	fputs("{\"trace\":", stdout);
	cli_put_cstring(input->name);
	printf(",\"pid\":%" PRIu64 ",\"runs\":%s,\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64
	       ",\"in_flight\":%zu,\"endless\":%zu,\"lost\":%" PRIu64 "}\n",
	    weft_trace_info(input->trace)->pid, is_recorded ? "true" : "false", top->from_ns, top->to_ns, top->in_flight,
	    weft_live_count_endless(top), cli_count_lost(weft_trace_info(input->trace)));
}

static void put_groups_json(const struct weft_model *m, const struct weft_top *top)
{
	char name[WEFT_NAME_BYTES];
	for (size_t i = 0; i < top->type_count && cli_stdout_ok(); i++) {
		const struct weft_top_type *s = &top->types[i];
		fputs("{\"sort\":", stdout);
		cli_put_cstring(weft_table_name(m, &s->row, name));
		printf(",\"kind\":\"%s\",\"in_flight\":%zu,\"ended\":%zu,\"failed\":%zu,\"ran_ns\":%" PRId64 ",\"oldest_ns\":",
		    weft_model_kind_name(m, m->promises[s->row.first].kind), s->in_flight, s->ended, s->row.failed, s->ran_ns);
		if (s->oldest_ns < 0)
			fputs("null", stdout);
		else
			cli_put_int(s->oldest_ns);
		printf(",\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 "}\n", s->row.p50_ns, s->row.p99_ns);
	}
}

static void put_waits_json(const struct weft_model *m, const struct weft_top *top)
{
	char name[WEFT_NAME_BYTES];
	for (size_t i = 0; i < top->wait_count && cli_stdout_ok(); i++) {
		const struct weft_top_wait *w = &top->waits[i];
		printf("{\"waits\":%" PRId64 ",\"name\":", m->promises[w->promise].id);
		cli_put_cstring(weft_name_promise(m, w->promise, name));
		printf(",\"awaits\":%" PRId64 ",\"more\":%zu,\"root\":%" PRId64 ",\"root_name\":", m->promises[w->awaits].id,
		    w->more, m->promises[w->root].id);
		cli_put_cstring(weft_name_promise(m, w->root, name));
		printf(",\"for_ns\":%" PRId64 ",\"cycle\":%s}\n", top->to_ns - w->since_ns, w->in_cycle ? "true" : "false");
	}
}

static void put_late_json(const struct weft_model *m, const struct weft_top *top)
{
	char name[WEFT_NAME_BYTES];
	for (size_t i = 0; i < top->late_count && cli_stdout_ok(); i++) {
		const struct weft_top_late *l = &top->late[i];
		printf("{\"late\":%" PRId64 ",\"name\":", m->promises[l->promise].id);
		cli_put_cstring(weft_name_promise(m, l->promise, name));
		printf(",\"at_ns\":%" PRId64 ",\"by_ns\":%" PRId64 "}\n", l->to_ns, l->to_ns - l->from_ns);
	}
}

static void put_others_json(const struct weft_model *m, const struct weft_top *top, const struct weft_findings *findings)
{
	for (size_t i = 0; i < top->stream_count; i++) {
		putchar('{');
		cli_put_stream_json(m->trace, top->streams[i].stream);
		printf(",\"slept_ns\":%" PRId64 ",\"paused_ns\":%" PRId64 "}\n", top->streams[i].slept_ns,
		    top->streams[i].paused_ns);
	}
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct weft_counter *c = &m->counters[i];
		fputs("{\"counter\":", stdout);
		cli_put_string(c->name);
		printf(",\"value\":%" PRId64 ",\"min\":%" PRId64 ",\"max\":%" PRId64 "}\n", c->samples[c->count - 1].value,
		    c->min, c->max);
	}
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		printf("{\"finding\":\"%s\",\"severity\":\"%s\",\"sure\":%s,\"title\":", weft_finding_name(f->kind),
		    weft_severity_name(f->severity), f->sure ? "true" : "false");
		cli_put_cstring(f->title);
		puts("}");
	}
}

/* ---- For people ---- */

static void put_head(const struct cli_input *input, const struct weft_top *top, bool is_recorded)
{
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	char span[CLI_DURATION_BYTES], window[CLI_DURATION_BYTES], flight[WEFT_LIVE_FLIGHT];
	if (info->process.len)
		cli_put_text(info->process);
	else
		cli_put(input->name);
	if (info->pid)
		printf(" %" PRIu64, info->pid);
	printf(": %s; %s, %" PRIu64 " events, %" PRIu64 " lost; %s; the last %s:\n", is_recorded ? "runs" : "ended",
	    cli_format_duration(span, input->model->end_ns), input->model->events, cli_count_lost(info),
	    weft_live_format_flight(top, flight), cli_format_duration(window, top->to_ns - top->from_ns));
	for (size_t i = 0; i < top->stream_count; i++) {
		const int64_t all_ns = top->to_ns - top->from_ns, slept_ns = top->streams[i].slept_ns;
		const struct weft_stream_info *stream = &info->streams[top->streams[i].stream];
		printf("  OS thread ");
		cli_put_text(stream->name);
		printf(" %" PRIu64 ": %" PRId64 "%% awake", stream->tid, all_ns > 0 ? (all_ns - slept_ns) * 100 / all_ns : 0);
		if (top->streams[i].paused_ns > 0)
			printf(", paused for %s", cli_format_duration(span, top->streams[i].paused_ns));
		putchar('\n');
	}
}

static void put_groups(const struct weft_model *m, const struct weft_top *top, const struct options *o)
{
	char name[WEFT_NAME_BYTES], oldest[CLI_DURATION_BYTES], ran[CLI_DURATION_BYTES], p99[CLI_DURATION_BYTES];
	if (top->type_count)
		printf("\n%9s %9s %11s %11s %11s  %s\n", "in flight", "ended", "oldest", "ran", "p99", "sort");
	const size_t count = count_shown(o, top->type_count);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++) {
		const struct weft_top_type *s = &top->types[i];
		printf("%9zu %9zu %11s %11s %11s  %s\n", s->in_flight, s->ended,
		    s->oldest_ns < 0 ? "" : cli_format_duration(oldest, s->oldest_ns), cli_format_duration(ran, s->ran_ns),
		    s->row.ended ? cli_format_duration(p99, s->row.p99_ns) : "", weft_table_name(m, &s->row, name));
	}
	put_more_count(top->type_count, count);
}

static void put_waits(const struct weft_model *m, const struct weft_top *top, const struct options *o)
{
	char name[WEFT_NAME_BYTES], span[CLI_DURATION_BYTES];
	if (top->wait_count)
		puts("\nlongest waits");
	const size_t count = count_shown(o, top->wait_count);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++) {
		const struct weft_top_wait *w = &top->waits[i];
		printf("%11s  %s", cli_format_duration(span, top->to_ns - w->since_ns), weft_name_promise(m, w->promise, name));
		printf("  for %s", weft_name_promise(m, w->awaits, name));
		if (w->more)
			printf(" and %zu more", w->more);
		if (w->root != w->awaits)
			printf(", finally for %s", weft_name_promise(m, w->root, name));
		puts(w->in_cycle ? ", in a cycle" : "");
	}
	put_more_count(top->wait_count, count);
}

static void put_late(const struct weft_model *m, const struct weft_top *top, const struct options *o)
{
	char name[WEFT_NAME_BYTES], span[CLI_DURATION_BYTES];
	if (top->late_count)
		puts("\nready promises that ran late");
	const size_t count = count_shown(o, top->late_count);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++)
		printf("%11s  %s\n", cli_format_duration(span, top->late[i].to_ns - top->late[i].from_ns),
		    weft_name_promise(m, top->late[i].promise, name));
	put_more_count(top->late_count, count);
}

static void put_counters(const struct weft_model *m, const struct options *o)
{
	if (m->counter_count)
		puts("\ncounters");
	const size_t count = count_shown(o, m->counter_count);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++) {
		const struct weft_counter *c = &m->counters[i];
		printf("%11" PRId64 "  ", c->samples[c->count - 1].value);
		cli_put_text(c->name);
		printf("  (%" PRId64 " to %" PRId64 ")\n", c->min, c->max);
	}
	put_more_count(m->counter_count, count);
}

static void put_findings(const struct weft_findings *findings, const struct options *o)
{
	if (findings->count)
		puts("\nfindings");
	const size_t count = count_shown(o, findings->count);
	for (size_t i = 0; i < count && cli_stdout_ok(); i++)
		printf("  %s%s: %s\n", weft_finding_name(findings->findings[i].kind),
		    findings->findings[i].sure ? "" : " (uncertain)", findings->findings[i].title);
	put_more_count(findings->count, count);
}

/* ---- The verb ---- */

/* Returns whether a program is still recording, as the screen of weft top finds out: a trace without an end may belong to a
 * killed program. */
static bool is_being_recorded(const struct cli_input *input)
{
	const struct open_plan *plan = input->plan;
	return weft_trace_info(input->trace)->unfinished && !weft_trace_info(input->trace)->is_seen_once &&
	       (open_has_process(plan) || weft_multi_is_recorded(plan->paths.items, plan->paths.count));
}

static int put_top(const struct cli_input *input, const struct options *o, bool is_recorded)
{
	struct weft_promise_info *facts = NULL;
	struct weft_top *top = NULL;
	struct weft_findings *findings = NULL;
	struct weft_error err;
	int status = weft_promise_info_create(&facts, input->model, &err);
	if (status == WEFT_OK)
		status = weft_top_create(&top, facts, input->model->end_ns, o->window_ns, &err);
	if (status == WEFT_OK)
		status = weft_explain(&findings, input->model, NULL, &err);
	if (status == WEFT_OK && o->json) {
		put_head_json(input, top, is_recorded);
		put_groups_json(input->model, top);
		put_waits_json(input->model, top);
		put_late_json(input->model, top);
		put_others_json(input->model, top, findings);
	} else if (status == WEFT_OK) {
		cli_put_seen(input->model);
		put_head(input, top, is_recorded);
		put_groups(input->model, top, o);
		put_waits(input->model, top, o);
		put_late(input->model, top, o);
		put_counters(input->model, o);
		put_findings(findings, o);
	}
	weft_top_destroy(top);
	weft_promise_info_destroy(facts);
	if (findings)
		weft_findings_destroy(findings);
	return status < 0 ? cli_fail_error(&err) : cli_finish(CLI_OK);
}

int cli_top(struct cli_args *args)
{
	struct options o = {.rows = 10, .window_ns = 1000000000};
	const char *rows = NULL;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&o.json),
	    {"once", 0, CLI_FLAG, &o.once, NULL, "print once and exit (default without a terminal)"},
	    {"rows", 0, CLI_TEXT, &rows, "N", "print this many rows of each table (default: 10; with --json: all)"},
	    {"window", 0, CLI_TIME, &o.window_ns, "TIME", "summarize the last TIME (default: 1s)"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (rows && !cli_parse_number(rows, false, &o.rows))
		return cli_fail_verb("top", "not a number: --rows=%s", rows);
#ifdef WEFT_HAS_SCREEN
	if (!o.once && !o.json && screen_is_available())
		return top_run(args, o.window_ns);
#endif
	struct cli_input input;
	exit = cli_open_model(&input, args, CLI_KEEP_BINDS);
	if (exit >= 0)
		return exit;
	exit = put_top(&input, &o, is_being_recorded(&input));
	cli_close(&input);
	return exit;
}
