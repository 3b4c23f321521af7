/* load.c: finds copies of runtimes in mapped modules, and wraps their functions.
 *
 * When the loader has mapped modules, it calls the function r_debug.r_brk, which exists for debuggers, before it relocates the
 * modules and before any constructor runs.  This file also patches r_debug.r_brk, to learn of new modules.  dlopen() is not
 * wrapped, because the loader would then search by the RUNPATH of this library.
 *
 * If a function cannot be patched, load.c changes the pointers by which other modules call the function.  Such changed pointers
 * miss calls inside the module and calls by dlsym().  SPDX-License-Identifier: ISC */
#include "adapters/hook/load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/hook/attach.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/directory.h"
#include "adapters/hook/entry.h"
#include "adapters/hook/module.h"
#include "adapters/hook/patches.h"
#include "adapters/hook/signals.h"
#include "adapters/hook/state.h"

enum { REFUSAL_BYTES = 192, MAX_EXTEND_PASSES = 16 };

/* A mapped copy of a runtime. */
struct copy {
	struct weft_hook_module module;
	struct weft__module elf;
	const struct weft_hook_adapter *adapter;
	char version[32];
	bool accepted, has_outside;
	/* Whether the module was mapped before this library was initialised; the loader searches such a module before later
	 * modules. */
	bool is_from_start;
	bool is_hidden; /* whether the loader binds every call to an earlier copy */
	size_t function_count, by_entry, by_symbol;
	size_t redirected_modules; /* number of modules, in the loader's order, whose pointers to the copy are redirected */
	/* Reason for which the first function was not patched, or for which the copy is not recorded. */
	char refusal[REFUSAL_BYTES];
	struct weft__slots slots;
	struct weft__entry *entries;      /* functions of the set that the copy has */
	const struct weft__symtab *table; /* symbols that are not exported; NULL unless the copy is being hooked */
	struct copy *next;
	char path[];
};

/* A module that has been searched for runtimes. */
struct known_module {
	uintptr_t base;
	const void *headers;
	unsigned round;
	bool is_redirected; /* whether weft__hook_redirect_libc() has seen the module */
};

/* Lock for reports; the constructor and holders of the loader's lock write the state below, and reports read it under `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct copy *copies;
static struct known_module *known_module;
static size_t known_module_count, known_module_capacity;
static unsigned this_round;
static bool was_single_threaded; /* whether no other thread can run mapped code */
static bool has_symbols_only;
/* Refusal text of an entry that is wrapped only for calls from outside of the runtime. */
static const char outside[] = "from outside";
static char report_text[1024];

static struct r_debug *debug;
static void (*debug_original)(void);

/* ---- Functions of a copy ---- */

struct text_range {
	struct copy *copy;
	uintptr_t begin, end;
};

static bool is_called_from_outside(const struct copy *c, const char *symbol)
{
	const char *const *name = c->adapter->from_outside;
	while (name && *name && strcmp(*name, symbol) != 0)
		name++;
	return name && *name;
}

static void add_function(struct copy *c, const struct weft_hook_function *f, const ElfW(Sym) * s)
{
	uintptr_t at = c->elf.base + s->st_value;
	bool is_text = at >= c->elf.text_begin && at < c->elf.text_end;
	/* A symbol table may contain a name twice, so only the first entry counts. */
	for (size_t i = 0; i < c->function_count; i++)
		is_text &= c->entries[i].wrapper != f->wrapper;
	if (is_text)
		c->entries[c->function_count++] = (struct weft__entry){
		    (void *)at, s->st_size, f->wrapper, f->original, is_called_from_outside(c, f->symbol) ? outside : NULL};
}

static bool is_from_outside(const struct weft__entry *e)
{
	return e->refusal == outside;
}

/* Moves the entries that are wrapped only for calls from outside of the runtime to the end.  Returns the number of the other
 * entries. */
