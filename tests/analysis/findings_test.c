/* findings_test.c: small programs, recorded with a clock of their own, and what weft explain says of each.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "analysis/explain.h"
#include "analysis/waits.h"

#define MS 1000000u

static uint64_t buffer[(1u << 20) / 8];
static uint64_t now_ns;

static uint64_t read_clock(void)
{
	return now_ns += 100;
}

static void start_recording(void)
{
	memset(buffer, 0, sizeof buffer);
	now_ns = 1000000000;
	const struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 64, .clock = read_clock, .clock_hz = 1000000000};
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
	    cmocka_unit_test(what_is_on_its_way_when_a_program_exits_is_no_alarm),
	    cmocka_unit_test(what_takes_much_longer_than_its_like_is_an_alarm),
	    cmocka_unit_test(what_takes_long_and_has_no_like_is_not_certain),
	    cmocka_unit_test(what_nobody_resolves_is_certain_only_if_nothing_ran_at_the_end),
	    cmocka_unit_test(a_circle_with_a_branch_that_can_end_is_none),
	    cmocka_unit_test(a_circle_whose_branches_are_all_stuck_is_one),
	    cmocka_unit_test(a_long_run_that_kept_nobody_who_was_ready_is_not_certain),
	    cmocka_unit_test(who_is_called_back_after_a_long_run_may_have_been_late_for_it),
	    cmocka_unit_test(a_cancelled_promise_is_no_failure_however_it_is_spelt),
	    cmocka_unit_test(an_analysis_can_be_called_off_whenever_it_asks),
	    cmocka_unit_test(kinds_that_are_not_listed_have_the_traits_of_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
