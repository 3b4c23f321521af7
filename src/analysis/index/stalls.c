/* stalls.c: lists the intervals in which a thread did not return to its event loop.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "analysis/index/delays.h"
#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"

/* An event loop, kept to find out whether one was running at a time. */
struct loop {
	int64_t start_ns, latest_end_ns; /* start of this loop; latest end of this loop and of the loops before it in the list */
	uint16_t stream;
};

struct stall_finder {
	const struct weft_model *m;
	int64_t least_ns;
	weft__stalls_vec *list;
	WEFT_VEC(struct loop) loops; /* by stream and start */
	int64_t *slept_ns;           /* by stream: start of its first sleep; INT64_MAX if it never slept */
	struct weft__cancel_token *cancel;
};

static int compare_stalls(const void *a, const void *b)
{
	const struct weft__stall *x = *(struct weft__stall *const *)a, *y = *(struct weft__stall *const *)b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?:
	       WEFT_ORDER(x->is_pause, y->is_pause) ?: WEFT_ORDER(x->promise, y->promise) ?: WEFT_ORDER(x->pause, y->pause);
}

static int compare_loops(const void *a, const void *b)
{
	const struct loop *x = a, *y = b;
	return WEFT_ORDER(x->stream, y->stream) ?: WEFT_ORDER(x->start_ns, y->start_ns) ?:
	       WEFT_ORDER(x->latest_end_ns, y->latest_end_ns);
}

static int64_t get_loop_end_ns(const struct weft_promise *p)
{
	return weft_has_ended(p) ? p->end_ns : INT64_MAX;
}

static bool find_loops(struct stall_finder *f)
{
	const struct weft_model *m = f->m;
	for (uint32_t p = 1; p < m->promise_count; p++) {
		if (!weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP))
			continue;
		struct loop *added = weft_vec_push(&f->loops);
		if (!added)
			return false;
		*added = (struct loop){m->promises[p].start_ns, get_loop_end_ns(&m->promises[p]), m->promises[p].stream};
	}
	weft_sort(f->loops.items, f->loops.count, sizeof *f->loops.items, compare_loops);
	for (size_t i = 1; i < f->loops.count; i++)
		if (f->loops.items[i].stream == f->loops.items[i - 1].stream)
			f->loops.items[i].latest_end_ns =
			    weft_max_ns(f->loops.items[i].latest_end_ns, f->loops.items[i - 1].latest_end_ns);
	return true;
}

/* Returns whether a loop of the stream ran during the whole interval. */
static bool has_loop(const struct stall_finder *f, uint16_t stream, int64_t start_ns, int64_t end_ns)
{
	const struct loop *loops = f->loops.items;
	const size_t i = WEFT_FIND_FIRST(
	    k, 0, f->loops.count, loops[k].stream > stream || (loops[k].stream == stream && loops[k].start_ns > start_ns));
	return i > 0 && loops[i - 1].stream == stream && loops[i - 1].latest_end_ns >= end_ns;
}

/* Returns whether the stream has loops, and the first of them begins later: the thread sets up the program, and nothing is late.
 */
static bool is_before_loops(const struct stall_finder *f, uint16_t stream, int64_t start_ns)
{
	const struct loop *loops = f->loops.items;
	const size_t first = WEFT_FIND_FIRST(k, 0, f->loops.count, loops[k].stream >= stream);
	return first < f->loops.count && loops[first].stream == stream && loops[first].start_ns > start_ns;
}

static bool add_stall(struct stall_finder *f, struct weft__stall stall)
{
	if (is_before_loops(f, stall.stream, stall.start_ns))
		return true;
	struct weft__stall *added = weft_vec_push(f->list);
	if (!added)
		return false;
	*added = stall;
	added->is_on_loop = has_loop(f, stall.stream, stall.start_ns, stall.end_ns);
	added->is_open = stall.end_ns >= weft_model_stream_until(f->m, stall.stream);
	return true;
}

static bool find_first_sleeps(struct stall_finder *f)
{
	const struct weft_model *m = f->m;
	f->slept_ns = malloc((m->trace->stream_count + 1) * sizeof *f->slept_ns);
	for (size_t s = 0; f->slept_ns && s < m->trace->stream_count; s++)
		f->slept_ns[s] = INT64_MAX;
	for (size_t i = m->sleep_count; f->slept_ns && i-- > 0;)
		if (m->sleeps[i].stream < m->trace->stream_count)
			f->slept_ns[m->sleeps[i].stream] = m->sleeps[i].start_ns;
	return f->slept_ns;
}

