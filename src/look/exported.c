/* exported.c: finds exported symbols in the GNU hash table, which every file of the last twenty years has (exported.h).
 * The memory of a target is untrusted, so each walk through it has a limit.  SPDX-License-Identifier: ISC */
#include "look/exported.h"

#include <elf.h>
#include <string.h>

enum { MAX_HEADERS = 128, MAX_ENTRIES = 256, MAX_CHAIN = 4096, MAX_NAME = 128 };

static bool read_exactly(const struct look_target *t, uint64_t address, void *to, size_t bytes)
{
	return t->read(t, address, to, bytes) == bytes;
}

/* Returns the address of a module's dynamic section, or 0. */
static uint64_t find_dynamic(const struct look_target *t, const struct weft_look_module *module)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;
	if (!read_exactly(t, module->begin, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof p)
		return 0;
	for (unsigned i = 0; i < head.e_phnum && i < MAX_HEADERS; i++) {
		if (!read_exactly(t, module->begin + head.e_phoff + (uint64_t)i * sizeof p, &p, sizeof p))
			return 0;
		if (p.p_type == PT_DYNAMIC)
			return module->bias + p.p_vaddr;
	}
	return 0;
}

bool weft__look_exports_read(struct look_exports *out, const struct look_target *t, const struct weft_look_module *module)
{
	Elf64_Dyn entry;
	const uint64_t dynamic = find_dynamic(t, module);
	*out = (struct look_exports){.bias = module->bias};
	for (unsigned i = 0; dynamic && i < MAX_ENTRIES; i++) {
		if (!read_exactly(t, dynamic + (uint64_t)i * sizeof entry, &entry, sizeof entry) || entry.d_tag == DT_NULL)
			break;
		/* glibc's dynamic linker adds the bias to the dynamic section in place, and musl's does not. */
		const uint64_t value = entry.d_un.d_ptr, address = value < module->begin ? value + module->bias : value;
		if (entry.d_tag == DT_SYMTAB)
			out->symbols = address;
		else if (entry.d_tag == DT_STRTAB)
			out->strings = address;
		else if (entry.d_tag == DT_GNU_HASH)
			out->hash = address;
	}
	return out->symbols && out->strings && out->hash;
}

static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Returns the address of a symbol if the symbol has this name and a definition, or 0. */
static uint64_t match_symbol(const struct look_exports *e, const struct look_target *t, uint32_t index, const char *name)
{
	Elf64_Sym symbol;
	char text[MAX_NAME];
	const size_t bytes = strlen(name) + 1;
	const bool is_same = bytes <= sizeof text &&
			     read_exactly(t, e->symbols + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol) &&
			     symbol.st_shndx != SHN_UNDEF && read_exactly(t, e->strings + symbol.st_name, text, bytes) &&
			     memcmp(text, name, bytes) == 0;
	return is_same ? e->bias + symbol.st_value : 0;
}

uint64_t weft__look_exports_find(const struct look_exports *e, const struct look_target *t, const char *name)
{
	struct {
		uint32_t buckets, first, filter_words, shift;
	} head;
	uint64_t filter = 0;
	uint32_t index = 0, hash = hash_name(name);
	if (!read_exactly(t, e->hash, &head, sizeof head) || !head.buckets || !head.filter_words)
		return 0;
	const uint64_t filters = e->hash + sizeof head, buckets = filters + (uint64_t)head.filter_words * sizeof filter,
		       chains = buckets + (uint64_t)head.buckets * sizeof index;
	/* For most names that a file lacks, two bits of the table's filter show it. */
	if (!read_exactly(t, filters + hash / 64 % head.filter_words * sizeof filter, &filter, sizeof filter) ||
	    !(filter >> hash % 64 & 1) || !(filter >> (hash >> (head.shift & 31)) % 64 & 1) ||
	    !read_exactly(t, buckets + (uint64_t)(hash % head.buckets) * sizeof index, &index, sizeof index) ||
	    index < head.first)
		return 0;
	for (unsigned i = 0; i < MAX_CHAIN; i++, index++) {
		uint32_t other;
		if (!read_exactly(t, chains + (uint64_t)(index - head.first) * sizeof other, &other, sizeof other))
			return 0;
		const uint64_t found = (other | 1) == (hash | 1) ? match_symbol(e, t, index, name) : 0;
		if (found || other & 1)
			return found;
	}
	return 0;
}
