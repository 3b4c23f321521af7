/* threads.h: declarations that threads.c shares with other files that draw OS threads.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_THREADS_H
#define WEFT_DRAW_THREADS_H

#include "draw/frame.h"
#include "model/os_tracks.h"

/* OS threads that have a lane in the frame, because their lanes fit. */
struct weft__threads {
	const struct weft_os_tracks *tracks;
	size_t count; /* number of threads that are shown, which are the first ones */
	int each_px, y0;
};
struct weft__threads weft__threads_of(
    const struct weft_model *model, const struct weft_draw_options *options, double available_px);
struct weft__threads weft__threads_in(const struct weft__frame *f);

/* Returns the maximum height in px for the lanes of OS threads (metrics.c). */
double weft__lanes_max_px(const struct weft_model *model, const struct weft_draw_options *options, double height_px);

/* Draws a run of a promise from x0 to x1: solid while its OS thread was on CPU, faint while runnable, hollow while blocked;
 * parts of a pixel add up.  Returns false and draws nothing if there is no kernel data, or if the run is short. */
bool weft__draw_run(struct weft__frame *f, uint16_t stream, int x0, int x1, int y0, int y1);

/* For the legend. */
void weft__draw_os_state(struct weft__frame *f, enum weft_os_state state, int x0, int y0, int x1, int y1);
void weft__draw_wake_arrow(struct weft__frame *f, double x, double from_y, double to_y);

/* Draws the arrow of a wake-up, from the promise that ran on the waking thread to the track of the woken thread.  Returns false
 * if the waking thread is unknown or off screen. */
bool weft__draw_wake(struct weft__frame *f, const struct weft__threads *t, uint32_t track, const struct weft_off_cpu *off);

/* Draws the wake-ups by a promise, or all wake-ups if by_promise is WEFT_NONE; draws none if they are too many to be
 * distinguished. */
void weft__draw_wakes(struct weft__frame *f, const struct weft__threads *t, uint32_t by_promise);

/* Writes "worker 4711".  Returns its length. */
size_t weft__thread_name(const struct weft_os_tracks *tracks, uint32_t track, char *buf, size_t size);

#endif
