/* delays.c: finds promises that were ready but did not run.  SPDX-License-Identifier: ISC */
#include "analysis/index/delays.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/account.h"
#include "base/duration.h"
#include "base/known_strings.h"
#include "base/search.h"
#include "base/sort.h"

/* Shortest sleep which shows that the loop had nothing to do. */
#define MIN_SLEEP_NS 100000

/* A timer was due during a stall if it is called after the stall within one TIMER_DIVISOR-th of the stall's length. */
#define TIMER_DIVISOR 20

/* ---- Ready promises ---- */

/* Returns when the promise that reads was ready: before the read, or before the run whose first action is the read, but only
 * after its input had ended. */
static struct weft__ready get_ready_interval(
    const struct weft_link_index *link_index, const struct weft_link *read, int64_t last_action_ns)
{
	struct weft_accounts *accounts = link_index->accounts;
	const int64_t ended_ns = link_index->ended_ns[read->to];
	int64_t since_ns, to_ns = read->time_ns;
	enum weft_step_kind state = weft_account_state_before(accounts, read->from, to_ns, &since_ns);
	if (state == WEFT_STEP_RUNNING && since_ns > last_action_ns && since_ns >= ended_ns) {
		to_ns = since_ns;
		state = weft_account_state_before(accounts, read->from, to_ns, &since_ns);
	}
	const int64_t from_ns = state == WEFT_STEP_READY ? weft_max_ns(since_ns, ended_ns) : to_ns;
	return (struct weft__ready){weft_min_ns(from_ns, to_ns), to_ns, read->from, read->to, read->stream};
}

