/* exhausted.c: finds times in which other requests waited because each thread of libuv's pool computed, or waited for a lock, a
 * condition or a semaphore.
 *
 * The trace records when a computation runs, so the pool has at least as many threads as computations ever ran at the same
 * time.  If another computation waited at that time, the pool has no more threads.  The trace does not record when a file
 * request starts to run, so a file request that was in progress while the pool was full counts as waiting.  Computations that
 * wait only for computations of their own type are a batch, which is no fault.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <string.h>

#include "analysis/findings/finding.h"
#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

enum {
	DEFAULT_POOL_SIZE = 4, /* number of threads of libuv's pool, unless UV_THREADPOOL_SIZE is set */
	/* shortest computation, in stall limits, that surely used a CPU although its time on CPU is unknown */
	MIN_UNKNOWN_STALLS = 50,
	BLOCKED_STALLS = 25, /* shortest wait of pool threads in I/O, in stall limits, that a busy machine does not explain */
	COMPUTED_STALLS = 2, /* least time on CPU, in stall limits, of a thread that computed */
	/* threads that were on CPU for less than one STARVED_DIVISOR-th of an interval did not compute for long */
	STARVED_DIVISOR = 8,
	/* a gap between two computations of at most one BREAK_DIVISOR-th of the interval does not end the interval */
	BREAK_DIVISOR = 4,
	MIN_NAME_STALLS = 100, /* the same for names */
	MIN_WAIT_STALLS = 4    /* shortest wait of a victim, in stall limits */
};

/* A computation takes a thread of libuv's pool, or releases its thread. */
struct pool_step {
	int64_t time_ns;
	int change;    /* 1 if the computation takes a thread, -1 if it releases its thread */
	uint32_t part; /* process of the computation: each process of a joined trace has its own pool */
};

/* An interval in which all threads of libuv's pool computed. */
struct full_interval {
	int64_t start_ns, end_ns;
	uint32_t holder; /* the first computation that ran in the interval */
	uint32_t holders[WEFT__MAX_LINES], holder_count;
	uint32_t victim;               /* the promise that waited longest for a thread */
	int64_t longest_ns, waited_ns; /* waiting time of the victim; sum of the waiting times of all victims */
	size_t victims;
	uint32_t lock;   /* the lock, condition or semaphore for which most threads of the pool wait; WEFT_NONE if they compute */
	uint32_t locked; /* number of computations that wait for `lock` */
	int size;        /* number of threads of the pool, as far as known: the number of computations that ran at once */
	uint32_t part;
	bool is_names;  /* true if only the threads that may look up names are busy */
	bool is_proved; /* true if a further computation waited, which proves that the pool has no more threads */
};

struct pool {
	struct weft__finder *finder;
	WEFT_VEC(struct pool_step) steps;
	WEFT_VEC(struct full_interval) intervals;
};

static int compare_steps(const void *a, const void *b)
{
	const struct pool_step *x = a, *y = b;
	return WEFT_ORDER(x->part, y->part) ?: WEFT_ORDER(x->time_ns, y->time_ns) ?: WEFT_ORDER(x->change, y->change);
}

/* Returns whether promises of the kind run on a thread of libuv's pool. */
static bool is_pool_kind(uint16_t kind)
{
	return kind == WEFT_KIND_WORK || kind == WEFT_KIND_FS || kind == WEFT_KIND_GETADDRINFO;
}

/* Finds the interval in which a request ran on a thread of the pool: until it ended there, or until the end of the trace.
 * Returns false if the request never ran on a thread of the pool, or if the trace does not record it.  The thread of the loop,
 * which created the request, runs the code that starts it and the callback after it; neither counts. */
