/* spin_compress.c: records identical rounds of pausing promises as a count.
 *
 * A promise that pauses again and again until a condition holds makes its main loop run without sleeping.  Each such round
 * records the same events, which would soon fill a ring.  So after RECORDED_ROUNDS equal rounds, the events of a round are
 * deferred.  If a different event follows, the deferred events are recorded.  If the next round is equal, the deferred events
 * are dropped, and the round's promises take the ids of the corresponding promises of the last recorded round, as if that round
 * still lasted.
 *
 * A round is compared with the previous round by a hash of its events.  In the hash, each promise is a number: the n-th promise
 * that this round made, the n-th that the previous round made, or another promise by its id.
 *
 * If several rounds take long, all rounds are recorded, so that a program that works in pieces is visible.
 * SPDX-License-Identifier: ISC
 */
#include "promise/core.h"

#ifndef WEFT_DISABLE

enum {
	RECORDED_ROUNDS = 64,
	MIN_COUNTED_ROUNDS = 1024, /* number of rounds from which on their count is recorded */
	SLOW_DIVISOR = 8,          /* divisor of the recorder's limit for a long round, which is 1 ms */
	SLOW_STEP = 16,            /* number of quick rounds that follow a single preempted round */
	MAX_SLOWNESS = 32
};

static unsigned find_index(const weft_id *made, unsigned count, weft_id id)
{
	unsigned i = 0;
	while (i < count && made[i] != id)
		i++;
	return i;
}

