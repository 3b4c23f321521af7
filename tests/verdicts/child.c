/* child.c FAULT: programs whose libuv loop is kept running by something; alarm() ends the program after 2 s.
 *
 *   unread   the program reads only the first output of a child process, so the pipe becomes full and the child never ends
 *   helper   a thread with a loop of its own waits for messages, beside the loop of the program
 *   timers   each call of a timer adds a repeating timer and removes none; the program ends after 100 of them
 *   few      each call of a timer adds a repeating timer; the program ends after 28 of them
 *
 * SPDX-License-Identifier: ISC */
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { LIMIT_S = 2, TIMERS = 100, FEW_TIMERS = 28 };

static uv_loop_t helper_loop;
static uv_async_t message;
static uv_timer_t timers[TIMERS + 1];
static int most_timers = TIMERS;
static uv_process_t child;
static uv_pipe_t output;
static char buffer[4096];

static void give(uv_handle_t *handle, size_t wanted, uv_buf_t *into)
{
	(void)handle;
	(void)wanted;
	*into = uv_buf_init(buffer, sizeof buffer);
}

static void got(uv_stream_t *stream, ssize_t count, const uv_buf_t *data)
{
	(void)count;
	(void)data;
	uv_read_stop(stream);
}

static void leave_output_unread(void)
{
	static char *arguments[] = {(char *)"yes", NULL};
	uv_stdio_container_t files[2] = {{.flags = UV_IGNORE},
	    {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE), .data.stream = (uv_stream_t *)&output}};
	uv_process_options_t options = {.file = "yes", .args = arguments, .stdio = files, .stdio_count = 2};
	uv_pipe_init(uv_default_loop(), &output, 0);
	if (uv_spawn(uv_default_loop(), &child, &options) == 0)
		uv_read_start((uv_stream_t *)&output, give, got);
}

static void do_nothing(uv_async_t *async)
{
	(void)async;
}

static void run_helper(void *unused)
{
	(void)unused;
	uv_run(&helper_loop, UV_RUN_DEFAULT);
}

static void tick(uv_timer_t *timer)
{
	(void)timer;
}

static void add_timer(uv_timer_t *timer)
{
	static int count;
	enum { EVERY_MS = 20 };
	uv_timer_t *added = &timers[++count];
	uv_timer_init(timer->loop, added);
	uv_timer_start(added, tick, EVERY_MS, EVERY_MS);
	if (count == most_timers)
		uv_stop(timer->loop);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "";
	uv_thread_t helper;
	alarm(LIMIT_S);
	uv_timer_init(uv_default_loop(), &timers[0]);
	if (!strcmp(fault, "unread")) {
		leave_output_unread();
	} else if (!strcmp(fault, "helper")) {
		uv_loop_init(&helper_loop);
		uv_async_init(&helper_loop, &message, do_nothing);
		uv_thread_create(&helper, run_helper, NULL);
		uv_timer_start(&timers[0], tick, LIMIT_S * 10000, 0);
	} else {
		most_timers = strcmp(fault, "few") ? TIMERS : FEW_TIMERS;
		alarm(0);
		uv_timer_start(&timers[0], add_timer, 10, 10);
	}
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return 0;
}
