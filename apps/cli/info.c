/* info.c: implements weft info: describes a trace.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analysis/findings/explain.h"
#include "cli.h"
#include "trace/kernel.h"
#include "wire/profile.h"

/* The last entry is for operations that only the trace defines. */
static const char *const op_names[WEFT_OP_COUNT + 1] = {
#define NAME(NAME, value, name) [value] = name,
    WEFT_OPS(NAME)
#undef NAME
	[WEFT_OP_COUNT] = "others",
};

enum { KIND_COUNT = WEFT_KIND_PREEXISTING + 1 };

struct summary {
	uint64_t ops[WEFT_OP_COUNT + 1];
	uint64_t kinds[KIND_COUNT];
	uint64_t resolved, failed, never_resolved, became, pending;
	uint64_t pause_ns;
};

static int count_events(struct weft_trace *trace, uint64_t ops[WEFT_OP_COUNT + 1])
{
	const struct weft_event *events;
	size_t count;
	int status;
	while ((status = weft_trace_next(trace, &events, &count)) > 0)
		for (size_t i = 0; i < count; i++)
			ops[events[i].op < WEFT_OP_COUNT ? events[i].op : WEFT_OP_COUNT]++;
	weft_trace_rewind(trace);
	return status;
}

static void count_promises(const struct weft_model *model, struct summary *sum)
{
	for (size_t i = 1; i < model->promise_count; i++) {
		const struct weft_promise *p = &model->promises[i];
		sum->kinds[p->kind < KIND_COUNT ? p->kind : WEFT_KIND_UNKNOWN]++;
		switch ((enum weft_end)p->end) {
		case WEFT_END_RESOLVED: sum->resolved++; break;
		case WEFT_END_BECAME: sum->became++; break;
		case WEFT_END_PENDING: sum->pending++; break;
		case WEFT_END_FAILED:
			if (p->flags & WEFT_PROMISE_NEVER_RESOLVED)
				sum->never_resolved++;
			else
				sum->failed++;
			break;
		}
	}
	for (size_t i = 0; i < model->pause_count; i++)
		sum->pause_ns += (uint64_t)(model->pauses[i].end_ns - model->pauses[i].start_ns);
}

static int64_t utc_ns(const struct weft_model *model)
{
	return (int64_t)((uint64_t)model->start_ns + (uint64_t)model->trace->clock_origin_ns);
}

/* Converts the start or end of a gap to the model's time; an unknown time becomes the start or end of the trace. */
static int64_t clamp_gap_time(const struct weft_model *model, int64_t time_ns)
{
	if (time_ns <= model->start_ns)
		return 0;
	uint64_t since = (uint64_t)time_ns - (uint64_t)model->start_ns;
	return since < (uint64_t)model->end_ns ? (int64_t)since : model->end_ns;
}

static void put_gaps_json(const struct weft_model *model)
{
	const struct weft_trace_info *info = model->trace;
	fputs("],\"gaps\":[", stdout);
	for (size_t i = 0; i < info->gap_count; i++) {
		const struct weft_gap *gap = &info->gaps[i];
		printf("%s{\"stream\":%u,\"from_ns\":%" PRId64 ",\"to_ns\":%" PRId64 ",\"packets\":%" PRIu64
		       ",\"events\":%" PRIu64 "}",
		    i > 0 ? "," : "", gap->stream, clamp_gap_time(model, gap->from_ns), clamp_gap_time(model, gap->to_ns),
		    gap->packets, gap->events);
	}
}

static void put_gaps(const struct weft_model *model)
{
	const struct weft_trace_info *info = model->trace;
	if (info->gap_count == 0)
		return;
	printf("gaps       %zu intervals with missing events\n", info->gap_count);
	for (size_t i = 0; i < info->gap_count && i < WEFT_MAX_SKIPPED; i++) {
		const struct weft_gap *gap = &info->gaps[i];
		printf("  #%u  from ", gap->stream);
		cli_put_seconds(clamp_gap_time(model, gap->from_ns));
		fputs(" s to ", stdout);
		cli_put_seconds(clamp_gap_time(model, gap->to_ns));
		fputs(" s", stdout);
		if (gap->events > 0)
			printf(", %" PRIu64 " events", gap->events);
		if (gap->packets > 0)
			printf(", %" PRIu64 " packet%s", gap->packets, gap->packets == 1 ? "" : "s");
		putchar('\n');
	}
}

