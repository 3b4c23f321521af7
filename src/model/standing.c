/* standing.c: what was the case at a moment of a trace, as events: so that a copy that begins there knows it, and a follower need
 * not keep what came before.
 *
 * It is made of events, not of a model: what is told is then exactly what was recorded, parts and binds included.
 * SPDX-License-Identifier: ISC */
#include "model/standing.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "model/model.h"
#include "model/tally.h"
#include "trace/carry.h"

#define NONE UINT32_MAX

/* Something that was said of a promise and still holds. */
struct fact {
	struct weft_event event;
	uint32_t next;     /* of the same promise, earlier; NONE: it was the first */
	uint32_t birth;    /* of whom it names: his id may be another one's by now; 0: nobody had it */
	uint64_t received; /* of a connection: the position by now, which its text had before */
};

struct pending {
	struct weft_event event; /* as WEFT_OP_PENDING has it; its text is the first of its labels and notes */
	int64_t ended_ns;        /* or when it became another */
	uint32_t facts;          /* the latest */
	uint32_t birth;          /* its number among all that ever were, from 1 */
	uint32_t into;           /* has become: which one; NONE: one that nobody told of */
	bool is_created;         /* false: only its owner is told of by now */
	bool is_part;
	bool has_ended, has_become, has_failed;
	bool has_run;     /* since it last awaited something */
	bool is_followed; /* another one became it */
	bool is_named;    /* since it became another */
};

struct stream {
	struct weft_event runs, pause;
	bool has_run, is_paused;
};

enum { ROOM = 1 << 16, LEAST = 4096, NAMED_ALIASES = 1 << 14, OTHER_ALIASES = 1 << 9, SNAPSHOTS = 64 };

struct weft_standing {
	struct weft_state *out;
	WEFT_VEC(struct pending) promises; /* in the order of their creation */
	WEFT_VEC(struct fact) facts;
	uint32_t free_facts;
	struct weft_idmap numbers;
	struct weft_intern names;
	WEFT_VEC(struct weft_event) counters; /* by number of a name */
	WEFT_VEC(struct stream) streams;
	WEFT_VEC(struct weft_event) snapshots;
	struct weft_tally *tallies; /* the caller's: of those that have left */
	size_t tally_count;
	size_t ended;
	uint32_t births;
	bool keeps_texts;
	WEFT_VEC(char *) rooms; /* for texts; the last is used up to room_used */
	size_t room_used, room_size, text_bytes, text_bytes_tidy;
	WEFT_VEC(char *) counter_names;
};

/* ---- Texts ---- */

static bool keep_text(struct weft_standing *s, struct weft_str *text)
{
	if (!s->keeps_texts || !text->len)
		return true;
	if (s->room_size - s->room_used < text->len) {
		const size_t size = text->len > ROOM ? text->len : ROOM;
		char *room = malloc(size), **slot = room ? weft_vec_push(&s->rooms) : NULL;
		if (!slot) {
			free(room);
			return false;
		}
		*slot = room;
		s->room_used = 0;
		s->room_size = size;
	}
	char *own = s->rooms.items[s->rooms.count - 1] + s->room_used;
	memcpy(own, text->ptr, text->len);
	s->room_used += text->len;
	s->text_bytes += text->len;
	text->ptr = own;
	return true;
}

/* Keeps the texts of what still holds, and frees the others. */
static bool tidy_texts(struct weft_standing *s)
{
	if (s->text_bytes < ROOM || s->text_bytes / 2 < s->text_bytes_tidy)
		return true;
	const size_t old = s->rooms.count;
	bool ok = true;
	s->room_used = s->room_size = s->text_bytes = 0;
	for (size_t i = 0; ok && i < s->promises.count; i++) {
		ok = keep_text(s, &s->promises.items[i].event.text);
		for (uint32_t at = s->promises.items[i].facts; ok && at != NONE; at = s->facts.items[at].next)
			ok = keep_text(s, &s->facts.items[at].event.text);
	}
	for (size_t i = 0; ok && i < s->streams.count; i++)
		ok = !s->streams.items[i].is_paused || keep_text(s, &s->streams.items[i].pause.text);
	for (size_t i = 0; ok && i < s->snapshots.count; i++)
		ok = keep_text(s, &s->snapshots.items[i].text);
	if (!ok)
		return false;
	for (size_t i = 0; i < old; i++)
		free(s->rooms.items[i]);
	memmove(s->rooms.items, s->rooms.items + old, (s->rooms.count - old) * sizeof *s->rooms.items);
	s->rooms.count -= old;
	s->text_bytes_tidy = s->text_bytes;
	return true;
}

