/* servers.c keep-alive|udp REQUESTS: typical servers without a runtime, recorded by hand; their unrecorded clients are in the
 * same process.
 *
 * keep-alive: 12 connections, each with one request after another; each request gets its response some iterations of the loop
 * after its read.  udp: one socket; each query asks another server, sometimes twice, and some are answered at once.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/record.h>

enum { CONNECTIONS = 12, QUERIES = 64 };

static uint64_t dice = 1;

static uint32_t below(uint32_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(dice >> 33) % n;
}

static void must(bool truth, const char *what)
{
	if (!truth) {
		perror(what);
		exit(1);
	}
}

static void wait_for(struct pollfd *fds, nfds_t count, bool busy)
{
	weft_idle(WEFT_IDLE_WAIT);
	must(poll(fds, count, busy ? 0 : 1000) >= 0, "poll");
}

/* ---- Connections that are kept ---- */

struct connection {
	int client, server, turns; /* number of iterations until the response, or 0 without a request */
	weft_id self, read, request, file;
};

static void read_next(struct connection *c)
{
	c->read = WEFT_CREATE_BY(c->self, WEFT_KIND_STREAM_READ);
	weft_await(c->self, c->read);
}

static void take_request(struct connection *c)
{
	char bytes[64];
	must(read(c->server, bytes, sizeof bytes) > 0, "read");
	weft_resolve(WEFT_SYSTEM_ID, c->read);
	weft_read(c->self, c->read);
	c->request = WEFT_CREATE(WEFT_KIND_REQUEST);
	WEFT_LABEL(c->request, "GET /");
	c->file = WEFT_CREATE_BY(c->request, WEFT_KIND_FS);
	weft_await(c->request, c->file);
	c->turns = 1 + (int)below(5);
}

static void answer(struct connection *c)
{
	weft_resolve(WEFT_SYSTEM_ID, c->file);
	weft_read(c->request, c->file);
	weft_id sent = WEFT_CREATE(WEFT_KIND_STREAM_WRITE);
	must(write(c->server, "200", 3) == 3, "write");
	weft_resolve(WEFT_SYSTEM_ID, sent);
	weft_resolve(c->request, c->request);
	weft_run(c->self);
	read_next(c);
}

