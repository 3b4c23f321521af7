/* http.c: an HTTP/1.1 server for the files of a folder, written with promises.
 *
 *	WEFT_TRACE=http.weft ./http-server --port=8080 FOLDER
 *	curl http://127.0.0.1:8080/some/file
 *	weft render http.weft -o http.svg
 *
 * In the trace a connection is one promise, labelled by its client, and so is each of its requests, "GET /some/file".  The other
 * promises are files, reads and writes.  The server disconnects slow clients.  After SIGINT or SIGTERM it finishes the answers in
 * progress; after a second signal it stops at once.
 *
 * It follows symbolic links, so users who can create links can publish other files.  SPDX-License-Identifier: ISC */
#include "request.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/uv.h>

#define MAX_CONNECTIONS 10000
#define OTHER_FILES 32 /* files that libuv and the recorder have open */
#define READ_BYTES 16384
#define CHUNK_BYTES 65536
#define MAX_LABEL_BYTES 120
#define WATCH_MS 1000
#define IDLE_MS 60000  /* limit between two requests */
#define DRAIN_MS 10000 /* limit for answers in progress when the server stops */
#define LINGER_MS 2000 /* limit for a client to read the last answer */
#define REFUSED_MS 100 /* delay after a failed accept */

struct connection {
	struct connection *next, **back;
	struct weft_uv_stream *stream;
	struct weft_promise *work;  /* everything that it does, for cancelling */
	bool late;                  /* the deadline has passed */
	struct weft_promise *input; /* the last read, while some of its bytes are not parsed */
	size_t parsed;              /* parsed bytes of input */
	uint64_t deadline_ms;
	struct request request;

	/* Promises for the trace: the connection and the request; no code awaits them. */
	struct weft_resolver *open_end, *request_end;

	/* The answer in progress. */
	bool answering;
	const char *type;
	struct weft_uv_file *file;
	uint64_t at, end; /* range of the file that remains to be read */
	size_t head_bytes;
	char head[1024];
};

static struct weft_uv *uv;
static uint64_t patience_ms = 10000;            /* limit for a request to arrive, and for the client to take CHUNK_BYTES */
static struct weft_semaphore *connection_slots; /* limit of connections */
static struct connection *connections;
static struct weft_condition *all_gone;
static bool ending;

static struct weft_counter open_connections = WEFT_PROMISE_COUNTER("connections", 0);
static struct weft_counter requests = WEFT_PROMISE_COUNTER("requests", 0);
static struct weft_counter bytes_sent = WEFT_PROMISE_COUNTER("bytes sent", 0);

static uint64_t now_ms(void)
{
	return uv_now(weft_uv_loop(uv));
}

/* ---- The head of an answer ---- */

static const char *content_type(const char *path)
{
	static const char *const types[][2] = {
	    {"html", "text/html; charset=utf-8"},
	    {"css", "text/css; charset=utf-8"},
	    {"js", "text/javascript; charset=utf-8"},
	    {"json", "application/json"},
	    {"txt", "text/plain; charset=utf-8"},
	    {"md", "text/plain; charset=utf-8"},
	    {"svg", "image/svg+xml"},
	    {"png", "image/png"},
	    {"jpg", "image/jpeg"},
	    {"jpeg", "image/jpeg"},
	    {"gif", "image/gif"},
	    {"webp", "image/webp"},
	    {"ico", "image/x-icon"},
	    {"woff2", "font/woff2"},
	    {"wasm", "application/wasm"},
	    {"pdf", "application/pdf"},
	};
	const char *dot = strrchr(path, '.');
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcasecmp(dot + 1, types[i][0]) == 0)
			return types[i][1];
	return "application/octet-stream";
}

__attribute__((format(printf, 2, 3))) static void add_to_head(struct connection *c, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int bytes = vsnprintf(c->head + c->head_bytes, sizeof c->head - c->head_bytes, format, args);
	va_end(args);
	c->head_bytes += (size_t)bytes; /* always fits: see send_redirect() */
}

