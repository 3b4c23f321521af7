/* path_test.c: critical paths of generated programs.  The generator notes each step of the path that it writes, and adds promises
 * that do not affect it. SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "analysis/index/path.h"
#include "analysis/index/requests.h"
#include "analysis/queries/flame_stacks.h"
#include "analysis/queries/promise_info.h"
#include "analysis/queries/waits.h"

enum { STEPS = 200, PROGRAMS = 300 };

static uint64_t buffer[(1u << 20) / 8];
static uint64_t seed_state, now_ns;

static uint64_t between(uint64_t least, uint64_t most)
{
	uint64_t z = seed_state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return least + (z ^ (z >> 31)) % (most - least + 1);
}

/* Each event takes 1 ns, so that no two events have the same time. */
static uint64_t read_clock(void)
{
	return ++now_ns;
}

static struct expected {
	enum weft_step_kind kind;
	weft_id promise;
	uint64_t start_ns;
} expected[STEPS];
static size_t expected_count;
static uint64_t trace_start_ns;

/* Expects that a step of the path starts with the next event. */
static void expect_step(enum weft_step_kind kind, weft_id promise)
{
	struct expected *last = expected_count ? &expected[expected_count - 1] : NULL;
	if (last && last->kind == kind && last->promise == promise)
		return;
	assert_true(expected_count < STEPS);
	expected[expected_count++] = (struct expected){kind, promise, now_ns - trace_start_ns};
}

static void pass(void)
{
	now_ns += between(10, 5000);
}

/* Records runs of other promises, which have no effect on the path. */
static void noise(void)
{
	for (uint64_t i = between(0, 3); i > 0; i--) {
		weft_id p = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, NULL);
		weft_run(p);
		pass();
		weft_id q = weft_create(p, WEFT_KIND_TASK, NULL);
		weft_await(p, q);
		weft_run(WEFT_SYSTEM_ID);
		pass();
		if (between(0, 1))
			weft_resolve(WEFT_SYSTEM_ID, q);
	}
}

/* `worker` runs, creates a timer and awaits it.  The system resolves the timer; then `worker` reads it and runs on. */
static void wait_outside(weft_id worker)
{
	weft_id task = weft_create(worker, WEFT_KIND_TIMER, NULL);
	expect_step(WEFT_STEP_WAITING, task);
	pass();
	weft_await(worker, task);
	weft_run(WEFT_SYSTEM_ID);
	noise();
	weft_idle(WEFT_IDLE_WAIT);
	pass();
	weft_resume(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, task);
	expect_step(WEFT_STEP_READY, worker);
	noise();
	pass();
	weft_read(worker, task);
	expect_step(WEFT_STEP_RUNNING, worker);
	pass();
}

/* `worker` creates another promise and awaits it; the other promise works and ends with a value. */
static void wait_for_other(weft_id worker, int depth)
{
	weft_id other = weft_create(worker, WEFT_KIND_BIND, NULL);
	weft_await(worker, other);
	/* A signal starts the other promise. */
	weft_signal(worker, other);
	expect_step(WEFT_STEP_RUNNING, other);
	pass();
	for (uint64_t i = between(0, 2); i > 0; i--)
		if (depth > 0 && between(0, 1))
			wait_for_other(other, depth - 1);
		else
			wait_outside(other);
	weft_resolve(other, other);
	expect_step(WEFT_STEP_RUNNING, other); /* the other promise runs on until `worker` reads its result */
	/* Until then, `worker` is ready while other promises run. */
	expect_step(WEFT_STEP_READY, worker);
	pass();
	noise();
	weft_read(worker, other);
	expect_step(WEFT_STEP_RUNNING, worker);
	pass();
}

static struct weft_model *read_model(struct weft_trace **trace)
{
	struct weft_model *model = NULL;
	struct weft_error err;
	assert_int_equal(weft_trace_open_memory(trace, buffer, sizeof buffer, "path", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, *trace, &(struct weft_model_options){.keep_binds = true}, &err), WEFT_OK);
	return model;
}

