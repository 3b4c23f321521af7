/* address_cache.h: call sites and names of addresses in the program (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_ADDRESS_CACHE_H
#define WEFT_HOOK_ADDRESS_CACHE_H

#include <stdint.h>
#include <weft/record.h>

enum { WEFT__HOOK_MAX_SITES = 1024 };

extern struct weft_record_place weft__hook_sites[WEFT__HOOK_MAX_SITES];

struct weft_record_place *weft__hook_find_site(const void *caller);

/* Returns the index at which a search for the address starts. */
static inline unsigned weft__hook_site_bucket(const void *address)
{
	return (unsigned)((uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u >> 40) % WEFT__HOOK_MAX_SITES;
}

/* Returns the call site of a return address, for weft_create_at().  If the address is in this library, the running callback is
 * the site.  Returns NULL if the table is full or the site is unknown. */
static inline struct weft_record_place *weft_hook_site(const void *caller)
{
	struct weft_record_place *first = &weft__hook_sites[weft__hook_site_bucket(caller)];
	return caller && __atomic_load_n(&first->address, __ATOMIC_ACQUIRE) == caller ? first : weft__hook_find_site(caller);
}

/* Returns the name of an exported function or variable; NULL if it has none or is a mangled C++ name.  The first call for an
 * address takes the loader's lock. */
const char *weft_hook_name(const void *address);

#endif
