/* threads.c: describes OS threads from kernel data.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "model/os_tracks.h"
#include "viewer/private.h"
#include "viewer/summary.h"

#define SINGLE_PX 2.0 /* width in px below which intervals are described together with their neighbours */

const struct weft_os_tracks *weft__viewer_tracks(const struct weft_viewer *v)
{
	const struct weft_os_tracks *tracks = NULL;
	return weft_model_os_tracks(v->model, &tracks) == WEFT_OK ? tracks : NULL;
}

bool weft_viewer_has_threads(const struct weft_viewer *v)
{
	return weft__viewer_tracks(v) != NULL;
}

void weft_viewer_set_threads(struct weft_viewer *v, bool shown)
{
	v->threads = shown;
	v->spot = v->hovered_spot = (struct weft_spot){.track = WEFT_NONE};
	weft__viewer_changed(v, WEFT_CHANGED_PICTURE | WEFT_CHANGED_SETTING | WEFT_CHANGED_PLACE);
}

/* Returns the interval of an OS thread at a time, as a spot. */
static struct weft_spot spot_at(const struct weft_os_tracks *tracks, uint32_t track, int64_t time_ns)
{
	struct weft_spot spot = {.track = track};
	weft_os_off_at(tracks, track, time_ns, &spot.from_ns, &spot.to_ns);
	return spot;
}

struct weft_spot weft__viewer_spot_at(const struct weft_viewer *v, double x, double y)
{
	const struct weft_draw_options options = weft__viewer_options(v);
	const struct weft_os_tracks *tracks = v->threads ? weft__viewer_tracks(v) : NULL;
	struct weft_spot spot = {.track = tracks ? weft_draw_thread_at(v->view, &options, y) : WEFT_NONE};
	if (spot.track == WEFT_NONE)
		return spot;
	const double left = (double)(int64_t)x;
	const int64_t from_ns = weft_view_time(v->view, left), to_ns = weft_view_time(v->view, left + 1);
	/* An interval that is wide enough contains this pixel or starts in it. */
	for (int end = 0; end < 2; end++) {
		const struct weft_spot whole = spot_at(tracks, spot.track, end ? to_ns : weft_view_time(v->view, x));
		if (weft_view_x(v->view, whole.to_ns) - weft_view_x(v->view, whole.from_ns) >= SINGLE_PX)
			return whole;
	}
	spot.is_mixed = true;
	spot.from_ns = from_ns;
	spot.to_ns = to_ns;
	return spot;
}

bool weft__viewer_same_spot(const struct weft_spot *a, const struct weft_spot *b)
{
	return a->track == b->track &&
	       (a->track == WEFT_NONE || (a->from_ns == b->from_ns && a->to_ns == b->to_ns && a->is_mixed == b->is_mixed));
}

uint32_t weft__viewer_spot_promise(const struct weft_viewer *v, const struct weft_spot *spot)
{
	const struct weft_os_tracks *tracks = spot->track == WEFT_NONE ? NULL : weft__viewer_tracks(v);
	const uint32_t promise =
	    tracks ? weft_os_promise_at(tracks, spot->track, spot->from_ns / 2 + spot->to_ns / 2) : WEFT_NONE;
	return promise != WEFT_NONE && weft__viewer_is_selectable(v, promise) ? promise : WEFT_NONE;
}

/* ---- Texts ---- */

