/* cairo.h: renders draw lists as pictures, with Cairo and Pango.  SPDX-License-Identifier: ISC */
#ifndef WEFT_CAIRO_H
#define WEFT_CAIRO_H

#include <cairo.h>

#include "draw/icicle.h"
#include "draw/sheet.h"
#include "draw/svg.h"
#include "view/fold.h"

enum weft_picture { WEFT_PICTURE_SVG, WEFT_PICTURE_PNG, WEFT_PICTURE_PDF };

/* Sets the picture format from the suffix of a path, ignoring case.  Returns WEFT_ENOTSUP for any other suffix. */
int weft_picture_from_path(enum weft_picture *out, const char *path);

/* Fonts and cached glyphs; each thread that draws needs a struct of its own.  On failure (WEFT_ENOMEM), *out is unchanged. */
struct weft_cairo;
int weft_cairo_create(struct weft_cairo **out);
void weft_cairo_destroy(struct weft_cairo *cairo);

/* Measures a text, for weft_draw_options.measure; ctx is a struct weft_cairo. */
double weft_cairo_measure(void *ctx, enum weft_font font, const char *text, size_t len);

/* Draws a list at the origin of cr, and saves and restores the state of cr. */
void weft_cairo_draw(struct weft_cairo *cairo, cairo_t *cr, const struct weft_draw_list *list, enum weft_theme theme);

/* Writes a draw list as a picture; equal lists give equal bytes.  Fails with WEFT_EIO or WEFT_ENOMEM. */
int weft_cairo_write(struct weft_cairo *cairo, const struct weft_draw_list *list, enum weft_picture format, enum weft_theme theme,
    weft_write_fn *write, void *write_ctx, struct weft_error *err);

struct weft_render_options {
	int width_px, height_px; /* size of the picture, up to 32767; 0 means 1280 x 720 */
	bool has_from, has_to;
	int64_t from_ns, to_ns; /* time range to draw, relative to the model's start; the default is the trace's whole range */
	const char *find;       /* query (view/query.h) whose matching promises are highlighted; or NULL */
	const uint32_t *marked; /* also highlight these promises */
	size_t marked_count;
	/* Promise to which all drawn promises belong (layout/focus.h), drawn over its lifetime; 0 draws all promises. */
	uint32_t focus;
	const struct weft_folding *folding; /* folds and groups; NULL folds tracks whose rows would be too low */
	bool unfolded;                      /* no automatic folds */
	bool fold_sleep;                    /* whether sleep is drawn as narrow gaps (view/sleep.h) */
	bool no_metrics;                    /* no counters */
	bool no_threads;                    /* no OS threads */
	const struct weft_sheet *sheet;     /* table below the promises, which then get less height; or NULL */
	/* Icicle graph below the table; its `measure` is replaced by the picture's; or NULL. */
	const struct weft_icicle *icicle;
	enum weft_theme theme;     /* light or dark */
	enum weft_picture picture; /* see weft_picture_from_path() */
};

/* Renders a model as a picture.  Fails with WEFT_EINVAL (an empty range, an invalid size, or no space above the table),
 * WEFT_ENOMEM or WEFT_EIO. If `found` is not NULL, *found gets the number of promises that `find` highlighted. */
int weft_render(const struct weft_model *model, const struct weft_render_options *options, weft_write_fn *write, void *write_ctx,
    size_t *found, struct weft_error *err);

/* Renders a model to a file; on failure no partial file is left. */
int weft_render_file(const struct weft_model *model, const struct weft_render_options *options, const char *path, size_t *found,
    struct weft_error *err);

#endif
