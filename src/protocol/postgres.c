/* postgres.c: reads messages of PostgreSQL's clients.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "protocol/private.h"

static uint32_t read_big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

enum weft__parsed weft__parse_postgres_start(struct weft__input in, struct weft_question *question)
{
	enum { VERSION_3 = 3 << 16, CANCEL = 80877102, SSL = 80877103, GSS = 80877104, MAX_START = 10000 };
	struct weft__name name = {question->name, 0};
	const size_t count = (size_t)(in.end - in.at);
	if (count < 8)
		return count > 0 && in.at[0] == 0 ? WEFT__MORE : WEFT__NOT;
	const uint32_t length = read_big_endian(in.at), code = read_big_endian(in.at + 4);
	if (length < 8 || length > MAX_START ||
	    ((code < VERSION_3 || code > VERSION_3 + 2) && code != CANCEL && code != SSL && code != GSS))
		return WEFT__NOT;
	weft__put_text(&name, code == SSL || code == GSS ? "encryption request" : code == CANCEL ? "cancel request" : "startup");
	question->must_answer = code != CANCEL;
	return WEFT__FOUND;
}

/* If the connection is older than the recording, the first message that is seen has a type byte. */
bool weft__is_postgres_query(struct weft__input in)
{
	enum { HEADER = 5 };
	const size_t count = (size_t)(in.end - in.at);
	return count > HEADER + 1 && in.at[0] == 'Q' && read_big_endian(in.at + 1) == count - 1 && in.end[-1] == 0;
}

static bool is_name_byte(unsigned char c)
{
	return weft__is_letter(c) || weft__is_digit(c) || c == '_' || c == '.';
}

/* Reads the next word of a statement outside of string literals and comments, in capital letters if `capitals`.  Returns false
 * at the statement's end, or where a literal begins that this function cannot skip. */
static bool read_word(struct weft__input *in, struct weft__name *word, bool capitals)
{
	word->length = 0;
	for (; in->at < in->end && !weft__is_letter(*in->at) && *in->at != '_'; in->at++) {
		const unsigned char c = *in->at;
		if (c == 0 || c == '$' || c == '-' || c == '/' || c == ';')
			return false;
		if (c == '\'') {
			do
				in->at++;
			while (in->at < in->end && *in->at != '\'' && *in->at != '\\');
			if (in->at == in->end || *in->at == '\\')
				return false;
		} else if (weft__is_digit(c)) {
			while (in->at + 1 < in->end && is_name_byte(in->at[1]))
				in->at++;
		}
	}
	for (; in->at < in->end && is_name_byte(*in->at); in->at++)
		weft__put(word, capitals ? weft__to_upper(*in->at) : *in->at);
	/* A string literal may follow the word directly, as in E'...' */
	return word->length > 0 && !(in->at < in->end && *in->at == '\'');
}

/* Appends the statement's keyword and its table, which is the word after FROM, INTO or UPDATE. */
static void put_statement(struct weft__name *name, struct weft__input in)
{
	enum { MAX_WORDS = 64, MAX_KEYWORD = 16 };
	static const char statements[] = "SELECT INSERT UPDATE DELETE BEGIN START COMMIT ROLLBACK END ABORT SAVEPOINT RELEASE "
					 "SET SHOW RESET CREATE ALTER DROP "
					 "TRUNCATE COPY LOCK VACUUM ANALYZE EXPLAIN PREPARE EXECUTE DEALLOCATE DECLARE FETCH "
					 "CLOSE LISTEN NOTIFY UNLISTEN CALL DO "
					 "MERGE WITH VALUES GRANT REVOKE DISCARD REINDEX CHECKPOINT TABLE REFRESH COMMENT";
	char text[WEFT_QUESTION_BYTES];
	struct weft__name word = {text, 0};
	if (!read_word(&in, &word, true) || !weft__is_listed(statements, text, word.length)) {
		weft__put_text(name, "statement");
		return;
	}
	weft__put_text(name, text);
	const char *before = !strcmp(text, "INSERT")                              ? "INTO"
			     : !strcmp(text, "SELECT") || !strcmp(text, "DELETE") ? "FROM"
										  : NULL;
	const bool is_next = !strcmp(text, "UPDATE");
	for (unsigned i = 0; (before || is_next) && i < MAX_WORDS && read_word(&in, &word, true); i++) {
		if (!is_next && strcmp(text, before) != 0)
			continue;
		/* A table name in quotation marks may contain any characters, and a query in parentheses is no table, so neither
		 * is used. */
		while (!is_next && in.at < in.end && (*in.at == ' ' || *in.at == '\n' || *in.at == '\t'))
			in.at++;
		if (!is_next && (in.at == in.end || !(weft__is_letter(*in.at) || *in.at == '_') || !read_word(&in, &word, false)))
			return;
		for (char *at = text; is_next && *at; at++)
			*at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
		weft__put(name, ' ');
		weft__put_text(name, text);
		return;
	}
}

enum weft__parsed weft__parse_postgres(struct weft__input in, bool has_paths, struct weft_question *question)
{
	enum { HEADER = 5, MAX_SCANNED = 1024 };
	(void)has_paths;
	struct weft__name name = {question->name, 0};
	const unsigned char type = *in.at;
	if (weft__parse_postgres_start(in, question) == WEFT__FOUND)
		return WEFT__FOUND;
	if (type != 'Q' && type != 'P' && type != 'B' && type != 'E' && type != 'F')
		return WEFT__NOT;
	if (in.end - in.at <= HEADER)
		return WEFT__MORE;
	in.end = in.end - in.at > MAX_SCANNED ? in.at + MAX_SCANNED : in.end;
	in.at += HEADER;
	if (type == 'B' || type == 'E' || type == 'F') {
		weft__put_text(&name, type == 'F' ? "function call" : "execute");
		return WEFT__FOUND;
	}
	if (type == 'P') { /* the name of the prepared statement is skipped */
		const unsigned char *end = memchr(in.at, 0, (size_t)(in.end - in.at));
		in.at = end ? end + 1 : in.end;
	}
	put_statement(&name, in);
	return WEFT__FOUND;
}
