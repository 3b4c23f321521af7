/* lock.c: records the GMutex and GCond objects of the program.  Calls inside of GLib are not wrapped, so they cost nothing.
 * GLib's recursive locks and reader-writer locks use libc's locks, which adapters/hook/libc_block.c records.
 * SPDX-License-Identifier: ISC */
#include "adapters/hook/lock.h"
#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/condition.h"

void weft__g_mutex_lock(GMutex *mutex)
{
	if (!weft_is_on()) {
		weft__glib_real.g_mutex_lock(mutex);
		return;
	}
	weft_hook_thread();
	if (!weft__glib_real.g_mutex_trylock(mutex)) {
		bool is_recorded = weft_hook_lock_begin_wait(mutex, 0, __builtin_return_address(0));
		weft__glib_real.g_mutex_lock(mutex);
		if (is_recorded)
			weft_hook_lock_end_wait(mutex);
	}
	weft_hook_lock_acquire(mutex, 0, __builtin_return_address(0));
}

gboolean weft__g_mutex_trylock(GMutex *mutex)
{
	gboolean taken = weft__glib_real.g_mutex_trylock(mutex);
	if (taken && weft_is_on())
		weft_hook_lock_acquire(mutex, 0, __builtin_return_address(0));
	return taken;
}

void weft__g_mutex_unlock(GMutex *mutex)
{
	if (weft_is_on())
		weft_hook_lock_release(mutex);
	weft__glib_real.g_mutex_unlock(mutex);
}

/* A thread that waits for a GCond holds the mutex before and after the wait. */
void weft__g_cond_wait(GCond *condition, GMutex *mutex)
{
	bool is_recorded = weft_is_on();
	weft_id id = 0;
	if (is_recorded) {
		weft_hook_thread();
		id = weft_hook_condition_begin_wait(condition, NULL, __builtin_return_address(0));
		weft_hook_lock_release(mutex);
	}
	weft__glib_real.g_cond_wait(condition, mutex);
	if (id)
		weft_hook_condition_end_wait(condition, id);
	if (is_recorded && weft_is_on())
		weft_hook_lock_acquire(mutex, 0, __builtin_return_address(0));
}

void weft__g_cond_signal(GCond *condition)
{
	if (weft_is_on())
		weft_hook_condition_signal(condition, false, __builtin_return_address(0));
	weft__glib_real.g_cond_signal(condition);
}

void weft__g_cond_broadcast(GCond *condition)
{
	if (weft_is_on())
		weft_hook_condition_signal(condition, true, __builtin_return_address(0));
	weft__glib_real.g_cond_broadcast(condition);
}

gboolean weft__g_cond_wait_until(GCond *condition, GMutex *mutex, gint64 end_time)
{
	bool is_recorded = weft_is_on();
	if (is_recorded)
		weft_hook_lock_release(mutex);
	gboolean came = weft__glib_real.g_cond_wait_until(condition, mutex, end_time);
	if (is_recorded && weft_is_on())
		weft_hook_lock_acquire(mutex, 0, __builtin_return_address(0));
	return came;
}
