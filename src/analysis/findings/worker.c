/* worker.c: what nobody ends, since who ended others of its sort cannot: OS threads that do such work sleep at a condition that
 * was signalled too early, or the one that ended the last of them waits for something else.  SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"

enum { PEERS = 16, LOOKED_AT = 4096, STREAMS = 64 };

/* On which OS threads others of the sort ran, a bit for each stream; 0: not known. */
static uint64_t streams_of_sort(const struct weft__finder *f, uint32_t root)
{
	const struct weft_model *m = f->model;
	uint64_t streams = 0;
	for (uint32_t p = root, peers = 0; p-- > 1 && root - p < LOOKED_AT && peers < PEERS;) {
		if (f->sorts.of[p] != f->sorts.of[root] || m->promises[p].runs == m->promises[p + 1].runs)
			continue;
		uint16_t stream = m->run_streams[m->promises[p].runs];
		if (stream >= STREAMS)
			return 0;
		streams |= (uint64_t)1 << stream;
		peers++;
	}
	return streams;
}

/* The stream of a promise of an OS thread; STREAMS: unknown. */
static uint16_t stream_of_thread(const struct weft_model *m, uint32_t thread)
{
	uint32_t run = weft_run_before(m, thread, INT64_MAX);
	return run == WEFT_NONE || m->run_streams[run] >= STREAMS ? STREAMS : m->run_streams[run];
}

/* The condition that an OS thread waits for, with the number of its last signal; WEFT_NONE: it is signalled since, or none. */
static uint32_t late_wait(const struct weft__finder *f, uint32_t thread, struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	for (uint32_t k = f->waiting.begin[thread]; k < f->waiting.begin[thread + 1]; k++) {
		uint32_t condition = f->waiting.waits[k].to;
		if (!weft_kind_has(m->promises[condition].kind, WEFT_TRAIT_CONDITION))
			continue;
		uint32_t last = WEFT_NONE;
		for (uint32_t i = f->ties.in_begin[condition]; i < f->ties.in_begin[condition + 1]; i++)
			if (m->links[f->ties.in[i]].kind == WEFT_LINK_SIGNAL)
				last = f->ties.in[i];
		int64_t since_ns = weft__waiting_since(&f->waiting, thread, &f->waiting.waits[k]);
		if (last == WEFT_NONE || m->links[last].time_ns >= since_ns)
			continue;
		*late = (struct weft__late_waiter){thread, condition, last, since_ns};
		return condition;
	}
	return WEFT_NONE;
}

bool weft__worker_find(const struct weft__finder *f, uint32_t root, struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	if (!m->run_streams || m->promises[root].runs != m->promises[root + 1].runs ||
	    !weft__waiting_any(&f->waiting, WEFT_KIND_THREAD))
		return false;
	uint64_t streams = streams_of_sort(f, root), asleep = 0;
	for (size_t i = 0; streams && i < f->waiting.pending.count; i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct weft__late_waiter found;
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) || !weft__lacks_nothing_of(f->lacks, m, p))
			continue;
		uint16_t stream = stream_of_thread(m, p);
		if (stream == STREAMS || !(streams >> stream & 1) || !f->at_rest[stream] || late_wait(f, p, &found) == WEFT_NONE)
			continue;
		/* Its signal is for this work, or for work that came later. */
		if (m->links[found.signal].time_ns >= m->promises[root].start_ns) {
			asleep |= (uint64_t)1 << stream;
			*late = found;
		}
	}
	return streams && asleep == streams;
}

void weft__worker_tell(
    struct weft__finder *f, struct weft_finding *finding, const char *what, const struct weft__late_waiter *late)
{
	const struct weft_model *m = f->model;
	const struct weft_link *signal = &m->links[late->signal];
	const char *name = weft__words_name(f, late->condition), *thread = weft__words_name(f, late->thread);
	const char *early = weft__words_span(f, late->since_ns - signal->time_ns), *root = weft__words_name(f, finding->root);
	finding->verdict = WEFT_VERDICT_LOST_WAKEUP;
	finding->title = weft__finding_text(f,
	    "%s: nobody took %s%s: lost wake-up, %s was last signalled %s before %s, which does such work, began to wait for it",
	    what, root, weft__words_at(f, finding->root), name, early, thread);
	weft__words_creation(f, finding->root);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from, "%s%s signals %s for the last time",
	    weft__words_name(f, signal->from), weft__words_at(f, signal->from), name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, late->since_ns, late->thread, "%s%s begins to wait for it: %s too late",
	    thread, weft__words_at(f, late->thread), early);
	finding->next = "check what the condition tells of before waiting, with the lock held, and again after each wake-up";
}