static void test_critical_path_of_a_known_program_is_found(void **state)
{
	for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
		seed_state = seed;
		now_ns = trace_start_ns = 5000;
		expected_count = 0;
		memset(buffer, 0, sizeof buffer);
		struct weft_record_options options = {
		    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
		assert_int_equal(weft_start(&options), WEFT_OK);
		trace_start_ns = now_ns + 1;
		weft_run(WEFT_SYSTEM_ID);
		noise();
		weft_id worker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, NULL);
		weft_run(worker);
		pass();
		weft_id whole = weft_create(worker, WEFT_KIND_REQUEST, NULL);
		uint64_t whole_ns = now_ns - trace_start_ns;
		expect_step(WEFT_STEP_RUNNING, worker);
		for (uint64_t i = between(1, 6); i > 0; i--)
			if (between(0, 1))
				wait_outside(worker);
			else
				wait_for_other(worker, 3);
		weft_resolve(worker, whole);
		uint64_t end_ns = now_ns - trace_start_ns;
		noise();
		weft_stop();

		struct weft_trace *trace = NULL;
		struct weft_model *model = read_model(&trace);
		struct weft_path *path = NULL;
		uint32_t p = weft_model_find(model, whole);
		assert_int_equal(weft_path_create(&path, model, p, NULL), WEFT_OK);
		expected[0].start_ns = whole_ns;
		assert_int_equal(path->count, expected_count);
		int64_t sum_ns = 0;
		for (size_t i = 0; i < path->count; i++) {
			const struct weft_path_step *s = &path->steps[i];
			assert_int_equal(s->kind, expected[i].kind);
			assert_int_equal(model->promises[s->promise].id, expected[i].promise);
			assert_int_equal(s->start_ns, expected[i].start_ns);
			assert_int_equal(s->end_ns, i + 1 < path->count ? expected[i + 1].start_ns : end_ns);
			sum_ns += s->end_ns - s->start_ns;
		}
		assert_int_equal(sum_ns, end_ns - whole_ns);
		assert_int_equal(path->total_ns[0] + path->total_ns[1] + path->total_ns[2], sum_ns);
		weft_path_destroy(path);
		weft_model_destroy(model);
		weft_trace_close(trace);
	}
}

/* A connection closes while its second read is pending, as in node.  Its path names its wait for the first read, and not the
 * loop, which ran before the close.
 */
static void test_path_of_a_connection_closed_during_a_read_names_the_ended_read(void **state)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOOP, NULL);
	weft_run(loop);
	weft_id connection = weft_create(loop, WEFT_KIND_CONNECTION, NULL),
		first = weft_create(connection, WEFT_KIND_STREAM_READ, NULL);
	weft_await(connection, first);
	weft_run(loop);
	now_ns += 100;
	weft_run(WEFT_SYSTEM_ID);
	now_ns += 1000000;
	weft_resolve(WEFT_SYSTEM_ID, first);
	weft_read(connection, first);
	now_ns += 100;
	weft_await(connection, weft_create(connection, WEFT_KIND_STREAM_READ, NULL));
	weft_run(loop);
	weft_resolve(loop, first + 1);
	weft_resolve(connection, connection);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_path *path = NULL;
	assert_int_equal(weft_path_create(&path, model, weft_model_find(model, connection), NULL), WEFT_OK);
	size_t longest = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i], *most = &path->steps[longest];
		assert_int_not_equal(model->promises[s->promise].id, loop);
		longest = s->end_ns - s->start_ns > most->end_ns - most->start_ns ? i : longest;
	}
	assert_int_equal(model->promises[path->steps[longest].promise].id, first);
	assert_int_equal(path->steps[longest].kind, WEFT_STEP_WAITING);
	weft_path_destroy(path);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* Records a new connection with a pending read. */
static weft_id open_connection(const char *text, weft_id *read)
{
	const weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, NULL);
	weft__slow_detail(id, WEFT_DETAIL_CONNECTION, 0, text);
	*read = weft_create(id, WEFT_KIND_STREAM_READ, NULL);
	weft_await(id, *read);
	return id;
}

/* Bytes arrive on a connection: its pending read ends, and it starts the next read. */
static void come(weft_id loop, weft_id id, weft_id *read, uint64_t position, int64_t at_ns)
{
	weft_idle(false);
	now_ns = at_ns;
	weft_run(loop);
	weft_received(id, position);
	weft_resolve(WEFT_SYSTEM_ID, *read);
	weft_read(id, *read);
	*read = weft_create(id, WEFT_KIND_STREAM_READ, NULL);
	weft_await(id, *read);
	now_ns += 10;
	weft_run(loop);
}

/* While its program waits for the answer of another server, a pending read counts as a wait for that server; after the answer, as
 * a wait for its own peer. */
