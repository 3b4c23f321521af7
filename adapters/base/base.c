/* base.c: when OS threads sleep, whatever runs on them.
 *
 * Of a program without a runtime that weft knows this is all there is: each OS thread, when it worked and when it slept.  When
 * does recording begin there?  Not in a constructor: every `ls` and `sh` that a script starts would leave a trace that says
 * nothing.  Not at any sleep: `sh` sleeps in waitpid(), `sleep` in nanosleep(), and a password is waited for in a poll() of one
 * descriptor.  It begins with what only loops and programs of several OS threads do: epoll_wait() with a timeout, a
 * poll() or select() of several descriptors, pthread_create(), a condition, a semaphore.
 *
 * A call that would not have slept is no sleep.  Nobody tells that beforehand, and what an OS thread does before it sleeps has to
 * be told before, since it may be killed in its sleep.  So a wait is told of, and if it ends at once, four times in a row, the
 * next one asks first without waiting: a server under load then neither sleeps nor is told to.  SPDX-License-Identifier: ISC */
#include "adapters/hook/load.h"
#include "adapters/hook/sleep.h"
#include "adapters/hook/thread.h"

enum {
	SHOWS = 32,        /* of a loop in which something spins */
	QUICK = 4,         /* waits that end at once, after which others are believed to */
	QUICK_TICKS = 6000 /* of the trace's clock, some us: to sleep and to be woken takes longer */
};

static bool is_wait_of_loop(struct weft_hook_sleep *sleep)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->sleeps && (*a)->sleeps(sleep))
			return true;
	return false;
}

bool weft__hook_nears_sleep(struct weft_hook_sleep *sleep)
{
	/* A program that says by itself when it sleeps may call a runtime, too; what that does is told. */
	if (weft__hook_is_instrumented() && (!weft__hook_thread.root || weft__hook_thread.epoch != weft__hook_epoch))
		return false;
	struct weft_hook_thread *here = weft_hook_thread();
	weft__hook_thread_name(here);
	bool is_sleep = is_wait_of_loop(sleep) || here->callbacks == 0;
	if (!sleep->may_sleep) {
		weft__round();
		return false;
	}
	sleep->state = is_sleep ? WEFT_HOOK_ASLEEP : WEFT_HOOK_BLOCKED;
	/* A loop that does not sleep turns: whose callback ran before runs no more.  What spins is told of less and less, and
	 * then has the last word. */
	if (is_sleep && here->quick >= QUICK && (here->repeated == 0 || here->shows++ < SHOWS))
		weft_hook_show(here->running);
	return here->quick >= QUICK;
}

void weft__hook_turns(const struct weft_hook_sleep *sleep)
{
	if (sleep->state == WEFT_HOOK_ASLEEP)
		weft__round();
}

void weft__hook_falls_asleep(struct weft_hook_sleep *sleep)
{
	if (sleep->state == WEFT_HOOK_AWAKE)
		return;
	if (sleep->state == WEFT_HOOK_ASLEEP) {
		weft_idle(WEFT_IDLE_WAIT);
		weft__hook_thread.shown = 0;
	} else {
		weft_pause_begin_text(sleep->text);
	}
	sleep->since = weft__stream->last;
}

void weft__hook_wakes(const struct weft_hook_sleep *sleep)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	if (sleep->state == WEFT_HOOK_AWAKE)
		return;
	if (sleep->state == WEFT_HOOK_BLOCKED) {
		weft_pause_end();
	} else {
		weft_resume(here->running);
		here->shown = here->running;
	}
	if (sleep->kind == WEFT_HOOK_SLEEP_MUTEX) /* says nothing of whether the next wait is one */
		return;
	if (weft__stream->last - sleep->since < QUICK_TICKS) {
		here->quick++;
		return;
	}
	here->quick = 0;
	here->sleeps++;
	here->entered = here->repeated = here->shows = 0;
}
