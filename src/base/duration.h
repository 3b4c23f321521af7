/* duration.h: formats and parses durations: a number with a unit.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_DURATION_H
#define WEFT_BASE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int64_t weft_max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t weft_min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#define WEFT_DURATION_BYTES 32 /* enough for any duration */

/* Parses "30ms", "1.5s", "2us" or "0".  Returns false, with *ns unchanged, unless the text is a duration of at least 0.  The
 * result is exact; a fraction of a ns is dropped. */
bool weft_duration_parse(const char *text, size_t len, int64_t *ns);

/* Formats a duration for users with three digits and a unit: "1.23 ms", "4.5 µs".  Terminates the text; returns the length of
 * the whole text, as snprintf does. */
size_t weft_duration_format(char *buf, size_t size, int64_t ns);

/* Formats a duration like weft_duration_format(), and returns buf. */
const char *weft_duration_text(char buf[WEFT_DURATION_BYTES], int64_t ns);

/* Chooses "us" instead of "µs" in texts for users, so that a command prints the same bytes on every terminal.  Must be called
 * while the process has only one thread. */
void weft_duration_set_ascii(bool ascii);

/* Formats a duration exactly and without a space, such as "1.2345ms", so that weft_duration_parse() can read it back; a
 * negative duration begins with "-". */
size_t weft_duration_format_exact(char *buf, size_t size, int64_t ns);

#endif
