/* find.c: highlights promises.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "view/query.h"
#include "view/view.h"

void weft_view_unhighlight(struct weft_view *v)
{
	memset(v->highlight, 0, (v->model->promise_count / 64 + 1) * sizeof *v->highlight);
	v->found = 0;
}

void weft_view_set_highlight(struct weft_view *v, uint32_t promise, bool on)
{
	uint64_t bit = 1ull << promise % 64, *word = &v->highlight[promise / 64];
	v->found += (size_t)on - (size_t)((*word & bit) != 0);
	*word = on ? *word | bit : *word & ~bit;
}

bool weft_view_is_line_highlighted(const struct weft_view *v, uint32_t promise)
{
	const struct weft_layout *layout = v->layout;
	if (weft_view_is_highlighted(v, promise))
		return true;
	if (!layout->leaders || !(layout->leaders[promise / 64] >> promise % 64 & 1))
		return false;
	const struct weft_fold *fold = weft_layout_fold(layout, promise);
	for (uint32_t i = 0; fold && i < fold->count; i++)
		if (weft_view_is_highlighted(v, layout->folded[fold->first + i]))
			return true;
	return false;
}

size_t weft_view_find_query(struct weft_view *v, struct weft_query *query)
{
	weft_view_unhighlight(v);
	for (uint32_t p = WEFT_SYSTEM + 1; p < v->model->promise_count; p++)
		if (weft_query_matches(query, v->model, p))
			weft_view_set_highlight(v, p, true);
	v->found = weft_query_keep_slowest(query, v->model, v->highlight, v->found);
	return v->found;
}

size_t weft_view_find(struct weft_view *v, const char *text)
{
	struct weft_query query;
	size_t found = 0;
	if (weft_query_parse(&query, text, strlen(text), NULL) == WEFT_OK) {
		found = weft_view_find_query(v, &query);
		weft_query_finish(&query);
	} else {
		weft_view_unhighlight(v);
	}
	return found;
}

size_t weft_view_find_related(struct weft_view *v, uint32_t promise)
{
	const struct weft_model *model = v->model;
	weft_view_unhighlight(v);
	if (promise >= model->promise_count)
		return 0;
	for (uint32_t p = promise; p != WEFT_NONE && !weft_view_is_highlighted(v, p); p = model->promises[p].became)
		weft_view_set_highlight(v, p, true);
	/* Backwards, `first` and `next` list for each promise the promises that became it; newly found promises go on a
	 * stack. */
	size_t n = model->promise_count;
	uint32_t *first = malloc(n * sizeof *first), *next = malloc(n * sizeof *next), *stack = malloc(n * sizeof *stack);
	if (first && next && stack) {
		memset(first, 0xff, n * sizeof *first);
		for (uint32_t p = (uint32_t)n; p-- > 0;) {
			uint32_t into = model->promises[p].became;
			if (into == WEFT_NONE)
				continue;
			next[p] = first[into];
			first[into] = p;
		}
		size_t height = 0;
		uint64_t *walked = calloc(n / 64 + 1, sizeof *walked);
		if (walked)
			stack[height++] = promise;
		while (height > 0) {
			uint32_t at = stack[--height];
			for (uint32_t p = first[at]; p != WEFT_NONE; p = next[p]) {
				if (walked[p / 64] >> p % 64 & 1)
					continue;
				walked[p / 64] |= 1ull << p % 64;
				weft_view_set_highlight(v, p, true);
				stack[height++] = p;
			}
		}
		free(walked);
	}
	free(first);
	free(next);
	free(stack);
	return v->found;
}
