/* waits_all.c: implements weft waits without a trace, which lists this user's processes that hang, never sleep or are stopped.
 *
 * A close look at each of hundreds of processes would take a minute.  So /proc is read first, to find the processes that use a
 * CPU all the time, that have an OS thread waiting for a lock, or whose threads all wait without a time limit.
 * SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "analysis/findings/explain.h"
#include "base/named.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "cli.h"
#include "look/look.h"

enum { BETWEEN_MS = 500, SPINS_PERCENT = 80, MAX_TASKS = 1000, NAME = 64 };

struct process {
	long pid;
	uint64_t cpu_ticks;
	uint64_t ready_ns; /* time in which the process's first OS thread ran, or could have run on a free CPU */
};

typedef WEFT_VEC(struct process) process_list;

/* Opens the directory /proc/PID; returns -1 if the process has ended. */
static int open_process(int proc, long pid)
{
	char name[NAME];
	snprintf(name, sizeof name, "%ld", pid);
	return weft_named_folder(proc, name, WEFT_ANY_OWNER);
}

/* Reads the state and the CPU use of a process.  Returns false if the process has ended or is a kernel thread. */
static bool read_use(int folder, char *state, uint64_t *ticks)
{
	char text[1024];
	uint64_t user = 0, kernel = 0, bytes = 0;
	const bool is_there = weft_named_text(folder, "stat", text, sizeof text) > 0;
	const char *after = is_there ? strrchr(text, ')') : NULL;
	if (!after ||
	    sscanf(after,
		") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64 " %*d %*d %*d %*d %*d %*d %*u %" SCNu64,
		state, &user, &kernel, &bytes) != 4 ||
	    bytes == 0)
		return false;
	*ticks = user + kernel;
	return true;
}

/* Returns how long the first OS thread of a process ran or waited for a CPU; 0: unknown. */
static uint64_t read_ready_ns(int folder)
{
	char text[128];
	uint64_t run_ns = 0, queued_ns = 0;
	if (weft_named_text(folder, "schedstat", text, sizeof text) > 0)
		sscanf(text, "%" SCNu64 " %" SCNu64, &run_ns, &queued_ns);
	return run_ns + queued_ns;
}

/* Returns whether one OS thread waits for a lock, or all OS threads wait without a time limit. */
static bool may_hang(int folder)
{
	const int tasks = weft_named_folder(folder, "task", WEFT_ANY_OWNER);
	DIR *list = tasks >= 0 ? weft_named_list(tasks) : NULL;
	bool has_lock = false, are_all_endless = true;
	int count = 0;
	for (struct dirent *e; list && count < MAX_TASKS && (e = readdir(list));) {
		char text[256];
		const int task = e->d_name[0] != '.' ? weft_named_folder(tasks, e->d_name, WEFT_ANY_OWNER) : -1;
		const bool is_read = task >= 0 && weft_named_text(task, "syscall", text, sizeof text) > 0;
		long number = -1;
		uint64_t op = 0, value = 0, limit = 0;
		if (task >= 0)
			close(task);
		if (!is_read)
			continue;
		count++;
		sscanf(text, "%ld %*x %" SCNx64 " %" SCNx64 " %" SCNx64, &number, &op, &value, &limit);
		const unsigned command = (unsigned)op & (unsigned)FUTEX_CMD_MASK;
		const bool is_endless = number == SYS_futex && !limit;
		has_lock |= is_endless && ((command == FUTEX_WAIT && value == 2) || command == FUTEX_LOCK_PI);
		are_all_endless &= is_endless;
	}
	if (list)
		closedir(list);
	if (tasks >= 0)
		close(tasks);
	return count > 0 && (has_lock || are_all_endless);
}

