/* vocabulary.h: the constants of a trace, shared by recorders and readers.
 *
 * Values 0 to 13 of the operations and 0 to 17 of the kinds are those of the mirage-profile trace format.  A released value never
 * changes its meaning.  SPDX-License-Identifier: ISC */
#ifndef WEFT_VOCABULARY_H
#define WEFT_VOCABULARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The id of the system itself: while it runs, the program sleeps. */
#define WEFT_SYSTEM_ID (-1)

/* Traits of kinds; readers test traits instead of kinds (weft_kind_has() in src/model/model.h). */
enum weft_trait {
	WEFT_TRAIT_NONE = 0,
	WEFT_TRAIT_ACTOR = 1 << 0,       /* promises that its code creates belong to it: a connection, a loop, an OS thread */
	WEFT_TRAIT_GATHERS = 1 << 1,     /* waits for several inputs at once, and a run does not end those waits */
	WEFT_TRAIT_FIRST = 1 << 2,       /* ends with the first of its inputs that ends */
	WEFT_TRAIT_INPUTS = 1 << 3,      /* ends by its inputs: a trace without an input is incomplete */
	WEFT_TRAIT_WOKEN = 1 << 4,       /* is woken by its input; the model may show it only from then on */
	WEFT_TRAIT_FOLLOWS = 1 << 5,     /* may only pass on the end of another promise */
	WEFT_TRAIT_OUTSIDE = 1 << 6,     /* is ended from outside: by a clock, a peer, the kernel, a thread pool */
	WEFT_TRAIT_ENDLESS = 1 << 7,     /* need not end: pending at the end of a trace is normal */
	WEFT_TRAIT_CONDITION = 1 << 8,   /* is a condition: others wait for its signal */
	WEFT_TRAIT_LOCK = 1 << 9,        /* is a lock with a holder */
	WEFT_TRAIT_QUEUE = 1 << 10,      /* is a queue: it holds elements until they are taken */
	WEFT_TRAIT_POOL = 1 << 11,       /* is a pool: it lends a limited number of objects */
	WEFT_TRAIT_CONNECTION = 1 << 12, /* connects two peers */
	WEFT_TRAIT_REQUEST = 1 << 13,    /* is a request, whose sender waits for the response */
	WEFT_TRAIT_LOOP = 1 << 14,       /* is an event loop, which runs until no handle keeps it alive */
	WEFT_TRAIT_THREAD = 1 << 15,     /* is an OS thread as a whole */
	WEFT_TRAIT_FOLDS = 1 << 16       /* often exists many times without events: pictures fold such promises into one line */
};

/* X(NAME, value, "name", traits): kinds of promises. */
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

/* X(NAME, value, "name"): operations, one for each event.  `a` acts, `b` is acted upon. */
#define WEFT_OPS(X)                                                                                                              \
	X(CREATE, 0, "create")                  /* a, which runs, created b of a kind at a site */                               \
	X(READ, 1, "read")                      /* a read the resolved b; a is now running */                                    \
	X(RESOLVE, 2, "resolve")                /* a resolved b with a value */                                                  \
	X(FAIL, 3, "fail")                      /* a resolved b with an error: text */                                           \
	X(BECOME, 4, "become")                  /* a, unresolved, becomes b */                                                   \
	X(LABEL, 5, "label")                    /* a gets the label text */                                                      \
	X(COUNTER_ADD, 6, "counter_add")        /* a changed counter text by value */                                            \
	X(RUN, 7, "run")                        /* a is now running; -1: the program sleeps */                                   \
	X(PAUSE, 8, "pause")                    /* nothing could run for value ns that end now; text says why */                 \
	X(SIGNAL, 9, "signal")                  /* a sent b a message; b is now running */                                       \
	X(AWAIT, 10, "await")                   /* a waits for b, which is pending */                                            \
	X(COUNTER, 11, "counter")               /* a set counter text to value */                                                \
	X(READ_LATER, 12, "read_later")         /* like read; the running promise does not change */                             \
	X(SIGNAL_ONLY, 13, "signal_only")       /* like signal; the running promise does not change */                           \
	X(SHOULD_RESOLVE, 14, "should_resolve") /* a must resolve */                                                             \
	X(IDLE, 15, "idle")                     /* the program sleeps from now on; value: enum weft_idle */                      \
	X(RESUME, 16, "resume")                 /* the sleep is over; a is now running */                                        \
	X(NOTE, 17, "note")                     /* a free-form text about a */                                                   \
	X(PENDING, 18, "pending")               /* state dump: b, of a kind and site, created by a at time value, is pending */  \
	X(PAUSE_BEGIN, 19, "pause_begin")       /* nothing can run from now on; text says why */                                 \
	X(PAUSE_END, 20, "pause_end")           /* the pause is over */                                                          \
	X(STILL_AWAITS, 21, "still_awaits")     /* state dump: a, pending, waits for b */                                        \
	X(BELONGS, 22, "belongs")               /* a is an internal promise of its owner b */                                    \
	X(AWAITS_NO_MORE, 23, "awaits_no_more") /* a does not wait for b any more */                                             \
	X(HOLD, 24, "hold")                     /* a holds the lock b */                                                         \
	X(RELEASE, 25, "release")               /* a does not hold the lock b any more */                                        \
	X(LEVEL, 26, "level")                   /* the queue, pool or set of handles a has value elements */                     \
	X(SENT, 27, "sent")                     /* bytes go into connection a up to a position; value: its low 32 bits */        \
	X(RECEIVED, 28, "received")             /* bytes came out of connection a up to a position; value: its low 32 bits */    \
	X(CANCEL, 29, "cancel")                 /* a ended b, whose result was not wanted any more */                            \
	X(DETAIL, 30, "detail")                 /* a detail of a: value and text, as enum weft_detail defines */

