/* notice.c: what a window says of a trace.  SPDX-License-Identifier: ISC */
#include "notice.h"

#include <inttypes.h>
#include <string.h>

#include "base/duration.h"

char *file_name(const char *path)
{
	return strcmp(path, "-") == 0 ? g_strdup("standard input") : g_filename_display_basename(path);
}

char *notice_summary(const struct weft_viewer *viewer)
{
	char time[WEFT_DURATION_BYTES];
	weft_duration_format(time, sizeof time, viewer->model->end_ns);
	size_t promises = viewer->model->promise_count - 1;
	return g_strdup_printf("%'" PRIu64 " %s · %'zu %s · %s", viewer->model->events,
	    viewer->model->events == 1 ? "event" : "events", promises, promises == 1 ? "promise" : "promises", time);
}

static uint64_t lost(const struct weft_trace_info *info)
{
	uint64_t sum = info->lost_no_stream;
	for (size_t i = 0; i < info->stream_count; i++)
		sum += info->streams[i].lost_full + info->streams[i].lost_nested;
	return sum;
}

char *notice_damage(const struct weft_viewer *viewer)
{
	const struct weft_trace_info *info = viewer->model->trace;
	GString *text = g_string_new(NULL);
	uint64_t missing = lost(info), odd = 0;
	for (int i = 0; i < WEFT_ANOMALY_COUNT; i++)
		odd += viewer->model->anomalies[i];
	if (info->skipped_count > 0) {
		char where[640];
		weft_error_format(&info->skipped[0].where, where, sizeof where);
		char *safe = g_utf8_make_valid(where, -1);
		g_string_append_printf(text,
		    "Damaged in %'zu %s: %s. Promises may seem to begin late, to wait too long or never to end.",
		    info->skipped_count, info->skipped_count == 1 ? "place" : "places, first", safe);
		g_free(safe);
	}
	if (missing > 0)
		g_string_append_printf(text,
		    "%s%'" PRIu64 " events were lost while it was recorded: links and ends may be missing where they happened.",
		    text->len ? "\n" : "", missing);
	if (odd > 0 && info->skipped_count == 0 && missing == 0)
		g_string_append_printf(
		    text, "%'" PRIu64 " events contradict others: what they say of their promises may be wrong.", odd);
	return g_string_free(text, text->len == 0);
}

char *notice_selected(const struct weft_viewer *viewer)
{
	uint32_t promise = viewer->selected != WEFT_NONE ? viewer->selected : viewer->hovered;
	if (promise == WEFT_NONE)
		return g_strdup("Nothing is selected");
	const struct weft_promise *p = &viewer->model->promises[promise];
	char name[256], start[WEFT_DURATION_BYTES], life[WEFT_DURATION_BYTES];
	static const char *const ends[] = {"is not heard of again", "is resolved", "fails", "becomes another"};
	weft_model_name(viewer->model, promise, name, sizeof name);
	weft_duration_format(start, sizeof start, p->start_ns);
	weft_duration_format(life, sizeof life, p->end_ns - p->start_ns);
	return g_strdup_printf("%s, %s, promise %" PRId64 ": begins at %s and %s after %s", name,
	    weft_model_kind_name(viewer->model, p->kind), p->id, start, ends[p->end], life);
}
