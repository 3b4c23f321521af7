/* parcel.h: packs findings into one block of memory, so that one instance of the core can pass them to another.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_PARCEL_H
#define WEFT_WEB_PARCEL_H

#include "analysis/findings/explain.h"

/* Returns a copy of the findings in one block, in which pointers are offsets from the block's start; the caller frees the block.
 * Returns NULL without memory. */
void *parcel_pack(const struct weft_findings *findings, size_t *size);

/* Converts the offsets in a block, which is now in this instance's memory, to pointers. */
struct weft_findings *parcel_unpack(void *parcel);

#endif
