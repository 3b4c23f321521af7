/* findings_test.c: small programs, recorded with a clock of their own, and what weft explain says of each.
 * SPDX-License-Identifier: ISC */
#include "findings.h"

/* ---- Loops ---- */

static size_t chain_lines(const struct weft_finding *finding)
{
	size_t count = 0;
	for (size_t i = 0; i < finding->evidence_count; i++)
		count += finding->evidence[i].role == WEFT_EVIDENCE_CHAIN;
	return count;
}

static void a_loop_that_sleeps_is_kept_by_what_it_still_waits_for(void **state)
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
	/* Timers, which are on their way, before handles; those of one place in one line. */
	assert_int_equal(chain_lines(alive), 2);
	assert_int_equal(model->promises[alive->evidence[0].promise].id, interval);
	assert_int_equal(model->promises[alive->evidence[1].promise].id, pool[0]);
	assert_non_null(strstr(alive->evidence[1].text, "3 of the same sort"));
	/* weft waits says the same. */
	struct weft_waits *waits;
	assert_int_equal(weft_waits_create(&waits, model, model->end_ns, NULL), WEFT_OK);
	size_t kept_by = 0;
	for (size_t i = 0; i < waits->count; i++)
		if (model->promises[waits->waits[i].from].id == loop) {
			int64_t id = model->promises[waits->waits[i].to].id;
			assert_true(id != unreferenced && id != ended);
			/* The wait for `back` that was given up is another one. */
			assert_true(id != back || waits->waits[i].since_ns > 5 * (int64_t)MS);
			kept_by++;
		}
	assert_int_equal(kept_by, 5);
	weft_waits_destroy(waits);
	forget();
}

static void a_loop_that_runs_or_has_returned_is_not_told(void **state)
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
			weft_create(timer, WEFT_KIND_TASK, WEFT_SITE()); /* exit() in a callback */
		}
		explain(true);
		assert_int_equal(findings->count, 0);
		forget();
	}
}

static void what_is_finalized_without_returning_is_found_once_for_its_sort(void **state)
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
	assert_non_null(strstr(unreturned->title, "and 1 more of its sort were finalized without ever returning"));
	forget();
}

/* Of a call between two processes in one trace: that it hangs is told of who should answer. */
static void a_message_makes_its_sender_wait_for_who_handles_it(void **state)
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

static void a_loop_that_is_closed_before_its_handles_is_an_alarm(void **state)
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
	assert_non_null(strstr(unclosed->title, "1 handle of the loop was not closed"));
	forget();
}

/* ---- What spins ---- */

/* An idle callback is called `calls` times, `each_ns` apart; the recorder tells of it as adapters do. */
static weft_id spin(uint64_t calls, uint64_t each_ns)
{
	start_recording();
	weft_id main_thread = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(main_thread);
	weft_id idle = weft_create(main_thread, WEFT_KIND_HANDLE, WEFT_SITE()),
		timer = weft_create(main_thread, WEFT_KIND_TIMER, WEFT_SITE());
	WEFT_LABEL(idle, "idle");
	weft_run(idle);
	uint64_t begin_ns = now_ns;
	for (uint64_t told = 1024; told <= calls; told *= 2) {
		now_ns = begin_ns + told * each_ns;
		weft_spins(idle, told);
	}
	now_ns = begin_ns + calls * each_ns;
	weft_signal(WEFT_SYSTEM_ID, timer);
	weft_run(main_thread);
	return idle;
}

static void code_that_is_called_for_ever_spins(void **state)
{
	weft_id idle = spin(100000, 1500);
	explain(true);
	const struct weft_finding *finding = only(WEFT_FINDING_SPIN, idle);
	assert_int_equal(finding->severity, WEFT_SEVERITY_ALARM);
	assert_true(finding->sure);
	assert_non_null(strstr(finding->title, "\"idle\""));
	assert_non_null(strstr(finding->title, "65536 times in 98.3 ms, every 1.50 \u00b5s"));
	forget();
}

