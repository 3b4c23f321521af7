/* gutter.c: draws the gutter, a strip left of a frame with the names of rows.  SPDX-License-Identifier: ISC */
#include "draw/gutter.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/sort.h"
#include "draw/lines.h"
#include "model/os_tracks.h"

#define MIN_FRAME_PX 400.0 /* width in px that the frame keeps; with less space, the gutter gets narrower */
#define FRAME_FRACTION 0.6
#define SAMPLE 64u    /* maximum number of promises of a row that are examined */
#define GAP_PX 8.0    /* between name and kind */
#define ROOMY_PX 13.0 /* height in px from which on rows have space for all names */
#define INDENT_PX 6.0
#define MAX_INDENTS 3
#define BASELINE_PX 5         /* distance in px of a text's baseline below the top of a line */
#define HEADED_ROWS 2u        /* number of rows from which on a track is named before other rows */
#define MAX_STRIP_TRACKS 400u /* examined at most */
#define TICK_PX 4             /* length in px of the mark that leads from a name to a low row */

double weft_gutter_px(double wanted_px, double picture_px)
{
	double most = picture_px * (1 - FRAME_FRACTION);
	most = picture_px - most < MIN_FRAME_PX ? picture_px - MIN_FRAME_PX : most;
	double px = wanted_px > 0 ? wanted_px : WEFT_GUTTER_PX;
	px = px < WEFT_GUTTER_MIN_PX ? WEFT_GUTTER_MIN_PX : px;
	px = px < most ? px : most;
	return px >= WEFT_GUTTER_MIN_PX ? (double)weft__floor(px) : 0;
}

/* Summary of the visible promises of a row. */
struct row_names {
	uint32_t promise;  /* promise that ran most or, among equals, lasts longest; WEFT_NONE if the row is empty */
	size_t first, end; /* positions in by_row */
	double run_ns;     /* running time of all promises that were examined */
};

