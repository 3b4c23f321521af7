/* entry.h: replaces the first instructions of functions by jumps to wrappers (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ENTRY_H
#define WEFT_HOOK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__entry {
	void *function;
	size_t bytes; /* size of the function in bytes; 0: unknown */
	void *wrapper;
	/* Out: address that calls the original function; set before the function's first byte changes, unchanged if the function
	 * is not patched. */
	void **original;
	const char *refusal; /* out: reason for which the function is not patched (a literal); NULL if it is patched */
};

/* Memory of one module's slots (pieces of code with moved instructions). */
struct weft__slots {
	void *base;
	size_t bytes;
};

/* Patches `count` functions of one module, whose text lies from text_begin to text_end.  No other thread may run these functions
 * meanwhile.  Returns the number of patched functions.  Free *slots when the module has been unmapped.
 *
 * In this file, no memory is writable and executable at the same time, and writable memory never becomes executable. */
size_t weft__entries_patch(
    struct weft__entry *entries, size_t count, uintptr_t text_begin, uintptr_t text_end, struct weft__slots *slots);
void weft__slots_free(struct weft__slots *slots);

/* Writes to memory of this process even if the memory is write-protected.  Returns false on failure. */
bool weft__write_protected(void *at, const void *bytes, size_t count);

#endif
