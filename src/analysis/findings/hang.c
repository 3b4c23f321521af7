/* hang.c: promises that should resolve and never did.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "base/duration.h"
#include "base/hash.h"
#include "base/idmap.h"

void weft__hang_chain(struct weft__finder *f, uint32_t promise)
{
	const uint32_t *next = f->chains.next;
	size_t length = 1, at = 0;
	for (uint32_t p = promise; next[p] != WEFT_NONE; p = next[p])
		length++;
	for (uint32_t p = promise; p != WEFT_NONE; p = next[p], at++) {
		if (at < WEFT__LINES_KEPT || at + WEFT__LINES_KEPT >= length)
			weft__words_chain_link(f, p, next[p] == WEFT_NONE ? "" : weft__words_waits(f, p));
		else if (at == WEFT__LINES_KEPT)
			weft__finding_evidence(f, WEFT_EVIDENCE_CHAIN, WEFT_NO_TIME, WEFT_NONE, "... and so on, %zu more ...",
			    length - 2 * WEFT__LINES_KEPT);
	}
}

static void tell_lost_wakeup(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t root = finding->root, condition = m->promises[root].created_by, waiter = WEFT_NONE;
	int64_t wait_ns = m->promises[root].start_ns;
	const uint32_t *missed;
	size_t missed_count = weft__chains_missed_signals(&f->chains, root, &missed), woken = 0;
	const struct weft_link *signal = &m->links[missed[missed_count - 1]];
	const char *name = weft__words_name(f, condition), *place = weft__words_at(f, root);
	const char *early = weft__words_span(f, wait_ns - signal->time_ns);
	for (uint32_t i = f->ties.in_begin[condition]; i < f->ties.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_SIGNAL && link->time_ns <= wait_ns)
			waiter = link->from; /* the last signal up to its creation is its own */
	}
	for (uint32_t i = f->ties.out_begin[condition]; i < f->ties.out_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		woken += link->kind == WEFT_LINK_RESOLVE && link->time_ns > wait_ns;
	}
	const char *who = waiter == WEFT_NONE || waiter == WEFT_SYSTEM ? "the program" : weft__words_name(f, waiter);
	finding->start_ns = signal->time_ns;
	finding->end_ns = wait_ns;
	finding->title = weft__finding_text(
	    f, "%s: lost wake-up, %s was signalled %s before %s began to wait for it%s", what, name, early, who, place);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, signal->time_ns, signal->from,
	    "%s%s signals %s, for which nobody waits yet", weft__words_name(f, signal->from), weft__words_at(f, signal->from),
	    name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, wait_ns, root, "%s begins to wait for it, as %s%s: %s too late", who,
	    weft__words_name(f, root), place, early);
	if (woken)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, WEFT_NO_TIME, condition,
		    "later signals of %s woke %zu other%s, not this one", name, woken, weft__words_s(woken));
	else
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, weft_model_until(m, root), condition,
		    "the trace ends; %s was not signalled again", name);
	if (missed_count > 1)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, condition,
		    "%zu signals of %s in all came before anybody waited", missed_count, name);
	finding->next = weft__finding_text(
	    f, "check the condition before waiting, and do not await anything between the check and the wait%s", place);
}

/* A root of which nothing is known but that it is pending: who created it, how others of its sort ended. */
static void tell_origin(struct weft__finder *f, uint32_t root)
{
	weft__words_creation(f, root);
	weft__words_peers(f, root);
}

static void tell_creator_failed(struct weft__finder *f, struct weft_finding *finding, const char *what, const char *it)
{
	uint32_t root = finding->root, creator = f->model->promises[root].created_by;
	const char *name = weft__words_name(f, creator);
	finding->title = weft__finding_text(f, "%s: nobody resolved %s after its creator, %s, had failed", what, it, name);
	weft__words_creation(f, root);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->model->promises[creator].end_ns, creator, "%s fails: %s", name,
	    weft__words_text(f, f->model->promises[creator].failure));
	weft__words_peers(f, root);
	finding->next = weft__finding_text(
	    f, "resolve %s%s, or let it fail, also where %s fails", weft__words_name(f, root), weft__words_at(f, root), name);
}

