/* backlog.c: a counter of what waits to be done, to which more is added than is taken away, until the end.
 *
 * A counter that is never taken from is a total, and one that rises while nearly all of what came has gone is a load that grows:
 * neither is a backlog.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"

enum {
	QUARTERS = 4,
	LEAST_CHANGES = 64,
	LEFT_PART = 8,  /* at least this part of what came is left */
	TAKEN_PART = 8, /* and at least this part of it was taken */
};

struct flow {
	uint64_t came, went;   /* in all */
	int64_t low[QUARTERS]; /* the least value in each quarter of the time */
	int64_t most;
};

static struct flow measure(const struct weft_counter *c)
{
	struct flow flow = {.low = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, .most = INT64_MIN};
	int64_t first_ns = c->samples[0].time_ns, span_ns = c->samples[c->count - 1].time_ns - first_ns;
	for (size_t i = 0; i < c->count; i++) {
		const struct weft_sample *s = &c->samples[i];
		int quarter = span_ns > 0 ? (int)((double)(s->time_ns - first_ns) / (double)span_ns * QUARTERS) : 0;
		quarter = quarter < QUARTERS ? quarter : QUARTERS - 1;
		flow.low[quarter] = s->value < flow.low[quarter] ? s->value : flow.low[quarter];
		flow.most = s->value > flow.most ? s->value : flow.most;
		flow.came += s->delta > 0 ? (uint64_t)s->delta : 0;
		flow.went += s->delta < 0 ? -(uint64_t)s->delta : 0;
	}
	return flow;
}

static bool is_backlog(const struct weft__finder *f, const struct weft_counter *c, const struct flow *flow)
{
	int64_t end = c->samples[c->count - 1].value;
	if (c->count < LEAST_CHANGES || end < (int64_t)f->options.leak_count || end < flow->most / 4 * 3)
		return false;
	for (int q = 1; q < QUARTERS; q++)
		if (flow->low[q] == INT64_MAX || flow->low[q] <= flow->low[q - 1])
			return false;
	return (uint64_t)end >= flow->came / LEFT_PART && flow->went >= flow->came / TAKEN_PART &&
	       c->samples[c->count - 1].time_ns - c->samples[0].time_ns >= f->model->end_ns / QUARTERS;
}

static bool is_text(const struct weft_model *m, uint32_t number, struct weft_str text)
{
	struct weft_str other = weft_model_text(m, number);
	return other.len == text.len && memcmp(other.ptr, text.ptr, text.len) == 0;
}

/* The last promise that added to the counter, or took from it; WEFT_NONE: the system did. */
static uint32_t last_changer(struct weft__finder *f, const struct weft_counter *c, bool added)
{
	const struct weft_model *m = f->model;
	uint32_t last = WEFT_NONE;
	int64_t last_ns = INT64_MIN;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++)
		for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++) {
			const struct weft_label *label = &m->labels[l];
			if (!label->is_counter || label->time_ns < last_ns || !is_text(m, label->text, c->name))
				continue;
			int64_t change = weft_model_change(m, label);
			if (added ? change > 0 : change < 0) {
				last = p;
				last_ns = label->time_ns;
			}
		}
	return last;
}

static void tell_changer(struct weft__finder *f, const struct weft_counter *c, bool added, const char *what)
{
	uint32_t p = last_changer(f, c, added);
	if (p != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[p].start_ns, p, "%s%s is the last that %s",
		    weft__words_name(f, p), weft__words_at(f, p), what);
}

/* The time from one to the next, if so many are evenly spread over the counter's time. */
static int64_t each_ns(const struct weft_counter *c, uint64_t count)
{
	return (int64_t)((double)(c->samples[c->count - 1].time_ns - c->samples[0].time_ns) / (double)(count ? count : 1));
}

static void tell_backlog(struct weft__finder *f, const struct weft_counter *c, const struct flow *flow)
{
	int64_t first_ns = c->samples[0].time_ns, last_ns = c->samples[c->count - 1].time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, WEFT_SYSTEM, first_ns, last_ns);
	if (!finding)
		return;
	int64_t end = c->samples[c->count - 1].value;
	finding->weight = (uint64_t)end;
	finding->title = weft__finding_text(f,
	    "counter \"%s\" grew to %" PRId64 " and never fell back: %" PRIu64 " were added, one every %s, and %" PRIu64
	    " taken away, one every %s",
	    weft__words_clean(f, c->name), end, flow->came, weft__words_span(f, each_ns(c, flow->came)), flow->went,
	    weft__words_span(f, each_ns(c, flow->went)));
	finding->next = "let whoever adds wait while too many lie there (a queue with a bound), or take away faster";
	tell_changer(f, c, true, "adds to it");
	tell_changer(f, c, false, "takes from it");
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "its least value in each quarter of that time: %" PRId64 ", %" PRId64 ", %" PRId64 " and %" PRId64, flow->low[0],
	    flow->low[1], flow->low[2], flow->low[3]);
}

void weft__find_backlog(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < m->counter_count && weft__finding_goes_on(f, i, m->counter_count); i++) {
		const struct weft_counter *c = &m->counters[i];
		if (c->count < LEAST_CHANGES)
			continue;
		struct flow flow = measure(c);
		if (is_backlog(f, c, &flow))
			tell_backlog(f, c, &flow);
	}
}
