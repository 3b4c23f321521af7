/* save.c: weft save: a trace as it is, whole, elsewhere.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "export/scrub.h"
#include "flight.h"
#include "model/standing.h"
#include "trace/trace.h"

#define TAR_BLOCK 512

/* The copy, while it is being written. */
struct copy {
	const char *out;
	bool is_directory, is_stream;
	struct cli_directory directory;
	struct cli_file file;
	int exit; /* of what has been told already; -1: nothing */
};

/* A member of an archive: ustar, owned by nobody in particular, of no particular time, so that equal traces are equal bytes. */
static int put_in_archive(struct cli_file *file, const char *name, const void *bytes, size_t size)
{
	char header[TAR_BLOCK] = {0};
	const char zeros[TAR_BLOCK] = {0};
	unsigned sum = 0;
	snprintf(header, 100, "%s", name);
	memcpy(header + 100, "0000600", 8);
	memcpy(header + 108, "0000000", 8);
	memcpy(header + 116, "0000000", 8);
	snprintf(header + 124, 12, "%011zo", size);
	memcpy(header + 136, "00000000000", 12);
	memset(header + 148, ' ', 8);
	header[156] = '0';
	memcpy(header + 257, "ustar\00000", 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)header[i];
	snprintf(header + 148, 8, "%06o", sum);
	int failed = cli_file_write(file, header, sizeof header);
	if (!failed)
		failed = cli_file_write(file, bytes, size);
	if (!failed && size % TAR_BLOCK)
		failed = cli_file_write(file, zeros, TAR_BLOCK - size % TAR_BLOCK);
	return failed;
}

/* The first file tells whether the copy is a directory. */
static int put(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct copy *copy = ctx;
	bool is_stdout = strcmp(copy->out, "-") == 0;
	if (!copy->is_directory && !copy->is_stream) {
		copy->is_directory = *name && !is_stdout;
		copy->is_stream = !copy->is_directory;
		copy->exit = copy->is_directory ? cli_directory_begin(&copy->directory, copy->out)
						: cli_file_begin(&copy->file, copy->out);
		if (copy->exit >= 0)
			return -1;
	}
	if (copy->is_directory)
		return cli_directory_write(&copy->directory, name, bytes, size);
	return *name ? put_in_archive(&copy->file, name, bytes, size) : cli_file_write(&copy->file, bytes, size);
}

/* ---- What is other in the copy ---- */

static void learn(void *scrub, char *text, uint32_t bytes)
{
	weft_scrub_learn(scrub, text, bytes);
}

static void replace(void *scrub, char *text, uint32_t bytes)
{
	weft_scrub_replace(scrub, text, bytes);
}

static int drop(void *ctx, const char *name, const void *bytes, size_t size)
{
	(void)ctx, (void)name, (void)bytes, (void)size;
	return 0;
}

/* Until when the trace tells of its program; leaves it at its first event. */
static int find_end(struct weft_trace *trace, int64_t *end_ns)
{
	const struct weft_event *events;
	size_t count;
	int more;
	*end_ns = INT64_MIN;
	while ((more = weft_trace_next(trace, &events, &count)) > 0)
		*end_ns = events[count - 1].time_ns;
	const struct weft_trace_info *info = weft_trace_info(trace);
	if (info->has_died && info->until_ns > *end_ns)
		*end_ns = info->until_ns;
	weft_trace_rewind(trace);
	return more;
}

/* The cut that leaves the last of the trace; `state` is what is told there. */
static int cut(struct weft_trace_edit *edit, struct weft_state *state, struct weft_trace *trace, int64_t last_ns)
{
	int64_t end_ns;
	int status = find_end(trace, &end_ns);
	if (status < 0 || end_ns < INT64_MIN + last_ns)
		return status;
	edit->is_cut = true;
	edit->from_ns = end_ns - last_ns;
	status = weft_state_before(state, trace, edit->from_ns);
	edit->told = state->events.items;
	edit->told_count = state->events.count;
	return status;
}

int cli_save_scrubbed(const struct weft_trace *trace, struct weft_trace_edit *edit, struct weft_scrub *scrub,
    weft_trace_file_fn *put_file, void *ctx, struct weft_error *err)
{
	edit->text = learn;
	edit->ctx = scrub;
	int status = weft_trace_save(trace, edit, drop, NULL, err);
	edit->text = replace;
	if (status == WEFT_OK)
		status = weft_trace_save(trace, edit, put_file, ctx, err);
	if (status == WEFT_OK && scrub->no_memory)
		status = weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	return status;
}

