/* gate.c: small programs on libevent, each with one fault; "healthy-FAULT" is the same program without the fault.
 *
 * Usage: judge-gate FAULT [SEED].  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_healthy;
static struct event_base *base;
static struct event *ticker;

static int connect_to(int port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		exit(3);
	return fd;
}

static int listen_for(evconnlistener_cb on_connection)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	struct evconnlistener *listener = evconnlistener_new_bind(
	    base, on_connection, NULL, LEV_OPT_CLOSE_ON_FREE, 16, (struct sockaddr *)&address, sizeof address);
	getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &size);
	return ntohs(address.sin_port);
}

/* ---- watermark: the buffer is full before a line is complete ---- */

static void on_order(struct bufferevent *stream, void *data)
{
	char *line = evbuffer_readln(bufferevent_get_input(stream), NULL, EVBUFFER_EOL_LF);
	(void)data;
	if (line)
		bufferevent_write(stream, "ordered\n", 8);
	free(line);
}

static void on_order_end(struct bufferevent *stream, short events, void *data)
{
	(void)events, (void)data;
	bufferevent_free(stream);
	event_base_loopexit(base, NULL);
}

static void on_customer(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int size, void *data)
{
	struct bufferevent *stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	(void)listener, (void)address, (void)size, (void)data;
	if (!is_healthy)
		bufferevent_setwatermark(stream, EV_READ, 0, 16);
	bufferevent_setcb(stream, on_order, NULL, on_order_end, NULL);
	bufferevent_enable(stream, EV_READ | EV_WRITE);
}

static void run_watermark(void)
{
	int port = listen_for(on_customer);
	if (fork() == 0) {
		char text[16];
		int fd = connect_to(port);
		for (int i = 0; i < 3; i++) {
			const char *order = i < 2 ? "1 apple\n" : "12 apples, 7 pears and a pineapple\n";
			send(fd, order, strlen(order), MSG_NOSIGNAL);
			recv(fd, text, sizeof text, 0);
		}
		exit(0);
	}
	event_base_dispatch(base);
}

/* ---- active: an event that makes itself active again ---- */

static void look_for_work(evutil_socket_t fd, short events, void *data)
{
	static const struct timeval pause = {0, 20000};
	(void)fd, (void)events, (void)data;
	if (is_healthy)
		evtimer_add(ticker, &pause);
	else
		event_active(ticker, EV_TIMEOUT, 0);
}

static void run_active(void)
{
	static const struct timeval two_seconds = {2, 0};
	ticker = evtimer_new(base, look_for_work, NULL);
	event_active(ticker, EV_TIMEOUT, 0);
	event_base_loopexit(base, &two_seconds);
	event_base_dispatch(base);
}

/* ---- subscriber: the output of a slow reader grows ---- */

static struct bufferevent *subscriber;

static void publish_news(evutil_socket_t fd, short events, void *data)
{
	static const char news[16384];
	(void)fd, (void)events, (void)data;
	if (!subscriber)
		return;
	if (is_healthy && evbuffer_get_length(bufferevent_get_output(subscriber)) > 65536)
		return;
	bufferevent_write(subscriber, news, sizeof news);
}

static void on_subscriber(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int size, void *data)
{
	(void)listener, (void)address, (void)size, (void)data;
	subscriber = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_enable(subscriber, EV_READ | EV_WRITE);
}

static void run_subscriber(void)
{
	static const struct timeval often = {0, 2000};
	int port = listen_for(on_subscriber);
	if (fork() == 0) {
		char text[2048];
		int fd = connect_to(port);
		while (recv(fd, text, sizeof text, 0) > 0)
			usleep(10000);
		exit(0);
	}
	ticker = event_new(base, -1, EV_PERSIST, publish_news, NULL);
	event_add(ticker, &often);
	event_base_dispatch(base);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	is_healthy = !strncmp(fault, "healthy-", 8);
	fault += is_healthy ? 8 : 0;
	base = event_base_new();
	if (!strcmp(fault, "watermark"))
		run_watermark();
	else if (!strcmp(fault, "active"))
		run_active();
	else if (!strcmp(fault, "subscriber"))
		run_subscriber();
	else
		return 2;
	return 0;
}
