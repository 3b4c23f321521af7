/* lock.c: GMutex, as the program takes it: what GLib's own code does with its locks is left alone, and costs nothing.  What it
 * has recursive locks, and those for readers and writers, is libc's (adapters/hook/sleep.c).  SPDX-License-Identifier: ISC */
#include "adapters/hook/lock.h"
#include "adapters/glib/adapter.h"
#include "adapters/hook/condition.h"

void weft__g_mutex_lock(GMutex *mutex)
{
	if (!weft_is_on()) {
		weft__glib_real.g_mutex_lock(mutex);
		return;
	}
	weft_hook_thread();
	if (!weft__glib_real.g_mutex_trylock(mutex)) {
		bool is_told = weft_hook_lock_waits(mutex, 0, __builtin_return_address(0));
		weft__glib_real.g_mutex_lock(mutex);
		if (is_told)
			weft_hook_lock_waited(mutex);
	}
	weft_hook_lock_taken(mutex, 0);
}

gboolean weft__g_mutex_trylock(GMutex *mutex)
{
	gboolean taken = weft__glib_real.g_mutex_trylock(mutex);
	if (taken && weft_is_on())
		weft_hook_lock_taken(mutex, 0);
	return taken;
}

void weft__g_mutex_unlock(GMutex *mutex)
{
	if (weft_is_on())
		weft_hook_lock_given(mutex);
	weft__glib_real.g_mutex_unlock(mutex);
}

/* Who waits for a condition has the lock before and after that. */
void weft__g_cond_wait(GCond *condition, GMutex *mutex)
{
	bool is_told = weft_is_on();
	weft_id id = 0;
	if (is_told) {
		weft_hook_thread();
		id = weft_hook_condition_waits(condition, NULL, __builtin_return_address(0));
		weft_hook_lock_given(mutex);
	}
	weft__glib_real.g_cond_wait(condition, mutex);
	if (id)
		weft_hook_condition_waited(condition, id);
	if (is_told && weft_is_on())
		weft_hook_lock_taken(mutex, 0);
}

void weft__g_cond_signal(GCond *condition)
{
	if (weft_is_on())
		weft_hook_condition_signals(condition, false, __builtin_return_address(0));
	weft__glib_real.g_cond_signal(condition);
}

void weft__g_cond_broadcast(GCond *condition)
{
	if (weft_is_on())
		weft_hook_condition_signals(condition, true, __builtin_return_address(0));
	weft__glib_real.g_cond_broadcast(condition);
}

gboolean weft__g_cond_wait_until(GCond *condition, GMutex *mutex, gint64 end_time)
{
	bool is_told = weft_is_on();
	if (is_told)
		weft_hook_lock_given(mutex);
	gboolean came = weft__glib_real.g_cond_wait_until(condition, mutex, end_time);
	if (is_told && weft_is_on())
		weft_hook_lock_taken(mutex, 0);
	return came;
}
