/* sort.h: the one sort.
 *
 * Finds the runs that the input already has and merges them: at most n log n comparisons, n log k for k runs, n for what is
 * sorted or reversed.  It asks for memory for half of the items; if there is none it is a heap sort, so that it never fails.  No
 * recursion. SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SORT_H
#define WEFT_BASE_SORT_H

#include <stddef.h>

#define WEFT_SORT_MOST_BYTES 1024 /* that an item may have */

/* Less than 0, 0 or more than 0, as for qsort(): a total order.  Items that compare equal may come out in any order, so 0 is only
 * for those of which nobody can tell which came first. */
typedef int weft_compare(const void *a, const void *b);

/* How two numbers compare.  Comparators join several by ?: and so compare what comes first, then what comes second, ... */
#define WEFT_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Compares int64_t. */
int weft_compare_i64(const void *a, const void *b);

/* items may be NULL if count is 0. */
void weft_sort(void *items, size_t count, size_t item_bytes, weft_compare *compare);

#endif
