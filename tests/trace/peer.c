/* peer.c: one of two programs that talk over TCP, whose clock is wrong as it is told.
 *
 *	peer DIR HOST OFFSET_NS DRIFT_PPM listen|connect ADDRESS PORT ROUNDS
 *
 * Every 20th message is a promise called "true N": the machine's own clock showed N then.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weft/record.h>

static int64_t offset_ns, drift_ppm;

static uint64_t true_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t wrong(void)
{
	const int64_t now_ns = (int64_t)true_ns();
	return (uint64_t)(now_ns + now_ns / 1000 * drift_ppm / 1000 + offset_ns);
}

static int connected(bool does_listen, const char *address, int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	inet_pton(AF_INET, address, &at.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (does_listen) {
		if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1))
			return -1;
		puts("listens");
		fflush(stdout);
		return accept(fd, NULL, NULL);
	}
	return connect(fd, (struct sockaddr *)&at, sizeof at) ? -1 : fd;
}

static void say_truth(void)
{
	char text[64];
	weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
	snprintf(text, sizeof text, "true %llu", (unsigned long long)true_ns());
	weft_label(id, text);
	weft_resolve(id, id);
}

int main(int argc, char **argv)
{
	char bytes[200] = {0};
	struct weft_positions carried;
	if (argc != 9)
		return 2;
	offset_ns = strtoll(argv[3], NULL, 10);
	drift_ppm = strtoll(argv[4], NULL, 10);
	const bool does_listen = !strcmp(argv[5], "listen");
	const int rounds = atoi(argv[8]);
	const struct weft_record_options options = {
	    .directory = argv[1], .mode = WEFT_RECORD_GROW, .clock = wrong, .clock_hz = 1000000000, .host = argv[2]};
	if (weft_start(&options) < 0) {
		fprintf(stderr, "%s\n", weft_start_error());
		return 1;
	}
	int fd = connected(does_listen, argv[6], atoi(argv[7]));
	weft_id id = WEFT_CREATE(WEFT_KIND_CONNECTION);
	if (fd < 0 || !weft_connection(id, fd, !does_listen, &carried))
		return 1;
	for (int i = 0; i < 2 * rounds; i++) {
		if (i % 20 == 0)
			say_truth();
		if ((i % 2 == 0) == does_listen) {
			ssize_t got = read(fd, bytes, sizeof bytes);
			if (got <= 0)
				break;
			weft_received(id, carried.received += (uint64_t)got);
		} else {
			const size_t size = 1 + (size_t)i % 100;
			if (i % 40 == 0)
				usleep(1000);
			weft_sent(id, carried.sent += size);
			if (write(fd, bytes, size) != (ssize_t)size)
				return 1;
		}
	}
	weft_stop();
	return 0;
}
