/* clip.c: until when a trace is whole.
 *
 * A stream that ends early, or has a hole, says nothing of what its OS thread did then: who is pending may have ended.  Up to the
 * first hole all is known, as in a trace whose program was killed at that moment.  Where one OS thread alone ends promises, those
 * of a pool, which run what it creates, are no reason to forget what it did: what they lack is told.  SPDX-License-Identifier:
 * ISC */
#include <stdlib.h>

#include "base/sort.h"
#include "model/private.h"

/* Nothing is known of when events are missing. */
static bool is_hopeless(const struct weft_trace_info *info)
{
	bool hopeless = info->unplaced_count > 0 || info->lost_no_stream > 0;
	for (size_t s = 0; s < info->stream_count; s++)
		hopeless |= info->streams[s].lost_full > 0 || info->streams[s].lost_nested > 0;
	return hopeless;
}

/* How far a stream that lacks events is known to do nothing but run what others create. */
enum part { SILENT, WORKS, ACTS }; /* the first: nothing is left that would tell */

static enum part part_of(const struct weft__build *b, size_t stream)
{
	const struct weft__stream_state *s = stream < b->streams.count ? &b->streams.items[stream] : NULL;
	return !s || (!s->acts && s->running == WEFT_NONE) ? SILENT : s->acts ? ACTS : WORKS;
}

/* Whether those that do not act only work: one alone acts, and a silent one is as the others are, if there are any. */
static bool are_workers(const struct weft__build *b, size_t stream_count, enum part part)
{
	size_t count[3] = {0};
	for (size_t s = 0; s < stream_count; s++)
		count[part_of(b, s)]++;
	return count[ACTS] <= 1 && (part == WORKS || (part == SILENT && count[WORKS] > 0));
}

static int by_time(const void *a, const void *b)
{
	const struct weft__absent *x = a, *y = b;
	return WEFT_ORDER(x->from_ns, y->from_ns) ?: WEFT_ORDER(x->stream, y->stream);
}

int weft__clip_find(struct weft__clip *clip, const struct weft__build *b)
{
	const struct weft_model *m = b->model;
	const struct weft_trace_info *info = m->trace;
	*clip = (struct weft__clip){.until_ns = INT64_MAX, .stream_count = info->stream_count};
	if (info->gap_count == 0 || is_hopeless(info))
		return 0;
	clip->streams = malloc((info->stream_count + 1) * sizeof *clip->streams);
	clip->absent = malloc((info->stream_count + 1) * sizeof *clip->absent);
	if (!clip->streams || !clip->absent)
		return WEFT_ENOMEM;
	for (size_t s = 0; s < info->stream_count; s++)
		clip->streams[s] = INT64_MAX;
	const bool are[] = {[SILENT] = are_workers(b, info->stream_count, SILENT),
	    [WORKS] = are_workers(b, info->stream_count, WORKS),
	    [ACTS] = false};
	for (size_t g = 0; g < info->gap_count; g++) {
		const struct weft_gap *gap = &info->gaps[g];
		const bool is_absent = gap->stream < info->stream_count && are[part_of(b, gap->stream)];
		int64_t *from_ns = is_absent ? &clip->streams[gap->stream] : &clip->until_ns;
		*from_ns = gap->from_ns < *from_ns ? gap->from_ns : *from_ns;
	}
	const int64_t end_ns = m->start_ns + m->end_ns;
	clip->until_ns = clip->until_ns < end_ns ? clip->until_ns : end_ns;
	for (size_t s = 0; s < info->stream_count; s++)
		if (clip->streams[s] < clip->until_ns)
			clip->absent[clip->absent_count++] = (struct weft__absent){clip->streams[s], (uint16_t)s};
	weft_sort(clip->absent, clip->absent_count, sizeof *clip->absent, by_time);
	return clip->until_ns > m->start_ns ? 1 : 0;
}
