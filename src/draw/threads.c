/* threads.c: draws OS threads from kernel data in lanes below the promises: solid while running, striped while preempted, hollow
 * while runnable, thin while blocked.
 *
 * Where states change too often to be distinguished, each column is filled in proportion to the time in each state.  The
 * rounding error of a column is carried to the next column, so that the sum is exact.
 * SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "draw/threads.h"

#define LANE_PX 32.0     /* height in px of a lane, if there is space: a name above a bar */
#define MIN_LANE_PX 15.0 /* minimum height in px of a lane, in which the name is on the bar */
#define ROOMY_PX 25
#define BAR_PX 16
#define BELOW_PX 3 /* below a bar */
#define FAULT_PX 3
#define TEXT_PX 10 /* height in px of a name above a bar */
#define MARKS 4000 /* approximate maximum of the number of shapes for all threads */
#define NAME_PX 32 /* minimum width in px of an interval in which a name is written */
#define RUN_PX 4   /* width in px below which a run of a promise is not split by states */
#define STRIPE_PX 2
#define SPENT_PX 5
#define MAX_SPENTS 20000  /* examined at most */
#define EARLIER_SPENTS 64 /* number of intervals before the visible interval that are examined */
#define DISK_PX 3
#define SHAPED_PX 4   /* width in px below which an interval has its state's colour, but not its shape */
#define FAINT 96      /* opacity of a part of a run in which the thread waits for a CPU */
#define MAX_WAKES 40  /* number of visible wake-ups above which only the wake-ups of the promise under the pointer are drawn */
#define MAX_OFFS 2000 /* maximum number of off-CPU intervals that are examined for wake-ups */

struct weft__threads weft__threads_of(
    const struct weft_model *model, const struct weft_draw_options *options, double available_px)
{
	struct weft__threads t = {0};
	if (options->no_threads || weft_model_os_tracks(model, &t.tracks) < 0 || !t.tracks)
		return t;
	double each = available_px / (double)t.tracks->count;
	each = each > LANE_PX ? LANE_PX : each < MIN_LANE_PX ? MIN_LANE_PX : each;
	size_t fit = available_px > 0 ? (size_t)(available_px / each) : 0;
	t.count = t.tracks->count < fit ? t.tracks->count : fit;
	t.each_px = weft__floor(each);
	return t;
}

/* Position of a thread's lane in the frame. */
struct lane {
	const struct weft_os_tracks *tracks;
	uint32_t track;
	int bar_y0, bar_y1;
};

static struct lane lane_of(const struct weft__threads *t, uint32_t track)
{
	const int y0 = t->y0 + (int)track * t->each_px, bar_y1 = y0 + t->each_px - BELOW_PX;
	const int above = FAULT_PX + (t->each_px >= ROOMY_PX ? TEXT_PX : 0), free_px = t->each_px - BELOW_PX - above;
	const int bar = free_px < BAR_PX ? free_px : BAR_PX;
	return (struct lane){t->tracks, track, bar_y1 - bar, bar_y1};
}

static const struct weft_os_thread *thread_of(const struct weft_os_tracks *tracks, uint32_t track)
{
	return &tracks->model->kernel->threads[tracks->tracks[track].thread];
}

/* ---- States ---- */

/* Adjacent columns that look the same: they have one state, or the same height of each state. */
struct block {
	int x0, x1;
	int state; /* enum weft_os_state; WEFT_OS_STATES: several */
	int high[WEFT_OS_STATES];
};

static void draw_bar(struct weft__frame *f, enum weft_paint paint, int alpha, int x0, int y0, int x1, int y1)
{
	weft__rect(f, weft__ink(WEFT_LAYER_METRIC, paint, alpha), x0, y0, x1, y1);
}

/* Draws horizontal stripes, so that a long interval needs no more rectangles than a short interval. */
static void draw_stripes(struct weft__frame *f, struct weft__ink ink, int x0, int y0, int x1, int y1)
{
	const int count = (y1 - y0 + STRIPE_PX) / (2 * STRIPE_PX), last = y1 - y0 - STRIPE_PX;
	for (int i = 0; i < count; i++) {
		const int y = y0 + (count > 1 ? last * i / (count - 1) : last / 2);
		weft__rect(f, ink, x0, y, x1, y + STRIPE_PX);
	}
}

