/* failure.c: promises that failed and of which nobody took notice.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/idmap.h"

/* Failures of one sort with one text. */
struct group {
	uint32_t first, count;
};

enum notice { NOT_ASKED, UNNOTICED, NOTICED };

struct search {
	struct weft__finder *f;
	uint32_t unasked; /* the text WEFT_UNASKED, or WEFT_NONE */
	uint8_t *noticed; /* by promise: enum notice; NULL: nobody has asked yet */
};

/* A promise that only follows another fails right after it, without a word of reading. */
static bool is_passed_on(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++) {
		uint32_t l = f->ties.in[i];
		if (m->links[l].kind != WEFT_LINK_RESOLVE || m->links[l].time_ns != m->promises[p].end_ns)
			continue;
		for (size_t k = l + 1; k < m->link_count && m->links[k].kind == WEFT_LINK_RESOLVE; k++) {
			const struct weft_promise *next = &m->promises[m->links[k].to];
			if (m->links[k].from != m->links[l].from || next->failure != m->promises[p].failure ||
			    next->start_ns > m->promises[p].end_ns)
				break;
			if (weft_kind_has(next->kind, WEFT_TRAIT_FOLLOWS))
				return true;
		}
	}
	return false;
}

/* Where the error came from: back over those that failed because they read one that had. */
static uint32_t origin_of(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t steps = 0; steps < 1000; steps++) {
		uint32_t before = WEFT_NONE;
		for (uint32_t i = f->ties.out_begin[p]; i < f->ties.out_begin[p + 1]; i++) {
			const struct weft_link *link = &m->links[f->ties.out[i]];
			uint32_t q = f->ties.now[link->to];
			if (link->kind == WEFT_LINK_READ && link->time_ns <= m->promises[p].end_ns &&
			    m->promises[q].end == WEFT_END_FAILED && m->promises[q].failure == m->promises[p].failure)
				before = q;
		}
		if (before == WEFT_NONE || before == p)
			break;
		p = before;
	}
	return p;
}

/* Whether a note says that whoever was told of its end did not ask how it ended. */
static bool is_unasked(const struct search *s, uint32_t p)
{
	const struct weft_model *m = s->f->model;
	for (uint32_t l = m->promises[p].labels; s->unasked != WEFT_NONE && l < m->promises[p + 1].labels; l++)
		if (m->labels[l].text == s->unasked && !m->labels[l].is_counter)
			return true;
	return false;
}

/* Whether it waits for promises without a look at how they end: weft_promise_ignore_result(), where no hook gets the error. */
static bool ignores(const struct search *s, uint32_t p)
{
	return s->f->sorts.kinds[p] == WEFT_KIND_IGNORE_RESULT && is_unasked(s, p);
}

/* Who does so with the promise; WEFT_NONE: nobody does. */
static uint32_t who_ignores(const struct search *s, uint32_t p)
{
	const struct weft_ties *ties = &s->f->ties;
	for (uint32_t i = ties->in_begin[p]; i < ties->in_begin[p + 1]; i++) {
		uint32_t from = s->f->model->links[ties->in[i]].from;
		if (ignores(s, from))
			return from;
	}
	return WEFT_NONE;
}

