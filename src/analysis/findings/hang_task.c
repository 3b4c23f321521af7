/* hang_task.c: finds tasks whose function has ended on a thread of a pool, and whose callback no event loop runs.
 *
 * GLib runs the callback in the context in which the task was created.  A loop that runs another context, such as a nested loop
 * that waits for the task, sleeps forever.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/duration.h"

enum { LONG_STALLS = 100 }; /* shortest delay of a callback, in stall limits, that a busy machine does not explain */

uint32_t weft__find_awaiting_loop(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && weft_kind_has(m->promises[link->from].kind, WEFT_TRAIT_LOOP) &&
		    f->link_index.ended_ns[link->from] == WEFT_NEVER && weft_model_await_end(m, link) == WEFT_NEVER)
			return link->from;
	}
	return WEFT_NONE;
}

/* Returns the only run of a task, if the run was on another thread than that of its loop; WEFT_NONE if it is unknown. */
static uint32_t find_pool_run(const struct weft_model *m, uint32_t task, uint32_t loop)
{
	const uint32_t run = m->promises[task].runs;
	const bool is_one = m->promises[task + 1].runs == run + 1;
	return is_one && m->run_streams && m->run_streams[run] != m->promises[loop].stream ? run : WEFT_NONE;
}

/* Returns the loop that a callback runs inside of itself on the thread of `outer`; WEFT_NONE if there is none. */
static uint32_t find_nested_loop(const struct weft__finder *f, uint32_t outer)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < f->wait_graph.pending.count; i++) {
		const uint32_t p = f->wait_graph.pending.items[i];
		if (p != outer && weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP) &&
		    m->promises[p].stream == m->promises[outer].stream && m->promises[p].start_ns > m->promises[outer].start_ns)
			return p;
	}
	return WEFT_NONE;
}

static void report_task(struct weft__finder *f, uint32_t task, uint32_t loop, uint32_t run)
{
	const struct weft_model *m = f->model;
	const int64_t ended_ns = m->runs[run].end_ns, until_ns = weft_model_until(m, task);
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_HANG, task, ended_ns, until_ns);
	if (!finding)
		return;
	f->reported[task] = true;
	const char *name = weft__format_promise(f, task), *at = weft__format_site_suffix(f, task);
	const uint32_t nested = find_nested_loop(f, loop);
	finding->verdict = WEFT_VERDICT_NOT_RUN;
	finding->weight = 1;
	finding->title = weft__finding_text(f, "%s ended on its thread, and no event loop has run its callback for %s%s", name,
	    weft__format_duration(f, until_ns - ended_ns), at);
	finding->next = weft__finding_text(f, "run the context in which the code creates %s%s", name, at);
	weft__evidence_add_creation(f, task);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, ended_ns, task, "the function of %s ends on its thread; the callback is due", name);
	if (nested != WEFT_NONE)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[nested].start_ns, nested,
		    "%s%s runs instead of %s, and does not run the callback", weft__format_promise(f, nested),
		    weft__format_site_suffix(f, nested), weft__format_promise_id(f, loop));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, loop, "the thread of %s sleeps at the end", weft__format_promise_id(f, loop));
}

void weft__hang_task_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0;
	     i < f->wait_graph.pending.count && !m->is_whole && weft__finding_may_continue(f, i, f->wait_graph.pending.count);
	     i++) {
		const uint32_t task = f->wait_graph.pending.items[i];
		const uint32_t loop = m->promises[task].kind == WEFT_KIND_TASK ? weft__find_awaiting_loop(f, task) : WEFT_NONE;
		const uint32_t run = loop != WEFT_NONE ? find_pool_run(m, task, loop) : WEFT_NONE;
		if (run == WEFT_NONE || f->reported[task] || weft__wait_graph_count(&f->wait_graph, task) > 0 ||
		    !f->idle_at_end[m->promises[loop].stream] || weft__completeness_of(f->completeness, m, task)->lost ||
		    weft_model_until(m, task) - m->runs[run].end_ns < LONG_STALLS * f->options.stall_ns)
			continue;
		report_task(f, task, loop, run);
	}
}
