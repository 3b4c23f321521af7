/* threads.c: what is said of OS threads where the kernel told of them.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "model/os_tracks.h"
#include "viewer/private.h"
#include "viewer/summary.h"

#define TOLD_PX 2.0 /* what is narrower is told with its neighbours */

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

/* The stretch that an OS thread is in at a time. */
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
	/* What is wide enough is at this pixel, or begins in it. */
	for (int end = 0; end < 2; end++) {
		const struct weft_spot whole = spot_at(tracks, spot.track, end ? to_ns : weft_view_time(v->view, x));
		if (weft_view_x(v->view, whole.to_ns) - weft_view_x(v->view, whole.from_ns) >= TOLD_PX)
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
	const uint32_t promise = tracks ? weft_os_ran_at(tracks, spot->track, spot->from_ns / 2 + spot->to_ns / 2) : WEFT_NONE;
	return promise != WEFT_NONE && weft__viewer_has(v, promise) ? promise : WEFT_NONE;
}

/* ---- In words ---- */

struct words {
	char *buf;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	const int len = vsnprintf(w->buf + w->at, w->size - w->at, format, args);
	va_end(args);
	w->at = len < 0 ? w->at : w->at + (size_t)len < w->size ? w->at + (size_t)len : w->size - 1;
}

/* 'gcc (tid 99)' */
static void add_thread(struct words *w, const struct weft_kernel *k, uint32_t tid)
{
	const uint32_t thread = weft_kernel_thread(k, tid);
	char name[64] = "";
	if (thread != WEFT_NONE)
		weft_utf8_copy(name, sizeof name, k->threads[thread].name);
	if (*name)
		add(w, "%s (tid %" PRIu32 ")", name, weft_tid_shown(tid));
	else
		add(w, "OS thread %" PRIu32, weft_tid_shown(tid));
}

static void add_ns(struct words *w, int64_t ns)
{
	char text[WEFT_DURATION_BYTES];
	weft_duration_format(text, sizeof text, ns);
	add(w, "%s", text);
}

static void add_promise(struct words *w, const struct weft_viewer *v, const char *before, uint32_t promise, const char *behind)
{
	char name[200];
	if (promise != WEFT_NONE)
		add(w, "%s%s%s", before, weft__viewer_call(v, promise, name), behind);
}

static void tell_off(
    struct words *w, const struct weft_viewer *v, const struct weft_os_tracks *tracks, const struct weft_off *off)
{
	const struct weft_kernel *k = v->model->kernel;
	if (off->why == WEFT_OFF_PREEMPTED) {
		add(w, " waited ");
		add_ns(w, off->end_ns - off->start_ns);
		add(w, " for a processor; ");
		if (off->by != WEFT_NO_TID)
			add_thread(w, k, off->by);
		add(w, off->by != WEFT_NO_TID ? " had it" : "others had it");
		return;
	}
	const char *call = weft_kernel_call_name(off->call);
	add(w, off->why == WEFT_OFF_DISK ? " waited for a disk, or what cannot be interrupted, for " : " was blocked for ");
	add_ns(w, off->ready_ns - off->start_ns);
	if (call)
		add(w, " in %s", call);
	if (off->file) {
		char file[200];
		weft_utf8_copy(file, sizeof file, (struct weft_str){off->file, (uint32_t)strlen(off->file)});
		add(w, off->is_sure ? " on %s" : ", probably on %s", file);
	}
	if (off->ready_ns < off->end_ns) {
		add(w, ", and then waited ");
		add_ns(w, off->end_ns - off->ready_ns);
		add(w, " for a processor");
	}
	if (off->woken_by != WEFT_NO_TID) {
		const uint32_t waker = weft_os_track_of(tracks, off->woken_by);
		add(w, "; ");
		add_thread(w, k, off->woken_by);
		add(w, " woke it");
		add_promise(
		    w, v, ", as it ran ", waker == WEFT_NONE ? WEFT_NONE : weft_os_ran_at(tracks, waker, off->ready_ns), "");
	} else if (off->by_interrupt) {
		add(w, "; an interrupt woke it");
	}
}

static void add_part(struct words *w, const char *what, int64_t ns, int64_t all_ns)
{
	const int64_t thousandths = (int64_t)((double)ns * 1000 / (double)all_ns + 0.5);
	if (ns > 0)
		add(w, " %s %" PRId64 ".%d %%,", what, thousandths / 10, (int)(thousandths % 10));
}

static void tell_pixel(struct words *w, const struct weft_os_tracks *tracks, const struct weft_spot *spot)
{
	int64_t ns[WEFT_OS_STATES], all_ns = 0;
	weft_os_sum(tracks, spot->track, spot->from_ns, spot->to_ns, ns);
	for (int s = 0; s < WEFT_OS_STATES; s++)
		all_ns += ns[s];
	if (all_ns <= 0) {
		add(w, ": the kernel did not tell");
		return;
	}
	add_part(w, "ran", ns[WEFT_OS_RUNS], all_ns);
	add_part(w, "waited for a processor", ns[WEFT_OS_READY] + ns[WEFT_OS_PREEMPTED], all_ns);
	add_part(w, "waited for a disk", ns[WEFT_OS_DISK], all_ns);
	add_part(w, "was blocked", ns[WEFT_OS_BLOCKED], all_ns);
	w->buf[--w->at] = '\0';
}

bool weft__viewer_tell_spot(const struct weft_viewer *v, const struct weft_spot *spot, char *buf, size_t size)
{
	const struct weft_os_tracks *tracks = spot->track == WEFT_NONE ? NULL : weft__viewer_tracks(v);
	struct words w = {buf, size, 0};
	int64_t from_ns, to_ns;
	if (!tracks)
		return false;
	const struct weft_os_track *track = &tracks->tracks[spot->track];
	if (spot->is_mixed)
		add(&w, "In this pixel ");
	add_thread(&w, v->model->kernel, v->model->kernel->threads[track->thread].tid);
	const int64_t middle_ns = spot->from_ns / 2 + spot->to_ns / 2;
	const struct weft_off *off = weft_os_off_at(tracks, spot->track, middle_ns, &from_ns, &to_ns);
	const size_t faults = weft_os_faults(tracks, spot->track, spot->from_ns, spot->to_ns);
	if (spot->is_mixed) {
		tell_pixel(&w, tracks, spot);
	} else if (middle_ns < track->since_ns || middle_ns >= track->until_ns) {
		add(&w, middle_ns < track->since_ns ? ": the kernel tells of it from "
						    : ": it ended, or nothing is known of it, after ");
		add_ns(&w, middle_ns < track->since_ns ? track->since_ns : track->until_ns);
		if (middle_ns < track->since_ns)
			add(&w, " on");
	} else if (off) {
		tell_off(&w, v, tracks, off);
		add_promise(&w, v, "; meanwhile ", weft__viewer_spot_promise(v, spot), " had to wait");
	} else {
		add(&w, " ran for ");
		add_ns(&w, to_ns - from_ns);
		add_promise(&w, v, "; in the middle it ran ", weft__viewer_spot_promise(v, spot), "");
	}
	if (faults > 0)
		add(&w, "; %zu page fault%s", faults, faults == 1 ? "" : "s");
	if (!v->model->kernel->info.is_whole)
		add(&w, "; some of what the kernel said is lost");
	return true;
}

/* ---- One after the other ---- */

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
		const struct weft_off *off = weft_os_next_off(tracks, i, now_ns, forward);
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
