/* echo.c: an echo server and its clients on one libuv loop, recorded by hand: a program to learn from.
 *
 *	WEFT_TRACE=echo.weft ./echo && weft render echo.weft -o echo.svg
 *
 * How a program with callbacks records promises:
 *   - each operation gets a promise where it starts: WEFT_CREATE(kind), and a name: weft_label();
 *   - a promise that depends on it awaits it: weft_await();
 *   - the callback resolves it, on behalf of the system: weft_resolve(), weft_fail(); then the waiting promise reads it and runs:
 *     weft_read().  The running promise is the creator of later promises;
 *   - before the loop sleeps: weft_idle().
 *
 * Two things go wrong on purpose: the client zed connects to a closed port, and the server does not answer questions, so that eve
 * waits for ever.  And one thing is slow: a message that ends in '!' keeps the server, and with it the only OS thread, busy for
 * 3 ms.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <weft/record.h>

#define CLOSING_TIME_MS 32
#define CRUNCH_NS 3000000u
#define MESSAGE_BYTES 64

static weft_id main_promise;
static int open_connections;

/* Counters are defined once; their names enter the trace once. */
static struct weft_record_text connections_counter = WEFT_COUNTER("open connections");
static struct weft_record_text bytes_counter = WEFT_COUNTER("bytes echoed");

static void check_status(int status, const char *what)
{
	if (status < 0) {
		fprintf(stderr, "echo: %s: %s\n", what, uv_strerror(status));
		exit(1);
	}
}

/* ---- Writing: a promise inside its request ---- */

struct write {
	uv_write_t request;
	weft_id promise, writer;
	char bytes[MESSAGE_BYTES];
};

static void on_written(uv_write_t *request, int status)
{
	struct write *w = request->data;
	if (status < 0)
		weft_fail(WEFT_SYSTEM_ID, w->promise, uv_strerror(status));
	else
		weft_resolve(WEFT_SYSTEM_ID, w->promise);
	weft_read(w->writer, w->promise);
	free(w);
}

static void write_to(uv_tcp_t *tcp, weft_id writer, const char *bytes, size_t size)
{
	struct write *w = calloc(1, sizeof *w);
	if (!w)
		check_status(UV_ENOMEM, "write");
	memcpy(w->bytes, bytes, size);
	w->writer = writer;
	w->promise = WEFT_CREATE(WEFT_KIND_STREAM_WRITE);
	w->request.data = w;
	uv_buf_t buf = uv_buf_init(w->bytes, (unsigned)size);
	check_status(uv_write(&w->request, (uv_stream_t *)tcp, &buf, 1, on_written), "write");
}

/* Messages are short, and one is read at a time, so all connections share one buffer. */
static char read_buffer[MESSAGE_BYTES];

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)handle, (void)suggested;
	*buf = uv_buf_init(read_buffer, sizeof read_buffer);
}

/* ---- The server ---- */

struct connection {
	uv_tcp_t tcp;
	weft_id promise; /* lives as long as the connection */
	weft_id input;   /* the promise that it waits for: the next bytes */
	bool named;
};

static uv_tcp_t server;
static weft_id server_promise;

static void await_input(struct connection *c)
{
	c->input = WEFT_CREATE(WEFT_KIND_STREAM_READ);
	weft_await(c->promise, c->input);
}

static void on_connection_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	weft_resolve(c->promise, c->promise);
	weft_counter_set(server_promise, &connections_counter, --open_connections);
	free(c);
}

/* Blocks the loop: nothing else can run meanwhile. */
static void compute_for_a_while(void)
{
	uint64_t until = uv_hrtime() + CRUNCH_NS;
	while (uv_hrtime() < until)
		;
}