static bool find_ready(struct weft__delays *d, struct weft__cancel_token *cancel)
{
	const struct weft_link_index *link_index = d->link_index;
	const struct weft_model *m = link_index->model;
	int64_t *last_actions = malloc(m->promise_count * sizeof *last_actions);
	bool ok = last_actions;
	for (size_t p = 0; ok && p < m->promise_count; p++)
		last_actions[p] = INT64_MIN;
	for (size_t l = 0; ok && l < m->link_count && (ok = weft__cancel_token_may_continue(cancel, l, m->link_count)); l++) {
		const struct weft_link *link = &m->links[l];
		int64_t ended_ns = link_index->ended_ns[link->to], before_ns = last_actions[link->from];
		last_actions[link->from] = link->time_ns;
		if (link->kind != WEFT_LINK_READ || link->from == WEFT_SYSTEM || ended_ns == WEFT_NEVER ||
		    link->time_ns - ended_ns < d->least_ns || m->promises[link->from].flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		struct weft__ready ready = get_ready_interval(link_index, link, before_ns), *added;
		if (ready.to_ns - ready.from_ns < d->least_ns)
			continue;
		if ((ok = (added = weft_vec_push(&d->ready))))
			*added = ready;
	}
	free(last_actions);
	return ok && !weft_accounts_failed(link_index->accounts);
}

/* ---- Stalls ---- */

/* Returns the index of the first stall of a stream that ends after a time. */
static size_t find_first_stall_after(const struct weft__delays *d, uint16_t stream, int64_t time_ns)
{
	const struct weft__stall *stalls = d->stalls.items;
	return WEFT_FIND_FIRST(
	    i, 0, d->stalls.count, stalls[i].stream > stream || (stalls[i].stream == stream && stalls[i].end_ns > time_ns));
}

/* Counts a ready promise as a victim of each stall that overlaps its wait; returns the total overlap. */
static int64_t charge_stalls(struct weft__delays *d, const struct weft__ready *r)
{
	struct weft__stall *stalls = d->stalls.items;
	size_t first = find_first_stall_after(d, r->stream, r->from_ns), last = find_first_stall_after(d, r->stream, r->to_ns);
	/* The stall at `last` ends after the read, but may start before the read. */
	if (last < d->stalls.count && stalls[last].stream == r->stream && stalls[last].start_ns < r->to_ns)
		last++;
	int64_t taken_ns = 0;
	if (first >= last)
		return 0;
	for (size_t i = first; i < last; i = i == first && last - first > 1 ? last - 1 : last) {
		struct weft__stall *s = &stalls[i];
		int64_t overlap_ns = weft_min_ns(s->end_ns, r->to_ns) - weft_max_ns(s->start_ns, r->from_ns);
		taken_ns += overlap_ns;
		if (overlap_ns < d->least_ns)
			continue;
		s->victims++;
		if (i + 1 < d->stalls.count)
			stalls[i + 1].victims--;
		s->delay_ns += overlap_ns;
	}
	if (last - first > 2) {
		stalls[first + 1].victims++;
		stalls[first + 1].spanning++;
		stalls[last - 1].victims--;
		stalls[last - 1].spanning--;
		taken_ns += stalls[last - 1].before_ns - stalls[first + 1].before_ns;
	}
	return taken_ns;
}

/* Computes for each stall the total length of the stalls before it, which charge_stalls() needs. */
static bool sum_up_lengths(struct weft__delays *d)
{
	for (size_t i = 1; i < d->stalls.count; i++) {
		const struct weft__stall *before = &d->stalls.items[i - 1];
		d->stalls.items[i].before_ns = before->before_ns + before->end_ns - before->start_ns;
	}
	return true;
}

static void sum_up_stalls(struct weft__delays *d)
{
	int64_t victims = 0, spanning = 0;
	for (size_t i = 0; i < d->stalls.count; i++) {
		struct weft__stall *s = &d->stalls.items[i];
		victims += s->victims;
		spanning += s->spanning;
		s->victims = victims;
		s->delay_ns += spanning * (s->end_ns - s->start_ns);
	}
}

/* Returns the start of the next real sleep of a thread, or until_ns if it is earlier. */
static int64_t find_next_sleep(const struct weft_model *m, uint16_t stream, int64_t time_ns, int64_t until_ns)
{
	for (size_t s = weft_first_sleep_from(m, time_ns); s < m->sleep_count && m->sleeps[s].start_ns < until_ns; s++)
		if (m->sleeps[s].stream == stream && m->sleeps[s].end_ns - m->sleeps[s].start_ns >= MIN_SLEEP_NS)
			return m->sleeps[s].start_ns;
	return until_ns;
}

/* Returns whether the link shows an external event that the stall may have delayed.  The link of a delayed event ends or calls
 * back a promise that existed when the stall started, or that another thread created meanwhile.  Some ends and calls are never
 * late: the end of a thread, the end of the timer whose callback stalled, and handles that are called in each turn of the loop,
 * such as libuv's check handles. */
static bool is_late(const struct weft_model *m, const struct weft_link *link, const struct weft__stall *s)
{
	const struct weft_promise *p = &m->promises[link->to];
	bool is_from_outside = link->kind == WEFT_LINK_SIGNAL ? p->kind != WEFT_KIND_HANDLE
							      : link->kind == WEFT_LINK_RESOLVE && p->end_ns == link->time_ns;
	return is_from_outside && link->from == WEFT_SYSTEM && link->stream == s->stream &&
	       p->start_ns <= (p->stream == s->stream ? s->start_ns : s->end_ns) &&
	       (link->to != s->promise ||
		   (link->kind == WEFT_LINK_RESOLVE && p->kind != WEFT_KIND_TIMER && !weft_kind_has(p->kind, WEFT_TRAIT_THREAD)));
}

int64_t weft__delays_late_until_ns(const struct weft__delays *d, const struct weft__stall *s)
{
	int64_t until_ns = s->end_ns + (s->end_ns - s->start_ns);
	if ((size_t)(s - d->stalls.items) + 1 < d->stalls.count && s[1].stream == s->stream)
		until_ns = weft_min_ns(until_ns, s[1].start_ns);
	return find_next_sleep(d->link_index->model, s->stream, s->end_ns, until_ns);
}

const struct weft__stall *weft__delays_stall_before(const struct weft__delays *d, uint16_t stream, int64_t time_ns)
{
	const struct weft__stall *s = &d->stalls.items[find_first_stall_after(d, stream, time_ns)];
	return s > d->stalls.items && s[-1].stream == stream ? s - 1 : NULL;
}

/* Returns the timeout of a one-shot timer, with which the adapters begin its label: "50 ms" or "1.5 s retry"; -1 if unknown.
 * Timeouts of a longer duration are rounded in labels, so they are not exact. */
static int64_t get_timeout_ns(const struct weft_model *m, uint32_t timer)
{
	enum { MAX_DIGITS = 8, UNIT_BYTES = 2 };
	const uint32_t name = weft_model_name_text(m, timer);
	const struct weft_str label = name == WEFT_NONE ? (struct weft_str){0} : weft_model_text(m, name);
	char text[MAX_DIGITS + UNIT_BYTES];
	uint32_t digits = 0;
	while (digits < label.len && digits < MAX_DIGITS &&
	       ((label.ptr[digits] >= '0' && label.ptr[digits] <= '9') || label.ptr[digits] == '.'))
		digits++;
	const uint32_t unit = digits + 1, end = unit + (unit < label.len && label.ptr[unit] == 'm' ? 2 : 1);
	int64_t timeout_ns;
	if (digits == 0 || end > label.len || label.ptr[digits] != ' ' || (end < label.len && label.ptr[end] != ' '))
		return -1;
	memcpy(text, label.ptr, digits);
	memcpy(text + digits, label.ptr + unit, end - unit);
	return weft_duration_parse(text, digits + end - unit, &timeout_ns) ? timeout_ns : -1;
}

static bool was_restarted(const struct weft_model *m, uint32_t timer, int64_t until_ns)
{
	enum { MAX_LABELS_SCANNED = 8 };
	const uint32_t begin = m->promises[timer].labels, end = m->promises[timer + 1].labels;
	for (uint32_t i = begin; i < end && i - begin < MAX_LABELS_SCANNED && m->labels[i].time_ns <= until_ns; i++)
		if (weft_text_starts_with(weft_model_text(m, m->labels[i].text), WEFT_STRING_RESTARTED))
			return true;
	return false;
}

bool weft__timer_is_restarted(const struct weft_model *m, uint32_t timer)
{
	return was_restarted(m, timer, INT64_MAX);
}

int64_t weft__timer_due_ns(const struct weft_link_index *link_index, uint32_t timer, int64_t time_ns)
{
	enum { EXACT_NS = 1000000000 };
	const struct weft_model *m = link_index->model;
	const struct weft_promise *promise = &m->promises[timer];
	if (promise->kind != WEFT_KIND_TIMER || promise->flags & WEFT_PROMISE_START_UNKNOWN || was_restarted(m, timer, time_ns))
		return INT64_MIN;
	for (uint32_t i = link_index->in_begin[timer]; i < link_index->in_begin[timer + 1]; i++) {
		const struct weft_link *link = &m->links[link_index->in[i]];
		if (link->time_ns >= time_ns)
			break;
		if (link->kind == WEFT_LINK_SIGNAL && link->from == WEFT_SYSTEM)
			return INT64_MIN;
	}
	const int64_t timeout_ns = get_timeout_ns(m, timer);
	return timeout_ns >= 0 && timeout_ns < EXACT_NS ? promise->start_ns + timeout_ns : INT64_MIN;
}

/* Returns whether a timer's first call since the start of the stall was due before its end, judged by the time between the two
 * calls before, or by its timeout if it was not called before. */
static bool was_due(const struct weft_link_index *link_index, size_t link, const struct weft__stall *s)
{
	const struct weft_model *m = link_index->model;
	const struct weft_link *links = m->links;
	const uint32_t timer = links[link].to;
	const size_t begin = link_index->in_begin[timer];
	int64_t calls[2];
	unsigned found = 0;
	for (size_t i = WEFT_FIND_FIRST(k, begin, link_index->in_begin[timer + 1], link_index->in[k] >= link);
	     found < 2 && i-- > begin;) {
		const struct weft_link *before = &links[link_index->in[i]];
		if (before->kind == WEFT_LINK_SIGNAL && before->from == WEFT_SYSTEM)
			calls[found++] = before->time_ns;
	}
	if (found == 0 && !(m->promises[timer].flags & WEFT_PROMISE_START_UNKNOWN) && !weft__timer_is_restarted(m, timer)) {
		const int64_t timeout_ns = get_timeout_ns(m, timer);
		return timeout_ns >= 0 && timeout_ns <= s->end_ns - m->promises[timer].start_ns;
	}
	return found == 2 && calls[0] <= s->start_ns && calls[0] + (calls[0] - calls[1]) <= s->end_ns;
}

uint32_t weft__delays_find_late(
    const struct weft__delays *d, const struct weft__stall *s, struct weft__late_promise *list, uint32_t max_count)
{
	const struct weft_model *m = d->link_index->model;
	const int64_t length_ns = s->end_ns - s->start_ns, until_ns = weft__delays_late_until_ns(d, s);
	/* libevent, and libuv since 1.45, compute the next sleep from the time before the callbacks.  Due timers are then
	 * called one sleep later, and on a busy machine a sleep is long. */
	int64_t timers_until_ns = s->end_ns + length_ns;
	if ((size_t)(s - d->stalls.items) + 1 < d->stalls.count && s[1].stream == s->stream)
		timers_until_ns = weft_min_ns(timers_until_ns, s[1].start_ns);
	uint32_t count = 0;
	for (size_t l = weft_first_link_from(m, s->end_ns);
	     l < m->link_count && m->links[l].time_ns <= weft_max_ns(until_ns, timers_until_ns); l++) {
		const struct weft_link *link = &m->links[l];
		if (!is_late(m, link, s))
			continue;
		const int64_t due_ns = weft__timer_due_ns(d->link_index, link->to, link->time_ns);
		if (due_ns != INT64_MIN && due_ns > s->end_ns - d->least_ns)
			continue;
		if (link->time_ns > until_ns &&
		    (m->promises[link->to].kind != WEFT_KIND_TIMER ||
			(link->time_ns > s->end_ns + length_ns / TIMER_DIVISOR && !was_due(d->link_index, l, s))))
			continue;
		uint32_t i = 0;
		while (i < count && i < max_count && list[i].promise != link->to)
			i++;
		if (i < count && i < max_count)
			continue;
		if (count < max_count)
			list[count] =
			    (struct weft__late_promise){link->to, link->time_ns, due_ns, link->kind == WEFT_LINK_RESOLVE};
		count++;
	}
	return count;
}

/* ---- Starvation ---- */

static int compare_ready(const void *a, const void *b)
{
	const struct weft__ready *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->from_ns, y->from_ns) ?: WEFT_ORDER(x->to_ns, y->to_ns) ?:
	       WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->input, y->input);
}

