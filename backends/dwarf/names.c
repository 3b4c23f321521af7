/* names.c: finds the names of machine-code addresses (see names.h).
 *
 * The debug files may come from a stranger, and elfutils parses them.  So this process opens the files, and a child process
 * without rights parses them and answers through a pipe; one child handles all files of a trace.  With ask_servers, the child
 * keeps its rights, because it needs the network. SPDX-License-Identifier: ISC */
#include "names.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/vec.h"
#include "file.h"
#include "names_private.h"
#include "symbols.h"

struct code_address {
	uint32_t site, module; /* indices */
	uint64_t offset;
	char *function, *file; /* NULL: unknown */
	int line;
};

struct module {
	char *path, *build_id, *name; /* `name` is the module's short name, as in "name+0x18cb0" */
	bool is_used;
	int fd, debug_fd; /* descriptors of the files while names are searched; -1: none */
};

/* Addresses from `begin` to `end` of the file, which are code of one compilation unit. */
struct unit_range {
	uint64_t begin, end;
	Dwarf_Die *unit;
};

/* Module that the child process examines. */
struct examined {
	Dwfl_Module *module;
	WEFT_VEC(struct unit_range) ranges; /* by begin, once has_ranges */
	bool has_ranges;
	struct weft_symbols symbols;
};

struct weft_names {
	WEFT_VEC(struct code_address) addresses;
	struct module *modules;
	size_t module_count;
	WEFT_VEC(char *) notes;
	size_t used, absent; /* numbers of modules */
	int debug_fd;        /* descriptor, in the child process, of the debug file of the examined module */
	FILE *answers;       /* pipe in the child process for its answers */
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
		    copy_of(info->modules[i].build_id), copy_of(weft_module_short_name(&info->modules[i])), false, -1, -1};
		whole = n->modules[i].path && n->modules[i].build_id && n->modules[i].name;
	}
	for (size_t i = 0; whole && i < info->site_count; i++) {
		const struct weft_site *site = &info->sites[i];
		if (!site->module || !site->offset || site->function.len || site->file.len)
			continue;
		struct code_address *code_address = weft_vec_push(&n->addresses);
		whole = code_address != NULL;
		if (code_address) {
			*code_address = (struct code_address){
			    .site = (uint32_t)i, .module = (uint32_t)(site->module - info->modules), .offset = site->offset};
			n->modules[code_address->module].is_used = true;
		}
	}
	if (whole && n->addresses.count)
		return n;
	weft_names_destroy(n);
	return NULL;
}

void weft_names_destroy(struct weft_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->addresses.count; i++) {
		free(n->addresses.items[i].function);
		free(n->addresses.items[i].file);
	}
	for (size_t i = 0; i < n->module_count; i++) {
		free(n->modules[i].path);
		free(n->modules[i].build_id);
		free(n->modules[i].name);
	}
	for (size_t i = 0; i < n->notes.count; i++)
		free(n->notes.items[i]);
	weft_vec_free(&n->addresses);
	weft_vec_free(&n->notes);
	free(n->modules);
	free(n);
}

static void add_note(struct weft_names *n, const struct module *m, const char *what)
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

/* Replaces the notes about all absent modules by one note. */
static void add_absent_note(struct weft_names *n)
{
	while (n->notes.count > 0)
		free(n->notes.items[--n->notes.count]);
	char **slot = weft_vec_push(&n->notes);
	if (slot && asprintf(slot, "none of the %zu files with its code exists here or can be read", n->absent) < 0)
		n->notes.count--;
}

/* ---- One module ---- */

/* Finds debug information only by its build-id, because a file from another place could belong to a different module. */
static int find_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file, const char *link,
    GElf_Word crc, char **out)
{
	const struct weft_names *n = *data;
	if (n->ask_servers)
		return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, out);
	const int fd = n->debug_fd < 0 ? -1 : fcntl(n->debug_fd, F_DUPFD, 0);
	if (fd >= 0)
		*out = strdup("debug information");
	return fd;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf, .find_debuginfo = find_debuginfo, .section_address = dwfl_offline_section_address};

/* Returns the name of the symbol at an address. */
static char *symbol_at(struct examined *e, GElf_Addr address)
{
	const struct weft_symbol *symbol = weft__symbols_find(&e->symbols, e->module, address);
	return symbol && symbol->size ? weft__name_demangle(symbol->name) : NULL;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;
	return WEFT_ORDER(x->begin, y->begin) ?: WEFT_ORDER(x->end, y->end);
}

