/* wake.c: weft on and off have a program act that sleeps.
 *
 * Its OS threads sleep in epoll_wait() or poll(), mostly.  The kernel lets whoever may write into a program's memory interrupt
 * such a call (ptrace): it returns EINTR.  That is done only where libweft-hook made the call, which does not tell the program of
 * it. SPDX-License-Identifier: ISC */
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

struct sleeper {
	long pid, tid;
	int memory;
	const struct weft_standby *page;
	uint64_t page_at;
};

/* A system call that the kernel would begin anew by itself, or by its own way on: what it has in place of a result. */
enum { RESTART_NO_HAND = 514, RESTART_BLOCK = 516 };

static bool is_wait(long number)
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

/* Whether it waits, in a call that libweft-hook made: then its return address is on the stack, a few words away. */
static bool is_asleep(const struct sleeper *s)
{
	enum { WORDS = 32 };
	char path[64];
	long number;
	uint64_t stack, words[WORDS];
	snprintf(path, sizeof path, "/proc/%ld/task/%ld/syscall", s->pid, s->tid);
	FILE *file = fopen(path, "re");
	const int found = file ? fscanf(file, "%ld %*s %*s %*s %*s %*s %*s %" SCNx64, &number, &stack) : 0;
	if (file)
		fclose(file);
	if (found != 2 || !is_wait(number) || pread(s->memory, words, sizeof words, (off_t)stack) != (ssize_t)sizeof words)
		return false;
	for (size_t i = 0; i < WORDS; i++)
		if (words[i] - s->page->waits_begin < s->page->waits_end - s->page->waits_begin)
			return true;
	return false;
}

/* Its call becomes one that was interrupted.  epoll_wait() is one already; the others would go on by themselves. */
static bool interrupt(const struct sleeper *s)
{
#ifdef __x86_64__
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, (pid_t)s->tid, NULL, &r) || !is_wait((long)r.orig_rax))
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

/* It stands still; false: it has ended, or is in the middle of something in the kernel. */
static bool stops(pid_t tid, int *status)
{
	enum { TRIES = 200, WAIT_US = 500 };
	for (int i = 0; i < TRIES; i++) {
		const pid_t got = waitpid(tid, status, __WALL | WNOHANG);
		if (got == tid || (got < 0 && errno != EINTR))
			return got == tid && WIFSTOPPED(*status);
		usleep(WAIT_US);
	}
	return false;
}

static void wake(const struct sleeper *s)
{
	const pid_t tid = (pid_t)s->tid;
	const uint64_t at = s->page_at + offsetof(struct weft_standby, wakes);
	uint32_t wakes;
	int status;
	if (!is_asleep(s) || ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || !stops(tid, &status))
		return; /* it is let go when this command ends */
	const bool is_ours = status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8);
	/* Before it runs again. */
	if (is_ours && pread(s->memory, &wakes, sizeof wakes, (off_t)at) == sizeof wakes) {
		wakes++;
		(void)!pwrite(s->memory, &wakes, sizeof wakes, (off_t)at);
		interrupt(s);
	}
	/* A signal that came just then is passed on. */
	const long number = is_ours || status >> 16 ? 0 : WSTOPSIG(status);
	ptrace(PTRACE_DETACH, tid, NULL, (void *)number);
}

void cli_wake(long pid, int memory, const struct weft_standby *page, uint64_t page_at)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%ld/task", pid);
	DIR *tasks = page->waits_begin && page->pointer_bytes == sizeof(void *) ? opendir(path) : NULL;
	for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
		const long tid = strtol(entry->d_name, NULL, 10);
		if (tid > 0)
			wake(&(struct sleeper){pid, tid, memory, page, page_at});
	}
	if (tasks)
		closedir(tasks);
}
