/* build.c: applies events to a model, one by one.
 *
 * Before a batch of events, memory is reserved for the most items that the batch can add.  Therefore, applying one event
 * allocates memory only in the tables of ids and texts, and in rarely used arrays.  SPDX-License-Identifier: ISC */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/known_strings.h"
#include "model/kernel.h"
#include "model/private.h"
#include "wire/wire.h"

/* Times since the first event are limited to 73 years, so that the difference of any two times cannot overflow. */
#define MAX_TIME_NS (INT64_MAX / 4)

static uint32_t add_promise(struct weft__build *b, int64_t id)
{
	uint32_t p = (uint32_t)b->promises.count++;
	b->promises.items[p] = (struct weft_promise){.id = id,
	    .created_by = WEFT_SYSTEM,
	    .parent = WEFT_SYSTEM,
	    .became = WEFT_NONE,
	    .failure = WEFT_NONE,
	    .site = WEFT_NONE,
	    .weft__into = p,
	    .weft__last_link = WEFT_NONE,
	    .kind = WEFT_KIND_PREEXISTING,
	    .flags = WEFT_PROMISE_CREATION_DRAWN | WEFT_PROMISE_START_UNKNOWN};
	return p;
}

/* Finds the promise that has the event's id at that time, or adds it.  A promise without a recorded creation existed before the
 * trace began. */
static int get_promise(struct weft__build *b, const struct weft_event *ev, int64_t id, uint32_t *out)
{
	uint32_t p = id == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_idmap_get(&b->priv->ids, id);
	if (p == WEFT_IDMAP_NONE) {
		if (!weft_idmap_set(&b->priv->ids, id, (uint32_t)b->promises.count))
			return WEFT_ENOMEM;
		p = add_promise(b, id);
		b->promises.items[p].stream = ev->stream;
	}
	*out = weft__current_promise(b, p);
	return WEFT_OK;
}

static void note_activity(struct weft__build *b, uint32_t p, int64_t time_ns)
{
	if (b->promises.items[p].end == WEFT_END_PENDING)
		b->promises.items[p].weft__active_ns = time_ns;
}

/* Interns a text.  A literal usually has the same address each time, so a cache of recent addresses saves hashing its text. */
static int intern_text(struct weft__build *b, struct weft_str text, uint32_t *out)
{
	uintptr_t place = (uintptr_t)text.ptr;
	struct weft__recent_text *recent = &b->recent[(place ^ place >> 6) % WEFT__RECENT_TEXTS];
	if (recent->text.ptr != text.ptr || recent->text.len != text.len || !text.ptr) {
		uint32_t number = weft_intern(&b->priv->texts, text);
		if (number == WEFT_INTERN_FAILED)
			return WEFT_ENOMEM;
		*recent = (struct weft__recent_text){text, number};
	}
	*out = recent->number;
	return WEFT_OK;
}

/* Returns the site that was recorded for this event of promise `by`, or WEFT_NONE. */
static uint32_t take_site(struct weft__build *b, uint16_t stream, int64_t by)
{
	struct weft__stream_state *s = &b->streams.items[stream];
	const uint32_t site = s->site_by == by ? s->site : WEFT_NONE;
	s->site = WEFT_NONE;
	return site;
}

static void add_link(
    struct weft__build *b, const struct weft_event *ev, int64_t time_ns, enum weft_link_kind kind, uint32_t from, uint32_t to)
{
	assert(b->links.count < b->links.capacity && b->links.items);
	struct weft_promise *promise = &b->promises.items[from];
	struct weft_link *last = promise->weft__last_link == WEFT_NONE ? NULL : &b->links.items[promise->weft__last_link];
	const uint32_t site = kind == WEFT_LINK_AWAIT ? take_site(b, ev->stream, ev->a) : WEFT_NONE;
	if (kind == WEFT_LINK_READ && last && last->kind == WEFT_LINK_AWAIT && last->to == to) {
		last->kind = WEFT__LINK_DROPPED;
		b->links_dropped++;
	}
	promise->weft__last_link = (uint32_t)b->links.count;
	b->links.items[b->links.count++] = (struct weft_link){
	    .time_ns = time_ns, .from = from, .to = to, .stream = ev->stream, .kind = (uint8_t)kind, .site = site};
	note_activity(b, from, time_ns);
}

static void add_label(struct weft__build *b, uint32_t owner, struct weft_label label)
{
	b->labels.items[b->labels.count++] = label;
	b->label_owners.items[b->label_owners.count++] = owner;
}