static void draw_hollow(struct weft__frame *f, struct weft__ink ink, int x0, int y0, int x1, int y1)
{
	weft__rect(f, ink, x0, y0, x1, y0 + 1);
	weft__rect(f, ink, x0, y1 - 1, x1, y1);
	weft__rect(f, ink, x0, y0 + 1, x0 + 1, y1 - 1);
	if (x1 - x0 > 1)
		weft__rect(f, ink, x1 - 1, y0 + 1, x1, y1 - 1);
}

static size_t name_block(const struct lane *l, const struct block *s, int64_t time_ns, char text[80])
{
	const struct weft_kernel *k = l->tracks->model->kernel;
	int64_t from_ns, to_ns;
	const struct weft_off_cpu *off = weft_os_off_at(l->tracks, l->track, time_ns, &from_ns, &to_ns);
	struct weft_str name = {"", 0};
	if (!off || s->state == WEFT_OS_RUNS)
		return 0;
	if (s->state == WEFT_OS_READY) {
		name = (struct weft_str){"ready", 5};
	} else if (s->state == WEFT_OS_PREEMPTED) {
		const uint32_t by = off->by == WEFT_NO_TID ? WEFT_NONE : weft_kernel_thread(k, off->by);
		name = by == WEFT_NONE ? (struct weft_str){"preempted", 9} : k->threads[by].name;
	} else {
		const char *call = weft_kernel_call_name(off->call);
		call = call ? call : s->state == WEFT_OS_DISK ? "disk" : "";
		name = (struct weft_str){call, (uint32_t)strlen(call)};
	}
	return weft__text_clean(text, 76, name.ptr, name.len);
}

/* Writes a text in the middle of the visible part of an interval, if the text fits. */
static void write_on_bar(struct weft__frame *f, const struct lane *l, int x0, int x1, const char *text, size_t len, bool is_thin)
{
	x0 = x0 > 0 ? x0 : 0;
	x1 = x1 < f->width ? x1 : f->width;
	const double width = weft__text_width(f, WEFT_FONT_SMALL, text, len), x = weft__floor((x0 + x1 - width) / 2);
	const int y = is_thin ? l->bar_y1 - 4 : (l->bar_y0 + l->bar_y1) / 2 + 4;
	if (len == 0 || width > x1 - x0 - 8 ||
	    !weft__text_put(f, WEFT_PAINT_LABEL, x, y, (struct weft__writing){WEFT_FONT_SMALL, text, len, width}))
		return;
	if (!is_thin)
		weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 255), (int)x - 3, l->bar_y0 + 1,
		    (int)(x + width) + 4, l->bar_y1 - 1);
}

static void write_name(struct weft__frame *f, const struct lane *l, const struct block *s)
{
	char text[80];
	const int x0 = s->x0 > 0 ? s->x0 : 0, x1 = s->x1 < f->width ? s->x1 : f->width;
	if (x1 - x0 < NAME_PX)
		return;
	const size_t len = name_block(l, s, weft_view_time(f->view, (x0 + x1) / 2.0), text);
	write_on_bar(f, l, x0, x1, text, len, s->state == WEFT_OS_BLOCKED || s->state == WEFT_OS_DISK);
}

static struct weft__ink ink_of(int state)
{
	static const struct {
		enum weft_paint paint;
		int alpha;
	} inks[] = {[WEFT_OS_RUNS] = {WEFT_PAINT_TIME_RUNNING, 255},
	    [WEFT_OS_PREEMPTED] = {WEFT_PAINT_TIME_READY, 255},
	    [WEFT_OS_READY] = {WEFT_PAINT_TIME_READY, 144},
	    [WEFT_OS_DISK] = {WEFT_PAINT_TIME_WAITING, 200},
	    [WEFT_OS_BLOCKED] = {WEFT_PAINT_AXIS_TEXT, 255}};
	return weft__ink(WEFT_LAYER_METRIC, inks[state].paint, inks[state].alpha);
}

void weft__draw_os_state(struct weft__frame *f, enum weft_os_state state, int x0, int y0, int x1, int y1)
{
	struct weft__ink ink = ink_of(state);
	/* An interval that is too narrow for its state's shape is drawn in the state's colour only. */
	if (state == WEFT_OS_BLOCKED) {
		weft__rect(f, ink, x0, y1 - 1, x1, y1);
	} else if (state == WEFT_OS_RUNS || x1 - x0 < SHAPED_PX) {
		weft__rect(f, ink, x0, y0, x1, y1);
	} else {
		ink.alpha = 255;
		if (state == WEFT_OS_PREEMPTED)
			draw_stripes(f, ink, x0, y0, x1, y1);
		else if (state == WEFT_OS_READY)
			draw_hollow(f, ink, x0, y0, x1, y1);
		else
			weft__rect(f, ink, x0, y1 - DISK_PX, x1, y1);
	}
}

