/* tie.c: two envelopes around a clock.
 *
 * With d = other - mine, a message that was sent at x says d(x) <= y - x, and d(x + t) <= y - x + |t| / 2000 for every t: a cone
 * above its point.  The least of all cones is the upper bound, the greatest of those of the other direction the lower one.  Left
 * and right of a time only the nearest cone counts of those that no other one has in it, so a search answers for any time.
 *
 * A line between both clouds of points is narrower where clocks are even, and wrong where they bend.  Counters do not, for a
 * while: what a line says of it then is one more message (steady.h).  SPDX-License-Identifier: ISC */
#include "trace/tie.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/steady.h"

__extension__ typedef __int128 wide;

/* Of one direction.  Values are in ns / WEFT_TIE_RATE, so that they are integers. */
struct cone {
	int64_t x;
	wide left, right; /* where it would be at x = 0, going on to the left; to the right */
};

struct side {
	struct cone *cones; /* by x; each is the least at its point, so that `right` falls and `left` rises */
	size_t count;
};

struct weft_tie {
	int64_t first_ns, last_ns, origin_ns;
	struct side above, below; /* those below with their signs changed */
};

static int compare(const void *a, const void *b)
{
	const struct cone *x = a, *y = b;
	return WEFT_ORDER(x->x, y->x);
}

/* A cone whose point is in another one is so altogether, and says nothing: most messages are slow. */
static void keep_least(struct side *side)
{
	struct cone *cones = side->cones;
	size_t kept = 0;
	weft_sort(cones, side->count, sizeof *cones, compare);
	for (size_t i = 0; i < side->count; i++)
		if (kept == 0 || cones[i].right < cones[kept - 1].right)
			cones[kept++] = cones[i];
	size_t first = kept;
	for (size_t i = kept; i-- > 0;)
		if (first == kept || cones[i].left < cones[first].left)
			cones[--first] = cones[i];
	side->count = kept - first;
	memmove(cones, cones + first, side->count * sizeof *cones);
	struct cone *shrunk = realloc(cones, side->count * sizeof *cones);
	side->cones = shrunk ? shrunk : cones;
}

static bool is_first_after(const struct side *side, size_t at, int64_t x)
{
	return (at == 0 || side->cones[at - 1].x <= x) && (at >= side->count || side->cones[at].x > x);
}

/* The first cone behind x; *hint: where it may be, or a little before. */
static size_t find_after(const struct side *side, int64_t x, size_t *hint)
{
	for (size_t at = *hint, tries = 4; at <= side->count && tries; at++, tries--)
		if (is_first_after(side, at, x))
			return *hint = at;
	return *hint = WEFT_FIRST(i, 0, side->count, side->cones[i].x > x);
}

/* The least cone at x, in ns / WEFT_TIE_RATE. */
static wide least_at(const struct side *side, int64_t x, size_t after)
{
	const wide from_left = after > 0 ? side->cones[after - 1].right + x : 0;
	const wide from_right = after < side->count ? side->cones[after].left - x : 0;
	return after == 0 ? from_right : after == side->count || from_left < from_right ? from_left : from_right;
}

