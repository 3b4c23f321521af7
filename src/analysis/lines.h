/* lines.h: which lines of two versions of a source are the same place.  Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_LINES_H
#define WEFT_ANALYSIS_LINES_H

#include "model/model.h"

/* Numbers for the sites of two models: two sites of one file and function get the same number in both if they are the same place,
 * though lines were added before it.
 *
 * The places of a function are paired in their order, so that as many pairs as possible make promises of one kind; of equal ways
 * to do so, the one in which most lines moved by the same number.  numbers[r] has room for each site of models[r].  WEFT_ENOMEM.
 * Near-linear. */
int weft__lines_match(const struct weft_model *const models[2], uint32_t *const numbers[2]);

#endif
