/* pool.c: GThreadPool, whose threads do work that the program pushes.
 *
 * The promise of pushed work lasts from the push to the return of the pool's function; the promise is ready until the function
 * runs.  The key of pushed work is made of its data and the pool's data.  If work with the same data is pushed again, numbers
 * tell up to 8 promises apart.  Work of libgio's own pool is recorded as tasks (task.c).  SPDX-License-Identifier: ISC */
#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/slots.h"

enum { SLOT_COUNT = 128 };

void weft__glib_run_pooled(gpointer data, gpointer pool_data, unsigned slot);
WEFT_HOOK_CODE(weft__glib_run_pooled, 2, 128);

static void *pooled_user[SLOT_COUNT];
static const struct weft_hook_slots pooled_slots = {weft__glib_run_pooled_code, pooled_user, SLOT_COUNT};
static struct weft_record_text in_pool = WEFT_COUNTER("GThreadPool: requests"),
			       working_requests = WEFT_COUNTER("GThreadPool: at work");

enum { MAX_DUPLICATES = 8 };

static uint32_t has_duplicates; /* 1 if work with the same data has ever been pushed twice, else 0 */
static uint32_t is_pushing;

/* Returns an odd number as key, because no object has an odd address. */
static const void *make_key(const void *data, const void *pool_data, unsigned duplicate)
{
	uintptr_t mixed = ((uintptr_t)data * 0x9e3779b97f4a7c15u ^ (uintptr_t)pool_data) * 0xff51afd7ed558ccdu;
	return (const void *)((mixed + 2 * duplicate) | 1);
}

/* Returns the oldest work with this data that has not started, and marks it as started; NULL: none is known. */
static struct weft__glib_object *take_pushed(const void *data, const void *pool_data)
{
	struct weft__glib_object *first = NULL;
	unsigned last = __atomic_load_n(&has_duplicates, __ATOMIC_ACQUIRE) ? MAX_DUPLICATES : 1;
	for (unsigned duplicate = 0; duplicate < last; duplicate++) {
		struct weft__glib_object *tracked =
		    weft__glib_object_find(WEFT__GLIB_PUSHED, make_key(data, pool_data, duplicate));
		bool waits = tracked && tracked->id && !__atomic_load_n(&tracked->is_returned, __ATOMIC_ACQUIRE);
		if (waits && (!first || tracked->id < first->id))
			first = tracked;
	}
	return first && !__atomic_exchange_n(&first->is_returned, true, __ATOMIC_ACQ_REL) ? first : NULL;
}

/* Returns NULL if too much work with the same data is pending, or another thread is pushing now. */
static struct weft__glib_object *add_pushed(const void *data, const void *pool_data)
{
	struct weft__glib_object *tracked = NULL;
	if (__atomic_exchange_n(&is_pushing, 1, __ATOMIC_ACQUIRE))
		return NULL;
	for (unsigned duplicate = 0; duplicate < MAX_DUPLICATES && !tracked; duplicate++)
		if (!weft__glib_object_find(WEFT__GLIB_PUSHED, make_key(data, pool_data, duplicate))) {
			tracked = weft__glib_object_add(WEFT__GLIB_PUSHED, make_key(data, pool_data, duplicate));
			if (duplicate > 0)
				__atomic_store_n(&has_duplicates, 1, __ATOMIC_RELEASE);
			if (!tracked)
				break;
		}
	__atomic_store_n(&is_pushing, 0, __ATOMIC_RELEASE);
	return tracked;
}