static void on_input(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
	struct connection *c = stream->data;
	if (size == 0)
		return;
	if (size < 0) {
		if (size == UV_EOF)
			weft_resolve(WEFT_SYSTEM_ID, c->input);
		else
			weft_fail(WEFT_SYSTEM_ID, c->input, uv_strerror((int)size));
		weft_read(c->promise, c->input);
		uv_close((uv_handle_t *)stream, on_connection_closed);
		return;
	}
	weft_resolve(WEFT_SYSTEM_ID, c->input);
	weft_read(c->promise, c->input); // the connection runs from here on
	const char *colon = memchr(buf->base, ':', (size_t)size);
	if (!c->named && colon) // a client starts with its name
		weft_label_bytes(c->promise, buf->base, (size_t)(colon - buf->base));
	c->named = true;

	char last = buf->base[size - 1];
	if (last == '!')
		compute_for_a_while();
	if (last != '?') {
		write_to(&c->tcp, c->promise, buf->base, (size_t)size);
		weft_counter_add(server_promise, &bytes_counter, size);
	}
	await_input(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
	weft_run(server_promise);
	check_status(status, "listen");
	struct connection *c = calloc(1, sizeof *c);
	if (!c)
		check_status(UV_ENOMEM, "accept");
	c->promise = WEFT_CREATE(WEFT_KIND_CONNECTION);
	c->tcp.data = c;
	check_status(uv_tcp_init(listener->loop, &c->tcp), "accept");
	check_status(uv_accept(listener, (uv_stream_t *)&c->tcp), "accept");
	weft_counter_set(server_promise, &connections_counter, ++open_connections);
	check_status(uv_read_start((uv_stream_t *)&c->tcp, give_buffer, on_input), "read");
	await_input(c);
}

static int start_server(uv_loop_t *loop)
{
	struct sockaddr_in address;
	int length = sizeof address;
	server_promise = WEFT_CREATE(WEFT_KIND_LISTEN);
	WEFT_LABEL(server_promise, "server");
	check_status(uv_ip4_addr("127.0.0.1", 0, &address), "address");
	check_status(uv_tcp_init(loop, &server), "listen");
	check_status(uv_tcp_bind(&server, (struct sockaddr *)&address, 0), "bind");
	check_status(uv_listen((uv_stream_t *)&server, 16, on_connection), "listen");
	check_status(uv_tcp_getsockname(&server, (struct sockaddr *)&address, &length), "listen");
	return ntohs(address.sin_port);
}

/* ---- The clients ---- */

struct client {
	const char *name;
	unsigned start_ms, think_ms;
	const char *messages[5]; /* ends with NULL */

	uv_tcp_t tcp;
	uv_timer_t timer;
	uv_connect_t connect;
	int port, said;
	weft_id promise; /* the client: is resolved when it has sent everything and received all answers */
	weft_id step;    /* the promise that it waits for: a timer, the connection, an answer */
};

static struct client clients[] = {
    {.name = "ann", .start_ms = 2, .think_ms = 6, .messages = {"good morning", "how nice", "see you"}},
    {.name = "bob", .start_ms = 4, .think_ms = 3, .messages = {"hi", "compute this!", "and this!", "thanks"}},
    {.name = "cid", .start_ms = 8, .think_ms = 2, .messages = {"one", "two", "three", "four", "five"}},
    {.name = "eve", .start_ms = 14, .think_ms = 5, .messages = {"hello", "are you there?"}},
    {.name = "zed", .start_ms = 20},
};

#define CLIENTS (sizeof clients / sizeof *clients)

static void on_timer(uv_timer_t *timer);

static void pause_for(struct client *c, unsigned ms, const char *why)
{
	c->step = WEFT_CREATE(WEFT_KIND_TIMER);
	weft_label(c->step, why);
	weft_await(c->promise, c->step);
	check_status(uv_timer_start(&c->timer, on_timer, ms, 0), "timer");
}

static void send_message(struct client *c)
{
	char text[MESSAGE_BYTES];
	const char *message = c->messages[c->said++];
	snprintf(text, sizeof text, "%s: %s", c->name, message);
	write_to(&c->tcp, c->promise, text, strlen(text));

	// The answer: unlike an idle connection, it must come.
	c->step = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_label(c->step, message);
	weft_should_resolve(c->step);
	weft_await(c->promise, c->step);
}

static void on_answer(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
	struct client *c = stream->data;
	(void)buf;
	if (size == 0)
		return;
	check_status((int)size, "read");
	weft_resolve(WEFT_SYSTEM_ID, c->step);
	weft_read(c->promise, c->step);
	if ((size_t)c->said < sizeof c->messages / sizeof *c->messages && c->messages[c->said]) {
		pause_for(c, c->think_ms, "think");
	} else {
		uv_close((uv_handle_t *)stream, NULL);
		weft_resolve(c->promise, c->promise);
	}
}

static void on_connect(uv_connect_t *request, int status)
{
	struct client *c = request->data;
	if (status < 0) {
		weft_fail(WEFT_SYSTEM_ID, c->step, uv_strerror(status));
		weft_read(c->promise, c->step);
		weft_fail(c->promise, c->promise, "no connection");
		if (!uv_is_closing((uv_handle_t *)&c->tcp))
			uv_close((uv_handle_t *)&c->tcp, NULL);
		return;
	}
	weft_resolve(WEFT_SYSTEM_ID, c->step);
	weft_read(c->promise, c->step);
	check_status(uv_read_start((uv_stream_t *)&c->tcp, give_buffer, on_answer), "read");
	send_message(c);
}

static void connect_to(struct client *c)
{
	struct sockaddr_in address;
	c->step = WEFT_CREATE(WEFT_KIND_CONNECT);
	weft_await(c->promise, c->step);
	check_status(uv_ip4_addr("127.0.0.1", c->port, &address), "address");
	check_status(uv_tcp_init(c->timer.loop, &c->tcp), "connect");
	c->connect.data = c->tcp.data = c;
	check_status(uv_tcp_connect(&c->connect, &c->tcp, (struct sockaddr *)&address, on_connect), "connect");
}

static void on_timer(uv_timer_t *timer)
{
	struct client *c = timer->data;
	weft_resolve(WEFT_SYSTEM_ID, c->step);
	weft_read(c->promise, c->step);
	if (c->said == 0)
		connect_to(c);
	else
		send_message(c);
}

static void start_client(uv_loop_t *loop, struct client *c, int port)
{
	c->port = port;
	c->promise = WEFT_CREATE(WEFT_KIND_TASK);
	weft_label(c->promise, c->name);
	weft_run(c->promise);
	check_status(uv_timer_init(loop, &c->timer), "timer");
	c->timer.data = c;
	pause_for(c, c->start_ms, "not yet");
	weft_run(main_promise);
}

/* ---- The loop ---- */

/* Runs as the last callback before the loop polls, which may sleep. */
static void before_poll(uv_prepare_t *prepare)
{
	(void)prepare;
	weft_idle(WEFT_IDLE_WAIT);
}

/* Runs after the poll callbacks: the loop's own work. */
static void after_poll(uv_check_t *check)
{
	(void)check;
	weft_resume(main_promise);
}

/* Closes the server and the clients; nothing then keeps the loop alive, since connections end when their clients disconnect. */
static void on_closing_time(uv_timer_t *timer)
{
	(void)timer;
	weft_run(main_promise);
	weft_resolve(main_promise, server_promise);
	uv_close((uv_handle_t *)&server, NULL);
	for (size_t i = 0; i < CLIENTS; i++) {
		uv_timer_stop(&clients[i].timer);
		if (!uv_is_closing((uv_handle_t *)&clients[i].tcp))
			uv_close((uv_handle_t *)&clients[i].tcp, NULL);
	}
}

/* Returns a closed port: one that was free a moment ago. */
static int closed_port(uv_loop_t *loop)
{
	uv_tcp_t probe;
	struct sockaddr_in address;
	int length = sizeof address;
	check_status(uv_ip4_addr("127.0.0.1", 0, &address), "address");
	check_status(uv_tcp_init(loop, &probe), "probe");
	check_status(uv_tcp_bind(&probe, (struct sockaddr *)&address, 0), "probe");
	check_status(uv_tcp_getsockname(&probe, (struct sockaddr *)&address, &length), "probe");
	uv_close((uv_handle_t *)&probe, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
	return ntohs(address.sin_port);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t closing_time;
	int nobody = closed_port(loop);

	main_promise = WEFT_CREATE(WEFT_KIND_TASK);
	WEFT_LABEL(main_promise, "main");
	weft_run(main_promise);
	check_status(uv_prepare_init(loop, &prepare), "loop");
	check_status(uv_prepare_start(&prepare, before_poll), "loop");
	uv_unref((uv_handle_t *)&prepare);
	check_status(uv_check_init(loop, &check), "loop");
	check_status(uv_check_start(&check, after_poll), "loop");
	uv_unref((uv_handle_t *)&check);
	check_status(uv_timer_init(loop, &closing_time), "timer");
	check_status(uv_timer_start(&closing_time, on_closing_time, CLOSING_TIME_MS, 0), "timer");

	int port = start_server(loop);
	for (size_t i = 0; i < CLIENTS; i++)
		start_client(loop, &clients[i], strcmp(clients[i].name, "zed") == 0 ? nobody : port);
	uv_run(loop, UV_RUN_DEFAULT);

	weft_resolve(main_promise, main_promise);
	weft_idle(WEFT_IDLE_WAIT);
	return 0;
}
