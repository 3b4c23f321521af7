/* select.h: selects the k-th smallest number without sorting.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SELECT_H
#define WEFT_BASE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* Returns the number with index k in sorted order, of `count` numbers that are at least 0; k is below `count`.  Reorders the
 * numbers. Takes linear time. */
int64_t weft_select_kth(int64_t *numbers, size_t count, size_t k);

#endif
