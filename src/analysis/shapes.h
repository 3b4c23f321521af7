/* shapes.h: sorts whose labels differ by numbers only: "client 10.0.0.1:5123" and "client 10.0.0.1:5124".
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_SHAPES_H
#define WEFT_ANALYSIS_SHAPES_H

#include "analysis/sorts.h"

/* A text with "*" for each number, address and the like, cut to fit; false: there is none in it. */
bool weft__shape(char *out, size_t size, struct weft_str text);

/* By sort: the first sort of the same kind and place whose label has the same shape; itself, if there is none or no number in it.
 * WEFT_ENOMEM, WEFT_ECANCELLED.  Linear in the labels' bytes.  `first` has room for all. */
int weft__shapes_group(
    uint32_t *first, const struct weft_model *model, const struct weft__sorts *sorts, struct weft__watch *watch);

#endif
