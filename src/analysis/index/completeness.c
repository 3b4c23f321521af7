/* completeness.c: finds out which events are missing in a trace.  SPDX-License-Identifier: ISC */
#include "analysis/index/completeness.h"

#include <stdlib.h>

#include "analysis/index/path_by_process.h"

/* Returns, by stream, the time of its first link; the caller frees the array.  Each thread has its own ring of packets, and the
 * first link shows how far back that ring reaches. */
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

static void merge_completeness(struct weft__completeness *to, const struct weft__completeness *of)
{
	to->lost |= of->lost;
	to->unplaced |= of->unplaced;
	to->clipped |= of->clipped;
	to->absent |= of->absent;
	to->end_missing |= of->end_missing;
	to->stopped |= of->stopped;
	to->died |= of->died;
	to->seen |= of->seen;
	to->wrapped |= of->wrapped;
	to->horizon_ns = of->horizon_ns > to->horizon_ns ? of->horizon_ns : to->horizon_ns;
}

struct weft__completeness *weft__completeness_find(const struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	const size_t parts = info->part_count ? info->part_count : 1;
	struct weft__completeness *completeness = calloc(parts + 1, sizeof *completeness);
	int64_t *first_ns = completeness ? find_first_links(m) : NULL;
	if (!first_ns) {
		free(completeness);
		return NULL;
	}
	for (size_t i = 0; i < info->part_count; i++) {
		const struct weft_part *part = &info->parts[i];
		completeness[i] = (struct weft__completeness){.lost = part->gap_count > 0,
		    .unplaced = part->lost_no_stream > 0 || part->unplaced_count > 0,
		    .end_missing = part->unfinished || part->is_stopped,
		    .stopped = part->is_stopped,
		    .died = part->has_died,
		    .wrapped = part->wrapped};
	}
	if (!info->part_count)
		completeness[0] = (struct weft__completeness){.lost = info->gap_count > 0,
		    .unplaced = info->lost_no_stream > 0 || info->unplaced_count > 0,
		    .end_missing = info->unfinished || info->is_stopped,
		    .stopped = info->is_stopped,
		    .died = info->has_died,
		    .wrapped = info->wrapped};
	bool all_cut_ran_on = m->snapshot_reason_count > 0;
	for (size_t i = 0; i < m->snapshot_reason_count; i++)
		if (m->snapshot_reasons[i].runs_on && m->snapshot_reasons[i].stream < info->stream_count)
			completeness[weft_part_of_stream(m, m->snapshot_reasons[i].stream)].still_running = true;
	for (size_t i = 0; i < parts; i++)
		all_cut_ran_on &= completeness[i].still_running || !completeness[i].end_missing;
	for (size_t s = 0; s < info->stream_count; s++) {
		const struct weft_stream_info *stream = &info->streams[s];
		struct weft__completeness *of = &completeness[info->part_count ? stream->part : 0];
		/* In a model of the complete prefix of a trace, all missing events come after the end of the model. */
		const bool is_missing = stream->lost_overwritten > 0 && !m->is_whole;
		const bool is_overwritten = (info->part_count ? info->parts[stream->part].wrapped : info->wrapped) || is_missing;
		merge_completeness(of, &(struct weft__completeness){.unplaced = stream->lost_full > 0 || stream->lost_nested > 0,
					   .wrapped = is_missing,
					   .horizon_ns = is_overwritten && info->stream_count > 1 ? first_ns[s] : 0});
	}
	for (size_t i = 0; i < parts; i++) {
		completeness[i].seen = info->is_seen_once;
		completeness[i].lost |= completeness[i].unplaced;
		if (m->is_whole)
			completeness[i] = (struct weft__completeness){.clipped = true,
			    .absent = m->has_absent,
			    .end_missing = true,
			    .wrapped = completeness[i].wrapped,
			    .horizon_ns = completeness[i].horizon_ns};
		if (completeness[i].wrapped && completeness[i].horizon_ns == 0)
			completeness[i].horizon_ns = 1; /* the promise of the first event may be older than that event */
		merge_completeness(&completeness[parts], &completeness[i]);
	}
	completeness[parts].still_running = completeness[parts].end_missing && all_cut_ran_on;
	free(first_ns);
	return completeness;
}

const struct weft__completeness *weft__completeness_of(
    const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise)
{
	return &completeness[weft_part_of(m, promise)];
}

bool weft__has_complete_history(const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	const struct weft__completeness *of = weft__completeness_of(completeness, m, promise);
	return !of->lost && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns >= of->horizon_ns;
}

bool weft__is_only_past_missing(const struct weft__completeness *completeness, const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	const struct weft__completeness *of = weft__completeness_of(completeness, m, promise);
	return !of->lost && of->wrapped && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns < of->horizon_ns;
}

bool weft__are_events_missing(const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns)
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

const char *weft__completeness_text(const struct weft__completeness *completeness)
{
	return completeness->lost            ? "events are missing in the trace"
	       : completeness->absent        ? "the end of the trace is missing, and more events of some threads"
	       : completeness->clipped       ? "the end of the trace is missing"
	       : completeness->seen          ? "the program was looked at once, without a recording"
	       : completeness->died          ? "the program did not end the trace: it was killed, or exited abruptly"
	       : completeness->stopped       ? "the recording ended while the program went on"
	       : completeness->still_running ? "the program did not end the trace: it was running when this copy was made"
	       : completeness->end_missing   ? "the program did not end the trace: it still runs, or was killed"
	       : completeness->wrapped       ? "the ring was overwritten: the trace has only the newest events"
					     : NULL;
}