static size_t sort_entries(struct copy *c)
{
	size_t count = 0;
	for (size_t i = 0; i < c->function_count; i++) {
		struct weft__entry e = c->entries[i];
		if (is_from_outside(&e))
			continue;
		c->entries[i] = c->entries[count];
		c->entries[count++] = e;
	}
	return count;
}

static void collect_function(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct copy *c = ctx;
	for (const struct weft_hook_function *f = c->adapter->functions[c->module.set]; f->symbol; f++)
		if (f->wrapper && !strcmp(f->symbol, name))
			add_function(c, f, s);
}

/* Fills `entries` with the functions of the copy's set that the copy has. */
static void collect_functions(struct copy *c, const struct weft__symtab *table)
{
	const struct weft_hook_function *functions = c->adapter->functions[c->module.set];
	size_t count = 0;
	while (functions[count].symbol)
		count++;
	c->entries = calloc(count + 1, sizeof *c->entries);
	if (!c->entries)
		return;
	if (table) {
		weft__symtab_each(table, c->adapter->prefix, collect_function, c);
		return;
	}
	for (const struct weft_hook_function *f = functions; f->symbol; f++) {
		const ElfW(Sym) *s = f->wrapper ? weft__module_exports(&c->elf, f->symbol) : NULL;
		if (s)
			add_function(c, f, s);
	}
}

static void extend_range(struct text_range *g, const ElfW(Sym) * s)
{
	uintptr_t begin = g->copy->elf.base + s->st_value, end = begin + s->st_size;
	g->begin = g->begin && g->begin < begin ? g->begin : begin;
	g->end = g->end > end ? g->end : end;
}

static void extend_by_symbols(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct text_range *g = ctx;
	for (const struct weft_hook_function *f = g->copy->adapter->functions[0]; f->symbol; f++)
		if (f->wrapper && !strcmp(f->symbol, name))
			extend_range(g, s);
}

/* Extends the range of the runtime's code by a function that is close to the range.  Functions far away do not count, because
 * the linker moves rarely used code and exit code elsewhere. */
static void extend_by_neighbour(void *ctx, const char *name, const ElfW(Sym) * s)
{
	enum { MAX_GAP_BYTES = 64 };
	struct text_range *g = ctx;
	uintptr_t begin = g->copy->elf.base + s->st_value, end = begin + s->st_size;
	if (begin <= g->end + MAX_GAP_BYTES && end + MAX_GAP_BYTES >= g->begin)
		extend_range(g, s);
}

/* Sets the address range of the runtime's own code. */
static void find_own_text(struct copy *c, const struct weft__symtab *table)
{
	const char *slash = strrchr(c->path, '/'), *file = slash ? slash + 1 : c->path;
	struct text_range all = {.copy = c};
	if (c->adapter->library[0] == '/') {
		/* The program asks libc for what its language's runtime asks. */
	} else if (!strncmp(file, c->adapter->library, strlen(c->adapter->library))) {
		all.begin = c->elf.text_begin;
		all.end = c->elf.text_end;
	} else if (table) {
		uintptr_t size = 0;
		weft__symtab_each(table, c->adapter->prefix, extend_by_symbols, &all);
		for (int i = 0; i < MAX_EXTEND_PASSES && size != all.end - all.begin; i++) {
			size = all.end - all.begin;
			weft__symtab_each(table, c->adapter->prefix, extend_by_neighbour, &all);
		}
	} else {
		for (const struct weft_hook_function *f = c->adapter->functions[0]; f->symbol; f++) {
			const ElfW(Sym) *s = f->wrapper ? weft__module_exports(&c->elf, f->symbol) : NULL;
			if (s)
				extend_range(&all, s);
		}
	}
	c->module.own_begin = all.begin;
	c->module.own_end = all.end;
}

struct symbol_lookup {
	const char *name;
	uintptr_t value;
};

static void match_symbol(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct symbol_lookup *f = ctx;
	if (!strcmp(name, f->name))
		f->value = s->st_value;
}

