/* pool.c PORT: a server whose loop reads requests and hands them to worker threads, which send the responses.  GET /compute takes
 * 0.4 s of CPU time, GET /rest waits for 0.4 s, and GET /quit ends the server.
 *
 * SPDX-License-Identifier: ISC */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, MOST = 64, WORK_MS = 400 };

struct job {
	int fd;
	char text[128];
};

static struct job jobs[MOST];
static unsigned first, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;

static int64_t read_cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void compute(void)
{
	const int64_t end_ms = read_cpu_ms() + WORK_MS;
	for (volatile unsigned i = 1; i % 4096 || read_cpu_ms() < end_ms; i++)
		continue;
}

static void *work(void *unused)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	for (;;) {
		pthread_mutex_lock(&lock);
		while (first == last)
			pthread_cond_wait(&filled, &lock);
		struct job job = jobs[first++ % MOST];
		pthread_mutex_unlock(&lock);
		if (strstr(job.text, "/quit"))
			exit(0);
		if (strstr(job.text, "/compute"))
			compute();
		if (strstr(job.text, "/rest"))
			poll(NULL, 0, WORK_MS);
		if (write(job.fd, answer, sizeof answer - 1) < 0)
			exit(1);
	}
	return NULL;
}

static void give(int fd, const char *text)
{
	pthread_mutex_lock(&lock);
	struct job *job = &jobs[last++ % MOST];
	job->fd = fd;
	strcpy(job->text, text);
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[argc - 1]))};
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
	if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, MOST))
		return 1;
	watch(epoll, listener);
	for (int i = 0; i < WORKERS; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, NULL);
	}
	for (struct epoll_event event; epoll_wait(epoll, &event, 1, -1) == 1;) {
		struct job job = {.fd = event.data.fd};
		if (job.fd == listener) {
			watch(epoll, accept4(listener, NULL, NULL, SOCK_NONBLOCK));
			continue;
		}
		const ssize_t size = read(job.fd, job.text, sizeof job.text - 1);
		if (size > 0)
			give(job.fd, job.text);
		else
			close(job.fd);
	}
	return 0;
}
