/* input.c: opens traces, and prints messages while they are read.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "analysis/findings/explain.h"
#include "base/utf8.h"
#include "cli.h"
#include "trace/join.h"
#include "trace/source.h"

static struct {
	char text[320];
	size_t length;
	const char *unit; /* unit of `done` */
	volatile sig_atomic_t seconds, done;
} progress;

/* Adds the decimal digits of a number, and its unit, to a line; returns the new length. */
static size_t add_number(char *line, size_t length, int number, const char *unit)
{
	char digits[12];
	size_t count = 0;
	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (count > 0)
		line[length++] = digits[--count];
	memcpy(line + length, unit, strlen(unit));
	return length + strlen(unit);
}

/* The handler makes only calls that are allowed in a signal handler, so any interrupted work continues. */
static void print_progress(int signal)
{
	(void)signal;
	char line[sizeof progress.text + 64];
	memcpy(line, progress.text, progress.length);
	progress.seconds++;
	size_t n = add_number(line, progress.length, progress.seconds, progress.done > 0 ? " s, " : " s");
	if (progress.done > 0)
		n = add_number(line, n, progress.done, progress.unit);
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

void cli_progress_begin(const char *what, const char *name)
{
	if (!isatty(STDERR_FILENO))
		return;
	char shown[201];
	snprintf(shown, sizeof shown, "%s", name);
	weft_utf8_sanitize(shown);
	int n = snprintf(progress.text, sizeof progress.text, "\r\033[Kweft: %s %s: ", what, shown);
	progress.length = (size_t)n;
	progress.seconds = progress.done = 0;
	struct sigaction action = {.sa_handler = print_progress, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{1, 0}, {1, 0}}, NULL);
}

void cli_progress_end(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
	if (progress.seconds > 0)
		fputs("\r\033[K", stderr);
	progress.seconds = 0;
}

static bool note_events_read(void *ctx, uint64_t events)
{
	(void)ctx;
	progress.unit = " million events";
	progress.done = (sig_atomic_t)(events / 1000000);
	return true;
}

static bool note_percent_explained(void *ctx, unsigned percent)
{
	(void)ctx;
	progress.unit = " %";
	progress.done = (sig_atomic_t)percent;
	return true;
}

static uint64_t count_bytes(const struct weft_trace *trace)
{
	const struct weft_source *source = weft_trace_source(trace);
	const struct weft_trace *part;
	uint64_t bytes = 0;
	for (size_t i = 0; i < source->blob_count; i++)
		bytes += source->blobs[i].size;
	for (size_t i = 0; (part = weft_trace_part(trace, i)); i++)
		bytes += count_bytes(part);
	return bytes;
}

/* Opens the trace of a plan; `action` is the verb in the progress line.  Takes the plan.  Returns as cli_open(). */
static int run_plan(struct cli_input *input, struct open_plan *plan, const char *action)
{
	struct weft_error err;
	*input = (struct cli_input){.name = plan->name, .plan = plan};
	open_note_copies(plan, cli_note);
	cli_progress_begin(action, input->name);
	const int status = open_run(&input->trace, plan, &err);
	cli_progress_end();
	int exit = -1;
	if (status == WEFT_OK) {
		cli_limit_texts(count_bytes(input->trace));
		open_note_clocks(plan, input->trace, cli_note);
	} else {
		if (status == WEFT_ETOOBIG && plan->paths.count == 1)
			exit = cli_fail("%s: %s; use --limit=SIZE to read more", err.file, err.what);
		else
			exit = cli_fail_error(&err);
		cli_close(input);
	}
	return exit;
}

/* Lists the traces of a session, because the user must name one of them. */
static int fail_several(struct open_plan *plan)
{
	open_note_copies(plan, cli_note);
	cli_note("%s has %zu traces, but this verb reads only one; name one of these:", plan->name, plan->paths.count);
	for (size_t i = 0; i < plan->paths.count; i++)
		cli_note_trace(plan->paths.items[i], true);
	open_plan_destroy(plan);
	return CLI_ERROR;
}

static int open_operands(struct cli_input *input, char *const *operands, int count, bool is_one)
{
	struct weft_error err;
	struct open_plan *plan;
	int exit;
	if (open_classify(&plan, operands, count, &err) < 0)
		exit = cli_fail_error(&err);
	else if (is_one && plan->paths.count > 1)
		exit = fail_several(plan);
	else
		exit = run_plan(input, plan, plan->classes.items[0] == OPEN_PROCESS ? "searching process" : "opening");
	return exit;
}

int cli_open(struct cli_input *input, const char *path)
{
	return open_operands(input, (char *const *)(uintptr_t)&path, 1, true);
}

int cli_open_joined(struct cli_input *input, const struct cli_args *traces)
{
	return open_operands(input, traces->argv, traces->argc, false);
}

