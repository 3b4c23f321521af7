/* request.c: parses the requests of clients.  SPDX-License-Identifier: ISC */
#include "request.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const header_names[OTHER] = {
    [HOST] = "host",
    [RANGE] = "range",
    [IF_RANGE] = "if-range",
    [IF_NONE_MATCH] = "if-none-match",
    [IF_MODIFIED_SINCE] = "if-modified-since",
};

/* ---- Parsing ----
 *
 * The parser calls back with pieces, as they arrive. */

/* Appends a piece to a text of most_bytes with its NUL; returns false if it is too long, and leaves it empty. */
static bool append_piece(char *text, size_t *bytes, size_t most_bytes, const char *piece, size_t size)
{
	if (size >= most_bytes - *bytes) {
		*bytes = most_bytes; /* further pieces are dropped too */
		text[0] = 0;
		return false;
	}
	memcpy(text + *bytes, piece, size);
	*bytes += size;
	text[*bytes] = 0;
	return true;
}

static int on_begin(http_parser *parser)
{
	struct request *r = parser->data;
	r->begun = true;
	r->keeps = false;
	r->status = 0;
	r->target_bytes = r->name_bytes = 0;
	r->in_value = false;
	r->target[0] = r->name[0] = 0;
	for (int i = 0; i < OTHER; i++)
		r->values[i][0] = 0;
	return 0;
}

static int on_target(http_parser *parser, const char *piece, size_t size)
{
	struct request *r = parser->data;
	if (append_piece(r->target, &r->target_bytes, sizeof r->target, piece, size))
		return 0;
	r->status = HTTP_STATUS_URI_TOO_LONG;
	return -1;
}

static int on_name(http_parser *parser, const char *piece, size_t size)
{
	struct request *r = parser->data;
	if (r->in_value) /* of the previous header */
		r->name_bytes = 0;
	r->in_value = false;
	append_piece(r->name, &r->name_bytes, sizeof r->name, piece, size); /* a longer name is not among the known ones */
	return 0;
}

static int on_value(http_parser *parser, const char *piece, size_t size)
{
	struct request *r = parser->data;
	if (!r->in_value) {
		r->in_value = true;
		r->value_bytes = 0;
		for (r->header = 0; r->header < OTHER && strcasecmp(r->name, header_names[r->header]) != 0;)
			r->header++;
	}
	if (r->header != OTHER)
		append_piece(r->values[r->header], &r->value_bytes, MAX_VALUE_BYTES, piece, size);
	return 0;
}

static int on_head(http_parser *parser)
{
	struct request *r = parser->data;
	bool body = parser->flags & F_CHUNKED || (parser->flags & F_CONTENTLENGTH && parser->content_length > 0);
	r->keeps = http_should_keep_alive(parser) && !body;
	parser->upgrade = 0; /* upgrades are not supported */
	if (parser->http_major != 1)
		r->status = HTTP_STATUS_HTTP_VERSION_NOT_SUPPORTED;
	else if (parser->http_minor > 0 && !r->values[HOST][0])
		r->status = HTTP_STATUS_BAD_REQUEST;
	else if (parser->method != HTTP_GET && parser->method != HTTP_HEAD)
		r->status = HTTP_STATUS_METHOD_NOT_ALLOWED;
	else if (body)
		r->status = HTTP_STATUS_PAYLOAD_TOO_LARGE;
	return body; /* 1: do not read a body */
}