static void begin_head(struct connection *c, int status)
{
	static char date[DATE_BYTES];
	static time_t date_of;
	time_t now = time(NULL);
	if (now != date_of)
		http_date(date_of = now, date);
	c->head_bytes = 0;
	add_to_head(c, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, http_status_str((enum http_status)status), date);
	c->request.keeps = c->request.keeps && !ending;
	if (!c->request.keeps)
		add_to_head(c, "Connection: close\r\n");
	else if (c->request.parser.http_minor == 0)
		add_to_head(c, "Connection: keep-alive\r\n");
}

/* ---- Answers ---- */

static struct weft_promise *send_bytes(struct connection *c, const char *bytes, size_t size)
{
	c->deadline_ms = now_ms() + patience_ms;
	weft_counter_increase(&bytes_sent, (int64_t)size);
	return weft_uv_write(c->stream, bytes, size);
}

/* Sends an answer that is not a file: its status, also as text. */
static struct weft_promise *send_status(struct connection *c, int status, const char *fields)
{
	char text[64];
	int bytes = snprintf(text, sizeof text, "%d %s\n", status, http_status_str((enum http_status)status));
	begin_head(c, status);
	add_to_head(c, "%sContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", fields, bytes);
	if (c->request.parser.method != HTTP_HEAD)
		add_to_head(c, "%s", text);
	return send_bytes(c, c->head, c->head_bytes);
}

static struct weft_promise *send_chunk(void *connection, void *chunk);

static struct weft_promise *send_rest(void *connection, void *nothing)
{
	struct connection *c = connection;
	if (c->at == c->end)
		return weft_promise_unit();
	size_t most = c->end - c->at < CHUNK_BYTES ? (size_t)(c->end - c->at) : CHUNK_BYTES;
	return weft_promise_bind(weft_uv_file_read(c->file, most, (int64_t)c->at), send_chunk, c, NULL);
}

static struct weft_promise *send_chunk(void *connection, void *chunk)
{
	struct connection *c = connection;
	struct weft_uv_bytes *bytes = chunk;
	if (bytes->size == 0) /* the announced length can no longer be sent */
		return weft_promise_fail(UV_EOF, "the file is shorter than it was");
	c->at += bytes->size;
	if (c->head_bytes == 0)
		return weft_promise_bind(send_bytes(c, bytes->data, bytes->size), send_rest, c, NULL);
	/* Send the head and the first bytes together: most answers then need one packet. */
	size_t size = c->head_bytes + bytes->size;
	char *both = malloc(size);
	if (!both)
		return weft_promise_fail(WEFT_PROMISE_ENOMEM, "out of memory");
	memcpy(both, c->head, c->head_bytes);
	memcpy(both + c->head_bytes, bytes->data, bytes->size);
	c->head_bytes = 0;
	struct weft_promise *sent = send_bytes(c, both, size);
	free(both);
	return weft_promise_bind(sent, send_rest, c, NULL);
}

static struct weft_promise *send_file(struct connection *c, const struct stat *s)
{
	char etag[80], modified[DATE_BYTES];
	uint64_t size = (uint64_t)s->st_size;
	snprintf(etag, sizeof etag, "\"%jx-%jx-%jx.%lx\"", (uintmax_t)s->st_ino, (uintmax_t)size, (uintmax_t)s->st_mtim.tv_sec,
	    s->st_mtim.tv_nsec);
	http_date(s->st_mtim.tv_sec, modified);
	int status = HTTP_STATUS_NOT_MODIFIED;
	if (!request_has(&c->request, etag, s->st_mtim.tv_sec))
		status = request_range(&c->request, etag, size, &c->at, &c->end);
	if (status == HTTP_STATUS_RANGE_NOT_SATISFIABLE) {
		char fields[64];
		snprintf(fields, sizeof fields, "Content-Range: bytes */%" PRIu64 "\r\n", size);
		return send_status(c, status, fields);
	}
	begin_head(c, status);
	add_to_head(c, "ETag: %s\r\nLast-Modified: %s\r\nAccept-Ranges: bytes\r\n", etag, modified);
	if (status == HTTP_STATUS_PARTIAL_CONTENT)
		add_to_head(c, "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", c->at, c->end - 1, size);
	if (status != HTTP_STATUS_NOT_MODIFIED)
		add_to_head(c, "Content-Type: %s\r\nContent-Length: %" PRIu64 "\r\n", c->type, c->end - c->at);
	add_to_head(c, "\r\n");
	if (status == HTTP_STATUS_NOT_MODIFIED || c->request.parser.method == HTTP_HEAD || c->at == c->end)
		return send_bytes(c, c->head, c->head_bytes);
	return send_rest(c, NULL);
}

