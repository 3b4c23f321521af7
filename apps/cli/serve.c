/* serve.c: implements weft serve, an HTTP server for the page, which follows traces while programs record them.
 *
 * A browser requests a trace repeatedly, with the ETag of its copy in If-None-Match; the ETag is the fingerprint of the trace
 * (trace/follow.h).  If a large trace is being recorded, the server sends only its newest events, which followers read
 * (model/followers.h); it sends all events for TRACE?whole=1.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#if defined(WEFT_HAS_PAGE) && defined(WEFT_HAS_SERVER)

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "apps/web/page.h"
#include "http.h"
#include "metrics.h"
#include "model/followers.h"
#include "trace/join.h"
#include "trace/multi_open.h"

#define TOKEN_BYTES 16
#define MAX_CONNECTIONS 256u
#define MAX_STRANGERS 32u /* maximum number of connections that have not sent the token */
#define IDLE_SECONDS 60u
#define STRANGER_SECONDS 10u
#define METRICS_EVERY_NS 500000000
/* Size from which on a trace is large: twice the window's events, at 16 bytes each. */
#define LARGE_BYTES (32u * WEFT_FOLLOWER_WINDOW_EVENTS)

/* The last state of a trace that was read; pending responses hold references to it. */
struct snapshot {
	struct weft_trace *trace;
	bool is_partial; /* only the newest events */
	cli_bytes packed;
	const void *bytes;
	size_t size;
	unsigned references;
};

struct served {
	struct open_plan *picture;
	bool is_read_once;                /* whether the trace is standard input or a FIFO, which cannot be read again */
	uint64_t fingerprint;             /* fingerprint of the trace at the last attempt to read it */
	bool is_large;                    /* whether the whole trace is large */
	struct weft_followers *followers; /* followers of the trace's newest events; NULL until the trace is large */
	struct snapshot *snapshot;        /* last snapshot; NULL if reading failed, and then err has the reason */
	struct weft_error err;
};

/* A connection that has not sent the token; the oldest such connection is closed when there are too many. */
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
	struct cli_http_address address;
	/* Metrics: the thread that waits for signals follows the traces, and the server's thread answers. */
	struct cli_meters *meters; /* NULL: without --metrics */
	pthread_mutex_t lock;      /* lock for the traces and, with --metrics, for the metrics */
};

/* ---- Traces: the server's one OS thread runs these functions, except for the first reading ---- */

static void release_snapshot(void *ctx)
{
	struct snapshot *s = ctx;
	if (!s || --s->references > 0)
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

/* Replaces addresses by names in the parts of a followed trace, because followers open only the parts. */
static void name_sites(struct weft_trace *trace)
{
	struct weft_trace *part;
	size_t i = 0;
	for (; (part = weft_trace_part(trace, i)); i++)
		cli_find_site_names_again(part);
	if (i == 0)
		cli_find_site_names_again(trace);
}

/* Packs the newest events.  Returns 1 if all events must be packed instead of the newest ones. */
static int pack_newest(struct snapshot *s, struct served *t, struct weft_error *err)
{
	const struct weft_follower_options options = {.window_ns = INT64_MAX,
	    .window_events = WEFT_FOLLOWER_WINDOW_EVENTS,
	    .begins_at_window = true,
	    .makes_no_model = true};
	const struct open_plan *p = t->picture;
	if (!t->followers && weft_followers_open(&t->followers, &options, err) < 0)
		return 1;
	weft_followers_mark_stale(t->followers);
	/* If the whole ring was just overwritten, the window may contain almost no events. */
	if (weft_followers_refresh(t->followers, p->paths.items, p->paths.count, p->is_session, err) <= 0 ||
	    !weft_followers_are_incremental(t->followers))
		return 1;
	s->is_partial = weft_followers_window_start_ns(t->followers) > 0;
	if (s->is_partial && !weft_followers_is_filled(t->followers))
		return 1;
	struct weft_followed_model *followed = weft_followers_detach(t->followers);
	if (!followed)
		return weft_error_set(err, WEFT_ENOMEM, "%s: %s", p->name, weft_status_string(WEFT_ENOMEM));
	name_sites(followed->trace);
	const int status = cli_pack_window(&s->packed, followed, err);
	weft_followed_model_destroy(followed);
	s->bytes = s->packed.items;
	s->size = s->packed.count;
	return status;
}

static int take_snapshot(struct snapshot **out, struct served *t, bool is_whole, struct weft_error *err)
{
	struct snapshot *s = calloc(1, sizeof *s);
	if (!s)
		return weft_error_set(err, WEFT_ENOMEM, "%s: %s", t->picture->name, weft_status_string(WEFT_ENOMEM));
	s->references = 1;
	int status = is_whole || !t->is_large ? 1 : pack_newest(s, t, err);
	if (status > 0)
		status = pack_all(s, t, err);
	if (status < 0) {
		release_snapshot(s);
		return status;
	}
	if (s->packed.items) {
		weft_trace_close(s->trace);
		s->trace = NULL;
	}
	*out = s;
	return WEFT_OK;
}

/* Returns a path whose opening may block until another process opens it for writing, or NULL. */
static const char *find_blocking_path(const struct open_plan *picture)
{
	struct stat there;
	for (size_t i = 0; i < picture->paths.count; i++) {
		const char *path = picture->paths.items[i];
		if (strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)))
			return path;
	}
	return NULL;
}

