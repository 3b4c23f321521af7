/* line_fit.c: finds all straight lines that pass between two sets of points, one above and one below the line.
 *
 * For a slope s, the offset of a line ranges from the largest y - s x of the points below to the smallest y - s x of the points
 * above.  Only two convex hulls matter: the lower hull of the points above and the upper hull of the points below.  The code
 * visits the slopes of all hull edges in order; at each edge the point of that hull which limits the offset changes.  The range
 * of slopes ends where the two hulls touch.  SPDX-License-Identifier: ISC
 */
#include "base/line_fit.h"

#include <weft/status.h>

#include "base/sort.h"

/* Largest distance of a point from the origin: the sum of two products of differences then fits in 128 bits. */
#define MAX_DISTANCE ((int64_t)1 << 60)

__extension__ typedef __int128 wide;

void weft_line_fit_init(struct weft_line_fit *fit, int64_t x0, int64_t y0, struct weft_slope least, struct weft_slope most)
{
	*fit = (struct weft_line_fit){.x0 = x0, .y0 = y0, .least = least, .most = most};
}

void weft_line_fit_finish(struct weft_line_fit *fit)
{
	weft_vec_free(&fit->above);
	weft_vec_free(&fit->below);
	weft_vec_free(&fit->highest);
	weft_vec_free(&fit->lowest);
}

static bool is_in_range(int64_t value, int64_t origin, int64_t *difference)
{
	return !__builtin_sub_overflow(value, origin, difference) && -MAX_DISTANCE < *difference && MAX_DISTANCE > *difference;
}

static int add_point(struct weft_line_fit *fit, bool is_above, int64_t x, int64_t y)
{
	struct weft_line_fit_point p;
	if (!is_in_range(x, fit->x0, &p.x) || !is_in_range(y, fit->y0, &p.y))
		return WEFT_EINVAL;
	struct weft_line_fit_point *added = is_above ? weft_vec_push(&fit->above) : weft_vec_push(&fit->below);
	if (added)
		*added = p;
	return added ? WEFT_OK : WEFT_ENOMEM;
}

int weft_line_fit_add_above(struct weft_line_fit *fit, int64_t x, int64_t y)
{
	return add_point(fit, true, x, y);
}

int weft_line_fit_add_below(struct weft_line_fit *fit, int64_t x, int64_t y)
{
	return add_point(fit, false, x, y);
}

static int compare_points(const void *a, const void *b)
{
	const struct weft_line_fit_point *p = a, *q = b;
	return WEFT_ORDER(p->x, q->x) ?: WEFT_ORDER(p->y, q->y);
}

static int compare_slopes(struct weft_slope a, struct weft_slope b)
{
	wide left = (wide)a.dy * b.dx, right = (wide)b.dy * a.dx;
	return WEFT_ORDER(left, right);
}

/* Returns a number above 0 if c is above the line from a to b; b must be to the right of a. */
static int turn_direction(struct weft_line_fit_point a, struct weft_line_fit_point b, struct weft_line_fit_point c)
{
	wide cross_product = (wide)(b.x - a.x) * (c.y - a.y) - (wide)(b.y - a.y) * (c.x - a.x);
	return (cross_product > 0) - (cross_product < 0);
}

/* Reduces the points to a convex hull, sorted by x, and returns the number of its points; sign is 1 for the lower hull, -1 for
 * the upper hull.
 */
static size_t reduce_to_hull(struct weft_line_fit_point *points, size_t count, int sign)
{
	size_t hull_count = 0;
	weft_sort(points, count, sizeof *points, compare_points);
	for (size_t i = 0; i < count; i++) {
		struct weft_line_fit_point p = points[i];
		/* If several points have one x, only the lowest or the highest is kept. */
		if (hull_count > 0 && points[hull_count - 1].x == p.x) {
			if (sign > 0)
				continue;
			hull_count--;
		}
		while (hull_count > 1 && turn_direction(points[hull_count - 2], points[hull_count - 1], p) * sign <= 0)
			hull_count--;
		points[hull_count++] = p;
	}
	return hull_count;
}

static struct weft_slope slope_between(struct weft_line_fit_point left, struct weft_line_fit_point right)
{
	return (struct weft_slope){right.y - left.y, right.x - left.x};
}

/* Returns the sign of the vertical gap between the points `above` and `below` at a line of the given slope. */
static int gap_sign(struct weft_line_fit_point above, struct weft_line_fit_point below, struct weft_slope s)
{
	wide left = (wide)(above.y - below.y) * s.dx, right = (wide)(above.x - below.x) * s.dy;
	return WEFT_ORDER(left, right);
}