static bool find_work(const struct weft_model *m, uint32_t p, struct weft_run *work)
{
	const struct weft_promise *promise = &m->promises[p];
	uint32_t first = promise->runs, end = promise[1].runs;
	if (!is_pool_kind(promise->kind) || (promise->kind != WEFT_KIND_WORK && !m->run_streams))
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

/* Finds the interval in which p waited for a thread of the pool, as far as the trace records it.  Returns false if p needs no
 * thread of the pool. */
static bool find_wait(const struct weft_model *m, uint32_t p, int64_t *start_ns, int64_t *end_ns)
{
	const struct weft_promise *promise = &m->promises[p];
	struct weft_run work;
	*start_ns = promise->start_ns;
	*end_ns = find_work(m, p, &work) ? work.start_ns : promise->end_ns;
	return is_pool_kind(promise->kind) && !(promise->flags & WEFT_PROMISE_START_UNKNOWN);
}

/* Gathers when requests take and release threads: all requests, or only name lookups, because libuv uses at most half of its
 * threads for name lookups. */
static bool gather_steps(struct pool *pool, bool only_names)
{
	const struct weft_model *m = pool->finder->model;
	pool->steps.count = 0;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(pool->finder, p, m->promise_count); p++) {
		struct weft_run work;
		const uint16_t kind = pool->finder->types.kinds[p];
		if (!is_pool_kind(kind) || (only_names && kind != WEFT_KIND_GETADDRINFO) || !find_work(m, p, &work))
			continue;
		struct pool_step *begin = weft_vec_push(&pool->steps);
		if (begin)
			*begin = (struct pool_step){work.start_ns, 1, weft_part_of(m, p)};
		struct pool_step *end = weft_vec_push(&pool->steps);
		if (!begin || !end)
			return false;
		*end = (struct pool_step){work.end_ns, -1, weft_part_of(m, p)};
	}
	weft_sort(pool->steps.items, pool->steps.count, sizeof *pool->steps.items, compare_steps);
	return true;
}

/* Finds the intervals in which a process ran the largest number of computations that it ever ran at once. */
static bool gather_intervals(struct pool *pool, size_t begin, size_t limit, bool only_names)
{
	int now = 0, size = 0;
	for (size_t i = begin; i < limit; i++) {
		now += pool->steps.items[i].change;
		size = now > size ? now : size;
	}
	for (size_t i = begin; i < limit; i++) {
		const struct pool_step *s = &pool->steps.items[i];
		struct full_interval *last = pool->intervals.count ? &pool->intervals.items[pool->intervals.count - 1] : NULL;
		now += s->change;
		if (now != size)
			continue;
		int64_t end_ns = s[1].time_ns; /* end_ns is moved if a later step ends the interval */
		if (last && last->part == s->part && last->is_names == only_names &&
		    s->time_ns - last->end_ns <= (last->end_ns - last->start_ns) / BREAK_DIVISOR) {
			last->end_ns = end_ns;
			continue;
		}
		struct full_interval *added = weft_vec_push(&pool->intervals);
		if (!added)
			return false;
		*added = (struct full_interval){.start_ns = s->time_ns,
		    .end_ns = end_ns,
		    .holder = WEFT_NONE,
		    .victim = WEFT_NONE,
		    .lock = WEFT_NONE,
		    .size = size,
		    .is_names = only_names,
		    .part = s->part};
	}
	return true;
}

static bool gather_all_intervals(struct pool *pool, bool only_names)
{
	bool ok = gather_steps(pool, only_names);
	for (size_t begin = 0, end; ok && begin < pool->steps.count; begin = end) {
		for (end = begin; end < pool->steps.count && pool->steps.items[end].part == pool->steps.items[begin].part; end++)
			;
		ok = gather_intervals(pool, begin, end, only_names);
	}
	return ok;
}

/* Returns whether two computations belong to one batch.  A loop that the compiler unrolled creates the computations of a batch
 * at several places of one function. */
static bool is_of_batch(const struct weft__finder *f, uint32_t p, uint32_t holder)
{
	char location[WEFT_NAME_BYTES], holder_location[WEFT_NAME_BYTES];
	if (f->types.of[p] == f->types.of[holder])
		return true;
	return f->model->promises[p].kind == WEFT_KIND_WORK &&
	       !strcmp(weft_name_site(f->model, p, location), weft_name_site(f->model, holder, holder_location)) && *location;
}

/* Notes whether a promise that holds a thread of the pool waited for a lock, condition or semaphore for at least half of the
 * interval, so that it did not compute. */