/* Saves it as `edit` has it, which scrubs if `scrub` is not NULL. */
static int save(const struct cli_input *input, struct weft_trace_edit *edit, struct weft_scrub *scrub, const char *out)
{
	static const char end[2 * TAR_BLOCK];
	struct weft_error err;
	struct copy copy = {.out = out, .exit = -1};
	cli_progress_begin("saving", input->name);
	int status = scrub ? cli_save_scrubbed(input->trace, edit, scrub, put, &copy, &err)
			   : weft_trace_save(input->trace, edit, put, &copy, &err);
	cli_progress_end();
	if (copy.exit >= 0)
		return copy.exit;
	if (copy.is_directory)
		return cli_directory_end(&copy.directory, status, &err);
	if (!copy.is_stream)
		return cli_fail("%s: %s", out, err.what);
	bool is_archive = strcmp(weft_trace_info(input->trace)->format, "native") == 0;
	if (status == WEFT_OK && is_archive && cli_file_write(&copy.file, end, sizeof end))
		status = weft_error_set(&err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO));
	return cli_file_end(&copy.file, status, &err);
}

/* Without an edit the trace may be of any format. */
static int save_edited(const struct cli_input *input, bool is_scrubbed, int64_t last_ns, const char *out)
{
	struct weft_trace_edit edit = {.text = NULL};
	struct weft_state state = {0};
	struct weft_scrub scrub = {0};
	if (!is_scrubbed && last_ns < 0)
		return save(input, NULL, NULL, out);
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	if (strcmp(info->format, "native") != 0)
		return cli_fail("%s: --%s takes native traces; weft convert --to=native makes one of this", input->name,
		    is_scrubbed ? "scrub" : "last");
	const int status = last_ns < 0 ? WEFT_OK : cut(&edit, &state, input->trace, last_ns);
	const int exit = status < 0 ? cli_fail("%s: %s", input->name, weft_status_string(status))
				    : save(input, &edit, is_scrubbed ? &scrub : NULL, out);
	weft_scrub_finish(&scrub);
	weft_state_free(&state);
	return exit;
}

int cli_save(struct cli_args *args)
{
	const char *out = NULL, *pid = NULL, *ring = NULL;
	bool names = false, servers = false, scrub = false;
	int64_t last_ns = -1;
	const struct cli_option options[] = {
	    {"write", 'w', CLI_TEXT, &out, "OUT",
		"writes here: native a new directory, others a file; - is standard output, a directory as a tar archive"},
	    {"pid", 0, CLI_TEXT, &pid, "PID", "in place of TRACE: the ring in the memory of this process, which may hang"},
	    {"ring", 0, CLI_TEXT, &ring, "UUID",
		"takes the ring whose UUID begins like this, where an image of memory has several"},
	    {"last", 0, CLI_TIME, &last_ns, "TIME",
		"copies the last TIME alone, as 10s; what was pending when that began is told as pending"},
	    {"scrub", 0, CLI_FLAG, &scrub, NULL,
		"replaces names, labels, notes, errors, paths and addresses by stand-ins, before a trace goes to strangers"},
	    {"names", 0, CLI_FLAG, &names, NULL,
		"writes functions, files and lines of the program into the copy, for another machine"},
	    {"debuginfod", 0, CLI_FLAG, &servers, NULL, "with --names: asks the servers of DEBUGINFOD_URLS, too"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_AT_MOST_ONE);
	if (exit >= 0)
		return exit;
	if (!pid == !args->argc)
		return cli_fail(pid ? "save: --pid and a trace cannot be combined"
				    : "save: which trace?  usage: weft save [OPTIONS] TRACE -w OUT");
	if (!out)
		return cli_fail("save: where to?  -w OUT");
	struct cli_input input;
	const char *what = pid ? pid : args->argv[0], *recorded = pid || cli_is_process(what) ? cli_trace_of_process(what) : what;
	if (recorded)
		flight_ask(recorded);
	if (pid)
		exit = cli_open_process(&input, pid, ring);
	else
		exit = ring ? cli_open_image(&input, args->argv[0], ring) : cli_open(&input, args->argv[0]);
	if (exit >= 0)
		return exit;
	cli_tell_skipped(&input);
	if (names)
		cli_name_places(&input, servers);
	exit = save_edited(&input, scrub, last_ns, out);
	cli_close(&input);
	return exit;
}
