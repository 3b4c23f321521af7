/* page.h: writes a viewer page that contains traces.  SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_PAGE_H
#define WEFT_WEB_PAGE_H

#include "export/export.h"

/* Bytes of a trace: a file, or a tar archive of a directory.  The caller keeps ownership. */
struct weft_page_trace {
	const char *name; /* name of the trace on the page, in any UTF-8 */
	const void *bytes;
	size_t size;
};

/* Writes one HTML file with the viewer and the compressed traces; a browser loads nothing else.  Fails with WEFT_EIO or
 * WEFT_ENOMEM. */
int weft_page_write(
    const struct weft_page_trace *traces, size_t count, weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

/* Writes the file name of trace n, counted from 0, in a directory for a web server; `suffix` is "" or ".gz".  Returns buf. */
#define WEFT_PAGE_NAME_BYTES 40
const char *weft_page_trace_name(char buf[WEFT_PAGE_NAME_BYTES], size_t n, const char *suffix);

/* Writes the file index.html of a web server's directory, which refers to weft.js and to the traces.  If `live`, the names of
 * the traces have no suffix and the traces may change, so the page requests them again with If-None-Match.  The function does
 * not read the traces' bytes.  Fails with WEFT_EIO. */
int weft_page_write_index(const struct weft_page_trace *traces, size_t count, bool live, weft_export_write_fn *write,
    void *write_ctx, struct weft_error *err);

/* Returns the file weft.js of a web server's directory, which contains the viewer. */
const void *weft_page_script(size_t *size);

/* Writes all files of a web server's directory.  Fails with WEFT_EIO or WEFT_ENOMEM. */
int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err);

#endif