/* Combines starving promises whose waits overlap into periods; `longest` of a period is the promise that was ready for
 * longest. */
static bool find_famines(struct weft__delays *d)
{
	weft_sort(d->starving, d->starving_count, sizeof *d->starving, compare_ready);
	for (size_t i = 0; i < d->starving_count; i++) {
		const struct weft__ready *r = &d->starving[i];
		struct weft__starvation_period *last =
		    d->starvation_periods.count ? &d->starvation_periods.items[d->starvation_periods.count - 1] : NULL;
		if (!last || last->longest.stream != r->stream || r->from_ns >= last->end_ns) {
			if (!(last = weft_vec_push(&d->starvation_periods)))
				return false;
			*last = (struct weft__starvation_period){.start_ns = r->from_ns, .longest = *r, .first = i};
		}
		last->end_ns = weft_max_ns(last->end_ns, r->to_ns);
		last->victims++;
		last->last = i;
		if (r->to_ns - r->from_ns > last->longest.to_ns - last->longest.from_ns)
			last->longest = *r;
	}
	return true;
}

static bool count_overtakers(
    const struct weft__delays *d, struct weft__starvation_period *period, struct weft__cancel_token *cancel)
{
	const struct weft_model *m = d->link_index->model;
	const struct weft__ready *r = &period->longest;
	for (size_t l = weft_first_link_from(m, r->from_ns); l < m->link_count && m->links[l].time_ns < r->to_ns; l++) {
		const struct weft_link *link = &m->links[l];
		period->overtakers += link->kind == WEFT_LINK_READ && link->stream == r->stream && link->from != r->promise &&
				      link->from != WEFT_SYSTEM && d->link_index->ended_ns[link->to] > r->from_ns &&
				      d->link_index->ended_ns[link->to] <= link->time_ns;
		if (!weft__cancel_token_may_continue(cancel, l, m->link_count))
			return false;
	}
	return true;
}

