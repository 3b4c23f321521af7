/* thread_memory.h: variables with a copy for each thread (private to adapters/).
 *
 * The loader places initial-exec thread-local variables of a library next to those of the program.  For a library that is loaded
 * into a running program, glibc has about 1.6 KiB of room left.  So large variables are in a section of this library, and each
 * thread gets a copy of the section when the thread first uses one of them.  The only thread-local variable is the distance to
 * the copy, which makes an access as fast as an initial-exec access.  Small variables stay initial-exec.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_THREAD_MEMORY_H
#define WEFT_HOOK_THREAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Marks a variable that is zero in each new thread.  Code uses only copies of the variable, by WEFT_HOOK_HERE(). */
#define WEFT_HOOK_PER_THREAD __attribute__((section("weft_per_thread")))

/* Distance in bytes from the section to this thread's copy; 0: no copy yet. */
extern __thread intptr_t weft__hook_thread_distance __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Makes this thread's copy.  The function keeps errno, and may run in a signal handler.  Without memory it returns 0, and the
 * thread shares the variables of the section. */
intptr_t weft__hook_make_thread_memory(void);

/* Sets the function that ends a thread.  The function runs in each round of destructors of a thread with a copy. */
void weft__hook_thread_memory_init(void (*end_thread)(void));

/* Makes sure that the end of this thread is noticed.  Unlike weft__hook_make_thread_memory(), the function may call malloc(). */
void weft__hook_watch_thread_end(void);

static inline void *weft__hook_here(const void *variable)
{
	intptr_t distance = weft__hook_thread_distance;
	if (__builtin_expect(!distance, 0))
		distance = weft__hook_make_thread_memory();
	uintptr_t here = (uintptr_t)variable;
	/* The compiler must not conclude that the address is in the variable itself. */
	__asm__("" : "+r"(here));
	return (void *)(here + (uintptr_t)distance);
}

/* This thread's copy of a variable, as an lvalue. */
#define WEFT_HOOK_HERE(VARIABLE) (*(__typeof__(VARIABLE) *)weft__hook_here(&(VARIABLE)))

#endif
