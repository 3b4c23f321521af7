/* threads.c: stops and releases the OS threads of a program by ptrace.  SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/private.h"

/* Results of interrupted system calls that the kernel itself restarts. */
enum { RESTART_NO_HAND = 514, RESTART_BLOCK = 516 };

bool weft__attach_is_wait(long number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6: return true;
	default: return false;
	}
}

size_t weft__attach_list_threads(struct attach_target *t)
{
	char path[48];
	size_t added = 0;
	snprintf(path, sizeof path, "/proc/%ld/task", (long)t->pid);
	DIR *tasks = opendir(path);
	for (const struct dirent *entry; tasks && (entry = readdir(tasks));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		size_t i = 0;
		while (i < t->thread_count && t->threads[i].tid != tid)
			i++;
		if (tid <= 0 || i < t->thread_count || t->thread_count == ATTACH_MAX_THREADS)
			continue;
		t->threads[t->thread_count++] = (struct attach_thread){.tid = tid};
		added++;
	}
	if (tasks)
		closedir(tasks);
	return added;
}

/* Seizing an OS thread does not stop it. */
static void seize(struct attach_thread *thread)
{
	thread->is_seized = thread->is_seized || ptrace(PTRACE_SEIZE, thread->tid, NULL, NULL) == 0;
}

/* Returns whether the OS thread runs no code any more.  The first thread of a process stays as a zombie until the others end. */
static bool has_ended(const struct attach_target *t, pid_t tid)
{
	char path[64], state = 'X';
	snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", (long)t->pid, (long)tid);
	FILE *file = fopen(path, "re");
	char text[512];
	const size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
	text[got] = 0;
	const char *after = strrchr(text, ')');
	if (after && after[1] == ' ')
		state = after[2];
	if (file)
		fclose(file);
	return state == 'Z' || state == 'X';
}

/* Waits until the OS thread has stopped because of PTRACE_INTERRUPT.  Returns false if it has ended, or time is over. */
static bool wait_for_stop(struct attach_thread *thread, int64_t deadline_ns)
{
	enum { SPINS = 50, WAIT_US = 100 };
	for (unsigned tries = 0;; tries++) {
		int status;
		const pid_t got = waitpid(thread->tid, &status, __WALL | WNOHANG);
		if (got < 0 && errno != EINTR)
			return thread->is_seized = false;
		if (got == thread->tid && !WIFSTOPPED(status))
			return thread->is_seized = false;
		if (got == thread->tid && status >> 16 == PTRACE_EVENT_STOP)
			return thread->is_stopped = true;
		if (got == thread->tid)
			ptrace(PTRACE_CONT, thread->tid, NULL, (void *)(long)WSTOPSIG(status));
		else if (weft__attach_is_over(deadline_ns))
			return false;
		else if (tries > SPINS)
			usleep(WAIT_US);
		else
			sched_yield();
	}
}

bool weft__attach_stop(struct attach_thread *thread, int64_t deadline_ns)
{
	seize(thread);
	return thread->is_seized && ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL) == 0 && wait_for_stop(thread, deadline_ns);
}

void weft__attach_release(struct attach_thread *thread)
{
	if (!thread->is_seized)
		return;
	/* Only a stopped thread can be released. */
	if (!thread->is_stopped) {
		enum { GRACE_NS = 1000000000 };
		wait_for_stop(thread, weft__attach_now_ns() + GRACE_NS);
	}
	if (thread->is_stopped)
		ptrace(PTRACE_DETACH, thread->tid, NULL, NULL);
	thread->is_seized = thread->is_stopped = false;
}

static bool stop_listed(struct attach_target *t, int64_t deadline_ns)
{
	bool whole = true;
	for (size_t i = 0; i < t->thread_count; i++) {
		seize(&t->threads[i]);
		whole &= t->threads[i].is_seized || has_ended(t, t->threads[i].tid);
	}
	for (size_t i = 0; whole && i < t->thread_count; i++)
		if (t->threads[i].is_seized && !t->threads[i].is_stopped)
			ptrace(PTRACE_INTERRUPT, t->threads[i].tid, NULL, NULL);
	for (size_t i = 0; whole && i < t->thread_count; i++)
		if (t->threads[i].is_seized && !t->threads[i].is_stopped)
			whole &= wait_for_stop(&t->threads[i], deadline_ns) || !t->threads[i].is_seized;
	return whole;
}

