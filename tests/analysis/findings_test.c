/* findings_test.c: small programs, recorded with a clock of their own, and what weft explain says of each.
 * SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "analysis/explain.h"
#include "analysis/waits.h"

#define MS 1000000u

static uint64_t buffer[(1u << 20) / 8];
static uint64_t now_ns, tick_ns = 100;

static uint64_t read_clock(void)
{
	return now_ns += tick_ns;
}

static void start_recording(void)
{
	memset(buffer, 0, sizeof buffer);
	now_ns = 1000000000;
	const struct weft_record_options options = {.buffer = buffer,
	    .buffer_bytes = sizeof buffer,
	    .packets = 64,
	    .streams = 2,
	    .clock = read_clock,
	    .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
}

static struct weft_trace *trace;
static struct weft_model *model;
static struct weft_findings *findings;

static void forget(void)
{
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	weft_trace_close(trace);
	findings = NULL;
	model = NULL;
	trace = NULL;
}

/* Ends the recording, if the program ends it, and explains it. */
static void explain(bool ends)
{
	struct weft_error err;
	static uint64_t copy[sizeof buffer / sizeof *buffer];
	memcpy(copy, buffer, sizeof buffer);
	weft_stop();
	assert_int_equal(weft_trace_open_memory(&trace, ends ? buffer : copy, sizeof buffer, "test", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = true}, &err), WEFT_OK);
	assert_int_equal(weft_explain(&findings, model, NULL, &err), WEFT_OK);
	/* Each says what happened, and what to do now. */
	for (size_t i = 0; i < findings->count; i++)
		assert_true(findings->findings[i].title && *findings->findings[i].title && findings->findings[i].next &&
			    *findings->findings[i].next);
}

/* The only finding, of that kind; `where` is its promise, unless it is 0. */
static const struct weft_finding *only(enum weft_finding_kind kind, weft_id where)
{
	assert_int_equal(findings->count, 1);
	const struct weft_finding *finding = &findings->findings[0];
	assert_string_equal(weft_finding_name(finding->kind), weft_finding_name(kind));
	if (where)
		assert_int_equal(model->promises[finding->promise].id, where);
	return finding;
}

static void sleep_for(uint64_t ns)
{
	weft_idle(WEFT_IDLE_WAIT);
	now_ns += ns;
}

/* What a promise waits for is told by the outside after a time. */
static weft_id timer_of(weft_id by)
{
	weft_id timer = weft_create(by, WEFT_KIND_TIMER, WEFT_SITE());
	weft_await(by, timer);
	return timer;
}

/* ---- Loops ---- */

static weft_id begin_loop(weft_id by)
{
	weft_id loop = weft_create(by, WEFT_KIND_LOOP, WEFT_SITE());
	WEFT_LABEL(loop, "uv_run");
	weft_await(by, loop);
	return loop;
}

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
	assert_non_null(strstr(finding->title, "65536 times in 98.3 ms, every 1.50 us"));
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
static const struct weft_evidence *line_of(const struct weft_finding *finding, enum weft_evidence_role role, size_t number)
{
	for (size_t i = 0; i < finding->evidence_count; i++)
		if (finding->evidence[i].role == role && number-- == 0)
			return &finding->evidence[i];
	return NULL;
}

/* That line says that, of that promise; 0: of none. */
static void assert_line(
    const struct weft_finding *finding, enum weft_evidence_role role, size_t number, weft_id promise, const char *says)
{
	const struct weft_evidence *line = line_of(finding, role, number);
	assert_non_null(line);
	if (!strstr(line->text, says))
		fail_msg("\"%s\" does not say \"%s\"", line->text, says);
	assert_int_equal(line->promise == WEFT_NONE ? 0 : model->promises[line->promise].id, promise);
}

/* One that hangs in another way is told of for itself. */
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
	explain(true);
	const struct weft_finding *hang = only(WEFT_FINDING_HANG, main_promise);
	assert_int_equal(hang->verdict, WEFT_VERDICT_NOT_RUN);
	assert_non_null(strstr(hang->title, "it was not run again after timer"));
	assert_line(hang, WEFT_EVIDENCE_CAUSE, 0, timer, "does not run after that");
	forget();
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