static int64_t max_time(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void count_stream_activity(struct weft__build *b, uint32_t running, size_t change)
{
	if (running != WEFT_NONE)
		*(running == WEFT_SYSTEM ? &b->streams_asleep : &b->streams_awake) += change;
}

static void update_lull(struct weft__build *b, int64_t time_ns, uint32_t from, uint32_t to)
{
	bool was = weft__is_lull(b);
	count_stream_activity(b, from, (size_t)-1);
	count_stream_activity(b, to, 1);
	bool is = weft__is_lull(b);
	if (was && !is)
		b->lulls.items[b->lulls.count - 1].end_ns = time_ns;
	if (!was && is)
		b->lulls.items[b->lulls.count++] =
		    (struct weft_interval){.start_ns = time_ns, .end_ns = time_ns, .text = WEFT_NONE};
}

/* Ends the time in which it is unknown whether the stream's thread works for the running promise. */
static void end_guess(struct weft__build *b, struct weft__stream_state *s, int64_t time_ns)
{
	if (s->has_guess)
		b->claims.items[s->guess].end_ns = time_ns;
	s->has_guess = false;
}

/* Ends the current run of the stream.  If the promise ended while it ran, the run ends at the promise's end. */
static void end_run(struct weft__build *b, struct weft__stream_state *s, int64_t time_ns)
{
	end_guess(b, s, time_ns);
	const struct weft_promise *promise = &b->promises.items[s->running];
	struct weft_run *running = &b->runs.items[s->run];
	running->end_ns = time_ns;
	if (promise->end != WEFT_END_PENDING && promise->end_ns < time_ns)
		running->end_ns = max_time(running->start_ns, promise->end_ns);
}

/* Sets the promise that runs on a stream from now on; WEFT_NONE if it is unknown. */
static void set_running(struct weft__build *b, uint16_t stream, int64_t time_ns, uint32_t next)
{
	struct weft__stream_state *s = &b->streams.items[stream];
	if (s->running == next)
		return;
	s->transfer_ns = INT64_MIN;
	if (s->running != WEFT_NONE) {
		end_run(b, s, time_ns);
		note_activity(b, s->running, time_ns);
		if (s->running == WEFT_SYSTEM)
			b->sleeps.items[s->sleep].end_ns = time_ns;
	}
	update_lull(b, time_ns, s->running, next);
	s->running = next;
	s->has_claim &= next != WEFT_SYSTEM;
	if (next == WEFT_NONE)
		return;
	s->run = b->runs.count;
	b->runs.items[b->runs.count++] = (struct weft_run){time_ns, time_ns};
	b->run_owners.items[b->run_owners.count++] = next;
	if (b->run_streams.capacity)
		b->run_streams.items[b->run_streams.count++] = stream;
	if (next == WEFT_SYSTEM) {
		s->sleep = b->sleeps.count;
		b->sleeps.items[b->sleeps.count++] =
		    (struct weft_interval){.start_ns = time_ns, .end_ns = time_ns, .text = WEFT_NONE, .stream = stream};
	}
}

/* Ends the current run of the stream, and begins another run of the same promise. */
static void split_run(struct weft__build *b, uint16_t stream, int64_t time_ns)
{
	struct weft__stream_state *s = &b->streams.items[stream];
	end_run(b, s, time_ns);
	s->run = b->runs.count;
	b->runs.items[b->runs.count++] = (struct weft_run){time_ns, time_ns};
	b->run_owners.items[b->run_owners.count++] = s->running;
	if (b->run_streams.capacity)
		b->run_streams.items[b->run_streams.count++] = stream;
}

/* Ends the part of the trace to which the stream belongs: its streams neither run nor sleep any more. */
static int apply_part_end(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	const struct weft_trace_info *info = b->model->trace;
	if (ev->stream >= info->stream_count || !info->part_count) {
		b->model->anomalies[WEFT_ANOMALY_UNKNOWN_EVENT]++;
		return WEFT_OK;
	}
	b->has_ended_parts = true;
	b->model->events--; /* the reader made this event, so it does not count as recorded */
	if (!weft_vec_reserve(&b->lulls, info->stream_count))
		return WEFT_ENOMEM;
	for (size_t i = 0; i < b->streams.count; i++) {
		struct weft__stream_state *s = &b->streams.items[i];
		if (i >= info->stream_count || info->streams[i].part != info->streams[ev->stream].part)
			continue;
		set_running(b, (uint16_t)i, time_ns, WEFT_NONE);
		s->end_ns = time_ns;
		s->is_ended = true;
	}
	return WEFT_OK;
}

static uint32_t get_known_site(const struct weft__build *b, const struct weft_event *ev)
{
	return ev->site < b->model->trace->site_count ? ev->site : WEFT_NONE;
}

/* Returns true for a promise that an event named before its creation event came.  With knows_pending, an unknown promise that
 * ends was already over: its id has been reused. */
static bool may_still_be_created(const struct weft__build *b, const struct weft_promise *promise)
{
	return promise->flags & WEFT_PROMISE_START_UNKNOWN && !(b->knows_pending && promise->end != WEFT_END_PENDING);
}

static int apply_create(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t creator;
	int status = get_promise(b, ev, ev->a, &creator);
	if (status < 0)
		return status;
	note_activity(b, creator, time_ns);
	if (ev->b == WEFT_SYSTEM_ID) {
		b->model->anomalies[WEFT_ANOMALY_SYSTEM_MISUSED]++;
		return WEFT_OK;
	}
	uint32_t p = weft_idmap_get(&b->priv->ids, ev->b);
	if (p != WEFT_IDMAP_NONE && may_still_be_created(b, &b->promises.items[p]))
		b->model->anomalies[WEFT_ANOMALY_CREATED_LATE]++;
	else {
		if (p != WEFT_IDMAP_NONE)
			b->model->anomalies[WEFT_ANOMALY_CREATED_TWICE]++;
		if (!weft_idmap_set(&b->priv->ids, ev->b, (uint32_t)b->promises.count))
			return WEFT_ENOMEM;
		p = add_promise(b, ev->b);
	}
	struct weft_promise *promise = &b->promises.items[p];
	promise->start_ns = time_ns;
	if (promise->end == WEFT_END_PENDING)
		promise->weft__active_ns = time_ns;
	else
		promise->start_ns = promise->end_ns;
	/* A creator that was first named after its promise is ignored, so that created_by cannot form a cycle. */
	promise->created_by = promise->parent = creator < p ? creator : WEFT_SYSTEM;
	promise->kind = ev->kind;
	b->has_woken |= b->is_woken[ev->kind];
	promise->site = get_known_site(b, ev);
	promise->stream = ev->stream;
	promise->flags &= (uint16_t)~WEFT_PROMISE_START_UNKNOWN;
	return WEFT_OK;
}

/* Adds a promise from a state dump: a ring may have overwritten its creation. */
/* Notes whether the label of a connection says that the program made it, instead of accepting it. */
static void note_side(struct weft_promise *promise, struct weft_str label)
{
	if (promise->kind == WEFT_KIND_CONNECTION && weft_text_starts_with(label, WEFT_STRING_TO))
		promise->flags |= WEFT_PROMISE_CONNECTED;
}

static int apply_pending(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	if (ev->b == WEFT_SYSTEM_ID) {
		b->model->anomalies[WEFT_ANOMALY_SYSTEM_MISUSED]++;
		return WEFT_OK;
	}
	uint32_t p;
	int status = get_promise(b, ev, ev->b, &p);
	if (status < 0 || p == WEFT_SYSTEM || !(b->promises.items[p].flags & WEFT_PROMISE_START_UNKNOWN))
		return status;
	struct weft_promise *promise = &b->promises.items[p];
	uint64_t before_ns = (uint64_t)ev->time_ns - (uint64_t)ev->value;
	promise->start_ns = ev->value >= ev->time_ns  ? time_ns
			    : before_ns > MAX_TIME_NS ? time_ns - MAX_TIME_NS
						      : time_ns - (int64_t)before_ns;
	if (promise->end == WEFT_END_PENDING)
		promise->weft__active_ns = time_ns;
	else if (promise->start_ns > promise->end_ns)
		promise->start_ns = promise->end_ns;
	/* The creator may have ended long ago, so no promise is added for it. */
	uint32_t creator = ev->a == WEFT_SYSTEM_ID ? WEFT_SYSTEM : weft_idmap_get(&b->priv->ids, ev->a);
	struct weft__orphan *orphan = creator == WEFT_IDMAP_NONE ? weft_vec_push(&b->orphans) : NULL;
	if (orphan)
		*orphan = (struct weft__orphan){p, ev->a};
	else if (creator == WEFT_IDMAP_NONE)
		return WEFT_ENOMEM;
	else if (creator < p)
		promise->created_by = promise->parent = creator;
	promise->kind = ev->kind;
	b->has_woken |= b->is_woken[ev->kind];
	promise->site = get_known_site(b, ev);
	promise->stream = ev->stream;
	promise->flags &= (uint16_t)~WEFT_PROMISE_START_UNKNOWN;
	note_side(promise, ev->text);
	if (ev->text.len) {
		uint32_t text;
		if ((status = intern_text(b, ev->text, &text)) < 0)
			return status;
		add_label(b, p, (struct weft_label){.time_ns = promise->start_ns, .text = text});
		b->labels_unordered = true;
	}
	return WEFT_OK;
}

static int64_t make_pair_key(uint32_t from, uint32_t to)
{
	return (int64_t)((uint64_t)from << 32 | to);
}

/* Returns 1 if the await makes a new link, 0 if the pair of promises already has one.  State dumps repeat the awaits that are
 * still in force. */
static int index_await(struct weft__build *b, uint32_t from, uint32_t to)
{
	if (weft_idmap_get(&b->awaits, make_pair_key(from, to)) == 0)
		return 0;
	return weft_idmap_set(&b->awaits, make_pair_key(from, to), 0) ? 1 : WEFT_ENOMEM;
}

/* Indexes the awaits that were applied so far.  The pairs of promises are needed only in traces that repeat or end awaits. */
static int index_awaits(struct weft__build *b)
{
	int status = WEFT_OK;
	for (; b->awaits_seen < b->links.count && status >= 0; b->awaits_seen++) {
		const struct weft_link *link = &b->links.items[b->awaits_seen];
		if (link->kind == WEFT_LINK_AWAIT)
			status = index_await(b, link->from, link->to);
	}
	return status;
}

static int get_both_promises(struct weft__build *b, const struct weft_event *ev, uint32_t *first, uint32_t *second)
{
	int status = get_promise(b, ev, ev->a, first);
	return status < 0 ? status : get_promise(b, ev, ev->b, second);
}

/* Adds an await from a state dump, unless the model has it from an event in the ring. */
static int apply_still_awaits(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t from, to;
	int status = get_both_promises(b, ev, &from, &to);
	if (status < 0 || (status = index_awaits(b)) < 0)
		return status;
	note_activity(b, to, time_ns);
	note_activity(b, from, time_ns);
	if ((status = index_await(b, from, to)) > 0)
		add_link(b, ev, time_ns, WEFT_LINK_AWAIT, from, to);
	return status < 0 ? status : WEFT_OK;
}

static int end_await(struct weft__build *b, int64_t time_ns, uint32_t from, uint32_t to)
{
	note_activity(b, from, time_ns);
	struct weft_await_end *end = weft_vec_push(&b->await_ends);
	if (!end || (b->awaits_seen > 0 && !weft_idmap_set(&b->awaits, make_pair_key(from, to), 1)))
		return WEFT_ENOMEM;
	*end = (struct weft_await_end){time_ns, from, to};
	return WEFT_OK;
}

static int apply_await_end(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t from, to;
	int status = get_both_promises(b, ev, &from, &to);
	if (status < 0 || (status = index_awaits(b)) < 0)
		return status;
	b->streams.items[ev->stream].acts = true;
	return end_await(b, time_ns, from, to);
}

/* Applies a hold or release of a lock: the lock awaits its holder. */
static int apply_hold_or_release(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t holder, lock;
	if (ev->a == WEFT_SYSTEM_ID || ev->b == WEFT_SYSTEM_ID)
		return WEFT_OK;
	int status = get_both_promises(b, ev, &holder, &lock);
	b->streams.items[ev->stream].acts = true;
	if (status < 0 || ev->op == WEFT_OP_RELEASE)
		return status < 0 ? status : end_await(b, time_ns, lock, holder);
	note_activity(b, holder, time_ns);
	add_link(b, ev, time_ns, WEFT_LINK_AWAIT, lock, holder);
	return WEFT_OK;
}

/* Applies a message.  The sender and the handler of a message record the same text and number; the sender awaits the
 * handler. */
static int apply_message(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, text;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || p == WEFT_SYSTEM || (status = intern_text(b, ev->text, &text)) < 0)
		return status;
	uint64_t number = ev->value < 0 ? 0 - (uint64_t)ev->value : (uint64_t)ev->value;
	int64_t key = make_pair_key(text, (uint32_t)number);
	uint32_t at = weft_idmap_get(&b->message_of, key), count = (uint32_t)b->messages.count;
	uint32_t other = WEFT_NONE;
	bool is_handled = ev->value < 0;
	if (at != WEFT_IDMAP_NONE && b->messages.items[at].is_handled != is_handled && b->messages.items[at].number == number &&
	    b->messages.items[at].promise != p)
		other = b->messages.items[at].promise;
	struct weft_message *new = weft_vec_push(&b->messages);
	if (!new || !weft_idmap_set(&b->message_of, key, count))
		return WEFT_ENOMEM;
	*new = (struct weft_message){.number = number, .promise = p, .text = text, .other = other, .is_handled = is_handled};
	if (!is_handled)
		b->promises.items[p].flags |= WEFT_PROMISE_SENT;
	if (other == WEFT_NONE)
		return WEFT_OK;
	b->messages.items[at].other = p;
	uint32_t sender = is_handled ? other : p;
	if (b->promises.items[sender].end == WEFT_END_PENDING)
		add_link(b, ev, time_ns, WEFT_LINK_AWAIT, sender, is_handled ? p : other);
	return WEFT_OK;
}

