/* queue.c FAULT: twenty jobs in weft's promises that need a place of a semaphore for 30 ms each.
 *
 *   one     there is one place
 *   pool    the same with a pool of one object
 *   enough  there are twenty places
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
	struct weft_promise *jobs[JOBS];
	uv = weft_uv_create(NULL);
	places = weft_semaphore_create(strcmp(fault, "one") ? JOBS : 1);
	printers = weft_pool_create(1, make_printer, NULL, drop_printer);
	for (int i = 0; i < JOBS; i++)
		jobs[i] = is_pool ? weft_pool_use(printers, print, NULL, NULL)
				  : weft_promise_bind(weft_semaphore_acquire(places), work, NULL, NULL);
	struct weft_promise *all = weft_promise_join(jobs, JOBS);
	weft_uv_run(uv, all, 0);
	weft_promise_unref(all);
	weft_pool_destroy(printers);
	weft_semaphore_destroy(places);
	weft_uv_destroy(uv);
	return 0;
}