/* ---- Kernel data of the trace ---- */

static const char *const level_names[] = {[WEFT_LEVEL_SELF] = "self", [WEFT_LEVEL_OWN] = "own", [WEFT_LEVEL_ALL] = "all"};

static void put_kernel_json(const struct weft_kernel_info *kernel)
{
	printf(",\"kernel\":{\"level\":\"%s\",\"why\":", level_names[kernel->level]);
	cli_put_string(kernel->why);
	printf(",\"processors\":%" PRIu32 ",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"lost\":%" PRIu64
	       ",\"overwritten\":%" PRIu64 ",\"bound_ns\":%" PRIu32 "}",
	    kernel->processors, kernel->events, kernel->bytes, kernel->lost, kernel->overwritten, kernel->bound_ns);
}

static const char *get_way_name(uint8_t way)
{
	return way == WEFT_PROFILE_WAY_LONG ? "long" : way == WEFT_PROFILE_WAY_USER ? "user" : "all";
}

static void put_samples_json(const struct weft_profile *p)
{
	printf(",\"samples\":{\"count\":%zu,\"period_ns\":%" PRId64 ",\"lost\":%" PRIu64 ",\"way\":\"%s\",\"why\":",
	    p->sample_count, p->period_ns, p->lost, get_way_name(p->way));
	cli_put_string(p->why);
	putchar('}');
}

/* Prints how many stack samples the trace has, which runs have samples, and why no more. */
static void put_samples(const struct weft_trace_info *info)
{
	const struct weft_profile *p = &info->profile;
	char period[CLI_DURATION_BYTES];
	static const char rule[] = "perf_event_paranoid";
	if (!p->sample_count)
		return;
	printf("samples    %zu stack samples of OS threads %s, one per %s", p->sample_count,
	    p->way == WEFT_PROFILE_WAY_LONG ? "that ran one promise for long" : "on CPU",
	    cli_format_duration(period, p->period_ns));
	if (p->way == WEFT_PROFILE_WAY_USER)
		fputs(", without time in the kernel", stdout);
	if (p->lost)
		printf("; lost: %" PRIu64, p->lost);
	if (p->why.len) {
		fputs(": ", stdout);
		cli_put_text(p->why);
		/* A process may always be sampled with a value of 2, and its time in the kernel with a value of 1. */
		if (p->why.len >= strlen(rule) && memcmp(p->why.ptr, rule, strlen(rule)) == 0)
			printf(
			    "; more needs root or sysctl kernel.perf_event_paranoid=%d", p->way == WEFT_PROFILE_WAY_LONG ? 2 : 1);
	}
	putchar('\n');
}

static void put_kernel(const struct weft_kernel_info *kernel)
{
	printf("kernel     level %s", level_names[kernel->level]);
	if (kernel->why.len > 0) {
		fputs(": ", stdout);
		cli_put_text(kernel->why);
	}
	if (kernel->level == WEFT_LEVEL_SELF)
		fputs("; a higher level needs root or sysctl kernel.perf_event_paranoid=2", stdout);
	putchar('\n');
	if (kernel->level == WEFT_LEVEL_SELF)
		return;
	printf("  %" PRIu64 " events of %" PRIu32 " CPU%s, %" PRIu64 " bytes", kernel->events, kernel->processors,
	    kernel->processors == 1 ? "" : "s", kernel->bytes);
	if (kernel->lost + kernel->overwritten > 0)
		printf(", lost: %" PRIu64 " for lack of space, %" PRIu64 " overwritten", kernel->lost, kernel->overwritten);
	if (kernel->bound_ns)
		printf("; clock offset known to %" PRIu32 " ns", kernel->bound_ns);
	putchar('\n');
}

