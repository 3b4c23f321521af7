/* module.h: reads modules that the loader has mapped: text, symbols, pointers to functions of other modules (private to
 * adapters/hook).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_MODULE_H
#define WEFT_HOOK_MODULE_H

#include <link.h>

#include "adapters/hook/hook.h"

/* A mapped module.  All pointers of the struct point into the memory of the module. */
struct weft__module {
	const char *path;
	uintptr_t base;
	const ElfW(Phdr) * headers;
	size_t header_count;
	uintptr_t text_begin, text_end; /* range of executable memory */
	bool rewrites_text;             /* whether the loader will write to the text (DT_TEXTREL) */
	const ElfW(Sym) * symbols;
	const char *names;
	size_t names_bytes;
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Rela) * relocations[2]; /* relocations of data and of the PLT */
	size_t relocation_count[2];
};

/* Fills *out from dl_iterate_phdr()'s information.  Returns false if the module has no usable symbols.  `path` stays the
 * caller's. */
bool weft__module_read(struct weft__module *out, const struct dl_phdr_info *info, const char *path);

/* Returns the symbol of an exported function; NULL: none.  The function runs no code of the module, and the module need not be
 * relocated. */
const ElfW(Sym) * weft__module_exports(const struct weft__module *module, const char *name);

/* Symbol table (.symtab) of a module's file. */
struct weft__symtab {
	void *map;
	size_t map_bytes;
	const ElfW(Sym) * symbols;
	size_t count;
	const char *names;
	size_t names_bytes;
};

/* Opens the symbol table; returns false if the file cannot be read, has no .symtab, or is not the mapped file. */
bool weft__symtab_open(struct weft__symtab *out, const struct weft__module *module);
/* Returns whether the table defines a symbol of that name.  The function searches the bytes of all names first, which is
 * fast. */
bool weft__symtab_has_name(const struct weft__symtab *table, const char *name);
/* Calls `each` for every function whose name starts with the prefix. */
void weft__symtab_each(const struct weft__symtab *table, const char *prefix,
    void (*each)(void *ctx, const char *name, const ElfW(Sym) * symbol), void *ctx);
void weft__symtab_close(struct weft__symtab *table);

/* Calls `each` for every pointer by which the module may call a function of another module, with the function's name. */
void weft__module_each_import(
    const struct weft__module *module, void (*each)(void *ctx, const char *name, void **pointer), void *ctx);

/* Calls `each` for every pointer by which the module calls a function of that name in another module. */
void weft__module_each_pointer(
    const struct weft__module *module, const char *name, void (*each)(void *ctx, void **pointer), void *ctx);

#endif
