/* live_panel.c: see live_panel.h.  SPDX-License-Identifier: ISC */
#include "viewer/live_panel.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "viewer/live_private.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

enum { MORE = 50, OF_SORT = 10, DEEPEST = 12, TABLES = WEFT_LIVE_FINDINGS };
#define LAST_NS INT64_C(1000000000) /* as long before the moment as weft top looks */

/* So many rows of each table are listed at first. */
static const uint8_t first[TABLES] = {[WEFT_LIVE_SORTS] = 6,
    [WEFT_LIVE_TREE] = 10,
    [WEFT_LIVE_WAITS] = 8,
    [WEFT_LIVE_LATE] = 5,
    [WEFT_LIVE_THREADS] = 8,
    [WEFT_LIVE_COUNTERS] = 8};
_Static_assert(sizeof first / sizeof *first == sizeof((struct weft_viewer *)0)->live_more / sizeof(uint32_t), "a number each");

static int make(struct weft_viewer *v, struct weft_error *err)
{
	return v->live ? WEFT_OK : weft_live_create_of(&v->live, v->facts, NULL, v->model->end_ns, LAST_NS, err);
}

static int arrange(const struct weft_viewer *v, enum weft_live_table table, uint64_t sort, struct weft_error *err)
{
	const struct weft_live_asked asked = {.table = table, .sort = sort};
	return weft_live_arrange(v->live, &asked, err);
}

/* Whom row number i of the table that was arranged last is about, in the picture; WEFT_NONE: nobody. */
static uint32_t promise_of(const struct weft_viewer *v, const struct weft_live_row *row, size_t i)
{
	const struct weft_live *live = v->live;
	const uint32_t promise =
	    live->asked.table == WEFT_LIVE_THREADS ? live->priv->ran_last[live->lines[i].number] : row->promise;
	return weft__viewer_has(v, promise) ? promise : WEFT_NONE;
}

/* Which cell says what a row is called. */
static size_t name_of(enum weft_live_table table)
{
	size_t c = 0, count;
	const struct weft_live_column *columns = weft_live_columns(table, &count);
	while (c + 1 < count && columns[c].width > 0)
		c++;
	return c;
}

/* Whether a cell tells something: nobody needs to hear of none that failed. */
static bool tells(const struct weft_live_column *column, const char *cell)
{
	const bool is_count = column->before && column->after[0];
	return column->before && cell[0] && strcmp(cell, "?") != 0 && !(is_count && strcmp(cell, "0") == 0);
}

/* "12 in flight · 3 ended" */
static size_t say(struct weft__writer *w, const struct weft_live_row *row)
{
	char said[600] = "";
	size_t count, length = 0;
	const struct weft_live_column *columns = weft_live_columns(w->v->live->asked.table, &count);
	for (size_t c = 0; c < count && length < sizeof said; c++)
		if (tells(&columns[c], row->cells[c]))
			length += (size_t)snprintf(said + length, sizeof said - length, "%s%s%s%s", length ? " \xc2\xb7 " : "",
			    columns[c].before, row->cells[c], columns[c].after);
	return WEFT__TEXT("%s", said);
}

static void write_row(struct weft__writer *w, size_t i, bool is_of_sort)
{
	const struct weft_live *live = w->v->live;
	const enum weft_live_table table = live->asked.table;
	struct weft_live_row row;
	weft_live_row(live, i, &row);
	const size_t name = WEFT__TEXT("%s", row.cells[name_of(table)] + row.branch_bytes);
	struct weft_row *to = weft__rows_add(w->to,
	    table == WEFT_LIVE_SORTS      ? WEFT_ROW_FINDING
	    : table == WEFT_LIVE_COUNTERS ? WEFT_ROW_FACT
					  : WEFT_ROW_ENTRY,
	    name, say(w, &row));
	to->leads = table == WEFT_LIVE_SORTS || promise_of(w->v, &row, i) != WEFT_NONE;
	to->is_open = table == WEFT_LIVE_SORTS && row.key == w->v->live_open;
	to->tone = (uint8_t)(table == WEFT_LIVE_SORTS && row.tone == WEFT_TONE_PLAIN ? WEFT_TONE_CALM : row.tone);
	to->finding = table;
	to->line = is_of_sort;
	to->key = row.key;
	to->depth = (uint8_t)(row.depth < DEEPEST ? row.depth : DEEPEST);
}

