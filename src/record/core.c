/* core.c: the slow path of events, and the change to the next packet.
 *
 * A stream is written by one OS thread and by the signal handlers that interrupt the thread; readers read the stream's packets
 * at any moment.  The steps have the names that the protocol's model uses (tests/proof/ring.pml): RESERVE, WRITE, PUBLISH
 * (record_inline.h), INVALIDATE, REFILL, VALIDATE (this file), RETIRE (start.c).  SPDX-License-Identifier: ISC */
#include "record/core.h"

#if __STDC_HOSTED__
#include <errno.h>
#define ERRNO_GET() errno
#define ERRNO_SET(e) (errno = (e))
#else
#define ERRNO_GET() 0
#define ERRNO_SET(e) ((void)(e))
#endif

_Static_assert(offsetof(struct weft_packet_header, content_size) == WEFT__CONTENT_SIZE_AT, "record_inline.h knows it");
_Static_assert((int)WEFT_COMPACT_HEADER == (int)WEFT__HEADER, "record_inline.h knows it");
_Static_assert((int)WEFT_COMPACT_GAP_BITS == (int)WEFT__GAP_BITS, "record_inline.h knows it");
_Static_assert((int)WEFT_ID_INLINE == (int)WEFT__INLINE, "record_inline.h knows it");

/* Programs contain these offsets in their machine code, so the offsets must not change.  A change of an offset must increment
 * WEFT__ABI; new members that programs need not know are appended at the end.
 */
_Static_assert(sizeof(void *) != 8 ||
		   (offsetof(struct weft_stream, packet) == 24 && offsetof(struct weft_stream, limit) == 32 &&
		       offsetof(struct weft_stream, generation) == 40 && offsetof(struct weft_stream, running) == 48 &&
		       offsetof(struct weft_stream, next_id) == 56 && offsetof(struct weft_stream, end_id) == 64 &&
		       offsetof(struct weft_stream, awake_since) == 72 && offsetof(struct weft_stream, sample_due) == 88 &&
		       sizeof(struct weft_stream) == 96 && sizeof(struct weft_record_site) == 32 &&
		       sizeof(struct weft_record_text) == 16 && sizeof(struct weft_record_place) == 16) ||
		   WEFT__ABI != 0,
    "this is another ABI");

struct weft__recording weft__recording = {.next_id = 1};
struct weft_stream weft__no_stream = {.published = 1, .running = WEFT_SYSTEM_ID, WEFT__NO_SAMPLING};
unsigned weft__mode;
uint64_t (*weft__clock)(void);
void (*weft__slow_path_hook)(void);

uint64_t weft__time(void)
{
	return __atomic_load_n(&weft__recording.use_counter, __ATOMIC_RELAXED) ? weft__counter() : weft__clock();
}

static uint64_t block_handlers(void)
{
	return weft__recording.enter ? weft__recording.enter() : 0;
}

static void unblock_handlers(uint64_t state)
{
	if (weft__recording.leave)
		weft__recording.leave(state);
}

static struct weft_packet_header *packet_header(const struct weft__stream *s)
{
	return (struct weft_packet_header *)(void *)s->hot.packet;
}

static bool has_list(const struct weft__pending *p)
{
	return p->lists.of[WEFT__PENDING_OF_PROGRAM].list || p->lists.of[WEFT__PENDING_OF_ADAPTER].list;
}

/* Sets up to which byte of the packet the fast path may write now. */
static void set_limit(struct weft__stream *s)
{
	uint32_t limit = s->soft_end;
	if (has_list(&s->pending) && s->checkpoint < limit)
		limit = s->checkpoint;
	if (has_list(&s->pending) && s->pending.active && s->pending.urgent)
		limit = 0;
	__atomic_store_n(&s->hot.limit, limit, __ATOMIC_SEQ_CST);
	/* RETIRE sets `retired` and then `limit`; whichever store to `limit` comes last, `limit` is 0 in the end. */
	if (__atomic_load_n(&s->retired, __ATOMIC_SEQ_CST) || __atomic_load_n(&s->is_broken, __ATOMIC_SEQ_CST))
		__atomic_store_n(&s->hot.limit, 0, __ATOMIC_SEQ_CST);
}

void weft__stream_open(struct weft__stream *s)
{
	set_limit(s);
}

