/* gzip.c: see gzip.h.  SPDX-License-Identifier: ISC */
#include "trace/gzip.h"

#ifdef WEFT_HAS_ZLIB

#include <limits.h>
#include <zlib.h>

#include "base/vec.h"
#include "trace/format.h"

enum { PIECE = 1 << 18, LOOK = 512 };

typedef WEFT_VEC(unsigned char) byte_vec;

bool weft__gzip_is(const unsigned char *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
}

/* Several that follow one another are one, as gzip has it. */
static int inflate_all(byte_vec *out, z_stream *z, size_t left, uint64_t most, bool (*is_known)(const unsigned char *, size_t))
{
	for (bool looked = false;;) {
		if (!weft_vec_reserve(out, PIECE))
			return WEFT_ENOMEM;
		if (z->avail_in == 0) {
			z->avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
			left -= z->avail_in;
		}
		z->next_out = out->items + out->count;
		z->avail_out = PIECE;
		const int status = inflate(z, Z_NO_FLUSH);
		out->count += PIECE - z->avail_out;
		const bool is_over = status == Z_BUF_ERROR || (status == Z_STREAM_END && !weft__gzip_is(z->next_in, z->avail_in));
		if (status == Z_MEM_ERROR)
			return WEFT_ENOMEM;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return WEFT_EDAMAGED;
		if (!looked && out->count >= LOOK) {
			looked = true;
			if (!is_known(out->items, out->count))
				return WEFT_OK;
		}
		if (out->count > most)
			return WEFT_ETOOBIG;
		if (is_over)
			return WEFT_OK;
		if (status == Z_STREAM_END)
			inflateReset(z);
	}
}

int weft__gzip_unpack(struct weft_blob *blob, uint64_t most, bool (*is_known)(const unsigned char *bytes, size_t size))
{
	byte_vec out = {0};
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)blob->bytes};
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return WEFT_ENOMEM;
	const int status = inflate_all(&out, &z, blob->size, most, is_known);
	inflateEnd(&z);
	if (status < 0) {
		weft_vec_free(&out);
		return status;
	}
	weft__blob_release(blob);
	*blob = (struct weft_blob){.bytes = out.items, .size = out.count, .owner = WEFT_BLOB_HEAP};
	return WEFT_OK;
}

#else

bool weft__gzip_is(const unsigned char *bytes, size_t size)
{
	return false;
}

int weft__gzip_unpack(struct weft_blob *blob, uint64_t most, bool (*is_known)(const unsigned char *bytes, size_t size))
{
	return WEFT_ENOMEM; /* none is one */
}

#endif
