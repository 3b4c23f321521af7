/* record.h: records the promises of a program.
 *
 * A promise is one operation in flight: a request, a timer, a coroutine.  It gets an id when it is created; each call records one
 * fact about it.  While nothing records, a call costs one load and one branch; while recording, a few ns and about 13 bytes.
 * Calls return nothing (a creation returns the id), never block, never allocate, keep errno, and may be made from any OS thread
 * and from signal handlers.  The trace counts events that could not be recorded, by cause.
 *
 *	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
 *	WEFT_LABEL(request, "GET /");
 *	weft_await(handler, request);
 *	...
 *	weft_resolve(reader, request);
 *	weft_read(handler, request);
 *
 * Start with weft_start(), or with WEFT_TRACE in the environment of any program that links the library:
 *
 *	WEFT_TRACE=DIR[,size=64M][,mode=ring|grow][,packets=N][,overwrite][,standby]	(%p in DIR becomes the process id)
 *	WEFT_TRACE=memory[,size=4M][,mode=...][,packets=N][,packet=4096][,streams=16]	(for weft save --pid, core dumps)
 *
 * With WEFT_DISABLE defined before this file is included, every call compiles to nothing. The names in capitals are macros: each
 * defines a static object at its place, so a text given to one is a literal.  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_H
#define WEFT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>
#include <weft/vocabulary.h>

/* The initializer of a struct weft_record_text, or one clear error message if the text is no literal.  Defined here, since static
 * initializers need it before record_inline.h. */
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

/* A promise.  Ids are unique among all OS threads and all traces of a process.  WEFT_SYSTEM_ID (-1) is the system.  A creation
 * returns 0 while nothing records: a promise that is not in the trace. */
typedef int64_t weft_id;

/* A word that is read and written atomically, also on 32-bit CPUs. */
typedef uint64_t weft_word __attribute__((aligned(8)));

/* The source location where a promise is created; see WEFT_SITE(). */
struct weft_record_site {
	weft_word key;
	const char *file, *function;
	uint32_t line;
};

/* A location in machine code, for recorders of programs without their source: the call that returns to `address` creates the
 * promise.  The trace stores it once, as an offset in its file, and readers find its name.  Zero all members but the address, and
 * keep the struct at its address.  If the file at the address is unloaded, set key to 0. */
struct weft_record_place {
	weft_word key;
	const void *address;
};

/* A text known at compile time: the handle of a counter; see WEFT_TEXT().  The trace stores it once. */
struct weft_record_text {
	weft_word key;
	const char *text;
};

/* ---- Starting and stopping ---- */

enum weft_record_mode {
	WEFT_RECORD_RING = 0, /* keep the newest events */
	WEFT_RECORD_GROW = 1  /* keep the oldest events; events beyond the size limit are lost */
};

/* Options.  Set directory or buffer; zero selects the default for every other field. */
struct weft_record_options {
	const char *directory; /* path to create with mode 0700, files with 0600; %p in it becomes the process id */
	bool overwrite;        /* replace an existing trace there; never replaces anything else */
	enum weft_record_mode mode;
	uint64_t size_bytes; /* ring: size of each OS thread's ring, 0: 16 MiB.  grow: limit of the trace, 0: none */
	unsigned packets;    /* packets of a ring, 2 to 65536, 0: 16.  Reusing a packet overwrites all of its events at once */
	/* grow: size of a file, 0: 1 MiB.  Buffer: size of each packet, also for metadata and definitions; 0: as `packets`
	 * implies.  With 4096 and a page-aligned buffer, each page of a memory image is readable alone. */
	uint64_t packet_bytes;

	/* Memory of the caller instead of a directory, 8-byte aligned, valid until weft_stop() has returned. */
	void *buffer;
	size_t buffer_bytes;
	unsigned streams; /* number of OS threads that share the buffer, 0: 1 */

	/* Clock that returns non-decreasing ticks (a decrease counts as no change).  NULL: the CPU's counter if it is invariant,
	 * else CLOCK_MONOTONIC.  Required in a freestanding core. */
	uint64_t (*clock)(void);
	uint64_t clock_hz;
	uint64_t (*wall_ns)(void); /* returns ns since 1970; NULL: the system's clock, if any */
	bool use_monotonic;        /* use CLOCK_MONOTONIC even if the counter is invariant */
	/* `clock` is a hardware counter, which cannot be set: its rate relative to another host changes by at most 30 ppm within
	 * a second.  Readers then compute tighter clock offsets between hosts (weft_sent()). */
	bool is_counter;

	const char *host, *process, *command; /* NULL: as the system reports */
	/* Text for weft info: recorded runtimes and functions; NULL: none.  Not copied: must stay valid until weft_stop() has
	 * returned, which reads it again. */
	const char *runtimes;

