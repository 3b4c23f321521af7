/* summary.c: describes a trace or a promise in one line.  SPDX-License-Identifier: ISC */
#include "viewer/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/index/link_index.h"
#include "analysis/queries/summary.h"
#include "base/duration.h"
#include "base/utf8.h"
#include "viewer/private.h"
#include "viewer/rows_private.h"

const char *weft_viewer_summary(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	char time[WEFT_DURATION_BYTES], awake[WEFT_DURATION_BYTES], events[28], promises[28];
	size_t count = v->model->promise_count - 1; /* without the system promise */
	weft_duration_format(time, sizeof time, v->model->end_ns);
	snprintf(buf, WEFT_SUMMARY_BYTES, "%s %s \xc2\xb7 %s %s \xc2\xb7 %s", weft_number_text(events, v->model->events),
	    v->model->events == 1 ? "event" : "events", weft_number_text(promises, count), count == 1 ? "promise" : "promises",
	    time);
	if (v->view->lulls) {
		size_t len = strlen(buf);
		weft_duration_format(awake, sizeof awake, v->model->end_ns - weft_lulls_ns(v->view->lulls));
		snprintf(buf + len, WEFT_SUMMARY_BYTES - len, ", awake for %s; sleep is folded (S)", awake);
	}
	if (v->skips_start_up) {
		size_t len = strlen(buf);
		snprintf(buf + len, WEFT_SUMMARY_BYTES - len, "; begins at the first request (Home shows all)");
	}
	return buf;
}

/* Returns the line of the summary about the program, or NULL. */
static const struct weft_summary_line *find_program_line(const struct weft_viewer *v)
{
	for (size_t i = 0; i < v->summary->count; i++)
		if (v->summary->lines[i].topic == WEFT_SUMMARY_PROGRAM)
			return &v->summary->lines[i];
	return NULL;
}

const char *weft_viewer_caption_title(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	const struct weft_summary_line *line = find_program_line(v);
	snprintf(buf, WEFT_SUMMARY_BYTES, "%s", line && *line->title ? line->title : v->name);
	return buf;
}

const char *weft_viewer_caption_facts(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	const struct weft_summary_line *line = find_program_line(v);
	char from[WEFT_DURATION_BYTES], to[WEFT_DURATION_BYTES];
	int64_t from_ns, to_ns;
	weft_viewer_times(v, &from_ns, &to_ns);
	weft_duration_format(from, sizeof from, from_ns > 0 ? from_ns : 0);
	weft_duration_format(to, sizeof to, to_ns < v->model->end_ns ? to_ns : v->model->end_ns);
	snprintf(buf, WEFT_SUMMARY_BYTES, "trace %s \xc2\xb7 %s%sshown from %s to %s", v->name, line ? line->rest : "",
	    line && *line->rest ? " \xc2\xb7 " : "", from, to);
	return buf;
}

static void describe_promise(const struct weft_viewer *v, uint32_t promise, char *buf, size_t size)
{
	const struct weft_promise *p = &v->model->promises[promise];
	char name[256], start[WEFT_DURATION_BYTES], life[WEFT_DURATION_BYTES];
	weft_model_name(v->model, promise, name, sizeof name);
	weft_duration_format(start, sizeof start, p->start_ns);
	weft_duration_format(life, sizeof life, p->end_ns - p->start_ns);
	int len = snprintf(buf, size, "%s, %s, promise %" PRId64 ": starts at %s, ", name,
	    weft_model_kind_name(v->model, p->kind), p->id, start);
	if (len < 0 || (size_t)len >= size)
		return;
	buf += len;
	size -= (size_t)len;
	if (p->flags & WEFT_PROMISE_NEVER_RESOLVED)
		snprintf(buf, size, "should have been resolved, but never was");
	else if (p->end == WEFT_END_PENDING && p->end_ns < weft_model_until(v->model, promise))
		snprintf(buf, size, "its last event is %s later, and its end is not recorded", life);
	else
		snprintf(buf, size, "%s %s later",
		    p->end == WEFT_END_RESOLVED  ? "resolved"
		    : p->end == WEFT_END_FAILED  ? "failed"
		    : p->end == WEFT_END_PENDING ? "still pending"
						 : "became another promise",
		    life);
}