static int64_t clamped(wide value)
{
	return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* The largest integer that is not above value / by.  By 32 bits at a time, since WebAssembly has no division of 128, and it takes
 * ten times as long elsewhere. */
static wide floor_divided(wide value, uint32_t by)
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

static wide floor_of(wide value)
{
	return floor_divided(value, WEFT_TIE_RATE);
}

/* How far the bounds are apart at x, and where they are. */
static wide bounds_from(const struct weft_tie *tie, int64_t x, struct weft_tie_cursor *cursor, wide *low, wide *high)
{
	*high = least_at(&tie->above, x, find_after(&tie->above, x, &cursor->above));
	*low = -least_at(&tie->below, x, find_after(&tie->below, x, &cursor->below));
	return *high - *low;
}

static wide bounds(const struct weft_tie *tie, int64_t x, wide *low, wide *high)
{
	struct weft_tie_cursor anywhere = {.above = SIZE_MAX, .below = SIZE_MAX};
	return bounds_from(tie, x, &anywhere, low, high);
}

int64_t weft_tie_time(const struct weft_tie *tie, int64_t ns, int64_t *low, int64_t *high)
{
	const int64_t x = clamped((wide)ns - tie->origin_ns);
	wide least, most;
	bounds(tie, x, &least, &most);
	if (low)
		*low = clamped(floor_of(least) + ns);
	if (high)
		*high = clamped(-floor_of(-most) + ns);
	return clamped(floor_of((least + most) / 2) + ns);
}

/* Until when the least cone is the one that it is at x, and how it goes on: by 1 or -1. */
static int64_t goes_on_until(const struct side *side, int64_t x, size_t after, int *by)
{
	const bool is_before = after == 0, is_last = after == side->count;
	const wide meet = is_before || is_last ? 0 : side->cones[after].left - side->cones[after - 1].right;
	*by = is_last || (!is_before && 2 * (wide)x < meet) ? 1 : -1;
	if (is_last)
		return INT64_MAX;
	return *by == 1 ? clamped(meet / 2 + (meet % 2 > 0)) : side->cones[after].x;
}

/* Most events are few ns from the one before, on the same line. */
static void find_line(const struct weft_tie *tie, int64_t x, struct weft_tie_cursor *cursor)
{
	enum { MOST_BITS = 60 };
	wide low, high;
	int above, below;
	bounds_from(tie, x, cursor, &low, &high);
	const int64_t ends[] = {
	    goes_on_until(&tie->above, x, cursor->above, &above), goes_on_until(&tie->below, x, cursor->below, &below)};
	const int64_t first = ends[0] < ends[1] ? ends[0] : ends[1];
	const wide sum = low + high, most = (wide)1 << MOST_BITS;
	cursor->from = x;
	cursor->until = sum > most || sum < -most ? x : first - (wide)x > most ? x + (int64_t)most : first;
	cursor->sum_2000 = clamped(sum);
	cursor->by = above - below;
}

int64_t weft_tie_time_from(const struct weft_tie *tie, int64_t ns, struct weft_tie_cursor *cursor, int64_t *left_ns)
{
	const int64_t x = clamped((wide)ns - tie->origin_ns);
	if (x < cursor->from || x >= cursor->until)
		find_line(tie, x, cursor);
	if (x >= cursor->until) {
		wide least, most;
		bounds_from(tie, x, cursor, &least, &most);
		*left_ns = 1;
		return clamped(floor_of((least + most) / 2) + ns);
	}
	/* `middle` goes on by 1 each ns at most. */
	const int64_t twice = cursor->sum_2000 + cursor->by * (x - cursor->from), middle = twice / 2;
	const int64_t rest = middle % WEFT_TIE_RATE, above = rest < 0 ? rest + WEFT_TIE_RATE : rest;
	const int64_t until = cursor->until - x, stays = cursor->by > 0   ? WEFT_TIE_RATE - above
							 : cursor->by < 0 ? above + 1
									  : until;
	*left_ns = weft_min_ns(*left_ns, weft_min_ns(stays, until));
	return clamped((wide)(middle / WEFT_TIE_RATE - (rest < 0)) + ns);
}

/* Each envelope is a minimum of cones: so what is between them is least at the point of one. */
static wide narrowest(const struct weft_tie *tie)
{
	struct weft_tie_cursor cursors[2] = {{0}};
	wide low, high, least = bounds(tie, tie->first_ns, &low, &high);
	for (size_t i = 0; i < tie->above.count + tie->below.count; i++) {
		const bool is_above = i < tie->above.count;
		const struct cone *cone = is_above ? &tie->above.cones[i] : &tie->below.cones[i - tie->above.count];
		const wide width = bounds_from(tie, cone->x, &cursors[is_above], &low, &high);
		least = width < least ? width : least;
	}
	return least;
}

void weft_tie_width(const struct weft_tie *tie, int64_t *least_ns, int64_t *average_ns)
{
	enum { SAMPLES = 1000 };
	wide low, high, sum = 0;
	for (int i = 0; i <= SAMPLES; i++) {
		const wide far = floor_divided(((wide)tie->last_ns - tie->first_ns) * i, SAMPLES);
		sum += bounds(tie, (int64_t)(tie->first_ns + far), &low, &high);
	}
	*least_ns = clamped(-floor_of(-narrowest(tie)));
	*average_ns = clamped(-floor_of(floor_divided(-sum, SAMPLES + 1)));
}

void weft_tie_destroy(struct weft_tie *tie)
{
	if (!tie)
		return;
	free(tie->above.cones);
	free(tie->below.cones);
	free(tie);
}

static void add(struct weft_tie *tie, const struct weft_tie_message *message)
{
	struct side *side = message->is_mine ? &tie->above : &tie->below;
	const int64_t x = clamped((wide)message->mine_ns - tie->origin_ns);
	wide d = ((wide)message->other_ns - message->mine_ns) * WEFT_TIE_RATE;
	/* Clocks show whole ns, and did not show yet what is left of them. */
	d = (message->is_mine ? d : -d) + 2 * WEFT_TIE_RATE + 1;
	side->cones[side->count++] = (struct cone){x, d + x, d - x};
	tie->first_ns = x < tie->first_ns ? x : tie->first_ns;
	tie->last_ns = x > tie->last_ns ? x : tie->last_ns;
}

static int make(struct weft_tie **out, const struct weft_tie_message *messages, size_t count, const weft_tie_messages *more)
{
	size_t mine = 0;
	for (size_t i = 0; i < count; i++)
		mine += messages[i].is_mine;
	struct weft_tie *tie = calloc(1, sizeof *tie);
	if (tie) {
		tie->above.cones = calloc(mine + more->count / 2, sizeof *tie->above.cones);
		tie->below.cones = calloc(count - mine + more->count / 2, sizeof *tie->below.cones);
	}
	if (!tie || !tie->above.cones || !tie->below.cones) {
		weft_tie_destroy(tie);
		return WEFT_ENOMEM;
	}
	tie->origin_ns = messages[0].mine_ns;
	for (size_t i = 0; i < count; i++)
		add(tie, &messages[i]);
	for (size_t i = 0; i < more->count; i++)
		add(tie, &more->items[i]);
	keep_least(&tie->above);
	keep_least(&tie->below);
	*out = tie;
	return WEFT_OK;
}

/* The same, and what the messages tell together; where the clocks are not steady, it stays as it is. */
static int make_steady(struct weft_tie **tie, const struct weft_tie_message *messages, size_t count)
{
	weft_tie_messages more = {0};
	struct weft_tie *steady = NULL;
	int status = weft_steady_messages(&more, messages, count);
	if (status == WEFT_OK)
		status = make(&steady, messages, count, &more);
	if (status == WEFT_OK && narrowest(steady) < 0)
		status = WEFT_EINVAL;
	if (status == WEFT_OK) {
		weft_tie_destroy(*tie);
		*tie = steady;
	} else {
		weft_tie_destroy(steady);
	}
	weft_vec_free(&more);
	return status == WEFT_EINVAL ? WEFT_OK : status;
}

int weft_tie_create(
    struct weft_tie **out, const struct weft_tie_message *messages, size_t count, bool are_steady, struct weft_error *err)
{
	size_t mine = 0;
	for (size_t i = 0; i < count; i++)
		mine += messages[i].is_mine;
	if (mine == 0 || mine == count)
		return weft_error_set(
		    err, WEFT_ENOTFOUND, "%s", count ? "messages went one way only" : "no message went from one to the other");
	struct weft_tie *tie = NULL;
	int status = make(&tie, messages, count, &(weft_tie_messages){0});
	const wide least = status == WEFT_OK ? narrowest(tie) : 0;
	if (status == WEFT_OK && least < 0)
		status = weft_error_set(err, WEFT_EINVAL,
		    "there and back took less than no time, by %" PRId64 " ns: a clock was set, or times of messages are wrong",
		    clamped(-floor_of(least)));
	else if (status == WEFT_OK && are_steady)
		status = make_steady(&tie, messages, count);
	if (status == WEFT_ENOMEM)
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (status == WEFT_OK)
		*out = tie;
	else
		weft_tie_destroy(tie);
	return status;
}
