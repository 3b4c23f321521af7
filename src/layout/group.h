/* group.h: rows in groups: which promise is in which.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_GROUP_H
#define WEFT_LAYOUT_GROUP_H

#include "layout/layout.h"

#define WEFT_GROUPS_MOST 64 /* the smallest of more are one, the last */

/* By promise, the number of its group, the caller's to free; groups are numbered as their first promises are.  *count: how many
 * there are; *is_rest: the last is what is left of more.  Linear.  On failure all are untouched: WEFT_ENOMEM. */
int weft_groups_find(
    uint16_t **out, size_t *count, bool *is_rest, const struct weft_model *model, enum weft_rows_by by, struct weft_error *err);

/* What a promise is grouped by, in words: "read", "on_read (http.c:12)", "libuv". */
size_t weft_group_name(const struct weft_model *model, uint32_t promise, enum weft_rows_by by, char *buf, size_t size);

/* "kind", "site", "library", "thread"; false: none of these. */
const char *weft_rows_by_name(enum weft_rows_by by);
bool weft_rows_by_parse(enum weft_rows_by *out, const char *name, size_t len);

#endif