static int on_complete(http_parser *parser)
{
	struct request *r = parser->data;
	r->complete = true;
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings callbacks = {
    .on_message_begin = on_begin,
    .on_url = on_target,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_headers_complete = on_head,
    .on_message_complete = on_complete,
};

void request_init(struct request *r)
{
	http_parser_init(&r->parser, HTTP_REQUEST);
	http_parser_set_max_header_size(MAX_HEAD_BYTES);
	r->parser.data = r;
	on_begin(&r->parser);
	r->begun = r->complete = false;
}

size_t request_parse(struct request *r, const char *bytes, size_t size)
{
	if (r->complete)
		http_parser_pause(&r->parser, 0);
	r->begun = r->begun && !r->complete;
	r->complete = false;
	size_t taken = http_parser_execute(&r->parser, &callbacks, bytes, size);
	enum http_errno error = HTTP_PARSER_ERRNO(&r->parser);
	if (r->complete || error == HPE_OK)
		return taken;
	/* The start of the next request is unknown. */
	r->complete = true;
	r->keeps = false;
	if (error == HPE_HEADER_OVERFLOW)
		r->status = HTTP_STATUS_REQUEST_HEADER_FIELDS_TOO_LARGE;
	else if (!r->status)
		r->status = HTTP_STATUS_BAD_REQUEST;
	return size;
}

/* ---- Paths ---- */

static int hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

int request_path(const struct request *r, char path[MAX_PATH_BYTES])
{
	struct http_parser_url url;
	http_parser_url_init(&url);
	if (http_parser_parse_url(r->target, r->target_bytes, 0, &url) != 0)
		return HTTP_STATUS_BAD_REQUEST;
	const char *from = r->target + url.field_data[UF_PATH].off, *end = from + url.field_data[UF_PATH].len;
	char *to = path;
	*to++ = '.';
	if (from == end || *from != '/')
		*to++ = '/';
	while (from < end) {
		char c = *from++;
		if (c == '%') {
			int high = end - from < 2 ? -1 : hex_digit(from[0]), low = end - from < 2 ? -1 : hex_digit(from[1]);
			if (high < 0 || low < 0 || high + low == 0)
				return HTTP_STATUS_BAD_REQUEST;
			c = (char)(high << 4 | low);
			from += 2;
		}
		*to++ = c;
	}
	*to = 0;
	if (to[-1] == '/')
		strcpy(to, "index.html"); /* there is space: see MAX_PATH_BYTES */
	return strstr(path, "/.") ? HTTP_STATUS_NOT_FOUND : 0;
}

/* ---- Conditions and ranges ---- */

void http_date(time_t time, char text[DATE_BYTES])
{
	struct tm tm;
	gmtime_r(&time, &tm);
	strftime(text, DATE_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

bool request_has(const struct request *r, const char *etag, time_t modified)
{
	const char *match = r->values[IF_NONE_MATCH], *since = r->values[IF_MODIFIED_SINCE];
	if (match[0])
		return strcmp(match, "*") == 0 || strstr(match, etag);
	struct tm tm = {0};
	const char *end = since[0] ? strptime(since, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;
	return end && !*end && modified <= timegm(&tm);
}

/* Parses a decimal number, if there is one; SIZE stands for values that are too large for a file. */
static bool parse_number(const char **text, uint64_t *value)
{
	if (!isdigit((unsigned char)**text))
		return false;
	char *end;
	*value = strtoull(*text, &end, 10);
	*text = end;
	return true;
}

int request_range(const struct request *r, const char *etag, uint64_t size, uint64_t *from, uint64_t *end)
{
	const char *text = r->values[RANGE], *condition = r->values[IF_RANGE];
	*from = 0;
	*end = size;
	if (strncasecmp(text, "bytes=", 6) != 0 || (condition[0] && strcmp(condition, etag) != 0))
		return HTTP_STATUS_OK;
	text += 6;
	uint64_t first = 0, last = UINT64_MAX;
	bool has_first = parse_number(&text, &first);
	if (*text++ != '-')
		return HTTP_STATUS_OK;
	bool has_last = parse_number(&text, &last);
	/* Answer several ranges with the whole file, which is allowed. */
	if (*text || (!has_first && !has_last) || (has_first && last < first))
		return HTTP_STATUS_OK;
	if (!has_first) {
		first = last < size ? size - last : 0;
		if (last == 0)
			first = size;
		last = UINT64_MAX;
	}
	if (first >= size)
		return HTTP_STATUS_RANGE_NOT_SATISFIABLE;
	*from = first;
	*end = last < size ? last + 1 : size;
	return HTTP_STATUS_PARTIAL_CONTENT;
}
