/* followers.c: follows several live traces (followers.h).
 * SPDX-License-Identifier: ISC */
#include "model/followers.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/vec.h"
#include "model/follower_private.h"
#include "trace/follow.h"
#include "trace/join.h"
#include "trace/multi_open.h"

/* Minimum length of the window if only new events are asked for: both ends of a message should be in one window. */
#define MIN_WINDOW_NS INT64_C(1000000000)
#define MIN_WINDOW_EVENTS (UINT64_C(1) << 14)

struct part {
	uint64_t number; /* unique; never reused */
	char *path;
	struct weft_follower *follower;
	struct weft_running_stats *stats;
	bool is_named;    /* true if the paths of the present refresh name this trace */
	bool is_recorded; /* true if the program was still recording when the refresh started */
	bool is_read;
	bool is_over; /* true if the program ended before the window starts, while other programs still run */
	bool is_joined;
	struct weft_error why; /* the error that kept the trace from being read */
};

struct weft_followers {
	struct weft_follower_options options;
	WEFT_VEC(struct part) parts;
	uint64_t made; /* number of parts that were ever created */
	bool is_alone; /* true if there is only one part, so that its follower does everything */
	unsigned generation;
	uint64_t composition; /* hash of the set of parts that were joined last */
	bool has_next;        /* true if the start of the next window is saved */
	int64_t next_ns;      /* time of that start */
	uint64_t restarts;    /* number of restarts of parts that no longer exist */
	/* Result of the newest refresh of several traces. */
	struct weft_followed_model *newest;
	int64_t window_ns, since_ns;
	uint64_t in_window;
};

int weft_followers_open(struct weft_followers **out, const struct weft_follower_options *options, struct weft_error *err)
{
	struct weft_followers *g = calloc(1, sizeof *g);
	if (!g)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	g->options = *options;
	*out = g;
	return WEFT_OK;
}

/* ---- Set of traces ---- */

static void free_part(struct part *part)
{
	weft_follower_close(part->follower);
	free(part->stats);
	free(part->path);
}

void weft_followers_close(struct weft_followers *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->parts.count; i++)
		free_part(&g->parts.items[i]);
	weft_vec_free(&g->parts);
	weft_followed_model_destroy(g->newest);
	free(g);
}

static bool add_part(struct weft_followers *g, const char *path)
{
	struct weft_follower_options options = g->options;
	struct part part = {.number = ++g->made,
	    .path = strdup(path),
	    .stats = calloc(options.stats_count + 1, sizeof *part.stats),
	    .is_named = true};
	for (size_t i = 0; part.stats && i < options.stats_count; i++)
		part.stats[i] = options.stats[i];
	options.stats = part.stats;
	struct part *own = part.path && part.stats && weft_follower_open(&part.follower, path, &options, NULL) == WEFT_OK
			       ? weft_vec_push(&g->parts)
			       : NULL;
	if (own)
		*own = part;
	else
		free_part(&part);
	return own != NULL;
}

static struct part *find_part(const struct weft_followers *g, const char *path)
{
	for (size_t i = 0; i < g->parts.count; i++)
		if (strcmp(g->parts.items[i].path, path) == 0)
			return &g->parts.items[i];
	return NULL;
}

static void drop_unnamed_parts(struct weft_followers *g)
{
	size_t retained = 0;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		if (part->is_named) {
			g->parts.items[retained++] = *part;
			continue;
		}
		g->restarts += weft_follower_restarts(part->follower);
		free_part(part);
	}
	g->parts.count = retained;
}

static bool update_parts(struct weft_followers *g, const char *const *paths, size_t count)
{
	for (size_t i = 0; i < g->parts.count; i++)
		g->parts.items[i].is_named = false;
	for (size_t i = 0; i < count; i++) {
		struct part *part = find_part(g, paths[i]);
		if (part)
			part->is_named = true;
		else if (!add_part(g, paths[i]))
			return false;
	}
	drop_unnamed_parts(g);
	const bool was_alone = g->is_alone;
	g->is_alone = g->parts.count == 1;
	if (g->is_alone != was_alone) {
		g->has_next = false;
		weft_followed_model_destroy(g->newest);
		g->newest = NULL;
	}
	for (size_t i = 0; i < g->parts.count; i++)
		weft__follower_set_part(g->parts.items[i].follower, !g->is_alone, !g->is_alone || g->options.makes_no_model);
	return true;
}

/* ---- Windows ---- */

