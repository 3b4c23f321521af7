/* memory.h: samples allocations, for `weft record --memory` (private to adapters/hook).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_MEMORY_H
#define WEFT_HOOK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Wraps the functions of the program's allocator, and samples one allocation in every `period_bytes` bytes on average.  The
 * process must have one thread.  If the allocator cannot be wrapped, the report of the runtimes says why. */
void weft__hook_memory_begin(uint32_t period_bytes, bool is_single_threaded);

#endif
