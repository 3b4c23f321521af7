/* flows.c FAULT [peer]: a program that asks a peer for pages, or serves it, over connections; the side that listens writes its
 * port into the file "port" in the working directory.
 *
 *   reconnect  asks for 24 pages one after the other, each over a connection of its own
 *   closed     as reconnect, but the peer closes each connection after the answer
 *   crowd      asks for 24 pages at once, each over a connection of its own
 *   warm       asks for one page, and then for 23 at once, each over a connection of its own
 *   keep       asks for 24 pages one after the other over one connection
 *   stop       serves pages, and exits after the message "stop", while three clients wait for a slow one
 *   finish     as stop, but it answers these three before it exits
 *   notes      serves pages, and exits after the message "stop", when three clients sent a note that has no answer
 *   list       serves lists; for each it asks for 12 pages one after the other
 *   together   as list, but it asks for all pages at once
 *   polls      as list, but a timer asks for the pages, and the list does not need them
 *
 * The program ends after 3 s at the latest.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum { PAGES = 24, LISTED = 12, SLOW_CLIENTS = 3, ANSWER_US = 4000, POLL_MS = 6, SLOW_MS = 400 };

static const char *fault;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static bool makes_lists(void)
{
	return is("list") || is("together") || is("polls");
}

static bool serves_pages(void)
{
	return is("stop") || is("finish") || is("notes");
}

static void write_port(int port)
{
	FILE *file = fopen("port.new", "w");
	if (!file)
		exit(2);
	fprintf(file, "%d\n", port);
	fclose(file);
	rename("port.new", "port");
}

static int read_port(void)
{
	int port = 0;
	for (int i = 0; i < 2000 && !port; i++) {
		FILE *file = fopen("port", "r");
		if (!file) {
			usleep(5000);
			continue;
		}
		if (fscanf(file, "%d", &port) != 1)
			port = 0;
		fclose(file);
	}
	unlink("port");
	return port;
}

static struct sockaddr_in address_of(int port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* ---- The peer, with blocking sockets ---- */

static void send_text(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		exit(0);
}

/* Answers each line that arrives on one connection. */
static void serve_pages(int fd)
{
	char line[64];
	FILE *in = fdopen(dup(fd), "r");
	while (in && fgets(line, sizeof line, in)) {
		usleep(ANSWER_US);
		send_text(fd, "page of the book\n");
		if (is("closed"))
			break;
	}
	exit(0);
}

static void be_server(void)
{
	struct sockaddr_in address = address_of(0);
	socklen_t length = sizeof address;
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, length) < 0 || listen(listener, 64) < 0)
		exit(2);
	getsockname(listener, (struct sockaddr *)&address, &length);
	write_port(ntohs(address.sin_port));
	for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
		if (fork() == 0)
			serve_pages(fd);
}

static int connect_to(int port)
{
	const struct sockaddr_in address = address_of(port);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		exit(2);
	return fd;
}

static void ask(int fd, const char *text)
{
	char answer[256];
	send_text(fd, text);
	if (recv(fd, answer, sizeof answer, 0) <= 0)
		exit(0);
}

static void be_client(int port)
{
	if (makes_lists()) {
		for (int i = 0, fd = connect_to(port); i < 3; i++)
			ask(fd, "list\n");
		return;
	}
	for (int i = 0, fd = connect_to(port); i < 8; i++)
		ask(fd, "get 1\n");
	int others[SLOW_CLIENTS];
	char answer[64];
	for (int i = 0; i < SLOW_CLIENTS; i++)
		send_text(others[i] = connect_to(port), is("notes") ? "note\n" : "slow\n");
	usleep(50000);
	ask(connect_to(port), "stop\n");
	for (int i = 0; i < SLOW_CLIENTS; i++)
		if (recv(others[i], answer, sizeof answer, 0) <= 0)
			exit(0);
}

static int be_peer(void)
{
	alarm(10);
	if (serves_pages()) {
		be_client(read_port());
		return 0;
	}
	if (makes_lists() && fork() == 0) {
		usleep(100000);
		FILE *file = NULL;
		int port = 0;
		for (int i = 0; i < 1000 && !(file = fopen("port-of-lists", "r")); i++)
			usleep(5000);
		if (!file || fscanf(file, "%d", &port) != 1)
			return 2;
		unlink("port-of-lists");
		be_client(port);
		return 0;
	}
	be_server();
	return 0;
}

/* ---- The program ---- */

struct connection {
	uv_tcp_t tcp;
	uv_connect_t connect;
	uv_timer_t later;
	int page, lines;
	struct connection *asker;
	char buffer[256];
};

static uv_loop_t *loop;
static uv_tcp_t listener;
static uv_timer_t end, poll_timer;
static int port, pages_left, slow_left, polled;
static struct connection *to_peer;
static bool is_stopping;

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

static void say(struct connection *c, const char *text)
{
	uv_buf_t buffer = uv_buf_init((char *)text, (unsigned)strlen(text));
	uv_write(malloc(sizeof(uv_write_t)), (uv_stream_t *)&c->tcp, &buffer, 1, written);
}

static void on_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	free(c);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void leave(struct connection *c)
{
	if (!uv_is_closing((uv_handle_t *)&c->later) && !uv_is_closing((uv_handle_t *)&c->tcp))
		uv_close((uv_handle_t *)&c->later, on_timer_closed);
}

static struct connection *make_connection(void)
{
	struct connection *c = calloc(1, sizeof *c);
	c->tcp.data = c->later.data = c->connect.data = c;
	uv_tcp_init(loop, &c->tcp);
	uv_timer_init(loop, &c->later);
	return c;
}

