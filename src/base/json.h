/* json.h: writes texts from a trace as JSON.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/str.h"

/* Writes the text as the contents of a JSON string, piece by piece, through `write`; the caller writes the quotation marks.
 * Each byte that is not part of a valid character becomes U+FFFD.  Characters with a weft_utf8_control_code() are escaped, so
 * that the output is safe on a terminal.  Returns the number of characters and bytes that were escaped or replaced. */
uint64_t weft_json_text(struct weft_str text, void (*write)(void *to, const char *bytes, size_t size), void *to);

#endif
