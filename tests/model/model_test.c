/* model_test.c: the model of events, also of events that contradict each other.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mirage_writer.h"
#include "model/check_model.h"

static struct mirage_writer w;
static struct weft_trace *trace;
static struct weft_model *m;

static int begin(void **state)
{
	w.size = 0;
	mw_packet(&w, 0);
	trace = NULL;
	m = NULL;
	return 0;
}

static int end(void **state)
{
	weft_model_destroy(m);
	weft_trace_close(trace);
	return 0;
}

static void build_with(bool keep_binds)
{
	struct weft_error err = {0};
	struct weft_model_options options = {.keep_binds = keep_binds};
	mw_end(&w, 0);
	if (weft_trace_open_memory(&trace, w.bytes, w.size, "test", &err) < 0 || weft_model_build(&m, trace, &options, &err) < 0)
		fail_msg("%s", err.what);
	check_model(m);
}

static void build(void)
{
	build_with(false);
}

static const struct weft_promise *get(int64_t id)
{
	uint32_t index = weft_model_find(m, id);
	assert_true(index < m->promise_count);
	return &m->promises[index];
}

static int64_t id_of(uint32_t index)
{
	assert_true(index < m->promise_count);
	return m->promises[index].id;
}

static void assert_life(int64_t id, int64_t start_ns, int64_t end_ns, enum weft_end how)
{
	const struct weft_promise *p = get(id);
	assert_true(p->start_ns == start_ns);
	assert_true(p->end_ns == end_ns);
	assert_int_equal(p->end, how);
}

static void assert_label(int64_t id, uint32_t number, int64_t time_ns, const char *expected)
{
	char text[64];
	const struct weft_promise *p = get(id);
	assert_true(p->labels + number < p[1].labels);
	const struct weft_label *label = &m->labels[p->labels + number];
	assert_true(label->time_ns == time_ns);
	assert_int_equal(weft_model_label(m, label, text, sizeof text), strlen(expected));
	assert_string_equal(text, expected);
}

static size_t label_count(int64_t id)
{
	return get(id)[1].labels - get(id)->labels;
}

static void assert_run(int64_t id, uint32_t number, int64_t start_ns, int64_t end_ns)
{
	const struct weft_promise *p = get(id);
	assert_true(p->runs + number < p[1].runs);
	assert_true(m->runs[p->runs + number].start_ns == start_ns);
	assert_true(m->runs[p->runs + number].end_ns == end_ns);
}

static size_t run_count(int64_t id)
{
	return get(id)[1].runs - get(id)->runs;
}

/* Returns the number of links of that kind between two promises. */
static size_t links(enum weft_link_kind kind, int64_t from, int64_t to)
{
	size_t count = 0;
	for (size_t i = 0; i < m->link_count; i++)
		count += m->links[i].kind == kind && id_of(m->links[i].from) == from && id_of(m->links[i].to) == to;
	return count;
}

/* Checks that the model counted `expected` anomalies of this kind and no others. */
static void assert_odd(enum weft_anomaly which, uint64_t expected)
{
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		assert_true(m->anomalies[i] == (i == (int)which ? expected : 0));
}

static void assert_nothing_odd(void)
{
	assert_odd(WEFT_ANOMALY_COUNT, 0);
}

