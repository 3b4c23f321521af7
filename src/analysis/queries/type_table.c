/* type_table.c: groups promises by type, with their durations.  SPDX-License-Identifier: ISC */
#include "analysis/queries/type_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/label_patterns.h"
#include "analysis/index/names.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/utf8.h"

static const char *const names[] = {
#define ORDER_NAME(NAME, name, text) name,
    WEFT_TABLE_ORDERS(ORDER_NAME)
#undef ORDER_NAME
};

const char *weft_table_order_name(enum weft_table_order order)
{
	return names[order];
}

const char *weft_table_order_text(enum weft_table_order order)
{
	static const char *const texts[] = {
#define ORDER_TEXT(NAME, name, text) text,
	    WEFT_TABLE_ORDERS(ORDER_TEXT)
#undef ORDER_TEXT
	};
	return texts[order];
}

int64_t weft_table_took(const struct weft_promise_info *facts, uint32_t promise)
{
	const struct weft_promise *p = &weft_promise_info_model(facts)->promises[promise];
	int64_t end_ns = weft_promise_info_end_ns(facts, promise);
	return end_ns == INT64_MAX || p->flags & WEFT_PROMISE_START_UNKNOWN ? -1
	       : end_ns > p->start_ns                                       ? end_ns - p->start_ns
									    : 0;
}

/* Returns whether promises of the kind, such as threads and handles, last as long as the program, so that their duration is no
 * cost. */
static bool is_permanent_kind(uint16_t kind)
{
	enum { HELD = WEFT_TRAIT_CONDITION | WEFT_TRAIT_LOCK | WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL };
	uint32_t traits = weft_kind_traits(kind);
	return traits & WEFT_TRAIT_ENDLESS && traits & (HELD | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP | WEFT_TRAIT_OUTSIDE);
}

static void add_promise(struct weft_table_row *row, const struct weft_promise_info *facts, uint32_t promise)
{
	const struct weft_promise *p = &weft_promise_info_model(facts)->promises[promise];
	struct weft_state_times times = weft_promise_info_times(facts, promise);
	int64_t took_ns = weft_table_took(facts, promise);
	if (row->count++ == 0) {
		row->first = promise;
		row->is_permanent = is_permanent_kind(p->kind);
		row->slowest = WEFT_NONE;
	}
	row->failed += p->end == WEFT_END_FAILED;
	row->pending += weft_promise_info_end_ns(facts, promise) == INT64_MAX;
	row->waiting_ns += times.waiting_ns;
	row->ready_ns += times.ready_ns;
	row->running_ns += times.running_ns;
	row->off_ns += times.off_ns;
	if (took_ns < 0)
		return;
	row->ended++;
	if (row->slowest == WEFT_NONE || took_ns > row->max_ns)
		row->slowest = promise;
	row->max_ns = took_ns > row->max_ns ? took_ns : row->max_ns;
}

/* Computes the percentiles; the durations must be sorted by row. */
static bool compute_percentiles(struct weft_table *table, const struct weft_promise_info *facts, size_t promises)
{
	size_t *next_index = calloc(table->types + 1, sizeof *next_index), sum = 0;
	int64_t *took = malloc((promises + 1) * sizeof *took);
	if (next_index && took) {
		for (size_t i = 0; i < table->count; i++) {
			next_index[table->rows[i].type] = sum;
			sum += table->rows[i].ended;
		}
		for (uint32_t p = 1; p < promises; p++) {
			int64_t ns = table->type_of[p] == WEFT_NONE ? -1 : weft_table_took(facts, p);
			if (ns >= 0)
				took[next_index[table->type_of[p]]++] = ns;
		}
		for (size_t i = 0; i < table->count; i++) {
			struct weft_table_row *row = &table->rows[i];
			int64_t *own = took + next_index[row->type] - row->ended;
			if (row->ended == 0)
				continue;
			weft_sort(own, row->ended, sizeof *own, weft_compare_i64);
			row->p50_ns = own[(row->ended - 1) / 2];
			row->p99_ns = own[(row->ended * 99 + 99) / 100 - 1];
		}
	}
	bool done = next_index && took;
	free(next_index);
	free(took);
	return done;
}

struct named {
	uint64_t hash; /* hash of the name; a collision only makes a name longer than necessary */
	size_t row;
};

static int compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	return WEFT_ORDER(x->hash, y->hash) ?: WEFT_ORDER(x->row, y->row);
}

static bool find_namesakes(struct weft_table *table, const struct weft_model *m)
{
	char name[192];
	struct named *named = malloc((table->count + 1) * sizeof *named);
	for (size_t i = 0; named && i < table->count; i++) {
		weft_table_name(m, &table->rows[i], name);
		named[i] = (struct named){weft_hash_bytes(name, strlen(name)), i};
	}
	if (named)
		weft_sort(named, table->count, sizeof *named, compare_named);
	for (size_t i = 1; named && i < table->count; i++)
		if (named[i].hash == named[i - 1].hash)
			table->rows[named[i].row].is_namesake = table->rows[named[i - 1].row].is_namesake = true;
	free(named);
	return named != NULL;
}

