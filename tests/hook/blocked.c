/* blocked.c: threads that are blocked in a read or a write until a signal ends the program.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int log_pipe[2], sockets[2], whole_pipe[2];
static char block[300000];

static void *write_lines(void *data)
{
	static const char line[] = "a line that nobody reads\n";
	while (write(log_pipe[1], line, sizeof line - 1) > 0)
		;
	return data;
}

static void *send_pieces(void *data)
{
	struct iovec pieces[] = {{block, 100}, {block, 5000}};
	while (writev(sockets[0], pieces, 2) > 0)
		;
	return data;
}

static void *write_at_once(void *data)
{
	if (write(whole_pipe[1], block, sizeof block) < 0)
		abort();
	return data;
}

/* The socket that is read has the number of a file that was read before. */
int main(void)
{
	void *(*const routines[])(void *) = {write_lines, send_pieces, write_at_once};
	char byte;
	int pair[2];
	const int file = open("/etc/passwd", O_RDONLY);
	if (file < 0 || read(file, &byte, 1) != 1 || close(file) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pair[0] != file)
		return 1;
	if (pipe(log_pipe) || pipe(whole_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, routines[i], NULL))
			return 1;
	}
	alarm(3);
	return (int)recv(pair[0], &byte, 1, 0);
}
