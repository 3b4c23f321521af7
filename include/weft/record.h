/* record.h: what a program calls to record its promises.
 *
 * A promise is one thing in flight: a request, a timer, a coroutine.  It gets an id when it is created; everything that happens
 * to it is one call.  While nothing records, a call costs one load and one branch; while something does, a few ns and about 13
 * bytes.  Calls return nothing (a creation returns the id), never block, never allocate, keep errno, and may be made from any
 * OS thread and from signal handlers.  What could not be recorded is counted in the trace, by cause.
 *
 *	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
 *	WEFT_LABEL(request, "GET /");
 *	weft_await(handler, request);
 *	...
 *	weft_resolve(reader, request);
 *	weft_read(handler, request);
 *
 * Start by weft_start(), or by WEFT_TRACE in the environment of any program that links the library:
 *
 *	WEFT_TRACE=DIR[,size=64M][,mode=ring|grow][,packets=N][,overwrite][,standby]	(%p in DIR becomes the process id)
 *	WEFT_TRACE=memory[,size=4M][,mode=...][,packets=N][,packet=4096][,streams=16]	(for weft save --pid, core dumps)
 *
 * With WEFT_DISABLE defined before this file is included, every call compiles to nothing.
 * The names in capitals are macros: they keep something static where they stand, so a text given to them is a literal.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_H
#define WEFT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>
#include <weft/vocabulary.h>

/* What makes a text static: the initializer of a struct weft_record_text, or one clear message if it is no literal.  It stands
 * here, since a static initializer is wanted as soon as the header is read. */
#ifdef __cplusplus
template <class T> struct weft__is_literal {
	static constexpr bool value = false;
};
template <size_t N> struct weft__is_literal<const char (&)[N]> {
	static constexpr bool value = true;
};
#define WEFT__INITIAL(literal, message)                                                                                          \
	{                                                                                                                        \
		[] {                                                                                                             \
			static_assert(weft__is_literal<decltype(literal)>::value, message);                                      \
			return 0u;                                                                                               \
		}(),                                                                                                             \
		    literal                                                                                                      \
	}
#else
#define WEFT__IS_LITERAL(literal) __builtin_types_compatible_p(__typeof__(literal), char[sizeof(literal)])
#define WEFT__INITIAL(literal, message)                                                                                          \
	{                                                                                                                        \
		0 * sizeof(struct {                                                                                              \
			_Static_assert(WEFT__IS_LITERAL(literal), message);                                                      \
			char unused;                                                                                             \
		}),                                                                                                              \
		    __builtin_choose_expr(WEFT__IS_LITERAL(literal), literal, "")                                                \
	}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A promise.  Ids are unique among all OS threads and all traces of a process.  WEFT_SYSTEM_ID (-1) is the system; 0 is what a
 * creation returns while nothing records: a promise that the trace does not know. */
typedef int64_t weft_id;

/* A word that is read and written whole, also on 32-bit processors. */
typedef uint64_t weft_word __attribute__((aligned(8)));

/* Where in the source a promise is created; see WEFT_SITE(). */
struct weft_record_site {
	weft_word key;
	const char *file, *function;
	uint32_t line;
};

/* A place in the machine code, for who records a program without its source: a promise is created by the call that returns to
 * `address`.  It enters the trace once, as an offset in the file that it was loaded from, and its readers find the name.  Zeroed
 * but for the address, it stays where it is; if the file at the address was unloaded, key is to be made 0 again. */
struct weft_record_place {
	weft_word key;
	const void *address;
};

/* A text known when the program is compiled: the handle of a counter; see WEFT_TEXT().  It enters the trace once. */
struct weft_record_text {
	weft_word key;
	const char *text;
};

/* ---- Starting and stopping ---- */

enum weft_record_mode {
	WEFT_RECORD_RING = 0, /* the newest events stay */
	WEFT_RECORD_GROW = 1  /* the oldest stay; what comes when the size is reached is lost */
};

/* Zeroed, but for directory or buffer, it is a good choice. */
struct weft_record_options {
	const char *directory; /* is created, 0700, its files 0600; %p in it becomes the process id */
	bool overwrite;        /* a trace that is there may be replaced; never anything else */
	enum weft_record_mode mode;
	uint64_t size_bytes; /* ring: of each OS thread's ring, 0: 16 MiB.  grow: of the trace, 0: no limit */
	unsigned packets; /* that a ring is cut into, 2 to 65536, 0: 16.  What a reused packet had in it is forgotten at once */
	/* grow: a file's size, 0: 1 MiB.  In a buffer: of each packet, metadata and definitions included, so that with 4096 and a
	 * buffer that begins with a page every page tells its part, wherever it lies in a machine's memory; 0: as `packets` has
	 * it. */
	uint64_t packet_bytes;

