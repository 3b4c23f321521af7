/* words.c: see words.h.  SPDX-License-Identifier: ISC */
#include "base/words.h"

#define CUT "\xe2\x80\xa6" /* the rest of the text had no room */

static const char *const marks[WEFT_MEANINGS] = {
    [WEFT_MEANS_CANCELLED] = "\xe2\x8a\x98", /* a circle with a slash */
    [WEFT_MEANS_ABSENT] = "\xe2\x88\x85",    /* the empty set */
    [WEFT_MEANS_SLEEP] = "\xe2\x98\xbe",     /* a moon */
    [WEFT_MEANS_COLLECTOR] = "\xe2\x99\xbb", /* arrows in a circle */
};

/* In lower case.  Those of up to three letters are their own marks. */
static const struct {
	const char *word;
	enum weft_meaning meaning;
} known[] = {{"cancel", WEFT_MEANS_CANCELLED}, {"no such file", WEFT_MEANS_ABSENT}, {"not found", WEFT_MEANS_ABSENT},
    {"notfound", WEFT_MEANS_ABSENT}, {"not_found", WEFT_MEANS_ABSENT}, {"enoent", WEFT_MEANS_ABSENT}, {"404", WEFT_MEANS_ABSENT},
    {"end of file", WEFT_MEANS_ABSENT}, {"eof", WEFT_MEANS_ABSENT}, {"sleep", WEFT_MEANS_SLEEP}, {"gc", WEFT_MEANS_COLLECTOR},
    {"garbage", WEFT_MEANS_COLLECTOR}};

enum { MARK_BYTES = 3, NONE = sizeof known / sizeof *known };

static bool is_at(struct weft_str text, uint32_t at, const char *word)
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

static bool fits(struct weft_str text, uint32_t at, size_t i)
{
	if (!is_at(text, at, known[i].word))
		return false;
	const uint32_t end = at + (uint32_t)strlen(known[i].word);
	if (known[i].meaning == WEFT_MEANS_COLLECTOR)
		return at == 0 && (end == text.len || memchr(" ,:", text.ptr[end], 3));
	/* 14045 is another number. */
	return !is_digit_at(text, at) || ((at == 0 || !is_digit_at(text, at - 1)) && !is_digit_at(text, end));
}

bool weft_text_means(struct weft_str text, enum weft_meaning meaning)
{
	enum { LOOKED_AT = 200 };
	for (uint32_t at = 0; at < text.len && at < (meaning == WEFT_MEANS_COLLECTOR ? 1 : LOOKED_AT); at++) {
		if (is_at(text, at, marks[meaning]))
			return true;
		for (size_t i = 0; i < NONE; i++)
			if (known[i].meaning == meaning && fits(text, at, i))
				return true;
	}
	return false;
}

bool weft_text_begins(struct weft_str text, const char *words)
{
	const size_t len = strlen(words);
	return text.len >= len && memcmp(text.ptr, words, len) == 0;
}

bool weft_text_is_own(struct weft_str text)
{
	static const char *const own[] = {WEFT_SAYS_CANCELLED, WEFT_SAYS_STARTED_AGAIN, WEFT_SAYS_END};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (weft_str_equal(text, (struct weft_str){own[i], (uint32_t)strlen(own[i])}))
			return true;
	return false;
}

uint32_t weft_text_known_at(struct weft_str text, uint32_t at, const char **mark)
{
	static const char *const ways[] = {WEFT_SAYS_FROM, WEFT_SAYS_TO};
	*mark = NULL;
	for (size_t i = 0; at == 0 && i < sizeof ways / sizeof *ways; i++)
		if (weft_text_begins(text, ways[i]))
			return (uint32_t)strlen(ways[i]);
	if (is_at(text, at, CUT))
		return MARK_BYTES;
	for (size_t i = 0; i < WEFT_MEANINGS; i++)
		if (is_at(text, at, marks[i]))
			return MARK_BYTES;
	for (size_t i = 0; i < NONE; i++)
		if (fits(text, at, i)) {
			const uint32_t length = (uint32_t)strlen(known[i].word);
			*mark = length > MARK_BYTES ? marks[known[i].meaning] : NULL;
			return length > MARK_BYTES ? MARK_BYTES : length;
		}
	return 0;
}
