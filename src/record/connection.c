/* connection.c: what the kernel says of a connection, and of where a datagram goes, so that the traces of both ends can be put
 * together.
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
#include <time.h>
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

/* Whether this end began it.  The kernel has counted what it sent without that byte, too, since 4.19; where both counts make no
 * sense together, as after an error of sending, who asks is believed. */
static bool asked_for_it(const struct tcp_info *info, socklen_t bytes, uint64_t written, bool did_connect)
{
	const uint64_t sent = info->tcpi_bytes_sent - info->tcpi_bytes_retrans + info->tcpi_notsent_bytes;
	const bool is_told = bytes >= offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info->tcpi_bytes_retrans;
	return is_told && written - sent <= 1 ? written > sent : did_connect;
}

/* What was written and what was read.  The kernel counts that a connection begins (at the end that asked for it), and that the
 * peer writes no more, as a byte each. */
static bool ask_positions(int fd, bool did_connect, struct weft_positions *out)
{
	/* States of TCP, as the kernel numbers them: <netinet/tcp.h> has them, and an older tcp_info. */
	enum { TIME_WAIT = 6, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
	enum { FIN_CAME = 1 << TIME_WAIT | 1 << CLOSE_WAIT | 1 << LAST_ACK | 1 << CLOSING };
	enum { TRIES = 8 };
	struct tcp_info info = {0}, before;
	int unread = 0, unacknowledged = 0, tries = 0;
	socklen_t bytes;
	/* Bytes that come between two questions would be counted by one of them. */
	do {
		socklen_t again = sizeof info;
		bytes = sizeof info;
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &before, &bytes) || ioctl(fd, SIOCINQ, &unread) ||
		    ioctl(fd, SIOCOUTQ, &unacknowledged) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &again) ||
		    bytes < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
			return false;
	} while ((before.tcpi_bytes_received != info.tcpi_bytes_received || before.tcpi_bytes_acked != info.tcpi_bytes_acked) &&
		 ++tries < TRIES);
	const uint64_t written = info.tcpi_bytes_acked + (uint64_t)unacknowledged;
	const uint64_t came = info.tcpi_bytes_received - (FIN_CAME >> info.tcpi_state & 1);
	out->sent = written - (asked_for_it(&info, bytes, written, did_connect) && written > 0);
	out->received = came - (uint64_t)unread;
	return true;
}

static bool name_tcp(char *name, const union address *local, int fd)
{
	union address peer = {.local = {0}};
	socklen_t bytes = sizeof peer;
	char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
	if (getpeername(fd, &peer.any, &bytes) || !put_address(from, local) || !put_address(to, &peer))
		return false;
	snprintf(name, NAME_BYTES, "tcp %s %s", from, to);
	return true;
}

/* Of two unix sockets that are connected. */
struct inodes {
	uint32_t own, peer; /* 0: nobody says */
};

/* Its socket is not one of the program's. */
static int ask_peer_aside(void *data)
{
	struct inodes *inodes = data;
	struct {
		struct nlmsghdr header;
		struct unix_diag_req ask;
	} request = {.header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
	    .ask = {.sdiag_family = AF_UNIX,
		.udiag_states = UINT32_MAX,
		.udiag_ino = inodes->own,
		.udiag_show = UDIAG_SHOW_PEER,
		.udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
	_Alignas(struct nlmsghdr) char answer[512];
	int kernel = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	ssize_t got = -1;
	if (kernel < 0)
		return WEFT_ENOTSUP;
	if (send(kernel, &request, sizeof request, MSG_DONTWAIT) == (ssize_t)sizeof request)
		got = recv(kernel, answer, sizeof answer, MSG_DONTWAIT); /* the kernel has answered when send() returns */
	close(kernel);
	const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)answer;
	const size_t fixed = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	if (got < (ssize_t)fixed || header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len > (size_t)got)
		return WEFT_ENOTSUP;
	for (size_t at = NLMSG_ALIGN(fixed); at + sizeof(struct rtattr) <= header->nlmsg_len;) {
		struct rtattr attribute;
		memcpy(&attribute, answer + at, sizeof attribute);
		if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > header->nlmsg_len)
			return WEFT_ENOTSUP;
		if (attribute.rta_type == UNIX_DIAG_PEER && attribute.rta_len >= RTA_LENGTH(sizeof inodes->peer)) {
			memcpy(&inodes->peer, answer + at + RTA_LENGTH(0), sizeof inodes->peer);
			return WEFT_OK;
		}
		at += RTA_ALIGN(attribute.rta_len);
	}
	return WEFT_ENOTSUP;
}