/* Describes the fold or track on the line of a promise. */
static void describe_line(const struct weft_viewer *v, uint32_t promise, char *buf, size_t size)
{
	const struct weft_fold *fold = weft_layout_fold(v->layout, promise);
	const struct weft_track *track = weft_layout_track(v->layout, promise);
	if (fold && fold->is_track)
		snprintf(buf, size, "; a folded track with %" PRIu32 " promise%s", fold->count - 1, fold->count == 2 ? "" : "s");
	else if (fold)
		snprintf(buf, size, "; folded: %" PRIu32 " promises on this line", fold->count);
	else if (track && track->row_count > 1)
		snprintf(buf, size, "; a track of %" PRIu32 " rows", track->row_count);
}

const char *weft_viewer_describe(const struct weft_viewer *v, char buf[WEFT_SUMMARY_BYTES])
{
	const struct weft_spot *spot = v->spot.track != WEFT_NONE || v->selected != WEFT_NONE ? &v->spot : &v->hovered_spot;
	uint32_t promise = v->selected != WEFT_NONE ? v->selected : v->hovered;
	if (weft__viewer_describe_spot(v, spot, buf, WEFT_SUMMARY_BYTES))
		return buf;
	if (promise != WEFT_NONE) {
		describe_promise(v, promise, buf, WEFT_SUMMARY_BYTES);
		size_t len = strlen(buf);
		describe_line(v, promise, buf + len, WEFT_SUMMARY_BYTES - len);
	} else {
		snprintf(buf, WEFT_SUMMARY_BYTES, "Nothing is selected");
	}
	return buf;
}

const char *weft__viewer_promise_name(const struct weft_viewer *v, uint32_t promise, char buf[200])
{
	const struct weft_promise *p = &v->model->promises[promise];
	const char *kind = weft_model_kind_name(v->model, p->kind);
	char name[120];
	uint32_t text = weft_model_name_text(v->model, promise);
	if (text == WEFT_NONE) {
		snprintf(buf, 200, "%s %" PRId64, kind, p->id);
		return buf;
	}
	weft_utf8_copy(name, sizeof name, weft_model_text(v->model, text));
	snprintf(buf, 200, "%s %" PRId64 " \"%s\"", kind, p->id, name);
	return buf;
}

bool weft_viewer_crumb(const struct weft_viewer *v, char buf[WEFT_CRUMB_BYTES])
{
	char name[200];
	if (v->refusal) {
		snprintf(buf, WEFT_CRUMB_BYTES, "%s", v->refusal);
		return true;
	}
	if (v->focused == WEFT_NONE && weft_viewer_hides(v)) {
		size_t len = (size_t)snprintf(buf, WEFT_CRUMB_BYTES, "Everything \xe2\x80\xba %s%s%s",
		    v->folding.only[0] ? "only " : "", v->folding.only, v->folding.hidden_count > 0 ? " without" : "");
		for (size_t i = 0; i < v->folding.hidden_count && len < WEFT_CRUMB_BYTES; i++)
			len +=
			    (size_t)snprintf(buf + len, WEFT_CRUMB_BYTES - len, "%s %s", i > 0 ? "," : "", v->folding.hidden[i]);
		return true;
	}
	if (v->focused == WEFT_NONE)
		return false;
	snprintf(buf, WEFT_CRUMB_BYTES, "Everything \xe2\x80\xba only promises that belong to %s",
	    weft__viewer_promise_name(v, v->focused, name));
	return true;
}

