/* vocabulary.h: the constants of a trace, shared by recorders and readers.
 *
 * Operations 0 to 13 and kinds 0 to 17 have the values of the mirage-profile trace format. A value keeps its meaning in all later
 * versions of weft. SPDX-License-Identifier: ISC */
#ifndef WEFT_VOCABULARY_H
#define WEFT_VOCABULARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The id of the system: the event loop itself, when no promise runs or the program sleeps. */
#define WEFT_SYSTEM_ID (-1)

/* Traits that promises of a kind have; readers test traits instead of kinds (weft_kind_has() in src/model/model.h). */
enum weft_trait {
	WEFT_TRAIT_NONE = 0,
	WEFT_TRAIT_ACTOR = 1 << 0,       /* owns the promises that its code creates: a connection, a loop, an OS thread */
	WEFT_TRAIT_GATHERS = 1 << 1,     /* waits for several promises at once; a run of its code does not end these waits */
	WEFT_TRAIT_FIRST = 1 << 2,       /* ends when the first of the promises for which it waits ends */
	WEFT_TRAIT_INPUTS = 1 << 3,      /* is ended by promises for which it waits; a trace without them is incomplete */
	WEFT_TRAIT_WOKEN = 1 << 4,       /* is woken by the promise for which it waits; pictures may begin it at this time */
	WEFT_TRAIT_FOLLOWS = 1 << 5,     /* can end just because another promise ended */
	WEFT_TRAIT_OUTSIDE = 1 << 6,     /* is ended from outside of its code: by a clock, a peer, the kernel, a thread pool */
	WEFT_TRAIT_ENDLESS = 1 << 7,     /* may be pending at the end of a trace without a fault */
	WEFT_TRAIT_CONDITION = 1 << 8,   /* is a condition: other promises wait for its signal */
	WEFT_TRAIT_LOCK = 1 << 9,        /* is a lock, which another promise holds */
	WEFT_TRAIT_QUEUE = 1 << 10,      /* is a queue, with elements that were put and not yet taken */
	WEFT_TRAIT_POOL = 1 << 11,       /* is a pool, which lends a limited number of objects */
	WEFT_TRAIT_CONNECTION = 1 << 12, /* connects two peers */
	WEFT_TRAIT_REQUEST = 1 << 13,    /* is a request, whose sender waits for the response */
	WEFT_TRAIT_LOOP = 1 << 14,       /* is an event loop, which runs until no handle keeps it alive */
	WEFT_TRAIT_THREAD = 1 << 15,     /* is an OS thread as a whole */
	WEFT_TRAIT_FOLDS = 1 << 16       /* often exists many times without events: pictures draw such promises as one line */
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

/* Each value of enum weft_kind fits in 8 bits. A recorder may use a value N that is not listed; readers name this kind
 * "kind-N". */
enum weft_kind {
#define WEFT_KIND_ENUM(NAME, value, name, traits) WEFT_KIND_##NAME = value,
	WEFT_KINDS(WEFT_KIND_ENUM)
#undef WEFT_KIND_ENUM
};

/* X(NAME, value, "name"): operations. Each event has one operation, with up to two promises: `a` acts, `b` is acted upon. */
#define WEFT_OPS(X)                                                                                                              \
	X(CREATE, 0, "create")                  /* promise a, which runs, created promise b of a kind at a site */               \
	X(READ, 1, "read")                      /* promise a took the result of b, which has ended; a runs now */                \
	X(RESOLVE, 2, "resolve")                /* promise a ended promise b with a value */                                     \
	X(FAIL, 3, "fail")                      /* promise a ended promise b with the error text */                              \
	X(BECOME, 4, "become")                  /* promise a, which is pending, and promise b are one promise from now on */     \
	X(LABEL, 5, "label")                    /* promise a gets the label text */                                              \
	X(COUNTER_ADD, 6, "counter_add")        /* promise a added value to the counter named text */                            \
	X(RUN, 7, "run")                        /* promise a runs now; a = -1: the program sleeps */                             \
	X(PAUSE, 8, "pause")                    /* no promise could run in the last value ns, because of text */                 \
	X(SIGNAL, 9, "signal")                  /* promise a woke promise b without ending it; b runs now */                     \
	X(AWAIT, 10, "await")                   /* promise a waits for promise b, which is pending */                            \
	X(COUNTER, 11, "counter")               /* promise a set the counter named text to value */                              \
	X(READ_LATER, 12, "read_later")         /* like read, but the running promise does not change */                         \
	X(SIGNAL_ONLY, 13, "signal_only")       /* like signal, but the running promise does not change */                       \
	X(SHOULD_RESOLVE, 14, "should_resolve") /* promise a must end, else readers report a fault */                            \
	X(IDLE, 15, "idle")                     /* the OS thread sleeps from now on; value: enum weft_idle */                    \
	X(RESUME, 16, "resume")                 /* the sleep of the OS thread is over; promise a runs now */                     \
	X(NOTE, 17, "note")                     /* text is a free-form note about promise a */                                   \
	X(PENDING, 18, "pending")               /* repeated fact: promise b, which a created at time value, is pending */        \
	X(PAUSE_BEGIN, 19, "pause_begin")       /* no promise can run from now on, because of text */                            \
	X(PAUSE_END, 20, "pause_end")           /* the pause that pause_begin recorded is over */                                \
	X(STILL_AWAITS, 21, "still_awaits")     /* repeated fact: promise a, which is pending, waits for promise b */            \
	X(BELONGS, 22, "belongs")               /* promise a is an internal promise of a library, and belongs to promise b */    \
	X(AWAITS_NO_MORE, 23, "awaits_no_more") /* promise a does not wait for promise b any more */                             \
	X(HOLD, 24, "hold")                     /* promise a holds the lock b */                                                 \
	X(RELEASE, 25, "release")               /* promise a does not hold the lock b any more */                                \
	X(LEVEL, 26, "level")                   /* the queue, pool or set of handles a contains value elements */                \
	X(SENT, 27, "sent")         /* bytes are written to connection a up to a position; value: low 32 bits of the position */ \
	X(RECEIVED, 28, "received") /* bytes were read from connection a up to a position; value: low 32 bits of the position */ \
	X(CANCEL, 29, "cancel")     /* promise a ended promise b, whose result was not wanted any more */                        \
	X(DETAIL, 30, "detail")     /* a detail of promise a: value and text have the meaning that enum weft_detail defines */

enum weft_op {
#define WEFT_OP_ENUM(NAME, value, name) WEFT_OP_##NAME = value,
	WEFT_OPS(WEFT_OP_ENUM)
#undef WEFT_OP_ENUM
	    WEFT_OP_COUNT = 31
};

/* X(NAME, value, "name"): details. */
#define WEFT_DETAILS(X)                                                                                                          \
	X(STACK, 1, "stack") /* call stack at the previous event of promise a; value: number of callers; text: places of the     \
				callers, innermost first */                                                                      \
	X(CONNECTION, 2, "connection") /* a is a connection; value: bytes sent; text: protocol, addresses, bytes received */     \
	X(BOUND, 3, "bound")           /* the number of elements of a (see op level) must not exceed value */                    \
	X(EXPECTED, 4, "expected")     /* a failure of promise a with the error text is no fault */                              \
	X(ROUND, 5, "round") /* CPU use of this OS thread in the last value ns; text: CPU ns, voluntary switches, preemptions,   \
				minor and major page faults */                                                                   \
	X(BLOCKED, 6, "blocked")    /* the system call text blocked the OS thread of promise a for value ns */                   \
	X(SNAPSHOT, 7, "snapshot")  /* a copy of the trace is wanted; text: why; value: 0 a request, 1 in a copy, 2 in a copy of \
				       a live trace */                                                                           \
	X(SPIN, 8, "spin")          /* the code of promise a was called value times since its OS thread last slept */            \
	X(MESSAGE, 9, "message")    /* promise a sent message value of sender text, or handles message -value if value < 0 */    \
	X(DIED, 11, "died")         /* the unhandled signal text, number value, ended the program while promise a ran */         \
	X(DATAGRAM, 12, "datagram") /* promise a sent a datagram to address text, or handles a datagram if value < 0; value:     \
				       digest of the bytes */                                                                    \
	X(INFERRED, 13, "inferred") /* the start, end or wait of promise a is inferred from other events; text: why */           \
	X(PLACE, 14, "place")       /* place value, where promise a makes the OS thread's next await, hold, pause or sleep */    \
	X(CALLBACK, 15, "callback") /* the code of promise a was called; value: the function's place in the low 16 bits, the ns  \
				       since the call in the others */                                                           \
	X(CLAIM, 16, "claim") /* the OS thread worked for promise a since its last transfer or run; 1: perhaps; 2: from now on,  \
				 perhaps */                                                                                      \
	X(TRACE_PARENT, 17, "trace_parent") /* promise a is part of the distributed trace text, a W3C traceparent */

/* Each value of enum weft_detail fits in 8 bits. A recorder may use a value N that is not listed; readers name this detail
 * "detail-N". */
enum weft_detail {
#define WEFT_DETAIL_ENUM(NAME, value, name) WEFT_DETAIL_##NAME = value,
	WEFT_DETAILS(WEFT_DETAIL_ENUM)
#undef WEFT_DETAIL_ENUM
};

/* Error text of a promise that was freed while pending, since nothing was left that could have resolved it. */
#define WEFT_UNRETURNED "finalized without ever returning"
/* Note about a failed promise that no promise ever read or awaited. */
#define WEFT_UNASKED "nobody asked for its result"

/* Reasons why an OS thread sleeps: it waits for events, or the machine is suspended or hibernates. */
enum weft_idle { WEFT_IDLE_WAIT = 0, WEFT_IDLE_SUSPEND = 1, WEFT_IDLE_HIBERNATE = 2 };

#ifdef __cplusplus
}
#endif
#endif
