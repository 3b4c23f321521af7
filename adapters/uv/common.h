/* common.h: declarations for the files of the libuv adapter (private to adapters/uv).
 *
 * An object describes a handle or request of the program as long as the handle or request exists; most objects have a promise.
 * An actor is an object whose code runs in many callbacks: a connection, a timer, the handling of a datagram.  A copy is one
 * libuv library in the process.  A slot is a small function that libuv calls instead of a callback of the program (slots.h).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_COMMON_H
#define WEFT_ADAPTERS_UV_COMMON_H

#include <weft/record.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/hook.h"
#include "adapters/hook/thread.h"
#include "adapters/hook/thread_memory.h"
#include "adapters/uv/calls.h"

enum { WEFT__UV_MAX_COPIES = 3 };

/* Pointers to the original functions of a copy; NULL if the copy lacks the function. */
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

/* Wrappers of libuv's functions; `caller` is the return address of the call. */
#define WEFT__UV_HANDLER(since, result, name, parameters, arguments)                                                             \
	result weft__##name(struct weft__uv_copy *copy, const void *caller, WEFT__UV_LIST parameters);
#define WEFT__UV_FS_HANDLER(...) WEFT__UV_FS_AS_X(WEFT__UV_HANDLER, __VA_ARGS__)
WEFT__UV_CALLS(WEFT__UV_HANDLER, WEFT__UV_FS_HANDLER)
uv_loop_t *weft__uv_default_loop(struct weft__uv_copy *copy, const void *caller);

/* ---- Objects ---- */

/* Reference to an object: its index and its generation.  The tag of a freed object finds nothing, even if the object's memory is
 * reused.  A tag of 0 refers to no object. */
typedef uint64_t weft__uv_tag;

struct weft__uv_object {
	const void *key; /* address of the handle or request; NULL if unused; for a datagram: the address of the object itself */
	uint32_t generation;
	/* Index of the object, counted from 1; for a free object: index of the next free one, 0: none. */
	uint32_t index;
	weft_id id;               /* promise; 0: none yet */
	weft_id input;            /* promise of the read that a stream awaits */
	weft__uv_tag owner;       /* for a request: the object that awaits it; for a handle: the datagram whose handler made it */
	const void *owner_thread; /* thread that records the object again in checkpoints */
	uint8_t kind;
	bool is_request, is_datagram;
	bool opens_file;    /* whether pool.c knows that the request opens a file */
	bool has_datagrams; /* for a poll handle: whether the descriptor is a datagram socket */
	bool is_expected;   /* weft_should_resolve() has been recorded */
	bool reads;         /* whether the program reads from the stream */
	bool is_stopped, is_closing, in_pool;
	bool is_accepted;   /* a connection whose other end asks (question.h) */
	bool asks;          /* a connection whose own end asks */
	bool is_encrypted;  /* its requests are in what a TLS library decrypts */
	weft_id awaited_by; /* loop that awaits it in the trace */

	/* Lookups and most callbacks need only the fields above, which are in one cache line. */
	struct weft__uv_copy *copy;
	uv_loop_t *loop;
	weft_id by; /* promise that made the object; later the promise that closes it */
	uint64_t since, input_since;
	struct weft_record_place *site, *read_site;
	struct weft_record_site *line; /* place in a language whose runtime contains libuv; NULL: `site` is the place */
	weft_id asker;                 /* for a stream, and the handle of setImmediate(): promise for which it works; 0: none */
	weft__uv_tag asker_actor;      /* for a stream: the actor then; later that of its last request */
	weft_id asker_request;         /* for a stream: the request of another end for which that actor worked; 0: none */
	weft_id part_of;               /* the promise that owns it, because only that runtime knows it; 0: none */
	uint64_t what;     /* purpose of the handle's last start: hash of callback and time, signal, or hash of path */
	uint32_t children; /* for a datagram: number of promises that must end before it */
	bool is_restarted; /* for a timer: whether its restart has been noted */
	struct weft_hook_calls calls;
	int fd; /* descriptor of a socket in fd_table.h; -1: none */
	bool connects;
	/* For a poll handle: whether its callback leaves the descriptor's input unread; for an async handle: whether its own
	 * callback has sent it. */
	bool is_untouched;
	struct weft_hook_label label;
} __attribute__((aligned(64)));

