/* failure.c: finds failed promises whose error the program never read.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/idmap.h"

/* Failed promises of one type with one error text. */
struct group {
	uint32_t first, count;
};

enum notice { NOT_ASKED, UNNOTICED, NOTICED };

struct search {
	struct weft__finder *f;
	uint32_t unasked; /* number of the text WEFT_UNASKED in the model, or WEFT_NONE */
	uint8_t *noticed; /* by promise: enum notice of its error; NULL if not computed yet */
};

/* Returns whether the error of p was passed on: a promise that only takes over the result of p failed right after p, without a
 * recorded read. */
static bool is_passed_on(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.in_begin[p]; i < f->link_index.in_begin[p + 1]; i++) {
		uint32_t l = f->link_index.in[i];
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

/* Returns the promise that failed first: follows the reads of failed promises back to the origin of the error of p. */
static uint32_t find_origin(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	for (uint32_t steps = 0; steps < 1000; steps++) {
		uint32_t before = WEFT_NONE;
		for (uint32_t i = f->link_index.out_begin[p]; i < f->link_index.out_begin[p + 1]; i++) {
			const struct weft_link *link = &m->links[f->link_index.out[i]];
			uint32_t q = f->link_index.final[link->to];
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

/* Returns whether the trace notes that the callback of p did not ask for the result of p. */
static bool is_result_unchecked(const struct search *s, uint32_t p)
{
	const struct weft_model *m = s->f->model;
	for (uint32_t l = m->promises[p].labels; s->unasked != WEFT_NONE && l < m->promises[p + 1].labels; l++)
		if (m->labels[l].text == s->unasked && !m->labels[l].is_counter)
			return true;
	return false;
}

/* Returns whether a promise ignores the results that it waits for, because it was made by weft_promise_ignore_result() without
 * an error hook. */
static bool ignores_result(const struct search *s, uint32_t p)
{
	return s->f->types.kinds[p] == WEFT_KIND_IGNORE_RESULT && is_result_unchecked(s, p);
}

/* Returns the promise that ignores the result of p by weft_promise_ignore_result(), or WEFT_NONE.  Returns p itself if the call
 * ignored an error that had already occurred. */
static uint32_t find_ignorer(const struct search *s, uint32_t p)
{
	const struct weft_link_index *link_index = &s->f->link_index;
	if (s->f->types.kinds[p] == WEFT_KIND_IGNORE_RESULT)
		return p;
	for (uint32_t i = link_index->in_begin[p]; i < link_index->in_begin[p + 1]; i++) {
		uint32_t from = s->f->model->links[link_index->in[i]].from;
		if (ignores_result(s, from))
			return from;
	}
	return WEFT_NONE;
}

/* Reports a request from another program that this program never answered. */
static void report_lost_request(struct weft__finder *f, struct weft_finding *finding, const struct group *group)
{
	const struct weft_promise *promise = &f->model->promises[group->first];
	const char *name = weft__format_promise(f, group->first), *at = weft__format_site_suffix(f, group->first),
		   *text = weft__format_text(f, promise->failure), *others = "";
	const uint32_t question = weft__find_last_question(f, group->first),
		       connection = question == WEFT_NONE ? WEFT_NONE : weft__asked_connection(f, question);
	if (group->count > 1)
		others = weft__finding_text(f, " and %" PRIu32 " more", group->count - 1);
	finding->title = weft__finding_text(f, "%s%s got no answer in %s: %s%s", name, others,
	    weft__format_duration(f, promise->end_ns - promise->start_ns),
	    connection == WEFT_NONE ? text : weft__finding_text(f, "it waited for %s", weft__format_promise(f, connection)), at);
	weft__evidence_add_creation(f, group->first);
	if (connection != WEFT_NONE) {
		finding->root = connection;
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[question].start_ns, question,
		    "the program writes %s to %s, and waits for the answer", weft__format_promise(f, question),
		    weft__format_promise(f, connection));
	}
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, promise->end_ns, group->first, "%s ends: %s", name, text);
	finding->next = connection != WEFT_NONE
			    ? weft__finding_text(f, "find out why the peer of %s is silent, or set a timeout",
				  weft__format_promise(f, connection))
			    : weft__finding_text(f, "find the path through the code on which no answer is written%s", at);
}

static void report_failure(const struct search *s, const struct group *group)
{
	struct weft__finder *f = s->f;
	const struct weft_model *m = f->model;
	uint32_t p = group->first, origin = find_origin(f, p);
	const struct weft_promise *promise = &m->promises[p];
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_FAILURE, p, promise->start_ns, promise->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *at = weft__format_site_suffix(f, p),
		   *text = weft__format_text(f, promise->failure);
	finding->root = origin;
	finding->weight = finding->count = group->count;
	if (group->count == 1)
		finding->title = weft__finding_text(f, "%s failed, and no code read the error: %s%s", name, text, at);
	else
		finding->title = weft__finding_text(
		    f, "%s and %" PRIu32 " more failed, and no code read the error: %s%s", name, group->count - 1, text, at);
	if (weft__is_served(f, p)) {
		report_lost_request(f, finding, group);
		return;
	}
	bool unasked = is_result_unchecked(s, p);
	uint32_t by = find_ignorer(s, p);
	if (by != WEFT_NONE) /* the program ignores the result on purpose */
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->next = by != WEFT_NONE ? weft__finding_text(f,
					      "set a hook with weft_promise_set_async_hook(), or handle the error with "
					      "weft_promise_dont_wait()%s",
					      weft__format_site_suffix(f, by))
			: unasked
			    ? weft__finding_text(f, "ask for the result in the callback, and handle the error%s", at)
			    : weft__finding_text(f, "wait for the promise where it is created, or handle its error there%s", at);
	weft__evidence_add_creation(f, p);
	if (origin != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, m->promises[origin].end_ns, origin,
		    "%s%s is the first to fail with that error", weft__format_promise(f, origin),
		    weft__format_site_suffix(f, origin));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, promise->end_ns, p,
	    by != WEFT_NONE ? "%s fails; its result is ignored, and no hook gets the error"
	    : unasked       ? "%s fails; its callback does not ask for the result"
			    : "%s fails; no promise awaited its end before, and none reads its result afterwards",
	    name);
}

/* Returns whether a link says that code may see the error of its end.  A lock awaits its holder for itself. */
static bool is_notice(const struct search *s, const struct weft_link *link)
{
	const bool is_wait =
	    link->kind == WEFT_LINK_AWAIT && !weft_kind_has(s->f->model->promises[link->from].kind, WEFT__TRAITS_HELD);
	return (is_wait || link->kind == WEFT_LINK_READ) && !ignores_result(s, link->from);
}

/* Finds the failed promises that another promise awaited or read. */
static bool find_noticed(struct search *s)
{
	struct weft__finder *f = s->f;
	const struct weft_model *m = f->model;
	s->noticed = weft__finding_alloc(f, m->promise_count, sizeof *s->noticed);
	for (size_t i = 0; s->noticed && i < f->link_index.failed.count; i++)
		s->noticed[f->link_index.failed.items[i]] = UNNOTICED;
	for (size_t l = 0; s->noticed && l < m->link_count && weft__finding_may_continue(f, l, m->link_count); l++)
		if (s->noticed[f->link_index.final[m->links[l].to]] == UNNOTICED && is_notice(s, &m->links[l]))
			s->noticed[f->link_index.final[m->links[l].to]] = NOTICED;
	return s->noticed;
}

/* Returns whether the program ran for a while after the end of p, so that code that reads the result of p had time to run. */
static bool has_continued(const struct weft__finder *f, uint32_t p)
{
	const struct weft__completeness *of = weft__completeness_of(f->completeness, f->model, p);
	return !of->end_missing || f->slept_ns[of - f->completeness] >= f->model->promises[p].end_ns;
}

static bool is_failure(const struct weft__finder *f, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	return p != WEFT_SYSTEM && !f->reported[p] && weft__has_complete_history(f->completeness, f->model, p) &&
	       !weft_model_was_cancelled(f->model, promise) && has_continued(f, p);
}

void weft__find_failure(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	struct weft_idmap numbers = {0};
	WEFT_VEC(struct group) groups = {0};
	struct search s = {f, weft_model_find_text(m, (struct weft_str){WEFT_UNASKED, strlen(WEFT_UNASKED)}), NULL};
	for (size_t i = 0; i < f->link_index.failed.count && weft__finding_may_continue(f, i, f->link_index.failed.count); i++) {
		uint32_t p = f->link_index.failed.items[i];
		if (!is_failure(f, p) || (!s.noticed && !find_noticed(&s)) ||
		    (s.noticed[p] == NOTICED && !is_result_unchecked(&s, p)) || is_passed_on(f, p))
			continue;
		int64_t key = (int64_t)((uint64_t)f->types.of[p] << 32 | m->promises[p].failure);
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
		report_failure(&s, &groups.items[i]);
	weft_vec_free(&groups);
	weft_idmap_finish(&numbers);
	free(s.noticed);
}
