/* libc_pool.c: wraps the libc calls in which a thread of a runtime's pool waits long: lookups of names, and the opening of
 * files.
 *
 * The runtime's adapter says which request such a call belongs to.  The request is then recorded as running on the pool's thread
 * until the call returns, so that the trace shows what occupies the thread.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>

#include "adapters/hook/callers.h"
#include "adapters/hook/libc.h"
#include "adapters/hook/state.h"
#include "adapters/hook/thread.h"

#define CALLS(X)                                                                                                                 \
	X(open64, int, (const char *, int, ...), NULL)                                                                           \
	X(getaddrinfo, int, (const char *, const char *, const struct addrinfo *, struct addrinfo **), NULL)

/* The original functions. */
static struct {
	CALLS(LIBC_POINTER)
} real;

static struct {
	CALLS(LIBC_TEXT)
} texts = {CALLS(LIBC_TEXT_VALUE)};

__attribute__((constructor(101))) static void resolve_calls(void)
{
	if (real.getaddrinfo)
		return;
	int saved = errno;
	CALLS(LIBC_RESOLVE)
	errno = saved;
}

/* Returns the request to which a libc call of a runtime belongs; 0: none. */
static weft_id find_request(const void *caller, const char *path, const void *result)
{
	weft_id id = 0;
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a && !id; a++)
		if ((*a)->pool_call)
			id = (*a)->pool_call(caller, path, result);
	return id;
}

/* Makes the request the running promise of this pool thread; a pool thread delays no loop, so the wait is recorded as the
 * thread's sleep. */
static struct weft_hook_frame begin_request(weft_id id)
{
	weft_hook_thread();
	weft_hook_record_running(id);
	const struct weft_hook_frame frame = weft_hook_enter_callback(id);
	weft__hook_get_thread()->callbacks = 0;
	return frame;
}

static void end_request(struct weft_hook_frame frame)
{
	weft_hook_leave_callback(&frame);
	weft_hook_record_running(weft__hook_get_thread()->root);
}

static int look_up(
    const void *caller, const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
	BEGIN_SLEEP(getaddrinfo, TIME, -1, true, 0);
	int result = real.getaddrinfo(node, service, hints, found);
	END_SLEEP;
}

WRAP(getaddrinfo, int, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
    (node, service, hints, found), false)
{
	if (weft__hook_is_recorder(caller))
		return real.getaddrinfo(node, service, hints, found);
	const weft_id id = find_request(caller, NULL, found);
	if (!id)
		return look_up(caller, node, service, hints, found);
	const struct weft_hook_frame frame = begin_request(id);
	const int result = look_up(caller, node, service, hints, found), last = errno;
	end_request(frame);
	errno = last;
	return result;
}

static int open_recorded(const void *caller, const char *path, int flags, mode_t mode)
{
	BEGIN_SLEEP(open64, TIME, -1, true, 0);
	int result = real.open64(path, flags, mode);
	END_SLEEP;
}

/* Only files that a pool thread opens are recorded, because other threads open many files. */
EXPORTED int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;
	if (flags & (O_CREAT | __O_TMPFILE)) { /* the mode is passed in any case; glibc ignores a mode without these flags */
		va_list list;
		va_start(list, flags);
		mode = va_arg(list, mode_t);
		va_end(list);
	}
	ENSURE_RESOLVED(open64)
	const void *caller = __builtin_return_address(0);
	const weft_id id = is_recorded() ? find_request(caller, path, NULL) : 0;
	if (!id)
		return real.open64(path, flags, mode);
	const struct weft_hook_frame frame = begin_request(id);
	const int result = open_recorded(caller, path, flags, mode), last = errno;
	end_request(frame);
	errno = last;
	return result;
}
