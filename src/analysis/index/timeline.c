/* timeline.c: sorts runs and sleeps by thread and time.  SPDX-License-Identifier: ISC */
#include "analysis/index/timeline.h"

#include <stdlib.h>

#include "base/search.h"
#include "base/sort.h"

struct timed_run {
	int64_t start_ns, end_ns;
	struct weft__thread_run run;
};

static int compare_timed_runs(const void *a, const void *b)
{
	const struct timed_run *x = a, *y = b;
	return WEFT_ORDER(x->start_ns, y->start_ns) ?: WEFT_ORDER(x->end_ns, y->end_ns) ?: WEFT_ORDER(x->run.run, y->run.run);
}

/* Returns the stream of a run of a promise. */
static uint16_t get_stream(const struct weft_model *m, uint32_t run)
{
	return m->run_streams ? m->run_streams[run] : 0;
}

/* Replaces the counts of items of each stream, which are stored at the index of the next stream, by the start index of each
 * stream. */
static void counts_to_starts(uint32_t *begin, size_t streams)
{
	for (size_t s = 0; s < streams; s++)
		begin[s + 1] += begin[s];
}

/* Moves the start indexes back by one stream, after filling has moved each to the start of the next stream. */
static void restore_starts(uint32_t *begin, size_t streams)
{
	for (size_t s = streams; s > 0; s--)
		begin[s] = begin[s - 1];
	begin[0] = 0;
}

static bool sort_runs(struct weft__timeline *t, size_t streams)
{
	const struct weft_model *m = t->model;
	struct timed_run *all = malloc((m->run_count + 1) * sizeof *all);
	if (!all)
		return false;
	for (uint32_t r = 0; r < m->run_count; r++)
		t->run_begin[get_stream(m, r) + 1]++;
	counts_to_starts(t->run_begin, streams);
	for (uint32_t p = 0; p < m->promise_count; p++)
		for (uint32_t r = m->promises[p].runs; r < m->promises[p + 1].runs; r++)
			all[t->run_begin[get_stream(m, r)]++] =
			    (struct timed_run){m->runs[r].start_ns, m->runs[r].end_ns, {r, p}};
	restore_starts(t->run_begin, streams);
	for (size_t s = 0; s < streams; s++)
		weft_sort(all + t->run_begin[s], t->run_begin[s + 1] - t->run_begin[s], sizeof *all, compare_timed_runs);
	for (size_t i = 0; i < m->run_count; i++)
		t->runs[i] = all[i].run;
	free(all);
	return true;
}

static void sort_sleeps(struct weft__timeline *t, size_t streams)
{
	const struct weft_model *m = t->model;
	for (size_t i = 0; i < m->sleep_count; i++)
		t->sleep_begin[m->sleeps[i].stream + 1]++;
	counts_to_starts(t->sleep_begin, streams);
	for (size_t i = 0; i < m->sleep_count; i++)
		t->sleeps[t->sleep_begin[m->sleeps[i].stream]++] = (uint32_t)i;
	restore_starts(t->sleep_begin, streams);
}

bool weft__timeline_init(struct weft__timeline *t, const struct weft_model *m)
{
	const size_t streams = m->trace->stream_count + 1;
	*t = (struct weft__timeline){
	    .model = m,
	    .run_begin = calloc(streams + 1, sizeof *t->run_begin),
	    .runs = malloc((m->run_count + 1) * sizeof *t->runs),
	    .sleep_begin = calloc(streams + 1, sizeof *t->sleep_begin),
	    .sleeps = malloc((m->sleep_count + 1) * sizeof *t->sleeps),
	};
	if (!t->run_begin || !t->runs || !t->sleep_begin || !t->sleeps || !sort_runs(t, streams))
		return false;
	sort_sleeps(t, streams);
	return true;
}

void weft__timeline_finish(struct weft__timeline *t)
{
	free(t->run_begin);
	free(t->runs);
	free(t->sleep_begin);
	free(t->sleeps);
	*t = (struct weft__timeline){0};
}

uint32_t weft__timeline_first_run(const struct weft__timeline *t, uint16_t stream, int64_t time_ns)
{
	const struct weft_run *runs = t->model->runs;
	return (uint32_t)WEFT_FIND_FIRST(
	    i, t->run_begin[stream], t->run_begin[stream + 1], runs[t->runs[i].run].end_ns > time_ns);
}

uint32_t weft__timeline_first_sleep(const struct weft__timeline *t, uint16_t stream, int64_t time_ns)
{
	const struct weft_interval *sleeps = t->model->sleeps;
	return (uint32_t)WEFT_FIND_FIRST(
	    i, t->sleep_begin[stream], t->sleep_begin[stream + 1], sleeps[t->sleeps[i]].end_ns > time_ns);
}
