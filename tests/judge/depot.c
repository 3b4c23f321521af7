/* depot.c: small programs on epoll and threads, each with one fault; "healthy-FAULT" is the same program without the fault.
 *
 * Usage: judge-depot FAULT [SEED].  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST = 10000, MANY_CLIENTS = 30 };

static bool is_healthy;

static int connect_to(int port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
		exit(3);
	return fd;
}

static int listen_at(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 64))
		exit(3);
	getsockname(fd, (struct sockaddr *)&address, &size);
	*port = ntohs(address.sin_port);
	return fd;
}

static void watch(int epoll, int fd, unsigned events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* ---- fork: a child process waits for a lock that another thread of the parent held ---- */

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *write_journal(void *data)
{
	for (int i = 0; i < 2; i++) {
		pthread_mutex_lock(&journal);
		usleep(300000);
		pthread_mutex_unlock(&journal);
		usleep(50000);
	}
	return data;
}

static void add_to_journal(void)
{
	pthread_mutex_lock(&journal);
	pthread_mutex_unlock(&journal);
}

static void run_fork(void)
{
	pthread_t writer;
	pthread_create(&writer, NULL, write_journal, NULL);
	usleep(100000);
	pid_t child = fork();
	if (child == 0) {
		if (!is_healthy)
			add_to_journal();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	pthread_join(writer, NULL);
}

/* ---- flag: SIGTERM sets a variable that the loop does not read ---- */

static volatile sig_atomic_t is_ending;

static void on_end_signal(int number)
{
	(void)number;
	is_ending = 1;
}

static void run_flag(void)
{
	int port, listener = listen_at(&port), epoll = epoll_create1(0);
	struct epoll_event event;
	struct sigaction action = {.sa_handler = on_end_signal};
	sigaction(SIGTERM, &action, NULL);
	if (fork() == 0) {
		usleep(300000);
		kill(getppid(), SIGTERM);
		exit(0);
	}
	watch(epoll, listener, EPOLLIN);
	while (!is_healthy || !is_ending)
		epoll_wait(epoll, &event, 1, 100);
}

/* ---- edge: an edge-triggered descriptor is not read to its end ---- */

static bool read_request(int fd, size_t *got)
{
	char part[4096];
	ssize_t size;
	do {
		size = recv(fd, part, sizeof part, MSG_DONTWAIT);
		*got += size > 0 ? (size_t)size : 0;
	} while (is_healthy && size > 0);
	if (*got >= REQUEST) {
		send(fd, "stored", 6, MSG_NOSIGNAL);
		*got = 0;
	}
	return size > 0 || (size < 0 && errno == EAGAIN);
}

static void run_edge(void)
{
	int port, listener = listen_at(&port), epoll = epoll_create1(0);
	size_t got = 0;
	if (fork() == 0) {
		char request[REQUEST] = {0}, answer[8];
		int fd = connect_to(port);
		for (int i = 0; i < 3; i++) {
			send(fd, request, sizeof request, MSG_NOSIGNAL);
			recv(fd, answer, sizeof answer, 0);
		}
		exit(0);
	}
	watch(epoll, listener, EPOLLIN);
	for (bool is_open = true; is_open;) {
		struct epoll_event event;
		if (epoll_wait(epoll, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == listener)
			watch(epoll, accept(listener, NULL, NULL), EPOLLIN | EPOLLET);
		else
			is_open = read_request(event.data.fd, &got);
	}
}

/* ---- emfile: accept fails for ever, and the loop does not sleep ---- */

static void run_emfile(void)
{
	int port, listener = listen_at(&port), epoll = epoll_create1(0);
	struct rlimit few = {is_healthy ? 200 : 20, is_healthy ? 200 : 20};
	if (fork() == 0) {
		int fds[MANY_CLIENTS];
		for (int i = 0; i < MANY_CLIENTS; i++)
			fds[i] = connect_to(port);
		sleep(2);
		for (int i = 0; i < MANY_CLIENTS; i++)
			close(fds[i]);
		exit(0);
	}
	setrlimit(RLIMIT_NOFILE, &few);
	watch(epoll, listener, EPOLLIN);
	for (int open = 0, seen = 0; !seen || open;) {
		struct epoll_event event;
		if (epoll_wait(epoll, &event, 1, -1) < 1)
			continue;
		char byte;
		if (event.data.fd != listener) {
			if (recv(event.data.fd, &byte, 1, 0) <= 0) {
				close(event.data.fd);
				open--;
			}
			continue;
		}
		int fd = accept(listener, NULL, NULL);
		if (fd >= 0) {
			watch(epoll, fd, EPOLLIN);
			seen = 1;
			open++;
		}
	}
}

/* ---- rwlock: a reader wants to write and keeps its read lock ---- */

static pthread_rwlock_t catalog = PTHREAD_RWLOCK_INITIALIZER;

static void *look_up_article(void *data)
{
	for (int i = 0; i < 10; i++) {
		pthread_rwlock_rdlock(&catalog);
		usleep(1000);
		if (i == 5) {
			if (is_healthy)
				pthread_rwlock_unlock(&catalog);
			pthread_rwlock_wrlock(&catalog);
		}
		pthread_rwlock_unlock(&catalog);
		usleep(10000);
	}
	return data;
}

static void run_rwlock(void)
{
	pthread_t reader;
	pthread_create(&reader, NULL, look_up_article, NULL);
	pthread_join(reader, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} faults[] = {{"fork", run_fork}, {"flag", run_flag}, {"edge", run_edge}, {"emfile", run_emfile}, {"rwlock", run_rwlock}};
	const char *fault = argc > 1 ? argv[1] : "";
	is_healthy = !strncmp(fault, "healthy-", 8);
	fault += is_healthy ? 8 : 0;
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		if (!strcmp(fault, faults[i].name)) {
			faults[i].run();
			return 0;
		}
	return 2;
}
