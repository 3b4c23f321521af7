/* large.h: memory for arrays of millions, in large pages where the system has them: it gives these in less time, and they are
 * read faster.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_LARGE_H
#define WEFT_BASE_LARGE_H

#include <stddef.h>

/* Room for some items of 1 byte or more, not initialised, for free(); NULL when out of memory.  What is small is as of malloc().
 */
void *weft_large_alloc(size_t count, size_t item_bytes);

#endif
