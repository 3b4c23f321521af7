/* str.h: declares a string whose bytes another object owns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A string of bytes without a NUL at its end; it may be invalid UTF-8, and may contain NUL. */
struct weft_str {
	const char *ptr;
	uint32_t len;
};

static inline bool weft_str_equal(struct weft_str a, struct weft_str b)
{
	return a.len == b.len && (!a.len || !memcmp(a.ptr, b.ptr, a.len));
}

/* WEFT_LISTED_NAME gives the names of a list X(UPPER, "name", ...), for the initializer of an array.  WEFT_NAME_OF gives the
 * name of a number, or "unknown". */
#define WEFT_LISTED_NAME(UPPER, name, ...) name,
#define WEFT_NAME_OF(names, number) ((size_t)(number) < sizeof(names) / sizeof *(names) ? (names)[number] : "unknown")

#endif