static void put_json(
    const char *path, const struct weft_model *model, const struct summary *sum, const struct weft_kernel_info *kernel)
{
	const struct weft_trace_info *info = model->trace;
	fputs("{\"trace\":", stdout);
	cli_put_cstring(path);
	printf(",\"format\":\"%s\",\"host\":", info->format);
	cli_put_string(info->host);
	fputs(",\"process\":", stdout);
	cli_put_string(info->process);
	fputs(",\"command\":", stdout);
	cli_put_string(info->command);
	if (info->runtimes.len) {
		fputs(",\"runtimes\":", stdout);
		cli_put_string(info->runtimes);
	}
	if (info->missing_data.len) {
		fputs(",\"lacks\":", stdout);
		cli_put_string(info->missing_data);
	}
	if (info->unread.len) {
		fputs(",\"unread\":", stdout);
		cli_put_string(info->unread);
	}
	printf(",\"pid\":%" PRIu64 ",\"utc_ns\":", info->pid);
	if (info->has_origin)
		printf("%" PRId64, utc_ns(model));
	else
		fputs("null", stdout);
	if (info->found_packets)
		printf(",\"found_packets\":%" PRIu64, info->found_packets);
	if (model->snapshot_reason_count) {
		const struct weft_snapshot_reason *kept = &model->snapshot_reasons[model->snapshot_reason_count - 1];
		fputs(",\"kept\":{\"why\":", stdout);
		cli_put_string(weft_model_text(model, kept->text));
		printf(",\"time_ns\":%" PRId64 ",\"runs_on\":%s}", kept->time_ns, kept->runs_on ? "true" : "false");
	}
	printf(",\"span_ns\":%" PRId64 ",\"events\":%" PRIu64 ",\"events_by_kind\":{", model->end_ns, model->events);
	const char *comma = "";
	for (int op = 0; op <= WEFT_OP_COUNT; op++) {
		if (sum->ops[op] == 0)
			continue;
		printf("%s\"%s\":%" PRIu64, comma, op_names[op], sum->ops[op]);
		comma = ",";
	}
	printf("},\"promises\":%zu,\"promises_by_kind\":{", model->promise_count - 1);
	comma = "";
	for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
		if (sum->kinds[kind] == 0)
			continue;
		printf("%s\"%s\":%" PRIu64, comma, weft_model_kind_name(model, (uint16_t)kind), sum->kinds[kind]);
		comma = ",";
	}
	printf("},\"ends\":{\"resolved\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"never_resolved\":%" PRIu64 ",\"became\":%" PRIu64
	       ",\"pending\":%" PRIu64 "},\"counters\":[",
	    sum->resolved, sum->failed, sum->never_resolved, sum->became, sum->pending);
	for (size_t i = 0; i < model->counter_count; i++) {
		fputs(i > 0 ? "," : "", stdout);
		cli_put_string(model->counters[i].name);
	}
	printf("],\"pauses\":{\"count\":%zu,\"total_ns\":%" PRIu64 "},\"streams\":[", model->pause_count, sum->pause_ns);
	for (size_t i = 0; i < info->stream_count; i++) {
		const struct weft_stream_info *s = &info->streams[i];
		printf("%s{\"name\":", i > 0 ? "," : "");
		cli_put_string(s->name);
		printf(",\"tid\":%" PRIu64 ",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"lost_full\":%" PRIu64
		       ",\"lost_nested\":%" PRIu64 ",\"lost_overwritten\":%" PRIu64 "}",
		    s->tid, s->packets, s->bytes, s->lost_full, s->lost_nested, s->lost_overwritten);
	}
	put_gaps_json(model);
	putchar(']');
	if (kernel)
		put_kernel_json(kernel);
	if (info->profile.sample_count)
		put_samples_json(&info->profile);
	printf(",\"unfinished\":%s,\"wrapped\":%s,\"lost\":%" PRIu64 ",\"lost_no_stream\":%" PRIu64 ",\"skipped\":[",
	    info->unfinished ? "true" : "false", info->wrapped ? "true" : "false", cli_count_lost(info), info->lost_no_stream);
	for (size_t i = 0; i < info->skipped_count && i < WEFT_MAX_SKIPPED; i++) {
		const struct weft_skipped *s = &info->skipped[i];
		printf("%s{\"file\":", i > 0 ? "," : "");
		cli_put_cstring(s->where.file);
		if (s->where.packet != WEFT_NO_OFFSET)
			printf(",\"packet\":%" PRIu64, s->where.packet);
		if (s->where.offset != WEFT_NO_OFFSET)
			printf(",\"offset\":%" PRIu64, s->where.offset);
		printf(",\"bytes\":%" PRIu64 ",\"what\":", s->bytes);
		cli_put_cstring(s->where.what);
		putchar('}');
	}
	printf("],\"skipped_count\":%zu", info->skipped_count);
}