static void test_pending_read_waits_for_the_queried_peer(void **state)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id read, answer, loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOOP, NULL);
	weft_run(loop);
	weft_id client = open_connection("tcp 1.1.1.1:80 2.2.2.2:50000 0", &read);
	weft_id store = open_connection("tcp 1.1.1.1:50001 3.3.3.3:6379 0", &answer);
	come(loop, client, &read, 10, 1000000);
	const weft_id asked_about = read;
	weft_run(client);
	weft_sent(store, 5);
	now_ns += 10;
	weft_run(loop);
	come(loop, store, &answer, 7, 91000000);
	weft_run(store);
	weft_sent(client, 20);
	now_ns += 10;
	weft_run(loop);
	come(loop, client, &read, 20, 101000000);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_path *path = NULL;
	assert_int_equal(weft_path_create(&path, model, weft_model_find(model, asked_about), NULL), WEFT_OK);
	int64_t for_store_ns = 0, for_client_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		if (s->connection == WEFT_NONE)
			continue;
		const bool is_store = model->promises[s->connection].id == store;
		assert_int_equal(s->kind, WEFT_STEP_WAITING);
		assert_int_equal(s->is_asked, is_store);
		*(is_store ? &for_store_ns : &for_client_ns) += s->end_ns - s->start_ns;
	}
	assert_in_range(for_store_ns, 89990000, 90000000);
	assert_in_range(for_client_ns, 9990000, 10000000);
	weft_path_destroy(path);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* Records the read of a file while 40 tasks run for 3 ms each, without a sleep.  If `polls` is true, the loop polls between the
 * tasks, and gets bytes.  Returns the longest step of the path of the read. */
static struct weft_path_step read_file_in_busy_loop(bool polls, bool *is_whole)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id answer, read, loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOOP, NULL);
	weft_run(loop);
	weft_id store = open_connection("tcp 1.1.1.1:50001 3.3.3.3:6379 0", &answer),
		client = open_connection("tcp 1.1.1.1:80 2.2.2.2:50000 0", &read);
	weft_sent(store, 5);
	weft_id file = weft_create(loop, WEFT_KIND_FS, NULL);
	for (int i = 0; i < 40; i++) {
		weft_run(weft_create(loop, WEFT_KIND_TASK, NULL));
		now_ns += 3000000;
		weft_run(loop);
		if (!polls)
			continue;
		weft_run(WEFT_SYSTEM_ID);
		weft_resolve(WEFT_SYSTEM_ID, read);
		read = weft_create(client, WEFT_KIND_STREAM_READ, NULL);
	}
	weft_run(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, file);
	weft_idle(WEFT_IDLE_WAIT); /* one sleep of the thread, which shows that the trace records sleeps */
	now_ns += 1000000;
	weft_run(loop);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_path *path = NULL;
	const uint32_t p = weft_model_find(model, file);
	assert_int_equal(weft_path_create(&path, model, p, NULL), WEFT_OK);
	struct weft_path_step longest = path->steps[0];
	for (size_t i = 1; i < path->count; i++)
		if (path->steps[i].end_ns - path->steps[i].start_ns > longest.end_ns - longest.start_ns)
			longest = path->steps[i];
	assert_int_equal(model->promises[longest.promise].id, file);
	assert_int_equal(longest.kind, WEFT_STEP_WAITING);
	/* The store owes an answer during this step, but the read of a file does not wait for a store. */
	assert_null(weft_request_during(model, p, longest.start_ns, longest.end_ns));
	assert_non_null(weft_request_during(model, weft_model_find(model, loop), longest.start_ns, longest.end_ns));
	*is_whole = path->count == 1;
	weft_path_destroy(path);
	weft_model_destroy(model);
	weft_trace_close(trace);
	return longest;
}

/* A loop that runs 40 tasks in one iteration sees the end of a read late, although no task runs for long.  A loop that polls
 * between the tasks sees the end of the read in time. */
static void test_busy_loop_iteration_delays_a_file_request(void **state)
{
	bool is_whole;
	struct weft_path_step late = read_file_in_busy_loop(false, &is_whole);
	assert_true(is_whole);
	assert_int_not_equal(late.delayed_by, WEFT_NONE);
	assert_true(late.is_behind_more);
	assert_int_equal(read_file_in_busy_loop(true, &is_whole).delayed_by, WEFT_NONE);
}

/* A signal to a handle wakes its loop: the handle is ready from the signal on, not from its last run on.  A promise whose OS
 * thread sleeps is waiting and not ready, even if no input of the promise is known. */
