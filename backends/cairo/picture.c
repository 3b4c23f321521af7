/* picture.c: writes pictures to files.  SPDX-License-Identifier: ISC */
#include <cairo-pdf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cairo/cairo.h"
#include "draw/gutter.h"
#include "layout/focus.h"
#include "view/fold.h"
#include "view/sleep.h"

int weft_picture_from_path(enum weft_picture *out, const char *path)
{
	static const char *const suffixes[] = {
	    [WEFT_PICTURE_SVG] = ".svg", [WEFT_PICTURE_PNG] = ".png", [WEFT_PICTURE_PDF] = ".pdf"};
	size_t len = strlen(path);
	for (int i = 0; i < 3; i++) {
		if (len > 4 && strcasecmp(path + len - 4, suffixes[i]) == 0) {
			*out = (enum weft_picture)i;
			return WEFT_OK;
		}
	}
	return WEFT_ENOTSUP;
}

struct sink {
	weft_write_fn *write;
	void *ctx;
};

static cairo_status_t write_some(void *closure, const unsigned char *bytes, unsigned int size)
{
	struct sink *sink = closure;
	return sink->write(sink->ctx, bytes, size) ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

int weft_cairo_write(struct weft_cairo *cairo, const struct weft_draw_list *list, enum weft_picture format, enum weft_theme theme,
    weft_write_fn *write, void *write_ctx, struct weft_error *err)
{
	struct sink sink = {write, write_ctx};
	if (format == WEFT_PICTURE_SVG)
		return weft_svg_write(list, theme, write, write_ctx, err);
	cairo_surface_t *surface;
	if (format == WEFT_PICTURE_PDF) {
		surface = cairo_pdf_surface_create_for_stream(write_some, &sink, (double)list->width_px, (double)list->height_px);
		cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "1970-01-01T00:00:00Z");
	} else {
		surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)list->width_px, (int)list->height_px);
	}
	cairo_t *cr = cairo_create(surface);
	weft_cairo_draw(cairo, cr, list, theme);
	cairo_status_t status = cairo_status(cr);
	cairo_destroy(cr);
	if (status == CAIRO_STATUS_SUCCESS && format == WEFT_PICTURE_PNG)
		status = cairo_surface_write_to_png_stream(surface, write_some, &sink);
	cairo_surface_finish(surface);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_status(surface);
	cairo_surface_destroy(surface);
	if (status == CAIRO_STATUS_NO_MEMORY)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a picture");
	if (status != CAIRO_STATUS_SUCCESS)
		return weft_error_set(err, WEFT_EIO, "cannot write the picture: %s", cairo_status_to_string(status));
	return WEFT_OK;
}

static int icicle_px(const struct weft_render_options *o)
{
	return o->icicle ? (int)weft_icicle_px(o->icicle, (o->height_px ? o->height_px : 720) / 3.0) : 0;
}

static int width_of(const struct weft_render_options *o)
{
	return o->width_px ? o->width_px : 1280;
}

/* Returns the height that is left for the promises: the total without the table and the icicle graph. */
static int height_of(const struct weft_render_options *o)
{
	return (o->height_px ? o->height_px : 720) - (o->sheet ? (int)weft_sheet_px(o->sheet) : 0) - icicle_px(o);
}

