/* calls.c FAULT: functions that block a libuv loop, or each other; alarm() ends a hang after 3 s.
 *
 *   usleep, system, pclose   a timer's callback makes this call in a function of its own
 *   nanosleep                the same, but a library makes the call for it
 *   plugin                   a library of the program's own starts the timer and makes the call
 *   computes                 a timer's callback uses the CPU for 300 ms
 *   order                    two threads take two locks in two orders
 *   pool                     the only thread of the pool waits for what other work of the pool should post
 *   waitpid                  a loop on epoll gives a request to a thread, which waits for a child process
 *
 * SPDX-License-Identifier: ISC */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

void start_plugin(uv_loop_t *loop); /* plugin.c */

static const char *fault;
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static uv_sem_t part_is_done;
static uv_work_t whole, part;

static volatile int calls; /* a call that ends a function would have no place in it */

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

static void *ask(void *address)
{
	char answer;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, address, sizeof(struct sockaddr_in)) || send(fd, "add word\n", 9, 0) != 9 || recv(fd, &answer, 1, 0) > 0)
		abort();
	return NULL;
}

static int serve(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event event = {.events = EPOLLIN};
	socklen_t length = sizeof address;
	const int poller = epoll_create1(EPOLL_CLOEXEC), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t client, worker;
	char question[16];
	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		return 1;
	event.data.fd = listener;
	epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
	pthread_create(&client, NULL, ask, &address);
	while (epoll_wait(poller, &event, 1, -1) == 1)
		if (event.data.fd == listener) {
			event.data.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			epoll_ctl(poller, EPOLL_CTL_ADD, event.data.fd, &event);
		} else if (recv(event.data.fd, question, sizeof question, 0) > 0) {
			pthread_create(&worker, NULL, wait_for_child, NULL);
		}
	return 1;
}

int main(int argc, char **argv)
{
	uv_timer_t timer;
	pthread_t writer;
	fault = argc > 1 ? argv[1] : "";
	alarm(3);
	if (!strcmp(fault, "waitpid"))
		return serve();
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
