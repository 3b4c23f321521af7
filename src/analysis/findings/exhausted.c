/* exhausted.c: computations held all OS threads of libuv's pool, or waited there for a lock, and other requests that need one had
 * to wait.
 *
 * A computation tells when it runs, so the pool has at least as many OS threads as ever ran one at the same time.  It has no more
 * if a computation waited meanwhile.  A file's request does not tell when it begins: it waited if it was under way while the pool
 * was full.  Computations that only wait for others of their sort are a batch, and no fault.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/names.h"
#include "analysis/shares.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

enum {
	USUAL_SIZE = 4,      /* of the pool, unless UV_THREADPOOL_SIZE says otherwise */
	STALLS_UNKNOWN = 50, /* who computed for so many times the length of a stall had a processor, surely */
	STALLS_COMPUTED = 2, /* so long on a processor is a computation, however long it took */
	STARVED_PART = 8,    /* of a stretch: who had a processor for less of it did not compute for long */
	BREAK_PART = 4,      /* of a stretch: an OS thread may take so long from one computation to the next */
	LEAST_STALLS = 4     /* who waited for less than so many times the length of a stall is no victim */
};

/* A computation has an OS thread from then on, or no longer. */
struct step {
	int64_t time_ns;
	int change;    /* 1 or -1 */
	uint32_t part; /* the process, of a trace that is joined of several: each has a pool of its own */
};

/* A stretch in which all OS threads computed. */
struct full {
	int64_t start_ns, end_ns;
	uint32_t holder; /* a computation that ran then: the first of these */
	uint32_t holders[WEFT__LINES_KEPT], holder_count;
	uint32_t victim;               /* who waited the longest */
	int64_t longest_ns, waited_ns; /* that one; all of them */
	size_t victims;
	uint32_t lock;   /* for which most of those that hold the pool wait; WEFT_NONE: they compute */
	uint32_t locked; /* so many of them do */
	int size;        /* of the pool: so many computed */
	uint32_t part;
	bool proved; /* a computation waited, too */
};

struct pool {
	struct weft__finder *finder;
	WEFT_VEC(struct step) steps;
	WEFT_VEC(struct full) stretches;
};

static int compare_steps(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	return WEFT_ORDER(x->part, y->part) ?: WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->change, y->change);
}

/* When a computation was on an OS thread of the pool: until it gave that back, or the trace ended; false: never.  What starts it,
 * and what it calls back after its end, runs in the loop, on the OS thread that created it. */
static bool find_work(const struct weft_model *m, uint32_t p, struct weft_run *work)
{
	const struct weft_promise *promise = &m->promises[p];
	uint32_t first = promise->runs, end = promise[1].runs;
	if (promise->kind != WEFT_KIND_WORK)
		return false;
	while (m->run_streams && first < end && m->run_streams[first] == promise->stream)
		first++;
	while (end > first && ((m->run_streams && m->run_streams[end - 1] == promise->stream) ||
				  (end - 1 > first && weft_has_ended(promise) && m->runs[end - 1].start_ns >= promise->end_ns)))
		end--;
	if (first == end)
		return false;
	*work = (struct weft_run){
	    m->runs[first].start_ns, weft_has_ended(promise) ? m->runs[end - 1].end_ns : weft_model_until(m, p)};
	return true;
}

/* When p waited for an OS thread, as far as is known; false: it needs none. */
static bool find_wait(const struct weft_model *m, uint32_t p, int64_t *start_ns, int64_t *end_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	struct weft_run work;
	*start_ns = promise->start_ns;
	*end_ns = find_work(m, p, &work) ? work.start_ns : promise->end_ns;
	return (promise->kind == WEFT_KIND_WORK || promise->kind == WEFT_KIND_FS || promise->kind == WEFT_KIND_GETADDRINFO) &&
	       !(promise->flags & WEFT_PROMISE_START_UNKNOWN);
}

static bool gather_steps(struct pool *pool)
{
	const struct weft_model *m = pool->finder->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(pool->finder, p, m->promise_count); p++) {
		struct weft_run work;
		if (pool->finder->sorts.kinds[p] != WEFT_KIND_WORK || !find_work(m, p, &work))
			continue;
		struct step *begin = weft_vec_push(&pool->steps);
		if (begin)
			*begin = (struct step){work.start_ns, 1, weft_part_of(m, p)};
		struct step *end = weft_vec_push(&pool->steps);
		if (!begin || !end)
			return false;
		*end = (struct step){work.end_ns, -1, weft_part_of(m, p)};
	}
	weft_sort(pool->steps.items, pool->steps.count, sizeof *pool->steps.items, compare_steps);
	return true;
}

