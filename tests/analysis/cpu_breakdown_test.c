/* cpu_breakdown_test.c: the parts of a long run's time: on CPU, runnable, blocked; and the advice for the largest part.
 * SPDX-License-Identifier: ISC */
#include "findings.h"

/* A step of the callback of a timer, which delays another timer. */
struct step {
	uint64_t after_ns;  /* duration of the step */
	uint64_t paused_ns; /* blocked in read() for that long */
	int64_t round_ns;   /* or the recorder stores the CPU times of the loop's iteration, which are the text `said` */
	const char *said;
};

struct scene {
	const char *what;
	uint64_t before_ns; /* another promise runs for that long just before the callback */
	struct step steps[4];
	uint64_t rest_ns;
	const char *told, *next, *also; /* told: the expected parts in the title; NULL if the title has none */
	enum weft_severity severity;
};

#define CUT "split the work into pieces"
#define FULL "run fewer other programs"
#define BLOCKS "move the blocking call to another thread"
#define MAY "record the program again on an idle machine"
#define HAD(on) " ms (on CPU " on
#define A WEFT_SEVERITY_ALARM
#define I WEFT_SEVERITY_INFORMATION

static const struct scene scenes[] = {
    {"all of it on a processor", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 0 0"}}, 0, NULL, CUT, NULL, A},
    {"most of it waiting", 0, {{80 * MS, 0, 80 * MS, "30050000 0 6 0 0"}}, 0, HAD("30.0 ms, runnable 49.9 ms)"), FULL,
	": 0 voluntary, 6 involuntary", A},
    {"less of it waiting", 0, {{80 * MS, 0, 80 * MS, "50050000 0 6 0 0"}}, 0, HAD("50.0 ms, runnable 29.9 ms)"), CUT, NULL, A},
    {"hardly any of it its own", 0, {{80 * MS, 0, 80 * MS, "5050000 0 9 0 0"}}, 0, HAD("5.05 ms, runnable 74.9 ms)"), FULL, NULL,
	I},
    {"hardly any of it its own, and a sleep counted twice", 0, {{80 * MS, 0, 80 * MS, "5050000 1 9 0 0"}}, 0,
	HAD("5.05 ms, blocked or runnable 74.9 ms)"), MAY, NULL, I},
    {"blocked", 0, {{80 * MS, 0, 80 * MS, "10050000 3 0 0 0"}}, 0, HAD("10.0 ms, blocked 69.9 ms)"), BLOCKS,
	": 3 voluntary, 0 involuntary", I},
    {"blocked for long", 0, {{160 * MS, 0, 160 * MS, "10050000 3 0 0 0"}}, 0, HAD("10.0 ms, blocked 149 ms)"), BLOCKS, NULL, A},
    {"blocked for long, while the machine was busy", 0,
	{{160 * MS, 0, 160 * MS, "10050000 3 0 0 0"}, {20 * MS, 0, 20 * MS, "50000 0 5 0 0"}}, 0,
	HAD("10.1 ms, blocked or runnable 169 ms)"), MAY, NULL, I},
    {"both", 0, {{80 * MS, 0, 80 * MS, "10050000 3 5 0 0"}}, 0, HAD("10.0 ms, blocked or runnable 69.9 ms)"), MAY, NULL, I},
    {"both, but blocked far more often", 0, {{80 * MS, 0, 80 * MS, "10050000 80 5 0 0"}}, 0,
	HAD("10.0 ms, blocked or runnable 69.9 ms)"), BLOCKS, NULL, I},
    {"page faults", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 60000 0"}}, 0, NULL, "reuse memory",
	"page faults around the stall: 60000; 0 read from a disk", A},
    {"too few page faults", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 10000 0"}}, 0, NULL, CUT,
	"page faults around the stall: 10000", A},
    {"pages of a disk", 0, {{80 * MS, 0, 80 * MS, "10050000 40 0 0 40"}}, 0, HAD("10.0 ms, blocked 69.9 ms)"),
	"pages from a disk", "page faults around the stall: 40; 40 read from a disk", I},
    {"calls that are known", 0,
	{{20 * MS, 10 * MS, 0, NULL}, {20 * MS, 10 * MS, 0, NULL}, {20 * MS, 0, 80 * MS, "59950000 2 0 0 0"}}, 0,
	HAD("59.9 ms, blocked 20.0 ms in read and others, 2 times)"), CUT, ": 2 voluntary", A},
    {"one call, and no processor", 0, {{20 * MS, 20 * MS, 0, NULL}, {40 * MS, 0, 80 * MS, "30050000 1 4 0 0"}}, 0,
	HAD("30.0 ms, runnable 29.9 ms, blocked 20.0 ms in read)"), CUT, NULL, A},
    {"a call, and what blocks besides", 0, {{20 * MS, 20 * MS, 0, NULL}, {40 * MS, 0, 80 * MS, "10050000 2 0 0 0"}}, 0,
	HAD("10.0 ms, blocked 69.9 ms in read and elsewhere)"), BLOCKS, NULL, I},
    {"calls alone", 0, {{20 * MS, 20 * MS, 0, NULL}}, 40 * MS, " ms (blocked 20.0 ms in read)", CUT, NULL, A},
    {"a sleep before it in what was asked", 0, {{80 * MS, 0, 85 * MS, "30050000 1 6 0 0"}}, 0, HAD("30.0 ms, runnable 49.9 ms)"),
	FULL, NULL, A},
    {"others ran in what was asked", 9 * MS, {{80 * MS, 0, 89 * MS, "30000000 0 6 0 0"}}, 0,
	HAD("at most 30.0 ms, runnable at least 50.0 ms)"), FULL, NULL, A},
    {"others ran for nearly all of what it had", 9 * MS, {{80 * MS, 0, 89 * MS, "75000000 0 6 0 0"}}, 0, NULL, CUT, NULL, A},
    {"asked a moment too early", 0, {{80 * MS, 0, 80 * MS, "10050000 0 6 0 0"}, {MS / 100, 0, 0, NULL}}, 0,
	HAD("10.0 ms, runnable 69.9 ms)"), FULL, NULL, I},
    {"others ran for a little while", MS, {{80 * MS, 0, 81 * MS, "31050000 0 6 0 0"}}, 0, HAD("30.0 ms, runnable 49.9 ms)"), FULL,
	NULL, A},
    {"asked twice", 0, {{40 * MS, 0, 40 * MS, "20050000 0 3 0 0"}, {40 * MS, 0, 40 * MS, "10050000 0 3 0 0"}}, 0,
	HAD("30.1 ms, runnable 49.9 ms)"), FULL, ", 6 involuntary", A},
    {"stretches that overlap, in a damaged trace", 0,
	{{40 * MS, 0, 40 * MS, "20050000 0 3 0 0"}, {40 * MS, 0, 80 * MS, "10050000 0 3 0 0"}}, 0,
	HAD("30.1 ms, runnable 49.9 ms)"), FULL, NULL, A},
    {"preempted behind what was asked", 0, {{70 * MS, 0, 70 * MS, "70050000 0 0 0 0"}}, 10 * MS,
	HAD("70.0 ms, blocked or runnable 10.0 ms)"), CUT, NULL, A},
    {"asked about the lesser half alone", 0, {{30 * MS, 0, 30 * MS, "10050000 0 5 0 0"}}, 50 * MS, NULL, CUT, NULL, I},
    {"nonsense", 0, {{80 * MS, 0, 80 * MS, "99999999999999999999999 x -1 \xff"}}, 0, NULL, CUT, NULL, A},
    {"a negative length", 0, {{80 * MS, 0, -80 * (int64_t)MS, "10050000 0 0 0 0"}}, 0, NULL, CUT, NULL, A},
};

static void play(const struct scene *scene)
{
	tick_ns = 1;
	start_recording();
	weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id other = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, other);
	now_ns += scene->before_ns;
	weft_signal(WEFT_SYSTEM_ID, slow);
	for (const struct step *step = scene->steps; step->after_ns; step++) {
		now_ns += step->after_ns;
		if (step->paused_ns) {
			WEFT_PAUSE_BEGIN("blocked in read");
			now_ns += step->paused_ns;
			weft_pause_end();
		}
		if (step->said)
			weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, step->round_ns, step->said);
	}
	now_ns += scene->rest_ns;
	weft_signal(WEFT_SYSTEM_ID, beat);
	sleep_for(5 * MS);
	explain(true);
}

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static bool also_says(const struct weft_finding *finding, const char *part)
{
	const struct weft_evidence *line;
	for (size_t i = 0; (line = line_of(finding, WEFT_EVIDENCE_NOTE, i)); i++)
		if (has(line->text, part))
			return true;
	return false;
}

