/* follower.c: follows one live trace (follower.h).
 *
 * A window starts where an earlier refresh ended: at its end, a refresh may save the position and a checkpoint.  The follower
 * keeps two such starts: the older begins the present window; the younger replaces it when it is old enough.  Therefore each
 * event is decoded once for the live state, and for models about as often as there are refreshes in the time of one and a half
 * windows.
 *
 * If a refresh finds more events than a window has, it saves a start while it reads, one window before the end.  After such a
 * refresh the model has only that window.  SPDX-License-Identifier: ISC */
#include "model/follower.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/sort.h"
#include "model/follower_private.h"
#include "model/live_state.h"
#include "trace/follow.h"
#include "trace/join.h"
#include "trace/position.h"
#include "trace/source.h"

#define MAX_FILL_NS 2e9
#define MIN_PACE_SPAN_NS 100000000 /* shortest interval that gives a reliable event rate */
#define SHORT_WINDOW_NS 1e9        /* a window that passes in less than this time is cut to its newest part */
#define SHORT_WINDOW_SHARE 5       /* number by which the size of a short window is divided */
#define MIN_REST_NS INT64_C(20000000)
#define MAX_REST_NS INT64_C(400000000)
#define REST_SHARE 4
#define FAR_WINDOWS 1.25 /* windows */
#define WHOLE_WINDOWS 2  /* number of windows of events that the first model shows completely at most */

/* A position in the trace at which a window may start.  Windows and models share their starts. */
struct window_start {
	/* number of references: of the follower's windows, and of detached models, which other threads may own */
	atomic_uint refcount;
	struct weft_position position;
	struct weft_checkpoint checkpoint; /* the facts in force at the start, with the follower's stream numbers */
	char *texts;
	int64_t time_ns; /* time of the last event before the start */
	uint64_t events; /* number of events read up to the start */
};

/* The identity of a stream, which is the same in every model. */
struct known_stream {
	char *name;
	uint32_t instance;
};

struct weft_follower {
	char *path;
	struct weft_follower_options options;
	uint64_t fingerprint;
	bool is_due; /* true if the next refresh must build a model even if nothing has changed */
	bool has_refreshed;
	bool wants_newest; /* true if a model of the newest window suffices, even if more events exist */
	/* whether such a model suffices after a ring was overwritten, and whether that has happened */
	bool may_be_late, is_late;
	struct weft_live_state *standing;   /* the facts in force after all events that were read */
	struct window_start *window, *next; /* or NULL */
	struct window_start *shown;         /* start of the window that the newest model shows, or NULL */
	/* the fingerprint covers the trace from this start on; NULL if it covers the whole trace */
	struct window_start *compared;
	struct weft_position reached;
	int64_t first_ns, last_ns; /* times of the first and the last event that was read */
	/* The time of the last event that the observer knew before the whole trace was read again, by a clock with the rate
	 * observed_hz. */
	int64_t observed_ns; /* INT64_MIN: nothing */
	uint64_t observed_hz;
	int64_t unread_ns;         /* sum of the times whose events were overwritten before they were read */
	int64_t longest_unread_ns; /* the longest such time of one thread since the last restart */
	/* by stream that existed before the whole trace was read again: whether it has an event again */
	WEFT_VEC(bool) returned;
	/* number of events since the last restart; number of restarts; number of events before the last restart */
	uint64_t events, restarts, events_before;
	struct weft_running_stats *left; /* statistics of the promises that have left the live state */
	WEFT_VEC(struct known_stream) streams;
	WEFT_VEC(uint16_t) numbers; /* for each stream of the newest trace, its index in streams */
	struct weft_trace *trace;
	struct weft_event *checkpoint; /* checkpoint_count events that were given to the trace, behind one extra event at [0] */
	size_t checkpoint_count;
	struct weft_model *model;
	bool is_part;  /* true if weft__follower_move_window() decides when windows start */
	bool is_moved; /* true if the window starts at the end of the last refresh */
};

/* ---- Streams: their numbers differ between traces ---- */

static int number_streams(struct weft_follower *f, const struct weft_trace_info *info)
{
	f->numbers.count = 0;
	for (size_t i = 0; i < info->stream_count; i++) {
		const struct weft_stream_info *stream = &info->streams[i];
		const struct known_stream *known = f->streams.items;
		size_t k = 0;
		while (known && k < f->streams.count &&
		       !(known[k].instance == stream->instance && strlen(known[k].name) == stream->name.len &&
			   memcmp(known[k].name, stream->name.ptr, stream->name.len) == 0))
			k++;
		uint16_t *number = weft_vec_push(&f->numbers);
		struct known_stream *fresh = number && k == f->streams.count ? weft_vec_push(&f->streams) : NULL;
		if (!number || (k == f->streams.count - (fresh != NULL) && !fresh))
			return WEFT_ENOMEM;
		if (fresh) {
			fresh->instance = stream->instance;
			if (!(fresh->name = strndup(stream->name.ptr, stream->name.len))) {
				f->streams.count--;
				return WEFT_ENOMEM;
			}
		}
		*number = (uint16_t)k;
	}
	return WEFT_OK;
}

