/* missing_events.c: decides which findings are right although events are missing.
 *
 * The trace is complete up to the first missing event, as if the program had been killed at that time: its findings up to then
 * are right unless a later event contradicts them.  After the first missing event, a finding is right only if no event of its
 * own thread is missing in its time range.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"

/* Returns whether findings of the kind say that something did not happen, which a missing event may refute. */
static bool is_about_end(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_DEADLOCK || kind == WEFT_FINDING_CYCLE || kind == WEFT_FINDING_HANG ||
	       kind == WEFT_FINDING_UNANSWERED || kind == WEFT_FINDING_UNRETURNED || kind == WEFT_FINDING_STUCK ||
	       kind == WEFT_FINDING_LEAK || kind == WEFT_FINDING_UNDERWAY;
}

static size_t get_job_type(const struct weft_model *m, const struct weft_promise *p)
{
	return p->site < m->trace->site_count ? p->site : m->trace->site_count + p->kind;
}

/* Returns, by job type, whether one thread creates the promises and another thread resolves them.  The missing events of a
 * thread may have resolved such a promise.  get_job_type() returns the index of a promise into these flags.  The caller frees
 * them.  NULL: no memory. */
static bool *find_jobs(const struct weft_model *m)
{
	bool *ends = calloc(m->trace->site_count + WEFT_KIND_PREEXISTING + 1, sizeof *ends);
	for (size_t l = 0; ends && l < m->link_count; l++) {
		const struct weft_promise *p = &m->promises[m->links[l].to];
		if (m->links[l].kind == WEFT_LINK_RESOLVE && m->links[l].stream != p->stream)
			ends[get_job_type(m, p)] = true;
	}
	return ends;
}

static bool has_ended_later(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	return promise->end != WEFT_END_PENDING && !(promise->flags & WEFT_PROMISE_NEVER_RESOLVED) &&
	       promise->end_ns > m->whole->end_ns;
}

/* Returns whether another promise read the error of p or waited for p after the complete prefix of the trace. */
static bool was_noticed_later(const struct weft_model *m, uint32_t p)
{
	for (size_t l = weft_first_link_from(m, m->whole->end_ns); l < m->link_count; l++)
		if (m->links[l].to == p && (m->links[l].kind == WEFT_LINK_READ || m->links[l].kind == WEFT_LINK_AWAIT))
			return true;
	return false;
}

/* Returns the stream of the thread that a finding is about; UINT16_MAX if it concerns several threads. */
static uint16_t get_stream(const struct weft_model *m, const struct weft_finding *finding)
{
	if (finding->promise == WEFT_SYSTEM || finding->kind == WEFT_FINDING_EXHAUSTED ||
	    finding->kind == WEFT_FINDING_STARVATION)
		return UINT16_MAX;
	const uint32_t run = weft_run_before(m, finding->promise, finding->start_ns + 1);
	return run != WEFT_NONE && m->run_streams ? m->run_streams[run] : m->promises[finding->promise].stream;
}

static bool is_reported(const struct weft__finder *f, size_t count, const struct weft_finding *later)
{
	for (size_t i = 0; i < count; i++) {
		const struct weft_finding *finding = &f->findings.items[i];
		if (finding->promise == later->promise &&
		    (finding->kind == later->kind || (is_about_end(finding->kind) && is_about_end(later->kind))))
			return true;
	}
	return false;
}

static void add_doubt(struct weft_finding *finding, const char *why)
{
	if (finding->sure)
		finding->doubt = why;
	finding->sure = false;
}

/* Returns whether a thread whose events are missing may have resolved p. */
static bool is_job(const struct weft_model *m, uint32_t p, const bool *jobs)
{
	return jobs && jobs[get_job_type(m, &m->promises[p])];
}

/* Checks whether later events contradict a finding of the complete prefix. */
static void filter_before(const struct weft_model *m, struct weft_finding *finding)
{
	if ((is_about_end(finding->kind) && (has_ended_later(m, finding->promise) || has_ended_later(m, finding->root))) ||
	    (finding->kind == WEFT_FINDING_FAILURE && was_noticed_later(m, finding->promise)))
		finding->kind = WEFT_FINDING_KINDS;
	else if (m->whole->has_absent)
		add_doubt(finding, "events of some threads are missing at the end");
	else if (finding->kind == WEFT_FINDING_BACKLOG)
		add_doubt(finding, "events are missing later in the trace, so the backlog may have shrunk again");
}

/* Drops a finding of the whole model if it depends on missing events, or if the complete prefix has the same finding. */
static void filter_after(struct weft__finder *f, size_t count, struct weft_finding *finding, bool was_seen)
{
	const struct weft_model *m = f->model;
	const bool is_before = m->whole && finding->end_ns <= m->whole->end_ns;
	if ((was_seen &&
		(is_before || weft__are_events_missing(m, get_stream(m, finding), finding->start_ns, finding->end_ns))) ||
	    is_reported(f, count, finding))
		finding->kind = WEFT_FINDING_KINDS;
	else if (was_seen)
		add_doubt(finding, "events are missing in the trace");
}

void weft__missing_events_filter(struct weft__finder *f, size_t count, unsigned (*needs)(enum weft_finding_kind kind))
{
	const struct weft_model *m = f->model;
	const bool is_lost = f->completeness && f->completeness[m->trace->part_count ? m->trace->part_count : 1].lost;
	const bool has_absent = m->whole && m->whole->has_absent;
	bool *jobs = has_absent ? find_jobs(m) : NULL;
	f->no_memory |= has_absent && !jobs;
	for (size_t i = 0; i < f->findings.count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		const unsigned needed = needs(finding->kind);
		if (i < count && m->whole)
			filter_before(m, finding);
		else if (is_lost)
			filter_after(f, count, finding, needed & WEFT__NEED_OBSERVED);
		if (is_about_end(finding->kind) && (is_job(m, finding->promise, jobs) || is_job(m, finding->root, jobs)))
			finding->kind = WEFT_FINDING_KINDS;
		if (needed & WEFT__NEED_TYPES && m->trace->has_missing_names)
			add_doubt(
			    finding, "names are missing in the trace, so promises with the same label may be different things");
	}
	free(jobs);
}
