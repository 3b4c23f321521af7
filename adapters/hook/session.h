/* session.h: starts the recording of this process (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_SESSION_H
#define WEFT_HOOK_SESSION_H

#include <sys/types.h>

#include "adapters/hook/state.h"

bool weft__hook_begin(void);
void weft__hook_stack(weft_id promise, const void *caller);
extern unsigned weft__hook_stack_depth;

/* Returns whether recording is on, and starts the recording if the user wants one.  The check costs one load while recording is
 * on.  Keeps errno.  Signal handlers must not call this function; they use weft_is_on(). */
static inline bool weft_hook_begin(void)
{
	return weft_is_on() || weft__hook_begin();
}

/* Enters a session in a program that already runs; the text is a value of WEFT_RECORD with the word `standby`, is_known says
 * whether an earlier call was accepted, and `searches` whether to search the modules.  Returns false if the program is recorded
 * otherwise. */
bool weft__hook_attach_session(const char *text, bool is_known, bool searches);

/* Records the call stack at the creation of a promise, with as many frames as `weft record --stacks=N` asks for.  The first
 * recorded frame is the frame that contains `caller`.  Without the option --stacks, the function costs one load. */
static inline void weft_hook_stack(weft_id promise, const void *caller)
{
	if (__builtin_expect(weft__hook_stack_depth, 0))
		weft__hook_stack(promise, caller);
}

/* Returns whether memory of at most one page can be read; another thread may change that at once.  The check needs at most two
 * rt_sigprocmask() calls, which every program makes; for other system calls, a seccomp filter may kill the process. */
bool weft_hook_is_readable(const void *memory, size_t size);

/* Prepares this process, which runs as root, for its change to another user, so that the process can continue to record.
 * Children of vfork() may call this function. */
void weft__hook_give_to_user(uid_t user);
/* Prepares a change of the root directory: starts the recording if the process contains a runtime.  Does nothing in a child of
 * vfork(). */
void weft__hook_before_chroot(void);

#endif
