/* account.c: computes what promises and threads spent their time on.
 *
 * The states of a promise are computed as a list of spans in which it ran or was ready; in the rest of its life it waited.  A
 * promise is ready from the end of an input, or from the time that weft__activation_find() finds, until it runs.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/account.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/index/activation.h"
#include "analysis/index/requests.h"
#include "base/duration.h"
#include "base/idmap.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/kernel.h"

enum { MAX_KEPT_SPANS = 2000000 };

/* An interval in which a promise ran or was ready. */
struct span {
	int64_t start_ns, end_ns;
	enum weft_step_kind state;
};

/* Position of one promise's spans in the array `kept`. */
struct kept {
	size_t begin, count;
};

struct weft_accounts {
	const struct weft_link_index *link_index;
	struct weft__activations activations;
	/* spans of the promise that is measured: those in which it ran, those in which it was ready, and both in order of
	 * time */
	WEFT_VEC(struct span) ran, ready, spans;
	WEFT_VEC(struct span) kept; /* spans of the promises on critical paths, kept for reuse */
	WEFT_VEC(struct kept) kept_of;
	struct weft_idmap kept_index; /* by promise: its index in kept_of */
	WEFT_VEC(struct weft_spent_time) list;
};

/* ---- Names ---- */

enum weft_step_kind weft_use_state(enum weft_use use)
{
#define USE_STATE(NAME, STATE, text) WEFT_STEP_##STATE,
	static const uint8_t states[] = {WEFT_USES(USE_STATE)};
#undef USE_STATE
	return (enum weft_step_kind)states[use];
}

const char *weft_use_text(enum weft_use use)
{
#define USE_TEXT(NAME, STATE, text) text,
	static const char *const texts[] = {WEFT_USES(USE_TEXT)};
#undef USE_TEXT
	return texts[use];
}

const char *weft_step_name(enum weft_step_kind kind)
{
	static const char *const names[] = {WEFT_STEPS(WEFT_LISTED_NAME)};
	return WEFT_NAME_OF(names, kind);
}

/* ---- States ---- */

static bool add_span(struct weft_accounts *a, bool has_run, int64_t start_ns, int64_t end_ns)
{
	if (start_ns >= end_ns)
		return true;
	struct span *added = has_run ? weft_vec_push(&a->ran) : weft_vec_push(&a->ready);
	if (added)
		*added = (struct span){start_ns, end_ns, has_run ? WEFT_STEP_RUNNING : WEFT_STEP_READY};
	return added;
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns);
}

/* Sorts spans and merges those that overlap or touch; returns the number of spans that are left. */
static size_t merge_spans(struct span *spans, size_t count)
{
	size_t kept_count = 0;
	if (count > 1)
		weft_sort(spans, count, sizeof *spans, compare_spans);
	for (size_t i = 0; i < count; i++)
		if (kept_count > 0 && spans[i].start_ns <= spans[kept_count - 1].end_ns)
			spans[kept_count - 1].end_ns = weft_max_ns(spans[kept_count - 1].end_ns, spans[i].end_ns);
		else
			spans[kept_count++] = spans[i];
	return kept_count;
}

static bool find_ran(struct weft_accounts *a, uint32_t p)
{
	const struct weft_model *m = a->link_index->model;
	for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++)
		if (!add_span(a, true, m->runs[r].start_ns, m->runs[r].end_ns))
			return false;
	a->ran.count = merge_spans(a->ran.items, a->ran.count);
	return true;
}

/* Returns whether the wait of promise p for its input ends when p itself ends: p resolved itself, or no other promise is known
 * to have resolved it.  If another promise resolved p, then p waited for that promise. */
static bool ends_by_itself(const struct weft_link_index *index, uint32_t p)
{
	const struct weft_promise *promise = &index->model->promises[p];
	const struct weft_link *by =
	    weft_has_ended(promise) ? weft__link_at(index, p, promise->end_ns, WEFT_LINK_RESOLVE, true) : NULL;
	const bool is_own = by && by->from == p;
	/* When a connection ends a read, other promises can run, but not the connection itself.  A promise that gathers results
	 * needs all of its inputs. */
	if (weft_kind_has(promise->kind, WEFT_TRAIT_CONNECTION))
		return false;
	if (weft_kind_has(promise->kind, WEFT_TRAIT_GATHERS))
		return is_own;
	return !by || is_own || by->from == WEFT_SYSTEM;
}

