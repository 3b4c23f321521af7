/* cairo.h: draw lists as pictures, through Cairo and Pango.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CAIRO_H
#define WEFT_CAIRO_H

#include <cairo.h>

#include "draw/icicle.h"
#include "draw/sheet.h"
#include "draw/svg.h"
#include "view/fold.h"

enum weft_picture { WEFT_PICTURE_SVG, WEFT_PICTURE_PNG, WEFT_PICTURE_PDF };

/* By the suffix of a path, in either case; WEFT_ENOTSUP for any other. */
int weft_picture_from_path(enum weft_picture *out, const char *path);

/* Fonts and cached glyphs; one for each thread that draws.  On failure *out is untouched: WEFT_ENOMEM. */
struct weft_cairo;
int weft_cairo_create(struct weft_cairo **out);
void weft_cairo_destroy(struct weft_cairo *cairo);

/* For weft_draw_options.measure; ctx is a struct weft_cairo. */
double weft_cairo_measure(void *ctx, enum weft_font font, const char *text, size_t len);

/* Draws a list at the origin of cr, whose state is saved and restored. */
void weft_cairo_draw(struct weft_cairo *cairo, cairo_t *cr, const struct weft_draw_list *list, enum weft_theme theme);

/* The same bytes for the same list.  WEFT_EIO, WEFT_ENOMEM. */
int weft_cairo_write(struct weft_cairo *cairo, const struct weft_draw_list *list, enum weft_picture format, enum weft_theme theme,
    weft_write_fn *write, void *write_ctx, struct weft_error *err);

struct weft_render_options {
	int width_px, height_px; /* 0: 1280 x 720; up to 32767 */
	bool has_from, has_to;
	int64_t from_ns, to_ns; /* since the model's start; what is not given is the trace's own bound */
	const char *find;       /* highlight what this query matches (view/query.h); or NULL */
	const uint32_t *marked; /* highlight these promises of the model too */
	size_t marked_count;
	uint32_t focus;                     /* draw only what belongs to this promise (layout/focus.h), over its time; 0: all */
	const struct weft_folding *folding; /* what is folded and grouped; NULL: what would be too thin to tell is folded */
	bool unfolded;                      /* nor is that */
	bool fold_sleep;                    /* stretches in which nothing ran or happened are narrow gaps (view/sleep.h) */
	bool no_metrics;                    /* leave the counters out */
	bool no_threads;                    /* leave OS threads out */
	const struct weft_sheet *sheet;     /* below the promises, which have so much less height; or NULL */
	const struct weft_icicle *icicle;   /* below these; measure is the picture's */
	enum weft_theme theme;              /* light or dark */
	enum weft_picture picture;          /* see weft_picture_from_path() */
};

/* A model as a picture: lays it out, views it, draws it.  WEFT_EINVAL (an empty range, a size out of range, or one with no room
 * above the sheet), WEFT_ENOMEM, WEFT_EIO. *found, if not NULL, is the number of promises that `find` highlighted. */
int weft_render(const struct weft_model *model, const struct weft_render_options *options, weft_write_fn *write, void *write_ctx,
    size_t *found, struct weft_error *err);

/* The same to a file, which is not left behind half written. */
int weft_render_file(const struct weft_model *model, const struct weft_render_options *options, const char *path, size_t *found,
    struct weft_error *err);

#endif