static void draw_block(struct weft__frame *f, const struct lane *l, const struct block *s)
{
	if (s->x1 <= s->x0)
		return;
	if (s->state != WEFT_OS_STATES) {
		weft__draw_os_state(f, (enum weft_os_state)s->state, s->x0, l->bar_y0, s->x1, l->bar_y1);
		write_name(f, l, s);
		return;
	}
	for (int state = 0, y = l->bar_y1; state < WEFT_OS_BLOCKED; y -= s->high[state++])
		weft__rect(f, ink_of(state), s->x0, y - s->high[state], s->x1, y);
}

/* Sets the height of each state in a column; `left` carries rounding errors from column to column. */
static void fill_heights(struct block *s, const int64_t ns[WEFT_OS_STATES], int64_t all_ns, int bar, double left[WEFT_OS_STATES])
{
	int free_px = bar;
	for (int state = 0; state < WEFT_OS_BLOCKED; state++) {
		double exact = (double)ns[state] * bar / (double)all_ns + left[state];
		int high = weft__floor(exact + 0.5);
		high = high < 0 ? 0 : high > free_px ? free_px : high;
		left[state] = exact - high;
		s->high[state] = high;
		free_px -= high;
	}
}

static bool is_same_state(const struct block *a, const struct block *b)
{
	return a->x1 == b->x0 && a->state == b->state &&
	       (a->state != WEFT_OS_STATES || memcmp(a->high, b->high, sizeof a->high) == 0);
}

/* Returns the width of columns: a pixel, or more if there would be too many shapes. */
static int column_of(struct weft__frame *f, const struct weft__threads *t)
{
	const struct weft_kernel *k = f->model->kernel;
	size_t seen_count = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct weft_os_thread *thread = thread_of(t->tracks, i);
		const size_t first = WEFT_FIND_FIRST(n, thread->offs, thread[1].offs, k->offs[n].end_ns > f->from_ns);
		seen_count += WEFT_FIND_FIRST(n, first, thread[1].offs, k->offs[n].start_ns > f->to_ns) - first;
	}
	const int least = f->width * (int)t->count / MARKS + 1;
	return seen_count > MARKS / 2 && least > 1 ? least : 1;
}

static void draw_track(struct weft__frame *f, const struct lane *l, const int64_t *times_ns, int column)
{
	struct block now = {0};
	double left[WEFT_OS_STATES] = {0};
	int64_t before[WEFT_OS_STATES], until[WEFT_OS_STATES];
	size_t near = 0;
	weft_os_times_until(l->tracks, l->track, times_ns[0], &near, before);
	for (int x = 0, c = 1; x < f->width; x += column, c++) {
		struct block here = {.x0 = x, .x1 = x + column < f->width ? x + column : f->width, .state = WEFT_OS_STATES};
		int64_t ns[WEFT_OS_STATES], all_ns = 0;
		weft_os_times_until(l->tracks, l->track, times_ns[c], &near, until);
		for (int s = 0; s < WEFT_OS_STATES; s++) {
			ns[s] = until[s] - before[s];
			all_ns += ns[s];
		}
		memcpy(before, until, sizeof before);
		if (times_ns[c] == times_ns[c - 1] && now.x1 == x) /* less than a ns */
			now.x1 = here.x1;
		if (all_ns <= 0) /* or unknown */
			continue;
		for (int s = 0; s < WEFT_OS_STATES; s++)
			here.state = ns[s] == all_ns ? s : here.state;
		if (here.state == WEFT_OS_STATES)
			fill_heights(&here, ns, all_ns, l->bar_y1 - l->bar_y0, left);
		if (is_same_state(&now, &here)) {
			now.x1 = here.x1;
			continue;
		}
		draw_block(f, l, &now);
		now = here;
	}
	draw_block(f, l, &now);
}

