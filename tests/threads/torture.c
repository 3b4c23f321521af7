/* torture.c [rounds [brief]]: OS threads that disturb each other, with or without recording.  The output depends only on the
 * arguments. SPDX-License-Identifier: ISC */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rounds = 4;

static void start(pthread_t *thread, void *(*run)(void *), void *data)
{
	if (pthread_create(thread, NULL, run, data))
		abort();
}

/* ---- Many short threads: joined, detached, on a small stack, ended by pthread_exit ---- */

static atomic_int ended;

static void *come_and_go(void *data)
{
	usleep((unsigned)(size_t)data % 5 * 50);
	ended++;
	if ((size_t)data % 2)
		pthread_exit(data);
	return data;
}

static void crowd(void)
{
	enum { AT_ONCE = 50 };
	pthread_attr_t small, detached;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < rounds * 50; i += AT_ONCE) {
		pthread_t threads[AT_ONCE];
		for (size_t j = 0; j < AT_ONCE; j++)
			if (pthread_create(&threads[j],
				j % 3 == 0   ? &small
				: j % 3 == 1 ? &detached
					     : NULL,
				come_and_go, (void *)j))
				abort();
		for (int j = 0; j < AT_ONCE; j++)
			if (j % 3 != 1)
				pthread_join(threads[j], NULL);
	}
	while (ended < rounds * 50)
		usleep(100);
	printf("crowd: %d\n", ended);
}

/* ---- OS threads take turns by a condition, a semaphore and a barrier ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t permits;
static int turn, sum;

static void *take_turns(void *data)
{
	int mine = (int)(size_t)data;
	for (int i = 0; i < rounds * 25; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 4 != mine)
			pthread_cond_wait(&changed, &lock);
		turn++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		sem_wait(&permits);
		sum++; /* the semaphore has one permit */
		sem_post(&permits);
		if (i % 10 == 0)
			pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void turns(void)
{
	pthread_t threads[4];
	pthread_barrier_init(&barrier, NULL, 4);
	sem_init(&permits, 0, 1);
	for (size_t i = 0; i < 4; i++)
		start(&threads[i], take_turns, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("turns: %d, sum: %d\n", turn, sum);
}

/* ---- Cancellation in each kind of sleep ---- */

static int silent[2];

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

static void *sleep_somehow(void *data)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	char byte;
	switch ((size_t)data) {
	case 0:
		pthread_mutex_lock(&own);
		pthread_cleanup_push(unlock, &own);
		for (;;)
			pthread_cond_wait(&never, &own);
		pthread_cleanup_pop(1);
	case 1: return (void *)(size_t)read(silent[0], &byte, 1);
	case 2: return (void *)(size_t)poll(&(struct pollfd){.fd = silent[0], .events = POLLIN}, 1, -1);
	case 3: return (void *)(size_t)nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
	default: return (void *)(size_t)pause();
	}
}

static void cancelled(void)
{
	int count = 0;
	if (pipe(silent))
		abort();
	for (int i = 0; i < rounds; i++) {
		pthread_t threads[5];
		void *result;
		for (size_t k = 0; k < 5; k++)
			start(&threads[k], sleep_somehow, (void *)k);
		usleep(500);
		for (int k = 0; k < 5; k++)
			pthread_cancel(threads[k]);
		for (int k = 0; k < 5; k++) {
			pthread_join(threads[k], &result);
			count += result == PTHREAD_CANCELED;
		}
	}
	printf("cancelled: %d\n", count);
}

/* ---- Signals whose handlers sleep, in sleeping OS threads ---- */

static atomic_int handled;
static atomic_bool enough;

static void handle(int signal_number)
{
	int error = errno;
	nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
	handled++;
	errno = error;
}

static void *sleep_on(void *data)
{
	while (!enough)
		poll(NULL, 0, 1);
	return NULL;
}

static void interrupted(void)
{
	pthread_t threads[4];
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
	for (int i = 0; i < 4; i++)
		start(&threads[i], sleep_on, NULL);
	while (handled < rounds * 100) {
		for (int i = 0; i < 4; i++)
			pthread_kill(threads[i], SIGUSR1);
		usleep(100);
	}
	enough = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	puts("interrupted");
}

/* ---- Forks while others hold locks; the child has its own OS threads ---- */

static void *hold_often(void *data)
{
	while (!enough) {
		pthread_mutex_lock(data);
		usleep(10);
		pthread_mutex_unlock(data);
	}
	return NULL;
}

static void forks(void)
{
	pthread_t holder, own;
	int good = 0, status;
	enough = false;
	start(&holder, hold_often, &lock);
	for (int i = 0; i < rounds; i++) {
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			start(&own, come_and_go, NULL);
			pthread_join(own, NULL);
			_exit(7);
		}
		waitpid(pid, &status, 0);
		good += WIFEXITED(status) && WEXITSTATUS(status) == 7;
	}
	enough = true;
	pthread_join(holder, NULL);
	printf("forks: %d\n", good);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	crowd();
	turns();
	if (argc < 3)
		cancelled();
	interrupted();
	if (argc < 3)
		forks();
	return 0;
}
