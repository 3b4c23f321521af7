/* band.c: all straight lines between two clouds of points.
 *
 * For a slope s, the offsets are between the greatest y - s x of the points below and the least of those above.  Only hulls
 * count: the lower one of the points above, the upper one of those below.  Going through the slopes of all their edges, in order,
 * the one point of each hull that counts changes at its edges; where the two meet, the slopes end.  SPDX-License-Identifier: ISC
 */
#include "base/band.h"

#include <weft/status.h>

#include "base/sort.h"

/* Products of two differences, of which two are added, fit in 128 bits. */
#define FARTHEST ((int64_t)1 << 60)

__extension__ typedef __int128 wide;

void weft_band_init(struct weft_band *band, int64_t x0, int64_t y0, struct weft_slope least, struct weft_slope most)
{
	*band = (struct weft_band){.x0 = x0, .y0 = y0, .least = least, .most = most};
}

void weft_band_finish(struct weft_band *band)
{
	weft_vec_free(&band->above);
	weft_vec_free(&band->below);
	weft_vec_free(&band->highest);
	weft_vec_free(&band->lowest);
}

static bool is_near(int64_t value, int64_t origin, int64_t *difference)
{
	return !__builtin_sub_overflow(value, origin, difference) && -FARTHEST < *difference && FARTHEST > *difference;
}

static int add_point(struct weft_band *band, bool is_above, int64_t x, int64_t y)
{
	struct weft_band_point p;
	if (!is_near(x, band->x0, &p.x) || !is_near(y, band->y0, &p.y))
		return WEFT_EINVAL;
	struct weft_band_point *added = is_above ? weft_vec_push(&band->above) : weft_vec_push(&band->below);
	if (added)
		*added = p;
	return added ? WEFT_OK : WEFT_ENOMEM;
}

int weft_band_above(struct weft_band *band, int64_t x, int64_t y)
{
	return add_point(band, true, x, y);
}

int weft_band_below(struct weft_band *band, int64_t x, int64_t y)
{
	return add_point(band, false, x, y);
}

static int compare_points(const void *a, const void *b)
{
	const struct weft_band_point *p = a, *q = b;
	return WEFT_ORDER(p->x, q->x) ?: WEFT_ORDER(p->y, q->y);
}

static int compare_slopes(struct weft_slope a, struct weft_slope b)
{
	wide left = (wide)a.dy * b.dx, right = (wide)b.dy * a.dx;
	return WEFT_ORDER(left, right);
}

/* > 0: c is above the line from a to b, which is to the right of a. */
static int side(struct weft_band_point a, struct weft_band_point b, struct weft_band_point c)
{
	wide turn = (wide)(b.x - a.x) * (c.y - a.y) - (wide)(b.y - a.y) * (c.x - a.x);
	return (turn > 0) - (turn < 0);
}

/* Leaves the points of the hull on the side of the line, from left to right: sign is 1 for the lower hull, -1 for the upper one.
 */
static size_t keep_hull(struct weft_band_point *points, size_t count, int sign)
{
	size_t kept = 0;
	weft_sort(points, count, sizeof *points, compare_points);
	for (size_t i = 0; i < count; i++) {
		struct weft_band_point p = points[i];
		/* Of points at one x the lowest counts, or the highest. */
		if (kept > 0 && points[kept - 1].x == p.x) {
			if (sign > 0)
				continue;
			kept--;
		}
		while (kept > 1 && side(points[kept - 2], points[kept - 1], p) * sign <= 0)
			kept--;
		points[kept++] = p;
	}
	return kept;
}

static struct weft_slope slope_between(struct weft_band_point left, struct weft_band_point right)
{
	return (struct weft_slope){right.y - left.y, right.x - left.x};
}

/* How much room a line of that slope has between the two points: its sign. */
static int room(struct weft_band_point above, struct weft_band_point below, struct weft_slope s)
{
	wide left = (wide)(above.y - below.y) * s.dx, right = (wide)(above.x - below.x) * s.dy;
	return WEFT_ORDER(left, right);
}

/* The slope of the line through both, which are not one above the other. */
static struct weft_slope slope_through(struct weft_band_point above, struct weft_band_point below)
{
	return above.x > below.x ? slope_between(below, above) : slope_between(above, below);
}

