/* hook.c: the cost of weft record for unmodified programs.  Not linked with weft.
 *
 * weft-bench-hook echo [ROUNDS]: ten clients and their server in one loop; CPU time of a round trip, which is two writes and
 * their answers.
 *
 * weft-bench-hook wait [TURNS]: a loop without a runtime: epoll_wait() on a ready descriptor, a read and a write.
 *
 * weft-bench-hook start PRELOAD DIR: duration of `sh -c true` without the library, with the library loaded, and while recording;
 * the 10th percentile of many starts, since other programs run too.  SPDX-License-Identifier: ISC */
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { CLIENTS = 10, ROUNDS = 300, TURNS = 50000, MESSAGE = 64, STARTS = 300, FAST = STARTS / 10 };

static uv_loop_t loop;
static uv_tcp_t server, peers[CLIENTS];
static unsigned peer_count, rounds = ROUNDS, turns = TURNS;

struct client {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_write_t writes[2];
	unsigned received, rounds;
};

static struct client clients[CLIENTS];
static char buffers[2 * CLIENTS][4 * MESSAGE];

static double now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void on_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
	*out = uv_buf_init(handle->data, sizeof buffers[0]);
}

static void on_written(uv_write_t *write, int status)
{
	free(write->data);
	if (write->data)
		free(write);
}

static void on_server_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	if (n < 0)
		uv_close((uv_handle_t *)stream, NULL);
	if (n <= 0)
		return;
	uv_write_t *write = malloc(sizeof *write);
	uv_buf_t copy = uv_buf_init(malloc((size_t)n), (unsigned)n);
	memcpy(copy.base, buffer->base, (size_t)n);
	write->data = copy.base;
	uv_write(write, stream, &copy, 1, on_written);
}

static void send_request(struct client *c)
{
	static char text[MESSAGE];
	uv_buf_t buffer = uv_buf_init(text, MESSAGE);
	c->received = 0;
	for (int i = 0; i < 2; i++) {
		c->writes[i].data = NULL;
		uv_write(&c->writes[i], (uv_stream_t *)&c->tcp, &buffer, 1, on_written);
	}
}

static void on_client_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct client *c = (struct client *)(void *)stream;
	c->received += n > 0 ? (unsigned)n : 0;
	if (c->received < 2 * MESSAGE)
		return;
	if (++c->rounds < rounds)
		send_request(c);
	else
		uv_close((uv_handle_t *)stream, NULL);
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct client *c = (struct client *)(void *)connect->handle;
	uv_read_start(connect->handle, on_alloc, on_client_read);
	send_request(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
	uv_tcp_t *peer = &peers[peer_count];
	peer->data = buffers[CLIENTS + peer_count];
	uv_tcp_init(&loop, peer);
	uv_accept(listener, (uv_stream_t *)peer);
	uv_tcp_nodelay(peer, 1);
	uv_read_start((uv_stream_t *)peer, on_alloc, on_server_read);
	if (++peer_count == CLIENTS)
		uv_close((uv_handle_t *)listener, NULL);
}

static int measure_echo(void)
{
	struct sockaddr_in address;
	int length = sizeof address;
	uv_loop_init(&loop);
	uv_tcp_init(&loop, &server);
	uv_ip4_addr("127.0.0.1", 0, &address);
	if (uv_tcp_bind(&server, (struct sockaddr *)&address, 0) || uv_listen((uv_stream_t *)&server, CLIENTS, on_connection) ||
	    uv_tcp_getsockname(&server, (struct sockaddr *)&address, &length))
		return 1;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i].tcp.data = buffers[i];
		uv_tcp_init(&loop, &clients[i].tcp);
		uv_tcp_nodelay(&clients[i].tcp, 1);
		uv_tcp_connect(&clients[i].connect, &clients[i].tcp, (struct sockaddr *)&address, on_connected);
	}
	double begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	uv_run(&loop, UV_RUN_DEFAULT);
	printf("round_trip_ns %.1f\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / (CLIENTS * rounds));
	return 0;
}

static int wait_in_loop(void)
{
	int epoll = epoll_create1(0), fd = eventfd(1, 0);
	struct epoll_event event = {.events = EPOLLIN};
	uint64_t value;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		return 1;
	double begin = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < turns; i++)
		if (epoll_wait(epoll, &event, 1, -1) != 1 || read(fd, &value, sizeof value) != sizeof value ||
		    write(fd, &value, sizeof value) != sizeof value)
			return 1;
	printf("turn_ns %.1f\n", (now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / turns);
	return 0;
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double start_us(char *const env[])
{
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)"true", NULL};
	pid_t child;
	double begin = now_ns(CLOCK_MONOTONIC);
	if (posix_spawn(&child, "/bin/sh", NULL, NULL, argv, env) == 0)
		waitpid(child, NULL, 0);
	return (now_ns(CLOCK_MONOTONIC) - begin) / 1e3;
}

static int measure_start(const char *preload, const char *directory)
{
	static double took[3][STARTS];
	char loaded[4096], wanted[4096];
	snprintf(loaded, sizeof loaded, "LD_PRELOAD=%s", preload);
	snprintf(wanted, sizeof wanted, "WEFT_RECORD=%s", directory);
	char *const env[3][4] = {{(char *)"PATH=/bin"}, {(char *)"PATH=/bin", loaded}, {(char *)"PATH=/bin", loaded, wanted}};
	for (int i = 0; i < STARTS; i++)
		for (int way = 0; way < 3; way++)
			took[way][i] = start_us(env[way]);
	for (int way = 0; way < 3; way++)
		qsort(took[way], STARTS, sizeof took[way][0], compare_values);
	printf("without_us %.1f\nloaded_us %.1f\nwanted_us %.1f\n", took[0][FAST], took[1][FAST], took[2][FAST]);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "start"))
		return measure_start(argv[2], argv[3]);
	if (argc == 3)
		rounds = turns = (unsigned)strtoul(argv[2], NULL, 10);
	return argc >= 2 && !strcmp(argv[1], "wait") ? wait_in_loop() : measure_echo();
}
