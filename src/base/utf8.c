/* utf8.c: see utf8.h.  SPDX-License-Identifier: ISC */
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t weft_utf8_char_bytes(const unsigned char *p, size_t left)
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

static unsigned decode_char(const unsigned char *p, size_t n)
{
	unsigned code = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++)
		code = code << 6 | (p[i] & 0x3fu);
	return code;
}

/* Returns whether a control character can begin with the byte; characters with other first bytes need no further check. */
static bool can_be_control(unsigned char lead)
{
	return lead < 0x80 || lead == 0xc2 || lead == 0xd8 || lead == 0xe1 || lead == 0xe2 || lead == 0xef || lead == 0xf3;
}

unsigned weft_utf8_control_code(const unsigned char *p, size_t n)
{
	/* Ranges of codes: C0, C1, Arabic letter mark, Mongolian vowel separator, zero width space, direction marks, line ends
	 * and embeddings, invisible operators and isolates, byte order mark, annotations, tags. */
	static const struct {
		unsigned from, to;
	} controls[] = {{0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
	    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
	if (!can_be_control(p[0]))
		return 0;
	const unsigned code = decode_char(p, n);
	if (code < 0x61c)
		return code <= 0x1f || (code >= 0x7f && code <= 0x9f) ? code : 0;
	for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
		if (code >= controls[i].from && code <= controls[i].to)
			return code;
	return 0;
}

void weft_utf8_sanitize(char *text)
{
	char *to = text;
	for (size_t left = strlen(text); left > 0;) {
		const unsigned char *p = (const unsigned char *)text;
		size_t n = weft_utf8_char_bytes(p, left), consumed = n ? n : 1;
		if (n == 0 || weft_utf8_control_code(p, n))
			*to++ = '?';
		else
			for (size_t i = 0; i < n; i++)
				*to++ = text[i];
		text += consumed;
		left -= consumed;
	}
	*to = '\0';
}

size_t weft_utf8_copy(char *buf, size_t size, struct weft_str text)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	size_t whole = 0, written = 0, left = text.len;
	while (left > 0 && whole < size) {
		size_t len = weft_utf8_char_bytes(p, left), consumed = len ? len : 1;
		const void *from = len ? (const char *)p : "\xEF\xBF\xBD";
		len = len ? len : 3;
		if (written == whole && whole + len < size) {
			memcpy(buf + whole, from, len);
			written += len;
		}
		whole += len;
		p += consumed;
		left -= consumed;
	}
	if (size)
		buf[written] = '\0';
	return whole + left;
}
