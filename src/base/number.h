/* number.h: formats counts for users.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_NUMBER_H
#define WEFT_BASE_NUMBER_H

#include <stdint.h>

#define WEFT_NUMBER_BYTES 28 /* enough for any number */

/* Formats a number with commas, "1,234,567"; the result points into buf, but not always to its beginning. */
const char *weft_number_text(char buf[WEFT_NUMBER_BYTES], uint64_t number);

/* Formats a signed number with commas, with "-" if it is negative. */
const char *weft_number_text_signed(char buf[WEFT_NUMBER_BYTES], int64_t number);

#endif