static void tell_not_run(struct weft__finder *f, struct weft_finding *finding, const char *what, const char *it)
{
	uint32_t input = weft__chains_ready_input(&f->chains, finding->root);
	const char *name = weft__words_name(f, input);
	finding->title =
	    weft__finding_text(f, "%s: %s was not run again after %s, for which it waited, had ended", what, it, name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[input], input, "%s ends; %s does not run after that",
	    name, weft__words_name(f, finding->root));
	finding->next = weft__finding_text(
	    f, "the code that resolves %s%s must also run those who wait for it", name, weft__words_at(f, input));
}

static void tell_lock(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t lock = finding->root;
	const struct weft_link *hold = &m->links[weft__chains_last_hold(&f->chains, lock)];
	uint32_t holder = f->ties.now[hold->to];
	const char *name = weft__words_name(f, lock), *who = weft__words_name(f, holder), *at = weft__words_at(f, holder);
	int64_t over_ns = weft_model_await_end(m, hold);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, hold->time_ns, holder, "%s%s takes %s", who, at, name);
	if (finding->verdict == WEFT_VERDICT_NOT_RELEASED) {
		finding->title =
		    weft__finding_text(f, "%s: %s, which had taken %s, came to its end without releasing it", what, who, name);
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, f->ties.ended_ns[holder], holder, "%s ends; it still has %s", who, name);
		finding->next = weft__finding_text(f, "release %s on every way out of %s%s, also where it fails", name, who, at);
	} else {
		finding->title = weft__finding_text(f, "%s: nobody holds %s, and nobody told those who wait for it", what, name);
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, over_ns, holder, "%s releases %s; nobody takes it after that", who, name);
		finding->next = weft__finding_text(f, "who releases %s must wake one of those who wait for it", name);
	}
}

/* One that waits for a condition whose signals all came earlier, and woke others; false: it is none. */
static bool tell_late_wait(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	const struct weft_model *m = f->model;
	uint32_t root = finding->root, condition = m->promises[root].created_by;
	int64_t wait_ns = m->promises[root].start_ns, last_ns = WEFT_NEVER;
	uint32_t by = WEFT_NONE;
	if (condition == WEFT_NONE || !weft_kind_has(m->promises[condition].kind, WEFT_TRAIT_CONDITION))
		return false;
	for (uint32_t i = f->ties.in_begin[condition]; i < f->ties.in_begin[condition + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		bool is_wait = false; /* who waits signals the condition when its wait is made */
		for (size_t l = f->ties.in[i] + 1; l < m->link_count && m->links[l].time_ns == link->time_ns; l++)
			is_wait |= m->links[l].kind == WEFT_LINK_AWAIT && m->links[l].from == link->from;
		if (link->kind != WEFT_LINK_SIGNAL || link->time_ns >= wait_ns || is_wait)
			continue;
		last_ns = link->time_ns;
		by = link->from;
	}
	if (by == WEFT_NONE)
		return false;
	const char *name = weft__words_name(f, condition), *place = weft__words_at(f, root);
	const char *early = weft__words_span(f, wait_ns - last_ns);
	finding->title = weft__finding_text(
	    f, "%s: lost wake-up, %s was last signalled %s before this began to wait for it%s", what, name, early, place);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, last_ns, by, "%s%s signals %s for the last time", weft__words_name(f, by),
	    weft__words_at(f, by), name);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, wait_ns, root, "%s%s begins to wait for it: %s too late",
	    weft__words_name(f, root), place, early);
	finding->next = weft__finding_text(
	    f, "check the condition before waiting, and do not await anything between the check and the wait%s", place);
	return true;
}

/* ", and it holds lock 3 "cache"": the locks that a promise has. */
static const char *locks_of(struct weft__finder *f, uint32_t p)
{
	const struct weft_model *m = f->model;
	const char *text = "";
	for (uint32_t i = f->ties.in_begin[p], told = 0; i < f->ties.in_begin[p + 1] && told < WEFT__LINES_KEPT; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind != WEFT_LINK_AWAIT || !weft_kind_has(m->promises[link->from].kind, WEFT__TRAITS_HELD) ||
		    weft_model_await_end(m, link) < weft_model_until(m, p))
			continue;
		text =
		    weft__finding_text(f, "%s%s%s", text, told++ ? " and " : ", and it holds ", weft__words_name(f, link->from));
	}
	return text;
}

