/* page.h: a viewer page with traces in it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_PAGE_H
#define WEFT_WEB_PAGE_H

#include "export/export.h"

/* A trace's bytes: a file, or a tar archive of a directory.  It stays the caller's. */
struct weft_page_trace {
	const char *name; /* what the page calls it: any UTF-8 */
	const void *bytes;
	size_t size;
};

/* Writes one file that holds the viewer and the traces, compressed, and asks for nothing else.  WEFT_EIO, WEFT_ENOMEM. */
int weft_page_write(
    const struct weft_page_trace *traces, size_t count, weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

/* Of a directory for a web server: trace number n, from 0, as a file; `suffix` is "" or ".gz".  Returns buf. */
#define WEFT_PAGE_NAME_BYTES 40
const char *weft_page_trace_name(char buf[WEFT_PAGE_NAME_BYTES], size_t n, const char *suffix);

/* Writes its index.html, which refers to weft.js and to the traces; `live`: which are there without a suffix, and may change:
 * the page asks for them again with If-None-Match.  No bytes of traces are looked at.  WEFT_EIO. */
int weft_page_write_index(const struct weft_page_trace *traces, size_t count, bool live, weft_export_write_fn *write,
    void *write_ctx, struct weft_error *err);

/* Its weft.js: the viewer. */
const void *weft_page_script(size_t *size);

/* Writes all its files.  WEFT_EIO, WEFT_ENOMEM. */
int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err);

#endif
