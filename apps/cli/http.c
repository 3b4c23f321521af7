/* http.c: functions that the HTTP servers of weft serve and weft watch share (http.h).  SPDX-License-Identifier: ISC */
#include "http.h"

#ifdef WEFT_HAS_SERVER

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"

/* ---- The name of the server ---- */

/* Returns whether a text is empty or ":PORT". */
static bool is_port(const char *text)
{
	const size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
	return text[0] == '\0' || (digits > 0 && digits <= 5 && text[1 + digits] == '\0' && atoi(text + 1) <= 65535);
}

/* Returns whether a Host header names this server.  A web page that uses DNS rebinding sends its own host name, which is neither
 * an address nor this server's name. */
static bool is_our_host(const struct cli_http_address *own, const char *header)
{
	char host[256];
	unsigned char address[sizeof(struct in6_addr)];
	const bool in_brackets = header[0] == '[';
	const char *begin = header + in_brackets;
	const size_t length = strcspn(begin, in_brackets ? "]" : ":");
	const char *rest = begin + length;
	if (length >= sizeof host || (in_brackets && *rest++ != ']') || !is_port(rest))
		return false;
	memcpy(host, begin, length);
	host[length] = '\0';
	if (in_brackets)
		return inet_pton(AF_INET6, host, address) == 1;
	return inet_pton(AF_INET, host, address) == 1 || strcasecmp(host, "localhost") == 0 ||
	       (length > 0 && strcasecmp(host, own->host) == 0);
}

struct hosts {
	const char *first;
	int count;
};

static enum MHD_Result count_host(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct hosts *hosts = ctx;
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0)
		hosts->first = hosts->count++ ? hosts->first : value;
	return MHD_YES;
}

/* Requires exactly one Host header, because a proxy may interpret two Host headers differently. */
bool cli_http_is_for_us(const struct cli_http_address *address, struct MHD_Connection *connection)
{
	struct hosts hosts = {0};
	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
	return hosts.count == 1 && hosts.first && is_our_host(address, hosts.first);
}

/* ---- Address of the server's socket ---- */

/* Parses [HOST][:PORT], with brackets around an IPv6 address if a port follows.  Returns false if the text is malformed. */
static bool split_address(const char *listen, char host[256], char port[8])
{
	const bool in_brackets = listen[0] == '[';
	const char *begin = listen + in_brackets, *colon = strchr(begin, ':');
	size_t length = strcspn(begin, in_brackets ? "]" : ":");
	if (!in_brackets && colon && strchr(colon + 1, ':'))
		length = strlen(begin); /* an IPv6 address without brackets has several colons */
	const char *rest = begin + length;
	if (in_brackets && *rest++ != ']')
		return false;
	if (length >= 256 || (*rest && *rest != ':'))
		return false;
	if (length > 0)
		snprintf(host, 256, "%.*s", (int)length, begin);
	if (*rest) {
		const size_t digits = strspn(++rest, "0123456789");
		if (digits == 0 || digits > 5 || rest[digits] || atoi(rest) > 65535)
			return false;
		snprintf(port, 8, "%s", rest);
	}
	return true;
}

static bool is_loopback_address(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	return address->sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
					     : address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static bool is_any_address(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;
	return address->sa_family == AF_INET ? v4->sin_addr.s_addr == htonl(INADDR_ANY)
					     : address->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
}

/* Opens a listening socket and returns it; -1 on failure, with errno. */
static int open_socket(const struct addrinfo *info)
{
	const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
	    bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 16) == 0)
		return fd;
	const int error = errno;
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

int cli_http_listen(
    struct cli_http_address *out, const char *verb, const char *option, const char *listen_at, const char *default_port)
{
	char host[sizeof out->host] = "127.0.0.1", service[8], number[8] = "0";
	struct addrinfo *info, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct sockaddr_storage bound = {0};
	socklen_t size = sizeof bound;
	snprintf(service, sizeof service, "%s", default_port);
	if (!split_address(listen_at, host, service))
		return cli_fail_verb(verb, "not an address: --%s=%s; use HOST, HOST:PORT or :PORT", option, listen_at);
	const int why = getaddrinfo(host, service, &hints, &info);
	if (why != 0)
		return cli_fail_verb(verb, "%s: %s", host, gai_strerror(why));
	const int fd = open_socket(info), error = errno;
	freeaddrinfo(info);
	if (fd < 0)
		return cli_fail_verb(verb, "cannot listen on %s: %s", listen_at, strerror(error));
	if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0)
		(void)getnameinfo((struct sockaddr *)&bound, size, NULL, 0, number, sizeof number, NI_NUMERICSERV);
	*out = (struct cli_http_address){
	    .socket = fd, .port = (unsigned)atoi(number), .is_loopback = is_loopback_address((struct sockaddr *)&bound)};
	if (is_any_address((struct sockaddr *)&bound))
		gethostname(host, sizeof host - 1);
	snprintf(out->host, sizeof out->host, "%s", host);
	return -1;
}

const char *cli_http_format_url(const struct cli_http_address *address, char buf[CLI_HTTP_URL_BYTES])
{
	const bool in_brackets = strchr(address->host, ':');
	snprintf(buf, CLI_HTTP_URL_BYTES, "http://%s%s%s:%u", in_brackets ? "[" : "", address->host, in_brackets ? "]" : "",
	    address->port);
	return buf;
}

/* ---- Responses ---- */

static const struct {
	const char *name, *value;
} headers[] = {
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy", "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src blob:; "
				"img-src data:; base-uri 'none'; "
				"form-action 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
};

enum MHD_Result cli_http_send(struct MHD_Connection *connection, unsigned status, const char *type, struct MHD_Response *response)
{
	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		MHD_add_response_header(response, headers[i].name, headers[i].value);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result cli_http_send_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	if (response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return cli_http_send(connection, status, "text/plain; charset=utf-8", response);
}

#endif
