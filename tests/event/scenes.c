/* scenes.c: small programs of libevent.  Each is a function; its name is the argument.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct event_base *base;

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	getsockname(fd, (struct sockaddr *)&address, &size);
	return ntohs(address.sin_port);
}

/* ---- timers: one that repeats, one that adds itself again, one that is deleted; and a callback that blocks ---- */

static struct event again, deleted;
static int repeats, adds;

static void repeat(int fd, short what, void *data)
{
	if (++repeats == 5)
		event_del(data);
}

static void add_again(int fd, short what, void *data)
{
	usleep(2000);
	if (++adds < 4)
		evtimer_add(&again, &(struct timeval){.tv_usec = 10000});
}

static void finalized(struct event *event, void *data)
{
	puts("finalized");
}

static int timers(void)
{
	struct event *every = event_new(base, -1, EV_PERSIST, repeat, event_self_cbarg());
	evtimer_add(every, &(struct timeval){.tv_usec = 20000});
	evtimer_assign(&again, base, add_again, NULL);
	evtimer_add(&again, &(struct timeval){.tv_usec = 10000});
	evtimer_assign(&deleted, base, add_again, NULL);
	evtimer_add(&deleted, &(struct timeval){.tv_sec = 100});
	evtimer_del(&deleted);
	struct event *last = event_new(base, -1, 0, add_again, NULL);
	evtimer_add(last, &(struct timeval){.tv_sec = 200});
	event_free_finalize(0, last, finalized);
	event_base_dispatch(base);
	event_callback_fn assigned;
	event_get_assignment(every, NULL, NULL, NULL, &assigned, NULL);
	int right = event_get_callback(every) == repeat && event_get_callback(&again) == add_again && assigned == repeat;
	event_free(every);
	printf("%d %d %s\n", repeats, adds, right ? "its own callbacks" : "somebody else's callbacks");
	return 0;
}

/* ---- spins: a timer with timeout 0, and a file descriptor that is never read ---- */

static int turns;

static void zero(int fd, short what, void *data)
{
	if (++turns < 100000)
		evtimer_add(data, &(struct timeval){0});
}

static int spin_timer(void)
{
	struct event *timer = evtimer_new(base, zero, event_self_cbarg());
	evtimer_add(timer, &(struct timeval){0});
	event_base_dispatch(base);
	printf("%d\n", turns);
	event_free(timer);
	return 0;
}

/* An event that activates itself in its callback. */
static void activate_again(int fd, short what, void *data)
{
	if (++turns < 100000)
		event_active(data, EV_TIMEOUT, 0);
}

static int spin_active(void)
{
	struct event *event = evtimer_new(base, activate_again, event_self_cbarg());
	event_active(event, EV_TIMEOUT, 0);
	event_base_dispatch(base);
	printf("%d\n", turns);
	event_free(event);
	return 0;
}

static void ignore(int fd, short what, void *data)
{
	if (++turns == 100000)
		event_del(data);
}

static int spin_fd(void)
{
	int pipes[2];
	if (pipe(pipes) || write(pipes[1], "unread", 6) != 6)
		return 1;
	struct event *event = event_new(base, pipes[0], EV_READ | EV_PERSIST, ignore, event_self_cbarg());
	event_add(event, NULL);
	event_base_dispatch(base);
	printf("%d\n", turns);
	event_free(event);
	return 0;
}

/* A file descriptor with more input each time is work, not a spin. */
static void take(int fd, short what, void *data)
{
	char bytes[16];
	if (read(fd, bytes, sizeof bytes) <= 0)
		event_del(data);
	turns++;
}

static void *feed(void *data)
{
	static char bytes[16 * 1024];
	for (int i = 0; i < 40; i++)
		if (write(*(int *)data, bytes, sizeof bytes) != sizeof bytes)
			break;
	close(*(int *)data);
	return NULL;
}

static int load(void)
{
	int pipes[2];
	pthread_t feeder;
	if (pipe(pipes))
		return 1;
	struct event *event = event_new(base, pipes[0], EV_READ | EV_PERSIST, take, event_self_cbarg());
	event_add(event, NULL);
	pthread_create(&feeder, NULL, feed, &pipes[1]);
	event_base_dispatch(base);
	pthread_join(feeder, NULL);
	printf("%d\n", turns);
	event_free(event);
	return 0;
}

