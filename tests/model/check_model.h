/* check_model.h: checks of rules that each model must keep, for any trace.  SPDX-License-Identifier: ISC */
#ifndef TESTS_MODEL_CHECK_MODEL_H
#define TESTS_MODEL_CHECK_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "model/kernel.h"
#include "model/model.h"

#define CHECK_MODEL(condition)                                                                                                   \
	do {                                                                                                                     \
		if (!(condition)) {                                                                                              \
			fprintf(stderr, "%s:%d: the model breaks its rule: %s\n", __FILE__, __LINE__, #condition);               \
			abort();                                                                                                 \
		}                                                                                                                \
	} while (0)

static inline void check_promise(const struct weft_model *m, uint32_t index)
{
	const struct weft_promise *p = &m->promises[index];
	char text[64];
	CHECK_MODEL(p->start_ns <= p->end_ns);
	CHECK_MODEL(p->created_by < index && p->parent < m->promise_count && p->parent != index);
	CHECK_MODEL((p->end == WEFT_END_BECAME) == (p->became != WEFT_NONE));
	CHECK_MODEL(p->became == WEFT_NONE || (p->became < m->promise_count && p->became != index && p->became != WEFT_SYSTEM));
	CHECK_MODEL((p->end == WEFT_END_FAILED) == (p->failure != WEFT_NONE));
	CHECK_MODEL(p->labels <= p[1].labels && p->runs <= p[1].runs);
	CHECK_MODEL(weft_model_name(m, index, text, sizeof text) > 0);
	CHECK_MODEL(weft_model_kind_name(m, p->kind)[0]);
	uint32_t found = weft_model_find(m, p->id);
	CHECK_MODEL(found < m->promise_count && m->promises[found].id == p->id && found >= index);
	uint32_t last = p[1].labels - (p->end == WEFT_END_FAILED);
	CHECK_MODEL(p->end != WEFT_END_FAILED || (last >= p->labels && m->labels[last].text == p->failure));
	for (uint32_t i = p->labels + 1; i < last; i++)
		CHECK_MODEL(m->labels[i - 1].time_ns <= m->labels[i].time_ns);
	for (uint32_t i = p->runs; i < p[1].runs; i++) {
		CHECK_MODEL(m->runs[i].start_ns <= m->runs[i].end_ns);
		CHECK_MODEL(i == p->runs || m->runs[i - 1].start_ns <= m->runs[i].start_ns);
	}
}

/* Checks that the parents of each promise lead to the system, and that each chain of merges ends at a promise that is not merged.
 */
static inline void check_ways(const struct weft_model *m)
{
	unsigned char *seen = calloc(m->promise_count, 1);
	CHECK_MODEL(seen);
	for (uint32_t i = 0; i < m->promise_count; i++) {
		uint32_t at = i, steps = 0;
		for (; at != WEFT_SYSTEM && !(seen[at] & 1); at = m->promises[at].parent)
			CHECK_MODEL(steps++ <= m->promise_count);
		for (at = i; at != WEFT_SYSTEM && !(seen[at] & 1); at = m->promises[at].parent)
			seen[at] |= 1;
		steps = 0;
		for (at = i; at != WEFT_NONE && !(seen[at] & 2); at = m->promises[at].became)
			CHECK_MODEL(steps++ <= m->promise_count);
		for (at = i; at != WEFT_NONE && !(seen[at] & 2); at = m->promises[at].became)
			seen[at] |= 2;
	}
	free(seen);
}

static inline void check_stretches(const struct weft_model *m, const struct weft_interval *stretches, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		CHECK_MODEL(stretches[i].start_ns <= stretches[i].end_ns && stretches[i].end_ns <= m->end_ns);
		CHECK_MODEL(i == 0 || stretches[i - 1].start_ns <= stretches[i].start_ns);
		CHECK_MODEL(weft_model_text(m, stretches[i].text).len > 0);
	}
}

/* Checks that the intervals of each OS thread do not overlap, and that the parts of each time are not longer than the whole. */
static inline void check_kernel(const struct weft_model *m)
{
	const struct weft_kernel *k = m->kernel;
	CHECK_MODEL(k->threads[k->thread_count].offs == k->off_count);
	for (size_t i = 0; i < k->thread_count; i++) {
		CHECK_MODEL(i == 0 || k->threads[i].tid > k->threads[i - 1].tid);
		CHECK_MODEL(k->threads[i].offs <= k->threads[i + 1].offs && weft_kernel_thread(k, k->threads[i].tid) == i);
		for (size_t n = k->threads[i].offs; n < k->threads[i + 1].offs; n++) {
			const struct weft_off_cpu *off = &k->offs[n];
			CHECK_MODEL(off->start_ns <= off->ready_ns && off->ready_ns <= off->end_ns);
			CHECK_MODEL(n == k->threads[i].offs || off->start_ns >= off[-1].end_ns);
			CHECK_MODEL(off->start_ns >= k->threads[i].first_ns);
		}
	}
	for (size_t s = 0; s < m->trace->stream_count && s < 8; s++) {
		struct weft_off_cpu_sum sum;
		const int64_t off_ns = weft_kernel_off_ns(m, (uint16_t)s, 0, m->end_ns);
		CHECK_MODEL(off_ns >= -1 && off_ns <= m->end_ns);
		CHECK_MODEL(weft_kernel_sum(m, (uint16_t)s, 0, m->end_ns, &sum) == (off_ns >= 0));
		CHECK_MODEL(off_ns < 0 || sum.blocked_ns + sum.ready_ns + sum.preempted_ns == off_ns);
	}
}

static inline void check_model(const struct weft_model *m)
{
	char text[64];
	CHECK_MODEL(m->promise_count >= 1 && m->end_ns >= 0 && m->events > 0);
	CHECK_MODEL(m->promises[WEFT_SYSTEM].id == WEFT_SYSTEM_ID && m->promises[WEFT_SYSTEM].parent == WEFT_NONE);
	CHECK_MODEL(m->promises[0].labels == 0 && m->promises[m->promise_count].labels == m->label_count);
	CHECK_MODEL(m->promises[0].runs == 0 && m->promises[m->promise_count].runs == m->run_count);
	for (uint32_t i = 1; i < m->promise_count; i++)
		check_promise(m, i);
	check_ways(m);
	if (m->kernel)
		check_kernel(m);
	for (size_t i = 0; i < m->link_count; i++) {
		CHECK_MODEL(m->links[i].from < m->promise_count && m->links[i].to < m->promise_count);
		CHECK_MODEL(m->links[i].kind < WEFT_LINK_KINDS);
		CHECK_MODEL(i == 0 || m->links[i - 1].time_ns <= m->links[i].time_ns);
	}
	for (size_t i = 0; i < m->label_count; i++)
		CHECK_MODEL(weft_model_label(m, &m->labels[i], text, sizeof text) < 1u << 31);
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct weft_counter *c = &m->counters[i];
		CHECK_MODEL(c->count > 0 && c->min <= 0 && c->max >= 0 && c->scale_min <= c->min && c->scale_max >= c->max);
		CHECK_MODEL(c->scale_max > c->scale_min);
	}
	check_stretches(m, m->pauses, m->pause_count);
	check_stretches(m, m->sleeps, m->sleep_count);
}

#endif
