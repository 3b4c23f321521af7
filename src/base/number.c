/* number.c: see number.h.  SPDX-License-Identifier: ISC */
#include "base/number.h"

const char *weft_number_text(char buf[WEFT_NUMBER_BYTES], uint64_t number)
{
	unsigned at = WEFT_NUMBER_BYTES - 1;
	buf[at] = '\0';
	for (int digits = 0; digits == 0 || number > 0; digits++) {
		if (digits > 0 && digits % 3 == 0)
			buf[--at] = ',';
		buf[--at] = (char)('0' + number % 10);
		number /= 10;
	}
	return buf + at;
}

const char *weft_number_text_signed(char buf[WEFT_NUMBER_BYTES], int64_t number)
{
	const uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char *at = buf + (weft_number_text(buf, size) - buf);
	if (number < 0)
		*--at = '-';
	return at;
}
