/* adapters.c: the list of adapters.  SPDX-License-Identifier: ISC */
#include "adapters/hook/load.h"

const struct weft_hook_adapter *const weft__hook_adapters[] = {NULL};
