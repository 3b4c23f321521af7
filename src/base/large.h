/* large.h: allocates large arrays in huge pages if the system has them, which makes allocating and reading faster.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_LARGE_H
#define WEFT_BASE_LARGE_H

#include <stddef.h>

/* Allocates uninitialized memory for items of 1 byte or more, which the caller frees with free(); NULL when out of memory.
 * Small arrays are allocated with malloc().
 */
void *weft_large_alloc(size_t count, size_t item_bytes);

#endif
