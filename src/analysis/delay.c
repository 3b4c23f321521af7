/* delay.c: who was ready and did not run, and what ran instead.
 *
 * A promise is ready from when what it waits for has ended until it reads that.  Where one run or pause covers most of that, it
 * is a stall; where many others ran, of which enough became ready later, it is starvation.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/finding.h"

enum { OVERTAKERS = 20, LATE_KEPT = 8 };

/* A sleep of that length is one: the loop had nothing to do. */
#define SLEEP_NS 100000

/* p was ready from `from_ns` to `to_ns`. */
struct ready {
	int64_t from_ns, to_ns;
	uint32_t promise, input;
	uint16_t stream;
};

/* A long run, or a long pause (promise is the system). */
struct stall {
	int64_t start_ns, end_ns;
	uint32_t promise, pause;
	uint16_t stream;
	int64_t victims; /* while counting: the difference to the stall before */
	int64_t delay_ns;
	int64_t before_ns; /* the length of all before it, of all OS threads */
	int64_t whole;     /* how many were ready all the time: likewise a difference */
	uint32_t late;
};

/* Stretches of starvation. */
struct famine {
	int64_t start_ns, end_ns;
	struct ready longest;
	size_t victims, overtakers, first, last; /* of the list of ready ones */
};

struct delays {
	struct weft__finder *f;
	WEFT_VEC(struct ready) ready;
	WEFT_VEC(struct stall) stalls;
	WEFT_VEC(struct famine) famines;
};

static const char *span(char buf[WEFT_DURATION_BYTES], int64_t ns)
{
	weft_duration_format(buf, WEFT_DURATION_BYTES, ns);
	return buf;
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When the one that read was ready for that, and when it ran for it: at the read, or where it was run and then read first of all.
 */
static struct ready ready_for(const struct weft__finder *f, const struct weft_link *read, int64_t last_deed_ns)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *reader = &m->promises[read->from];
	int64_t from_ns = max_ns(max_ns(f->ties.ended_ns[read->to], reader->start_ns), last_deed_ns), to_ns = read->time_ns;
	uint32_t run = weft_run_before(m, read->from, read->time_ns);
	if (run != WEFT_NONE && m->runs[run].end_ns >= to_ns && m->runs[run].start_ns > last_deed_ns &&
	    m->runs[run].start_ns >= f->ties.ended_ns[read->to]) {
		to_ns = m->runs[run].start_ns;
		run = run > reader->runs ? run - 1 : WEFT_NONE;
	}
	if (run != WEFT_NONE)
		from_ns = max_ns(from_ns, min_ns(m->runs[run].end_ns, to_ns));
	return (struct ready){min_ns(from_ns, to_ns), to_ns, read->from, read->to, read->stream};
}

static bool find_ready(struct delays *d, int64_t least_ns)
{
	const struct weft__finder *f = d->f;
	const struct weft_model *m = f->model;
	int64_t *last_deed = malloc(m->promise_count * sizeof *last_deed);
	if (!last_deed)
		return false;
	for (size_t p = 0; p < m->promise_count; p++)
		last_deed[p] = INT64_MIN;
	bool ok = true;
	for (size_t l = 0; ok && l < m->link_count; l++) {
		const struct weft_link *link = &m->links[l];
		int64_t ended_ns = f->ties.ended_ns[link->to], before_ns = last_deed[link->from];
		last_deed[link->from] = link->time_ns;
		if (link->kind != WEFT_LINK_READ || link->from == WEFT_SYSTEM || ended_ns == WEFT_NEVER ||
		    link->time_ns - ended_ns < least_ns || m->promises[link->from].flags & WEFT_PROMISE_START_UNKNOWN)
			continue;
		struct ready ready = ready_for(f, link, before_ns);
		if (ready.to_ns - ready.from_ns < least_ns)
			continue;
		struct ready *added = weft_vec_push(&d->ready);
		if ((ok = added))
			*added = ready;
	}
	free(last_deed);
	return ok;
}