/* ---- Stalls ---- */

static void a_long_run_that_kept_nobody_who_was_ready_is_not_certain(void **state)
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

/* Timers that go on are called back, not ended: a loop that has no others is stalled all the same. */
static void who_is_called_back_after_a_long_run_may_have_been_late_for_it(void **state)
{
	start_recording();
	weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, slow);
	now_ns += 80 * MS;
	for (int i = 0; i < 3; i++)
		weft_signal(WEFT_SYSTEM_ID, beat);
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, other); /* the loop has slept: this one was not due before */
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

/* ---- Who was ready, and who ran ---- */

/* Another OS thread, which does what it is told while this one waits. */
static struct {
	pthread_t thread;
	sem_t todo, done;
	void (*deed)(void);
} other_thread;

static void *obey(void *unused)
{
	for (;;) {
		sem_wait(&other_thread.todo);
		if (!other_thread.deed)
			return NULL;
		other_thread.deed();
		sem_post(&other_thread.done);
	}
}

static void begin_other_thread(void)
{
	sem_init(&other_thread.todo, 0, 0);
	sem_init(&other_thread.done, 0, 0);
	assert_int_equal(pthread_create(&other_thread.thread, NULL, obey, NULL), 0);
}

static void on_other_thread(void (*deed)(void))
{
	other_thread.deed = deed;
	sem_post(&other_thread.todo);
	if (deed)
		sem_wait(&other_thread.done);
	else
		pthread_join(other_thread.thread, NULL);
}

/* One that waits, and what it waits for. */
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

/* The number-th finding is of that kind and promise, and its title says that. */
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

static void each_stall_is_told_with_what_it_cost(void **state)
{
	start_recording();
	weft_id work[5];
	struct waiter a = waiter_new(), b = waiter_new();
	for (size_t i = 0; i < 5; i++)
		work[i] = worker_new();
	sleep_for(MS);
	be_busy(work[0], 5 * MS);
	weft_resolve(work[0], a.input);
	now_ns += 16 * MS;
	be_busy(work[1], 18 * MS);
	weft_resolve(work[1], b.input); /* 4 ms are too short to count */
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
	    0, WEFT_FINDING_STALL, work[4], "ran for 25.0 ms while 2 others were ready to run: together they lost 50.0 ms");
	assert_finding(
	    1, WEFT_FINDING_STALL, work[3], "ran for 24.0 ms while 2 others were ready to run: together they lost 48.0 ms");
	assert_finding(
	    2, WEFT_FINDING_STALL, work[2], "ran for 23.0 ms while 2 others were ready to run: together they lost 46.0 ms");
	assert_finding(
	    3, WEFT_FINDING_STALL, work[1], "ran for 22.0 ms while 1 other was ready to run: together they lost 22.0 ms");
	const struct weft_finding *first = assert_finding(
	    4, WEFT_FINDING_STALL, work[0], "ran for 21.0 ms while 1 other was ready to run: together they lost 16.0 ms");
	assert_true(first->sure);
	assert_line(first, WEFT_EVIDENCE_VICTIM, 0, a.promise, "runs only now");
	assert_null(line_of(first, WEFT_EVIDENCE_VICTIM, 1));
	const struct weft_finding *last = &findings->findings[0];
	assert_line(last, WEFT_EVIDENCE_VICTIM, 0, a.promise, "runs only now");
	assert_line(last, WEFT_EVIDENCE_VICTIM, 1, b.promise, "runs only now");
	forget();
}

static void what_a_promise_did_since_its_input_ended_is_no_waiting(void **state)
{
	start_recording();
	weft_id work = worker_new();
	struct waiter w = waiter_new();
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, w.input);
	be_busy(work, 30 * MS);
	weft_run(w.promise); /* it ran for something else, and reads only 3 ms later */
	weft_run(WEFT_SYSTEM_ID);
	now_ns += 3 * MS;
	weft_run(w.promise);
	weft_id late = weft_create(w.promise, WEFT_KIND_TASK, WEFT_SITE());
	weft_resolve(w.promise, late);
	weft_read(w.promise, w.input);
	weft_read(w.promise, late);
	weft_resolve(w.promise, w.promise);
	sleep_for(MS);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

