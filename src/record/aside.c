/* aside.c: work with descriptors, where no descriptor of the program's is, and none of ours is the program's.
 *
 * A descriptor is a number in a table that all OS threads of a process share.  Any of them may close a number that it does not
 * know, as daemons do with close_range(3, ~0), and the next open() of another gets it: whoever then uses or closes the number
 * works on a file of the program's.  No check helps, since the number may change hands right after it.  So the recorder never has
 * a descriptor in the program's table, not even for a moment.  What needs one is done by a short-lived OS thread that begins by
 * giving itself an empty table (CLOSE_RANGE_UNSHARE), while the caller waits for its end.  Mappings are what remains: they belong
 * to the process, not to the table.
 *
 * That OS thread has nothing of the C library's of its own: it borrows the thread-local storage (errno) of the caller, who sleeps
 * meanwhile.  All signals are blocked in it; so a SIGXFSZ of a file that passes RLIMIT_FSIZE is sent to it, and ends with it. Its
 * working directory and umask are copies too, where the system allows that.  When the caller goes on, it is gone: a program with
 * one OS thread can rely on being alone.
 *
 * A child process would be worse: the program's wait() might find it, and it could not map files for its parent.  A table that is
 * kept would need an OS thread that is kept, and programs with one OS thread may do what others may not (unshare, setns).
 * SPDX-License-Identifier: ISC */
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

/* By glibc's other name for clone(), since sanitizers and tracers put a function of theirs in its place, which takes every clone
 * for a fork. */
#ifdef __GLIBC__
int weft__clone(int (*run)(void *), void *stack, int flags, void *arg, ...) __asm__("__clone");
#else
#define weft__clone clone
#endif

#define STACK_BYTES 65536u
/* What pthread_create() asks for, to the bit: filters of system calls know it. */
#define FLAGS                                                                                                                    \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_PARENT_SETTID |                \
	    CLONE_CHILD_CLEARTID)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
static struct {
	int (*work)(void *);
	void *data;
	int result;
	int tid; /* set when it begins, cleared by the kernel when it ends */
} task;

static int run(void *arg)
{
	(void)arg;
	if (syscall(SYS_close_range, 0u, ~0u, 2 /* CLOSE_RANGE_UNSHARE */) < 0 && unshare(CLONE_FILES) < 0)
		return 0;
	if (unshare(CLONE_FS) == 0)
		umask(077);
	task.result = task.work(task.data);
	return 0;
}

/* The thread pointer as clone() takes it, where that is simple; elsewhere it is inherited all the same. */
static int tls_flag(void **pointer)
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

static void wait_for_end(int tid)
{
	int still;
	while ((still = __atomic_load_n(&task.tid, __ATOMIC_ACQUIRE)))
		syscall(SYS_futex, &task.tid, FUTEX_WAIT, still, NULL, NULL, 0);
	/* It has let go of our memory; now until it is no OS thread of this process any more. */
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
}

int weft__aside(int (*work)(void *), void *data)
{
	uint64_t every[16] = {0}, before[16] = {0};
	memset(every, 0xff, sizeof every);
	size_t size = _NSIG / 8 < sizeof every ? _NSIG / 8 : sizeof every;
	int cancel, saved = errno;
	/* The work's system calls look at the caller's thread-local storage for whether the caller is cancelled. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	/* Not by sigprocmask(), which spares the signals that the C library has for itself. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, every, before, size);
	pthread_mutex_lock(&lock);
	task.work = work;
	task.data = data;
	task.result = WEFT_ENOTSUP;
	void *tls;
	int flags = FLAGS | tls_flag(&tls);
	int tid = weft__clone(run, stack + sizeof stack, flags, NULL, &task.tid, tls, &task.tid);
	if (tid > 0)
		wait_for_end(tid);
	int result = task.result;
	pthread_mutex_unlock(&lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, size);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return result;
}

void weft__aside_lock(void)
{
	pthread_mutex_lock(&lock);
}

void weft__aside_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void weft__aside_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