static void stall_reports_its_cpu_breakdown(void **state)
{
	for (const struct scene *s = scenes; s < scenes + sizeof scenes / sizeof *scenes; s++) {
		play(s);
		const struct weft_finding *stall = only(WEFT_FINDING_STALL, 0);
		bool told = s->told ? has(stall->title, s->told) : !has(stall->title, " ms (");
		bool counted = !s->also || also_says(stall, s->also);
		if (!told || !counted || !has(stall->next, s->next) || stall->severity != s->severity)
			fail_msg("%s: %d: %s: %s", s->what, (int)stall->severity, stall->title, stall->next);
		forget();
	}
}

static const char *other_round;

static void tell_round(void)
{
	weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, 150 * MS, other_round);
}

/* A callback waits for a lock that a promise on another OS thread holds.  This thread is runnable but off CPU, or on CPU, or
 * blocked. If the trace does not record the blocking call of the callback, a page fault may have blocked it. */
static void unknown_wait_is_doubted_if_another_thread_got_no_cpu(void **state)
{
	static const char *const rounds[] = {"2000000 0 3 0 0", "149000000 0 3 0 0", "2000000 1 0 0 0"};
	for (int r = 0; r < 3; r++)
		for (int is_known = 0; is_known < 2; is_known++) {
			tick_ns = 1;
			other_round = rounds[r];
			start_recording();
			weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()),
				slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
			sleep_for(5 * MS);
			begin_other_thread();
			weft_signal(WEFT_SYSTEM_ID, slow);
			if (is_known)
				WEFT_PAUSE_BEGIN("blocked in usleep");
			now_ns += 159 * MS;
			if (is_known)
				weft_pause_end();
			on_other_thread(tell_round);
			weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, 159 * MS, "50000 1 0 0 0");
			weft_signal(WEFT_SYSTEM_ID, beat);
			on_other_thread(NULL);
			sleep_for(5 * MS);
			explain(true);
			const struct weft_finding *stall = &findings->findings[0];
			assert_true(findings->count > 0 && stall->kind == WEFT_FINDING_STALL);
			assert_int_equal(stall->severity, is_known ? A : I);
			assert_int_equal(has(stall->doubt ? stall->doubt : "", "got no CPU"), r == 0 && !is_known);
			forget();
		}
}

