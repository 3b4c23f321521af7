/* sleep.c: folded sleep.
 *
 * What a lull takes away of the width depends on the scale; sums over the lulls before each are made anew when that changes.
 * SPDX-License-Identifier: ISC */
#include "view/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define CELLS 32768

/* ---- finding lulls ---- */

/* The trace in cells, with the first and the last moment of each in which anything goes on. */
struct activity {
	int64_t first_ns[CELLS], last_ns[CELLS];
	int32_t covered[CELLS + 1]; /* as differences: how many intervals cover all of it */
	double cells_per_ns;
	int64_t end_ns;
};

static int cell_of(const struct activity *a, int64_t time_ns)
{
	double at = (double)time_ns * a->cells_per_ns;
	return at > 0 ? at < CELLS - 1 ? (int)at : CELLS - 1 : 0;
}

static void touch(struct activity *a, int cell, int64_t from_ns, int64_t to_ns)
{
	a->first_ns[cell] = from_ns < a->first_ns[cell] ? from_ns : a->first_ns[cell];
	a->last_ns[cell] = to_ns > a->last_ns[cell] ? to_ns : a->last_ns[cell];
}

static void happens(struct activity *a, int64_t time_ns)
{
	touch(a, cell_of(a, time_ns), time_ns, time_ns);
}

static void goes_on(struct activity *a, int64_t start_ns, int64_t end_ns)
{
	int first = cell_of(a, start_ns), last = cell_of(a, end_ns);
	touch(a, first, start_ns, end_ns);
	touch(a, last, start_ns, end_ns);
	if (last > first) {
		a->covered[first + 1]++;
		a->covered[last]--;
	}
}

static void look(struct activity *a, const struct weft_model *m)
{
	for (int c = 0; c < CELLS; c++) {
		a->first_ns[c] = INT64_MAX;
		a->last_ns[c] = INT64_MIN;
	}
	/* While the system runs, the program sleeps. */
	for (size_t r = m->promises[WEFT_SYSTEM + 1].runs; r < m->run_count; r++)
		goes_on(a, m->runs[r].start_ns, m->runs[r].end_ns);
	for (size_t i = 0; i < m->pause_count; i++)
		goes_on(a, m->pauses[i].start_ns, m->pauses[i].end_ns);
	for (size_t p = WEFT_SYSTEM + 1; p < m->promise_count; p++) {
		happens(a, m->promises[p].start_ns);
		if (m->promises[p].end != WEFT_END_PENDING && !(m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED))
			happens(a, m->promises[p].end_ns);
	}
	for (size_t l = 0; l < m->link_count; l++)
		happens(a, m->links[l].time_ns);
}

/* Adds what lies between two moments, if that is a lull. */
static void add_lull(struct weft_lulls *lulls, const struct activity *a, int64_t start_ns, int64_t end_ns)
{
	if ((double)(end_ns - start_ns) * a->cells_per_ns > 2)
		lulls->items[lulls->count++] = (struct weft_lull){start_ns, end_ns};
}

int weft_lulls_find(struct weft_lulls **out, const struct weft_model *model, struct weft_error *err)
{
	struct activity *a = calloc(1, sizeof *a);
	struct weft_lulls *lulls = calloc(1, sizeof *lulls);
	if (lulls)
		lulls->items = calloc(CELLS / 2 + 2, sizeof *lulls->items);
	if (!a || !lulls || !lulls->items) {
		free(a);
		weft_lulls_destroy(lulls);
		return weft_error_set(err, WEFT_ENOMEM, "no memory to fold sleep");
	}
	a->end_ns = model->end_ns;
	a->cells_per_ns = model->end_ns > 0 ? CELLS / (double)model->end_ns : 0;
	if (model->end_ns > 0)
		look(a, model);
	int64_t since_ns = 0, covered = 0;
	for (int c = 0; c < CELLS && model->end_ns > 0; c++) {
		covered += a->covered[c];
		if (covered == 0 && a->first_ns[c] == INT64_MAX)
			continue;
		int64_t from_ns = covered > 0 ? since_ns : a->first_ns[c];
		int64_t to_ns = covered > 0 ? (int64_t)((c + 1) / a->cells_per_ns) : a->last_ns[c];
		add_lull(lulls, a, since_ns, from_ns);
		since_ns = to_ns > since_ns ? to_ns : since_ns;
	}
	add_lull(lulls, a, since_ns, model->end_ns);
	free(a);
	*out = lulls;
	return WEFT_OK;
}

void weft_lulls_destroy(struct weft_lulls *lulls)
{
	if (lulls)
		free(lulls->items);
	free(lulls);
}

int64_t weft_lulls_ns(const struct weft_lulls *lulls)
{
	int64_t sum_ns = 0;
	for (size_t i = 0; i < lulls->count; i++)
		sum_ns += lulls->items[i].end_ns - lulls->items[i].start_ns;
	return sum_ns;
}

/* ---- where times are ---- */

