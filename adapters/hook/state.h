/* state.h: variables that say whether this process records (private to adapters/).  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_STATE_H
#define WEFT_HOOK_STATE_H

#include "adapters/hook/hook.h"

/* All adapters; the last entry is NULL (adapters.c). */
extern const struct weft_hook_adapter *const weft__hook_adapters[];

/* 0 if this process can record nothing now. */
extern unsigned weft__hook_gate;

/* Whether this process has asked for a filter of system calls, which may end it for a call that it does not make itself. */
extern bool weft__hook_has_filter;

/* Whether this process is on standby: recording may start at any time, also while a loop runs. */
extern bool weft__hook_is_standby;
extern uint64_t weft__hook_standby_since; /* weft_now() at the start of standby, which is the time of all promises that are older
					     than a recording */

/* Whether promises of JavaScript are recorded. */
extern bool weft__hook_has_js_promises;

/* The section of waits that continue after an interruption by `weft on` or `weft off` (wire/standby.h). */
#define WEFT_HOOK_WAITS __attribute__((section("weft_waits")))
extern const char weft__hook_waits_begin[] __asm__("__start_weft_waits"), weft__hook_waits_end[] __asm__("__stop_weft_waits");
extern WEFT_HOOK_SHARED const uint32_t *weft__hook_wake_count; /* NULL unless on standby */

#endif