static void a_spin_that_ends_is_not_sure(void **state)
{
	weft_id idle = spin(20000, 1000);
	sleep_for(100 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	assert_false(only(WEFT_FINDING_SPIN, idle)->sure);
	forget();
}

static void the_longest_of_several_spins_is_told(void **state)
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

/* Its first calls are quick: what they took is reckoned from the others. */
static void a_spin_begins_no_sooner_than_its_promise(void **state)
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

static void few_calls_or_long_ones_are_no_spin(void **state)
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

/* ---- On its way, or hung ---- */

/* Main waits for a connect that is under way for the last `age`; `others` of the same sort took `usual`. */
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

static void what_is_on_its_way_when_a_program_exits_is_no_alarm(void **state)
{
	connect_at_the_end(5 * MS, 0, 0);
	const struct weft_finding *finding = only(WEFT_FINDING_UNDERWAY, 0);
	assert_int_equal(finding->severity, WEFT_SEVERITY_INFORMATION);
	assert_int_equal(finding->verdict, WEFT_VERDICT_OUTSIDE);
	assert_non_null(strstr(finding->title, "5.00 ms"));
	forget();
	/* Others took nearly as long. */
	connect_at_the_end(400 * MS, 3, 100 * MS);
	only(WEFT_FINDING_UNDERWAY, 0);
	forget();
}

static void what_takes_much_longer_than_its_like_is_an_alarm(void **state)
{
	connect_at_the_end(600 * MS, 3, 100 * MS);
	const struct weft_finding *finding = only(WEFT_FINDING_HANG, 0);
	assert_true(finding->sure);
	assert_int_equal(finding->severity, WEFT_SEVERITY_ALARM);
	assert_int_equal(finding->verdict, WEFT_VERDICT_OUTSIDE);
	forget();
}

static void what_takes_long_and_has_no_like_is_not_certain(void **state)
{
	connect_at_the_end(1500 * MS, 0, 0);
	const struct weft_finding *finding = only(WEFT_FINDING_HANG, 0);
	assert_false(finding->sure);
	assert_non_null(finding->doubt);
	forget();
}

static void what_nobody_resolves_is_certain_only_if_nothing_ran_at_the_end(void **state)
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

/* The newest is always served first; one of them takes 12 ms. */
static void long_starvation_comes_before_a_short_stall(void **state)
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

static void a_label_outlives_what_it_was_given_to(void **state)
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

/* ---- How hangs are told ---- */

/* The number-th line of evidence that has a role, or NULL. */
static void many_hangs_of_one_sort_are_one_finding(void **state)
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
	assert_non_null(strstr(finding->title, "and 11 more of its sort"));
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 0, orders[1], "hangs in the same way");
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 7, orders[8], "hangs in the same way");
	assert_line(finding, WEFT_EVIDENCE_VICTIM, 8, 0, "and 3 more");
	assert_int_equal(model->promises[findings->findings[1].promise].id, other);
	forget();
}

static void a_long_chain_is_told_from_both_ends(void **state)
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
			snprintf(more, sizeof more, "... and so on, %zu more ...", length - 16);
			assert_line(hang, WEFT_EVIDENCE_CHAIN, 8, 0, more);
			for (size_t i = 0; i < 8; i++)
				assert_line(hang, WEFT_EVIDENCE_CHAIN, 9 + i, ids[length - 8 + i], i < 7 ? "waits for" : "task");
		}
		forget();
	}
}

/* Signals a condition, which runs, and goes on. */
static void signal_to(weft_id by, weft_id condition)
{
	weft_run(by);
	weft_signal(by, condition);
	weft_run(by);
}

/* To wait for a condition is to signal it, too. */
static weft_id wait_for_condition(weft_id who, weft_id condition)
{
	weft_run(who);
	weft_signal(who, condition);
	weft_id task = weft_create(condition, WEFT_KIND_TASK, WEFT_SITE());
	weft_run(who);
	weft_await(who, task);
	return task;
}

