/* symbols.h: the symbols of a module, read once and searched (private to backends/dwarf).
 *
 * dwfl_module_addrinfo() compares an address with all symbols of the module, which takes ms for a file such as Node.js's.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_SYMBOLS_H
#define WEFT_DWARF_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include "base/vec.h"

struct weft_symbol {
	uint64_t begin, size;
	uint64_t reach;   /* the largest end of this symbol and all before it */
	const char *name; /* valid as long as the module */
	uint32_t index;   /* in the module's symbol table */
	unsigned char type, preference;
};

/* Symbols in the order of their addresses; the last one at an address is the preferred one.  Zero it before the first use. */
struct weft_symbols {
	WEFT_VEC(struct weft_symbol) items;
	bool is_read;
};

/* Returns the innermost symbol whose bytes contain an address, or a symbol without size that begins there; else NULL.  The first
 * call reads the table. */
const struct weft_symbol *weft__symbols_find(struct weft_symbols *symbols, Dwfl_Module *module, uint64_t address);

void weft__symbols_free(struct weft_symbols *symbols);

#endif
