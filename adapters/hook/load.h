/* load.h: what load.c, session.c and sleep.c know of each other (private to adapters/hook).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LOAD_H
#define WEFT_HOOK_LOAD_H

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

#include "adapters/hook/hook.h"

/* Every adapter there is, ending with NULL; adapters.c. */
extern const struct weft_hook_adapter *const weft__hook_adapters[];

/* load.c: each copy of a runtime that was found, and what was taken of it: "libuv 1.44.2: 74 of 74 calls; ...".  Grows while
 * copies come; "" if none did. */
const char *weft__hook_report(void);
/* Whether any of them is recorded. */
bool weft__hook_has_runtime(void);
/* By-symbol copies: modules that came meanwhile call the wrappers too. */
void weft__hook_settle(void);
void weft__hook_around_fork(enum weft_hook_fork when);

/* Whether the recorder or this library is what called, told by __builtin_return_address(0). */
bool weft__hook_is_recorder(const void *return_address);

/* Whether it is a runtime's own code that called. */
bool weft__hook_is_runtime(const void *return_address);

/* Whether the program needs the recorder by itself: then it says by itself when it sleeps. */
bool weft__hook_is_instrumented(void);

/* session.c: around a lock that fork() takes, too: a signal handler may fork, and must not find it taken by whom it interrupted.
 */
void weft__hook_block_signals(sigset_t *before);
void weft__hook_restore_signals(const sigset_t *before);

/* session.c: 0: this process records nothing, whatever it calls. */
extern unsigned weft__hook_gate;

/* session.c: whether this process is to record.  NULL in the environment: everything stays as it is. */
bool weft__hook_is_wanted(void);
/* This process, root's, is about to become that user: who shall be able to record.  Also in a child of vfork(). */
void weft__hook_give(uid_t user);
/* This process is about to have another root: if it has a runtime in it, it begins to record while it can.  Does nothing in a
 * child of vfork(). */
void weft__hook_leaves_root(void);
/* Makes DIR/NAME-PID`what` for a recorder that the program has in itself; false: there is none, or this process records nothing,
 * or only when it is told to. */
bool weft__hook_make_folder(char path[PATH_MAX], const char *what);
/* Leaves a line for the user of weft record, beside where this process's trace would be. */
void weft__hook_leave_word(const char *why);

#endif