static void put_text_row(const char *name, struct weft_str text)
{
	if (text.len == 0)
		return;
	printf("%-10s ", name);
	cli_put_text(text);
	putchar('\n');
}

static void put_utc(int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32];
	if (ns >= 0 && gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0)
		printf("recorded   %s.%09" PRId64 " UTC\n", text, ns % 1000000000);
}

static void put_text(
    const char *path, const struct weft_model *model, const struct summary *sum, const struct weft_kernel_info *kernel)
{
	const struct weft_trace_info *info = model->trace;
	put_text_row("trace", (struct weft_str){path, (uint32_t)strlen(path)});
	printf("format     %s\n", info->format);
	put_text_row("host", info->host);
	put_text_row("process", info->process);
	if (info->pid != 0)
		printf("pid        %" PRIu64 "\n", info->pid);
	put_text_row("command", info->command);
	put_text_row("runtimes", info->runtimes);
	put_text_row("lacks", info->missing_data);
	put_text_row("unread", info->unread);
	if (info->found_packets)
		printf("found      %" PRIu64 " packets in a memory image\n", info->found_packets);
	if (info->has_origin)
		put_utc(utc_ns(model));
	const struct weft_snapshot_reason *kept =
	    model->snapshot_reason_count ? &model->snapshot_reasons[model->snapshot_reason_count - 1] : NULL;
	if (info->is_seen_once)
		puts("state      seen once: weft read the memory of the process, without a recording");
	else if (info->is_stopped)
		puts("state      stopped: the recording ended while the program went on");
	else if (info->unfinished)
		printf(
		    "state      not finished: the program %s\n", info->has_died ? "was killed, or exited without ending the trace"
								 : kept && kept->runs_on ? "still ran when this copy was made"
											 : "is still recording, or was killed");
	if (kept)
		put_text_row("saved for", weft_model_text(model, kept->text));
	fputs("span       ", stdout);
	cli_put_seconds(model->end_ns);
	printf(" s\nevents     %" PRIu64 "\n", model->events);
	for (int op = 0; op <= WEFT_OP_COUNT; op++)
		if (sum->ops[op] > 0)
			printf("  %-16s %10" PRIu64 "\n", op_names[op], sum->ops[op]);
	printf("promises   %zu: %" PRIu64 " resolved, %" PRIu64 " failed, %" PRIu64 " never resolved, %" PRIu64
	       " became another, %" PRIu64 " pending\n",
	    model->promise_count - 1, sum->resolved, sum->failed, sum->never_resolved, sum->became, sum->pending);
	for (unsigned kind = 0; kind < KIND_COUNT; kind++)
		if (sum->kinds[kind] > 0)
			printf("  %-16s %10" PRIu64 "\n", weft_model_kind_name(model, (uint16_t)kind), sum->kinds[kind]);
	printf("counters   %zu\n", model->counter_count);
	for (size_t i = 0; i < model->counter_count; i++) {
		fputs("  ", stdout);
		cli_put_text(model->counters[i].name);
		printf("  %zu values, %" PRId64 " .. %" PRId64 "\n", model->counters[i].count, model->counters[i].min,
		    model->counters[i].max);
	}
	char duration[CLI_DURATION_BYTES];
	printf("pauses     %zu, %s in all\n", model->pause_count, cli_format_duration(duration, (int64_t)sum->pause_ns));
	printf(
	    "streams    %zu%s\n", info->stream_count, info->wrapped ? "; older events were overwritten in the ring buffer" : "");
	for (size_t i = 0; i < info->stream_count; i++) {
		const struct weft_stream_info *s = &info->streams[i];
		printf("  #%zu", i);
		if (s->name.len > 0) {
			putchar(' ');
			cli_put_text(s->name);
		}
		if (s->tid != 0)
			printf(" tid %" PRIu64, s->tid);
		printf("  %" PRIu64 " packet%s, %" PRIu64 " bytes", s->packets, s->packets == 1 ? "" : "s", s->bytes);
		if (s->lost_full + s->lost_nested + s->lost_overwritten > 0)
			printf(", lost: %" PRIu64 " for lack of space, %" PRIu64 " nested too deep, %" PRIu64 " overwritten",
			    s->lost_full, s->lost_nested, s->lost_overwritten);
		putchar('\n');
	}
	if (info->lost_no_stream)
		printf("  lost: %" PRIu64 " events of OS threads that have no stream of their own\n", info->lost_no_stream);
	if (kernel)
		put_kernel(kernel);
	put_samples(info);
	put_gaps(model);
	printf("lost       %" PRIu64 " events\nskipped    %zu damaged parts\n", cli_count_lost(info), info->skipped_count);
	for (size_t i = 0; i < info->skipped_count && i < WEFT_MAX_SKIPPED; i++) {
		char text[640];
		weft_error_format(&info->skipped[i].where, text, sizeof text);
		printf("  %" PRIu64 " bytes, ", info->skipped[i].bytes);
		cli_put_text((struct weft_str){text, (uint32_t)strlen(text)});
		putchar('\n');
	}
}