static void fill_header(struct weft__stream *s, struct weft_packet_header *h, uint64_t begin)
{
	h->timestamp_begin = begin;
	h->sequence = s->sequence;
	h->events_before = s->events_before;
	h->lost_full = s->lost_full;
	h->lost_nested = s->lost_nested;
	h->lost_no_stream =
	    s->stream_class == WEFT_CLASS_DEFINITIONS ? __atomic_load_n(&weft__recording.lost_no_stream, __ATOMIC_RELAXED) : 0;
	h->events_discarded = h->lost_full + h->lost_nested + h->lost_no_stream;
	h->clock_hz = s->origin.clock_hz;
	h->pair_clock = begin;
	h->pair_wall_ns = s->origin.wall_ns ? s->origin.wall_ns() : 0;
	h->tid = s->tid;
	__builtin_memcpy(h->thread_name, s->thread_name, sizeof h->thread_name);
}

void weft__packet_prepare(struct weft__stream *s, unsigned char *packet)
{
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)packet;
	h->lock = 0;
	weft__packet_init(h, s->origin.uuid, s->stream_class, s->instance, s->storage.packet_bytes);
	fill_header(s, h, weft__time());
}

/* Starts to use `packet`.  Signal handlers must not run meanwhile; the caller blocks them. */
static void start_packet(struct weft__stream *s, unsigned char *packet)
{
	struct weft_packet_header *h = (struct weft_packet_header *)(void *)packet;
	uint64_t time = weft__time();
	if ((int64_t)(time - s->hot.last) < 0)
		time = s->hot.last;

	/* INVALIDATE: a reader that sees any byte written below also sees the odd value of the lock, or the next even value
	 * after it. */
	uint32_t lock = __atomic_load_n(&h->lock, __ATOMIC_RELAXED);
	__atomic_store_n(&h->lock, lock | 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->content_size, sizeof *h * 8, __ATOMIC_RELAXED);
	WEFT__FENCE(__ATOMIC_RELEASE);

	/* REFILL */
	struct weft_packet_header fresh = {.lock = lock | 1};
	weft__packet_init(&fresh, s->origin.uuid, s->stream_class, s->instance, s->storage.packet_bytes);
	fill_header(s, &fresh, time);
	*h = fresh;

	/* VALIDATE: this store pairs with the reader's acquire of the lock. */
	__atomic_store_n(&h->lock, (lock | 1) + 1, __ATOMIC_RELEASE);

	s->hot.packet = packet;
	s->hot.last = time;
	uint64_t next = (s->hot.next & ~(uint64_t)UINT32_MAX) | sizeof *h;
	s->begin_next = next;
	__atomic_store_n(&s->hot.published, next, __ATOMIC_RELAXED);
	__atomic_store_n(&s->hot.next, next, __ATOMIC_RELAXED);
	s->checkpoint = sizeof *h + WEFT__CHECKPOINT_BYTES;
	set_limit(s);
}

void weft__stream_begin(struct weft__stream *s)
{
	uint32_t nested_bytes = (uint32_t)(s->storage.packet_bytes / 8);
	s->soft_end = (uint32_t)s->storage.packet_bytes - (nested_bytes < WEFT__NESTED_BYTES ? nested_bytes : WEFT__NESTED_BYTES);
	if (s->stream_class != WEFT_CLASS_EVENTS) /* these streams are written under a lock */
		s->soft_end = (uint32_t)s->storage.packet_bytes;
	start_packet(s, s->storage.base);
}

void weft__stream_reset(struct weft__stream *s)
{
	struct weft__pending pending = s->pending;
	uint64_t next = s->hot.next;
	*s = (struct weft__stream){
	    .hot = {.running = WEFT_SYSTEM_ID, WEFT__NO_SAMPLING}, .host = s->host, .origin = weft__recording.origin};
	s->pending = (struct weft__pending){.lists = pending.lists, .inside = pending.inside};
	/* No value of `next` repeats, because a signal handler may start a recording in the middle of its OS thread's next
	 * event. */
	s->hot.next = s->hot.published = ((next >> 32) + 1) << 32;
}

void weft__write_losses(struct weft__stream *s)
{
	struct weft_packet_header *h = packet_header(s);
	__atomic_store_n(&h->lost_full, s->lost_full, __ATOMIC_RELAXED);
	__atomic_store_n(&h->lost_nested, s->lost_nested, __ATOMIC_RELAXED);
	__atomic_store_n(&h->events_discarded, s->lost_full + s->lost_nested, __ATOMIC_RELAXED);
}

