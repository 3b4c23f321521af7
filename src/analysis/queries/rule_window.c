/* rule_window.c: checks a rule over a moving window (rule_window.h).
 *
 * A window consists of panes: a pane is one of the steps in which the window moves.  Each pane has only sums of its samples, so
 * that memory does not grow with the trace.  SPDX-License-Identifier: ISC */
#include "analysis/queries/rule_window.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/delays.h"
#include "analysis/index/link_index.h"
#include "analysis/index/names.h"
#include "analysis/queries/rule_private.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/kernel.h"

enum { PANES = 10, MAX_BREACHES = 64, WHY_BYTES = 160 };

/* A value that a rule measures, with its time. */
struct sample {
	int64_t utc_ns;
	int64_t value;    /* a duration, a counter's value, or the change of the number in flight */
	uint32_t promise; /* the promise that was measured, or the number of the finding */
	bool has_failed;
};

/* The samples of one step of the window. */
struct pane {
	int64_t number; /* number of the step: the pane begins at number * pane_ns */
	uint64_t count, failed;
	int64_t worst; /* the most extreme value of the pane, if has_value */
	bool has_value;
	int64_t bad_ns; /* UTC time of the first sample that breaks the rule by itself; INT64_MAX if there is none */
	char why[WHY_BYTES];
};

/* The time at which a process started. */
struct process_start {
	uint64_t pid;
	int64_t utc_ns;
};

struct weft_rule_window {
	struct weft_rule rule;
	int64_t after_ns;
	int64_t pane_ns; /* length of a pane; 0 if one pane has the samples of the whole trace */
	int64_t pane_count;
	struct pane panes[PANES];
	/* statistics by pane, then one item for sums; NULL if the rule is not about a percentile */
	struct weft_running_stats *stats;
	WEFT_VEC(struct process_start) starts;
	WEFT_VEC(struct sample) samples; /* of the current update */
	struct weft_findings *findings;  /* findings of the current update, or NULL */
	bool has_begun;
	int64_t begin_ns;  /* UTC time since which samples count for the rule */
	int64_t newest;    /* number of the newest pane */
	int64_t idle;      /* number of panes since the last sample */
	int64_t read_ns;   /* UTC time until which all events were read; INT64_MIN if none were */
	int64_t unseen_ns; /* total time between models for which no model had the events */
	int64_t offset_ns; /* difference that makes a UTC time of a time of the model */
	int64_t now_ns;    /* UTC time of the end of the newest model */
	int64_t level;     /* number in flight, or value of the counter, after the newest sample */
	bool has_level, is_measurable, was_checked, was_known, is_broken;
	int64_t worst; /* worst value of a window so far, if was_known */
	uint64_t worst_count;
	char lack[96]; /* the reason why the rule cannot be measured */
	WEFT_VEC(struct weft_rule_breach) breaches;
	uint64_t breach_count;
};

/* ---- Properties of a rule ---- */

static bool is_percentile(const struct weft_rule *rule)
{
	return rule->measure == WEFT_MEASURE_P50 || rule->measure == WEFT_MEASURE_P90 || rule->measure == WEFT_MEASURE_P99;
}

static bool is_level(const struct weft_rule *rule)
{
	return rule->measure == WEFT_MEASURE_PENDING || rule->measure == WEFT_MEASURE_COUNTER;
}

/* Returns whether the value of the rule is that of the most extreme sample. */
static bool is_extreme(const struct weft_rule *rule)
{
	return is_level(rule) || rule->measure == WEFT_MEASURE_STALL || rule->measure == WEFT_MEASURE_OFFCPU ||
	       rule->measure == WEFT_MEASURE_MAX;
}

static bool counts_promises(const struct weft_rule *rule)
{
	return !is_extreme(rule) && rule->measure != WEFT_MEASURE_FINDINGS;
}

static bool is_lower_bound(const struct weft_rule *rule)
{
	return rule->relation == WEFT_MORE || rule->relation == WEFT_MORE_EQUAL;
}

/* Returns whether the rule is about the number at the end of the window, not about the highest number. */
static bool is_about_end(const struct weft_rule_window *w)
{
	return is_level(&w->rule) && !w->pane_ns;
}

static bool takes_lowest(const struct weft_rule *rule)
{
	return is_level(rule) && is_lower_bound(rule);
}

