/* timeline.h: lists what each OS thread did in order of time: the promises that it ran, and its sleeps.  Private to analysis/.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_ANALYSIS_INDEX_TIMELINE_H
#define WEFT_ANALYSIS_INDEX_TIMELINE_H

#include "model/model.h"

struct weft__thread_run {
	uint32_t run, promise;
};

/* The runs and sleeps of each stream; takes 8 bytes for each run and 4 bytes for each sleep.  Runs of one stream do not
 * overlap. */
struct weft__timeline {
	const struct weft_model *model;
	uint32_t *run_begin; /* by stream: its runs are runs[run_begin[s]] to runs[run_begin[s + 1] - 1] */
	struct weft__thread_run *runs;
	/* by stream: indexes into model->sleeps of its sleeps, sleeps[sleep_begin[s]] to sleeps[sleep_begin[s + 1] - 1] */
	uint32_t *sleep_begin, *sleeps;
};

/* Builds the timeline; returns false when out of memory.  The caller calls weft__timeline_finish() in any case.  Takes n log n
 * time in the number of runs. */
bool weft__timeline_init(struct weft__timeline *t, const struct weft_model *model);
void weft__timeline_finish(struct weft__timeline *t);

/* Returns the index in `runs` of the stream's first run that ends after a time, or the index in `sleeps` of its first such
 * sleep; run_begin[stream + 1], or sleep_begin[stream + 1], if there is none.  Logarithmic. */
uint32_t weft__timeline_first_run(const struct weft__timeline *t, uint16_t stream, int64_t time_ns);
uint32_t weft__timeline_first_sleep(const struct weft__timeline *t, uint16_t stream, int64_t time_ns);

#endif
