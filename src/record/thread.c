/* thread.c: which OS thread writes which stream.
 *
 * A stream is made at an OS thread's first event.  When that thread ends, the next one that needs a stream goes on in its
 * packets, if it can one whose OS thread had the same name; the definitions say who writes from when on.  Nobody but its OS
 * thread unmaps a stream's memory, since nobody else knows that it is not in the middle of an event. SPDX-License-Identifier: ISC
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

__thread struct weft_stream *weft__stream = &weft__nobody;

/* How often a stop looks whether an OS thread has left its stream.  tests/proof/tsan_test.py tries a stop that hardly waits. */
#ifndef WEFT__PATIENCE
#define WEFT__PATIENCE 1000
#endif

static __thread struct weft__thread *mine;
static __thread uint64_t refused; /* the recording in which this OS thread got no stream */
static __thread struct weft__pending_lists my_lists;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft__thread *all, *free_ones;
static unsigned next_instance;
static pthread_key_t at_end;
static pid_t recording_pid;
static uint32_t *stamp; /* 1; 0 in a child that has a copy of this memory.  NULL: the kernel does not do that */
static __thread bool has_lock;

/* Only thread-directed system calls: no handler of this OS thread runs until they are given back. */
uint64_t weft__signals_block(void)
{
	sigset_t every, before;
	sigfillset(&every);
	sigdelset(&every, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &every, &before);
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

static __thread uint64_t mask_of_lock;
static __thread int cancel_of_lock;

void weft__threads_lock(void)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	uint64_t mask = weft__signals_block();
	pthread_mutex_lock(&lock);
	has_lock = true;
	mask_of_lock = mask;
	cancel_of_lock = cancel;
}

void weft__threads_unlock(void)
{
	uint64_t mask = mask_of_lock;
	int cancel = cancel_of_lock;
	has_lock = false;
	pthread_mutex_unlock(&lock);
	weft__signals_restore(mask);
	pthread_setcancelstate(cancel, NULL);
}

bool weft__threads_locked_here(void)
{
	return has_lock;
}

const struct weft__thread *weft__threads(void)
{
	return all;
}

void weft__threads_describe(struct weft_standby *page)
{
	page->threads = (uintptr_t)&all;
	page->next_at = offsetof(struct weft__thread, next);
	page->stream_at = offsetof(struct weft__thread, stream);
	page->limit_at = offsetof(struct weft__stream, hot.limit);
}

struct weft__stream *weft__stream_at(const unsigned char *address)
{
	for (const struct weft__thread *t = __atomic_load_n(&all, __ATOMIC_ACQUIRE); t; t = t->next) {
		const unsigned char *base = t->stream->storage.base;
		if (base && t->mapped_bytes && address >= base && (size_t)(address - base) < t->mapped_bytes)
			return t->stream;
	}
	struct weft__stream *d = &weft__recording.definitions;
	if (weft__target == WEFT__DIRECTORY && d->storage.base && address >= d->storage.base &&
	    (size_t)(address - d->storage.base) < d->storage.packet_bytes)
		return d;
	return NULL;
}

static struct weft__thread *make_thread(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
#ifdef MADV_WIPEONFORK
	/* In a child, however it was made, the stream is all zeros: nothing can be recorded into the parent's trace. */
	madvise(pages, page, MADV_WIPEONFORK);
#endif
	struct weft__thread *t = (struct weft__thread *)(void *)(pages + page);
	t->stream = (struct weft__stream *)(void *)pages;
	t->stream->host = t;
	t->next = all;
	__atomic_store_n(&all, t, __ATOMIC_RELEASE);
	return t;
}

/* A stream that nobody writes; best one of this recording whose OS thread had that name. */
static struct weft__thread *take_free(const char *name)
{
	struct weft__thread **best = NULL;
	int best_rank = -1;
	for (struct weft__thread **at = &free_ones; *at && best_rank < 2; at = &(*at)->next_free) {
		bool current = (*at)->generation == weft__recording.generation;
		int rank = !current ? 0 : strncmp((*at)->thread_name, name, WEFT_THREAD_NAME_SIZE) ? 1 : 2;
		if (rank > best_rank) {
			best_rank = rank;
			best = at;
		}
	}
	struct weft__thread *t = best ? *best : make_thread();
	if (best)
		*best = t->next_free;
	if (t)
		t->is_free = false;
	return t;
}

static void put_free(struct weft__thread *t)
{
	t->is_free = true;
	t->next_free = free_ones;
	free_ones = t;
}

/* Takes from it what it has of an earlier recording. */
static void strip(struct weft__thread *t)
{
	weft__unmap(t);
	weft__stream_reset(t->stream);
	t->is_spare = false;
}

/* Its packets, if it has none in this recording. */
static bool make_storage(struct weft__thread *t, bool whole)
{
	if (t->generation == weft__recording.generation)
		return true;
	strip(t);
	unsigned instance = next_instance;
	if (weft__target == WEFT__BUFFER) {
		t->stream->instance = instance;
		if (!weft__buffer_storage(&t->stream->storage, instance))
			return false;
	} else if (weft__place_storage(t, instance, whole) < 0) {
		return false;
	}
	next_instance++;
	t->stream->hot.instance = instance;
	t->stream->hot.generation = weft__recording.generation << 16;
	return true;
}

