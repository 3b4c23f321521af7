/* promise_loop.c: the iteration of the reference's benchmark: a wait, a task, a bind over a bind, two wakeups and a counter.
 *
 * It is compiled twice together with the promises, once with WEFT_DISABLE, into modules that promise.c loads side by side.
 * SPDX-License-Identifier: ISC */
#include "bench/promise.h"

#include <weft/promise.h>

static struct weft_counter counter = WEFT_PROMISE_COUNTER("counter", 0);

static struct weft_promise *return_task(void *ctx, void *nothing)
{
	return weft_promise_ref(ctx);
}

static struct weft_promise *return_unit(void *ctx, void *nothing)
{
	return weft_promise_unit();
}

static void run_iteration(
    struct weft_promise *first, struct weft_promise *task, struct weft_resolver *w1, struct weft_resolver *w2)
{
	struct weft_promise *p = weft_promise_bind(first, return_task, task, NULL);
	weft_wakeup(w1, NULL, NULL);
	weft_wakeup(w2, NULL, NULL);
	weft_counter_increase(&counter, 1);
	weft_promise_unref(weft_promise_bind(p, return_unit, NULL, NULL));
	weft_promise_unref(task);
}

BENCH_EXPORT void bench_plain(unsigned count)
{
	struct weft_resolver *w1, *w2;
	while (count-- > 0) {
		struct weft_promise *first = weft_promise_wait(&w1), *task = weft_promise_task(&w2);
		run_iteration(first, task, w1, w2);
	}
}

BENCH_EXPORT void bench_named(unsigned count)
{
	struct weft_resolver *w1, *w2;
	while (count-- > 0) {
		struct weft_promise *first = weft_promise_named_wait("Bob", &w1), *task = weft_promise_named_task("Fred", &w2);
		run_iteration(first, task, w1, w2);
	}
}

BENCH_EXPORT void bench_start(const char *directory)
{
	struct weft_record_options options = {.directory = directory, .overwrite = true, .size_bytes = 1 << 20};
	if (weft_start(&options) != WEFT_OK)
		fatal("%s", weft_start_error());
	bench_plain(10000); /* fills the ring once, so that its pages are mapped */
}

BENCH_EXPORT void bench_stop(void)
{
	weft_stop();
}

BENCH_EXPORT uint32_t bench_events(void)
{
#ifdef WEFT_DISABLE
	return 0;
#else
	return (uint32_t)(weft__stream->next >> 32);
#endif
}
