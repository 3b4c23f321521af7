/* utf8.h: bytes from a trace made fit to show.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stddef.h>

#include "base/str.h"

/* The bytes of the character at p, of `left` > 0 that there are; 0 where there is none: NUL, overlong forms, surrogates and
 * what is above U+10FFFF are none. */
size_t weft_utf8_character(const unsigned char *p, size_t left);

/* Copies text as valid UTF-8, terminated, cut at the end of a character; each byte that is no part of one becomes U+FFFD, and
 * so does NUL.  Returns the length of the copy, or if not all of it fits, some length of at least `size`: the rest of a long text
 * is not looked at. */
size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text);

#endif