void *weft_hook_symbol(const struct weft_hook_module *module, const char *name)
{
	const struct copy *c = (const struct copy *)(const void *)module;
	const ElfW(Sym) *s = weft__module_exports(&c->elf, name);
	if (s)
		return (void *)(c->elf.base + s->st_value);
	struct weft__symtab table;
	struct symbol_lookup found = {.name = name};
	if (c->table) {
		weft__symtab_each(c->table, name, match_symbol, &found);
	} else if (weft__symtab_open(&table, &c->elf)) {
		weft__symtab_each(&table, name, match_symbol, &found);
		weft__symtab_close(&table);
	}
	return found.value ? (void *)(c->elf.base + found.value) : NULL;
}

unsigned weft_hook_newest_name(const struct weft_hook_module *module, const char *prefix)
{
	const struct weft__module *m = &((const struct copy *)(const void *)module)->elf;
	const char *at = m->names, *end = m->names + m->names_bytes;
	const size_t length = strlen(prefix);
	unsigned newest = 0;
	while (at < end && (at = memmem(at, (size_t)(end - at), prefix, length))) {
		unsigned number = 0;
		for (at += length; at < end && *at >= '0' && *at <= '9' && number < 100000; at++)
			number = 10 * number + (unsigned)(*at - '0');
		newest = number > newest ? number : newest;
	}
	return newest;
}

/* ---- By symbol ---- */

struct redirection_pass {
	struct copy *copy;
	size_t index; /* index of the current module */
};

struct redirection {
	const struct weft__module *from;
	const struct weft__entry *entry;
	bool only_copy; /* whether a pointer that is not bound yet will be bound to this copy */
	bool done;
};

static void redirect_pointer(void *ctx, void **pointer)
{
	struct redirection *r = ctx;
	uintptr_t now = (uintptr_t)*pointer;
	bool unbound = now >= r->from->text_begin && now < r->from->text_end;
	if (now != (uintptr_t)r->entry->function && !(unbound && r->only_copy))
		return;
	if (weft__hook_is_attached) {
		const int memory = weft__hook_is_listing() ? -1 : open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		r->done = weft__hook_patch(memory, pointer, &r->entry->wrapper, sizeof r->entry->wrapper, false);
		if (memory >= 0)
			close(memory);
		return;
	}
	if (weft__write_protected(pointer, &r->entry->wrapper, sizeof r->entry->wrapper)) {
		r->done = true;
		return;
	}
	uintptr_t page = (uintptr_t)pointer & -(uintptr_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < r->from->header_count; i++) {
		const ElfW(Phdr) *h = &r->from->headers[i];
		uintptr_t begin = r->from->base + h->p_vaddr;
		bool read_only = h->p_type == PT_GNU_RELRO && page >= (begin & -(uintptr_t)sysconf(_SC_PAGESIZE)) &&
				 (uintptr_t)pointer < begin + h->p_memsz;
		if (!read_only)
			continue;
		if (mprotect((void *)page, 1, PROT_READ | PROT_WRITE))
			return;
		__atomic_store_n(pointer, r->entry->wrapper, __ATOMIC_RELEASE);
		mprotect((void *)page, 1, PROT_READ);
		r->done = true;
		return;
	}
	__atomic_store_n(pointer, r->entry->wrapper, __ATOMIC_RELEASE);
	r->done = true;
}

/* Redirects the pointers of a module to the wrappers; each module is searched once, because graphical programs have many
 * modules. */