static struct weft__read_progress sum_progress(const struct weft_followers *g)
{
	struct weft__read_progress all = {.is_known = false};
	for (size_t i = 0; i < g->parts.count; i++) {
		const struct weft__read_progress one = weft__follower_read_progress(g->parts.items[i].follower);
		if (!one.is_known)
			continue;
		all.is_known = true;
		all.in_window += one.in_window;
		all.in_next += one.in_next;
	}
	return all;
}

static bool has_no_window(const struct weft_followers *g)
{
	return !g->options.window_ns && !g->options.window_events;
}

static uint64_t window_events(const struct weft_followers *g)
{
	return has_no_window(g) ? MIN_WINDOW_EVENTS : weft__window_events(&g->options, g->in_window, g->since_ns);
}

/* Starts new windows of all parts at the same time, if the next start is old enough. */
static bool move_windows(struct weft_followers *g, int64_t end_ns)
{
	const uint64_t most = window_events(g);
	const int64_t window_ns = has_no_window(g) ? MIN_WINDOW_NS : g->options.window_ns;
	if (g->has_next && end_ns - g->next_ns < window_ns && !(most && sum_progress(g).in_next >= most))
		return true;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct weft_follower *f = g->parts.items[i].follower;
		if (weft__follower_read_progress(f).is_known && !weft__follower_move_window(f))
			return false;
	}
	g->has_next = true;
	g->next_ns = end_ns;
	return true;
}

/* Applies new events without building a model.  If the present window has more events than two windows may have, a new window
 * starts at the present end. */
static bool skip_parts(struct weft_followers *g, struct weft_error *err)
{
	const uint64_t most = window_events(g);
	bool is_new = false;
	for (size_t i = 0; i < g->parts.count; i++)
		is_new |= weft_follower_skip(g->parts.items[i].follower, err) > 0;
	if (!most || sum_progress(g).in_window <= 2 * most)
		return is_new;
	for (size_t i = 0; i < g->parts.count; i++)
		if (weft__follower_read_progress(g->parts.items[i].follower).is_known)
			(void)weft__follower_restart_window(g->parts.items[i].follower);
	g->has_next = false;
	return is_new;
}

int weft_followers_skip(struct weft_followers *g, struct weft_error *err)
{
	return g->is_alone ? weft_follower_skip(g->parts.items[0].follower, err) : skip_parts(g, err);
}

/* ---- Refresh of several traces ---- */

static bool shows_newest(const struct weft_follower_options *options)
{
	return options->begins_at_window || options->first_events;
}

static uint64_t first_events(const struct weft_follower_options *options)
{
	const uint64_t least = 2 * options->window_events;
	return options->first_events > least ? options->first_events : least;
}

/* Refreshes one part; returns a negative status if no part can be read. */
static int refresh_part(struct part *part, bool any_recorded, bool is_session, struct weft_error *err)
{
	const bool may_be_over = any_recorded && !part->is_recorded;
	if (part->is_over && may_be_over && !weft__follower_has_news(part->follower))
		return 0;
	weft_follower_mark_stale(part->follower);
	const int status = weft_follower_refresh(part->follower, &part->why);
	const struct weft__read_progress reading = weft__follower_read_progress(part->follower);
	part->is_read = status > 0;
	part->is_over = may_be_over && part->is_read && reading.is_known && weft_follower_window_start_ns(part->follower) > 0 &&
			!reading.in_window;
	if (status < 0 && err)
		*err = part->why;
	return status == WEFT_ENOMEM || status == WEFT_ECANCELLED || !is_session ? status : WEFT_OK;
}

static int refresh_parts(struct weft_followers *g, bool is_session, struct weft_error *err)
{
	bool any_recorded = false, any_joined = false;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		part->is_recorded = weft_trace_is_recorded(part->path);
		any_recorded |= part->is_recorded;
	}
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		const int status = refresh_part(part, any_recorded, is_session, err);
		if (status < 0)
			return status;
		part->is_joined = part->is_read && !part->is_over;
		any_joined |= part->is_joined;
	}
	return any_joined ? WEFT_OK : weft_error_set(err, WEFT_ENOENT, "no trace can be read yet");
}

