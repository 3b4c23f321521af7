/* delays_test.c: tests of the findings about delayed promises: stalls, starvation, backlogs, exhausted pools.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/path.h"
#include "findings.h"

/* ---- Stalls ---- */

static void long_run_without_ready_victims_is_uncertain(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_run(main_promise);
	weft_id timer = timer_of(main_promise), work = weft_create(main_promise, WEFT_KIND_WORK, WEFT_SITE());
	weft_run(work);
	now_ns += 80 * MS;
	weft_run(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, timer);
	weft_read(main_promise, timer);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *stall = only(WEFT_FINDING_STALL, work);
	assert_false(stall->sure);
	forget();
}

static void expect_late(enum weft_kind kind)
{
	start_recording();
	weft_id beat = weft_create(WEFT_SYSTEM_ID, kind, WEFT_SITE());
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id each_round = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_HANDLE,
	    WEFT_SITE()); /* called in each iteration, as libuv's check handles, so never late */
	weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, slow);
	now_ns += 80 * MS;
	weft_signal(WEFT_SYSTEM_ID, each_round);
	for (int i = 0; i < 3; i++)
		weft_signal(WEFT_SYSTEM_ID, beat);
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, other); /* the loop has slept since the stall, so this timer was not due during the stall */
	sleep_for(5 * MS);
	explain(true);
	const struct weft_finding *stall = only(WEFT_FINDING_STALL, slow);
	assert_false(stall->sure);
	size_t victims = 0;
	for (size_t i = 0; i < stall->evidence_count; i++) {
		const struct weft_evidence *line = &stall->evidence[i];
		if (line->role != WEFT_EVIDENCE_VICTIM)
			continue;
		assert_int_equal(model->promises[line->promise].id, beat);
		victims++;
	}
	assert_int_equal(victims, 1);
	assert_non_null(strstr(stall->title, "1 promise "));
	forget();
}

/* A repeating timer is called back without an end of its promise.  A stall of a loop with only such timers is reported, too. */
static void callback_after_a_long_run_is_a_possible_victim(void **state)
{
	expect_late(WEFT_KIND_TIMER);
	expect_late(WEFT_KIND_POLL);
}

/* A program with a loop and two timers, one of which blocks its thread. */
static weft_id loop_thread, loop_of_thread, slow_timer, idle_timer;

static void begin_blocked_loop(bool has_work)
{
	start_recording();
	loop_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(loop_thread);
	slow_timer = timer_of(loop_thread);
	idle_timer = has_work ? timer_of(loop_thread) : 0;
	loop_of_thread = begin_loop(loop_thread);
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, slow_timer);
}

static void end_blocked_loop(void)
{
	weft_run(loop_of_thread);
	sleep_for(50 * MS);
	weft_run(loop_thread);
	weft_resolve(loop_thread, slow_timer);
	if (idle_timer)
		weft_resolve(loop_thread, idle_timer);
	weft_resolve(WEFT_SYSTEM_ID, loop_of_thread);
	explain(true);
}

/* A sleep in a callback is an alarm if the loop has other work, even if nothing else was due; otherwise, it is informational. */
static void sleep_in_a_callback_is_a_stall_without_a_victim(void **state)
{
	for (int has_work = 0; has_work < 2; has_work++) {
		begin_blocked_loop(has_work);
		now_ns += 150 * MS;
		WEFT_PAUSE("blocked in usleep", 150 * MS);
		end_blocked_loop();
		const struct weft_finding *stall = only(WEFT_FINDING_STALL, slow_timer);
		assert_true(stall->sure);
		assert_int_equal(stall->severity, has_work ? WEFT_SEVERITY_ALARM : WEFT_SEVERITY_INFORMATION);
		assert_non_null(strstr(stall->title, "for 150 ms in usleep: no promise is known to be late"));
		forget();
	}
}

static void short_or_busy_callback_is_no_alarm(void **state)
{
	for (int is_busy = 0; is_busy < 2; is_busy++) {
		begin_blocked_loop(true);
		now_ns += (is_busy ? 150 : 60) * MS;
		if (!is_busy)
			WEFT_PAUSE("blocked in usleep", 60 * MS);
		end_blocked_loop();
		assert_int_equal(findings->count, is_busy);
		if (is_busy)
			assert_int_equal(only(WEFT_FINDING_STALL, slow_timer)->severity, WEFT_SEVERITY_INFORMATION);
		forget();
	}
}

