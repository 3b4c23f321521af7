/* server.c: `server [seccomp|traced|renamed|threads]` prints its port and returns each line that it gets.
 *
 * A thread allocates memory all the time; with `threads`, 198 more threads allocate now and then.  With `seccomp`, the process
 * has a filter of system calls.  With `traced`, a child is the server, and its parent traces it.  With `renamed`, the first
 * thread has another name than the program.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocate(void *data)
{
	for (;;) {
		for (int i = 0; i < 200; i++) {
			void *volatile memory = malloc((size_t)(1 + i) * 100);
			free(memory);
		}
		usleep(100);
	}
	return data;
}

static void *allocate_rarely(void *data)
{
	enum { PAUSE_US = 20000 };
	for (;;) {
		void *volatile memory = malloc(1000);
		free(memory);
		usleep(PAUSE_US);
	}
	return data;
}

static int listen_here(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	const int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		exit(1);
	printf("%d %d\n", ntohs(address.sin_port), (int)getpid());
	fflush(stdout);
	return listener;
}

static void return_lines(int fd)
{
	char line[512];
	const ssize_t got = read(fd, line, sizeof line);
	if (got <= 0)
		close(fd);
	else if (write(fd, line, (size_t)got) != got)
		exit(2);
}

static void serve(int listener)
{
	const int epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		/* The server ends at any error of epoll_wait(), as a program may. */
		if (epoll_wait(epoll, &event, 1, -1) < 0)
			exit(3);
		if (event.data.fd != listener) {
			return_lines(event.data.fd);
			continue;
		}
		event.data.fd = accept(listener, NULL, NULL);
		event.events = EPOLLIN;
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}

static void filter_calls(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &allow};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(4);
}

static void trace_child(void)
{
	int status;
	const pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL))
		exit(5);
	while (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		;
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc > 1 && !strcmp(argv[1], "seccomp"))
		filter_calls();
	if (argc > 1 && !strcmp(argv[1], "traced"))
		trace_child();
	if (argc > 1 && !strcmp(argv[1], "renamed"))
		prctl(PR_SET_NAME, "till-thread");
	if (pthread_create(&thread, NULL, allocate, NULL))
		return 6;
	for (int i = 0; argc > 1 && !strcmp(argv[1], "threads") && i < 198; i++)
		if (pthread_create(&thread, NULL, allocate_rarely, NULL))
			return 6;
	serve(listen_here());
}
