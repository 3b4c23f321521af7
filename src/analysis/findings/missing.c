/* missing.c: which findings hold where events are missing.
 *
 * Up to the first of these the trace is a whole one, whose program might have been killed then: its findings hold, unless what
 * came later says otherwise.  After that moment, what was seen from its beginning to its end holds, since it needs no event of
 * another time or OS thread.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

/* Says that something did not come, which may have come since. */
static bool is_about_end(enum weft_finding_kind kind)
{
	return kind == WEFT_FINDING_DEADLOCK || kind == WEFT_FINDING_CYCLE || kind == WEFT_FINDING_HANG ||
	       kind == WEFT_FINDING_UNANSWERED || kind == WEFT_FINDING_UNRETURNED || kind == WEFT_FINDING_STUCK ||
	       kind == WEFT_FINDING_LEAK || kind == WEFT_FINDING_UNDERWAY;
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

void weft__missing_settle(struct weft__finder *f, size_t count, bool (*was_seen)(enum weft_finding_kind kind))
{
	const struct weft_model *m = f->model;
	const bool is_lost = f->lacks && f->lacks[m->trace->part_count ? m->trace->part_count : 1].lost;
	for (size_t i = 0; i < count; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		if ((is_about_end(finding->kind) && (ended_later(m, finding->promise) || ended_later(m, finding->root))) ||
		    (finding->kind == WEFT_FINDING_FAILURE && was_noticed_later(m, finding->promise)))
			finding->kind = WEFT_FINDING_KINDS;
		else if (m->whole->has_absent) {
			finding->doubt = finding->sure ? "of some OS threads, events are missing at the end" : finding->doubt;
			finding->sure = false;
		}
	}
	for (size_t i = count; i < f->findings.count && is_lost; i++) {
		struct weft_finding *finding = &f->findings.items[i];
		const bool seen = was_seen(finding->kind);
		if ((seen && ((m->whole && finding->end_ns <= m->whole->end_ns) ||
				 weft__lacks_between(m, stream_of(m, finding), finding->start_ns, finding->end_ns))) ||
		    is_told(f, count, finding))
			finding->kind = WEFT_FINDING_KINDS;
		else if (seen && finding->sure) {
			finding->sure = false;
			finding->doubt = weft__lacks_text(&f->lacks[m->trace->part_count ? m->trace->part_count : 1]);
		}
	}
}