/* Parses the decimal number at *at and moves *at behind the character that follows the number. */
static uint64_t parse_number(struct weft_str text, size_t *at)
{
	uint64_t number = 0;
	for (; *at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9'; ++*at)
		number = number * 10 + (uint64_t)(text.ptr[*at] - '0');
	++*at;
	return number;
}

static int add_round(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	if (ev->value < 0)
		return WEFT_OK;
	struct weft_round *round = weft_vec_push(&b->rounds);
	if (!round)
		return WEFT_ENOMEM;
	size_t at = 0;
	*round = (struct weft_round){.start_ns = time_ns - ev->value, .end_ns = time_ns, .stream = ev->stream};
	uint64_t on_cpu_ns = parse_number(ev->text, &at);
	round->on_cpu_ns = on_cpu_ns < (uint64_t)ev->value ? (int64_t)on_cpu_ns : ev->value;
	round->voluntary_switches = parse_number(ev->text, &at);
	round->preemptions = parse_number(ev->text, &at);
	round->minor_faults = parse_number(ev->text, &at);
	round->major_faults = parse_number(ev->text, &at);
	return WEFT_OK;
}

static int add_death(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, text;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || (status = intern_text(b, ev->text, &text)) < 0)
		return status;
	struct weft_death *death = weft_vec_push(&b->deaths);
	if (death)
		*death = (struct weft_death){time_ns, p, text, ev->stream};
	return death ? WEFT_OK : WEFT_ENOMEM;
}

/* Adds the reason for which a snapshot was made.  A value <= 0 means that the program only asked for a snapshot. */
static int add_snapshot_reason(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t text;
	if (ev->value <= 0)
		return WEFT_OK;
	int status = intern_text(b, ev->text, &text);
	struct weft_snapshot_reason *reason = status < 0 ? NULL : weft_vec_push(&b->snapshot_reasons);
	if (reason)
		*reason = (struct weft_snapshot_reason){time_ns, text, ev->stream, ev->value == 2};
	return status < 0 ? status : reason ? WEFT_OK : WEFT_ENOMEM;
}

