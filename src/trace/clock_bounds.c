/* clock_bounds.c: computes the bounds of a clock offset as two envelopes of cones.
 *
 * Let d be the difference other clock - own clock.  A message that was sent at x and received at y implies d(x) <= y - x, and
 * d(x + t) <= y - x + |t| / 2000 for every t: the area above a cone is excluded.  The minimum of all cones is the upper bound
 * of d; the maximum of the cones of the messages in the other direction is the lower bound.  A cone that contains the tip of
 * another cone is dropped.  At a time, only the nearest remaining cone on each side counts, so a binary search answers a query.
 *
 * A straight line between both sets of points would give narrower bounds for steady clocks, but wrong bounds for clocks whose
 * rate changes.  CPU counters have a steady rate for a while; the bounds of such lines are added as if they were messages
 * (clock_drift.h).  SPDX-License-Identifier: ISC */
#include "trace/clock_bounds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/clock_drift.h"

__extension__ typedef __int128 wide;

/* The cone of one message, for one direction.  Values are in ns / WEFT_INVERSE_MAX_DRIFT, so that they are integers. */
struct cone {
	int64_t x;
	wide left, right; /* value at x = 0 of the extended left line of the cone; of its extended right line */
};

struct side {
	/* cones sorted by x; each is the minimum at its own tip, so `right` falls and `left` rises from cone to cone */
	struct cone *cones;
	size_t count;
};

struct weft_clock_bounds {
	int64_t first_ns, last_ns, origin_ns;
	struct side above, below; /* upper bound; lower bound, which is stored with changed signs */
};

static int compare_cones(const void *a, const void *b)
{
	const struct cone *x = a, *y = b;
	return WEFT_ORDER(x->x, y->x);
}

/* Drops each cone whose tip is inside another cone, because such a cone is never the minimum.  Most messages are slow, so most
 * cones are dropped. */
static void drop_covered_cones(struct side *side)
{
	struct cone *cones = side->cones;
	size_t retained = 0;
	weft_sort(cones, side->count, sizeof *cones, compare_cones);
	for (size_t i = 0; i < side->count; i++)
		if (retained == 0 || cones[i].right < cones[retained - 1].right)
			cones[retained++] = cones[i];
	size_t first = retained;
	for (size_t i = retained; i-- > 0;)
		if (first == retained || cones[i].left < cones[first].left)
			cones[--first] = cones[i];
	side->count = retained - first;
	memmove(cones, cones + first, side->count * sizeof *cones);
	struct cone *shrunk = realloc(cones, side->count * sizeof *cones);
	side->cones = shrunk ? shrunk : cones;
}

static bool is_first_after(const struct side *side, size_t at, int64_t x)
{
	return (at == 0 || side->cones[at - 1].x <= x) && (at >= side->count || side->cones[at].x > x);
}

/* Returns the index of the first cone behind x.  *hint is an index at or a little before the result. */
static size_t find_after(const struct side *side, int64_t x, size_t *hint)
{
	for (size_t at = *hint, tries = 4; at <= side->count && tries; at++, tries--)
		if (is_first_after(side, at, x))
			return *hint = at;
	return *hint = WEFT_FIND_FIRST(i, 0, side->count, side->cones[i].x > x);
}

/* Returns the minimum of all cones at x, in ns / WEFT_INVERSE_MAX_DRIFT. */
static wide get_envelope(const struct side *side, int64_t x, size_t after)
{
	const wide from_left = after > 0 ? side->cones[after - 1].right + x : 0;
	const wide from_right = after < side->count ? side->cones[after].left - x : 0;
	return after == 0 ? from_right : after == side->count || from_left < from_right ? from_left : from_right;
}

