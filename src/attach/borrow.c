/* borrow.c: starts an OS thread in the program, which loads the recorder.
 *
 * An OS thread of the program is borrowed only to call pthread_create(), which needs memory: if the borrowed thread itself held
 * the lock of malloc() or of the loader, the program would hang for ever.  So a thread is borrowed only at a system call that
 * neither an allocator nor the loader makes, outside of signal handlers, because a handler may have interrupted malloc().  The
 * new thread then may wait for any lock, since the program goes on.  SPDX-License-Identifier: ISC */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/private.h"

#define FIND_NS INT64_C(5000000000)  /* limit of the search for a safe moment */
#define CALL_NS INT64_C(1000000000)  /* limit of one call on a borrowed thread */
#define LOAD_NS INT64_C(30000000000) /* limit of the load, which may wait until the program's own loads end */
#define STOP_NS INT64_C(100000000)
#define STEP_NS INT64_C(20000000)

enum {
	TEXT_BYTES = 4096,
	STACK_BYTES = 64 << 10,
	MAX_STATE_BYTES = 64 << 10, /* capacity for the vector registers */
	MAX_TEXT = 4096,
	SIGNAL_MASK_BYTES = 8
};

/* ---- Safe moments ---- */

/* Returns whether the system call is made only with no lock of an allocator or of the loader. */
static bool is_safe_call(long number, unsigned long operation)
{
	if (weft__attach_is_wait(number))
		return true;
	switch (number) {
	case SYS_futex: {
		/* glibc waits so for conditions, semaphores and the end of threads; for its own locks it uses FUTEX_WAIT. */
		const unsigned long of_condition = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME,
				    of_join = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
		return operation == of_condition || operation == of_join ||
		       operation == (of_condition & ~(unsigned long)FUTEX_CLOCK_REALTIME);
	}
	case SYS_accept:
	case SYS_accept4:
	case SYS_clock_nanosleep:
	case SYS_nanosleep:
	case SYS_pause:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_restart_syscall:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_sendmsg:
	case SYS_sendto:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_write:
	case SYS_writev: return true;
	default: return false;
	}
}

static bool is_of_loader(const struct weft_look_module *module)
{
	const char *slash = module ? strrchr(module->path, '/') : NULL;
	return slash && !strncmp(slash, "/ld-", 4);
}

/* Returns whether the thread's stack contains the return address of a signal handler, at which the code calls
 * rt_sigreturn(). */
static bool is_in_handler(const struct attach_target *t, uint64_t sp)
{
	enum { MAX_WORDS = 8192 };
	static const unsigned char code[] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05};
	static uint64_t words[MAX_WORDS];
	const ssize_t got = pread(t->memory_fd, words, sizeof words, (off_t)sp);
	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof *words; i++) {
		unsigned char there[sizeof code];
		if (weft__attach_module(t, words[i]) && weft__attach_read(t, words[i], there, sizeof there) &&
		    memcmp(there, code, sizeof code) == 0)
			return true;
	}
	return got <= 0;
}

static bool is_safe_moment(const struct attach_target *t, const struct user_regs_struct *r)
{
	unsigned char code[SYSCALL_BYTES];
	return is_safe_call((long)r->orig_rax, r->rsi) && !is_of_loader(weft__attach_module(t, r->rip)) &&
	       weft__attach_read(t, r->rip - SYSCALL_BYTES, code, sizeof code) && code[0] == 0x0f && code[1] == 0x05 &&
	       !is_in_handler(t, r->rsp);
}

/* ---- A borrowed thread ---- */

struct borrowed {
	struct attach_target *target;
	struct attach_thread *thread;
	struct user_regs_struct before; /* registers to which the thread returns */
	uint64_t syscall_at;            /* address of an instruction `syscall` */
	unsigned char *state;           /* vector registers; owned */
	size_t state_bytes;
	uint64_t mask;
};

/* Waits for a stop other than those of the borrowed thread's signals, which the thread gets later. */
static bool wait_for_trap(const struct borrowed *b, int *status, int64_t limit_ns)
{
	const int64_t deadline_ns = weft__attach_now_ns() + limit_ns;
	enum { SPINS = 200, WAIT_US = 100 };
	for (unsigned tries = 0;; tries++) {
		const pid_t got = waitpid(b->thread->tid, status, __WALL | WNOHANG);
		if (got == b->thread->tid)
			return WIFSTOPPED(*status);
		if (got < 0 && errno != EINTR)
			return false;
		if (weft__attach_is_over(deadline_ns))
			return false;
		if (tries > SPINS)
			usleep(WAIT_US);
	}
}

