/* backlog.c: more came than was done, until the end: seen in a counter of what waits, or in promises that are pending.
 *
 * A counter that is never taken from is a total, and one that rises while nearly all of what came has gone is a load that grows:
 * neither is a backlog.  One that little is taken from, again and again, may be a store or a queue.  SPDX-License-Identifier: ISC
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/sort.h"

enum {
	QUARTERS = 4,
	LEAST_CHANGES = 64,
	LEAST_LEFT_CHANGES = 24, /* of a counter that tells what it is, where a ring has forgotten those before */
	LEFT_PART = 4,           /* at least this part of what came is left */
	TAKEN_PART = 8,          /* and at least this part of it was taken */
	LEAST_PEAK = 2,          /* so many leaks it grew to, if it fell back */
	LITTLE_PART = 64,        /* and somebody took at least this part of what came meanwhile */
	MOST_HEAPS = 16          /* sorts of promises that are looked at closely, each in time linear in the trace */
};

struct flow {
	uint64_t came, went;   /* in all */
	int64_t low[QUARTERS]; /* the least value in each quarter of the changes: a pause of the machine is none */
	int64_t most;
};

static struct flow measure(const struct weft_counter *c)
{
	struct flow flow = {.low = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, .most = INT64_MIN};
	for (size_t i = 0; i < c->count; i++) {
		const struct weft_sample *s = &c->samples[i];
		size_t quarter = i * QUARTERS / c->count;
		flow.low[quarter] = s->value < flow.low[quarter] ? s->value : flow.low[quarter];
		flow.most = s->value > flow.most ? s->value : flow.most;
		flow.came += s->delta > 0 ? (uint64_t)s->delta : 0;
		flow.went += s->delta < 0 ? -(uint64_t)s->delta : 0;
	}
	return flow;
}

static size_t least_changes(const struct weft_counter *c, int64_t from_ns)
{
	return from_ns > 0 && c->is_absolute ? LEAST_LEFT_CHANGES : LEAST_CHANGES;
}

/* It only ever grew, and at least one in `taken_part` of what came was taken away.  From `from_ns` on all of its changes are
 * known.
 */
static bool only_grew(
    const struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, int64_t from_ns, uint64_t taken_part)
{
	int64_t end = c->samples[c->count - 1].value;
	if (c->count < least_changes(c, from_ns) || end < (int64_t)f->options.leak_count || end < flow->most / 4 * 3)
		return false;
	for (int q = 1; q < QUARTERS; q++)
		if (flow->low[q] <= flow->low[q - 1])
			return false;
	const int64_t base = from_ns > 0 && c->is_absolute ? flow->low[0] : 0;
	return (uint64_t)(end - base) >= flow->came / LEFT_PART && flow->went >= flow->came / taken_part &&
	       c->samples[c->count - 1].time_ns - c->samples[0].time_ns >= (f->model->end_ns - from_ns) / QUARTERS;
}

static bool is_backlog(const struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, int64_t from_ns)
{
	return only_grew(f, c, flow, from_ns, TAKEN_PART);
}

/* Something was taken away in each quarter of its time: somebody does so all the time, too slowly. */
static bool is_taken_from(const struct weft_counter *c)
{
	const int64_t start_ns = c->samples[0].time_ns, span_ns = c->samples[c->count - 1].time_ns - start_ns;
	unsigned seen = 0;
	for (size_t i = 0; i < c->count; i++) {
		const int64_t quarter = (c->samples[i].time_ns - start_ns) / (span_ns / QUARTERS + 1);
		seen |= c->samples[i].delta < 0 ? 1u << quarter : 0;
	}
	return seen == (1u << QUARTERS) - 1;
}

