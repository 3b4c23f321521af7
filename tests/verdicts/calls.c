/* calls.c FAULT: functions that block a libuv loop or two threads; alarm() ends a program that hangs after 3 s.
 *
 *   usleep, system, pclose   a timer's callback makes this call in a function of its own
 *   nanosleep                a timer's callback calls a library, which makes this call
 *   plugin                   a library of the program's own starts the timer and makes the call
 *   computes                 a timer's callback uses the CPU for 300 ms
 *   order                    two threads take two locks in two orders
 *   pool                     the only thread of the pool waits for a semaphore that other work of the pool should post
 *   waitpid                  a loop on epoll gives a request to a thread, which waits for a child process
 *   talk                     a thread talks to the loop over a blocking socket; the loop answers eight times, then never
 *   held-up                  a loop on epoll answers two threads, and before one answer it waits for a child process
 *   zombies, waited-for      a thread starts ten child processes, and does not wait for them, or does
 *   writable                 a loop on epoll also watches a socket that is always writable, so it never sleeps, and serves a
 * timer
 *
 * SPDX-License-Identifier: ISC */
#include <netinet/in.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

void start_plugin(uv_loop_t *loop); /* plugin.c */

static const char *fault;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static uv_sem_t part_is_done;
static uv_work_t whole, part;

static volatile int calls; /* changed behind each call: a call at the end of a function may become a jump, without a return
			      address in the function */

static __attribute__((noinline)) void nap(void)
{
	usleep(300000);
	calls++;
}

static __attribute__((noinline)) void doze(void)
{
	uv_sleep(300);
	calls++;
}

static __attribute__((noinline)) void run_command(void)
{
	if (system("sleep 0.3"))
		abort();
}

static __attribute__((noinline)) void close_pipe(void)
{
	FILE *pipe = popen("sleep 0.3", "r");
	if (pipe)
		pclose(pipe);
	calls++;
}

static void compute(void)
{
	const uint64_t end_ns = uv_hrtime() + 300000000;
	while (uv_hrtime() < end_ns)
		continue;
}

static void on_timer(uv_timer_t *timer)
{
	if (!strcmp(fault, "computes"))
		compute();
	else if (!strcmp(fault, "usleep"))
		nap();
	else if (!strcmp(fault, "nanosleep"))
		doze();
	else if (!strcmp(fault, "system"))
		run_command();
	else
		close_pipe();
	uv_close((uv_handle_t *)timer, NULL);
}

static __attribute__((noinline)) void *write_pages(void *unused)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&second);
	return unused;
}

static __attribute__((noinline)) void read_pages(void)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&first);
	calls++;
}

static void do_part(uv_work_t *work)
{
	(void)work;
	uv_sem_post(&part_is_done);
}

static void on_done(uv_work_t *work, int status)
{
	(void)work;
	(void)status;
}

static __attribute__((noinline)) void do_whole(uv_work_t *work)
{
	(void)work;
	uv_sem_wait(&part_is_done);
	calls++;
}

static __attribute__((noinline)) void *wait_for_child(void *unused)
{
	const pid_t child = fork();
	if (child == 0) {
		execlp("sleep", "sleep", "4", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	calls++;
	return unused;
}

/* ---- A thread that talks to the loop over a blocking socket ---- */

enum { ANSWERED = 8 };

static struct sockaddr_in here = {.sin_family = AF_INET};
static uv_tcp_t server, client_end;
static char question[16];

static __attribute__((noinline)) void ask_for_pages(void *unused)
{
	char answer[16];
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)unused;
	if (connect(fd, (struct sockaddr *)&here, sizeof here))
		abort();
	for (;;)
		if (send(fd, "page of news\n", 13, 0) != 13 || recv(fd, answer, sizeof answer, 0) <= 0)
			abort();
}

static void give_question(uv_handle_t *handle, size_t size, uv_buf_t *into)
{
	(void)handle, (void)size;
	*into = uv_buf_init(question, sizeof question);
}

static void on_question(uv_stream_t *stream, ssize_t size, const uv_buf_t *data)
{
	static int count;
	uv_buf_t answer = uv_buf_init("news\n", 5);
	(void)data;
	if (size > 0 && ++count <= ANSWERED)
		uv_try_write(stream, &answer, 1);
}

static void on_client(uv_stream_t *stream, int status)
{
	(void)status;
	uv_tcp_init(stream->loop, &client_end);
	uv_accept(stream, (uv_stream_t *)&client_end);
	uv_read_start((uv_stream_t *)&client_end, give_question, on_question);
}

static int talk(void)
{
	int length = sizeof here;
	uv_thread_t thread;
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	uv_tcp_init(uv_default_loop(), &server);
	uv_tcp_bind(&server, (struct sockaddr *)&here, 0);
	uv_listen((uv_stream_t *)&server, 1, on_client);
	uv_tcp_getsockname(&server, (struct sockaddr *)&here, &length);
	uv_thread_create(&thread, ask_for_pages, NULL);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* ---- Child processes ---- */

extern char **environ;

static __attribute__((noinline)) void *start_children(void *unused)
{
	enum { CHILDREN = 10 };
	char *arguments[] = {"true", NULL}, byte;
	for (int i = 0; i < CHILDREN; i++) {
		int ends[2];
		pid_t child;
		if (pipe(ends) || posix_spawnp(&child, "true", NULL, NULL, arguments, environ))
			abort();
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0) /* read() returns 0 when the child has ended */
			continue;
		close(ends[0]);
		if (!strcmp(fault, "waited-for"))
			waitpid(child, NULL, 0);
	}
	usleep(100000);
	return unused;
}

static int run_children(void)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, start_children, NULL) || pthread_join(thread, NULL);
}

