/* record.h: records the promises of a program.
 *
 * A promise is one operation in flight: a request, a timer, a coroutine.  A promise gets an id when it is created; each call
 * records one fact about a promise.  A call costs one load and one branch if the process does not record, otherwise a few ns and
 * about 13 bytes of trace.  Calls return nothing (a creation returns the id), never block, never allocate, keep errno, and may be
 * made from any OS thread and from signal handlers.  The trace has the number of events that could not be recorded, for each
 * cause.
 *
 *	weft_id request = WEFT_CREATE(WEFT_KIND_REQUEST);
 *	WEFT_LABEL(request, "GET /");
 *	weft_await(handler, request);
 *	...
 *	weft_resolve(reader, request);
 *	weft_read(handler, request);
 *
 * A program starts to record by weft_start(), or by WEFT_TRACE in its environment:
 *
 *	WEFT_TRACE=DIR[,size=64M][,mode=ring|grow][,packets=N][,overwrite][,standby]	(%p in DIR becomes the process id)
 *	WEFT_TRACE=memory[,size=4M][,mode=...][,packets=N][,packet=4096][,streams=16]	(for weft save --pid, core dumps)
 *
 * If WEFT_DISABLE is defined before this file is included, every call compiles to nothing.  Calls with names in capitals are
 * macros that define a static object, so each text that such a macro takes must be a literal.  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_H
#define WEFT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weft/status.h>
#include <weft/vocabulary.h>

/* The initializer of a struct weft_record_text; gives one clear error message if the text is no literal.  This macro is not in
 * record_inline.h, since static initializers of programs need it earlier. */
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

/* The id of a promise, unique among all OS threads and all traces of a process.  The id WEFT_SYSTEM_ID (-1) is the event loop,
 * when no promise runs.  A creation returns id 0 if the process does not record; id 0 is a promise that is not in the trace. */
typedef int64_t weft_id;

/* A 64-bit word that is aligned so that 32-bit CPUs too read and write it atomically. */
typedef uint64_t weft_word __attribute__((aligned(8)));

/* The source location where a promise is created; see WEFT_SITE(). */
struct weft_record_site {
	weft_word key;
	const char *file, *function;
	uint32_t line;
};

/* A location in machine code, used to record programs without their source: a promise is created by the call that returns to
 * `address`.  The trace stores each location once, as an offset in the program or library file, and readers find the name of the
 * function there.  Set all members except `address` to 0, and do not move the struct.  If the library at `address` is unloaded,
 * set key to 0. */
struct weft_record_place {
	weft_word key;
	const void *address;
};

/* A text known at compile time, such as the name of a counter; see WEFT_TEXT().  The trace stores each such text once. */
struct weft_record_text {
	weft_word key;
	const char *text;
};

/* ---- Starting and stopping ---- */

enum weft_record_mode {
	WEFT_RECORD_RING = 0, /* keep the newest events, overwrite the oldest */
	WEFT_RECORD_GROW = 1  /* keep the oldest events; events beyond the size limit are lost */
};

/* Options of weft_start().  Set `directory` or `buffer`; 0 selects the default of every other field. */
struct weft_record_options {
	const char *directory; /* path of the trace, created with mode 0700 and files of mode 0600; %p in the path becomes the
				  process id */
	bool overwrite; /* whether weft_start() replaces an existing trace at `directory`; a directory that is no trace is never
			   replaced */
	enum weft_record_mode mode;
	uint64_t size_bytes; /* mode ring: size of each OS thread's ring, 0: 16 MiB; mode grow: limit of the trace, 0: none */
	unsigned packets;    /* number of packets of a ring, 2 to 65536, 0: 16; a full ring loses one packet of events at once */
	/* In mode grow: size of a file, 0: 1 MiB.  With a buffer: size of each packet, also of those for metadata and
	 * definitions; 0: the buffer divided by `streams` and `packets`.  With packet_bytes 4096 and a page-aligned buffer, each
	 * page of a memory image is readable alone. */
	uint64_t packet_bytes;

	/* Memory of the caller that holds the trace instead of a directory: 8-byte aligned, valid until weft_stop() has
	 * returned. */
	void *buffer;
	size_t buffer_bytes;
	unsigned streams; /* number of OS threads that share the buffer, 0: 1 */

