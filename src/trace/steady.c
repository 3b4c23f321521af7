/* steady.c: see steady.h.
 *
 * Time is cut into steps.  A line that touches the clock in the middle of one is off by rate * t^2 / 2 at most, t away from
 * there: so much looser is what messages say of it.  Of those that are near each other the tightest counts.
 * SPDX-License-Identifier: ISC */
#include "trace/steady.h"

#include <stdlib.h>

#include "base/band.h"
#include "base/duration.h"

enum {
	WHOLE_NS = 2, /* clocks show whole ns, and did not show yet what is left of them */
	STEP_NS = 50000000,
	BINS = 4,   /* of a step */
	REACH = 16, /* steps to each side, of which messages count: beyond, a line that may bend so much tells no more */
	POINTS = 64 /* that are told of a step */
};

#define LONGEST_NS ((int64_t)400 * 1000000000) /* in whole steps; of more than that these are longer */
#define FARTHEST_NS ((int64_t)1 << 60)         /* that two clocks may be apart, and from 0: more than 36 years */

/* The tightest of its time: `other` less `mine` is at most, or at least, d. */
struct bin {
	int64_t x, d;
	bool is_known;
};

struct steps {
	int64_t first_ns, step_ns;
	size_t count;
	struct bin *sides[2]; /* at least, at most; BINS for each step */
};

static bool is_tighter(const struct bin *bin, int64_t d, bool is_most)
{
	return !bin->is_known || (is_most ? d < bin->d : d > bin->d);
}

static void fill(struct steps *s, const struct weft_tie_message *messages, size_t count)
{
	const int64_t bin_ns = s->step_ns / BINS;
	for (size_t i = 0; i < count; i++) {
		const struct weft_tie_message *m = &messages[i];
		struct bin *bin = &s->sides[m->is_mine][(m->mine_ns - s->first_ns) / bin_ns];
		int64_t d;
		if (!__builtin_sub_overflow(m->other_ns, m->mine_ns, &d) && d > -FARTHEST_NS && d < FARTHEST_NS &&
		    is_tighter(bin, d, m->is_mine))
			*bin = (struct bin){m->mine_ns, d, true};
	}
}

/* How far a line that touches the clock is from it, so far from there. */
static int64_t bend_ns(int64_t far_ns)
{
	const int64_t us = (far_ns < 0 ? -far_ns : far_ns) / 1000 + 1; /* squares fit: steps are below a day */
	return us * us / (2000000000 / WEFT_STEADY_PPM) + 1;
}

/* The bins within reach of the step's middle. */
static void find_reach(const struct steps *s, size_t step, size_t *first, size_t *end)
{
	*first = step > REACH ? (step - REACH) * BINS : 0;
	*end = step + REACH < s->count ? (step + REACH + 1) * BINS : s->count * BINS;
}

static int gather(struct weft_band *band, const struct steps *s, size_t first, size_t end)
{
	bool has_origin = false;
	int status = WEFT_OK;
	for (int side = 0; side < 2; side++)
		for (size_t i = first; i < end && status == WEFT_OK; i++) {
			const struct bin *bin = &s->sides[side][i];
			const int64_t loose = bin->is_known ? bend_ns(bin->x - band->x0) + WHOLE_NS : 0;
			if (!bin->is_known)
				continue;
			band->y0 = has_origin ? band->y0 : bin->d;
			has_origin = true;
			status =
			    side ? weft_band_above(band, bin->x, bin->d + loose) : weft_band_below(band, bin->x, bin->d - loose);
		}
	return status;
}

static int tell(weft_tie_messages *added, const struct steps *s, size_t step)
{
	const struct weft_slope most = {1, WEFT_TIE_RATE}, least = {-1, WEFT_TIE_RATE};
	const int64_t middle_ns = s->first_ns + (int64_t)step * s->step_ns + s->step_ns / 2;
	struct weft_band band;
	weft_band_init(&band, middle_ns, 0, least, most);
	size_t first, end;
	find_reach(s, step, &first, &end);
	int status = gather(&band, s, first, end);
	const bool has_both = band.above.count > 0 && band.below.count > 0;
	if (status == WEFT_OK && has_both)
		status = weft_band_solve(&band);
	for (int i = 0; i < POINTS && has_both && status == WEFT_OK; i++) {
		const int64_t far_ns = s->step_ns * (2 * i + 1 - POINTS) / (2 * POINTS), ns = middle_ns + far_ns,
			      loose_ns = bend_ns(far_ns);
		int64_t low, high;
		weft_band_at(&band, ns, &low, &high);
		low = weft_max_ns(low, -2 * FARTHEST_NS);
		high = weft_min_ns(high, 2 * FARTHEST_NS);
		struct weft_tie_message *most_at = weft_vec_push(added), *least_at = most_at ? weft_vec_push(added) : NULL;
		if (!least_at)
			status = WEFT_ENOMEM;
		else {
			added->items[added->count - 2] = (struct weft_tie_message){ns, ns + high + loose_ns, true};
			added->items[added->count - 1] = (struct weft_tie_message){ns, ns + low - loose_ns, false};
		}
	}
	weft_band_finish(&band);
	return status;
}

int weft_steady_messages(weft_tie_messages *added, const struct weft_tie_message *messages, size_t count)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	for (size_t i = 0; i < count; i++) {
		const int64_t ns = messages[i].mine_ns;
		first_ns = ns < first_ns ? ns : first_ns;
		last_ns = ns > last_ns ? ns : last_ns;
	}
	int64_t span_ns;
	const int64_t longest_ns = (int64_t)86400 * 1000000000 * 365;
	if (!count || __builtin_sub_overflow(last_ns, first_ns, &span_ns) || span_ns > longest_ns ||
	    first_ns < -2 * FARTHEST_NS || last_ns > 2 * FARTHEST_NS)
		return WEFT_OK;
	struct steps s = {.first_ns = first_ns, .step_ns = span_ns / (LONGEST_NS / STEP_NS) + 1};
	s.step_ns = s.step_ns < STEP_NS ? STEP_NS : (s.step_ns / BINS + 1) * BINS;
	s.count = (size_t)(span_ns / s.step_ns) + 1;
	s.sides[0] = calloc(2 * s.count * BINS, sizeof *s.sides[0]);
	int status = s.sides[0] ? WEFT_OK : WEFT_ENOMEM;
	if (status == WEFT_OK) {
		s.sides[1] = s.sides[0] + s.count * BINS;
		fill(&s, messages, count);
	}
	for (size_t step = 0; step < s.count && status == WEFT_OK; step++)
		status = tell(added, &s, step);
	free(s.sides[0]);
	return status;
}
