/* serve.c: weft serve: the page from a web server of its own, which follows traces while they are recorded.
 *
 * A browser asks for a trace again and again, with the ETag of what it has: If-None-Match; the ETag is the trace's fingerprint
 * (trace/follow.h).  Of a large trace that is recorded it gets the newest events, which followers read (model/followers.h); all
 * that there is if it asks for TRACE?whole=1.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#if defined(WEFT_HAS_PAGE) && defined(WEFT_HAS_SERVER)

#include <arpa/inet.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "apps/web/page.h"
#include "model/followers.h"
#include "trace/several.h"

#define TOKEN_BYTES 16
#define MOST_CONNECTIONS 256u
#define MOST_STRANGERS 32u /* of these, connections on which nobody has shown the token yet */
#define IDLE_SECONDS 60u
#define STRANGER_SECONDS 10u
#define LARGE_BYTES (32u * WEFT_FOLLOWER_SEEN) /* twice as many events, of 16 bytes */

/* A trace as it was read last; responses that are under way hold it. */
struct snapshot {
	struct weft_trace *trace;
	bool is_partial; /* the newest events alone */
	cli_bytes packed;
	const void *bytes;
	size_t size;
	unsigned holders;
};

struct served {
	struct cli_picture *picture;
	bool is_read_once;                /* standard input, a FIFO: what is read is gone */
	uint64_t fingerprint;             /* of what was tried last */
	bool is_large;                    /* as a whole */
	struct weft_followers *followers; /* or NULL */
	struct snapshot *snapshot;        /* NULL: it could not be read, as err says */
	struct weft_error err;
};

/* A connection on which the token was not shown yet; the oldest one leaves when there are too many. */
struct stranger {
	int socket;
	struct stranger *older, *newer;
};

struct strangers {
	struct stranger *oldest, *newest;
	unsigned count;
};

struct server {
	struct strangers strangers;
	struct served *traces;
	size_t count;
	cli_bytes index;
	char token[2 * TOKEN_BYTES + 1];
	char host[256]; /* as it was named, or the machine's: what browsers may call it, besides addresses and localhost */
	bool is_loopback;
	int socket;
	unsigned port;
};

/* ---- traces: by the server's one OS thread, but for the first reading ---- */

static void release(void *ctx)
{
	struct snapshot *s = ctx;
	if (!s || --s->holders > 0)
		return;
	weft_trace_close(s->trace);
	weft_vec_free(&s->packed);
	free(s);
}

static int pack_all(struct snapshot *s, struct served *t, struct weft_error *err)
{
	s->is_partial = false;
	int status = cli_picture_open(&s->trace, t->picture, err);
	if (status == WEFT_OK)
		status = cli_pack(&s->bytes, &s->size, &s->packed, s->trace, err);
	t->is_large = status == WEFT_OK && s->size > LARGE_BYTES;
	return status;
}

/* 1: all is to be packed. */
static int pack_newest(struct snapshot *s, struct served *t, struct weft_error *err)
{
	const struct weft_follower_options options = {
	    .window_ns = INT64_MAX, .window_events = WEFT_FOLLOWER_SEEN, .begins_at_window = true, .makes_no_model = true};
	const struct cli_picture *p = t->picture;
	if (!t->followers && weft_followers_open(&t->followers, &options, err) < 0)
		return 1;
	weft_followers_renew(t->followers);
	/* Of a ring that has just been overwritten as a whole a window may be a moment. */
	if (weft_followers_look(t->followers, p->paths, p->count, p->is_session, err) <= 0 ||
	    !weft_followers_are_followed(t->followers))
		return 1;
	s->is_partial = weft_followers_window(t->followers) > 0;
	if (s->is_partial && !weft_followers_is_filled(t->followers))
		return 1;
	struct weft_followed *followed = weft_followers_take(t->followers);
	if (!followed)
		return weft_error_set(err, WEFT_ENOMEM, "%s: %s", p->name, weft_status_string(WEFT_ENOMEM));
	const int status = cli_pack_window(&s->packed, followed, err);
	weft_followed_destroy(followed);
	s->bytes = s->packed.items;
	s->size = s->packed.count;
	return status;
}