/* Returns whether a window that breaks the rule stays broken whatever samples follow in it, so that it need not be complete. */
static bool is_final_early(const struct weft_rule *rule)
{
	const bool has_upper_bound = rule->relation == WEFT_LESS || rule->relation == WEFT_LESS_EQUAL ||
				     (rule->relation == WEFT_EQUAL && rule->limit == 0);
	return takes_lowest(rule) || (has_upper_bound && !is_percentile(rule) && !rule->is_share);
}

/* Returns whether each model contains again what earlier models showed, so that all of its samples are taken again. */
static bool takes_all_again(const struct weft_rule *rule)
{
	return rule->measure == WEFT_MEASURE_STALL || rule->measure == WEFT_MEASURE_OFFCPU ||
	       rule->measure == WEFT_MEASURE_FINDINGS;
}

static bool is_worse(const struct weft_rule *rule, int64_t a, int64_t b)
{
	return is_lower_bound(rule) ? a < b : a > b;
}

/* ---- Panes ---- */

static int64_t get_pane_number(const struct weft_rule_window *w, int64_t utc_ns)
{
	if (!w->pane_ns)
		return 0;
	return utc_ns / w->pane_ns - (utc_ns % w->pane_ns < 0);
}

static size_t get_pane_index(const struct weft_rule_window *w, int64_t number)
{
	const int64_t index = number % w->pane_count;
	return (size_t)(index < 0 ? index + w->pane_count : index);
}

static void clear_pane(struct weft_rule_window *w, int64_t number)
{
	const size_t index = get_pane_index(w, number);
	w->panes[index] = (struct pane){
	    .number = number, .worst = w->level, .has_value = is_level(&w->rule) && w->has_level, .bad_ns = INT64_MAX};
	if (w->stats)
		weft_running_stats_clear(&w->stats[index]);
}

/* Returns the pane with a number; NULL if the pane has left the window. */
static struct pane *find_pane(struct weft_rule_window *w, int64_t number)
{
	struct pane *pane = &w->panes[get_pane_index(w, number)];
	return pane->number == number ? pane : NULL;
}

/* ---- The value of a window ---- */

/* The measured value of a window: of the newest pane and the panes before it. */
struct measured {
	int64_t value;
	bool is_known;
	uint64_t count;
	const struct pane *pane; /* the pane that has the value, or NULL */
};

static int64_t find_percentile(struct weft_rule_window *w, uint64_t *count)
{
	struct weft_running_stats *sum = &w->stats[w->pane_count];
	weft_running_stats_clear(sum);
	for (int64_t i = 0; i < w->pane_count; i++)
		if (find_pane(w, w->newest - i))
			weft_running_stats_merge(sum, &w->stats[get_pane_index(w, w->newest - i)]);
	*count = sum->ended;
	return weft_running_stats_lifetime(sum, weft__rule_percentile(w->rule.measure));
}

static struct measured measure_window(struct weft_rule_window *w)
{
	const struct weft_rule *rule = &w->rule;
	struct measured out = {0};
	uint64_t failed = 0;
	for (int64_t i = 0; i < w->pane_count; i++) {
		const struct pane *pane = find_pane(w, w->newest - i);
		if (!pane)
			continue;
		out.count += pane->count;
		failed += pane->failed;
		if (!is_extreme(rule)) {
			out.pane = out.pane || !pane->why[0] ? out.pane : pane;
		} else if (pane->has_value &&
			   (!out.is_known || (takes_lowest(rule) ? pane->worst < out.value : pane->worst > out.value))) {
			out.value = pane->worst;
			out.is_known = true;
			out.pane = pane;
		}
	}
	if (is_about_end(w)) {
		out = (struct measured){.value = w->level, .is_known = w->has_level};
	} else if (is_percentile(rule)) {
		out.value = find_percentile(w, &out.count);
		out.is_known = out.count > 0;
	} else if (rule->is_share) {
		out.is_known = out.count > 0;
		out.value = out.count ? weft__rule_share(rule, failed, out.count) : 0;
	} else if (rule->measure == WEFT_MEASURE_FAILED) {
		out.is_known = true;
		out.value = (int64_t)failed;
	} else if (!is_extreme(rule)) {
		out.is_known = true;
		out.value = (int64_t)out.count;
	} else if (!is_level(rule) && rule->measure != WEFT_MEASURE_MAX) {
		out.is_known = w->is_measurable;
	}
	return out;
}

