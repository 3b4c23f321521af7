/* socket.c: see socket.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

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
