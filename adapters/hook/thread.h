/* thread.h: the running promise of each thread, shared by all adapters (private to adapters/).
 *
 * A process may contain several runtimes that call each other's callbacks.  So adapters report the start and end of each callback
 * here, and need not know each other.  A thread is a promise too; it runs when nothing else does.  SPDX-License-Identifier: ISC
 */
#ifndef WEFT_HOOK_THREAD_H
#define WEFT_HOOK_THREAD_H

#include <unistd.h>

#include "adapters/hook/hook.h"

/* State of a thread. */
enum { WEFT_HOOK_LISTS = 7, WEFT_HOOK_LONG_CALLS = 8 };

/* The owner of a thread's outermost wait for descriptors.  A runtime that an adapter knows has precedence. */
enum weft_hook_wait_owner { WEFT_HOOK_WAIT_OF_NOBODY, WEFT_HOOK_WAIT_OF_PROGRAM, WEFT_HOOK_WAIT_OF_RUNTIME };

/* A call of the program's code. */
struct weft_hook_call {
	weft_id promise;
	const void *function; /* NULL: none yet */
	uint64_t since;       /* time of the event before it */
};

struct weft_hook_thread {
	unsigned epoch;          /* recording that the other fields belong to */
	bool is_thread_attached; /* the thread's promise exists or is being made */
	uint8_t wait_owner;      /* enum weft_hook_wait_owner */
	bool is_listed;          /* weft__list_pending_beside() has been called */
	struct {
		weft_list_pending_fn *list;
		void *data;
	} lists[WEFT_HOOK_LISTS];
	unsigned list_count;
	bool is_named; /* the promise has its label */
	char name[16];
	char failure[32];            /* error that ended the thread's function; "": none */
	weft_id root;                /* promise of the thread */
	weft_id by;                  /* promise that started the thread */
	uint64_t since;              /* time of the start */
	weft_id running;             /* running promise */
	weft_id recorded_running;    /* running promise in the trace; 0: none */
	const void *called_function; /* function of the program that was called last; NULL: it has returned */
	struct weft_hook_call calls[WEFT_HOOK_LONG_CALLS]; /* since the last sleep: the first long ones, and the last one */
	unsigned call_count;                               /* long ones; the last one follows them */
	int callbacks;                                     /* callbacks of the program on the stack */
	const void *callback_stack;                        /* address in the frame that called the innermost of them */
	uint32_t sleeps;                                   /* sleeps so far; may wrap */
	unsigned quick_waits;                              /* latest waits in a row that ended at once */
	uint32_t entered, repeated; /* callbacks since the last sleep; those among them without an external cause */
	unsigned running_events;    /* running promises recorded since the last sleep for callbacks without a cause */
	int probed_fd;              /* descriptor that weft_hook_probe_fd() watches */
	bool is_fd_used;            /* this thread has read or written probed_fd since */
	uint32_t fd_uses; /* reads, writes and accepts so far that had a result, except for messages of errors; may wrap */
};

extern __thread struct weft_hook_thread weft__hook_thread __attribute__((tls_model("initial-exec")));
extern unsigned weft__hook_epoch; /* changes with each recording, and in each child of a fork */

void weft__hook_attach_thread(void);

/* Returns the calling thread.  Creates its promise, which then runs, if it has none in this recording.  Recording must be on. */
static inline struct weft_hook_thread *weft_hook_thread(void)
{
	if (__builtin_expect(weft__hook_thread.epoch != weft__hook_epoch || !weft__hook_thread.is_listed, 0))
		weft__hook_attach_thread();
	return &weft__hook_thread;
}

/* Does what weft_list_pending() does, for several adapters with promises on one thread.  The list is used until the thread or the
 * recording ends. */
void weft_hook_register_list(weft_list_pending_fn *list, void *data);

/* Returns the promise that acts on this thread, also in signal handlers.  Recording must be on. */
weft_id weft_hook_current_promise(void);

/* Records the running promise if the trace has another one. */
static inline void weft_hook_record_running(weft_id id)
{
	if (weft__hook_thread.recorded_running != id)
		weft_run(id);
	weft__hook_thread.recorded_running = id;
}

/* Records a signal from outside to the promise, which then runs. */
static inline void weft_hook_record_signal(weft_id id)
{
	weft_signal(WEFT_SYSTEM_ID, id);
	weft__hook_thread.recorded_running = id;
}

/* ---- Callbacks ----
 *
 *	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(id);
 *	(void)frame;
 *	weft_hook_set_called((const void *)user);
 *	user(...);
 *
 * An exception ends the frame too.  A longjmp does not: the adapter of the loop corrects `callbacks` and `running` in the loop's
 * next iteration. */
struct weft_hook_frame {
	weft_id running;
	const void *stack;
};

#define WEFT_HOOK_FRAME __attribute__((cleanup(weft_hook_leave_callback))) struct weft_hook_frame

/* Makes `id` the running promise; 0: the running promise stays, because the callback is unknown. */
static inline struct weft_hook_frame weft_hook_enter_callback(weft_id id)
{
	struct weft_hook_frame frame = {weft__hook_thread.running, weft__hook_thread.callback_stack};
	if (id)
		weft__hook_thread.running = id;
	weft__hook_thread.callbacks++;
	weft__hook_thread.callback_stack = __builtin_frame_address(0);
	weft__hook_thread.entered++;
	return frame;
}

