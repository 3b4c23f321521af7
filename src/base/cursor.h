/* cursor.h: reads little-endian numbers from a buffer and never reads beyond its end.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_CURSOR_H
#define WEFT_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

static inline uint16_t weft_load_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t weft_load_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t weft_load_u64(const unsigned char *p)
{
	return weft_load_u32(p) | (uint64_t)weft_load_u32(p + 4) << 32;
}

/* A position in bytes.  Each read function returns false and does not move the cursor if fewer bytes are left than it needs. */
struct weft_cursor {
	const unsigned char *at, *end;
};

static inline size_t weft_cursor_left(const struct weft_cursor *c)
{
	return (size_t)(c->end - c->at);
}

static inline bool weft_read_u8(struct weft_cursor *c, uint8_t *out)
{
	if (c->at == c->end)
		return false;
	*out = *c->at++;
	return true;
}

static inline bool weft_read_u16(struct weft_cursor *c, uint16_t *out)
{
	if (weft_cursor_left(c) < 2)
		return false;
	*out = weft_load_u16(c->at);
	c->at += 2;
	return true;
}

static inline bool weft_read_u32(struct weft_cursor *c, uint32_t *out)
{
	if (weft_cursor_left(c) < 4)
		return false;
	*out = weft_load_u32(c->at);
	c->at += 4;
	return true;
}

static inline bool weft_read_u64(struct weft_cursor *c, uint64_t *out)
{
	if (weft_cursor_left(c) < 8)
		return false;
	*out = weft_load_u64(c->at);
	c->at += 8;
	return true;
}

/* Reads a string that ends in NUL; *out excludes the NUL.  Fails if the length of the string does not fit in 32 bits. */
static inline bool weft_read_string(struct weft_cursor *c, struct weft_str *out)
{
	const unsigned char *nul = c->at == c->end ? NULL : memchr(c->at, 0, weft_cursor_left(c));
	if (!nul || (uint64_t)(nul - c->at) > UINT32_MAX)
		return false;
	out->ptr = (const char *)c->at;
	out->len = (uint32_t)(nul - c->at);
	c->at = nul + 1;
	return true;
}

#endif