static void list_ranges(struct examined *e)
{
	Dwarf_Addr bias;
	e->has_ranges = true;
	for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(e->module, unit, &bias));) {
		Dwarf_Addr base, begin, end;
		for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0;) {
			struct unit_range *added = weft_vec_push(&e->ranges);
			if (!added)
				break;
			*added = (struct unit_range){begin + bias, end + bias, unit};
		}
	}
	weft_sort(e->ranges.items, e->ranges.count, sizeof *e->ranges.items, compare_ranges);
}

/* Returns the compilation unit at an address; NULL: unknown. libdwfl finds units only by the section .debug_aranges, which clang
 * and rustc leave out; in that case, the function lists the ranges of all units. */
static Dwarf_Die *find_unit(struct examined *e, GElf_Addr address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(e->module, address, bias);
	if (unit || !dwfl_module_getdwarf(e->module, bias))
		return unit;
	if (!e->has_ranges)
		list_ranges(e);
	const struct unit_range *ranges = e->ranges.items;
	const size_t after = WEFT_FIND_FIRST(i, 0, e->ranges.count, ranges[i].begin > address);
	return after > 0 && address < ranges[after - 1].end ? ranges[after - 1].unit : NULL;
}

/* Returns the name of the function at an address from debug information, for files without a symbol table. */
static char *subprogram_at(Dwarf_Die *unit, Dwarf_Addr address)
{
	Dwarf_Die *scopes = NULL;
	int count = unit ? dwarf_getscopes(unit, address, &scopes) : 0;
	const char *name = NULL;
	for (int i = 0; i < count && !name; i++)
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			name = dwarf_diename(&scopes[i]);
	char *copy = name ? strdup(name) : NULL;
	free(scopes);
	return copy;
}

/* Returns "name+0x18cb0", with the start of a function that has exception data but no name. */
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

static bool is_system_header(const char *file)
{
	return strncmp(file, "/usr/include/", 13) == 0 || strncmp(file, "/usr/lib/", 9) == 0;
}

/* Sets *file and *line to the call of the innermost inlined function whose caller is outside of the system's headers, which
 * inline parts of functions such as recv().  Leaves them if there is none. */
static void skip_system_headers(Dwarf_Die *unit, Dwarf_Addr address, const char **file, int *line)
{
	Dwarf_Die *scopes = NULL, *parents = NULL;
	Dwarf_Files *files = NULL;
	size_t file_count = 0;
	if (dwarf_getscopes(unit, address, &scopes) <= 0 || dwarf_getsrcfiles(unit, &files, &file_count) != 0) {
		free(scopes);
		return;
	}
	const int count = dwarf_getscopes_die(&scopes[0], &parents);
	for (int i = 0; i < count; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Word call_file, call_line;
		if (dwarf_tag(&parents[i]) != DW_TAG_inlined_subroutine ||
		    dwarf_formudata(dwarf_attr(&parents[i], DW_AT_call_file, &attribute), &call_file) != 0 ||
		    dwarf_formudata(dwarf_attr(&parents[i], DW_AT_call_line, &attribute), &call_line) != 0)
			continue;
		const char *caller = call_file < file_count ? dwarf_filesrc(files, call_file, NULL, NULL) : NULL;
		if (!caller || is_system_header(caller))
			continue;
		*file = caller;
		*line = (int)call_line;
		break;
	}
	free(parents);
	free(scopes);
}

static void name_address(struct code_address *code_address, const char *in, struct examined *e)
{
	GElf_Addr bias;
	Dwarf_Addr unit_bias = 0;
	if (!dwfl_module_getelf(e->module, &bias))
		return;
	/* The call instruction is before the return address. */
	uint64_t offset = code_address->offset - 1;
	GElf_Addr address = offset + bias;
	Dwarf_Die *unit = find_unit(e, address, &unit_bias);
	Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, address - unit_bias) : NULL;
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (file && dwarf_lineno(line, &code_address->line) == 0) {
		if (is_system_header(file))
			skip_system_headers(unit, address - unit_bias, &file, &code_address->line);
		code_address->file = strdup(file);
	}
	code_address->function = symbol_at(e, address);
	if (!code_address->function)
		code_address->function = subprogram_at(unit, address - unit_bias);
	if (!code_address->function)
		code_address->function = bounds_at(e->module, in, offset);
}

/* ---- The child ---- */

/* One answer of the child process: the names of an address, or the fault of a module's file. */
struct answer {
	uint32_t index, function_bytes, file_bytes; /* index and sizes of the texts for an address; the texts follow the struct */
	int32_t line;
	uint32_t module, fault; /* fault: enum weft_file_fault of this module; FINE in the answer for an address */
};

enum { MAX_TEXT = 1 << 16 };

