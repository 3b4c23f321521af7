/* streams_test.c: the model of events that only native traces have: OS threads, sleeps, pauses, sites, state dumps.  The test
 * itself builds the events. SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/check_model.h"
#include "trace/format.h"

#define TEXT(literal)                                                                                                            \
	(struct weft_str)                                                                                                        \
	{                                                                                                                        \
		literal, sizeof(literal) - 1                                                                                     \
	}

static const struct weft_event *all_events;
static size_t all_count, given, stream_count;

/* Returns one event at a time, as a format may do. */
static int next(struct weft_trace *trace, const struct weft_event **events, size_t *count)
{
	if (given == all_count)
		return 0;
	*events = &all_events[given++];
	*count = 1;
	return 1;
}

static const struct weft_trace_format format = {.name = "test", .next = next};
static const struct weft_site sites[] = {
    {.file = TEXT("echo.c"), .function = TEXT("serve"), .line = 12}, {.file = TEXT("loop.c"), .function = TEXT(""), .line = 7}};
static struct weft_trace trace;
static struct weft_model *m;
static bool keep_parts;

static void build(const struct weft_event *events, size_t count, bool wrapped)
{
	struct weft_error err = {0};
	all_events = events;
	all_count = count;
	given = 0;
	trace = (struct weft_trace){.format = &format};
	trace.info.wrapped = wrapped;
	trace.info.sites = sites;
	trace.info.site_count = 2;
	static struct weft_stream_info streams[3];
	trace.info.streams = streams;
	trace.info.stream_count = stream_count;
	if (weft_model_build(&m, &trace, &(struct weft_model_options){.keep_parts = keep_parts}, &err) < 0)
		fail_msg("%s", err.what);
	check_model(m);
}
#define BUILD(events, wrapped) build(events, sizeof(events) / sizeof(events)[0], wrapped)

static int begin(void **state)
{
	m = NULL;
	keep_parts = false;
	stream_count = 1;
	return 0;
}

static int end(void **state)
{
	weft_model_destroy(m);
	return 0;
}

static const struct weft_promise *get(int64_t id)
{
	uint32_t index = weft_model_find(m, id);
	assert_true(index < m->promise_count);
	return &m->promises[index];
}

static void assert_run(int64_t id, uint32_t number, int64_t start_ns, int64_t end_ns)
{
	const struct weft_promise *p = get(id);
	assert_true(p->runs + number < p[1].runs);
	assert_true(m->runs[p->runs + number].start_ns == start_ns);
	assert_true(m->runs[p->runs + number].end_ns == end_ns);
}

static void assert_stretch(const struct weft_interval *s, int64_t start_ns, int64_t end_ns, const char *text, int stream)
{
	struct weft_str found = weft_model_text(m, s->text);
	assert_true(s->start_ns == start_ns);
	assert_true(s->end_ns == end_ns);
	assert_int_equal(s->stream, stream);
	assert_int_equal(found.len, strlen(text));
	assert_memory_equal(found.ptr, text, found.len);
}

static void each_thread_has_its_own_runs(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 100, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .stream = 0, .site = WEFT_NO_SITE},
	    {.time_ns = 101, .op = WEFT_OP_CREATE, .a = -1, .b = 2, .stream = 700, .site = WEFT_NO_SITE},
	    {.time_ns = 110, .op = WEFT_OP_RUN, .a = 1, .stream = 0},
	    {.time_ns = 115, .op = WEFT_OP_RUN, .a = 2, .stream = 700},
	    {.time_ns = 120, .op = WEFT_OP_RUN, .a = -1, .stream = 0},
	    {.time_ns = 125, .op = WEFT_OP_RUN, .a = -1, .stream = 700},
	    {.time_ns = 130, .op = WEFT_OP_READ, .a = 1, .b = 2, .stream = 0},
	    {.time_ns = 140, .op = WEFT_OP_RUN, .a = 2, .stream = 700},
	    {.time_ns = 150, .op = WEFT_OP_RESOLVE, .a = 2, .b = 1, .stream = 700},
	    {.time_ns = 160, .op = WEFT_OP_RUN, .a = 1, .stream = 700},
	};
	BUILD(events, false);
	assert_int_equal(get(1)->stream, 0);
	assert_int_equal(get(2)->stream, 700);
	assert_run(1, 0, 10, 20);
	assert_run(1, 1, 30, 50);
	assert_run(2, 0, 15, 25);
	assert_run(2, 1, 40, 60);
	assert_run(-1, 0, 20, 30);
	assert_run(-1, 1, 25, 40);
	assert_int_equal(m->sleep_count, 2);
	assert_stretch(&m->sleeps[0], 20, 30, "sleeping", 0);
	assert_stretch(&m->sleeps[1], 25, 40, "sleeping", 700);
	assert_int_equal(m->links[m->link_count - 1].stream, 700);
}