static void promise_lives_from_creation_to_end(void **state)
{
	mw_create(&w, 1000, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 1010, 1, 2, WEFT_KIND_WAIT);
	mw_link(&w, 1020, WEFT_OP_RESOLVE, -1, 2);
	mw_create(&w, 1030, 1, 3, 77);
	mw_text(&w, 1040, WEFT_OP_FAIL, 1, 3, "Not_found");
	mw_create(&w, 1050, 1, 4, WEFT_KIND_PICK);
	mw_link(&w, 1060, WEFT_OP_BECOME, 4, 9);
	mw_label(&w, 1070, 9, "nine");
	build();
	assert_int_equal(m->events, 8);
	assert_true(m->start_ns == 1000 && m->end_ns == 70);
	assert_int_equal(m->promise_count, 6);
	assert_life(-1, 0, 70, WEFT_END_PENDING);
	assert_life(1, 0, 50 + 1000, WEFT_END_PENDING);
	assert_life(2, 10, 20, WEFT_END_RESOLVED);
	assert_life(3, 30, 40, WEFT_END_FAILED);
	assert_life(4, 50, 60, WEFT_END_BECAME);
	assert_life(9, 0, 70 + 1000, WEFT_END_PENDING);
	assert_int_equal(id_of(get(4)->became), 9);
	assert_int_equal(id_of(get(2)->created_by), 1);
	assert_int_equal(id_of(get(2)->parent), 1);
	assert_int_equal(get(2)->flags, WEFT_PROMISE_CREATION_DRAWN);
	assert_int_equal(get(9)->flags, WEFT_PROMISE_CREATION_DRAWN | WEFT_PROMISE_START_UNKNOWN);
	assert_int_equal(get(9)->created_by, WEFT_SYSTEM);
	assert_string_equal(weft_model_kind_name(m, get(1)->kind), "task");
	assert_string_equal(weft_model_kind_name(m, get(3)->kind), "kind-77");
	assert_string_equal(weft_model_kind_name(m, get(9)->kind), "preexisting");
	assert_string_equal(weft_model_kind_name(m, get(-1)->kind), "system");
	assert_label(3, 0, 40, "Not_found");
	assert_label(9, 0, 70, "nine");
	assert_int_equal(weft_model_find(m, 77), WEFT_NONE);
	assert_nothing_odd();
}

static void promise_name_is_its_last_label_or_its_id(void **state)
{
	char name[8];
	mw_label(&w, 1, 1, "");
	mw_label(&w, 2, 1, "second");
	mw_label(&w, 3, 123456, "");
	mw_label(&w, 4, 3, "\xFF\xC3\xA9");
	mw_text(&w, 5, WEFT_OP_COUNTER, 4, INT64_MIN, "c");
	build();
	assert_int_equal(weft_model_name(m, weft_model_find(m, 1), name, sizeof name), 6);
	assert_string_equal(name, "second");
	assert_int_equal(weft_model_name(m, weft_model_find(m, 123456), name, 4), 6);
	assert_string_equal(name, "123");
	assert_int_equal(weft_model_name(m, weft_model_find(m, 3), name, sizeof name), 5);
	assert_string_equal(name, "\xEF\xBF\xBD\xC3\xA9");
	assert_int_equal(weft_model_name(m, weft_model_find(m, 4), name, sizeof name), 1);
	assert_string_equal(name, "4");
	assert_int_equal(weft_model_label(m, &m->labels[get(4)->labels], name, sizeof name), 21);
	assert_string_equal(name, "c-92233");
}

static void runs_switch_between_promises(void **state)
{
	mw_create(&w, 0, -1, 1, 1);
	mw_create(&w, 1, -1, 2, 1);
	mw_op(&w, 10, WEFT_OP_RUN, 1);
	mw_op(&w, 15, WEFT_OP_RUN, 1);
	mw_link(&w, 20, WEFT_OP_READ, 2, 1);
	mw_link(&w, 25, WEFT_OP_SIGNAL, 1, 2); /* mirage stores the receiver first */
	mw_link(&w, 30, WEFT_OP_READ_LATER, 2, 1);
	mw_op(&w, 40, WEFT_OP_RUN, -1);
	mw_op(&w, 45, WEFT_OP_RUN, 2);
	mw_link(&w, 50, WEFT_OP_RESOLVE, 2, 2);
	mw_op(&w, 60, WEFT_OP_RUN, 1);
	mw_link(&w, 70, WEFT_OP_BECOME, 1, 3);
	mw_op(&w, 80, WEFT_OP_PAUSE, 5);
	build();
	assert_int_equal(run_count(1), 3);
	assert_run(1, 0, 10, 20);
	assert_run(1, 1, 25, 40);
	assert_run(1, 2, 60, 70);
	assert_int_equal(run_count(2), 2);
	assert_run(2, 0, 20, 25);
	assert_run(2, 1, 45, 50);
	assert_int_equal(run_count(3), 1);
	assert_run(3, 0, 70, 80);
	assert_int_equal(run_count(-1), 1);
	assert_run(-1, 0, 40, 45);
	assert_int_equal(m->sleep_count, 1);
	assert_true(m->sleeps[0].start_ns == 40 && m->sleeps[0].end_ns == 45);
	assert_int_equal(m->pause_count, 1);
	assert_true(m->pauses[0].start_ns == 75 && m->pauses[0].end_ns == 80);
	assert_int_equal(weft_model_text(m, m->pauses[0].text).len, 2);
	assert_int_equal(links(WEFT_LINK_SIGNAL, 2, 1), 1);
	assert_int_equal(links(WEFT_LINK_READ, 2, 1), 2);
	assert_life(3, 0, 80 + 1000, WEFT_END_PENDING);
}

