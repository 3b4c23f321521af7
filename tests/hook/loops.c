/* loops.c: loops COUNT: COUNT OS threads with a libuv loop each, which all exist at once; loops_test.py counts the instructions.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

static pthread_barrier_t barrier;

static void on_timer(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

static void *run_loop(void *data)
{
	uv_loop_t loop;
	uv_timer_t timer;
	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_timer, 1, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	pthread_barrier_wait(&barrier);
	return data;
}

int main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *threads = calloc((size_t)count + 1, sizeof *threads);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 131072);
	pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &small, run_loop, NULL))
			return 1;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	puts("done");
	return 0;
}
