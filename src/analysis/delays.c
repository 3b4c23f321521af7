/* delays.c: who was ready and did not run.  SPDX-License-Identifier: ISC */
#include "analysis/delays.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

/* A sleep of that length is one: the loop had nothing to do. */
#define SLEEP_NS 100000

/* Timers that are called so soon after a stall, as a part of its length, were due. */
#define TIMERS_PART 20

/* ---- Who was ready ---- */

/* When the reader became ready, and when it ran: at the read, or where it was run and then read first of all. */
static struct weft__ready ready_for(const struct weft_ties *ties, const struct weft_link *read, int64_t last_deed_ns)
{
	const struct weft_model *m = ties->model;
	const struct weft_promise *reader = &m->promises[read->from];
	int64_t from_ns = weft_max_ns(weft_max_ns(ties->ended_ns[read->to], reader->start_ns), last_deed_ns),
		to_ns = read->time_ns;
	uint32_t run = weft_run_before(m, read->from, read->time_ns);
	if (run != WEFT_NONE && m->runs[run].end_ns >= to_ns && m->runs[run].start_ns > last_deed_ns &&
	    m->runs[run].start_ns >= ties->ended_ns[read->to]) {
		to_ns = m->runs[run].start_ns;
		run = run > reader->runs ? run - 1 : WEFT_NONE;
	}
	if (run != WEFT_NONE)
		from_ns = weft_max_ns(from_ns, weft_min_ns(m->runs[run].end_ns, to_ns));
	return (struct weft__ready){weft_min_ns(from_ns, to_ns), to_ns, read->from, read->to, read->stream};
}

static bool find_ready(struct weft__delays *d, struct weft__watch *watch)
{
	const struct weft_ties *ties = d->ties;
	const struct weft_model *m = ties->model;
	int64_t *last_deed = malloc(m->promise_count * sizeof *last_deed);
	bool ok = last_deed;
	for (size_t p = 0; ok && p < m->promise_count; p++)
		last_deed[p] = INT64_MIN;
	for (size_t l = 0; ok && l < m->link_count && (ok = weft__watch_goes_on(watch, l, m->link_count)); l++) {
		const struct weft_link *link = &m->links[l];
		int64_t ended_ns = ties->ended_ns[link->to], before_ns = last_deed[link->from];
		last_deed[link->from] = link->time_ns;
		if (link->kind != WEFT_LINK_READ || link->from == WEFT_SYSTEM || ended_ns == WEFT_NEVER ||
		    link->time_ns - ended_ns < d->least_ns || m->promises[link->from].flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		struct weft__ready ready = ready_for(ties, link, before_ns), *added;
		if (ready.to_ns - ready.from_ns < d->least_ns)
			continue;
		if ((ok = (added = weft_vec_push(&d->ready))))
			*added = ready;
	}
	free(last_deed);
	return ok;
}

/* ---- Stalls ---- */

static int compare_stalls(const void *a, const void *b)
{
	const struct weft__stall *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?:
	       WEFT_ORDER(x->is_pause, y->is_pause) ?: WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->pause, y->pause);
}

static bool add_stall(struct weft__delays *d, struct weft__stall stall)
{
	struct weft__stall *added = weft_vec_push(&d->stalls);
	if (added)
		*added = stall;
	return added;
}

/* Of stalls that overlap the first counts, or a pause that made up most of it.  Who ran meanwhile is who paused. */
static void drop_overlaps(struct weft__delays *d)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->stalls.count; i++) {
		struct weft__stall s = d->stalls.items[i], *before = kept ? &d->stalls.items[kept - 1] : NULL;
		if (!before || before->stream != s.stream || s.start_ns >= before->end_ns) {
			d->stalls.items[kept++] = s;
		} else if (s.is_pause && !before->is_pause && s.end_ns - s.start_ns >= (before->end_ns - before->start_ns) / 2) {
			s.promise = before->promise;
			*before = s;
		} else if (before->is_pause && !s.is_pause && before->promise == WEFT_SYSTEM) {
			before->promise = s.promise;
		}
	}
	d->stalls.count = kept;
	for (size_t i = 1; i < kept; i++) {
		const struct weft__stall *before = &d->stalls.items[i - 1];
		d->stalls.items[i].before_ns = before->before_ns + before->end_ns - before->start_ns;
	}
}

