/* record_inline.h: the bodies of record.h's calls; do not include it directly.
 *
 * An event is written in three steps, which have the same names in tests/proof/ring.pml, the model of this protocol:
 *   reserve   reserves bytes in the packet, and a time, atomically for signal handlers;
 *   write     writes the bytes;
 * publish makes the event visible to readers.  If the event was made in a signal handler that interrupted another event, the code
 * of the interrupted event does this step for both.  Rare cases (no stream yet, packet full, long time without events, ids over
 * 32 bits) call weft__slow_*().  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_INLINE_H
#define WEFT_RECORD_INLINE_H

#include <weft/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT__FAST static inline __attribute__((always_inline))
#define WEFT__API __attribute__((visibility("default")))
#define WEFT__LIKELY(x) __builtin_expect(!!(x), 1)

/* A stream: the destination of an OS thread's events.  Only the OS thread and its signal handlers write these fields, but another
 * thread may set `limit` to 0, which makes the next event call weft__slow_*(). */
struct weft_stream {
	weft_word next;      /* low half: used bytes of the packet; high half: number of events, so that each value is unique */
	weft_word published; /* value of `next` up to which readers see events; less than `next` while an event is written */
	uint64_t last;       /* time of the previous event */
	unsigned char *packet;
	uint32_t limit; /* offset in the packet up to which events need no slow path */
	uint32_t instance;
	uint64_t generation; /* number of the recording, shifted left by 16; the upper 48 bits of all keys of texts and sites */
	weft_id running;
	weft_word next_id, end_id; /* range of ids that only this stream gives to promises */
	uint64_t awake_since;      /* time at which the OS thread's last sleep ended; 0: unknown */
	uint64_t long_ticks; /* least time from awake_since to the next sleep for which the CPU use in between is recorded */
	uint64_t sample_due; /* time after which the end of a sleep records the CPU use */
};

enum weft__mode { WEFT__OFF, WEFT__COUNTER_CLOCK, WEFT__CALLED_CLOCK };

/* Offset of the content size in a packet, and sizes of events. src/record asserts that these numbers are those of src/wire. */
enum {
	WEFT__CONTENT_SIZE_AT = 48,
	WEFT__HEADER = 5,
	WEFT__GAP_BITS = 29,
	WEFT__INLINE = 0x20,
	WEFT__FAST_TEXT = 256,
	WEFT__AHEAD = 256
};

/* Low half of weft_stream.next of a closed stream; with this value no event can be reserved. */
#define WEFT__CLOSED UINT32_MAX

/* The TLS model.  WEFT_TLS_DYNAMIC is for plugins of programs with musl, which cannot load a library with static TLS while a
 * program runs; the library weft-record must be built with it too.  With dynamic TLS, glibc may allocate memory at an access, so
 * signal handlers may not record. */
#if !__STDC_HOSTED__
#define WEFT__PER_THREAD
#define WEFT__PER_THREAD_MODEL
#elif defined(WEFT_TLS_DYNAMIC)
#define WEFT__PER_THREAD __thread
#define WEFT__PER_THREAD_MODEL
#else
#define WEFT__PER_THREAD __thread
#define WEFT__PER_THREAD_MODEL __attribute__((tls_model("initial-exec")))
#endif

/* The version of the memory layout that this header and the library share: struct weft_stream, the modes, struct
 * weft_record_options, packet offsets and event sizes.  A change of the layout must increment this number, and add the previous
 * number to src/record/abi.c.  Programs that were built with an older number then use symbols of their own, and nothing of these
 * programs is recorded. */
#ifndef WEFT__ABI
#define WEFT__ABI 0
#endif
#if WEFT__ABI == 0
#define WEFT__NAMED(name)
#else
#define WEFT__TEXT_OF(number) #number
#define WEFT__NUMBERED(name, number) __asm__(name "_abi" WEFT__TEXT_OF(number))
#define WEFT__EXPANDED(name, number) WEFT__NUMBERED(name, number)
#define WEFT__NAMED(name) WEFT__EXPANDED(name, WEFT__ABI)
#endif

extern WEFT__API unsigned weft__mode WEFT__NAMED("weft__mode"); /* enum weft__mode */
extern WEFT__API WEFT__PER_THREAD WEFT__PER_THREAD_MODEL struct weft_stream *weft__stream WEFT__NAMED(
    "weft__stream"); /* never NULL */
extern WEFT__API uint64_t (*weft__clock)(void) WEFT__NAMED("weft__clock");

