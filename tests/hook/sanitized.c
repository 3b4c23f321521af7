/* sanitized.c: a program for builds with sanitizers: sanitized [leak|heap|overflow].  SPDX-License-Identifier: ISC */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static void on_timer(uv_timer_t *timer)
{
	puts("timer");
	uv_close((uv_handle_t *)timer, NULL);
}

int main(int argc, char **argv)
{
	const char *mood = argc > 1 ? argv[1] : "";
	uv_loop_t loop;
	uv_timer_t timer;
	uv_loop_init(&loop);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_timer, 1, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	printf("loop: %d\n", uv_loop_close(&loop));
	fflush(stdout);
	if (!strcmp(mood, "leak")) {
		void *volatile lost = malloc(77);
		lost = NULL;
		printf("%d\n", lost == NULL);
	} else if (!strcmp(mood, "heap")) {
		char *volatile bytes = malloc(7);
		bytes[argc + 5] = 1;
		free(bytes);
	} else if (!strcmp(mood, "overflow")) {
		volatile int most = INT_MAX;
		most += argc;
		printf("%d\n", most);
	}
	return 3;
}
