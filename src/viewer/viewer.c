/* viewer.c: creates and destroys viewers, and draws their panes.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "analysis/queries/summary.h"
#include "base/utf8.h"
#include "draw/lane.h"
#include "draw/sheet.h"
#include "model/os_tracks.h"
#include "viewer/findings.h"
#include "viewer/live.h"
#include "viewer/private.h"
#include "viewer/summary.h"

static void free_all(struct weft_viewer *v)
{
	if (!v)
		return;
	for (int i = 0; i < WEFT_PANES; i++)
		weft_draw_finish(&v->lists[i]);
	for (int i = 0; i < WEFT_ASKS; i++)
		weft_findings_destroy(v->answers[i]);
	weft_diff_destroy(v->diff);
	weft_overview_destroy(v->overview);
	weft_table_destroy(v->table);
	weft_live_destroy(v->live);
	weft_stacks_destroy(v->stacks);
	weft_summary_destroy(v->summary);
	weft_promise_info_destroy(v->facts);
	weft__viewer_finish_subsets(v);
	weft_view_destroy(v->view);
	weft_lulls_destroy(v->lulls);
	weft_layout_destroy(v->layout);
	weft__viewer_forget_history(v);
	free(v->hidden_metrics);
	for (int i = 0; i < 2; i++) {
		struct weft_query *query = i ? v->query : v->query_before;
		if (query)
			weft_query_finish(query);
		free(query);
	}
	free(v);
}

#define FEW_ROWS 32u
#define MIN_AWAKE_NS 1000
#define WIDER 1.25

/* Folds sleep if sleep is more than half of the trace and folding makes the rest visibly wider; many short sleeps between
 * requests keep their lengths. */
static void fold_sleep_at_start(struct weft_viewer *v)
{
	double px_per_ns = v->view->px_per_ns;
	weft_viewer_fold_sleep(v, true);
	const int64_t slept_ns = v->lulls ? weft_lulls_ns(v->lulls) : 0, awake_ns = v->model->end_ns - slept_ns;
	if (v->lulls && (awake_ns < MIN_AWAKE_NS || awake_ns >= slept_ns || v->view->px_per_ns < WIDER * px_per_ns))
		weft_viewer_fold_sleep(v, false);
}

/* Part of the picture that the time before the first request may take at the start. */
#define MAX_START_UP 0.25
#define MARGIN 0.02

/* Begins the picture with the first request if the start-up of a server would take much of the picture, because the start-up
 * makes the requests narrow.  The end of the trace stays visible, because a hang may be there. */
static void begin_with_requests(struct weft_viewer *v)
{
	const int64_t from_ns = v->summary->served_from_ns, end_ns = v->model->end_ns;
	if (from_ns == WEFT_NO_TIME || from_ns <= 0 || from_ns >= end_ns ||
	    weft_view_x(v->view, from_ns) < MAX_START_UP * v->view->width_px)
		return;
	const int64_t margin_ns = (int64_t)((double)(end_ns - from_ns) * MARGIN);
	weft_view_show(v->view, from_ns > margin_ns ? from_ns - margin_ns : 0, weft__add_ns(end_ns, margin_ns));
	v->skips_start_up = true;
}

