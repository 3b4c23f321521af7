/* private.h: declarations that the parsers of src/protocol share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_PROTOCOL_PRIVATE_H
#define WEFT_PROTOCOL_PRIVATE_H

#include "protocol/protocol.h"

/* Bytes of a question.  A parser never reads beyond `end`. */
struct weft__input {
	const unsigned char *at, *end;
};

enum weft__parsed {
	WEFT__NOT,  /* result: these bytes begin no question of the protocol */
	WEFT__MORE, /* result: these bytes may begin a question, but its name is not complete */
	WEFT__FOUND
};

/* A name that is being written; text that does not fit is cut. */
struct weft__name {
	char *text;
	unsigned length;
};

static inline void weft__put(struct weft__name *name, unsigned char c)
{
	if (name->length + 1 < WEFT_QUESTION_BYTES)
		name->text[name->length++] = (char)c;
	name->text[name->length] = 0;
}

static inline void weft__put_text(struct weft__name *name, const char *text)
{
	for (; *text; text++)
		weft__put(name, (unsigned char)*text);
}

static inline bool weft__is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static inline bool weft__is_letter(unsigned char c)
{
	return (unsigned char)((c | 0x20) - 'a') < 26;
}

static inline unsigned char weft__to_upper(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

/* Returns whether the name is one of the words of a list "WORD WORD ...". */
bool weft__is_listed(const char *list, const char *name, unsigned length);

typedef enum weft__parsed weft__parse_fn(struct weft__input in, bool has_paths, struct weft_question *question);
weft__parse_fn weft__parse_http, weft__parse_resp, weft__parse_memcached, weft__parse_postgres, weft__parse_lines;

/* Returns whether the bytes are a query message of PostgreSQL's simple protocol. */
bool weft__is_postgres_query(struct weft__input in);

/* Parses the first message of a connection to PostgreSQL, which has no type byte. */
enum weft__parsed weft__parse_postgres_start(struct weft__input in, struct weft_question *question);

#endif