/* ---- Who ended the last of them ---- */

/* Of one place and kind, whatever their labels: the one that was resolved last; WEFT_NONE: none was. */
static uint32_t last_like(const struct weft__finder *f, uint32_t root)
{
	const struct weft_promise *promises = f->model->promises, *like = &promises[root];
	uint32_t last = WEFT_NONE;
	for (uint32_t p = root; p-- > 1 && root - p < LOOKED_AT && like->site != WEFT_NONE;)
		if (promises[p].site == like->site && promises[p].kind == like->kind && promises[p].end == WEFT_END_RESOLVED &&
		    (last == WEFT_NONE || promises[p].end_ns > promises[last].end_ns))
			last = p;
	return last;
}

uint32_t weft__worker_stuck(const struct weft__finder *f, uint32_t root)
{
	const struct weft_model *m = f->model;
	uint32_t last = m->promises[root].kind == WEFT_KIND_SEMAPHORE ? WEFT_NONE : last_like(f, root), by = WEFT_NONE;
	for (uint32_t i = last == WEFT_NONE ? 0 : f->ties.in_begin[last]; last != WEFT_NONE && i < f->ties.in_begin[last + 1];
	     i++)
		if (m->links[f->ties.in[i]].kind == WEFT_LINK_RESOLVE)
			by = f->ties.now[m->links[f->ties.in[i]].from];
	if (by == WEFT_NONE || by == WEFT_SYSTEM || !weft__waiting_is_pending(m, by, INT64_MAX) ||
	    weft_kind_has(m->promises[by].kind, WEFT__TRAITS_LASTING) || f->chains.next[by] == WEFT_NONE ||
	    f->chains.root[by] == root)
		return WEFT_NONE;
	return by;
}

void weft__worker_tell_stuck(struct weft__finder *f, struct weft_finding *finding, const char *what, uint32_t by)
{
	uint32_t root = finding->root, end = f->chains.root[by];
	const char *name = weft__words_name(f, by), *it = weft__words_name(f, end), *at = weft__words_at(f, end);
	finding->title = weft__finding_text(f, "%s: nobody ended %s%s; %s%s, which ended the last other, waits itself for %s%s",
	    what, weft__words_name(f, root), weft__words_at(f, root), name, weft__words_at(f, by), it, at);
	weft__words_creation(f, root);
	weft__words_peers(f, root);
	weft__hang_chain(f, by);
	finding->next = weft__finding_text(f, "find out why nobody ends %s%s: all else waits for that", it, at);
}

/* ---- Semaphores ---- */

void weft__worker_tell_tokens(struct weft__finder *f, uint32_t semaphore)
{
	const struct weft_model *m = f->model;
	size_t told = 0, more = 0, ended = 0;
	for (uint32_t p = semaphore, steps = 0; p-- > 1 && steps < LOOKED_AT; steps++) {
		if (m->promises[p].kind != WEFT_KIND_SEMAPHORE || f->sorts.of[p] != f->sorts.of[semaphore] ||
		    m->promises[p].end != WEFT_END_RESOLVED)
			continue;
		uint32_t has = WEFT_NONE;
		for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++)
			if (m->links[f->ties.in[i]].kind == WEFT_LINK_READ)
				has = f->ties.now[m->links[f->ties.in[i]].from];
		if (has == WEFT_NONE)
			continue;
		if (!weft__waiting_is_pending(m, has, INT64_MAX))
			ended++;
		else if (told++ < WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, m->promises[p].end_ns, has,
			    "%s%s has got it there, and has not come to its end", weft__words_name(f, has),
			    weft__words_at(f, has));
		else
			more++;
	}
	weft__words_more(f, WEFT_EVIDENCE_NOTE, more, " who have got it and have not come to their ends");
	if (ended > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%zu who had got it ha%s come to the end: each must have released it", ended, ended == 1 ? "s" : "ve");
}
