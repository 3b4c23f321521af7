/* backlog.c: finds work that arrives faster than the program does it, in counters of queued items and in pending promises.
 *
 * A counter from which nothing is removed is a total, not a backlog.  A counter that rises while nearly all added items are
 * removed shows a growing load, not a backlog.  Neither is a backlog.  A counter from which few items are removed, but
 * regularly, may count a store or a queue.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/sort.h"

enum {
	QUARTERS = 4,
	MIN_CHANGES = 64,
	MIN_CHANGES_IN_RING = 24, /* fewest changes of an absolute counter whose older changes a ring has overwritten */
	LEFT_DIVISOR = 4,         /* a backlog still has at least one in LEFT_DIVISOR of the added items */
	TAKEN_DIVISOR = 8,        /* at least one in TAKEN_DIVISOR of the items of a backlog was removed */
	MIN_PEAK_LEAKS = 2,       /* lowest peak of a drained counter, in multiples of leak_count */
	/* a drained counter, or one that may be a store, needs only one in LITTLE_DIVISOR items removed */
	LITTLE_DIVISOR = 64,
	MAX_TYPE_GROUPS = 16 /* most groups of types that are checked closely: each check takes time linear in the trace */
};

struct flow {
	uint64_t came, went;   /* number of items that were added; number of items that were removed */
	int64_t low[QUARTERS]; /* the lowest value in each quarter of the list of changes */
	int64_t most;
};

static struct flow measure_flow(const struct weft_counter *c)
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

static size_t get_min_changes(const struct weft_counter *c, int64_t from_ns)
{
	return from_ns > 0 && c->is_absolute ? MIN_CHANGES_IN_RING : MIN_CHANGES;
}

/* Returns whether the counter kept growing although at least one in `taken_divisor` of the added items was removed.  All
 * changes of the counter since `from_ns` must be known. */
static bool has_only_grown(
    const struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, int64_t from_ns, uint64_t taken_divisor)
{
	int64_t end = c->samples[c->count - 1].value;
	if (c->count < get_min_changes(c, from_ns) || end < (int64_t)f->options.leak_count || end < flow->most / 4 * 3)
		return false;
	for (int q = 1; q < QUARTERS; q++)
		if (flow->low[q] <= flow->low[q - 1])
			return false;
	const int64_t base = from_ns > 0 && c->is_absolute ? flow->low[0] : 0;
	return (uint64_t)(end - base) >= flow->came / LEFT_DIVISOR && flow->went >= flow->came / taken_divisor &&
	       c->samples[c->count - 1].time_ns - c->samples[0].time_ns >= (f->model->end_ns - from_ns) / QUARTERS;
}

static bool is_backlog(const struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, int64_t from_ns)
{
	return has_only_grown(f, c, flow, from_ns, TAKEN_DIVISOR);
}

/* Returns whether items were removed in each quarter of the time: then the consumer is active all the time, but too slow. */
static bool is_consumed(const struct weft_counter *c)
{
	const int64_t start_ns = c->samples[0].time_ns, span_ns = c->samples[c->count - 1].time_ns - start_ns;
	unsigned seen = 0;
	for (size_t i = 0; i < c->count; i++) {
		const int64_t quarter = (c->samples[i].time_ns - start_ns) / (span_ns / QUARTERS + 1);
		seen |= c->samples[i].delta < 0 ? 1u << quarter : 0;
	}
	return seen == (1u << QUARTERS) - 1;
}

/* Returns whether the counter grew like a backlog up to its peak and was drained in the end, because the program waited for its
 * queue before it exited. */
static bool is_drained(const struct weft__finder *f, const struct weft_counter *c)
{
	size_t peak = 0;
	for (size_t i = 1; i < c->count; i++)
		peak = c->samples[i].value > c->samples[peak].value ? i : peak;
	struct weft_counter rise = *c;
	rise.count = peak + 1;
	if (rise.count < MIN_CHANGES || c->samples[peak].value < MIN_PEAK_LEAKS * (int64_t)f->options.leak_count)
		return false;
	struct flow flow = measure_flow(&rise);
	for (int q = 1; q < QUARTERS; q++)
		if (flow.low[q] <= flow.low[q - 1])
			return false;
	return (uint64_t)c->samples[peak].value >= flow.came / LEFT_DIVISOR && flow.went >= flow.came / LITTLE_DIVISOR &&
	       c->samples[c->count - 1].time_ns - c->samples[peak].time_ns >= c->samples[peak].time_ns - c->samples[0].time_ns;
}