/* ---- Breaches ---- */

static int64_t get_pane_end(const struct weft_rule_window *w, int64_t number)
{
	return w->pane_ns ? (number + 1) * w->pane_ns : w->now_ns;
}

static bool add_breach(struct weft_rule_window *w, const struct measured *window)
{
	const struct pane *newest = find_pane(w, w->newest);
	if (w->breaches.count == MAX_BREACHES)
		memmove(w->breaches.items, w->breaches.items + 1, --w->breaches.count * sizeof *w->breaches.items);
	struct weft_rule_breach *breach = weft_vec_push(&w->breaches);
	if (!breach)
		return false;
	const int64_t bad_ns = newest && newest->bad_ns != INT64_MAX ? newest->bad_ns : get_pane_end(w, w->newest);
	*breach = (struct weft_rule_breach){.number = ++w->breach_count,
	    .utc_ns = bad_ns,
	    .time_ns = weft_min_ns(bad_ns, w->now_ns) - w->offset_ns,
	    .value = window->value};
	if (window->pane && window->pane->why[0])
		snprintf(breach->why, sizeof breach->why, "%s", window->pane->why);
	else if (counts_promises(&w->rule))
		snprintf(breach->why, sizeof breach->why, "of %" PRIu64 " promises", window->count);
	return true;
}

/* Checks the window that ends with the newest pane; returns false when out of memory. */
static bool check_window(struct weft_rule_window *w)
{
	const struct measured window = measure_window(w);
	w->was_checked = true;
	const bool was_broken = w->is_broken;
	w->is_broken = window.is_known && !weft__rule_is_satisfied(w->rule.relation, window.value, w->rule.limit);
	if (window.is_known && (!w->was_known || is_about_end(w) || is_worse(&w->rule, window.value, w->worst))) {
		w->worst = window.value;
		w->worst_count = window.count;
	}
	w->was_known |= window.is_known;
	if (w->is_broken && !was_broken && !add_breach(w, &window))
		return false;
	/* A rule about the whole trace has a single pane, whose checks follow one another. */
	if (!w->pane_ns)
		w->panes[0].bad_ns = INT64_MAX;
	return true;
}

/* Checks the window that ends now, because the newest pane is complete. */
static bool check_complete_window(struct weft_rule_window *w)
{
	const bool is_full = (w->newest + 1 - w->pane_count) * w->pane_ns >= w->begin_ns;
	return (!is_full && !is_final_early(&w->rule)) || check_window(w);
}

/* Moves the window until the pane `number` is its newest pane.  Windows without samples have the same result, so long silences
 * are skipped. */
static bool advance_to(struct weft_rule_window *w, int64_t number)
{
	while (w->newest < number) {
		if (!check_complete_window(w))
			return false;
		const bool is_silent = w->idle > 2 * w->pane_count && number - w->newest > w->pane_count;
		w->newest = is_silent ? number - w->pane_count : w->newest + 1;
		w->idle++;
		clear_pane(w, w->newest);
	}
	return true;
}

/* ---- When a process began ---- */

static void note_start(struct weft_rule_window *w, uint64_t pid, int64_t utc_ns)
{
	for (size_t i = 0; i < w->starts.count; i++)
		if (w->starts.items[i].pid == pid) {
			w->starts.items[i].utc_ns = weft_min_ns(w->starts.items[i].utc_ns, utc_ns);
			return;
		}
	struct process_start *start = weft_vec_push(&w->starts);
	if (start)
		*start = (struct process_start){pid, utc_ns};
}

static uint64_t get_pid(const struct weft_model *m, uint16_t stream)
{
	if (!m->trace->part_count || stream >= m->trace->stream_count)
		return m->trace->pid;
	return m->trace->parts[m->trace->streams[stream].part].pid;
}