/* Makes a system call on the borrowed thread.  Returns its result, or -EINTR if the thread has ended. */
static long call_kernel(const struct borrowed *b, long number, const unsigned long args[6])
{
	struct user_regs_struct r = b->before;
	int status;
	r.orig_rax = (unsigned long long)-1;
	r.rax = (unsigned long long)number;
	r.rdi = args[0], r.rsi = args[1], r.rdx = args[2], r.r10 = args[3], r.r8 = args[4], r.r9 = args[5];
	r.rip = b->syscall_at;
	if (ptrace(PTRACE_SETREGS, b->thread->tid, NULL, &r) || ptrace(PTRACE_SINGLESTEP, b->thread->tid, NULL, NULL) ||
	    !wait_for_trap(b, &status, CALL_NS) || ptrace(PTRACE_GETREGS, b->thread->tid, NULL, &r))
		return -EINTR;
	return (long)r.rax;
}

static uint64_t map_memory(const struct borrowed *b, size_t bytes, int protection)
{
	const long at = call_kernel(b, SYS_mmap,
	    (const unsigned long[]){0, bytes, (unsigned long)protection, MAP_PRIVATE | MAP_ANONYMOUS, (unsigned long)-1, 0});
	return at > 0 || at < -4095 ? (uint64_t)at : 0;
}

static void unmap_memory(const struct borrowed *b, uint64_t at, size_t bytes)
{
	call_kernel(b, SYS_munmap, (const unsigned long[]){at, bytes, 0, 0, 0, 0});
}

/* Calls a function on the borrowed thread, on a stack of its own.  Returns false if the function does not return in time. */
static bool call_function(
    const struct borrowed *b, uint64_t function, const uint64_t args[4], uint64_t stack, uint64_t trap, uint64_t *result)
{
	struct user_regs_struct r = b->before;
	const uint64_t top = (stack + STACK_BYTES - 64) & ~UINT64_C(15);
	int status;
	r.orig_rax = (unsigned long long)-1;
	r.rsp = top - sizeof trap;
	r.rip = function;
	r.rax = r.rbp = 0;
	r.rdi = args[0], r.rsi = args[1], r.rdx = args[2], r.rcx = args[3];
	r.eflags &= ~UINT64_C(0x500); /* the direction and trap flags */
	if (!weft__attach_write(b->target, r.rsp, &trap, sizeof trap) || ptrace(PTRACE_SETREGS, b->thread->tid, NULL, &r))
		return false;
	for (long signal = 0;;) {
		ptrace(PTRACE_CONT, b->thread->tid, NULL, (void *)signal);
		if (!wait_for_trap(b, &status, CALL_NS)) {
			/* The call is given up; the thread then goes on as before. */
			ptrace(PTRACE_INTERRUPT, b->thread->tid, NULL, NULL);
			wait_for_trap(b, &status, CALL_NS);
			return false;
		}
		if (ptrace(PTRACE_GETREGS, b->thread->tid, NULL, &r))
			return false;
		if (WSTOPSIG(status) == SIGTRAP && r.rip == trap + 1) {
			*result = r.rax;
			return true;
		}
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE)
			return false;
	}
}

/* Saves the rest of the thread's state, and blocks its signals while it is borrowed.  Signals of faults stay, because a blocked
 * signal of a fault ends the program. */
static bool begin_borrowing(struct borrowed *b)
{
	const uint64_t faults =
	    1 << (SIGTRAP - 1) | 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1) | 1 << (SIGILL - 1) | 1 << (SIGFPE - 1);
	const uint64_t blocked = ~faults;
	b->state = malloc(MAX_STATE_BYTES);
	struct iovec state = {b->state, MAX_STATE_BYTES};
	const pid_t tid = b->thread->tid;
	if (!b->state || ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &state) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)SIGNAL_MASK_BYTES, &b->mask) ||
	    ptrace(PTRACE_SETSIGMASK, tid, (void *)SIGNAL_MASK_BYTES, &blocked)) {
		free(b->state);
		b->state = NULL;
		return false;
	}
	b->state_bytes = state.iov_len;
	return true;
}

