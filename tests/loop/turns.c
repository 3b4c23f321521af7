/* turns.c FAULT: an event loop on epoll with a descriptor that is ready in each of 100,000 iterations.
 *
 *   closed    the other end has closed, and the program ignores the end of input
 *   writable  the program waits for space to write, and has nothing to write
 *   works     each iteration reads one byte
 *   stdio     each iteration reads by stdio, into a buffer of libc
 *
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS = 100000 };

static int is(const char *fault, const char *name)
{
	return !strcmp(fault, name);
}

static void run_loop(int poller, int fd, const char *fault)
{
	struct epoll_event ready;
	char byte;
	FILE *stream = fdopen(fd, "r");
	setvbuf(stream, NULL, _IONBF, 0);
	for (int i = 0; i < TURNS && epoll_wait(poller, &ready, 1, 1000) == 1; i++)
		if (is(fault, "stdio") ? fgetc(stream) == EOF : !is(fault, "writable") && read(fd, &byte, 1) < 0)
			return;
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "closed";
	static char bytes[TURNS];
	int pair[2], poller = epoll_create1(0), size = TURNS;
	struct epoll_event event = {.events = is(fault, "writable") ? EPOLLOUT : EPOLLIN};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size))
		return 1;
	epoll_ctl(poller, EPOLL_CTL_ADD, pair[1], &event);
	if ((is(fault, "works") || is(fault, "stdio")) && write(pair[0], bytes, TURNS) != TURNS)
		return 1;
	if (is(fault, "closed"))
		close(pair[0]);
	run_loop(poller, pair[1], fault);
	return 0;
}
