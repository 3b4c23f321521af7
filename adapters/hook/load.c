/* load.c: finds copies of runtimes in what the loader maps, and takes their functions.
 *
 * The loader tells debuggers when it has mapped something, by calling the function r_debug.r_brk: after mapping, before
 * relocating and before any constructor.  That function is taken at its entry, too.  dlopen() is not wrapped: the loader
 * searches by the RUNPATH of who called it, which would be this library.
 *
 * Where no entry can be taken, pointers by which other modules call the function are changed instead; calls within the module,
 * and by dlsym(), are not seen then.  SPDX-License-Identifier: ISC */
#include "adapters/hook/load.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/hook/entry.h"
#include "adapters/hook/module.h"
#include "adapters/hook/thread.h"

enum { WHY_BYTES = 192, PASSES = 16 };

/* One copy of a runtime. */
struct copy {
	struct weft_hook_module module;
	struct weft__module elf;
	const struct weft_hook_adapter *adapter;
	char version[32];
	bool accepted, has_outside;
	bool is_from_start; /* the loader searches it before all that came later */
	bool is_hidden;     /* the loader binds every call to an earlier copy */
	size_t wanted, by_entry, by_symbol;
	size_t settled;      /* so many modules, in the loader's order, call what is taken from outside */
	char why[WHY_BYTES]; /* the first function that was not taken at its entry, and why; or why the copy is left alone */
	struct weft__slots slots;
	struct weft__entry *entries;      /* one for each function of the set that the copy has */
	const struct weft__symtab *table; /* while it is being taken: where its functions were found, if they are not exported */
	struct copy *next;
	char path[];
};

/* A module that was looked at. */
struct known {
	uintptr_t base;
	const void *headers;
	unsigned round;
};

/* Changed in the constructor, and while the loader's lock is taken; reports read it under `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct copy *copies;
static struct known *known;
static size_t known_count, known_room;
static unsigned this_round;
static bool is_alone; /* no other OS thread runs what is there already */
static bool has_symbols_only;
static const char outside[] = "from outside"; /* of an entry: it is not to be taken otherwise */
static bool instrumented;
static struct weft__module recorder, itself;
static char reported[1024];

static struct r_debug *debug;
static void (*debug_original)(void);

/* ---- Functions of a copy ---- */

struct gathering {
	struct copy *copy;
	uintptr_t begin, end;
};

static bool is_outer(const struct copy *c, const char *symbol)
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
	/* A table of symbols may name a function twice. */
	for (size_t i = 0; i < c->wanted; i++)
		is_text &= c->entries[i].wrapper != f->wrapper;
	if (is_text)
		c->entries[c->wanted++] = (struct weft__entry){
		    (void *)at, s->st_size, f->wrapper, f->original, is_outer(c, f->symbol) ? outside : NULL};
}

static bool is_from_outside(const struct weft__entry *e)
{
	return e->why == outside;
}

/* Those come last.  Returns how many others there are. */
static size_t sort_entries(struct copy *c)
{
	size_t count = 0;
	for (size_t i = 0; i < c->wanted; i++) {
		struct weft__entry e = c->entries[i];
		if (is_from_outside(&e))
			continue;
		c->entries[i] = c->entries[count];
		c->entries[count++] = e;
	}
	return count;
}

static void gather_function(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct copy *c = ctx;
	for (const struct weft_hook_function *f = c->adapter->functions[c->module.set]; f->symbol; f++)
		if (f->wrapper && !strcmp(f->symbol, name))
			add_function(c, f, s);
}

/* Which functions of its set the copy has. */
static void gather(struct copy *c, const struct weft__symtab *table)
{
	const struct weft_hook_function *functions = c->adapter->functions[c->module.set];
	size_t count = 0;
	while (functions[count].symbol)
		count++;
	c->entries = calloc(count + 1, sizeof *c->entries);
	if (!c->entries)
		return;
	if (table) {
		weft__symtab_each(table, c->adapter->prefix, gather_function, c);
		return;
	}
	for (const struct weft_hook_function *f = functions; f->symbol; f++) {
		const ElfW(Sym) *s = f->wrapper ? weft__module_exports(&c->elf, f->symbol) : NULL;
		if (s)
			add_function(c, f, s);
	}
}

static void widen(struct gathering *g, const ElfW(Sym) * s)
{
	uintptr_t begin = g->copy->elf.base + s->st_value, end = begin + s->st_size;
	g->begin = g->begin && g->begin < begin ? g->begin : begin;
	g->end = g->end > end ? g->end : end;
}

