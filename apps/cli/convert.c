/* convert.c: weft convert: the trace in another format.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/folded.h"
#include "analysis/path.h"
#include "apps/cli/sqlite.h"
#include "cli.h"
#include "export/export.h"
#include "layout/layout.h"

/* One note for all that the format has no place for. */
static void tell_losses(const char *out, const char *format, const struct weft_losses *losses)
{
	char text[512];
	size_t length = 0;
	for (int i = 0; i < WEFT_LOSS_COUNT; i++)
		if (losses->counts[i] > 0 && length < sizeof text)
			length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64 " %s",
			    length > 0 ? ", " : "", losses->counts[i], weft_loss_text((enum weft_loss)i));
	if (length > 0)
		cli_note("%s: %s has no place for: %s", out, format, text);
}

typedef int export_fn(const struct cli_input *input, struct cli_file *file, struct weft_losses *losses, struct weft_error *err);

static int export_mirage(const struct cli_input *input, struct cli_file *file, struct weft_losses *losses, struct weft_error *err)
{
	return weft_export_mirage(input->trace, cli_file_write, file, losses, err);
}

static int export_chrome(const struct cli_input *input, struct cli_file *file, struct weft_losses *losses, struct weft_error *err)
{
	return weft_export_chrome(input->trace, input->model, cli_file_write, file, losses, err);
}

