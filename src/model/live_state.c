/* live_state.c: keeps the facts in force after the events so far, in the form of events.  A copy of a trace that starts later
 * gets these facts from a checkpoint, and a follower need not keep older events.
 *
 * The state consists of events, not of a model.  Therefore a checkpoint repeats exactly what was recorded, including internal
 * promises and binds.  SPDX-License-Identifier: ISC */
#include "model/live_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/idmap.h"
#include "base/intern.h"
#include "model/model.h"
#include "model/running_stats.h"
#include "trace/connection_detail.h"

#define NONE UINT32_MAX

/* A recorded event about a promise that is still in force, such as an await. */
struct fact {
	struct weft_event event;
	uint32_t next; /* index of the next older fact of the promise, or NONE */
	/* generation of the promise that event.b names, because its id may be reused; 0 if no promise had the id */
	uint32_t generation;
	uint64_t received; /* for a connection: number of bytes received so far; the event's text has an older value */
};

struct pending {
	struct weft_event event; /* a WEFT_OP_PENDING event; its text is the first of the promise's labels and notes */
	int64_t ended_ns;        /* time when the promise ended or became another promise */
	uint32_t facts;          /* index of the newest fact about the promise, or NONE */
	uint32_t generation;     /* number of the promise among all promises that ever existed, counted from 1 */
	uint32_t into;           /* if has_become: index of the promise that it became, or NONE if that is unknown */
	bool is_created;         /* false if only the owner of the promise is known so far */
	bool is_part;
	bool has_ended, has_become, has_failed;
	bool has_run;       /* since its last await */
	bool is_followed;   /* another promise became it */
	bool is_referenced; /* true if an event named the promise after it had become another promise */
	bool is_reported;   /* true if the end of the promise was reported to the observer */
	uint8_t end_op;     /* operation of the event that ended the promise */
};

struct stream {
	struct weft_event runs, pause;
	int64_t since_ns; /* time since which the stream runs the promise in runs.a, or sleeps */
	bool has_run, is_paused;
	bool has_slept, has_loop;
};

enum {
	TEXT_BLOCK_BYTES = 1 << 16,
	MIN_ENDED = 4096,
	MAX_NAMED_ALIASES = 1 << 14,
	MAX_OTHER_ALIASES = 1 << 9,
	MAX_SNAPSHOTS = 64
};

struct weft_live_state {
	struct weft_checkpoint *out;
	WEFT_VEC(struct pending) promises; /* known promises in the order of their creation */
	WEFT_VEC(struct fact) facts;
	uint32_t free_facts;
	struct weft_idmap numbers;
	struct weft_intern names;
	WEFT_VEC(struct weft_event) counters; /* counters, by number of their name */
	WEFT_VEC(struct stream) streams;
	WEFT_VEC(struct weft_event) snapshots;
	struct weft_running_stats *stats; /* statistics of the promises that have left the state; the caller owns them */
	size_t stats_count;
	const struct weft_live_observer *observer; /* or NULL */
	int64_t observed_ns;                       /* time until which the observer already knows ends and runs */
	size_t ended;
	uint32_t generations;
	bool owns_texts;
	WEFT_VEC(char *) text_blocks; /* memory of texts; the last block is used up to block_used */
	size_t block_used, block_size, text_bytes, text_bytes_tidy;
	WEFT_VEC(char *) counter_names;
};

/* ---- Texts ---- */

static bool store_text(struct weft_live_state *s, struct weft_str *text)
{
	if (!s->owns_texts || !text->len)
		return true;
	if (s->block_size - s->block_used < text->len) {
		const size_t size = text->len > TEXT_BLOCK_BYTES ? text->len : TEXT_BLOCK_BYTES;
		char *capacity = malloc(size), **slot = capacity ? weft_vec_push(&s->text_blocks) : NULL;
		if (!slot) {
			free(capacity);
			return false;
		}
		*slot = capacity;
		s->block_used = 0;
		s->block_size = size;
	}
	char *own = s->text_blocks.items[s->text_blocks.count - 1] + s->block_used;
	memcpy(own, text->ptr, text->len);
	s->block_used += text->len;
	s->text_bytes += text->len;
	text->ptr = own;
	return true;
}

/* Copies the texts of the facts that are still in force to new blocks, and frees the old blocks. */
static bool compact_texts(struct weft_live_state *s)
{
	if (s->text_bytes < TEXT_BLOCK_BYTES || s->text_bytes / 2 < s->text_bytes_tidy)
		return true;
	const size_t old = s->text_blocks.count;
	bool ok = true;
	s->block_used = s->block_size = s->text_bytes = 0;
	for (size_t i = 0; ok && i < s->promises.count; i++) {
		ok = store_text(s, &s->promises.items[i].event.text);
		for (uint32_t at = s->promises.items[i].facts; ok && at != NONE; at = s->facts.items[at].next)
			ok = store_text(s, &s->facts.items[at].event.text);
	}
	for (size_t i = 0; ok && i < s->streams.count; i++)
		ok = !s->streams.items[i].is_paused || store_text(s, &s->streams.items[i].pause.text);
	for (size_t i = 0; ok && i < s->snapshots.count; i++)
		ok = store_text(s, &s->snapshots.items[i].text);
	if (!ok)
		return false;
	for (size_t i = 0; i < old; i++)
		free(s->text_blocks.items[i]);
	memmove(s->text_blocks.items, s->text_blocks.items + old, (s->text_blocks.count - old) * sizeof *s->text_blocks.items);
	s->text_blocks.count -= old;
	s->text_bytes_tidy = s->text_bytes;
	return true;
}