/* Redirects to the same path with a trailing slash, so that relative links on the page work. */
static struct weft_promise *send_redirect(struct connection *c)
{
	char fields[512];
	int path_bytes = (int)strcspn(c->request.target, "?");
	int bytes = snprintf(fields, sizeof fields, "Location: %.*s/\r\n", path_bytes, c->request.target);
	if (c->request.target[0] != '/' || c->request.target[1] == '/' || (size_t)bytes >= sizeof fields)
		return send_status(c, HTTP_STATUS_NOT_FOUND, "");
	return send_status(c, HTTP_STATUS_MOVED_PERMANENTLY, fields);
}

static struct weft_promise *on_opened(void *connection, void *file)
{
	struct connection *c = connection;
	struct stat s;
	c->file = weft_uv_file_ref(file);
	/* fstat() of an open file does not access the disk: a turn on the thread pool would cost more. */
	if (fstat(weft_uv_file_descriptor(file), &s) != 0)
		return send_status(c, HTTP_STATUS_INTERNAL_SERVER_ERROR, "");
	if (S_ISDIR(s.st_mode))
		return send_redirect(c);
	return S_ISREG(s.st_mode) ? send_file(c, &s) : send_status(c, HTTP_STATUS_NOT_FOUND, "");
}

static struct weft_promise *on_open_failed(void *connection, const struct weft_failure *failure)
{
	switch (failure->code) {
	case WEFT_PROMISE_CANCELLED: return weft_promise_fail(failure->code, failure->message);
	case UV_EACCES: return send_status(connection, HTTP_STATUS_FORBIDDEN, "");
	case UV_EMFILE:
	case UV_ENFILE: return send_status(connection, HTTP_STATUS_SERVICE_UNAVAILABLE, "Retry-After: 1\r\n");
	default: return send_status(connection, HTTP_STATUS_NOT_FOUND, "");
	}
}