void weft__write_lost_no_stream(void)
{
	struct weft_packet_header *h = packet_header(&weft__recording.definitions);
	uint64_t lost = __atomic_load_n(&weft__recording.lost_no_stream, __ATOMIC_RELAXED);
	__atomic_store_n(&h->lost_no_stream, lost, __ATOMIC_RELAXED);
	__atomic_store_n(&h->events_discarded, lost, __ATOMIC_RELAXED);
}

void weft__count_lost_no_stream(void)
{
	__atomic_fetch_add(&weft__recording.lost_no_stream, 1, __ATOMIC_RELAXED);
	/* If another thread holds the lock, the next loss or the stop writes the count of lost events. */
	if (weft__define_lock(1)) {
		/* A stop of the recording may just have removed the packets. */
		if (weft__recording.definitions.storage.base)
			weft__write_lost_no_stream();
		weft__define_unlock();
	}
}

/* Changes to the stream's next packet, unless a signal handler did so since hot.next was `seen`; returns false if there is no
 * packet. */
static bool switch_packet(struct weft__stream *s, uint64_t seen)
{
	bool done = true;
	uint64_t state = block_handlers();
	if (s->hot.next == seen) {
		s->switching = true;
		/* A signal handler that runs nevertheless finds no space in the packet. */
		__atomic_store_n(&s->hot.limit, 0, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		struct weft__storage *storage = &s->storage;
		uint64_t events = (uint32_t)((s->hot.next >> 32) - (s->begin_next >> 32));
		/* The counts are updated before a new file gets its name, because readers read the file from then on, even if
		 * the process dies. */
		s->sequence++;
		s->events_before += events;
		if (storage->grow ? storage->grow(s) : !storage->once || s->slot + 1 < storage->count) {
			if (s->slot + 1 == storage->count && storage->count < storage->most) {
				/* A ring in its first lap grows by a packet; if it cannot grow, it reuses the packets that it
				 * has. */
				if (storage->extend(s))
					storage->count++;
				else
					storage->most = storage->count;
			}
			if (!storage->grow)
				s->slot = s->slot + 1 < storage->count ? s->slot + 1 : 0;
			start_packet(s, storage->base + (size_t)s->slot * storage->packet_bytes);
		} else {
			s->sequence--;
			s->events_before -= events;
			done = false;
			s->full = true;
			set_limit(s);
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		s->switching = false;
	}
	unblock_handlers(state);
	return done;
}

void weft__record(struct weft__stream *s, struct weft_wire_event *event)
{
	size_t most = s->soft_end - sizeof(struct weft_packet_header) - WEFT_EXTENDED_HEADER;
	uint8_t id = weft__event_id(event);
	size_t payload = weft__event_payload(event, id);
	if (payload > most) {
		weft__event_cut(event, most);
		id = weft__event_id(event);
		payload = weft__event_payload(event, id);
	}
	for (;;) {
		uint64_t begin = __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED);
		bool nested = begin != __atomic_load_n(&s->hot.published, __ATOMIC_RELAXED) || s->switching;
		uint64_t time = weft__time(), last = s->hot.last;
		if ((int64_t)(time - last) < 0)
			time = last;
		bool extended = (time - last) >> WEFT_COMPACT_GAP_BITS != 0;
		size_t size = payload + (extended ? WEFT_EXTENDED_HEADER : WEFT_COMPACT_HEADER);
		size_t end_limit = s->switching ? 0 : nested ? s->storage.packet_bytes : s->soft_end;
		if ((uint32_t)begin + size > end_limit) {
			if (nested) {
				/* If a signal handler ran between the two loads, this event is not nested. */
				if (!s->switching && __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED) != begin)
					continue;
				s->lost_nested++;
				if (!s->switching)
					weft__write_losses(s);
				return;
			}
			if (s->full || !switch_packet(s, begin)) {
				s->lost_full++;
				weft__write_losses(s);
				return;
			}
			continue;
		}
		if (!extended)
			s->hot.last = time;
		uint64_t end = begin + ((uint64_t)1 << 32 | size);
		if (!weft__local_swap(&s->hot.next, begin, end)) /* RESERVE */
			continue;
		/* The time `last` must not be stored before RESERVE: a signal handler in between would write a compact timestamp
		 * relative to an event that does not exist. */
		if (extended)
			s->hot.last = time;
		weft__event_write(s->hot.packet + (uint32_t)begin, event, id, time, extended); /* WRITE */
		struct weft__place place = {.stream = &s->hot, .packet = s->hot.packet, .begin = begin, .end = end};
		weft__publish(&place); /* PUBLISH */
		return;
	}
}

