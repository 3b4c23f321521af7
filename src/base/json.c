/* json.c: see json.h.  SPDX-License-Identifier: ISC */
#include "base/json.h"

#include <stdio.h>

#include "base/utf8.h"

/* Returns the number of bytes from p on that need no escape in JSON. */
static size_t count_plain_bytes(const unsigned char *p, size_t left)
{
	size_t i = 0;
	while (i < left) {
		if (p[i] >= ' ' && p[i] < 0x7f) {
			if (p[i] == '"' || p[i] == '\\')
				break;
			i++;
			continue;
		}
		const size_t n = weft_utf8_char_bytes(p + i, left - i);
		if (n == 0 || weft_utf8_control_code(p + i, n))
			break;
		i += n;
	}
	return i;
}

/* Formats the n bytes at p as a JSON escape; n is 0 if they are no valid character. */
static size_t format_escape(char out[16], const unsigned char *p, size_t n)
{
	if (n == 0)
		return (size_t)snprintf(out, 16, "\xef\xbf\xbd");
	if (p[0] == '"' || p[0] == '\\')
		return (size_t)snprintf(out, 16, "\\%c", p[0]);
	if (p[0] == '\n' || p[0] == '\t')
		return (size_t)snprintf(out, 16, "\\%c", p[0] == '\n' ? 'n' : 't');
	const unsigned code = weft_utf8_control_code(p, n);
	if (code > 0xffff) // JSON needs two surrogates for these
		return (size_t)snprintf(
		    out, 16, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff));
	return (size_t)snprintf(out, 16, "\\u%04x", code);
}

uint64_t weft_json_text(struct weft_str text, void (*write)(void *to, const char *bytes, size_t size), void *to)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	uint64_t escapes = 0;
	for (size_t i = 0; i < text.len;) {
		const size_t plain = count_plain_bytes(p + i, text.len - i);
		if (plain > 0)
			write(to, text.ptr + i, plain);
		i += plain;
		if (i == text.len)
			break;
		const size_t n = weft_utf8_char_bytes(p + i, text.len - i);
		char out[16];
		write(to, out, format_escape(out, p + i, n));
		escapes++;
		i += n ? n : 1;
	}
	return escapes;
}
