/* state.c: shared variables of the libuv adapter.  SPDX-License-Identifier: ISC */
#include "adapters/uv/common.h"

struct weft__uv_object *weft__uv_chunks[WEFT__UV_CHUNKS];
uint32_t weft__uv_object_count;
uint64_t weft__uv_secret = 0xa3c59ac2b7d1e64f;
struct weft__uv_here weft__uv_heres WEFT_HOOK_PER_THREAD;