static void common_sleep_begins_when_the_last_thread_sleeps(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_RUN, .a = 1, .stream = 0},
	    {.time_ns = 10, .op = WEFT_OP_IDLE, .stream = 1},
	    {.time_ns = 20, .op = WEFT_OP_IDLE, .stream = 0},
	    {.time_ns = 30, .op = WEFT_OP_IDLE, .stream = 0},
	    {.time_ns = 40, .op = WEFT_OP_RUN, .a = 2, .stream = 1},
	    {.time_ns = 50, .op = WEFT_OP_RESUME, .a = 1, .stream = 0},
	    {.time_ns = 60, .op = WEFT_OP_IDLE, .stream = 1},
	    {.time_ns = 70, .op = WEFT_OP_IDLE, .stream = 0},
	    {.time_ns = 80, .op = WEFT_OP_NOTE, .a = 2, .text = {"end", 3}, .stream = 2},
	};
	BUILD(events, false);
	assert_int_equal(m->lull_count, 0);
	weft_model_destroy(m);
	m = NULL;
	stream_count = 3;
	BUILD(events, false);
	assert_int_equal(m->lull_count, 2);
	assert_true(m->lulls[0].start_ns == 20 && m->lulls[0].end_ns == 40);
	assert_true(m->lulls[1].start_ns == 70 && m->lulls[1].end_ns == 80);
}

static void sleep_text_follows_from_the_idle_reason(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_RUN, .a = 1},
	    {.time_ns = 10, .op = WEFT_OP_IDLE, .value = WEFT_IDLE_SUSPEND},
	    {.time_ns = 20, .op = WEFT_OP_RESUME, .a = 1},
	    {.time_ns = 30, .op = WEFT_OP_IDLE, .value = WEFT_IDLE_HIBERNATE},
	    {.time_ns = 40, .op = WEFT_OP_RESUME, .a = 2},
	    {.time_ns = 50, .op = WEFT_OP_RUN, .a = -1},
	    {.time_ns = 55, .op = WEFT_OP_IDLE, .value = 77},
	    {.time_ns = 60, .op = WEFT_OP_RUN, .a = 2},
	};
	BUILD(events, false);
	assert_int_equal(m->sleep_count, 3);
	assert_stretch(&m->sleeps[0], 10, 20, "suspended", 0);
	assert_stretch(&m->sleeps[1], 30, 40, "hibernating", 0);
	assert_stretch(&m->sleeps[2], 50, 60, "sleeping", 0);
	assert_run(-1, 2, 50, 60);
}

static void pause_lasts_from_its_start_to_its_end_event(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_RUN, .a = 1},
	    {.time_ns = 5, .op = WEFT_OP_PAUSE_END},
	    {.time_ns = 10, .op = WEFT_OP_PAUSE_BEGIN, .text = TEXT("gc")},
	    {.time_ns = 11, .op = WEFT_OP_PAUSE_BEGIN, .text = TEXT("inner")},
	    {.time_ns = 12, .op = WEFT_OP_PAUSE_END},
	    {.time_ns = 13, .op = WEFT_OP_PAUSE_BEGIN, .stream = 1},
	    {.time_ns = 20, .op = WEFT_OP_PAUSE_END},
	    {.time_ns = 30, .op = WEFT_OP_NOTE, .a = 1, .text = TEXT("a note")},
	};
	BUILD(events, false);
	assert_int_equal(m->pause_count, 3);
	assert_stretch(&m->pauses[0], 5, 5, "pause", 0);
	assert_stretch(&m->pauses[1], 10, 20, "gc", 0);
	assert_stretch(&m->pauses[2], 13, 30, "pause", 1);
	assert_int_equal(m->anomalies[WEFT_ANOMALY_PAUSE_UNMATCHED], 1);
	assert_int_equal(m->label_count, 1);
	weft_model_destroy(m);
	/* If older events were overwritten, the pause started before them. */
	BUILD(events, true);
	assert_stretch(&m->pauses[0], 0, 5, "pause", 0);
	assert_int_equal(m->anomalies[WEFT_ANOMALY_PAUSE_UNMATCHED], 0);
}

