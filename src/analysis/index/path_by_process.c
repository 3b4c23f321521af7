/* path_by_process.c: sums a critical path by process, with error bounds where it crosses from one clock to another.
 * SPDX-License-Identifier: ISC */
#include "analysis/index/path_by_process.h"

#include <stdlib.h>

#include "base/duration.h"
#include "base/search.h"
#include "base/sort.h"
#include "trace/clock_bounds.h"
#include "trace/join.h"

uint32_t weft_part_of_stream(const struct weft_model *m, size_t stream)
{
	return m->trace->part_count && stream < m->trace->stream_count ? m->trace->streams[stream].part : 0;
}

uint32_t weft_part_of(const struct weft_model *m, uint32_t promise)
{
	return weft_part_of_stream(m, m->promises[promise].stream);
}

uint32_t weft_other_end_of(const struct weft_model *m, uint32_t connection)
{
	const struct weft_transfer *all = m->transfers;
	const size_t after = WEFT_FIND_FIRST(i, 0, m->transfer_count, all[i].to > connection);
	return after > 0 && all[after - 1].to == connection ? all[after - 1].from : WEFT_NONE;
}

uint32_t weft_peer_of(const struct weft_model *m, uint32_t connection)
{
	const uint32_t end = weft_other_end_of(m, connection);
	return end != WEFT_NONE && weft_part_of(m, end) != weft_part_of(m, connection) ? end : WEFT_NONE;
}

int64_t weft_clock_error_ns(const struct weft_model *m, uint32_t part, int64_t time_ns)
{
	int64_t low, high, at, off;
	if (part >= m->trace->part_count || __builtin_add_overflow(time_ns, m->start_ns, &at))
		return 0;
	weft_part_bounds(&m->trace->parts[part], at, &low, &high);
	return __builtin_sub_overflow(weft_max_ns(high, at), low < at ? low : at, &off) ? INT64_MAX / 4 : off;
}

struct weft_process_share weft_step_share(const struct weft_model *m, const struct weft_path_step *s)
{
	const int64_t took_ns = s->end_ns - s->start_ns;
	if (s->sent_by == WEFT_NONE)
		return (struct weft_process_share){weft_part_of(m, s->promise), took_ns, took_ns};
	const int64_t off_ns = weft_clock_error_ns(m, weft_part_of(m, s->sent_by), s->start_ns) +
			       weft_clock_error_ns(m, weft_part_of(m, s->promise), s->end_ns);
	return (struct weft_process_share){WEFT_IN_TRANSIT, weft_max_ns(took_ns - off_ns, 0), took_ns + off_ns};
}

/* The last message to or from a clock whose error is not yet cancelled by a message in the other direction. */
struct crossing {
	int64_t time_ns, error_ns;
	bool is_open, is_arrival;
};

/* Adds a message and returns the error that it adds to the sum.  The error of a clock offset cancels out between a departure
 * and an arrival, except for the drift between the two times. */
static int64_t add_crossing(const struct weft_model *m, struct crossing *open, uint32_t part, int64_t time_ns, bool is_arrival)
{
	const struct crossing now = {time_ns, weft_clock_error_ns(m, part, time_ns), true, is_arrival};
	struct crossing *before = &open[part];
	if (now.error_ns == 0)
		return 0;
	if (!before->is_open || before->is_arrival == is_arrival) {
		const int64_t left_ns = before->is_open ? before->error_ns : 0;
		*before = now;
		return left_ns;
	}
	before->is_open = false;
	const int64_t both_ns = before->error_ns + now.error_ns,
		      gained_ns = (time_ns - before->time_ns) / (WEFT_INVERSE_MAX_DRIFT / 2) + 2;
	return both_ns < gained_ns ? both_ns : gained_ns;
}

static int compare_shares(const void *a, const void *b)
{
	const struct weft_process_share *x = a, *y = b;
	return WEFT_ORDER(y->high_ns, x->high_ns) ?: WEFT_ORDER(x->part, y->part);
}

int weft_path_by_process(struct weft_process_share **out, size_t *count, const struct weft_model *m, const struct weft_path *path)
{
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	struct weft_process_share *shares = calloc(parts + 1, sizeof *shares);
	struct crossing *open = calloc(parts, sizeof *open);
	int64_t off_ns = 0, transit_ns = 0;
	for (size_t i = 0; shares && open && i < path->count; i++) {
		const struct weft_path_step *s = &path->steps[i];
		/* A step with an unknown promise counts for the process of the next step. */
		uint32_t of = s->promise;
		for (size_t next = i + 1; of == WEFT_SYSTEM && next < path->count; next++)
			of = path->steps[next].promise;
		const uint32_t part = weft_part_of(m, of);
		if (s->sent_by == WEFT_NONE) {
			shares[part].high_ns += s->end_ns - s->start_ns;
			continue;
		}
		transit_ns += s->end_ns - s->start_ns;
		off_ns += add_crossing(m, open, weft_part_of(m, s->sent_by), s->start_ns, false);
		off_ns += add_crossing(m, open, part, s->end_ns, true);
	}
	for (size_t i = 0; shares && open && i < parts; i++) {
		shares[i].part = (uint32_t)i;
		shares[i].low_ns = shares[i].high_ns;
		off_ns += open[i].is_open ? open[i].error_ns : 0;
	}
	free(open);
	if (!shares || !open) {
		free(shares);
		return WEFT_ENOMEM;
	}
	shares[parts] = (struct weft_process_share){
	    WEFT_IN_TRANSIT, weft_max_ns(transit_ns - off_ns, 0), transit_ns > 0 ? transit_ns + off_ns : 0};
	weft_sort(shares, parts + 1, sizeof *shares, compare_shares);
	*count = 0;
	while (*count <= parts && shares[*count].high_ns > 0)
		++*count;
	*out = shares;
	return WEFT_OK;
}