/* Returns the start of the promise's first run from a time on; INT64_MAX if there is none. */
static int64_t find_next_run(const struct weft_model *m, uint32_t p, int64_t time_ns)
{
	const uint32_t end = m->promises[p + 1].runs;
	const size_t next = WEFT_FIND_FIRST(r, m->promises[p].runs, end, m->runs[r].start_ns >= time_ns);
	return next < end ? m->runs[next].start_ns : INT64_MAX;
}

/* Adds the time from the end of an awaited promise to the next run of the waiting promise or, if earlier, to its end.
 * given_up_ns is the time from which the waiting promise awaits others instead. */
static bool add_ready_for_await(
    struct weft_accounts *a, uint32_t p, const struct weft_link *await, int64_t given_up_ns, bool ends_itself)
{
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	const int64_t ended_ns = index->ended_ns[await->to], from_ns = weft_max_ns(ended_ns, await->time_ns);
	if (ended_ns == WEFT_NEVER || from_ns >= given_up_ns || weft_model_await_end(m, await) < from_ns)
		return true;
	const int64_t next_ns = find_next_run(m, p, from_ns);
	const int64_t to_ns = next_ns != INT64_MAX ? next_ns : ends_itself ? weft_account_end_ns(m, p) : from_ns;
	return add_span(a, false, from_ns, to_ns);
}

/* Adds the times in which the promise was ready because an input had ended.  A promise that ran and then awaited another
 * promise has given up its earlier inputs, unless it gathers the results of all inputs. */
static bool find_ready_for_inputs(struct weft_accounts *a, uint32_t p)
{
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	const uint32_t begin = index->out_begin[p], end = index->out_begin[p + 1];
	const bool gathers = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_GATHERS);
	const bool ends_itself = begin < end && ends_by_itself(index, p);
	int64_t given_up_ns = INT64_MAX, group_ns = INT64_MAX;
	uint32_t group_run = WEFT_NONE - 1;
	for (uint32_t i = end; i-- > begin;) {
		const struct weft_link *link = &m->links[index->out[i]];
		if (link->kind == WEFT_LINK_AWAIT) {
			const uint32_t run = gathers ? WEFT_NONE : weft_run_before(m, p, link->time_ns);
			given_up_ns = run != group_run ? group_ns : given_up_ns;
			group_run = run;
			group_ns = gathers ? INT64_MAX : link->time_ns;
			if (!add_ready_for_await(a, p, link, given_up_ns, ends_itself))
				return false;
		}
	}
	int64_t read_ns = m->promises[p].start_ns;
	for (uint32_t i = begin; i < end; i++) {
		const struct weft_link *link = &m->links[index->out[i]];
		if (link->kind != WEFT_LINK_READ)
			continue;
		const uint32_t run = weft_run_before(m, p, link->time_ns);
		const int64_t ran_ns = run == WEFT_NONE ? read_ns : weft_max_ns(read_ns, m->runs[run].end_ns);
		if (index->ended_ns[link->to] < link->time_ns &&
		    !add_span(a, false, weft_max_ns(index->ended_ns[link->to], ran_ns), link->time_ns))
			return false;
		read_ns = weft_max_ns(read_ns, link->time_ns);
	}
	return true;
}

/* Adds the times in which the promise was ready for another reason: a signal, a message, its own end, or the end of code that
 * had interrupted it. */
