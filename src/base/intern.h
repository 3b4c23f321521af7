/* intern.h: numbers for strings: equal strings get the same one.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_INTERN_H
#define WEFT_BASE_INTERN_H

#include "base/str.h"
#include "base/vec.h"

#define WEFT_INTERN_FAILED UINT32_MAX

/* A zeroed one is empty. */
struct weft_intern {
	WEFT_VEC(struct weft_str) texts; /* by number, in the order of first sight */
	uint32_t *slots;                 /* open addressing; number + 1, or 0 */
	size_t slot_count;               /* a power of two, or 0 */
};

/* The number of a string whose bytes stay where they are as long as the table; WEFT_INTERN_FAILED when out of memory. */
uint32_t weft_intern(struct weft_intern *table, struct weft_str text);

void weft_intern_finish(struct weft_intern *table);

#endif