bool weft__attach_stop_all(struct attach_target *t, int64_t deadline_ns)
{
	t->thread_count = 0;
	weft__attach_list_threads(t);
	/* A stopped OS thread starts no other one, so the list is complete when it no longer grows. */
	bool whole = true;
	do
		whole &= stop_listed(t, deadline_ns);
	while (whole && weft__attach_list_threads(t));
	if (whole)
		return true;
	weft__attach_release_all(t, false);
	return false;
}

/* Returns whether a signal that the thread does not block is pending. */
static bool has_pending_signal(const struct attach_target *t, const struct attach_thread *thread)
{
	char path[64], line[128];
	uint64_t own = 0, shared = 0, blocked = 0;
	snprintf(path, sizeof path, "/proc/%ld/task/%ld/status", (long)t->pid, (long)thread->tid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		sscanf(line, "SigPnd: %" SCNx64, &own);
		sscanf(line, "ShdPnd: %" SCNx64, &shared);
		sscanf(line, "SigBlk: %" SCNx64, &blocked);
	}
	if (file)
		fclose(file);
	return ((own | shared) & ~blocked) != 0;
}

void weft__attach_hide_interruption(const struct attach_target *t, const struct attach_thread *thread, struct user_regs_struct *r)
{
	const long number = (long)r->orig_rax;
	/* The kernel restarts other calls itself.  With a pending signal, EINTR is the answer that the program expects. */
	if ((long)r->rax != -EINTR || !weft__attach_is_wait(number) || has_pending_signal(t, thread))
		return;
	r->rip -= SYSCALL_BYTES;
	r->rax = (unsigned long long)number;
	r->orig_rax = (unsigned long long)-1;
}

/* Returns whether a runtime whose loop expects EINTR called the wait: an address of its code is near the top of the stack. */
static bool is_wait_of_runtime(const struct attach_target *t, const struct user_regs_struct *r)
{
	enum { STACK_WORDS = 32 };
	uint64_t words[STACK_WORDS];
	const struct weft_look_module *module = weft__attach_module(t, r->rip);
	if (module && t->waits_again[module - t->modules])
		return true;
	if (!weft__attach_read(t, r->rsp, words, sizeof words))
		return false;
	for (size_t i = 0; i < STACK_WORDS; i++) {
		module = weft__attach_module(t, words[i]);
		if (module && (size_t)(module - t->modules) != t->libc)
			return t->waits_again[module - t->modules];
	}
	return false;
}

static void end_wait(const struct attach_target *t, const struct attach_thread *thread, bool wakes)
{
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &r))
		return;
	const struct user_regs_struct before = r;
	const long result = (long)r.rax;
	const bool is_restarted = result == -RESTART_NO_HAND || result == -RESTART_BLOCK;
	const bool is_wait = weft__attach_is_wait((long)r.orig_rax) || (long)r.orig_rax == SYS_restart_syscall;
	if (!is_wait || (!is_restarted && result != -EINTR))
		return;
	if (wakes && is_wait_of_runtime(t, &r)) {
		r.rax = (unsigned long long)-EINTR;
		r.orig_rax = (unsigned long long)-1;
	} else {
		weft__attach_hide_interruption(t, thread, &r);
	}
	if (r.rax != before.rax || r.orig_rax != before.orig_rax)
		ptrace(PTRACE_SETREGS, thread->tid, NULL, &r);
}

void weft__attach_release_all(struct attach_target *t, bool wakes)
{
	for (size_t i = 0; i < t->thread_count; i++) {
		if (t->threads[i].is_stopped)
			end_wait(t, &t->threads[i], wakes);
		weft__attach_release(&t->threads[i]);
	}
}
