/* path_lane.c: draws the lane above the picture, which shows where the time of a promise went.  SPDX-License-Identifier: ISC */
#include "draw/lane.h"

#include <stdio.h>

#include "base/duration.h"
#include "model/kernel.h"
#include "viewer/findings.h"
#include "viewer/private.h"

const struct weft_finding *weft__viewer_path(const struct weft_viewer *v)
{
	const struct weft_findings *answer = v->answers[WEFT_ASK_WHY];
	bool known = answer && !v->outdated[WEFT_ASK_WHY] && answer->count > 0 && answer->findings[0].step_count > 0;
	return known ? &answer->findings[0] : NULL;
}

static const struct weft_path_step *step_of(void *ctx, size_t step_number)
{
	return &weft__viewer_path(ctx)->steps[step_number];
}

static int64_t start_of(void *ctx, size_t step_number)
{
	return step_of(ctx, step_number)->start_ns;
}

static int64_t end_of(void *ctx, size_t step_number)
{
	return step_of(ctx, step_number)->end_ns;
}

static enum weft_paint paint_of(void *ctx, size_t step_number)
{
	static const enum weft_paint paints[] = {[WEFT_STEP_RUNNING] = WEFT_PAINT_TIME_RUNNING,
	    [WEFT_STEP_READY] = WEFT_PAINT_TIME_READY,
	    [WEFT_STEP_WAITING] = WEFT_PAINT_TIME_WAITING};
	const struct weft_path_step *s = step_of(ctx, step_number);
	bool is_late = s->lock == WEFT_NONE && s->delayed_by != WEFT_NONE;
	return s->lock != WEFT_NONE ? WEFT_PAINT_TIME_WAITING : is_late ? WEFT_PAINT_TIME_READY : paints[s->kind];
}

static int describe_running(const struct weft_model *m, const struct weft_path_step *s, const char *name, char *buf, size_t size)
{
	char off[WEFT_DURATION_BYTES];
	const int64_t off_ns = weft_kernel_promise_off_ns(m, s->promise, s->start_ns, s->end_ns);
	weft_duration_format(off, sizeof off, off_ns);
	return snprintf(buf, size, off_ns > 0 ? "%s runs, %s of that off CPU" : "%s runs", name, off);
}

static int describe_request(const struct weft_model *m, const struct weft_path_step *s, char *buf, size_t size)
{
	char name[100];
	weft_model_name(m, s->connection, name, sizeof name);
	return snprintf(buf, size, s->is_asked ? "%s: no response yet" : "%s: no more data yet", name);
}

static size_t name_of(void *ctx, size_t step_number, char *buf, size_t size)
{
	const struct weft_viewer *v = ctx;
	const struct weft_path_step *s = step_of(ctx, step_number);
	char name[100] = "", by[100] = "";
	bool is_lock = s->lock != WEFT_NONE;
	uint32_t waiter = is_lock ? s->lock : s->promise, other = is_lock ? s->holder : s->delayed_by;
	if (waiter != WEFT_SYSTEM)
		weft_model_name(v->model, waiter, name, sizeof name);
	if (other != WEFT_NONE)
		weft_model_name(v->model, other, by, sizeof by);
	int len;
	if (is_lock)
		len = snprintf(buf, size, "waits for %s, held by %s", name, other == WEFT_NONE ? "nobody" : by);
	else if (s->kind == WEFT_STEP_RUNNING)
		len = describe_running(v->model, s, name, buf, size);
	else if (s->delayed_by != WEFT_NONE)
		len = snprintf(buf, size, "%s: behind %s", s->kind == WEFT_STEP_READY ? "ready" : name, by);
	else if (s->kind == WEFT_STEP_READY)
		len = snprintf(buf, size, "ready");
	else if (s->connection != WEFT_NONE)
		len = describe_request(v->model, s, buf, size);
	else
		len = snprintf(buf, size, waiter == WEFT_SYSTEM ? "unknown" : "waits for %s", name);
	return len < 0 ? 0 : (size_t)len;
}

static struct weft_lane lane_of(const struct weft_viewer *v)
{
	const struct weft_finding *path = weft__viewer_path(v);
	return (struct weft_lane){.measure = v->measure,
	    .measure_ctx = v->measure_ctx,
	    .count = path ? path->step_count : 0,
	    .start = start_of,
	    .end = end_of,
	    .paint = paint_of,
	    .name = name_of,
	    .ctx = (void *)(uintptr_t)v, /* only read */
	    .marked = v->lane_marked};
}

int weft__viewer_draw_lane(struct weft_viewer *v, struct weft_error *err)
{
	const struct weft_pane *pane = &v->panes[WEFT_PANE_LANE];
	struct weft_lane lane = lane_of(v);
	if (pane->height_px <= 0) {
		v->lists[WEFT_PANE_LANE].count = v->lists[WEFT_PANE_LANE].text_bytes = 0;
		return WEFT_OK;
	}
	return weft_lane_draw(&v->lists[WEFT_PANE_LANE], v->view, pane->height_px / v->scale, &lane, err);
}

size_t weft__viewer_hit_lane(const struct weft_viewer *v, double x_px)
{
	struct weft_lane lane = lane_of(v);
	return weft_lane_hit(v->view, &lane, (x_px - v->panes[WEFT_PANE_LANE].x_px) / v->scale);
}

void weft__viewer_press_lane(struct weft_viewer *v, double x_px)
{
	size_t at = weft__viewer_hit_lane(v, x_px);
	if (at == SIZE_MAX)
		return;
	const struct weft_path_step *s = step_of(v, at);
	weft__viewer_go_to(v, weft_step_cause(s), s->start_ns);
}