/* A synchronous call runs an event loop of its own, so the thread sleeps in the middle of the callback that made the call. */
static void synchronous_call_in_a_callback_is_a_stall(void **state)
{
	for (int serves = 0; serves < 2; serves++) {
		begin_blocked_loop(true);
		weft_id request = weft_create(slow_timer, WEFT_KIND_REQUEST, WEFT_SITE());
		WEFT_LABEL(request, "org.example.Ask");
		weft_idle(WEFT_IDLE_WAIT);
		now_ns += 2000 * MS;
		if (serves) {
			weft_signal(WEFT_SYSTEM_ID, idle_timer);
			weft_idle(WEFT_IDLE_WAIT);
			now_ns += 2000 * MS;
		}
		weft_resume(slow_timer);
		weft_resolve(WEFT_SYSTEM_ID, request);
		end_blocked_loop();
		if (serves) {
			assert_int_equal(findings->count, 0);
		} else {
			const struct weft_finding *stall = only(WEFT_FINDING_STALL, slow_timer);
			assert_true(stall->sure);
			assert_int_equal(stall->severity, WEFT_SEVERITY_ALARM);
			assert_non_null(strstr(stall->title, "for 2.00 s in request"));
		}
		forget();
	}
}

static const struct weft_finding *find_first(const char *name)
{
	for (size_t i = 0; i < findings->count; i++)
		if (!strcmp(weft_finding_name(findings->findings[i].kind), name))
			return &findings->findings[i];
	return NULL;
}

/* If a callback is blocked in a call when the process dies, the finding is a hang in the call, and no crash.
 * The finding is uncertain if the call started a short while before the end. */
static void callback_blocked_at_the_end_of_the_trace_hangs_in_its_call(void **state)
{
	for (int is_short = 0; is_short < 2; is_short++) {
		begin_blocked_loop(true);
		weft_id lock = weft_create(slow_timer, WEFT_KIND_LOCK, WEFT_SITE());
		weft_id holder = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
		weft_await(slow_timer, lock);
		weft_hold(holder, lock);
		WEFT_PAUSE_BEGIN("blocked in pthread_mutex_lock");
		now_ns += (is_short ? 20 : 3000) * MS;
		WEFT_NOTE(holder, "still holds it");
		explain(false);
		const struct weft_finding *hang = find_first("hang");
		assert_non_null(hang);
		assert_int_equal(model->promises[hang->promise].id, slow_timer);
		assert_int_equal(hang->sure, !is_short);
		assert_int_equal(hang->severity, is_short ? WEFT_SEVERITY_INFORMATION : WEFT_SEVERITY_ALARM);
		assert_non_null(strstr(hang->title, is_short ? "has not returned from pthread_mutex_lock for 20.0 ms: lock"
							     : "has not returned from pthread_mutex_lock for 3.00 s: lock"));
		if (!is_short)
			assert_ptr_equal(hang, &findings->findings[0]);
		assert_null(find_first("crash"));
		forget();
	}
}

/* ---- Ready promises, and the promises that ran ---- */

/* A waiting promise, and its input. */
struct waiter {
	weft_id promise, input;
};

static struct waiter waiter_new(void)
{
	struct waiter w = {
	    weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()), weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE())};
	weft_await(w.promise, w.input);
	return w;
}

static void serve(struct waiter w)
{
	weft_run(w.promise);
	weft_read(w.promise, w.input);
	weft_resolve(w.promise, w.promise);
}

static void be_busy(weft_id who, uint64_t ns)
{
	weft_run(who);
	now_ns += ns;
}

static weft_id worker_new(void)
{
	return weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE());
}

/* Checks kind, promise and title of finding `number`. */
static const struct weft_finding *assert_finding(size_t number, enum weft_finding_kind kind, weft_id where, const char *says)
{
	assert_true(number < findings->count);
	const struct weft_finding *finding = &findings->findings[number];
	assert_string_equal(weft_finding_name(finding->kind), weft_finding_name(kind));
	assert_int_equal(model->promises[finding->promise].id, where);
	if (!strstr(finding->title, says))
		fail_msg("\"%s\" does not say \"%s\"", finding->title, says);
	return finding;
}

/* A slow request has no finding of its own if a stall covers its time.  If no other promise was late, its long run is no stall.
 */
static void slow_request_is_reported_if_no_stall_covers_it(void **state)
{
	for (int is_stalled = 0; is_stalled < 2; is_stalled++) {
		start_recording();
		struct waiter late = waiter_new();
		weft_id slow = 0;
		for (int i = 0; i < 31; i++) {
			slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
			WEFT_LABEL(slow, "fetch");
			if (i == 30 && is_stalled)
				weft_resolve(WEFT_SYSTEM_ID, late.input);
			be_busy(slow, i == 30 ? 300 * MS : MS);
			weft_resolve(slow, slow);
			if (i == 30 && is_stalled)
				serve(late);
			sleep_for(MS);
		}
		if (!is_stalled) {
			weft_resolve(WEFT_SYSTEM_ID, late.input);
			serve(late);
		}
		explain(true);
		only(is_stalled ? WEFT_FINDING_STALL : WEFT_FINDING_SLOW, slow);
		forget();
	}
}