/* Reads the trace if it has changed, or if all events are wanted and only the newest events are in memory. */
static int refresh_trace(struct served *t, bool is_whole)
{
	const uint64_t now = weft_multi_fingerprint(t->picture->paths.items, t->picture->paths.count);
	const char *waits = find_blocking_path(t->picture);
	if (t->snapshot && ((now == t->fingerprint && !(is_whole && t->snapshot->is_partial)) || t->is_read_once))
		return WEFT_OK;
	struct snapshot *fresh = NULL;
	int status;
	if (waits && !t->is_read_once)
		status = weft_error_set(&t->err, WEFT_EFORMAT, "%s: no longer a file or a directory", waits);
	else
		status = take_snapshot(&fresh, t, is_whole, &t->err);
	t->fingerprint = now;
	release_snapshot(t->snapshot);
	t->snapshot = fresh;
	return status;
}

/* ---- requests ---- */

static enum MHD_Result send_static(struct MHD_Connection *connection, const char *type, const void *bytes, size_t size)
{
	return cli_http_send(connection, MHD_HTTP_OK, type,
	    MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_trace(struct MHD_Connection *connection, struct served *t)
{
	char etag[32], text[640];
	if (!t->is_read_once && !open_reclassify(t->picture))
		return MHD_NO;
	/* The order matters: events that come after this check count as new. */
	const bool is_recorded = weft_multi_is_recorded(t->picture->paths.items, t->picture->paths.count);
	const bool is_whole = !is_recorded || MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "whole");
	if (refresh_trace(t, is_whole) < 0 || !t->snapshot) {
		weft_error_format(&t->err, text, sizeof text);
		return cli_http_send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, text);
	}
	snprintf(etag, sizeof etag, "\"%016" PRIx64 "%s\"", t->fingerprint, t->snapshot->is_partial ? "-newest" : "");
	const char *known = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
	const bool is_known = known && strcmp(known, etag) == 0;
	struct MHD_Response *response = is_known
					    ? MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT)
					    : MHD_create_response_from_buffer_with_free_callback_cls(t->snapshot->size,
						  (void *)(uintptr_t)t->snapshot->bytes, release_snapshot, t->snapshot);
	if (response) {
		t->snapshot->references += !is_known;
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, etag);
		MHD_add_response_header(response, "Weft-Trace-Is-Recorded", is_recorded ? "yes" : "no");
	}
	return cli_http_send(connection, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, "application/octet-stream", response);
}

/* ---- Metrics ---- */

static enum MHD_Result send_metrics(struct MHD_Connection *connection, struct server *server)
{
	cli_bytes text = {0};
	pthread_mutex_lock(&server->lock);
	cli_meters_refresh(server->meters);
	cli_meters_write(server->meters, &(struct weft_metrics_follower){.watches = false}, &text);
	pthread_mutex_unlock(&server->lock);
	struct MHD_Response *response = MHD_create_response_from_buffer(text.count, text.items, MHD_RESPMEM_MUST_COPY);
	weft_vec_free(&text);
	return cli_http_send(connection, MHD_HTTP_OK, WEFT_METRICS_CONTENT_TYPE, response);
}

