/* memory.c: see memory.h.  SPDX-License-Identifier: ISC */
#include "analysis/index/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/hot_function.h"
#include "analysis/index/label_patterns.h"
#include "analysis/index/names.h"
#include "base/intern.h"
#include "base/sort.h"
#include "base/vec.h"

const char *weft_bytes_text(char buf[WEFT_BYTES_BYTES], int64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	uint64_t whole = bytes < 0 ? 0 : (uint64_t)bytes, divisor = 1;
	unsigned unit = 0;
	while (whole / divisor >= 1000) {
		divisor *= 1000;
		unit++;
	}
	const uint64_t number = whole / divisor;
	/* Three digits; the rest is cut off, so that 999.9 kB does not become 1000 kB. */
	if (unit == 0 || number >= 100)
		snprintf(buf, WEFT_BYTES_BYTES, "%u %s", (unsigned)number, units[unit]);
	else if (number >= 10)
		snprintf(
		    buf, WEFT_BYTES_BYTES, "%u.%u %s", (unsigned)number, (unsigned)(whole / (divisor / 10) % 10), units[unit]);
	else
		snprintf(buf, WEFT_BYTES_BYTES, "%u.%02u %s", (unsigned)number, (unsigned)(whole / (divisor / 100) % 100),
		    units[unit]);
	return buf;
}

struct weft_memory_private {
	struct weft_intern types, lines;
	WEFT_VEC(char *) owned;
	WEFT_VEC(uint32_t) site_of_line; /* by number in `lines` */
};

static int64_t add_bytes(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void add_allocation(struct weft_memory_sum *sum, const struct weft_promise_allocation *a)
{
	const bool is_held = a->freed_ns == INT64_MAX;
	sum->allocated = add_bytes(sum->allocated, a->bytes);
	sum->held = add_bytes(sum->held, is_held ? a->bytes : 0);
	sum->samples++;
	sum->kept += is_held;
}

/* Returns the number of a text in a table; WEFT_INTERN_FAILED without memory. */
static uint32_t intern_copy(struct weft_memory_private *p, struct weft_intern *table, const char *text)
{
	const uint32_t length = (uint32_t)strlen(text), known = weft_intern_find(table, (struct weft_str){text, length});
	if (known != WEFT_INTERN_FAILED)
		return known;
	char **slot = weft_vec_push(&p->owned), *copy = slot ? strdup(text) : NULL;
	if (slot)
		*slot = copy;
	return copy ? weft_intern(table, (struct weft_str){copy, length}) : WEFT_INTERN_FAILED;
}

/* Returns the number of a promise's type, or WEFT_INTERN_FAILED without memory. */
static uint32_t find_type(struct weft_memory_private *p, const struct weft_model *m, uint32_t promise)
{
	char name[WEFT_NAME_BYTES], pattern[WEFT_NAME_BYTES] = "promises that are not in the trace";
	if (promise == WEFT_SYSTEM)
		snprintf(pattern, sizeof pattern, "the system");
	else if (promise != WEFT_NONE && weft_model_name_text(m, promise) == WEFT_NONE)
		weft_name_type(m, promise, pattern);
	else if (promise != WEFT_NONE)
		weft__label_pattern(
		    pattern, sizeof pattern, (struct weft_str){name, (uint32_t)strlen(weft_name_type(m, promise, name))});
	return intern_copy(p, &p->types, pattern);
}

/* Several calls in one line have one sum: returns the first site that has the line's name.  Without memory, returns the site. */
static uint32_t find_line(struct weft_memory_private *p, const struct weft_model *m, uint32_t site)
{
	char name[WEFT_NAME_BYTES];
	if (site == WEFT_NONE || !*weft_name_place(m, site, name))
		return site;
	const size_t known = p->lines.texts.count;
	const uint32_t number = intern_copy(p, &p->lines, name);
	uint32_t *first = number == known ? weft_vec_push(&p->site_of_line) : NULL;
	if (first)
		*first = site;
	return p->site_of_line.items && number < p->site_of_line.count ? p->site_of_line.items[number] : site;
}

static int compare_keys(const void *x, const void *y)
{
	const struct weft_memory_sum *a = x, *b = y;
	return WEFT_ORDER(a->type, b->type) ?: WEFT_ORDER(a->site, b->site) ?: WEFT_ORDER(a->promise, b->promise);
}

static int compare_sums(const void *x, const void *y)
{
	const struct weft_memory_sum *a = x, *b = y;
	return WEFT_ORDER(b->allocated, a->allocated) ?: compare_keys(a, b);
}

/* Makes one sum of all sums that have the same type, and the same line unless lines do not matter.  Returns their number. */
static size_t merge_sums(struct weft_memory_sum *sums, size_t count, bool by_type)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		sums[i].site = by_type ? WEFT_NONE : sums[i].site;
	weft_sort(sums, count, sizeof *sums, compare_keys);
	for (size_t i = 0; i < count; i++) {
		struct weft_memory_sum *last = kept ? &sums[kept - 1] : NULL;
		if (!last || last->type != sums[i].type || last->site != sums[i].site) {
			sums[kept++] = sums[i];
			continue;
		}
		last->allocated = add_bytes(last->allocated, sums[i].allocated);
		last->held = add_bytes(last->held, sums[i].held);
		last->samples += sums[i].samples;
		last->kept += sums[i].kept;
	}
	weft_sort(sums, kept, sizeof *sums, compare_sums);
	return kept;
}

