/* memory.h: sums up sampled allocations by type of promise and by the program's line that allocated.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_MEMORY_H
#define WEFT_ANALYSIS_INDEX_MEMORY_H

#include "model/model.h"

#define WEFT_BYTES_BYTES 32 /* enough for any size */

/* Formats a size for users with three digits and a decimal unit, such as "1.23 MB"; returns buf. */
const char *weft_bytes_text(char buf[WEFT_BYTES_BYTES], int64_t bytes);

struct weft_memory_sum {
	uint32_t type;        /* text of weft_memory_type() */
	uint32_t site;        /* index into the trace's sites; WEFT_NONE if it is unknown, or for a sum by type alone */
	uint32_t promise;     /* one promise of the type; WEFT_NONE if none is in the trace */
	int64_t allocated;    /* estimated number of bytes */
	int64_t held;         /* those that were not freed */
	size_t samples, kept; /* number of samples; number of those that were not freed */
};

struct weft_memory_sums {
	struct weft_memory_sum *types, *places; /* by type; by type and line; the most allocated bytes first */
	size_t type_count, place_count;
	struct weft_memory_private *priv;
};

/* Sums up the allocations of the model.  The caller frees *out with weft_memory_sums_destroy().  Returns WEFT_ENOMEM on failure,
 * and then leaves *out unchanged.  Takes n log n time. */
int weft_memory_sums_create(struct weft_memory_sums **out, const struct weft_model *model, struct weft_error *err);
void weft_memory_sums_destroy(struct weft_memory_sums *sums); /* accepts NULL */

/* Returns the name of a type of promise. */
const char *weft_memory_type(const struct weft_memory_sums *sums, const struct weft_memory_sum *sum);

/* The allocations of one promise. */
struct weft_promise_memory {
	int64_t allocated, held;
	size_t samples;
	uint32_t site;      /* line with the most allocated bytes, or WEFT_NONE */
	int64_t site_bytes; /* those bytes */
};

/* Sums up the allocations of a promise.  WEFT_ENOMEM. */
int weft_promise_memory(struct weft_promise_memory *out, const struct weft_model *model, uint32_t promise);

#endif
