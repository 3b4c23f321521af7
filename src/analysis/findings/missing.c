/* missing.c: which findings hold where events are missing.
 *
 * Up to the first of these the trace is a whole one, whose program might have been killed then: its findings hold, unless what
 * came later says otherwise.  After that moment, what was seen from its beginning to its end holds, since it needs no event of
 * another time or OS thread.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"

/* Says that something did not come, which may have come since. */
static bool is_about_end(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_DEADLOCK || kind == WEFT_FINDING_CYCLE || kind == WEFT_FINDING_HANG ||
	       kind == WEFT_FINDING_UNANSWERED || kind == WEFT_FINDING_UNRETURNED || kind == WEFT_FINDING_STUCK ||
	       kind == WEFT_FINDING_LEAK || kind == WEFT_FINDING_UNDERWAY;
}

static size_t sort_of(const struct weft_model *m, const struct weft_promise *p)
{
	return p->site < m->trace->site_count ? p->site : m->trace->site_count + p->kind;
}

/* What one OS thread creates and others end may have been ended by those whose events are missing: by site, those without one by
 * kind.  NULL: no memory. */
static bool *find_jobs(const struct weft_model *m)
{
	bool *ends = calloc(m->trace->site_count + WEFT_KIND_PREEXISTING + 1, sizeof *ends);
	for (size_t l = 0; ends && l < m->link_count; l++) {
		const struct weft_promise *p = &m->promises[m->links[l].to];
		if (m->links[l].kind == WEFT_LINK_RESOLVE && m->links[l].stream != p->stream)
			ends[sort_of(m, p)] = true;
	}
	return ends;
}

static bool ended_later(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	return promise->end != WEFT_END_PENDING && !(promise->flags & WEFT_PROMISE_NEVER_RESOLVED) &&
	       promise->end_ns > m->whole->end_ns;
}

/* Somebody read its error, or waited for it, after what is whole. */
static bool was_noticed_later(const struct weft_model *m, uint32_t p)
{
	for (size_t l = weft_link_from(m, m->whole->end_ns); l < m->link_count; l++)
		if (m->links[l].to == p && (m->links[l].kind == WEFT_LINK_READ || m->links[l].kind == WEFT_LINK_AWAIT))
			return true;
	return false;
}

/* On which OS thread it happened; UINT16_MAX: on several. */
static uint16_t stream_of(const struct weft_model *m, const struct weft_finding *finding)
{
	if (finding->promise == WEFT_SYSTEM || finding->kind == WEFT_FINDING_EXHAUSTED ||
	    finding->kind == WEFT_FINDING_STARVATION)
		return UINT16_MAX;
	const uint32_t run = weft_run_before(m, finding->promise, finding->start_ns + 1);
	return run != WEFT_NONE && m->run_streams ? m->run_streams[run] : m->promises[finding->promise].stream;
}

static bool is_told(const struct weft__finder *f, size_t count, const struct weft_finding *later)
{
	for (size_t i = 0; i < count; i++) {
		const struct weft_finding *finding = &f->findings.items[i];
		if (finding->promise == later->promise &&
		    (finding->kind == later->kind || (is_about_end(finding->kind) && is_about_end(later->kind))))
			return true;
	}
	return false;
}

static void doubt(struct weft_finding *finding, const char *why)
{
	if (finding->sure)
		finding->doubt = why;
	finding->sure = false;
}

/* Whether that may have been ended by an OS thread whose events are missing. */
static bool is_job(const struct weft_model *m, uint32_t p, const bool *jobs)
{
	return jobs && jobs[sort_of(m, &m->promises[p])];
}

/* Of what is whole: whether it still holds. */
static void settle_before(const struct weft_model *m, struct weft_finding *finding)
{
	if ((is_about_end(finding->kind) && (ended_later(m, finding->promise) || ended_later(m, finding->root))) ||
	    (finding->kind == WEFT_FINDING_FAILURE && was_noticed_later(m, finding->promise)))
		finding->kind = WEFT_FINDING_KINDS;
	else if (m->whole->has_absent)
		doubt(finding, "of some OS threads, events are missing at the end");
	else if (finding->kind == WEFT_FINDING_BACKLOG)
		doubt(finding, "events are missing later: how it went on is not known");
}

/* Of what is not: whether it needs nothing that is missing, and was not told before. */
static void settle_after(struct weft__finder *f, size_t count, struct weft_finding *finding, bool was_seen)
{
	const struct weft_model *m = f->model;
	const bool is_before = m->whole && finding->end_ns <= m->whole->end_ns;
	if ((was_seen && (is_before || weft__lacks_between(m, stream_of(m, finding), finding->start_ns, finding->end_ns))) ||
	    is_told(f, count, finding))
		finding->kind = WEFT_FINDING_KINDS;
	else if (was_seen)
		doubt(finding, "events are missing in the trace");
}

void weft__missing_settle(struct weft__finder *f, size_t count, unsigned (*needs)(enum weft_finding_kind kind))
{
	const struct weft_model *m = f->model;
	const bool is_lost = f->lacks && f->lacks[m->trace->part_count ? m->trace->part_count : 1].lost;
	const bool has_absent = m->whole && m->whole->has_absent;
	bool *jobs = has_absent ? find_jobs(m) : NULL;
	f->no_memory |= has_absent && !jobs;
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		const unsigned needed = needs(finding->kind);
		if (i < count && m->whole)
			settle_before(m, finding);
		else if (is_lost)
			settle_after(f, count, finding, needed & WEFT__NEED_SEEN);
		if (is_about_end(finding->kind) && (is_job(m, finding->promise, jobs) || is_job(m, finding->root, jobs)))
			finding->kind = WEFT_FINDING_KINDS;
		if (needed & WEFT__NEED_SORTS && m->trace->lacks_names)
			doubt(finding, "names are missing in the trace: what is called alike may be different things");
	}
	free(jobs);
}
