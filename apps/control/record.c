/* record.c: implements weft record, which runs an unmodified or linked command and records the command and its children.
 *
 * LD_PRELOAD makes the loader load libweft-hook.so into every program that the command starts, and WEFT_RECORD names the
 * directory in which each process makes its own trace.  Programs without a loader or with another C library ignore LD_PRELOAD;
 * for them WEFT_TRACE is set, which a recorder linked into the program reads.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/queries/check.h"
#include "apps/control/ocaml_rings.h"
#include "apps/control/process_exit.h"
#include "apps/control/profile.h"
#include "apps/control/program.h"
#include "apps/control/running.h"
#include "apps/control/unit.h"
#include "base/named.h"
#include "base/program_file.h"
#include "cli/cli.h"
#include "cli/feature_list.h"
#include "cli/inherited.h"
#include "ctf/foreign.h"
#include "features-built.h"
#include "kernel/flight.h"
#include "kernel/recorder.h"

#define LIBRARY "libweft-hook.so"
/* Name of a link to the folder of the library.  AddressSanitizer's runtime, if it is a library, ends the program unless the name
 * of the library before it contains "libasan.so".  AddressSanitizer checks for libraries that replace functions of libc; our
 * library replaces only functions that the runtime does not replace.  Preloading AddressSanitizer's runtime itself would change
 * the children of the program. */
#define ALIAS "before-libasan.so"

/* Prefix of the library's absolute path in LD_PRELOAD.  Only glibc's loader replaces $LIB by the name of its folder, from which
 * the rest of the prefix leads back to the root.  Another loader, such as musl's, finds no such file and runs the program
 * without the library; a library that needs glibc would end the program.  So every child program is safe, however it is
 * started. */
#ifdef __GLIBC__
#define ONLY_GLIBC "/usr/$LIB/../../../../../../../.."
#else
#define ONLY_GLIBC ""
#endif

enum {
	MAX_LISTED = 12, /* maximum number of traces that are listed one by one */
	MAX_PROFILE_HZ = 10000,
	/* Bytes for each sampled allocation.  A sample costs a few us, as much as thousands of bytes that are allocated. */
	USUAL_MEMORY_PERIOD = 512 << 10,
	MIN_MEMORY_PERIOD = 1 << 10,
	MAX_MEMORY_PERIOD = 1 << 30,
	OPTION_BYTES = 160 /* enough for the options of the recorder */
};

static const char no_memory[] = "out of memory";

struct options {
	const char *out, *rules, *kernel, *unit, *pid;
	struct cli_ring ring;
	bool overwrite, view, explain, is_flight, stands_by, is_profiled;
	const char *profile;          /* --profile */
	uint32_t profile_hz;          /* samples in a second, if all runs are sampled; else 0 */
	const char *js;               /* --js */
	const char *python;           /* --python */
	const char *memory;           /* --memory */
	uint32_t memory_period;       /* bytes for each sampled allocation; 0: none is sampled */
	enum weft_kernel_level level; /* SELF: the highest available */
};

/* ---- Options of the command line ---- */

/* Rejects malformed rules before the command runs, because the command may take long. */
static int check_rules(const char *rules)
{
	char *copy = strdup(rules), *save = NULL;
	int exit = copy ? -1 : cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_rule rule;
	struct weft_error err;
	for (char *text = copy ? strtok_r(copy, " ", &save) : NULL; text && exit < 0; text = strtok_r(NULL, " ", &save))
		if (weft_rule_parse(&rule, text, &err) < 0)
			exit = cli_fail_verb("record", "--check: %s", err.what);
	free(copy);
	return exit;
}

/* Parses the value "own", "all", "flight" or two of these separated by a comma.  Returns false for other values. */
static bool parse_kernel_option(struct options *o)
{
	const char *at = o->kernel;
	o->level = WEFT_LEVEL_SELF;
	while (*at) {
		const size_t length = strcspn(at, ",");
		const char *behind = at + length + (at[length] && at[length + 1]);
		if (length == 6 && !strncmp(at, "flight", length) && !o->is_flight)
			o->is_flight = true;
		else if (length == 3 && !strncmp(at, "own", length) && o->level == WEFT_LEVEL_SELF)
			o->level = WEFT_LEVEL_OWN;
		else if (length == 3 && !strncmp(at, "all", length) && o->level == WEFT_LEVEL_SELF)
			o->level = WEFT_LEVEL_ALL;
		else
			return false;
		at = behind;
	}
	return true;
}

