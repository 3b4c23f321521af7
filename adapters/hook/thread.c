/* thread.c: the promise of each thread, and what a checkpoint records again.  SPDX-License-Identifier: ISC */
#include "adapters/hook/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/children.h"
#include "adapters/hook/state.h"
#include "adapters/loop/loop.h"

struct weft_hook_thread weft__hook_threads WEFT_HOOK_PER_THREAD;
__thread const char *weft__hook_next_thread_name __attribute__((tls_model("initial-exec")));
unsigned weft__hook_epoch = 1;

void weft__hook_thread_label(struct weft_hook_thread *here)
{
	if (here->is_named)
		return;
	here->is_named = true;
	strcpy(here->name, "main");
	if (getpid() != (pid_t)syscall(SYS_gettid))
		prctl(PR_GET_NAME, here->name);
	weft_label(here->root, here->name);
}

/* The function may run in a signal handler that has interrupted this very function. */
static void begin_root_promise(struct weft_hook_thread *here)
{
	if (here->is_thread_attached)
		return;
	here->is_thread_attached = true;
	here->by = WEFT_SYSTEM_ID;
	weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, NULL);
	here->since = weft__stream->last;
	here->root = here->running = here->recorded_running = id;
	weft__hook_thread_label(here);
	weft_run(id);
}

/* The upper bits of a cursor are the number of the list. */
enum { LIST_SHIFT = 60 };

static uint64_t list_thread(void *data, uint64_t cursor, unsigned budget)
{
	const struct weft_hook_thread *here = data;
	uint64_t inner = cursor & (((uint64_t)1 << LIST_SHIFT) - 1);
	unsigned i = (unsigned)(cursor >> LIST_SHIFT);
	if (cursor == 0 && here->root)
		weft_pending(here->by, here->root, WEFT_KIND_THREAD, NULL, here->since, here->name);
	if (i >= here->list_count)
		return 0;
	inner = here->lists[i].list(here->lists[i].data, inner, budget);
	if (!inner)
		i++;
	return i < here->list_count ? (uint64_t)i << LIST_SHIFT | inner : 0;
}

void weft_hook_register_list(weft_list_pending_fn *list, void *data)
{
	struct weft_hook_thread *here = weft_hook_thread();
	if (here->list_count == WEFT_HOOK_LISTS)
		return;
	here->lists[here->list_count].list = list;
	here->lists[here->list_count++].data = data;
	/* Called again, because the objects of the list may be older than the recording. */
	weft__list_pending_beside(list_thread, here);
}

static void reset_if_stale(struct weft_hook_thread *here)
{
	if (here->epoch == weft__hook_epoch)
		return;
	memset(here, 0, sizeof *here);
	here->epoch = weft__hook_epoch;
}

static void register_thread(struct weft_hook_thread *here)
{
	here->is_listed = true;
	weft__hook_watch_thread_end();
	weft__list_pending_beside(list_thread, here);
}

void weft__hook_attach_thread(void)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	int saved_errno = errno;
	reset_if_stale(here);
	begin_root_promise(here);
	register_thread(here);
	errno = saved_errno;
}

void weft__hook_thread_begin(weft_id root, weft_id by, uint64_t since, const char *name)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	int saved_errno = errno;
	reset_if_stale(here);
	if (!here->is_thread_attached) {
		here->is_thread_attached = true;
		here->by = by;
		here->since = since;
		here->root = here->running = here->recorded_running = root;
		here->is_named = *name != 0;
		strncat(here->name, name, sizeof here->name - 1);
		if (here->is_named)
			weft_label(root, here->name);
		weft_run(root);
	}
	register_thread(here);
	errno = saved_errno;
}

weft_id weft_hook_current_promise(void)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	if (here->epoch == 0) { /* this thread's first call */
		int saved_errno = errno;
		here->epoch = weft__hook_epoch;
		begin_root_promise(here);
		errno = saved_errno;
	}
	return here->epoch == weft__hook_epoch && here->running ? here->running : WEFT_SYSTEM_ID;
}

static void end_thread(void)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	if (!here->is_listed)
		return;
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->thread_ends)
			(*a)->thread_ends();
	here->is_listed = false;
	weft__list_pending_beside(NULL, NULL); /* the list is in memory that another thread gets */
	if (here->epoch != weft__hook_epoch || !here->root || !weft_is_on())
		return;
	weft__hook_thread_label(here);
	if (here->failure[0])
		weft_fail(WEFT_SYSTEM_ID, here->root, here->failure);
	else
		weft_resolve(WEFT_SYSTEM_ID, here->root);
	weft_idle(WEFT_IDLE_WAIT);
	here->root = here->recorded_running = 0;
	here->is_thread_attached = false;
}