static void note_lock_wait(const struct weft__finder *f, struct full_interval *full_interval, uint32_t holder)
{
	const struct weft_model *m = f->model;
	for (uint32_t i = f->link_index.out_begin[holder]; i < f->link_index.out_begin[holder + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		if (link->kind != WEFT_LINK_AWAIT ||
		    !weft_kind_has(m->promises[link->to].kind, WEFT_TRAIT_LOCK | WEFT_TRAIT_CONDITION | WEFT_TRAIT_POOL))
			continue;
		const int64_t start_ns = link->time_ns > full_interval->start_ns ? link->time_ns : full_interval->start_ns;
		const int64_t over_ns = weft_model_await_end(m, link),
			      end_ns = over_ns < full_interval->end_ns ? over_ns : full_interval->end_ns;
		if (end_ns - start_ns < (full_interval->end_ns - full_interval->start_ns) / 2)
			continue;
		full_interval->lock = link->to;
		full_interval->locked++;
		return;
	}
}

/* Returns the promise that held a lock at a time; WEFT_NONE if it is unknown. */
static uint32_t find_holder(const struct weft__finder *f, uint32_t lock, int64_t time_ns)
{
	const struct weft_model *m = f->model;
	uint32_t holder = WEFT_NONE;
	for (uint32_t i = f->link_index.out_begin[lock]; i < f->link_index.out_begin[lock + 1]; i++) {
		const struct weft_link *link = &m->links[f->link_index.out[i]];
		if (link->kind == WEFT_LINK_AWAIT && link->time_ns <= time_ns && weft_model_await_end(m, link) > time_ns)
			holder = link->to;
	}
	return holder;
}

/* Returns the shortest wait that is worth a report.  Programs look up many names at once, so that name lookups always wait for
 * each other a little. */
static int64_t get_least_wait_ns(const struct weft__finder *f, const struct full_interval *full_interval)
{
	return (full_interval->is_names ? MIN_NAME_STALLS : MIN_WAIT_STALLS) * f->options.stall_ns;
}

static void find_victims(struct pool *pool, struct full_interval *full_interval)
{
	struct weft__finder *f = pool->finder;
	const struct weft_model *m = f->model;
	for (uint32_t p = 1; p < m->promise_count && weft__finding_may_continue(f, p, m->promise_count); p++) {
		int64_t start_ns, end_ns;
		if (weft_part_of(m, p) != full_interval->part)
			continue;
		if (full_interval->is_names && m->promises[p].kind != WEFT_KIND_GETADDRINFO)
			continue;
		struct weft_run work;
		const bool has_worked = find_work(m, p, &work);
		if (has_worked && work.start_ns < full_interval->end_ns && work.end_ns > full_interval->start_ns &&
		    full_interval->holder == WEFT_NONE)
			full_interval->holder = p;
		if (has_worked && work.start_ns <= full_interval->start_ns && work.end_ns > full_interval->start_ns) {
			note_lock_wait(f, full_interval, p);
			if (full_interval->holder_count < WEFT__MAX_LINES)
				full_interval->holders[full_interval->holder_count++] = p;
		}
		if (!find_wait(m, p, &start_ns, &end_ns) || start_ns > full_interval->end_ns || end_ns < full_interval->start_ns)
			continue;
		int64_t in_ns = (end_ns < full_interval->end_ns ? end_ns : full_interval->end_ns) -
				(start_ns > full_interval->start_ns ? start_ns : full_interval->start_ns);
		if (in_ns < get_least_wait_ns(f, full_interval) || in_ns < (end_ns - start_ns) / 10 * 8)
			continue;
		/* An idle thread of the pool takes a waiting computation at once, so a computation that waited proves that all
		 * threads were busy. */
		full_interval->is_proved |=
		    has_worked || (m->promises[p].kind == WEFT_KIND_WORK && in_ns >= MIN_UNKNOWN_STALLS * f->options.stall_ns);
		if (full_interval->holder != WEFT_NONE && is_of_batch(f, p, full_interval->holder))
			continue;
		full_interval->victims++;
		full_interval->waited_ns += in_ns;
		if (in_ns > full_interval->longest_ns) {
			full_interval->longest_ns = in_ns;
			full_interval->victim = p;
		}
	}
}

static void report_locked(struct weft__finder *f, struct weft_finding *finding, const struct full_interval *full_interval)
{
	const char *lock = weft__format_promise(f, full_interval->lock), *holder = "",
		   *at = weft__format_site_suffix(f, full_interval->lock),
		   *waiters = full_interval->size == 1
				  ? "its only thread waits"
				  : weft__finding_text(f, "%" PRIu32 " of %d wait", full_interval->locked, full_interval->size);
	const uint32_t by = find_holder(f, full_interval->lock, (full_interval->start_ns + full_interval->end_ns) / 2);
	if (by != WEFT_NONE)
		holder = weft__finding_text(f, ", held by %s", weft__format_promise_id(f, by));
	if (by != WEFT_NONE && *weft__format_site(f, by))
		at = weft__format_site_suffix(f, by);
	finding->root = full_interval->lock;
	finding->title = weft__finding_text(f, "%s waited %s for a thread of the pool: %s for %s%s%s",
	    weft__format_promise(f, full_interval->victim), weft__format_duration(f, full_interval->longest_ns), waiters, lock,
	    holder, at);
	const char *site = weft__format_site(f, full_interval->lock);
	if (*site)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full_interval->start_ns, full_interval->lock,
		    "a thread of the pool waits for %s at %s", lock, site);
	if (!weft_kind_has(f->model->promises[full_interval->lock].kind, WEFT_TRAIT_LOCK))
		finding->next = weft__finding_text(f,
		    "do not let a thread of the pool wait for a result that other work of the pool produces%s, or enlarge the "
		    "pool with "
		    "UV_THREADPOOL_SIZE",
		    weft__format_site_suffix(f, full_interval->lock));
	else
		finding->next = weft__finding_text(f, "hold %s%s for less time, or take no lock in work that runs on the pool",
		    lock, weft__format_site_suffix(f, full_interval->lock));
}

