/* hangs.c: hangs HOW: hangs in one of the ways that programs hang; prints "ready" when all of its threads are about to block.
 * SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t has_work = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t settings = PTHREAD_RWLOCK_INITIALIZER;
sem_t tokens;
static pthread_barrier_t both_have_one;
static pthread_t first, second;

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* ---- Two locks in two orders ---- */

__attribute__((noinline)) static void transfer(pthread_mutex_t *from, pthread_mutex_t *to)
{
	pthread_mutex_lock(from);
	pthread_barrier_wait(&both_have_one);
	pthread_mutex_lock(to);
	pthread_mutex_unlock(to);
	pthread_mutex_unlock(from);
}

static void *pay(void *unused)
{
	transfer(&accounts, &journal);
	return unused;
}

static void *audit(void *unused)
{
	prctl(PR_SET_NAME, "auditor");
	transfer(&journal, &accounts);
	return unused;
}

static void hang_abba(void)
{
	pthread_barrier_init(&both_have_one, NULL, 2);
	pthread_create(&first, NULL, pay, NULL);
	pthread_create(&second, NULL, audit, NULL);
	say_ready();
	pthread_join(first, NULL);
}

/* ---- One thread ---- */

__attribute__((noinline)) static void log_line(void)
{
	pthread_mutex_lock(&journal);
	pthread_mutex_unlock(&journal);
}

static void hang_self(void)
{
	pthread_mutex_lock(&journal);
	say_ready();
	log_line();
}

static void hang_semaphore(void)
{
	sem_init(&tokens, 0, 0);
	say_ready();
	sem_wait(&tokens);
}

static void hang_read(void)
{
	char byte;
	int ends[2];
	if (pipe(ends))
		exit(1);
	say_ready();
	if (read(ends[0], &byte, 1) != 1)
		exit(1);
}

static void hang_spin(void)
{
	say_ready();
	for (volatile unsigned i = 0;; i++)
		;
}

/* ---- Others ---- */

static void *work(void *unused)
{
	pthread_mutex_lock(&accounts);
	pthread_cond_wait(&has_work, &accounts);
	return unused;
}

static void hang_condition(void)
{
	pthread_create(&first, NULL, work, NULL);
	say_ready();
	pthread_join(first, NULL);
}

static void *join_first(void *unused)
{
	pthread_join(first, NULL);
	return unused;
}

static void hang_join(void)
{
	first = pthread_self();
	pthread_create(&second, NULL, join_first, NULL);
	say_ready();
	pthread_join(second, NULL);
}

static void *change_settings(void *unused)
{
	pthread_rwlock_wrlock(&settings);
	pause();
	return unused;
}

static void hang_rwlock(void)
{
	pthread_create(&first, NULL, change_settings, NULL);
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	say_ready();
	pthread_rwlock_rdlock(&settings);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*hang)(void);
	} ways[] = {{"abba", hang_abba}, {"self", hang_self}, {"semaphore", hang_semaphore}, {"read", hang_read},
	    {"spin", hang_spin}, {"condition", hang_condition}, {"join", hang_join}, {"rwlock", hang_rwlock}};
	for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			ways[i].hang();
	fprintf(stderr, "usage: hangs HOW\n");
	return 1;
}