static void a_pause_that_is_most_of_a_run_is_told_instead_of_it(void **state)
{
	static const struct {
		uint64_t before_ms, pause_ms, after_ms;
		const char *title;
	} cases[] = {{5, 15, 1, "a pause (gc) of async"}, {40, 15, 20, "async"}, {11, 12, 0, "a pause (gc) of async"},
	    {14, 12, 0, "async"}};
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
		if (strstr(stall->title, cases[i].title) != stall->title)
			fail_msg("case %zu: \"%s\"", i, stall->title);
		forget();
	}
	/* A pause that began before who then ran. */
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
	assert_ptr_equal(strstr(stall->title, "a pause (gc) of async"), stall->title);
	assert_non_null(strstr(stall->title, "lasted 29.0 ms while 1 other"));
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

static void a_stall_holds_up_its_own_os_thread_alone(void **state)
{
	for (int how = 0; how < 4; how++) {
		bool both = how & 1, there_first = how & 2;
		start_recording();
		weft_run(WEFT_SYSTEM_ID);
		begin_other_thread();
		if (there_first)
			on_other_thread(prepare_there);
		worker_here = worker_new();
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
		    "ran for 30.0 ms while 2 others were ready to run: together they lost 60.0 ms");
		assert_line(stall, WEFT_EVIDENCE_VICTIM, 0, there[0].promise, "runs only now");
		assert_line(stall, WEFT_EVIDENCE_VICTIM, 1, there[1].promise, "runs only now");
		if (both) {
			stall = assert_finding(1, WEFT_FINDING_STALL, worker_here,
			    "ran for 27.0 ms while 1 other was ready to run: together they lost 27.0 ms");
			assert_line(stall, WEFT_EVIDENCE_VICTIM, 0, here.promise, "runs only now");
		}
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

/* What runs on a pool of OS threads holds up nobody in the loop that made it. */
static void work_on_another_os_thread_is_no_stall(void **state)
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

static void who_is_late_is_late_for_the_last_stall(void **state)
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
	assert_finding(0, WEFT_FINDING_STALL, worker_there, "2 others were ready");
	for (size_t i = 1; i < 3; i++) {
		const struct weft_finding *stall = &findings->findings[i];
		bool is_first = model->promises[stall->promise].id == first;
		assert_int_equal(stall->kind, WEFT_FINDING_STALL);
		/* When the first stall was over, `second` was called back, and nobody else until that was over, too. */
		assert_non_null(strstr(stall->title, is_first ? " 1 promise from outside" : " 2 promises from outside"));
	}
	forget();
}

