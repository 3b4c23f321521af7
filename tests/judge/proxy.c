/* proxy.c: a caching HTTP proxy on libevent, with an origin server and clients as OS threads.
 *
 * A request for /p/N is answered from the cache, or asked of the origin.  A compressor thread packs what is cached.  /long/N is a
 * long poll.  The fault decides what goes wrong.
 *
 * Usage: judge-proxy FAULT [SEED].  Healthy: none, healthy-slow, healthy-timeouts, healthy-polls, healthy-idle.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/thread.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 4, REQUESTS = 12, PAGES = 30, TRIES = 150, UPSTREAMS = 5 };

struct page {
	char *text;
	bool is_packed;
};

struct exchange { /* a request of a client, while the origin or the compressor works for it */
	struct evhttp_request *client;
	int number, tries;
	char *text;
	struct exchange *next;
};

static const char *fault;
static struct event_base *base, *origin_base;
static struct evhttp *front;
static struct event *packed_event, *statistics_timer, *quit_event;
static struct evhttp_connection *upstream[UPSTREAMS]; /* the last one is for the mirror that refuses */
static struct page cache[PAGES];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER, statistics_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct exchange *to_pack, *packed;
static bool is_ending;
static int seed, port, origin_port, refusing_port, packed_fd, quit_fd, log_file;
static long hits, bytes_packed;

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static int port_of(struct evhttp_bound_socket *bound)
{
	struct sockaddr_in address = {.sin_port = 0};
	socklen_t length = sizeof address;
	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &length);
	return ntohs(address.sin_port);
}

/* ---- The origin ---- */

static void send_page(struct evhttp_request *request, int number)
{
	struct evbuffer *text = evbuffer_new();
	for (int i = 0; i < 40; i++)
		evbuffer_add_printf(text, "This is line %d of page %d.\n", i, number);
	evhttp_send_reply(request, 200, "OK", text);
	evbuffer_free(text);
}

static void send_late(evutil_socket_t fd, short events, void *request)
{
	(void)fd, (void)events;
	send_page(request, 0);
}

static void serve_origin(struct evhttp_request *request, void *data)
{
	(void)data;
	const char *uri = evhttp_request_get_uri(request);
	int number = atoi(strrchr(uri, '/') + 1);
	if (!strncmp(uri, "/long/", 6) || is("healthy-slow") || (is("healthy-timeouts") && number == 7)) {
		const struct timeval late = {is("healthy-timeouts"), is("healthy-slow")    ? 120000
								     : is("healthy-polls") ? 800000
											   : 500000};
		event_base_once(origin_base, -1, EV_TIMEOUT, send_late, request, &late);
	} else if (number == 7 && is("origin"))
		return; /* waits for a lock of the origin's database */
	else if (number == 9)
		evhttp_send_error(request, 404, "no such page");
	else
		send_page(request, number);
}

static void *run_origin(void *data)
{
	event_base_dispatch(origin_base);
	return data;
}

static pthread_t start_origin(void)
{
	pthread_t thread;
	origin_base = event_base_new();
	struct evhttp *origin = evhttp_new(origin_base);
	evhttp_set_gencb(origin, serve_origin, NULL);
	origin_port = port_of(evhttp_bind_socket_with_handle(origin, "127.0.0.1", 0));
	pthread_create(&thread, NULL, run_origin, NULL);
	return thread;
}

/* ---- The compressor: an OS thread that takes exchanges from a queue and gives them back ---- */

static void pack(struct exchange *exchange)
{
	pthread_mutex_lock(&cache_lock);
	if (is("lockheld") && exchange->number % 8 == 3)
		usleep(300000); /* writes the cache to the disk */
	if (is("lockorder"))
		usleep(2000);
	pthread_mutex_lock(&statistics_lock);
	bytes_packed += (long)strlen(exchange->text);
	pthread_mutex_unlock(&statistics_lock);
	struct page *page = &cache[exchange->number % PAGES];
	if (!page->text) {
		page->text = strdup(exchange->text);
		page->is_packed = true;
	}
	pthread_mutex_unlock(&cache_lock);
}

static void *run_compressor(void *data)
{
	const uint64_t one = 1;
	for (;;) {
		pthread_mutex_lock(&queue_lock);
		while (!to_pack && !is_ending)
			pthread_cond_wait(&queue_filled, &queue_lock);
		struct exchange *exchange = to_pack;
		if (!exchange) {
			pthread_mutex_unlock(&queue_lock);
			return data;
		}
		to_pack = exchange->next;
		pthread_mutex_unlock(&queue_lock);
		pack(exchange);
		pthread_mutex_lock(&queue_lock);
		exchange->next = packed;
		packed = exchange;
		pthread_mutex_unlock(&queue_lock);
		if (is("notify") && exchange->number % 8 == 3)
			continue; /* it was too short to be packed */
		if (write(packed_fd, &one, sizeof one) < 0)
			perror("eventfd");
	}
}

static void free_exchange(struct exchange *exchange)
{
	free(exchange->text);
	free(exchange);
}