/* Stretches in which as many computed as ever did at the same time, of one process. */
static bool gather_stretches(struct pool *pool, size_t begin, size_t limit)
{
	int now = 0, size = 0;
	for (size_t i = begin; i < limit; i++) {
		now += pool->steps.items[i].change;
		size = now > size ? now : size;
	}
	for (size_t i = begin; i < limit; i++) {
		const struct step *s = &pool->steps.items[i];
		struct full *last = pool->stretches.count ? &pool->stretches.items[pool->stretches.count - 1] : NULL;
		now += s->change;
		if (now != size)
			continue;
		int64_t end_ns = s[1].time_ns; /* somebody ends it */
		if (last && last->part == s->part && s->time_ns - last->end_ns <= (last->end_ns - last->start_ns) / BREAK_PART) {
			last->end_ns = end_ns;
			continue;
		}
		struct full *added = weft_vec_push(&pool->stretches);
		if (!added)
			return false;
		*added = (struct full){.start_ns = s->time_ns,
		    .end_ns = end_ns,
		    .holder = WEFT_NONE,
		    .victim = WEFT_NONE,
		    .lock = WEFT_NONE,
		    .size = size,
		    .part = s->part};
	}
	return true;
}

static bool gather_all_stretches(struct pool *pool)
{
	bool ok = true;
	for (size_t begin = 0, end; ok && begin < pool->steps.count; begin = end) {
		for (end = begin; end < pool->steps.count && pool->steps.items[end].part == pool->steps.items[begin].part; end++)
			;
		ok = gather_stretches(pool, begin, end);
	}
	return ok;
}

/* A loop that a compiler has unrolled makes its computations at several places of one function. */
static bool is_of_batch(const struct weft__finder *f, uint32_t p, uint32_t holder)
{
	char place[WEFT_NAME_BYTES], place_of_holder[WEFT_NAME_BYTES];
	if (f->sorts.of[p] == f->sorts.of[holder])
		return true;
	return f->model->promises[p].kind == WEFT_KIND_WORK &&
	       !strcmp(weft_name_place(f->model, p, place), weft_name_place(f->model, holder, place_of_holder)) && *place;
}

/* A holder waits for a lock for half of the stretch or more: that is no computation. */
static void find_lock(const struct weft__finder *f, struct full *full, uint32_t holder)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->ties.out_begin[holder]; i < f->ties.out_begin[holder + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		if (link->kind != WEFT_LINK_AWAIT || !weft_kind_has(m->promises[link->to].kind, WEFT_TRAIT_LOCK))
			continue;
		const int64_t start_ns = link->time_ns > full->start_ns ? link->time_ns : full->start_ns;
		const int64_t over_ns = weft_model_await_end(m, link), end_ns = over_ns < full->end_ns ? over_ns : full->end_ns;
		if (end_ns - start_ns < (full->end_ns - full->start_ns) / 2)
			continue;
		full->lock = link->to;
		full->locked++;
		return;
	}
}

/* Who has the lock at that time; WEFT_NONE: it is not known. */
static uint32_t holder_of(const struct weft__finder *f, uint32_t lock, int64_t time_ns)
{
	const struct weft_model *m = f->model;
	uint32_t who = WEFT_NONE;
	for (uint32_t i = f->ties.out_begin[lock]; i < f->ties.out_begin[lock + 1]; i++) {
		const struct weft_link *link = &m->links[f->ties.out[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->time_ns <= time_ns && weft_model_await_end(m, link) > time_ns)
			who = link->to;
	}
	return who;
}

static void find_victims(struct pool *pool, struct full *full)
{
	struct weft__finder *f = pool->finder;
	const struct weft_model *m = f->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_goes_on(f, p, m->promise_count); p++) {
		int64_t start_ns, end_ns;
		if (weft_part_of(m, p) != full->part)
			continue;
		struct weft_run work;
		const bool has_worked = find_work(m, p, &work);
		if (has_worked && work.start_ns < full->end_ns && work.end_ns > full->start_ns && full->holder == WEFT_NONE)
			full->holder = p;
		if (has_worked && work.start_ns <= full->start_ns && work.end_ns > full->start_ns) {
			find_lock(f, full, p);
			if (full->holder_count < WEFT__LINES_KEPT)
				full->holders[full->holder_count++] = p;
		}
		if (!find_wait(m, p, &start_ns, &end_ns) || start_ns > full->end_ns || end_ns < full->start_ns)
			continue;
		int64_t in_ns =
		    (end_ns < full->end_ns ? end_ns : full->end_ns) - (start_ns > full->start_ns ? start_ns : full->start_ns);
		if (in_ns < LEAST_STALLS * f->options.stall_ns || in_ns < (end_ns - start_ns) / 10 * 8)
			continue;
		full->proved |= has_worked;
		if (full->holder != WEFT_NONE && is_of_batch(f, p, full->holder))
			continue;
		full->victims++;
		full->waited_ns += in_ns;
		if (in_ns > full->longest_ns) {
			full->longest_ns = in_ns;
			full->victim = p;
		}
	}
}

