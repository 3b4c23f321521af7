/* adapter.c: the table of the libuv adapter, and a set of wrappers for each copy of libuv in the process.
 * SPDX-License-Identifier: ISC */
#include "adapters/uv/adapter.h"

#include <stddef.h>
#include <stdio.h>

struct weft__uv_copy weft__uv_copies[WEFT__UV_COPIES];

/* ---- Wrappers: who called, and in which copy it goes on ---- */

/* What libuv calls of itself goes straight on.  Not uv_run(), which puts right what a longjmp has left. */
#define GOES_ON(name)                                                                                                            \
	(offsetof(struct weft__uv_calls, name) != offsetof(struct weft__uv_calls, uv_run) &&                                     \
	    __builtin_expect(weft__uv_here.inside > 0, 0))

#define WRAPPER(set, since, result, name, parameters, arguments)                                                                 \
	static result wrap_##set##_##name parameters                                                                             \
	{                                                                                                                        \
		if (GOES_ON(name))                                                                                               \
			return weft__uv_copies[set].real.name(WEFT__UV_LIST arguments);                                          \
		return weft__##name(&weft__uv_copies[set], __builtin_return_address(0), WEFT__UV_LIST arguments);                \
	}
#define ROW(set, since, result, name, parameters, arguments)                                                                     \
	{#name, (void *)wrap_##set##_##name, (void **)(void *)&weft__uv_copies[set].real.name},

#define WRAPPER_0(...) WRAPPER(0, __VA_ARGS__)
#define WRAPPER_1(...) WRAPPER(1, __VA_ARGS__)
#define WRAPPER_2(...) WRAPPER(2, __VA_ARGS__)
#define CALLED_ROW(set, result, name, parameters) {#name, NULL, (void **)(void *)&weft__uv_copies[set].real.name},

#define ROW_0(...) ROW(0, __VA_ARGS__)
#define ROW_1(...) ROW(1, __VA_ARGS__)
#define ROW_2(...) ROW(2, __VA_ARGS__)
#define CALLED_ROW_0(...) CALLED_ROW(0, __VA_ARGS__)
#define CALLED_ROW_1(...) CALLED_ROW(1, __VA_ARGS__)
#define CALLED_ROW_2(...) CALLED_ROW(2, __VA_ARGS__)
#define FS_WRAPPER_0(...) WEFT__UV_FS_AS_X(WRAPPER_0, __VA_ARGS__)
#define FS_WRAPPER_1(...) WEFT__UV_FS_AS_X(WRAPPER_1, __VA_ARGS__)
#define FS_WRAPPER_2(...) WEFT__UV_FS_AS_X(WRAPPER_2, __VA_ARGS__)
#define FS_ROW_0(...) WEFT__UV_FS_AS_X(ROW_0, __VA_ARGS__)
#define FS_ROW_1(...) WEFT__UV_FS_AS_X(ROW_1, __VA_ARGS__)
#define FS_ROW_2(...) WEFT__UV_FS_AS_X(ROW_2, __VA_ARGS__)

#define SET(set)                                                                                                                 \
	WEFT__UV_CALLS(WRAPPER_##set, FS_WRAPPER_##set)                                                                          \
	static uv_loop_t *wrap_##set##_uv_default_loop(void)                                                                     \
	{                                                                                                                        \
		return weft__uv_default_loop(&weft__uv_copies[set], __builtin_return_address(0));                                \
	}                                                                                                                        \
	static const struct weft_hook_function functions_##set[] = {                                                             \
	    WEFT__UV_CALLS(ROW_##set, FS_ROW_##set) WEFT__UV_ONLY_CALLED(CALLED_ROW_##set){"uv_default_loop",                    \
		(void *)wrap_##set##_uv_default_loop, (void **)(void *)&weft__uv_copies[set].real.uv_default_loop},              \
	    {0}};
SET(0)
SET(1)
SET(2)

static const struct weft_hook_function *const functions[WEFT__UV_COPIES] = {functions_0, functions_1, functions_2};
static const struct weft_hook_module **const modules[WEFT__UV_COPIES] = {
    &weft__uv_copies[0].module, &weft__uv_copies[1].module, &weft__uv_copies[2].module};

/* ---- The adapter ---- */

/* All of 1.x have the same public structs; forks with others (Julia's) call themselves 2.  A program that has libuv inside may
 * lack uv_version, which nothing else in it calls: uv_loop_init tells that it is 1. */
static bool accepts(const struct weft_hook_module *module, char *version, size_t size)
{
	unsigned (*uv_version)(void) = (unsigned (*)(void))weft_hook_symbol(module, "uv_version");
	unsigned number = uv_version ? uv_version() : 0;
	if (uv_version)
		snprintf(version, size, "%u.%u.%u", number >> 16, number >> 8 & 255, number & 255);
	else
		snprintf(version, size, "%s", weft_hook_symbol(module, "uv_loop_init") ? "1" : "0");
	return uv_version ? number >> 16 == 1 : version[0] == '1';
}

static void forget(void)
{
	weft__uv_things_lock();
	weft__uv_things_forget();
	weft__uv_things_unlock();
}

static void forks(enum weft_hook_fork when)
{
	if (when == WEFT_HOOK_BEFORE_FORK) {
		weft__uv_things_lock();
		return;
	}
	if (when == WEFT_HOOK_IN_CHILD) {
		weft__uv_things_forget();
		weft__uv_here.depth = 0; /* it mostly does something else than to run its parent's loops */
	}
	weft__uv_things_unlock();
}

const struct weft_hook_adapter weft_uv_adapter = {
    .name = "libuv",
    .library = "libuv.so",
    .prefix = "uv_",
    .mark = "uv_run",
    .sets = WEFT__UV_COPIES,
    .functions = functions,
    .modules = modules,
    .accepts = accepts,
    .forget = forget,
    .fork = forks,
    .sleeps = weft__uv_sleeps,
    .thread_ends = weft__uv_thread_ends,
};