static void send_packed(evutil_socket_t fd, short events, void *data)
{
	(void)events, (void)data;
	uint64_t count;
	if (read(fd, &count, sizeof count) < 0)
		return;
	pthread_mutex_lock(&queue_lock);
	struct exchange *list = packed;
	packed = list && is("notify") ? list->next : NULL; /* one for each wake-up */
	if (list && is("notify"))
		list->next = NULL;
	pthread_mutex_unlock(&queue_lock);
	while (list) {
		struct exchange *exchange = list;
		list = exchange->next;
		struct evbuffer *text = evbuffer_new();
		evbuffer_add_printf(text, "%s", exchange->text);
		evhttp_send_reply(exchange->client, 200, "OK", text);
		evbuffer_free(text);
		free_exchange(exchange);
	}
}

static void queue_exchange(struct exchange *exchange)
{
	pthread_mutex_lock(&queue_lock);
	exchange->next = to_pack;
	to_pack = exchange;
	pthread_cond_signal(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
}

/* ---- The proxy ---- */

static void ask_origin(struct exchange *exchange);

static void on_origin_reply(struct evhttp_request *reply, void *data)
{
	struct exchange *exchange = data;
	int code = reply ? evhttp_request_get_response_code(reply) : 0;
	if (code == 200) {
		struct evbuffer *body = evhttp_request_get_input_buffer(reply);
		size_t length = evbuffer_get_length(body);
		exchange->text = calloc(1, length + 1);
		evbuffer_copyout(body, exchange->text, length);
		queue_exchange(exchange);
		return;
	}
	if (code == 0 && is("retry") && exchange->tries++ < TRIES) {
		ask_origin(exchange);
		return;
	}
	if (code == 404 && is("unanswered")) {
		free_exchange(exchange);
		return;
	}
	evhttp_send_error(exchange->client, code ? code : 504, "the origin has no page");
	free_exchange(exchange);
}

static void ask_origin(struct exchange *exchange)
{
	bool refuses = is("retry") && exchange->number == 5;
	int place = refuses ? UPSTREAMS - 1 : exchange->number % (UPSTREAMS - 1);
	struct evhttp_connection *connection = upstream[place];
	if (!connection || is("connections")) {
		connection =
		    evhttp_connection_base_new(base, NULL, "127.0.0.1", (unsigned short)(refuses ? refusing_port : origin_port));
		if (is("healthy-timeouts")) {
			const struct timeval limit = {0, 300000};
			evhttp_connection_set_timeout_tv(connection, &limit);
		}
		upstream[place] = connection;
	}
	struct evhttp_request *request = evhttp_request_new(on_origin_reply, exchange);
	char path[32];
	snprintf(path, sizeof path, "%s%d", exchange->number < PAGES ? "/p/" : "/long/", exchange->number);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "origin.example");
	evhttp_make_request(connection, request, EVHTTP_REQ_GET, path);
}

static void log_request(const char *uri)
{
	int count = is("fsync") && strchr(uri, '3') ? 12 : 1;
	for (int i = 0; i < count; i++) {
		if (dprintf(log_file, "GET %s\n", uri) < 0)
			perror("log");
		if (is("fsync"))
			fsync(log_file);
	}
}

static void forget_client(evutil_socket_t fd, short events, void *data)
{
	(void)fd, (void)events, (void)data;
}

static unsigned check_signature(const char *uri)
{
	unsigned digest = 5381;
	for (int i = 0; i < 60000000; i++)
		digest = digest * 33 + (unsigned char)uri[i % 3];
	return digest;
}

static bool send_cached(struct evhttp_request *request, int number)
{
	pthread_mutex_lock(&cache_lock);
	struct page *page = &cache[number % PAGES];
	bool is_hit = number < PAGES && page->text;
	if (is_hit) {
		struct evbuffer *text = evbuffer_new();
		evbuffer_add_printf(text, "%s", page->text);
		evhttp_send_reply(request, 200, "OK", text);
		evbuffer_free(text);
		hits++;
	}
	pthread_mutex_unlock(&cache_lock);
	return is_hit;
}

static void serve_client(struct evhttp_request *request, void *data)
{
	(void)data;
	const char *uri = evhttp_request_get_uri(request);
	int number = atoi(strrchr(uri, '/') + 1);
	log_request(uri);
	if (is("compute") && number % 8 == 3)
		bytes_packed += check_signature(uri) == 1;
	if (is("child") && number % 8 == 3 && system("sleep 0.25"))
		perror("hook");
	if (is("timers")) {
		const struct timeval often = {0, 400000};
		event_add(event_new(base, -1, EV_PERSIST, forget_client, request), &often);
	}
	if (send_cached(request, number))
		return;
	struct exchange *exchange = calloc(1, sizeof *exchange);
	exchange->client = request;
	exchange->number = number;
	ask_origin(exchange);
}