/* ---- What is said ---- */

/* What that one has become by now; NONE: nobody told of it.  Paths are made shorter on the way. */
static uint32_t now(const struct weft_standing *s, uint32_t number)
{
	struct pending *promises = s->promises.items;
	while (number != NONE && promises[number].has_become) {
		const uint32_t next = promises[number].into;
		if (next != NONE && promises[next].has_become)
			promises[number].into = promises[next].into;
		number = promises[number].into;
	}
	return number;
}

/* What has that id, or has become of it. */
static struct pending *look_up(const struct weft_standing *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id), last = number == WEFT_IDMAP_NONE ? NONE : now(s, number);
	return last == NONE ? NULL : &s->promises.items[last];
}

/* The same where an event names it. */
static struct pending *find(struct weft_standing *s, int64_t id)
{
	uint32_t number = weft_idmap_get(&s->numbers, id);
	struct pending *p = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	if (!p || !p->has_become)
		return p;
	p->is_named = true;
	number = now(s, number);
	return number == NONE ? NULL : &s->promises.items[number];
}

static void name_newest(struct weft_standing *s);

static struct pending *add_slot(struct weft_standing *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	const struct pending *before = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	if (before && before->has_become)
		name_newest(s); /* who waits for what that has become is to go on to */
	struct pending *slot = weft_vec_push(&s->promises);
	if (!slot || !weft_idmap_set(&s->numbers, id, (uint32_t)s->promises.count - 1))
		return NULL;
	*slot = (struct pending){.event.b = id, .facts = NONE, .birth = ++s->births};
	return slot;
}

/* The one with that id, or a new one. */
static struct pending *promise_of(struct weft_standing *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	struct pending *slot = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	return slot && !slot->has_ended ? slot : add_slot(s, id);
}

/* Takes out the fact that *at leads to. */
static void drop_fact(struct weft_standing *s, uint32_t *at)
{
	const uint32_t unused = *at;
	*at = s->facts.items[unused].next;
	s->facts.items[unused].next = s->free_facts;
	s->free_facts = unused;
}

static void forget_facts(struct weft_standing *s, struct pending *p)
{
	while (p->facts != NONE)
		drop_fact(s, &p->facts);
}

static bool add_promise(struct weft_standing *s, const struct weft_event *e)
{
	/* Told again, perhaps by the name that it had before it became another, or by who does not know yet that it has ended. */
	const struct pending *known = e->op == WEFT_OP_PENDING ? find(s, e->b) : NULL;
	if (known && known->is_created && (!known->has_ended || (!known->has_become && e->value <= known->ended_ns)))
		return true;
	struct pending *slot = promise_of(s, e->b);
	if (!slot)
		return false;
	if (slot->is_created) { /* another one takes its id over: nothing is heard of this one any more */
		forget_facts(s, slot);
		slot->has_ended = slot->has_become = true;
		slot->into = NONE;
		s->ended++;
		if (!(slot = add_slot(s, e->b)))
			return false;
	}
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

/* Takes back what is like this one; false: there was nothing. */
static bool forget(struct weft_standing *s, struct pending *p, const struct weft_event *like)
{
	bool was_there = false;
	for (uint32_t *at = &p->facts; *at != NONE;) {
		if (is_same_fact(&s->facts.items[*at].event, like)) {
			drop_fact(s, at);
			was_there = true;
		} else
			at = &s->facts.items[*at].next;
	}
	return was_there;
}

/* The same of what that id is by now. */
static void forget_op(struct weft_standing *s, int64_t id, enum weft_op op, int64_t b)
{
	struct pending *p = find(s, id);
	const struct pending *other;
	if (!p || forget(s, p, &(struct weft_event){.op = (uint8_t)op, .b = b}) || p->facts == NONE || !(other = find(s, b)))
		return;
	for (uint32_t *at = &p->facts; *at != NONE;) {
		const struct weft_event *e = &s->facts.items[*at].event;
		if (e->op == op && find(s, e->b) == other)
			drop_fact(s, at);
		else
			at = &s->facts.items[*at].next;
	}
}

static uint32_t birth_of(const struct weft_standing *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	return number == WEFT_IDMAP_NONE ? 0 : s->promises.items[number].birth;
}

static bool add_fact(struct weft_standing *s, const struct weft_event *e)
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
	s->facts.items[number] = (struct fact){.event = *e, .next = p->facts, .birth = birth_of(s, e->b)};
	s->facts.items[number].event.a = p->is_created ? p->event.b : e->a;
	p->facts = number;
	return true;
}

