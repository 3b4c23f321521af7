/* select.h: the k-th smallest of many, without sorting them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SELECT_H
#define WEFT_BASE_SELECT_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` numbers, none below 0, that of which k are as small or smaller; k is below `count`.  The numbers are moved about.
 * Linear. */
int64_t weft_select(int64_t *numbers, size_t count, size_t k);

#endif
