/* page.h: writes a viewer page that contains traces.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_PAGE_H
#define WEFT_WEB_PAGE_H

#include "export/export.h"

/* A trace's bytes: a file, or a tar archive of a directory.  The caller keeps ownership. */
struct weft_page_trace {
	const char *name; /* name on the page: any UTF-8 */
	const void *bytes;
	size_t size;
};

/* Writes one file with the viewer and the compressed traces; a browser loads nothing else.  Fails with WEFT_EIO or
 * WEFT_ENOMEM. */
int weft_page_write(
    const struct weft_page_trace *traces, size_t count, weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

/* Writes the name of trace n, from 0, in a directory for a web server; `suffix` is "" or ".gz".  Returns buf. */
#define WEFT_PAGE_NAME_BYTES 40
const char *weft_page_trace_name(char buf[WEFT_PAGE_NAME_BYTES], size_t n, const char *suffix);

/* Writes that directory's index.html, which refers to weft.js and to the traces.  If `live`, the traces have no suffix and may
 * change, so the page requests them again with If-None-Match.  The traces' bytes are not read.  Fails with WEFT_EIO. */
int weft_page_write_index(const struct weft_page_trace *traces, size_t count, bool live, weft_export_write_fn *write,
    void *write_ctx, struct weft_error *err);

/* Returns that directory's weft.js, the viewer. */
const void *weft_page_script(size_t *size);

/* Writes all files of that directory.  Fails with WEFT_EIO or WEFT_ENOMEM. */
int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err);

#endif