/* Does weft_start().  `bytes` is the size of the program's struct weft_record_options; members after this size count as 0. */
WEFT__API int weft__start_as(const struct weft_record_options *options, size_t bytes) WEFT__NAMED("weft__start_as");
WEFT__API const char *weft__start_error(void) WEFT__NAMED("weft__start_error");
WEFT__API const char *weft__version(void) WEFT__NAMED("weft__version");
WEFT__API void weft__stop(void) WEFT__NAMED("weft__stop");
WEFT__API uint64_t weft__now(void) WEFT__NAMED("weft__now");
WEFT__API void weft__list_pending(weft_list_pending_fn *list, void *data) WEFT__NAMED("weft__list_pending");
/* Registers a weft_list_pending_fn of libweft-hook.so, in addition to the program's own. */
WEFT__API void weft__list_pending_beside(weft_list_pending_fn *list, void *data) WEFT__NAMED("weft__list_pending_beside");
WEFT__API void weft__slow_ids(enum weft_op op, weft_id a, weft_id b) WEFT__NAMED("weft__slow_ids");
WEFT__API weft_id weft__slow_create(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site)
    WEFT__NAMED("weft__slow_create");
WEFT__API weft_id weft__slow_create_at(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place)
    WEFT__NAMED("weft__slow_create_at");
WEFT__API weft_id weft__slow_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner)
    WEFT__NAMED("weft__slow_create_part");
WEFT__API void weft__slow_awake(void) WEFT__NAMED("weft__slow_awake");
WEFT__API void weft__slow_round(void) WEFT__NAMED("weft__slow_round");
WEFT__API void weft__slow_detail(weft_id promise, enum weft_detail what, int64_t value, const char *text)
    WEFT__NAMED("weft__slow_detail");
WEFT__API bool weft__connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions)
    WEFT__NAMED("weft__connection");
WEFT__API void weft__still_connected(weft_id promise, int fd, const struct weft_positions *positions)
    WEFT__NAMED("weft__still_connected");
WEFT__API void weft__datagram(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest, bool is_sent)
    WEFT__NAMED("weft__datagram");
WEFT__API void weft__slow_callback(weft_id promise, struct weft_record_place *place, uint64_t since)
    WEFT__NAMED("weft__slow_callback");
WEFT__API void weft__slow_place(weft_id promise, struct weft_record_place *place) WEFT__NAMED("weft__slow_place");
WEFT__API void weft__slow_call(weft_id promise, struct weft_record_place *place, const char *call) WEFT__NAMED("weft__slow_call");
WEFT__API void weft__slow_call_site(weft_id promise, struct weft_record_site *site, const char *call)
    WEFT__NAMED("weft__slow_call_site");
WEFT__API void weft__slow_stack(weft_id promise, const void *const *addresses, unsigned count) WEFT__NAMED("weft__slow_stack");
/* Records that the running promise allocated `bytes` bytes, which stand for all allocations if one is sampled in every
 * `period_bytes` bytes.  `stack` has `count` return addresses, the innermost first.  Returns the number of the allocation, or 0
 * if the sample is lost; `bytes` 0 only counts a lost sample.  The function allocates nothing, and may run in a signal handler.
 */
WEFT__API uint32_t weft__memory_allocated(uint64_t bytes, uint32_t period_bytes, const void *const *stack, unsigned count)
    WEFT__NAMED("weft__memory_allocated");
/* Records that an allocation with a number was freed, as weft__memory_allocated(). */
WEFT__API void weft__memory_freed(uint32_t number) WEFT__NAMED("weft__memory_freed");
WEFT__API void weft__slow_text(enum weft_op op, weft_id a, weft_id b, int64_t value, struct weft_record_text *interned,
    const char *text, size_t bytes) WEFT__NAMED("weft__slow_text");
WEFT__API weft_id weft__slow_pending(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site,
    uint64_t since, const char *label) WEFT__NAMED("weft__slow_pending");
WEFT__API weft_id weft__slow_pending_at(weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place,
    uint64_t since, const char *label) WEFT__NAMED("weft__slow_pending_at");

/* The mode of the recorder.  With WEFT_DISABLE it is a constant, so that compilers drop all calls even without optimization. */
#ifdef WEFT_DISABLE
#define WEFT__GATE() ((unsigned)WEFT__OFF)
#define WEFT__IS_OFF(mode) true
#else
#define WEFT__IS_OFF(mode) ((mode) == WEFT__OFF)
#ifndef WEFT__USUAL /* the mode for which compilers optimize branches */
#define WEFT__USUAL WEFT__OFF
#endif
#define WEFT__GATE() ((unsigned)__builtin_expect((long)__atomic_load_n(&weft__mode, __ATOMIC_RELAXED), WEFT__USUAL))
#endif

#define WEFT__SITE()                                                                                                             \
	(__extension__({                                                                                                         \
		static struct weft_record_site weft__here = {0, __FILE__, __func__, __LINE__};                                   \
		&weft__here;                                                                                                     \
	}))
#define WEFT__TEXT(literal, message)                                                                                             \
	(__extension__({                                                                                                         \
		static struct weft_record_text weft__text = WEFT__INITIAL(literal, message);                                     \
		&weft__text;                                                                                                     \
	}))

/* Reads the CPU's counter. */
WEFT__FAST uint64_t weft__counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
	uint32_t low, high;
	__asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t ticks;
	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return weft__clock();
#endif
}

/* Sets *word to `to` if *word is `from`, atomically for the signal handlers of this thread; returns whether *word was set.  No
 * other thread writes the word, so the instruction needs no lock prefix. */
