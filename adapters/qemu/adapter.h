/* adapter.h: what the files of the QEMU adapter share (private to adapters/qemu).
 *
 * QEMU's programs export their functions, for modules.  Nothing of QEMU is included: of its structs only the size that a
 * QEMUIOVector tells is read.
 *
 * Who runs.  A coroutine has a promise, which runs from switch to switch; on each OS thread, those that run stand on a stack,
 * since a coroutine returns to who entered it.  A request to a block device is a promise that its caller awaits; of one that has
 * a callback, the coroutine that QEMU makes for it is no promise of its own: the request runs.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_QEMU_ADAPTER_H
#define WEFT_ADAPTERS_QEMU_ADAPTER_H

#include <weft/record.h>

#include "adapters/hook/hook.h"
#include "adapters/hook/things.h"

typedef void weft__qemu_entry(void *data);
typedef void weft__qemu_done(void *data, int result);
typedef int weft__qemu_work(void *data);

/* The first fields of QEMU's own. */
struct weft__qemu_vector {
	void *parts;
	int count;
	int padding[5];
	size_t size;
};

/* X(result, name, (parameters), (arguments)). */
#define WEFT__QEMU_CALLS(X)                                                                                                      \
	X(void *, qemu_coroutine_create, (weft__qemu_entry * entry, void *data), (entry, data))                                  \
	X(int, qemu_coroutine_switch, (void *from, void *to, int action), (from, to, action))                                    \
	X(void, qemu_thread_create, (void *thread, const char *name, void *(*routine)(void *), void *data, int mode),            \
	    (thread, name, routine, data, mode))                                                                                 \
	X(bool, aio_poll, (void *context, bool blocking), (context, blocking))                                                   \
	X(void *, thread_pool_submit_aio, (void *a, void *b, void *c, void *d, void *e), (a, b, c, d, e))                        \
	X(void *, blk_new, (void *context, uint64_t permissions, uint64_t shared), (context, permissions, shared))               \
	X(void *, blk_new_open, (const char *file, const char *reference, void *options, int flags, void *error),                \
	    (file, reference, options, flags, error))
/* Requests with a callback. */
#define WEFT__QEMU_ASKED(X)                                                                                                      \
	X(void *, blk_aio_preadv,                                                                                                \
	    (void *blk, int64_t offset, const struct weft__qemu_vector *bytes, int flags, weft__qemu_done *done, void *data),    \
	    (blk, offset, bytes, flags, done, data), "read", offset, bytes->size)                                                \
	X(void *, blk_aio_pwritev,                                                                                               \
	    (void *blk, int64_t offset, const struct weft__qemu_vector *bytes, int flags, weft__qemu_done *done, void *data),    \
	    (blk, offset, bytes, flags, done, data), "write", offset, bytes->size)                                               \
	X(void *, blk_aio_pwrite_zeroes,                                                                                         \
	    (void *blk, int64_t offset, int64_t bytes, int flags, weft__qemu_done *done, void *data),                            \
	    (blk, offset, bytes, flags, done, data), "write zeros", offset, (uint64_t)bytes)                                     \
	X(void *, blk_aio_pdiscard, (void *blk, int64_t offset, int64_t bytes, weft__qemu_done *done, void *data),               \
	    (blk, offset, bytes, done, data), "discard", offset, (uint64_t)bytes)                                                \
	X(void *, blk_aio_flush, (void *blk, weft__qemu_done *done, void *data), (blk, done, data), "flush", -1, 0)
