/* follow.c: implements --follow, by which verbs read traces while programs record them.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli.h"
#include "model/followers.h"
#include "trace/multi_open.h"

/* Interval between two looks at the traces, short enough to show an event within a tenth of a second. */
#define POLL_NS INT64_C(50000000)
enum { CPU_SHARE_DIVISOR = 10 }; /* complete reads use at most one CPU divided by this number */

static volatile sig_atomic_t stopped;

static void request_stop(int signal)
{
	(void)signal;
	stopped = 1;
}

struct following {
	struct open_plan *plan; /* plan for the current traces of the operands */
	struct weft_followers *followers;
	struct weft_followed_model *followed; /* owner of the model that was shown last */
	/* input of a complete read, if the windows of the traces cannot be joined */
	struct cli_input whole;
	uint64_t fingerprint;
	int64_t next_read_ns;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void free_shown(struct following *l)
{
	weft_followed_model_destroy(l->followed);
	cli_close(&l->whole);
	l->followed = NULL;
	l->whole = (struct cli_input){.trace = NULL};
}

/* Reads the traces completely, with at most a tenth of a CPU. */
static int read_whole(struct following *l, const struct weft_model_options *options, bool is_last, struct weft_error *err)
{
	const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t now = weft_multi_fingerprint(l->plan->paths.items, l->plan->paths.count);
	struct cli_input fresh = {.trace = NULL};
	if ((l->whole.model && now == l->fingerprint) || (!is_last && began_ns < l->next_read_ns))
		return 0;
	int status = open_run(&fresh.trace, l->plan, err);
	if (status == WEFT_OK)
		status = weft_model_build(&fresh.model, fresh.trace, options, err);
	l->next_read_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * CPU_SHARE_DIVISOR;
	if (status < 0) {
		cli_close(&fresh);
		return status;
	}
	free_shown(l);
	l->whole = fresh;
	l->fingerprint = now;
	return 1;
}

static int refresh_model(
    struct following *l, const struct weft_model_options *options, bool is_last, struct cli_update *out, struct weft_error *err)
{
	const struct open_plan *plan = l->plan;
	int status = weft_followers_refresh(l->followers, plan->paths.items, plan->paths.count, open_has_session(plan), err);
	if (status > 0) {
		struct weft_followed_model *detached = weft_followers_detach(l->followers);
		if (!detached)
			return weft_error_set(err, WEFT_ENOMEM, "out of memory");
		free_shown(l);
		l->followed = detached;
	} else if (status < 0 && plan->paths.count > 1)
		status = read_whole(l, options, is_last, err);
	if (status > 0)
		*out = (struct cli_update){
		    l->followed ? l->followed->model : l->whole.model, weft_followers_stats_span_ns(l->followers)};
	return status;
}

/* Refreshes the model until the recordings have ended.  Returns -1 or an exit status. */
static int follow_until_end(struct following *l, const struct weft_model_options *options,
    int (*show)(void *ctx, const struct cli_update *update), void *ctx)
{
	struct weft_error err;
	bool has_shown = false;
	for (int exit = -1;;) {
		struct cli_update update;
		const int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (!open_reclassify(l->plan))
			return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
		const bool is_recorded = weft_multi_is_recorded(l->plan->paths.items, l->plan->paths.count);
		const int status = refresh_model(l, options, !is_recorded, &update, &err);
		if (status > 0) {
			has_shown = true;
			exit = show(ctx, &update);
		}
		/* A trace that has just been created may be unreadable for a moment, which is no error. */
		if (status < 0 && !is_recorded && !has_shown)
			return cli_fail_error(&err);
		if (exit >= 0 || !is_recorded || stopped || !cli_stdout_ok())
			return exit;
		const int64_t rest_ns = weft_follower_rest_ns(clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
		const struct timespec pause = {0, status > 0 ? weft_min_ns(rest_ns, POLL_NS) : POLL_NS};
		nanosleep(&pause, NULL);
	}
}

static int check_plan(struct open_plan *plan)
{
	plan->is_lenient = true;
	for (size_t i = 0; i < plan->operands.count; i++) {
		const char *path = plan->operands.items[i];
		if (open_class_of(path) == OPEN_PROCESS)
			return cli_fail("process %s has no trace in a directory; use weft top", path);
		if (access(path, F_OK) != 0)
			return cli_fail("%s: %s", path, strerror(errno));
	}
	return -1;
}

int cli_follow(const struct cli_args *args, const struct weft_follower_options *options,
    int (*show)(void *ctx, const struct cli_update *update), void *ctx)
{
	const struct sigaction action = {.sa_handler = request_stop};
	struct following l = {.followed = NULL};
	struct weft_error err;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	int exit = open_classify(&l.plan, args->argv, args->argc, &err) < 0 ? cli_fail_error(&err) : check_plan(l.plan);
	if (exit < 0 && weft_followers_open(&l.followers, options, &err) < 0)
		exit = cli_fail_error(&err);
	if (exit < 0)
		exit = follow_until_end(&l, &options->model, show, ctx);
	free_shown(&l);
	weft_followers_close(l.followers);
	open_plan_destroy(l.plan);
	return exit;
}
