/* followers.c: see followers.h.  SPDX-License-Identifier: ISC */
#include "model/followers.h"

#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/hash.h"
#include "base/vec.h"
#include "model/follower_private.h"
#include "trace/follow.h"
#include "trace/join.h"
#include "trace/several.h"

/* Who wants only what is new has both ends of a message in windows of so much. */
#define LEAST_WINDOW_NS INT64_C(1000000000)
#define LEAST_WINDOW_EVENTS (UINT64_C(1) << 14)

struct part {
	uint64_t number; /* no other has or had it */
	char *path;
	struct weft_follower *follower;
	struct weft_tally *tallies;
	bool is_named;    /* by the paths of this look */
	bool is_recorded; /* when the look began */
	bool is_read;
	bool is_over; /* it ended before the window begins, and others go on */
	bool is_joined;
	struct weft_error why; /* it could not be read */
};

struct weft_followers {
	struct weft_follower_options options;
	WEFT_VEC(struct part) parts;
	uint64_t made; /* so many parts in all */
	bool is_alone; /* one part, whose follower does all */
	unsigned generation;
	uint64_t composition; /* which parts were joined last */
	bool has_next;        /* there are places where the next window begins */
	int64_t next_ns;      /* when that is */
	uint64_t restarts;    /* of parts that are gone */
	/* Of the newest look at several. */
	struct weft_followed *newest;
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

/* ---- Which traces ---- */

static void forget(struct part *part)
{
	weft_follower_close(part->follower);
	free(part->tallies);
	free(part->path);
}

void weft_followers_close(struct weft_followers *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->parts.count; i++)
		forget(&g->parts.items[i]);
	weft_vec_free(&g->parts);
	weft_followed_destroy(g->newest);
	free(g);
}

static bool add(struct weft_followers *g, const char *path)
{
	struct weft_follower_options options = g->options;
	struct part part = {.number = ++g->made,
	    .path = strdup(path),
	    .tallies = calloc(options.tally_count + 1, sizeof *part.tallies),
	    .is_named = true};
	for (size_t i = 0; part.tallies && i < options.tally_count; i++)
		part.tallies[i] = options.tallies[i];
	options.tallies = part.tallies;
	struct part *own = part.path && part.tallies && weft_follower_open(&part.follower, path, &options, NULL) == WEFT_OK
			       ? weft_vec_push(&g->parts)
			       : NULL;
	if (own)
		*own = part;
	else
		forget(&part);
	return own != NULL;
}

static struct part *find(const struct weft_followers *g, const char *path)
{
	for (size_t i = 0; i < g->parts.count; i++)
		if (strcmp(g->parts.items[i].path, path) == 0)
			return &g->parts.items[i];
	return NULL;
}

static void forget_unnamed(struct weft_followers *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		if (part->is_named) {
			g->parts.items[kept++] = *part;
			continue;
		}
		g->restarts += weft_follower_restarts(part->follower);
		forget(part);
	}
	g->parts.count = kept;
}

static bool name_parts(struct weft_followers *g, const char *const *paths, size_t count)
{
	for (size_t i = 0; i < g->parts.count; i++)
		g->parts.items[i].is_named = false;
	for (size_t i = 0; i < count; i++) {
		struct part *part = find(g, paths[i]);
		if (part)
			part->is_named = true;
		else if (!add(g, paths[i]))
			return false;
	}
	forget_unnamed(g);
	const bool was_alone = g->is_alone;
	g->is_alone = g->parts.count == 1;
	if (g->is_alone != was_alone) {
		g->has_next = false;
		weft_followed_destroy(g->newest);
		g->newest = NULL;
	}
	for (size_t i = 0; i < g->parts.count; i++)
		weft__follower_be_part(g->parts.items[i].follower, !g->is_alone, !g->is_alone || g->options.makes_no_model);
	return true;
}

/* ---- Their windows ---- */

static struct weft__reading sum(const struct weft_followers *g)
{
	struct weft__reading all = {.is_known = false};
	for (size_t i = 0; i < g->parts.count; i++) {
		const struct weft__reading one = weft__follower_reading(g->parts.items[i].follower);
		if (!one.is_known)
			continue;
		all.is_known = true;
		all.in_window += one.in_window;
		all.in_next += one.in_next;
	}
	return all;
}

