/* findings.h: helpers that record a program with its own clock and explain the trace, for the tests of findings.
 * SPDX-License-Identifier: ISC */
#ifndef TESTS_ANALYSIS_FINDINGS_H
#define TESTS_ANALYSIS_FINDINGS_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "analysis/findings/explain.h"
#include "analysis/queries/check.h"
#include "analysis/queries/waits.h"

#define MS 1000000u

static uint64_t buffer[(1u << 20) / 8];
static uint64_t now_ns, tick_ns = 100;

static inline uint64_t read_clock(void)
{
	return now_ns += tick_ns;
}

static inline void start_recording(void)
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

static inline void forget(void)
{
	weft_findings_destroy(findings);
	weft_model_destroy(model);
	weft_trace_close(trace);
	findings = NULL;
	model = NULL;
	trace = NULL;
}

/* Fails unless each long stall that weft check reports is covered by a finding of weft explain. */
static inline void assert_stall_is_told(void)
{
	enum { TOLD_NS = 100000000 };
	struct weft_rule rule;
	struct weft_rule_result result;
	uint32_t stalled = 0;
	bool has_loop = false;
	assert_int_equal(weft_rule_parse(&rule, "stall<100ms", NULL), WEFT_OK);
	assert_int_equal(weft_rule_check(&result, model, &rule, NULL), WEFT_OK);
	for (uint32_t p = 1; p < model->promise_count; p++)
		has_loop |= weft_kind_has(model->promises[p].kind, WEFT_TRAIT_LOOP);
	for (size_t i = 0; i < findings->count; i++)
		stalled += findings->findings[i].end_ns - findings->findings[i].start_ns >= TOLD_NS;
	if (has_loop && result.value >= TOLD_NS && !model->trace->gap_count && stalled == 0)
		fail_msg("check: stall %lld ns (%s), explain: nothing", (long long)result.value, result.why);
}

/* Stops the recording if `ends` is true, and reads its findings. */
static inline void explain(bool ends)
{
	struct weft_error err;
	static uint64_t copy[sizeof buffer / sizeof *buffer];
	memcpy(copy, buffer, sizeof buffer);
	weft_stop();
	assert_int_equal(weft_trace_open_memory(&trace, ends ? buffer : copy, sizeof buffer, "test", &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = true}, &err), WEFT_OK);
	assert_int_equal(weft_explain(&findings, model, NULL, &err), WEFT_OK);
	assert_stall_is_told();
	/* Each finding has a title and an advice. */
	for (size_t i = 0; i < findings->count; i++)
		assert_true(findings->findings[i].title && *findings->findings[i].title && findings->findings[i].next &&
			    *findings->findings[i].next);
}

/* Returns the only finding, which must have that kind and, unless `where` is 0, be about that promise. */
static inline const struct weft_finding *only(enum weft_finding_kind kind, weft_id where)
{
	assert_int_equal(findings->count, 1);
	const struct weft_finding *finding = &findings->findings[0];
	assert_string_equal(weft_finding_name(finding->kind), weft_finding_name(kind));
	if (where)
		assert_int_equal(model->promises[finding->promise].id, where);
	return finding;
}

static inline void sleep_for(uint64_t ns)
{
	weft_idle(WEFT_IDLE_WAIT);
	now_ns += ns;
}

/* Another OS thread, which runs the functions that on_other_thread() hands to it, while the first thread waits. */
static struct {
	pthread_t thread;
	sem_t todo, done;
	void (*deed)(void);
} other_thread;

static inline void *obey(void *unused)
{
	for (;;) {
		sem_wait(&other_thread.todo);
		if (!other_thread.deed)
			return NULL;
		other_thread.deed();
		sem_post(&other_thread.done);
	}
}

static inline void begin_other_thread(void)
{
	sem_init(&other_thread.todo, 0, 0);
	sem_init(&other_thread.done, 0, 0);
	assert_int_equal(pthread_create(&other_thread.thread, NULL, obey, NULL), 0);
}

static inline void on_other_thread(void (*deed)(void))
{
	other_thread.deed = deed;
	sem_post(&other_thread.todo);
	if (deed)
		sem_wait(&other_thread.done);
	else
		pthread_join(other_thread.thread, NULL);
}

/* Records a timer that the system resolves after a time. */
static inline weft_id timer_of(weft_id by)
{
	weft_id timer = weft_create(by, WEFT_KIND_TIMER, WEFT_SITE());
	weft_await(by, timer);
	return timer;
}

static inline const struct weft_evidence *line_of(const struct weft_finding *finding, enum weft_evidence_role role, size_t number)
{
	for (size_t i = 0; i < finding->evidence_count; i++)
		if (finding->evidence[i].role == role && number-- == 0)
			return &finding->evidence[i];
	return NULL;
}

/* Checks the text and the promise of one line of evidence; promise 0: the line names no promise. */
static inline void assert_line(
    const struct weft_finding *finding, enum weft_evidence_role role, size_t number, weft_id promise, const char *says)
{
	const struct weft_evidence *line = line_of(finding, role, number);
	assert_non_null(line);
	if (!strstr(line->text, says))
		fail_msg("\"%s\" does not say \"%s\"", line->text, says);
	assert_int_equal(line->promise == WEFT_NONE ? 0 : model->promises[line->promise].id, promise);
}

/* Records an event loop that `by` runs. */
static inline weft_id begin_loop(weft_id by)
{
	weft_id loop = weft_create(by, WEFT_KIND_LOOP, WEFT_SITE());
	WEFT_LABEL(loop, "uv_run");
	weft_await(by, loop);
	return loop;
}

#endif
