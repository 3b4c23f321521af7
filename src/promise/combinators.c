/* combinators.c: makes promises that wait for several promises.  SPDX-License-Identifier: ISC */
#include "promise/core.h"

/* ---- Values of several promises ---- */

static struct weft_values *values_of(struct weft__gathered *gathered)
{
	return (struct weft_values *)(void *)(gathered + 1);
}

static struct weft__gathered *new_gathered(size_t capacity)
{
	struct weft__gathered *gathered =
	    /* The limit prevents that a sum below overflows. */
	    capacity > SIZE_MAX / 64 ? NULL : weft__allocate(weft__gathered_bytes(capacity));
	if (!gathered)
		return NULL;
	gathered->capacity = capacity;
	gathered->owners = (struct weft_promise **)(void *)&values_of(gathered)->values[capacity];
	values_of(gathered)->count = 0;
	return gathered;
}

static void add_gathered(struct weft__gathered *gathered, size_t at, struct weft_promise *t)
{
	gathered->owners[at] = weft__ref(weft__owner(t));
	values_of(gathered)->values[at] = gathered->owners[at]->value.pointer;
}

static void drop_gathered(struct weft__gathered *gathered)
{
	if (!gathered)
		return;
	for (size_t i = 0; i < values_of(gathered)->count; i++)
		if (gathered->owners[i])
			weft__unref(gathered->owners[i]);
	weft__release(gathered, weft__gathered_bytes(gathered->capacity));
}

static void destroy_values(void *values)
{
	drop_gathered((struct weft__gathered *)values - 1);
}

void weft__drop_inputs(struct weft__inputs *inputs)
{
	if (--inputs->refs)
		return;
	for (size_t i = 0; i < inputs->count; i++)
		weft__weak_unref(inputs->input[i].promise);
	if (inputs->failed)
		weft__unref(inputs->failed);
	drop_gathered(inputs->values);
	weft__release(inputs, sizeof *inputs + inputs->count * sizeof inputs->input[0]);
}

/* ---- Inputs ---- */

static void unref_all(struct weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_promise_unref(promises[i]);
}

static bool is_pending(const struct weft_promise *p)
{
	return weft__repr(weft__arg(p))->state == WEFT_PENDING;
}

static size_t count_ended(struct weft_promise *const *promises, size_t count)
{
	size_t ended = 0;
	for (size_t i = 0; i < count; i++)
		ended += !is_pending(promises[i]);
	return ended;
}

/* Makes a promise that awaits all inputs, whose waiters the caller must link.  NULL without memory. */
static struct weft_promise *make_awaiting_all(struct weft_record_site *site, enum weft_kind kind, enum weft__react react,
    struct weft_promise *const *promises, size_t count, bool with_values)
{
	struct weft__inputs *inputs =
	    count > SIZE_MAX / 64 ? NULL : weft__allocate(sizeof *inputs + count * sizeof inputs->input[0]);
	if (!inputs)
		return NULL;
	*inputs = (struct weft__inputs){.refs = 2, .count = count};
	if (with_values && !(inputs->values = new_gathered(count))) {
		weft__release(inputs, sizeof *inputs + count * sizeof inputs->input[0]);
		return NULL;
	}
	struct weft_promise *p = weft__make_pending(site, kind, WEFT__CANCEL_MANY);
	if (!p) {
		drop_gathered(inputs->values);
		weft__release(inputs, sizeof *inputs + count * sizeof inputs->input[0]);
		return NULL;
	}
	p->react = (uint8_t)react;
	p->inputs = p->waits_for = inputs;
	for (size_t i = 0; i < count; i++) {
		struct weft_promise *input = weft__arg(promises[i]), *t = weft__repr(input);
		inputs->input[i].promise = weft__weak_ref(input);
		inputs->input[i].waiter.link.next = NULL;
		weft__note_await(p, t);
	}
	return p;
}

static void link_input(struct weft_promise *p, size_t i)
{
	struct weft__input *input = &p->waits_for->input[i];
	input->waiter.to = weft__ref(p);
	weft__link_after(&weft__repr(input->promise)->waiters, &input->waiter.link);
}

static struct weft_promise *link_all(struct weft_promise *p, struct weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; p && i < count; i++)
		link_input(p, i);
	unref_all(promises, count);
	return p ? p : &weft__no_memory;
}

/* ---- The first of several promises ---- */

