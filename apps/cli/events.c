/* events.c: weft events: every event in time order, a line each.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "cli.h"

static const char *const op_names[WEFT_OP_COUNT] = {
#define NAME(NAME, value, name) [value] = name,
    WEFT_OPS(NAME)
#undef NAME
};

static const char *const kind_names[256] = {
#define NAME(NAME, value, name) [value] = name,
    WEFT_KINDS(NAME)
#undef NAME
};

static const char *const idle_names[] = {
    [WEFT_IDLE_WAIT] = "wait", [WEFT_IDLE_SUSPEND] = "suspend", [WEFT_IDLE_HIBERNATE] = "hibernate"};

/* What an operation has: names of its fields in JSON, in this order; NULL where it has none. */
static const struct op_fields {
	const char *a, *b, *text, *value;
	bool kind, site;
} fields[WEFT_OP_COUNT] = {
    [WEFT_OP_CREATE] = {.a = "by", .b = "promise", .kind = true, .site = true},
    [WEFT_OP_READ] = {.a = "by", .b = "promise"},
    [WEFT_OP_RESOLVE] = {.a = "by", .b = "promise"},
    [WEFT_OP_FAIL] = {.a = "by", .b = "promise", .text = "error"},
    [WEFT_OP_BECOME] = {.a = "promise", .b = "into"},
    [WEFT_OP_LABEL] = {.a = "promise", .text = "label"},
    [WEFT_OP_COUNTER_ADD] = {.a = "by", .text = "counter", .value = "add"},
    [WEFT_OP_RUN] = {.a = "promise"},
    [WEFT_OP_PAUSE] = {.text = "pause", .value = "duration_ns"},
    [WEFT_OP_SIGNAL] = {.a = "by", .b = "promise"},
    [WEFT_OP_AWAIT] = {.a = "by", .b = "promise"},
    [WEFT_OP_COUNTER] = {.a = "by", .text = "counter", .value = "value"},
    [WEFT_OP_READ_LATER] = {.a = "by", .b = "promise"},
    [WEFT_OP_SIGNAL_ONLY] = {.a = "by", .b = "promise"},
    [WEFT_OP_SHOULD_RESOLVE] = {.a = "promise"},
    [WEFT_OP_IDLE] = {.value = "reason"},
    [WEFT_OP_RESUME] = {.a = "promise"},
    [WEFT_OP_NOTE] = {.a = "by", .text = "note"},
    [WEFT_OP_PENDING] = {.a = "by", .b = "promise", .value = "since_ns", .kind = true, .site = true},
    [WEFT_OP_STILL_AWAITS] = {.a = "by", .b = "promise"},
    [WEFT_OP_PAUSE_BEGIN] = {.text = "pause"},
    [WEFT_OP_PAUSE_END] = {.text = "pause"},
};

static const char *idle_name(int64_t value)
{
	return value >= 0 && value <= WEFT_IDLE_HIBERNATE ? idle_names[value] : "unknown";
}

static int64_t since(int64_t time_ns, int64_t start_ns)
{
	return (int64_t)((uint64_t)time_ns - (uint64_t)start_ns);
}

static void put_kind(uint8_t kind)
{
	if (kind_names[kind])
		fputs(kind_names[kind], stdout);
	else
		printf("kind-%u", kind);
}

static void put_json(const struct weft_event *e, int64_t start_ns, const struct weft_trace_info *info)
{
	const struct op_fields *has = &fields[e->op];
	printf("{\"time_ns\":%" PRId64 ",\"stream\":%u,\"op\":\"%s\"", since(e->time_ns, start_ns), e->stream, op_names[e->op]);
	if (has->a)
		printf(",\"%s\":%" PRId64, has->a, e->a);
	if (has->b)
		printf(",\"%s\":%" PRId64, has->b, e->b);
	if (has->text) {
		printf(",\"%s\":", has->text);
		cli_put_string(e->text);
	}
	if (e->op == WEFT_OP_IDLE)
		printf(",\"reason\":\"%s\"", idle_name(e->value));
	else if (e->op == WEFT_OP_PENDING)
		printf(",\"since_ns\":%" PRId64, since(e->value, start_ns));
	else if (has->value)
		printf(",\"%s\":%" PRId64, has->value, e->value);
	if (has->kind) {
		fputs(",\"kind\":\"", stdout);
		put_kind(e->kind);
		putchar('"');
	}
	if (has->site) {
		fputs(",\"site\":", stdout);
		cli_put_site_json(info, e->site);
	}
	fputs("}\n", stdout);
}

static void put_line(const struct weft_event *e, int64_t start_ns, const struct weft_trace_info *info)
{
	const struct op_fields *has = &fields[e->op];
	cli_put_seconds(since(e->time_ns, start_ns));
	if (info->stream_count > 1)
		printf("  #%u", e->stream);
	printf("  %-14s", op_names[e->op]);
	if (has->a)
		printf(" %" PRId64, e->a);
	if (has->b)
		printf("%s %" PRId64, has->a ? " ->" : "", e->b);
	if (has->text) {
		putchar(' ');
		cli_put_string(e->text);
	}
	if (e->op == WEFT_OP_IDLE) {
		printf(" %s", idle_name(e->value));
	} else if (e->op == WEFT_OP_PENDING) {
		fputs(" since ", stdout);
		cli_put_seconds(since(e->value, start_ns));
	} else if (e->op == WEFT_OP_PAUSE) {
		char duration[CLI_DURATION];
		printf(" %s", cli_format_duration(duration, e->value));
	} else if (has->value) {
		printf(e->op == WEFT_OP_COUNTER_ADD ? " %+" PRId64 : " = %" PRId64, e->value);
	}
	if (has->kind) {
		putchar(' ');
		put_kind(e->kind);
	}
	if (has->site)
		cli_put_site(info, e->site);
	putchar('\n');
}

int cli_events(struct cli_args *args)
{
	bool json = false, absolute = false;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"absolute", 0, CLI_FLAG, &absolute, NULL, "times as recorded, in UTC where known; not since the first event"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, 1);
	if (exit >= 0)
		return exit;

	struct cli_input input;
	exit = cli_open(&input, args->argv[0]);
	if (exit >= 0)
		return exit;

	const struct weft_trace_info *info = weft_trace_info(input.trace);
	const struct weft_event *events;
	size_t count;
	int status;
	bool first = true;
	int64_t start_ns = 0;
	struct weft_error err;
	while ((status = weft_trace_next(input.trace, &events, &count)) > 0 && cli_stdout_ok()) {
		if (first)
			start_ns = absolute ? -(info->has_origin ? info->clock_origin_ns : 0) : events[0].time_ns;
		first = false;
		for (size_t i = 0; i < count; i++)
			(json ? put_json : put_line)(&events[i], start_ns, info);
	}
	if (status < 0) {
		weft_error_set(&err, (enum weft_status)status, "%s: %s", input.name, weft_status_string(status));
		exit = cli_fail_error(&err);
	} else {
		cli_tell_skipped(&input);
		exit = cli_finish(CLI_FINE);
	}
	cli_close(&input);
	return exit;
}
