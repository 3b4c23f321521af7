/* follow.c: verbs that go on looking at a trace while it is recorded: --follow.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "trace/follow.h"

/* Whoever looks so often shows an event within a tenth of a second. */
#define EVERY_NS 50000000

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Looks until the recording has ended; -1, or an exit status. */
static int look_on(
    struct weft_follower *follower, const char *path, int (*show)(void *ctx, struct weft_follower *follower), void *ctx)
{
	const struct timespec pause = {0, EVERY_NS};
	struct weft_error err;
	bool has_shown = false;
	for (int exit = -1;;) {
		const bool is_recorded = weft_trace_is_recorded(path);
		const int status = weft_follower_look(follower, &err);
		if (status > 0) {
			has_shown = true;
			exit = show(ctx, follower);
		}
		/* One that is being begun cannot be read yet. */
		if (status < 0 && !is_recorded && !has_shown)
			return cli_fail_error(&err);
		if (exit >= 0 || !is_recorded || stopped || !cli_stdout_ok())
			return exit;
		nanosleep(&pause, NULL);
	}
}

int cli_follow(const struct cli_args *args, const struct weft_follower_options *options,
    int (*show)(void *ctx, struct weft_follower *follower), void *ctx)
{
	const struct sigaction action = {.sa_handler = stop};
	struct weft_follower *follower;
	struct weft_error err;
	if (args->argc != 1)
		return cli_fail("--follow takes one trace");
	if (weft_follower_open(&follower, args->argv[0], options, &err) < 0)
		return cli_fail_error(&err);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	const int exit = look_on(follower, args->argv[0], show, ctx);
	weft_follower_close(follower);
	return exit;
}
