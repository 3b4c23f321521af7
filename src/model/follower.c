/* follower.c: see follower.h.
 *
 * Windows begin where a look ended: at each end the follower may note the position and what is the case there.  The older of two
 * such notes begins the window; when the younger one is old enough it takes over.  So each event is decoded for what holds once,
 * and for a model about as often as there are looks in a window and a half.
 *
 * Where more came since a look than a window has, that is noted on the way, a window before the end: the model is of that alone.
 * SPDX-License-Identifier: ISC */
#include "model/follower.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/sort.h"
#include "model/follower_private.h"
#include "model/standing.h"
#include "trace/follow.h"
#include "trace/join.h"
#include "trace/position.h"
#include "trace/source.h"

#define SOON_NS 2e9
#define LEAST_NS 100000000 /* a burst tells no pace */
#define GLANCE_NS 1e9      /* a window that is over so soon is looked at for what is newest in it, */
#define GLANCE_SHARE 5     /* of which it has this part */
#define LEAST_REST_NS INT64_C(20000000)
#define MOST_REST_NS INT64_C(400000000)
#define REST_SHARE 4
#define FAR 1.25 /* windows */
#define WHOLE 2  /* windows; so much is shown as a whole at first */

/* A place at which a window may begin; windows and the model share it. */
struct place {
	atomic_uint uses; /* by windows in one OS thread, and by models that were taken, perhaps in others */
	struct weft_position position;
	struct weft_state told; /* with the follower's numbers of streams */
	char *texts;
	int64_t time_ns; /* of the last event before it */
	uint64_t events; /* that were read up to there */
};

/* A stream, by what it is called in every model. */
struct known_stream {
	char *name;
	uint32_t instance;
};

struct weft_follower {
	char *path;
	struct weft_follower_options options;
	uint64_t fingerprint;
	bool is_due; /* whether or not anything has changed */
	bool has_looked;
	bool wants_newest;              /* of all that there is no model is wanted */
	bool may_be_late, is_late;      /* nor of what was read anew, since a ring was overwritten */
	struct weft_standing *standing; /* all that was read */
	struct place *window, *next;    /* or NULL */
	struct place *shown;            /* where the model's window begins, or NULL */
	struct place *compared;         /* behind which the fingerprint was taken, or NULL: of all */
	struct weft_position reached;
	int64_t first_ns, last_ns; /* of all events that were read */
	uint64_t events, restarts;
	struct weft_tally *left; /* tallies of what is over and has left */
	WEFT_VEC(struct known_stream) streams;
	WEFT_VEC(uint16_t) numbers; /* of each stream of the newest trace among these */
	struct weft_trace *trace;
	struct weft_event *told; /* to the trace: so many, and one before them */
	size_t told_count;
	struct weft_model *model;
	bool is_part;  /* its windows begin when weft__follower_move() says so */
	bool is_moved; /* the window begins behind what was read at the last look */
};

/* ---- Streams, which have other numbers in each trace ---- */

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

/* The stream of the trace with that number; one of its OS threads if that one is not in there any more. */
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

/* ---- What is told where a window begins ---- */

static struct place *share(struct place *place)
{
	if (place)
		atomic_fetch_add(&place->uses, 1);
	return place;
}

static void leave(struct place **place)
{
	struct place *left = *place;
	*place = NULL;
	if (!left || atomic_fetch_sub(&left->uses, 1) != 1)
		return;
	weft_position_free(&left->position);
	weft_state_free(&left->told);
	free(left->texts);
	free(left);
}

static int compare_told(const void *a, const void *b)
{
	const struct weft_event *const *x = a, *const *y = b;
	return WEFT_ORDER((*x)->time_ns, (*y)->time_ns) ?: WEFT_ORDER(*x, *y);
}

/* In the order of time; among those of one time the order in which they are told. */
static bool sort_told(struct weft_state *told)
{
	const size_t count = told->events.count;
	const struct weft_event **order = malloc((count + 1) * sizeof *order);
	struct weft_event *sorted = malloc((count + 1) * sizeof *sorted);
	if (order && sorted) {
		for (size_t i = 0; i < count; i++)
			order[i] = &told->events.items[i];
		weft_sort(order, count, sizeof *order, compare_told);
		for (size_t i = 0; i < count; i++)
			sorted[i] = *order[i];
		free(told->events.items);
		told->events.items = sorted;
		told->events.capacity = count + 1;
	} else
		free(sorted);
	free(order);
	return order && told->events.items == sorted;
}