static int redirect_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct redirection_pass *redirection_pass = ctx;
	struct copy *c = redirection_pass->copy;
	struct weft__module from;
	const bool is_seen = redirection_pass->index++ < c->redirected_modules;
	if ((is_seen && c->by_symbol == 0) || !weft__module_read(&from, info, info->dlpi_name))
		return 0;
	size_t of_runtime = 0;
	bool is_runtime = false;
	for (const struct copy *other = copies; other; other = other->next) {
		of_runtime += other->adapter == c->adapter;
		is_runtime |= other->elf.base == from.base;
	}
	for (size_t i = 0; i < c->function_count; i++) {
		if (!c->entries[i].refusal || (is_from_outside(&c->entries[i]) && (is_runtime || is_seen)))
			continue;
		const struct weft_hook_function *f = c->adapter->functions[c->module.set];
		while (f->symbol && f->wrapper != c->entries[i].wrapper)
			f++;
		struct redirection r = {.from = &from, .entry = &c->entries[i], .only_copy = of_runtime == 1};
		weft__module_each_pointer(&from, f->symbol, redirect_pointer, &r);
	}
	return 0;
}

void weft__hook_redirect_pointers(void)
{
	if (!__atomic_load_n(&has_symbols_only, __ATOMIC_ACQUIRE))
		return;
	for (struct copy *c = copies; c; c = c->next) {
		struct redirection_pass redirection_pass = {.copy = c};
		if (c->accepted && (c->by_symbol || c->has_outside))
			dl_iterate_phdr(redirect_module, &redirection_pass);
		c->redirected_modules = redirection_pass.index;
	}
}

/* ---- Hooking copies ---- */

static bool assign_set(struct copy *c)
{
	for (unsigned set = 0; set < c->adapter->sets; set++) {
		bool is_free = true;
		for (const struct copy *other = copies; other; other = other->next)
			is_free &= other->adapter != c->adapter || !other->accepted || other->module.set != set;
		if (is_free) {
			c->module.set = set;
			return true;
		}
	}
	return false;
}

static const char *get_function_name(const struct copy *c, const struct weft__entry *e)
{
	const struct weft_hook_function *f = c->adapter->functions[c->module.set];
	while (f->wrapper != e->wrapper)
		f++;
	return f->symbol;
}

/* Returns the name of a function that the adapter needs and the copy lacks; NULL: none. */
static const char *find_missing_function(const struct copy *c)
{
	const struct weft_hook_function *f = c->adapter->functions[0];
	while (f->symbol && (f->wrapper || weft_hook_symbol(&c->module, f->symbol)))
		f++;
	return f->symbol;
}

/* Sets the pointers to the functions that the adapter calls and does not wrap. */
static void resolve_called(const struct copy *c)
{
	for (const struct weft_hook_function *f = c->adapter->functions[c->module.set]; f->symbol; f++)
		if (!f->wrapper && f->original)
			*f->original = weft_hook_symbol(&c->module, f->symbol);
}

/* Returns whether the loader binds all calls to another copy of the runtime.  An example is libevent_core, loaded by
 * libevent_pthreads, in a program that links libevent. */
static bool is_hidden(const struct copy *c, const struct weft__symtab *table)
{
	const struct copy *other = table ? NULL : copies;
	while (other && !(other->adapter == c->adapter && other->accepted && other->is_from_start &&
			    weft__module_exports(&other->elf, c->adapter->mark)))
		other = other->next;
	return other;
}

