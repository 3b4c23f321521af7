/* live_panel.c: fills the side panel with live tables (see live_panel.h).  SPDX-License-Identifier: ISC */
#include "viewer/live_panel.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "viewer/live_private.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

enum { MORE_ROWS = 50, GROUP_ROWS = 10, MAX_DEPTH = 12, TABLES = WEFT_LIVE_FINDINGS };
#define LAST_NS INT64_C(1000000000) /* length in ns of the interval before the moment, as in weft top */

/* Number of rows of each table that are listed at first. */
static const uint8_t first[TABLES] = {[WEFT_LIVE_GROUPS] = 6,
    [WEFT_LIVE_TREE] = 10,
    [WEFT_LIVE_WAITS] = 8,
    [WEFT_LIVE_LATE] = 5,
    [WEFT_LIVE_THREADS] = 8,
    [WEFT_LIVE_COUNTERS] = 8};
_Static_assert(
    sizeof first / sizeof *first == sizeof((struct weft_viewer *)0)->live_extra_rows / sizeof(uint32_t), "a number each");

static int ensure_live(struct weft_viewer *v, struct weft_error *err)
{
	return v->live ? WEFT_OK : weft_live_create_from_facts(&v->live, v->facts, NULL, v->model->end_ns, LAST_NS, err);
}

static int build_table(const struct weft_viewer *v, enum weft_live_table table, uint64_t sort, struct weft_error *err)
{
	const struct weft_live_request request = {.table = table, .sort = sort};
	return weft_live_build_rows(v->live, &request, err);
}

/* Returns the promise of row i of the table that was built last, or WEFT_NONE. */
static uint32_t promise_of(const struct weft_viewer *v, const struct weft_live_row *row, size_t i)
{
	const struct weft_live *live = v->live;
	const uint32_t promise =
	    live->request.table == WEFT_LIVE_THREADS ? live->priv->ran_last[live->lines[i].number] : row->promise;
	return weft__viewer_is_selectable(v, promise) ? promise : WEFT_NONE;
}

/* Returns the number of the column that contains the name of a row. */
static size_t name_of(enum weft_live_table table)
{
	size_t c = 0, count;
	const struct weft_live_column *columns = weft_live_columns(table, &count);
	while (c + 1 < count && columns[c].width > 0)
		c++;
	return c;
}

/* Returns whether a cell says something to the user; a count of 0 does not. */
static bool is_worth_writing(const struct weft_live_column *column, const char *cell)
{
	const bool is_count = column->before && column->after[0];
	return column->before && cell[0] && strcmp(cell, "?") != 0 && !(is_count && strcmp(cell, "0") == 0);
}

/* Writes the cells of a row as text, such as "12 in flight · 3 ended". */
static size_t write_cells(struct weft__writer *w, const struct weft_live_row *row)
{
	char text[600] = "";
	size_t count, length = 0;
	const struct weft_live_column *columns = weft_live_columns(w->v->live->request.table, &count);
	for (size_t c = 0; c < count && length < sizeof text; c++)
		if (is_worth_writing(&columns[c], row->cells[c]))
			length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%s", length ? " \xc2\xb7 " : "",
			    columns[c].before, row->cells[c], columns[c].after);
	return WEFT__TEXT("%s", text);
}

static void write_row(struct weft__writer *w, size_t i, bool is_of_group)
{
	const struct weft_live *live = w->v->live;
	const enum weft_live_table table = live->request.table;
	struct weft_live_row row;
	weft_live_row(live, i, &row);
	const size_t name = WEFT__TEXT("%s", row.cells[name_of(table)] + row.branch_bytes);
	struct weft_row *to = weft__rows_add(w->to,
	    table == WEFT_LIVE_GROUPS     ? WEFT_ROW_FINDING
	    : table == WEFT_LIVE_COUNTERS ? WEFT_ROW_FACT
					  : WEFT_ROW_ENTRY,
	    name, write_cells(w, &row));
	to->leads = table == WEFT_LIVE_GROUPS || promise_of(w->v, &row, i) != WEFT_NONE;
	to->is_open = table == WEFT_LIVE_GROUPS && row.key == w->v->live_open_group;
	to->tone = (uint8_t)(table == WEFT_LIVE_GROUPS && row.tone == WEFT_TONE_PLAIN ? WEFT_TONE_CALM : row.tone);
	to->finding = table;
	to->line = is_of_group;
	to->key = row.key;
	to->depth = (uint8_t)(row.depth < MAX_DEPTH ? row.depth : MAX_DEPTH);
}