static bool own_texts(struct place *place)
{
	size_t bytes = 0;
	for (size_t i = 0; i < place->told.events.count; i++)
		bytes += place->told.events.items[i].text.len;
	char *at = place->texts = malloc(bytes + 1);
	for (size_t i = 0; at && i < place->told.events.count; i++) {
		struct weft_str *text = &place->told.events.items[i].text;
		if (text->len)
			text->ptr = memcpy(at, text->ptr, text->len);
		at += text->len;
	}
	return place->texts != NULL;
}

/* Notes the end of what was taken, which is there, as a place for a window; NULL: there is no memory. */
static struct place *note_place_at(const struct weft_follower *f, const struct weft_position *position)
{
	struct place *place = calloc(1, sizeof *place);
	if (!place)
		return NULL;
	*place = (struct place){.uses = 1, .time_ns = f->last_ns, .events = f->events};
	if (weft_standing_tell(f->standing, &place->told) < 0 || !weft_position_copy(&place->position, position) ||
	    !sort_told(&place->told) || !own_texts(place))
		leave(&place);
	return place;
}

static struct place *note_place(const struct weft_follower *f)
{
	return note_place_at(f, &f->reached);
}

/* What holds where the window begins, with the streams of this trace.  A first event that means nothing keeps the time from which
 * all are counted; where that is the window's begin, all is told then. */
static int tell(const struct weft_follower *f, struct weft_trace *trace, struct weft_event **out, size_t *count)
{
	const struct weft_state *told = &f->window->told;
	struct weft_event *events = malloc((told->events.count + 1) * sizeof *events);
	if (!events)
		return WEFT_ENOMEM;
	const bool is_told_then = f->options.begins_at_window;
	const int64_t begin_ns = is_told_then ? f->window->time_ns : f->first_ns;
	events[0] = (struct weft_event){.time_ns = begin_ns, .op = WEFT_OP_LEVEL, .site = WEFT_NO_SITE, .a = WEFT_SYSTEM_ID};
	*count = 0;
	for (size_t i = 0; i < told->events.count; i++) {
		const struct weft_event *e = &told->events.items[i];
		if (e->op == WEFT_OP_STILL_AWAITS && !weft_standing_keeps(f->standing, e))
			continue;
		struct weft_event *own = &events[++*count];
		*own = *e;
		own->time_ns = is_told_then ? begin_ns : e->time_ns;
		own->stream = stream_in_trace(f, weft_trace_info(trace), e->stream);
	}
	weft_trace_tell(trace, events, *count + 1);
	weft_trace_rewind(trace);
	*out = events;
	return WEFT_OK;
}

/* ---- Looking ---- */

uint64_t weft__window_events(const struct weft_follower_options *options, uint64_t events, int64_t since_ns)
{
	const uint64_t most = options->window_events;
	const bool is_fast = since_ns >= LEAST_NS / 2 && (double)events * GLANCE_NS > (double)most * (double)since_ns;
	return options->begins_at_window && is_fast ? most / GLANCE_SHARE : most;
}

bool weft__window_is_filled(uint64_t most, uint64_t events, int64_t since_ns)
{
	const uint64_t least = most / 2;
	return events >= least || (since_ns >= LEAST_NS && (double)events * SOON_NS >= (double)least * (double)since_ns);
}

/* How many events a window has, at the pace since it began. */
static uint64_t window_events(const struct weft_follower *f)
{
	const uint64_t events = f->window ? f->events - f->window->events : 0;
	const int64_t since_ns = f->window && f->window->events ? f->last_ns - f->window->time_ns : f->last_ns - f->first_ns;
	return weft__window_events(&f->options, events, since_ns);
}

/* How much of what came is still to be read. */
struct ahead {
	uint64_t most;        /* events that a window has; 0: it does not move */
	uint64_t bytes;       /* that there were */
	uint64_t events;      /* that were read */
	uint64_t looks_at;    /* when there are so many of them */
	double least;         /* windows that there must be for it to move */
	bool is_far, is_over; /* there was more than a window has; there is no more by now */
};

