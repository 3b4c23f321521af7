/* pool.c PORT TRUTH: a line server whose loop reads, and whose worker computes and writes.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "truth.h"

enum { MAX_JOBS = 1024 };

static struct job {
	int fd;
	char question[64];
} jobs[MAX_JOBS];
static unsigned first, next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_jobs = PTHREAD_COND_INITIALIZER;

static void *compute(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (first == next)
			pthread_cond_wait(&has_jobs, &lock);
		const struct job job = jobs[first++ % MAX_JOBS];
		pthread_mutex_unlock(&lock);
		const double duration = get_duration(job.question);
		const int client = get_client(job.fd);
		if (!is_after(job.question))
			work(client, duration);
		if (write(job.fd, "END\r\n", 5) < 0)
			exit(1);
		if (is_after(job.question))
			work(client, duration);
	}
	return NULL;
}

static void add_job(int epoll, int fd)
{
	char question[64] = "";
	const ssize_t bytes = read(fd, question, sizeof question - 1);
	if (bytes <= 0) {
		close(fd);
		return;
	}
	pthread_mutex_lock(&lock);
	jobs[next % MAX_JOBS].fd = fd;
	memcpy(jobs[next++ % MAX_JOBS].question, question, sizeof question);
	pthread_cond_signal(&has_jobs);
	pthread_mutex_unlock(&lock);
}

int main(int count, char **words)
{
	struct sockaddr_in at = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[16];
	pthread_t thread;
	begin_truth(words[2]);
	if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 16) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event))
		return 1;
	pthread_create(&thread, NULL, compute, NULL);
	for (;;) {
		const int found = epoll_wait(epoll, ready, 16, -1);
		for (int i = 0; i < found; i++) {
			if (ready[i].data.fd != listener) {
				add_job(epoll, ready[i].data.fd);
				continue;
			}
			event.data.fd = accept(listener, NULL, NULL);
			epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
		}
	}
}
