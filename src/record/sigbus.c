/* sigbus.c: keeps the program alive when a trace file is truncated, and records fatal signals.
 *
 * Trace files are mapped.  If a mapped trace file is truncated, or its disk vanishes, the next store into the file raises
 * SIGBUS, which would kill the program.  This cannot be prevented: the owner of a named file can truncate it, a private mapping
 * is lost with the process, and a sealed memfd has no name and is lost too.  So a SIGBUS handler replaces the packet by memory
 * of the process and ends the recording of that OS thread; the thread's later events count as lost.
 *
 * The handler must not disturb the program's own signal handling.  While a trace is recorded into a directory, this handler
 * precedes the program's SIGBUS action, and passes other SIGBUS signals on to that action with its flags and its mask.  If the
 * program sets another action later, this handler runs only if that action passes unknown signals on. weft_stop() restores the
 * old action, unless another action has replaced this handler.
 *
 * The handler does not help if a later action of the program does not pass the signal on.  The handler does not help either in
 * an OS thread that blocks SIGBUS after its first event, which unblocks SIGBUS.
 *
 * If a signal ends the program, the trace says which signal it was, and which promise was running.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/host.h"

static struct sigaction program_action; /* the program's action */
static bool is_installed;

/* Replaces the packet at `address` by memory of the process; returns false if no file's packet is there. */
static bool replace_packet(unsigned char *address)
{
	struct weft__stream *s = weft__stream_at(address);
	if (!s)
		return false;
	size_t packet = s->storage.packet_bytes;
	unsigned char *at = s->storage.base + (size_t)(address - s->storage.base) / packet * packet;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	if (mmap(at, packet, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
		return false;
	__atomic_store_n(&s->is_broken, true, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->hot.limit, 0, __ATOMIC_SEQ_CST);
	return true;
}

/* ---- Signals that end the program ---- */

static const struct {
	int number;
	const char *name;
} fatal_signals[] = {
    {SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGBUS, "SIGBUS"}};

static void record_death(int number)
{
	for (size_t i = 0; i < sizeof fatal_signals / sizeof *fatal_signals; i++)
		if (fatal_signals[i].number == number && weft__stream != &weft__no_stream && weft_running())
			weft__slow_detail(weft_running(), WEFT_DETAIL_DIED, number, fatal_signals[i].name);
}

/* Sends the signal again.  Under a seccomp filter, the function uses the same system call as abort() and raise(), which filters
 * allow. */
static void resend_signal(int number, siginfo_t *info)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
	else
		syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

/* Handles a fatal signal; the handler is installed only if the program had no action for the signal.  After the handler was
 * removed, a faulting instruction repeats on return, so that a core dump shows it.  A signal that another process sent is sent
 * again; so is SIGTRAP, because the breakpoint has passed. */
static void on_fatal_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct sigaction initial = {.sa_handler = SIG_DFL};
	sigaction(number, &initial, NULL);
	record_death(number);
	if (info->si_code <= 0 || number == SIGTRAP)
		resend_signal(number, info);
	errno = saved;
}

static bool is_fatal_handler(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fatal_signal;
}

static void set_fatal_handlers(bool enable)
{
	struct sigaction now, ours = {.sa_sigaction = on_fatal_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction initial = {.sa_handler = SIG_DFL};
	for (size_t i = 0; i < sizeof fatal_signals / sizeof *fatal_signals; i++) {
		if (fatal_signals[i].number == SIGBUS || sigaction(fatal_signals[i].number, NULL, &now) < 0)
			continue;
		if (enable && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
			sigaction(fatal_signals[i].number, &ours, NULL);
		else if (!enable && is_fatal_handler(&now))
			sigaction(fatal_signals[i].number, &initial, NULL);
	}
}

/* ---- Trace files that were truncated ---- */

/* Does what the kernel would have done without the recorder's handler. */
static void pass_signal_on(int number, siginfo_t *info, void *context)
{
	struct sigaction action = program_action;
	bool is_sent = info->si_code <= 0;
	if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && is_sent)
		return;
	if (!(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
		/* After the handler was removed, a faulting instruction repeats on return; a sent signal is sent again. */
		action.sa_handler = SIG_DFL;
		sigaction(SIGBUS, &action, NULL);
		record_death(number);
		if (is_sent)
			resend_signal(number, info);
		return;
	}
	if (action.sa_flags & (int)SA_RESETHAND) {
		struct sigaction initial = {.sa_handler = SIG_DFL};
		sigaction(SIGBUS, &initial, NULL);
	}
	sigset_t mask = action.sa_mask;
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	if (action.sa_flags & SA_NODEFER && !sigismember(&action.sa_mask, SIGBUS)) {
		sigemptyset(&mask);
		sigaddset(&mask, SIGBUS);
		pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
	}
	if (action.sa_flags & SA_SIGINFO)
		action.sa_sigaction(number, info, context);
	else
		action.sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool is_ours = info->si_code > 0 && replace_packet(info->si_addr);
	errno = saved;
	if (!is_ours)
		pass_signal_on(number, info, context);
}

void weft__sigbus_begin(void)
{
	struct sigaction now;
	set_fatal_handlers(true);
	if (sigaction(SIGBUS, NULL, &now) < 0 || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error))
		return;
	program_action = now;
	struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	bool has_handler = now.sa_flags & SA_SIGINFO || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
	/* A handler of the program keeps its stack, and system calls restart as the program chose. */
	if (has_handler)
		ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_RESTART | SA_ONSTACK));
	is_installed = sigaction(SIGBUS, &ours, NULL) == 0;
}

void weft__sigbus_end(void)
{
	struct sigaction now;
	set_fatal_handlers(false);
	if (is_installed && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error)
		sigaction(SIGBUS, &program_action, NULL);
	is_installed = false;
}

void weft__sigbus_unblock(void)
{
	sigset_t bus;
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
}
