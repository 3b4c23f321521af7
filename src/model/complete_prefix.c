/* complete_prefix.c: finds the time up to which no event of a trace is missing.
 *
 * After the end of a stream, or after a gap in it, the actions of its thread are unknown: a pending promise may have ended.  Up
 * to the first gap everything is known, as if the program had been killed at that time.  A gap in the stream of a worker thread
 * does not end the complete prefix if only one thread ends promises: workers only run the promises that this thread creates.
 * The model names such worker threads as absent.  SPDX-License-Identifier: ISC */
#include <stdlib.h>

#include "base/sort.h"
#include "model/private.h"

/* Returns true if events are missing at an unknown time. */
static bool has_undated_losses(const struct weft_trace_info *info)
{
	bool hopeless = info->unplaced_count > 0 || info->lost_no_stream > 0;
	for (size_t s = 0; s < info->stream_count; s++)
		hopeless |= info->streams[s].lost_full > 0 || info->streams[s].lost_nested > 0;
	return hopeless;
}

/* The role of a thread whose stream has gaps, as its remaining events show it.  A worker only runs promises that other threads
 * create. */
enum role { ROLE_SILENT, ROLE_WORKER, ROLE_ACTOR }; /* ROLE_SILENT means that the stream has no events */

static enum role get_role(const struct weft__build *b, size_t stream)
{
	const struct weft__stream_state *s = stream < b->streams.count ? &b->streams.items[stream] : NULL;
	return !s || (!s->acts && s->running == WEFT_NONE) ? ROLE_SILENT : s->acts ? ROLE_ACTOR : ROLE_WORKER;
}

/* Returns true if streams of the role are worker threads: at most one stream acts on other promises.  Silent streams count as
 * workers if the trace has other workers. */
static bool are_workers(const struct weft__build *b, size_t stream_count, enum role role)
{
	size_t count[3] = {0};
	for (size_t s = 0; s < stream_count; s++)
		count[get_role(b, s)]++;
	return count[ROLE_ACTOR] <= 1 && (role == ROLE_WORKER || (role == ROLE_SILENT && count[ROLE_WORKER] > 0));
}

static int compare_absent(const void *a, const void *b)
{
	const struct weft__absent *x = a, *y = b;
	return WEFT_ORDER(x->from_ns, y->from_ns) ?: WEFT_ORDER(x->stream, y->stream);
}

int weft__complete_prefix_find(struct weft__complete_prefix *clip, const struct weft__build *b)
{
	const struct weft_model *m = b->model;
	const struct weft_trace_info *info = m->trace;
	*clip = (struct weft__complete_prefix){.until_ns = INT64_MAX, .stream_count = info->stream_count};
	if (info->gap_count == 0 || has_undated_losses(info))
		return 0;
	clip->streams = malloc((info->stream_count + 1) * sizeof *clip->streams);
	clip->absent = malloc((info->stream_count + 1) * sizeof *clip->absent);
	if (!clip->streams || !clip->absent)
		return WEFT_ENOMEM;
	for (size_t s = 0; s < info->stream_count; s++)
		clip->streams[s] = INT64_MAX;
	const bool are[] = {[ROLE_SILENT] = are_workers(b, info->stream_count, ROLE_SILENT),
	    [ROLE_WORKER] = are_workers(b, info->stream_count, ROLE_WORKER),
	    [ROLE_ACTOR] = false};
	for (size_t g = 0; g < info->gap_count; g++) {
		const struct weft_gap *gap = &info->gaps[g];
		const bool is_absent = gap->stream < info->stream_count && are[get_role(b, gap->stream)];
		int64_t *from_ns = is_absent ? &clip->streams[gap->stream] : &clip->until_ns;
		*from_ns = gap->from_ns < *from_ns ? gap->from_ns : *from_ns;
	}
	const int64_t end_ns = m->start_ns + m->end_ns;
	clip->until_ns = clip->until_ns < end_ns ? clip->until_ns : end_ns;
	for (size_t s = 0; s < info->stream_count; s++)
		if (clip->streams[s] < clip->until_ns)
			clip->absent[clip->absent_count++] = (struct weft__absent){clip->streams[s], (uint16_t)s};
	weft_sort(clip->absent, clip->absent_count, sizeof *clip->absent, compare_absent);
	return clip->until_ns > m->start_ns ? 1 : 0;
}