static void a_lost_wakeup_names_who_was_too_late_and_for_what(void **state)
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
		tick_ns = others ? 0 : 100; /* a coarse clock says that all of it was at one time */
		if (others)                 /* it was woken before, not by a later signal */
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
		assert_non_null(strstr(hang->title, "\"ready\" was signalled 7.00 ms before"));
		assert_non_null(strstr(hang->title, "\"late\" began to wait for it"));
		assert_int_equal((hang->end_ns - hang->start_ns) / (int64_t)MS, 7);
		assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, early, "\"ready\", for which nobody waits yet");
		assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, task, "\"late\" begins to wait for it");
		assert_line(
		    hang, WEFT_EVIDENCE_CAUSE, 2, condition, others ? "woke 1 other, not this one" : "was not signalled again");
		if (others)
			assert_line(hang, WEFT_EVIDENCE_NOTE, 0, condition, "2 signals of");
		else
			assert_null(line_of(hang, WEFT_EVIDENCE_NOTE, 0));
		forget();
	}
}

/* The condition woke another one, and was not signalled again. */
static void who_waits_after_the_last_signal_is_told_how_late_it_was(void **state)
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
	assert_non_null(strstr(hang->title, "lost wake-up"));
	assert_non_null(strstr(hang->title, "\"ready\" was last signalled 3.00 ms before this began to wait for it"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, WEFT_SYSTEM_ID, "for the last time");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, second, "begins to wait for it: 3.00 ms too late");
	forget();
}

/* Nobody need end a condition: who asks about one hears who waits for it, and when it last did something.  A timer that its
 * callback set comes by itself. */
static void what_need_not_end_is_pending_without_a_fault(void **state)
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
	} asked[] = {{condition, "as it may be until somebody ends it: it last ran 7.00 ms before"},
	    {idle, "as it may be until somebody ends it: it never ran"}, {timer, "no answer came from outside for it"}};
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

static void a_promise_that_hangs_is_told_with_the_locks_that_it_holds(void **state)
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
	assert_non_null(strstr(hang->title, "and it holds lock"));
	assert_non_null(strstr(hang->title, "\"cache\""));
	assert_null(strstr(hang->title, "\"log\""));
	forget();
}

static void a_promise_whose_creator_failed_is_told_with_the_error(void **state)
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
	assert_non_null(strstr(hang->title, "after its creator, async"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, creator, "creates task");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, creator, "fails: broken pipe");
	forget();
}

static void a_promise_that_nobody_runs_again_is_told_with_what_ended(void **state)
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
	assert_non_null(strstr(hang->title, "it was not run again after timer"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, timer, "does not run after that");
	forget();
}

/* The program exits as soon as the timer has ended. */
static void whose_turn_had_not_come_does_not_hang(void **state)
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

/* Answers take up to 200 ms: one that is 150 ms late when the program ends may be under way. */
static void a_request_that_is_no_slower_than_its_like_does_not_hang(void **state)
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

static void where_the_trace_does_not_tell_one_hears_what_to_record(void **state)
{
	start_recording();
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_should_resolve(main_promise);
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_int_equal(hang->verdict, WEFT_VERDICT_UNKNOWN);
	assert_false(hang->sure);
	assert_non_null(strstr(hang->doubt, "does not tell what it waits for"));
	assert_non_null(strstr(hang->next, "who waits for whom"));
	forget();
}

static void all_that_wait_for_one_are_one_finding(void **state)
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
	/* One that waits for nobody is told with where it was created. */
	start_recording();
	weft_should_resolve(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()));
	sleep_for(MS);
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, 0);
	assert_non_null(strstr(hang->title, "findings_test.c"));
	assert_non_null(strstr(hang->title, "nobody ever tried to resolve it"));
	forget();
}

/* Pictures show a pending promise for as long as anything concerns it. */
static void to_hold_a_lock_concerns_both_and_to_release_it_the_lock(void **state)
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

/* What a state dump repeats changes nothing of what comes after it. */
static void what_comes_after_a_repeated_await_is_read(void **state)
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

static void counters_keep_all_their_samples(void **state)
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

/* ---- Circles and choices ---- */

/* a waits for a pick of b and another; b waits for a. */
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

