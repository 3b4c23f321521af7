/* thread_memory.c: makes and reuses each thread's copy of the library's variables.
 *
 * A copy is made without malloc() and without a lock, because the thread may be in malloc() or in a signal handler.
 * SPDX-License-Identifier: ISC */
#include "adapters/hook/thread_memory.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum {
	ALIGNMENT = 64,
	MAX_DIRECT_KEY = 32, /* keys for which glibc's pthread_setspecific() needs no memory */
#ifdef __SANITIZE_THREAD__
	ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS - 1 /* ThreadSanitizer forgets the thread in the last round */
#else
	ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS
#endif
};

extern char section_begin[] __asm__("__start_weft_per_thread") __attribute__((visibility("hidden")));
extern char section_end[] __asm__("__stop_weft_per_thread") __attribute__((visibility("hidden")));

/* A copy of a thread that has ended. */
struct spare {
	struct spare *next;
};

__thread intptr_t weft__hook_thread_distance;
static __thread unsigned round_count __attribute__((tls_model("initial-exec"))); /* number of rounds of destructors so far */

static struct spare *spares;
static void (*end_this_thread)(void);
static pthread_key_t thread_key;
static bool has_thread_key;

static size_t section_bytes(void)
{
	return (size_t)(section_end - section_begin);
}

static void push_spares(struct spare *first, struct spare *last)
{
	last->next = __atomic_load_n(&spares, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&spares, &last->next, first, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* Takes one spare copy.  The whole list is taken first: if two threads changed its first member at once, a thread that compares
 * the first member could be deceived. */
static struct spare *pop_spare(void)
{
	struct spare *first = __atomic_exchange_n(&spares, NULL, __ATOMIC_ACQUIRE);
	if (!first || !first->next)
		return first;
	struct spare *last = first->next;
	while (last->next)
		last = last->next;
	push_spares(first->next, last);
	return first;
}

intptr_t weft__hook_make_thread_memory(void)
{
	const int saved_errno = errno;
	const size_t bytes = section_bytes() + 2 * ALIGNMENT;
	void *memory = pop_spare();
	if (memory) {
		memset(memory, 0, bytes);
	} else {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED) {
			errno = saved_errno;
			return 0;
		}
	}
	/* The distance is a multiple of the alignment, so each copy is aligned as its variable is. */
	const uintptr_t first = (uintptr_t)memory + ALIGNMENT;
	const intptr_t distance = (intptr_t)(first - (uintptr_t)section_begin) & -(intptr_t)ALIGNMENT;
	weft__hook_thread_distance = distance;
	if (has_thread_key && thread_key < MAX_DIRECT_KEY)
		pthread_setspecific(thread_key, memory);
	errno = saved_errno;
	return distance;
}

/* Ends the thread in the first round.  The copy stays until the last round, because destructors of the program may make calls
 * that are recorded. */
static void run_destructor(void *memory)
{
	end_this_thread();
	if (++round_count < ROUNDS) {
		pthread_setspecific(thread_key, memory);
		return;
	}
	weft__hook_thread_distance = 0;
	push_spares(memory, memory);
}

void weft__hook_watch_thread_end(void)
{
	if (!has_thread_key || !weft__hook_thread_distance)
		return;
	/* The copy is behind the start of its memory by less than the smallest page. */
	enum { MIN_PAGE_BYTES = 4096 };
	const uintptr_t copy = (uintptr_t)section_begin + (uintptr_t)weft__hook_thread_distance;
	pthread_setspecific(thread_key, (void *)(copy & -(uintptr_t)MIN_PAGE_BYTES));
}

void weft__hook_thread_memory_init(void (*end_thread)(void))
{
	end_this_thread = end_thread;
	has_thread_key = pthread_key_create(&thread_key, run_destructor) == 0;
	weft__hook_watch_thread_end(); /* this thread may have made its copy before */
}
