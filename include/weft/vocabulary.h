/* vocabulary.h: the words of a trace, shared by those who record and those who read.
 *
 * Values 0 to 13 of the operations and 0 to 17 of the kinds are those of the mirage-profile trace format; a value, once
 * released, never changes its meaning.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VOCABULARY_H
#define WEFT_VOCABULARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The id that stands for the system itself: while it runs, the program sleeps. */
#define WEFT_SYSTEM_ID (-1)

/* X(NAME, value, "name"): what made a promise. */
#define WEFT_KINDS(X)                                                                                                            \
	X(WAIT, 0, "wait")                                                                                                       \
	X(TASK, 1, "task")                                                                                                       \
	X(BIND, 2, "bind")                                                                                                       \
	X(TRY, 3, "try")                                                                                                         \
	X(CHOOSE, 4, "choose")                                                                                                   \
	X(PICK, 5, "pick")                                                                                                       \
	X(JOIN, 6, "join")                                                                                                       \
	X(MAP, 7, "map")                                                                                                         \
	X(CONDITION, 8, "condition")                                                                                             \
	X(ON_SUCCESS, 9, "on_success")                                                                                           \
	X(ON_FAILURE, 10, "on_failure")                                                                                          \
	X(ON_TERMINATION, 11, "on_termination")                                                                                  \
	X(ON_ANY, 12, "on_any")                                                                                                  \
	X(IGNORE_RESULT, 13, "ignore_result")                                                                                    \
	X(ASYNC, 14, "async")                                                                                                    \
	X(PROMISE, 15, "promise")                                                                                                \
	X(SEMAPHORE, 16, "semaphore")                                                                                            \
	X(SWITCH, 17, "switch")                                                                                                  \
	X(TIMER, 32, "timer")                                                                                                    \
	X(LISTEN, 33, "listen")                                                                                                  \
	X(ACCEPT, 34, "accept")                                                                                                  \
	X(CONNECT, 35, "connect")                                                                                                \
	X(STREAM_READ, 36, "read")                                                                                               \
	X(STREAM_WRITE, 37, "write")                                                                                             \
	X(SHUTDOWN, 38, "shutdown")                                                                                              \
	X(CLOSE, 39, "close")                                                                                                    \
	X(GETADDRINFO, 40, "getaddrinfo")                                                                                        \
	X(FS, 41, "fs")                                                                                                          \
	X(WORK, 42, "work")                                                                                                      \
	X(PROCESS, 43, "process")                                                                                                \
	X(OS_SIGNAL, 44, "signal")                                                                                               \
	X(POLL, 45, "poll")                                                                                                      \
	X(REQUEST, 46, "request")                                                                                                \
	X(CONNECTION, 47, "connection")                                                                                          \
	X(COROUTINE, 48, "coroutine")                                                                                            \
	X(INTERRUPT, 49, "interrupt")                                                                                            \
	X(UNKNOWN, 99, "unknown")

/* An enum weft_kind fits in 8 bits.  Values not listed may be recorded; readers call them "kind-N". */
enum weft_kind {
#define WEFT_KIND_ENUM(NAME, value, name) WEFT_KIND_##NAME = value,
	WEFT_KINDS(WEFT_KIND_ENUM)
#undef WEFT_KIND_ENUM
};

/* X(NAME, value, "name"): what an event says.  `a` acts, `b` is acted upon. */
#define WEFT_OPS(X)                                                                                                              \
	X(CREATE, 0, "create")                  /* a, who runs, created b of a kind at a site */                                 \
	X(READ, 1, "read")                      /* a read the resolved b; a is now running */                                    \
	X(RESOLVE, 2, "resolve")                /* a resolved b with a value */                                                  \
	X(FAIL, 3, "fail")                      /* a resolved b with an error: text */                                           \
	X(BECOME, 4, "become")                  /* a, unresolved, from now on is b */                                            \
	X(LABEL, 5, "label")                    /* a is called text */                                                           \
	X(COUNTER_ADD, 6, "counter_add")        /* a changed counter text by value */                                            \
	X(RUN, 7, "run")                        /* a is now running; -1: the program sleeps */                                   \
	X(PAUSE, 8, "pause")                    /* nothing could run for value ns that end now; text says why */                 \
	X(SIGNAL, 9, "signal")                  /* a sent b a message; b is now running */                                       \
	X(AWAIT, 10, "await")                   /* a looked at b, which is not ready: a now waits for it */                      \
	X(COUNTER, 11, "counter")               /* a set counter text to value */                                                \
	X(READ_LATER, 12, "read_later")         /* like read, without a switch */                                                \
	X(SIGNAL_ONLY, 13, "signal_only")       /* like signal, without a switch */                                              \
	X(SHOULD_RESOLVE, 14, "should_resolve") /* a is expected to resolve */                                                   \
	X(IDLE, 15, "idle")                     /* the program sleeps from now; value: enum weft_idle */                         \
	X(RESUME, 16, "resume")                 /* the sleep is over; a is now running */                                        \
	X(NOTE, 17, "note")                     /* a says text, free-form */                                                     \
	X(PENDING, 18, "pending")           /* state dump: b, of a kind and site, created by a at time value, still pending */   \
	X(PAUSE_BEGIN, 19, "pause_begin")   /* nothing can run from now; text says why */                                        \
	X(PAUSE_END, 20, "pause_end")       /* that is over */                                                                   \
	X(STILL_AWAITS, 21, "still_awaits") /* state dump: a, pending, still waits for b */

enum weft_op {
#define WEFT_OP_ENUM(NAME, value, name) WEFT_OP_##NAME = value,
	WEFT_OPS(WEFT_OP_ENUM)
#undef WEFT_OP_ENUM
	    WEFT_OP_COUNT = 22
};

/* Why a program sleeps. */
enum weft_idle { WEFT_IDLE_WAIT = 0, WEFT_IDLE_SUSPEND = 1, WEFT_IDLE_HIBERNATE = 2 };

#ifdef __cplusplus
}
#endif
#endif
