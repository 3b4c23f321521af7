/* guard.c: a trace file that does not hold what is written does not end the program.
 *
 * Trace files are mapped.  When somebody makes one shorter, or its disk vanishes, the next store into it raises SIGBUS, which
 * would kill the program.  Nothing prevents that: a file with a name can be truncated by its owner, a private mapping is lost
 * with the process, memory that cannot be truncated (a sealed memfd) has no name and is lost too.  So a handler puts memory of
 * the process in the place of the packet and ends the recording of that OS thread, whose later events are counted as lost.
 *
 * It is the program's guest.  While a trace is recorded into a directory it stands before the action for SIGBUS that the program
 * had, and hands on what is not ours, as if that had been called: its flags, its mask.  A program that sets an action of its own
 * later has it, and this handler is asked only if that action passes on what it does not know.  At weft_stop() the old action is
 * put back, if nobody has replaced ours.
 *
 * It does not help where a later action of the program's does not pass the signal on, nor in an OS thread that blocks SIGBUS
 * after its first event (an OS thread's first event unblocks it).
 *
 * Signals that end a program are told of, where they would end it: which one it was, and what ran.  SPDX-License-Identifier: ISC
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/host.h"

static struct sigaction before; /* what the program had */
static bool is_installed;

/* Puts memory of the process in the place of the packet at `address`; false: it is no packet of a file. */
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

/* ---- What ends the program ---- */

static const struct {
	int number;
	const char *name;
} deadly[] = {
    {SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGBUS, "SIGBUS"}};

static void tell_death(int number)
{
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		if (deadly[i].number == number && weft__stream != &weft__nobody && weft_running())
			weft__slow_detail(weft_running(), WEFT_DETAIL_DIED, number, deadly[i].name);
}

/* A filter of system calls knows what abort() and raise() do. */
static void send_again(int number, siginfo_t *info)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), number);
	else
		syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), number, info);
}

/* Stands only where the program had no action.  What raised the signal is done again on return, now without a handler, so that a
 * core dump shows it; what was sent is sent again, and a breakpoint has been passed already. */
static void on_death(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct sigaction initial = {.sa_handler = SIG_DFL};
	sigaction(number, &initial, NULL);
	tell_death(number);
	if (info->si_code <= 0 || number == SIGTRAP)
		send_again(number, info);
	errno = saved;
}

static bool is_on_death(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_death;
}

static void watch_deaths(bool watch)
{
	struct sigaction now, ours = {.sa_sigaction = on_death, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction initial = {.sa_handler = SIG_DFL};
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
		if (deadly[i].number == SIGBUS || sigaction(deadly[i].number, NULL, &now) < 0)
			continue;
		if (watch && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
			sigaction(deadly[i].number, &ours, NULL);
		else if (!watch && is_on_death(&now))
			sigaction(deadly[i].number, &initial, NULL);
	}
}

/* ---- Trace files that were truncated ---- */

/* Does what the kernel would have done without this handler. */
static void hand_on(int number, siginfo_t *info, void *context)
{
	struct sigaction action = before;
	bool is_sent = info->si_code <= 0;
	if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && is_sent)
		return;
	if (!(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
		/* What raised it is done again on return, now without a handler.  What was sent is sent again. */
		action.sa_handler = SIG_DFL;
		sigaction(SIGBUS, &action, NULL);
		tell_death(number);
		if (is_sent)
			send_again(number, info);
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
		hand_on(number, info, context);
}

void weft__guard_begin(void)
{
	struct sigaction now;
	watch_deaths(true);
	if (sigaction(SIGBUS, NULL, &now) < 0 || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error))
		return;
	before = now;
	struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	bool has_handler = now.sa_flags & SA_SIGINFO || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
	/* A handler of the program's finds the stack that it asked for, and system calls end as it asked for. */
	if (has_handler)
		ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_RESTART | SA_ONSTACK));
	is_installed = sigaction(SIGBUS, &ours, NULL) == 0;
}

void weft__guard_end(void)
{
	struct sigaction now;
	watch_deaths(false);
	if (is_installed && sigaction(SIGBUS, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error)
		sigaction(SIGBUS, &before, NULL);
	is_installed = false;
}

void weft__guard_this_thread(void)
{
	sigset_t bus;
	sigemptyset(&bus);
	sigaddset(&bus, SIGBUS);
	pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
}
