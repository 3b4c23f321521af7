/* slots.h: slots, small functions that libuv calls instead of the program's callbacks (private to adapters/uv).
 *
 * libuv stores a callback in its handle or request.  The adapter passes a slot instead of the callback: slot n of a pool calls
 * callback n of the program.  So the program's callback is found without the object of the request; in the worst case nothing is
 * recorded.  Programs have few callbacks of a type (1 to 6 in measured programs).  If a pool of slots is full, libuv gets the
 * callback itself, and the trace counts such callbacks.
 *
 * A slot consists of a few bytes of machine code.  The slot loads its number into the register behind the callback's parameters,
 * and jumps to a C function.  So no table of 6,000 pointers must be relocated whenever a process starts.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_SLOTS_H
#define WEFT_ADAPTERS_UV_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "adapters/hook/thread.h"

enum { WEFT__UV_SLOTS = 256, WEFT__UV_SLOT_BYTES = 16 };

/* X(name, number of parameters, type, (parameters)) lists a type of callbacks; name_called() has the slot as an additional
 * parameter.
 */
#define WEFT__UV_POOLS(X)                                                                                                        \
	X(read, 3, uv_read_cb, (uv_stream_t * stream, ssize_t got, const uv_buf_t *buf, unsigned slot))                          \
	X(write, 2, uv_write_cb, (uv_write_t * req, int status, unsigned slot))                                                  \
	X(connect, 2, uv_connect_cb, (uv_connect_t * req, int status, unsigned slot))                                            \
	X(shutdown, 2, uv_shutdown_cb, (uv_shutdown_t * req, int status, unsigned slot))                                         \
	X(connection, 2, uv_connection_cb, (uv_stream_t * stream, int status, unsigned slot))                                    \
	X(close, 1, uv_close_cb, (uv_handle_t * handle, unsigned slot))                                                          \
	X(timer, 1, uv_timer_cb, (uv_timer_t * handle, unsigned slot))                                                           \
	X(async, 1, uv_async_cb, (uv_async_t * handle, unsigned slot))                                                           \
	X(idle, 1, uv_idle_cb, (uv_idle_t * handle, unsigned slot))                                                              \
	X(check, 1, uv_check_cb, (uv_check_t * handle, unsigned slot))                                                           \
	X(prepare, 1, uv_prepare_cb, (uv_prepare_t * handle, unsigned slot))                                                     \
	X(poll, 3, uv_poll_cb, (uv_poll_t * handle, int status, int events, unsigned slot))                                      \
	X(signal, 2, uv_signal_cb, (uv_signal_t * handle, int number, unsigned slot))                                            \
	X(fs_event, 4, uv_fs_event_cb, (uv_fs_event_t * handle, const char *file, int events, int status, unsigned slot))        \
	X(fs_poll, 4, uv_fs_poll_cb,                                                                                             \
	    (uv_fs_poll_t * handle, int status, const uv_stat_t *before, const uv_stat_t *now, unsigned slot))                   \
	X(exit, 3, uv_exit_cb, (uv_process_t * handle, int64_t status, int number, unsigned slot))                               \
	X(udp_send, 2, uv_udp_send_cb, (uv_udp_send_t * req, int status, unsigned slot))                                         \
	X(udp_recv, 5, uv_udp_recv_cb,                                                                                           \
	    (uv_udp_t * handle, ssize_t got, const uv_buf_t *buf, const struct sockaddr *from, unsigned flags, unsigned slot))   \
	X(fs, 1, uv_fs_cb, (uv_fs_t * req, unsigned slot))                                                                       \
	X(work, 1, uv_work_cb, (uv_work_t * req, unsigned slot))                                                                 \
	X(after_work, 2, uv_after_work_cb, (uv_work_t * req, int status, unsigned slot))                                         \
	X(getaddrinfo, 3, uv_getaddrinfo_cb, (uv_getaddrinfo_t * req, int status, struct addrinfo *found, unsigned slot))        \
	X(getnameinfo, 4, uv_getnameinfo_cb,                                                                                     \
	    (uv_getnameinfo_t * req, int status, const char *host, const char *service, unsigned slot))                          \
	X(random, 4, uv_random_cb, (uv_random_t * req, int status, void *bytes, size_t size, unsigned slot))

struct weft__uv_pool {
	const unsigned char *code; /* code of slot 0, which represents NULL */
	void *user[WEFT__UV_SLOTS];
};

/* Returns the slot at which a search for the callback starts, counted from 1. */
static inline unsigned weft__uv_slot_first(const void *user)
{
	unsigned hash = (unsigned)(((uint64_t)(uintptr_t)user >> 4) * 0x9e3779b97f4a7c15u >> 56);
	return 1 + (hash * (WEFT__UV_SLOTS - 1) >> 8);
}

void *weft__uv_slot_assign(struct weft__uv_pool *pool, void *user);

/* Returns the slot of a callback.  The slot of a slot is the slot itself (uv_timer_again() passes what libuv has stored); the
 * slot of NULL is 0.  Returns the callback itself if no slot is free. */
static inline void *weft__uv_slot(struct weft__uv_pool *pool, void *user)
{
	unsigned first = weft__uv_slot_first(user);
	return user && __atomic_load_n(&pool->user[first], __ATOMIC_ACQUIRE) == user
		   ? (void *)(pool->code + (size_t)first * WEFT__UV_SLOT_BYTES)
		   : weft__uv_slot_assign(pool, user);
}

/* Declares for each pool: the pool; the function that its slots call; the slot of a callback; the callback of a slot that is
 * about to be called. name_slot_or_none() returns slot 0 for NULL, if libuv allows no callback; name_slot() returns NULL, which
 * libuv rejects. */
#define WEFT__UV_POOL_DECLARE(name, count, type, parameters)                                                                     \
	extern struct weft__uv_pool weft__uv_##name##_pool;                                                                      \
	void weft__uv_##name##_called parameters;                                                                                \
	static inline type weft__uv_##name##_slot_or_none(type user)                                                             \
	{                                                                                                                        \
		return (type)weft__uv_slot(&weft__uv_##name##_pool, (void *)user);                                               \
	}                                                                                                                        \
	static inline type weft__uv_##name##_slot(type user)                                                                     \
	{                                                                                                                        \
		return user ? weft__uv_##name##_slot_or_none(user) : NULL;                                                       \
	}                                                                                                                        \
	static inline type weft__uv_##name##_user(unsigned slot)                                                                 \
	{                                                                                                                        \
		void *user = __atomic_load_n(&weft__uv_##name##_pool.user[slot], __ATOMIC_ACQUIRE);                              \
		weft_hook_set_called(user);                                                                                      \
		return (type)user;                                                                                               \
	}
WEFT__UV_POOLS(WEFT__UV_POOL_DECLARE)
#undef WEFT__UV_POOL_DECLARE

#endif