static void read_right_after_an_await_replaces_the_await(void **state)
{
	mw_link(&w, 1, WEFT_OP_AWAIT, 1, 2);
	mw_link(&w, 2, WEFT_OP_AWAIT, 3, 2);
	mw_link(&w, 3, WEFT_OP_READ, 1, 2);
	mw_link(&w, 4, WEFT_OP_RESOLVE, 3, 4);
	mw_link(&w, 5, WEFT_OP_READ, 3, 2);
	mw_link(&w, 6, WEFT_OP_AWAIT, 5, -1);
	mw_link(&w, 7, WEFT_OP_READ, 5, -1);
	build();
	assert_int_equal(links(WEFT_LINK_AWAIT, 1, 2), 0);
	assert_int_equal(links(WEFT_LINK_READ, 1, 2), 1);
	assert_int_equal(links(WEFT_LINK_AWAIT, 3, 2), 1);
	assert_int_equal(links(WEFT_LINK_READ, 3, 2), 1);
	assert_int_equal(m->link_count, 4);
	assert_int_equal(weft_model_find(m, 5), WEFT_NONE);
}

static void events_of_a_merged_promise_apply_to_its_last_target(void **state)
{
	for (int i = 1; i < 1000; i++)
		mw_link(&w, i, WEFT_OP_BECOME, i, i + 1);
	mw_label(&w, 2000, 1, "label");
	mw_link(&w, 2001, WEFT_OP_RESOLVE, 2, 500);
	build();
	assert_life(1, 0, 1 - 1, WEFT_END_BECAME);
	assert_label(1000, 0, 1999, "label");
	assert_int_equal(links(WEFT_LINK_RESOLVE, 1000, 1000), 1);
	assert_life(1000, 0, 2000, WEFT_END_RESOLVED);
	assert_int_equal(id_of(get(500)->became), 501);
	assert_nothing_odd();
}

static void promises_becoming_each_other_are_no_anomaly(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_BIND);
	mw_create(&w, 1, -1, 5, WEFT_KIND_BIND);
	mw_link(&w, 2, WEFT_OP_BECOME, 1, 5);
	mw_link(&w, 3, WEFT_OP_BECOME, 5, 1);
	mw_link(&w, 4, WEFT_OP_BECOME, 1, 5);
	mw_label(&w, 5, 1, "one of them");
	mw_link(&w, 6, WEFT_OP_RESOLVE, -1, 1);
	build();
	assert_life(1, 0, 2, WEFT_END_BECAME);
	assert_life(5, 1, 6, WEFT_END_RESOLVED);
	assert_label(5, 0, 5, "one of them");
	assert_nothing_odd();
}

static void promise_becoming_itself_is_an_anomaly(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_BIND);
	mw_link(&w, 1, WEFT_OP_BECOME, 1, 1);
	mw_link(&w, 2, WEFT_OP_RESOLVE, -1, 1);
	build();
	assert_life(1, 0, 2, WEFT_END_RESOLVED);
	assert_odd(WEFT_ANOMALY_BECAME_ITSELF, 1);
}