/* Parses the value "off", "auto", "all" or "all,RATE".  Returns false for other values. */
static bool parse_profile_option(struct options *o)
{
	/* A multiple of 1 or 10 ms could follow a timer of the program. */
	enum { USUAL_HZ = 997 };
	uint64_t rate = USUAL_HZ;
	if (strcmp(o->profile, "auto") == 0 || strcmp(o->profile, "off") == 0)
		return true;
	if (strcmp(o->profile, "all") != 0 &&
	    (strncmp(o->profile, "all,", 4) != 0 || !cli_parse_number(o->profile + 4, false, &rate) || !rate ||
		rate > MAX_PROFILE_HZ))
		return false;
	o->profile_hz = (uint32_t)rate;
	return true;
}

/* Parses the number of bytes for each sampled allocation; "" is the default.  Returns false for other values. */
static bool parse_memory_option(struct options *o)
{
	uint64_t bytes = USUAL_MEMORY_PERIOD;
	if (*o->memory && (!cli_parse_number(o->memory, true, &bytes) || bytes < MIN_MEMORY_PERIOD || bytes > MAX_MEMORY_PERIOD))
		return false;
	o->memory_period = (uint32_t)bytes;
	return true;
}

static int fail_memory(const char *value)
{
	return cli_fail_verb("record", "not a size: --memory=%s; use 1K to 1G, such as 512K", value);
}

int cli_ring_check(struct cli_ring *r, const char *verb)
{
	enum { MAX_CALLERS = 16 }; /* WEFT_STACK_MAX of record.h */
	if (r->size && !cli_parse_number(r->size, true, &r->size_bytes))
		return cli_fail_verb(verb, "not a size: --size=%s; use a number of bytes, optionally with K, M or G", r->size);
	if (r->packets && (!cli_parse_number(r->packets, false, &r->packet_count) || r->packet_count > 65536))
		return cli_fail_verb(verb, "not a number: --packets=%s; use 0 to 65536", r->packets);
	if (r->stacks && (!cli_parse_number(r->stacks, false, &r->stack_count) || r->stack_count > MAX_CALLERS))
		return cli_fail_verb(verb, "not a number: --stacks=%s; use 0 to %d", r->stacks, MAX_CALLERS);
	if (r->mode && strcmp(r->mode, "ring") != 0 && strcmp(r->mode, "grow") != 0)
		return cli_fail_verb(verb, "unknown value: --mode=%s; use ring or grow", r->mode);
	return -1;
}

static int check_options(struct options *o)
{
	if (strchr(o->out, ','))
		return cli_fail_verb("record", "comma in the name of a trace: %s", o->out);
	const int exit = cli_ring_check(&o->ring, "record");
	if (exit >= 0)
		return exit;
	if (o->kernel && !parse_kernel_option(o))
		return cli_fail_verb(
		    "record", "unknown value: --kernel=%s; use own, all, flight, own,flight or all,flight", o->kernel);
	if (o->kernel && strstr(o->out, "%p"))
		return cli_fail_verb("record", "--kernel needs one directory for all processes; use -o without %%p");
	if (o->kernel && o->stands_by)
		return cli_fail_verb("record", "--kernel and --standby cannot be combined");
	if (o->profile && !parse_profile_option(o))
		return cli_fail_verb("record",
		    "unknown value: --profile=%s; use off, auto, all or all,RATE with 1 to %d samples a second", o->profile,
		    MAX_PROFILE_HZ);
	const bool wants_profile = o->profile && strcmp(o->profile, "off") != 0;
	if (wants_profile && strstr(o->out, "%p"))
		return cli_fail_verb("record", "--profile needs one directory for all processes; use -o without %%p");
	if (wants_profile && !profile_is_supported())
		return cli_fail_verb("record", "--profile needs x86-64, and a weft that was built with libdw");
	if (o->memory && !parse_memory_option(o))
		return fail_memory(o->memory);
	if (o->js && strcmp(o->js, "off") != 0 && strcmp(o->js, "http") != 0 && strcmp(o->js, "promises") != 0 &&
	    strcmp(o->js, "all") != 0)
		return cli_fail_verb("record", "unknown value: --js=%s; use off, http, promises or all", o->js);
	if (o->python && strcmp(o->python, "all") != 0 && strcmp(o->python, "tasks") != 0 && strcmp(o->python, "off") != 0)
		return cli_fail_verb("record", "unknown value: --python=%s; use all, tasks or off", o->python);
	/* A flight recorder does nothing until it is asked. */
	o->is_profiled = (o->profile ? wants_profile : !o->is_flight) && !strstr(o->out, "%p") && profile_is_supported();
	if (o->view && !cli_has_display())
		return cli_fail_verb("record", "no display for --view; use weft serve %s to follow in a browser", o->out);
	return o->rules ? check_rules(o->rules) : -1;
}