/* ---- buffers: an echo server and two clients ---- */

static struct evconnlistener *listener;
static int open_clients = 2;

static void echo(struct bufferevent *buffer, void *data)
{
	bufferevent_write_buffer(buffer, bufferevent_get_input(buffer));
}

static void peer_state(struct bufferevent *buffer, short what, void *data)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(buffer);
}

static void accepted(struct evconnlistener *from, int fd, struct sockaddr *address, int size, void *data)
{
	struct bufferevent *buffer = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(buffer, echo, NULL, peer_state, NULL);
	bufferevent_enable(buffer, EV_READ | EV_WRITE);
}

static void answered(struct bufferevent *buffer, void *data)
{
	if (evbuffer_get_length(bufferevent_get_input(buffer)) < 5)
		return;
	bufferevent_free(buffer);
	if (--open_clients == 0)
		evconnlistener_free(listener);
}

static void client_state(struct bufferevent *buffer, short what, void *data)
{
	if (what & BEV_EVENT_CONNECTED)
		bufferevent_write(buffer, "hello", 5);
	if (what & BEV_EVENT_ERROR) {
		puts("refused");
		bufferevent_free(buffer);
	}
}

static struct bufferevent *connect_to(struct sockaddr_in address)
{
	struct bufferevent *buffer = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(buffer, answered, NULL, client_state, NULL);
	bufferevent_enable(buffer, EV_READ | EV_WRITE);
	bufferevent_socket_connect(buffer, (struct sockaddr *)&address, sizeof address);
	return buffer;
}

static int buffers(void)
{
	struct sockaddr_in address = loopback(0);
	listener =
	    evconnlistener_new_bind(base, accepted, NULL, LEV_OPT_CLOSE_ON_FREE, 8, (struct sockaddr *)&address, sizeof address);
	address = loopback(port_of(evconnlistener_get_fd(listener)));
	for (int i = 0; i < open_clients; i++)
		connect_to(address);
	connect_to(loopback(1));
	event_base_dispatch(base);
	puts("done");
	return 0;
}

/* ---- http: a server that answers one request at once and another later, and the client of both ---- */

static struct evhttp *server;
static int unanswered = 2;

static void reply(int fd, short what, void *data)
{
	evhttp_send_reply(data, 200, "OK", NULL);
}

static void serve(struct evhttp_request *request, void *data)
{
	if (strcmp(evhttp_request_get_uri(request), "/later") == 0)
		event_base_once(base, -1, EV_TIMEOUT, reply, request, &(struct timeval){.tv_usec = 50000});
	else
		evhttp_send_error(request, 404, "No");
}

static void has_answer(struct evhttp_request *request, void *data)
{
	printf("%s %d\n", (const char *)data, evhttp_request_get_response_code(request));
	if (--unanswered == 0)
		event_base_loopbreak(base);
}

static int http(void)
{
	server = evhttp_new(base);
	evhttp_set_gencb(server, serve, NULL);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
	int port = port_of(evhttp_bound_socket_get_fd(bound));
	static const char *const paths[] = {"/now", "/later"};
	for (int i = 0; i < 2; i++) {
		struct evhttp_connection *connection = evhttp_connection_base_new(base, NULL, "127.0.0.1", (unsigned short)port);
		evhttp_make_request(connection, evhttp_request_new(has_answer, (void *)paths[i]), EVHTTP_REQ_GET, paths[i]);
	}
	event_base_dispatch(base);
	evhttp_free(server);
	return 0;
}

/* ---- late: a client whose requests time out, one after the other; libevent calls the callbacks without a request ---- */

enum { LATE_REQUESTS = 12 };

static struct evhttp_connection *to_late;

static void reply_late(struct evhttp_request *request, void *data)
{
	event_base_once(base, -1, EV_TIMEOUT, reply, request, &(struct timeval){.tv_usec = 60000});
}

static void ask_late(void);

static void has_no_answer(struct evhttp_request *request, void *data)
{
	static int calls;
	printf("%d %s\n", ++calls, request ? "answered" : "no answer");
	if (calls < LATE_REQUESTS)
		ask_late();
	else
		event_base_loopbreak(base);
}

