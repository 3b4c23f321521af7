/* packed.c: unpacks files of gzip and zstd (packed.h).
 * SPDX-License-Identifier: ISC */
#include "trace/packed.h"

#if defined(WEFT_HAS_ZLIB) || defined(WEFT_HAS_ZSTD)

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef WEFT_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef WEFT_HAS_ZSTD
#include <zstd.h>
#endif

#include "trace/format.h"

enum { PIECE_BYTES = 1 << 18, PROBE_BYTES = 512, PAGE_BYTES = 4096 };

/* Most memory for unpacked bytes: a multiple of the packed bytes, plus the memory that a trace with many idle threads needs. */
enum { FREE_BYTES = 256 << 20, FILLED_PER_BYTE = 64 };

/* Unpacked bytes, in address space that takes memory only for pages that are not zero, because rings are mostly empty. */
struct unpacked {
	unsigned char *bytes;
	size_t count, reserved;
	uint64_t filled, max_filled; /* number of bytes in pages that have other bytes than zeros; its maximum */
	uint64_t max_bytes;
	bool (*is_known)(const unsigned char *bytes, size_t size);
	bool is_checked; /* is_known was asked */
};

static bool reserve(struct unpacked *out, uint64_t max_bytes)
{
	for (uint64_t bytes = max_bytes + 2 * (uint64_t)PIECE_BYTES; bytes >= 2 * (uint64_t)PIECE_BYTES; bytes /= 2) {
		void *at = bytes > SIZE_MAX ? MAP_FAILED
					    : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
						  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			continue;
		out->bytes = at;
		out->reserved = (size_t)bytes;
		return true;
	}
	return false;
}

/* Adds bytes, but leaves out pages of zeros. */
static int append(struct unpacked *out, const unsigned char *bytes, size_t size)
{
	static const unsigned char zeros[PAGE_BYTES];
	if (out->count + size > out->max_bytes)
		return WEFT_ETOOBIG;
	if (out->count + size > out->reserved)
		return WEFT_ENOMEM;
	for (size_t at = 0, n; at < size; at += n) {
		n = PAGE_BYTES - (out->count + at) % PAGE_BYTES;
		n = n < size - at ? n : size - at;
		if (memcmp(bytes + at, zeros, n) == 0)
			continue;
		out->filled += n;
		if (out->filled > out->max_filled)
			return WEFT_ETOOBIG;
		memcpy(out->bytes + out->count + at, bytes + at, n);
	}
	out->count += size;
	return WEFT_OK;
}

/* Adds unpacked bytes.  Adds unpacked bytes; returns 1 if no format knows the first of them, so that the rest is not needed. */
static int add_piece(struct unpacked *out, const unsigned char *piece, size_t size)
{
	const int status = append(out, piece, size);
	if (status < 0 || out->is_checked || out->count < PROBE_BYTES)
		return status;
	out->is_checked = true;
	return !out->is_known(out->bytes, out->count);
}

/* ---- gzip ---- */

static bool is_gzip(const unsigned char *bytes, size_t size)
{
#ifdef WEFT_HAS_ZLIB
	return size >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8;
#else
	return false;
#endif
}

#ifdef WEFT_HAS_ZLIB
/* Unpacks all members; as in gzip, consecutive members form one file. */
static int inflate_all(struct unpacked *out, unsigned char *piece, z_stream *z, size_t left)
{
	for (;;) {
		if (z->avail_in == 0) {
			z->avail_in = left < UINT_MAX ? (uInt)left : UINT_MAX;
			left -= z->avail_in;
		}
		z->next_out = piece;
		z->avail_out = PIECE_BYTES;
		const int status = inflate(z, Z_NO_FLUSH);
		const bool is_over = status == Z_BUF_ERROR || (status == Z_STREAM_END && !is_gzip(z->next_in, z->avail_in));
		if (status == Z_MEM_ERROR)
			return WEFT_ENOMEM;
		if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
			return WEFT_EDAMAGED;
		const int added = add_piece(out, piece, PIECE_BYTES - z->avail_out);
		if (added != WEFT_OK || is_over)
			return added < 0 ? added : WEFT_OK;
		if (status == Z_STREAM_END)
			inflateReset(z);
	}
}

