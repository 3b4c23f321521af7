/* since.c: what was the case at a moment of a trace, as events: so that a copy that begins there knows it.
 *
 * It is made of events, not of a model: what is told is then exactly what was recorded, parts and binds included.
 * SPDX-License-Identifier: ISC */
#include "export/since.h"

#include <string.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "model/model.h"

#define NONE UINT32_MAX

/* Something that was said of a promise and still holds. */
struct fact {
	struct weft_event event;
	uint32_t next; /* of the same promise, earlier; NONE: it was the first */
};

struct pending {
	struct weft_event event; /* as WEFT_OP_PENDING has it */
	int64_t into;            /* has ended: the id that it became */
	uint32_t facts;          /* the latest */
	bool is_created;         /* false: only its owner is told of by now */
	bool has_ended, has_become;
	bool has_run; /* since it last awaited something */
};

struct stream {
	struct weft_event runs, pause;
	bool has_run, is_paused;
};

struct search {
	struct weft_state *out;
	WEFT_VEC(struct pending) promises; /* in the order of their creation */
	WEFT_VEC(struct fact) facts;
	uint32_t free_facts;
	struct weft_idmap numbers;
	struct weft_intern names;
	WEFT_VEC(struct weft_event) counters; /* by number of a name */
	WEFT_VEC(struct stream) streams;
	size_t ended;
};

static struct pending *find(const struct search *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	return number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
}

/* The one with that id, or a new one. */
static struct pending *promise_of(struct search *s, int64_t id)
{
	struct pending *slot = find(s, id);
	if (slot && !slot->has_ended)
		return slot;
	slot = weft_vec_push(&s->promises);
	if (!slot || !weft_idmap_set(&s->numbers, id, (uint32_t)s->promises.count - 1))
		return NULL;
	*slot = (struct pending){.facts = NONE};
	return slot;
}

static bool add_promise(struct search *s, const struct weft_event *e)
{
	struct pending *slot = promise_of(s, e->b);
	if (!slot)
		return false;
	if (slot->is_created && e->op == WEFT_OP_PENDING)
		return true;
	slot->event = *e;
	slot->is_created = true;
	if (e->op == WEFT_OP_CREATE) {
		slot->event.op = WEFT_OP_PENDING;
		slot->event.value = e->time_ns;
		slot->event.text = (struct weft_str){"", 0};
	}
	return true;
}

static bool is_same_fact(const struct weft_event *a, const struct weft_event *b)
{
	return a->op == b->op && a->kind == b->kind && a->b == b->b;
}

/* Takes back what is like this one. */
static void forget(struct search *s, struct pending *p, const struct weft_event *like)
{
	for (uint32_t *at = &p->facts; *at != NONE;) {
		struct fact *fact = &s->facts.items[*at];
		if (!is_same_fact(&fact->event, like)) {
			at = &fact->next;
			continue;
		}
		const uint32_t unused = *at;
		*at = fact->next;
		fact->next = s->free_facts;
		s->free_facts = unused;
	}
}

static void forget_op(struct search *s, int64_t id, enum weft_op op, int64_t b)
{
	struct pending *p = find(s, id);
	if (p)
		forget(s, p, &(struct weft_event){.op = (uint8_t)op, .b = b});
}

static bool add_fact(struct search *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->a);
	if (!p || p->has_ended)
		return true;
	uint32_t number = s->free_facts;
	if (number != NONE) {
		s->free_facts = s->facts.items[number].next;
	} else {
		if (!weft_vec_reserve(&s->facts, 1))
			return false;
		number = (uint32_t)s->facts.count++;
	}
	s->facts.items[number] = (struct fact){*e, p->facts};
	p->facts = number;
	return true;
}

/* The same of what is true once: the last one counts. */
static bool set_fact(struct search *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->a);
	if (p)
		forget(s, p, e);
	return add_fact(s, e);
}

/* The first names it; of its story the end is told. */
static bool add_label(struct search *s, const struct weft_event *e)
{
	enum { TOLD = 16 };
	struct pending *p = find(s, e->a);
	uint32_t *oldest = NULL;
	unsigned count = 0;
	if (!p || p->has_ended)
		return true;
	if (!p->event.text.len && e->op == WEFT_OP_LABEL) {
		p->event.text = e->text;
		return true;
	}
	for (uint32_t *at = &p->facts; *at != NONE; at = &s->facts.items[*at].next)
		if (s->facts.items[*at].event.op == WEFT_OP_LABEL || s->facts.items[*at].event.op == WEFT_OP_NOTE) {
			oldest = at;
			count++;
		}
	if (count >= TOLD) {
		const uint32_t unused = *oldest;
		*oldest = s->facts.items[unused].next;
		s->facts.items[unused].next = s->free_facts;
		s->free_facts = unused;
	}
	return add_fact(s, e);
}