static void each_stall_reports_the_time_lost_by_promises(void **state)
{
	start_recording();
	weft_id work[5];
	struct waiter a = waiter_new(), b = waiter_new();
	/* Five types: stalls of one type are one finding. */
	for (size_t i = 0; i < 5; i++) {
		work[i] = worker_new();
		weft_label(work[i], (const char[]){(char)('a' + i), '\0'});
	}
	sleep_for(MS);
	be_busy(work[0], 5 * MS);
	weft_resolve(work[0], a.input);
	now_ns += 16 * MS;
	be_busy(work[1], 18 * MS);
	weft_resolve(work[1], b.input); /* the 4 ms that b waits for this run are too short to count */
	now_ns += 4 * MS;
	be_busy(work[2], 23 * MS);
	be_busy(work[3], 24 * MS);
	be_busy(work[4], 25 * MS);
	weft_run(WEFT_SYSTEM_ID);
	serve(a);
	serve(b);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 5);
	assert_finding(
	    0, WEFT_FINDING_STALL, work[4], "blocked the event loop for 25.0 ms: 2 ready promises lost 50.0 ms together");
	assert_finding(
	    1, WEFT_FINDING_STALL, work[3], "blocked the event loop for 24.0 ms: 2 ready promises lost 48.0 ms together");
	assert_finding(
	    2, WEFT_FINDING_STALL, work[2], "blocked the event loop for 23.0 ms: 2 ready promises lost 46.0 ms together");
	assert_finding(3, WEFT_FINDING_STALL, work[1], "blocked the event loop for 22.0 ms: 1 ready promise lost 22.0 ms");
	const struct weft_finding *first =
	    assert_finding(4, WEFT_FINDING_STALL, work[0], "blocked the event loop for 21.0 ms: 1 ready promise lost 16.0 ms");
	assert_true(first->sure);
	assert_line(first, WEFT_EVIDENCE_VICTIM, 0, a.promise, "runs only now");
	assert_null(line_of(first, WEFT_EVIDENCE_VICTIM, 1));
	const struct weft_finding *last = &findings->findings[0];
	assert_line(last, WEFT_EVIDENCE_VICTIM, 0, a.promise, "runs only now");
	assert_line(last, WEFT_EVIDENCE_VICTIM, 1, b.promise, "runs only now");
	forget();
}

static void do_something_before_reading(bool leaves_a_trace)
{
	start_recording();
	weft_id work = worker_new();
	struct waiter w = waiter_new();
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, w.input);
	be_busy(work, 30 * MS);
	weft_run(w.promise); /* w.promise runs for another input, and reads w.input only 3 ms later */
	weft_run(WEFT_SYSTEM_ID);
	now_ns += 3 * MS;
	weft_run(w.promise);
	if (leaves_a_trace) {
		weft_id late = weft_create(w.promise, WEFT_KIND_TASK, WEFT_SITE());
		weft_resolve(w.promise, late);
		weft_read(w.promise, late);
	}
	weft_read(w.promise, w.input);
	weft_resolve(w.promise, w.promise);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

static void promise_running_before_it_reads_its_input_is_not_delayed(void **state)
{
	do_something_before_reading(true);
	do_something_before_reading(false);
}

static void first_run_of_a_trace_can_be_a_stall(void **state)
{
	start_recording();
	weft_id work = worker_new();
	struct waiter w = waiter_new();
	weft_run(work);
	weft_resolve(work, w.input);
	now_ns += 30 * MS;
	serve(w);
	explain(true);
	only(WEFT_FINDING_STALL, work);
	forget();
}

static void pause_during_most_of_a_run_is_reported_instead_of_the_run(void **state)
{
	static const struct {
		uint64_t before_ms, pause_ms, after_ms;
		const char *title;
	} cases[] = {{5, 15, 1, "for 15.0 ms in a pause (gc): "}, {40, 15, 20, "for 75.0 ms (GC 15.0 ms): "},
	    {11, 12, 0, "for 12.0 ms in a pause (gc): "}, {14, 12, 0, "for 26.0 ms (GC 12.0 ms): "}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		start_recording();
		weft_id work = worker_new();
		struct waiter w = waiter_new();
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, w.input);
		be_busy(work, (cases[i].before_ms + cases[i].pause_ms) * MS);
		WEFT_PAUSE("gc", cases[i].pause_ms * MS);
		now_ns += cases[i].after_ms * MS;
		serve(w);
		sleep_for(MS);
		explain(true);
		const struct weft_finding *stall = only(WEFT_FINDING_STALL, work);
		if (!strstr(stall->title, cases[i].title))
			fail_msg("case %zu: \"%s\"", i, stall->title);
		forget();
	}
	/* A pause that started before the promise ran counts only from the start of the run. */
	start_recording();
	weft_id work = worker_new();
	struct waiter w = waiter_new();
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, w.input);
	now_ns += 10 * MS;
	be_busy(work, 20 * MS);
	WEFT_PAUSE("gc", 29 * MS);
	now_ns += 5 * MS;
	serve(w);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *stall = only(WEFT_FINDING_STALL, work);
	assert_ptr_equal(strstr(stall->title, "async"), stall->title);
	assert_non_null(strstr(stall->title, "for 29.0 ms in a pause (gc): 1 ready promise lost"));
	forget();
}

