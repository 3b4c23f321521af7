/* libc.h: macros that define wrappers of libc's functions (private to adapters/hook/libc_*.c).
 *
 * The wrappers are exported symbols with the names of libc's functions.  Programs, libraries and runtimes call libc through
 * pointers that the loader fills, and the loader finds this library's symbols first.  Calls inside of libc itself are not seen.
 * The original functions are looked up when this library is loaded, because some wrappers may run in signal handlers, where
 * dlsym() is not allowed.
 *
 * A wrapper consists of three functions.  The exported function jumps to the original while nothing may be recorded; that costs
 * a load and a branch.  Otherwise the exported function calls maybe_recorded_NAME(), which checks whether recording is on, and
 * recorded_NAME() then records the call.
 *
 * A file that wraps calls lists them in CALLS(X), as X(name, return type, (parameters), version).  Each such file defines a
 * struct `real` with pointers to the originals (LIBC_POINTER), and resolve_calls(), which fills the struct (LIBC_RESOLVE).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_HOOK_LIBC_H
#define WEFT_HOOK_LIBC_H

#include <dlfcn.h>
#include <errno.h>

#include "adapters/base/thread_sleep.h"
#include "adapters/hook/session.h"

#define EXPORTED __attribute__((visibility("default")))

/* Replaces a function that this libc lacks, because the program may find the function in this library only.  Ignores its
 * arguments. */
static inline long fail_with_enosys(void)
{
	errno = ENOSYS;
	return -1;
}

static inline void *find_libc_symbol(const char *name, const char *version)
{
	void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
	found = found ? found : dlsym(RTLD_NEXT, name);
	return found ? found : (void *)fail_with_enosys;
}

#define LIBC_POINTER(NAME, RESULT, PARAMETERS, VERSION) RESULT(*NAME) PARAMETERS;
#define LIBC_RESOLVE(NAME, RESULT, PARAMETERS, VERSION) real.NAME = (RESULT(*) PARAMETERS)find_libc_symbol(#NAME, VERSION);
#define LIBC_TEXT(NAME, RESULT, PARAMETERS, VERSION) struct weft_record_text NAME;
#define LIBC_TEXT_VALUE(NAME, RESULT, PARAMETERS, VERSION) .NAME = WEFT_COUNTER("blocked in " #NAME),

/* Looks up the original functions if another library's constructor called a wrapper first.  After the lookup each pointer is
 * set, for missing functions to fail_with_enosys(). */
#define ENSURE_RESOLVED(NAME)                                                                                                    \
	if (__builtin_expect(!real.NAME, 0)) {                                                                                   \
		resolve_calls();                                                                                                 \
		if (!real.NAME)                                                                                                  \
			__builtin_unreachable();                                                                                 \
	}

static inline bool is_recorded(void)
{
	return __atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED) && weft_is_on();
}

/* Begins the definition of a wrapper; the body of recorded_NAME() follows.  BEGINS says whether the call may start the recording
 * (adapters/base). */
#define LIST(...) __VA_ARGS__
#define WRAP(NAME, RESULT, PARAMETERS, ARGUMENTS, BEGINS)                                                                        \
	static RESULT maybe_recorded_##NAME(const void *caller, LIST PARAMETERS);                                                \
	static RESULT recorded_##NAME(const void *caller, LIST PARAMETERS);                                                      \
	EXPORTED RESULT NAME PARAMETERS                                                                                          \
	{                                                                                                                        \
		if (!__atomic_load_n(&weft__hook_gate, __ATOMIC_RELAXED))                                                        \
			return real.NAME ARGUMENTS;                                                                              \
		return maybe_recorded_##NAME(__builtin_return_address(0), LIST ARGUMENTS);                                       \
	}                                                                                                                        \
	static __attribute__((noinline)) RESULT maybe_recorded_##NAME(const void *caller, LIST PARAMETERS)                       \
	{                                                                                                                        \
		ENSURE_RESOLVED(NAME)                                                                                            \
		return weft_is_on() || ((BEGINS) && weft__hook_begin()) ? recorded_##NAME(caller, LIST ARGUMENTS)                \
									: real.NAME ARGUMENTS;                                   \
	}                                                                                                                        \
	static RESULT recorded_##NAME(const void *caller, LIST PARAMETERS)

/* Records the start of a sleep.  AT_ONCE is the same call without waiting, or 0 if there is none; a result other than 0 is
 * returned without a sleep. */
#define BEGIN_SLEEP(NAME, KIND, EPOLL, MAY_SLEEP, AT_ONCE)                                                                       \
	struct weft_hook_sleep s = {.kind = WEFT_HOOK_SLEEP_##KIND,                                                              \
	    .function = #NAME,                                                                                                   \
	    .text = &texts.NAME,                                                                                                 \
	    .epoll = EPOLL,                                                                                                      \
	    .may_sleep = MAY_SLEEP,                                                                                              \
	    .caller = caller};                                                                                                   \
	int before = errno;                                                                                                      \
	bool is_quick = weft__hook_before_wait(&s);                                                                              \
	errno = before;                                                                                                          \
	int already = is_quick ? (AT_ONCE) : 0;                                                                                  \
	if (already) {                                                                                                           \
		weft__hook_record_turn(&s);                                                                                      \
		errno = before;                                                                                                  \
		return already;                                                                                                  \
	}                                                                                                                        \
	if (s.state != WEFT_HOOK_AWAKE) {                                                                                        \
		weft__hook_record_sleep(&s);                                                                                     \
		errno = before;                                                                                                  \
	}                                                                                                                        \
	(void)0

/* Returns the result of a call that does not wait, because such a call is no sleep. */
#define RETURN_IF_NONBLOCKING(CALL)                                                                                              \
	if (!s.may_sleep)                                                                                                        \
	return CALL

#define END_SLEEP                                                                                                                \
	int after = errno;                                                                                                       \
	weft__hook_record_wake(&s);                                                                                              \
	errno = after;                                                                                                           \
	return result

/* Defines a second name for a function: with 64-bit file offsets both names are one function. */
#define ALIAS(NAME, OTHER) __asm__(".globl " OTHER "\n.type " OTHER ", %function\n.set " OTHER ", " #NAME)

#endif
