/* record.c: weft record: runs a command, unmodified or not, and records what it and its children do.
 *
 * libweft-hook.so is loaded before every program that the command starts (LD_PRELOAD), and WEFT_RECORD tells it where to record
 * to: a directory, in which each process that did something makes a trace of its own.  Where nothing can be loaded before a
 * program, because it has no loader, WEFT_TRACE serves the recorder that may be linked into it.
 * SPDX-License-Identifier: ISC */
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

#include "analysis/check.h"
#include "apps/cli/flight.h"
#include "apps/cli/kernel.h"
#include "apps/cli/ocaml.h"
#include "apps/cli/program.h"
#include "apps/cli/watch.h"
#include "cli.h"
#include "ctf/foreign.h"

#define LIBRARY "libweft-hook.so"

enum { SHOWN = 12 }; /* traces that are told of one by one */

static const char no_memory[] = "record: out of memory";

struct options {
	const char *out, *rules, *kernel;
	struct cli_ring ring;
	bool overwrite, view, explain, is_flight, stands_by;
	enum weft_kernel_level level; /* SELF: whatever there is */
};

/* ---- What is asked for ---- */

/* A rule that cannot be understood is told before the command runs, which may be long. */
static int check_rules(const char *rules)
{
	char *copy = strdup(rules), *save = NULL;
	int exit = copy ? -1 : cli_fail("%s", weft_status_string(WEFT_ENOMEM));
	struct weft_rule rule;
	struct weft_error err;
	for (char *text = copy ? strtok_r(copy, " ", &save) : NULL; text && exit < 0; text = strtok_r(NULL, " ", &save))
		if (weft_rule_parse(&rule, text, &err) < 0)
			exit = cli_fail("record: --check: %s", err.what);
	free(copy);
	return exit;
}

/* "own", "all", "flight", or one of these and another, with a comma; false: it is something else. */
static bool read_kernel(struct options *o)
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

int cli_ring_check(struct cli_ring *r, const char *verb)
{
	enum { MOST_CALLERS = 16 }; /* WEFT_STACK_MAX of record.h */
	if (r->size && !cli_parse_number(r->size, true, &r->size_bytes))
		return cli_fail(
		    "%s: --size=%s is not a size; write a number of bytes, perhaps with K, M or G behind it", verb, r->size);
	if (r->packets && (!cli_parse_number(r->packets, false, &r->packet_count) || r->packet_count > 65536))
		return cli_fail("%s: --packets=%s is not a number from 0 to 65536", verb, r->packets);
	if (r->stacks && (!cli_parse_number(r->stacks, false, &r->stack_count) || r->stack_count > MOST_CALLERS))
		return cli_fail("%s: --stacks=%s is not a number from 0 to %d", verb, r->stacks, MOST_CALLERS);
	if (r->mode && strcmp(r->mode, "ring") != 0 && strcmp(r->mode, "grow") != 0)
		return cli_fail("%s: --mode=%s is neither ring nor grow", verb, r->mode);
	return -1;
}

static int check_options(struct options *o)
{
	if (strchr(o->out, ','))
		return cli_fail("record: %s: the name of a trace cannot have a comma in it", o->out);
	const int exit = cli_ring_check(&o->ring, "record");
	if (exit >= 0)
		return exit;
	if (o->kernel && !read_kernel(o))
		return cli_fail("record: --kernel=%s is neither own nor all, nor flight, nor own,flight", o->kernel);
	if (o->kernel && strstr(o->out, "%p"))
		return cli_fail("record: --kernel needs one directory for all processes: -o without %%p");
	if (o->kernel && o->stands_by)
		return cli_fail("record: --kernel records from the begin on: it cannot be combined with --standby");
	if (o->view && !cli_has_display())
		return cli_fail(
		    "record: --view needs a display, and there is none here; weft serve %s follows in a browser", o->out);
	return o->rules ? check_rules(o->rules) : -1;
}

/* The directory made absolute: the command may be a script that goes elsewhere first. */
static char *make_absolute(const char *out)
{
	char *here = out[0] == '/' ? NULL : getcwd(NULL, 0), *path;
	int length = asprintf(&path, "%s%s%s", here ? here : "", here ? "/" : "", out);
	free(here);
	return length < 0 ? NULL : path;
}