static void an_os_thread_that_has_not_slept_yet_sets_things_up(void **state)
{
	for (int slept = 0; slept < 2; slept++) {
		start_recording();
		begin_other_thread();
		on_other_thread(prepare_there); /* that one sleeps */
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

/* ---- What piles up, and pools that are full ---- */

/* So many sorts of promises come faster than they are done: how many of these are told as what piles up. */
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

static void of_many_sorts_that_pile_up_the_first_sixteen_are_told_so(void **state)
{
	assert_int_equal(count_heaps(1), 1);
	assert_int_equal(count_heaps(16), 16);
	assert_int_equal(count_heaps(18), 16);
}

/* A pool of one OS thread is full so many times before somebody has to wait for it: whether that is told. */
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

static void the_first_sixteen_times_that_a_pool_is_full_are_looked_at(void **state)
{
	assert_true(is_exhausted_after(0));
	assert_true(is_exhausted_after(15));
	assert_false(is_exhausted_after(16));
}

/* ---- Starvation ---- */

/* `count` others become ready one after the other, and run for 2 ms each. */
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

static void who_is_overtaken_by_many_starves(void **state)
{
	static const struct {
		size_t others;
		uint64_t stall_ms, sleep_ms;
		size_t starving, stalls;
	} cases[] = {{20, 0, 0, 1, 0}, {19, 0, 0, 0, 0},
	    /* Most of the time was a stall. */
	    {20, 36, 0, 1, 1}, {20, 44, 0, 0, 1},
	    /* The OS thread had nothing to do: who recorded it has told too little. */
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
			serve(before[k]); /* these were ready before */
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
				assert_finding(k, WEFT_FINDING_STALL, work, "while 1 other was ready");
			else
				assert_finding(
				    k, WEFT_FINDING_STARVATION, starving.promise, "20 that became ready later ran before it");
		forget();
	}
}

static void those_who_starve_together_are_one_finding(void **state)
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
	assert_finding(2, WEFT_FINDING_SLOW, apart.promise, "of its sort the median took ");
	const struct weft_finding *together =
	    assert_finding(0, WEFT_FINDING_STARVATION, longest.promise, "was ready to run for 62.0 ms and did not: 33 that");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 0, early.promise, "was ready for 52.0 ms, too");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 1, too, "was ready for 14.0 ms, too");
	assert_line(together, WEFT_EVIDENCE_VICTIM, 2, late.promise, "was ready for 16.0 ms, too");
	assert_null(line_of(together, WEFT_EVIDENCE_VICTIM, 3));
	const struct weft_finding *alone =
	    assert_finding(1, WEFT_FINDING_STARVATION, apart.promise, "for 40.0 ms and did not: 20 that");
	assert_null(line_of(alone, WEFT_EVIDENCE_VICTIM, 0));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	    cmocka_unit_test(a_long_chain_is_told_from_both_ends),
	    cmocka_unit_test(a_lost_wakeup_names_who_was_too_late_and_for_what),
	    cmocka_unit_test(who_waits_after_the_last_signal_is_told_how_late_it_was),
	    cmocka_unit_test(a_promise_that_hangs_is_told_with_the_locks_that_it_holds),
	    cmocka_unit_test(a_promise_whose_creator_failed_is_told_with_the_error),
	    cmocka_unit_test(a_promise_that_nobody_runs_again_is_told_with_what_ended),
	    cmocka_unit_test(where_the_trace_does_not_tell_one_hears_what_to_record),
	    cmocka_unit_test(all_that_wait_for_one_are_one_finding),
	    cmocka_unit_test(to_hold_a_lock_concerns_both_and_to_release_it_the_lock),
	    cmocka_unit_test(what_comes_after_a_repeated_await_is_read),
	    cmocka_unit_test(counters_keep_all_their_samples),
	    cmocka_unit_test(a_circle_with_a_branch_that_can_end_is_none),
	    cmocka_unit_test(a_circle_whose_branches_are_all_stuck_is_one),
	    cmocka_unit_test(a_long_run_that_kept_nobody_who_was_ready_is_not_certain),
	    cmocka_unit_test(who_is_called_back_after_a_long_run_may_have_been_late_for_it),
	    cmocka_unit_test(who_is_late_is_late_for_the_last_stall),
	    cmocka_unit_test(who_waits_for_itself_is_a_circle_of_one),
	    cmocka_unit_test(each_stall_is_told_with_what_it_cost),
	    cmocka_unit_test(what_a_promise_did_since_its_input_ended_is_no_waiting),
	    cmocka_unit_test(a_pause_that_is_most_of_a_run_is_told_instead_of_it),
	    cmocka_unit_test(a_stall_holds_up_its_own_os_thread_alone),
	    cmocka_unit_test(work_on_another_os_thread_is_no_stall),
	    cmocka_unit_test(an_os_thread_that_has_not_slept_yet_sets_things_up),
	    cmocka_unit_test(of_many_sorts_that_pile_up_the_first_sixteen_are_told_so),
	    cmocka_unit_test(the_first_sixteen_times_that_a_pool_is_full_are_looked_at),
	    cmocka_unit_test(who_is_overtaken_by_many_starves),
	    cmocka_unit_test(those_who_starve_together_are_one_finding),
	    cmocka_unit_test(a_cancelled_promise_is_no_failure_however_it_is_spelt),
	    cmocka_unit_test(an_analysis_can_be_called_off_whenever_it_asks),
	    cmocka_unit_test(kinds_that_are_not_listed_have_the_traits_of_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
