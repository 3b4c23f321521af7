/* tar.h: writes a directory as one stream of bytes, which is a tar archive.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_TAR_H
#define WEFT_EXPORT_TAR_H

#include "export/export.h"

/* Writes a file as a member of the archive (POSIX ustar), with mode 0600 and without a time, so that equal files make equal
 * archives.
 *
 * Fails with WEFT_EIO, or with WEFT_EINVAL if the name is longer than 100 bytes. */
int weft_tar_file(
    weft_export_write_fn *write, void *write_ctx, const char *name, const void *bytes, size_t size, struct weft_error *err);

/* Writes the end of the archive.  WEFT_EIO. */
int weft_tar_end(weft_export_write_fn *write, void *write_ctx, struct weft_error *err);

#endif