/* Wraps the functions of a copy; `fresh` says whether no code of the module has run yet. */
static void hook_copy(struct copy *c, const struct weft__symtab *table, bool fresh)
{
	bool is_known = c->adapter->accepts(&c->module, c->version, sizeof c->version);
	const char *missing_function = is_known ? find_missing_function(c) : NULL;
	if (!is_known)
		snprintf(c->refusal, sizeof c->refusal, "unsupported version");
	else if (missing_function)
		snprintf(c->refusal, sizeof c->refusal, "it lacks %s", missing_function);
	else if (!assign_set(c) && !(c->is_hidden = is_hidden(c, table)))
		snprintf(c->refusal, sizeof c->refusal, "weft supports no more copies of it in one process");
	else
		c->accepted = !c->is_hidden;
	if (!c->accepted)
		return;
	find_own_text(c, table);
	resolve_called(c);
	*c->adapter->modules[c->module.set] = &c->module;
	collect_functions(c, table);
	if (!c->entries)
		return;
	const char *refusal = c->elf.rewrites_text           ? "the loader rewrites its text"
			      : fresh || was_single_threaded ? NULL
							     : "other threads are already running";
	const size_t at_entry = sort_entries(c);
	if (!refusal && at_entry > 0)
		c->by_entry = weft__entries_patch(c->entries, at_entry, c->elf.text_begin, c->elf.text_end, &c->slots);
	for (size_t i = 0; i < c->function_count; i++) {
		struct weft__entry *e = &c->entries[i];
		if (is_from_outside(e)) {
			*e->original = e->function;
			c->by_entry += !refusal && !table;
			c->has_outside |= !table;
			__atomic_store_n(&has_symbols_only, true, __ATOMIC_RELEASE);
			continue;
		}
		e->refusal = refusal ? refusal : e->refusal;
		if (!e->refusal || !e->original)
			continue;
		if (!c->refusal[0])
			snprintf(c->refusal, sizeof c->refusal, "%s: %s", get_function_name(c, e), e->refusal);
		*e->original = e->function;
		/* Functions that only .symtab lists are static and are not called through pointers, so nothing is redirected for
		 * them. */
		if (!table) {
			c->by_symbol++;
			__atomic_store_n(&has_symbols_only, true, __ATOMIC_RELEASE);
		}
	}
}

/* Appends to the report which functions of the copy were wrapped, or why none was. */
static void append_report(const struct copy *c)
{
	size_t length = strlen(report_text), capacity = sizeof report_text - length;
	const char *separator = length ? "; " : "", *refusal = c->refusal[0] ? c->refusal : NULL;
	if (c->accepted && c->function_count == 0) /* the adapter wraps no function of this library */
		return;
	if (!c->accepted)
		snprintf(report_text + length, capacity, "%s%s %s: not recorded: %s", separator, c->adapter->name, c->version,
		    c->refusal);
	else
		snprintf(report_text + length, capacity, "%s%s %s: %zu of %zu calls%s%s%s", separator, c->adapter->name,
		    c->version, c->by_entry, c->function_count, refusal ? " (" : "", refusal ? refusal : "",
		    refusal ? "; by symbol)" : "");
}

/* Lists the copy as a runtime; call it with the lock held. */
static void list_copy(struct copy *c)
{
	append_report(c);
	__atomic_store_n(&c->module.is_listed, true, __ATOMIC_RELAXED);
}

void weft__hook_add_to_report(const char *text)
{
	const int saved = errno;
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	const size_t length = strlen(report_text);
	snprintf(report_text + length, sizeof report_text - length, "%s%s", length ? "; " : "", text);
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	errno = saved;
}

void weft__hook_list_copy(const struct weft_hook_module *module)
{
	const int saved = errno;
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	for (struct copy *c = copies; c; c = c->next)
		if (&c->module == module && !c->module.is_listed)
			list_copy(c);
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	errno = saved;
}

bool weft__hook_has_runtime(void)
{
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	const struct copy *c = copies;
	while (c && !(c->accepted && c->function_count && c->module.is_listed))
		c = c->next;
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	return c;
}

static void add_copy(
    const struct weft__module *m, const struct weft_hook_adapter *adapter, const struct weft__symtab *table, bool fresh)
{
	size_t bytes = strlen(m->path) + 1;
	struct copy *c = calloc(1, sizeof *c + bytes);
	if (!c)
		return;
	memcpy(c->path, m->path, bytes);
	c->elf = *m;
	c->elf.path = c->path;
	c->adapter = adapter;
	c->table = table;
	c->module = (struct weft_hook_module){.path = c->path, .base = m->base};
	c->is_from_start = !fresh;
	hook_copy(c, table, fresh);
	c->table = NULL;
	if (c->is_hidden) {
		free(c);
		return;
	}
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	c->next = copies;
	copies = c;
	const bool is_silent = !c->accepted && adapter->is_silent_when_refused;
	if (weft__hook_is_listing() && c->accepted && adapter->needs_start)
		weft__hook_leave_out(adapter->needs_start);
	if (!is_silent && (!c->accepted || !adapter->is_listed_when_called))
		list_copy(c);
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	char message[sizeof report_text];
	snprintf(message, sizeof message, "%s %s in %s is not recorded: %s", adapter->name, c->version, c->path, c->refusal);
	if (!c->accepted && !is_silent)
		weft__hook_write_failure(message);
}