static size_t random_below(size_t limit)
{
	uint64_t x = weft__thread_state.random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	weft__thread_state.random = x;
	return (size_t)(x % limit);
}

/* Returns one of the inputs that have ended; if `pick`, cancels all other inputs. */
static struct weft_promise *choose_ended(struct weft_promise *const *promises, size_t count, size_t ended, bool pick)
{
	size_t skip = ended == 1 ? 0 : random_below(ended), i = 0;
	for (; is_pending(promises[i]) || skip-- > 0; i++)
		if (pick && is_pending(promises[i]))
			weft_promise_cancel(promises[i]);
	struct weft_promise *chosen = promises[i];
	if (!pick)
		weft__note_read(weft_promise_id(chosen));
	for (i++; pick && i < count; i++)
		weft_promise_cancel(promises[i]);
	weft_promise_ref(chosen);
	unref_all(promises, count);
	return weft__arg(chosen);
}

struct weft_promise *weft__choose(
    struct weft_record_site *site, enum weft_kind kind, struct weft_promise *const *promises, size_t count)
{
	bool pick = kind == WEFT_KIND_PICK;
	size_t ended = count_ended(promises, count);
	if (ended > 0)
		return choose_ended(promises, count, ended, pick);
	enum weft__react react = pick ? WEFT__REACT_PICK : WEFT__REACT_CHOOSE;
	return link_all(make_awaiting_all(site, kind, react, promises, count, false), promises, count);
}

/* Collects the values of all resolved inputs; returns the first failed input, if there is one. */
static struct weft_promise *gather_ended(
    struct weft__gathered *gathered, struct weft_promise *const *promises, size_t count, bool note)
{
	for (size_t i = 0; i < count; i++) {
		struct weft_promise *t = weft__repr(weft__arg(promises[i]));
		if (t->state == WEFT_PENDING)
			continue;
		if (note)
			weft__note_read(t->id);
		if (t->state == WEFT_FAILED)
			return t;
		add_gathered(gathered, values_of(gathered)->count, t);
		values_of(gathered)->count++;
	}
	return NULL;
}

static void cancel_all(struct weft_promise *const *promises, size_t count)
{
	for (size_t i = 0; i < count; i++)
		weft_promise_cancel(promises[i]);
}

struct weft_promise *weft__nchoose(
    struct weft_record_site *site, enum weft_kind kind, struct weft_promise *const *promises, size_t count)
{
	bool pick = kind == WEFT_KIND_PICK;
	if (count_ended(promises, count) == 0) {
		enum weft__react react = pick ? WEFT__REACT_NPICK : WEFT__REACT_NCHOOSE;
		return link_all(make_awaiting_all(site, kind, react, promises, count, true), promises, count);
	}
	struct weft_promise *result = NULL, *failed;
	struct weft__gathered *gathered = new_gathered(count);
	if (gathered) {
		failed = gather_ended(gathered, promises, count, true);
		if (pick)
			cancel_all(promises, count);
		if (!failed) {
			result = weft_promise_return(values_of(gathered), destroy_values);
		} else {
			drop_gathered(gathered);
			result = weft__promise_ended_as(failed);
			weft__round_flush_if_any();
			if (result != &weft__no_memory && WEFT__IS_RECORDING())
				result->id = weft_create(weft_running(), kind, site);
		}
	}
	unref_all(promises, count);
	return weft__arg(result);
}

/* Records a read of the first input that ended together with `input`. */
static void note_choice(const struct weft__inputs *inputs, const struct weft_promise *input)
{
	for (size_t i = 0; i < inputs->count; i++) {
		struct weft_promise *t = weft__repr(inputs->input[i].promise);
		if (t->state == input->state && t->stamp == input->stamp) {
			weft__note_read(t->id);
			return;
		}
	}
}

