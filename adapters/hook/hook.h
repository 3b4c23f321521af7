/* hook.h: the way into programs that do not know weft (private to adapters/).
 *
 * libweft-hook.so is loaded before a program by LD_PRELOAD.  Where the loader maps a module that has a runtime in it (the library
 * itself, or a program or plugin that the runtime is linked into), the functions of that runtime's adapter are taken: whoever
 * calls them, the wrapper runs instead, and calls what the function did by its original pointer.
 *
 * An adapter is one table, listed in adapters.c.  Several copies of a runtime may be in one process.  Each copy gets a set of
 * wrappers of its own, since each wrapper must know which copy it continues in: the adapter's wrappers are compiled `sets` times.
 * A copy that finds no set free is left alone, and the trace says so.
 *
 * While this process may record, wrappers of functions that a program starts things with ask weft_hook_begin() first, and call
 * the original alone where that says no.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_HOOK_H
#define WEFT_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/record.h>

struct weft_hook_sleep;

/* One function of one set.  A list of them ends with symbol NULL.
 *
 * Where `wrapper` is NULL the adapter only calls the function, or, where `original` is NULL too, knows the runtime by it: a copy
 * without it is left alone. */
struct weft_hook_function {
	const char *symbol;
	void *wrapper;
	void **
	    original; /* set before any wrapper can run; of one that is taken it stays NULL where the copy has no such function */
};

/* A file that the loader mapped and that has a copy of a runtime in it.  Valid as long as it is loaded. */
struct weft_hook_module {
	const char *path; /* of the file; the program's own too */
	uintptr_t base;   /* what is added to its symbols' values */
	/* The runtime's own code: a call that returns there is the runtime's.  In a library of the runtime all of its text; in a
	 * module that the runtime is linked into, from its first function to the end of its last. */
	uintptr_t own_begin, own_end;
	unsigned set; /* which of the adapter's sets takes its functions */
};

/* The address of what the module itself defines under that name (exported, or in its .symtab), NULL: nothing.  Never what another
 * module defines. */
void *weft_hook_symbol(const struct weft_hook_module *module, const char *name);

/* Whether the module itself is what called, told by __builtin_return_address(0) of a wrapper. */
static inline bool weft_hook_is_own(const struct weft_hook_module *module, const void *return_address)
{
	return (uintptr_t)return_address - module->own_begin < module->own_end - module->own_begin;
}

/* The place in the machine code to which a call returns, for weft_create_at(); where that is in this library, the callback that
 * runs.  NULL: too many are known already, or nobody knows. */
static inline struct weft_record_place *weft_hook_place(const void *caller);

/* What an exported function or variable is called, if it has a plain name; NULL: nobody knows.  The first time it asks the
 * loader, whose lock it takes. */
const char *weft_hook_name(const void *address);

/* Whether memory of at most a page can be read, which another OS thread may change at once.  Two system calls at most, of a sort
 * that each program makes: filters of seccomp kill a process for others. */
bool weft_hook_is_readable(const void *memory, size_t size);

enum weft_hook_fork { WEFT_HOOK_BEFORE_FORK, WEFT_HOOK_IN_PARENT, WEFT_HOOK_IN_CHILD };

struct weft_hook_adapter {
	const char *name;    /* of the runtime, as the trace and messages have it: "libuv" */
	const char *library; /* what file names of its own library begin with: "libuv.so" */
	const char *prefix;  /* of all its functions: "uv_" */
	const char *mark;    /* a module that defines this function has a copy in it: "uv_run" */
	unsigned sets;
	const struct weft_hook_function *const *functions; /* [sets] */
	/* [sets]: where it stands whose functions are taken, while they are; NULL otherwise.  It is set before any wrapper can
	 * run. */
	const struct weft_hook_module **const *modules;

	/* Whether the adapter knows this copy; writes its version ("1.44.2"), or where it is left alone what it is.  The module
	 * may not be relocated yet: of its functions only those may be called that need nothing but their own code. */
	bool (*accepts)(const struct weft_hook_module *module, char *version, size_t size);
	/* NULL or, ending with NULL: functions of which only calls from outside of the runtimes are of interest.  They are taken
	 * by the pointers of the modules that call them, and cost a runtime that calls them itself nothing. */
	const char *const *from_outside;
	/* NULL or: another recording is about to begin, by a call of weft_hook_begin(): what is known is of an earlier one, and
	 * is forgotten.  Nothing records meanwhile. */
	void (*forget)(void);
	/* NULL or: around fork().  Take what locks the adapter has, give them back; a child forgets what it knew: its promises
	 * are of another trace, and recording begins anew with its next call. */
	void (*fork)(enum weft_hook_fork when);

	/* NULL or: whether that call of libc, which may sleep, is the wait of a loop of this runtime (sleep.h).  What a longjmp
	 * has left behind may be put right there. */
	bool (*sleeps)(struct weft_hook_sleep *sleep);
	/* NULL or: this OS thread, of which promises were told, ends. */
	void (*thread_ends)(void);
};

/* Whether events are recorded; begins to record if that is wanted and has not been done yet in this process.  One load where
 * recording is on.  Keeps errno.  Not in a signal handler: there weft_is_on(). */
static inline bool weft_hook_begin(void);

/* Tells who had called when promise was created: as many callers as `weft record --stacks=N` asked for, of which the first is the
 * one that returns to `caller`.  Without that option nothing; one load. */
static inline void weft_hook_stack(weft_id promise, const void *caller);

/* Whether this process stands by: recording may begin at any moment, in the middle of a loop's run. */
extern bool weft__hook_stands_by;
extern uint64_t weft__hook_since; /* weft_now() when it began to: nothing that is older than a recording is older than that */

bool weft__hook_begin(void);
void weft__hook_stack(weft_id promise, const void *caller);
extern unsigned weft__hook_stacks;

enum { WEFT__HOOK_PLACES = 1024 };

extern struct weft_record_place weft__hook_places[WEFT__HOOK_PLACES];

struct weft_record_place *weft__hook_place(const void *caller);

/* Where in a table of that many an address is looked for first. */
static inline unsigned weft__hook_first_place(const void *address)
{
	return (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 40) % WEFT__HOOK_PLACES;
}

static inline struct weft_record_place *weft_hook_place(const void *caller)
{
	struct weft_record_place *first = &weft__hook_places[weft__hook_first_place(caller)];
	return caller && __atomic_load_n(&first->address, __ATOMIC_ACQUIRE) == caller ? first : weft__hook_place(caller);
}

static inline bool weft_hook_begin(void)
{
	return weft_is_on() || weft__hook_begin();
}

static inline void weft_hook_stack(weft_id promise, const void *caller)
{
	if (__builtin_expect(weft__hook_stacks, 0))
		weft__hook_stack(promise, caller);
}

#endif
