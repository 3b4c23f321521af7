/* scrub.c: replaces words of texts by placeholders (scrub.h).
 * SPDX-License-Identifier: ISC */
#include "export/scrub.h"

#include <stdlib.h>
#include <string.h>

#include "base/known_strings.h"

enum { SHORT = 3 }; /* maximum number of letters of a word that may stay in a copy */

static char to_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Returns the number of bytes at position `at` that keep their text, or get a mark, because weft knows their meaning. */
static uint32_t known_at(const char *text, uint32_t bytes, uint32_t at)
{
	const char *mark;
	return weft_text_known_bytes_at((struct weft_str){text, bytes}, at, &mark);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}

static bool is_word(char c)
{
	return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || (unsigned char)c >= 0x80;
}

/* Returns whether a text is a number, by the rule of src/analysis/index/label_patterns.c: hexadecimal digits, with at least one
 * decimal digit. */
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

/* Finds the next word at or after *at, in the range [*at, returned).  An address counts as one word: numbers that are joined by
 * '.', ':' and '-'. If no word is left, the range is empty. */
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

/* Returns whether a text has only short words.  Such a text is replaced as one word, so that its placeholder cannot equal
 * another text. */
static bool is_one_word(const char *text, uint32_t bytes)
{
	enum { LONGEST = 64 };
	uint32_t at = 0, end;
	bool has_word = false;
	for (uint32_t i = 0; i < bytes; i++) {
		if (known_at(text, bytes, i))
			return false;
		has_word |= is_word(text[i]);
	}
	if (bytes <= SHORT || (bytes > LONGEST && has_word))
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
	bool *is_placeholder = weft_vec_push(&s->is_placeholder);
	uint32_t *placeholder = weft_vec_push(&s->placeholders);
	if (slot)
		*slot = own;
	if (!own || !slot || !is_placeholder || !placeholder) {
		if (!slot)
			free(own);
		s->no_memory = true;
		return WEFT_INTERN_FAILED;
	}
	*is_placeholder = false;
	*placeholder = 0;
	s->words.texts.items[number].ptr = memcpy(own, word, bytes);
	return number;
}

static const char *placeholder_of(struct weft_scrub *s, uint32_t number);

/* Returns the end of the sequence of letters, or of digits, that starts at `at`. */
static uint32_t end_of_run(const char *word, uint32_t bytes, uint32_t at)
{
	uint32_t end = at + 1;
	while (end < bytes && is_word(word[end]) && is_digit(word[end]) == is_digit(word[at]))
		end++;
	return end;
}

/* Style of a placeholder; the styles are tried in this order. */
enum style { READS_WELL, ANY_LETTERS, HEXADECIMAL };

static char random_letter(char c, unsigned any, bool number, bool vowel, enum style style)
{
	static const char vowels[] = "aeiou", consonants[] = "bdfgklmnprstvz", hex[] = "0123456789abcdef";
	const char upper = c >= 'A' && c <= 'Z' ? 'A' - 'a' : 0;
	if (number && style == HEXADECIMAL)
		return hex[any % 16];
	if (is_digit(c))
		return (char)('0' + any % 10);
	if (number)
		return (char)('a' + any % 6 + upper);
	if (style != READS_WELL)
		return (char)('a' + any % 26 + upper);
	return (char)((vowel ? vowels[any % 5] : consonants[any % 14]) + upper);
}

/* Makes a candidate for a placeholder, of the same length as the word.  Punctuation stays, unless the word has nothing else. */
static void make_placeholder(char *out, const char *word, uint32_t bytes, uint64_t seed, enum style style)
{
	/* Loopback addresses (127.*) are kept, because they identify no machine. */
	static const char own[] = "127.", signs[] = "+-=*~.:";
	const bool number = is_number(word, bytes), is_own = bytes > 4 && memcmp(word, own, 4) == 0;
	bool vowel = false, has_word = false;
	for (uint32_t i = 0; i < bytes; i++)
		has_word |= is_word(word[i]);
	for (uint32_t i = 0; i < bytes; i++) {
		seed = weft_hash_u64(seed + 0x9e3779b97f4a7c15u + i);
		const unsigned any = (unsigned)(seed >> 32);
		if (!has_word)
			out[i] = signs[any % (sizeof signs - 1)];
		else if (!is_word(word[i]) || (is_own && i < 4))
			out[i] = word[i];
		else
			out[i] = random_letter(word[i], any, number, vowel, style);
		vowel = !vowel;
	}
}

/* Replaces each part of a word that has only letters by that part's own placeholder, because worker1 and worker10 have the same
 * label pattern, and so must their placeholders. */
static bool add_letters(struct weft_scrub *s, char *out, const char *word, uint32_t bytes)
{
	for (uint32_t at = 0, end; at < bytes; at = end) {
		end = end_of_run(word, bytes, at);
		if (end - at == bytes || !is_word(word[at]) || is_digit(word[at]))
			continue;
		const uint32_t number = number_of(s, word + at, end - at);
		const char *letters = number == WEFT_INTERN_FAILED ? NULL : placeholder_of(s, number);
		if (!letters)
			return false;
		memcpy(out + at, letters, end - at);
	}
	return true;
}

/* Returns whether the two texts have numbers at the same positions. */
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

