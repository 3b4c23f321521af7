/* tar.h: a directory as one stream of bytes.  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_TAR_H
#define WEFT_EXPORT_TAR_H

#include "export/export.h"

/* Writes a member of an archive (POSIX ustar): a file of mode 0600 without a time, so that the same files make the same bytes.
 *
 * WEFT_EIO; WEFT_EINVAL: a name of over 100 bytes. */
int weft_tar_file(
    weft_export_write_fn *write, void *write_ctx, const char *name, const void *bytes, size_t size, struct weft_error *err);

/* Ends the archive.  WEFT_EIO. */
int weft_tar_end(weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

#endif