int weft_viewer_open_model(struct weft_viewer **out, struct weft_model *model, struct weft_trace *trace,
    void (*release)(void *owner), void *owner, struct weft_error *err)
{
	struct weft_viewer *v = calloc(1, sizeof *v);
	if (!v)
		return weft_error_set(err, WEFT_ENOMEM, "no memory for a viewer");
	int status = WEFT_OK;
	v->model = model;
	/* The tracks are computed now, because no frame is waiting for them. */
	const struct weft_os_tracks *tracks;
	if (weft_model_os_tracks(v->model, &tracks) < 0)
		status = weft_error_set(err, WEFT_ENOMEM, "no memory for a viewer");
	if (status == WEFT_OK)
		status = weft_layout_create(&v->layout, v->model, err);
	if (status == WEFT_OK)
		status = weft_view_create(&v->view, v->model, v->layout, err);
	if (status == WEFT_OK)
		status = weft_overview_create(&v->overview, v->view, err);
	if (status == WEFT_OK)
		status = weft_promise_info_create(&v->facts, v->model, err);
	if (status == WEFT_OK)
		status = weft_summary_create(&v->summary, v->facts, err);
	/* If there are only a few rows, they are never too low. */
	if (status == WEFT_OK && v->layout->row_count > FEW_ROWS)
		status = weft_folding_find_depth(&v->fold_depth, v->model, v->layout, err);
	if (status == WEFT_OK && v->fold_depth > 0)
		weft_thinness_measure(&v->thinness, v->view);
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
	v->release = release;
	v->owner = owner;
	v->selected = v->hovered = v->focused = v->hovered_link = WEFT_NONE;
	v->search_at = (uint32_t)v->model->promise_count;
	v->spot.track = v->hovered_spot.track = WEFT_NONE;
	v->threads = v->metrics = v->overview_shown = v->folds_itself = v->names_shown = true;
	v->questions[WEFT_ASK_TRACE] = (struct weft_question){.state = WEFT_QUESTION_NEW, .promise = WEFT_NONE};
	v->questions[WEFT_ASK_WHY].promise = v->open_finding = WEFT_NONE;
	v->findings_shown = WEFT_FINDINGS_SHOWN;
	v->lane_marked = v->blame_marked = SIZE_MAX;
	v->blame_by = WEFT_FOLDED_BY_WAIT;
	v->changes = WEFT_CHANGED_FINDINGS;
	weft_viewer_resize(v, 1280, 720, 1);
	fold_sleep_at_start(v);
	begin_with_requests(v);
	weft__viewer_fold_internals(v);
	weft__viewer_choose_subset(v);
	weft_view_focus_best(v->view);
	*out = v;
	return WEFT_OK;
}

int weft_viewer_open(
    struct weft_viewer **out, struct weft_trace *trace, const struct weft_model_options *options, struct weft_error *err)
{
	struct weft_model *model;
	int status = weft_model_build(&model, trace, options, err);
	if (status == WEFT_OK && (status = weft_viewer_open_model(out, model, trace, NULL, NULL, err)) < 0)
		weft_model_destroy(model);
	return status;
}

void weft_viewer_destroy(struct weft_viewer *v)
{
	if (!v)
		return;
	struct weft_model *model = v->model;
	struct weft_trace *trace = v->trace;
	void (*const release)(void *) = v->release;
	void *owner = v->owner;
	free_all(v);
	if (release) {
		release(owner);
		return;
	}
	weft_model_destroy(model);
	weft_trace_close(trace);
}

void weft_viewer_set_name(struct weft_viewer *v, const char *name)
{
	weft_utf8_copy(v->name, sizeof v->name, (struct weft_str){name, (uint32_t)strlen(name)});
	weft__viewer_changed(v, WEFT_CHANGED_FINDINGS);
}

/* Sets the position of a pane, which extends to the right edge. */
static void place_pane(struct weft_viewer *v, int pane, double x_px, double y_px, double height_px)
{
	v->panes[pane] = (struct weft_pane){.list = &v->lists[pane],
	    .x_px = x_px,
	    .y_px = y_px,
	    .width_px = v->width_px - x_px,
	    .height_px = height_px,
	    .scale = v->scale};
}

#define MIN_PICTURE_PX 160.0 /* height in px below which the picture takes precedence over the overview */
#define ROOMY_PX 440.0       /* height of the viewer in px below which the overview has LOW_OVERVIEW_PX */
#define LOW_OVERVIEW_PX 36.0

void weft__viewer_place_panes(struct weft_viewer *v)
{
	double ruler = WEFT_RULER_PX * v->scale,
	       overview = v->scale * (v->height_px < ROOMY_PX * v->scale ? LOW_OVERVIEW_PX : WEFT_OVERVIEW_PX);
	double least = MIN_PICTURE_PX * v->scale;
	if (!v->overview_shown || v->height_px < overview + ruler + least)
		overview = 0;
	if (v->height_px < ruler + 16 * v->scale)
		ruler = 0;
	double lane = weft__viewer_path(v) && v->height_px >= overview + ruler + least ? WEFT_LANE_PX * v->scale : 0;
	double top = overview + ruler + lane, space = (v->height_px - top - least) / v->scale;
	double blame =
	    weft__viewer_blame_px(v, space < v->height_px / v->scale / 3 ? space : v->height_px / v->scale / 3) * v->scale;
	double picture = v->height_px - top - blame;
	double gutter = v->names_shown ? weft_gutter_px(v->names_px, v->width_px / v->scale) * v->scale : 0;
	place_pane(v, WEFT_PANE_OVERVIEW, 0, 0, overview);
	place_pane(v, WEFT_PANE_RULER, gutter, overview, ruler);
	place_pane(v, WEFT_PANE_LANE, gutter, overview + ruler, lane);
	place_pane(v, WEFT_PANE_PICTURE, gutter, top, picture);
	place_pane(v, WEFT_PANE_MARKS, gutter, top, picture);
	place_pane(v, WEFT_PANE_GUIDES, gutter, top, picture);
	place_pane(v, WEFT_PANE_BLAME, 0, top + picture, blame);
	place_pane(v, WEFT_PANE_GUTTER, 0, overview, gutter > 0 ? top - overview + picture : 0);
	v->panes[WEFT_PANE_GUTTER].width_px = gutter;
	weft_view_resize(v->view, (v->width_px - gutter) / v->scale, picture / v->scale);
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_PLACE);
}

