/* save.c: implements weft save, which copies a trace.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "export/scrub.h"
#include "kernel/flight.h"
#include "model/live_state.h"
#include "trace/trace.h"

/* A copy that is being written. */
struct copy {
	const char *out;
	bool is_directory, is_stream;
	struct cli_directory directory;
	struct cli_file file;
	int exit; /* exit status of an error that was printed; -1 without an error */
};

/* Writes one file of the copied trace.  The first file decides whether the copy is a directory. */
static int write_entry(void *ctx, const char *name, const void *bytes, size_t size)
{
	struct copy *copy = ctx;
	bool is_stdout = strcmp(copy->out, "-") == 0;
	if (!copy->is_directory && !copy->is_stream) {
		copy->is_directory = *name && !is_stdout;
		copy->is_stream = !copy->is_directory;
		copy->exit = copy->is_directory ? cli_directory_begin(&copy->directory, copy->out)
						: cli_file_begin_private(&copy->file, copy->out);
		if (copy->exit >= 0)
			return -1;
	}
	if (copy->is_directory)
		return cli_directory_write(&copy->directory, name, bytes, size);
	return *name ? cli_tar_write(cli_file_write, &copy->file, name, bytes, size) : cli_file_write(&copy->file, bytes, size);
}

/* ---- Changes that the copy contains ---- */

static void learn_text(void *scrub, char *text, uint32_t bytes)
{
	weft_scrub_learn(scrub, text, bytes);
}

static void replace_text(void *scrub, char *text, uint32_t bytes)
{
	weft_scrub_replace(scrub, text, bytes);
}

static int discard_file(void *ctx, const char *name, const void *bytes, size_t size)
{
	(void)ctx, (void)name, (void)bytes, (void)size;
	return 0;
}

/* Finds the end time of the trace, and rewinds the trace to its first event. */
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

/* Prepares a copy of only the last part of the trace; `state` gets the program's state at the start of that part. */
static int cut_trace(struct weft_trace_edit *edit, struct weft_checkpoint *state, struct weft_trace *trace, int64_t last_ns)
{
	int64_t end_ns;
	int status = find_end(trace, &end_ns);
	if (status < 0 || end_ns < INT64_MIN + last_ns)
		return status;
	edit->is_cut = true;
	edit->from_ns = end_ns - last_ns;
	status = weft_checkpoint_before(state, trace, edit->from_ns);
	edit->checkpoint = state->events.items;
	edit->checkpoint_count = state->events.count;
	return status;
}

int cli_save_scrubbed(const struct weft_trace *trace, struct weft_trace_edit *edit, struct weft_scrub *scrub,
    weft_trace_file_fn *put_file, void *ctx, struct weft_error *err)
{
	edit->text = learn_text;
	edit->ctx = scrub;
	int status = weft_trace_save(trace, edit, discard_file, NULL, err);
	edit->text = replace_text;
	if (status == WEFT_OK)
		status = weft_trace_save(trace, edit, put_file, ctx, err);
	if (status == WEFT_OK && scrub->no_memory)
		status = weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	return status;
}

/* Saves the trace with the changes in `edit`; scrubs it if `scrub` is not NULL. */
static int save_copy(const struct cli_input *input, struct weft_trace_edit *edit, struct weft_scrub *scrub, const char *out)
{
	static const char end[2 * CLI_TAR_BLOCK];
	struct weft_error err;
	struct copy copy = {.out = out, .exit = -1};
	cli_progress_begin("saving", input->name);
	int status = scrub ? cli_save_scrubbed(input->trace, edit, scrub, write_entry, &copy, &err)
			   : weft_trace_save(input->trace, edit, write_entry, &copy, &err);
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

/* Saves the trace.  A trace that is saved without changes may have any format. */
static int save_edited(const struct cli_input *input, bool is_scrubbed, int64_t last_ns, const char *out)
{
	struct weft_trace_edit edit = {.text = NULL};
	struct weft_checkpoint state = {0};
	struct weft_scrub scrub = {0};
	if (!is_scrubbed && last_ns < 0)
		return save_copy(input, NULL, NULL, out);
	const struct weft_trace_info *info = weft_trace_info(input->trace);
	if (strcmp(info->format, "native") != 0)
		return cli_fail("%s: --%s needs a native trace; use weft convert --to=native first", input->name,
		    is_scrubbed ? "scrub" : "last");
	const int status = last_ns < 0 ? WEFT_OK : cut_trace(&edit, &state, input->trace, last_ns);
	const int exit = status < 0 ? cli_fail("%s: %s", input->name, weft_status_string(status))
				    : save_copy(input, &edit, is_scrubbed ? &scrub : NULL, out);
	weft_scrub_finish(&scrub);
	weft_checkpoint_free(&state);
	return exit;
}

int cli_save(struct cli_args *args)
{
	const char *out = NULL, *pid = NULL, *ring = NULL;
	bool names = false, servers = false, scrub = false;
	int64_t last_ns = -1;
	const struct cli_option options[] = {
	    {"write", 'w', CLI_TEXT, &out, "OUT",
		"write to this new directory (native trace) or file; - is standard output (a directory as a tar archive)"},
	    {"pid", 0, CLI_TEXT, &pid, "PID", "copy the ring buffer in the memory of this process, instead of TRACE"},
	    {"ring", 0, CLI_TEXT, &ring, "UUID",
		"copy the ring buffer with a UUID that starts with this text, if a memory image has several"},
	    {"last", 0, CLI_TIME, &last_ns, "TIME",
		"copy only the last TIME, such as 10s; keep promises that were pending at its start"},
	    {"scrub", 0, CLI_FLAG, &scrub, NULL,
		"replace names, labels, notes, errors, paths and addresses by placeholders, so that the trace can be shared"},
	    {"names", 0, CLI_FLAG, &names, NULL,
		"write functions, files and lines of the program into the copy, so that another machine can show them"},
	    {"debuginfod", 0, CLI_FLAG, &servers, NULL, "with --names: also ask the servers of DEBUGINFOD_URLS"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ONE_OR_NONE);
	if (exit >= 0)
		return exit;
	if (!pid == !args->argc)
		return cli_fail_verb(
		    "save", pid ? "--pid and a trace cannot be combined" : "no trace; usage: weft save [OPTIONS] TRACE -w OUT");
	if (!out)
		return cli_fail_verb("save", "no output; use -w OUT");
	struct cli_input input;
	const char *what = pid ? pid : args->argv[0];
	const bool is_process = pid || open_class_of(what) == OPEN_PROCESS;
	char *recorded = is_process ? open_directory_of_process(what) : strdup(what);
	if (recorded)
		weft_kernel_flight_request(recorded, cli_note);
	free(recorded);
	if (pid || ring)
		exit = cli_open_ring(&input, pid ? OPEN_PROCESS : OPEN_IMAGE, what, ring);
	else
		exit = cli_open(&input, what);
	if (exit >= 0)
		return exit;
	cli_note_skipped(&input);
	if (names)
		cli_find_site_names(&input, servers);
	exit = save_edited(&input, scrub, last_ns, out);
	cli_close(&input);
	return exit;
}