/* An OS thread that has not slept so far sets things up: its loop has yet to begin, and nothing is late. */
static bool is_setting_up(const struct weft_model *m, uint32_t p, const struct weft_run *run, uint16_t stream)
{
	if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD))
		return false;
	for (size_t s = 0; s < m->sleep_count && m->sleeps[s].start_ns < run->start_ns; s++)
		if (m->sleeps[s].stream == stream)
			return false;
	return true;
}

static bool find_long_runs(struct weft__delays *d, struct weft__watch *watch)
{
	const struct weft_model *m = d->ties->model;
	for (size_t r = 0; r < m->run_count; r++) {
		const struct weft_run *run = &m->runs[r];
		if (!weft__watch_goes_on(watch, r, m->run_count))
			return false;
		if (run->end_ns - run->start_ns < d->stall_ns)
			continue;
		uint32_t p = (uint32_t)WEFT_FIRST(i, 0, m->promise_count, m->promises[i + 1].runs > r);
		uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
		if (p == WEFT_SYSTEM || is_setting_up(m, p, run, stream))
			continue;
		if (!add_stall(d,
			(struct weft__stall){.start_ns = run->start_ns, .end_ns = run->end_ns, .promise = p, .stream = stream}))
			return false;
	}
	return true;
}

static bool find_stalls(struct weft__delays *d, struct weft__watch *watch)
{
	const struct weft_model *m = d->ties->model;
	bool ok = find_long_runs(d, watch);
	for (size_t i = 0; ok && i < m->pause_count; i++)
		if (m->pauses[i].end_ns - m->pauses[i].start_ns >= d->stall_ns)
			ok = add_stall(d, (struct weft__stall){.start_ns = m->pauses[i].start_ns,
					      .end_ns = m->pauses[i].end_ns,
					      .is_pause = true,
					      .promise = WEFT_SYSTEM,
					      .pause = m->pauses[i].text,
					      .stream = m->pauses[i].stream});
	weft_sort(d->stalls.items, d->stalls.count, sizeof *d->stalls.items, compare_stalls);
	drop_overlaps(d);
	return ok;
}

/* The first stall of that OS thread that ends after the time. */
static size_t first_stall_after(const struct weft__delays *d, uint16_t stream, int64_t time_ns)
{
	const struct weft__stall *stalls = d->stalls.items;
	return WEFT_FIRST(
	    i, 0, d->stalls.count, stalls[i].stream > stream || (stalls[i].stream == stream && stalls[i].end_ns > time_ns));
}

/* Counts a ready one at each stall that it met; returns how much of its time they took. */
static int64_t charge(struct weft__delays *d, const struct weft__ready *r)
{
	struct weft__stall *stalls = d->stalls.items;
	size_t first = first_stall_after(d, r->stream, r->from_ns), last = first_stall_after(d, r->stream, r->to_ns);
	/* `last` may still begin before the promise read. */
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
		stalls[first + 1].whole++;
		stalls[last - 1].victims--;
		stalls[last - 1].whole--;
		taken_ns += stalls[last - 1].before_ns - stalls[first + 1].before_ns;
	}
	return taken_ns;
}

static void sum_up(struct weft__delays *d)
{
	int64_t victims = 0, whole = 0;
	for (size_t i = 0; i < d->stalls.count; i++) {
		struct weft__stall *s = &d->stalls.items[i];
		victims += s->victims;
		whole += s->whole;
		s->victims = victims;
		s->delay_ns += whole * (s->end_ns - s->start_ns);
	}
}

/* When the OS thread sleeps again after that. */
static int64_t next_sleep(const struct weft_model *m, uint16_t stream, int64_t time_ns, int64_t until_ns)
{
	for (size_t s = weft_sleep_from(m, time_ns); s < m->sleep_count && m->sleeps[s].start_ns < until_ns; s++)
		if (m->sleeps[s].stream == stream && m->sleeps[s].end_ns - m->sleeps[s].start_ns >= SLEEP_NS)
			return m->sleeps[s].start_ns;
	return until_ns;
}