static void only_the_first_end_of_a_promise_counts(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_link(&w, 1, WEFT_OP_RESOLVE, 2, 1);
	mw_link(&w, 2, WEFT_OP_RESOLVE, 2, 1);
	mw_text(&w, 3, WEFT_OP_FAIL, 2, 1, "too late");
	mw_link(&w, 4, WEFT_OP_BECOME, 1, 2);
	build();
	assert_life(1, 0, 1, WEFT_END_RESOLVED);
	assert_int_equal(links(WEFT_LINK_RESOLVE, 2, 1), 3);
	assert_odd(WEFT_ANOMALY_ENDED_TWICE, 3);
}

static void second_creation_of_an_id_is_a_new_promise(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_link(&w, 1, WEFT_OP_RESOLVE, -1, 1);
	mw_create(&w, 5, -1, 1, WEFT_KIND_WAIT);
	mw_label(&w, 6, 1, "second");
	build();
	assert_int_equal(m->promise_count, 3);
	assert_life(1, 5, 6 + 1000, WEFT_END_PENDING);
	assert_true(m->promises[1].id == 1 && m->promises[1].end_ns == 1 && m->promises[1].end == WEFT_END_RESOLVED);
	assert_odd(WEFT_ANOMALY_CREATED_TWICE, 1);
}

static void promise_used_before_its_creation_is_an_anomaly(void **state)
{
	mw_op(&w, 0, WEFT_OP_RUN, 1);
	mw_link(&w, 1, WEFT_OP_READ, 1, 2);
	mw_create(&w, 5, 1, 2, WEFT_KIND_WAIT);
	mw_create(&w, 6, 3, 1, WEFT_KIND_TASK); /* ignored, because its creator is mentioned only later */
	mw_link(&w, 7, WEFT_OP_RESOLVE, 1, 4);
	mw_create(&w, 8, 1, 4, WEFT_KIND_WAIT);
	mw_create(&w, 9, 5, 5, WEFT_KIND_WAIT);
	build();
	assert_life(2, 5, 5 + 1000, WEFT_END_PENDING);
	assert_int_equal(get(2)->kind, WEFT_KIND_WAIT);
	assert_int_equal(get(2)->flags, WEFT_PROMISE_CREATION_DRAWN);
	assert_int_equal(id_of(get(2)->created_by), 1);
	assert_int_equal(get(1)->created_by, WEFT_SYSTEM);
	assert_life(4, 7, 7, WEFT_END_RESOLVED);
	assert_int_equal(get(5)->created_by, WEFT_SYSTEM);
	assert_odd(WEFT_ANOMALY_CREATED_LATE, 4);
}

static void system_promise_has_neither_start_nor_end(void **state)
{
	mw_create(&w, 0, -1, -1, WEFT_KIND_TASK);
	mw_link(&w, 1, WEFT_OP_RESOLVE, 1, -1);
	mw_link(&w, 2, WEFT_OP_BECOME, -1, 1);
	mw_link(&w, 3, WEFT_OP_BECOME, 1, -1);
	mw_label(&w, 4, -1, "not kept");
	mw_label(&w, 5, -1, "__should_resolve");
	build();
	assert_life(-1, 0, 5, WEFT_END_PENDING);
	assert_int_equal(label_count(-1), 0);
	assert_life(1, 0, 1 + 1000, WEFT_END_PENDING);
	assert_odd(WEFT_ANOMALY_SYSTEM_MISUSED, 4);
}