static double clamp_to(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static double run_ns_of(const struct weft__frame *f, uint32_t promise)
{
	const struct weft_promise *p = &f->model->promises[promise];
	const struct weft_fold *fold = f->index->folds ? weft_layout_fold(f->layout, promise) : NULL;
	if (fold) {
		struct weft_fold_sum sum;
		const int64_t times_ns[2] = {f->from_ns, f->to_ns};
		weft_view_sum_fold(f->view, (size_t)(fold - f->layout->folds), times_ns, 1, &sum);
		return sum.running * ((double)f->to_ns - (double)f->from_ns);
	}
	const struct weft_intervals runs = weft__runs_of(f, p);
	const size_t first = weft__intervals_end_after(&runs, 0, f->from_ns);
	const size_t end = weft__intervals_start_from(&runs, first, f->to_ns);
	return (double)weft__intervals_covered(&runs, first, end, f->from_ns, f->to_ns);
}

static struct row_names find_names(const struct weft__frame *f, uint32_t row)
{
	const struct weft_intervals t = weft__row_intervals(f->index, f->layout, row);
	const size_t before = f->layout->row_begin[row], first = weft__intervals_end_after(&t, 0, f->from_ns),
		     end = weft__intervals_start_from(&t, first, f->to_ns), step = (end - first) / SAMPLE + 1;
	struct row_names names = {.promise = WEFT_NONE, .first = before + first, .end = before + end};
	double most = -1;
	for (size_t i = first; i < end; i += step) {
		const uint32_t promise = f->layout->by_row[before + i];
		const double from = clamp_to((double)weft__intervals_start(&t, i), (double)f->from_ns, (double)f->to_ns),
			     to = clamp_to((double)weft__intervals_end(&t, i), (double)f->from_ns, (double)f->to_ns);
		const double run_ns = run_ns_of(f, promise), weight = run_ns + (to - from) / 1024;
		names.run_ns += run_ns;
		if (weight > most) {
			most = weight;
			names.promise = promise;
		}
	}
	return names;
}

enum weft_gutter_fold weft_gutter_fold_of(const struct weft_layout *layout, uint32_t promise)
{
	const struct weft_fold *fold = weft_layout_fold(layout, promise);
	const struct weft_track *track = fold ? NULL : weft_layout_track(layout, promise);
	if (fold)
		return fold->is_track || fold->is_group ? WEFT_GUTTER_UNFOLDS : WEFT_GUTTER_NO_FOLD;
	return track && track->row_count > 1 ? WEFT_GUTTER_FOLDS : WEFT_GUTTER_NO_FOLD;
}

static void draw_triangle(struct weft__frame *f, enum weft_gutter_fold fold, int y)
{
	const struct weft__ink ink = weft__ink(WEFT_LAYER_TEXT, WEFT_PAINT_KIND, 255);
	if (fold == WEFT_GUTTER_UNFOLDS)
		weft__triangle(f, ink, 10, y + 1, 5, y + 1, 3.5);
	else if (fold == WEFT_GUTTER_FOLDS)
		weft__triangle(f, ink, 7.5, y + 4, 7.5, y - 1, 3.5);
}

/* Returns the indentation of a name in px, by the number of tracks that contain the row. */
static double indent_of(const struct weft__frame *f, uint32_t promise)
{
	int depth = 0;
	for (uint32_t t = f->layout->track_of ? f->layout->track_of[promise] : WEFT_NONE; t != WEFT_NONE && depth < MAX_INDENTS;
	     t = f->layout->tracks[t].around)
		depth++;
	return depth * INDENT_PX;
}

/* Writes "12 x read", or only the longest promise's name if the promises of the row have nothing in common. */
static size_t write_name(const struct weft__frame *f, const struct row_names *names, char *buf, size_t size)
{
	char name[130], number[WEFT_NUMBER_BYTES];
	const size_t count = names->end - names->first;
	const size_t own = count < 2 ? 0 : weft__common_name(f, names->first, names->end, name, sizeof name);
	if (own == 0)
		return weft__line_name(f, names->promise, buf, size);
	const int len = snprintf(buf, size, "%s \xc3\x97 %s", weft_number_text(number, count), name);
	return len < 0 ? 0 : len < (int)size ? (size_t)len : size - 1;
}

/* Writes the remark at the right of a name: the number of promises folded into the row, or of other promises on the row, or the
 * kind. */
static size_t write_remark(const struct weft__frame *f, const struct row_names *names, char *buf, size_t size)
{
	char number[WEFT_NUMBER_BYTES], name[130];
	const struct weft_fold *fold = weft_layout_fold(f->layout, names->promise);
	const uint16_t kind = f->model->promises[names->promise].kind;
	const size_t count = names->end - names->first;
	int len = 0;
	bool same_kind = true;
	for (size_t i = names->first; i < names->end && i < names->first + SAMPLE; i++)
		same_kind &= f->model->promises[f->layout->by_row[i]].kind == kind;
	/* A row with several folds gets no remark about one of them. */
	if (count < 2 && fold && (fold->is_track || weft__is_internal_fold(f, fold)))
		len = snprintf(buf, size, "+%s", weft_number_text(number, fold->count - 1));
	else if (count > 1 && weft__common_name(f, names->first, names->end, name, sizeof name) == 0)
		len = snprintf(buf, size, count == 2 ? "%s other" : "%s others", weft_number_text(number, count - 1));
	else if (!fold && same_kind && !weft__promise_has_only_kind(f->model, names->promise))
		len = snprintf(buf, size, "%s", weft_model_kind_name(f->model, kind));
	return len < 0 ? 0 : len < (int)size ? (size_t)len : size - 1;
}

static enum weft_paint paint_of(const struct weft__frame *f, uint32_t promise)
{
	const bool is_fold = weft_layout_fold(f->layout, promise) != NULL;
	return !is_fold && weft_promise_went_wrong(&f->model->promises[promise]) ? WEFT_PAINT_FAILED
	       : weft__promise_is_labelled(f, promise)                           ? WEFT_PAINT_LABEL
										 : WEFT_PAINT_LABEL_ID;
}

/* Writes the name of a row at the row's height, unless another name is there. */
static void name_row(struct weft__frame *f, const struct weft__line *line, const struct row_names *names)
{
	char text[176], remark[64];
	double width;
	const double x = WEFT_GUTTER_FOLD_PX + indent_of(f, names->promise), right = f->width - WEFT__GUTTER_EDGE_PX;
	const int y = line->y + BASELINE_PX;
	size_t len = write_name(f, names, text, sizeof text - 4), remark_len = write_remark(f, names, remark, sizeof remark);
	const double remark_px = weft__text_width(f, WEFT_FONT_SMALL, remark, remark_len);
	len = weft__text_fit(f, WEFT_FONT_LABEL, text, len, sizeof text, right - x, &width);
	if (len == 0 ||
	    !weft__text_put(f, paint_of(f, names->promise), x, y, (struct weft__writing){WEFT_FONT_LABEL, text, len, width}))
		return;
	if (remark_len > 0 && x + width + GAP_PX <= right - remark_px)
		weft__text_put(f, WEFT_PAINT_KIND, right - remark_px, y,
		    (struct weft__writing){WEFT_FONT_SMALL, remark, remark_len, remark_px});
	draw_triangle(f, weft_gutter_fold_of(f->layout, names->promise), line->y);
	if (line->pitch < ROOMY_PX)
		weft__rect(f, weft__ink(WEFT_LAYER_PROMISE, WEFT_PAINT_PROMISE, 255), f->width - 1 - TICK_PX, line->y,
		    f->width - 1, line->y + 1);
}

/* A row whose name should be written. */
struct wish {
	struct weft__line line;
	struct row_names names;
	int rank;
};

static int compare_wishes(const void *a, const void *b)
{
	const struct wish *v = a, *w = b;
	return WEFT_ORDER(v->rank, w->rank) ?: WEFT_ORDER(w->names.run_ns, v->names.run_ns) ?: WEFT_ORDER(v->line.row, w->line.row);
}

typedef WEFT_VEC(struct wish) wish_vec;

/* Returns the order of naming: rows that head many rows, servers, and internal promises of runtimes come first, and then rows
 * with space for all names. */
static int rank_of(const struct weft__frame *f, const struct weft__line *line, uint32_t promise)
{
	const struct weft_track *track = weft_layout_track(f->layout, promise);
	const bool heads = track && track->around == WEFT_NONE && track->row_count > HEADED_ROWS;
	const struct weft_fold *fold = weft_layout_fold(f->layout, promise);
	return heads || f->model->promises[promise].kind == WEFT_KIND_LISTEN || (fold && weft__is_internal_fold(f, fold)) ? 0
	       : line->pitch >= ROOMY_PX                                                                                  ? 1
															  : 2;
}

static void add_wish(struct weft__frame *f, wish_vec *wishes, const struct weft__line *line)
{
	const struct row_names names = find_names(f, line->row);
	struct wish *wish = names.promise == WEFT_NONE || f->failed ? NULL : weft_vec_push(wishes);
	f->failed |= names.promise != WEFT_NONE && !wish;
	if (wish)
		*wish = (struct wish){*line, names, rank_of(f, line, names.promise)};
}

/* Adds a row to the list of rows to be named, if the row is drawn in a strip. */
static void add_strip_row(struct weft__frame *f, wish_vec *wishes, const struct weft_draw_scratch *frame, uint32_t row)
{
	const size_t lines = frame->lines.count;
	if (row == WEFT_NONE || !weft_view_is_shown(f->view, row) ||
	    (lines > 0 && row >= frame->lines.items[0].row && row <= frame->lines.items[lines - 1].row))
		return;
	add_wish(f, wishes, &(struct weft__line){.row = row, .y = weft__row_y(f, row)});
}

/* Adds the rows of actors and of internal promises from the rows that are drawn in strips, unless there are too many. */
static void add_strip_rows(struct weft__frame *f, wish_vec *wishes, const struct weft_draw_scratch *frame)
{
	const struct weft_layout *layout = f->layout;
	if (layout->track_count > MAX_STRIP_TRACKS || layout->fold_count > MAX_STRIP_TRACKS)
		return;
	for (size_t t = 0; t < layout->track_count; t++) {
		const uint32_t actor = layout->tracks[t].actor;
		if (layout->tracks[t].row_count > 1 || f->model->promises[actor].kind == WEFT_KIND_LISTEN)
			add_strip_row(f, wishes, frame, layout->rows[actor]);
	}
	for (size_t i = 0; i < layout->fold_count; i++)
		if (weft__is_internal_fold(f, &layout->folds[i]))
			add_strip_row(f, wishes, frame, layout->rows[layout->folds[i].leader]);
}

/* Writes the names of rows and of low bands.  A band is only one of several threads, so the most important rows are named first;
 * but the bands come first if they distinguish processes. */
static void name_rows(struct weft__frame *f, const struct weft_draw_scratch *frame, double max_width)
{
	const bool are_processes = f->model->trace && f->model->trace->part_count > 1;
	bool has_low_bands = false;
	wish_vec wishes = {0};
	for (size_t i = 0; i < frame->lines.count; i++)
		add_wish(f, &wishes, &frame->lines.items[i]);
	add_strip_rows(f, &wishes, frame);
	if (wishes.count > 0)
		weft_sort(wishes.items, wishes.count, sizeof *wishes.items, compare_wishes);
	for (size_t i = 0; i <= wishes.count && !f->failed; i++) {
		if (!has_low_bands && (are_processes || i == wishes.count || wishes.items[i].rank > 0)) {
			weft__name_bands(f, true, max_width);
			has_low_bands = true;
		}
		if (i < wishes.count)
			name_row(f, &wishes.items[i].line, &wishes.items[i].names);
	}
	weft_vec_free(&wishes);
}

static void name_arrow_band(struct weft__frame *f, const struct weft_draw_scratch *frame)
{
	char text[60], number[WEFT_NUMBER_BYTES];
	if (frame->columns.count == 0)
		return;
	const int len = snprintf(text, sizeof text, "%s arrows", weft_number_text(number, frame->counted_arrows));
	const double width = weft__text_width(f, WEFT_FONT_SMALL, text, (size_t)len);
	weft__text_put(
	    f, WEFT_PAINT_AXIS_TEXT, 8, frame->band_y1 - 2, (struct weft__writing){WEFT_FONT_SMALL, text, (size_t)len, width});
}

static void move_list(struct weft_draw_list *list, float dx, float dy)
{
	for (size_t i = 0; i < list->count; i++) {
		struct weft_prim *p = &list->prims[i];
		p->x0 += dx;
		p->y0 += dy;
		p->x1 += p->kind == WEFT_PRIM_TEXT ? 0 : dx;
		p->y1 += p->kind == WEFT_PRIM_TEXT ? 0 : dy;
	}
}

/* Makes space above the names for a corner beside the ruler, and draws the ruler's lower edge there. */
static void add_corner(struct weft__frame *f, double top_px)
{
	const int top = weft__floor(top_px);
	if (top <= 0)
		return;
	move_list(f->list, 0, (float)top);
	/* f->height is not changed, because the bit maps of the frame have that number of rows */
	f->list->height_px += (float)top;
	weft__rect(f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f->width, top);
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, top - 1, f->width, top);
}