/* Detaches the models of all joined parts from their followers. */
static struct weft_followed_model *detach_parts(struct weft_followers *g, struct weft_error *err)
{
	struct weft_followed_model **detached = calloc(g->parts.count + 1, sizeof *detached), *all = NULL;
	uint64_t composition = 0;
	size_t count = 0;
	bool has_all = detached;
	for (size_t i = 0; i < g->parts.count && has_all; i++) {
		const struct part *part = &g->parts.items[i];
		if (!part->is_joined)
			continue;
		detached[count] = weft_follower_detach(part->follower);
		has_all = detached[count] != NULL;
		count += has_all;
		composition = weft_hash_u64(composition + part->number);
	}
	if (has_all)
		all = weft__followed_from_parts(detached, count);
	for (size_t i = 0; i < count && !all; i++)
		weft_followed_model_destroy(detached[i]);
	if (!all) {
		free(detached);
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return NULL;
	}
	g->generation += composition != g->composition;
	g->composition = composition;
	return all;
}

static int join_traces(struct weft_trace **out, const struct weft_followers *g, struct weft_followed_model *const *parts,
    size_t count, struct weft_error *err)
{
	char name[300];
	const char *const first = g->parts.items[0].path;
	struct weft_trace **traces = calloc(count + 1, sizeof *traces);
	if (!traces)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		traces[i] = parts[i]->trace;
		weft_trace_rewind(traces[i]);
	}
	const int status = weft_multi_join(out, traces, count, weft_multi_name(name, sizeof name, &first, count), err);
	for (size_t i = 0; i < count && status == WEFT_OK; i++)
		parts[i]->trace = NULL;
	free(traces);
	return status;
}

/* Sets the start of the joined window: the latest start of the parts that have a checkpoint.  For pictures, the checkpoints of
 * all parts are moved to that time. */
static int set_window_times(
    struct weft_followers *g, struct weft_followed_model *const *parts, struct weft_trace *joined, int64_t *end_ns)
{
	int64_t own_ns, first_ns = INT64_MAX, begin_ns = INT64_MIN;
	size_t count = 0;
	*end_ns = INT64_MIN;
	for (size_t i = 0; i < g->parts.count; i++) {
		const struct weft__read_progress reading = weft__follower_read_progress(g->parts.items[i].follower);
		if (!g->parts.items[i].is_joined)
			continue;
		const size_t number = count++;
		if (!reading.is_known)
			continue;
		first_ns = weft_min_ns(first_ns, weft_part_time(joined, number, reading.first_ns));
		*end_ns = weft_max_ns(*end_ns, weft_part_time(joined, number, reading.last_ns));
		if (weft__followed_window_start(parts[number], &own_ns))
			begin_ns = weft_max_ns(begin_ns, weft_part_time(joined, number, own_ns));
	}
	const bool is_known = first_ns != INT64_MAX, has_begun = begin_ns != INT64_MIN;
	int status = WEFT_OK;
	for (size_t i = 0; i < count && g->options.begins_at_window && status == WEFT_OK; i++)
		if (weft__followed_window_start(parts[i], &own_ns))
			status = weft__followed_move_checkpoint(
			    parts[i], weft_trace_part(joined, i), weft_part_own_time(joined, i, begin_ns));
	g->window_ns = has_begun ? begin_ns - first_ns : 0;
	g->since_ns = is_known ? *end_ns - (has_begun ? begin_ns : first_ns) : 0;
	g->in_window = sum_progress(g).in_window;
	weft_trace_rewind(joined);
	return status;
}

/* Returns true if every part has a checkpoint or is complete from its start. */
static bool have_checkpoints(struct weft_followed_model *const *parts, const struct weft_trace *joined)
{
	const struct weft_trace_info *info = weft_trace_info(joined);
	for (size_t i = 0; i < info->part_count; i++)
		if (!parts[i]->has_checkpoint && info->parts[i].wrapped)
			return false;
	return true;
}

