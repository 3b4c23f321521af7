/* parcel.h: packs findings into one block of memory, so that one instance of the core can pass them to another.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_WEB_PARCEL_H
#define WEFT_WEB_PARCEL_H

#include "analysis/findings/explain.h"

/* Returns a copy of findings with pointers that are offsets from the copy's start; the caller frees it.  Returns NULL without
 * memory. */
void *parcel_pack(const struct weft_findings *findings, size_t *size);

/* Converts the offsets of a block, now in this instance's memory, to pointers. */
struct weft_findings *parcel_unpack(void *parcel);

#endif
