/* hang_pool.c: finds why a promise was never resolved although other promises of its type were.
 *
 * Either the threads that do such work sleep at a condition that was signalled too early, or the promise that resolved the last
 * other promise of the type is itself waiting.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

enum { MAX_PEERS = 16, MAX_SCANNED = 4096, MAX_STREAMS = 64 };

/* Returns a bit set of the streams on which other promises of the type ran; 0 if they are unknown. */
static uint64_t find_type_streams(const struct weft__finder *f, uint32_t root)
{
	const struct weft_model *m = f->model;
	uint64_t streams = 0;
	for (uint32_t p = root, peers = 0; p-- > 1 && root - p < MAX_SCANNED && peers < MAX_PEERS;) {
		if (f->types.of[p] != f->types.of[root] || m->promises[p].runs == m->promises[p + 1].runs)
			continue;
		uint16_t stream = m->run_streams[m->promises[p].runs];
		if (stream >= MAX_STREAMS)
			return 0;
		streams |= (uint64_t)1 << stream;
		peers++;
	}
	return streams;
}

/* Returns the stream of a thread; MAX_STREAMS if it is unknown. */
static uint16_t get_thread_stream(const struct weft_model *m, uint32_t thread)
{
	uint32_t run = weft_run_before(m, thread, INT64_MAX);
	return run == WEFT_NONE || m->run_streams[run] >= MAX_STREAMS ? MAX_STREAMS : m->run_streams[run];
}

/* Returns the condition for which a thread waits, if the wait began after the condition's last signal; else WEFT_NONE. */
static uint32_t find_late_wait(const struct weft__finder *f, uint32_t thread, struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	for (uint32_t k = f->wait_graph.begin[thread]; k < f->wait_graph.begin[thread + 1]; k++) {
		uint32_t condition = f->wait_graph.waits[k].to;
		if (!weft_kind_has(m->promises[condition].kind, WEFT_TRAIT_CONDITION))
			continue;
		uint32_t last = WEFT_NONE;
		for (uint32_t i = f->link_index.in_begin[condition]; i < f->link_index.in_begin[condition + 1]; i++)
			if (m->links[f->link_index.in[i]].kind == WEFT_LINK_SIGNAL)
				last = f->link_index.in[i];
		int64_t since_ns = weft__wait_graph_since(&f->wait_graph, thread, &f->wait_graph.waits[k]);
		if (last == WEFT_NONE || m->links[last].time_ns >= since_ns)
			continue;
		*late = (struct weft__late_waiter){thread, condition, last, since_ns};
		return condition;
	}
	return WEFT_NONE;
}

bool weft__hang_pool_find(const struct weft__finder *f, uint32_t root, struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	if (!m->run_streams || m->promises[root].runs != m->promises[root + 1].runs ||
	    !weft__wait_graph_has_kind(&f->wait_graph, WEFT_KIND_THREAD))
		return false;
	uint64_t streams = find_type_streams(f, root), asleep = 0;
	for (size_t i = 0; streams && i < f->wait_graph.pending.count; i++) {
		uint32_t p = f->wait_graph.pending.items[i];
		struct weft__late_waiter found;
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || !weft__has_complete_history(f->completeness, m, p))
			continue;
		uint16_t stream = get_thread_stream(m, p);
		if (stream == MAX_STREAMS || !(streams >> stream & 1) || !f->idle_at_end[stream] ||
		    find_late_wait(f, p, &found) == WEFT_NONE)
			continue;
		/* The last signal came after the creation of the work, so it was for this work or for later work. */
		if (m->links[found.signal].time_ns >= m->promises[root].start_ns) {
			asleep |= (uint64_t)1 << stream;
			*late = found;
		}
	}
	return streams && asleep == streams;
}

void weft__hang_pool_report(
    struct weft__finder *f, struct weft_finding *finding, const char *what, const struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	const struct weft_link *signal = &m->links[late->signal];
	const char *name = weft__format_promise(f, late->condition), *thread = weft__format_promise(f, late->thread);
	const char *early = weft__format_duration(f, late->since_ns - signal->time_ns),
		   *root = weft__format_promise(f, finding->root);
	finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
	finding->title = weft__finding_text(f, "%s: %s missed the signal for %s%s", what,
	    weft__format_promise_id(f, late->thread), root, weft__format_site_suffix(f, finding->root));
	weft__evidence_add_creation(f, finding->root);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from, "%s%s signals %s for the last time",
	    weft__format_promise(f, signal->from), weft__format_site_suffix(f, signal->from), name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, late->since_ns, late->thread,
	    "%s%s starts to wait for this condition %s too late: lost wake-up", thread, weft__format_site_suffix(f, late->thread),
	    early);
	finding->next = "check the condition before the wait, with the lock held, and again after each wake-up";
}

