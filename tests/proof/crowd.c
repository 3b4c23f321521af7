/* crowd.c THREADS: THREADS OS threads exist at once, and each records two events.  WEFT_TRACE names the destination.  Exits with
 * 0 if all threads could start.  SPDX-License-Identifier: ISC */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/record.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_are_here = PTHREAD_COND_INITIALIZER;
static long missing;

static void *record_and_stay(void *arg)
{
	const weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
	weft_resolve(WEFT_SYSTEM_ID, id);
	pthread_mutex_lock(&lock);
	if (--missing == 0)
		pthread_cond_broadcast(&all_are_here);
	while (missing > 0)
		pthread_cond_wait(&all_are_here, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(int argc, char **argv)
{
	const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	pthread_t *threads = calloc((size_t)count, sizeof *threads);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 4 * (size_t)PTHREAD_STACK_MIN);
	missing = count;
	for (long i = 0; i < count; i++)
		if (!threads || pthread_create(&threads[i], &small, record_and_stay, NULL)) {
			printf("OS thread %ld of %ld cannot start\n", i, count);
			exit(1);
		}
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}