/* Reads the new events of all traces, so that a ring is read before it is overwritten. */
static void follow_metrics(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < server->count; i++) {
		const struct served *t = &server->traces[i];
		for (size_t k = 0; !t->is_read_once && k < t->picture->paths.count; k++)
			cli_meters_follow(server->meters, t->picture->paths.items[k]);
	}
	cli_meters_refresh(server->meters);
	pthread_mutex_unlock(&server->lock);
}

/* Waits for one of the signals that end the server. */
static void wait_for_signal(struct server *server, const sigset_t *signals)
{
	const struct timespec every = {0, METRICS_EVERY_NS};
	int got;
	if (!server->meters)
		sigwait(signals, &got);
	else
		do
			follow_metrics(server);
		while (sigtimedwait(signals, NULL, &every) < 0);
}

/* ---- Clients ---- */

static void remove_stranger(struct strangers *list, struct stranger *client)
{
	if (!client->older && !client->newer && list->oldest != client)
		return;
	*(client->older ? &client->older->newer : &list->oldest) = client->newer;
	*(client->newer ? &client->newer->older : &list->newest) = client->older;
	client->older = client->newer = NULL;
	list->count--;
}

/* Counts connections: runs for each new or closed connection.  If there are too many connections without the token, the oldest
 * one of them is closed. */
static void note_connection(
    void *ctx, struct MHD_Connection *connection, void **socket_context, enum MHD_ConnectionNotificationCode what)
{
	struct strangers *list = &((struct server *)ctx)->strangers;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*socket_context)
			remove_stranger(list, *socket_context);
		free(*socket_context);
		*socket_context = NULL;
		return;
	}
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct stranger *client = info ? calloc(1, sizeof *client) : NULL;
	*socket_context = client;
	if (!client)
		return;
	*client = (struct stranger){.socket = info->connect_fd, .older = list->newest};
	*(list->newest ? &list->newest->newer : &list->oldest) = client;
	list->newest = client;
	if (++list->count > MAX_STRANGERS) {
		struct stranger *oldest = list->oldest;
		remove_stranger(list, oldest);
		shutdown(oldest->socket, SHUT_RDWR);
	}
}

/* Marks a connection as one that has sent the token. */
static void accept_client(struct server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	if (info && info->socket_context)
		remove_stranger(&server->strangers, info->socket_context);
	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, IDLE_SECONDS);
}

/* Compares the token in constant time, so that the time does not reveal a part of the token. */
static bool has_token(const struct server *server, const char *url)
{
	unsigned char wrong = 0;
	if (strlen(url) < sizeof server->token + 1 || url[0] != '/' || url[sizeof server->token] != '/')
		return false;
	for (size_t i = 0; i < sizeof server->token - 1; i++)
		wrong |= (unsigned char)(url[1 + i] ^ server->token[i]);
	return wrong == 0;
}

static enum MHD_Result answer_request(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
    const char *version, const char *upload, size_t *upload_size, void **request)
{
	struct server *server = ctx;
	const bool only_reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
	/* libmicrohttpd calls twice for each request; an answer to the first call would close the connection. */
	if (only_reads && !*request) {
		*request = server;
		return MHD_YES;
	}
	if (!cli_http_is_for_us(&server->address, connection))
		return cli_http_send_text(connection, MHD_HTTP_FORBIDDEN, "The Host header does not name this server.\n");
	if (server->meters && only_reads && strcmp(url, "/metrics") == 0)
		return send_metrics(connection, server);
	if (!has_token(server, url))
		return cli_http_send_text(
		    connection, MHD_HTTP_NOT_FOUND, "Not found: use the address that weft serve printed.\n");
	accept_client(server, connection);
	if (!only_reads)
		return cli_http_send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "This server only answers GET and HEAD.\n");
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
		if (strcmp(name, weft_page_trace_name(own, i, "")) != 0)
			continue;
		pthread_mutex_lock(&server->lock);
		const enum MHD_Result result = send_trace(connection, &server->traces[i]);
		pthread_mutex_unlock(&server->lock);
		return result;
	}
	return cli_http_send_text(connection, MHD_HTTP_NOT_FOUND, "Not found.\n");
}

