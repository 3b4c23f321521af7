/* source_diff.h: finds sites that are the same place in two versions of a source file.  Private to analysis/.
 * SPDX-License-Identifier: ISC
 */
#ifndef WEFT_ANALYSIS_QUERIES_SOURCE_DIFF_H
#define WEFT_ANALYSIS_QUERIES_SOURCE_DIFF_H

#include "model/model.h"

/* Numbers the sites of two models: two sites of one file and function get the same number if they are the same place, even if
 * lines were added before it.
 *
 * The sites of a function are paired in order, so that as many pairs as possible create promises of one kind.  Among equally
 * good pairings, the function chooses the one in which most lines moved by the same number. numbers[r] must have capacity for
 * each site of models[r]. Fails with WEFT_ENOMEM. Near-linear. */
int weft__source_diff_match_sites(const struct weft_model *const models[2], uint32_t *const numbers[2]);

#endif