void weft_viewer_resize(struct weft_viewer *v, double width_px, double height_px, double scale)
{
	v->scale = scale > 0.25 ? scale < 8 ? scale : 8 : 0.25;
	v->width_px = width_px > 1 ? width_px : 1;
	v->height_px = height_px > 1 ? height_px : 1;
	weft__viewer_place_panes(v);
}

void weft_viewer_set_measure(struct weft_viewer *v, weft_measure_fn *measure, void *ctx)
{
	v->measure = measure;
	v->measure_ctx = ctx;
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE);
}

static void empty_list(struct weft_draw_list *list)
{
	list->count = list->text_bytes = 0;
}

struct weft_draw_options weft__viewer_options(const struct weft_viewer *v)
{
	return (struct weft_draw_options){.measure = v->measure,
	    .measure_ctx = v->measure_ctx,
	    .no_metrics = !v->metrics,
	    .no_threads = !v->threads,
	    .no_axis = v->panes[WEFT_PANE_RULER].height_px > 0,
	    .names_beside = v->panes[WEFT_PANE_GUTTER].height_px > 0,
	    .hidden_metrics = v->hidden_metrics,
	    .clock = v->clock};
}

static int draw_gutter(struct weft_viewer *v, const struct weft_draw_options *options, struct weft_error *err)
{
	const struct weft_pane *pane = &v->panes[WEFT_PANE_GUTTER];
	if (pane->height_px <= 0) {
		empty_list(&v->lists[WEFT_PANE_GUTTER]);
		return WEFT_OK;
	}
	return weft_gutter_draw(&v->lists[WEFT_PANE_GUTTER], &v->lists[WEFT_PANE_PICTURE], v->view, options,
	    pane->width_px / v->scale, (v->panes[WEFT_PANE_PICTURE].y_px - pane->y_px) / v->scale, err);
}

static int draw_picture(struct weft_viewer *v, struct weft_error *err)
{
	const struct weft_pane *strip = &v->panes[WEFT_PANE_OVERVIEW];
	const struct weft_draw_options options = weft__viewer_options(v);
	weft_view_reserve_lanes(v->view, weft_draw_lanes_px(v->model, &options, v->view->height_px));
	int status = weft_draw_frame(&v->lists[WEFT_PANE_PICTURE], v->view, &options, err);
	if (status == WEFT_OK)
		status = draw_gutter(v, &options, err);
	if (status < 0 || strip->height_px <= 0) {
		empty_list(&v->lists[WEFT_PANE_OVERVIEW]);
		return status;
	}
	/* During a search, the overview would sum up the highlights again and again, so it is updated afterwards. */
	if (v->overview_is_stale && v->search_at >= v->model->promise_count) {
		weft_overview_highlight(v->overview, v->view);
		v->overview_is_stale = false;
	}
	return weft_overview_draw(
	    &v->lists[WEFT_PANE_OVERVIEW], v->overview, v->view, strip->width_px / v->scale, strip->height_px / v->scale, err);
}