static bool is_short(const struct weft_followers *g)
{
	return !g->options.window_ns && !g->options.window_events;
}

static uint64_t window_events(const struct weft_followers *g)
{
	return is_short(g) ? LEAST_WINDOW_EVENTS : weft__window_events(&g->options, g->in_window, g->since_ns);
}

/* All windows begin anew at once, when the next one is far enough back. */
static bool move_windows(struct weft_followers *g, int64_t end_ns)
{
	const uint64_t most = window_events(g);
	const int64_t window_ns = is_short(g) ? LEAST_WINDOW_NS : g->options.window_ns;
	if (g->has_next && end_ns - g->next_ns < window_ns && !(most && sum(g).in_next >= most))
		return true;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct weft_follower *f = g->parts.items[i].follower;
		if (weft__follower_reading(f).is_known && !weft__follower_move(f))
			return false;
	}
	g->has_next = true;
	g->next_ns = end_ns;
	return true;
}

/* Takes what is new without a model.  If there is more in the window than two have, it begins here. */
static bool skip_parts(struct weft_followers *g, struct weft_error *err)
{
	const uint64_t most = window_events(g);
	bool is_new = false;
	for (size_t i = 0; i < g->parts.count; i++)
		is_new |= weft_follower_skip(g->parts.items[i].follower, err) > 0;
	if (!most || sum(g).in_window <= 2 * most)
		return is_new;
	for (size_t i = 0; i < g->parts.count; i++)
		if (weft__follower_reading(g->parts.items[i].follower).is_known)
			(void)weft__follower_begin_here(g->parts.items[i].follower);
	g->has_next = false;
	return is_new;
}

int weft_followers_skip(struct weft_followers *g, struct weft_error *err)
{
	return g->is_alone ? weft_follower_skip(g->parts.items[0].follower, err) : skip_parts(g, err);
}

/* ---- Looking at several ---- */

static bool shows_newest(const struct weft_follower_options *options)
{
	return options->begins_at_window || options->first_events;
}

static uint64_t first_events(const struct weft_follower_options *options)
{
	const uint64_t least = 2 * options->window_events;
	return options->first_events > least ? options->first_events : least;
}

/* Negative: none can be looked at. */
static int look_at_part(struct part *part, bool any_recorded, bool is_session, struct weft_error *err)
{
	const bool may_be_over = any_recorded && !part->is_recorded;
	if (part->is_over && may_be_over && !weft__follower_is_new(part->follower))
		return 0;
	weft_follower_renew(part->follower);
	const int status = weft_follower_look(part->follower, &part->why);
	const struct weft__reading reading = weft__follower_reading(part->follower);
	part->is_read = status > 0;
	part->is_over =
	    may_be_over && part->is_read && reading.is_known && weft_follower_window(part->follower) > 0 && !reading.in_window;
	if (status < 0 && err)
		*err = part->why;
	return status == WEFT_ENOMEM || status == WEFT_ECANCELLED || !is_session ? status : WEFT_OK;
}

static int look_at_parts(struct weft_followers *g, bool is_session, struct weft_error *err)
{
	bool any_recorded = false, any_joined = false;
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		part->is_recorded = weft_trace_is_recorded(part->path);
		any_recorded |= part->is_recorded;
	}
	for (size_t i = 0; i < g->parts.count; i++) {
		struct part *part = &g->parts.items[i];
		const int status = look_at_part(part, any_recorded, is_session, err);
		if (status < 0)
			return status;
		part->is_joined = part->is_read && !part->is_over;
		any_joined |= part->is_joined;
	}
	return any_joined ? WEFT_OK : weft_error_set(err, WEFT_ENOENT, "no trace can be read yet");
}