/* ---- Facts ---- */

/* Returns the promise that a promise has become by now; NONE if it is unknown.  Shortens the chain of promises that became each
 * other on the way. */
static uint32_t resolve_alias(const struct weft_live_state *s, uint32_t number)
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

/* Finds the promise with the given id, or the promise that it has become. */
static struct pending *find_current(const struct weft_live_state *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id),
		       last = number == WEFT_IDMAP_NONE ? NONE : resolve_alias(s, number);
	return last == NONE ? NULL : &s->promises.items[last];
}

/* Finds the promise for an event that names the id, and notes that the id is still in use. */
static struct pending *find_referenced(struct weft_live_state *s, int64_t id)
{
	uint32_t number = weft_idmap_get(&s->numbers, id);
	struct pending *p = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	if (!p || !p->has_become)
		return p;
	p->is_referenced = true;
	number = resolve_alias(s, number);
	return number == NONE ? NULL : &s->promises.items[number];
}

static void retarget_facts(struct weft_live_state *s);

static struct pending *add_slot(struct weft_live_state *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	const struct pending *before = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	if (before && before->has_become)
		retarget_facts(s); /* awaits of a promise that has become another promise move to that other promise */
	struct pending *slot = weft_vec_push(&s->promises);
	if (!slot || !weft_idmap_set(&s->numbers, id, (uint32_t)s->promises.count - 1))
		return NULL;
	*slot = (struct pending){.event.b = id, .facts = NONE, .generation = ++s->generations};
	return slot;
}

/* Finds the promise with the given id, or adds one. */
static struct pending *get_promise(struct weft_live_state *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	struct pending *slot = number == WEFT_IDMAP_NONE ? NULL : &s->promises.items[number];
	return slot && !slot->has_ended ? slot : add_slot(s, id);
}

/* Removes the fact with the index *at from its list. */
static void drop_fact(struct weft_live_state *s, uint32_t *at)
{
	const uint32_t unused = *at;
	*at = s->facts.items[unused].next;
	s->facts.items[unused].next = s->free_facts;
	s->free_facts = unused;
}

static void drop_facts(struct weft_live_state *s, struct pending *p)
{
	while (p->facts != NONE)
		drop_fact(s, &p->facts);
}

static struct stream *get_stream(struct weft_live_state *s, uint16_t number)
{
	while (s->streams.count <= number) {
		struct stream *fresh = weft_vec_push(&s->streams);
		if (!fresh)
			return NULL;
		*fresh = (struct stream){0};
	}
	return &s->streams.items[number];
}

static bool note_loop(struct weft_live_state *s, const struct weft_event *e)
{
	struct stream *stream = weft_kind_has(e->kind, WEFT_TRAIT_LOOP) ? get_stream(s, e->stream) : NULL;
	if (stream)
		stream->has_loop = true;
	return stream || !weft_kind_has(e->kind, WEFT_TRAIT_LOOP);
}

