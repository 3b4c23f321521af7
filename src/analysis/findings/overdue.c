/* overdue.c: finds timers that another thread gave to a loop that sleeps: the loop was not woken, and does not know the timer.
 * SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/duration.h"

enum { LONG_STALLS = 100 }; /* shortest delay, in stall limits, that a busy machine does not explain */

static void report_timer(struct weft__finder *f, uint32_t timer, uint32_t loop, int64_t due_ns, int64_t slept_ns)
{
	const struct weft_model *m = f->model;
	const struct weft_promise *promise = &m->promises[timer];
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, timer, promise->start_ns, weft_model_until(m, timer));
	if (!finding)
		return;
	f->reported[timer] = true;
	const char *name = weft__format_promise(f, timer), *at = weft__format_site_suffix(f, timer),
		   *in = weft__format_promise(f, loop);
	finding->verdict = WEFT_VERDICT_NOT_RUN;
	finding->weight = 1;
	finding->title = weft__finding_text(f, "%s is %s overdue: another thread started it, and %s was not woken%s", name,
	    weft__format_duration(f, weft_model_until(m, timer) - due_ns), weft__format_promise_id(f, loop), at);
	finding->next = weft__finding_text(f,
	    "start the timer on the thread of its loop, or make the library wake the loop, as evthread_use_pthreads() does%s",
	    at);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, slept_ns, loop, "the thread of %s falls asleep, and sleeps until the end", in);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, promise->start_ns, promise->created_by, "%s starts %s%s on another thread",
	    weft__format_promise(f, promise->created_by), name, at);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, due_ns, timer, "%s is due", name);
}

void weft__overdue_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0;
	     i < f->wait_graph.pending.count && !m->is_whole && weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		const uint32_t timer = f->wait_graph.pending.items[i];
		const uint32_t loop = m->promises[timer].kind == WEFT_KIND_TIMER ? weft__find_awaiting_loop(f, timer) : WEFT_NONE;
		if (loop == WEFT_NONE || m->promises[loop].stream == m->promises[timer].stream ||
		    weft__completeness_of(f->completeness, m, timer)->lost)
			continue;
		const int64_t due_ns = weft__timer_due_ns(&f->link_index, timer, INT64_MAX);
		const struct weft_interval *sleep = weft__hang_thread_sleep_at_end(m, m->promises[loop].stream);
		if (due_ns != INT64_MIN && sleep && sleep->start_ns < m->promises[timer].start_ns &&
		    weft_model_until(m, timer) - due_ns >= LONG_STALLS * f->options.stall_ns)
			report_timer(f, timer, loop, due_ns, sleep->start_ns);
	}
}
