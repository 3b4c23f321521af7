/* thread.c: the promise of each OS thread, and what is said of it again for rings.  SPDX-License-Identifier: ISC */
#include "adapters/hook/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapters/hook/load.h"

__thread struct weft_hook_thread weft__hook_thread __attribute__((tls_model("initial-exec")));
__thread const char *weft__hook_next_name __attribute__((tls_model("initial-exec")));
unsigned weft__hook_epoch = 1;

static pthread_key_t at_end;
static bool has_key;

void weft__hook_thread_name(struct weft_hook_thread *here)
{
	if (here->is_named)
		return;
	here->is_named = true;
	strcpy(here->name, "main");
	if (getpid() != (pid_t)syscall(SYS_gettid))
		prctl(PR_GET_NAME, here->name);
	weft_label(here->root, here->name);
}

/* In signal handlers too, which may have interrupted just this. */
static void make_root(struct weft_hook_thread *here)
{
	if (here->is_met)
		return;
	here->is_met = true;
	here->by = WEFT_SYSTEM_ID;
	weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, NULL);
	here->since = weft__stream->last;
	here->root = here->running = here->shown = id;
	weft__hook_thread_name(here);
	weft_run(id);
}

/* A cursor has the list in its upper bits. */
enum { LIST_SHIFT = 60 };

static uint64_t list_all(void *data, uint64_t cursor, unsigned budget)
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

void weft_hook_list(weft_list_pending_fn *list, void *data)
{
	struct weft_hook_thread *here = weft_hook_thread();
	if (here->list_count == WEFT_HOOK_LISTS)
		return;
	here->lists[here->list_count].list = list;
	here->lists[here->list_count++].data = data;
	weft__list_pending_beside(list_all, here); /* anew: what the list tells of may be older than the recording */
}

static void refresh(struct weft_hook_thread *here)
{
	if (here->epoch == weft__hook_epoch)
		return;
	memset(here, 0, sizeof *here);
	here->epoch = weft__hook_epoch;
}

static void meet(struct weft_hook_thread *here)
{
	here->is_listed = true;
	if (has_key)
		pthread_setspecific(at_end, here);
	weft__list_pending_beside(list_all, here);
}

void weft__hook_meet(void)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	int kept = errno;
	refresh(here);
	make_root(here);
	meet(here);
	errno = kept;
}

void weft__hook_thread_begins(weft_id root, weft_id by, uint64_t since, const char *name)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	int kept = errno;
	refresh(here);
	if (!here->is_met) {
		here->is_met = true;
		here->by = by;
		here->since = since;
		here->root = here->running = here->shown = root;
		here->is_named = *name != 0;
		strncat(here->name, name, sizeof here->name - 1);
		if (here->is_named)
			weft_label(root, here->name);
		weft_run(root);
	}
	meet(here);
	errno = kept;
}

weft_id weft_hook_sender(void)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	if (here->epoch == 0) { /* this OS thread has made no other call so far */
		int kept = errno;
		here->epoch = weft__hook_epoch;
		make_root(here);
		errno = kept;
	}
	return here->epoch == weft__hook_epoch && here->running ? here->running : WEFT_SYSTEM_ID;
}

static void thread_ends(void *data)
{
	struct weft_hook_thread *here = data;
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->thread_ends)
			(*a)->thread_ends();
	if (here->epoch != weft__hook_epoch || !here->root || !weft_is_on())
		return;
	weft__hook_thread_name(here);
	weft__list_pending_beside(NULL, NULL);
	weft_resolve(WEFT_SYSTEM_ID, here->root);
	weft_idle(WEFT_IDLE_WAIT);
	here->root = here->shown = 0;
	here->is_met = here->is_listed = false;
}

/* The program calls exit(): until now this OS thread worked. */
static void program_ends(void)
{
	if (weft_is_on() && weft__hook_thread.epoch == weft__hook_epoch && weft__hook_thread.running)
		weft_run(weft__hook_thread.running);
}

void weft__hook_threads_begin(void)
{
	static bool done;
	if (!done)
		atexit(program_ends);
	done = true;
}

/* Before the recorder's own: what it does at the end of an OS thread then comes after what is done here. */
void weft__hook_threads_init(void)
{
	has_key = pthread_key_create(&at_end, thread_ends) == 0;
}

void weft__hook_threads_forget(void)
{
	__atomic_add_fetch(&weft__hook_epoch, 1, __ATOMIC_RELEASE);
}

/* ---- Loops that may be older than the recording ---- */

enum { OLDER = sizeof((struct weft_hook_older *)0)->told / sizeof(void *) };

bool weft_hook_may_be_older(const struct weft_hook_older *older, const void *loop)
{
	unsigned i = 0;
	if (!weft__hook_stands_by || older->epoch != weft__hook_epoch)
		return weft__hook_stands_by;
	while (i < older->count && older->told[i] != loop)
		i++;
	return i == older->count && i < OLDER;
}

void weft_hook_older_told(struct weft_hook_older *older, const void *loop)
{
	if (older->epoch != weft__hook_epoch)
		*older = (struct weft_hook_older){.epoch = weft__hook_epoch};
	if (older->count < OLDER)
		older->told[older->count++] = loop;
}

/* ---- What spins ---- */

bool weft_hook_called(struct weft_hook_calls *calls, weft_id promise, bool spins)
{
	enum { TOLD = WEFT_HOOK_TOLD, LEAST = 1024 };
	struct weft_hook_thread *here = &weft__hook_thread;
	weft_hook_count(calls);
	uint32_t others = here->entered - here->repeated++;
	if (calls->count <= TOLD)
		return true;
	if (spins && calls->count >= LEAST && (calls->count & (calls->count - 1)) == 0 && calls->count / TOLD >= others)
		weft_spins(promise, calls->count);
	return here->shown != promise && here->shows++ < TOLD;
}

static int waiting_at(int fd)
{
	int bytes = -1, kept = errno;
	if (fd < 0 || ioctl(fd, FIONREAD, &bytes))
		bytes = -1;
	errno = kept;
	return bytes;
}

int weft_hook_waiting(int fd)
{
	weft__hook_thread.looked_at = fd;
	weft__hook_thread.is_used = false;
	return waiting_at(fd);
}

bool weft_hook_is_untouched(int fd, short events, int waiting)
{
	struct pollfd ready = {.fd = fd, .events = events};
	int kept = errno;
	bool untouched = weft__hook_thread.looked_at == fd && !weft__hook_thread.is_used && waiting_at(fd) == waiting &&
			 poll(&ready, 1, 0) == 1;
	errno = kept;
	return untouched;
}
