/* names.c: see names.h.  SPDX-License-Identifier: ISC */
#include "names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "file.h"
#include "names_private.h"

struct place {
	uint32_t site, module; /* indices */
	uint64_t offset;
	char *function, *file; /* NULL: not known */
	int line;
};

struct module {
	char *path, *build_id, *name; /* name: short, as in "name+0x18cb0" */
	bool is_used;
};

struct weft_names {
	WEFT_VEC(struct place) places;
	struct module *modules;
	size_t module_count;
	WEFT_VEC(char *) notes;
	size_t used, absent; /* modules */
	char *debug_file;    /* of the module that is being looked into */
	bool ask_servers;
};

static char *copy_of(struct weft_str s)
{
	char *copy = malloc((size_t)s.len + 1);
	if (copy) {
		memcpy(copy, s.len ? s.ptr : "", s.len);
		copy[s.len] = 0;
	}
	return copy;
}

struct weft_names *weft_names_create(const struct weft_trace_info *info)
{
	struct weft_names *n = calloc(1, sizeof *n);
	bool whole = n && (n->modules = calloc(info->module_count + 1, sizeof *n->modules));
	for (size_t i = 0; whole && i < info->module_count; i++) {
		n->modules[n->module_count++] = (struct module){copy_of(info->modules[i].path),
		    copy_of(info->modules[i].build_id), copy_of(weft_module_short_name(&info->modules[i])), false};
		whole = n->modules[i].path && n->modules[i].build_id && n->modules[i].name;
	}
	for (size_t i = 0; whole && i < info->site_count; i++) {
		const struct weft_site *site = &info->sites[i];
		if (!site->module || !site->offset || site->function.len || site->file.len)
			continue;
		struct place *place = weft_vec_push(&n->places);
		whole = place != NULL;
		if (place) {
			*place = (struct place){
			    .site = (uint32_t)i, .module = (uint32_t)(site->module - info->modules), .offset = site->offset};
			n->modules[place->module].is_used = true;
		}
	}
	if (whole && n->places.count)
		return n;
	weft_names_destroy(n);
	return NULL;
}

void weft_names_destroy(struct weft_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->places.count; i++) {
		free(n->places.items[i].function);
		free(n->places.items[i].file);
	}
	for (size_t i = 0; i < n->module_count; i++) {
		free(n->modules[i].path);
		free(n->modules[i].build_id);
		free(n->modules[i].name);
	}
	for (size_t i = 0; i < n->notes.count; i++)
		free(n->notes.items[i]);
	weft_vec_free(&n->places);
	weft_vec_free(&n->notes);
	free(n->modules);
	free(n);
}

static void note(struct weft_names *n, const struct module *m, const char *what)
{
	char **slot = weft_vec_push(&n->notes);
	if (!slot)
		return;
	size_t size = strlen(m->path) + strlen(what) + 2;
	*slot = malloc(size);
	if (*slot)
		snprintf(*slot, size, "%s%s", m->path, what);
	else
		n->notes.count--;
}

/* In place of a note for each. */
static void note_absent(struct weft_names *n)
{
	while (n->notes.count > 0)
		free(n->notes.items[--n->notes.count]);
	char **slot = weft_vec_push(&n->notes);
	if (slot && asprintf(slot, "none of the %zu files with its code is here, or may be read", n->absent) < 0)
		n->notes.count--;
}

/* ---- One module ---- */

/* Debug information beside the file, by its build-id: what another place offers could be another file's. */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file, const char *link,
    GElf_Word crc, char **out)
{
	const struct weft_names *n = *data;
	if (n->ask_servers)
		return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, out);
	int fd = n->debug_file ? open(n->debug_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd >= 0)
		*out = strdup(n->debug_file);
	return fd;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf, .find_debuginfo = find_debuginfo, .section_address = dwfl_offline_section_address};

/* What a symbol's size does not cover is another function's: the nearest symbol lies. */
static char *symbol_at(Dwfl_Module *module, GElf_Addr address)
{
	GElf_Off in;
	GElf_Sym symbol;
	const char *name = dwfl_module_addrinfo(module, address, &in, &symbol, NULL, NULL, NULL);
	return name && name[0] && in < symbol.st_size ? weft__name_demangle(name) : NULL;
}

/* Of debug information without a table of symbols. */
static char *subprogram_at(Dwfl_Module *module, GElf_Addr address)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias), *scopes = NULL;
	int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
	const char *name = NULL;
	for (int i = 0; i < count && !name; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			name = dwarf_diename(&scopes[i]);
	char *copy = name ? strdup(name) : NULL;
	free(scopes);
	return copy;
}

