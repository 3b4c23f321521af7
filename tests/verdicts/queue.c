/* queue.c FAULT: twenty jobs in weft's promises that need a place of a semaphore for 30 ms each.
 *
 *   one     there is one place
 *   pool    a pool of one object takes the place of the semaphore
 *   enough  there are twenty places
 *   signal  the jobs give no place back: a timer releases one every 30 ms, as a producer of work does
 *
 * SPDX-License-Identifier: ISC */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <weft/uv.h>

enum { JOBS = 20, WORK_MS = 30 };

static struct weft_uv *uv;
static struct weft_semaphore *places;
static struct weft_pool *printers;
static int produced;

static struct weft_promise *leave(void *ctx, void *nothing)
{
	(void)ctx, (void)nothing;
	weft_semaphore_release(places);
	return weft_promise_unit();
}

static struct weft_promise *work(void *ctx, void *nothing)
{
	(void)nothing;
	return weft_promise_bind(weft_uv_sleep(uv, WORK_MS), leave, ctx, NULL);
}

static struct weft_promise *print(void *ctx, void *printer)
{
	(void)ctx, (void)printer;
	return weft_uv_sleep(uv, WORK_MS);
}

static struct weft_promise *idle(void *ctx, void *nothing)
{
	(void)ctx, (void)nothing;
	return weft_uv_sleep(uv, 1);
}

/* Releases a place for each job, one at a time. */
static struct weft_promise *produce(void *ctx, void *nothing)
{
	(void)nothing;
	if (produced++ == JOBS)
		return weft_promise_unit();
	weft_semaphore_release(places);
	return weft_promise_bind(weft_uv_sleep(uv, WORK_MS), produce, ctx, NULL);
}

static struct weft_promise *make_printer(void *ctx)
{
	(void)ctx;
	return weft_promise_unit();
}

static void drop_printer(void *printer)
{
	(void)printer;
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "enough";
	const bool is_pool = !strcmp(fault, "pool");
	const bool is_signal = !strcmp(fault, "signal");
	struct weft_promise *jobs[JOBS + 1];
	uv = weft_uv_create(NULL);
	places = weft_semaphore_create(is_signal ? 0 : strcmp(fault, "one") ? JOBS : 1);
	printers = weft_pool_create(1, make_printer, NULL, drop_printer);
	for (int i = 0; i < JOBS; i++)
		jobs[i] = is_pool ? weft_pool_use(printers, print, NULL, NULL)
				  : weft_promise_bind(weft_semaphore_acquire(places), is_signal ? idle : work, NULL, NULL);
	jobs[JOBS] = is_signal ? weft_promise_bind(weft_uv_sleep(uv, WORK_MS), produce, NULL, NULL) : weft_promise_unit();
	struct weft_promise *all = weft_promise_join(jobs, JOBS + 1);
	weft_uv_run(uv, all, 0);
	weft_promise_unref(all);
	weft_pool_destroy(printers);
	weft_semaphore_destroy(places);
	weft_uv_destroy(uv);
	return 0;
}
