/* round.c: rounds of promises that pause, in each of which the same happens: they are counted.
 *
 * What pauses again and again until something is the case has its main loop go round without a sleep.  Each of these rounds tells
 * the same, and a ring soon has nothing else.  So after TOLD such rounds what a round tells is kept back until something else is
 * told, and forgotten if nothing is: its promises are then taken for those that stood in their places in the last round that was
 * told, as if that one still lasted.  A round is compared with the one before by what it told, as numbers of who it told of: the
 * n-th that it made, the n-th that the one before made, or somebody else.
 *
 * Where several take long all are told: who works in pieces is to be seen at that.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

#ifndef WEFT_DISABLE

enum {
	TOLD = 64,
	LEAST = 1024,  /* rounds before it is told how many there were */
	SLOW_PART = 8, /* of what the recorder takes for long, which is 1 ms */
	SLOW_ONE = 16, /* one that lost the processor is followed by many that are quick */
	SLOW_MOST = 32
};

static unsigned place_of(const weft_id *made, unsigned count, weft_id id)
{
	unsigned i = 0;
	while (i < count && made[i] != id)
		i++;
	return i;
}

static void add(struct weft__round *r, uint64_t value)
{
	r->shape = (r->shape ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	r->shape ^= r->shape >> 29;
}

static void add_id(struct weft__round *r, weft_id id)
{
	const struct weft__rounds *before = &weft__world.rounds;
	unsigned now = place_of(r->made, r->made_count, id), then = place_of(before->made, before->made_count, id);
	if (now < r->made_count)
		add(r, UINT64_C(1) << 62 | now);
	else if (then < before->made_count)
		add(r, UINT64_C(1) << 61 | then);
	else
		add(r, (uint64_t)id);
}

static void drop(struct weft__round *r)
{
	r->keeps_back = false;
	for (unsigned i = 0; i < r->made_count; i++)
		weft__weak_unref(r->promises[i]);
}

void weft__round_other(void)
{
	struct weft__round *r = weft__world.round;
	r->is_other = true;
	if (!r->keeps_back)
		return;
	drop(r);
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

static void compare(struct weft__round *r, const struct weft__step *step)
{
	add(r, (uint64_t)step->op << 8 | step->kind);
	add(r, (uintptr_t)step->site);
	add_id(r, step->a);
	if (step->op != WEFT_OP_CREATE)
		add_id(r, step->b);
}

static bool keep_back(struct weft__round *r, const struct weft__step *step)
{
	compare(r, step);
	weft_id runs = step->op == WEFT_OP_READ || step->op == WEFT_OP_RUN ? step->a : step->op == WEFT_OP_SIGNAL ? step->b : 0;
	if (r->step_count == WEFT__ROUND_STEPS || (runs && place_of(r->made, r->made_count, runs) < r->made_count))
		weft__round_other();
	if (!r->keeps_back)
		return false;
	r->steps[r->step_count++] = *step;
	if (runs)
		weft__stream->running = runs;
	return true;
}

bool weft__round_step(enum weft_op op, weft_id a, weft_id b)
{
	return keep_back(weft__world.round, &(struct weft__step){.op = (uint8_t)op, .a = a, .b = b});
}

static weft_id take_id(void)
{
	struct weft_stream *s = weft__stream;
	weft_id end = (weft_id)s->end_id, id = end ? weft__local_take(&s->next_id) : 0;
	return id < end ? id : 0;
}

weft_id weft__round_create(struct weft_promise *p, weft_id input)
{
	struct weft__round *r = weft__world.round;
	struct weft__step step = {.op = WEFT_OP_CREATE, .kind = p->kind, .site = p->site, .a = p->by};
	if (r->made_count == WEFT__ROUND_MADE || r->step_count + 2 > WEFT__ROUND_STEPS ||
	    (r->keeps_back && !(step.b = take_id())))
		weft__round_other();
	bool kept = keep_back(r, &step);
	weft_id id = kept    ? step.b
		     : input ? weft__create_awaiting(p->by, (enum weft_kind)p->kind, p->site, input)
			     : weft_create(p->by, (enum weft_kind)p->kind, p->site);
	if (r->made_count < WEFT__ROUND_MADE) {
		r->promises[r->made_count] = kept ? weft__weak_ref(p) : NULL;
		r->made[r->made_count++] = id;
	}
	if (input)
		keep_back(r, &(struct weft__step){.op = WEFT_OP_AWAIT, .a = id, .b = input});
	return id;
}

void weft__round_begin(struct weft__round *r)
{
	const struct weft__rounds *before = &weft__world.rounds;
	r->next = weft__stream->next;
	r->running = weft__stream->running;
	r->shape = 0;
	r->step_count = r->made_count = 0;
	r->is_other = false;
	r->keeps_back = before->same >= TOLD && before->generation == weft__stream->generation;
	weft__world.round = r;
}

/* Its promises are those of the round before. */
static void forget(struct weft__round *r)
{
	const weft_id *before = weft__world.rounds.made;
	for (unsigned i = 0; i < r->made_count; i++) {
		struct weft_promise *p = r->promises[i];
		unsigned by = place_of(r->made, r->made_count, p->by);
		unsigned input =
		    p->react == WEFT__REACT_NONE ? r->made_count : place_of(r->made, r->made_count, p->waiter.input_id);
		p->id = before[i];
		if (by < r->made_count)
			p->by = before[by];
		if (input < r->made_count)
			p->waiter.input_id = before[input];
	}
	drop(r);
	if (r->made_count > 0)
		weft__local_swap(&weft__stream->next_id, (uint64_t)r->made[0] + r->made_count, (uint64_t)r->made[0]);
}

static bool goes_on(const struct weft__round *r, weft_id id)
{
	bool does = true;
	for (unsigned i = 0; i < r->step_count; i++)
		does &= r->steps[i].op != WEFT_OP_RESOLVE || r->steps[i].b != id;
	return does;
}

/* Those that ran and had not ended then; where all have ended, who was made last goes on in their place. */
static void tell_spins(const struct weft__round *r)
{
	const struct weft__rounds *rounds = &weft__world.rounds;
	bool told = false;
	for (unsigned i = 0; i < r->step_count; i++)
		if (r->steps[i].op == WEFT_OP_READ && goes_on(r, r->steps[i].a)) {
			weft_spins(r->steps[i].a, rounds->turns);
			told = true;
		}
	if (!told && rounds->made_count > 0)
		weft_spins(rounds->made[rounds->made_count - 1], rounds->turns);
}

void weft__round_end(struct weft__round *r)
{
	struct weft__rounds *before = &weft__world.rounds;
	weft__world.round = NULL;
	uint64_t now = weft__now();
	bool is_slow = now - before->last > weft__stream->long_ticks / SLOW_PART;
	bool is_same = !r->is_other && r->shape == before->shape && before->generation == weft__stream->generation;
	before->last = now;
	if (r->keeps_back && is_same && r->next == weft__stream->next && r->running == weft__stream->running) {
		forget(r);
		before->turns++;
		before->slow = is_slow ? before->slow + SLOW_ONE : before->slow - (before->slow > 0);
		if (before->slow > SLOW_MOST)
			before->same = 0;
		else if (before->turns >= LEAST && (before->turns & (before->turns - 1)) == 0)
			tell_spins(r);
		return;
	}
	before->same = is_same && !is_slow && !r->keeps_back ? before->same + 1 : 0;
	if (r->keeps_back) {
		weft__world.round = r;
		weft__round_other();
		weft__world.round = NULL;
	}
	before->turns = before->same;
	before->slow = 0;
	before->shape = r->shape;
	before->generation = weft__stream->generation;
	before->made_count = r->made_count;
	for (unsigned i = 0; i < r->made_count; i++)
		before->made[i] = r->made[i];
}

#endif
