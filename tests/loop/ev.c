/* ev.c: a small HTTP server on libev.  A request for "/block" blocks the loop, and one for "/end" ends the program.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void work(double seconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}

static void serve(struct ev_loop *loop, ev_io *watcher, int what)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
	char question[1024];
	const ssize_t bytes = read(watcher->fd, question, sizeof question - 1);
	if (bytes <= 0) {
		ev_io_stop(loop, watcher);
		close(watcher->fd);
		free(watcher);
		return;
	}
	question[bytes] = 0;
	if (strstr(question, "/block"))
		work(0.3);
	if (write(watcher->fd, answer, sizeof answer - 1) < 0 || strstr(question, "/end"))
		ev_break(loop, EVBREAK_ALL);
}

static void accept_connection(struct ev_loop *loop, ev_io *listener, int what)
{
	ev_io *watcher = malloc(sizeof *watcher);
	const int fd = accept(listener->fd, NULL, NULL);
	if (!watcher || fd < 0)
		exit(1);
	ev_io_init(watcher, serve, fd, EV_READ);
	ev_io_start(loop, watcher);
}

int main(int count, char **words)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)atoi(words[count - 1])),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ev_io watcher;
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16))
		return 1;
	ev_io_init(&watcher, accept_connection, listener, EV_READ);
	ev_io_start(EV_DEFAULT, &watcher);
	ev_run(EV_DEFAULT, 0);
	return 0;
}