/* The shortest pause that is reported has 10 ms. */
static void pause_of_exactly_10_ms_is_a_stall(void **state)
{
	start_recording();
	struct waiter w = waiter_new();
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, w.input);
	now_ns += 12 * MS;
	WEFT_PAUSE("gc", 10 * MS);
	serve(w);
	sleep_for(MS);
	explain(true);
	assert_non_null(strstr(only(WEFT_FINDING_STALL, 0)->title, "pause (gc)"));
	forget();
}

/* ---- OS threads ---- */

static struct waiter here, there[2];
static weft_id worker_here, worker_there;

static void prepare_there(void)
{
	worker_there = worker_new();
	there[0] = waiter_new();
	there[1] = waiter_new();
	weft_idle(WEFT_IDLE_WAIT);
}

static void begin_there(void)
{
	weft_resume(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, there[0].input);
	weft_resolve(WEFT_SYSTEM_ID, there[1].input);
	weft_run(worker_there);
}

static void serve_there(void)
{
	weft_run(WEFT_SYSTEM_ID);
	serve(there[0]);
	serve(there[1]);
	weft_idle(WEFT_IDLE_WAIT);
}

static void stall_delays_only_its_own_thread(void **state)
{
	for (int how = 0; how < 4; how++) {
		bool both = how & 1, there_first = how & 2;
		start_recording();
		weft_run(WEFT_SYSTEM_ID);
		begin_other_thread();
		if (there_first)
			on_other_thread(prepare_there);
		worker_here = worker_new();
		WEFT_LABEL(worker_here, "here");
		here = waiter_new();
		if (!there_first)
			on_other_thread(prepare_there);
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, here.input);
		if (both)
			weft_run(worker_here);
		now_ns += 7 * MS;
		on_other_thread(begin_there);
		now_ns += 20 * MS;
		if (both)
			weft_run(WEFT_SYSTEM_ID);
		serve(here);
		now_ns += 10 * MS;
		on_other_thread(serve_there);
		sleep_for(MS);
		on_other_thread(NULL);
		explain(true);
		assert_int_equal(findings->count, 1 + both);
		const struct weft_finding *stall = assert_finding(0, WEFT_FINDING_STALL, worker_there,
		    "blocked the event loop for 30.0 ms: 2 ready promises lost 60.0 ms together");
		assert_line(stall, WEFT_EVIDENCE_VICTIM, 0, there[0].promise, "runs only now");
		assert_line(stall, WEFT_EVIDENCE_VICTIM, 1, there[1].promise, "runs only now");
		if (both) {
			stall = assert_finding(1, WEFT_FINDING_STALL, worker_here,
			    "blocked the event loop for 27.0 ms: 1 ready promise lost 27.0 ms");
			assert_line(stall, WEFT_EVIDENCE_VICTIM, 0, here.promise, "runs only now");
		}
		forget();
	}
}

static void sleep_there(void)
{
	WEFT_PAUSE("blocked in usleep", 20 * MS);
}

static void sleep_on_another_thread(void)
{
	WEFT_PAUSE("blocked in usleep", 8 * MS);
}

static void lock_there(void)
{
	WEFT_PAUSE("blocked in pthread_mutex_lock", 20 * MS);
}

static weft_id new_thread;

static void run_new_thread(void)
{
	weft_run(new_thread);
}

/* Records promises with old ids behind newer promises, as the recorder does when it repeats pending promises in a ring. */
static void list_old_promises(void)
{
	for (int i = 0; i < 16; i++)
		weft_pending(WEFT_SYSTEM_ID, 70000 + i, WEFT_KIND_TIMER, WEFT_SITE(), 0, "old");
}

/* A callback starts a thread and waits for it.  On a busy machine, the new thread may get no CPU for a while. */
static void wait_for_a_late_starting_thread_is_informational(void **state)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		start_recording();
		begin_other_thread();
		const weft_id work = worker_new();
		const struct waiter w = waiter_new();
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, w.input);
		new_thread = weft_create(work, WEFT_KIND_THREAD, WEFT_SITE());
		list_old_promises();
		if (!is_late)
			on_other_thread(run_new_thread);
		be_busy(work, 20 * MS);
		if (is_late)
			on_other_thread(run_new_thread);
		on_other_thread(sleep_there);
		WEFT_PAUSE("blocked in sem_wait", 20 * MS);
		serve(w);
		sleep_for(MS);
		on_other_thread(NULL);
		explain(true);
		const struct weft_finding *stall = assert_finding(0, WEFT_FINDING_STALL, work, " ms in sem_wait: ");
		const bool is_doubted =
		    stall->doubt && strstr(stall->doubt, "another thread, for which the stalled thread may have waited");
		assert_int_equal(is_doubted, is_late);
		assert_int_equal(stall->severity, is_late ? WEFT_SEVERITY_INFORMATION : WEFT_SEVERITY_ALARM);
		forget();
	}
}

