/* adapter.c: the table of the libuv adapter, with a set of wrappers for each copy of libuv in the process.
 * SPDX-License-Identifier: ISC */
#include <stddef.h>
#include <stdio.h>

#include "adapters/uv/object.h"

static struct weft__uv_copy copies[WEFT__UV_MAX_COPIES];

/* ---- Wrappers ---- */

/* Returns whether libuv calls itself, because such calls are not recorded. uv_run() is an exception: it corrects the count that
 * a longjmp() has left. */
#define IS_NESTED(name)                                                                                                          \
	(offsetof(struct weft__uv_calls, name) != offsetof(struct weft__uv_calls, uv_run) &&                                     \
	    __builtin_expect(weft__uv_get_here()->nested_calls > 0, 0))

#define WRAPPER(set, since, result, name, parameters, arguments)                                                                 \
	static result wrap_##set##_##name parameters                                                                             \
	{                                                                                                                        \
		if (IS_NESTED(name))                                                                                             \
			return copies[set].real.name(WEFT__UV_LIST arguments);                                                   \
		return weft__##name(&copies[set], __builtin_return_address(0), WEFT__UV_LIST arguments);                         \
	}
#define TAKEN(set, since, result, name, parameters, arguments) WEFT_HOOK_TAKEN(name, wrap_##set##_##name, copies[set].real.name),
#define CALLED(set, result, name, parameters) WEFT_HOOK_CALLED(name, copies[set].real.name),

#define WRAPPER_0(...) WRAPPER(0, __VA_ARGS__)
#define WRAPPER_1(...) WRAPPER(1, __VA_ARGS__)
#define WRAPPER_2(...) WRAPPER(2, __VA_ARGS__)
#define TAKEN_0(...) TAKEN(0, __VA_ARGS__)
#define TAKEN_1(...) TAKEN(1, __VA_ARGS__)
#define TAKEN_2(...) TAKEN(2, __VA_ARGS__)
#define CALLED_0(...) CALLED(0, __VA_ARGS__)
#define CALLED_1(...) CALLED(1, __VA_ARGS__)
#define CALLED_2(...) CALLED(2, __VA_ARGS__)
#define FS_WRAPPER_0(...) WEFT__UV_FS_AS_X(WRAPPER_0, __VA_ARGS__)
#define FS_WRAPPER_1(...) WEFT__UV_FS_AS_X(WRAPPER_1, __VA_ARGS__)
#define FS_WRAPPER_2(...) WEFT__UV_FS_AS_X(WRAPPER_2, __VA_ARGS__)
#define FS_TAKEN_0(...) WEFT__UV_FS_AS_X(TAKEN_0, __VA_ARGS__)
#define FS_TAKEN_1(...) WEFT__UV_FS_AS_X(TAKEN_1, __VA_ARGS__)
#define FS_TAKEN_2(...) WEFT__UV_FS_AS_X(TAKEN_2, __VA_ARGS__)

#define DEFINE_SET(set)                                                                                                          \
	WEFT__UV_CALLS(WRAPPER_##set, FS_WRAPPER_##set)                                                                          \
	static uv_loop_t *wrap_##set##_uv_default_loop(void)                                                                     \
	{                                                                                                                        \
		return weft__uv_default_loop(&copies[set], __builtin_return_address(0));                                         \
	}                                                                                                                        \
	static const struct weft_hook_function functions_##set[] = {                                                             \
	    WEFT__UV_CALLS(TAKEN_##set, FS_TAKEN_##set) WEFT__UV_ONLY_CALLED(CALLED_##set)                                       \
		WEFT_HOOK_TAKEN(uv_default_loop, wrap_##set##_uv_default_loop, copies[set].real.uv_default_loop),                \
	    {0}};
DEFINE_SET(0)
DEFINE_SET(1)
DEFINE_SET(2)

/* ---- The adapter ---- */

/* All versions 1.x of libuv have the same public structs; incompatible forks (Julia's) have version 2.  A program that contains
 * libuv may lack uv_version(); in that case uv_loop_init() shows that the version is 1.x. */
static bool is_supported_version(const struct weft_hook_module *module, char *version, size_t size)
{
	unsigned (*uv_version)(void) = (unsigned (*)(void))weft_hook_symbol(module, "uv_version");
	unsigned number = uv_version ? uv_version() : 0;
	if (uv_version)
		snprintf(version, size, "%u.%u.%u", number >> 16, number >> 8 & 255, number & 255);
	else
		snprintf(version, size, "%s", weft_hook_symbol(module, "uv_loop_init") ? "1" : "0");
	return uv_version ? number >> 16 == 1 : version[0] == '1';
}

struct weft__uv_copy *weft__uv_find_copy(const void *address)
{
	for (struct weft__uv_copy *copy = copies; copy < copies + WEFT__UV_MAX_COPIES; copy++)
		if (copy->module && weft_hook_is_own(copy->module, address))
			return copy;
	return NULL;
}

bool weft__uv_is_own(const void *caller)
{
	return weft__uv_find_copy(caller) != NULL;
}

static void clear_objects(void)
{
	weft__uv_objects_lock();
	weft__uv_objects_clear();
	weft__uv_objects_unlock();
}

static void handle_fork(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_BEFORE_FORK) {
		weft__uv_objects_lock();
		return;
	}
	if (when == WEFT_HOOK_IN_CHILD) {
		weft__uv_objects_clear();
		weft__uv_get_here()->depth = 0; /* a child of a fork usually does not continue the parent's loops */
	}
	weft__uv_objects_unlock();
}

const struct weft_hook_adapter weft_uv_adapter = {
    .name = "libuv",
    .library = "libuv.so",
    .prefix = "uv_",
    .mark = "uv_run",
    WEFT_HOOK_SETS((functions_0, functions_1, functions_2), (&copies[0].module, &copies[1].module, &copies[2].module)),
    .accepts = is_supported_version,
    .forget = clear_objects,
    .fork = handle_fork,
    .sleeps = weft__uv_is_loop_wait,
    .pool_call = weft__uv_pool_call,
    .thread_ends = weft__uv_thread_end,
};
