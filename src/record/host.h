/* host.h: declares the parts of the recorder that need an operating system (private to src/record).
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_HOST_H
#define WEFT_RECORD_HOST_H

#include <sys/types.h>

#include "record/core.h"
#include "wire/standby.h"

/* An OS thread's stream.  The stream is in two allocations, because the kernel clears the first one in a child after a fork. */
struct weft__thread {
	struct weft__stream *stream;
	struct weft__thread *next;      /* list of all */
	struct weft__thread *next_free; /* next stream in the list of those whose OS thread has ended */
	bool is_free;
	bool is_spare;       /* whether the stream's storage is ready for the next new OS thread */
	bool is_closed;      /* whether no event has been in progress in the stream since the stop */
	uint64_t generation; /* number of the recording in which the stream's storage was made */
	size_t mapped_bytes; /* size of the mapping at storage.base; 0 if there is nothing to unmap */
	unsigned files;      /* number of files made so far, for a trace in grow mode */
	char thread_name[WEFT_THREAD_NAME_SIZE];
};

/* fd_thread.c */
/* Calls work(data) on a thread with a descriptor table of its own, and waits for the thread's end.  Returns the result of
 * `work`, or WEFT_ENOTSUP if no such thread could be made.  Only one such thread runs at a time.  The work must not access
 * mappings of traces, and must not take locks. Any OS thread may call this function, also in signal handlers; it takes about 50
 * us. */
int weft__fd_thread_run(int (*work)(void *), void *data);
void weft__fd_thread_lock(void);
void weft__fd_thread_unlock(void);
/* Resets the thread's state in a child after a fork. */
void weft__fd_thread_after_fork(void);

/* sigbus.c */
/* Protect the program between begin and end: a failed store into a trace file then ends the recording of an OS thread, and not
 * the program. */
void weft__sigbus_begin(void);
void weft__sigbus_end(void);
/* Unblocks SIGBUS at an OS thread's first event, because a blocked SIGBUS would kill the process. */
void weft__sigbus_unblock(void);

/* clock.c */
struct weft__clock_choice {
	bool use_counter;
	uint64_t hz;
	const char *source, *measured;
	bool exact;
};
bool weft__clock_has_counter(void);
/* Queries the frequency of the CPU's counter from the kernel.  The function opens a descriptor, so it must run through
 * weft__fd_thread_run(). */
void weft__clock_query_hz(void);
void weft__clock_choose(struct weft__clock_choice *out, bool use_monotonic);
uint64_t weft__monotonic_ns(void);
uint64_t weft__wall_ns(void);
/* Reads the trace's clock and the wall clock at one moment. */
void weft__clock_pair(uint64_t *ticks, uint64_t *wall_ns);

/* trace_dir.c */
/* Makes the trace's directory, its metadata and its definitions.  On failure, the function returns a negative enum weft_status,
 * and the problem in `why`. */
int weft__trace_dir_begin(
    const struct weft_record_options *options, const struct weft_metadata *metadata, char *why, size_t why_size);
/* Makes the first packets of `count` streams, with instance numbers from `instance` on, in one call of weft__fd_thread_run();
 * returns the number of streams made.  Call this function with the lock of the OS threads held. */
#define WEFT__SPARE_STREAMS 4u      /* made at the start */
#define WEFT__MAX_SPARE_STREAMS 16u /* made at once later */
unsigned weft__trace_dir_make_spares(struct weft__thread *const threads[], unsigned count, unsigned instance);
/* Makes a stream's first packet; if `whole`, fails unless there is space for the whole ring.  On failure, returns a negative
 * enum weft_status, with errno. */
int weft__trace_dir_make_storage(struct weft__thread *thread, unsigned instance, bool whole);
/* Removes a trace whose recording could not start. */
void weft__trace_dir_abandon(void);
/* Frees the unused space of the recording's streams, and writes the final metadata. */
void weft__trace_dir_end(const struct weft_metadata *metadata, const struct weft__thread *threads);
/* Forgets the trace's directory, whose files stay. */
void weft__trace_dir_release(void);
/* Returns the absolute path of the current trace, or else of the last trace. */
const char *weft__trace_dir_path(void);
void weft__trace_dir_after_fork(void);
/* Makes the first packet of the stream of allocations; returns false, with errno, on failure. */
#define WEFT__MAX_MEMORY_FILES 256u
bool weft__trace_dir_make_memory(struct weft__stream *stream);
/* Returns how many bytes of events the trace may still have in that stream. */
uint64_t weft__trace_dir_memory_left(const struct weft__stream *stream);
void weft__trace_dir_unmap_memory(void);
void weft__storage_unmap(struct weft__thread *thread);
/* Facts about this process from the system; a text is empty if unknown. */
struct weft__process_info {
	char process[64], command[2048];
	char recorder[128]; /* unique name of this process, also across boots and containers */
};
void weft__process_info_read(struct weft__process_info *info);

/* module.c */
void weft__modules_start(void);

/* Locks the list of OS threads; the following functions need this lock (thread.c). */
void weft__threads_lock(void);
void weft__threads_unlock(void);
/* Makes all OS threads leave their streams. */
void weft__threads_retire(void);
/* Unmaps the memory of the threads that left their streams, after the files are final. */
void weft__threads_unmap(void);
const struct weft__thread *weft__threads(void);
/* Makes the first packets of streams for future OS threads, as many as libuv's pool has, so that the first event of such a
 * thread costs only 10 us. */
void weft__threads_make_spares(void);
/* Makes this OS thread's stream ready; returns false without space or memory. */
bool weft__attach_locked(bool whole);
void weft__threads_init(void);
/* Returns the stream of a trace directory whose packet contains the address; NULL: none.  The function needs no lock, and may be
 * called in a SIGBUS handler. */
struct weft__stream *weft__stream_at(const unsigned char *address);
/* Returns whether this process is a child that was made without pthread_atfork(); such a child records nothing any more. */
bool weft__is_unannounced_child(void);
/* Returns whether this OS thread holds the lock, because this code runs in a SIGBUS handler, or in a clock function of the
 * program. */
bool weft__threads_locked_here(void);
/* Writes the positions of the streams into the standby page, for a process that writes into this one. */
void weft__threads_describe(struct weft_standby *page);
void weft__reset_after_fork(void);
/* Blocks all signals except SIGBUS, which sigbus.c needs. */
uint64_t weft__signals_block(void);
void weft__signals_restore(uint64_t state);

/* Starts to measure the CPU usage of this OS thread, which begins to write the stream (usage.c). */
void weft__usage_begin(struct weft__stream *stream);

/* memory.c */
/* Ends the samples of a recording; returns when no thread writes any. */
void weft__memory_end(void);
void weft__memory_after_fork(void);

/* start.c */
enum weft__target { WEFT__TARGET_NONE, WEFT__TARGET_DIRECTORY, WEFT__TARGET_BUFFER };
extern enum weft__target weft__target;
/* Bodies of weft_start() and weft_stop(); the caller holds the lock. */
int weft__start_locked(const struct weft_record_options *options);
void weft__stop_locked(void);
/* Ends the recording in a child process after a fork. */
void weft__recording_reset(void);

#endif
