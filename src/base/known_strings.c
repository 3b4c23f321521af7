/* known_strings.c: see known_strings.h.  SPDX-License-Identifier: ISC */
#include "base/known_strings.h"

#define ELLIPSIS "\xe2\x80\xa6" /* shows that the rest of the text was cut */

static const char *const marks[WEFT_MEANING_COUNT] = {
    [WEFT_MEANING_CANCELLED] = "\xe2\x8a\x98", /* the mark is a circle with a slash */
    [WEFT_MEANING_ABSENT] = "\xe2\x88\x85",    /* the empty set */
    [WEFT_MEANING_SLEEP] = "\xe2\x98\xbe",     /* a moon */
    [WEFT_MEANING_GC] = "\xe2\x99\xbb",        /* arrows in a circle */
};

/* Words in lower case.  A word of up to three letters is replaced by itself. */
static const struct {
	const char *word;
	enum weft_meaning meaning;
} known_words[] = {{"cancel", WEFT_MEANING_CANCELLED}, {"no such file", WEFT_MEANING_ABSENT}, {"not found", WEFT_MEANING_ABSENT},
    {"notfound", WEFT_MEANING_ABSENT}, {"not_found", WEFT_MEANING_ABSENT}, {"enoent", WEFT_MEANING_ABSENT},
    {"404", WEFT_MEANING_ABSENT}, {"end of file", WEFT_MEANING_ABSENT}, {"eof", WEFT_MEANING_ABSENT},
    {"sleep", WEFT_MEANING_SLEEP}, {"gc", WEFT_MEANING_GC}, {"garbage", WEFT_MEANING_GC}};

enum { MARK_BYTES = 3, KNOWN_COUNT = sizeof known_words / sizeof *known_words };

static bool is_word_at(struct weft_str text, uint32_t at, const char *word)
{
	for (; *word && at < text.len; word++, at++)
		if ((text.ptr[at] >= 'A' && text.ptr[at] <= 'Z' ? text.ptr[at] + 32 : text.ptr[at]) != *word)
			return false;
	return !*word;
}

static bool is_digit_at(struct weft_str text, uint32_t at)
{
	return at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9';
}

static bool is_known_word_at(struct weft_str text, uint32_t at, size_t i)
{
	if (!is_word_at(text, at, known_words[i].word))
		return false;
	const uint32_t end = at + (uint32_t)strlen(known_words[i].word);
	if (known_words[i].meaning == WEFT_MEANING_GC)
		return at == 0 && (end == text.len || memchr(" ,:", text.ptr[end], 3));
	/* A number must match as a whole: the text 14045 does not contain the error number 404. */
	return !is_digit_at(text, at) || ((at == 0 || !is_digit_at(text, at - 1)) && !is_digit_at(text, end));
}

bool weft_text_has_meaning(struct weft_str text, enum weft_meaning meaning)
{
	enum { MAX_SCANNED_BYTES = 200 };
	for (uint32_t at = 0; at < text.len && at < (meaning == WEFT_MEANING_GC ? 1 : MAX_SCANNED_BYTES); at++) {
		if (is_word_at(text, at, marks[meaning]))
			return true;
		for (size_t i = 0; i < KNOWN_COUNT; i++)
			if (known_words[i].meaning == meaning && is_known_word_at(text, at, i))
				return true;
	}
	return false;
}

bool weft_text_starts_with(struct weft_str text, const char *words)
{
	const size_t len = strlen(words);
	return text.len >= len && memcmp(text.ptr, words, len) == 0;
}

bool weft_text_is_builtin(struct weft_str text)
{
	static const char *const weft_strings[] = {
	    WEFT_STRING_CANCELLED, WEFT_STRING_RESTARTED, WEFT_STRING_END, WEFT_STRING_NO_DESCRIPTORS};
	for (size_t i = 0; i < sizeof weft_strings / sizeof *weft_strings; i++)
		if (weft_str_equal(text, (struct weft_str){weft_strings[i], (uint32_t)strlen(weft_strings[i])}))
			return true;
	return false;
}

uint32_t weft_text_known_bytes_at(struct weft_str text, uint32_t at, const char **mark)
{
	static const char *const prefixes[] = {WEFT_STRING_FROM, WEFT_STRING_TO};
	*mark = NULL;
	for (size_t i = 0; at == 0 && i < sizeof prefixes / sizeof *prefixes; i++)
		if (weft_text_starts_with(text, prefixes[i]))
			return (uint32_t)strlen(prefixes[i]);
	if (is_word_at(text, at, ELLIPSIS))
		return MARK_BYTES;
	for (size_t i = 0; i < WEFT_MEANING_COUNT; i++)
		if (is_word_at(text, at, marks[i]))
			return MARK_BYTES;
	for (size_t i = 0; i < KNOWN_COUNT; i++)
		if (is_known_word_at(text, at, i)) {
			const uint32_t length = (uint32_t)strlen(known_words[i].word);
			*mark = length > MARK_BYTES ? marks[known_words[i].meaning] : NULL;
			return length > MARK_BYTES ? MARK_BYTES : length;
		}
	return 0;
}
