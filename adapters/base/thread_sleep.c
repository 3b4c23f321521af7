/* thread_sleep.c: records when threads sleep.
 *
 * In a program without a runtime that weft knows, these sleeps are all that is recorded: when each thread worked and slept.  The
 * recording of such a program does not start in a constructor, because each `ls` and `sh` of a script would then leave an empty
 * trace.  The recording does not start at every kind of sleep either, because simple programs also sleep: `sh` in waitpid(),
 * `sleep` in nanosleep(), a password prompt in poll().  The recording starts at calls that only event loops and multithreaded
 * programs make: epoll_wait() with a timeout, poll() or select() of several descriptors, pthread_create(), waits for a condition
 * or a semaphore.
 *
 * A sleep must be recorded before the call, because the process may be killed meanwhile, although a call that returns at once is
 * no sleep.  So each waiting call is recorded as a sleep.  After four waits that end at once, the next wait is first tried with
 * a timeout of 0, so the trace of a busy server shows no sleeps.  SPDX-License-Identifier: ISC */
#include "adapters/base/thread_sleep.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/frames.h"
#include "adapters/hook/state.h"
#include "adapters/hook/thread.h"
#include "adapters/loop/loop.h"

enum {
	/* Maximum of running events that are recorded in an interval without a sleep, if callbacks repeat. */
	MAX_RUNNING_EVENTS = 32,
	/* Number of short waits in a row, after which the next wait is first tried with a timeout of 0. */
	QUICK_WAITS = 4,
	QUICK_TICKS = 6000 /* some us in ticks of the trace's clock; a real sleep with its wake-up takes longer */
};

static bool is_loop_wait(struct weft_hook_sleep *sleep)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->sleeps && (*a)->sleeps(sleep))
			return true;
	return false;
}

static bool is_known_thread(void)
{
	return weft__hook_get_thread()->root && weft__hook_get_thread()->epoch == weft__hook_epoch;
}

/* Returns whether the call blocks a promise of an instrumented program on a thread that no adapter knows.  An instrumented
 * program records its own sleeps, so the adapter does not record its waits as sleeps. */
static bool blocks_instrumented(enum weft_hook_sleep_kind kind)
{
	const bool is_sleep = kind != WEFT_HOOK_SLEEP_TIME && kind != WEFT_HOOK_SLEEP_PROCESS && kind != WEFT_HOOK_SLEEP_MUTEX;
	return !is_sleep && weft_running() != WEFT_SYSTEM_ID;
}

bool weft__hook_before_wait(struct weft_hook_sleep *sleep)
{
	if (weft__hook_is_instrumented && !is_known_thread()) {
		if (sleep->may_sleep && blocks_instrumented(sleep->kind))
			sleep->state = WEFT_HOOK_BLOCKED;
		return false;
	}
	struct weft_hook_thread *here = weft_hook_thread();
	weft__hook_thread_label(here);
	const bool is_of_runtime = is_loop_wait(sleep);
	bool is_sleep = is_of_runtime || here->callbacks == 0;
	if (is_of_runtime)
		here->wait_owner = WEFT_HOOK_WAIT_OF_RUNTIME;
	else if (is_sleep)
		is_sleep = weft__loop_before_wait(sleep);
	if (!sleep->may_sleep) {
		weft__round();
		return false;
	}
	sleep->state = is_sleep ? WEFT_HOOK_ASLEEP : WEFT_HOOK_BLOCKED;
	/* If the iteration did not sleep, the previous callback has ended.  Repeating callbacks are recorded a limited number of
	 * times; after that, the last recorded promise seems to run. */
	if (is_sleep && here->quick_waits >= QUICK_WAITS && (here->repeated == 0 || here->running_events++ < MAX_RUNNING_EVENTS))
		weft_hook_record_running(here->running);
	return here->quick_waits >= QUICK_WAITS;
}

void weft__hook_record_turn(const struct weft_hook_sleep *sleep)
{
	if (sleep->state == WEFT_HOOK_ASLEEP) {
		weft__round();
		weft__hook_record_calls();
		weft__loop_begin_turn();
	}
}

/* Returns the address of the program's line that led to the call, because often a library makes the call itself. */
static const void *find_line(const struct weft_hook_sleep *sleep)
{
	const struct weft_hook_thread *here = weft__hook_get_thread();
	const void *caller = weft__hook_outermost(sleep->caller);
	return weft__hook_find_blocking_line(caller, here->callbacks > 0 ? here->callback_stack : NULL);
}

static void record_place(const struct weft_hook_sleep *sleep)
{
	weft_id input;
	const weft_id id = is_known_thread() ? weft__hook_get_thread()->running : weft_running();
	const struct weft_hook_language_call *call = weft_hook_find_call(&input);
	if (call)
		weft_call_site(id, call->site, sleep->function);
	else
		weft_call_place(id, weft_hook_site(find_line(sleep)), sleep->function);
}

void weft__hook_record_sleep(struct weft_hook_sleep *sleep)
{
	if (sleep->state == WEFT_HOOK_AWAKE)
		return;
	/* The site of a loop's wait is not recorded, because the wait is frequent and is in the loop's own function.  Waits for
	 * locks and conditions record their site elsewhere. */
	const bool is_own_wait = sleep->kind != WEFT_HOOK_SLEEP_FDS && sleep->kind != WEFT_HOOK_SLEEP_LOCK;
	if (sleep->state == WEFT_HOOK_BLOCKED || is_own_wait)
		record_place(sleep);
	if (sleep->state == WEFT_HOOK_ASLEEP) {
		weft_idle(WEFT_IDLE_WAIT);
		weft__hook_record_calls();
		weft__hook_get_thread()->recorded_running = 0;
	} else {
		weft_pause_begin_text(sleep->text);
	}
	sleep->since = weft__stream->last;
}

void weft__hook_record_wake(const struct weft_hook_sleep *sleep)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	if (sleep->state == WEFT_HOOK_AWAKE)
		return;
	if (sleep->state == WEFT_HOOK_BLOCKED) {
		weft_pause_end();
		return; /* no idle time: a callback that waits for a child blocks its loop */
	}
	weft_resume(here->running);
	here->recorded_running = here->running;
	weft__loop_begin_turn();
	/* The duration of a wait for a mutex does not show whether the next wait will be short. */
	if (sleep->kind == WEFT_HOOK_SLEEP_MUTEX)
		return;
	if (weft__stream->last - sleep->since < QUICK_TICKS) {
		here->quick_waits++;
		return;
	}
	here->quick_waits = 0;
	here->sleeps++;
	here->entered = here->repeated = here->running_events = 0;
}