static int take_snapshot(struct snapshot **out, struct served *t, bool is_whole, struct weft_error *err)
{
	struct snapshot *s = calloc(1, sizeof *s);
	if (!s)
		return weft_error_set(err, WEFT_ENOMEM, "%s: %s", t->picture->name, weft_status_string(WEFT_ENOMEM));
	s->holders = 1;
	int status = is_whole || !t->is_large ? 1 : pack_newest(s, t, err);
	if (status > 0)
		status = pack_all(s, t, err);
	if (status < 0) {
		release(s);
		return status;
	}
	if (s->packed.items) {
		weft_trace_close(s->trace);
		s->trace = NULL;
	}
	*out = s;
	return WEFT_OK;
}

/* A path whose opening may wait for somebody to write; NULL: none. */
static const char *may_wait(const struct cli_picture *picture)
{
	struct stat there;
	for (size_t i = 0; i < picture->count; i++) {
		const char *path = picture->paths[i];
		if (strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)))
			return path;
	}
	return NULL;
}

/* Reads the trace if it is not as it was, or not as it is wanted. */
static int refresh(struct served *t, bool is_whole)
{
	const uint64_t now = weft_several_fingerprint(t->picture->paths, t->picture->count);
	const char *waits = may_wait(t->picture);
	if (t->snapshot && ((now == t->fingerprint && !(is_whole && t->snapshot->is_partial)) || t->is_read_once))
		return WEFT_OK;
	struct snapshot *fresh = NULL;
	int status;
	if (waits && !t->is_read_once)
		status = weft_error_set(&t->err, WEFT_EFORMAT, "%s: is no longer a file or a directory", waits);
	else
		status = take_snapshot(&fresh, t, is_whole, &t->err);
	t->fingerprint = now;
	release(t->snapshot);
	t->snapshot = fresh;
	return status;
}

/* ---- requests ---- */

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

/* Takes the response; NULL: the connection is closed. */
static enum MHD_Result send_response(
    struct MHD_Connection *connection, unsigned status, const char *type, struct MHD_Response *response)
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

static enum MHD_Result send_static(struct MHD_Connection *connection, const char *type, const void *bytes, size_t size)
{
	return send_response(connection, MHD_HTTP_OK, type,
	    MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	if (response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return send_response(connection, status, "text/plain; charset=utf-8", response);
}

static enum MHD_Result send_trace(struct MHD_Connection *connection, struct served *t)
{
	char etag[32], text[640];
	if (!t->is_read_once && !cli_picture_renew(t->picture))
		return MHD_NO;
	// before the reading: what happens meanwhile will be new
	const bool is_recorded = weft_several_are_recorded(t->picture->paths, t->picture->count);
	const bool is_whole = !is_recorded || MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "whole");
	if (refresh(t, is_whole) < 0 || !t->snapshot) {
		weft_error_format(&t->err, text, sizeof text);
		return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
	}
	snprintf(etag, sizeof etag, "\"%016" PRIx64 "%s\"", t->fingerprint, t->snapshot->is_partial ? "-newest" : "");
	const char *known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
	const bool is_known = known && strcmp(known, etag) == 0;
	struct MHD_Response *response = is_known
					    ? MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT)
					    : MHD_create_response_from_buffer_with_free_callback_cls(
						  t->snapshot->size, (void *)(uintptr_t)t->snapshot->bytes, release, t->snapshot);
	if (response) {
		t->snapshot->holders += !is_known;
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, etag);
		MHD_add_response_header(response, "Weft-Recorded", is_recorded ? "yes" : "no");
	}
	return send_response(connection, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, "application/octet-stream", response);
}

/* ---- who asks ---- */

static void forget_stranger(struct strangers *list, struct stranger *who)
{
	if (!who->older && !who->newer && list->oldest != who)
		return;
	*(who->older ? &who->older->newer : &list->oldest) = who->newer;
	*(who->newer ? &who->newer->older : &list->newest) = who->older;
	who->older = who->newer = NULL;
	list->count--;
}

/* Somebody connects, or leaves.  Who connects finds room also where others only sit: the oldest stranger is shown out. */
static void meet(void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
	struct strangers *list = &((struct server *)ctx)->strangers;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*socket_context)
			forget_stranger(list, *socket_context);
		free(*socket_context);
		*socket_context = NULL;
		return;
	}
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct stranger *who = info ? calloc(1, sizeof *who) : NULL;
	*socket_context = who;
	if (!who)
		return;
	*who = (struct stranger){.socket = info->connect_fd, .older = list->newest};
	*(list->newest ? &list->newest->newer : &list->oldest) = who;
	list->newest = who;
	if (++list->count > MOST_STRANGERS) {
		struct stranger *oldest = list->oldest;
		forget_stranger(list, oldest);
		shutdown(oldest->socket, SHUT_RDWR);
	}
}

