/* loop.c: loops that run.
 *
 * g_main_loop_run() is a promise that who calls it awaits, and that runs between callbacks; whoever quits the loop resolves it.
 * So is g_application_run(), which has no such loop.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/glib/adapter.h"

/* What a loop changes in the OS thread that runs it. */
struct running {
	weft_id outer, loop;
	bool in_loop;
};

static struct running begin(struct weft__glib_thing *thing, const char *label, const void *caller)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct running before = {weft__glib_who(), here->loop, here->in_loop};
	if (thing) {
		weft__glib_create(thing, WEFT_KIND_LOOP, caller, weft__glib_is_own(caller), before.outer, before.outer);
		weft__glib_label(thing, label);
		weft__hook_thread.running = here->loop = thing->id;
		weft_hook_show(thing->id);
	}
	here->in_loop = true;
	return before;
}

static void end(const struct weft__glib_thing *key, enum weft__glib_type type, const void *object, const struct running *before)
{
	struct weft__glib_here *here = &weft__glib_here;
	struct weft__glib_thing *thing = key && weft__glib_goes_on() ? weft__glib_thing_find(type, object) : NULL;
	weft_id id = thing ? thing->id : 0;
	if (thing && thing == key) {
		weft__glib_end(thing, NULL);
		weft__glib_thing_remove(thing);
	}
	weft__hook_thread.running = before->outer;
	here->loop = before->loop;
	here->in_loop = before->in_loop;
	if (!weft_is_on())
		return;
	if (id)
		weft__glib_read(before->outer, id);
	else
		weft_hook_show(before->outer);
}

static const char *label_of(void)
{
	return weft__hook_thread.callbacks > 0 ? "nested main loop" : "main loop";
}

void weft__g_main_loop_run(GMainLoop *loop)
{
	if (!weft__glib_begins()) {
		weft__glib_real.g_main_loop_run(loop);
		return;
	}
	struct weft__glib_thing *thing = weft__glib_thing_add(WEFT__GLIB_LOOP, loop);
	struct running before = begin(thing, label_of(), __builtin_return_address(0));
	weft__glib_real.g_main_loop_run(loop);
	end(thing, WEFT__GLIB_LOOP, loop, &before);
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
	if (!weft__glib_begins())
		return weft__glib_real.g_application_run(application, argc, argv);
	struct weft__glib_thing *thing = weft__glib_thing_add(WEFT__GLIB_LOOP, application);
	struct running before = begin(thing, "application", __builtin_return_address(0));
	weft__glib_here.in_loop = before.in_loop; /* it starts up first; its loop is turned by g_main_context_iteration() */
	int status = weft__glib_real.g_application_run(application, argc, argv);
	end(thing, WEFT__GLIB_LOOP, application, &before);
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
	struct weft__glib_here *here = &weft__glib_here;
	if (!weft__glib_begins())
		return weft__glib_real.g_main_context_iteration(context, may_block);
	struct running before = {.outer = weft__glib_who(), .in_loop = here->in_loop};
	here->in_loop = true;
	gboolean result = weft__glib_real.g_main_context_iteration(context, may_block);
	here->in_loop = before.in_loop;
	if (weft__glib_goes_on() && !weft__glib_is_own(__builtin_return_address(0)))
		weft_hook_show(before.outer);
	return result;
}
