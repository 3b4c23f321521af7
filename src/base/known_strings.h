/* known_strings.h: lists the words by which weft recognizes the meaning of a text.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_KNOWN_STRINGS_H
#define WEFT_BASE_KNOWN_STRINGS_H

#include "base/str.h"

enum weft_meaning {
	WEFT_MEANING_CANCELLED,
	WEFT_MEANING_ABSENT, /* the requested object does not exist, which is no error */
	WEFT_MEANING_SLEEP,
	WEFT_MEANING_GC, /* recognized only at the beginning of a text: "gc", "gc, minor", "garbage collection" */
	WEFT_MEANING_COUNT
};

/* Texts and prefixes of texts that weft and its adapters write. */
#define WEFT_STRING_CANCELLED "cancelled"
#define WEFT_STRING_RESTARTED "started again"
#define WEFT_STRING_END "end of input"
#define WEFT_STRING_NOT_WAITED_FOR "ended, and was not waited for"
#define WEFT_STRING_NO_DESCRIPTORS "accept fails: too many open files"
#define WEFT_STRING_FROM "from "
#define WEFT_STRING_TO "to "

/* Returns whether a text has a word of the meaning, or the mark that replaces such a word in an anonymised trace.  Examines
 * only the beginning of the text: texts start with such words, and many promises may share a long text. */
bool weft_text_has_meaning(struct weft_str text, enum weft_meaning meaning);

/* Returns whether a text begins with the given words. */
bool weft_text_starts_with(struct weft_str text, const char *words);

/* Returns whether the whole text is one of the texts that weft itself writes. */
bool weft_text_is_builtin(struct weft_str text);

/* Returns how many bytes at `at` carry a meaning; 0 if none do. *mark is the character of three bytes that replaces them in an
 * anonymised text; NULL if the bytes reveal nothing about the program and may stay. */
uint32_t weft_text_known_bytes_at(struct weft_str text, uint32_t at, const char **mark);

#endif
