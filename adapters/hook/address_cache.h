/* address_cache.h: call sites and names of addresses in the program (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ADDRESS_CACHE_H
#define WEFT_HOOK_ADDRESS_CACHE_H

#include <weft/record.h>

#include "adapters/hook/hook.h"

enum { WEFT__HOOK_MAX_SITES = 1024 };

extern struct weft_record_place weft__hook_sites[WEFT__HOOK_MAX_SITES];

struct weft_record_place *weft__hook_find_site(const void *caller);

/* Returns the index of the hash table at which a search for the address starts. */
static inline unsigned weft__hook_site_bucket(const void *address)
{
	return (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 40) % WEFT__HOOK_MAX_SITES;
}

/* Returns the call site of a return address, for weft_create_at().  If the return address is in this library, the call site is
 * the running callback.  Returns NULL if the table is full or the site is unknown. */
static inline struct weft_record_place *weft_hook_site(const void *caller)
{
	struct weft_record_place *first = &weft__hook_sites[weft__hook_site_bucket(caller)];
	return caller && __atomic_load_n(&first->address, __ATOMIC_ACQUIRE) == caller ? first : weft__hook_find_site(caller);
}

/* A call of a language's code that waits for another thread. */
struct weft_hook_language_call {
	struct weft_record_site *site; /* line of the program */
	const char *function;          /* function of a library that the program calls there, such as "Queue.get"; NULL: none */
};

/* Functions by which the adapter of a language's runtime says what code of the program works.  All pointers are NULL if the
 * process contains no runtime of a language.  The functions keep errno. */
struct weft_hook_language {
	/* Returns the line of the program for which the calling thread works; NULL: unknown.  It stays valid.  may_be_fast:
	 * whether the runtime has calls of this kind from optimized code that forbid the use of its heap. */
	struct weft_record_site *(*find_line)(bool may_be_fast);
	/* Returns whether the calling thread's stack contains code in the language. */
	bool (*runs_code)(void);
	/* Returns whether the return address is in the module of the language's runtime. */
	bool (*is_runtime)(const void *caller);
	/* Returns what a libuv handle with that callback is to the program; NULL if the callback runs no code of the program. */
	const char *(*name_callback)(const char *handle, const void *function);
	/* Returns the program's call for which the language's runtime asks for a lock or starts a thread; NULL: unknown.  The
	 * result stays valid. *input is the promise for whose end the call waits; 0: unknown. */
	const struct weft_hook_language_call *(*find_call)(weft_id *input);
	/* Copies the name that the running code gives to the thread that it starts now; "" if it gives none. */
	void (*copy_thread_name)(char *name, size_t size);
};
extern struct weft_hook_language weft__hook_language WEFT_HOOK_SHARED;

static inline struct weft_record_site *weft_hook_find_line(bool may_be_fast)
{
	return __builtin_expect(weft__hook_language.find_line != NULL, 0) ? weft__hook_language.find_line(may_be_fast) : NULL;
}

static inline const struct weft_hook_language_call *weft_hook_find_call(weft_id *input)
{
	*input = 0;
	return __builtin_expect(weft__hook_language.find_call != NULL, 0) ? weft__hook_language.find_call(input) : NULL;
}

/* Creates a promise at the line of a language's code, if that calls, or else at the call site.  *place: the call site; NULL: the
 * promise has a line, or its place is unknown. */
static inline weft_id weft_hook_create(weft_id by, enum weft_kind kind, const void *caller, struct weft_record_place **place)
{
	weft_id input;
	const struct weft_hook_language_call *call = weft_hook_find_call(&input);
	*place = call ? NULL : weft_hook_site(caller);
	return call ? weft_create(by, kind, call->site) : *place ? weft_create_at(by, kind, *place) : weft_create(by, kind, NULL);
}

/* Returns whether the runtime of a language calls for itself. */
static inline bool weft_hook_is_internal(const void *caller)
{
	return __builtin_expect(weft__hook_language.is_runtime != NULL, 0) && weft__hook_language.is_runtime(caller) &&
	       !weft__hook_language.runs_code();
}

static inline const char *weft_hook_name_callback(const char *handle, const void *function)
{
	return __builtin_expect(weft__hook_language.name_callback != NULL, 0)
		   ? weft__hook_language.name_callback(handle, function)
		   : NULL;
}

/* Returns the name of an exported function or variable; NULL if it has no name or a mangled C++ name.  The first call for an
 * address takes the loader's lock. */
const char *weft_hook_name(const void *address);

#endif