static void test_handle_is_ready_from_its_signal_on(void **state)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id handle = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, NULL),
		worker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, NULL);
	weft_run(worker);
	now_ns += 1000;
	weft_run(handle);
	now_ns += 1000;
	weft_id task = weft_create(handle, WEFT_KIND_TASK, NULL);
	weft_idle(WEFT_IDLE_WAIT);
	now_ns += 50000000;
	weft_run(worker);
	now_ns += 2000;
	weft_signal_only(worker, handle);
	now_ns += 300;
	weft_run(handle);
	now_ns += 40;
	weft_resolve(handle, task);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_path *path = NULL;
	assert_int_equal(weft_path_create(&path, model, weft_model_find(model, task), NULL), WEFT_OK);
	const struct {
		enum weft_step_kind kind;
		weft_id promise;
		int64_t least_ns;
	} steps[] = {{WEFT_STEP_WAITING, worker, 50000000}, {WEFT_STEP_RUNNING, worker, 2000}, {WEFT_STEP_READY, handle, 300},
	    {WEFT_STEP_RUNNING, handle, 40}};
	assert_int_equal(path->count, sizeof steps / sizeof *steps);
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		assert_int_equal(s->kind, steps[i].kind);
		assert_int_equal(s->promise == WEFT_SYSTEM ? WEFT_SYSTEM_ID : model->promises[s->promise].id, steps[i].promise);
		assert_in_range(s->end_ns - s->start_ns, steps[i].least_ns, steps[i].least_ns + 10);
	}
	weft_path_destroy(path);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* A timer that its callback starts again, as the timer of a node process, waits from the end of this callback on. */
static void test_restarted_timer_waits_since_its_last_callback(void **state)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOOP, NULL);
	weft_run(loop);
	weft_id task = weft_create(loop, WEFT_KIND_TASK, NULL), timer = weft_create(loop, WEFT_KIND_TIMER, NULL);
	for (int i = 0; i < 2; i++) {
		weft_idle(false);
		now_ns += 50000000;
		weft_run(loop);
		weft_signal(WEFT_SYSTEM_ID, timer);
		now_ns += 1000;
		if (i == 0)
			weft_run(loop);
	}
	weft_resolve(timer, task);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_path *path = NULL;
	assert_int_equal(weft_path_create(&path, model, weft_model_find(model, task), NULL), WEFT_OK);
	int64_t waited_ns = 0;
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		if (s->kind == WEFT_STEP_WAITING) {
			assert_int_equal(model->promises[s->promise].id, timer);
			waited_ns += s->end_ns - s->start_ns;
		}
	}
	assert_in_range(waited_ns, 100000000, 100000100);
	weft_path_destroy(path);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* The steps of each path of a random trace cover the time from the creation of the promise to its end without a gap, and the
 * blame of the path adds up to the same time. */
/* Returns the total time of all frames with this name.  No such frame is below another one. */
static int64_t sum_of_frame(const struct weft_stacks *stacks, const char *name)
{
	int64_t sum_ns = 0;
	for (uint32_t i = 1; i < stacks->count; i++)
		sum_ns += strcmp(weft_stack_name(stacks, i), name) == 0 ? stacks->stacks[i].sum_ns : 0;
	return sum_ns;
}

/* Waits for a lock count for the lock, not for its former holder.  A callback gives up a wait after 3 ms; another wait lasts
 * until its waiter ends, and only this one is open. */
static void test_released_holder_leaves_the_chain_of_waits(void **state)
{
	now_ns = 5000;
	memset(buffer, 0, sizeof buffer);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_id holder = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, NULL),
		lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, NULL),
		timer = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, NULL),
		last = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, NULL);
	WEFT_LABEL(holder, "holder");
	WEFT_LABEL(lock, "lock");
	WEFT_LABEL(timer, "alarm");
	WEFT_LABEL(last, "last");
	now_ns = 1000000000;
	weft_hold(holder, lock);
	weft_resolve(WEFT_SYSTEM_ID, timer);
	weft_run(timer);
	weft_await(timer, lock);
	weft_idle(WEFT_IDLE_WAIT);
	now_ns += 3000000;
	weft_release(holder, lock);
	weft_resume(timer);
	weft_awaits_no_more(timer, lock);
	weft_run(WEFT_SYSTEM_ID);
	now_ns = 9000000000;
	weft_await(last, lock);
	now_ns = 9500000000;
	weft_resolve(WEFT_SYSTEM_ID, last);
	now_ns = 10000000000;
	weft_run(holder);
	weft_stop();
	struct weft_trace *trace = NULL;
	struct weft_model *model = read_model(&trace);
	struct weft_stacks *stacks = NULL;
	assert_int_equal(weft_stacks_create(&stacks, model, WEFT_FOLDED_BY_WAIT, false, NULL), WEFT_OK);
	assert_in_range(sum_of_frame(stacks, "lock"), 503000000, 503001000);
	assert_in_range(sum_of_frame(stacks, "last"), 9499990000, 9500000000);
	assert_in_range(sum_of_frame(stacks, "holder"), 9999990000, 10000000000);
	assert_in_range(weft_stack_time(stacks, weft_model_find(model, lock)), 503000000, 503001000);
	weft_stacks_destroy(stacks);
	struct weft_promise_info *info = NULL;
	struct weft_related_promise waiters[3], held[2];
	assert_int_equal(weft_promise_info_create(&info, model, NULL), WEFT_OK);
	const uint32_t p = weft_model_find(model, lock);
	assert_int_equal(weft_promise_info_list(info, p, WEFT_RELATION_AWAITED_BY, 0, waiters, 3), 2);
	assert_int_equal(model->promises[waiters[0].promise].id, timer);
	assert_false(waiters[0].is_open);
	assert_true(waiters[1].is_open);
	assert_int_equal(weft_promise_info_list(info, p, WEFT_RELATION_AWAITS, 0, held, 2), 1);
	assert_false(held[0].is_open);
	weft_promise_info_destroy(info);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

