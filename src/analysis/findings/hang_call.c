/* hang_call.c: finds callbacks that are blocked in a call when the trace ends, so that the event loop never continued.
 * SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/known_strings.h"

enum {
	HANG_STALLS = 50, /* shortest reported time in the call, in stall limits: a killed program may be in any call */
	LONG_STALLS = 100 /* time in the call, in stall limits, that a busy machine does not explain */
};

static const char blocked_in[] = "blocked in ";

/* Returns whether a thread is blocked until the end of the trace in the call of the pause, and does not sleep on purpose. */
static bool is_open_call(const struct weft_model *m, const struct weft_interval *pause)
{
	const struct weft_str text = weft_model_text(m, pause->text);
	return pause->end_ns >= weft_model_stream_until(m, pause->stream) && weft_text_starts_with(text, blocked_in) &&
	       !weft_text_has_meaning(text, WEFT_MEANING_SLEEP);
}

/* Returns the pause of a thread that lasts until the end of the trace; NULL if the thread is not blocked in a known call. */
static const struct weft_interval *find_open_call(const struct weft_model *m, uint16_t stream)
{
	for (size_t i = m->pause_count; i-- > 0;)
		if (m->pauses[i].stream == stream)
			return is_open_call(m, &m->pauses[i]) ? &m->pauses[i] : NULL;
	return NULL;
}

bool weft__hang_call_find_blocked(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (!(f->blocked_at_end = weft__finding_alloc(f, m->trace->stream_count, sizeof *f->blocked_at_end)))
		return false;
	for (size_t i = 0; i < m->pause_count; i++) {
		const struct weft_interval *pause = &m->pauses[i];
		if (pause->stream < m->trace->stream_count)
			f->blocked_at_end[pause->stream] =
			    is_open_call(m, pause) && pause->end_ns - pause->start_ns >= HANG_STALLS * f->options.stall_ns;
	}
	return true;
}

/* Returns the lock, condition or other promise that p waits for at the end; WEFT_NONE if the trace does not record it. */
static uint32_t find_awaited(const struct weft__finder *f, uint32_t p)
{
	const struct weft__wait_graph *w = &f->wait_graph;
	return w->begin[p] < w->begin[p + 1] ? w->waits[w->begin[p]].to : WEFT_NONE;
}

/* Returns the end of a title ": lock 6 is held by thread 4 "ping""; "" if the trace does not record the cause. */
static const char *format_cause(struct weft__finder *f, uint32_t awaited)
{
	if (awaited == WEFT_NONE)
		return "";
	const char *name = weft__format_promise(f, awaited);
	const uint32_t holder =
	    weft_kind_has(f->model->promises[awaited].kind, WEFT__TRAITS_HELD) ? find_awaited(f, awaited) : WEFT_NONE;
	return holder != WEFT_NONE ? weft__finding_text(f, ": %s is held by %s", name, weft__format_promise(f, holder))
				   : weft__finding_text(f, ": it waits for %s", name);
}

/* Adds the other promises that wait for the same lock or condition, and what they have given to the event loop of p, which does
 * not run meanwhile. */
static void report_other_waiters(struct weft__finder *f, uint32_t p, uint32_t awaited)
{
	const struct weft_model *m = f->model;
	size_t shown = 0;
	for (uint32_t i = f->link_index.in_begin[awaited]; i < f->link_index.in_begin[awaited + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		const uint32_t other = link->from;
		if (link->kind != WEFT_LINK_AWAIT || other == p || other == WEFT_SYSTEM ||
		    weft_model_await_end(m, link) != WEFT_NEVER || shown++ >= WEFT__MAX_LINES)
			continue;
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, link->time_ns, other, "%s waits for %s too%s",
		    weft__format_promise(f, other), weft__format_promise(f, awaited),
		    weft__format_wait_place(f, other, awaited, link->time_ns));
		for (size_t k = 0; k < f->wait_graph.pending.count; k++) {
			const uint32_t given = f->wait_graph.pending.items[k];
			if (m->promises[given].created_by != other || m->promises[given].start_ns > link->time_ns ||
			    !weft_kind_has(m->promises[given].kind, WEFT_TRAIT_OUTSIDE) ||
			    weft_run_before(m, given, INT64_MAX) != WEFT_NONE)
				continue;
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[given].start_ns, given,
			    "%s of %s%s is due, and the event loop does not run it", weft__format_promise(f, given),
			    weft__format_promise(f, other), weft__format_site_suffix(f, given));
			break;
		}
	}
}