static void site_names_unlabelled_promise(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .site = 0},
	    {.time_ns = 1, .op = WEFT_OP_CREATE, .a = -1, .b = 2, .site = 1},
	    {.time_ns = 2, .op = WEFT_OP_CREATE, .a = -1, .b = 3, .site = 2},
	    {.time_ns = 3, .op = 200, .a = 1},
	};
	char name[32];
	BUILD(events, false);
	assert_int_equal(weft_model_name(m, weft_model_find(m, 1), name, sizeof name), 15);
	assert_string_equal(name, "echo.c:12 serve");
	weft_model_name(m, weft_model_find(m, 1), name, 12);
	assert_string_equal(name, "echo.c:12 s");
	assert_int_equal(weft_model_name(m, weft_model_find(m, 1), name, 3), 15);
	assert_string_equal(name, "ec");
	weft_model_name(m, weft_model_find(m, 2), name, sizeof name);
	assert_string_equal(name, "loop.c:7");
	assert_int_equal(get(3)->site, WEFT_NONE);
	weft_model_name(m, weft_model_find(m, 3), name, sizeof name);
	assert_string_equal(name, "3");
	assert_int_equal(m->anomalies[WEFT_ANOMALY_UNKNOWN_EVENT], 1);
}

static void checkpoint_restores_overwritten_promises(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 1000, .op = WEFT_OP_LABEL, .a = 5, .text = TEXT("early")},
	    {.time_ns = 1001, .op = WEFT_OP_CREATE, .a = -1, .b = 6, .kind = WEFT_KIND_TASK, .site = WEFT_NO_SITE},
	    {.time_ns = 1010,
		.op = WEFT_OP_PENDING,
		.a = 4,
		.b = 5,
		.value = 300,
		.kind = WEFT_KIND_TIMER,
		.site = 0,
		.text = TEXT("a day old")},
	    {.time_ns = 1010,
		.op = WEFT_OP_PENDING,
		.a = 5,
		.b = 6,
		.value = 200,
		.kind = WEFT_KIND_TIMER,
		.site = 0,
		.text = TEXT("x")},
	    {.time_ns = 1010, .op = WEFT_OP_PENDING, .a = 5, .b = 7, .value = 400, .kind = WEFT_KIND_WAIT, .site = WEFT_NO_SITE},
	    {.time_ns = 1011, .op = WEFT_OP_PENDING, .a = 5, .b = 8, .value = 5000, .kind = WEFT_KIND_WAIT, .site = WEFT_NO_SITE},
	    {.time_ns = 1012,
		.op = WEFT_OP_PENDING,
		.a = 5,
		.b = 9,
		.value = INT64_MIN,
		.kind = WEFT_KIND_WAIT,
		.site = WEFT_NO_SITE},
	    {.time_ns = 1013, .op = WEFT_OP_PENDING, .a = -1, .b = -1, .site = WEFT_NO_SITE},
	    {.time_ns = 1020, .op = WEFT_OP_PENDING, .a = 4, .b = 5, .value = 1, .kind = WEFT_KIND_WAIT, .text = TEXT("again")},
	};
	BUILD(events, true);
	const struct weft_promise *p = get(5);
	assert_true(p->start_ns == -700);
	assert_int_equal(p->kind, WEFT_KIND_TIMER);
	assert_int_equal(p->site, 0);
	assert_int_equal(p->flags, WEFT_PROMISE_CREATION_DRAWN | WEFT_PROMISE_ORPHAN);
	assert_int_equal(p->end, WEFT_END_PENDING);
	assert_int_equal(p[1].labels - p->labels, 2);
	assert_true(m->labels[p->labels].time_ns == -700 && m->labels[p->labels + 1].time_ns == 0);
	char name[32];
	weft_model_name(m, weft_model_find(m, 5), name, sizeof name);
	assert_string_equal(name, "a day old");
	/* A state dump does not give a promise an unknown creator, and does not change a promise whose creation is known. */
	assert_int_equal(weft_model_find(m, 4), WEFT_NONE);
	assert_int_equal(get(6)->kind, WEFT_KIND_TASK);
	assert_true(get(6)->start_ns == 1);
	assert_int_equal(get(7)->created_by, weft_model_find(m, 5));
	assert_true(get(7)->start_ns == -600);
	assert_true(get(8)->start_ns == 11);
	assert_true(get(9)->start_ns < -(INT64_MAX / 8));
	assert_int_equal(m->anomalies[WEFT_ANOMALY_SYSTEM_MISUSED], 1);
}