static void end_borrowing(struct borrowed *b)
{
	const pid_t tid = b->thread->tid;
	if (b->state) {
		struct iovec state = {b->state, b->state_bytes};
		ptrace(PTRACE_SETREGSET, tid, (void *)NT_X86_XSTATE, &state);
		ptrace(PTRACE_SETREGS, tid, NULL, &b->before);
		ptrace(PTRACE_SETSIGMASK, tid, (void *)SIGNAL_MASK_BYTES, &b->mask);
	}
	free(b->state);
	b->state = NULL;
	weft__attach_release(b->thread);
}

/* ---- The search for a thread ---- */

/* Borrows a thread that is blocked in a safe system call. */
static bool borrow_blocked(struct borrowed *b, struct attach_thread *thread)
{
	if (!weft__attach_stop(thread, weft__attach_now_ns() + STOP_NS))
		return false;
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &r) == 0 && (long)r.orig_rax >= 0 && is_safe_moment(b->target, &r)) {
		b->thread = thread;
		b->syscall_at = r.rip - SYSCALL_BYTES;
		b->before = r;
		weft__attach_hide_interruption(b->target, thread, &b->before);
		return true;
	}
	return false;
}

/* Lets a running thread run until its next system call.  Returns false if it makes none in time. */
static bool run_to_call(const struct borrowed *b, const struct attach_thread *thread, struct user_regs_struct *r)
{
	const struct borrowed of_thread = {.target = b->target, .thread = (struct attach_thread *)(uintptr_t)thread};
	const int64_t deadline_ns = weft__attach_now_ns() + STEP_NS;
	for (long signal = 0; !weft__attach_is_over(deadline_ns);) {
		int status;
		if (ptrace(PTRACE_SYSCALL, thread->tid, NULL, (void *)signal))
			return false;
		if (!wait_for_trap(&of_thread, &status, STEP_NS)) {
			ptrace(PTRACE_INTERRUPT, thread->tid, NULL, NULL);
			wait_for_trap(&of_thread, &status, CALL_NS);
			return false;
		}
		const bool is_call = status >> 8 == (SIGTRAP | 0x80);
		signal = is_call || status >> 16 ? 0 : WSTOPSIG(status);
		if (is_call && ptrace(PTRACE_GETREGS, thread->tid, NULL, r) == 0 && (long)r->rax == -ENOSYS &&
		    (long)r->orig_rax != SYS_restart_syscall && is_safe_moment(b->target, r))
			return true;
	}
	return false;
}

/* Borrows a running thread at its next safe system call, which the thread makes when it is given back. */
static bool borrow_running(struct borrowed *b, struct attach_thread *thread)
{
	struct user_regs_struct r;
	if (!thread->is_stopped || ptrace(PTRACE_SETOPTIONS, thread->tid, NULL, (void *)PTRACE_O_TRACESYSGOOD) ||
	    !run_to_call(b, thread, &r))
		return false;
	const long number = (long)r.orig_rax;
	struct borrowed of_thread = *b;
	of_thread.thread = thread;
	int status;
	r.orig_rax = (unsigned long long)-1; /* the kernel skips the call */
	if (ptrace(PTRACE_SETREGS, thread->tid, NULL, &r) || ptrace(PTRACE_SYSCALL, thread->tid, NULL, NULL) ||
	    !wait_for_trap(&of_thread, &status, CALL_NS))
		return false;
	b->thread = thread;
	b->syscall_at = r.rip - SYSCALL_BYTES;
	b->before = r;
	b->before.rip = b->syscall_at;
	b->before.rax = (unsigned long long)number;
	return true;
}

static bool borrow_thread(struct borrowed *b)
{
	const int64_t deadline_ns = weft__attach_now_ns() + FIND_NS;
	const struct timespec pause = {.tv_nsec = 2000000};
	struct attach_target *t = b->target;
	do {
		t->thread_count = 0;
		weft__attach_list_threads(t);
		for (size_t i = 0; i < t->thread_count && !weft__attach_is_over(deadline_ns); i++) {
			struct attach_thread *thread = &t->threads[i];
			if ((borrow_blocked(b, thread) || borrow_running(b, thread)) && begin_borrowing(b))
				return true;
			weft__attach_release(thread);
		}
		nanosleep(&pause, NULL);
	} while (!weft__attach_is_over(deadline_ns));
	return false;
}

