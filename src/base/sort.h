/* sort.h: sorts arrays.
 *
 * Finds the sorted runs that the input already has and merges them: at most n log n comparisons, n log k for k runs, and n for
 * sorted or reversed input.  Allocates memory for half of the items; when out of memory it uses heap sort, so it never fails.
 * No recursion.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SORT_H
#define WEFT_BASE_SORT_H

#include <stddef.h>

#define WEFT_SORT_MAX_ITEM_BYTES 1024 /* of one item */

/* Compares two items, as for qsort(): returns a number below, equal to or above 0; must be a total order.  Equal items may come
 * out in any order, so the function should return 0 only for items that cannot be distinguished. */
typedef int weft_compare_fn(const void *a, const void *b);

/* Compares two numbers.  Several comparisons are combined by ?: to compare a first key, then a second key, and so on. */
#define WEFT_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Compares two int64_t. */
int weft_compare_i64(const void *a, const void *b);

/* Sorts the items; items may be NULL if count is 0. */
void weft_sort(void *items, size_t count, size_t item_bytes, weft_compare_fn *compare);

#endif
