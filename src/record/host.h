/* host.h: the recorder's parts that need an operating system (private to src/record).  SPDX-License-Identifier: ISC */
#ifndef WEFT_RECORD_HOST_H
#define WEFT_RECORD_HOST_H

#include <sys/types.h>

#include "record/core.h"

/* An OS thread's stream: two allocations, since the kernel empties the first in a child that a fork makes. */
struct weft__thread {
	struct weft__stream *stream;
	struct weft__thread *next;      /* of all there ever were */
	struct weft__thread *next_free; /* of those whose OS thread has ended */
	bool is_free;
	uint64_t generation; /* of the recording in which its storage was made */
	size_t mapped_bytes; /* of storage.base, 0: nothing to unmap */
	unsigned files;      /* made so far, of a trace that grows */
	char thread_name[WEFT_THREAD_NAME_SIZE];
};

/* clock.c */
struct weft__clock_choice {
	bool use_counter;
	uint64_t hz;
	const char *source, *measured;
	bool exact;
};
bool weft__clock_has_counter(void);
void weft__clock_choose(struct weft__clock_choice *out, bool use_monotonic);
uint64_t weft__monotonic(void);
uint64_t weft__wall_ns(void);
/* A moment by both clocks. */
void weft__clock_pair(uint64_t *ticks, uint64_t *wall_ns);

/* dir.c */
int weft__dir_start(const struct weft_record_options *options, char *why, size_t why_size);
/* A stream's ring or first file; negative enum weft_status. */
int weft__dir_storage(struct weft__thread *thread, unsigned instance);
int weft__dir_metadata(const struct weft_metadata *metadata);
/* Gives back what the stream did not use. */
void weft__dir_trim(struct weft__thread *thread);
/* Removes the trace that could not begin. */
void weft__dir_abandon(void);
/* After the last use of the directory. */
void weft__dir_end(void);
/* Of the definitions, which are written no more. */
void weft__dir_end_definitions(void);
void weft__dir_child(void);
void weft__unmap(struct weft__thread *thread);

/* thread.c; the lock is taken */
void weft__threads_lock(void);
void weft__threads_unlock(void);
void weft__threads_retire(void);
/* Makes this OS thread's stream ready; false: no room, no memory. */
bool weft__attach_locked(void);
void weft__threads_init(void);
uint64_t weft__signals_block(void);
void weft__signals_restore(uint64_t state);

/* start.c */
enum weft__target { WEFT__NOWHERE, WEFT__DIRECTORY, WEFT__BUFFER };
extern enum weft__target weft__target;
/* In a child: nothing records any more. */
void weft__forget(void);

#endif
