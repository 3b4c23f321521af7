/* follow.c: verbs that go on looking at traces while they are recorded: --follow.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli.h"
#include "trace/follow.h"
#include "trace/join.h"
#include "trace/several.h"

/* Whoever looks so often shows an event within a tenth of a second. */
#define EVERY_NS INT64_C(50000000)
enum { SHARE = 10 }; /* several take this part of a processor at most */

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

struct followed {
	char *path;
	struct weft_follower *follower;
	struct weft_tally *tallies;
};

/* Several, read as one. */
struct several {
	struct weft_trace *trace;
	struct weft_model *model;
	WEFT_VEC(struct weft_followed *) parts; /* on what trace and model live; their traces are the joined one's */
};

struct following {
	session_paths operands;
	const struct weft_follower_options *options;
	session_paths paths; /* of the operands, as they are now */
	WEFT_VEC(struct followed) all;
	struct several several; /* as they were read last */
	uint64_t fingerprint;
	int64_t not_before_ns;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void forget(struct followed *f)
{
	weft_follower_close(f->follower);
	free(f->tallies);
	free(f->path);
}

static struct followed *follow(struct following *l, const char *path, struct weft_error *err)
{
	struct weft_follower_options options = *l->options;
	for (size_t i = 0; i < l->all.count; i++)
		if (strcmp(l->all.items[i].path, path) == 0)
			return &l->all.items[i];
	struct followed f = {.path = strdup(path), .tallies = calloc(options.tally_count + 1, sizeof *f.tallies)};
	for (size_t i = 0; f.tallies && i < options.tally_count; i++)
		f.tallies[i] = l->options->tallies[i];
	options.tallies = f.tallies;
	if (l->paths.count > 1) {
		options.makes_no_model = true;
		options.window_events = 0;
	}
	struct followed *fresh = f.path && f.tallies && weft_follower_open(&f.follower, path, &options, err) == WEFT_OK
				     ? weft_vec_push(&l->all)
				     : NULL;
	if (fresh) {
		*fresh = f;
	} else {
		weft_error_set(err, WEFT_ENOMEM, "out of memory");
		forget(&f);
	}
	return fresh;
}

/* What all of them have counted; how far back, as cli_newest has it. */
static int64_t sum(const struct following *l)
{
	int64_t counted_ns = l->all.count ? 0 : -1;
	for (size_t i = 0; i < l->options->tally_count; i++)
		weft_tally_clear(&l->options->tallies[i]);
	for (size_t k = 0; k < l->all.count; k++) {
		const int64_t own_ns = weft_follower_counted_ns(l->all.items[k].follower);
		counted_ns = own_ns < 0 || counted_ns < 0 ? -1 : own_ns > counted_ns ? own_ns : counted_ns;
		for (size_t i = 0; i < l->options->tally_count; i++)
			weft_tally_join(&l->options->tallies[i], &l->all.items[k].tallies[i]);
	}
	return counted_ns;
}

static int look_at_one(struct following *l, struct cli_newest *out, struct weft_error *err)
{
	struct followed *f = follow(l, l->paths.items[0], err);
	const int status = f ? weft_follower_look(f->follower, err) : WEFT_ENOMEM;
	if (f && status > 0)
		*out = (struct cli_newest){weft_follower_model(f->follower), sum(l)};
	return status;
}

static void close_several(struct several *s)
{
	weft_model_destroy(s->model);
	weft_trace_close(s->trace);
	for (size_t i = 0; i < s->parts.count; i++)
		weft_followed_destroy(s->parts.items[i]);
	weft_vec_free(&s->parts);
}

/* Joins what each of them has, and what it has forgotten that still holds. */
static int join_parts(struct several *out, struct following *l, struct weft_model_options *options, struct weft_error *err)
{
	WEFT_VEC(struct weft_trace *) traces = {0};
	int status = WEFT_OK;
	char name[300];
	for (size_t i = 0; i < l->paths.count && status >= 0; i++) {
		struct followed *f = follow(l, l->paths.items[i], err);
		if (!f)
			return WEFT_ENOMEM;
		weft_follower_renew(f->follower);
		weft_follower_set_window(f->follower, INT64_MAX); /* also of one that was alone at first */
		status = weft_follower_look(f->follower, err);
		struct weft_followed *taken = status > 0 ? weft_follower_take(f->follower) : NULL;
		struct weft_followed **part = taken ? weft_vec_push(&out->parts) : NULL;
		struct weft_trace **trace = part ? weft_vec_push(&traces) : NULL;
		if (!trace) {
			weft_followed_destroy(part ? NULL : taken);
			status = status < 0 ? status : WEFT_ENOMEM;
			continue;
		}
		*part = taken;
		*trace = taken->trace;
		weft_trace_rewind(taken->trace);
		options->knows_pending &= taken->is_told;
	}
	if (status >= 0)
		status = weft_trace_join(&out->trace, traces.items, traces.count,
		    weft_several_name(name, sizeof name, (const char *const *)l->operands.items, l->operands.count), err);
	for (size_t i = 0; status == WEFT_OK && i < out->parts.count; i++)
		out->parts.items[i]->trace = NULL;
	weft_vec_free(&traces);
	return status;
}

static int read_several(struct several *out, struct following *l, struct weft_error *err)
{
	struct weft_model_options options = l->options->model;
	options.knows_pending = true;
	int status = join_parts(out, l, &options, err);
	if (status < 0) { /* of other formats; what ties the clocks of hosts is not there any more */
		struct cli_input input;
		close_several(out);
		*out = (struct several){.trace = NULL};
		options.knows_pending = false;
		status = cli_open_quietly(&input, l->operands.items, (int)l->operands.count, err);
		out->trace = status == WEFT_OK ? input.trace : NULL;
	}
	if (status == WEFT_OK)
		status = weft_model_build(&out->model, out->trace, &options, err);
	if (status < 0)
		close_several(out);
	return status;
}

static int look_at_several(struct following *l, bool is_last, struct cli_newest *out, struct weft_error *err)
{
	const char *const *paths = (const char *const *)l->paths.items;
	const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct several fresh = {.trace = NULL};
	const uint64_t now = weft_several_fingerprint(paths, l->paths.count);
	if (l->several.model && now == l->fingerprint)
		return 0;
	if (!is_last && began_ns < l->not_before_ns) {
		/* No ring goes round meanwhile. */
		for (size_t i = 0; i < l->all.count; i++)
			(void)weft_follower_skip(l->all.items[i].follower, err);
		return 0;
	}
	const int status = read_several(&fresh, l, err);
	l->not_before_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SHARE;
	if (status < 0)
		return status;
	close_several(&l->several);
	l->several = fresh;
	l->fingerprint = now;
	*out = (struct cli_newest){fresh.model, sum(l)};
	return 1;
}

/* Looks until the recording has ended; -1, or an exit status. */
static int look_on(struct following *l, int (*show)(void *ctx, const struct cli_newest *newest), void *ctx)
{
	struct weft_error err;
	bool has_shown = false;
	for (int exit = -1;;) {
		struct cli_newest newest;
		const int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		session_paths_free(&l->paths);
		if (!session_expand(&l->paths, l->operands.items, (int)l->operands.count))
			return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
		const bool is_recorded = weft_several_are_recorded((const char *const *)l->paths.items, l->paths.count);
		const int status =
		    l->paths.count == 1 ? look_at_one(l, &newest, &err) : look_at_several(l, !is_recorded, &newest, &err);
		if (status > 0) {
			has_shown = true;
			exit = show(ctx, &newest);
		}
		/* One that is being begun cannot be read yet. */
		if (status < 0 && !is_recorded && !has_shown)
			return cli_fail_error(&err);
		if (exit >= 0 || !is_recorded || stopped || !cli_stdout_ok())
			return exit;
		const int64_t rest_ns = weft_follower_rest_ns(clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
		const struct timespec pause = {0, status > 0 ? weft_min_ns(rest_ns, EVERY_NS) : EVERY_NS};
		nanosleep(&pause, NULL);
	}
}

static int take_operands(session_paths *out, const struct cli_args *args)
{
	if (!cli_find_recorded(out, args->argv, args->argc))
		return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	for (size_t i = 0; i < out->count; i++) {
		const char *path = out->items[i];
		if (cli_is_process(path))
			return cli_fail("process %s records into no directory: weft top looks at its memory", path);
		if (access(path, F_OK) != 0)
			return cli_fail("%s: %s", path, strerror(errno));
	}
	return -1;
}

int cli_follow(const struct cli_args *args, const struct weft_follower_options *options,
    int (*show)(void *ctx, const struct cli_newest *newest), void *ctx)
{
	const struct sigaction action = {.sa_handler = stop};
	struct following l = {.options = options};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	int exit = take_operands(&l.operands, args);
	if (exit < 0)
		exit = look_on(&l, show, ctx);
	for (size_t i = 0; i < l.all.count; i++)
		forget(&l.all.items[i]);
	weft_vec_free(&l.all);
	session_paths_free(&l.paths);
	session_paths_free(&l.operands);
	close_several(&l.several);
	return exit;
}