/* Takes what each has. */
static struct weft_followed *take_parts(struct weft_followers *g, struct weft_error *err)
{
	struct weft_followed **taken = calloc(g->parts.count + 1, sizeof *taken), *all = NULL;
	uint64_t composition = 0;
	size_t count = 0;
	bool has_all = taken;
	for (size_t i = 0; i < g->parts.count && has_all; i++) {
		const struct part *part = &g->parts.items[i];
		if (!part->is_joined)
			continue;
		taken[count] = weft_follower_take(part->follower);
		has_all = taken[count] != NULL;
		count += has_all;
		composition = weft_hash_u64(composition + part->number);
	}
	if (has_all)
		all = weft__followed_of_parts(taken, count);
	for (size_t i = 0; i < count && !all; i++)
		weft_followed_destroy(taken[i]);
	if (!all) {
		free(taken);
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		return NULL;
	}
	g->generation += composition != g->composition;
	g->composition = composition;
	return all;
}

static int join(struct weft_trace **out, const struct weft_followers *g, struct weft_followed *const *parts, size_t count,
    struct weft_error *err)
{
	char name[300];
	const char *const first = g->parts.items[0].path;
	struct weft_trace **traces = calloc(count + 1, sizeof *traces);
	int status = WEFT_OK;
	if (!traces)
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && status == WEFT_OK; i++) {
		traces[i] = parts[i]->trace;
		weft_trace_rewind(traces[i]);
		for (size_t k = 0; k < i && status == WEFT_OK; k++)
			if (weft_trace_is_same(traces[i], traces[k]))
				status = weft_error_set(err, WEFT_EINVAL, "one trace is the copy of another");
		if (weft_trace_part(traces[i], 0))
			status = weft_error_set(err, WEFT_EINVAL, "an archive of several traces cannot be joined");
	}
	if (status == WEFT_OK)
		status = weft_trace_join(out, traces, count, weft_several_name(name, sizeof name, &first, count), err);
	for (size_t i = 0; i < count && status == WEFT_OK; i++)
		parts[i]->trace = NULL;
	free(traces);
	return status;
}

/* The window begins where the last one begins of those that are told.  In a picture what holds is told then. */
static int set_times(struct weft_followers *g, struct weft_followed *const *parts, struct weft_trace *joined, int64_t *end_ns)
{
	int64_t own_ns, first_ns = INT64_MAX, begin_ns = INT64_MIN;
	size_t count = 0;
	*end_ns = INT64_MIN;
	for (size_t i = 0; i < g->parts.count; i++) {
		const struct weft__reading reading = weft__follower_reading(g->parts.items[i].follower);
		if (!g->parts.items[i].is_joined)
			continue;
		const size_t number = count++;
		if (!reading.is_known)
			continue;
		first_ns = weft_min_ns(first_ns, weft_part_time(joined, number, reading.first_ns));
		*end_ns = weft_max_ns(*end_ns, weft_part_time(joined, number, reading.last_ns));
		if (weft__followed_window(parts[number], &own_ns))
			begin_ns = weft_max_ns(begin_ns, weft_part_time(joined, number, own_ns));
	}
	const bool is_known = first_ns != INT64_MAX, has_begun = begin_ns != INT64_MIN;
	int status = WEFT_OK;
	for (size_t i = 0; i < count && g->options.begins_at_window && status == WEFT_OK; i++)
		if (weft__followed_window(parts[i], &own_ns))
			status =
			    weft__followed_tell_at(parts[i], weft_trace_part(joined, i), weft_part_own_time(joined, i, begin_ns));
	g->window_ns = has_begun ? begin_ns - first_ns : 0;
	g->since_ns = is_known ? *end_ns - (has_begun ? begin_ns : first_ns) : 0;
	g->in_window = sum(g).in_window;
	weft_trace_rewind(joined);
	return status;
}

/* Who is there from its begin needs nothing told. */
static bool are_told(struct weft_followed *const *parts, const struct weft_trace *joined)
{
	const struct weft_trace_info *info = weft_trace_info(joined);
	for (size_t i = 0; i < info->part_count; i++)
		if (!parts[i]->is_told && info->parts[i].wrapped)
			return false;
	return true;
}

