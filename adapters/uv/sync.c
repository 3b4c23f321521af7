/* sync.c: wraps locks, conditions, semaphores and barriers of libuv.
 *
 * libuv calls the functions of libpthread, which adapters/hook records.  The wrappers only note their caller, so that the
 * recorded place is in the program, and a wait on a thread of the program is not taken for libuv's own wait.
 * SPDX-License-Identifier: ISC */
#include "adapters/hook/callers.h"
#include "adapters/uv/common.h"

#define PASS(name, type)                                                                                                         \
	void weft__##name(struct weft__uv_copy *copy, const void *caller, type *object)                                          \
	{                                                                                                                        \
		const void *before = weft__hook_outer_caller;                                                                    \
		weft__hook_outer_caller = caller;                                                                                \
		copy->real.name(object);                                                                                         \
		weft__hook_outer_caller = before;                                                                                \
	}
PASS(uv_mutex_lock, uv_mutex_t)
PASS(uv_rwlock_rdlock, uv_rwlock_t)
PASS(uv_rwlock_wrlock, uv_rwlock_t)
PASS(uv_cond_signal, uv_cond_t)
PASS(uv_cond_broadcast, uv_cond_t)
PASS(uv_sem_wait, uv_sem_t)
PASS(uv_sem_post, uv_sem_t)

void weft__uv_cond_wait(struct weft__uv_copy *copy, const void *caller, uv_cond_t *condition, uv_mutex_t *mutex)
{
	const void *before = weft__hook_outer_caller;
	weft__hook_outer_caller = caller;
	copy->real.uv_cond_wait(condition, mutex);
	weft__hook_outer_caller = before;
}

int weft__uv_barrier_wait(struct weft__uv_copy *copy, const void *caller, uv_barrier_t *barrier)
{
	const void *before = weft__hook_outer_caller;
	weft__hook_outer_caller = caller;
	const int result = copy->real.uv_barrier_wait(barrier);
	weft__hook_outer_caller = before;
	return result;
}