static int64_t clamp_to_i64(wide value)
{
	return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* Returns floor(value / by).  Divides 32 bits at a time: WebAssembly has no 128-bit division, and on other machines it is ten
 * times slower. */
static wide divide_floor(wide value, uint32_t by)
{
	const int64_t narrow = (int64_t)value;
	if (narrow == value)
		return narrow / by - (narrow % by < 0);
	__extension__ typedef unsigned __int128 wide_bits;
	wide_bits left = value < 0 ? -(wide_bits)value : (wide_bits)value, quotient = 0;
	uint64_t rest = 0;
	for (int shift = 96; shift >= 0; shift -= 32) {
		rest = rest << 32 | (uint32_t)(left >> shift);
		quotient = quotient << 32 | rest / by;
		rest %= by;
	}
	return value < 0 ? -(wide)quotient - (rest > 0) : (wide)quotient;
}

static wide scale_down(wide value)
{
	return divide_floor(value, WEFT_INVERSE_MAX_DRIFT);
}

/* Computes the lower and the upper bound at x; returns their distance. */
static wide find_bounds_from(
    const struct weft_clock_bounds *clock_bounds, int64_t x, struct weft_clock_bounds_cursor *cursor, wide *low, wide *high)
{
	*high = get_envelope(&clock_bounds->above, x, find_after(&clock_bounds->above, x, &cursor->above));
	*low = -get_envelope(&clock_bounds->below, x, find_after(&clock_bounds->below, x, &cursor->below));
	return *high - *low;
}

static wide find_bounds(const struct weft_clock_bounds *clock_bounds, int64_t x, wide *low, wide *high)
{
	struct weft_clock_bounds_cursor anywhere = {.above = SIZE_MAX, .below = SIZE_MAX};
	return find_bounds_from(clock_bounds, x, &anywhere, low, high);
}

int64_t weft_clock_bounds_time(const struct weft_clock_bounds *clock_bounds, int64_t ns, int64_t *low, int64_t *high)
{
	const int64_t x = clamp_to_i64((wide)ns - clock_bounds->origin_ns);
	wide least, most;
	find_bounds(clock_bounds, x, &least, &most);
	if (low)
		*low = clamp_to_i64(scale_down(least) + ns);
	if (high)
		*high = clamp_to_i64(-scale_down(-most) + ns);
	return clamp_to_i64(scale_down((least + most) / 2) + ns);
}

/* Returns the end of the straight line that is the minimum at x; *by is the slope of the line, 1 or -1. */
static int64_t find_line_end(const struct side *side, int64_t x, size_t after, int *by)
{
	const bool is_before = after == 0, is_last = after == side->count;
	const wide crossing = is_before || is_last ? 0 : side->cones[after].left - side->cones[after - 1].right;
	*by = is_last || (!is_before && 2 * (wide)x < crossing) ? 1 : -1;
	if (is_last)
		return INT64_MAX;
	return *by == 1 ? clamp_to_i64(crossing / 2 + (crossing % 2 > 0)) : side->cones[after].x;
}

/* Finds the straight line at x and the range in which it is valid.  Most events are a few ns after the previous event, and
 * therefore on the same line. */
static void find_line(const struct weft_clock_bounds *clock_bounds, int64_t x, struct weft_clock_bounds_cursor *cursor)
{
	enum { MAX_SUM_BITS = 60 };
	wide low, high;
	int above, below;
	find_bounds_from(clock_bounds, x, cursor, &low, &high);
	const int64_t ends[] = {find_line_end(&clock_bounds->above, x, cursor->above, &above),
	    find_line_end(&clock_bounds->below, x, cursor->below, &below)};
	const int64_t first = ends[0] < ends[1] ? ends[0] : ends[1];
	const wide sum = low + high, most = (wide)1 << MAX_SUM_BITS;
	cursor->from = x;
	cursor->until = sum > most || sum < -most ? x : first - (wide)x > most ? x + (int64_t)most : first;
	cursor->scaled_sum = clamp_to_i64(sum);
	cursor->by = above - below;
}

int64_t weft_clock_bounds_time_from(
    const struct weft_clock_bounds *clock_bounds, int64_t ns, struct weft_clock_bounds_cursor *cursor, int64_t *left_ns)
{
	const int64_t x = clamp_to_i64((wide)ns - clock_bounds->origin_ns);
	if (x < cursor->from || x >= cursor->until)
		find_line(clock_bounds, x, cursor);
	if (x >= cursor->until) {
		wide least, most;
		find_bounds_from(clock_bounds, x, cursor, &least, &most);
		*left_ns = 1;
		return clamp_to_i64(scale_down((least + most) / 2) + ns);
	}
	/* The value of `middle` changes by at most 1 in each ns. */
	const int64_t twice = cursor->scaled_sum + cursor->by * (x - cursor->from), middle = twice / 2;
	const int64_t rest = middle % WEFT_INVERSE_MAX_DRIFT, above = rest < 0 ? rest + WEFT_INVERSE_MAX_DRIFT : rest;
	const int64_t until = cursor->until - x, stays = cursor->by > 0   ? WEFT_INVERSE_MAX_DRIFT - above
							 : cursor->by < 0 ? above + 1
									  : until;
	*left_ns = weft_min_ns(*left_ns, weft_min_ns(stays, until));
	return clamp_to_i64((wide)(middle / WEFT_INVERSE_MAX_DRIFT - (rest < 0)) + ns);
}

/* Returns the minimum distance between the two bounds.  Each envelope is a minimum of cones, so the distance is smallest at the
 * tip of a cone. */
static wide find_min_width(const struct weft_clock_bounds *clock_bounds)
{
	struct weft_clock_bounds_cursor cursors[2] = {{0}};
	wide low, high, least = find_bounds(clock_bounds, clock_bounds->first_ns, &low, &high);
	for (size_t i = 0; i < clock_bounds->above.count + clock_bounds->below.count; i++) {
		const bool is_above = i < clock_bounds->above.count;
		const struct cone *cone =
		    is_above ? &clock_bounds->above.cones[i] : &clock_bounds->below.cones[i - clock_bounds->above.count];
		const wide width = find_bounds_from(clock_bounds, cone->x, &cursors[is_above], &low, &high);
		least = width < least ? width : least;
	}
	return least;
}

void weft_clock_bounds_width(const struct weft_clock_bounds *clock_bounds, int64_t *least_ns, int64_t *average_ns)
{
	enum { SAMPLES = 1000 };
	wide low, high, sum = 0;
	for (int i = 0; i <= SAMPLES; i++) {
		const wide distance = divide_floor(((wide)clock_bounds->last_ns - clock_bounds->first_ns) * i, SAMPLES);
		sum += find_bounds(clock_bounds, (int64_t)(clock_bounds->first_ns + distance), &low, &high);
	}
	*least_ns = clamp_to_i64(-scale_down(-find_min_width(clock_bounds)));
	*average_ns = clamp_to_i64(-scale_down(divide_floor(-sum, SAMPLES + 1)));
}

void weft_clock_bounds_destroy(struct weft_clock_bounds *clock_bounds)
{
	if (!clock_bounds)
		return;
	free(clock_bounds->above.cones);
	free(clock_bounds->below.cones);
	free(clock_bounds);
}

static void add_message(struct weft_clock_bounds *clock_bounds, const struct weft_clock_message *message)
{
	struct side *side = message->is_sent_locally ? &clock_bounds->above : &clock_bounds->below;
	const int64_t x = clamp_to_i64((wide)message->local_ns - clock_bounds->origin_ns);
	wide d = ((wide)message->remote_ns - message->local_ns) * WEFT_INVERSE_MAX_DRIFT;
	/* Clocks are read in whole ns, rounded down, so each message allows a little more. */
	d = (message->is_sent_locally ? d : -d) + 2 * WEFT_INVERSE_MAX_DRIFT + 1;
	side->cones[side->count++] = (struct cone){x, d + x, d - x};
	clock_bounds->first_ns = x < clock_bounds->first_ns ? x : clock_bounds->first_ns;
	clock_bounds->last_ns = x > clock_bounds->last_ns ? x : clock_bounds->last_ns;
}

static int create_bounds(
    struct weft_clock_bounds **out, const struct weft_clock_message *messages, size_t count, const weft_clock_messages *more)
{
	size_t mine = 0;
	for (size_t i = 0; i < count; i++)
		mine += messages[i].is_sent_locally;
	struct weft_clock_bounds *clock_bounds = calloc(1, sizeof *clock_bounds);
	if (clock_bounds) {
		clock_bounds->above.cones = calloc(mine + more->count / 2, sizeof *clock_bounds->above.cones);
		clock_bounds->below.cones = calloc(count - mine + more->count / 2, sizeof *clock_bounds->below.cones);
	}
	if (!clock_bounds || !clock_bounds->above.cones || !clock_bounds->below.cones) {
		weft_clock_bounds_destroy(clock_bounds);
		return WEFT_ENOMEM;
	}
	clock_bounds->origin_ns = messages[0].local_ns;
	for (size_t i = 0; i < count; i++)
		add_message(clock_bounds, &messages[i]);
	for (size_t i = 0; i < more->count; i++)
		add_message(clock_bounds, &more->items[i]);
	drop_covered_cones(&clock_bounds->above);
	drop_covered_cones(&clock_bounds->below);
	*out = clock_bounds;
	return WEFT_OK;
}

/* Narrows the bounds by the steady rates of CPU counters; if the messages contradict steady rates, the bounds stay
 * unchanged. */
static int narrow_by_drift(struct weft_clock_bounds **clock_bounds, const struct weft_clock_message *messages, size_t count)
{
	weft_clock_messages more = {0};
	struct weft_clock_bounds *steady = NULL;
	int status = weft_clock_drift_messages(&more, messages, count);
	if (status == WEFT_OK)
		status = create_bounds(&steady, messages, count, &more);
	if (status == WEFT_OK && find_min_width(steady) < 0)
		status = WEFT_EINVAL;
	if (status == WEFT_OK) {
		weft_clock_bounds_destroy(*clock_bounds);
		*clock_bounds = steady;
	} else {
		weft_clock_bounds_destroy(steady);
	}
	weft_vec_free(&more);
	return status == WEFT_EINVAL ? WEFT_OK : status;
}

int weft_clock_bounds_create(struct weft_clock_bounds **out, const struct weft_clock_message *messages, size_t count,
    bool have_counter_clocks, struct weft_error *err)
{
	size_t mine = 0;
	for (size_t i = 0; i < count; i++)
		mine += messages[i].is_sent_locally;
	if (mine == 0 || mine == count)
		return weft_error_set(err, WEFT_ENOTFOUND, "%s",
		    count ? "messages went in one direction only" : "no message went from one to the other");
	struct weft_clock_bounds *clock_bounds = NULL;
	int status = create_bounds(&clock_bounds, messages, count, &(weft_clock_messages){0});
	const wide least = status == WEFT_OK ? find_min_width(clock_bounds) : 0;
	if (status == WEFT_OK && least < 0)
		status = weft_error_set(err, WEFT_EINVAL,
		    "a round trip took negative time (-%" PRId64 " ns): a clock was set, or message times are wrong",
		    clamp_to_i64(-scale_down(least)));
	else if (status == WEFT_OK && have_counter_clocks)
		status = narrow_by_drift(&clock_bounds, messages, count);
	if (status == WEFT_ENOMEM)
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (status == WEFT_OK)
		*out = clock_bounds;
	else
		weft_clock_bounds_destroy(clock_bounds);
	return status;
}