/* Returns the trace's number of a stream, given the follower's number.  If that stream no longer exists, returns another stream
 * of the same process, else 0. */
static uint16_t stream_in_trace(const struct weft_follower *f, const struct weft_trace_info *info, uint16_t number)
{
	uint16_t found = 0;
	for (size_t i = 0; i < f->numbers.count; i++) {
		if (f->numbers.items[i] == number)
			return (uint16_t)i;
		if (number < f->streams.count && info->streams[i].instance == f->streams.items[number].instance)
			found = (uint16_t)i;
	}
	return found;
}

/* ---- Start of a window ---- */

static struct window_start *ref_start(struct window_start *window_start)
{
	if (window_start)
		atomic_fetch_add(&window_start->refcount, 1);
	return window_start;
}

static void unref_start(struct window_start **window_start)
{
	struct window_start *left = *window_start;
	*window_start = NULL;
	if (!left || atomic_fetch_sub(&left->refcount, 1) != 1)
		return;
	weft_position_free(&left->position);
	weft_checkpoint_free(&left->checkpoint);
	free(left->texts);
	free(left);
}

static int compare_events(const void *a, const void *b)
{
	const struct weft_event *const *x = a, *const *y = b;
	return WEFT_ORDER((*x)->time_ns, (*y)->time_ns) ?: WEFT_ORDER(*x, *y);
}

/* Sorts the events of a checkpoint by time; events with the same time keep their order. */
static bool sort_checkpoint(struct weft_checkpoint *checkpoint)
{
	const size_t count = checkpoint->events.count;
	const struct weft_event **order = malloc((count + 1) * sizeof *order);
	struct weft_event *sorted = malloc((count + 1) * sizeof *sorted);
	if (order && sorted) {
		for (size_t i = 0; i < count; i++)
			order[i] = &checkpoint->events.items[i];
		weft_sort(order, count, sizeof *order, compare_events);
		for (size_t i = 0; i < count; i++)
			sorted[i] = *order[i];
		free(checkpoint->events.items);
		checkpoint->events.items = sorted;
		checkpoint->events.capacity = count + 1;
	} else
		free(sorted);
	free(order);
	return order && checkpoint->events.items == sorted;
}

static bool copy_texts(struct window_start *window_start)
{
	size_t bytes = 0;
	for (size_t i = 0; i < window_start->checkpoint.events.count; i++)
		bytes += window_start->checkpoint.events.items[i].text.len;
	char *at = window_start->texts = malloc(bytes + 1);
	for (size_t i = 0; at && i < window_start->checkpoint.events.count; i++) {
		struct weft_str *text = &window_start->checkpoint.events.items[i].text;
		if (text->len)
			text->ptr = memcpy(at, text->ptr, text->len);
		at += text->len;
	}
	return window_start->texts != NULL;
}

/* Saves a position and the live state as a start of a window; returns NULL when out of memory. */
static struct window_start *create_start_at(const struct weft_follower *f, const struct weft_position *position)
{
	struct window_start *window_start = calloc(1, sizeof *window_start);
	if (!window_start)
		return NULL;
	*window_start = (struct window_start){.refcount = 1, .time_ns = f->last_ns, .events = f->events};
	if (weft_live_state_checkpoint(f->standing, &window_start->checkpoint) < 0 ||
	    !weft_position_copy(&window_start->position, position) || !sort_checkpoint(&window_start->checkpoint) ||
	    !copy_texts(window_start))
		unref_start(&window_start);
	return window_start;
}

static struct window_start *create_start(const struct weft_follower *f)
{
	return create_start_at(f, &f->reached);
}

/* Gives the checkpoint of the window to the trace, with the stream numbers of the trace.  The first event only carries the time
 * from which all times of the model are counted.  With begins_at_window that time is the start of the window, and all events of
 * the checkpoint have that time. */
static int set_checkpoint(const struct weft_follower *f, struct weft_trace *trace, struct weft_event **out, size_t *count)
{
	const struct weft_checkpoint *checkpoint = &f->window->checkpoint;
	struct weft_event *events = malloc((checkpoint->events.count + 1) * sizeof *events);
	if (!events)
		return WEFT_ENOMEM;
	const bool is_at_begin = f->options.begins_at_window;
	const int64_t begin_ns = is_at_begin ? f->window->time_ns : f->first_ns;
	events[0] = (struct weft_event){.time_ns = begin_ns, .op = WEFT_OP_LEVEL, .site = WEFT_NO_SITE, .a = WEFT_SYSTEM_ID};
	*count = 0;
	for (size_t i = 0; i < checkpoint->events.count; i++) {
		const struct weft_event *e = &checkpoint->events.items[i];
		if (e->op == WEFT_OP_STILL_AWAITS && !weft_live_state_has_await(f->standing, e))
			continue;
		struct weft_event *own = &events[++*count];
		*own = *e;
		own->time_ns = is_at_begin ? begin_ns : e->time_ns;
		own->stream = stream_in_trace(f, weft_trace_info(trace), e->stream);
	}
	weft_trace_set_checkpoint(trace, events, *count + 1);
	weft_trace_rewind(trace);
	*out = events;
	return WEFT_OK;
}