static int render_view(struct weft_view *view, const struct weft_render_options *o, weft_write_fn *write, void *write_ctx,
    size_t *found, struct weft_error *err)
{
	struct weft_cairo *cairo;
	struct weft_draw_list list = {0};
	const int width_px = width_of(o);
	const double gutter_px = weft_gutter_px(0, width_px);
	weft_view_resize(view, width_px - gutter_px, height_of(o));
	if (o->focus && !o->has_from && !o->has_to)
		weft_view_show_promise(view, o->focus);
	else if (o->has_from || o->has_to)
		weft_view_show(view, o->has_from ? o->from_ns : 0, o->has_to ? o->to_ns : view->model->end_ns);
	if (o->find) {
		struct weft_query query;
		int parsed = weft_query_parse(&query, o->find, strlen(o->find), err);
		if (parsed < 0)
			return parsed;
		size_t n = weft_view_find_query(view, &query);
		weft_query_finish(&query);
		if (found)
			*found = n;
	}
	for (size_t i = 0; i < o->marked_count; i++)
		weft_view_set_highlight(view, o->marked[i], true);
	struct weft_draw_options options = {
	    .measure = weft_cairo_measure, .no_metrics = o->no_metrics, .no_threads = o->no_threads};
	weft_view_reserve_lanes(view, weft_draw_lanes_px(view->model, &options, view->height_px));
	weft_view_focus_best(view);
	int status = weft_cairo_create(&cairo);
	if (status < 0)
		return weft_error_set(err, status, "no memory for fonts");
	options.measure_ctx = cairo;
	status = weft_gutter_draw_both(&list, view, &options, gutter_px, err);
	if (status == WEFT_OK && o->sheet)
		status = weft_sheet_draw(&list, o->sheet, &options, err);
	if (status == WEFT_OK && o->icicle) {
		struct weft_icicle icicle = *o->icicle;
		icicle.measure = options.measure;
		icicle.measure_ctx = options.measure_ctx;
		status = weft_icicle_append(&list, icicle_px(o), &icicle, err);
	}
	if (status == WEFT_OK)
		status = weft_cairo_write(cairo, &list, o->picture, o->theme, write, write_ctx, err);
	weft_draw_finish(&list);
	weft_cairo_destroy(cairo);
	return status;
}

/* Replaces the layout by a layout of only the promises that belong to o->focus, or by a layout with folds. */
static int lay_out(
    struct weft_layout **layout, const struct weft_model *model, const struct weft_render_options *o, struct weft_error *err)
{
	const struct weft_folding nothing = {.shows_internals = true};
	uint64_t *only = NULL;
	uint32_t *leader_of = NULL;
	struct weft_layout *subset = NULL;
	int status = o->focus ? weft_focus_find(&only, NULL, model, *layout, o->focus, err) : WEFT_OK;
	if (status == WEFT_OK)
		status = weft_folding_find(&leader_of, o->folding ? o->folding : &nothing, model, *layout, only, err);
	if (status == WEFT_OK && o->folding && o->folding->rows_by != WEFT_ROWS_BY_THREAD)
		status = weft_layout_create_grouped(&subset, model, o->folding->rows_by, only, leader_of, err);
	else if (status == WEFT_OK && (only || leader_of))
		status = weft_layout_create_folded(&subset, model, *layout, only, leader_of, err);
	free(only);
	free(leader_of);
	if (subset) {
		weft_layout_destroy(*layout);
		*layout = subset;
	}
	return status;
}

/* Folds the internal promises of runtimes, and tracks whose rows would be too low. */
static int fold_thin(struct weft_layout **layout, struct weft_view **view, const struct weft_model *model,
    const struct weft_render_options *o, struct weft_error *err)
{
	struct weft_folding folding = {.shows_internals = o->unfolded};
	struct weft_thinness thinness;
	uint32_t *leader_of = NULL;
	struct weft_layout *subset = NULL;
	struct weft_draw_options options = {.no_metrics = o->no_metrics, .no_threads = o->no_threads};
	int status = weft_folding_find_depth(&folding.depth, model, *layout, err);
	if (status < 0)
		return status;
	if (folding.depth > 0)
		weft_thinness_measure(&thinness, *view);
	weft_view_resize(*view, width_of(o) - weft_gutter_px(0, width_of(o)), height_of(o));
	if (o->has_from || o->has_to)
		weft_view_show(*view, o->has_from ? o->from_ns : 0, o->has_to ? o->to_ns : model->end_ns);
	if (folding.depth > 0 && !weft_thinness_at(&thinness, *view, weft_draw_lanes_px(model, &options, (*view)->height_px)))
		folding.depth = 0;
	status = weft_folding_find(&leader_of, &folding, model, *layout, NULL, err);
	if (status == WEFT_OK && leader_of)
		status = weft_layout_create_folded(&subset, model, NULL, NULL, leader_of, err);
	free(leader_of);
	if (!subset)
		return status;
	weft_view_destroy(*view);
	*view = NULL;
	weft_layout_destroy(*layout);
	*layout = subset;
	return weft_view_create(view, model, subset, err);
}

