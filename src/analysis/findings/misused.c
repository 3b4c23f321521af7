/* misused.c: promises that go on after their end, and ids that nobody was ever given: code that uses what was freed, or was never
 * set.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/shares.h"

/* Of one sort. */
struct misuse {
	uint32_t count, first_link;
};

static bool is_over(const struct weft_promise *p, int64_t time_ns)
{
	return weft_has_ended(p) && p->end_ns < time_ns;
}

/* Whether the program's own code tells what it does.  What an adapter tells of a callback, which goes on when what it was called
 * for has ended, is no fault of the program's. */
static bool speaks_for_itself(const struct weft_model *m, uint32_t p)
{
	uint32_t site = m->promises[p].site;
	return site != WEFT_NONE && !weft_site_is_place(&m->trace->sites[site]);
}

/* Who goes on after its end by that link: it awaits another, or takes a lock; WEFT_NONE: nobody. */
static uint32_t who_goes_on(const struct weft__finder *f, const struct weft_link *link)
{
	const struct weft_model *m = f->model;
	if (link->kind != WEFT_LINK_AWAIT || link->from == WEFT_SYSTEM || link->to == WEFT_SYSTEM ||
	    (f->ties.ended_ns[link->from] >= link->time_ns && f->ties.ended_ns[link->to] >= link->time_ns))
		return WEFT_NONE; /* neither is over, nor has what it became ended: nearly all */
	uint32_t who = weft_kind_has(f->sorts.kinds[link->from], WEFT__TRAITS_HELD) ? link->to : link->from;
	/* A loop that was told to stop goes on to the end of its turn.  A message is handled by another part when its sender may
	 * have gone on. */
	if (!is_over(&m->promises[who], link->time_ns) || !speaks_for_itself(m, who) ||
	    weft_kind_has(m->promises[who].kind, WEFT__TRAITS_LASTING) ||
	    weft_part_of(m, link->from) != weft_part_of(m, link->to))
		return WEFT_NONE;
	return who;
}

static void tell_gone_on(struct weft__finder *f, uint32_t p, const struct misuse *misuse)
{
	const struct weft_model *m = f->model;
	const struct weft_link *link = &m->links[misuse->first_link];
	bool takes = link->to == p;
	uint32_t other = takes ? link->from : link->to;
	int64_t end_ns = m->promises[p].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_MISUSED, p, end_ns, link->time_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *what = weft__words_name(f, other);
	const char *more =
	    misuse->count == 1 ? "" : weft__finding_text(f, ", and so did %" PRIu32 " more of its sort", misuse->count - 1);
	finding->weight = misuse->count;
	finding->title = weft__finding_text(f, "%s%s %s %s %s after its end%s", name, at, takes ? "took" : "began to wait for",
	    what, weft__words_span(f, link->time_ns - end_ns), more);
	finding->next = weft__finding_text(
	    f, "find out who still has it: either it was ended too early, or code goes on with what may have been freed%s", at);
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end_ns, p, "%s ends", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, other, "%s %s %s%s", name,
	    takes ? "takes" : "begins to wait for", what, weft__words_at(f, other));
	weft__finding_doubt_part(f, p, false);
}

static void find_gone_on(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct misuse *of_sort = weft__finding_alloc(f, f->sorts.items.count, sizeof *of_sort);
	for (size_t l = 0; of_sort && l < m->link_count && weft__finding_goes_on(f, l, m->link_count); l++) {
		uint32_t who = who_goes_on(f, &m->links[l]);
		if (who == WEFT_NONE)
			continue;
		struct misuse *misuse = &of_sort[f->sorts.of[who]];
		if (misuse->count++ == 0)
			misuse->first_link = (uint32_t)l;
	}
	for (size_t s = 0; of_sort && s < f->sorts.items.count; s++)
		if (of_sort[s].count > 0)
			tell_gone_on(f, who_goes_on(f, &m->links[of_sort[s].first_link]), &of_sort[s]);
	free(of_sort);
}

/* Ids are given from 1 on, and only while something records: a trace that has the first one has all that are true. */
static bool has_all_ids(const struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t first = m->trace->part_count ? WEFT_NONE : weft_model_find(m, 1);
	return first != WEFT_NONE && m->promises[first].kind != WEFT_KIND_PREEXISTING &&
	       weft__lacks_nothing_of(f->lacks, m, first);
}

static void find_never_created(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t first = WEFT_NONE, count = 0;
	/* Another OS thread, of which events are missing, may have created it. */
	bool has_all = !m->has_absent && weft__sorts_have(&f->sorts, WEFT_KIND_PREEXISTING) && has_all_ids(f);
	for (uint32_t p = 1; has_all && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		if (f->sorts.kinds[p] != WEFT_KIND_PREEXISTING || m->promises[p].id == 0)
			continue;
		first = first == WEFT_NONE ? p : first;
		count++;
	}
	struct weft_finding *finding = first != WEFT_NONE ? weft__finding_begin(f, WEFT_FINDING_MISUSED, first,
								m->promises[first].start_ns, weft_model_until(m, first))
							  : NULL;
	if (!finding)
		return;
	finding->weight = count;
	finding->title = weft__finding_text(f, "promise %" PRId64 "%s never created, and the trace has all that were",
	    m->promises[first].id, count == 1 ? " was" : weft__finding_text(f, " and %" PRIu32 " more were", count - 1));
	finding->next = "look for memory that is used after it was freed, or before an id was put into it";
	for (uint32_t i = f->ties.in_begin[first]; i < f->ties.in_begin[first + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, link->from, "%s%s is the first to name it",
		    weft__words_name(f, link->from), weft__words_at(f, link->from));
		break;
	}
	weft__finding_doubt_part(f, first, false);
}

void weft__find_misused(struct weft__finder *f)
{
	find_gone_on(f);
	find_never_created(f);
}
