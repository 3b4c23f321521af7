/* search.h: binary search.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SEARCH_H
#define WEFT_BASE_SEARCH_H

#include <stddef.h>

/* Returns the first `i` in first..end-1 for which `condition` is true, or `end`.  If the condition is true for an `i`, it must
 * be true for all later ones.  The condition uses `i` as the index.
 *
 *	size_t at = WEFT_FIND_FIRST(i, 0, count, items[i].time_ns >= time_ns); */
#define WEFT_FIND_FIRST(i, first, end, condition)                                                                                \
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

/* Finds the same `i` as WEFT_FIND_FIRST by doubling steps and then by halving, which is fast if the result is near `first`. */
#define WEFT_FIND_FIRST_NEAR(i, first, end, condition)                                                                           \
	({                                                                                                                       \
		size_t weft__near = (first), weft__end = (end), weft__far = weft__near;                                          \
		for (size_t weft__step = 1; weft__far < weft__end; weft__step *= 2) {                                            \
			const size_t i = weft__far;                                                                              \
			if (condition)                                                                                           \
				break;                                                                                           \
			weft__near = i + 1;                                                                                      \
			weft__far = weft__end - weft__far > weft__step ? weft__far + weft__step : weft__end;                     \
		}                                                                                                                \
		WEFT_FIND_FIRST(i, weft__near, weft__far, condition);                                                            \
	})

#endif