/* If no other OS thread was active during a lock wait, the wait may be due to the load of the machine. */
static void lock_wait_is_an_alarm_only_if_another_thread_was_active(void **state)
{
	static void (*const meanwhile[])(void) = {sleep_there, sleep_on_another_thread, lock_there};
	for (size_t i = 0; i < sizeof meanwhile / sizeof *meanwhile; i++) {
		start_recording();
		begin_other_thread();
		const weft_id work = worker_new();
		const struct waiter w = waiter_new();
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, w.input);
		be_busy(work, 20 * MS);
		on_other_thread(meanwhile[i]);
		WEFT_PAUSE("blocked in pthread_mutex_lock", 20 * MS);
		serve(w);
		sleep_for(MS);
		on_other_thread(NULL);
		explain(true);
		const struct weft_finding *stall = assert_finding(0, WEFT_FINDING_STALL, work, " ms in pthread_mutex_lock: ");
		const bool is_doubted = stall->doubt && strstr(stall->doubt, "no other thread is known to have run");
		assert_int_equal(is_doubted, i > 0);
		assert_int_equal(stall->severity == WEFT_SEVERITY_INFORMATION, i > 0);
		forget();
	}
}

static void run_there(void)
{
	weft_run(worker_here);
}

static void stop_there(void)
{
	weft_run(WEFT_SYSTEM_ID);
}

/* A ready promise is delayed only by runs on its own OS thread, so its path names such a run, and no run on another thread. */
static void ready_promise_is_delayed_only_by_runs_on_its_own_thread(void **state)
{
	start_recording();
	begin_other_thread();
	worker_here = worker_new();
	const weft_id blocker = worker_new(), handle = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	weft_run(blocker);
	const weft_id task = weft_create(blocker, WEFT_KIND_TASK, WEFT_SITE());
	on_other_thread(run_there);
	weft_signal_only(blocker, handle);
	now_ns += 30 * MS;
	weft_run(handle);
	weft_resolve(handle, task);
	on_other_thread(stop_there);
	sleep_for(MS);
	on_other_thread(NULL);
	explain(true);
	struct weft_path *path;
	assert_int_equal(weft_path_create(&path, model, weft_model_find(model, task), NULL), WEFT_OK);
	for (size_t i = 0; i < path->count; i++)
		if (path->steps[i].kind == WEFT_STEP_READY)
			assert_int_equal(model->promises[path->steps[i].delayed_by].id, blocker);
	assert_in_range(path->total_ns[WEFT_STEP_READY], 30 * MS, 31 * MS);
	weft_path_destroy(path);
	forget();
}

/* A run on a pool of OS threads delays no promise in the loop that created it. */
static void work_on_another_thread_is_no_stall(void **state)
{
	enum { SLEEPS_BEFORE, SLEEPS_MEANWHILE, RUNS_OTHERS, HOWS };
	for (int how = 0; how < HOWS; how++) {
		struct waiter turns[4];
		start_recording();
		begin_other_thread();
		on_other_thread(prepare_there);
		worker_here = worker_new();
		here = waiter_new();
		for (size_t i = 0; i < 4; i++) {
			turns[i] = waiter_new();
			weft_resolve(WEFT_SYSTEM_ID, turns[i].input);
		}
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, here.input);
		if (how != SLEEPS_BEFORE)
			weft_run(turns[0].promise);
		on_other_thread(run_there);
		if (how == SLEEPS_MEANWHILE)
			weft_idle(WEFT_IDLE_WAIT);
		now_ns += 7 * MS;
		for (size_t i = how == RUNS_OTHERS ? 1 : 4; i < 4; i++) {
			weft_read(turns[i].promise, turns[i].input);
			now_ns += 7 * MS;
		}
		if (how != RUNS_OTHERS)
			now_ns += 20 * MS;
		on_other_thread(stop_there);
		serve(here);
		sleep_for(MS);
		on_other_thread(NULL);
		explain(true);
		for (size_t i = 0; i < findings->count; i++)
			assert_int_not_equal(findings->findings[i].kind, WEFT_FINDING_STALL);
		forget();
	}
}

static void late_callback_is_a_victim_of_the_last_stall_before_it(void **state)
{
	start_recording();
	weft_run(WEFT_SYSTEM_ID);
	begin_other_thread();
	on_other_thread(prepare_there);
	weft_id before = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id beats[2] = {
	    weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()), weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE())};
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(5 * MS);
	on_other_thread(begin_there);
	weft_signal(WEFT_SYSTEM_ID, before);
	weft_signal(WEFT_SYSTEM_ID, first);
	now_ns += 60 * MS;
	on_other_thread(serve_there);
	weft_signal(WEFT_SYSTEM_ID, second);
	now_ns += 40 * MS;
	for (size_t i = 0; i < 2; i++)
		weft_signal(WEFT_SYSTEM_ID, beats[i]);
	sleep_for(5 * MS);
	on_other_thread(NULL);
	explain(true);
	assert_int_equal(findings->count, 3);
	assert_finding(0, WEFT_FINDING_STALL, worker_there, "2 ready promises lost");
	for (size_t i = 1; i < 3; i++) {
		const struct weft_finding *stall = &findings->findings[i];
		bool is_first = model->promises[stall->promise].id == first;
		assert_int_equal(stall->kind, WEFT_FINDING_STALL);
		/* Behind the first stall, `second` was called back, and stalled the loop again; the other timers were called only
		 * after that. */
		assert_non_null(strstr(stall->title, is_first ? ": 1 promise may be late" : ": 2 promises may be late"));
	}
	forget();
}