WEFT__FAST bool weft__local_swap(weft_word *word, uint64_t from, uint64_t to)
{
#if defined(__x86_64__)
	bool done;
	__asm__ __volatile__("cmpxchgq %3, %1" : "=@ccz"(done), "+m"(*word), "+a"(from) : "r"(to) : "memory");
	return done;
#else
	bool done = __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return done;
#endif
}

/* Adds 1 to *word, atomically for the signal handlers of this thread; returns the previous value. */
WEFT__FAST int64_t weft__local_take(weft_word *word)
{
#if defined(__x86_64__)
	int64_t one = 1;
	__asm__ __volatile__("xaddq %0, %1" : "+r"(one), "+m"(*word) : : "memory");
	return one;
#else
	return (int64_t)__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
#endif
}

struct weft__place {
	struct weft_stream *stream;
	unsigned char *packet; /* the packet, which stays that of the stream until publish: a handler that finds the packet full
				  records nothing */
	unsigned char *at;     /* address of the reserved bytes; weft__reserve() advances it past the event's header */
	uint64_t begin, end;
};

/* Step reserve: reserves `size` bytes for `events` events at one time, and stores the low half of the time in *low.  Returns
 * false if the caller must call weft__slow_*().
 */
WEFT__FAST bool weft__reserve_bytes(struct weft__place *place, unsigned mode, uint32_t events, uint32_t size, uint32_t *low)
{
	struct weft_stream *s = weft__stream;
	uint64_t begin = __atomic_load_n(&s->next, __ATOMIC_RELAXED), end = begin + ((uint64_t)events << 32 | size);
	__atomic_signal_fence(
	    __ATOMIC_ACQUIRE); /* RETIRE sets `limit` to 0 first, then changes `next`; so `next` must be loaded before `limit` */
	if (__builtin_expect((uint32_t)begin + size > __atomic_load_n(&s->limit, __ATOMIC_RELAXED), 0))
		return false;
	uint64_t time = WEFT__LIKELY(mode == WEFT__COUNTER_CLOCK) ? weft__counter() : weft__clock();
	if (__builtin_expect((time - s->last) >> WEFT__GAP_BITS != 0, 0))
		return false;
	/* The time is taken before the reservation: if a signal handler records an event in between, the swap fails. */
	s->last = time;
	if (__builtin_expect(!weft__local_swap(&s->next, begin, end), 0))
		return false;
	unsigned char *packet = s->packet, *at = packet + (uint32_t)begin;
	__builtin_prefetch(at + WEFT__AHEAD,
	    1); /* the next cache lines of the packet: in a real program, they are not in the cache when events reach them */
	place->stream = s;
	place->packet = packet;
	place->at = at;
	place->begin = begin;
	place->end = end;
	*low = (uint32_t)time;
	return true;
}

/* Writes an event's header; returns the address after the header. */
WEFT__FAST unsigned char *weft__put_header(unsigned char *at, uint8_t id, uint32_t low)
{
	at[0] = id;
	__builtin_memcpy(at + 1, &low, 4);
	return at + WEFT__HEADER;
}

/* Reserves one event and writes its header; returns false if the caller must call weft__slow_*(). */
WEFT__FAST bool weft__reserve(struct weft__place *place, unsigned mode, uint8_t id, uint32_t payload)
{
	uint32_t low;
	if (!weft__reserve_bytes(place, mode, 1, WEFT__HEADER + payload, &low))
		return false;
	place->at = weft__put_header(place->at, id, low);
	return true;
}

/* Step publish: makes the event visible to readers. */
WEFT__FAST void weft__publish(const struct weft__place *place)
{
	struct weft_stream *s = place->stream;
	if (__builtin_expect(__atomic_load_n(&s->published, __ATOMIC_RELAXED) != place->begin, 0))
		return;
	weft_word *content = (weft_word *)(void *)(place->packet + WEFT__CONTENT_SIZE_AT);
	uint64_t end = place->end;
	for (;;) {
		/* Pairs with the reader's acquire of the content size: a reader that sees this size sees the events too. */
		__atomic_store_n(content, (uint64_t)(uint32_t)end * 8, __ATOMIC_RELEASE);
		/* Pairs with RETIRE's acquire: if `published` equals `next`, RETIRE sees all events complete. */
		__atomic_store_n(&s->published, end, __ATOMIC_RELEASE);
		/* A signal handler that ran before this store left its event for this call to publish. */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		uint64_t next = __atomic_load_n(&s->next, __ATOMIC_RELAXED);
		if (__builtin_expect(next == end, 1))
			return;
		/* A signal handler that ran after the store published its own event, perhaps in another packet; or RETIRE closed
		 * the stream. */
		if (__atomic_load_n(&s->published, __ATOMIC_RELAXED) != end || (uint32_t)next == WEFT__CLOSED)
			return;
		end = next;
	}
}

WEFT__FAST bool weft__is_narrow(int64_t v)
{
	return v == (int32_t)v;
}

