/* uv_test.c: promises on a libuv loop.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <weft/uv.h>

#include "tests/allocations.h"

static struct weft_promise *turn(void *ctx, void *nothing)
{
	int *left = ctx;
	return --*left == 0 ? weft_promise_unit() : weft_promise_bind(weft_promise_pause(), turn, left, NULL);
}

static int code_of(const struct weft_promise *p)
{
	assert_int_equal(weft_promise_state(p), WEFT_FAILED);
	return weft_promise_failure(p)->code;
}

static struct weft_promise *expect_resolved(void *earlier, void *nothing)
{
	assert_int_equal(weft_promise_state(earlier), WEFT_RESOLVED);
	return weft_promise_unit();
}

/* The shorter sleep ends first, also if the machine is so busy that both are due in one iteration of the loop. */
static void sleeps_end_in_order(void **state)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	struct weft_promise *late = weft_uv_sleep(uv, 20), *soon = weft_uv_sleep(uv, 1);
	late = weft_promise_bind(late, expect_resolved, soon, NULL);
	assert_int_equal(weft_uv_run(uv, late, 0), WEFT_OK);
	weft_promise_unref(late);
	weft_promise_unref(soon);
	weft_uv_destroy(uv);
}

static void paused_promise_continues(void **state)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	int left = 1000;
	struct weft_promise *p = turn(&left, NULL);
	assert_int_equal(weft_uv_run(uv, p, 0), WEFT_OK);
	assert_int_equal(left, 0);
	weft_promise_unref(p);
	/* A promise also continues if it pauses for the first time after a sleep, in an iteration of the loop. */
	left = 1000;
	p = weft_promise_bind(weft_uv_sleep(uv, 1), turn, &left, NULL);
	assert_int_equal(weft_uv_run(uv, p, 0), WEFT_OK);
	assert_int_equal(left, 0);
	weft_promise_unref(p);
	weft_uv_destroy(uv);
}

static void timeout_cancels_the_promise(void **state)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	struct weft_promise *slow = weft_uv_sleep(uv, 3600 * 1000);
	struct weft_promise *p = weft_uv_with_timeout(uv, 1, weft_promise_ref(slow));
	assert_int_equal(weft_uv_run(uv, p, 0), WEFT_OK);
	assert_int_equal(code_of(p), WEFT_PROMISE_TIMEOUT);
	assert_int_equal(code_of(slow), WEFT_PROMISE_CANCELLED);
	weft_promise_unref(p);
	weft_promise_unref(slow);
	/* A promise that ends before its timeout cancels the timer, so the loop is empty. */
	struct weft_promise *quick = weft_uv_with_timeout(uv, 3600 * 1000, weft_uv_sleep(uv, 1));
	assert_int_equal(weft_uv_run(uv, quick, 0), WEFT_OK);
	assert_int_equal(weft_promise_state(quick), WEFT_RESOLVED);
	struct weft_resolver *resolver;
	struct weft_promise *never = weft_promise_wait(&resolver);
	while (uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT) != 0)
		;
	assert_int_equal(weft_uv_run(uv, never, 0), WEFT_ENOTFOUND);
	assert_int_equal(weft_uv_run(uv, never, 1), WEFT_ENOTFOUND);
	struct weft_promise *still = weft_uv_sleep(uv, 3600 * 1000);
	assert_int_equal(weft_uv_run(uv, never, 1), WEFT_EBUSY);
	weft_promise_unref(still);
	weft_promise_unref(quick);
	weft_promise_unref(never);
	weft_resolver_drop(resolver);
	weft_uv_destroy(uv); /* `still` stays pending, although the destroy ends its operation */
}

static void promises_run_on_an_existing_loop(void **state)
{
	uv_loop_t loop;
	assert_int_equal(uv_loop_init(&loop), 0);
	struct weft_uv *uv = weft_uv_create(&loop);
	struct weft_promise *p = weft_uv_sleep(uv, 1);
	assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
	assert_int_equal(weft_promise_state(p), WEFT_RESOLVED);
	weft_promise_unref(p);
	weft_uv_destroy(uv);
	assert_int_equal(uv_loop_close(&loop), 0);
}

static struct weft_promise *back(void *sleep, void *nothing)
{
	return sleep;
}

/* The destroy has ended the operation that the cancel would stop. */
static void promises_can_be_cancelled_after_destroy(void **state)
{
	struct weft_uv *uv = weft_uv_create(NULL);
	struct weft_promise *sleep = weft_uv_sleep(uv, 3600 * 1000), *inner = weft_uv_sleep(uv, 3600 * 1000);
	struct weft_promise *bound = weft_promise_bind(weft_promise_pause(), back, inner, NULL);
	weft_promise_wakeup_paused();
	weft_uv_destroy(uv);
	weft_promise_cancel(sleep);
	weft_promise_cancel(bound);
	assert_int_equal(code_of(sleep), WEFT_PROMISE_CANCELLED);
	assert_int_equal(code_of(bound), WEFT_PROMISE_CANCELLED);
	weft_promise_unref(sleep);
	weft_promise_unref(bound);
}

static int free_memory(void **state)
{
	weft_promise_trim();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sleeps_end_in_order),
	    cmocka_unit_test(paused_promise_continues),
	    cmocka_unit_test(timeout_cancels_the_promise),
	    cmocka_unit_test(promises_run_on_an_existing_loop),
	    cmocka_unit_test(promises_can_be_cancelled_after_destroy),
	};
	return cmocka_run_group_tests(tests, NULL, free_memory);
}