/* ---- Refresh ---- */

uint64_t weft__window_events(const struct weft_follower_options *options, uint64_t events, int64_t since_ns)
{
	const uint64_t most = options->window_events;
	const bool is_fast =
	    since_ns >= MIN_PACE_SPAN_NS / 2 && (double)events * SHORT_WINDOW_NS > (double)most * (double)since_ns;
	return options->begins_at_window && is_fast ? most / SHORT_WINDOW_SHARE : most;
}

bool weft__window_is_filled(uint64_t most, uint64_t events, int64_t since_ns)
{
	const uint64_t least = most / 2;
	return events >= least ||
	       (since_ns >= MIN_PACE_SPAN_NS && (double)events * MAX_FILL_NS >= (double)least * (double)since_ns);
}

/* Returns the number of events of a window, computed from the event rate since the window started. */
static uint64_t window_events(const struct weft_follower *f)
{
	const uint64_t events = f->window ? f->events - f->window->events : 0;
	const int64_t since_ns = f->window && f->window->events ? f->last_ns - f->window->time_ns : f->last_ns - f->first_ns;
	return weft__window_events(&f->options, events, since_ns);
}

/* The new events that must still be read. */
struct backlog {
	uint64_t most;              /* number of events of a window; 0 if the window does not move */
	uint64_t bytes;             /* number of new bytes at the start of the refresh */
	uint64_t events;            /* events read so far */
	uint64_t next_check_events; /* number of read events at which the remaining size is checked again */
	double least;               /* number of windows of new events from which on the window moves */
	bool is_far, is_over;       /* true if more than one window was left; true if no further check is needed */
};

/* Returns how many windows of events the first model may show completely. */
static double count_whole_windows(const struct weft_follower *f, uint64_t window)
{
	const double most = window ? (double)f->options.first_events / (double)window : WHOLE_WINDOWS;
	return most > WHOLE_WINDOWS && !f->is_late ? most : WHOLE_WINDOWS;
}

static struct backlog init_backlog(const struct weft_follower *f, const struct weft_trace *trace, bool may_move)
{
	const bool moves = may_move && !f->is_part && !f->options.makes_no_model;
	const uint64_t most = moves ? window_events(f) : 0;
	return (struct backlog){
	    .most = most, .bytes = weft_trace_bytes_left(trace), .least = f->events ? FAR_WINDOWS : count_whole_windows(f, most)};
}

/* Returns true when about one window is left of a larger backlog.  Called after each batch of events. */
static bool is_last_window_ahead(struct backlog *a, const struct weft_trace *trace, size_t events)
{
	a->events += events;
	if (!a->most || a->is_over || a->events < a->next_check_events)
		return false;
	const uint64_t left = weft_trace_bytes_left(trace), read = a->bytes > left ? a->bytes - left : 1;
	const double windows = (double)left * (double)a->events / ((double)read * (double)a->most);
	a->next_check_events = a->events + a->most / 16;
	a->is_over = a->is_far && windows <= FAR_WINDOWS;
	a->is_far |= windows > a->least;
	return a->is_over && windows > 0.5;
}

/* Starts a window at the next event. */
static int start_window_here(struct weft_follower *f, const struct weft_trace *trace)
{
	struct weft_position here = {.is_somewhere = false};
	int status = weft_position_copy(&here, &f->reached) ? weft_trace_current_position(trace, &here) : WEFT_ENOMEM;
	struct window_start *window_start = status == WEFT_OK ? create_start_at(f, &here) : NULL;
	if (status == WEFT_OK && !window_start)
		status = WEFT_ENOMEM;
	if (window_start) {
		unref_start(&f->window);
		unref_start(&f->next);
		f->window = window_start;
		f->is_moved = true;
	}
	weft_position_free(&here);
	return status == WEFT_ENOTSUP ? WEFT_OK : status;
}

/* Returns true if the trace's stream numbers equal the follower's stream numbers. */
static bool is_numbered_alike(const struct weft_follower *f)
{
	size_t i = 0;
	while (i < f->numbers.count && f->numbers.items[i] == i)
		i++;
	return i == f->numbers.count;
}

