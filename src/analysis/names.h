/* names.h: what promises are called in sentences: valid UTF-8 in one line, without control characters, cut where it is long.
 *
 * Each writes into `buf` and returns it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_NAMES_H
#define WEFT_ANALYSIS_NAMES_H

#include "model/model.h"

#define WEFT_NAME_BYTES 192

/* `task 14 "ARP response"`, `bind 9`. */
const char *weft_name_promise(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* The same with another label, by its text's number; WEFT_NONE: without one. */
const char *weft_name_promise_as(const struct weft_model *model, uint32_t promise, uint32_t label, char buf[WEFT_NAME_BYTES]);
/* `file.c:12 in function`, or nothing. */
const char *weft_name_place(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* `"ARP response"`, else `bind at file.c:12`, else its kind: what promises of a sort have in common. */
const char *weft_name_sort(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* A text without control characters, cut to fit. */
const char *weft_name_clean(struct weft_str text, char *buf, size_t size);
/* A text of the trace. */
const char *weft_name_text(const struct weft_model *model, uint32_t text, char *buf, size_t size);

#endif
