/* tar.h: writes a directory as one stream of bytes, a tar archive.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_TAR_H
#define WEFT_EXPORT_TAR_H

#include "export/export.h"

/* Writes a member of the archive (POSIX ustar): a file of mode 0600 without a time, so that equal files make equal archives.
 *
 * WEFT_EIO; WEFT_EINVAL: the name is longer than 100 bytes. */
int weft_tar_file(
    weft_export_write_fn *write, void *write_ctx, const char *name, const void *bytes, size_t size, struct weft_error *err);

/* Writes the end of the archive.  WEFT_EIO. */
int weft_tar_end(weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

#endif
