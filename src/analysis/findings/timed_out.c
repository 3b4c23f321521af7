/* timed_out.c: reports operations that are always ended by their timeout, because no answer ever comes in time.
 *
 * A timeout ends an operation in one of two ways: the operation waits for either an answer or a timer and the timer ends first,
 * or the callback of a timer cancels the operation.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/known_strings.h"

enum {
	MIN_TIMED_OUT = 10, /* fewest timeouts: fewer may have a peer that was slow once */
	TIMES_OTHERS = 16   /* least ratio of timeouts to operations that ended otherwise */
};

/* The promises of one label pattern that a timeout ended. */
struct timeouts {
	uint32_t count, ended;
	/* the first promise that timed out; the last promise that timed out; the timer of the first one */
	uint32_t first, last, timer;
};

/* Returns whether a label of the promise says that it was cancelled. */
static bool is_marked_cancelled(const struct weft_model *m, uint32_t p, uint32_t word)
{
	for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++)
		if (m->labels[l].text == word && !m->labels[l].is_counter)
			return true;
	return false;
}

/* Returns the timer whose callback cancelled the failed promise; WEFT_NONE if no timer did.  `word`: the text "cancelled". */
static uint32_t find_cancelling_timer(const struct weft__finder *f, uint32_t p, uint32_t word)
{
	const struct weft_model *m = f->model;
	if (word == WEFT_NONE || !is_marked_cancelled(m, p, word))
		return WEFT_NONE;
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && f->types.kinds[link->from] == WEFT_KIND_TIMER)
			return link->from;
	}
	return WEFT_NONE;
}

/* Returns the timer that ended first, if the failed promise waited for the first of several promises; WEFT_NONE if the first
 * was no timer.  A wait for a condition that no code signals does not count: it is no operation that could get an answer. */
static uint32_t find_first_timer(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	uint32_t timer = WEFT_NONE;
	if (!weft_kind_has(f->types.kinds[p], WEFT_TRAIT_FIRST))
		return WEFT_NONE;
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		const uint16_t kind = f->types.kinds[f->link_index.final[link->to]];
		if (weft_kind_has(kind, WEFT_TRAIT_CONDITION))
			return WEFT_NONE;
		if (link->kind == WEFT_LINK_READ && kind == WEFT_KIND_TIMER)
			timer = f->link_index.final[link->to];
	}
	return timer;
}

/* Returns the outermost promise that failed with the error of p because p failed, and that has a label or a source location. */
static uint32_t find_outermost(const struct weft__finder *f, uint32_t p)
{
	enum { MAX_STEPS = 8 };
	const struct weft_model *m = f->model;
	uint32_t outermost = p;
	for (int steps = 0; steps < MAX_STEPS; steps++) {
		uint32_t reader = WEFT_NONE;
		for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1] && reader == WEFT_NONE; i++) {
			const struct weft_link *link = &m->links[f->link_index.in[i]];
			if (link->kind == WEFT_LINK_READ && link->from != p && m->promises[link->from].end == WEFT_END_FAILED &&
			    m->promises[link->from].failure == m->promises[p].failure)
				reader = link->from;
		}
		if (reader == WEFT_NONE)
			break;
		p = reader;
		outermost = f->types.items.items[f->types.of[p]].named ? p : outermost;
	}
	return outermost;
}

static void report_timeouts(struct weft__finder *f, const struct timeouts *of)
{
	const struct weft_model *m = f->model;
	const uint32_t p = of->first, timer = of->timer;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_RETRIES, p, m->promises[p].start_ns, m->promises[of->last].end_ns);
	if (!finding)
		return;
	const char *type = weft__format_type_group(f, p, weft_first_label(m, p) == WEFT_NONE),
		   *at = weft_first_label(m, p) == WEFT_NONE ? "" : weft__format_site_suffix(f, p);
	const char *limit = weft__format_duration(f, m->promises[p].end_ns - m->promises[p].start_ns);
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = of->count;
	finding->title = weft__finding_text(f, "%" PRIu32 " of %" PRIu32 " promises %s ended by their timeout: %s came in time%s",
	    of->count, of->ended, type, of->count == of->ended ? "no answer" : "hardly any answer", at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].start_ns, p, "%s is created%s", weft__format_promise(f, p),
	    weft__format_site_suffix(f, p));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[p].end_ns, timer,
	    "%s%s ends this promise %s later, before an answer came", weft__format_promise(f, timer),
	    weft__format_site_suffix(f, timer), limit);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[of->last].end_ns, of->last,
	    "%s is the last promise that its timeout ended", weft__format_promise(f, of->last));
	finding->next = weft__finding_text(f, "find out why the answers take longer than the timeout, or set a longer one%s",
	    weft__format_site_suffix(f, timer));
}

/* Adds p, which the timer ended, to the timeouts of its label pattern. */
static void add_timeout(struct weft__finder *f, struct timeouts *timeouts, bool *is_counted, uint32_t p, uint32_t timer)
{
	const uint32_t top = find_outermost(f, p);
	struct timeouts *of = &timeouts[f->pattern_of[f->types.of[top]]];
	if (is_counted[top])
		return;
	is_counted[top] = true;
	if (of->count++ == 0) {
		of->first = top;
		of->timer = timer;
	}
	of->last = top;
}

void weft__timed_out_find(struct weft__finder *f)
{
	static const char word[] = WEFT_STRING_CANCELLED;
	const struct weft_model *m = f->model;
	const size_t count = f->types.items.count;
	if (!weft__promise_types_have(&f->types, WEFT_KIND_TIMER) || f->link_index.failed.count < MIN_TIMED_OUT)
		return;
	const uint32_t cancelled = weft_model_find_text(m, (struct weft_str){word, sizeof word - 1});
	const uint32_t *pattern_of = weft__finding_patterns(f);
	struct timeouts *timeouts = weft__finding_alloc(f, count, sizeof *timeouts);
	bool *is_counted = weft__finding_alloc(f, m->promise_count, sizeof *is_counted);
	const size_t failed = pattern_of && timeouts && is_counted ? f->link_index.failed.count : 0;
	for (size_t i = 0; i < failed && weft__finding_may_continue(f, i, failed); i++) {
		const uint32_t p = f->link_index.failed.items[i], first = find_first_timer(f, p),
			       timer = first != WEFT_NONE ? first : find_cancelling_timer(f, p, cancelled);
		if (timer != WEFT_NONE)
			add_timeout(f, timeouts, is_counted, p, timer);
	}
	for (size_t s = 0; failed > 0 && s < count; s++)
		timeouts[pattern_of[s]].ended += f->types.items.items[s].count - f->types.items.items[s].pending;
	for (size_t s = 0; failed > 0 && !f->no_memory && s < count; s++)
		if (timeouts[s].count >= MIN_TIMED_OUT &&
		    timeouts[s].ended - timeouts[s].count <= timeouts[s].count / TIMES_OTHERS)
			report_timeouts(f, &timeouts[s]);
	free(timeouts);
	free(is_counted);
}
