/* loop.c: running loops.
 *
 * Each call of g_main_loop_run() is a promise: the calling promise awaits it, and g_main_loop_quit() resolves it.
 * g_application_run(), which has no GMainLoop, is recorded in the same way.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/glib/object.h"
#include "adapters/glib/run.h"
#include "adapters/hook/address_cache.h"

/* Returns NULL if nothing records, or if too many loops are nested. */
static struct weft__glib_run *push_run(const void *object, GMainContext *context, const char *label, const void *caller)
{
	struct weft__glib_here *here = weft__glib_get_here();
	const void *stack = __builtin_frame_address(0);
	const bool is_on = weft__glib_should_record();
	/* These loops have ended, because a longjmp() has skipped their frames. */
	while (here->depth > 0 && (uintptr_t)here->runs[here->depth - 1].stack <= (uintptr_t)stack)
		here->depth--;
	if ((!is_on && !weft__hook_is_standby) || here->depth == WEFT__GLIB_MAX_RUNS)
		return NULL;
	struct weft__glib_run *run = &here->runs[here->depth++];
	*run = (struct weft__glib_run){object, context, stack, caller, label, 0, 0, 0, here->is_in_loop};
	if (is_on)
		weft__glib_begin_run(run, false);
	here->is_in_loop = true;
	return run;
}

/* ---- Stepped loops: the program calls each iteration ---- */

/* Ends the calling promise's wait for the iteration. */
static void end_loop_turn(const struct weft__glib_run *run)
{
	struct weft__glib_object *loop = weft__glib_find_turn_loop(run->context);
	if (!loop || loop->id != run->turns || loop->awaited_by != run->outer)
		return;
	weft_awaits_no_more(run->outer, run->turns);
	loop->awaited_by = 0;
}

/* Ends the stepped loop of a freed context that had the same address. */
static GMainContext *end_stale_turn_loop(GMainContext *context)
{
	struct weft__glib_object *loop = weft__glib_is_recording() ? weft__glib_find_turn_loop(context) : NULL;
	if (loop) {
		weft__glib_end(loop, NULL);
		weft__glib_object_remove(loop);
	}
	return context;
}

GMainContext *weft__g_main_context_new(void)
{
	return end_stale_turn_loop(weft__glib_real.g_main_context_new());
}

GMainContext *weft__g_main_context_new_with_flags(GMainContextFlags flags)
{
	return end_stale_turn_loop(weft__glib_real.g_main_context_new_with_flags(flags));
}

/* ---- Loops that run ---- */

static void pop_run(const struct weft__glib_run *run)
{
	struct weft__glib_here *here = weft__glib_get_here();
	const bool goes_on = weft__glib_is_recording();
	struct weft__glib_object *tracked =
	    run->object && run->outer && goes_on ? weft__glib_object_find(WEFT__GLIB_LOOP, run->object) : NULL;
	const weft_id id = tracked ? tracked->id : 0;
	here->depth = (unsigned)(run - here->runs);
	here->is_in_loop = run->is_in_loop;
	if (tracked) {
		weft__glib_end(tracked, NULL);
		weft__glib_object_remove(tracked);
	}
	if (!goes_on)
		return;
	weft__hook_get_thread()->running = run->outer;
	here->loop = run->loop;
	if (run->turns)
		end_loop_turn(run);
	if (id)
		weft__glib_read(run->outer, id);
	else if (run->object || !weft__glib_is_own(run->caller))
		weft_hook_record_running(run->outer);
}

/* ---- Sources that are older than the recording ---- */

