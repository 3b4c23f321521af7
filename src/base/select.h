/* select.h: selects the k-th smallest number of an array without sorting.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SELECT_H
#define WEFT_BASE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number that would have index k in sorted order; the `count` numbers must be at least 0, and k below `count`.
 * Reorders the numbers. Takes linear time. */
int64_t weft_select_kth(int64_t *numbers, size_t count, size_t k);

#endif