static void test_path_of_random_trace_is_gapless(void **state)
{
	for (uint64_t seed = 1; seed <= 50; seed++) {
		seed_state = seed;
		now_ns = 5000;
		memset(buffer, 0, sizeof buffer);
		struct weft_record_options options = {
		    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = read_clock, .clock_hz = 1000000000};
		assert_int_equal(weft_start(&options), WEFT_OK);
		weft_id ids[40] = {WEFT_SYSTEM_ID};
		size_t count = 1;
		for (int i = 0; i < 2000; i++) {
			weft_id a = ids[between(0, count - 1)], b = ids[between(0, count - 1)];
			if (between(0, 2) == 0)
				pass();
			switch (between(0, 14)) {
			case 0:
				ids[count < 40 ? count++ : between(1, 39)] = weft_create(a, WEFT_KIND_BIND, NULL);
				weft_label(ids[count - 1], "x");
				break;
			case 1: weft_await(a, b); break;
			case 2: weft_read(a, b); break;
			case 3: weft_resolve(a, b); break;
			case 4: weft_become(a, b); break;
			case 5: weft_signal(a, b); break;
			case 6: weft_fail(a, b, "no"); break;
			case 7:
				weft__slow_detail(
				    a, WEFT_DETAIL_CONNECTION, 0, between(0, 1) ? "tcp a:1 b:2 0" : "tcp b:2 a:1 0");
				break;
			case 8: weft_sent(a, between(0, 3000)); break;
			case 9: weft_received(a, between(0, 3000)); break;
			default: weft_run(a); break;
			}
		}
		weft_stop();
		struct weft_trace *trace = NULL;
		struct weft_model *model = read_model(&trace);
		for (uint32_t p = 0; p < model->promise_count; p++) {
			struct weft_path *path = NULL;
			if (weft_path_create(&path, model, p, NULL) < 0)
				continue;
			int64_t at_ns = model->promises[p].start_ns;
			for (size_t i = 0; i < path->count; i++) {
				assert_int_equal(path->steps[i].start_ns, at_ns);
				assert_true(path->steps[i].end_ns > at_ns);
				at_ns = path->steps[i].end_ns;
			}
			weft_path_destroy(path);
		}
		struct weft_blames *blames = NULL;
		if (weft_blames_create(&blames, model, (struct weft_str){"x", 1}, NULL) == WEFT_OK) {
			int64_t sum_ns = 0;
			for (size_t i = 0; i < blames->count; i++)
				sum_ns += blames->blames[i].sum_ns;
			assert_int_equal(sum_ns, blames->sum_ns);
			weft_blames_destroy(blames);
		}
		for (int64_t at_ns = 0; at_ns < model->end_ns; at_ns += model->end_ns / 7 + 1) {
			struct weft_waits *waits = NULL;
			assert_int_equal(weft_waits_create(&waits, model, at_ns, NULL), WEFT_OK);
			for (size_t i = 0; i < waits->count; i++)
				assert_true(waits->waits[i].since_ns <= at_ns);
			weft_waits_destroy(waits);
		}
		weft_model_destroy(model);
		weft_trace_close(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_critical_path_of_a_known_program_is_found),
	    cmocka_unit_test(test_path_of_a_connection_closed_during_a_read_names_the_ended_read),
	    cmocka_unit_test(test_pending_read_waits_for_the_queried_peer),
	    cmocka_unit_test(test_handle_is_ready_from_its_signal_on),
	    cmocka_unit_test(test_restarted_timer_waits_since_its_last_callback),
	    cmocka_unit_test(test_busy_loop_iteration_delays_a_file_request),
	    cmocka_unit_test(test_released_holder_leaves_the_chain_of_waits),
	    cmocka_unit_test(test_path_of_random_trace_is_gapless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