static void take_statistics(evutil_socket_t fd, short events, void *data)
{
	(void)fd, (void)events, (void)data;
	pthread_mutex_lock(&statistics_lock);
	if (is("lockorder")) {
		usleep(2000);
		pthread_mutex_lock(&cache_lock);
		bytes_packed += hits == 0;
		pthread_mutex_unlock(&cache_lock);
	}
	pthread_mutex_unlock(&statistics_lock);
}

static void on_quit(evutil_socket_t fd, short events, void *data)
{
	(void)fd, (void)events, (void)data;
	event_base_loopbreak(base);
}

static void on_writable(evutil_socket_t fd, short events, void *data)
{
	(void)fd, (void)events, (void)data; /* there is nothing to write */
}

/* ---- Clients ---- */

static int connect_client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		perror("connect");
	return fd;
}

static bool get(int fd, const char *path)
{
	char text[4096];
	size_t length = (size_t)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: proxy\r\n\r\n", path), size;
	if (send(fd, text, length, MSG_NOSIGNAL) < 0)
		return false;
	for (length = 0;;) {
		ssize_t n = recv(fd, text + length, sizeof text - 1 - length, 0);
		if (n <= 0)
			return false;
		text[length += (size_t)n] = 0;
		const char *body = strstr(text, "\r\n\r\n"), *field = strstr(text, "Content-Length: ");
		size = field ? strtoul(field + 16, NULL, 10) : 0;
		if (body && length >= (size_t)(body + 4 - text) + size)
			return !strstr(text, "Connection: close");
	}
}

static void *be_client(void *argument)
{
	int number = (int)(intptr_t)argument, fd = connect_client();
	char path[32];
	for (int i = 0; i < REQUESTS; i++) {
		snprintf(path, sizeof path, "/p/%d", 1 + (i * 3 + number * 5 + seed % 7) % (PAGES - 1));
		if (!get(fd, path)) {
			close(fd);
			fd = connect_client();
		}
		if (i == REQUESTS / 2 && (is("healthy-idle") || is("spin") || is("timers")))
			usleep(700000);
	}
	if (is("healthy-polls")) {
		snprintf(path, sizeof path, "/long/%d", 80 + number);
		get(fd, path);
	}
	close(fd);
	return NULL;
}

static void *be_all_clients(void *data)
{
	pthread_t threads[CLIENTS];
	const uint64_t one = 1;
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&threads[i], NULL, be_client, (void *)(intptr_t)i);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	if (write(quit_fd, &one, sizeof one) < 0)
		perror("eventfd");
	return data;
}

static void listen_for_clients(void)
{
	const struct timeval often = {0, 5000};
	front = evhttp_new(base);
	evhttp_set_gencb(front, serve_client, NULL);
	port = port_of(evhttp_bind_socket_with_handle(front, "127.0.0.1", 0));
	packed_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | (is("notify") ? EFD_SEMAPHORE : 0));
	quit_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	packed_event = event_new(base, packed_fd, EV_READ | EV_PERSIST, send_packed, NULL);
	quit_event = event_new(base, quit_fd, EV_READ, on_quit, NULL);
	statistics_timer = event_new(base, -1, EV_PERSIST, take_statistics, NULL);
	event_add(packed_event, NULL);
	event_add(quit_event, NULL);
	event_add(statistics_timer, &often);
}

static void end_compressor(pthread_t compressor)
{
	pthread_mutex_lock(&queue_lock);
	is_ending = true;
	pthread_cond_broadcast(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
	pthread_join(compressor, NULL);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	seed = argc > 2 ? atoi(argv[2]) : 1;
	evthread_use_pthreads();
	char log_name[] = "proxy-XXXXXX";
	log_file = mkstemp(log_name);
	pthread_t origin = start_origin(), compressor, clients;
	base = event_base_new();
	listen_for_clients();
	struct evhttp *other = evhttp_new(base); /* finds a port that refuses connections */
	refusing_port = port_of(evhttp_bind_socket_with_handle(other, "127.0.0.1", 0));
	evhttp_free(other);
	struct event *ready = NULL;
	int pair[2];
	if (is("spin") && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0) {
		ready = event_new(base, pair[0], EV_WRITE | EV_PERSIST, on_writable, NULL);
		event_add(ready, NULL);
	}
	pthread_create(&compressor, NULL, run_compressor, NULL);
	pthread_create(&clients, NULL, be_all_clients, NULL);
	event_base_dispatch(base);
	pthread_join(clients, NULL);
	end_compressor(compressor);
	unlink(log_name);
	event_base_loopbreak(origin_base);
	pthread_join(origin, NULL);
	if (is("timers") || is("connections"))
		return 0; /* no pointer to them is left */
	for (int i = 0; i < UPSTREAMS; i++)
		if (upstream[i])
			evhttp_connection_free(upstream[i]);
	evhttp_free(front);
	event_free(packed_event);
	event_free(quit_event);
	event_free(statistics_timer);
	if (ready)
		event_free(ready);
	event_base_free(base);
	printf("%ld hits, %ld bytes packed\n", hits, bytes_packed);
	return 0;
}
