/* module.h: what the loader mapped: its parts, its symbols, its pointers to functions of others (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_MODULE_H
#define WEFT_HOOK_MODULE_H

#include <link.h>

#include "adapters/hook/hook.h"

/* A module as it lies in memory.  Pointers are into the module; they end with it. */
struct weft__module {
	const char *path;
	uintptr_t base;
	const ElfW(Phdr) * headers;
	size_t header_count;
	uintptr_t text_begin, text_end; /* all that may be executed */
	bool rewrites_text;             /* the loader will (DT_TEXTREL) */
	const ElfW(Sym) * symbols;
	const char *names;
	size_t names_bytes;
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Rela) * relocations[2]; /* of data, and of the procedure linkage table */
	size_t relocation_count[2];
};

/* Reads what dl_iterate_phdr() tells; false: nothing can be found in it.  `path` stays the caller's. */
bool weft__module_read(struct weft__module *out, const struct dl_phdr_info *info, const char *path);

/* A function that the module exports; NULL: it does not.  Neither calls anything of the module's nor needs it relocated. */
const ElfW(Sym) * weft__module_exports(const struct weft__module *module, const char *name);

/* .symtab of the module's file. */
struct weft__symtab {
	void *map;
	size_t map_bytes;
	const ElfW(Sym) * symbols;
	size_t count;
	const char *names;
	size_t names_bytes;
};

/* Opens the file; false: it cannot be read, has no such table, or is not the file that is mapped. */
bool weft__symtab_open(struct weft__symtab *out, const struct weft__module *module);
/* Whether that name is in it; reads the names alone, which is quick. */
bool weft__symtab_has_name(const struct weft__symtab *table, const char *name);
/* Calls `each` for every function whose name begins with the prefix. */
void weft__symtab_each(const struct weft__symtab *table, const char *prefix,
    void (*each)(void *ctx, const char *name, const ElfW(Sym) * symbol), void *ctx);
void weft__symtab_close(struct weft__symtab *table);

/* Calls `each` for every pointer through which the module calls a function of that name that it does not define itself. */
void weft__module_pointers(
    const struct weft__module *module, const char *name, void (*each)(void *ctx, void **pointer), void *ctx);

#endif
