/* table.c: lists the types of promises as rows.  SPDX-License-Identifier: ISC */
#include "viewer/table.h"

#include <stdio.h>
#include <string.h>

#include "analysis/index/names.h"
#include "base/duration.h"
#include "base/hash.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

#define SLOWEST 10
#define BAR 20 /* maximum width of a histogram bar in characters */

uint64_t weft__group_key(const struct weft_model *model, const struct weft_table_row *sort)
{
	char name[192];
	const uint32_t site = model->promises[sort->first].site;
	/* Types with the same name may have different call sites, so the call site is added. */
	const struct weft_site *place = site == WEFT_NONE ? NULL : &model->trace->sites[site];
	weft_table_name(model, sort, name);
	return weft_hash_u64(weft_hash_bytes(name, strlen(name)) + (place ? place->offset + place->line : 0)) | 1;
}

/* Sets the interval that the table covers. */
static void range_of(const struct weft_viewer *v, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MIN;
	*to_ns = INT64_MAX;
	if (v->table_scope == WEFT_SCOPE_SEEN)
		weft_viewer_times(v, from_ns, to_ns);
	if (v->table_scope == WEFT_SCOPE_SPAN) {
		*from_ns = v->span_from_ns;
		*to_ns = v->span_to_ns;
	}
}

static int ensure_table(struct weft_viewer *v, struct weft_error *err)
{
	int64_t from_ns, to_ns;
	if (v->table)
		return WEFT_OK;
	range_of(v, &from_ns, &to_ns);
	int status = weft_table_create(&v->table, v->facts, from_ns, to_ns, err);
	if (status == WEFT_OK)
		weft_table_sort(v->table, v->table_order);
	return status;
}

static size_t duration_text(struct weft__writer *w, int64_t ns)
{
	char text[WEFT_DURATION_BYTES];
	return WEFT__TEXT("%s", weft_duration_text(text, ns));
}

/* Finds the promises of a type that lasted longest, the longest first. */
static size_t find_slowest(const struct weft_viewer *v, uint32_t sort, uint32_t slowest[SLOWEST])
{
	size_t count = 0;
	for (uint32_t p = 1; p < v->model->promise_count; p++) {
		int64_t took_ns = v->table->type_of[p] == sort ? weft_table_took(v->facts, p) : -1;
		size_t at = count;
		if (took_ns < 0)
			continue;
		while (at > 0 && weft_table_took(v->facts, slowest[at - 1]) < took_ns)
			at--;
		if (at == SLOWEST)
			continue;
		count += count < SLOWEST;
		memmove(&slowest[at + 1], &slowest[at], (count - 1 - at) * sizeof *slowest);
		slowest[at] = p;
	}
	return count;
}

static void write_histogram(struct weft__writer *w, const struct weft_table_row *sort)
{
	size_t buckets[64], most = 1;
	char from[WEFT_DURATION_BYTES], to[WEFT_DURATION_BYTES], bar[3 * BAR + 1], number[28];
	weft_table_histogram(w->v->table, w->v->facts, sort, buckets);
	for (int i = 0; i < 64; i++)
		most = buckets[i] > most ? buckets[i] : most;
	weft__rows_add(w->to, WEFT_ROW_HEADING, WEFT__TEXT("Durations"), 0);
	for (int i = 63; i >= 0; i--) {
		if (buckets[i] == 0)
			continue;
		size_t signs = (buckets[i] * BAR + most - 1) / most;
		for (size_t k = 0; k < signs; k++)
			memcpy(bar + 3 * k, "\xe2\x96\x88", 3);
		bar[3 * signs] = '\0';
		struct weft_row *row =
		    weft__rows_add(w->to, WEFT_ROW_EVIDENCE, WEFT__TEXT("%s %s", bar, weft_number_text(number, buckets[i])),
			WEFT__TEXT("%s to %s", i == 0 ? "0" : weft_duration_text(from, (int64_t)(1ull << i)),
			    weft_duration_text(to, i < 62 ? (int64_t)(1ull << (i + 1)) : INT64_MAX)));
		row->line = (uint32_t)i;
		row->key = w->v->open_group_key;
		row->leads = true;
	}
}