/* Requests of a coroutine, which goes on when they return. */
#define WEFT__QEMU_INSIDE(X)                                                                                                     \
	X(int, blk_co_pread, (void *blk, int64_t offset, int64_t bytes, void *data, int flags),                                  \
	    (blk, offset, bytes, data, flags), "read", offset, (uint64_t)bytes)                                                  \
	X(int, blk_co_preadv, (void *blk, int64_t offset, int64_t bytes, void *data, int flags),                                 \
	    (blk, offset, bytes, data, flags), "read", offset, (uint64_t)bytes)                                                  \
	X(int, blk_co_preadv_part, (void *blk, int64_t offset, int64_t bytes, void *data, size_t from, int flags),               \
	    (blk, offset, bytes, data, from, flags), "read", offset, (uint64_t)bytes)                                            \
	X(int, blk_co_pwrite, (void *blk, int64_t offset, int64_t bytes, const void *data, int flags),                           \
	    (blk, offset, bytes, data, flags), "write", offset, (uint64_t)bytes)                                                 \
	X(int, blk_co_pwritev, (void *blk, int64_t offset, int64_t bytes, void *data, int flags),                                \
	    (blk, offset, bytes, data, flags), "write", offset, (uint64_t)bytes)                                                 \
	X(int, blk_co_pwritev_part, (void *blk, int64_t offset, int64_t bytes, void *data, size_t from, int flags),              \
	    (blk, offset, bytes, data, from, flags), "write", offset, (uint64_t)bytes)                                           \
	X(int, blk_co_pwrite_compressed, (void *blk, int64_t offset, int64_t bytes, const void *data),                           \
	    (blk, offset, bytes, data), "write compressed", offset, (uint64_t)bytes)                                             \
	X(int, blk_co_pwrite_zeroes, (void *blk, int64_t offset, int64_t bytes, int flags), (blk, offset, bytes, flags),         \
	    "write zeros", offset, (uint64_t)bytes)                                                                              \
	X(int, blk_co_pdiscard, (void *blk, int64_t offset, int64_t bytes), (blk, offset, bytes), "discard", offset,             \
	    (uint64_t)bytes)                                                                                                     \
	X(int, blk_co_flush, (void *blk), (blk), "flush", -1, 0)

struct weft__qemu_calls {
#define WEFT__QEMU_POINTER(result, name, parameters, ...) result(*name) parameters;
	WEFT__QEMU_CALLS(WEFT__QEMU_POINTER)
	WEFT__QEMU_ASKED(WEFT__QEMU_POINTER)
	WEFT__QEMU_INSIDE(WEFT__QEMU_POINTER)
#undef WEFT__QEMU_POINTER
	const char *(*blk_name)(const void *blk);
};

extern struct weft__qemu_calls weft__qemu_real;

/* What runs in place of each. */
#define WEFT__QEMU_WRAPPER(result, name, parameters, ...) result weft__##name parameters;
WEFT__QEMU_CALLS(WEFT__QEMU_WRAPPER)
WEFT__QEMU_ASKED(WEFT__QEMU_WRAPPER)
WEFT__QEMU_INSIDE(WEFT__QEMU_WRAPPER)
#undef WEFT__QEMU_WRAPPER

/* A coroutine, by its address; a request or a piece of work, by the thing's own; a device, whose label is its file's name, by its
 * address and without a promise. */
struct weft__qemu_thing {
	WEFT_HOOK_THING;
	weft_id running; /* of a coroutine that is not running: who ran on it */
	bool is_request; /* of a coroutine: it runs as a request, whose end is told elsewhere */
};

extern struct weft_hook_things weft__qemu_things;

enum { WEFT__QEMU_DEPTH = 32 };

/* An OS thread's own.  What is called in a coroutine may return on another OS thread: nothing keeps the address of this, or of
 * what else an OS thread has, over such a call. */
struct weft__qemu_here {
	unsigned epoch, depth;
	int polls, callbacks; /* how many aio_poll() are on the stack; how many callbacks were before the last of them */
	weft_id asking;       /* the request that QEMU is about to make a coroutine for */
	struct {
		struct weft__qemu_thing *coroutine; /* NULL: not known */
		weft_id outer;                      /* who entered it */
	} entered[WEFT__QEMU_DEPTH];
};

extern __thread struct weft__qemu_here weft__qemu_here __attribute__((tls_model("initial-exec")));

/* Whether calls are recorded; begins that if it is wanted. */
bool weft__qemu_takes(void);

/* Whether an address is in QEMU's text. */
bool weft__qemu_is_own(const void *address);

#endif
