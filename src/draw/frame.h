/* frame.h: declarations shared by the files of draw/.  SPDX-License-Identifier: ISC */
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
	WEFT_LAYER_MARK, /* highlights too small to be visible behind a line */
	WEFT_LAYER_PLATE,
	WEFT_LAYER_TEXT,
	WEFT_LAYER_COUNT
};

/* Rows at least this high are drawn one by one; lower ones merge into strips. */
#define WEFT__ROW_PX 3.0
#define WEFT__STRIP_PX 3
/* Narrower intervals merge with their neighbours. */
#define WEFT__CELL_PX 2

/* Space below the lanes of counters, without and with an axis. */
#define WEFT__BELOW_PX 4
/* Space between names in a gutter and its right edge. */
#define WEFT__GUTTER_EDGE_PX 9
#define WEFT__AXIS_PX (WEFT__BELOW_PX + (int)WEFT_DRAW_AXIS_PX)

/* If more promises are highlighted, a thin line below each marks it: rings around all of them would hide the picture. */
#define WEFT__MANY_FOUND 40

/* A row that is high enough to be drawn as a line; lower rows are drawn together, in strips. */
struct weft__line {
	uint32_t row;
	int y;        /* top of its middle pixel, or of the lower of two middle pixels */
	int above;    /* px to the row above, or to the top */
	double pitch; /* height of the row */
};

/* A promise that may have its name written. */
struct weft__caption {
	uint32_t promise;
	int x0, x1; /* visible part of its line */
	int space;  /* height of its row */
	int y;
	int until; /* if right of x1: the row is empty up to here, and the name may be there */
	bool important, highlighted;
	bool tight; /* the row above is close: a name fits only where that row is empty */
	bool alone; /* nothing else is visible on its row */
};

struct weft__vertical {
	int x, y0, y1;
};

/* Arrows that start close together and end close together. */
struct weft__bundle {
	float x0, y0, x1, y1; /* ends of one of them, chosen pseudo-randomly */
	uint32_t lot, link;
	uint32_t count;
	uint32_t next; /* next bundle with the same hash */
	uint8_t arrow;
};

struct weft__width {
	uint64_t hash;
	float width;
};

/* The left edge of a cell: its time; its slice of time and the position in it, in 65536ths; and the factor for sums within the
 * cell. */
struct weft__edge {
	double ns;
	uint32_t slice, part;
	double scale;
};

struct weft_draw_scratch {
	size_t prim_capacity, text_capacity;
	WEFT_VEC(struct weft_prim) sorted;
	WEFT_VEC(uint64_t) highlighted; /* bits for each cell of each line with a small highlight */
	WEFT_VEC(struct weft__line) lines;
	WEFT_VEC(struct weft__caption) captions;
	WEFT_VEC(struct weft__vertical) verticals;
	WEFT_VEC(struct weft__bundle) bundles;
	WEFT_VEC(uint32_t) buckets;
	WEFT_VEC(uint32_t) columns;               /* numbers of arrows that are not drawn, by column and class */
	int band_y0, band_y1;                     /* top and bottom of the band that shows them */
	uint32_t counted_arrows;                  /* the sum of these numbers, if there are any */
	int crumb_x1;                             /* right end of the crumb that names the current subset; 0: none is shown */
	WEFT_VEC(int64_t) fold_times;             /* times of columns of pixels */
	WEFT_VEC(struct weft_fold_sum) fold_sums; /* sums on a fold's line between these times */
	WEFT_VEC(int64_t) thread_times;           /* times of columns of pixels in the lanes of OS threads */
	WEFT_VEC(uint32_t) planes;
	WEFT_VEC(double) strip_rows;
	WEFT_VEC(uint32_t) strip_begin;
	WEFT_VEC(uint64_t) strip_marks;
	int summed_above, summed_below; /* strips before the first and from the second on are drawn from sums */
	WEFT_VEC(struct weft__edge) edges;
	WEFT_VEC(uint32_t) strip_sums; /* by slice of time, for one strip */
	WEFT_VEC(uint8_t) alphas;
	WEFT_VEC(uint64_t) bits;       /* pixels of texts, one bit for each 4 px of a line of pixels */
	WEFT_VEC(uint64_t) line_bits;  /* pixels of promises, as in `bits` */
	WEFT_VEC(uint64_t) cross_bits; /* pixels of arrows and verticals, which may cross texts */
	WEFT_VEC(struct weft__width) widths;
	size_t width_count;
	struct weft_hash_key width_key;
	float ascii[WEFT_FONT_COUNT][128]; /* widths; 0: not known yet */
	weft_measure_fn *measure;          /* function that measured the widths */
	void *measure_ctx;
};

struct weft__frame {
	struct weft_draw_list *list;
	struct weft_draw_scratch *s;
	const struct weft_view *view;
	const struct weft_model *model;
	const struct weft_layout *layout;
	const struct weft_index *index;
	const struct weft_os_tracks *tracks; /* NULL: the trace has no kernel data */
	struct weft_draw_options options;
	int width, height;                     /* in whole px */
	int64_t from_ns, to_ns;                /* the visible interval and a few px more */
	uint32_t first_line_row, end_line_row; /* rows that are drawn one by one */
	int cell;                              /* px within which promises on these rows merge */
	bool failed;                           /* out of memory: nothing more is added */
};