static struct weft_promise *send_answer(struct connection *c)
{
	char path[MAX_PATH_BYTES];
	int status = c->request.status;
	weft_counter_increase(&requests, 1);
	if (!status)
		status = request_path(&c->request, path);
	if (status)
		return send_status(c, status, status == HTTP_STATUS_METHOD_NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "");
	c->type = content_type(path);
	/* O_NONBLOCK: do not wait for the other end of a named pipe.  Other file types are rejected later. */
	struct weft_promise *file = weft_uv_open(uv, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	return weft_promise_try_bind(file, on_opened, on_open_failed, c, NULL);
}

/* ---- Connections ---- */

static struct weft_promise *next_request(void *connection, void *nothing);
static struct weft_promise *parse_input(void *connection, void *bytes);

static struct weft_promise *read_request(struct connection *c)
{
	weft_promise_unref(c->input);
	c->input = weft_uv_read(c->stream, READ_BYTES);
	c->parsed = 0;
	return weft_promise_bind(weft_promise_ref(c->input), parse_input, c, NULL);
}

/* Reads the remaining input: closing with unread bytes would reset the connection, and the client might lose the last answer. */
static struct weft_promise *drain_input(void *connection, void *bytes)
{
	struct connection *c = connection;
	const struct weft_uv_bytes *more = bytes;
	if (more && more->size == 0)
		return weft_promise_unit();
	return weft_promise_bind(weft_uv_read(c->stream, READ_BYTES), drain_input, c, NULL);
}

static struct weft_promise *on_answered(void *connection, void *nothing)
{
	struct connection *c = connection;
	weft_uv_file_unref(c->file);
	c->file = NULL;
	weft_wakeup(c->request_end, NULL, NULL);
	c->request_end = NULL;
	c->request.begun = false;
	if (!c->request.keeps || ending) {
		c->deadline_ms = now_ms() + LINGER_MS;
		return weft_promise_bind(weft_uv_shutdown(c->stream), drain_input, c, NULL);
	}
	c->answering = false;
	/* Further requests that the client has sent already wait until other connections have run. */
	return c->input ? weft_promise_bind(weft_promise_pause(), next_request, c, NULL) : next_request(c, NULL);
}

/* Records the request as a promise, from its last byte to the last byte of its answer: "GET /some/file?version=2". */
static void note_request(struct connection *c)
{
	char label[MAX_TARGET_BYTES + 16];
	if (!weft_is_on())
		return;
	const char *method = http_method_str((enum http_method)c->request.parser.method);
	size_t bytes = (size_t)(stpcpy(stpcpy(stpcpy(label, method), " "), c->request.target) - label);
	label[bytes < MAX_LABEL_BYTES ? bytes : MAX_LABEL_BYTES] = 0;
	weft_promise_unref(weft_promise_of_kind(WEFT_KIND_REQUEST, false, label, &c->request_end));
}

static struct weft_promise *parse_input(void *connection, void *bytes)
{
	struct connection *c = connection;
	const struct weft_uv_bytes *b = bytes;
	bool begun = c->request.begun;
	if (b->size == 0)
		return weft_promise_unit(); /* the client has disconnected */
	c->parsed += request_parse(&c->request, b->data + c->parsed, b->size - c->parsed);
	if (c->request.begun && !begun)
		c->deadline_ms = now_ms() + patience_ms;
	if (!c->request.complete)
		return read_request(c);
	if (c->parsed == b->size) {
		weft_promise_unref(c->input);
		c->input = NULL;
	}
	c->answering = true;
	note_request(c);
	return weft_promise_bind(send_answer(c), on_answered, c, NULL);
}

static struct weft_promise *next_request(void *connection, void *nothing)
{
	struct connection *c = connection;
	c->deadline_ms = now_ms() + IDLE_MS;
	return c->input ? parse_input(c, weft_promise_value(c->input)) : read_request(c);
}

static void free_connection(void *connection)
{
	struct connection *c = connection;
	*c->back = c->next;
	if (c->next)
		c->next->back = c->back;
	weft_uv_stream_unref(c->stream);
	weft_uv_file_unref(c->file);
	weft_promise_unref(c->input);
	weft_promise_unref(c->work);
	weft_wakeup_error(c->request_end, UV_ECANCELED, "was not answered");
	weft_wakeup(c->open_end, NULL, NULL);
	free(c);
	weft_counter_increase(&open_connections, -1);
	weft_semaphore_release(connection_slots);
	if (ending && !connections)
		weft_condition_broadcast(all_gone, NULL, NULL);
}

static struct weft_promise *hang_up(void *connection, void *nothing)
{
	struct connection *c = connection;
	return weft_uv_close(c->stream);
}

static struct weft_promise *on_stopped(void *connection, const struct weft_failure *failure)
{
	struct connection *c = connection;
	bool rude = c->late && c->request.begun;
	if (rude && !c->answering) {
		c->request.keeps = false;
		weft_promise_unref(send_status(c, HTTP_STATUS_REQUEST_TIMEOUT, ""));
	}
	struct weft_promise *closed = hang_up(c, NULL);
	if (!rude && failure->code == WEFT_PROMISE_CANCELLED)
		return closed; /* no answer was in progress */
	weft_promise_unref(closed);
	return weft_promise_fail(failure->code, rude ? "the client is too slow" : failure->message);
}

/* Returns an ended promise; its destructor frees the connection, also without memory to wait for the end. */
static struct weft_promise *return_unit(void *connection)
{
	return weft_promise_unit();
}

/* Records the connection as a promise: "connection 127.0.0.1:40912". */
static void note_connection(struct connection *c)
{
	char label[64], name[INET_ADDRSTRLEN] = "?";
	struct sockaddr_in peer = {0};
	int bytes = sizeof peer;
	if (uv_tcp_getpeername((uv_tcp_t *)weft_uv_stream_handle(c->stream), (struct sockaddr *)&peer, &bytes) == 0)
		uv_ip4_name(&peer, name, sizeof name);
	snprintf(label, sizeof label, "connection %s:%d", name, ntohs(peer.sin_port));
	weft_promise_unref(weft_promise_of_kind(WEFT_KIND_CONNECTION, false, label, &c->open_end));
	weft_promise_label(strchr(label, ' ') + 1); /* label the serving promise too */
}

static struct weft_promise *serve_connection(void *connection)
{
	struct connection *c = connection;
	note_connection(c);
	struct weft_promise *work = next_request(c, NULL);
	c->work = weft_promise_ref(work);
	return weft_promise_finalize(weft_promise_try_bind(work, hang_up, on_stopped, c, NULL), return_unit, c, free_connection);
}

/* ---- The server ---- */

static struct weft_promise *accept_next(void *listener, void *nothing);

static struct weft_promise *add_connection(void *listener, void *stream)
{
	struct connection *c = calloc(1, sizeof *c);
	if (!c) {
		weft_semaphore_release(connection_slots);
		return accept_next(listener, NULL);
	}
	c->stream = weft_uv_stream_ref(stream);
	c->back = &connections;
	c->next = connections;
	if (c->next)
		c->next->back = &c->next;
	connections = c;
	request_init(&c->request);
	weft_counter_increase(&open_connections, 1);
	uv_tcp_nodelay((uv_tcp_t *)weft_uv_stream_handle(stream), 1); /* answers are written in as few pieces as possible */
	if (weft_promise_async(serve_connection, c, NULL) != WEFT_OK)
		free_connection(c);
	return accept_next(listener, NULL);
}

/* Retries after a while: too many open files, for example, are a temporary problem. */
static struct weft_promise *on_accept_failed(void *listener, const struct weft_failure *failure)
{
	weft_semaphore_release(connection_slots);
	if (ending)
		return weft_promise_unit(); /* the accept was cancelled */
	return weft_promise_bind(weft_uv_sleep(uv, REFUSED_MS), accept_next, listener, NULL);
}

static struct weft_promise *accept_one(void *listener, void *nothing)
{
	return weft_promise_try_bind(weft_uv_accept(listener), add_connection, on_accept_failed, listener, NULL);
}

static struct weft_promise *accept_next(void *listener, void *nothing)
{
	return weft_promise_bind(weft_semaphore_acquire(connection_slots), accept_one, listener, NULL);
}

/* Disconnects clients whose deadline has passed, repeatedly. */
static struct weft_promise *watch_deadlines(void *ctx, void *nothing)
{
	struct connection *next;
	for (struct connection *c = connections; c; c = next) {
		next = c->next;
		if (now_ms() >= c->deadline_ms) {
			c->late = true;
			weft_promise_cancel(c->work);
		}
	}
	return weft_promise_bind(weft_uv_sleep(uv, patience_ms < WATCH_MS ? patience_ms : WATCH_MS), watch_deadlines, NULL, NULL);
}

static struct weft_promise *next_signal(void)
{
	struct weft_promise *either[2] = {weft_uv_signal(uv, SIGINT), weft_uv_signal(uv, SIGTERM)};
	return weft_promise_pick(either, 2);
}

/* Cancels the connections that wait for a request, or all. */
static void cancel_connections(bool all)
{
	struct connection *next;
	for (struct connection *c = connections; c; c = next) {
		next = c->next;
		if (all || !(c->request.begun || c->answering))
			weft_promise_cancel(c->work);
	}
}

/* Lets answers in progress end, for at most DRAIN_MS, or until a second signal. */
static void drain_connections(void)
{
	cancel_connections(false);
	if (connections) {
		struct weft_promise *enough[3] = {
		    weft_condition_wait(all_gone, NULL), weft_uv_sleep(uv, DRAIN_MS), next_signal()};
		struct weft_promise *end = weft_promise_pick(enough, 3);
		weft_uv_run(uv, end, 0);
		weft_promise_unref(end);
	}
	cancel_connections(true);
}

/* Returns as many connections as the limit of open files allows, with one file for each connection. */
static size_t max_connections(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return 100;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max < 2 * MAX_CONNECTIONS + OTHER_FILES)
		return files.rlim_max > OTHER_FILES + 2 ? (size_t)(files.rlim_max - OTHER_FILES) / 2 : 1;
	return MAX_CONNECTIONS;
}

