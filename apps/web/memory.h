/* memory.h: manages memory that another instance of the WebAssembly core has filled.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_MEMORY_H
#define WEFT_WEB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes all later allocations return addresses at or above `start`, a multiple of 65536.  Returns false without enough
 * memory. */
bool memory_begin_at(uintptr_t start);

/* Registers the bytes from address `from` up to `to`, which another instance allocated.  Returns false if too many such regions
 * are registered. */
bool memory_adopt(uintptr_t from, uintptr_t to);

/* Gives up the region that contains an address; nothing in the region may be used any more. */
void memory_give_up(const void *address);

#endif
