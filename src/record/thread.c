/* thread.c: assigns streams of the trace to OS threads.
 *
 * An OS thread gets a stream at its first event.  When a thread ends, the next thread that needs a stream reuses its packets,
 * preferably a thread with the same name; the definitions record when each writer starts.  Only the stream's own OS thread
 * unmaps the stream's memory, because only that thread knows that it is not in the middle of an event.
 * SPDX-License-Identifier: ISC
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/host.h"
#include "record/standby.h"

__thread struct weft_stream *weft__stream = &weft__no_stream;

/* Number of times that a stop checks whether an OS thread has left its stream.  tests/proof/tsan_test.py tries a stop that hardly
 * waits. */
#ifndef WEFT__PATIENCE
#define WEFT__PATIENCE 1000
#endif

static __thread struct weft__thread *my_thread;
static __thread uint64_t refused_generation; /* number of the recording in which this OS thread got no stream */
static __thread struct weft__pending_lists my_pending_lists;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft__thread *all_threads, *free_threads;
static unsigned next_instance;
static pthread_key_t exit_key;
static pid_t recording_pid;
/* Points to 1, and to 0 in a child process that has a copy of this memory.  NULL if the kernel does not support
 * MADV_WIPEONFORK. */
static uint32_t *fork_stamp;
static __thread bool holds_lock;

/* Blocks all signals except SIGBUS, by thread-directed system calls only; returns the state to restore. */
uint64_t weft__signals_block(void)
{
	sigset_t all_signals, before;
	sigfillset(&all_signals);
	sigdelset(&all_signals, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all_signals, &before);
	uint64_t mask = 0;
	memcpy(&mask, &before, sizeof mask < sizeof before ? sizeof mask : sizeof before);
	return mask;
}

void weft__signals_restore(uint64_t mask)
{
	sigset_t before;
	sigemptyset(&before);
	memcpy(&before, &mask, sizeof mask < sizeof before ? sizeof mask : sizeof before);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static __thread uint64_t lock_signal_mask;
static __thread int lock_cancel_state;

void weft__threads_lock(void)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	uint64_t mask = weft__signals_block();
	pthread_mutex_lock(&lock);
	holds_lock = true;
	lock_signal_mask = mask;
	lock_cancel_state = cancel;
}

void weft__threads_unlock(void)
{
	uint64_t mask = lock_signal_mask;
	int cancel = lock_cancel_state;
	holds_lock = false;
	pthread_mutex_unlock(&lock);
	weft__signals_restore(mask);
	pthread_setcancelstate(cancel, NULL);
}

bool weft__threads_locked_here(void)
{
	return holds_lock;
}

const struct weft__thread *weft__threads(void)
{
	return all_threads;
}

void weft__threads_describe(struct weft_standby *page)
{
	page->threads = (uintptr_t)&all_threads;
	page->next_at = offsetof(struct weft__thread, next);
	page->stream_at = offsetof(struct weft__thread, stream);
	page->limit_at = offsetof(struct weft__stream, hot.limit);
}

struct weft__stream *weft__stream_at(const unsigned char *address)
{
	for (const struct weft__thread *t = __atomic_load_n(&all_threads, __ATOMIC_ACQUIRE); t; t = t->next) {
		const unsigned char *base = t->stream->storage.base;
		if (base && t->mapped_bytes && address >= base && (size_t)(address - base) < t->mapped_bytes)
			return t->stream;
	}
	struct weft__stream *const shared[] = {&weft__recording.definitions, &weft__recording.memory};
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		const struct weft__storage *storage = &shared[i]->storage;
		if (weft__target == WEFT__TARGET_DIRECTORY && storage->base && address >= storage->base &&
		    (size_t)(address - storage->base) < storage->packet_bytes)
			return shared[i];
	}
	return NULL;
}

static struct weft__thread *make_thread(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
#ifdef MADV_WIPEONFORK
	/* In any child process the stream is all zeros, so nothing can be recorded into the parent's trace. */
	madvise(pages, page, MADV_WIPEONFORK);
#endif
	struct weft__thread *t = (struct weft__thread *)(void *)(pages + page);
	t->stream = (struct weft__stream *)(void *)pages;
	t->stream->host = t;
	t->next = all_threads;
	__atomic_store_n(&all_threads, t, __ATOMIC_RELEASE);
	return t;
}

/* A stream has four mappings, and an OS thread of the program has two.  The kernel allows a process 65,530 mappings
 * (vm.max_map_count).  MAX_STREAMS leaves half of these mappings to the program. */