static bool find_ready_for_runs(struct weft_accounts *a, uint32_t p)
{
	const struct weft_model *m = a->link_index->model;
	const bool is_called = !weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD | WEFT_TRAIT_CONNECTION);
	const size_t known = a->ready.count;
	for (size_t i = 0, at = 0; i < a->ran.count; i++) {
		const int64_t time_ns = a->ran.items[i].start_ns;
		const int64_t low_ns = i > 0 ? a->ran.items[i - 1].end_ns : m->promises[p].start_ns;
		while (at < known && a->ready.items[at].end_ns < time_ns)
			at++;
		if (time_ns <= low_ns || (at < known && a->ready.items[at].start_ns < time_ns))
			continue;
		const struct weft__activation why = weft__activation_find(&a->activations, p, time_ns, NULL);
		if ((why.cause == WEFT__ACTIVATED_AGAIN && !is_called) || a->activations.no_memory)
			continue;
		if (!add_span(a, false, weft_max_ns(why.ready_ns, low_ns), time_ns))
			return false;
	}
	a->ready.count = merge_spans(a->ready.items, a->ready.count);
	return !a->activations.no_memory;
}

static bool push_span(struct weft_accounts *a, struct span span)
{
	struct span *added = span.start_ns < span.end_ns ? weft_vec_push(&a->spans) : NULL;
	if (added)
		*added = span;
	return added || span.start_ns >= span.end_ns;
}

/* Fills a->spans from a->ran and a->ready: where both overlap, the promise counts as running. */
static bool join_spans(struct weft_accounts *a)
{
	const struct span *ran = a->ran.items;
	size_t next = 0;
	bool ok = true;
	for (size_t i = 0; ok && i < a->ready.count; i++) {
		struct span ready = a->ready.items[i];
		for (; ok && next < a->ran.count && ran[next].start_ns < ready.end_ns; next++) {
			const int64_t until_ns = weft_min_ns(ran[next].start_ns, ready.end_ns);
			ok = push_span(a, (struct span){ready.start_ns, until_ns, WEFT_STEP_READY}) && push_span(a, ran[next]);
			ready.start_ns = weft_max_ns(ready.start_ns, ran[next].end_ns);
		}
		ok = ok && push_span(a, ready);
	}
	for (; ok && next < a->ran.count; next++)
		ok = push_span(a, ran[next]);
	return ok;
}

/* Fills a->spans with the spans of a promise; returns false when out of memory. */
static bool find_spans(struct weft_accounts *a, uint32_t p)
{
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	a->ran.count = a->ready.count = a->spans.count = 0;
	if (p == WEFT_SYSTEM ||
	    (m->promises[p].runs == m->promises[p + 1].runs && index->out_begin[p] == index->out_begin[p + 1]))
		return true;
	if (!find_ran(a, p) || !find_ready_for_inputs(a, p))
		return false;
	a->ready.count = merge_spans(a->ready.items, a->ready.count);
	return find_ready_for_runs(a, p) && join_spans(a);
}

/* Sums the spans of a promise within an interval. */
static struct weft_state_times sum_up_spans(
    const struct weft_model *m, uint32_t p, const struct span *spans, size_t count, int64_t from_ns, int64_t to_ns)
{
	struct weft_state_times out = {0};
	size_t i = WEFT_FIND_FIRST(k, 0, count, spans[k].end_ns > from_ns);
	for (; i < count && spans[i].start_ns < to_ns; i++) {
		const int64_t ns = weft_min_ns(spans[i].end_ns, to_ns) - weft_max_ns(spans[i].start_ns, from_ns);
		*(spans[i].state == WEFT_STEP_RUNNING ? &out.running_ns : &out.ready_ns) += ns;
	}
	out.waiting_ns = weft_max_ns(0, to_ns - from_ns) - out.running_ns - out.ready_ns;
	if (m->kernel && out.running_ns > 0)
		out.off_ns = weft_min_ns(weft_kernel_promise_off_ns(m, p, from_ns, to_ns), out.running_ns);
	return out;
}