int weft_table_create(
    struct weft_table **out, struct weft_promise_info *facts, int64_t from_ns, int64_t to_ns, struct weft_error *err)
{
	const struct weft_model *m = weft_promise_info_model(facts);
	struct weft_table *table = calloc(1, sizeof *table);
	const uint32_t *type_of = table ? weft_promise_info_types(facts, &table->types) : NULL;
	bool done = type_of && (table->type_of = malloc((m->promise_count + 1) * sizeof *table->type_of)) &&
		    (table->rows = calloc(table->types + 1, sizeof *table->rows));
	if (done)
		table->type_of[WEFT_SYSTEM] = WEFT_NONE;
	for (uint32_t p = WEFT_SYSTEM + 1; done && p < m->promise_count; p++) {
		if (m->promises[p].end_ns < from_ns || m->promises[p].start_ns > to_ns)
			table->type_of[p] = WEFT_NONE;
		else
			add_promise(&table->rows[table->type_of[p] = type_of[p]], facts, p);
	}
	for (uint32_t i = 0; done && i < table->types; i++)
		if (table->rows[i].count > 0) {
			table->rows[table->count] = table->rows[i];
			table->rows[table->count++].type = i;
		}
	done = done && compute_percentiles(table, facts, m->promise_count) && find_namesakes(table, m);
	if (!done) {
		weft_table_destroy(table);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory for a table of %zu promises", m->promise_count);
	}
	weft_table_sort(table, WEFT_TABLE_TOTAL);
	*out = table;
	return WEFT_OK;
}

static int64_t get_total_ns(const struct weft_table_row *row)
{
	return row->waiting_ns + row->ready_ns + row->running_ns;
}

#define COMPARE(name, value)                                                                                                     \
	static int compare_##name(const void *a, const void *b)                                                                  \
	{                                                                                                                        \
		const struct weft_table_row *x = b, *y = a;                                                                      \
		return WEFT_ORDER(value(x), value(y)) ?: WEFT_ORDER(y->type, x->type);                                           \
	}
#define MAX_OF(row) (row)->max_ns
#define P99_OF(row) (row)->p99_ns
#define P50_OF(row) (row)->p50_ns
#define COUNT_OF(row) (row)->count
#define RUNNING_OF(row) (row)->running_ns
#define READY_OF(row) (row)->ready_ns
#define FAILED_OF(row) (row)->failed
COMPARE(max, MAX_OF)
COMPARE(whole, get_total_ns)
COMPARE(p99, P99_OF)
COMPARE(p50, P50_OF)
COMPARE(count, COUNT_OF)
COMPARE(running, RUNNING_OF)
COMPARE(ready, READY_OF)
COMPARE(failed, FAILED_OF)

static int compare_total(const void *a, const void *b)
{
	const struct weft_table_row *x = a, *y = b;
	return WEFT_ORDER(x->is_permanent, y->is_permanent) ?: compare_whole(a, b);
}

void weft_table_sort(struct weft_table *table, enum weft_table_order order)
{
	static int (*const compare[])(const void *, const void *) = {[WEFT_TABLE_TOTAL] = compare_total,
	    [WEFT_TABLE_MAX] = compare_max,
	    [WEFT_TABLE_P99] = compare_p99,
	    [WEFT_TABLE_P50] = compare_p50,
	    [WEFT_TABLE_COUNT] = compare_count,
	    [WEFT_TABLE_RUNNING] = compare_running,
	    [WEFT_TABLE_READY] = compare_ready,
	    [WEFT_TABLE_FAILED] = compare_failed};
	weft_sort(table->rows, table->count, sizeof *table->rows, compare[order]);
}

void weft_table_destroy(struct weft_table *table)
{
	if (!table)
		return;
	free(table->rows);
	free(table->type_of);
	free(table);
}

const char *weft_table_name(const struct weft_model *m, const struct weft_table_row *row, char buf[192])
{
	char pattern[100], location[WEFT_NAME_BYTES];
	uint32_t label = weft_first_label(m, row->first);
	const char *kind = weft_model_kind_name(m, m->promises[row->first].kind);
	if (label != WEFT_NONE) {
		weft__label_pattern(pattern, sizeof pattern, weft_model_text(m, label));
		weft_name_sanitize((struct weft_str){pattern, (uint32_t)strlen(pattern)}, location, sizeof location);
		snprintf(buf, 192, "%.16s \"%.160s\"", kind, location);
		if (row->is_namesake && *weft_name_site(m, row->first, location)) {
			strcat(buf, " at ");
			const size_t length = strlen(buf);
			weft_utf8_copy(buf + length, 192 - length, (struct weft_str){location, (uint32_t)strlen(location)});
		}
	} else if (*weft_name_site(m, row->first, location)) {
		snprintf(buf, 192, "%.16s at %.160s", kind, location);
	} else {
		snprintf(buf, 192, "%.16s", kind);
	}
	return buf;
}

void weft_table_histogram(
    const struct weft_table *table, const struct weft_promise_info *facts, const struct weft_table_row *row, size_t buckets[64])
{
	memset(buckets, 0, 64 * sizeof *buckets);
	for (uint32_t p = 1; p < weft_promise_info_model(facts)->promise_count; p++)
		if (table->type_of[p] == row->type && weft_table_took(facts, p) >= 0)
			buckets[weft_table_bucket(weft_table_took(facts, p))]++;
}
