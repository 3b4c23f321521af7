/* scenes.c: small programs without a runtime that weft knows.  Each is a function; its name is the argument.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#ifdef WITH_URING
#include <liburing.h>
#endif
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000 };

static void compute(int ms)
{
	struct timespec now, begin;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / MS < ms);
}

/* Sleeps for 20 ms in each way that there is, and computes for 5 ms after it. */
static int ways(void)
{
	int epoll = epoll_create1(0), fd = eventfd(0, 0);
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = epoll, .events = POLLIN}};
	struct timespec rest = {.tv_nsec = 20 * MS}, until;
	struct epoll_event event;
	fd_set set;
	sigset_t signals;
	sem_t semaphore;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	int word = 0;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sem_init(&semaphore, 0, 0);
	for (int way = 0; way < 11; way++) {
		FD_ZERO(&set);
		FD_SET(fd, &set);
		FD_SET(epoll, &set);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 20 * MS;
		until.tv_sec += until.tv_nsec / (1000 * MS);
		until.tv_nsec %= 1000 * MS;
		switch (way) {
		case 0: epoll_wait(epoll, &event, 1, 20); break;
		case 1: epoll_pwait(epoll, &event, 1, 20, &signals); break;
		case 2: poll(fds, 2, 20); break;
		case 3: ppoll(fds, 2, &rest, NULL); break;
		case 4: select((fd > epoll ? fd : epoll) + 1, &set, NULL, NULL, &(struct timeval){.tv_usec = 20000}); break;
		case 5: pselect((fd > epoll ? fd : epoll) + 1, &set, NULL, NULL, &rest, NULL); break;
		case 6:
			pthread_mutex_lock(&mutex);
			pthread_cond_timedwait(&condition, &mutex, &until);
			pthread_mutex_unlock(&mutex);
			break;
		case 7: sem_timedwait(&semaphore, &until); break;
		case 8: sigtimedwait(&signals, NULL, &rest); break;
		case 9: nanosleep(&rest, NULL); break;
		case 10: syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &rest, NULL, 0); break;
		}
		compute(5);
	}
	puts("done");
	return 0;
}

static bool main_sleeps(void)
{
	char line[128] = "", state = 'R';
	FILE *file = fopen("/proc/self/stat", "r");
	if (file && fgets(line, sizeof line, file))
		state = strrchr(line, ')')[2];
	if (file)
		fclose(file);
	return state == 'S';
}

/* Another OS thread ends the wait of main after 30 ms. */
static pthread_mutex_t mutex_of_other;
static mtx_t c11_of_other;
static pthread_rwlock_t rwlock_of_other;
static pthread_barrier_t both;
static cnd_t condition_of_c11;
static int ends[2], sides[2], step;
static sem_t has_begun;

static int other(void *data)
{
	bool is_locker = step < 3;
	switch (step) {
	case 0: pthread_mutex_lock(&mutex_of_other); break;
	case 1: mtx_lock(&c11_of_other); break;
	case 2: pthread_rwlock_wrlock(&rwlock_of_other); break;
	}
	sem_post(&has_begun);
	while (!main_sleeps())
		thrd_yield();
	thrd_sleep(&(struct timespec){.tv_nsec = 30 * MS}, NULL);
	switch (step) {
	case 0: pthread_mutex_unlock(&mutex_of_other); break;
	case 1: mtx_unlock(&c11_of_other); break;
	case 2: pthread_rwlock_unlock(&rwlock_of_other); break;
	case 3: pthread_barrier_wait(&both); break;
	case 4: cnd_signal(&condition_of_c11); break;
	case 5: return write(ends[1], "x", 1) != 1;
	case 6: return write(sides[1], "x", 1) != 1;
	}
	return is_locker ? 0 : step;
}

static int helped(void)
{
	char byte;
	pthread_mutex_init(&mutex_of_other, NULL);
	mtx_init(&c11_of_other, mtx_plain);
	pthread_rwlock_init(&rwlock_of_other, NULL);
	pthread_barrier_init(&both, NULL, 2);
	cnd_init(&condition_of_c11);
	sem_init(&has_begun, 0, 0);
	if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, sides))
		return 1;
	for (step = 0; step < 7; step++) {
		thrd_t thread;
		compute(5);
		thrd_create(&thread, other, NULL);
		sem_wait(&has_begun);
		switch (step) {
		case 0: pthread_mutex_lock(&mutex_of_other); break;
		case 1: mtx_lock(&c11_of_other); break;
		case 2: pthread_rwlock_rdlock(&rwlock_of_other); break;
		case 3: pthread_barrier_wait(&both); break;
		case 4:
			mtx_lock(&c11_of_other);
			cnd_wait(&condition_of_c11, &c11_of_other);
			break;
		case 5: step += read(ends[0], &byte, 1) != 1; break;
		case 6: step += recv(sides[0], &byte, 1, 0) != 1; break;
		}
		if (step == 1)
			mtx_unlock(&c11_of_other);
		thrd_join(thread, NULL);
	}
	puts("done");
	return 0;
}

