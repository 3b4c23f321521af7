/* size.h: adds and multiplies sizes from files without overflow.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_SIZE_H
#define WEFT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Add to *size, or multiply it; return false, with *size unchanged, if the result does not fit in a size_t.  `more` and `times`
 * have 64 bits on every machine, because a size in a file may exceed the address space. */
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

/* Returns whether `bytes` bytes from `offset` on lie within `size` bytes. */
static inline bool weft_size_within(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return offset <= size && bytes <= size - offset;
}

#endif
