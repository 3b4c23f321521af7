/* query.h: what is searched for: words that must all hold.
 *
 *   arp            a label, the kind, the failure, the site or the id has it (ASCII letters in either case)
 *   "a b"          with a space in it; also  label:"a b"
 *   label:x  kind:x  site:x  failure:x      only there;  label:=x  the whole of it
 *   kind:x                                  its name begins so: a thread is no read
 *   library:x                               the library whose code created it, or the folder of its source
 *   id:18          that recorded id
 *   failed  pending                         how it ended: failed, or should have ended and never did; was not heard of again
 *   longer:5ms  shorter:5ms                 from its start to its end
 *
 * A word with another name before a colon is a text like any other: labels have colons too.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VIEW_QUERY_H
#define WEFT_VIEW_QUERY_H

#include "model/model.h"

#define WEFT_QUERY_TERMS 16
#define WEFT_QUERY_BYTES 256

enum weft_term_kind {
	WEFT_TERM_TEXT,
	WEFT_TERM_LABEL,
	WEFT_TERM_KIND,
	WEFT_TERM_SITE,
	WEFT_TERM_FAILURE,
	WEFT_TERM_LIBRARY,
	WEFT_TERM_ID,
	WEFT_TERM_FAILED,
	WEFT_TERM_PENDING,
	WEFT_TERM_LONGER,
	WEFT_TERM_SHORTER,
	WEFT_TERM_KINDS
};

struct weft_term {
	uint8_t kind; /* enum weft_term_kind */
	bool is_number, is_whole;
	uint16_t first, len; /* its text, in weft_query.text */
	int64_t value;       /* an id, or ns */
};

/* What is asked for, and which terms a text, a site or a kind was found to have: each is looked at once, however many promises
 * have it.  One that has asked about a model must not ask about another. */
struct weft_query {
	struct weft_term terms[WEFT_QUERY_TERMS];
	unsigned count; /* 0: matches nothing */
	uint32_t of_kind[WEFT_TERM_KINDS];
	uint32_t whole;   /* terms that want the whole of a text */
	uint32_t changes; /* terms that may have a part of a counter's change: "gntref+1" */
	char text[WEFT_QUERY_BYTES];
	uint32_t kinds[UINT8_MAX + 1]; /* by number: the terms and WEFT_QUERY_KNOWN; 0: not looked at yet */
	uint32_t *texts, *sites;       /* the same, of a site also the terms about its library; NULL: nothing is remembered */
};

#define WEFT_QUERY_KNOWN (1u << WEFT_QUERY_TERMS)

/* Reads a text of len bytes.  WEFT_EINVAL with what is wrong with it: a number or a time that is none, nothing after a colon, too
 * many words, too long; *out is untouched then.  What *out was before is overwritten: see weft_query_finish(). */
int weft_query_parse(struct weft_query *out, const char *text, size_t len, struct weft_error *err);

/* Frees what it remembers, which only one that has asked about a model does.  It may ask again. */
void weft_query_finish(struct weft_query *query);

/* Whether all of it holds for a promise; never for the system.  About 20 ns and 10 ns a label.  The first time it takes memory,
 * four bytes for each text of the model; without that it answers the same, later. */
bool weft_query_matches(struct weft_query *query, const struct weft_model *model, uint32_t promise);

/* Whether all that `query` matches is matched by `wider` too, as when a letter was typed at the end. */
bool weft_query_narrows(const struct weft_query *query, const struct weft_query *wider);

/* Writes a query that finds all promises with the same label and kind, or without a label the same site and kind; terminated, at
 * most WEFT_QUERY_BYTES long.  Returns its length. */
size_t weft_query_like(const struct weft_model *model, uint32_t promise, char buf[WEFT_QUERY_BYTES + 1]);

/* The same of all promises of its site, or of its library; false if its site is not known. */
bool weft_query_of_site(const struct weft_model *model, uint32_t promise, bool library, char buf[WEFT_QUERY_BYTES + 1]);

#endif
