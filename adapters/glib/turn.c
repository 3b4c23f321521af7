/* turn.c: records stepped loops, in which the program calls each iteration.
 *
 * All iterations of a context share one promise from the first long wait on; this promise awaits the context's sources.
 * SPDX-License-Identifier: ISC */
#include "adapters/glib/object.h"
#include "adapters/glib/run.h"

static const GMainContext *resolve_context(const GMainContext *context)
{
	return context ? context : weft__glib_real.g_main_context_default();
}

static bool has_turn_loops; /* whether any stepped loop has been recorded */

struct weft__glib_object *weft__glib_find_turn_loop(const GMainContext *context)
{
	return __atomic_load_n(&has_turn_loops, __ATOMIC_RELAXED) && weft__glib_real.g_main_context_default
		   ? weft__glib_object_find(WEFT__GLIB_LOOP, resolve_context(context))
		   : NULL;
}

static void await_source(const struct weft__glib_object *loop, struct weft__glib_object *source)
{
	struct weft__glib_object *story = source->stands_for ? weft__glib_object_of(source->stands_for) : source;
	if (!story || !story->id || story->is_part || story->is_ended || story->awaited_by)
		return;
	story->awaited_by = loop->id;
	weft_await(loop->id, story->id);
}

void weft__glib_await_source(struct weft__glib_object *source)
{
	const struct weft__glib_object *loop = weft__glib_find_turn_loop(source->context);
	if (loop && loop->id)
		await_source(loop, source);
}

/* An iteration that the program calls in a callback awaits no loop, because the loop may await the callback's source. */
bool weft__glib_is_turn(void)
{
	const struct weft__glib_here *here = weft__glib_get_here();
	const struct weft__glib_run *run = here->runs;
	return here->depth == 1 && !run->object && !run->turns && !weft__glib_is_own(run->caller) &&
	       weft__hook_get_thread()->callbacks == 0 && weft__glib_real.g_main_context_default;
}

void weft__glib_await_sources(const struct weft_hook_sleep *sleep)
{
	(void)sleep;
	if (!weft__glib_is_recording() || !weft__glib_is_turn())
		return;
	struct weft__glib_run *run = weft__glib_get_here()->runs;
	const GMainContext *context = resolve_context(run->context);
	__atomic_store_n(&has_turn_loops, true, __ATOMIC_RELAXED);
	struct weft__glib_object *loop = weft__glib_object_find(WEFT__GLIB_LOOP, context);
	const bool is_new = !loop && (loop = weft__glib_object_add(WEFT__GLIB_LOOP, context));
	if (!loop)
		return;
	if (is_new) {
		weft__glib_create(loop, WEFT_KIND_LOOP, run->caller, false, run->outer, run->outer);
		weft__glib_label(loop, "g_main_context_iteration");
	} else {
		weft_await(loop->awaited_by = run->outer, loop->id);
	}
	run->turns = loop->id;
	struct weft__glib_object *source;
	for (uint32_t at = 0; is_new && (source = weft__glib_object_next(&at));)
		if (source->type == WEFT__GLIB_SOURCE && source->owner_thread == weft__glib_get_here() &&
		    resolve_context(source->context) == context)
			await_source(loop, source);
}