/* The same of what is true once: the last one counts. */
static bool set_fact(struct weft_standing *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->a);
	if (p)
		forget(s, p, e);
	return add_fact(s, e);
}

static bool is_connection(const struct weft_event *e)
{
	return e->op == WEFT_OP_DETAIL && e->kind == WEFT_DETAIL_CONNECTION;
}

static bool connect(struct weft_standing *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->a);
	struct weft_carry carry;
	if (!p || p->has_ended || !weft_carry_parse(e->text, &carry))
		return true;
	if (!set_fact(s, e))
		return false;
	s->facts.items[p->facts].received = carry.received;
	return true;
}

/* Who goes on from here takes the first bytes for those from the position that was told. */
static void carry(struct weft_standing *s, const struct weft_event *e)
{
	const struct pending *p = find(s, e->a);
	uint32_t at = p ? p->facts : NONE;
	while (at != NONE && !is_connection(&s->facts.items[at].event))
		at = s->facts.items[at].next;
	if (at == NONE)
		return;
	struct fact *fact = &s->facts.items[at];
	if (e->op == WEFT_OP_SENT)
		fact->event.value = (int64_t)weft_carry_position((uint64_t)fact->event.value, e->value);
	else
		fact->received = weft_carry_position(fact->received, e->value);
}

/* The first names it; of its story the end is told. */
static bool add_label(struct weft_standing *s, const struct weft_event *e)
{
	enum { TOLD = 16 };
	struct pending *p = find(s, e->a);
	uint32_t *oldest = NULL;
	unsigned count = 0;
	if (!p)
		return true;
	if (!p->event.text.len) {
		p->event.text = e->text;
		return true;
	}
	if (p->has_ended)
		return true;
	for (uint32_t *at = &p->facts; *at != NONE; at = &s->facts.items[*at].next)
		if (s->facts.items[*at].event.op == WEFT_OP_LABEL || s->facts.items[*at].event.op == WEFT_OP_NOTE) {
			oldest = at;
			count++;
		}
	if (count >= TOLD)
		drop_fact(s, oldest);
	return add_fact(s, e);
}

/* Whether whom it names has ended, or has left since. */
static bool is_of_ended(const struct weft_standing *s, const struct fact *fact)
{
	const struct pending *other = look_up(s, fact->event.b);
	return fact->birth && (fact->birth != birth_of(s, fact->event.b) || !other || other->has_ended);
}

static bool await(struct weft_standing *s, const struct weft_event *e)
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
	/* It waits since the first time that it said so.  Who says that a wait is over without a word, a connection that awaits
	 * one read after another, would else have a fact of each. */
	for (uint32_t *at = p ? &p->facts : NULL; at && *at != NONE;) {
		const struct fact *fact = &s->facts.items[*at];
		if (is_same_fact(&fact->event, &still) && fact->birth == birth_of(s, e->b))
			return true;
		if (fact->event.op == WEFT_OP_STILL_AWAITS && is_of_ended(s, fact))
			drop_fact(s, at);
		else
			at = &s->facts.items[*at].next;
	}
	return set_fact(s, &still);
}

static void end(struct weft_standing *s, const struct weft_event *e)
{
	struct pending *p = find(s, e->b);
	if (!p || p->has_ended)
		return;
	forget_facts(s, p);
	p->has_ended = true;
	p->has_failed = e->op != WEFT_OP_RESOLVE;
	p->ended_ns = e->time_ns;
	s->ended++;
}