WEFT__FAST void weft__put32(unsigned char *at, int64_t v)
{
	int32_t word = (int32_t)v;
	__builtin_memcpy(at, &word, 4);
}

WEFT__FAST void weft__put16(unsigned char *at, uint64_t v)
{
	uint16_t word = (uint16_t)v;
	__builtin_memcpy(at, &word, 2);
}

/* Sets the running promise of the stream after an operation. */
WEFT__FAST void weft__note_running(struct weft_stream *s, enum weft_op op, weft_id a, weft_id b)
{
	if (op == WEFT_OP_RUN || op == WEFT_OP_READ || op == WEFT_OP_RESUME)
		s->running = a;
	else if (op == WEFT_OP_SIGNAL)
		s->running = b;
	if (op == WEFT_OP_RESUME)
		s->awake_since = s->last;
}

WEFT__FAST void weft__one(enum weft_op op, weft_id a)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	if (WEFT__LIKELY(weft__is_narrow(a)) && weft__reserve(&place, mode, (uint8_t)op, 4)) {
		weft__put32(place.at, a);
		weft__note_running(place.stream, op, a, 0);
		weft__publish(&place);
	} else {
		weft__slow_ids(op, a, 0);
	}
}

WEFT__FAST void weft__two(enum weft_op op, weft_id a, weft_id b)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	if (WEFT__LIKELY(weft__is_narrow(a) && weft__is_narrow(b)) && weft__reserve(&place, mode, (uint8_t)op, 8)) {
		weft__put32(place.at, a);
		weft__put32(place.at + 4, b);
		weft__note_running(place.stream, op, a, b);
		weft__publish(&place);
	} else {
		weft__slow_ids(op, a, b);
	}
}

/* Loads the key of a text or site into *out; returns whether the key belongs to this recording. */
WEFT__FAST bool weft__key(const weft_word *key, uint64_t *out)
{
	*out = __atomic_load_n(key, __ATOMIC_RELAXED);
	return WEFT__LIKELY((*out ^ weft__stream->generation) >> 16 == 0);
}

/* Records an operation with a text that the trace stores once; the fields are [a] [b] [value] key. */
WEFT__FAST void weft__texted(
    enum weft_op op, bool has_a, weft_id a, bool has_b, weft_id b, bool has_value, int64_t value, struct weft_record_text *text)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	uint64_t key;
	unsigned at_b = has_a ? 4 : 0, at_value = at_b + (has_b ? 4 : 0), at_key = at_value + (has_value ? 4 : 0);
	if (WEFT__LIKELY(weft__is_narrow(a) && weft__is_narrow(b) && weft__is_narrow(value)) && weft__key(&text->key, &key) &&
	    weft__reserve(&place, mode, (uint8_t)op, at_key + 2)) {
		if (has_a)
			weft__put32(place.at, a);
		if (has_b)
			weft__put32(place.at + at_b, b);
		if (has_value)
			weft__put32(place.at + at_value, value);
		weft__put16(place.at + at_key, key);
		weft__publish(&place);
	} else {
		weft__slow_text(op, a, b, value, text, text->text, 0);
	}
}

/* Copies a short text.  A memcpy() would become `rep movs`, which is several times slower. */
WEFT__FAST void weft__copy(unsigned char *to, const char *from, size_t bytes)
{
	size_t i = 0;
	if (bytes >= 16) {
		for (; i + 16 <= bytes; i += 16)
			__builtin_memcpy(to + i, from + i, 16);
		__builtin_memcpy(to + bytes - 16, from + bytes - 16, 16);
	} else if (bytes >= 8) {
		__builtin_memcpy(to, from, 8);
		__builtin_memcpy(to + bytes - 8, from + bytes - 8, 8);
	} else if (bytes >= 4) {
		__builtin_memcpy(to, from, 4);
		__builtin_memcpy(to + bytes - 4, from + bytes - 4, 4);
	} else {
		for (; i < bytes; i++)
			to[i] = (unsigned char)from[i];
	}
}

/* Records an operation with a copy of the text; the fields are a [b] text NUL. */
WEFT__FAST void weft__copied(enum weft_op op, weft_id a, bool has_b, weft_id b, const char *text)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	size_t bytes = __builtin_strlen(text);
	unsigned at_text = has_b ? 8 : 4;
	if (WEFT__LIKELY(weft__is_narrow(a) && weft__is_narrow(b) && bytes < WEFT__FAST_TEXT) &&
	    weft__reserve(&place, mode, (uint8_t)(op | WEFT__INLINE), at_text + (uint32_t)bytes + 1)) {
		weft__put32(place.at, a);
		if (has_b)
			weft__put32(place.at + 4, b);
		weft__copy(place.at + at_text, text, bytes + 1);
		weft__publish(&place);
	} else {
		weft__slow_text(op, a, b, 0, NULL, text, bytes);
	}
}

static inline int weft_start(const struct weft_record_options *options)
{
#ifdef WEFT_DISABLE
	(void)options;
	return WEFT_ENOTSUP;
#else
	return weft__start_as(options, sizeof *options);
#endif
}