/* Records that the program calls exit(): this thread has worked until now. */
static void record_program_end(void)
{
	if (weft_is_on())
		weft__hook_children_check();
	if (weft_is_on() && weft__hook_get_thread()->epoch == weft__hook_epoch && weft__hook_get_thread()->running)
		weft__loop_end_program();
	if (weft_is_on() && weft__hook_get_thread()->epoch == weft__hook_epoch && weft__hook_get_thread()->running)
		weft_run(weft__hook_get_thread()->running);
	if (weft_is_on() && weft__hook_get_thread()->epoch == weft__hook_epoch)
		weft__hook_record_calls();
}

void weft__hook_threads_begin(void)
{
	static bool done;
	if (!done)
		atexit(record_program_end);
	done = true;
}

/* Must run before the recorder makes its own thread key, so that end_thread() runs before the recorder's destructor. */
void weft__hook_threads_init(void)
{
	weft__hook_thread_memory_init(end_thread);
}

void weft__hook_threads_forget(void)
{
	__atomic_add_fetch(&weft__hook_epoch, 1, __ATOMIC_RELEASE);
}

void weft__hook_record_calls(void)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	const uint64_t end = weft__stream->last;
	for (unsigned i = 0; i <= here->call_count; i++) {
		const struct weft_hook_call *call = &here->calls[i];
		const uint64_t until = i < here->call_count ? call[1].since : end;
		if (call->function && until - call->since >= weft__stream->long_ticks)
			weft_callback(call->promise, weft_hook_site((const char *)call->function + 1), call->since);
	}
	here->call_count = 0;
	here->calls[0].function = NULL;
}

/* ---- Loops that may be older than the recording ---- */

enum { MAX_LISTED_LOOPS = sizeof((struct weft_hook_listed_loops *)0)->loops / sizeof(void *) };

bool weft_hook_is_loop_unlisted(const struct weft_hook_listed_loops *older, const void *loop)
{
	unsigned i = 0;
	if (!weft__hook_is_standby || older->epoch != weft__hook_epoch)
		return weft__hook_is_standby;
	while (i < older->count && older->loops[i] != loop)
		i++;
	return i == older->count && i < MAX_LISTED_LOOPS;
}

void weft_hook_mark_loop_listed(struct weft_hook_listed_loops *older, const void *loop)
{
	if (older->epoch != weft__hook_epoch)
		*older = (struct weft_hook_listed_loops){.epoch = weft__hook_epoch};
	if (older->count < MAX_LISTED_LOOPS)
		older->loops[older->count++] = loop;
}

/* ---- Busy loops ---- */

bool weft_hook_count_repeat(struct weft_hook_calls *calls, weft_id promise, bool spins)
{
	enum { RECORDED_CALLS = WEFT_HOOK_RECORDED_CALLS, MIN_SPINS = 1024 };
	struct weft_hook_thread *here = weft__hook_get_thread();
	weft_hook_count_call(calls);
	uint32_t others = here->entered - here->repeated++;
	if (calls->count <= RECORDED_CALLS)
		return true;
	if (spins && calls->count >= MIN_SPINS && (calls->count & (calls->count - 1)) == 0 &&
	    calls->count / RECORDED_CALLS >= others)
		weft_spins(promise, calls->count);
	return here->recorded_running != promise && here->running_events++ < RECORDED_CALLS;
}

static int get_readable_bytes(int fd)
{
	int bytes = -1, saved_errno = errno;
	if (fd < 0 || ioctl(fd, FIONREAD, &bytes))
		bytes = -1;
	errno = saved_errno;
	return bytes;
}

int weft_hook_probe_fd(int fd)
{
	weft__hook_get_thread()->probed_fd = fd;
	weft__hook_get_thread()->is_fd_used = false;
	return get_readable_bytes(fd);
}

bool weft_hook_is_fd_untouched(int fd, short events, int waiting)
{
	struct pollfd ready = {.fd = fd, .events = events};
	int saved_errno = errno;
	bool untouched = weft__hook_get_thread()->probed_fd == fd && !weft__hook_get_thread()->is_fd_used &&
			 get_readable_bytes(fd) == waiting && poll(&ready, 1, 0) == 1;
	errno = saved_errno;
	return untouched;
}