/* A process is as old as its oldest promise.  A pending promise is known even if the ring has overwritten its creation. */
static void find_starts(struct weft_rule_window *w, const struct weft_model *m)
{
	int64_t first_ns = INT64_MAX;
	if (!m->trace->part_count)
		note_start(w, m->trace->pid, w->offset_ns);
	for (uint32_t p = 1; p < m->promise_count; p++) {
		const struct weft_promise *promise = &m->promises[p];
		const bool is_next = p > 1 && promise->stream == promise[-1].stream && promise->start_ns >= promise[-1].start_ns;
		if (!is_next)
			note_start(w, get_pid(m, promise->stream), promise->start_ns + w->offset_ns);
	}
	for (size_t i = 0; i < w->starts.count; i++)
		first_ns = weft_min_ns(first_ns, w->starts.items[i].utc_ns);
	if (w->has_begun || first_ns == INT64_MAX)
		return;
	w->has_begun = true;
	w->begin_ns = first_ns + w->after_ns;
	w->newest = get_pane_number(w, w->begin_ns);
	clear_pane(w, w->newest);
}

/* Returns the time in the model from which on the process of a thread counts. */
static int64_t find_begin(const struct weft_rule_window *w, const struct weft_model *m, uint16_t stream)
{
	const uint64_t pid = get_pid(m, stream);
	if (!w->after_ns)
		return INT64_MIN;
	for (size_t i = 0; i < w->starts.count; i++)
		if (w->starts.items[i].pid == pid)
			return w->starts.items[i].utc_ns + w->after_ns - w->offset_ns;
	return INT64_MIN;
}

/* ---- Samples ---- */

static bool add_sample(struct weft_rule_window *w, int64_t time_ns, int64_t value, uint32_t promise, bool has_failed)
{
	const int64_t utc_ns = time_ns + w->offset_ns;
	if (!takes_all_again(&w->rule) && utc_ns <= w->read_ns)
		return true;
	struct sample *sample = weft_vec_push(&w->samples);
	if (sample)
		*sample = (struct sample){utc_ns, value, promise, has_failed};
	return sample;
}

/* Adds a sample for the creation or the end of a promise. */
static bool sample_promise(struct weft_rule_window *w, const struct weft_model *m, uint32_t p, int64_t ended_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	const bool has_failed = promise->end == WEFT_END_FAILED && weft_has_ended(promise);
	if (promise->start_ns < find_begin(w, m, promise->stream))
		return true;
	if (w->rule.measure == WEFT_MEASURE_COUNT)
		return add_sample(w, promise->start_ns, 0, p, false);
	return ended_ns == WEFT_NEVER || add_sample(w, ended_ns, ended_ns - promise->start_ns, p, has_failed);
}

/* Adds samples for the changes of the number in flight, and counts the promises that were in flight before. */
static bool sample_flight(struct weft_rule_window *w, const struct weft_model *m, uint32_t p, int64_t ended_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	if ((!w->rule.has_argument && !(promise->flags & WEFT_PROMISE_NEVER_RESOLVED)) ||
	    promise->start_ns < find_begin(w, m, promise->stream))
		return true;
	const bool has_started = promise->start_ns + w->offset_ns <= w->read_ns,
		   has_ended = ended_ns != WEFT_NEVER && ended_ns + w->offset_ns <= w->read_ns;
	w->level += has_started && !has_ended;
	return add_sample(w, promise->start_ns, 1, p, false) && (ended_ns == WEFT_NEVER || add_sample(w, ended_ns, -1, p, false));
}

static int sample_promises(struct weft_rule_window *w, const struct weft_model *m)
{
	struct weft_link_index link_index;
	const bool is_flight = w->rule.measure == WEFT_MEASURE_PENDING;
	if (weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_NONE, NULL) < 0)
		return WEFT_ENOMEM;
	bool ok = true;
	if (is_flight) {
		w->level = 0;
		w->has_level = true;
	}
	for (uint32_t p = 1; ok && p < m->promise_count; p++)
		if (weft__rule_is_about(m, &w->rule, p))
			ok = (is_flight ? sample_flight : sample_promise)(w, m, p, link_index.ended_ns[p]);
	weft_link_index_finish(&link_index);
	return ok ? WEFT_OK : WEFT_ENOMEM;
}

static int sample_counter(struct weft_rule_window *w, const struct weft_model *m)
{
	snprintf(w->lack, sizeof w->lack, "there is no such counter");
	for (size_t i = 0; i < m->counter_count; i++) {
		const struct weft_counter *counter = &m->counters[i];
		if (!weft_str_equal(counter->name, w->rule.argument))
			continue;
		for (size_t k = 0; k < counter->count; k++)
			if (!add_sample(w, counter->samples[k].time_ns, counter->samples[k].value, WEFT_SYSTEM, false))
				return WEFT_ENOMEM;
	}
	return WEFT_OK;
}