static inline const char *weft_start_error(void)
{
#ifdef WEFT_DISABLE
	return "compiled with WEFT_DISABLE";
#else
	return weft__start_error();
#endif
}

static inline void weft_stop(void)
{
#ifndef WEFT_DISABLE
	weft__stop();
#endif
}

static inline const char *weft_version(void)
{
#ifdef WEFT_DISABLE
	return "";
#else
	return weft__version();
#endif
}

WEFT__FAST bool weft_is_on(void)
{
	return WEFT__GATE() != WEFT__OFF;
}

WEFT__FAST weft_id weft_running(void)
{
	return WEFT__GATE() == WEFT__OFF ? WEFT_SYSTEM_ID : weft__stream->running;
}

/* Returns the id of a new promise, and records its creation.  If the caller must call weft__slow_*() instead, sets *written to
 * false; then the id may be 0. */
WEFT__FAST weft_id weft__reserve_create(unsigned mode, weft_id by, enum weft_kind kind, const weft_word *where, bool *written)
{
	struct weft__place place;
	struct weft_stream *s = weft__stream;
	uint64_t key = 0;
	weft_id end = (weft_id)s->end_id, promise = end ? weft__local_take(&s->next_id) : 0;
	if (promise >= end)
		promise = 0;
	*written = WEFT__LIKELY(promise != 0 && weft__is_narrow(by) && weft__is_narrow(promise)) &&
		   (!where || weft__key(where, &key)) && weft__reserve(&place, mode, WEFT_OP_CREATE, 11);
	if (*written) {
		weft__put32(place.at, by);
		weft__put32(place.at + 4, promise);
		place.at[8] = (unsigned char)kind;
		weft__put16(place.at + 9, key);
		weft__publish(&place);
	}
	return promise;
}

WEFT__FAST weft_id weft_create(weft_id by, enum weft_kind kind, struct weft_record_site *site)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return 0;
	bool written;
	weft_id promise = weft__reserve_create(mode, by, kind, site ? &site->key : NULL, &written);
	return written ? promise : weft__slow_create(by, promise, kind, site);
}

WEFT__FAST weft_id weft_create_at(weft_id by, enum weft_kind kind, struct weft_record_place *place)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return 0;
	bool written;
	weft_id promise = weft__reserve_create(mode, by, kind, &place->key, &written);
	return written ? promise : weft__slow_create_at(by, promise, kind, place);
}

static inline weft_id weft_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner)
{
	return WEFT__GATE() == WEFT__OFF ? 0 : weft__slow_create_part(by, kind, place, owner);
}

WEFT__FAST void weft_belongs(weft_id promise, weft_id owner)
{
	weft__two(WEFT_OP_BELONGS, promise, owner);
}

WEFT__FAST void weft__detail(weft_id promise, enum weft_detail what, int64_t value, const char *text)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	size_t bytes = __builtin_strlen(text);
	if (WEFT__LIKELY(weft__is_narrow(promise) && bytes < WEFT__FAST_TEXT) &&
	    weft__reserve(&place, mode, (uint8_t)(WEFT_OP_DETAIL | WEFT__INLINE), 13 + (uint32_t)bytes + 1)) {
		weft__put32(place.at, promise);
		place.at[4] = (unsigned char)what;
		__builtin_memcpy(place.at + 5, &value, 8);
		weft__copy(place.at + 13, text, bytes + 1);
		weft__publish(&place);
	} else {
		weft__slow_detail(promise, what, value, text);
	}
}

WEFT__FAST void weft_message(weft_id promise, uint32_t number, const char *sender, bool is_handled)
{
	weft__detail(promise, WEFT_DETAIL_MESSAGE, is_handled ? -(int64_t)number : (int64_t)number, sender);
}

#if __STDC_HOSTED__
static inline bool weft_connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions)
{
	return WEFT__GATE() != WEFT__OFF && weft__connection(promise, fd, did_connect, positions);
}

static inline void weft_still_connected(weft_id promise, int fd, const struct weft_positions *positions)
{
	if (WEFT__GATE() != WEFT__OFF)
		weft__still_connected(promise, fd, positions);
}

static inline void weft_digest(struct weft_digest *digest, const void *bytes, size_t count)
{
	enum { MOST = 64 };
	const unsigned char *at = (const unsigned char *)bytes;
	for (size_t i = 0; i < count && digest->bytes + i < MOST; i++)
		digest->sum = (digest->sum + at[i] + 1) * UINT64_C(0x100000001b3);
	digest->bytes += count;
}

static inline void weft_datagram_sent(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest)
{
	if (WEFT__GATE() != WEFT__OFF)
		weft__datagram(promise, fd, to, digest, true);
}

static inline void weft_datagram_received(weft_id promise, int fd, const struct weft_digest *digest)
{
	if (WEFT__GATE() != WEFT__OFF)
		weft__datagram(promise, fd, NULL, digest, false);
}
#endif

