/* group.c: groups rows by the kind, call site or library of their promises.  Each call site and each kind is examined only once.
 * SPDX-License-Identifier: ISC */
#include "layout/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/sort.h"

static const char *const NAMES[] = {[WEFT_ROWS_BY_THREAD] = "thread",
    [WEFT_ROWS_BY_KIND] = "kind",
    [WEFT_ROWS_BY_SITE] = "site",
    [WEFT_ROWS_BY_LIBRARY] = "library"};

const char *weft_rows_by_name(enum weft_rows_by by)
{
	return NAMES[by];
}

bool weft_rows_by_parse(enum weft_rows_by *out, const char *name, size_t len)
{
	for (int by = 0; by < WEFT_ROWS_BYS; by++)
		if (strlen(NAMES[by]) == len && memcmp(NAMES[by], name, len) == 0) {
			*out = (enum weft_rows_by)by;
			return true;
		}
	return false;
}

size_t weft_group_name(const struct weft_model *m, uint32_t promise, enum weft_rows_by by, char *buf, size_t size)
{
	const struct weft_promise *p = &m->promises[promise];
	const struct weft_site *site = p->site != WEFT_NONE ? &m->trace->sites[p->site] : NULL;
	int len;
	if (by == WEFT_ROWS_BY_KIND) {
		len = snprintf(buf, size, "%s", weft_model_kind_name(m, p->kind));
	} else if (!site) {
		len = snprintf(buf, size, by == WEFT_ROWS_BY_SITE ? "unknown place" : "unknown library");
	} else if (by == WEFT_ROWS_BY_SITE) {
		len = (int)weft_site_format(site, buf, size);
	} else {
		struct weft_str library = weft_site_library(site);
		len = snprintf(buf, size, "%.*s", (int)library.len, library.ptr);
	}
	return len < (int)size ? (size_t)len : size - 1;
}

/* Keys of groups, as small numbers: the kind, the site + 1, or the library + 1.  A key of 0 means unknown. */
struct keys {
	uint32_t *of_site; /* for each site: the key of its library; NULL if rows are not grouped by library */
	size_t count;
};

static bool find_keys(struct keys *keys, const struct weft_model *m, enum weft_rows_by by)
{
	const size_t sites = m->trace ? m->trace->site_count : 0;
	if (by != WEFT_ROWS_BY_LIBRARY) {
		keys->count = by == WEFT_ROWS_BY_KIND ? UINT16_MAX + 1 : sites + 1;
		return true;
	}
	struct weft_intern libraries = {0};
	keys->of_site = malloc((sites + 1) * sizeof *keys->of_site);
	bool done = keys->of_site;
	for (size_t i = 0; i < sites && done; i++) {
		uint32_t number = weft_intern(&libraries, weft_site_library(&m->trace->sites[i]));
		done = number != WEFT_INTERN_FAILED;
		keys->of_site[i] = number + 1;
	}
	keys->count = libraries.texts.count + 1;
	weft_intern_finish(&libraries);
	return done;
}

static uint32_t key_of(const struct keys *keys, const struct weft_promise *p, enum weft_rows_by by)
{
	if (by == WEFT_ROWS_BY_KIND)
		return p->kind;
	return p->site == WEFT_NONE ? 0 : keys->of_site ? keys->of_site[p->site] : p->site + 1;
}

struct group {
	uint32_t key, promises, order; /* order: rank of the group among the groups by their first promises */
};

static int compare_sizes(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	return WEFT_ORDER(y->promises, x->promises) ?: WEFT_ORDER(x->order, y->order);
}

static int compare_orders(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	return WEFT_ORDER(x->order, y->order);
}

/* Replaces the number of promises of each key by the number of the key's group.  Returns the number of groups. */
static size_t number_groups(uint32_t *by_key, struct group *groups, size_t count)
{
	size_t own = count > WEFT_MAX_GROUPS ? WEFT_MAX_GROUPS - 1 : count;
	weft_sort(groups, count, sizeof *groups, compare_sizes);
	weft_sort(groups, own, sizeof *groups, compare_orders);
	for (size_t i = 0; i < count; i++)
		by_key[groups[i].key] = (uint32_t)(i < own ? i : own);
	return own < count ? own + 1 : own;
}

int weft_groups_find(
    uint16_t **out, size_t *group_count, bool *is_rest, const struct weft_model *m, enum weft_rows_by by, struct weft_error *err)
{
	struct keys keys = {0};
	uint16_t *group_of = malloc((m->promise_count + 1) * sizeof *group_of);
	bool done = group_of && find_keys(&keys, m, by);
	/* For each key: number of its promises, later its group. */
	uint32_t *by_key = done ? calloc(keys.count, sizeof *by_key) : NULL;
	struct group *groups = done ? calloc(keys.count, sizeof *groups) : NULL;
	size_t count = 0;
	done = by_key && groups;
	for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count && done; p++) {
		uint32_t key = key_of(&keys, &m->promises[p], by);
		if (by_key[key]++ == 0)
			groups[count++] = (struct group){.key = key, .order = p};
	}
	for (size_t i = 0; i < count; i++)
		groups[i].promises = by_key[groups[i].key];
	if (done) {
		*group_count = number_groups(by_key, groups, count);
		*is_rest = *group_count < count;
		group_of[WEFT_SYSTEM] = 0;
		for (uint32_t p = WEFT_SYSTEM + 1; p < m->promise_count; p++)
			group_of[p] = (uint16_t)by_key[key_of(&keys, &m->promises[p], by)];
		*out = group_of;
	} else {
		free(group_of);
	}
	free(by_key);
	free(groups);
	free(keys.of_site);
	return done ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "no memory to group %zu promises", m->promise_count);
}
