/* findings_test.c: small programs, recorded with their own clock, and their findings. SPDX-License-Identifier: ISC */
#include "findings.h"

/* ---- Loops ---- */

static size_t chain_lines(const struct weft_finding *finding)
{
	size_t count = 0;
	for (size_t i = 0; i < finding->evidence_count; i++)
		count += finding->evidence[i].role == WEFT_EVIDENCE_CHAIN;
	return count;
}

static void sleeping_loop_lists_the_handles_keeping_it_alive(void **state)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	weft_id loop = begin_loop(main_thread), pool[3];
	for (int i = 0; i < 3; i++) {
		pool[i] = weft_create(main_thread, WEFT_KIND_HANDLE, WEFT_SITE());
		weft_await(loop, pool[i]);
	}
	weft_id unreferenced = timer_of(loop), interval = timer_of(loop), back = timer_of(loop), ended = timer_of(loop);
	weft_awaits_no_more(loop, unreferenced);
	weft_awaits_no_more(loop, back);
	sleep_for(5 * MS);
	weft_run(interval);
	weft_resolve(WEFT_SYSTEM_ID, ended);
	weft_await(loop, back);
	sleep_for(5 * MS);
	explain(false);
	const struct weft_finding *alive = only(WEFT_FINDING_ALIVE, loop);
	assert_int_equal(alive->severity, WEFT_SEVERITY_INFORMATION);
	assert_true(alive->sure);
	assert_int_equal(alive->weight, 5);
	assert_non_null(strstr(alive->title, "\"uv_run\""));
	/* The evidence lists pending timers before other handles, with one line for all promises of a creation site. */
	assert_int_equal(chain_lines(alive), 2);
	assert_int_equal(model->promises[alive->evidence[0].promise].id, interval);
	assert_int_equal(model->promises[alive->evidence[1].promise].id, pool[0]);
	assert_non_null(strstr(alive->evidence[1].text, "3 of the same type"));
	/* weft waits lists the same handles as the finding. */
	struct weft_waits *waits;
	assert_int_equal(weft_waits_create(&waits, model, model->end_ns, NULL), WEFT_OK);
	size_t kept_by = 0;
	for (size_t i = 0; i < waits->count; i++)
		if (model->promises[waits->waits[i].from].id == loop) {
			int64_t id = model->promises[waits->waits[i].to].id;
			assert_true(id != unreferenced && id != ended);
			/* The loop has given up an earlier wait for `back`, which is not among the waits at the end. */
			assert_true(id != back || waits->waits[i].since_ns > 5 * (int64_t)MS);
			kept_by++;
		}
	assert_int_equal(kept_by, 5);
	weft_waits_destroy(waits);
	forget();
}

static void running_or_returned_loop_has_no_finding(void **state)
{
	for (int returned = 0; returned < 2; returned++) {
		start_recording();
		weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
		weft_run(main_thread);
		weft_id loop = begin_loop(main_thread), timer = timer_of(loop);
		sleep_for(5 * MS);
		weft_run(timer);
		if (returned) {
			weft_resolve(WEFT_SYSTEM_ID, loop);
			weft_read(main_thread, loop);
			sleep_for(MS);
		} else {
			weft_create(timer, WEFT_KIND_TASK,
			    WEFT_SITE()); /* the callback calls exit(), so its last event is at the end of the trace */
		}
		explain(true);
		assert_int_equal(findings->count, 0);
		forget();
	}
}

static void tasks_of_one_type_without_a_result_are_one_finding(void **state)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE()), tasks[2];
	weft_run(main_thread);
	for (int i = 0; i < 2; i++) {
		tasks[i] = weft_create(main_thread, WEFT_KIND_TASK, WEFT_SITE());
		WEFT_LABEL(tasks[i], "load");
		weft_await(main_thread, tasks[i]);
		WEFT_FAIL(main_thread, tasks[i], WEFT_UNRETURNED);
	}
	sleep_for(MS);
	explain(true);
	const struct weft_finding *unreturned = only(WEFT_FINDING_UNRETURNED, tasks[0]);
	assert_int_equal(unreturned->severity, WEFT_SEVERITY_ALARM);
	assert_true(unreturned->sure);
	assert_int_equal(unreturned->weight, 2);
	assert_non_null(strstr(unreturned->title, "and 1 more were finalized without a result"));
	forget();
}

/* A call between two processes in one trace: the finding about the hang names the receiver. */
static void unanswered_message_names_its_receiver(void **state)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	weft_id call = weft_create(main_thread, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_should_resolve(call);
	weft_await(main_thread, call);
	weft_message(call, 7, "bus :1.5", false);
	weft_id other = weft_create(main_thread, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_message(other, 7, "bus :1.6", true);
	weft_resolve(main_thread, other);
	weft_read(main_thread, other);
	weft_id served = weft_create(main_thread, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_message(served, 7, "bus :1.5", true);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, call);
	assert_int_equal(model->promises[hang->root].id, served);
	assert_int_equal(model->message_count, 3);
	forget();
}

static void loop_closed_before_its_handles_is_an_alarm(void **state)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	weft_id open = weft_create(main_thread, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id closed = weft_create(main_thread, WEFT_KIND_TIMER, WEFT_SITE());
	weft_resolve(main_thread, closed);
	weft_id close = weft_create(main_thread, WEFT_KIND_CLOSE, WEFT_SITE());
	WEFT_LABEL(close, "uv_loop_close");
	weft_await(close, open);
	WEFT_FAIL(WEFT_SYSTEM_ID, close, "EBUSY");
	sleep_for(MS);
	explain(true);
	const struct weft_finding *unclosed = only(WEFT_FINDING_UNCLOSED, close);
	assert_int_equal(unclosed->severity, WEFT_SEVERITY_ALARM);
	assert_true(unclosed->sure);
	assert_int_equal(unclosed->evidence_count, 1);
	assert_int_equal(model->promises[unclosed->evidence[0].promise].id, open);
	assert_non_null(strstr(unclosed->title, "EBUSY"));
	assert_non_null(strstr(unclosed->title, "1 handle of the loop is open"));
	forget();
}

/* ---- Spins ---- */

/* Calls an idle callback `calls` times, `each_ns` apart, and records it like adapters do.  If `on_cpu_ns` is not 0, the thread
 * has a CPU for this time of each call. */
static weft_id spin_on_cpu(uint64_t calls, uint64_t each_ns, uint64_t on_cpu_ns)
{
	char usage[48];
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	weft_id idle = weft_create(main_thread, WEFT_KIND_HANDLE, WEFT_SITE()),
		timer = weft_create(main_thread, WEFT_KIND_TIMER, WEFT_SITE());
	WEFT_LABEL(idle, "idle");
	weft_run(idle);
	uint64_t begin_ns = now_ns;
	for (uint64_t told = 1024; told <= calls; told *= 2) {
		const uint64_t since = told > 1024 ? told / 2 : told;
		now_ns = begin_ns + told * each_ns;
		snprintf(usage, sizeof usage, "%llu 0 9 0 0", (unsigned long long)(since * on_cpu_ns));
		if (on_cpu_ns)
			weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, since * each_ns, usage);
		weft_spins(idle, told);
	}
	now_ns = begin_ns + calls * each_ns;
	weft_signal(WEFT_SYSTEM_ID, timer);
	weft_run(main_thread);
	return idle;
}