/* Returns the slope of the line through two points with different x. */
static struct weft_slope slope_through(struct weft_line_fit_point above, struct weft_line_fit_point below)
{
	return above.x > below.x ? slope_between(below, above) : slope_between(above, below);
}

static bool add_corner(
    struct weft_line_fit *fit, struct weft_line_fit_point above, struct weft_line_fit_point below, struct weft_slope slope)
{
	struct weft_line_fit_line *high = weft_vec_push(&fit->highest), *low = weft_vec_push(&fit->lowest);
	if (!high || !low)
		return false;
	*high = (struct weft_line_fit_line){above, slope};
	*low = (struct weft_line_fit_line){below, slope};
	return true;
}

int weft_line_fit_solve(struct weft_line_fit *fit)
{
	struct weft_line_fit_point *above = fit->above.items, *below = fit->below.items;
	if (fit->above.count == 0 || fit->below.count == 0 || compare_slopes(fit->least, fit->most) > 0)
		return WEFT_EINVAL;
	size_t a = 0, a_end = fit->above.count = reduce_to_hull(above, fit->above.count, 1);
	size_t b = fit->below.count = reduce_to_hull(below, fit->below.count, -1);
	/* A steeper line touches a point farther right in the upper set, and a point farther left in the lower set: below[b -
	 * 1]. */
	bool has_line = false;
	for (struct weft_slope from = fit->least, to;; from = to) {
		while (a + 1 < a_end && compare_slopes(slope_between(above[a], above[a + 1]), from) <= 0)
			a++;
		while (b > 1 && compare_slopes(slope_between(below[b - 2], below[b - 1]), from) <= 0)
			b--;
		to = fit->most;
		if (a + 1 < a_end && compare_slopes(slope_between(above[a], above[a + 1]), to) < 0)
			to = slope_between(above[a], above[a + 1]);
		if (b > 1 && compare_slopes(slope_between(below[b - 2], below[b - 1]), to) < 0)
			to = slope_between(below[b - 2], below[b - 1]);
		const struct weft_line_fit_point high = above[a], low = below[b - 1];
		int gap_from = gap_sign(high, low, from), gap_to = gap_sign(high, low, to);
		if (gap_from < 0 && gap_to < 0 && has_line)
			break;
		if (gap_from >= 0 && !add_corner(fit, high, low, from))
			return WEFT_ENOMEM;
		if (gap_from * gap_to < 0 && !add_corner(fit, high, low, slope_through(high, low)))
			return WEFT_ENOMEM;
		if (gap_to >= 0 && !add_corner(fit, high, low, to))
			return WEFT_ENOMEM;
		has_line = has_line || gap_from >= 0 || gap_to >= 0;
		if (compare_slopes(to, fit->most) >= 0)
			break;
	}
	return has_line ? WEFT_OK : WEFT_EINVAL;
}

/* Returns the y of the line at x, rounded down if towards is -1 and up if it is 1. */
static wide line_y_at(const struct weft_line_fit_line *line, wide x, int towards)
{
	const wide product = (x - line->through.x) * line->slope.dy;
	const int64_t narrow = (int64_t)product; /* a 64-bit division is ten times as fast as a 128-bit division */
	wide y = narrow == product ? narrow / line->slope.dx : product / line->slope.dx;
	const wide rest = product - y * line->slope.dx;
	if (towards < 0 && rest < 0)
		y--;
	if (towards > 0 && rest > 0)
		y++;
	return y + line->through.y;
}

static int64_t clamp_to_i64(wide y)
{
	return y > INT64_MAX ? INT64_MAX : y < INT64_MIN ? INT64_MIN : (int64_t)y;
}

int64_t weft_line_fit_at(const struct weft_line_fit *fit, int64_t x, int64_t *low, int64_t *high)
{
	const wide at = (wide)x - fit->x0;
	const size_t count = fit->highest.count;
	wide least = 0, most = 0;
	for (size_t i = 0; i < count && (low || high); i++) {
		wide l = line_y_at(&fit->lowest.items[i], at, -1), h = line_y_at(&fit->highest.items[i], at, 1);
		least = i == 0 || l < least ? l : least;
		most = i == 0 || h > most ? h : most;
	}
	if (low)
		*low = clamp_to_i64(least + fit->y0);
	if (high)
		*high = clamp_to_i64(most + fit->y0);
	/* The middle between the line of the least slope and the line of the greatest slope is one of the possible lines. */
	wide sum = line_y_at(&fit->lowest.items[0], at, -1) + line_y_at(&fit->highest.items[count - 1], at, -1);
	return clamp_to_i64((sum >= 0 ? sum / 2 : -((1 - sum) / 2)) + fit->y0);
}
