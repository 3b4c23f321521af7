/* packed.h: unpacks files of gzip and zstd (private to src/trace).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_TRACE_PACKED_H
#define WEFT_TRACE_PACKED_H

#include "trace/source.h"

/* Returns true if the bytes are the start of a packed file that this build can unpack. */
bool weft__packed_is(const unsigned char *bytes, size_t size);

/* Replaces the blob's bytes by the unpacked bytes, in which pages of zeros take no memory.  If the file is truncated, the bytes
 * that exist are unpacked; if `is_known` rejects the first bytes, only these are unpacked.  On failure the blob is unchanged,
 * and the result is WEFT_EDAMAGED, WEFT_ETOOBIG (more than max_bytes, or than 256 MB and 64 bytes of memory for each packed
 * byte) or WEFT_ENOMEM. */
int weft__packed_unpack(struct weft_blob *blob, uint64_t max_bytes, bool (*is_known)(const unsigned char *bytes, size_t size));

#endif