enum { MAX_STREAMS = 8192 };

/* Takes an unused stream, preferably a stream of this recording whose OS thread had that name. */
static struct weft__thread *pop_free_thread(const char *name)
{
	struct weft__thread **best = NULL;
	int best_rank = -1;
	for (struct weft__thread **at = &free_threads; *at && best_rank < 2; at = &(*at)->next_free) {
		bool current = (*at)->generation == weft__recording.generation;
		int rank = !current ? 0 : strncmp((*at)->thread_name, name, WEFT_THREAD_NAME_SIZE) ? 1 : 2;
		if (rank > best_rank) {
			best_rank = rank;
			best = at;
		}
	}
	struct weft__thread *t = best ? *best : next_instance < MAX_STREAMS ? make_thread() : NULL;
	if (best)
		*best = t->next_free;
	if (t)
		t->is_free = false;
	return t;
}

static void push_free_thread(struct weft__thread *t)
{
	t->is_free = true;
	t->next_free = free_threads;
	free_threads = t;
}

/* Removes everything that belongs to an earlier recording from the stream. */
static void reset_thread(struct weft__thread *t)
{
	weft__storage_unmap(t);
	weft__stream_reset(t->stream);
	t->is_spare = false;
}

/* Makes the packets of the stream, if the stream has none in this recording. */
static bool make_storage(struct weft__thread *t, bool whole)
{
	if (t->generation == weft__recording.generation)
		return true;
	reset_thread(t);
	unsigned instance = next_instance;
	if (weft__target == WEFT__TARGET_BUFFER) {
		t->stream->instance = instance;
		if (!weft__buffer_storage(&t->stream->storage, instance))
			return false;
	} else if (weft__trace_dir_make_storage(t, instance, whole) < 0) {
		return false;
	}
	next_instance++;
	t->stream->hot.instance = instance;
	t->stream->hot.generation = weft__recording.generation << 16;
	return true;
}

/* Returns whether other OS threads have recorded before, each of which will return to its own stream. */
static bool has_other_threads(void)
{
	for (const struct weft__thread *t = all_threads; t; t = t->next)
		if (t != my_thread && !t->is_free)
			return true;
	return false;
}

static void make_spares(unsigned most)
{
	struct weft__thread *spares[WEFT__MAX_SPARE_STREAMS] = {NULL};
	unsigned count = 0;
	while (count < most && (spares[count] = pop_free_thread("")) != NULL)
		reset_thread(spares[count++]);
	unsigned made = weft__trace_dir_make_spares(spares, count, next_instance);
	/* The last stream is pushed first, so that streams are numbered in the order of OS threads. */
	while (count--) {
		struct weft__thread *t = spares[count];
		t->is_spare = count < made;
		t->generation = t->is_spare ? weft__recording.generation : 0;
		t->stream->hot.instance = t->stream->instance;
		t->stream->hot.generation = weft__recording.generation << 16;
		push_free_thread(t);
	}
	next_instance += made;
}

void weft__threads_make_spares(void)
{
	/* No spares are made then, because streams are numbered in order of use, and an unused spare before them would look like
	 * a lost stream. */
	make_spares(has_other_threads() ? 0 : WEFT__SPARE_STREAMS);
}

/* Makes spare streams when no stream is free.  Otherwise a program with many OS threads would wait for a thread with a
 * descriptor table for each of them.  In the end, at most one stream in eight is unused. */
static void make_more_spares(void)
{
	enum { USED_PER_SPARE = 8 };
	unsigned most = next_instance / USED_PER_SPARE;
	if (free_threads || most < 2 || weft__target != WEFT__TARGET_DIRECTORY)
		return;
	/* OS threads of an earlier recording get later numbers when they return to their streams. */
	for (const struct weft__thread *t = all_threads; t; t = t->next)
		if (t->generation != weft__recording.generation)
			return;
	make_spares(most < WEFT__MAX_SPARE_STREAMS ? most : WEFT__MAX_SPARE_STREAMS);
}