/* ---- The job of the new thread ---- */

/* Work of the new thread.  The code below uses these offsets. */
struct job {
	uint64_t detach_self, self, dlopen, dlsym, dlerror, snprintf; /* 0, 8, 16, ...: functions of libc */
	uint64_t library, function_name, session;                     /* 48, 56, 64: texts */
	uint64_t function;                                            /* 72: weft_hook_attach(); 0: the library is to be loaded */
	uint64_t format, error, error_bytes;                          /* 80, 88, 96: "%s", and room for the text of dlerror() */
	uint64_t is_done, has_run;                                    /* 104, 112 */
	char texts[3][MAX_TEXT];
	char format_text[8], error_text[256], name_text[32];
};

extern const char weft__attach_job_begin[], weft__attach_job_end[];
__asm__(".pushsection .text\n"
	".globl weft__attach_job_begin, weft__attach_job_end\n"
	".hidden weft__attach_job_begin, weft__attach_job_end\n"
	"weft__attach_job_begin:\n"
	"	endbr64\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	call *8(%rbx)\n" /* pthread_detach(pthread_self()) */
	"	mov %rax, %rdi\n"
	"	call *(%rbx)\n"
	"	mov 72(%rbx), %rax\n"
	"	test %rax, %rax\n"
	"	jnz 1f\n"
	"	mov 48(%rbx), %rdi\n" /* dlopen(library, RTLD_NOW) */
	"	mov $2, %esi\n"
	"	call *16(%rbx)\n"
	"	test %rax, %rax\n"
	"	jz 2f\n"
	"	mov %rax, %rdi\n" /* dlsym(library, "weft_hook_attach") */
	"	mov 56(%rbx), %rsi\n"
	"	call *24(%rbx)\n"
	"	test %rax, %rax\n"
	"	jz 2f\n"
	"1:	mov 64(%rbx), %rdi\n" /* weft_hook_attach(session) */
	"	call *%rax\n"
	"	movq $1, 112(%rbx)\n"
	"	jmp 3f\n"
	"2:	call *32(%rbx)\n" /* snprintf(error, error_bytes, "%s", dlerror()) */
	"	mov 88(%rbx), %rdi\n"
	"	mov 96(%rbx), %rsi\n"
	"	mov 80(%rbx), %rdx\n"
	"	mov %rax, %rcx\n"
	"	xor %eax, %eax\n"
	"	call *40(%rbx)\n"
	"3:	movq $1, 104(%rbx)\n"
	"	xor %eax, %eax\n"
	"	pop %rbx\n"
	"	ret\n"
	"weft__attach_job_end:\n"
	".popsection\n");

/* Room of the program for the job: `text` has a breakpoint and then the code above. */
struct room {
	uint64_t text, job, stack;
};

enum { CODE_AT = 64 };

static size_t job_pages(void)
{
	return (sizeof(struct job) + TEXT_BYTES - 1) / TEXT_BYTES * TEXT_BYTES;
}

/* Maps the room, except for the parts that stayed from an earlier attachment. */
static bool make_room(const struct borrowed *b, struct room *room)
{
	static const unsigned char breakpoint = 0xcc;
	room->text = room->text ? room->text : map_memory(b, TEXT_BYTES, PROT_READ | PROT_EXEC);
	room->job = room->job ? room->job : map_memory(b, job_pages(), PROT_READ | PROT_WRITE);
	room->stack = map_memory(b, STACK_BYTES, PROT_READ | PROT_WRITE);
	return room->text && room->job && room->stack && weft__attach_write(b->target, room->text, &breakpoint, 1) &&
	       weft__attach_write(b->target, room->text + CODE_AT, weft__attach_job_begin,
		   (size_t)(weft__attach_job_end - weft__attach_job_begin));
}

/* The job stays while its thread may run, and otherwise too: its thread cannot free the code that it runs. */
static void free_room(const struct borrowed *b, const struct room *room, bool is_used)
{
	if (room->stack)
		unmap_memory(b, room->stack, STACK_BYTES);
	if (room->text && !is_used)
		unmap_memory(b, room->text, TEXT_BYTES);
	if (room->job && !is_used)
		unmap_memory(b, room->job, job_pages());
}

