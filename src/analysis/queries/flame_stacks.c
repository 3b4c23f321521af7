/* flame_stacks.c: computes stacks for flame graphs.  SPDX-License-Identifier: ISC */
#include "analysis/queries/flame_stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/index/account.h"
#include "analysis/index/label_patterns.h"
#include "analysis/index/memory.h"
#include "analysis/index/names.h"
#include "analysis/index/timeline.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "wire/profile.h"

enum { MAX_FRAMES = 64 };

/* Adds two times without overflow: in a damaged trace the total wait of many promises may exceed 292 years. */
static int64_t add_ns_saturated(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct weft_stacks_private {
	struct weft_intern names; /* texts of frames */
	WEFT_VEC(char *) owned;
	int64_t *times_ns; /* by promise */
};

/* Time for which a promise awaited a lock, a condition or a pool: promises of these kinds never end. */
struct shared_wait {
	int64_t start_ns, end_ns;
	uint32_t from, to;
};

struct folding {
	const struct weft_model *model;
	enum weft_folded_by by;
	struct weft_stacks *out;
	uint32_t *frame_of;        /* by promise */
	uint32_t *above;           /* by promise: the promise above it in its stack, or WEFT_NONE */
	uint32_t *stack_of;        /* by promise: its stack, or WEFT_NONE until it is known */
	uint32_t *chain;           /* the promises whose stacks are being computed */
	uint64_t *waits;           /* bit set by promise: whether it waits for another promise */
	struct weft_idmap numbers; /* number of the stack with a given frame below a given stack */
	WEFT_VEC(struct shared_wait) shared_waits;
	WEFT_VEC(struct weft_stack_sum) stacks;
};

/* ---- Frames ---- */

/* Writes the name of a promise's type, which is the text of its frame. */
static void name_frame(const struct weft_model *m, uint32_t promise, char out[WEFT_NAME_BYTES])
{
	const uint32_t text = weft_model_name_text(m, promise);
	const struct weft_promise *p = &m->promises[promise];
	char whole[WEFT_NAME_BYTES], location[WEFT_NAME_BYTES];
	if (promise == WEFT_SYSTEM) {
		snprintf(out, WEFT_NAME_BYTES, "the system");
	} else if (text != WEFT_NONE) {
		weft_name_text(m, text, whole, sizeof whole);
		weft__label_pattern(out, WEFT_NAME_BYTES, (struct weft_str){whole, (uint32_t)strlen(whole)});
	} else {
		const char *kind = weft_model_kind_name(m, p->kind);
		*location = 0;
		if (p->site != WEFT_NONE)
			weft_site_format(&m->trace->sites[p->site], location, sizeof location);
		snprintf(out, WEFT_NAME_BYTES, "%.60s%s%.120s", kind, *location ? " at " : "", location);
	}
	for (char *c = out; *c; c++)
		*c = *c == ';' ? ',' : *c;
	weft_utf8_sanitize(out);
}

static uint32_t intern_frame(struct weft_stacks_private *p, const char *name)
{
	const size_t known = p->names.texts.count;
	const uint32_t length = (uint32_t)strlen(name);
	char **slot = weft_vec_push(&p->owned), *copy = slot ? strdup(name) : NULL;
	if (slot)
		*slot = copy;
	const uint32_t number = copy ? weft_intern(&p->names, (struct weft_str){copy, length}) : WEFT_INTERN_FAILED;
	if (slot && (number < known || !copy)) {
		free(copy);
		p->owned.count--;
	}
	return number;
}

static bool find_frames(struct folding *f)
{
	const struct weft_model *m = f->model;
	char name[WEFT_NAME_BYTES];
	struct weft_idmap known = {0}; /* frames by label text, or by site and kind: most promises share a frame */
	bool done = true;
	for (uint32_t p = 0; p < m->promise_count && done; p++) {
		const uint32_t text = weft_model_name_text(m, p);
		const struct weft_promise *promise = &m->promises[p];
		const int64_t key = p == WEFT_SYSTEM ? -1
				    : text != WEFT_NONE
					? (int64_t)text
					: (int64_t)((uint64_t)promise->kind << 40 | UINT64_C(1) << 60 | promise->site);
		uint32_t frame = weft_idmap_get(&known, key);
		if (frame == WEFT_IDMAP_NONE) {
			name_frame(m, p, name);
			frame = intern_frame(f->out->priv, name);
			done = frame != WEFT_INTERN_FAILED && weft_idmap_set(&known, key, frame);
		}
		f->frame_of[p] = frame;
	}
	weft_idmap_finish(&known);
	return done;
}

/* ---- Stacks ---- */

static bool find_stack(struct folding *f, uint32_t above, uint32_t frame, uint32_t *out)
{
	const int64_t key = (int64_t)((uint64_t)above << 32 | frame);
	*out = weft_idmap_get(&f->numbers, key);
	if (*out != WEFT_IDMAP_NONE)
		return true;
	struct weft_stack_sum *slot = weft_vec_push(&f->stacks);
	if (!slot || !weft_idmap_set(&f->numbers, key, (uint32_t)f->stacks.count - 1))
		return false;
	*slot = (struct weft_stack_sum){.above = above, .depth = f->stacks.items[above].depth + 1, .frame = frame};
	*out = (uint32_t)f->stacks.count - 1;
	return true;
}

/* Finds the stack with a frame below another stack: an existing one if it has an equal frame, or that other stack itself if it
 * is too deep. */
static bool find_frame_stack(struct folding *f, uint32_t above, uint32_t frame, uint32_t *out)
{
	const struct weft_stack_sum *s = &f->stacks.items[above];
	*out = above;
	return s->frame == frame || s->depth >= MAX_FRAMES || find_stack(f, above, frame, out);
}

/* Sets the stack of each promise of a chain, starting at the first promise above that has a stack.  A chain of waits may be a
 * cycle, which is cut at the first promise that occurs twice. */
static bool find_promise_stack(struct folding *f, uint32_t promise)
{
	size_t count = 0;
	uint32_t p = promise, stack = 0;
	for (; p != WEFT_NONE && p != WEFT_SYSTEM && f->stack_of[p] == WEFT_NONE; p = f->above[p]) {
		f->stack_of[p] = 0;
		f->chain[count++] = p;
	}
	if (p != WEFT_NONE && p != WEFT_SYSTEM)
		stack = f->stack_of[p];
	while (count-- > 0) {
		p = f->chain[count];
		if (!find_frame_stack(f, stack, f->frame_of[p], &stack))
			return false;
		f->stack_of[p] = stack;
	}
	return true;
}

static void add_time(struct folding *f, uint32_t promise, uint32_t stack, int64_t ns)
{
	f->stacks.items[stack].own_ns = add_ns_saturated(f->stacks.items[stack].own_ns, ns);
	f->stacks.items[stack].promises++;
	f->out->of[promise] = stack;
}

static bool add_promise_time(struct folding *f, uint32_t promise, int64_t ns)
{
	uint32_t stack;
	if (promise == WEFT_SYSTEM) {
		if (!find_stack(f, 0, f->frame_of[WEFT_SYSTEM], &stack))
			return false;
	} else if (!find_promise_stack(f, promise)) {
		return false;
	} else {
		stack = f->stack_of[promise];
	}
	add_time(f, promise, stack, ns);
	return true;
}

int64_t weft_stack_time(const struct weft_stacks *stacks, uint32_t promise)
{
	return stacks->priv->times_ns[promise];
}

/* ---- Waits ---- */

static bool is_shared(const struct weft_model *m, uint32_t promise)
{
	return weft_kind_has(m->promises[promise].kind, WEFT_TRAIT_LOCK | WEFT_TRAIT_CONDITION | WEFT_TRAIT_POOL);
}

static bool is_waiting(const struct folding *f, uint32_t promise)
{
	return f->waits[promise / 64] >> promise % 64 & 1;
}

/* Returns whether the waiter stopped waiting before the awaited promise ended, as a lock stops waiting for the holder that has
 * released it. */
static bool was_given_up(const struct weft_link_index *index, const struct weft_link *link)
{
	return link->kind == WEFT_LINK_AWAIT && weft_model_await_end(index->model, link) < index->ended_ns[link->to];
}

static void put_below_waiter(struct folding *f, const struct weft_link *link)
{
	f->waits[link->from / 64] |= UINT64_C(1) << link->from % 64;
	if (f->above[link->to] == WEFT_NONE)
		f->above[link->to] = link->from;
}

/* Returns when a wait ended.  If no end is recorded and the waiter waits for one thing at a time, the wait ended at the
 * waiter's next run.  A callback may await a lock after its promise has ended. */
static int64_t find_wait_end(const struct weft_model *m, const struct weft_link *await)
{
	const uint32_t end = m->promises[await->from + 1].runs;
	const size_t next = WEFT_FIND_FIRST(r, m->promises[await->from].runs, end, m->runs[r].start_ns > await->time_ns);
	const int64_t given_up_ns = weft_model_await_end(m, await);
	const bool is_run = next < end && !weft_kind_has(m->promises[await->from].kind, WEFT_TRAIT_GATHERS);
	if (given_up_ns != INT64_MAX)
		return given_up_ns;
	return weft_min_ns(is_run ? m->runs[next].start_ns : INT64_MAX, weft_account_end_ns(m, await->from));
}

static bool add_shared_wait(struct folding *f, const struct weft_link *await)
{
	const int64_t end_ns = find_wait_end(f->model, await);
	struct shared_wait *added = await->time_ns < end_ns ? weft_vec_push(&f->shared_waits) : NULL;
	if (added)
		*added = (struct shared_wait){await->time_ns, end_ns, await->from, await->to};
	return added || await->time_ns >= end_ns;
}

/* Finds the waiter of each promise.  A wait for a lock or a condition is part of the waiter's time, and the holders of the lock
 * change meanwhile. Therefore only a lock that is held until the end stands below its waiter, and its holder below the lock. */
static bool find_waiters(struct folding *f, const struct weft_link_index *index)
{
	const struct weft_model *m = f->model;
	for (size_t i = 0; i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if ((link->kind != WEFT_LINK_AWAIT && link->kind != WEFT_LINK_READ) || link->from == link->to ||
		    is_shared(m, link->to))
			continue;
		if (!was_given_up(index, link))
			put_below_waiter(f, link);
		else if (!is_shared(m, link->from))
			f->waits[link->from / 64] |= UINT64_C(1) << link->from % 64;
	}
	bool ok = true;
	for (size_t i = 0; ok && i < m->link_count; i++) {
		const struct weft_link *link = &m->links[i];
		if (link->kind != WEFT_LINK_AWAIT || link->from == link->to || !is_shared(m, link->to))
			continue;
		if (!was_given_up(index, link) && is_waiting(f, link->to))
			put_below_waiter(f, link);
		else
			ok = add_shared_wait(f, link);
	}
	return ok;
}

/* Moves the time of each wait for a lock from the waiter to the lock. */
static bool move_shared_waits(struct folding *f, const struct weft_link_index *index)
{
	int64_t *times_ns = f->out->priv->times_ns;
	bool ok = true;
	for (size_t i = 0; ok && i < f->shared_waits.count; i++) {
		const struct shared_wait *wait = &f->shared_waits.items[i];
		struct weft_state_times times = {0};
		ok = wait->start_ns >= weft_account_end_ns(f->model, wait->from) ||
		     weft_account_measure_between(index->accounts, wait->from, wait->start_ns, wait->end_ns, &times);
		times_ns[wait->from] = weft_max_ns(0, times_ns[wait->from] - times.waiting_ns - times.ready_ns);
		times_ns[wait->to] = add_ns_saturated(times_ns[wait->to], wait->end_ns - wait->start_ns);
	}
	return ok;
}

/* Computes how long each promise did not run, without its waits for locks, and how long other promises waited for each lock. */
static bool measure_waits(struct folding *f, const struct weft_link_index *index)
{
	const struct weft_model *m = f->model;
	bool ok = find_waiters(f, index);
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		struct weft_state_times times = {0};
		ok = is_shared(m, p) || weft_account_measure(index->accounts, p, &times);
		f->out->priv->times_ns[p] = times.waiting_ns + times.ready_ns;
	}
	return ok && move_shared_waits(f, index);
}