/* Records a position in 32 bits, also if the promises have ids of 64 bits. */
WEFT__FAST void weft_sent(weft_id connection, uint64_t position)
{
	weft__two(WEFT_OP_SENT, connection, (int32_t)(uint32_t)position);
}

WEFT__FAST void weft_received(weft_id connection, uint64_t position)
{
	weft__two(WEFT_OP_RECEIVED, connection, (int32_t)(uint32_t)position);
}

static inline void weft_stack(weft_id promise, const void *const *addresses, unsigned count)
{
	if (WEFT__GATE() != WEFT__OFF)
		weft__slow_stack(promise, addresses, count);
}

static inline void weft_callback(weft_id promise, struct weft_record_place *place, uint64_t since)
{
	if (WEFT__GATE() != WEFT__OFF && place)
		weft__slow_callback(promise, place, since);
}

static inline void weft_place(weft_id promise, struct weft_record_place *place)
{
	if (WEFT__GATE() != WEFT__OFF && place)
		weft__slow_place(promise, place);
}

static inline void weft_call_place(weft_id promise, struct weft_record_place *place, const char *call)
{
	if (WEFT__GATE() != WEFT__OFF && place)
		weft__slow_call(promise, place, call);
}

static inline void weft_call_site(weft_id promise, struct weft_record_site *site, const char *call)
{
	if (WEFT__GATE() != WEFT__OFF && site)
		weft__slow_call_site(promise, site, call);
}

WEFT__FAST void weft_spins(weft_id promise, uint64_t calls)
{
	weft__detail(promise, WEFT_DETAIL_SPIN, (int64_t)calls, "");
}

WEFT__FAST void weft_snapshot(const char *why)
{
	weft__detail(WEFT_SYSTEM_ID, WEFT_DETAIL_SNAPSHOT, 0, why);
}

/* The wait that is recorded together with a creation: none, another promise for the new one, or the new one for another. */
enum weft__wait { WEFT__WAITS_FOR_NOBODY, WEFT__IS_AWAITED, WEFT__AWAITS };

/* Records a creation, a label unless `label` is NULL, and a wait for or by the new promise, with one reservation.  Returns the id
 * and sets *written as weft__reserve_create() does. */
WEFT__FAST weft_id weft__reserve_story(unsigned mode, weft_id by, enum weft_kind kind, const weft_word *where, const char *label,
    uint32_t bytes, enum weft__wait wait, weft_id other, bool *written)
{
	struct weft__place place;
	struct weft_stream *s = weft__stream;
	uint64_t key = 0;
	uint32_t low, size = WEFT__HEADER + 11 + (label ? WEFT__HEADER + 4 + bytes + 1 : 0) + (wait ? WEFT__HEADER + 8 : 0);
	weft_id end = (weft_id)s->end_id, promise = end ? weft__local_take(&s->next_id) : 0;
	if (promise >= end)
		promise = 0;
	*written = WEFT__LIKELY(promise != 0 && weft__is_narrow(by) && weft__is_narrow(promise) && weft__is_narrow(other) &&
				bytes < WEFT__FAST_TEXT) &&
		   (!where || weft__key(where, &key)) &&
		   weft__reserve_bytes(&place, mode, 1U + (label ? 1U : 0U) + (wait ? 1U : 0U), size, &low);
	if (!*written)
		return promise;
	unsigned char *at = weft__put_header(place.at, WEFT_OP_CREATE, low);
	weft__put32(at, by);
	weft__put32(at + 4, promise);
	at[8] = (unsigned char)kind;
	weft__put16(at + 9, key);
	at += 11;
	if (label) {
		at = weft__put_header(at, WEFT_OP_LABEL | WEFT__INLINE, low);
		weft__put32(at, promise);
		weft__copy(at + 4, label, bytes);
		at[4 + bytes] = 0;
		at += 4 + bytes + 1;
	}
	if (wait) {
		at = weft__put_header(at, WEFT_OP_AWAIT, low);
		weft__put32(at, wait == WEFT__AWAITS ? promise : other);
		weft__put32(at + 4, wait == WEFT__AWAITS ? other : promise);
	}
	weft__publish(&place);
	return promise;
}

/* Does weft_create_at(), weft_label() unless `label` is NULL, and weft_await() with one reservation. */
WEFT__FAST weft_id weft__create_awaited(
    weft_id by, enum weft_kind kind, struct weft_record_place *where, weft_id waiter, const char *label, uint32_t bytes)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return 0;
	bool written;
	weft_id promise =
	    weft__reserve_story(mode, by, kind, where ? &where->key : NULL, label, bytes, WEFT__IS_AWAITED, waiter, &written);
	if (written)
		return promise;
	promise = weft__slow_create_at(by, promise, kind, where);
	if (label)
		weft__slow_text(WEFT_OP_LABEL, promise, 0, 0, NULL, label, bytes);
	weft__two(WEFT_OP_AWAIT, waiter, promise);
	return promise;
}

