/* shop.c: a client of HTTP that knows nothing of weft: libuv, one connection, one question after the other.
 *
 *	shop ADDRESS PORT COUNT PATH...
 *
 * Requests the first path COUNT times, then each other path once, and exits when it has all responses.  Prints each
 * request after the first path.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { MOST_ANSWER = 1 << 20, RETRY_MS = 200 };

static struct sockaddr_in server;
static uv_tcp_t connection;
static uv_timer_t later;
static uv_connect_t connecting;
static uv_write_t asking;
static char question[300], answer[MOST_ANSWER + 1];
static size_t got;
static int left;
static char **paths; /* that of the next question first */

static void try_to_connect(uv_timer_t *timer);

static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	(void)handle, (void)wanted;
	*out = uv_buf_init(answer + got, (unsigned)(MOST_ANSWER - got));
}

static void ask(void)
{
	while (left == 0 && *paths) {
		left = *++paths != NULL;
		if (left) {
			printf("asks for %s\n", *paths);
			fflush(stdout);
		}
	}
	if (!*paths) {
		uv_close((uv_handle_t *)&connection, NULL);
		return;
	}
	left--;
	got = 0;
	const int bytes = snprintf(question, sizeof question, "GET %s HTTP/1.1\r\nHost: web\r\n\r\n", *paths);
	const uv_buf_t buffer = uv_buf_init(question, (unsigned)bytes);
	if (uv_write(&asking, (uv_stream_t *)&connection, &buffer, 1, NULL))
		exit(1);
}

static void hear(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buffer)
{
	(void)stream, (void)buffer;
	if (bytes < 0)
		exit(1);
	answer[got += (size_t)bytes] = 0;
	const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
	if (body && length && strtoul(length + 16, NULL, 10) <= got - (size_t)(body + 4 - answer))
		ask();
}

static void closed(uv_handle_t *handle)
{
	(void)handle;
	uv_timer_start(&later, try_to_connect, RETRY_MS, 0);
}

static void connected(uv_connect_t *request, int status)
{
	(void)request;
	if (status) { /* the other machine is not there yet */
		uv_close((uv_handle_t *)&connection, closed);
		return;
	}
	uv_read_start((uv_stream_t *)&connection, allocate, hear);
	ask();
}

static void try_to_connect(uv_timer_t *timer)
{
	uv_tcp_init(timer->loop, &connection);
	uv_tcp_nodelay(&connection, 1);
	if (uv_tcp_connect(&connecting, &connection, (const struct sockaddr *)&server, connected))
		exit(1);
}

int main(int argc, char **argv)
{
	if (argc < 5 || uv_ip4_addr(argv[1], atoi(argv[2]), &server))
		return 2;
	left = atoi(argv[3]);
	paths = argv + 4;
	uv_timer_init(uv_default_loop(), &later);
	try_to_connect(&later);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	puts("has all answers");
	return 0;
}
