/* state.h: variables that say whether this process records (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_STATE_H
#define WEFT_HOOK_STATE_H

#include "adapters/hook/hook.h"

/* Array of all adapters, ended by NULL (adapters.c). */
extern const struct weft_hook_adapter *const weft__hook_adapters[];

/* Whether this process may record something now; 0 if it cannot. */
extern unsigned weft__hook_gate;

/* Whether this process has installed a seccomp filter, which may kill the process for a system call that the program itself does
 * not make. */
extern bool weft__hook_has_filter;

/* Whether this process is on standby: recording may start at any time, also while a loop runs. */
extern bool weft__hook_is_standby;
/* weft_now() at the start of standby, which is the creation time of all promises that are older than a recording. */
extern uint64_t weft__hook_standby_since;

/* How much of Node.js is recorded: only the operations of libuv; also the lines of JavaScript that start these; also promises of
 * the program's code; also those of node_modules and of Node.js itself. */
extern enum weft__hook_js { WEFT_HOOK_JS_OFF, WEFT_HOOK_JS_LINES, WEFT_HOOK_JS_PROMISES, WEFT_HOOK_JS_ALL } weft__hook_js;

/* The parts of Python programs that are recorded. */
enum weft_hook_python { WEFT_HOOK_PYTHON_ALL, WEFT_HOOK_PYTHON_TASKS, WEFT_HOOK_PYTHON_OFF };
extern enum weft_hook_python weft__hook_python;

/* The section of waits that continue after an interruption by `weft on` or `weft off` (wire/standby.h). */
#define WEFT_HOOK_WAITS __attribute__((section("weft_waits")))
extern const char weft__hook_waits_begin[] __asm__("__start_weft_waits"), weft__hook_waits_end[] __asm__("__stop_weft_waits");
extern WEFT_HOOK_SHARED const uint32_t *weft__hook_wake_count; /* NULL unless on standby */

#endif
