/* follow.c: verbs that go on looking at traces while they are recorded: --follow.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "cli.h"
#include "model/followers.h"
#include "trace/several.h"

/* Whoever looks so often shows an event within a tenth of a second. */
#define EVERY_NS INT64_C(50000000)
enum { SHARE = 10 }; /* what is read anew takes this part of a processor at most */

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

struct following {
	session_paths operands, paths; /* as named, and what they are now */
	struct weft_followers *followers;
	struct weft_followed *followed; /* whose model was shown last, */
	/* or what could not be followed as one, and was read anew as a whole */
	struct cli_input whole;
	uint64_t fingerprint;
	int64_t not_before_ns;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void forget_shown(struct following *l)
{
	weft_followed_destroy(l->followed);
	cli_close(&l->whole);
	l->followed = NULL;
	l->whole = (struct cli_input){.trace = NULL};
}

/* As often as it takes a tenth of a processor. */
static int read_whole(struct following *l, const struct weft_model_options *options, bool is_last, struct weft_error *err)
{
	const int64_t began_ns = clock_ns(CLOCK_MONOTONIC), used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t now = weft_several_fingerprint((const char *const *)l->paths.items, l->paths.count);
	struct cli_input fresh = {.trace = NULL};
	if ((l->whole.model && now == l->fingerprint) || (!is_last && began_ns < l->not_before_ns))
		return 0;
	int status = cli_open_quietly(&fresh, l->operands.items, (int)l->operands.count, err);
	if (status == WEFT_OK)
		status = weft_model_build(&fresh.model, fresh.trace, options, err);
	l->not_before_ns = began_ns + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns) * SHARE;
	if (status < 0) {
		cli_close(&fresh);
		return status;
	}
	forget_shown(l);
	l->whole = fresh;
	l->fingerprint = now;
	return 1;
}

static int look_at(
    struct following *l, const struct weft_model_options *options, bool is_last, struct cli_newest *out, struct weft_error *err)
{
	const bool is_session = l->paths.count > l->operands.count;
	int status = weft_followers_look(l->followers, (const char *const *)l->paths.items, l->paths.count, is_session, err);
	if (status > 0) {
		struct weft_followed *taken = weft_followers_take(l->followers);
		if (!taken)
			return weft_error_set(err, WEFT_ENOMEM, "out of memory");
		forget_shown(l);
		l->followed = taken;
	} else if (status < 0 && l->paths.count > 1)
		status = read_whole(l, options, is_last, err);
	if (status > 0)
		*out = (struct cli_newest){
		    l->followed ? l->followed->model : l->whole.model, weft_followers_counted_ns(l->followers)};
	return status;
}

/* Looks until the recording has ended; -1, or an exit status. */
static int look_on(struct following *l, const struct weft_model_options *options,
    int (*show)(void *ctx, const struct cli_newest *newest), void *ctx)
{
	struct weft_error err;
	bool has_shown = false;
	for (int exit = -1;;) {
		struct cli_newest newest;
		const int64_t used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		session_paths_free(&l->paths);
		if (!session_expand(&l->paths, l->operands.items, (int)l->operands.count, NULL))
			return cli_fail("%s", weft_status_string(WEFT_ENOMEM));
		const bool is_recorded = weft_several_are_recorded((const char *const *)l->paths.items, l->paths.count);
		const int status = look_at(l, options, !is_recorded, &newest, &err);
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
	struct following l = {.followed = NULL};
	struct weft_error err;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	int exit = take_operands(&l.operands, args);
	if (exit < 0 && weft_followers_open(&l.followers, options, &err) < 0)
		exit = cli_fail_error(&err);
	if (exit < 0)
		exit = look_on(&l, &options->model, show, ctx);
	forget_shown(&l);
	weft_followers_close(l.followers);
	session_paths_free(&l.paths);
	session_paths_free(&l.operands);
	return exit;
}
