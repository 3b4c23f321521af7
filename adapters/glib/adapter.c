/* adapter.c: tables of the functions that the adapter wraps in GLib's three libraries.  A process has one copy of each of GLib's
 * libraries, because GLib's type system allows no second copy.  SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/glib/object.h"
#include "adapters/glib/run.h"

#define TAKEN(result, name, parameters, arguments) WEFT_HOOK_TAKEN(name, weft__##name, weft__glib_real.name),
#define CALLED(result, name, parameters) WEFT_HOOK_CALLED(name, weft__glib_real.name),
static const struct weft_hook_function glib_functions[] = {WEFT__GLIB_SHORT_CALLS(TAKEN) WEFT__GLIB_CALLS(TAKEN)
							       WEFT__GLIB_LOCK_CALLS(TAKEN) WEFT__GLIB_ONLY_CALLED(CALLED)
								   WEFT_HOOK_REQUIRED(g_source_attach),
    WEFT_HOOK_REQUIRED(g_source_destroy), WEFT_HOOK_REQUIRED(g_main_loop_run), {0}};
static const struct weft_hook_function gio_functions[] = {
    WEFT__GIO_CALLS(TAKEN) WEFT__GIO_ONLY_CALLED(CALLED) WEFT_HOOK_REQUIRED(g_task_return_pointer), {0}};
static const struct weft_hook_function gobject_functions[] = {WEFT__GOBJECT_ONLY_CALLED(CALLED){0}};

#define NAME_ENTRY(result, name, parameters, arguments) #name,
static const char *const glib_from_outside[] = {WEFT__GLIB_LOCK_CALLS(NAME_ENTRY) NULL};

/* Returns whether the wait is the sleep of a GLib loop; also labels sources that have no name when the loop sleeps. */
static bool is_loop_wait(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* longest wait of a busy loop */
	struct weft__glib_here *here = weft__glib_get_here();
	if (here->epoch != weft__hook_epoch && here->depth > 0) {
		weft_hook_thread();
		weft__glib_attach_thread();
	}
	if (here->epoch != weft__hook_epoch)
		return false;
	if (here->is_in_loop && here->depth > 0 && sleep->kind == WEFT_HOOK_SLEEP_FDS)
		weft__glib_record_older();
	if (here->unlabelled_count > 0)
		weft__glib_label_sources();
	if (here->accepted)
		weft__glib_begin_accepted();
	if (!here->is_in_loop || sleep->kind != WEFT_HOOK_SLEEP_FDS)
		return false;
	if (weft__glib_is_turn()) {
		sleep->first_ms = STILL_MS;
		sleep->on_long_wait = weft__glib_await_sources;
	}
	return true;
}

/* Gets the version from the file's name: GLib 2.74.6 is in libglib-2.0.so.0.7400.6. */
static bool write_version(const struct weft_hook_module *module, char *version, size_t size)
{
	char target[256];
	ssize_t n = readlink(module->path, target, sizeof target - 1);
	unsigned minor, micro;
	target[n > 0 ? n : 0] = 0;
	const char *so = strstr(n > 0 ? target : module->path, "-2.0.so.0.");
	if (so && sscanf(so, "-2.0.so.0.%u.%u", &minor, &micro) == 2)
		snprintf(version, size, "2.%u.%u", minor / 100, micro);
	else
		snprintf(version, size, "2");
	return true;
}

static void clear_all(void)
{
	weft__glib_objects_clear();
	weft__glib_cancels_clear();
	weft__glib_sources_clear();
}

static void handle_fork(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_IN_CHILD)
		clear_all();
}

/* is_loop_wait() of the libglib adapter also covers libgio and libgobject. */
const struct weft_hook_adapter weft_glib_adapter = {
    .name = "GLib",
    .library = "libglib-2.0.so",
    .prefix = "g_",
    .mark = "g_main_context_dispatch",
    WEFT_HOOK_SETS((glib_functions), (&weft__glib_modules.glib)),
    .accepts = write_version,
    .from_outside = glib_from_outside,
    .forget = clear_all,
    .fork = handle_fork,
    .sleeps = is_loop_wait,
    .thread_ends = weft__glib_thread_end,
};

const struct weft_hook_adapter weft_gobject_adapter = {
    .name = "GObject",
    .library = "libgobject-2.0.so",
    .prefix = "g_",
    .mark = "g_type_name_from_instance",
    WEFT_HOOK_SETS((gobject_functions), (&weft__glib_modules.gobject)),
    .accepts = write_version,
};

const struct weft_hook_adapter weft_gio_adapter = {
    .name = "GIO",
    .library = "libgio-2.0.so",
    .prefix = "g_",
    .mark = "g_task_new",
    WEFT_HOOK_SETS((gio_functions), (&weft__glib_modules.gio)),
    .accepts = write_version,
};