/* Adds a sample for the part of an interval that lies after the start of its process. */
static bool sample_interval(
    struct weft_rule_window *w, const struct weft_model *m, int64_t start_ns, int64_t end_ns, uint16_t stream, uint32_t p)
{
	const int64_t begin_ns = find_begin(w, m, stream);
	return end_ns <= begin_ns || add_sample(w, end_ns, end_ns - weft_max_ns(start_ns, begin_ns), p, false);
}

static int sample_stalls(struct weft_rule_window *w, const struct weft_model *m)
{
	weft__stalls_vec list = {0};
	struct weft__stall longest;
	/* If all intervals are far below the limit, only the longest one becomes a sample. */
	const int64_t least_ns = weft_max_ns(w->rule.limit / 8, 1);
	const int found = weft__stalls_find_longest(&longest, m);
	w->is_measurable = true;
	if (found <= 0)
		return found;
	bool ok = true;
	if (longest.end_ns - longest.start_ns < least_ns) {
		ok = sample_interval(w, m, longest.start_ns, longest.end_ns, longest.stream, longest.promise);
		return ok ? WEFT_OK : WEFT_ENOMEM;
	}
	const int status = weft__stalls_find(&list, m, least_ns, NULL);
	for (size_t i = 0; status == WEFT_OK && ok && i < list.count; i++) {
		const struct weft__stall *s = &list.items[i];
		if (s->is_on_loop || !longest.is_on_loop)
			ok = sample_interval(w, m, s->start_ns, s->end_ns, s->stream, s->promise);
	}
	weft_vec_free(&list);
	return ok ? status : WEFT_ENOMEM;
}

static int sample_off_cpu(struct weft_rule_window *w, const struct weft_model *m)
{
	snprintf(w->lack, sizeof w->lack, "the trace has no CPU times; record with weft record --kernel");
	if (!m->kernel || m->kernel->info.level == WEFT_LEVEL_SELF)
		return WEFT_OK;
	w->is_measurable = true;
	for (uint32_t p = 1; p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
			const struct weft_run *run = &m->runs[r];
			const uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
			const int64_t from_ns = weft_max_ns(run->start_ns, find_begin(w, m, stream)),
				      off_ns = from_ns < run->end_ns ? weft_kernel_off_ns(m, stream, from_ns, run->end_ns) : 0;
			if (off_ns > 0 && !add_sample(w, run->end_ns, off_ns, p, false))
				return WEFT_ENOMEM;
		}
	return WEFT_OK;
}

static int sample_findings(struct weft_rule_window *w, const struct weft_model *m, struct weft_error *err)
{
	const int status = weft_explain(&w->findings, m, NULL, err);
	if (status < 0)
		return status;
	/* A finding may have changed, so all findings are counted again. */
	for (size_t i = 0; i < PANES; i++) {
		w->panes[i].count = 0;
		w->panes[i].why[0] = '\0';
	}
	bool ok = true;
	for (size_t i = 0; ok && i < w->findings->count; i++) {
		const struct weft_finding *f = &w->findings->findings[i];
		if (weft__rule_counts_finding(&w->rule, f) && f->end_ns > find_begin(w, m, m->promises[f->promise].stream))
			ok = add_sample(w, weft_min_ns(f->end_ns, m->end_ns), 0, (uint32_t)i, false);
	}
	return ok ? WEFT_OK : WEFT_ENOMEM;
}