/* Reports requests that hold the threads of the pool because they wait for something: for a name server, or for the other end
 * of a FIFO. */
static void report_blocked(struct weft__finder *f, struct weft_finding *finding, const struct full_interval *full_interval)
{
	const char *holder = weft__format_promise(f, full_interval->holder);
	finding->title = weft__finding_text(f, "%s waited %s for a thread of the pool: all %d%s run %s and others%s",
	    weft__format_promise(f, full_interval->victim), weft__format_duration(f, full_interval->longest_ns),
	    full_interval->size, full_interval->is_names ? " for names" : "", holder,
	    weft__format_site_suffix(f, full_interval->holder));
	finding->next =
	    full_interval->is_names
		? weft__finding_text(f, "find out why %s takes so long, or look up names without the pool", holder)
		: weft__finding_text(f, "find out why %s takes so long, or enlarge the pool with UV_THREADPOOL_SIZE", holder);
}

/* Returns whether the threads of the pool got hardly any CPU in the interval, or whether the trace is too incomplete to tell.
 * If so, a busy machine may be the cause instead of the computations. */
static bool are_starved(const struct weft__finder *f, const struct full_interval *full_interval)
{
	const struct weft_model *m = f->model;
	const uint16_t own = m->promises[full_interval->victim].stream;
	const int64_t length_ns = full_interval->end_ns - full_interval->start_ns;
	int64_t on_cpu_ns = 0, asked_ns = 0;
	for (size_t i = WEFT_FIND_FIRST(r, 0, m->round_count, m->rounds[r].end_ns > full_interval->start_ns); i < m->round_count;
	     i++) {
		const struct weft_round *r = &m->rounds[i];
		const int64_t in_ns =
		    weft_min_ns(r->end_ns, full_interval->end_ns) - weft_max_ns(r->start_ns, full_interval->start_ns);
		if (r->stream == own || in_ns <= 0)
			continue;
		on_cpu_ns += weft_min_ns(r->on_cpu_ns, in_ns);
		asked_ns += in_ns;
	}
	const struct weft__completeness *of = weft__completeness_of(f->completeness, m, full_interval->victim);
	const bool is_part = of->end_missing || of->lost || of->wrapped;
	const bool is_known = asked_ns >= length_ns / 2 * full_interval->size;
	return m->round_count > 0 &&
	       on_cpu_ns <
		   weft_min_ns(length_ns / STARVED_DIVISOR, COMPUTED_STALLS * f->options.stall_ns) * full_interval->size &&
	       (is_known || (is_part && length_ns < MIN_UNKNOWN_STALLS * f->options.stall_ns));
}

/* Returns the sleep in which the thread of the holder spent most of the interval, in a call whose name is known; NULL if it
 * computed, or slept elsewhere. */
