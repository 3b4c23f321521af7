/* parts.c MODE: a server and a client with blocking sockets, each on a thread.  After eight answers, the client gets a part of an
 * answer and waits for the rest (part), gets a whole answer and sleeps (whole), or asks for an answer that takes long (slow).  In
 * two modes the client writes 24 questions of two lines each and ends: each line (lines) or both (pairs) with one call.  The
 * program ends after 3 s. SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WHOLE = 8, SECONDS = 3, QUESTIONS = 24 };

static const char *mode;
static int listener;

static void *serve(void *unused)
{
	const int fd = accept(listener, NULL, NULL);
	char line[16];
	for (size_t length = 0; !strcmp(mode, "lines") || !strcmp(mode, "pairs");) {
		const ssize_t n = recv(fd, line + length, sizeof line - length, 0);
		if (n <= 0 || ((length += (size_t)n) == 10 && send(fd, "found\n", 6, MSG_NOSIGNAL) < 0))
			return unused;
		length %= 10;
	}
	for (int i = 0; recv(fd, line, sizeof line, 0) > 0; i++) {
		if (i == WHOLE && !strcmp(mode, "slow"))
			sleep(2 * SECONDS);
		const int is_part = i == WHOLE && !strcmp(mode, "part");
		if (send(fd, "found\n", is_part ? 3 : 6, MSG_NOSIGNAL) < 0)
			break;
	}
	return unused;
}

static void *ask(void *address)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	char line[64];
	if (connect(fd, address, sizeof(struct sockaddr_in)) != 0)
		return NULL;
	for (int i = 0; i < QUESTIONS && (!strcmp(mode, "lines") || !strcmp(mode, "pairs")); i++) {
		const size_t size = !strcmp(mode, "lines") ? 5 : 10;
		for (size_t sent = 0; sent < 10; sent += size)
			if (send(fd, &"find\nname\n"[sent], size, MSG_NOSIGNAL) < 0)
				return NULL;
		if (recv(fd, line, sizeof line, 0) <= 0 || i == QUESTIONS - 1)
			exit(0);
	}
	for (int i = 0; i <= WHOLE; i++) {
		size_t length = 0;
		usleep(1000);
		if (send(fd, "find\n", 5, MSG_NOSIGNAL) < 0)
			break;
		for (ssize_t n; length < 6 && (n = recv(fd, line, sizeof line - length, 0)) > 0;)
			length += (size_t)n;
	}
	sleep(2 * SECONDS);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	pthread_t threads[2];
	mode = argc > 1 ? argv[1] : "whole";
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		return 1;
	pthread_create(&threads[0], NULL, serve, NULL);
	pthread_create(&threads[1], NULL, ask, &address);
	sleep(SECONDS);
	return 0;
}
