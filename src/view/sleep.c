/* sleep.c: folds sleep.
 *
 * The width by which a folded lull gets shorter depends on the scale.  So the sums over the lulls before each lull are computed
 * again when the scale changes.
 * SPDX-License-Identifier: ISC */
#include "view/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define CELLS 32768

/* ---- Finding lulls ---- */

/* The trace divided into cells, with the first and the last moment of activity in each cell. */
struct activity {
	int64_t first_ns[CELLS], last_ns[CELLS];
	int32_t covered[CELLS + 1]; /* number of intervals that cover the whole cell, as differences between neighbouring cells */
	double cells_per_ns;
	int64_t end_ns;
};

static int cell_of(const struct activity *a, int64_t time_ns)
{
	double at = (double)time_ns * a->cells_per_ns;
	return at > 0 ? at < CELLS - 1 ? (int)at : CELLS - 1 : 0;
}

static void widen_cell(struct activity *a, int cell, int64_t from_ns, int64_t to_ns)
{
	a->first_ns[cell] = from_ns < a->first_ns[cell] ? from_ns : a->first_ns[cell];
	a->last_ns[cell] = to_ns > a->last_ns[cell] ? to_ns : a->last_ns[cell];
}

static void add_moment(struct activity *a, int64_t time_ns)
{
	widen_cell(a, cell_of(a, time_ns), time_ns, time_ns);
}

static void add_interval(struct activity *a, int64_t start_ns, int64_t end_ns)
{
	int first = cell_of(a, start_ns), last = cell_of(a, end_ns);
	widen_cell(a, first, start_ns, end_ns);
	widen_cell(a, last, start_ns, end_ns);
	if (last > first) {
		a->covered[first + 1]++;
		a->covered[last]--;
	}
}

static void collect_activity(struct activity *a, const struct weft_model *m)
{
	for (int c = 0; c < CELLS; c++) {
		a->first_ns[c] = INT64_MAX;
		a->last_ns[c] = INT64_MIN;
	}
	/* Runs of the system promise are skipped, because the program sleeps meanwhile. */
	for (size_t r = m->promises[WEFT_SYSTEM + 1].runs; r < m->run_count; r++)
		add_interval(a, m->runs[r].start_ns, m->runs[r].end_ns);
	for (size_t i = 0; i < m->pause_count; i++)
		add_interval(a, m->pauses[i].start_ns, m->pauses[i].end_ns);
	for (size_t p = WEFT_SYSTEM + 1; p < m->promise_count; p++) {
		add_moment(a, m->promises[p].start_ns);
		if (m->promises[p].end != WEFT_END_PENDING && !(m->promises[p].flags & WEFT_PROMISE_NEVER_RESOLVED))
			add_moment(a, m->promises[p].end_ns);
	}
	for (size_t l = 0; l < m->link_count; l++)
		add_moment(a, m->links[l].time_ns);
}

/* Adds the time between two moments as a lull, if it is long enough. */
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
		collect_activity(a, model);
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
	/* If the trace has no activity at all, folding all of it would leave no linear part, so nothing is folded. */
	if (weft_lulls_ns(lulls) == model->end_ns)
		lulls->count = 0;
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

/* ---- Converting between times and pixels ---- */

/* Returns the difference of two times, exact to the ns even if both are large. */
static double ns_between(int64_t from_ns, int64_t to_ns)
{
	return (double)((uint64_t)to_ns - (uint64_t)from_ns);
}

static double length_of(const struct weft_lull *lull)
{
	return ns_between(lull->start_ns, lull->end_ns);
}

static double width_of(const struct weft_view *v, const struct weft_lull *lull)
{
	const double px = length_of(lull) * v->px_per_ns;
	return px < WEFT_LULL_PX ? px : WEFT_LULL_PX;
}

/* Updates the sums.  The sums are of shown widths, and not of the widths that lulls lose: a lull may last years, where a pixel
 * is months, and positions must still be exact to the ns. */
void weft__sleep_update_scale(struct weft_view *v)
{
	double shown = 0;
	int64_t last_ns = 0;
	for (size_t i = 0; i < v->lulls->count; i++) {
		const struct weft_lull *lull = &v->lulls->items[i];
		shown += ns_between(last_ns, lull->start_ns) * v->px_per_ns;
		v->shown_px[i] = shown;
		shown += width_of(v, lull);
		last_ns = lull->end_ns;
	}
	v->shown_px[v->lulls->count] = shown;
}

/* Returns the end time of the lull before lull i, or of the last lull. */
static double end_before(const struct weft_lulls *lulls, size_t i)
{
	return i > 0 ? (double)lulls->items[i - 1].end_ns : 0;
}

/* Returns the distance in px from time 0 to a time. */
static double shown_at(const struct weft_view *v, int64_t time_ns)
{
	const struct weft_lulls *lulls = v->lulls;
	const size_t i = WEFT_FIND_FIRST(k, 0, lulls->count, lulls->items[k].end_ns > time_ns);
	if (i == lulls->count)
		return v->shown_px[i] + ((double)time_ns - end_before(lulls, i)) * v->px_per_ns;
	const struct weft_lull *lull = &lulls->items[i];
	const double since_ns = (double)time_ns - (double)lull->start_ns;
	return v->shown_px[i] + (since_ns > 0 ? since_ns / length_of(lull) * width_of(v, lull) : since_ns * v->px_per_ns);
}

