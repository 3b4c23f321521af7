/* hook.h: tables of adapters, which record programs that do not know weft (private to adapters/).
 *
 * LD_PRELOAD loads libweft-hook.so before a program.  A runtime may be a library of its own, or may be linked into the program
 * or a plugin.  When the loader maps a module that contains a runtime, this library patches the functions of that runtime's
 * adapter.  Every call of a patched function then runs the adapter's wrapper, which calls the original function by a pointer.
 *
 * An adapter is one table of type struct weft_hook_adapter, listed in adapters.c.  A process may contain several copies of a
 * runtime.  Each copy gets its own set of wrappers, because a wrapper must know its copy.  The adapter compiles its wrappers
 * `sets` times.  If no set is free, a copy is not recorded, and the trace says so.
 *
 * A wrapper that may start something calls weft_hook_begin() (session.h) first; if that returns false, the wrapper only calls
 * the original function.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_HOOK_H
#define WEFT_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/record.h>

struct weft_hook_sleep; /* adapters/base/thread_sleep.h */

enum { WEFT__HOOK_MAX_FDS = 4096 };

/* Marks a variable that the files of this library share: code accesses hidden symbols without the global offset table (GOT). */
#define WEFT_HOOK_SHARED __attribute__((visibility("hidden")))

/* A function of a runtime, for one set of wrappers.  The last entry of a list has NULL as `symbol`.
 *
 * If `wrapper` is NULL, the adapter calls the function and does not wrap it.  If `original` is NULL too, the function only has
 * to exist: a copy without it is not supported. */
struct weft_hook_function {
	const char *symbol;
	void *wrapper;
	/* Pointer to the original function, set before any wrapper can run; NULL while the copy has no such function. */
	void **original;
};

/* Entries of a list of functions: wrapped, only called, or only required to exist. */
#define WEFT_HOOK_TAKEN(NAME, WRAPPER, ORIGINAL)                                                                                 \
	{                                                                                                                        \
#NAME, (void *)(WRAPPER), (void **)(void *)&(ORIGINAL)                                                           \
	}
#define WEFT_HOOK_CALLED(NAME, ORIGINAL)                                                                                         \
	{                                                                                                                        \
#NAME, NULL, (void **)(void *)&(ORIGINAL)                                                                        \
	}
#define WEFT_HOOK_REQUIRED(NAME)                                                                                                 \
	{                                                                                                                        \
#NAME, NULL, NULL                                                                                                \
	}

/* A mapped module that contains a copy of a runtime.  The struct is valid while the module is loaded. */
struct weft_hook_module {
	const char *path; /* path of the module's file, also for the program itself */
	uintptr_t base;   /* difference between addresses in memory and symbol values of the file */
	/* Range of the runtime's own code: a call that returns into this range comes from the runtime.  If the runtime is a
	 * library of its own, the range is all text of the library.  If the runtime is linked into another module, the range is
	 * the text from the runtime's first function to the end of its last. */
	uintptr_t own_begin, own_end;
	unsigned set;   /* index of the set of wrappers that wraps the module's functions */
	bool is_listed; /* whether `weft info` lists the module as a runtime; atomic */
};

/* Returns the address of a symbol that the module itself defines (exported, or in .symtab); NULL: none. */
void *weft_hook_symbol(const struct weft_hook_module *module, const char *name);

/* Returns the largest number that follows the prefix in the names of the module's symbols and versions; 0: none.  Reads no file.
 */
unsigned weft_hook_newest_name(const struct weft_hook_module *module, const char *prefix);

/* Adds a text to what `weft info` shows of the recorded runtimes.  Takes a lock that is never held for long. */
void weft__hook_add_to_report(const char *text);

/* Lists the copy as a runtime at its first call, for adapters with is_listed_when_called.  Later calls cost a load and a
 * branch. */
void weft__hook_list_copy(const struct weft_hook_module *module);
static inline void weft_hook_list_copy(const struct weft_hook_module *module)
{
	if (__builtin_expect(!__atomic_load_n(&module->is_listed, __ATOMIC_RELAXED), 0))
		weft__hook_list_copy(module);
}