static int set_environment(const struct options *o, const char *command)
{
	char library[PATH_MAX], text[128] = "", *value = NULL, *preload = NULL;
	bool loads = program_loads_libraries(command);
	size_t n = 0;
	if (o->ring.size_bytes)
		n += (size_t)snprintf(text, sizeof text, ",size=%" PRIu64, o->ring.size_bytes);
	if (o->ring.mode)
		n += (size_t)snprintf(text + n, sizeof text - n, ",mode=%s", o->ring.mode);
	if (o->ring.packet_count)
		n += (size_t)snprintf(text + n, sizeof text - n, ",packets=%" PRIu64, o->ring.packet_count);
	if (o->ring.stack_count && loads)
		n += (size_t)snprintf(text + n, sizeof text - n, ",stacks=%" PRIu64, o->ring.stack_count);
	if (o->stands_by)
		snprintf(text + n, sizeof text - n, ",standby");
	unsetenv("WEFT_TRACE");
	char *path = make_absolute(o->out);
	if (!path)
		return cli_fail(no_memory);
	int status = -1;
	if (!loads) {
		if (asprintf(&value, "%s/%s-%%p%s", path, cli_base_name(command), text) < 0)
			value = NULL;
		status = value ? -1 : cli_fail(no_memory);
		if (value)
			setenv("WEFT_TRACE", value, 1);
	} else if (!foreign_find_installed(library, LIBRARY)) {
		status = cli_fail("record: " LIBRARY " is neither beside this command nor installed");
	} else if (strpbrk(library, " :")) {
		status =
		    cli_fail("record: %s: the loader cannot load a library whose path has a space or a colon in it", library);
	} else {
		const char *others = getenv("LD_PRELOAD");
		bool more = others && *others;
		if (asprintf(&value, "%s%s", path, text) < 0)
			value = NULL;
		if (asprintf(&preload, "%s%s%s", library, more ? ":" : "", more ? others : "") < 0)
			preload = NULL;
		status = value && preload ? -1 : cli_fail(no_memory);
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

/* Back to what it was, for what this command starts by itself. */
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

/* Removes a trace's directory, if there is nothing in it but what recorders write, or a file of OCaml's. */
static bool remove_trace(const char *path)
{
	static const char *const ours[] = {
	    "stream-", "kernel-", "definitions", "metadata", ".weft-", ".metadata", "lock", ".lock"};
	if (session_is_ocaml_file(path)) {
		char folder[PATH_MAX];
		snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
		unlink(path);
		return rmdir(folder) == 0;
	}
	/* In another user's folder it may be a link. */
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
			if (!strncmp(entry->d_name, ours[i], strlen(ours[i]))) {
				unlinkat(dirfd(dir), entry->d_name, 0);
				break;
			}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return rmdir(path) == 0;
}

/* Root's may be passed through: processes that become another user record into a folder of that user's in it. */
static bool make_session(const char *path)
{
	return mkdir(path, 0700) == 0 && (geteuid() != 0 || chmod(path, 0711) == 0);
}

/* The folders that it is to stand in; what cannot be made is missed by who makes the next. */
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

/* Makes an empty directory of `out`, or says why not. */
static int prepare(const struct options *o)
{
	struct session old;
	make_parents(o->out);
	if (strstr(o->out, "%p"))
		return -1; /* each process makes its own */
	if (make_session(o->out))
		return -1;
	if (errno != EEXIST)
		return cli_fail("record: %s: %s", o->out, strerror(errno));
	if (rmdir(o->out) == 0)
		return make_session(o->out) ? -1 : cli_fail("record: %s: %s", o->out, strerror(errno));
	if (!o->overwrite)
		return cli_fail("record: %s: exists already; --overwrite replaces it", o->out);
	if (session_is_trace(o->out)) {
		remove_trace(o->out);
	} else if (session_read(&old, o->out)) {
		for (size_t i = 0; i < old.traces.count; i++)
			remove_trace(old.traces.items[i]);
		for (size_t i = 0; i < old.words.count; i++)
			unlink(old.words.items[i]);
		for (size_t i = 0; i < old.users.count; i++)
			rmdir(old.users.items[i]);
		flight_forget(o->out);
		session_free(&old);
	}
	if ((rmdir(o->out) && errno != ENOENT) || !make_session(o->out))
		return cli_fail("record: %s: exists already and is not a trace", o->out);
	return -1;
}

/* ---- The command ---- */

/* A window that outlives this command. */
static void open_window(const char *trace)
{
	if (fork() != 0)
		return;
	char *argv[] = {NULL, (char *)"--", (char *)trace, NULL};
	setsid();
	cli_exec_window(argv);
	cli_note("record: no window can be opened: %s", strerror(errno));
	_exit(CLI_TROUBLE);
}

/* Until the command ends, or a process of it has begun to record: then there is something to see. */
static pid_t wait_for_trace(pid_t child, const char *out, int *status)
{
	pid_t ended = 0;
	bool shown = false;
	do {
		struct session s;
		ended = waitpid(child, status, WNOHANG);
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

/* A signal that somebody sent to this command is meant for the other; what comes of the keyboard, or of the terminal's end, goes
 * to both by itself. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	if (info->si_code <= 0 && command_pid > 0)
		kill(command_pid, number);
	errno = saved;
}

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };

static void take_signals(struct sigaction before[PASSED_ON])
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	for (int i = 0; i < PASSED_ON; i++) {
		sigaction(passed_on[i], NULL, &before[i]);
		/* Under nohup, or in the background, some are ignored, and stay so. */
		if (before[i].sa_handler != SIG_IGN)
			sigaction(passed_on[i], &action, NULL);
	}
}

/* Says why the command cannot be run, and to its parent that it was not. */
static void no_command(const char *name, int error, int told)
{
	cli_fail("%s: %s", name, strerror(error));
	if (write(told, "", 1) == 1)
		_exit(error == ENOENT ? 127 : 126);
	_exit(CLI_TROUBLE);
}

/* The command's exit status, as a shell has it; *ran: there is such a command.  `shown`: the directory that is looked at
 * meanwhile, or NULL.  The command alone gets the environment as it is; from then on it is what it was, with that `preload`. */
static int run(
    char **command, const char *preload, const char *shown, const struct kernel_options *asked, struct watch *watch, bool *ran)
{
	int told[2], go[2];
	*ran = false;
	if (pipe2(told, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return cli_fail("%s: %s", command[0], strerror(errno));
	sigset_t every, mask;
	struct sigaction before[PASSED_ON];
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, &mask);
	pid_t child = fork();
	if (child == 0) {
		/* The kernel's events are opened before there is something to record. */
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) != 0)
			_exit(CLI_TROUBLE);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		execvp(command[0], command);
		no_command(command[0], errno, told[1]);
	}
	char word;
	clear_environment(preload);
	struct kernel *kernel = asked && child > 0 ? kernel_begin(asked, child) : NULL;
	close(go[0]);
	close(go[1]);
	close(told[1]);
	command_pid = (sig_atomic_t)child;
	take_signals(before);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	int status = 0;
	pid_t ended = child < 0 ? -1 : shown ? wait_for_trace(child, shown, &status) : 0;
	if (ended == 0)
		ended = watch_wait(watch, child, &status);
	int error = errno;
	kernel_end(kernel);
	*ran = ended > 0 && read(told[0], &word, 1) == 0;
	close(told[0]);
	command_pid = 0;
	for (int i = 0; i < PASSED_ON; i++)
		sigaction(passed_on[i], &before[i], NULL);
	if (ended < 0)
		return cli_fail("%s: %s", command[0], strerror(error));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- Afterwards ---- */

/* What a process left for us to say; the file goes. */
static void tell_word(const char *path)
{
	char text[512];
	FILE *file = fopen(path, "re");
	if (file && fgets(text, sizeof text, file)) {
		text[strcspn(text, "\n")] = 0;
		cli_note("%.*s: %s", (int)(strlen(path) - strlen(".failed")), path, text);
	}
	if (file)
		fclose(file);
	unlink(path);
}

/* The first folder on the way there that others may not pass through, or NULL. */
static const char *barrier(const char *path, uid_t user, char folder[PATH_MAX])
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

/* A process became the user of this folder.  Whether that user can record is told; the folder goes if nothing came. */
static bool tell_user(const char *folder)
{
	char blocked[PATH_MAX], number[32];
	const char *digits = strrchr(folder, '/') + 1 + strlen(SESSION_USER_FOLDER);
	const uid_t user = (uid_t)strtoul(digits, NULL, 10);
	const struct passwd *known = getpwuid(user);
	snprintf(number, sizeof number, "%lu", (unsigned long)user);
	bool is_shut = barrier(folder, user, blocked);
	if (rmdir(folder) || !is_shut)
		return false;
	cli_note(
	    "user %s may not pass through %s, so no program that runs as that user is recorded: -o another place, as under /tmp",
	    known ? known->pw_name : number, blocked);
	return true;
}

static void tell_session(const struct session *s, const char *command, bool stood_by)
{
	bool told = false;
	for (size_t i = 0; i < s->traces.count; i++)
		if (session_is_ocaml_file(s->traces.items[i]))
			ocaml_note(s->traces.items[i], 0);
	for (size_t i = 0; i < s->words.count; i++)
		tell_word(s->words.items[i]);
	bool has_promises = s->traces.count > SHOWN;
	for (size_t i = 0; i < s->traces.count && i < SHOWN; i++)
		has_promises |= cli_tell_trace(s->traces.items[i], false);
	for (size_t i = 0; i < s->users.count; i++)
		told |= tell_user(s->users.items[i]);
	if (s->traces.count > SHOWN)
		cli_note("and %zu more in %s", s->traces.count - SHOWN, s->path);
	if (s->traces.count)
		cli_note("look at it: weft %s", s->traces.count == 1 ? s->traces.items[0] : s->path);
	if (!has_promises && !told && !stood_by)
		program_tell_why_not(command, s->traces.count > 0);
}

/* A verb of this command on a trace, what it prints on stderr; its exit status.  *is_silent: it printed nothing. */
static int run_verb(const char *verb, const char *trace, const char *rules, bool *is_silent)
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
		_exit(CLI_TROUBLE);
	}
	free(copy);
	*is_silent = child > 0;
	if (child < 0)
		return CLI_TROUBLE;
	close(said[1]);
	char bytes[4096];
	for (ssize_t got; (got = read(said[0], bytes, sizeof bytes)) > 0; *is_silent = false)
		fwrite(bytes, 1, (size_t)got, stderr);
	close(said[0]);
	bool ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
	return ended ? WEXITSTATUS(status) : CLI_TROUBLE;
}