/* Joins the detached models of the parts into one model. */
static int join_parts(struct weft_followers *g, struct weft_followed_model *all, struct weft_error *err)
{
	struct weft_model_options options = g->options.model;
	int64_t end_ns;
	size_t count;
	struct weft_followed_model *const *parts = weft__followed_parts(all, &count);
	int status = join_traces(&all->trace, g, parts, count, err);
	if (status < 0)
		return status;
	for (size_t i = 0; i < g->parts.count; i++)
		if (!g->parts.items[i].is_read)
			weft_multi_note_left_out(all->trace, &g->parts.items[i].why);
	status = set_window_times(g, parts, all->trace, &end_ns);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	options.knows_pending = all->has_checkpoint = have_checkpoints(parts, all->trace);
	if (!g->options.makes_no_model)
		status = weft_model_build(&all->model, all->trace, &options, err);
	return status < 0 || move_windows(g, end_ns) ? status : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static bool have_news(const struct weft_followers *g)
{
	for (size_t i = 0; i < g->parts.count; i++)
		if (weft__follower_has_news(g->parts.items[i].follower))
			return true;
	return false;
}

static int refresh_several(struct weft_followers *g, bool is_session, struct weft_error *err)
{
	if (!have_news(g))
		return 0;
	int status = refresh_parts(g, is_session, err);
	/* After a first read of the whole traces, which takes long, the window covers the events that came meanwhile. */
	if (status == WEFT_OK && shows_newest(&g->options) && !g->has_next &&
	    sum_progress(g).in_window > first_events(&g->options) && skip_parts(g, err))
		status = refresh_parts(g, is_session, err);
	if (status < 0)
		return status;
	struct weft_followed_model *all = detach_parts(g, err);
	status = all ? join_parts(g, all, err) : WEFT_ENOMEM;
	if (status < 0) {
		weft_followed_model_destroy(all);
		weft_followers_mark_stale(g);
		return status;
	}
	weft_followed_model_destroy(g->newest);
	g->newest = all;
	return 1;
}

int weft_followers_refresh(
    struct weft_followers *g, const char *const *paths, size_t count, bool is_session, struct weft_error *err)
{
	if (!update_parts(g, paths, count))
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (!g->is_alone)
		return refresh_several(g, is_session, err);
	struct part *part = &g->parts.items[0];
	weft_follower_set_window(part->follower, g->options.window_ns);
	const int status = shows_newest(&g->options) ? weft_follower_refresh_newest(part->follower, err)
						     : weft_follower_refresh(part->follower, err);
	g->generation += status > 0 && g->composition != part->number;
	g->composition = status > 0 ? part->number : g->composition;
	return status;
}

struct weft_followed_model *weft_followers_detach(struct weft_followers *g)
{
	struct weft_followed_model *detached = g->newest;
	g->newest = NULL;
	return g->is_alone ? weft_follower_detach(g->parts.items[0].follower) : detached;
}

/* ---- Queries ---- */

void weft_followers_mark_stale(struct weft_followers *g)
{
	for (size_t i = 0; i < g->parts.count; i++)
		weft_follower_mark_stale(g->parts.items[i].follower);
}

void weft_followers_set_window(struct weft_followers *g, int64_t window_ns)
{
	g->options.window_ns = window_ns;
}

int64_t weft_followers_stats_span_ns(struct weft_followers *g)
{
	int64_t counted_ns = g->parts.count ? 0 : -1;
	for (size_t i = 0; i < g->options.stats_count; i++)
		weft_running_stats_clear(&g->options.stats[i]);
	for (size_t k = 0; k < g->parts.count; k++) {
		const struct part *part = &g->parts.items[k];
		const int64_t own_ns = weft_follower_stats_span_ns(part->follower);
		counted_ns = own_ns < 0 || counted_ns < 0 ? -1 : weft_max_ns(own_ns, counted_ns);
		for (size_t i = 0; i < g->options.stats_count; i++)
			weft_running_stats_merge(&g->options.stats[i], &part->stats[i]);
	}
	return counted_ns;
}

int64_t weft_followers_window_start_ns(const struct weft_followers *g)
{
	return g->is_alone ? weft_follower_window_start_ns(g->parts.items[0].follower) : g->window_ns;
}

bool weft_followers_is_filled(const struct weft_followers *g)
{
	return g->is_alone ? weft_follower_is_filled(g->parts.items[0].follower)
			   : weft__window_is_filled(window_events(g), g->in_window, g->since_ns);
}

bool weft_followers_are_incremental(const struct weft_followers *g)
{
	return sum_progress(g).is_known;
}

uint64_t weft_followers_restarts(const struct weft_followers *g)
{
	uint64_t all = g->restarts;
	for (size_t i = 0; i < g->parts.count; i++)
		all += weft_follower_restarts(g->parts.items[i].follower);
	return all;
}

uint64_t weft_followers_events(const struct weft_followers *g)
{
	uint64_t all = 0;
	for (size_t i = 0; i < g->parts.count; i++)
		all += weft_follower_events(g->parts.items[i].follower);
	return all;
}

unsigned weft_followers_generation(const struct weft_followers *g)
{
	return g->generation;
}
