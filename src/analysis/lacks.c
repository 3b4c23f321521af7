/* lacks.c: what a trace lacks.  SPDX-License-Identifier: ISC */
#include "analysis/lacks.h"

/* Each OS thread has a ring of its own, which goes back as far as it goes. */
static int64_t first_link_ns(const struct weft_model *m, size_t stream)
{
	for (size_t l = 0; l < m->link_count; l++)
		if (m->links[l].stream == stream)
			return m->links[l].time_ns;
	return m->end_ns;
}

struct weft__lacks weft__lacks_of(const struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	struct weft__lacks lacks = {.lost = info->lost_no_stream > 0 || info->skipped_count > 0 || info->gap_count > 0,
	    .cut = info->unfinished,
	    .wrapped = info->wrapped};
	for (size_t s = 0; s < info->stream_count; s++) {
		const struct weft_stream_info *stream = &info->streams[s];
		lacks.lost |= stream->lost_full > 0 || stream->lost_nested > 0;
		lacks.wrapped |= stream->lost_overwritten > 0;
		if (info->stream_count < 2 || !(info->wrapped || stream->lost_overwritten > 0))
			continue;
		int64_t first_ns = first_link_ns(m, s);
		if (first_ns > lacks.horizon_ns)
			lacks.horizon_ns = first_ns;
	}
	if (lacks.wrapped && lacks.horizon_ns == 0)
		lacks.horizon_ns = 1; /* what the first event tells of may have begun before it */
	return lacks;
}

bool weft__lacks_nothing_of(const struct weft__lacks *lacks, const struct weft_model *m, uint32_t promise)
{
	const struct weft_promise *p = &m->promises[promise];
	return !lacks->lost && !(p->flags & WEFT_PROMISE_START_UNKNOWN) && p->start_ns >= lacks->horizon_ns;
}
