/* ticks.c: chooses round times for the ticks of an axis, and formats times.  SPDX-License-Identifier: ISC */
#include "draw/ticks.h"

#include "view/sleep.h"

#include <inttypes.h>
#include <stdio.h>

#include "draw/ruler.h"

#define DIVISION_PX 70.0 /* minimum between ticks */
#define GAP_PX 18.0      /* minimum between their times */
/* Maximum number of steps in a time, because a time of more steps is too long to write at each tick. */
#define MAX_STEPS_FROM_ZERO 400000
#define SECOND 1000000000ll
#define MINUTE (60 * SECOND)
#define DAY (86400 * SECOND)

/* Returns the n-th round duration: 1 2 5 10 ... ns, then divisors of minutes, hours and days. */
static int64_t round_ns(int n)
{
	static const int digits[] = {1, 2, 5};
	static const int32_t seconds[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200};
	enum { BELOW_SECOND = 27, BELOW_DAY = BELOW_SECOND + sizeof seconds / sizeof *seconds, LAST = BELOW_DAY + 15 };
	if (n >= BELOW_SECOND && n < BELOW_DAY)
		return seconds[n - BELOW_SECOND] * SECOND;
	int64_t ns = n >= BELOW_DAY ? DAY : 1;
	n = n > LAST ? LAST : n;
	n -= n >= BELOW_DAY ? BELOW_DAY : 0;
	for (int i = n / 3; i > 0; i--)
		ns *= 10;
	return ns * digits[n % 3];
}

static bool is_round(int64_t ns)
{
	int n = 0;
	while (round_ns(n) < ns)
		n++;
	return round_ns(n) == ns;
}

int64_t weft__round_up_ns(int64_t ns)
{
	int n = 0;
	while (round_ns(n) < ns && round_ns(n + 1) > round_ns(n))
		n++;
	return round_ns(n);
}

static int64_t minor_of(int64_t step)
{
	for (int parts = 5; parts > 1; parts--)
		if (step % parts == 0 && is_round(step / parts))
			return step / parts;
	return step;
}

/* Computes the time of day at trace time 0, in ns since 1970; returns false if it is unknown. */
static bool wall_shift(const struct weft_model *model, const struct weft_clock *clock, int64_t *shift)
{
	int64_t at;
	return model->trace && model->trace->has_origin &&
	       !__builtin_add_overflow(model->trace->clock_origin_ns, model->start_ns, &at) &&
	       !__builtin_add_overflow(at, clock->utc_offset_s * SECOND, shift);
}

bool weft_clock_is_known(const struct weft_model *model)
{
	int64_t shift;
	return wall_shift(model, &(struct weft_clock){.wall = true}, &shift);
}

static int64_t floor_to(int64_t time, int64_t unit)
{
	int64_t rest = time % unit;
	rest += rest < 0 ? unit : 0;
	int64_t down;
	return __builtin_sub_overflow(time, rest, &down) ? time + (unit - rest) : down;
}

/* Returns the number of decimals of a unit (a power of ten) that show `rest` and multiples of `step` exactly. */
static int decimals_of(int digits, int64_t rest, int64_t step)
{
	for (int64_t unit = 10; digits > 0 && step % unit == 0 && rest % unit == 0; unit *= 10)
		digits--;
	return digits;
}

static int64_t drop_digits(int64_t rest, int from_digits, int to_digits)
{
	for (; from_digits > to_digits; from_digits--)
		rest /= 10;
	return rest;
}

static size_t print_long(char *buf, size_t size, uint64_t seconds, const char *sign)
{
	uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60, rest = seconds % 60;
	int n = 0;
	if (hours > 0)
		n = snprintf(buf, size, "%s%" PRIu64 " h", sign, hours);
	if (minutes > 0)
		n += snprintf(buf + n, size - (size_t)n, "%s%" PRIu64 " min", n ? " " : sign, minutes);
	if (rest > 0)
		n += snprintf(buf + n, size - (size_t)n, " %" PRIu64 " s", rest);
	return (size_t)n;
}