	/* Clock that returns non-decreasing ticks (a decrease counts as no change).  NULL: the CPU's time stamp counter if its
	 * rate is constant, else CLOCK_MONOTONIC.  Must be set if there is no operating system. */
	uint64_t (*clock)(void);
	uint64_t clock_hz;
	uint64_t (*wall_ns)(void); /* time of day in ns since 1970; NULL: the system's clock, if any */
	bool use_monotonic;        /* whether to use CLOCK_MONOTONIC even if the CPU's counter has a constant rate */
	/* Whether `clock` is a hardware counter that no program can set: its rate relative to another host changes by at most 30
	 * ppm within a second.  Readers compute smaller error bounds of clock offsets between hosts whose clocks are counters. */
	bool is_counter;

	/* Texts in the trace: names of the host and of the process, and the command line.  NULL stands for the text that the
	 * system reports.
	 */
	const char *host, *process, *command;
	/* Recorded runtimes and functions, as a text that `weft info` prints; NULL: none.  The text is not copied, and must be
	 * valid until weft_stop() has returned. */
	const char *runtimes;

	/* Functions that disable and restore interrupts while a stream changes its packet, if there is no operating system; NULL:
	 * events of interrupt handlers during the change are lost and counted. leave() gets the result of enter(). */
	uint64_t (*enter)(void);
	void (*leave)(uint64_t state);

	weft_id first_id; /* id of the first promise, unless an earlier trace of the process used this id; 0: 1 */
};

/* Starts to record.  When weft_start() returns, the calling OS thread has its first packet, and the disk space of its other
 * packets is allocated.
 *
 * Copies the options and their texts, except `runtimes`.  Returns WEFT_OK or WEFT_EBUSY (this process records already, or another
 * process records into that directory), WEFT_EEXIST (the directory is not empty and not a trace, or is a trace and overwrite is
 * not set), WEFT_EINVAL (an option is out of range), WEFT_ETOOBIG (packets are too small for a header and an event), WEFT_ENOSPC,
 * WEFT_EACCES (also: the directory is a symbolic link, belongs to another user, or is writable by others), WEFT_ENOENT, WEFT_EIO,
 * WEFT_ENOMEM, WEFT_ENOTSUP (compiled with WEFT_DISABLE, or the helper thread that opens the files cannot be started).  After
 * fork(), a call of weft_start() in the child starts a new trace for the child. weft_start() may be called on any OS thread, but
 * not in a signal handler.  A start takes about 4 ms of CPU time, mostly to create files. */
static inline int weft_start(const struct weft_record_options *options);

/* Returns the error of this process's last weft_start() as a text of one clause; "" if that call succeeded. */
static inline const char *weft_start_error(void);

/* Ends the trace: stops recording, frees unused files and bytes, and marks the metadata "finished".  Does nothing if the process
 * does not record; exit() calls it.  May be called on any OS thread, but not in a signal handler. */
static inline void weft_stop(void);

/* Returns the version of the loaded library, as `weft --version` prints it. */
static inline const char *weft_version(void);

/* Returns whether the process records now.  Costs one load. */
static inline bool weft_is_on(void);

/* ---- Promises ----
 *
 * `by` is the promise whose code makes the call: weft_running(), or WEFT_SYSTEM_ID if no promise runs. */

/* Records that the running promise creates a promise of this kind at this source location; returns the id of the new promise. */
#define WEFT_CREATE(kind) weft_create_here(kind, WEFT_SITE())

/* Records that the promise `by` creates a promise of this kind at this source location; returns the id of the new promise. */
#define WEFT_CREATE_BY(by, kind) weft_create(by, kind, WEFT_SITE())

/* Returns this source location, a struct weft_record_site *, valid as long as the program's code. */
#define WEFT_SITE() WEFT__SITE()

/* Record that a promise is created at a source location (NULL: unknown); return the id of the new promise.  WEFT_CREATE() and
 * WEFT_CREATE_BY() call these functions. */
static inline weft_id weft_create_here(enum weft_kind kind, struct weft_record_site *site);
static inline weft_id weft_create(weft_id by, enum weft_kind kind, struct weft_record_site *site);

