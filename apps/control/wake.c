/* wake.c: interrupts the sleep of a program for weft on and weft off.
 *
 * OS threads mostly sleep in epoll_wait() or poll(). ptrace can interrupt such a call, which then returns EINTR.  Only calls by
 * libweft-hook are interrupted, because libweft-hook hides the EINTR from the program.  SPDX-License-Identifier: ISC */
#include "wake.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"

struct sleeper {
	long pid, tid;
	int memory_fd;
	const struct weft_standby *page;
	uint64_t page_at;
	int64_t deadline_ns;
};

/* Results of interrupted syscalls that the kernel itself restarts. */
enum { RESTART_NO_HAND = 514, RESTART_BLOCK = 516 };

static bool is_wait_call(long number)
{
	static const long waits[] = {
#ifdef SYS_epoll_wait
	    SYS_epoll_wait,
	    SYS_poll,
	    SYS_select,
#endif
	    SYS_epoll_pwait,
	    SYS_epoll_pwait2,
	    SYS_ppoll,
	    SYS_pselect6,
	};
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		if (waits[i] == number)
			return true;
	return false;
}

/* Returns whether the thread waits in a call by libweft-hook; the return address of such a call is near the top of the stack. */
static bool is_asleep(const struct sleeper *s)
{
	enum { STACK_WORDS = 32 };
	char path[64];
	long number;
	uint64_t stack, words[STACK_WORDS];
	snprintf(path, sizeof path, "/proc/%ld/task/%ld/syscall", s->pid, s->tid);
	FILE *file = fopen(path, "re");
	const int found = file ? fscanf(file, "%ld %*s %*s %*s %*s %*s %*s %" SCNx64, &number, &stack) : 0;
	if (file)
		fclose(file);
	if (found != 2 || !is_wait_call(number) ||
	    pread(s->memory_fd, words, sizeof words, (off_t)stack) != (ssize_t)sizeof words)
		return false;
	for (size_t i = 0; i < STACK_WORDS; i++)
		if (words[i] - s->page->waits_begin < s->page->waits_end - s->page->waits_begin)
			return true;
	return false;
}

/* Makes the syscall return EINTR. epoll_wait() returns EINTR anyway; the kernel would restart other calls. */
static bool interrupt_call(const struct sleeper *s)
{
#ifdef __x86_64__
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, (pid_t)s->tid, NULL, &r) || !is_wait_call((long)r.orig_rax))
		return false;
	if ((long)r.rax == -EINTR)
		return true;
	if ((long)r.rax != -RESTART_NO_HAND && (long)r.rax != -RESTART_BLOCK)
		return false;
	r.rax = (unsigned long long)-EINTR;
	r.orig_rax = (unsigned long long)-1;
	return ptrace(PTRACE_SETREGS, (pid_t)s->tid, NULL, &r) == 0;
#else
	return is_asleep(s);
#endif
}

/* Waits until the thread has stopped.  Returns false if the thread has ended or is inside of the kernel. */
static bool wait_for_stop(pid_t tid, int *status, int64_t deadline_ns)
{
	enum { TRIES = 200, WAIT_US = 500 };
	for (int i = 0; i < TRIES && !deadline_is_over(deadline_ns); i++) {
		const pid_t got = waitpid(tid, status, __WALL | WNOHANG);
		if (got == tid || (got < 0 && errno != EINTR))
			return got == tid && WIFSTOPPED(*status);
		usleep(WAIT_US);
	}
	return false;
}

static void wake_thread(const struct sleeper *s)
{
	const pid_t tid = (pid_t)s->tid;
	const uint64_t at = s->page_at + offsetof(struct weft_standby, wakes);
	uint32_t wakes;
	int status;
	if (!is_asleep(s) || ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || !wait_for_stop(tid, &status, s->deadline_ns))
		return; /* the kernel releases the thread when this command ends */
	const bool is_ours = status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8);
	/* The call must be interrupted before the thread runs again. */
	if (is_ours && pread(s->memory_fd, &wakes, sizeof wakes, (off_t)at) == sizeof wakes) {
		wakes++;
		(void)!pwrite(s->memory_fd, &wakes, sizeof wakes, (off_t)at);
		interrupt_call(s);
	}
	/* A signal that arrived meanwhile is passed on to the thread. */
	const long number = is_ours || status >> 16 ? 0 : WSTOPSIG(status);
	ptrace(PTRACE_DETACH, tid, NULL, (void *)number);
}

void cli_wake_threads(long pid, int memory_fd, const struct weft_standby *page, uint64_t page_at, int64_t deadline_ns)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%ld/task", pid);
	DIR *tasks = page->waits_begin && page->pointer_bytes == sizeof(void *) ? opendir(path) : NULL;
	for (const struct dirent *entry; tasks && !deadline_is_over(deadline_ns) && (entry = readdir(tasks));) {
		const long tid = strtol(entry->d_name, NULL, 10);
		if (tid > 0)
			wake_thread(&(struct sleeper){pid, tid, memory_fd, page, page_at, deadline_ns});
	}
	if (tasks)
		closedir(tasks);
}