static void extreme_ids_times_and_counters_are_kept(void **state)
{
	const int64_t epoch = 1700000000123456789;
	mw_create(&w, epoch, -1, INT64_MIN, WEFT_KIND_TASK);
	mw_create(&w, epoch + 1, INT64_MIN, INT64_MAX, WEFT_KIND_TASK);
	mw_text(&w, epoch + 238, WEFT_OP_COUNTER, INT64_MAX, INT64_MAX, "c");
	mw_text(&w, epoch + 239, WEFT_OP_COUNTER_ADD, INT64_MAX, 1, "c");
	mw_text(&w, epoch + 240, WEFT_OP_COUNTER, INT64_MAX, -1, "c");
	mw_op(&w, epoch + 241, WEFT_OP_PAUSE, INT64_MAX);
	mw_op(&w, epoch + 242, WEFT_OP_PAUSE, -1);
	mw_op(&w, INT64_MAX, WEFT_OP_RUN, -2);
	build();
	assert_true(m->start_ns == epoch);
	assert_life(INT64_MIN, 0, 1 + 1000, WEFT_END_PENDING);
	assert_life(INT64_MAX, 1, 240 + 1000, WEFT_END_PENDING);
	assert_int_equal(m->counter_count, 1);
	assert_int_equal(m->counters[0].count, 3);
	assert_true(m->counters[0].samples[0].value == INT64_MAX && m->counters[0].samples[1].value == INT64_MIN);
	assert_true(m->counters[0].samples[1].delta == 1 && m->counters[0].samples[2].value == -1);
	assert_true(m->counters[0].min == INT64_MIN && m->counters[0].max == INT64_MAX);
	assert_true(m->pauses[0].start_ns == 0 && m->pauses[0].end_ns == 241);
	assert_odd(WEFT_ANOMALY_PAUSE_UNMATCHED, 1);
}

static void counter_events_become_labels_and_samples(void **state)
{
	mw_text(&w, 0, WEFT_OP_COUNTER, 1, 5, "buf#2");
	mw_text(&w, 1, WEFT_OP_COUNTER_ADD, 1, -7, "buf#2");
	mw_text(&w, 2, WEFT_OP_COUNTER, 2, 40, "buf#1");
	mw_text(&w, 3, WEFT_OP_COUNTER, -1, 3, "a");
	mw_text(&w, 4, WEFT_OP_COUNTER, -1, INT64_MAX - 3, "big");
	mw_label(&w, 5, 1, "buf#1");
	build();
	assert_int_equal(m->counter_count, 4);
	static const char *const counter_names[] = {"a", "big", "buf#1", "buf#2"};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(m->counters[i].name.len, strlen(counter_names[i]));
		assert_memory_equal(m->counters[i].name.ptr, counter_names[i], m->counters[i].name.len);
	}
	assert_true(m->counters[0].scale_min == 0 && m->counters[0].scale_max == 3);
	assert_true(m->counters[1].scale_max == INT64_MAX - 3);
	for (int i = 2; i < 4; i++)
		assert_true(m->counters[i].scale_min == -2 && m->counters[i].scale_max == 40);
	assert_true(m->counters[3].min == -2 && m->counters[3].max == 5);
	assert_int_equal(label_count(1), 3);
	assert_label(1, 0, 0, "buf#2+5");
	assert_label(1, 1, 1, "buf#2-7");
	assert_label(1, 2, 5, "buf#1");
	assert_label(2, 0, 2, "buf#1+40");
	assert_label(-1, 0, 3, "a+3");
}

static void promise_marked_should_resolve_fails_if_pending_at_the_end(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_label(&w, 1, 1, "__should_resolve");
	mw_label(&w, 2, 1, "__should_resolve");
	mw_create(&w, 3, -1, 2, WEFT_KIND_TASK);
	mw_label(&w, 4, 2, "__should_resolve");
	mw_link(&w, 5, WEFT_OP_RESOLVE, -1, 2);
	mw_create(&w, 6, -1, 3, WEFT_KIND_TASK);
	mw_label(&w, 7, 3, "__should_resolve");
	mw_link(&w, 8, WEFT_OP_BECOME, 3, 4);
	mw_op(&w, 50, WEFT_OP_RUN, -1);
	build();
	assert_life(1, 0, 50, WEFT_END_FAILED);
	assert_int_equal(get(1)->flags, WEFT_PROMISE_CREATION_DRAWN | WEFT_PROMISE_SHOULD_RESOLVE | WEFT_PROMISE_NEVER_RESOLVED);
	assert_int_equal(label_count(1), 1);
	assert_label(1, 0, 50, "should resolve, but never did");
	assert_life(2, 3, 5, WEFT_END_RESOLVED);
	assert_life(3, 6, 8, WEFT_END_BECAME);
	assert_life(4, 0, 50, WEFT_END_FAILED);
	assert_true(get(4)->flags & WEFT_PROMISE_NEVER_RESOLVED);
}

