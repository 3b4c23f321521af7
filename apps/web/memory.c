/* memory.c: manages memory that another instance of the WebAssembly core has filled.
 *
 * A worker opens a trace in its own instance of the core, with a heap that starts at the address where this instance's memory
 * ends.  The worker's bytes are then copied to the same addresses of this instance, so that all pointers in them stay valid.
 * This instance's heap does not own the copied bytes: free() of an address among them does nothing, and the whole region is
 * reused after it was given up.
 * SPDX-License-Identifier: ISC */
#include "apps/web/memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 65536u
#define MAX_REGIONS 64

static struct {
	uintptr_t from, to;
} regions[MAX_REGIONS];
static size_t count;

bool memory_begin_at(uintptr_t start)
{
	free(malloc(1)); /* the first use of the heap claims all memory that exists at that time */
	size_t pages = __builtin_wasm_memory_size(0);
	if (start / PAGE > pages && __builtin_wasm_memory_grow(0, start / PAGE - pages) == SIZE_MAX)
		return false;
	/* Allocate everything before `start`. */
	for (size_t size = PAGE / 2; size > 0; size /= 2) {
		void *block;
		while ((block = malloc(size)) && (uintptr_t)block < start)
			;
		free(block);
	}
	return true;
}

bool memory_adopt(uintptr_t from, uintptr_t to)
{
	if (count == MAX_REGIONS)
		return false;
	regions[count].from = from;
	regions[count++].to = to;
	return true;
}

static size_t find_region(const void *address)
{
	size_t i = 0;
	while (i < count && ((uintptr_t)address < regions[i].from || (uintptr_t)address >= regions[i].to))
		i++;
	return i;
}

void memory_give_up(const void *address)
{
	size_t i = find_region(address);
	if (i < count)
		regions[i] = regions[--count];
}

/* The linker's option --wrap redirects all calls of free() and realloc() to the functions here. */
void __real_free(void *block);
void *__real_realloc(void *block, size_t size);
void __wrap_free(void *block);
void *__wrap_realloc(void *block, size_t size);

void __wrap_free(void *block)
{
	if (find_region(block) == count)
		__real_free(block);
}

void *__wrap_realloc(void *block, size_t size)
{
	if (!block || find_region(block) == count)
		return __real_realloc(block, size);
	size_t old = malloc_usable_size(block);
	void *moved = malloc(size);
	if (moved)
		memcpy(moved, block, old < size ? old : size);
	return moved;
}

/* For scripts. */
__attribute__((export_name("free"))) void memory_free(void *block);
__attribute__((export_name("realloc"))) void *memory_realloc(void *block, size_t size);

void memory_free(void *block)
{
	__wrap_free(block);
}

void *memory_realloc(void *block, size_t size)
{
	return __wrap_realloc(block, size);
}