/* Writes the promises in flight of the open type, and then builds the table of types again. */
static int write_open(struct weft__writer *w, struct weft_error *err)
{
	char number[WEFT_NUMBER_BYTES];
	int status = build_table(w->v, WEFT_LIVE_TREE, w->v->live_open_group, err);
	if (status < 0)
		return status;
	const size_t count = w->v->live->count;
	for (size_t i = 0; i < count && i < GROUP_ROWS; i++)
		write_row(w, i, true);
	if (count > GROUP_ROWS)
		weft__rows_add(
		    w->to, WEFT_ROW_TEXT, WEFT__TEXT("and %s more in flight", weft_number_text(number, count - GROUP_ROWS)), 0);
	return build_table(w->v, WEFT_LIVE_GROUPS, 0, err);
}

static int write_table(struct weft__writer *w, enum weft_live_table table, struct weft_error *err)
{
	char number[WEFT_NUMBER_BYTES];
	int status = build_table(w->v, table, 0, err);
	if (status < 0 || w->v->live->count == 0)
		return status;
	const size_t count = w->v->live->count, shown = (size_t)first[table] + w->v->live_extra_rows[table];
	weft__rows_add(w->to, WEFT_ROW_SUMMARY, WEFT__TEXT("%s (%s)", weft_live_name(table), weft_number_text(number, count)), 0);
	for (size_t i = 0; i < count && i < shown && status == WEFT_OK; i++) {
		write_row(w, i, false);
		if (table == WEFT_LIVE_GROUPS && w->v->live->lines[i].key == w->v->live_open_group)
			status = write_open(w, err);
	}
	if (count > shown) {
		struct weft_row *row =
		    weft__rows_add(w->to, WEFT_ROW_MORE, WEFT__TEXT("Show more: %s", weft_number_text(number, count - shown)), 0);
		row->finding = table;
		row->leads = true;
	}
	return status;
}

/* If the trace has several parts, one running part suffices. */
static bool may_run(const struct weft_trace_info *info)
{
	bool runs = info->part_count == 0 && info->unfinished && !info->has_died;
	for (size_t i = 0; i < info->part_count; i++)
		runs |= info->parts[i].unfinished && !info->parts[i].has_died;
	return runs;
}

static void write_moment(struct weft__writer *w)
{
	const struct weft_model *m = w->v->model;
	const struct weft_top *top = w->v->live->top;
	char flight[WEFT_LIVE_FLIGHT], time[80], span[WEFT_DURATION_BYTES];
	int64_t step_ns = 1;
	while (step_ns < m->end_ns / 1000)
		step_ns *= 10;
	weft_clock_print(time, sizeof time, m, &w->v->clock, m->end_ns, step_ns);
	weft__rows_add(w->to, WEFT_ROW_TITLE, WEFT__TEXT(may_run(m->trace) ? "Now" : "At the end of the trace"),
	    WEFT__TEXT("%s: %s", time, weft_live_format_flight(top, flight)));
	weft__rows_add(w->to, WEFT_ROW_TEXT,
	    WEFT__TEXT("The columns ended, ran and late cover the last %s", weft_duration_text(span, top->to_ns - top->from_ns)),
	    0);
}

int weft_live_panel_fill(struct weft_rows *rows, struct weft_viewer *v, struct weft_error *err)
{
	struct weft__writer w = {v, rows};
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	weft__rows_set_topic(rows, WEFT_ROWS_OF_LIVE);
	int status = ensure_live(v, err);
	if (status == WEFT_OK)
		write_moment(&w);
	for (unsigned table = 0; table < TABLES && status == WEFT_OK; table++)
		status = write_table(&w, (enum weft_live_table)table, err);
	return status == WEFT_OK ? weft__rows_end(rows, err) : status;
}

/* Finds the promise of a row by the row's key, because the row may be from an earlier moment. */
static uint32_t find_promise(struct weft_viewer *v, const struct weft_row *row)
{
	struct weft_live_row found;
	if (ensure_live(v, NULL) < 0 || build_table(v, (enum weft_live_table)row->finding, 0, NULL) < 0)
		return WEFT_NONE;
	const size_t i = weft_live_find(v->live, row->key);
	if (i == SIZE_MAX)
		return WEFT_NONE;
	weft_live_row(v->live, i, &found);
	return promise_of(v, &found, i);
}

void weft__viewer_press_live_row(struct weft_viewer *v, const struct weft_row *row)
{
	if (row->kind == WEFT_ROW_MORE)
		v->live_extra_rows[row->finding] += MORE_ROWS;
	else if (row->kind == WEFT_ROW_FINDING)
		v->live_open_group = v->live_open_group == row->key ? 0 : row->key;
	else {
		const uint32_t promise = find_promise(v, row);
		if (promise != WEFT_NONE)
			weft__viewer_select_and_reveal(v, promise);
		return;
	}
	weft__viewer_changed(v, WEFT_CHANGED_LIVE);
}
