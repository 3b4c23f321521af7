/* turn.c: records the iterations ("turns") of loops that belong to no runtime, and what runs in them.
 *
 * A turn is one iteration of a loop, from the return of the thread's own wait to its next wait.  A loop waits by epoll if the
 * thread has waited for an epoll descriptor, or else by poll or select of several descriptors.  Other calls that wait delay the
 * running request.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/thread_memory.h"
#include "adapters/loop/turn.h"
#include "wire/wire.h"

enum { MAX_QUEUED = 32, MAX_USED = 64 };

unsigned weft__loop_epoch;

static const char label_of_epoll[] = "epoll loop", label_of_poll[] = "poll loop";

/* State of the current thread's own loop. */
struct own_loop {
	unsigned epoch;
	bool is_epoll; /* its wait is epoll */
	/* Whether the previous iteration was long, so that what is ready now may have waited for its end. */
	bool is_late;
	bool may_sleep;      /* whether the latest wait had a timeout */
	weft_id loop;        /* promise of the loop, which begins with the loop's first request; 0: none */
	const void *caller;  /* of its first wait */
	uint32_t fd_uses;    /* number of the thread's uses of descriptors before the current iteration */
	uint64_t read_bytes; /* number of bytes that the thread had read when has_read() last looked */
	/* Count of iterations since the last sleep in which no call had a result; useful_turns counts the others. */
	struct weft_hook_calls idle_turns;
	uint32_t useful_turns;
	uint64_t turn_since, loop_since;
	int running_fd;
	uint32_t turn;
	unsigned queued, used;
	/* Descriptors with an unanswered question that were read since the loop last slept; the first question that was read is
	 * served first.
	 */
	struct {
		int fd;
		uint32_t turn; /* of the read */
	} queue[MAX_QUEUED];
	int used_fds[MAX_USED];
};

static struct own_loop own_loops WEFT_HOOK_PER_THREAD;

static inline struct own_loop *get_here(void)
{
	return &WEFT_HOOK_HERE(own_loops);
}

static bool has_loop(void)
{
	return weft__hook_get_thread()->wait_owner == WEFT_HOOK_WAIT_OF_PROGRAM && get_here()->epoch == weft__hook_epoch;
}

static uint64_t list_loop(void *data, uint64_t cursor, unsigned budget)
{
	const struct own_loop *of = data;
	if (cursor == 0 && of->loop)
		weft_pending_at(weft__hook_get_thread()->root, of->loop, WEFT_KIND_LOOP, weft_hook_site(of->caller),
		    of->loop_since, of->is_epoll ? label_of_epoll : label_of_poll);
	return weft__loop_list(data, cursor, budget);
}

static void begin_loop(const struct weft_hook_sleep *sleep)
{
	*get_here() = (struct own_loop){.epoch = weft__hook_epoch,
	    .is_epoll = sleep->epoll >= 0,
	    .running_fd = -1,
	    .caller = weft__hook_outermost(sleep->caller)};
	weft__hook_get_thread()->wait_owner = WEFT_HOOK_WAIT_OF_PROGRAM;
	__atomic_store_n(&weft__loop_epoch, weft__hook_epoch, __ATOMIC_RELAXED);
	weft_hook_register_list(list_loop, get_here());
	weft__loop_find_listeners();
}

int weft__loop_running_fd(void)
{
	return has_loop() ? get_here()->running_fd : -1;
}

void weft__loop_run(weft_id id, int fd)
{
	if (!has_loop())
		return;
	/* The end of a request is not recorded as a change of the running promise, because the next call shows what runs
	 * then. */
	weft__hook_get_thread()->running = id ? id : weft__hook_get_thread()->root;
	get_here()->running_fd = id ? fd : -1;
	if (id)
		weft_hook_record_running(id);
}

bool weft__loop_continue(weft_id id, int fd)
{
	if (!has_loop())
		return false;
	weft__hook_get_thread()->running = id;
	get_here()->running_fd = fd;
	return true;
}

bool weft__loop_is_late(void)
{
	return has_loop() && get_here()->is_late;
}

/* Creates the loop's promise at its first request, so that a program without a known request shows only threads. */
void weft__loop_begin_promise(void)
{
	if (!has_loop() || get_here()->loop)
		return;
	get_here()->loop = weft_create_at(weft__hook_get_thread()->root, WEFT_KIND_LOOP, weft_hook_site(get_here()->caller));
	get_here()->loop_since = weft__stream->last;
	weft_label(get_here()->loop, get_here()->is_epoll ? label_of_epoll : label_of_poll);
}