/* Sets the time of each promise, and the promise above it: its waiter, or else its creator. */
static bool measure_promises(struct folding *f)
{
	const struct weft_model *m = f->model;
	struct weft_link_index link_index;
	bool ok = true;
	memset(f->above, 0xff, m->promise_count * sizeof *f->above);
	if (f->by == WEFT_FOLDED_BY_WAIT) {
		if (weft_link_index_init(&link_index, m, WEFT_LINK_INDEX_ALL, NULL) < 0)
			return false;
		ok = measure_waits(f, &link_index);
		weft_link_index_finish(&link_index);
	}
	for (uint32_t p = 0; ok && p < m->promise_count; p++) {
		f->above[p] = f->above[p] == WEFT_NONE ? m->promises[p].created_by : f->above[p];
		if (f->by != WEFT_FOLDED_BY_WAIT)
			f->out->priv->times_ns[p] = f->by == WEFT_FOLDED_BY_RUN ? weft_account_ran_ns(m, p) : 0;
	}
	return ok;
}

/* Adds the waits for locks, each below the stack of its waiter.  A lock is assigned to the last stack in which it is
 * awaited. */
static bool sum_up_shared_waits(struct folding *f)
{
	bool ok = true;
	for (size_t i = 0; ok && i < f->shared_waits.count; i++) {
		const struct shared_wait *wait = &f->shared_waits.items[i];
		uint32_t stack = 0;
		ok = find_promise_stack(f, wait->from);
		stack = ok && wait->from != WEFT_SYSTEM ? f->stack_of[wait->from] : 0;
		ok = ok && find_frame_stack(f, stack, f->frame_of[wait->to], &stack);
		if (ok)
			add_time(f, wait->to, stack, wait->end_ns - wait->start_ns);
	}
	return ok;
}

