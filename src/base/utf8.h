/* utf8.h: bytes from a trace made fit to show.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stddef.h>

#include "base/str.h"

/* The bytes of the character at p, of `left` > 0 that there are; 0 where there is none: NUL, overlong forms, surrogates and
 * what is above U+10FFFF are none. */
size_t weft_utf8_character(const unsigned char *p, size_t left);

/* The code of a character of n bytes that is not to reach a terminal or a page as it is, or 0: control characters, what changes
 * the direction of what follows, where a line ends, and what nobody can see.  Joiners, which scripts need, are none. */
unsigned weft_utf8_control(const unsigned char *p, size_t n);

/* Replaces by a question mark what is no character, and every control, so that the text stays one line as it looks. */
void weft_utf8_tame(char *text);

/* Copies text as valid UTF-8, terminated, cut at the end of a character; each byte that is no part of one becomes U+FFFD, and
 * so does NUL.  Returns the length of the copy, or if not all of it fits, some length of at least `size`: the rest of a long text
 * is not looked at. */
size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text);

#endif
