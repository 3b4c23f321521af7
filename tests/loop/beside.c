/* beside.c uv|event: the loop of a runtime listens for connections; another thread has an event loop of its own on two pipes.
 *
 * SPDX-License-Identifier: ISC */
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { TURNS = 20 };

static void *run_beside(void *unused)
{
	int one[2], two[2];
	if (pipe(one) || pipe(two))
		return NULL;
	struct pollfd fds[2] = {{.fd = one[0], .events = POLLIN}, {.fd = two[0], .events = POLLIN}};
	for (int i = 0; i < TURNS; i++)
		poll(fds, 2, 10);
	return NULL;
}

static void end_uv(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void accept_none(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer, int size, void *data)
{
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval second = {.tv_sec = 1};
	uv_tcp_t server;
	uv_timer_t timer;
	pthread_t thread;
	if (argc > 1 && !strcmp(argv[1], "uv")) {
		uv_loop_t *loop = uv_default_loop();
		uv_tcp_init(loop, &server);
		uv_tcp_bind(&server, (struct sockaddr *)&here, 0);
		uv_listen((uv_stream_t *)&server, 1, NULL);
		uv_timer_init(loop, &timer);
		uv_timer_start(&timer, end_uv, 1000, 0);
		pthread_create(&thread, NULL, run_beside, NULL);
		uv_run(loop, UV_RUN_DEFAULT);
	} else {
		struct event_base *base = event_base_new();
		evconnlistener_new_bind(base, accept_none, NULL, LEV_OPT_CLOSE_ON_FREE, 1, (struct sockaddr *)&here, sizeof here);
		event_base_loopexit(base, &second);
		pthread_create(&thread, NULL, run_beside, NULL);
		event_base_dispatch(base);
	}
	return pthread_join(thread, NULL);
}