static bool become(struct weft_standing *s, const struct weft_event *e)
{
	/* Nobody told of one that began before the trace; what it becomes is known by its name, too. */
	if (!find(s, e->a) && weft_idmap_get(&s->numbers, e->a) == WEFT_IDMAP_NONE && !add_slot(s, e->a))
		return false;
	struct pending *p = find(s, e->a), *into = find(s, e->b);
	if (!p || p->has_ended || p == into)
		return true;
	/* That it should resolve is now what the other one should. */
	struct weft_event should = {.op = WEFT_OP_COUNT};
	for (uint32_t at = p->facts; into && at != NONE; at = s->facts.items[at].next)
		if (s->facts.items[at].event.op == WEFT_OP_SHOULD_RESOLVE)
			should = s->facts.items[at].event;
	forget_facts(s, p);
	p->has_ended = p->has_become = true;
	p->ended_ns = e->time_ns;
	p->into = into ? (uint32_t)(into - s->promises.items) : NONE;
	if (into)
		into->is_followed = true;
	s->ended++;
	should.a = e->b;
	return should.op != WEFT_OP_SHOULD_RESOLVE || set_fact(s, &should);
}

static bool run(struct weft_standing *s, const struct weft_event *e, int64_t id)
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
	if (e->op == WEFT_OP_IDLE)
		stream->runs = *e;
	else
		stream->runs = (struct weft_event){
		    .time_ns = e->time_ns, .op = WEFT_OP_RUN, .a = id, .site = WEFT_NO_SITE, .stream = e->stream};
	return true;
}

static bool add_counter(struct weft_standing *s, const struct weft_event *e)
{
	struct weft_event counter = *e;
	char *own = s->keeps_texts ? malloc(e->text.len + 1u) : NULL;
	char **slot = own ? weft_vec_push(&s->counter_names) : NULL;
	if (s->keeps_texts && !slot) {
		free(own);
		return false;
	}
	if (slot) {
		*slot = memcpy(own, e->text.ptr, e->text.len);
		counter.text.ptr = own;
	}
	struct weft_event *fresh =
	    weft_intern(&s->names, counter.text) == WEFT_INTERN_FAILED ? NULL : weft_vec_push(&s->counters);
	if (fresh)
		*fresh = counter;
	return fresh != NULL;
}

/* Changes add up; without a value to begin with they stay changes. */
static bool count(struct weft_standing *s, const struct weft_event *e)
{
	uint32_t number = weft_intern_find(&s->names, e->text);
	if (number == WEFT_INTERN_FAILED)
		return add_counter(s, e);
	assert(number < s->counters.count && s->counters.items);
	struct weft_event *counter = &s->counters.items[number];
	const struct weft_event before = *counter;
	*counter = *e;
	counter->text = before.text;
	if (e->op == WEFT_OP_COUNTER_ADD) {
		counter->op = before.op;
		counter->value = (int64_t)((uint64_t)before.value + (uint64_t)e->value);
	}
	return true;
}

static bool add_snapshot(struct weft_standing *s, const struct weft_event *e)
{
	if (s->snapshots.count == SNAPSHOTS) {
		s->snapshots.count--;
		memmove(s->snapshots.items, s->snapshots.items + 1, s->snapshots.count * sizeof *s->snapshots.items);
	}
	struct weft_event *slot = weft_vec_push(&s->snapshots);
	if (slot)
		*slot = *e;
	return slot != NULL;
}

static bool detail(struct weft_standing *s, const struct weft_event *e)
{
	switch ((enum weft_detail)e->kind) {
	case WEFT_DETAIL_CONNECTION: return connect(s, e);
	case WEFT_DETAIL_STACK:
	case WEFT_DETAIL_BOUND: return set_fact(s, e);
	case WEFT_DETAIL_EXPECTED:
	case WEFT_DETAIL_MESSAGE: return add_fact(s, e);
	case WEFT_DETAIL_SNAPSHOT: return add_snapshot(s, e);
	case WEFT_DETAIL_ROUND:
	case WEFT_DETAIL_BLOCKED:
	case WEFT_DETAIL_SPIN:
	case WEFT_DETAIL_DIED:
	case WEFT_DETAIL_DATAGRAM:
	default: return true;
	}
}

