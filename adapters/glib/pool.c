/* pool.c: GThreadPool, to which a program pushes work that an OS thread of the pool does when it has the time.
 *
 * What is pushed is a promise of kind work from the push to the return of the pool's function: it waits in the queue until it
 * runs first.  It is known by its data and the pool's; the same pushed twice, before the first is done, is one.  The pool of
 * libgio, in which tasks run, is told of as these tasks.  SPDX-License-Identifier: ISC */
#include "adapters/glib/adapter.h"
#include "adapters/hook/slots.h"

enum { POOLED = 128 };

void weft__glib_pooled(gpointer data, gpointer pool_data, unsigned slot);
WEFT_HOOK_CODE(weft__glib_pooled, 2, 128);

static void *pooled_user[POOLED];
static const struct weft_hook_slots pooled_slots = {weft__glib_pooled_code, pooled_user, POOLED};
static struct weft_record_text in_pool = WEFT_COUNTER("GThreadPool: requests"), at_work = WEFT_COUNTER("GThreadPool: at work");

/* No object of the program has such an address. */
static const void *key_of(const void *data, const void *pool_data)
{
	uintptr_t mixed = ((uintptr_t)data * 0x9e3779b97f4a7c15u ^ (uintptr_t)pool_data) * 0xff51afd7ed558ccdu;
	return (const void *)(mixed | 1);
}

/* On an OS thread of the pool, which is nobody's before and after. */
void weft__glib_pooled(gpointer data, gpointer pool_data, unsigned slot)
{
	GFunc user = (GFunc)__atomic_load_n(&pooled_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_thing *thing =
	    weft__glib_begins() ? weft__glib_thing_find(WEFT__GLIB_PUSHED, key_of(data, pool_data)) : NULL;
	if (!thing || !thing->id) {
		user(data, pool_data);
		return;
	}
	weft_id id = thing->id;
	weft__glib_tag tag = weft__glib_tag_of(thing);
	weft_hook_show(id);
	weft_counter_add(WEFT_SYSTEM_ID, &at_work, 1);
	{
		WEFT__GLIB_FRAME frame = weft__glib_enter(id, 0);
		(void)frame;
		weft__hook_thread.callbacks = 0; /* work that blocks holds up nobody: it is the sleep of this OS thread */
		user(data, pool_data);
	}
	if (weft_is_on()) {
		weft_counter_add(WEFT_SYSTEM_ID, &at_work, -1);
		weft_counter_add(WEFT_SYSTEM_ID, &in_pool, -1);
	}
	thing = weft__glib_goes_on() ? weft__glib_thing_of(tag) : NULL;
	if (!thing)
		return;
	weft__glib_end_by(WEFT_SYSTEM_ID, thing, NULL);
	weft__glib_thing_remove(thing);
	weft_hook_show(weft__hook_thread.root);
}

/* g_thread_pool_new() goes on in g_thread_pool_new_full(), by a call that looks like anybody's. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* Whether the program makes a pool, not one of GLib's libraries. */
static GFunc function_of(GFunc function, const void *caller)
{
	bool is_ours = function && !is_inside && !weft__glib_is_own(caller) && weft__glib_begins();
	return is_ours ? (GFunc)weft_hook_slot(&pooled_slots, (void *)function) : function;
}

GThreadPool *weft__g_thread_pool_new(GFunc function, gpointer data, gint most, gboolean exclusive, GError **error)
{
	function = function_of(function, __builtin_return_address(0));
	is_inside = true;
	GThreadPool *pool = weft__glib_real.g_thread_pool_new(function, data, most, exclusive, error);
	is_inside = false;
	return pool;
}

GThreadPool *weft__g_thread_pool_new_full(
    GFunc function, gpointer data, GDestroyNotify end, gint most, gboolean exclusive, GError **error)
{
	function = function_of(function, __builtin_return_address(0));
	return weft__glib_real.g_thread_pool_new_full(function, data, end, most, exclusive, error);
}

gboolean weft__g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error)
{
	const void *caller = __builtin_return_address(0), *key;
	GFunc user = pool ? (GFunc)weft_hook_user(&pooled_slots, (void *)pool->func) : NULL;
	if (!user || user == pool->func || !weft__glib_begins() ||
	    weft__glib_thing_find(WEFT__GLIB_PUSHED, key = key_of(data, pool->user_data)))
		return weft__glib_real.g_thread_pool_push(pool, data, error);
	/* Before the call: the work may be over when that returns. */
	struct weft__glib_thing *thing = weft__glib_thing_add(WEFT__GLIB_PUSHED, key);
	if (thing) {
		weft__glib_create(thing, WEFT_KIND_WORK, caller, false, 0, 0);
		weft__glib_label(thing, weft_hook_name((const void *)user));
		weft_counter_add(WEFT_SYSTEM_ID, &in_pool, 1);
	}
	return weft__glib_real.g_thread_pool_push(pool, data, error);
}