static void add_to_shape(struct weft__round *r, uint64_t value)
{
	r->shape = (r->shape ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	r->shape ^= r->shape >> 29;
}

static void add_id_to_shape(struct weft__round *r, weft_id id)
{
	const struct weft__rounds *before = &weft__thread_state.rounds;
	unsigned now = find_index(r->made, r->made_count, id), then = find_index(before->made, before->made_count, id);
	if (now < r->made_count)
		add_to_shape(r, UINT64_C(1) << 62 | now);
	else if (then < before->made_count)
		add_to_shape(r, UINT64_C(1) << 61 | then);
	else
		add_to_shape(r, (uint64_t)id);
}

static void stop_deferring(struct weft__round *r)
{
	r->is_deferring = false;
	for (unsigned i = 0; i < r->made_count; i++)
		weft__weak_unref(r->promises[i]);
}

void weft__round_flush(void)
{
	struct weft__round *r = weft__thread_state.round;
	r->has_other_events = true;
	if (!r->is_deferring)
		return;
	stop_deferring(r);
	for (unsigned i = 0; i < r->step_count; i++) {
		const struct weft__step *s = &r->steps[i];
		switch (s->op) {
		case WEFT_OP_CREATE: weft__slow_create(s->a, s->b, (enum weft_kind)s->kind, s->site); break;
		case WEFT_OP_AWAIT: weft_await(s->a, s->b); break;
		case WEFT_OP_READ: weft_read(s->a, s->b); break;
		case WEFT_OP_RESOLVE: weft_resolve(s->a, s->b); break;
		case WEFT_OP_BECOME: weft_become(s->a, s->b); break;
		case WEFT_OP_SIGNAL: weft_signal(s->a, s->b); break;
		case WEFT_OP_HOLD: weft_hold(s->a, s->b); break;
		case WEFT_OP_RELEASE: weft_release(s->a, s->b); break;
		default: weft_run(s->a); break;
		}
	}
}

static void add_step_to_shape(struct weft__round *r, const struct weft__step *step)
{
	add_to_shape(r, (uint64_t)step->op << 8 | step->kind);
	add_to_shape(r, (uintptr_t)step->site);
	add_id_to_shape(r, step->a);
	if (step->op != WEFT_OP_CREATE)
		add_id_to_shape(r, step->b);
}

static bool defer_step(struct weft__round *r, const struct weft__step *step)
{
	add_step_to_shape(r, step);
	weft_id runs = step->op == WEFT_OP_READ || step->op == WEFT_OP_RUN ? step->a : step->op == WEFT_OP_SIGNAL ? step->b : 0;
	if (r->step_count == WEFT__ROUND_STEPS || (runs && find_index(r->made, r->made_count, runs) < r->made_count))
		weft__round_flush();
	if (!r->is_deferring)
		return false;
	r->steps[r->step_count++] = *step;
	if (runs)
		weft__stream->running = runs;
	return true;
}

bool weft__round_step(enum weft_op op, weft_id a, weft_id b)
{
	return defer_step(weft__thread_state.round, &(struct weft__step){.op = (uint8_t)op, .a = a, .b = b});
}

static weft_id allocate_id(void)
{
	struct weft_stream *s = weft__stream;
	weft_id end = (weft_id)s->end_id, id = end ? weft__local_take(&s->next_id) : 0;
	return id < end ? id : 0;
}

weft_id weft__round_create(struct weft_promise *p, weft_id input)
{
	struct weft__round *r = weft__thread_state.round;
	struct weft__step step = {.op = WEFT_OP_CREATE, .kind = p->kind, .site = p->site, .a = p->by};
	if (r->made_count == WEFT__ROUND_MADE || r->step_count + 2 > WEFT__ROUND_STEPS ||
	    (r->is_deferring && !(step.b = allocate_id())))
		weft__round_flush();
	bool is_deferred = defer_step(r, &step);
	weft_id id = is_deferred ? step.b
		     : input     ? weft__create_awaiting(p->by, (enum weft_kind)p->kind, p->site, input)
				 : weft_create(p->by, (enum weft_kind)p->kind, p->site);
	if (r->made_count < WEFT__ROUND_MADE) {
		r->promises[r->made_count] = is_deferred ? weft__weak_ref(p) : NULL;
		r->made[r->made_count++] = id;
	}
	if (input)
		defer_step(r, &(struct weft__step){.op = WEFT_OP_AWAIT, .a = id, .b = input});
	return id;
}

void weft__round_begin(struct weft__round *r)
{
	const struct weft__rounds *before = &weft__thread_state.rounds;
	r->next = weft__stream->next;
	r->running = weft__stream->running;
	r->shape = 0;
	r->step_count = r->made_count = 0;
	r->has_other_events = false;
	r->is_deferring = before->same_rounds >= RECORDED_ROUNDS && before->generation == weft__stream->generation;
	weft__thread_state.round = r;
}

/* Gives the round's promises the ids of the previous round's promises. */
static void adopt_previous_ids(struct weft__round *r)
{
	const weft_id *before = weft__thread_state.rounds.made;
	for (unsigned i = 0; i < r->made_count; i++) {
		struct weft_promise *p = r->promises[i];
		unsigned by = find_index(r->made, r->made_count, p->by);
		unsigned input =
		    p->react == WEFT__REACT_NONE ? r->made_count : find_index(r->made, r->made_count, p->waiter.input_id);
		p->id = before[i];
		if (by < r->made_count)
			p->by = before[by];
		if (input < r->made_count)
			p->waiter.input_id = before[input];
	}
	stop_deferring(r);
	if (r->made_count > 0)
		weft__local_swap(&weft__stream->next_id, (uint64_t)r->made[0] + r->made_count, (uint64_t)r->made[0]);
}

static bool is_unresolved(const struct weft__round *r, weft_id id)
{
	bool does = true;
	for (unsigned i = 0; i < r->step_count; i++)
		does &= r->steps[i].op != WEFT_OP_RESOLVE || r->steps[i].b != id;
	return does;
}

/* Records the number of rounds for the promises that ran and did not end; if all of them ended, for the promise that was made
 * last. */
static void record_spins(const struct weft__round *r)
{
	const struct weft__rounds *rounds = &weft__thread_state.rounds;
	bool is_recorded = false;
	for (unsigned i = 0; i < r->step_count; i++)
		if (r->steps[i].op == WEFT_OP_READ && is_unresolved(r, r->steps[i].a)) {
			weft_spins(r->steps[i].a, rounds->spin_rounds);
			is_recorded = true;
		}
	if (!is_recorded && rounds->made_count > 0)
		weft_spins(rounds->made[rounds->made_count - 1], rounds->spin_rounds);
}

void weft__round_end(struct weft__round *r)
{
	struct weft__rounds *before = &weft__thread_state.rounds;
	weft__thread_state.round = NULL;
	uint64_t now = weft__now();
	bool is_slow = now - before->last > weft__stream->long_ticks / SLOW_DIVISOR;
	bool is_same = !r->has_other_events && r->shape == before->shape && before->generation == weft__stream->generation;
	before->last = now;
	if (r->is_deferring && is_same && r->next == weft__stream->next && r->running == weft__stream->running) {
		adopt_previous_ids(r);
		before->spin_rounds++;
		before->slowness = is_slow ? before->slowness + SLOW_STEP : before->slowness - (before->slowness > 0);
		if (before->slowness > MAX_SLOWNESS)
			before->same_rounds = 0;
		else if (before->spin_rounds >= MIN_COUNTED_ROUNDS && (before->spin_rounds & (before->spin_rounds - 1)) == 0)
			record_spins(r);
		return;
	}
	before->same_rounds = is_same && !is_slow && !r->is_deferring ? before->same_rounds + 1 : 0;
	if (r->is_deferring) {
		weft__thread_state.round = r;
		weft__round_flush();
		weft__thread_state.round = NULL;
	}
	before->spin_rounds = before->same_rounds;
	before->slowness = 0;
	before->shape = r->shape;
	before->generation = weft__stream->generation;
	before->made_count = r->made_count;
	for (unsigned i = 0; i < r->made_count; i++)
		before->made[i] = r->made[i];
}

#endif