static bool await(struct search *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->a);
	struct weft_event still = *e;
	still.op = WEFT_OP_STILL_AWAITS;
	/* As readers see it: who ran in between waits for something else by now. */
	if (p && p->has_run && !weft_kind_has(p->event.kind, WEFT_TRAIT_GATHERS))
		for (uint32_t at = p->facts; at != NONE;) {
			const struct fact *fact = &s->facts.items[at];
			const struct weft_event like = fact->event;
			at = fact->next;
			if (like.op == WEFT_OP_STILL_AWAITS) {
				forget(s, p, &like);
				at = p->facts;
			}
		}
	if (p)
		p->has_run = false;
	return set_fact(s, &still);
}

static void end(struct search *s, const struct weft_event *e, int64_t id)
{
	struct pending *p = find(s, id);
	if (!p || p->has_ended)
		return;
	while (p->facts != NONE) {
		const uint32_t unused = p->facts;
		p->facts = s->facts.items[unused].next;
		s->facts.items[unused].next = s->free_facts;
		s->free_facts = unused;
	}
	p->has_ended = true;
	p->has_become = e->op == WEFT_OP_BECOME;
	p->into = e->b;
	s->ended++;
}

static bool run(struct search *s, const struct weft_event *e, int64_t id)
{
	while (s->streams.count <= e->stream) {
		struct stream *fresh = weft_vec_push(&s->streams);
		if (!fresh)
			return false;
		*fresh = (struct stream){0};
	}
	struct stream *stream = &s->streams.items[e->stream];
	struct pending *p = find(s, id);
	if (e->op == WEFT_OP_PAUSE_BEGIN || e->op == WEFT_OP_PAUSE_END) {
		stream->is_paused = e->op == WEFT_OP_PAUSE_BEGIN;
		stream->pause = *e;
		return true;
	}
	if (p)
		p->has_run = true;
	stream->has_run = true;
	stream->runs = *e;
	if (e->op != WEFT_OP_IDLE)
		stream->runs = (struct weft_event){.op = WEFT_OP_RUN, .a = id, .site = WEFT_NO_SITE, .stream = e->stream};
	return true;
}

/* Changes add up; without a value to begin with they stay changes. */
static bool count(struct search *s, const struct weft_event *e)
{
	const uint32_t number = weft_intern(&s->names, e->text);
	if (number == WEFT_INTERN_FAILED)
		return false;
	if (number == s->counters.count) {
		struct weft_event *fresh = weft_vec_push(&s->counters);
		if (fresh)
			*fresh = *e;
		return fresh != NULL;
	}
	struct weft_event *counter = &s->counters.items[number];
	const struct weft_event before = *counter;
	*counter = *e;
	if (e->op == WEFT_OP_COUNTER_ADD) {
		counter->op = before.op;
		counter->value = (int64_t)((uint64_t)before.value + (uint64_t)e->value);
	}
	return true;
}

static bool detail(struct search *s, const struct weft_event *e)
{
	switch ((enum weft_detail)e->kind) {
	case WEFT_DETAIL_STACK:
	case WEFT_DETAIL_CONNECTION:
	case WEFT_DETAIL_BOUND: return set_fact(s, e);
	case WEFT_DETAIL_EXPECTED:
	case WEFT_DETAIL_MESSAGE: return add_fact(s, e);
	case WEFT_DETAIL_ROUND:
	case WEFT_DETAIL_BLOCKED:
	case WEFT_DETAIL_SNAPSHOT:
	case WEFT_DETAIL_SPIN:
	case WEFT_DETAIL_DIED:
	case WEFT_DETAIL_DATAGRAM:
	default: return true;
	}
}