static bool find_long_runs(struct stall_finder *f)
{
	const struct weft_model *m = f->m;
	for (size_t r = 0; r < m->run_count; r++) {
		const struct weft_run *run = &m->runs[r];
		if (!weft__cancel_token_may_continue(f->cancel, r, m->run_count))
			return false;
		if (run->end_ns - run->start_ns < f->least_ns)
			continue;
		const uint32_t p = (uint32_t)WEFT_FIND_FIRST(i, 0, m->promise_count, m->promises[i + 1].runs > r);
		const uint16_t stream = m->run_streams ? m->run_streams[r] : m->promises[p].stream;
		/* The first sleep shows when a loop that weft does not know begins. */
		const bool is_setting_up = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_THREAD) &&
					   (stream >= m->trace->stream_count || f->slept_ns[stream] >= run->start_ns);
		if (p != WEFT_SYSTEM && !is_setting_up &&
		    !add_stall(f, (struct weft__stall){.start_ns = run->start_ns,
				      .end_ns = run->end_ns,
				      .promise = p,
				      .stream = stream,
				      .request = WEFT_NONE,
				      .pause = WEFT_NONE}))
			return false;
	}
	return true;
}

static bool find_long_pauses(struct stall_finder *f)
{
	const struct weft_model *m = f->m;
	for (size_t i = 0; i < m->pause_count; i++)
		if (m->pauses[i].end_ns - m->pauses[i].start_ns >= f->least_ns &&
		    !add_stall(f, (struct weft__stall){.start_ns = m->pauses[i].start_ns,
				      .end_ns = m->pauses[i].end_ns,
				      .is_pause = true,
				      .promise = WEFT_SYSTEM,
				      .pause = m->pauses[i].text,
				      .stream = m->pauses[i].stream,
				      .request = WEFT_NONE}))
			return false;
	return true;
}

/* Returns whether an external event called back a promise that is older than the interval: then the loop serves other promises
 * too. */
static bool serves_older(const struct weft_model *m, uint16_t stream, int64_t start_ns, int64_t end_ns)
{
	for (size_t l = weft_first_link_from(m, start_ns + 1); l < m->link_count && m->links[l].time_ns < end_ns; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->stream == stream && link->from == WEFT_SYSTEM && m->promises[link->to].start_ns < start_ns &&
		    (link->kind == WEFT_LINK_SIGNAL || link->kind == WEFT_LINK_RESOLVE))
			return true;
	}
	return false;
}

/* Returns a request that the promise made in a run and that had not ended when the next run began; WEFT_NONE if there is
 * none. */
static uint32_t find_request(const struct weft_model *m, uint32_t by, const struct weft_run *run, int64_t until_ns)
{
	enum { MAX_SCANNED = 4096 };
	/* Promises are numbered in the order of their creation, except promises that a state dump repeats. */
	const uint32_t first = (uint32_t)WEFT_FIND_FIRST(p, by + 1, m->promise_count, m->promises[p].start_ns >= run->start_ns);
	for (uint32_t q = first; q < m->promise_count && q - first < MAX_SCANNED; q++) {
		const struct weft_promise *request = &m->promises[q];
		if (request->created_by == by && weft_kind_has(request->kind, WEFT_TRAIT_REQUEST) &&
		    request->start_ns >= run->start_ns && request->start_ns <= run->end_ns &&
		    (!weft_has_ended(request) || request->end_ns >= until_ns))
			return q;
	}
	return WEFT_NONE;
}

static bool is_sleep(const struct weft_model *m, uint16_t stream, int64_t start_ns, int64_t end_ns)
{
	for (size_t i = weft_first_sleep_from(m, start_ns); i < m->sleep_count && m->sleeps[i].start_ns == start_ns; i++)
		if (m->sleeps[i].stream == stream && m->sleeps[i].end_ns == end_ns)
			return true;
	return false;
}

static uint16_t get_stream(const struct weft_model *m, uint32_t p, uint32_t run)
{
	return m->run_streams ? m->run_streams[run] : m->promises[p].stream;
}

/* Returns the next run of p on the same thread: p may run on other threads meanwhile.  Returns WEFT_NONE if none of the next
 * runs is on the same thread.
 */
static uint32_t find_next_run(const struct weft_model *m, uint32_t p, uint32_t run)
{
	enum { MAX_SCANNED = 64 };
	const uint32_t end = m->promises[p + 1].runs;
	for (uint32_t r = run + 1; r < end && r - run < MAX_SCANNED; r++)
		if (get_stream(m, p, r) == get_stream(m, p, run))
			return r;
	return WEFT_NONE;
}

/* Adds the stall of a callback that makes a request in one run and sleeps until it continues in the next run; returns false
 * when out of memory.
 */
static bool add_synchronous_call(struct stall_finder *f, uint32_t p, uint32_t r, uint32_t next)
{
	const struct weft_model *m = f->m;
	const struct weft_run *run = &m->runs[r], *then = &m->runs[next];
	const uint16_t stream = get_stream(m, p, r);
	if (then->start_ns - run->end_ns < f->least_ns || !is_sleep(m, stream, run->end_ns, then->start_ns))
		return true;
	const uint32_t request = find_request(m, p, run, then->start_ns);
	return request == WEFT_NONE || serves_older(m, stream, run->start_ns, then->end_ns) ||
	       add_stall(f, (struct weft__stall){.start_ns = run->start_ns,
				.end_ns = then->end_ns,
				.promise = p,
				.stream = stream,
				.request = request,
				.pause = WEFT_NONE});
}

/* Finds callbacks that make a request and sleep until its answer comes, in a loop of their own that serves nothing else: a
 * synchronous D-Bus call.  The thread of such a callback sleeps in the middle of the callback. */