static void a_circle_with_a_branch_that_can_end_is_none(void **state)
{
	circle_with_a_way_out(WEFT_KIND_TIMER);
	assert_int_equal(findings->count, 0);
	forget();
}

static void a_circle_whose_branches_are_all_stuck_is_one(void **state)
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

static void who_waits_for_itself_is_a_circle_of_one(void **state)
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

static void a_cancelled_promise_is_no_failure_however_it_is_spelt(void **state)
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

static void failures_of_one_sort_cause_and_place_are_one(void **state)
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
	assert_non_null(strstr(many->title, "reset by peer; 119 more findings like it"));
	assert_line(many, WEFT_EVIDENCE_LIKE, 0, clients[1], "fails after 1.00 ms");
	assert_line(many, WEFT_EVIDENCE_LIKE, 7, clients[8], "fails after");
	assert_line(many, WEFT_EVIDENCE_LIKE, 8, 0, "and 111 more");
	assert_null(line_of(many, WEFT_EVIDENCE_LIKE, 9));
	assert_int_equal(model->promises[findings->findings[1].promise].id, refused);
	assert_int_equal(model->promises[findings->findings[2].promise].id, elsewhere);
	assert_null(strstr(findings->findings[2].title, "like it"));
	forget();
}

/* ---- Calling it off ---- */

static unsigned asked, allowed, last_percent;

static bool count_questions(void *ctx, unsigned percent)
{
	assert_ptr_equal(ctx, &asked);
	assert_true(percent >= last_percent && percent <= 100);
	last_percent = percent;
	return asked++ < allowed;
}

static void an_analysis_can_be_called_off_whenever_it_asks(void **state)
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
			assert_int_equal(asked, allowed + 1); /* and it does not ask again */
			questions++;
		}
		assert_true(questions > 5);
	}
	forget();
}

static void kinds_that_are_not_listed_have_the_traits_of_unknown(void **state)
{
	assert_true(weft_kind_has(77, WEFT_TRAIT_INPUTS));
	assert_false(weft_kind_has(77, WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS));
	assert_true(weft_kind_has(60000, WEFT_TRAIT_INPUTS));
	assert_true(weft_kind_has(WEFT_KIND_TIMER, WEFT_TRAIT_OUTSIDE));
	assert_true(weft_kind_has(WEFT_KIND_SYSTEM, WEFT_TRAIT_ENDLESS));
}
/* ---- What is used after its end, or before its beginning ---- */

static void what_awaits_or_takes_a_lock_after_its_end_is_told(void **state)
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
	weft_await(other, ended[0]); /* which is no fault */
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
		assert_non_null(strstr(finding->title, i ? "took lock" : "began to wait for request"));
		assert_line(finding, WEFT_EVIDENCE_CAUSE, 1, ended[i], "ends");
		assert_line(finding, WEFT_EVIDENCE_CAUSE, 2, i ? lock : other, i ? "takes lock" : "begins to wait for");
	}
	forget();
}

/* The callback of a request that has ended makes the next one, as libevent's do. */
static void what_a_callback_goes_on_with_is_no_misuse(void **state)
{
	struct weft_record_place place = {.address = (const void *)(uintptr_t)what_a_callback_goes_on_with_is_no_misuse};
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

/* The first test: its first recording has id 1. */
static void an_id_that_nobody_was_given_is_told(void **state)
{
	for (int kept = 0; kept < 2; kept++) {
		weft_id before = kept ? 0 : 77777, p;
		if (kept) { /* of a recording before this one, which is no fault */
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
			assert_line(finding, WEFT_EVIDENCE_CAUSE, 0, p, "is the first to name it");
		} else {
			assert_int_equal(findings->count, 0);
		}
		forget();
	}
}

static void an_os_thread_that_waits_after_the_last_signal_sleeps_for_ever(void **state)
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
	assert_non_null(strstr(hang->title, "sleeps for ever: lost wake-up"));
	assert_non_null(strstr(hang->title, "was last signalled 7.00 ms before"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, by, "for the last time");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 1, by, "ends: nobody else ever signalled");
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 2, sleeper, "7.00 ms too late");
	forget();
}

