/* record.c: weft record: runs a command that records itself.  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "trace/trace.h"

/* WEFT_TRACE for a directory, whose name is made absolute: the command may be a script that goes elsewhere first. */
static int set_environment(const char *out, const char *size, const char *mode, const char *packets, bool overwrite)
{
	char *here = out[0] == '/' ? NULL : getcwd(NULL, 0), *value;
	int length = asprintf(&value, "%s%s%s%s%s%s%s%s%s%s", here ? here : "", here ? "/" : "", out, size ? ",size=" : "",
	    size ? size : "", mode ? ",mode=" : "", mode ? mode : "", packets ? ",packets=" : "", packets ? packets : "",
	    overwrite ? ",overwrite" : "");
	free(here);
	if (length < 0)
		return cli_fail("record: %s", weft_status_string(WEFT_ENOMEM));
	setenv("WEFT_TRACE", value, 1);
	free(value);
	return -1;
}

/* A window that outlives this command. */
static void open_window(const char *trace)
{
	if (fork() != 0)
		return;
	char *argv[] = {NULL, (char *)"--", (char *)trace, NULL};
	setsid();
	unsetenv("WEFT_TRACE");
	cli_exec_window(argv);
	cli_note("record: no window can be opened: %s", strerror(errno));
	_exit(CLI_TROUBLE);
}

/* Until the command ends, or has begun to record: then there is something to see. */
static pid_t wait_for_trace(pid_t child, const char *out, int *status)
{
	char metadata[4096];
	pid_t ended;
	snprintf(metadata, sizeof metadata, "%s/metadata", out);
	while ((ended = waitpid(child, status, WNOHANG)) == 0 && access(metadata, F_OK) != 0)
		usleep(20000);
	if (access(metadata, F_OK) == 0)
		open_window(out);
	return ended;
}

/* The command's exit status, as a shell has it; a keyboard's signals are the command's.  `shown`: the trace that is looked at
 * meanwhile, or NULL. */
static int run(char **command, const char *shown)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	pid_t child = fork();
	if (child == 0) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		execvp(command[0], command);
		int error = errno;
		cli_fail("%s: %s", command[0], strerror(error));
		_exit(error == ENOENT ? 127 : 126);
	}
	int status = 0;
	pid_t ended = child < 0 ? -1 : shown ? wait_for_trace(child, shown, &status) : 0;
	if (ended == 0)
		ended = waitpid(child, &status, 0);
	int error = errno;
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	if (ended < 0)
		return cli_fail("%s: %s", command[0], strerror(error));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void tell_recorded(const char *out, const char *command)
{
	struct weft_trace *trace;
	struct weft_error err;
	const struct weft_event *events;
	size_t count;
	uint64_t all = 0;
	int status = weft_trace_open(&trace, out, &err);
	if (status == WEFT_ENOENT) {
		cli_note("%s recorded nothing: does it link libweft-record?", command);
		return;
	}
	if (status < 0) {
		cli_fail_error(&err);
		return;
	}
	while (weft_trace_next(trace, &events, &count) == 1)
		all += count;
	const struct weft_trace_info *info = weft_trace_info(trace);
	cli_note("%s: %" PRIu64 " events of %zu OS threads, %" PRIu64 " lost", out, all, info->stream_count, cli_lost(info));
	weft_trace_close(trace);
}

int cli_record(struct cli_args *args)
{
	const char *out = NULL, *size = NULL, *mode = NULL, *packets = NULL;
	bool overwrite = false, view = false;
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &out, "DIR", "where to; COMMAND.weft unless said otherwise; %p is the process id"},
	    {"size", 0, CLI_TEXT, &size, "64M", "of the ring of each OS thread, or of all that grows"},
	    {"mode", 0, CLI_TEXT, &mode, "MODE", "ring keeps the newest events, grow keeps all"},
	    {"packets", 0, CLI_TEXT, &packets, "N", "of each ring"},
	    {"overwrite", 0, CLI_FLAG, &overwrite, NULL, "replaces the trace that is there"},
	    {"view", 0, CLI_FLAG, &view, NULL, "opens a window that follows what is recorded"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	args->argv[args->argc] = NULL;
	const char *slash = strrchr(args->argv[0], '/');
	char name[256];
	snprintf(name, sizeof name, "%s.weft", slash ? slash + 1 : args->argv[0]);
	if (!out)
		out = name;
	if (strchr(out, ','))
		return cli_fail("record: %s: a trace's name has no comma in it", out);
	if (!overwrite && access(out, F_OK) == 0)
		return cli_fail("record: %s: exists already; --overwrite replaces it", out);
	if (view && strstr(out, "%p"))
		return cli_fail("record: --view needs a trace whose name is known: without %%p");
	if (view && !cli_has_display())
		return cli_fail(
		    "record: --view needs a display, and there is none here; weft serve %s follows in a browser", out);
	exit = set_environment(out, size, mode, packets, overwrite);
	if (exit >= 0)
		return exit;
	exit = run(args->argv, view ? out : NULL);
	if (!strstr(out, "%p") && exit != 126 && exit != 127)
		tell_recorded(out, args->argv[0]);
	return exit;
}