static void state_dump_does_not_reopen_an_ended_promise(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_RESOLVE, .a = -1, .b = 1},
	    {.time_ns = 9, .op = WEFT_OP_PENDING, .a = -1, .b = 1, .value = 9, .site = WEFT_NO_SITE},
	};
	BUILD(events, true);
	assert_true(get(1)->start_ns == 0 && get(1)->end_ns == 0);
	assert_int_equal(get(1)->end, WEFT_END_RESOLVED);
}

static void checkpoint_restores_overwritten_awaits(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_AWAIT, .a = 4, .b = 5},
	    {.time_ns = 1, .op = WEFT_OP_PENDING, .a = -1, .b = 1, .value = 1, .site = WEFT_NO_SITE, .text = TEXT("forgotten")},
	    {.time_ns = 2, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 2},
	    {.time_ns = 3, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 3},
	    {.time_ns = 4, .op = WEFT_OP_STILL_AWAITS, .a = 4, .b = 5},
	    /* A second state dump starts here. */
	    {.time_ns = 12, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 2},
	    {.time_ns = 13, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 3},
	    {.time_ns = 14, .op = WEFT_OP_AWAIT, .a = 6, .b = 5},
	    {.time_ns = 15, .op = WEFT_OP_STILL_AWAITS, .a = 6, .b = 5},
	};
	static const int64_t expected[][3] = {{0, 4, 5}, {2, 1, 2}, {3, 1, 3}, {14, 6, 5}};
	BUILD(events, true);
	assert_int_equal(m->link_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(m->links[i].kind, WEFT_LINK_AWAIT);
		assert_int_equal(m->links[i].time_ns, expected[i][0]);
		assert_int_equal(m->promises[m->links[i].from].id, expected[i][1]);
		assert_int_equal(m->promises[m->links[i].to].id, expected[i][2]);
	}
	assert_int_equal(m->anomalies[WEFT_ANOMALY_UNKNOWN_EVENT], 0);
}

static void await_lasts_until_its_end_event(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_AWAIT, .a = 1, .b = 2},
	    {.time_ns = 1, .op = WEFT_OP_AWAIT, .a = 1, .b = 3},
	    {.time_ns = 2, .op = WEFT_OP_AWAITS_NO_MORE, .a = 1, .b = 2},
	    {.time_ns = 3, .op = WEFT_OP_AWAIT, .a = 1, .b = 2},
	    {.time_ns = 4, .op = WEFT_OP_AWAITS_NO_MORE, .a = 1, .b = 3},
	    /* The ring has overwritten the await that a dump repeats. */
	    {.time_ns = 5, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 3},
	    {.time_ns = 6, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 2},
	    {.time_ns = 7, .op = WEFT_OP_AWAITS_NO_MORE, .a = 1, .b = 4},
	};
	static const int64_t expected[][4] = {{0, 1, 2, 2}, {1, 1, 3, 4}, {3, 1, 2, INT64_MAX}, {5, 1, 3, INT64_MAX}};
	BUILD(events, true);
	assert_int_equal(m->link_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(m->links[i].kind, WEFT_LINK_AWAIT);
		assert_int_equal(m->links[i].time_ns, expected[i][0]);
		assert_int_equal(m->promises[m->links[i].from].id, expected[i][1]);
		assert_int_equal(m->promises[m->links[i].to].id, expected[i][2]);
		assert_int_equal(weft_model_await_end(m, &m->links[i]), expected[i][3]);
	}
	assert_int_equal(m->anomalies[WEFT_ANOMALY_UNKNOWN_EVENT], 0);
}

/* The ring has no other await of this promise. */
static void ended_await_can_start_again(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_AWAIT, .a = 1, .b = 2},
	    {.time_ns = 1, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 2},
	    {.time_ns = 2, .op = WEFT_OP_AWAITS_NO_MORE, .a = 1, .b = 2},
	    {.time_ns = 3, .op = WEFT_OP_STILL_AWAITS, .a = 1, .b = 2},
	};
	BUILD(events, true);
	assert_int_equal(m->link_count, 2);
	assert_int_equal(weft_model_await_end(m, &m->links[0]), 2);
	assert_int_equal(m->links[1].time_ns, 3);
}