/* ---- Work that nobody takes ---- */

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
	if (!is_late) /* it waits, and is told: then it is at fault for something else */
		weft_signal_only(asks, w.condition);
	pthread_join(thread, NULL);
	sleep_for(3000ull * MS);
	weft_resume(asks);
	sleep_for(MS);
	explain(true);
	sem_destroy(&w.go);
	sem_destroy(&w.went);
}

static void work_whose_workers_sleep_since_before_its_signal_is_a_lost_wakeup(void **state)
{
	start_recording();
	record_worker(true);
	const struct weft_finding *hang = &findings->findings[0];
	assert_int_equal(hang->kind, WEFT_FINDING_HANG);
	assert_int_equal(hang->verdict, WEFT_VERDICT_LOST_WAKEUP);
	assert_non_null(strstr(hang->title, "\"compress\""));
	assert_non_null(strstr(hang->title, "lost wake-up, condition"));
	assert_non_null(strstr(hang->title, "\"there is work\" was last signalled 5.00 ms before thread"));
	forget();
	start_recording();
	record_worker(false);
	assert_int_not_equal(findings->findings[0].verdict, WEFT_VERDICT_LOST_WAKEUP);
	forget();
}

/* That nobody ended others may be since what they need is not released. */
static void a_hang_that_is_explained_comes_before_many_that_are_not(void **state)
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

static void a_lock_that_nobody_takes_though_its_loop_sleeps_hangs(void **state)
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

/* ---- Errors that nobody looks at ---- */

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

static void who_is_told_of_a_failure_and_does_not_ask_for_it_takes_no_notice(void **state)
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
			    notice == UNASKED ? "who is told of that does not ask how it ended" : "its result is ignored");
		}
		forget();
	}
}

/* ---- What is tried again ---- */

enum again { BY_IDLE, IN_CALLBACK, THROUGH_OTHERS };

