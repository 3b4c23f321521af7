/* entry.h: replaces the first instructions of functions by jumps to wrappers (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ENTRY_H
#define WEFT_HOOK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__entry {
	void *function;
	size_t bytes; /* size of the function; 0: unknown */
	void *wrapper;
	void **original;     /* calls the original function; set before its first byte changes, unchanged if the function is not
				patched */
	const char *refusal; /* out: why the function is not patched (a literal); NULL: it is patched */
};

/* Memory of the slots of one module. */
struct weft__slots {
	void *base;
	size_t bytes;
};

/* Patches the `count` functions of one module whose text is from text_begin to text_end.  No other thread may run the functions
 * meanwhile.  Returns how many are patched.  Free *slots when the module has been unmapped.
 *
 * No memory is writable and executable at the same time, and writable memory never becomes executable. */
size_t weft__entries_patch(
    struct weft__entry *entries, size_t count, uintptr_t text_begin, uintptr_t text_end, struct weft__slots *slots);
void weft__slots_free(struct weft__slots *slots);

/* Writes to memory of this process in spite of its protection.  Returns false on failure. */
bool weft__write_protected(void *at, const void *bytes, size_t count);

#endif