static int compare_stalls(const void *a, const void *b)
{
	const struct stall *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->promise > y->promise) - (x->promise < y->promise);
}

static bool add_stall(struct delays *d, int64_t start_ns, int64_t end_ns, uint32_t promise, uint32_t pause, uint16_t stream)
{
	struct stall *added = weft_vec_push(&d->stalls);
	if (added)
		*added =
		    (struct stall){.start_ns = start_ns, .end_ns = end_ns, .promise = promise, .pause = pause, .stream = stream};
	return added;
}

/* Whether the OS thread that created p slept during that run, or ran another promise: then p ran on another one, a thread of a
 * pool, say, and held nobody up. */
static bool ran_elsewhere(const struct weft_model *m, uint32_t p, const struct weft_run *run)
{
	uint16_t stream = m->promises[p].stream;
	size_t low = 0, high = m->sleep_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->sleeps[middle].start_ns <= run->start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	enum { LOOKED_BACK = 64 };
	for (size_t i = low, looked = 0; i-- > 0 && looked < LOOKED_BACK; looked++)
		if (m->sleeps[i].stream == stream) {
			if (m->sleeps[i].end_ns > run->start_ns)
				return true;
			break;
		}
	for (; low < m->sleep_count && m->sleeps[low].start_ns < run->end_ns; low++)
		if (m->sleeps[low].stream == stream)
			return true;
	for (size_t l = weft_link_from(m, run->start_ns + 1); l < m->link_count && m->links[l].time_ns < run->end_ns; l++)
		if (m->links[l].kind == WEFT_LINK_READ && m->links[l].stream == stream && m->links[l].from != p)
			return true;
	return false;
}

/* An OS thread that has not slept so far sets things up: its loop has yet to begin, and nothing is late. */
static bool is_setting_up(const struct weft_model *m, uint32_t p, const struct weft_run *run)
{
	if (m->promises[p].kind != WEFT_KIND_THREAD)
		return false;
	for (size_t i = 0; i < m->sleep_count && m->sleeps[i].start_ns < run->start_ns; i++)
		if (m->sleeps[i].stream == m->promises[p].stream)
			return false;
	return true;
}

/* Runs and pauses of at least that length, by OS thread and time; of two that overlap the first, cut short, and the rest. */
static bool find_stalls(struct delays *d, int64_t least_ns)
{
	const struct weft_model *m = d->f->model;
	bool ok = true;
	for (uint32_t p = 1; ok && p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; ok && r < m->promises[p + 1].runs; r++)
			if (m->runs[r].end_ns - m->runs[r].start_ns >= least_ns && !ran_elsewhere(m, p, &m->runs[r]) &&
			    !is_setting_up(m, p, &m->runs[r]))
				ok = add_stall(d, m->runs[r].start_ns, m->runs[r].end_ns, p, WEFT_NONE, m->promises[p].stream);
	for (size_t i = 0; ok && i < m->pause_count; i++)
		if (m->pauses[i].end_ns - m->pauses[i].start_ns >= least_ns)
			ok = add_stall(
			    d, m->pauses[i].start_ns, m->pauses[i].end_ns, WEFT_SYSTEM, m->pauses[i].text, m->pauses[i].stream);
	if (d->stalls.count > 1)
		qsort(d->stalls.items, d->stalls.count, sizeof *d->stalls.items, compare_stalls);
	/* A run that a pause lengthened: what the pause took is the pause's. */
	size_t kept = 0;
	for (size_t i = 0; i < d->stalls.count; i++) {
		struct stall s = d->stalls.items[i], *before = kept ? &d->stalls.items[kept - 1] : NULL;
		if (before && before->stream == s.stream && s.start_ns < before->end_ns) {
			if (s.promise == WEFT_SYSTEM && before->promise != WEFT_SYSTEM &&
			    s.end_ns - s.start_ns >= (before->end_ns - before->start_ns) / 2)
				*before = s;
			continue;
		}
		d->stalls.items[kept++] = s;
	}
	d->stalls.count = kept;
	for (size_t i = 1; i < kept; i++)
		d->stalls.items[i].before_ns =
		    d->stalls.items[i - 1].before_ns + d->stalls.items[i - 1].end_ns - d->stalls.items[i - 1].start_ns;
	return ok;
}

