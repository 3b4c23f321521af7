/* large.h: allocates large arrays in huge pages where the system has them: faster to allocate and to read.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_LARGE_H
#define WEFT_BASE_LARGE_H

#include <stddef.h>

/* Allocates uninitialised memory for items of 1 byte or more, to be freed with free(); NULL when out of memory.  Small sizes come
 * from malloc().
 */
void *weft_large_alloc(size_t count, size_t item_bytes);

#endif
