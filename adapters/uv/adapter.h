/* adapter.h: what the files of the libuv adapter share (private to adapters/uv).
 *
 * Words.  A *thing* is what is known of one handle or request of the program, for as long as that lives; most have a promise.  An
 * *actor* is a thing whose code runs in many callbacks: a connection, a timer, a datagram's handling.  A *copy* is one libuv in
 * the process.  A *slot* is one function of ours, in place of one callback of the program (slots.h). SPDX-License-Identifier: ISC
 */
#ifndef WEFT_ADAPTERS_UV_ADAPTER_H
#define WEFT_ADAPTERS_UV_ADAPTER_H

#include <weft/record.h>

#include "adapters/hook/carried.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"
#include "adapters/uv/calls.h"

enum { WEFT__UV_COPIES = 3 };

/* libuv's own functions, of one copy; NULL: it lacks that one. */
struct weft__uv_calls {
#define WEFT__UV_POINTER(since, result, name, parameters, arguments) result(*name) parameters;
#define WEFT__UV_FS_POINTER(...) WEFT__UV_FS_AS_X(WEFT__UV_POINTER, __VA_ARGS__)
#define WEFT__UV_CALLED_POINTER(result, name, parameters) result(*name) parameters;
	WEFT__UV_CALLS(WEFT__UV_POINTER, WEFT__UV_FS_POINTER)
	WEFT__UV_ONLY_CALLED(WEFT__UV_CALLED_POINTER)
	uv_loop_t *(*uv_default_loop)(void);
#undef WEFT__UV_POINTER
#undef WEFT__UV_FS_POINTER
#undef WEFT__UV_CALLED_POINTER
};

struct weft__uv_copy {
	struct weft__uv_calls real;
	const struct weft_hook_module *module;
};

/* What runs in place of each function: `caller` is where it returns to. */
#define WEFT__UV_HANDLER(since, result, name, parameters, arguments)                                                             \
	result weft__##name(struct weft__uv_copy *copy, const void *caller, WEFT__UV_LIST parameters);
#define WEFT__UV_FS_HANDLER(...) WEFT__UV_FS_AS_X(WEFT__UV_HANDLER, __VA_ARGS__)
WEFT__UV_CALLS(WEFT__UV_HANDLER, WEFT__UV_FS_HANDLER)
uv_loop_t *weft__uv_default_loop(struct weft__uv_copy *copy, const void *caller);

/* ---- Things (thing.c) ---- */

/* Names a thing: its place and its generation.  A thing that is gone is found no more, whoever has its place now.  0: none. */
typedef uint64_t weft__uv_tag;

struct weft__uv_thing {
	const void *key; /* where the handle or request lies; NULL: nobody's.  Of a datagram: the thing itself */
	uint32_t generation;
	uint32_t place;     /* its own, counted from 1; in a chain of free ones the next one's, 0: none */
	weft_id id;         /* its promise; 0: it has none yet */
	weft_id input;      /* of a stream: the read that it waits for */
	weft__uv_tag owner; /* of a request: who waits for it.  Of a handle: the datagram in whose handling it was made */
	const void *home;   /* whose OS thread tells of it again */
	uint8_t kind;
	bool is_request, is_datagram;
	bool has_datagrams; /* of a poll: its descriptor is a socket for them */
	bool is_overdue;    /* the trace says that it should resolve */
	bool reads;         /* the program wants to read */
	bool is_stopped, is_closing, in_pool;
	weft_id kept; /* the loop that awaits it, as the trace has it */

	/* Up to here is all that finding it and most callbacks need: one line of the cache. */
	struct weft__uv_copy *copy;
	uv_loop_t *loop;
	weft_id by; /* who made it; who closes it, once that is asked for */
	uint64_t since, input_since;
	struct weft_record_place *site, *read_site;
	uint64_t what;      /* what the handle was last started for: a callback and a time, a signal, a path */
	uint32_t children;  /* of a datagram: what has yet to end before it does */
	bool is_used_again; /* of a timer: the trace says so */
	struct weft_hook_calls calls;
	int fd; /* of a socket that adapters/hook/carried.h knows; -1: none */
	bool connects;
	bool is_untouched; /* of a poll handle: its callback leaves the descriptor as it was; of an async: it sent to itself */
	struct weft_hook_label label;
} __attribute__((aligned(64)));

