/* facts_test.c: the facts of a promise agree with its links, and steps from promise to promise lead where they should.
 * SPDX-License-Identifier: ISC */
#include "analysis/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "analysis/walk.h"
#include "draw/random_trace.h"

static struct weft_trace *trace;
static struct weft_model *model;
static struct weft_facts *facts;

static void open_bytes(const void *bytes, size_t size)
{
	assert_int_equal(weft_trace_open_memory(&trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_facts_create(&facts, model, NULL), WEFT_OK);
}

static void finish(void)
{
	weft_facts_destroy(facts);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

static uint32_t with_id(int64_t id)
{
	uint32_t promise = weft_model_find(model, id);
	assert_int_not_equal(promise, WEFT_NONE);
	return promise;
}

#define MS 1000000

/* ARP as it goes wrong: who asks signals a condition before anyone waits for it. */
static void open_arp(void)
{
	static struct mirage_writer w;
	w.size = 0;
	mw_packet(&w, 0);
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 100 * MS, -1, 2, WEFT_KIND_CONDITION);
	mw_create(&w, 200 * MS, 1, 3, WEFT_KIND_TASK);
	mw_create(&w, 300 * MS, 3, 4, WEFT_KIND_TASK);
	mw_link(&w, 400 * MS, WEFT_OP_SIGNAL, 2, 3); /* in the file the receiver comes first */
	mw_link(&w, 500 * MS, WEFT_OP_AWAIT, 4, 2);
	mw_create(&w, 600 * MS, 3, 5, WEFT_KIND_BIND);
	mw_link(&w, 700 * MS, WEFT_OP_AWAIT, 5, 4);
	mw_link(&w, 800 * MS, WEFT_OP_AWAIT, 3, 5);
	mw_create(&w, 900 * MS, 1, 6, WEFT_KIND_WAIT);
	mw_link(&w, 1000 * MS, WEFT_OP_AWAIT, 1, 6);
	mw_link(&w, 1100 * MS, WEFT_OP_RESOLVE, 3, 6);
	mw_link(&w, 1200 * MS, WEFT_OP_READ, 1, 6);
	mw_create(&w, 1300 * MS, 1, 7, WEFT_KIND_WAIT);
	mw_link(&w, 1400 * MS, WEFT_OP_BECOME, 7, 4);
	mw_create(&w, 1500 * MS, 2, 8, WEFT_KIND_TASK);
	mw_end(&w, 0);
	open_bytes(w.bytes, w.size);
}

static struct weft_fact only(uint32_t promise, enum weft_relation relation)
{
	struct weft_fact fact[2];
	assert_int_equal(weft_facts_count(facts, promise, relation), 1);
	assert_int_equal(weft_facts_list(facts, promise, relation, 0, fact, 2), 1);
	assert_int_equal(weft_facts_list(facts, promise, relation, 1, fact + 1, 1), 0);
	return fact[0];
}

static void test_arp(void **state)
{
	(void)state;
	open_arp();
	/* From the bind that never returns, link by link to the condition. */
	assert_int_equal(weft_walk(facts, with_id(3), WEFT_STEP_AWAITED), with_id(5));
	assert_int_equal(weft_walk(facts, with_id(5), WEFT_STEP_AWAITED), with_id(4));
	assert_int_equal(weft_walk(facts, with_id(4), WEFT_STEP_AWAITED), with_id(2));
	assert_int_equal(weft_walk(facts, with_id(2), WEFT_STEP_AWAITED), WEFT_NONE);
	assert_int_equal(weft_walk(facts, with_id(7), WEFT_STEP_AWAITED), with_id(4));
	assert_int_equal(weft_walk(facts, with_id(8), WEFT_STEP_AWAITED), with_id(2)); /* a wait that the condition made */
	struct weft_fact fact = only(with_id(2), WEFT_RELATION_SIGNALLED_BY);
	assert_true(fact.promise == with_id(3) && fact.time_ns == 400000000);
	fact = only(with_id(2), WEFT_RELATION_AWAITED_BY);
	assert_true(fact.promise == with_id(4) && fact.time_ns == 500000000 && fact.is_open);
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_STEP_RESOLVER), with_id(3));
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_STEP_CREATOR), with_id(1));
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_STEP_WOKEN), with_id(1));
	assert_int_equal(weft_walk(facts, with_id(1), WEFT_STEP_CREATOR), WEFT_NONE); /* the system */
	assert_int_equal(weft_walk(facts, with_id(3), WEFT_STEP_WOKEN), with_id(2));
	fact = only(with_id(6), WEFT_RELATION_READ_BY);
	assert_true(fact.promise == with_id(1) && !fact.is_open);
	assert_int_equal(only(with_id(4), WEFT_RELATION_CAME_FROM).promise, with_id(7));
	assert_int_equal(only(with_id(7), WEFT_RELATION_BECAME).promise, with_id(4));
	assert_int_equal(only(with_id(3), WEFT_RELATION_CREATED_BY).promise, with_id(1));
	assert_int_equal(weft_facts_count(facts, with_id(3), WEFT_RELATION_CREATED), 2);
	assert_true(weft_facts_end(facts, with_id(6)) == 1100000000);
	assert_true(weft_facts_end(facts, with_id(7)) == INT64_MAX);
	assert_true(weft_facts_times(facts, with_id(6)).waiting_ns == 200000000);
	finish();
}