static int take_samples(struct weft_rule_window *w, const struct weft_model *m, struct weft_error *err)
{
	switch (w->rule.measure) {
	case WEFT_MEASURE_STALL: return sample_stalls(w, m);
	case WEFT_MEASURE_OFFCPU: return sample_off_cpu(w, m);
	case WEFT_MEASURE_COUNTER: return sample_counter(w, m);
	case WEFT_MEASURE_FINDINGS: return sample_findings(w, m, err);
	default: snprintf(w->lack, sizeof w->lack, "no promise with that label ended"); return sample_promises(w, m);
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;
	/* If an end and a creation have the same time, the end is sorted first, because the number in flight did not rise in
	 * between. */
	return WEFT_ORDER(x->utc_ns, y->utc_ns) ?: WEFT_ORDER(x->value, y->value) ?: WEFT_ORDER(x->promise, y->promise);
}

/* ---- Adding samples to panes ---- */

static void name_sample(
    const struct weft_rule_window *w, const struct weft_model *m, const struct sample *sample, struct pane *pane)
{
	char name[WEFT_NAME_BYTES], site[WEFT_NAME_BYTES];
	if (w->rule.measure == WEFT_MEASURE_FINDINGS)
		snprintf(pane->why, sizeof pane->why, "%.158s", w->findings->findings[sample->promise].title);
	if (w->rule.measure == WEFT_MEASURE_FINDINGS || sample->promise == WEFT_SYSTEM || is_level(&w->rule))
		return;
	weft_name_site(m, sample->promise, site);
	snprintf(
	    pane->why, sizeof pane->why, "%.90s%s%.60s", weft_name_promise(m, sample->promise, name), *site ? " at " : "", site);
}

/* Applies a sample to the number in flight or to the value of the counter. */
static void move_level(struct weft_rule_window *w, const struct sample *sample)
{
	w->level = w->rule.measure == WEFT_MEASURE_PENDING ? w->level + sample->value : sample->value;
	w->has_level = true;
}

static void add_extreme(struct weft_rule_window *w, const struct weft_model *m, const struct sample *sample, struct pane *pane)
{
	if (is_level(&w->rule))
		move_level(w, sample);
	const int64_t value = is_level(&w->rule) ? w->level : sample->value;
	if (!weft__rule_is_satisfied(w->rule.relation, value, w->rule.limit))
		pane->bad_ns = weft_min_ns(pane->bad_ns, sample->utc_ns);
	if (pane->has_value && (takes_lowest(&w->rule) ? value >= pane->worst : value <= pane->worst))
		return;
	pane->worst = value;
	pane->has_value = true;
	name_sample(w, m, sample, pane);
}

static bool put_sample(struct weft_rule_window *w, const struct weft_model *m, const struct sample *sample)
{
	const int64_t number = get_pane_number(w, sample->utc_ns);
	if (number > w->newest && !advance_to(w, number))
		return false;
	struct pane *pane = find_pane(w, number);
	const bool is_before = sample->utc_ns < w->begin_ns;
	if (is_level(&w->rule) && (is_before || !pane)) {
		move_level(w, sample);
		if (is_before) /* the first window starts with this number in flight */
			clear_pane(w, w->newest);
	}
	if (is_before || !pane)
		return true;
	w->idle = 0;
	pane->count++;
	pane->failed += sample->has_failed;
	if (w->stats)
		weft_running_stats_add(&w->stats[get_pane_index(w, number)], 0, sample->value, sample->has_failed);
	else if (is_extreme(&w->rule))
		add_extreme(w, m, sample, pane);
	else if (!pane->why[0] && (sample->has_failed || w->rule.measure == WEFT_MEASURE_FINDINGS))
		name_sample(w, m, sample, pane);
	return true;
}

/* Returns the time of the last event, as far as promises show it. */
static int64_t find_last_event(const struct weft_model *m)
{
	int64_t last_ns = m->link_count ? m->links[m->link_count - 1].time_ns : 0;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		const struct weft_promise *promise = &m->promises[p];
		last_ns = weft_max_ns(last_ns, promise->start_ns);
		last_ns = weft_has_ended(promise) ? weft_max_ns(last_ns, promise->end_ns) : last_ns;
	}
	for (size_t i = 0; i < m->counter_count; i++)
		if (m->counters[i].count)
			last_ns = weft_max_ns(last_ns, m->counters[i].samples[m->counters[i].count - 1].time_ns);
	return last_ns;
}

static bool put_samples(struct weft_rule_window *w, const struct weft_model *m)
{
	bool ok = true;
	weft_sort(w->samples.items, w->samples.count, sizeof *w->samples.items, compare_samples);
	for (size_t i = 0; ok && i < w->samples.count; i++)
		ok = put_sample(w, m, &w->samples.items[i]);
	w->samples.count = 0;
	ok = ok && advance_to(w, get_pane_number(w, w->now_ns));
	return ok && ((w->pane_ns && !is_final_early(&w->rule)) || check_window(w));
}

/* ---- Interface ---- */