/* Does weft_create() and weft_label() with one reservation. */
WEFT__FAST weft_id weft__create_labelled(
    weft_id by, enum weft_kind kind, struct weft_record_site *site, const char *label, size_t bytes)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return 0;
	bool written;
	weft_id promise = weft__reserve_story(mode, by, kind, site ? &site->key : NULL, label,
	    bytes < WEFT__FAST_TEXT ? (uint32_t)bytes : (uint32_t)WEFT__FAST_TEXT, WEFT__WAITS_FOR_NOBODY, 0, &written);
	if (written)
		return promise;
	promise = weft__slow_create(by, promise, kind, site);
	weft__slow_text(WEFT_OP_LABEL, promise, 0, 0, NULL, label, bytes);
	return promise;
}

/* Does weft_create(), and weft_await() of input by the new promise, with one reservation. */
WEFT__FAST weft_id weft__create_awaiting(weft_id by, enum weft_kind kind, struct weft_record_site *site, weft_id input)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return 0;
	bool written;
	weft_id promise = weft__reserve_story(mode, by, kind, site ? &site->key : NULL, NULL, 0, WEFT__AWAITS, input, &written);
	if (written)
		return promise;
	promise = weft__slow_create(by, promise, kind, site);
	weft__two(WEFT_OP_AWAIT, promise, input);
	return promise;
}

/* Does weft_resolve(), and weft_read() or weft_read_later(), with one reservation. */
WEFT__FAST void weft__resolve_and(enum weft_op read, weft_id by, weft_id promise, weft_id reader)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	uint32_t low;
	if (WEFT__LIKELY(weft__is_narrow(by) && weft__is_narrow(promise) && weft__is_narrow(reader)) &&
	    weft__reserve_bytes(&place, mode, 2, 2 * (WEFT__HEADER + 8), &low)) {
		unsigned char *at = weft__put_header(place.at, WEFT_OP_RESOLVE, low);
		weft__put32(at, by);
		weft__put32(at + 4, promise);
		at = weft__put_header(at + 8, (uint8_t)read, low);
		weft__put32(at, reader);
		weft__put32(at + 4, promise);
		weft__note_running(place.stream, read, reader, promise);
		weft__publish(&place);
	} else {
		weft__slow_ids(WEFT_OP_RESOLVE, by, promise);
		weft__slow_ids(read, reader, promise);
	}
}

WEFT__FAST void weft__resolve_read(weft_id by, weft_id promise, weft_id reader)
{
	weft__resolve_and(WEFT_OP_READ, by, promise, reader);
}

WEFT__FAST void weft__resolve_read_later(weft_id by, weft_id promise, weft_id reader)
{
	weft__resolve_and(WEFT_OP_READ_LATER, by, promise, reader);
}

WEFT__FAST weft_id weft_create_here(enum weft_kind kind, struct weft_record_site *site)
{
	return WEFT__GATE() == WEFT__OFF ? 0 : weft_create(weft__stream->running, kind, site);
}

WEFT__FAST void weft_label(weft_id promise, const char *text)
{
	weft__copied(WEFT_OP_LABEL, promise, false, 0, text);
}

static inline void weft_label_bytes(weft_id promise, const char *text, size_t bytes)
{
	if (WEFT__GATE() != WEFT__OFF)
		weft__slow_text(WEFT_OP_LABEL, promise, 0, 0, NULL, text, bytes);
}

WEFT__FAST void weft_label_text(weft_id promise, struct weft_record_text *text)
{
	weft__texted(WEFT_OP_LABEL, true, promise, false, 0, false, 0, text);
}

WEFT__FAST void weft_should_resolve(weft_id promise)
{
	weft__one(WEFT_OP_SHOULD_RESOLVE, promise);
}

WEFT__FAST void weft_await(weft_id promise, weft_id input)
{
	weft__two(WEFT_OP_AWAIT, promise, input);
}

WEFT__FAST void weft_awaits_no_more(weft_id promise, weft_id input)
{
	weft__two(WEFT_OP_AWAITS_NO_MORE, promise, input);
}

WEFT__FAST void weft_hold(weft_id promise, weft_id lock)
{
	weft__two(WEFT_OP_HOLD, promise, lock);
}

WEFT__FAST void weft_release(weft_id promise, weft_id lock)
{
	weft__two(WEFT_OP_RELEASE, promise, lock);
}

WEFT__FAST void weft_read(weft_id promise, weft_id input)
{
	weft__two(WEFT_OP_READ, promise, input);
}

WEFT__FAST void weft_read_later(weft_id promise, weft_id input)
{
	weft__two(WEFT_OP_READ_LATER, promise, input);
}

WEFT__FAST void weft_resolve(weft_id by, weft_id promise)
{
	weft__two(WEFT_OP_RESOLVE, by, promise);
}

WEFT__FAST void weft_fail(weft_id by, weft_id promise, const char *error)
{
	weft__copied(WEFT_OP_FAIL, by, true, promise, error);
}

WEFT__FAST void weft_fail_text(weft_id by, weft_id promise, struct weft_record_text *error)
{
	weft__texted(WEFT_OP_FAIL, true, by, true, promise, false, 0, error);
}

