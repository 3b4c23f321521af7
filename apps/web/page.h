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

/* Writes the files of a directory for a web server: index.html, weft.js, and one for each trace.  WEFT_EIO, WEFT_ENOMEM. */
int weft_page_write_directory(
    const struct weft_page_trace *traces, size_t count, weft_export_file_fn *file, void *file_ctx, struct weft_error *err);

#endif