enum { WEFT__UV_CHUNK = 256, WEFT__UV_CHUNKS = 4096 };

extern struct weft__uv_object *weft__uv_chunks[WEFT__UV_CHUNKS];
extern uint32_t weft__uv_object_count; /* number of objects that were given to threads so far */
extern uint64_t weft__uv_secret;

/* Returns the object of an index, which counts from 1. */
static inline struct weft__uv_object *weft__uv_object_at(uint32_t index)
{
	struct weft__uv_object *chunk = __atomic_load_n(&weft__uv_chunks[(index - 1) / WEFT__UV_CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[(index - 1) % WEFT__UV_CHUNK] : NULL;
}

static inline weft__uv_tag weft__uv_tag_of(const struct weft__uv_object *object)
{
	return object ? ((uint64_t)__atomic_load_n(&object->generation, __ATOMIC_RELAXED) << 32 | object->index) ^ weft__uv_secret
		      : 0;
}

/* Returns the object of a tag; NULL: none.  Safe in signal handlers. */
static inline struct weft__uv_object *weft__uv_find(weft__uv_tag tag)
{
	uint64_t plain = tag ^ __atomic_load_n(&weft__uv_secret, __ATOMIC_RELAXED);
	uint32_t index = (uint32_t)plain;
	if (__builtin_expect(index - 1 >= __atomic_load_n(&weft__uv_object_count, __ATOMIC_ACQUIRE), 0))
		return NULL;
	struct weft__uv_object *object = weft__uv_object_at(index);
	bool is_it = object && __atomic_load_n(&object->generation, __ATOMIC_RELAXED) == plain >> 32 &&
		     __atomic_load_n(&object->key, __ATOMIC_RELAXED);
	return __builtin_expect(is_it, 1) ? object : NULL;
}

static inline void **weft__uv_tag_in_handle(const void *handle)
{
	return &((uv_handle_t *)handle)->u.reserved[3];
}

static inline void **weft__uv_tag_in_request(const void *request)
{
	return &((uv_req_t *)request)->reserved[5];
}

static inline struct weft__uv_object *weft__uv_find_by(void *const *tag, const void *key, bool is_request)
{
	struct weft__uv_object *object = weft__uv_find((uint64_t)(uintptr_t)__atomic_load_n(tag, __ATOMIC_RELAXED));
	bool is_it = object && __atomic_load_n(&object->key, __ATOMIC_RELAXED) == key && object->is_request == is_request;
	return __builtin_expect(is_it, 1) ? object : NULL;
}

static inline struct weft__uv_object *weft__uv_find_handle(const void *handle)
{
	return weft__uv_find_by(weft__uv_tag_in_handle(handle), handle, false);
}

static inline struct weft__uv_object *weft__uv_find_request(const void *request)
{
	return weft__uv_find_by(weft__uv_tag_in_request(request), request, true);
}

/* ---- State of a thread ---- */

enum { WEFT__UV_MAX_RUNS = 16, WEFT__UV_MAX_BUSY_LOOPS = 4, WEFT__UV_MAX_TURN_LOOPS = 4 };

/* A call of uv_run() that has not returned. */
struct weft__uv_run {
	struct weft__uv_copy *copy;
	uv_loop_t *loop;
	const void *stack; /* address of its frame */
	weft_id id;        /* promise of the loop; 0 for a single iteration */
	/* Promise of a stepped loop, which `outer` awaits while the current iteration waits long (run.c); 0: none. */
	weft_id turns;
	uint64_t since;
	uint64_t blocks_since_ns; /* start time of a run that blocks an outer loop; 0 if it blocks none */
	weft_id outer;            /* promise that called uv_run() */
	weft__uv_tag outer_actor;
	struct weft_record_place *site;
	int epoll;
	int callbacks;
	uv_run_mode mode;
	bool is_dirty;   /* whether the objects that keep the loop alive may have changed since they were recorded */
	bool is_older;   /* whether handles that are older than the recording must still be recorded */
	bool is_adopted; /* whether the call is older than this library, which therefore does not see its end */
};

/* State of a thread, in addition to struct weft_hook_thread. */
struct weft__uv_here {
	unsigned epoch;                /* 0: no call yet */
	weft__uv_tag actor;            /* running actor; 0: none */
	struct weft_record_site *line; /* of the handle or request whose callback runs, in a language; NULL: none */
	weft_id answered, asked_by;    /* a request of this end whose answer the callback reads, and the promise that asked */
	weft_id read;                  /* the read of a stream whose callback runs; 0: none */
	weft__uv_tag encrypted;        /* connection whose read, in the running callback, begins a handshake of TLS; 0: none */
	weft__uv_tag keeper;           /* idle handle by which a language's runtime keeps the loop; 0: none */
	int nested_calls;              /* depth of the adapter's own calls of libuv; calls from inside are libuv's */
	unsigned searches;             /* number of searches for a run that is older than this library */
	unsigned depth;
	struct weft__uv_run runs[WEFT__UV_MAX_RUNS];
	struct {
		const uv_loop_t *loop;
		weft_id id;
	} busy[WEFT__UV_MAX_BUSY_LOOPS]; /* loops that could not be closed, and the promises of closing them */
	unsigned next_busy;
	struct weft__uv_turn_loop {
		const uv_loop_t *loop;
		weft_id id, by;
		uint64_t since;
		struct weft_record_place *site;
	} turn_loop[WEFT__UV_MAX_TURN_LOOPS]; /* stepped loops and their promises */
	unsigned next_turn_loop;
	struct weft_hook_listed_loops older;
	uint32_t free_first, free_count; /* this thread's free objects */
	bool has_refilled;
	uint64_t chunks[WEFT__UV_CHUNKS / 64]; /* bits of the chunks that contain objects which this thread has owned */
};

extern struct weft__uv_here weft__uv_heres;

/* Returns the state of the current thread. */
static inline struct weft__uv_here *weft__uv_get_here(void)
{
	return &WEFT_HOOK_HERE(weft__uv_heres);
}

/* Makes the running thread record the object again in checkpoints.  A signal handler may interrupt the function and do the
 * same. */
static inline void weft__uv_own(struct weft__uv_object *object)
{
	struct weft__uv_here *here = weft__uv_get_here();
	const uint32_t chunk = (object->index - 1) / WEFT__UV_CHUNK;
	const uint64_t bit = (uint64_t)1 << chunk % 64;
	object->owner_thread = here;
	if (__builtin_expect(!(__atomic_load_n(&here->chunks[chunk / 64], __ATOMIC_RELAXED) & bit), 0))
		__atomic_fetch_or(&here->chunks[chunk / 64], bit, __ATOMIC_RELAXED);
}

/* Notes that the objects that keep the running loop alive may have changed. */
static inline void weft__uv_mark_loop_dirty(void)
{
	if (weft__uv_get_here()->depth > 0)
		weft__uv_get_here()->runs[weft__uv_get_here()->depth - 1].is_dirty = true;
}

bool weft__uv_is_loop_wait(struct weft_hook_sleep *sleep);

/* ---- Handles and requests (handle.c, request.c) ---- */

/* Makes a call of libuv; calls from inside of this call are not the program's. */
#define WEFT__UV_INSIDE(call)                                                                                                    \
	(__extension__({                                                                                                         \
		weft__uv_get_here()->nested_calls++;                                                                             \
		__auto_type result_ = (call);                                                                                    \
		weft__uv_get_here()->nested_calls--;                                                                             \
		result_;                                                                                                         \
	}))

/* Creates the promise of an active handle whose start was not seen. */
void weft__uv_begin_unseen(struct weft__uv_object *object, const uv_handle_t *handle);

/* Records a handle that is older than the recording, and its pending requests; the handle's callbacks are recorded from now on.
 * Call this function on the loop's thread. */
void weft__uv_begin_older(struct weft__uv_copy *copy, uv_handle_t *handle);

/* Returns whether a stream is connecting or has pending writes. */
bool weft__uv_has_requests(uv_handle_t *handle);

/* Creates a request, whose label may follow.  The object `owner` awaits the request; NULL means that the running promise awaits
 * it.  Returns NULL without memory. */
struct weft__uv_object *weft__uv_request(struct weft__uv_copy *copy, const void *caller, const void *request, uv_loop_t *loop,
    enum weft_kind kind, const struct weft__uv_object *owner);

/* Creates the request of a write to a stream, with its label. */
struct weft__uv_object *weft__uv_write_request(struct weft__uv_copy *copy, const void *caller, const uv_write_t *request,
    const struct weft__uv_object *stream, const uv_buf_t bufs[], unsigned count);

/* Ends a request that libuv has rejected, whose callback will not run. */
void weft__uv_fail_request(struct weft__uv_object *object, int status);

/* Ends a request, and enters its callback. */
struct weft__uv_frame weft__uv_enter_request(const void *request, int status);

/* Create the object's promise, or record the promise again for a checkpoint, with the object's place. */
weft_id weft__uv_create_promise(const struct weft__uv_object *object);
void weft__uv_repeat_promise(const struct weft__uv_object *object);

/* ---- The pool (pool.c) ---- */

/* will_open notes that the request opens a file on the pool; forget notes that the request has ended. */
void weft__uv_pool_will_open(weft_id id, const char *path);
void weft__uv_pool_forget(weft_id id);

weft_id weft__uv_pool_call(const void *caller, const char *path, const void *result);

/* Returns whether the address is in the code of a copy of libuv. */
bool weft__uv_is_own(const void *caller);

/* Returns the copy of libuv that contains the address, or NULL. */
struct weft__uv_copy *weft__uv_find_copy(const void *address);

/* ---- Labels and sites (adapters/hook/label.h; label.c) ---- */

#define weft__uv_append(object, text) weft_hook_append(&(object)->label, text)
#define weft__uv_append_number(object, number) weft_hook_append_number(&(object)->label, number)
#define weft__uv_append_ms(object, ms) weft_hook_append_ms(&(object)->label, ms)
#define weft__uv_append_path(object, path) weft_hook_append_path(&(object)->label, path)
#define weft__uv_append_address(object, address) weft_hook_append_address(&(object)->label, address)
#define weft__uv_append_fd(object, fd) weft_hook_append_fd(&(object)->label, fd)
#define weft__uv_append_function(object, function) weft_hook_append_function(&(object)->label, function)
#define weft__uv_record_label(object) weft_hook_record_label(&(object)->label, (object)->id)

/* Returns the place of a call; NULL: unknown, or in a language's runtime, where it says nothing of the program. */
static inline struct weft_record_place *weft__uv_site(const void *caller)
{
	const bool is_runtime =
	    __builtin_expect(weft__hook_language.is_runtime != NULL, 0) && weft__hook_language.is_runtime(caller);
	return is_runtime ? NULL : weft_hook_site(caller);
}

void weft__uv_append_bytes(struct weft__uv_object *object, const uv_buf_t bufs[], unsigned count);
void weft__uv_label_bytes(
    /* weft__uv_append_bytes() for an object whose label is empty. */
    struct weft__uv_object *object, const uv_buf_t bufs[], unsigned count);
void weft__uv_append_handle(struct weft__uv_object *object, const uv_handle_t *handle); /* what the descriptor is */

/* weft__uv_record_pause() records a long blocking call in a callback (request.c).  `begin_ns` is weft__uv_now_ns() before the
 * call; 0 if it is not in a callback. */
uint64_t weft__uv_now_ns(void);
void weft__uv_record_pause(struct weft_record_text *what, struct weft_record_place *place, uint64_t begin_ns);

#endif