/* Measures what a thread lost when the whole trace is read again: the time until its first event that still exists. */
static void measure_unread(struct weft_follower *f, const struct weft_event *events, size_t count)
{
	int64_t longest_ns = 0;
	for (size_t i = 0; i < count && f->returned.count; i++) {
		const uint16_t stream = events[i].stream < f->numbers.count ? f->numbers.items[events[i].stream] : 0;
		if (stream >= f->returned.count || f->returned.items[stream])
			continue;
		f->returned.items[stream] = true;
		longest_ns = weft_max_ns(longest_ns, events[i].time_ns - f->observed_ns);
	}
	if (longest_ns <= f->longest_unread_ns)
		return;
	f->unread_ns += longest_ns - f->longest_unread_ns;
	f->longest_unread_ns = longest_ns;
}

/* Applies new events to the live state. may_move says that the window may start later, because the trace need not contain its
 * start. */
static int apply_new_events(struct weft_follower *f, struct weft_trace *trace, bool may_move)
{
	const struct weft_event *events;
	WEFT_VEC(struct weft_event) own = {0};
	size_t n;
	int more, status = WEFT_OK;
	weft_trace_rewind_to(trace, &f->reached);
	struct backlog backlog = init_backlog(f, trace, may_move);
	const bool is_alike = is_numbered_alike(f);
	while (status == WEFT_OK && (more = weft_trace_next(trace, &events, &n)) != 0) {
		if (more < 0 || (!is_alike && (!weft_vec_reserve(&own, n) || !own.items))) {
			status = more < 0 ? more : WEFT_ENOMEM;
			break;
		}
		for (size_t i = 0; i < n && !is_alike; i++) {
			own.items[i] = events[i];
			own.items[i].stream = events[i].stream < f->numbers.count ? f->numbers.items[events[i].stream] : 0;
		}
		/* After a long pause the earlier event rate says nothing about the new events. */
		if (backlog.most && !backlog.events && events[0].time_ns - f->last_ns >= MIN_PACE_SPAN_NS)
			backlog.most = f->options.window_events;
		measure_unread(f, events, n);
		f->first_ns = f->events ? f->first_ns : events[0].time_ns;
		f->last_ns = events[n - 1].time_ns;
		f->events += n;
		status = weft_live_state_apply(f->standing, is_alike ? events : own.items, n);
		if (status == WEFT_OK && is_last_window_ahead(&backlog, trace, n))
			status = start_window_here(f, trace);
	}
	weft_vec_free(&own);
	f->returned.count = 0;
	if (status == WEFT_OK)
		status = weft_live_state_report_ends(f->standing);
	return status == WEFT_OK ? weft_trace_end_position(trace, &f->reached) : status;
}

/* Notes what the observer knows, before the whole trace is read again. */
static void keep_observed(struct weft_follower *f)
{
	if (!f->standing || !f->options.observer || !f->events)
		return;
	(void)weft_live_state_report_ends(f->standing); /* when out of memory, these ends are not counted */
	f->observed_ns = f->last_ns;
	f->observed_hz = f->reached.hz;
	f->returned.count = 0;
	for (size_t i = 0; i < f->streams.count; i++) {
		bool *slot = weft_vec_push(&f->returned);
		if (slot)
			*slot = false;
	}
}

static void reset_follower(struct weft_follower *f)
{
	keep_observed(f);
	f->events_before += f->events;
	weft_live_state_destroy(f->standing);
	f->standing = NULL;
	for (size_t i = 0; i < f->options.stats_count; i++)
		weft_running_stats_clear(&f->left[i]);
	unref_start(&f->window);
	unref_start(&f->next);
	unref_start(&f->compared);
	weft_position_free(&f->reached);
	f->events = 0;
}

/* Opens the trace from the start of a window; returns 1 if that position was overwritten or is unknown. */
static int open_trace_at(
    struct weft_follower *f, struct window_start *window_start, struct weft_trace **out, struct weft_error *err)
{
	if (!window_start)
		return 1;
	const int status = weft_trace_open_from(out, f->path, &window_start->position, &f->reached, err);
	if (status < 0)
		return status;
	if (!weft_trace_is_resumed(*out)) {
		weft_trace_close(*out);
		return 1;
	}
	if (window_start != f->window) {
		unref_start(&f->window);
		f->window = window_start;
		f->next = NULL;
	}
	return WEFT_OK;
}

