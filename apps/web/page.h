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

/* Writes one file that holds the viewer and the traces, compressed; a browser loads nothing else.  WEFT_EIO, WEFT_ENOMEM. */
int weft_page_write(
    const struct weft_page_trace *traces, size_t count, weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

/* The name of trace number n, from 0, in a directory for a web server; `suffix` is "" or ".gz".  Returns buf. */
#define WEFT_PAGE_NAME_BYTES 40
const char *weft_page_trace_name(char buf[WEFT_PAGE_NAME_BYTES], size_t n, const char *suffix);

/* Writes that directory's index.html, which refers to weft.js and to the traces.  `live`: the traces have no suffix and may
 * change, so the page asks for them again with If-None-Match.  The function does not look at the traces' bytes.  WEFT_EIO. */
int weft_page_write_index(const struct weft_page_trace *traces, size_t count, bool live, weft_export_write_fn *write,
    void *write_ctx, struct weft_error *err);

/* Writes that directory's weft.js, the viewer. */
const void *weft_page_script(size_t *size);

/* Writes all files of that directory.  WEFT_EIO, WEFT_ENOMEM. */
int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err);

#endif
