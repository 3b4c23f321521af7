/* events.c: implements weft events: prints every event, one a line, in the order of time.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "trace/join.h"
#include "wire/wire.h"

enum { NUMBER_FIELDS = WEFT_FIELD_VALUE | WEFT_FIELD_LOW | WEFT_FIELD_LONG };

static const char *const kind_names[256] = {
#define NAME(NAME, value, name, traits) [value] = name,
    WEFT_KINDS(NAME)
#undef NAME
};

static const char *const idle_names[] = {
    [WEFT_IDLE_WAIT] = "wait", [WEFT_IDLE_SUSPEND] = "suspend", [WEFT_IDLE_HIBERNATE] = "hibernate"};

static const char *idle_name(int64_t value)
{
	return value >= 0 && value <= WEFT_IDLE_HIBERNATE ? idle_names[value] : "unknown";
}

static const char *const detail_names[256] = {
#define NAME(NAME, value, name) [value] = name,
    WEFT_DETAILS(NAME)
#undef NAME
};

static int64_t time_since(int64_t time_ns, int64_t start_ns)
{
	return (int64_t)((uint64_t)time_ns - (uint64_t)start_ns);
}

/* Prints the kind of an event, or of a detail. */
static void put_kind(const struct weft_event *e)
{
	const bool is_detail = e->op == WEFT_OP_DETAIL;
	const char *name = is_detail ? detail_names[e->kind] : kind_names[e->kind];
	if (name) {
		cli_put(name);
	} else {
		cli_put(is_detail ? "detail-" : "kind-");
		cli_put_uint(e->kind);
	}
}

/* Prints the name of a field of a JSON object. */
static void put_name(const char *name)
{
	cli_put(",\"");
	cli_put(name);
	cli_put("\":");
}

static void put_field(const struct weft_field *field)
{
	if (field->is_text)
		cli_put_string(field->text);
	else if (field->is_unsigned)
		cli_put_uint((uint64_t)field->value);
	else
		cli_put_int(field->value);
}

/* Prints an operation that only this trace defines, with its fields. */
static void put_unknown_op(const struct weft_trace *trace, const struct weft_event *e, bool json)
{
	const struct weft_form *form = &weft_trace_info(trace)->forms[e->value];
	struct weft_field field;
	if (json) {
		put_name("op");
		cli_put_string(form->name);
	} else {
		cli_put("  ");
		cli_put_text(form->name);
	}
	for (unsigned i = 0; i < form->fields && weft_trace_field(trace, e, i, &field); i++) {
		cli_put(json ? "," : " ");
		(json ? cli_put_string : cli_put_text)(field.name);
		cli_put(json ? ":" : "=");
		put_field(&field);
	}
	cli_put(json ? "}\n" : "\n");
}

/* Prints the earliest and latest possible time of an event of another host, on the reference clock. */
static void put_bounds(const struct weft_event *e, int64_t start_ns, const struct weft_trace_info *info)
{
	const struct weft_part *part = info->part_count ? &info->parts[info->streams[e->stream].part] : NULL;
	int64_t low, high;
	if (!part || part->bound_ns == 0)
		return;
	weft_part_bounds(part, e->time_ns, &low, &high);
	put_name("earliest_ns");
	cli_put_int(time_since(low, start_ns));
	put_name("latest_ns");
	cli_put_int(time_since(high, start_ns));
}

/* The names of fields are those of a native trace and of babeltrace2. */
static void put_json(const struct weft_event *e, int64_t start_ns, const struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	cli_put("{\"time_ns\":");
	cli_put_int(time_since(e->time_ns, start_ns));
	cli_put(",");
	cli_put_stream_json(info, e->stream);
	put_bounds(e, start_ns, info);
	if (e->op == WEFT_EVENT_OTHER) {
		put_unknown_op(trace, e, true);
		return;
	}
	if (e->op == WEFT_EVENT_END) {
		cli_put(",\"op\":\"end\"}\n");
		return;
	}
	const struct weft_op_form *form = &weft__op_forms[e->op];
	put_name("op");
	cli_put_cstring(form->name);
	if (form->fields & WEFT_FIELD_A) {
		put_name(form->a);
		cli_put_int(e->a);
	}
	if (form->fields & WEFT_FIELD_B) {
		put_name(form->b);
		cli_put_int(e->b);
	}
	if (form->fields & (WEFT_FIELD_KIND | WEFT_FIELD_WHAT)) {
		put_name(form->fields & WEFT_FIELD_KIND ? "kind" : "what");
		cli_put("\"");
		put_kind(e);
		cli_put("\"");
	}
	if (form->fields & WEFT_FIELD_SITE) {
		put_name("site");
		cli_put_site_json(info, e->site);
	}
	if (form->fields & NUMBER_FIELDS) {
		put_name(form->value);
		cli_put_int(e->value);
	}
	if (form->fields & WEFT_FIELD_WHY) {
		put_name(form->value);
		cli_put_cstring(idle_name(e->value));
	}
	if (form->fields & WEFT_FIELD_SINCE) {
		cli_put(",\"");
		cli_put(form->value);
		cli_put("_ns\":");
		cli_put_int(time_since(e->value, start_ns));
	}
	if (form->fields & WEFT_FIELD_TEXT) {
		put_name(form->text);
		cli_put_string(e->text);
	}
	cli_put("}\n");
}

