/* sexp.c: reads the older text format of mirage-profile, one S-expression a line:
 *
 *	((time SECONDS)(op(NAME ARGS...)))
 *
 * Lines that cannot be parsed are skipped.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "trace/format.h"

#define BATCH 256

struct sexp {
	const char *at, *end;
	int64_t last_ns;
	struct weft_stream_info stream;
	/* texts without their escapes, each stored once; reading again after a rewind adds none */
	struct weft_intern unquoted;
	struct weft_event batch[BATCH];
};

/* State of parsing one line. */
struct parser {
	const char *at, *end;
	const char *problem; /* description of the first problem, or NULL */
	struct weft_intern *unquoted;
	bool no_memory;
};

static bool fail_parse(struct parser *p, const char *problem)
{
	if (!p->problem)
		p->problem = problem;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static bool peek_char(struct parser *p, char c)
{
	while (p->at < p->end && is_space(*p->at))
		p->at++;
	return p->at < p->end && *p->at == c;
}

static bool expect_char(struct parser *p, char c)
{
	if (!peek_char(p, c))
		return fail_parse(p, c == '(' ? "expected '('" : "expected ')'");
	p->at++;
	return true;
}

/* Returns the byte that an escape sequence stands for; *at is after the backslash, and is moved behind the sequence. */
static int unescape_char(const char **at, const char *end)
{
	const char *p = *at;
	int left = end - p > 3 ? 3 : (int)(end - p);
	if (left == 3 && p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9' && p[2] >= '0' && p[2] <= '9') {
		*at += 3;
		return ((p[0] - '0') * 100 + (p[1] - '0') * 10 + p[2] - '0') & 0xff;
	}
	*at += 1;
	switch (p[0]) {
	case 'n': return '\n';
	case 't': return '\t';
	case 'r': return '\r';
	case 'b': return '\b';
	default: return (unsigned char)p[0];
	}
}

/* Removes the escapes from a text; the result is kept in the table of texts. */
static bool unquote_string(struct parser *p, const char *from, const char *to, struct weft_str *out)
{
	char *bytes = malloc((size_t)(to - from));
	if (!bytes) {
		p->no_memory = true;
		return fail_parse(p, "out of memory");
	}
	uint32_t len = 0;
	while (from < to)
		if (*from == '\\' && from + 1 < to) {
			from++;
			bytes[len++] = (char)unescape_char(&from, to);
		} else
			bytes[len++] = *from++;
	size_t known = p->unquoted->texts.count;
	uint32_t number = weft_intern(p->unquoted, (struct weft_str){bytes, len});
	if (p->unquoted->texts.count == known)
		free(bytes);
	if (number == WEFT_INTERN_FAILED) {
		p->no_memory = true;
		return fail_parse(p, "out of memory");
	}
	*out = p->unquoted->texts.items[number];
	return true;
}

static bool read_atom(struct parser *p, struct weft_str *out)
{
	if (peek_char(p, '"')) {
		const char *from = ++p->at;
		bool escaped = false;
		while (p->at < p->end && *p->at != '"' && *p->at != '\n') {
			if (*p->at == '\\' && p->at + 1 < p->end && p->at[1] != '\n') {
				escaped = true;
				p->at++;
			}
			p->at++;
		}
		if (p->at == p->end || *p->at != '"')
			return fail_parse(p, "a quoted atom has no closing quote");
		const char *to = p->at++;
		if ((uint64_t)(to - from) > UINT32_MAX)
			return fail_parse(p, "an atom is longer than 4 GB");
		if (escaped)
			return unquote_string(p, from, to, out);
		*out = (struct weft_str){from, (uint32_t)(to - from)};
		return true;
	}
	const char *from = p->at;
	while (p->at < p->end && !is_space(*p->at) && *p->at != '(' && *p->at != ')' && *p->at != '"' && *p->at != ';')
		p->at++;
	if (p->at == from)
		return fail_parse(p, "expected an atom");
	if ((uint64_t)(p->at - from) > UINT32_MAX)
		return fail_parse(p, "an atom is longer than 4 GB");
	*out = (struct weft_str){from, (uint32_t)(p->at - from)};
	return true;
}

static bool read_i64(struct parser *p, int64_t *out)
{
	struct weft_str atom;
	if (!read_atom(p, &atom))
		return false;
	bool negative = atom.len > 1 && atom.ptr[0] == '-';
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
	for (uint32_t i = negative; i < atom.len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)atom.ptr[i] - '0';
		if (digit > 9)
			return fail_parse(p, "expected a number");
		if (value > (limit - digit) / 10)
			return fail_parse(p, "a number has more than 64 bits");
		value = value * 10 + digit;
	}
	*out = (int64_t)(negative ? 0 - value : value);
	return true;
}