/* The exit status: the command's, or where that is 0, of the rules. */
static int look_into(const struct session *s, const struct options *o, int exit)
{
	int checked = CLI_FINE;
	for (size_t i = 0; i < s->traces.count; i++) {
		if ((o->explain || o->rules) && s->traces.count > 1)
			cli_note("%s:", s->traces.items[i]);
		bool is_silent;
		if (o->explain && run_verb("explain", s->traces.items[i], NULL, &is_silent) == CLI_FINE && is_silent)
			cli_note("explain finds nothing wrong");
		int found = o->rules ? run_verb("check", s->traces.items[i], o->rules, &is_silent) : CLI_FINE;
		checked = found > checked ? found : checked;
	}
	return exit ? exit : checked;
}

int cli_record(struct cli_args *args)
{
	struct options o = {0};
	const struct cli_option options[] = {
	    {"output", 'o', CLI_TEXT, &o.out, "DIR",
		"records into this directory; COMMAND.weft if not given; %p becomes the process id"},
	    {"size", 0, CLI_TEXT, &o.ring.size, "64M",
		"size of the ring of each OS thread; with --mode=grow, of each whole trace"},
	    {"mode", 0, CLI_TEXT, &o.ring.mode, "ring|grow",
		"ring keeps the newest events, grow keeps all up to --size; ring if not given"},
	    {"packets", 0, CLI_TEXT, &o.ring.packets, "N", "how many packets each ring has; 16 if not given"},
	    {"stacks", 0, CLI_TEXT, &o.ring.stacks, "N",
		"how many callers are recorded of each promise's creation; 0 if not given"},
	    {"kernel", 0, CLI_WORD, &o.kernel, "own|all|flight",
		"also records what the kernel does with the program's OS threads; as much as it tells this user, if no level is "
		"given; with flight (own,flight) in memory, until the end or weft save"},
	    {"standby", 0, CLI_FLAG, &o.stands_by, NULL, "records nothing until weft on tells it to, and until weft off"},
	    {"overwrite", 0, CLI_FLAG, &o.overwrite, NULL, "replaces the traces that are in the directory"},
	    {"view", 0, CLI_FLAG, &o.view, NULL, "opens a window that follows what is recorded"},
	    {"explain", 0, CLI_FLAG, &o.explain, NULL, "tells at the end what went wrong, as weft explain does"},
	    {"check", 0, CLI_TEXT, &o.rules, "RULES",
		"checks rules at the end; exit status 1 if one is broken and the command's own is 0"},
	    CLI_OPTION_END,
	};
	int exit = cli_parse(args, options, -1);
	if (exit >= 0)
		return exit;
	args->argv[args->argc] = NULL;
	char name[256];
	snprintf(name, sizeof name, "%s.weft", cli_base_name(args->argv[0]));
	if (!o.out)
		o.out = name;
	if ((exit = check_options(&o)) >= 0 || (exit = prepare(&o)) >= 0)
		return exit;
	const char *others = getenv("LD_PRELOAD");
	char *preload = others ? strdup(others) : NULL;
	if ((exit = set_environment(&o, args->argv[0])) < 0) {
		bool ran;
		struct session s;
		struct watch *watch = strstr(o.out, "%p") ? NULL : watch_begin(o.out);
		const struct kernel_options asked = {.most = o.level,
		    .folder = o.out,
		    .is_flight = o.is_flight,
		    .size_bytes = o.ring.size_bytes,
		    .grows = o.ring.mode && !strcmp(o.ring.mode, "grow")};
		exit = run(args->argv, preload, o.view ? o.out : NULL, o.kernel ? &asked : NULL, watch, &ran);
		watch_end(watch);
		if (ran && !strstr(o.out, "%p") && session_read(&s, o.out)) {
			tell_session(&s, args->argv[0], o.stands_by);
			exit = look_into(&s, &o, exit);
			session_free(&s);
		}
	}
	free(preload);
	rmdir(o.out); /* if nothing came */
	return exit;
}