/* Fills `places` with one sum for each allocation. */
static bool read_allocations(struct weft_memory_sums *s, const struct weft_model *m)
{
	uint32_t type = WEFT_INTERN_FAILED, last = WEFT_NONE;
	for (size_t i = 0; i < m->allocation_count; i++) {
		const struct weft_promise_allocation *a = &m->allocations[i];
		if (i == 0 || a->promise != last)
			type = find_type(s->priv, m, a->promise);
		last = a->promise;
		if (type == WEFT_INTERN_FAILED)
			return false;
		s->places[i] = (struct weft_memory_sum){.type = type,
		    .promise = a->promise,
		    .site = find_line(s->priv, m, weft__find_allocating_site(m->trace, a->stack))};
		add_allocation(&s->places[i], a);
	}
	return true;
}

int weft_memory_sums_create(struct weft_memory_sums **out, const struct weft_model *m, struct weft_error *err)
{
	struct weft_memory_sums *s = calloc(1, sizeof *s);
	bool ok = s && (s->priv = calloc(1, sizeof *s->priv)) &&
		  (s->places = calloc(m->allocation_count + 1, sizeof *s->places)) && read_allocations(s, m);
	if (ok) {
		s->place_count = merge_sums(s->places, m->allocation_count, false);
		s->types = calloc(s->place_count + 1, sizeof *s->types);
		ok = s->types;
	}
	if (!ok) {
		weft_memory_sums_destroy(s);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	memcpy(s->types, s->places, s->place_count * sizeof *s->types);
	s->type_count = merge_sums(s->types, s->place_count, true);
	*out = s;
	return WEFT_OK;
}

void weft_memory_sums_destroy(struct weft_memory_sums *s)
{
	if (!s)
		return;
	if (s->priv) {
		for (size_t i = 0; i < s->priv->owned.count; i++)
			free(s->priv->owned.items[i]);
		weft_vec_free(&s->priv->owned);
		weft_vec_free(&s->priv->site_of_line);
		weft_intern_finish(&s->priv->types);
		weft_intern_finish(&s->priv->lines);
	}
	free(s->priv);
	free(s->places);
	free(s->types);
	free(s);
}

const char *weft_memory_type(const struct weft_memory_sums *s, const struct weft_memory_sum *sum)
{
	return s->priv->types.texts.items[sum->type].ptr;
}

int weft_promise_memory(struct weft_promise_memory *out, const struct weft_model *m, uint32_t promise)
{
	size_t count;
	const struct weft_promise_allocation *all = weft_model_allocations(m, promise, &count);
	struct weft_memory_sum *sums = calloc(count + 1, sizeof *sums), whole = {0};
	if (!sums)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		sums[i] = (struct weft_memory_sum){.site = weft__find_allocating_site(m->trace, all[i].stack)};
		add_allocation(&sums[i], &all[i]);
		add_allocation(&whole, &all[i]);
	}
	const size_t places = merge_sums(sums, count, false);
	*out = (struct weft_promise_memory){.allocated = whole.allocated,
	    .held = whole.held,
	    .samples = count,
	    .site = places ? sums[0].site : WEFT_NONE,
	    .site_bytes = sums[0].allocated};
	free(sums);
	return WEFT_OK;
}