static bool write_job(const struct attach_target *t, uint64_t at, const char *library, uint64_t function, const char *session)
{
	static struct job job;
	memset(&job, 0, sizeof job);
	job.detach_self = weft__attach_libc_symbol(t, "pthread_detach");
	job.self = weft__attach_libc_symbol(t, "pthread_self");
	job.dlopen = weft__attach_libc_symbol(t, "dlopen");
	job.dlsym = weft__attach_libc_symbol(t, "dlsym");
	job.dlerror = weft__attach_libc_symbol(t, "dlerror");
	job.snprintf = weft__attach_libc_symbol(t, "snprintf");
	job.function = function;
	snprintf(job.texts[0], MAX_TEXT, "%s", library);
	snprintf(job.texts[1], MAX_TEXT, "%s", session);
	strcpy(job.name_text, WEFT_ATTACH_FUNCTION);
	strcpy(job.format_text, "%s");
	job.library = at + offsetof(struct job, texts[0]);
	job.session = at + offsetof(struct job, texts[1]);
	job.function_name = at + offsetof(struct job, name_text);
	job.format = at + offsetof(struct job, format_text);
	job.error = at + offsetof(struct job, error_text);
	job.error_bytes = sizeof job.error_text;
	return job.detach_self && job.self && job.dlopen && job.dlsym && job.dlerror && job.snprintf &&
	       weft__attach_write(t, at, &job, sizeof job);
}

static int wait_for_job(const struct attach_target *t, uint64_t at, struct weft_error *err)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	const int64_t deadline_ns = weft__attach_now_ns() + LOAD_NS;
	static struct job job;
	do {
		if (!weft__attach_read(t, at, &job, sizeof job))
			return weft_error_set(err, WEFT_ENOENT, "process %ld has ended", (long)t->pid);
		if (job.is_done && job.has_run)
			return WEFT_OK;
		if (job.is_done) {
			job.error_text[sizeof job.error_text - 1] = 0;
			return weft_error_set(err, WEFT_ENOTSUP, "the program cannot load the recorder: %s", job.error_text);
		}
		nanosleep(&pause, NULL);
	} while (!weft__attach_is_over(deadline_ns));
	return weft_error_set(
	    err, WEFT_EBUSY, "the recorder has not been loaded in 30 s, because the program itself loads a library");
}

int weft__attach_run(struct attach_target *t, const char *library, uint64_t function, const char *session, uint64_t kept[2],
    int64_t *borrowed_ns, struct weft_error *err)
{
	struct borrowed b = {.target = t};
	struct room room = {.text = kept[0], .job = kept[1]};
	uint64_t result = 0;
	const uint64_t create = weft__attach_libc_symbol(t, "pthread_create");
	if (!create)
		return weft_error_set(err, WEFT_ENOTSUP, "process %ld has no function pthread_create()", (long)t->pid);
	if (!borrow_thread(&b))
		return weft_error_set(
		    err, WEFT_EBUSY, "no OS thread of process %ld came to a safe moment within 5 s; try again", (long)t->pid);
	const int64_t begin_ns = weft__attach_now_ns();
	bool is_whole = make_room(&b, &room) && write_job(t, room.job, library, function, session);
	bool has_returned = false;
	if (is_whole) {
		const uint64_t args[4] = {room.job + offsetof(struct job, error_text), 0, room.text + CODE_AT, room.job};
		has_returned = call_function(&b, create, args, room.stack, room.text, &result);
	}
	const bool is_started = has_returned && (int)result == 0;
	free_room(&b, &room, is_whole && (is_started || !has_returned));
	end_borrowing(&b);
	*borrowed_ns = weft__attach_now_ns() - begin_ns;
	if (!is_whole)
		return weft_error_set(err, WEFT_ENOMEM, "process %ld has no memory for the recorder", (long)t->pid);
	if (!has_returned)
		return weft_error_set(
		    err, WEFT_EBUSY, "process %ld could not start an OS thread in time; try again", (long)t->pid);
	kept[0] = room.text;
	kept[1] = room.job;
	if (!is_started)
		return weft_error_set(
		    err, WEFT_ENOTSUP, "process %ld cannot start an OS thread: %s", (long)t->pid, strerror((int)result));
	return wait_for_job(t, room.job, err);
}
