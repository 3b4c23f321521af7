/* thread.c: the promise of each OS thread, and what it has to tell when a ring forgets.  SPDX-License-Identifier: ISC */
#include "adapters/hook/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct weft_hook_thread weft__hook_thread __attribute__((tls_model("initial-exec")));
unsigned weft__hook_epoch = 1;

/* A cursor has the list in its upper bits. */
enum { LIST_SHIFT = 60 };

static pthread_key_t at_end;

static void ends(void *data)
{
	struct weft_hook_thread *here = data;
	if (here->epoch == weft__hook_epoch && here->root && weft_is_on()) {
		weft_list_pending(NULL, NULL);
		weft_resolve(WEFT_SYSTEM_ID, here->root);
		weft_idle(WEFT_IDLE_WAIT);
	}
	memset(here, 0, sizeof *here);
}

/* Before the recorder's own key is made: what the recorder does at the end of an OS thread then comes after ends(). */
__attribute__((constructor(101))) static void make_key(void)
{
	pthread_key_create(&at_end, ends);
}

void weft__hook_meet(void)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	int saved = errno;
	if (here->epoch != weft__hook_epoch) {
		memset(here, 0, sizeof *here);
		here->epoch = weft__hook_epoch;
	}
	if (!here->is_met) { /* a signal handler may have interrupted just this */
		here->is_met = true;
		strcpy(here->name, "main");
		if (getpid() != (pid_t)syscall(SYS_gettid))
			prctl(PR_GET_NAME, here->name);
		weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, NULL);
		here->since = weft__stream->last;
		weft_label(id, here->name);
		here->root = id;
		weft_run(id);
		pthread_setspecific(at_end, here);
	}
	errno = saved;
}

static uint64_t list_all(void *data, uint64_t cursor, unsigned budget)
{
	struct weft_hook_thread *here = data;
	uint64_t inner = cursor & ((1ull << LIST_SHIFT) - 1);
	unsigned i = (unsigned)(cursor >> LIST_SHIFT);
	if (cursor == 0 && here->root)
		weft_pending(WEFT_SYSTEM_ID, here->root, WEFT_KIND_THREAD, NULL, here->since, here->name);
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
	if (here->list_count == 1)
		weft_list_pending(list_all, here);
}

void weft__hook_threads_forget(void)
{
	__atomic_add_fetch(&weft__hook_epoch, 1, __ATOMIC_RELEASE);
}