/* A server may have thousands of connections a second, and who asks waits: 100 of them are asked about, and 20 at once. */
static bool may_ask(void)
{
	enum { EACH_NS = 10000000, AT_ONCE = 20 };
	static uint64_t asked_until_ns;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	uint64_t until_ns = __atomic_load_n(&asked_until_ns, __ATOMIC_RELAXED);
	until_ns = until_ns < now_ns ? now_ns : until_ns;
	if (until_ns >= now_ns + (uint64_t)EACH_NS * AT_ONCE)
		return false;
	__atomic_store_n(&asked_until_ns, until_ns + EACH_NS, __ATOMIC_RELAXED);
	return true;
}

/* *peer: the other one's inode, 0: to be asked for. */
static bool name_unix(char *name, int fd, uint32_t *peer)
{
	struct stat about;
	int type = 0;
	socklen_t bytes = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) || type != SOCK_STREAM || fstat(fd, &about))
		return false;
	struct inodes inodes = {(uint32_t)about.st_ino, *peer};
	if (inodes.peer == 0 && (!may_ask() || weft__aside(ask_peer_aside, &inodes) < 0))
		return false;
	*peer = inodes.peer;
	snprintf(name, NAME_BYTES, "unix %" PRIu32 " %" PRIu32, inodes.own, inodes.peer);
	return inodes.peer != 0;
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

/* A filter of system calls may kill who asks for another than it knows. */
static bool is_filtered(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

static bool ask(char *name, int fd, bool did_connect, struct weft_positions *positions, bool is_known)
{
	union address local = {.local = {0}};
	socklen_t bytes = sizeof local;
	if (is_filtered())
		return false;
	if (getsockname(fd, &local.any, &bytes))
		return errno == ENOTSOCK && name_pipe(name, fd);
	if (local.any.sa_family == AF_UNIX)
		return name_unix(name, fd, &positions->weft__peer);
	return (local.any.sa_family == AF_INET || local.any.sa_family == AF_INET6) && name_tcp(name, &local, fd) &&
	       (is_known || ask_positions(fd, did_connect, positions));
}

static bool tell(weft_id promise, int fd, bool did_connect, struct weft_positions *positions, bool is_known)
{
	char name[NAME_BYTES], text[NAME_BYTES + 24];
	const int saved = errno;
	const bool is_one = ask(name, fd, did_connect, positions, is_known);
	errno = saved;
	if (!is_one)
		return false;
	snprintf(text, sizeof text, "%s %" PRIu64, name, positions->received);
	weft__slow_detail(promise, WEFT_DETAIL_CONNECTION, (int64_t)positions->sent, text);
	return true;
}

bool weft__connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions)
{
	struct weft_positions found = {0};
	const bool is_told = tell(promise, fd, did_connect, &found, false);
	if (is_told)
		*positions = found;
	return is_told;
}

void weft__still_connected(weft_id promise, int fd, const struct weft_positions *positions)
{
	struct weft_positions known = *positions;
	tell(promise, fd, false, &known, true);
}

/* ---- Datagrams ---- */

/* Where it goes: `to`, or else the peer or the own address of its socket. */
static bool find_target(union address *out, int fd, const struct sockaddr *to, bool is_sent)
{
	socklen_t bytes = sizeof *out;
	if (!to)
		return !is_filtered() && (is_sent ? getpeername : getsockname)(fd, &out->any, &bytes) == 0;
	if (to->sa_family == AF_INET)
		memcpy(&out->v4, to, sizeof out->v4);
	else if (to->sa_family == AF_INET6)
		memcpy(&out->v6, to, sizeof out->v6);
	return true;
}

/* Who takes datagrams for all of the machine's addresses does not know to which one they came: "*:53". */
static bool put_target(char *out, const union address *target)
{
	if (target->any.sa_family != AF_INET && target->any.sa_family != AF_INET6)
		return false;
	const bool is_v4 = target->any.sa_family == AF_INET;
	if (is_v4 ? target->v4.sin_addr.s_addr != INADDR_ANY : !IN6_IS_ADDR_UNSPECIFIED(&target->v6.sin6_addr))
		return put_address(out, target);
	snprintf(out, ADDRESS_BYTES, "*:%u", ntohs(is_v4 ? target->v4.sin_port : target->v6.sin6_port));
	return true;
}

void weft__datagram(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest, bool is_sent)
{
	union address target = {.local = {0}};
	char text[ADDRESS_BYTES];
	const int saved = errno;
	const bool is_known = find_target(&target, fd, to, is_sent) && put_target(text, &target);
	errno = saved;
	if (!is_known)
		return;
	const int64_t number = (int64_t)((digest->sum ^ digest->bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 1 | 1);
	weft__slow_detail(promise, WEFT_DETAIL_DATAGRAM, is_sent ? number : -number, text);
}
