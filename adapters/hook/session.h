/* session.h: starts the recording of this process (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SESSION_H
#define WEFT_HOOK_SESSION_H

#include <sys/types.h>

#include "adapters/hook/state.h"

bool weft__hook_begin(void);
void weft__hook_stack(weft_id promise, const void *caller);
extern unsigned weft__hook_stack_depth;

/* Returns whether recording is on, and starts it if that is wanted.  Costs one load while recording is on.  Keeps errno.  Do not
 * call it in signal handlers; use weft_is_on() there. */
static inline bool weft_hook_begin(void)
{
	return weft_is_on() || weft__hook_begin();
}

/* Records the call stack at the creation of the promise, with as many frames as `weft record --stacks=N` asks for.  The first
 * frame is the one that contains `caller`.  Costs one load without that option. */
static inline void weft_hook_stack(weft_id promise, const void *caller)
{
	if (__builtin_expect(weft__hook_stack_depth, 0))
		weft__hook_stack(promise, caller);
}

/* Returns whether memory of at most one page can be read; another thread may change that at once.  Needs at most two
 * rt_sigprocmask() calls, which every program makes: a seccomp filter may kill a process for others. */
bool weft_hook_is_readable(const void *memory, size_t size);

/* Prepares the change of this process, which is root's, to another user, so that it can continue to record.  Safe in a child of
 * vfork(). */
void weft__hook_give_to_user(uid_t user);
/* Prepares a change of the root directory: starts the recording if the process contains a runtime.  Does nothing in a child of
 * vfork(). */
void weft__hook_before_chroot(void);

#endif
