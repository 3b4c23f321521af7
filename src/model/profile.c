/* profile.c: gives each stream the stack samples of its thread.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "base/search.h"
#include "base/sort.h"
#include "model/private.h"

static int compare_samples(const void *x, const void *y)
{
	const struct weft_stack_sample *a = x, *b = y;
	return WEFT_ORDER(a->stream, b->stream) ?: WEFT_ORDER(a->time_ns, b->time_ns) ?: WEFT_ORDER(a->stack, b->stack);
}

/* A thread whose samples are searched. */
struct thread {
	uint32_t part, tid;
	uint16_t stream;
};

static int compare_threads(const void *x, const void *y)
{
	const struct thread *a = x, *b = y;
	return WEFT_ORDER(a->part, b->part) ?: WEFT_ORDER(a->tid, b->tid) ?: WEFT_ORDER(a->stream, b->stream);
}

static struct thread *list_threads(const struct weft_trace_info *info)
{
	struct thread *threads = malloc((info->stream_count + 1) * sizeof *threads);
	for (size_t i = 0; threads && i < info->stream_count; i++)
		threads[i] = (struct thread){info->streams[i].part, (uint32_t)info->streams[i].tid, (uint16_t)i};
	if (threads)
		weft_sort(threads, info->stream_count, sizeof *threads, compare_threads);
	return threads;
}

int weft__model_read_profile(struct weft_model *m)
{
	const struct weft_trace_info *info = m->trace;
	const struct weft_profile *profile = &info->profile;
	if (!profile->sample_count)
		return WEFT_OK;
	struct thread *threads = list_threads(info);
	struct weft_stack_sample *samples = malloc(profile->sample_count * sizeof *samples);
	size_t count = 0;
	for (size_t i = 0; threads && samples && i < profile->sample_count; i++) {
		const struct weft_profile_sample *s = &profile->samples[i];
		const size_t at = WEFT_FIND_FIRST(n, 0, info->stream_count,
		    threads[n].part > s->part || (threads[n].part == s->part && threads[n].tid >= s->tid));
		/* A sample with a time outside the trace is damaged. */
		if (at < info->stream_count && threads[at].part == s->part && threads[at].tid == s->tid &&
		    s->time_ns >= m->start_ns && s->time_ns - m->start_ns <= m->end_ns)
			samples[count++] = (struct weft_stack_sample){s->time_ns - m->start_ns, s->stack, threads[at].stream};
	}
	const bool has_memory = threads && samples;
	free(threads);
	if (!has_memory) {
		free(samples);
		return WEFT_ENOMEM;
	}
	weft_sort(samples, count, sizeof *samples, compare_samples);
	m->samples = samples;
	m->sample_count = count;
	return WEFT_OK;
}

const struct weft_stack_sample *weft_model_samples(
    const struct weft_model *m, uint16_t stream, int64_t from_ns, int64_t to_ns, size_t *count)
{
	const size_t begin = WEFT_FIND_FIRST(i, 0, m->sample_count,
	    m->samples[i].stream > stream || (m->samples[i].stream == stream && m->samples[i].time_ns >= from_ns));
	const size_t end =
	    WEFT_FIND_FIRST(i, begin, m->sample_count, m->samples[i].stream > stream || m->samples[i].time_ns > to_ns);
	*count = end - begin;
	return m->samples ? m->samples + begin : NULL;
}