/* Others than this one, who recorded before: they come back, each to its own stream. */
static bool has_others(void)
{
	for (const struct weft__thread *t = all; t; t = t->next)
		if (t != mine && !t->is_free)
			return true;
	return false;
}

void weft__threads_prepare(void)
{
	struct weft__thread *spares[WEFT__SPARES] = {NULL};
	unsigned count = 0;
	/* Streams are numbered as they come: spares that nobody takes would stand before those, as if they had been lost. */
	const unsigned most = has_others() ? 0 : WEFT__SPARES;
	while (count < most && (spares[count] = take_free("")) != NULL)
		strip(spares[count++]);
	unsigned made = weft__place_spares(spares, count, next_instance);
	/* The last one first, so that streams are numbered as OS threads come. */
	while (count--) {
		struct weft__thread *t = spares[count];
		t->is_spare = count < made;
		t->generation = t->is_spare ? weft__recording.generation : 0;
		t->stream->hot.instance = t->stream->instance;
		t->stream->hot.generation = weft__recording.generation << 16;
		put_free(t);
	}
	next_instance += made;
}

bool weft__attach_locked(bool whole)
{
	char name[WEFT_THREAD_NAME_SIZE] = "";
	prctl(PR_GET_NAME, name);
	struct weft__thread *t = mine ? mine : take_free(name);
	if (!t)
		return false;
	struct weft__stream *s = t->stream;
	bool fresh = t->is_spare || t->generation != weft__recording.generation;
	bool renamed = memcmp(t->thread_name, name, sizeof name) != 0;
	if (!make_storage(t, whole)) {
		weft__stream = &weft__nobody;
		mine = NULL;
		put_free(t);
		return false;
	}
	mine = t;
	t->is_spare = false;
	pthread_setspecific(at_end, t);
	t->generation = weft__recording.generation;
	s->tid = (uint64_t)syscall(SYS_gettid);
	memcpy(s->thread_name, name, sizeof name);
	memcpy(t->thread_name, name, sizeof name);
	s->hot.running = WEFT_SYSTEM_ID;
	s->pending.inside = false;
	weft__pending_begin(&s->pending, &my_lists);
	__atomic_store_n(&s->retired, 0, __ATOMIC_SEQ_CST);
	weft__usage_begin(s);
	weft__stream = &s->hot;
	if (fresh) {
		weft__stream_begin(s);
	} else {
		/* Of the same name, the next packet's header is early enough: definitions do not grow with each OS thread. */
		if (renamed)
			weft__define_thread(s);
		weft__stream_open(s);
	}
	return true;
}

struct weft__stream *weft__attach(void)
{
	if (__atomic_load_n(&weft__mode, __ATOMIC_RELAXED) == WEFT__OFF ||
	    refused == __atomic_load_n(&weft__recording.generation, __ATOMIC_RELAXED))
		return NULL;
	if (weft__threads_locked_here())
		return NULL;
	if (weft__is_strange_child()) {
		weft__forget_all();
		return NULL;
	}
	struct weft__stream *s = NULL;
	weft__threads_lock();
	if (weft__target == WEFT__NOWHERE) /* somebody asked for it from outside, and has vanished */
		__atomic_store_n(&weft__mode, WEFT__OFF, __ATOMIC_RELAXED);
	if (__atomic_load_n(&weft__mode, __ATOMIC_RELAXED) != WEFT__OFF) {
		bool is_broken = mine && mine->stream->is_broken && mine->generation == weft__recording.generation;
		if (!is_broken && weft__attach_locked(false)) {
			s = mine->stream;
			/* Before a stop can look. */
			__atomic_store_n(&s->in_slow, s->in_slow + 1, __ATOMIC_SEQ_CST);
		} else {
			weft__stream = &weft__nobody;
			refused = weft__recording.generation;
		}
	}
	bool is_file = s && weft__target == WEFT__DIRECTORY;
	weft__threads_unlock();
	if (is_file)
		weft__guard_this_thread();
	return s;
}

/* An OS thread ends.  Its handlers may still record: they attach it anew. */
static void thread_ends(void *arg)
{
	weft__threads_lock();
	struct weft__thread *t = mine;
	if (t) {
		mine = NULL;
		weft__stream = &weft__nobody;
		t->stream->pending = (struct weft__pending){0};
		__atomic_store_n(&t->stream->hot.limit, 0, __ATOMIC_RELAXED);
		if (t->stream->retired || __atomic_load_n(&t->stream->is_broken, __ATOMIC_RELAXED)) {
			weft__unmap(t);
			t->generation = 0;
		}
		put_free(t);
	}
	weft__threads_unlock();
}

static bool is_busy(const struct weft__stream *s)
{
	return __atomic_load_n(&s->in_slow, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&s->hot.next, __ATOMIC_RELAXED) != __atomic_load_n(&s->hot.published, __ATOMIC_ACQUIRE);
}