/* Sets *spans to the spans of a promise and returns their number.  The spans stay valid until the next call. */
static size_t get_spans(struct weft_accounts *a, uint32_t p, const struct span **spans)
{
	uint32_t number = weft_idmap_get(&a->kept_index, p);
	if (number == WEFT_IDMAP_NONE) {
		if (a->kept.count > MAX_KEPT_SPANS) {
			a->kept.count = a->kept_of.count = 0;
			weft_idmap_finish(&a->kept_index);
			a->kept_index = (struct weft_idmap){0};
		}
		struct kept *added = find_spans(a, p) ? weft_vec_push(&a->kept_of) : NULL;
		number = (uint32_t)a->kept_of.count - 1;
		if (!added || !weft_vec_reserve(&a->kept, a->spans.count + 1) || !weft_idmap_set(&a->kept_index, p, number)) {
			a->kept_of.count -= added != NULL;
			a->activations.no_memory = true;
			return 0;
		}
		*added = (struct kept){a->kept.count, a->spans.count};
		if (a->spans.count > 0)
			memcpy(a->kept.items + a->kept.count, a->spans.items, a->spans.count * sizeof *a->spans.items);
		a->kept.count += a->spans.count;
	}
	const struct kept *kept = &a->kept_of.items[number];
	*spans = a->kept.items + kept->begin;
	return kept->count;
}

bool weft_account_measure_between(
    struct weft_accounts *a, uint32_t p, int64_t from_ns, int64_t to_ns, struct weft_state_times *out)
{
	const struct weft_promise *promise = &a->link_index->model->promises[p];
	const struct span *spans = NULL;
	const size_t count = get_spans(a, p, &spans);
	*out = sum_up_spans(a->link_index->model, p, spans, count, weft_max_ns(from_ns, promise->start_ns),
	    weft_min_ns(to_ns, weft_account_end_ns(a->link_index->model, p)));
	return !a->activations.no_memory;
}

bool weft_account_measure(struct weft_accounts *a, uint32_t p, struct weft_state_times *out)
{
	const struct weft_model *m = a->link_index->model;
	if (!find_spans(a, p))
		return false;
	*out = sum_up_spans(m, p, a->spans.items, a->spans.count, m->promises[p].start_ns, weft_account_end_ns(m, p));
	return true;
}

enum weft_step_kind weft_account_state_before(struct weft_accounts *a, uint32_t p, int64_t time_ns, int64_t *since_ns)
{
	const struct span *spans = NULL;
	const size_t count = get_spans(a, p, &spans);
	const size_t at = WEFT_FIND_FIRST(i, 0, count, spans[i].end_ns >= time_ns);
	if (at < count && spans[at].start_ns < time_ns) {
		*since_ns = spans[at].start_ns;
		return spans[at].state;
	}
	*since_ns = at > 0 ? spans[at - 1].end_ns : INT64_MIN;
	return WEFT_STEP_WAITING;
}

struct weft__activations *weft__account_activations(struct weft_accounts *a)
{
	return &a->activations;
}

bool weft_accounts_failed(const struct weft_accounts *a)
{
	return a->activations.no_memory;
}

/* ---- Life ---- */

int64_t weft_account_ran_ns(const struct weft_model *m, uint32_t p)
{
	int64_t sum_ns = 0;
	for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++)
		if (__builtin_add_overflow(sum_ns, m->runs[r].end_ns - m->runs[r].start_ns, &sum_ns))
			return INT64_MAX;
	return sum_ns;
}

int64_t weft_account_end_ns(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	return promise->end == WEFT_END_PENDING ? weft_max_ns(weft_model_until(m, p), promise->start_ns) : promise->end_ns;
}

uint32_t weft_account_continuation(const struct weft_model *m, uint32_t p)
{
	const struct weft_promise *promise = &m->promises[p];
	const uint32_t into = promise->end == WEFT_END_BECAME ? promise->became : WEFT_NONE;
	const bool lives = into != WEFT_NONE && m->promises[into].start_ns <= promise->end_ns;
	return lives && weft_account_end_ns(m, into) > promise->end_ns ? into : WEFT_NONE;
}

bool weft_account_measure_life(struct weft_accounts *a, uint32_t p, struct weft_state_times *out)
{
	const struct weft_model *m = a->link_index->model;
	int64_t from_ns = INT64_MIN;
	*out = (struct weft_state_times){0};
	/* Each promise of the chain ends later than the promise before it, so the chain has no cycle. */
	for (uint32_t at = p; at != WEFT_NONE; at = weft_account_continuation(m, at)) {
		struct weft_state_times part;
		if (!weft_account_measure_between(a, at, from_ns, INT64_MAX, &part))
			return false;
		weft_state_times_add(out, &part);
		from_ns = weft_account_end_ns(m, at);
	}
	return true;
}