static const size_t parser_bytes = (size_t)4 << 30;

static uint32_t length_of(const char *text)
{
	const size_t length = text ? strlen(text) : 0;
	return length < MAX_TEXT ? (uint32_t)length : MAX_TEXT;
}

static void answer_address(const struct weft_names *n, uint32_t index)
{
	const struct code_address *c = &n->addresses.items[index];
	const struct answer a = {.index = index,
	    .function_bytes = length_of(c->function),
	    .file_bytes = length_of(c->file),
	    .line = c->line,
	    .module = c->module};
	fwrite(&a, sizeof a, 1, n->answers);
	fwrite(c->function, 1, a.function_bytes, n->answers);
	fwrite(c->file, 1, a.file_bytes, n->answers);
}

static void name_addresses(struct weft_names *n, uint32_t index, int fd)
{
	const struct module *m = &n->modules[index];
	Dwfl *dwfl = dwfl_begin(&callbacks);
	struct examined e = {.module = dwfl ? dwfl_report_offline(dwfl, m->path, m->path, fd) : NULL};
	if (e.module) {
		void **data;
		dwfl_report_end(dwfl, NULL, NULL);
		dwfl_module_info(e.module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = n;
		for (size_t i = 0; i < n->addresses.count; i++)
			if (n->addresses.items[i].module == index) {
				name_address(&n->addresses.items[i], m->name, &e);
				answer_address(n, (uint32_t)i);
			}
	}
	weft_vec_free(&e.ranges);
	weft__symbols_free(&e.symbols);
	dwfl_end(dwfl);
}

/* Examines the file of a module or, if that file is missing, its installed debug file. */
static void name_module(struct weft_names *n, uint32_t index)
{
	struct module *m = &n->modules[index];
	const struct weft_str id = {m->build_id, (uint32_t)strlen(m->build_id)};
	const enum weft_file_fault fault = weft__file_identify(m->fd, id);
	const bool has_debug = weft__file_identify(m->debug_fd, id) == WEFT_FILE_FINE;
	if (fault != WEFT_FILE_FINE && !has_debug) {
		const struct answer a = {.module = index, .fault = (uint32_t)fault};
		fwrite(&a, sizeof a, 1, n->answers);
		return;
	}
	n->debug_fd = has_debug ? m->debug_fd : -1;
	name_addresses(n, index, fault == WEFT_FILE_FINE ? m->fd : m->debug_fd);
}

int weft__compare_descriptors(const void *a, const void *b)
{
	return WEFT_ORDER(*(const int *)a, *(const int *)b);
}

/* Runs in the child. */
static void answer_all(struct weft_names *n, int *kept, size_t kept_count)
{
	if (!n->ask_servers) {
		weft_sort(kept, kept_count, sizeof *kept, weft__compare_descriptors);
		weft_confine_descriptors(kept, kept_count);
		/* On systems without seccomp filters, the child process at least has no other descriptors. */
		(void)weft_confine(parser_bytes, false);
	}
	for (uint32_t i = 0; i < n->module_count; i++)
		if (n->modules[i].fd >= 0 || n->modules[i].debug_fd >= 0)
			name_module(n, i);
	fflush(n->answers);
	_exit(0);
}

/* ---- The parent ---- */

static bool may_continue(const struct weft_names_options *o)
{
	return !o || !o->go_on || o->go_on(o->ctx);
}

/* Notes why the addresses of a module have no names. */
static void note_fault(struct weft_names *n, const struct module *m, enum weft_file_fault fault)
{
	n->absent += fault == WEFT_FILE_NONE;
	add_note(n, m,
	    fault == WEFT_FILE_BUILD_ID ? " is not the recorded file: its build-id differs"
	    : fault == WEFT_FILE_NONE   ? " does not exist here or cannot be read"
					: " is not a file with machine code");
}

/* Opens a module's file and its installed debug file.  Returns whether at least one of the files exists. */
static bool open_module(struct weft_names *n, struct module *m)
{
	char debug[256];
	if (!weft__file_debug_path(debug, sizeof debug, (struct weft_str){m->build_id, (uint32_t)strlen(m->build_id)})) {
		add_note(n, m, " has no build-id, which is needed to identify the file");
		return false;
	}
	m->fd = weft__file_open(m->path);
	m->debug_fd = weft__file_open(debug);
	if (m->fd < 0 && m->debug_fd < 0)
		note_fault(n, m, WEFT_FILE_NONE);
	return m->fd >= 0 || m->debug_fd >= 0;
}

static void close_module(struct module *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->debug_fd >= 0)
		close(m->debug_fd);
	m->fd = m->debug_fd = -1;
}

