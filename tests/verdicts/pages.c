/* pages.c MODE: a libevent program with an HTTP server on a thread of its own, which does not answer "/late" in time.  Modes:
 * hasty (the client closes its connection after 100 ms), forgetful (the client waits for the answer).  SIGKILL ends the program
 * after 1.3 s. SPDX-License-Identifier: ISC */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *mode;
static struct event_base *base, *server_base;
static struct evhttp_connection *connection;
static int answered;

static void serve(struct evhttp_request *request, void *data)
{
	(void)data;
	if (strcmp(evhttp_request_get_uri(request), "/late") != 0)
		evhttp_send_reply(request, 200, "OK", NULL);
}

static void *run_server(void *unused)
{
	event_base_dispatch(server_base);
	return unused;
}

static void ask(const char *page);

static void on_answer(struct evhttp_request *request, void *data)
{
	(void)request, (void)data;
	if (++answered < 8)
		ask("/page");
	else if (answered == 8)
		ask("/late");
}

static void ask(const char *page)
{
	evhttp_make_request(connection, evhttp_request_new(on_answer, NULL), EVHTTP_REQ_GET, page);
}

static void end_program(evutil_socket_t fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	const struct timeval limit = {.tv_sec = 1, .tv_usec = 300000}, hasty = {.tv_usec = 100000};
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	pthread_t thread;
	mode = argc > 1 ? argv[1] : "hasty";
	base = event_base_new();
	server_base = event_base_new();
	struct evhttp *server = evhttp_new(server_base);
	evhttp_set_gencb(server, serve, NULL);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size);
	pthread_create(&thread, NULL, run_server, NULL);
	connection = evhttp_connection_base_new(base, NULL, "127.0.0.1", ntohs(address.sin_port));
	if (!strcmp(mode, "hasty"))
		evhttp_connection_set_timeout_tv(connection, &hasty);
	event_add(event_new(base, -1, 0, end_program, NULL), &limit);
	ask("/page");
	event_base_dispatch(base);
	return 0;
}
