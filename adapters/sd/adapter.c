/* adapter.c: tables of functions that the sd-event adapter wraps, with one set for each copy of the library.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapters/sd/common.h"

#define WRAPPER(set, result, name, parameters, arguments)                                                                        \
	static result wrap_##set##_##name parameters                                                                             \
	{                                                                                                                        \
		weft_hook_list_copy(weft__sd_copies[set].module);                                                                \
		return weft__##name(&weft__sd_copies[set], __builtin_return_address(0), WEFT__SD_LIST arguments);                \
	}
#define TAKEN(set, result, name, parameters, arguments)                                                                          \
	WEFT_HOOK_TAKEN(name, wrap_##set##_##name, weft__sd_copies[set].real.name),
#define CALLED(set, result, name, parameters) WEFT_HOOK_CALLED(name, weft__sd_copies[set].real.name),
#define WRAPPER_0(...) WRAPPER(0, __VA_ARGS__)
#define WRAPPER_1(...) WRAPPER(1, __VA_ARGS__)
#define TAKEN_0(...) TAKEN(0, __VA_ARGS__)
#define TAKEN_1(...) TAKEN(1, __VA_ARGS__)
#define CALLED_0(...) CALLED(0, __VA_ARGS__)
#define CALLED_1(...) CALLED(1, __VA_ARGS__)
#define SET(set)                                                                                                                 \
	WEFT__SD_CALLS(WRAPPER_##set)                                                                                            \
	static const struct weft_hook_function functions_##set[] = {                                                             \
	    WEFT__SD_CALLS(TAKEN_##set) WEFT__SD_ONLY_CALLED(CALLED_##set){0}};
SET(0)
SET(1)

/* The adapter supports files such as libsystemd.so.0.35.0 and libsystemd-shared-252.so.  If systemd's code is linked into
 * another module, it cannot be distinguished from other code. */
static bool is_supported_library(const struct weft_hook_module *module, char *version, size_t size)
{
	char target[256];
	ssize_t n = readlink(module->path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	const char *path = n > 0 ? target : module->path, *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	const char *shared = strstr(file, "-shared-"), *so = strstr(file, ".so.");
	bool is_known = !strncmp(file, "libsystemd", 10) && (shared || so);
	if (!is_known)
		snprintf(version, size, "(linked in)");
	else if (shared)
		snprintf(version, size, "%.*s", (int)strcspn(shared + 8, "."), shared + 8);
	else /* the version is the largest number in names of symbol versions, because each version of systemd adds one */
		snprintf(version, size, "%u", weft_hook_newest_name(module, "LIBSYSTEMD_"));
	return is_known;
}

static void clear_promise(struct weft_hook_object *base_object, void *data)
{
	struct weft__sd_object *object = (struct weft__sd_object *)(void *)base_object;
	object->id = object->awaited_by = object->ended_by = 0;
	object->calls = (struct weft_hook_calls){0};
}

/* On standby, known sources stay known, because sd-event cannot list them. */
static void clear_objects(void)
{
	if (weft__hook_is_standby)
		weft_hook_object_table_each(&weft__sd_objects, clear_promise, NULL);
	else
		weft_hook_object_table_clear(&weft__sd_objects);
}

static void handle_fork(enum weft_hook_fork when)
{
	weft_hook_object_table_fork(&weft__sd_objects, when);
	if (when == WEFT_HOOK_IN_CHILD)
		weft__sd_clear_unlabelled();
}

const struct weft_hook_adapter weft_sd_adapter = {
    .name = "sd-event",
    .library = "libsystemd",
    .prefix = "sd_",
    .mark = "sd_event_loop",
    /* Most programs with libsystemd do not use sd-event: they only notify systemd, or write to its journal. */
    .is_listed_when_called = true,
    WEFT_HOOK_SETS((functions_0, functions_1), (&weft__sd_copies[0].module, &weft__sd_copies[1].module)),
    .accepts = is_supported_library,
    .forget = clear_objects,
    .fork = handle_fork,
    .sleeps = weft__sd_is_loop_wait,
};
