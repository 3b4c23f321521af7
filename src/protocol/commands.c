/* commands.c: finds names in commands of redis, memcached, and line-based protocols.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "protocol/private.h"

enum { MAX_WORD = 24 };

static bool is_word_byte(unsigned char c)
{
	return weft__is_letter(c) || weft__is_digit(c) || c == '.' || c == '_' || c == '-';
}

/* ---- redis ---- */

/* Reads a number and the end of the number's line.  Returns WEFT__MORE if the bytes end too early. */
static enum weft__parsed read_number(struct weft__input *in, unsigned *number)
{
	enum { MAX_DIGITS = 9 };
	unsigned digits = 0;
	for (*number = 0; in->at < in->end && weft__is_digit(*in->at) && digits < MAX_DIGITS; in->at++, digits++)
		*number = *number * 10 + (unsigned)(*in->at - '0');
	if (in->end - in->at < 2)
		return in->at < in->end && *in->at != '\r' ? WEFT__NOT : WEFT__MORE;
	if (!digits || in->at[0] != '\r' || in->at[1] != '\n')
		return WEFT__NOT;
	in->at += 2;
	return WEFT__FOUND;
}

/* Reads a bulk string such as "$3\r\nGET\r\n" up to its text; *text gets the text's bytes, as many as there are. */
static enum weft__parsed read_bulk(struct weft__input *in, struct weft__input *text)
{
	unsigned length;
	if (in->at == in->end)
		return WEFT__MORE;
	if (*in->at++ != '$')
		return WEFT__NOT;
	const enum weft__parsed parsed = read_number(in, &length);
	if (parsed != WEFT__FOUND)
		return parsed;
	const size_t left = (size_t)(in->end - in->at);
	*text = (struct weft__input){in->at, in->at + (length < left ? length : left)};
	if (left < (size_t)length + 2) {
		in->at = in->end;
		return WEFT__MORE;
	}
	in->at += (size_t)length + 2;
	return WEFT__FOUND;
}

static enum weft__parsed read_array(struct weft__input *in, unsigned *arguments)
{
	if (in->at == in->end)
		return WEFT__MORE;
	if (*in->at++ != '*')
		return WEFT__NOT;
	return read_number(in, arguments);
}

/* Appends a command word in capital letters.  Returns false if the text is no command word. */
static bool put_command(struct weft__name *name, struct weft__input text)
{
	if (text.at == text.end || text.end - text.at > MAX_WORD)
		return false;
	for (; text.at < text.end; text.at++) {
		if (!is_word_byte(*text.at))
			return false;
		weft__put(name, weft__to_upper(*text.at));
	}
	return true;
}

/* Counts the commands of a pipeline; each step skips a whole argument. */
static unsigned count_commands(struct weft__input in)
{
	enum { MAX_COMMANDS = 64, MAX_ARGUMENTS = 1024 };
	unsigned count = 0, arguments;
	while (count < MAX_COMMANDS && read_array(&in, &arguments) == WEFT__FOUND && arguments <= MAX_ARGUMENTS) {
		struct weft__input text;
		count++;
		for (; arguments > 0; arguments--)
			if (read_bulk(&in, &text) != WEFT__FOUND)
				return count;
	}
	return count;
}

/* Commands whose second word is a part of the command too, and no argument of the user. */
static const char with_subcommand[] =
    "ACL CLIENT CLUSTER COMMAND CONFIG DEBUG FUNCTION LATENCY MEMORY MODULE OBJECT PUBSUB SCRIPT SLOWLOG XGROUP XINFO";
/* Commands that wait for other clients, or whose answer is a stream or the end of the connection. */
static const char without_answer[] =
    "SUBSCRIBE PSUBSCRIBE SSUBSCRIBE MONITOR SYNC PSYNC REPLCONF SHUTDOWN QUIT BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN "
    "BZPOPMAX BZMPOP XREAD XREADGROUP WAIT WAITAOF";

enum weft__parsed weft__parse_resp(struct weft__input in, bool has_paths, struct weft_question *question)
{
	(void)has_paths;
	struct weft__name name = {question->name, 0};
	struct weft__input text, from = in;
	unsigned arguments;
	enum weft__parsed parsed = read_array(&in, &arguments);
	if (parsed == WEFT__FOUND)
		parsed = arguments > 0 ? read_bulk(&in, &text) : WEFT__NOT;
	if (parsed != WEFT__FOUND)
		return parsed;
	if (!put_command(&name, text)) {
		question->name[0] = 0;
		return WEFT__NOT;
	}
	question->must_answer = !weft__is_listed(without_answer, question->name, name.length);
	if (arguments > 1 && weft__is_listed(with_subcommand, question->name, name.length)) {
		const unsigned before = name.length;
		parsed = read_bulk(&in, &text);
		weft__put(&name, ' ');
		if (parsed == WEFT__NOT || (parsed == WEFT__FOUND && !put_command(&name, text)))
			question->name[before] = 0;
		if (parsed == WEFT__MORE) {
			question->name[before] = 0;
			return WEFT__MORE;
		}
	}
	question->count = count_commands(from);
	return WEFT__FOUND;
}

/* ---- Words at the beginning of a line ---- */

/* Reads a word at the beginning of a line, if the word is in a list. */
static enum weft__parsed read_listed_word(
    struct weft__input in, const char *list, bool ignores_case, struct weft_question *question)
{
	struct weft__name name = {question->name, 0};
	const unsigned char *at = in.at;
	for (; at < in.end && at - in.at < MAX_WORD && is_word_byte(*at); at++)
		weft__put(&name, ignores_case ? weft__to_upper(*at) : *at);
	if (at == in.end) /* the word may continue in the next bytes */
		return name.length < MAX_WORD ? WEFT__MORE : WEFT__NOT;
	const bool is_end = *at == ' ' || *at == '\r' || *at == '\n';
	if (is_end && weft__is_listed(list, question->name, name.length))
		return WEFT__FOUND;
	question->name[0] = 0;
	return WEFT__NOT;
}

static const char memcached_words[] = "get gets gat gats set add replace append prepend cas delete incr decr touch stats version "
				      "flush_all verbosity mg ms md ma mn "
				      "me quit";

enum weft__parsed weft__parse_memcached(struct weft__input in, bool has_paths, struct weft_question *question)
{
	(void)has_paths;
	static const char silent[] = " noreply\r";
	const enum weft__parsed parsed = read_listed_word(in, memcached_words, false, question);
	const unsigned char *line_end = parsed == WEFT__FOUND ? memchr(in.at, '\r', (size_t)(in.end - in.at)) : NULL;
	const size_t line = line_end ? (size_t)(line_end - in.at) + 1 : 0;
	const bool is_silent =
	    line >= sizeof silent - 1 && !memcmp(in.at + line - (sizeof silent - 1), silent, sizeof silent - 1);
	question->must_answer = !is_silent && strcmp(question->name, "quit") != 0;
	return parsed;
}

/* Only these words are named, because other lines of these protocols may contain secrets. */
static const char line_words[] =
    "HELO EHLO LHLO MAIL RCPT DATA RSET NOOP QUIT AUTH STARTTLS VRFY EXPN HELP USER PASS STAT LIST RETR DELE TOP UIDL CAPA APOP "
    "CWD PWD PASV EPSV PORT EPRT TYPE STOR NLST SIZE MDTM FEAT SYST";

enum weft__parsed weft__parse_lines(struct weft__input in, bool has_paths, struct weft_question *question)
{
	(void)has_paths;
	question->must_answer = false; /* the other end may speak first, and a line may continue */
	return read_listed_word(in, line_words, true, question);
}