/* Where the function begins that exceptions know, though nobody its name. */
static char *bounds_at(Dwfl_Module *module, const char *in, uint64_t offset)
{
	GElf_Addr bias;
	size_t size = 0;
	uint64_t begin, end;
	char *name = NULL;
	Elf *elf = dwfl_module_getelf(module, &bias);
	const char *bytes = elf ? elf_rawfile(elf, &size) : NULL;
	if (!bytes || !weft__file_function((const unsigned char *)bytes, size, offset, &begin, &end))
		return NULL;
	return asprintf(&name, "%s+0x%" PRIx64, in, begin) < 0 ? NULL : name;
}

static void name_place(struct place *place, const char *in, Dwfl_Module *module)
{
	GElf_Addr bias;
	if (!dwfl_module_getelf(module, &bias))
		return;
	/* The call is before the address that it returns to. */
	uint64_t offset = place->offset - 1;
	GElf_Addr address = offset + bias;
	Dwfl_Line *line = dwfl_module_getsrc(module, address);
	const char *file = line ? dwfl_lineinfo(line, NULL, &place->line, NULL, NULL, NULL) : NULL;
	place->file = file ? strdup(file) : NULL;
	place->function = symbol_at(module, address);
	if (!place->function)
		place->function = subprogram_at(module, address);
	if (!place->function)
		place->function = bounds_at(module, in, offset);
}

static bool has_room(const struct weft_names_options *o)
{
	return !o || !o->go_on || o->go_on(o->ctx);
}

/* The file itself, or else what is installed of it for debugging. */
static int open_module(struct weft_names *n, const struct module *m, char *debug, size_t debug_size)
{
	const struct weft_str id = {m->build_id, (uint32_t)strlen(m->build_id)};
	int fd = -1, debug_fd = -1;
	if (!weft__file_debug_path(debug, debug_size, id)) {
		note(n, m, " has no build-id, by which the file would be known again");
		return -1;
	}
	enum weft_file_fault fault = weft__file_open(&fd, m->path, id);
	if (weft__file_open(&debug_fd, debug, id) != WEFT_FILE_FINE)
		debug[0] = 0;
	else if (fault == WEFT_FILE_FINE)
		close(debug_fd);
	else
		fd = debug_fd;
	if (fd >= 0)
		return fd;
	n->absent += fault == WEFT_FILE_NONE;
	note(n, m,
	    fault == WEFT_FILE_BUILD_ID ? " is no longer the file that was recorded: its build-id is another one"
	    : fault == WEFT_FILE_NONE   ? " is not here, or may not be read"
					: " is no file of machine code");
	return -1;
}

static void name_module(struct weft_names *n, uint32_t index, const struct weft_names_options *options)
{
	const struct module *m = &n->modules[index];
	char debug[256];
	int fd = open_module(n, m, debug, sizeof debug);
	Dwfl *dwfl = fd < 0 ? NULL : dwfl_begin(&callbacks);
	n->debug_file = debug[0] ? debug : NULL;
	if (dwfl) {
		Dwfl_Module *module = dwfl_report_offline(dwfl, m->path, m->path, fd);
		if (module) {
			void **data;
			fd = -1; /* it is dwfl's now */
			dwfl_report_end(dwfl, NULL, NULL);
			dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
			*data = n;
			for (size_t i = 0; i < n->places.count && has_room(options); i++)
				if (n->places.items[i].module == index)
					name_place(&n->places.items[i], m->name, module);
		}
		dwfl_end(dwfl);
	}
	if (fd >= 0)
		close(fd);
	n->debug_file = NULL;
}

void weft_names_find(struct weft_names *n, const struct weft_names_options *options)
{
	n->ask_servers = options && options->ask_servers;
	for (uint32_t i = 0; i < n->module_count && has_room(options); i++)
		if (n->modules[i].is_used) {
			n->used++;
			name_module(n, i, options);
		}
	if (n->absent > 1 && weft_names_lacks_all(n))
		note_absent(n);
}

bool weft_names_lacks_all(const struct weft_names *n)
{
	return n->used > 0 && n->absent == n->used;
}

/* ---- What came of it ---- */

static struct weft_str str_of(const char *text)
{
	return text ? (struct weft_str){text, (uint32_t)strlen(text)} : (struct weft_str){"", 0};
}

int weft_names_apply(const struct weft_names *n, struct weft_trace *trace)
{
	int named = 0;
	for (size_t i = 0; i < n->places.count; i++) {
		const struct place *p = &n->places.items[i];
		if (!p->function && !p->file)
			continue;
		int status = weft_trace_name_site(
		    trace, p->site, str_of(p->file), str_of(p->function), p->line < 0 ? 0 : (uint32_t)p->line);
		if (status < 0)
			return status;
		named++;
	}
	return named;
}

size_t weft_names_note_count(const struct weft_names *n)
{
	return n->notes.count;
}

const char *weft_names_note(const struct weft_names *n, size_t index)
{
	return n->notes.items[index];
}