/* Inserts the alias folder into the path of the library, if the alias exists. */
static void insert_alias(char library[PATH_MAX])
{
	char path[PATH_MAX];
	const char *name = strrchr(library, '/');
	const int length = snprintf(path, sizeof path, "%.*s/" ALIAS "%s", (int)(name - library), library, name);
	if (length < (int)sizeof path && access(path, R_OK) == 0)
		memcpy(library, path, (size_t)length + 1);
}

/* Makes the path of the directory absolute, because the command may be a script that changes its directory. */
static char *make_absolute(const char *out)
{
	char *here = out[0] == '/' ? NULL : getcwd(NULL, 0), *path;
	int length = asprintf(&path, "%s%s%s", here ? here : "", here ? "/" : "", out);
	free(here);
	return length < 0 ? NULL : path;
}

/* Formats the options of the recorder, as they follow the directory in WEFT_RECORD and WEFT_TRACE. */
static void format_options(char text[OPTION_BYTES], const struct options *o, bool loads)
{
	size_t n = 0;
	text[0] = 0;
	if (o->ring.size_bytes)
		n += (size_t)snprintf(text, OPTION_BYTES, ",size=%" PRIu64, o->ring.size_bytes);
	if (o->ring.mode)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",mode=%s", o->ring.mode);
	if (o->ring.packet_count)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",packets=%" PRIu64, o->ring.packet_count);
	if (o->ring.stack_count && loads)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",stacks=%" PRIu64, o->ring.stack_count);
	if (o->js)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",js=%s", o->js);
	if (o->memory_period && loads)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",memory=%u", o->memory_period);
	if (o->python)
		n += (size_t)snprintf(text + n, OPTION_BYTES - n, ",python=%s", o->python);
	if (o->stands_by)
		snprintf(text + n, OPTION_BYTES - n, ",standby");
}

/* Finds the hook's library.  Returns -1, or an exit status after printing an error. */
static int find_library(char library[PATH_MAX])
{
	if (!foreign_find_installed(library, LIBRARY))
		return WEFT_HOOK_BUILT
			   ? cli_fail_verb(
				 "record", "" LIBRARY " is not installed, nor in the folder of this command; install weft again")
			   : cli_fail_without("record", CLI_FEATURE_RECORD);
	if (strpbrk(library, " :"))
		return cli_fail_verb(
		    "record", "space or colon in the path of a library, which the loader cannot load: %s", library);
	insert_alias(library);
	return -1;
}

/* Makes a value of LD_PRELOAD; `others` may be NULL.  Returns NULL without memory. */
static char *make_preload(const char *library, const char *others)
{
	const bool more = others && *others;
	char *preload;
	return asprintf(&preload, "%s%s%s%s", access("/usr/lib", X_OK) ? "" : ONLY_GLIBC, library, more ? ":" : "",
		   more ? others : "") < 0
		   ? NULL
		   : preload;
}

static int set_environment(const struct options *o, const char *command)
{
	char library[PATH_MAX], text[OPTION_BYTES], *value = NULL, *preload = NULL;
	const bool loads = program_loads_libraries(command);
	format_options(text, o, loads);
	unsetenv("WEFT_TRACE");
	char *path = make_absolute(o->out);
	if (!path)
		return cli_fail_verb("record", no_memory);
	int status = -1;
	if (!loads) {
		if (asprintf(&value, "%s/%s-%%p%s", path, cli_base_name(command), text) < 0)
			value = NULL;
		status = value ? -1 : cli_fail_verb("record", no_memory);
		if (value)
			setenv("WEFT_TRACE", value, 1);
	} else if ((status = find_library(library)) < 0) {
		if (asprintf(&value, "%s%s", path, text) < 0)
			value = NULL;
		preload = make_preload(library, getenv("LD_PRELOAD"));
		status = value && preload ? -1 : cli_fail_verb("record", no_memory);
		if (value && preload) {
			setenv("WEFT_RECORD", value, 1);
			setenv("LD_PRELOAD", preload, 1);
		}
	}
	free(preload);
	free(value);
	free(path);
	return status;
}

