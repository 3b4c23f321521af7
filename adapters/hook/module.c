/* module.c: reads ELF modules in memory, and .symtab in their files.
 *
 * dlsym() is no alternative: it may run code of the module (IFUNC), finds symbols of other modules, and does not work while the
 * loader maps a module.  Data in memory is trusted, as the loader has trusted it; reads of files are checked against the file's
 * size.  SPDX-License-Identifier: ISC */
#include "adapters/hook/module.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __SIZEOF_POINTER__ == 8
#define SYMBOL_TYPE(info) ELF64_ST_TYPE(info)
#define RELOCATION_SYMBOL(info) ELF64_R_SYM(info)
#define RELOCATION_TYPE(info) ELF64_R_TYPE(info)
#else
#error "libweft-hook supports only 64-bit CPUs"
#endif

#if defined(__x86_64__)
enum { JUMP_SLOT_RELOCATION = R_X86_64_JUMP_SLOT, DATA_RELOCATION = R_X86_64_GLOB_DAT, WORD_RELOCATION = R_X86_64_64 };
#elif defined(__aarch64__)
enum { JUMP_SLOT_RELOCATION = R_AARCH64_JUMP_SLOT, DATA_RELOCATION = R_AARCH64_GLOB_DAT, WORD_RELOCATION = R_AARCH64_ABS64 };
#endif

/* glibc has made the addresses in the dynamic section absolute, except in modules whose dynamic section is read-only. */
static uintptr_t absolute_address(const struct weft__module *m, uintptr_t value)
{
	return value < m->base ? m->base + value : value;
}

static void read_dynamic(struct weft__module *m, const ElfW(Dyn) * d)
{
	for (; d->d_tag != DT_NULL; d++) {
		const void *at = (const void *)absolute_address(m, d->d_un.d_ptr);
		switch (d->d_tag) {
		case DT_SYMTAB: m->symbols = at; break;
		case DT_STRTAB: m->names = at; break;
		case DT_STRSZ: m->names_bytes = d->d_un.d_val; break;
		case DT_GNU_HASH: m->gnu_hash = at; break;
		case DT_HASH: m->sysv_hash = at; break;
		case DT_RELA: m->relocations[0] = at; break;
		case DT_RELASZ: m->relocation_count[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_JMPREL: m->relocations[1] = at; break;
		case DT_PLTRELSZ: m->relocation_count[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_TEXTREL: m->rewrites_text = true; break;
		case DT_FLAGS: m->rewrites_text |= (d->d_un.d_val & DF_TEXTREL) != 0; break;
		default: break;
		}
	}
}

bool weft__module_read(struct weft__module *out, const struct dl_phdr_info *info, const char *path)
{
	*out = (struct weft__module){
	    .path = path, .base = info->dlpi_addr, .headers = info->dlpi_phdr, .header_count = info->dlpi_phnum};
	const ElfW(Dyn) *dynamic = NULL;
	for (size_t i = 0; i < out->header_count; i++) {
		const ElfW(Phdr) *h = &out->headers[i];
		uintptr_t begin = out->base + h->p_vaddr, end = begin + h->p_memsz;
		if (h->p_type == PT_DYNAMIC)
			dynamic = (const void *)begin;
		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X))
			continue;
		if (!out->text_end || begin < out->text_begin)
			out->text_begin = begin;
		if (end > out->text_end)
			out->text_end = end;
	}
	if (!dynamic || !out->text_end)
		return false;
	read_dynamic(out, dynamic);
	return out->symbols && out->names && (out->gnu_hash || out->sysv_hash);
}

static bool is_named_function(const struct weft__module *m, const ElfW(Sym) * s, const char *name)
{
	return s->st_shndx != SHN_UNDEF && s->st_value != 0 && SYMBOL_TYPE(s->st_info) == STT_FUNC &&
	       s->st_name < m->names_bytes && !strcmp(m->names + s->st_name, name);
}

static const ElfW(Sym) * find_by_gnu_hash(const struct weft__module *m, const char *name)
{
	uint32_t hash = 5381;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	const uint32_t buckets = m->gnu_hash[0], first = m->gnu_hash[1], words = m->gnu_hash[2], shift = m->gnu_hash[3];
	const ElfW(Addr) *bloom = (const void *)(m->gnu_hash + 4);
	const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
	const unsigned bits = 8 * sizeof *bloom;
	if (!buckets || !words)
		return NULL;
	ElfW(Addr) word = bloom[hash / bits % words];
	if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1))
		return NULL;
	uint32_t i = bucket[hash % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		uint32_t there = chain[i - first];
		if ((there | 1) == (hash | 1) && is_named_function(m, &m->symbols[i], name))
			return &m->symbols[i];
		if (there & 1)
			return NULL;
	}
}

static const ElfW(Sym) * find_by_sysv_hash(const struct weft__module *m, const char *name)
{
	uint32_t hash = 0;
	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		uint32_t high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	const uint32_t buckets = m->sysv_hash[0];
	if (!buckets)
		return NULL;
	const uint32_t *bucket = m->sysv_hash + 2, *chain = bucket + buckets;
	for (uint32_t i = bucket[hash % buckets]; i != STN_UNDEF; i = chain[i])
		if (is_named_function(m, &m->symbols[i], name))
			return &m->symbols[i];
	return NULL;
}

const ElfW(Sym) * weft__module_exports(const struct weft__module *m, const char *name)
{
	return m->gnu_hash ? find_by_gnu_hash(m, name) : find_by_sysv_hash(m, name);
}

/* Returns whether the file is the one that is mapped, by a comparison of its program headers and of its notes, which include the
 * build-id. */
