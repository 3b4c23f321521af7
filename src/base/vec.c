/* vec.c: see vec.h.  SPDX-License-Identifier: ISC */
#include "base/vec.h"

#include <stdint.h>

bool weft__vec_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes)
{
	size_t wanted = *capacity < 8 ? 8 : *capacity;
	while (wanted < needed) {
		if (wanted > SIZE_MAX / 2)
			return false;
		wanted *= 2;
	}
	if (wanted == *capacity)
		wanted *= 2;
	if (wanted > SIZE_MAX / item_bytes)
		return false;
	void *grown = realloc(*items, wanted * item_bytes);
	if (!grown)
		return false;
	*items = grown;
	*capacity = wanted;
	return true;
}
