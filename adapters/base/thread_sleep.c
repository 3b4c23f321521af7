/* thread_sleep.c: records when threads sleep.
 *
 * For a program without a known runtime this is the whole recording: when each thread worked and slept.  The recording of such a
 * program does not start in a constructor: each `ls` and `sh` of a script would leave an empty trace.  It does not start at just
 * any sleep either: `sh` sleeps in waitpid(), `sleep` in nanosleep(), and a password prompt in a poll() of one descriptor.  It
 * starts at calls that only event loops and multithreaded programs make: epoll_wait() with a timeout, poll() or select() of
 * several descriptors, pthread_create(), waits for a condition or a semaphore.
 *
 * A call that returns at once is no sleep, but that is unknown before the call, and a sleep must be recorded before it, because
 * the process may be killed meanwhile.  So each wait is recorded.  After four waits that end at once, the next wait first tries
 * not to wait; then the trace of a busy server shows no sleeps.  SPDX-License-Identifier: ISC */
#include "adapters/base/thread_sleep.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/frames.h"
#include "adapters/hook/state.h"
#include "adapters/hook/thread.h"
#include "adapters/loop/loop.h"

enum {
	MAX_RUNNING_EVENTS = 32, /* per interval without a sleep, if callbacks repeat */
	QUICK_WAITS = 4,         /* short waits in a row, after which the next one first tries not to wait */
	QUICK_TICKS = 6000       /* of the trace's clock, some us: less than a sleep with its wake-up takes */
};

void (*weft__hook_after_block)(const char *function, uint64_t since);

static bool is_loop_wait(struct weft_hook_sleep *sleep)
{
	for (const struct weft_hook_adapter *const *a = weft__hook_adapters; *a; a++)
		if ((*a)->sleeps && (*a)->sleeps(sleep))
			return true;
	return false;
}

static bool is_known_thread(void)
{
	return weft__hook_thread.root && weft__hook_thread.epoch == weft__hook_epoch;
}

/* Returns whether the call blocks a promise of an instrumented program, on a thread that no adapter knows.  Such a program
 * records its own sleeps, so waits that may be sleeps do not count. */
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
	/* An iteration without a sleep: the previous callback has ended.  Repeating callbacks are recorded a limited number of
	 * times; then the last recorded promise seems to run. */
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

/* Returns the return address of the program's line: libraries make many of these calls. */
static const void *find_line(const struct weft_hook_sleep *sleep)
{
	const struct weft_hook_thread *here = &weft__hook_thread;
	const void *caller = weft__hook_outermost(sleep->caller);
	return weft__hook_find_blocking_line(caller, here->callbacks > 0 ? here->callback_stack : NULL);
}

static void record_place(const struct weft_hook_sleep *sleep)
{
	weft_id input;
	const weft_id id = is_known_thread() ? weft__hook_thread.running : weft_running();
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
	/* The waits of loops are frequent, and each is in the loop's own function; waits for locks and conditions have a place of
	 * their own. */
	const bool is_own_wait = sleep->kind != WEFT_HOOK_SLEEP_FDS && sleep->kind != WEFT_HOOK_SLEEP_LOCK;
	if (sleep->state == WEFT_HOOK_BLOCKED || is_own_wait)
		record_place(sleep);
	if (sleep->state == WEFT_HOOK_ASLEEP) {
		weft_idle(WEFT_IDLE_WAIT);
		weft__hook_record_calls();
		weft__hook_thread.recorded_running = 0;
	} else {
		weft_pause_begin_text(sleep->text);
	}
	sleep->since = weft__stream->last;
}

void weft__hook_record_wake(const struct weft_hook_sleep *sleep)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	if (sleep->state == WEFT_HOOK_AWAKE)
		return;
	if (sleep->state == WEFT_HOOK_BLOCKED) {
		weft_pause_end();
		if (weft__hook_after_block && weft__stream->last - sleep->since >= weft__stream->long_ticks)
			weft__hook_after_block(sleep->function, sleep->since);
		return; /* a callback that waits for a child does not mean that its loop had nothing to do */
	}
	weft_resume(here->running);
	here->recorded_running = here->running;
	weft__loop_begin_turn();
	if (sleep->kind == WEFT_HOOK_SLEEP_MUTEX) /* does not show whether the next wait will be short */
		return;
	if (weft__stream->last - sleep->since < QUICK_TICKS) {
		here->quick_waits++;
		return;
	}
	here->quick_waits = 0;
	here->sleeps++;
	here->entered = here->repeated = here->running_events = 0;
}
