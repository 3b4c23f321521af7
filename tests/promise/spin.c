/* spin.c WHAT [ends]: a loop repeats WHAT without a sleep.  After a second, the program exits without ending its trace; with
 * "ends", the repetition ends before that, and the loop sleeps again.
 *
 * handle: a callback starts an idle handle that is never stopped.  turns: a promise pauses repeatedly; steps: in a function that
 * it calls; fresh: as a new promise each time; locks: under a lock; work: between the pieces of its work; tells: and sets a
 * counter each time.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft/uv.h>

enum { TIMES = 300 };

static uv_idle_t idle;
static const char *what;
static unsigned times;
static struct weft_mutex *mutex;
static struct weft_counter polled = WEFT_PROMISE_COUNTER("polled", 0);

static bool is(const char *name)
{
	return strcmp(what, name) == 0;
}

static void look_again(uv_idle_t *handle)
{
	(void)handle;
}

static struct weft_promise *set_up(void *uv, void *nothing)
{
	(void)nothing;
	uv_idle_init(weft_uv_loop(uv), &idle);
	uv_idle_start(&idle, look_again);
	return weft_promise_unit();
}

static struct weft_promise *unit(void *ctx, void *nothing)
{
	return weft_promise_unit();
}

static void work(void)
{
	enum { MS = 1000000 };
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 * MS + now.tv_nsec - begin.tv_nsec < MS);
}

static struct weft_promise *again(void *is_done, void *nothing)
{
	times++;
	if (is("work") || is("tells") ? times == TIMES : *(bool *)is_done)
		return weft_promise_unit();
	if (is("work"))
		work();
	if (is("locks")) {
		weft_promise_unref(weft_mutex_lock(mutex));
		weft_mutex_unlock(mutex);
	}
	if (is("tells"))
		weft_counter_increase(&polled, 1);
	struct weft_promise *paused = weft_promise_pause();
	if (is("steps"))
		paused = weft_promise_bind(paused, unit, NULL, NULL);
	struct weft_promise *next = weft_promise_bind(paused, again, is_done, NULL);
	if (!is("fresh"))
		return next;
	weft_promise_ignore_result(next);
	return weft_promise_unit();
}

static void sleep_for(struct weft_uv *uv, uint64_t ms, const char *label)
{
	struct weft_promise *p = weft_uv_sleep(uv, ms);
	weft_promise_set_label(p, label);
	weft_uv_run(uv, p, 0);
	weft_promise_unref(p);
}

int main(int argc, char **argv)
{
	bool is_done = false;
	struct weft_uv *uv = weft_uv_create(NULL);
	what = argv[1];
	mutex = weft_mutex_create_named("state");
	sleep_for(uv, 1, "configuration");
	struct weft_promise *done =
	    weft_promise_bind(weft_uv_sleep(uv, 1), is("handle") ? set_up : again, is("handle") ? (void *)uv : &is_done, NULL);
	weft_promise_set_label(done, "poller");
	if (is("handle"))
		weft_uv_run(uv, done, 0);
	sleep_for(uv, 500, "request");
	sleep_for(uv, 500, "answer");
	if (argc < 3)
		_Exit(0);
	is_done = true;
	if (is("handle"))
		uv_close((uv_handle_t *)&idle, NULL);
	weft_uv_run(uv, done, 0);
	sleep_for(uv, 20, "rest");
	weft_promise_unref(done);
	weft_mutex_destroy(mutex);
	weft_uv_destroy(uv);
	weft_promise_trim();
	return 0;
}