	/* Freestanding: called around the change of a packet, to disable interrupts.  Events of interrupt handlers in between
	 * would be lost and counted. */
	uint64_t (*enter)(void);
	void (*leave)(uint64_t state);

	weft_id first_id; /* first id, unless an earlier trace used it already; 0: 1 */
};

/* Starts to record.  When it returns, the calling OS thread has its first packet, and the disk has space for the others.
 *
 * Copies the options and their texts, except `runtimes`.  Returns WEFT_OK or WEFT_EBUSY (this process records already, or another
 * process records into that directory), WEFT_EEXIST (the directory is not empty and not a trace, or overwrite is not set),
 * WEFT_EINVAL (options), WEFT_ETOOBIG (packets too small for a header and an event), WEFT_ENOSPC, WEFT_EACCES (also: the
 * directory is a symbolic link, belongs to another user, or is writable by others), WEFT_ENOENT, WEFT_EIO, WEFT_ENOMEM,
 * WEFT_ENOTSUP (compiled with WEFT_DISABLE, or no OS thread can be made that opens the files). In a child after a fork it starts
 * a trace of the child. May be called on any OS thread, not in a signal handler.  Takes about 4 ms of CPU time, mostly to create
 * files; longer on a busy disk. */
static inline int weft_start(const struct weft_record_options *options);

/* Returns the problem of this process's last weft_start() as one clause; "" if it succeeded. */
static inline const char *weft_start_error(void);

/* Ends the trace: stops recording, frees unused files and bytes, and marks the metadata "finished".  Does nothing if nothing
 * records; runs automatically at exit().  May be called on any OS thread, not in a signal handler. */
static inline void weft_stop(void);

/* Returns the version of the loaded library, as `weft --version` prints it. */
static inline const char *weft_version(void);

/* Returns whether events are recorded now.  Costs one load. */
static inline bool weft_is_on(void);

/* ---- Promises ----
 *
 * `by` is the promise that acts: the one whose code runs, which weft_running() returns, or WEFT_SYSTEM_ID. */

/* Creates a promise of a kind at this source location, by the running promise; returns its id. */
#define WEFT_CREATE(kind) weft_create_here(kind, WEFT_SITE())

/* Creates a promise by another promise than the running one; returns its id. */
#define WEFT_CREATE_BY(by, kind) weft_create(by, kind, WEFT_SITE())

/* Returns this source location, a struct weft_record_site *, valid as long as the program's code. */
#define WEFT_SITE() WEFT__SITE()

/* Create a promise at a site, which may be NULL.  The two macros above call these functions. */
static inline weft_id weft_create_here(enum weft_kind kind, struct weft_record_site *site);
static inline weft_id weft_create(weft_id by, enum weft_kind kind, struct weft_record_site *site);

/* Creates a promise at a location in the machine code. */
static inline weft_id weft_create_at(weft_id by, enum weft_kind kind, struct weft_record_place *place);

/* Creates an internal promise of owner, which a library uses to answer a call.  Readers attribute its events to the owner, unless
 * they are run with --parts.  place may be NULL.  Slower than the other creations. */
static inline weft_id weft_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner);

/* Declares that promise is an internal promise of owner; call it before weft_pending() of promise. */
static inline void weft_belongs(weft_id promise, weft_id owner);

/* Records that promise sent message `number` of a sender, or handles it.  Both ends, even in two processes, must use the same
 * sender text, such as "BUS-GUID :1.42".  Readers then see that the sending promise waits for the handling one. */
static inline void weft_message(weft_id promise, uint32_t number, const char *sender, bool is_handled);

/* ---- Connections: join the traces of both ends ---- */

/* Numbers of bytes written to and read from a connection since it was made. */
struct weft_positions {
	uint64_t sent, received;
	uint32_t weft__peer; /* private to the recorder: inode of a unix socket's peer */
};

#if __STDC_HOSTED__
/* Declares that promise is one end of a connection; the other end may be in another process or on another host.  fd is a
 * connected TCP socket, a connected unix stream socket, or one end of a pipe.  did_connect: this end called connect().  Records
 * the addresses or inodes, and stores the positions of the connection in *positions.  TCP positions count from the connection's
 * creation.  Other positions count from this call, so call it before the first byte.
 *
 * Returns false, with nothing recorded, if fd is no such connection, if a system call filter is active, or if nothing records.
 * Keeps errno.  Must not be called in signal handlers.  Costs seven system calls.  A unix socket costs 100 us, on an OS thread
 * with an own descriptor table, and only 100 unix sockets per second are recorded. */
static inline bool weft_connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions);

/* Repeats the identity and positions of a connection; call it in a weft_list_pending_fn, after weft_pending() of the same
 * promise. */
