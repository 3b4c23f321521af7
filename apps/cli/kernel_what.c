/* kernel_what.c: see kernel_what.h.
 *
 * All of it is read from /proc, without touching the program: a descriptor is not taken over, since that would keep a file open
 * that the program closes.  SPDX-License-Identifier: ISC */
#include "apps/cli/kernel_what.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/kernel.h"

enum argument { FD, PATH_0, PATH_1, NOTHING };

static const struct known {
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
    {SYS_io_uring_enter, WEFT_CALL_IO_URING_ENTER, NOTHING},
    {SYS_ppoll, WEFT_CALL_PPOLL, NOTHING},
    {SYS_pselect6, WEFT_CALL_PSELECT, NOTHING},
    {SYS_epoll_pwait, WEFT_CALL_EPOLL_PWAIT, NOTHING},
    {SYS_futex, WEFT_CALL_FUTEX, NOTHING},
    {SYS_nanosleep, WEFT_CALL_NANOSLEEP, NOTHING},
    {SYS_clock_nanosleep, WEFT_CALL_CLOCK_NANOSLEEP, NOTHING},
    {SYS_wait4, WEFT_CALL_WAIT4, NOTHING},
    {SYS_waitid, WEFT_CALL_WAITID, NOTHING},
    {SYS_sync, WEFT_CALL_SYNC, NOTHING},
    {SYS_msync, WEFT_CALL_MSYNC, NOTHING},
    {SYS_munmap, WEFT_CALL_MUNMAP, NOTHING},
    {SYS_mmap, WEFT_CALL_MMAP, NOTHING},
    {SYS_execve, WEFT_CALL_EXECVE, NOTHING},
    {SYS_getrandom, WEFT_CALL_GETRANDOM, NOTHING},
    {SYS_rt_sigtimedwait, WEFT_CALL_SIGTIMEDWAIT, NOTHING},
    {SYS_lseek, WEFT_CALL_LSEEK, FD},
    {SYS_splice, WEFT_CALL_SPLICE, FD},
    {SYS_sendmmsg, WEFT_CALL_SENDMMSG, FD},
    {SYS_recvmmsg, WEFT_CALL_RECVMMSG, FD},
    {SYS_shutdown, WEFT_CALL_SHUTDOWN, FD},
    {SYS_pipe2, WEFT_CALL_PIPE2, NOTHING},
    {SYS_mprotect, WEFT_CALL_MPROTECT, NOTHING},
    {SYS_madvise, WEFT_CALL_MADVISE, NOTHING},
    {SYS_brk, WEFT_CALL_BRK, NOTHING},
    {SYS_sched_yield, WEFT_CALL_SCHED_YIELD, NOTHING},
    {SYS_clone, WEFT_CALL_CLONE, NOTHING},
    {SYS_execveat, WEFT_CALL_EXECVEAT, NOTHING},
    {SYS_exit, WEFT_CALL_EXIT, NOTHING},
    {SYS_exit_group, WEFT_CALL_EXIT_GROUP, NOTHING},
    {SYS_msgrcv, WEFT_CALL_MSGRCV, NOTHING},
    {SYS_semtimedop, WEFT_CALL_SEMTIMEDOP, NOTHING},
    {SYS_io_getevents, WEFT_CALL_IO_GETEVENTS, NOTHING},
    {SYS_io_submit, WEFT_CALL_IO_SUBMIT, NOTHING},
    {SYS_mlock, WEFT_CALL_MLOCK, NOTHING},
    {SYS_mount, WEFT_CALL_MOUNT, NOTHING},
    {SYS_membarrier, WEFT_CALL_MEMBARRIER, NOTHING},
    {SYS_rt_sigsuspend, WEFT_CALL_SIGSUSPEND, NOTHING},
#ifdef SYS_epoll_pwait2
    {SYS_epoll_pwait2, WEFT_CALL_EPOLL_PWAIT2, NOTHING},
#endif
#ifdef SYS_clone3
    {SYS_clone3, WEFT_CALL_CLONE3, NOTHING},
#endif
#ifdef SYS_futex_wait
    {SYS_futex_wait, WEFT_CALL_FUTEX_WAIT, NOTHING},
#endif
#ifdef SYS_futex_waitv
    {SYS_futex_waitv, WEFT_CALL_FUTEX_WAITV, NOTHING},
#endif
#ifdef SYS_open /* newer machines have only those with "at" */
    {SYS_open, WEFT_CALL_OPEN, PATH_0},
    {SYS_stat, WEFT_CALL_STAT, PATH_0},
    {SYS_lstat, WEFT_CALL_LSTAT, PATH_0},
    {SYS_access, WEFT_CALL_ACCESS, PATH_0},
    {SYS_rename, WEFT_CALL_RENAME, PATH_0},
    {SYS_mkdir, WEFT_CALL_MKDIR, PATH_0},
    {SYS_rmdir, WEFT_CALL_RMDIR, PATH_0},
    {SYS_unlink, WEFT_CALL_UNLINK, PATH_0},
    {SYS_readlink, WEFT_CALL_READLINK, PATH_0},
    {SYS_poll, WEFT_CALL_POLL, NOTHING},
    {SYS_select, WEFT_CALL_SELECT, NOTHING},
    {SYS_epoll_wait, WEFT_CALL_EPOLL_WAIT, NOTHING},
    {SYS_getdents, WEFT_CALL_GETDENTS, FD},
    {SYS_link, WEFT_CALL_LINK, PATH_0},
    {SYS_chmod, WEFT_CALL_CHMOD, PATH_0},
    {SYS_fork, WEFT_CALL_FORK, NOTHING},
    {SYS_vfork, WEFT_CALL_VFORK, NOTHING},
    {SYS_pause, WEFT_CALL_PAUSE, NOTHING},
#endif
};

