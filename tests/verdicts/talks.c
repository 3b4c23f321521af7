/* talks.c FAULT [server|client]: a server and four clients in one libuv loop, or only the server or the clients; the server
 * writes its port into the file "port" in the working directory.  A client sends ten requests, and waits for each response.
 *
 *   (none)   every request gets a response, and the clients close
 *   silent   one request gets no response
 *   left     one request gets no response, and the client closes after 1.5 s
 *   file     one request waits for a FIFO without a writer
 *   kept     every request gets a response, and the clients keep their connections
 *   pool     four computations hold the pool for 300 ms; eight short ones, each with a file, are queued behind them
 *   locked   as pool, but three of the four computations only wait for a lock that the first one holds
 *   late     the seventh response of each client takes half a second, and one takes 1.5 s
 *
 * The program ends after 2.5 s at the latest.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum { CLIENTS = 4, QUESTIONS = 10 };

struct connection {
	uv_tcp_t tcp;
	uv_timer_t later;
	uv_connect_t connect;
	uv_fs_t open;
	int number, count;
	char buffer[64];
};

static uv_loop_t *loop;
static uv_tcp_t listener;
static uv_mutex_t report;
static uv_timer_t clock_tick, end;
static int clients_left = CLIENTS;
static const char *fault = "";

static int is(const char *name)
{
	return !strcmp(fault, name);
}

static void give(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	struct connection *c = handle->data;
	(void)wanted;
	*buffer = uv_buf_init(c->buffer, sizeof c->buffer);
}

static void written(uv_write_t *write, int status)
{
	(void)status;
	free(write);
}

static void say(struct connection *c, char *text)
{
	uv_buf_t buffer = uv_buf_init(text, (unsigned)strlen(text));
	uv_write(malloc(sizeof(uv_write_t)), (uv_stream_t *)&c->tcp, &buffer, 1, written);
}

static void answer(uv_timer_t *timer)
{
	say(timer->data, "yes");
}

static void opened(uv_fs_t *open)
{
	say(open->data, "file");
}

static void compute(uv_work_t *work)
{
	usleep(*(unsigned *)work->data);
}

static void compute_alone(uv_work_t *work)
{
	uv_mutex_lock(&report);
	usleep(*(unsigned *)work->data);
	uv_mutex_unlock(&report);
}

static void computed(uv_work_t *work, int status)
{
	(void)status;
	free(work);
}

static void looked(uv_fs_t *stat)
{
	uv_fs_req_cleanup(stat);
	free(stat);
}

static void fill_pool(void)
{
	static unsigned long_us = 300000, short_us = 5000, none_us;
	uv_mutex_init(&report);
	for (int i = 0; i < 12; i++) {
		uv_work_t *work = malloc(sizeof *work);
		work->data = i >= 4 ? &short_us : i > 0 && is("locked") ? &none_us : &long_us;
		uv_queue_work(loop, work, i < 4 && is("locked") ? compute_alone : compute, computed);
		if (i >= 4)
			uv_fs_stat(loop, malloc(sizeof(uv_fs_t)), ".", looked);
	}
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_question(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct connection *c = stream->data;
	(void)buffer;
	if (length < 0) {
		uv_close((uv_handle_t *)&c->later, on_timer_closed);
		return;
	}
	bool is_special = ++c->count == 7;
	if (is_special && c->number == 2 && (is("pool") || is("locked")))
		fill_pool();
	if (is_special && c->number == 2 && (is("silent") || is("left")))
		return;
	if (is_special && c->number == 2 && is("file"))
		uv_fs_open(loop, &c->open, "nobody-writes", O_RDONLY, 0, opened);
	else
		uv_timer_start(&c->later, answer, is_special && is("late") ? c->number == 2 ? 1500 : 500 : 1, 0);
}

static void on_connection(uv_stream_t *stream, int status)
{
	static int number;
	struct connection *c = calloc(1, sizeof *c);
	(void)status;
	c->number = number++;
	c->tcp.data = c->later.data = c->open.data = c;
	uv_tcp_init(loop, &c->tcp);
	uv_timer_init(loop, &c->later);
	uv_accept(stream, (uv_stream_t *)&c->tcp);
	uv_read_start((uv_stream_t *)&c->tcp, give, on_question);
}

static void stop(uv_timer_t *timer)
{
	(void)timer;
	_exit(0);
}

static void tick(uv_timer_t *timer)
{
	(void)timer;
}

static void leave(struct connection *c)
{
	uv_close((uv_handle_t *)&c->tcp, NULL);
	if (--clients_left > 0)
		return;
	uv_close((uv_handle_t *)&listener, NULL);
	uv_close((uv_handle_t *)&clock_tick, NULL);
	uv_close((uv_handle_t *)&end, NULL);
}

static struct connection clients[CLIENTS];

static void lose_patience(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
	for (int i = 0; i < CLIENTS; i++)
		if (!uv_is_closing((uv_handle_t *)&clients[i].tcp))
			leave(&clients[i]);
}

static void on_answer(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct connection *c = stream->data;
	(void)length;
	(void)buffer;
	if (++c->count < QUESTIONS) {
		say(c, "well?");
		return;
	}
	if (!is("kept"))
		leave(c);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct connection *c = connect->data;
	(void)status;
	uv_read_start((uv_stream_t *)&c->tcp, give, on_answer);
	say(c, "well?");
}

/* Writes the port of the server into a file, or, in the process of the clients, reads the port from the file. */
static void pass_port(struct sockaddr_in *address, bool reads)
{
	FILE *file = NULL;
	int port = ntohs(address->sin_port);
	for (int tries = 0; reads && !file && tries < 1000; tries++) {
		file = fopen("port", "r");
		if (!file)
			usleep(10000);
	}
	if (!reads)
		file = fopen("port.new", "w");
	if (!file || (reads ? fscanf(file, "%d", &port) != 1 : fprintf(file, "%d", port) < 1) || fclose(file))
		abort();
	if (!reads && rename("port.new", "port"))
		abort();
	address->sin_port = htons((uint16_t)port);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address;
	int length = sizeof address;
	const bool is_server = argc > 2 && !strcmp(argv[2], "server"), is_client = argc > 2 && !is_server;
	fault = argc > 1 ? argv[1] : "";
	loop = uv_default_loop();
	unlink("nobody-writes");
	mkfifo("nobody-writes", 0600);
	uv_ip4_addr("127.0.0.1", 0, &address);
	if (!is_client) {
		uv_tcp_init(loop, &listener);
		uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
		uv_listen((uv_stream_t *)&listener, CLIENTS, on_connection);
		uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length);
	}
	if (is_server || is_client)
		pass_port(&address, is_client);
	for (int i = 0; i < CLIENTS && !is_server; i++) {
		uv_tcp_init(loop, &clients[i].tcp);
		clients[i].tcp.data = clients[i].connect.data = &clients[i];
		uv_tcp_connect(&clients[i].connect, &clients[i].tcp, (struct sockaddr *)&address, on_connect);
	}
	/* A timer runs every 20 ms, so the trace always has recent events. */
	uv_timer_init(loop, &clock_tick);
	uv_timer_start(&clock_tick, tick, 20, 20);
	if (is("left")) {
		static uv_timer_t patience;
		uv_timer_init(loop, &patience);
		uv_timer_start(&patience, lose_patience, 1500, 0);
	}
	uv_timer_init(loop, &end);
	uv_timer_start(&end, stop, is_server ? 5000 : 2500, 0); /* a server in a process of its own ends later than its clients */
	return uv_run(loop, UV_RUN_DEFAULT);
}
