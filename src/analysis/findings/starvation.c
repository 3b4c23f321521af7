/* starvation.c: reports promises that were ready for long while many other promises ran first.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/search.h"

enum { MIN_OVERTAKERS = 20 };

/* The promises of one type that ran while the late promise was ready. */
struct overtaker_type {
	uint32_t type, first;
	size_t count;
	int64_t ran_ns;
};

/* Returns for how long p ran in its first run after from_ns, up to until_ns. */
static int64_t measure_run(const struct weft_model *m, uint32_t p, int64_t from_ns, int64_t until_ns)
{
	const uint32_t end = m->promises[p + 1].runs;
	const uint32_t run = (uint32_t)WEFT_FIND_FIRST(i, m->promises[p].runs, end, m->runs[i].end_ns > from_ns);
	return run < end && m->runs[run].start_ns <= until_ns
		   ? weft_max_ns(weft_min_ns(m->runs[run].end_ns, until_ns) - weft_max_ns(m->runs[run].start_ns, from_ns), 0)
		   : 0;
}

/* Lists the types of the promises that ran while the late promise was ready, sorted by run time, the longest first.  The
 * results that were read on the thread show which promises ran. */
static size_t find_overtaker_types(
    const struct weft__finder *f, const struct weft__ready *r, struct overtaker_type list[WEFT__MAX_LINES])
{
	const struct weft_model *m = f->model;
	size_t count = 0;
	for (size_t l = weft_first_link_from(m, r->from_ns); l < m->link_count && m->links[l].time_ns < r->to_ns; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->kind != WEFT_LINK_READ || link->stream != r->stream || link->from == r->promise ||
		    link->from == WEFT_SYSTEM)
			continue;
		size_t at = 0;
		while (at < count && list[at].type != f->types.of[link->from])
			at++;
		if (at == WEFT__MAX_LINES)
			continue;
		if (at == count)
			list[count++] = (struct overtaker_type){f->types.of[link->from], link->from, 0, 0};
		list[at].count++;
		list[at].ran_ns += measure_run(m, link->from, link->time_ns, r->to_ns);
	}
	for (size_t i = 1; i < count; i++) /* sort by time, descending */
		for (size_t k = i; k > 0 && list[k].ran_ns > list[k - 1].ran_ns; k--) {
			struct overtaker_type other = list[k];
			list[k] = list[k - 1];
			list[k - 1] = other;
		}
	return count;
}

static void report_starvation(struct weft__finder *f, const struct weft__starvation_period *period)
{
	const struct weft__ready *longest = &period->longest;
	uint32_t p = longest->promise;
	int64_t length_ns = longest->to_ns - longest->from_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STARVATION, p, longest->from_ns, longest->to_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *length = weft__format_duration(f, length_ns);
	for (size_t i = period->first; i <= period->last; i++)
		finding->weight += (uint64_t)(f->delays.starving[i].to_ns - f->delays.starving[i].from_ns);
	struct overtaker_type overtaker_type[WEFT__MAX_LINES];
	const size_t overtaker_type_count = find_overtaker_types(f, longest, overtaker_type);
	finding->title = weft__finding_text(
	    f, "%s was ready for %s: %zu promises that became ready later ran first%s", name, length, period->overtakers, at);
	finding->next = "run promises in the order in which they became ready, or let busy code yield with weft_promise_pause()";
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest->from_ns, p, "%s becomes ready: %s ended", name,
	    weft__format_promise(f, longest->input));
	for (size_t i = 0; i < overtaker_type_count; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, overtaker_type[i].first,
		    "%s%s ran meanwhile, %zu time%s, for %s in all", weft__format_type(f, overtaker_type[i].first),
		    weft__format_site_suffix(f, overtaker_type[i].first), overtaker_type[i].count,
		    weft__format_plural_s(overtaker_type[i].count), weft__format_duration(f, overtaker_type[i].ran_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, longest->to_ns, p, "%s runs, %s later", name, length);
	size_t shown = 0;
	for (size_t i = period->first; i <= period->last && shown < WEFT__MAX_LINES; i++) {
		const struct weft__ready *r = &f->delays.starving[i];
		if (r->promise == p)
			continue;
		shown++;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, r->from_ns, r->promise, "%s was ready for %s, too",
		    weft__format_promise(f, r->promise), weft__format_duration(f, r->to_ns - r->from_ns));
	}
	if (period->victims > shown + 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, period->victims - shown - 1, "");
}

void weft__find_starvation(struct weft__finder *f)
{
	const struct weft__delays *d = &f->delays;
	for (size_t i = 0; i < d->starvation_periods.count && weft__finding_may_continue(f, i, d->starvation_periods.count); i++)
		if (d->starvation_periods.items[i].overtakers >= MIN_OVERTAKERS &&
		    !weft__delays_was_asleep(d, &d->starvation_periods.items[i].longest))
			report_starvation(f, &d->starvation_periods.items[i]);
}
