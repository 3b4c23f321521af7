/* syscall_args.c: implements syscall_args.h.
 *
 * All facts are read from /proc, without touching the program.  Descriptors of the program are not duplicated, because a copy
 * would keep a file open after the program closes it.  SPDX-License-Identifier: ISC */
#include "kernel/syscall_args.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/kernel.h"

enum argument { FD, PATH_0, PATH_1, NO_TARGET };

static const struct syscall_info {
	int number;
	uint8_t call;
	enum argument argument;
} calls[] = {
    {SYS_openat, WEFT_CALL_OPENAT, PATH_1},
    {SYS_newfstatat, WEFT_CALL_FSTATAT, PATH_1},
    {SYS_statx, WEFT_CALL_STATX, PATH_1},
    {SYS_faccessat, WEFT_CALL_FACCESSAT, PATH_1},
    {SYS_renameat2, WEFT_CALL_RENAMEAT2, PATH_1},
    {SYS_mkdirat, WEFT_CALL_MKDIRAT, PATH_1},
    {SYS_unlinkat, WEFT_CALL_UNLINKAT, PATH_1},
    {SYS_readlinkat, WEFT_CALL_READLINKAT, PATH_1},
    {SYS_truncate, WEFT_CALL_TRUNCATE, PATH_0},
    {SYS_read, WEFT_CALL_READ, FD},
    {SYS_write, WEFT_CALL_WRITE, FD},
    {SYS_close, WEFT_CALL_CLOSE, FD},
    {SYS_fstat, WEFT_CALL_FSTAT, FD},
    {SYS_pread64, WEFT_CALL_PREAD, FD},
    {SYS_pwrite64, WEFT_CALL_PWRITE, FD},
    {SYS_readv, WEFT_CALL_READV, FD},
    {SYS_writev, WEFT_CALL_WRITEV, FD},
    {SYS_preadv, WEFT_CALL_PREADV, FD},
    {SYS_pwritev, WEFT_CALL_PWRITEV, FD},
    {SYS_preadv2, WEFT_CALL_PREADV2, FD},
    {SYS_pwritev2, WEFT_CALL_PWRITEV2, FD},
    {SYS_sendfile, WEFT_CALL_SENDFILE, FD},
    {SYS_copy_file_range, WEFT_CALL_COPY_FILE_RANGE, FD},
    {SYS_ioctl, WEFT_CALL_IOCTL, FD},
    {SYS_connect, WEFT_CALL_CONNECT, FD},
    {SYS_accept, WEFT_CALL_ACCEPT, FD},
    {SYS_accept4, WEFT_CALL_ACCEPT4, FD},
    {SYS_sendto, WEFT_CALL_SENDTO, FD},
    {SYS_recvfrom, WEFT_CALL_RECVFROM, FD},
    {SYS_sendmsg, WEFT_CALL_SENDMSG, FD},
    {SYS_recvmsg, WEFT_CALL_RECVMSG, FD},
    {SYS_fcntl, WEFT_CALL_FCNTL, FD},
    {SYS_flock, WEFT_CALL_FLOCK, FD},
    {SYS_fsync, WEFT_CALL_FSYNC, FD},
    {SYS_fdatasync, WEFT_CALL_FDATASYNC, FD},
    {SYS_syncfs, WEFT_CALL_SYNCFS, FD},
    {SYS_sync_file_range, WEFT_CALL_SYNC_FILE_RANGE, FD},
    {SYS_ftruncate, WEFT_CALL_FTRUNCATE, FD},
    {SYS_fallocate, WEFT_CALL_FALLOCATE, FD},
    {SYS_fadvise64, WEFT_CALL_FADVISE, FD},
    {SYS_readahead, WEFT_CALL_READAHEAD, FD},
    {SYS_getdents64, WEFT_CALL_GETDENTS64, FD},
    {SYS_io_uring_enter, WEFT_CALL_IO_URING_ENTER, NO_TARGET},
    {SYS_ppoll, WEFT_CALL_PPOLL, NO_TARGET},
    {SYS_pselect6, WEFT_CALL_PSELECT, NO_TARGET},
    {SYS_epoll_pwait, WEFT_CALL_EPOLL_PWAIT, NO_TARGET},
    {SYS_futex, WEFT_CALL_FUTEX, NO_TARGET},
    {SYS_nanosleep, WEFT_CALL_NANOSLEEP, NO_TARGET},
    {SYS_clock_nanosleep, WEFT_CALL_CLOCK_NANOSLEEP, NO_TARGET},
    {SYS_wait4, WEFT_CALL_WAIT4, NO_TARGET},
    {SYS_waitid, WEFT_CALL_WAITID, NO_TARGET},
    {SYS_sync, WEFT_CALL_SYNC, NO_TARGET},
    {SYS_msync, WEFT_CALL_MSYNC, NO_TARGET},
    {SYS_munmap, WEFT_CALL_MUNMAP, NO_TARGET},
    {SYS_mmap, WEFT_CALL_MMAP, NO_TARGET},
    {SYS_execve, WEFT_CALL_EXECVE, NO_TARGET},
    {SYS_getrandom, WEFT_CALL_GETRANDOM, NO_TARGET},
    {SYS_rt_sigtimedwait, WEFT_CALL_SIGTIMEDWAIT, NO_TARGET},
    {SYS_lseek, WEFT_CALL_LSEEK, FD},
    {SYS_splice, WEFT_CALL_SPLICE, FD},
    {SYS_sendmmsg, WEFT_CALL_SENDMMSG, FD},
    {SYS_recvmmsg, WEFT_CALL_RECVMMSG, FD},
    {SYS_shutdown, WEFT_CALL_SHUTDOWN, FD},
    {SYS_pipe2, WEFT_CALL_PIPE2, NO_TARGET},
    {SYS_mprotect, WEFT_CALL_MPROTECT, NO_TARGET},
    {SYS_madvise, WEFT_CALL_MADVISE, NO_TARGET},
    {SYS_brk, WEFT_CALL_BRK, NO_TARGET},
    {SYS_sched_yield, WEFT_CALL_SCHED_YIELD, NO_TARGET},
    {SYS_clone, WEFT_CALL_CLONE, NO_TARGET},
    {SYS_execveat, WEFT_CALL_EXECVEAT, NO_TARGET},
    {SYS_exit, WEFT_CALL_EXIT, NO_TARGET},
    {SYS_exit_group, WEFT_CALL_EXIT_GROUP, NO_TARGET},
    {SYS_msgrcv, WEFT_CALL_MSGRCV, NO_TARGET},
    {SYS_semtimedop, WEFT_CALL_SEMTIMEDOP, NO_TARGET},
    {SYS_io_getevents, WEFT_CALL_IO_GETEVENTS, NO_TARGET},
    {SYS_io_submit, WEFT_CALL_IO_SUBMIT, NO_TARGET},
    {SYS_mlock, WEFT_CALL_MLOCK, NO_TARGET},
    {SYS_mount, WEFT_CALL_MOUNT, NO_TARGET},
    {SYS_membarrier, WEFT_CALL_MEMBARRIER, NO_TARGET},
    {SYS_rt_sigsuspend, WEFT_CALL_SIGSUSPEND, NO_TARGET},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, WEFT_CALL_EPOLL_PWAIT2, NO_TARGET},