static weft_id spin(uint64_t calls, uint64_t each_ns)
{
	return spin_on_cpu(calls, each_ns, 0);
}

static void endlessly_called_handle_spins(void **state)
{
	weft_id idle = spin(100000, 1500);
	explain(true);
	const struct weft_finding *finding = only(WEFT_FINDING_SPIN, idle);
	assert_int_equal(finding->severity, WEFT_SEVERITY_ALARM);
	assert_true(finding->sure);
	assert_non_null(strstr(finding->title, "\"idle\""));
	assert_non_null(strstr(finding->title, "65536 times in 98.3 ms, and its thread never slept"));
	forget();
}

static void finished_spin_is_uncertain(void **state)
{
	weft_id idle = spin(20000, 1000);
	sleep_for(100 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	assert_false(only(WEFT_FINDING_SPIN, idle)->sure);
	forget();
}

static void longest_of_several_spins_is_reported(void **state)
{
	weft_id idle = spin(20000, 1000);
	for (uint64_t told = 1024; told <= 65536; told *= 2) {
		now_ns += told / 2 * 1000;
		weft_spins(idle, told);
	}
	for (uint64_t told = 1024; told <= 2048; told *= 2)
		weft_spins(idle, told);
	explain(true);
	assert_int_equal(only(WEFT_FINDING_SPIN, idle)->weight, 65536);
	forget();
}

/* The trace has no event for the first calls of a spinning handle.  Their time is computed from the duration of the later calls.
 */
static void computed_start_of_a_spin_is_not_before_its_promise(void **state)
{
	start_recording();
	weft_run(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE()));
	now_ns += MS;
	weft_id idle = weft_create(weft_running(), WEFT_KIND_HANDLE, WEFT_SITE());
	weft_run(idle);
	now_ns += MS;
	weft_spins(idle, 1024);
	for (uint64_t told = 2048; told <= 65536; told *= 2) {
		now_ns += told / 2 * 5000;
		weft_spins(idle, told);
	}
	explain(true);
	const struct weft_finding *finding = only(WEFT_FINDING_SPIN, idle);
	assert_int_equal(finding->start_ns, model->promises[finding->promise].start_ns);
	forget();
}

static void few_or_long_calls_are_no_spin(void **state)
{
	spin(8000, 1000);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
	spin(20000, 60000);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

/* On a busy machine a call may take long because the thread waits for a CPU. */
static void only_cpu_time_decides_whether_the_calls_of_a_spin_are_long(void **state)
{
	weft_id idle = spin_on_cpu(100000, 80000, 8000);
	explain(true);
	assert_non_null(strstr(only(WEFT_FINDING_SPIN, idle)->title, "its thread never slept"));
	forget();
	spin_on_cpu(100000, 80000, 70000);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

/* ---- In flight, or hung ---- */

/* At the end of the trace, a connect has been pending for `age`.  Before that, `others` connects of the same type took `usual`
 * each. */
static void connect_at_the_end(uint64_t age, int others, uint64_t usual)
{
	static struct weft_record_site site = {.file = __FILE__, .line = __LINE__, .function = "connect"};
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	for (int i = 0; i <= others; i++) {
		weft_run(main_promise);
		weft_id connect = weft_create(main_promise, WEFT_KIND_CONNECT, &site);
		weft_await(main_promise, connect);
		sleep_for(i < others ? usual : age);
		if (i == others)
			break;
		weft_resolve(WEFT_SYSTEM_ID, connect);
		weft_read(main_promise, connect);
	}
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
}

static void operation_in_flight_at_exit_is_no_alarm(void **state)
{
	connect_at_the_end(5 * MS, 0, 0);
	const struct weft_finding *finding = only(WEFT_FINDING_UNDERWAY, 0);
	assert_int_equal(finding->severity, WEFT_SEVERITY_INFORMATION);
	assert_int_equal(finding->verdict, WEFT_VERDICT_OUTSIDE);
	assert_non_null(strstr(finding->title, "5.00 ms"));
	forget();
	/* Another connect that lasts four times as long as the others is still in flight, and does not hang. */
	connect_at_the_end(400 * MS, 3, 100 * MS);
	only(WEFT_FINDING_UNDERWAY, 0);
	forget();
}

static void operation_much_slower_than_its_type_is_an_alarm(void **state)
{
	connect_at_the_end(600 * MS, 3, 100 * MS);
	const struct weft_finding *finding = only(WEFT_FINDING_HANG, 0);
	assert_true(finding->sure);
	assert_int_equal(finding->severity, WEFT_SEVERITY_ALARM);
	assert_int_equal(finding->verdict, WEFT_VERDICT_OUTSIDE);
	forget();
}

static void slow_operation_of_a_unique_type_is_uncertain(void **state)
{
	connect_at_the_end(1500 * MS, 0, 0);
	const struct weft_finding *finding = only(WEFT_FINDING_HANG, 0);
	assert_false(finding->sure);
	assert_non_null(finding->doubt);
	forget();
}

static void hang_of_an_unresolved_promise_is_certain_if_nothing_runs_at_the_end(void **state)
{
	for (int running = 0; running < 2; running++) {
		start_recording();
		weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_should_resolve(main_promise);
		weft_run(main_promise);
		weft_id task = weft_create(main_promise, WEFT_KIND_TASK, WEFT_SITE());
		weft_await(main_promise, task);
		sleep_for(5 * MS);
		weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
		weft_run(other);
		if (!running)
			sleep_for(5 * MS);
		weft_label(other, "the end");
		explain(true);
		const struct weft_finding *finding = only(WEFT_FINDING_HANG, main_promise);
		assert_int_equal(finding->verdict, WEFT_VERDICT_NEVER_TRIED);
		assert_int_equal(finding->sure, !running);
		assert_int_equal(finding->doubt == NULL, !running);
		forget();
	}
}

/* The newest ready promise always runs first, so an older one starves; one of the runs takes 12 ms. */
static void finding_of_a_long_starvation_precedes_that_of_a_short_stall(void **state)
{
	start_recording();
	weft_id opening = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_WAIT, WEFT_SITE());
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_await(first, opening);
	weft_resolve(WEFT_SYSTEM_ID, opening);
	for (int i = 0; i < 60; i++) {
		weft_id asked = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_WAIT, WEFT_SITE());
		weft_id next = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_await(next, asked);
		weft_resolve(WEFT_SYSTEM_ID, asked);
		weft_read(next, asked);
		now_ns += (i == 1 ? 12 : 2) * MS;
		weft_resolve(next, next);
		weft_run(WEFT_SYSTEM_ID);
	}
	weft_read(first, opening);
	weft_resolve(first, first);
	weft_run(WEFT_SYSTEM_ID);
	explain(true);
	assert_true(findings->count >= 2);
	assert_int_equal(findings->findings[0].kind, WEFT_FINDING_STARVATION);
	assert_int_equal(model->promises[findings->findings[0].promise].id, first);
	assert_int_equal(findings->findings[1].kind, WEFT_FINDING_STALL);
	forget();
}

