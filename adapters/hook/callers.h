/* callers.h: finds out whose code called a wrapper: the recorder's, a runtime's or the program's (private to adapters/).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CALLERS_H
#define WEFT_HOOK_CALLERS_H

#include "adapters/hook/module.h"

/* Modules of the recorder, of this library and of libc, which load.c sets; zero before. */
extern struct weft__module weft__hook_recorder_module, weft__hook_own_module, weft__hook_libc_module;

/* Whether the program itself links the recorder; such a program records its own sleeps. */
extern bool weft__hook_is_instrumented;

/* Caller of a runtime's function that only passes the call on to libc, such as uv_mutex_lock(); NULL: none. */
extern __thread const void *weft__hook_outer_caller __attribute__((tls_model("initial-exec")));

/* Returns weft__hook_outer_caller if it is set, or else `caller`. */
static inline const void *weft__hook_outermost(const void *caller)
{
	return weft__hook_outer_caller ? weft__hook_outer_caller : caller;
}

/* Returns whether the return address is in the recorder or in this library. */
bool weft__hook_is_recorder(const void *return_address);

/* Returns whether the return address is in a recorded runtime's own code. */
bool weft__hook_is_runtime(const void *return_address);

#endif