int weft_gutter_draw(struct weft_draw_list *list, const struct weft_draw_list *frame, const struct weft_view *view,
    const struct weft_draw_options *options, double width_px, double top_px, struct weft_error *err)
{
	struct weft__frame f = {.list = list,
	    .view = view,
	    .model = view->model,
	    .layout = view->layout,
	    .index = view->index,
	    .options = *options,
	    .from_ns = weft_view_time(view, 0),
	    .to_ns = weft_view_time(view, view->width_px)};
	assert(frame->scratch);
	f.failed = !weft__frame_begin(&f, width_px, view->height_px) || weft_model_os_tracks(f.model, &f.tracks) < 0;
	if (!f.failed) {
		const double max_width = f.width - 8.0 - WEFT__GUTTER_EDGE_PX;
		weft__rect(&f, weft__ink(WEFT_LAYER_BACK, WEFT_PAINT_BACKGROUND, 255), 0, 0, f.width, f.height);
		weft__rect(&f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), f.width - 1, 0, f.width, f.height);
		weft__draw_bands(&f);
		weft__name_bands(&f, false, max_width);
		weft__name_threads(&f);
		weft__name_metrics(&f);
		name_arrow_band(&f, frame->scratch);
		name_rows(&f, frame->scratch, max_width);
		add_corner(&f, top_px);
	}
	return weft__frame_end(&f, err);
}