static void fall_asleep(void)
{
	weft_idle(WEFT_IDLE_WAIT);
}

static void wake_up(void)
{
	weft_resume(WEFT_SYSTEM_ID);
	tell_round();
}

/* The other thread fell asleep long before the lock wait, and the waiting thread has slept many times since then. */
static void thread_asleep_before_a_stall_is_not_said_to_lack_a_cpu(void **state)
{
	enum { SLEEPS = 100 };
	tick_ns = 1;
	other_round = "2000000 0 3 0 0";
	start_recording();
	weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()),
		slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	begin_other_thread();
	on_other_thread(fall_asleep);
	for (int i = 0; i < SLEEPS; i++) {
		sleep_for(MS);
		weft_signal(WEFT_SYSTEM_ID, beat);
	}
	sleep_for(MS);
	weft_signal(WEFT_SYSTEM_ID, slow);
	now_ns += 159 * MS;
	on_other_thread(wake_up);
	weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, 159 * MS, "50000 1 0 0 0");
	weft_signal(WEFT_SYSTEM_ID, beat);
	on_other_thread(NULL);
	sleep_for(5 * MS);
	explain(true);
	assert_true(findings->count > 0 && findings->findings[0].kind == WEFT_FINDING_STALL);
	assert_false(has(findings->findings[0].doubt ? findings->findings[0].doubt : "", "got no CPU"));
	forget();
}

/* A callback sleeps once, in a call that the trace does not record.  A short sleep may be a page fault; a long sleep is a stall.
 */
static void short_sleep_in_an_unrecorded_call_is_informational(void **state)
{
	static const int64_t lengths_ns[] = {159 * MS, 1100 * MS};
	for (int i = 0; i < 2; i++) {
		tick_ns = 1;
		start_recording();
		weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()),
			slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		sleep_for(5 * MS);
		weft_signal(WEFT_SYSTEM_ID, slow);
		now_ns += lengths_ns[i];
		weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, lengths_ns[i], "50000 1 0 0 0");
		weft_signal(WEFT_SYSTEM_ID, beat);
		sleep_for(5 * MS);
		explain(true);
		const struct weft_finding *stall = &findings->findings[0];
		assert_true(findings->count > 0 && stall->kind == WEFT_FINDING_STALL);
		assert_int_equal(stall->severity, i == 0 ? I : A);
		assert_int_equal(has(stall->doubt ? stall->doubt : "", "a page from a disk"), i == 0);
		forget();
	}
}

/* A callback sleeps in an unknown call.  If the callback has started a child process, the finding says that the machine was busy:
 * the callback may have waited until the child got a CPU. */
static void sleep_after_starting_a_process_may_be_due_to_a_busy_machine(void **state)
{
	for (int has_process = 0; has_process < 2; has_process++) {
		tick_ns = 1;
		start_recording();
		weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()),
			slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		sleep_for(5 * MS);
		weft_signal(WEFT_SYSTEM_ID, slow);
		weft_id process = has_process ? weft_create(slow, WEFT_KIND_PROCESS, WEFT_SITE()) : 0;
		now_ns += 159 * MS;
		weft__slow_detail(WEFT_SYSTEM_ID, WEFT_DETAIL_ROUND, 159 * MS, "50000 1 0 0 0");
		if (has_process)
			weft_resolve(slow, process);
		weft_signal(WEFT_SYSTEM_ID, beat);
		sleep_for(5 * MS);
		explain(true);
		const struct weft_finding *stall = &findings->findings[0];
		assert_true(findings->count > 0 && stall->kind == WEFT_FINDING_STALL);
		assert_int_equal(stall->severity, I);
		assert_int_equal(has(stall->doubt ? stall->doubt : "", "the machine was busy"), has_process);
		forget();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(stall_reports_its_cpu_breakdown),
	    cmocka_unit_test(unknown_wait_is_doubted_if_another_thread_got_no_cpu),
	    cmocka_unit_test(thread_asleep_before_a_stall_is_not_said_to_lack_a_cpu),
	    cmocka_unit_test(short_sleep_in_an_unrecorded_call_is_informational),
	    cmocka_unit_test(sleep_after_starting_a_process_may_be_due_to_a_busy_machine)};
	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
