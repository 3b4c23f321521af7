/* module.c: finds the file of machine code that contains an address.
 *
 * glibc's _dl_find_object() takes no lock, and signal handlers may call it.  With other C libraries, dl_iterate_phdr() is used,
 * which waits while another OS thread loads a file.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/program_name.h"
#include "record/host.h"

/* Paths that are read at the start of the recording, because later the program may not be allowed to query them. */
static char program_path[1024], start_folder[1024];

void weft__modules_start(void)
{
	ssize_t n = readlink("/proc/self/exe", program_path, sizeof program_path - 1);
	program_path[n < 0 ? 0 : n] = 0;
	weft_program_path(program_path, sizeof program_path, (const char *)getauxval(AT_EXECFN), "/proc/self/exe");
	if (!getcwd(start_folder, sizeof start_folder))
		start_folder[0] = 0;
}

static bool find_build_id(struct weft__module *out, const unsigned char *at, size_t left)
{
	while (left >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		memcpy(&note, at, sizeof note);
		uint64_t name = sizeof note, id = name + (((uint64_t)note.n_namesz + 3) & ~(uint64_t)3),
			 end = id + (((uint64_t)note.n_descsz + 3) & ~(uint64_t)3);
		if (end > left)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0) {
			out->build_id = at + id;
			out->build_id_bytes = note.n_descsz;
			return true;
		}
		at += end;
		left -= (size_t)end;
	}
	return false;
}

/* Reads the size and the build-id from the program headers of a file at `base`. */
static void read_program_headers(struct weft__module *out, const ElfW(Phdr) * headers, size_t count, uintptr_t base)
{
	out->address = base;
	for (size_t i = 0; i < count; i++) {
		const ElfW(Phdr) *h = &headers[i];
		if (h->p_type == PT_LOAD && h->p_vaddr + h->p_memsz > out->size)
			out->size = h->p_vaddr + h->p_memsz;
		if (h->p_type == PT_NOTE && !out->build_id_bytes)
			find_build_id(out, (const unsigned char *)(base + h->p_vaddr), h->p_memsz);
	}
}

static void set_path(struct weft__module *out, const char *name)
{
	out->folder = name[0] && name[0] != '/' ? start_folder : "";
	out->path = name[0] ? name : program_path;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE
bool weft__find_module(struct weft__module *out, const void *address)
{
	struct dl_find_object found;
	/* The parameter is a pointer to non-const memory, but the function writes nothing there. */
	if (_dl_find_object((void *)(uintptr_t)address, &found))
		return false;
	const ElfW(Ehdr) *head = found.dlfo_map_start;
	size_t bytes = (size_t)((const char *)found.dlfo_map_end - (const char *)found.dlfo_map_start);
	*out = (struct weft__module){.address = found.dlfo_link_map->l_addr};
	set_path(out, found.dlfo_link_map->l_name);
	if (bytes >= sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_phentsize == sizeof(ElfW(Phdr)) &&
	    head->e_phoff <= bytes && head->e_phnum <= (bytes - head->e_phoff) / sizeof(ElfW(Phdr)))
		read_program_headers(out, (const ElfW(Phdr) *)((uintptr_t)head + head->e_phoff), head->e_phnum, out->address);
	else if (!found.dlfo_link_map->l_name[0])
		/* A program with gaps between its segments is found by segment, so the kernel is asked where its headers are. */
		read_program_headers(out, (const ElfW(Phdr) *)getauxval(AT_PHDR), getauxval(AT_PHNUM), out->address);
	return true;
}
#else
struct search {
	uintptr_t address;
	struct weft__module *out;
};

static int visit_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type != PT_LOAD || s->address - info->dlpi_addr - h->p_vaddr >= h->p_memsz)
			continue;
		*s->out = (struct weft__module){0};
		set_path(s->out, info->dlpi_name);
		read_program_headers(s->out, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr);
		return 1;
	}
	return 0;
}

bool weft__find_module(struct weft__module *out, const void *address)
{
	return dl_iterate_phdr(visit_module, &(struct search){(uintptr_t)address, out}) == 1;
}
#endif