static void label_of_a_merged_promise_names_its_target(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	WEFT_LABEL(first, "transfer A to B");
	weft_id second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_become(first, second);
	weft_id third = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_become(second, third);
	weft_await(main_promise, third);
	sleep_for(5 * MS);
	explain(true);
	const struct weft_finding *finding = only(WEFT_FINDING_HANG, main_promise);
	assert_non_null(strstr(finding->title, "task "));
	assert_non_null(strstr(finding->title, " \"transfer A to B\""));
	forget();
}

/* ---- Presentation of hangs ---- */

/* Returns line `number` of the evidence that has the role, or NULL. */
static void many_hangs_of_one_type_are_one_finding(void **state)
{
	enum { ORDERS = 12 };
	static struct weft_record_site site = {0, "shop.c", "take_order", 7};
	weft_id orders[ORDERS];
	char name[32];
	start_recording();
	for (int i = 0; i < ORDERS; i++) {
		orders[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, &site);
		snprintf(name, sizeof name, "order %d", 1000 + i);
		weft_label(orders[i], name);
		weft_should_resolve(orders[i]);
	}
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	WEFT_LABEL(other, "parcel");
	weft_should_resolve(other);
	sleep_for(5 * MS);
	explain(true);
	assert_int_equal(findings->count, 2);
	const struct weft_finding *finding = &findings->findings[0];
	assert_int_equal(finding->kind, WEFT_FINDING_HANG);
	assert_int_equal(model->promises[finding->promise].id, orders[0]);
	assert_int_equal(finding->weight, ORDERS);
	assert_non_null(strstr(finding->title, "\"order 1000\""));
	assert_non_null(strstr(finding->title, "and 11 more never resolved"));
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 0, orders[1], "hangs in the same way");
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 7, orders[8], "hangs in the same way");
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 8, 0, "and 3 more");
	assert_int_equal(model->promises[findings->findings[1].promise].id, other);
	forget();
}

static void long_chain_of_waits_shows_its_first_and_last_promises(void **state)
{
	static const size_t lengths[] = {3, 16, 17, 20};
	for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
		size_t length = lengths[l], kept = length > 16 ? 8 : length;
		weft_id ids[20] = {0};
		start_recording();
		for (size_t i = 0; i < length; i++)
			ids[i] = weft_create(WEFT_SYSTEM_ID, i + 1 < length ? WEFT_KIND_BIND : WEFT_KIND_TASK, WEFT_SITE());
		weft_should_resolve(ids[0]);
		for (size_t i = 0; i + 1 < length; i++)
			weft_await(ids[i], ids[i + 1]);
		sleep_for(5 * MS);
		explain(true);
		const struct weft_finding *hang = only(WEFT_FINDING_HANG, ids[0]);
		assert_int_equal(model->promises[hang->root].id, ids[length - 1]);
		assert_int_equal(chain_lines(hang), length > 16 ? 17 : length);
		for (size_t i = 0; i < kept; i++)
			assert_line(hang, WEFT_EVIDENCE_CHAIN, i, ids[i], i + 1 < length ? "waits for" : "task");
		if (length > 16) {
			char more[48];
			snprintf(more, sizeof more, "... %zu more ...", length - 16);
			assert_line(hang, WEFT_EVIDENCE_CHAIN, 8, 0, more);
			for (size_t i = 0; i < 8; i++)
				assert_line(hang, WEFT_EVIDENCE_CHAIN, 9 + i, ids[length - 8 + i], i < 7 ? "waits for" : "task");
		}
		forget();
	}
}

/* `by` runs, signals a condition, and runs on. */
static void signal_to(weft_id by, weft_id condition)
{
	weft_run(by);
	weft_signal(by, condition);
	weft_run(by);
}

/* A wait for a condition is recorded as a signal, too. */
static weft_id wait_for_condition(weft_id who, weft_id condition)
{
	weft_run(who);
	weft_signal(who, condition);
	weft_id task = weft_create(condition, WEFT_KIND_TASK, WEFT_SITE());
	weft_run(who);
	weft_await(who, task);
	return task;
}

static void lost_wakeup_names_the_late_waiter_and_the_signal(void **state)
{
	for (int others = 0; others < 2; others++) {
		start_recording();
		weft_id late = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_id early = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE());
		weft_id condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
		weft_id unconcerned = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
		weft_should_resolve(late);
		WEFT_LABEL(late, "late");
		WEFT_LABEL(early, "early");
		WEFT_LABEL(condition, "ready");
		for (int i = 0; i <= others; i++) {
			signal_to(early, condition);
			now_ns += 7 * MS;
		}
		signal_to(early, unconcerned);
		tick_ns = others ? 0 : 100; /* a coarse clock gives all following events the same time */
		if (others)                 /* this task was resolved before the wait starts, so no later signal woke it */
			weft_resolve(condition, weft_create(condition, WEFT_KIND_TASK, WEFT_SITE()));
		weft_id task = wait_for_condition(late, condition);
		tick_ns = 100;
		sleep_for(MS);
		if (others) {
			weft_id another = wait_for_condition(early, condition);
			weft_run(WEFT_SYSTEM_ID);
			weft_signal(WEFT_SYSTEM_ID, condition);
			weft_resolve(condition, another);
			weft_read(early, another);
			weft_resolve(early, early);
		}
		weft_resume(WEFT_SYSTEM_ID);
		sleep_for(MS);
		explain(true);
		const struct weft_finding *hang = only(WEFT_FINDING_HANG, late);
		assert_int_equal(hang->verdict, WEFT_VERDICT_LOST_WAKEUP);
		assert_true(hang->sure);
		assert_int_equal(model->promises[hang->root].id, task);
		assert_non_null(strstr(hang->title, "\"ready\" was signalled 7.00 ms before the wait"));
		assert_int_equal((hang->end_ns - hang->start_ns) / (int64_t)MS, 7);
		assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, early, "\"ready\", but no promise waits for it yet");
		assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, task, "\"late\" starts to wait as task");
		assert_line(hang, WEFT_EVIDENCE_CAUSE, 2, condition, others ? "woke 1 other waiter" : "was not signalled again");
		if (others)
			assert_line(hang, WEFT_EVIDENCE_NOTE, 0, condition, "2 signals of");
		else
			assert_null(line_of(hang, WEFT_EVIDENCE_NOTE, 0));
		forget();
	}
}

/* The last signal of a condition woke `early`, 3 ms before `late` starts to wait for the condition. */
static void wait_after_the_last_signal_shows_the_time_between_them(void **state)
{
	start_recording();
	weft_id late = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_id early = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE());
	weft_id condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	WEFT_LABEL(condition, "ready");
	weft_should_resolve(late);
	weft_id first = weft_create(condition, WEFT_KIND_TASK, WEFT_SITE());
	weft_await(early, first);
	sleep_for(MS);
	weft_run(WEFT_SYSTEM_ID);
	weft_signal(WEFT_SYSTEM_ID, condition);
	weft_resolve(condition, first);
	weft_read(early, first);
	weft_resolve(early, early);
	sleep_for(3 * MS);
	weft_id second = weft_create(condition, WEFT_KIND_TASK, WEFT_SITE());
	weft_await(late, second);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, late);
	assert_int_equal(hang->verdict, WEFT_VERDICT_NEVER_TRIED);
	assert_non_null(strstr(hang->title, "\"ready\" was signalled 3.00 ms before the wait"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, WEFT_SYSTEM_ID, "for the last time");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, second, "starts to wait for this condition 3.00 ms too late: lost wake-up");
	forget();
}