double weft__sleep_x(const struct weft_view *v, int64_t time_ns)
{
	return shown_at(v, time_ns) - shown_at(v, v->from_ns);
}

static int64_t round_to_ns(double x)
{
	x += x < 0 ? -0.5 : 0.5;
	return x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : (int64_t)x;
}

int64_t weft__sleep_time_at(const struct weft_view *v, double px)
{
	const struct weft_lulls *lulls = v->lulls;
	const size_t count = lulls->count;
	const size_t i = WEFT_FIND_FIRST(k, 0, count, v->shown_px[k] + width_of(v, &lulls->items[k]) > px);
	if (i == count)
		return round_to_ns(end_before(lulls, i) + (px - v->shown_px[i]) / v->px_per_ns);
	const struct weft_lull *lull = &lulls->items[i];
	const double since_px = px - v->shown_px[i];
	return round_to_ns(
	    (double)lull->start_ns + (since_px > 0 ? since_px / width_of(v, lull) * length_of(lull) : since_px / v->px_per_ns));
}

double weft_view_shown_ns(const struct weft_view *v, int64_t time_ns)
{
	return v->lulls ? shown_at(v, time_ns) / v->px_per_ns : (double)time_ns;
}

int64_t weft_view_past_lull(const struct weft_view *v, int64_t time_ns)
{
	if (!v->lulls)
		return time_ns;
	size_t i = WEFT_FIND_FIRST(k, 0, v->lulls->count, v->lulls->items[k].end_ns > time_ns);
	const struct weft_lull *lull = &v->lulls->items[i];
	return i < v->lulls->count && lull->start_ns < time_ns && weft_view_is_folded(v, lull) ? lull->end_ns : time_ns;
}

/* Returns the width of from..to at a scale, and sets *slope to its derivative; `first` is the first lull that matters. */
static double width_at(const struct weft_view *v, size_t first, int64_t from_ns, int64_t to_ns, double scale, double *slope)
{
	const struct weft_lulls *lulls = v->lulls;
	double ns = 0, px = 0;
	int64_t last_ns =
	    from_ns; /* sums up the time between lulls, because subtracting lulls of years from the total would lose precision */
	for (size_t i = first; i < lulls->count && lulls->items[i].start_ns < to_ns; i++) {
		const struct weft_lull *g = &lulls->items[i];
		const int64_t start = g->start_ns > from_ns ? g->start_ns : from_ns, end = g->end_ns < to_ns ? g->end_ns : to_ns;
		const double within = ns_between(start, end);
		ns += ns_between(last_ns, start);
		last_ns = end;
		if (length_of(g) * scale <= WEFT_LULL_PX)
			ns += within;
		else
			px += WEFT_LULL_PX * within / length_of(g);
	}
	ns += ns_between(last_ns, to_ns);
	*slope = ns;
	return ns * scale + px;
}

/* Finds the scale by Newton's method, because the width is a piecewise linear function of the scale; if a step leaves the known
 * interval, the interval is bisected. */
double weft__sleep_scale_for(const struct weft_view *v, int64_t from_ns, int64_t to_ns, double width_px)
{
	enum { STEPS = 100 };
	const size_t first = WEFT_FIND_FIRST(k, 0, v->lulls->count, v->lulls->items[k].end_ns > from_ns);
	double low = width_px / ((double)to_ns - (double)from_ns), high = width_px, scale = low, slope, best = low,
	       best_px = width_px;
	if (!(low < high) || width_at(v, first, from_ns, to_ns, high, &slope) <= width_px)
		return width_px;
	for (int i = 0; i < STEPS && best_px > 0; i++) {
		const double px = width_at(v, first, from_ns, to_ns, scale, &slope),
			     away_px = px < width_px ? width_px - px : px - width_px;
		if (away_px < best_px) {
			best = scale;
			best_px = away_px;
		}
		*(px < width_px ? &low : &high) = scale;
		const double next = slope > 0 ? scale + (width_px - px) / slope : low;
		if (next == scale)
			break;
		scale = next > low && next < high ? next : low + (high - low) / 2;
	}
	return best;
}

int weft_view_fold_sleep(struct weft_view *v, const struct weft_lulls *lulls, struct weft_error *err)
{
	int64_t from_ns = v->from_ns, to_ns = weft_view_time(v, v->width_px);
	double *shown_px = NULL;
	if (lulls == v->lulls)
		return WEFT_OK;
	if (lulls && !(shown_px = calloc(lulls->count + 1, sizeof *shown_px)))
		return weft_error_set(err, WEFT_ENOMEM, "no memory to fold sleep");
	free(v->shown_px);
	v->shown_px = shown_px;
	v->lulls = lulls;
	if (from_ns <= 0 && to_ns >= v->end_ns)
		weft_view_show_all(v);
	else
		weft_view_show(v, from_ns, to_ns);
	return WEFT_OK;
}
