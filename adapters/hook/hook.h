/* hook.h: the tables of adapters, which record programs that do not know weft (private to adapters/).
 *
 * LD_PRELOAD loads libweft-hook.so before a program.  A runtime may be in a library of its own, or linked into the program or a
 * plugin.  When the loader maps a module that contains a runtime, this library patches the functions of that runtime's adapter.
 * Every call of such a function then runs the adapter's wrapper, which calls the original by a pointer.
 *
 * An adapter is one table, listed in adapters.c.  A process may contain several copies of a runtime.  Each copy gets its own set
 * of wrappers, since each wrapper must know its copy: the adapter compiles its wrappers `sets` times.  A copy without a free set
 * is not recorded, and the trace says so.
 *
 * A wrapper that may start something first calls weft_hook_begin() (session.h), and only calls the original if that returns
 * false.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_HOOK_H
#define WEFT_HOOK_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/record.h>

struct weft_hook_sleep; /* adapters/base/thread_sleep.h */

enum { WEFT__HOOK_MAX_FDS = 4096 };

/* Marks a variable that files of this library share: hidden symbols are accessed without the GOT. */
#define WEFT_HOOK_SHARED __attribute__((visibility("hidden")))

/* A function of one set.  The last entry of a list has symbol NULL.
 *
 * If `wrapper` is NULL, the adapter only calls the function.  If `original` is NULL too, a copy without the function is not
 * supported. */
struct weft_hook_function {
	const char *symbol;
	void *wrapper;
	void **original; /* set before any wrapper can run; NULL while the copy has no such function */
};

/* Entries of a list of functions: wrapped, only called, or required to be there. */
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

/* A mapped module that contains a copy of a runtime.  Valid while the module is loaded. */
struct weft_hook_module {
	const char *path; /* the file's path, also for the program itself */
	uintptr_t base;   /* difference between addresses and symbol values */
	/* The runtime's own code: a call that returns there comes from the runtime.  This is all text of a runtime's library.  If
	 * the runtime is linked into another module, it is the text from its first function to the end of its last. */
	uintptr_t own_begin, own_end;
	unsigned set;   /* index of the set that wraps its functions */
	bool is_listed; /* weft info lists it as a runtime; atomic */
};

/* Returns the address of a symbol that the module itself defines (exported, or in .symtab); NULL if there is none. */
void *weft_hook_symbol(const struct weft_hook_module *module, const char *name);

/* Returns the largest number that follows the prefix in the names of the module's symbols and versions; 0: none.  Reads no file.
 */
unsigned weft_hook_newest_name(const struct weft_hook_module *module, const char *prefix);

/* Lists the copy as a runtime, for adapters with is_listed_when_called.  A load and a branch after the first call. */
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
	unsigned sets;
	const struct weft_hook_function *const *functions; /* one list for each set */
	/* One pointer for each set: the module whose functions the set wraps, else NULL.  It is set before any wrapper runs. */
	const struct weft_hook_module **const *modules;

	/* Returns whether the adapter supports this copy.  Writes its version ("1.44.2"), or a description of an unsupported
	 * copy.  The module may not be relocated yet: call only functions that need nothing but their own code. */
	bool (*accepts)(const struct weft_hook_module *module, char *version, size_t size);
	/* NULL, or names (the last is NULL) of functions whose calls inside the runtime are not recorded.  They are wrapped by
	 * changing the pointers of the modules that call them, so the runtime's own calls cost nothing. */
	const char *const *from_outside;
	/* NULL, or forgets what is known from an earlier recording; another is about to start.  Nothing records meanwhile. */
	void (*forget)(void);
	/* NULL, or called around fork() to take and release the adapter's locks.  In the child it also forgets all promises,
	 * because the child's trace starts with its next call. */
	void (*fork)(enum weft_hook_fork when);

	/* NULL, or returns whether a libc call that may sleep is the wait of a loop of this runtime (base/thread_sleep.h).  It
	 * may also restore state that a longjmp has skipped. */
	bool (*sleeps)(struct weft_hook_sleep *sleep);
	/* NULL, or returns the request that a thread of the runtime's pool works on when it opens `path` (NULL: it looks up a
	 * name, whose addresses go to *result); 0: none. */
	weft_id (*pool_call)(const void *caller, const char *path, const void *result);
	/* NULL, or called when a thread with recorded promises ends. */
	void (*thread_ends)(void);
};

/* Initialises `sets`, `functions` and `modules` of an adapter.  FUNCTIONS is a list in parentheses: one list of functions for
 * each set.  MODULES is a list in parentheses: the pointer to each set's module. */
#define WEFT_HOOK_SETS(FUNCTIONS, MODULES)                                                                                       \
	.sets = sizeof((const struct weft_hook_function *const[]){WEFT__HOOK_LIST FUNCTIONS}) / sizeof(void *),                  \
	.functions = (const struct weft_hook_function *const[]){WEFT__HOOK_LIST FUNCTIONS},                                      \
	.modules = (const struct weft_hook_module **const[])                                                                     \
	{                                                                                                                        \
		WEFT__HOOK_LIST MODULES                                                                                          \
	}
#define WEFT__HOOK_LIST(...) __VA_ARGS__

#endif
