/* sleepers.c MODE: a program in which a thread sleeps for ever.  A mode whose name ends with "-fine" has no fault.  Modes:
 *
 *   edge      an edge-triggered epoll loop reads once per event, so that it leaves a part of a long request unread
 *   timer     a thread gives a timer to a sleeping libevent loop, which has no means to wake it
 *   again     a thread takes a read-write lock for reading a second time, while a writer waits
 *   pool      work in each thread of libuv's pool reads from a pipe that has no data, and a file request waits
 *   stop      a callback of SIGTERM closes the signal handle, but not a repeating timer, which keeps the loop running
 *   once      event_base_once() starts a callback that sleeps; the program then reads from a socket that FIONBIO made blocking
 * again, and ends
 *
 * A signal ends a hang after 1.5 s.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <uv.h>

static bool is_fine;

/* ---- edge ---- */

enum { LONG_REQUEST = 10000 };

static void *ask(void *port)
{
	static const int sizes[] = {1000, 1000, LONG_REQUEST, 1000};
	char request[LONG_REQUEST], answer[8];
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = *(in_port_t *)port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof address))
		exit(1);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(request, 'x', sizeof request);
		request[sizes[i] - 1] = '\n';
		if (write(fd, request, (size_t)sizes[i]) < sizes[i] || read(fd, answer, sizeof answer) <= 0)
			exit(1);
	}
	exit(0);
}

static void serve_request(int fd)
{
	char part[2048];
	ssize_t got;
	while ((got = read(fd, part, sizeof part)) > 0) {
		if (part[got - 1] == '\n' && write(fd, "ok\n", 3) < 3)
			return;
		if (!is_fine)
			return;
	}
}

static void run_edge(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t thread;
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
	bind(listener, (struct sockaddr *)&address, size);
	listen(listener, 8);
	getsockname(listener, (struct sockaddr *)&address, &size);
	event.data.fd = listener;
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	pthread_create(&thread, NULL, ask, &address.sin_port);
	while (epoll_wait(epoll, &event, 1, -1) >= 0) {
		if (event.data.fd != listener) {
			serve_request(event.data.fd);
			continue;
		}
		event = (struct epoll_event){.events = EPOLLIN | EPOLLET};
		event.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}

/* ---- timer ---- */

static struct event_base *base;

static void end_loop(evutil_socket_t fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
	event_base_loopbreak(base);
}

static void do_nothing(evutil_socket_t fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
}

static void *start_timer(void *unused)
{
	const struct timeval soon = {.tv_usec = 20000};
	usleep(50000); /* after this time, the loop sleeps */
	event_add(event_new(base, -1, 0, end_loop, NULL), &soon);
	return unused;
}

static void run_timer(void)
{
	const struct timeval minute = {.tv_sec = 60};
	pthread_t thread;
	if (is_fine)
		evthread_use_pthreads();
	base = event_base_new();
	event_add(event_new(base, -1, EV_PERSIST, do_nothing, NULL), &minute);
	pthread_create(&thread, NULL, start_timer, NULL);
	event_base_dispatch(base);
}

/* ---- again ---- */

static pthread_rwlock_t prices;
static int price = 1;

static int get_price(void)
{
	pthread_rwlock_rdlock(&prices);
	const int found = price;
	pthread_rwlock_unlock(&prices);
	return found;
}

static void *add_prices(void *sum)
{
	if (!is_fine)
		pthread_rwlock_rdlock(&prices);
	usleep(60000); /* after this time, the writer waits */
	*(int *)sum += get_price();
	if (!is_fine)
		pthread_rwlock_unlock(&prices);
	return sum;
}

static void *set_price(void *unused)
{
	usleep(20000);
	pthread_rwlock_wrlock(&prices);
	price++;
	pthread_rwlock_unlock(&prices);
	return unused;
}

static void run_again(void)
{
	pthread_rwlockattr_t writers_first;
	pthread_t reader, writer;
	int sum = 0;
	pthread_rwlockattr_init(&writers_first);
	pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&prices, &writers_first);
	pthread_create(&reader, NULL, add_prices, &sum);
	pthread_create(&writer, NULL, set_price, NULL);
	pthread_join(reader, NULL);
	pthread_join(writer, NULL);
}

/* ---- pool ---- */

enum { WORKERS = 4 };
static uv_work_t work[WORKERS];
static int pipes[WORKERS][2];

static void read_pipe(uv_work_t *request)
{
	char byte;
	if (read(pipes[request - work][0], &byte, 1) > 0)
		price++;
}

static void close_pipes(uv_fs_t *request)
{
	for (int i = 0; i < WORKERS; i++)
		close(pipes[i][1]);
	uv_fs_req_cleanup(request);
}

static void run_pool(void)
{
	uv_fs_t file;
	for (int i = 0; i < WORKERS; i++)
		if (pipe2(pipes[i], O_CLOEXEC))
			return;
	for (int i = 0; i < WORKERS - is_fine; i++)
		uv_queue_work(uv_default_loop(), &work[i], read_pipe, NULL);
	uv_fs_open(uv_default_loop(), &file, "/dev/null", O_RDONLY, 0, close_pipes);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* ---- stop ---- */

static uv_timer_t ticks;

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	if (price++ == 1)
		raise(SIGTERM);
}

static void on_stop(uv_signal_t *handle, int number)
{
	(void)number;
	uv_close((uv_handle_t *)handle, NULL);
	if (is_fine)
		uv_close((uv_handle_t *)&ticks, NULL);
}

static void run_stop(void)
{
	uv_signal_t handle;
	uv_signal_init(uv_default_loop(), &handle);
	uv_signal_start(&handle, on_stop, SIGTERM);
	uv_timer_init(uv_default_loop(), &ticks);
	uv_timer_start(&ticks, on_tick, 20, 300);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* ---- once ---- */

static void take_nap(evutil_socket_t fd, short what, void *data)
{
	(void)fd, (void)what, (void)data;
	usleep(150000);
	price++; /* behind the call, so that the compiler does not turn the call into a jump, without a return address in this
		    function */
}

static void run_once(void)
{
	const struct timeval soon = {.tv_usec = 20000}, limit = {.tv_usec = 100000};
	char byte;
	int both[2], off = 0;
	base = event_base_new();
	event_base_once(base, -1, EV_TIMEOUT, take_nap, NULL, &soon);
	event_base_dispatch(base);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both) || read(both[0], &byte, 1) >= 0)
		return;
	setsockopt(both[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	ioctl(both[0], FIONBIO, &off);
	if (read(both[0], &byte, 1) < 0)
		close(both[1]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"edge", run_edge}, {"timer", run_timer}, {"again", run_again}, {"pool", run_pool}, {"stop", run_stop},
	    {"once", run_once}};
	const char *mode = argc > 1 ? argv[1] : "";
	const size_t length = strcspn(mode, "-");
	const struct itimerval end = {.it_value = {.tv_sec = 1, .tv_usec = 500000}};
	setitimer(ITIMER_REAL, &end, NULL);
	is_fine = !strcmp(mode + length, "-fine");
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (strlen(modes[i].name) == length && !strncmp(mode, modes[i].name, length))
			modes[i].run();
	return 0;
}
