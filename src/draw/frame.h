/* frame.h: declarations that the files of src/draw share.  SPDX-License-Identifier: ISC */
#ifndef WEFT_DRAW_FRAME_H
#define WEFT_DRAW_FRAME_H

#include "base/hash.h"
#include "base/vec.h"
#include "draw/draw.h"
#include "view/fold.h"
#include "view/index.h"

/* From back to front. */
enum weft_layer {
	WEFT_LAYER_BACK,
	WEFT_LAYER_SHADE, /* sleeps and pauses */
	WEFT_LAYER_GRID,
	WEFT_LAYER_METRIC,
	WEFT_LAYER_HIGHLIGHT,
	WEFT_LAYER_CREATION,
	WEFT_LAYER_PROMISE,
	WEFT_LAYER_RUN,
	WEFT_LAYER_ARROW,
	WEFT_LAYER_FAILED,
	WEFT_LAYER_MARK, /* layer of highlights that are too small to be visible behind a line */
	WEFT_LAYER_PLATE,
	WEFT_LAYER_TEXT,
	WEFT_LAYER_COUNT
};

/* Height in px from which on rows are drawn one by one; lower rows merge into strips. */
#define WEFT__ROW_PX 3.0
#define WEFT__STRIP_PX 3
/* Width in px below which intervals merge with their neighbours. */
#define WEFT__CELL_PX 2

/* Space in px below the lanes of counters, without and with an axis. */
#define WEFT__BELOW_PX 4
/* Space in px between the names in a gutter and the gutter's right edge. */
#define WEFT__GUTTER_EDGE_PX 9
#define WEFT__AXIS_PX (WEFT__BELOW_PX + (int)WEFT_DRAW_AXIS_PX)

/* Number of highlighted promises above which a thin line below each promise marks it, because rings around all of them would
 * hide the picture. */
#define WEFT__MANY_FOUND 40

/* A row that is high enough to be drawn as a line; lower rows are drawn together in strips. */
struct weft__line {
	uint32_t row;
	int y;        /* y of the row's middle pixel, or of the lower of two middle pixels */
	int above;    /* distance in px to the row above, or to the top */
	double pitch; /* height of the row */
};

/* A promise whose name may be written. */
struct weft__caption {
	uint32_t promise;
	int x0, x1; /* start and end of the visible part of the promise's line */
	int space;  /* height of its row */
	int y;
	int until; /* x up to which the row is empty, if right of x1; the name may extend to it */
	bool important, highlighted;
	bool tight; /* whether the row above is close, so that a name fits only where that row is empty */
	bool alone; /* whether no other promise is visible on the row */
};

struct weft__vertical {
	int x, y0, y1;
};

/* A bundle of arrows whose starts are close together and whose ends are close together. */
struct weft__bundle {
	float x0, y0, x1, y1; /* ends of one arrow of the bundle, chosen pseudo-randomly */
	uint32_t lot, link;
	uint32_t count;
	uint32_t next; /* next bundle with the same hash value */
	uint8_t arrow;
};

struct weft__width {
	uint64_t hash;
	float width;
};

/* The left edge of a cell: its time, its slice of time and the position in the slice in 65536ths, and the factor for sums within
 * the cell. */
struct weft__edge {
	double ns;
	uint32_t slice, part;
	double scale;
};

