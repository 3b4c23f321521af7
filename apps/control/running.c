/* running.c: implements weft record --pid, which records a program that already runs.
 *
 * The recorder is loaded by ptrace (src/attach), and then stands by: weft record --pid is weft on with a load before, and weft
 * off with an undo behind.  SPDX-License-Identifier: ISC */
#include "running.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/attach.h"
#include "cli/feature_list.h"
#include "ctf/foreign.h"
#include "features-built.h"
#include "look/look.h"

/* Time for the next event of the program. */
#define BEGIN_NS INT64_C(2000000000)
#define END_NS INT64_C(10000000000)

int running_parse_pid(const char *verb, const char *operand, long *pid)
{
	uint64_t number = 0;
	if (!cli_parse_number(operand, false, &number) || number == 0 || number > INT_MAX)
		return cli_fail_verb(verb, "not a process id: %s", operand);
	*pid = (long)number;
	return -1;
}

void running_default_directory(long pid, char *out, size_t size)
{
	char name[64];
	weft_look_program_name(name, sizeof name, pid);
	for (char *c = name; *c; c++)
		if ((unsigned char)*c <= ' ' || strchr("/,%", *c) || *c == 0x7f)
			*c = '_';
	snprintf(out, size, "%s.weft", name[0] ? name : "program");
}

/* Makes the directory, which the process itself writes to: it belongs to the user of the process. */
static int prepare_for_user(const char *verb, long pid, const char *directory)
{
	char path[48];
	struct stat process, folder;
	snprintf(path, sizeof path, "/proc/%ld", pid);
	if (stat(path, &process))
		return cli_fail_verb(verb, "no process %ld", pid);
	if (mkdir(directory, 0700) && errno != EEXIST)
		return cli_fail_verb(verb, "%s: %s", directory, strerror(errno));
	if (geteuid() == 0 && process.st_uid != 0 && lstat(directory, &folder) == 0 && S_ISDIR(folder.st_mode) &&
	    folder.st_uid == 0 && lchown(directory, process.st_uid, process.st_gid))
		return cli_fail_verb(verb, "%s: %s", directory, strerror(errno));
	return CLI_OK;
}

/* Prints "3.2 ms" for a duration. */
static void format_ms(char out[32], int64_t ns)
{
	snprintf(out, 32, "%.1f ms", (double)ns / 1e6);
}

int running_attach(const char *verb, long pid, const char *directory, const struct cli_ring *ring, const char *js)
{
	char library[PATH_MAX], session[PATH_MAX], borrowed[32], stopped[32];
	struct weft_attach_result result;
	struct weft_error err;
	if (!foreign_find_installed(library, "libweft-hook.so"))
		return WEFT_HOOK_BUILT ? cli_fail_verb(verb, "libweft-hook.so is not installed; install weft again")
				       : cli_fail_without(verb, CLI_FEATURE_RECORD);
	int exit = prepare_for_user(verb, pid, directory);
	if (exit != CLI_OK)
		return exit;
	char *absolute = realpath(directory, NULL);
	int length = absolute ? snprintf(session, sizeof session, "%s,standby", absolute) : PATH_MAX;
	if (absolute && length < PATH_MAX && js)
		length += snprintf(session + length, sizeof session - (size_t)length, ",js=%s", js);
	if (absolute && length < PATH_MAX && ring->stack_count)
		length += snprintf(session + length, sizeof session - (size_t)length, ",stacks=%" PRIu64, ring->stack_count);
	free(absolute);
	if (length >= PATH_MAX)
		return cli_fail_verb(verb, "the path is too long: %s", directory);
	if (weft_attach_load(&result, pid, library, session, &err) < 0) {
		rmdir(directory); /* if it is empty */
		return cli_fail_verb(verb, "%s", err.what);
	}
	format_ms(borrowed, result.borrowed_ns);
	format_ms(stopped, result.stopped_ns);
	cli_note("attached to process %ld: one of its OS threads was borrowed for %s, and all %" PRIu32 " stood still for %s",
	    pid, borrowed, result.threads, stopped);
	if (result.left_out[0])
		cli_note("%s are not recorded, because the program started without weft", result.left_out);
	if (result.written < result.patches)
		cli_note("%" PRIu32 " of %" PRIu32 " calls are not recorded, because their code changed meanwhile",
		    result.patches - result.written, result.patches);
	return CLI_OK;
}