/* ---- Uses ---- */

static bool push_use(struct weft_accounts *a, enum weft_use use, uint32_t by, uint8_t call, int64_t start_ns, int64_t end_ns)
{
	struct weft_spent_time *last = a->list.count ? &a->list.items[a->list.count - 1] : NULL;
	if (start_ns >= end_ns)
		return true;
	if (last && last->use == use && last->by == by && last->call == call && last->end_ns == start_ns) {
		last->end_ns = end_ns;
		return true;
	}
	struct weft_spent_time *added = weft_vec_push(&a->list);
	if (added)
		*added = (struct weft_spent_time){start_ns, end_ns, by, (uint8_t)use, call};
	return added;
}

/* Lists the time in which a thread ran: it counts as on CPU unless the kernel's records say otherwise. */
static bool list_running(struct weft_accounts *a, uint16_t stream, uint32_t by, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = a->link_index->model;
	const struct weft_kernel *k = m->kernel;
	const uint32_t thread = k ? weft_kernel_of_stream(m, stream) : WEFT_NONE;
	if (thread == WEFT_NONE)
		return push_use(a, WEFT_USE_RAN, by, 0, from_ns, to_ns);
	const size_t end = k->threads[thread + 1].offs;
	size_t i = WEFT_FIND_FIRST(n, k->threads[thread].offs, end, k->offs[n].end_ns > from_ns);
	bool ok = true;
	for (; ok && i < end && k->offs[i].start_ns < to_ns; i++) {
		const struct weft_off_cpu *off = &k->offs[i];
		const int64_t start_ns = weft_max_ns(off->start_ns, from_ns), end_ns = weft_min_ns(off->end_ns, to_ns);
		const int64_t ready_ns =
		    off->why == WEFT_OFF_PREEMPTED ? start_ns : weft_min_ns(weft_max_ns(off->ready_ns, start_ns), end_ns);
		ok = push_use(a, WEFT_USE_RAN, by, 0, from_ns, start_ns) &&
		     push_use(a, WEFT_USE_BLOCKED, by, off->call, start_ns, ready_ns) &&
		     push_use(a, WEFT_USE_RUNNABLE, by, 0, ready_ns, end_ns);
		from_ns = end_ns;
	}
	return ok && push_use(a, WEFT_USE_RAN, by, 0, from_ns, to_ns);
}

/* Returns the stream on which p is running at a time, or starts to run at that time; WEFT_NONE if it is not running. */
static uint32_t get_run_stream(const struct weft_model *m, uint32_t p, int64_t time_ns)
{
	const uint32_t run = weft_run_before(m, p, time_ns + 1);
	if (run == WEFT_NONE || m->runs[run].end_ns < time_ns)
		return WEFT_NONE;
	return m->run_streams ? m->run_streams[run] : m->promises[p].stream;
}

/* Lists the time in which a thread slept or did something unknown. */
static bool list_asleep(struct weft_accounts *a, const struct weft__timeline *t, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	const struct weft_interval *sleeps = t->model->sleeps;
	bool ok = true;
	for (uint32_t i = weft__timeline_first_sleep(t, stream, from_ns);
	     ok && i < t->sleep_begin[stream + 1] && sleeps[t->sleeps[i]].start_ns < to_ns; i++) {
		const int64_t start_ns = weft_max_ns(sleeps[t->sleeps[i]].start_ns, from_ns),
			      end_ns = weft_min_ns(sleeps[t->sleeps[i]].end_ns, to_ns);
		ok = push_use(a, WEFT_USE_QUEUED, WEFT_NONE, 0, from_ns, start_ns) &&
		     push_use(a, WEFT_USE_ASLEEP, WEFT_NONE, 0, start_ns, end_ns);
		from_ns = weft_max_ns(from_ns, end_ns);
	}
	return ok && push_use(a, WEFT_USE_QUEUED, WEFT_NONE, 0, from_ns, to_ns);
}

