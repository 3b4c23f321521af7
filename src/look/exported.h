/* exported.h: finds the symbols that loaded files export (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_EXPORTED_H
#define WEFT_LOOK_EXPORTED_H

#include "look/target.h"

/* Tables by which the dynamic linker finds the symbols of a loaded file, as addresses in the target's memory. */
struct look_exports {
	uint64_t bias;
	uint64_t symbols, strings, hash;
};

/* Finds the tables of a module's exported symbols.  Returns false if the module has no table of a known format. */
bool weft__look_exports_read(struct look_exports *out, const struct look_target *target, const struct weft_look_module *module);

/* Returns the address of an exported symbol, or 0.  A search costs about five reads of the target's memory. */
uint64_t weft__look_exports_find(const struct look_exports *exports, const struct look_target *target, const char *name);

#endif
