/* state.c: shared variables of the GLib adapter.  SPDX-License-Identifier: ISC */
#include "adapters/glib/common.h"

struct weft__glib_real weft__glib_real;
struct weft__glib_modules weft__glib_modules;
struct weft__glib_object *weft__glib_chunks[WEFT__GLIB_CHUNKS];
uint32_t weft__glib_object_count;
struct weft__glib_here weft__glib_heres WEFT_HOOK_PER_THREAD;