bool weft__attach_locked(bool whole)
{
	char name[WEFT_THREAD_NAME_SIZE] = "";
	prctl(PR_GET_NAME, name);
	if (!my_thread && !whole)
		make_more_spares();
	struct weft__thread *t = my_thread ? my_thread : pop_free_thread(name);
	if (!t)
		return false;
	struct weft__stream *s = t->stream;
	bool fresh = t->is_spare || t->generation != weft__recording.generation;
	bool renamed = memcmp(t->thread_name, name, sizeof name) != 0;
	if (!make_storage(t, whole)) {
		weft__stream = &weft__no_stream;
		my_thread = NULL;
		push_free_thread(t);
		return false;
	}
	my_thread = t;
	t->is_spare = false;
	pthread_setspecific(exit_key, t);
	t->generation = weft__recording.generation;
	s->tid = (uint64_t)syscall(SYS_gettid);
	memcpy(s->thread_name, name, sizeof name);
	memcpy(t->thread_name, name, sizeof name);
	s->hot.running = WEFT_SYSTEM_ID;
	s->pending.inside = false;
	weft__pending_begin(&s->pending, &my_pending_lists);
	__atomic_store_n(&s->retired, 0, __ATOMIC_SEQ_CST);
	weft__usage_begin(s);
	weft__stream = &s->hot;
	if (fresh) {
		weft__stream_begin(s);
	} else {
		/* If the name is the same, the next packet's header suffices, so that definitions do not grow with each OS
		 * thread. */
		if (renamed)
			weft__define_thread(s);
		weft__stream_open(s);
	}
	return true;
}

struct weft__stream *weft__attach(void)
{
	if (__atomic_load_n(&weft__mode, __ATOMIC_RELAXED) == WEFT__OFF ||
	    refused_generation == __atomic_load_n(&weft__recording.generation, __ATOMIC_RELAXED))
		return NULL;
	if (weft__threads_locked_here())
		return NULL;
	if (weft__is_unannounced_child()) {
		weft__reset_after_fork();
		return NULL;
	}
	struct weft__stream *s = NULL;
	weft__threads_lock();
	if (weft__target == WEFT__TARGET_NONE) /* another process requested a recording, and has vanished before the start */
		__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_RELAXED);
	if (__atomic_load_n(&weft__mode, __ATOMIC_RELAXED) != WEFT__OFF) {
		bool is_broken = my_thread && my_thread->stream->is_broken && my_thread->generation == weft__recording.generation;
		if (!is_broken && weft__attach_locked(false)) {
			s = my_thread->stream;
			/* This increment of in_slow must precede any check by a stop. */
			__atomic_store_n(&s->in_slow, s->in_slow + 1, __ATOMIC_SEQ_CST);
		} else {
			weft__stream = &weft__no_stream;
			refused_generation = weft__recording.generation;
		}
	}
	bool is_file = s && weft__target == WEFT__TARGET_DIRECTORY;
	weft__threads_unlock();
	if (is_file)
		weft__sigbus_unblock();
	return s;
}

/* Releases the stream when its OS thread ends.  Signal handlers of the ending thread may still record events; they attach
 * again. */
static void on_thread_exit(void *arg)
{
	weft__threads_lock();
	struct weft__thread *t = my_thread;
	if (t) {
		my_thread = NULL;
		weft__stream = &weft__no_stream;
		t->stream->pending = (struct weft__pending){0};
		__atomic_store_n(&t->stream->hot.limit, 0, __ATOMIC_RELAXED);
		if (t->stream->retired || __atomic_load_n(&t->stream->is_broken, __ATOMIC_RELAXED)) {
			weft__storage_unmap(t);
			t->generation = 0;
		}
		push_free_thread(t);
	}
	weft__threads_unlock();
}

static bool is_busy(const struct weft__stream *s)
{
	return __atomic_load_n(&s->in_slow, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED) != __atomic_load_n(&s->hot.published, __ATOMIC_ACQUIRE);
}

/* Makes every running OS thread pass a full memory barrier before the function returns. */
static void membarrier_all_threads(void)
{
#ifdef SYS_membarrier
	syscall(SYS_membarrier, 8 /* PRIVATE_EXPEDITED */, 0, 0);
#endif
}

static bool wait_until_idle(const struct weft__stream *s, int *tries_left)
{
	while (is_busy(s)) {
		if (--*tries_left < 0)
			return false;
		if (*tries_left % 64)
			sched_yield();
		else
			usleep(100);
	}
	return true;
}

/* Retires one stream whose limit is 0 (step RETIRE).  The stream's thread may have read the limit earlier, and may still be
 * about to RESERVE, for an unlimited time.  That RESERVE must fail, so this function changes the value that the stream's thread
 * expects.  The thread's swap is not locked and may overwrite this change, which the function sees after the barrier.
 * tests/proof/stop.pml is the model.  Returns false if the thread did not leave the stream in time. */