/* It precedes the creation. */
static bool belong(struct weft_standing *s, const struct weft_event *e)
{
	struct pending *p = promise_of(s, e->a);
	if (!p)
		return false;
	p->is_part |= !p->is_created;
	return set_fact(s, e);
}

static bool is_text_kept(const struct weft_event *e)
{
	return e->op == WEFT_OP_LABEL || e->op == WEFT_OP_NOTE || e->op == WEFT_OP_PENDING || e->op == WEFT_OP_DETAIL ||
	       e->op == WEFT_OP_PAUSE_BEGIN;
}

static bool take(struct weft_standing *s, const struct weft_event *e)
{
	struct weft_event own;
	if (s->keeps_texts && is_text_kept(e)) {
		own = *e;
		if (!keep_text(s, &own.text))
			return false;
		e = &own;
	}
	switch ((enum weft_op)e->op) {
	case WEFT_OP_CREATE:
	case WEFT_OP_PENDING: return add_promise(s, e);
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_CANCEL: end(s, e); return true;
	case WEFT_OP_BECOME: return become(s, e);
	case WEFT_OP_LABEL:
	case WEFT_OP_NOTE: return add_label(s, e);
	case WEFT_OP_SHOULD_RESOLVE:
	case WEFT_OP_LEVEL:
	case WEFT_OP_HOLD: return set_fact(s, e);
	case WEFT_OP_BELONGS: return belong(s, e);
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
	case WEFT_OP_SENT:
	case WEFT_OP_RECEIVED: carry(s, e); return true;
	case WEFT_OP_PAUSE:
	case WEFT_OP_SIGNAL_ONLY:
	case WEFT_OP_COUNT:
	default: return true;
	}
}

/* ---- Those that have left ---- */

/* The one that it has become by now, or NULL: it has ended. */
static const struct pending *alive(const struct weft_standing *s, int64_t id)
{
	const struct pending *p = look_up(s, id);
	return p && !p->has_ended && p->is_created ? p : NULL;
}

/* The same of whom a fact names. */
static const struct pending *named(const struct weft_standing *s, const struct fact *fact)
{
	return fact->birth && fact->birth != birth_of(s, fact->event.b) ? NULL : alive(s, fact->event.b);
}

bool weft_standing_keeps(const struct weft_standing *s, const struct weft_event *told)
{
	const struct pending *p = alive(s, told->a), *other = alive(s, told->b);
	uint32_t at = p ? p->facts : NONE;
	/* Who gathers waits for many, and none of these gives way to another. */
	if (!p || !other || weft_kind_has(p->event.kind, WEFT_TRAIT_GATHERS))
		return true;
	for (; at != NONE; at = s->facts.items[at].next) {
		const struct weft_event *e = &s->facts.items[at].event;
		if (e->op == WEFT_OP_STILL_AWAITS && e->time_ns == told->time_ns && named(s, &s->facts.items[at]) == other)
			break;
	}
	return at != NONE;
}

static void tally(const struct weft_standing *s, const struct pending *p, struct weft_tally *tallies)
{
	if (!s->tally_count || !p->is_created || p->is_part)
		return;
	const uint32_t last = now(s, (uint32_t)(p - s->promises.items));
	const struct pending *end = last == NONE ? p : &s->promises.items[last];
	for (size_t i = 0; i < s->tally_count; i++)
		if (!tallies[i].has_label || weft_str_equal(tallies[i].label, p->event.text))
			weft_tally_add(&tallies[i], p->event.value,
			    end->has_ended && !end->has_become ? end->ended_ns : INT64_MAX, p->has_failed);
}

/* Whether the story of one that has become that by now has not come to its end. */
static bool is_going_on(const struct weft_standing *s, uint32_t last)
{
	return last != NONE && !s->promises.items[last].has_ended;
}

static bool goes_on(const struct weft_standing *s, uint32_t number)
{
	return is_going_on(s, now(s, number));
}