bool weft__delays_was_asleep(const struct weft__delays *d, const struct weft__ready *r)
{
	const struct weft_model *m = d->link_index->model;
	int64_t sum_ns = 0;
	for (size_t s = weft_first_sleep_from(m, r->from_ns); s < m->sleep_count && m->sleeps[s].start_ns < r->to_ns; s++)
		if (m->sleeps[s].stream == r->stream)
			sum_ns += weft_min_ns(m->sleeps[s].end_ns, r->to_ns) - m->sleeps[s].start_ns;
	return sum_ns > (r->to_ns - r->from_ns) / 5;
}

/* ---- All ---- */

int weft__delays_init(
    struct weft__delays *d, const struct weft_link_index *link_index, int64_t stall_ns, struct weft__cancel_token *cancel)
{
	*d = (struct weft__delays){.link_index = link_index, .stall_ns = stall_ns, .least_ns = stall_ns / 2};
	bool ok = find_ready(d, cancel) && weft__stalls_find(&d->stalls, link_index->model, stall_ns, cancel) == WEFT_OK &&
		  sum_up_lengths(d) && weft__delays_add_cpu_breakdowns(d) &&
		  (d->starving = malloc((d->ready.count + 1) * sizeof *d->starving));
	for (size_t i = 0; ok && i < d->ready.count; i++) {
		const struct weft__ready *r = &d->ready.items[i];
		int64_t taken_ns = charge_stalls(d, r), ready_ns = r->to_ns - r->from_ns;
		if (ready_ns >= stall_ns && taken_ns < ready_ns / 2)
			d->starving[d->starving_count++] = *r;
	}
	if (ok) {
		sum_up_stalls(d);
		ok = find_famines(d);
	}
	for (size_t i = 0; ok && i < d->starvation_periods.count; i++)
		ok = count_overtakers(d, &d->starvation_periods.items[i], cancel);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__delays_finish(struct weft__delays *d)
{
	weft_vec_free(&d->ready);
	weft_vec_free(&d->stalls);
	free(d->starving);
	weft_vec_free(&d->starvation_periods);
}
