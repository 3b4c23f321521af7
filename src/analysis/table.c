/* table.c: sorts of promises, and how long they took.  SPDX-License-Identifier: ISC */
#include "analysis/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names.h"
#include "analysis/shapes.h"
#include "base/hash.h"
#include "base/sort.h"
#include "base/utf8.h"

static const char *const names[] = {
#define NAMED(NAME, name, text) name,
    WEFT_TABLE_ORDERS(NAMED)
#undef NAMED
};

const char *weft_table_order_name(enum weft_table_order order)
{
	return names[order];
}

const char *weft_table_order_text(enum weft_table_order order)
{
	static const char *const texts[] = {
#define TOLD(NAME, name, text) text,
	    WEFT_TABLE_ORDERS(TOLD)
#undef TOLD
	};
	return texts[order];
}

int64_t weft_table_took(const struct weft_facts *facts, uint32_t promise)
{
	const struct weft_promise *p = &weft_facts_model(facts)->promises[promise];
	int64_t end_ns = weft_facts_end(facts, promise);
	return end_ns == INT64_MAX || p->flags & WEFT_PROMISE_START_UNKNOWN ? -1
	       : end_ns > p->start_ns                                       ? end_ns - p->start_ns
									    : 0;
}

/* Threads and handles last as long as the program does, and cost nothing by that: who looks for what costs most passes them by.
 */
static bool stands(uint16_t kind)
{
	enum { HELD = WEFT_TRAIT_CONDITION | WEFT_TRAIT_LOCK | WEFT_TRAIT_QUEUE | WEFT_TRAIT_POOL };
	uint32_t traits = weft_kind_traits(kind);
	return traits & WEFT_TRAIT_ENDLESS && traits & (HELD | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP | WEFT_TRAIT_OUTSIDE);
}

