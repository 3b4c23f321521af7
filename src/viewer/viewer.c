/* viewer.c: the life of a viewer, and its panes.  SPDX-License-Identifier: ISC */
#include "viewer/private.h"

#include <string.h>

static void free_all(struct weft_viewer *v)
{
	if (!v)
		return;
	weft_draw_finish(&v->picture);
	weft_view_destroy(v->view);
	weft_layout_destroy(v->layout);
	weft_model_destroy(v->model);
	weft_vec_free(&v->history);
	free(v->hidden_metrics);
	free(v->query);
	free(v->query_before);
	free(v);
}

int weft_viewer_open(
    struct weft_viewer **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err)
{
	struct weft_viewer *v = calloc(1, sizeof *v);
	if (!v)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a viewer");
	int status = weft_model_build(&v->model, trace, options, err);
	if (status == WEFT_OK)
		status = weft_layout_create(&v->layout, v->model, err);
	if (status == WEFT_OK)
		status = weft_view_create(&v->view, v->model, v->layout, err);
	if (status == WEFT_OK) {
		v->hidden_metrics = calloc(v->model->counter_count + 1, 1);
		v->query = calloc(1, sizeof *v->query);
		v->query_before = calloc(1, sizeof *v->query_before);
		if (!v->hidden_metrics || !v->query || !v->query_before)
			status = weft_error_set(err, WEFT_ENOMEM, "no memory for a viewer");
	}
	if (status < 0) {
		free_all(v);
		return status;
	}
	v->trace = trace;
	v->selected = v->hovered = WEFT_NONE;
	v->search_at = (uint32_t)v->model->promise_count;
	v->metrics = true;
	weft_viewer_resize(v, 1280, 720, 1);
	weft_view_focus_best(v->view);
	*out = v;
	return WEFT_OK;
}

void weft_viewer_destroy(struct weft_viewer *v)
{
	struct weft_trace *trace = v ? v->trace : NULL;
	free_all(v);
	weft_trace_close(trace);
}

void weft_viewer_resize(struct weft_viewer *v, double width_px, double height_px, double scale)
{
	v->scale = scale > 0.25 ? scale < 8 ? scale : 8 : 0.25;
	v->width_px = width_px > 1 ? width_px : 1;
	v->height_px = height_px > 1 ? height_px : 1;
	weft_view_resize(v->view, v->width_px / v->scale, v->height_px / v->scale);
	v->panes[WEFT_PANE_PICTURE] =
	    (struct weft_pane){.list = &v->picture, .width_px = v->width_px, .height_px = v->height_px, .scale = v->scale};
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
}

void weft_viewer_set_measure(struct weft_viewer *v, weft_measure_fn *measure, void *ctx)
{
	v->measure = measure;
	v->measure_ctx = ctx;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE);
}

int weft_viewer_draw(struct weft_viewer *v, struct weft_error *err)
{
	if (v->is_drawn)
		return WEFT_OK;
	struct weft_draw_options options = {
	    .measure = v->measure, .measure_ctx = v->measure_ctx, .no_metrics = !v->metrics, .hidden_metrics = v->hidden_metrics};
	int status = weft_draw_frame(&v->picture, v->view, &options, err);
	v->is_drawn = status == WEFT_OK;
	return status;
}

unsigned weft_viewer_take_changes(struct weft_viewer *v)
{
	unsigned changes = v->changes;
	v->changes = 0;
	return changes;
}

void weft__viewer_changed(struct weft_viewer *v, unsigned changes)
{
	v->changes |= changes;
	if (changes & WEFT_CHANGED_PICTURE)
		v->is_drawn = false;
}
