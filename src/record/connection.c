/* connection.c: what the kernel says of a connection, so that the traces of both its ends can be put together.
 *
 * Both ends call it the same: by two addresses of TCP, by the inodes of two unix sockets, by the inode of a pipe.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/host.h"

enum { NAME_BYTES = 160, ADDRESS_BYTES = INET6_ADDRSTRLEN + 8 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static bool put_address(char *out, const union address *from)
{
	char host[INET6_ADDRSTRLEN];
	const bool is_v4 = from->any.sa_family == AF_INET;
	const struct in6_addr *v6 = &from->v6.sin6_addr;
	/* A socket of IPv6 may have a peer of IPv4. */
	const bool is_mapped = !is_v4 && IN6_IS_ADDR_V4MAPPED(v6);
	const void *bytes = is_v4 ? (const void *)&from->v4.sin_addr : is_mapped ? (const void *)&v6->s6_addr[12] : v6;
	if (!inet_ntop(is_v4 || is_mapped ? AF_INET : AF_INET6, bytes, host, sizeof host))
		return false;
	const unsigned port = ntohs(is_v4 ? from->v4.sin_port : from->v6.sin6_port);
	snprintf(out, ADDRESS_BYTES, is_v4 || is_mapped ? "%s:%u" : "[%s]:%u", host, port);
	return true;
}

/* What was written and what was read.  The kernel counts that a connection begins (at the end that asked for it), and that the
 * peer writes no more, as a byte each. */
static bool ask_positions(int fd, bool did_connect, struct weft_positions *out)
{
	/* States of TCP, as the kernel numbers them: <netinet/tcp.h> has them, and an older tcp_info. */
	enum { TIME_WAIT = 6, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
	enum { FIN_CAME = 1 << TIME_WAIT | 1 << CLOSE_WAIT | 1 << LAST_ACK | 1 << CLOSING };
	struct tcp_info info = {0};
	socklen_t bytes = sizeof info;
	int unread = 0, unacknowledged = 0;
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) || ioctl(fd, SIOCINQ, &unread) ||
	    ioctl(fd, SIOCOUTQ, &unacknowledged) ||
	    bytes < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
		return false;
	const uint64_t written = info.tcpi_bytes_acked + (uint64_t)unacknowledged;
	const uint64_t came = info.tcpi_bytes_received - (FIN_CAME >> info.tcpi_state & 1);
	out->sent = written - (did_connect && written > 0);
	out->received = came - (uint64_t)unread;
	return true;
}

static bool name_tcp(char *name, const union address *local, int fd)
{
	union address peer;
	socklen_t bytes = sizeof peer;
	char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
	if (getpeername(fd, &peer.any, &bytes) || !put_address(from, local) || !put_address(to, &peer))
		return false;
	snprintf(name, NAME_BYTES, "tcp %s %s", from, to);
	return true;
}

/* The inode of the unix socket that is connected with this one; 0: nobody says. */
static uint32_t peer_of(uint32_t inode)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req ask;
	} request = {.header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
	    .ask = {.sdiag_family = AF_UNIX,
		.udiag_states = UINT32_MAX,
		.udiag_ino = inode,
		.udiag_show = UDIAG_SHOW_PEER,
		.udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
	_Alignas(struct nlmsghdr) char answer[512];
	int kernel = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t got = -1;
	if (kernel < 0)
		return 0;
	if (send(kernel, &request, sizeof request, MSG_DONTWAIT) == (ssize_t)sizeof request)
		got = recv(kernel, answer, sizeof answer, MSG_DONTWAIT); /* the kernel has answered when send() returns */
	close(kernel);
	const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)answer;
	const size_t fixed = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	if (got < (ssize_t)fixed || header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len > (size_t)got)
		return 0;
	for (size_t at = NLMSG_ALIGN(fixed); at + sizeof(struct rtattr) <= header->nlmsg_len;) {
		struct rtattr attribute;
		memcpy(&attribute, answer + at, sizeof attribute);
		uint32_t peer;
		if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > header->nlmsg_len)
			return 0;
		if (attribute.rta_type == UNIX_DIAG_PEER && attribute.rta_len >= RTA_LENGTH(sizeof peer)) {
			memcpy(&peer, answer + at + RTA_LENGTH(0), sizeof peer);
			return peer;
		}
		at += RTA_ALIGN(attribute.rta_len);
	}
	return 0;
}

static bool name_unix(char *name, int fd)
{
	struct stat about;
	int type = 0;
	socklen_t bytes = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) || type != SOCK_STREAM || fstat(fd, &about))
		return false;
	const uint32_t inode = (uint32_t)about.st_ino, peer = peer_of(inode);
	snprintf(name, NAME_BYTES, "unix %" PRIu32 " %" PRIu32, inode, peer);
	return peer != 0;
}

static bool name_pipe(char *name, int fd)
{
	struct stat about;
	const int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDWR || fstat(fd, &about) || !S_ISFIFO(about.st_mode))
		return false;
	const char *own = (flags & O_ACCMODE) == O_RDONLY ? "read" : "write";
	const char *other = (flags & O_ACCMODE) == O_RDONLY ? "write" : "read";
	const unsigned long long device = about.st_dev, inode = about.st_ino;
	snprintf(name, NAME_BYTES, "pipe %llx:%llu:%s %llx:%llu:%s", device, inode, own, device, inode, other);
	return true;
}

static bool ask(char *name, int fd, bool did_connect, struct weft_positions *positions)
{
	union address local;
	socklen_t bytes = sizeof local;
	/* A filter of system calls may kill who asks for another than it knows. */
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		return false;
	if (getsockname(fd, &local.any, &bytes))
		return errno == ENOTSOCK && name_pipe(name, fd);
	if (local.any.sa_family == AF_UNIX)
		return name_unix(name, fd);
	return (local.any.sa_family == AF_INET || local.any.sa_family == AF_INET6) && name_tcp(name, &local, fd) &&
	       (!positions || ask_positions(fd, did_connect, positions));
}

static bool tell(weft_id promise, int fd, bool did_connect, struct weft_positions *positions, bool is_known)
{
	char name[NAME_BYTES], text[NAME_BYTES + 24];
	const int saved = errno;
	struct weft_positions found = {0};
	const bool is_one = ask(name, fd, did_connect, is_known ? NULL : &found);
	errno = saved;
	if (!is_one)
		return false;
	if (is_known)
		found = *positions;
	else
		*positions = found;
	snprintf(text, sizeof text, "%s %" PRIu64, name, found.received);
	weft__slow_detail(promise, WEFT_DETAIL_CONNECTION, (int64_t)found.sent, text);
	return true;
}

bool weft__connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions)
{
	return tell(promise, fd, did_connect, positions, false);
}

void weft__still_connected(weft_id promise, int fd, const struct weft_positions *positions)
{
	struct weft_positions known = *positions;
	tell(promise, fd, false, &known, true);
}