static void end_all(void)
{
	uv_timer_stop(&end);
	if (to_peer)
		leave(to_peer);
	to_peer = NULL;
}

/* ---- Asking ---- */

static struct connection *connect_peer(int page);

static void begin_page(struct connection *c)
{
	static const char *const requests[] = {
	    "get 0\n", "get 1\n", "get 2\n", "get 3\n", "get 4\n", "get 5\n", "get 6\n", "get 7\n", "get 8\n", "get 9\n"};
	say(c, requests[c->page < 10 ? c->page : 0]);
}

static void answer_list(struct connection *c)
{
	struct connection *asker = c->asker;
	c->asker = NULL;
	say(asker, "list of the pages\n");
}

/* Asks for the next page or pages over new connections, when the page of connection `c` has arrived. */
static void ask_for_next(const struct connection *c)
{
	if (pages_left == 0)
		end_all();
	else if (is("reconnect") || is("closed"))
		connect_peer(c->page);
	else if (is("warm") && c->page == 1 && pages_left == PAGES - 1)
		for (int i = 0; i < PAGES - 1; i++)
			connect_peer(c->page);
}

static void on_page(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct connection *c = stream->data;
	if (size < 0) {
		leave(c);
		if (is("closed"))
			ask_for_next(c);
		return;
	}
	int lines = 0;
	for (ssize_t i = 0; i < size; i++)
		lines += buffer->base[i] == '\n';
	if (lines == 0)
		return; /* the rest of the line has not arrived yet */
	c->lines += lines;
	pages_left -= lines;
	if (c->asker) {
		if (pages_left == 0)
			answer_list(c);
		else if (is("list"))
			begin_page(c);
		return;
	}
	c->page++;
	if (is("keep") && pages_left > 0) {
		begin_page(c);
	} else if (!makes_lists() && !is("closed")) {
		leave(c);
		ask_for_next(c);
	}
}

static void on_connected(uv_connect_t *connect, int status)
{
	struct connection *c = connect->data;
	if (status < 0)
		exit(2);
	uv_read_start((uv_stream_t *)&c->tcp, give, on_page);
	if (!makes_lists())
		begin_page(c);
}

static struct connection *connect_peer(int page)
{
	const struct sockaddr_in address = address_of(port);
	struct connection *c = make_connection();
	c->page = page;
	uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&address, on_connected);
	return c;
}

/* ---- Serving ---- */

static void stop(void)
{
	if (!is("finish"))
		exit(0);
	is_stopping = true;
	uv_close((uv_handle_t *)&listener, NULL);
}

static void answer(uv_timer_t *timer)
{
	say(timer->data, "page of the book\n");
}

static void answer_slowly(uv_timer_t *timer)
{
	answer(timer);
	if (--slow_left == 0)
		end_all();
}

static void on_poll(uv_timer_t *timer)
{
	(void)timer;
	if (++polled <= LISTED)
		begin_page(to_peer);
}

static void begin_list(struct connection *c)
{
	if (is("polls")) {
		polled = 0;
		uv_timer_start(&poll_timer, on_poll, POLL_MS, POLL_MS);
		uv_timer_start(&c->later, answer, POLL_MS * (LISTED + 1) + POLL_MS / 2, 0);
		return;
	}
	to_peer->asker = c;
	pages_left = LISTED;
	for (int i = 0; i < (is("list") ? 1 : LISTED); i++)
		begin_page(to_peer);
}

static void on_request(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
	struct connection *c = stream->data;
	if (size < 0) {
		leave(c);
		return;
	}
	switch (buffer->base[0]) {
	case 'g': uv_timer_start(&c->later, answer, ANSWER_US / 1000, 0); break;
	case 'n': break; /* a note, which gets no answer */
	case 's':
		if (buffer->base[1] == 'l') {
			slow_left++;
			uv_timer_start(&c->later, answer_slowly, SLOW_MS, 0);
		} else {
			stop();
			say(c, "bye\n");
		}
		break;
	default: begin_list(c);
	}
}

static void on_connection(uv_stream_t *stream, int status)
{
	struct connection *c = make_connection();
	if (status < 0 || uv_accept(stream, (uv_stream_t *)&c->tcp) < 0)
		exit(2);
	uv_read_start((uv_stream_t *)&c->tcp, give, on_request);
}

static int serve(void)
{
	struct sockaddr_in address = address_of(0);
	int length = sizeof address;
	uv_tcp_init(loop, &listener);
	uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
	uv_listen((uv_stream_t *)&listener, 64, on_connection);
	uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length);
	return ntohs(address.sin_port);
}

static void give_up(uv_timer_t *timer)
{
	(void)timer;
	uv_stop(loop);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "keep";
	if (argc > 2)
		return be_peer();
	loop = uv_default_loop();
	uv_timer_init(loop, &end);
	uv_timer_start(&end, give_up, 3000, 0);
	uv_timer_init(loop, &poll_timer);
	if (serves_pages()) {
		write_port(serve());
	} else if (makes_lists()) {
		port = read_port();
		to_peer = connect_peer(0);
		const int own = serve();
		uv_unref((uv_handle_t *)&listener);
		FILE *file = fopen("port-of-lists.new", "w");
		if (!file)
			return 2;
		fprintf(file, "%d\n", own);
		fclose(file);
		rename("port-of-lists.new", "port-of-lists");
		uv_timer_start(&end, give_up, 1000, 0);
	} else {
		port = read_port();
		pages_left = PAGES;
		for (int i = 0; i < (is("crowd") ? PAGES : 1); i++)
			connect_peer(0);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	printf("%d pages left\n", pages_left);
	return 0;
}
