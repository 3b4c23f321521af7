/* label_patterns.h: groups types whose labels differ only in numbers: "client 10.0.0.1:5123" and "client 10.0.0.1:5124".
 *
 * Private to analysis/.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_LABEL_PATTERNS_H
#define WEFT_ANALYSIS_INDEX_LABEL_PATTERNS_H

#include "analysis/index/promise_types.h"

/* Writes the text to `out` with "*" in place of each number or address, cut to fit; returns false if the text has no number. */
bool weft__label_pattern(char *out, size_t size, struct weft_str text);

/* Sets first[s], for each type s, to the first type with the same kind, site name and label pattern; to s itself if its label
 * has no number. `first` must have capacity for all `types`.  Returns WEFT_ENOMEM or WEFT_ECANCELLED on failure.  Takes time
 * linear in the number of bytes of all labels.
 */
int weft__label_patterns_group(
    uint32_t *first, const struct weft_model *model, const struct weft__promise_types *types, struct weft__cancel_token *cancel);

#endif
