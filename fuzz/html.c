/* html.c: writes any bytes as the trace in a page, under any name.
 *
 * The first byte is the length of the name, which follows; the rest is the trace.  For any name, the page must have
 * exactly one script more, and that script must contain the packed trace.  SPDX-License-Identifier: ISC */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "apps/cli/cli.h"
#include "apps/web/page.h"

#define MAX_NAME_BYTES 40
static const char before[] = "<script type=\"application/gzip\" class=\"trace\" data-name=\"", after[] = "</script>";

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

static void require(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "html: %s\n", what);
		abort();
	}
}

#define LARGE_BYTES 100000 /* larger than any single write of a trace */

/* Collects the page without the viewer, which is always the same. */
static int collect_page(void *page, const void *bytes, size_t size)
{
	return size > LARGE_BYTES ? 0 : cli_bytes_append(page, bytes, size);
}

static size_t count_scripts(const cli_bytes *page)
{
	size_t count = 0;
	const unsigned char *at = page->items, *end = at + page->count;
	while ((at = memmem(at, (size_t)(end - at), "<script", 7)) != NULL) {
		count++;
		at++;
	}
	return count;
}

/* Decodes the page's trace as a browser does: base64, gzip. */
static void check_trace(const cli_bytes *page, const void *packed, size_t packed_size)
{
	const char *begin = memmem(page->items, page->count, before, sizeof before - 1);
	require(begin != NULL, "a page has its trace");
	const char *data = strchr(begin + sizeof before - 1, '>') + 1, *end = strstr(data, after);
	require(end != NULL, "a trace has an end");
	char *text = g_strndup(data, (gsize)(end - data));
	gsize zipped_size;
	g_base64_decode_inplace(text, &zipped_size);
	unsigned char *whole = malloc(packed_size + 1);
	z_stream z = {.next_in = (unsigned char *)text, .avail_in = (unsigned)zipped_size};
	require(whole && inflateInit2(&z, 15 + 16) == Z_OK, "there is memory");
	z.next_out = whole;
	z.avail_out = (unsigned)packed_size + 1;
	require(inflate(&z, Z_FINISH) == Z_STREAM_END, "what is packed can be unpacked");
	require(z.total_out == packed_size && memcmp(whole, packed, packed_size) == 0, "the page has the packed bytes");
	inflateEnd(&z);
	free(whole);
	g_free(text);
}

/* Opens the trace as a page does. */
static void check_opens(const void *packed, size_t size)
{
	struct weft_trace *again;
	require(weft_trace_open_memory(&again, packed, size, "again", NULL) == WEFT_OK, "a page can open its trace");
	weft_trace_close(again);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
	static size_t scripts = SIZE_MAX;
	static cli_bytes page;
	char name[MAX_NAME_BYTES + 1] = "";
	struct weft_trace *trace;
	if (size < 1 + MAX_NAME_BYTES)
		return 0;
	const size_t name_bytes = bytes[0] % MAX_NAME_BYTES;
	memcpy(name, bytes + 1, name_bytes);
	bytes += 1 + name_bytes;
	size -= 1 + name_bytes;
	if (weft_trace_open_memory(&trace, bytes, size, "fuzz", NULL) < 0)
		return 0;
	if (scripts == SIZE_MAX) {
		require(weft_page_write(NULL, 0, collect_page, &page, NULL) == WEFT_OK, "a page without a trace can be written");
		scripts = count_scripts(&page);
	}
	cli_bytes packed = {0};
	struct weft_page_trace one = {.name = name};
	require(cli_pack(&one.bytes, &one.size, &packed, trace, NULL) == WEFT_OK, "a trace can be packed");
	page.count = 0;
	require(weft_page_write(&one, 1, collect_page, &page, NULL) == WEFT_OK, "a page can be written");
	require(count_scripts(&page) == scripts + 1, "a name is no script");
	check_trace(&page, one.bytes, one.size);
	check_opens(one.bytes, one.size);
	weft_vec_free(&packed);
	weft_trace_close(trace);
	return 0;
}
