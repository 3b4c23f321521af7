/* threads.h: between threads.c and the others that draw OS threads.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_THREADS_H
#define WEFT_DRAW_THREADS_H

#include "draw/frame.h"
#include "model/os_tracks.h"

/* OS threads that have room. */
struct weft__threads {
	const struct weft_os_tracks *tracks;
	size_t count; /* the first of them */
	int each_px, y0;
};
struct weft__threads weft__threads_of(const struct weft_model *model, const struct weft_draw_options *options, double room_px);
struct weft__threads weft__threads_in(const struct weft__frame *f);

/* metrics.c: the most that they may have of the height. */
double weft__lanes_room_px(const struct weft_model *model, const struct weft_draw_options *options, double height_px);

/* A stretch in which a promise ran, from x0 to x1: solid where its OS thread had a processor, faint where that wanted one,
 * hollow where it was blocked; what is less than a pixel adds up.  False: the kernel did not tell of it, or it is short, and
 * nothing is drawn. */
bool weft__draw_run(struct weft__frame *f, uint16_t stream, int x0, int x1, int y0, int y1);

/* As signs. */
void weft__draw_os_state(struct weft__frame *f, enum weft_os_state state, int x0, int y0, int x1, int y1);
void weft__draw_wake_arrow(struct weft__frame *f, double x, double from_y, double to_y);

/* From who woke an OS thread, the promise that ran then, to its track; false: the trace does not tell, or it is not seen. */
bool weft__draw_wake(struct weft__frame *f, const struct weft__threads *t, uint32_t track, const struct weft_off *off);

/* Those by a promise, or by anybody if it is WEFT_NONE; none where they are too many to be told apart. */
void weft__draw_wakes(struct weft__frame *f, const struct weft__threads *t, uint32_t by_promise);

/* "worker 4711"; its length. */
size_t weft__thread_name(const struct weft_os_tracks *tracks, uint32_t track, char *buf, size_t size);

#endif
