/* locks.c FAULT: a worker closes the log while the main thread writes to it; alarm() ends a hang after 4 s.
 *
 *   condition    the worker holds the log's lock and waits until the writer is idle; the writer needs the lock first
 *   uv           as condition, with the locks and conditions of libuv, and a callback as writer
 *   healthy      the worker releases the lock before it waits
 *
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER, state_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t became_idle = PTHREAD_COND_INITIALIZER;
static uv_mutex_t uv_log_lock, uv_state_lock;
static uv_cond_t uv_became_idle;
static uv_async_t wake;
static bool is_busy = true, releases;
static int notice[2];

static void *close_log(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&log_lock);
	if (releases)
		pthread_mutex_unlock(&log_lock);
	pthread_mutex_lock(&state_lock);
	if (write(notice[1], "x", 1) < 1)
		return NULL;
	while (is_busy)
		pthread_cond_wait(&became_idle, &state_lock);
	pthread_mutex_unlock(&state_lock);
	if (!releases)
		pthread_mutex_unlock(&log_lock);
	return NULL;
}

static void write_log(void)
{
	char got;
	if (read(notice[0], &got, 1) < 1)
		return;
	pthread_mutex_lock(&log_lock);
	pthread_mutex_unlock(&log_lock);
	pthread_mutex_lock(&state_lock);
	is_busy = false;
	pthread_cond_signal(&became_idle);
	pthread_mutex_unlock(&state_lock);
}

static void uv_close_log(void *unused)
{
	(void)unused;
	uv_mutex_lock(&uv_log_lock);
	uv_mutex_lock(&uv_state_lock);
	uv_async_send(&wake);
	while (is_busy)
		uv_cond_wait(&uv_became_idle, &uv_state_lock);
	uv_mutex_unlock(&uv_state_lock);
	uv_mutex_unlock(&uv_log_lock);
}

static void uv_write_log(uv_async_t *async)
{
	uv_mutex_lock(&uv_log_lock);
	uv_mutex_unlock(&uv_log_lock);
	uv_mutex_lock(&uv_state_lock);
	is_busy = false;
	uv_cond_signal(&uv_became_idle);
	uv_mutex_unlock(&uv_state_lock);
	uv_close((uv_handle_t *)async, NULL);
}

static void run_with_libuv(void)
{
	uv_thread_t closer;
	uv_mutex_init(&uv_log_lock);
	uv_mutex_init(&uv_state_lock);
	uv_cond_init(&uv_became_idle);
	uv_async_init(uv_default_loop(), &wake, uv_write_log);
	uv_thread_create(&closer, uv_close_log, NULL);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	uv_thread_join(&closer);
}

static void run_with_threads(void)
{
	pthread_t closer;
	if (pipe(notice) || pthread_create(&closer, NULL, close_log, NULL))
		return;
	write_log();
	pthread_join(closer, NULL);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	enum { LIMIT_S = 4 };
	alarm(LIMIT_S);
	releases = !strcmp(fault, "healthy");
	if (!strcmp(fault, "uv"))
		run_with_libuv();
	else
		run_with_threads();
	return 0;
}