static inline void weft_still_connected(weft_id promise, int fd, const struct weft_positions *positions);
#endif

/* Records that bytes are about to be written to the connection, up to that position; call it before the system call.  If the
 * kernel takes fewer bytes, call it again with the position that was reached. */
static inline void weft_sent(weft_id connection, uint64_t position);

/* Records that bytes were read from the connection, up to that position; call it after the system call. */
static inline void weft_received(weft_id connection, uint64_t position);

/* ---- UDP datagrams: order the sender before the receiver ---- */

struct sockaddr;

/* A digest of a datagram's bytes; initialise it with zeros. */
struct weft_digest {
	uint64_t sum, bytes;
};

#if __STDC_HOSTED__
/* Adds the next bytes of the datagram; bytes beyond the first 64 are only counted. */
static inline void weft_digest(struct weft_digest *digest, const void *bytes, size_t count);

/* Records that promise is about to send a datagram through the socket fd; call it before the system call.  `to` is the target
 * address; NULL: the peer of fd.  Records the target, and a 63-bit digest of the bytes.  Keeps errno.  Costs two system calls if
 * `to` is NULL.  Records nothing while a system call filter is active. */
static inline void weft_datagram_sent(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest);

/* Records that promise handles a datagram from the socket fd; call it after the system call.  Keeps errno.  Costs two system
 * calls. Records nothing while a system call filter is active. */
static inline void weft_datagram_received(weft_id promise, int fd, const struct weft_digest *digest);
#endif

/* ---- Events of a promise ---- */

/* Records that promise's code, the function at place, was called at time since (weft_now()) and ran for long.  place is the
 * function's address plus 1, as if it were a return address; NULL: records nothing.  Stalls then name the function. */
static inline void weft_callback(weft_id promise, struct weft_record_place *place, uint64_t since);

/* Records the call stack of promise's creation: return addresses, innermost first.  Keeps the first 16.  The trace
 * stores each address once. */
#define WEFT_STACK_MAX 16
static inline void weft_stack(weft_id promise, const void *const *addresses, unsigned count);

/* Records where promise calls what the next event of this OS thread records: weft_await(), weft_hold(), a pause or a sleep.
 * Findings then name the function.  place: as for weft_create_at(); NULL: records nothing. */
static inline void weft_place(weft_id promise, struct weft_record_place *place);

/* The same, with the name of the function that is called there, such as "waitpid": findings about a sleep name it.  call: not
 * NULL and not empty; the recorder copies it. */
static inline void weft_call_place(weft_id promise, struct weft_record_place *place, const char *call);

/* The same, for a place in the source of another language.  site: as for weft_create(); NULL: records nothing. */
static inline void weft_call_site(weft_id promise, struct weft_record_site *site, const char *call);

/* Records that promise's code was called that many times since its OS thread last slept, although nothing happened to it: it
 * keeps a CPU busy.  Call it rarely, for example when the number has doubled. */
static inline void weft_spins(weft_id promise, uint64_t calls);

/* Labels promise with a text.  The first label is its name, later ones record its progress. */
#define WEFT_LABEL(promise, literal)                                                                                             \
	weft_label_text(promise, WEFT__TEXT(literal, "WEFT_LABEL takes a string literal; use weft_label()"))
static inline void weft_label(weft_id promise, const char *text);
static inline void weft_label_bytes(weft_id promise, const char *text, size_t bytes);
static inline void weft_label_text(weft_id promise, struct weft_record_text *text);

/* Declares that promise must resolve: if it never does, that is a failure. */
static inline void weft_should_resolve(weft_id promise);

/* Records that promise waits for input, which is pending. */
static inline void weft_await(weft_id promise, weft_id input);

/* Records that promise does not wait for input any more, however input ends. */
static inline void weft_awaits_no_more(weft_id promise, weft_id input);

/* Records that promise holds lock, of kind WEFT_KIND_LOCK: a promise that awaits the lock waits for promise.  Several promises
 * may hold a lock, such as the readers of a readers-writer lock.  Findings about deadlocks then name the holders. */
static inline void weft_hold(weft_id promise, weft_id lock);

/* Records that promise does not hold lock any more. */
static inline void weft_release(weft_id promise, weft_id lock);

/* Records that promise read input, which has ended; promise runs now. */
static inline void weft_read(weft_id promise, weft_id input);

/* Records a read without a change of the running promise. */
static inline void weft_read_later(weft_id promise, weft_id input);

/* Records that by resolved promise with a value. */
static inline void weft_resolve(weft_id by, weft_id promise);

/* Records that by resolved promise with an error. */
#define WEFT_FAIL(by, promise, literal)                                                                                          \
	weft_fail_text(by, promise, WEFT__TEXT(literal, "WEFT_FAIL takes a string literal; use weft_fail()"))