/* How many windows' events are shown as a whole at first. */
static double whole(const struct weft_follower *f, uint64_t window)
{
	const double most = window ? (double)f->options.first_events / (double)window : WHOLE;
	return most > WHOLE && !f->is_late ? most : WHOLE;
}

static struct ahead look_ahead(const struct weft_follower *f, const struct weft_trace *trace, bool may_move)
{
	const bool moves = may_move && !f->is_part && !f->options.makes_no_model;
	const uint64_t most = moves ? window_events(f) : 0;
	return (struct ahead){.most = most, .bytes = weft_trace_left(trace), .least = f->events ? FAR : whole(f, most)};
}

/* Whether what is left is about a window, of much more; asked after each batch of events. */
static bool is_window_ahead(struct ahead *a, const struct weft_trace *trace, size_t events)
{
	a->events += events;
	if (!a->most || a->is_over || a->events < a->looks_at)
		return false;
	const uint64_t left = weft_trace_left(trace), read = a->bytes > left ? a->bytes - left : 1;
	const double windows = (double)left * (double)a->events / ((double)read * (double)a->most);
	a->looks_at = a->events + a->most / 16;
	a->is_over = a->is_far && windows <= FAR;
	a->is_far |= windows > a->least;
	return a->is_over && windows > 0.5;
}

/* The window begins at what comes next. */
static int move_ahead(struct weft_follower *f, const struct weft_trace *trace)
{
	struct weft_position here = {.is_somewhere = false};
	int status = weft_position_copy(&here, &f->reached) ? weft_trace_stands(trace, &here) : WEFT_ENOMEM;
	struct place *place = status == WEFT_OK ? note_place_at(f, &here) : NULL;
	if (status == WEFT_OK && !place)
		status = WEFT_ENOMEM;
	if (place) {
		leave(&f->window);
		leave(&f->next);
		f->window = place;
		f->is_moved = true;
	}
	weft_position_free(&here);
	return status == WEFT_ENOTSUP ? WEFT_OK : status;
}

/* Whether the trace's numbers of streams are the follower's. */
static bool is_numbered_alike(const struct weft_follower *f)
{
	size_t i = 0;
	while (i < f->numbers.count && f->numbers.items[i] == i)
		i++;
	return i == f->numbers.count;
}

/* Takes what came since the last look into what holds.  May move: nobody needs the window's begin, as the trace does. */
static int take_new(struct weft_follower *f, struct weft_trace *trace, bool may_move)
{
	const struct weft_event *events;
	WEFT_VEC(struct weft_event) own = {0};
	size_t n;
	int more, status = WEFT_OK;
	weft_trace_rewind_to(trace, &f->reached);
	struct ahead ahead = look_ahead(f, trace, may_move);
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
		/* Behind a pause it is another pace. */
		if (ahead.most && !ahead.events && events[0].time_ns - f->last_ns >= LEAST_NS)
			ahead.most = f->options.window_events;
		f->first_ns = f->events ? f->first_ns : events[0].time_ns;
		f->last_ns = events[n - 1].time_ns;
		f->events += n;
		status = weft_standing_take(f->standing, is_alike ? events : own.items, n);
		if (status == WEFT_OK && is_window_ahead(&ahead, trace, n))
			status = move_ahead(f, trace);
	}
	weft_vec_free(&own);
	return status == WEFT_OK ? weft_trace_reached(trace, &f->reached) : status;
}

static void forget_all(struct weft_follower *f)
{
	weft_standing_destroy(f->standing);
	f->standing = NULL;
	for (size_t i = 0; i < f->options.tally_count; i++)
		weft_tally_clear(&f->left[i]);
	leave(&f->window);
	leave(&f->next);
	leave(&f->compared);
	weft_position_free(&f->reached);
	f->events = 0;
}

/* Opens the trace from where a window may begin; 1: that was overwritten, or is not known. */
static int open_at(struct weft_follower *f, struct place *place, struct weft_trace **out, struct weft_error *err)
{
	if (!place)
		return 1;
	const int status = weft_trace_open_from(out, f->path, &place->position, &f->reached, err);
	if (status < 0)
		return status;
	if (!weft_trace_is_resumed(*out)) {
		weft_trace_close(*out);
		return 1;
	}
	if (place != f->window) {
		leave(&f->window);
		f->window = place;
		f->next = NULL;
	}
	return WEFT_OK;
}