/* Prints the name of an operation, padded to the column's width. */
static void put_op(const char *name)
{
	static const char spaces[] = "              ";
	size_t length = strlen(name);
	cli_put("  ");
	cli_put(name);
	cli_put(spaces + (length < sizeof spaces ? length : sizeof spaces - 1));
}

static void put_value(const struct weft_event *e)
{
	if (e->op == WEFT_OP_PAUSE) {
		char duration[CLI_DURATION_BYTES];
		cli_put(" ");
		cli_put(cli_format_duration(duration, e->value));
		return;
	}
	cli_put(e->op != WEFT_OP_COUNTER_ADD ? " = " : e->value < 0 ? " " : " +");
	cli_put_int(e->value);
}

static void put_line(const struct weft_event *e, int64_t start_ns, const struct weft_trace *trace)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	cli_put_seconds(time_since(e->time_ns, start_ns));
	cli_put_stream(info, e->stream);
	if (e->op == WEFT_EVENT_OTHER) {
		put_unknown_op(trace, e, false);
		return;
	}
	if (e->op == WEFT_EVENT_END) {
		cli_put("  end\n"); /* this stream's trace ends here, while other joined traces continue */
		return;
	}
	const struct weft_op_form *form = &weft__op_forms[e->op];
	put_op(form->name);
	if (form->fields & WEFT_FIELD_A) {
		cli_put(" ");
		cli_put_int(e->a);
	}
	if (form->fields & WEFT_FIELD_B) {
		cli_put(" -> ");
		cli_put_int(e->b);
	}
	if (form->fields & (WEFT_FIELD_KIND | WEFT_FIELD_WHAT)) {
		cli_put(" ");
		put_kind(e);
	}
	if (form->fields & WEFT_FIELD_TEXT && (e->text.len > 0 || e->op != WEFT_OP_PENDING)) {
		cli_put(" ");
		cli_put_string(e->text);
	}
	if (e->op == WEFT_OP_PAUSE || form->fields & NUMBER_FIELDS)
		put_value(e);
	if (form->fields & WEFT_FIELD_WHY) {
		cli_put(" ");
		cli_put(idle_name(e->value));
	}
	if (form->fields & WEFT_FIELD_SINCE) {
		cli_put(" since ");
		cli_put_seconds(time_since(e->value, start_ns));
	}
	if (form->fields & WEFT_FIELD_SITE)
		cli_put_site(info, e->site);
	cli_put("\n");
}

static int put_runtime_line(void *ctx, char *line)
{
	(void)ctx;
	weft_utf8_sanitize(line);
	cli_put(line);
	cli_put("\n");
	return !cli_stdout_ok();
}

/* Prints the events of a language runtime as they were before weft converts them. */
static int put_runtime_lines(struct cli_input *input)
{
	int exit;
	if (weft_trace_lines(input->trace, put_runtime_line, NULL) == WEFT_EINVAL) {
		exit = cli_fail("%s: --recorded needs a trace of OCaml 5; this one has the format %s", input->name,
		    weft_trace_info(input->trace)->format);
	} else {
		cli_note_skipped(input);
		exit = cli_finish(CLI_OK);
	}
	cli_close(input);
	return exit;
}

int cli_events(struct cli_args *args)
{
	bool json = false, absolute = false, recorded = false;
	const struct cli_option options[] = {
	    CLI_OPTION_JSON(&json),
	    {"absolute", 0, CLI_FLAG, &absolute, NULL,
		"print times of day in UTC, or times of the trace's clock if UTC is unknown"},
	    {"recorded", 0, CLI_FLAG, &recorded, NULL,
		"print the events that OCaml 5 recorded as they are in the file, ring after ring"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;

	struct cli_input input;
	exit = cli_open_joined(&input, args);
	if (exit >= 0)
		return exit;
	if (recorded)
		return put_runtime_lines(&input);
	exit = cli_check_events(&input);
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
			(json ? put_json : put_line)(&events[i], start_ns, input.trace);
	}
	if (status < 0) {
		weft_error_set(&err, (enum weft_status)status, "%s: %s", input.name, weft_status_string(status));
		exit = cli_fail_error(&err);
	} else {
		cli_note_skipped(&input);
		exit = cli_finish(CLI_OK);
	}
	cli_close(&input);
	return exit;
}