/* Whether the link is one by which the outside ends or calls back a promise that was there when the stall began, or that another
 * OS thread made meanwhile.  An OS thread ends when it has done its work: that is not late.  Nor is what is called back in each
 * round of the loop, such as libuv's check handles. */
static bool is_late(const struct weft_model *m, const struct weft_link *link, const struct weft__stall *s)
{
	const struct weft_promise *p = &m->promises[link->to];
	bool heard = link->kind == WEFT_LINK_SIGNAL ? p->kind != WEFT_KIND_HANDLE
						    : link->kind == WEFT_LINK_RESOLVE && p->end_ns == link->time_ns;
	return heard && link->from == WEFT_SYSTEM && link->stream == s->stream &&
	       p->start_ns <= (p->stream == s->stream ? s->start_ns : s->end_ns) &&
	       (link->to != s->promise || (link->kind == WEFT_LINK_RESOLVE && !weft_kind_has(p->kind, WEFT_TRAIT_THREAD)));
}

int64_t weft__delays_after(const struct weft__delays *d, const struct weft__stall *s)
{
	int64_t until_ns = s->end_ns + (s->end_ns - s->start_ns);
	if ((size_t)(s - d->stalls.items) + 1 < d->stalls.count && s[1].stream == s->stream)
		until_ns = weft_min_ns(until_ns, s[1].start_ns);
	return next_sleep(d->ties->model, s->stream, s->end_ns, until_ns);
}

const struct weft__stall *weft__delays_stall_before(const struct weft__delays *d, uint16_t stream, int64_t time_ns)
{
	const struct weft__stall *s = &d->stalls.items[first_stall_after(d, stream, time_ns)];
	return s > d->stalls.items && s[-1].stream == stream ? s - 1 : NULL;
}

/* Whether that call of a timer, the first one since the stall began, was due before the stall was over, by how long it took from
 * call to call before. */
static bool was_due(const struct weft_ties *ties, size_t link, const struct weft__stall *s)
{
	const struct weft_link *links = ties->model->links;
	const uint32_t timer = links[link].to;
	const size_t begin = ties->in_begin[timer];
	int64_t calls[2];
	unsigned found = 0;
	for (size_t i = WEFT_FIRST(k, begin, ties->in_begin[timer + 1], ties->in[k] >= link); found < 2 && i-- > begin;) {
		const struct weft_link *before = &links[ties->in[i]];
		if (before->kind == WEFT_LINK_SIGNAL && before->from == WEFT_SYSTEM)
			calls[found++] = before->time_ns;
	}
	return found == 2 && calls[0] <= s->start_ns && calls[0] + (calls[0] - calls[1]) <= s->end_ns;
}