void weft__pending_begin(struct weft__pending *p, const struct weft__pending_lists *lists)
{
	const bool inside = p->inside;
	p->inside = true; /* events of signal handlers also reach this function, which must not be entered twice */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*p = (struct weft__pending){.lists = *lists, .budget = 1, .inside = true};
	p->active = p->urgent = has_list(p);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	p->inside = inside;
}

/* Lists some pending promises; returns false after the last promise. */
static bool list_some_pending(struct weft__pending *p)
{
	while (!p->lists.of[p->at].list) /* the loop ends, because at least one list exists */
		p->at = (p->at + 1) % WEFT__PENDING_LISTS;
	const struct weft__pending_list *list = &p->lists.of[p->at];
	p->inside = true;
	p->cursor = list->list(list->data, p->cursor, p->budget);
	p->inside = false;
	for (bool is_through = !p->cursor; is_through; is_through = p->at && !p->lists.of[p->at].list)
		p->at = (p->at + 1) % WEFT__PENDING_LISTS;
	return p->cursor || p->at;
}

/* Lists some pending promises in the stream, if the next step is due. */
static void list_pending_step(struct weft__stream *s, enum weft_op op)
{
	struct weft__pending *p = &s->pending;
	bool at_rest =
	    op == WEFT_OP_RUN || op == WEFT_OP_READ || op == WEFT_OP_SIGNAL || op == WEFT_OP_IDLE || op == WEFT_OP_RESUME;
	if (!has_list(p) || p->inside || s->hot.next != s->hot.published)
		return;
	/* All pending promises must be listed once in every half lap of the ring. */
	const uint64_t half_lap = (uint64_t)s->storage.packet_bytes * s->storage.most / 2;
	const uint64_t at = s->sequence * s->storage.packet_bytes + (uint32_t)s->hot.next;
	bool due = (uint32_t)s->hot.next >= s->checkpoint || s->checkpoint > s->soft_end;
	if (!due && !p->urgent)
		return;
	if (p->active && at_rest) {
		if (!p->cursor && !p->at)
			p->began = at;
		if (!list_some_pending(p)) {
			p->active = p->urgent = false;
			/* All pending promises were listed within a quarter of half a lap: each later step lists half as many. */
			if (p->budget > 1 && at - p->began < half_lap / 4)
				p->budget /= 2;
		}
	}
	if (p->active && !at_rest) {
		/* Until no event is in progress, every event takes the slow path. */
		__atomic_store_n(&s->hot.limit, 0, __ATOMIC_RELAXED);
		return;
	}
	if (due) {
		s->checkpoint = (uint32_t)s->hot.next + WEFT__CHECKPOINT_BYTES;
		if (p->active && p->budget < WEFT__PENDING_BUDGET_MAX)
			p->budget *= 2;
		if (!p->active && at - p->began >= half_lap && s->origin.mode == WEFT_RECORD_RING) {
			p->active = true;
			p->urgent = half_lap <= WEFT__PENDING_SMALL_BYTES;
		}
	}
	/* If the pending promises need more space than half of the ring, the rest of the ring is left to new events. */
	if ((p->cursor || p->at) && at - p->began >= half_lap && s->origin.mode == WEFT_RECORD_RING)
		p->urgent = false;
	set_limit(s);
}

/* Returns this OS thread's stream, which is in the slow path until slow_end(); NULL means that the caller counts the event as
 * lost and returns. */
static struct weft__stream *slow_begin(void)
{
	if (weft__slow_path_hook)
		weft__slow_path_hook();
	struct weft__stream *s = (struct weft__stream *)(void *)weft__stream;
	if (weft__stream != &weft__no_stream) {
		/* This store pairs with RETIRE: either RETIRE sees in_slow, or this thread sees `retired`. */
		__atomic_store_n(&s->in_slow, s->in_slow + 1, __ATOMIC_SEQ_CST);
		if (s->storage.base && !__atomic_load_n(&s->retired, __ATOMIC_SEQ_CST) && !s->is_broken)
			return s;
		__atomic_store_n(&s->in_slow, s->in_slow - 1, __ATOMIC_SEQ_CST);
	}
	s = weft__attach();
	if (!s && __atomic_load_n(&weft__mode, __ATOMIC_RELAXED) != WEFT__OFF)
		weft__count_lost_no_stream();
	return s;
}