/* The first stall of that OS thread that ends after the time. */
static size_t first_stall_after(const struct delays *d, uint16_t stream, int64_t time_ns)
{
	size_t low = 0, high = d->stalls.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct stall *s = &d->stalls.items[middle];
		if (s->stream < stream || (s->stream == stream && s->end_ns <= time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Counts a ready one at each stall that it met; returns how much of its time they took. */
static int64_t charge(struct delays *d, const struct ready *r, int64_t least_ns)
{
	size_t first = first_stall_after(d, r->stream, r->from_ns), last = first_stall_after(d, r->stream, r->to_ns);
	/* `last` may still begin before the promise read. */
	if (last < d->stalls.count && d->stalls.items[last].stream == r->stream && d->stalls.items[last].start_ns < r->to_ns)
		last++;
	int64_t taken_ns = 0;
	if (first >= last)
		return 0;
	for (size_t i = first; i < last; i = i == first && last - first > 1 ? last - 1 : last) {
		struct stall *s = &d->stalls.items[i];
		int64_t overlap_ns = min_ns(s->end_ns, r->to_ns) - max_ns(s->start_ns, r->from_ns);
		taken_ns += overlap_ns;
		if (overlap_ns < least_ns)
			continue;
		s->victims++;
		if (i + 1 < d->stalls.count)
			d->stalls.items[i + 1].victims--;
		s->delay_ns += overlap_ns;
	}
	if (last - first > 2) {
		d->stalls.items[first + 1].victims++;
		d->stalls.items[first + 1].whole++;
		d->stalls.items[last - 1].victims--;
		d->stalls.items[last - 1].whole--;
		taken_ns += d->stalls.items[last - 1].before_ns - d->stalls.items[first + 1].before_ns;
	}
	return taken_ns;
}

static void sum_up(struct delays *d)
{
	int64_t victims = 0, whole = 0;
	for (size_t i = 0; i < d->stalls.count; i++) {
		struct stall *s = &d->stalls.items[i];
		victims += s->victims;
		whole += s->whole;
		s->victims = victims;
		s->delay_ns += whole * (s->end_ns - s->start_ns);
	}
}

/* When the OS thread sleeps again after that. */
static int64_t next_sleep(const struct weft_model *m, uint16_t stream, int64_t time_ns, int64_t until_ns)
{
	size_t low = 0, high = m->sleep_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->sleeps[middle].start_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < m->sleep_count && m->sleeps[low].start_ns < until_ns; low++)
		if (m->sleeps[low].stream == stream && m->sleeps[low].end_ns - m->sleeps[low].start_ns >= SLEEP_NS)
			return m->sleeps[low].start_ns;
	return until_ns;
}

/* Those that came to their end from outside as soon as a stall was over, and had waited since before it: how many; the first of
 * them are listed. */
static uint32_t find_late(const struct delays *d, const struct stall *s, uint32_t list[LATE_KEPT])
{
	const struct weft_model *m = d->f->model;
	int64_t until_ns = s->end_ns + (s->end_ns - s->start_ns);
	if ((size_t)(s - d->stalls.items) + 1 < d->stalls.count && s[1].stream == s->stream)
		until_ns = min_ns(until_ns, s[1].start_ns);
	until_ns = next_sleep(m, s->stream, s->end_ns, until_ns);
	uint32_t count = 0;
	for (size_t l = weft_link_from(m, s->end_ns); l < m->link_count && m->links[l].time_ns <= until_ns; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind != WEFT_LINK_RESOLVE || link->from != WEFT_SYSTEM || link->stream != s->stream ||
		    m->promises[link->to].start_ns > s->start_ns || m->promises[link->to].end_ns != link->time_ns)
			continue;
		if (count < LATE_KEPT)
			list[count] = link->to;
		count++;
	}
	return count;
}

static int compare_weights(const void *a, const void *b)
{
	const struct stall *x = *(const struct stall *const *)a, *y = *(const struct stall *const *)b;
	if ((x->victims > 0) != (y->victims > 0))
		return x->victims > 0 ? -1 : 1;
	int64_t wx = max_ns(x->delay_ns, x->end_ns - x->start_ns), wy = max_ns(y->delay_ns, y->end_ns - y->start_ns);
	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x < y ? -1 : 1;
}

/* Who ran while a pause lasted; WEFT_SYSTEM: nobody knows. */
static uint32_t who_paused(const struct weft_model *m, const struct stall *s)
{
	for (uint32_t p = 1; p < m->promise_count; p++) {
		uint32_t run = m->promises[p].stream == s->stream ? weft_run_before(m, p, s->end_ns) : WEFT_NONE;
		if (run != WEFT_NONE && m->runs[run].start_ns <= s->start_ns && m->runs[run].end_ns >= s->end_ns)
			return p;
	}
	return WEFT_SYSTEM;
}

static void say_stall(struct delays *d, const struct stall *s, int64_t least_ns)
{
	struct weft__finder *f = d->f;
	const struct weft_model *m = f->model;
	char name[WEFT__NAME], other[WEFT__NAME], place[WEFT__NAME], text[128], length[WEFT_DURATION_BYTES],
	    delay[WEFT_DURATION_BYTES];
	bool pause = s->promise == WEFT_SYSTEM;
	uint32_t promise = pause ? who_paused(m, s) : s->promise;
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_STALL, promise, s->start_ns, s->end_ns);
	uint32_t late[LATE_KEPT], late_count = find_late(d, s, late);
	if (!finding)
		return;
	finding->weight = (uint64_t)max_ns(s->delay_ns, s->end_ns - s->start_ns);
	finding->sure = s->victims > 0;
	span(length, s->end_ns - s->start_ns);
	if (promise == WEFT_SYSTEM)
		snprintf(name, sizeof name, "a pause (%s)", weft__clean(f, s->pause, text, sizeof text));
	else if (pause)
		snprintf(name, sizeof name, "a pause (%s) of %s", weft__clean(f, s->pause, text, sizeof text),
		    weft__name(f, promise, other));
	else
		weft__name(f, promise, name);
	weft__place(f, promise, place);
	const char *ran = pause ? "lasted" : "ran for";
	if (s->victims > 0)
		finding->title = weft__text(f, "%s %s %s while %" PRId64 " other%s ready: %s lost in all", name, ran, length,
		    s->victims, s->victims == 1 ? " was" : "s were", span(delay, s->delay_ns));
	else
		finding->title = weft__text(f, "%s %s %s without a break; what came meanwhile had to wait: %" PRIu32 " promise%s",
		    name, ran, length, late_count, late_count == 1 ? "" : "s");
	finding->next =
	    pause ? "what pauses so long, and can it be cut into pieces"
		  : weft__text(f, "cut the work in pieces with a pause between them, or give it to another OS thread%s%s",
			*place ? ": " : "", place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, s->start_ns, promise, "%s%s%s begins%s", name, *place ? ", created at " : "", place,
	    pause ? "" : " to run");
	weft__show(f, WEFT_EVIDENCE_CAUSE, s->end_ns, promise, "it is over, %s later", length);
	size_t shown = 0;
	for (size_t i = 0; i < d->ready.count && shown < WEFT__LINES_KEPT && (int64_t)shown < s->victims; i++) {
		const struct ready *r = &d->ready.items[i];
		int64_t overlap_ns = min_ns(s->end_ns, r->to_ns) - max_ns(s->start_ns, r->from_ns);
		if (r->stream != s->stream || overlap_ns < least_ns)
			continue;
		shown++;
		weft__show(f, WEFT_EVIDENCE_VICTIM, r->to_ns, r->promise, "%s ran only now, %s after %s had ended",
		    weft__name(f, r->promise, name), span(delay, r->to_ns - r->from_ns), weft__name(f, r->input, other));
	}
	if (s->victims > (int64_t)shown)
		weft__show(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, WEFT_NONE, "and %" PRId64 " more", s->victims - (int64_t)shown);
	for (uint32_t i = 0; i < late_count && i < LATE_KEPT; i++)
		weft__show(f, WEFT_EVIDENCE_VICTIM, m->promises[late[i]].end_ns, late[i],
		    "%s ended as soon as that was over: up to %s late", weft__name(f, late[i], name), length);
	if (late_count > LATE_KEPT)
		weft__show(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, WEFT_NONE, "and %" PRIu32 " more", late_count - LATE_KEPT);
	if (!finding->sure)
		finding->doubt =
		    "the trace does not tell when these were due, nor whether the OS thread had a processor all the time";
}