/* Clears the list and sets its size; `list` and `options` must be set.  Returns false when out of memory. */
bool weft__frame_begin(struct weft__frame *f, double width_px, double height_px);

/* Sorts the list, or clears it and returns WEFT_ENOMEM if the frame failed. */
int weft__frame_end(struct weft__frame *f, struct weft_error *err);

/* Increases the height of the frame in a list, and lets draw() fill the new part below a line.  Texts above are not checked for
 * overlap. */
int weft__frame_append(struct weft_draw_list *list, double more_px, const struct weft_draw_options *options,
    void draw(struct weft__frame *f, const void *what, int top_px), const void *what, struct weft_error *err);

/* list.c */
/* Returns the opacity of red for a part of rows that went wrong: it is proportional to the part, but at least clearly visible. */
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
/* Adds a text without checking for overlap: see weft__text_put(). */
void weft__list_text(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing);
void weft__list_add(struct weft__frame *f, const struct weft_draw_list *list);    /* all primitives of a list without texts */
void weft__list_append(struct weft__frame *f, const struct weft_draw_list *list); /* all of a list, in front */
void weft__list_sort(struct weft__frame *f);

/* text.c */
double weft__text_width(struct weft__frame *f, enum weft_font font, const char *text, size_t len);

/* Converts any bytes to one line of valid UTF-8, terminated.  Returns its length. */
size_t weft__text_clean(char *out, size_t size, const char *bytes, size_t len);

/* Shortens a text with an ellipsis so that it fits.  Returns its length, or 0 if nothing readable fits. */
size_t weft__text_fit(
    struct weft__frame *f, enum weft_font font, char *text, size_t len, size_t size, double space, double *width);

/* Writes a text with its left end at x on baseline y.  Returns false if another text is in the way. */
bool weft__text_put(struct weft__frame *f, enum weft_paint paint, double x, double y, struct weft__writing writing);

/* Returns whether another text is in the way. */
bool weft__text_blocked(struct weft__frame *f, enum weft_font font, double x, double y, double width);

/* Marks the pixels of something drawn behind texts; at the end, the texts that it crosses get halos. */
void weft__cross_put(struct weft__frame *f, double x0, double y0, double x1, double y1);
void weft__text_add_halos(struct weft__frame *f);

/* Draw the line of a promise; mark other pixels that hide texts as a line does; return whether a text would overlap such
 * pixels. */
void weft__line_put(struct weft__frame *f, int alpha, int x0, int y0, int x1, int y1);
void weft__line_block(struct weft__frame *f, int x0, int y0, int x1, int y1);
bool weft__line_blocks(struct weft__frame *f, enum weft_font font, double x, double y, double width);

/* Draw the parts of a frame. */
void weft__draw_shades(struct weft__frame *f);
void weft__draw_grid(struct weft__frame *f);
void weft__draw_bands(struct weft__frame *f);
void weft__name_bands(struct weft__frame *f, bool are_low, double max_width); /* only low bands, or only others */
void weft__draw_threads(struct weft__frame *f);
void weft__draw_metrics(struct weft__frame *f);
void weft__name_metrics(struct weft__frame *f);                 /* in a gutter: names, and the values at top and bottom */
void weft__name_threads(struct weft__frame *f);                 /* in a gutter */
void weft__draw_values(struct weft__frame *f, int64_t time_ns); /* of counters, at that time */
void weft__draw_promises(struct weft__frame *f);
void weft__draw_arrows(struct weft__frame *f);
void weft__draw_arrow(struct weft__frame *f, enum weft_arrow arrow, double x0, double x1, double y); /* for the legend */
void weft__draw_legend(struct weft__frame *f);
void weft__draw_crumb(struct weft__frame *f, const char *crumb);
void weft__draw_arrows_of(struct weft__frame *f, const uint32_t *links, size_t count);
void weft__draw_captions(struct weft__frame *f);

/* Write the name of a promise's line, which is its first label that is not a counter's, or a substitute; and what a sample of
 * the promises from position `first` up to `end` of by_row have in common: name, site or kind.  Return its length, or 0. */
size_t weft__promise_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size);
size_t weft__line_name(
    const struct weft__frame *f, uint32_t promise, char *buf, size_t size); /* without a number of folded ones */
size_t weft__common_name(const struct weft__frame *f, size_t first, size_t end, char *buf, size_t size);

/* Returns whether a fold holds what a runtime made for itself (model/roles.h). */
bool weft__is_internal_fold(const struct weft__frame *f, const struct weft_fold *fold);

/* Returns the number of an OS thread in the pool of its process; 0 if it is in none or does not have the name of the process. */
uint16_t weft__pool_number(const struct weft__frame *f, uint16_t stream);

/* Return whether the name of a promise is a label or the name of a fold; and whether it is only the kind. */
bool weft__promise_is_labelled(const struct weft__frame *f, uint32_t promise);
bool weft__promise_has_only_kind(const struct weft_model *model, uint32_t promise);

/* Writes "7 signals" for the leader of a fold; returns 0 for any other promise. */
size_t weft__fold_name(const struct weft__frame *f, uint32_t promise, char *buf, size_t size);

/* Returns the y of a row in whole px, even off screen (lines.c). */
int weft__row_y(const struct weft__frame *f, uint32_t row);

#endif