/* A condition may stay pending without a fault.  Its explanation names the promise that waits for it and its last run.  A pending
 * timer that its callback created has waited so far. */
static void pending_condition_is_no_fault(void **state)
{
	start_recording();
	weft_id loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOOP, WEFT_SITE());
	weft_id condition = weft_create(loop, WEFT_KIND_CONDITION, WEFT_SITE()),
		idle = weft_create(loop, WEFT_KIND_LISTEN, WEFT_SITE());
	weft_await(loop, condition);
	weft_run(WEFT_SYSTEM_ID);
	weft_signal_only(loop, condition);
	sleep_for(MS);
	weft_run(condition);
	weft_id timer = weft_create(condition, WEFT_KIND_TIMER, WEFT_SITE());
	weft_run(WEFT_SYSTEM_ID);
	sleep_for(7 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	const struct {
		weft_id id;
		const char *says;
	} asked[] = {{condition, "which is normal for its kind; it last ran 7.00 ms before the end"},
	    {idle, "which is normal for its kind; it never ran"}, {timer, "it has waited"}};
	for (size_t i = 0; i < 3; i++) {
		struct weft_findings *why;
		assert_int_equal(weft_explain_promise(&why, model, weft_model_find(model, asked[i].id), NULL, NULL), WEFT_OK);
		assert_int_equal(why->count, 1);
		if (!strstr(why->findings[0].title, asked[i].says))
			fail_msg("%s", why->findings[0].title);
		if (i == 0) {
			assert_line(&why->findings[0], WEFT_EVIDENCE_CHAIN, 0, loop, "waits for it");
			assert_line(&why->findings[0], WEFT_EVIDENCE_CAUSE, 0, loop, "signals it for the last time");
		}
		weft_findings_destroy(why);
	}
	forget();
}

static void hang_lists_the_held_locks(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_id job = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_id kept = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_id released = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	WEFT_LABEL(kept, "cache");
	WEFT_LABEL(released, "log");
	weft_should_resolve(main_promise);
	weft_await(main_promise, job);
	weft_hold(job, kept);
	weft_hold(job, released);
	sleep_for(MS);
	weft_release(job, released);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_line(hang, WEFT_EVIDENCE_NOTE, 0, kept, "\"cache\"");
	assert_null(line_of(hang, WEFT_EVIDENCE_NOTE, 1));
	forget();
}

static void hang_after_a_failed_creator_shows_the_error(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	weft_id creator = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE());
	weft_run(creator);
	weft_id task = weft_create(creator, WEFT_KIND_TASK, WEFT_SITE());
	weft_await(main_promise, task);
	WEFT_FAIL(creator, creator, "broken pipe");
	weft_read(WEFT_SYSTEM_ID, creator);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_int_equal(hang->verdict, WEFT_VERDICT_CREATOR_FAILED);
	assert_non_null(strstr(hang->title, ", which created task"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, creator, "creates task");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, creator, "fails: broken pipe");
	forget();
}

static void hang_of_a_promise_not_run_after_its_input_ended_names_the_input(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	weft_run(main_promise);
	weft_id timer = timer_of(main_promise);
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, timer);
	sleep_for(MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_int_equal(hang->verdict, WEFT_VERDICT_NOT_RUN);
	assert_non_null(strstr(hang->title, "it did not run after timer"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, timer, "does not run afterwards");
	forget();
}

/* The program exits after the timer has ended, and before its waiter has run. */
static void queued_callback_at_exit_is_not_a_hang(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	weft_run(main_promise);
	weft_id timer = timer_of(main_promise);
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, timer);
	explain(true);
	only(WEFT_FINDING_UNDERWAY, main_promise);
	forget();
}

/* A response took 200 ms before, so a request that has waited for 150 ms at the end of the program may be in flight. */
static void request_of_usual_duration_does_not_hang(void **state)
{
	for (int is_slow = 0; is_slow < 2; is_slow++) {
		start_recording();
		for (int i = 0; i < 3; i++) {
			weft_id ask = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
			weft_should_resolve(ask);
			sleep_for(i == 1 ? 200 * MS : i == 2 && is_slow ? 250 * MS : 150 * MS);
			if (i < 2)
				weft_resolve(WEFT_SYSTEM_ID, ask);
		}
		weft_resume(WEFT_SYSTEM_ID);
		explain(true);
		assert_string_equal(weft_finding_name(findings->findings[0].kind), is_slow ? "hang" : "underway");
		forget();
	}
}

static void hang_with_an_unrecorded_wait_advises_to_record_the_wait(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_int_equal(hang->verdict, WEFT_VERDICT_UNKNOWN);
	assert_false(hang->sure);
	assert_non_null(strstr(hang->doubt, "does not record what the promise waits for"));
	assert_non_null(strstr(hang->next, "record the wait"));
	forget();
}

static void waiters_of_one_promise_are_one_finding(void **state)
{
	static const size_t counts[] = {1, 2, 9, 10};
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		size_t count = counts[c];
		weft_id ids[10] = {0};
		char title[48];
		start_recording();
		weft_id task = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		for (size_t i = 0; i < count; i++) {
			ids[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
			weft_should_resolve(ids[i]);
			weft_await(ids[i], task);
		}
		sleep_for(MS);
		explain(true);
		const struct weft_finding *hang = only(WEFT_FINDING_HANG, ids[0]);
		assert_int_equal(hang->weight, count);
		snprintf(title, sizeof title, count == 1 ? "bind %lld never" : "bind %lld and %zu more never", (long long)ids[0],
		    count - 1);
		assert_ptr_equal(strstr(hang->title, title), hang->title);
		for (size_t i = 1; i < count && i <= 8; i++)
			assert_line(hang, WEFT_EVIDENCE_VICTIM, i - 1, ids[i], "should resolve too");
		if (count > 9)
			assert_line(hang, WEFT_EVIDENCE_VICTIM, 8, 0, "and 1 more");
		assert_null(line_of(hang, WEFT_EVIDENCE_VICTIM, count < 10 ? count - 1 : 9));
		forget();
	}
	/* A hang without a waiter is reported with its creation site. */
	start_recording();
	weft_should_resolve(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()));
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, 0);
	assert_non_null(strstr(hang->title, "findings_test.c"));
	assert_non_null(strstr(hang->title, "nothing tried to resolve it"));
	forget();
}

/* The model ends a pending lock or its holder at its last event, and viewers draw it until then. */
static void pending_holder_and_lock_last_until_their_last_event(void **state)
{
	start_recording();
	weft_id holder = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE());
	weft_id lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_id kept = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	sleep_for(50 * MS);
	weft_hold(holder, lock);
	weft_hold(holder, kept);
	sleep_for(200 * MS);
	weft_release(holder, lock);
	sleep_for(400 * MS);
	explain(true);
	int64_t holder_ns = model->promises[weft_model_find(model, holder)].end_ns;
	int64_t lock_ns = model->promises[weft_model_find(model, lock)].end_ns;
	assert_in_range(holder_ns, 50 * MS, 200 * MS);
	assert_in_range(lock_ns, 250 * MS, 400 * MS);
	assert_in_range(model->promises[weft_model_find(model, kept)].end_ns, 50 * MS, 200 * MS);
	forget();
}

