/* held.c: an OS thread that sleeps with a lock which others wait for.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"

enum { LEAST_STALLS = 10 }; /* so many times the length of a stall */

static int64_t overlap_ns(int64_t from_ns, int64_t to_ns, int64_t start_ns, int64_t end_ns)
{
	return weft_min_ns(to_ns, end_ns) - weft_max_ns(from_ns, start_ns);
}

/* For how long its OS thread slept in that time. */
static int64_t slept_ns(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	int64_t slept_ns = 0;
	for (size_t i = 0; i < m->sleep_count && m->sleeps[i].start_ns < to_ns; i++)
		if (m->sleeps[i].stream == stream && m->sleeps[i].end_ns > from_ns)
			slept_ns += overlap_ns(m->sleeps[i].start_ns, m->sleeps[i].end_ns, from_ns, to_ns);
	return slept_ns;
}

/* It waits for another one meanwhile: then that is to blame. */
static bool waits(const struct weft__finder *f, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		if (link->kind == WEFT_LINK_AWAIT &&
		    overlap_ns(link->time_ns, weft_model_await_end(m, link), from_ns, to_ns) >= (to_ns - from_ns) / 4)
			return true;
	}
	return false;
}

struct held {
	uint32_t lock, holder, victim, victims;
	int64_t from_ns, to_ns, slept_ns, longest_ns;
};

static void find_victims(const struct weft__finder *f, struct held *held)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.in_begin[held->lock]; i < f->ties.in_begin[held->lock + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		const int64_t waited_ns = overlap_ns(link->time_ns, weft_model_await_end(m, link), held->from_ns, held->to_ns);
		if (link->kind != WEFT_LINK_AWAIT || link->from == held->holder || waited_ns < LEAST_STALLS * f->options.stall_ns)
			continue;
		held->victims++;
		if (waited_ns <= held->longest_ns)
			continue;
		held->longest_ns = waited_ns;
		held->victim = link->from;
	}
}

static void tell(struct weft__finder *f, const struct held *held)
{
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STALL, held->holder, held->from_ns, held->to_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, held->holder), *lock = weft__words_name(f, held->lock),
		   *lock_at = weft__words_at(f, held->lock), *slept = weft__words_span(f, held->slept_ns),
		   *longest = weft__words_span(f, held->longest_ns);
	finding->root = held->lock;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = (uint64_t)held->longest_ns;
	finding->title =
	    weft__finding_text(f, "%s%s slept %s while it had %s%s, for which %" PRIu32 " other%s waited, for up to %s", name,
		weft__words_at(f, held->holder), slept, lock, lock_at, held->victims, weft__words_s(held->victims), longest);
	finding->next = weft__finding_text(f, "release %s before it sleeps, or do there only what the lock is for", lock);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, held->from_ns, held->holder, "%s has %s, and another one waits for it", name, lock);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held->to_ns, held->holder, "%s releases it, %s later", name,
	    weft__words_span(f, held->to_ns - held->from_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, held->from_ns, held->victim, "%s%s waits for %s",
	    weft__words_name(f, held->victim), weft__words_at(f, held->victim), longest);
	if (held->victims > 1)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, held->victims - 1, "");
}

void weft__held_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (!weft__sorts_have(&f->sorts, WEFT_KIND_LOCK) || !weft__sorts_have(&f->sorts, WEFT_KIND_THREAD))
		return;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		if (f->sorts.kinds[p] != WEFT_KIND_LOCK)
			continue;
		for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
			const struct weft_link *hold = &m->links[f->ties.out[i]];
			struct held held = {.lock = p, .holder = hold->to, .victim = WEFT_NONE, .from_ns = hold->time_ns};
			held.to_ns = weft_model_await_end(m, hold);
			if (hold->kind != WEFT_LINK_AWAIT || held.to_ns == WEFT_NEVER ||
			    held.to_ns - held.from_ns < LEAST_STALLS * f->options.stall_ns ||
			    !weft_kind_has(m->promises[hold->to].kind, WEFT_TRAIT_THREAD))
				continue;
			const uint32_t run = weft_run_before(m, hold->to, held.to_ns);
			if (run != WEFT_NONE && m->run_streams)
				held.slept_ns = slept_ns(m, m->run_streams[run], held.from_ns, held.to_ns);
			if (held.slept_ns < (held.to_ns - held.from_ns) / 2 || waits(f, hold->to, held.from_ns, held.to_ns))
				continue;
			find_victims(f, &held);
			if (held.victims > 0)
				tell(f, &held);
		}
	}
}