/* A new thing, by memory of libuv's own structs that libuv leaves alone.  NULL: no memory. */
struct weft__uv_thing *weft__uv_thing_of_handle(struct weft__uv_copy *copy, const void *handle);
struct weft__uv_thing *weft__uv_thing_of_request(struct weft__uv_copy *copy, const void *request, uv_loop_t *loop);
struct weft__uv_thing *weft__uv_thing_of_datagram(struct weft__uv_thing *socket);
void weft__uv_thing_free(struct weft__uv_thing *thing);

enum { WEFT__UV_CHUNK = 256, WEFT__UV_CHUNKS = 4096 };

extern struct weft__uv_thing *weft__uv_chunks[WEFT__UV_CHUNKS];
extern uint32_t weft__uv_places; /* given to OS threads so far */
extern uint64_t weft__uv_secret;

/* Places are counted from 1. */
static inline struct weft__uv_thing *weft__uv_at_place(uint32_t place)
{
	struct weft__uv_thing *chunk = __atomic_load_n(&weft__uv_chunks[(place - 1) / WEFT__UV_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[(place - 1) % WEFT__UV_CHUNK] : NULL;
}

static inline weft__uv_tag weft__uv_tag_of(const struct weft__uv_thing *thing)
{
	return thing ? ((uint64_t)__atomic_load_n(&thing->generation, __ATOMIC_RELAXED) << 32 | thing->place) ^ weft__uv_secret
		     : 0;
}

/* What is known of a handle or a request; NULL: nothing.  In signal handlers too. */
static inline struct weft__uv_thing *weft__uv_find(weft__uv_tag tag)
{
	uint64_t plain = tag ^ __atomic_load_n(&weft__uv_secret, __ATOMIC_RELAXED);
	uint32_t place = (uint32_t)plain;
	if (__builtin_expect(place - 1 >= __atomic_load_n(&weft__uv_places, __ATOMIC_ACQUIRE), 0))
		return NULL;
	struct weft__uv_thing *thing = weft__uv_at_place(place);
	bool is_it = thing && __atomic_load_n(&thing->generation, __ATOMIC_RELAXED) == plain >> 32 &&
		     __atomic_load_n(&thing->key, __ATOMIC_RELAXED);
	return __builtin_expect(is_it, 1) ? thing : NULL;
}

static inline void **weft__uv_tag_in_handle(const void *handle)
{
	return &((uv_handle_t *)handle)->u.reserved[3];
}

static inline void **weft__uv_tag_in_request(const void *request)
{
	return &((uv_req_t *)request)->reserved[5];
}

static inline struct weft__uv_thing *weft__uv_find_by(void *const *tag, const void *key, bool is_request)
{
	struct weft__uv_thing *thing = weft__uv_find((uint64_t)(uintptr_t)__atomic_load_n(tag, __ATOMIC_RELAXED));
	bool is_it = thing && __atomic_load_n(&thing->key, __ATOMIC_RELAXED) == key && thing->is_request == is_request;
	return __builtin_expect(is_it, 1) ? thing : NULL;
}

static inline struct weft__uv_thing *weft__uv_find_handle(const void *handle)
{
	return weft__uv_find_by(weft__uv_tag_in_handle(handle), handle, false);
}

static inline struct weft__uv_thing *weft__uv_find_request(const void *request)
{
	return weft__uv_find_by(weft__uv_tag_in_request(request), request, true);
}

/* The things in use from place *at on; NULL after the last. */
struct weft__uv_thing *weft__uv_next(uint32_t *at);

void weft__uv_thread_ends(void);

void weft__uv_things_lock(void);
void weft__uv_things_unlock(void);
void weft__uv_things_forget(void); /* all of them; their tags name nothing from now on */

/* ---- Who runs (run.c) ---- */

enum { WEFT__UV_DEPTH = 16, WEFT__UV_BUSY = 4, WEFT__UV_TURNED = 4 };

/* A uv_run() that has not returned. */
struct weft__uv_run {
	struct weft__uv_copy *copy;
	uv_loop_t *loop;
	const void *stack; /* where its frame is */
	weft_id id;        /* 0: it is only a turn, not asked to run until nothing is left */
	weft_id turns;     /* who called awaits it, since this turn is a long one (run.c); 0: nobody */
	uint64_t since;
	uint64_t blocks_since_ns; /* 0: it holds up no other loop */
	weft_id outer;            /* who called */
	weft__uv_tag outer_actor;
	struct weft_record_place *site;
	int epoll;
	int callbacks;
	uv_run_mode mode;
	bool is_dirty; /* what keeps it may have changed since the trace was told */
	bool is_older; /* of its handles some may be older than the recording, and are still to be told */
};

/* An OS thread's own, beside what all adapters share. */
struct weft__uv_here {
	unsigned epoch;     /* 0: it has made no call */
	weft__uv_tag actor; /* what runs, if it is an actor */
	int inside;         /* in a call of libuv that we made: what it calls of itself is its own */
	unsigned depth;
	struct weft__uv_run runs[WEFT__UV_DEPTH];
	struct {
		const uv_loop_t *loop;
		weft_id id;
	} busy[WEFT__UV_BUSY]; /* loops that could not be closed, and the promises of that */
	unsigned next_busy;
	struct weft__uv_turned {
		const uv_loop_t *loop;
		weft_id id, by;
		uint64_t since;
		struct weft_record_place *site;
	} turned[WEFT__UV_TURNED]; /* loops that are called turn by turn, and their promises */
	unsigned next_turned;
	struct weft_hook_older older;
	uint32_t free_first, free_count; /* things to take, of this OS thread */
};

extern __thread struct weft__uv_here weft__uv_here __attribute__((tls_model("initial-exec")));

void weft__uv_meet(void); /* the first call of this OS thread in this recording, or since a fork */

/* Whether a call is the program's, and to be recorded. */
static inline bool weft__uv_takes(const struct weft__uv_copy *copy, const void *caller)
{
	if (__builtin_expect(!weft_hook_begin() || weft__uv_here.inside > 0 || weft_hook_is_own(copy->module, caller), 0))
		return false;
	if (__builtin_expect(weft__uv_here.epoch != weft__hook_epoch, 0))
		weft__uv_meet();
	return true;
}

/* A callback of the program runs: what was before it, for weft__uv_leave(), which a longjmp leaves out and an exception does not.
 */
struct weft__uv_frame {
	weft_id running;
	weft__uv_tag actor;
	weft__uv_tag datagram; /* whose child ends with this callback */
	weft_id own;           /* of the handle whose callback it is; 0: of none */
	weft__uv_tag handle;   /* that handle */
	int inside;
};

#define WEFT__UV_FRAME __attribute__((cleanup(weft__uv_leave))) struct weft__uv_frame

static inline struct weft__uv_frame weft__uv_enter(weft_id id, weft__uv_tag actor)
{
	struct weft__uv_here *here = &weft__uv_here;
	struct weft__uv_frame frame = {.running = weft__hook_thread.running, .actor = here->actor, .inside = here->inside};
	weft__hook_thread.running = id;
	here->actor = actor;
	here->inside = 0;
	weft__hook_thread.callbacks++;
	weft__hook_thread.entered++;
	return frame;
}

void weft__uv_leave(struct weft__uv_frame *frame);

/* The callback of a handle to which something came from outside.  Nothing is known of it: who ran goes on. */
struct weft__uv_frame weft__uv_enter_signalled(const void *handle);

/* The same of its thing, which may be NULL.  repeats: nothing came to it, or nothing that it takes (adapters/hook/thread.h). */
struct weft__uv_frame weft__uv_enter_called(struct weft__uv_thing *thing, bool repeats);

/* The loop may have got or lost what keeps it. */
static inline void weft__uv_dirty(void)
{
	if (weft__uv_here.depth > 0)
		weft__uv_here.runs[weft__uv_here.depth - 1].is_dirty = true;
}

bool weft__uv_sleeps(struct weft_hook_sleep *sleep);

/* ---- Handles and requests (thing.c, handle.c, request.c) ---- */

/* A call of libuv's from here on is its own. */
#define WEFT__UV_INSIDE(call)                                                                                                    \
	(__extension__({                                                                                                         \
		weft__uv_here.inside++;                                                                                          \
		__auto_type result_ = (call);                                                                                    \
		weft__uv_here.inside--;                                                                                          \
		result_;                                                                                                         \
	}))

/* The handle was initialised; what was known of its memory is void. */
void weft__uv_handle_init(struct weft__uv_copy *copy, const void *caller, const void *handle);

/* What is known of a handle; if nothing, a new thing (it is older than the recording, or a copy of one). */
struct weft__uv_thing *weft__uv_handle_unknown(struct weft__uv_copy *copy, const void *caller, const void *handle);

static inline struct weft__uv_thing *weft__uv_handle(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	struct weft__uv_thing *thing = weft__uv_find_handle(handle);
	return thing ? thing : weft__uv_handle_unknown(copy, caller, handle);
}

/* The handle is active from now on.  Whether its promise begins, which is then to be labelled; false also for NULL. */
void weft__uv_begin_new(struct weft__uv_thing *thing, enum weft_kind kind, const void *caller);
static inline bool weft__uv_begin(struct weft__uv_thing *thing, enum weft_kind kind, const void *caller)
{
	weft__uv_dirty();
	if (!thing || thing->id)
		return false;
	weft__uv_begin_new(thing, kind, caller);
	return true;
}
void weft__uv_end(struct weft__uv_thing *thing, weft_id by);
void weft__uv_drop_input(struct weft__uv_thing *thing);

/* Begins what is active and keeps a loop, though no call of the program's was seen to begin it. */
void weft__uv_begin_unseen(struct weft__uv_thing *thing, const uv_handle_t *handle);

/* The handle is active since before the recording, or has requests of then: its promise is told, and theirs, and from now on its
 * callbacks are.  On its loop's OS thread. */
void weft__uv_begin_older(struct weft__uv_copy *copy, uv_handle_t *handle);

/* Whether a stream connects, or has something to write. */
bool weft__uv_has_requests(uv_handle_t *handle);

/* A stream that begins so reads. */
void weft__uv_reads_already(struct weft__uv_thing *thing);

/* The promise of a stream, which begins with its first use; `prefix` stands before its address. */
struct weft__uv_thing *weft__uv_stream_new(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const char *prefix);

static inline struct weft__uv_thing *weft__uv_stream(
    struct weft__uv_copy *copy, const void *caller, uv_stream_t *stream, const char *prefix)
{
	struct weft__uv_thing *thing = weft__uv_find_handle(stream);
	return __builtin_expect(thing && thing->id, 1) ? thing : weft__uv_stream_new(copy, caller, stream, prefix);
}

/* What its descriptor carries is told of from now on. */
void weft__uv_carries(struct weft__uv_thing *thing, const uv_handle_t *handle);

/* A request begins.  `owner` waits for it; NULL: who runs.  To be labelled; NULL: no memory. */
struct weft__uv_thing *weft__uv_request(struct weft__uv_copy *copy, const void *caller, const void *request, uv_loop_t *loop,
    enum weft_kind kind, const struct weft__uv_thing *owner);

/* The same for a write to a stream, with its label. */
struct weft__uv_thing *weft__uv_write_request(struct weft__uv_copy *copy, const void *caller, const uv_write_t *request,
    const struct weft__uv_thing *stream, const uv_buf_t bufs[], unsigned count);

/* libuv refused it: its callback will not come. */
void weft__uv_refused(struct weft__uv_thing *thing, int status);

/* Its callback comes. */
struct weft__uv_frame weft__uv_enter_request(const void *request, int status);

/* A child of the datagram has ended. */
void weft__uv_datagram_release(weft__uv_tag datagram);

/* ---- Labels and sites (adapters/hook/label.h; label.c) ---- */

#define weft__uv_put(thing, text) weft_hook_put(&(thing)->label, text)
#define weft__uv_put_number(thing, number) weft_hook_put_number(&(thing)->label, number)
#define weft__uv_put_ms(thing, ms) weft_hook_put_ms(&(thing)->label, ms)
#define weft__uv_put_path(thing, path) weft_hook_put_path(&(thing)->label, path)
#define weft__uv_put_address(thing, address) weft_hook_put_address(&(thing)->label, address)
#define weft__uv_put_fd(thing, fd) weft_hook_put_fd(&(thing)->label, fd)
#define weft__uv_put_function(thing, function) weft_hook_put_function(&(thing)->label, function)
#define weft__uv_say(thing) weft_hook_say(&(thing)->label, (thing)->id)
#define weft__uv_site weft_hook_place

void weft__uv_put_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count);
void weft__uv_label_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count); /* the same in an empty label */
void weft__uv_put_handle(struct weft__uv_thing *thing, const uv_handle_t *handle);              /* what its descriptor is */

/* request.c: what blocks a loop in a callback is told if it took long; `begin_ns` 0: not in a callback. */
uint64_t weft__uv_now_ns(void);
void weft__uv_blocked(struct weft_record_text *what, uint64_t begin_ns);

#endif
