/* utf8.c: see utf8.h.  SPDX-License-Identifier: ISC */
#include "base/utf8.h"

#include <string.h>

size_t weft_utf8_character(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return p[0] != 0;
	size_t len = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
	if (len == 0 || len > left)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xC0) != 0x80)
			return 0;
	if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
	    (p[0] == 0xF4 && p[1] > 0x8F))
		return 0;
	return len;
}

size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	size_t whole = 0, written = 0, left = text.len;
	while (left > 0 && whole < size) {
		size_t len = weft_utf8_character(p, left), taken = len ? len : 1;
		const void *from = len ? (const char *)p : "\xEF\xBF\xBD";
		len = len ? len : 3;
		if (written == whole && whole + len < size) {
			memcpy(buf + whole, from, len);
			written += len;
		}
		whole += len;
		p += taken;
		left -= taken;
	}
	if (size)
		buf[written] = '\0';
	return whole + left;
}
