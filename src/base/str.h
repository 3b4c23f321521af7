/* str.h: bytes that somebody else owns.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_STR_H
#define WEFT_BASE_STR_H

#include <stdint.h>

/* Not terminated, perhaps not UTF-8, perhaps with NUL inside. */
struct weft_str {
	const char *ptr;
	uint32_t len;
};

#endif