/* Returns the part of a counter from `horizon_ns` on.  A ring buffer loses the changes of each thread up to a different time;
 * from `horizon_ns` on the changes of all threads are known.  The lowest value of the counter is subtracted from all values,
 * unless the counter is absolute.  The caller frees the samples; on lack of memory the result has no samples. */
static struct weft_counter get_known_counter(struct weft__finder *f, const struct weft_counter *c, int64_t horizon_ns)
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
		known.samples[0].delta = 0; /* this change happened before `horizon_ns` */
	return known;
}

static bool is_same_text(const struct weft_model *m, uint32_t number, struct weft_str text)
{
	struct weft_str other = weft_model_text(m, number);
	return other.len == text.len && memcmp(other.ptr, text.ptr, text.len) == 0;
}

/* Returns the last promise that added to the counter or removed from it; WEFT_NONE if the system did. */
static uint32_t find_last_changer(struct weft__finder *f, const struct weft_counter *c, bool added)
{
	const struct weft_model *m = f->model;
	uint32_t last = WEFT_NONE;
	int64_t last_ns = INT64_MIN;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++)
		for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++) {
			const struct weft_label *label = &m->labels[l];
			if (!label->is_counter || label->time_ns < last_ns || !is_same_text(m, label->text, c->name))
				continue;
			int64_t change = weft_model_change(m, label);
			if (added ? change > 0 : change < 0) {
				last = p;
				last_ns = label->time_ns;
			}
		}
	return last;
}

static void report_changer(struct weft__finder *f, const struct weft_counter *c, bool added, const char *what)
{
	uint32_t p = find_last_changer(f, c, added);
	if (p != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[p].start_ns, p,
		    "%s%s is the last promise that %s", weft__format_promise(f, p), weft__format_site_suffix(f, p), what);
}

/* Returns the average time between `count` events over the time that the counter's samples cover. */
static int64_t get_interval_ns(const struct weft_counter *c, uint64_t count)
{
	return (int64_t)((double)(c->samples[c->count - 1].time_ns - c->samples[0].time_ns) / (double)(count ? count : 1));
}

static void report_backlog(struct weft__finder *f, const struct weft_counter *c, const struct flow *flow, bool may_be_store)
{
	int64_t first_ns = c->samples[0].time_ns, last_ns = c->samples[c->count - 1].time_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, WEFT_SYSTEM, first_ns, last_ns);
	if (!finding)
		return;
	int64_t end = c->samples[c->count - 1].value;
	if (may_be_store) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "so few items were removed that the counter may be a store that is meant to grow");
	}
	if (c->count < MIN_CHANGES)
		weft__finding_doubt(f, "the ring was overwritten, so only the last changes of the counter are known");
	finding->weight = (uint64_t)end;
	finding->title = weft__finding_text(f,
	    "counter \"%s\" grew to %" PRId64 ": %" PRIu64 " added, one per %s, and %" PRIu64 " removed, one per %s",
	    weft__format_sanitized(f, c->name), end, flow->came, weft__format_duration(f, get_interval_ns(c, flow->came)),
	    flow->went, weft__format_duration(f, get_interval_ns(c, flow->went)));
	finding->next = "limit the queue so that the producer waits while the queue is full, or make the consumer faster";
	report_changer(f, c, true, "added to the counter");
	report_changer(f, c, false, "removed from the counter");
	size_t taken = c->count;
	while (taken > 0 && c->samples[taken - 1].delta >= 0)
		taken--;
	/* A consumer that is too slow, rather than stopped, removes items until the end of the trace. */
	if (taken > 0 && c->samples[taken - 1].time_ns - first_ns < (last_ns - first_ns) / 2)
		weft__finding_doubt(f, weft__finding_text(f, "nothing was removed for the last %s, so the consumer may hang",
					   weft__format_duration(f, last_ns - c->samples[taken - 1].time_ns)));
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "lowest value of the counter in each quarter of its changes: %" PRId64 ", %" PRId64 ", %" PRId64 " and %" PRId64,
	    flow->low[0], flow->low[1], flow->low[2], flow->low[3]);
}

static void report_drained(struct weft__finder *f, const struct weft_counter *c)
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
	finding->title = weft__finding_text(f, "counter \"%s\" grew to %" PRId64 " in %s and took %s to fall to %" PRId64,
	    weft__format_sanitized(f, c->name), c->samples[peak].value, weft__format_duration(f, peak_ns - first_ns),
	    weft__format_duration(f, last_ns - peak_ns), c->samples[c->count - 1].value);
	finding->next = "limit the queue, or make the consumer faster, if items must not wait so long";
	report_changer(f, c, true, "added to the counter");
	report_changer(f, c, false, "removed from the counter");
}

