/* loop.c: loop FIFO: runs a libuv loop that opens a FIFO without a writer, so that the request and a thread of the pool are
 * blocked; prints "ready".  SPDX-License-Identifier: ISC */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <uv.h>

static void on_open(uv_fs_t *request)
{
	uv_stop(request->loop);
}

static void on_client(uv_stream_t *server, int status)
{
	uv_stop(status < 0 ? NULL : server->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
	uv_stop(number ? handle->loop : NULL);
}

static void on_timer(uv_timer_t *timer)
{
	uv_timer_again(timer);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();
	uv_tcp_t server;
	uv_signal_t hangup;
	uv_timer_t report, idle;
	uv_fs_t request;
	struct sockaddr_in any;
	if (argc != 2 || mkfifo(argv[1], 0600))
		return 1;
	uv_ip4_addr("127.0.0.1", 0, &any);
	uv_tcp_init(loop, &server);
	uv_tcp_bind(&server, (const struct sockaddr *)&any, 0);
	uv_listen((uv_stream_t *)&server, 16, on_client);
	uv_signal_init(loop, &hangup);
	uv_signal_start(&hangup, on_signal, SIGHUP);
	uv_timer_init(loop, &report);
	uv_timer_start(&report, on_timer, 3600000, 3600000);
	uv_timer_init(loop, &idle);
	uv_fs_open(loop, &request, argv[1], UV_FS_O_RDONLY, 0, on_open);
	puts("ready");
	fflush(stdout);
	return uv_run(loop, UV_RUN_DEFAULT);
}
