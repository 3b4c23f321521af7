/* wasted.c: work that went on though whoever waited for it had been cancelled, after a timeout for example.
 *
 * SPDX-License-Identifier: ISC */
#include "analysis/findings/finding.h"
#include "base/idmap.h"

/* What a cancelled promise had waited for, and what ran of it after that. */
struct orphan {
	uint32_t waiter, work;
	int64_t left_ns, end_ns, ran_ns; /* since when nobody waits for it; its last run ended; how long it ran since then */
};

struct search {
	struct weft__finder *finder;
	struct weft_idmap of_work; /* numbers of orphans, by what the work became in the end */
	WEFT_VEC(struct orphan) orphans;
};

/* Whether anybody waits for the work after that time, or reads its result. */
static bool is_wanted(const struct weft__finder *f, uint32_t work, uint32_t waiter, int64_t left_ns)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.in_begin[work]; i < f->ties.in_begin[work + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->from != waiter && f->ties.ended_ns[link->from] > left_ns &&
		    weft_model_await_end(m, link) > left_ns)
			return true;
		if (link->kind == WEFT_LINK_READ && link->time_ns > left_ns)
			return true;
	}
	return false;
}

static void add_orphans_of(struct search *s, uint32_t waiter)
{
	struct weft__finder *f = s->finder;
	const struct weft_model *m = f->model;
	int64_t left_ns = m->promises[waiter].end_ns;
	for (uint32_t i = f->ties.out_begin[waiter]; i < f->ties.out_begin[waiter + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		uint32_t work = link->to, end = f->ties.now[work];
		if (link->kind != WEFT_LINK_AWAIT || work == WEFT_SYSTEM ||
		    f->ties.ended_ns[work] < left_ns + f->options.stall_ns ||
		    weft_kind_has(m->promises[work].kind, WEFT__TRAITS_LASTING) || weft_model_await_end(m, link) < left_ns ||
		    weft_idmap_get(&s->of_work, end) != WEFT_IDMAP_NONE || is_wanted(f, work, waiter, left_ns))
			continue;
		struct orphan *added = weft_vec_push(&s->orphans);
		f->no_memory |= !added || !weft_idmap_set(&s->of_work, end, (uint32_t)s->orphans.count - 1);
		if (added)
			*added = (struct orphan){.waiter = waiter, .work = work, .left_ns = left_ns};
	}
}

static void measure(struct search *s)
{
	const struct weft_model *m = s->finder->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(s->finder, p, m->promise_count); p++) {
		uint32_t number = weft_idmap_get(&s->of_work, s->finder->ties.now[p]);
		if (number == WEFT_IDMAP_NONE)
			continue;
		struct orphan *o = &s->orphans.items[number];
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++) {
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
	finding->weight = (uint64_t)o->ran_ns;
	finding->title = weft__finding_text(f, "%s%s ran for %s, until %s after nobody waited for it any more: %s was cancelled",
	    name, at, weft__words_span(f, o->ran_ns), weft__words_span(f, o->end_ns - o->left_ns), waiter);
	finding->next =
	    weft__finding_text(f, "let a cancel reach it, or let it find out between two steps that nobody waits for it%s", at);
	weft__words_creation(f, p);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, o->left_ns, o->waiter,
	    "%s%s fails: %s; it was the last that waited for %s", waiter, weft__words_at(f, o->waiter),
	    weft__words_text(f, f->model->promises[o->waiter].failure), name);
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_CAUSE, o->end_ns, p, "%s has run for %s since then", name, weft__words_span(f, o->ran_ns));
}

void weft__find_wasted(struct weft__finder *f)
{
	struct search s = {.finder = f};
	for (size_t i = 0; i < f->ties.failed.count && weft__finding_goes_on(f, i, f->ties.failed.count); i++)
		if (weft_model_was_cancelled(f->model, &f->model->promises[f->ties.failed.items[i]]))
			add_orphans_of(&s, f->ties.failed.items[i]);
	if (s.orphans.count > 0)
		measure(&s);
	for (size_t i = 0; !f->no_memory && i < s.orphans.count; i++)
		if (s.orphans.items[i].ran_ns >= f->options.stall_ns)
			tell_wasted(f, &s.orphans.items[i]);
	weft_idmap_finish(&s.of_work);
	weft_vec_free(&s.orphans);
}