/* What the relation is, said once more without any index. */
static size_t brute_force(uint32_t promise, enum weft_relation relation, struct weft_fact *out)
{
	static const struct {
		int kind;
		bool by_to;
	} links[WEFT_RELATION_COUNT] = {[WEFT_RELATION_AWAITS] = {WEFT_LINK_AWAIT, false},
	    [WEFT_RELATION_READ] = {WEFT_LINK_READ, false},
	    [WEFT_RELATION_SIGNALLED_BY] = {WEFT_LINK_SIGNAL, true},
	    [WEFT_RELATION_RESOLVED_BY] = {WEFT_LINK_RESOLVE, true},
	    [WEFT_RELATION_AWAITED_BY] = {WEFT_LINK_AWAIT, true},
	    [WEFT_RELATION_READ_BY] = {WEFT_LINK_READ, true},
	    [WEFT_RELATION_SIGNALLED] = {WEFT_LINK_SIGNAL, false},
	    [WEFT_RELATION_RESOLVED] = {WEFT_LINK_RESOLVE, false}};
	size_t count = 0;
	if (relation == WEFT_RELATION_CREATED || relation == WEFT_RELATION_CAME_FROM) {
		for (uint32_t p = 0; p < model->promise_count; p++)
			if ((relation == WEFT_RELATION_CREATED ? model->promises[p].created_by : model->promises[p].became) ==
			    promise)
				out[count++].promise = p;
		return count;
	}
	for (size_t l = 0; l < model->link_count; l++) {
		const struct weft_link *link = &model->links[l];
		if (link->kind == links[relation].kind && (links[relation].by_to ? link->to : link->from) == promise) {
			out[count].time_ns = link->time_ns;
			out[count++].promise = links[relation].by_to ? link->from : link->to;
		}
	}
	return count;
}

static void test_random(void **state)
{
	(void)state;
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		write_random_trace(&w, seed);
		open_bytes(w.bytes, w.size);
		size_t most = model->link_count + model->promise_count;
		struct weft_fact *wanted = calloc(most, sizeof *wanted), *got = calloc(most, sizeof *got);
		assert_true(wanted && got);
		for (uint32_t p = 0; p < model->promise_count; p++) {
			for (int r = 0; r < WEFT_RELATION_COUNT; r++) {
				if (r == WEFT_RELATION_CREATED_BY || r == WEFT_RELATION_BECAME)
					continue;
				size_t count = brute_force(p, (enum weft_relation)r, wanted);
				assert_int_equal(weft_facts_count(facts, p, (enum weft_relation)r), count);
				assert_int_equal(weft_facts_list(facts, p, (enum weft_relation)r, 0, got, most), count);
				for (size_t i = 0; i < count; i++)
					assert_true(got[i].promise == wanted[i].promise &&
						    (r == WEFT_RELATION_CREATED || r == WEFT_RELATION_CAME_FROM ||
							got[i].time_ns == wanted[i].time_ns));
			}
			struct weft_times t = weft_facts_times(facts, p);
			const struct weft_promise *promise = &model->promises[p];
			assert_true(t.waiting_ns >= 0 && t.ready_ns >= 0 && t.running_ns >= 0);
			if (p != WEFT_SYSTEM && promise->end_ns >= promise->start_ns)
				assert_true(t.waiting_ns + t.ready_ns + t.running_ns == promise->end_ns - promise->start_ns);
			/* Steps lead somewhere else, or nowhere. */
			for (int s = 0; s < WEFT_STEP_COUNT; s++) {
				uint32_t to = weft_walk(facts, p, (enum weft_step)s);
				assert_true(to == WEFT_NONE || (to != p && to != WEFT_SYSTEM && to < model->promise_count));
			}
		}
		free(wanted);
		free(got);
		finish();
	}
}

static void test_memory(void **state)
{
	(void)state;
	open_arp();
	weft_facts_destroy(facts);
	long n = 0;
	for (int status = WEFT_ENOMEM; status != WEFT_OK; n++) {
		facts = NULL;
		allocations_left = n;
		status = weft_facts_create(&facts, model, NULL);
		allocations_left = -1;
		assert_true(status == WEFT_OK || (status == WEFT_ENOMEM && !facts));
	}
	assert_true(n > 8);
	finish();
	weft_facts_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_arp),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