static bool take(struct search *s, const struct weft_event *e)
{
	switch ((enum weft_op)e->op) {
	case WEFT_OP_CREATE:
	case WEFT_OP_PENDING: return add_promise(s, e);
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_CANCEL: end(s, e, e->b); return true;
	case WEFT_OP_BECOME: end(s, e, e->a); return true;
	case WEFT_OP_LABEL:
	case WEFT_OP_NOTE: return add_label(s, e);
	case WEFT_OP_SHOULD_RESOLVE:
	case WEFT_OP_LEVEL:
	case WEFT_OP_HOLD: return set_fact(s, e);
	case WEFT_OP_BELONGS: return promise_of(s, e->a) && set_fact(s, e); /* it precedes the creation */
	case WEFT_OP_RELEASE: forget_op(s, e->a, WEFT_OP_HOLD, e->b); return true;
	case WEFT_OP_AWAIT:
	case WEFT_OP_STILL_AWAITS: return await(s, e);
	case WEFT_OP_AWAITS_NO_MORE: forget_op(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return true;
	case WEFT_OP_READ_LATER: forget_op(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return true;
	case WEFT_OP_READ: forget_op(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return run(s, e, e->a);
	case WEFT_OP_RUN:
	case WEFT_OP_RESUME: return run(s, e, e->a);
	case WEFT_OP_SIGNAL: return run(s, e, e->b);
	case WEFT_OP_IDLE: return run(s, e, WEFT_SYSTEM_ID);
	case WEFT_OP_PAUSE_BEGIN:
	case WEFT_OP_PAUSE_END: return run(s, e, 0);
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD: return count(s, e);
	case WEFT_OP_DETAIL: return detail(s, e);
	case WEFT_OP_PAUSE:
	case WEFT_OP_SIGNAL_ONLY:
	case WEFT_OP_SENT:
	case WEFT_OP_RECEIVED:
	case WEFT_OP_COUNT:
	default: return true;
	}
}

/* Those that have ended leave now and then, so that memory is what is pending at once. */
static bool tidy(struct search *s)
{
	enum { LEAST = 4096 };
	if (s->ended < LEAST || s->ended < s->promises.count / 2)
		return true;
	size_t kept = 0;
	struct weft_idmap numbers = {0};
	for (size_t i = 0; i < s->promises.count; i++) {
		const struct pending p = s->promises.items[i];
		/* Somebody may still wait for one that became another. */
		if (p.has_ended && !(p.has_become && find(s, p.into) && !find(s, p.into)->has_ended))
			continue;
		if (!weft_idmap_set(&numbers, p.event.b, (uint32_t)kept)) {
			weft_idmap_finish(&numbers);
			return false;
		}
		s->promises.items[kept++] = p;
	}
	s->promises.count = kept;
	weft_idmap_finish(&s->numbers);
	s->numbers = numbers;
	s->ended = 0;
	return true;
}

/* ---- Telling ---- */

static bool tell(struct search *s, struct weft_event event)
{
	struct weft_event *slot = weft_vec_push(&s->out->events);
	if (slot)
		*slot = event;
	return slot != NULL;
}

/* The one that it has become by now, or NULL: it has ended. */
static const struct pending *alive(const struct search *s, int64_t id)
{
	enum { FAR = 64 };
	const struct pending *p = find(s, id);
	for (int i = 0; p && p->has_become && i < FAR; i++)
		p = find(s, p->into);
	return p && !p->has_ended && p->is_created ? p : NULL;
}

static bool tell_belongs(struct search *s, const struct pending *p)
{
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next)
		if (s->facts.items[at].event.op == WEFT_OP_BELONGS && !tell(s, s->facts.items[at].event))
			return false;
	return true;
}

/* In the order in which they came. */
static bool tell_facts(struct search *s, const struct pending *p)
{
	const size_t begin = s->out->events.count;
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next) {
		struct weft_event event = s->facts.items[at].event;
		if (event.op == WEFT_OP_BELONGS)
			continue;
		if (event.op == WEFT_OP_STILL_AWAITS || event.op == WEFT_OP_HOLD) {
			const struct pending *other = alive(s, event.b);
			if (!other)
				continue;
			event.b = other->event.b;
		}
		if (!tell(s, event))
			return false;
	}
	for (size_t i = begin, k = s->out->events.count; i + 1 < k; i++) {
		const struct weft_event swapped = s->out->events.items[i];
		s->out->events.items[i] = s->out->events.items[--k];
		s->out->events.items[k] = swapped;
	}
	return true;
}

static bool tell_all(struct search *s)
{
	bool ok = true;
	for (size_t i = 0; ok && i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		if (!p->has_ended && p->is_created)
			ok = tell_belongs(s, p) && tell(s, p->event);
	}
	/* Behind all promises, so that nothing is named before it is told of. */
	for (size_t i = 0; ok && i < s->promises.count; i++)
		ok = !s->promises.items[i].is_created || tell_facts(s, &s->promises.items[i]);
	for (size_t i = 0; ok && i < s->counters.count; i++)
		ok = tell(s, s->counters.items[i]);
	for (size_t i = 0; ok && i < s->streams.count; i++)
		ok = (!s->streams.items[i].has_run || tell(s, s->streams.items[i].runs)) &&
		     (!s->streams.items[i].is_paused || tell(s, s->streams.items[i].pause));
	return ok;
}

int weft_state_before(struct weft_state *out, struct weft_trace *trace, int64_t from_ns)
{
	struct search s = {.out = out, .free_facts = NONE};
	const struct weft_event *events;
	size_t n;
	int more = 0;
	bool ok = true, is_there = false;
	*out = (struct weft_state){0};
	while (ok && !is_there && (more = weft_trace_next(trace, &events, &n)) > 0) {
		for (size_t i = 0; ok && i < n && !(is_there = events[i].time_ns >= from_ns); i++)
			ok = take(&s, &events[i]);
		ok = ok && tidy(&s);
	}
	ok = ok && tell_all(&s);
	weft_vec_free(&s.promises);
	weft_vec_free(&s.facts);
	weft_vec_free(&s.counters);
	weft_vec_free(&s.streams);
	weft_idmap_finish(&s.numbers);
	weft_intern_finish(&s.names);
	return more < 0 ? more : ok ? WEFT_OK : WEFT_ENOMEM;
}

void weft_state_free(struct weft_state *state)
{
	weft_vec_free(&state->events);
}
