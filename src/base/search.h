/* search.h: the one binary search.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SEARCH_H
#define WEFT_BASE_SEARCH_H

#include <stddef.h>

/* The first `i` of first..end-1 of which `condition` holds, `end` if of none: a condition that, once it holds, holds for all that
 * come after.  `i` is the name that the condition knows the place by.
 *
 *	size_t at = WEFT_FIRST(i, 0, count, items[i].time_ns >= time_ns); */
#define WEFT_FIRST(i, first, end, condition)                                                                                     \
	({                                                                                                                       \
		size_t weft__low = (first), weft__high = (end);                                                                  \
		while (weft__low < weft__high) {                                                                                 \
			const size_t i = weft__low + (weft__high - weft__low) / 2;                                               \
			if (condition)                                                                                           \
				weft__high = i;                                                                                  \
			else                                                                                                     \
				weft__low = i + 1;                                                                               \
		}                                                                                                                \
		weft__low;                                                                                                       \
	})

/* The same, by steps that double and only then by halves: cheap where the answer is near `first`. */
#define WEFT_FIRST_NEAR(i, first, end, condition)                                                                                \
	({                                                                                                                       \
		size_t weft__near = (first), weft__end = (end), weft__far = weft__near;                                          \
		for (size_t weft__step = 1; weft__far < weft__end; weft__step *= 2) {                                            \
			const size_t i = weft__far;                                                                              \
			if (condition)                                                                                           \
				break;                                                                                           \
			weft__near = i + 1;                                                                                      \
			weft__far = weft__end - weft__far > weft__step ? weft__far + weft__step : weft__end;                     \
		}                                                                                                                \
		WEFT_FIRST(i, weft__near, weft__far, condition);                                                                 \
	})

#endif