struct weft_draw_scratch {
	size_t prim_capacity, text_capacity;
	WEFT_VEC(struct weft_prim) sorted;
	WEFT_VEC(uint64_t) highlighted; /* one bit for each cell of each line, set if the cell has a small highlight */
	WEFT_VEC(struct weft__line) lines;
	WEFT_VEC(struct weft__caption) captions;
	WEFT_VEC(struct weft__vertical) verticals;
	WEFT_VEC(struct weft__bundle) bundles;
	WEFT_VEC(uint32_t) buckets;
	WEFT_VEC(uint32_t) columns; /* numbers of arrows that are not drawn, by column and class */
	int band_y0, band_y1;       /* top and bottom of the density band, which shows the numbers of arrows */
	uint32_t counted_arrows;    /* sum of the numbers of arrows that are not drawn */
	/* Right end of the breadcrumb that names the shown subset; 0 if none is shown. */
	int crumb_x1;
	WEFT_VEC(int64_t) fold_times;             /* times at the columns of pixels, for folds */
	WEFT_VEC(struct weft_fold_sum) fold_sums; /* sums on a fold's line between the times in fold_times */
	WEFT_VEC(int64_t) thread_times;           /* times at the columns of pixels in the lanes of OS threads */
	WEFT_VEC(uint32_t) planes;
	WEFT_VEC(double) strip_rows;
	WEFT_VEC(uint32_t) strip_begin;
	WEFT_VEC(uint64_t) strip_marks;
	int summed_above, summed_below; /* strips before summed_above, and from summed_below on, are drawn from sums */
	WEFT_VEC(struct weft__edge) edges;
	WEFT_VEC(uint32_t) strip_sums; /* sums of one strip, by slice of time */
	WEFT_VEC(uint8_t) alphas;
	WEFT_VEC(uint64_t) bits;       /* pixels that texts cover, with one bit for each 4 px of a line of pixels */
	WEFT_VEC(uint64_t) line_bits;  /* pixels that promises cover, with bits as in `bits` */
	WEFT_VEC(uint64_t) cross_bits; /* pixels of arrows and vertical lines, which may cross texts */
	WEFT_VEC(struct weft__width) widths;
	size_t width_count;
	struct weft_hash_key width_key;
	float ascii[WEFT_FONT_COUNT][128]; /* widths of ASCII characters; 0 if a width is not known yet */
	weft_measure_fn *measure;          /* function that measured the cached widths */
	void *measure_ctx;
};

struct weft__frame {
	struct weft_draw_list *list;
	struct weft_draw_scratch *s;
	const struct weft_view *view;
	const struct weft_model *model;
	const struct weft_layout *layout;
	const struct weft_index *index;
	const struct weft_os_tracks *tracks; /* tracks of OS threads; NULL if the trace has no kernel data */
	struct weft_draw_options options;
	int width, height;                     /* in whole px */
	int64_t from_ns, to_ns;                /* visible interval, and a few px more on each side */
	uint32_t first_line_row, end_line_row; /* first row, and end of the rows, that are drawn one by one */
	int cell;                              /* width in px within which promises on these rows merge */
	bool failed;                           /* whether memory was missing; if so, nothing more is added */
};

/* Clears the draw list and sets its size; `list` and `options` must be set.  Returns false without memory. */
bool weft__frame_begin(struct weft__frame *f, double width_px, double height_px);

/* Sorts the draw list or, if the frame failed, clears the list and returns WEFT_ENOMEM. */
int weft__frame_end(struct weft__frame *f, struct weft_error *err);

/* Increases the height of the frame in a draw list, and lets draw() fill the new part below a line.  Texts above the new part
 * are not checked for overlap. */
int weft__frame_append(struct weft_draw_list *list, double more_px, const struct weft_draw_options *options,
    void draw(struct weft__frame *f, const void *what, int top_px), const void *what, struct weft_error *err);

/* list.c */
/* Returns the opacity of red for the part of rows that went wrong: proportional to the part, but at least clearly visible. */
static inline int weft__wrong_alpha(double part)
{
	const int eighths = part < 1 ? (int)(part * 8 + 0.5) : 8;
	return part <= 0 ? 0 : eighths < 3 ? 88 : eighths < 8 ? 32 * eighths : 255;
}

static inline int weft__floor(double x)
{
	int i = x > 1e9 ? 1000000000 : x > -1e9 ? (int)x : -1000000000;
	return i - (x < i);
}

/* Layer, colour and opacity of a shape. */
struct weft__ink {
	enum weft_layer layer;
	enum weft_paint paint;
	int alpha;
};

static inline struct weft__ink weft__ink(enum weft_layer layer, enum weft_paint paint, int alpha)
{
	return (struct weft__ink){layer, paint, alpha};
}

/* A text with its font and width. */
struct weft__writing {
	enum weft_font font;
	const char *text;
	size_t len;
	double width;
};

void weft__rect(struct weft__frame *f, struct weft__ink ink, int x0, int y0, int x1, int y1);
void weft__outline(struct weft__frame *f, int x0, int y0, int x1, int y1); /* around a marked item */
void weft__segment(struct weft__frame *f, struct weft__ink ink, double x0, double y0, double x1, double y1, double width);
void weft__triangle(
    struct weft__frame *f, struct weft__ink ink, double tip_x, double tip_y, double base_x, double base_y, double half_width);
/* Adds a text without checking whether it overlaps another: see weft__text_put(). */
void weft__list_text(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing);
/* Appends all primitives of a list, without texts. */
void weft__list_add(struct weft__frame *f, const struct weft_draw_list *list);
void weft__list_append(struct weft__frame *f, const struct weft_draw_list *list); /* appends all primitives of a list in front */
void weft__list_sort(struct weft__frame *f);