/* Opens as much of a window as there is, or all of the trace if what came since the last look is not there any more. */
static int open_trace(struct weft_follower *f, struct weft_trace **out, struct weft_error *err)
{
	int status = open_at(f, f->window, out, err);
	if (status > 0)
		status = open_at(f, f->next, out, err);
	if (status > 0 && f->standing) {
		leave(&f->next);
		f->next = note_place(f);
		status = f->next ? open_at(f, f->next, out, err) : weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	if (status <= 0)
		return status;
	f->is_late = f->standing && f->may_be_late;
	f->restarts += f->standing != NULL;
	forget_all(f);
	return weft_trace_open(out, f->path, err);
}

/* The next place takes over when it is far enough back. */
static int move_window(struct weft_follower *f)
{
	const struct weft_follower_options *o = &f->options;
	const bool is_short = !o->window_ns && !o->window_events; /* what is new is all that is wanted */
	const bool is_due = f->next && (f->last_ns - f->next->time_ns >= o->window_ns ||
					   (o->window_events && f->events - f->next->events >= window_events(f)));
	if (f->next && !is_due)
		return WEFT_OK;
	struct place *fresh = note_place(f);
	if (!fresh)
		return WEFT_ENOMEM;
	if (is_due || is_short) {
		leave(&f->window);
		f->window = is_short ? fresh : f->next;
	}
	f->next = is_short ? NULL : fresh;
	return WEFT_OK;
}

static void set_clock(struct place *place, const struct weft_position *now)
{
	const uint64_t hz = place ? place->position.hz : 0;
	if (!place || hz == now->hz)
		return;
	for (size_t i = 0; i < place->told.events.count; i++)
		weft_event_time_again(&place->told.events.items[i], hz, now->hz);
	place->time_ns = weft_time_again(place->time_ns, hz, now->hz);
	weft_position_set_clock(&place->position, now);
}

/* More is known of the clock by now: all times are what they are by that. */
static void set_clocks(struct weft_follower *f, const struct weft_position *now)
{
	const uint64_t hz = f->reached.hz;
	if (!hz || hz == now->hz)
		return;
	weft_standing_time_again(f->standing, hz, now->hz);
	f->first_ns = weft_time_again(f->first_ns, hz, now->hz);
	f->last_ns = weft_time_again(f->last_ns, hz, now->hz);
	set_clock(f->window, now);
	set_clock(f->next, now);
	weft_position_set_clock(&f->reached, now);
}

/* Whether the trace can be followed, and if so what that takes; 1, 0, or WEFT_ENOMEM. */
static int prepare(struct weft_follower *f, const struct weft_trace *trace)
{
	struct weft_position begin = {.is_somewhere = false};
	const int status = weft_trace_began(trace, &begin);
	if (status < 0) {
		forget_all(f);
		return status == WEFT_ENOTSUP ? 0 : status;
	}
	if (!f->standing && !(f->standing = weft_standing_create())) {
		weft_position_free(&begin);
		return WEFT_ENOMEM;
	}
	weft_standing_count(f->standing, f->left, f->options.tally_count);
	set_clocks(f, &begin);
	if (f->window)
		weft_position_free(&begin);
	else if ((f->window = calloc(1, sizeof *f->window)))
		*f->window = (struct place){.uses = 1, .position = begin};
	else {
		weft_position_free(&begin);
		return WEFT_ENOMEM;
	}
	return number_streams(f, weft_trace_info(trace)) < 0 ? WEFT_ENOMEM : 1;
}

/* Takes what is new in an open trace, and makes its model. */
static int read_trace(struct weft_follower *f, struct weft_trace *trace, struct weft_model **out, struct weft_event **told,
    size_t *told_count, struct weft_error *err)
{
	const bool is_first = !f->window, wants_newest = f->wants_newest || f->is_late;
	const int can = prepare(f, trace);
	struct place *from = can > 0 ? share(f->window) : NULL;
	int status = can > 0 ? take_new(f, trace, !is_first || wants_newest) : can;
	if (status == WEFT_OK && can > 0 && f->is_moved)
		weft_trace_begin_at(trace, &f->window->position);
	leave(&from);
	if (status == WEFT_OK && can > 0 && !is_first)
		status = tell(f, trace, told, told_count);
	else if (status == WEFT_OK)
		weft_trace_rewind(trace);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	struct weft_model_options options = f->options.model;
	options.knows_pending = *told != NULL;
	const bool makes_none = f->options.makes_no_model || (wants_newest && is_first && can > 0);
	return makes_none ? WEFT_OK : weft_model_build(out, trace, &options, err);
}

static uint64_t fingerprint(const struct weft_follower *f)
{
	return weft_trace_fingerprint_from(f->path, f->compared ? &f->compared->position : NULL);
}

static int look(struct weft_follower *f, struct weft_error *err)
{
	uint64_t now = fingerprint(f);
	struct weft_trace *trace = NULL;
	struct weft_model *model = NULL;
	struct weft_event *told = NULL;
	size_t told_count = 0;
	if (now == f->fingerprint && f->has_looked && !f->is_due)
		return 0;
	f->is_moved = false;
	/* The next look compares what lies behind the same place. */
	leave(&f->compared);
	f->compared = share(f->window);
	now = fingerprint(f);
	int status = open_trace(f, &trace, err);
	if (status < 0)
		return status;
	status = read_trace(f, trace, &model, &told, &told_count, err);
	if (status < 0) {
		weft_model_destroy(model);
		weft_trace_close(trace);
		free(told);
		forget_all(f);
		return status;
	}
	weft_model_destroy(f->model);
	weft_trace_close(f->trace);
	free(f->told);
	leave(&f->shown);
	f->model = model;
	f->trace = trace;
	f->told = told;
	f->told_count = told_count;
	f->shown = share(f->window);
	f->fingerprint = now;
	f->is_due = false;
	f->has_looked = true;
	if (f->standing)
		weft_standing_sum(f->standing, f->options.tallies);
	if (f->standing && !f->is_part && !f->is_moved && move_window(f) < 0)
		forget_all(f); /* the next look reads all anew */
	return 1;
}

/* Where all was read, which takes long: a window of what came meanwhile, unless there is a model that shows all, or a window. */
static int look_behind(struct weft_follower *f, int status, struct weft_error *err)
{
	const bool is_made = f->model || f->options.makes_no_model;
	if (status <= 0 || !f->standing || (is_made && weft_follower_window(f) > 0))
		return status;
	const uint64_t window = window_events(f);
	const bool is_much = !f->is_moved && (double)f->events > whole(f, window) * (double)window;
	const int more = is_much ? weft_follower_skip(f, err) : 0;
	f->may_be_late = f->is_late = false;
	if (is_made && more <= 0)
		return status;
	f->is_due = true;
	return look(f, err);
}

int weft_follower_look(struct weft_follower *f, struct weft_error *err)
{
	f->is_late = false;
	f->may_be_late = f->options.window_events && !f->is_part && !f->options.makes_no_model;
	const int status = look(f, err);
	f->may_be_late = false;
	return f->is_late ? look_behind(f, status, err) : status;
}

/* Takes what is new; 1: that is there no more, or cannot be followed. */
static int skip(struct weft_follower *f, struct weft_error *err)
{
	struct weft_trace *trace = NULL;
	int status = weft_trace_open_from(&trace, f->path, &f->reached, &f->reached, err);
	if (status < 0)
		return status;
	const bool is_resumed = weft_trace_is_resumed(trace);
	const int can = is_resumed ? prepare(f, trace) : 0;
	status = can > 0 ? take_new(f, trace, false) : can < 0 ? can : 1;
	weft_trace_close(trace);
	if (status < 0) {
		forget_all(f);
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	}
	return status;
}

int weft_follower_skip(struct weft_follower *f, struct weft_error *err)
{
	const uint64_t before = f->events;
	const int status = f->standing ? skip(f, err) : 1;
	/* The next look reads anew what cannot be followed. */
	if (status != WEFT_OK)
		return status < 0 ? status : 0;
	const uint64_t most = f->is_part ? 0 : window_events(f);
	if (most && f->events - f->window->events > 2 * most)
		weft__follower_begin_here(f);
	f->is_due |= f->events != before;
	return f->events != before;
}

int weft_follower_open(
    struct weft_follower **out, const char *path, const struct weft_follower_options *options, struct weft_error *err)
{
	struct weft_follower *f = calloc(1, sizeof *f);
	const size_t tallies = options ? options->tally_count : 0;
	char *own = strdup(path);
	struct weft_tally *left = calloc(tallies + 1, sizeof *left);
	if (!f || !own || !left) {
		free(f);
		free(own);
		free(left);
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < tallies; i++)
		left[i] = options->tallies[i];
	f->path = own;
	f->left = left;
	f->options = options ? *options : (struct weft_follower_options){.window_ns = 0};
	*out = f;
	return WEFT_OK;
}

void weft_follower_close(struct weft_follower *f)
{
	if (!f)
		return;
	forget_all(f);
	weft_model_destroy(f->model);
	weft_trace_close(f->trace);
	leave(&f->shown);
	for (size_t i = 0; i < f->streams.count; i++)
		free(f->streams.items[i].name);
	weft_vec_free(&f->streams);
	weft_vec_free(&f->numbers);
	free(f->told);
	free(f->left);
	free(f->path);
	free(f);
}

struct weft_followed_private {
	struct weft_event *told; /* so many, and one before them; or NULL */
	size_t told_count;
	struct place *shown;
	struct weft_followed **parts; /* that were joined */
	size_t part_count;
	int64_t begin_ns; /* when what holds is told in a picture */
};

struct weft_followed *weft_follower_take(struct weft_follower *f)
{
	struct weft_followed *taken = f->model || (f->trace && f->options.makes_no_model) ? calloc(1, sizeof *taken) : NULL;
	if (!taken || !(taken->priv = calloc(1, sizeof *taken->priv))) {
		free(taken);
		return NULL;
	}
	taken->model = f->model;
	taken->trace = f->trace;
	taken->is_told = f->told;
	*taken->priv = (struct weft_followed_private){
	    .told = f->told, .told_count = f->told_count, .shown = share(f->shown), .begin_ns = f->told ? f->shown->time_ns : 0};
	f->model = NULL;
	f->trace = NULL;
	f->told = NULL;
	return taken;
}

void weft_followed_destroy(struct weft_followed *taken)
{
	if (!taken)
		return;
	weft_model_destroy(taken->model);
	weft_trace_close(taken->trace);
	for (size_t i = 0; i < taken->priv->part_count; i++)
		weft_followed_destroy(taken->priv->parts[i]);
	free(taken->priv->parts);
	free(taken->priv->told);
	leave(&taken->priv->shown);
	free(taken->priv);
	free(taken);
}

void weft_follower_set_window(struct weft_follower *f, int64_t window_ns)
{
	f->options.window_ns = window_ns;
}

void weft_follower_renew(struct weft_follower *f)
{
	f->is_due = true;
}

const struct weft_event *weft_follower_snapshots(const struct weft_follower *f, size_t *count)
{
	static const struct weft_event none;
	*count = 0;
	const struct weft_event *all = f->standing ? weft_standing_snapshots(f->standing, count) : NULL;
	return f->standing && !all ? &none : all;
}

int64_t weft_follower_counted_ns(const struct weft_follower *f)
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

int64_t weft_follower_window(const struct weft_follower *f)
{
	return f->shown && f->shown->events ? f->shown->time_ns - f->first_ns : 0;
}

int weft_follower_look_newest(struct weft_follower *f, struct weft_error *err)
{
	f->is_late = f->may_be_late = false;
	f->wants_newest = true;
	const int status = look(f, err);
	f->wants_newest = false;
	return look_behind(f, status, err);
}

bool weft_follower_is_filled(const struct weft_follower *f)
{
	return f->is_moved || weft__window_is_filled(window_events(f), f->shown ? f->events - f->shown->events : 0,
				  f->shown ? f->last_ns - f->shown->time_ns : 0);
}

static int save(
    struct weft_trace *trace, const struct weft_followed_private *p, weft_trace_file_fn *file, void *ctx, struct weft_error *err)
{
	/* The first is there for its time. */
	const struct weft_trace_edit edit = {.is_cut = true,
	    .from_ns = p->begin_ns,
	    .told = p->told ? p->told + 1 : NULL,
	    .told_count = p->told ? p->told_count : 0};
	return weft_trace_save(trace, p->told ? &edit : NULL, file, ctx, err);
}

/* A folder for each part, as join.c has them. */
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

int weft_followed_save(const struct weft_followed *taken, weft_trace_file_fn *file, void *ctx, struct weft_error *err)
{
	const struct weft_followed_private *p = taken->priv;
	int status = p->part_count ? WEFT_OK : save(taken->trace, p, file, ctx, err);
	for (size_t i = 0; i < p->part_count && status == WEFT_OK; i++) {
		struct folder folder = {file, ctx, i};
		status = save(weft_trace_part(taken->trace, i), p->parts[i]->priv, save_in_folder, &folder, err);
	}
	return status;
}

int64_t weft_follower_rest_ns(int64_t used_ns)
{
	return weft_max_ns(LEAST_REST_NS, weft_min_ns(used_ns * REST_SHARE, MOST_REST_NS));
}

uint64_t weft_follower_restarts(const struct weft_follower *f)
{
	return f->restarts;
}

uint64_t weft_follower_events(const struct weft_follower *f)
{
	return f->events;
}

/* ---- One of several ---- */

void weft__follower_be_part(struct weft_follower *f, bool is_part, bool makes_no_model)
{
	f->is_due |= is_part != f->is_part;
	f->is_part = is_part;
	f->options.makes_no_model = makes_no_model;
}

bool weft__follower_is_new(const struct weft_follower *f)
{
	return f->is_due || !f->has_looked || fingerprint(f) != f->fingerprint;
}

struct weft__reading weft__follower_reading(const struct weft_follower *f)
{
	return (struct weft__reading){.is_known = f->standing,
	    .first_ns = f->first_ns,
	    .last_ns = f->last_ns,
	    .in_window = f->window ? f->events - f->window->events : 0,
	    .in_next = f->next ? f->events - f->next->events : f->events};
}

bool weft__follower_move(struct weft_follower *f)
{
	const bool is_quiet = f->next && f->next->events == f->events;
	struct place *fresh = is_quiet ? share(f->next) : note_place(f);
	if (!fresh)
		return false;
	if (f->next) {
		leave(&f->window);
		f->window = f->next;
	}
	f->next = fresh;
	return true;
}

bool weft__follower_begin_here(struct weft_follower *f)
{
	struct place *here = note_place(f);
	if (!here)
		return false;
	leave(&f->window);
	leave(&f->next);
	f->window = here;
	return true;
}

bool weft__followed_window(const struct weft_followed *taken, int64_t *begin_ns)
{
	*begin_ns = taken->priv->told ? taken->priv->shown->time_ns : 0;
	return taken->priv->told;
}

int weft__followed_tell_at(struct weft_followed *taken, struct weft_trace *trace, int64_t begin_ns)
{
	struct weft_followed_private *p = taken->priv;
	const struct weft_event *events;
	size_t n;
	weft_trace_tell(trace, NULL, 0);
	weft_trace_rewind(trace);
	const int more = weft_trace_next(trace, &events, &n);
	p->begin_ns = more > 0 ? weft_min_ns(begin_ns, events[0].time_ns) : begin_ns;
	for (size_t i = 0; i <= p->told_count; i++)
		p->told[i].time_ns = p->begin_ns;
	weft_trace_tell(trace, p->told, p->told_count + 1);
	weft_trace_rewind(trace);
	return more < 0 ? more : WEFT_OK;
}

struct weft_followed *weft__followed_of_parts(struct weft_followed **parts, size_t count)
{
	struct weft_followed *all = calloc(1, sizeof *all);
	if (!all || !(all->priv = calloc(1, sizeof *all->priv))) {
		free(all);
		return NULL;
	}
	all->priv->parts = parts;
	all->priv->part_count = count;
	return all;
}

struct weft_followed *const *weft__followed_parts(const struct weft_followed *taken, size_t *count)
{
	*count = taken->priv->part_count;
	return taken->priv->parts;
}
