/* kernel.h: defines the events of class WEFT_CLASS_KERNEL, which describe the program's OS threads as the kernel sees them.
 *
 * weft record writes them beside the program's own packets (docs/format.md, "The kernel's packets").  Each CPU has a stream with
 * the kernel's number of the CPU, by the clock of the trace.  The headers of these events are those of all other events.
 * SPDX-License-Identifier: ISC */
#ifndef WEFT_WIRE_KERNEL_H
#define WEFT_WIRE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, value, "name", "fields") */
#define WEFT_KERNEL_OPS(X)                                                                                                       \
	/* the level of recording that was reached, and why it is not higher */                                                  \
	X(LEVEL, 0, "kernel_level", "level: u8, why: string")                                                                    \
	/* name and process of a tid in later events; pid is 0 if the thread is not the program's */                             \
	X(THREAD, 1, "kernel_thread", "tid: u32, pid: u32, name: string")                                                        \
	/* CLOCK_MONOTONIC_RAW at the time of the event, with its error bound */                                                 \
	X(CLOCK, 2, "kernel_clock", "raw_ns: u64, bound_ns: u32")                                                                \
	X(ON, 3, "kernel_on", "tid: u32")                      /* the thread gets a CPU */                                       \
	X(OFF, 4, "kernel_off", "tid: u32, why: u8, call: u8") /* the thread leaves its CPU by itself */                         \
	X(TAKEN, 5, "kernel_taken", "tid: u32, by: u32")       /* the thread is preempted by the thread `by` */                  \
	X(WAKE, 6, "kernel_wake", "tid: u32, by: u32")       /* the thread becomes runnable; by is 0 if an interrupt woke it */  \
	X(FAULT, 7, "kernel_fault", "tid: u32, page: u32")   /* a page fault; page is the address without its low 12 bits */     \
	X(TEXT, 8, "kernel_text", "text: u32, name: string") /* meaning of a text number in later events */                      \
	/* the call and the file in which the thread was blocked */                                                              \
	X(IN, 9, "kernel_in", "tid: u32, ago_ns: u32, call: u8, sure: u8, fd: u32, text: u32")                                   \
	/* another use of the thread's CPU, for `ns` */                                                                          \
	X(SPENT, 10, "kernel_spent", "tid: u32, ago_ns: u32, on: u8, text: u32, ns: u64")

enum weft_kernel_op {
#define WEFT_KERNEL_ENUM(NAME, value, name, fields) WEFT_KERNEL_##NAME = value,
	WEFT_KERNEL_OPS(WEFT_KERNEL_ENUM)
#undef WEFT_KERNEL_ENUM
	    WEFT_KERNEL_OP_COUNT
};

/* The set of threads whose events are recorded. */
enum weft_kernel_level { WEFT_LEVEL_SELF = 0, WEFT_LEVEL_OWN = 1, WEFT_LEVEL_ALL = 2 };

/* Reason why an OS thread left its CPU. */
enum weft_kernel_why { WEFT_OFF_PREEMPTED = 0, WEFT_OFF_BLOCKED = 1, WEFT_OFF_DISK = 2 /* blocked, not interruptible */ };

/* A use of the CPU that interrupted an OS thread. */
enum weft_kernel_spent {
	WEFT_SPENT_INTERRUPT = 0,
	WEFT_SPENT_DEFERRED = 1, /* softirqs: work that interrupts deferred */
	WEFT_SPENT_COLLECTOR = 2 /* a garbage collection of the program's runtime */
};

#define WEFT_KERNEL_NO_FD UINT32_MAX

/* X(NAME, value, "name"): calls of the kernel in which an OS thread was blocked.  The numbers are weft's own, because the
 * numbers of system calls differ between machines.  The number of a call never changes its meaning. */