/* text.c */
double weft__text_width(struct weft__frame *f, enum weft_font font, const char *text, size_t len);

/* Converts any bytes to one line of valid UTF-8, terminated by NUL.  Returns its length. */
size_t weft__text_clean(char *out, size_t size, const char *bytes, size_t len);

/* Shortens a text with an ellipsis so that it fits into a width.  Returns the text's length, or 0 if nothing readable fits. */
size_t weft__text_fit(
    struct weft__frame *f, enum weft_font font, char *text, size_t len, size_t size, double space, double *width);

/* Writes a text whose left end is at x, on the baseline y.  Returns false if another text is in the way. */
bool weft__text_put(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing);

/* Returns whether another text is in the way of a text at this position. */
bool weft__text_blocked(struct weft__frame *f, enum weft_font font, double x, double y, double width);

/* Marks the pixels of a shape that is drawn behind texts; at the end, the texts that the shape crosses get halos. */
void weft__cross_put(struct weft__frame *f, double x0, double y0, double x1, double y1);
void weft__text_add_halos(struct weft__frame *f);

/* Draw the line of a promise (weft__line_put); mark other pixels that hide texts as a line does (weft__line_block); return
 * whether a text would overlap such pixels (weft__line_blocks). */
void weft__line_put(struct weft__frame *f, int alpha, int x0, int y0, int x1, int y1);
void weft__line_block(struct weft__frame *f, int x0, int y0, int x1, int y1);
bool weft__line_blocks(struct weft__frame *f, enum weft_font font, double x, double y, double width);

/* Draw the parts of a frame. */
void weft__draw_shades(struct weft__frame *f);
void weft__draw_grid(struct weft__frame *f);
void weft__draw_bands(struct weft__frame *f);
/* Names either only low bands, or only the other bands. */
void weft__name_bands(struct weft__frame *f, bool are_low, double max_width);
void weft__draw_threads(struct weft__frame *f);
void weft__draw_metrics(struct weft__frame *f);
/* Draws names of counters, and their values at top and bottom, in a gutter. */
void weft__name_metrics(struct weft__frame *f);
void weft__name_threads(struct weft__frame *f);                 /* in a gutter */
void weft__draw_values(struct weft__frame *f, int64_t time_ns); /* draws the values of counters at that time */
void weft__draw_promises(struct weft__frame *f);
void weft__draw_arrows(struct weft__frame *f);
void weft__draw_arrow(struct weft__frame *f, enum weft_arrow arrow, double x0, double x1, double y); /* for the legend */
void weft__draw_legend(struct weft__frame *f);
void weft__draw_crumb(struct weft__frame *f, const char *crumb);
void weft__draw_arrows_of(struct weft__frame *f, const uint32_t *links, size_t count);
void weft__draw_captions(struct weft__frame *f);

/* Write the name of a promise's line, which is its first label that is not a counter's, or a substitute; and what a sample of
 * the promises from position `first` up to `end` of by_row have in common: name, site or kind.  Return the length of the name,
 * or 0. */
size_t weft__promise_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size);
size_t weft__line_name(
    /* Writes the name without the number of folded promises. */
    const struct weft__frame *f, uint32_t promise, char *buf, size_t size);
size_t weft__common_name(const struct weft__frame *f, size_t first, size_t end, char *buf, size_t size);

/* Returns whether a fold contains promises that a runtime made for itself (model/roles.h). */
bool weft__is_internal_fold(const struct weft__frame *f, const struct weft_fold *fold);

/* Returns the number of an OS thread in the thread pool of its process; 0 if the thread is in no pool, or does not have the name
 * of the process. */
uint16_t weft__pool_number(const struct weft__frame *f, uint16_t stream);

/* Return whether the name of a promise is a label or the name of a fold, and whether the name is only the kind. */
bool weft__promise_is_labelled(const struct weft__frame *f, uint32_t promise);
bool weft__promise_has_only_kind(const struct weft_model *model, uint32_t promise);

/* Writes "7 signals" for the leader of a fold (its first promise); returns 0 for any other promise. */
size_t weft__fold_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size);

/* Returns the y of a row in whole px, even if it is off screen (lines.c). */
int weft__row_y(const struct weft__frame *f, uint32_t row);

#endif