static void ask_late(void)
{
	evhttp_make_request(to_late, evhttp_request_new(has_no_answer, NULL), EVHTTP_REQ_GET, "/late");
}

static int late(void)
{
	server = evhttp_new(base);
	evhttp_set_gencb(server, reply_late, NULL);
	const int fd = evhttp_bound_socket_get_fd(evhttp_bind_socket_with_handle(server, "127.0.0.1", 0));
	to_late = evhttp_connection_base_new(base, NULL, "127.0.0.1", (unsigned short)port_of(fd));
	evhttp_connection_set_timeout_tv(to_late, &(struct timeval){.tv_usec = 30000});
	ask_late();
	event_base_dispatch(base);
	return 0;
}

/* ---- silent: clients without a callback for events, which is allowed ---- */

static struct sockaddr_in to_silent;

static void open_silent(void);

static void silent_answered(struct bufferevent *buffer, void *data)
{
	static int left = 40;
	bufferevent_free(buffer);
	if (--left > 0)
		open_silent();
	else
		evconnlistener_free(listener);
}

static void open_silent(void)
{
	struct bufferevent *buffer = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(buffer, silent_answered, NULL, NULL, NULL);
	bufferevent_enable(buffer, EV_READ | EV_WRITE);
	bufferevent_write(buffer, "hello", 5);
	bufferevent_socket_connect(buffer, (struct sockaddr *)&to_silent, sizeof to_silent);
}

static int silent(void)
{
	to_silent = loopback(0);
	listener = evconnlistener_new_bind(
	    base, accepted, NULL, LEV_OPT_CLOSE_ON_FREE, 8, (struct sockaddr *)&to_silent, sizeof to_silent);
	to_silent = loopback(port_of(evconnlistener_get_fd(listener)));
	open_silent();
	event_base_dispatch(base);
	puts("done");
	return 0;
}

/* ---- torture: events are freed and assigned again in callbacks, on several OS threads that wake each other ---- */

enum { THREADS = 8, ROUNDS = 500, EVENTS = 16 };

struct party {
	struct event_base *base;
	struct event events[EVENTS], *woken;
	struct party *next;
	int rounds;
};

static struct party parties[THREADS];

static void freed(int fd, short what, void *data)
{
	struct event **self = data;
	event_free(*self);
	free(self);
}

static void turn(int fd, short what, void *data)
{
	struct party *p = data;
	struct event *event = &p->events[++p->rounds % EVENTS], **self = malloc(sizeof *self);
	event_active(p->next->woken, EV_READ, 1);
	*self = event_new(p->base, -1, 0, freed, self);
	event_active(*self, EV_TIMEOUT, 1);
	event_del(event);
	if (p->rounds >= ROUNDS)
		return;
	evtimer_assign(event, p->base, turn, p);
	evtimer_add(event, &(struct timeval){.tv_usec = p->rounds % 3});
}

static void woken(int fd, short what, void *data)
{
	struct party *p = data;
	if (p->rounds >= ROUNDS && !event_pending(&p->events[0], EV_TIMEOUT, NULL))
		event_base_loopexit(p->base, &(struct timeval){.tv_usec = 200000});
}

static void *party(void *data)
{
	struct party *p = data;
	turn(-1, 0, p);
	event_base_loop(p->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static int torture(void)
{
	pthread_t threads[THREADS];
	evthread_use_pthreads();
	for (int i = 0; i < THREADS; i++) {
		struct party *p = &parties[i];
		p->base = event_base_new();
		p->next = &parties[(i + 1) % THREADS];
		p->woken = event_new(p->base, -1, EV_PERSIST, woken, p);
		for (int j = 0; j < EVENTS; j++)
			evtimer_assign(&p->events[j], p->base, turn, p);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, party, &parties[i]);
	/* The main thread sends the last message to each thread, because the thread's neighbour may have ended already. */
	for (int i = 0; i < THREADS; i++) {
		while (__atomic_load_n(&parties[i].rounds, __ATOMIC_RELAXED) < ROUNDS)
			usleep(1000);
		event_active(parties[i].woken, EV_READ, 1);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		event_free(parties[i].woken);
		event_base_free(parties[i].base);
	}
	puts("done");
	return 0;
}

/* ---- forking: a signal handler that forks, while the program adds and deletes timers ---- */

enum { FORKS = 300 };

static volatile sig_atomic_t forked;

/* Forks again some time after the handler returns: on a busy machine a fork may take longer than any period. */
static void fork_soon(void)
{
	if (forked < FORKS)
		setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 500}, NULL);
}