/* Does weft_create() with a location in the machine code instead of a source location. */
static inline weft_id weft_create_at(weft_id by, enum weft_kind kind, struct weft_record_place *place);

/* Creates an internal promise of `owner`: a promise that a library needs to answer a call of the program.  Readers attribute
 * events of an internal promise to its owner, unless they are run with --parts. place may be NULL.  weft_create_part() is slower
 * than the other creations. */
static inline weft_id weft_create_part(weft_id by, enum weft_kind kind, struct weft_record_place *place, weft_id owner);

/* Declares that `promise` is an internal promise of `owner`.  Must be called before weft_pending() for that promise. */
static inline void weft_belongs(weft_id promise, weft_id owner);

/* Records that `promise` sent message `number` of `sender`, or handles that message.  Both ends of a message, even in two
 * processes, must use the same text `sender`, such as "BUS-GUID :1.42".  Readers then see that the promise that sent the message
 * waits for the promise that handles it. */
static inline void weft_message(weft_id promise, uint32_t number, const char *sender, bool is_handled);

/* ---- Connections: readers join the traces of both ends ---- */

/* Numbers of bytes written to and read from a connection since the connection was made. */
struct weft_positions {
	uint64_t sent, received;
	uint32_t weft__peer; /* inode of a unix socket's peer; private to the recorder */
};

#if __STDC_HOSTED__
/* Declares that `promise` is one end of a connection; the other end may be in another process or on another host. fd is a
 * connected TCP socket, a connected unix stream socket, or one end of a pipe. did_connect must be true if this end called
 * connect().  Records the addresses or inodes, and stores the byte positions of the connection in *positions.  TCP positions
 * count from the connection's creation.  Positions of other connections count from this call, so call it before the first byte.
 *
 * Returns false, and records nothing, if fd is no such connection, if a system call filter is active, or if the process does not
 * record.  Keeps errno.  Must not be called in signal handlers.  Costs seven system calls.  A unix socket costs 100 us, since a
 * helper thread makes the system calls; only 100 unix sockets per second are recorded. */
static inline bool weft_connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions);

/* Records the addresses and positions of a connection again, for rings.  Call weft_still_connected() in a weft_list_pending_fn,
 * after weft_pending() of the same promise. */
static inline void weft_still_connected(weft_id promise, int fd, const struct weft_positions *positions);
#endif

/* Records that the bytes of a connection up to this position are about to be written.  Call weft_sent() before the system call.
 * If the kernel accepts fewer bytes, call weft_sent() again with the position after the accepted bytes. */
static inline void weft_sent(weft_id connection, uint64_t position);

/* Records that the bytes of a connection up to this position were read.  Call weft_received() after the system call. */
static inline void weft_received(weft_id connection, uint64_t position);

/* ---- UDP datagrams: readers order the sender before the receiver ---- */

struct sockaddr;

/* A digest of a datagram's bytes; a digest begins with all members 0. */
struct weft_digest {
	uint64_t sum, bytes;
};

#if __STDC_HOSTED__
/* Adds the next bytes of a datagram to its digest.  Bytes of the datagram after the first 64 are only counted. */
static inline void weft_digest(struct weft_digest *digest, const void *bytes, size_t count);

/* Records that `promise` is about to send a datagram through the socket fd.  Call weft_datagram_sent() before the system call.
 * `to` is the target address; NULL stands for the peer of fd.  The event has the target and a 63-bit digest of the bytes.  Keeps
 * errno.  Costs two system calls if `to` is NULL.  Records nothing while a system call filter is active. */
static inline void weft_datagram_sent(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest);

/* Records that `promise` handles a datagram from the socket fd.  Call weft_datagram_received() after the system call.  Keeps
 * errno.  Costs two system calls.  Records nothing while a system call filter is active. */
static inline void weft_datagram_received(weft_id promise, int fd, const struct weft_digest *digest);
#endif

/* ---- Events of a promise ---- */

/* Records that the code of `promise` ran for long: the function at `place`, called when weft_now() was `since`.  Findings about
 * long runs then name the function.  The address of `place` is that of the function plus 1, as if it were a return address.  If
 * place is NULL, records nothing. */