static void keep_alive(int requests)
{
	struct connection connections[CONNECTIONS];
	struct pollfd fds[2 * CONNECTIONS];
	weft_id listener = WEFT_CREATE_BY(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN);
	for (int i = 0; i < CONNECTIONS; i++) {
		int ends[2];
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
		struct connection *c = &connections[i];
		*c = (struct connection){.client = ends[0], .server = ends[1]};
		c->self = WEFT_CREATE_BY(listener, WEFT_KIND_CONNECTION);
		weft_run(c->self);
		read_next(c);
		fds[2 * i] = (struct pollfd){.fd = ends[0], .events = POLLIN};
		fds[2 * i + 1] = (struct pollfd){.fd = ends[1], .events = POLLIN};
		must(write(c->client, "GET", 3) == 3, "write");
	}
	for (int answered = 0; answered < requests;) {
		bool busy = false;
		for (int i = 0; i < CONNECTIONS; i++)
			busy |= connections[i].turns > 0;
		wait_for(fds, 2 * CONNECTIONS, busy);
		for (int i = 0; i < CONNECTIONS; i++) {
			struct connection *c = &connections[i];
			char bytes[64];
			if (c->turns > 0 && --c->turns == 0)
				answer(c);
			if (fds[2 * i + 1].revents)
				take_request(c);
			if (fds[2 * i].revents) {
				answered++;
				must(read(c->client, bytes, sizeof bytes) > 0 && write(c->client, "GET", 3) == 3, "the client");
			}
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		weft_resolve(listener, connections[i].self);
}

/* ---- Queries ---- */

struct query {
	bool pending;
	weft_id self, upstream, timer;
	struct sockaddr_in peer;
};

static int udp_socket(struct sockaddr_in *address)
{
	socklen_t size = sizeof *address;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	*address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	must(
	    fd >= 0 && bind(fd, (struct sockaddr *)address, size) == 0 && getsockname(fd, (struct sockaddr *)address, &size) == 0,
	    "socket");
	return fd;
}

static void send_byte(int fd, unsigned char byte, const struct sockaddr_in *to)
{
	must(sendto(fd, &byte, 1, 0, (const struct sockaddr *)to, sizeof *to) == 1, "sendto");
}

static int take_byte(int fd, struct sockaddr_in *from)
{
	unsigned char byte;
	socklen_t size = sizeof *from;
	return recvfrom(fd, &byte, 1, MSG_DONTWAIT, (struct sockaddr *)from, &size) == 1 ? byte : -1;
}

static void ask(struct query *q, int fd, unsigned char number, const struct sockaddr_in *upstream)
{
	q->upstream = WEFT_CREATE_BY(q->self, WEFT_KIND_GETADDRINFO);
	q->timer = WEFT_CREATE_BY(q->self, WEFT_KIND_TIMER);
	weft_await(q->self, q->upstream);
	send_byte(fd, number, upstream);
}

static void udp(int requests)
{
	struct sockaddr_in server_address, outward_address, upstream_address, client_address, from;
	int server = udp_socket(&server_address), outward = udp_socket(&outward_address);
	int upstream = udp_socket(&upstream_address), client = udp_socket(&client_address);
	struct query queries[QUERIES] = {{0}};
	struct pollfd fds[] = {{server, POLLIN, 0}, {outward, POLLIN, 0}, {upstream, POLLIN, 0}, {client, POLLIN, 0}};
	weft_id socket = WEFT_CREATE_BY(WEFT_SYSTEM_ID, WEFT_KIND_POLL);
	int number, waiting[QUERIES], count = 0, sent = 0, free_numbers[QUERIES], free_count = QUERIES;
	for (int i = 0; i < QUERIES; i++)
		free_numbers[i] = i;
	for (int answered = 0; answered < requests;) {
		for (int n = (int)below(8); n > 0 && free_count > 0 && sent < requests; n--, sent++)
			send_byte(client, (unsigned char)free_numbers[--free_count], &server_address);
		wait_for(fds, 4, count > 0 || free_count > 0);
		weft_run(socket);
		while ((number = take_byte(server, &from)) >= 0) {
			struct query *q = &queries[number];
			*q = (struct query){.pending = true, .peer = from, .self = WEFT_CREATE(WEFT_KIND_REQUEST)};
			weft_run(q->self);
			if (below(4) == 0) { /* the answer is cached */
				q->pending = false;
				weft_resolve(socket, q->self);
				send_byte(server, (unsigned char)number, &q->peer);
			} else {
				ask(q, outward, (unsigned char)number, &upstream_address);
			}
			weft_run(socket);
		}
		while ((number = take_byte(outward, &from)) >= 0) {
			struct query *q = &queries[number];
			weft_resolve(WEFT_SYSTEM_ID, q->upstream);
			weft_resolve(q->self, q->timer);
			weft_read(q->self, q->upstream);
			if (below(10) == 0) {
				ask(q, outward, (unsigned char)number, &upstream_address);
				continue;
			}
			weft_resolve(q->self, q->self);
			send_byte(server, (unsigned char)number, &q->peer);
		}
		/* The upstream server answers in any order. */
		while (count < QUERIES && (number = take_byte(upstream, &from)) >= 0)
			waiting[count++] = number;
		for (int n = (int)below(6); n > 0 && count > 0; n--) {
			int k = (int)below((uint32_t)count);
			send_byte(upstream, (unsigned char)waiting[k], &outward_address);
			waiting[k] = waiting[--count];
		}
		for (; (number = take_byte(client, &from)) >= 0; answered++)
			free_numbers[free_count++] = number;
	}
	weft_resolve(WEFT_SYSTEM_ID, socket);
}

int main(int argc, char **argv)
{
	must(argc == 3, "usage: servers keep-alive|udp REQUESTS");
	if (strcmp(argv[1], "udp") == 0)
		udp(atoi(argv[2]));
	else
		keep_alive(atoi(argv[2]));
	return 0;
}
