/* group.h: assigns promises to groups of rows.  SPDX-License-Identifier: ISC */
#ifndef WEFT_LAYOUT_GROUP_H
#define WEFT_LAYOUT_GROUP_H

#include "layout/layout.h"

#define WEFT_MAX_GROUPS 64 /* maximum number of groups; if there are more, the smallest ones share the last group */

/* Sets *out to an array with the group of each promise; the caller frees the array.  Groups are numbered in the order of their
 * first promises. *count is the number of groups. *is_rest says whether the last group holds the groups beyond WEFT_MAX_GROUPS.
 * Linear.  On failure (WEFT_ENOMEM) no output is changed. */
int weft_groups_find(
    uint16_t **out, size_t *count, bool *is_rest, const struct weft_model *model, enum weft_rows_by by, struct weft_error *err);

/* Formats the name of a promise's group, such as "read", "on_read (http.c:12)" or "libuv". */
size_t weft_group_name(const struct weft_model *model, uint32_t promise, enum weft_rows_by by, char *buf, size_t size);

/* Convert between an enum weft_rows_by and its name: "thread", "kind", "site" or "library".  The conversion from a name returns
 * false for any other text. */
const char *weft_rows_by_name(enum weft_rows_by by);
bool weft_rows_by_parse(enum weft_rows_by *out, const char *name, size_t len);

#endif
