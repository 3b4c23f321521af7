/* stuck.c: promises that younger ones of their sort have overtaken.  SPDX-License-Identifier: ISC */
#include <inttypes.h>

#include "analysis/findings/finding.h"
#include "base/search.h"

enum {
	ENOUGH_OTHERS = 20,
	OVERTAKEN = 10,
	TIMES_OLDER = 5,
	FEW_OTHERS = 8, /* that few tell as much if it is much older, and as many overtook it */
	FEW_OVERTAKEN = 5,
	TIMES_OLDER_THAN_FEW = 20,
	STALLS_OLDER_THAN_FEW = 10,
	TIMES_OLDER_AT_END = 2
};

/* Of one sort. */
struct race {
	int64_t late_starts[OVERTAKEN]; /* the latest creations among those that ended, ascending; the first late_count of them */
	uint32_t late_count;
	uint32_t first, stuck; /* who is stuck, and how many are */
	bool has_later;        /* a task was not ended by the run that created it */
	bool is_sure;          /* one was overtaken, by far */
	bool is_next;          /* the first is the next of a series: is_next() */
	bool is_dropped;       /* the first was: is_dropped() */
};

/* What alone can have such promises. */
static bool is_suspect(const struct weft__sort *sort)
{
	return sort->named && sort->pending > 0 && sort->ended >= FEW_OTHERS;
}

/* By sort: the number + 1 of its race, or 0.  The caller frees it.  NULL: there are none, or no memory, which is noted. */
static uint32_t *number_races(struct weft__finder *f, uint32_t *count)
{
	uint32_t *race_of = NULL;
	*count = 0;
	for (size_t s = 0; s < f->sorts.items.count; s++) {
		if (!is_suspect(&f->sorts.items.items[s]))
			continue;
		if (!race_of && !(race_of = weft__finding_alloc(f, f->sorts.items.count, sizeof *race_of)))
			break;
		race_of[s] = ++*count;
	}
	return race_of;
}

static void add_late(struct race *race, int64_t start_ns)
{
	if (race->late_count == OVERTAKEN && start_ns <= race->late_starts[0])
		return;
	uint32_t at = race->late_count < OVERTAKEN ? race->late_count++ : 0;
	/* A new place is at the end, one that is given up at the beginning: the others make room. */
	for (; at + 1 < race->late_count && race->late_starts[at + 1] < start_ns; at++)
		race->late_starts[at] = race->late_starts[at + 1];
	for (; at > 0 && race->late_starts[at - 1] > start_ns; at--)
		race->late_starts[at] = race->late_starts[at - 1];
	race->late_starts[at] = start_ns;
}

/* When the run in which it was created was over; INT64_MAX: that is not known, or has not come. */
static int64_t creation_over_ns(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const uint32_t creator = m->promises[p].created_by;
	const bool is_known = creator != WEFT_NONE && creator != WEFT_SYSTEM;
	const uint32_t run = is_known ? weft_run_before(m, creator, m->promises[p].start_ns + 1) : WEFT_NONE;
	return run == WEFT_NONE || m->runs[run].end_ns < m->promises[p].start_ns ? INT64_MAX : m->runs[run].end_ns;
}

/* Whoever created it ended it before doing anything else. */
static bool was_ended_at_once(const struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const int64_t over_ns = creation_over_ns(f, p);
	for (uint32_t i = f->ties.in_begin[p]; over_ns != INT64_MAX && i < f->ties.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if ((link->kind == WEFT_LINK_RESOLVE || link->kind == WEFT_LINK_SIGNAL) && link->time_ns <= over_ns &&
		    link->from == m->promises[p].created_by)
			return true;
	}
	return false;
}

/* Of its sort all but a few have ended. */
static bool may_be_dropped(const struct weft__sort *sort)
{
	return sort->kind == WEFT_KIND_TASK && sort->pending <= sort->ended / FEW_OTHERS;
}

/* Each other was ended at once by its creator; this one was not: it may be that nobody else knows it. */
static bool is_dropped(const struct weft__finder *f, const struct race *race, uint32_t p)
{
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[p]];
	const int64_t over_ns = creation_over_ns(f, p);
	return may_be_dropped(sort) && !race->has_later && f->chains.next[p] == WEFT_NONE && over_ns != INT64_MAX &&
	       weft_model_until(f->model, p) - over_ns >= f->options.stall_ns && !was_ended_at_once(f, p);
}

