/* hash.c: see hash.h.  SPDX-License-Identifier: ISC */
#include "base/hash.h"

#include <unistd.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void run_sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate_left(s->v1, 13) ^ s->v0;
	s->v3 = rotate_left(s->v3, 16) ^ s->v2;
	s->v0 = rotate_left(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate_left(s->v1, 17) ^ s->v2;
	s->v3 = rotate_left(s->v3, 21) ^ s->v0;
	s->v2 = rotate_left(s->v2, 32);
}

static inline struct sip init_sip(const struct weft_hash_key *key)
{
	return (struct sip){key->words[0] ^ 0x736f6d6570736575u, key->words[1] ^ 0x646f72616e646f6du,
	    key->words[0] ^ 0x6c7967656e657261u, key->words[1] ^ 0x7465646279746573u};
}

static inline void absorb_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	run_sip_round(s);
	s->v0 ^= word;
}

static inline uint64_t finish_sip(struct sip *s)
{
	s->v2 ^= 0xff;
	run_sip_round(s);
	run_sip_round(s);
	run_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

struct weft_hash_key weft_hash_key_new(void)
{
	struct weft_hash_key key;
	if (getentropy(&key, sizeof key) < 0) /* addresses, which the loader randomizes, are a better key than a fixed one */
		key = (struct weft_hash_key){{(uint64_t)(uintptr_t)&key, (uint64_t)(uintptr_t)&weft_hash_key_new}};
	return key;
}

uint64_t weft_hash_keyed(const struct weft_hash_key *key, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	struct sip s = init_sip(key);
	uint64_t word, last = (uint64_t)len << 56;
	for (size_t left = len; left >= 8; left -= 8, at += 8) {
		memcpy(&word, at, 8);
		absorb_word(&s, word);
	}
	for (size_t i = 0; i < len % 8; i++)
		last |= (uint64_t)at[i] << 8 * i;
	absorb_word(&s, last);
	return finish_sip(&s);
}

uint64_t weft_hash_keyed_u64(const struct weft_hash_key *key, uint64_t x)
{
	struct sip s = init_sip(key);
	absorb_word(&s, x);
	absorb_word(&s, (uint64_t)8 << 56);
	return finish_sip(&s);
}
