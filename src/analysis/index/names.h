/* names.h: formats names of promises for use in sentences: valid UTF-8 in one line, without control characters, cut to fit.
 *
 * Each function writes to `buf` and returns `buf`.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_NAMES_H
#define WEFT_ANALYSIS_INDEX_NAMES_H

#include "model/model.h"

#define WEFT_NAME_BYTES 192

/* Names a promise: `task 14 "ARP response"`, `bind 9`. */
const char *weft_name_promise(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* Names a promise with another label, which is given by its text number; without a label if the number is WEFT_NONE. */
const char *weft_name_promise_as(const struct weft_model *model, uint32_t promise, uint32_t label, char buf[WEFT_NAME_BYTES]);
/* Names the source location of a promise: `file.c:12 in function`, or "" if it is unknown. */
const char *weft_name_site(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* Names a site of the trace in the same form: `file.c:12 in function`; "" for WEFT_NONE. */
const char *weft_name_place(const struct weft_model *model, uint32_t site, char buf[WEFT_NAME_BYTES]);
/* Names the type of a promise: `"ARP response"`; without a label `bind at file.c:12`; without a site its kind. */
const char *weft_name_type(const struct weft_model *model, uint32_t promise, char buf[WEFT_NAME_BYTES]);
/* Copies a text without its control characters, cut to fit. */
const char *weft_name_sanitize(struct weft_str text, char *buf, size_t size);
/* Copies the text with a number in the trace, without control characters. */
const char *weft_name_text(const struct weft_model *model, uint32_t text, char *buf, size_t size);

#endif
