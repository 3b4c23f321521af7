/* place.c: what is known of an address in the program: asked for once, kept for ever.  SPDX-License-Identifier: ISC */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "adapters/hook/load.h"
#include "adapters/hook/thread.h"

enum { PLACES = WEFT__HOOK_PLACES, TRIED = 32, NAME = 48 };

struct weft_record_place weft__hook_places[PLACES];

/* A place in a table where an address is, or comes to be; -1: it is full there.  Sets *is_new. */
static int place(uintptr_t table[], const void *address, bool *is_new)
{
	uintptr_t wanted = (uintptr_t)address;
	unsigned first = weft__hook_first_place(address);
	*is_new = false;
	for (unsigned i = 0; i < TRIED; i++) {
		unsigned at = (first + i) % PLACES;
		uintptr_t seen = __atomic_load_n(&table[at], __ATOMIC_ACQUIRE);
		if (!seen && __atomic_compare_exchange_n(&table[at], &seen, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			*is_new = true;
			return (int)at;
		}
		if (seen == wanted)
			return (int)at;
	}
	return -1;
}

/* dladdr() answers with the nearest symbol before, whatever lies between: believed only inside the symbol's size. */
static const char *symbol_of(const void *address, Dl_info *info)
{
	const ElfW(Sym) *symbol = NULL;
	if (!dladdr1(address, info, (void **)&symbol, RTLD_DL_SYMENT))
		memset(info, 0, sizeof *info);
	return info->dli_sname && symbol && (uintptr_t)address - (uintptr_t)info->dli_saddr < symbol->st_size ? info->dli_sname
													      : NULL;
}

const char *weft_hook_name(const void *address)
{
	static uintptr_t addresses[PLACES];
	static char names[PLACES][NAME];
	static bool known[PLACES];
	bool is_new;
	int at = address ? place(addresses, address, &is_new) : -1;
	if (at < 0)
		return NULL;
	if (is_new) {
		Dl_info info;
		const char *name = symbol_of(address, &info);
		if (name && strncmp(name, "_Z", 2) != 0)
			strncat(names[at], name, NAME - 1);
		__atomic_store_n(&known[at], true, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&known[at], __ATOMIC_ACQUIRE) && names[at][0] ? names[at] : NULL;
}

struct weft_record_place *weft__hook_place(const void *caller)
{
	static uintptr_t addresses[PLACES];
	bool is_new;
	if (caller &&
	    weft__hook_is_recorder(caller)) { /* the callback jumped there: its begin is the place, as one after a call */
		caller = weft__hook_thread.called;
		return caller ? weft_hook_place((const char *)caller + 1) : NULL;
	}
	int at = caller ? place(addresses, caller, &is_new) : -1;
	if (at < 0)
		return NULL;
	if (is_new)
		__atomic_store_n(&weft__hook_places[at].address, caller, __ATOMIC_RELEASE);
	return __atomic_load_n(&weft__hook_places[at].address, __ATOMIC_ACQUIRE) ? &weft__hook_places[at] : NULL;
}