static bool close_stream(struct weft__stream *s)
{
	/* No write may come late into a caller's buffer, while a late write into a directory's files is harmless. */
	int tries_left = weft__target == WEFT__TARGET_BUFFER ? 100000 : WEFT__PATIENCE;
	while (wait_until_idle(s, &tries_left)) {
		uint64_t rest = __atomic_load_n(&s->hot.published, __ATOMIC_ACQUIRE), spoilt = rest | WEFT__CLOSED;
		if (!__atomic_compare_exchange_n(&s->hot.next, &rest, spoilt, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		membarrier_all_threads();
		if (__atomic_load_n(&s->hot.next, __ATOMIC_ACQUIRE) == spoilt)
			return true;
	}
	return false;
}

/* Makes every OS thread leave its stream (step RETIRE).  A thread that does not leave in time keeps its memory, and may finish
 * its event there. */
void weft__threads_retire(void)
{
	for (struct weft__thread *t = all_threads; t; t = t->next)
		if (t->generation == weft__recording.generation) {
			__atomic_store_n(&t->stream->retired, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&t->stream->hot.limit, 0, __ATOMIC_SEQ_CST);
		}
	membarrier_all_threads();
	for (struct weft__thread *t = all_threads; t; t = t->next) {
		if (t->generation != weft__recording.generation)
			continue;
		/* This thread's own stream is closed too, because a signal handler that ends the recording may have interrupted
		 * an event's RESERVE. */
		t->is_closed = t->is_free || (t == my_thread && is_busy(t->stream)) || close_stream(t->stream);
		if (t == my_thread)
			weft__stream = &weft__no_stream;
	}
	next_instance = 0;
}

void weft__threads_unmap(void)
{
	for (struct weft__thread *t = all_threads; t; t = t->next)
		if (t->generation == weft__recording.generation && (t == my_thread || t->is_free))
			weft__storage_unmap(t);
}

static void set_pending_list(unsigned list_index, weft_list_pending_fn *list, void *data)
{
	my_pending_lists.of[list_index] = (struct weft__pending_list){list, data};
	if (my_thread && !my_thread->stream->retired) {
		weft__pending_begin(&my_thread->stream->pending, &my_pending_lists);
		weft__stream_open(my_thread->stream);
	}
}

void weft__list_pending(weft_list_pending_fn *list, void *data)
{
	set_pending_list(WEFT__PENDING_OF_PROGRAM, list, data);
}

void weft__list_pending_beside(weft_list_pending_fn *list, void *data)
{
	set_pending_list(WEFT__PENDING_OF_ADAPTER, list, data);
}

static void before_fork(void)
{
	weft__threads_lock();
	weft__fd_thread_lock();
}

static void after_fork_in_parent(void)
{
	weft__fd_thread_unlock();
	weft__threads_unlock();
}

bool weft__is_unannounced_child(void)
{
	return fork_stamp ? !*fork_stamp : getpid() != __atomic_load_n(&recording_pid, __ATOMIC_RELAXED);
}

/* Stops recording in a child process until the child starts again.  The locks are new too, because another OS thread of the
 * parent may have held them if the child was made without pthread_atfork(). */
void weft__reset_after_fork(void)
{
	/* If an event was in progress around the fork, because a signal handler inside of the event forked, the event ends in
	 * memory of the child.
	 */
	for (struct weft__thread *t = all_threads; t; t = t->next)
		t->generation = 0;
	weft__recording_reset();
	weft__stream = &weft__no_stream;
	my_thread = NULL;
	all_threads = free_threads = NULL;
	next_instance = 0;
	weft__recording.define_lock = 0;
	weft__memory_after_fork();
	recording_pid = getpid();
	if (fork_stamp)
		*fork_stamp = 1;
	weft__fd_thread_after_fork();
	weft__standby_after_fork();
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void after_fork_in_child(void)
{
	weft__reset_after_fork();
	holds_lock = false;
	weft__signals_restore(lock_signal_mask);
	pthread_setcancelstate(lock_cancel_state, NULL);
}

void weft__threads_init(void)
{
	recording_pid = getpid();
#ifdef MADV_WIPEONFORK
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *wiped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (wiped != MAP_FAILED && madvise(wiped, page, MADV_WIPEONFORK) == 0) {
		fork_stamp = wiped;
		*fork_stamp = 1;
	}
#endif
	pthread_key_create(&exit_key, on_thread_exit);
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
#ifdef SYS_membarrier
	syscall(SYS_membarrier, 16 /* REGISTER_PRIVATE_EXPEDITED */, 0, 0);
#endif
}