/* It grew like one, up to its peak, but was taken down in the end: whoever ended the program waited for that. */
static bool is_drained(const struct weft__finder *f, const struct weft_counter *c)
{
	size_t peak = 0;
	for (size_t i = 1; i < c->count; i++)
		peak = c->samples[i].value > c->samples[peak].value ? i : peak;
	struct weft_counter rise = *c;
	rise.count = peak + 1;
	if (rise.count < LEAST_CHANGES || c->samples[peak].value < LEAST_PEAK * (int64_t)f->options.leak_count)
		return false;
	struct flow flow = measure(&rise);
	for (int q = 1; q < QUARTERS; q++)
		if (flow.low[q] <= flow.low[q - 1])
			return false;
	return (uint64_t)c->samples[peak].value >= flow.came / LEFT_PART && flow.went >= flow.came / LITTLE_PART &&
	       c->samples[c->count - 1].time_ns - c->samples[peak].time_ns >= c->samples[peak].time_ns - c->samples[0].time_ns;
}

/* A ring has lost the changes of one OS thread up to one time, and of another up to another: the counter from where all are
 * known, with the least value as 0, unless it tells what it is.  Its samples are the caller's; without any there was no memory.
 */
static struct weft_counter count_known(struct weft__finder *f, const struct weft_counter *c, int64_t horizon_ns)
{
	struct weft_counter known = {.name = c->name, .is_absolute = c->is_absolute};
	size_t first = 0;
	while (first < c->count && c->samples[first].time_ns < horizon_ns)
		first++;
	int64_t least = first < c->count && !c->is_absolute ? c->samples[first].value : 0;
	for (size_t i = first; i < c->count && !c->is_absolute; i++)
		least = c->samples[i].value < least ? c->samples[i].value : least;
	if ((known.samples = weft__finding_alloc(f, c->count - first, sizeof *known.samples)))
		for (size_t i = first; i < c->count; i++) {
			known.samples[known.count] = c->samples[i];
			known.samples[known.count++].value -= least;
		}
	if (known.count && c->is_absolute)
		known.samples[0].delta = 0; /* what it was before */
	return known;
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

static void tell_backlog(struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, bool may_be_store)
{
	int64_t first_ns = c->samples[0].time_ns, last_ns = c->samples[c->count - 1].time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, WEFT_SYSTEM, first_ns, last_ns);
	if (!finding)
		return;
	int64_t end = c->samples[c->count - 1].value;
	if (may_be_store) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "so little was taken away that it may be no queue, but a store that is meant to grow");
	}
	if (c->count < LEAST_CHANGES)
		weft__finding_doubt(f, "the ring was overwritten: whether it always grew is not known");
	finding->weight = (uint64_t)end;
	finding->title = weft__finding_text(f,
	    "counter \"%s\" grew to %" PRId64 " and never fell back: %" PRIu64 " were added, one every %s, and %" PRIu64
	    " taken away, one every %s",
	    weft__words_clean(f, c->name), end, flow->came, weft__words_span(f, each_ns(c, flow->came)), flow->went,
	    weft__words_span(f, each_ns(c, flow->went)));
	finding->next = "let whoever adds wait while too many lie there (a queue with a bound), or take away faster";
	tell_changer(f, c, true, "adds to it");
	tell_changer(f, c, false, "takes from it");
	size_t taken = c->count;
	while (taken > 0 && c->samples[taken - 1].delta >= 0)
		taken--;
	/* One that takes too slowly takes until the end. */
	if (taken > 0 && c->samples[taken - 1].time_ns - first_ns < (last_ns - first_ns) / 2)
		weft__finding_doubt(
		    f, weft__finding_text(f, "nobody took anything away for the last %s: whoever does so may hang",
			   weft__words_span(f, last_ns - c->samples[taken - 1].time_ns)));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "its least value in each quarter of these changes: %" PRId64 ", %" PRId64 ", %" PRId64 " and %" PRId64, flow->low[0],
	    flow->low[1], flow->low[2], flow->low[3]);
}