static int add_claim(struct weft__build *b, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	struct weft_interval *claim = weft_vec_push(&b->claims);
	if (!claim)
		return WEFT_ENOMEM;
	*claim = (struct weft_interval){.start_ns = from_ns, .end_ns = to_ns, .text = WEFT_NONE, .stream = stream};
	return WEFT_OK;
}

/* Doubts the run of the stream from now on: until its next transfer, or until another promise runs. */
static int begin_guess(struct weft__build *b, uint16_t stream, int64_t time_ns)
{
	struct weft__stream_state *s = &b->streams.items[stream];
	if (s->running == WEFT_NONE || s->running == WEFT_SYSTEM || s->has_guess)
		return WEFT_OK;
	const int status = add_claim(b, stream, time_ns, time_ns);
	s->has_guess = status == WEFT_OK;
	s->guess = b->claims.count - 1;
	return status;
}

/* Gives the run of the stream since its last transfer to the promise that claims it, unless the claim only says that the owner
 * is doubtful.  The part of the run before that transfer keeps its promise. */
static int apply_claim(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p;
	struct weft__stream_state *s = &b->streams.items[ev->stream];
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0)
		return status;
	if (ev->value == WEFT_CLAIM_GUESS)
		return begin_guess(b, ev->stream, time_ns);
	const bool is_known = s->running == p && ev->value != WEFT_CLAIM_DOUBT;
	if (p == WEFT_SYSTEM || s->running == WEFT_NONE || s->running == WEFT_SYSTEM || is_known)
		return WEFT_OK;
	struct weft_run *run = &b->runs.items[s->run];
	const int64_t from_ns = max_time(run->start_ns, s->transfer_ns);
	if ((status = add_claim(b, ev->stream, from_ns, time_ns)) < 0)
		return status;
	s->has_claim = true;
	note_activity(b, s->running, from_ns);
	if (ev->value == WEFT_CLAIM_DOUBT)
		return WEFT_OK;
	if (from_ns > run->start_ns)
		split_run(b, ev->stream, from_ns);
	b->run_owners.items[s->run] = s->running = p;
	note_activity(b, p, time_ns);
	/* Begins another run, so that a later claim does not reach back to this one. */
	split_run(b, ev->stream, time_ns);
	return WEFT_OK;
}

static int apply_connection(struct weft__build *b, const struct weft_event *ev)
{
	uint32_t p;
	int status = get_promise(b, ev, ev->a, &p);
	return status < 0 ? status : weft__transfer_connection(b, p, ev);
}

/* Applies bytes that were written to or read from a connection.  The writer signals the connection end that read its bytes;
 * this signal does not count as activity of the writer. */
static int apply_transfer(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, by = WEFT_NONE;
	struct weft__stream_state *s = &b->streams.items[ev->stream];
	int status = get_promise(b, ev, ev->a, &p);
	s->transfer_ns = time_ns;
	end_guess(b, s, time_ns);
	/* A loop that collects requests may work on after an answer, for any request that it has answered. */
	if (status == WEFT_OK && ev->op == WEFT_OP_SENT && s->has_claim)
		status = begin_guess(b, ev->stream, time_ns);
	if (status < 0)
		return status;
	switch (ev->op) {
	case WEFT_OP_SENT: status = weft__transfer_sent(b, p, ev, time_ns); break;
	case WEFT_OP_RECEIVED: status = weft__transfer_received(b, p, ev, time_ns, &by); break;
	default: status = weft__transfer_datagram(b, p, ev, time_ns, &by); break;
	}
	if (status < 0 || by == WEFT_NONE)
		return status;
	b->links.items[b->links.count++] = (struct weft_link){
	    .time_ns = time_ns, .from = by, .to = p, .stream = ev->stream, .kind = WEFT_LINK_SIGNAL, .site = WEFT_NONE};
	note_activity(b, p, time_ns);
	return WEFT_OK;
}

static int add_callback(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	enum { KEY_BITS = 16 };
	uint32_t p;
	const int64_t age_ns = (int64_t)((uint64_t)ev->value >> KEY_BITS);
	const int status = ev->site == WEFT_NO_SITE ? WEFT_OK : get_promise(b, ev, ev->a, &p);
	if (status < 0 || ev->site == WEFT_NO_SITE || p == WEFT_SYSTEM)
		return status;
	struct weft_callback *callback = weft_vec_push(&b->callbacks);
	if (callback)
		*callback = (struct weft_callback){.time_ns = time_ns - age_ns, .promise = p, .site = ev->site};
	return callback ? WEFT_OK : WEFT_ENOMEM;
}

/* Marks a promise as inferred, with the time at which it may have started. */
static int apply_inference(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p;
	const int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || p == WEFT_SYSTEM)
		return status;
	b->promises.items[p].flags |= WEFT_PROMISE_INFERRED;
	if (ev->value <= 0 || ev->value > time_ns ||
	    (b->earlier_starts.count && b->earlier_starts.items[b->earlier_starts.count - 1].promise >= p))
		return status;
	struct weft_earlier_start *earlier = weft_vec_push(&b->earlier_starts);
	if (!earlier)
		return WEFT_ENOMEM;
	*earlier = (struct weft_earlier_start){time_ns - ev->value, p};
	return status;
}

static int add_trace_parent(struct weft__build *b, const struct weft_event *ev)
{
	uint32_t p, text;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || (status = intern_text(b, ev->text, &text)) < 0)
		return status;
	struct weft_trace_parent *parent = weft_vec_push(&b->trace_parents);
	if (parent)
		*parent = (struct weft_trace_parent){p, text};
	return parent ? WEFT_OK : WEFT_ENOMEM;
}

/* Notes the source location at which the stream calls its next wait, hold, pause or sleep. */
static int apply_place(struct weft__build *b, const struct weft_event *ev)
{
	static const struct weft_str unknown = {"at", 2};
	struct weft__stream_state *s = &b->streams.items[ev->stream];
	s->site = ev->site;
	s->site_by = ev->a;
	s->call = WEFT_NONE;
	return ev->text.len == 0 || weft_str_equal(ev->text, unknown) ? WEFT_OK : intern_text(b, ev->text, &s->call);
}

