/* no_malloc.c: after the start, the recorder allocates no memory: malloc() aborts while this program records.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/record.h>

/* glibc's allocation functions, under the names that a program may call when it replaces malloc(). */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static __thread int forbidden;

static void allowed(void)
{
	static const char text[] = "something that records has allocated\n";
	if (forbidden) {
		forbidden = 0;
		ssize_t wrote = write(STDERR_FILENO, text, sizeof text - 1);
		(void)wrote;
		abort();
	}
}

void *malloc(size_t size)
{
	allowed();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allowed();
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allowed();
	return __libc_realloc(old, size);
}

static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	weft_pending(1, 2, WEFT_KIND_TASK, WEFT_SITE(), weft_now(), "pending");
	weft_still_awaits(2, 1);
	return 0;
}

static void *everything(void *arg)
{
	static struct weft_record_text counter = WEFT_COUNTER("requests");
	char text[600];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	forbidden = 1;
	weft_list_pending(list, NULL);
	for (int i = 0; i < 100000; i++) {
		weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(id, "a literal");
		weft_label(id, "copied");
		if (i % 1000 == 0)
			weft_label(id, text);
		weft_should_resolve(id);
		weft_await(1, id);
		weft_run(id);
		weft_counter_set(id, &counter, i);
		weft_counter_add(id, &counter, INT64_MAX);
		weft_signal(1, id);
		weft_read_later(1, id);
		weft_resolve(INT64_MAX, id);
		weft_read(1, id);
		weft_fail(1, id, text);
		WEFT_PAUSE("gc", 10);
		WEFT_NOTE(1, "a note");
		weft_idle(WEFT_IDLE_WAIT);
		weft_resume(1);
	}
	weft_list_pending(NULL, NULL);
	forbidden = 0;
	return arg;
}

static void in_mode(enum weft_record_mode mode, const char *directory)
{
	const struct weft_record_options options = {.directory = directory,
	    .overwrite = true,
	    .mode = mode,
	    .size_bytes = mode == WEFT_RECORD_RING ? 256 << 10 : 64 << 20};
	pthread_t other;
	if (weft_start(&options) < 0) {
		puts(weft_start_error());
		exit(1);
	}
	everything(NULL);
	if (pthread_create(&other, NULL, everything, NULL) || pthread_join(other, NULL))
		exit(1);
	weft_stop();
}

/* Checks that an allocation while it is forbidden ends the program. */
static int is_guarded(void)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		close(STDERR_FILENO);
		forbidden = 1;
		void *volatile p = malloc(1);
		free(p);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(void)
{
	char place[64] = "/tmp/weft-proof-XXXXXX", command[96], path[96];
	if (!is_guarded() || !mkdtemp(place))
		return 2;
	snprintf(path, sizeof path, "%s/trace", place);
	in_mode(WEFT_RECORD_RING, path);
	in_mode(WEFT_RECORD_GROW, path);
	snprintf(command, sizeof command, "rm -rf %s", place);
	puts("7.2 M events of every kind, in 2 OS threads, rings and files that grow: nothing was allocated");
	return system(command) != 0;
}
