/* summary.c: what is said of a trace and of a promise in one line.  SPDX-License-Identifier: ISC */
#include "viewer/summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/duration.h"
#include "viewer/rows_private.h"

const char *weft_viewer_summary(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	char time[WEFT_DURATION_BYTES], events[28], promises[28];
	size_t count = v->model->promise_count - 1; /* without the system */
	weft_duration_format(time, sizeof time, v->model->end_ns);
	snprintf(buf, WEFT_SUMMARY_BYTES, "%s %s \xc2\xb7 %s %s \xc2\xb7 %s", weft__thousands(events, v->model->events),
	    v->model->events == 1 ? "event" : "events", weft__thousands(promises, count), count == 1 ? "promise" : "promises",
	    time);
	return buf;
}

const char *weft_viewer_describe(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	static const char *const ends[] = {[WEFT_END_PENDING] = "is pending",
	    [WEFT_END_RESOLVED] = "is resolved",
	    [WEFT_END_FAILED] = "fails",
	    [WEFT_END_BECAME] = "becomes another"};
	uint32_t promise = v->selected != WEFT_NONE ? v->selected : v->hovered;
	if (promise == WEFT_NONE) {
		snprintf(buf, WEFT_SUMMARY_BYTES, "Nothing is selected");
		return buf;
	}
	const struct weft_promise *p = &v->model->promises[promise];
	char name[256], start[WEFT_DURATION_BYTES], life[WEFT_DURATION_BYTES];
	weft_model_name(v->model, promise, name, sizeof name);
	weft_duration_format(start, sizeof start, p->start_ns);
	weft_duration_format(life, sizeof life, p->end_ns - p->start_ns);
	snprintf(buf, WEFT_SUMMARY_BYTES, "%s, %s, promise %" PRId64 ": begins at %s and %s after %s", name,
	    weft_model_kind_name(v->model, p->kind), p->id, start, ends[p->end], life);
	return buf;
}

const char *weft_viewer_list_promise(const struct weft_viewer *v, uint32_t promise, char buf[WEFT_SUMMARY_BYTES])
{
	const struct weft_promise *p = &v->model->promises[promise];
	char name[256], at[WEFT_DURATION_BYTES], length[WEFT_DURATION_BYTES];
	weft_model_name(v->model, promise, name, sizeof name);
	weft_duration_format(at, sizeof at, p->start_ns);
	weft_duration_format(length, sizeof length, p->end_ns - p->start_ns);
	snprintf(buf, WEFT_SUMMARY_BYTES, "%s, %s, at %s, %s", name, weft_model_kind_name(v->model, p->kind), at, length);
	return buf;
}
