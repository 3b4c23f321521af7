/* vault.c: a program that keeps a thing behind a lock, and may ask another such program, on another machine, for its thing.
 *
 * 	vault DIR HOST OFFSET_NS OWN-ADDRESS OTHER-ADDRESS ask|lend|deaf|free
 *
 * ask: takes its own lock, then asks the other program for its thing: two programs that do so deadlock.  lend: holds
 * its lock from the start and never releases it, so each request for its thing waits.  deaf: accepts connections, and never
 * reads the request.  free: answers.  OFFSET_NS is the error of the program's clock.  SIGTERM ends the program.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weft/record.h>

enum { PORT = 7778, MOST = 16 };

/* A connection, the promise that awaits its input, and the promise that handles the input. */
struct line {
	int fd;
	weft_id id, read, handler;
	struct weft_positions carried;
};

static struct line lines[MOST];
static struct pollfd polled[MOST + 1];
static int line_count;
static weft_id lock, task;
static bool is_locked;
static int64_t offset_ns;

static uint64_t wrong(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)((int64_t)now.tv_sec * 1000000000 + now.tv_nsec + offset_ns);
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	inet_pton(AF_INET, text, &at.sin_addr);
	return at;
}

static struct line *add_line(int fd, weft_id id, bool does_connect, bool does_read)
{
	struct line *line = &lines[line_count++];
	*line = (struct line){.fd = fd, .id = id};
	if (!weft_connection(id, fd, does_connect, &line->carried))
		return NULL;
	if (does_read) {
		line->read = weft_create(id, WEFT_KIND_STREAM_READ, NULL);
		weft_await(id, line->read);
	}
	return line;
}

static void say(struct line *line, const char *text)
{
	weft_sent(line->id, line->carried.sent += strlen(text));
	if (write(line->fd, text, strlen(text)) < 0)
		perror("write");
}

/* Handles a request for the thing, or its delivery; returns false if the connection is closed. */
static bool hear(struct line *line)
{
	char bytes[100];
	const ssize_t got = read(line->fd, bytes, sizeof bytes);
	if (got <= 0)
		return false;
	weft_received(line->id, line->carried.received += (uint64_t)got);
	weft_run(line->id);
	weft_resolve(line->id, line->read);
	weft_read(line->id, line->read);
	line->read = weft_create(line->id, WEFT_KIND_STREAM_READ, NULL);
	weft_await(line->id, line->read);
	if (!memcmp(bytes, "go", 2)) {
		weft_run(task);
		weft_resolve(task, task);
		return true;
	}
	line->handler = weft_create(line->id, WEFT_KIND_TASK, NULL);
	weft_label(line->handler, "hand over");
	weft_should_resolve(line->handler);
	if (is_locked) {
		weft_await(line->handler, lock);
	} else {
		say(line, "gold\n");
		weft_resolve(line->id, line->handler);
	}
	return true;
}

/* Takes the lock, and asks the other program once the lock is held. */
static bool ask(const char *whom)
{
	const struct sockaddr_in other = address_of(whom);
	const weft_id id = weft_create(task, WEFT_KIND_CONNECTION, NULL);
	int fd = -1;
	do {
		if (fd >= 0)
			close(fd);
		usleep(fd >= 0 ? 20000 : 0);
		fd = socket(AF_INET, SOCK_STREAM, 0);
	} while (connect(fd, (const struct sockaddr *)&other, sizeof other) && errno == ECONNREFUSED);
	struct line *line = add_line(fd, id, true, true);
	if (!line)
		return false;
	weft_label(id, whom);
	say(line, "give\n");
	weft_await(task, line->read);
	return true;
}

int main(int argc, char **argv)
{
	const int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	if (argc != 7)
		return 2;
	const struct sockaddr_in own = address_of(argv[4]);
	const bool asks = !strcmp(argv[6], "ask"), lends = !strcmp(argv[6], "lend"), is_deaf = !strcmp(argv[6], "deaf");
	offset_ns = strtoll(argv[3], NULL, 10);
	const struct weft_record_options options = {.directory = argv[1],
	    .mode = WEFT_RECORD_GROW,
	    .host = argv[2],
	    .clock = offset_ns ? wrong : NULL,
	    .clock_hz = offset_ns ? 1000000000 : 0};
	if (weft_start(&options) < 0) {
		fprintf(stderr, "%s\n", weft_start_error());
		return 1;
	}
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (const struct sockaddr *)&own, sizeof own) || listen(listener, MOST))
		return 1;
	sigset_t none, term;
	sigemptyset(&none);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, NULL);
	weft_label(lock, "vault");
	const weft_id listens = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, NULL);
	task = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, NULL);
	weft_label(task, asks ? "fetch" : lends ? "lent to a friend" : "rests");
	weft_run(task);
	is_locked = asks || lends;
	if (is_locked)
		weft_hold(task, lock);
	if (asks) /* the borrower may keep it */
		weft_should_resolve(task);
	if (asks && !ask(argv[5]))
		return 1;
	for (;;) {
		sigset_t come;
		for (int i = 0; i < line_count; i++)
			polled[i] = (struct pollfd){lines[i].fd, lines[i].read ? POLLIN : 0, 0};
		polled[line_count] = (struct pollfd){listener, POLLIN, 0};
		weft_idle(WEFT_IDLE_WAIT);
		poll(polled, (nfds_t)line_count + 1, 100);
		weft_resume(WEFT_SYSTEM_ID);
		sigpending(&come);
		if (sigismember(&come, SIGTERM))
			break;
		const int before = line_count;
		for (int i = 0; i < before; i++)
			if (polled[i].revents && !hear(&lines[i]))
				return 1;
		if (polled[before].revents && line_count < MOST) {
			weft_run(listens);
			const weft_id id = weft_create(listens, WEFT_KIND_CONNECTION, NULL);
			add_line(accept(listener, NULL, NULL), id, false, !is_deaf);
		}
	}
	weft_stop();
	return 0;
}