/* ---- Promises ---- */

/* Promises whose labels have one pattern.  Promises that are resolved from outside the program, such as timers and reads, are
 * no work that the program has to do; writes are, because the program goes on to make them. */
struct type_group {
	bool is_writes;
	/* number of types; upper bound of the number of promises; upper bound of the number of pending promises */
	uint32_t types, most, most_left;
	uint32_t came, went;
	uint32_t oldest, last_done; /* the oldest pending promise; the last promise that ended */
};

/* Returns whether a promise counts as work: its creation is known, and it did not become another promise. */
static bool is_countable(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return !(promise->flags & WEFT_PROMISE_START_UNKNOWN) && promise->start_ns >= 0 && promise->end != WEFT_END_BECAME;
}

/* Returns, by type, whether its group has enough promises, and enough pending promises, for a backlog. */
static bool *find_suspects(struct weft__finder *f, const uint32_t *first, const struct type_group *type_groups)
{
	bool *is_suspect = weft__finding_alloc(f, f->types.items.count, sizeof *is_suspect);
	for (size_t s = 0; is_suspect && s < f->types.items.count; s++)
		is_suspect[s] = type_groups[first[s]].most >= MIN_CHANGES &&
				type_groups[first[s]].most_left >= f->options.leak_count &&
				(f->types.items.items[s].kind == WEFT_KIND_STREAM_WRITE ||
				    !weft_kind_has(f->types.items.items[s].kind, WEFT__TRAITS_LASTING | WEFT_TRAIT_OUTSIDE));
	return is_suspect;
}

static bool may_be_backlog(const struct weft__finder *f, const struct type_group *type_group)
{
	uint32_t left = type_group->came - type_group->went;
	/* The buffers of a connection take the first writes at once, so the writes before the queue grew say nothing. */
	return type_group->came >= MIN_CHANGES && left >= f->options.leak_count &&
	       (type_group->is_writes || left >= type_group->came / LEFT_DIVISOR) &&
	       type_group->went >= type_group->came / (type_group->is_writes ? LITTLE_DIVISOR : TAKEN_DIVISOR);
}

static int compare_samples(const void *a, const void *b)
{
	const struct weft_sample *x = a, *y = b;
	return WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(y->delta, x->delta);
}

/* Counts how many promises were pending over time.  The caller frees the samples; on lack of memory the result has no
 * samples. */
static struct weft_counter count_pending(struct weft__finder *f, const uint32_t *first, uint32_t group, size_t count)
{
	struct weft_counter c = {.samples = weft__finding_alloc(f, 2 * count, sizeof *c.samples)};
	for (uint32_t p = 1; c.samples && p < f->model->promise_count; p++) {
		if (first[f->types.of[p]] != group || !is_countable(f, p))
			continue;
		c.samples[c.count++] = (struct weft_sample){f->model->promises[p].start_ns, 0, 1};
		if (f->link_index.ended_ns[p] != WEFT_NEVER)
			c.samples[c.count++] = (struct weft_sample){f->link_index.ended_ns[p], 0, -1};
	}
	if (c.samples)
		weft_sort(c.samples, c.count, sizeof *c.samples, compare_samples);
	for (size_t i = 0; i < c.count; i++)
		c.samples[i].value = (i ? c.samples[i - 1].value : 0) + c.samples[i].delta;
	return c;
}

/* Drops the samples up to the last time at which no write was pending. */
static void drop_samples_before_growth(struct weft_counter *c)
{
	size_t first = c->count;
	while (first > 0 && c->samples[first - 1].value > 0)
		first--;
	memmove(c->samples, c->samples + first, (c->count - first) * sizeof *c->samples);
	c->count -= first;
}

static void report_pending(struct weft__finder *f, const struct type_group *type_group, const struct weft_counter *c)
{
	const struct weft_model *m = f->model;
	uint32_t p = type_group->oldest, last = type_group->last_done;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_BACKLOG, p, c->samples[0].time_ns, m->end_ns);
	if (!finding)
		return;
	finding->weight = type_group->came - type_group->went;
	finding->title = weft__finding_text(f,
	    "%" PRIu32 " of %" PRIu32 " promises %s are pending: one was created per %s, one ended per %s%s",
	    type_group->came - type_group->went, type_group->came, weft__format_type_group(f, p, type_group->types == 1),
	    weft__format_duration(f, get_interval_ns(c, type_group->came)),
	    weft__format_duration(f, get_interval_ns(c, type_group->went)),
	    weft_first_label(m, p) == WEFT_NONE ? "" : weft__format_site_suffix(f, p));
	finding->next =
	    type_group->is_writes
		? weft__finding_text(f, "read no more input while many writes are pending%s", weft__format_site_suffix(f, p))
		: "let the code that creates these promises wait while too many are pending, or make each end sooner";
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].start_ns, p,
	    "%s creates %s%s, which is the oldest that has not ended", weft__format_promise(f, m->promises[p].created_by),
	    weft__format_promise(f, p), weft__format_site_suffix(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->link_index.ended_ns[last], last,
	    "%s is the last that ended, %s after its creation", weft__format_promise(f, last),
	    weft__format_duration(f, f->link_index.ended_ns[last] - m->promises[last].start_ns));
}