uint32_t weft__delays_late(const struct weft__delays *d, const struct weft__stall *s, struct weft__late *list, uint32_t most)
{
	const struct weft_model *m = d->ties->model;
	const int64_t length_ns = s->end_ns - s->start_ns, until_ns = weft__delays_after(d, s);
	/* libevent computes its next sleep with the time of before the callbacks: timers that are due come one sleep later, and
	 * on a busy machine a sleep is long. */
	int64_t timers_until_ns = s->end_ns + length_ns;
	if ((size_t)(s - d->stalls.items) + 1 < d->stalls.count && s[1].stream == s->stream)
		timers_until_ns = weft_min_ns(timers_until_ns, s[1].start_ns);
	uint32_t count = 0;
	for (size_t l = weft_link_from(m, s->end_ns);
	     l < m->link_count && m->links[l].time_ns <= weft_max_ns(until_ns, timers_until_ns); l++) {
		const struct weft_link *link = &m->links[l];
		if (!is_late(m, link, s))
			continue;
		if (link->time_ns > until_ns &&
		    (m->promises[link->to].kind != WEFT_KIND_TIMER ||
			(link->time_ns > s->end_ns + length_ns / TIMERS_PART && !was_due(d->ties, l, s))))
			continue;
		uint32_t i = 0;
		while (i < count && i < most && list[i].promise != link->to)
			i++;
		if (i < count && i < most)
			continue;
		if (count < most)
			list[count] = (struct weft__late){link->to, link->time_ns, link->kind == WEFT_LINK_RESOLVE};
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

/* Joins those that were ready at the same time; each stretch is known by the one that was ready for longest. */
static bool find_famines(struct weft__delays *d)
{
	weft_sort(d->starving, d->starving_count, sizeof *d->starving, compare_ready);
	for (size_t i = 0; i < d->starving_count; i++) {
		const struct weft__ready *r = &d->starving[i];
		struct weft__famine *last = d->famines.count ? &d->famines.items[d->famines.count - 1] : NULL;
		if (!last || last->longest.stream != r->stream || r->from_ns >= last->end_ns) {
			if (!(last = weft_vec_push(&d->famines)))
				return false;
			*last = (struct weft__famine){.start_ns = r->from_ns, .longest = *r, .first = i};
		}
		last->end_ns = weft_max_ns(last->end_ns, r->to_ns);
		last->victims++;
		last->last = i;
		if (r->to_ns - r->from_ns > last->longest.to_ns - last->longest.from_ns)
			last->longest = *r;
	}
	return true;
}

static bool count_overtakers(const struct weft__delays *d, struct weft__famine *famine, struct weft__watch *watch)
{
	const struct weft_model *m = d->ties->model;
	const struct weft__ready *r = &famine->longest;
	for (size_t l = weft_link_from(m, r->from_ns); l < m->link_count && m->links[l].time_ns < r->to_ns; l++) {
		const struct weft_link *link = &m->links[l];
		famine->overtakers += link->kind == WEFT_LINK_READ && link->stream == r->stream && link->from != r->promise &&
				      link->from != WEFT_SYSTEM && d->ties->ended_ns[link->to] > r->from_ns &&
				      d->ties->ended_ns[link->to] <= link->time_ns;
		if (!weft__watch_goes_on(watch, l, m->link_count))
			return false;
	}
	return true;
}

bool weft__delays_slept(const struct weft__delays *d, const struct weft__ready *r)
{
	const struct weft_model *m = d->ties->model;
	int64_t sum_ns = 0;
	for (size_t s = weft_sleep_from(m, r->from_ns); s < m->sleep_count && m->sleeps[s].start_ns < r->to_ns; s++)
		if (m->sleeps[s].stream == r->stream)
			sum_ns += weft_min_ns(m->sleeps[s].end_ns, r->to_ns) - m->sleeps[s].start_ns;
	return sum_ns > (r->to_ns - r->from_ns) / 5;
}

/* ---- All ---- */

int weft__delays_init(struct weft__delays *d, const struct weft_ties *ties, int64_t stall_ns, struct weft__watch *watch)
{
	*d = (struct weft__delays){.ties = ties, .stall_ns = stall_ns, .least_ns = stall_ns / 2};
	bool ok = find_ready(d, watch) && find_stalls(d, watch) && weft__delays_split(d) &&
		  (d->starving = malloc((d->ready.count + 1) * sizeof *d->starving));
	for (size_t i = 0; ok && i < d->ready.count; i++) {
		const struct weft__ready *r = &d->ready.items[i];
		int64_t taken_ns = charge(d, r), ready_ns = r->to_ns - r->from_ns;
		if (ready_ns >= stall_ns && taken_ns < ready_ns / 2)
			d->starving[d->starving_count++] = *r;
	}
	if (ok) {
		sum_up(d);
		ok = find_famines(d);
	}
	for (size_t i = 0; ok && i < d->famines.count; i++)
		ok = count_overtakers(d, &d->famines.items[i], watch);
	return ok ? WEFT_OK : watch && watch->called_off ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

void weft__delays_finish(struct weft__delays *d)
{
	weft_vec_free(&d->ready);
	weft_vec_free(&d->stalls);
	free(d->starving);
	weft_vec_free(&d->famines);
}
