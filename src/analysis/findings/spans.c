/* spans.c: gathers, groups and counts intervals for the checks.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/sort.h"

static int compare_spans(const void *a, const void *b)
{
	const struct weft__span *x = a, *y = b;
	return WEFT_ORDER(x->group, y->group)
		   ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->end_ns, y->end_ns);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return WEFT_ORDER(*x, *y);
}

void weft__spans_add(struct weft__finder *f, weft__spans_vec *spans, struct weft__span span)
{
	struct weft__span *added = weft_vec_push(spans);
	f->no_memory |= !added;
	if (added)
		*added = span;
}

void weft__spans_sort(weft__spans_vec *spans)
{
	if (spans->count > 0)
		weft_sort(spans->items, spans->count, sizeof *spans->items, compare_spans);
}

size_t weft__spans_group_end(const weft__spans_vec *spans, size_t begin)
{
	size_t end = begin;
	while (end < spans->count && spans->items[end].group == spans->items[begin].group)
		end++;
	return end;
}

uint32_t weft__spans_most_at_once(struct weft__finder *f, const struct weft__span *spans, size_t count)
{
	int64_t *ends_ns = weft__finding_alloc(f, count, sizeof *ends_ns);
	size_t most = 0;
	for (size_t i = 0; ends_ns && i < count; i++)
		ends_ns[i] = spans[i].end_ns;
	if (ends_ns)
		weft_sort(ends_ns, count, sizeof *ends_ns, compare_times);
	for (size_t i = 0, over = 0; ends_ns && i < count; i++) {
		while (over < count && ends_ns[over] <= spans[i].start_ns)
			over++;
		most = i + 1 - over > most ? i + 1 - over : most;
	}
	free(ends_ns);
	return (uint32_t)most;
}