/* Runs pushed work on a thread of the pool, which runs no other promise before and after. */
void weft__glib_run_pooled(gpointer data, gpointer pool_data, unsigned slot)
{
	GFunc user = (GFunc)__atomic_load_n(&pooled_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_object *tracked = weft__glib_should_record() ? take_pushed(data, pool_data) : NULL;
	if (!tracked) {
		user(data, pool_data);
		return;
	}
	weft_id id = tracked->id;
	weft__glib_tag tag = weft__glib_tag_of(tracked);
	weft_hook_record_running(id);
	weft_counter_add(WEFT_SYSTEM_ID, &working_requests, 1);
	{
		WEFT__GLIB_FRAME frame = weft__glib_enter_callback(id, 0, false);
		(void)frame;
		/* Pushed work that blocks delays no other promise, so its waits are recorded as sleeps of the thread. */
		weft__hook_get_thread()->callbacks = 0;
		weft_hook_set_called((const void *)user);
		user(data, pool_data);
	}
	if (weft_is_on()) {
		weft_counter_add(WEFT_SYSTEM_ID, &working_requests, -1);
		weft_counter_add(WEFT_SYSTEM_ID, &in_pool, -1);
	}
	tracked = weft__glib_is_recording() ? weft__glib_object_of(tag) : NULL;
	if (!tracked)
		return;
	weft__glib_end_by(WEFT_SYSTEM_ID, tracked, NULL);
	weft__glib_object_remove(tracked);
	weft_hook_record_running(weft__hook_get_thread()->root);
}

/* Whether g_thread_pool_new() runs; it calls g_thread_pool_new_full(), and that call seems to come from the program. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* Returns the slot of the function if the program makes the pool, and the function itself if a library makes the pool. */
static GFunc get_function(GFunc function, const void *caller)
{
	bool is_ours = function && !is_inside && !weft__glib_is_own(caller) && weft__glib_should_record();
	return is_ours ? (GFunc)weft_hook_slot(&pooled_slots, (void *)function) : function;
}

GThreadPool *weft__g_thread_pool_new(GFunc function, gpointer data, gint max_threads, gboolean exclusive, GError **error)
{
	function = get_function(function, __builtin_return_address(0));
	is_inside = true;
	GThreadPool *pool = weft__glib_real.g_thread_pool_new(function, data, max_threads, exclusive, error);
	is_inside = false;
	return pool;
}

GThreadPool *weft__g_thread_pool_new_full(
    GFunc function, gpointer data, GDestroyNotify end, gint max_threads, gboolean exclusive, GError **error)
{
	function = get_function(function, __builtin_return_address(0));
	return weft__glib_real.g_thread_pool_new_full(function, data, end, max_threads, exclusive, error);
}

gboolean weft__g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error)
{
	const void *caller = __builtin_return_address(0);
	GFunc user = pool ? (GFunc)weft_hook_user(&pooled_slots, (void *)pool->func) : NULL;
	if (!user || user == pool->func || !weft__glib_should_record())
		return weft__glib_real.g_thread_pool_push(pool, data, error);
	/* The push is recorded before the original call, because the work may end before that call returns. */
	struct weft__glib_object *tracked = add_pushed(data, pool->user_data);
	if (tracked) {
		tracked->pool = pool;
		weft__glib_create(tracked, WEFT_KIND_WORK, caller, false, 0, 0);
		weft__glib_label(tracked, weft_hook_name((const void *)user));
		weft_counter_add(WEFT_SYSTEM_ID, &in_pool, 1);
	}
	return weft__glib_real.g_thread_pool_push(pool, data, error);
}

/* Ends the pushed work that the pool drops when it is freed. */
void weft__g_thread_pool_free(GThreadPool *pool, gboolean immediate, gboolean wait)
{
	weft__glib_real.g_thread_pool_free(pool, immediate, wait);
	if (!immediate || !weft__glib_is_recording())
		return;
	uint32_t at = 0;
	for (struct weft__glib_object *tracked; (tracked = weft__glib_object_next(&at));)
		if (tracked->type == WEFT__GLIB_PUSHED && tracked->pool == pool && tracked->id &&
		    !__atomic_exchange_n(&tracked->is_returned, true, __ATOMIC_ACQ_REL)) {
			weft_counter_add(WEFT_SYSTEM_ID, &in_pool, -1);
			weft__glib_end(tracked, "dropped with its pool");
			weft_read_later(weft__glib_current_promise(), tracked->id); /* the program wanted that */
			weft__glib_object_remove(tracked);
		}
}
