/* gzip.h: files that gzip packed (private to src/trace).  SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_GZIP_H
#define WEFT_TRACE_GZIP_H

#include "trace/source.h"

/* Whether these are a packed file's first bytes, and this build can unpack it. */
bool weft__gzip_is(const unsigned char *bytes, size_t size);

/* Puts what the blob unpacks to in its place: of one that is cut off what there is, of one that `is_known` does not know by its
 * first bytes these.  On failure the blob is as it was: WEFT_EDAMAGED, WEFT_ETOOBIG (more than `most` bytes), WEFT_ENOMEM. */
int weft__gzip_unpack(struct weft_blob *blob, uint64_t most, bool (*is_known)(const unsigned char *bytes, size_t size));

#endif
