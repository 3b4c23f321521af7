/* wasted.c: work that went on though whoever waited for it had been cancelled, after a timeout for example; or though it had been
 * cancelled itself, as a note of its runtime tells.
 *
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "base/words.h"

/* What a cancelled promise had waited for, and what ran of it after that. */
struct orphan {
	uint32_t waiter, work;
	int64_t left_ns, end_ns, ran_ns; /* since when nobody waits for it; its last run ended; how long it ran since then */
};

struct search {
	struct weft__finder *finder;
	uint32_t *of_work; /* by what the work became in the end: number + 1 of the orphan */
	WEFT_VEC(struct orphan) orphans;
};

enum { DEEPEST = 6, NOTED_STALLS = 5 };

/* Whether anybody else waits for the work after that time, or reads its result. */
static bool is_wanted(const struct weft__finder *f, uint32_t work, uint32_t waiter, int64_t left_ns)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.in_begin[work]; i < f->ties.in_begin[work + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->from != waiter && f->ties.ended_ns[link->from] > left_ns &&
		    weft_model_await_end(m, link) > left_ns)
			return true;
		if (link->kind == WEFT_LINK_READ && link->from != waiter && link->time_ns > left_ns)
			return true;
	}
	return false;
}

static struct orphan *orphan_of(const struct search *s, uint32_t work)
{
	uint32_t number = s->of_work ? s->of_work[s->finder->ties.now[work]] : 0;
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
	s->of_work[s->finder->ties.now[work]] = (uint32_t)s->orphans.count;
}

/* What `by` waited for, and what that waits for in turn: `waiter`, which nobody waits for any more, left it at that time. */
static void add_orphans_of(struct search *s, uint32_t waiter, uint32_t by, int64_t left_ns, int depth)
{
	struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.out_begin[by]; i < f->ties.out_begin[by + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		uint32_t work = link->to;
		if (link->kind != WEFT_LINK_AWAIT || work == WEFT_SYSTEM || work == by ||
		    f->ties.ended_ns[work] < left_ns + f->options.stall_ns ||
		    weft_kind_has(m->promises[work].kind, WEFT__TRAITS_LASTING) || weft_model_await_end(m, link) < left_ns ||
		    orphan_of(s, work) || is_wanted(f, work, by, left_ns))
			continue;
		add_orphan(s, waiter, work, left_ns);
		if (depth < DEEPEST)
			add_orphans_of(s, waiter, work, left_ns, depth + 1);
	}
}

/* One that takes the first of its inputs and has failed, as after a timeout, waits for the others no longer. */
static bool has_left(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return weft_kind_has(promise->kind, WEFT_TRAIT_FIRST) || weft_model_was_cancelled(f->model, promise);
}

/* Work that goes on although it was cancelled: its runtime noted that. */
static void add_noted(struct search *s)
{
	static const char word[] = WEFT_SAYS_CANCELLED;
	struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	const uint32_t number = weft_model_find_text(m, (struct weft_str){word, sizeof word - 1});
	for (uint32_t p = 1; number != WEFT_NONE && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++)
		for (uint32_t l = m->promises[p].labels; l < m->promises[p + 1].labels; l++) {
			const struct weft_label *label = &m->labels[l];
			if (label->text != number || label->is_counter || label->time_ns <= m->promises[p].start_ns ||
			    label->text == m->promises[p].failure || orphan_of(s, p))
				continue;
			add_orphan(s, p, p, label->time_ns);
			break;
		}
}

static void measure(struct search *s)
{
	const struct weft_model *m = s->finder->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(s->finder, p, m->promise_count); p++) {
		struct orphan *o = orphan_of(s, p);
		for (uint32_t r = m->promises[p].runs; o && r < m->promises[p + 1].runs; r++) {
			int64_t start_ns = m->runs[r].start_ns > o->left_ns ? m->runs[r].start_ns : o->left_ns;
			if (m->runs[r].end_ns <= start_ns)
				continue;
			o->ran_ns += m->runs[r].end_ns - start_ns;
			o->end_ns = m->runs[r].end_ns > o->end_ns ? m->runs[r].end_ns : o->end_ns;
		}
	}
}

static void tell_wasted(struct weft__finder *f, const struct orphan *o)
{
	uint32_t p = o->work;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_WASTED, p, o->left_ns, o->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *waiter = weft__words_name(f, o->waiter);
	const char *ran = weft__words_span(f, o->ran_ns), *until = weft__words_span(f, o->end_ns - o->left_ns);
	const char *reason = weft__words_text(f, f->model->promises[o->waiter].failure);
	finding->weight = (uint64_t)o->ran_ns;
	if (o->waiter == p)
		finding->title = weft__finding_text(
		    f, "%s%s ran for %s after it had been cancelled, until %s after that", name, at, ran, until);
	else if (weft_model_was_cancelled(f->model, &f->model->promises[o->waiter]))
		finding->title =
		    weft__finding_text(f, "%s%s ran for %s, until %s after nobody waited for it any more: %s was cancelled", name,
			at, ran, until, waiter);
	else
		finding->title =
		    weft__finding_text(f, "%s%s ran for %s, until %s after nobody waited for it any more: %s failed with \"%s\"",
			name, at, ran, until, waiter, reason);
	finding->next =
	    weft__finding_text(f, "let a cancel reach it, or let it find out between two steps that nobody waits for it%s", at);
	weft__words_creation(f, p);
	if (o->waiter == p)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, o->left_ns, p, "%s is cancelled, and does not look", name);
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, o->left_ns, o->waiter,
		    "%s%s fails: %s; it was the last that waited for %s", waiter, weft__words_at(f, o->waiter), reason, name);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, o->end_ns, p, "%s has run for %s since then", name, weft__words_span(f, o->ran_ns));
}

void weft__find_wasted(struct weft__finder *f)
{
	struct search s = {.finder = f};
	for (size_t i = 0; i < f->ties.failed.count && weft__finding_goes_on(f, i, f->ties.failed.count); i++)
		if (has_left(f, f->ties.failed.items[i]))
			add_orphans_of(&s, f->ties.failed.items[i], f->ties.failed.items[i],
			    f->model->promises[f->ties.failed.items[i]].end_ns, 0);
	add_noted(&s);
	if (s.orphans.count > 0)
		measure(&s);
	for (size_t i = 0; !f->no_memory && i < s.orphans.count; i++)
		if (s.orphans.items[i].ran_ns >=
		    (s.orphans.items[i].waiter == s.orphans.items[i].work ? NOTED_STALLS : 1) * f->options.stall_ns)
			tell_wasted(f, &s.orphans.items[i]);
	free(s.of_work);
	weft_vec_free(&s.orphans);
}
