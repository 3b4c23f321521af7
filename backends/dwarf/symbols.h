/* symbols.h: the symbols of a module, which are read once and then searched (private to backends/dwarf).
 *
 * dwfl_module_addrinfo() compares an address with all symbols of the module, which takes ms for a file such as Node.js's.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DWARF_SYMBOLS_H
#define WEFT_DWARF_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include "base/vec.h"

struct weft_symbol {
	uint64_t begin, size;
	uint64_t reach;   /* largest end address of this symbol and all symbols before it */
	const char *name; /* name of the symbol, valid as long as the module */
	uint32_t index;   /* index in the module's symbol table */
	unsigned char type, preference;
};

/* Symbols in the order of their addresses; of several symbols at an address, the preferred one is last.  Zero the struct before
 * its first use. */
struct weft_symbols {
	WEFT_VEC(struct weft_symbol) items;
	bool is_read;
};

/* Returns the innermost symbol whose bytes contain the address, or a symbol without size that begins at the address; else NULL.
 * The first call reads the symbol table. */
const struct weft_symbol *weft__symbols_find(struct weft_symbols *symbols, Dwfl_Module *module, uint64_t address);

void weft__symbols_free(struct weft_symbols *symbols);

#endif
