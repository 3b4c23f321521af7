/* abi.c: defines symbols for programs that were built with an older record_inline.h, which has another memory layout.
 *
 * Such programs find variables and functions of their own ABI here, and nothing of them is recorded.  The first event of such a
 * program prints a message; later events cost no time.
 *
 * SPDX-License-Identifier: ISC */
#include "record/abi.h"

#if WEFT__ABI > 0

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* X(name, suffix) lists an older ABI, with the suffix of the ABI's names.  ABI 0 has no suffix; ABI 1 has the suffix "_abi1". */
#define OLD_ABIS(X) X(abi0, "")

#define SLOW_CALLS(X, abi, suffix)                                                                                               \
	X(stop, abi, suffix)                                                                                                     \
	X(now, abi, suffix)                                                                                                      \
	X(list_pending, abi, suffix)                                                                                             \
	X(list_pending_beside, abi, suffix)                                                                                      \
	X(standby_as, abi, suffix)                                                                                               \
	X(standby_asked, abi, suffix)                                                                                            \
	X(standby_answer, abi, suffix)                                                                                           \
	X(slow_ids, abi, suffix)                                                                                                 \
	X(slow_create, abi, suffix)                                                                                              \
	X(slow_create_at, abi, suffix)                                                                                           \
	X(slow_create_part, abi, suffix)                                                                                         \
	X(connection, abi, suffix)                                                                                               \
	X(still_connected, abi, suffix)                                                                                          \
	X(datagram, abi, suffix)                                                                                                 \
	X(slow_awake, abi, suffix)                                                                                               \
	X(slow_round, abi, suffix)                                                                                               \
	X(slow_detail, abi, suffix)                                                                                              \
	X(slow_place, abi, suffix)                                                                                               \
	X(slow_call, abi, suffix)                                                                                                \
	X(slow_call_site, abi, suffix)                                                                                           \
	X(slow_callback, abi, suffix)                                                                                            \
	X(slow_stack, abi, suffix)                                                                                               \
	X(memory_allocated, abi, suffix)                                                                                         \
	X(memory_freed, abi, suffix)                                                                                             \
	X(slow_text, abi, suffix)                                                                                                \
	X(slow_pending, abi, suffix)                                                                                             \
	X(slow_pending_at, abi, suffix)

static const char mismatch_message[] =
    "the program was built with another version of weft/record.h than the loaded library " WEFT_VERSION "; rebuild the program";

/* A stream that is always full, whatever size streams had in that ABI, so every event takes the slow path. */
static uint64_t full_stream[64];

#define DEFINE_STATE(abi, suffix)                                                                                                \
	extern WEFT__API unsigned weft__mode_##abi __asm__("weft__mode" suffix);                                                 \
	unsigned weft__mode_##abi;                                                                                               \
	extern WEFT__API __thread WEFT__PER_THREAD_MODEL void *weft__stream_##abi __asm__("weft__stream" suffix);                \
	__thread WEFT__PER_THREAD_MODEL void *weft__stream_##abi = full_stream;                                                  \
	extern WEFT__API uint64_t (*weft__clock_##abi)(void) __asm__("weft__clock" suffix);                                      \
	uint64_t (*weft__clock_##abi)(void) = weft__monotonic_ns;
OLD_ABIS(DEFINE_STATE)

static void set_modes(unsigned mode)
{
#define SET_MODE(abi, suffix) __atomic_store_n(&weft__mode_##abi, mode, __ATOMIC_RELAXED);
	OLD_ABIS(SET_MODE)
}

void weft__abi_begin(void)
{
	set_modes(WEFT__CALLED_CLOCK);
}

void weft__abi_end(void)
{
	set_modes(WEFT__OFF);
}

/* Replaces every slow call; returns 0, which is neither a promise nor a time. */
static long report_once(void)
{
	const int error = errno;
	if (__atomic_exchange_n(&weft__mode_abi0, (unsigned)WEFT__OFF, __ATOMIC_RELAXED) != WEFT__OFF)
		dprintf(STDERR_FILENO, "weft: recording is off: %s\n", mismatch_message);
	set_modes(WEFT__OFF);
	errno = error;
	return 0;
}

#define DEFINE_CALL(name, abi, suffix)                                                                                           \
	WEFT__API long weft__##name##_##abi(void) __asm__("weft__" #name suffix);                                                \
	long weft__##name##_##abi(void)                                                                                          \
	{                                                                                                                        \
		return report_once();                                                                                            \
	}
#define DEFINE_START(name, abi, suffix)                                                                                          \
	WEFT__API int weft__##name##_##abi(void) __asm__("weft__" #name suffix);                                                 \
	int weft__##name##_##abi(void)                                                                                           \
	{                                                                                                                        \
		return WEFT_ENOTSUP;                                                                                             \
	}
#define DEFINE_CALLS(abi, suffix)                                                                                                \
	SLOW_CALLS(DEFINE_CALL, abi, suffix)                                                                                     \
	DEFINE_START(start_as, abi, suffix)                                                                                      \
	WEFT__API const char *weft__start_error_##abi(void) __asm__("weft__start_error" suffix);                                 \
	const char *weft__start_error_##abi(void)                                                                                \
	{                                                                                                                        \
		return mismatch_message;                                                                                         \
	}                                                                                                                        \
	WEFT__API const char *weft__version_##abi(void) __asm__("weft__version" suffix);                                         \
	const char *weft__version_##abi(void)                                                                                    \
	{                                                                                                                        \
		return WEFT_VERSION;                                                                                             \
	}
OLD_ABIS(DEFINE_CALLS)

#endif
