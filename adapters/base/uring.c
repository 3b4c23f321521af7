/* uring.c: where a program waits for an io_uring: liburing enters the kernel without libc.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>

#include "adapters/hook/sleep.h"
#include "adapters/hook/thread.h"

/* X(name, (parameters), (arguments), how many completions are waited for). */
#define CALLS(X)                                                                                                                 \
	X(__io_uring_get_cqe, (void *ring, void **found, unsigned submit, unsigned count, void *mask),                           \
	    (ring, found, submit, count, mask), count)                                                                           \
	X(io_uring_submit_and_wait, (void *ring, unsigned count), (ring, count), count)                                          \
	X(io_uring_submit_and_wait_timeout, (void *ring, void **found, unsigned count, void *time, void *mask),                  \
	    (ring, found, count, time, mask), count)                                                                             \
	X(io_uring_wait_cqes, (void *ring, void **found, unsigned count, void *time, void *mask),                                \
	    (ring, found, count, time, mask), count)                                                                             \
	X(io_uring_wait_cqe_timeout, (void *ring, void **found, void *time), (ring, found, time), 1)

static struct {
#define POINTER(NAME, PARAMETERS, ARGUMENTS, COUNT) int(*NAME) PARAMETERS;
	CALLS(POINTER)
#undef POINTER
} real;

static struct weft_record_text blocked = WEFT_COUNTER("blocked in io_uring");
static __thread int inside __attribute__((tls_model("initial-exec"))); /* one of them may call another */

static bool falls_asleep(struct weft_hook_sleep *sleep, unsigned count)
{
	if (count == 0 || inside > 0 || !weft_hook_begin())
		return false;
	int kept = errno;
	bool is_told = weft_hook_sleeps(sleep);
	errno = kept;
	return is_told;
}

static int wakes(const struct weft_hook_sleep *sleep, bool is_told, int result)
{
	int kept = errno;
	if (is_told)
		weft_hook_wakes(sleep);
	errno = kept;
	return result;
}

#define WRAPPER(NAME, PARAMETERS, ARGUMENTS, COUNT)                                                                              \
	static int wrapped_##NAME PARAMETERS                                                                                     \
	{                                                                                                                        \
		struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_FDS,                                                         \
		    .function = #NAME,                                                                                           \
		    .text = &blocked,                                                                                            \
		    .epoll = -1,                                                                                                 \
		    .may_sleep = true,                                                                                           \
		    .caller = __builtin_return_address(0)};                                                                      \
		bool is_told = falls_asleep(&s, COUNT);                                                                          \
		inside++;                                                                                                        \
		int result = real.NAME ARGUMENTS;                                                                                \
		inside--;                                                                                                        \
		return wakes(&s, is_told, result);                                                                               \
	}
CALLS(WRAPPER)

#define ROW(NAME, PARAMETERS, ARGUMENTS, COUNT) {#NAME, (void *)wrapped_##NAME, (void **)(void *)&real.NAME},
static const struct weft_hook_function functions[] = {CALLS(ROW){0}};
static const struct weft_hook_function *const sets[] = {functions};
static const struct weft_hook_module *liburing;
static const struct weft_hook_module **const modules[] = {&liburing};

static bool accepts(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "2");
	return true;
}

const struct weft_hook_adapter weft_uring_adapter = {
    .name = "liburing",
    .library = "liburing.so",
    .prefix = "io_uring_",
    .mark = "io_uring_submit_and_wait",
    .sets = 1,
    .functions = sets,
    .modules = modules,
    .accepts = accepts,
};
