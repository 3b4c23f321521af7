/* parts_test.c: what is told of a long run's time: on a processor, waiting for one, blocked; and the advice by the largest part.
 * SPDX-License-Identifier: ISC */
#include "findings.h"

/* A timer's callback runs, for 80 ms unless its steps say otherwise; another timer is late for it. */
struct step {
	uint64_t after_ns;  /* what came before */
	uint64_t paused_ns; /* blocked in read() for so long */
	int64_t round_ns;   /* or the kernel was asked what became of so long: `said` */
	const char *said;
};

struct scene {
	const char *what;
	uint64_t before_ns; /* so long another ran right before it */
	struct step steps[4];
	uint64_t rest_ns;
	const char *told, *next, *also; /* told: NULL: no parts are */
	enum weft_severity severity;
};

#define CUT "cut its work into pieces"
#define FULL "run less beside it"
#define BLOCKS "call what blocks on another OS thread"
#define MAY "record it on a machine with less to do"
#define HAD(on) "without a break, of which it had a processor for " on
#define A WEFT_SEVERITY_ALARM
#define I WEFT_SEVERITY_INFORMATION

static const struct scene scenes[] = {
    {"all of it on a processor", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 0 0"}}, 0, NULL, CUT, NULL, A},
    {"most of it waiting", 0, {{80 * MS, 0, 80 * MS, "30050000 0 6 0 0"}}, 0, HAD("30.0 ms, waited for one for 49.9 ms;"), FULL,
	"blocked 0 times, and its processor was taken away 6 times", A},
    {"less of it waiting", 0, {{80 * MS, 0, 80 * MS, "50050000 0 6 0 0"}}, 0, HAD("50.0 ms, waited for one for 29.9 ms;"), CUT,
	NULL, A},
    {"hardly any of it its own", 0, {{80 * MS, 0, 80 * MS, "5050000 0 9 0 0"}}, 0, HAD("5.05 ms, waited for one for 74.9 ms;"),
	FULL, NULL, I},
    {"hardly any of it its own, and a sleep counted twice", 0, {{80 * MS, 0, 80 * MS, "5050000 1 9 0 0"}}, 0,
	HAD("5.05 ms, was blocked or waited for one for 74.9 ms;"), MAY, NULL, I},
    {"blocked", 0, {{80 * MS, 0, 80 * MS, "10050000 3 0 0 0"}}, 0, HAD("10.0 ms, was blocked for 69.9 ms;"), BLOCKS,
	"blocked 3 times, and its processor was taken away 0 times", I},
    {"blocked for long", 0, {{160 * MS, 0, 160 * MS, "10050000 3 0 0 0"}}, 0, HAD("10.0 ms, was blocked for 149 ms;"), BLOCKS,
	NULL, A},
    {"blocked for long, while the machine was busy", 0,
	{{160 * MS, 0, 160 * MS, "10050000 3 0 0 0"}, {20 * MS, 0, 20 * MS, "50000 0 5 0 0"}}, 0,
	HAD("10.1 ms, was blocked or waited for one for 169 ms;"), MAY, NULL, I},
    {"both", 0, {{80 * MS, 0, 80 * MS, "10050000 3 5 0 0"}}, 0, HAD("10.0 ms, was blocked or waited for one for 69.9 ms;"), MAY,
	NULL, I},
    {"both, but blocked far more often", 0, {{80 * MS, 0, 80 * MS, "10050000 80 5 0 0"}}, 0,
	HAD("10.0 ms, was blocked or waited for one for 69.9 ms;"), BLOCKS, NULL, I},
    {"page faults", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 60000 0"}}, 0, NULL, "keep and use again the memory",
	"had 60000 page faults, of which 0 read from a disk", A},
    {"too few page faults", 0, {{80 * MS, 0, 80 * MS, "80000000 0 0 10000 0"}}, 0, NULL, CUT, "had 10000 page faults", A},
    {"pages of a disk", 0, {{80 * MS, 0, 80 * MS, "10050000 40 0 0 40"}}, 0, HAD("10.0 ms, was blocked for 69.9 ms;"),
	"pages that were read from a disk", "had 40 page faults, of which 40 read from a disk", I},
    {"calls that are known", 0,
	{{20 * MS, 10 * MS, 0, NULL}, {20 * MS, 10 * MS, 0, NULL}, {20 * MS, 0, 80 * MS, "59950000 2 0 0 0"}}, 0,
	HAD("59.9 ms, was blocked for 20.0 ms in read and others, 2 times;"), CUT, "blocked 2 times", A},
    {"one call, and no processor", 0, {{20 * MS, 20 * MS, 0, NULL}, {40 * MS, 0, 80 * MS, "30050000 1 4 0 0"}}, 0,
	HAD("30.0 ms, waited for one for 29.9 ms, was blocked for 20.0 ms in read;"), CUT, NULL, A},
    {"a call, and what blocks besides", 0, {{20 * MS, 20 * MS, 0, NULL}, {40 * MS, 0, 80 * MS, "10050000 2 0 0 0"}}, 0,
	HAD("10.0 ms, was blocked for 69.9 ms in read and elsewhere;"), BLOCKS, NULL, I},
    {"calls alone", 0, {{20 * MS, 20 * MS, 0, NULL}}, 40 * MS, "without a break, of which it was blocked for 20.0 ms in read;",
	CUT, NULL, A},
    {"a sleep before it in what was asked", 0, {{80 * MS, 0, 85 * MS, "30050000 1 6 0 0"}}, 0,
	HAD("30.0 ms, waited for one for 49.9 ms;"), FULL, NULL, A},
    {"others ran in what was asked", 9 * MS, {{80 * MS, 0, 89 * MS, "30000000 0 6 0 0"}}, 0,
	HAD("at most 30.0 ms, waited for one for at least 50.0 ms;"), FULL, NULL, A},
    {"others ran for nearly all of what it had", 9 * MS, {{80 * MS, 0, 89 * MS, "75000000 0 6 0 0"}}, 0, NULL, CUT, NULL, A},
    {"asked a moment too early", 0, {{80 * MS, 0, 80 * MS, "10050000 0 6 0 0"}, {MS / 100, 0, 0, NULL}}, 0,
	HAD("10.0 ms, waited for one for 69.9 ms;"), FULL, NULL, I},
    {"others ran for a little while", MS, {{80 * MS, 0, 81 * MS, "31050000 0 6 0 0"}}, 0,
	HAD("30.0 ms, waited for one for 49.9 ms;"), FULL, NULL, A},
    {"asked twice", 0, {{40 * MS, 0, 40 * MS, "20050000 0 3 0 0"}, {40 * MS, 0, 40 * MS, "10050000 0 3 0 0"}}, 0,
	HAD("30.1 ms, waited for one for 49.9 ms;"), FULL, "taken away 6 times", A},
    {"stretches that overlap, in a damaged trace", 0,
	{{40 * MS, 0, 40 * MS, "20050000 0 3 0 0"}, {40 * MS, 0, 80 * MS, "10050000 0 3 0 0"}}, 0,
	HAD("30.1 ms, waited for one for 49.9 ms;"), FULL, NULL, A},
    {"preempted behind what was asked", 0, {{70 * MS, 0, 70 * MS, "70050000 0 0 0 0"}}, 10 * MS,
	HAD("70.0 ms, was blocked or waited for one for 10.0 ms;"), CUT, NULL, A},
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

static void the_parts_are_told(void **state)
{
	for (const struct scene *s = scenes; s < scenes + sizeof scenes / sizeof *scenes; s++) {
		play(s);
		const struct weft_finding *stall = only(WEFT_FINDING_STALL, 0);
		bool told = s->told ? has(stall->title, s->told) : !has(stall->title, ", of which");
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

/* A callback waits for a lock that another OS thread has, which wants to run and has no processor; or has one, or waits itself.
 */
static void who_waits_for_a_starved_os_thread_is_not_to_blame(void **state)
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
			assert_int_equal(stall->severity, r == 0 && !is_known ? I : A);
			assert_int_equal(has(stall->doubt ? stall->doubt : "", "had no processor"), r == 0 && !is_known);
			forget();
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_parts_are_told), cmocka_unit_test(who_waits_for_a_starved_os_thread_is_not_to_blame)};
	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
