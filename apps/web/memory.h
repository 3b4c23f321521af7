/* memory.h: memory that another instance of the core has filled.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_MEMORY_H
#define WEFT_WEB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes all later allocations lie at or above `start`, a multiple of 65536.  False: there is not enough memory. */
bool memory_begin_at(uintptr_t start);

/* Says that another instance allocated the bytes from `from` up to `to`.  False: there are too many such stretches. */
bool memory_adopt(uintptr_t from, uintptr_t to);

/* Gives up the whole stretch that contains an address: nothing in it is used any more. */
void memory_give_up(const void *address);

#endif