/* Parses decimal seconds, with an optional exponent, as ns.  The result is exact, rounded to whole ns. */
static bool read_seconds(struct parser *p, int64_t *out_ns)
{
	struct weft_str atom;
	if (!read_atom(p, &atom))
		return false;
	uint64_t mantissa = 0;
	int exponent = 9;
	uint32_t i = atom.ptr[0] == '-', digits = 0;
	bool point = false;
	for (; i < atom.len; i++) {
		unsigned char c = (unsigned char)atom.ptr[i];
		if (c == '.' && !point)
			point = true;
		else if (c >= '0' && c <= '9') {
			digits++;
			if (mantissa < 1000000000000000000u) {
				mantissa = mantissa * 10 + (c - '0');
				exponent -= point;
			} else
				exponent += !point && exponent < 100;
		} else
			break;
	}
	if (digits && i + 1 < atom.len && (atom.ptr[i] == 'e' || atom.ptr[i] == 'E')) {
		bool negative = atom.ptr[i + 1] == '-';
		int e = 0;
		for (i += 1 + (negative || atom.ptr[i + 1] == '+'); i < atom.len && atom.ptr[i] >= '0' && atom.ptr[i] <= '9'; i++)
			if (e < 1000)
				e = e * 10 + atom.ptr[i] - '0';
		exponent += negative ? -e : e;
	}
	if (!digits || i < atom.len)
		return fail_parse(p, "expected a time");
	for (; mantissa && exponent > 0; exponent--) {
		if (mantissa > INT64_MAX / 10)
			return fail_parse(p, "a time is out of range");
		mantissa *= 10;
	}
	for (; mantissa && exponent < 0; exponent++)
		mantissa = mantissa / 10 + (exponent == -1 && mantissa % 10 >= 5);
	if (mantissa > INT64_MAX)
		return fail_parse(p, "a time is out of range");
	*out_ns = atom.ptr[0] == '-' ? -(int64_t)mantissa : (int64_t)mantissa;
	return true;
}

static uint8_t find_kind(struct weft_str name)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} kinds[] = {
#define KIND(NAME, value, name, traits) {name, value},
	    WEFT_KINDS(KIND)
#undef KIND
	};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strlen(kinds[i].name) == name.len && strncasecmp(kinds[i].name, name.ptr, name.len) == 0)
			return kinds[i].kind;
	return WEFT_KIND_UNKNOWN;
}

static bool str_equals(struct weft_str text, const char *word)
{
	size_t len = strlen(word);
	return text.len == len && memcmp(text.ptr, word, len) == 0;
}

/* Parses "NAME ARGS...". */
static bool read_op(struct parser *p, struct weft_event *ev)
{
	struct weft_str name = {0}, kind = {0};
	if (!read_atom(p, &name))
		return false;
	if (str_equals(name, "Reads")) {
		ev->op = WEFT_OP_READ;
		return read_i64(p, &ev->a) && read_i64(p, &ev->b);
	}
	if (str_equals(name, "Creates")) {
		ev->op = WEFT_OP_CREATE;
		ev->kind = WEFT_KIND_UNKNOWN;
		if (!read_i64(p, &ev->a) || !read_i64(p, &ev->b))
			return false;
		if (!peek_char(p, ')')) {
			if (!read_atom(p, &kind))
				return false;
			ev->kind = find_kind(kind);
		}
		return true;
	}
	if (str_equals(name, "Resolves")) {
		ev->op = WEFT_OP_RESOLVE;
		if (!read_i64(p, &ev->a) || !read_i64(p, &ev->b))
			return false;
		if (peek_char(p, ')'))
			return true;
		if (!expect_char(p, '('))
			return false;
		if (!peek_char(p, ')')) {
			ev->op = WEFT_OP_FAIL;
			if (!read_atom(p, &ev->text))
				return false;
		}
		return expect_char(p, ')');
	}
	if (str_equals(name, "Label")) {
		ev->op = WEFT_OP_LABEL;
		if (!read_i64(p, &ev->a) || !read_atom(p, &ev->text))
			return false;
		if (str_equals(ev->text, "__should_resolve")) {
			ev->op = WEFT_OP_SHOULD_RESOLVE;
			ev->text = (struct weft_str){0};
		}
		return true;
	}
	if (str_equals(name, "Becomes")) {
		ev->op = WEFT_OP_BECOME;
		return read_i64(p, &ev->a) && read_i64(p, &ev->b);
	}
	if (str_equals(name, "Switch")) {
		ev->op = WEFT_OP_RUN;
		return read_i64(p, &ev->a);
	}
	if (str_equals(name, "Gc")) {
		ev->op = WEFT_OP_PAUSE;
		ev->text = (struct weft_str){"gc", 2};
		return read_seconds(p, &ev->value);
	}
	if (str_equals(name, "Increases")) {
		ev->op = WEFT_OP_COUNTER_ADD;
		return read_i64(p, &ev->a) && read_atom(p, &ev->text) && read_i64(p, &ev->value);
	}
	return fail_parse(p, "unknown operation");
}

