/* saved.c: why a copy was kept, and what ran then.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/names.h"
#include "analysis/shares.h"

/* " at 2026-11-26 00:13:43 UTC"; "" if nobody knows.  Days to a date: by eras of 400 years that begin in March, so that a leap
 * day is a year's last one. */
static const char *words_of_date(struct weft__finder *f, int64_t time_ns)
{
	const struct weft_trace_info *info = f->model->trace;
	const int64_t utc_ns = (int64_t)((uint64_t)f->model->start_ns + (uint64_t)time_ns + (uint64_t)info->clock_origin_ns);
	if (!info->has_origin || utc_ns < 0)
		return "";
	const int64_t seconds = utc_ns / 1000000000, in_day = seconds % 86400, days = seconds / 86400 + 719468;
	const int64_t day = days % 146097, of_era = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	const int64_t of_year = day - (365 * of_era + of_era / 4 - of_era / 100), month = (5 * of_year + 2) / 153;
	return weft__finding_text(f,
	    " at %04" PRId64 "-%02" PRId64 "-%02" PRId64 " %02" PRId64 ":%02" PRId64 ":%02" PRId64 " UTC",
	    days / 146097 * 400 + of_era + (month > 9), month < 10 ? month + 3 : month - 9, of_year - (153 * month + 2) / 5 + 1,
	    in_day / 3600, in_day / 60 % 60, in_day % 60);
}

static void tell_saved(struct weft__finder *f, const struct weft_keeping *keeping, uint32_t last, size_t others)
{
	const struct weft_trace_info *info = f->model->trace;
	struct weft_finding *finding =
	    weft__finding_begin(f, WEFT_FINDING_SAVED, WEFT_SYSTEM, keeping->time_ns, keeping->time_ns);
	if (!finding)
		return;
	const bool is_joined = info->part_count && keeping->stream < info->stream_count;
	const struct weft_str why = weft_model_text(f->model, keeping->text);
	char clean[800];
	finding->title = weft__finding_text(f, "%s%s was kept%s since %s", is_joined ? "the copy of " : "this copy",
	    is_joined ? info->parts[info->streams[keeping->stream].part].name : "", words_of_date(f, keeping->time_ns),
	    weft_name_clean(why, clean, sizeof clean));
	if (last != WEFT_NONE) {
		const struct weft_run *run = &f->model->runs[f->model->promises[last + 1].runs - 1];
		weft__words_creation(f, last);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, run->start_ns, last, "%s%s begins to run, and runs still",
		    weft__words_name(f, last), weft__words_at(f, last));
	}
	if (others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%zu other%s ran on other OS threads",
		    others, weft__words_s(others));
	if (keeping->runs_on)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, keeping->time_ns, WEFT_NONE,
		    "the copy is made; the program ran on: what was not over then may be over by now");
}

void weft__find_saved(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (m->keeping_count == 0)
		return;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	uint32_t *last = weft__finding_alloc(f, parts, sizeof *last);
	size_t *others = weft__finding_alloc(f, parts, sizeof *others);
	if (last && others)
		weft__crash_last(f, last, others);
	for (size_t i = 0; last && others && i < m->keeping_count; i++) {
		const struct weft_keeping *keeping = &m->keepings[i];
		const uint32_t part = weft_part_of_stream(m, keeping->stream);
		const bool runs = keeping->runs_on;
		tell_saved(f, keeping, runs ? last[part] : WEFT_NONE, runs ? others[part] : 0);
	}
	free(last);
	free(others);
}
