/* number.h: counts as people read them.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_NUMBER_H
#define WEFT_BASE_NUMBER_H

#include <stdint.h>

#define WEFT_NUMBER_BYTES 28 /* enough for any of them */

/* "1,234,567", which stands somewhere in buf. */
const char *weft_thousands(char buf[WEFT_NUMBER_BYTES], uint64_t number);

/* The same, "-" before what is negative. */
const char *weft_thousands_signed(char buf[WEFT_NUMBER_BYTES], int64_t number);

#endif
