/* query.h: search queries: words that must all match.
 *
 *   arp            the text is in a label, kind, failure, site or id (ASCII letters match in either case)
 *   "a b"          a text with a space; also  label:"a b"
 *   label:x  kind:x  site:x  failure:x      the text is in this field;  label:=x  is the whole field
 *   kind:x                                  the kind's name starts with the text: kind:read does not match "thread"
 *   library:x                               the library that created it, or the folder of its source file
 *   id:18          the recorded id
 *   failed  pending                         it failed, or never resolved although it should have; it has no recorded end
 *   longer:5ms  shorter:5ms                 the duration from its start to its end; also  > 5ms  and  < 5ms
 *   type:x                                  the same as kind:x
 *   thread:x                                it was created or ran on an OS thread with this text in its name or number;
 *                                           thread:pool is a thread of a pool, thread:"pool 2" one of them
 *   slowest:10                              of the matches of all other words, those that lasted longest; promises that need
 *                                           not end come last
 *
 * A word with any other name before a colon is an ordinary text, because labels contain colons too.
 * SPDX-License-Identifier: ISC */
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
	WEFT_TERM_THREAD,
	WEFT_TERM_SLOWEST,
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

/* A parsed query.  The query caches which terms match each text, site and kind, so that each of these is matched only once,
 * however many promises share it.  After a query has matched promises of one model, it must not be used for another model. */
struct weft_query {
	struct weft_term terms[WEFT_QUERY_TERMS];
	unsigned count; /* number of terms; 0 matches no promise, unless is_any */
	bool is_any;    /* whether the query has no words except slowest:N */
	uint32_t of_kind[WEFT_TERM_KINDS];
	uint32_t whole;   /* bits of the terms that must equal a whole text */
	uint32_t changes; /* bits of the terms that may be part of a counter's change, as in "gntref+1" */
	char text[WEFT_QUERY_BYTES];
	/* For each kind: bits of the matching terms and WEFT_QUERY_KNOWN; 0 if the kind was not matched yet. */
	uint32_t kinds[UINT8_MAX + 1];
	/* For each text, and for each site (including its library): bits as in `kinds`; NULL without a cache. */
	uint32_t *texts, *sites;
	uint32_t *streams; /* for each OS thread: bits as in `kinds`; NULL without a cache */
	uint32_t slowest;  /* number of matches to keep (weft_query_keep_slowest()); 0 keeps all */
};

#define WEFT_QUERY_KNOWN (1u << WEFT_QUERY_TERMS)

/* Parses a text of len bytes into *out, which is overwritten without being freed; see weft_query_finish().  Fails with
 * WEFT_EINVAL and leaves *out unchanged if a number or duration is invalid, if nothing follows a colon, or if the text has too
 * many words or bytes. */
int weft_query_parse(struct weft_query *out, const char *text, size_t len, struct weft_error *err);

/* Frees the cache of a query, which exists only after the query was matched against a model.  The query can be used again
 * afterwards. */
void weft_query_finish(struct weft_query *query);

/* Returns whether a promise matches all terms of the query; the system promise never matches.  A match takes about 20 ns, and 10
 * ns for each label.  The first call allocates four bytes for each text of the model; without memory the result is the same, but
 * matching is slower. */
bool weft_query_matches(struct weft_query *query, const struct weft_model *model, uint32_t promise);

/* Clears the bits of all matches except the query->slowest ones that lasted longest, and returns the number of matches left.
 * `count` is the number of bits that are set.  Does nothing if the query keeps all matches, or without memory.  The time is n
 * log n in matches. */
size_t weft_query_keep_slowest(const struct weft_query *query, const struct weft_model *model, uint64_t *matches, size_t count);

/* Returns whether every promise that `query` matches also matches `wider`, as after the user has typed a letter at the end. */
bool weft_query_is_narrower(const struct weft_query *query, const struct weft_query *wider);

/* Writes a query that finds all promises with the same label and kind or, if there is no label, with the same call site and
 * kind.  The query is terminated, and at most WEFT_QUERY_BYTES long.  Returns its length. */
size_t weft_query_for_similar(const struct weft_model *model, uint32_t promise, char buf[WEFT_QUERY_BYTES + 1]);

/* Writes a query that finds all promises of the same call site, or of the same library.  Returns false if the call site is
 * unknown. */
bool weft_query_for_site(const struct weft_model *model, uint32_t promise, bool library, char buf[WEFT_QUERY_BYTES + 1]);

#endif