/* Lists what the thread of p did while p was ready: the thread on which p runs next, or else the thread that created p. */
static bool list_ready(struct weft_accounts *a, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = a->link_index->model;
	const struct weft__timeline *t = weft__activations_timeline(&a->activations);
	const uint32_t next = get_run_stream(m, p, to_ns);
	const uint16_t stream = next == WEFT_NONE ? m->promises[p].stream : (uint16_t)next;
	if (!t)
		return false;
	bool ok = true;
	for (uint32_t i = weft__timeline_first_run(t, stream, from_ns); ok && i < t->run_begin[stream + 1]; i++) {
		const struct weft_run *run = &m->runs[t->runs[i].run];
		const int64_t start_ns = weft_max_ns(run->start_ns, from_ns), end_ns = weft_min_ns(run->end_ns, to_ns);
		if (run->start_ns >= to_ns)
			break;
		if (t->runs[i].promise == WEFT_SYSTEM || start_ns >= end_ns)
			continue;
		ok = list_asleep(a, t, stream, from_ns, start_ns) &&
		     push_use(a, WEFT_USE_BEHIND, t->runs[i].promise, 0, start_ns, end_ns);
		from_ns = end_ns;
	}
	return ok && list_asleep(a, t, stream, from_ns, to_ns);
}

/* Returns the promise for which p waits at a time: the promise that p awaited last, if it has not ended; *since_ns is the start
 * of that wait.  WEFT_NONE: unknown. */
static uint32_t find_awaited_at(const struct weft_accounts *a, uint32_t p, int64_t time_ns, int64_t *since_ns)
{
	enum { MAX_SCANNED = 64 };
	const struct weft_link_index *index = a->link_index;
	const struct weft_model *m = index->model;
	const uint32_t begin = index->out_begin[p];
	size_t i = WEFT_FIND_FIRST(n, begin, index->out_begin[p + 1], m->links[index->out[n]].time_ns >= time_ns);
	for (unsigned scanned = 0; i-- > begin && scanned < MAX_SCANNED; scanned++) {
		const struct weft_link *link = &m->links[index->out[i]];
		if (link->kind != WEFT_LINK_AWAIT || index->ended_ns[link->to] < time_ns ||
		    weft_model_await_end(m, link) < time_ns)
			continue;
		*since_ns = link->time_ns;
		return link->to;
	}
	return WEFT_NONE;
}

/* Returns the use of the time in which p waits for something that is not a promise; *by is its cause. */
static enum weft_use find_outside_use(const struct weft_accounts *a, uint32_t p, int64_t to_ns, uint32_t *by)
{
	const struct weft_model *m = a->link_index->model;
	const struct weft_promise *promise = &m->promises[p];
	const uint32_t pooled = promise->kind == WEFT_KIND_WORK ? get_run_stream(m, p, to_ns) : WEFT_NONE;
	*by = WEFT_NONE;
	if (promise->kind == WEFT_KIND_TIMER)
		return WEFT_USE_TIMER;
	if (pooled != WEFT_NONE && pooled != promise->stream)
		return WEFT_USE_POOL;
	const struct weft_request *request = weft__awaited_request(a->link_index, p, to_ns);
	if (request && request->is_question) {
		*by = request->connection;
		return WEFT_USE_PEER;
	}
	return weft_kind_has(promise->kind, WEFT_TRAIT_OUTSIDE) ? WEFT_USE_OUTSIDE : WEFT_USE_UNKNOWN;
}

/* Returns another promise that resolved p or handled p's message; WEFT_NONE if there is none. */
static uint32_t find_resolver(struct weft_accounts *a, uint32_t p)
{
	const uint32_t handler = weft__handler_of(&a->activations, p);
	const struct weft_promise *promise = &a->link_index->model->promises[p];
	const struct weft_link *by = handler == WEFT_NONE && weft_has_ended(promise)
					 ? weft__link_at(a->link_index, p, promise->end_ns, WEFT_LINK_RESOLVE, true)
					 : NULL;
	return handler != WEFT_NONE ? handler : by && by->from != WEFT_SYSTEM && by->from != p ? by->from : WEFT_NONE;
}