struct words {
	char *buf;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void append_text(struct words *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int len = vsnprintf(w->buf + w->at, w->size - w->at, format, args);
	va_end(args);
	w->at = len < 0 ? w->at : w->at + (size_t)len < w->size ? w->at + (size_t)len : w->size - 1;
}

/* Appends 'gcc (tid 99)'. */
static void append_thread(struct words *w, const struct weft_kernel *k, uint32_t tid)
{
	const uint32_t thread = weft_kernel_thread(k, tid);
	char name[64] = "";
	if (thread != WEFT_NONE)
		weft_utf8_copy(name, sizeof name, k->threads[thread].name);
	if (*name)
		append_text(w, "%s (tid %" PRIu32 ")", name, weft_tid_shown(tid));
	else
		append_text(w, "OS thread %" PRIu32, weft_tid_shown(tid));
}

static void append_ns(struct words *w, int64_t ns)
{
	char text[WEFT_DURATION_BYTES];
	weft_duration_format(text, sizeof text, ns);
	append_text(w, "%s", text);
}

static void append_promise(struct words *w, const struct weft_viewer *v, const char *before, uint32_t promise, const char *behind)
{
	char name[200];
	if (promise != WEFT_NONE)
		append_text(w, "%s%s%s", before, weft__viewer_promise_name(v, promise, name), behind);
}

static void describe_off(
    struct words *w, const struct weft_viewer *v, const struct weft_os_tracks *tracks, const struct weft_off_cpu *off)
{
	const struct weft_kernel *k = v->model->kernel;
	if (off->why == WEFT_OFF_PREEMPTED) {
		append_text(w, " was preempted for ");
		append_ns(w, off->end_ns - off->start_ns);
		append_text(w, "; ");
		if (off->by != WEFT_NO_TID)
			append_thread(w, k, off->by);
		append_text(w, off->by != WEFT_NO_TID ? " had the CPU" : "other threads had the CPU");
		return;
	}
	const char *call = weft_kernel_call_name(off->call);
	append_text(w, off->why == WEFT_OFF_DISK ? " was in uninterruptible sleep (disk I/O) for " : " was blocked for ");
	append_ns(w, off->ready_ns - off->start_ns);
	if (call)
		append_text(w, " in %s", call);
	if (off->file) {
		char file[200];
		weft_utf8_copy(file, sizeof file, (struct weft_str){off->file, (uint32_t)strlen(off->file)});
		append_text(w, off->is_sure ? " on %s" : ", probably on %s", file);
	}
	if (off->ready_ns < off->end_ns) {
		append_text(w, ", then waited ");
		append_ns(w, off->end_ns - off->ready_ns);
		append_text(w, " for a CPU");
	}
	if (off->woken_by != WEFT_NO_TID) {
		const uint32_t waker = weft_os_track_of_tid(tracks, off->woken_by);
		append_text(w, "; ");
		append_thread(w, k, off->woken_by);
		append_text(w, " woke the thread");
		append_promise(w, v, " while it ran ",
		    waker == WEFT_NONE ? WEFT_NONE : weft_os_promise_at(tracks, waker, off->ready_ns), "");
	} else if (off->by_interrupt) {
		append_text(w, "; an interrupt woke the thread");
	}
}

static void append_share(struct words *w, const char *what, int64_t ns, int64_t all_ns)
{
	const int64_t thousandths = (int64_t)((double)ns * 1000 / (double)all_ns + 0.5);
	if (ns > 0)
		append_text(w, " %s %" PRId64 ".%d %%,", what, thousandths / 10, (int)(thousandths % 10));
}

static void describe_pixel(struct words *w, const struct weft_os_tracks *tracks, const struct weft_spot *spot)
{
	int64_t ns[WEFT_OS_STATES], all_ns = 0;
	weft_os_sum_times(tracks, spot->track, spot->from_ns, spot->to_ns, ns);
	for (int s = 0; s < WEFT_OS_STATES; s++)
		all_ns += ns[s];
	if (all_ns <= 0) {
		append_text(w, ": no kernel data");
		return;
	}
	append_share(w, "ran", ns[WEFT_OS_RUNS], all_ns);
	append_share(w, "waited for a CPU", ns[WEFT_OS_READY] + ns[WEFT_OS_PREEMPTED], all_ns);
	append_share(w, "waited for disk I/O", ns[WEFT_OS_DISK], all_ns);
	append_share(w, "was blocked", ns[WEFT_OS_BLOCKED], all_ns);
	w->buf[--w->at] = '\0';
}

bool weft__viewer_describe_spot(const struct weft_viewer *v, const struct weft_spot *spot, char *buf, size_t size)
{
	const struct weft_os_tracks *tracks = spot->track == WEFT_NONE ? NULL : weft__viewer_tracks(v);
	struct words w = {buf, size, 0};
	int64_t from_ns, to_ns;
	if (!tracks)
		return false;
	const struct weft_os_track *track = &tracks->tracks[spot->track];
	if (spot->is_mixed)
		append_text(&w, "In this pixel ");
	append_thread(&w, v->model->kernel, v->model->kernel->threads[track->thread].tid);
	const int64_t middle_ns = spot->from_ns / 2 + spot->to_ns / 2;
	const struct weft_off_cpu *off = weft_os_off_at(tracks, spot->track, middle_ns, &from_ns, &to_ns);
	const size_t faults = weft_os_faults(tracks, spot->track, spot->from_ns, spot->to_ns);
	if (spot->is_mixed) {
		describe_pixel(&w, tracks, spot);
	} else if (middle_ns < track->since_ns || middle_ns >= track->until_ns) {
		append_text(&w, middle_ns < track->since_ns ? ": kernel data exists only from "
							    : ": the thread ended, or has no kernel data, after ");
		append_ns(&w, middle_ns < track->since_ns ? track->since_ns : track->until_ns);
		if (middle_ns < track->since_ns)
			append_text(&w, " on");
	} else if (off) {
		describe_off(&w, v, tracks, off);
		append_promise(&w, v, "; meanwhile ", weft__viewer_spot_promise(v, spot), " had to wait");
	} else {
		append_text(&w, " ran for ");
		append_ns(&w, to_ns - from_ns);
		append_promise(&w, v, "; in the middle it ran ", weft__viewer_spot_promise(v, spot), "");
	}
	if (faults > 0)
		append_text(&w, "; %zu page fault%s", faults, faults == 1 ? "" : "s");
	if (!v->model->kernel->info.is_whole)
		append_text(&w, "; some kernel records were lost");
	return true;
}

/* ---- Selecting intervals ---- */

void weft__viewer_pick(struct weft_viewer *v, struct weft_spot spot)
{
	const uint32_t promise = weft__viewer_spot_promise(v, &spot);
	weft__viewer_select(v, promise);
	v->spot = spot;
	weft__viewer_changed(v, WEFT_CHANGED_OVERLAY | WEFT_CHANGED_SELECTION);
}

bool weft_viewer_step_off(struct weft_viewer *v, bool forward)
{
	const struct weft_os_tracks *tracks = v->threads ? weft__viewer_tracks(v) : NULL;
	struct weft_spot found = {.track = WEFT_NONE};
	int64_t from_ns, to_ns;
	weft_viewer_times(v, &from_ns, &to_ns);
	const int64_t now_ns = v->spot.track != WEFT_NONE ? v->spot.from_ns : forward ? from_ns : to_ns;
	for (uint32_t i = 0; tracks && i < tracks->count; i++) {
		const struct weft_off_cpu *off = weft_os_next_off(tracks, i, now_ns, forward);
		if (off &&
		    (found.track == WEFT_NONE || (forward ? off->start_ns < found.from_ns : off->start_ns > found.from_ns)))
			found = (struct weft_spot){.track = i, .from_ns = off->start_ns, .to_ns = off->end_ns};
	}
	if (found.track == WEFT_NONE)
		return false;
	weft__viewer_pick(v, found);
	if (found.from_ns < from_ns || found.to_ns > to_ns) {
		const int64_t half_ns = to_ns / 2 - from_ns / 2, middle_ns = found.from_ns / 2 + found.to_ns / 2;
		weft_viewer_show(v, weft__add_ns(middle_ns, -half_ns), weft__add_ns(middle_ns, half_ns));
	}
	return true;
}
