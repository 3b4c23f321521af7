/* view.c: implements weft view: starts the window, which is a separate program, so that the command itself needs no display.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "inherited.h"
#include "xen/domain.h"

#define PROGRAM "weft-view"

/* Runs weft-view from the folder of this command, or else from the PATH. */
void cli_exec_window(char **argv)
{
	argv[0] = (char *)PROGRAM;
	cli_restore_inherited();
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

bool cli_find_window(char *path, size_t size)
{
	const ssize_t length = readlink("/proc/self/exe", path, size);
	const char *slash = length > 0 && (size_t)length < size ? memrchr(path, '/', (size_t)length) : NULL;
	if (slash && (size_t)(slash + 1 - path) + sizeof PROGRAM <= size) {
		memcpy(path + (slash + 1 - path), PROGRAM, sizeof PROGRAM);
		if (access(path, X_OK) == 0)
			return true;
	}
	const char *folders = getenv("PATH");
	while (folders && *folders) {
		const size_t n = strcspn(folders, ":");
		snprintf(path, size, "%.*s/%s", (int)n, folders, PROGRAM);
		if (n > 0 && access(path, X_OK) == 0)
			return true;
		folders += n + (folders[n] != 0);
	}
	return false;
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
		"show the time and the promise of this link, which weft explain --json prints and viewers copy"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	if (!cli_has_display())
		return cli_fail_verb("view", "no display; use weft html TRACE -o page.html to make a page for browsers");
	for (int i = 0; i < args->argc; i++) {
		struct stat st;
		if (strcmp(args->argv[i], "-") != 0 && !domain_is_path(args->argv[i]) && stat(args->argv[i], &st) != 0)
			return cli_fail("%s: %s", args->argv[i], strerror(errno));
	}
	char **argv = calloc((size_t)args->argc + 6, sizeof *argv);
	if (!argv)
		return cli_fail_verb("view", "out of memory");
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
		return cli_fail_verb(
		    "view", "" PROGRAM " is not installed; use weft html TRACE -o page.html to make a page for browsers");
	return cli_fail_verb("view", "" PROGRAM " cannot start: %s", strerror(why));
}