/* Repeated events of a state dump do not affect later events. */
static void events_after_a_repeated_await_enter_the_model(void **state)
{
	start_recording();
	weft_id waiter = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_id input = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_still_awaits(waiter, input);
	weft_still_awaits(waiter, input);
	weft_id later = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	explain(true);
	assert_int_not_equal(weft_model_find(model, later), WEFT_NONE);
	size_t awaits = 0;
	for (size_t l = 0; l < model->link_count; l++)
		awaits += model->links[l].kind == WEFT_LINK_AWAIT;
	assert_int_equal(awaits, 1);
	forget();
}

static void model_keeps_all_samples_of_each_counter(void **state)
{
	enum { SAMPLES = 100, COUNTERS = 4 };
	static struct weft_record_text names[COUNTERS] = {
	    WEFT_COUNTER("one"), WEFT_COUNTER("two"), WEFT_COUNTER("three"), WEFT_COUNTER("four")};
	start_recording();
	for (int i = 0; i < SAMPLES; i++)
		for (int c = 0; c < COUNTERS; c++)
			weft_counter_set(WEFT_SYSTEM_ID, &names[c], 1000 * c + i);
	explain(true);
	assert_int_equal(model->counter_count, COUNTERS);
	for (int c = 0; c < COUNTERS; c++) {
		const struct weft_counter *counter = &model->counters[c];
		assert_int_equal(counter->count, SAMPLES);
		for (int i = 0; i < SAMPLES; i++)
			assert_int_equal(counter->samples[i].value, counter->samples[0].value + i);
		assert_int_equal(counter->samples[0].value % 1000, 0);
	}
	forget();
}

/* ---- Cycles and choices ---- */

/* a waits for a pick of b and another promise; b waits for a. */
static weft_id circle_with_a_way_out(enum weft_kind other)
{
	start_recording();
	weft_id a = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_id b = weft_create(a, WEFT_KIND_BIND, WEFT_SITE());
	weft_id pick = weft_create(a, WEFT_KIND_PICK, WEFT_SITE());
	weft_id way_out = weft_create(a, other, WEFT_SITE());
	weft_await(a, pick);
	weft_await(b, a);
	weft_await(pick, b);
	weft_await(pick, way_out);
	if (other == WEFT_KIND_BIND)
		weft_await(way_out, a);
	sleep_for(50 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	return a;
}

static void cycle_with_a_pending_alternative_is_no_deadlock(void **state)
{
	circle_with_a_way_out(WEFT_KIND_TIMER);
	assert_int_equal(findings->count, 0);
	forget();
}

static void cycle_with_only_stuck_alternatives_is_a_deadlock(void **state)
{
	circle_with_a_way_out(WEFT_KIND_BIND);
	const struct weft_finding *cycle = only(WEFT_FINDING_CYCLE, 0);
	assert_true(cycle->sure);
	struct weft_waits *waits;
	assert_int_equal(weft_waits_create(&waits, model, model->end_ns, NULL), WEFT_OK);
	assert_int_equal(waits->cycles, 1);
	for (size_t i = 0; i < waits->count; i++)
		assert_true(waits->waits[i].in_cycle);
	weft_waits_destroy(waits);
	forget();
}

static void promise_awaiting_itself_is_a_cycle(void **state)
{
	start_recording();
	weft_id task = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id self = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_await(other, task);
	weft_await(self, self);
	sleep_for(MS);
	explain(true);
	assert_non_null(strstr(only(WEFT_FINDING_CYCLE, self)->title, "waits for itself"));
	forget();
}

/* ---- Failures ---- */

static void error_text_with_cancelled_in_any_spelling_is_no_failure(void **state)
{
	static const char *const spellings[] = {"cancelled", "Lwt.Canceled", "ECANCELED", "operation canceled"};
	start_recording();
	for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
		weft_id p = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_fail(WEFT_SYSTEM_ID, p, spellings[i]);
	}
	weft_id p = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_fail(WEFT_SYSTEM_ID, p, "refused");
	sleep_for(MS);
	explain(true);
	assert_non_null(strstr(only(WEFT_FINDING_FAILURE, p)->title, "refused"));
	forget();
}

static weft_id failed_client(unsigned port, const char *why)
{
	char label[32];
	weft_id client = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	snprintf(label, sizeof label, "127.0.0.1:%u", port);
	weft_label(client, label);
	sleep_for(MS);
	weft_fail(WEFT_SYSTEM_ID, client, why);
	return client;
}

static void failures_of_one_type_error_and_site_are_one_finding(void **state)
{
	enum { COUNT = 120 };
	weft_id clients[COUNT];
	start_recording();
	for (unsigned i = 0; i < COUNT; i++)
		clients[i] = failed_client(40000 + i, "connection reset by peer");
	weft_id refused = failed_client(50000, "connection refused");
	weft_id elsewhere = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	WEFT_LABEL(elsewhere, "127.0.0.1:1");
	weft_fail(WEFT_SYSTEM_ID, elsewhere, "connection reset by peer");
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 3);
	assert_int_equal(findings->left_out, 0);
	const struct weft_finding *many = &findings->findings[0];
	assert_int_equal(model->promises[many->promise].id, clients[0]);
	assert_int_equal(many->count, COUNT);
	assert_non_null(strstr(many->title, "reset by peer; 119 similar findings (findings_test.c:"));
	assert_line(many, WEFT_EVIDENCE_LIKE, 0, clients[1], "failed after 1.00 ms");
	assert_line(many, WEFT_EVIDENCE_LIKE, 7, clients[8], "failed after");
	assert_line(many, WEFT_EVIDENCE_LIKE, 8, 0, "and 111 more");
	assert_null(line_of(many, WEFT_EVIDENCE_LIKE, 9));
	assert_int_equal(model->promises[findings->findings[1].promise].id, refused);
	assert_int_equal(model->promises[findings->findings[2].promise].id, elsewhere);
	assert_null(strstr(findings->findings[2].title, "like it"));
	forget();
}

/* ---- Cancellation ---- */

static unsigned asked, allowed, last_percent;

static bool count_questions(void *ctx, unsigned percent)
{
	assert_ptr_equal(ctx, &asked);
	assert_true(percent >= last_percent && percent <= 100);
	last_percent = percent;
	return asked++ < allowed;
}

static void analysis_can_be_cancelled_at_every_check(void **state)
{
	circle_with_a_way_out(WEFT_KIND_BIND);
	const struct weft_explain_options options = {.go_on = count_questions, .ctx = &asked};
	for (uint32_t promise = 0; promise < 3; promise++) {
		unsigned questions = 0;
		for (allowed = 0;; allowed++) {
			struct weft_findings *out = NULL;
			struct weft_error err;
			asked = last_percent = 0;
			int status = promise ? weft_explain_promise(&out, model, promise, &options, &err)
					     : weft_explain(&out, model, &options, &err);
			if (status == WEFT_OK) {
				weft_findings_destroy(out);
				break;
			}
			assert_int_equal(status, WEFT_ECANCELLED);
			assert_int_equal(err.status, WEFT_ECANCELLED);
			assert_null(out);
			assert_int_equal(
			    asked, allowed + 1); /* after the answer that it is cancelled, the analysis does not ask again */
			questions++;
		}
		assert_true(questions > 5);
	}
	forget();
}