/* Returns whether the process has ended, also if its parent does not know that yet. */
static bool is_gone(long pid)
{
	const int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct pollfd end = {.fd = process, .events = POLLIN};
	const bool is_it = process < 0 ? errno == ESRCH : poll(&end, 1, 0) == 1;
	if (process >= 0)
		close(process);
	return is_it;
}

/* Restores the program's own code.  Prints an error if that fails. */
static int undo(const char *verb, long pid)
{
	char stopped[32];
	struct weft_attach_result result;
	struct weft_error err;
	if (weft_attach_undo(&result, pid, &err) < 0)
		return is_gone(pid) ? CLI_OK : cli_fail_verb(verb, "%s", err.what);
	format_ms(stopped, result.stopped_ns);
	cli_note("process %ld calls its own functions again; all %" PRIu32 " OS threads stood still for %s", pid, result.threads,
	    stopped);
	return CLI_OK;
}

int running_end(const char *verb, long pid, int64_t timeout_ns)
{
	const struct weft_standby_request off = {.verb = WEFT_STANDBY_OFF};
	bool is_on = false;
	if (standby_find(pid, &is_on) && is_on) {
		const int exit = standby_send(pid, &off, timeout_ns > END_NS ? timeout_ns : END_NS);
		if (exit != CLI_OK)
			return exit;
		/* A program without the recorder's wrappers would never end its trace. */
		if (standby_find(pid, &is_on) && is_on) {
			cli_note("process %ld still calls the recorder; run weft off %ld again after its next event", pid, pid);
			return CLI_OK;
		}
	}
	return is_gone(pid) ? CLI_OK : undo(verb, pid);
}

static volatile sig_atomic_t has_ended;

static void end_recording(int number)
{
	has_ended = true;
}

/* Waits until a signal asks for the end, or the process ends. */
static void wait_for_end(long pid)
{
	sigset_t ends, before;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	const struct sigaction action = {.sa_handler = end_recording};
	struct sigaction old[3];
	sigprocmask(SIG_BLOCK, &ends, &before);
	sigaction(SIGINT, &action, &old[0]);
	sigaction(SIGTERM, &action, &old[1]);
	sigaction(SIGHUP, &action, &old[2]);
	const int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct pollfd wait = {.fd = process, .events = POLLIN};
	while (!has_ended && ppoll(&wait, process >= 0, NULL, &before) <= 0)
		;
	if (process >= 0)
		close(process);
	sigaction(SIGINT, &old[0], NULL);
	sigaction(SIGTERM, &old[1], NULL);
	sigaction(SIGHUP, &old[2], NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int running_record(long pid, const char *directory, const struct cli_ring *ring, const char *js)
{
	const struct weft_standby_request on = standby_request_on(ring);
	bool is_on = false;
	if (standby_find(pid, &is_on) && is_on)
		return cli_fail_verb("record", "process %ld is recording already; weft off %ld ends that", pid, pid);
	if (standby_find(pid, &is_on) && weft_attach_state(pid) == WEFT_ATTACH_NONE)
		return cli_fail_verb("record", "process %ld stands by; weft on %ld starts its recording", pid, pid);
	int exit = running_attach("record", pid, directory, ring, js);
	if (exit != CLI_OK)
		return exit;
	exit = standby_send(pid, &on, BEGIN_NS);
	if (exit == CLI_OK) {
		cli_note("press Ctrl-C to end the recording into %s; the program goes on", directory);
		wait_for_end(pid);
	}
	const int ended = running_end("record", pid, END_NS);
	return exit > ended ? exit : ended;
}
