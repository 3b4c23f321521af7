/* adapter.c: the tables of GLib's three libraries.  Of each there is one copy in a process: GLib's types allow no second.
 * SPDX-License-Identifier: ISC */
#include "adapters/glib/adapter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct weft__glib_real weft__glib_real;

struct weft__glib_modules weft__glib_modules;

#define ROW(result, name, parameters, arguments) {#name, (void *)weft__##name, (void **)(void *)&weft__glib_real.name},
#define CALLED(result, name, parameters) {#name, NULL, (void **)(void *)&weft__glib_real.name},
static const struct weft_hook_function glib_functions[] = {WEFT__GLIB_SHORT_CALLS(ROW) WEFT__GLIB_CALLS(ROW)
							       WEFT__GLIB_LOCK_CALLS(ROW)
								   WEFT__GLIB_ONLY_CALLED(CALLED){"g_source_attach", NULL, NULL},
    {"g_source_destroy", NULL, NULL}, {"g_main_loop_run", NULL, NULL}, {0}};
static const struct weft_hook_function gio_functions[] = {
    WEFT__GIO_CALLS(ROW) WEFT__GIO_ONLY_CALLED(CALLED){"g_task_return_pointer", NULL, NULL}, {0}};
static const struct weft_hook_function gobject_functions[] = {WEFT__GOBJECT_ONLY_CALLED(CALLED){0}};

#define NAME(result, name, parameters, arguments) #name,
static const char *const glib_from_outside[] = {WEFT__GLIB_LOCK_CALLS(NAME) NULL};

static const struct weft_hook_function *const glib_sets[] = {glib_functions};
static const struct weft_hook_function *const gio_sets[] = {gio_functions};
static const struct weft_hook_function *const gobject_sets[] = {gobject_functions};

static const struct weft_hook_module **const glib_modules[] = {&weft__glib_modules.glib};
static const struct weft_hook_module **const gio_modules[] = {&weft__glib_modules.gio};
static const struct weft_hook_module **const gobject_modules[] = {&weft__glib_modules.gobject};

/* The library's file is called libglib-2.0.so.0.7400.6, in 2.74.6. */
static bool put_version(const struct weft_hook_module *module, char *version, size_t size)
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

static void forget(void)
{
	weft__glib_things_forget();
	weft__glib_cancels_forget();
	weft__glib_sources_forget();
}

static void forks(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_IN_CHILD)
		forget();
}

/* It is asked about sleep for all three. */
const struct weft_hook_adapter weft_glib_adapter = {
    .name = "GLib",
    .library = "libglib-2.0.so",
    .prefix = "g_",
    .mark = "g_main_context_dispatch",
    .sets = 1,
    .functions = glib_sets,
    .modules = glib_modules,
    .accepts = put_version,
    .from_outside = glib_from_outside,
    .forget = forget,
    .fork = forks,
    .sleeps = weft__glib_sleeps,
    .thread_ends = weft__glib_thread_ends,
};

const struct weft_hook_adapter weft_gobject_adapter = {
    .name = "GObject",
    .library = "libgobject-2.0.so",
    .prefix = "g_",
    .mark = "g_type_name_from_instance",
    .sets = 1,
    .functions = gobject_sets,
    .modules = gobject_modules,
    .accepts = put_version,
};

const struct weft_hook_adapter weft_gio_adapter = {
    .name = "GIO",
    .library = "libgio-2.0.so",
    .prefix = "g_",
    .mark = "g_task_new",
    .sets = 1,
    .functions = gio_sets,
    .modules = gio_modules,
    .accepts = put_version,
};