static void find_copies(const struct weft__module *m, bool fresh)
{
	struct weft__symtab table;
	int opened = -1; /* not tried yet */
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++) {
		if (weft__module_exports(m, (*a)->mark)) {
			add_copy(m, *a, NULL, fresh);
			continue;
		}
		if (opened < 0)
			opened = weft__symtab_open(&table, m);
		if (opened && weft__symtab_has_name(&table, (*a)->mark))
			add_copy(m, *a, &table, fresh);
	}
	if (opened > 0)
		weft__symtab_close(&table);
}

/* ---- The loader ---- */

static bool remember_module(const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < known_module_count; i++)
		if (known_module[i].base == info->dlpi_addr && known_module[i].headers == info->dlpi_phdr) {
			known_module[i].round = this_round;
			return false;
		}
	if (known_module_count == known_module_capacity) {
		size_t capacity = known_module_capacity ? 2 * known_module_capacity : 32;
		struct known_module *grown = realloc(known_module, capacity * sizeof *known_module);
		if (!grown)
			return false;
		known_module = grown;
		known_module_capacity = capacity;
	}
	known_module[known_module_count++] = (struct known_module){info->dlpi_addr, info->dlpi_phdr, this_round, false};
	return true;
}

static void forget_copy(uintptr_t base)
{
	for (struct copy **at = &copies; *at;) {
		struct copy *c = *at;
		if (c->elf.base != base) {
			at = &c->next;
			continue;
		}
		sigset_t signals;
		weft__hook_block_signals(&signals);
		pthread_mutex_lock(&lock);
		*at = c->next;
		pthread_mutex_unlock(&lock);
		weft__hook_restore_signals(&signals);
		if (c->accepted)
			*c->adapter->modules[c->module.set] = NULL;
		weft__slots_free(&c->slots);
		free(c->entries);
		free(c);
	}
}

struct module_scan {
	bool fresh;
	char program[4096];
};

