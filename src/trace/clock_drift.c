/* clock_drift.c: bounds the offset of two CPU counters by straight lines (clock_drift.h).
 *
 * The time of the trace is divided into steps.  A line that touches the curve of the offset in the middle of a step is wrong by
 * at most rate * t^2 / 2 at distance t. The bounds that messages give are loosened by that error.  Only the tightest of several
 * messages that are near each other counts.  SPDX-License-Identifier: ISC */
#include "trace/clock_drift.h"

#include <stdlib.h>

#include "base/duration.h"
#include "base/line_fit.h"

enum {
	ROUNDING_NS = 2, /* clocks are read in whole ns, rounded down */
	STEP_NS = 50000000,
	BINS_PER_STEP = 4, /* number of bins of messages in a step */
	/* number of steps on each side whose messages count; more distant messages add nothing, because the line may bend too
	 * much */
	REACH_STEPS = 16,
	POINTS_PER_STEP = 64 /* number of messages that are added for each step */
};

#define MAX_SPAN_NS ((int64_t)400 * 1000000000) /* longest span with steps of STEP_NS; longer spans have longer steps */
#define MAX_OFFSET_NS ((int64_t)1 << 60)        /* maximum offset of two clocks, and maximum time: more than 36 years */

/* The tightest message of a time range, by which `other` - `mine` is at most, or at least, d. */
struct bin {
	int64_t x, d;
	bool is_known;
};

struct steps {
	int64_t first_ns, step_ns;
	size_t count;
	struct bin *sides[2]; /* bins for lower bounds, bins for upper bounds; BINS_PER_STEP bins for each step */
};

static bool is_tighter(const struct bin *bin, int64_t d, bool is_most)
{
	return !bin->is_known || (is_most ? d < bin->d : d > bin->d);
}

static void fill_bins(struct steps *s, const struct weft_clock_message *messages, size_t count)
{
	const int64_t bin_ns = s->step_ns / BINS_PER_STEP;
	for (size_t i = 0; i < count; i++) {
		const struct weft_clock_message *m = &messages[i];
		struct bin *bin = &s->sides[m->is_sent_locally][(m->local_ns - s->first_ns) / bin_ns];
		int64_t d;
		if (!__builtin_sub_overflow(m->remote_ns, m->local_ns, &d) && d > -MAX_OFFSET_NS && d < MAX_OFFSET_NS &&
		    is_tighter(bin, d, m->is_sent_locally))
			*bin = (struct bin){m->local_ns, d, true};
	}
}

/* Returns the maximum error of a tangent line at a distance from its point of contact. */
static int64_t bend_ns(int64_t distance_ns)
{
	/* the square does not overflow, because steps are shorter than a day */
	const int64_t us = (distance_ns < 0 ? -distance_ns : distance_ns) / 1000 + 1;
	return us * us / (2000000000 / WEFT_DRIFT_CHANGE_PPM) + 1;
}

/* Finds the bins that are near enough to the middle of a step. */
static void find_near_bins(const struct steps *s, size_t step, size_t *first, size_t *end)
{
	*first = step > REACH_STEPS ? (step - REACH_STEPS) * BINS_PER_STEP : 0;
	*end = step + REACH_STEPS < s->count ? (step + REACH_STEPS + 1) * BINS_PER_STEP : s->count * BINS_PER_STEP;
}

static int add_bins_to_band(struct weft_line_fit *band, const struct steps *s, size_t first, size_t end)
{
	bool has_origin = false;
	int status = WEFT_OK;
	for (int side = 0; side < 2; side++)
		for (size_t i = first; i < end && status == WEFT_OK; i++) {
			const struct bin *bin = &s->sides[side][i];
			const int64_t loose = bin->is_known ? bend_ns(bin->x - band->x0) + ROUNDING_NS : 0;
			if (!bin->is_known)
				continue;
			band->y0 = has_origin ? band->y0 : bin->d;
			has_origin = true;
			status = side ? weft_line_fit_add_above(band, bin->x, bin->d + loose)
				      : weft_line_fit_add_below(band, bin->x, bin->d - loose);
		}
	return status;
}

static int add_step_messages(weft_clock_messages *added, const struct steps *s, size_t step)
{
	const struct weft_slope most = {1, WEFT_INVERSE_MAX_DRIFT}, least = {-1, WEFT_INVERSE_MAX_DRIFT};
	const int64_t middle_ns = s->first_ns + (int64_t)step * s->step_ns + s->step_ns / 2;
	struct weft_line_fit band;
	weft_line_fit_init(&band, middle_ns, 0, least, most);
	size_t first, end;
	find_near_bins(s, step, &first, &end);
	int status = add_bins_to_band(&band, s, first, end);
	const bool has_both = band.above.count > 0 && band.below.count > 0;
	if (status == WEFT_OK && has_both)
		status = weft_line_fit_solve(&band);
	for (int i = 0; i < POINTS_PER_STEP && has_both && status == WEFT_OK; i++) {
		const int64_t distance_ns = s->step_ns * (2 * i + 1 - POINTS_PER_STEP) / (2 * POINTS_PER_STEP),
			      ns = middle_ns + distance_ns, loose_ns = bend_ns(distance_ns);
		int64_t low, high;
		weft_line_fit_at(&band, ns, &low, &high);
		low = weft_max_ns(low, -2 * MAX_OFFSET_NS);
		high = weft_min_ns(high, 2 * MAX_OFFSET_NS);
		struct weft_clock_message *upper = weft_vec_push(added), *lower = upper ? weft_vec_push(added) : NULL;
		if (!lower)
			status = WEFT_ENOMEM;
		else {
			added->items[added->count - 2] = (struct weft_clock_message){ns, ns + high + loose_ns, true};
			added->items[added->count - 1] = (struct weft_clock_message){ns, ns + low - loose_ns, false};
		}
	}
	weft_line_fit_finish(&band);
	return status;
}

int weft_clock_drift_messages(weft_clock_messages *added, const struct weft_clock_message *messages, size_t count)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		const int64_t ns = messages[i].local_ns;
		first_ns = ns < first_ns ? ns : first_ns;
		last_ns = ns > last_ns ? ns : last_ns;
	}
	int64_t span_ns;
	const int64_t longest_ns = (int64_t)86400 * 1000000000 * 365;
	if (!count || __builtin_sub_overflow(last_ns, first_ns, &span_ns) || span_ns > longest_ns ||
	    first_ns < -2 * MAX_OFFSET_NS || last_ns > 2 * MAX_OFFSET_NS)
		return WEFT_OK;
	struct steps s = {.first_ns = first_ns, .step_ns = span_ns / (MAX_SPAN_NS / STEP_NS) + 1};
	s.step_ns = s.step_ns < STEP_NS ? STEP_NS : (s.step_ns / BINS_PER_STEP + 1) * BINS_PER_STEP;
	s.count = (size_t)(span_ns / s.step_ns) + 1;
	s.sides[0] = calloc(2 * s.count * BINS_PER_STEP, sizeof *s.sides[0]);
	int status = s.sides[0] ? WEFT_OK : WEFT_ENOMEM;
	if (status == WEFT_OK) {
		s.sides[1] = s.sides[0] + s.count * BINS_PER_STEP;
		fill_bins(&s, messages, count);
	}
	for (size_t step = 0; step < s.count && status == WEFT_OK; step++)
		status = add_step_messages(added, &s, step);
	free(s.sides[0]);
	return status;
}