static bool add_corner(
    struct weft_band *band, struct weft_band_point above, struct weft_band_point below, struct weft_slope slope)
{
	struct weft_band_line *high = weft_vec_push(&band->highest), *low = weft_vec_push(&band->lowest);
	if (!high || !low)
		return false;
	*high = (struct weft_band_line){above, slope};
	*low = (struct weft_band_line){below, slope};
	return true;
}

int weft_band_solve(struct weft_band *band)
{
	struct weft_band_point *above = band->above.items, *below = band->below.items;
	if (band->above.count == 0 || band->below.count == 0 || compare_slopes(band->least, band->most) > 0)
		return WEFT_EINVAL;
	size_t a = 0, a_end = band->above.count = keep_hull(above, band->above.count, 1);
	size_t b = band->below.count = keep_hull(below, band->below.count, -1);
	/* A steeper line is near a point farther right of those above, and farther left of those below: below[b - 1] counts. */
	bool has_line = false;
	for (struct weft_slope from = band->least, to;; from = to) {
		while (a + 1 < a_end && compare_slopes(slope_between(above[a], above[a + 1]), from) <= 0)
			a++;
		while (b > 1 && compare_slopes(slope_between(below[b - 2], below[b - 1]), from) <= 0)
			b--;
		to = band->most;
		if (a + 1 < a_end && compare_slopes(slope_between(above[a], above[a + 1]), to) < 0)
			to = slope_between(above[a], above[a + 1]);
		if (b > 1 && compare_slopes(slope_between(below[b - 2], below[b - 1]), to) < 0)
			to = slope_between(below[b - 2], below[b - 1]);
		const struct weft_band_point high = above[a], low = below[b - 1];
		int room_from = room(high, low, from), room_to = room(high, low, to);
		if (room_from < 0 && room_to < 0 && has_line)
			break;
		if (room_from >= 0 && !add_corner(band, high, low, from))
			return WEFT_ENOMEM;
		if (room_from * room_to < 0 && !add_corner(band, high, low, slope_through(high, low)))
			return WEFT_ENOMEM;
		if (room_to >= 0 && !add_corner(band, high, low, to))
			return WEFT_ENOMEM;
		has_line = has_line || room_from >= 0 || room_to >= 0;
		if (compare_slopes(to, band->most) >= 0)
			break;
	}
	return has_line ? WEFT_OK : WEFT_EINVAL;
}

/* The line's y where it is x, towards -1 or 1 where that is no integer. */
static wide y_at(const struct weft_band_line *line, wide x, int towards)
{
	const wide product = (x - line->through.x) * line->slope.dy;
	const int64_t narrow = (int64_t)product; /* divided ten times as fast */
	wide y = narrow == product ? narrow / line->slope.dx : product / line->slope.dx;
	const wide rest = product - y * line->slope.dx;
	if (towards < 0 && rest < 0)
		y--;
	if (towards > 0 && rest > 0)
		y++;
	return y + line->through.y;
}

static int64_t narrowed(wide y)
{
	return y > INT64_MAX ? INT64_MAX : y < INT64_MIN ? INT64_MIN : (int64_t)y;
}

int64_t weft_band_at(const struct weft_band *band, int64_t x, int64_t *low, int64_t *high)
{
	const wide at = (wide)x - band->x0;
	const size_t count = band->highest.count;
	wide least = 0, most = 0;
	for (size_t i = 0; i < count && (low || high); i++) {
		wide l = y_at(&band->lowest.items[i], at, -1), h = y_at(&band->highest.items[i], at, 1);
		least = i == 0 || l < least ? l : least;
		most = i == 0 || h > most ? h : most;
	}
	if (low)
		*low = narrowed(least + band->y0);
	if (high)
		*high = narrowed(most + band->y0);
	/* Half way between the lines of the least and of the greatest slope is one of the set. */
	wide sum = y_at(&band->lowest.items[0], at, -1) + y_at(&band->highest.items[count - 1], at, -1);
	return narrowed((sum >= 0 ? sum / 2 : -((1 - sum) / 2)) + band->y0);
}
