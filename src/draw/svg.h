/* svg.h: a draw list as SVG, whose texts stay texts.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_SVG_H
#define WEFT_DRAW_SVG_H

#include "draw/draw.h"

/* Receives the bytes of a picture; a non-zero answer ends the writing with WEFT_EIO. */
typedef int weft_write_fn(void *ctx, const void *bytes, size_t size);

/* The same bytes for the same list.  Texts are fitted to the width they were measured to have, so that they never overlap in
 * another font.  WEFT_EIO, WEFT_ENOMEM. */
int weft_svg_write(
    const struct weft_draw_list *list, enum weft_theme theme, weft_write_fn *write, void *write_ctx, struct weft_error *err);

#endif
