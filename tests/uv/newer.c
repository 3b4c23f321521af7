/* newer.c: uses functions that libuv has since 1.45: pipes with long or abstract names, several datagrams at once, io_uring,
 * metrics. Prints "skipped" if it is built with an older libuv.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#if UV_VERSION_HEX < (1 << 16 | 50 << 8)
int main(void)
{
	puts("skipped");
	return 0;
}
#else

static uv_loop_t loop;
static uv_pipe_t listener, client, server;
static uv_udp_t sender, receiver;
static uv_connect_t connect_req;
static uv_fs_t open_req, read_req;
static char memory[64], content[16];
static unsigned received;

static void check(int status)
{
	if (status >= 0)
		return;
	fprintf(stderr, "newer: %s\n", uv_strerror(status));
	exit(1);
}

static void accept_client(uv_stream_t *stream, int status)
{
	check(status);
	check(uv_pipe_init(&loop, &server, 0));
	check(uv_accept(stream, (uv_stream_t *)&server));
	uv_close((uv_handle_t *)&server, NULL);
	uv_close((uv_handle_t *)&listener, NULL);
}

static void is_connected(uv_connect_t *req, int status)
{
	printf("connected: %d\n", status);
	uv_close((uv_handle_t *)&client, NULL);
}

static void use_pipes(void)
{
	char name[64] = {0};
	const size_t length = 1 + (size_t)snprintf(name + 1, sizeof name - 1, "weft-newer-%d", (int)getpid());
	check(uv_pipe_init(&loop, &listener, 0));
	check(uv_pipe_bind2(&listener, name, length, UV_PIPE_NO_TRUNCATE));
	check(uv_listen((uv_stream_t *)&listener, 8, accept_client));
	check(uv_pipe_init(&loop, &client, 0));
	check(uv_pipe_connect2(&connect_req, &client, name, length, UV_PIPE_NO_TRUNCATE, is_connected));
}

static void alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	*buf = uv_buf_init(memory, sizeof memory);
}

static void receive(uv_udp_t *handle, ssize_t bytes, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags)
{
	if (bytes <= 0)
		return;
	printf("received: %.*s\n", (int)bytes, buf->base);
	if (++received < 2)
		return;
	uv_close((uv_handle_t *)&receiver, NULL);
	uv_close((uv_handle_t *)&sender, NULL);
}

static void use_datagrams(void)
{
	struct sockaddr_in to, any;
	int size = sizeof to;
	check(uv_ip4_addr("127.0.0.1", 0, &any));
	to = any;
	check(uv_udp_init(&loop, &receiver));
	check(uv_udp_bind(&receiver, (struct sockaddr *)&to, UV_UDP_REUSEPORT));
	check(uv_udp_getsockname(&receiver, (struct sockaddr *)&to, &size));
	check(uv_udp_recv_start(&receiver, alloc, receive));
	check(uv_udp_init(&loop, &sender));
	check(uv_udp_bind(&sender, (struct sockaddr *)&any, 0));
	uv_buf_t first = uv_buf_init("one", 3), second = uv_buf_init("three", 5), *bufs[] = {&first, &second};
	unsigned counts[] = {1, 1};
	struct sockaddr *addresses[] = {(struct sockaddr *)&to, (struct sockaddr *)&to};
	printf("sent: %d\n", uv_udp_try_send2(&sender, 2, bufs, counts, addresses, 0));
}

static void is_read(uv_fs_t *req)
{
	printf("read: %d\n", (int)req->result);
	uv_fs_req_cleanup(req);
}

static void is_open(uv_fs_t *req)
{
	uv_buf_t buf = uv_buf_init(content, sizeof content);
	check((int)req->result);
	check(uv_fs_read(&loop, &read_req, (uv_file)req->result, &buf, 1, 0, is_read));
	uv_fs_req_cleanup(req);
}

int main(void)
{
	uv_metrics_t metrics;
	check(uv_loop_init(&loop));
	check(uv_loop_configure(&loop, UV_METRICS_IDLE_TIME));
	uv_loop_configure(
	    &loop, UV_LOOP_USE_IO_URING_SQPOLL); /* if the kernel forbids io_uring, threads of the pool do the work */
	use_pipes();
	use_datagrams();
	check(uv_fs_open(&loop, &open_req, "/etc/passwd", O_RDONLY, 0, is_open));
	check(uv_run(&loop, UV_RUN_DEFAULT));
	check(uv_metrics_info(&loop, &metrics));
	printf("turned: %d, closed: %d\n", metrics.loop_count > 0, uv_loop_close(&loop));
	return 0;
}
#endif