WEFT__FAST void weft_become(weft_id promise, weft_id into)
{
	weft__two(WEFT_OP_BECOME, promise, into);
}

WEFT__FAST void weft_signal(weft_id from, weft_id promise)
{
	weft__two(WEFT_OP_SIGNAL, from, promise);
}

WEFT__FAST void weft_signal_only(weft_id from, weft_id promise)
{
	weft__two(WEFT_OP_SIGNAL_ONLY, from, promise);
}

WEFT__FAST void weft_run(weft_id promise)
{
	weft__one(WEFT_OP_RUN, promise);
}

/* Returns whether the CPU use since the last sleep must be recorded: the OS thread was awake for long.  If the ends of sleeps are
 * not recorded, returns whether a sample is due. */
WEFT__FAST bool weft__was_long(const struct weft_stream *s)
{
	return s->awake_since ? s->last - s->awake_since >= s->long_ticks : s->last >= s->sample_due;
}

WEFT__FAST void weft_idle(enum weft_idle why)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	if (WEFT__LIKELY(weft__reserve(&place, mode, WEFT_OP_IDLE, 1))) {
		place.at[0] = (unsigned char)why;
		place.stream->running = WEFT_SYSTEM_ID;
		weft__publish(&place);
		if (__builtin_expect(weft__was_long(place.stream), 0))
			weft__slow_round();
		place.stream->awake_since = 0;
	} else {
		weft__slow_text(WEFT_OP_IDLE, 0, 0, why, NULL, NULL, 0);
	}
}

/* Ends one iteration of an event loop that does not sleep, and records the iteration's CPU use if it was long. */
WEFT__FAST void weft__round(void)
{
	struct weft_stream *s = weft__stream;
	if (WEFT__IS_OFF(WEFT__GATE()) || s->long_ticks == UINT64_MAX)
		return;
	uint64_t now = weft__now();
	if (__builtin_expect(now - s->awake_since >= s->long_ticks, 0))
		weft__slow_round();
	else if (__builtin_expect(now >= s->sample_due, 0))
		weft__slow_awake();
	s->awake_since = now;
}

WEFT__FAST void weft_resume(weft_id promise)
{
	weft__one(WEFT_OP_RESUME, promise);
	if (!WEFT__IS_OFF(WEFT__GATE()) && __builtin_expect(weft__stream->last >= weft__stream->sample_due, 0))
		weft__slow_awake();
}

WEFT__FAST void weft_counter_set(weft_id by, struct weft_record_text *counter, int64_t value)
{
	weft__texted(WEFT_OP_COUNTER, true, by, false, 0, true, value, counter);
}

WEFT__FAST void weft_counter_add(weft_id by, struct weft_record_text *counter, int64_t change)
{
	weft__texted(WEFT_OP_COUNTER_ADD, true, by, false, 0, true, change, counter);
}

WEFT__FAST void weft_pause_begin_text(struct weft_record_text *why)
{
	weft__texted(WEFT_OP_PAUSE_BEGIN, false, 0, false, 0, false, 0, why);
}

WEFT__FAST void weft_pause_end(void)
{
	unsigned mode = WEFT__GATE();
	if (WEFT__IS_OFF(mode))
		return;
	struct weft__place place;
	if (WEFT__LIKELY(weft__reserve(&place, mode, WEFT_OP_PAUSE_END, 0)))
		weft__publish(&place);
	else
		weft__slow_ids(WEFT_OP_PAUSE_END, 0, 0);
}

WEFT__FAST void weft_pause_text(struct weft_record_text *why, uint64_t duration_ns)
{
	weft__texted(WEFT_OP_PAUSE, false, 0, false, 0, true, (int64_t)duration_ns, why);
}

WEFT__FAST void weft_note(weft_id promise, const char *text)
{
	weft__copied(WEFT_OP_NOTE, promise, false, 0, text);
}

WEFT__FAST void weft_note_text(weft_id promise, struct weft_record_text *text)
{
	weft__texted(WEFT_OP_NOTE, true, promise, false, 0, false, 0, text);
}

static inline uint64_t weft_now(void)
{
#ifdef WEFT_DISABLE
	return 0;
#else
	return weft__now();
#endif
}

static inline void weft_list_pending(weft_list_pending_fn *list, void *data)
{
#ifdef WEFT_DISABLE
	(void)list;
	(void)data;
#else
	weft__list_pending(list, data);
#endif
}

static inline weft_id weft_pending(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, uint64_t since, const char *label)
{
	if (WEFT__GATE() != WEFT__OFF)
		return weft__slow_pending(by, promise, kind, site, since, label);
	return promise;
}

static inline weft_id weft_pending_at(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place, uint64_t since, const char *label)
{
	if (WEFT__GATE() != WEFT__OFF)
		return weft__slow_pending_at(by, promise, kind, place, since, label);
	return promise;
}

WEFT__FAST void weft_still_awaits(weft_id promise, weft_id input)
{
	weft__two(WEFT_OP_STILL_AWAITS, promise, input);
}

#ifdef __cplusplus
}
#endif
#endif
