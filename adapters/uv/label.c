/* label.c: builds labels from values of libuv's types.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/uv/common.h"

void weft__uv_append_bytes(struct weft__uv_object *object, const uv_buf_t bufs[], unsigned count)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	weft__uv_append_number(object, bytes);
	weft__uv_append(object, " bytes");
}

/* The latest label is cached, because consecutive writes often have the same length. */
void weft__uv_label_bytes(struct weft__uv_object *object, const uv_buf_t bufs[], unsigned count)
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
		weft__uv_append_bytes(object, bufs, count);
		last.bytes = bytes;
		last.length = object->label.length;
		memcpy(last.text, object->label.text, sizeof last.text);
	}
	object->label.length = last.length;
	memcpy(object->label.text, last.text, sizeof last.text);
}

void weft__uv_append_handle(struct weft__uv_object *object, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (object->copy->real.uv_fileno(handle, &fd) == 0)
		weft__uv_append_fd(object, fd);
}
