/* thread.h: the OS thread that calls, and whose code runs on it: what all adapters share (private to adapters/).
 *
 * Several runtimes may be in one process, and call each other's callbacks.  So who runs is known in one place: adapters tell it
 * when a callback of the program begins and ends, and need not know of each other.  The OS thread itself is a promise, which runs
 * when nothing else does.  SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_THREAD_H
#define WEFT_HOOK_THREAD_H

#include "adapters/hook/hook.h"

/* An OS thread's own. */
enum { WEFT_HOOK_LISTS = 6 };

struct weft_hook_thread {
	unsigned epoch; /* the recording of which all this is true */
	bool is_met;    /* its promise is made, or being made */
	bool is_listed; /* weft_list_pending() was told */
	struct {
		weft_list_pending_fn *list;
		void *data;
	} lists[WEFT_HOOK_LISTS];
	unsigned list_count;
	bool is_named; /* its promise has its label */
	char name[16];
	weft_id root;               /* its promise */
	weft_id by;                 /* who started it */
	uint64_t since;             /* when that was */
	weft_id running;            /* whose code runs */
	weft_id shown;              /* who runs by the trace; 0: nobody */
	const void *called;         /* the program's function that was called last; NULL: it has returned */
	int callbacks;              /* how many callbacks of the program are on the stack */
	uint32_t sleeps;            /* how often it slept; wraps */
	unsigned quick;             /* waits in a row that ended at once */
	uint32_t entered, repeated; /* callbacks since it last slept; of these, those that nothing had come to */
	unsigned shows;             /* how often the trace was told in that time which of those ran */
	int looked_at;              /* the descriptor of which is asked whether a callback leaves it as it was */
	bool is_used;               /* something was read from it meanwhile, or written to it */
};

extern __thread struct weft_hook_thread weft__hook_thread __attribute__((tls_model("initial-exec")));
extern unsigned weft__hook_epoch; /* another one for each recording of this process, and in each child */

void weft__hook_meet(void);

/* The calling OS thread, whose promise is made if it has none in this recording; it then runs.  Recording is on. */
static inline struct weft_hook_thread *weft_hook_thread(void)
{
	if (__builtin_expect(weft__hook_thread.epoch != weft__hook_epoch || !weft__hook_thread.is_listed, 0))
		weft__hook_meet();
	return &weft__hook_thread;
}

/* weft_list_pending() for adapters, several of which may have promises of one OS thread.  It ends with the OS thread, or when
 * another recording begins. */
void weft_hook_list(weft_list_pending_fn *list, void *data);

/* Who sends a message, in signal handlers too.  Recording is on. */
weft_id weft_hook_sender(void);

/* Who runs, told if the trace says otherwise. */
static inline void weft_hook_show(weft_id id)
{
	if (weft__hook_thread.shown != id)
		weft_run(id);
	weft__hook_thread.shown = id;
}

/* The same of one that something came to from outside. */
static inline void weft_hook_signal(weft_id id)
{
	weft_signal(WEFT_SYSTEM_ID, id);
	weft__hook_thread.shown = id;
}

/* ---- Callbacks ----
 *
 *	WEFT_HOOK_FRAME frame = weft_hook_enter(id);
 *	(void)frame;
 *	weft_hook_calls((const void *)user);
 *	user(...);
 *
 * An exception ends the frame, too.  After a longjmp it does not end: whoever runs a loop puts `callbacks` and `running` right at
 * that loop's next turn. */
struct weft_hook_frame {
	weft_id running;
};

#define WEFT_HOOK_FRAME __attribute__((cleanup(weft_hook_leave))) struct weft_hook_frame

/* id's code runs; 0: nothing is known of it, who ran goes on. */
static inline struct weft_hook_frame weft_hook_enter(weft_id id)
{
	struct weft_hook_frame frame = {weft__hook_thread.running};
	if (id)
		weft__hook_thread.running = id;
	weft__hook_thread.callbacks++;
	weft__hook_thread.entered++;
	return frame;
}

/* Between the callbacks of a loop nothing is said: the next callback will, or the sleep.  A callback that called a loop goes on.
 */