/* Those in flight of the sort that is open; then the table of sorts is there again. */
static int write_open(struct weft__writer *w, struct weft_error *err)
{
	char number[WEFT_NUMBER_BYTES];
	int status = arrange(w->v, WEFT_LIVE_TREE, w->v->live_open, err);
	if (status < 0)
		return status;
	const size_t count = w->v->live->count;
	for (size_t i = 0; i < count && i < OF_SORT; i++)
		write_row(w, i, true);
	if (count > OF_SORT)
		weft__rows_add(
		    w->to, WEFT_ROW_TEXT, WEFT__TEXT("and %s more in flight", weft_thousands(number, count - OF_SORT)), 0);
	return arrange(w->v, WEFT_LIVE_SORTS, 0, err);
}

static int write_table(struct weft__writer *w, enum weft_live_table table, struct weft_error *err)
{
	char number[WEFT_NUMBER_BYTES];
	int status = arrange(w->v, table, 0, err);
	if (status < 0 || w->v->live->count == 0)
		return status;
	const size_t count = w->v->live->count, shown = (size_t)first[table] + w->v->live_more[table];
	weft__rows_add(w->to, WEFT_ROW_SUMMARY, WEFT__TEXT("%s (%s)", weft_live_name(table), weft_thousands(number, count)), 0);
	for (size_t i = 0; i < count && i < shown && status == WEFT_OK; i++) {
		write_row(w, i, false);
		if (table == WEFT_LIVE_SORTS && w->v->live->lines[i].key == w->v->live_open)
			status = write_open(w, err);
	}
	if (count > shown) {
		struct weft_row *row =
		    weft__rows_add(w->to, WEFT_ROW_MORE, WEFT__TEXT("Show more: %s", weft_thousands(number, count - shown)), 0);
		row->finding = table;
		row->leads = true;
	}
	return status;
}

/* Of several one is enough. */
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
	weft__rows_add(w->to, WEFT_ROW_TITLE, WEFT__TEXT(may_run(m->trace) ? "Now" : "At the end"),
	    WEFT__TEXT("%s: %s", time, weft_live_flight(top, flight)));
	weft__rows_add(w->to, WEFT_ROW_TEXT,
	    WEFT__TEXT("Ended, ran, late: in the last %s", weft_duration_text(span, top->to_ns - top->from_ns)), 0);
}

int weft_live_panel_fill(struct weft_rows *rows, struct weft_viewer *v, struct weft_error *err)
{
	struct weft__writer w = {v, rows};
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	weft__rows_of(rows, WEFT_ROWS_OF_LIVE);
	int status = make(v, err);
	if (status == WEFT_OK)
		write_moment(&w);
	for (unsigned table = 0; table < TABLES && status == WEFT_OK; table++)
		status = write_table(&w, (enum weft_live_table)table, err);
	return status == WEFT_OK ? weft__rows_end(rows, err) : status;
}

/* By its key: the row may be of a moment before. */
static uint32_t find(struct weft_viewer *v, const struct weft_row *row)
{
	struct weft_live_row found;
	if (make(v, NULL) < 0 || arrange(v, (enum weft_live_table)row->finding, 0, NULL) < 0)
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
		v->live_more[row->finding] += MORE;
	else if (row->kind == WEFT_ROW_FINDING)
		v->live_open = v->live_open == row->key ? 0 : row->key;
	else {
		const uint32_t promise = find(v, row);
		if (promise != WEFT_NONE)
			weft__viewer_select_and_reveal(v, promise);
		return;
	}
	weft__viewer_changed(v, WEFT_CHANGED_LIVE);
}
