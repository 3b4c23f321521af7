/* misused.c: reports promises that are used after their end, and ids that no promise ever had: both suggest memory that is
 * freed or not initialized.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"

/* The uses of promises of one type after their end. */
struct misuse {
	uint32_t count, first_link;
};

static bool is_over(const struct weft_promise *p, int64_t time_ns)
{
	return weft_has_ended(p) && p->end_ns < time_ns;
}

/* Returns whether the program's own code recorded p, rather than an adapter.  An adapter records a callback that continues
 * after the end of its promise, which is no fault of the program. */
static bool is_recorded_by_program(const struct weft_model *m, uint32_t p)
{
	uint32_t site = m->promises[p].site;
	return site != WEFT_NONE && !weft_site_is_machine_code(&m->trace->sites[site]);
}

/* Returns whether p was ended from outside the program: the callback of p then runs as p after the end. */
static bool was_ended_from_outside(const struct weft__finder *f, uint32_t p)
{
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &f->model->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_RESOLVE && link->from == WEFT_SYSTEM)
			return true;
	}
	return false;
}

/* Returns the promise that a link shows in use after its end, because it awaits another promise or takes a lock; else
 * WEFT_NONE. */
static uint32_t find_user_after_end(const struct weft__finder *f, const struct weft_link *link)
{
	const struct weft_model *m = f->model;
	if (link->kind != WEFT_LINK_AWAIT || link->from == WEFT_SYSTEM || link->to == WEFT_SYSTEM ||
	    (f->link_index.ended_ns[link->from] >= link->time_ns && f->link_index.ended_ns[link->to] >= link->time_ns))
		return WEFT_NONE; /* for nearly all links: the promise has not ended, nor has the promise that it became */
	uint32_t user = weft_kind_has(f->types.kinds[link->from], WEFT__TRAITS_HELD) ? link->to : link->from;
	/* A stopped loop still finishes its current turn.  A message may be handled in another part of the trace after its
	 * sender has ended. */
	if (!is_over(&m->promises[user], link->time_ns) || !is_recorded_by_program(m, user) ||
	    weft_kind_has(m->promises[user].kind, WEFT__TRAITS_LASTING) || was_ended_from_outside(f, user) ||
	    weft_part_of(m, link->from) != weft_part_of(m, link->to))
		return WEFT_NONE;
	return user;
}

static void report_used_after_end(struct weft__finder *f, uint32_t p, const struct misuse *misuse)
{
	const struct weft_model *m = f->model;
	const struct weft_link *link = &m->links[misuse->first_link];
	bool takes = link->to == p;
	uint32_t other = takes ? link->from : link->to;
	int64_t end_ns = m->promises[p].end_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_MISUSED, p, end_ns, link->time_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *what = weft__format_promise(f, other);
	finding->weight = misuse->count;
	finding->title = weft__finding_text(f, "%s %s %s %s after its own end%s", name, takes ? "takes" : "waits for", what,
	    weft__format_duration(f, link->time_ns - end_ns), at);
	finding->next = weft__finding_text(f, "find the code that uses %s after its end: it may use freed memory%s", name, at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, end_ns, p, "%s ends", name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, other, "%s %s %s%s", name,
	    takes ? "takes" : "starts to wait for", what, weft__format_site_suffix(f, other));
	if (misuse->count > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "promises of its type were used after their end %" PRIu32 " times", misuse->count);
	weft__finding_doubt_part(f, p, false);
}

static void find_used_after_end(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct misuse *of_type = weft__finding_alloc(f, f->types.items.count, sizeof *of_type);
	for (size_t l = 0; of_type && l < m->link_count && weft__finding_may_continue(f, l, m->link_count); l++) {
		uint32_t user = find_user_after_end(f, &m->links[l]);
		if (user == WEFT_NONE)
			continue;
		struct misuse *misuse = &of_type[f->types.of[user]];
		if (misuse->count++ == 0)
			misuse->first_link = (uint32_t)l;
	}
	for (size_t s = 0; of_type && s < f->types.items.count; s++)
		if (of_type[s].count > 0)
			report_used_after_end(f, find_user_after_end(f, &m->links[of_type[s].first_link]), &of_type[s]);
	free(of_type);
}

/* Returns whether the trace has the creation of every promise.  Ids count from 1 while a trace is recorded, so a trace that has
 * promise 1 has all promises. */
static bool has_all_ids(const struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t first = m->trace->part_count ? WEFT_NONE : weft_model_find(m, 1);
	return first != WEFT_NONE && m->promises[first].kind != WEFT_KIND_PREEXISTING &&
	       weft__has_complete_history(f->completeness, m, first);
}

static void find_never_created(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t first = WEFT_NONE, count = 0;
	/* A thread whose events are missing may have created the promise. */
	bool has_all = !m->has_absent && weft__promise_types_have(&f->types, WEFT_KIND_PREEXISTING) && has_all_ids(f);
	for (uint32_t p = 1; has_all && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		if (f->types.kinds[p] != WEFT_KIND_PREEXISTING || m->promises[p].id == 0)
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
	const uint32_t in = f->link_index.in_begin[first];
	const struct weft_link *use = in < f->link_index.in_begin[first + 1] ? &m->links[f->link_index.in[in]] : NULL;
	const char *user = use ? weft__format_promise(f, use->from) : "", *at = use ? weft__format_site_suffix(f, use->from) : "";
	finding->title = weft__finding_text(f, "promise %" PRId64 "%s never created%s", m->promises[first].id,
	    count == 1 ? " was" : weft__finding_text(f, " and %" PRIu32 " more were", count - 1),
	    use ? weft__finding_text(f, ": %s was the first to use its id%s", user, at) : "");
	finding->next = "look for memory that is used after it was freed, or before an id was stored in it";
	if (use)
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, use->time_ns, use->from, "%s%s is the first to use this id", user, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "the trace records the creation of every promise");
	weft__finding_doubt_part(f, first, false);
}

void weft__find_misused(struct weft__finder *f)
{
	find_used_after_end(f);
	find_never_created(f);
}
