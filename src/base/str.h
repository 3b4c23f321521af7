/* str.h: bytes that somebody else owns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Not terminated, perhaps not UTF-8, perhaps with NUL inside. */
struct weft_str {
	const char *ptr;
	uint32_t len;
};

static inline bool weft_str_equal(struct weft_str a, struct weft_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

/* The names of a list of X(UPPER, "name", ...), to be the initialiser of an array; and the one of a number, if there is one. */
#define WEFT_LISTED_NAME(UPPER, name, ...) name,
#define WEFT_NAME_OF(names, number) ((size_t)(number) < sizeof(names) / sizeof *(names) ? (names)[number] : "unknown")

#endif