static struct weft_promise *listen_at(const char *address, int port)
{
	struct sockaddr_in in;
	int status = uv_ip4_addr(address, port, &in);
	return status < 0 ? weft_promise_fail(status, "no address") : weft_uv_tcp_listen(uv, (struct sockaddr *)&in, 1024);
}

static int run_server(const char *address, int port)
{
	struct weft_promise *listener = listen_at(address, port);
	if (weft_promise_state(listener) != WEFT_RESOLVED) {
		fprintf(stderr, "http-server: %s:%d: %s\n", address, port, weft_promise_failure(listener)->message);
		weft_promise_unref(listener);
		return 1;
	}
	struct weft_uv_stream *stream = weft_promise_value(listener);
	struct sockaddr_in in;
	int bytes = sizeof in;
	uv_tcp_getsockname((uv_tcp_t *)weft_uv_stream_handle(stream), (struct sockaddr *)&in, &bytes);
	struct weft_promise *accepting = accept_next(stream, NULL), *watching = watch_deadlines(NULL, NULL), *end = next_signal();
	printf("http://%s:%d/\n", address, ntohs(in.sin_port));
	fflush(stdout);

	weft_uv_run(uv, end, 0);
	weft_promise_unref(end);
	ending = true;
	weft_promise_cancel(accepting);
	weft_promise_unref(accepting);
	weft_promise_unref(listener);
	drain_connections();
	weft_promise_cancel(watching);
	weft_promise_unref(watching);
	printf("%" PRId64 " requests, %" PRId64 " bytes\n", weft_counter_value(&requests), weft_counter_value(&bytes_sent));
	return 0;
}

int main(int argc, char **argv)
{
	const char *address = "127.0.0.1";
	int port = 8080, c;
	bool is_wrong = false;
	static const struct option options[] = {{"address", required_argument, NULL, 'a'}, {"port", required_argument, NULL, 'p'},
	    {"patience", required_argument, NULL, 't'}, {NULL, 0, NULL, 0}};
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 'a': address = optarg; break;
		case 'p': port = atoi(optarg); break;
		case 't': patience_ms = strtoul(optarg, NULL, 10); break;
		default: is_wrong = true; break;
		}
	if (is_wrong || optind != argc - 1) {
		fprintf(stderr, "usage: http-server [--address=127.0.0.1] [--port=8080] [--patience=MS] FOLDER\n");
		return 2;
	}
	if (chdir(argv[optind]) != 0) {
		perror(argv[optind]);
		return 1;
	}
	uv = weft_uv_create(NULL);
	connection_slots = weft_semaphore_create(max_connections());
	all_gone = weft_condition_create("all connections gone");
	int status = uv && connection_slots && all_gone ? run_server(address, port) : 1;
	weft_uv_destroy(uv);
	weft_condition_destroy(all_gone);
	weft_semaphore_destroy(connection_slots);
	weft_promise_trim();
	return status;
}