/* Returns the name of the call without "blocked in "; a call of the C library's syscall() that waits for a promise is a wait. */
static const char *format_call(struct weft__finder *f, const struct weft_interval *call, uint32_t awaited)
{
	const char *name = weft__format_text(f, call->text) + sizeof blocked_in - 1;
	return awaited != WEFT_NONE && !strcmp(name, "syscall") ? "a wait" : name;
}

static void report_call(struct weft__finder *f, uint32_t p, const struct weft_interval *call)
{
	const struct weft_model *m = f->model;
	const uint32_t awaited = find_awaited(f, p);
	const int64_t length_ns = call->end_ns - call->start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_HANG, p, call->start_ns, call->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *in = format_call(f, call, awaited),
		   *place = weft__format_place(f, weft_model_place(m, call)), *made_at = weft__format_site_suffix(f, p);
	const char *at = *place ? weft__finding_text(f, " (%s)", place + sizeof " at") : made_at;
	finding->weight = 1;
	if (awaited != WEFT_NONE) {
		finding->root = f->root_causes.root[p];
		finding->verdict = f->root_causes.verdict[p];
		weft__hang_add_chain(f, p);
		f->reported[finding->root] = true;
	}
	finding->title = weft__finding_text(f, "%s has not returned from %s for %s%s%s", name, in,
	    weft__format_duration(f, length_ns), format_cause(f, awaited), at);
	finding->next =
	    weft__finding_text(f, "find out what should end the call, and make the call outside of the event loop%s", at);
	weft__evidence_add_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, call->start_ns, awaited,
	    !strcmp(in, "a wait") ? "%s begins %s%s, which does not end" : "%s calls %s%s, which does not return before the end",
	    name, in, place);
	if (awaited != WEFT_NONE)
		report_other_waiters(f, p, awaited);
	weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
	    "its event loop makes no other callback meanwhile, on thread %s",
	    weft__format_sanitized(f, m->trace->streams[call->stream].name));
	if (length_ns < LONG_STALLS * f->options.stall_ns)
		weft__finding_doubt(f, "the call may have been about to return when the trace ended");
}

void weft__hang_call_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->delays.stalls.count && weft__finding_may_continue(f, i, f->delays.stalls.count); i++) {
		const struct weft__stall *s = &f->delays.stalls.items[i];
		const uint32_t p = s->promise;
		const struct weft_interval *call = s->is_open ? find_open_call(m, s->stream) : NULL;
		if (!call || p == WEFT_SYSTEM || !s->is_on_loop || m->is_whole ||
		    call->end_ns - call->start_ns < HANG_STALLS * f->options.stall_ns ||
		    weft__completeness_of(f->completeness, m, p)->lost)
			continue;
		/* The check for cycles has already reported a deadlock. */
		const bool is_told = f->reported[p] || f->root_causes.verdict[p] == WEFT_VERDICT_CYCLE;
		f->reported[p] = true;
		if (!is_told)
			report_call(f, p, call);
	}
}

bool weft__hang_call_report_last(struct weft__finder *f, uint32_t p, uint16_t stream)
{
	const struct weft_interval *call = find_open_call(f->model, stream);
	const size_t told = f->findings.count;
	if (!call)
		return false;
	report_call(f, p, call);
	if (f->findings.count > told && !f->findings.items[told].sure)
		f->findings.items[told].severity = WEFT_SEVERITY_INFORMATION;
	return true;
}
