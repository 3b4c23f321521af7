/* adapter.c: the table of the QEMU adapter, and the waits and names of QEMU's threads.  SPDX-License-Identifier: ISC */
#include "adapters/qemu/common.h"

#include <stdio.h>

#include "adapters/base/thread_sleep.h"

/* ---- Sleep ---- */

static void handle_poll_return(const int *callbacks)
{
	weft__qemu_get_here()->polls--;
	weft__qemu_get_here()->callbacks = *callbacks;
}

/* aio_poll() is the loop of I/O threads; other threads call it to wait for the end of a request. */
bool weft__aio_poll(void *context, bool blocking)
{
	if (!blocking || !weft__qemu_should_record())
		return weft__qemu_real.aio_poll(context, blocking);
	__attribute__((cleanup(handle_poll_return))) int callbacks = weft__qemu_get_here()->callbacks;
	(void)callbacks;
	weft__qemu_get_here()->polls++;
	weft__qemu_get_here()->callbacks = weft__hook_get_thread()->callbacks;
	return weft__qemu_real.aio_poll(context, blocking);
}

static bool is_loop_wait(struct weft_hook_sleep *sleep)
{
	const struct weft__qemu_here *here = weft__qemu_get_here();
	return here->polls > 0 && here->epoch == weft__hook_epoch && sleep->kind == WEFT_HOOK_SLEEP_FDS &&
	       weft__hook_get_thread()->callbacks == here->callbacks && weft__qemu_is_own(sleep->caller);
}

/* ---- Threads ---- */

/* The wrapper notes the thread's name, because QEMU passes names to the kernel only if a command-line option asks for it. */
void weft__qemu_thread_create(void *thread, const char *name, void *(*routine)(void *), void *data, int mode)
{
	weft__hook_next_thread_name = name;
	weft__qemu_real.qemu_thread_create(thread, name, routine, data, mode);
	weft__hook_next_thread_name = NULL;
}

/* ---- The adapter ---- */

#define TAKEN(result, name, parameters, ...) WEFT_HOOK_TAKEN(name, weft__##name, weft__qemu_real.name),
/* blk_co_pread() exists since QEMU 7.1; before, its sizes had other types. */
static const struct weft_hook_function functions[] = {WEFT__QEMU_CALLS(TAKEN) WEFT__QEMU_CALLBACK_REQUESTS(TAKEN)
							  WEFT__QEMU_COROUTINE_REQUESTS(TAKEN)
							      WEFT_HOOK_REQUIRED(qemu_coroutine_switch),
    WEFT_HOOK_REQUIRED(blk_co_pread), WEFT_HOOK_CALLED(blk_name, weft__qemu_real.blk_name), {0}};

static bool is_supported_version(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "7.1 or later");
	return true;
}

static void clear_objects(void)
{
	weft_hook_object_table_clear(&weft__qemu_objects);
}

static void handle_fork(enum weft_hook_fork when)
{
	weft_hook_object_table_fork(&weft__qemu_objects, when);
}

const struct weft_hook_adapter weft_qemu_adapter = {
    .name = "QEMU",
    .library = "qemu-",
    .prefix = "qemu_coroutine_",
    .mark = "qemu_coroutine_create",
    WEFT_HOOK_SETS((functions), (&weft__qemu_program)),
    .accepts = is_supported_version,
    .forget = clear_objects,
    .fork = handle_fork,
    .sleeps = is_loop_wait,
};
