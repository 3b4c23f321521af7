/* itself.c: prints everything that a program can see of itself, before and after a libuv loop.  as_without_test.py compares the
 * output with and without recording.
 *
 * It leaves out the changes that docs/record-installed.md lists: the variables LD_PRELOAD and WEFT_RECORD, weft's own modules and
 * mappings, the number of the parent, and after the loop the actions of SIGBUS and of signals of crashes.
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <link.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

extern char **environ;

static void print_arguments(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		printf("argument %d: %s\n", i, argv[i]);
	printf("names: %s, %s\n", program_invocation_name, program_invocation_short_name);
	for (char **at = environ; *at; at++)
		if (strncmp(*at, "LD_PRELOAD=", 11) != 0 && strncmp(*at, "WEFT_RECORD=", 12) != 0)
			printf("variable %s\n", *at);
}

static void print_set(const char *name, const sigset_t *set)
{
	printf("%s:", name);
	for (int i = 1; i < NSIG; i++)
		if (sigismember(set, i) == 1)
			printf(" %d", i);
	puts("");
}

/* `is_recording`: leaves out the signals whose handlers are the recorder's. */
static void print_signals(bool is_recording)
{
	sigset_t set;
	stack_t stack;
	sigprocmask(SIG_BLOCK, NULL, &set);
	print_set("blocked", &set);
	sigpending(&set);
	print_set("pending", &set);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction a;
		const bool is_fault = i == SIGBUS || i == SIGABRT || i == SIGSEGV || i == SIGFPE || i == SIGILL || i == SIGTRAP;
		if (sigaction(i, NULL, &a) || (is_recording && is_fault))
			continue;
		printf("signal %d: %s, flags %x\n", i,
		    a.sa_handler == SIG_DFL   ? "default"
		    : a.sa_handler == SIG_IGN ? "ignored"
					      : "handled",
		    (unsigned)a.sa_flags);
	}
	sigaltstack(NULL, &stack);
	printf("signal stack: flags %d, %zu bytes\n", stack.ss_flags, stack.ss_size);
}

static void print_limits(void)
{
	struct sched_param parameters;
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	const bool has_cpus = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
	for (int i = 0; i < RLIMIT_NLIMITS; i++) {
		struct rlimit limit;
		if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
			printf("limit %d: %lld %lld\n", i, (long long)limit.rlim_cur, (long long)limit.rlim_max);
	}
	for (int i = 0; i < 3; i++) {
		struct itimerval timer;
		getitimer((__itimer_which_t)i, &timer);
		printf("timer %d: %s, every %lld s\n", i, timer.it_value.tv_sec || timer.it_value.tv_usec ? "on" : "off",
		    (long long)timer.it_interval.tv_sec);
	}
	errno = 0;
	printf("nice %d, policy %d, parameters %d", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
	    sched_getparam(0, &parameters));
	printf(" %d, CPUs %d %d, io %ld\n", parameters.sched_priority, has_cpus, CPU_COUNT(&cpus), syscall(SYS_ioprio_get, 1, 0));
}

static void print_process(void)
{
	char text[4096];
	static const int asked[] = {PR_GET_DUMPABLE, PR_GET_KEEPCAPS, PR_GET_TIMERSLACK, PR_GET_SECUREBITS, PR_GET_NO_NEW_PRIVS,
	    PR_GET_SECCOMP, PR_GET_THP_DISABLE, PR_GET_IO_FLUSHER};
	int number = 0;
	const mode_t mask = umask(0);
	umask(mask);
	printf("umask %o, personality %x, users %d %d, groups %d %d %d\n", mask, (unsigned)personality(0xffffffff), getuid(),
	    geteuid(), getgid(), getegid(), getgroups(0, NULL));
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		printf("prctl %d: %d\n", asked[i], prctl(asked[i], 0, 0, 0, 0));
	prctl(PR_GET_PDEATHSIG, &number);
	printf("signal of the parent's death: %d\n", number);
	prctl(PR_GET_CHILD_SUBREAPER, &number);
	printf("reaper: %d\n", number);
	prctl(PR_GET_NAME, text);
	printf("name: %s\n", text);
	printf("folder: %s\n", getcwd(text, sizeof text) ? text : strerror(errno));
	printf(
	    "session %d, group %d, terminal %s\n", getsid(0) == getpid(), getpgrp() == getpid(), isatty(0) ? ttyname(0) : "none");
	errno = 0;
	const pid_t child = waitpid(-1, NULL, WNOHANG);
	printf("children: %d %s\n", child, strerror(errno));
	printf("rounding %d, locale %s, parts %ld\n", fegetround(), setlocale(LC_ALL, NULL), sysconf(_SC_NPROCESSORS_ONLN));
}