static double length_of(const struct weft_lull *lull)
{
	return (double)lull->end_ns - (double)lull->start_ns;
}

void weft__sleep_scaled(struct weft_view *v)
{
	double taken = 0;
	for (size_t i = 0; i < v->lulls->count; i++) {
		double px = length_of(&v->lulls->items[i]) * v->px_per_ns;
		v->taken_px[i] = taken;
		taken += px > WEFT_LULL_PX ? px - WEFT_LULL_PX : 0;
	}
	v->taken_px[v->lulls->count] = taken;
}

/* What lulls before a time take away. */
static double taken_before(const struct weft_view *v, int64_t time_ns)
{
	const struct weft_lulls *lulls = v->lulls;
	size_t i = WEFT_FIRST(k, 0, lulls->count, lulls->items[k].end_ns > time_ns);
	if (i == lulls->count || time_ns <= lulls->items[i].start_ns)
		return v->taken_px[i];
	double part = ((double)time_ns - (double)lulls->items[i].start_ns) / length_of(&lulls->items[i]);
	return v->taken_px[i] + (v->taken_px[i + 1] - v->taken_px[i]) * part;
}

double weft__sleep_x(const struct weft_view *v, int64_t time_ns)
{
	double x = ((double)time_ns - (double)v->from_ns) * v->px_per_ns;
	return x - (taken_before(v, time_ns) - taken_before(v, v->from_ns));
}

static int64_t rounded(double x)
{
	x += x < 0 ? -0.5 : 0.5;
	return x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : (int64_t)x;
}

int64_t weft__sleep_time_at(const struct weft_view *v, double px)
{
	const struct weft_lull *lulls = v->lulls->items;
	const double scale = v->px_per_ns;
	size_t count = v->lulls->count;
	size_t i = WEFT_FIRST(k, 0, count, (double)lulls[k].end_ns * scale - v->taken_px[k + 1] > px);
	double start_px = i < count ? (double)lulls[i].start_ns * scale - v->taken_px[i] : 0;
	if (i == count || px <= start_px)
		return rounded((px + v->taken_px[i]) / scale);
	double width = length_of(&lulls[i]) * scale - (v->taken_px[i + 1] - v->taken_px[i]);
	return rounded((double)lulls[i].start_ns + (px - start_px) / width * length_of(&lulls[i]));
}

double weft_view_shown_ns(const struct weft_view *v, int64_t time_ns)
{
	return (double)time_ns - (v->lulls ? taken_before(v, time_ns) / v->px_per_ns : 0);
}

int64_t weft_view_past_lull(const struct weft_view *v, int64_t time_ns)
{
	if (!v->lulls)
		return time_ns;
	size_t i = WEFT_FIRST(k, 0, v->lulls->count, v->lulls->items[k].end_ns > time_ns);
	const struct weft_lull *lull = &v->lulls->items[i];
	return i < v->lulls->count && lull->start_ns < time_ns && weft_view_is_folded(v, lull) ? lull->end_ns : time_ns;
}

/* Each round finds more lulls that would be too wide at the scale of the one before. */
double weft__sleep_scale_for(const struct weft_view *v, int64_t from_ns, int64_t to_ns, double width_px)
{
	const struct weft_lulls *lulls = v->lulls;
	size_t first = WEFT_FIRST(k, 0, lulls->count, lulls->items[k].end_ns > from_ns);
	double all_ns = (double)to_ns - (double)from_ns, scale = width_px / all_ns;
	for (size_t folded = 0, before = SIZE_MAX; folded != before;) {
		double ns = all_ns, px = width_px;
		before = folded;
		folded = 0;
		for (size_t i = first; i < lulls->count && lulls->items[i].start_ns < to_ns; i++) {
			const struct weft_lull *g = &lulls->items[i];
			int64_t start = g->start_ns > from_ns ? g->start_ns : from_ns,
				end = g->end_ns < to_ns ? g->end_ns : to_ns;
			double within = (double)end - (double)start;
			if (length_of(g) * scale <= WEFT_LULL_PX)
				continue;
			ns -= within;
			px -= WEFT_LULL_PX * within / length_of(g);
			folded++;
		}
		if (!(ns > 0) || !(px > 0))
			return width_px;
		scale = px / ns;
	}
	return scale;
}

int weft_view_fold_sleep(struct weft_view *v, const struct weft_lulls *lulls, struct weft_error *err)
{
	int64_t from_ns = v->from_ns, to_ns = weft_view_time(v, v->width_px);
	double *taken_px = NULL;
	if (lulls == v->lulls)
		return WEFT_OK;
	if (lulls && !(taken_px = calloc(lulls->count + 1, sizeof *taken_px)))
		return weft_error_set(err, WEFT_ENOMEM, "no memory to fold sleep");
	free(v->taken_px);
	v->taken_px = taken_px;
	v->lulls = lulls;
	if (from_ns <= 0 && to_ns >= v->end_ns)
		weft_view_show_all(v);
	else
		weft_view_show(v, from_ns, to_ns);
	return WEFT_OK;
}
