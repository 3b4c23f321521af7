/* overview.c: finds the slowest promises and the busiest event loop.  SPDX-License-Identifier: ISC */
#include "analysis/queries/overview.h"

#include <stdlib.h>

#include "analysis/index/delays.h"
#include "base/duration.h"

static int64_t get_duration_ns(const struct weft_promise *p)
{
	const bool has_time =
	    weft_has_ended(p) && !(p->flags & WEFT_PROMISE_START_UNKNOWN) &&
	    !weft_kind_has(p->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONNECTION | WEFT_TRAIT_THREAD | WEFT_TRAIT_LOOP);
	return has_time ? p->end_ns - p->start_ns : 0;
}

/* Inserts a promise into the list of the slowest. */
static void add_slow(struct weft_overview *o, const struct weft_model *m, uint32_t p)
{
	const int64_t ns = get_duration_ns(&m->promises[p]);
	size_t at = o->slowest_count;
	while (at > 0 && get_duration_ns(&m->promises[o->slowest[at - 1]]) < ns)
		at--;
	if (ns <= 0 || at == WEFT_OVERVIEW_SLOWEST)
		return;
	o->slowest_count += o->slowest_count < WEFT_OVERVIEW_SLOWEST;
	for (size_t i = o->slowest_count - 1; i > at; i--)
		o->slowest[i] = o->slowest[i - 1];
	o->slowest[at] = p;
}

/* Returns how long the thread of a stream slept between the two times. */
static int64_t measure_sleep(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	int64_t slept_ns = 0;
	for (size_t i = 0; i < m->sleep_count && m->sleeps[i].start_ns < to_ns; i++)
		if (m->sleeps[i].stream == stream && m->sleeps[i].end_ns > from_ns)
			slept_ns += weft_min_ns(m->sleeps[i].end_ns, to_ns) - weft_max_ns(m->sleeps[i].start_ns, from_ns);
	return slept_ns;
}

static void add_loop(struct weft_overview *o, const struct weft_model *m, uint32_t p)
{
	enum { MAX_MEASURED = 256 }; /* programs that run a loop again and again have one promise for each run */
	const struct weft_promise *loop = &m->promises[p];
	const int64_t from_ns = weft_max_ns(loop->start_ns, 0),
		      to_ns = weft_has_ended(loop) ? loop->end_ns : weft_model_until(m, p);
	if (o->loop_count++ >= MAX_MEASURED || to_ns <= from_ns)
		return;
	const int64_t awake_ns = to_ns - from_ns - measure_sleep(m, loop->stream, from_ns, to_ns);
	if (o->busiest != WEFT_NONE && (double)awake_ns / (double)(to_ns - from_ns) <= (double)o->awake_ns / (double)o->loop_ns)
		return;
	o->busiest = p;
	o->awake_ns = awake_ns;
	o->loop_ns = to_ns - from_ns;
}

int weft_overview_find(struct weft_overview *out, const struct weft_model *m)
{
	struct weft_overview o = {.busiest = WEFT_NONE, .stall_promise = WEFT_SYSTEM};
	struct weft__stall stall;
	const int found = weft__stalls_find_longest(&stall, m);
	if (found < 0)
		return found;
	if (found > 0) {
		o.stall_ns = stall.end_ns - stall.start_ns;
		o.stall_promise = stall.promise;
	}
	for (uint32_t p = 1; p < m->promise_count; p++) {
		add_slow(&o, m, p);
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP))
			add_loop(&o, m, p);
		o.has_callbacks |= m->promises[p].runs < m->promises[p + 1].runs &&
				   !weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD);
	}
	*out = o;
	return WEFT_OK;
}