#ifdef WITH_URING
/* Waits three times for 30 ms at an io_uring; prints nothing if the kernel allows none. */
static int uring(void)
{
	struct io_uring ring;
	struct io_uring_cqe *found = NULL;
	struct __kernel_timespec time = {.tv_nsec = 30 * MS};
	if (io_uring_queue_init(8, &ring, 0))
		return 0;
	io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
	io_uring_submit(&ring);
	io_uring_wait_cqe(&ring, &found);
	io_uring_cqe_seen(&ring, found);
	compute(5);
	io_uring_prep_timeout(io_uring_get_sqe(&ring), &time, 0, 0);
	io_uring_submit_and_wait(&ring, 1);
	io_uring_peek_cqe(&ring, &found);
	io_uring_cqe_seen(&ring, found);
	compute(5);
	io_uring_wait_cqe_timeout(&ring, &found, &time);
	io_uring_queue_exit(&ring);
	puts("done");
	return 0;
}
#endif

static void *work(void *data)
{
	if (data)
		prctl(PR_SET_NAME, "worker");
	compute(20);
	return NULL;
}

/* Two OS threads compute and never sleep; one is joined before its end, the other after it. */
static int threads(void)
{
	pthread_t one, two;
	pthread_create(&one, NULL, work, "");
	pthread_create(&two, NULL, work, NULL);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	puts("done");
	return 0;
}

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER, index_of_it = PTHREAD_MUTEX_INITIALIZER;

static void *take_both(void *other_way)
{
	struct timespec rest = {.tv_nsec = 20 * MS};
	prctl(PR_SET_NAME, other_way ? "writer" : "reader");
	pthread_mutex_lock(other_way ? &index_of_it : &journal);
	nanosleep(&rest, NULL);
	pthread_mutex_lock(other_way ? &journal : &index_of_it);
	return NULL;
}

/* Two OS threads take two locks in opposite order. */
static int locks(void)
{
	struct timespec rest = {.tv_nsec = 200 * MS};
	pthread_t one, two;
	pthread_create(&one, NULL, take_both, NULL);
	pthread_create(&two, NULL, take_both, "");
	nanosleep(&rest, NULL);
	puts("done");
	return 0;
}

/* Two OS threads wait for each other's locks a hundred times without a deadlock. */
static void *take_in_order(void *unused)
{
	struct timespec rest = {.tv_nsec = MS / 10};
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(&journal);
		pthread_mutex_lock(&index_of_it);
		nanosleep(&rest, NULL);
		pthread_mutex_unlock(&index_of_it);
		pthread_mutex_unlock(&journal);
	}
	return NULL;
}

static int order(void)
{
	pthread_t all[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, take_in_order, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
	puts("done");
	return 0;
}

/* Polls a descriptor that is always ready 100,000 times. */
static int ready(void)
{
	int epoll = epoll_create1(0), fd = eventfd(1, 0);
	struct epoll_event event = {.events = EPOLLIN};
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	int found = 0;
	for (int i = 0; i < 100000; i++)
		found += epoll_wait(epoll, &event, 1, -1);
	printf("%d\n", found);
	uint64_t value;
	if (read(fd, &value, sizeof value) != sizeof value)
		return 1;
	epoll_wait(epoll, &event, 1, 30);
	compute(5);
	return 0;
}

/* A program without the calls of an event loop. */
static int plain(void)
{
	struct pollfd fd = {.fd = eventfd(0, 0), .events = POLLIN};
	poll(&fd, 1, 5);
	usleep(5000);
	select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = 5000});
	pid_t child = fork();
	if (child == 0)
		_exit(3);
	int status = 0;
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

/* Forks; both the child and its parent wait once more before they end. */
static int forks(void)
{
	int epoll = epoll_create1(0), status = 0;
	struct epoll_event event;
	epoll_wait(epoll, &event, 1, 10);
	pid_t child = fork();
	epoll_wait(epoll, &event, 1, 10);
	if (child == 0)
		_exit(4);
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

static void *waits(void *data)
{
	sem_wait(data);
	return NULL;
}

/* Starts a thousand OS threads that exist at once; some of them are cancelled. */
static int many(void)
{
	enum { COUNT = 1000 };
	static pthread_t all[COUNT];
	sem_t semaphore;
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	sem_init(&semaphore, 0, 0);
	int started = 0;
	while (started < COUNT && pthread_create(&all[started], &small, waits, &semaphore) == 0)
		started++;
	for (int i = 0; i < started; i += 10)
		pthread_cancel(all[i]);
	for (int i = 0; i < started; i++)
		sem_post(&semaphore);
	int cancelled = 0;
	for (int i = 0; i < started; i++) {
		void *result;
		pthread_join(all[i], &result);
		cancelled += result == PTHREAD_CANCELED;
	}
	puts(cancelled <= COUNT / 10 ? "done" : "cancelled too many");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} scenes[] = {{"ways", ways}, {"helped", helped},
#ifdef WITH_URING
	    {"uring", uring},
#endif
	    {"threads", threads}, {"locks", locks}, {"order", order}, {"ready", ready}, {"plain", plain}, {"forks", forks},
	    {"many", many}};
	for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(argv[1], scenes[i].name))
			return scenes[i].run();
	return 2;
}