/* Ends the description with the summary that the window and the page show; these do not model internal promises and the waits of
 * binds. */
static int put_summary(const struct cli_input *input, bool json)
{
	struct weft_findings *findings = NULL;
	struct weft_model *model = NULL;
	struct weft_error err;
	weft_trace_rewind(input->trace);
	int status = weft_model_build(&model, input->trace, NULL, &err);
	if (status == WEFT_OK)
		status = weft_explain(&findings, model, NULL, &err);
	fputs(json ? ",\"summary\":[" : status == WEFT_OK ? "summary\n" : "", stdout);
	const int exit = status == WEFT_OK ? cli_put_summary(model, findings, json) : cli_fail_error(&err);
	fputs(json ? "]}\n" : "", stdout);
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	return exit < 0 ? CLI_OK : exit;
}

static int print_info(const char *path, bool json, bool is_last)
{
	struct cli_input input;
	int exit = cli_open(&input, path);
	if (exit >= 0)
		return exit;
	struct summary sum = {0};
	struct weft_kernel_info kernel;
	cli_progress_begin("reading", input.name);
	int status = count_events(input.trace, sum.ops);
	const int kernel_status = status < 0 ? 0 : weft_trace_kernel(input.trace, NULL, NULL, &kernel);
	status = kernel_status < 0 ? kernel_status : status;
	cli_progress_end();
	if (status < 0)
		exit = cli_fail("%s: %s", input.name, weft_status_string(status));
	else
		exit = cli_build_model(&input, CLI_KEEP_BINDS | CLI_KEEP_PARTS);
	if (exit < 0) {
		count_promises(input.model, &sum);
		(json ? put_json : put_text)(input.name, input.model, &sum, kernel_status > 0 ? &kernel : NULL);
		exit = put_summary(&input, json);
	}
	if (is_last)
		cli_close(&input);
	else
		cli_close_for_reopening(&input);
	return exit;
}

int cli_info(struct cli_args *args)
{
	bool json = false;
	const struct cli_option options[] = {CLI_OPTION_JSON(&json), CLI_OPTION_END};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	struct weft_error err;
	struct open_plan *plan;
	if (open_classify(&plan, args->argv, args->argc, &err) < 0)
		return cli_fail_error(&err);
	open_note_copies(plan, cli_note);
	const int count = (int)plan->paths.count;
	for (int i = 0; i < count && exit <= CLI_OK; i++) {
		if (i > 0 && !json)
			putchar('\n');
		exit = print_info(plan->paths.items[i], json, count == 1);
	}
	if (exit <= CLI_OK && count > 1)
		exit = cli_multi_report(&(struct cli_args){.argv = (char **)(uintptr_t)plan->paths.items, .argc = count}, json);
	open_plan_destroy(plan);
	return exit > CLI_OK ? exit : cli_finish(CLI_OK);
}