	/* Instead of a directory: memory of the caller's, 8-byte aligned, which stays until weft_stop() has returned. */
	void *buffer;
	size_t buffer_bytes;
	unsigned streams; /* OS threads that share the buffer, 0: 1 */

	/* The clock: ticks that never go back (if they do, time stands still); NULL: the processor's counter where it is
	 * invariant, else CLOCK_MONOTONIC.  A freestanding core must be given one. */
	uint64_t (*clock)(void);
	uint64_t clock_hz;
	uint64_t (*wall_ns)(void); /* ns since 1970; NULL: the system's, if there is one */
	bool use_monotonic;        /* CLOCK_MONOTONIC even where the counter is invariant */
	/* What `clock` reads is a counter, whose rate beside another host's changes by at most 30 ppm within a second, and no
	 * clock that somebody sets: then less is unknown of it beside other hosts' (weft_sent()). */
	bool is_counter;

	const char *host, *process, *command; /* NULL: as the system says */
	/* What was taken of which runtimes, for weft info; NULL: nothing.  Not copied: it stays until weft_stop() has returned,
	 * which reads it again. */
	const char *runtimes;

	/* Freestanding: called around the change of a packet, so that no interrupt handler records meanwhile (what it records
	 * would be counted as lost). */
	uint64_t (*enter)(void);
	void (*leave)(uint64_t state);

	weft_id first_id; /* ids begin there, or where those of an earlier trace ended; 0: 1 */
};

/* Starts to record; when it returns, the calling OS thread has its first packet, and the disk has room for the others.
 *
 * The options are copied; texts in them too, but for `runtimes`.  WEFT_EBUSY (this process records already, or another one into
 * that directory), WEFT_EEXIST (the directory exists and is not an empty one, or not a trace, or overwrite was not asked for),
 * WEFT_EINVAL (options), WEFT_ETOOBIG (a packet too small for its header and an event), WEFT_ENOSPC, WEFT_EACCES (also: the
 * directory is a symbolic link, another user's, or one that others may write in), WEFT_ENOENT, WEFT_EIO, WEFT_ENOMEM,
 * WEFT_ENOTSUP (compiled with WEFT_DISABLE, or no OS thread can be made to open files in).  In a child after a fork it starts a
 * trace of the child's. Any OS thread, not a signal handler.  Some 4 ms of processor time, most of it for making files;
 * longer where others use the disk. */
static inline int weft_start(const struct weft_record_options *options);

/* What the last weft_start() of this process failed of, one clause; "" if it did not. */
static inline const char *weft_start_error(void);

/* Ends the trace: nothing is recorded any more, unused files and bytes are given back, the metadata says "finished".  Does
 * nothing if nothing records; called by itself at exit().  Any OS thread, not a signal handler. */
static inline void weft_stop(void);

/* The version of the library that is loaded, as `weft --version` has it. */
static inline const char *weft_version(void);

/* Whether events are recorded now; one load. */
static inline bool weft_is_on(void);

/* ---- Promises ----
 *
 * `by` is the promise that acts: the one whose code runs, or WEFT_SYSTEM_ID.  weft_running() knows it. */

/* Creates a promise of a kind, here, by the one that runs; returns its id. */
#define WEFT_CREATE(kind) weft_create_here(kind, WEFT_SITE())

/* The same, by another. */
#define WEFT_CREATE_BY(by, kind) weft_create(by, kind, WEFT_SITE())

/* This place in the source, as a struct weft_record_site *, valid as long as the program's code. */
#define WEFT_SITE() WEFT__SITE()

/* What these two call; site may be NULL. */
static inline weft_id weft_create_here(enum weft_kind kind, struct weft_record_site *site);
static inline weft_id weft_create(weft_id by, enum weft_kind kind, struct weft_record_site *site);

/* The same at a place in the machine code. */
static inline weft_id weft_create_at(weft_id by, enum weft_kind kind, struct weft_record_place *place);

/* The same of a promise that is a part of what owner does: a library's way of answering a call, which the caller need not know.
 * What happens to a part is told of its owner, unless somebody asks for parts.  place may be NULL.  Not the fastest. */
static inline weft_id weft_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner);

/* For weft_pending() of a part, which it precedes. */
static inline void weft_belongs(weft_id promise, weft_id owner);

/* promise sent message `number` of a sender, or handles it.  Both ends, perhaps in two processes, call the sender the same,
 * "BUS-GUID :1.42": then readers see that who sent it waits for who handles it. */