static bool add_promise(struct weft_live_state *s, const struct weft_event *e)
{
	/* A repeated state dump may use an id from before the promise became another one, or may not know yet that the promise
	 * has ended. */
	const struct pending *known = e->op == WEFT_OP_PENDING ? find_referenced(s, e->b) : NULL;
	if (known && known->is_created && (!known->has_ended || (!known->has_become && e->value <= known->ended_ns)))
		return true;
	struct pending *slot = get_promise(s, e->b);
	if (!slot)
		return false;
	if (slot->is_created) { /* another promise takes over the id, so this promise gets no more events */
		drop_facts(s, slot);
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
	return note_loop(s, e);
}

static bool is_same_fact(const struct weft_event *a, const struct weft_event *b)
{
	return a->op == b->op && a->kind == b->kind && a->b == b->b;
}

/* Removes the facts that are equal to the given event; returns false if there was none. */
static bool remove_fact(struct weft_live_state *s, struct pending *p, const struct weft_event *like)
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

/* Removes a fact of the promise that the id stands for now. */
static void remove_fact_of(struct weft_live_state *s, int64_t id, enum weft_op op, int64_t b)
{
	struct pending *p = find_referenced(s, id);
	const struct pending *other;
	if (!p || remove_fact(s, p, &(struct weft_event){.op = (uint8_t)op, .b = b}) || p->facts == NONE ||
	    !(other = find_referenced(s, b)))
		return;
	for (uint32_t *at = &p->facts; *at != NONE;) {
		const struct weft_event *e = &s->facts.items[*at].event;
		if (e->op == op && find_referenced(s, e->b) == other)
			drop_fact(s, at);
		else
			at = &s->facts.items[*at].next;
	}
}

static uint32_t get_generation(const struct weft_live_state *s, int64_t id)
{
	const uint32_t number = weft_idmap_get(&s->numbers, id);
	return number == WEFT_IDMAP_NONE ? 0 : s->promises.items[number].generation;
}

static bool add_fact(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = find_referenced(s, e->a);
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
	s->facts.items[number] = (struct fact){.event = *e, .next = p->facts, .generation = get_generation(s, e->b)};
	s->facts.items[number].event.a = p->is_created ? p->event.b : e->a;
	p->facts = number;
	return true;
}

/* Sets a fact that a promise can have only once: the newest replaces the older ones. */
static bool set_fact(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = find_referenced(s, e->a);
	if (p)
		remove_fact(s, p, e);
	return add_fact(s, e);
}

static bool is_connection(const struct weft_event *e)
{
	return e->op == WEFT_OP_DETAIL && e->kind == WEFT_DETAIL_CONNECTION;
}

static bool apply_connection(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = find_referenced(s, e->a);
	struct weft_connection_detail parsed;
	if (!p || p->has_ended || !weft_connection_detail_parse(e->text, &parsed))
		return true;
	if (!set_fact(s, e))
		return false;
	s->facts.items[p->facts].received = parsed.received;
	return true;
}

/* Counts received bytes.  A reader of the trace that starts at the checkpoint continues from the recorded byte position. */
static void apply_transfer(struct weft_live_state *s, const struct weft_event *e)
{
	const struct pending *p = find_referenced(s, e->a);
	uint32_t at = p ? p->facts : NONE;
	while (at != NONE && !is_connection(&s->facts.items[at].event))
		at = s->facts.items[at].next;
	if (at == NONE)
		return;
	struct fact *fact = &s->facts.items[at];
	if (e->op == WEFT_OP_SENT)
		fact->event.value = (int64_t)weft_connection_position((uint64_t)fact->event.value, e->value);
	else
		fact->received = weft_connection_position(fact->received, e->value);
}

/* Adds a label.  The first label is the name of the promise; of the other labels the newest are kept. */
static bool add_label(struct weft_live_state *s, const struct weft_event *e)
{
	enum { MAX_LABELS = 16 };
	struct pending *p = find_referenced(s, e->a);
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
	if (count >= MAX_LABELS)
		drop_fact(s, oldest);
	return add_fact(s, e);
}

/* Returns true if the promise that a fact names has ended or is no longer stored. */
static bool is_about_ended(const struct weft_live_state *s, const struct fact *fact)
{
	const struct pending *other = find_current(s, fact->event.b);
	return fact->generation && (fact->generation != get_generation(s, fact->event.b) || !other || other->has_ended);
}

static bool apply_await(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = find_referenced(s, e->a);
	struct weft_event still = *e;
	still.op = WEFT_OP_STILL_AWAITS;
	/* As in the model, a promise that ran after an await now waits for something else. */
	if (p && p->has_run && !weft_kind_has(p->event.kind, WEFT_TRAIT_GATHERS))
		for (uint32_t at = p->facts; at != NONE;) {
			const struct fact *fact = &s->facts.items[at];
			const struct weft_event like = fact->event;
			at = fact->next;
			if (like.op == WEFT_OP_STILL_AWAITS) {
				remove_fact(s, p, &like);
				at = p->facts;
			}
		}
	if (p)
		p->has_run = false;
	/* If the same wait is recorded again, it counts from its first record.  Some waits end without an event, for example if
	 * a connection awaits one read after another; their facts are dropped here, or else they would accumulate. */
	for (uint32_t *at = p ? &p->facts : NULL; at && *at != NONE;) {
		const struct fact *fact = &s->facts.items[*at];
		if (is_same_fact(&fact->event, &still) && fact->generation == get_generation(s, e->b))
			return true;
		if (fact->event.op == WEFT_OP_STILL_AWAITS && is_about_ended(s, fact))
			drop_fact(s, at);
		else
			at = &s->facts.items[*at].next;
	}
	return set_fact(s, &still);
}

static void apply_end(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = find_referenced(s, e->b);
	if (!p || p->has_ended)
		return;
	drop_facts(s, p);
	p->has_ended = true;
	p->has_failed = e->op != WEFT_OP_RESOLVE;
	p->end_op = e->op;
	p->ended_ns = e->time_ns;
	s->ended++;
}

static bool apply_become(struct weft_live_state *s, const struct weft_event *e)
{
	/* The promise started before the trace and is unknown; its id still stands for the promise that it becomes. */
	if (!find_referenced(s, e->a) && weft_idmap_get(&s->numbers, e->a) == WEFT_IDMAP_NONE && !add_slot(s, e->a))
		return false;
	struct pending *p = find_referenced(s, e->a), *into = find_referenced(s, e->b);
	if (!p || p->has_ended || p == into)
		return true;
	/* A should-resolve mark moves to the other promise. */
	struct weft_event should = {.op = WEFT_OP_COUNT};
	for (uint32_t at = p->facts; into && at != NONE; at = s->facts.items[at].next)
		if (s->facts.items[at].event.op == WEFT_OP_SHOULD_RESOLVE)
			should = s->facts.items[at].event;
	drop_facts(s, p);
	p->has_ended = p->has_become = true;
	p->ended_ns = e->time_ns;
	p->into = into ? (uint32_t)(into - s->promises.items) : NONE;
	if (into)
		into->is_followed = true;
	s->ended++;
	should.a = e->b;
	return should.op != WEFT_OP_SHOULD_RESOLVE || set_fact(s, &should);
}

/* Returns the id of the promise that the stream runs; the system if it sleeps. */
static int64_t get_running_id(const struct stream *stream)
{
	return stream->runs.op == WEFT_OP_IDLE ? WEFT_SYSTEM_ID : stream->runs.a;
}

/* Reports to the observer what the stream did since since_ns. */
static bool report_run(struct weft_live_state *s, const struct weft_event *e, const struct stream *stream)
{
	struct weft_ended_run run = {.start_ns = stream->since_ns,
	    .end_ns = e->time_ns,
	    .stream = e->stream,
	    .kind = WEFT_KIND_UNKNOWN,
	    .is_sleep = get_running_id(stream) == WEFT_SYSTEM_ID,
	    .has_slept = stream->has_slept,
	    .is_loop_thread = stream->has_loop};
	const struct pending *p = run.is_sleep ? NULL : find_current(s, stream->runs.a);
	if (p) {
		run.kind = p->event.kind;
		/* If the promise ended while it ran, the run ends at the promise's end. */
		if (p->has_ended && p->ended_ns >= run.start_ns && p->ended_ns < run.end_ns)
			run.end_ns = p->ended_ns;
	}
	return run.end_ns <= s->observed_ns || s->observer->add_run(s->observer->ctx, &run);
}

/* Reports a pause if no promise ran; a pause while a promise runs is part of that promise's run. */
static bool report_pause(struct weft_live_state *s, const struct weft_event *e, int64_t start_ns, const struct stream *stream)
{
	const bool runs = stream->has_run && get_running_id(stream) != WEFT_SYSTEM_ID;
	const struct weft_ended_run pause = {.start_ns = start_ns,
	    .end_ns = e->time_ns,
	    .stream = e->stream,
	    .kind = WEFT_KIND_UNKNOWN,
	    .is_pause = true,
	    .has_slept = stream->has_slept,
	    .is_loop_thread = stream->has_loop};
	return !s->observer || runs || e->time_ns <= s->observed_ns || s->observer->add_run(s->observer->ctx, &pause);
}

static bool apply_pause(struct weft_live_state *s, const struct weft_event *e)
{
	struct stream *stream = get_stream(s, e->stream);
	if (!stream)
		return false;
	bool ok = true;
	if (e->op == WEFT_OP_PAUSE)
		return report_pause(s, e, e->time_ns - e->value, stream);
	if (e->op == WEFT_OP_PAUSE_END && stream->is_paused)
		ok = report_pause(s, e, stream->pause.time_ns, stream);
	stream->is_paused = e->op == WEFT_OP_PAUSE_BEGIN;
	stream->pause = *e;
	return ok;
}

static bool apply_run(struct weft_live_state *s, const struct weft_event *e, int64_t id)
{
	struct stream *stream = get_stream(s, e->stream);
	if (!stream)
		return false;
	struct pending *p = find_referenced(s, id);
	if (p)
		p->has_run = true;
	const bool runs_on = stream->has_run && get_running_id(stream) == id;
	if (s->observer && stream->has_run && !runs_on && !report_run(s, e, stream))
		return false;
	stream->since_ns = runs_on ? stream->since_ns : e->time_ns;
	stream->has_slept |= id == WEFT_SYSTEM_ID;
	stream->has_run = true;
	if (e->op == WEFT_OP_IDLE)
		stream->runs = *e;
	else
		stream->runs = (struct weft_event){
		    .time_ns = e->time_ns, .op = WEFT_OP_RUN, .a = id, .site = WEFT_NO_SITE, .stream = e->stream};
	return true;
}

static bool add_counter(struct weft_live_state *s, const struct weft_event *e)
{
	struct weft_event counter = *e;
	char *own = s->owns_texts ? malloc(e->text.len + 1u) : NULL;
	char **slot = own ? weft_vec_push(&s->counter_names) : NULL;
	if (s->owns_texts && !slot) {
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

/* Adds up the changes of a counter; without an initial value the sum remains a change. */
static bool apply_counter(struct weft_live_state *s, const struct weft_event *e)
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

static bool add_snapshot(struct weft_live_state *s, const struct weft_event *e)
{
	if (s->snapshots.count == MAX_SNAPSHOTS) {
		s->snapshots.count--;
		memmove(s->snapshots.items, s->snapshots.items + 1, s->snapshots.count * sizeof *s->snapshots.items);
	}
	struct weft_event *slot = weft_vec_push(&s->snapshots);
	if (slot)
		*slot = *e;
	return slot != NULL;
}

static bool apply_detail(struct weft_live_state *s, const struct weft_event *e)
{
	switch ((enum weft_detail)e->kind) {
	case WEFT_DETAIL_CONNECTION: return apply_connection(s, e);
	case WEFT_DETAIL_STACK:
	case WEFT_DETAIL_TRACE_PARENT:
	case WEFT_DETAIL_BOUND: return set_fact(s, e);
	case WEFT_DETAIL_INFERRED:
	case WEFT_DETAIL_EXPECTED:
	case WEFT_DETAIL_MESSAGE: return add_fact(s, e);
	case WEFT_DETAIL_SNAPSHOT: return add_snapshot(s, e);
	case WEFT_DETAIL_ROUND:
	case WEFT_DETAIL_BLOCKED:
	case WEFT_DETAIL_SPIN:
	case WEFT_DETAIL_DIED:
	case WEFT_DETAIL_CLAIM:
	case WEFT_DETAIL_DATAGRAM:
	default: return true;
	}
}

/* Applies the owner of a promise, which is recorded before the promise's creation. */
static bool apply_belongs(struct weft_live_state *s, const struct weft_event *e)
{
	struct pending *p = get_promise(s, e->a);
	if (!p)
		return false;
	p->is_part |= !p->is_created;
	return set_fact(s, e);
}

static bool needs_text(const struct weft_event *e)
{
	return e->op == WEFT_OP_LABEL || e->op == WEFT_OP_NOTE || e->op == WEFT_OP_PENDING || e->op == WEFT_OP_DETAIL ||
	       e->op == WEFT_OP_PAUSE_BEGIN;
}

static bool apply_event(struct weft_live_state *s, const struct weft_event *e)
{
	struct weft_event own;
	if (s->owns_texts && needs_text(e)) {
		own = *e;
		if (!store_text(s, &own.text))
			return false;
		e = &own;
	}
	switch ((enum weft_op)e->op) {
	case WEFT_OP_CREATE:
	case WEFT_OP_PENDING: return add_promise(s, e);
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_CANCEL: apply_end(s, e); return true;
	case WEFT_OP_BECOME: return apply_become(s, e);
	case WEFT_OP_LABEL:
	case WEFT_OP_NOTE: return add_label(s, e);
	case WEFT_OP_SHOULD_RESOLVE:
	case WEFT_OP_LEVEL:
	case WEFT_OP_HOLD: return set_fact(s, e);
	case WEFT_OP_BELONGS: return apply_belongs(s, e);
	case WEFT_OP_RELEASE: remove_fact_of(s, e->a, WEFT_OP_HOLD, e->b); return true;
	case WEFT_OP_AWAIT:
	case WEFT_OP_STILL_AWAITS: return apply_await(s, e);
	case WEFT_OP_AWAITS_NO_MORE: remove_fact_of(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return true;
	case WEFT_OP_READ_LATER: remove_fact_of(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return true;
	case WEFT_OP_READ: remove_fact_of(s, e->a, WEFT_OP_STILL_AWAITS, e->b); return apply_run(s, e, e->a);
	case WEFT_OP_RUN:
	case WEFT_OP_RESUME: return apply_run(s, e, e->a);
	case WEFT_OP_SIGNAL: return apply_run(s, e, e->b);
	case WEFT_OP_IDLE: return apply_run(s, e, WEFT_SYSTEM_ID);
	case WEFT_OP_PAUSE:
	case WEFT_OP_PAUSE_BEGIN:
	case WEFT_OP_PAUSE_END: return apply_pause(s, e);
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD: return apply_counter(s, e);
	case WEFT_OP_DETAIL: return apply_detail(s, e);
	case WEFT_OP_SENT:
	case WEFT_OP_RECEIVED: apply_transfer(s, e); return true;
	case WEFT_OP_SIGNAL_ONLY:
	case WEFT_OP_COUNT:
	default: return true;
	}
}

/* ---- Promises that have left the state ---- */

/* Finds the pending promise that the id stands for now; NULL if it has ended. */
static const struct pending *find_pending(const struct weft_live_state *s, int64_t id)
{
	const struct pending *p = find_current(s, id);
	return p && !p->has_ended && p->is_created ? p : NULL;
}

/* Finds the pending promise that a fact names. */
static const struct pending *find_referenced_pending(const struct weft_live_state *s, const struct fact *fact)
{
	return fact->generation && fact->generation != get_generation(s, fact->event.b) ? NULL : find_pending(s, fact->event.b);
}

bool weft_live_state_has_await(const struct weft_live_state *s, const struct weft_event *sought)
{
	const struct pending *p = find_pending(s, sought->a), *other = find_pending(s, sought->b);
	uint32_t at = p ? p->facts : NONE;
	/* A promise that gathers results awaits many promises, and no await replaces another. */
	if (!p || !other || weft_kind_has(p->event.kind, WEFT_TRAIT_GATHERS))
		return true;
	for (; at != NONE; at = s->facts.items[at].next) {
		const struct weft_event *e = &s->facts.items[at].event;
		if (e->op == WEFT_OP_STILL_AWAITS && e->time_ns == sought->time_ns &&
		    find_referenced_pending(s, &s->facts.items[at]) == other)
			break;
	}
	return at != NONE;
}

static void add_to_stats(const struct weft_live_state *s, const struct pending *p, struct weft_running_stats *stats)
{
	if (!s->stats_count || !p->is_created || p->is_part)
		return;
	const uint32_t last = resolve_alias(s, (uint32_t)(p - s->promises.items));
	const struct pending *end = last == NONE ? p : &s->promises.items[last];
	for (size_t i = 0; i < s->stats_count; i++)
		if (!stats[i].has_label || weft_str_equal(stats[i].label, p->event.text))
			weft_running_stats_add(&stats[i], p->event.value,
			    end->has_ended && !end->has_become ? end->ended_ns : INT64_MAX, p->has_failed);
}

/* Reports the end of a promise to the observer, if it has ended and the end is not reported yet. */
static bool report_end(struct weft_live_state *s, struct pending *p)
{
	if (!s->observer || p->is_reported || !p->has_ended || !p->is_created || p->is_part)
		return true;
	const uint32_t last = resolve_alias(s, (uint32_t)(p - s->promises.items));
	const struct pending *end = last == NONE ? p : &s->promises.items[last];
	if (!end->has_ended || end->has_become)
		return true;
	p->is_reported = true;
	const struct weft_ended_promise ended = {.label = p->event.text,
	    .start_ns = p->event.value,
	    .end_ns = end->ended_ns,
	    .kind = p->event.kind,
	    .op = end->end_op};
	return ended.end_ns <= s->observed_ns || s->observer->add_end(s->observer->ctx, &ended);
}

/* Returns true if the last promise of a chain of promises that became each other is pending. */
static bool is_chain_pending(const struct weft_live_state *s, uint32_t last)
{
	return last != NONE && !s->promises.items[last].has_ended;
}

static bool is_pending(const struct weft_live_state *s, uint32_t number)
{
	return is_chain_pending(s, resolve_alias(s, number));
}

/* Makes awaits and locks refer to the promises that their targets have become, so that the targets need not be kept. */
static void retarget_facts(struct weft_live_state *s)
{
	for (size_t i = 0; i < s->promises.count; i++)
		for (uint32_t at = s->promises.items[i].facts; at != NONE; at = s->facts.items[at].next) {
			struct fact *fact = &s->facts.items[at];
			const uint8_t op = fact->event.op;
			const struct pending *other =
			    op == WEFT_OP_STILL_AWAITS || op == WEFT_OP_HOLD ? find_referenced_pending(s, fact) : NULL;
			fact->event.b = other ? other->event.b : fact->event.b;
			fact->generation = other ? other->generation : fact->generation;
		}
}

/* Returns true if events may still name a promise that became another one: libraries of promises keep naming one promise of a
 * chain. */
static bool may_be_referenced(const struct pending *p)
{
	return p->is_referenced || !p->is_followed;
}

/* Numbers of the promises above the limits that became other promises: a chain can have one for each turn of the program's
 * loop.  Only few of the promises that no event named again are kept. */
struct excess_aliases {
	size_t named, others;
};

static struct excess_aliases count_excess_aliases(const struct weft_live_state *s, const uint32_t *lasts)
{
	size_t named = 0, others = 0;
	for (uint32_t i = 0; i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		const bool counts = p->has_become && is_chain_pending(s, lasts[i]);
		named += counts && may_be_referenced(p);
		others += counts && !may_be_referenced(p);
	}
	return (struct excess_aliases){.named = named > MAX_NAMED_ALIASES ? named - MAX_NAMED_ALIASES : 0,
	    .others = others > MAX_OTHER_ALIASES ? others - MAX_OTHER_ALIASES : 0};
}

/* Counts one promise as removed from the excess; returns false if it does not belong to the excess. */
static bool take_excess_alias(struct excess_aliases *excess_aliases, const struct pending *p)
{
	size_t *left = may_be_referenced(p) ? &excess_aliases->named : &excess_aliases->others;
	if (!p->has_become || !*left)
		return false;
	--*left;
	return true;
}

/* Drops ended promises now and then, so that memory is proportional to the number of pending promises. */
static bool compact_promises(struct weft_live_state *s)
{
	if (!compact_texts(s))
		return false;
	if (s->ended < MIN_ENDED || s->ended < s->promises.count / 2)
		return true;
	const size_t count = s->promises.count;
	size_t retained = 0;
	struct weft_idmap numbers = {0};
	/* new_indices has each promise's index after the compaction; lasts has the promise that each has become. */
	uint32_t *new_indices = malloc(2 * count * sizeof *new_indices), *lasts = new_indices ? new_indices + count : NULL;
	bool ok = new_indices != NULL;
	retarget_facts(s);
	for (uint32_t i = 0; ok && i < count; i++)
		lasts[i] = resolve_alias(s, i);
	struct excess_aliases excess_aliases = ok ? count_excess_aliases(s, lasts) : (struct excess_aliases){0};
	for (size_t i = 0; ok && i < count; i++) {
		const bool stays = is_chain_pending(s, lasts[i]) && !take_excess_alias(&excess_aliases, &s->promises.items[i]);
		new_indices[i] = stays ? (uint32_t)retained++ : NONE;
		if (new_indices[i] == NONE) {
			add_to_stats(s, &s->promises.items[i], s->stats);
			ok = report_end(s, &s->promises.items[i]);
		}
	}
	for (uint32_t i = 0; ok && i < count; i++) {
		struct pending *p = &s->promises.items[i];
		if (p->has_become && new_indices[i] != NONE)
			p->into = lasts[i];
	}
	for (uint32_t i = 0; ok && i < count; i++) {
		struct pending p = s->promises.items[i];
		if (new_indices[i] == NONE)
			continue;
		if (p.has_become)
			p.into = new_indices[p.into];
		s->promises.items[new_indices[i]] = p;
	}
	/* The map has an array for ids near the newest id, where new ids will be too. */
	weft_idmap_expect(&numbers, s->promises.items[count - 1].event.b);
	for (size_t i = retained; ok && i-- > 0;) {
		const int64_t id = s->promises.items[i].event.b;
		ok = weft_idmap_get(&numbers, id) != WEFT_IDMAP_NONE || weft_idmap_set(&numbers, id, (uint32_t)i);
	}
	free(new_indices);
	weft_idmap_finish(ok ? &s->numbers : &numbers);
	if (!ok)
		return false;
	s->promises.count = retained;
	s->numbers = numbers;
	s->ended = 0;
	return true;
}

/* ---- Checkpoint ---- */

static bool emit_event(struct weft_live_state *s, struct weft_event event)
{
	struct weft_event *slot = weft_vec_push(&s->out->events);
	if (slot)
		*slot = event;
	return slot != NULL;
}

static bool emit_belongs(struct weft_live_state *s, const struct pending *p)
{
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next)
		if (s->facts.items[at].event.op == WEFT_OP_BELONGS && !emit_event(s, s->facts.items[at].event))
			return false;
	return true;
}

/* Writes the current position of received bytes into the text of a connection. */
static bool set_received_position(struct weft_live_state *s, struct weft_str *text, uint64_t received)
{
	struct weft_connection_detail parsed;
	if (!weft_connection_detail_parse(*text, &parsed) || parsed.received == received)
		return true;
	const size_t retained = (size_t)(parsed.peer.ptr + parsed.peer.len + 1 - text->ptr),
		     capacity = retained + sizeof "18446744073709551615";
	char *own = malloc(capacity), **slot = own ? weft_vec_push(&s->out->texts) : NULL;
	if (!slot) {
		free(own);
		return false;
	}
	*slot = own;
	memcpy(own, text->ptr, retained);
	text->len = (uint32_t)(retained + (size_t)snprintf(own + retained, capacity - retained, "%" PRIu64, received));
	text->ptr = own;
	return true;
}

/* Emits the events of the facts of a promise, the oldest first. */
static bool emit_facts(struct weft_live_state *s, const struct pending *p)
{
	const size_t begin = s->out->events.count;
	for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next) {
		struct weft_event event = s->facts.items[at].event;
		if (event.op == WEFT_OP_BELONGS)
			continue;
		if (event.op == WEFT_OP_STILL_AWAITS || event.op == WEFT_OP_HOLD) {
			const struct pending *other = find_referenced_pending(s, &s->facts.items[at]);
			if (!other)
				continue;
			event.b = other->event.b;
		}
		if (is_connection(&event) && !set_received_position(s, &event.text, s->facts.items[at].received))
			return false;
		if (!emit_event(s, event))
			return false;
	}
	for (size_t i = begin, k = s->out->events.count; i + 1 < k; i++) {
		const struct weft_event swapped = s->out->events.items[i];
		s->out->events.items[i] = s->out->events.items[--k];
		s->out->events.items[k] = swapped;
	}
	return true;
}

/* Emits an event for a promise that became another promise, if events may still name it. */
static bool emit_become(struct weft_live_state *s, uint32_t number)
{
	const struct pending *p = &s->promises.items[number];
	/* false if the id now stands for a newer promise */
	const bool is_its_id = weft_idmap_get(&s->numbers, p->event.b) == number;
	if (!p->has_become || !is_its_id || !may_be_referenced(p) || !is_pending(s, number))
		return true;
	const struct weft_event *into = &s->promises.items[resolve_alias(s, number)].event;
	return (!p->is_created || emit_event(s, p->event)) &&
	       emit_event(s, (struct weft_event){.time_ns = p->ended_ns > into->time_ns ? p->ended_ns : into->time_ns,
				 .op = WEFT_OP_BECOME,
				 .site = WEFT_NO_SITE,
				 .stream = into->stream,
				 .a = p->event.b,
				 .b = into->b});
}

static bool emit_all(struct weft_live_state *s)
{
	bool ok = true;
	for (size_t i = 0; ok && i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		/* The owner of an internal promise is emitted before the promise's creation. */
		if (!p->has_ended)
			ok = emit_belongs(s, p) && (!p->is_created || emit_event(s, p->event));
	}
	for (uint32_t i = 0; ok && i < s->promises.count; i++)
		ok = emit_become(s, i);
	/* Facts are emitted after all promises, so that no promise is named before it exists. */
	for (size_t i = 0; ok && i < s->promises.count; i++)
		ok = !s->promises.items[i].is_created || emit_facts(s, &s->promises.items[i]);
	/* A counter's event must not name an unknown promise: readers would take it for a pending promise. */
	for (size_t i = 0; ok && i < s->counters.count; i++) {
		struct weft_event counter = s->counters.items[i];
		const struct pending *by = find_pending(s, counter.a);
		counter.a = by ? by->event.b : WEFT_SYSTEM_ID;
		ok = emit_event(s, counter);
	}
	for (size_t i = 0; ok && i < s->streams.count; i++) {
		const struct stream *stream = &s->streams.items[i];
		struct weft_event runs = stream->runs;
		const struct pending *running = runs.op == WEFT_OP_IDLE ? NULL : find_pending(s, runs.a);
		runs.a = running ? running->event.b : runs.a;
		const bool is_known = stream->has_run && (running || runs.op == WEFT_OP_IDLE || runs.a == WEFT_SYSTEM_ID);
		ok = (!is_known || emit_event(s, runs)) && (!stream->is_paused || emit_event(s, stream->pause));
	}
	return ok;
}

struct weft_live_state *weft_live_state_create(void)
{
	struct weft_live_state *s = calloc(1, sizeof *s);
	if (s) {
		s->free_facts = NONE;
		s->owns_texts = true;
	}
	return s;
}

static void release_members(struct weft_live_state *s)
{
	for (size_t i = 0; i < s->text_blocks.count; i++)
		free(s->text_blocks.items[i]);
	for (size_t i = 0; i < s->counter_names.count; i++)
		free(s->counter_names.items[i]);
	weft_vec_free(&s->text_blocks);
	weft_vec_free(&s->counter_names);
	weft_vec_free(&s->promises);
	weft_vec_free(&s->facts);
	weft_vec_free(&s->counters);
	weft_vec_free(&s->snapshots);
	weft_vec_free(&s->streams);
	weft_idmap_finish(&s->numbers);
	weft_intern_finish(&s->names);
}

void weft_live_state_destroy(struct weft_live_state *s)
{
	if (s)
		release_members(s);
	free(s);
}

int weft_live_state_apply(struct weft_live_state *s, const struct weft_event *events, size_t count)
{
	bool ok = true;
	for (size_t i = 0; ok && i < count; i++)
		ok = apply_event(s, &events[i]);
	return ok && compact_promises(s) ? WEFT_OK : WEFT_ENOMEM;
}

void weft_live_state_rescale_times(struct weft_live_state *s, uint64_t hz, uint64_t now_hz)
{
	for (size_t i = 0; i < s->promises.count; i++) {
		weft_event_rescale_times(&s->promises.items[i].event, hz, now_hz);
		s->promises.items[i].ended_ns = weft_rescale_time(s->promises.items[i].ended_ns, hz, now_hz);
	}
	for (size_t i = 0; i < s->facts.count; i++)
		weft_event_rescale_times(&s->facts.items[i].event, hz, now_hz);
	for (size_t i = 0; i < s->counters.count; i++)
		weft_event_rescale_times(&s->counters.items[i], hz, now_hz);
	for (size_t i = 0; i < s->snapshots.count; i++)
		weft_event_rescale_times(&s->snapshots.items[i], hz, now_hz);
	for (size_t i = 0; i < s->streams.count; i++) {
		weft_event_rescale_times(&s->streams.items[i].runs, hz, now_hz);
		weft_event_rescale_times(&s->streams.items[i].pause, hz, now_hz);
		s->streams.items[i].since_ns = weft_rescale_time(s->streams.items[i].since_ns, hz, now_hz);
	}
	if (s->observed_ns != INT64_MIN)
		s->observed_ns = weft_rescale_time(s->observed_ns, hz, now_hz);
}

const struct weft_event *weft_live_state_snapshots(const struct weft_live_state *s, size_t *count)
{
	*count = s->snapshots.count;
	return s->snapshots.items;
}

void weft_live_state_set_stats(struct weft_live_state *s, struct weft_running_stats *stats, size_t count)
{
	s->stats = stats;
	s->stats_count = count;
}

void weft_live_state_sum_stats(const struct weft_live_state *s, struct weft_running_stats *out)
{
	for (size_t i = 0; i < s->stats_count; i++)
		out[i] = s->stats[i];
	for (size_t i = 0; i < s->promises.count; i++)
		add_to_stats(s, &s->promises.items[i], out);
}

void weft_live_state_set_observer(struct weft_live_state *s, const struct weft_live_observer *observer, int64_t after_ns)
{
	s->observer = observer;
	s->observed_ns = after_ns;
}

int weft_live_state_report_ends(struct weft_live_state *s)
{
	bool ok = true;
	for (size_t i = 0; ok && s->observer && i < s->promises.count; i++)
		ok = report_end(s, &s->promises.items[i]);
	return ok ? WEFT_OK : WEFT_ENOMEM;
}

void weft_live_state_each_pending(
    const struct weft_live_state *s, bool (*add)(void *ctx, const struct weft_live_promise *promise), void *ctx)
{
	bool goes_on = true;
	for (size_t i = 0; goes_on && i < s->promises.count; i++) {
		const struct pending *p = &s->promises.items[i];
		if (p->has_ended || !p->is_created || p->is_part)
			continue;
		struct weft_live_promise promise = {
		    .label = p->event.text, .start_ns = p->event.value, .level = -1, .bound = -1, .kind = p->event.kind};
		for (uint32_t at = p->facts; at != NONE; at = s->facts.items[at].next) {
			const struct weft_event *e = &s->facts.items[at].event;
			if (e->op == WEFT_OP_LEVEL)
				promise.level = e->value;
			else if (e->op == WEFT_OP_DETAIL && e->kind == WEFT_DETAIL_BOUND)
				promise.bound = e->value;
		}
		goes_on = add(ctx, &promise);
	}
}

const struct weft_event *weft_live_state_counters(const struct weft_live_state *s, size_t *count)
{
	*count = s->counters.count;
	return s->counters.items;
}

size_t weft_live_state_stream_count(const struct weft_live_state *s)
{
	return s->streams.count;
}

int64_t weft_live_state_runs_since_ns(const struct weft_live_state *s, uint16_t stream, bool *is_loop_thread)
{
	const struct stream *at = &s->streams.items[stream];
	*is_loop_thread = at->has_loop;
	return at->has_run && get_running_id(at) != WEFT_SYSTEM_ID ? at->since_ns : INT64_MAX;
}

int weft_live_state_checkpoint(struct weft_live_state *s, struct weft_checkpoint *out)
{
	*out = (struct weft_checkpoint){0};
	s->out = out;
	return emit_all(s) ? WEFT_OK : WEFT_ENOMEM;
}

int weft_checkpoint_before(struct weft_checkpoint *out, struct weft_trace *trace, int64_t from_ns)
{
	struct weft_live_state s = {.free_facts = NONE};
	const struct weft_event *events;
	size_t n;
	int more = 0, status = WEFT_OK;
	*out = (struct weft_checkpoint){0};
	while (status == WEFT_OK && (more = weft_trace_next(trace, &events, &n)) > 0) {
		size_t before = 0;
		while (before < n && events[before].time_ns < from_ns)
			before++;
		status = weft_live_state_apply(&s, events, before);
		if (before < n)
			break;
	}
	if (status == WEFT_OK)
		status = weft_live_state_checkpoint(&s, out);
	release_members(&s);
	return more < 0 ? more : status;
}

void weft_checkpoint_free(struct weft_checkpoint *state)
{
	for (size_t i = 0; i < state->texts.count; i++)
		free(state->texts.items[i]);
	weft_vec_free(&state->texts);
	weft_vec_free(&state->events);
}
