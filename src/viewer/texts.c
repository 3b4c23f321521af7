/* texts.c: many small texts in one block.  SPDX-License-Identifier: ISC */
#include "viewer/texts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void weft__texts_clear(struct weft__texts *t)
{
	t->bytes.count = 0;
	t->failed = false;
}

static size_t add(struct weft__texts *t, const char *text, size_t len)
{
	if (t->failed || !weft_vec_reserve(&t->bytes, len + 2)) {
		t->failed = true;
		return 0;
	}
	if (t->bytes.count == 0)
		t->bytes.items[t->bytes.count++] = '\0';
	size_t at = t->bytes.count;
	memcpy(t->bytes.items + at, text, len);
	t->bytes.items[at + len] = '\0';
	t->bytes.count += len + 1;
	return at;
}

size_t weft__texts_add(struct weft__texts *t, const char *format, ...)
{
	char text[601];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	size_t len = n < 0 ? 0 : n < (int)sizeof text ? (size_t)n : sizeof text - 1;
	if (n >= (int)sizeof text) { /* the last character may be cut: it goes */
		while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
			len--;
		len -= len > 0 && (unsigned char)text[len - 1] >= 0xc0;
	}
	return add(t, text, len);
}

const char *weft__thousands(char buf[28], uint64_t number)
{
	size_t at = 27;
	buf[at] = '\0';
	for (int digits = 0; digits == 0 || number > 0; digits++) {
		if (digits > 0 && digits % 3 == 0)
			buf[--at] = ',';
		buf[--at] = (char)('0' + number % 10);
		number /= 10;
	}
	return buf + at;
}
