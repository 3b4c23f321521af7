/* view.c: computes the viewport.  SPDX-License-Identifier: ISC */
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "view/index.h"
#include "view/sleep.h"

#define MIN_SPAN_NS 200.0
#define NAMED_PX 13.0       /* minimum height in px of a row that shows its name */
#define COMFORTABLE_PX 25.0 /* height in px of a row that shows name and kind */
#define MAX_ROW_PX 96.0     /* maximum height in px of a row */
#define HIT_PX 16.0
#define HIT_ROWS 64u

static double clamp(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static int64_t saturate_ns(double x)
{
	return x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : (int64_t)x;
}

/* Returns the end of the time that can be shown; after a trace of zero length, a little time is shown. */
static double span_ns(const struct weft_view *v)
{
	return v->end_ns > (int64_t)MIN_SPAN_NS ? (double)v->end_ns : MIN_SPAN_NS;
}

static double inner_width(const struct weft_view *v)
{
	return v->width_px > 4 * WEFT_VIEW_MARGIN_PX ? v->width_px - 2 * WEFT_VIEW_MARGIN_PX : v->width_px / 2;
}

static double inner_height(const struct weft_view *v)
{
	double h = v->height_px - v->lanes_px - WEFT_VIEW_TOP_PX - WEFT_VIEW_BOTTOM_PX;
	return h > 16 ? h : 16;
}

/* Maps any number to -1 .. 1, with the steepest slope at 0.  Any sigmoid function would do; this one is exact on every
 * platform. */
static double squash_offset(double x)
{
	return x / (1 + (x < 0 ? -x : x));
}

static double squashed_range(const struct weft_view *v, double focus, double curve)
{
	return squash_offset((v->slots - focus) / curve) + squash_offset(focus / curve);
}

/* Returns the share of the height that is divided evenly among rows, so that distant rows keep their shape.  The share grows
 * with the number of rows. */
static double even_share(const struct weft_view *v)
{
	return 0.35 + 0.4 * v->slots / (v->slots + 1000);
}

static double pitch_at_focus(const struct weft_view *v, double focus, double curve)
{
	double even = even_share(v);
	return inner_height(v) * (even / v->slots + (1 - even) / (curve * squashed_range(v, focus, curve)));
}

static double even_pitch(const struct weft_view *v)
{
	return inner_height(v) / (v->slots > 0 ? v->slots : 1);
}

/* Finds the curve that makes rows at the focus comfortably high, while the first row stays at the top and the last row at the
 * bottom.  If rows are only a little too low for names, the curve is weak, because a strong curve would take names from as many
 * rows as it gives. */
static double curve_for(const struct weft_view *v, double focus)
{
	double low = 0.01, high = v->slots * 64, wanted = clamp(3 * NAMED_PX - 2 * even_pitch(v), NAMED_PX, COMFORTABLE_PX);
	for (int i = 0; i < 64; i++) {
		double curve = (low + high) / 2;
		if (pitch_at_focus(v, focus, curve) > wanted)
			low = curve;
		else
			high = curve;
	}
	return high;
}

static void update_projection(struct weft_view *v)
{
	double linear = even_pitch(v);
	v->focus = clamp(v->focus, 0, v->slots);
	/* Rounded to the precision with which a URL stores the focus. */
	v->focus = (double)(int64_t)(v->focus * 1000 + 0.5) / 1000;
	if (linear >= NAMED_PX || v->slots < 1) {
		v->curve = 0;
		v->pitch_px = linear < MAX_ROW_PX ? linear : MAX_ROW_PX;
	} else {
		v->curve = curve_for(v, v->focus);
		v->pitch_px = pitch_at_focus(v, v->focus, v->curve);
		v->even_px = inner_height(v) * even_share(v) / v->slots;
		v->curved_px = inner_height(v) * (1 - even_share(v)) / squashed_range(v, v->focus, v->curve);
		v->above = squash_offset(v->focus / v->curve);
	}
}

static void set_scale(struct weft_view *v, double px_per_ns)
{
	v->px_per_ns = px_per_ns;
	if (v->lulls)
		weft__sleep_update_scale(v);
}

/* Returns the scale at which the interval from..to is width_px wide. */
static double scale_for(const struct weft_view *v, double from_ns, double to_ns, double width_px)
{
	return v->lulls ? weft__sleep_scale_for(v, saturate_ns(from_ns), saturate_ns(to_ns), width_px)
			: width_px / (to_ns - from_ns);
}

/* Returns the time at px right of the left edge, however far that is. */
static int64_t time_from(const struct weft_view *v, double px)
{
	if (v->lulls)
		return weft__sleep_time_at(v, weft_view_shown_ns(v, v->from_ns) * v->px_per_ns + px);
	return saturate_ns((double)v->from_ns + px / v->px_per_ns);
}

/* Sets a scale at which the visible interval ends at a whole ns, as in a URL, so that opening the URL shows the same pixels. */
static void settle_scale(struct weft_view *v)
{
	double span = v->width_px / v->px_per_ns + 0.5;
	if (v->lulls)
		span = (double)weft_view_time(v, v->width_px) - (double)v->from_ns;
	if (!(span > MIN_SPAN_NS && span < 9e18))
		return;
	if (v->lulls)
		set_scale(v, scale_for(v, (double)v->from_ns, (double)v->from_ns + span, v->width_px));
	else
		v->px_per_ns = v->width_px / (double)(int64_t)span;
}

/* Limits scrolling to a margin on either side of the trace. */
static void clamp_folded(struct weft_view *v)
{
	double margin = (v->width_px - inner_width(v)) / 2, at = weft_view_shown_ns(v, v->from_ns) * v->px_per_ns;
	double last = weft_view_shown_ns(v, saturate_ns(span_ns(v))) * v->px_per_ns + margin - v->width_px;
	double to = clamp(at, -margin, last > -margin ? last : -margin);
	if (to < at || to > at)
		v->from_ns = weft__sleep_time_at(v, to);
}

static void clamp_time(struct weft_view *v)
{
	double min_scale = scale_for(v, 0, span_ns(v), inner_width(v)), max_scale = v->width_px / MIN_SPAN_NS;
	double from = (double)v->from_ns;
	set_scale(v, clamp(v->px_per_ns, min_scale, max_scale > min_scale ? max_scale : min_scale));
	if (v->lulls) {
		clamp_folded(v);
		return;
	}
	double margin = (v->width_px - inner_width(v)) / 2 / v->px_per_ns;
	double last = span_ns(v) + margin - v->width_px / v->px_per_ns;
	from = clamp(from, -margin, last > -margin ? last : -margin);
	if (from != (double)v->from_ns)
		v->from_ns = saturate_ns(from);
}

static uint32_t row_of_slot(const struct weft_view *v, double slot);

static size_t shown_words(const struct weft_view *v)
{
	return (size_t)v->layout->row_count / 64 + 1;
}

static void show_rows(uint64_t *shown, uint32_t first, uint32_t last)
{
	for (uint32_t w = first / 64; w <= last / 64; w++) {
		uint64_t from = w == first / 64 ? UINT64_MAX << first % 64 : UINT64_MAX;
		shown[w] |= w == last / 64 ? from & UINT64_MAX >> (63 - last % 64) : from;
	}
}

/* Gives height to the rows of those promises i up to end that are alive in from..to, beginning with `row`; promises of one row
 * do not overlap. */
static void show_alive_of(struct weft_view *v, uint32_t row, size_t i, size_t end, int64_t from_ns, int64_t to_ns)
{
	const struct weft_index *x = v->index;
	for (; i < end; row++) {
		size_t row_end = v->layout->row_begin[row + 1] < end ? v->layout->row_begin[row + 1] : end;
		if (row_end > i && !weft_view_is_shown(v, row)) {
			i = WEFT_FIND_FIRST(k, i, row_end, x->lives[k].end_ns >= from_ns);
			if (i < row_end && x->lives[i].start_ns <= to_ns)
				v->shown[row / 64] |= (uint64_t)1 << row % 64;
		}
		i = row_end;
	}
}

/* Gives height to the rows on which a promise is alive in from..to; if all promises of a box are, all rows of the box at
 * once. */
static void show_alive(struct weft_view *v, int64_t from_ns, int64_t to_ns)
{
	const struct weft_index *x = v->index;
	struct {
		int level;
		size_t box;
	} stack[WEFT__BOX_LEVELS * WEFT__BOX_FAN + 1];
	int height = 0;
	stack[height].level = x->box_levels - 1;
	stack[height++].box = 0;
	while (height > 0) {
		int level = stack[--height].level;
		size_t at = stack[height].box, end = (at + 1) * (level ? WEFT__BOX_FAN : WEFT__BOX_PROMISES);
		size_t last = level ? x->box_count[level - 1] : x->count;
		const struct weft_box *box = &x->boxes[level][at];
		if (box->end_ns < from_ns || box->start_ns > to_ns ||
		    (box->first_row == box->last_row && weft_view_is_shown(v, box->first_row)))
			continue;
		if (box->first_end_ns >= from_ns && box->last_start_ns <= to_ns) {
			show_rows(v->shown, box->first_row, box->last_row);
			continue;
		}
		end = end < last ? end : last;
		if (level == 0) {
			show_alive_of(v, box->first_row, at * WEFT__BOX_PROMISES, end, from_ns, to_ns);
			continue;
		}
		for (size_t i = at * WEFT__BOX_FAN; i < end; i++) {
			stack[height].level = level - 1;
			stack[height++].box = i;
		}
	}
}

static uint32_t shown_rows(const struct weft_view *v)
{
	return weft_view_rank(v, v->layout->row_count);
}

/* Returns whether an OS thread has a visible pause, which shows the thread's header even if no promise is alive on it. */
static bool has_pause(const struct weft_view *v, size_t band, int64_t from_ns, int64_t to_ns)
{
	if (v->index->band_count < 2)
		return false;
	const struct weft_intervals *pauses = &v->index->pauses[band];
	size_t i = weft__intervals_end_after(pauses, 0, from_ns);
	return i < pauses->count && weft__intervals_start(pauses, i) <= to_ns;
}

static void count_headers(struct weft_view *v, int64_t from_ns, int64_t to_ns)
{
	const struct weft_layout *l = v->layout;
	v->headers_before[0] = 0;
	for (size_t b = 0; b < l->band_count; b++) {
		uint32_t first = l->bands[b].first_row, end = first + l->bands[b].row_count;
		bool has = weft_layout_headers(l) > 0 &&
			   (weft_view_rank(v, end) > weft_view_rank(v, first) || has_pause(v, b, from_ns, to_ns));
		v->headers_before[b + 1] = v->headers_before[b] + has;
	}
}

static uint32_t headers_before(const struct weft_view *v, size_t band)
{
	return weft_layout_headers(v->layout) == 0 ? 0 : v->shown ? v->headers_before[band] : (uint32_t)band;
}

/* Finds the rows that have anything to show in the visible interval.  The row in focus stays in focus, or the next row that is
 * shown.  The time is linear in the visible promises and in rows / 64.  Without memory all rows are shown. */
static void choose_rows(struct weft_view *v)
{
	const struct weft_layout *l = v->layout;
	const size_t words = shown_words(v);
	uint32_t focus = row_of_slot(v, v->focus);
	double within = focus == WEFT_NONE ? 0 : v->focus - weft_view_slot(v, focus);
	if (v->holds_rows || l->row_count == 0) {
		free(v->shown);
		v->shown = NULL;
	} else if (!v->shown && (v->shown = malloc(words * (sizeof *v->shown + sizeof *v->shown_before) +
						   (l->band_count + 1) * sizeof *v->headers_before))) {
		v->shown_before = (uint32_t *)(void *)(v->shown + words);
		v->headers_before = v->shown_before + words;
	}
	if (v->shown) {
		uint32_t before = 0;
		const int64_t to_ns = weft_view_time(v, v->width_px);
		memset(v->shown, 0, words * sizeof *v->shown);
		show_alive(v, v->from_ns, to_ns);
		for (size_t w = 0; w < words; w++) {
			v->shown_before[w] = before;
			before += (uint32_t)__builtin_popcountll(v->shown[w]);
		}
		count_headers(v, v->from_ns, to_ns);
	}
	v->slots = weft_view_header(v, l->band_count);
	if (focus != WEFT_NONE)
		v->focus = weft_view_slot(v, focus) + within;
	update_projection(v);
}

void weft_view_hold_rows(struct weft_view *v, bool hold)
{
	v->holds_rows = hold;
	choose_rows(v);
}

static int create_view(struct weft_view **out, const struct weft_model *model, const struct weft_layout *layout,
    const struct weft_index *whole, struct weft_error *err)
{
	struct weft_view *v = calloc(1, sizeof *v);
	uint64_t *highlight = calloc(model->promise_count / 64 + 1, sizeof *highlight);
	struct weft_index *index = NULL;
	if (!v || !highlight || weft__index_create(&index, model, layout, whole) < 0) {
		free(v);
		free(highlight);
		return weft_error_set(err, WEFT_ENOMEM, "no memory to view %zu promises", model->promise_count);
	}
	*v = (struct weft_view){.model = model, .layout = layout, .highlight = highlight, .index = index};
	v->slots = weft_view_header(v, layout->band_count);
	v->width_px = 1280;
	v->height_px = 720;
	v->end_ns = model->end_ns;
	weft_view_show_all(v);
	*out = v;
	return WEFT_OK;
}

int weft_view_create(
    struct weft_view **out, const struct weft_model *model, const struct weft_layout *layout, struct weft_error *err)
{
	return create_view(out, model, layout, NULL, err);
}

int weft_view_create_subset(
    struct weft_view **out, const struct weft_view *whole, const struct weft_layout *layout, struct weft_error *err)
{
	return create_view(out, whole->model, layout, whole->index, err);
}

void weft_view_destroy(struct weft_view *v)
{
	if (!v)
		return;
	weft__index_destroy(v->index, v->model);
	free(v->highlight);
	free(v->shown);
	free(v->shown_px);
	free(v);
}

void weft_view_resize(struct weft_view *v, double width_px, double height_px)
{
	width_px = clamp(width_px, 16, 32767);
	v->height_px = clamp(height_px, 64, 32767); /* minimum height, because a lower view has no space for rows */
	if (v->lulls)
		set_scale(v, scale_for(v, (double)v->from_ns, (double)weft_view_time(v, v->width_px), width_px));
	else
		v->px_per_ns *= width_px / v->width_px;
	v->width_px = width_px;
	clamp_time(v);
	settle_scale(v);
	choose_rows(v);
}

void weft_view_reserve_lanes(struct weft_view *v, double lanes_px)
{
	if (lanes_px == v->lanes_px)
		return;
	v->lanes_px = lanes_px;
	choose_rows(v);
}

void weft_view_set_end(struct weft_view *v, int64_t end_ns)
{
	v->end_ns = end_ns;
}

void weft_view_show(struct weft_view *v, int64_t from_ns, int64_t to_ns)
{
	if (from_ns > to_ns) {
		int64_t swap = from_ns;
		from_ns = to_ns;
		to_ns = swap;
	}
	double span = (double)((uint64_t)to_ns - (uint64_t)from_ns);
	v->from_ns = from_ns;
	if (v->lulls && span > MIN_SPAN_NS)
		set_scale(v, clamp(scale_for(v, (double)from_ns, (double)to_ns, v->width_px), 0, v->width_px / MIN_SPAN_NS));
	else
		set_scale(v, v->width_px / (span > MIN_SPAN_NS ? span : MIN_SPAN_NS));
	choose_rows(v);
}

void weft_view_restore(struct weft_view *v, int64_t from_ns, double px_per_ns, double focus)
{
	v->from_ns = from_ns;
	set_scale(v, px_per_ns);
	choose_rows(v);
	weft_view_focus(v, focus);
}

void weft_view_show_promise(struct weft_view *v, uint32_t promise)
{
	int64_t from = v->model->promises[promise].start_ns, to = weft_layout_end(v->layout, v->model, promise);
	int64_t length = to / 2 - from / 2, around = length / 5 > 100 ? length / 5 : 100;
	weft_view_show(v, __builtin_sub_overflow(from, around, &from) ? INT64_MIN : from,
	    __builtin_add_overflow(to, around, &to) ? INT64_MAX : to);
}

void weft_view_show_all(struct weft_view *v)
{
	set_scale(v, scale_for(v, 0, span_ns(v), inner_width(v)));
	v->from_ns = saturate_ns(-(v->width_px - inner_width(v)) / 2 / v->px_per_ns);
	settle_scale(v);
	choose_rows(v);
}

void weft_view_zoom(struct weft_view *v, double factor, double x_px)
{
	double scale = v->px_per_ns;
	if (!(factor > 0))
		return;
	x_px = clamp(x_px, 0, v->width_px);
	int64_t under = v->lulls ? time_from(v, x_px) : 0;
	set_scale(v, clamp(v->px_per_ns * factor, scale_for(v, 0, span_ns(v), inner_width(v)), v->width_px / MIN_SPAN_NS));
	if (v->lulls)
		v->from_ns = weft__sleep_time_at(v, weft_view_shown_ns(v, under) * v->px_per_ns - x_px);
	else
		v->from_ns = saturate_ns((double)v->from_ns + (x_px / scale - x_px / v->px_per_ns));
	clamp_time(v);
	settle_scale(v);
	choose_rows(v);
}

void weft_view_pan(struct weft_view *v, double dx_px)
{
	if (dx_px != dx_px)
		return;
	v->from_ns = time_from(v, -dx_px);
	clamp_time(v);
	settle_scale(v);
	choose_rows(v);
}

void weft_view_focus(struct weft_view *v, double slot)
{
	if (slot == slot)
		v->focus = slot;
	update_projection(v);
}

void weft_view_focus_slot_at_y(struct weft_view *v, double slot, double y_px)
{
	double low = 0, high = v->slots;
	if (v->curve == 0 || slot != slot || y_px != y_px)
		return;
	for (int i = 0; i < 40; i++) {
		v->focus = (low + high) / 2;
		update_projection(v);
		if (weft_view_y(v, slot) > y_px)
			low = v->focus;
		else
			high = v->focus;
	}
}

/* Returns the total width in px of the labels that could be drawn on a row. */
static double labels_on(const struct weft_view *v, uint32_t r, int64_t from, int64_t to)
{
	const struct weft_intervals row = weft__row_intervals(v->index, v->layout, r);
	double labels = 0;
	size_t i = weft__intervals_end_after(&row, 0, from);
	for (int seen = 0; i < row.count && weft__intervals_start(&row, i) < to && seen < 64; i++, seen++) {
		double left = clamp(weft_view_x(v, weft__intervals_start(&row, i)), 0, v->width_px);
		double right = clamp(weft_view_x(v, weft__intervals_end(&row, i)), 0, v->width_px);
		if (right - left > 30)
			labels += right - left < 150 ? right - left : 150;
	}
	return labels;
}

void weft_view_focus_best(struct weft_view *v)
{
	enum { BUCKETS = 64 };
	int64_t from = v->from_ns, to = weft_view_time(v, v->width_px);
	double low = 0, high = v->slots;
	if (v->curve == 0)
		return;
	/* Each step narrows the range around the rows with the most labels; nearby rows count in proportion to their height. */
	for (int level = 0; level < 6 && high - low > 2; level++) {
		double weight[BUCKETS] = {0}, best = 0, step = (high - low) / BUCKETS, at = (low + high) / 2;
		uint32_t r = weft_view_row_at(v, weft_view_y(v, low));
		r = weft_view_next_shown(v, r == WEFT_NONE || low == 0 ? 0 : r);
		for (; r < v->layout->row_count; r = weft_view_next_shown(v, r + 1)) {
			double place = (weft_view_slot(v, r) - low) / step;
			if (place >= BUCKETS)
				break;
			if (place >= 0)
				weight[(size_t)place] += labels_on(v, r, from, to);
		}
		for (int p = 0; p < BUCKETS; p++) {
			double sum = 0, middle = low + (p + 0.5) * step, curve = curve_for(v, middle);
			for (int q = 0; q < BUCKETS; q++) {
				double d = (q - p) * step / curve;
				d = 1 + (d < 0 ? -d : d);
				sum += weight[q] / (d * d);
			}
			if (sum > best) {
				best = sum;
				at = middle;
			}
		}
		low = at - step > 0 ? at - step : 0;
		high = at + step < v->slots ? at + step : v->slots;
		if (step < 1)
			break;
	}
	weft_view_focus(v, (low + high) / 2);
}

int64_t weft_view_time(const struct weft_view *v, double x_px)
{
	double since = x_px / v->px_per_ns;
	int64_t time;
	if (v->lulls)
		return time_from(v, x_px);
	if (since > -9e18 && since < 9e18 && !__builtin_add_overflow(v->from_ns, (int64_t)since, &time))
		return time;
	return saturate_ns((double)v->from_ns + since);
}

/* Returns the number of the band that contains a row. */
static size_t band_of(const struct weft_layout *layout, uint32_t row)
{
	return WEFT_FIND_FIRST(i, 1, layout->band_count, layout->bands[i].first_row > row) - 1;
}

double weft_view_slot(const struct weft_view *v, uint32_t row)
{
	return (double)weft_view_rank(v, row) + 0.5 +
	       (weft_layout_headers(v->layout) > 0 ? (double)headers_before(v, band_of(v->layout, row)) + 1 : 0);
}

double weft_view_whole_slot(const struct weft_layout *layout, uint32_t row)
{
	return (double)row + 0.5 + (weft_layout_headers(layout) > 0 ? (double)(band_of(layout, row) + 1) : 0);
}

double weft_view_y(const struct weft_view *v, double slot)
{
	if (v->curve == 0)
		return WEFT_VIEW_TOP_PX + slot * v->pitch_px;
	return WEFT_VIEW_TOP_PX + v->even_px * slot + v->curved_px * (squash_offset((slot - v->focus) / v->curve) + v->above);
}

double weft_view_slot_at(const struct weft_view *v, double y_px)
{
	if (v->curve == 0)
		return clamp((y_px - WEFT_VIEW_TOP_PX) / v->pitch_px, 0, v->slots);
	if (!(y_px > WEFT_VIEW_TOP_PX))
		return 0;
	/* d is the distance from the focus in px, and t is the distance as a multiple of the curve.  On each side d = a t + c t
	 * / (1 + t), which is a quadratic equation in t. */
	double a = v->even_px * v->curve, c = v->curved_px;
	double d = y_px - WEFT_VIEW_TOP_PX - v->even_px * v->focus - c * v->above, side = d < 0 ? -1 : 1;
	d *= side;
	double b = a + c - d, root = __builtin_sqrt(b * b + 4 * a * d);
	double t = b > 0 ? 2 * d / (b + root) : (root - b) / (2 * a);
	return clamp(v->focus + side * t * v->curve, 0, v->slots);
}

double weft_view_header(const struct weft_view *v, size_t band)
{
	uint32_t row = band < v->layout->band_count ? v->layout->bands[band].first_row : v->layout->row_count;
	return (double)weft_view_rank(v, row) + (double)headers_before(v, band);
}

bool weft_view_has_header(const struct weft_view *v, size_t band)
{
	return headers_before(v, band + 1) > headers_before(v, band);
}

uint32_t weft_view_row_of_rank(const struct weft_view *v, uint32_t rank)
{
	if (!v->shown)
		return rank;
	size_t w = WEFT_FIND_FIRST(i, 1, shown_words(v), v->shown_before[i] > rank) - 1;
	uint64_t bits = v->shown[w];
	for (uint32_t before = v->shown_before[w]; before < rank && bits; before++)
		bits &= bits - 1;
	return bits ? (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits) : v->layout->row_count;
}

uint32_t weft_view_next_shown(const struct weft_view *v, uint32_t row)
{
	if (!v->shown || row >= v->layout->row_count)
		return row;
	size_t w = row / 64, words = shown_words(v);
	uint64_t bits = v->shown[w] & UINT64_MAX << row % 64;
	while (!bits && ++w < words)
		bits = v->shown[w];
	return bits ? (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits) : v->layout->row_count;
}

/* Returns the row of a slot; WEFT_NONE if there is none, or the slot is a header. */
static uint32_t row_of_slot(const struct weft_view *v, double slot)
{
	const struct weft_layout *layout = v->layout;
	uint32_t rows = shown_rows(v);
	if (rows == 0)
		return WEFT_NONE;
	if (weft_layout_headers(layout) > 0) {
		size_t band = WEFT_FIND_FIRST(b, 1, layout->band_count, weft_view_header(v, b) > slot) - 1;
		slot -= (double)headers_before(v, band + 1);
		if (slot < (double)weft_view_rank(v, layout->bands[band].first_row))
			return WEFT_NONE;
	}
	return weft_view_row_of_rank(v, slot < (double)rows ? (uint32_t)slot : rows - 1);
}

uint32_t weft_view_row_at(const struct weft_view *v, double y_px)
{
	return row_of_slot(v, weft_view_slot_at(v, y_px));
}

uint32_t weft_view_hit(const struct weft_view *v, double x_px, double y_px)
{
	const struct weft_layout *layout = v->layout;
	uint32_t best = WEFT_NONE, middle = weft_view_row_at(v, y_px);
	double best_distance = HIT_PX;
	if (layout->row_count == 0)
		return WEFT_NONE;
	if (middle == WEFT_NONE)
		middle = weft_view_row_at(v, y_px + v->pitch_px);
	if (middle == WEFT_NONE)
		return WEFT_NONE;
	middle = weft_view_rank(v, middle);
	uint32_t first = middle > HIT_ROWS ? middle - HIT_ROWS : 0;
	uint32_t last = shown_rows(v) - middle > HIT_ROWS ? middle + HIT_ROWS : shown_rows(v);
	for (uint32_t k = first; k < last; k++) {
		uint32_t r = weft_view_row_of_rank(v, k);
		double dy = weft_view_y(v, weft_view_slot(v, r)) - y_px;
		const struct weft_intervals row = weft__row_intervals(v->index, layout, r);
		dy = dy < 0 ? -dy : dy;
		if (dy >= best_distance)
			continue;
		/* The result is the promise under the point, or else the nearest promise on either side. */
		size_t i = weft__intervals_end_after(&row, 0, weft_view_time(v, x_px));
		for (size_t n = i > 0 ? i - 1 : 0; n <= i && n < row.count; n++) {
			double left = weft_view_x(v, weft__intervals_start(&row, n)),
			       right = weft_view_x(v, weft__intervals_end(&row, n));
			double dx = x_px < left ? left - x_px : x_px > right ? x_px - right : 0;
			double distance = dx > dy ? dx : dy;
			if (distance < best_distance) {
				best_distance = distance;
				best = layout->by_row[layout->row_begin[r] + n];
			}
		}
	}
	return best;
}