enum weft_op {
#define WEFT_OP_ENUM(NAME, value, name) WEFT_OP_##NAME = value,
	WEFT_OPS(WEFT_OP_ENUM)
#undef WEFT_OP_ENUM
	    WEFT_OP_COUNT = 31
};

/* X(NAME, value, "name"): details. */
#define WEFT_DETAILS(X)                                                                                                          \
	X(STACK, 1, "stack") /* call stack of the previous event of a; value: callers; text: their places, innermost first */    \
	X(CONNECTION, 2, "connection") /* a is a connection; value: bytes sent; text: protocol, addresses, bytes received */     \
	X(BOUND, 3, "bound")           /* a's level must not exceed value */                                                     \
	X(EXPECTED, 4, "expected")     /* a failure of a with this text is no fault */                                           \
	X(ROUND, 5, "round") /* CPU use of this OS thread in the last value ns; text: CPU ns, voluntary switches, preemptions,   \
				minor and major faults */                                                                        \
	X(BLOCKED, 6, "blocked")   /* the call text blocked a's OS thread for value ns */                                        \
	X(SNAPSHOT, 7, "snapshot") /* keep the trace; text: why; value: 0 a request, 1 in a copy, 2 in a copy of a live trace */ \
	X(SPIN, 8, "spin")         /* a's code was called value times since its OS thread last slept */                          \
	X(MESSAGE, 9, "message")   /* a sent message value of sender text, or handles it if value is negative */                 \
	X(DIED, 11, "died")        /* the unhandled signal text, number value, ended the program while a ran */                  \
	X(DATAGRAM, 12, "datagram") /* a sent a datagram to address text, or handles it if value < 0; value: digest */           \
	X(INFERRED, 13, "inferred") /* how a starts, ends or waits is inferred from other events; text: why */                   \
	X(PLACE, 14, "place") /* the next await, hold, pause or sleep of this OS thread, by a, is called at the place value */   \
	X(CALLBACK, 15, "callback") /* a's code, a function at the place in the low 16 bits of value, was called; the other      \
				       bits: how many ns ago */                                                                  \
	X(CLAIM, 16, "claim")       /* its OS thread has worked for a since its last transfer or run; value 1: maybe */

/* Fits in 8 bits.  Values not listed may be recorded; readers call them "detail-N". */
enum weft_detail {
#define WEFT_DETAIL_ENUM(NAME, value, name) WEFT_DETAIL_##NAME = value,
	WEFT_DETAILS(WEFT_DETAIL_ENUM)
#undef WEFT_DETAIL_ENUM
};

/* Error of a promise that can never end otherwise, since nothing that could resolve it is left. */
#define WEFT_UNRETURNED "finalized without ever returning"
/* Note about a failed promise whose result was never requested. */
#define WEFT_UNASKED "nobody asked for its result"

/* Reasons why a program sleeps. */
enum weft_idle { WEFT_IDLE_WAIT = 0, WEFT_IDLE_SUSPEND = 1, WEFT_IDLE_HIBERNATE = 2 };

#ifdef __cplusplus
}
#endif
#endif