/* libevent sleeps once more before it calls due timers; on a busy machine that sleep is long.  The intervals between earlier
 * calls of a timer show whether it was due during the stall. */
static void timer_due_by_its_earlier_intervals_is_late_after_a_long_sleep(void **state)
{
	for (int is_due = 0; is_due < 2; is_due++) {
		start_recording();
		weft_run(WEFT_SYSTEM_ID);
		weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		weft_id late = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		for (int i = 0; i < 2; i++) {
			sleep_for(is_due ? 90 * MS : 170 * MS);
			weft_signal(WEFT_SYSTEM_ID, late);
		}
		sleep_for(5 * MS);
		weft_signal(WEFT_SYSTEM_ID, slow);
		now_ns += 100 * MS;
		sleep_for(60 * MS);
		weft_signal(WEFT_SYSTEM_ID, late);
		sleep_for(5 * MS);
		explain(true);
		size_t told = 0;
		for (size_t i = 0; i < findings->count; i++)
			told += findings->findings[i].kind == WEFT_FINDING_STALL &&
				strstr(findings->findings[i].title, ": 1 promise may be late");
		assert_int_equal(told, is_due);
		forget();
	}
}

/* libuv also sleeps once more before it calls due timers, since 1.45.  The label of a timer that was never called shows its
 * timeout. */
static void timer_due_by_its_label_is_late_after_a_long_sleep(void **state)
{
	static const struct {
		const char *label, *note;
		bool is_due;
	} timers[] = {{"80 ms", NULL, true}, {"80 ms poll_file", NULL, true}, {"0.08 s", NULL, true}, {"170 ms", NULL, false},
	    {"12 s", NULL, false}, {"80 ms", "started again", false}, {"every 80 ms", NULL, false}, {"80 msec", NULL, false},
	    {"80", NULL, false}, {"80 ", NULL, false}, {"ms", NULL, false}, {"99999999999 ms", NULL, false}};
	for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
		start_recording();
		weft_run(WEFT_SYSTEM_ID);
		weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		weft_id late = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		weft_label(late, timers[i].label);
		if (timers[i].note)
			weft_note(late, timers[i].note);
		sleep_for(20 * MS);
		weft_signal(WEFT_SYSTEM_ID, slow);
		now_ns += 100 * MS;
		sleep_for(60 * MS);
		weft_signal(WEFT_SYSTEM_ID, late);
		sleep_for(5 * MS);
		explain(true);
		size_t stalls = 0;
		for (size_t k = 0; k < findings->count; k++)
			stalls += findings->findings[k].kind == WEFT_FINDING_STALL &&
				  strstr(findings->findings[k].title, ": 1 promise came late");
		assert_int_equal(stalls, timers[i].is_due);
		forget();
	}
}

static void run_before_the_first_sleep_is_no_stall(void **state)
{
	for (int slept = 0; slept < 2; slept++) {
		start_recording();
		begin_other_thread();
		on_other_thread(prepare_there); /* the other thread sleeps */
		now_ns += MS;
		weft_id thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
		struct waiter w = waiter_new();
		weft_run(thread);
		if (slept)
			sleep_for(MS);
		weft_run(thread);
		weft_resolve(thread, w.input);
		now_ns += 30 * MS;
		serve(w);
		weft_run(thread);
		sleep_for(MS);
		on_other_thread(NULL);
		explain(true);
		assert_int_equal(findings->count, slept);
		if (slept)
			only(WEFT_FINDING_STALL, thread);
		forget();
	}
}

/* ---- Backlogs and exhausted pools ---- */

/* Records promises of `sorts` types that are created faster than they end; returns the number of reported backlogs. */
static size_t count_heaps(unsigned sorts)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	for (unsigned i = 0; i < 80; i++) {
		for (unsigned sort = 0; sort < sorts; sort++) {
			char name[16];
			snprintf(name, sizeof name, "order %c", 'a' + sort);
			weft_id order = weft_create(main_thread, WEFT_KIND_TASK, WEFT_SITE());
			weft_label(order, name);
			weft_should_resolve(order);
			if (i % 2)
				weft_resolve(main_thread, order);
		}
		sleep_for(MS);
		weft_run(main_thread);
	}
	sleep_for(MS);
	explain(true);
	size_t heaps = 0;
	for (size_t i = 0; i < findings->count; i++) {
		heaps += findings->findings[i].kind == WEFT_FINDING_BACKLOG;
		assert_true(
		    findings->findings[i].kind == WEFT_FINDING_BACKLOG || findings->findings[i].kind == WEFT_FINDING_HANG);
	}
	forget();
	return heaps;
}