void weft__fire_choose(struct weft_promise *p, struct weft_promise *input)
{
	struct weft__inputs *inputs = p->waits_for;
	bool pick = p->react == WEFT__REACT_PICK || p->react == WEFT__REACT_NPICK, one = p->react <= WEFT__REACT_PICK;
	struct weft_promise *failed = NULL;
	inputs->refs++;
	for (size_t i = 0; i < inputs->count; i++) {
		if (inputs->input[i].waiter.link.next) {
			weft__unlink(&inputs->input[i].waiter.link);
			weft__unref(p);
		}
	}
	weft_id before = weft__thread_state.current;
	weft__thread_state.current = weft__id(weft__repr(p));
	note_choice(inputs, input);
	/* The input is chosen before the others are cancelled, because cancelling may end more inputs. */
	struct weft_values *values = one ? NULL : values_of(inputs->values);
	size_t ended = 0;
	for (size_t i = 0; !one && !failed && i < inputs->count; i++) {
		struct weft_promise *t = weft__repr(inputs->input[i].promise);
		if (t->state == WEFT_PENDING || t->stamp == 0)
			continue;
		inputs->input[ended++].waiter.input_id = t->id;
		if (t->state == WEFT_FAILED)
			failed = weft__ref(t);
		else
			add_gathered(inputs->values, values->count++, t);
	}
	for (size_t i = 0; pick && i < inputs->count; i++)
		weft_promise_cancel(inputs->input[i].promise);
	weft__thread_state.current = before;
	for (size_t i = 0; i < ended; i++)
		weft__note_read(inputs->input[i].waiter.input_id);
	struct weft_promise *t = weft__repr(p);
	if (one) {
		weft__end_as(t, input);
	} else if (failed) {
		weft__end_as(t, failed);
		weft__unref(failed);
	} else {
		inputs->values = NULL;
		weft__end_with(t, values, destroy_values);
	}
	weft__drop_inputs(inputs);
}

/* ---- All of several promises ---- */

static struct weft_promise *make_join(
    struct weft_record_site *site, struct weft_promise *const *promises, size_t count, bool with_values)
{
	struct weft_promise *p = NULL, *failed = NULL;
	bool must_wait = count_ended(promises, count) < count;
	struct weft__gathered *gathered = NULL;
	if (!must_wait && with_values && !(gathered = new_gathered(count))) {
		unref_all(promises, count);
		return &weft__no_memory;
	}
	for (size_t i = 0; i < count; i++) {
		struct weft_promise *t = weft__repr(weft__arg(promises[i]));
		if (t->state == WEFT_PENDING) {
			if (!p &&
			    !(p = make_awaiting_all(site, WEFT_KIND_JOIN, WEFT__REACT_JOIN, promises, count, with_values))) {
				unref_all(promises, count);
				return &weft__no_memory;
			}
			weft__note_await(p, t);
			p->waits_for->missing++;
			link_input(p, i);
		} else {
			weft__note_read(t->id);
			if (t->state == WEFT_FAILED && !failed)
				failed = t;
		}
	}
	struct weft__gathered *into = p ? p->waits_for->values : gathered;
	for (size_t i = 0; into && i < count; i++) {
		struct weft_promise *t = weft__repr(weft__arg(promises[i]));
		into->owners[i] = NULL;
		if (t->state == WEFT_RESOLVED)
			add_gathered(into, i, t);
	}
	if (into)
		values_of(into)->count = count;
	if (p) {
		p->waits_for->failed = failed ? weft__ref(failed) : NULL;
	} else if (failed || !gathered) {
		p = weft__promise_ended_as(failed ? failed : &weft__unit);
		drop_gathered(gathered);
	} else {
		p = weft_promise_return(values_of(gathered), destroy_values);
	}
	unref_all(promises, count);
	return p;
}

struct weft_promise *weft__join(struct weft_record_site *site, struct weft_promise *const *promises, size_t count)
{
	return make_join(site, promises, count, false);
}

struct weft_promise *weft__all(struct weft_record_site *site, struct weft_promise *const *promises, size_t count)
{
	return make_join(site, promises, count, true);
}

void weft__fire_join(struct weft_promise *p, struct weft__waiter *w, struct weft_promise *input)
{
	struct weft__inputs *inputs = p->waits_for;
	weft_id before = weft__thread_state.current;
	weft__thread_state.current = weft__id(p);
	weft__note_read(weft__repr(WEFT__CONTAINER(w, struct weft__input, waiter)->promise)->id);
	weft__thread_state.current = before;
	if (input->state == WEFT_FAILED) {
		if (!inputs->failed)
			inputs->failed = weft__ref(input);
	} else if (inputs->values) {
		add_gathered(inputs->values, (size_t)(WEFT__CONTAINER(w, struct weft__input, waiter) - inputs->input), input);
	}
	if (--inputs->missing)
		return;
	if (inputs->failed || !inputs->values) {
		weft__end_as(weft__repr(p), inputs->failed ? inputs->failed : &weft__unit);
	} else {
		struct weft_values *values = values_of(inputs->values);
		inputs->values = NULL;
		weft__end_with(weft__repr(p), values, destroy_values);
	}
}
