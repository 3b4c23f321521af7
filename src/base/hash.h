/* hash.h: mixing bits for hash tables; not for anything that an enemy may choose.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t weft_hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	return x ^ x >> 32;
}

static inline uint64_t weft_hash_bytes(const char *bytes, size_t len)
{
	uint64_t hash = len * 0x9e3779b97f4a7c15u, word;
	for (; len >= 8; bytes += 8, len -= 8) {
		memcpy(&word, bytes, 8);
		hash = (hash ^ word) * 0xd6e8feb86659fd93u;
		hash ^= hash >> 29;
	}
	if (len) {
		word = 0;
		memcpy(&word, bytes, len);
		hash = (hash ^ word) * 0xd6e8feb86659fd93u;
	}
	return weft_hash_u64(hash);
}

#endif
