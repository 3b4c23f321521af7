/* confine.c: implements confine.h with seccomp.  SPDX-License-Identifier: ISC */
#include "base/confine.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WEFT_HAS_SANITIZER
#endif
#elif defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define WEFT_HAS_SANITIZER
#endif

static void close_between(int first, int last)
{
	if (first > last)
		return;
#ifdef SYS_close_range
	if (syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0) == 0)
		return;
#endif
	enum { MOST = 4096 };
	for (int fd = first; fd <= last && fd < MOST; fd++)
		close(fd);
}

void weft_confine_descriptors(const int *kept, size_t count)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		dup2(null, fd);
	int next = 3;
	for (size_t i = 0; i < count; i++) {
		close_between(next, kept[i] - 1);
		next = kept[i] + 1;
	}
	close_between(next, INT32_MAX);
}

static void limit_memory(size_t bytes)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	if (file && fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef WEFT_HAS_SANITIZER
	setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
#else
	(void)most; /* a sanitizer maps more memory than the machine has, so there is no memory limit */
#endif
}

#ifdef MACHINE
/* System calls that read, allocate memory or end the process; libelf asks for the flags and sizes of its file descriptors. */
static const int always[] = {SYS_read, SYS_pread64, SYS_write, SYS_lseek, SYS_fstat, SYS_newfstatat, SYS_fcntl, SYS_close,
    SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk, SYS_futex, SYS_exit, SYS_exit_group, SYS_getrandom, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_clock_gettime, SYS_sched_yield, SYS_getpid, SYS_gettid};

/* Further system calls, for a process that reads folders and loads libraries. */
static const int reading[] = {
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_getcwd,
    SYS_uname,
    SYS_sysinfo,
    SYS_prlimit64,
    SYS_set_robust_list,
    SYS_rt_sigaction,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_mprotect,
    SYS_mmap,
    SYS_dup,
    SYS_writev,
    SYS_readv,
    SYS_getrusage,
    SYS_sched_getaffinity,
#ifdef SYS_readlink
    SYS_readlink,
    SYS_access,
    SYS_stat,
    SYS_lstat,
    SYS_getdents,
#endif
};

enum { MAX_STEPS = 160 };

struct filter {
	struct sock_filter steps[MAX_STEPS];
	unsigned short count;
};

static void add(struct filter *f, struct sock_filter step)
{
	if (f->count < MAX_STEPS)
		f->steps[f->count++] = step;
}

static void load(struct filter *f, size_t offset)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void end(struct filter *f, uint32_t verdict)
{
	add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void allow(struct filter *f, const int *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1));
		end(f, SECCOMP_RET_ALLOW);
	}
}

/* Allows a system call if one of its arguments has none of the given bits. */
static void allow_without(struct filter *f, int call, int argument, uint32_t bits)
{
	const size_t low = offsetof(struct seccomp_data, args) + (size_t)argument * sizeof(uint64_t);
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4));
	load(f, low);
	add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
	end(f, SECCOMP_RET_ALLOW);
	end(f, SECCOMP_RET_ERRNO | EPERM);
}

static bool install_filter(bool may_read)
{
	struct filter f = {.count = 0};
	load(&f, offsetof(struct seccomp_data, arch));
	add(&f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
	end(&f, SECCOMP_RET_KILL_PROCESS);
	load(&f, offsetof(struct seccomp_data, nr));
	allow(&f, always, sizeof always / sizeof *always);
	if (may_read) {
		allow(&f, reading, sizeof reading / sizeof *reading);
		allow_without(&f, SYS_openat, 2, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
#ifdef SYS_open
		load(&f, offsetof(struct seccomp_data, nr));
		allow_without(&f, SYS_open, 1, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
#endif
	} else {
		allow_without(&f, SYS_mmap, 2, PROT_EXEC);
		load(&f, offsetof(struct seccomp_data, nr));
		allow_without(&f, SYS_mprotect, 2, PROT_EXEC);
	}
	end(&f, SECCOMP_RET_ERRNO | EPERM);
	const struct sock_fprog program = {.len = f.count, .filter = f.steps};
	return f.count < MAX_STEPS && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
#endif

bool weft_confine(size_t bytes, bool may_read)
{
	limit_memory(bytes);
	prctl(PR_SET_PDEATHSIG, 9);
	const bool is_fixed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
#ifdef MACHINE
	/* The runtime of a sanitizer makes its own system calls, above all when the process ends. */
#ifdef WEFT_HAS_SANITIZER
	const bool has_sanitizer = true;
#else
	const bool has_sanitizer = false;
#endif
	return is_fixed && (has_sanitizer || install_filter(may_read));
#else
	(void)is_fixed;
	return false;
#endif
}

#else

void weft_confine_descriptors(const int *kept, size_t count)
{
	(void)kept, (void)count;
}

bool weft_confine(size_t bytes, bool may_read)
{
	(void)bytes, (void)may_read;
	return false;
}

#endif