static inline void weft_callback(weft_id promise, struct weft_record_place *place, uint64_t since);

/* Records the call stack at the creation of `promise`: return addresses, the innermost first.  The trace keeps the first 16
 * addresses of a stack, and stores each address once. */
#define WEFT_STACK_MAX 16
static inline void weft_stack(weft_id promise, const void *const *addresses, unsigned count);

/* Records the place at which the code of `promise` makes the next event of this OS thread: a weft_await(), a weft_hold(), a pause
 * or a sleep.  Findings then name the function at that place.  If place is NULL, records nothing. */
static inline void weft_place(weft_id promise, struct weft_record_place *place);

/* Does weft_place(), and records the name of the function that is called at that place, such as "waitpid".  Findings about a
 * sleep then name the called function.  `call` must not be NULL or empty; the recorder copies the text. */
static inline void weft_call_place(weft_id promise, struct weft_record_place *place, const char *call);

/* Does weft_call_place() for a place in the source of another language, such as Python.  If site is NULL, records nothing. */
static inline void weft_call_site(weft_id promise, struct weft_record_site *site, const char *call);

/* Records that the code of `promise` was called `calls` times since its OS thread last slept, although nothing happened to the
 * promise: the code keeps a CPU busy.  Call weft_spins() rarely, for example when the number of calls has doubled. */
static inline void weft_spins(weft_id promise, uint64_t calls);

/* Label `promise` with a text.  The first label is the name of a promise, later labels record its progress. */
#define WEFT_LABEL(promise, literal)                                                                                             \
	weft_label_text(promise, WEFT__TEXT(literal, "WEFT_LABEL takes a string literal; use weft_label()"))
static inline void weft_label(weft_id promise, const char *text);
static inline void weft_label_bytes(weft_id promise, const char *text, size_t bytes);
static inline void weft_label_text(weft_id promise, struct weft_record_text *text);

/* Declares that `promise` must end: if it never ends, readers report a fault. */
static inline void weft_should_resolve(weft_id promise);

/* Records that `promise` waits for the promise `input`, which is pending. */
static inline void weft_await(weft_id promise, weft_id input);

/* Records that `promise` does not wait for the promise `input` any more. */
static inline void weft_awaits_no_more(weft_id promise, weft_id input);

/* Records that `promise` holds `lock`, a promise of kind WEFT_KIND_LOCK; a promise that awaits the lock waits for its holder.
 * Several promises may hold a lock, such as the readers of a readers-writer lock.  Findings about deadlocks name the holders. */
static inline void weft_hold(weft_id promise, weft_id lock);

/* Records that `promise` does not hold `lock` any more. */
static inline void weft_release(weft_id promise, weft_id lock);

/* Records that `promise` took the result of `input`, which has ended, and that `promise` runs now. */
static inline void weft_read(weft_id promise, weft_id input);

/* Does weft_read(), but the running promise stays the same. */
static inline void weft_read_later(weft_id promise, weft_id input);

/* Records that the code of `by` resolved `promise` with a value. */
static inline void weft_resolve(weft_id by, weft_id promise);

/* Record that the code of `by` ended `promise` with an error. */
#define WEFT_FAIL(by, promise, literal)                                                                                          \
	weft_fail_text(by, promise, WEFT__TEXT(literal, "WEFT_FAIL takes a string literal; use weft_fail()"))
static inline void weft_fail(weft_id by, weft_id promise, const char *error);
static inline void weft_fail_text(weft_id by, weft_id promise, struct weft_record_text *error);

/* Records that `promise`, which is pending, and `into` are one promise from now on. */
static inline void weft_become(weft_id promise, weft_id into);

/* Records that the promise `from` woke `promise` without ending it, and that `promise` runs now. */
static inline void weft_signal(weft_id from, weft_id promise);

/* Does weft_signal(), but the running promise stays the same. */
static inline void weft_signal_only(weft_id from, weft_id promise);

/* ---- The running promise of this OS thread ---- */

/* Records that the code of `promise` runs now on this OS thread. */
static inline void weft_run(weft_id promise);

/* Records that this OS thread sleeps from now on, and why. */
static inline void weft_idle(enum weft_idle why);

