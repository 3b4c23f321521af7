/* memory.h: memory that another instance of the core has filled.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_MEMORY_H
#define WEFT_WEB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whatever is allocated from now on lies at `start`, a multiple of 65536, or above.  False: there is not so much memory. */
bool memory_begin_at(uintptr_t start);

/* The bytes from one address up to another are what another instance allocated.  False: there are too many such stretches. */
bool memory_adopt(uintptr_t from, uintptr_t to);

/* Nothing in the stretch around an address is used any more. */
void memory_give_up(const void *address);

#endif