/* Lists what p waited for, first backwards from the end of the wait, and then puts the list in order of time. */
static bool list_waiting(struct weft_accounts *a, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	enum { MAX_STEPS = 64 };
	const struct weft_model *m = a->link_index->model;
	const uint32_t resolver = find_next_run(m, p, to_ns) == INT64_MAX ? find_resolver(a, p) : WEFT_NONE;
	int64_t since_ns = INT64_MAX, steps_ns[MAX_STEPS];
	uint32_t by[MAX_STEPS], count = 0;
	enum weft_use use = WEFT_USE_AWAITING, uses[MAX_STEPS];
	for (int64_t at_ns = to_ns; at_ns > from_ns && count < MAX_STEPS; at_ns = steps_ns[count++]) {
		by[count] = find_awaited_at(a, p, at_ns, &since_ns);
		use = WEFT_USE_AWAITING;
		if (by[count] == WEFT_NONE && resolver != WEFT_NONE && m->promises[resolver].start_ns < at_ns) {
			by[count] = resolver;
			since_ns = m->promises[resolver].start_ns;
		} else if (by[count] == WEFT_NONE) {
			use = find_outside_use(a, p, to_ns, &by[count]);
			since_ns = from_ns;
		}
		uses[count] = use;
		steps_ns[count] = count + 1 == MAX_STEPS ? from_ns : weft_max_ns(since_ns, from_ns);
	}
	bool ok = true;
	for (uint32_t i = count; ok && i-- > 0;)
		ok = push_use(a, uses[i], by[i], 0, steps_ns[i], i > 0 ? steps_ns[i - 1] : to_ns);
	return ok;
}

static bool list_state(struct weft_accounts *a, uint32_t p, enum weft_step_kind state, int64_t from_ns, int64_t to_ns)
{
	if (from_ns >= to_ns)
		return true;
	if (state == WEFT_STEP_READY)
		return list_ready(a, p, from_ns, to_ns);
	if (state == WEFT_STEP_WAITING)
		return list_waiting(a, p, from_ns, to_ns);
	const uint32_t stream = get_run_stream(a->link_index->model, p, from_ns);
	return list_running(
	    a, stream == WEFT_NONE ? a->link_index->model->promises[p].stream : (uint16_t)stream, WEFT_NONE, from_ns, to_ns);
}

bool weft_account_list(
    struct weft_accounts *a, uint32_t p, int64_t from_ns, int64_t to_ns, const struct weft_spent_time **list, size_t *count)
{
	const struct span *spans = NULL;
	const size_t span_count = get_spans(a, p, &spans);
	bool ok = !a->activations.no_memory;
	a->list.count = 0;
	for (size_t i = WEFT_FIND_FIRST(n, 0, span_count, spans[n].end_ns > from_ns);
	     ok && i < span_count && spans[i].start_ns < to_ns; i++) {
		const int64_t start_ns = weft_max_ns(spans[i].start_ns, from_ns), end_ns = weft_min_ns(spans[i].end_ns, to_ns);
		ok = list_state(a, p, WEFT_STEP_WAITING, from_ns, start_ns) && list_state(a, p, spans[i].state, start_ns, end_ns);
		from_ns = end_ns;
	}
	ok = ok && list_state(a, p, WEFT_STEP_WAITING, from_ns, to_ns);
	a->activations.no_memory |= !ok;
	*list = a->list.items;
	*count = a->list.count;
	return ok;
}

int64_t weft_account_asleep_ns(struct weft_accounts *a, uint32_t p, int64_t from_ns, int64_t to_ns)
{
	const struct weft_spent_time *list;
	size_t count;
	int64_t sum_ns = 0;
	if (a->link_index->model->sleep_count == 0 || !weft_account_list(a, p, from_ns, to_ns, &list, &count))
		return 0;
	for (size_t i = 0; i < count; i++)
		sum_ns += list[i].use == WEFT_USE_ASLEEP ? list[i].end_ns - list[i].start_ns : 0;
	return sum_ns;
}

