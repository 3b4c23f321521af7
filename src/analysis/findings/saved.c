/* saved.c: reports why `weft watch` saved this copy of a trace, and which promise was running at that moment.
 * SPDX-License-Identifier: ISC
 */
#include <inttypes.h>
#include <stdlib.h>

#include "analysis/findings/finding.h"
#include "analysis/index/names.h"
#include "analysis/index/path_by_process.h"

/* Returns " at 2026-11-26 00:13:43 UTC", or "" if the trace does not have the origin of its clock.  The date is computed in
 * eras of 400 years that start in March, so that a leap day is the last day of a year. */
static const char *format_date(struct weft__finder *f, int64_t time_ns)
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

static void report_saved(struct weft__finder *f, const struct weft_snapshot_reason *reason, uint32_t last, size_t others)
{
	const struct weft_trace_info *info = f->model->trace;
	struct weft_finding *finding = weft__finding_begin(f, WEFT_FINDING_SAVED, WEFT_SYSTEM, reason->time_ns, reason->time_ns);
	if (!finding)
		return;
	const bool is_joined = info->part_count && reason->stream < info->stream_count;
	const struct weft_str why = weft_model_text(f->model, reason->text);
	char clean[800];
	finding->title = weft__finding_text(f, "%s%s was saved%s because %s", is_joined ? "the copy of " : "this copy",
	    is_joined ? info->parts[info->streams[reason->stream].part].name : "", format_date(f, reason->time_ns),
	    weft_name_sanitize(why, clean, sizeof clean));
	if (last != WEFT_NONE) {
		const struct weft_run *run = &f->model->runs[f->model->promises[last + 1].runs - 1];
		weft__evidence_add_creation(f, last);
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, run->start_ns, last,
		    "%s%s starts to run, and still ran when the copy was made", weft__format_promise(f, last),
		    weft__format_site_suffix(f, last));
	}
	if (others > 0)
		weft__finding_evidence(f, WEFT_EVIDENCE_NOTE, WEFT_NO_TIME, WEFT_NONE, "%zu other promise%s ran on other threads",
		    others, weft__format_plural_s(others));
	if (reason->runs_on)
		weft__finding_evidence(f, WEFT_EVIDENCE_CAUSE, reason->time_ns, WEFT_NONE,
		    "the copy is made, and the program continues: promises that are pending in the copy may have ended since");
}

void weft__find_saved(struct weft__finder *f)
{
	const struct weft_model *m = f->model;
	if (m->snapshot_reason_count == 0)
		return;
	const size_t parts = m->trace->part_count ? m->trace->part_count : 1;
	uint32_t *last = weft__finding_alloc(f, parts, sizeof *last);
	size_t *others = weft__finding_alloc(f, parts, sizeof *others);
	if (last && others)
		weft__crash_find_last_running(f, last, others);
	for (size_t i = 0; last && others && i < m->snapshot_reason_count; i++) {
		const struct weft_snapshot_reason *reason = &m->snapshot_reasons[i];
		const uint32_t part = weft_part_of_stream(m, reason->stream);
		const bool runs = reason->runs_on;
		report_saved(f, reason, runs ? last[part] : WEFT_NONE, runs ? others[part] : 0);
	}
	free(last);
	free(others);
}