int weft_render(const struct weft_model *model, const struct weft_render_options *o, weft_write_fn *write, void *write_ctx,
    size_t *found, struct weft_error *err)
{
	struct weft_layout *layout = NULL;
	struct weft_view *view = NULL;
	struct weft_lulls *lulls = NULL;
	if (o->width_px < 0 || o->height_px < 0 || o->width_px > 32767 || o->height_px > 32767 ||
	    (o->width_px > 0 && o->width_px < 64) || (o->height_px > 0 && o->height_px < 64))
		return weft_error_set(err, WEFT_EINVAL, "the width and height of a picture must be 64 to 32767 pixels");
	if (height_of(o) < 64)
		return weft_error_set(err, WEFT_EINVAL, "there is no space above the table; use a larger --size=WxH");
	if ((o->has_from ? o->from_ns : 0) >= (o->has_to ? o->to_ns : model->end_ns) && (o->has_from || o->has_to))
		return weft_error_set(err, WEFT_EINVAL, "the end of the picture must be after its start");
	int status = weft_layout_create(&layout, model, err);
	if (status == WEFT_OK)
		status = lay_out(&layout, model, o, err);
	if (status == WEFT_OK)
		status = weft_view_create(&view, model, layout, err);
	if (status == WEFT_OK && !o->unfolded && !o->focus && !(o->folding && (o->folding->count > 0 || o->folding->rows_by)))
		status = fold_thin(&layout, &view, model, o, err);
	if (status == WEFT_OK && o->fold_sleep)
		status = weft_lulls_find(&lulls, model, err);
	if (status == WEFT_OK)
		status = weft_view_fold_sleep(view, lulls, err);
	if (status == WEFT_OK)
		status = render_view(view, o, write, write_ctx, found, err);
	weft_view_destroy(view);
	weft_layout_destroy(layout);
	weft_lulls_destroy(lulls);
	return status;
}

static int write_file(void *ctx, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, ctx) != size;
}

static int cannot_create(struct weft_error *err, int why)
{
	return weft_error_set(err,
	    why == EACCES   ? WEFT_EACCES
	    : why == ENOENT ? WEFT_ENOENT
			    : WEFT_EIO,
	    "cannot be created: %s", strerror(why));
}

/* Writes a temporary file beside the target file, and renames it when it is complete. */
static int render_beside(const struct weft_model *model, const struct weft_render_options *o, const char *path, char *beside,
    size_t *found, struct weft_error *err)
{
	int fd = mkstemp(beside);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!file) {
		int why = errno;
		if (fd >= 0) {
			close(fd);
			unlink(beside);
		}
		return cannot_create(err, why);
	}
	mode_t mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	int status = weft_render(model, o, write_file, file, found, err);
	if (fclose(file) != 0 && status == WEFT_OK)
		status = weft_error_set(err, WEFT_EIO, "cannot be written: %s", strerror(errno));
	if (status == WEFT_OK && rename(beside, path) != 0)
		status = cannot_create(err, errno);
	if (status < 0)
		unlink(beside);
	return status;
}

int weft_render_file(
    const struct weft_model *model, const struct weft_render_options *o, const char *path, size_t *found, struct weft_error *err)
{
	static const char suffix[] = ".XXXXXX";
	struct stat st;
	size_t len = strlen(path);
	/* The target is /dev/stdout or a pipe, beside which no temporary file is possible. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		FILE *file = fopen(path, "wb");
		if (!file)
			return cannot_create(err, errno);
		int status = weft_render(model, o, write_file, file, found, err);
		if (fclose(file) != 0 && status == WEFT_OK)
			status = weft_error_set(err, WEFT_EIO, "cannot be written: %s", strerror(errno));
		return status;
	}
	char *beside = malloc(len + sizeof suffix);
	if (!beside)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a picture");
	memcpy(beside, path, len);
	memcpy(beside + len, suffix, sizeof suffix);
	int status = render_beside(model, o, path, beside, found, err);
	free(beside);
	return status;
}