/* ---- Threads ---- */

bool weft_account_list_thread(
    struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns, const struct weft_spent_time **list, size_t *count)
{
	const struct weft_model *m = a->link_index->model;
	const struct weft__timeline *t = weft__activations_timeline(&a->activations);
	bool ok = t;
	a->list.count = 0;
	for (uint32_t i = ok ? weft__timeline_first_run(t, stream, from_ns) : 0; ok && i < t->run_begin[stream + 1]; i++) {
		const struct weft_run *run = &m->runs[t->runs[i].run];
		const int64_t start_ns = weft_max_ns(run->start_ns, from_ns), end_ns = weft_min_ns(run->end_ns, to_ns);
		if (run->start_ns >= to_ns)
			break;
		if (t->runs[i].promise == WEFT_SYSTEM || start_ns >= end_ns)
			continue;
		ok =
		    list_asleep(a, t, stream, from_ns, start_ns) && list_running(a, stream, t->runs[i].promise, start_ns, end_ns);
		from_ns = end_ns;
	}
	ok = ok && list_asleep(a, t, stream, from_ns, to_ns);
	a->activations.no_memory |= !ok;
	*list = a->list.items;
	*count = a->list.count;
	return ok;
}

int64_t weft_account_slept_ns(struct weft_accounts *a, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	const struct weft__timeline *t = weft__activations_timeline(&a->activations);
	const struct weft_interval *sleeps = a->link_index->model->sleeps;
	int64_t sum_ns = 0;
	for (uint32_t i = t ? weft__timeline_first_sleep(t, stream, from_ns) : 0;
	     t && i < t->sleep_begin[stream + 1] && sleeps[t->sleeps[i]].start_ns < to_ns; i++) {
		const int64_t start_ns = weft_max_ns(sleeps[t->sleeps[i]].start_ns, from_ns),
			      end_ns = weft_min_ns(sleeps[t->sleeps[i]].end_ns, to_ns);
		sum_ns += weft_max_ns(end_ns - start_ns, 0);
		from_ns = weft_max_ns(from_ns, end_ns);
	}
	return sum_ns;
}

struct weft_runner weft_account_runner(struct weft_accounts *a, uint16_t stream, uint32_t except, int64_t from_ns, int64_t to_ns)
{
	const struct weft_model *m = a->link_index->model;
	const struct weft__timeline *t = weft__activations_timeline(&a->activations);
	struct weft_runner out = {.promise = WEFT_NONE};
	for (uint32_t i = t ? weft__timeline_first_run(t, stream, from_ns) : 0; t && i < t->run_begin[stream + 1]; i++) {
		const struct weft_run *run = &m->runs[t->runs[i].run];
		const uint32_t promise = t->runs[i].promise;
		if (run->start_ns >= to_ns)
			break;
		const int64_t ns = weft_min_ns(run->end_ns, to_ns) - weft_max_ns(run->start_ns, from_ns);
		if (promise == WEFT_SYSTEM || promise == except || ns <= 0)
			continue;
		out.sum_ns += ns;
		if (ns < out.ran_ns || (ns == out.ran_ns && promise >= out.promise))
			continue;
		out.promise = promise;
		out.ran_ns = ns;
	}
	return out;
}

/* ---- All ---- */

struct weft_accounts *weft_accounts_create(const struct weft_link_index *link_index)
{
	struct weft_accounts *a = calloc(1, sizeof *a);
	if (a) {
		a->link_index = link_index;
		a->activations.link_index = link_index;
	}
	return a;
}

void weft_accounts_destroy(struct weft_accounts *a)
{
	if (!a)
		return;
	weft__activations_finish(&a->activations);
	weft_vec_free(&a->ran);
	weft_vec_free(&a->ready);
	weft_vec_free(&a->spans);
	weft_vec_free(&a->kept);
	weft_vec_free(&a->kept_of);
	weft_idmap_finish(&a->kept_index);
	weft_vec_free(&a->list);
	free(a);
}