static void unlisted_kinds_have_the_traits_of_the_unknown_kind(void **state)
{
	assert_true(weft_kind_has(77, WEFT_TRAIT_INPUTS));
	assert_false(weft_kind_has(77, WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS));
	assert_true(weft_kind_has(60000, WEFT_TRAIT_INPUTS));
	assert_true(weft_kind_has(WEFT_KIND_TIMER, WEFT_TRAIT_OUTSIDE));
	assert_true(weft_kind_has(WEFT_KIND_SYSTEM, WEFT_TRAIT_ENDLESS));
}
/* ---- Use of a promise after its end, or before its creation ---- */

static void await_or_lock_by_an_ended_promise_is_misuse(void **state)
{
	start_recording();
	weft_id lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE()), ended[2];
	for (int i = 0; i < 2; i++) {
		ended[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
		weft_label(ended[i], i ? "second" : "first");
		weft_run(ended[i]);
		weft_hold(ended[i], lock);
		weft_release(ended[i], lock);
		weft_resolve(ended[i], ended[i]);
	}
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_await(other, ended[0]); /* a wait for an ended promise is no fault */
	weft_await(ended[0], other);
	weft_awaits_no_more(ended[0], other);
	weft_hold(ended[1], lock);
	weft_release(ended[1], lock);
	weft_resolve(other, other);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 2);
	for (int i = 0; i < 2; i++) {
		const struct weft_finding *finding = &findings->findings[i];
		assert_int_equal(finding->kind, WEFT_FINDING_MISUSED);
		assert_int_equal(finding->severity, WEFT_SEVERITY_ALARM);
		assert_true(finding->sure);
		assert_int_equal(model->promises[finding->promise].id, ended[i]);
		assert_non_null(strstr(finding->title, i ? "takes lock" : "waits for request"));
		assert_line(finding, WEFT_EVIDENCE_CAUSE, 1, ended[i], "ends");
		assert_line(finding, WEFT_EVIDENCE_CAUSE, 2, i ? lock : other, i ? "takes lock" : "starts to wait for");
	}
	forget();
}

/* An ended request may create the next request in its callback and await it, as requests of libevent do. */
static void next_request_from_a_callback_is_no_misuse(void **state)
{
	struct weft_record_place place = {.address = (const void *)(uintptr_t)next_request_from_a_callback_is_no_misuse};
	start_recording();
	weft_id first = weft_create_at(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, &place), second;
	weft_signal(WEFT_SYSTEM_ID, first);
	weft_resolve(first, first);
	second = weft_create_at(first, WEFT_KIND_REQUEST, &place);
	weft_await(first, second);
	weft_signal(WEFT_SYSTEM_ID, second);
	weft_resolve(second, second);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

/* The system ends a request; its callback then creates the next request and awaits it, as fs requests of Node.js do. */
static void callback_of_a_request_ended_by_the_system_is_no_misuse(void **state)
{
	start_recording();
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_FS, WEFT_SITE()), second;
	weft_resolve(WEFT_SYSTEM_ID, first);
	weft_run(first);
	second = weft_create(first, WEFT_KIND_FS, WEFT_SITE());
	weft_await(first, second);
	weft_resolve(WEFT_SYSTEM_ID, second);
	weft_run(second);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

/* This test has to run first, because its first recording must have id 1. */
static void use_of_a_never_created_promise_is_reported(void **state)
{
	for (int kept = 0; kept < 2; kept++) {
		weft_id before = kept ? 0 : 77777, p;
		if (kept) { /* an id of an earlier recording may be used without a fault */
			start_recording();
			before = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
			weft_stop();
		}
		start_recording();
		p = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_await(p, before);
		weft_run(p);
		weft_resolve(p, p);
		sleep_for(MS);
		explain(true);
		if (!kept) {
			assert_int_equal(p, 1);
			const struct weft_finding *finding = only(WEFT_FINDING_MISUSED, before);
			assert_non_null(strstr(finding->title, "promise 77777 was never created"));
			assert_line(finding, WEFT_EVIDENCE_CAUSE, 0, p, "is the first to use this id");
		} else {
			assert_int_equal(findings->count, 0);
		}
		forget();
	}
}

static void thread_waiting_after_the_last_signal_hangs(void **state)
{
	start_recording();
	weft_id sleeper = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_id by = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_id condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	WEFT_LABEL(sleeper, "sleeper");
	WEFT_LABEL(by, "producer");
	WEFT_LABEL(condition, "ready");
	weft_run(by);
	weft_signal_only(by, condition);
	now_ns += 2 * MS;
	weft_resolve(by, by);
	now_ns += 5 * MS;
	weft_run(sleeper);
	weft_await(sleeper, condition);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, sleeper);
	assert_int_equal(hang->verdict, WEFT_VERDICT_LOST_WAKEUP);
	assert_int_equal(model->promises[hang->root].id, condition);
	assert_non_null(strstr(hang->title, "\"sleeper\""));
	assert_non_null(strstr(hang->title, "sleeps forever: condition"));
	assert_non_null(strstr(hang->title, "was signalled 7.00 ms before the wait"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, by, "for the last time");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, by, "ends; no other thread ever signalled");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 2, sleeper, "7.00 ms too late: lost wake-up");
	forget();
}

/* ---- Work that no worker takes ---- */

struct worker {
	weft_id thread, condition, job;
	sem_t go, went;
};

static void *run_worker(void *data)
{
	struct worker *w = data;
	weft_run(w->thread);
	sem_wait(&w->go);
	weft_run(w->job);
	weft_resolve(w->job, w->job);
	weft_run(w->thread);
	sem_post(&w->went);
	sem_wait(&w->go);
	weft_await(w->thread, w->condition);
	sleep_for(MS);
	sem_post(&w->went);
	return NULL;
}

static void record_worker(bool is_late)
{
	struct worker w = {0};
	pthread_t thread;
	sem_init(&w.go, 0, 0);
	sem_init(&w.went, 0, 0);
	w.thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	w.condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	WEFT_LABEL(w.condition, "there is work");
	weft_id asks = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE()), job[2];
	weft_should_resolve(asks);
	weft_run(asks);
	pthread_create(&thread, NULL, run_worker, &w);
	for (int i = 0; i < 2; i++) {
		job[i] = weft_create(asks, WEFT_KIND_WORK, WEFT_SITE());
		WEFT_LABEL(job[i], "compress");
		weft_await(asks, job[i]);
		w.job = job[i];
		if (i == 0 || is_late)
			weft_signal_only(asks, w.condition);
		now_ns += 5 * MS;
		sem_post(&w.go);
		sem_wait(&w.went);
	}
	if (!is_late) /* the worker waits before this signal, so no wake-up is lost, and another finding is right */
		weft_signal_only(asks, w.condition);
	pthread_join(thread, NULL);
	sleep_for(3000ull * MS);
	weft_resume(asks);
	sleep_for(MS);
	explain(true);
	sem_destroy(&w.go);
	sem_destroy(&w.went);
}