/* Returns whether the module's runtime called a wrapper; return_address is the wrapper's __builtin_return_address(0). */
static inline bool weft_hook_is_own(const struct weft_hook_module *module, const void *return_address)
{
	return (uintptr_t)return_address - module->own_begin < module->own_end - module->own_begin;
}

enum weft_hook_fork { WEFT_HOOK_BEFORE_FORK, WEFT_HOOK_IN_PARENT, WEFT_HOOK_IN_CHILD };

struct weft_hook_adapter {
	const char *name;    /* name of the runtime in traces and messages: "libuv" */
	const char *library; /* prefix of the file name of its library: "libuv.so"; "/": none of its code is its own */
	const char *prefix;  /* prefix of its functions: "uv_" */
	const char *mark;    /* function that every copy of the runtime defines: "uv_run" */
	/* The library has users that call no function of the adapter.  A copy is a runtime only once one is called. */
	bool is_listed_when_called;
	/* The runtime also serves other programs, so a copy that is not accepted is not reported. */
	bool is_silent_when_refused;
	/* Promises of the runtime that are recorded only if this library is loaded when the program starts; NULL: none. */
	const char *needs_start;
	unsigned sets;
	const struct weft_hook_function *const *functions; /* one list of functions for each set of wrappers */
	/* Pointers to the modules: for each set the module whose functions the set wraps, else NULL.  The pointer of a set is
	 * set before any wrapper of the set runs. */
	const struct weft_hook_module **const *modules;

	/* Returns whether the adapter supports this copy of the runtime.  The function writes the copy's version ("1.44.2"), or
	 * a description of an unsupported copy.  The module may not be relocated yet, so the function may call only functions
	 * that need nothing but their own code. */
	bool (*accepts)(const struct weft_hook_module *module, char *version, size_t size);
	/* Names of functions whose calls inside of the runtime are not recorded; the last entry is NULL. The pointer may be
	 * NULL.  These functions are wrapped by changing the pointers of the modules that call them, so the runtime's own calls
	 * cost nothing. */
	const char *const *from_outside;
	/* Forgets everything of an earlier recording, before another recording starts; may be NULL.  Nothing records
	 * meanwhile. */
	void (*forget)(void);
	/* Takes and releases the adapter's locks around fork(); may be NULL.  In the child of a fork, the function also forgets
	 * all promises, because the child's trace starts with its next call. */
	void (*fork)(enum weft_hook_fork when);

	/* Returns whether a libc call that may sleep is the wait of a loop of this runtime (base/thread_sleep.h); may be NULL.
	 * The function may also restore the state of callbacks that a longjmp() has skipped. */
	bool (*sleeps)(struct weft_hook_sleep *sleep);
	/* Returns the request that a pool thread of the runtime works on when the thread opens `path`; 0: none.  If `path` is
	 * NULL, the thread looks up a name whose addresses go to *result.  May be NULL. */
	weft_id (*pool_call)(const void *caller, const char *path, const void *result);
	/* Runs when a thread with recorded promises ends; may be NULL. */
	void (*thread_ends)(void);
};

/* Initialises the fields `sets`, `functions` and `modules` of an adapter.  FUNCTIONS is a list in parentheses, with one list of
 * functions for each set.  MODULES is a list in parentheses, with the pointer to each set's module. */
#define WEFT_HOOK_SETS(FUNCTIONS, MODULES)                                                                                       \
	.sets = sizeof((const struct weft_hook_function *const[]){WEFT__HOOK_LIST FUNCTIONS}) / sizeof(void *),                  \
	.functions = (const struct weft_hook_function *const[]){WEFT__HOOK_LIST FUNCTIONS},                                      \
	.modules = (const struct weft_hook_module **const[])                                                                     \
	{                                                                                                                        \
		WEFT__HOOK_LIST MODULES                                                                                          \
	}
#define WEFT__HOOK_LIST(...) __VA_ARGS__

#endif
