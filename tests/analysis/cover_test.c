/* cover_test.c: a finding is left out only if the one that explains it is printed and names its promise; one test for each rule.
 * SPDX-License-Identifier: ISC */
#include "findings.h"

static size_t count_of(enum weft_finding_kind kind)
{
	size_t count = 0;
	for (size_t i = 0; i < findings->count; i++)
		count += findings->findings[i].kind == kind;
	return count;
}

/* Checks that the promise has no finding of kind `covered`, and that one of kind `by` is printed and names the promise. */
static void assert_covered(enum weft_finding_kind covered, weft_id promise, enum weft_finding_kind by)
{
	bool is_named = false;
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *f = &findings->findings[i];
		if (f->kind == covered && covered != by)
			assert_int_not_equal(model->promises[f->promise].id, promise);
		if (f->kind != by)
			continue;
		is_named |= model->promises[f->promise].id == promise || model->promises[f->root].id == promise;
		for (size_t e = 0; e < f->evidence_count; e++)
			is_named |= f->evidence[e].promise != WEFT_NONE && model->promises[f->evidence[e].promise].id == promise;
	}
	if (!is_named)
		fail_msg("no %s names the promise of the %s", weft_finding_name(by), weft_finding_name(covered));
}

/* A loop with a timer that is called back. */
static struct {
	weft_id loop, timer;
} desk;

static void begin_desk(void)
{
	start_recording();
	desk.loop = begin_loop(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()));
	weft_run(desk.loop);
	desk.timer = weft_create(desk.loop, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(MS);
	weft_run(desk.timer);
}

/* The thread closes the cycle of waits, so the deadlock is reported for the thread, and the callback is a member of the cycle. */
static void deadlock_covers_the_stall_of_a_member(void **state)
{
	begin_desk();
	weft_id ping = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE()),
		first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE()),
		second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_hold(ping, first);
	weft_hold(desk.timer, second);
	weft_await(desk.timer, first);
	now_ns += MS;
	weft_await(ping, second);
	WEFT_PAUSE_BEGIN("blocked in pthread_mutex_lock");
	now_ns += 3000 * MS;
	WEFT_NOTE(ping, "waits");
	explain(false);
	assert_int_equal(count_of(WEFT_FINDING_STALL), 0);
	assert_covered(WEFT_FINDING_STALL, desk.timer, WEFT_FINDING_DEADLOCK);
	forget();
}

/* Without the deadlock, the stall of the same callback is reported. */
static void stall_is_reported_if_no_finding_covers_it(void **state)
{
	begin_desk();
	WEFT_PAUSE_BEGIN("blocked in usleep");
	now_ns += 3000 * MS;
	WEFT_NOTE(desk.timer, "sleeps");
	explain(false);
	assert_int_equal(count_of(WEFT_FINDING_STALL), 1);
	assert_covered(WEFT_FINDING_CRASH, desk.timer, WEFT_FINDING_STALL);
	forget();
}

static void spin_covers_the_stall_of_its_calls(void **state)
{
	begin_desk();
	weft_id idle = weft_create(desk.loop, WEFT_KIND_HANDLE, WEFT_SITE()), late[2];
	for (int i = 0; i < 2; i++) {
		late[i] = weft_create(desk.loop, WEFT_KIND_TASK, WEFT_SITE());
		weft_await(desk.timer, late[i]);
	}
	weft_resolve(WEFT_SYSTEM_ID, late[0]);
	weft_run(desk.loop);
	for (uint64_t told = 1024; told <= 65536; told *= 2) {
		now_ns += told * 1000;
		weft_spins(idle, told);
	}
	weft_run(desk.timer);
	weft_read(desk.timer, late[0]);
	weft_run(desk.loop);
	sleep_for(MS);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_STALL), 0);
	assert_covered(WEFT_FINDING_STALL, idle, WEFT_FINDING_SPIN);
	forget();
}

/* Records 31 fetches of 1 ms.  While `busy` runs for 300 ms, the last fetch is ready and has to wait. */
static weft_id fetch_all(weft_id busy)
{
	weft_id fetch = 0;
	for (int i = 0; i < 31; i++) {
		fetch = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		WEFT_LABEL(fetch, "fetch");
		weft_id input = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_await(fetch, input);
		weft_resolve(WEFT_SYSTEM_ID, input);
		weft_run(i == 30 ? busy : desk.loop);
		now_ns += i == 30 ? 300 * MS : MS;
		weft_run(fetch);
		weft_read(fetch, input);
		weft_resolve(fetch, fetch);
		sleep_for(MS);
	}
	return fetch;
}

static void stall_covers_the_slow_promise_delayed_by_it(void **state)
{
	begin_desk();
	const weft_id fetch = fetch_all(desk.timer);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 0);
	assert_covered(WEFT_FINDING_SLOW, fetch, WEFT_FINDING_STALL);
	forget();
}

static weft_id page, query;

/* A query of another thread, 300 ms long, while the page computes. */
static void begin_query(void)
{
	weft_run(query);
}

static void end_query(void)
{
	weft_resolve(query, query);
	sleep_for(MS);
}

/* Two slow promises at the same time do not explain each other, unless one waited for the other. */
static void slow_promises_at_the_same_time_are_both_reported(void **state)
{
	start_recording();
	begin_other_thread();
	for (int i = 0; i < 31; i++) {
		page = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		WEFT_LABEL(page, "page");
		query = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		WEFT_LABEL(query, "query");
		weft_run(page);
		on_other_thread(begin_query);
		now_ns += i == 30 ? 300 * MS : MS;
		weft_resolve(page, page);
		on_other_thread(end_query);
		sleep_for(MS);
	}
	on_other_thread(NULL);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 2);
	assert_covered(WEFT_FINDING_STALL, page, WEFT_FINDING_SLOW);
	assert_covered(WEFT_FINDING_STALL, query, WEFT_FINDING_SLOW);
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(deadlock_covers_the_stall_of_a_member),
	    cmocka_unit_test(stall_is_reported_if_no_finding_covers_it),
	    cmocka_unit_test(spin_covers_the_stall_of_its_calls),
	    cmocka_unit_test(stall_covers_the_slow_promise_delayed_by_it),
	    cmocka_unit_test(slow_promises_at_the_same_time_are_both_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