int cli_open_ring(struct cli_input *input, enum open_class class, const char *path, const char *ring)
{
	struct weft_error err;
	struct open_plan *plan;
	char *end;
	errno = 0;
	int exit = -1;
	if (class == OPEN_IMAGE && strspn(ring, "0123456789abcdefABCDEF-") != strlen(ring))
		exit = cli_fail("not the UUID of a ring buffer: %s; weft info lists them", ring);
	else if (class == OPEN_PROCESS && (strtol(path, &end, 10) <= 0 || errno || *end))
		exit = cli_fail("not a process id: %s; use a number", path);
	else if (open_classify_as(&plan, class, path, ring, &err) < 0)
		exit = cli_fail_error(&err);
	else
		exit = run_plan(input, plan, class == OPEN_PROCESS ? "searching process" : "searching");
	return exit;
}

static int fail_empty(const struct cli_input *input)
{
	uint64_t lost = cli_count_lost(weft_trace_info(input->trace));
	return lost ? cli_fail("%s: no events in the trace: all %" PRIu64 " were lost", input->name, lost)
		    : cli_fail("%s: no events in the trace", input->name);
}

int cli_check_events(struct cli_input *input)
{
	const struct weft_event *events;
	size_t count;
	int more = weft_trace_next(input->trace, &events, &count);
	if (more > 0) {
		weft_trace_rewind(input->trace);
		cli_find_site_names(input, false);
		return -1;
	}
	cli_note_skipped(input);
	int exit = more < 0 ? cli_fail("%s: %s", input->name, weft_status_string(more)) : fail_empty(input);
	cli_close(input);
	return exit;
}

static void note_anomalies(const struct cli_input *input)
{
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (input->model->anomalies[i] > 0)
			cli_note("%s: %" PRIu64 " %s", input->name, input->model->anomalies[i],
			    weft_anomaly_text((enum weft_anomaly)i));
}

int cli_build_model(struct cli_input *input, unsigned keep)
{
	struct weft_error err;
	struct weft_model_options options = {
	    .keep_binds = keep & CLI_KEEP_BINDS, .keep_parts = keep & CLI_KEEP_PARTS, .go_on = note_events_read};
	cli_find_site_names(input, false);
	cli_progress_begin("reading", input->name);
	int status = weft_model_build(&input->model, input->trace, &options, &err);
	cli_progress_end();
	cli_note_skipped(input);
	if (status == WEFT_EFORMAT)
		return fail_empty(input);
	if (status < 0) {
		if (err.file[0] == '\0')
			snprintf(err.file, sizeof err.file, "%s", input->name);
		return cli_fail_error(&err);
	}
	note_anomalies(input);
	return -1;
}

int cli_explain_model(
    struct weft_findings **out, const struct cli_input *input, const struct weft_explain_options *options, struct weft_error *err)
{
	struct weft_explain_options how = *options;
	how.go_on = note_percent_explained;
	cli_progress_begin("explaining", input->name);
	const int status = weft_explain(out, input->model, &how, err);
	cli_progress_end();
	return status;
}

int cli_open_model(struct cli_input *input, const struct cli_args *traces, unsigned keep)
{
	int exit = cli_open_joined(input, traces);
	if (exit >= 0)
		return exit;
	exit = cli_build_model(input, keep);
	if (exit >= 0)
		cli_close(input);
	return exit;
}

int cli_find_promise(const struct cli_input *input, const char *id, uint32_t *out)
{
	char *end;
	errno = 0;
	long long number = strtoll(id, &end, 10);
	if (errno || end == id || *end)
		return cli_fail("not a promise's id: %s; weft dump lists them", id);
	uint32_t promise = weft_model_find(input->model, number);
	if (promise == WEFT_NONE)
		return cli_fail("%s: the trace has no promise %s", input->name, id);
	*out = promise;
	return -1;
}

void cli_note_skipped(const struct cli_input *input)
{
	enum { MAX_NOTES = 8 };
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	for (size_t i = 0; i < info->skipped_count && i < MAX_NOTES; i++) {
		char text[640];
		weft_error_format(&info->skipped[i].where, text, sizeof text);
		if (info->skipped[i].bytes > 0)
			cli_note("%s; %" PRIu64 " bytes skipped", text, info->skipped[i].bytes);
		else
			cli_note("%s", text);
	}
	if (info->skipped_count > MAX_NOTES)
		cli_note("%s: %zu more damaged places; weft info lists them", input->name, info->skipped_count - MAX_NOTES);
}

uint64_t cli_count_lost(const struct weft_trace_info *info)
{
	uint64_t lost = info->lost_no_stream;
	for (size_t i = 0; i < info->stream_count; i++)
		lost += info->streams[i].lost_full + info->streams[i].lost_nested + info->streams[i].lost_overwritten;
	return lost;
}

void cli_close(struct cli_input *input)
{
	weft_model_destroy(input->model);
	weft_trace_close(input->trace);
	open_plan_destroy(input->plan);
	*input = (struct cli_input){.name = NULL};
}

void cli_close_for_reopening(struct cli_input *input)
{
	if (input->plan->classes.items[0] == OPEN_STDIN) {
		open_keep_stdin(input->trace);
		input->trace = NULL;
	}
	cli_close(input);
}