static void tell_locked(struct weft__finder *f, struct weft_finding *finding, const struct full *full)
{
	const char *lock = weft__words_name(f, full->lock), *lock_at = weft__words_at(f, full->lock), *who = "";
	const uint32_t by = holder_of(f, full->lock, (full->start_ns + full->end_ns) / 2);
	if (by != WEFT_NONE)
		who = weft__finding_text(f, ", which %s%s had", weft__words_name(f, by), weft__words_at(f, by));
	finding->root = full->lock;
	finding->title =
	    weft__finding_text(f, "%s%s waited %s for an OS thread of the pool: of its %d, %" PRIu32 " waited for %s%s%s",
		weft__words_name(f, full->victim), weft__words_at(f, full->victim), weft__words_span(f, full->longest_ns),
		full->size, full->locked, lock, lock_at, who);
	finding->next = weft__finding_text(f, "hold %s for a shorter time, or let no work of the pool wait for it", lock);
}

/* Whether their OS threads hardly had a processor in that time, or the trace is a part that does not tell: then the machine may
 * be to blame, not what they compute. */
static bool are_starved(const struct weft__finder *f, const struct full *full)
{
	const struct weft_model *m = f->model;
	const uint16_t own = m->promises[full->victim].stream;
	const int64_t length_ns = full->end_ns - full->start_ns;
	int64_t had_ns = 0, asked_ns = 0;
	for (size_t i = WEFT_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > full->start_ns); i < m->round_count; i++) {
		const struct weft_round *r = &m->rounds[i];
		const int64_t in_ns = weft_min_ns(r->end_ns, full->end_ns) - weft_max_ns(r->start_ns, full->start_ns);
		if (r->stream == own || in_ns <= 0)
			continue;
		had_ns += weft_min_ns(r->had_ns, in_ns);
		asked_ns += in_ns;
	}
	const struct weft__lacks *of = weft__lacks_of(f->lacks, m, full->victim);
	const bool is_part = of->cut || of->lost || of->wrapped;
	const bool is_known = asked_ns >= length_ns / 2 * full->size;
	return m->round_count > 0 &&
	       had_ns < weft_min_ns(length_ns / STARVED_PART, STALLS_COMPUTED * f->options.stall_ns) * full->size &&
	       (is_known || (is_part && length_ns < STALLS_UNKNOWN * f->options.stall_ns));
}

static void tell_exhausted(struct pool *pool, const struct full *full)
{
	struct weft__finder *f = pool->finder;
	const struct weft_promise *promises = f->model->promises;
	uint32_t p = full->victim;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_EXHAUSTED, p, promises[p].start_ns, full->end_ns);
	if (!finding)
		return;
	const char *name = weft__words_name(f, p), *at = weft__words_at(f, p), *holder_at = weft__words_at(f, full->holder);
	finding->root = full->holder;
	finding->weight = (uint64_t)full->waited_ns;
	if (full->lock == WEFT_NONE) {
		finding->title = weft__finding_text(f,
		    "%s%s waited %s for an OS thread of the pool: each of its %d was busy with a computation%s", name, at,
		    weft__words_span(f, full->longest_ns), full->size, holder_at);
		finding->next = weft__finding_text(f,
		    "cut the computations into smaller pieces, give them OS threads of their own, or give the pool more "
		    "(UV_THREADPOOL_SIZE)%s",
		    holder_at);
	} else {
		tell_locked(f, finding, full);
	}
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full->start_ns, full->holder,
	    "each of the pool's %d OS threads is busy, one with %s%s", full->size, weft__words_name(f, full->holder), holder_at);
	for (uint32_t i = 0; i < full->holder_count; i++)
		if (full->holders[i] != full->holder)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full->start_ns, full->holders[i], "%s%s has another",
			    weft__words_name(f, full->holders[i]), weft__words_at(f, full->holders[i]));
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full->end_ns, WEFT_NONE, "one of them is free again, %s later",
	    weft__words_span(f, full->end_ns - full->start_ns));
	weft__finding_evidence(
	    f, WEFT_EVIDENCE_VICTIM, promises[p].start_ns, p, "%s waits for %s", name, weft__words_span(f, full->longest_ns));
	if (full->victims > 1)
		weft__words_more(f, WEFT_EVIDENCE_VICTIM, full->victims - 1, "");
	if (full->lock == WEFT_NONE && are_starved(f, full)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(
		    f, "the pool's OS threads hardly had a processor in that time, or nobody knows whether they had");
	}
	if (!full->proved)
		weft__finding_doubt(f, "the trace does not tell whether the pool has more OS threads");
}

void weft__find_exhausted(struct weft__finder *f)
{
	enum { LOOKED_AT = 16 }; /* the first stretches: a pool that is full all the time is so in each */
	struct pool pool = {.finder = f};
	if (!weft__sorts_have(&f->sorts, WEFT_KIND_WORK))
		return;
	f->no_memory |= !gather_steps(&pool) || !gather_all_stretches(&pool);
	size_t looked = 0;
	for (size_t i = 0; !f->no_memory && i < pool.stretches.count && looked < LOOKED_AT; i++) {
		struct full *full = &pool.stretches.items[i];
		if (full->end_ns - full->start_ns < LEAST_STALLS * f->options.stall_ns)
			continue;
		looked++;
		find_victims(&pool, full);
		if (full->victims > 0 && (full->proved || full->size >= USUAL_SIZE))
			tell_exhausted(&pool, full);
	}
	weft_vec_free(&pool.steps);
	weft_vec_free(&pool.stretches);
}
