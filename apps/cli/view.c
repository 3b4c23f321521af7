/* view.c: weft view: opens windows, which are a program of their own, so that the command needs no display.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "xen/domain.h"

#define PROGRAM "weft-view"

/* Beside this command, wherever it is installed, or else in the PATH. */
void cli_exec_window(char **argv)
{
	argv[0] = (char *)PROGRAM;
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof path - sizeof PROGRAM);
	char *slash = len > 0 ? memrchr(path, '/', (size_t)len) : NULL;
	if (slash) {
		memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
		execv(path, argv);
		if (errno != ENOENT)
			return;
	}
	execvp(PROGRAM, argv);
}

bool cli_has_display(void)
{
	static const char *const names[] = {"WAYLAND_DISPLAY", "DISPLAY"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return true;
	}
	return false;
}

int cli_view(struct cli_args *args)
{
	bool compare = false;
	const char *place = NULL;
	const struct cli_option options[] = {
	    CLI_OPTION_COMPARE(&compare),
	    {"place", 0, CLI_TEXT, &place, "LINK",
		"goes to this place: a link of weft explain --json, or one copied in a viewer"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!cli_has_display())
		return cli_fail(
		    "view: there is no display here; weft html TRACE -o page.html makes a page that any browser shows");
	for (int i = 0; i < args->argc; i++) {
		struct stat st;
		if (strcmp(args->argv[i], "-") != 0 && !domain_is(args->argv[i]) && stat(args->argv[i], &st) != 0)
			return cli_fail("%s: %s", args->argv[i], strerror(errno));
	}
	char **argv = calloc((size_t)args->argc + 6, sizeof *argv);
	if (!argv)
		return cli_fail("view: out of memory");
	int n = 1;
	argv[n++] = (char *)(compare ? "--compare" : "--together");
	if (place) {
		argv[n++] = (char *)"--place";
		argv[n++] = (char *)place;
	}
	argv[n++] = (char *)"--";
	memcpy(argv + n, args->argv, (size_t)args->argc * sizeof *argv);
	cli_exec_window(argv);
	int why = errno;
	free(argv);
	if (why == ENOENT)
		return cli_fail(
		    "view: " PROGRAM " is not installed; weft html TRACE -o page.html makes a page that any browser shows");
	return cli_fail("view: " PROGRAM " cannot be started: %s", strerror(why));
}
