/* scrub.h: replaces the words of texts by placeholders, for traces that are given to strangers.
 *
 * A placeholder has the length of its word, is always the same for that word, and depends only on the order in which words were
 * learned.  So the original word cannot be found by trying words.  Numbers stay numbers, so that label patterns stay the same;
 * spaces and punctuation stay.  Words by which weft recognizes errors and pauses ("cancelled", "not found", "gc") become marks
 * with the same meaning (base/known_strings.h).  SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_SCRUB_H
#define WEFT_EXPORT_SCRUB_H

#include <stdbool.h>

#include "base/intern.h"

/* State of a scrub.  A zeroed struct knows no words. */
struct weft_scrub {
	struct weft_intern words;        /* words of the original texts, and after them placeholders that are not such words */
	WEFT_VEC(uint32_t) placeholders; /* for each word: number of its placeholder + 1; 0 if it has none yet */
	WEFT_VEC(bool) is_placeholder;   /* for each word number: whether the word is a chosen placeholder */
	WEFT_VEC(char *) owned;
	uint32_t word_count;   /* number of words of the original texts; higher numbers are placeholders */
	uint32_t chosen_count; /* number of placeholders that were chosen so far */
	bool no_memory;
};

/* Learns the words of an original text.  Learn all texts before the first text is replaced, so that no placeholder is a word of
 * another text. */
void weft_scrub_learn(struct weft_scrub *scrub, const char *text, uint32_t bytes);

/* Replaces the words of a text in place.  No word of more than three letters stays in the text.  The only exception is a number,
 * if the texts contain nearly all numbers of its length, hexadecimal numbers included.  A word of at most three letters may get
 * another word as its placeholder. */
void weft_scrub_replace(struct weft_scrub *scrub, char *text, uint32_t bytes);

void weft_scrub_finish(struct weft_scrub *scrub);

#endif
