/* names.h: names of promises for sentences: valid UTF-8 in one line, without control characters, cut to fit.
 *
 * Each function writes to `buf` and returns it.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_NAMES_H
#define WEFT_ANALYSIS_INDEX_NAMES_H

#include "model/model.h"

#define WEFT_NAME_BYTES 192

/* `task 14 "ARP response"`, `bind 9`. */
const char *weft_name_promise(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* The same with another label, given by its text number; WEFT_NONE: without a label. */
const char *weft_name_promise_as(const struct weft_model *model, uint32_t promise, uint32_t label, char buf[WEFT_NAME_BYTES]);
/* `file.c:12 in function`, or "" if the site is unknown. */
const char *weft_name_site(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* The same for a site of the trace; WEFT_NONE: "". */
const char *weft_name_place(const struct weft_model *model, uint32_t site, char buf[WEFT_NAME_BYTES]);
/* The type: `"ARP response"`, without a label `bind at file.c:12`, without a site the kind. */
const char *weft_name_type(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* A text without control characters, cut to fit. */
const char *weft_name_sanitize(struct weft_str text, char *buf, size_t size);
/* A text of the trace. */
const char *weft_name_text(const struct weft_model *model, uint32_t text, char *buf, size_t size);

#endif
