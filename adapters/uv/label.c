/* label.c: labels that libuv's types make.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/uv/adapter.h"

void weft__uv_put_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	weft__uv_put_number(thing, bytes);
	weft__uv_put(thing, " bytes");
}

/* The label of every write, and many are as long as the one before. */
void weft__uv_label_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count)
{
	static __thread struct {
		uint64_t bytes;
		uint8_t length;
		char text[sizeof(uint64_t[4])];
	} last __attribute__((tls_model("initial-exec")));
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	if (!last.length || last.bytes != bytes) {
		weft__uv_put_bytes(thing, bufs, count);
		last.bytes = bytes;
		last.length = thing->label.length;
		memcpy(last.text, thing->label.text, sizeof last.text);
	}
	thing->label.length = last.length;
	memcpy(thing->label.text, last.text, sizeof last.text);
}

void weft__uv_put_handle(struct weft__uv_thing *thing, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (thing->copy->real.uv_fileno(handle, &fd) == 0)
		weft__uv_put_fd(thing, fd);
}