static void tell_drained(struct weft__finder *f, const struct weft_counter *c)
{
	size_t peak = 0;
	for (size_t i = 1; i < c->count; i++)
		peak = c->samples[i].value > c->samples[peak].value ? i : peak;
	int64_t first_ns = c->samples[0].time_ns, peak_ns = c->samples[peak].time_ns, last_ns = c->samples[c->count - 1].time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, WEFT_SYSTEM, first_ns, last_ns);
	if (!finding)
		return;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = (uint64_t)c->samples[peak].value;
	finding->title = weft__finding_text(f, "counter \"%s\" grew to %" PRId64 " within %s, and %s later it was at %" PRId64,
	    weft__words_clean(f, c->name), c->samples[peak].value, weft__words_span(f, peak_ns - first_ns),
	    weft__words_span(f, last_ns - peak_ns), c->samples[c->count - 1].value);
	finding->next =
	    "if what waits there may not wait so long, let whoever adds wait (a queue with a bound), or take away faster";
	tell_changer(f, c, true, "adds to it");
	tell_changer(f, c, false, "takes from it");
}

/* ---- Promises ---- */

/* Promises whose labels have one shape.  What comes from outside, a timer or a read, is nothing that somebody has to do. */
struct heap {
	uint32_t sorts, most, most_left; /* how many can have come, and be pending, at most */
	uint32_t came, went;
	uint32_t oldest, last_done; /* of the pending ones; of those that ended */
};

/* Of a sort that may be one. */
static bool counts(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && promise->start_ns >= 0 && promise->end != WEFT_END_BECAME;
}

/* By sort: it is of a group, of which as many came and are pending as of a backlog. */
static bool *find_suspects(struct weft__finder *f, const uint32_t *first, const struct heap *heaps)
{
	bool *is_suspect = weft__finding_alloc(f, f->sorts.items.count, sizeof *is_suspect);
	for (size_t s = 0; is_suspect && s < f->sorts.items.count; s++)
		is_suspect[s] = heaps[first[s]].most >= LEAST_CHANGES && heaps[first[s]].most_left >= f->options.leak_count &&
				!weft_kind_has(f->sorts.items.items[s].kind, WEFT__TRAITS_LASTING | WEFT_TRAIT_OUTSIDE);
	return is_suspect;
}

static bool may_be_backlog(const struct weft__finder *f, const struct heap *heap)
{
	uint32_t left = heap->came - heap->went;
	return heap->came >= LEAST_CHANGES && left >= f->options.leak_count && left >= heap->came / LEFT_PART &&
	       heap->went >= heap->came / TAKEN_PART;
}

static int compare_samples(const void *a, const void *b)
{
	const struct weft_sample *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(y->delta, x->delta);
}

/* How many were pending at each time, as a counter that the caller frees; without samples there was no memory. */
static struct weft_counter count_pending(struct weft__finder *f, const uint32_t *first, uint32_t group, size_t count)
{
	struct weft_counter c = {.samples = weft__finding_alloc(f, 2 * count, sizeof *c.samples)};
	for (uint32_t p = 1; c.samples && p < f->model->promise_count; p++) {
		if (first[f->sorts.of[p]] != group || !counts(f, p))
			continue;
		c.samples[c.count++] = (struct weft_sample){f->model->promises[p].start_ns, 0, 1};
		if (f->ties.ended_ns[p] != WEFT_NEVER)
			c.samples[c.count++] = (struct weft_sample){f->ties.ended_ns[p], 0, -1};
	}
	if (c.samples)
		weft_sort(c.samples, c.count, sizeof *c.samples, compare_samples);
	for (size_t i = 0; i < c.count; i++)
		c.samples[i].value = (i ? c.samples[i - 1].value : 0) + c.samples[i].delta;
	return c;
}

static void tell_pending(struct weft__finder *f, const struct heap *heap, const struct weft_counter *c)
{
	const struct weft_model *m = f->model;
	uint32_t p = heap->oldest, last = heap->last_done;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, p, c->samples[0].time_ns, m->end_ns);
	if (!finding)
		return;
	finding->weight = heap->came - heap->went;
	finding->title = weft__finding_text(f,
	    "%" PRIu32 " promises %s%s were not done at the end: %" PRIu32 " came, one every %s, and %" PRIu32
	    " were done, one every %s",
	    heap->came - heap->went, weft__words_group(f, p, heap->sorts == 1),
	    weft_first_label(m, p) == WEFT_NONE ? "" : weft__words_at(f, p), heap->came,
	    weft__words_span(f, each_ns(c, heap->came)), heap->went, weft__words_span(f, each_ns(c, heap->went)));
	finding->next = "let whoever brings them wait while too many are pending, or do them faster";
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].start_ns, p, "%s creates %s, the oldest that is not done",
	    weft__words_name(f, m->promises[p].created_by), weft__words_name(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[last], last,
	    "%s is the last that was done, %s after it came", weft__words_name(f, last),
	    weft__words_span(f, f->ties.ended_ns[last] - m->promises[last].start_ns));
}

