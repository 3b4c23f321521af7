/* address_cache.c: caches call sites and names of addresses in the program; each address is looked up once and kept until the
 * process ends.  SPDX-License-Identifier: ISC */
#include "adapters/hook/address_cache.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/thread.h"

enum { TABLE_ENTRIES = WEFT__HOOK_MAX_SITES, MAX_PROBES = 32, NAME_BYTES = 48 };

struct weft_record_place weft__hook_sites[TABLE_ENTRIES];
struct weft_hook_language weft__hook_language;

/* Returns the address's index in an open-addressing hash table, and adds the address if it is missing.  Returns -1 if all probed
 * entries hold other addresses.  Sets *is_new. */
static int find_or_add_address(uintptr_t table[], const void *address, bool *is_new)
{
	uintptr_t wanted = (uintptr_t)address;
	unsigned first = weft__hook_site_bucket(address);
	*is_new = false;
	for (unsigned i = 0; i < MAX_PROBES; i++) {
		unsigned at = (first + i) % TABLE_ENTRIES;
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

/* Returns the name of the symbol that contains the address, or NULL. dladdr() returns the nearest symbol before an address, so
 * the symbol's size decides whether the address is inside. */
static const char *find_symbol_name(const void *address, Dl_info *info)
{
	const ElfW(Sym) *symbol = NULL;
	if (!dladdr1(address, info, (void **)&symbol, RTLD_DL_SYMENT))
		memset(info, 0, sizeof *info);
	return info->dli_sname && symbol && (uintptr_t)address - (uintptr_t)info->dli_saddr < symbol->st_size ? info->dli_sname
													      : NULL;
}

const char *weft_hook_name(const void *address)
{
	static uintptr_t addresses[TABLE_ENTRIES];
	static char names[TABLE_ENTRIES][NAME_BYTES];
	static bool known[TABLE_ENTRIES];
	bool is_new;
	int at = address ? find_or_add_address(addresses, address, &is_new) : -1;
	if (at < 0)
		return NULL;
	if (is_new) {
		Dl_info info;
		const char *name = find_symbol_name(address, &info);
		if (name && strncmp(name, "_Z", 2) != 0)
			strncat(names[at], name, NAME_BYTES - 1);
		__atomic_store_n(&known[at], true, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&known[at], __ATOMIC_ACQUIRE) && names[at][0] ? names[at] : NULL;
}

struct weft_record_place *weft__hook_find_site(const void *caller)
{
	static uintptr_t addresses[TABLE_ENTRIES];
	bool is_new;
	/* The callback jumped to the wrapper (tail call), so the call site is the callback's first instruction, plus 1 as for a
	 * return address. */
	if (caller && weft__hook_is_recorder(caller)) {
		caller = weft__hook_get_thread()->called_function;
		return caller ? weft_hook_site((const char *)caller + 1) : NULL;
	}
	int at = caller ? find_or_add_address(addresses, caller, &is_new) : -1;
	if (at < 0)
		return NULL;
	if (is_new)
		__atomic_store_n(&weft__hook_sites[at].address, caller, __ATOMIC_RELEASE);
	return __atomic_load_n(&weft__hook_sites[at].address, __ATOMIC_ACQUIRE) ? &weft__hook_sites[at] : NULL;
}
