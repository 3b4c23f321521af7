/* protocol.c: finds the protocol of a connection, and joins questions that arrive in pieces.  SPDX-License-Identifier: ISC */
#include "protocol/protocol.h"

#include <string.h>

#include "protocol/private.h"

bool weft__is_listed(const char *list, const char *name, unsigned length)
{
	for (const char *at = list; *at;) {
		unsigned word = 0;
		while (at[word] && at[word] != ' ')
			word++;
		if (word == length && !memcmp(at, name, word))
			return true;
		at += word + (at[word] == ' ');
	}
	return false;
}

static weft__parse_fn *const parsers[] = {[WEFT_PROTOCOL_HTTP1] = weft__parse_http,
    [WEFT_PROTOCOL_RESP] = weft__parse_resp,
    [WEFT_PROTOCOL_MEMCACHED] = weft__parse_memcached,
    [WEFT_PROTOCOL_POSTGRES] = weft__parse_postgres,
    [WEFT_PROTOCOL_LINES] = weft__parse_lines};

enum { PARSERS = sizeof parsers / sizeof *parsers };

/* Tries all protocols.  No two protocols begin in the same way; a protocol whose name is complete in these bytes is preferred to
 * a protocol whose name may follow. */
static enum weft__parsed guess(
    struct weft_protocol_state *state, struct weft__input in, bool has_paths, struct weft_question *question)
{
	enum weft__parsed best = weft__parse_postgres_start(in, question);
	if (best == WEFT__FOUND)
		state->protocol = WEFT_PROTOCOL_POSTGRES;
	for (unsigned i = WEFT_PROTOCOL_HTTP1; i < PARSERS && best != WEFT__FOUND; i++) {
		const bool is_possible = i != WEFT_PROTOCOL_POSTGRES || weft__is_postgres_query(in);
		const enum weft__parsed parsed = is_possible ? parsers[i](in, has_paths, question) : WEFT__NOT;
		if (parsed == WEFT__FOUND)
			state->protocol = (uint8_t)i;
		best = parsed > best ? parsed : best;
	}
	return best;
}

bool weft_protocol_question(
    struct weft_protocol_state *state, const void *bytes, size_t count, bool has_paths, struct weft_question *question)
{
	struct weft__input in = {bytes, (const unsigned char *)bytes + count};
	if (count == 0 || state->protocol == WEFT_PROTOCOL_OTHER || state->protocol >= PARSERS)
		return false;
	const size_t room = sizeof state->head - state->held, taken = count < room ? count : room;
	if (state->held) {
		memcpy(state->head + state->held, bytes, taken);
		in = (struct weft__input){state->head, state->head + state->held + taken};
	}
	*question = (struct weft_question){.count = 1, .must_answer = true};
	const enum weft__parsed parsed = state->protocol == WEFT_PROTOCOL_UNKNOWN
					     ? guess(state, in, has_paths, question)
					     : parsers[state->protocol](in, has_paths, question);
	const bool is_full = state->held + taken == sizeof state->head;
	if (parsed == WEFT__MORE && !is_full) {
		if (!state->held)
			memcpy(state->head, bytes, taken);
		state->held += (uint8_t)taken;
		return false;
	}
	state->held = 0;
	if (parsed == WEFT__FOUND)
		return true;
	/* The target of an HTTP request may be longer than the memory for held bytes, and its name is then cut. */
	const bool may_be_http = state->protocol == WEFT_PROTOCOL_UNKNOWN || state->protocol == WEFT_PROTOCOL_HTTP1;
	if (parsed == WEFT__MORE && may_be_http && weft__parse_http(in, has_paths, question) == WEFT__MORE &&
	    strchr(question->name, ' ')) {
		state->protocol = WEFT_PROTOCOL_HTTP1;
		return true;
	}
	if (state->protocol == WEFT_PROTOCOL_UNKNOWN)
		state->protocol = WEFT_PROTOCOL_OTHER;
	return false;
}

void weft_protocol_answer(const struct weft_protocol_state *state, const void *bytes, size_t count, struct weft_answer *answer)
{
	const unsigned char *at = bytes;
	*answer = (struct weft_answer){0};
	if (state->protocol == WEFT_PROTOCOL_HTTP1 && count >= 12 && !memcmp(at, "HTTP/1.", 7) && weft__is_digit(at[9]) &&
	    weft__is_digit(at[10]) && weft__is_digit(at[11])) {
		memcpy(answer->result, at + 9, 3);
		answer->is_error = at[9] == '5';
		answer->is_interim = at[9] == '1' && memcmp(at + 9, "101", 3) != 0;
	} else if ((state->protocol == WEFT_PROTOCOL_RESP && count > 0 && at[0] == '-') ||
		   (state->protocol == WEFT_PROTOCOL_POSTGRES && count > 4 && at[0] == 'E') ||
		   (state->protocol == WEFT_PROTOCOL_MEMCACHED && count >= 6 &&
		       (!memcmp(at, "ERROR\r", 6) || (count >= 12 && !memcmp(at, "SERVER_ERROR", 12))))) {
		memcpy(answer->result, "error", 6);
	}
}
