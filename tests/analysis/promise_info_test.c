/* promise_info_test.c: the information about a promise agrees with its links, and weft_walk() leads from a promise to the right
 * related promise. SPDX-License-Identifier: ISC */
#include "analysis/queries/promise_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "analysis/index/account.h"
#include "analysis/queries/walk.h"
#include "draw/random_trace.h"

static struct weft_trace *trace;
static struct weft_model *model;
static struct weft_promise_info *facts;

static void open_bytes(const void *bytes, size_t size)
{
	assert_int_equal(weft_trace_open_memory(&trace, bytes, size, "test", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
	assert_int_equal(weft_promise_info_create(&facts, model, NULL), WEFT_OK);
}

static void finish(void)
{
	weft_promise_info_destroy(facts);
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

/* A failing run of an ARP program: promise 3 signals condition 2 before promise 4, which should be woken, waits for it. */
static void open_arp(void)
{
	static struct mirage_writer w;
	w.size = 0;
	mw_packet(&w, 0);
	mw_create(&w, 0, -1, 1, WEFT_KIND_TASK);
	mw_create(&w, 100 * MS, -1, 2, WEFT_KIND_CONDITION);
	mw_create(&w, 200 * MS, 1, 3, WEFT_KIND_TASK);
	mw_create(&w, 300 * MS, 3, 4, WEFT_KIND_TASK);
	mw_link(&w, 400 * MS, WEFT_OP_SIGNAL, 2, 3); /* mirage stores the receiver first */
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

static struct weft_related_promise only(uint32_t promise, enum weft_relation relation)
{
	struct weft_related_promise fact[2];
	assert_int_equal(weft_promise_info_count(facts, promise, relation), 1);
	assert_int_equal(weft_promise_info_list(facts, promise, relation, 0, fact, 2), 1);
	assert_int_equal(weft_promise_info_list(facts, promise, relation, 1, fact + 1, 1), 0);
	return fact[0];
}

static void test_links_of_the_arp_trace_are_listed(void **state)
{
	(void)state;
	open_arp();
	/* The chain of waits leads from promise 3, which never ends, to the condition. */
	assert_int_equal(weft_walk(facts, with_id(3), WEFT_WALK_AWAITED), with_id(5));
	assert_int_equal(weft_walk(facts, with_id(5), WEFT_WALK_AWAITED), with_id(4));
	assert_int_equal(weft_walk(facts, with_id(4), WEFT_WALK_AWAITED), with_id(2));
	assert_int_equal(weft_walk(facts, with_id(2), WEFT_WALK_AWAITED), WEFT_NONE);
	assert_int_equal(weft_walk(facts, with_id(7), WEFT_WALK_AWAITED), with_id(4));
	assert_int_equal(weft_walk(facts, with_id(8), WEFT_WALK_AWAITED),
	    with_id(2)); /* promise 8 awaits condition 2, because the condition created it */
	struct weft_related_promise fact = only(with_id(2), WEFT_RELATION_SIGNALLED_BY);
	assert_true(fact.promise == with_id(3) && fact.time_ns == 400000000);
	fact = only(with_id(2), WEFT_RELATION_AWAITED_BY);
	assert_true(fact.promise == with_id(4) && fact.time_ns == 500000000 && fact.is_open);
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_WALK_RESOLVER), with_id(3));
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_WALK_CREATOR), with_id(1));
	assert_int_equal(weft_walk(facts, with_id(6), WEFT_WALK_WOKEN), with_id(1));
	assert_int_equal(weft_walk(facts, with_id(1), WEFT_WALK_CREATOR), WEFT_NONE); /* the system created it */
	assert_int_equal(weft_walk(facts, with_id(3), WEFT_WALK_WOKEN), with_id(2));
	fact = only(with_id(6), WEFT_RELATION_READ_BY);
	assert_true(fact.promise == with_id(1) && !fact.is_open);
	assert_int_equal(only(with_id(4), WEFT_RELATION_CAME_FROM).promise, with_id(7));
	assert_int_equal(only(with_id(7), WEFT_RELATION_BECAME).promise, with_id(4));
	assert_int_equal(only(with_id(3), WEFT_RELATION_CREATED_BY).promise, with_id(1));
	assert_int_equal(weft_promise_info_count(facts, with_id(3), WEFT_RELATION_CREATED), 2);
	assert_true(weft_promise_info_end_ns(facts, with_id(6)) == 1100000000);
	assert_true(weft_promise_info_end_ns(facts, with_id(7)) == INT64_MAX);
	assert_true(weft_promise_info_times(facts, with_id(6)).waiting_ns == 200000000);
	finish();
}

/* Lists the related promises of one by reading all links, without the index. */
static size_t brute_force(uint32_t promise, enum weft_relation relation, struct weft_related_promise *out)
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

static void test_relations_of_random_traces_match_the_links(void **state)
{
	(void)state;
	static struct mirage_writer w;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		write_random_trace(&w, seed);
		open_bytes(w.bytes, w.size);
		size_t most = model->link_count + model->promise_count;
		struct weft_related_promise *wanted = calloc(most, sizeof *wanted), *got = calloc(most, sizeof *got);
		assert_true(wanted && got);
		for (uint32_t p = 0; p < model->promise_count; p++) {
			for (int r = 0; r < WEFT_RELATION_COUNT; r++) {
				if (r == WEFT_RELATION_CREATED_BY || r == WEFT_RELATION_BECAME)
					continue;
				size_t count = brute_force(p, (enum weft_relation)r, wanted);
				assert_int_equal(weft_promise_info_count(facts, p, (enum weft_relation)r), count);
				assert_int_equal(weft_promise_info_list(facts, p, (enum weft_relation)r, 0, got, most), count);
				for (size_t i = 0; i < count; i++)
					assert_true(got[i].promise == wanted[i].promise &&
						    (r == WEFT_RELATION_CREATED || r == WEFT_RELATION_CAME_FROM ||
							got[i].time_ns == wanted[i].time_ns));
			}
			struct weft_state_times t = weft_promise_info_times(facts, p);
			assert_true(t.waiting_ns >= 0 && t.ready_ns >= 0 && t.running_ns >= 0);
			assert_int_equal(t.waiting_ns + t.ready_ns + t.running_ns,
			    weft_account_end_ns(model, p) - model->promises[p].start_ns);
			/* weft_walk() leads to another promise or to none. */
			for (int s = 0; s < WEFT_WALK_STEP_COUNT; s++) {
				uint32_t to = weft_walk(facts, p, (enum weft_walk_step)s);
				assert_true(to == WEFT_NONE || (to != p && to != WEFT_SYSTEM && to < model->promise_count));
			}
		}
		free(wanted);
		free(got);
		finish();
	}
}

static void promise_info_survives_any_failed_allocation(void **state)
{
	(void)state;
	open_arp();
	weft_promise_info_destroy(facts);
	long n = 0;
	for (int status = WEFT_ENOMEM; status != WEFT_OK; n++) {
		facts = NULL;
		allocations_left = n;
		status = weft_promise_info_create(&facts, model, NULL);
		allocations_left = -1;
		assert_true(status == WEFT_OK || (status == WEFT_ENOMEM && !facts));
	}
	assert_true(n > 8);
	finish();
	weft_promise_info_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_links_of_the_arp_trace_are_listed),
	    cmocka_unit_test(test_relations_of_random_traces_match_the_links),
	    cmocka_unit_test(promise_info_survives_any_failed_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
