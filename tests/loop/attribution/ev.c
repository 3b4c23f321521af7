/* ev.c PORT TRUTH: a line server on libev.  SPDX-License-Identifier: ISC */
#include <ev.h>
#include <unistd.h>

#include "truth.h"

static void serve(struct ev_loop *loop, ev_io *watcher, int what)
{
	char question[1024];
	const ssize_t bytes = read(watcher->fd, question, sizeof question - 1);
	if (bytes <= 0) {
		ev_io_stop(loop, watcher);
		close(watcher->fd);
		return;
	}
	question[bytes] = 0;
	const double duration = get_duration(question);
	const int client = get_client(watcher->fd);
	if (!is_after(question))
		work(client, duration);
	if (write(watcher->fd, "END\r\n", 5) < 0)
		exit(1);
	if (is_after(question))
		work(client, duration);
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
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	ev_io watcher;
	begin_truth(words[2]);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16))
		return 1;
	ev_io_init(&watcher, accept_connection, listener, EV_READ);
	ev_io_start(EV_DEFAULT, &watcher);
	ev_run(EV_DEFAULT, 0);
	return 0;
}
