/* load.h: finds copies of runtimes in mapped modules, and wraps their functions (private to adapters/hook).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LOAD_H
#define WEFT_HOOK_LOAD_H

#include "adapters/hook/hook.h"

/* Searches all mapped modules for runtimes, and later each module that the loader maps.  A second call searches the modules that
 * were mapped while the loader was not patched. */
void weft__hook_load(void);

/* Returns whether the process had one thread at the search, so that functions may be patched that any thread may call. */
bool weft__hook_was_single_threaded(void);

/* Returns a text that says what was wrapped of each copy: "libuv 1.44.2: 74 of 74 calls; ...".  The text grows with each copy;
 * it is "" without copies.
 */
const char *weft__hook_report(void);
/* Returns whether any copy of a runtime is recorded. */
bool weft__hook_has_runtime(void);
/* Redirects the calls of modules that were mapped after a copy was wrapped by changed pointers. */
void weft__hook_redirect_pointers(void);
void weft__hook_lock_around_fork(enum weft_hook_fork when);

#endif
