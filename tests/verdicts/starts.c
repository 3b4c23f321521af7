/* starts.c MODE: a libuv program that is blocked for 60 ms.  Modes: start (it also computes for 60 ms before its loop begins,
 * when a client has connected), late (a callback is blocked while a timer of 20 ms is due), early (the timer is due 100 ms after
 * the callback), turn (during the callback no timer is due, but a client has connected).  The program ends after 300 ms.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static uv_tcp_t server, client;
static uv_timer_t timers[3];

/* Blocks for 60 ms without usleep(), because weft reports usleep() in a callback by itself. */
static void block(void)
{
	int both[2];
	struct timeval limit = {.tv_usec = 60000};
	char byte;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0)
		return;
	setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (recv(both[0], &byte, 1, 0) < 0)
		close(both[1]);
	close(both[0]);
}

static void compute(void)
{
	struct timespec start, now;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 60);
}

static void close_all(uv_handle_t *handle, void *data)
{
	(void)data;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void on_end(uv_timer_t *timer)
{
	uv_walk(timer->loop, close_all, NULL);
}

static void on_timer(uv_timer_t *timer)
{
	uv_timer_stop(timer);
}

static void on_block(uv_timer_t *timer)
{
	(void)timer;
	block();
}

static void on_client(uv_stream_t *listener, int status)
{
	if (status < 0 || uv_tcp_init(listener->loop, &client) || uv_accept(listener, (uv_stream_t *)&client))
		return;
	uv_close((uv_handle_t *)&client, NULL);
}

static void *connect_once(int port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	return connect(fd, (struct sockaddr *)&address, sizeof address) ? NULL : &server;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "late";
	uv_loop_t *loop = uv_default_loop();
	struct sockaddr_in address;
	int size = sizeof address;
	for (int i = 0; i < 3; i++)
		uv_timer_init(loop, &timers[i]);
	uv_timer_start(&timers[0], on_end, 300, 0);
	if (!strcmp(mode, "start") || !strcmp(mode, "turn")) {
		uv_tcp_init(loop, &server);
		uv_ip4_addr("127.0.0.1", 0, &address);
		uv_tcp_bind(&server, (const struct sockaddr *)&address, 0);
		uv_listen((uv_stream_t *)&server, 8, on_client);
		uv_tcp_getsockname(&server, (struct sockaddr *)&address, &size);
		connect_once(ntohs(address.sin_port));
	}
	if (!strcmp(mode, "start")) {
		block();
		compute();
	} else {
		uv_timer_start(&timers[1], on_block, 1, 0);
	}
	if (!strcmp(mode, "late") || !strcmp(mode, "early"))
		uv_timer_start(&timers[2], on_timer, !strcmp(mode, "late") ? 20 : 150, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	return uv_loop_close(loop) ? 1 : 0;
}
