/* fd_thread.c: runs work that needs file descriptors in a thread with a descriptor table of its own.
 *
 * All OS threads of a process normally share one descriptor table.  Any thread may close descriptors that it does not know, as
 * daemons do with close_range(3, ~0), and the next open() of another thread reuses the number.  Code that then uses or closes
 * the number acts on a file of the program.  A check does not help, because the number may change its meaning right after the
 * check.  So the recorder never has a descriptor in the program's table, not even for a moment.  A short-lived OS thread does
 * the work: it first gives itself an empty table (CLOSE_RANGE_UNSHARE), and the caller waits for its end.  Mappings that the
 * thread makes remain, because they belong to the process.
 *
 * The thread has no C library state of its own: it uses the thread-local storage (errno) of the caller, which sleeps meanwhile.
 * All signals are blocked in the thread; the SIGXFSZ of a file that exceeds RLIMIT_FSIZE goes to the thread and vanishes with
 * it.  Its working directory and umask are copies too, where the system allows that.  The thread has ended when the caller
 * continues, so a program with one OS thread still has one.
 *
 * A child process would be worse: the program's wait() might return it, and it could not map files for its parent.  A permanent
 * table would need a permanent OS thread, and a program with one OS thread may make calls that are forbidden with several
 * threads (unshare, setns).  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/host.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* glibc's second name of clone(), which is used because sanitizers and tracers replace clone() by a function that treats every
 * clone as a fork. */
#ifdef __GLIBC__
int weft__clone(int (*run_task)(void *), void *stack, int flags, void *arg, ...) __asm__("__clone");
#else
#define weft__clone clone
#endif

#define STACK_BYTES 65536u
/* Exactly the flags of pthread_create(), because seccomp filters allow these. */
#define CLONE_FLAGS                                                                                                              \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |                \
	    CLONE_CHILD_CLEARTID)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
static struct {
	int (*work)(void *);
	void *data;
	int result;
	int tid; /* tid of the thread, set when the thread starts and cleared by the kernel when it ends */
} task;

static int run_task(void *arg)
{
	(void)arg;
	if (syscall(SYS_close_range, 0u, ~0u, 2 /* CLOSE_RANGE_UNSHARE */) < 0 && unshare(CLONE_FILES) < 0)
		return 0;
	if (unshare(CLONE_FS) == 0)
		umask(077);
	task.result = task.work(task.data);
	return 0;
}

/* Returns the flag that passes the thread pointer to clone(), where that is simple; on other CPUs the thread inherits the
 * pointer anyway. */
static int get_tls_flag(void **pointer)
{
#if defined(__x86_64__) && defined(__LP64__)
	__asm__("mov %%fs:0, %0" : "=r"(*pointer));
	return CLONE_SETTLS;
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(*pointer));
	return CLONE_SETTLS;
#else
	*pointer = NULL;
	return 0;
#endif
}

static void wait_for_exit(int tid)
{
	int running_tid;
	while ((running_tid = __atomic_load_n(&task.tid, __ATOMIC_ACQUIRE)))
		syscall(SYS_futex, &task.tid, FUTEX_WAIT, running_tid, NULL, NULL, 0);
	/* The thread no longer uses this memory, but the caller waits until it is no thread of this process any more. */
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
}

int weft__fd_thread_run(int (*work)(void *), void *data)
{
	uint64_t all_signals[16] = {0}, before[16] = {0};
	memset(all_signals, 0xff, sizeof all_signals);
	size_t size = _NSIG / 8 < sizeof all_signals ? _NSIG / 8 : sizeof all_signals;
	int cancel, saved = errno;
	/* Cancellation is disabled, because system calls of the work check the caller's thread-local storage for
	 * cancellation. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* sigprocmask() cannot be used, because it leaves out the signals that the C library reserves. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, all_signals, before, size);
	pthread_mutex_lock(&lock);
	task.work = work;
	task.data = data;
	task.result = WEFT_ENOTSUP;
	void *tls;
	int flags = CLONE_FLAGS | get_tls_flag(&tls);
	int tid = weft__clone(run_task, stack + sizeof stack, flags, NULL, &task.tid, tls, &task.tid);
	if (tid > 0)
		wait_for_exit(tid);
	int result = task.result;
	pthread_mutex_unlock(&lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, size);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return result;
}

void weft__fd_thread_lock(void)
{
	pthread_mutex_lock(&lock);
}

void weft__fd_thread_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void weft__fd_thread_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
