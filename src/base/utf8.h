/* utf8.h: makes bytes from a trace safe to show.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stddef.h>

#include "base/str.h"

/* Returns the size of the character at p, which has `left` > 0 bytes; 0 if there is no valid character.  NUL, overlong forms,
 * surrogates and codes above U+10FFFF are invalid. */
size_t weft_utf8_char_bytes(const unsigned char *p, size_t left);

/* Returns the code of a character of n bytes that must not reach a terminal or page unescaped, or 0.  Returned are control
 * characters, direction changes, line ends and invisible characters, but not joiners, which scripts need. */
unsigned weft_utf8_control_code(const unsigned char *p, size_t n);

/* Replaces invalid bytes and control characters by question marks, so that the text stays one line. */
void weft_utf8_sanitize(char *text);

/* Copies text as valid UTF-8, terminated, cut at the end of a character.  Each NUL, and each byte that is no part of a character,
 * becomes U+FFFD.  Returns the length of the copy.  If the copy does not fit, returns some length of at least `size`; the rest of
 * the text is not examined. */
size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text);

#endif
