/* echo.c: an echo server and its clients on one libuv loop, written with promises.  It has no code for the trace, apart from
 * names.
 *
 *	WEFT_TRACE=echo.weft ./echo-promises && weft render echo.weft -o echo.svg
 *
 * Each client sends its lines and waits for the answers.  The client zed connects to a closed port.  The server never answers
 * eve's question, so eve gives up after a while.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/uv.h>

#define MAX_BYTES 64

static struct weft_uv *uv;
static struct weft_counter open_connections = WEFT_PROMISE_COUNTER("open connections", 0);
static struct weft_counter bytes_echoed = WEFT_PROMISE_COUNTER("bytes echoed", 0);

/* ---- The server ---- */

static struct weft_promise *echo_message(void *stream, void *message);

static struct weft_promise *next_message(void *stream, void *nothing)
{
	return weft_promise_bind(weft_uv_read(stream, MAX_BYTES), echo_message, stream, NULL);
}

static struct weft_promise *echo_message(void *stream, void *message)
{
	struct weft_uv_bytes *bytes = message;
	if (bytes->size == 0)
		return weft_promise_unit();
	if (bytes->data[bytes->size - 1] == '?')
		return next_message(stream, NULL);
	weft_counter_increase(&bytes_echoed, (int64_t)bytes->size);
	return weft_promise_bind(weft_uv_write(stream, bytes->data, bytes->size), next_message, stream, NULL);
}

static struct weft_promise *hang_up(void *stream)
{
	weft_counter_increase(&open_connections, -1);
	return weft_uv_close(stream);
}

static struct weft_promise *serve_connection(void *stream)
{
	weft_promise_label("connection");
	weft_counter_increase(&open_connections, 1);
	return weft_promise_finalize(next_message(stream, NULL), hang_up, weft_uv_stream_ref(stream), weft_uv_stream_unref);
}

static struct weft_promise *accept_next(void *listener, void *stream)
{
	if (stream && weft_promise_async(serve_connection, weft_uv_stream_ref(stream), weft_uv_stream_unref) != WEFT_OK)
		return weft_promise_fail(WEFT_PROMISE_ENOMEM, "out of memory");
	return weft_promise_bind(weft_uv_accept(listener), accept_next, listener, NULL);
}

/* ---- The clients ---- */

struct client {
	const char *name;
	unsigned start_ms, think_ms;
	unsigned patience_ms; /* time to wait for an answer; 0: unlimited */
	const char *messages[5];

	struct sockaddr_in address;
	struct weft_uv_stream *stream;
	unsigned said;
};

static struct client clients[] = {
    {.name = "ann", .start_ms = 2, .think_ms = 6, .messages = {"good morning", "how nice", "see you"}},
    {.name = "bob", .start_ms = 4, .think_ms = 3, .messages = {"hi", "is that so!", "oh", "thanks"}},
    {.name = "cid", .start_ms = 8, .think_ms = 2, .messages = {"one", "two", "three", "four", "five"}},
    {.name = "eve", .start_ms = 14, .think_ms = 5, .messages = {"are you there?"}, .patience_ms = 20},
    {.name = "zed", .start_ms = 20, .messages = {"hello"}},
};

#define CLIENTS (sizeof clients / sizeof *clients)
#define MAX_MESSAGES (sizeof clients->messages / sizeof *clients->messages)

static struct weft_promise *send_message(void *client, void *nothing);

static struct weft_promise *pause_to_think(void *client, void *answer)
{
	struct client *c = client;
	return weft_promise_bind(weft_uv_sleep(uv, c->think_ms), send_message, c, NULL);
}

static struct weft_promise *listen_to(void *client, void *nothing)
{
	struct client *c = client;
	struct weft_promise *answer = weft_uv_read(c->stream, MAX_BYTES);
	return c->patience_ms ? weft_uv_with_timeout(uv, c->patience_ms, answer) : answer;
}

static struct weft_promise *send_message(void *client, void *nothing)
{
	struct client *c = client;
	if (c->said == MAX_MESSAGES || !c->messages[c->said])
		return weft_uv_close(c->stream);
	const char *message = c->messages[c->said++];
	struct weft_promise *said = weft_uv_write(c->stream, message, strlen(message));
	return weft_promise_bind(weft_promise_bind(said, listen_to, c, NULL), pause_to_think, c, NULL);
}

static struct weft_promise *start_talking(void *client, void *stream)
{
	struct client *c = client;
	c->stream = weft_uv_stream_ref(stream);
	return send_message(c, NULL);
}

static struct weft_promise *connect_client(void *client, void *nothing)
{
	struct client *c = client;
	return weft_promise_bind(weft_uv_tcp_connect(uv, (struct sockaddr *)&c->address), start_talking, c, NULL);
}

static struct weft_promise *give_up(void *client, const struct weft_failure *failure)
{
	struct client *c = client;
	printf("%s gives up: %s\n", c->name, failure->message);
	return weft_promise_unit();
}

static struct weft_promise *close_client(void *client)
{
	struct client *c = client;
	weft_uv_stream_unref(c->stream);
	return weft_promise_unit();
}

static struct weft_promise *run_client(void *client, void *nothing)
{
	struct client *c = client;
	weft_promise_label(c->name);
	struct weft_promise *p = weft_promise_bind(weft_uv_sleep(uv, c->start_ms), connect_client, c, NULL);
	return weft_promise_finalize(weft_promise_catch(p, give_up, c, NULL), close_client, c, NULL);
}

/* ---- The program ---- */

static struct sockaddr_in address_of(struct weft_uv_stream *listener)
{
	struct sockaddr_in address;
	int bytes = sizeof address;
	uv_tcp_getsockname((uv_tcp_t *)weft_uv_stream_handle(listener), (struct sockaddr *)&address, &bytes);
	return address;
}

/* Returns a closed port: one that was free a moment ago. */
static struct sockaddr_in unused_address(void)
{
	struct sockaddr_in any;
	uv_ip4_addr("127.0.0.1", 0, &any);
	struct weft_promise *p = weft_uv_tcp_listen(uv, (struct sockaddr *)&any, 1);
	if (weft_promise_state(p) == WEFT_RESOLVED)
		any = address_of(weft_promise_value(p));
	weft_promise_unref(p);
	return any;
}

int main(void)
{
	struct sockaddr_in any;
	uv_ip4_addr("127.0.0.1", 0, &any);
	uv = weft_uv_create(NULL);
	if (!uv)
		return 1;
	struct weft_promise *listener = weft_uv_tcp_listen(uv, (struct sockaddr *)&any, 16);
	if (weft_promise_state(listener) != WEFT_RESOLVED) {
		fprintf(stderr, "echo: %s\n", weft_promise_failure(listener)->message);
		return 1;
	}
	struct weft_promise *server = accept_next(weft_promise_value(listener), NULL);
	struct weft_promise *done[CLIENTS];
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &clients[i];
		c->address = strcmp(c->name, "zed") == 0 ? unused_address() : address_of(weft_promise_value(listener));
		done[i] = weft_promise_bind(weft_promise_pause(), run_client, c, NULL);
	}
	struct weft_promise *all = weft_promise_join(done, CLIENTS);
	weft_uv_run(uv, all, 0);
	weft_promise_cancel(server);
	printf("%lld bytes echoed\n", (long long)weft_counter_value(&bytes_echoed));
	weft_promise_unref(all);
	weft_promise_unref(server);
	weft_promise_unref(listener);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}
