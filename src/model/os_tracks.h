/* os_tracks.h: what the kernel said of the program's OS threads, as a picture asks for it: of any stretch of time, and at once.
 *
 * It is made when somebody first asks, for many never do.  Several OS threads may ask at once.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_MODEL_OS_TRACKS_H
#define WEFT_MODEL_OS_TRACKS_H

#include "model/kernel.h"

enum weft_os_state {
	WEFT_OS_RUNS,
	WEFT_OS_PREEMPTED, /* others have its processor */
	WEFT_OS_READY,     /* what it waited for is there, and no processor */
	WEFT_OS_DISK,      /* blocked, and nothing can interrupt it */
	WEFT_OS_BLOCKED,
	WEFT_OS_STATES
};

/* An OS thread of the program of which the kernel said anything of the time that the trace is of. */
struct weft_os_track {
	uint32_t thread;            /* number in weft_kernel.threads */
	int64_t since_ns, until_ns; /* what is known is known for that time */
	size_t ran;                 /* the promises that ran on it are [ran, next one's ran) of weft_os_tracks.ran */
};

/* A promise had an OS thread. */
struct weft_os_ran {
	int64_t start_ns, end_ns;
	uint32_t promise, track;
};

struct weft_os_tracks {
	const struct weft_model *model;
	struct weft_os_track *tracks; /* first those that ran promises, as their streams are numbered; one more for .ran's end */
	size_t count;
	uint32_t *of_stream; /* [stream]: the track, or WEFT_NONE */
	struct weft_os_ran *ran;
	struct weft_os_before {
		uint64_t ns[WEFT_OS_STATES]; /* of WEFT_OS_RUNS always 0: it is the rest */
	} * before; /* by stretch of weft_kernel.offs: how long those before it were, of its OS thread too */
};

/* *out: NULL where the kernel was not asked about each switch.  WEFT_ENOMEM.  The first time linear; lives as long as the model.
 */
int weft_model_os_tracks(const struct weft_model *model, const struct weft_os_tracks **out);

/* How long an OS thread had been in each state by that time, of what is known of it; exactly.  *near is where to look first, 0 if
 * nobody knows, and then where the next call is to look: later times that are near are found at once, others in logarithmic
 * time. */
void weft_os_until(
    const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, size_t *near, int64_t ns[WEFT_OS_STATES]);

/* The same between two times. */
void weft_os_sum(const struct weft_os_tracks *tracks, uint32_t track, int64_t from_ns, int64_t to_ns, int64_t ns[WEFT_OS_STATES]);

/* How often it touched a page that was not there in that time.  Logarithmic. */
size_t weft_os_faults(const struct weft_os_tracks *tracks, uint32_t track, int64_t from_ns, int64_t to_ns);

/* The stretch that it is in at that time: without a processor, or, if it returns NULL, with one or before or after all that is
 * known. Logarithmic. */
const struct weft_off *weft_os_off_at(
    const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, int64_t *from_ns, int64_t *to_ns);

/* The next stretch without a processor that begins after a time, or the last before it, while a promise ran; or NULL.  Linear in
 * those between. */
const struct weft_off *weft_os_next_off(const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns, bool forward);

/* What it is in at that time of a stretch. */
enum weft_os_state weft_os_state_of(const struct weft_off *off, int64_t time_ns);

/* The promise that it ran then, or WEFT_NONE.  Logarithmic. */
uint32_t weft_os_ran_at(const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns);

/* The promise that the OS thread of that number ran then, by the trace of the same program, or WEFT_NONE.  WEFT_ENOMEM: see
 * weft_model_os_tracks(), which it calls.  Logarithmic. */
int weft_os_ran_by(const struct weft_model *model, uint32_t tid, int64_t time_ns, uint32_t *promise);

/* The track of a stream of the model, or WEFT_NONE. */
uint32_t weft_os_track_of_stream(const struct weft_os_tracks *tracks, uint16_t stream);

/* The track of that OS thread, or WEFT_NONE.  Linear in tracks. */
uint32_t weft_os_track_of(const struct weft_os_tracks *tracks, uint32_t tid);

void weft__os_tracks_free(struct weft_os_tracks *tracks);

#endif
