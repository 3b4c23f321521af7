/* loop.c: loops that run.
 *
 * g_main_loop_run() is a promise that who calls it awaits, and that runs between callbacks; whoever quits the loop resolves it.
 * So is g_application_run(), which has no such loop.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"
#include "adapters/hook/sleep.h"

/* Its promise. */
static void create(struct weft__glib_run *run, bool is_older)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct weft__glib_thing *thing = run->object ? weft__glib_thing_add(WEFT__GLIB_LOOP, run->object) : NULL;
	run->outer = weft__glib_who();
	run->loop = here->loop;
	run->turns = 0;
	run->in_loop = here->in_loop;
	if (thing && is_older)
		weft__glib_create_older(thing, WEFT_KIND_LOOP, run->outer);
	else if (thing)
		weft__glib_create(thing, WEFT_KIND_LOOP, run->caller, weft__glib_is_own(run->caller), run->outer, run->outer);
	if (!thing)
		return;
	weft__glib_label(thing, run->label);
	weft__hook_thread.running = here->loop = thing->id;
	if (!is_older)
		weft_hook_show(thing->id);
}

/* NULL: nothing records, or it is the innermost of too many. */
static struct weft__glib_run *begin(const void *object, GMainContext *context, const char *label, const void *caller)
{
	struct weft__glib_here *here = &weft__glib_here;
	const void *stack = __builtin_frame_address(0);
	const bool is_on = weft__glib_begins();
	/* Those below were left by a longjmp. */
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack <= (uintptr_t)stack)
		here->depth--;
	if ((!is_on && !weft__hook_stands_by) || here->depth == WEFT__GLIB_DEPTH)
		return NULL;
	struct weft__glib_run *run = &here->runs[here->depth++];
	*run = (struct weft__glib_run){object, context, stack, caller, label, 0, 0, 0, here->in_loop};
	if (is_on)
		create(run, false);
	here->in_loop = true;
	return run;
}

static const GMainContext *context_of(const GMainContext *context)
{
	return context ? context : weft__glib_real.g_main_context_default();
}

/* ---- Loops that are called turn by turn ----
 *
 * All turns of a context have one promise, from the first that waits long on; it awaits the context's sources. */

static bool are_turned; /* there was one such loop */

static struct weft__glib_thing *turned(const GMainContext *context)
{
	return __atomic_load_n(&are_turned, __ATOMIC_RELAXED) && weft__glib_real.g_main_context_default
		   ? weft__glib_thing_find(WEFT__GLIB_LOOP, context_of(context))
		   : NULL;
}

static void keep(const struct weft__glib_thing *loop, struct weft__glib_thing *source)
{
	struct weft__glib_thing *story = source->stands_for ? weft__glib_thing_of(source->stands_for) : source;
	if (!story || !story->id || story->is_part || story->is_ended || story->awaited_by)
		return;
	story->awaited_by = loop->id;
	weft_await(loop->id, story->id);
}

void weft__glib_is_kept(struct weft__glib_thing *source)
{
	const struct weft__glib_thing *loop = turned(source->context);
	if (loop && loop->id)
		keep(loop, source);
}

/* Where a callback calls a turn, it awaits no loop: that may await the callback's source. */
bool weft__glib_is_turn(void)
{
	const struct weft__glib_here *here = &weft__glib_here;
	const struct weft__glib_run *run = here->runs;
	return here->depth == 1 && !run->object && !run->turns && !weft__glib_is_own(run->caller) &&
	       weft__hook_thread.callbacks == 0 && weft__glib_real.g_main_context_default;
}

void weft__glib_still(const struct weft_hook_sleep *sleep)
{
	(void)sleep;
	if (!weft__glib_goes_on() || !weft__glib_is_turn())
		return;
	struct weft__glib_run *run = weft__glib_here.runs;
	const GMainContext *context = context_of(run->context);
	__atomic_store_n(&are_turned, true, __ATOMIC_RELAXED);
	struct weft__glib_thing *loop = weft__glib_thing_find(WEFT__GLIB_LOOP, context);
	const bool is_new = !loop && (loop = weft__glib_thing_add(WEFT__GLIB_LOOP, context));
	if (!loop)
		return;
	if (is_new) {
		weft__glib_create(loop, WEFT_KIND_LOOP, run->caller, false, run->outer, run->outer);
		weft__glib_label(loop, "g_main_context_iteration, turn by turn");
	} else {
		weft_await(loop->awaited_by = run->outer, loop->id);
	}
	run->turns = loop->id;
	struct weft__glib_thing *source;
	for (uint32_t at = 0; is_new && (source = weft__glib_thing_next(&at));)
		if (source->type == WEFT__GLIB_SOURCE && source->home == &weft__glib_here &&
		    context_of(source->context) == context)
			keep(loop, source);
}

/* Who called a turn goes on. */
static void end_turn(const struct weft__glib_run *run)
{
	struct weft__glib_thing *loop = turned(run->context);
	if (!loop || loop->id != run->turns || loop->awaited_by != run->outer)
		return;
	weft_awaits_no_more(run->outer, run->turns);
	loop->awaited_by = 0;
}

/* What had this memory before is gone. */
static GMainContext *is_new(GMainContext *context)
{
	struct weft__glib_thing *loop = weft__glib_goes_on() ? turned(context) : NULL;
	if (loop) {
		weft__glib_end(loop, NULL);
		weft__glib_thing_remove(loop);
	}
	return context;
}

GMainContext *weft__g_main_context_new(void)
{
	return is_new(weft__glib_real.g_main_context_new());
}

GMainContext *weft__g_main_context_new_with_flags(GMainContextFlags flags)
{
	return is_new(weft__glib_real.g_main_context_new_with_flags(flags));
}