static void look_at_heap(struct weft__finder *f, const uint32_t *first, uint32_t group, struct heap *heap)
{
	uint32_t root = f->chains.root[heap->oldest];
	if (first[f->sorts.of[root]] != group || f->told[root])
		return; /* it waits for something else */
	struct weft_counter c = count_pending(f, first, group, heap->came);
	if (c.count > 0) {
		struct flow flow = measure(&c);
		if (is_backlog(f, &c, &flow, 0)) {
			tell_pending(f, heap, &c);
			for (size_t i = 0; i < f->waiting.pending.count; i++)
				if (first[f->sorts.of[f->waiting.pending.items[i]]] == group)
					f->told[f->waiting.pending.items[i]] = true;
		}
	}
	free(c.samples);
}

static void find_pending(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	size_t count = f->sorts.items.count;
	struct heap *heaps = weft__finding_alloc(f, count, sizeof *heaps);
	const uint32_t *first = weft__finding_shapes(f);
	bool *is_suspect = NULL;
	for (uint32_t s = 0; heaps && first && s < count; s++) {
		struct heap *heap = &heaps[first[s]];
		heap->sorts++;
		heap->most += f->sorts.items.items[s].count;
		heap->most_left += f->sorts.items.items[s].pending;
	}
	if (heaps && first && (is_suspect = find_suspects(f, first, heaps))) {
		for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
			struct heap *heap = &heaps[first[f->sorts.of[p]]];
			bool ended = f->ties.ended_ns[p] != WEFT_NEVER;
			if (!is_suspect[f->sorts.of[p]] || !counts(f, p))
				continue;
			if (!ended && heap->came == heap->went)
				heap->oldest = p;
			if (ended && (heap->went == 0 || f->ties.ended_ns[p] > f->ties.ended_ns[heap->last_done]))
				heap->last_done = p;
			heap->came++;
			heap->went += ended;
		}
		for (uint32_t s = 0, looked = 0; s < count && looked < MOST_HEAPS && weft__finding_goes_on(f, s, count); s++)
			if (first[s] == s && may_be_backlog(f, &heaps[s])) {
				look_at_heap(f, first, s, &heaps[s]);
				looked++;
			}
	}
	free(heaps);
	free(is_suspect);
}

void weft__find_backlog(struct weft__finder *f)
{
	if (f->waiting.pending.count >= f->options.leak_count)
		find_pending(f);
	const struct weft_model *m = f->model;
	const int64_t horizon_ns = f->lacks[m->trace->part_count ? m->trace->part_count : 1].horizon_ns;
	for (size_t i = 0; i < m->counter_count && weft__finding_goes_on(f, i, m->counter_count); i++) {
		const size_t least = least_changes(&m->counters[i], horizon_ns);
		if (m->counters[i].count < least || m->counters[i].is_partial)
			continue;
		const bool is_left = horizon_ns > 0;
		struct weft_counter known = is_left ? count_known(f, &m->counters[i], horizon_ns) : (struct weft_counter){0};
		const struct weft_counter *c = is_left ? &known : &m->counters[i];
		struct flow flow = measure(c);
		if (c->count >= least && is_backlog(f, c, &flow, horizon_ns))
			tell_backlog(f, c, &flow, false);
		else if (c->count >= LEAST_CHANGES && is_drained(f, c))
			tell_drained(f, c);
		else if (horizon_ns <= 0 && only_grew(f, c, &flow, 0, LITTLE_PART) && is_taken_from(c))
			tell_backlog(f, c, &flow, true);
		free(known.samples);
	}
}