static void fatal_signal_is_recorded(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_THREAD, .site = WEFT_NO_SITE},
	    {.time_ns = 5, .op = WEFT_OP_DETAIL, .a = 1, .kind = WEFT_DETAIL_DIED, .text = TEXT("SIGABRT")},
	};
	BUILD(events, false);
	assert_int_equal(m->death_count, 1);
	assert_int_equal(m->deaths[0].time_ns, 5);
	assert_int_equal(m->deaths[0].promise, weft_model_find(m, 1));
	assert_memory_equal(weft_model_text(m, m->deaths[0].text).ptr, "SIGABRT", 7);
}

/* Requests 2 and 3 are read in one iteration; the loop works for 2 from time 30 on, and then for 3. */
static void answer_claims_the_run_time_since_the_last_transfer_or_claim(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_THREAD, .site = WEFT_NO_SITE},
	    {.time_ns = 1, .op = WEFT_OP_CREATE, .a = -1, .b = 2, .kind = WEFT_KIND_REQUEST, .site = WEFT_NO_SITE},
	    {.time_ns = 2, .op = WEFT_OP_CREATE, .a = -1, .b = 3, .kind = WEFT_KIND_REQUEST, .site = WEFT_NO_SITE},
	    {.time_ns = 3, .op = WEFT_OP_CREATE, .a = -1, .b = 4, .kind = WEFT_KIND_CONNECTION, .site = WEFT_NO_SITE},
	    {.time_ns = 10, .op = WEFT_OP_RUN, .a = 2},
	    {.time_ns = 20, .op = WEFT_OP_RUN, .a = 3},
	    {.time_ns = 30, .op = WEFT_OP_SENT, .a = 4, .value = 7},
	    {.time_ns = 50, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM},
	    {.time_ns = 51, .op = WEFT_OP_RUN, .a = 2},
	    {.time_ns = 80, .op = WEFT_OP_DETAIL, .a = 3, .kind = WEFT_DETAIL_CLAIM},
	    {.time_ns = 81, .op = WEFT_OP_RUN, .a = 3},
	    {.time_ns = 90, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM, .value = 1},
	    {.time_ns = 95, .op = WEFT_OP_IDLE, .value = 0},
	    {.time_ns = 99, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM},
	};
	BUILD(events, false);
	const struct weft_promise *first = get(2), *second = get(3);
	const struct weft_run *runs = m->runs;
	assert_int_equal(second->runs - first->runs, 2);
	assert_int_equal(runs[first->runs].end_ns, 20);
	assert_int_equal(
	    runs[first->runs + 1].start_ns, 30); /* request 2 runs since the transfer, not since the read of request 3 */
	assert_int_equal(runs[first->runs + 1].end_ns, 50);
	assert_int_equal(second[1].runs - second->runs, 3);
	assert_int_equal(runs[second->runs].start_ns, 20);
	assert_int_equal(runs[second->runs].end_ns, 30);
	assert_int_equal(runs[second->runs + 1].start_ns, 50); /* request 3 runs since the claim of request 2 */
	assert_int_equal(runs[second->runs + 2].start_ns, 80);
	assert_int_equal(runs[second->runs + 2].end_ns, 95); /* an uncertain claim changes no run */
	assert_int_equal(m->claim_count, 3);
	assert_int_equal(m->claims[0].start_ns, 30);
	assert_int_equal(m->claims[2].end_ns, 90);
}