bool weft__draw_run(struct weft__frame *f, uint16_t stream, int x0, int x1, int y0, int y1)
{
	/* Incomplete kernel data is not used for runs of promises. */
	const uint32_t track =
	    f->tracks && f->model->kernel->info.is_whole ? weft_os_track_of_stream(f->tracks, stream) : WEFT_NONE;
	int64_t before[WEFT_OS_STATES], until[WEFT_OS_STATES];
	enum { UNKNOWN, ON, WAITING, BLOCKED } now = UNKNOWN;
	size_t near = 0;
	double left = 0;
	if (track == WEFT_NONE || x1 - x0 < RUN_PX)
		return false;
	x0 = x0 > 0 ? x0 : 0;
	x1 = x1 < f->width ? x1 : f->width;
	int since = x0;
	weft_os_times_until(f->tracks, track, weft_view_time(f->view, x0), &near, before);
	for (int x = x0; x <= x1; x++) {
		int here = UNKNOWN;
		weft_os_times_until(f->tracks, track, weft_view_time(f->view, x + 1), &near, until);
		int64_t on_ns = until[WEFT_OS_RUNS] - before[WEFT_OS_RUNS],
			blocked_ns =
			    until[WEFT_OS_BLOCKED] - before[WEFT_OS_BLOCKED] + until[WEFT_OS_DISK] - before[WEFT_OS_DISK],
			waiting_ns =
			    until[WEFT_OS_READY] - before[WEFT_OS_READY] + until[WEFT_OS_PREEMPTED] - before[WEFT_OS_PREEMPTED],
			all_ns = on_ns + blocked_ns + waiting_ns;
		memcpy(before, until, sizeof before);
		if (x < x1 && all_ns > 0) {
			left += (double)on_ns / (double)all_ns;
			here = left >= 0.5 ? ON : waiting_ns >= blocked_ns ? WAITING : BLOCKED;
			left -= here == ON;
		} else if (x < x1) {
			here = now == UNKNOWN ? ON : (int)now;
		}
		if (here == (int)now)
			continue;
		const struct weft__ink ink = weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, 255);
		if (now == ON)
			weft__rect(f, ink, since, y0, x, y1);
		else if (now == WAITING)
			weft__rect(f, weft__ink(WEFT_LAYER_RUN, WEFT_PAINT_RUN, FAINT), since, y0, x, y1);
		else if (now == BLOCKED)
			draw_hollow(f, ink, since, y0, x, y1);
		now = here;
		since = x;
	}
	return true;
}

/* Draws a tick mark for each column that contains a page fault. */
static void draw_faults(struct weft__frame *f, const struct lane *l, int column)
{
	const int64_t *faults_ns = f->model->kernel->faults_ns;
	const struct weft_os_thread *thread = thread_of(l->tracks, l->track);
	int since = 0, until = 0;
	size_t i = WEFT_FIND_FIRST(n, thread->faults, thread[1].faults, faults_ns[n] >= f->from_ns);
	while (i < thread[1].faults && faults_ns[i] <= f->to_ns) {
		const int x = weft__floor(weft_view_x(f->view, faults_ns[i]) / column) * column;
		if (x > until) {
			draw_bar(f, WEFT_PAINT_TIME_WAITING, 255, since, l->bar_y0 - FAULT_PX, until, l->bar_y0 - 1);
			since = x;
		}
		until = x + column;
		const int64_t next_ns = weft_view_time(f->view, until);
		i = WEFT_FIND_FIRST_NEAR(n, i + 1, thread[1].faults, faults_ns[n] >= next_ns);
	}
	draw_bar(f, WEFT_PAINT_TIME_WAITING, 255, since, l->bar_y0 - FAULT_PX, until, l->bar_y0 - 1);
}

/* Draws interrupts and garbage collections on the CPU of a thread, if they are at least a pixel wide.  Shorter ones are too many
 * to be drawn, and look like running. */
static void draw_spents(struct weft__frame *f, const struct lane *l, const struct weft_spent *spents, size_t first, size_t end)
{
	const uint32_t tid = thread_of(l->tracks, l->track)->tid;
	const struct weft__ink ink = weft__ink(WEFT_LAYER_HIGHLIGHT, WEFT_PAINT_PAUSE_TEXT, 255);
	size_t i = WEFT_FIND_FIRST(n, first, end, spents[n].start_ns >= f->from_ns);
	const size_t until = WEFT_FIND_FIRST(n, i, end, spents[n].start_ns > f->to_ns);
	for (i -= i - first < EARLIER_SPENTS ? i - first : EARLIER_SPENTS; until - i < MAX_SPENTS && i < until; i++) {
		const struct weft_spent *s = &spents[i];
		const double x0 = weft_view_x(f->view, s->start_ns), x1 = weft_view_x(f->view, s->end_ns);
		char text[80];
		if (s->tid != tid || x1 - x0 < 1 || x1 < 0)
			continue;
		weft__rect(f, ink, weft__floor(x0), l->bar_y0, weft__floor(x1), l->bar_y0 + SPENT_PX);
		const char *name = s->name ? s->name : s->on == WEFT_SPENT_COLLECTOR ? "gc" : "interrupt";
		write_on_bar(f, l, weft__floor(x0), weft__floor(x1), text, weft__text_clean(text, 76, name, strlen(name)), false);
	}
}