/* Writes the drop-in of a service.  Returns an exit status. */
static int install_unit(struct options *o)
{
	char library[PATH_MAX], text[OPTION_BYTES], *value = NULL, *preload = NULL;
	if (!unit_is_name(o->unit))
		return cli_fail_verb("record", "not the name of a service: --install-unit=%s", o->unit);
	if (o->kernel || o->profile || o->rules || o->view || o->explain)
		return cli_fail_verb("record",
		    "--install-unit can only be combined with options of the ring, --js, --python, --memory and --standby");
	int exit = cli_ring_check(&o->ring, "record");
	if (exit < 0 && o->memory && !parse_memory_option(o))
		exit = fail_memory(o->memory);
	if (exit >= 0 || (exit = find_library(library)) >= 0)
		return exit;
	format_options(text, o, true);
	char *folder = unit_folder(o->unit);
	if (folder && asprintf(&value, UNIT_LOGS "%s%s", folder, text) < 0)
		value = NULL;
	preload = make_preload(library, NULL);
	exit = folder && value && preload ? unit_install(o->unit, o->out, library, preload, value)
					  : cli_fail_verb("record", no_memory);
	free(folder);
	free(value);
	free(preload);
	return exit;
}

/* Restores LD_PRELOAD, for commands that weft itself starts. */
static void clear_environment(const char *preload)
{
	unsetenv("WEFT_RECORD");
	unsetenv("WEFT_TRACE");
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	else
		unsetenv("LD_PRELOAD");
}

/* ---- The directory ---- */

/* Removes the last component of a path below the session; `flag` is 0 or AT_REMOVEDIR. */
static bool remove_below(const char *session, const char *path, int flag)
{
	const char *name;
	const int parent = weft_named_parent(session, path, &name);
	const bool is_removed = parent >= 0 && unlinkat(parent, name, flag) == 0;
	if (parent >= 0)
		close(parent);
	return is_removed;
}

/* Removes the files that recorders wrote from a trace's directory. */
static void remove_files(const char *session, const char *path)
{
	static const char *const ours[] = {
	    "stream-", "kernel-", "memory-", "profile-", "definitions", "metadata", ".weft-", ".metadata", "lock", ".lock"};
	const int fd = weft_named_below(session, path);
	DIR *dir = fd < 0 ? NULL : weft_named_list(fd);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
			if (!strncmp(entry->d_name, ours[i], strlen(ours[i]))) {
				unlinkat(fd, entry->d_name, 0);
				break;
			}
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
}

/* Removes a trace's directory if it contains only files of recorders or of OCaml. */
static void remove_trace(const char *session, const char *path)
{
	if (session_is_ocaml_file(path)) {
		char folder[PATH_MAX];
		snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
		remove_below(session, path, 0);
		remove_below(session, folder, AT_REMOVEDIR);
		return;
	}
	remove_files(session, path);
	remove_below(session, path, AT_REMOVEDIR);
}

/* Other users may enter root's directory, because processes that change their user record into a folder of that user below
 * it. */
static bool make_session(const char *path)
{
	return mkdir(path, 0700) == 0 && (geteuid() != 0 || chmod(path, 0711) == 0);
}