static bool say_stalls(struct delays *d, int64_t least_ns)
{
	const struct stall **order = malloc((d->stalls.count + 1) * sizeof *order);
	size_t count = 0;
	uint32_t unused[LATE_KEPT];
	if (!order)
		return false;
	for (size_t i = 0; i < d->stalls.count; i++)
		if (d->stalls.items[i].victims > 0 || find_late(d, &d->stalls.items[i], unused) > 0)
			order[count++] = &d->stalls.items[i];
	if (count > 1)
		qsort(order, count, sizeof *order, compare_weights);
	for (size_t i = 0; i < count; i++)
		if (i < WEFT__FINDINGS_KEPT)
			say_stall(d, order[i], least_ns);
		else
			d->f->left_out++;
	free(order);
	return true;
}

/* ---- Starvation ---- */

static int compare_ready(const void *a, const void *b)
{
	const struct ready *x = a, *y = b;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	if (x->to_ns != y->to_ns)
		return x->to_ns < y->to_ns ? -1 : 1;
	return (x->promise > y->promise) - (x->promise < y->promise);
}

/* Joins those that were ready at the same time; each stretch is known by the one that was ready for longest. */
static bool find_famines(struct delays *d, struct ready *starving, size_t count)
{
	if (count > 1)
		qsort(starving, count, sizeof *starving, compare_ready);
	for (size_t i = 0; i < count; i++) {
		const struct ready *r = &starving[i];
		struct famine *last = d->famines.count ? &d->famines.items[d->famines.count - 1] : NULL;
		if (!last || last->longest.stream != r->stream || r->from_ns >= last->end_ns) {
			if (!(last = weft_vec_push(&d->famines)))
				return false;
			*last = (struct famine){.start_ns = r->from_ns, .longest = *r, .first = i};
		}
		last->end_ns = max_ns(last->end_ns, r->to_ns);
		last->victims++;
		last->last = i;
		if (r->to_ns - r->from_ns > last->longest.to_ns - last->longest.from_ns)
			last->longest = *r;
	}
	return true;
}