/* Reads an answer from the child process while the caller still waits.  Returns false at the end of the answers, or when the
 * caller does not wait any more. */
static bool read_all(int fd, void *to, size_t size, const struct weft_names_options *options)
{
	enum { PATIENCE_MS = 20 };
	for (size_t at = 0; at < size;) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (!may_continue(options))
			return false;
		if (poll(&ready, 1, PATIENCE_MS) <= 0)
			continue;
		const ssize_t n = read(fd, (char *)to + at, size - at);
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool read_text(int fd, char **text, uint32_t bytes, const struct weft_names_options *options)
{
	if (bytes > MAX_TEXT)
		return false;
	char *copy = bytes ? calloc(1, (size_t)bytes + 1) : NULL;
	if (bytes && (!copy || !read_all(fd, copy, bytes, options))) {
		free(copy);
		return false;
	}
	free(*text);
	*text = copy;
	return true;
}

/* Takes over one answer of the child process, after checks of the answer's fields. */
static bool take_answer(struct weft_names *n, int fd, const struct weft_names_options *options)
{
	struct answer a;
	if (!read_all(fd, &a, sizeof a, options) || a.module >= n->module_count)
		return false;
	if (a.fault != WEFT_FILE_FINE) {
		note_fault(n, &n->modules[a.module], (enum weft_file_fault)a.fault);
		return n->notes.count <= 2 * n->module_count;
	}
	if (a.index >= n->addresses.count)
		return false;
	struct code_address *c = &n->addresses.items[a.index];
	c->line = a.line;
	return read_text(fd, &c->function, a.function_bytes, options) && read_text(fd, &c->file, a.file_bytes, options);
}

/* Starts the child.  Returns the parent's end of the pipe, or -1. */
static int start_child(struct weft_names *n, pid_t *child)
{
	int ends[2];
	int *kept = calloc(2 * n->module_count + 1, sizeof *kept);
	size_t count = 0;
	if (!kept || pipe2(ends, O_CLOEXEC)) {
		free(kept);
		return -1;
	}
	kept[count++] = ends[1];
	for (size_t i = 0; i < n->module_count; i++) {
		if (n->modules[i].fd >= 0)
			kept[count++] = n->modules[i].fd;
		if (n->modules[i].debug_fd >= 0)
			kept[count++] = n->modules[i].debug_fd;
	}
	*child = fork();
	if (*child == 0) {
		n->answers = fdopen(ends[1], "w");
		if (!n->answers)
			_exit(1);
		answer_all(n, kept, count);
	}
	free(kept);
	close(ends[1]);
	if (*child > 0)
		return ends[0];
	close(ends[0]);
	return -1;
}

void weft_names_find(struct weft_names *n, const struct weft_names_options *options)
{
	size_t there = 0;
	pid_t child = -1;
	n->ask_servers = options && options->ask_servers;
	for (uint32_t i = 0; i < n->module_count && may_continue(options); i++)
		if (n->modules[i].is_used) {
			n->used++;
			there += open_module(n, &n->modules[i]);
		}
	const int answers = there ? start_child(n, &child) : -1;
	while (answers >= 0 && take_answer(n, answers, options))
		;
	if (answers >= 0)
		close(answers);
	if (child > 0) {
		kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	for (size_t i = 0; i < n->module_count; i++)
		close_module(&n->modules[i]);
	if (n->absent > 1 && weft_names_are_all_missing(n))
		add_absent_note(n);
}

bool weft_names_are_all_missing(const struct weft_names *n)
{
	return n->used > 0 && n->absent == n->used;
}

/* ---- Results ---- */

static struct weft_str str_of(const char *text)
{
	return text ? (struct weft_str){text, (uint32_t)strlen(text)} : (struct weft_str){"", 0};
}

static bool is_text(struct weft_str s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.len ? s.ptr : "", text, s.len) == 0;
}

bool weft_names_fit(const struct weft_names *n, const struct weft_trace_info *info)
{
	for (size_t i = 0; i < n->addresses.count; i++) {
		const struct code_address *p = &n->addresses.items[i];
		const struct module *m = &n->modules[p->module];
		const struct weft_site *site = p->site < info->site_count ? &info->sites[p->site] : NULL;
		if (!site || !site->module || site->offset != p->offset || !is_text(site->module->path, m->path) ||
		    !is_text(site->module->build_id, m->build_id))
			return false;
	}
	return true;
}

int weft_names_apply(const struct weft_names *n, struct weft_trace *trace)
{
	int named = 0;
	for (size_t i = 0; i < n->addresses.count; i++) {
		const struct code_address *p = &n->addresses.items[i];
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