/* Others that wait in vain since before the root was created, for something of another sort: what nobody ends may be theirs to
 * end.
 */
static void tell_older(struct weft__finder *f, struct weft_finding *finding)
{
	enum { OLDER_KEPT = 3 };
	const struct weft_promise *promises = f->model->promises;
	const uint32_t root = finding->root;
	uint32_t sorts[OLDER_KEPT];
	size_t told = 0;
	for (size_t i = 0; i < f->waiting.pending.count && told < OLDER_KEPT; i++) {
		const uint32_t p = f->waiting.pending.items[i], q = f->chains.root[p];
		bool is_new = f->sorts.of[q] != f->sorts.of[root];
		if (f->chains.next[p] != q || f->chains.verdict[q] != WEFT_VERDICT_NEVER_TRIED || (f->told && f->told[q]) ||
		    promises[q].start_ns >= promises[root].start_ns || weft_kind_has(promises[q].kind, WEFT_TRAIT_ENDLESS) ||
		    weft_kind_has(promises[p].kind, WEFT__TRAITS_LASTING))
			continue;
		for (size_t k = 0; k < told; k++)
			is_new &= sorts[k] != f->sorts.of[q];
		if (!is_new)
			continue;
		if (told == 0)
			finding->next = weft__finding_text(f,
			    "find out first who should resolve %s%s: whoever waits for it may be who should resolve %s",
			    weft__words_name(f, q), weft__words_at(f, q), weft__words_name(f, root));
		sorts[told++] = f->sorts.of[q];
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, promises[q].start_ns, q,
		    "before that %s%s began to wait for %s%s, and nobody ever tried to resolve that either",
		    weft__words_name(f, p), weft__words_at(f, p), weft__words_name(f, q), weft__words_at(f, q));
	}
}

void weft__hang_root(struct weft__finder *f, struct weft_finding *finding, const char *what)
{
	uint32_t root = finding->root;
	const char *name = weft__words_name(f, root), *at = weft__words_at(f, root);
	/* Of one that waits for itself alone the sentence has named it already. */
	const char *it = root == finding->promise ? "it" : weft__finding_text(f, "%s%s", name, at);
	const char *waits = root == finding->promise ? "" : ", for which it waits";
	struct weft__late_waiter late;
	uint32_t stuck;
	if ((finding->verdict == WEFT_VERDICT_NEVER_TRIED || finding->verdict == WEFT_VERDICT_OUTSIDE) &&
	    weft__worker_find(f, root, &late)) {
		weft__worker_tell(f, finding, what, &late);
		return;
	}
	if (weft__unread_tell(f, finding, what))
		return;
	switch (finding->verdict) {
	case WEFT_VERDICT_LOST_WAKEUP: tell_lost_wakeup(f, finding, what); return;
	case WEFT_VERDICT_CREATOR_FAILED: tell_creator_failed(f, finding, what, it); return;
	case WEFT_VERDICT_NOT_RUN: tell_not_run(f, finding, what, it); return;
	case WEFT_VERDICT_NOT_RELEASED:
	case WEFT_VERDICT_NOT_HANDED_ON: tell_lock(f, finding, what); return;
	case WEFT_VERDICT_NEVER_TRIED:
		if (tell_late_wait(f, finding, what))
			return;
		if ((stuck = weft__worker_stuck(f, root)) != WEFT_NONE) {
			weft__worker_tell_stuck(f, finding, what, stuck);
			return;
		}
		if (weft__asleep_tell(f, finding, what))
			return;
		finding->title =
		    weft__finding_text(f, "%s: nobody ever tried to resolve %s%s%s", what, it, waits, locks_of(f, root));
		finding->next = weft__finding_text(
		    f, "find the code that should resolve %s%s: it was never called, or its resolver was dropped", name, at);
		tell_origin(f, root);
		tell_older(f, finding);
		if (f->model->promises[root].kind == WEFT_KIND_SEMAPHORE)
			weft__worker_tell_tokens(f, root);
		return;
	case WEFT_VERDICT_OUTSIDE:
		if (weft__asleep_tell(f, finding, what))
			return;
		finding->title =
		    weft__finding_text(f, "%s: no answer came from outside for %s%s, which was created %s before the end", what,
			it, waits, weft__words_span(f, weft_model_until(f->model, root) - f->model->promises[root].start_ns));
		finding->next = weft__finding_text(
		    f, "look at the other side of %s%s; a timeout would turn its silence into an error", name, at);
		tell_origin(f, root);
		return;
	default:
		finding->verdict = WEFT_VERDICT_UNKNOWN;
		finding->title = weft__finding_text(f, "%s: the trace does not tell what %s waits for", what, it);
		finding->next = f->model->promises[root].flags & WEFT_PROMISE_START_UNKNOWN
				    ? "record with a larger ring, which holds its beginning, or with a list of what is pending"
				    : "record there who waits for whom, too";
		if (!weft__finding_doubt_part(f, root, true))
			weft__finding_doubt(f, f->doubt ? f->doubt : "the code that recorded it does not tell what it waits for");
	}
}