static void error_text_is_listed_after_all_labels_of_the_promise(void **state)
{
	mw_label(&w, 0, 1, "a");
	mw_text(&w, 1, WEFT_OP_FAIL, -1, 1, "");
	mw_label(&w, 2, 1, "after the end");
	build();
	assert_int_equal(label_count(1), 3);
	assert_label(1, 1, 2, "after the end");
	assert_label(1, 2, 1, "");
}

/* Records that 1 creates 2, a bind on 3, and that 3 is resolved; the caller then records the read of 3 by 2. */
static void bind(void)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 10, 1, 2, WEFT_KIND_BIND);
	mw_create(&w, 20, 1, 3, WEFT_KIND_WAIT);
	mw_link(&w, 30, WEFT_OP_RESOLVE, -1, 3);
}

static void assert_moved(bool moved)
{
	build();
	assert_true(get(2)->start_ns == (moved ? 40 : 10));
	assert_int_equal(id_of(get(2)->parent), moved ? 3 : 1);
	assert_int_equal(id_of(get(2)->created_by), 1);
	assert_true((get(2)->flags & WEFT_PROMISE_CREATION_DRAWN) == (moved ? 0 : WEFT_PROMISE_CREATION_DRAWN));
}

static void bind_starts_at_its_first_read(void **state)
{
	bind();
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	mw_label(&w, 40, 2, "at the same time");
	assert_moved(true);
}

static void bind_awaiting_its_input_starts_at_its_read(void **state)
{
	bind();
	mw_link(&w, 35, WEFT_OP_AWAIT, 2, 3);
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	assert_moved(true);
}

static void bind_labelled_before_its_read_keeps_its_start(void **state)
{
	bind();
	mw_label(&w, 35, 2, "name");
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	assert_moved(false);
}

static void bind_awaited_before_its_read_keeps_its_start(void **state)
{
	bind();
	mw_link(&w, 35, WEFT_OP_AWAIT, 1, 2);
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	assert_moved(false);
}

static void bind_with_an_event_before_its_read_keeps_its_start(void **state)
{
	bind();
	mw_link(&w, 35, WEFT_OP_RESOLVE, 2, 7);
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	assert_moved(false);
}

static void bind_merged_with_its_creator_keeps_its_start(void **state)
{
	bind();
	mw_link(&w, 35, WEFT_OP_BECOME, 1, 2);
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	assert_moved(false);
}

static void bind_keeps_its_start_with_the_keep_binds_option(void **state)
{
	bind();
	mw_link(&w, 40, WEFT_OP_READ, 2, 3);
	build_with(true);
	assert_true(get(2)->start_ns == 10);
	assert_int_equal(id_of(get(2)->parent), 1);
}

/* 2 would be a child of 3, which is a child of 2. */
static void bind_keeps_its_parent_if_its_input_is_its_descendant(void **state)
{
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 10, 1, 2, WEFT_KIND_BIND);
	mw_create(&w, 20, 2, 3, WEFT_KIND_BIND);
	mw_create(&w, 30, 3, 4, WEFT_KIND_TRY);
	mw_link(&w, 40, WEFT_OP_READ, 2, 4);
	mw_link(&w, 50, WEFT_OP_READ, 3, 4);
	mw_link(&w, 60, WEFT_OP_READ, 4, 4);
	build();
	assert_int_equal(id_of(get(2)->parent), 1);
	assert_int_equal(id_of(get(3)->parent), 2);
	assert_int_equal(id_of(get(4)->parent), 3);
	assert_true(get(2)->start_ns == 10 && get(3)->start_ns == 20 && get(4)->start_ns == 30);
}