static void backlog_is_reported_for_the_first_16_types(void **state)
{
	assert_int_equal(count_heaps(1), 1);
	assert_int_equal(count_heaps(16), 16);
	assert_int_equal(count_heaps(18), 16);
}

/* Records a pool of one OS thread.  Its thread is busy `times` times without a waiting job, and then once while a job waits;
 * returns whether this wait is reported. */
static bool is_exhausted_after(unsigned times)
{
	start_recording();
	weft_id loop = begin_loop(WEFT_SYSTEM_ID);
	weft_run(loop);
	for (unsigned i = 0; i <= times; i++) {
		weft_id work = weft_create(loop, WEFT_KIND_WORK, WEFT_SITE());
		weft_id other = i == times ? weft_create(loop, WEFT_KIND_WORK, WEFT_SITE()) : 0;
		if (other)
			WEFT_LABEL(other, "small");
		weft_run(work);
		now_ns += 50 * MS;
		if (other) {
			weft_run(other);
			now_ns += MS;
		}
		weft_run(loop);
		weft_resolve(loop, work);
		if (other)
			weft_resolve(loop, other);
		sleep_for(100 * MS);
		weft_run(loop);
	}
	weft_resolve(WEFT_SYSTEM_ID, loop);
	explain(true);
	bool found = false;
	for (size_t i = 0; i < findings->count; i++)
		found |= findings->findings[i].kind == WEFT_FINDING_EXHAUSTED;
	forget();
	return found;
}

static void exhausted_pool_is_found_only_in_its_first_16_full_intervals(void **state)
{
	assert_true(is_exhausted_after(0));
	assert_true(is_exhausted_after(15));
	assert_false(is_exhausted_after(16));
}

static weft_id file;

static void run_file(void)
{
	weft_run(file);
}

/* Returns the severity of a job's wait for the only thread of a pool, which is busy with a request for a file. */
static enum weft_severity measure_severity_behind_file(uint64_t length_ns)
{
	start_recording();
	begin_other_thread();
	const weft_id loop = begin_loop(WEFT_SYSTEM_ID), first = weft_create(loop, WEFT_KIND_FS, WEFT_SITE()),
		      second = weft_create(loop, WEFT_KIND_FS, WEFT_SITE());
	WEFT_LABEL(second, "small");
	weft_run(loop);
	file = first;
	on_other_thread(run_file);
	now_ns += length_ns;
	file = second;
	on_other_thread(run_file);
	now_ns += MS;
	on_other_thread(sleep_there);
	weft_resolve(loop, first);
	weft_resolve(loop, second);
	weft_resolve(WEFT_SYSTEM_ID, loop);
	on_other_thread(NULL);
	explain(true);
	size_t i = 0;
	while (i < findings->count && findings->findings[i].kind != WEFT_FINDING_EXHAUSTED)
		i++;
	assert_true(i < findings->count);
	const enum weft_severity severity = findings->findings[i].severity;
	forget();
	return severity;
}

/* A request for a file may take more than 100 ms on a busy machine, so a job that waits 140 ms for its end is no alarm. */
static void short_wait_for_a_pool_thread_busy_with_a_file_is_informational(void **state)
{
	assert_int_equal(measure_severity_behind_file(140 * MS), WEFT_SEVERITY_INFORMATION);
	assert_int_equal(measure_severity_behind_file(300 * MS), WEFT_SEVERITY_ALARM);
}

/* ---- Starvation ---- */

/* `count` other promises become ready one after the other, and run for 2 ms each. */
static void others_run(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct waiter w = waiter_new();
		weft_resolve(WEFT_SYSTEM_ID, w.input);
		serve(w);
		now_ns += 2 * MS;
		weft_run(WEFT_SYSTEM_ID);
	}
}