/* Prints the first certain fault that a look at the process finds.  Returns false if the process has no certain fault. */
static bool put_fault(long pid, const char *name)
{
	char path[NAME];
	struct weft_trace *trace = NULL;
	struct weft_model *model = NULL;
	struct weft_findings *findings = NULL;
	const struct weft_model_options options = {.keep_binds = true};
	bool is_found = false;
	snprintf(path, sizeof path, "%ld", pid);
	if (open_part(&trace, path, NULL) == WEFT_OK) {
		cli_find_site_names_quickly(trace);
		if (weft_model_build(&model, trace, &options, NULL) == WEFT_OK)
			(void)weft_explain(&findings, model, NULL, NULL);
	}
	for (size_t i = 0; findings && i < findings->count && !is_found; i++) {
		const struct weft_finding *f = &findings->findings[i];
		is_found = f->sure && f->severity == WEFT_SEVERITY_ALARM;
		if (is_found)
			printf("%ld %s hangs: %s: %s\n", pid, name, weft_finding_name(f->kind), f->title);
	}
	if (findings)
		weft_findings_destroy(findings);
	weft_model_destroy(model);
	weft_trace_close(trace);
	return is_found;
}

static bool list_processes(int proc, process_list *out)
{
	DIR *list = weft_named_list(proc);
	bool has_memory = list != NULL;
	for (struct dirent *e; has_memory && (e = readdir(list));) {
		char *end, state;
		struct stat st;
		const long pid = strtol(e->d_name, &end, 10);
		const int folder = pid > 0 && !*end && pid != getpid() ? open_process(proc, pid) : -1;
		uint64_t ticks;
		if (folder >= 0 && fstat(folder, &st) == 0 && st.st_uid == geteuid() && read_use(folder, &state, &ticks)) {
			struct process *slot = weft_vec_push(out);
			has_memory = slot != NULL;
			if (slot)
				*slot = (struct process){pid, ticks, read_ready_ns(folder)};
		}
		if (folder >= 0)
			close(folder);
	}
	if (list)
		closedir(list);
	return has_memory;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Prints a line about a process that hangs, spins or is stopped.  Returns whether the process hangs, spins or is stopped. */
static bool put_process(int proc, const struct process *p, uint64_t begin_ns)
{
	char state, name[NAME];
	uint64_t ticks;
	const int folder = open_process(proc, p->pid);
	bool is_put = false;
	if (folder >= 0 && read_use(folder, &state, &ticks)) {
		const uint64_t passed_ns = now_ns() - begin_ns, tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
		const uint64_t used = (ticks - p->cpu_ticks) * tick_ns * 100 / passed_ns,
			       ready = (read_ready_ns(folder) - p->ready_ns) * 100 / passed_ns;
		is_put = true;
		weft_look_program_name(name, sizeof name, p->pid);
		weft_utf8_sanitize(name);
		if (state == 'T')
			printf("%ld %s is stopped by a signal; to continue it: kill -CONT %ld\n", p->pid, name, p->pid);
		else if (used >= SPINS_PERCENT || (ready >= SPINS_PERCENT && used > 0))
			printf("%ld %s does not sleep: it used %" PRIu64 "%% of a CPU\n", p->pid, name, used);
		else
			is_put = may_hang(folder) && put_fault(p->pid, name);
	}
	if (folder >= 0)
		close(folder);
	return is_put;
}

int cli_waits_all(void)
{
	const struct timespec pause = {.tv_nsec = BETWEEN_MS * 1000000L};
	const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	process_list processes = {0};
	const uint64_t begin_ns = now_ns();
	size_t put = 0;
	const bool has_memory = proc >= 0 && list_processes(proc, &processes);
	nanosleep(&pause, NULL);
	for (size_t i = 0; i < processes.count && has_memory; i++) {
		put += put_process(proc, &processes.items[i], begin_ns);
		fflush(stdout);
	}
	if (has_memory && put == 0)
		printf("no process of this user hangs for certain, runs all the time or is stopped; %zu were looked at\n",
		    processes.count);
	weft_vec_free(&processes);
	if (proc >= 0)
		close(proc);
	return has_memory ? cli_finish(CLI_OK) : cli_fail("the processes cannot be listed");
}