/* The recorder guesses that the loop works for request 2; then request 3 is answered, which did not run. */
static void guessed_owner_of_a_run_is_uncertain_until_the_next_transfer(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_THREAD, .site = WEFT_NO_SITE},
	    {.time_ns = 1, .op = WEFT_OP_CREATE, .a = -1, .b = 2, .kind = WEFT_KIND_REQUEST, .site = WEFT_NO_SITE},
	    {.time_ns = 2, .op = WEFT_OP_CREATE, .a = -1, .b = 3, .kind = WEFT_KIND_REQUEST, .site = WEFT_NO_SITE},
	    {.time_ns = 3, .op = WEFT_OP_CREATE, .a = -1, .b = 4, .kind = WEFT_KIND_CONNECTION, .site = WEFT_NO_SITE},
	    {.time_ns = 10, .op = WEFT_OP_RUN, .a = 2},
	    {.time_ns = 11, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM, .value = 2},
	    {.time_ns = 30, .op = WEFT_OP_SENT, .a = 4, .value = 7},
	    {.time_ns = 35, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM, .value = 1},
	    {.time_ns = 40, .op = WEFT_OP_DETAIL, .a = 3, .kind = WEFT_DETAIL_CLAIM},
	    {.time_ns = 41, .op = WEFT_OP_SENT, .a = 4, .value = 9},
	    {.time_ns = 50, .op = WEFT_OP_IDLE, .value = 0},
	    {.time_ns = 60, .op = WEFT_OP_RUN, .a = 2},
	    {.time_ns = 61, .op = WEFT_OP_SENT, .a = 4, .value = 12},
	    {.time_ns = 70, .op = WEFT_OP_IDLE, .value = 0},
	};
	static const int64_t want[][2] = {{11, 30}, {30, 35}, {30, 40}, {41, 50}};
	BUILD(events, false);
	assert_int_equal(m->claim_count, sizeof want / sizeof *want);
	for (size_t i = 0; i < m->claim_count; i++) {
		assert_int_equal(m->claims[i].start_ns, want[i][0]);
		assert_int_equal(m->claims[i].end_ns, want[i][1]);
	}
}

/* Request 2 runs on another thread while the first thread works for it, too. */
static void claimed_runs_are_in_time_order(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_THREAD, .site = WEFT_NO_SITE},
	    {.time_ns = 1, .op = WEFT_OP_CREATE, .a = -1, .b = 2, .kind = WEFT_KIND_REQUEST, .site = WEFT_NO_SITE},
	    {.time_ns = 3, .op = WEFT_OP_CREATE, .a = -1, .b = 4, .kind = WEFT_KIND_CONNECTION, .site = WEFT_NO_SITE},
	    {.time_ns = 10, .op = WEFT_OP_RUN, .a = 1},
	    {.time_ns = 20, .op = WEFT_OP_SENT, .a = 4, .value = 7},
	    {.time_ns = 30, .op = WEFT_OP_RUN, .a = 2, .stream = 1},
	    {.time_ns = 40, .op = WEFT_OP_IDLE, .value = 0, .stream = 1},
	    {.time_ns = 50, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_CLAIM},
	};
	stream_count = 2;
	BUILD(events, false);
	const struct weft_run *runs = m->runs + get(2)->runs;
	assert_int_equal(runs[0].start_ns, 20);
	assert_int_equal(m->run_streams[get(2)->runs], 0);
	assert_int_equal(runs[1].start_ns, 30);
	assert_int_equal(m->run_streams[get(2)->runs + 1], 1);
}

static void cancellation_ends_a_promise(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .site = WEFT_NO_SITE},
	    {.time_ns = 9, .op = WEFT_OP_CANCEL, .a = -1, .b = 1},
	};
	BUILD(events, true);
	assert_int_equal(get(1)->end, WEFT_END_FAILED);
	assert_int_equal(get(1)->end_ns, 9);
	assert_true(weft_model_text(m, get(1)->failure).len == 9);
}

static void callers_of_a_promise_are_its_first_recorded_stack(void **state)
{
	static const struct weft_event events[] = {
	    {.time_ns = 0, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_STACK, .text = TEXT("3 4")},
	    {.time_ns = 1, .op = WEFT_OP_DETAIL, .a = 1, .kind = WEFT_DETAIL_STACK, .text = TEXT("5")},
	    {.time_ns = 2, .op = WEFT_OP_DETAIL, .a = 2, .kind = WEFT_DETAIL_STACK, .text = TEXT("6")},
	    {.time_ns = 2, .op = WEFT_OP_DETAIL, .a = 3, .kind = WEFT_DETAIL_BLOCKED, .text = TEXT("poll")},
	};
	BUILD(events, true);
	assert_memory_equal(weft_model_callers(m, weft_model_find(m, 2)).ptr, "3 4", 3);
	assert_memory_equal(weft_model_callers(m, weft_model_find(m, 1)).ptr, "5", 1);
	assert_int_equal(weft_model_callers(m, 0).len, 0);
	assert_int_equal(m->promise_count, 3); /* the system and the two promises that events name */
}