static inline void weft_message(weft_id promise, uint32_t number, const char *sender, bool is_handled);

/* ---- Connections: so that the traces of both ends can be put together ---- */

/* How many bytes went into a connection, and how many came out of it, since it was made. */
struct weft_positions {
	uint64_t sent, received;
	uint32_t weft__peer; /* the recorder's own: a unix socket's */
};

#if __STDC_HOSTED__
/* promise is one end of a connection, whose other end may be another process, perhaps of another machine: fd is a connected
 * socket of TCP, a stream of unix sockets, or one end of a pipe.  did_connect: this end called connect().  Its addresses, or its
 * inodes, enter the trace, and so does what it has carried, which *positions then has: of TCP since it was made, of others since
 * this call, which is to come before the first byte.
 *
 * false: nothing was told, since fd is not connected or something else, since a filter of system calls is in force, or since
 * nothing records.  Keeps errno.  Not for signal handlers.  Seven system calls; of a unix socket 100 us, in an OS
 * thread that has no descriptor of the program's, for 100 of them a second: others are not told. */
static inline bool weft_connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions);

/* For weft_list_pending(), behind weft_pending() of the same promise: it still is that connection, which has carried so much. */
static inline void weft_still_connected(weft_id promise, int fd, const struct weft_positions *positions);
#endif

/* Bytes are about to be written to the connection, up to that position: to be called before the system call.  What the kernel
 * does not take is taken back by another call, with the position that was reached. */
static inline void weft_sent(weft_id connection, uint64_t position);

/* Bytes were read from the connection, up to that position: to be called after the system call. */
static inline void weft_received(weft_id connection, uint64_t position);

/* ---- Datagrams of UDP: so that who handles one is known to come after who sent it ---- */

struct sockaddr;

/* Of a datagram's bytes; begins with zeros. */
struct weft_digest {
	uint64_t sum, bytes;
};

#if __STDC_HOSTED__
/* Adds its next bytes, of which those behind the first 64 are only counted. */
static inline void weft_digest(struct weft_digest *digest, const void *bytes, size_t count);

/* promise is about to send a datagram by the socket fd, to an address or, NULL, to the peer of fd: before the system call.  Where
 * it goes and what is in it enters the trace, the bytes as a number of 63 bits.  Keeps errno.  Without `to` two system calls;
 * nothing is told while a filter of system calls is in force. */
static inline void weft_datagram_sent(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest);

/* promise handles a datagram that came to the socket fd: after the system call.  Likewise, with two system calls. */
static inline void weft_datagram_received(weft_id promise, int fd, const struct weft_digest *digest);
#endif

/* ---- What becomes of a promise ---- */

/* Who had called when promise was created: return addresses, the innermost first, of which the first 16 are kept.  The addresses
 * of a program are few: each enters the trace once. */
#define WEFT_STACK_MAX 16
static inline void weft_stack(weft_id promise, const void *const *addresses, unsigned count);

/* promise's code was called that many times since its OS thread last slept, though nothing came to it: it keeps a processor busy.
 * To be told now and then, as when the number has doubled. */
static inline void weft_spins(weft_id promise, uint64_t calls);

/* promise is called text.  The first label names it, later ones tell its story. */
#define WEFT_LABEL(promise, literal)                                                                                             \
	weft_label_text(promise, WEFT__TEXT(literal, "WEFT_LABEL takes a string literal; use weft_label()"))
static inline void weft_label(weft_id promise, const char *text);
static inline void weft_label_bytes(weft_id promise, const char *text, size_t bytes);
static inline void weft_label_text(weft_id promise, struct weft_record_text *text);

/* promise is expected to resolve: if it never does, that is a failure. */
static inline void weft_should_resolve(weft_id promise);

/* promise looked at input, which is not ready: it now waits for it. */
static inline void weft_await(weft_id promise, weft_id input);

/* promise waits for input no longer, whatever becomes of it. */
static inline void weft_awaits_no_more(weft_id promise, weft_id input);

/* promise has lock, of kind WEFT_KIND_LOCK, from now on: whoever awaits the lock waits for promise.  Several may have it, such as
 * the readers of a readers-writer lock.  A deadlock is then told with who holds what. */
static inline void weft_hold(weft_id promise, weft_id lock);

/* promise has lock no longer. */
static inline void weft_release(weft_id promise, weft_id lock);

/* promise read input, which is ready; promise now runs. */
static inline void weft_read(weft_id promise, weft_id input);

/* The same, without a change of who runs. */
static inline void weft_read_later(weft_id promise, weft_id input);

/* by resolved promise with a value. */
static inline void weft_resolve(weft_id by, weft_id promise);