/* Creates the parent directories of a path; an error appears again when the next directory is created. */
static void make_parents(const char *path)
{
	char *parent = strdup(path);
	for (char *slash = parent ? strchr(parent + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(parent, 0777);
		*slash = '/';
	}
	free(parent);
}

/* Creates an empty directory at `out`, or prints why it cannot be created. */
static int prepare_directory(const struct options *o)
{
	struct session old;
	make_parents(o->out);
	if (strstr(o->out, "%p"))
		return -1; /* no directory is made for a trace, because each process makes its own */
	if (make_session(o->out))
		return -1;
	if (errno != EEXIST)
		return cli_fail_verb("record", "%s: %s", o->out, strerror(errno));
	if (rmdir(o->out) == 0)
		return make_session(o->out) ? -1 : cli_fail_verb("record", "%s: %s", o->out, strerror(errno));
	if (!o->overwrite)
		return cli_fail_verb("record", "already exists: %s; use --overwrite to replace it", o->out);
	struct stat st;
	if (lstat(o->out, &st) == 0 && S_ISLNK(st.st_mode))
		return cli_fail_verb(
		    "record", "a symbolic link, which is never replaced: %s; use the folder that it names", o->out);
	if (session_is_trace(o->out)) {
		remove_files(o->out, o->out);
	} else if (session_read(&old, o->out)) {
		for (size_t i = 0; i < old.traces.count; i++)
			remove_trace(o->out, old.traces.items[i]);
		for (size_t i = 0; i < old.failures.count; i++)
			remove_below(o->out, old.failures.items[i], 0);
		for (size_t i = 0; i < old.user_folders.count; i++)
			remove_below(o->out, old.user_folders.items[i], AT_REMOVEDIR);
		weft_kernel_flight_remove(o->out);
		session_free(&old);
	}
	if ((rmdir(o->out) && errno != ENOENT) || !make_session(o->out))
		return cli_fail_verb("record", "already exists and is not a trace: %s", o->out);
	return -1;
}

/* ---- The command ---- */

/* Opens a viewer window that continues after this command ends. */
static void open_window(const char *trace)
{
	if (fork() != 0)
		return;
	char *argv[] = {NULL, (char *)"--", (char *)trace, NULL};
	setsid();
	cli_exec_window(argv);
	cli_note("cannot open a window: %s", strerror(errno));
	_exit(CLI_ERROR);
}

/* Waits until the command has ended, or one of its processes is recording and has something to show. */
static pid_t wait_for_trace(pid_t child, const char *out, int *status)
{
	pid_t ended = 0;
	bool shown = false;
	do {
		struct session s;
		ended = exit_wait_child(child, status, WNOHANG);
		if (session_read(&s, out) && s.traces.count) {
			open_window(s.traces.items[0]);
			shown = true;
		}
		session_free(&s);
		if (ended == 0 && !shown)
			usleep(20000);
	} while (ended == 0 && !shown);
	return ended;
}

static volatile sig_atomic_t command_pid;

/* Passes a signal that another process sent to this one on to the command; signals of the keyboard or the terminal reach both
 * processes anyway. */
static void forward_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	if (info->si_code <= 0 && info->si_pid != getpid() && command_pid > 0) {
		if (info->si_code == SI_QUEUE)
			sigqueue(command_pid, number, info->si_value);
		else
			kill(command_pid, number);
	}
	errno = saved;
}

/* Returns whether a signal can be passed on.  The others end, stop or continue this process, or belong to its own work. */
static bool is_forwarded(int number)
{
	static const int own[] = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS, SIGFPE,
	    SIGILL, SIGTRAP, SIGSYS};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (own[i] == number)
			return false;
	return true;
}

enum { SIGNAL_COUNT = NSIG };

