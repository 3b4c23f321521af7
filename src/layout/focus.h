/* focus.h: finds the promises that belong to one promise.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_FOCUS_H
#define WEFT_LAYOUT_FOCUS_H

#include "layout/layout.h"

/* Finds the promises that belong to one promise, as one bit for each promise, for weft_layout_create_folded().  They are:
 * - the promise itself;
 * - the promises of its track, if it is an actor; otherwise all that it and its descendants created before it ended;
 * - the promises that these awaited or read before the promise ended, followed to the end of each chain.  A chain ends at a
 *   promise that many others use: a lock, queue, pool or condition, or a loop, OS thread or connection that the promises above
 *   did not create;
 * - the promises that awaited or read the promise.
 * If others also use a socket that these promises connected (a pooled socket), the promises that its code created are found only
 * if they are in such a chain.
 *
 * `layout` is the layout of the whole model.  The caller frees *out.  If `count` is not NULL, *count gets the number of bits
 * that are set.  Fails with WEFT_ENOMEM.  The time is linear in promises and links. */
int weft_focus_find(uint64_t **out, size_t *count, const struct weft_model *model, const struct weft_layout *layout,
    uint32_t promise, struct weft_error *err);

#endif