/* Whoever created it had got one like it shortly before: it takes one thing after the other, and perhaps no more came. */
static bool is_next(const struct weft__finder *f, uint32_t p)
{
	enum { LOOKED_AT = 64 }; /* what a creator did last; one may have done much */
	const struct weft_model *m = f->model;
	const uint32_t creator = m->promises[p].created_by, *out = f->ties.out;
	if (m->promises[p].kind != WEFT_KIND_TASK || creator == WEFT_NONE || creator == WEFT_SYSTEM)
		return false;
	const uint32_t begin = f->ties.out_begin[creator], end = f->ties.out_begin[creator + 1];
	const uint32_t after = (uint32_t)WEFT_FIRST(i, begin, end, m->links[out[i]].time_ns > m->promises[p].start_ns);
	for (uint32_t i = after; i > begin && after - i < LOOKED_AT; i--) {
		const struct weft_link *link = &m->links[out[i - 1]];
		if (link->kind == WEFT_LINK_READ && f->sorts.of[link->to] == f->sorts.of[p])
			return true;
	}
	return false;
}

/* The program came to its end, and one task, of a few, did not, though younger ones did: that may be meant, but is worth knowing.
 */
static bool is_left(const struct weft__finder *f, const struct race *race, uint32_t p, int64_t age_ns)
{
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[p]];
	const uint16_t kind = f->model->promises[p].kind;
	return race->late_count > 0 && race->late_starts[race->late_count - 1] > f->model->promises[p].start_ns &&
	       !is_next(f, p) && (kind == WEFT_KIND_TASK || kind == WEFT_KIND_WORK) &&
	       !weft__lacks_of(f->lacks, f->model, p)->cut && sort->pending <= sort->ended / FEW_OTHERS &&
	       age_ns >= STALLS_OLDER_THAN_FEW * f->options.stall_ns && age_ns / TIMES_OLDER_AT_END > sort->longest_ns;
}

/* Nothing that it did is missing; or a ring, which forgot that, tells since when it is pending, and it has done nothing for long.
 */
static bool is_known(const struct weft__finder *f, uint32_t p)
{
	const int64_t until_ns = weft_model_until(f->model, p), age_ns = until_ns - f->model->promises[p].start_ns;
	return weft__lacks_nothing_of(f->lacks, f->model, p) ||
	       (weft__lacks_only_past_of(f->lacks, f->model, p) && until_ns - weft__finding_last_deed(f, p) >= age_ns / 2);
}

/* Counts it, if it is stuck. */
static void look_at(const struct weft__finder *f, struct race *race, uint32_t p)
{
	const struct weft_promise *promise = &f->model->promises[p];
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[p]];
	int64_t age_ns = weft_model_until(f->model, p) - promise->start_ns;
	const bool few = sort->ended < ENOUGH_OTHERS;
	const uint32_t overtaken = few ? FEW_OVERTAKEN : OVERTAKEN;
	const int64_t least_ns = f->options.stall_ns * (few ? STALLS_OLDER_THAN_FEW : 1);
	const bool is_overtaken =
	    race->late_count >= overtaken && race->late_starts[race->late_count - overtaken] > promise->start_ns;
	if (promise->end != WEFT_END_PENDING)
		return;
	const bool dropped = is_dropped(f, race, p);
	if (age_ns < least_ns && !dropped)
		return;
	const bool is_late =
	    age_ns >= least_ns && is_overtaken && age_ns / (few ? TIMES_OLDER_THAN_FEW : TIMES_OLDER) > sort->longest_ns;
	if (!is_late && !dropped && !is_left(f, race, p, age_ns))
		return;
	/* What ends from outside, or at the end of its chain, may take as long as it likes; a request has an answer. */
	bool outside = f->chains.verdict[p] == WEFT_VERDICT_OUTSIDE && !weft_kind_has(promise->kind, WEFT_TRAIT_REQUEST);
	if (outside || weft_kind_has(promise->kind, WEFT_TRAIT_ENDLESS | WEFT_TRAIT_OUTSIDE) || !is_known(f, p) ||
	    f->told[f->chains.root[p]])
		return;
	const bool next = is_late && is_next(f, p), is_sure = is_late && !next;
	if (race->stuck++ == 0 || (is_sure && !race->is_sure)) {
		race->first = p;
		race->is_next = next;
		race->is_dropped = dropped;
	}
	race->is_sure |= is_sure;
}

static void tell_dropped(struct weft__finder *f, struct weft_finding *finding, const struct race *race)
{
	const uint32_t p = race->first, creator = f->model->promises[p].created_by;
	const char *at = weft__words_at(f, p), *by = weft__words_name(f, creator);
	finding->title = weft__finding_text(f,
	    "%s%s was left without an end by %s, which created it; each of %" PRIu32
	    " others of its sort was ended by the callback that created it",
	    weft__words_name(f, p), at, by, f->sorts.items.items[f->sorts.of[p]].ended);
	finding->next = weft__finding_text(f, "look for a way through the code on which it gets no result%s", at);
	weft__finding_doubt(f, "somebody else may end it later");
}