size_t weft_duration_print(char *buf, size_t size, int64_t ns, int64_t step)
{
	static const struct {
		int64_t ns;
		const char *name;
		int digits;
	} units[] = {{SECOND, "s", 9}, {1000000, "ms", 6}, {1000, "\xc2\xb5s", 3}, {1, "ns", 0}};
	const char *sign = ns < 0 ? "-" : "";
	uint64_t length = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	int u = 0;
	if (ns == 0)
		return (size_t)snprintf(buf, size, "0");
	if (length >= (uint64_t)MINUTE && step >= SECOND)
		return print_long(buf, size, length / SECOND, sign);
	while (u < 3 && length < (uint64_t)units[u].ns)
		u++;
	uint64_t whole = length / (uint64_t)units[u].ns;
	int64_t rest = (int64_t)(length % (uint64_t)units[u].ns);
	rest -= rest % (step > 0 && units[u].ns % step == 0 ? step : 1);
	int decimals = decimals_of(units[u].digits, rest, step);
	if (decimals == 0)
		return (size_t)snprintf(buf, size, "%s%" PRIu64 " %s", sign, whole, units[u].name);
	return (size_t)snprintf(buf, size, "%s%" PRIu64 ".%0*" PRId64 " %s", sign, whole, decimals,
	    drop_digits(rest, units[u].digits, decimals), units[u].name);
}

/* Prints a day of the Gregorian calendar, from days since 1970-01-01; in the computation years start in March, so that leap days
 * are last. */
static size_t print_day(char *buf, size_t size, int64_t days)
{
	int64_t since = days + 719468, era = floor_to(since, 146097) / 146097, day = since - era * 146097;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	day -= 365 * year + year / 4 - year / 100;
	int64_t month = (5 * day + 2) / 153;
	day -= (153 * month + 2) / 5 - 1;
	year += era * 400 + (month >= 10);
	month += month < 10 ? 3 : -9;
	return (size_t)snprintf(buf, size, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month, day);
}