static void write_open(struct weft__writer *w, const struct weft_table_row *sort)
{
	char a[WEFT_DURATION_BYTES], b[WEFT_DURATION_BYTES], c[WEFT_DURATION_BYTES], name[192];
	uint32_t slowest[SLOWEST];
	weft__rows_add(w->to, WEFT_ROW_TEXT,
	    WEFT__TEXT("Total: waiting %s, ready %s, running %s", weft_duration_text(a, sort->waiting_ns),
		weft_duration_text(b, sort->ready_ns), weft_duration_text(c, sort->running_ns)),
	    0);
	if (sort->off_ns > 0)
		weft__rows_add(
		    w->to, WEFT_ROW_TEXT, WEFT__TEXT("Off CPU while running: %s", weft_duration_text(a, sort->off_ns)), 0);
	if (sort->failed + sort->pending > 0)
		weft__rows_add(
		    w->to, WEFT_ROW_TEXT, WEFT__TEXT("%zu failed, %zu have not ended", sort->failed, sort->pending), 0);
	if (sort->ended == 0)
		return;
	write_histogram(w, sort);
	weft__rows_add(w->to, WEFT_ROW_HEADING, WEFT__TEXT("Slowest"), 0);
	size_t count = find_slowest(w->v, sort->type, slowest);
	for (size_t i = 0; i < count; i++) {
		char raw[160];
		size_t len = weft_model_name(w->v->model, slowest[i], raw, sizeof raw);
		weft_name_sanitize(
		    (struct weft_str){raw, (uint32_t)(len < sizeof raw ? len : sizeof raw - 1)}, name, sizeof name);
		struct weft_row *row = weft__rows_add(
		    w->to, WEFT_ROW_LINK, WEFT__TEXT("%s", name), duration_text(w, weft_table_took(w->v->facts, slowest[i])));
		row->promise = slowest[i];
		row->leads = true;
	}
}

/* Columns of the table, in the order of the cells of a type. */
static const struct {
	const char *heading;
	enum weft_table_order order;
} columns[] = {{"count", WEFT_TABLE_COUNT}, {"p50", WEFT_TABLE_P50}, {"p99", WEFT_TABLE_P99}, {"max", WEFT_TABLE_MAX},
    {"total", WEFT_TABLE_TOTAL}, {"ran", WEFT_TABLE_RUNNING}, {"ready", WEFT_TABLE_READY}, {"failed", WEFT_TABLE_FAILED}};

static void write_columns(struct weft__writer *w)
{
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		struct weft_row *row = weft__rows_add(w->to, WEFT_ROW_COLUMN, WEFT__TEXT("%s", columns[i].heading),
		    WEFT__TEXT("Sort by %s", weft_table_order_text(columns[i].order)));
		row->line = columns[i].order;
		row->is_open = w->v->table_order == columns[i].order;
		row->leads = true;
	}
}

