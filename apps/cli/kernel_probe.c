/* kernel_probe.c: see kernel_probe.h.  The file is the program's: nothing that it says is believed.  SPDX-License-Identifier: ISC
 */
#include "apps/cli/kernel_probe.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

enum { MOST_SECTIONS = 4096, MOST_NOTES = 4 << 20, STAPSDT = 3 };

static const struct {
	const char *provider, *begin, *end, *runtime;
} collectors[] = {
    {"python", "gc__start", "gc__done", "Python"},
    {"hotspot", "gc__begin", "gc__end", "Java"},
    {"ruby", "gc__mark__begin", "gc__mark__end", "Ruby"},
    {"ruby", "gc__sweep__begin", "gc__sweep__end", "Ruby"},
};

struct elf {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections;
	char *names;
	uint64_t names_size;
};

static void *load(const struct elf *e, uint64_t offset, uint64_t bytes, uint64_t most)
{
	if (!bytes || bytes > most || !weft_size_within(offset, bytes, e->size))
		return NULL;
	void *to = malloc(bytes);
	if (to && pread(e->fd, to, bytes, (off_t)offset) != (ssize_t)bytes) {
		free(to);
		return NULL;
	}
	return to;
}

static bool open_elf(struct elf *e, const char *path)
{
	struct stat st;
	*e = (struct elf){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
	const Elf64_Ehdr *h = &e->header;
	if (e->fd < 0 || fstat(e->fd, &st) || !S_ISREG(st.st_mode) || pread(e->fd, &e->header, sizeof *h, 0) != sizeof *h ||
	    memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_shentsize != sizeof(Elf64_Shdr) || h->e_phentsize != sizeof(Elf64_Phdr) || h->e_shstrndx >= h->e_shnum)
		return false;
	e->size = (uint64_t)st.st_size;
	e->segments = load(e, h->e_phoff, (uint64_t)h->e_phnum * sizeof *e->segments, MOST_SECTIONS * sizeof *e->segments);
	e->sections = load(e, h->e_shoff, (uint64_t)h->e_shnum * sizeof *e->sections, MOST_SECTIONS * sizeof *e->sections);
	if (!e->segments || !e->sections)
		return false;
	const Elf64_Shdr *names = &e->sections[h->e_shstrndx];
	e->names_size = names->sh_size;
	e->names = load(e, names->sh_offset, names->sh_size, MOST_NOTES);
	return e->names && !e->names[e->names_size - 1];
}

static bool is_named(const struct elf *e, const Elf64_Shdr *section, const char *name)
{
	return section->sh_name < e->names_size && !strcmp(e->names + section->sh_name, name);
}

/* Where an address is in the file; 0: nowhere. */
static uint64_t in_file(const struct elf *e, uint64_t address)
{
	for (int i = 0; i < e->header.e_phnum; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
			return address - p->p_vaddr + p->p_offset;
	}
	return 0;
}

/* A note's description: the place, the base it was linked for, the semaphore; then provider and name. */
static void take_note(
    const struct elf *e, uint64_t base, const char *at, size_t size, struct kernel_probe *out, size_t most, size_t *count)
{
	uint64_t where[3];
	if (size < sizeof where + 2 || at[size - 1] || *count == most)
		return;
	memcpy(where, at, sizeof where);
	const char *provider = at + sizeof where, *name = provider + strlen(provider) + 1;
	if (name >= at + size)
		return;
	for (size_t i = 0; i < sizeof collectors / sizeof *collectors; i++) {
		const bool is_end = !strcmp(name, collectors[i].end);
		if (strcmp(provider, collectors[i].provider) != 0 || (!is_end && strcmp(name, collectors[i].begin) != 0))
			continue;
		const uint64_t offset = in_file(e, where[0] + base - where[1]);
		const uint64_t semaphore = where[2] ? in_file(e, where[2] + base - where[1]) : 0;
		if (offset && (semaphore || !where[2]) && semaphore <= UINT32_MAX)
			out[(*count)++] = (struct kernel_probe){collectors[i].runtime, offset, semaphore, is_end};
	}
}

static void take_notes(
    const struct elf *e, uint64_t base, const Elf64_Shdr *section, struct kernel_probe *out, size_t most, size_t *count)
{
	char *notes = load(e, section->sh_offset, section->sh_size, MOST_NOTES);
	Elf64_Nhdr h;
	for (uint64_t at = 0; notes && section->sh_size - at >= sizeof h;) {
		memcpy(&h, notes + at, sizeof h);
		const uint64_t text = at + sizeof h + (((uint64_t)h.n_namesz + 3) & ~3ull),
			       end = text + (((uint64_t)h.n_descsz + 3) & ~3ull);
		if (!weft_size_within(text, h.n_descsz, section->sh_size))
			break;
		if (h.n_type == STAPSDT)
			take_note(e, base, notes + text, h.n_descsz, out, most, count);
		if (end >= section->sh_size)
			break;
		at = end;
	}
	free(notes);
}

size_t kernel_probes(const char *path, struct kernel_probe *out, size_t most)
{
	struct elf e;
	size_t count = 0;
	uint64_t base = 0;
	if (open_elf(&e, path)) {
		for (int i = 0; i < e.header.e_shnum; i++)
			if (is_named(&e, &e.sections[i], ".stapsdt.base"))
				base = e.sections[i].sh_addr;
		for (int i = 0; i < e.header.e_shnum; i++)
			if (is_named(&e, &e.sections[i], ".note.stapsdt"))
				take_notes(&e, base, &e.sections[i], out, most, &count);
	}
	free(e.segments);
	free(e.sections);
	free(e.names);
	if (e.fd >= 0)
		close(e.fd);
	return count;
}