/* ---- A loop that never sleeps ---- */

static __attribute__((noinline)) int watch_output(void)
{
	enum { SERVED = 200 };
	const struct itimerspec often = {{0, 2000000}, {0, 2000000}};
	const int poller = epoll_create1(EPOLL_CLOEXEC), output = eventfd(0, EFD_CLOEXEC),
		  timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct epoll_event events[2] = {{.events = EPOLLOUT, .data.fd = output}, {.events = EPOLLIN, .data.fd = timer}};
	uint64_t times;
	timerfd_settime(timer, 0, &often, NULL);
	epoll_ctl(poller, EPOLL_CTL_ADD, output, &events[0]);
	epoll_ctl(poller, EPOLL_CTL_ADD, timer, &events[1]);
	for (int served = 0; served < SERVED;) {
		const int count = epoll_wait(poller, events, 2, -1);
		for (int i = 0; i < count; i++)
			if (events[i].data.fd == timer && read(timer, &times, sizeof times) > 0)
				served++;
	}
	return 0;
}

/* ---- A loop on epoll, and threads that ask it ---- */

enum { QUESTIONS = 40, HELD_UP = 30, CLIENTS = 2 };

static void *ask(void *address)
{
	char answer;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, address, sizeof(struct sockaddr_in)))
		abort();
	for (int i = 0; i < QUESTIONS; i++)
		if (send(fd, "add word\n", 9, 0) != 9 || recv(fd, &answer, 1, 0) < 0)
			abort();
	close(fd);
	return NULL;
}

/* Returns whether the client has asked its last question. */
static bool answer_client(int fd)
{
	static int count;
	pthread_t worker;
	if (recv(fd, question, sizeof question, 0) <= 0)
		return close(fd) == 0;
	if (!strcmp(fault, "waitpid"))
		return pthread_create(&worker, NULL, wait_for_child, NULL) != 0;
	if (++count == HELD_UP)
		run_command();
	return send(fd, "+", 1, 0) != 1;
}

static int serve(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event event = {.events = EPOLLIN};
	socklen_t length = sizeof address;
	const int poller = epoll_create1(EPOLL_CLOEXEC), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int count = strcmp(fault, "waitpid") ? CLIENTS : 1;
	pthread_t client;
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, CLIENTS) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		return 1;
	event.data.fd = listener;
	epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
	for (int i = 0; i < count; i++)
		pthread_create(&client, NULL, ask, &address);
	for (int left = count; left > 0 && epoll_wait(poller, &event, 1, -1) == 1;)
		if (event.data.fd == listener) {
			event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (answer_client(event.data.fd)) {
			left--;
		}
	return 0;
}

int main(int argc, char **argv)
{
	uv_timer_t timer;
	pthread_t writer;
	fault = argc > 1 ? argv[1] : "";
	alarm(3);
	if (!strcmp(fault, "waitpid") || !strcmp(fault, "held-up"))
		return serve();
	if (!strcmp(fault, "talk"))
		return talk();
	if (!strcmp(fault, "zombies") || !strcmp(fault, "waited-for"))
		return run_children();
	if (!strcmp(fault, "writable"))
		return watch_output();
	if (!strcmp(fault, "order")) {
		pthread_barrier_init(&both, NULL, 2);
		pthread_create(&writer, NULL, write_pages, NULL);
		read_pages();
	} else if (!strcmp(fault, "pool")) {
		setenv("UV_THREADPOOL_SIZE", "1", 1);
		uv_sem_init(&part_is_done, 0);
		uv_queue_work(uv_default_loop(), &whole, do_whole, on_done);
		uv_queue_work(uv_default_loop(), &part, do_part, on_done);
	} else if (!strcmp(fault, "plugin")) {
		start_plugin(uv_default_loop());
	} else {
		uv_timer_init(uv_default_loop(), &timer);
		uv_timer_start(&timer, on_timer, 1, 0);
	}
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
