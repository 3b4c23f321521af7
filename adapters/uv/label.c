/* label.c: labels that libuv's types make.  SPDX-License-Identifier: ISC */
#include "adapters/uv/adapter.h"

void weft__uv_put_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	weft__uv_put_number(thing, bytes);
	weft__uv_put(thing, " bytes");
}

void weft__uv_put_handle(struct weft__uv_thing *thing, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (thing->copy->real.uv_fileno(handle, &fd) == 0)
		weft__uv_put_fd(thing, fd);
}
