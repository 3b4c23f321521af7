/* lacks.c: what a trace lacks.  SPDX-License-Identifier: ISC */
#include "analysis/lacks.h"

#include <stdlib.h>

#include "analysis/shares.h"

/* Each OS thread has a ring of its own, which goes back as far as it goes: the time of its first link. */
static int64_t *find_first_links(const struct weft_model *m)
{
	size_t left = m->trace->stream_count;
	int64_t *first_ns = malloc((left + 1) * sizeof *first_ns);
	if (!first_ns)
		return NULL;
	for (size_t s = 0; s < m->trace->stream_count; s++)
		first_ns[s] = INT64_MAX;
	for (size_t l = 0; l < m->link_count && left > 0; l++) {
		const struct weft_link *link = &m->links[l];
		if (link->stream >= m->trace->stream_count || first_ns[link->stream] != INT64_MAX)
			continue;
		first_ns[link->stream] = link->time_ns;
		left--;
	}
	for (size_t s = 0; s < m->trace->stream_count; s++)
		first_ns[s] = first_ns[s] == INT64_MAX ? m->end_ns : first_ns[s];
	return first_ns;
}

static void add(struct weft__lacks *to, const struct weft__lacks *of)
{
	to->lost |= of->lost;
	to->unplaced |= of->unplaced;
	to->clipped |= of->clipped;
	to->absent |= of->absent;
	to->cut |= of->cut;
	to->died |= of->died;
	to->wrapped |= of->wrapped;
	to->horizon_ns = of->horizon_ns > to->horizon_ns ? of->horizon_ns : to->horizon_ns;
}

struct weft__lacks *weft__lacks_find(const struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	const size_t parts = info->part_count ? info->part_count : 1;
	struct weft__lacks *lacks = calloc(parts + 1, sizeof *lacks);
	int64_t *first_ns = lacks ? find_first_links(m) : NULL;
	if (!first_ns) {
		free(lacks);
		return NULL;
	}
	for (size_t i = 0; i < info->part_count; i++) {
		const struct weft_part *part = &info->parts[i];
		lacks[i] = (struct weft__lacks){.lost = part->gap_count > 0,
		    .unplaced = part->lost_no_stream > 0 || part->unplaced_count > 0,
		    .cut = part->unfinished,
		    .died = part->has_died,
		    .wrapped = part->wrapped};
	}
	if (!info->part_count)
		lacks[0] = (struct weft__lacks){.lost = info->gap_count > 0,
		    .unplaced = info->lost_no_stream > 0 || info->unplaced_count > 0,
		    .cut = info->unfinished,
		    .died = info->has_died,
		    .wrapped = info->wrapped};
	bool all_cut_ran_on = m->keeping_count > 0;
	for (size_t i = 0; i < m->keeping_count; i++)
		if (m->keepings[i].runs_on && m->keepings[i].stream < info->stream_count)
			lacks[weft_part_of_stream(m, m->keepings[i].stream)].ran_on = true;
	for (size_t i = 0; i < parts; i++)
		all_cut_ran_on &= lacks[i].ran_on || !lacks[i].cut;
	for (size_t s = 0; s < info->stream_count; s++) {
		const struct weft_stream_info *stream = &info->streams[s];
		struct weft__lacks *of = &lacks[info->part_count ? stream->part : 0];
		/* Where all is known up to the end, what is missing in the middle came after it. */
		const bool is_missing = stream->lost_overwritten > 0 && !m->is_whole;
		const bool is_overwritten = (info->part_count ? info->parts[stream->part].wrapped : info->wrapped) || is_missing;
		add(of, &(struct weft__lacks){.unplaced = stream->lost_full > 0 || stream->lost_nested > 0,
			    .wrapped = is_missing,
			    .horizon_ns = is_overwritten && info->stream_count > 1 ? first_ns[s] : 0});
	}
	for (size_t i = 0; i < parts; i++) {
		lacks[i].lost |= lacks[i].unplaced;
		if (m->is_whole)
			lacks[i] = (struct weft__lacks){.clipped = true,
			    .absent = m->has_absent,
			    .cut = true,
			    .wrapped = lacks[i].wrapped,
			    .horizon_ns = lacks[i].horizon_ns};
		if (lacks[i].wrapped && lacks[i].horizon_ns == 0)
			lacks[i].horizon_ns = 1; /* what the first event tells of may have begun before it */
		add(&lacks[parts], &lacks[i]);
	}
	lacks[parts].ran_on = lacks[parts].cut && all_cut_ran_on;
	free(first_ns);
	return lacks;
}

const struct weft__lacks *weft__lacks_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise)
{
	return &lacks[weft_part_of(m, promise)];
}

bool weft__lacks_nothing_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	const struct weft__lacks *of = weft__lacks_of(lacks, m, promise);
	return !of->lost && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns >= of->horizon_ns;
}

bool weft__lacks_only_past_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	const struct weft__lacks *of = weft__lacks_of(lacks, m, promise);
	return !of->lost && of->wrapped && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns < of->horizon_ns;
}

bool weft__lacks_between(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
{
	for (size_t g = 0; g < m->trace->gap_count; g++) {
		const struct weft_gap *gap = &m->trace->gaps[g];
		const int64_t begin_ns = gap->from_ns < m->start_ns ? 0 : gap->from_ns - m->start_ns,
			      end_ns = gap->to_ns < m->start_ns ? 0 : gap->to_ns - m->start_ns;
		if ((stream == UINT16_MAX || gap->stream == stream) && begin_ns < to_ns && end_ns > from_ns)
			return true;
	}
	return false;
}

const char *weft__lacks_text(const struct weft__lacks *lacks)
{
	return lacks->lost      ? "events are missing in the trace"
	       : lacks->absent  ? "the end of the trace is missing, of some OS threads even more"
	       : lacks->clipped ? "the end of the trace is missing"
	       : lacks->died    ? "the program did not end the trace: it was killed, or ended at once"
	       : lacks->ran_on  ? "the program did not end the trace: it ran on when this copy was made"
	       : lacks->cut     ? "the program did not end the trace: it still runs, or was killed"
	       : lacks->wrapped ? "the ring was overwritten: the trace begins in the middle"
				: NULL;
}
