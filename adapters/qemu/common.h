/* common.h: declarations for the files of the QEMU adapter (private to adapters/qemu).
 *
 * QEMU's programs export their functions for QEMU's modules, so the adapter finds them.  The adapter includes no header of QEMU,
 * and of QEMU's structs reads only the size in a QEMUIOVector.
 *
 * Each coroutine of QEMU has a promise, which runs while the coroutine runs.  Each thread has a stack of running coroutines,
 * because a coroutine returns to the coroutine that entered it.  A request to a block device is a promise that the caller of the
 * request awaits.  For a request with a callback, QEMU creates a coroutine, which gets no promise of its own; the request's
 * promise runs in the coroutine.  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_QEMU_COMMON_H
#define WEFT_ADAPTERS_QEMU_COMMON_H

#include <weft/record.h>

#include "adapters/hook/hook.h"
#include "adapters/hook/object_table.h"
#include "adapters/hook/session.h"
#include "adapters/hook/thread_memory.h"

typedef void weft__qemu_entry(void *data);
typedef void weft__qemu_done(void *data, int result);
typedef int weft__qemu_work(void *data);

/* Copy of the first fields of QEMU's struct QEMUIOVector. */
struct weft__qemu_vector {
	void *parts;
	int count;
	int padding[5];
	size_t size;
};

/* X(result, name, (parameters), (arguments)) lists a function that the adapter wraps. */
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
#define WEFT__QEMU_CALLBACK_REQUESTS(X)                                                                                          \
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
/* Requests that a coroutine makes; the coroutine continues when the call returns. */
#define WEFT__QEMU_COROUTINE_REQUESTS(X)                                                                                         \
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
	WEFT__QEMU_CALLBACK_REQUESTS(WEFT__QEMU_POINTER)
	WEFT__QEMU_COROUTINE_REQUESTS(WEFT__QEMU_POINTER)
#undef WEFT__QEMU_POINTER
	const char *(*blk_name)(const void *blk);
};

extern struct weft__qemu_calls weft__qemu_real;

/* Module of QEMU's program; NULL if the process is not QEMU. */
extern const struct weft_hook_module *weft__qemu_program;

/* Wrappers. */
#define WEFT__QEMU_WRAPPER(result, name, parameters, ...) result weft__##name parameters;
WEFT__QEMU_CALLS(WEFT__QEMU_WRAPPER)
WEFT__QEMU_CALLBACK_REQUESTS(WEFT__QEMU_WRAPPER)
WEFT__QEMU_COROUTINE_REQUESTS(WEFT__QEMU_WRAPPER)
#undef WEFT__QEMU_WRAPPER

/* Object that the adapter knows.  The key of a coroutine is its address; the key of a request or of work is the adapter's own
 * struct.  A block device has no promise; its key is its address, and its label is the name of its file. */
struct weft__qemu_object {
	WEFT_HOOK_OBJECT;
	weft_id running; /* promise that will run when the coroutine is entered again */
	bool is_request; /* whether the coroutine runs as a request, which ends elsewhere */
};

extern struct weft_hook_object_table weft__qemu_objects;

enum { WEFT__QEMU_MAX_ENTERED = 32 };

/* State of a thread.  A call inside of a coroutine may return on another thread, so do not keep the address of thread-local
 * variables across such calls. */
struct weft__qemu_here {
	unsigned epoch, depth;
	/* Number of nested aio_poll() calls, and of callbacks on the stack at the innermost of these calls. */
	int polls, callbacks;
	weft_id pending_request; /* request that the next new coroutine will run */
	struct {
		struct weft__qemu_object *coroutine; /* NULL: unknown */
		weft_id outer;                       /* promise that entered the coroutine */
	} entered[WEFT__QEMU_MAX_ENTERED];
};

extern struct weft__qemu_here weft__qemu_heres;

/* Returns the state of the current thread. */
static inline struct weft__qemu_here *weft__qemu_get_here(void)
{
	return &WEFT_HOOK_HERE(weft__qemu_heres);
}

/* Returns whether recording is on, and starts the recording if the user wants one. */
bool weft__qemu_should_record(void);

/* Returns whether the address is in QEMU's code. */
bool weft__qemu_is_own(const void *address);

#endif