static bool is_of_texts(const struct weft_scrub *s, const char *word, uint32_t bytes)
{
	const uint32_t number = weft_intern_find(&s->words, (struct weft_str){word, bytes});
	return number != WEFT_INTERN_FAILED && number < s->word_count;
}

/* Returns whether a candidate for a placeholder contains a word of the original texts. */
static bool has_original(const struct weft_scrub *s, const char *out, uint32_t bytes)
{
	enum { LONGEST = 32 }; /* maximum length of words that are searched, because a longer word is not hit by chance */
	for (uint32_t at = 0; at + SHORT < bytes; at++)
		for (uint32_t length = SHORT + 1; length <= LONGEST && at + length <= bytes; length++)
			if (is_of_texts(s, out + at, length))
				return true;
	return is_of_texts(s, out, bytes);
}

static bool is_allowed(const struct weft_scrub *s, const char *word, const char *out, uint32_t bytes, bool may_collide)
{
	if (memcmp(word, out, bytes) == 0 || !has_same_shape(word, out, bytes))
		return false;
	for (uint32_t i = 0; i < bytes; i++)
		if (known_at(out, bytes, i))
			return false;
	const uint32_t number = weft_intern_find(&s->words, (struct weft_str){out, bytes});
	if (number != WEFT_INTERN_FAILED && s->is_placeholder.items[number])
		return false;
	return may_collide || !has_original(s, out, bytes);
}

/* Chooses the best placeholder that is available; returns false without memory. */
static bool choose_placeholder(struct weft_scrub *s, char *out, struct weft_str word)
{
	enum { TRIES = 800 };
	const bool mixed = !is_number(word.ptr, word.len);
	const unsigned strict = word.len > SHORT ? TRIES - TRIES / 8 : TRIES / 2;
	for (unsigned i = 0; i < TRIES; i++) {
		const enum style style = i < TRIES / 8 ? READS_WELL : i < TRIES / 4 ? ANY_LETTERS : HEXADECIMAL;
		make_placeholder(out, word.ptr, word.len, (uint64_t)s->chosen_count << 16 | i, style);
		if (mixed && i < TRIES / 2 && !add_letters(s, out, word.ptr, word.len))
			return false;
		if (is_allowed(s, word.ptr, out, word.len, i >= strict))
			break;
	}
	s->chosen_count++;
	return true;
}

static const char *placeholder_of(struct weft_scrub *s, uint32_t number)
{
	char buf[64], *longer = NULL, *out = buf;
	const struct weft_str word = s->words.texts.items[number];
	if (s->placeholders.items[number])
		return s->words.texts.items[s->placeholders.items[number] - 1].ptr;
	if (word.len > sizeof buf && !(out = longer = malloc(word.len))) {
		s->no_memory = true;
		return NULL;
	}
	const uint32_t placeholder = choose_placeholder(s, out, word) ? number_of(s, out, word.len) : WEFT_INTERN_FAILED;
	free(longer);
	if (placeholder == WEFT_INTERN_FAILED)
		return NULL;
	s->is_placeholder.items[placeholder] = true;
	s->placeholders.items[number] = placeholder + 1;
	return s->words.texts.items[placeholder].ptr;
}

/* Adds every substring that a reader may take for a word to the original words, so that no placeholder contains it.  A substring
 * may consist of several words, or be a part of one word, when the text is replaced. */
static void avoid_parts(struct weft_scrub *s, const char *text, uint32_t bytes)
{
	for (uint32_t at = 0, end; at < bytes; at = end) {
		for (end = at; end < bytes && is_word(text[end]);)
			end++;
		if (end - at > SHORT)
			number_of(s, text + at, end - at);
		for (uint32_t run = at, next; run < end; run = next) {
			next = end_of_run(text, end, run);
			if (next - run > SHORT)
				number_of(s, text + run, next - run);
		}
		end += end < bytes;
	}
}

void weft_scrub_learn(struct weft_scrub *s, const char *text, uint32_t bytes)
{
	uint32_t at = 0, end;
	if (weft_text_is_builtin((struct weft_str){text, bytes}))
		return;
	avoid_parts(s, text, bytes);
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
	const char *placeholder = number == WEFT_INTERN_FAILED ? NULL : placeholder_of(s, number);
	/* Without memory the trace is not saved, so no text leaves unscrubbed. */
	if (placeholder)
		memcpy(text, placeholder, bytes);
	else
		memset(text, '?', bytes);
}

void weft_scrub_replace(struct weft_scrub *s, char *text, uint32_t bytes)
{
	const struct weft_str whole = {text, bytes};
	uint32_t at = 0, end, known;
	if (weft_text_is_builtin(whole))
		return;
	if (is_one_word(text, bytes)) {
		replace_word(s, text, bytes);
		return;
	}
	for (uint32_t i = 0; i < bytes; i += known ? known : 1) {
		const char *mark;
		known = weft_text_known_bytes_at(whole, i, &mark);
		if (mark)
			memcpy(text + i, mark, known);
	}
	for (; (end = next_word(text, bytes, &at)) > at; at = end)
		replace_word(s, text + at, end - at);
}

void weft_scrub_finish(struct weft_scrub *s)
{
	for (size_t i = 0; i < s->owned.count; i++)
		free(s->owned.items[i]);
	weft_vec_free(&s->owned);
	weft_vec_free(&s->is_placeholder);
	weft_vec_free(&s->placeholders);
	weft_intern_finish(&s->words);
}
