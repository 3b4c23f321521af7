/* input.c: opening traces, and what is said while they are read.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "cli.h"
#include "ctf/foreign.h"
#include "trace/join.h"
#include "trace/meet.h"
#include "trace/several.h"
#include "trace/source.h"

static struct {
	char text[320];
	size_t length;
	volatile sig_atomic_t seconds;
} progress;

/* Only what is allowed in a signal handler: the work goes on undisturbed, whatever it is. */
static void tick(int signal)
{
	char line[sizeof progress.text + 24];
	size_t n = progress.length;
	int seconds = ++progress.seconds;
	char digits[12];
	size_t count = 0;
	do
		digits[count++] = (char)('0' + seconds % 10);
	while ((seconds /= 10) > 0);
	memcpy(line, progress.text, n);
	while (count > 0)
		line[n++] = digits[--count];
	memcpy(line + n, " s", 2);
	if (write(STDERR_FILENO, line, n + 2) < 0)
		return;
}

void cli_progress_begin(const char *what, const char *name)
{
	if (!isatty(STDERR_FILENO))
		return;
	char shown[201];
	snprintf(shown, sizeof shown, "%s", name);
	weft_utf8_tame(shown);
	int n = snprintf(progress.text, sizeof progress.text, "\r\033[Kweft: %s %s: ", what, shown);
	progress.length = (size_t)n;
	progress.seconds = 0;
	struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
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

static uint64_t bytes_of(const struct weft_trace *trace)
{
	const struct weft_source *source = weft_trace_source(trace);
	const struct weft_trace *part;
	uint64_t bytes = 0;
	for (size_t i = 0; i < source->blob_count; i++)
		bytes += source->blobs[i].size;
	for (size_t i = 0; (part = weft_trace_part(trace, i)); i++)
		bytes += bytes_of(part);
	return bytes;
}

/* What order is not sure. */
static void tell_ties(const struct cli_input *input)
{
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	size_t by_wall = 0, by_messages = 0;
	int64_t bound_ns = 0;
	for (size_t i = 0; i < info->part_count; i++) {
		by_messages += info->parts[i].bound_ns > 0;
		by_wall += !info->parts[i].is_same_clock && !info->parts[i].bound_ns;
		bound_ns = info->parts[i].bound_ns > bound_ns ? info->parts[i].bound_ns : bound_ns;
	}
	if (by_wall)
		cli_note("%s: %zu of its %zu traces have a clock of their own, known by the wall clock to some us", input->name,
		    by_wall, info->part_count);
	char bound[WEFT_DURATION_BYTES];
	if (by_messages)
		cli_note("%s: %zu of its %zu traces are of other hosts, whose clocks are known by what they sent each other, to "
			 "+-%s on average",
		    input->name, by_messages, info->part_count, weft_duration_text(bound, bound_ns));
	const struct weft_meet *meet = weft_trace_meet(input->trace);
	if (meet && meet->contradictory)
		cli_note("%s: of %zu connection%s between its hosts, as %s, one end has read what the other cannot have written: "
			 "nothing there says how the clocks go",
		    input->name, meet->contradictory, meet->contradictory == 1 ? "" : "s", meet->wrong);
}

static int opened(const struct cli_input *input, int status, const struct weft_error *err)
{
	if (status < 0)
		return cli_fail_error(err);
	cli_limit_texts(bytes_of(input->trace));
	tell_ties(input);
	return -1;
}

bool cli_is_process(const char *text)
{
	char folder[64];
	size_t digits = strspn(text, "0123456789");
	snprintf(folder, sizeof folder, "/proc/%.20s", text);
	return digits > 0 && digits < 20 && text[digits] == '\0' && access(text, F_OK) != 0 && access(folder, F_OK) == 0;
}

/* It has the files of the trace mapped. */
const char *cli_trace_of_process(const char *pid)
{
	static char line[PATH_MAX + 256]; /* what is handed out lives on */
	const char *found = NULL;
	snprintf(line, sizeof line, "/proc/%.20s/maps", pid);
	FILE *maps = fopen(line, "re");
	while (maps && !found && fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') : NULL;
		if (!name || strncmp(name, "/definitions-", strlen("/definitions-")) != 0)
			continue;
		*name = '\0';
		found = path;
	}
	if (maps)
		fclose(maps);
	return found;
}

bool cli_find_recorded(session_paths *out, char *const *operands, int count)
{
	for (int i = 0; i < count; i++) {
		const char *trace = cli_is_process(operands[i]) ? cli_trace_of_process(operands[i]) : NULL;
		char *own = strdup(trace ? trace : operands[i]), **place = own ? weft_vec_push(out) : NULL;
		if (!place) {
			free(own);
			return false;
		}
		*place = own;
	}
	return true;
}

/* Standard input's trace, of which a pipe gives the bytes once only. */
static struct weft_trace *kept;

static int open_or_take(struct weft_trace **out, const char *path, struct weft_error *err)
{
	if (!kept || strcmp(path, "-") != 0)
		return foreign_or_trace_open(out, path, err);
	*out = kept;
	kept = NULL;
	weft_trace_rewind(*out);
	return WEFT_OK;
}

int cli_open(struct cli_input *input, const char *path)
{
	struct weft_error err;
	if (cli_is_process(path)) {
		const char *trace = cli_trace_of_process(path);
		if (!trace)
			return cli_open_process(input, path, NULL);
		path = trace;
	}
	int exit = cli_session_choose(&path);
	if (exit >= 0)
		return exit;
	*input = (struct cli_input){.name = strcmp(path, "-") == 0 ? "standard input" : path};
	cli_progress_begin("opening", input->name);
	int status = open_or_take(&input->trace, path, &err);
	cli_progress_end();
	if (status == WEFT_ETOOBIG)
		return cli_fail("%s: %s; --limit=SIZE reads more", err.file, err.what);
	return opened(input, status, &err);
}

int cli_open_image(struct cli_input *input, const char *path, const char *ring)
{
	struct weft_error err;
	if (strspn(ring, "0123456789abcdefABCDEF-") != strlen(ring))
		return cli_fail("%s is not the UUID of a ring: hexadecimal digits, as weft info lists them", ring);
	*input = (struct cli_input){.name = path};
	cli_progress_begin("searching", input->name);
	int status = weft_trace_open_image(&input->trace, path, ring, &err);
	cli_progress_end();
	return opened(input, status, &err);
}

int cli_open_process(struct cli_input *input, const char *pid, const char *ring)
{
	struct weft_error err;
	char *end;
	errno = 0;
	long number = strtol(pid, &end, 10);
	if (errno || end == pid || *end || number <= 0)
		return cli_fail("%s is not a process id, which is a number", pid);
	*input = (struct cli_input){.name = pid};
	cli_progress_begin("searching process", pid);
	int status = weft_trace_open_process(&input->trace, number, ring, &err);
	cli_progress_end();
	return opened(input, status, &err);
}

static int fail_empty(const struct cli_input *input)
{
	uint64_t lost = cli_lost(weft_trace_info(input->trace));
	return lost ? cli_fail("%s: no events in the trace: all %" PRIu64 " are lost", input->name, lost)
		    : cli_fail("%s: no events in the trace", input->name);
}

int cli_check_events(struct cli_input *input)
{
	const struct weft_event *events;
	size_t count;
	int more = weft_trace_next(input->trace, &events, &count);
	if (more > 0) {
		weft_trace_rewind(input->trace);
		cli_name_places(input, false);
		return -1;
	}
	cli_tell_skipped(input);
	int exit = more < 0 ? cli_fail("%s: %s", input->name, weft_status_string(more)) : fail_empty(input);
	cli_close(input);
	return exit;
}

static void tell_anomalies(const struct cli_input *input)
{
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		if (input->model->anomalies[i] > 0)
			cli_note("%s: %" PRIu64 " %s", input->name, input->model->anomalies[i],
			    weft_anomaly_text((enum weft_anomaly)i));
}

int cli_build_model(struct cli_input *input, unsigned keep)
{
	struct weft_error err;
	struct weft_model_options options = {.keep_binds = keep & CLI_KEEP_BINDS, .keep_parts = keep & CLI_KEEP_PARTS};
	cli_name_places(input, false);
	cli_progress_begin("reading", input->name);
	int status = weft_model_build(&input->model, input->trace, &options, &err);
	cli_progress_end();
	cli_tell_skipped(input);
	if (status == WEFT_EFORMAT)
		return fail_empty(input);
	if (status < 0) {
		if (err.file[0] == '\0')
			snprintf(err.file, sizeof err.file, "%s", input->name);
		return cli_fail_error(&err);
	}
	tell_anomalies(input);
	return -1;
}

int cli_open_joined(struct cli_input *input, struct cli_args *traces)
{
	static char name[300]; /* until the end */
	struct weft_error err;
	const char *first = traces->argv[0];
	const int named = traces->argc;
	/* Before the operands are expanded: those of before may go then. */
	const char *called = named > 1 ? weft_several_name(name, sizeof name, &first, (size_t)named) : first;
	cli_session_expand(traces);
	if (traces->argc == 1)
		return cli_open(input, traces->argv[0]);
	const char *const *paths = (const char *const *)traces->argv;
	*input = (struct cli_input){.name = called};
	cli_progress_begin("opening", input->name);
	const int status =
	    weft_several_open(&input->trace, paths, (size_t)traces->argc, input->name, named == 1, open_or_take, &err);
	cli_progress_end();
	return opened(input, status, &err);
}

/* One trace or the memory of a process. */
static int open_quietly(struct weft_trace **out, const char *path, struct weft_error *err)
{
	return cli_is_process(path) ? weft_trace_open_process(out, strtol(path, NULL, 10), NULL, err)
				    : foreign_or_trace_open(out, path, err);
}

int cli_open_quietly(struct cli_input *input, char *const *paths, int count, struct weft_error *err)
{
	session_paths all = {0};
	int status = session_expand(&all, paths, count, NULL) ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	*input = (struct cli_input){.name = paths[0]};
	if (status == WEFT_OK)
		status = weft_several_open(
		    &input->trace, (const char *const *)all.items, all.count, input->name, true, open_quietly, err);
	session_paths_free(&all);
	return status;
}

int cli_open_model(struct cli_input *input, struct cli_args *traces, unsigned keep)
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
		return cli_fail("%s is not a promise's id, which is a number that weft dump prints", id);
	uint32_t promise = weft_model_find(input->model, number);
	if (promise == WEFT_NONE)
		return cli_fail("%s: the trace has no promise %s", input->name, id);
	*out = promise;
	return -1;
}

void cli_tell_skipped(const struct cli_input *input)
{
	enum { TOLD = 8 };
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	for (size_t i = 0; i < info->skipped_count && i < TOLD; i++) {
		char text[640];
		weft_error_format(&info->skipped[i].where, text, sizeof text);
		if (info->skipped[i].bytes > 0)
			cli_note("%s; %" PRIu64 " bytes skipped", text, info->skipped[i].bytes);
		else
			cli_note("%s", text);
	}
	if (info->skipped_count > TOLD)
		cli_note("%s: and %zu more places like these; weft info lists them", input->name, info->skipped_count - TOLD);
}

uint64_t cli_lost(const struct weft_trace_info *info)
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
}

void cli_close_for_now(struct cli_input *input, const char *path)
{
	if (!kept && !strcmp(path, "-")) {
		kept = input->trace;
		input->trace = NULL;
	}
	cli_close(input);
}
