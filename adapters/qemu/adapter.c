/* adapter.c: the table of the QEMU adapter, and when an OS thread of QEMU sleeps.  SPDX-License-Identifier: ISC */
#include "adapters/qemu/adapter.h"

#include <stdio.h>

#include "adapters/hook/sleep.h"

struct weft__qemu_calls weft__qemu_real;
struct weft_hook_things weft__qemu_things = WEFT_HOOK_THINGS(struct weft__qemu_thing);
__thread struct weft__qemu_here weft__qemu_here __attribute__((tls_model("initial-exec")));

static const struct weft_hook_module *program;

bool weft__qemu_is_own(const void *address)
{
	return program && weft_hook_is_own(program, address);
}

static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	return weft_hook_things_list(&weft__qemu_things, cursor, budget);
}

bool weft__qemu_takes(void)
{
	if (!weft_hook_begin())
		return false;
	if (weft__qemu_here.epoch != weft__hook_epoch) {
		weft__qemu_here = (struct weft__qemu_here){.epoch = weft__hook_epoch};
		weft_hook_list(list, &weft__qemu_here);
	}
	weft_hook_thread();
	return true;
}

/* ---- Sleep ---- */

static void poll_returns(const int *callbacks)
{
	weft__qemu_here.polls--;
	weft__qemu_here.callbacks = *callbacks;
}

/* The loop of an I/O thread, and what waits for a request to end. */
bool weft__aio_poll(void *context, bool blocking)
{
	if (!blocking || !weft__qemu_takes())
		return weft__qemu_real.aio_poll(context, blocking);
	__attribute__((cleanup(poll_returns))) int callbacks = weft__qemu_here.callbacks;
	(void)callbacks;
	weft__qemu_here.polls++;
	weft__qemu_here.callbacks = weft__hook_thread.callbacks;
	return weft__qemu_real.aio_poll(context, blocking);
}

static bool sleeps(struct weft_hook_sleep *sleep)
{
	const struct weft__qemu_here *here = &weft__qemu_here;
	return here->polls > 0 && here->epoch == weft__hook_epoch && sleep->kind == WEFT_HOOK_SLEEP_FDS &&
	       weft__hook_thread.callbacks == here->callbacks && weft__qemu_is_own(sleep->caller);
}

/* ---- OS threads ---- */

/* QEMU gives the kernel their names only if it is told to. */
void weft__qemu_thread_create(void *thread, const char *name, void *(*routine)(void *), void *data, int mode)
{
	weft__hook_next_name = name;
	weft__qemu_real.qemu_thread_create(thread, name, routine, data, mode);
	weft__hook_next_name = NULL;
}

/* ---- The adapter ---- */

#define ROW(result, name, parameters, ...) {#name, (void *)weft__##name, (void **)(void *)&weft__qemu_real.name},
/* blk_co_pread() came with 7.1; before that, sizes were of other types. */
static const struct weft_hook_function functions[] = {WEFT__QEMU_CALLS(ROW) WEFT__QEMU_ASKED(ROW)
							  WEFT__QEMU_INSIDE(ROW){"qemu_coroutine_switch", NULL, NULL},
    {"blk_co_pread", NULL, NULL}, {"blk_name", NULL, (void **)(void *)&weft__qemu_real.blk_name}, {0}};
static const struct weft_hook_function *const sets[] = {functions};
static const struct weft_hook_module **const modules[] = {&program};

static bool accepts(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "7.1 or later");
	return true;
}

static void forget(void)
{
	weft_hook_things_forget(&weft__qemu_things);
}

static void forks(enum weft_hook_fork when)
{
	weft_hook_things_fork(&weft__qemu_things, when);
}

const struct weft_hook_adapter weft_qemu_adapter = {
    .name = "QEMU",
    .library = "qemu-",
    .prefix = "qemu_coroutine_",
    .mark = "qemu_coroutine_create",
    .sets = 1,
    .functions = sets,
    .modules = modules,
    .accepts = accepts,
    .forget = forget,
    .fork = forks,
    .sleeps = sleeps,
};
