/* words.h: the words by which weft knows what a text says.  SPDX-License-Identifier: ISC */
#ifndef WEFT_BASE_WORDS_H
#define WEFT_BASE_WORDS_H

#include "base/str.h"

enum weft_meaning {
	WEFT_MEANS_CANCELLED,
	WEFT_MEANS_ABSENT, /* nothing is wrong: what was asked for is not there */
	WEFT_MEANS_SLEEP,
	WEFT_MEANS_COLLECTOR, /* in front: "gc", "gc, minor", "garbage collection" */
	WEFT_MEANINGS
};

/* What weft and its adapters themselves say: whole texts, and what stands in front of one. */
#define WEFT_SAYS_CANCELLED "cancelled"
#define WEFT_SAYS_STARTED_AGAIN "started again"
#define WEFT_SAYS_END "end of input"
#define WEFT_SAYS_FROM "from "
#define WEFT_SAYS_TO "to "

/* Whether a text has such a word, or its mark.  Whatever says so says it at the beginning; a long text may be that of many
 * promises. */
bool weft_text_means(struct weft_str text, enum weft_meaning meaning);

/* Whether it begins with these words. */
bool weft_text_begins(struct weft_str text, const char *words);

/* Whether a text as a whole is weft's own. */
bool weft_text_is_own(struct weft_str text);

/* How many bytes at that place carry a meaning, 0: none.  *mark: the sign of three bytes that says so, too, and is to stand there
 * in a text for strangers; NULL: these bytes tell nothing of the program. */
uint32_t weft_text_known_at(struct weft_str text, uint32_t at, const char **mark);

#endif
