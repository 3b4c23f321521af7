/* socket.c: see socket.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

bool weft__hook_is_internet_socket(int fd)
{
	int family = 0;
	socklen_t size = sizeof family;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && (family == AF_INET || family == AF_INET6);
}

int weft__hook_socket_protocol(int fd)
{
	int protocol = -1;
	socklen_t size = sizeof protocol;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size))
		return -1;
	return protocol == IPPROTO_UDP && !weft__hook_is_internet_socket(fd) ? 0 : protocol;
}

bool weft_hook_has_datagrams(int fd)
{
	int saved_errno = errno;
	const bool has = weft__hook_socket_protocol(fd) == IPPROTO_UDP;
	errno = saved_errno;
	return has;
}

bool weft__hook_is_listener(int fd)
{
	int listens = 0;
	socklen_t size = sizeof listens;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

/* The search makes system calls itself, because open() of libc may end a thread that is cancelled, and opendir() allocates. */
void weft__hook_find_listeners(struct weft__hook_fd_search *search, weft__hook_found_fd *found)
{
	enum { MAX_SEARCHED = 1024 }; /* limits the time for which the program waits */
	struct entry {
		uint64_t inode;
		int64_t next;
		unsigned short bytes;
		unsigned char type;
		char name[];
	};
	_Alignas(8) char entries[4096];
	const int saved_errno = errno,
		  folder = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long size = 0;
	unsigned searched = 0;
	search->is_over |= folder < 0 || lseek(folder, search->next, SEEK_SET) < 0;
	while (!search->is_over && searched < MAX_SEARCHED) {
		size = syscall(SYS_getdents64, folder, entries, sizeof entries);
		search->is_over = size <= 0;
		for (long at = 0; at < size;) {
			const struct entry *e = (const void *)(entries + at);
			const int fd = e->name[0] == '.' ? -1 : atoi(e->name);
			if (fd >= 0 && weft__hook_is_listener(fd))
				found(fd);
			search->next = e->next;
			at += e->bytes;
			searched++;
		}
	}
	if (folder >= 0)
		syscall(SYS_close, folder);
	errno = saved_errno;
}
