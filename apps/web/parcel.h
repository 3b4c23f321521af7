/* parcel.h: findings as one block of memory, so that one instance of the core can hand them to another.  SPDX-License-Identifier:
 * ISC */
#ifndef WEFT_WEB_PARCEL_H
#define WEFT_WEB_PARCEL_H

#include "analysis/explain.h"

/* A copy of findings whose pointers are offsets from the copy's start; the caller's to free.  NULL: no memory. */
void *parcel_pack(const struct weft_findings *findings, size_t *size);

/* Turns the offsets of such a block, now in this instance's memory, into pointers: findings again. */
struct weft_findings *parcel_unpack(void *parcel);

#endif
