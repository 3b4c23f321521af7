/* probes.c: implements probes.h.  The file belongs to the program, so its contents are not trusted.
 * SPDX-License-Identifier: ISC
 */
#include "kernel/probes.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/named.h"
#include "base/size.h"

enum { MAX_SECTIONS = 4096, MAX_NAME_BYTES = 1 << 20, MAX_NOTE_BYTES = 4 << 20, STAPSDT = 3 };

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
	uint64_t size, notes_left; /* size of the file, and number of bytes of notes that may still be read */
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections;
	char *names;
	uint64_t names_size;
};

static void *read_bytes(const struct elf *e, uint64_t offset, uint64_t bytes, uint64_t limit)
{
	if (!bytes || bytes > limit || !weft_size_within(offset, bytes, e->size))
		return NULL;
	void *to = malloc(bytes);
	if (to && pread(e->fd, to, bytes, (off_t)offset) != (ssize_t)bytes) {
		free(to);
		return NULL;
	}
	return to;
}

static bool open_elf(struct elf *e, int fd)
{
	struct stat st;
	*e = (struct elf){.fd = fd, .notes_left = MAX_NOTE_BYTES};
	const Elf64_Ehdr *h = &e->header;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || pread(e->fd, &e->header, sizeof *h, 0) != sizeof *h ||
	    memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
	    h->e_shentsize != sizeof(Elf64_Shdr) || h->e_phentsize != sizeof(Elf64_Phdr) || h->e_shstrndx >= h->e_shnum)
		return false;
	e->size = (uint64_t)st.st_size;
	e->segments = read_bytes(e, h->e_phoff, (uint64_t)h->e_phnum * sizeof *e->segments, MAX_SECTIONS * sizeof *e->segments);
	e->sections = read_bytes(e, h->e_shoff, (uint64_t)h->e_shnum * sizeof *e->sections, MAX_SECTIONS * sizeof *e->sections);
	if (!e->segments || !e->sections)
		return false;
	const Elf64_Shdr *names = &e->sections[h->e_shstrndx];
	e->names_size = names->sh_size;
	e->names = read_bytes(e, names->sh_offset, names->sh_size, MAX_NAME_BYTES);
	return e->names && !e->names[e->names_size - 1];
}

static bool is_section_named(const struct elf *e, const Elf64_Shdr *section, const char *name)
{
	return section->sh_name < e->names_size && !strcmp(e->names + section->sh_name, name);
}

/* Converts an address to an offset in the file; returns 0 if the address is in no segment of the file. */
static uint64_t to_file_offset(const struct elf *e, uint64_t address)
{
	for (int i = 0; i < e->header.e_phnum; i++) {
		const Elf64_Phdr *p = &e->segments[i];
		if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
			return address - p->p_vaddr + p->p_offset;
	}
	return 0;
}

/* Reads a SystemTap note: the address, the base for which it was linked, the semaphore, the provider and the name. */
static void parse_note(
    const struct elf *e, uint64_t base, const char *at, size_t size, struct weft_kernel_probe *out, size_t limit, size_t *count)
{
	uint64_t where[3];
	if (size < sizeof where + 2 || at[size - 1] || *count == limit)
		return;
	memcpy(where, at, sizeof where);
	const char *provider = at + sizeof where, *name = provider + strlen(provider) + 1;
	if (name >= at + size)
		return;
	for (size_t i = 0; i < sizeof collectors / sizeof *collectors; i++) {
		const bool is_end = !strcmp(name, collectors[i].end);
		if (strcmp(provider, collectors[i].provider) != 0 || (!is_end && strcmp(name, collectors[i].begin) != 0))
			continue;
		const uint64_t offset = to_file_offset(e, where[0] + base - where[1]);
		const uint64_t semaphore = where[2] ? to_file_offset(e, where[2] + base - where[1]) : 0;
		if (offset && (semaphore || !where[2]) && semaphore <= UINT32_MAX)
			out[(*count)++] = (struct weft_kernel_probe){collectors[i].runtime, offset, semaphore, is_end};
	}
}

static void read_notes(
    struct elf *e, uint64_t base, const Elf64_Shdr *section, struct weft_kernel_probe *out, size_t limit, size_t *count)
{
	char *notes = read_bytes(e, section->sh_offset, section->sh_size, e->notes_left);
	Elf64_Nhdr h;
	e->notes_left -= notes ? section->sh_size : 0;
	for (uint64_t at = 0; notes && section->sh_size - at >= sizeof h;) {
		memcpy(&h, notes + at, sizeof h);
		const uint64_t text = at + sizeof h + (((uint64_t)h.n_namesz + 3) & ~3ull),
			       end = text + (((uint64_t)h.n_descsz + 3) & ~3ull);
		if (!weft_size_within(text, h.n_descsz, section->sh_size))
			break;
		if (h.n_type == STAPSDT)
			parse_note(e, base, notes + text, h.n_descsz, out, limit, count);
		if (end >= section->sh_size)
			break;
		at = end;
	}
	free(notes);
}

/* Returns whether one of the process's user ids is `user`. */
static bool is_process_of(int process, uid_t user)
{
	char text[4096];
	unsigned long ids[4];
	const char *at = weft_named_text(process, "status", text, sizeof text) > 0 ? strstr(text, "\nUid:") : NULL;
	if (!at || sscanf(at, "\nUid: %lu %lu %lu %lu", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	return ids[0] == user || ids[1] == user || ids[2] == user || ids[3] == user;
}

static enum weft_kernel_scope find_scope(const char *process, const struct stat *st)
{
	if (st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH)))
		return WEFT_SCOPE_ALL;
	const int folder = weft_users_folder(process);
	const bool is_own = folder >= 0 && (st->st_uid == 0 || is_process_of(folder, st->st_uid));
	if (folder >= 0)
		close(folder);
	return is_own ? WEFT_SCOPE_PROCESS : WEFT_SCOPE_NONE;
}

int weft_kernel_open_loaded(uint32_t pid, const char *path, enum weft_kernel_scope *scope)
{
	char process[32], root[48], whole[512];
	const struct weft_named_rule rule = {.owner = WEFT_ANY_OWNER};
	const char *name;
	struct stat st;
	snprintf(process, sizeof process, "/proc/%u", pid);
	snprintf(root, sizeof root, "%s/root", process);
	if (*path != '/' || snprintf(whole, sizeof whole, "%s%s", root, path) >= (int)sizeof whole)
		return -1;
	const int folder = weft_named_parent(root, whole, &name);
	int fd = folder < 0 ? -1 : weft_named_file(folder, name, &rule, &st);
	if (folder >= 0)
		close(folder);
	*scope = fd < 0 ? WEFT_SCOPE_NONE : find_scope(process, &st);
	if (*scope == WEFT_SCOPE_NONE && fd >= 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

size_t weft_kernel_read_probes(int fd, struct weft_kernel_probe *out, size_t limit)
{
	struct elf e;
	size_t count = 0;
	uint64_t base = 0;
	if (open_elf(&e, fd)) {
		for (int i = 0; i < e.header.e_shnum; i++)
			if (is_section_named(&e, &e.sections[i], ".stapsdt.base"))
				base = e.sections[i].sh_addr;
		for (int i = 0; i < e.header.e_shnum && count < limit; i++)
			if (is_section_named(&e, &e.sections[i], ".note.stapsdt"))
				read_notes(&e, base, &e.sections[i], out, limit, &count);
	}
	free(e.segments);
	free(e.sections);
	free(e.names);
	return count;
}
