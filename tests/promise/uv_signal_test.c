/* uv_signal_test.c: promises for signals, which the test sends to itself.  SPDX-License-Identifier: ISC */
#include <signal.h>

#include "tests/promise/uv_support.h"

static bool is_default(int number)
{
	struct sigaction now;
	assert_int_equal(sigaction(number, NULL, &now), 0);
	return now.sa_handler == SIG_DFL;
}

static void next_signal_resolves_the_promise(void **state)
{
	struct weft_promise *p = weft_uv_signal(uv, SIGUSR1);
	assert_int_equal(weft_promise_state(p), WEFT_PENDING);
	raise(SIGUSR1);
	ends(p, 0);
	run_dry();
	assert_true(is_default(SIGUSR1));
	cancelled(weft_uv_signal(uv, SIGUSR1));
	run_dry();
	assert_true(is_default(SIGUSR1));
	ends(weft_uv_signal(uv, SIGKILL), UV_EINVAL);
	ends(weft_uv_signal(uv, 1000), UV_EINVAL);
}

static void consecutive_signals_are_received(void **state)
{
	struct weft_promise *all = ended(weft_uv_signals(uv, SIGUSR1), 0);
	struct weft_uv_signals *signals = weft_uv_signals_ref(weft_promise_value(all));
	weft_promise_unref(all);
	struct weft_promise *p = weft_uv_signals_next(signals);
	ends(weft_uv_signals_next(signals), UV_EBUSY);
	raise(SIGUSR1);
	ends(p, 0);
	cancelled(weft_uv_signals_next(signals));
	/* Two signals without a waiter count as one. */
	raise(SIGUSR1);
	raise(SIGUSR1);
	while (uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT))
		;
	ends(weft_uv_signals_next(signals), 0);
	p = weft_uv_signals_next(signals);
	while (weft_promise_state(p) == WEFT_PENDING && weft_uv_run(uv, p, 1) == WEFT_OK)
		;
	assert_int_equal(weft_promise_state(p), WEFT_PENDING);
	weft_uv_signals_unref(signals);
	raise(SIGUSR1);
	ends(p, 0);
	ends(weft_uv_signals(uv, SIGKILL), UV_EINVAL);
}

static void signal_ends_a_pick(void **state)
{
	struct weft_promise *either[] = {weft_uv_sleep(uv, 3600 * 1000), weft_uv_signal(uv, SIGTERM)};
	struct weft_promise *p = weft_promise_pick(either, 2);
	raise(SIGTERM);
	ends(p, 0);
}

static void destroy_ends_signal_wait(void **state)
{
	struct weft_promise *p = weft_uv_signal(uv, SIGUSR1);
	weft_uv_destroy(uv);
	assert_true(is_default(SIGUSR1));
	assert_int_equal(weft_promise_state(p), WEFT_PENDING);
	weft_promise_cancel(p);
	weft_promise_unref(p);
	begin(state);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_the_promise_of_a_signal(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 50; n++) {
		allocations_left = n;
		struct weft_promise *p = weft_uv_signal(uv, SIGUSR1);
		allocations_left = -1;
		whole = weft_promise_state(p) == WEFT_PENDING;
		if (!whole)
			assert_int_equal(weft_promise_failure(p)->code, WEFT_PROMISE_ENOMEM);
		weft_promise_cancel(p);
		weft_promise_unref(p);
		weft_promise_trim();
	}
	assert_true(whole && n > 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(next_signal_resolves_the_promise),
	    TEST(consecutive_signals_are_received),
	    TEST(signal_ends_a_pick),
	    TEST(destroy_ends_signal_wait),
	    TEST(failed_allocation_fails_the_promise_of_a_signal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
