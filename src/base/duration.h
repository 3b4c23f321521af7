/* duration.h: times as people write and read them: a number with a unit.  SPDX-License-Identifier: ISC */
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

#define WEFT_DURATION_BYTES 32 /* enough for any of them */

/* "30ms", "1.5s", "2us", "0": false, with *ns untouched, if it is not a time of at least 0.  Exact; below a ns it rounds down. */
bool weft_duration_parse(const char *text, size_t len, int64_t *ns);

/* To be read: three digits and the unit, "1.23 ms", "4.5 µs".  Terminated; returns its length, as snprintf does. */
size_t weft_duration_format(char *buf, size_t size, int64_t ns);

/* The same, and answers buf: for the middle of a sentence. */
const char *weft_duration_text(char buf[WEFT_DURATION_BYTES], int64_t ns);

/* Whether from now on it is "us" that is to be read: a command prints the same bytes on every terminal.  To be called while there
 * is one OS thread. */
void weft_duration_ascii(bool ascii);

/* To be parsed again: exact, without a space, "1.2345ms"; "-" before what is negative. */
size_t weft_duration_exact(char *buf, size_t size, int64_t ns);

#endif
