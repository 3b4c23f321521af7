/* host.h: the recorder's parts that need an operating system (private to src/record).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_HOST_H
#define WEFT_RECORD_HOST_H

#include <sys/types.h>

#include "record/core.h"
#include "wire/standby.h"

/* An OS thread's stream: two allocations, since the kernel empties the first in a child that a fork makes. */
struct weft__thread {
	struct weft__stream *stream;
	struct weft__thread *next;      /* of all there ever were */
	struct weft__thread *next_free; /* of those whose OS thread has ended */
	bool is_free;
	bool is_spare;       /* its storage is ready for the first OS thread to come */
	bool is_closed;      /* since the stop nobody is in the middle of an event in it */
	uint64_t generation; /* of the recording in which its storage was made */
	size_t mapped_bytes; /* of storage.base, 0: nothing to unmap */
	unsigned files;      /* made so far, of a trace that grows */
	char thread_name[WEFT_THREAD_NAME_SIZE];
};

/* aside.c */
/* Calls work(data) where files can be opened without the program's descriptors, and waits for its end; returns its answer, or
 * WEFT_ENOTSUP: no OS thread could be made for it.  One at a time.  The work touches no trace file's mapping and takes no lock.
 * Any OS thread, also in signal handlers; about 50 us. */
int weft__aside(int (*work)(void *), void *data);
void weft__aside_lock(void);
void weft__aside_unlock(void);
/* In a child after a fork: nobody works aside. */
void weft__aside_child(void);

/* guard.c */
/* Between these two a trace file that does not hold what is written ends the recording of an OS thread, not the program. */
void weft__guard_begin(void);
void weft__guard_end(void);
/* At its first event: an OS thread that blocks SIGBUS would be killed by it. */
void weft__guard_this_thread(void);

/* clock.c */
struct weft__clock_choice {
	bool use_counter;
	uint64_t hz;
	const char *source, *measured;
	bool exact;
};
bool weft__clock_has_counter(void);
/* Asks the kernel for the counter's frequency.  Aside: it opens a descriptor. */
void weft__clock_learn(void);
void weft__clock_choose(struct weft__clock_choice *out, bool use_monotonic);
uint64_t weft__monotonic(void);
uint64_t weft__wall_ns(void);
/* A moment by both clocks. */
void weft__clock_pair(uint64_t *ticks, uint64_t *wall_ns);

/* place.c */
/* Makes the directory, its metadata and its definitions; on failure negative enum weft_status, and why. */
int weft__place_begin(
    const struct weft_record_options *options, const struct weft_metadata *metadata, char *why, size_t why_size);
/* The first packets of `count` streams, instance numbers from `instance` on, in one stay aside; returns how many were made. */
#define WEFT__SPARES 4u
unsigned weft__place_spares(struct weft__thread *const threads[], unsigned count, unsigned instance);
/* A stream's first packet; `whole`: only if there is room for the whole ring; negative enum weft_status, and errno. */
int weft__place_storage(struct weft__thread *thread, unsigned instance, bool whole);
/* Removes the trace that could not begin. */
void weft__place_abandon(void);
/* Gives back what the streams of this recording did not use, and writes the metadata as they are at the end. */
void weft__place_end(const struct weft_metadata *metadata, const struct weft__thread *threads);
/* Lets go of the directory; what is in it stays. */
void weft__place_release(void);
/* Where the trace is, or the last one was; absolute. */
const char *weft__place_path(void);
void weft__place_child(void);
void weft__unmap(struct weft__thread *thread);
/* What the system says of this process; empty where it says nothing. */
struct weft__told {
	char process[64], command[2048];
	char recorder[128]; /* this process, as no other one is called */
};
void weft__tell(struct weft__told *told);

/* module.c */
void weft__modules_start(void);

/* thread.c; the lock is taken */
void weft__threads_lock(void);
void weft__threads_unlock(void);
/* Sends all out of their streams. */
void weft__threads_retire(void);
/* Gives back the memory of those that are out, after the files are as they stay. */
void weft__threads_unmap(void);
const struct weft__thread *weft__threads(void);
/* Makes the first packets of streams for OS threads to come, as many as libuv's pool has: their first event then costs 10 us. */
void weft__threads_prepare(void);
/* Makes this OS thread's stream ready; false: no room, no memory. */
bool weft__attach_locked(bool whole);
void weft__threads_init(void);
/* Without the lock, also in a handler of SIGBUS: whose packet an address is in, of a directory's; NULL: nobody's. */
struct weft__stream *weft__stream_at(const unsigned char *address);
/* Whether this process is a child that was made behind the back of pthread_atfork(): then nothing records in it any more. */
bool weft__is_strange_child(void);
/* Whether this OS thread has the lock: then this is a handler of SIGBUS, or a clock of the program's. */
bool weft__threads_locked_here(void);
/* Where whoever writes into this process finds the streams. */
void weft__threads_describe(struct weft_standby *page);
void weft__forget_all(void);
/* All but SIGBUS, which guard.c needs. */
uint64_t weft__signals_block(void);
void weft__signals_restore(uint64_t state);

/* usage.c: this OS thread begins to write the stream. */
void weft__usage_begin(struct weft__stream *stream);

/* start.c */
enum weft__target { WEFT__NOWHERE, WEFT__DIRECTORY, WEFT__BUFFER };
extern enum weft__target weft__target;
/* weft_start() and weft_stop(), locked. */
int weft__start_locked(const struct weft_record_options *options);
void weft__finish_locked(void);
/* In a child: nothing records any more. */
void weft__forget(void);

#endif
