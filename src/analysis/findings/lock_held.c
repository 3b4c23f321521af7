/* lock_held.c: reports threads that sleep while they hold a lock that other threads wait for.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"

enum { MIN_WAIT_STALLS = 10 }; /* shortest reported wait, in stall limits */

static int64_t get_overlap_ns(int64_t from_ns, int64_t to_ns, int64_t start_ns, int64_t end_ns)
{
	return weft_min_ns(to_ns, end_ns) - weft_max_ns(from_ns, start_ns);
}

/* Returns whether p waited for another promise for at least a quarter of the time, so that the other promise is the cause. */
static bool is_waiting(const struct weft__finder *f, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		if (link->kind == WEFT_LINK_AWAIT &&
		    get_overlap_ns(link->time_ns, weft_model_await_end(m, link), from_ns, to_ns) >= (to_ns - from_ns) / 4)
			return true;
	}
	return false;
}

struct held {
	uint32_t lock, holder, victim, victims;
	int64_t from_ns, to_ns, slept_ns, longest_ns, victim_ns;
};

static void find_victims(const struct weft__finder *f, struct held *held)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.in_begin[held->lock]; i < f->link_index.in_begin[held->lock + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		const int64_t waited_ns =
		    get_overlap_ns(link->time_ns, weft_model_await_end(m, link), held->from_ns, held->to_ns);
		if (link->kind != WEFT_LINK_AWAIT || link->from == held->holder ||
		    waited_ns < MIN_WAIT_STALLS * f->options.stall_ns)
			continue;
		held->victims++;
		if (waited_ns <= held->longest_ns)
			continue;
		held->longest_ns = waited_ns;
		held->victim = link->from;
		held->victim_ns = link->time_ns;
	}
}

static void report_held_lock(struct weft__finder *f, const struct held *held)
{
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STALL, held->holder, held->from_ns, held->to_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, held->holder), *lock = weft__format_promise(f, held->lock),
		   *lock_at = weft__format_site_suffix(f, held->lock), *slept = weft__format_duration(f, held->slept_ns),
		   *longest = weft__format_duration(f, held->longest_ns);
	finding->root = held->lock;
	finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = (uint64_t)held->longest_ns;
	finding->title = weft__finding_text(f, "%s slept for %s with %s: %" PRIu32 " other%s waited for it%s", name, slept, lock,
	    held->victims, weft__format_plural_s(held->victims), lock_at);
	finding->next = weft__finding_text(f, "release %s before %s sleeps", lock, name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held->from_ns, held->holder, "%s%s has taken %s%s, and others wait for it",
	    name, weft__format_site_suffix(f, held->holder), lock,
	    weft__format_wait_place(f, held->lock, held->holder, held->from_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, held->to_ns, held->holder, "%s releases the lock, %s later", name,
	    weft__format_duration(f, held->to_ns - held->from_ns));
	weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, held->from_ns, held->victim, "%s%s waited for the lock for %s%s",
	    weft__format_promise(f, held->victim), weft__format_site_suffix(f, held->victim), longest,
	    weft__format_wait_place(f, held->victim, held->lock, held->victim_ns));
	if (held->victims > 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, held->victims - 1, "");
}

void weft__lock_held_find(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (!weft__promise_types_have(&f->types, WEFT_KIND_LOCK) || !weft__promise_types_have(&f->types, WEFT_KIND_THREAD))
		return;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		if (f->types.kinds[p] != WEFT_KIND_LOCK)
			continue;
		for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
			const struct weft_link *hold = &m->links[f->link_index.out[i]];
			struct held held = {.lock = p, .holder = hold->to, .victim = WEFT_NONE, .from_ns = hold->time_ns};
			held.to_ns = weft_model_await_end(m, hold);
			if (hold->kind != WEFT_LINK_AWAIT || held.to_ns == WEFT_NEVER ||
			    held.to_ns - held.from_ns < MIN_WAIT_STALLS * f->options.stall_ns ||
			    !weft_kind_has(m->promises[hold->to].kind, WEFT_TRAIT_THREAD))
				continue;
			const uint32_t run = weft_run_before(m, hold->to, held.to_ns);
			if (run != WEFT_NONE && m->run_streams)
				held.slept_ns =
				    weft_account_slept_ns(f->link_index.accounts, m->run_streams[run], held.from_ns, held.to_ns);
			if (held.slept_ns < (held.to_ns - held.from_ns) / 2 || is_waiting(f, hold->to, held.from_ns, held.to_ns))
				continue;
			find_victims(f, &held);
			if (held.victims > 0)
				report_held_lock(f, &held);
		}
	}
}