uint8_t kernel_what_call(int number)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].number == number)
			return calls[i].call;
	return WEFT_CALL_OTHER;
}

bool kernel_what_has_fd(uint8_t call)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].call == call)
			return calls[i].argument == FD;
	return false;
}

/* "0100007F:1F90" of a table of sockets: "127.0.0.1:8080".  Words are as this machine has them in memory. */
static void put_address(const char *hex, char text[KERNEL_WHAT])
{
	uint32_t words[4] = {0};
	unsigned port = 0;
	char address[INET6_ADDRSTRLEN] = "?";
	const size_t digits = strcspn(hex, ":");
	for (size_t i = 0; i < digits / 8 && i < 4; i++)
		sscanf(hex + 8 * i, "%8" SCNx32, &words[i]);
	sscanf(hex + digits, ":%x", &port);
	inet_ntop(digits > 8 ? AF_INET6 : AF_INET, words, address, sizeof address);
	snprintf(text, KERNEL_WHAT, digits > 8 ? "[%s]:%u" : "%s:%u", address, port);
}

/* The other end of a socket, as the process sees the network; of one of this machine, which has none, its own name. */
static bool find_peer(uint32_t pid, unsigned long inode, char text[KERNEL_WHAT])
{
	static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6", "unix"};
	enum { MOST_LINES = 20000 };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		char path[64], line[512], remote[64], name[128] = "";
		unsigned long found;
		const bool is_local = i == 4;
		snprintf(path, sizeof path, "/proc/%" PRIu32 "/net/%s", pid, tables[i]);
		FILE *file = fopen(path, "re");
		bool is_found = false;
		for (int lines = 0; file && !is_found && lines < MOST_LINES && fgets(line, sizeof line, file); lines++) {
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
			snprintf(text, KERNEL_WHAT, "%s", *name ? name : "a socket of this machine");
		else
			put_address(remote, text);
		return true;
	}
	return false;
}

bool kernel_what_fd(uint32_t pid, uint32_t fd, bool deep, char text[KERNEL_WHAT])
{
	char path[64];
	unsigned long inode;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd/%" PRIu32, pid, fd);
	const ssize_t length = readlink(path, text, KERNEL_WHAT - 1);
	text[length > 0 ? length : 0] = 0;
	if (length <= 0)
		return false;
	if (sscanf(text, "socket:[%lu]", &inode) == 1)
		snprintf(text, KERNEL_WHAT, "a socket"), deep &&find_peer(pid, inode, text);
	else if (!strncmp(text, "pipe:[", 6))
		snprintf(text, KERNEL_WHAT, "a pipe");
	return true;
}

bool kernel_what_mapping(uint32_t pid, uint64_t address, struct kernel_mapping *out)
{
	char path[64], line[KERNEL_WHAT + 128];
	bool is_found = false, is_begin = true;
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
	FILE *file = fopen(path, "re");
	while (file && !is_found && fgets(line, sizeof line, file)) {
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

static void read_path(uint32_t pid, uint64_t address, char text[KERNEL_WHAT])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	/* The next page may not be there. */
	const size_t most = KERNEL_WHAT - 1, left = 4096 - (size_t)(address & 4095);
	ssize_t got = fd < 0 ? -1 : pread(fd, text, left < most ? left : most, (off_t)address);
	if (got > 0 && (size_t)got == left && left < most && !memchr(text, 0, left)) {
		const ssize_t rest = pread(fd, text + got, most - left, (off_t)(address + left));
		got += rest > 0 ? rest : 0;
	}
	text[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/* "NUMBER ARGUMENT..." of one that is blocked in a system call, "-1 ..." of one that is blocked otherwise, else "running". */
static bool read_call(uint32_t pid, uint32_t tid, int *number, uint64_t arguments[2])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32 "/syscall", pid, tid);
	FILE *file = fopen(path, "re");
	const bool whole = file && fscanf(file, "%d %" SCNx64 " %" SCNx64, number, &arguments[0], &arguments[1]) == 3;
	if (file)
		fclose(file);
	return whole;
}

bool kernel_what_now(uint32_t pid, uint32_t tid, struct kernel_what *out)
{
	uint64_t arguments[2];
	int number;
	*out = (struct kernel_what){.call = WEFT_CALL_OTHER, .fd = WEFT_KERNEL_NO_FD};
	if (!read_call(pid, tid, &number, arguments) || number < 0)
		return false;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (calls[i].number != number)
			continue;
		out->call = calls[i].call;
		if (calls[i].argument == PATH_0 || calls[i].argument == PATH_1)
			read_path(pid, arguments[calls[i].argument == PATH_1], out->text);
		if (calls[i].argument == FD) {
			out->fd = (uint32_t)arguments[0];
			kernel_what_fd(pid, out->fd, true, out->text);
		}
		break;
	}
	return true;
}
