/* utf8.h: makes text bytes from a trace safe to show on a terminal or page.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stddef.h>

#include "base/str.h"

/* Returns the size of the character at p, where `left` > 0 bytes are left; 0 if there is no valid character.  NUL, overlong
 * forms, surrogates and codes above U+10FFFF are invalid. */
size_t weft_utf8_char_bytes(const unsigned char *p, size_t left);

/* Returns the code of a character of n bytes if it must not reach a terminal or page unescaped, or 0.  The characters that must
 * be escaped are control characters, direction changes, line ends and invisible characters, but not joiners, which some scripts
 * need. */
unsigned weft_utf8_control_code(const unsigned char *p, size_t n);

/* Replaces invalid bytes and control characters by question marks, so that the text stays in one line. */
void weft_utf8_sanitize(char *text);

/* Copies a text as valid UTF-8, terminates the copy, and cuts it at the end of a character if it is too long.  Each NUL, and
 * each byte that is not part of a valid character, becomes U+FFFD.  Returns the length of the copied text.  If the copy does
 * not fit, returns some number of at least `size`; the rest of the text is not examined. */
size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text);

#endif
