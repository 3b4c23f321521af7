/* select.c: see select.h.  SPDX-License-Identifier: ISC */
#include "base/select.h"

/* By bytes, the highest first: those that have another byte than the one looked for are put behind. */
int64_t weft_select(int64_t *numbers, size_t count, size_t k)
{
	uint64_t any = 0;
	for (size_t i = 0; i < count; i++)
		any |= (uint64_t)numbers[i];
	for (int shift = 56; shift >= 0; shift -= 8) {
		size_t with[256] = {0}, byte = 0, kept = 0;
		if (any >> shift == 0)
			continue;
		for (size_t i = 0; i < count; i++)
			with[(uint64_t)numbers[i] >> shift & 255]++;
		while (k >= with[byte])
			k -= with[byte++];
		for (size_t i = 0; i < count; i++)
			if (((uint64_t)numbers[i] >> shift & 255) == byte) {
				int64_t other = numbers[kept];
				numbers[kept++] = numbers[i];
				numbers[i] = other;
			}
		count = kept;
	}
	return numbers[0];
}
