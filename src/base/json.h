/* json.h: texts from a trace as JSON.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include "base/str.h"

/* The text as it stands between the quotation marks of a JSON string, which the caller writes: `put` gets it piece by piece.
 * Each byte that is no part of a character becomes U+FFFD; what weft_utf8_control() names is escaped, so that the text is safe
 * on a terminal, too.  Returns how many pieces were escapes or replaced. */
uint64_t weft_json_text(struct weft_str text, void (*put)(void *to, const char *bytes, size_t size), void *to);

#endif