static int apply_detail(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p;
	if (ev->kind == WEFT_DETAIL_ROUND)
		return add_round(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_PLACE) {
		return apply_place(b, ev);
	}
	if (ev->kind == WEFT_DETAIL_CALLBACK)
		return add_callback(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_DIED)
		return add_death(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_SNAPSHOT)
		return add_snapshot_reason(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_SPIN) {
		int status = get_promise(b, ev, ev->a, &p);
		struct weft_spin *spin = status < 0 ? NULL : weft_vec_push(&b->spins);
		if (spin)
			*spin = (struct weft_spin){time_ns, (uint64_t)ev->value, p};
		return status < 0 ? status : spin ? WEFT_OK : WEFT_ENOMEM;
	}
	if (ev->kind == WEFT_DETAIL_INFERRED)
		return apply_inference(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_CLAIM)
		return apply_claim(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_TRACE_PARENT)
		return add_trace_parent(b, ev);
	if (ev->kind == WEFT_DETAIL_MESSAGE)
		return apply_message(b, ev, time_ns);
	if (ev->kind == WEFT_DETAIL_CONNECTION)
		return apply_connection(b, ev);
	if (ev->kind == WEFT_DETAIL_DATAGRAM)
		return apply_transfer(b, ev, time_ns);
	if (ev->kind != WEFT_DETAIL_STACK)
		return WEFT_OK;
	int status = get_promise(b, ev, ev->a, &p);
	struct weft_stack *stack = status < 0 ? NULL : weft_vec_push(&b->stacks);
	if (stack)
		*stack = (struct weft_stack){p, (uint32_t)b->stacks.count, ev->text};
	return status < 0 ? status : stack ? WEFT_OK : WEFT_ENOMEM;
}

static int apply_link(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t from, to;
	/* A read by the system has no meaning: recorders write it where a callback starts. */
	if (ev->b == WEFT_SYSTEM_ID && (ev->op == WEFT_OP_READ || ev->op == WEFT_OP_READ_LATER || ev->op == WEFT_OP_AWAIT))
		return WEFT_OK;
	int status = get_promise(b, ev, ev->a, &from);
	if (status < 0 || (status = get_promise(b, ev, ev->b, &to)) < 0)
		return status;
	const bool is_own = ev->op != WEFT_OP_READ && ev->op != WEFT_OP_READ_LATER && ev->op != WEFT_OP_AWAIT &&
			    b->streams.items[ev->stream].running == to && to != WEFT_SYSTEM;
	b->streams.items[ev->stream].acts |= ev->op != WEFT_OP_SIGNAL && ev->op != WEFT_OP_SIGNAL_ONLY && !is_own;
	switch (ev->op) {
	case WEFT_OP_READ: set_running(b, ev->stream, time_ns, from); /* fall through */
	case WEFT_OP_READ_LATER: add_link(b, ev, time_ns, WEFT_LINK_READ, from, to); return WEFT_OK;
	case WEFT_OP_SIGNAL: set_running(b, ev->stream, time_ns, to); /* fall through */
	case WEFT_OP_SIGNAL_ONLY:
		add_link(b, ev, time_ns, WEFT_LINK_SIGNAL, from, to);
		note_activity(b, to, time_ns);
		return WEFT_OK;
	case WEFT_OP_AWAIT:
		add_link(b, ev, time_ns, WEFT_LINK_AWAIT, from, to);
		note_activity(b, to, time_ns);
		return WEFT_OK;
	default: break;
	}
	add_link(b, ev, time_ns, WEFT_LINK_RESOLVE, from, to);
	struct weft_promise *promise = &b->promises.items[to];
	if (to == WEFT_SYSTEM)
		b->model->anomalies[WEFT_ANOMALY_SYSTEM_MISUSED]++;
	else if (promise->end != WEFT_END_PENDING)
		b->model->anomalies[WEFT_ANOMALY_ENDED_TWICE]++;
	else {
		const struct weft_str error = ev->op == WEFT_OP_CANCEL ? (struct weft_str){"cancelled", 9} : ev->text;
		if (ev->op != WEFT_OP_RESOLVE && (status = intern_text(b, error, &promise->failure)) < 0)
			return status;
		promise->end = ev->op != WEFT_OP_RESOLVE ? WEFT_END_FAILED : WEFT_END_RESOLVED;
		promise->end_ns = time_ns;
	}
	return WEFT_OK;
}

static int apply_become(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, main_promise;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || (status = get_promise(b, ev, ev->b, &main_promise)) < 0)
		return status;
	b->streams.items[ev->stream].acts = true;
	struct weft_promise *promise = &b->promises.items[p];
	if (p == WEFT_SYSTEM || main_promise == WEFT_SYSTEM)
		b->model->anomalies[WEFT_ANOMALY_SYSTEM_MISUSED]++;
	else if (p == main_promise)
		/* An event may say that one id of a promise becomes another id of the same promise, because a recorder shortens
		 * its own chains.  An event by which an id becomes itself is an anomaly. */
		b->model->anomalies[WEFT_ANOMALY_BECAME_ITSELF] += ev->a == ev->b;
	else if (promise->end != WEFT_END_PENDING)
		b->model->anomalies[WEFT_ANOMALY_ENDED_TWICE]++;
	else {
		promise->end = WEFT_END_BECAME;
		promise->end_ns = time_ns;
		promise->became = promise->weft__into = main_promise;
		if (b->streams.items[ev->stream].running == p)
			set_running(b, ev->stream, time_ns, main_promise);
	}
	return WEFT_OK;
}

/* Finds the counter with the given name, or adds it. */
static int get_counter(struct weft__build *b, struct weft_str name, bool is_absolute, uint32_t *text, struct weft_counter **out)
{
	int status = intern_text(b, name, text);
	if (status < 0)
		return status;
	if (*text >= b->priv->counter_of_text.count) {
		size_t missing = *text + 1 - b->priv->counter_of_text.count;
		if (!weft_vec_reserve(&b->priv->counter_of_text, missing))
			return WEFT_ENOMEM;
		memset(b->priv->counter_of_text.items + b->priv->counter_of_text.count, 0xff, missing * sizeof(uint32_t));
		b->priv->counter_of_text.count += missing;
	}
	uint32_t *index = &b->priv->counter_of_text.items[*text];
	if (*index == WEFT_NONE) {
		if (!weft_vec_reserve(&b->counter_texts, 1) || !weft_vec_reserve(&b->counters, 1))
			return WEFT_ENOMEM;
		*index = (uint32_t)b->counters.count;
		b->counter_texts.items[b->counter_texts.count++] = *text;
		b->counters.items[b->counters.count++] = (struct weft_counter){.is_absolute = is_absolute};
	}
	*out = &b->counters.items[*index];
	return WEFT_OK;
}

