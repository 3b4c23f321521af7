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

/* Traits of kinds: what every reader asks, instead of asking for kinds (weft_kind_has() in src/model/model.h). */
enum weft_trait {
	WEFT_TRAIT_NONE = 0,
	WEFT_TRAIT_ACTOR = 1 << 0,       /* what its code makes belongs to it: a connection, a loop, an OS thread */
	WEFT_TRAIT_GATHERS = 1 << 1,     /* it waits for several inputs at once, and running does not end those waits */
	WEFT_TRAIT_FIRST = 1 << 2,       /* the first of its inputs that ends is enough for it */
	WEFT_TRAIT_INPUTS = 1 << 3,      /* its end comes from what it waits for: without an input the trace is not complete */
	WEFT_TRAIT_WOKEN = 1 << 4,       /* its input wakes it; the model may show it from then on only */
	WEFT_TRAIT_FOLLOWS = 1 << 5,     /* it may only pass on how another one ends */
	WEFT_TRAIT_OUTSIDE = 1 << 6,     /* what ends it comes from outside: a clock, a peer, the kernel, a pool of OS threads */
	WEFT_TRAIT_ENDLESS = 1 << 7,     /* it need not end: pending at the end of a trace it is no fault */
	WEFT_TRAIT_CONDITION = 1 << 8,   /* others wait at it until it is signalled */
	WEFT_TRAIT_LOCK = 1 << 9,        /* one at a time holds it */
	WEFT_TRAIT_QUEUE = 1 << 10,      /* it holds things until somebody takes them */
	WEFT_TRAIT_POOL = 1 << 11,       /* it lends a limited number of things */
	WEFT_TRAIT_CONNECTION = 1 << 12, /* it connects two peers */
	WEFT_TRAIT_REQUEST = 1 << 13,    /* somebody asked for it, and waits for the answer */
	WEFT_TRAIT_LOOP = 1 << 14,       /* it runs until nothing keeps it */
	WEFT_TRAIT_THREAD = 1 << 15,     /* it is an OS thread as a whole: what runs there while nothing else does */
	WEFT_TRAIT_FOLDS = 1 << 16       /* programs keep many that never do anything: pictures show those on one line */
};

/* X(NAME, value, "name", traits): what made a promise. */
#define WEFT_KINDS(X)                                                                                                            \
	X(WAIT, 0, "wait", WEFT_TRAIT_FOLLOWS)                                                                                   \
	X(TASK, 1, "task", WEFT_TRAIT_FOLLOWS | WEFT_TRAIT_ACTOR)                                                                \
	X(BIND, 2, "bind", WEFT_TRAIT_INPUTS | WEFT_TRAIT_WOKEN)                                                                 \
	X(TRY, 3, "try", WEFT_TRAIT_INPUTS | WEFT_TRAIT_WOKEN)                                                                   \
	X(CHOOSE, 4, "choose", WEFT_TRAIT_INPUTS | WEFT_TRAIT_GATHERS | WEFT_TRAIT_FIRST)                                        \
	X(PICK, 5, "pick", WEFT_TRAIT_INPUTS | WEFT_TRAIT_GATHERS | WEFT_TRAIT_FIRST)                                            \
	X(JOIN, 6, "join", WEFT_TRAIT_INPUTS | WEFT_TRAIT_GATHERS)                                                               \
	X(MAP, 7, "map", WEFT_TRAIT_INPUTS | WEFT_TRAIT_WOKEN)                                                                   \
	X(CONDITION, 8, "condition", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_CONDITION | WEFT_TRAIT_FOLDS)                               \
	X(ON_SUCCESS, 9, "on_success", WEFT_TRAIT_ENDLESS)                                                                       \
	X(ON_FAILURE, 10, "on_failure", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_WOKEN)                                                   \
	X(ON_TERMINATION, 11, "on_termination", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_WOKEN)                                           \
	X(ON_ANY, 12, "on_any", WEFT_TRAIT_ENDLESS)                                                                              \
	X(IGNORE_RESULT, 13, "ignore_result", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_WOKEN)                                             \
	X(ASYNC, 14, "async", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_INPUTS | WEFT_TRAIT_ACTOR)                                         \
	X(PROMISE, 15, "promise", WEFT_TRAIT_NONE)                                                                               \
	X(SEMAPHORE, 16, "semaphore", WEFT_TRAIT_ENDLESS)                                                                        \
	X(SWITCH, 17, "switch", WEFT_TRAIT_ENDLESS)                                                                              \
	X(TIMER, 32, "timer", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_FOLDS)                                                             \
	X(LISTEN, 33, "listen", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_ACTOR)                                      \
	X(ACCEPT, 34, "accept", WEFT_TRAIT_OUTSIDE)                                                                              \
	X(CONNECT, 35, "connect", WEFT_TRAIT_OUTSIDE)                                                                            \
	X(STREAM_READ, 36, "read", WEFT_TRAIT_OUTSIDE)                                                                           \
	X(STREAM_WRITE, 37, "write", WEFT_TRAIT_OUTSIDE)                                                                         \
	X(SHUTDOWN, 38, "shutdown", WEFT_TRAIT_OUTSIDE)                                                                          \
	X(CLOSE, 39, "close", WEFT_TRAIT_OUTSIDE)                                                                                \
	X(GETADDRINFO, 40, "getaddrinfo", WEFT_TRAIT_OUTSIDE)                                                                    \
	X(FS, 41, "fs", WEFT_TRAIT_OUTSIDE)                                                                                      \
	X(WORK, 42, "work", WEFT_TRAIT_OUTSIDE)                                                                                  \
	X(PROCESS, 43, "process", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ACTOR)                                                         \
	X(OS_SIGNAL, 44, "signal", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_FOLDS)                                   \
	X(POLL, 45, "poll", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_FOLDS)                                          \
	X(REQUEST, 46, "request", WEFT_TRAIT_REQUEST | WEFT_TRAIT_ACTOR)                                                         \
	X(CONNECTION, 47, "connection", WEFT_TRAIT_ACTOR | WEFT_TRAIT_CONNECTION)                                                \
	X(COROUTINE, 48, "coroutine", WEFT_TRAIT_ACTOR)                                                                          \
	X(INTERRUPT, 49, "interrupt", WEFT_TRAIT_OUTSIDE)                                                                        \
	X(LOCK, 50, "lock", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_LOCK)                                                                \
	X(QUEUE, 51, "queue", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_QUEUE)                                                             \
	X(POOL, 52, "pool", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_POOL | WEFT_TRAIT_GATHERS | WEFT_TRAIT_FIRST)                        \
	X(THREAD, 53, "thread", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_ACTOR | WEFT_TRAIT_THREAD)                                       \
	X(LOOP, 54, "loop", WEFT_TRAIT_ENDLESS | WEFT_TRAIT_ACTOR | WEFT_TRAIT_GATHERS | WEFT_TRAIT_LOOP)                        \
	X(HANDLE, 55, "handle", WEFT_TRAIT_OUTSIDE | WEFT_TRAIT_ENDLESS | WEFT_TRAIT_FOLDS)                                      \
	X(UNKNOWN, 99, "unknown", WEFT_TRAIT_INPUTS)