static void widen_by_table(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct gathering *g = ctx;
	for (const struct weft_hook_function *f = g->copy->adapter->functions[0]; f->symbol; f++)
		if (f->wrapper && !strcmp(f->symbol, name))
			widen(g, s);
}

/* A function that follows closely, or is followed so.  Others are elsewhere: the linker
 * collects what hardly ever runs, and what runs at the end. */
static void widen_by_neighbour(void *ctx, const char *name, const ElfW(Sym) * s)
{
	enum { CLOSE = 64 };
	struct gathering *g = ctx;
	uintptr_t begin = g->copy->elf.base + s->st_value, end = begin + s->st_size;
	if (begin <= g->end + CLOSE && end + CLOSE >= g->begin)
		widen(g, s);
}

/* Where the runtime's own code is. */
static void find_own(struct copy *c, const struct weft__symtab *table)
{
	const char *slash = strrchr(c->path, '/'), *file = slash ? slash + 1 : c->path;
	struct gathering all = {.copy = c};
	if (!strncmp(file, c->adapter->library, strlen(c->adapter->library))) {
		all.begin = c->elf.text_begin;
		all.end = c->elf.text_end;
	} else if (table) {
		uintptr_t size = 0;
		weft__symtab_each(table, c->adapter->prefix, widen_by_table, &all);
		for (int i = 0; i < PASSES && size != all.end - all.begin; i++) {
			size = all.end - all.begin;
			weft__symtab_each(table, c->adapter->prefix, widen_by_neighbour, &all);
		}
	} else {
		for (const struct weft_hook_function *f = c->adapter->functions[0]; f->symbol; f++) {
			const ElfW(Sym) *s = f->wrapper ? weft__module_exports(&c->elf, f->symbol) : NULL;
			if (s)
				widen(&all, s);
		}
	}
	c->module.own_begin = all.begin;
	c->module.own_end = all.end;
}

struct finding {
	const char *name;
	uintptr_t value;
};

static void find_exact(void *ctx, const char *name, const ElfW(Sym) * s)
{
	struct finding *f = ctx;
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
	struct finding found = {.name = name};
	if (c->table) {
		weft__symtab_each(c->table, name, find_exact, &found);
	} else if (weft__symtab_open(&table, &c->elf)) {
		weft__symtab_each(&table, name, find_exact, &found);
		weft__symtab_close(&table);
	}
	return found.value ? (void *)(c->elf.base + found.value) : NULL;
}

/* ---- By symbol ---- */

struct settling {
	struct copy *copy;
	size_t index; /* of the module that is looked at */
};

struct redirection {
	const struct weft__module *from;
	const struct weft__entry *entry;
	bool only_copy; /* a pointer that is not bound yet will be bound to it */
	bool done;
};