static const struct weft_interval *find_call(const struct weft__finder *f, const struct full_interval *full_interval)
{
	const struct weft_model *m = f->model;
	const uint32_t run = weft_run_before(m, full_interval->holder, full_interval->end_ns);
	for (size_t i = m->sleep_count; i-- > 0 && run != WEFT_NONE && m->run_streams;) {
		const struct weft_interval *sleep = &m->sleeps[i];
		const int64_t in_ns =
		    weft_min_ns(sleep->end_ns, full_interval->end_ns) - weft_max_ns(sleep->start_ns, full_interval->start_ns);
		if (sleep->stream == m->run_streams[run] && in_ns > (full_interval->end_ns - full_interval->start_ns) / 2)
			return weft_model_call(m, sleep) == WEFT_NONE ? NULL : sleep;
	}
	return NULL;
}

/* Reports work that holds the threads of the pool because it is in a call that blocks. */
static void report_in_call(struct weft__finder *f, struct weft_finding *finding, const struct full_interval *full_interval,
    const struct weft_interval *sleep)
{
	const struct weft_model *m = f->model;
	const char *call = weft__format_text(f, weft_model_call(m, sleep)),
		   *place = weft__format_place(f, weft_model_place(m, sleep)),
		   *at = *place ? weft__finding_text(f, " (%s)", place + sizeof " at")
				: weft__format_site_suffix(f, full_interval->holder);
	finding->title = weft__finding_text(f, "%s waited %s for a thread of the pool: %s is in %s%s",
	    weft__format_promise(f, full_interval->victim), weft__format_duration(f, full_interval->longest_ns),
	    full_interval->size == 1 ? "its only thread" : weft__finding_text(f, "each of the %d threads", full_interval->size),
	    call, at);
	finding->next = weft__finding_text(
	    f, "let no work of the pool wait in %s for long: use a thread of its own, or the event loop%s", call, at);
}

/* Returns whether the trace shows that the pool has no more threads: the process has no other thread except that of the
 * victim. */
static bool has_no_other_thread(const struct weft__finder *f, const struct full_interval *full_interval)
{
	const struct weft_model *m = f->model;
	int threads = 0;
	for (uint32_t p = 1; p < m->promise_count; p++)
		threads += weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) && weft_part_of(m, p) == full_interval->part &&
			   f->link_index.ended_ns[p] > full_interval->start_ns;
	return threads > 0 && threads <= full_interval->size + 1;
}