/* Makes one of what was taken. */
static int join_parts(struct weft_followers *g, struct weft_followed *all, struct weft_error *err)
{
	struct weft_model_options options = g->options.model;
	int64_t end_ns;
	size_t count;
	struct weft_followed *const *parts = weft__followed_parts(all, &count);
	int status = join(&all->trace, g, parts, count, err);
	if (status < 0)
		return status;
	for (size_t i = 0; i < g->parts.count; i++)
		if (!g->parts.items[i].is_read)
			weft_several_left_out(all->trace, &g->parts.items[i].why);
	status = set_times(g, parts, all->trace, &end_ns);
	if (status < 0)
		return weft_error_set(err, (enum weft_status)status, "%s", weft_status_string(status));
	options.knows_pending = all->is_told = are_told(parts, all->trace);
	if (!g->options.makes_no_model)
		status = weft_model_build(&all->model, all->trace, &options, err);
	return status < 0 || move_windows(g, end_ns) ? status : weft_error_set(err, WEFT_ENOMEM, "out of memory");
}

static bool are_new(const struct weft_followers *g)
{
	for (size_t i = 0; i < g->parts.count; i++)
		if (weft__follower_is_new(g->parts.items[i].follower))
			return true;
	return false;
}

static int look_at_several(struct weft_followers *g, bool is_session, struct weft_error *err)
{
	if (!are_new(g))
		return 0;
	int status = look_at_parts(g, is_session, err);
	/* Where all was read, which takes long, the window is of what came meanwhile. */
	if (status == WEFT_OK && shows_newest(&g->options) && !g->has_next && sum(g).in_window > first_events(&g->options) &&
	    skip_parts(g, err))
		status = look_at_parts(g, is_session, err);
	if (status < 0)
		return status;
	struct weft_followed *all = take_parts(g, err);
	status = all ? join_parts(g, all, err) : WEFT_ENOMEM;
	if (status < 0) {
		weft_followed_destroy(all);
		weft_followers_renew(g);
		return status;
	}
	weft_followed_destroy(g->newest);
	g->newest = all;
	return 1;
}

int weft_followers_look(struct weft_followers *g, const char *const *paths, size_t count, bool is_session, struct weft_error *err)
{
	if (!name_parts(g, paths, count))
		return weft_error_set(err, WEFT_ENOMEM, "out of memory");
	if (!g->is_alone)
		return look_at_several(g, is_session, err);
	struct part *part = &g->parts.items[0];
	weft_follower_set_window(part->follower, g->options.window_ns);
	const int status =
	    shows_newest(&g->options) ? weft_follower_look_newest(part->follower, err) : weft_follower_look(part->follower, err);
	g->generation += status > 0 && g->composition != part->number;
	g->composition = status > 0 ? part->number : g->composition;
	return status;
}

struct weft_followed *weft_followers_take(struct weft_followers *g)
{
	struct weft_followed *taken = g->newest;
	g->newest = NULL;
	return g->is_alone ? weft_follower_take(g->parts.items[0].follower) : taken;
}

/* ---- What is known ---- */

void weft_followers_renew(struct weft_followers *g)
{
	for (size_t i = 0; i < g->parts.count; i++)
		weft_follower_renew(g->parts.items[i].follower);
}

void weft_followers_set_window(struct weft_followers *g, int64_t window_ns)
{
	g->options.window_ns = window_ns;
}

int64_t weft_followers_counted_ns(struct weft_followers *g)
{
	int64_t counted_ns = g->parts.count ? 0 : -1;
	for (size_t i = 0; i < g->options.tally_count; i++)
		weft_tally_clear(&g->options.tallies[i]);
	for (size_t k = 0; k < g->parts.count; k++) {
		const struct part *part = &g->parts.items[k];
		const int64_t own_ns = weft_follower_counted_ns(part->follower);
		counted_ns = own_ns < 0 || counted_ns < 0 ? -1 : weft_max_ns(own_ns, counted_ns);
		for (size_t i = 0; i < g->options.tally_count; i++)
			weft_tally_join(&g->options.tallies[i], &part->tallies[i]);
	}
	return counted_ns;
}

int64_t weft_followers_window(const struct weft_followers *g)
{
	return g->is_alone ? weft_follower_window(g->parts.items[0].follower) : g->window_ns;
}

bool weft_followers_is_filled(const struct weft_followers *g)
{
	return g->is_alone ? weft_follower_is_filled(g->parts.items[0].follower)
			   : weft__window_is_filled(window_events(g), g->in_window, g->since_ns);
}

bool weft_followers_are_followed(const struct weft_followers *g)
{
	return sum(g).is_known;
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
