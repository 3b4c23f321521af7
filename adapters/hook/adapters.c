/* adapters.c: the list of all adapters (tables of wrapped functions, one for each runtime).  SPDX-License-Identifier: ISC */
#include "adapters/hook/state.h"

extern const struct weft_hook_adapter weft_event_adapter, weft_event_extra_adapter, weft_gio_adapter, weft_glib_adapter,
    weft_gobject_adapter, weft_node_adapter, weft_ocaml_adapter, weft_python_adapter, weft_qemu_adapter, weft_sd_adapter,
    weft_uring_adapter, weft_uv_adapter, weft_uv_http2_adapter, weft_uv_tls_adapter;

const struct weft_hook_adapter *const weft__hook_adapters[] = {&weft_uv_adapter, &weft_event_adapter, &weft_event_extra_adapter,
    &weft_glib_adapter, &weft_gobject_adapter, &weft_gio_adapter, &weft_sd_adapter, &weft_qemu_adapter, &weft_ocaml_adapter,
    &weft_python_adapter, &weft_node_adapter, &weft_uring_adapter, &weft_uv_http2_adapter, &weft_uv_tls_adapter, NULL};
