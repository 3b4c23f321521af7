/* hot_function.h: finds the program's function in which a thread was while it ran one promise for long.
 *
 * Samples are taken only of threads that run one promise for long, and not in the first ms of a run: therefore the result has
 * shares, not times.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_HOT_FUNCTION_H
#define WEFT_ANALYSIS_INDEX_HOT_FUNCTION_H

#include "model/model.h"

/* Sites are indexes into the trace's sites; WEFT_NONE if there is none. */
struct weft__hot_function {
	size_t samples; /* all of the time */
	size_t inside;  /* number of samples in the function, or in functions that it called */
	uint32_t site;  /* the line of the function that most of these samples have */
	/* site of the program's outermost function that is in all of these samples, if it is another function, which an event
	 * loop or another library called */
	uint32_t caller;
};

/* Finds the deepest function of the program that is in most samples of the interval.  Recursion counts once.  Returns 1, or 0
 * if there are fewer than five samples or no such function, or WEFT_ENOMEM.  Takes time linear in the number of samples and
 * their frames. */
int weft__hot_function_find(
    struct weft__hot_function *out, const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns);

/* Returns the line of the program that allocated memory: the deepest frame of a stack of allocations that is the program's own
 * and does more than allocate for its callers.  Returns WEFT_NONE if the stack has no known frame.  Linear in the number of
 * frames. */
uint32_t weft__find_allocating_site(const struct weft_trace_info *info, uint32_t stack);

#endif