static void pauses_are_sorted(void **state)
{
	for (int i = 0; i < 100; i++)
		mw_op(&w, 1000 + i, WEFT_OP_PAUSE, i * 7 % 100);
	build();
	assert_int_equal(m->pause_count, 100);
	for (size_t i = 1; i < 100; i++)
		assert_true(m->pauses[i - 1].start_ns <= m->pauses[i].start_ns);
}

static void trace_without_events_is_refused(void **state)
{
	struct weft_error err;
	mw_end(&w, 10);
	assert_int_equal(weft_trace_open_memory(&trace, w.bytes, w.size, "test", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&m, trace, NULL, &err), WEFT_EFORMAT);
	assert_string_equal(err.what, "no events in the trace");
	assert_null(m);
	weft_model_destroy(NULL);
}

static void every_anomaly_has_a_text(void **state)
{
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		assert_true(strlen(weft_anomaly_text((enum weft_anomaly)i)) > 10);
	assert_string_equal(weft_anomaly_text(WEFT_ANOMALY_COUNT), "unknown");
}

static bool until_100k(void *ctx, uint64_t events)
{
	uint64_t *told = ctx;
	assert_true(events > *told);
	*told = events;
	return events < 100000;
}

static void build_can_be_cancelled(void **state)
{
	enum { EVENTS = 3000, COPIES = 60 };
	struct weft_error err = {0};
	uint64_t told = 0;
	struct weft_model_options options = {.go_on = until_100k, .ctx = &told};
	for (int i = 0; i < EVENTS; i++)
		mw_op(&w, i, WEFT_OP_RUN, 1);
	mw_end(&w, 0);
	unsigned char *bytes = malloc(w.size * COPIES);
	assert_non_null(bytes);
	for (size_t i = 0; i < COPIES; i++)
		memcpy(bytes + i * w.size, w.bytes, w.size);
	assert_int_equal(weft_trace_open_memory(&trace, bytes, w.size * COPIES, "test", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&m, trace, &options, &err), WEFT_ECANCELLED);
	assert_null(m);
	assert_true(told >= 100000 && told < EVENTS * COPIES);
	weft_trace_close(trace);
	trace = NULL;
	free(bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
	    TEST(promise_lives_from_creation_to_end),
	    TEST(promise_name_is_its_last_label_or_its_id),
	    TEST(runs_switch_between_promises),
	    TEST(read_right_after_an_await_replaces_the_await),
	    TEST(events_of_a_merged_promise_apply_to_its_last_target),
	    TEST(promises_becoming_each_other_are_no_anomaly),
	    TEST(promise_becoming_itself_is_an_anomaly),
	    TEST(only_the_first_end_of_a_promise_counts),
	    TEST(second_creation_of_an_id_is_a_new_promise),
	    TEST(promise_used_before_its_creation_is_an_anomaly),
	    TEST(system_promise_has_neither_start_nor_end),
	    TEST(extreme_ids_times_and_counters_are_kept),
	    TEST(counter_events_become_labels_and_samples),
	    TEST(promise_marked_should_resolve_fails_if_pending_at_the_end),
	    TEST(error_text_is_listed_after_all_labels_of_the_promise),
	    TEST(bind_starts_at_its_first_read),
	    TEST(bind_awaiting_its_input_starts_at_its_read),
	    TEST(bind_labelled_before_its_read_keeps_its_start),
	    TEST(bind_awaited_before_its_read_keeps_its_start),
	    TEST(bind_with_an_event_before_its_read_keeps_its_start),
	    TEST(bind_merged_with_its_creator_keeps_its_start),
	    TEST(bind_keeps_its_start_with_the_keep_binds_option),
	    TEST(bind_keeps_its_parent_if_its_input_is_its_descendant),
	    TEST(pauses_are_sorted),
	    TEST(trace_without_events_is_refused),
	    TEST(build_can_be_cancelled),
	    TEST(every_anomaly_has_a_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