/* ---- Wakers ---- */

void weft__draw_wake_arrow(struct weft__frame *f, double x, double from_y, double to_y)
{
	const struct weft__ink ink = weft__ink(WEFT_LAYER_ARROW, WEFT_PAINT_TIME_READY, 255);
	const double base = to_y + (from_y < to_y ? -7 : 7);
	weft__segment(f, ink, x, from_y, x, base, 1.5);
	weft__triangle(f, ink, x, to_y, x, base, 4);
	weft__cross_put(f, x, from_y, x, to_y);
}

bool weft__draw_wake(struct weft__frame *f, const struct weft__threads *t, uint32_t track, const struct weft_off_cpu *off)
{
	const uint32_t waker = off->woken_by == WEFT_NO_TID ? WEFT_NONE : weft_os_track_of_tid(t->tracks, off->woken_by);
	if (waker == WEFT_NONE || off->ready_ns >= off->end_ns || off->ready_ns < f->from_ns || off->ready_ns > f->to_ns)
		return false;
	const struct lane to = lane_of(t, track), from = lane_of(t, waker);
	const uint32_t promise = weft_os_promise_at(t->tracks, waker, off->ready_ns);
	const uint32_t row = promise == WEFT_NONE ? WEFT_NONE : f->layout->rows[promise];
	const double x = weft__floor(weft_view_x(f->view, off->ready_ns)) + 0.5;
	double y0;
	if (row != WEFT_NONE && weft_view_is_shown(f->view, row))
		y0 = weft__row_y(f, row);
	else if (waker < t->count && waker != track)
		y0 = waker < track ? from.bar_y1 : from.bar_y0;
	else
		return false;
	weft__draw_wake_arrow(f, x, y0, y0 < to.bar_y0 ? to.bar_y0 : to.bar_y1);
	return true;
}

void weft__draw_wakes(struct weft__frame *f, const struct weft__threads *t, uint32_t by_promise)
{
	const struct weft_kernel *k = f->model->kernel;
	const struct weft_off_cpu *found[MAX_WAKES];
	uint32_t tracks[MAX_WAKES];
	size_t count = 0, seen_count = 0;
	for (uint32_t i = 0; i < t->count; i++) {
		const struct weft_os_thread *thread = thread_of(t->tracks, i);
		size_t n = WEFT_FIND_FIRST(o, thread->offs, thread[1].offs, k->offs[o].end_ns > f->from_ns);
		for (; n < thread[1].offs && k->offs[n].start_ns <= f->to_ns; n++) {
			const uint32_t by = k->offs[n].woken_by;
			if (++seen_count > MAX_OFFS)
				return;
			const uint32_t waker =
			    by == WEFT_NO_TID || by == thread->tid ? WEFT_NONE : weft_os_track_of_tid(t->tracks, by);
			if (waker == WEFT_NONE ||
			    (by_promise != WEFT_NONE && weft_os_promise_at(t->tracks, waker, k->offs[n].ready_ns) != by_promise))
				continue;
			if (count == MAX_WAKES)
				return;
			tracks[count] = i;
			found[count++] = &k->offs[n];
		}
	}
	for (size_t i = 0; i < count; i++)
		weft__draw_wake(f, t, tracks[i], found[i]);
}

/* ---- Names of threads ---- */

size_t weft__thread_name(const struct weft_os_tracks *tracks, uint32_t track, char *buf, size_t size)
{
	char text[80];
	const struct weft_os_thread *thread = thread_of(tracks, track);
	weft__text_clean(text, sizeof text - 4, thread->name.ptr, thread->name.len);
	const int len = thread->name.len > 0 ? snprintf(buf, size, "%s %" PRIu32, text, weft_tid_shown(thread->tid))
					     : snprintf(buf, size, "OS thread %" PRIu32, weft_tid_shown(thread->tid));
	return (size_t)len < size ? (size_t)len : size - 1;
}