/* ---- Functions ---- */

/* Writes the name of a function without its line, so that all samples in the function share a frame. */
static void name_function(const struct weft_site *site, char out[WEFT_NAME_BYTES])
{
	struct weft_site function = *site;
	function.line = 0;
	weft_site_format(&function, out, WEFT_NAME_BYTES);
	for (char *c = out; *c; c++)
		*c = *c == ';' ? ',' : *c;
	weft_utf8_sanitize(out);
}

static bool is_recorder(const struct weft_site *site)
{
	static const char name[] = "libweft-";
	const struct weft_str module = weft_module_short_name(site->module);
	return module.len >= sizeof name - 1 && memcmp(module.ptr, name, sizeof name - 1) == 0;
}

/* Returns whether a function is at the start of every thread or every program, so that it tells nothing about a sample. */
static bool is_start(const struct weft_site *site)
{
	static const char *const names[] = {"_start", "__libc_start_", "clone", "start_thread"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (site->function.len >= strlen(names[i]) && memcmp(site->function.ptr, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Finds the stack that is the type of a promise. */
static bool find_type_stack(struct folding *f, uint32_t promise, uint32_t *out)
{
	const uint32_t frame =
	    promise == WEFT_NONE ? intern_frame(f->out->priv, "promises that are not in the trace") : f->frame_of[promise];
	return frame != WEFT_INTERN_FAILED && find_frame_stack(f, 0, frame, out);
}

/* Adds a stack sample below a promise; the sample stands for a number of ns or bytes. */
static bool add_sample(
    struct folding *f, uint32_t promise, const struct weft_profile_stack *frames, uint32_t innermost, int64_t ns)
{
	const struct weft_trace_info *info = f->model->trace;
	uint32_t sites[MAX_FRAMES], stack = 0;
	size_t depth = 0;
	char name[WEFT_NAME_BYTES];
	for (uint32_t at = innermost; at != WEFT_NO_STACK && depth < MAX_FRAMES; at = frames[at].caller)
		if (frames[at].site != WEFT_NO_SITE && !is_recorder(&info->sites[frames[at].site]))
			sites[depth++] = frames[at].site;
	while (depth > 1 && is_start(&info->sites[sites[depth - 1]]))
		depth--;
	bool ok = find_type_stack(f, promise, &stack);
	while (ok && depth-- > 0) {
		name_function(&info->sites[sites[depth]], name);
		const uint32_t frame = intern_frame(f->out->priv, name);
		ok = frame != WEFT_INTERN_FAILED && find_frame_stack(f, stack, frame, &stack);
	}
	if (!ok)
		return false;
	f->stacks.items[stack].own_ns = add_ns_saturated(f->stacks.items[stack].own_ns, ns);
	if (promise == WEFT_NONE)
		return true;
	f->stacks.items[stack].promises += f->out->of[promise] == WEFT_NONE;
	f->out->of[promise] = stack;
	f->out->priv->times_ns[promise] = add_ns_saturated(f->out->priv->times_ns[promise], ns);
	return true;
}

/* Adds all samples.  A sample taken while no promise ran is added below the system. */
static bool sum_up_samples(struct folding *f)
{
	const struct weft_model *m = f->model;
	struct weft__timeline timeline;
	bool ok = weft__timeline_init(&timeline, m);
	memset(f->out->of, 0xff, m->promise_count * sizeof *f->out->of);
	for (size_t i = 0; ok && i < m->sample_count; i++) {
		const struct weft_stack_sample *s = &m->samples[i];
		const uint32_t at = weft__timeline_first_run(&timeline, s->stream, s->time_ns);
		const bool is_running =
		    at < timeline.run_begin[s->stream + 1] && m->runs[timeline.runs[at].run].start_ns <= s->time_ns;
		/* A long run is sampled less and less often.  If all runs are sampled, each sample stands for the same time. */
		const bool is_same_run = m->trace->profile.way == WEFT_PROFILE_WAY_LONG && is_running && i > 0 &&
					 s[-1].stream == s->stream && s[-1].time_ns >= m->runs[timeline.runs[at].run].start_ns;
		ok = add_sample(f, is_running ? timeline.runs[at].promise : WEFT_SYSTEM, m->trace->profile.stacks, s->stack,
		    is_same_run ? s->time_ns - s[-1].time_ns : m->trace->profile.period_ns);
	}
	weft__timeline_finish(&timeline);
	return ok;
}

/* Adds all allocations, or those that were not freed. */
static bool sum_up_allocations(struct folding *f)
{
	const struct weft_model *m = f->model;
	bool ok = true;
	memset(f->out->of, 0xff, m->promise_count * sizeof *f->out->of);
	for (size_t i = 0; ok && i < m->allocation_count; i++) {
		const struct weft_promise_allocation *a = &m->allocations[i];
		if (f->by == WEFT_FOLDED_BY_ALLOCATED || a->freed_ns == INT64_MAX)
			ok = add_sample(f, a->promise, m->trace->memory.stacks, a->stack, a->bytes);
	}
	return ok;
}

static bool sum_up_promises(struct folding *f, bool with_system)
{
	const struct weft_model *m = f->model;
	bool done = true;
	f->out->of[WEFT_SYSTEM] = WEFT_NONE;
	for (uint32_t p = with_system ? WEFT_SYSTEM : WEFT_SYSTEM + 1; p < m->promise_count && done; p++) {
		const bool counts = f->by == WEFT_FOLDED_BY_RUN || (p != WEFT_SYSTEM && !is_waiting(f, p) && !is_shared(m, p) &&
								       m->promises[p].end != WEFT_END_BECAME);
		const int64_t ns = counts ? weft_stack_time(f->out, p) : 0;
		f->out->of[p] = WEFT_NONE;
		done = ns <= 0 || add_promise_time(f, p, ns);
	}
	return done && sum_up_shared_waits(f);
}

struct stack_position {
	uint32_t above, stack;
	int64_t sum_ns;
};

static int compare_stack_positions(const void *a, const void *b)
{
	const struct stack_position *x = a, *y = b;
	int by_above = WEFT_ORDER(x->above, y->above), by_sum = WEFT_ORDER(y->sum_ns, x->sum_ns);
	return by_above ? by_above : by_sum ? by_sum : WEFT_ORDER(x->stack, y->stack);
}

/* Orders the stacks as a tree, in which a stack has a higher number than the stack above it. */
static bool order_stacks(struct weft_stacks *s)
{
	struct stack_position *positions = malloc(s->count * sizeof *positions);
	if (!positions)
		return false;
	for (size_t i = s->count; i-- > 0;) {
		struct weft_stack_sum *stack = &s->stacks[i];
		stack->sum_ns = add_ns_saturated(stack->sum_ns, stack->own_ns);
		s->deepest = stack->depth > s->deepest ? stack->depth : s->deepest;
		positions[i] = (struct stack_position){stack->above, (uint32_t)i, stack->sum_ns};
		if (i > 0) {
			s->stacks[stack->above].sum_ns = add_ns_saturated(s->stacks[stack->above].sum_ns, stack->sum_ns);
			s->stacks[stack->above].promises += stack->promises;
		}
	}
	weft_sort(positions + 1, s->count - 1, sizeof *positions, compare_stack_positions);
	int64_t at_ns = 0;
	for (size_t i = 1; i < s->count; i++) {
		at_ns = i > 1 && positions[i].above == positions[i - 1].above ? at_ns : s->stacks[positions[i].above].start_ns;
		s->stacks[positions[i].stack].start_ns = at_ns;
		at_ns = add_ns_saturated(at_ns, positions[i].sum_ns);
	}
	s->stacks[0].above = WEFT_NONE;
	free(positions);
	return true;
}

int weft_stacks_create(
    struct weft_stacks **out, const struct weft_model *model, enum weft_folded_by by, bool with_system, struct weft_error *err)
{
	const size_t count = model->promise_count;
	struct weft_stacks *stacks = calloc(1, sizeof *stacks);
	struct folding f = {.model = model,
	    .by = by,
	    .out = stacks,
	    .frame_of = malloc((count + 1) * sizeof *f.frame_of),
	    .above = malloc((count + 1) * sizeof *f.above),
	    .stack_of = malloc((count + 1) * sizeof *f.stack_of),
	    .chain = malloc((count + 1) * sizeof *f.chain),
	    .waits = calloc(count / 64 + 1, sizeof *f.waits)};
	struct weft_stack_sum *first = weft_vec_push(&f.stacks);
	bool done = false;
	if (first)
		*first = (struct weft_stack_sum){.frame = WEFT_NONE};
	if (stacks) {
		stacks->priv = calloc(1, sizeof *stacks->priv);
		stacks->of = malloc((count + 1) * sizeof *stacks->of);
		if (stacks->priv)
			stacks->priv->times_ns = malloc((count + 1) * sizeof *stacks->priv->times_ns);
	}
	if (first && stacks && stacks->priv && stacks->priv->times_ns && stacks->of && f.frame_of && f.above && f.stack_of &&
	    f.chain && f.waits && find_frames(&f) && measure_promises(&f)) {
		memset(f.stack_of, 0xff, (count + 1) * sizeof *f.stack_of);
		done = by == WEFT_FOLDED_BY_FUNCTION ? sum_up_samples(&f)
		       : weft_folded_is_bytes(by)    ? sum_up_allocations(&f)
						     : sum_up_promises(&f, with_system);
	}
	if (stacks) {
		stacks->stacks = f.stacks.items;
		stacks->count = f.stacks.count;
		done = done && order_stacks(stacks);
	}
	weft_idmap_finish(&f.numbers);
	free(f.frame_of);
	free(f.above);
	free(f.stack_of);
	free(f.chain);
	free(f.waits);
	weft_vec_free(&f.shared_waits);
	if (done) {
		*out = stacks;
		return WEFT_OK;
	}
	if (!stacks)
		weft_vec_free(&f.stacks);
	weft_stacks_destroy(stacks);
	return weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
}

void weft_stacks_destroy(struct weft_stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->priv && i < s->priv->owned.count; i++)
		free(s->priv->owned.items[i]);
	if (s->priv) {
		weft_vec_free(&s->priv->owned);
		free(s->priv->times_ns);
		weft_intern_finish(&s->priv->names);
	}
	free(s->priv);
	free(s->of);
	free(s->stacks);
	free(s);
}

int weft_stacks_match(int64_t *out_ns, const struct weft_stacks *s, const struct weft_stacks *other, struct weft_error *err)
{
	struct weft_idmap by_frame = {0}; /* stack of `other` with a given frame below a given stack */
	uint32_t *match = malloc(s->count * sizeof *match);
	bool ok = match != NULL;
	for (uint32_t i = 1; ok && i < other->count; i++) {
		const struct weft_stack_sum *stack = &other->stacks[i];
		ok = weft_idmap_set(&by_frame, (int64_t)((uint64_t)stack->above << 32 | stack->frame), i);
	}
	for (uint32_t i = 0; ok && i < s->count; i++) {
		const struct weft_stack_sum *stack = &s->stacks[i];
		const uint32_t above = i ? match[stack->above] : WEFT_NONE;
		match[i] = i ? WEFT_NONE : 0;
		if (above != WEFT_NONE) {
			const struct weft_str text = s->priv->names.texts.items[stack->frame];
			const uint32_t frame = weft_intern_find(&other->priv->names, text);
			match[i] = frame == WEFT_INTERN_FAILED
				       ? WEFT_NONE
				       : weft_idmap_get(&by_frame, (int64_t)((uint64_t)above << 32 | frame));
		}
		out_ns[i] = match[i] == WEFT_NONE ? 0 : other->stacks[match[i]].sum_ns;
	}
	_Static_assert(WEFT_IDMAP_NONE == WEFT_NONE, "a missing stack is WEFT_NONE");
	weft_idmap_finish(&by_frame);
	free(match);
	return ok ? WEFT_OK : weft_error_set(err, WEFT_ENOMEM, "%s", weft_status_string(WEFT_ENOMEM));
}

const char *weft_stack_name(const struct weft_stacks *s, uint32_t stack)
{
	return stack == 0 ? "everything" : s->priv->names.texts.items[s->stacks[stack].frame].ptr;
}

bool weft_stack_contains(const struct weft_stacks *s, uint32_t stack, uint32_t promise)
{
	uint32_t at = s->of[promise];
	while (at != WEFT_NONE && at > stack)
		at = s->stacks[at].above;
	return at == stack;
}

static const char *const measures[WEFT_FOLDED_COUNT] = {[WEFT_FOLDED_BY_RUN] = "run",
    [WEFT_FOLDED_BY_WAIT] = "wait",
    [WEFT_FOLDED_BY_FUNCTION] = "function",
    [WEFT_FOLDED_BY_ALLOCATED] = "allocated",
    [WEFT_FOLDED_BY_HELD] = "held"};

const char *weft_folded_name(enum weft_folded_by by)
{
	return measures[by];
}

const char *weft_folded_text(enum weft_folded_by by, char buf[WEFT_DURATION_BYTES], int64_t sum)
{
	return weft_folded_is_bytes(by) ? weft_bytes_text(buf, sum) : weft_duration_text(buf, sum);
}

bool weft_folded_find(enum weft_folded_by *out, const char *name, size_t bytes)
{
	for (size_t i = 0; i < WEFT_FOLDED_COUNT; i++)
		if (strlen(measures[i]) == bytes && memcmp(measures[i], name, bytes) == 0) {
			*out = (enum weft_folded_by)i;
			return true;
		}
	return false;
}

int weft_folded(const struct weft_model *model, enum weft_folded_by by, weft_folded_fn *each, void *ctx, struct weft_error *err)
{
	const char *frames[MAX_FRAMES + 1];
	struct weft_stacks *stacks = NULL;
	int status = weft_stacks_create(&stacks, model, by, true, err);
	if (!stacks)
		return status;
	for (uint32_t i = 1; i < stacks->count && status == WEFT_OK; i++) {
		size_t at = MAX_FRAMES + 1;
		if (!stacks->stacks[i].own_ns)
			continue;
		for (uint32_t stack = i; stack; stack = stacks->stacks[stack].above)
			frames[--at] = weft_stack_name(stacks, stack);
		if (each(ctx, frames + at, MAX_FRAMES + 1 - at, stacks->stacks[i].own_ns))
			status = weft_error_set(err, WEFT_EIO, "%s", weft_status_string(WEFT_EIO));
	}
	weft_stacks_destroy(stacks);
	return status;
}
