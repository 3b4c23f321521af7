/* matches.c: lists the matches of a search as rows.  SPDX-License-Identifier: ISC */
#include "viewer/matches.h"

#include <stdio.h>

#include "base/duration.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/vec.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"
#include "viewer/search.h"

static void add_match(struct weft_rows *rows, const struct weft_viewer *v, uint32_t promise)
{
	const struct weft_promise *p = &v->model->promises[promise];
	char name[256], at[WEFT_DURATION_BYTES], length[WEFT_DURATION_BYTES];
	weft_model_name(v->model, promise, name, sizeof name);
	size_t value = weft__rows_text(rows, "%s at %s, %s", weft_model_kind_name(v->model, p->kind),
	    weft_duration_text(at, p->start_ns), weft_duration_text(length, p->end_ns - p->start_ns));
	struct weft_row *row = weft__rows_add(rows, WEFT_ROW_LINK, weft__rows_text(rows, "%s", name), value);
	row->promise = promise;
	row->leads = true;
	row->is_open = promise == v->selected;
}

static void add_more(struct weft_rows *rows, size_t count, const char *where)
{
	char number[28];
	if (count > 0)
		weft__rows_add(
		    rows, WEFT_ROW_MORE, weft__rows_text(rows, "%s more %s", weft_number_text(number, count), where), 0);
}

/* Maximum number of matches that are sorted; longer lists are in the order of promise numbers, which is nearly that of time,
 * because sorting would take too long. */
#define MAX_SORTED 50000u

struct match {
	const struct weft_viewer *viewer; /* for the comparison */
	uint32_t promise;
};

typedef WEFT_VEC(struct match) match_vec;

static int compare_matches(const void *a, const void *b)
{
	const struct match *x = a, *y = b;
	return x->promise == y->promise ? 0 : weft__match_is_before(x->viewer, x->promise, y->promise) ? -1 : 1;
}

static bool list_matches(match_vec *list, const struct weft_viewer *v)
{
	if (!weft_vec_reserve(list, v->view->found))
		return false;
	for (uint32_t w = 0; w <= v->model->promise_count / 64; w++)
		for (uint64_t bits = v->view->highlight[w]; bits && list->count < v->view->found; bits &= bits - 1)
			list->items[list->count++] = (struct match){v, w * 64 + (uint32_t)__builtin_ctzll(bits)};
	return true;
}

int weft_matches_fill(struct weft_rows *rows, const struct weft_viewer *v, struct weft_error *err)
{
	match_vec list = {0};
	size_t skipped = 0;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a list of matches");
	if (!v->search_text[0] || v->highlighting != WEFT_HIGHLIGHT_SEARCH)
		return weft__rows_end(rows, err);
	if (!list_matches(&list, v))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a list of matches");
	if (v->match_order != WEFT_MATCHES_BY_TIME && list.count > 1 && list.count <= MAX_SORTED)
		weft_sort(list.items, list.count, sizeof *list.items, compare_matches);
	/* The list shows whole pages, so that it does not move while the user steps through it. */
	for (size_t i = 0; i < list.count && v->selected != WEFT_NONE; i++)
		if (list.items[i].promise == v->selected)
			skipped = i / WEFT_MATCHES_SHOWN * WEFT_MATCHES_SHOWN;
	const size_t end = list.count - skipped > WEFT_MATCHES_SHOWN ? skipped + WEFT_MATCHES_SHOWN : list.count;
	add_more(rows, skipped, "matches before this list");
	for (size_t i = skipped; i < end; i++)
		add_match(rows, v, list.items[i].promise);
	/* During the search, the number of matches would change constantly. */
	if (!weft_viewer_is_searching(v))
		add_more(rows, list.count - end, "matches after this list");
	weft_vec_free(&list);
	return weft__rows_end(rows, err);
}

const char *weft_matches_count(const struct weft_compare *c, char buf[WEFT_MATCHES_BYTES])
{
	const struct weft_viewer *active = weft_compare_active(c);
	char all[28], one[28];
	buf[0] = '\0';
	if (!active || !active->search_text[0])
		return buf;
	size_t found = weft_compare_found(c), number = weft_viewer_match_number(active);
	static const char *const orders[] = {
	    [WEFT_MATCHES_BY_TIME] = "", [WEFT_MATCHES_BY_DURATION] = ", longest first", [WEFT_MATCHES_BY_NAME] = ", by name"};
	const char *order = found > 1 ? orders[active->match_order] : "";
	const char *more = weft_viewer_is_searching(active) ? "\xe2\x80\xa6" : "";
	for (size_t i = 0; number > 0 && i < c->active; i++)
		number += c->viewers[i]->view->found;
	if (found == 0)
		snprintf(buf, WEFT_MATCHES_BYTES, "%s", *more ? more : "not found");
	else if (number > 0)
		snprintf(buf, WEFT_MATCHES_BYTES, "%s of %s%s%s", weft_number_text(one, number), weft_number_text(all, found),
		    more, order);
	else
		snprintf(buf, WEFT_MATCHES_BYTES, "%s found%s%s", weft_number_text(all, found), more, order);
	return buf;
}