static void write_thread(struct weft__frame *f, const struct weft__threads *t, const struct lane *l, bool is_gutter)
{
	char text[160];
	double width;
	size_t len = weft__thread_name(t->tracks, l->track, text, 100);
	if (l->track + 1 == t->count && t->count < t->tracks->count)
		len += (size_t)snprintf(
		    text + len, sizeof text - len, ", and %zu more OS threads that do not fit", t->tracks->count - t->count);
	if (!t->tracks->model->kernel->info.is_whole && l->track == 0)
		len += (size_t)snprintf(text + len, sizeof text - len, " (kernel data is incomplete)");
	const bool is_above = t->each_px >= ROOMY_PX && !is_gutter;
	const int y = is_above ? l->bar_y0 - FAULT_PX : l->bar_y1 - 2;
	len = weft__text_fit(f, WEFT_FONT_SMALL, text, len, sizeof text,
	    is_gutter ? f->width - 8.0 - WEFT__GUTTER_EDGE_PX : f->width / 2.0, &width);
	if (len == 0 || !weft__text_put(f, WEFT_PAINT_BAND_TEXT, 8, y, (struct weft__writing){WEFT_FONT_SMALL, text, len, width}))
		return;
	if (!is_above && !is_gutter)
		weft__rect(f, weft__ink(WEFT_LAYER_PLATE, WEFT_PAINT_BACKGROUND, 224), 4, y - 10, (int)width + 12, y + 2);
}

struct weft__threads weft__threads_in(const struct weft__frame *f)
{
	const int bottom = f->height - (f->options.no_axis ? WEFT__BELOW_PX : WEFT__AXIS_PX);
	struct weft__threads t =
	    weft__threads_of(f->model, &f->options, weft__lanes_max_px(f->model, &f->options, f->view->height_px));
	if (t.count * (size_t)t.each_px > f->view->lanes_px)
		t.count = 0;
	t.y0 = bottom - (int)f->view->lanes_px;
	return t;
}

void weft__draw_threads(struct weft__frame *f)
{
	const struct weft__threads t = weft__threads_in(f);
	if (t.count == 0)
		return;
	const int column = column_of(f, &t);
	f->s->thread_times.count = 0;
	if (!weft_vec_reserve(&f->s->thread_times, (size_t)(f->width / column) + 3)) {
		f->failed = true;
		return;
	}
	int64_t *times_ns = f->s->thread_times.items;
	for (int x = 0, c = 0; x < f->width + column; x += column)
		times_ns[c++] = weft_view_time(f->view, x);
	weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, t.y0, f->width, t.y0 + 1);
	for (uint32_t i = 0; i < t.count; i++) {
		const struct lane l = lane_of(&t, i);
		if (!f->options.names_beside)
			write_thread(f, &t, &l, false);
		draw_track(f, &l, times_ns, column);
		draw_faults(f, &l, column);
		const struct weft_kernel *k = f->model->kernel;
		const struct weft_os_thread *thread = thread_of(t.tracks, i);
		draw_spents(f, &l, k->spents, thread->spents, thread[1].spents);
		draw_spents(f, &l, k->collections, 0, k->collection_count);
	}
	weft__draw_wakes(f, &t, WEFT_NONE);
}

void weft__name_threads(struct weft__frame *f)
{
	const struct weft__threads t = weft__threads_in(f);
	if (t.count > 0)
		weft__rect(f, weft__ink(WEFT_LAYER_GRID, WEFT_PAINT_BAND, 255), 0, t.y0, f->width, t.y0 + 1);
	for (uint32_t i = 0; i < t.count; i++) {
		const struct lane l = lane_of(&t, i);
		write_thread(f, &t, &l, true);
	}
}

uint32_t weft_draw_thread_at(const struct weft_view *view, const struct weft_draw_options *options, double y_px)
{
	const struct weft__frame f = {
	    .view = view, .model = view->model, .options = *options, .height = weft__floor(view->height_px)};
	const struct weft__threads t = weft__threads_in(&f);
	const double lane = t.count > 0 ? (y_px - t.y0) / t.each_px : -1;
	return lane >= 0 && lane < (double)t.count ? (uint32_t)lane : WEFT_NONE;
}
