/* os_tracks.h: gives the states of the program's threads at any time, from kernel records, for pictures.
 *
 * The tracks are built at the first query, because many models are never asked for them.  Several threads may query the tracks
 * at the same time.  SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_OS_TRACKS_H
#define WEFT_MODEL_OS_TRACKS_H

#include "model/kernel.h"

enum weft_os_state {
	WEFT_OS_RUNS,
	WEFT_OS_PREEMPTED, /* the thread is runnable, because its CPU was given to another thread */
	WEFT_OS_READY,     /* the thread is runnable, because its wait has ended, but it has no CPU yet */
	WEFT_OS_DISK,      /* blocked and not interruptible */
	WEFT_OS_BLOCKED,
	WEFT_OS_STATES
};

/* A thread of the program that has kernel records in the time of the trace. */
struct weft_os_track {
	uint32_t thread;            /* index into weft_kernel.threads */
	int64_t since_ns, until_ns; /* time range that kernel records cover */
	/* index of its first run in weft_os_tracks.ran: the promises that ran on it, up to the next track's index */
	size_t ran;
};

/* An interval in which a promise ran on a thread. */
struct weft_os_run {
	int64_t start_ns, end_ns;
	uint32_t promise, track;
};

struct weft_os_tracks {
	const struct weft_model *model;
	/* tracks: first threads that ran promises, in the order of their streams, then other threads; a sentinel ends .ran */
	struct weft_os_track *tracks;
	size_t count;
	uint32_t *of_stream; /* index of the track of each stream, or WEFT_NONE */
	struct weft_os_run *ran;
	struct weft_os_before {
		/* total time in each state; [WEFT_OS_RUNS] is always 0, because the thread ran in the rest of the time */
		uint64_t ns[WEFT_OS_STATES];
	} * before; /* by interval of weft_kernel.offs: total time in each state of the earlier intervals of its thread */
};

/* Returns the tracks; *out is NULL if context switches were not recorded.  WEFT_ENOMEM.  The first call takes time linear in
 * the number of kernel records; the tracks live as long as the model. */
int weft_model_os_tracks(const struct weft_model *model, const struct weft_os_tracks **out);

/* Computes the exact time that a thread had spent in each state by time_ns, as far as it is known. *near is a hint for the
 * search: 0 at first, and updated by each call.  With the hint, a slightly later time takes constant time, any other time
 * logarithmic time. */
void weft_os_times_until(
    const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, size_t *near, int64_t ns[WEFT_OS_STATES]);

/* Computes the time that a thread spent in each state between two times. */
void weft_os_sum_times(
    const struct weft_os_tracks *tracks, uint32_t track, int64_t from_ns, int64_t to_ns, int64_t ns[WEFT_OS_STATES]);

/* Counts the page faults of a thread between two times.  Logarithmic. */
size_t weft_os_faults(const struct weft_os_tracks *tracks, uint32_t track, int64_t from_ns, int64_t to_ns);

/* Finds the off-CPU interval of a thread at a time.  Returns NULL if the thread is on CPU, or if its state at the time is
 * unknown; *from_ns and *to_ns then bound that interval.  Logarithmic. */
const struct weft_off_cpu *weft_os_off_at(
    const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, int64_t *from_ns, int64_t *to_ns);

/* Finds the next off-CPU interval after a time, or the last one before it, during which a promise ran; or NULL.  Takes time
 * linear in the number of intervals between them. */
const struct weft_off_cpu *weft_os_next_off(const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, bool forward);

/* Returns the state of a thread at a time within an off-CPU interval. */
enum weft_os_state weft_os_state_of(const struct weft_off_cpu *off, int64_t time_ns);

/* Returns the promise that the thread ran at a time, or WEFT_NONE.  Logarithmic. */
uint32_t weft_os_promise_at(const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns);

/* Finds the promise that the thread with the given tid ran at a time; WEFT_NONE if there is none.  The thread must belong to
 * the traced program.  Returns WEFT_ENOMEM like weft_model_os_tracks(), which it calls.  Logarithmic. */
int weft_os_promise_of_tid(const struct weft_model *model, uint32_t tid, int64_t time_ns, uint32_t *promise);

/* Returns the index of the track of a stream, or WEFT_NONE. */
uint32_t weft_os_track_of_stream(const struct weft_os_tracks *tracks, uint16_t stream);

/* Returns the index of the track of the thread with the given tid, or WEFT_NONE.  Linear in tracks. */
uint32_t weft_os_track_of_tid(const struct weft_os_tracks *tracks, uint32_t tid);

void weft__os_tracks_free(struct weft_os_tracks *tracks);

#endif
