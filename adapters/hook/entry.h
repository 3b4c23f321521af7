/* entry.h: functions that go somewhere else from their first instruction on (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ENTRY_H
#define WEFT_HOOK_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weft__entry {
	void *function;
	size_t bytes; /* 0: unknown */
	void *wrapper;
	void **original; /* set before the first byte changes; left as it is where the function is not taken */
	const char *why; /* out: why it was not taken, a literal; NULL: it was */
};

/* Memory that slots are in. */
struct weft__slots {
	void *base;
	size_t bytes;
};

/* Takes what can be taken of `count` functions of one module, whose text is from text_begin to text_end.  No OS thread may run
 * them meanwhile.  Returns how many were taken; *slots is to be given back when the module has been unmapped.
 *
 * No memory is ever both writable and executable, and none that may be written becomes executable. */
size_t weft__entries_take(
    struct weft__entry *entries, size_t count, uintptr_t text_begin, uintptr_t text_end, struct weft__slots *slots);
void weft__slots_free(struct weft__slots *slots);

/* Writes to memory of this process, whatever its protection; false: it could not. */
bool weft__poke(void *at, const void *bytes, size_t count);

#endif
