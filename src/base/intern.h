/* intern.h: gives strings numbers, so that equal strings get the same number.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_INTERN_H
#define WEFT_BASE_INTERN_H

#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

#define WEFT_INTERN_FAILED UINT32_MAX

struct weft_intern_slot {
	uint32_t number; /* number of the string + 1; 0 in a free slot */
	/* hash that is seldom equal for different strings, so that most comparisons need no access to the bytes */
	uint32_t hash;
};

/* A table of numbered strings, which is empty when zero-initialized. */
struct weft_intern {
	WEFT_VEC(struct weft_str) texts; /* strings by number, in the order of their first use */
	struct weft_intern_slot *slots;  /* open addressing */
	size_t slot_count;               /* number of slots: a power of two, or 0 */
	struct weft_hash_key key;
};

/* Returns the number of a string, whose bytes must live as long as the table; WEFT_INTERN_FAILED when out of memory. */
uint32_t weft_intern(struct weft_intern *table, struct weft_str text);

/* Returns the number of a string that the table has already, or WEFT_INTERN_FAILED. */
uint32_t weft_intern_find(const struct weft_intern *table, struct weft_str text);

void weft_intern_finish(struct weft_intern *table);

#endif