/* Returns whether the running request was read in this iteration: a program that answers in the iteration in which it reads
 * works for the request that it read last. */
static bool is_running_new(void)
{
	for (unsigned i = 0; i < get_here()->queued; i++)
		if (get_here()->queue[i].fd == get_here()->running_fd)
			return get_here()->queue[i].turn == get_here()->turn;
	return false;
}

/* Records that a thread without a loop of its own, such as a worker, worked for the request that it answers. */
static void claim_thread(weft_id request)
{
	const struct weft_hook_thread *thread = weft_hook_thread();
	if (thread->wait_owner != WEFT_HOOK_WAIT_OF_NOBODY || thread->running != thread->root ||
	    thread->recorded_running != thread->root)
		return;
	weft__detail(request, WEFT_DETAIL_CLAIM, WEFT_CLAIM_SURE, "");
	weft_run(thread->root);
}

void weft__loop_claim(weft_id request, int fd)
{
	if (!has_loop())
		claim_thread(request);
	if (!has_loop() || weft__hook_get_thread()->recorded_running == request)
		return;
	weft__detail(request, WEFT_DETAIL_CLAIM, is_running_new() ? WEFT_CLAIM_DOUBT : WEFT_CLAIM_SURE, "");
	weft__loop_run(request, fd);
}

void weft__loop_enqueue(int fd)
{
	for (unsigned i = 0; i < get_here()->queued; i++)
		if (get_here()->queue[i].fd == fd)
			return;
	const unsigned at = get_here()->queued;
	if (has_loop() && at < MAX_QUEUED) {
		get_here()->queue[at].fd = fd;
		get_here()->queue[at].turn = get_here()->turn;
		get_here()->queued = at + 1;
	}
}

/* If a signal handler changes the queue while this function runs, an entry is lost, but no entry is written beyond the array. */
static void remove_queued(unsigned i)
{
	const unsigned count = get_here()->queued;
	if (i >= count)
		return;
	memmove(get_here()->queue + i, get_here()->queue + i + 1, (count - 1 - i) * sizeof *get_here()->queue);
	get_here()->queued = count - 1;
}

/* Returns the promise of the oldest unanswered question, if the question was read in an earlier iteration; 0: none.  A loop that
 * answers in the iteration in which it reads has an order of its own. */
static weft_id find_next(int *fd)
{
	while (get_here()->queued > 0) {
		const struct weft__loop_fd *first = weft__loop_find(get_here()->queue[0].fd);
		*fd = get_here()->queue[0].fd;
		if (first && first->request.id && !first->request.asker && first->request.is_unanswered)
			return get_here()->queue[0].turn != get_here()->turn ? first->request.id : 0;
		remove_queued(0);
	}
	return 0;
}

/* Makes the oldest unanswered question the running request.  The loop may still work for a request that it has just answered, or
 * for another one of several. */
static void run_next(bool may_be_other)
{
	int fd = -1;
	const weft_id next = find_next(&fd);
	if (!next)
		return;
	weft__loop_run(next, fd);
	if (may_be_other)
		weft__detail(next, WEFT_DETAIL_CLAIM, WEFT_CLAIM_GUESS, "");
}

void weft__loop_dequeue(int fd)
{
	for (unsigned i = 0; has_loop() && i < get_here()->queued; i++)
		if (get_here()->queue[i].fd == fd) {
			remove_queued(i);
			run_next(true);
			return;
		}
}

bool weft__loop_use(int fd)
{
	const unsigned at = get_here()->used;
	if (!has_loop() || at >= MAX_USED)
		return false;
	get_here()->used_fds[at] = fd;
	get_here()->used = at + 1;
	return true;
}

/* Returns whether this thread has read something since the last call of this function, also by calls inside of libc that no
 * wrapper sees.  The kernel counts the bytes of its own answer only after it has written the answer, so they are added
 * get_here()-> */
static bool has_read(void)
{
	char text[256] = "";
	const int saved = errno, fd = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
	const ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (size <= 0 || strncmp(text, "rchar: ", 7) != 0)
		return false;
	const uint64_t before = get_here()->read_bytes, now = strtoull(text + 7, NULL, 10);
	get_here()->read_bytes = now + (uint64_t)size;
	return before && now > before;
}