static void slow_end(struct weft__stream *s, enum weft_op op)
{
	list_pending_step(s, op);
	__atomic_store_n(&s->in_slow, s->in_slow - 1, __ATOMIC_SEQ_CST);
}

void weft__slow_ids(enum weft_op op, weft_id a, weft_id b)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (s) {
		struct weft_wire_event event = {.op = (uint8_t)op, .a = a, .b = b, .value = (uint32_t)b /* a position */};
		weft__record(s, &event);
		weft__note_running(&s->hot, op, a, b);
		slow_end(s, op);
	}
	ERRNO_SET(saved);
}

#define ID_BLOCK 1024

static weft_id allocate_id(struct weft__stream *s)
{
	if (!s)
		return __atomic_fetch_add(&weft__recording.next_id, 1, __ATOMIC_RELAXED);
	weft_id end = (weft_id)s->hot.end_id, id = end ? weft__local_take(&s->hot.next_id) : 0;
	if (id < end)
		return id;
	/* If a signal handler takes a block of ids too, one of the two blocks stays unused. */
	uint64_t state = block_handlers();
	id = __atomic_fetch_add(&weft__recording.next_id, ID_BLOCK, __ATOMIC_RELAXED);
	s->hot.next_id = (uint64_t)id + 1;
	s->hot.end_id = (uint64_t)id + ID_BLOCK;
	unblock_handlers(state);
	return id;
}

/* Returns the key of the place (call site) or of the site; 0 if both are NULL. */
static uint16_t intern_location(struct weft__stream *s, struct weft_record_site *site, struct weft_record_place *place)
{
	return place ? weft__intern_place(s, place) : site ? weft__intern_site(s, site) : 0;
}

static weft_id record_create(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, struct weft_record_place *place)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (!promise)
		promise = allocate_id(s);
	if (s) {
		struct weft_wire_event event = {.op = WEFT_OP_CREATE, .a = by, .b = promise, .kind = (uint8_t)kind};
		event.site = intern_location(s, site, place);
		weft__record(s, &event);
		slow_end(s, WEFT_OP_CREATE);
	}
	ERRNO_SET(saved);
	return promise;
}

weft_id weft__slow_create(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site)
{
	return record_create(by, promise, kind, site, NULL);
}

weft_id weft__slow_create_at(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place)
{
	return record_create(by, promise, kind, NULL, place);
}

/* Creates an internal promise, which belongs to its owner.  The ownership is recorded before the creation, so that a reader that
 * omits internal promises knows it before it sees the promise. */
weft_id weft__slow_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	weft_id promise = allocate_id(s);
	if (s) {
		struct weft_wire_event event = {.op = WEFT_OP_BELONGS, .a = promise, .b = owner};
		weft__record(s, &event);
		event = (struct weft_wire_event){.op = WEFT_OP_CREATE, .a = by, .b = promise, .kind = (uint8_t)kind};
		event.site = intern_location(s, NULL, place);
		weft__record(s, &event);
		slow_end(s, WEFT_OP_CREATE);
	}
	ERRNO_SET(saved);
	return promise;
}

void weft__slow_detail(weft_id promise, enum weft_detail what, int64_t value, const char *text)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (s) {
		struct weft_wire_event event = {.op = WEFT_OP_DETAIL, .kind = (uint8_t)what, .a = promise, .value = value};
		event.text = text;
		event.text_bytes = (uint32_t)__builtin_strlen(text);
		weft__record(s, &event);
		slow_end(s, WEFT_OP_DETAIL);
	}
	ERRNO_SET(saved);
}

/* Records a detail whose value is a key and a time. babeltrace2 prints the text of an earlier event if a text is empty. */
static void record_place(weft_id promise, enum weft_detail what, const char *text, struct weft_record_site *site,
    struct weft_record_place *place, uint64_t ns)
{
	enum { KEY_BITS = 16 };
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (s) {
		struct weft_wire_event event = {.op = WEFT_OP_DETAIL, .kind = (uint8_t)what, .a = promise, .text = text};
		event.text_bytes = (uint32_t)__builtin_strlen(text);
		event.value = (int64_t)(ns << KEY_BITS | intern_location(s, site, place));
		weft__record(s, &event);
		slow_end(s, WEFT_OP_DETAIL);
	}
	ERRNO_SET(saved);
}