static void tell_failure(const struct search *s, const struct group *group)
{
	struct weft__finder *f = s->f;
	const struct weft_model *m = f->model;
	uint32_t p = group->first, origin = origin_of(f, p);
	const struct weft_promise *promise = &m->promises[p];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_FAILURE, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *text = weft__words_text(f, promise->failure);
	finding->root = origin;
	finding->weight = finding->count = group->count;
	if (group->count == 1)
		finding->title = weft__finding_text(f, "%s%s failed, and nobody took notice of its error: %s", name, at, text);
	else
		finding->title = weft__finding_text(f,
		    "%s%s and %" PRIu32 " more of its sort failed, and nobody took notice of their error: %s", name, at,
		    group->count - 1, text);
	bool unasked = is_unasked(s, p);
	uint32_t by = who_ignores(s, p);
	if (by != WEFT_NONE) /* the program says that it is meant to be */
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->next =
	    by != WEFT_NONE ? weft__finding_text(f,
				  "set a hook for such errors (weft_promise_set_async_hook()), or handle them with "
				  "weft_promise_dont_wait()%s",
				  weft__words_at(f, by))
	    : unasked ? weft__finding_text(f, "ask for its result where it is told that it has ended, and handle the error%s", at)
		      : weft__finding_text(f, "wait for it where it is created, or handle its error there%s", at);
	weft__words_creation(f, p);
	if (origin != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[origin].end_ns, origin,
		    "%s%s is the first to fail with that error", weft__words_name(f, origin), weft__words_at(f, origin));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, promise->end_ns, p,
	    by != WEFT_NONE ? "%s fails; its result is ignored, and no hook gets the error"
	    : unasked       ? "%s fails; who is told of that does not ask how it ended"
			    : "%s fails; nobody awaited it before, and nobody reads it after that",
	    name);
}

/* Which of those that failed somebody awaited or read. */
static bool find_noticed(struct search *s)
{
	struct weft__finder *f = s->f;
	const struct weft_model *m = f->model;
	s->noticed = weft__finding_alloc(f, m->promise_count, sizeof *s->noticed);
	for (size_t i = 0; s->noticed && i < f->ties.failed.count; i++)
		s->noticed[f->ties.failed.items[i]] = UNNOTICED;
	for (size_t l = 0; s->noticed && l < m->link_count && weft__finding_goes_on(f, l, m->link_count); l++)
		if (s->noticed[f->ties.now[m->links[l].to]] == UNNOTICED &&
		    (m->links[l].kind == WEFT_LINK_READ || m->links[l].kind == WEFT_LINK_AWAIT) && !ignores(s, m->links[l].from))
			s->noticed[f->ties.now[m->links[l].to]] = NOTICED;
	return s->noticed;
}

/* Whether the program did anything after its end: then who wanted to read it had the time to. */
static bool went_on(const struct weft__finder *f, uint32_t p)
{
	const struct weft__lacks *of = weft__lacks_of(f->lacks, f->model, p);
	return !of->cut || f->slept_ns[of - f->lacks] >= f->model->promises[p].end_ns;
}

static bool is_failure(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != WEFT_SYSTEM && !f->told[p] && weft__lacks_nothing_of(f->lacks, f->model, p) &&
	       !weft_model_was_cancelled(f->model, promise) && went_on(f, p);
}

void weft__find_failure(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct weft_idmap numbers = {0};
	WEFT_VEC(struct group) groups = {0};
	struct search s = {f, weft_model_find_text(m, (struct weft_str){WEFT_UNASKED, strlen(WEFT_UNASKED)}), NULL};
	for (size_t i = 0; i < f->ties.failed.count && weft__finding_goes_on(f, i, f->ties.failed.count); i++) {
		uint32_t p = f->ties.failed.items[i];
		if (!is_failure(f, p) || (!s.noticed && !find_noticed(&s)) || (s.noticed[p] == NOTICED && !is_unasked(&s, p)) ||
		    is_passed_on(f, p))
			continue;
		int64_t key = (int64_t)((uint64_t)f->sorts.of[p] << 32 | m->promises[p].failure);
		uint32_t number = weft_idmap_get(&numbers, key);
		if (number == WEFT_IDMAP_NONE) {
			struct group *added = weft_vec_push(&groups);
			number = (uint32_t)groups.count - 1;
			if (!added || !weft_idmap_set(&numbers, key, number)) {
				f->no_memory = true;
				break;
			}
			*added = (struct group){p, 0};
		}
		groups.items[number].count++;
	}
	for (size_t i = 0; !f->no_memory && i < groups.count; i++)
		tell_failure(&s, &groups.items[i]);
	weft_vec_free(&groups);
	weft_idmap_finish(&numbers);
	free(s.noticed);
}
