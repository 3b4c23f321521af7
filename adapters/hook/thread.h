/* thread.h: the running promise of each thread, which all adapters share (private to adapters/).
 *
 * A process may contain several runtimes that call each other's callbacks.  So each adapter reports the start and end of its
 * callbacks here, and adapters need not know each other.  A thread is a promise too; this promise runs when no other promise
 * runs.  SPDX-License-Identifier: ISC
 */
#ifndef WEFT_HOOK_THREAD_H
#define WEFT_HOOK_THREAD_H

#include <unistd.h>

#include "adapters/hook/hook.h"
#include "adapters/hook/thread_memory.h"

/* State of a thread. */
enum { WEFT_HOOK_LISTS = 7, WEFT_HOOK_LONG_CALLS = 8, WEFT_HOOK_THREAD_NAME = 48 /* size in bytes */ };

/* Owner of a thread's outermost wait for descriptors: no loop, a loop of the program, or a known runtime.  If a runtime that an
 * adapter knows waits, the runtime is the owner. */
enum weft_hook_wait_owner { WEFT_HOOK_WAIT_OF_NOBODY, WEFT_HOOK_WAIT_OF_PROGRAM, WEFT_HOOK_WAIT_OF_RUNTIME };

/* A call of a function of the program. */
struct weft_hook_call {
	weft_id promise;
	const void *function; /* NULL: none yet */
	uint64_t since;       /* time of the last event before the call */
};

struct weft_hook_thread {
	unsigned epoch;          /* recording to which the other fields belong */
	bool is_thread_attached; /* whether the thread's promise exists or is being made */
	uint8_t wait_owner;      /* enum weft_hook_wait_owner */
	bool is_listed;          /* weft__list_pending_beside() has been called */
	struct {
		weft_list_pending_fn *list;
		void *data;
	} lists[WEFT_HOOK_LISTS];
	unsigned list_count;
	bool is_named; /* whether the thread's promise has its label */
	char name[WEFT_HOOK_THREAD_NAME];
	char failure[32];            /* error that ended the thread's function; "": none */
	weft_id root;                /* promise of the thread */
	weft_id by;                  /* promise that started the thread */
	uint64_t since;              /* time of the start */
	weft_id running;             /* running promise */
	weft_id recorded_running;    /* running promise according to the trace; 0: none */
	const void *called_function; /* function of the program that was called last; NULL if the function has returned */
	/* Calls since the thread's last sleep: the first few that took long, and then the last call. */
	struct weft_hook_call calls[WEFT_HOOK_LONG_CALLS];
	/* Number of calls that took long; the last call follows them in the array. */
	unsigned call_count;
	int callbacks;              /* number of the program's callbacks on the stack */
	const void *callback_stack; /* address in the frame that called the innermost callback */
	uint32_t sleeps;            /* number of the thread's sleeps so far; may wrap around */
	unsigned quick_waits;       /* number of the latest waits in a row that ended at once */
	uint32_t entered, repeated; /* number of callbacks since the last sleep, and number of those without an external cause */
	unsigned running_events;    /* number of running events since the last sleep for callbacks without an external cause */
	int probed_fd;              /* descriptor that weft_hook_probe_fd() watches */
	bool is_fd_used;            /* whether this thread has read or written probed_fd since the probe */
	/* Number of reads, writes and accepts so far that had a result, without messages of errors; may wrap around. */
	uint32_t fd_uses;
};

extern struct weft_hook_thread weft__hook_threads;

/* Returns the state of the current thread. */
static inline struct weft_hook_thread *weft__hook_get_thread(void)
{
	return &WEFT_HOOK_HERE(weft__hook_threads);
}
extern unsigned weft__hook_epoch; /* number that changes with each recording, and in each child of a fork */

void weft__hook_attach_thread(void);

/* Returns the calling thread.  If the thread has no promise in this recording, its promise is created and then runs.  Recording
 * must be on. */