void weft__slow_place(weft_id promise, struct weft_record_place *place)
{
	record_place(promise, WEFT_DETAIL_PLACE, "at", NULL, place, 0);
}

void weft__slow_call(weft_id promise, struct weft_record_place *place, const char *call)
{
	record_place(promise, WEFT_DETAIL_PLACE, call, NULL, place, 0);
}

void weft__slow_call_site(weft_id promise, struct weft_record_site *site, const char *call)
{
	record_place(promise, WEFT_DETAIL_PLACE, call, site, NULL, 0);
}

void weft__slow_callback(weft_id promise, struct weft_record_place *place, uint64_t since)
{
	/* The computation uses no floating point, because a kernel has none. */
	const uint64_t age = weft__now() - since, hz = weft__recording.origin.clock_hz;
	const uint64_t age_ns = hz ? age / hz * 1000000000u + age % hz * 1000000000u / hz : 0;
	record_place(promise, WEFT_DETAIL_CALLBACK, "at", NULL, place, age_ns);
}

/* Records the keys of the callers' call sites as text, such as "12 7 31". */
void weft__slow_stack(weft_id promise, const void *const *addresses, unsigned count)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (s) {
		char text[WEFT_STACK_MAX * 6];
		uint32_t n = 0;
		count = count < WEFT_STACK_MAX ? count : WEFT_STACK_MAX;
		for (unsigned i = 0; i < count; i++) {
			char digits[5];
			unsigned key = weft__intern_address(s, addresses[i]), digit_count = 0;
			do
				digits[digit_count++] = (char)('0' + key % 10);
			while (key /= 10);
			if (i)
				text[n++] = ' ';
			while (digit_count)
				text[n++] = digits[--digit_count];
		}
		struct weft_wire_event event = {.op = WEFT_OP_DETAIL, .kind = WEFT_DETAIL_STACK, .a = promise, .value = count};
		event.text = text;
		event.text_bytes = n;
		weft__record(s, &event);
		slow_end(s, WEFT_OP_DETAIL);
	}
	ERRNO_SET(saved);
}

void weft__slow_text(
    enum weft_op op, weft_id a, weft_id b, int64_t value, struct weft_record_text *interned, const char *text, size_t bytes)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (s) {
		struct weft_wire_event event = {.op = (uint8_t)op, .a = a, .b = b, .value = value};
		if (interned) {
			event.key = weft__intern_text(s, interned);
			bytes = event.key ? 0 : __builtin_strlen(text);
		}
		event.text = text;
		event.text_bytes = bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2;
		weft__record(s, &event);
		if (op == WEFT_OP_IDLE)
			s->hot.running = WEFT_SYSTEM_ID;
		slow_end(s, op);
	}
	if (s && op == WEFT_OP_IDLE && weft__stream == &s->hot) {
		if (weft__was_long(&s->hot))
			weft__slow_round();
		s->hot.awake_since = 0;
	}
	ERRNO_SET(saved);
}

static weft_id record_pending(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site,
    struct weft_record_place *place, uint64_t since, const char *label)
{
	int saved = ERRNO_GET();
	struct weft__stream *s = slow_begin();
	if (!promise)
		promise = allocate_id(s);
	if (s) {
		struct weft_wire_event event = {.op = WEFT_OP_PENDING, .a = by, .b = promise, .kind = (uint8_t)kind};
		event.value = (int64_t)since;
		event.site = intern_location(s, site, place);
		event.text = label ? label : "";
		size_t bytes = __builtin_strlen(event.text);
		event.text_bytes = bytes < UINT32_MAX / 2 ? (uint32_t)bytes : UINT32_MAX / 2;
		weft__record(s, &event);
		slow_end(s, WEFT_OP_PENDING);
	}
	ERRNO_SET(saved);
	return promise;
}

weft_id weft__slow_pending(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, uint64_t since, const char *label)
{
	return record_pending(by, promise, kind, site, NULL, since, label);
}

weft_id weft__slow_pending_at(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place, uint64_t since, const char *label)
{
	return record_pending(by, promise, kind, NULL, place, since, label);
}