/* A context cannot list its sources, but it numbers them from 1 and finds a source by its number. */
void weft__glib_record_older(void)
{
	enum { IDS_PER_TURN = 20000 }; /* these take some ms */
	struct weft__glib_here *here = weft__glib_get_here();
	GMainContext *context = here->runs[here->depth - 1].context;
	GSource *(*find)(GMainContext *, guint) = weft__glib_real.g_main_context_find_source_by_id;
	GSource *last = NULL;
	if (find && weft_hook_is_loop_unlisted(&here->older, context) && (last = weft__glib_real.g_idle_source_new())) {
		weft_hook_mark_loop_listed(&here->older, context);
		here->unlisted.context = context;
		here->unlisted.next = 1;
		here->unlisted.last = weft__glib_real.g_source_attach(last, context);
		weft__glib_real.g_source_destroy(last);
		weft__glib_real.g_source_unref(last);
	}
	const bool goes_on = find && here->unlisted.context == context;
	for (unsigned i = 0; goes_on && i < IDS_PER_TURN && here->unlisted.next < here->unlisted.last; i++) {
		GSource *source = find(context, here->unlisted.next++);
		if (source)
			weft__glib_begin_older_source(source);
	}
}

/* ---- Calls ---- */

static const char *get_loop_label(void)
{
	return weft__hook_get_thread()->callbacks > 0 ? "nested main loop" : "main loop";
}

void weft__g_main_loop_run(GMainLoop *loop)
{
	GMainContext *context = loop && weft__hook_is_standby ? weft__glib_real.g_main_loop_get_context(loop) : NULL;
	const struct weft__glib_run *run = push_run(loop, context, get_loop_label(), __builtin_return_address(0));
	weft__glib_real.g_main_loop_run(loop);
	if (run)
		pop_run(run);
}

void weft__g_main_loop_quit(GMainLoop *loop)
{
	struct weft__glib_object *tracked = weft__glib_is_recording() ? weft__glib_object_find(WEFT__GLIB_LOOP, loop) : NULL;
	if (tracked)
		weft__glib_end(tracked, NULL);
	weft__glib_real.g_main_loop_quit(loop);
}

int weft__g_application_run(GApplication *application, int argc, char **argv)
{
	const struct weft__glib_run *run = push_run(application, NULL, "application", __builtin_return_address(0));
	if (run)
		weft__glib_get_here()->is_in_loop =
		    run->is_in_loop; /* the application starts before it calls g_main_context_iteration() for the first time */
	int status = weft__glib_real.g_application_run(application, argc, argv);
	if (run)
		pop_run(run);
	return status;
}

/* Records a step of an application before its loop runs; signal handlers that no source calls run in this step. */
static weft_id begin_step(const char *label, const void *caller)
{
	weft_id by = weft__glib_current_promise();
	weft_id id = weft__create_awaited(by, WEFT_KIND_TASK, weft_hook_site(caller), by, label, (uint32_t)strlen(label));
	weft__hook_get_thread()->running = id;
	weft_hook_record_running(id);
	return id;
}

static void end_step(weft_id id, weft_id by)
{
	if (!weft__glib_is_recording())
		return;
	weft__hook_get_thread()->running = by;
	weft_resolve(id, id);
	weft__glib_read(by, id);
}

#define RECORD_STEP(label, CALL)                                                                                                 \
	weft_id by = 0, id = 0;                                                                                                  \
	if (weft__glib_should_record()) {                                                                                        \
		by = weft__glib_current_promise();                                                                               \
		id = begin_step(label, __builtin_return_address(0));                                                             \
	}                                                                                                                        \
	CALL;                                                                                                                    \
	if (id)                                                                                                                  \
	end_step(id, by)

gboolean weft__g_application_register(GApplication *application, GCancellable *cancellable, GError **error)
{
	RECORD_STEP("start up", gboolean result = weft__glib_real.g_application_register(application, cancellable, error));
	return result;
}

void weft__g_application_activate(GApplication *application)
{
	RECORD_STEP("activate", weft__glib_real.g_application_activate(application));
}

void weft__g_application_open(GApplication *application, GFile **files, gint count, const gchar *hint)
{
	RECORD_STEP("open", weft__glib_real.g_application_open(application, files, count, hint));
}

/* After the iteration, the promise that called it runs again. */
gboolean weft__g_main_context_iteration(GMainContext *context, gboolean may_block)
{
	const struct weft__glib_run *run = push_run(NULL, context, NULL, __builtin_return_address(0));
	gboolean result = weft__glib_real.g_main_context_iteration(context, may_block);
	if (run)
		pop_run(run);
	return result;
}