static int make_token(char *token)
{
	unsigned char bytes[TOKEN_BYTES];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return cli_fail_verb("serve", "cannot get random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return -1;
}

/* ---- the verb ---- */

/* Serves until a signal arrives. */
static int run_server(struct server *server, const char *listen_at)
{
	sigset_t signals;
	const int exit = cli_http_listen(&server->address, "serve", "listen", listen_at, "0");
	if (exit >= 0)
		return exit;
	/* The signals are blocked before the server's OS thread starts, because that thread inherits the mask. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL,
	    answer_request, server, MHD_OPTION_LISTEN_SOCKET, server->address.socket, MHD_OPTION_CONNECTION_LIMIT,
	    MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, STRANGER_SECONDS, MHD_OPTION_NOTIFY_CONNECTION, note_connection,
	    server, MHD_OPTION_END);
	if (!daemon) {
		close(server->address.socket);
		return cli_fail_verb("serve", "cannot start the server");
	}
	char url[CLI_HTTP_URL_BYTES];
	printf("%s/%s/\n", cli_http_format_url(&server->address, url), server->token);
	fflush(stdout);
	if (!server->address.is_loopback)
		cli_note(
		    "the page is not encrypted: everyone who knows the address or reads the network traffic can read the trace");
	if (isatty(STDERR_FILENO))
		cli_note("open this address in a browser; stop with Ctrl+C");
	wait_for_signal(server, &signals);
	/* The server waits for a trace that is being read; a second signal ends the program at once. */
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	MHD_stop_daemon(daemon);
	return CLI_OK;
}

/* Reads the traces for the first time and makes the page.  Recorded traces of several hosts may become joinable only later.
 * Returns as cli_parse(). */
static int prepare_page(struct server *server, struct open_plan **pictures)
{
	struct weft_page_trace *names = calloc(server->count, sizeof *names);
	if (!names)
		return cli_fail_verb("serve", "%s", weft_status_string(WEFT_ENOMEM));
	int exit = -1;
	for (size_t i = 0; i < server->count && exit < 0; i++) {
		struct served *t = &server->traces[i];
		t->picture = pictures[i];
		t->is_read_once = find_blocking_path(t->picture);
		names[i].name = t->picture->name;
		const bool may_become =
		    t->picture->paths.count > 1 && weft_multi_is_recorded(t->picture->paths.items, t->picture->paths.count);
		cli_progress_begin("opening", t->picture->name);
		int status = refresh_trace(t, true);
		cli_progress_end();
		if (status < 0 && !may_become)
			exit = cli_fail_error(&t->err);
	}
	if (exit < 0 && weft_page_write_index(names, server->count, true, cli_bytes_append, &server->index, NULL) < 0)
		exit = cli_fail_verb("serve", "%s", weft_status_string(WEFT_ENOMEM));
	free(names);
	return exit < 0 ? make_token(server->token) : exit;
}

int cli_serve(struct cli_args *args)
{
	const char *listen_at = "127.0.0.1";
	bool compare = false, has_metrics = false;
	const struct cli_option options[] = {
	    {"listen", 'l', CLI_TEXT, &listen_at, "HOST:PORT",
		"listen at this address (default: a free port that only this machine can reach)"},
	    {"metrics", 0, CLI_FLAG, &has_metrics, NULL,
		"also serve /metrics: numbers about the traces in the OpenMetrics format, without the token"},
	    CLI_OPTION_COMPARE(&compare),
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	struct open_plan **pictures;
	struct server server = {.count = cli_make_pictures(&pictures, args, compare), .lock = PTHREAD_MUTEX_INITIALIZER};
	server.meters = has_metrics ? cli_meters_create() : NULL;
	server.traces = calloc(server.count + 1, sizeof *server.traces);
	exit = server.traces && server.count ? prepare_page(&server, pictures)
					     : cli_fail_verb("serve", "%s", weft_status_string(WEFT_ENOMEM));
	if (exit < 0)
		exit = run_server(&server, listen_at);
	for (size_t i = 0; server.traces && i < server.count; i++) {
		release_snapshot(server.traces[i].snapshot);
		weft_followers_close(server.traces[i].followers);
	}
	cli_meters_destroy(server.meters);
	free(server.traces);
	weft_vec_free(&server.index);
	return exit;
}

#else
#include "feature_list.h"

int cli_serve(struct cli_args *args)
{
	(void)args;
	return cli_fail_without("serve", CLI_FEATURE_SERVER);
}

#endif