#endif
#ifdef SYS_clone3
    {SYS_clone3, WEFT_CALL_CLONE3, NO_TARGET},
#endif
#ifdef SYS_futex_wait
    {SYS_futex_wait, WEFT_CALL_FUTEX_WAIT, NO_TARGET},
#endif
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, WEFT_CALL_FUTEX_WAITV, NO_TARGET},
#endif
#ifdef SYS_open /* newer architectures have only the variants with "at", such as openat() */
    {SYS_open, WEFT_CALL_OPEN, PATH_0},
    {SYS_stat, WEFT_CALL_STAT, PATH_0},
    {SYS_lstat, WEFT_CALL_LSTAT, PATH_0},
    {SYS_access, WEFT_CALL_ACCESS, PATH_0},
    {SYS_rename, WEFT_CALL_RENAME, PATH_0},
    {SYS_mkdir, WEFT_CALL_MKDIR, PATH_0},
    {SYS_rmdir, WEFT_CALL_RMDIR, PATH_0},
    {SYS_unlink, WEFT_CALL_UNLINK, PATH_0},
    {SYS_readlink, WEFT_CALL_READLINK, PATH_0},
    {SYS_poll, WEFT_CALL_POLL, NO_TARGET},
    {SYS_select, WEFT_CALL_SELECT, NO_TARGET},
    {SYS_epoll_wait, WEFT_CALL_EPOLL_WAIT, NO_TARGET},
    {SYS_getdents, WEFT_CALL_GETDENTS, FD},
    {SYS_link, WEFT_CALL_LINK, PATH_0},
    {SYS_chmod, WEFT_CALL_CHMOD, PATH_0},
    {SYS_fork, WEFT_CALL_FORK, NO_TARGET},
    {SYS_vfork, WEFT_CALL_VFORK, NO_TARGET},
    {SYS_pause, WEFT_CALL_PAUSE, NO_TARGET},