/* The token was shown. */
static void welcome(struct server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info && info->socket_context)
		forget_stranger(&server->strangers, info->socket_context);
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
}

/* ":PORT", or nothing. */
static bool is_port(const char *text)
{
	const size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
	return text[0] == '\0' || (digits > 0 && digits <= 5 && text[1 + digits] == '\0' && atoi(text + 1) <= 65535);
}

/* Whether a Host header names this server.  A page of somebody else's whose name leads here, DNS rebinding, says its own name:
 * an address it cannot be. */
static bool is_our_host(const struct server *server, const char *header)
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
	       (length > 0 && strcasecmp(host, server->host) == 0);
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

/* Two headers might be understood differently by who stands between. */
static bool is_for_us(const struct server *server, struct MHD_Connection *connection)
{
	struct hosts hosts = {0};
	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_host, &hosts);
	return hosts.count == 1 && hosts.first && is_our_host(server, hosts.first);
}

/* In a time that does not tell how much of it is right. */
static bool has_token(const struct server *server, const char *url)
{
	unsigned char wrong = 0;
	if (strlen(url) < sizeof server->token + 1 || url[0] != '/' || url[sizeof server->token] != '/')
		return false;
	for (size_t i = 0; i < sizeof server->token - 1; i++)
		wrong |= (unsigned char)(url[1 + i] ^ server->token[i]);
	return wrong == 0;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_size, void **request)
{
	struct server *server = ctx;
	const bool only_reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	// An answer to the first of the two calls that a request has would close the connection.
	if (only_reads && !*request) {
		*request = server;
		return MHD_YES;
	}
	if (!is_for_us(server, connection))
		return send_text(connection, MHD_HTTP_FORBIDDEN, "This is not the name of this server.\n");
	if (!has_token(server, url))
		return send_text(connection, MHD_HTTP_NOT_FOUND, "Nothing is here: use the address that weft serve printed.\n");
	welcome(server, connection);
	if (!only_reads)
		return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "This server only answers GET and HEAD.\n");
	const char *name = url + sizeof server->token + 1;
	if (*name == '\0')
		return send_static(connection, "text/html; charset=utf-8", server->index.items, server->index.count);
	if (strcmp(name, "weft.js") == 0) {
		size_t size;
		const void *bytes = weft_page_script(&size);
		return send_static(connection, "text/javascript; charset=utf-8", bytes, size);
	}
	for (size_t i = 0; i < server->count; i++) {
		char own[WEFT_PAGE_NAME_BYTES];
		if (strcmp(name, weft_page_trace_name(own, i, "")) == 0)
			return send_trace(connection, &server->traces[i]);
	}
	return send_text(connection, MHD_HTTP_NOT_FOUND, "Nothing is here.\n");
}

/* ---- where to listen ---- */

/* [HOST][:PORT], an IPv6 address in brackets when a port follows.  False: it is no such thing. */
static bool split(const char *listen, char host[256], char port[8])
{
	const bool in_brackets = listen[0] == '[';
	const char *begin = listen + in_brackets, *colon = strchr(begin, ':');
	size_t length = strcspn(begin, in_brackets ? "]" : ":");
	if (!in_brackets && colon && strchr(colon + 1, ':'))
		length = strlen(begin); // an IPv6 address, bare
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

/* Opens the socket, and fills what the server knows of it.  Returns as cli_parse(). */
static int open_socket(struct server *server, const char *listen_at)
{
	char host[256] = "127.0.0.1", service[8] = "0", number[8];
	struct addrinfo *info, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct sockaddr_storage bound = {0};
	socklen_t size = sizeof bound;
	if (!split(listen_at, host, service))
		return cli_fail("serve: --listen=%s is not an address: HOST, HOST:PORT or :PORT", listen_at);
	int why = getaddrinfo(host, service, &hints, &info);
	if (why != 0)
		return cli_fail("serve: %s: %s", host, gai_strerror(why));
	const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
		  bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 16) == 0 &&
		  getsockname(fd, (struct sockaddr *)&bound, &size) == 0 &&
		  getnameinfo((struct sockaddr *)&bound, size, NULL, 0, number, sizeof number, NI_NUMERICSERV) == 0;
	int error = errno;
	freeaddrinfo(info);
	if (!ok) {
		if (fd >= 0)
			close(fd);
		return cli_fail("serve: cannot listen on %s: %s", listen_at, strerror(error));
	}
	server->socket = fd;
	server->port = (unsigned)atoi(number);
	server->is_loopback = is_loopback_address((struct sockaddr *)&bound);
	if (is_any_address((struct sockaddr *)&bound))
		gethostname(host, sizeof host - 1);
	snprintf(server->host, sizeof server->host, "%s", host);
	return -1;
}