/* Records that this OS thread does not sleep any more, and that `promise` runs now. */
static inline void weft_resume(weft_id promise);

/* Returns the promise that runs on this OS thread, as weft_run() and other calls recorded it.  Returns WEFT_SYSTEM_ID if no
 * promise runs, or if the process does not record.
 */
static inline weft_id weft_running(void);

/* ---- Counters, pauses, notes ---- */

/* Defines a static struct weft_record_text for a literal, and returns its address. */
#define WEFT_TEXT(literal) WEFT__TEXT(literal, "WEFT_TEXT takes a string literal")

/* Initialises the name of a counter: static struct weft_record_text requests = WEFT_COUNTER("requests"); */
#define WEFT_COUNTER(literal) WEFT__INITIAL(literal, "WEFT_COUNTER takes a string literal")

/* Record that the code of `by` set the counter to `value`, or added `change` to the counter. */
static inline void weft_counter_set(weft_id by, struct weft_record_text *counter, int64_t value);
static inline void weft_counter_add(weft_id by, struct weft_record_text *counter, int64_t change);

/* Record that no promise can run until weft_pause_end(), and why, for example "gc". */
#define WEFT_PAUSE_BEGIN(literal) weft_pause_begin_text(WEFT__TEXT(literal, "WEFT_PAUSE_BEGIN takes a string literal"))
static inline void weft_pause_begin_text(struct weft_record_text *why);
static inline void weft_pause_end(void);

/* Record that no promise could run for the last duration_ns, and why. */
#define WEFT_PAUSE(literal, duration_ns) weft_pause_text(WEFT__TEXT(literal, "WEFT_PAUSE takes a string literal"), duration_ns)
static inline void weft_pause_text(struct weft_record_text *why, uint64_t duration_ns);

/* Record a free-form text about `promise`. */
#define WEFT_NOTE(promise, literal)                                                                                              \
	weft_note_text(promise, WEFT__TEXT(literal, "WEFT_NOTE takes a string literal; use weft_note()"))
static inline void weft_note(weft_id promise, const char *text);
static inline void weft_note_text(weft_id promise, struct weft_record_text *text);

/* Requests a copy of the trace, with a short text as the reason.  `weft watch` saves the copy if it follows this trace.  If no
 * `weft watch` follows the trace, the call only records an event. */
static inline void weft_snapshot(const char *why);

/* ---- Pending promises: recorded repeatedly, so that a ring keeps the oldest ones ---- */

/* Returns the ticks of the trace's clock, also if the process does not record. */
static inline uint64_t weft_now(void);

/* Lists pending promises of this OS thread: calls weft_pending() and weft_still_awaits() for about `budget` promises, beginning
 * at `cursor`.  The cursor is 0 in the first call, and later the result of the previous call.  The function returns 0 after the
 * last promise. */
typedef uint64_t weft_list_pending_fn(void *data, uint64_t cursor, unsigned budget);

/* Registers the function `list` for the pending promises of this OS thread.  The recorder calls `list` for all promises when
 * recording starts, and later for a few promises at a time as the ring advances.  `list` is called inside weft_run, weft_read,
 * weft_signal, weft_idle and weft_resume, on this OS thread, never in a signal handler.  A call with list NULL, or the end of the
 * OS thread, unregisters the function.  `data` stays the caller's. */
static inline void weft_list_pending(weft_list_pending_fn *list, void *data);

/* Records that `promise` is pending, with its kind, site, label, creator `by`, and time of creation: `since` is the weft_now() of
 * that time, 0 if unknown. site and label may be NULL.  If `promise` is 0, because it was created before recording, it gets an
 * id.  Returns the id. */
static inline weft_id weft_pending(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_site *site, uint64_t since, const char *label);

/* Does weft_pending() with a location in the machine code, which may be NULL, instead of a source location. */
static inline weft_id weft_pending_at(
    weft_id by, weft_id promise, enum weft_kind kind, struct weft_record_place *place, uint64_t since, const char *label);

/* Records in a weft_list_pending_fn that `promise`, which is pending, waits for the promise `input`. */
static inline void weft_still_awaits(weft_id promise, weft_id input);

#ifdef __cplusplus
}
#endif

#include <weft/record_inline.h>

#endif
