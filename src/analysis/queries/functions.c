/* functions.c: see functions.h.  SPDX-License-Identifier: ISC */
#include "analysis/queries/functions.h"

#include <stdlib.h>

#include "base/sort.h"

/* Depth of the stacks that are types of promises; the functions are below. */
enum { TYPE_DEPTH = 1 };

static int compare_functions(const void *x, const void *y)
{
	const struct weft_function_sum *a = x, *b = y;
	return WEFT_ORDER(b->own_ns, a->own_ns) ?: WEFT_ORDER(b->total_ns, a->total_ns) ?: WEFT_ORDER(a->stack, b->stack);
}

/* Returns whether a function is among its own callers, and in *type the type of promise above it. */
static bool is_recursive(const struct weft_stacks *s, uint32_t stack, uint32_t *type)
{
	bool found = false;
	uint32_t at = s->stacks[stack].above;
	for (; s->stacks[at].depth > TYPE_DEPTH; at = s->stacks[at].above)
		found |= s->stacks[at].frame == s->stacks[stack].frame;
	*type = at;
	return found;
}

int weft_functions_create(struct weft_function_sum **out, size_t *count, const struct weft_stacks *s, struct weft_error *err)
{
	uint32_t frames = 0;
	for (size_t i = 1; i < s->count; i++)
		frames = s->stacks[i].frame >= frames ? s->stacks[i].frame + 1 : frames;
	struct weft_function_sum *sums = calloc((size_t)frames + 1, sizeof *sums);
	if (!sums)
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	for (uint32_t i = 1; i < s->count; i++) {
		const struct weft_stack_sum *stack = &s->stacks[i];
		struct weft_function_sum *sum = &sums[stack->frame];
		uint32_t type;
		if (stack->depth <= TYPE_DEPTH)
			continue;
		sum->own_ns += stack->own_ns;
		sum->total_ns += is_recursive(s, i, &type) ? 0 : stack->sum_ns;
		if (stack->sum_ns > sum->most_ns) {
			sum->most_ns = stack->sum_ns;
			sum->stack = i;
			sum->type = type;
		}
	}
	*count = 0;
	for (uint32_t f = 0; f < frames; f++)
		if (sums[f].most_ns > 0)
			sums[(*count)++] = sums[f];
	weft_sort(sums, *count, sizeof *sums, compare_functions);
	*out = sums;
	return WEFT_OK;
}
