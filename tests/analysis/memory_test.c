/* memory_test.c: whichever allocation fails, an analysis reports it and frees what it had allocated.  SPDX-License-Identifier:
 * ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocations.h"
#include "analysis/findings/explain.h"
#include "analysis/index/path.h"
#include "analysis/queries/check.h"
#include "analysis/queries/diff.h"
#include "analysis/queries/waits.h"

/* A mirage-profile trace with a cycle, a hang by a lost wake-up, a failure, a stall with a victim, and a leak. */
static unsigned char bytes[1 << 16];
static size_t used;
static uint64_t now_ns = 1000;

static void put(uint64_t value, int count)
{
	for (int i = 0; i < count; i++)
		bytes[used++] = (unsigned char)(value >> (8 * i));
}

static void event(int op, uint64_t a, uint64_t b)
{
	now_ns += 1000;
	put(now_ns, 8);
	put((uint64_t)op, 1);
	put(a, 8);
	if (op != 7 && op != 5)
		put(b, 8);
}

static void create(uint64_t by, uint64_t p, int kind)
{
	event(0, by, p);
	put((uint64_t)kind, 1);
}

static void label(uint64_t p, const char *text)
{
	event(5, p, 0);
	memcpy(bytes + used, text, strlen(text) + 1);
	used += strlen(text) + 1;
}

static struct weft_trace *trace;
static struct weft_model *model;

static int setup(void **state)
{
	static const unsigned char header[] = {0xc1, 0x1f, 0xfc, 0xc1, 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97,
	    0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c};
	const uint64_t system = (uint64_t)-1;
	used = 30;
	create(system, 1, 8);
	event(9, 1, system); /* unread */
	event(7, system, 0);
	event(9, 1, system);
	create(1, 2, 1);
	event(7, system, 0);
	create(system, 3, 2);
	event(10, 3, 2);
	label(3, "__should_resolve");
	create(system, 4, 2);
	create(system, 5, 2);
	event(10, 4, 5);
	event(10, 5, 4);
	create(system, 6, 1);
	event(3, system, 6);
	memcpy(bytes + used, "oh", 3);
	used += 3;
	create(system, 7, 1);
	create(system, 8, 2);
	label(8, "reader");
	event(10, 8, 7);
	create(system, 9, 2);
	label(9, "hog");
	event(2, system, 7);
	event(7, 9, 0);
	now_ns += 50000000;
	event(1, 8, 7);
	event(2, 8, 8);
	event(7, system, 0);
	for (uint64_t i = 10; i < 50; i++) {
		now_ns += 10000000;
		create(system, i, 1);
		label(i, "leak");
	}
	size_t content = used;
	memcpy(bytes, header, sizeof header);
	used = 20;
	put(content * 8, 4);
	put(0, 2);
	put(content * 8, 4);
	struct weft_error err;
	assert_int_equal(weft_trace_open_memory(&trace, bytes, content, "memory", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = true}, &err), WEFT_OK);
	return 0;
}

static int teardown(void **state)
{
	weft_model_destroy(model);
	weft_trace_close(trace);
	return 0;
}

/* Fails allocation 0, 1, 2, ... of CALL until it succeeds; `out` must stay NULL until then. */
#define FAIL_ALL(out, least, CALL)                                                                                               \
	do {                                                                                                                     \
		long n = 0;                                                                                                      \
		for (;; n++) {                                                                                                   \
			struct weft_error err = {0};                                                                             \
			allocations_left = n;                                                                                    \
			int status = CALL;                                                                                       \
			allocations_left = -1;                                                                                   \
			if (status == WEFT_OK)                                                                                   \
				break;                                                                                           \
			assert_int_equal(status, WEFT_ENOMEM);                                                                   \
			assert_int_equal(err.status, WEFT_ENOMEM);                                                               \
			assert_null(out);                                                                                        \
		}                                                                                                                \
		assert_true(n >= (least));                                                                                       \
	} while (0)

/* With any single failing allocation, weft_explain finds the same as with all memory, or returns an error. */
static void explain_with_one_failing_allocation(const struct weft_findings *whole)
{
	bool failed = true;
	only_one_fails = true;
	for (long n = 0; failed; n++) {
		struct weft_findings *findings = NULL;
		allocations_left = n;
		int status = weft_explain(&findings, model, NULL, NULL);
		failed = allocations_left < 0;
		allocations_left = -1;
		if (status != WEFT_OK) {
			assert_int_equal(status, WEFT_ENOMEM);
			continue;
		}
		assert_int_equal(findings->count, whole->count);
		for (size_t i = 0; i < whole->count; i++)
			assert_string_equal(findings->findings[i].title, whole->findings[i].title);
		weft_findings_destroy(findings);
	}
	only_one_fails = false;
}

static void explain_survives_any_failed_allocation(void **state)
{
	struct weft_findings *findings = NULL;
	FAIL_ALL(findings, 20, weft_explain(&findings, model, NULL, &err));
	bool seen[WEFT_FINDING_KINDS] = {0};
	for (size_t i = 0; i < findings->count; i++) {
		seen[findings->findings[i].kind] = true;
		assert_true(findings->findings[i].title[0] != '\0');
		assert_true(i == 0 || findings->findings[i - 1].kind <= findings->findings[i].kind);
	}
	assert_true(seen[WEFT_FINDING_CYCLE] && seen[WEFT_FINDING_HANG] && seen[WEFT_FINDING_FAILURE] &&
		    seen[WEFT_FINDING_STALL] && seen[WEFT_FINDING_LEAK]);
	explain_with_one_failing_allocation(findings);
	weft_findings_destroy(findings);
	weft_findings_destroy(NULL);
	for (uint32_t p = 0; p < model->promise_count; p++) {
		struct weft_findings *why = NULL;
		FAIL_ALL(why, 5, weft_explain_promise(&why, model, p, NULL, &err));
		assert_int_equal(why->count, 1);
		weft_findings_destroy(why);
	}
	struct weft_findings *none = NULL;
	assert_int_equal(weft_explain_promise(&none, model, 1000, NULL, NULL), WEFT_ENOTFOUND);
}

static void analysis_of_waits_and_paths_survives_any_failed_allocation(void **state)
{
	struct weft_waits *waits = NULL;
	FAIL_ALL(waits, 5, weft_waits_create(&waits, model, model->end_ns, &err));
	assert_int_equal(waits->cycles, 1);
	weft_waits_destroy(waits);
	struct weft_path *path = NULL;
	FAIL_ALL(path, 5, weft_path_create(&path, model, weft_model_find(model, 8), &err));
	weft_path_destroy(path);
	struct weft_blames *blames = NULL;
	FAIL_ALL(blames, 5, weft_blames_create(&blames, model, (struct weft_str){"reader", 6}, &err));
	weft_blames_destroy(blames);
	struct weft_diff *diff = NULL;
	FAIL_ALL(diff, 10, weft_diff_create(&diff, model, model, &err));
	assert_int_equal(diff->count, 0);
	weft_diff_destroy(diff);
	struct weft_rule rule;
	struct weft_rule_result checked = {.value = -1};
	assert_int_equal(weft_rule_parse(&rule, "pending(leak)<10", NULL), WEFT_OK);
	const void *untouched = NULL;
	FAIL_ALL(untouched, 2, weft_rule_check(&checked, model, &rule, &err));
	assert_int_equal(checked.outcome, WEFT_RULE_VIOLATED);
	assert_int_equal(checked.value, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(explain_survives_any_failed_allocation),
	    cmocka_unit_test(analysis_of_waits_and_paths_survives_any_failed_allocation),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