/* ---- Loops that run ---- */

static void end(const struct weft__glib_run *run)
{
	struct weft__glib_here *here = &weft__glib_here;
	const bool goes_on = weft__glib_goes_on();
	struct weft__glib_thing *thing =
	    run->object && run->outer && goes_on ? weft__glib_thing_find(WEFT__GLIB_LOOP, run->object) : NULL;
	const weft_id id = thing ? thing->id : 0;
	here->depth = (unsigned)(run - here->runs);
	here->in_loop = run->in_loop;
	if (thing) {
		weft__glib_end(thing, NULL);
		weft__glib_thing_remove(thing);
	}
	if (!goes_on)
		return;
	weft__hook_thread.running = run->outer;
	here->loop = run->loop;
	if (run->turns)
		end_turn(run);
	if (id)
		weft__glib_read(run->outer, id);
	else if (run->object || !weft__glib_is_own(run->caller))
		weft_hook_show(run->outer);
}

/* ---- Loops that are older than the recording ---- */

void weft__glib_adopt_loops(void)
{
	struct weft__glib_here *here = &weft__glib_here;
	const bool in_loop = here->in_loop;
	for (unsigned i = 0; i < here->depth; i++) {
		const bool before = here->runs[i].in_loop;
		create(&here->runs[i], true);
		here->runs[i].in_loop = before;
	}
	here->in_loop = in_loop;
}

/* A context numbers its sources from 1 on, and finds one by its number; it does not list them. */
void weft__glib_tell_older(void)
{
	enum { AT_A_TIME = 20000 }; /* some ms */
	struct weft__glib_here *here = &weft__glib_here;
	GMainContext *context = here->runs[here->depth - 1].context;
	GSource *(*find)(GMainContext *, guint) = weft__glib_real.g_main_context_find_source_by_id;
	GSource *last = NULL;
	if (find && weft_hook_may_be_older(&here->older, context) && (last = weft__glib_real.g_idle_source_new())) {
		weft_hook_older_told(&here->older, context);
		here->rest.context = context;
		here->rest.next = 1;
		here->rest.last = weft__glib_real.g_source_attach(last, context);
		weft__glib_real.g_source_destroy(last);
		weft__glib_real.g_source_unref(last);
	}
	const bool goes_on = find && here->rest.context == context;
	for (unsigned i = 0; goes_on && i < AT_A_TIME && here->rest.next < here->rest.last; i++) {
		GSource *source = find(context, here->rest.next++);
		if (source)
			weft__glib_source_is_older(source);
	}
}

/* ---- Calls ---- */

static const char *label_of(void)
{
	return weft__hook_thread.callbacks > 0 ? "nested main loop" : "main loop";
}

void weft__g_main_loop_run(GMainLoop *loop)
{
	GMainContext *context = loop && weft__hook_stands_by ? weft__glib_real.g_main_loop_get_context(loop) : NULL;
	const struct weft__glib_run *run = begin(loop, context, label_of(), __builtin_return_address(0));
	weft__glib_real.g_main_loop_run(loop);
	if (run)
		end(run);
}

void weft__g_main_loop_quit(GMainLoop *loop)
{
	struct weft__glib_thing *thing = weft__glib_goes_on() ? weft__glib_thing_find(WEFT__GLIB_LOOP, loop) : NULL;
	if (thing)
		weft__glib_end(thing, NULL);
	weft__glib_real.g_main_loop_quit(loop);
}

int weft__g_application_run(GApplication *application, int argc, char **argv)
{
	const struct weft__glib_run *run = begin(application, NULL, "application", __builtin_return_address(0));
	if (run)
		weft__glib_here.in_loop = run->in_loop; /* it starts up first; its loop is turned by g_main_context_iteration() */
	int status = weft__glib_real.g_application_run(application, argc, argv);
	if (run)
		end(run);
	return status;
}

/* What an application does before its loop turns: handlers of signals, which no source calls. */
static weft_id begin_step(const char *label, const void *caller)
{
	weft_id by = weft__glib_who();
	weft_id id = weft__create_awaited(by, WEFT_KIND_TASK, weft_hook_place(caller), by, label, (uint32_t)strlen(label));
	weft__hook_thread.running = id;
	weft_hook_show(id);
	return id;
}

static void end_step(weft_id id, weft_id by)
{
	if (!weft__glib_goes_on())
		return;
	weft__hook_thread.running = by;
	weft_resolve(id, id);
	weft__glib_read(by, id);
}

#define STEP(label, CALL)                                                                                                        \
	weft_id by = 0, id = 0;                                                                                                  \
	if (weft__glib_begins()) {                                                                                               \
		by = weft__glib_who();                                                                                           \
		id = begin_step(label, __builtin_return_address(0));                                                             \
	}                                                                                                                        \
	CALL;                                                                                                                    \
	if (id)                                                                                                                  \
	end_step(id, by)

gboolean weft__g_application_register(GApplication *application, GCancellable *cancellable, GError **error)
{
	STEP("start up", gboolean result = weft__glib_real.g_application_register(application, cancellable, error));
	return result;
}

void weft__g_application_activate(GApplication *application)
{
	STEP("activate", weft__glib_real.g_application_activate(application));
}

void weft__g_application_open(GApplication *application, GFile **files, gint count, const gchar *hint)
{
	STEP("open", weft__glib_real.g_application_open(application, files, count, hint));
}

/* A turn of a loop that somebody else keeps going.  What runs after it is who called. */
gboolean weft__g_main_context_iteration(GMainContext *context, gboolean may_block)
{
	const struct weft__glib_run *run = begin(NULL, context, NULL, __builtin_return_address(0));
	gboolean result = weft__glib_real.g_main_context_iteration(context, may_block);
	if (run)
		end(run);
	return result;
}
