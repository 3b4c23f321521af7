/* wasted.c: reports work that continued although its last waiter was cancelled or failed, or although the work itself was
 * cancelled.
 *
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/known_strings.h"

/* Work without a waiter. */
struct orphan {
	/* the last promise that waited for the work, or the work itself if it was cancelled; the promise that does the work */
	uint32_t waiter, work;
	int64_t left_ns; /* time at which the last waiter stopped waiting */
	int64_t end_ns;  /* end of the last run of the work */
	int64_t ran_ns;  /* time for which the work ran after left_ns */
};

struct search {
	struct weft__finder *finder;
	uint32_t *of_work; /* by promise that the work became in the end: index of the orphan + 1, or 0 */
	WEFT_VEC(struct orphan) orphans;
};

enum { MAX_DEPTH = 6, MIN_CANCELLED_STALLS = 5 };

/* Returns whether another promise waits for the work, or reads its result, after left_ns. */
static bool is_wanted(const struct weft__finder *f, uint32_t work, uint32_t waiter, int64_t left_ns)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.in_begin[work]; i < f->link_index.in_begin[work + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->from != waiter && f->link_index.ended_ns[link->from] > left_ns &&
		    weft_model_await_end(m, link) > left_ns)
			return true;
		if (link->kind == WEFT_LINK_READ && link->from != waiter && link->time_ns > left_ns)
			return true;
	}
	return false;
}

static struct orphan *find_orphan(const struct search *s, uint32_t work)
{
	uint32_t number = s->of_work ? s->of_work[s->finder->link_index.final[work]] : 0;
	return number ? &s->orphans.items[number - 1] : NULL;
}

static void add_orphan(struct search *s, uint32_t waiter, uint32_t work, int64_t left_ns)
{
	if (!s->of_work && !(s->of_work = weft__finding_alloc(s->finder, s->finder->model->promise_count, sizeof *s->of_work)))
		return;
	struct orphan *added = weft_vec_push(&s->orphans);
	s->finder->no_memory |= !added;
	if (!added)
		return;
	*added = (struct orphan){.waiter = waiter, .work = work, .left_ns = left_ns};
	s->of_work[s->finder->link_index.final[work]] = (uint32_t)s->orphans.count;
}

/* Adds the inputs of `by`, and the inputs of these inputs, as orphans: `waiter` waited for them until left_ns. */
static void add_orphans(struct search *s, uint32_t waiter, uint32_t by, int64_t left_ns, int depth)
{
	struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.out_begin[by]; i < f->link_index.out_begin[by + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		uint32_t work = link->to;
		if (link->kind != WEFT_LINK_AWAIT || work == WEFT_SYSTEM || work == by ||
		    f->link_index.ended_ns[work] < left_ns + f->options.stall_ns ||
		    weft_kind_has(m->promises[work].kind, WEFT__TRAITS_LASTING) || weft_model_await_end(m, link) < left_ns ||
		    find_orphan(s, work) || is_wanted(f, work, by, left_ns))
			continue;
		add_orphan(s, waiter, work, left_ns);
		if (depth < MAX_DEPTH)
			add_orphans(s, waiter, work, left_ns, depth + 1);
	}
}

/* Returns whether the failed promise p no longer needs its inputs: it was cancelled, or it needed only the first of them to
 * end, for example a result or a timeout. */
static bool has_abandoned(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return weft_kind_has(promise->kind, WEFT_TRAIT_FIRST) || weft_model_was_cancelled(f->model, promise);
}

/* Adds work that was itself cancelled: its runtime recorded a label that says so. */
static void add_cancelled(struct search *s)
{
	static const char word[] = WEFT_STRING_CANCELLED;
	struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	const uint32_t number = weft_model_find_text(m, (struct weft_str){word, sizeof word - 1});
	for (uint32_t p = 1; number != WEFT_NONE && p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count);
	     p++)
		for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++) {
			const struct weft_label *label = &m->labels[l];
			if (label->text != number || label->is_counter || label->time_ns <= m->promises[p].start_ns ||
			    label->text == m->promises[p].failure || find_orphan(s, p))
				continue;
			add_orphan(s, p, p, label->time_ns);
			break;
		}
}

static void measure_runs(struct search *s)
{
	const struct weft_model *m = s->finder->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(s->finder, p, m->promise_count); p++) {
		struct orphan *o = find_orphan(s, p);
		for (uint32_t r = m->promises[p].runs; o && r < m->promises[p + 1].runs; r++) {
			int64_t start_ns = m->runs[r].start_ns > o->left_ns ? m->runs[r].start_ns : o->left_ns;
			if (m->runs[r].end_ns <= start_ns)
				continue;
			o->ran_ns += m->runs[r].end_ns - start_ns;
			o->end_ns = m->runs[r].end_ns > o->end_ns ? m->runs[r].end_ns : o->end_ns;
		}
	}
}

static void report_wasted(struct weft__finder *f, const struct orphan *o)
{
	uint32_t p = o->work;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_WASTED, p, o->left_ns, o->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *waiter = weft__format_promise(f, o->waiter);
	const char *ran = weft__format_duration(f, o->ran_ns), *until = weft__format_duration(f, o->end_ns - o->left_ns);
	const char *reason = weft__format_text(f, f->model->promises[o->waiter].failure);
	finding->weight = (uint64_t)o->ran_ns;
	if (o->waiter == p)
		finding->title = weft__finding_text(f, "%s ran for %s after it was cancelled%s", name, ran, at);
	else if (weft_model_was_cancelled(f->model, &f->model->promises[o->waiter]))
		finding->title = weft__finding_text(
		    f, "%s ran for %s after %s, the last that waited for it, was cancelled%s", name, ran, waiter, at);
	else
		finding->title = weft__finding_text(
		    f, "%s ran for %s after %s, the last that waited for it, failed: %s%s", name, ran, waiter, reason, at);
	finding->next = weft__finding_text(
	    f, "pass the cancellation on to the work, or let the work check between two steps whether it is needed%s", at);
	weft__evidence_add_creation(f, p);
	if (o->waiter == p)
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, o->left_ns, p, "%s is cancelled, but its code does not check for that", name);
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, o->left_ns, o->waiter,
		    "%s%s fails: %s; it was the last that waited for %s", waiter, weft__format_site_suffix(f, o->waiter), reason,
		    name);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, o->end_ns, p, "%s stops, %s later; it ran for %s of this time", name, until, ran);
}

void weft__find_wasted(struct weft__finder *f)
{
	struct search s = {.finder = f};
	for (size_t i = 0; i < f->link_index.failed.count && weft__finding_may_continue(f, i, f->link_index.failed.count); i++)
		if (has_abandoned(f, f->link_index.failed.items[i]))
			add_orphans(&s, f->link_index.failed.items[i], f->link_index.failed.items[i],
			    f->model->promises[f->link_index.failed.items[i]].end_ns, 0);
	add_cancelled(&s);
	if (s.orphans.count > 0)
		measure_runs(&s);
	for (size_t i = 0; !f->no_memory && i < s.orphans.count; i++)
		if (s.orphans.items[i].ran_ns >=
		    (s.orphans.items[i].waiter == s.orphans.items[i].work ? MIN_CANCELLED_STALLS : 1) * f->options.stall_ns)
			report_wasted(f, &s.orphans.items[i]);
	free(s.of_work);
	weft_vec_free(&s.orphans);
}