static inline struct weft_hook_thread *weft_hook_thread(void)
{
	if (__builtin_expect(weft__hook_get_thread()->epoch != weft__hook_epoch || !weft__hook_get_thread()->is_listed, 0))
		weft__hook_attach_thread();
	return weft__hook_get_thread();
}

/* Registers a list of pending promises as weft_list_pending() does, but for several adapters on one thread.  A list is used
 * until the thread or the recording ends. */
void weft_hook_register_list(weft_list_pending_fn *list, void *data);

/* Returns the promise in whose name this thread acts, also in signal handlers.  Recording must be on. */
weft_id weft_hook_current_promise(void);

/* Records the running promise, unless the trace has it as the running promise already. */
static inline void weft_hook_record_running(weft_id id)
{
	if (weft__hook_get_thread()->recorded_running != id)
		weft_run(id);
	weft__hook_get_thread()->recorded_running = id;
}

/* Records a signal from the system to the promise, which then runs. */
static inline void weft_hook_record_signal(weft_id id)
{
	weft_signal(WEFT_SYSTEM_ID, id);
	weft__hook_get_thread()->recorded_running = id;
}

/* ---- Callbacks ----
 *
 *	WEFT_HOOK_FRAME frame = weft_hook_enter_callback(id);
 *	(void)frame;
 *	weft_hook_set_called((const void *)user);
 *	user(...);
 *
 * An exception ends the frame too.  A longjmp() skips the cleanup; the loop's adapter then corrects `callbacks` and `running` in
 * the loop's next iteration. */
struct weft_hook_frame {
	weft_id running;
	const void *stack;
};

#define WEFT_HOOK_FRAME __attribute__((cleanup(weft_hook_leave_callback))) struct weft_hook_frame

/* Makes `id` the running promise; 0 keeps the running promise, because the callback is unknown.  The function is always inlined,
 * because it notes the frame of its caller. */
__attribute__((always_inline)) static inline struct weft_hook_frame weft_hook_enter_callback(weft_id id)
{
	struct weft_hook_frame frame = {weft__hook_get_thread()->running, weft__hook_get_thread()->callback_stack};
	if (id)
		weft__hook_get_thread()->running = id;
	weft__hook_get_thread()->callbacks++;
	weft__hook_get_thread()->callback_stack = __builtin_frame_address(0);
	weft__hook_get_thread()->entered++;
	return frame;
}

/* Ends a callback without an event, because the next callback or the loop's sleep records what runs then.  If the callback ran a
 * nested loop, the outer callback continues. */
static inline void weft_hook_leave_callback(struct weft_hook_frame *frame)
{
	weft__hook_get_thread()->called_function = NULL;
	weft__hook_get_thread()->running = frame->running;
	weft__hook_get_thread()->callback_stack = frame->stack;
	if (weft__hook_get_thread()->callbacks > 0)
		weft__hook_get_thread()->callbacks--;
}

/* Notes the function of the program that the runtime calls next.  The function's last call may be a jump (tail call) that
 * returns directly to the wrapper's caller. */
static inline void weft_hook_set_called(const void *function)
{
	struct weft_hook_thread *here = weft__hook_get_thread();
	struct weft_hook_call *last = &here->calls[here->call_count];
	const uint64_t now = weft__stream->last;
	here->called_function = function;
	if (__builtin_expect(last->function && now - last->since >= weft__stream->long_ticks, 0) &&
	    here->call_count + 1 < WEFT_HOOK_LONG_CALLS)
		last = &here->calls[++here->call_count];
	*last = (struct weft_hook_call){here->running, function, now};
}

/* Records the program's calls that took long since the last sleep of the thread; runs when the thread is about to sleep, or has
 * just been recorded as asleep. */
void weft__hook_record_calls(void);

/* ---- Repeated calls without a sleep ---- */

enum { WEFT_HOOK_RECORDED_CALLS = 64 };