static void work_with_all_workers_asleep_is_a_lost_wakeup(void **state)
{
	start_recording();
	record_worker(true);
	const struct weft_finding *hang = &findings->findings[0];
	assert_int_equal(hang->kind, WEFT_FINDING_HANG);
	assert_int_equal(hang->verdict, WEFT_VERDICT_LOST_WAKEUP);
	assert_non_null(strstr(hang->title, "\"compress\""));
	assert_non_null(strstr(hang->title, "missed the signal for work"));
	assert_non_null(strstr(line_of(hang, WEFT_EVIDENCE_CAUSE, 1)->text, "\"there is work\" for the last time"));
	assert_non_null(strstr(line_of(hang, WEFT_EVIDENCE_CAUSE, 2)->text, "5.00 ms too late: lost wake-up"));
	forget();
	start_recording();
	record_worker(false);
	assert_int_not_equal(findings->findings[0].verdict, WEFT_VERDICT_LOST_WAKEUP);
	forget();
}

/* The tasks that nothing resolved may wait for the lock that is never released, so the finding about the lock comes first. */
static void explained_hang_precedes_many_unexplained_ones(void **state)
{
	start_recording();
	weft_id lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	for (int i = 0; i < 5; i++)
		weft_should_resolve(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()));
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_run(first);
	weft_hold(first, lock);
	weft_resolve(first, first);
	weft_id second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_should_resolve(second);
	weft_await(second, lock);
	sleep_for(2000ull * MS);
	explain(true);
	assert_int_equal(findings->count, 2);
	assert_int_equal(findings->findings[0].verdict, WEFT_VERDICT_NOT_RELEASED);
	assert_int_equal(findings->findings[1].verdict, WEFT_VERDICT_NEVER_TRIED);
	assert_true(findings->findings[1].weight > findings->findings[0].weight);
	forget();
}

static void waiter_of_a_released_lock_hangs_if_its_loop_sleeps(void **state)
{
	start_recording();
	weft_id lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_id second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	weft_should_resolve(second);
	weft_run(first);
	weft_hold(first, lock);
	weft_await(second, lock);
	weft_release(first, lock);
	weft_resolve(first, first);
	sleep_for(50 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	assert_int_equal(only(WEFT_FINDING_HANG, second)->verdict, WEFT_VERDICT_NOT_HANDED_ON);
	forget();
}

/* ---- Unread errors ---- */

enum notice { READ, UNASKED, IGNORED };

static weft_id record_failure(enum notice notice)
{
	weft_id loop = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()),
		task = weft_create(loop, WEFT_KIND_TASK, WEFT_SITE());
	weft_id reader = notice == IGNORED ? weft_create(loop, WEFT_KIND_IGNORE_RESULT, WEFT_SITE()) : loop;
	weft_await(reader, task);
	weft_run(task);
	weft_fail(WEFT_SYSTEM_ID, task, "no paper");
	weft_read(reader, task);
	if (notice != READ)
		WEFT_NOTE(notice == UNASKED ? task : reader, WEFT_UNASKED);
	weft_resolve(reader, reader);
	if (reader != loop)
		weft_resolve(loop, loop);
	sleep_for(MS);
	return task;
}

static void failure_with_an_unread_or_ignored_result_is_reported(void **state)
{
	for (enum notice notice = READ; notice <= IGNORED; notice++) {
		start_recording();
		weft_id task = record_failure(notice);
		explain(true);
		if (notice == READ) {
			assert_int_equal(findings->count, 0);
		} else {
			const struct weft_finding *failure = only(WEFT_FINDING_FAILURE, task);
			assert_int_equal(failure->severity, notice == UNASKED ? WEFT_SEVERITY_ALARM : WEFT_SEVERITY_INFORMATION);
			assert_line(failure, WEFT_EVIDENCE_CAUSE, 1, task,
			    notice == UNASKED ? "its callback does not ask for the result" : "its result is ignored");
		}
		forget();
	}
}

/* ---- Retries ---- */

enum again { BY_IDLE, IN_CALLBACK, THROUGH_OTHERS, BY_REQUESTS };

/* Records 40 tries to connect; each is created after the failure of the previous try is known. */
static void try_again(enum again again)
{
	weft_id story = weft_create(WEFT_SYSTEM_ID, again == BY_IDLE ? WEFT_KIND_HANDLE : WEFT_KIND_LOOP, WEFT_SITE());
	weft_id maker = again == BY_REQUESTS ? weft_create(story, WEFT_KIND_REQUEST, WEFT_SITE()) : story, before = 0;
	for (int i = 0; i < 40; i++) {
		weft_run(maker);
		weft_id try = weft_create(maker, WEFT_KIND_CONNECT, WEFT_SITE()), other = 0;
		weft_await(story, try);
		if (before) /* a GLib task ends when its callback has returned */
			weft_fail(WEFT_SYSTEM_ID, before, "refused");
		sleep_for(MS);
		weft_run(try);
		if (again == IN_CALLBACK) {
			maker = before = try;
			continue;
		}
		weft_fail(WEFT_SYSTEM_ID, try, "refused");
		if (again == BY_IDLE)
			continue;
		if (again == BY_REQUESTS) { /* the callback of each request creates the next request */
			weft_read(story, try);
			weft_id request = weft_create(maker, WEFT_KIND_REQUEST, WEFT_SITE());
			weft_resolve(WEFT_SYSTEM_ID, request);
			weft_read(maker, request);
			maker = request;
			continue;
		}
		other = weft_create(story, WEFT_KIND_BIND, WEFT_SITE());
		weft_read(other, try);
		weft_fail(other, other, "refused");
		maker = weft_create(story, WEFT_KIND_TRY, WEFT_SITE());
		weft_read(maker, other);
	}
	if (before)
		weft_fail(WEFT_SYSTEM_ID, before, "refused");
	weft_read(story, before ? before : maker);
	sleep_for(MS);
}

static void retries_by_different_callers_are_one_finding(void **state)
{
	for (enum again again = BY_IDLE; again <= BY_REQUESTS; again++) {
		start_recording();
		try_again(again);
		explain(true);
		size_t at = 0;
		while (at < findings->count && findings->findings[at].kind != WEFT_FINDING_RETRIES)
			at++;
		assert_true(at < findings->count);
		assert_int_equal(findings->findings[at].weight, 40);
		assert_non_null(strstr(findings->findings[at].title, "refused"));
		forget();
	}
}

/* ---- Resolver of a promise ---- */

static void blocked_resolver_of_the_same_type_is_named(void **state)
{
	start_recording();
	weft_id packer = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()), push[2];
	WEFT_LABEL(packer, "packer");
	for (int i = 0; i < 2; i++) {
		push[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		WEFT_LABEL(push[i], "room in the warehouse");
		weft_should_resolve(push[i]);
	}
	weft_run(packer);
	weft_resolve(packer, push[0]);
	weft_id printer = weft_create(packer, WEFT_KIND_TASK, WEFT_SITE());
	WEFT_LABEL(printer, "take printer");
	weft_await(packer, printer);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, push[1]);
	assert_non_null(strstr(hang->title, "\"packer\""));
	assert_non_null(strstr(hang->title, "which resolves promises like task"));
	assert_non_null(strstr(hang->next, "\"take printer\""));
	forget();
}

