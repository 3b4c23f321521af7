/* page.c: inserts traces into the page template that pack.py made.  SPDX-License-Identifier: ISC */
#include "page.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "page-data.h"

struct out {
	weft_export_write_fn *write;
	void *ctx;
	bool failed;
};

static void put_bytes(struct out *o, const void *bytes, size_t size)
{
	if (size && !o->failed)
		o->failed = o->write(o->ctx, bytes, size) != 0;
}

static void put_cstring(struct out *o, const char *text)
{
	put_bytes(o, text, strlen(text));
}

/* Escapes a text for use inside of an element or an attribute's value. */
static void put_escaped(struct out *o, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	for (size_t left = strlen(text), n; left > 0; left -= n, p += n) {
		n = weft_utf8_char_bytes(p, left);
		if (n == 0) {
			put_cstring(o, "\xef\xbf\xbd");
			n = 1;
		} else if (*p == '&' || *p == '<' || *p == '>' || *p == '"' || *p < ' ') {
			char entity[8];
			snprintf(entity, sizeof entity, "&#%u;", *p);
			put_cstring(o, entity);
		} else {
			put_bytes(o, p, n);
		}
	}
}

static void put_title(struct out *o, const struct weft_page_trace *traces, size_t count)
{
	if (count == 0)
		put_cstring(o, "weft");
	for (size_t i = 0; i < count; i++) {
		put_escaped(o, traces[i].name);
		put_cstring(o, i + 1 < count ? ", " : " \xe2\x80\x93 weft");
	}
}

/* Compresses (gzip) in chunks. */
typedef void receive_fn(void *ctx, const unsigned char *bytes, size_t size);

static int compress_to(const struct weft_page_trace *trace, receive_fn *take, void *ctx)
{
	z_stream z = {0};
	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
		return WEFT_ENOMEM;
	unsigned char chunk[49152];
	const unsigned char *in = trace->bytes;
	size_t left = trace->size;
	int status;
	do {
		if (z.avail_in == 0) {
			z.next_in = (unsigned char *)(uintptr_t)in;
			z.avail_in = left < 1u << 30 ? (unsigned)left : 1u << 30;
			in += z.avail_in;
			left -= z.avail_in;
		}
		z.next_out = chunk;
		z.avail_out = sizeof chunk;
		status = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
		take(ctx, chunk, sizeof chunk - z.avail_out);
	} while (status == Z_OK || status == Z_BUF_ERROR);
	deflateEnd(&z);
	return WEFT_OK;
}

struct base64 {
	struct out *out;
	int state, save;
};

static void receive_base64(void *ctx, const unsigned char *bytes, size_t size)
{
	struct base64 *b = ctx;
	char text[49152 / 3 * 4 + 8];
	put_bytes(b->out, text, g_base64_encode_step(bytes, size, FALSE, text, &b->state, &b->save));
}

int weft_page_write(
    const struct weft_page_trace *traces, size_t count, weft_export_write_fn *write, void *write_ctx, struct weft_error *err)
{
	struct out o = {write, write_ctx, false};
	put_bytes(&o, weft_page_head, sizeof weft_page_head);
	put_title(&o, traces, count);
	put_bytes(&o, weft_page_body, sizeof weft_page_body);
	for (size_t i = 0; i < count && !o.failed; i++) {
		struct base64 base64 = {.out = &o};
		char size[64], text[8];
		put_cstring(&o, "<script type=\"application/gzip\" class=\"trace\" data-name=\"");
		put_escaped(&o, traces[i].name);
		snprintf(size, sizeof size, "\" data-size=\"%zu\">", traces[i].size);
		put_cstring(&o, size);
		if (compress_to(&traces[i], receive_base64, &base64) < 0)
			return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
		put_bytes(&o, text, g_base64_encode_close(FALSE, text, &base64.state, &base64.save));
		put_cstring(&o, "</script>\n");
	}
	put_bytes(&o, weft_page_tail, sizeof weft_page_tail);
	return o.failed ? weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO)) : WEFT_OK;
}

static int append_to_buffer(void *buffer, const void *bytes, size_t size)
{
	g_byte_array_append(buffer, bytes, (guint)size);
	return 0;
}

static void receive_bytes(void *buffer, const unsigned char *bytes, size_t size)
{
	g_byte_array_append(buffer, bytes, (guint)size);
}

const char *weft_page_trace_name(char buf[WEFT_PAGE_NAME_BYTES], size_t n, const char *suffix)
{
	snprintf(buf, WEFT_PAGE_NAME_BYTES, "trace-%zu%s", n + 1, suffix);
	return buf;
}

int weft_page_write_index(const struct weft_page_trace *traces, size_t count, bool live, weft_export_write_fn *write,
    void *write_ctx, struct weft_error *err)
{
	struct out o = {write, write_ctx, false};
	char name[WEFT_PAGE_NAME_BYTES], size[64];
	put_bytes(&o, weft_index_head, sizeof weft_index_head);
	put_title(&o, traces, count);
	put_bytes(&o, weft_index_body, sizeof weft_index_body);
	for (size_t i = 0; i < count; i++) {
		put_cstring(&o, "<a class=\"trace\" href=\"");
		put_cstring(&o, weft_page_trace_name(name, i, live ? "" : ".gz"));
		if (!live)
			snprintf(size, sizeof size, "\" data-size=\"%zu\">", traces[i].size);
		put_cstring(&o, live ? "\" data-live>" : size);
		put_escaped(&o, traces[i].name);
		put_cstring(&o, "</a>\n");
	}
	put_bytes(&o, weft_index_tail, sizeof weft_index_tail);
	return o.failed ? weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO)) : WEFT_OK;
}

const void *weft_page_script(size_t *size)
{
	*size = sizeof weft_page_js;
	return weft_page_js;
}

int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err)
{
	GByteArray *buffer = g_byte_array_new();
	char name[WEFT_PAGE_NAME_BYTES];
	int status = weft_page_write_index(traces, count, false, append_to_buffer, buffer, err);
	bool failed = status < 0 || file(file_ctx, "weft.js", weft_page_js, sizeof weft_page_js) ||
		      file(file_ctx, "index.html", buffer->data, buffer->len);
	for (size_t i = 0; i < count && !failed && status == WEFT_OK; i++) {
		g_byte_array_set_size(buffer, 0);
		status = compress_to(&traces[i], receive_bytes, buffer);
		failed = status == WEFT_OK && file(file_ctx, weft_page_trace_name(name, i, ".gz"), buffer->data, buffer->len);
	}
	g_byte_array_unref(buffer);
	if (status == WEFT_OK && failed)
		status = WEFT_EIO;
	return status < 0 ? weft_error_set(err, status, "%s", weft_status_string(status)) : WEFT_OK;
}