static void report_exhausted(struct pool *pool, const struct full_interval *full_interval)
{
	struct weft__finder *f = pool->finder;
	const struct weft_promise *promises = f->model->promises;
	uint32_t p = full_interval->victim;
	/* The pool hangs if all of its threads wait and still wait at the end of the trace. */
	const bool is_hang = full_interval->locked == (uint32_t)full_interval->size &&
			     full_interval->end_ns >= weft_model_until(f->model, full_interval->holder) &&
			     full_interval->longest_ns >= MIN_UNKNOWN_STALLS * f->options.stall_ns;
	struct weft_finding *finding = weft__finding_begin(
	    f, is_hang ? WEFT_FINDING_HANG : WEFT_FINDING_EXHAUSTED, p, promises[p].start_ns, full_interval->end_ns);
	if (!finding)
		return;
	const char *name = weft__format_promise(f, p), *holder_at = weft__format_site_suffix(f, full_interval->holder);
	finding->root = full_interval->holder;
	finding->weight = (uint64_t)full_interval->waited_ns;
	const bool computes = promises[full_interval->holder].kind == WEFT_KIND_WORK;
	const struct weft_interval *call = full_interval->lock == WEFT_NONE && computes ? find_call(f, full_interval) : NULL;
	if (full_interval->lock == WEFT_NONE && !computes) {
		report_blocked(f, finding, full_interval);
	} else if (call) {
		report_in_call(f, finding, full_interval, call);
	} else if (full_interval->lock == WEFT_NONE) {
		finding->title = weft__finding_text(f, "%s waited %s for a thread of the pool: all %d threads compute%s", name,
		    weft__format_duration(f, full_interval->longest_ns), full_interval->size, holder_at);
		finding->next = weft__finding_text(f,
		    "cut the computations into smaller pieces, run them on threads of their own, or enlarge the pool with "
		    "UV_THREADPOOL_SIZE%s",
		    holder_at);
	} else {
		report_locked(f, finding, full_interval);
	}
	const char *busy =
	    full_interval->size == 1
		? "the only thread of the pool is busy with"
		: weft__finding_text(f, "each of the %d threads of the pool is busy, one with", full_interval->size);
	weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full_interval->start_ns, full_interval->holder, "%s %s%s", busy,
	    weft__format_promise(f, full_interval->holder), holder_at);
	for (uint32_t i = 0; i < full_interval->holder_count; i++)
		if (full_interval->holders[i] != full_interval->holder)
			weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full_interval->start_ns, full_interval->holders[i],
			    "%s%s keeps another thread busy", weft__format_promise(f, full_interval->holders[i]),
			    weft__format_site_suffix(f, full_interval->holders[i]));
	const char *length = weft__format_duration(f, full_interval->end_ns - full_interval->start_ns);
	if (full_interval->end_ns >= weft_model_until(f->model, full_interval->holder))
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, full_interval->end_ns, WEFT_NONE,
		    "no thread of the pool becomes free before the end of the trace, %s later", length);
	else
		weft__finding_evidence(
		    f, WEFT_EVIDENCE_CAUSE, full_interval->end_ns, WEFT_NONE, "one of the threads becomes free %s later", length);
	weft__finding_evidence(f, WEFT_EVIDENCE_VICTIM, promises[p].start_ns, p, "%s%s waits for %s", name,
	    weft__format_site_suffix(f, p), weft__format_duration(f, full_interval->longest_ns));
	if (full_interval->victims > 1)
		weft__evidence_add_more(f, WEFT_EVIDENCE_VICTIM, full_interval->victims - 1, "");
	if (full_interval->lock == WEFT_NONE && computes && !call && are_starved(f, full_interval)) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(
		    f, "the threads of the pool got hardly any CPU during the wait, or the trace does not record how much");
	}
	/* A look-up of a name or a request for a file takes long on a busy machine too. */
	if (full_interval->lock == WEFT_NONE && !computes &&
	    full_interval->end_ns - full_interval->start_ns < BLOCKED_STALLS * f->options.stall_ns) {
		finding->severity = WEFT_SEVERITY_INFORMATION;
		weft__finding_doubt(f, "the trace does not record whether the threads of the pool waited for a CPU or a disk");
	}
	for (size_t i = 0, own = f->findings.count - 1; i < own; i++)
		if (f->findings.items[i].kind == WEFT_FINDING_HANG && f->findings.items[i].promise == p)
			weft__finding_cover(f, i, own);
	if (!full_interval->is_proved && !has_no_other_thread(f, full_interval))
		weft__finding_doubt(f, "the trace does not record whether the pool has more threads");
}

static int get_default_size(const struct full_interval *full_interval)
{
	return full_interval->is_names ? DEFAULT_POOL_SIZE / 2 : DEFAULT_POOL_SIZE;
}

void weft__find_exhausted(struct weft__finder *f)
{
	/* only the first intervals are examined, because a pool that is always too small fills up again and again */
	enum { MAX_SCANNED = 16 };
	struct pool pool = {.finder = f};
	weft__slot_queue_find(f);
	if (!weft__promise_types_have(&f->types, WEFT_KIND_WORK) && !weft__promise_types_have(&f->types, WEFT_KIND_FS) &&
	    !weft__promise_types_have(&f->types, WEFT_KIND_GETADDRINFO))
		return;
	f->no_memory |= !gather_all_intervals(&pool, false) || !gather_all_intervals(&pool, true);
	size_t looked = 0;
	for (size_t i = 0; !f->no_memory && i < pool.intervals.count && looked < MAX_SCANNED; i++) {
		struct full_interval *full_interval = &pool.intervals.items[i];
		if (full_interval->end_ns - full_interval->start_ns < get_least_wait_ns(f, full_interval))
			continue;
		looked++;
		find_victims(&pool, full_interval);
		if (full_interval->victims > 0 &&
		    (full_interval->is_proved || full_interval->size >= get_default_size(full_interval)))
			report_exhausted(&pool, full_interval);
	}
	weft_vec_free(&pool.steps);
	weft_vec_free(&pool.intervals);
}
