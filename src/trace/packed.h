/* packed.h: unpacks files of gzip and zstd (private to src/trace).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PACKED_H
#define WEFT_TRACE_PACKED_H

#include "trace/source.h"

/* Returns true if the bytes are the start of a packed file and this build can unpack it. */
bool weft__packed_is(const unsigned char *bytes, size_t size);

/* Replaces the blob's bytes by the unpacked bytes, whose zeros take no memory.  A truncated file gives the bytes that exist; if
 * `is_known` rejects the first bytes, only these are unpacked.  On failure the blob is unchanged: WEFT_EDAMAGED, WEFT_ETOOBIG
 * (more than max_bytes, or than 256 MB and 64 bytes of memory for each packed byte), WEFT_ENOMEM. */
int weft__packed_unpack(struct weft_blob *blob, uint64_t max_bytes, bool (*is_known)(const unsigned char *bytes, size_t size));

#endif