static void check_type_group(struct weft__finder *f, const uint32_t *first, uint32_t group, struct type_group *type_group)
{
	uint32_t root = f->root_causes.root[type_group->oldest];
	if (first[f->types.of[root]] != group || f->reported[root])
		return; /* the promise waits for work of another group */
	struct weft_counter c = count_pending(f, first, group, type_group->came);
	if (type_group->is_writes)
		drop_samples_before_growth(&c);
	if (c.count > 0) {
		struct flow flow = measure_flow(&c);
		if (type_group->is_writes ? has_only_grown(f, &c, &flow, 0, flow.came) : is_backlog(f, &c, &flow, 0)) {
			report_pending(f, type_group, &c);
			for (size_t i = 0; i < f->wait_graph.pending.count; i++)
				if (first[f->types.of[f->wait_graph.pending.items[i]]] == group)
					f->reported[f->wait_graph.pending.items[i]] = true;
		}
	}
	free(c.samples);
}

static void find_pending_backlogs(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	size_t count = f->types.items.count;
	struct type_group *type_groups = weft__finding_alloc(f, count, sizeof *type_groups);
	const uint32_t *first = weft__finding_patterns(f);
	bool *is_suspect = NULL;
	for (uint32_t s = 0; type_groups && first && s < count; s++) {
		struct type_group *type_group = &type_groups[first[s]];
		type_group->types++;
		type_group->is_writes |= f->types.items.items[s].kind == WEFT_KIND_STREAM_WRITE;
		type_group->most += f->types.items.items[s].count;
		type_group->most_left += f->types.items.items[s].pending;
	}
	if (type_groups && first && (is_suspect = find_suspects(f, first, type_groups))) {
		for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
			struct type_group *type_group = &type_groups[first[f->types.of[p]]];
			bool ended = f->link_index.ended_ns[p] != WEFT_NEVER;
			if (!is_suspect[f->types.of[p]] || !is_countable(f, p))
				continue;
			if (!ended && type_group->came == type_group->went)
				type_group->oldest = p;
			if (ended &&
			    (type_group->went == 0 || f->link_index.ended_ns[p] > f->link_index.ended_ns[type_group->last_done]))
				type_group->last_done = p;
			type_group->came++;
			type_group->went += ended;
		}
		for (uint32_t s = 0, looked = 0; s < count && looked < MAX_TYPE_GROUPS && weft__finding_may_continue(f, s, count);
		     s++)
			if (first[s] == s && may_be_backlog(f, &type_groups[s])) {
				check_type_group(f, first, s, &type_groups[s]);
				looked++;
			}
	}
	free(type_groups);
	free(is_suspect);
}

void weft__find_backlog(struct weft__finder *f)
{
	if (f->wait_graph.pending.count >= f->options.leak_count)
		find_pending_backlogs(f);
	const struct weft_model *m = f->model;
	const int64_t horizon_ns = f->completeness[m->trace->part_count ? m->trace->part_count : 1].horizon_ns;
	for (size_t i = 0; i < m->counter_count && weft__finding_may_continue(f, i, m->counter_count); i++) {
		const size_t least = get_min_changes(&m->counters[i], horizon_ns);
		if (m->counters[i].count < least || m->counters[i].is_partial)
			continue;
		const bool is_left = horizon_ns > 0;
		struct weft_counter known =
		    is_left ? get_known_counter(f, &m->counters[i], horizon_ns) : (struct weft_counter){0};
		const struct weft_counter *c = is_left ? &known : &m->counters[i];
		struct flow flow = measure_flow(c);
		if (c->count >= least && is_backlog(f, c, &flow, horizon_ns))
			report_backlog(f, c, &flow, false);
		else if (c->count >= MIN_CHANGES && is_drained(f, c))
			report_drained(f, c);
		else if (horizon_ns <= 0 && has_only_grown(f, c, &flow, 0, LITTLE_DIVISOR) && is_consumed(c))
			report_backlog(f, c, &flow, true);
		free(known.samples);
	}
}
