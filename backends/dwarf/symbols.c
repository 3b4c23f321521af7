/* symbols.c: implements symbols.h.  SPDX-License-Identifier: ISC */
#include "symbols.h"

#include "base/search.h"
#include "base/sort.h"

/* In libraries, one function often has several names; libdwfl prefers the name that other files can also see. */
static unsigned char get_preference(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL: return 2;
	case STB_WEAK: return 1;
	default: return 0;
	}
}

/* Symbols without a section do not count, because they are names of symbol versions. */
static bool is_place(const GElf_Sym *symbol, const char *name)
{
	const int type = GELF_ST_TYPE(symbol->st_info);
	return name && *name && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS && type != STT_SECTION &&
	       type != STT_FILE && type != STT_TLS;
}

/* Orders symbols so that the preferred symbol of an address is last, where the search finds it first. */
static int compare_symbols(const void *a, const void *b)
{
	const struct weft_symbol *x = a, *y = b;
	return WEFT_ORDER(x->begin, y->begin)
		   ?: WEFT_ORDER(x->size > 0, y->size > 0)
		   ?: WEFT_ORDER(x->preference, y->preference)
		   ?: WEFT_ORDER(y->size, x->size)
		   ?: WEFT_ORDER(y->index, x->index);
}

static void read_symbols(struct weft_symbols *s, Dwfl_Module *module)
{
	const int count = dwfl_module_getsymtab(module);
	uint64_t reach = 0;
	s->is_read = true;
	for (int i = 1; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
		struct weft_symbol *added = is_place(&symbol, name) ? weft_vec_push(&s->items) : NULL;
		if (added)
			*added = (struct weft_symbol){.begin = address,
			    .size = symbol.st_size,
			    .name = name,
			    .index = (uint32_t)i,
			    .type = GELF_ST_TYPE(symbol.st_info),
			    .preference = get_preference(&symbol)};
	}
	weft_sort(s->items.items, s->items.count, sizeof *s->items.items, compare_symbols);
	for (size_t i = 0; s->items.items && i < s->items.count; i++) {
		struct weft_symbol *item = &s->items.items[i];
		/* In a hostile file, a symbol's size may lead beyond the end of the address space. */
		const uint64_t end = item->size > UINT64_MAX - item->begin ? UINT64_MAX : item->begin + item->size;
		reach = end > reach ? end : reach;
		item->reach = reach;
	}
}

const struct weft_symbol *weft__symbols_find(struct weft_symbols *s, Dwfl_Module *module, uint64_t address)
{
	if (!s->is_read)
		read_symbols(s, module);
	const struct weft_symbol *items = s->items.items;
	size_t i = WEFT_FIND_FIRST(k, 0, s->items.count, items[k].begin > address);
	if (i > 0 && items[i - 1].begin == address && !items[i - 1].size)
		return &items[i - 1];
	for (; i > 0 && items[i - 1].reach > address; i--)
		if (address - items[i - 1].begin < items[i - 1].size)
			return &items[i - 1];
	return NULL;
}

void weft__symbols_free(struct weft_symbols *s)
{
	weft_vec_free(&s->items);
}