/* Every OS thread that runs has, when this returns, done all that stood before some instruction of its own, and none behind. */
static void barrier_everywhere(void)
{
#ifdef SYS_membarrier
	syscall(SYS_membarrier, 8 /* PRIVATE_EXPEDITED */, 0, 0);
#endif
}

static bool wait_until_at_rest(const struct weft__stream *s, int *patience)
{
	while (is_busy(s)) {
		if (--*patience < 0)
			return false;
		if (*patience % 64)
			sched_yield();
		else
			usleep(100);
	}
	return true;
}

/* RETIRE of one stream whose limit is 0.  Its owner may have looked at the limit before and still be on its way to RESERVE, for
 * as long as it likes: that must fail, so its expectation is spoilt.  Its swap is not locked and may run over ours, which the
 * barrier brings to light.  tests/proof/stop.pml is the model.  False: it did not come out in time. */
static bool close_stream(struct weft__stream *s)
{
	/* In the caller's buffer nobody may write later; in a directory's files who does not come out in time may. */
	int patience = weft__target == WEFT__BUFFER ? 100000 : WEFT__PATIENCE;
	while (wait_until_at_rest(s, &patience)) {
		uint64_t rest = __atomic_load_n(&s->hot.published, __ATOMIC_ACQUIRE), spoilt = rest | WEFT__CLOSED;
		if (!__atomic_compare_exchange_n(&s->hot.next, &rest, spoilt, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		barrier_everywhere();
		if (__atomic_load_n(&s->hot.next, __ATOMIC_ACQUIRE) == spoilt)
			return true;
	}
	return false;
}

/* RETIRE: sends every OS thread out of its stream.  Whoever does not come out in time keeps its memory and may finish its event
 * there. */
void weft__threads_retire(void)
{
	for (struct weft__thread *t = all; t; t = t->next)
		if (t->generation == weft__recording.generation) {
			__atomic_store_n(&t->stream->retired, 1, __ATOMIC_SEQ_CST);
			__atomic_store_n(&t->stream->hot.limit, 0, __ATOMIC_SEQ_CST);
		}
	barrier_everywhere();
	for (struct weft__thread *t = all; t; t = t->next) {
		if (t->generation != weft__recording.generation)
			continue;
		/* Our own too: a signal handler that ends the recording may have interrupted an event's RESERVE. */
		t->is_closed = t->is_free || (t == mine && is_busy(t->stream)) || close_stream(t->stream);
		if (t == mine)
			weft__stream = &weft__nobody;
	}
	next_instance = 0;
}

void weft__threads_unmap(void)
{
	for (struct weft__thread *t = all; t; t = t->next)
		if (t->generation == weft__recording.generation && (t == mine || t->is_free))
			weft__unmap(t);
}

static void set_list(unsigned whose, weft_list_pending_fn *list, void *data)
{
	my_lists.of[whose] = (struct weft__pending_list){list, data};
	if (mine && !mine->stream->retired) {
		weft__pending_begin(&mine->stream->pending, &my_lists);
		weft__stream_open(mine->stream);
	}
}

void weft__list_pending(weft_list_pending_fn *list, void *data)
{
	set_list(WEFT__PENDING_OF_PROGRAM, list, data);
}

void weft__list_pending_beside(weft_list_pending_fn *list, void *data)
{
	set_list(WEFT__PENDING_OF_ADAPTER, list, data);
}

static void before_fork(void)
{
	weft__threads_lock();
	weft__aside_lock();
}

static void in_parent(void)
{
	weft__aside_unlock();
	weft__threads_unlock();
}

bool weft__is_strange_child(void)
{
	return stamp ? !*stamp : getpid() != __atomic_load_n(&recording_pid, __ATOMIC_RELAXED);
}

/* Nothing records in a child until it starts anew.  The locks are new too: of a child that was made behind the back of
 * pthread_atfork(), another OS thread of its parent may have had them. */
void weft__forget_all(void)
{
	/* Should an event be going on around the fork, in a handler of which it was called, it ends in memory of the child's. */
	for (struct weft__thread *t = all; t; t = t->next)
		t->generation = 0;
	weft__forget();
	weft__stream = &weft__nobody;
	mine = NULL;
	all = free_ones = NULL;
	next_instance = 0;
	weft__recording.define_lock = 0;
	recording_pid = getpid();
	if (stamp)
		*stamp = 1;
	weft__aside_child();
	weft__standby_child();
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void in_child(void)
{
	weft__forget_all();
	has_lock = false;
	weft__signals_restore(mask_of_lock);
	pthread_setcancelstate(cancel_of_lock, NULL);
}

void weft__threads_init(void)
{
	recording_pid = getpid();
#ifdef MADV_WIPEONFORK
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *wiped = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (wiped != MAP_FAILED && madvise(wiped, page, MADV_WIPEONFORK) == 0) {
		stamp = wiped;
		*stamp = 1;
	}
#endif
	pthread_key_create(&at_end, thread_ends);
	pthread_atfork(before_fork, in_parent, in_child);
#ifdef SYS_membarrier
	syscall(SYS_membarrier, 16 /* REGISTER_PRIVATE_EXPEDITED */, 0, 0);
#endif
}