/* Who waits, waits for what that has become: others need not be kept for it. */
static void name_newest(struct weft_standing *s)
{
	for (size_t i = 0; i < s->promises.count; i++)
		for (uint32_t at = s->promises.items[i].facts; at != NONE; at = s->facts.items[at].next) {
			struct fact *fact = &s->facts.items[at];
			const uint8_t op = fact->event.op;
			const struct pending *other = op == WEFT_OP_STILL_AWAITS || op == WEFT_OP_HOLD ? named(s, fact) : NULL;
			fact->event.b = other ? other->event.b : fact->event.b;
			fact->birth = other ? other->birth : fact->birth;
		}
}

/* Whether it may be named again though it became another: libraries of promises go on to name one of a chain. */
static bool stays_named(const struct pending *p)
{
	return p->is_named || !p->is_followed;
}

/* How many of those that became another are too many: a chain may have as many as the program has turns.  Of who was not named
 * since, windows do not tell: few of them are kept. */
struct spare {
	size_t named, others;
};

static struct spare count_spare(const struct weft_standing *s, const uint32_t *lasts)
{
	size_t named = 0, others = 0;
	for (uint32_t i = 0; i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		const bool counts = p->has_become && is_going_on(s, lasts[i]);
		named += counts && stays_named(p);
		others += counts && !stays_named(p);
	}
	return (struct spare){.named = named > NAMED_ALIASES ? named - NAMED_ALIASES : 0,
	    .others = others > OTHER_ALIASES ? others - OTHER_ALIASES : 0};
}

/* Takes one of them away; false: it is not one. */
static bool is_spare(struct spare *spare, const struct pending *p)
{
	size_t *left = stays_named(p) ? &spare->named : &spare->others;
	if (!p->has_become || !*left)
		return false;
	--*left;
	return true;
}

/* Those that have ended leave now and then, so that memory is what is pending at once. */
static bool tidy(struct weft_standing *s)
{
	if (!tidy_texts(s))
		return false;
	if (s->ended < LEAST || s->ended < s->promises.count / 2)
		return true;
	const size_t count = s->promises.count;
	size_t kept = 0;
	struct weft_idmap numbers = {0};
	/* Where each stays, and what it has become by now. */
	uint32_t *places = malloc(2 * count * sizeof *places), *lasts = places ? places + count : NULL;
	bool ok = places != NULL;
	name_newest(s);
	for (uint32_t i = 0; ok && i < count; i++)
		lasts[i] = now(s, i);
	struct spare spare = ok ? count_spare(s, lasts) : (struct spare){0};
	for (size_t i = 0; ok && i < count; i++) {
		const bool stays = is_going_on(s, lasts[i]) && !is_spare(&spare, &s->promises.items[i]);
		places[i] = stays ? (uint32_t)kept++ : NONE;
		if (places[i] == NONE)
			tally(s, &s->promises.items[i], s->tallies);
	}
	for (uint32_t i = 0; ok && i < count; i++) {
		struct pending *p = &s->promises.items[i];
		if (p->has_become && places[i] != NONE)
			p->into = lasts[i];
	}
	for (uint32_t i = 0; ok && i < count; i++) {
		struct pending p = s->promises.items[i];
		if (places[i] == NONE)
			continue;
		if (p.has_become)
			p.into = places[p.into];
		s->promises.items[places[i]] = p;
	}
	/* The map keeps those in an array that are near the newest, as those are that are to come. */
	weft_idmap_expect(&numbers, s->promises.items[count - 1].event.b);
	for (size_t i = kept; ok && i-- > 0;) {
		const int64_t id = s->promises.items[i].event.b;
		ok = weft_idmap_get(&numbers, id) != WEFT_IDMAP_NONE || weft_idmap_set(&numbers, id, (uint32_t)i);
	}
	free(places);
	weft_idmap_finish(ok ? &s->numbers : &numbers);
	if (!ok)
		return false;
	s->promises.count = kept;
	s->numbers = numbers;
	s->ended = 0;
	return true;
}

/* ---- Telling ---- */