static int apply_counter(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, text;
	struct weft_counter *counter;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || (status = get_counter(b, ev->text, ev->op == WEFT_OP_COUNTER, &text, &counter)) < 0)
		return status;
	/* The capacity of the samples is doubled when their number is a power of two. */
	size_t n = counter->count;
	if ((n & (n - 1)) == 0) {
		size_t capacity = n;
		if (!weft__vec_grow((void **)&counter->samples, &capacity, n + 1, sizeof *counter->samples))
			return WEFT_ENOMEM;
	}
	if (n >= UINT32_MAX / 2)
		return WEFT_ETOOBIG;
	uint64_t old = n ? (uint64_t)counter->samples[n - 1].value : 0, value = (uint64_t)ev->value;
	if (ev->op == WEFT_OP_COUNTER_ADD)
		value += old;
	counter->is_partial |= b->clip && ev->stream < b->clip->stream_count && b->clip->streams[ev->stream] != INT64_MAX;
	counter->samples[counter->count++] = (struct weft_sample){time_ns, (int64_t)value, (int64_t)(value - old)};
	add_label(b, p,
	    (struct weft_label){.time_ns = time_ns, .text = text, .is_counter = 1, .sample = (uint32_t)n & (UINT32_MAX >> 1)});
	note_activity(b, p, time_ns);
	return WEFT_OK;
}

static int apply_label(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	uint32_t p, text;
	if (ev->a == WEFT_SYSTEM_ID && ev->op == WEFT_OP_LABEL)
		return WEFT_OK;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || (status = intern_text(b, ev->text, &text)) < 0)
		return status;
	add_label(b, p, (struct weft_label){.time_ns = time_ns, .text = text});
	note_side(&b->promises.items[p], ev->text);
	note_activity(b, p, time_ns);
	return WEFT_OK;
}

static int apply_should_resolve(struct weft__build *b, const struct weft_event *ev)
{
	uint32_t p;
	int status = get_promise(b, ev, ev->a, &p);
	if (status < 0 || p == WEFT_SYSTEM || b->promises.items[p].flags & WEFT_PROMISE_SHOULD_RESOLVE)
		return status;
	uint32_t *added = weft_vec_push(&b->should_resolve);
	if (!added)
		return WEFT_ENOMEM;
	*added = p;
	b->promises.items[p].flags |= WEFT_PROMISE_SHOULD_RESOLVE;
	return WEFT_OK;
}

/* Adds the site of the pause or sleep that began at start_ns, if the site was recorded. */
static int add_place(struct weft__build *b, uint16_t stream, int64_t start_ns)
{
	const uint32_t site = take_site(b, stream, b->streams.items[stream].site_by);
	struct weft_place *place = site == WEFT_NONE ? NULL : weft_vec_push(&b->places);
	if (place)
		*place = (struct weft_place){
		    .time_ns = start_ns, .site = site, .call = b->streams.items[stream].call, .stream = stream};
	return site == WEFT_NONE || place ? WEFT_OK : WEFT_ENOMEM;
}

static int apply_idle(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	static const struct weft_str reasons[] = {{"sleeping", 8}, {"suspended", 9}, {"hibernating", 11}};
	uint32_t text;
	int status = intern_text(b, reasons[ev->value == 1 || ev->value == 2 ? ev->value : 0], &text);
	if (status < 0)
		return status;
	set_running(b, ev->stream, time_ns, WEFT_SYSTEM);
	b->sleeps.items[b->streams.items[ev->stream].sleep].text = text;
	return add_place(b, ev->stream, time_ns);
}

static void add_pause(struct weft__build *b, int64_t start_ns, int64_t end_ns, uint32_t text, uint16_t stream)
{
	b->pauses.items[b->pauses.count++] =
	    (struct weft_interval){.start_ns = start_ns < 0 ? 0 : start_ns, .end_ns = end_ns, .text = text, .stream = stream};
}

static int apply_pause(struct weft__build *b, const struct weft_event *ev, int64_t time_ns)
{
	struct weft__stream_state *s = &b->streams.items[ev->stream];
	uint32_t text;
	int status = intern_text(b, ev->text.len ? ev->text : (struct weft_str){"pause", 5}, &text);
	if (status < 0)
		return status;
	const bool is_whole = ev->op == WEFT_OP_PAUSE && ev->value > 0;
	if (ev->op != WEFT_OP_PAUSE_END && (status = add_place(b, ev->stream, is_whole ? time_ns - ev->value : time_ns)) < 0)
		return status;
	if (ev->op == WEFT_OP_PAUSE) {
		b->model->anomalies[WEFT_ANOMALY_PAUSE_UNMATCHED] += ev->value < 0;
		add_pause(b, time_ns - (ev->value < 0 ? 0 : ev->value), time_ns, text, ev->stream);
	} else if (ev->op == WEFT_OP_PAUSE_BEGIN) {
		if (s->pause_depth++ == 0) {
			s->pause_ns = time_ns;
			s->pause_text = text;
		}
	} else if (s->pause_depth == 0) {
		/* If older events were overwritten, the pause began before the trace. */
		b->model->anomalies[WEFT_ANOMALY_PAUSE_UNMATCHED] += !b->model->trace->wrapped;
		add_pause(b, b->model->trace->wrapped ? 0 : time_ns, time_ns, text, ev->stream);
	} else if (--s->pause_depth == 0)
		add_pause(b, s->pause_ns, time_ns, s->pause_text, ev->stream);
	return WEFT_OK;
}

/* Maps the id of an internal promise to the promise that owns it.  An id that an earlier event named keeps its promise. */
static int apply_belongs(struct weft__build *b, const struct weft_event *ev)
{
	uint32_t owner;
	int status = get_promise(b, ev, ev->b, &owner);
	if (status < 0 || !b->leaves_parts_out || ev->a == WEFT_SYSTEM_ID || owner == WEFT_SYSTEM ||
	    weft_idmap_get(&b->priv->ids, ev->a) != WEFT_IDMAP_NONE)
		return status;
	b->has_parts = true;
	return weft_idmap_set(&b->parts, ev->a, 1) && weft_idmap_set(&b->priv->ids, ev->a, owner) ? WEFT_OK : WEFT_ENOMEM;
}

static bool is_part(const struct weft__build *b, int64_t id)
{
	return weft_idmap_get(&b->parts, id) != WEFT_IDMAP_NONE;
}

/* Rewrites an event for a model without internal promises; returns false if nothing of the event remains.  If an internal
 * promise is read or signalled, only its owner is noted as running. */
static bool filter_part_event(const struct weft__build *b, struct weft_event *ev)
{
	switch (ev->op) {
	case WEFT_OP_LABEL:
	case WEFT_OP_NOTE:
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD:
	case WEFT_OP_SHOULD_RESOLVE:
	case WEFT_OP_BECOME: return !is_part(b, ev->a);
	case WEFT_OP_DETAIL: return ev->kind == WEFT_DETAIL_SPIN || !is_part(b, ev->a);
	case WEFT_OP_CREATE:
	case WEFT_OP_PENDING:
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_CANCEL:
	case WEFT_OP_AWAIT:
	case WEFT_OP_STILL_AWAITS:
	case WEFT_OP_AWAITS_NO_MORE:
	case WEFT_OP_READ_LATER:
	case WEFT_OP_SIGNAL_ONLY:
	case WEFT_OP_HOLD:
	case WEFT_OP_RELEASE: return !is_part(b, ev->b);
	case WEFT_OP_READ:
		if (is_part(b, ev->b))
			ev->op = WEFT_OP_RUN;
		return true;
	case WEFT_OP_SIGNAL:
		if (is_part(b, ev->b)) {
			ev->op = WEFT_OP_RUN;
			ev->a = ev->b;
		}
		return true;
	default: return true;
	}
}