static void begin_forwarding(struct sigaction before[SIGNAL_COUNT])
{
	struct sigaction action = {.sa_sigaction = forward_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	/* A signal that this process inherited as ignored, as under nohup, is passed on too: the command may have an action. */
	for (int i = 1; i < SIGNAL_COUNT; i++)
		if (is_forwarded(i))
			sigaction(i, &action, &before[i]);
}

static void end_forwarding(const struct sigaction before[SIGNAL_COUNT])
{
	for (int i = 1; i < SIGNAL_COUNT; i++)
		if (is_forwarded(i))
			sigaction(i, &before[i], NULL);
}

/* Prints why the command cannot run, and reports the failure to the parent process. */
static void fail_command(const char *name, int error, int failure_fd)
{
	cli_fail("%s: %s", name, strerror(error));
	if (write(failure_fd, "", 1) == 1)
		_exit(error == ENOENT ? 127 : 126);
	_exit(CLI_ERROR);
}

/* Runs the command and returns its exit status as shells do; *ran says whether the command could be executed.  `shown` is the
 * directory for the window, or NULL; `profiled` is the directory whose processes are sampled, or NULL, and `profile_hz` is a rate
 * as in profile_begin().  The environment, which contains `preload`, is meant for the command; this process restores its own. */
static int run_command(char **command, const char *preload, const char *shown,
    const struct weft_kernel_recorder_options *recorder_options, const char *profiled, uint32_t profile_hz, bool *ran)
{
	int failure_pipe[2], go[2];
	*ran = false;
	if (pipe2(failure_pipe, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return cli_fail("%s: %s", command[0], strerror(errno));
	sigset_t every, mask;
	struct cli_kept kept;
	struct sigaction before[SIGNAL_COUNT] = {0};
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &mask);
	cli_take_kept(&kept);
	pid_t child = fork();
	if (child == 0) {
		/* The kernel's events are opened before the command starts, so that nothing is missed. */
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) != 0)
			_exit(CLI_ERROR);
		program_set_variable(command[0]);
		cli_restore_inherited();
		cli_give_kept(&kept);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		execvp(command[0], command);
		fail_command(command[0], errno, failure_pipe[1]);
	}
	char word;
	clear_environment(preload);
	struct weft_kernel_recorder *kernel =
	    recorder_options && child > 0 ? weft_kernel_recorder_begin(recorder_options, child) : NULL;
	struct profile *profile = profiled && child > 0 ? profile_begin(profiled, child, profile_hz) : NULL;
	close(go[0]);
	close(go[1]);
	close(failure_pipe[1]);
	command_pid = (sig_atomic_t)child;
	begin_forwarding(before);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	int status = 0;
	pid_t ended = child < 0 ? -1 : shown ? wait_for_trace(child, shown, &status) : 0;
	if (ended == 0)
		ended = exit_wait_child(child, &status, 0);
	int error = errno;
	weft_kernel_recorder_end(kernel);
	profile_end(profile);
	*ran = ended > 0 && read(failure_pipe[0], &word, 1) == 0;
	close(failure_pipe[0]);
	command_pid = 0;
	end_forwarding(before);
	if (ended < 0)
		return cli_fail("%s: %s", command[0], strerror(error));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- Afterwards ---- */

/* Returns whether a message has this name, in the directory or in a user's folder. */
static bool is_note(const char *path, const char *name)
{
	const size_t length = strlen(name);
	return !strncmp(cli_base_name(path), name, length) && !strcmp(cli_base_name(path) + length, ".failed");
}

/* Prints a message that a process left in a file; removes the file.  The file is empty if a full disk had no space for the
 * message. Returns whether the message is printed. */
static bool note_failure(const char *session, const char *path)
{
	bool is_printed = false;
	char text[512];
	const char *name;
	const int folder = weft_named_parent(session, path, &name);
	if (folder < 0)
		return false;
	const long length = weft_named_text(folder, name, text, sizeof text);
	if (length >= 0) {
		is_printed = true;
		if (length == 0)
			snprintf(text, sizeof text, "no space for a trace, nor for a message; free some space, or use -o");
		text[strcspn(text, "\n")] = 0;
		if (is_note(path, WEFT_NOTE_OF_OTHER_CHILD) || is_note(path, WEFT_NOTE_OF_STATIC_CHILD))
			cli_note("%s", text);
		else
			cli_note("%.*s: %s", (int)(strlen(path) - strlen(".failed")), path, text);
	}
	unlinkat(folder, name, 0);
	close(folder);
	return is_printed;
}

/* Prints the messages of processes, except about static programs.  Returns whether it printed one. */
static bool note_failures(const struct session *s)
{
	bool is_printed = false;
	for (size_t i = 0; i < s->failures.count; i++)
		if (!is_note(s->failures.items[i], WEFT_NOTE_OF_STATIC_CHILD))
			is_printed |= note_failure(s->path, s->failures.items[i]);
	return is_printed;
}

/* Handles the messages about static programs that a process started: prints or only removes them.  Returns whether it printed
 * one. */
static bool note_static_children(const struct session *s, bool is_printed)
{
	bool has_child = false;
	for (size_t i = 0; i < s->failures.count; i++)
		if (is_note(s->failures.items[i], WEFT_NOTE_OF_STATIC_CHILD)) {
			has_child = true;
			if (is_printed)
				note_failure(s->path, s->failures.items[i]);
			else
				remove_below(s->path, s->failures.items[i], 0);
		}
	return has_child && is_printed;
}

/* Returns the first folder on the path that other users may not enter, or NULL. */
static const char *find_barrier(const char *path, uid_t user, char folder[PATH_MAX])
{
	struct stat st;
	if (!realpath(path, folder))
		return NULL;
	for (char *slash = folder; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		if (stat(folder, &st) == 0 && !(st.st_mode & S_IXOTH) && st.st_uid != user)
			return folder;
		*slash = '/';
	}
	return NULL;
}

/* Handles the folder that was made for a user to which a process changed.  Returns whether a note says that this user cannot
 * record; an empty folder is removed. */
static bool note_user(const char *session, const char *folder)
{
	char blocked[PATH_MAX], number[32];
	const char *digits = strrchr(folder, '/') + 1 + strlen(SESSION_USER_FOLDER);
	const uid_t user = (uid_t)strtoul(digits, NULL, 10);
	const struct passwd *known = getpwuid(user);
	snprintf(number, sizeof number, "%lu", (unsigned long)user);
	bool is_shut = find_barrier(folder, user, blocked);
	if (!remove_below(session, folder, AT_REMOVEDIR) || !is_shut)
		return false;
	cli_note(
	    "programs of user %s were not recorded, since it cannot enter %s; use -o with another directory, such as one in /tmp",
	    known ? known->pw_name : number, blocked);
	return true;
}

static void note_session(const struct session *s, const char *command, bool stood_by)
{
	bool has_reported = false;
	for (size_t i = 0; i < s->traces.count; i++)
		if (session_is_ocaml_file(s->traces.items[i]))
			ocaml_write_note(s->path, s->traces.items[i], 0);
	has_reported |= note_failures(s);
	bool has_promises = s->traces.count > MAX_LISTED;
	for (size_t i = 0; i < s->traces.count && i < MAX_LISTED; i++)
		has_promises |= cli_note_trace(s->traces.items[i], false);
	for (size_t i = 0; i < s->user_folders.count; i++)
		has_reported |= note_user(s->path, s->user_folders.items[i]);
	if (s->traces.count > MAX_LISTED)
		cli_note("and %zu more in %s", s->traces.count - MAX_LISTED, s->path);
	has_reported |= note_static_children(s, !has_promises);
	if (s->traces.count)
		cli_note("show it: weft %s", s->traces.count == 1 ? s->traces.items[0] : s->path);
	if (!has_promises && !has_reported && !stood_by)
		program_note_why_not(command, s->traces.count > 0);
}

/* Runs a verb of weft on a trace, with the output on stderr, and returns the verb's exit status. */
static int run_verb(const char *verb, const char *trace, const char *rules)
{
	char *words[64] = {(char *)"weft", (char *)verb, (char *)trace}, *copy = rules ? strdup(rules) : NULL, *save = NULL;
	size_t n = 3;
	for (char *rule = copy ? strtok_r(copy, " ", &save) : NULL; rule && n < 63; rule = strtok_r(NULL, " ", &save))
		words[n++] = rule;
	int said[2], status = 0;
	pid_t child = pipe2(said, O_CLOEXEC) ? -1 : fork();
	if (child == 0) {
		dup2(said[1], STDOUT_FILENO);
		execv("/proc/self/exe", words);
		_exit(CLI_ERROR);
	}
	free(copy);
	if (child < 0)
		return CLI_ERROR;
	close(said[1]);
	char bytes[4096];
	for (ssize_t got; (got = read(said[0], bytes, sizeof bytes)) > 0;)
		fwrite(bytes, 1, (size_t)got, stderr);
	close(said[0]);
	bool ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
	return ended ? WEXITSTATUS(status) : CLI_ERROR;
}

/* Explains and checks the traces; returns the command's exit status or, if that is 0, the exit status of the rules. */
static int check_traces(const struct session *s, const struct options *o, int exit)
{
	int checked = CLI_OK;
	for (size_t i = 0; i < s->traces.count; i++) {
		if ((o->explain || o->rules) && s->traces.count > 1)
			cli_note("%s:", s->traces.items[i]);
		if (o->explain)
			run_verb("explain", s->traces.items[i], NULL);
		int found = o->rules ? run_verb("check", s->traces.items[i], o->rules) : CLI_OK;
		checked = found > checked ? found : checked;
	}
	return exit ? exit : checked;
}

/* Records a process that already runs. */
static int record_running(const struct cli_args *args, const struct options *given)
{
	char name[80];
	struct options options = *given, *o = &options;
	long pid;
	struct session s;
	int exit = running_parse_pid("record", o->pid, &pid);
	if (exit >= 0)
		return exit;
	if (args->argc)
		return cli_fail_verb("record", "--pid and a command cannot be combined: %s", args->argv[0]);
	if (o->kernel || o->profile || o->memory || o->stands_by || o->view)
		return cli_fail_verb(
		    "record", "--pid cannot be combined with --kernel, --profile, --memory, --standby or --view");
	running_default_directory(pid, name, sizeof name);
	if (!o->out)
		o->out = name;
	if (strstr(o->out, "%p"))
		return cli_fail_verb("record", "--pid needs one directory; use -o without %%p");
	if ((exit = check_options(o)) >= 0 || (exit = prepare_directory(o)) >= 0)
		return exit;
	exit = running_record(pid, o->out, &o->ring, o->js);
	if (session_read(&s, o->out)) {
		note_session(&s, NULL, true);
		exit = check_traces(&s, o, exit);
		session_free(&s);
	}
	rmdir(o->out); /* if it is empty */
	return exit;
}

int cli_record(struct cli_args *args)
{
	struct options o = {0};
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &o.out, "DIR",
		"record into this directory (default: COMMAND.weft); %p becomes the process id"},
	    {"pid", 'p', CLI_TEXT, &o.pid, "PID", "record a process that already runs, instead of a command, until Ctrl-C"},
	    {"size", 0, CLI_TEXT, &o.ring.size, "SIZE",
		"set the size of the ring buffer of each OS thread; with --mode=grow, of each trace"},
	    {"mode", 0, CLI_TEXT, &o.ring.mode, "ring|grow",
		"keep the newest events (ring, the default) or all up to --size (grow)"},
	    {"packets", 0, CLI_TEXT, &o.ring.packets, "N", "divide each ring buffer into N packets (default: 16)"},
	    {"stacks", 0, CLI_TEXT, &o.ring.stacks, "N", "record N callers of the code that creates a promise (default: 0)"},
	    {"kernel", 0, CLI_WORD, &o.kernel, "own|all|flight",
		"also record what the kernel does with the program's OS threads (default: the highest level that "
		"the user may have); with flight or own,flight these records stay in memory until the end or weft save"},
	    {"profile", 0, CLI_TEXT, &o.profile, "off|auto|all[,RATE]",
		"sample the stacks of threads that run one promise for 10 ms or longer (auto, the default), of all threads RATE "
		"times "
		"a second (default: 997), or do not (off)"},
	    {"memory", 0, CLI_WORD, &o.memory, "SIZE",
		"sample one allocation of memory in SIZE bytes (default: 512K), with its promise and its callers"},
	    {"js", 0, CLI_TEXT, &o.js, "LEVEL",
		"record of Node.js: off, http (requests and lines), promises (default), or all (also of node_modules)"},
	    {"python", 0, CLI_TEXT, &o.python, "all|tasks|off",
		"record tasks, locks and threads of Python (all, the default), only tasks of event loops (tasks), or nothing of "
		"them (off)"},
	    {"standby", 0, CLI_FLAG, &o.stands_by, NULL, "record only from weft on until weft off"},
	    {"install-unit", 0, CLI_TEXT, &o.unit, "SERVICE",
		"record a service of systemd from its next start on, into /var/log/weft/SERVICE; run no command"},
	    {"overwrite", 0, CLI_FLAG, &o.overwrite, NULL, "replace the traces in the directory"},
	    {"view", 0, CLI_FLAG, &o.view, NULL, "open a window that follows the recording"},
	    {"explain", 0, CLI_FLAG, &o.explain, NULL, "run weft explain on each trace at the end"},
	    {"check", 0, CLI_TEXT, &o.rules, "RULES",
		"check rules at the end; exit status 1 if a rule is broken and the command's status is 0"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, CLI_ANY_NUMBER);
	if (exit >= 0)
		return exit;
	if (o.unit)
		return args->argc > 0 ? cli_fail_verb("record", "--install-unit runs no command") : install_unit(&o);
	if (o.pid)
		return record_running(args, &o);
	if (!args->argc)
		return cli_fail_missing(args, 0);
	args->argv[args->argc] = NULL;
	char name[256];
	snprintf(name, sizeof name, "%s.weft", cli_base_name(args->argv[0]));
	if (!o.out)
		o.out = name;
	if ((exit = check_options(&o)) >= 0 || (exit = prepare_directory(&o)) >= 0)
		return exit;
	const char *others = getenv("LD_PRELOAD");
	char *preload = others ? strdup(others) : NULL;
	if ((exit = set_environment(&o, args->argv[0])) < 0) {
		bool ran;
		struct session s;
		struct exit_watch *exit_watch = strstr(o.out, "%p") ? NULL : exit_watch_begin(o.out);
		const struct weft_kernel_recorder_options recorder_options = {.max_level = o.level,
		    .folder = o.out,
		    .is_flight = o.is_flight,
		    .note = cli_note,
		    .size_bytes = o.ring.size_bytes,
		    .grows = o.ring.mode && !strcmp(o.ring.mode, "grow")};
		exit = run_command(args->argv, preload, o.view ? o.out : NULL, o.kernel ? &recorder_options : NULL,
		    o.is_profiled ? o.out : NULL, o.profile_hz, &ran);
		exit_watch_end(exit_watch);
		if (ran && !strstr(o.out, "%p") && session_read(&s, o.out)) {
			note_session(&s, args->argv[0], o.stands_by);
			exit = check_traces(&s, &o, exit);
			session_free(&s);
		}
	}
	free(preload);
	rmdir(o.out); /* if it is empty */
	return exit;
}