/* Writes a duration, or a dash if there is none. */
static const char *cell_text(char buf[WEFT_DURATION_BYTES], int64_t ns, bool has_any)
{
	if (!has_any)
		strcpy(buf, "\xe2\x80\x93");
	else
		weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

static size_t write_cells(struct weft__writer *w, const struct weft_table_row *sort)
{
	char p50[WEFT_DURATION_BYTES], p99[WEFT_DURATION_BYTES], max[WEFT_DURATION_BYTES], total[WEFT_DURATION_BYTES],
	    ran[WEFT_DURATION_BYTES], ready[WEFT_DURATION_BYTES], count[WEFT_NUMBER_BYTES], failed[WEFT_NUMBER_BYTES];
	const bool has_ended = sort->ended > 0;
	const int64_t total_ns = weft__add_ns(weft__add_ns(sort->waiting_ns, sort->ready_ns), sort->running_ns);
	return WEFT__TEXT("%s \xc2\xb7 p50 %s \xc2\xb7 p99 %s \xc2\xb7 max %s \xc2\xb7 total %s \xc2\xb7 ran %s \xc2\xb7 ready "
			  "%s \xc2\xb7 failed %s",
	    weft_number_text(count, sort->count), cell_text(p50, sort->p50_ns, has_ended),
	    cell_text(p99, sort->p99_ns, has_ended), cell_text(max, sort->max_ns, has_ended),
	    cell_text(total, total_ns, total_ns > 0), cell_text(ran, sort->running_ns, sort->running_ns > 0),
	    cell_text(ready, sort->ready_ns, sort->ready_ns > 0),
	    sort->failed > 0 ? weft_number_text(failed, sort->failed) : "\xe2\x80\x93");
}

static void write_group(struct weft__writer *w, const struct weft_table_row *sort, const char *name)
{
	const uint64_t key = weft__group_key(w->v->model, sort);
	const bool is_open = w->v->open_group_key == key;
	struct weft_row *row = weft__rows_add(w->to, WEFT_ROW_FINDING, WEFT__TEXT("%s", name), write_cells(w, sort));
	row->tone = sort->failed > 0 ? WEFT_TONE_ALARM : WEFT_TONE_PLAIN;
	row->key = key;
	row->is_open = is_open;
	row->leads = true;
	if (is_open)
		write_open(w, sort);
}

/* Returns whether `text` contains `part`, in which ASCII letters are small; capital letters in `text` count as small letters. */
static bool contains_text(const char *text, const char *part)
{
	const size_t length = strlen(part);
	for (; strlen(text) >= length; text++) {
		size_t same = 0;
		while (same < length && (text[same] >= 'A' && text[same] <= 'Z' ? text[same] + 32 : text[same]) == part[same])
			same++;
		if (same == length)
			return true;
		if (!*text)
			break;
	}
	return false;
}

/* Writes the types whose names contain the filter text. */
static void write_groups(struct weft__writer *w)
{
	size_t shown = 0, more = 0;
	char number[28], name[192];
	for (size_t i = 0; i < w->v->table->count; i++) {
		const struct weft_table_row *sort = &w->v->table->rows[i];
		if (!contains_text(weft_table_name(w->v->model, sort, name), w->v->table_filter))
			continue;
		if (shown < WEFT_TABLE_SHOWN) {
			write_group(w, sort, name);
			shown++;
		} else {
			more++;
		}
	}
	if (more > 0)
		weft__rows_add(w->to, WEFT_ROW_TEXT, WEFT__TEXT("and %s more types", weft_number_text(number, more)), 0);
	else if (shown == 0)
		weft__rows_add(w->to, WEFT_ROW_TEXT, WEFT__TEXT("No type has this text in its name"), 0);
}

int weft_table_fill(struct weft_rows *rows, struct weft_viewer *v, struct weft_error *err)
{
	static const char *const scopes[] = {
	    [WEFT_SCOPE_WHOLE] = "Whole trace", [WEFT_SCOPE_SEEN] = "Visible interval", [WEFT_SCOPE_SPAN] = "Measured interval"};
	struct weft__writer all = {v, rows}, *w = &all;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for rows");
	weft__viewer_write_blame(rows, v);
	if (!v->table_shown)
		return weft__rows_end(rows, err);
	weft__rows_set_topic(rows, WEFT_ROWS_OF_TABLE);
	int status = ensure_table(v, err);
	if (status < 0)
		return status;
	struct weft_row *row = weft__rows_add(w->to, WEFT_ROW_MORE, WEFT__TEXT("%s", scopes[v->table_scope]), 0);
	row->leads = true;
	write_columns(w);
	write_groups(w);
	return weft__rows_end(rows, err);
}

static void mark_table_changed(struct weft_viewer *v)
{
	weft__viewer_changed(v, WEFT_CHANGED_TABLE);
}

void weft__viewer_forget_table(struct weft_viewer *v)
{
	weft_table_destroy(v->table);
	v->table = NULL;
	mark_table_changed(v);
}

void weft_viewer_filter_table(struct weft_viewer *v, const char *text)
{
	snprintf(v->table_filter, sizeof v->table_filter, "%s", text);
	for (char *at = v->table_filter; *at; at++)
		*at = *at >= 'A' && *at <= 'Z' ? (char)(*at + 32) : *at;
	mark_table_changed(v);
}

void weft__viewer_span_changed(struct weft_viewer *v)
{
	const enum weft_scope before = v->table_scope;
	if (v->has_span)
		v->table_scope = WEFT_SCOPE_SPAN;
	else if (v->table_scope == WEFT_SCOPE_SPAN)
		v->table_scope = WEFT_SCOPE_WHOLE;
	if (v->table_scope != before || v->has_span)
		weft__viewer_forget_table(v);
	if (v->has_span)
		weft__viewer_changed(v, WEFT_CHANGED_SPAN);
}

void weft_viewer_show_table(struct weft_viewer *v)
{
	v->table_shown = true;
	mark_table_changed(v);
}

void weft__viewer_go_to_weighted(struct weft_viewer *v, int64_t much(void *ctx, uint32_t promise), void *ctx)
{
	uint32_t best = WEFT_NONE;
	int64_t most = -1;
	weft__viewer_end_search(v);
	weft_view_unhighlight(v->view);
	for (uint32_t p = 1; p < v->model->promise_count; p++) {
		int64_t has = much(ctx, p);
		if (has < 0)
			continue;
		weft_view_set_highlight(v->view, p, true);
		best = has > most ? p : best;
		most = has > most ? has : most;
	}
	v->highlighting = v->view->found > 0 ? WEFT_HIGHLIGHT_FINDING : WEFT_HIGHLIGHT_NONE;
	weft__viewer_highlighted(v);
	weft__viewer_select_and_reveal(v, best);
}

/* A bar of the histogram of the open type. */
struct bar {
	const struct weft_viewer *v;
	uint32_t sort; /* its number, or WEFT_NONE */
	int bucket;
};

static int64_t duration_in_bucket(void *ctx, uint32_t promise)
{
	const struct bar *bar = ctx;
	int64_t took_ns = bar->v->table->type_of[promise] == bar->sort ? weft_table_took(bar->v->facts, promise) : -1;
	return took_ns >= 0 && weft_table_bucket(took_ns) == bar->bucket ? took_ns : -1;
}

/* Returns the number of the type with a key, or WEFT_NONE if the type no longer exists. */
static uint32_t type_of(const struct weft_viewer *v, uint64_t key)
{
	for (size_t i = 0; i < v->table->count; i++)
		if (weft__group_key(v->model, &v->table->rows[i]) == key)
			return v->table->rows[i].type;
	return WEFT_NONE;
}

void weft__viewer_press_table_row(struct weft_viewer *v, const struct weft_row *row)
{
	if (!v->table)
		return;
	if (row->kind == WEFT_ROW_EVIDENCE) {
		weft__viewer_go_to_weighted(v, duration_in_bucket, &(struct bar){v, type_of(v, row->key), (int)row->line});
	} else if (row->kind == WEFT_ROW_FINDING) {
		v->open_group_key = v->open_group_key == row->key ? 0 : row->key;
	} else if (row->kind == WEFT_ROW_COLUMN) {
		v->table_order = (enum weft_table_order)row->line;
		weft_table_sort(v->table, v->table_order);
	} else if (row->kind == WEFT_ROW_MORE) {
		v->table_scope = v->table_scope == WEFT_SCOPE_WHOLE                 ? WEFT_SCOPE_SEEN
				 : v->table_scope == WEFT_SCOPE_SEEN && v->has_span ? WEFT_SCOPE_SPAN
										    : WEFT_SCOPE_WHOLE;
		weft__viewer_forget_table(v);
	}
	mark_table_changed(v);
}
