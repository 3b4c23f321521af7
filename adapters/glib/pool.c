/* pool.c: GThreadPool, to which a program pushes work that an OS thread of the pool does when it has the time.
 *
 * What is pushed is a promise of kind work from the push to the return of the pool's function: it waits in the queue until it
 * runs first.  It is known by its data and the pool's, and where the same is pushed again before the first is done, by which of
 * them it is, up to a few.  The pool of libgio, in which tasks run, is told of as these tasks.  SPDX-License-Identifier: ISC */
#include "adapters/glib/adapter.h"
#include "adapters/hook/slots.h"

enum { POOLED = 128 };

void weft__glib_pooled(gpointer data, gpointer pool_data, unsigned slot);
WEFT_HOOK_CODE(weft__glib_pooled, 2, 128);

static void *pooled_user[POOLED];
static const struct weft_hook_slots pooled_slots = {weft__glib_pooled_code, pooled_user, POOLED};
static struct weft_record_text in_pool = WEFT_COUNTER("GThreadPool: requests"), at_work = WEFT_COUNTER("GThreadPool: at work");

enum { ALIKE = 8 };

static uint32_t again; /* how many of what was pushed had one like it before it; never fewer */
static uint32_t pushing;

/* No object of the program has such an address. */
static const void *key_of(const void *data, const void *pool_data, unsigned which)
{
	uintptr_t mixed = ((uintptr_t)data * 0x9e3779b97f4a7c15u ^ (uintptr_t)pool_data) * 0xff51afd7ed558ccdu;
	return (const void *)((mixed + 2 * which) | 1);
}

/* What is to run next of those that are alike; it has begun then.  NULL: none is known. */
static struct weft__glib_thing *take(const void *data, const void *pool_data)
{
	struct weft__glib_thing *first = NULL;
	unsigned last = __atomic_load_n(&again, __ATOMIC_ACQUIRE) ? ALIKE : 1;
	for (unsigned which = 0; which < last; which++) {
		struct weft__glib_thing *thing = weft__glib_thing_find(WEFT__GLIB_PUSHED, key_of(data, pool_data, which));
		bool waits = thing && thing->id && !__atomic_load_n(&thing->is_returned, __ATOMIC_ACQUIRE);
		if (waits && (!first || thing->id < first->id))
			first = thing;
	}
	return first && !__atomic_exchange_n(&first->is_returned, true, __ATOMIC_ACQ_REL) ? first : NULL;
}

/* NULL: too many are alike, or another OS thread pushes just now what may be. */
static struct weft__glib_thing *add(const void *data, const void *pool_data)
{
	struct weft__glib_thing *thing = NULL;
	if (__atomic_exchange_n(&pushing, 1, __ATOMIC_ACQUIRE))
		return NULL;
	for (unsigned which = 0; which < ALIKE && !thing; which++)
		if (!weft__glib_thing_find(WEFT__GLIB_PUSHED, key_of(data, pool_data, which))) {
			thing = weft__glib_thing_add(WEFT__GLIB_PUSHED, key_of(data, pool_data, which));
			if (which > 0)
				__atomic_store_n(&again, 1, __ATOMIC_RELEASE);
			if (!thing)
				break;
		}
	__atomic_store_n(&pushing, 0, __ATOMIC_RELEASE);
	return thing;
}

/* On an OS thread of the pool, which is nobody's before and after. */
void weft__glib_pooled(gpointer data, gpointer pool_data, unsigned slot)
{
	GFunc user = (GFunc)__atomic_load_n(&pooled_user[slot], __ATOMIC_ACQUIRE);
	struct weft__glib_thing *thing = weft__glib_begins() ? take(data, pool_data) : NULL;
	if (!thing) {
		user(data, pool_data);
		return;
	}
	weft_id id = thing->id;
	weft__glib_tag tag = weft__glib_tag_of(thing);
	weft_hook_show(id);
	weft_counter_add(WEFT_SYSTEM_ID, &at_work, 1);
	{
		WEFT__GLIB_FRAME frame = weft__glib_enter(id, 0, false);
		(void)frame;
		weft__hook_thread.callbacks = 0; /* work that blocks holds up nobody: it is the sleep of this OS thread */
		weft_hook_calls((const void *)user);
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
	const void *caller = __builtin_return_address(0);
	GFunc user = pool ? (GFunc)weft_hook_user(&pooled_slots, (void *)pool->func) : NULL;
	if (!user || user == pool->func || !weft__glib_begins())
		return weft__glib_real.g_thread_pool_push(pool, data, error);
	/* Before the call: the work may be over when that returns. */
	struct weft__glib_thing *thing = add(data, pool->user_data);
	if (thing) {
		thing->pool = pool;
		weft__glib_create(thing, WEFT_KIND_WORK, caller, false, 0, 0);
		weft__glib_label(thing, weft_hook_name((const void *)user));
		weft_counter_add(WEFT_SYSTEM_ID, &in_pool, 1);
	}
	return weft__glib_real.g_thread_pool_push(pool, data, error);
}

/* Without a pool nothing that waits for it will run. */
void weft__g_thread_pool_free(GThreadPool *pool, gboolean immediate, gboolean wait)
{
	weft__glib_real.g_thread_pool_free(pool, immediate, wait);
	if (!immediate || !weft__glib_goes_on())
		return;
	uint32_t at = 0;
	for (struct weft__glib_thing *thing; (thing = weft__glib_thing_next(&at));)
		if (thing->type == WEFT__GLIB_PUSHED && thing->pool == pool && thing->id &&
		    !__atomic_exchange_n(&thing->is_returned, true, __ATOMIC_ACQ_REL)) {
			weft_counter_add(WEFT_SYSTEM_ID, &in_pool, -1);
			weft__glib_end(thing, "dropped with its pool");
			weft_read_later(weft__glib_who(), thing->id); /* that was wanted */
			weft__glib_thing_remove(thing);
		}
}