#endif
};

uint8_t weft_kernel_call_from_number(int number)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number == number)
			return calls[i].call;
	return WEFT_CALL_OTHER;
}

bool weft_kernel_call_has_fd(uint8_t call)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].call == call)
			return calls[i].argument == FD;
	return false;
}

/* Converts an address such as "0100007F:1F90" in a socket table into "127.0.0.1:8080"; its words are in host byte order. */
static void format_address(const char *hex, char text[WEFT_KERNEL_TARGET_BYTES])
{
	uint32_t words[4] = {0};
	unsigned port = 0;
	char address[INET6_ADDRSTRLEN] = "?";
	const size_t digits = strcspn(hex, ":");
	for (size_t i = 0; i < digits / 8 && i < 4; i++)
		sscanf(hex + 8 * i, "%8" SCNx32, &words[i]);
	sscanf(hex + digits, ":%x", &port);
	inet_ntop(digits > 8 ? AF_INET6 : AF_INET, words, address, sizeof address);
	snprintf(text, WEFT_KERNEL_TARGET_BYTES, digits > 8 ? "[%s]:%u" : "%s:%u", address, port);
}

/* Finds the peer of a socket in the process's network namespace; for a Unix socket, whose peer is not listed there, the socket's
 * own name. */
static bool find_peer(uint32_t pid, unsigned long inode, char text[WEFT_KERNEL_TARGET_BYTES])
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
	enum { MAX_LINES = 20000 };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		char path[64], line[512], remote[64], name[128] = "";
		unsigned long found;
		const bool is_local = i == 4;
		snprintf(path, sizeof path, "/proc/%" PRIu32 "/net/%s", pid, tables[i]);
		FILE *file = fopen(path, "re");
		bool is_found = false;
		for (int lines = 0; file && !is_found && lines < MAX_LINES && fgets(line, sizeof line, file); lines++) {
			if (is_local)
				is_found =
				    sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %127[^\n]", &found, name) >= 1 && found == inode;
			else
				is_found = sscanf(line, "%*s %*s %63s %*s %*s %*s %*s %*s %*s %lu", remote, &found) == 2 &&
					   found == inode;
		}
		if (file)
			fclose(file);
		if (!is_found)
			continue;
		if (is_local)
			snprintf(text, WEFT_KERNEL_TARGET_BYTES, "%s", *name ? name : "a socket of this machine");
		else
			format_address(remote, text);
		return true;
	}
	return false;
}

