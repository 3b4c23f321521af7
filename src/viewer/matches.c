/* matches.c: lists the matches of a search as rows.  SPDX-License-Identifier: ISC */
#include "viewer/matches.h"

#include <stdio.h>

#include "base/duration.h"
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

/* Returns the number of matches before a promise, in the order of promise numbers. */
static size_t count_matches_before(const struct weft_viewer *v, uint32_t promise)
{
	size_t count = 0;
	for (uint32_t w = 0; w < promise / 64; w++)
		count += (size_t)__builtin_popcountll(v->view->highlight[w]);
	return count + (size_t)__builtin_popcountll(v->view->highlight[promise / 64] & ((1ull << promise % 64) - 1));
}

int weft_matches_fill(struct weft_rows *rows, const struct weft_viewer *v, struct weft_error *err)
{
	size_t found = v->view->found, skipped = 0, number = 0;
	if (!weft__rows_begin(rows))
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a list of matches");
	if (!v->search_text[0] || v->highlighting != WEFT_HIGHLIGHT_SEARCH)
		return weft__rows_end(rows, err);
	if (v->selected != WEFT_NONE && weft_view_is_highlighted(v->view, v->selected)) {
		/* The list shows pages, so that it does not move while the user steps through it. */
		skipped = count_matches_before(v, v->selected) / WEFT_MATCHES_SHOWN * WEFT_MATCHES_SHOWN;
	}
	add_more(rows, skipped, "before these");
	for (uint32_t w = 0; w <= v->model->promise_count / 64 && number < skipped + WEFT_MATCHES_SHOWN; w++)
		for (uint64_t bits = v->view->highlight[w]; bits && number < skipped + WEFT_MATCHES_SHOWN; bits &= bits - 1)
			if (number++ >= skipped)
				add_match(rows, v, w * 64 + (uint32_t)__builtin_ctzll(bits));
	/* During the search this number would change constantly. */
	if (!weft_viewer_is_searching(v))
		add_more(rows, found - number, "after these");
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
	const char *more = weft_viewer_is_searching(active) ? "\xe2\x80\xa6" : "";
	for (size_t i = 0; number > 0 && i < c->active; i++)
		number += c->viewers[i]->view->found;
	if (found == 0)
		snprintf(buf, WEFT_MATCHES_BYTES, "%s", *more ? more : "not found");
	else if (number > 0)
		snprintf(
		    buf, WEFT_MATCHES_BYTES, "%s of %s%s", weft_number_text(one, number), weft_number_text(all, found), more);
	else
		snprintf(buf, WEFT_MATCHES_BYTES, "%s found%s", weft_number_text(all, found), more);
	return buf;
}
