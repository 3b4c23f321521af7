/* odd.c: calls libc in unusual ways in a program with an event loop of its own, and prints each result.  The output is the same
 * with recording.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAY(call)                                                                                                                \
	do {                                                                                                                     \
		errno = 77;                                                                                                      \
		const long said = (long)(call);                                                                                  \
		printf("%s: %ld %d\n", #call, said, errno);                                                                      \
	} while (0)

static int left, right;

/* A signal handler that reads and writes in the middle of other calls. */
static void interrupt(int number)
{
	const int saved = errno;
	char bytes[64];
	if (write(left, "GET /signal HTTP/1.1\r\n\r\n", 24) > 0 && read(right, bytes, sizeof bytes) > 0 &&
	    write(right, "HTTP/1.1 200 OK\r\n\r\n", 19) > 0 && read(left, bytes, sizeof bytes) > 0)
		errno = saved;
	errno = saved;
}

static void listen_there(int *listener, struct sockaddr_in *at)
{
	socklen_t size = sizeof *at;
	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	*listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(*listener, (struct sockaddr *)at, sizeof *at) || listen(*listener, 8) ||
	    getsockname(*listener, (struct sockaddr *)at, &size))
		exit(1);
}

int main(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct sockaddr_in at;
	struct timeval soon = {.tv_usec = 1000};
	const struct timespec late = {.tv_nsec = 1000000};
	int pair[2], listener, poller = epoll_create1(0);
	char bytes[256];
	void *volatile bad = (void *)16;
	volatile int less = -1;
	SAY(epoll_wait(poller, &event, 1, 1)); /* the first wait, at which the loop begins */
	listen_there(&listener, &at);
	SAY(accept(listener, NULL, NULL));
	const int client = socket(AF_INET, SOCK_STREAM, 0);
	SAY(connect(client, bad, sizeof at));
	SAY(connect(client, (struct sockaddr *)&at, 3));
	SAY(connect(client, (struct sockaddr *)&at, sizeof at));
	SAY(connect(client, (struct sockaddr *)&at, sizeof at));
	const int server = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	SAY(write(client, bad, 10));
	SAY(writev(client, bad, 2));
	SAY(writev(client, (struct iovec[]){{bad, 4}, {"x", 1}}, 2));
	SAY(writev(client, NULL, 0));
	SAY(writev(client, (struct iovec[]){{"x", 1}}, less));
	SAY(sendmsg(client, bad, 0));
	SAY(sendmsg(client, &(struct msghdr){.msg_iov = bad, .msg_iovlen = 1}, 0));
	SAY(send(client, "", 0, 0));
	SAY(read(server, bytes, sizeof bytes));
	SAY(write(client, "GET /a HTTP/1.1\r\n\r\n", 19));
	SAY(poll(&(struct pollfd){.fd = server, .events = POLLIN}, 1, 1000));
	SAY(recv(server, bytes, 5, MSG_PEEK));
	SAY(read(server, bad, 10));
	SAY(readv(server, bad, 1));
	SAY(readv(server, (struct iovec[]){{bytes, 3}, {bytes + 3, 200}}, 2));
	SAY(read(server, bytes, 0));
	SAY(write(server, bad, 10));
	const int copy = dup(server);
	SAY(write(copy, "HTTP/1.1 200 OK\r\n\r\n", 19));
	SAY(close(copy));
	SAY(close(copy));
	SAY(dup2(server, 100));
	SAY(dup2(server, server));
	SAY(dup3(server, server, 0));
	SAY(close_range(100, 110, 0));
	SAY(write(100, "x", 1));
	SAY(recv(client, bytes, sizeof bytes, 0));
	SAY(close(server));
	SAY(recv(client, bytes, sizeof bytes, 0));
	signal(SIGPIPE, SIG_IGN);
	SAY(send(client, "GET /b HTTP/1.1\r\n\r\n", 19, MSG_NOSIGNAL) > 0);
	SAY(fsync(client));
	SAY(fdatasync(-1));
	SAY(close(client));
	/* Signals interrupt the calls of two ends of a connection in one process. */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	left = pair[0];
	right = pair[1];
	signal(SIGALRM, interrupt);
	struct itimerval often = {.it_interval.tv_usec = 150, .it_value.tv_usec = 150};
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 3000; i++) {
		const int fd = socket(AF_INET, SOCK_STREAM, 0);
		ssize_t got;
		if (connect(fd, (struct sockaddr *)&at, sizeof at))
			printf("connect: %d\n", errno);
		const int accepted = accept(listener, NULL, NULL);
		if (write(fd, "GET /c HTTP/1.1\r\n\r\n", 19) != 19)
			printf("write: %d\n", errno);
		while ((got = read(accepted, bytes, sizeof bytes)) < 0 && errno == EINTR)
			;
		if (got != 19 || write(accepted, "HTTP/1.1 200 OK\r\n\r\n", 19) != 19)
			printf("answer: %zd %d\n", got, errno);
		epoll_wait(poller, &event, 1, 0);
		close(accepted);
		close(fd);
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	SAY(epoll_wait(poller, bad, 1, 1));
	SAY(epoll_wait(-1, &event, 1, 1));
	SAY(select(0, NULL, NULL, NULL, &soon));
	SAY(pselect(-1, NULL, NULL, NULL, &late, NULL));
	SAY(ppoll(NULL, 0, &late, NULL));
	fflush(stdout);
	const pid_t child = fork();
	if (child == 0) {
		SAY(epoll_wait(poller, &event, 1, 1));
		SAY(write(left, "GET /d HTTP/1.1\r\n\r\n", 19));
		SAY(read(right, bytes, sizeof bytes));
		fflush(stdout);
		_exit(3);
	}
	int status;
	SAY(waitpid(child, &status, 0) == child);
	SAY(WEXITSTATUS(status));
	return 0;
}