/* What is no model was not read before: what of it is damaged is told now. */
static int to_file(const struct cli_input *input, const char *out, const char *format, export_fn *export)
{
	struct weft_losses losses;
	struct weft_error err;
	struct cli_file file;
	int exit = cli_file_begin(&file, out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", file.name);
	int status = export(input, &file, &losses, &err);
	cli_progress_end();
	exit = cli_file_end(&file, status, &err);
	if (!input->model)
		cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(file.name, format, &losses);
	return exit;
}

static int to_native(const struct cli_input *input, const char *out)
{
	struct weft_losses losses;
	struct weft_error err;
	struct cli_directory dir;
	int exit = cli_directory_begin(&dir, out);
	if (exit >= 0)
		return exit;
	cli_progress_begin("writing", out);
	int status = weft_export_native(input->trace, cli_directory_write, &dir, &losses, &err);
	cli_progress_end();
	exit = cli_directory_end(&dir, status, &err);
	cli_tell_skipped(input);
	if (exit == CLI_FINE)
		tell_losses(out, "native", &losses);
	return exit;
}

/* ---- Perfetto ---- */

/* The promises of a critical path as bits; `id` as the user typed it.  Returns as cli_open(). */
static int find_path(uint64_t **out, const struct cli_input *input, const char *id)
{
	const struct weft_model *m = input->model;
	uint32_t promise;
	struct weft_path *path;
	struct weft_error err;
	int exit = cli_find_promise(input, id, &promise);
	if (exit >= 0)
		return exit;
	if (weft_path_create(&path, m, promise, &err) < 0)
		return err.status == WEFT_ENOTFOUND ? cli_fail("%s: promise %s has not come to its end", input->name, id)
						    : cli_fail_error(&err);
	uint64_t *bits = calloc(m->promise_count / 64 + 1, sizeof *bits);
	for (size_t i = 0; bits && i < path->count; i++) {
		const uint32_t of_step[] = {path->steps[i].promise, path->steps[i].behind, path->steps[i].holder};
		for (size_t k = 0; k < sizeof of_step / sizeof *of_step; k++)
			if (of_step[k] != WEFT_NONE)
				bits[of_step[k] / 64] |= UINT64_C(1) << of_step[k] % 64;
	}
	weft_path_destroy(path);
	*out = bits;
	return bits ? -1 : cli_fail("out of memory");
}

/* What folds has lines of its own there.  NULL: the error has been told. */
static struct weft_layout *lay_out(const struct weft_model *m)
{
	struct weft_layout *layout = NULL;
	struct weft_error err;
	uint32_t *alone = malloc((m->promise_count + 1) * sizeof *alone);
	if (alone)
		memset(alone, 0xff, (m->promise_count + 1) * sizeof *alone); /* WEFT_NONE */
	if (!alone)
		cli_fail("out of memory");
	else if (weft_layout_create_folded(&layout, m, NULL, NULL, alone, &err) < 0)
		cli_fail_error(&err);
	free(alone);
	return layout;
}

static int write_perfetto(const struct cli_input *input, const char *out, enum weft_flows flows, const uint64_t *only)
{
	const struct weft_model *m = input->model;
	struct weft_layout *layout = lay_out(m);
	struct weft_losses losses = {0};
	struct weft_perfetto_told told = {0};
	struct weft_error err;
	struct cli_file file;
	if (!layout)
		return CLI_TROUBLE;
	int exit = cli_file_begin(&file, out);
	if (exit < 0) {
		const struct weft_perfetto_rows rows = {
		    layout->by_row, layout->row_begin[layout->row_count], layout->rows, layout->row_count};
		cli_progress_begin("writing", file.name);
		int status =
		    weft_export_perfetto(input->trace, m, &rows, flows, only, cli_file_write, &file, &losses, &told, &err);
		cli_progress_end();
		exit = cli_file_end(&file, status, &err);
	}
	if (exit == CLI_FINE) {
		cli_note("%s: %" PRIu64 " slices, %" PRIu64 " arrows; a click reaches at most %" PRIu32 " slices", file.name,
		    told.slices, told.arrows, told.largest);
		tell_losses(file.name, "perfetto", &losses);
	}
	weft_layout_destroy(layout);
	return exit;
}

static int to_perfetto(const struct cli_input *input, const char *out, const char *flows)
{
	static const char path[] = "path:";
	uint64_t *only = NULL;
	int exit = -1;
	enum weft_flows which = WEFT_FLOWS_WAKEUPS;
	if (flows && strcmp(flows, "none") == 0)
		which = WEFT_FLOWS_NONE;
	else if (flows && strcmp(flows, "all") == 0)
		which = WEFT_FLOWS_ALL;
	else if (flows && strncmp(flows, path, sizeof path - 1) == 0)
		exit = find_path(&only, input, flows + sizeof path - 1);
	if (exit < 0)
		exit = write_perfetto(input, out, which, only);
	free(only);
	return exit;
}

/* ---- Stacks for flame graphs ---- */

static int put_stack(void *ctx, const char *const *frames, size_t count, int64_t sum_ns)
{
	char end[32];
	int failed = 0;
	for (size_t i = 0; i < count && !failed; i++)
		failed = (i > 0 && cli_file_write(ctx, ";", 1)) || cli_file_write(ctx, frames[i], strlen(frames[i]));
	return failed || cli_file_write(ctx, end, (size_t)snprintf(end, sizeof end, " %" PRId64 "\n", sum_ns));
}

static int to_folded(const struct cli_input *input, const char *out, const char *by)
{
	struct weft_error err;
	struct cli_file file;
	const enum weft_folded_by which = by && strcmp(by, "wait") == 0 ? WEFT_FOLDED_BY_WAIT : WEFT_FOLDED_BY_RUN;
	int exit = cli_file_begin(&file, out);
	return exit >= 0 ? exit : cli_file_end(&file, weft_folded(input->model, which, put_stack, &file, &err), &err);
}

/* ---- A database ---- */

static int to_sqlite(const struct cli_input *input, const char *out)
{
#ifdef WEFT_HAS_SQLITE
	return cli_write_sqlite(input->model, lay_out, out);
#else
	return cli_fail("convert: this weft was built without SQLite");
#endif
}

/* ---- The verb ---- */

enum format { MIRAGE, NATIVE, PERFETTO, CHROME, FOLDED, SQLITE, FORMATS };
static const char *const formats[FORMATS] = {[MIRAGE] = "mirage",
    [NATIVE] = "native",
    [PERFETTO] = "perfetto",
    [CHROME] = "chrome",
    [FOLDED] = "folded",
    [SQLITE] = "sqlite"};

static enum format format_of(const char *name)
{
	int i = 0;
	while (i < FORMATS && strcmp(formats[i], name) != 0)
		i++;
	return (enum format)i;
}

static bool is_flows(const char *flows)
{
	return strcmp(flows, "wakeups") == 0 || strcmp(flows, "none") == 0 || strcmp(flows, "all") == 0 ||
	       (strncmp(flows, "path:", 5) == 0 && flows[5]);
}

int cli_convert(struct cli_args *args)
{
	const char *out = NULL, *name = NULL, *flows = NULL, *by = NULL;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "OUT", "writes here: a file, or - for standard output; native a new directory"},
	    {"to", 0, CLI_TEXT, &name, "mirage|native|perfetto|chrome|folded|sqlite",
		"the format; perfetto is for ui.perfetto.dev, chrome JSON for older tools, folded for flame graphs"},
	    {"by", 0, CLI_TEXT, &by, "run|wait",
		"folded: how long promises ran, or what they waited for; run unless told otherwise"},
	    {"flows", 0, CLI_TEXT, &flows, "wakeups|path:ID|none|all",
		"perfetto: which arrows; those of who is woken, unless told otherwise"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!name)
		return cli_fail("convert: to which format?  --to=mirage, native, perfetto, chrome, folded or sqlite");
	const enum format format = format_of(name);
	if (format == FORMATS)
		return cli_fail("convert: --to=%s: the formats are mirage, native, perfetto, chrome, folded and sqlite", name);
	if (flows && format != PERFETTO)
		return cli_fail("convert: --flows is for --to=perfetto");
	if (flows && !is_flows(flows))
		return cli_fail("convert: --flows=%s: it is wakeups, path:ID, none or all", flows);
	if (by && format != FOLDED)
		return cli_fail("convert: --by is for --to=folded");
	if (by && strcmp(by, "run") != 0 && strcmp(by, "wait") != 0)
		return cli_fail("convert: --by=%s: it is run or wait", by);
	if (!out)
		return cli_fail("convert: where to?  -o OUT");
	if (format == NATIVE && strcmp(out, "-") == 0)
		return cli_fail("convert: a native trace is a directory, and cannot go to standard output: -o OUT");

	struct cli_input input;
	const bool has_model = format != MIRAGE && format != NATIVE;
	if (!has_model && args->argc > 1)
		return cli_fail("convert: --to=%s has place for one trace; weft merge puts several into one directory", name);
	exit = has_model ? cli_open_model(&input, args, CLI_KEEP_BINDS) : cli_open(&input, args->argv[0]);
	if (exit < 0 && !has_model)
		exit = cli_check_events(&input);
	if (exit >= 0)
		return exit;
	exit = format == NATIVE     ? to_native(&input, out)
	       : format == PERFETTO ? to_perfetto(&input, out, flows)
	       : format == CHROME   ? to_file(&input, out, name, export_chrome)
	       : format == FOLDED   ? to_folded(&input, out, by)
	       : format == SQLITE   ? to_sqlite(&input, out)
				    : to_file(&input, out, name, export_mirage);
	cli_close(&input);
	return exit;
}
