/* select.c: see select.h.  SPDX-License-Identifier: ISC */
#include "base/select.h"

/* Selects by the bytes of the numbers, the highest byte first; moves numbers whose byte differs from the wanted byte to the
 * end. */
int64_t weft_select_kth(int64_t *numbers, size_t count, size_t k)
{
	uint64_t all_bits = 0;
	for (size_t i = 0; i < count; i++)
		all_bits |= (uint64_t)numbers[i];
	for (int shift = 56; shift >= 0; shift -= 8) {
		size_t bucket_counts[256] = {0}, byte = 0, match_count = 0;
		if (all_bits >> shift == 0)
			continue;
		for (size_t i = 0; i < count; i++)
			bucket_counts[(uint64_t)numbers[i] >> shift & 255]++;
		while (k >= bucket_counts[byte])
			k -= bucket_counts[byte++];
		for (size_t i = 0; i < count; i++)
			if (((uint64_t)numbers[i] >> shift & 255) == byte) {
				int64_t other = numbers[match_count];
				numbers[match_count++] = numbers[i];
				numbers[i] = other;
			}
		count = match_count;
	}
	return numbers[0];
}