static int apply_event(struct weft__build *b, const struct weft_event *ev)
{
	uint64_t since_ns = (uint64_t)ev->time_ns - (uint64_t)b->model->start_ns;
	int64_t time_ns = since_ns > MAX_TIME_NS ? MAX_TIME_NS : (int64_t)since_ns;
	uint32_t p;
	int status;
	struct weft_event rest;
	b->model->end_ns = time_ns;
	if (b->has_parts) {
		rest = *ev;
		ev = &rest;
		if (!filter_part_event(b, &rest))
			return WEFT_OK;
	}
	switch (ev->op) {
	case WEFT_OP_CREATE: return apply_create(b, ev, time_ns);
	case WEFT_OP_READ:
	case WEFT_OP_READ_LATER:
	case WEFT_OP_AWAIT:
	case WEFT_OP_RESOLVE:
	case WEFT_OP_FAIL:
	case WEFT_OP_CANCEL:
	case WEFT_OP_SIGNAL:
	case WEFT_OP_SIGNAL_ONLY: return apply_link(b, ev, time_ns);
	case WEFT_OP_BECOME: return apply_become(b, ev, time_ns);
	case WEFT_OP_NOTE:
	case WEFT_OP_LABEL: return apply_label(b, ev, time_ns);
	case WEFT_OP_COUNTER:
	case WEFT_OP_COUNTER_ADD: return apply_counter(b, ev, time_ns);
	case WEFT_OP_RUN:
	case WEFT_OP_RESUME:
		status = get_promise(b, ev, ev->a, &p);
		if (status == WEFT_OK)
			set_running(b, ev->stream, time_ns, p);
		return status;
	case WEFT_OP_IDLE: return apply_idle(b, ev, time_ns);
	case WEFT_OP_SHOULD_RESOLVE: return apply_should_resolve(b, ev);
	case WEFT_OP_PENDING: return apply_pending(b, ev, time_ns);
	case WEFT_OP_STILL_AWAITS: return apply_still_awaits(b, ev, time_ns);
	case WEFT_OP_PAUSE:
	case WEFT_OP_PAUSE_BEGIN:
	case WEFT_OP_PAUSE_END: return apply_pause(b, ev, time_ns);
	case WEFT_OP_AWAITS_NO_MORE: return apply_await_end(b, ev, time_ns);
	case WEFT_OP_HOLD:
	case WEFT_OP_RELEASE: return apply_hold_or_release(b, ev, time_ns);
	case WEFT_OP_DETAIL: return apply_detail(b, ev, time_ns);
	case WEFT_OP_BELONGS: return apply_belongs(b, ev);
	case WEFT_OP_LEVEL: return WEFT_OK;
	case WEFT_OP_SENT:
	case WEFT_OP_RECEIVED: return apply_transfer(b, ev, time_ns);
	case WEFT_EVENT_END: return apply_part_end(b, ev, time_ns);
	default: b->model->anomalies[WEFT_ANOMALY_UNKNOWN_EVENT]++; return WEFT_OK;
	}
}

/* Reserves memory for the most items that `count` events, and then the end of the trace, can add. */
static int reserve_space(struct weft__build *b, size_t count)
{
	enum { MOST_RUNS = 2 }; /* a claim begins two */
	size_t limit = UINT32_MAX - 3 * count - 3;
	if (b->promises.count > limit || b->links.count > limit || b->labels.count > limit || b->runs.count > limit)
		return WEFT_ETOOBIG;
	if (!weft_vec_reserve(&b->promises, 2 * count + 1) || !weft_vec_reserve(&b->links, count) ||
	    !weft_vec_reserve(&b->labels, count) || !weft_vec_reserve(&b->label_owners, count) ||
	    !weft_vec_reserve(&b->runs, MOST_RUNS * count) || !weft_vec_reserve(&b->run_owners, MOST_RUNS * count) ||
	    !weft_vec_reserve(&b->pauses, count) || !weft_vec_reserve(&b->sleeps, count) ||
	    (b->model->trace->stream_count > 1 &&
		(!weft_vec_reserve(&b->lulls, count) || !weft_vec_reserve(&b->run_streams, MOST_RUNS * count))))
		return WEFT_ENOMEM;
	return WEFT_OK;
}

static int reserve_streams(struct weft__build *b, size_t count)
{
	while (b->streams.count < count) {
		struct weft__stream_state *s = weft_vec_push(&b->streams);
		if (!s)
			return WEFT_ENOMEM;
		*s = (struct weft__stream_state){.running = WEFT_NONE, .site = WEFT_NONE, .transfer_ns = INT64_MIN};
	}
	return WEFT_OK;
}

static void stop_stream(struct weft__build *b, uint16_t stream)
{
	if (stream < b->streams.count && b->streams.items[stream].running != WEFT_SYSTEM)
		set_running(b, stream, b->model->end_ns, WEFT_NONE);
}

/* Ends the runs of the streams whose later events are missing.  The runs of such a stream end at the last event before the
 * missing ones. */
static void stop_absent_streams(struct weft__build *b, int64_t time_ns)
{
	const struct weft__complete_prefix *clip = b->clip;
	if (b->last_stream < clip->stream_count && clip->streams[b->last_stream] < time_ns)
		stop_stream(b, b->last_stream);
	for (; b->absent_reached < clip->absent_count && clip->absent[b->absent_reached].from_ns < time_ns; b->absent_reached++)
		stop_stream(b, clip->absent[b->absent_reached].stream);
}

/* Counts the events at the start of a batch that belong to the complete prefix. */
static size_t count_complete_events(struct weft__build *b, const struct weft_event *events, size_t n)
{
	size_t count = 0;
	while (count < n && events[count].time_ns <= b->clip->until_ns)
		count++;
	return count;
}