/* ---- Waiting resolvers ---- */

/* Returns the last resolved promise of the same source location and kind, whatever its label; WEFT_NONE if there is none. */
static uint32_t find_last_resolved(const struct weft__finder *f, uint32_t root)
{
	const struct weft_promise *promises = f->model->promises, *like = &promises[root];
	uint32_t last = WEFT_NONE;
	for (uint32_t p = root; p-- > 1 && root - p < MAX_SCANNED && like->site != WEFT_NONE;)
		if (promises[p].site == like->site && promises[p].kind == like->kind && promises[p].end == WEFT_END_RESOLVED &&
		    (last == WEFT_NONE || promises[p].end_ns > promises[last].end_ns))
			last = p;
	return last;
}

uint32_t weft__hang_pool_find_stuck(const struct weft__finder *f, uint32_t root)
{
	const struct weft_model *m = f->model;
	uint32_t last = m->promises[root].kind == WEFT_KIND_SEMAPHORE ? WEFT_NONE : find_last_resolved(f, root), by = WEFT_NONE;
	for (uint32_t i = last == WEFT_NONE ? 0 : f->link_index.in_begin[last];
	     last != WEFT_NONE && i < f->link_index.in_begin[last + 1]; i++)
		if (m->links[f->link_index.in[i]].kind == WEFT_LINK_RESOLVE)
			by = f->link_index.final[m->links[f->link_index.in[i]].from];
	if (by == WEFT_NONE || by == WEFT_SYSTEM || !weft__wait_graph_is_pending(m, by, INT64_MAX) ||
	    weft_kind_has(m->promises[by].kind, WEFT__TRAITS_LASTING) || f->root_causes.next[by] == WEFT_NONE ||
	    f->root_causes.root[by] == root)
		return WEFT_NONE;
	return by;
}

void weft__hang_pool_report_stuck(struct weft__finder *f, struct weft_finding *finding, const char *what, uint32_t by)
{
	uint32_t root = finding->root, end = f->root_causes.root[by];
	const char *name = weft__format_promise(f, by), *it = weft__format_promise(f, end),
		   *at = weft__format_site_suffix(f, end);
	finding->title = weft__finding_text(f, "%s: %s, which resolves promises like %s, waits for %s%s", what, name,
	    weft__format_promise_id(f, root), weft__format_promise_id(f, end), at);
	weft__evidence_add_creation(f, root);
	weft__evidence_add_peers(f, root);
	weft__hang_add_chain(f, by);
	finding->next = weft__finding_text(f, "find out why nothing resolves %s%s, for which all the others wait", it, at);
}

/* ---- Semaphores ---- */

void weft__hang_pool_report_tokens(struct weft__finder *f, uint32_t semaphore)
{
	const struct weft_model *m = f->model;
	size_t reported = 0, more = 0, ended = 0;
	for (uint32_t p = semaphore, steps = 0; p-- > 1 && steps < MAX_SCANNED; steps++) {
		if (m->promises[p].kind != WEFT_KIND_SEMAPHORE || f->types.of[p] != f->types.of[semaphore] ||
		    m->promises[p].end != WEFT_END_RESOLVED)
			continue;
		uint32_t has = WEFT_NONE;
		for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++)
			if (m->links[f->link_index.in[i]].kind == WEFT_LINK_READ)
				has = f->link_index.final[m->links[f->link_index.in[i]].from];
		if (has == WEFT_NONE)
			continue;
		if (!weft__wait_graph_is_pending(m, has, INT64_MAX))
			ended++;
		else if (reported++ < WEFT__MAX_LINES)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[p].end_ns, has,
			    "%s%s got the semaphore at this time, and has not ended", weft__format_promise(f, has),
			    weft__format_site_suffix(f, has));
		else
			more++;
	}
	weft__evidence_add_more(f, WEFT_EVIDENCE_NOTE, more, " that got the semaphore and have not ended");
	if (ended > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%zu promise%s that got the semaphore ha%s ended, and must have released it", ended,
		    weft__format_plural_s(ended), ended == 1 ? "s" : "ve");
}
