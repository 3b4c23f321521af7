/* memory.c: gives each promise its sampled allocations.  SPDX-License-Identifier: ISC */
#include "base/search.h"
#include "base/sort.h"
#include "model/private.h"

static int compare_allocations(const void *x, const void *y)
{
	const struct weft_promise_allocation *a = x, *b = y;
	return WEFT_ORDER(a->promise, b->promise) ?: WEFT_ORDER(a->time_ns, b->time_ns) ?: WEFT_ORDER(a->index, b->index);
}

static int64_t get_time_ns(const struct weft_model *m, int64_t time_ns)
{
	int64_t since_ns;
	return __builtin_sub_overflow(time_ns, m->start_ns, &since_ns) ? INT64_MAX : since_ns;
}

int weft__model_read_memory(struct weft_model *m)
{
	const struct weft_memory *memory = &m->trace->memory;
	if (!memory->allocation_count)
		return WEFT_OK;
	struct weft_promise_allocation *all = malloc(memory->allocation_count * sizeof *all);
	if (!all)
		return WEFT_ENOMEM;
	for (size_t i = 0; i < memory->allocation_count; i++) {
		const struct weft_allocation *a = &memory->allocations[i];
		all[i] = (struct weft_promise_allocation){.time_ns = get_time_ns(m, a->time_ns),
		    .freed_ns = a->freed_ns == INT64_MAX ? INT64_MAX : get_time_ns(m, a->freed_ns),
		    .bytes = a->bytes,
		    .promise = a->promise == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_model_find(m, a->promise),
		    .stack = a->stack,
		    .index = (uint32_t)i};
	}
	weft_sort(all, memory->allocation_count, sizeof *all, compare_allocations);
	m->allocations = all;
	m->allocation_count = memory->allocation_count;
	return WEFT_OK;
}

const struct weft_promise_allocation *weft_model_allocations(const struct weft_model *m, uint32_t promise, size_t *count)
{
	const size_t begin = WEFT_FIND_FIRST(i, 0, m->allocation_count, m->allocations[i].promise >= promise);
	const size_t end = WEFT_FIND_FIRST(i, begin, m->allocation_count, m->allocations[i].promise > promise);
	*count = end - begin;
	return m->allocations ? m->allocations + begin : NULL;
}