static inline void weft_fail(weft_id by, weft_id promise, const char *error);
static inline void weft_fail_text(weft_id by, weft_id promise, struct weft_record_text *error);

/* Records that promise, which is pending, becomes into: the two are one promise from now on. */
static inline void weft_become(weft_id promise, weft_id into);

/* Records that from sent promise a message; promise runs now. */
static inline void weft_signal(weft_id from, weft_id promise);

/* Records a message without a change of the running promise. */
static inline void weft_signal_only(weft_id from, weft_id promise);

/* ---- The running promise of this OS thread ---- */

/* Records that promise runs now. */
static inline void weft_run(weft_id promise);

/* Records that the OS thread sleeps from now on, and why. */
static inline void weft_idle(enum weft_idle why);

/* Records that the sleep is over; promise runs now. */
static inline void weft_resume(weft_id promise);

/* Returns the running promise of this OS thread, as the calls above recorded it; WEFT_SYSTEM_ID if none, or if nothing records.
 */
static inline weft_id weft_running(void);

/* ---- Counters, pauses, notes ---- */

/* Defines a static struct weft_record_text for a literal, and returns its address. */
#define WEFT_TEXT(literal) WEFT__TEXT(literal, "WEFT_TEXT takes a string literal")

/* Initialises a counter's handle: static struct weft_record_text requests = WEFT_COUNTER("requests"); */
#define WEFT_COUNTER(literal) WEFT__INITIAL(literal, "WEFT_COUNTER takes a string literal")

/* Record that by set the counter to value, or changed it by change. */
static inline void weft_counter_set(weft_id by, struct weft_record_text *counter, int64_t value);
static inline void weft_counter_add(weft_id by, struct weft_record_text *counter, int64_t change);

/* Record that nothing can run from now on, and why ("gc"), until weft_pause_end(). */
#define WEFT_PAUSE_BEGIN(literal) weft_pause_begin_text(WEFT__TEXT(literal, "WEFT_PAUSE_BEGIN takes a string literal"))
static inline void weft_pause_begin_text(struct weft_record_text *why);
static inline void weft_pause_end(void);

/* Records that nothing could run for the last duration_ns. */
#define WEFT_PAUSE(literal, duration_ns) weft_pause_text(WEFT__TEXT(literal, "WEFT_PAUSE takes a string literal"), duration_ns)
static inline void weft_pause_text(struct weft_record_text *why, uint64_t duration_ns);

/* Records a free-form text about promise. */
#define WEFT_NOTE(promise, literal)                                                                                              \
	weft_note_text(promise, WEFT__TEXT(literal, "WEFT_NOTE takes a string literal; use weft_note()"))
static inline void weft_note(weft_id promise, const char *text);
static inline void weft_note_text(weft_id promise, struct weft_record_text *text);

/* Requests that the trace is kept, with a reason: any short text.  If `weft watch` follows this trace, it saves a copy. Otherwise
 * the call only records an event. */
static inline void weft_snapshot(const char *why);

/* ---- Pending promises: recorded repeatedly, so that a ring keeps the oldest ones ---- */

/* Returns the ticks of the trace's clock, also while nothing records. */
static inline uint64_t weft_now(void);

/* Lists pending promises of this OS thread: calls weft_pending() and weft_still_awaits() for about `budget` of them, starting at
 * `cursor`.  The cursor is 0 in the first call, and then the result of the previous call.  Returns 0 after the last promise. */
typedef uint64_t weft_list_pending_fn(void *data, uint64_t cursor, unsigned budget);

/* Registers `list`, which lists pending promises of this OS thread: all of them once when recording starts, and again a few at a
 * time as the ring advances.  It is called inside weft_run, weft_read, weft_signal, weft_idle and weft_resume, on this OS thread,
 * never in a signal handler.  NULL, or the end of the OS thread, unregisters it.  `data` stays the caller's. */
static inline void weft_list_pending(weft_list_pending_fn *list, void *data);

/* Records that promise is pending: its kind, site, label, creator, and the weft_now() of its creation in `since` (0: unknown).
 * site and label may be NULL.  Pass promise 0 if it was created while nothing recorded; it gets an id now.  Returns the id. */
static inline weft_id weft_pending(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, uint64_t since, const char *label);

/* Records a pending promise with a location in the machine code, which may be NULL. */
static inline weft_id weft_pending_at(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place, uint64_t since, const char *label);

/* Records that promise, which is pending, waits for input. */
static inline void weft_still_awaits(weft_id promise, weft_id input);

#ifdef __cplusplus
}
#endif

#include <weft/record_inline.h>

#endif