/* Opens the part of the window that still exists, or the whole trace if events since the last refresh were overwritten. */
static int open_trace(struct weft_follower *f, struct weft_trace **out, struct weft_error *err)
{
	int status = open_trace_at(f, f->window, out, err);
	if (status > 0)
		status = open_trace_at(f, f->next, out, err);
	if (status > 0 && f->standing) {
		unref_start(&f->next);
		f->next = create_start(f);
		status = f->next ? open_trace_at(f, f->next, out, err) : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	if (status <= 0)
		return status;
	f->is_late = f->standing && f->may_be_late;
	f->restarts += f->standing != NULL;
	reset_follower(f);
	return weft_trace_open(out, f->path, err);
}

/* Replaces the window's start by the next start, if that is old enough. */
static int move_window(struct weft_follower *f)
{
	const struct weft_follower_options *o = &f->options;
	/* without window_ns and window_events the model shows only new events */
	const bool is_short = !o->window_ns && !o->window_events;
	const bool is_due = f->next && (f->last_ns - f->next->time_ns >= o->window_ns ||
					   (o->window_events && f->events - f->next->events >= window_events(f)));
	if (f->next && !is_due)
		return WEFT_OK;
	struct window_start *fresh = create_start(f);
	if (!fresh)
		return WEFT_ENOMEM;
	if (is_due || is_short) {
		unref_start(&f->window);
		f->window = is_short ? fresh : f->next;
	}
	f->next = is_short ? NULL : fresh;
	return WEFT_OK;
}

static void set_clock(struct window_start *window_start, const struct weft_position *now)
{
	const uint64_t hz = window_start ? window_start->position.hz : 0;
	if (!window_start || hz == now->hz)
		return;
	for (size_t i = 0; i < window_start->checkpoint.events.count; i++)
		weft_event_rescale_times(&window_start->checkpoint.events.items[i], hz, now->hz);
	window_start->time_ns = weft_rescale_time(window_start->time_ns, hz, now->hz);
	weft_position_set_clock(&window_start->position, now);
}

/* Rescales all times when the rate of the clock is known more exactly. */
static void set_clocks(struct weft_follower *f, const struct weft_position *now)
{
	const uint64_t hz = f->reached.hz;
	if (!hz || hz == now->hz)
		return;
	weft_live_state_rescale_times(f->standing, hz, now->hz);
	f->first_ns = weft_rescale_time(f->first_ns, hz, now->hz);
	f->last_ns = weft_rescale_time(f->last_ns, hz, now->hz);
	set_clock(f->window, now);
	set_clock(f->next, now);
	weft_position_set_clock(&f->reached, now);
}

static bool create_live_state(struct weft_follower *f, const struct weft_position *begin)
{
	f->standing = weft_live_state_create();
	if (f->observed_ns != INT64_MIN && f->observed_hz && f->observed_hz != begin->hz)
		f->observed_ns = weft_rescale_time(f->observed_ns, f->observed_hz, begin->hz);
	f->observed_hz = begin->hz;
	f->longest_unread_ns = 0;
	if (f->standing)
		weft_live_state_set_observer(f->standing, f->options.observer, f->observed_ns);
	return f->standing;
}

/* Prepares to follow the trace.  Returns 1, 0 if the trace cannot be followed, or WEFT_ENOMEM. */
static int prepare_follower(struct weft_follower *f, const struct weft_trace *trace)
{
	struct weft_position begin = {.is_somewhere = false};
	const int status = weft_trace_start_position(trace, &begin);
	if (status < 0) {
		reset_follower(f);
		return status == WEFT_ENOTSUP ? 0 : status;
	}
	if (!f->standing && !create_live_state(f, &begin)) {
		weft_position_free(&begin);
		return WEFT_ENOMEM;
	}
	weft_live_state_set_stats(f->standing, f->left, f->options.stats_count);
	set_clocks(f, &begin);
	if (f->window)
		weft_position_free(&begin);
	else if ((f->window = calloc(1, sizeof *f->window)))
		*f->window = (struct window_start){.refcount = 1, .position = begin};
	else {
		weft_position_free(&begin);
		return WEFT_ENOMEM;
	}
	return number_streams(f, weft_trace_info(trace)) < 0 ? WEFT_ENOMEM : 1;
}

/* Reads the new events of an open trace and builds its model. */
static int read_trace(struct weft_follower *f, struct weft_trace *trace, struct weft_model **out, struct weft_event **checkpoint,
    size_t *checkpoint_count, struct weft_error *err)
{
	const bool is_first = !f->window, wants_newest = f->wants_newest || f->is_late;
	const int can = prepare_follower(f, trace);
	struct window_start *from = can > 0 ? ref_start(f->window) : NULL;
	int status = can > 0 ? apply_new_events(f, trace, !is_first || wants_newest) : can;
	if (status == WEFT_OK && can > 0 && f->is_moved)
		weft_trace_begin_at(trace, &f->window->position);
	unref_start(&from);
	if (status == WEFT_OK && can > 0 && !is_first)
		status = set_checkpoint(f, trace, checkpoint, checkpoint_count);
	else if (status == WEFT_OK)
		weft_trace_rewind(trace);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	struct weft_model_options options = f->options.model;
	options.knows_pending = *checkpoint != NULL;
	const bool makes_none = f->options.makes_no_model || (wants_newest && is_first && can > 0);
	return makes_none ? WEFT_OK : weft_model_build(out, trace, &options, err);
}

static uint64_t get_fingerprint(const struct weft_follower *f)
{
	return weft_trace_fingerprint_from(f->path, f->compared ? &f->compared->position : NULL);
}

static int refresh_model(struct weft_follower *f, struct weft_error *err)
{
	uint64_t now = get_fingerprint(f);
	struct weft_trace *trace = NULL;
	struct weft_model *model = NULL;
	struct weft_event *checkpoint = NULL;
	size_t checkpoint_count = 0;
	if (now == f->fingerprint && f->has_refreshed && !f->is_due)
		return 0;
	f->is_moved = false;
	/* The next refresh compares the part of the trace behind the same start. */
	unref_start(&f->compared);
	f->compared = ref_start(f->window);
	now = get_fingerprint(f);
	int status = open_trace(f, &trace, err);
	if (status < 0)
		return status;
	status = read_trace(f, trace, &model, &checkpoint, &checkpoint_count, err);
	if (status < 0) {
		weft_model_destroy(model);
		weft_trace_close(trace);
		free(checkpoint);
		reset_follower(f);
		return status;
	}
	weft_model_destroy(f->model);
	weft_trace_close(f->trace);
	free(f->checkpoint);
	unref_start(&f->shown);
	/* Clang's analyzer does not count references: it takes the end of any reference for the end of the object.
	 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	f->shown = ref_start(f->window);
	f->model = model;
	f->trace = trace;
	f->checkpoint = checkpoint;
	f->checkpoint_count = checkpoint_count;
	f->fingerprint = now;
	f->is_due = false;
	f->has_refreshed = true;
	if (f->standing)
		weft_live_state_sum_stats(f->standing, f->options.stats);
	if (f->standing && !f->is_part && !f->is_moved && move_window(f) < 0)
		reset_follower(f); /* the next refresh reads the whole trace again */
	return 1;
}

/* Refreshes again after a first read of the whole trace, which takes long, with a window of the events that came meanwhile.
 * Does nothing if the model shows everything or already has a window. */
static int refresh_newest_window(struct weft_follower *f, int status, struct weft_error *err)
{
	const bool is_made = f->model || f->options.makes_no_model;
	if (status <= 0 || !f->standing || (is_made && weft_follower_window_start_ns(f) > 0))
		return status;
	const uint64_t window = window_events(f);
	const bool is_much = !f->is_moved && (double)f->events > count_whole_windows(f, window) * (double)window;
	const int more = is_much ? weft_follower_skip(f, err) : 0;
	f->may_be_late = f->is_late = false;
	if (is_made && more <= 0)
		return status;
	f->is_due = true;
	return refresh_model(f, err);
}

int weft_follower_refresh(struct weft_follower *f, struct weft_error *err)
{
	f->is_late = false;
	f->may_be_late = f->options.window_events && !f->is_part && !f->options.makes_no_model;
	const int status = refresh_model(f, err);
	f->may_be_late = false;
	return f->is_late ? refresh_newest_window(f, status, err) : status;
}

/* Applies new events without building a model; returns 1 if they were overwritten or the trace cannot be followed. */
static int skip_new_events(struct weft_follower *f, struct weft_error *err)
{
	struct weft_trace *trace = NULL;
	int status = weft_trace_open_from(&trace, f->path, &f->reached, &f->reached, err);
	if (status < 0)
		return status;
	const bool is_resumed = weft_trace_is_resumed(trace);
	const int can = is_resumed ? prepare_follower(f, trace) : 0;
	status = can > 0 ? apply_new_events(f, trace, false) : can < 0 ? can : 1;
	weft_trace_close(trace);
	if (status < 0) {
		reset_follower(f);
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	return status;
}

int weft_follower_skip(struct weft_follower *f, struct weft_error *err)
{
	const uint64_t before = f->events;
	const int status = f->standing ? skip_new_events(f, err) : 1;
	/* If the trace cannot be followed, the next refresh reads the whole trace again. */
	if (status != WEFT_OK)
		return status < 0 ? status : 0;
	const uint64_t most = f->is_part ? 0 : window_events(f);
	if (most && f->events - f->window->events > 2 * most)
		weft__follower_restart_window(f);
	f->is_due |= f->events != before;
	return f->events != before;
}

int weft_follower_open(
    struct weft_follower **out, const char *path, const struct weft_follower_options *options, struct weft_error *err)
{
	struct weft_follower *f = calloc(1, sizeof *f);
	const size_t stats = options ? options->stats_count : 0;
	char *own = strdup(path);
	struct weft_running_stats *left = calloc(stats + 1, sizeof *left);
	if (!f || !own || !left) {
		free(f);
		free(own);
		free(left);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < stats; i++)
		left[i] = options->stats[i];
	f->path = own;
	f->left = left;
	f->observed_ns = INT64_MIN;
	f->options = options ? *options : (struct weft_follower_options){.window_ns = 0};
	*out = f;
	return WEFT_OK;
}

void weft_follower_close(struct weft_follower *f)
{
	if (!f)
		return;
	reset_follower(f);
	weft_model_destroy(f->model);
	weft_trace_close(f->trace);
	unref_start(&f->shown);
	for (size_t i = 0; i < f->streams.count; i++)
		free(f->streams.items[i].name);
	weft_vec_free(&f->streams);
	weft_vec_free(&f->numbers);
	weft_vec_free(&f->returned);
	free(f->checkpoint);
	free(f->left);
	free(f->path);
	free(f);
}

struct weft_followed_model_private {
	struct weft_event *checkpoint; /* checkpoint_count events behind one extra event at [0]; or NULL */
	size_t checkpoint_count;
	struct window_start *shown;
	struct weft_followed_model **parts; /* models of the parts of a joined trace */
	size_t part_count;
	int64_t begin_ns; /* time of the checkpoint if the model is for a picture */
};

struct weft_followed_model *weft_follower_detach(struct weft_follower *f)
{
	struct weft_followed_model *followed =
	    f->model || (f->trace && f->options.makes_no_model) ? calloc(1, sizeof *followed) : NULL;
	if (!followed || !(followed->priv = calloc(1, sizeof *followed->priv))) {
		free(followed);
		return NULL;
	}
	followed->model = f->model;
	followed->trace = f->trace;
	followed->has_checkpoint = f->checkpoint;
	*followed->priv = (struct weft_followed_model_private){.checkpoint = f->checkpoint,
	    .checkpoint_count = f->checkpoint_count,
	    .shown = ref_start(f->shown),
	    .begin_ns = f->checkpoint ? f->shown->time_ns : 0};
	f->model = NULL;
	f->trace = NULL;
	f->checkpoint = NULL;
	return followed;
}

void weft_followed_model_destroy(struct weft_followed_model *followed)
{
	if (!followed)
		return;
	weft_model_destroy(followed->model);
	weft_trace_close(followed->trace);
	for (size_t i = 0; i < followed->priv->part_count; i++)
		weft_followed_model_destroy(followed->priv->parts[i]);
	free(followed->priv->parts);
	free(followed->priv->checkpoint);
	unref_start(&followed->priv->shown);
	free(followed->priv);
	free(followed);
}

void weft_follower_set_window(struct weft_follower *f, int64_t window_ns)
{
	f->options.window_ns = window_ns;
}

void weft_follower_mark_stale(struct weft_follower *f)
{
	f->is_due = true;
}

const struct weft_event *weft_follower_snapshots(const struct weft_follower *f, size_t *count)
{
	static const struct weft_event none;
	*count = 0;
	const struct weft_event *all = f->standing ? weft_live_state_snapshots(f->standing, count) : NULL;
	return f->standing && !all ? &none : all;
}

int64_t weft_follower_stats_span_ns(const struct weft_follower *f)
{
	return f->standing ? f->last_ns - f->first_ns : -1;
}

const struct weft_model *weft_follower_model(const struct weft_follower *f)
{
	return f->model;
}

struct weft_trace *weft_follower_trace(const struct weft_follower *f)
{
	return f->trace;
}

int64_t weft_follower_window_start_ns(const struct weft_follower *f)
{
	return f->shown && f->shown->events ? f->shown->time_ns - f->first_ns : 0;
}

int weft_follower_refresh_newest(struct weft_follower *f, struct weft_error *err)
{
	f->is_late = f->may_be_late = false;
	f->wants_newest = true;
	const int status = refresh_model(f, err);
	f->wants_newest = false;
	return refresh_newest_window(f, status, err);
}

bool weft_follower_is_filled(const struct weft_follower *f)
{
	return f->is_moved || weft__window_is_filled(window_events(f), f->shown ? f->events - f->shown->events : 0,
				  f->shown ? f->last_ns - f->shown->time_ns : 0);
}

static int save_trace(struct weft_trace *trace, const struct weft_followed_model_private *p, weft_trace_file_fn *file, void *ctx,
    struct weft_error *err)
{
	/* The extra first event only carries a time. */
	const struct weft_trace_edit edit = {.is_cut = true,
	    .from_ns = p->begin_ns,
	    .checkpoint = p->checkpoint ? p->checkpoint + 1 : NULL,
	    .checkpoint_count = p->checkpoint ? p->checkpoint_count : 0};
	return weft_trace_save(trace, p->checkpoint ? &edit : NULL, file, ctx, err);
}

/* The folder for one part of a joined trace, named as join.c names parts. */
struct folder {
	weft_trace_file_fn *file;
	void *ctx;
	size_t number;
};

static int save_in_folder(void *ctx, const char *name, const void *bytes, size_t size)
{
	const struct folder *folder = ctx;
	char path[300];
	snprintf(path, sizeof path, "%03zu/%.200s", folder->number, *name ? name : WEFT_PART_FILE);
	return folder->file(folder->ctx, path, bytes, size);
}

int weft_followed_model_save(
    const struct weft_followed_model *followed, weft_trace_file_fn *file, void *ctx, struct weft_error *err)
{
	const struct weft_followed_model_private *p = followed->priv;
	int status = p->part_count ? WEFT_OK : save_trace(followed->trace, p, file, ctx, err);
	for (size_t i = 0; i < p->part_count && status == WEFT_OK; i++) {
		struct folder folder = {file, ctx, i};
		status = save_trace(weft_trace_part(followed->trace, i), p->parts[i]->priv, save_in_folder, &folder, err);
	}
	return status;
}

int64_t weft_follower_rest_ns(int64_t used_ns)
{
	return weft_max_ns(MIN_REST_NS, weft_min_ns(used_ns * REST_SHARE, MAX_REST_NS));
}

uint64_t weft_follower_restarts(const struct weft_follower *f)
{
	return f->restarts;
}

uint64_t weft_follower_events(const struct weft_follower *f)
{
	return f->events;
}

uint64_t weft_follower_all_events(const struct weft_follower *f)
{
	return f->events_before + f->events;
}

int64_t weft_follower_unread_ns(const struct weft_follower *f)
{
	return f->unread_ns;
}

const struct weft_live_state *weft_follower_live_state(const struct weft_follower *f)
{
	return f->standing;
}

struct weft_str weft_follower_stream_name(const struct weft_follower *f, uint16_t stream)
{
	const char *name = stream < f->streams.count ? f->streams.items[stream].name : "";
	return (struct weft_str){name, (uint32_t)strlen(name)};
}

/* ---- A follower that is one of several ---- */

void weft__follower_set_part(struct weft_follower *f, bool is_part, bool makes_no_model)
{
	f->is_due |= is_part != f->is_part;
	f->is_part = is_part;
	f->options.makes_no_model = makes_no_model;
}

bool weft__follower_has_news(const struct weft_follower *f)
{
	return f->is_due || !f->has_refreshed || get_fingerprint(f) != f->fingerprint;
}

struct weft__read_progress weft__follower_read_progress(const struct weft_follower *f)
{
	return (struct weft__read_progress){.is_known = f->standing,
	    .first_ns = f->first_ns,
	    .last_ns = f->last_ns,
	    .in_window = f->window ? f->events - f->window->events : 0,
	    .in_next = f->next ? f->events - f->next->events : f->events};
}

bool weft__follower_move_window(struct weft_follower *f)
{
	const bool is_quiet = f->next && f->next->events == f->events;
	struct window_start *fresh = is_quiet ? ref_start(f->next) : create_start(f);
	if (!fresh)
		return false;
	if (f->next) {
		unref_start(&f->window);
		f->window = f->next;
	}
	f->next = fresh;
	return true;
}

bool weft__follower_restart_window(struct weft_follower *f)
{
	struct window_start *here = create_start(f);
	if (!here)
		return false;
	unref_start(&f->window);
	unref_start(&f->next);
	f->window = here;
	return true;
}

bool weft__followed_window_start(const struct weft_followed_model *followed, int64_t *begin_ns)
{
	*begin_ns = followed->priv->checkpoint ? followed->priv->shown->time_ns : 0;
	return followed->priv->checkpoint;
}

int weft__followed_move_checkpoint(struct weft_followed_model *followed, struct weft_trace *trace, int64_t begin_ns)
{
	struct weft_followed_model_private *p = followed->priv;
	const struct weft_event *events;
	size_t n;
	weft_trace_set_checkpoint(trace, NULL, 0);
	weft_trace_rewind(trace);
	const int more = weft_trace_next(trace, &events, &n);
	p->begin_ns = more > 0 ? weft_min_ns(begin_ns, events[0].time_ns) : begin_ns;
	for (size_t i = 0; i <= p->checkpoint_count; i++)
		p->checkpoint[i].time_ns = p->begin_ns;
	weft_trace_set_checkpoint(trace, p->checkpoint, p->checkpoint_count + 1);
	weft_trace_rewind(trace);
	return more < 0 ? more : WEFT_OK;
}

struct weft_followed_model *weft__followed_from_parts(struct weft_followed_model **parts, size_t count)
{
	struct weft_followed_model *all = calloc(1, sizeof *all);
	if (!all || !(all->priv = calloc(1, sizeof *all->priv))) {
		free(all);
		return NULL;
	}
	all->priv->parts = parts;
	all->priv->part_count = count;
	return all;
}

struct weft_followed_model *const *weft__followed_parts(const struct weft_followed_model *followed, size_t *count)
{
	*count = followed->priv->part_count;
	return followed->priv->parts;
}