/* Whether what ends such a promise from outside took much less long before. */
static bool is_overdue(const struct weft__finder *f, uint32_t root)
{
	enum { TIMES_LONGER = 5 };
	const struct weft__sort *sort = &f->sorts.items.items[f->sorts.of[root]];
	int64_t age_ns = weft_model_until(f->model, root) - f->model->promises[root].start_ns;
	return sort->ended > 0 && age_ns / TIMES_LONGER > sort->longest_ns && age_ns >= f->options.stall_ns;
}

/* Others got the semaphore a short while ago: it goes round. */
static bool is_in_use(const struct weft__finder *f, uint32_t root)
{
	uint32_t last = f->sorts.items.items[f->sorts.of[root]].last_resolved;
	int64_t until_ns = weft_model_until(f->model, root);
	return last != WEFT_NONE && until_ns - f->ties.ended_ns[last] < (until_ns - f->model->promises[root].start_ns) / 2;
}

/* Whether it has a lock: who could release it waits for nothing, and does not run.  While its OS thread is awake, it may be about
 * to. */
static bool holds_lock(const struct weft__finder *f, uint32_t p)
{
	enum { LONG_HELD_NS = 50000000 };
	const struct weft_model *m = f->model;
	const int64_t until_ns = weft_model_until(m, p);
	for (uint32_t i = f->ties.in_begin[p]; i < f->ties.in_begin[p + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		if (link->kind == WEFT_LINK_AWAIT && weft_kind_has(m->promises[link->from].kind, WEFT__TRAITS_HELD) &&
		    weft_model_await_end(m, link) >= until_ns &&
		    (f->at_rest[m->promises[p].stream] || until_ns - link->time_ns >= LONG_HELD_NS))
			return true;
	}
	return false;
}

/* Whether it, or one that waits for it, has a lock. */
static bool holds_lock_up(const struct weft__finder *f, uint32_t root)
{
	enum { LOOKED_AT = 64 };
	const struct weft_model *m = f->model;
	bool holds = holds_lock(f, root);
	uint32_t i = f->ties.in_begin[root], end = f->ties.in_begin[root + 1];
	for (end = end - i > LOOKED_AT ? i + LOOKED_AT : end; i < end && !holds; i++) {
		const struct weft_link *link = &m->links[f->ties.in[i]];
		holds = link->kind == WEFT_LINK_AWAIT && link->from != WEFT_SYSTEM &&
			weft_model_await_end(m, link) >= weft_model_until(m, root) && holds_lock(f, link->from);
	}
	return holds;
}

/* The sleeps of each OS thread, in time order. */
static void sort_sleeps(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	const size_t streams = m->trace->stream_count;
	f->sleeps_begin = weft__finding_alloc(f, streams + 1, sizeof *f->sleeps_begin);
	f->sleeps = weft__finding_alloc(f, m->sleep_count, sizeof *f->sleeps);
	if (f->no_memory)
		return;
	for (size_t i = 0; i < m->sleep_count; i++)
		f->sleeps_begin[m->sleeps[i].stream + 1]++;
	for (size_t s = 0; s < streams; s++)
		f->sleeps_begin[s + 1] += f->sleeps_begin[s];
	for (size_t i = m->sleep_count; i-- > 0;) /* from behind: what begins a list is where the next one goes */
		f->sleeps[--f->sleeps_begin[m->sleeps[i].stream + 1]] = (uint32_t)i;
	memmove(f->sleeps_begin, f->sleeps_begin + 1, streams * sizeof *f->sleeps_begin);
	f->sleeps_begin[streams] = (uint32_t)m->sleep_count;
}

/* A trace that was cut, or whose program was killed: it went on with it a short while ago, or the pool takes one after the other,
 * and its turn has not come yet. */
static bool goes_on(const struct weft__finder *f, uint32_t root)
{
	const struct weft_promise *promises = f->model->promises;
	const int64_t until_ns = weft_model_until(f->model, root), age_ns = until_ns - promises[root].start_ns;
	const uint32_t last = f->sorts.items.items[f->sorts.of[root]].last_resolved;
	if (!weft__lacks_of(f->lacks, f->model, root)->cut)
		return false;
	if (promises[root].kind == WEFT_KIND_WORK)
		return last != WEFT_NONE && is_in_use(f, root) &&
		       (promises[last].start_ns <= promises[root].start_ns ||
			   weft_run_before(f->model, root, INT64_MAX) != WEFT_NONE);
	return (f->chains.verdict[root] == WEFT_VERDICT_NEVER_TRIED || f->chains.verdict[root] == WEFT_VERDICT_UNKNOWN) &&
	       !holds_lock_up(f, root) && until_ns - weft__finding_last_deed(f, root) < age_ns / 4 * 3;
}

/* What it waits for came so shortly before the end that its turn had not come yet: its OS thread has not slept since. */
static bool is_its_turn(const struct weft__finder *f, uint32_t root)
{
	enum { STALLS_UNTIL_TAKEN = 50, ASLEEP_NS = 100000 }; /* between two callbacks a loop seems to sleep, too */
	const struct weft_model *m = f->model;
	const uint16_t stream = m->promises[root].stream;
	int64_t came_ns = INT64_MIN;
	if (f->chains.verdict[root] == WEFT_VERDICT_NOT_RUN)
		came_ns = f->ties.ended_ns[weft__chains_ready_input(&f->chains, root)];
	else if (f->chains.verdict[root] == WEFT_VERDICT_NOT_HANDED_ON)
		came_ns = weft_model_await_end(m, &m->links[weft__chains_last_hold(&f->chains, root)]);
	/* Who takes a lock may be of another OS thread, which a busy machine lets wait. */
	const bool is_cut = f->chains.verdict[root] == WEFT_VERDICT_NOT_HANDED_ON && weft__lacks_of(f->lacks, m, root)->cut;
	if (came_ns <= weft_model_until(m, root) - f->options.stall_ns * (is_cut ? STALLS_UNTIL_TAKEN : 1))
		return false;
	for (uint32_t i = f->sleeps_begin[stream + 1]; !is_cut && i-- > f->sleeps_begin[stream];) {
		const struct weft_stretch *s = &m->sleeps[f->sleeps[i]];
		if (s->end_ns - weft_max_ns(s->start_ns, came_ns) >= ASLEEP_NS)
			return false;
		if (s->start_ns < came_ns)
			break;
	}
	return true;
}

/* A request that others of its shape took as long as: its answer may be under way. */
static bool is_no_slower(const struct weft__finder *f, uint32_t root)
{
	const int64_t age_ns = weft_model_until(f->model, root) - f->model->promises[root].start_ns;
	return f->shape_of && weft_kind_has(f->model->promises[root].kind, WEFT_TRAIT_REQUEST) &&
	       f->shape_longest_ns[f->shape_of[f->sorts.of[root]]] >= age_ns;
}

/* That a promise is pending is no fault: it may have been on its way.  What makes it one, or WEFT_NONE. */
enum reason { ON_ITS_WAY, PERHAPS, CERTAIN };

static enum reason reason_of(const struct weft__finder *f, uint32_t root)
{
	enum { LONG_NS = 1000000000, SOON_NS = LONG_NS / 2 };
	const struct weft_promise *promise = &f->model->promises[root];
	const struct weft__lacks *of = weft__lacks_of(f->lacks, f->model, root);
	int64_t age_ns = weft_model_until(f->model, root) - promise->start_ns;
	if (promise->kind == WEFT_KIND_SEMAPHORE && is_in_use(f, root))
		return ON_ITS_WAY;
	if (is_its_turn(f, root) || goes_on(f, root))
		return ON_ITS_WAY;
	switch (f->chains.verdict[root]) {
	case WEFT_VERDICT_OUTSIDE: return is_overdue(f, root) ? CERTAIN : age_ns >= LONG_NS ? PERHAPS : ON_ITS_WAY;
	case WEFT_VERDICT_NOT_RUN:
	case WEFT_VERDICT_NEVER_TRIED:
		if (f->chains.verdict[root] == WEFT_VERDICT_NEVER_TRIED && is_no_slower(f, root) && !holds_lock_up(f, root))
			return ON_ITS_WAY;
		/* Somebody killed it, or looks at it while it runs: what is no older than others became is in flight. */
		if (of->cut && !is_overdue(f, root) && age_ns < SOON_NS && !holds_lock_up(f, root))
			return ON_ITS_WAY; /* fall through */
	case WEFT_VERDICT_NOT_RELEASED:
	case WEFT_VERDICT_NOT_HANDED_ON: return f->at_rest[promise->stream] ? CERTAIN : PERHAPS;
	case WEFT_VERDICT_UNKNOWN: /* in a trace that was cut or has holes, what is no older than others became is in flight */
		return (!of->lost && !of->cut) || is_overdue(f, root) || age_ns >= LONG_NS ? CERTAIN : ON_ITS_WAY;
	default: return CERTAIN;
	}
}

/* ---- Hangs of one sort ---- */

/* Roots whose labels have one shape, and for which promises whose labels have one shape wait in the same way, are told of
 * together if there are at least so many: 200 orders that nobody serves are one fault. */
enum { LEAST_ALIKE = 3 };

struct alike {
	const uint32_t *shape_of; /* by sort: shapes.h; NULL: there are too few hangs */
	struct weft_idmap groups; /* by key: how many roots */
};

static int64_t key_of(const struct weft__finder *f, const struct alike *alike, const struct weft__blocked *blocked)
{
	uint64_t sorts =
	    (uint64_t)alike->shape_of[f->sorts.of[blocked->promise]] << 32 | alike->shape_of[f->sorts.of[blocked->root]];
	return (int64_t)(weft_hash_u64(weft_hash_u64(sorts) + f->chains.verdict[blocked->root]) >> 1);
}

static bool is_told_here(const struct weft__finder *f, uint32_t root)
{
	return !f->told[root] && reason_of(f, root) != ON_ITS_WAY;
}

static void gather_alike(struct weft__finder *f, struct alike *alike)
{
	const struct weft__blocked *blocked = f->chains.blocked.items;
	if (f->chains.blocked.count < LEAST_ALIKE || !(alike->shape_of = weft__finding_shapes(f)))
		return;
	for (size_t i = 0, count; i < f->chains.blocked.count && weft__finding_goes_on(f, i, f->chains.blocked.count);
	     i += count) {
		count = weft__chains_blocked(&f->chains, blocked[i].root, &(const struct weft__blocked *){NULL});
		if (!is_told_here(f, blocked[i].root))
			continue;
		int64_t key = key_of(f, alike, &blocked[i]);
		uint32_t known = weft_idmap_get(&alike->groups, key);
		f->no_memory |= !weft_idmap_set(&alike->groups, key, known == WEFT_IDMAP_NONE ? 1 : known + 1);
	}
}

/* How many roots hang like this one, itself included, if they are to be told of together, else 1; 0: they were told of. */
static uint32_t count_alike(const struct weft__finder *f, const struct alike *alike, const struct weft__blocked *blocked)
{
	uint32_t count = alike->shape_of ? weft_idmap_get(&alike->groups, key_of(f, alike, blocked)) : 1;
	return count > 0 && count < LEAST_ALIKE ? 1 : count;
}

/* The others that hang like blocked[0], of those that come after it. */
static void tell_alike(struct weft__finder *f, const struct alike *alike, const struct weft__blocked *blocked, uint32_t count)
{
	const struct weft__blocked *end = f->chains.blocked.items + f->chains.blocked.count;
	int64_t key = key_of(f, alike, blocked);
	size_t shown = 0;
	for (const struct weft__blocked *other = blocked + 1; other < end && shown + 1 < count; other++) {
		if (other->root == other[-1].root || !is_told_here(f, other->root) || key_of(f, alike, other) != key)
			continue;
		if (++shown > WEFT__LINES_KEPT)
			break;
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, f->model->promises[other->root].start_ns, other->root,
		    "%s hangs in the same way", weft__words_name(f, other->root));
	}
	if (count > WEFT__LINES_KEPT + 1)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, count - 1 - WEFT__LINES_KEPT, "");
}

