/* scrub.c: see scrub.h.  SPDX-License-Identifier: ISC */
#include "export/scrub.h"

#include <stdlib.h>
#include <string.h>

/* What readers look for in texts, in lower case: src/model/model.c, findings.  These tell nothing of the program. */
static const char *const anywhere[] = {"cancel", "no such file", "not found", "notfound", "not_found", "enoent", "404",
    "end of file", "eof", "sleep", "garbage", "finalized without ever returning", "nobody asked for its result", "started again",
    "\xe2\x80\xa6"};
/* Only where a text begins so. */
static const char *const in_front[] = {"gc", "from "};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_at(const char *text, uint32_t bytes, uint32_t at, const char *word)
{
	uint32_t i = 0;
	while (word[i] && at + i < bytes && lower(text[at + i]) == word[i])
		i++;
	return !word[i];
}

/* How many bytes at that place stay as they are because weft knows them. */
static uint32_t known_at(const char *text, uint32_t bytes, uint32_t at)
{
	for (size_t i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
		if (is_at(text, bytes, at, anywhere[i]))
			return (uint32_t)strlen(anywhere[i]);
	for (size_t i = 0; at == 0 && i < sizeof in_front / sizeof *in_front; i++)
		if (is_at(text, bytes, 0, in_front[i]))
			return (uint32_t)strlen(in_front[i]);
	return bytes == 3 && at == 0 && memcmp(text, "end", 3) == 0 ? 3 : 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

static bool is_word(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* A number, as shapes have it (src/analysis/shapes.c): hexadecimal, with a digit in it. */
static bool is_number(const char *text, uint32_t bytes)
{
	bool digit = false;
	for (uint32_t i = 0; i < bytes; i++) {
		if (is_word(text[i]) && !is_hex(text[i]))
			return false;
		digit |= is_digit(text[i]);
	}
	return digit;
}

static uint32_t end_of_word(const char *text, uint32_t bytes, uint32_t at)
{
	while (at < bytes && is_word(text[at]) && !known_at(text, bytes, at))
		at++;
	return at;
}

/* The next word at or behind *at: [*at, returned).  An address is one: numbers that '.', ':' and '-' join.  Empty: there is none.
 */
static uint32_t next_word(const char *text, uint32_t bytes, uint32_t *at)
{
	uint32_t known;
	while (*at < bytes && ((known = known_at(text, bytes, *at)) > 0 || !is_word(text[*at])))
		*at += known ? known : 1;
	uint32_t end = end_of_word(text, bytes, *at);
	while (end > *at && end + 1 < bytes && is_number(text + *at, end - *at) && memchr(".:-", text[end], 3)) {
		const uint32_t more = end_of_word(text, bytes, end + 1);
		if (more == end + 1 || !is_number(text + end + 1, more - end - 1))
			break;
		end = more;
	}
	return end;
}

/* Of short words alone: then the text as a whole is one, so that it cannot turn out to be another. */
static bool is_one_word(const char *text, uint32_t bytes)
{
	enum { SHORT = 3, LONGEST = 64 };
	uint32_t at = 0, end;
	if (bytes <= SHORT || bytes > LONGEST)
		return false;
	for (uint32_t i = 0; i < bytes; i++)
		if (known_at(text, bytes, i))
			return false;
	for (; (end = next_word(text, bytes, &at)) > at; at = end)
		if (end - at > SHORT)
			return false;
	return true;
}

/* ---- Words ---- */

static uint32_t number_of(struct weft_scrub *s, const char *word, uint32_t bytes)
{
	const size_t known = s->words.texts.count;
	const uint32_t number = s->no_memory ? WEFT_INTERN_FAILED : weft_intern(&s->words, (struct weft_str){word, bytes});
	if (number == WEFT_INTERN_FAILED) {
		s->no_memory = true;
		return number;
	}
	if (number < known)
		return number;
	char *own = malloc(bytes), **slot = weft_vec_push(&s->owned);
	bool *used = weft_vec_push(&s->used);
	uint32_t *stand_in = weft_vec_push(&s->stand_ins);
	if (slot)
		*slot = own;
	if (!own || !slot || !used || !stand_in) {
		if (!slot)
			free(own);
		s->no_memory = true;
		return WEFT_INTERN_FAILED;
	}
	*used = false;
	*stand_in = 0;
	s->words.texts.items[number].ptr = memcpy(own, word, bytes);
	return number;
}

/* What letters and digits stand for at a try; what reads well is tried first. */
static void make(char *out, const char *word, uint32_t bytes, uint64_t seed, bool reads_well)
{
	static const char vowels[] = "aeiou", consonants[] = "bdfgklmnprstvz";
	static const char own[] = "127."; /* every machine's address of itself: no other one is meant */
	const bool number = is_number(word, bytes), is_own = bytes > 4 && memcmp(word, own, 4) == 0;
	bool vowel = false;
	for (uint32_t i = 0; i < bytes; i++) {
		seed = weft_hash_u64(seed + 0x9e3779b97f4a7c15u + i);
		const unsigned any = (unsigned)(seed >> 32);
		const char upper = word[i] >= 'A' && word[i] <= 'Z' ? 'A' - 'a' : 0;
		if (!is_word(word[i]) || (is_own && i < 4))
			out[i] = word[i];
		else if (is_digit(word[i]))
			out[i] = (char)('0' + any % 10);
		else if (number)
			out[i] = (char)('a' + any % 6 + upper);
		else if (!reads_well)
			out[i] = (char)('a' + any % 26 + upper);
		else
			out[i] = (char)((vowel ? vowels[any % 5] : consonants[any % 14]) + upper);
		vowel = !vowel;
	}
}

/* Whether each part is a number where the other one's is. */
static bool has_same_shape(const char *word, const char *out, uint32_t bytes)
{
	for (uint32_t at = 0, end; at < bytes; at = end + 1) {
		for (end = at; end < bytes && is_word(word[end]);)
			end++;
		if (is_number(word + at, end - at) != is_number(out + at, end - at))
			return false;
	}
	return true;
}

static bool is_allowed(struct weft_scrub *s, const char *word, const char *out, uint32_t bytes, bool may_meet)
{
	enum { SHORT = 3 };
	if (memcmp(word, out, bytes) == 0 || !has_same_shape(word, out, bytes))
		return false;
	for (uint32_t i = 0; i < bytes; i++)
		if (known_at(out, bytes, i))
			return false;
	const uint32_t number = number_of(s, out, bytes);
	if (number == WEFT_INTERN_FAILED || s->used.items[number])
		return number == WEFT_INTERN_FAILED;
	return bytes <= SHORT || may_meet || number >= s->word_count;
}

static const char *stand_in_of(struct weft_scrub *s, uint32_t number)
{
	enum { TRIES = 200 };
	char out[64], *longer = NULL, *made = out;
	const struct weft_str word = s->words.texts.items[number];
	if (s->stand_ins.items[number])
		return s->words.texts.items[s->stand_ins.items[number] - 1].ptr;
	if (word.len > sizeof out && !(made = longer = malloc(word.len))) {
		s->no_memory = true;
		return NULL;
	}
	for (unsigned i = 0; i < TRIES; i++) {
		make(made, word.ptr, word.len, (uint64_t)number << 16 | i, i < TRIES / 4);
		if (is_allowed(s, word.ptr, made, word.len, i > TRIES * 3 / 4))
			break;
	}
	const uint32_t stand_in = number_of(s, made, word.len);
	free(longer);
	if (stand_in == WEFT_INTERN_FAILED)
		return NULL;
	s->used.items[stand_in] = true;
	s->stand_ins.items[number] = stand_in + 1;
	return s->words.texts.items[stand_in].ptr;
}

void weft_scrub_learn(struct weft_scrub *s, const char *text, uint32_t bytes)
{
	uint32_t at = 0, end;
	if (is_one_word(text, bytes))
		number_of(s, text, bytes);
	else
		for (; (end = next_word(text, bytes, &at)) > at; at = end)
			number_of(s, text + at, end - at);
	s->word_count = (uint32_t)s->words.texts.count;
}

static void replace_word(struct weft_scrub *s, char *text, uint32_t bytes)
{
	const uint32_t number = number_of(s, text, bytes);
	const char *stand_in = number == WEFT_INTERN_FAILED ? NULL : stand_in_of(s, number);
	/* Without memory the trace is not saved; nothing of it gets out before that is known. */
	if (stand_in)
		memcpy(text, stand_in, bytes);
	else
		memset(text, '?', bytes);
}

void weft_scrub_replace(struct weft_scrub *s, char *text, uint32_t bytes)
{
	uint32_t at = 0, end;
	if (is_one_word(text, bytes)) {
		replace_word(s, text, bytes);
		return;
	}
	for (; (end = next_word(text, bytes, &at)) > at; at = end)
		replace_word(s, text + at, end - at);
}

void weft_scrub_finish(struct weft_scrub *s)
{
	for (size_t i = 0; i < s->owned.count; i++)
		free(s->owned.items[i]);
	weft_vec_free(&s->owned);
	weft_vec_free(&s->used);
	weft_vec_free(&s->stand_ins);
	weft_intern_finish(&s->words);
}