/* Records nothing: the next callback or the sleep of the loop will.  A callback that ran a nested loop continues. */
static inline void weft_hook_leave_callback(struct weft_hook_frame *frame)
{
	weft__hook_thread.called_function = NULL;
	weft__hook_thread.running = frame->running;
	weft__hook_thread.callback_stack = frame->stack;
	if (weft__hook_thread.callbacks > 0)
		weft__hook_thread.callbacks--;
}

/* Notes the function of the program that is called next.  Its last call may be a jump that returns to the wrapper's caller. */
static inline void weft_hook_set_called(const void *function)
{
	struct weft_hook_thread *here = &weft__hook_thread;
	struct weft_hook_call *last = &here->calls[here->call_count];
	const uint64_t now = weft__stream->last;
	here->called_function = function;
	if (__builtin_expect(last->function && now - last->since >= weft__stream->long_ticks, 0) &&
	    here->call_count + 1 < WEFT_HOOK_LONG_CALLS)
		last = &here->calls[++here->call_count];
	*last = (struct weft_hook_call){here->running, function, now};
}

/* Records the calls that took long since the last sleep of the thread, which ends or has just been recorded. */
void weft__hook_record_calls(void);

/* ---- Repeated calls without a sleep ---- */

enum { WEFT_HOOK_RECORDED_CALLS = 64 };

/* Calls of an object's code since its thread last slept.  Zero it first. */
struct weft_hook_calls {
	uint32_t sleeps, count;
};

/* Counts a call that has an external cause. */
static inline void weft_hook_count_call(struct weft_hook_calls *calls)
{
	if (calls->sleeps != weft__hook_thread.sleeps)
		*calls = (struct weft_hook_calls){.sleeps = weft__hook_thread.sleeps};
	if (calls->count < UINT32_MAX)
		calls->count++;
}

/* Counts a call that has no external cause or does not use its input; weft_hook_enter_callback() follows.  Returns whether to
 * record the running promise.  That is so for the first 64 calls since the thread slept, and later for a limited number of
 * changes, so that a busy loop causes few events.
 *
 * `spins`: the call keeps the thread from sleeping.  After 1,024 calls and whenever the count has doubled, the count is recorded,
 * unless callbacks with a cause are frequent too: a loop under load does not sleep either. */
bool weft_hook_count_repeat(struct weft_hook_calls *calls, weft_id promise, bool spins);

/* Returns whether calls are so frequent that only some are recorded. */
static inline bool weft_hook_is_spinning(const struct weft_hook_calls *calls)
{
	return calls->count > WEFT_HOOK_RECORDED_CALLS && calls->sleeps == weft__hook_thread.sleeps;
}

/* Returns whether to check now if the callback leaves its descriptor as it was: once in 64 calls without a sleep. */
static inline bool weft_hook_should_probe_fd(const struct weft_hook_calls *calls)
{
	return calls->count >= WEFT_HOOK_RECORDED_CALLS && calls->count % WEFT_HOOK_RECORDED_CALLS == 0;
}

/* Call before a callback.  Returns the number of readable bytes; -1: unknown. */
int weft_hook_probe_fd(int fd);

/* Call after a callback.  Returns whether the descriptor is unchanged: as many readable bytes, poll() still reports `events`, and
 * this thread has not used the descriptor. */
bool weft_hook_is_fd_untouched(int fd, short events, int waiting);

/* Notes that this thread has read or written the descriptor.  Byte counts alone do not show it for datagrams of one size, or for
 * free buffer space. */
static inline void weft_hook_mark_fd_used(int fd)
{
	weft__hook_thread.is_fd_used |= fd == weft__hook_thread.probed_fd;
	weft__hook_thread.fd_uses += fd != STDERR_FILENO;
}

/* ---- Loops that may be older than the recording ---- */

/* Loops whose older handles this thread has recorded.  Older handles of further loops are not recorded. */
struct weft_hook_listed_loops {
	unsigned epoch, count;
	const void *loops[8];
};

/* Returns whether older handles of the running loop must still be recorded. */
bool weft_hook_is_loop_unlisted(const struct weft_hook_listed_loops *older, const void *loop);
void weft_hook_mark_loop_listed(struct weft_hook_listed_loops *older, const void *loop);

/* ---- For the hook library and the base adapter ---- */

void weft__hook_threads_init(void);
void weft__hook_threads_begin(void);  /* call after weft_start(), so that the recorder's exit handler runs later */
void weft__hook_threads_forget(void); /* a recording starts, or this is the child of a fork */

/* Attaches this thread to the promise that was made when the thread was started.  name: "" if unknown. */
void weft__hook_thread_begin(weft_id root, weft_id by, uint64_t since, const char *name);

/* Name of the thread that this thread is about to start; NULL: unknown. */
extern __thread const char *weft__hook_next_thread_name __attribute__((tls_model("initial-exec")));

/* Labels the thread's promise.  Call it as late as possible, because many programs name their threads. */
void weft__hook_thread_label(struct weft_hook_thread *here);

#endif