static void count_overtakers(const struct delays *d, struct famine *famine)
{
	const struct weft_model *m = d->f->model;
	const struct ready *r = &famine->longest;
	for (size_t l = weft_link_from(m, r->from_ns); l < m->link_count && m->links[l].time_ns < r->to_ns; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind == WEFT_LINK_READ && link->stream == r->stream && link->from != r->promise &&
		    link->from != WEFT_SYSTEM && d->f->ties.ended_ns[link->to] > r->from_ns &&
		    d->f->ties.ended_ns[link->to] <= link->time_ns)
			famine->overtakers++;
	}
}

static bool slept(const struct weft_model *m, const struct ready *r)
{
	int64_t sum_ns = 0;
	size_t low = 0, high = m->sleep_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->sleeps[middle].start_ns < r->from_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < m->sleep_count && m->sleeps[low].start_ns < r->to_ns; low++)
		if (m->sleeps[low].stream == r->stream)
			sum_ns += min_ns(m->sleeps[low].end_ns, r->to_ns) - m->sleeps[low].start_ns;
	return sum_ns > (r->to_ns - r->from_ns) / 5;
}

static void say_famine(struct delays *d, const struct famine *famine, const struct ready *starving)
{
	struct weft__finder *f = d->f;
	const struct ready *longest = &famine->longest;
	char name[WEFT__NAME], other[WEFT__NAME], place[WEFT__NAME], delay[WEFT_DURATION_BYTES];
	struct weft_finding *finding = weft__find(f, WEFT_FINDING_STARVATION, longest->promise, longest->from_ns, longest->to_ns);
	if (!finding)
		return;
	finding->weight = (uint64_t)(longest->to_ns - longest->from_ns);
	weft__name(f, longest->promise, name);
	weft__place(f, longest->promise, place);
	span(delay, longest->to_ns - longest->from_ns);
	finding->title = weft__text(
	    f, "%s was ready for %s and did not run; %zu that became ready later ran before it", name, delay, famine->overtakers);
	finding->next = weft__text(f, "who wakes others again and again must leave a turn to the rest: weft_promise_pause()%s%s",
	    *place ? "; the starved one is created at " : "", place);
	weft__show(f, WEFT_EVIDENCE_CAUSE, longest->from_ns, longest->promise, "%s is ready: %s has ended", name,
	    weft__name(f, longest->input, other));
	weft__show(f, WEFT_EVIDENCE_CAUSE, longest->to_ns, longest->promise, "it runs, %s later", delay);
	size_t shown = 0;
	for (size_t i = famine->first; i <= famine->last && shown < WEFT__LINES_KEPT; i++) {
		const struct ready *r = &starving[i];
		if (r->promise == longest->promise)
			continue;
		shown++;
		weft__show(f, WEFT_EVIDENCE_VICTIM, r->from_ns, r->promise, "%s was ready for %s too",
		    weft__name(f, r->promise, other), span(delay, r->to_ns - r->from_ns));
	}
	if (famine->victims > shown + 1)
		weft__show(f, WEFT_EVIDENCE_VICTIM, WEFT_NO_TIME, WEFT_NONE, "and %zu more", famine->victims - shown - 1);
}

