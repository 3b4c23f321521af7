/* feed.c: small programs on libuv, each with one fault; "healthy-FAULT" is the same program without the fault.
 *
 * Usage: judge-feed FAULT [SEED].  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum { CLIENTS = 5, MANY = 65536, FEW = 16384 };

static bool is_healthy;
static uv_loop_t *loop;
static uv_tcp_t listener, from, to;
static uv_signal_t end_signal;
static uv_timer_t heartbeat;
static int unanswered, connections;

static int connect_to(int port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small); /* so that backpressure comes soon */
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		exit(3);
	return fd;
}

static int listen_for(uv_connection_cb on_connection)
{
	struct sockaddr_in address;
	int size = sizeof address;
	uv_ip4_addr("127.0.0.1", 0, &address);
	uv_tcp_init(loop, &listener);
	uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&listener, 16, on_connection);
	uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &size);
	return ntohs(address.sin_port);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	(void)handle;
	*buffer = uv_buf_init(malloc(size), (unsigned)size);
}

/* ---- backpressure: a relay between a fast source and a slow sink ---- */

static void on_chunk(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

static void on_relayed(uv_write_t *write, int status)
{
	(void)status;
	free(write->data);
	free(write);
	if (is_healthy && uv_stream_get_write_queue_size((uv_stream_t *)&to) < FEW)
		uv_read_start((uv_stream_t *)&from, on_alloc, on_chunk);
}

static void on_chunk(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	if (size <= 0) {
		free(buffer->base);
		return;
	}
	uv_write_t *write = malloc(sizeof *write);
	uv_buf_t chunk = uv_buf_init(buffer->base, (unsigned)size);
	write->data = buffer->base;
	uv_write(write, (uv_stream_t *)&to, &chunk, 1, on_relayed);
	if (is_healthy && uv_stream_get_write_queue_size((uv_stream_t *)&to) > MANY)
		uv_read_stop(stream);
}

static void on_end_of_relay(uv_stream_t *server, int status)
{
	uv_tcp_t *ends[] = {&to, &from}; /* the sink connects first */
	uv_tcp_t *tcp = ends[connections++];
	(void)status;
	uv_tcp_init(loop, tcp);
	uv_accept(server, (uv_stream_t *)tcp);
	int small = 4096;
	uv_send_buffer_size((uv_handle_t *)tcp, &small);
	if (connections == 2)
		uv_read_start((uv_stream_t *)&from, on_alloc, on_chunk);
}

static void be_source_and_sink(int port)
{
	char chunk[16384] = {0};
	int sink = connect_to(port), source;
	usleep(50000);
	source = connect_to(port);
	if (fork() == 0)
		while (recv(sink, chunk, 2048, 0) > 0)
			usleep(10000);
	while (send(source, chunk, sizeof chunk, MSG_NOSIGNAL) > 0)
		usleep(2000);
	exit(0);
}

static void run_backpressure(void)
{
	int port = listen_for(on_end_of_relay);
	if (fork() == 0)
		be_source_and_sink(port);
	uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- signal: a server that SIGTERM ends while it owes answers; heartbeat: a server that SIGTERM does not end ---- */

struct client {
	uv_tcp_t tcp;
	uv_timer_t work;
	uv_write_t write;
};

static void on_any_closed(uv_handle_t *handle)
{
	(void)handle;
}

static void on_answered(uv_write_t *write, int status)
{
	struct client *client = write->data;
	(void)status;
	uv_close((uv_handle_t *)&client->tcp, on_any_closed);
	uv_close((uv_handle_t *)&client->work, on_any_closed);
	unanswered--;
}

static void on_work_done(uv_timer_t *work)
{
	struct client *client = work->data;
	uv_buf_t answer = uv_buf_init("done\n", 5);
	client->write.data = client;
	uv_write(&client->write, (uv_stream_t *)&client->tcp, &answer, 1, on_answered);
}

static void on_request(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct client *client = stream->data;
	free(buffer->base);
	if (size <= 0)
		return;
	uv_read_stop(stream);
	unanswered++;
	uv_timer_start(&client->work, on_work_done, listener.data ? 600 : 40, 0);
}

static void on_client(uv_stream_t *server, int status)
{
	struct client *client = calloc(1, sizeof *client);
	(void)status;
	uv_tcp_init(loop, &client->tcp);
	uv_timer_init(loop, &client->work);
	client->tcp.data = client->work.data = client;
	uv_accept(server, (uv_stream_t *)&client->tcp);
	uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_request);
}

static void on_end_signal(uv_signal_t *handle, int number)
{
	(void)number;
	if (listener.data && !is_healthy) {
		uv_stop(loop);
		return;
	}
	uv_close((uv_handle_t *)&listener, on_any_closed);
	uv_close((uv_handle_t *)handle, on_any_closed);
	if (is_healthy)
		uv_close((uv_handle_t *)&heartbeat, on_any_closed);
}

static void on_heartbeat(uv_timer_t *timer)
{
	(void)timer;
}

static void be_clients(int port, bool ends_early)
{
	int fds[CLIENTS];
	char text[16];
	for (int i = 0; i < CLIENTS; i++) {
		fds[i] = connect_to(port);
		send(fds[i], "work\n", 5, MSG_NOSIGNAL);
	}
	usleep(300000);
	if (ends_early)
		kill(getppid(), SIGTERM);
	for (int i = 0; i < CLIENTS; i++)
		while (recv(fds[i], text, sizeof text, 0) > 0)
			;
	if (!ends_early)
		kill(getppid(), SIGTERM);
	exit(0);
}

static void run_server(bool is_slow)
{
	int port = listen_for(on_client);
	listener.data = is_slow ? &listener : NULL;
	if (fork() == 0)
		be_clients(port, is_slow);
	uv_signal_init(loop, &end_signal);
	uv_signal_start(&end_signal, on_end_signal, SIGTERM);
	uv_timer_init(loop, &heartbeat);
	uv_timer_start(&heartbeat, on_heartbeat, 100, 100);
	uv_run(loop, UV_RUN_DEFAULT);
}

/* ---- fifo: a synchronous call of libuv that never returns ---- */

static char fifo[64];

static void on_opened(uv_fs_t *request)
{
	(void)request;
	uv_close((uv_handle_t *)&heartbeat, on_any_closed);
}

static void read_settings(uv_timer_t *timer)
{
	static uv_fs_t request;
	uv_close((uv_handle_t *)timer, on_any_closed);
	uv_fs_open(loop, &request, is_healthy ? "/etc/passwd" : fifo, O_RDONLY, 0, is_healthy ? on_opened : NULL);
}

static void run_fifo(void)
{
	uv_timer_t start;
	snprintf(fifo, sizeof fifo, "/tmp/judge-feed-%d.fifo", (int)getpid());
	mkfifo(fifo, 0600);
	if (fork() == 0) {
		sleep(4);
		unlink(fifo);
		exit(0);
	}
	uv_timer_init(loop, &start);
	uv_timer_start(&start, read_settings, 50, 0);
	uv_timer_init(loop, &heartbeat);
	uv_timer_start(&heartbeat, on_heartbeat, 100, 100);
	uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	is_healthy = !strncmp(fault, "healthy-", 8);
	fault += is_healthy ? 8 : 0;
	loop = uv_default_loop();
	if (!strcmp(fault, "backpressure"))
		run_backpressure();
	else if (!strcmp(fault, "signal"))
		run_server(true);
	else if (!strcmp(fault, "heartbeat"))
		run_server(false);
	else if (!strcmp(fault, "fifo"))
		run_fifo();
	else
		return 2;
	return 0;
}
