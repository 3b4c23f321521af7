/* convert.c: implements weft convert: writes a trace in another format.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/path.h"
#include "analysis/queries/flame_stacks.h"
#include "apps/cli/feature_list.h"
#include "apps/cli/otlp.h"
#include "apps/cli/sqlite.h"
#include "cli.h"
#include "export/export.h"
#include "layout/layout.h"

/* Prints one note about everything of the trace that the format cannot express. */
static void note_losses(const char *out, const char *format, const struct weft_losses *losses)
{
	char text[512];
	size_t length = 0;
	for (int i = 0; i < WEFT_LOSS_COUNT; i++)
		if (losses->counts[i] > 0 && length < sizeof text)
			length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64 " %s",
			    length > 0 ? ", " : "", losses->counts[i], weft_loss_text((enum weft_loss)i));
	if (length > 0)
		cli_note("%s: not expressible in %s and dropped: %s", out, format, text);
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

static int export_firefox(
    const struct cli_input *input, struct cli_file *file, struct weft_losses *losses, struct weft_error *err)
{
	return weft_export_firefox(input->trace, input->model, cli_file_write, file, losses, err);
}

/* Writes one file.  If no model was built before, the damaged parts of the trace are noted now. */
static int write_file(const struct cli_input *input, const char *out, const char *format, export_fn *export)
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
		cli_note_skipped(input);
	if (exit == CLI_OK)
		note_losses(file.name, format, &losses);
	return exit;
}

static int write_native(const struct cli_input *input, const char *out)
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
	cli_note_skipped(input);
	if (exit == CLI_OK)
		note_losses(out, "native", &losses);
	return exit;
}

/* ---- Perfetto ---- */

/* Finds the promises of the critical path that ends with promise `id` (the user's text), as bits of an array.  Returns as
 * cli_open(). */
static int find_critical_path(uint64_t **out, const struct cli_input *input, const char *id)
{
	const struct weft_model *m = input->model;
	uint32_t promise;
	struct weft_path *path;
	struct weft_error err;
	int exit = cli_find_promise(input, id, &promise);
	if (exit >= 0)
		return exit;
	if (weft_path_create(&path, m, promise, &err) < 0)
		return err.status == WEFT_ENOTFOUND ? cli_fail("%s: promise %s has not ended", input->name, id)
						    : cli_fail_error(&err);
	uint64_t *bits = calloc(m->promise_count / 64 + 1, sizeof *bits);
	for (size_t i = 0; bits && i < path->count; i++) {
		const uint32_t of_step[] = {path->steps[i].promise, path->steps[i].delayed_by, path->steps[i].holder};
		for (size_t k = 0; k < sizeof of_step / sizeof *of_step; k++)
			if (of_step[k] != WEFT_NONE)
				bits[of_step[k] / 64] |= UINT64_C(1) << of_step[k] % 64;
	}
	weft_path_destroy(path);
	*out = bits;
	return bits ? -1 : cli_fail("out of memory");
}

/* Computes the rows of all promises, without folds.  Returns NULL after printing the error. */
static struct weft_layout *create_layout(const struct weft_model *m)
{
	struct weft_layout *layout = NULL;
	struct weft_error err;
	uint32_t *alone = malloc((m->promise_count + 1) * sizeof *alone);
	if (alone)
		memset(alone, 0xff, (m->promise_count + 1) * sizeof *alone); /* all WEFT_NONE */
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
	struct weft_layout *layout = create_layout(m);
	struct weft_losses losses = {0};
	struct weft_perfetto_stats perfetto_stats = {0};
	struct weft_error err;
	struct cli_file file;
	if (!layout)
		return CLI_ERROR;
	int exit = cli_file_begin(&file, out);
	if (exit < 0) {
		const struct weft_perfetto_rows rows = {
		    layout->by_row, layout->row_begin[layout->row_count], layout->rows, layout->row_count};
		cli_progress_begin("writing", file.name);
		int status = weft_export_perfetto(
		    input->trace, m, &rows, flows, only, cli_file_write, &file, &losses, &perfetto_stats, &err);
		cli_progress_end();
		exit = cli_file_end(&file, status, &err);
	}
	if (exit == CLI_OK) {
		cli_note("%s: %" PRIu64 " slices, %" PRIu64 " arrows; a click reaches at most %" PRIu32 " slices", file.name,
		    perfetto_stats.slices, perfetto_stats.arrows, perfetto_stats.largest);
		note_losses(file.name, "perfetto", &losses);
	}
	weft_layout_destroy(layout);
	return exit;
}

static int convert_to_perfetto(const struct cli_input *input, const char *out, const char *flows)
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
		exit = find_critical_path(&only, input, flows + sizeof path - 1);
	if (exit < 0)
		exit = write_perfetto(input, out, which, only);
	free(only);
	return exit;
}

/* ---- Stacks for flame graphs ---- */

static int write_stack(void *ctx, const char *const *frames, size_t count, int64_t sum_ns)
{
	char end[32];
	int failed = 0;
	for (size_t i = 0; i < count && !failed; i++)
		failed = (i > 0 && cli_file_write(ctx, ";", 1)) || cli_file_write(ctx, frames[i], strlen(frames[i]));
	return failed || cli_file_write(ctx, end, (size_t)snprintf(end, sizeof end, " %" PRId64 "\n", sum_ns));
}