/* by resolved promise with an error. */
#define WEFT_FAIL(by, promise, literal)                                                                                          \
	weft_fail_text(by, promise, WEFT__TEXT(literal, "WEFT_FAIL takes a string literal; use weft_fail()"))
static inline void weft_fail(weft_id by, weft_id promise, const char *error);
static inline void weft_fail_text(weft_id by, weft_id promise, struct weft_record_text *error);

/* promise, not resolved, from now on is into. */
static inline void weft_become(weft_id promise, weft_id into);

/* from sent promise a message; promise now runs. */
static inline void weft_signal(weft_id from, weft_id promise);

/* The same, without a change of who runs. */
static inline void weft_signal_only(weft_id from, weft_id promise);

/* ---- Who runs, on this OS thread ---- */

/* promise now runs. */
static inline void weft_run(weft_id promise);

/* The OS thread sleeps from now on, and why. */
static inline void weft_idle(enum weft_idle why);

/* The sleep is over; promise now runs. */
static inline void weft_resume(weft_id promise);

/* Who runs on this OS thread, as the calls above said; WEFT_SYSTEM_ID if nobody, or if nothing records. */
static inline weft_id weft_running(void);

/* ---- Counters, pauses, notes ---- */

/* A static struct weft_record_text * of a literal, made where it stands. */
#define WEFT_TEXT(literal) WEFT__TEXT(literal, "WEFT_TEXT takes a string literal")

/* Initialises a counter's handle: static struct weft_record_text requests = WEFT_COUNTER("requests"); */
#define WEFT_COUNTER(literal) WEFT__INITIAL(literal, "WEFT_COUNTER takes a string literal")

/* by set the counter to value, or changed it by change. */
static inline void weft_counter_set(weft_id by, struct weft_record_text *counter, int64_t value);
static inline void weft_counter_add(weft_id by, struct weft_record_text *counter, int64_t change);

/* Nothing can run from now on, and why ("gc"), until weft_pause_end(). */
#define WEFT_PAUSE_BEGIN(literal) weft_pause_begin_text(WEFT__TEXT(literal, "WEFT_PAUSE_BEGIN takes a string literal"))
static inline void weft_pause_begin_text(struct weft_record_text *why);
static inline void weft_pause_end(void);

/* Nothing could run for the last duration_ns. */
#define WEFT_PAUSE(literal, duration_ns) weft_pause_text(WEFT__TEXT(literal, "WEFT_PAUSE takes a string literal"), duration_ns)
static inline void weft_pause_text(struct weft_record_text *why, uint64_t duration_ns);

/* promise says something. */
#define WEFT_NOTE(promise, literal)                                                                                              \
	weft_note_text(promise, WEFT__TEXT(literal, "WEFT_NOTE takes a string literal; use weft_note()"))
static inline void weft_note(weft_id promise, const char *text);
static inline void weft_note_text(weft_id promise, struct weft_record_text *text);

/* Something went wrong, and what led to it is to be kept: weft watch, where it follows this trace, saves it with the reason,
 * which may be any short text.  An event: without a watcher nothing else happens. */
static inline void weft_snapshot(const char *why);

/* ---- What is pending: so that a ring does not forget the oldest promises ---- */

/* Ticks of the trace's clock, now; also while nothing records. */
static inline uint64_t weft_now(void);

/* Tells of promises of this OS thread that are pending: calls weft_pending(), and weft_still_awaits(), for about `budget` of
 * them, beginning at `cursor`, which is 0 at first and then what the last call returned; returns 0 after the last one. */
typedef uint64_t weft_list_pending_fn(void *data, uint64_t cursor, unsigned budget);

/* Has `list` called for promises of this OS thread: all of them once when recording begins, and again while the ring goes round,
 * a few at a time.  It is called inside weft_run, weft_read, weft_signal, weft_idle and weft_resume, on this OS thread, never in
 * a signal handler.  NULL ends that; so does the end of the OS thread.  `data` stays the caller's. */
static inline void weft_list_pending(weft_list_pending_fn *list, void *data);

/* promise is pending: of a kind, created at a site by another, `since` weft_now() was that (0: unknown), with that label. site
 * and label may be NULL.  A promise that was created while nothing recorded is 0, and gets an id now; returns its id. */
static inline weft_id weft_pending(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, uint64_t since, const char *label);

/* The same with a place in the machine code, which may be NULL. */
static inline weft_id weft_pending_at(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place, uint64_t since, const char *label);

/* promise, pending, still waits for input. */
static inline void weft_still_awaits(weft_id promise, weft_id input);

#ifdef __cplusplus
}
#endif

#include <weft/record_inline.h>

#endif
