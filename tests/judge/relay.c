/* relay FAULT SEED: passes messages between the members of channels, on libevent's bufferevents: a member logs in, publishes
 * some lines, of which each goes to all others of its channel, and leaves when it has heard its own last one.  A ticker counts
 * who is there; a pipe brings what an administrator wants.  The members are in the same process.  It knows nothing of weft; FAULT
 * is one everyday mistake, or "none".
 *
 * SPDX-License-Identifier: ISC */

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHANNELS = 2, MEMBERS = 48, AT_ONCE = 8, LINES = 3 };

struct session { /* at the relay */
	struct bufferevent *stream;
	int channel;
	struct event *idle;
	struct session *next;
};

struct member { /* at the other end */
	struct bufferevent *stream;
	int number, left, tries;
	struct event *again;
};

static const char *fault;
static struct event_base *base;
static struct session *channels[CHANNELS];
static struct sockaddr_in address, nobody;
static int begun, ended, published, admin[2];
static struct event *ticker, *administration;

static void begin_member(void);
static void connect_member(struct member *m);

static bool is(const char *name)
{
	return !strcmp(fault, name);
}

static void compute_for(int ms)
{
	struct timespec now, start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

/* ---- The relay ---- */

static void on_idle(evutil_socket_t fd, short what, void *data)
{
}

static void publish(struct session *from, const char *line)
{
	int number = atoi(line);
	published++;
	if (is("sleep") && published == 40)
		usleep(150000);
	if (is("compute") && published == 40)
		compute_for(150);
	if (is("null") && published == 40)
		from = NULL;
	for (struct session *s = channels[from->channel]; s; s = s->next)
		if (!is("forgotten") || number != 17 || s != from)
			evbuffer_add_printf(bufferevent_get_output(s->stream), "%s\n", line);
	if (is("timers")) { /* the one before is forgotten */
		from->idle = event_new(base, -1, 0, on_idle, from);
		event_add(from->idle, &(struct timeval){60, 0});
	}
}

static void on_line(struct bufferevent *stream, void *data)
{
	struct session *s = data;
	char *line;
	while ((line = evbuffer_readln(bufferevent_get_input(stream), NULL, EVBUFFER_EOL_LF))) {
		publish(s, line);
		free(line);
	}
}

static void on_gone(struct bufferevent *stream, short what, void *data)
{
	struct session *s = data;
	if (what & BEV_EVENT_CONNECTED)
		return;
	for (struct session **at = &channels[s->channel]; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			break;
		}
	if (is("leak"))
		return;
	if (!is("timers"))
		event_free(s->idle);
	bufferevent_free(s->stream);
	free(s);
}

static void on_accepted(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int size, void *data)
{
	struct session *s = calloc(1, sizeof *s);
	static int count;
	s->stream = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	s->channel = count++ % CHANNELS;
	s->next = channels[s->channel];
	channels[s->channel] = s;
	s->idle = event_new(base, -1, 0, on_idle, s);
	event_add(s->idle, &(struct timeval){60, 0});
	bufferevent_setcb(s->stream, on_line, NULL, on_gone, s);
	bufferevent_enable(s->stream, EV_READ | EV_WRITE);
}

static void on_tick(evutil_socket_t fd, short what, void *data)
{
	if (is("unread") && published >= 40)
		(void)!write(admin[1], "x", 1);
}

static void on_administration(evutil_socket_t fd, short what, void *data)
{
	char byte;
	if (!is("unread"))
		(void)!read(fd, &byte, 1);
}

/* ---- Members ---- */

static void say(struct member *m)
{
	evbuffer_add_printf(bufferevent_get_output(m->stream), "%d says %d\n", m->number, m->left);
}

static void leave(struct member *m)
{
	bufferevent_free(m->stream);
	if (m->again)
		event_free(m->again);
	free(m);
	if (++ended == MEMBERS)
		event_base_loopexit(base, NULL);
	else if (begun < MEMBERS)
		begin_member();
}

static void on_heard(struct bufferevent *stream, void *data)
{
	struct member *m = data;
	char *line;
	bool is_own = false;
	while ((line = evbuffer_readln(bufferevent_get_input(stream), NULL, EVBUFFER_EOL_LF))) {
		is_own |= atoi(line) == m->number;
		free(line);
	}
	if (is_own && --m->left == 0)
		leave(m);
	else if (is_own)
		say(m);
}

static void on_again(evutil_socket_t fd, short what, void *data)
{
	connect_member(data);
}

static void on_state(struct bufferevent *stream, short what, void *data)
{
	struct member *m = data;
	if (what & BEV_EVENT_CONNECTED) {
		say(m);
	} else if (what & BEV_EVENT_ERROR) {
		bufferevent_free(stream);
		if (!m->again)
			m->again = event_new(base, -1, 0, on_again, m);
		event_add(m->again, &(struct timeval){0, 2000});
	}
}

static void connect_member(struct member *m)
{
	bool is_refused = is("refused") && m->number == 17 && m->tries++ < 200;
	m->stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(m->stream, on_heard, NULL, on_state, m);
	bufferevent_enable(m->stream, EV_READ | EV_WRITE);
	const struct sockaddr_in *to = is_refused ? &nobody : &address;
	bufferevent_socket_connect(m->stream, (const struct sockaddr *)to, sizeof *to);
}

static void begin_member(void)
{
	struct member *m = calloc(1, sizeof *m);
	m->number = begun++;
	m->left = LINES;
	connect_member(m);
}

int main(int argc, char **argv)
{
	fault = argc > 1 ? argv[1] : "none";
	srand48(argc > 2 ? atol(argv[2]) : 1);
	base = event_base_new();
	address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	nobody = address;
	int deaf = socket(AF_INET, SOCK_STREAM, 0); /* it never listens */
	socklen_t size = sizeof address;
	bind(deaf, (struct sockaddr *)&nobody, size);
	getsockname(deaf, (struct sockaddr *)&nobody, &size);
	struct evconnlistener *listener = evconnlistener_new_bind(
	    base, on_accepted, NULL, LEV_OPT_CLOSE_ON_FREE, 16, (struct sockaddr *)&address, sizeof address);
	getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &size);
	(void)!pipe(admin);
	ticker = event_new(base, -1, EV_PERSIST, on_tick, NULL);
	event_add(ticker, &(struct timeval){0, 20000});
	administration = event_new(base, admin[0], EV_READ | EV_PERSIST, on_administration, NULL);
	event_add(administration, NULL);
	for (int i = 0; i < AT_ONCE; i++)
		begin_member();
	event_base_dispatch(base);
	printf("%d lines\n", published);
	return 0;
}