static bool read_event(struct parser *p, struct weft_event *ev)
{
	struct weft_str word = {0};
	*ev = (struct weft_event){.site = WEFT_NO_SITE};
	if (!expect_char(p, '(') || !expect_char(p, '(') || !read_atom(p, &word))
		return false;
	if (!str_equals(word, "time"))
		return fail_parse(p, "expected (time SECONDS)");
	if (!read_seconds(p, &ev->time_ns) || !expect_char(p, ')') || !expect_char(p, '(') || !read_atom(p, &word))
		return false;
	if (!str_equals(word, "op"))
		return fail_parse(p, "expected (op ...)");
	return expect_char(p, '(') && read_op(p, ev) && expect_char(p, ')') && expect_char(p, ')') && expect_char(p, ')');
}

static enum weft_confidence probe_source(const struct weft_source *source)
{
	if (source->blob_count != 1)
		return WEFT_CONFIDENCE_NONE;
	const char *at = (const char *)source->blobs[0].bytes, *end = at + source->blobs[0].size;
	struct parser p = {.at = at, .end = end};
	bool begins = expect_char(&p, '(') && expect_char(&p, '(') && peek_char(&p, 't') && p.end - p.at > 4 &&
		      memcmp(p.at, "time", 4) == 0;
	return begins ? WEFT_CONFIDENCE_LIKELY : WEFT_CONFIDENCE_NONE;
}

static void rewind_events(struct weft_trace *trace)
{
	struct sexp *s = trace->state;
	s->at = (const char *)trace->source.blobs[0].bytes;
	s->end = s->at + trace->source.blobs[0].size;
	s->last_ns = INT64_MIN;
}

static int open_trace(struct weft_trace *trace, struct weft_error *err)
{
	struct sexp *s = trace->state = calloc(1, sizeof *s);
	if (!s)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	s->stream.packets = 1;
	s->stream.bytes = trace->source.blobs[0].size;
	trace->info.streams = &s->stream;
	trace->info.stream_count = 1;
	rewind_events(trace);
	return WEFT_OK;
}

static void close_trace(struct weft_trace *trace)
{
	struct sexp *s = trace->state;
	for (size_t i = 0; i < s->unquoted.texts.count; i++)
		free((void *)s->unquoted.texts.items[i].ptr);
	weft_intern_finish(&s->unquoted);
	free(s);
}

/* Reads the next event and skips invalid lines.  Returns 1, 0 at the end, or WEFT_ENOMEM. */
static int decode_event(struct weft_trace *trace, struct weft_event *ev)
{
	struct sexp *s = trace->state;
	const struct weft_blob *blob = &trace->source.blobs[0];
	for (;;) {
		while (s->at < s->end && is_space(*s->at))
			s->at++;
		if (s->at == s->end)
			return 0;
		struct parser p = {.at = s->at, .end = s->end, .unquoted = &s->unquoted};
		uint64_t offset = (uint64_t)(s->at - (const char *)blob->bytes);
		if (read_event(&p, ev)) {
			s->at = p.at;
			if (ev->time_ns < s->last_ns) {
				weft__trace_skip(trace, blob, WEFT_NO_OFFSET, offset, 0, "time goes back by %llu ns",
				    (unsigned long long)s->last_ns - (unsigned long long)ev->time_ns);
				ev->time_ns = s->last_ns;
			}
			s->last_ns = ev->time_ns;
			return 1;
		}
		if (p.no_memory)
			return WEFT_ENOMEM;
		const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
		uint64_t bytes = (uint64_t)((newline ? newline + 1 : s->end) - s->at);
		weft__trace_skip(trace, blob, WEFT_NO_OFFSET, offset, bytes, "%s; the line is skipped",
		    p.at == p.end ? "the file ends in the middle of an event" : p.problem);
		s->at += bytes;
	}
}

static int read_events(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	struct sexp *s = trace->state;
	size_t n = 0;
	int more = 1;
	while (n < BATCH && (more = decode_event(trace, &s->batch[n])) == 1)
		n++;
	if (more < 0)
		return more;
	if (n == 0)
		return 0;
	*events = s->batch;
	*count = n;
	return 1;
}

const struct weft_trace_format weft__format_sexp = {
    "sexp", probe_source, open_trace, read_events, rewind_events, close_trace, NULL, NULL, NULL, NULL};