static int write_folded(const struct cli_input *input, const char *out, enum weft_folded_by by)
{
	struct weft_error err;
	struct cli_file file;
	int exit = cli_file_begin(&file, out);
	return exit >= 0 ? exit : cli_file_end(&file, weft_folded(input->model, by, write_stack, &file, &err), &err);
}

/* ---- A database ---- */

static int write_sqlite(const struct cli_input *input, const char *out)
{
#ifdef WEFT_HAS_SQLITE
	return cli_write_sqlite(input->model, create_layout, out);
#else
	return cli_fail_without("convert", CLI_FEATURE_SQLITE);
#endif
}

/* ---- OpenTelemetry ---- */

static int write_otlp(const struct cli_input *input, const char *out)
{
	struct weft_losses losses;
	const int exit = cli_otlp_write(input, out, &losses);
	if (exit == CLI_OK)
		note_losses(out, "otlp", &losses);
	return exit;
}

/* ---- The verb ---- */

enum format { MIRAGE, NATIVE, PERFETTO, CHROME, FIREFOX, FOLDED, SQLITE, OTLP, FORMAT_COUNT };
static const char *const formats[FORMAT_COUNT] = {[MIRAGE] = "mirage",
    [NATIVE] = "native",
    [PERFETTO] = "perfetto",
    [CHROME] = "chrome",
    [FIREFOX] = "firefox",
    [FOLDED] = "folded",
    [SQLITE] = "sqlite",
    [OTLP] = "otlp"};

static enum format parse_format(const char *name)
{
	int i = 0;
	while (i < FORMAT_COUNT && strcmp(formats[i], name) != 0)
		i++;
	return (enum format)i;
}

static bool is_flows_option(const char *flows)
{
	return strcmp(flows, "wakeups") == 0 || strcmp(flows, "none") == 0 || strcmp(flows, "all") == 0 ||
	       (strncmp(flows, "path:", 5) == 0 && flows[5]);
}

int cli_convert(struct cli_args *args)
{
	const char *out = NULL, *name = NULL, *flows = NULL, *by = NULL;
	enum weft_folded_by measure = WEFT_FOLDED_BY_RUN;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "OUT", "write to this file, or - for standard output; native: to this new directory"},
	    {"to", 0, CLI_TEXT, &name, "mirage|native|perfetto|chrome|firefox|folded|sqlite|otlp",
		"write this format: perfetto for ui.perfetto.dev, chrome for older tools, firefox for profiler.firefox.com, "
		"folded for flame graphs, otlp for OpenTelemetry"},
	    {"by", 0, CLI_TEXT, &by, "run|wait|function|allocated|held",
		"folded: measure how long promises ran (default), how long they waited, which functions ran in long runs, "
		"or which allocated memory, or memory that was not freed"},
	    {"flows", 0, CLI_TEXT, &flows, "wakeups|path:ID|none|all",
		"perfetto: choose the arrows that are written (default: wakeups)"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!name)
		return cli_fail_verb(
		    "convert", "no format; use --to=mirage, native, perfetto, chrome, firefox, folded, sqlite or otlp");
	const enum format format = parse_format(name);
	if (format == FORMAT_COUNT)
		return cli_fail_verb("convert",
		    "unknown format: --to=%s; use mirage, native, perfetto, chrome, firefox, folded, sqlite or otlp", name);
	if (flows && format != PERFETTO)
		return cli_fail_verb("convert", "--flows needs --to=perfetto");
	if (flows && !is_flows_option(flows))
		return cli_fail_verb("convert", "unknown value: --flows=%s; use wakeups, path:ID, none or all", flows);
	if (by && format != FOLDED)
		return cli_fail_verb("convert", "--by needs --to=folded");
	if (by && !weft_folded_find(&measure, by, strlen(by)))
		return cli_fail_verb("convert", "unknown value: --by=%s; use run, wait, function, allocated or held", by);
	if (!out)
		return cli_fail_verb("convert", "no output; use -o OUT");
	if (format == NATIVE && strcmp(out, "-") == 0)
		return cli_fail_verb("convert", "a native trace is a directory and cannot go to standard output; use -o OUT");

	struct cli_input input;
	const bool has_model = format != MIRAGE && format != NATIVE;
	if (!has_model && args->argc > 1)
		return cli_fail_verb("convert", "--to=%s can hold only one trace; use weft merge to join several traces", name);
	exit = has_model ? cli_open_model(&input, args, CLI_KEEP_BINDS) : cli_open(&input, args->argv[0]);
	if (exit < 0 && !has_model)
		exit = cli_check_events(&input);
	if (exit >= 0)
		return exit;
	exit = format == NATIVE     ? write_native(&input, out)
	       : format == PERFETTO ? convert_to_perfetto(&input, out, flows)
	       : format == CHROME   ? write_file(&input, out, name, export_chrome)
	       : format == FIREFOX  ? write_file(&input, out, name, export_firefox)
	       : format == FOLDED   ? write_folded(&input, out, measure)
	       : format == SQLITE   ? write_sqlite(&input, out)
	       : format == OTLP     ? write_otlp(&input, out)
				    : write_file(&input, out, name, export_mirage);
	cli_close(&input);
	return exit;
}
