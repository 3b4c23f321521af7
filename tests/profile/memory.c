/* memory.c: allocates memory in each way that a program can, keeps a part of it, and prints the true numbers.
 *
 *	profile_memory [entries | failing | forks | many | leaks | caches | fills]
 *
 * A timer runs twenty times.  Each call allocates about 1 MB in each function below; keep_session() keeps every fourth of its
 * allocations, and all others are freed.  SPDX-License-Identifier: ISC */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum { CALLS = 20, COUNT = 256, BYTES = 4000, KEPT_EACH = 4 };

static char *kept[CALLS * COUNT];
static size_t kept_count;
static void *volatile sink;

#define NOINLINE __attribute__((noinline))

static NOINLINE void keep_session(void)
{
	for (int i = 0; i < COUNT; i++) {
		char *session = malloc(BYTES);
		sink = session;
		if (i % KEPT_EACH == 0)
			kept[kept_count++] = session;
		else
			free(session);
	}
}

/* Defines a function that allocates and frees. */
#define USE(NAME, ALLOCATION)                                                                                                    \
	static NOINLINE void NAME(void)                                                                                          \
	{                                                                                                                        \
		for (int i = 0; i < COUNT; i++) {                                                                                \
			sink = ALLOCATION;                                                                                       \
			free(sink);                                                                                              \
		}                                                                                                                \
	}

static char text[BYTES];

static void *posix_aligned(void)
{
	void *memory = NULL;
	return posix_memalign(&memory, 64, BYTES) ? NULL : memory;
}

USE(fill_zeroed, calloc(BYTES / 8, 8))
USE(use_aligned, aligned_alloc(64, BYTES / 64 * 64))
USE(use_memalign, memalign(64, BYTES))
USE(use_posix, posix_aligned())
USE(copy_text, strdup(text))
USE(fill_array, reallocarray(NULL, BYTES / 8, 8))

/* The program's own allocator is not the line that a user looks for. */
static NOINLINE void *my_malloc(size_t bytes)
{
	void *memory = malloc(bytes);
	sink = memory;
	return memory;
}
USE(fill_table, my_malloc(BYTES))

static NOINLINE void grow_buffer(void)
{
	char *buffer = NULL;
	for (size_t bytes = BYTES; bytes <= COUNT * BYTES; bytes *= 2)
		sink = buffer = realloc(buffer, bytes);
	free(buffer);
}

static void *work(void *unused)
{
	fill_zeroed();
	return unused;
}

static void on_timer(uv_timer_t *timer)
{
	static int calls;
	keep_session();
	fill_zeroed();
	use_aligned();
	use_memalign();
	use_posix();
	copy_text();
	fill_array();
	fill_table();
	grow_buffer();
	pthread_t thread;
	if (pthread_create(&thread, NULL, work, NULL) == 0)
		pthread_join(thread, NULL);
	if (++calls == CALLS)
		uv_close((uv_handle_t *)timer, NULL);
}

/* A failing realloc() keeps the old memory. */
static void on_failure(uv_timer_t *timer)
{
	for (int i = 0; i < CALLS * COUNT; i++) {
		char *memory = malloc(BYTES), *volatile grown = realloc(memory, SIZE_MAX / 4);
		kept[kept_count++] = grown ? grown : memory;
	}
	uv_close((uv_handle_t *)timer, NULL);
}

static NOINLINE void replace_buffers(int count)
{
	static void *buffers[64];
	for (int i = 0; i < count; i++) {
		free(buffers[i % 64]);
		buffers[i % 64] = malloc(BYTES);
	}
	for (int i = 0; i < 64; i++)
		free(buffers[i]);
}

/* Allocates more than the samples of a trace can be. */
static void on_many(uv_timer_t *timer)
{
	replace_buffers(500000);
	uv_close((uv_handle_t *)timer, NULL);
}

/* A child frees what its parent allocated, and allocates and ends without exec. */
static void on_fork(uv_timer_t *timer)
{
	keep_session();
	for (int i = 0; i < 8; i++) {
		const pid_t child = fork();
		if (child == 0) {
			while (kept_count > 0)
				free(kept[--kept_count]);
			for (int n = 0; n < CALLS; n++)
				fill_zeroed();
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	uv_close((uv_handle_t *)timer, NULL);
}

/* ---- Requests, each of which is a promise that ends ---- */

enum { REQUESTS = 400, BUFFERS = 8, LIMIT = 40 };

static const char *kind;
static char *cache[REQUESTS];

/* Keeps a buffer of a request: all of them, the newest ones, or the oldest ones. */
static NOINLINE void answer_request(int request)
{
	for (int i = 0; i < BUFFERS; i++) {
		char *buffer = malloc(BYTES);
		sink = buffer;
		if (i > 0 || (!strcmp(kind, "fills") && request >= LIMIT)) {
			free(buffer);
			continue;
		}
		char **slot = &cache[!strcmp(kind, "caches") ? request % LIMIT : request];
		free(*slot);
		*slot = buffer;
	}
}

static void on_closed(uv_handle_t *timer)
{
	free(timer);
}

static void on_request(uv_timer_t *timer)
{
	static int request;
	answer_request(request++);
	uv_close((uv_handle_t *)timer, on_closed);
}

static void on_client(uv_timer_t *client)
{
	static int requests;
	uv_timer_t *timer = malloc(sizeof *timer);
	uv_timer_init(client->loop, timer);
	uv_timer_start(timer, on_request, 0, 0);
	if (++requests == REQUESTS)
		uv_close((uv_handle_t *)client, NULL);
}

static void print_entries(void)
{
	const unsigned char *const entries[] = {(const unsigned char *)(uintptr_t)malloc, (const unsigned char *)(uintptr_t)free,
	    (const unsigned char *)(uintptr_t)calloc, (const unsigned char *)(uintptr_t)realloc};
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
		for (size_t k = 0; k < 16; k++)
			printf("%02x%s", entries[i][k], k == 15 ? "\n" : "");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uv_timer_t timer;
	memset(text, 'x', sizeof text - 1);
	kind = !strcmp(what, "leaks") || !strcmp(what, "caches") || !strcmp(what, "fills") ? what : NULL;
	if (!strcmp(what, "entries"))
		print_entries();
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer,
	    !strcmp(what, "failing") ? on_failure
	    : !strcmp(what, "forks") ? on_fork
	    : !strcmp(what, "many")  ? on_many
	    : kind                   ? on_client
				     : on_timer,
	    1, 1);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	if (strcmp(what, "entries") != 0)
		printf("%zu\n", kept_count * BYTES);
	return 0;
}