/* 40 tries, each made where the one before is known to have failed. */
static void try_again(enum again again)
{
	weft_id story = weft_create(WEFT_SYSTEM_ID, again == BY_IDLE ? WEFT_KIND_HANDLE : WEFT_KIND_LOOP, WEFT_SITE());
	weft_id maker = story, before = 0;
	for (int i = 0; i < 40; i++) {
		weft_run(maker);
		weft_id try = weft_create(maker, WEFT_KIND_CONNECT, WEFT_SITE()), other = 0;
		weft_await(story, try);
		if (before) /* a task of GLib ends when its callback has returned */
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

static void tries_are_one_series_whoever_makes_them(void **state)
{
	for (enum again again = BY_IDLE; again <= THROUGH_OTHERS; again++) {
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

/* ---- Who would end it ---- */

static void who_ended_the_others_and_waits_itself_is_named(void **state)
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
	assert_non_null(strstr(hang->title, "which ended the last other, waits itself for task"));
	assert_non_null(strstr(hang->title, "\"take printer\""));
	assert_non_null(strstr(hang->next, "\"take printer\""));
	forget();
}

static void who_has_got_a_semaphore_is_told(void **state)
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
		note = strstr(line->text, "has got it there") ? line : note;
		ended |= strstr(line->text, "1 who had got it has come to the end") != NULL;
	}
	assert_non_null(note);
	assert_int_equal(model->promises[note->promise].id, user[1]);
	assert_true(ended);
	forget();
}

/* Of a program that was killed hangs what did nothing for three quarters of its time. */
static void what_did_something_before_the_kill_is_under_way(void **state)
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
	    cmocka_unit_test(an_id_that_nobody_was_given_is_told),
	    cmocka_unit_test(a_loop_that_sleeps_is_kept_by_what_it_still_waits_for),
	    cmocka_unit_test(a_loop_that_runs_or_has_returned_is_not_told),
	    cmocka_unit_test(a_loop_that_is_closed_before_its_handles_is_an_alarm),
	    cmocka_unit_test(code_that_is_called_for_ever_spins),
	    cmocka_unit_test(a_spin_that_ends_is_not_sure),
	    cmocka_unit_test(the_longest_of_several_spins_is_told),
	    cmocka_unit_test(a_spin_begins_no_sooner_than_its_promise),
	    cmocka_unit_test(few_calls_or_long_ones_are_no_spin),
	    cmocka_unit_test(what_is_finalized_without_returning_is_found_once_for_its_sort),
	    cmocka_unit_test(a_message_makes_its_sender_wait_for_who_handles_it),
	    cmocka_unit_test(what_is_on_its_way_when_a_program_exits_is_no_alarm),
	    cmocka_unit_test(what_takes_much_longer_than_its_like_is_an_alarm),
	    cmocka_unit_test(what_takes_long_and_has_no_like_is_not_certain),
	    cmocka_unit_test(what_nobody_resolves_is_certain_only_if_nothing_ran_at_the_end),
	    cmocka_unit_test(many_hangs_of_one_sort_are_one_finding),
	    cmocka_unit_test(long_starvation_comes_before_a_short_stall),
	    cmocka_unit_test(a_label_outlives_what_it_was_given_to),
	    cmocka_unit_test(what_awaits_or_takes_a_lock_after_its_end_is_told),
	    cmocka_unit_test(what_a_callback_goes_on_with_is_no_misuse),
	    cmocka_unit_test(work_whose_workers_sleep_since_before_its_signal_is_a_lost_wakeup),
	    cmocka_unit_test(a_lock_that_nobody_takes_though_its_loop_sleeps_hangs),
	    cmocka_unit_test(failures_of_one_sort_cause_and_place_are_one),
	    cmocka_unit_test(a_hang_that_is_explained_comes_before_many_that_are_not),
	    cmocka_unit_test(who_is_told_of_a_failure_and_does_not_ask_for_it_takes_no_notice),
	    cmocka_unit_test(tries_are_one_series_whoever_makes_them),
	    cmocka_unit_test(who_ended_the_others_and_waits_itself_is_named),
	    cmocka_unit_test(who_has_got_a_semaphore_is_told),
	    cmocka_unit_test(a_long_chain_is_told_from_both_ends),
	    cmocka_unit_test(a_lost_wakeup_names_who_was_too_late_and_for_what),
	    cmocka_unit_test(who_waits_after_the_last_signal_is_told_how_late_it_was),
	    cmocka_unit_test(an_os_thread_that_waits_after_the_last_signal_sleeps_for_ever),
	    cmocka_unit_test(what_need_not_end_is_pending_without_a_fault),
	    cmocka_unit_test(a_promise_that_hangs_is_told_with_the_locks_that_it_holds),
	    cmocka_unit_test(a_promise_whose_creator_failed_is_told_with_the_error),
	    cmocka_unit_test(a_promise_that_nobody_runs_again_is_told_with_what_ended),
	    cmocka_unit_test(whose_turn_had_not_come_does_not_hang),
	    cmocka_unit_test(a_request_that_is_no_slower_than_its_like_does_not_hang),
	    cmocka_unit_test(where_the_trace_does_not_tell_one_hears_what_to_record),
	    cmocka_unit_test(all_that_wait_for_one_are_one_finding),
	    cmocka_unit_test(to_hold_a_lock_concerns_both_and_to_release_it_the_lock),
	    cmocka_unit_test(what_comes_after_a_repeated_await_is_read),
	    cmocka_unit_test(counters_keep_all_their_samples),
	    cmocka_unit_test(a_circle_with_a_branch_that_can_end_is_none),
	    cmocka_unit_test(a_circle_whose_branches_are_all_stuck_is_one),
	    cmocka_unit_test(who_waits_for_itself_is_a_circle_of_one),
	    cmocka_unit_test(a_cancelled_promise_is_no_failure_however_it_is_spelt),
	    cmocka_unit_test(an_analysis_can_be_called_off_whenever_it_asks),
	    cmocka_unit_test(kinds_that_are_not_listed_have_the_traits_of_unknown),
	    cmocka_unit_test(what_did_something_before_the_kill_is_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