/* Counts iterations that began with a ready descriptor and in which no call read, wrote or accepted anything; the descriptor
 * then stays ready, and the thread never sleeps.  A few useful iterations between the idle ones, such as those of a timer, do
 * not reset the count.  Iterations after a wait with a timeout of 0 are not counted, because the program wanted not to sleep. */
static void count_idle_turn(void)
{
	enum { MIN_NAMED = 1024, TIMES_USEFUL = 16 };
	if (get_here()->idle_turns.sleeps != weft__hook_get_thread()->sleeps) {
		get_here()->idle_turns = (struct weft_hook_calls){.sleeps = weft__hook_get_thread()->sleeps};
		get_here()->useful_turns = 0;
	}
	const unsigned count = get_here()->idle_turns.count + 1;
	bool is_idle = get_here()->may_sleep && get_here()->fd_uses == weft__hook_get_thread()->fd_uses;
	weft__hook_get_thread()->entered++;
	if (is_idle && count >= MIN_NAMED / 2 && (count & (count - 1)) == 0)
		is_idle = !has_read();
	get_here()->fd_uses = weft__hook_get_thread()->fd_uses;
	if (!is_idle) {
		if (++get_here()->useful_turns > get_here()->idle_turns.count / TIMES_USEFUL)
			get_here()->useful_turns = get_here()->idle_turns.count = 0;
		return;
	}
	if (count >= MIN_NAMED)
		weft__loop_begin_promise();
	weft_hook_count_repeat(
	    &get_here()->idle_turns, get_here()->loop ? get_here()->loop : weft__hook_get_thread()->root, true);
}

/* Ends the iteration, and with it the requests that it answered.  If the loop only polls with a timeout of 0, its queue of
 * unanswered questions is kept. */
static void end_turn(bool may_sleep)
{
	count_idle_turn();
	/* The loop may have worked for any of the requests that it has read and not answered. */
	if (get_here()->queued > 1 && is_running_new())
		weft__detail(weft__hook_get_thread()->running, WEFT_DETAIL_CLAIM, WEFT_CLAIM_DOUBT, "");
	get_here()->may_sleep = may_sleep;
	get_here()->is_late = get_here()->turn_since && weft__stream->last - get_here()->turn_since >= weft__stream->long_ticks;
	for (unsigned i = 0; i < get_here()->used; i++)
		weft__loop_end_answered(get_here()->used_fds[i]);
	get_here()->used = 0;
	get_here()->turn++;
	if (may_sleep)
		get_here()->queued = 0;
	if (get_here()->queued > 0) {
		run_next(get_here()->queued > 1);
	} else if (may_sleep) {
		weft__hook_get_thread()->running = weft__hook_get_thread()->root;
		get_here()->running_fd = -1;
	}
	get_here()->turn_since = may_sleep ? 0 : weft__stream->last;
}

void weft__loop_end_program(void)
{
	for (unsigned i = 0; has_loop() && i < get_here()->used; i++)
		weft__loop_end_answered(get_here()->used_fds[i]);
}

void weft__loop_begin_turn(void)
{
	if (has_loop())
		get_here()->turn_since = weft__stream->last;
}

static bool is_request_running(void)
{
	return get_here()->running_fd >= 0 && weft__hook_get_thread()->running != weft__hook_get_thread()->root;
}

bool weft__loop_is_held_up(const void *caller)
{
	return has_loop() && (get_here()->loop || is_request_running()) && !weft__hook_is_recorder(caller);
}

bool weft__loop_before_wait(const struct weft_hook_sleep *sleep)
{
	const bool is_epoll = sleep->epoll >= 0, is_loop = sleep->kind == WEFT_HOOK_SLEEP_FDS && sleep->epoll != WEFT_HOOK_ONE_FD;
	if (weft__hook_get_thread()->wait_owner == WEFT_HOOK_WAIT_OF_RUNTIME || weft__hook_is_recorder(sleep->caller))
		return true;
	if (is_loop && !has_loop()) {
		if (!sleep->may_sleep || weft__hook_is_instrumented || weft__hook_is_runtime(sleep->caller))
			return true;
		begin_loop(sleep);
	}
	if (!has_loop())
		return true;
	get_here()->is_epoll |= is_epoll;
	/* A loop without a running request may wait for a thread or a signal, and its program may end during that wait. */
	if (!is_loop || is_epoll != get_here()->is_epoll)
		return !(is_request_running() || (sleep->kind == WEFT_HOOK_SLEEP_TIME && get_here()->loop));
	end_turn(sleep->may_sleep);
	return true;
}