/* Returns whether the module links the recorder. */
static bool needs_recorder(const struct weft__module *m)
{
	for (size_t i = 0; i < m->header_count; i++) {
		if (m->headers[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *d = (const void *)(m->base + m->headers[i].p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_NEEDED && d->d_un.d_val < m->names_bytes &&
			    !strncmp(m->names + d->d_un.d_val, "libweft-record.so", 17))
				return true;
	}
	return false;
}

/* Returns whether the path is the kernel's page (no file), libc, the loader or this library, none of which contains a
 * runtime. */
static bool has_no_runtime(const char *path)
{
	static const char *const names[] = {
	    "/libc.so", "/ld-linux", "/libweft-hook.so", "/libweft-python.so", "/libweft-record.so"};
	const char *file = strrchr(path, '/');
	if (!file)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return true;
	return false;
}

static int scan_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct module_scan *module_scan = ctx;
	struct weft__module m;
	const char *path = info->dlpi_name;
	if (!remember_module(info))
		return 0;
	if (!*path) {
		ssize_t n = readlink("/proc/self/exe", module_scan->program, sizeof module_scan->program - 1);
		module_scan->program[n < 0 ? 0 : n] = 0;
		path = module_scan->program;
	}
	if (strstr(path, "/libweft-record.so"))
		weft__module_read(&weft__hook_recorder_module, info, path);
	else if (strstr(path, "/libweft-hook.so"))
		weft__module_read(&weft__hook_own_module, info, path);
	else if (strstr(path, "/libc.so."))
		weft__module_read(&weft__hook_libc_module, info, path);
	if (has_no_runtime(path) || !weft__module_read(&m, info, path))
		return 0;
	weft__hook_is_instrumented |= needs_recorder(&m);
	find_copies(&m, module_scan->fresh);
	return 0;
}

static int redirect_known(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct weft__module m;
	for (size_t i = 0; i < known_module_count; i++) {
		struct known_module *known = &known_module[i];
		if (known->base != info->dlpi_addr || known->headers != info->dlpi_phdr || known->is_redirected)
			continue;
		known->is_redirected = true;
		if (weft__module_read(&m, info, info->dlpi_name) && !strstr(info->dlpi_name, "/ld-linux"))
			weft__hook_redirect_libc(&m);
	}
	return 0;
}

/* Redirects calls of libc in modules of earlier searches; the loader sets the pointers of a new module only after the search. */
static void redirect_libc(void)
{
	if (weft__hook_is_attached)
		dl_iterate_phdr(redirect_known, NULL);
}

static void scan_modules(bool fresh)
{
	struct module_scan state = {.fresh = fresh};
	this_round++;
	weft__hook_redirect_pointers();
	redirect_libc();
	dl_iterate_phdr(scan_module, &state);
	for (size_t i = 0; i < known_module_count;) {
		if (known_module[i].round == this_round) {
			i++;
			continue;
		}
		forget_copy(known_module[i].base);
		for (struct copy *c = copies; c; c = c->next)
			c->redirected_modules = 0;
		known_module[i] = known_module[--known_module_count];
	}
}

static void on_debug_state(void)
{
	int saved = errno;
	if (debug->r_state == RT_CONSISTENT)
		scan_modules(true);
	errno = saved;
	debug_original();
}

static int find_debug(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct weft__module *loader = ctx;
	if (!info->dlpi_name[0])
		for (size_t i = 0; i < info->dlpi_phnum; i++)
			if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
				for (const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
				     d->d_tag != DT_NULL; d++)
					if (d->d_tag == DT_DEBUG)
						debug = (struct r_debug *)d->d_un.d_ptr;
	struct weft__module m;
	if (debug && weft__module_read(&m, info, info->dlpi_name) && debug->r_brk >= m.text_begin && debug->r_brk < m.text_end)
		*loader = m;
	return 0;
}

static void hook_loader(void)
{
	struct weft__module loader = {0};
	dl_iterate_phdr(find_debug, &loader);
	if (!loader.text_end)
		return;
	const ElfW(Sym) *s = weft__module_exports(&loader, "_dl_debug_state");
	size_t bytes = s && loader.base + s->st_value == debug->r_brk ? s->st_size : 0;
	struct weft__entry entry = {(void *)debug->r_brk, bytes, (void *)on_debug_state, (void **)&debug_original, NULL};
	struct weft__slots slots; /* memory of the loader's slot, never freed because the loader stays mapped */
	weft__entries_patch(&entry, 1, loader.text_begin, loader.text_end, &slots);
}

const char *weft__hook_report(void)
{
	return report_text;
}

/* Appends to the report that this library was loaded late. */
static void report_attachment(void)
{
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	const size_t length = strlen(report_text);
	const char *left_out = weft__hook_get_left_out();
	snprintf(report_text + length, sizeof report_text - length,
	    "%sattached while the program ran, without %s%sprograms that it starts", length ? "; " : "", left_out,
	    *left_out ? " and " : "");
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
}

void weft__hook_lock_around_fork(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_BEFORE_FORK)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}

/* /proc/self/task has one link for each thread, and two links of its own. */
static bool is_single_threaded(void)
{
	struct stat tasks;
	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

bool weft__hook_was_single_threaded(void)
{
	return was_single_threaded;
}

void weft__hook_load(void)
{
	was_single_threaded = weft__hook_is_listing() || is_single_threaded();
	scan_modules(false);
	weft__hook_redirect_pointers();
	redirect_libc();
	if (debug)
		return;
	hook_loader();
	if (weft__hook_is_listing())
		report_attachment();
}