static inline void weft_hook_leave(struct weft_hook_frame *frame)
{
	weft__hook_thread.called = NULL;
	weft__hook_thread.running = frame->running;
	if (weft__hook_thread.callbacks > 0)
		weft__hook_thread.callbacks--;
}

/* A function of the program is about to be called: what it calls last it may jump to, and that returns to us. */
static inline void weft_hook_calls(const void *function)
{
	weft__hook_thread.called = function;
}

/* ---- What is called again and again without a sleep ---- */

enum { WEFT_HOOK_TOLD = 64 };

/* How often one's code was called since its OS thread last slept; zeroed at first. */
struct weft_hook_calls {
	uint32_t sleeps, count;
};

/* One's code is called once more, and something came to it: it is only counted. */
static inline void weft_hook_count(struct weft_hook_calls *calls)
{
	if (calls->sleeps != weft__hook_thread.sleeps)
		*calls = (struct weft_hook_calls){.sleeps = weft__hook_thread.sleeps};
	if (calls->count < UINT32_MAX)
		calls->count++;
}

/* promise's code is called once more, though nothing came to it from outside, or nothing that it takes; weft_hook_enter() comes
 * next.  Whether the trace is to be told who runs: the first 64 times since the OS thread slept, and later where another one ran
 * meanwhile, but not for ever.  So what spins costs few events.
 *
 * `spins`: that it is called keeps the OS thread from sleeping.  After 1,024 times the trace is told how often it was, and again
 * whenever that has doubled; but not where callbacks that something came to are many, too: a loop under load sleeps as little. */
bool weft_hook_called(struct weft_hook_calls *calls, weft_id promise, bool spins);

/* Whether that was so often that the trace is told of it less and less. */
static inline bool weft_hook_is_often(const struct weft_hook_calls *calls)
{
	return calls->count > WEFT_HOOK_TOLD && calls->sleeps == weft__hook_thread.sleeps;
}

/* Whether it is time to see if a callback leaves its descriptor as it was: now and then, after many calls without a sleep. */
static inline bool weft_hook_looks(const struct weft_hook_calls *calls)
{
	return calls->count >= WEFT_HOOK_TOLD && calls->count % WEFT_HOOK_TOLD == 0;
}

/* How many bytes wait there to be read, before a callback; -1: nobody knows. */
int weft_hook_waiting(int fd);

/* After it, whether what was there is there still: as many bytes, and poll()'s `events`; and this OS thread has not used it. */
bool weft_hook_is_untouched(int fd, short events, int waiting);

/* This OS thread took something from there, or put something there.  Datagrams of one size, and room to write, look the same
 * before and after that. */
static inline void weft_hook_uses(int fd)
{
	weft__hook_thread.is_used |= fd == weft__hook_thread.looked_at;
}

/* ---- Loops that may be older than the recording ---- */

/* Of which loops this OS thread has told what they had before; of more than these it does not. */
struct weft_hook_older {
	unsigned epoch, count;
	const void *told[8];
};

/* Whether what that loop had before is still to be told: it is run now. */
bool weft_hook_may_be_older(const struct weft_hook_older *older, const void *loop);
void weft_hook_older_told(struct weft_hook_older *older, const void *loop);

/* ---- For the hook library and the base adapter ---- */

void weft__hook_threads_init(void);
void weft__hook_threads_begin(void);  /* after weft_start(), whose own end is to come later than that of OS threads */
void weft__hook_threads_forget(void); /* every OS thread is met anew: a recording begins, or this is the child of a fork */

/* This OS thread was started by a call that made that promise for it, at that time.  name: what it is called, if that is known by
 * now; "" otherwise. */
void weft__hook_thread_begins(weft_id root, weft_id by, uint64_t since, const char *name);

/* What the OS thread will be called that this one is about to start; NULL: that is not known. */
extern __thread const char *weft__hook_next_name __attribute__((tls_model("initial-exec")));

/* Its promise is labelled, as late as possible: many a program gives names to its OS threads. */
void weft__hook_thread_name(struct weft_hook_thread *here);

#endif