static int draw_overlay(struct weft_viewer *v, struct weft_error *err)
{
	const struct weft_pane *strip = &v->panes[WEFT_PANE_RULER];
	struct weft_ruler_options ruler = {.measure = v->measure,
	    .measure_ctx = v->measure_ctx,
	    .clock = v->clock,
	    .no_metrics = !v->metrics,
	    .no_threads = !v->threads,
	    .hidden_metrics = v->hidden_metrics,
	    .has_pointer = v->has_pointer,
	    .pointer_ns = v->pointer_ns,
	    .has_span = v->has_span,
	    .span_from_ns = v->span_from_ns,
	    .span_to_ns = v->span_to_ns};
	char tip[WEFT_TIP_BYTES], crumb[WEFT_CRUMB_BYTES];
	ruler.legend = v->legend;
	ruler.crumb = weft_viewer_crumb(v, crumb) ? crumb : NULL;
	if (weft_viewer_tip(v, tip)) {
		/* The tooltip of the lowest pane is drawn above that pane. */
		double lowest_px = v->panes[WEFT_PANE_BLAME].y_px, y_px = v->last_y_px < lowest_px ? v->last_y_px : lowest_px;
		ruler.tip = tip;
		ruler.tip_x_px = (v->last_x_px - v->panes[WEFT_PANE_PICTURE].x_px) / v->scale;
		ruler.tip_y_px = (y_px - v->panes[WEFT_PANE_PICTURE].y_px) / v->scale;
	}
	struct weft_marks marks = {.measure = v->measure,
	    .measure_ctx = v->measure_ctx,
	    .selected = v->selected,
	    .hovered = v->hovered,
	    .dim = v->filter && v->highlighting != WEFT_HIGHLIGHT_NONE};
	const struct weft_draw_options options = weft__viewer_options(v);
	const struct weft_spot *spots[] = {&v->hovered_spot, &v->spot};
	for (size_t i = 0; i < 2; i++) {
		marks.spots[i].track = spots[i]->track;
		marks.spots[i].from_ns = spots[i]->from_ns;
		marks.spots[i].to_ns = spots[i]->to_ns;
	}
	marks.frame = &options;
	for (size_t i = 0; i < 4; i++) {
		uint32_t promise = i < 2 ? v->hovered : v->selected;
		if (promise != WEFT_NONE && (i < 2 || promise != v->hovered))
			marks.arrows[i].count = weft_promise_info_links(v->facts, promise, i % 2, &marks.arrows[i].links);
	}
	int status = weft_marks_draw(&v->lists[WEFT_PANE_MARKS], v->view, &marks, err);
	if (status == WEFT_OK)
		status = weft_ruler_guides(&v->lists[WEFT_PANE_GUIDES], v->view, &ruler, err);
	if (status == WEFT_OK)
		status = weft__viewer_draw_lane(v, err);
	if (status == WEFT_OK)
		status = weft__viewer_draw_blame(v, err);
	if (status < 0 || strip->height_px <= 0) {
		empty_list(&v->lists[WEFT_PANE_RULER]);
		return status;
	}
	return weft_ruler_draw(&v->lists[WEFT_PANE_RULER], v->view, strip->height_px / v->scale, &ruler, err);
}

int weft_viewer_draw(struct weft_viewer *v, struct weft_error *err)
{
	if (!v->is_drawn && weft__viewer_choose_subset(v))
		weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_HOVER | WEFT_CHANGED_PLACE);
	int status = v->is_drawn ? WEFT_OK : draw_picture(v, err);
	if (status == WEFT_OK && !v->is_drawn)
		weft__viewer_refresh_pointer(v);
	v->is_drawn = status == WEFT_OK;
	if (status == WEFT_OK && !v->is_overlay_drawn)
		status = draw_overlay(v, err);
	v->is_overlay_drawn = status == WEFT_OK;
	for (int i = 0; status < 0 && i < WEFT_PANES; i++)
		empty_list(&v->lists[i]);
	v->is_drawn &= status == WEFT_OK;
	return status;
}

int weft_viewer_draw_file(
    struct weft_viewer *v, struct weft_draw_list *list, weft_measure_fn *measure, void *measure_ctx, struct weft_error *err)
{
	struct weft_draw_options options = weft__viewer_options(v);
	struct weft_view higher = *v->view;
	options.measure = measure;
	options.measure_ctx = measure_ctx;
	options.no_axis = false;
	higher.height_px += WEFT_DRAW_AXIS_PX;
	int status = weft_gutter_draw_both(list, &higher, &options, v->panes[WEFT_PANE_GUTTER].width_px / v->scale, err);
	if (status == WEFT_OK && v->legend)
		status = weft_legend_draw(list, v->model, &options, err);
	char title[WEFT_SUMMARY_BYTES], facts[WEFT_SUMMARY_BYTES];
	const char *const cells[] = {weft_viewer_caption_title(v, title), weft_viewer_caption_facts(v, facts)};
	const struct weft_sheet caption = {.rows = 2, .columns = 1, .cells = cells};
	return status == WEFT_OK ? weft_sheet_draw(list, &caption, &options, err) : status;
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
	if (changes & (WEFT_CHANGED_PICTURE | WEFT_CHANGED_OVERLAY))
		v->is_overlay_drawn = false;
}