/* Count of the calls of an object's code since the thread last slept.  Zero it first. */
struct weft_hook_calls {
	uint32_t sleeps, count;
};

/* Counts a call that has an external cause. */
static inline void weft_hook_count_call(struct weft_hook_calls *calls)
{
	if (calls->sleeps != weft__hook_get_thread()->sleeps)
		*calls = (struct weft_hook_calls){.sleeps = weft__hook_get_thread()->sleeps};
	if (calls->count < UINT32_MAX)
		calls->count++;
}

/* Counts a call that has no external cause or does not read its input; call it before weft_hook_enter_callback().  The function
 * returns whether to record the running promise.  The function returns true for the first 64 calls since the thread slept, and
 * later for a limited number of changes, so that a busy loop causes few events.
 *
 * `spins` says whether the call keeps the thread from sleeping.  The count of calls is recorded after 1,024 calls and whenever
 * it has doubled, unless callbacks with an external cause are frequent too, because a loop under load does not sleep either. */
bool weft_hook_count_repeat(struct weft_hook_calls *calls, weft_id promise, bool spins);

/* Returns whether the object's calls are so frequent that only some of them are recorded. */
static inline bool weft_hook_is_spinning(const struct weft_hook_calls *calls)
{
	return calls->count > WEFT_HOOK_RECORDED_CALLS && calls->sleeps == weft__hook_get_thread()->sleeps;
}

/* Returns whether to check now if the callback leaves its descriptor unread; true once in 64 calls without a sleep. */
static inline bool weft_hook_should_probe_fd(const struct weft_hook_calls *calls)
{
	return calls->count >= WEFT_HOOK_RECORDED_CALLS && calls->count % WEFT_HOOK_RECORDED_CALLS == 0;
}

/* Call before a callback.  Returns the number of bytes that can be read from the descriptor; -1: unknown. */
int weft_hook_probe_fd(int fd);

/* Call after a callback.  Returns whether the descriptor is unchanged: it has as many readable bytes as before, poll() still
 * reports `events`, and this thread has not used it. */
bool weft_hook_is_fd_untouched(int fd, short events, int waiting);

/* Notes that this thread has read or written the descriptor.  The note is needed because byte counts do not show the use if
 * datagrams have the same size, or if the buffer still has space. */
static inline void weft_hook_mark_fd_used(int fd)
{
	weft__hook_get_thread()->is_fd_used |= fd == weft__hook_get_thread()->probed_fd;
	weft__hook_get_thread()->fd_uses += fd != STDERR_FILENO;
}

/* ---- Loops that may be older than the recording ---- */

/* Loops for which this thread has recorded the handles that are older than the recording.  If there are more loops than entries,
 * older handles of further loops are not recorded. */
struct weft_hook_listed_loops {
	unsigned epoch, count;
	const void *loops[8];
};

/* Returns whether the running loop's handles that are older than the recording must still be recorded. */
bool weft_hook_is_loop_unlisted(const struct weft_hook_listed_loops *older, const void *loop);
void weft_hook_mark_loop_listed(struct weft_hook_listed_loops *older, const void *loop);

/* ---- For the hook library and the base adapter ---- */

void weft__hook_threads_init(void);
/* Starts the recording of threads; call it after weft_start(), so that the recorder's exit handler runs later. */
void weft__hook_threads_begin(void);
void weft__hook_threads_forget(void); /* forgets all threads, because another recording starts or this is the child of a fork */

/* Attaches this thread to the promise that was made when the thread was started.  `name` is "" if the name is unknown. */
void weft__hook_thread_begin(weft_id root, weft_id by, uint64_t since, const char *name);

/* Name for the thread that the calling thread is about to start; NULL: unknown. */
extern __thread const char *weft__hook_next_thread_name __attribute__((tls_model("initial-exec")));

/* Labels the thread's promise.  Call this function as late as possible, because many programs name their threads after the
 * start. */
void weft__hook_thread_label(struct weft_hook_thread *here);

#endif