bool weft__find_delays(struct weft__finder *f)
{
	struct delays d = {.f = f};
	int64_t least_ns = f->options.stall_ns / 2;
	if (f->lost)
		return true; /* what ran, and for how long, may be what is missing */
	bool ok = find_ready(&d, least_ns) && find_stalls(&d, f->options.stall_ns);
	struct ready *starving = ok ? calloc(d.ready.count + 1, sizeof *starving) : NULL;
	size_t count = 0, told = 0;
	ok = ok && starving;
	for (size_t i = 0; ok && i < d.ready.count; i++) {
		const struct ready *r = &d.ready.items[i];
		int64_t taken_ns = charge(&d, r, least_ns), ready_ns = r->to_ns - r->from_ns;
		if (ready_ns >= f->options.stall_ns && taken_ns < ready_ns / 2)
			starving[count++] = *r;
	}
	if (ok) {
		sum_up(&d);
		ok = say_stalls(&d, least_ns) && find_famines(&d, starving, count);
	}
	for (size_t i = 0; ok && i < d.famines.count; i++) {
		struct famine *famine = &d.famines.items[i];
		count_overtakers(&d, famine);
		if (famine->overtakers < OVERTAKERS || slept(f->model, &famine->longest))
			continue;
		if (told++ < WEFT__FINDINGS_KEPT)
			say_famine(&d, famine, starving);
		else
			f->left_out++;
	}
	weft_vec_free(&d.ready);
	weft_vec_free(&d.stalls);
	weft_vec_free(&d.famines);
	free(starving);
	return ok;
}