/* Prints a time of day, or a date if the steps are whole days. */
static size_t print_wall(char *buf, size_t size, int64_t wall, int64_t step)
{
	int64_t in_day = wall - floor_to(wall, DAY), seconds = in_day / SECOND, rest = in_day % SECOND;
	if (step >= DAY)
		return print_day(buf, size, floor_to(wall, DAY) / DAY);
	int n = snprintf(buf, size, "%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60);
	if (step >= MINUTE && seconds % 60 == 0)
		return (size_t)n;
	n += snprintf(buf + n, size - (size_t)n, ":%02" PRId64, seconds % 60);
	rest -= rest % (step > 0 && SECOND % step == 0 ? step : 1);
	int decimals = step >= SECOND ? 0 : decimals_of(9, rest, step);
	if (decimals > 0)
		n += snprintf(buf + n, size - (size_t)n, ".%0*" PRId64, decimals, drop_digits(rest, 9, decimals));
	return (size_t)n;
}

size_t weft_clock_print(
    char *buf, size_t size, const struct weft_model *model, const struct weft_clock *clock, int64_t time_ns, int64_t step_ns)
{
	int64_t shift, wall;
	if (clock && clock->wall && wall_shift(model, clock, &shift) && !__builtin_add_overflow(time_ns, shift, &wall))
		return print_wall(buf, size, wall, step_ns);
	return weft_duration_print(buf, size, time_ns, step_ns);
}

int64_t weft_view_exactness_ns(const struct weft_view *view)
{
	int64_t ns = 1;
	while (ns < INT64_MAX / 10 && (double)ns * 10 * view->px_per_ns <= 1)
		ns *= 10;
	return ns;
}

int64_t weft__tick_from(const struct weft__ticks *t, int64_t step_ns, int64_t time_ns)
{
	int64_t at, first;
	if (__builtin_add_overflow(time_ns, t->shift_ns, &at))
		return INT64_MAX;
	first = floor_to(at, step_ns);
	if (first < at && __builtin_add_overflow(first, step_ns, &first))
		return INT64_MAX;
	return __builtin_sub_overflow(first, t->shift_ns, &first) ? INT64_MAX : first;
}

size_t weft__tick_print(const struct weft__ticks *t, char *buf, size_t size, int64_t time_ns)
{
	if (t->has_base && time_ns == t->base_ns)
		return weft__ticks_print_base(t, buf, size);
	if (!t->has_base)
		return weft_clock_print(buf, size, t->model, &t->clock, time_ns, t->step_ns);
	buf[0] = '+';
	return 1 + weft_duration_print(buf + 1, size - 1, time_ns - t->base_ns, t->step_ns);
}

size_t weft__ticks_print_base(const struct weft__ticks *t, char *buf, size_t size)
{
	if (t->has_base)
		return weft_clock_print(buf, size, t->model, &t->clock, t->base_ns, t->base_unit_ns);
	if (t->clock.wall && t->step_ns < DAY)
		return print_day(buf, size, floor_to(t->base_ns + t->shift_ns, DAY) / DAY);
	return 0;
}

/* Chooses the base time from which the ticks' times count: a round time at or before the left edge, if full times would be too
 * long. */
static void choose_base(struct weft__ticks *t, int64_t left, int64_t right)
{
	int64_t far = right < 0 ? -(right + 1) : right, unit = 1, at;
	t->has_base = t->clock.wall ? t->step_ns < 1000000 : far / t->step_ns > MAX_STEPS_FROM_ZERO;
	t->base_ns = left;
	if (!t->has_base)
		return;
	while (unit < INT64_MAX / 10 && unit / 100 < t->step_ns)
		unit *= 10;
	if (__builtin_add_overflow(left, t->shift_ns, &at) ||
	    __builtin_sub_overflow(floor_to(at, unit), t->shift_ns, &t->base_ns))
		t->has_base = false;
	t->base_unit_ns = unit;
}

int64_t weft__tick_past_lull(const struct weft_view *view, const struct weft__ticks *t, int64_t step_ns, int64_t time_ns)
{
	int64_t past_ns = weft_view_past_lull(view, time_ns);
	return past_ns == time_ns ? time_ns : weft__tick_from(t, step_ns, past_ns);
}

struct weft__ticks weft__ticks_choose(struct weft__frame *f)
{
	struct weft__ticks t = {.model = f->model, .clock = f->options.clock};
	int64_t left = f->view->from_ns, right = weft_view_time(f->view, f->width), ignored;
	if (f->view->lulls && left < 0)
		left = 0; /* the left edge is limited to the trace, because a step may be much shorter than the margin */
	if (!t.clock.wall || !wall_shift(f->model, &t.clock, &t.shift_ns) || __builtin_add_overflow(left, t.shift_ns, &ignored) ||
	    __builtin_add_overflow(right, t.shift_ns, &ignored)) {
		t.clock.wall = false;
		t.shift_ns = 0;
	}
	for (int n = 0;; n++) {
		char text[64];
		t.step_ns = round_ns(n);
		double px = (double)t.step_ns * f->view->px_per_ns;
		if (px < DIVISION_PX && round_ns(n + 1) > t.step_ns)
			continue;
		choose_base(&t, left, right);
		int64_t last = weft__tick_from(&t, t.step_ns, right);
		size_t len = weft__tick_print(&t, text, sizeof text, last < INT64_MAX ? last : right);
		double needed_px = t.has_base ? DIVISION_PX : weft__text_width(f, WEFT_FONT_SMALL, text, len) + GAP_PX;
		if (px >= needed_px || round_ns(n + 1) <= t.step_ns)
			break;
	}
	t.minor_ns = minor_of(t.step_ns);
	return t;
}