static void add(struct weft_table_row *row, const struct weft_facts *facts, uint32_t promise)
{
	const struct weft_promise *p = &weft_facts_model(facts)->promises[promise];
	struct weft_times times = weft_facts_times(facts, promise);
	int64_t took_ns = weft_table_took(facts, promise);
	if (row->count++ == 0) {
		row->first = promise;
		row->stands = stands(p->kind);
		row->slowest = WEFT_NONE;
	}
	row->failed += p->end == WEFT_END_FAILED;
	row->pending += weft_facts_end(facts, promise) == INT64_MAX;
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

/* Percentiles, of durations that are put in order of their rows. */
static bool rank(struct weft_table *table, const struct weft_facts *facts, size_t promises)
{
	size_t *next = calloc(table->sorts + 1, sizeof *next), sum = 0;
	int64_t *took = malloc((promises + 1) * sizeof *took);
	if (next && took) {
		for (size_t i = 0; i < table->count; i++) {
			next[table->rows[i].sort] = sum;
			sum += table->rows[i].ended;
		}
		for (uint32_t p = 1; p < promises; p++) {
			int64_t ns = table->sort_of[p] == WEFT_NONE ? -1 : weft_table_took(facts, p);
			if (ns >= 0)
				took[next[table->sort_of[p]]++] = ns;
		}
		for (size_t i = 0; i < table->count; i++) {
			struct weft_table_row *row = &table->rows[i];
			int64_t *own = took + next[row->sort] - row->ended;
			if (row->ended == 0)
				continue;
			weft_sort(own, row->ended, sizeof *own, weft_compare_i64);
			row->p50_ns = own[(row->ended - 1) / 2];
			row->p99_ns = own[(row->ended * 99 + 99) / 100 - 1];
		}
	}
	bool done = next && took;
	free(next);
	free(took);
	return done;
}

struct named {
	uint64_t hash; /* of the name; where two collide, a name says more than it has to */
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

int weft_table_create(struct weft_table **out, struct weft_facts *facts, int64_t from_ns, int64_t to_ns, struct weft_error *err)
{
	const struct weft_model *m = weft_facts_model(facts);
	struct weft_table *table = calloc(1, sizeof *table);
	const uint32_t *sort_of = table ? weft_facts_sorts(facts, &table->sorts) : NULL;
	bool done = sort_of && (table->sort_of = malloc((m->promise_count + 1) * sizeof *table->sort_of)) &&
		    (table->rows = calloc(table->sorts + 1, sizeof *table->rows));
	if (done)
		table->sort_of[WEFT_SYSTEM] = WEFT_NONE;
	for (uint32_t p = WEFT_SYSTEM + 1; done && p < m->promise_count; p++) {
		if (m->promises[p].end_ns < from_ns || m->promises[p].start_ns > to_ns)
			table->sort_of[p] = WEFT_NONE;
		else
			add(&table->rows[table->sort_of[p] = sort_of[p]], facts, p);
	}
	for (uint32_t i = 0; done && i < table->sorts; i++)
		if (table->rows[i].count > 0) {
			table->rows[table->count] = table->rows[i];
			table->rows[table->count++].sort = i;
		}
	done = done && rank(table, facts, m->promise_count) && find_namesakes(table, m);
	if (!done) {
		weft_table_destroy(table);
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a table of %zu promises", m->promise_count);
	}
	weft_table_sort(table, WEFT_TABLE_TOTAL);
	*out = table;
	return WEFT_OK;
}

static int64_t total(const struct weft_table_row *row)
{
	return row->waiting_ns + row->ready_ns + row->running_ns;
}

#define COMPARE(name, value)                                                                                                     \
	static int compare_##name(const void *a, const void *b)                                                                  \
	{                                                                                                                        \
		const struct weft_table_row *x = b, *y = a;                                                                      \
		return WEFT_ORDER(value(x), value(y)) ?: WEFT_ORDER(y->sort, x->sort);                                           \
	}
#define MAX_OF(row) (row)->max_ns
#define P99_OF(row) (row)->p99_ns
#define P50_OF(row) (row)->p50_ns
#define COUNT_OF(row) (row)->count
#define RUNNING_OF(row) (row)->running_ns
#define READY_OF(row) (row)->ready_ns
#define FAILED_OF(row) (row)->failed
COMPARE(max, MAX_OF)
COMPARE(whole, total)
COMPARE(p99, P99_OF)
COMPARE(p50, P50_OF)
COMPARE(count, COUNT_OF)
COMPARE(running, RUNNING_OF)
COMPARE(ready, READY_OF)
COMPARE(failed, FAILED_OF)

static int compare_total(const void *a, const void *b)
{
	const struct weft_table_row *x = a, *y = b;
	return WEFT_ORDER(x->stands, y->stands) ?: compare_whole(a, b);
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
	free(table->sort_of);
	free(table);
}

const char *weft_table_name(const struct weft_model *m, const struct weft_table_row *row, char buf[192])
{
	char shape[100], place[WEFT_NAME_BYTES];
	uint32_t label = weft_first_label(m, row->first);
	const char *kind = weft_model_kind_name(m, m->promises[row->first].kind);
	if (label != WEFT_NONE) {
		weft__shape(shape, sizeof shape, weft_model_text(m, label));
		weft_name_clean((struct weft_str){shape, (uint32_t)strlen(shape)}, place, sizeof place);
		snprintf(buf, 192, "%.16s \"%.160s\"", kind, place);
		if (row->is_namesake && *weft_name_place(m, row->first, place)) {
			strcat(buf, " at ");
			const size_t length = strlen(buf);
			weft_utf8_copy(buf + length, 192 - length, (struct weft_str){place, (uint32_t)strlen(place)});
		}
	} else if (*weft_name_place(m, row->first, place)) {
		snprintf(buf, 192, "%.16s at %.160s", kind, place);
	} else {
		snprintf(buf, 192, "%.16s", kind);
	}
	return buf;
}

void weft_table_histogram(
    const struct weft_table *table, const struct weft_facts *facts, const struct weft_table_row *row, size_t buckets[64])
{
	memset(buckets, 0, 64 * sizeof *buckets);
	for (uint32_t p = 1; p < weft_facts_model(facts)->promise_count; p++)
		if (table->sort_of[p] == row->sort && weft_table_took(facts, p) >= 0)
			buckets[weft_table_bucket(weft_table_took(facts, p))]++;
}