static void fork_now(int number)
{
	int kept = errno;
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	forked++;
	fork_soon();
	errno = kept;
}

static int forking(void)
{
	signal(SIGALRM, fork_now);
	fork_soon();
	while (forked < FORKS)
		for (int i = 0; i < 100; i++) {
			evtimer_assign(&deleted, base, add_again, NULL);
			evtimer_add(&deleted, &(struct timeval){.tv_sec = 100});
			evtimer_del(&deleted);
			event_base_loop(base, EVLOOP_NONBLOCK);
		}
	puts("done");
	return 0;
}

/* ---- turned: a program that runs each iteration of its loop itself until its input has data or ends ---- */

static void hear(int fd, short what, void *data)
{
	char byte;
	*(int *)data = read(fd, &byte, 1) >= 0; /* read() also returns when the writer has closed its end */
}

static int turned(void)
{
	int heard = 0;
	struct event *input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, hear, &heard);
	struct event *never = evtimer_new(base, repeat, NULL);
	event_add(input, NULL);
	evtimer_add(never, &(struct timeval){.tv_sec = 100});
	puts("sleeps");
	fflush(stdout);
	while (!heard)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(never);
	event_free(input);
	event_base_free(base);
	puts("awake");
	return 0;
}

/* ---- opens: two events wait for sockets that are connected later, one of them by its first send ---- */

static struct sockaddr_in served;
static int finished;

static void serve_one(int fd, short what, void *data)
{
	char got[16];
	if (read(fd, got, sizeof got) > 0 && write(fd, "you too", 7) == 7)
		return;
	event_free(data);
	close(fd);
}

static void came(int fd, short what, void *data)
{
	event_add(event_new(base, accept(fd, NULL, NULL), EV_READ | EV_PERSIST, serve_one, event_self_cbarg()), NULL);
}

static void got_answer(int fd, short what, void *data)
{
	char got[16];
	printf("%zd bytes\n", read(fd, got, sizeof got));
	event_free(data);
	close(fd);
	if (++finished == 2)
		event_base_loopbreak(base);
}

static void has_room(int fd, short what, void *data)
{
	if (write(fd, "hello", 5) != 5)
		exit(1);
	event_free(data);
	event_add(event_new(base, fd, EV_READ, got_answer, event_self_cbarg()), NULL);
}

static int opens(void)
{
	int fd[3];
	for (int i = 0; i < 3; i++)
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	served = loopback(0);
	if (bind(fd[0], (struct sockaddr *)&served, sizeof served) || listen(fd[0], 5))
		return 1;
	served = loopback(port_of(fd[0]));
	event_add(event_new(base, fd[0], EV_READ | EV_PERSIST, came, NULL), NULL);
	for (int i = 1; i < 3; i++)
		event_add(event_new(base, fd[i], EV_WRITE, has_room, event_self_cbarg()), NULL);
	connect(fd[1], (struct sockaddr *)&served, sizeof served);
	/* Without a cookie of the server the first packet carries no data; some machines do not support TCP Fast Open. */
	if (sendto(fd[2], "", 0, MSG_FASTOPEN, (struct sockaddr *)&served, sizeof served) < 0 && errno == EOPNOTSUPP)
		connect(fd[2], (struct sockaddr *)&served, sizeof served);
	event_base_dispatch(base);
	return 0;
}

/* ---- datagrams: sent and read by each libc call; some are never read, or truncated ---- */

static void never_called(int fd, short what, void *data)
{
}

static int udp(const struct sockaddr_in *own, const struct sockaddr_in *peer)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if ((own && bind(fd, (const struct sockaddr *)own, sizeof *own)) ||
	    (peer && connect(fd, (const struct sockaddr *)peer, sizeof *peer)))
		exit(1);
	event_add(event_new(base, fd, EV_READ | EV_PERSIST, never_called, NULL), NULL);
	return fd;
}