static void describe_arrow(const struct weft_viewer *v, char buf[WEFT_TIP_BYTES])
{
	const struct weft_link *link = &v->model->links[v->hovered_link];
	const struct weft_promise *to = &v->model->promises[link->to];
	char a[200], b[200], at[WEFT_DURATION_BYTES], since[WEFT_DURATION_BYTES];
	int len = 0;
	weft__viewer_promise_name(v, link->from, a);
	weft__viewer_promise_name(v, link->to, b);
	weft_duration_format(at, sizeof at, link->time_ns);
	weft_duration_format(
	    since, sizeof since, link->time_ns > to->end_ns ? link->time_ns - to->end_ns : to->end_ns - link->time_ns);
	switch ((enum weft_link_kind)link->kind) {
	case WEFT_LINK_RESOLVE:
		len = snprintf(
		    buf, WEFT_TIP_BYTES, to->end == WEFT_END_FAILED ? "%s made %s fail at %s" : "%s resolved %s at %s", a, b, at);
		break;
	case WEFT_LINK_READ:
		if (link->time_ns == to->end_ns)
			snprintf(since, sizeof since, "as soon as");
		len = snprintf(buf, WEFT_TIP_BYTES, "%s read the %s of %s at %s, %s%s it was ready", a,
		    to->end == WEFT_END_FAILED ? "error" : "result", b, at, since, link->time_ns == to->end_ns ? "" : " after");
		break;
	case WEFT_LINK_AWAIT:
		len = snprintf(buf, WEFT_TIP_BYTES,
		    weft_has_ended(to) ? "%s waited for %s from %s on, for %s" : "%s waits for %s from %s on", a, b, at, since);
		break;
	default: len = snprintf(buf, WEFT_TIP_BYTES, "%s sent %s a message at %s", a, b, at);
	}
	if (v->hovered_links > 1 && len < WEFT_TIP_BYTES)
		snprintf(buf + len, WEFT_TIP_BYTES - (size_t)len, "; %" PRIu32 " more arrows are here", v->hovered_links - 1);
}

static bool describe_density(const uint32_t counts[WEFT_ARROWS], char buf[WEFT_TIP_BYTES])
{
	static const char *const did[] = {[WEFT_ARROW_AWAIT] = "started to wait",
	    [WEFT_ARROW_READ] = "read a result",
	    [WEFT_ARROW_RESOLVE] = "resolved a promise",
	    [WEFT_ARROW_SIGNAL] = "sent a message",
	    [WEFT_ARROW_READ_FAILED] = "read an error"};
	int len = snprintf(buf, WEFT_TIP_BYTES, "In this pixel");
	size_t class_count = 0;
	for (size_t i = 0; i < WEFT_ARROWS; i++)
		if (counts[i] > 0)
			len += snprintf(buf + len, WEFT_TIP_BYTES - (size_t)len, "%s %" PRIu32 " %s", class_count++ ? "," : "",
			    counts[i], did[i]);
	snprintf(buf + len, WEFT_TIP_BYTES - (size_t)len, "; point at a promise to see only its arrows");
	return class_count > 0;
}

bool weft_viewer_tip(const struct weft_viewer *v, char buf[WEFT_TIP_BYTES])
{
	enum { NEAR_PX = 8 };
	const struct weft_pane *picture = &v->panes[WEFT_PANE_PICTURE];
	double x = (v->last_x_px - picture->x_px) / v->scale, y = (v->last_y_px - picture->y_px) / v->scale;
	uint32_t counts[WEFT_ARROWS];
	if (weft__viewer_describe_blame(v, buf, WEFT_TIP_BYTES))
		return true;
	if (v->pointer == WEFT_POINTER_IDLE && v->hovered != WEFT_NONE && v->last_x_px < picture->x_px) {
		describe_promise(v, v->hovered, buf, WEFT_TIP_BYTES);
		return true;
	}
	if (!v->has_pointer || v->pointer != WEFT_POINTER_IDLE || v->last_y_px < picture->y_px)
		return false;
	if (weft__viewer_describe_spot(v, &v->hovered_spot, buf, WEFT_TIP_BYTES))
		return true;
	if (v->hovered_link != WEFT_NONE) {
		describe_arrow(v, buf);
		return true;
	}
	if (weft_draw_density_at(&v->lists[WEFT_PANE_PICTURE], x, y, counts))
		return describe_density(counts, buf);
	if (v->hovered == WEFT_NONE || v->layout->rows[v->hovered] == WEFT_NONE)
		return false;
	double away = y - weft_view_y(v->view, weft_view_slot(v->view, v->layout->rows[v->hovered]));
	if (away > NEAR_PX || away < -NEAR_PX)
		return false;
	describe_promise(v, v->hovered, buf, WEFT_TIP_BYTES);
	return true;
}