static bool tell(struct weft_standing *s, struct weft_event event)
{
	struct weft_event *slot = weft_vec_push(&s->out->events);
	if (slot)
		*slot = event;
	return slot != NULL;
}

static bool tell_belongs(struct weft_standing *s, const struct pending *p)
{
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next)
		if (s->facts.items[at].event.op == WEFT_OP_BELONGS && !tell(s, s->facts.items[at].event))
			return false;
	return true;
}

/* The text of a connection with the position that it has come to. */
static bool text_received(struct weft_standing *s, struct weft_str *text, uint64_t received)
{
	struct weft_carry carry;
	if (!weft_carry_parse(*text, &carry) || carry.received == received)
		return true;
	const size_t kept = (size_t)(carry.peer.ptr + carry.peer.len + 1 - text->ptr),
		     room = kept + sizeof "18446744073709551615";
	char *own = malloc(room), **slot = own ? weft_vec_push(&s->out->texts) : NULL;
	if (!slot) {
		free(own);
		return false;
	}
	*slot = own;
	memcpy(own, text->ptr, kept);
	text->len = (uint32_t)(kept + (size_t)snprintf(own + kept, room - kept, "%" PRIu64, received));
	text->ptr = own;
	return true;
}

/* In the order in which they came. */
static bool tell_facts(struct weft_standing *s, const struct pending *p)
{
	const size_t begin = s->out->events.count;
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next) {
		struct weft_event event = s->facts.items[at].event;
		if (event.op == WEFT_OP_BELONGS)
			continue;
		if (event.op == WEFT_OP_STILL_AWAITS || event.op == WEFT_OP_HOLD) {
			const struct pending *other = named(s, &s->facts.items[at]);
			if (!other)
				continue;
			event.b = other->event.b;
		}
		if (is_connection(&event) && !text_received(s, &event.text, s->facts.items[at].received))
			return false;
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

/* One that became another and may be named again. */
static bool tell_become(struct weft_standing *s, uint32_t number)
{
	const struct pending *p = &s->promises.items[number];
	const bool is_its_id = weft_idmap_get(&s->numbers, p->event.b) == number; /* else that means another one by now */
	if (!p->has_become || !is_its_id || !stays_named(p) || !goes_on(s, number))
		return true;
	const struct weft_event *into = &s->promises.items[now(s, number)].event;
	return (!p->is_created || tell(s, p->event)) &&
	       tell(s, (struct weft_event){.time_ns = p->ended_ns > into->time_ns ? p->ended_ns : into->time_ns,
			   .op = WEFT_OP_BECOME,
			   .site = WEFT_NO_SITE,
			   .stream = into->stream,
			   .a = p->event.b,
			   .b = into->b});
}

static bool tell_all(struct weft_standing *s)
{
	bool ok = true;
	for (size_t i = 0; ok && i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		/* Of a part the owner is told before it is created. */
		if (!p->has_ended)
			ok = tell_belongs(s, p) && (!p->is_created || tell(s, p->event));
	}
	for (uint32_t i = 0; ok && i < s->promises.count; i++)
		ok = tell_become(s, i);
	/* Behind all promises, so that nothing is named before it is told of. */
	for (size_t i = 0; ok && i < s->promises.count; i++)
		ok = !s->promises.items[i].is_created || tell_facts(s, &s->promises.items[i]);
	/* Nobody is named who is not told of: readers would take him for pending. */
	for (size_t i = 0; ok && i < s->counters.count; i++) {
		struct weft_event counter = s->counters.items[i];
		const struct pending *by = alive(s, counter.a);
		counter.a = by ? by->event.b : WEFT_SYSTEM_ID;
		ok = tell(s, counter);
	}
	for (size_t i = 0; ok && i < s->streams.count; i++) {
		const struct stream *stream = &s->streams.items[i];
		struct weft_event runs = stream->runs;
		const struct pending *who = runs.op == WEFT_OP_IDLE ? NULL : alive(s, runs.a);
		runs.a = who ? who->event.b : runs.a;
		const bool is_known = stream->has_run && (who || runs.op == WEFT_OP_IDLE || runs.a == WEFT_SYSTEM_ID);
		ok = (!is_known || tell(s, runs)) && (!stream->is_paused || tell(s, stream->pause));
	}
	return ok;
}

struct weft_standing *weft_standing_create(void)
{
	struct weft_standing *s = calloc(1, sizeof *s);
	if (s) {
		s->free_facts = NONE;
		s->keeps_texts = true;
	}
	return s;
}

static void release(struct weft_standing *s)
{
	for (size_t i = 0; i < s->rooms.count; i++)
		free(s->rooms.items[i]);
	for (size_t i = 0; i < s->counter_names.count; i++)
		free(s->counter_names.items[i]);
	weft_vec_free(&s->rooms);
	weft_vec_free(&s->counter_names);
	weft_vec_free(&s->promises);
	weft_vec_free(&s->facts);
	weft_vec_free(&s->counters);
	weft_vec_free(&s->snapshots);
	weft_vec_free(&s->streams);
	weft_idmap_finish(&s->numbers);
	weft_intern_finish(&s->names);
}

void weft_standing_destroy(struct weft_standing *s)
{
	if (s)
		release(s);
	free(s);
}

int weft_standing_take(struct weft_standing *s, const struct weft_event *events, size_t count)
{
	bool ok = true;
	for (size_t i = 0; ok && i < count; i++)
		ok = take(s, &events[i]);
	return ok && tidy(s) ? WEFT_OK : WEFT_ENOMEM;
}

void weft_standing_time_again(struct weft_standing *s, uint64_t hz, uint64_t now_hz)
{
	for (size_t i = 0; i < s->promises.count; i++) {
		weft_event_time_again(&s->promises.items[i].event, hz, now_hz);
		s->promises.items[i].ended_ns = weft_time_again(s->promises.items[i].ended_ns, hz, now_hz);
	}
	for (size_t i = 0; i < s->facts.count; i++)
		weft_event_time_again(&s->facts.items[i].event, hz, now_hz);
	for (size_t i = 0; i < s->counters.count; i++)
		weft_event_time_again(&s->counters.items[i], hz, now_hz);
	for (size_t i = 0; i < s->snapshots.count; i++)
		weft_event_time_again(&s->snapshots.items[i], hz, now_hz);
	for (size_t i = 0; i < s->streams.count; i++) {
		weft_event_time_again(&s->streams.items[i].runs, hz, now_hz);
		weft_event_time_again(&s->streams.items[i].pause, hz, now_hz);
	}
}

const struct weft_event *weft_standing_snapshots(const struct weft_standing *s, size_t *count)
{
	*count = s->snapshots.count;
	return s->snapshots.items;
}

void weft_standing_count(struct weft_standing *s, struct weft_tally *tallies, size_t count)
{
	s->tallies = tallies;
	s->tally_count = count;
}

void weft_standing_sum(const struct weft_standing *s, struct weft_tally *out)
{
	for (size_t i = 0; i < s->tally_count; i++)
		out[i] = s->tallies[i];
	for (size_t i = 0; i < s->promises.count; i++)
		tally(s, &s->promises.items[i], out);
}

int weft_standing_tell(struct weft_standing *s, struct weft_state *out)
{
	*out = (struct weft_state){0};
	s->out = out;
	return tell_all(s) ? WEFT_OK : WEFT_ENOMEM;
}

int weft_state_before(struct weft_state *out, struct weft_trace *trace, int64_t from_ns)
{
	struct weft_standing s = {.free_facts = NONE};
	const struct weft_event *events;
	size_t n;
	int more = 0, status = WEFT_OK;
	*out = (struct weft_state){0};
	while (status == WEFT_OK && (more = weft_trace_next(trace, &events, &n)) > 0) {
		size_t before = 0;
		while (before < n && events[before].time_ns < from_ns)
			before++;
		status = weft_standing_take(&s, events, before);
		if (before < n)
			break;
	}
	if (status == WEFT_OK)
		status = weft_standing_tell(&s, out);
	release(&s);
	return more < 0 ? more : status;
}

void weft_state_free(struct weft_state *state)
{
	for (size_t i = 0; i < state->texts.count; i++)
		free(state->texts.items[i]);
	weft_vec_free(&state->texts);
	weft_vec_free(&state->events);
}