static void redirect(void *ctx, void **pointer)
{
	struct redirection *r = ctx;
	uintptr_t now = (uintptr_t)*pointer;
	bool unbound = now >= r->from->text_begin && now < r->from->text_end;
	if (now != (uintptr_t)r->entry->function && !(unbound && r->only_copy))
		return;
	if (weft__poke(pointer, &r->entry->wrapper, sizeof r->entry->wrapper)) {
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

/* Of what is taken from outside each module is looked at once: there are many where windows are. */
static int redirect_in(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct settling *settling = ctx;
	struct copy *c = settling->copy;
	struct weft__module from;
	const bool is_seen = settling->index++ < c->settled;
	if ((is_seen && c->by_symbol == 0) || !weft__module_read(&from, info, info->dlpi_name))
		return 0;
	size_t of_runtime = 0;
	bool is_runtime = false;
	for (const struct copy *other = copies; other; other = other->next) {
		of_runtime += other->adapter == c->adapter;
		is_runtime |= other->elf.base == from.base;
	}
	for (size_t i = 0; i < c->wanted; i++) {
		if (!c->entries[i].why || (is_from_outside(&c->entries[i]) && (is_runtime || is_seen)))
			continue;
		const struct weft_hook_function *f = c->adapter->functions[c->module.set];
		while (f->symbol && f->wrapper != c->entries[i].wrapper)
			f++;
		struct redirection r = {.from = &from, .entry = &c->entries[i], .only_copy = of_runtime == 1};
		weft__module_pointers(&from, f->symbol, redirect, &r);
	}
	return 0;
}

void weft__hook_settle(void)
{
	if (!__atomic_load_n(&has_symbols_only, __ATOMIC_ACQUIRE))
		return;
	for (struct copy *c = copies; c; c = c->next) {
		struct settling settling = {.copy = c};
		if (c->accepted && (c->by_symbol || c->has_outside))
			dl_iterate_phdr(redirect_in, &settling);
		c->settled = settling.index;
	}
}

/* ---- Taking ---- */

static bool find_set(struct copy *c)
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

static const char *name_of(const struct copy *c, const struct weft__entry *e)
{
	const struct weft_hook_function *f = c->adapter->functions[c->module.set];
	while (f->wrapper != e->wrapper)
		f++;
	return f->symbol;
}

/* A function that the adapter needs and the copy lacks; NULL: none. */
static const char *lacks(const struct copy *c)
{
	const struct weft_hook_function *f = c->adapter->functions[0];
	while (f->symbol && (f->wrapper || weft_hook_symbol(&c->module, f->symbol)))
		f++;
	return f->symbol;
}

/* What its set only calls. */
static void find_called(const struct copy *c)
{
	for (const struct weft_hook_function *f = c->adapter->functions[c->module.set]; f->symbol; f++)
		if (!f->wrapper && f->original)
			*f->original = weft_hook_symbol(&c->module, f->symbol);
}

/* As libevent_core is that came with libevent_pthreads, in a program of libevent. */
static bool is_hidden(const struct copy *c, const struct weft__symtab *table)
{
	const struct copy *other = table ? NULL : copies;
	while (other && !(other->adapter == c->adapter && other->accepted && other->is_from_start &&
			    weft__module_exports(&other->elf, c->adapter->mark)))
		other = other->next;
	return other;
}

/* `fresh`: nobody can have called it yet. */
static void take(struct copy *c, const struct weft__symtab *table, bool fresh)
{
	bool is_known = c->adapter->accepts(&c->module, c->version, sizeof c->version);
	const char *lacking = is_known ? lacks(c) : NULL;
	if (!is_known)
		snprintf(c->why, sizeof c->why, "this version is not known");
	else if (lacking)
		snprintf(c->why, sizeof c->why, "it has no %s", lacking);
	else if (!find_set(c) && !(c->is_hidden = is_hidden(c, table)))
		snprintf(c->why, sizeof c->why, "weft cannot tell more copies of it apart");
	else
		c->accepted = !c->is_hidden;
	if (!c->accepted)
		return;
	find_own(c, table);
	find_called(c);
	*c->adapter->modules[c->module.set] = &c->module;
	gather(c, table);
	if (!c->entries)
		return;
	const char *why = c->elf.rewrites_text ? "the loader rewrites its text"
			  : fresh || is_alone  ? NULL
					       : "other OS threads run already";
	const size_t at_entry = sort_entries(c);
	if (!why && at_entry > 0)
		c->by_entry = weft__entries_take(c->entries, at_entry, c->elf.text_begin, c->elf.text_end, &c->slots);
	for (size_t i = 0; i < c->wanted; i++) {
		struct weft__entry *e = &c->entries[i];
		if (is_from_outside(e)) {
			*e->original = e->function;
			c->by_entry += !why && !table;
			c->has_outside |= !table;
			__atomic_store_n(&has_symbols_only, true, __ATOMIC_RELEASE);
			continue;
		}
		e->why = why ? why : e->why;
		if (!e->why || !e->original)
			continue;
		if (!c->why[0])
			snprintf(c->why, sizeof c->why, "%s: %s", name_of(c, e), e->why);
		*e->original = e->function;
		/* What is static has no pointers that could be changed. */
		if (!table) {
			c->by_symbol++;
			__atomic_store_n(&has_symbols_only, true, __ATOMIC_RELEASE);
		}
	}
}

/* A line of what was taken, or why nothing was, of each copy that came. */
static void report(const struct copy *c)
{
	size_t length = strlen(reported), room = sizeof reported - length;
	const char *separator = length ? "; " : "", *why = c->why[0] ? c->why : NULL;
	if (c->accepted && c->wanted == 0) /* a library whose functions are only called */
		return;
	if (!c->accepted)
		snprintf(reported + length, room, "%s%s %s: left alone: %s", separator, c->adapter->name, c->version, c->why);
	else
		snprintf(reported + length, room, "%s%s %s: %zu of %zu calls%s%s%s", separator, c->adapter->name, c->version,
		    c->by_entry, c->wanted, why ? " (" : "", why ? why : "", why ? "; by symbol)" : "");
}

bool weft__hook_has_runtime(void)
{
	sigset_t signals;
	weft__hook_block_signals(&signals);
	pthread_mutex_lock(&lock);
	const struct copy *c = copies;
	while (c && !(c->accepted && c->wanted))
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
	take(c, table, fresh);
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
	report(c);
	pthread_mutex_unlock(&lock);
	weft__hook_restore_signals(&signals);
	char word[sizeof reported];
	snprintf(word, sizeof word, "%s %s in %s was left alone: %s", adapter->name, c->version, c->path, c->why);
	if (!c->accepted)
		weft__hook_leave_word(word);
}

static void examine(const struct weft__module *m, bool fresh)
{
	struct weft__symtab table;
	int opened = -1; /* not tried */
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

static bool remember(const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < known_count; i++)
		if (known[i].base == info->dlpi_addr && known[i].headers == info->dlpi_phdr) {
			known[i].round = this_round;
			return false;
		}
	if (known_count == known_room) {
		size_t room = known_room ? 2 * known_room : 32;
		struct known *more = realloc(known, room * sizeof *known);
		if (!more)
			return false;
		known = more;
		known_room = room;
	}
	known[known_count++] = (struct known){info->dlpi_addr, info->dlpi_phdr, this_round};
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

struct look {
	bool fresh;
	char program[4096];
};

/* Whether the module needs the recorder by itself. */
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

/* The kernel's page has no file; libc, the loader and this library are known. */
static bool has_no_runtime(const char *path)
{
	static const char *const names[] = {"/libc.so", "/ld-linux", "/libweft-hook.so", "/libweft-record.so"};
	const char *file = strrchr(path, '/');
	if (!file)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(file, names[i], strlen(names[i])))
			return true;
	return false;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct look *look = ctx;
	struct weft__module m;
	const char *path = info->dlpi_name;
	if (!remember(info))
		return 0;
	if (!*path) {
		ssize_t n = readlink("/proc/self/exe", look->program, sizeof look->program - 1);
		look->program[n < 0 ? 0 : n] = 0;
		path = look->program;
	}
	if (strstr(path, "/libweft-record.so"))
		weft__module_read(&recorder, info, path);
	else if (strstr(path, "/libweft-hook.so"))
		weft__module_read(&itself, info, path);
	if (has_no_runtime(path) || !weft__module_read(&m, info, path))
		return 0;
	instrumented |= needs_recorder(&m);
	examine(&m, look->fresh);
	return 0;
}

static void look(bool fresh)
{
	struct look state = {.fresh = fresh};
	this_round++;
	weft__hook_settle();
	dl_iterate_phdr(look_at, &state);
	for (size_t i = 0; i < known_count;) {
		if (known[i].round == this_round) {
			i++;
			continue;
		}
		forget_copy(known[i].base);
		for (struct copy *c = copies; c; c = c->next)
			c->settled = 0;
		known[i] = known[--known_count];
	}
}

static void on_debug_state(void)
{
	int saved = errno;
	if (debug->r_state == RT_CONSISTENT)
		look(true);
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

static void take_loader(void)
{
	struct weft__module loader = {0};
	dl_iterate_phdr(find_debug, &loader);
	if (!loader.text_end)
		return;
	const ElfW(Sym) *s = weft__module_exports(&loader, "_dl_debug_state");
	size_t bytes = s && loader.base + s->st_value == debug->r_brk ? s->st_size : 0;
	struct weft__entry entry = {(void *)debug->r_brk, bytes, (void *)on_debug_state, (void **)&debug_original, NULL};
	struct weft__slots slots; /* stay, as the loader does */
	weft__entries_take(&entry, 1, loader.text_begin, loader.text_end, &slots);
}

const char *weft__hook_report(void)
{
	return reported;
}

bool weft__hook_is_recorder(const void *return_address)
{
	uintptr_t at = (uintptr_t)return_address;
	return at - recorder.text_begin < recorder.text_end - recorder.text_begin ||
	       at - itself.text_begin < itself.text_end - itself.text_begin;
}

bool weft__hook_is_runtime(const void *return_address)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		for (unsigned set = 0; set < (*a)->sets; set++)
			if (*(*a)->modules[set] && weft_hook_is_own(*(*a)->modules[set], return_address))
				return true;
	return false;
}

bool weft__hook_is_instrumented(void)
{
	return instrumented;
}

void weft__hook_around_fork(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_BEFORE_FORK)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}

/* Its folder has an entry for each OS thread, besides its own two. */
static bool runs_alone(void)
{
	struct stat tasks;
	return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

__attribute__((constructor)) static void load(void)
{
	int saved = errno;
	if (weft__hook_is_wanted()) {
		is_alone = runs_alone();
		weft__hook_threads_init();
		look(false);
		weft__hook_settle();
		take_loader();
		if (instrumented)
			weft_hook_begin();
	}
	errno = saved;
}
