/* svg.h: writes a draw list as SVG, with texts as text.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_SVG_H
#define WEFT_DRAW_SVG_H

#include "draw/draw.h"

/* Function that receives the bytes of a picture.  A nonzero return value stops the writing with WEFT_EIO. */
typedef int weft_write_fn(void *ctx, const void *bytes, size_t size);

/* Writes a draw list as SVG; equal lists give equal bytes.  Texts are fitted to their measured widths, so that they never
 * overlap in another font.  Fails with WEFT_EIO or WEFT_ENOMEM. */
int weft_svg_write(
    const struct weft_draw_list *list, enum weft_theme theme, weft_write_fn *write, void *write_ctx, struct weft_error *err);

#endif
