/* hot_function.h: the function of the program in which a thread was while it ran one promise for long.
 *
 * Samples are taken only of threads that run one promise for long, and the first ms of a run have none: the result has shares,
 * and no times.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_HOT_FUNCTION_H
#define WEFT_ANALYSIS_INDEX_HOT_FUNCTION_H

#include "model/model.h"

/* Sites are indexes into the trace's sites; WEFT_NONE: there is none. */
struct weft__hot_function {
	size_t samples;  /* all of the time */
	size_t inside;   /* those in the function, or in what it called */
	uint32_t site;   /* the line of the function that most of them have */
	uint32_t caller; /* of the program's outermost function that is in all of them, if that is another function: it was called
			    by an event loop or another library */
};

/* Finds the deepest function of the program in which most samples of the interval are.  Recursion counts once.  Returns 1, 0 if
 * there are fewer than five samples or no such function, or WEFT_ENOMEM.  Linear in samples and their frames. */
int weft__hot_function_find(
    struct weft__hot_function *out, const struct weft_model *model, uint16_t stream, int64_t from_ns, int64_t to_ns);

#endif
