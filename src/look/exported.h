/* exported.h: the symbols that loaded files export (private to src/look).  SPDX-License-Identifier: ISC */
#ifndef WEFT_LOOK_EXPORTED_H
#define WEFT_LOOK_EXPORTED_H

#include "look/target.h"

/* The tables by which the dynamic linker finds the symbols of a loaded file: addresses in the target. */
struct look_exports {
	uint64_t bias;
	uint64_t symbols, strings, hash;
};

/* Reads where the tables of a module are.  Returns false if the module has none that are known. */
bool weft__look_exports_read(struct look_exports *out, const struct look_target *target, const struct weft_look_module *module);

/* Returns the address of an exported symbol, or 0.  Costs some five reads of the target. */
uint64_t weft__look_exports_find(const struct look_exports *exports, const struct look_target *target, const char *name);

#endif
