/* http.c: reads request lines of HTTP/1.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "protocol/private.h"

enum { MAX_METHOD = 16, MIN_HEX = 8, UUID_BYTES = 36 };

static bool is_hex(unsigned char c)
{
	return weft__is_digit(c) || (unsigned char)((c | 0x20) - 'a') < 6;
}

/* Returns whether a path component is an identifier: digits, a UUID, long hexadecimal text with a digit, or a long mix of
 * letters and digits, as tokens are. */
static bool is_id(const unsigned char *at, size_t count)
{
	enum { MIN_TOKEN = 20 };
	size_t digits = 0, hex = 0, dashes = 0, others = 0;
	for (size_t i = 0; i < count; i++) {
		digits += weft__is_digit(at[i]);
		hex += is_hex(at[i]);
		dashes += at[i] == '-';
		others += at[i] == '.' || at[i] == '%';
	}
	if (count > 0 && digits == count)
		return true;
	if (count == UUID_BYTES && dashes == 4 && hex == UUID_BYTES - 4)
		return true;
	return digits > 0 && ((hex == count && count >= MIN_HEX) || (count >= MIN_TOKEN && others == 0 && digits >= 3));
}

static bool is_path_end(unsigned char c)
{
	return c <= ' ' || c >= 0x7f || c == '?' || c == '#' || c == ';';
}

static void put_path(struct weft__name *name, const unsigned char *at, const unsigned char *end, bool has_paths)
{
	while (at < end) {
		const unsigned char *part = at;
		while (at < end && *at != '/')
			at++;
		if (!has_paths && is_id(part, (size_t)(at - part)))
			weft__put_text(name, ":id");
		else
			for (; part < at; part++)
				weft__put(name, *part);
		if (at < end)
			weft__put(name, *at++);
	}
}

/* Skips "http://user@host" in a request to a proxy, because the user part may contain a password. */
static const unsigned char *skip_authority(const unsigned char *at, const unsigned char *end)
{
	const unsigned char *colon = memchr(at, ':', (size_t)(end - at));
	if (*at == '/' || !colon || end - colon < 3 || colon[1] != '/' || colon[2] != '/')
		return at;
	at = colon + 3;
	while (at < end && *at != '/')
		at++;
	return at;
}

/* Reads "GET /path?secret HTTP/1.1". */
enum weft__parsed weft__parse_http(struct weft__input in, bool has_paths, struct weft_question *question)
{
	struct weft__name name = {question->name, 0};
	const unsigned char *at = in.at;
	for (; at < in.end && at - in.at < MAX_METHOD && (*at >= 'A' && *at <= 'Z'); at++)
		weft__put(&name, *at);
	if (at == in.end)
		return at - in.at < MAX_METHOD ? WEFT__MORE : WEFT__NOT;
	if (*at != ' ' || at - in.at < 3)
		return WEFT__NOT;
	weft__put(&name, ' ');
	const unsigned char *target = ++at;
	while (at < in.end && !is_path_end(*at))
		at++;
	if (target == at)
		return at < in.end ? WEFT__NOT : WEFT__MORE;
	const bool is_connect = !strcmp(question->name, "CONNECT "), is_local = *target == '/' || *target == '*';
	if (!is_local && !is_connect && *target != 'h')
		return WEFT__NOT;
	/* A command of another protocol may look like a method and a path, so the HTTP version decides, if these bytes contain
	 * it. */
	const unsigned char *version = at;
	while (version<in.end && * version> ' ')
		version++;
	const size_t left = (size_t)(in.end - version), known = left < 8 ? left : 8;
	if (memcmp(version, " HTTP/1.", known) != 0)
		return WEFT__NOT;
	const unsigned char *path = is_connect ? target : skip_authority(target, at);
	if (path == at)
		weft__put(&name, '/');
	put_path(&name, path, at, has_paths);
	return known == 8 ? WEFT__FOUND : WEFT__MORE;
}

static bool is_host_char(unsigned char c)
{
	return weft__is_letter(c) || weft__is_digit(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
}

/* Returns the value of a field, such as "host:", in the head of a request; NULL if the bytes do not have it. */
static const unsigned char *find_field(const unsigned char *at, const unsigned char *end, const char *field, size_t field_bytes)
{
	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		size_t same = 0;
		at++;
		if (at < end && (*at == '\r' || *at == '\n'))
			return NULL; /* the end of the head */
		while (same < field_bytes && same < (size_t)(end - at) && (at[same] | 0x20) == (field[same] | 0x20))
			same++;
		if (same < field_bytes)
			continue;
		at += field_bytes;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		return at;
	}
	return NULL;
}

/* Copies the value of a field, with a NUL, if all its characters are allowed and the line ends in these bytes. */
static void copy_field(
    const void *bytes, size_t count, const char *field, bool (*is_allowed)(unsigned char), char *value, size_t size)
{
	const unsigned char *end = (const unsigned char *)bytes + count, *at = find_field(bytes, end, field, strlen(field));
	size_t length = 0;
	value[0] = 0;
	while (at && at + length < end && is_allowed(at[length]))
		length++;
	if (!at || at + length >= end || (at[length] != '\r' && at[length] != '\n') || length >= size)
		return;
	memcpy(value, at, length);
	value[length] = 0;
}

void weft_protocol_host(const void *bytes, size_t count, char host[WEFT_HOST_BYTES])
{
	copy_field(bytes, count, "host:", is_host_char, host, WEFT_HOST_BYTES);
}

static bool is_trace_parent_char(unsigned char c)
{
	return c == '-' || weft__is_digit(c) || (c >= 'a' && c <= 'f');
}

void weft_protocol_trace_parent(const void *bytes, size_t count, char parent[WEFT_TRACE_PARENT_BYTES])
{
	copy_field(bytes, count, "traceparent:", is_trace_parent_char, parent, WEFT_TRACE_PARENT_BYTES);
	const bool is_version_0 = strlen(parent) == WEFT_TRACE_PARENT_BYTES - 1 && !memcmp(parent, "00-", 3);
	if (!is_version_0 || parent[35] != '-' || parent[52] != '-')
		parent[0] = 0;
}

/* Puts the text up to a character that names do not have. */
static void put_until(struct weft__name *name, const char *text, bool (*is_allowed)(unsigned char))
{
	for (; text && *text && is_allowed((unsigned char)*text); text++)
		weft__put(name, (unsigned char)*text);
}

void weft_protocol_http2_name(const struct weft_http2_head *head, char name_text[WEFT_QUESTION_BYTES])
{
	struct weft__name name = {name_text, 0};
	const char *path = head->path ? head->path : "", *end = path;
	name_text[0] = 0;
	put_until(&name, head->method, weft__is_letter);
	weft__put(&name, ' ');
	const char *host = head->host ? head->host : "";
	while (is_host_char((unsigned char)*host))
		host++;
	if (head->scheme && head->host && *head->host && !*host) {
		put_until(&name, head->scheme, weft__is_letter);
		weft__put_text(&name, "://");
		weft__put_text(&name, head->host);
	}
	while (*end && !is_path_end((unsigned char)*end))
		end++;
	put_path(&name, (const unsigned char *)path, (const unsigned char *)end, false);
}