/* An enum weft_kind fits in 8 bits.  Values not listed may be recorded; readers call them "kind-N". */
enum weft_kind {
#define WEFT_KIND_ENUM(NAME, value, name, traits) WEFT_KIND_##NAME = value,
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
	X(STILL_AWAITS, 21, "still_awaits") /* state dump: a, pending, still waits for b */                                      \
	X(BELONGS, 22, "belongs")           /* a is part of what its owner b does */                                             \
	X(AWAITS_NO_MORE, 23, "awaits_no_more") /* a waits for b no longer */                                                    \
	X(HOLD, 24, "hold")                     /* a has the lock b */                                                           \
	X(RELEASE, 25, "release")               /* a has it no longer */                                                         \
	X(LEVEL, 26, "level")                   /* the queue, the pool or the set of handles a has value elements now */         \
	X(SENT, 27, "sent")                     /* bytes went into connection a, up to a position whose low 32 bits are value */ \
	X(RECEIVED, 28, "received")             /* bytes came out of connection a, likewise */                                   \
	X(CANCEL, 29, "cancel")                 /* a ended b, which was no longer wanted */                                      \
	X(DETAIL, 30, "detail")                 /* of a: value and text, which mean what an enum weft_detail says */

enum weft_op {
#define WEFT_OP_ENUM(NAME, value, name) WEFT_OP_##NAME = value,
	WEFT_OPS(WEFT_OP_ENUM)
#undef WEFT_OP_ENUM
	    WEFT_OP_COUNT = 31
};

/* X(NAME, value, "name"): what a detail tells. */
#define WEFT_DETAILS(X)                                                                                                          \
	X(STACK, 1, "stack") /* who called where the event before this one tells of a: value callers, the innermost first; text: \
				their places */                                                                                  \
	X(CONNECTION, 2, "connection") /* a is a connection; value: bytes sent so far; text: protocol, own address, peer's,      \
					  bytes received so far */                                                               \
	X(BOUND, 3, "bound")           /* a's level is not to exceed value */                                                    \
	X(EXPECTED, 4, "expected")     /* that a fails with text is no fault */                                                  \
	X(ROUND, 5, "round")           /* what became of the last value ns of this OS thread: ns that it had a processor, how    \
					  often it gave it up by itself, how often it was taken away, minor and major faults */  \
	X(BLOCKED, 6, "blocked")       /* the call text blocked a's OS thread for value ns */                                    \
	X(SNAPSHOT, 7, "snapshot")     /* the trace is to be kept; text: why; value: 0 says the program, 1 who kept this copy,   \
					  2 likewise, and the program ran on */                                                  \
	X(SPIN, 8, "spin")             /* a's code was called value times since its OS thread last slept */                      \
	X(MESSAGE, 9, "message")    /* a sent a message, or handles it if value is negative; value: its number; text: of whom */ \
	X(DIED, 11, "died")         /* signal text, of that number, came while a ran, and nobody handles it */                   \
	X(DATAGRAM, 12, "datagram") /* a sent a datagram to the address text, or handles it if value is negative; value: its     \
				       digest */

/* Fits in 8 bits.  Values not listed may be recorded; readers call them "detail-N". */
enum weft_detail {
#define WEFT_DETAIL_ENUM(NAME, value, name) WEFT_DETAIL_##NAME = value,
	WEFT_DETAILS(WEFT_DETAIL_ENUM)
#undef WEFT_DETAIL_ENUM
};

/* The error of what can never end otherwise: nobody has it any more who could resolve it. */
#define WEFT_UNRETURNED "finalized without ever returning"
/* A note about one that failed: whoever was told that it had ended did not ask how. */
#define WEFT_UNASKED "nobody asked for its result"

/* Why a program sleeps. */
enum weft_idle { WEFT_IDLE_WAIT = 0, WEFT_IDLE_SUSPEND = 1, WEFT_IDLE_HIBERNATE = 2 };

#ifdef __cplusplus
}
#endif
#endif