static void say(const char *by, ssize_t result)
{
	printf("%s: %zd%s%s\n", by, result, result < 0 ? ", " : "", result < 0 ? strerror(errno) : "");
}

#define MESSAGE(PIECES, COUNT)                                                                                                   \
	{                                                                                                                        \
		.msg_hdr = {.msg_iov = (PIECES), .msg_iovlen = (COUNT) }                                                         \
	}

static void send_each(int fd, const struct sockaddr_in *to)
{
	struct iovec two[] = {{"wri", 3}, {"tev", 3}}, message[] = {{"sendmsg", 7}}, first[] = {{"first of two", 12}},
		     second[] = {{"second", 6}};
	struct mmsghdr one = MESSAGE(message, 1), both[] = {MESSAGE(first, 1), MESSAGE(second, 1)};
	say("send", send(fd, "send", 4, 0));
	say("write", write(fd, "write", 5));
	say("sendto", sendto(fd, "sendto", 6, 0, (const struct sockaddr *)to, sizeof *to));
	say("sendmsg", sendmsg(fd, &one.msg_hdr, 0));
	say("writev", writev(fd, two, 2));
	say("sendmmsg", sendmmsg(fd, both, 2, 0));
	say("send", send(fd, "", 0, 0));
	say("send", send(fd, "too long", 8, 0));
	say("send", send(fd, "much too long", 13, 0));
	say("send", send(fd, "nobody reads this", 17, 0));
}

static void read_each(int fd)
{
	char bytes[2][16];
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	struct iovec pieces[] = {{bytes[0], 2}, {bytes[1], 16}}, first[] = {{bytes[0], 16}}, second[] = {{bytes[1], 16}},
		     little[] = {{bytes[0], 4}};
	struct mmsghdr one = MESSAGE(pieces, 2), both[] = {MESSAGE(first, 1), MESSAGE(second, 1)}, cut = MESSAGE(little, 1);
	say("recv", recv(fd, bytes[0], 16, MSG_PEEK));
	say("recv", recv(fd, bytes[0], 16, 0));
	say("read", read(fd, bytes[0], 16));
	say("recvfrom", recvfrom(fd, bytes[0], 16, 0, (struct sockaddr *)&from, &size));
	say("recvmsg", recvmsg(fd, &one.msg_hdr, 0));
	say("readv", readv(fd, pieces, 2));
	say("recvmmsg", recvmmsg(fd, both, 2, 0, NULL));
	say("recv", recv(fd, bytes[0], 16, 0));
	say("recvmsg", recvmsg(fd, &cut.msg_hdr, 0));
	say("recv", recv(fd, bytes[0], 4, MSG_TRUNC));
	say("recvmsg", recvmsg(udp(NULL, NULL), &one.msg_hdr, 0));
}

/* Provokes ECONNREFUSED from the kernel. */
static void be_refused(const struct sockaddr_in *nobody)
{
	const int fd = udp(NULL, nobody);
	char bytes[16], control[256];
	struct iovec pieces[] = {{bytes, 16}};
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &(int){1}, sizeof(int));
	say("send", send(fd, "refused", 7, 0));
	say("recvmsg", recvmsg(fd, &message, MSG_ERRQUEUE));
}

static int datagrams(void)
{
	struct sockaddr_in own = loopback(0);
	const int reads = udp(&own, NULL), gone = udp(&own, NULL);
	const struct sockaddr_in to = loopback(port_of(reads)), nobody = loopback(port_of(gone));
	close(gone);
	send_each(udp(NULL, &to), &to);
	read_each(reads);
	be_refused(&nobody);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} scenes[] = {{"timers", timers}, {"spin_timer", spin_timer}, {"spin_active", spin_active}, {"spin_fd", spin_fd},
	    {"load", load}, {"buffers", buffers}, {"http", http}, {"torture", torture}, {"forking", forking}, {"turned", turned},
	    {"opens", opens}, {"datagrams", datagrams}, {"late", late}, {"silent", silent}};
	for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(argv[1], scenes[i].name)) {
			base = event_base_new();
			return scenes[i].run();
		}
	return 2;
}