#define WEFT_KERNEL_CALLS(X)                                                                                                     \
	X(FAULT, 1, "a page fault")                                                                                              \
	X(OTHER, 2, "another system call")                                                                                       \
	X(READ, 3, "read")                                                                                                       \
	X(WRITE, 4, "write")                                                                                                     \
	X(OPEN, 5, "open")                                                                                                       \
	X(OPENAT, 6, "openat")                                                                                                   \
	X(CLOSE, 7, "close")                                                                                                     \
	X(STAT, 8, "newstat")                                                                                                    \
	X(FSTAT, 9, "newfstat")                                                                                                  \
	X(LSTAT, 10, "newlstat")                                                                                                 \
	X(FSTATAT, 11, "newfstatat")                                                                                             \
	X(STATX, 12, "statx")                                                                                                    \
	X(POLL, 13, "poll")                                                                                                      \
	X(PPOLL, 14, "ppoll")                                                                                                    \
	X(SELECT, 15, "select")                                                                                                  \
	X(PSELECT, 16, "pselect6")                                                                                               \
	X(EPOLL_WAIT, 17, "epoll_wait")                                                                                          \
	X(EPOLL_PWAIT, 18, "epoll_pwait")                                                                                        \
	X(EPOLL_PWAIT2, 19, "epoll_pwait2")                                                                                      \
	X(LSEEK, 20, "lseek")                                                                                                    \
	X(MMAP, 21, "mmap")                                                                                                      \
	X(MUNMAP, 22, "munmap")                                                                                                  \
	X(MPROTECT, 23, "mprotect")                                                                                              \
	X(MADVISE, 24, "madvise")                                                                                                \
	X(MSYNC, 25, "msync")                                                                                                    \
	X(BRK, 26, "brk")                                                                                                        \
	X(IOCTL, 27, "ioctl")                                                                                                    \
	X(PREAD, 28, "pread64")                                                                                                  \
	X(PWRITE, 29, "pwrite64")                                                                                                \
	X(READV, 30, "readv")                                                                                                    \
	X(WRITEV, 31, "writev")                                                                                                  \
	X(PREADV, 32, "preadv")                                                                                                  \
	X(PWRITEV, 33, "pwritev")                                                                                                \
	X(PREADV2, 34, "preadv2")                                                                                                \
	X(PWRITEV2, 35, "pwritev2")                                                                                              \
	X(ACCESS, 36, "access")                                                                                                  \
	X(FACCESSAT, 37, "faccessat")                                                                                            \
	X(PIPE2, 38, "pipe2")                                                                                                    \
	X(NANOSLEEP, 39, "nanosleep")                                                                                            \
	X(CLOCK_NANOSLEEP, 40, "clock_nanosleep")                                                                                \
	X(PAUSE, 41, "pause")                                                                                                    \
	X(SCHED_YIELD, 42, "sched_yield")                                                                                        \
	X(FUTEX, 43, "futex")                                                                                                    \
	X(FUTEX_WAIT, 44, "futex_wait")                                                                                          \
	X(FUTEX_WAITV, 45, "futex_waitv")                                                                                        \
	X(SENDFILE, 46, "sendfile64")                                                                                            \
	X(SPLICE, 47, "splice")                                                                                                  \
	X(COPY_FILE_RANGE, 48, "copy_file_range")                                                                                \
	X(CONNECT, 49, "connect")                                                                                                \
	X(ACCEPT, 50, "accept")                                                                                                  \
	X(ACCEPT4, 51, "accept4")                                                                                                \
	X(SENDTO, 52, "sendto")                                                                                                  \
	X(RECVFROM, 53, "recvfrom")                                                                                              \
	X(SENDMSG, 54, "sendmsg")                                                                                                \
	X(RECVMSG, 55, "recvmsg")                                                                                                \
	X(SENDMMSG, 56, "sendmmsg")                                                                                              \
	X(RECVMMSG, 57, "recvmmsg")                                                                                              \
	X(SHUTDOWN, 58, "shutdown")                                                                                              \
	X(CLONE, 59, "clone")                                                                                                    \
	X(CLONE3, 60, "clone3")                                                                                                  \
	X(FORK, 61, "fork")                                                                                                      \
	X(VFORK, 62, "vfork")                                                                                                    \
	X(EXECVE, 63, "execve")                                                                                                  \
	X(EXECVEAT, 64, "execveat")                                                                                              \
	X(EXIT, 65, "exit")                                                                                                      \
	X(EXIT_GROUP, 66, "exit_group")                                                                                          \
	X(WAIT4, 67, "wait4")                                                                                                    \
	X(WAITID, 68, "waitid")                                                                                                  \
	X(FCNTL, 69, "fcntl")                                                                                                    \
	X(FLOCK, 70, "flock")                                                                                                    \
	X(FSYNC, 71, "fsync")                                                                                                    \
	X(FDATASYNC, 72, "fdatasync")                                                                                            \
	X(SYNC, 73, "sync")                                                                                                      \
	X(SYNCFS, 74, "syncfs")                                                                                                  \
	X(SYNC_FILE_RANGE, 75, "sync_file_range")                                                                                \
	X(TRUNCATE, 76, "truncate")                                                                                              \
	X(FTRUNCATE, 77, "ftruncate")                                                                                            \
	X(FALLOCATE, 78, "fallocate")                                                                                            \
	X(FADVISE, 79, "fadvise64")                                                                                              \
	X(READAHEAD, 80, "readahead")                                                                                            \
	X(GETDENTS, 81, "getdents")                                                                                              \
	X(GETDENTS64, 82, "getdents64")                                                                                          \
	X(RENAME, 83, "rename")                                                                                                  \
	X(RENAMEAT, 84, "renameat")                                                                                              \
	X(RENAMEAT2, 85, "renameat2")                                                                                            \
	X(MKDIR, 86, "mkdir")                                                                                                    \
	X(MKDIRAT, 87, "mkdirat")                                                                                                \
	X(RMDIR, 88, "rmdir")                                                                                                    \
	X(UNLINK, 89, "unlink")                                                                                                  \
	X(UNLINKAT, 90, "unlinkat")                                                                                              \
	X(LINK, 91, "link")                                                                                                      \
	X(READLINK, 92, "readlink")                                                                                              \
	X(READLINKAT, 93, "readlinkat")                                                                                          \
	X(CHMOD, 94, "chmod")                                                                                                    \
	X(SIGTIMEDWAIT, 95, "rt_sigtimedwait")                                                                                   \
	X(SIGSUSPEND, 96, "rt_sigsuspend")                                                                                       \
	X(MSGRCV, 97, "msgrcv")                                                                                                  \
	X(SEMTIMEDOP, 98, "semtimedop")                                                                                          \
	X(IO_GETEVENTS, 99, "io_getevents")                                                                                      \
	X(IO_SUBMIT, 100, "io_submit")                                                                                           \
	X(IO_URING_ENTER, 101, "io_uring_enter")                                                                                 \
	X(MLOCK, 102, "mlock")                                                                                                   \
	X(MOUNT, 103, "mount")                                                                                                   \
	X(MEMBARRIER, 104, "membarrier")                                                                                         \
	X(GETRANDOM, 105, "getrandom")