static bool is_mapped_file(const struct weft__module *m, const unsigned char *file, size_t size)
{
	const ElfW(Ehdr) *e = (const void *)file;
	if (size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_phnum != m->header_count || e->e_phoff > size ||
	    m->header_count * sizeof *m->headers > size - e->e_phoff)
		return false;
	if (memcmp(file + e->e_phoff, m->headers, m->header_count * sizeof *m->headers) != 0)
		return false;
	for (size_t i = 0; i < m->header_count; i++) {
		const ElfW(Phdr) *h = &m->headers[i];
		if (h->p_type == PT_NOTE &&
		    (h->p_offset > size || h->p_filesz > size - h->p_offset ||
			memcmp(file + h->p_offset, (const void *)(m->base + h->p_vaddr), h->p_filesz) != 0))
			return false;
	}
	return true;
}

static bool find_symtab(struct weft__symtab *t, const unsigned char *file, size_t size)
{
	const ElfW(Ehdr) *e = (const void *)file;
	if (e->e_shoff > size || e->e_shoff % sizeof(uint64_t) || e->e_shentsize != sizeof(ElfW(Shdr)) ||
	    e->e_shnum * sizeof(ElfW(Shdr)) > size - e->e_shoff)
		return false;
	const ElfW(Shdr) *sections = (const void *)(file + e->e_shoff);
	for (size_t i = 0; i < e->e_shnum; i++) {
		const ElfW(Shdr) *s = &sections[i];
		if (s->sh_type != SHT_SYMTAB || s->sh_link >= e->e_shnum)
			continue;
		const ElfW(Shdr) *n = &sections[s->sh_link];
		if (s->sh_offset > size || s->sh_size > size - s->sh_offset || s->sh_offset % sizeof(uint64_t) ||
		    n->sh_offset > size || n->sh_size > size - n->sh_offset || n->sh_size == 0 ||
		    file[n->sh_offset + n->sh_size - 1] != 0)
			return false;
		t->symbols = (const void *)(file + s->sh_offset);
		t->count = s->sh_size / sizeof *t->symbols;
		t->names = (const char *)file + n->sh_offset;
		t->names_bytes = n->sh_size;
		return true;
	}
	return false;
}

bool weft__symtab_open(struct weft__symtab *out, const struct weft__module *m)
{
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	struct stat file;
	if (fd < 0)
		return false;
	bool whole = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0;
	*out = (struct weft__symtab){.map_bytes = whole ? (size_t)file.st_size : 0};
	void *map = whole ? mmap(NULL, out->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return false;
	out->map = map;
	if (is_mapped_file(m, map, out->map_bytes) && find_symtab(out, map, out->map_bytes))
		return true;
	weft__symtab_close(out);
	return false;
}

bool weft__symtab_has_name(const struct weft__symtab *t, const char *name)
{
	/* Searched text: the name with a NUL before and after it. */
	char whole[128] = "";
	size_t bytes = strlen(name) + 1;
	if (bytes + 1 > sizeof whole)
		return false;
	memcpy(whole + 1, name, bytes);
	if (!memmem(t->names, t->names_bytes, whole, bytes + 1))
		return false;
	/* Undefined symbols do not count: a program that links the library has the name as an undefined symbol. */
	for (size_t i = 0; i < t->count; i++) {
		const ElfW(Sym) *s = &t->symbols[i];
		if (s->st_shndx != SHN_UNDEF && s->st_name < t->names_bytes && !strcmp(t->names + s->st_name, name))
			return true;
	}
	return false;
}

void weft__symtab_each(const struct weft__symtab *t, const char *prefix,
    void (*each)(void *ctx, const char *name, const ElfW(Sym) * symbol), void *ctx)
{
	size_t bytes = strlen(prefix);
	for (size_t i = 0; i < t->count; i++) {
		const ElfW(Sym) *s = &t->symbols[i];
		if (SYMBOL_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_value != 0 &&
		    s->st_name < t->names_bytes && !strncmp(t->names + s->st_name, prefix, bytes))
			each(ctx, t->names + s->st_name, s);
	}
}

void weft__symtab_close(struct weft__symtab *t)
{
	if (t->map)
		munmap(t->map, t->map_bytes);
	t->map = NULL;
}

void weft__module_each_import(const struct weft__module *m, void (*each)(void *ctx, const char *name, void **pointer), void *ctx)
{
	for (int list = 0; list < 2; list++)
		for (size_t i = 0; i < m->relocation_count[list]; i++) {
			const ElfW(Rela) *r = &m->relocations[list][i];
			unsigned type = (unsigned)RELOCATION_TYPE(r->r_info);
			if ((type != JUMP_SLOT_RELOCATION && type != DATA_RELOCATION && type != WORD_RELOCATION) ||
			    (type == WORD_RELOCATION && r->r_addend != 0))
				continue;
			const ElfW(Sym) *s = &m->symbols[RELOCATION_SYMBOL(r->r_info)];
			if (s->st_name < m->names_bytes)
				each(ctx, m->names + s->st_name, (void **)(m->base + r->r_offset));
		}
}

struct import_filter {
	const char *name;
	void (*each)(void *ctx, void **pointer);
	void *ctx;
};

static void filter_import(void *ctx, const char *name, void **pointer)
{
	const struct import_filter *filter = ctx;
	if (!strcmp(name, filter->name))
		filter->each(filter->ctx, pointer);
}

void weft__module_each_pointer(const struct weft__module *m, const char *name, void (*each)(void *ctx, void **pointer), void *ctx)
{
	weft__module_each_import(m, filter_import, &(struct import_filter){name, each, ctx});
}