/* All of `blocked` should resolve, and wait for one root; `like_it` roots hang in this way. */
static void tell_hang(struct weft__finder *f, enum reason reason, const struct weft__blocked *blocked, size_t count,
    const struct alike *alike, uint32_t like_it)
{
	const struct weft_promise *promises = f->model->promises;
	uint32_t p = blocked[0].promise, root = blocked[0].root;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_HANG, p, promises[p].start_ns, weft_model_until(f->model, p));
	if (!finding)
		return;
	finding->root = root;
	finding->verdict = f->chains.verdict[root];
	/* Who waits for a semaphore waits for those that have it: what these wait for comes first. */
	finding->weight = promises[root].kind == WEFT_KIND_SEMAPHORE ? 0 : like_it > 1 ? like_it : count;
	bool is_open = weft__finding_doubt_part(f, p, true);
	is_open |= weft__finding_doubt_part(f, root, true);
	if (!is_open && reason == PERHAPS)
		weft__finding_doubt(f, finding->verdict == WEFT_VERDICT_OUTSIDE
					   ? "the trace does not tell how long that may take"
					   : "a promise was running when the trace ended, and might have gone on with it");
	/* In what is missing it may have resolved, or gone on. */
	if (weft__lacks_of(f->lacks, f->model, p)->lost || weft__lacks_of(f->lacks, f->model, root)->lost)
		finding->severity = WEFT_SEVERITY_INFORMATION;
	const char *never = is_open ? "had not resolved when the trace ended" : "never resolved";
	const char *name = weft__words_name(f, p), *at = p == root ? weft__words_at(f, p) : "";
	if (like_it > 1)
		name = weft__finding_text(f, "%s%s, and %" PRIu32 " more of its sort,", name, at, like_it - 1);
	weft__hang_chain(f, p);
	weft__hang_root(f, finding,
	    count == 1 || like_it > 1 ? weft__finding_text(f, "%s%s %s", name, like_it > 1 ? "" : at, never)
				      : weft__finding_text(f, "%s%s and %zu more %s", name, at, count - 1, never));
	for (size_t i = 1; i < count && i <= WEFT__LINES_KEPT; i++)
		weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, promises[blocked[i].promise].start_ns, blocked[i].promise,
		    "%s should resolve too, and waits for the same", weft__words_name(f, blocked[i].promise));
	if (count > WEFT__LINES_KEPT + 1)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, count - 1 - WEFT__LINES_KEPT, "");
	if (like_it > 1)
		tell_alike(f, alike, blocked, like_it);
}

void weft__find_hang(struct weft__finder *f)
{
	const struct weft__blocked *blocked = f->chains.blocked.items;
	struct alike alike = {.shape_of = NULL};
	if (f->chains.blocked.count > 0) { /* for reason_of() */
		weft__finding_shapes(f);
		sort_sleeps(f);
	}
	if (f->no_memory)
		return;
	gather_alike(f, &alike);
	for (size_t i = 0, count; i < f->chains.blocked.count && weft__finding_goes_on(f, i, f->chains.blocked.count);
	     i += count) {
		uint32_t root = blocked[i].root;
		count = weft__chains_blocked(&f->chains, root, &(const struct weft__blocked *){NULL});
		if (!is_told_here(f, root))
			continue;
		uint32_t like_it = count_alike(f, &alike, &blocked[i]);
		if (like_it > 0)
			tell_hang(f, reason_of(f, root), &blocked[i], count, &alike, like_it);
		if (like_it > 1)
			f->no_memory |= !weft_idmap_set(&alike.groups, key_of(f, &alike, &blocked[i]), 0);
		f->told[root] = true;
	}
	weft_idmap_finish(&alike.groups);
	if (weft__waiting_any(&f->waiting, WEFT_KIND_THREAD))
		weft__asleep_find(f);
}
