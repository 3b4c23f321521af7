/* large.c: see large.h.  Large arrays are allocated in transparent huge pages on Linux.  SPDX-License-Identifier: ISC */
#include "base/large.h"

#include <stdint.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef MADV_HUGEPAGE
enum { PAGE_BYTES = 2 << 20, MIN_PAGES = 2 };
#endif

void *weft_large_alloc(size_t count, size_t item_bytes)
{
	if (count > SIZE_MAX / 2 / item_bytes)
		return NULL;
#ifdef MADV_HUGEPAGE
	/* The size is rounded to the nearest huge page, because a huge page that is little used wastes memory. */
	const size_t bytes = count * item_bytes, pages_bytes = (bytes + PAGE_BYTES / 2) / PAGE_BYTES * PAGE_BYTES;
	void *memory;
	if (pages_bytes >= (size_t)MIN_PAGES * PAGE_BYTES) {
		if (posix_memalign(&memory, PAGE_BYTES, bytes > pages_bytes ? bytes : pages_bytes) != 0)
			return NULL;
		madvise(memory, pages_bytes, MADV_HUGEPAGE); /* only a hint */
		return memory;
	}
#endif
	return malloc(count * item_bytes);
}
