/* stall.c: one that ran, or a pause that lasted, while others were ready.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/search.h"
#include "base/sort.h"

enum { LATE_KEPT = 8, ALARMING = 5 };

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t min_ns(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t weight_ns(const struct weft__stall *s)
{
	return max_ns(s->delay_ns, s->end_ns - s->start_ns);
}

/* Those with victims first, then the heaviest. */
static int compare_weights(const void *a, const void *b)
{
	const struct weft__stall *x = *(const struct weft__stall *const *)a, *y = *(const struct weft__stall *const *)b;
	return WEFT_ORDER(y->victims > 0, x->victims > 0) ?: WEFT_ORDER(weight_ns(y), weight_ns(x)) ?: WEFT_ORDER(x, y);
}

static void list_victims(struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft__delays *d = &f->delays;
	size_t shown = 0;
	for (size_t i = 0; i < d->ready.count && shown < WEFT__LINES_KEPT && (int64_t)shown < s->victims; i++) {
		const struct weft__ready *r = &d->ready.items[i];
		if (r->stream != s->stream || min_ns(s->end_ns, r->to_ns) - max_ns(s->start_ns, r->from_ns) < d->least_ns)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, r->to_ns, r->promise, "%s runs only now, %s after %s ended",
		    weft__words_name(f, r->promise), weft__words_span(f, r->to_ns - r->from_ns), weft__words_name(f, r->input));
	}
	weft__words_more(f, WEFT_EVIDENCE_VICTIM, (size_t)s->victims - shown, "");
}

static void tell_stall(struct weft__finder *f, const struct weft__stall *s)
{
	struct weft__late late[LATE_KEPT];
	uint32_t late_count = weft__delays_late(&f->delays, s, late, LATE_KEPT);
	bool pause = s->is_pause, nobody = s->promise == WEFT_SYSTEM;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STALL, s->promise, s->start_ns, s->end_ns);
	if (!finding)
		return;
	const char *name = nobody ? "" : weft__words_name(f, s->promise), *at = nobody ? "" : weft__words_at(f, s->promise);
	const char *length = weft__words_span(f, s->end_ns - s->start_ns);
	if (pause)
		name = weft__finding_text(f, "a pause (%s)%s%s", weft__words_text(f, s->pause), nobody ? "" : " of ", name);
	const char *ran = pause ? "lasted" : "ran for";
	finding->weight = (uint64_t)weight_ns(s);
	if (s->victims > 0)
		finding->title = weft__finding_text(f, "%s%s %s %s while %" PRId64 " other%s ready to run: together they lost %s",
		    name, at, ran, length, s->victims, s->victims == 1 ? " was" : "s were", weft__words_span(f, s->delay_ns));
	else
		finding->title = weft__finding_text(f,
		    "%s%s %s %s without a break; %" PRIu32 " promise%s from outside may have come late because of it", name, at,
		    ran, length, late_count, weft__words_s(late_count));
	finding->next = pause ? "find out what pauses for so long, and whether it can be done in smaller pieces"
			      : weft__finding_text(f,
				    "cut its work into pieces with a pause between them, or give it to another OS thread%s", at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, s->start_ns, s->promise, pause ? "%s%s begins" : "%s%s begins to run", name, at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, s->end_ns, s->promise, "%s %s, %s later", name, pause ? "is over" : "stops", length);
	list_victims(f, s);
	for (uint32_t i = 0; i < late_count && i < LATE_KEPT; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, late[i].time_ns, late[i].promise,
		    "%s %s as soon as that is over: up to %s late", weft__words_name(f, late[i].promise),
		    late[i].ended ? "ends" : "is called back", length);
	if (late_count > LATE_KEPT)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, late_count - LATE_KEPT, "");
	if (s->victims > 0)
		return;
	weft__finding_doubt(
	    f, "the trace does not tell when these were due, nor whether the OS thread had a processor all the time");
	/* A busy machine takes a processor away for as long as that. */
	if (s->end_ns - s->start_ns < ALARMING * f->options.stall_ns)
		finding->severity = WEFT_SEVERITY_INFORMATION;
}

/* What is called again and again is told as that: it ran many times, not once. */
static bool spins(const struct weft__finder *f, const struct weft__stall *s)
{
	const struct weft_model *m = f->model;
	enum { LOOKED_AT = 64 }; /* each is told some 20 times */
	size_t first = WEFT_FIRST(i, 0, m->spin_count, m->spins[i].time_ns >= s->start_ns);
	for (size_t i = first; i < m->spin_count && i < first + LOOKED_AT && m->spins[i].time_ns <= s->end_ns; i++)
		if (m->spins[i].promise == s->promise && !s->is_pause)
			return true;
	return false;
}

void weft__find_stall(struct weft__finder *f)
{
	const struct weft__delays *d = &f->delays;
	const struct weft__stall **order = weft__finding_alloc(f, d->stalls.count, sizeof *order);
	size_t count = 0;
	struct weft__late unused[1];
	for (size_t i = 0; i < d->stalls.count && weft__finding_goes_on(f, i, d->stalls.count); i++)
		if ((d->stalls.items[i].victims > 0 || weft__delays_late(d, &d->stalls.items[i], unused, 1) > 0) &&
		    !spins(f, &d->stalls.items[i]))
			order[count++] = &d->stalls.items[i];
	if (order)
		weft_sort(order, count, sizeof *order, compare_weights);
	for (size_t i = 0; i < count && weft__finding_goes_on(f, i, count); i++)
		tell_stall(f, order[i]);
	free(order);
}