int weft_rule_window_create(struct weft_rule_window **out, const struct weft_rule *rule, int64_t after_ns, struct weft_error *err)
{
	struct weft_rule_window *w = calloc(1, sizeof *w);
	const int64_t panes = rule->window_ns ? PANES : 1;
	struct weft_running_stats *stats = w && is_percentile(rule) ? calloc((size_t)panes + 1, sizeof *stats) : NULL;
	if (!w || (is_percentile(rule) && !stats)) {
		free(w);
		return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
	}
	*w = (struct weft_rule_window){.rule = *rule,
	    .after_ns = weft_max_ns(after_ns, 0),
	    .pane_ns = rule->window_ns / PANES,
	    .pane_count = panes,
	    .stats = stats,
	    .read_ns = INT64_MIN};
	for (size_t i = 0; i < PANES; i++)
		w->panes[i].number = INT64_MIN;
	for (int64_t i = 0; stats && i <= panes; i++)
		stats[i].limit_ns = rule->limit;
	*out = w;
	return WEFT_OK;
}

void weft_rule_window_destroy(struct weft_rule_window *w)
{
	if (!w)
		return;
	weft_vec_free(&w->starts);
	weft_vec_free(&w->samples);
	weft_vec_free(&w->breaches);
	free(w->stats);
	free(w);
}

int weft_rule_window_update(struct weft_rule_window *w, const struct weft_model *m, int64_t known_from_ns, struct weft_error *err)
{
	const int64_t seen_ns = w->now_ns;
	w->offset_ns = m->start_ns + m->trace->clock_origin_ns;
	w->now_ns = m->end_ns + w->offset_ns;
	find_starts(w, m);
	if (!w->has_begun || w->now_ns < w->begin_ns)
		return WEFT_OK;
	if (w->read_ns != INT64_MIN)
		w->unseen_ns += weft_max_ns(known_from_ns + w->offset_ns - seen_ns, 0);
	int status = take_samples(w, m, err);
	if (status == WEFT_OK && !put_samples(w, m))
		status = WEFT_ENOMEM;
	if (w->findings)
		weft_findings_destroy(w->findings);
	w->findings = NULL;
	w->read_ns = weft_max_ns(w->read_ns, find_last_event(m) + w->offset_ns);
	return status < 0 ? weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status)) : WEFT_OK;
}

static void describe_breaches(struct weft_rule_result *out, const struct weft_rule_window *w)
{
	char time[WEFT_DURATION_BYTES];
	const struct weft_rule_breach *first = &w->breaches.items[0];
	weft_duration_format(time, sizeof time, first->time_ns);
	const char *of = first->why[0] ? ": " : "";
	if (w->breach_count == 1)
		snprintf(out->why, sizeof out->why, "at %s%s%s", time, of, first->why);
	else
		snprintf(out->why, sizeof out->why,
		    first->number == 1 ? "%" PRIu64 " times, first at %s%s%s" : "%" PRIu64 " times, last at %s%s%s",
		    w->breach_count, time, of, first->why);
}

struct weft_rule_result weft_rule_window_result(struct weft_rule_window *w, bool is_end)
{
	struct weft_rule_result out = {.outcome = WEFT_RULE_PASSED};
	char text[WEFT_DURATION_BYTES];
	if (is_end && !w->was_checked && w->read_ns != INT64_MIN)
		check_window(w);
	out.value = w->worst;
	out.breaches = w->breach_count;
	if (is_about_end(w) ? w->is_broken : w->breach_count > 0) {
		out.outcome = WEFT_RULE_VIOLATED;
		describe_breaches(&out, w);
	} else if (!w->was_known) {
		out.outcome = WEFT_RULE_UNKNOWN;
		snprintf(out.why, sizeof out.why, "%s", w->was_checked ? w->lack : "the trace is too short");
	} else if (counts_promises(&w->rule))
		snprintf(out.why, sizeof out.why, "of %" PRIu64 " promises", w->worst_count);
	const size_t len = strlen(out.why);
	if (w->unseen_ns > 0)
		snprintf(out.why + len, sizeof out.why - len, "%sthe events of %s are missing", len ? "; " : "",
		    weft_duration_text(text, w->unseen_ns));
	return out;
}

const struct weft_rule_breach *weft_rule_window_breaches(const struct weft_rule_window *w, size_t *count)
{
	*count = w->breaches.count;
	return w->breaches.items;
}
