/* scrub.h: stand-ins for the words of texts, for traces that go to strangers.
 *
 * A stand-in is as long as its word, the same for the same word, and made of nothing but the order in which words came: nobody
 * can try words until one fits.  Numbers stay numbers, so that texts keep their shapes; spaces and signs stay.  The words by
 * which weft knows errors and pauses ("cancelled", "not found", "gc") become marks that say the same: base/words.h.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_EXPORT_SCRUB_H
#define WEFT_EXPORT_SCRUB_H

#include <stdbool.h>

#include "base/intern.h"

/* A zeroed one knows no words. */
struct weft_scrub {
	struct weft_intern words;     /* of the texts, then stand-ins that are none of them */
	WEFT_VEC(uint32_t) stand_ins; /* by word: the number of its stand-in + 1; 0: it has none yet */
	WEFT_VEC(bool) used;          /* by number: it is one */
	WEFT_VEC(char *) owned;
	uint32_t word_count; /* how many are words of the texts; the others are stand-ins */
	uint32_t chosen;     /* how many stand-ins have been */
	bool no_memory;
};

/* Learns the words of a text.  All texts are to be learned before the first is replaced, so that no stand-in is a word of
 * another text. */
void weft_scrub_learn(struct weft_scrub *scrub, const char *text, uint32_t bytes);

/* Replaces a text by its stand-in, in place.  No word of more than three letters is in one, unless the texts have nearly all
 * numbers of its length, also to the base 16; a shorter one may have another word as its stand-in. */
void weft_scrub_replace(struct weft_scrub *scrub, char *text, uint32_t bytes);

void weft_scrub_finish(struct weft_scrub *scrub);

#endif