static bool find_synchronous_calls(struct stall_finder *f)
{
	const struct weft_model *m = f->m;
	for (uint32_t p = 1; p < m->promise_count && f->loops.count > 0; p++) {
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP | WEFT_TRAIT_THREAD) ||
		    m->promises[p].kind == WEFT_KIND_WORK)
			continue;
		for (uint32_t r = m->promises[p].runs, next; r < m->promises[p + 1].runs; r++) {
			if (!weft__cancel_token_may_continue(f->cancel, r, m->run_count))
				return false;
			if ((next = find_next_run(m, p, r)) != WEFT_NONE && !add_synchronous_call(f, p, r, next))
				return false;
		}
	}
	return true;
}

/* Adds a stall to the list of stalls that do not overlap.  If several stalls overlap, keeps one of them: the first, or a pause
 * or synchronous call that lasts at least half as long.  A pause that overlaps a run gets the promise of the run. */
static bool add_apart(weft__stalls_vec *list, struct weft__stall s)
{
	struct weft__stall *before = list->count ? &list->items[list->count - 1] : NULL;
	const bool is_call = s.is_pause || s.request != WEFT_NONE;
	if (!before || before->stream != s.stream || s.start_ns >= before->end_ns) {
		struct weft__stall *added = weft_vec_push(list);
		if (!added)
			return false;
		*added = s;
	} else if (is_call && !before->is_pause && before->request == WEFT_NONE &&
		   s.end_ns - s.start_ns >= (before->end_ns - before->start_ns) / 2) {
		s.promise = s.is_pause ? before->promise : s.promise;
		*before = s;
	} else if (before->is_pause && !s.is_pause && before->promise == WEFT_SYSTEM) {
		before->promise = s.promise;
	}
	return true;
}

/* Orders the stalls by stream and time, and keeps one of several stalls that overlap.  Pointers are sorted, because a stall is
 * a large struct. */
static bool sort_apart(weft__stalls_vec *list)
{
	weft__stalls_vec apart = {0};
	struct weft__stall **order = malloc((list->count + 1) * sizeof *order);
	bool ok = order;
	for (size_t i = 0; ok && i < list->count; i++)
		order[i] = &list->items[i];
	if (ok)
		weft_sort(order, list->count, sizeof *order, compare_stalls);
	for (size_t i = 0; ok && i < list->count; i++)
		ok = add_apart(&apart, *order[i]);
	free(order);
	weft_vec_free(list);
	*list = apart;
	return ok;
}

int weft__stalls_find(weft__stalls_vec *out, const struct weft_model *m, int64_t least_ns, struct weft__cancel_token *cancel)
{
	struct stall_finder f = {.m = m, .least_ns = least_ns, .list = out, .cancel = cancel};
	const bool ok = find_loops(&f) && find_first_sleeps(&f) && find_long_runs(&f) && find_long_pauses(&f) &&
			find_synchronous_calls(&f) && sort_apart(out);
	weft_vec_free(&f.loops);
	free(f.slept_ns);
	return ok ? WEFT_OK : cancel && cancel->was_cancelled ? WEFT_ECANCELLED : WEFT_ENOMEM;
}

/* Returns an upper bound of the length of a stall: the longest run or pause, or the length of the trace if it has loops. */
static int64_t find_longest_ns(const struct weft_model *m)
{
	int64_t longest_ns = 0;
	for (size_t r = 0; r < m->run_count; r++)
		longest_ns = weft_max_ns(longest_ns, m->runs[r].end_ns - m->runs[r].start_ns);
	for (size_t i = 0; i < m->pause_count; i++)
		longest_ns = weft_max_ns(longest_ns, m->pauses[i].end_ns - m->pauses[i].start_ns);
	for (uint32_t p = 1; p < m->promise_count; p++)
		if (weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP))
			longest_ns = m->end_ns;
	return longest_ns;
}

int weft__stalls_find_longest(struct weft__stall *out, const struct weft_model *m)
{
	enum { STEP = 8 };
	bool has_loops = false, is_found = false;
	int status = WEFT_OK;
	for (uint32_t p = 1; p < m->promise_count && !has_loops; p++)
		has_loops = weft_kind_has(m->promises[p].kind, WEFT_TRAIT_LOOP);
	/* Most runs are short, so a list of all of them would be large. */
	for (int64_t least_ns = find_longest_ns(m) / STEP; !is_found && status == WEFT_OK; least_ns /= STEP) {
		weft__stalls_vec list = {0};
		status = weft__stalls_find(&list, m, least_ns > 0 ? least_ns : 1, NULL);
		for (size_t i = 0; i < list.count && status == WEFT_OK; i++) {
			const struct weft__stall *s = &list.items[i];
			if ((has_loops && !s->is_on_loop) || (is_found && s->end_ns - s->start_ns <= out->end_ns - out->start_ns))
				continue;
			is_found = true;
			*out = *s;
		}
		weft_vec_free(&list);
		if (least_ns <= 1)
			break;
	}
	return status < 0 ? status : is_found;
}
