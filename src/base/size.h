/* size.h: sizes that come from files, added and multiplied without wrapping.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each answers false, and leaves *size as it was, where the result does not fit in a size_t.  `more` and `times` are 64 bits wide
 * wherever it runs: what a file says may be more than this machine can address. */
static inline bool weft_size_add(size_t *size, uint64_t more)
{
	size_t sum;
	if (__builtin_add_overflow(*size, more, &sum))
		return false;
	*size = sum;
	return true;
}

static inline bool weft_size_multiply(size_t *size, uint64_t times)
{
	size_t product;
	if (__builtin_mul_overflow(*size, times, &product))
		return false;
	*size = product;
	return true;
}

/* Whether `bytes` from `offset` on lie within `size` bytes. */
static inline bool weft_size_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return offset <= size && bytes <= size - offset;
}

#endif
