/* state.c: variables that say whether this process records.  SPDX-License-Identifier: ISC */
#include "adapters/hook/state.h"

unsigned weft__hook_gate = 1; /* not 0 until session.c has decided, so that wrappers look up the original functions */
bool weft__hook_has_filter;
bool weft__hook_is_standby;
uint64_t weft__hook_standby_since;
const uint32_t *weft__hook_wake_count;