/* Promise 3 is internal to 2, and 4 to 3; 1 waits for 2. */
static const struct weft_event parts[] = {
    {.time_ns = 0, .op = WEFT_OP_CREATE, .a = -1, .b = 1, .kind = WEFT_KIND_THREAD, .site = WEFT_NO_SITE},
    {.time_ns = 1, .op = WEFT_OP_CREATE, .a = 1, .b = 2, .kind = WEFT_KIND_WORK, .site = WEFT_NO_SITE},
    {.time_ns = 2, .op = WEFT_OP_BELONGS, .a = 3, .b = 2},
    {.time_ns = 3, .op = WEFT_OP_CREATE, .a = 1, .b = 3, .kind = WEFT_KIND_POLL, .site = WEFT_NO_SITE},
    {.time_ns = 4, .op = WEFT_OP_LABEL, .a = 3, .text = TEXT("inner")},
    {.time_ns = 5, .op = WEFT_OP_AWAIT, .a = 2, .b = 3},
    {.time_ns = 6, .op = WEFT_OP_AWAIT, .a = 1, .b = 2},
    {.time_ns = 7, .op = WEFT_OP_BELONGS, .a = 4, .b = 3},
    {.time_ns = 8, .op = WEFT_OP_CREATE, .a = 3, .b = 4, .kind = WEFT_KIND_POLL, .site = WEFT_NO_SITE},
    {.time_ns = 9, .op = WEFT_OP_IDLE, .value = 0},
    {.time_ns = 20, .op = WEFT_OP_SIGNAL, .a = -1, .b = 4},
    {.time_ns = 21, .op = WEFT_OP_FAIL, .a = 4, .b = 4, .text = TEXT("not yet")},
    {.time_ns = 22, .op = WEFT_OP_READ, .a = 3, .b = 4},
    {.time_ns = 25, .op = WEFT_OP_RESOLVE, .a = 3, .b = 2},
    {.time_ns = 30, .op = WEFT_OP_READ, .a = 1, .b = 2},
    {.time_ns = 40, .op = WEFT_OP_RESOLVE, .a = 1, .b = 3},
};

static void internal_promises_are_merged_into_their_owners(void **state)
{
	BUILD(parts, false);
	assert_int_equal(m->promise_count, 3);
	assert_int_equal(weft_model_find(m, 4), weft_model_find(m, 2));
	const struct weft_promise *owner = &m->promises[weft_model_find(m, 2)];
	assert_int_equal(owner->end, WEFT_END_RESOLVED);
	assert_int_equal(owner->kind, WEFT_KIND_WORK);
	assert_int_equal(owner->labels, owner[1].labels);
	assert_int_equal(owner[1].runs - owner->runs, 1); /* one run, from the signal to the end of the internal promise */
	assert_int_equal(m->runs[owner->runs].start_ns, 20);
	assert_int_equal(
	    m->link_count, 2); /* the read by the thread, which replaces the await, and the resolve of the owner by itself */
}

static void internal_promises_appear_with_parts_option(void **state)
{
	keep_parts = true;
	BUILD(parts, false);
	assert_int_equal(m->promise_count, 5);
	assert_int_equal(m->promises[weft_model_find(m, 4)].end, WEFT_END_FAILED);
	assert_int_equal(m->promises[weft_model_find(m, 3)].end, WEFT_END_RESOLVED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
	    TEST(each_thread_has_its_own_runs),
	    TEST(common_sleep_begins_when_the_last_thread_sleeps),
	    TEST(sleep_text_follows_from_the_idle_reason),
	    TEST(pause_lasts_from_its_start_to_its_end_event),
	    TEST(site_names_unlabelled_promise),
	    TEST(checkpoint_restores_overwritten_promises),
	    TEST(state_dump_does_not_reopen_an_ended_promise),
	    TEST(checkpoint_restores_overwritten_awaits),
	    TEST(await_lasts_until_its_end_event),
	    TEST(ended_await_can_start_again),
	    TEST(fatal_signal_is_recorded),
	    TEST(answer_claims_the_run_time_since_the_last_transfer_or_claim),
	    TEST(guessed_owner_of_a_run_is_uncertain_until_the_next_transfer),
	    TEST(claimed_runs_are_in_time_order),
	    TEST(cancellation_ends_a_promise),
	    TEST(callers_of_a_promise_are_its_first_recorded_stack),
	    TEST(internal_promises_are_merged_into_their_owners),
	    TEST(internal_promises_appear_with_parts_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