/* Moves a frame to the right, and adds the gutter at its left. */
static int join_lists(struct weft_draw_list *frame, const struct weft_draw_list *gutter, struct weft_error *err)
{
	struct weft__frame f = {.list = frame, .s = frame->scratch};
	move_list(frame, gutter->width_px, 0);
	frame->width_px += gutter->width_px;
	/* The gutter is drawn last, so that it hides the parts of the frame that reach into it. */
	weft__list_append(&f, gutter);
	if (!f.failed)
		return WEFT_OK;
	frame->count = frame->text_bytes = 0;
	return weft_error_set(err, WEFT_ENOMEM, "no memory for a frame");
}

int weft_gutter_draw_both(struct weft_draw_list *list, const struct weft_view *view, const struct weft_draw_options *options,
    double gutter_px, struct weft_error *err)
{
	struct weft_draw_options with = *options;
	struct weft_draw_list gutter = {0};
	with.names_beside = gutter_px > 0;
	int status = weft_draw_frame(list, view, &with, err);
	if (status == WEFT_OK && gutter_px > 0) {
		status = weft_gutter_draw(&gutter, list, view, &with, gutter_px, 0, err);
		if (status == WEFT_OK)
			status = join_lists(list, &gutter, err);
		else
			list->count = list->text_bytes = 0;
	}
	weft_draw_finish(&gutter);
	return status;
}

uint32_t weft_gutter_promise_at(const struct weft_view *view, double y_px)
{
	const struct weft__frame f = {.view = view,
	    .model = view->model,
	    .layout = view->layout,
	    .index = view->index,
	    .from_ns = weft_view_time(view, 0),
	    .to_ns = weft_view_time(view, view->width_px)};
	const uint32_t row = weft_view_row_at(view, y_px);
	return row == WEFT_NONE || y_px > view->height_px - view->lanes_px ? WEFT_NONE : find_names(&f, row).promise;
}