static int apply_all_events(struct weft__build *b, struct weft_trace *trace, const struct weft_model_options *options)
{
	enum { EVENTS_PER_REPORT = 1 << 16 };
	uint64_t reported_events = 0;
	const struct weft_event *events;
	size_t n;
	int more;
	while ((more = weft_trace_next(trace, &events, &n)) == 1) {
		if (b->clip && (n = count_complete_events(b, events, n)) == 0)
			continue; /* read the rest too, so that the trace reaches its end */
		if (b->model->events == 0)
			b->model->start_ns = events[0].time_ns;
		int status = reserve_space(b, n);
		for (size_t i = 0; i < n && status == WEFT_OK; i++) {
			if (events[i].stream >= b->streams.count)
				status = reserve_streams(b, (size_t)events[i].stream + 1);
			if (b->clip)
				stop_absent_streams(b, events[i].time_ns);
			if (status == WEFT_OK)
				status = apply_event(b, &events[i]);
			b->last_stream = events[i].stream;
		}
		if (status < 0)
			return status;
		b->model->events += n;
		if (options && options->go_on && b->model->events - reported_events >= EVENTS_PER_REPORT) {
			reported_events = b->model->events;
			if (!options->go_on(options->ctx, reported_events))
				return WEFT_ECANCELLED;
		}
	}
	return more < 0 ? more : b->model->events == 0 ? WEFT_EFORMAT : WEFT_OK;
}

static int init_build(struct weft__build *b, struct weft_trace *trace)
{
	b->model = calloc(1, sizeof *b->model);
	b->priv = calloc(1, sizeof *b->priv);
	if (!b->model || !b->priv) {
		free(b->model);
		free(b->priv);
		b->model = NULL;
		return WEFT_ENOMEM;
	}
	b->model->priv = b->priv;
	b->model->trace = weft_trace_info(trace);
	for (int kind = 0; kind < 256; kind++) {
		b->is_woken[kind] = weft_kind_has((uint16_t)kind, WEFT_TRAIT_WOKEN);
		snprintf(b->priv->kind_names[kind], sizeof b->priv->kind_names[kind], "kind-%d", kind);
	}
	const size_t parts = b->model->trace->part_count;
	if (parts > 1 && !weft_idmap_split(&b->priv->ids, (uint32_t)weft_part_stride(parts)))
		return WEFT_ENOMEM;
	if (!weft_vec_reserve(&b->promises, 1))
		return WEFT_ENOMEM;
	uint32_t system = add_promise(b, WEFT_SYSTEM_ID);
	b->promises.items[system].created_by = b->promises.items[system].parent = WEFT_NONE;
	b->promises.items[system].kind = WEFT_KIND_SYSTEM;
	b->promises.items[system].flags = WEFT_PROMISE_CREATION_DRAWN;
	return WEFT_OK;
}

static void free_build(struct weft__build *b)
{
	weft_vec_free(&b->promises);
	weft_vec_free(&b->links);
	weft_vec_free(&b->await_ends);
	weft_vec_free(&b->places);
	weft_vec_free(&b->callbacks);
	weft_vec_free(&b->stacks);
	weft_vec_free(&b->spins);
	weft_vec_free(&b->earlier_starts);
	weft_vec_free(&b->trace_parents);
	weft_vec_free(&b->rounds);
	weft_vec_free(&b->deaths);
	weft_vec_free(&b->snapshot_reasons);
	weft_vec_free(&b->messages);
	weft__transfer_drop(b);
	weft_idmap_finish(&b->message_of);
	weft_vec_free(&b->labels);
	weft_vec_free(&b->label_owners);
	weft_vec_free(&b->runs);
	weft_vec_free(&b->run_owners);
	weft_vec_free(&b->run_streams);
	weft_vec_free(&b->pauses);
	weft_vec_free(&b->sleeps);
	weft_vec_free(&b->lulls);
	weft_vec_free(&b->claims);
	for (size_t i = 0; i < b->counters.count; i++)
		free(b->counters.items[i].samples);
	weft_vec_free(&b->counters);
	weft_vec_free(&b->counter_texts);
	weft_vec_free(&b->should_resolve);
	weft_vec_free(&b->orphans);
	weft_vec_free(&b->streams);
	weft_idmap_finish(&b->parts);
	weft_idmap_finish(&b->awaits);
}

static void mark_orphans(struct weft__build *b)
{
	for (size_t i = 0; i < b->orphans.count; i++)
		if (weft_idmap_get(&b->priv->ids, b->orphans.items[i].creator) == WEFT_IDMAP_NONE)
			b->promises.items[b->orphans.items[i].promise].flags |= WEFT_PROMISE_ORPHAN;
}

/* Extends the model to the end of the process: a program that was killed or copied while it slept, slept until then. */
static void extend_to_lifetime(struct weft_model *m)
{
	uint64_t lived_ns = (uint64_t)m->trace->until_ns - (uint64_t)m->start_ns;
	if (m->trace->until_ns > m->start_ns && lived_ns > (uint64_t)m->end_ns)
		m->end_ns = lived_ns > MAX_TIME_NS ? MAX_TIME_NS : (int64_t)lived_ns;
}

/* Builds a model up to the time `until`; of all events if it is NULL.  If `clip` is not NULL, also finds the complete prefix of
 * the trace. */
static int build_model(struct weft_model **out, struct weft_trace *trace, const struct weft_model_options *options,
    const struct weft__complete_prefix *until, struct weft__complete_prefix *clip)
{
	struct weft__build b = {.leaves_parts_out = !(options && options->keep_parts),
	    .knows_pending = options && options->knows_pending,
	    .clip = until};
	int status = init_build(&b, trace);
	if (status == WEFT_OK)
		status = apply_all_events(&b, trace, options);
	if (status == WEFT_OK && !until)
		extend_to_lifetime(b.model);
	if (status == WEFT_OK && clip)
		status = weft__complete_prefix_find(clip, &b);
	if (status >= 0 && until) {
		b.model->is_whole = true;
		b.model->has_absent = until->absent_count > 0;
		b.model->end_ns = until->until_ns - b.model->start_ns;
	}
	const int found = status;
	if (status >= 0)
		mark_orphans(&b);
	if (status >= 0)
		status = weft__model_finish(&b, options && options->keep_binds);
	free_build(&b);
	if (status < 0)
		weft_model_destroy(b.model);
	else
		*out = b.model;
	return status < 0 ? status : found;
}

int weft_model_build(
    struct weft_model **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err)
{
	struct weft__complete_prefix clip = {0};
	struct weft_model *model = NULL;
	int status = build_model(&model, trace, options, NULL, &clip);
	if (status > 0) {
		weft_trace_rewind(trace);
		status = build_model(&model->whole, trace, options, &clip, NULL);
	}
	free(clip.streams);
	free(clip.absent);
	if (status >= 0)
		status = weft__model_read_kernel(model, trace);
	if (status >= 0)
		status = weft__model_read_profile(model);
	if (status >= 0)
		status = weft__model_read_memory(model);
	if (status >= 0 && model->whole)
		model->whole->kernel = model->kernel;
	if (status < 0) {
		weft_model_destroy(model);
		return weft_error_set(err, (enum weft_status)status, "%s",
		    status == WEFT_EFORMAT   ? "no events in the trace"
		    : status == WEFT_ETOOBIG ? "more promises or links than 32 bits can count"
					     : weft_status_string(status));
	}
	*out = model;
	return WEFT_OK;
}
