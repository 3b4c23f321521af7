/* uring.c: wraps liburing's waits, which enter the kernel without libc.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdio.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/session.h"
#include "adapters/hook/thread.h"

/* Lists the wrapped calls: X(name, (parameters), (arguments), number of completions to wait for). */
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

static struct weft_record_text blocked_text = WEFT_COUNTER("blocked in io_uring");
/* Depth of nested calls, because one wrapped function may call another. */
static __thread int nested_calls __attribute__((tls_model("initial-exec")));

static bool begin_wait(struct weft_hook_sleep *sleep, unsigned count)
{
	if (count == 0 || nested_calls > 0 || !weft_hook_begin())
		return false;
	int saved_errno = errno;
	bool is_recorded = weft_hook_begin_sleep(sleep);
	errno = saved_errno;
	return is_recorded;
}

static int end_wait(const struct weft_hook_sleep *sleep, bool is_recorded, int result)
{
	int saved_errno = errno;
	if (is_recorded)
		weft_hook_end_sleep(sleep);
	errno = saved_errno;
	return result;
}

#define WRAPPER(NAME, PARAMETERS, ARGUMENTS, COUNT)                                                                              \
	static int wrapped_##NAME PARAMETERS                                                                                     \
	{                                                                                                                        \
		struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_FDS,                                                         \
		    .function = #NAME,                                                                                           \
		    .text = &blocked_text,                                                                                       \
		    .epoll = -1,                                                                                                 \
		    .may_sleep = true,                                                                                           \
		    .caller = __builtin_return_address(0)};                                                                      \
		bool is_recorded = begin_wait(&s, COUNT);                                                                        \
		nested_calls++;                                                                                                  \
		int result = real.NAME ARGUMENTS;                                                                                \
		nested_calls--;                                                                                                  \
		return end_wait(&s, is_recorded, result);                                                                        \
	}
CALLS(WRAPPER)

#define TAKEN(NAME, PARAMETERS, ARGUMENTS, COUNT) WEFT_HOOK_TAKEN(NAME, wrapped_##NAME, real.NAME),
static const struct weft_hook_function functions[] = {CALLS(TAKEN){0}};
static const struct weft_hook_module *liburing;

static bool is_supported_version(const struct weft_hook_module *module, char *version, size_t size)
{
	snprintf(version, size, "2");
	return true;
}

const struct weft_hook_adapter weft_uring_adapter = {
    .name = "liburing",
    .library = "liburing.so",
    .prefix = "io_uring_",
    .mark = "io_uring_submit_and_wait",
    WEFT_HOOK_SETS((functions), (&liburing)),
    .accepts = is_supported_version,
};
