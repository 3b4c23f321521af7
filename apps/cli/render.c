/* render.c: implements weft render, which draws the promises into a picture file.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/explain.h"
#include "analysis/queries/type_table.h"
#include "backends/cairo/cairo.h"
#include "base/duration.h"
#include "base/vec.h"
#include "cli.h"
#include "layout/group.h"
#include "view/fold.h"
#include "viewer/flame_pane.h"

typedef WEFT_VEC(uint32_t) number_vec;

static bool add_promise(number_vec *promises, uint32_t promise)
{
	if (promise == WEFT_NONE || promise == WEFT_SYSTEM)
		return true;
	uint32_t *added = weft_vec_push(promises);
	if (added)
		*added = promise;
	return added;
}

/* Finds the promises of the first finding, and prints the finding's title.  Returns as cli_open(). */
static int mark_first_finding(const struct cli_input *input, bool keep_parts, number_vec *promises)
{
	/* Two models are built: findings need binds where they were created, and pictures where they were woken; promise indices
	 * are the same in both. */
	struct weft_model *model = NULL;
	struct weft_findings *findings = NULL;
	struct weft_error err;
	weft_trace_rewind(input->trace);
	int status = weft_model_build(
	    &model, input->trace, &(struct weft_model_options){.keep_binds = true, .keep_parts = keep_parts}, &err);
	if (status == WEFT_OK)
		status = weft_explain(&findings, model, NULL, &err);
	if (status == WEFT_OK && findings->count > 0) {
		const struct weft_finding *first = &findings->findings[0];
		cli_note("%s: %s", input->name, first->title);
		bool added = add_promise(promises, first->promise) && add_promise(promises, first->root);
		for (size_t i = 0; i < first->evidence_count && added; i++)
			added = add_promise(promises, first->evidence[i].promise);
		if (!added)
			status = weft_error_set(&err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	return status < 0 ? cli_fail_error(&err) : -1;
}

/* ---- The table below the picture ---- */

enum { TABLE_ROWS = 13 };

struct table_below {
	char texts[TABLE_ROWS * CLI_CELLS][CLI_CELL_BYTES];
	const char *cells[TABLE_ROWS * CLI_CELLS];
	struct weft_sheet sheet;
};

/* Fills the table below the picture with the drawn types of promises that took longest, up to a third of the picture's height.
 * Returns as cli_open(). */
static int fill_table(struct table_below *out, const struct weft_model *model, const struct weft_render_options *render)
{
	struct weft_promise_info *facts = NULL;
	struct weft_table *table = NULL;
	struct weft_error err;
	int status = weft_promise_info_create(&facts, model, &err);
	if (status == WEFT_OK)
		status = weft_table_create(&table, facts, render->has_from ? render->from_ns : INT64_MIN,
		    render->has_to ? render->to_ns : INT64_MAX, &err);
	if (status == WEFT_OK) {
		weft_table_sort(table, WEFT_TABLE_TOTAL);
		for (size_t i = 0; i < CLI_CELLS; i++)
			snprintf(out->texts[i], CLI_CELL_BYTES, "%s", cli_cell_headings[i]);
		for (size_t i = 0; i < TABLE_ROWS * CLI_CELLS; i++)
			out->cells[i] = out->texts[i];
		out->sheet = (struct weft_sheet){.rows = 1, .columns = CLI_CELLS, .cells = out->cells};
		while (out->sheet.rows < TABLE_ROWS && out->sheet.rows <= table->count &&
		       weft_sheet_px(&out->sheet) < render->height_px / 3.0) {
			const struct weft_table_row *row = &table->rows[out->sheet.rows - 1];
			char(*at)[CLI_CELL_BYTES] = &out->texts[out->sheet.rows * CLI_CELLS];
			cli_table_cells(at, model, row);
			out->sheet.rows++;
		}
	}
	weft_table_destroy(table);
	weft_promise_info_destroy(facts);
	return status < 0 ? cli_fail_error(&err) : -1;
}

/* Compares the stacks of an icicle graph with those of another trace.  *other_ns belongs to the caller.  Returns as cli_open().
 */
static int compare_stacks(
    struct weft_icicle *icicle, struct weft_blame_source *blamed, int64_t **other_ns, const char *path, enum weft_folded_by by)
{
	struct weft_stacks *other = NULL;
	struct weft_error err;
	struct cli_input input;
	int exit = cli_open(&input, path);
	if (exit >= 0)
		return exit;
	exit = cli_build_model(&input, 0);
	if (exit < 0 && weft_stacks_create(&other, input.model, by, false, &err) < 0)
		exit = cli_fail_error(&err);
	if (exit < 0 && !(*other_ns = calloc(icicle->count, sizeof **other_ns)))
		exit = cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	if (exit < 0 && weft_stacks_match(*other_ns, blamed->stacks, other, &err) < 0)
		exit = cli_fail_error(&err);
	if (exit < 0)
		weft_blame_compare(icicle, blamed, *other_ns, other->stacks[0].sum_ns, input.name);
	weft_stacks_destroy(other);
	cli_close(&input);
	return exit;
}

int cli_render(struct cli_args *args)
{
	struct weft_render_options render = {0};
	int size[2] = {1280, 720};
	const char *out = NULL;
	const char *focus = NULL, *fold = NULL, *group = NULL;
	static struct weft_folding folding;
	bool dark = false, explain = false, parts = false, table = false;
	const char *blame = NULL, *against = NULL;
	enum weft_folded_by blame_by = WEFT_FOLDED_BY_WAIT;
	static struct table_below below;
	struct weft_stacks *stacks = NULL;
	struct weft_blame_source blamed;
	struct weft_icicle icicle;
	int64_t *other_ns = NULL;
	number_vec marked = {0};
	render.from_ns = render.to_ns = -1;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "PICTURE", "write the picture here; the name ends in .svg, .png or .pdf"},
	    {"size", 0, CLI_SIZE, size, "WxH", "set the width and height in pixels (default: 1280x720)"},
	    {"from", 0, CLI_TIME, &render.from_ns, "T",
		"draw only the part of the trace after this time, such as 30ms since the first event"},
	    {"to", 0, CLI_TIME, &render.to_ns, "T", "draw only the part of the trace before this time"},
	    {"find", 0, CLI_TEXT, &render.find, "TEXT",
		"highlight the promises that match: a text, kind:bind, id:18, failed, pending, longer:5ms"},
	    {"focus", 0, CLI_TEXT, &focus, "ID",
		"draw only this promise, the promises that belong to it, those that it waited for and its waiters"},
	    {"fold", 0, CLI_TEXT, &fold, "TEXT",
		"fold the promises that match: draw one line for each actor, or for each kind and track"},
	    {"group", 0, CLI_TEXT, &group, "kind|site|library|thread",
		"group rows by this (default: thread, which is the OS thread)"},
	    {"unfolded", 0, CLI_FLAG, &render.unfolded, NULL, "do not fold tracks automatically when rows get low"},
	    {"fold-sleep", 0, CLI_FLAG, &render.fold_sleep, NULL,
		"draw intervals in which nothing ran as narrow gaps with their length"},
	    {"explain", 0, CLI_FLAG, &explain, NULL,
		"highlight the promises of the first finding of weft explain, and print its title"},
	    {"table", 0, CLI_FLAG, &table, NULL, "draw a table of the number and duration of promises of each type"},
	    {"blame", 0, CLI_WORD, &blame, "wait|run|function|allocated|held",
		"draw where waiting time went (default), or running time, which functions ran in long runs, or which allocated "
		"memory, or memory that was not freed: each part is as wide as its share"},
	    {"against", 0, CLI_TEXT, &against, "TRACE",
		"with --blame: draw parts red whose share is larger than in this trace, and blue if it is smaller"},
	    CLI_OPTION_PARTS(&parts),
	    {"no-metrics", 0, CLI_FLAG, &render.no_metrics, NULL, "leave out the counters"},
	    {"no-threads", 0, CLI_FLAG, &render.no_threads, NULL,
		"do not draw when OS threads were on CPU (in traces of weft record --kernel)"},
	    {"dark", 0, CLI_FLAG, &dark, NULL, "draw light on dark"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!out)
		return cli_fail_verb("render", "no output; use -o PICTURE, which ends in .svg, .png or .pdf");
	if (weft_picture_from_path(&render.picture, out) < 0)
		return cli_fail_verb("render", "unknown picture format: %s; use a name that ends in .svg, .png or .pdf", out);
	if (explain && render.find)
		return cli_fail_verb("render", "--explain and --find cannot be combined");
	struct weft_query query;
	struct weft_error err;
	if (render.find && weft_query_parse(&query, render.find, strlen(render.find), &err) < 0)
		return cli_fail_verb("render", "--find=%s: %s", render.find, err.what);
	if (fold && weft_query_parse(&query, fold, strlen(fold), &err) < 0)
		return cli_fail_verb("render", "--fold=%s: %s", fold, err.what);
	if (fold && !weft_folding_toggle(&folding, fold))
		return cli_fail_verb("render", "empty search: --fold=%s", fold);
	if (group && !weft_rows_by_parse(&folding.rows_by, group, strlen(group)))
		return cli_fail_verb("render", "unknown value: --group=%s; use kind, site, library or thread", group);
	if (blame && *blame && !weft_folded_find(&blame_by, blame, strlen(blame)))
		return cli_fail_verb("render", "unknown value: --blame=%s; use wait, run, function, allocated or held", blame);
	if (against && !blame)
		return cli_fail_verb("render", "--against needs --blame");
	render.folding = &folding;
	render.has_from = render.from_ns >= 0;
	render.has_to = render.to_ns >= 0;
	if (render.has_from && render.has_to && render.from_ns >= render.to_ns)
		return cli_fail_verb("render", "--from is not before --to");
	render.width_px = size[0];
	render.height_px = size[1];
	render.theme = dark ? WEFT_THEME_DARK : WEFT_THEME_LIGHT;

	struct cli_input input;
	exit = cli_open_joined(&input, args);
	if (exit >= 0)
		return exit;
	exit = cli_build_model(&input, parts ? CLI_KEEP_PARTS : 0);
	if (exit < 0 && render.from_ns > input.model->end_ns) {
		char end[CLI_DURATION_BYTES];
		exit = cli_fail(
		    "%s: the trace ends at %s, before --from", input.name, cli_format_duration(end, input.model->end_ns));
	}
	if (exit < 0 && focus)
		exit = cli_find_promise(&input, focus, &render.focus);
	if (exit < 0 && focus && render.focus == WEFT_SYSTEM)
		exit = cli_fail_verb("render", "not a promise but the system: --focus=%s", focus);
	if (exit < 0 && explain && (exit = mark_first_finding(&input, parts, &marked)) < 0) {
		render.marked = marked.items;
		render.marked_count = marked.count;
	}
	weft_duration_set_ascii(false); /* pictures can show all characters, unlike a terminal */
	if (exit < 0 && table && (exit = fill_table(&below, input.model, &render)) < 0)
		render.sheet = &below.sheet;
	if (exit < 0 && blame && weft_stacks_create(&stacks, input.model, blame_by, false, &err) < 0)
		exit = cli_fail_error(&err);
	if (exit < 0 && blame) {
		icicle = weft_blame_icicle(&blamed, stacks, blame_by);
		render.icicle = &icicle;
	}
	if (exit < 0 && against)
		exit = compare_stacks(&icicle, &blamed, &other_ns, against, blame_by);
	if (exit < 0) {
		size_t found = 0;
		cli_progress_begin("drawing", out);
		int status = weft_render_file(input.model, &render, out, &found, &err);
		cli_progress_end();
		if (status < 0)
			exit = cli_fail("%s: %s", out, err.what);
		else
			exit = CLI_OK;
		if (exit == CLI_OK && render.find && found == 0)
			cli_note("%s: no promise matches \"%s\"", input.name, render.find);
	}
	weft_vec_free(&marked);
	weft_stacks_destroy(stacks);
	free(other_ns);
	cli_close(&input);
	return exit;
}
