/* draw.h: computes the picture of a view as a draw list: rectangles, lines and texts in pixels.
 *
 * The draw list is the same, byte for byte, on every platform if the widths of texts are the same.  The primitives are ordered
 * by layer; within a layer they are ordered by paint where the order is not visible, because changing the colour is slow on some
 * canvases.  Coordinates are multiples of 1/8 px.  Details smaller than a pixel are merged, but important details stay visible
 * at any scale: failures, promises that never resolved, highlights and pauses.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_DRAW_H
#define WEFT_DRAW_DRAW_H

#include "view/view.h"

/* X(NAME, light rgb, dark rgb) lists a paint (colour) */
#define WEFT_PAINTS(X)                                                                                                           \
	X(BACKGROUND, 0xeff1f4, 0x1c1f26)                                                                                        \
	X(SLEEP, 0xdcdfe5, 0x14161b)                                                                                             \
	X(SLEEP_TEXT, 0x5e626a, 0x7c879b)                                                                                        \
	X(PAUSE, 0xf0d3d6, 0x4a2a31)                                                                                             \
	X(PAUSE_TEXT, 0x954752, 0xd98a95)                                                                                        \
	X(GRID, 0xd3d7de, 0x2c313b)                                                                                              \
	X(AXIS_TEXT, 0x5a5f6a, 0x939cae)                                                                                         \
	X(BAND, 0xb9c0cb, 0x3c4350)                                                                                              \
	X(BAND_TEXT, 0x4d5666, 0xaab3c2)                                                                                         \
	X(HIGHLIGHT, 0xffdd33, 0xb8930a)                                                                                         \
	X(CREATION, 0x949dac, 0x667082)                                                                                          \
	X(PROMISE, 0x465063, 0x8d97a8)                                                                                           \
	X(RUN, 0x1f5fbf, 0x7fb2ff)                                                                                               \
	X(FAILED, 0xb82029, 0xff6b6b)                                                                                            \
	X(AWAIT, 0x846a1a, 0xd9b648)                                                                                             \
	X(READ, 0x3868d2, 0x74a0ff)                                                                                              \
	X(READ_FAILED, 0xcb3339, 0xff7b7b)                                                                                       \
	X(RESOLVE, 0x257d3d, 0x5fc97a)                                                                                           \
	X(SIGNAL, 0xa8580b, 0xffa94d)                                                                                            \
	X(LABEL, 0x1f2733, 0xe6eaf0)                                                                                             \
	X(LABEL_ID, 0x5a5f6a, 0x929cab)                                                                                          \
	X(KIND, 0x5a5f67, 0x919db2)                                                                                              \
	X(ACCENT, 0x5b57d1, 0x9d99ff)                                                                                            \
	X(TIME_WAITING, 0x7d6200, 0xe6c34a)                                                                                      \
	X(TIME_READY, 0xa2234f, 0xe37361)                                                                                        \
	X(TIME_RUNNING, 0x1f5fbf, 0x7fb2ff)                                                                                      \
	X(COUNTER_0, 0x865f54, 0xdf7359)                                                                                         \
	X(COUNTER_1, 0x34777c, 0x2ba89f)                                                                                         \
	X(COUNTER_2, 0x7959c9, 0xa1c8a4)                                                                                         \
	X(COUNTER_3, 0x9a6108, 0xfebc54)                                                                                         \
	X(COUNTER_4, 0x264c76, 0x74b0e8)                                                                                         \
	X(COUNTER_5, 0x6c213a, 0xcfdde0)

enum weft_paint {
#define WEFT_PAINT_ENUM(NAME, light, dark) WEFT_PAINT_##NAME,
	WEFT_PAINTS(WEFT_PAINT_ENUM)
#undef WEFT_PAINT_ENUM
	    WEFT_PAINT_COUNT
};

enum weft_theme { WEFT_THEME_LIGHT, WEFT_THEME_DARK };

/* 0xRRGGBB */
uint32_t weft_theme_rgb(enum weft_theme theme, enum weft_paint paint);

enum weft_font { WEFT_FONT_LABEL, WEFT_FONT_SMALL, WEFT_FONT_BOLD, WEFT_FONT_COUNT };

/* Returns the size of a font in px, which is the same for every backend. */
double weft_font_px(enum weft_font font);

