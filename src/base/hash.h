/* hash.h: computes fixed hashes and keyed hashes.
 *
 * The author of a file chooses its contents, and could make all of its keys collide under a fixed hash.  Hash tables of data
 * from files therefore use a random key.  No result of weft depends on that key or on the order of items in a table.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_HASH_H
#define WEFT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- Fixed hashes: the same in every process, for fingerprints and for data that no attacker chooses ---- */

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

/* ---- Keyed hashes: for tables of data from files ---- */

/* A random key for hashes; each table has its own key. */
struct weft_hash_key {
	uint64_t words[2];
};

/* Returns a random key.  Makes a system call, so it should be called only once for each table. */
struct weft_hash_key weft_hash_key_new(void);

/* Computes SipHash-1-3. */
uint64_t weft_hash_keyed(const struct weft_hash_key *key, const void *bytes, size_t len);

/* Computes SipHash-1-3 of the eight bytes of a number. */
uint64_t weft_hash_keyed_u64(const struct weft_hash_key *key, uint64_t x);

#endif