static void semaphore_holder_is_named(void **state)
{
	start_recording();
	weft_id user[3], token[3];
	for (int i = 0; i < 3; i++) {
		user[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		token[i] = weft_create(user[i], WEFT_KIND_SEMAPHORE, WEFT_SITE());
		weft_await(user[i], token[i]);
		weft_should_resolve(user[i]);
		if (i < 2) {
			weft_resolve(WEFT_SYSTEM_ID, token[i]);
			weft_read(user[i], token[i]);
		}
		if (i < 1)
			weft_resolve(user[i], user[i]);
	}
	weft_id work = weft_create(user[1], WEFT_KIND_TASK, WEFT_SITE());
	weft_await(user[1], work);
	now_ns += 100 * MS;
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = NULL;
	for (size_t i = 0; i < findings->count; i++)
		if (model->promises[findings->findings[i].root].kind == WEFT_KIND_SEMAPHORE)
			hang = &findings->findings[i];
	assert_non_null(hang);
	const struct weft_evidence *note = NULL;
	bool ended = false;
	for (size_t i = 0; line_of(hang, WEFT_EVIDENCE_NOTE, i); i++) {
		const struct weft_evidence *line = line_of(hang, WEFT_EVIDENCE_NOTE, i);
		note = strstr(line->text, "got the semaphore at this time") ? line : note;
		ended |= strstr(line->text, "1 promise that got the semaphore has ended") != NULL;
	}
	assert_non_null(note);
	assert_int_equal(model->promises[note->promise].id, user[1]);
	assert_true(ended);
	forget();
}

/* A promise hangs in a killed program if it had no events for the last three quarters of the run, and is in flight otherwise. */
static void recently_active_promise_at_a_kill_is_in_flight(void **state)
{
	for (int is_idle = 0; is_idle < 2; is_idle++) {
		start_recording();
		const weft_id job = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		const weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		const weft_id answer = weft_create(job, WEFT_KIND_TASK, WEFT_SITE());
		weft_should_resolve(job);
		weft_run(job);
		weft_await(job, answer);
		weft_run(WEFT_SYSTEM_ID);
		for (int i = 0; i < 100; i++) {
			sleep_for(100 * MS);
			weft_run(!is_idle || i < 10 ? answer : other);
			weft_run(WEFT_SYSTEM_ID);
		}
		sleep_for(MS);
		explain(false);
		only(is_idle ? WEFT_FINDING_HANG : WEFT_FINDING_UNDERWAY, job);
		forget();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(use_of_a_never_created_promise_is_reported),
	    cmocka_unit_test(sleeping_loop_lists_the_handles_keeping_it_alive),
	    cmocka_unit_test(running_or_returned_loop_has_no_finding),
	    cmocka_unit_test(loop_closed_before_its_handles_is_an_alarm),
	    cmocka_unit_test(endlessly_called_handle_spins),
	    cmocka_unit_test(finished_spin_is_uncertain),
	    cmocka_unit_test(longest_of_several_spins_is_reported),
	    cmocka_unit_test(computed_start_of_a_spin_is_not_before_its_promise),
	    cmocka_unit_test(few_or_long_calls_are_no_spin),
	    cmocka_unit_test(only_cpu_time_decides_whether_the_calls_of_a_spin_are_long),
	    cmocka_unit_test(tasks_of_one_type_without_a_result_are_one_finding),
	    cmocka_unit_test(unanswered_message_names_its_receiver),
	    cmocka_unit_test(operation_in_flight_at_exit_is_no_alarm),
	    cmocka_unit_test(operation_much_slower_than_its_type_is_an_alarm),
	    cmocka_unit_test(slow_operation_of_a_unique_type_is_uncertain),
	    cmocka_unit_test(hang_of_an_unresolved_promise_is_certain_if_nothing_runs_at_the_end),
	    cmocka_unit_test(many_hangs_of_one_type_are_one_finding),
	    cmocka_unit_test(finding_of_a_long_starvation_precedes_that_of_a_short_stall),
	    cmocka_unit_test(label_of_a_merged_promise_names_its_target),
	    cmocka_unit_test(await_or_lock_by_an_ended_promise_is_misuse),
	    cmocka_unit_test(next_request_from_a_callback_is_no_misuse),
	    cmocka_unit_test(callback_of_a_request_ended_by_the_system_is_no_misuse),
	    cmocka_unit_test(work_with_all_workers_asleep_is_a_lost_wakeup),
	    cmocka_unit_test(waiter_of_a_released_lock_hangs_if_its_loop_sleeps),
	    cmocka_unit_test(failures_of_one_type_error_and_site_are_one_finding),
	    cmocka_unit_test(explained_hang_precedes_many_unexplained_ones),
	    cmocka_unit_test(failure_with_an_unread_or_ignored_result_is_reported),
	    cmocka_unit_test(retries_by_different_callers_are_one_finding),
	    cmocka_unit_test(blocked_resolver_of_the_same_type_is_named),
	    cmocka_unit_test(semaphore_holder_is_named),
	    cmocka_unit_test(long_chain_of_waits_shows_its_first_and_last_promises),
	    cmocka_unit_test(lost_wakeup_names_the_late_waiter_and_the_signal),
	    cmocka_unit_test(wait_after_the_last_signal_shows_the_time_between_them),
	    cmocka_unit_test(thread_waiting_after_the_last_signal_hangs),
	    cmocka_unit_test(pending_condition_is_no_fault),
	    cmocka_unit_test(hang_lists_the_held_locks),
	    cmocka_unit_test(hang_after_a_failed_creator_shows_the_error),
	    cmocka_unit_test(hang_of_a_promise_not_run_after_its_input_ended_names_the_input),
	    cmocka_unit_test(queued_callback_at_exit_is_not_a_hang),
	    cmocka_unit_test(request_of_usual_duration_does_not_hang),
	    cmocka_unit_test(hang_with_an_unrecorded_wait_advises_to_record_the_wait),
	    cmocka_unit_test(waiters_of_one_promise_are_one_finding),
	    cmocka_unit_test(pending_holder_and_lock_last_until_their_last_event),
	    cmocka_unit_test(events_after_a_repeated_await_enter_the_model),
	    cmocka_unit_test(model_keeps_all_samples_of_each_counter),
	    cmocka_unit_test(cycle_with_a_pending_alternative_is_no_deadlock),
	    cmocka_unit_test(cycle_with_only_stuck_alternatives_is_a_deadlock),
	    cmocka_unit_test(promise_awaiting_itself_is_a_cycle),
	    cmocka_unit_test(error_text_with_cancelled_in_any_spelling_is_no_failure),
	    cmocka_unit_test(analysis_can_be_cancelled_at_every_check),
	    cmocka_unit_test(unlisted_kinds_have_the_traits_of_the_unknown_kind),
	    cmocka_unit_test(recently_active_promise_at_a_kill_is_in_flight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