enum weft_prim_kind {
	WEFT_PRIM_RECT,     /* filled rectangle with corners x0 y0 and x1 y1, always in whole px */
	WEFT_PRIM_LINE,     /* line from x0 y0 to x1 y1, with `width` */
	WEFT_PRIM_TRIANGLE, /* head of an arrow: tip x0 y0, middle of its base x1 y1; `width` is half the width of the base */
	/* Text whose baseline starts at x0 y0; `width` px wide; `count` bytes from list->text[first], valid UTF-8. */
	WEFT_PRIM_TEXT
};

struct weft_prim {
	uint8_t kind;  /* enum weft_prim_kind */
	uint8_t layer; /* ascending */
	uint8_t paint; /* enum weft_paint */
	uint8_t alpha; /* 255 is opaque */
	uint8_t font;  /* enum weft_font */
	uint8_t halo;  /* whether the text has an outline in the background colour, because something crosses it */
	float x0, y0, x1, y1, width;
	uint32_t first, count;
};

/* Initialise with {0}.  Use the same list for all frames, because the list keeps buffers and a cache of text widths. */
struct weft_draw_list {
	struct weft_prim *prims;
	size_t count;
	char *text;
	size_t text_bytes;
	float width_px, height_px;
	struct weft_draw_scratch *scratch;
};

/* Returns the advance width in px of a valid UTF-8 text. */
typedef double weft_measure_fn(void *ctx, enum weft_font font, const char *text, size_t len);

/* The format of times. */
struct weft_clock {
	/* Whether times are times of day, if the trace has them; otherwise times since the trace's first event. */
	bool wall;
	int32_t utc_offset_s; /* offset of the shown time of day from UTC */
};

struct weft_draw_options {
	/* Function that measures texts; NULL uses widths of a common sans serif, the same on every platform. */
	weft_measure_fn *measure;
	void *measure_ctx;
	bool no_metrics;               /* whether to draw no lanes of counters: see weft_draw_lanes_px() */
	bool no_threads;               /* whether to draw no lanes of OS threads from kernel data */
	bool no_axis;                  /* whether the time axis is drawn elsewhere: see ruler.h */
	bool names_beside;             /* whether the names of rows are drawn beside the frame: see gutter.h */
	const uint8_t *hidden_metrics; /* array by counter, in which a nonzero value hides the counter; or NULL */
	struct weft_clock clock;
};

/* Height that a frame with an axis needs in addition, so that the rest of the frame stays at the same place. */
#define WEFT_DRAW_AXIS_PX 16.0

/* Computes the two corners at the base of a triangle. */
void weft_prim_head(const struct weft_prim *prim, float *left_x, float *left_y, float *right_x, float *right_y);

/* Returns the height of the lanes of OS threads and counters, which is at most a third of height_px.  Pass the result to
 * weft_view_reserve_lanes() before drawing a frame.  `options` may be NULL. */
double weft_draw_lanes_px(const struct weft_model *model, const struct weft_draw_options *options, double height_px);

/* Returns the OS thread whose lane is at y_px in a frame with these options, as a track of model/os_tracks.h, or WEFT_NONE. */
uint32_t weft_draw_thread_at(const struct weft_view *view, const struct weft_draw_options *options, double y_px);

/* Replaces the contents of the draw list by one frame of the view.  On failure (WEFT_ENOMEM) the draw list is empty.  `options`
 * may be NULL.  The time and the length of the list are limited by the size of the view in pixels, nearly independent of the
 * trace. */
int weft_draw_frame(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_draw_options *options, struct weft_error *err);
void weft_draw_finish(struct weft_draw_list *list);

/* Finds the arrow of a frame, or of the marks over the frame, within a few px of a point: the number of a link, and the number
 * of arrows that are drawn as one arrow with it.  Returns false if there is no arrow. */
struct weft_arrow_hit {
	uint32_t link, count;
};
bool weft_draw_arrow_at(const struct weft_draw_list *list, double x_px, double y_px, struct weft_arrow_hit *hit);

/* Returns the numbers of arrows of each class in the density band at a point; false if the point is not in the band. */
bool weft_draw_density_at(const struct weft_draw_list *list, double x_px, double y_px, uint32_t counts[WEFT_ARROWS]);

/* Prints one line for each primitive, for comparison with other lists. *out is a terminated text that the caller frees; on
 * failure *out is unchanged. */
int weft_draw_dump(const struct weft_draw_list *list, char **out, size_t *out_bytes);

#endif