static void promise_waiting_while_20_later_promises_run_starves(void **state)
{
	static const struct {
		size_t others;
		uint64_t stall_ms, sleep_ms;
		size_t starving, stalls;
	} cases[] = {{20, 0, 0, 1, 0}, {19, 0, 0, 0, 0},
	    /* If one stall took most of the wait, the promise did not starve. */
	    {20, 36, 0, 1, 1}, {20, 44, 0, 0, 1},
	    /* If the OS thread was idle during the wait, the recorder missed events, and the promise may not have starved. */
	    {20, 0, 9, 1, 0}, {20, 0, 11, 0, 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		start_recording();
		weft_id work = worker_new();
		struct waiter starving = waiter_new(), before[3] = {waiter_new(), waiter_new(), waiter_new()};
		sleep_for(MS);
		weft_resume(WEFT_SYSTEM_ID);
		for (size_t k = 0; k < 3; k++)
			weft_resolve(WEFT_SYSTEM_ID, before[k].input);
		weft_resolve(WEFT_SYSTEM_ID, starving.input);
		for (size_t k = 0; k < 3; k++)
			serve(before[k]); /* these became ready before `starving` */
		others_run(cases[i].others);
		if (cases[i].stall_ms)
			be_busy(work, cases[i].stall_ms * MS);
		weft_run(WEFT_SYSTEM_ID);
		if (cases[i].sleep_ms)
			sleep_for(cases[i].sleep_ms * MS);
		weft_resume(WEFT_SYSTEM_ID);
		serve(starving);
		sleep_for(MS);
		explain(true);
		assert_int_equal(findings->count, cases[i].starving + cases[i].stalls);
		for (size_t k = 0; k < findings->count; k++)
			if (findings->findings[k].kind == WEFT_FINDING_STALL)
				assert_finding(k, WEFT_FINDING_STALL, work, ": 1 ready promise lost");
			else
				assert_finding(k, WEFT_FINDING_STARVATION, starving.promise,
				    "20 promises that became ready later ran first");
		forget();
	}
}

static void promises_starving_together_are_one_finding(void **state)
{
	start_recording();
	struct waiter early = waiter_new(), longest = waiter_new(), late = waiter_new(), apart = waiter_new();
	weft_id too = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_await(too, late.input);
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, early.input);
	others_run(10);
	weft_resolve(WEFT_SYSTEM_ID, longest.input);
	others_run(8);
	weft_resolve(WEFT_SYSTEM_ID, late.input);
	others_run(7);
	weft_run(too);
	weft_read(too, late.input);
	weft_resolve(too, too);
	others_run(1);
	serve(late);
	serve(early);
	others_run(15);
	serve(longest);
	weft_run(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, apart.input);
	others_run(20);
	serve(apart);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 3);
	assert_finding(2, WEFT_FINDING_SLOW, apart.promise, " (median of ");
	const struct weft_finding *together =
	    assert_finding(0, WEFT_FINDING_STARVATION, longest.promise, "was ready for 62.0 ms: 33 promises that");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 0, early.promise, "was ready for 52.0 ms, too");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 1, too, "was ready for 14.0 ms, too");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 2, late.promise, "was ready for 16.0 ms, too");
	assert_null(line_of(together, WEFT_EVIDENCE_VICTIM, 3));
	const struct weft_finding *alone =
	    assert_finding(1, WEFT_FINDING_STARVATION, apart.promise, "for 40.0 ms: 20 promises that");
	assert_null(line_of(alone, WEFT_EVIDENCE_VICTIM, 0));
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(long_run_without_ready_victims_is_uncertain),
	    cmocka_unit_test(callback_after_a_long_run_is_a_possible_victim),
	    cmocka_unit_test(slow_request_is_reported_if_no_stall_covers_it),
	    cmocka_unit_test(sleep_in_a_callback_is_a_stall_without_a_victim),
	    cmocka_unit_test(short_or_busy_callback_is_no_alarm),
	    cmocka_unit_test(synchronous_call_in_a_callback_is_a_stall),
	    cmocka_unit_test(callback_blocked_at_the_end_of_the_trace_hangs_in_its_call),
	    cmocka_unit_test(late_callback_is_a_victim_of_the_last_stall_before_it),
	    cmocka_unit_test(each_stall_reports_the_time_lost_by_promises),
	    cmocka_unit_test(first_run_of_a_trace_can_be_a_stall),
	    cmocka_unit_test(promise_running_before_it_reads_its_input_is_not_delayed),
	    cmocka_unit_test(pause_during_most_of_a_run_is_reported_instead_of_the_run),
	    cmocka_unit_test(pause_of_exactly_10_ms_is_a_stall),
	    cmocka_unit_test(stall_delays_only_its_own_thread),
	    cmocka_unit_test(wait_for_a_late_starting_thread_is_informational),
	    cmocka_unit_test(lock_wait_is_an_alarm_only_if_another_thread_was_active),
	    cmocka_unit_test(ready_promise_is_delayed_only_by_runs_on_its_own_thread),
	    cmocka_unit_test(work_on_another_thread_is_no_stall),
	    cmocka_unit_test(timer_due_by_its_earlier_intervals_is_late_after_a_long_sleep),
	    cmocka_unit_test(timer_due_by_its_label_is_late_after_a_long_sleep),
	    cmocka_unit_test(run_before_the_first_sleep_is_no_stall),
	    cmocka_unit_test(backlog_is_reported_for_the_first_16_types),
	    cmocka_unit_test(exhausted_pool_is_found_only_in_its_first_16_full_intervals),
	    cmocka_unit_test(short_wait_for_a_pool_thread_busy_with_a_file_is_informational),
	    cmocka_unit_test(promise_waiting_while_20_later_promises_run_starves),
	    cmocka_unit_test(promises_starving_together_are_one_finding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