static int unpack_gzip(struct unpacked *out, unsigned char *piece, const struct weft_blob *blob)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)blob->bytes};
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return WEFT_ENOMEM;
	const int status = inflate_all(out, piece, &z, blob->size);
	inflateEnd(&z);
	return status;
}
#else
static int unpack_gzip(struct unpacked *out, unsigned char *piece, const struct weft_blob *blob)
{
	return WEFT_ENOMEM; /* this build cannot unpack */
}
#endif

/* ---- zstd ---- */

static bool is_zstd(const unsigned char *bytes, size_t size)
{
#ifdef WEFT_HAS_ZSTD
	return size >= 4 && bytes[0] == 0x28 && bytes[1] == 0xb5 && bytes[2] == 0x2f && bytes[3] == 0xfd;
#else
	return false;
#endif
}

#ifdef WEFT_HAS_ZSTD
/* Unpacks all frames; the library limits the memory for the window of a frame to 128 MB. */
static int unpack_zstd(struct unpacked *out, unsigned char *piece, const struct weft_blob *blob)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = {.src = blob->bytes, .size = blob->size};
	int status = z ? WEFT_OK : WEFT_ENOMEM;
	for (bool has_more = true; status == WEFT_OK && has_more;) {
		ZSTD_outBuffer to = {.dst = piece, .size = PIECE_BYTES};
		const size_t got = ZSTD_decompressStream(z, &to, &in);
		const int added = ZSTD_isError(got) ? WEFT_EDAMAGED : add_piece(out, piece, to.pos);
		status = added < 0 ? added : WEFT_OK;
		has_more = added == WEFT_OK && (in.pos < in.size || to.pos == to.size);
	}
	ZSTD_freeDStream(z);
	return status;
}
#else
static int unpack_zstd(struct unpacked *out, unsigned char *piece, const struct weft_blob *blob)
{
	return WEFT_ENOMEM; /* this build cannot unpack */
}
#endif

/* ---- Both ---- */

bool weft__packed_is(const unsigned char *bytes, size_t size)
{
	return is_gzip(bytes, size) || is_zstd(bytes, size);
}

/* Returns the address space behind the bytes to the system. */
static void take_unpacked(struct weft_blob *blob, struct unpacked *out)
{
	const size_t used = (out->count + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	if (used < out->reserved && munmap(out->bytes + used, out->reserved - used) == 0)
		out->reserved = used;
	weft__blob_release(blob);
	*blob = (struct weft_blob){.bytes = out->bytes, .size = out->count, .mapped = out->reserved, .owner = WEFT_BLOB_HEAP};
}

int weft__packed_unpack(struct weft_blob *blob, uint64_t max_bytes, bool (*is_known)(const unsigned char *bytes, size_t size))
{
	struct unpacked out = {.max_filled = (uint64_t)FREE_BYTES + (uint64_t)FILLED_PER_BYTE * blob->size,
	    .max_bytes = max_bytes,
	    .is_known = is_known};
	unsigned char *piece = malloc(PIECE_BYTES);
	int status = piece && reserve(&out, max_bytes) ? WEFT_OK : WEFT_ENOMEM;
	if (status == WEFT_OK)
		status = (is_gzip(blob->bytes, blob->size) ? unpack_gzip : unpack_zstd)(&out, piece, blob);
	free(piece);
	if (status == WEFT_OK)
		take_unpacked(blob, &out);
	else if (out.bytes)
		munmap(out.bytes, out.reserved);
	return status;
}

#else

bool weft__packed_is(const unsigned char *bytes, size_t size)
{
	return false;
}

int weft__packed_unpack(struct weft_blob *blob, uint64_t max_bytes, bool (*is_known)(const unsigned char *bytes, size_t size))
{
	return WEFT_ENOMEM; /* this build cannot unpack */
}

#endif