bool weft_kernel_describe_fd(uint32_t pid, uint32_t fd, bool deep, char text[WEFT_KERNEL_TARGET_BYTES])
{
	char path[64];
	unsigned long inode;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd/%" PRIu32, pid, fd);
	const ssize_t length = readlink(path, text, WEFT_KERNEL_TARGET_BYTES - 1);
	text[length > 0 ? length : 0] = 0;
	if (length <= 0)
		return false;
	if (sscanf(text, "socket:[%lu]", &inode) == 1)
		snprintf(text, WEFT_KERNEL_TARGET_BYTES, "a socket"), deep &&find_peer(pid, inode, text);
	else if (!strncmp(text, "pipe:[", 6))
		snprintf(text, WEFT_KERNEL_TARGET_BYTES, "a pipe");
	return true;
}

/* The number of lines is limited, because the process may make mappings while they are read. */
enum { MAX_MAPPING_LINES = 1 << 20 };

bool weft_kernel_find_mapping(uint32_t pid, uint64_t address, struct weft_kernel_mapping *out)
{
	char path[64], line[WEFT_KERNEL_TARGET_BYTES + 128];
	bool is_found = false, is_begin = true;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
	FILE *file = fopen(path, "re");
	for (unsigned i = 0; file && !is_found && i < MAX_MAPPING_LINES && fgets(line, sizeof line, file); i++) {
		int at = 0;
		if (is_begin && sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &out->begin, &out->end, &at) >= 2) {
			line[strcspn(line, "\n")] = 0;
			is_found = address >= out->begin && address < out->end;
			snprintf(out->text, sizeof out->text, "%s", at && line[at] == '/' ? line + at : "");
		}
		is_begin = strchr(line, '\n') || is_found;
	}
	if (file)
		fclose(file);
	return is_found;
}

static void read_path(uint32_t pid, uint64_t address, char text[WEFT_KERNEL_TARGET_BYTES])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	/* The read stops at the page's end, because the next page may be unmapped. */
	const size_t max_bytes = WEFT_KERNEL_TARGET_BYTES - 1, left = 4096 - (size_t)(address & 4095);
	ssize_t got = fd < 0 ? -1 : pread(fd, text, left < max_bytes ? left : max_bytes, (off_t)address);
	if (got > 0 && (size_t)got == left && left < max_bytes && !memchr(text, 0, left)) {
		const ssize_t rest = pread(fd, text + got, max_bytes - left, (off_t)(address + left));
		got += rest > 0 ? rest : 0;
	}
	text[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/* Parses "NUMBER ARGUMENT..." for a thread that is blocked in a syscall, "-1 ..." for a thread that is blocked otherwise, or
 * "running".
 */
static bool read_current_call(uint32_t pid, uint32_t tid, int *number, uint64_t arguments[2])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/syscall", pid, tid);
	FILE *file = fopen(path, "re");
	const bool whole = file && fscanf(file, "%d %" SCNx64 " %" SCNx64, number, &arguments[0], &arguments[1]) == 3;
	if (file)
		fclose(file);
	return whole;
}

bool weft_kernel_read_blocked_call(uint32_t pid, uint32_t tid, struct weft_kernel_blocked_call *out)
{
	uint64_t arguments[2];
	int number;
	*out = (struct weft_kernel_blocked_call){.call = WEFT_CALL_OTHER, .fd = WEFT_KERNEL_NO_FD};
	if (!read_current_call(pid, tid, &number, arguments) || number < 0)
		return false;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (calls[i].number != number)
			continue;
		out->call = calls[i].call;
		if (calls[i].argument == PATH_0 || calls[i].argument == PATH_1)
			read_path(pid, arguments[calls[i].argument == PATH_1], out->text);
		if (calls[i].argument == FD) {
			out->fd = (uint32_t)arguments[0];
			weft_kernel_describe_fd(pid, out->fd, true, out->text);
		}
		break;
	}
	return true;
}
