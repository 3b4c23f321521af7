/* callers.h: finds out whose code called a wrapper: the recorder's, a runtime's or the program's (private to adapters/).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_CALLERS_H
#define WEFT_HOOK_CALLERS_H

#include "adapters/hook/module.h"

/* The modules of the recorder and of this library.  load.c fills them; they are zero before. */
extern struct weft__module weft__hook_recorder_module, weft__hook_own_module;

/* True if the program links the recorder; such a program records its own sleeps. */
extern bool weft__hook_is_instrumented;

/* The caller of a runtime's function that only passes the call on to libc, such as uv_mutex_lock(); NULL: none. */
extern __thread const void *weft__hook_outer_caller __attribute__((tls_model("initial-exec")));

/* Returns the outer caller, or else `caller`. */
static inline const void *weft__hook_outermost(const void *caller)
{
	return weft__hook_outer_caller ? weft__hook_outer_caller : caller;
}

/* Returns whether the return address is in the recorder or in this library. */
bool weft__hook_is_recorder(const void *return_address);

/* Returns whether the return address is in the own code of a recorded runtime. */
bool weft__hook_is_runtime(const void *return_address);

#endif
