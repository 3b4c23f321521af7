/* functions.h: sums up the sampled time of each function.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_QUERIES_FUNCTIONS_H
#define WEFT_ANALYSIS_QUERIES_FUNCTIONS_H

#include "analysis/queries/flame_stacks.h"

struct weft_function_sum {
	uint32_t stack;   /* a stack that ends in the function, for weft_stack_name() */
	uint32_t type;    /* the type of promise in whose runs the function was for longest, as a stack */
	int64_t own_ns;   /* time in the function itself */
	int64_t total_ns; /* time in the function and in those that it called; recursion counts once */
	int64_t most_ns;  /* largest time of a stack that ends in the function */
};

/* Sums up stacks by function (WEFT_FOLDED_BY_FUNCTION), the function with the most own time first.  The caller frees *out.
 * Returns WEFT_ENOMEM on failure.  Takes n log n time in the number of stacks. */
int weft_functions_create(
    struct weft_function_sum **out, size_t *count, const struct weft_stacks *stacks, struct weft_error *err);

#endif
