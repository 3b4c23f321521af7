/* uv_job_test.c: promises for look-ups of host names, and for functions on the thread pool.  SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <semaphore.h>

#include "tests/promise/uv_support.h"

static void getaddrinfo_resolves_an_address(void **state)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct weft_promise *p = ended(weft_uv_getaddrinfo(uv, "127.0.0.1", "80", &hints), 0);
	struct addrinfo *found = weft_promise_value(p);
	assert_int_equal(((struct sockaddr_in *)found->ai_addr)->sin_port, htons(80));
	weft_promise_unref(p);
	ends(weft_uv_getaddrinfo(uv, "not a number", NULL, &hints), UV_EAI_NONAME);
	ends(weft_uv_getaddrinfo(uv, NULL, NULL, NULL), UV_EINVAL);
}

/* ---- Work ---- */

struct work {
	pthread_t on;
	sem_t *go;
	int runs, destroyed, freed;
};

static void free_result(void *work)
{
	((struct work *)work)->freed++;
}

static void destroy_work(void *work)
{
	((struct work *)work)->destroyed++;
}

static struct weft_value work_on(void *ctx)
{
	struct work *work = ctx;
	work->on = pthread_self();
	work->runs++;
	while (work->go && sem_wait(work->go) != 0)
		;
	return (struct weft_value){work, free_result};
}

static void work_runs_on_another_thread(void **state)
{
	struct work work = {0};
	struct weft_promise *p = ended(weft_uv_work(uv, work_on, &work, destroy_work), 0);
	assert_ptr_equal(weft_promise_value(p), &work);
	assert_int_equal(work.runs, 1);
	assert_int_equal(work.destroyed, 1);
	assert_int_equal(work.freed, 0);
	assert_false(pthread_equal(work.on, pthread_self()));
	weft_promise_unref(p);
	assert_int_equal(work.freed, 1);
}

/* More jobs than the pool has OS threads: the last of them do not run yet. */
#define MANY 40

static void start_many(struct weft_promise **p, struct work *work, sem_t *go)
{
	sem_init(go, 0, 0);
	for (int i = 0; i < MANY; i++) {
		work[i] = (struct work){.go = go};
		p[i] = weft_uv_work(uv, work_on, &work[i], destroy_work);
	}
}

static void work_cancelled_before_its_start_does_not_run(void **state)
{
	struct weft_promise *p[MANY];
	struct work work[MANY];
	sem_t go;
	start_many(p, work, &go);
	for (int i = 0; i < MANY; i++)
		weft_promise_cancel(p[i]);
	for (int i = 0; i < MANY; i++)
		sem_post(&go);
	for (int i = 0; i < MANY; i++)
		ends(p[i], WEFT_PROMISE_CANCELLED);
	run_dry();
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(work[i].destroyed, 1);
		assert_int_equal(work[i].freed, work[i].runs);
	}
	assert_int_equal(work[MANY - 1].runs, 0);
	sem_destroy(&go);
}

static void destroy_waits_for_running_work(void **state)
{
	struct weft_promise *p[MANY];
	struct work work[MANY];
	sem_t go;
	start_many(p, work, &go);
	for (int i = 0; i < MANY; i++)
		sem_post(&go);
	weft_uv_destroy(uv);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(work[i].destroyed, 1);
		assert_int_equal(work[i].freed, work[i].runs);
		assert_int_equal(weft_promise_state(p[i]), WEFT_PENDING);
		weft_promise_cancel(p[i]);
		weft_promise_unref(p[i]);
	}
	sem_destroy(&go);
	uv = weft_uv_create(NULL);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_promises_of_work_and_getaddrinfo(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 200; n++) {
		struct work work = {0};
		allocations_left = n;
		struct weft_promise *all[] = {
		    weft_uv_getaddrinfo(uv, "127.0.0.1", NULL, NULL),
		    weft_uv_work(uv, work_on, &work, destroy_work),
		};
		run_dry();
		allocations_left = -1;
		whole = true;
		for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
			assert_int_not_equal(weft_promise_state(all[i]), WEFT_PENDING);
			whole &= weft_promise_state(all[i]) == WEFT_RESOLVED;
			weft_promise_unref(all[i]);
		}
		assert_int_equal(work.destroyed, 1);
		assert_int_equal(work.freed, work.runs);
		weft_promise_trim();
	}
	assert_true(whole && n > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(getaddrinfo_resolves_an_address, begin, end),
	    cmocka_unit_test_setup_teardown(work_runs_on_another_thread, begin, end),
	    cmocka_unit_test_setup_teardown(work_cancelled_before_its_start_does_not_run, begin, end),
	    cmocka_unit_test_setup_teardown(destroy_waits_for_running_work, begin, end),
	    cmocka_unit_test_setup_teardown(failed_allocation_fails_promises_of_work_and_getaddrinfo, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
