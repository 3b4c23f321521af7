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
