/* truth.h: lets a server of this folder write for which client it works.  SPDX-License-Identifier: ISC */
#ifndef TESTS_LOOP_TRUTH_H
#define TESTS_LOOP_TRUTH_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static FILE *truth;

static inline long long get_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* The file's buffer holds all that is written, so that a server writes to no descriptor before its end. */
static inline void begin_truth(const char *path)
{
	truth = fopen(path, "w");
	if (!truth || setvbuf(truth, NULL, _IOFBF, 1 << 24))
		exit(1);
}

static inline int get_client(int fd)
{
	struct sockaddr_in peer = {0};
	socklen_t size = sizeof peer;
	getpeername(fd, (struct sockaddr *)(void *)&peer, &size);
	return ntohs(peer.sin_port);
}

static inline void work(int client, double microseconds)
{
	const long long begin = get_now_ns();
	while ((double)(get_now_ns() - begin) < 1000 * microseconds)
		;
	fprintf(truth, "%d %lld %lld\n", client, begin, get_now_ns());
}

/* Returns the duration in a question "get WAY/MICROSECONDS". */
static inline double get_duration(const char *question)
{
	const char *slash = strchr(question, '/');
	if (!strncmp(question, "get end", 7)) {
		fclose(truth);
		_Exit(0);
	}
	return slash ? atof(slash + 1) : 0;
}

static inline int is_after(const char *question)
{
	return !strncmp(question, "get after", 9);
}

#endif
