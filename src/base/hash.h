/* hash.h: hashes, of two sorts.
 *
 * Whoever makes a file decides what is in it, and where a fixed hash puts it: he could have all of it collide.  Tables of what
 * comes from files hash with a key that he cannot know.  No result depends on that key, nor on the order of a table.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- Fixed: the same in every process, for fingerprints and for what nobody chooses ---- */

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

/* ---- Keyed: for tables of what comes from files ---- */

/* Each table has one of its own. */
struct weft_hash_key {
	uint64_t words[2];
};

/* A random one.  A system call: once for each table. */
struct weft_hash_key weft_hash_key_new(void);

/* SipHash-1-3. */
uint64_t weft_hash_keyed(const struct weft_hash_key *key, const void *bytes, size_t len);

/* The same of the eight bytes of a number. */
uint64_t weft_hash_keyed_u64(const struct weft_hash_key *key, uint64_t x);

#endif