static void print_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	for (const struct dirent *entry; dir && (entry = readdir(dir));) {
		char path[64], target[4096];
		const int fd = atoi(entry->d_name);
		if (entry->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		const ssize_t length = readlink(path, target, sizeof target - 1);
		target[length < 0 ? 0 : length] = 0;
		/* Numbers of pipes and sockets differ. */
		target[strcspn(target, "[")] = 0;
		printf(
		    "descriptor %d: %s, flags %x %x\n", fd, target, (unsigned)fcntl(fd, F_GETFD), (unsigned)fcntl(fd, F_GETFL));
	}
	if (dir) {
		printf("next descriptor: %d\n", dirfd(dir));
		closedir(dir);
	}
}

static void print_status(void)
{
	static const char *const unsteady[] = {"Name", "Pid", "PPid", "Tgid", "NStgid", "NSpid", "NSpgid", "NSsid", "Ngid",
	    "FDSize", "Vm", "Rss", "Huge", "SigQ", "SigCgt", "voluntary", "nonvoluntary", "Cpus", "Mems", "State"};
	char line[1024];
	FILE *file = fopen("/proc/self/status", "r");
	while (file && fgets(line, sizeof line, file)) {
		bool is_steady = true;
		for (size_t i = 0; i < sizeof unsteady / sizeof *unsteady; i++)
			is_steady &= strncmp(line, unsteady[i], strlen(unsteady[i])) != 0;
		if (is_steady)
			printf("status %s", line);
	}
	if (file)
		fclose(file);
	const char *const numbers[] = {"oom_score_adj", "coredump_filter", "loginuid", "cgroup", "timerslack_ns"};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		snprintf(line, sizeof line, "/proc/self/%s", numbers[i]);
		file = fopen(line, "r");
		while (file && fgets(line, sizeof line, file))
			printf("%s %s%s", numbers[i], line, strchr(line, '\n') ? "" : "\n");
		if (file)
			fclose(file);
	}
}

/* weft's own files: the libraries, a file of new code, and the packets of the trace. */
static bool is_of_weft(const char *path)
{
	return strstr(path, "libweft-") || strstr(path, "memfd:weft") || strstr(path, ".trace/");
}

static int print_module(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (!is_of_weft(info->dlpi_name))
		printf("module %s: %d headers\n", info->dlpi_name, info->dlpi_phnum);
	return 0;
}

/* The loader splits the mappings of a file by their rights; a path counts once. */
static void print_mappings(void)
{
	char line[4096], before[4096] = "";
	bool is_writable_code = false;
	FILE *file = fopen("/proc/self/maps", "r");
	while (file && fgets(line, sizeof line, file)) {
		const char *path = strchr(line, '/'), *special = strchr(line, '[');
		char rights[8];
		if (sscanf(line, "%*s %7s", rights) == 1 && rights[1] == 'w' && rights[2] == 'x')
			is_writable_code = true;
		path = path ? path : special ? special : "";
		if (!*path || is_of_weft(path) || !strcmp(path, before))
			continue;
		snprintf(before, sizeof before, "%s", path);
		printf("mapping of %s", path);
	}
	if (file)
		fclose(file);
	printf("code that is writable: %d\n", is_writable_code);
}

static void print_auxiliary(void)
{
	static const unsigned long types[] = {AT_SECURE, AT_PAGESZ, AT_CLKTCK, AT_FLAGS, AT_HWCAP, AT_HWCAP2, AT_PHNUM, AT_PHENT,
	    AT_UID, AT_EUID, AT_GID, AT_EGID, AT_MINSIGSTKSZ};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		printf("auxiliary %lu: %lx\n", types[i], getauxval(types[i]));
	printf("started as %s\n", (const char *)getauxval(AT_EXECFN));
}

static void print_all(bool is_recording)
{
	print_signals(is_recording);
	print_limits();
	print_process();
	print_descriptors();
	print_status();
	dl_iterate_phdr(print_module, NULL);
	print_mappings();
	print_auxiliary();
}

static void on_timer(uv_timer_t *timer)
{
	static int turns;
	if (++turns == 3)
		uv_close((uv_handle_t *)timer, NULL);
}

int main(int argc, char **argv)
{
	printf("errno %d\n", errno);
	print_arguments(argc, argv);
	print_all(false);
	uv_loop_t loop;
	uv_timer_t timer;
	if (uv_loop_init(&loop) || uv_timer_init(&loop, &timer) || uv_timer_start(&timer, on_timer, 1, 1))
		return 1;
	uv_run(&loop, UV_RUN_DEFAULT);
	printf("loop: %d\n", uv_loop_close(&loop));
	print_all(true);
	return 42;
}