static void tell_stuck(struct weft__finder *f, const struct race *race)
{
	const struct weft_model *m = f->model;
	uint32_t p = race->first, root = f->chains.root[p];
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[p]];
	int64_t start_ns = m->promises[p].start_ns;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_STUCK, p, start_ns, weft_model_until(m, p));
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *longest = weft__words_span(f, sort->longest_ns);
	const char *age = weft__words_span(f, weft_model_until(m, p) - start_ns);
	finding->root = root;
	finding->next = weft__finding_text(f, "weft explain --promise=%" PRId64 " tells what it waits for", m->promises[p].id);
	finding->verdict = f->chains.verdict[p];
	if (!race->is_sure)
		finding->severity = WEFT_SEVERITY_INFORMATION;
	finding->weight = race->stuck;
	if (!race->is_sure && race->is_dropped)
		tell_dropped(f, finding, race);
	else if (race->stuck == 1)
		finding->title = weft__finding_text(
		    f, "%s%s has been pending for %s; no other of its sort took longer than %s", name, at, age, longest);
	else
		finding->title = weft__finding_text(f,
		    "%s%s has been pending for %s, and so have %" PRIu32 " more; no other of their sort took longer than %s",
		    name, at, age, race->stuck - 1, longest);
	weft__words_creation(f, p);
	if (!race->is_sure && race->is_dropped)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, creation_over_ns(f, p), m->promises[p].created_by,
		    "%s stops; nobody ever tried to end %s", weft__words_name(f, m->promises[p].created_by), name);
	if (!weft__lacks_nothing_of(f->lacks, m, p))
		weft__finding_doubt(f, "the ring was overwritten: what others of its sort did before is not known");
	/* One that tries again and again goes on, also where it waits twice as long each time: its last wait is half of its age,
	 * and may have begun when the trace ends. */
	if (root != p && m->promises[root].start_ns - start_ns >= (weft_model_until(m, p) - start_ns) / 4)
		weft__finding_doubt(f, "what it waits for in the end is new: it goes on, but takes longer than others");
	if (root != p)
		weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, m->promises[root].start_ns, root, "in the end it waits for %s%s",
		    weft__words_name(f, root), weft__words_at(f, root));
	if (!race->is_sure && race->is_next)
		weft__finding_doubt(f, "who waits for it had got one like it before: perhaps no more were to come");
	if (race->is_sure || race->is_next)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32
		    " other promises %s ended, the slowest after %s; at least %d of them were created later than this one",
		    sort->ended, weft__words_sort(f, p), longest, sort->ended < ENOUGH_OTHERS ? FEW_OVERTAKEN : OVERTAKEN);
	else if (!race->is_dropped)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE,
		    "%" PRIu32 " other promises %s ended, the slowest after %s; the program came to its end without this one",
		    sort->ended, weft__words_sort(f, p), longest);
}

void weft__find_stuck(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	uint32_t count, *race_of = number_races(f, &count);
	struct race *races = race_of ? weft__finding_alloc(f, count + 1, sizeof *races) : NULL; /* 0: of all other sorts */
	for (uint32_t p = 1; races && p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		const uint32_t sort = f->sorts.of[p];
		struct race *race = &races[race_of[sort]];
		if (race_of[sort] == 0 || f->ties.ended_ns[p] == WEFT_NEVER)
			continue;
		if (!(m->promises[p].flags & WEFT_PROMISE_START_UNKNOWN))
			add_late(race, m->promises[p].start_ns);
		race->has_later = race->has_later || (may_be_dropped(&f->sorts.items.items[sort]) && !was_ended_at_once(f, p));
	}
	const size_t pending = races ? f->waiting.pending.count : 0;
	for (size_t i = 0; i < pending && weft__finding_goes_on(f, i, pending); i++) {
		uint32_t p = f->waiting.pending.items[i];
		if (race_of[f->sorts.of[p]] != 0)
			look_at(f, &races[race_of[f->sorts.of[p]]], p);
	}
	for (size_t i = 0; i < pending && weft__finding_goes_on(f, i, pending); i++) {
		uint32_t p = f->waiting.pending.items[i];
		struct race *race = &races[race_of[f->sorts.of[p]]];
		if (race->stuck == 0 || race->first != p || f->told[f->chains.root[p]])
			continue;
		f->told[f->chains.root[p]] = true;
		tell_stuck(f, race);
	}
	free(races);
	free(race_of);
}