static int make_token(char *token)
{
	unsigned char bytes[TOKEN_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return cli_fail("serve: no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return -1;
}

/* ---- the verb ---- */

/* Serves until a signal says stop. */
static int serve(struct server *server, const char *listen_at)
{
	int got;
	sigset_t signals;
	int exit = open_socket(server, listen_at);
	if (exit >= 0)
		return exit;
	// before the server's OS thread begins, which inherits it
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer,
	    server, MHD_OPTION_LISTEN_SOCKET, server->socket, MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS,
	    MHD_OPTION_CONNECTION_TIMEOUT, STRANGER_SECONDS, MHD_OPTION_NOTIFY_CONNECTION, meet, server, MHD_OPTION_END);
	if (!daemon) {
		close(server->socket);
		return cli_fail("serve: the server cannot be started");
	}
	const bool in_brackets = strchr(server->host, ':');
	printf(
	    "http://%s%s%s:%u/%s/\n", in_brackets ? "[" : "", server->host, in_brackets ? "]" : "", server->port, server->token);
	fflush(stdout);
	if (!server->is_loopback)
		cli_note("serve: whoever knows this address can read the trace, and so can whoever sees the network: it is not "
			 "encrypted");
	if (isatty(STDERR_FILENO))
		cli_note("serve: open this address in a browser; Ctrl+C ends");
	sigwait(&signals, &got);
	// A trace that is being read is waited for; whoever does not want to wait asks a second time.
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	MHD_stop_daemon(daemon);
	return CLI_FINE;
}

/* Reads the traces a first time, and makes the page.  Traces of hosts that are recorded still may have what ties them together
 * later.  Returns as cli_parse(). */
static int prepare(struct server *server, struct cli_picture *pictures)
{
	struct weft_page_trace *names = calloc(server->count, sizeof *names);
	if (!names)
		return cli_fail("serve: %s", weft_status_string(WEFT_ENOMEM));
	int exit = -1;
	for (size_t i = 0; i < server->count && exit < 0; i++) {
		struct served *t = &server->traces[i];
		t->picture = &pictures[i];
		t->is_read_once = may_wait(t->picture);
		names[i].name = t->picture->name;
		const bool may_become = t->picture->count > 1 && weft_several_are_recorded(t->picture->paths, t->picture->count);
		cli_progress_begin("opening", t->picture->name);
		int status = refresh(t, true);
		cli_progress_end();
		if (status < 0 && !may_become)
			exit = cli_fail_error(&t->err);
	}
	if (exit < 0 && weft_page_write_index(names, server->count, true, cli_append, &server->index, NULL) < 0)
		exit = cli_fail("serve: %s", weft_status_string(WEFT_ENOMEM));
	free(names);
	return exit < 0 ? make_token(server->token) : exit;
}

int cli_serve(struct cli_args *args)
{
	const char *listen_at = "127.0.0.1";
	bool compare = false;
	const struct cli_option options[] = {
	    {"listen", 'l', CLI_TEXT, &listen_at, "HOST:PORT",
		"listens there; if not given, at a free port that only this machine can reach"},
	    CLI_OPTION_COMPARE(&compare),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	struct cli_picture *pictures;
	struct server server = {.count = cli_pictures(&pictures, args, compare)};
	server.traces = calloc(server.count + 1, sizeof *server.traces);
	exit =
	    server.traces && server.count ? prepare(&server, pictures) : cli_fail("serve: %s", weft_status_string(WEFT_ENOMEM));
	if (exit < 0)
		exit = serve(&server, listen_at);
	for (size_t i = 0; server.traces && i < server.count; i++) {
		release(server.traces[i].snapshot);
		weft_followers_close(server.traces[i].followers);
	}
	free(server.traces);
	weft_vec_free(&server.index);
	return exit;
}

#else

int cli_serve(struct cli_args *args)
{
	(void)args;
	return cli_fail("serve: this weft was built without pages: libmicrohttpd, clang-14, lld-14 or wasi-libc was missing");
}

#endif
