/* focus.h: finds the promises that belong to one promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_FOCUS_H
#define WEFT_LAYOUT_FOCUS_H

#include "layout/layout.h"

/* Finds the promises that belong to one promise, as bits by promise for weft_layout_create_folded().  They are:
 * - the promise itself;
 * - the promises of its track, if it is an actor; otherwise all that it and its descendants created before it ended;
 * - the promises that these awaited or read before the promise ended, followed to the end of each chain.  A chain ends at a
 *   promise that many use: a lock, queue, pool or condition; a loop, OS thread or connection that these did not create;
 * - the promises that awaited or read the promise.
 * If others use a socket too that these connected (a pooled socket), what its code created is found only if it is in such a
 * chain.
 *
 * `layout` is the layout of the whole model.  The caller frees *out.  *count, if not NULL, is the number of bits set.  Fails with
 * WEFT_ENOMEM.  Linear in promises and links. */
int weft_focus_find(uint64_t **out, size_t *count, const struct weft_model *model, const struct weft_layout *layout,
    uint32_t promise, struct weft_error *err);

#endif
