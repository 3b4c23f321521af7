/* frame.c: draws one frame of a view, from back to front.  SPDX-License-Identifier: ISC */
#include "draw/frame.h"
#include "model/os_tracks.h"

#include <assert.h>
#include <string.h>

/* Keeps the cached text widths as long as the measuring function is the same. */
static void remember_measure(struct weft_draw_scratch *s, const struct weft_draw_options *options)
{
	if (s->measure == options->measure && s->measure_ctx == options->measure_ctx)
		return;
	s->measure = options->measure;
	s->measure_ctx = options->measure_ctx;
	s->widths.count = 0;
	s->width_count = 0;
	memset(s->ascii, 0, sizeof s->ascii);
}

static bool clear_bits(struct weft__frame *f)
{
	size_t words = (((size_t)f->width / 4 + 1 + 63) / 64) * ((size_t)f->height + 1);
	f->s->bits.count = f->s->line_bits.count = f->s->cross_bits.count = 0;
	if (!weft_vec_reserve(&f->s->bits, words) || !weft_vec_reserve(&f->s->line_bits, words) ||
	    !weft_vec_reserve(&f->s->cross_bits, words))
		return false;
	assert(f->s->bits.items && f->s->line_bits.items && f->s->cross_bits.items);
	memset(f->s->cross_bits.items, 0, words * sizeof *f->s->cross_bits.items);
	memset(f->s->bits.items, 0, words * sizeof *f->s->bits.items);
	memset(f->s->line_bits.items, 0, words * sizeof *f->s->line_bits.items);
	return true;
}

bool weft__frame_begin(struct weft__frame *f, double width_px, double height_px)
{
	struct weft_draw_list *list = f->list;
	list->count = list->text_bytes = 0;
	list->width_px = (float)width_px;
	list->height_px = (float)height_px;
	f->width = weft__floor(width_px);
	f->height = weft__floor(height_px);
	if (!list->scratch)
		list->scratch = calloc(1, sizeof *list->scratch);
	f->s = list->scratch;
	if (!f->s)
		return false;
	remember_measure(f->s, &f->options);
	return clear_bits(f);
}

static int close_frame(struct weft__frame *f, struct weft_error *err)
{
	if (f->s && !f->failed)
		weft__list_sort(f);
	if (f->s && !f->failed)
		return WEFT_OK;
	f->list->count = f->list->text_bytes = 0;
	return weft_error_set(err, WEFT_ENOMEM, "no memory for a frame");
}

int weft__frame_end(struct weft__frame *f, struct weft_error *err)
{
	if (f->s && !f->failed)
		weft__text_add_halos(f);
	return close_frame(f, err);
}

int weft__frame_append(struct weft_draw_list *list, double more_px, const struct weft_draw_options *options,
    void draw(struct weft__frame *f, const void *what, int top_px), const void *what, struct weft_error *err)
{
	const double top = (double)list->height_px;
	struct weft__frame f = {.list = list,
	    .s = list->scratch,
	    .options = *options,
	    .width = weft__floor((double)list->width_px),
	    .height = weft__floor(top + more_px)};
	list->height_px = (float)(top + more_px);
	/* The list is larger than its first frame. */
	f.failed = !clear_bits(&f);
	if (f.failed)
		return close_frame(&f, err);
	weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, weft__floor(top), f.width, f.height);
	weft__rect(&f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, weft__floor(top), f.width, weft__floor(top) + 1);
	draw(&f, what, weft__floor(top));
	return close_frame(&f, err);
}

int weft_draw_frame(
    struct weft_draw_list *list, const struct weft_view *view, const struct weft_draw_options *options, struct weft_error *err)
{
	struct weft__frame f = {
	    .list = list,
	    .view = view,
	    .model = view->model,
	    .layout = view->layout,
	    .index = view->index,
	    .from_ns = weft_view_time(view, -8),
	    .to_ns = weft_view_time(view, view->width_px + 8),
	};
	if (options)
		f.options = *options;
	f.failed = !weft__frame_begin(&f, view->width_px, view->height_px) || weft_model_os_tracks(f.model, &f.tracks) < 0;
	if (!f.failed) {
		/* The order matters: if two texts need the same space, the first one gets it. */
		weft__draw_bands(&f);
		for (int are_low = 0; are_low < 2 && !f.options.names_beside; are_low++)
			weft__name_bands(&f, are_low, f.width / 3.0);
		weft__draw_shades(&f);
		weft__draw_grid(&f);
		weft__draw_threads(&f);
		weft__draw_metrics(&f);
		weft__draw_promises(&f);
		weft__draw_captions(&f);
		weft__draw_arrows(&f);
	}
	return weft__frame_end(&f, err);
}