enum weft_kernel_call {
	WEFT_CALL_UNKNOWN = 0,
#define WEFT_CALL_ENUM(NAME, value, name) WEFT_CALL_##NAME = value,
	WEFT_KERNEL_CALLS(WEFT_CALL_ENUM)
#undef WEFT_CALL_ENUM
};

/* Returns the name of a call, such as "fsync"; NULL for a number that this version does not know. */
const char *weft_kernel_call_name(uint8_t call);

/* An event to write; its op decides which fields have a meaning. */
struct weft_wire_kernel {
	uint64_t raw_ns;     /* SPENT: ns */
	uint32_t tid, other; /* tid of the event's thread; second field of the event: pid, by, page, bound_ns or fd */
	uint8_t op;          /* enum weft_kernel_op */
	uint8_t why, call;   /* level for LEVEL, certainty for IN, enum weft_kernel_spent for SPENT */
	uint64_t then;       /* for IN and SPENT: the time in ticks, from which .ago_ns is computed */
	uint32_t ago_ns;     /* IN and SPENT */
	uint32_t number;     /* number of a text */
	const char *text;    /* LEVEL, THREAD and TEXT */
	uint32_t text_bytes;
};

/* Returns the size of the event after its header, in bytes. */
size_t weft__kernel_payload(const struct weft_wire_kernel *event);

/* Returns the size of the fixed fields of an op, without its string; 0 for an unknown op. */
unsigned weft__kernel_fixed_bytes(uint8_t op);

/* Writes the header and the fields of an event; the caller must have checked the space.  Returns the end. */
unsigned char *weft__kernel_write(unsigned char *to, const struct weft_wire_kernel *event, uint64_t time, bool extended);

#endif
