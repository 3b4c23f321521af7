/* connection.c: records the identity of a connection, and the target of a datagram, so that a reader can join the traces of both
 * ends.
 *
 * Both ends record the same identity: two TCP addresses, the inodes of two unix sockets, or the inode of a pipe.
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

static bool format_address(char *out, const union address *from)
{
	char host[INET6_ADDRSTRLEN];
	const bool is_v4 = from->any.sa_family == AF_INET;
	const struct in6_addr *v6 = &from->v6.sin6_addr;
	/* An IPv6 socket may have an IPv4 peer, whose address is then mapped. */
	const bool is_mapped = !is_v4 && IN6_IS_ADDR_V4MAPPED(v6);
	const void *bytes = is_v4 ? (const void *)&from->v4.sin_addr : is_mapped ? (const void *)&v6->s6_addr[12] : v6;
	if (!inet_ntop(is_v4 || is_mapped ? AF_INET : AF_INET6, bytes, host, sizeof host))
		return false;
	const unsigned port = ntohs(is_v4 ? from->v4.sin_port : from->v6.sin6_port);
	snprintf(out, ADDRESS_BYTES, is_v4 || is_mapped ? "%s:%u" : "[%s]:%u", host, port);
	return true;
}

/* Returns whether this end initiated the connection.  Since Linux 4.19 the kernel also counts the sent bytes without the initial
 * byte, and the difference shows which end is the initiator.  If the counts contradict each other, as after a send error, the
 * function returns did_connect. */
static bool did_initiate(const struct tcp_info *info, socklen_t bytes, uint64_t written, bool did_connect)
{
	const uint64_t sent = info->tcpi_bytes_sent - info->tcpi_bytes_retrans + info->tcpi_notsent_bytes;
	const bool is_reported = bytes >= offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof info->tcpi_bytes_retrans;
	return is_reported && written - sent <= 1 ? written > sent : did_connect;
}

/* Computes the numbers of bytes that were written and read.  The kernel counts one byte more for the start of a connection, at
 * the end that initiated it, and one byte for the peer's end of data. */
static bool query_positions(int fd, bool did_connect, struct weft_positions *out)
{
	/* TCP states, by the kernel's numbers; <netinet/tcp.h> also defines them, but has an older tcp_info. */
	enum { TIME_WAIT = 6, CLOSE_WAIT = 8, LAST_ACK = 9, CLOSING = 11 };
	enum { FIN_CAME = 1 << TIME_WAIT | 1 << CLOSE_WAIT | 1 << LAST_ACK | 1 << CLOSING };
	enum { TRIES = 8 };
	struct tcp_info info = {0}, before;
	int unread = 0, unacknowledged = 0, tries = 0;
	socklen_t bytes;
	/* Bytes that arrive between the two calls would be counted by only one of them, so the calls are repeated until nothing
	 * arrived. */
	do {
		socklen_t after_bytes = sizeof info;
		bytes = sizeof info;
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &before, &bytes) || ioctl(fd, SIOCINQ, &unread) ||
		    ioctl(fd, SIOCOUTQ, &unacknowledged) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &after_bytes) ||
		    bytes < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
			return false;
	} while ((before.tcpi_bytes_received != info.tcpi_bytes_received || before.tcpi_bytes_acked != info.tcpi_bytes_acked) &&
		 ++tries < TRIES);
	const uint64_t written = info.tcpi_bytes_acked + (uint64_t)unacknowledged;
	const uint64_t received_bytes = info.tcpi_bytes_received - (FIN_CAME >> info.tcpi_state & 1);
	out->sent = written - (did_initiate(&info, bytes, written, did_connect) && written > 0);
	out->received = received_bytes - (uint64_t)unread;
	return true;
}

static bool format_tcp_name(char *name, const union address *local, int fd)
{
	union address peer = {.local = {0}};
	socklen_t bytes = sizeof peer;
	char from[ADDRESS_BYTES], to[ADDRESS_BYTES];
	if (getpeername(fd, &peer.any, &bytes) || !format_address(from, local) || !format_address(to, &peer))
		return false;
	snprintf(name, NAME_BYTES, "tcp %s %s", from, to);
	return true;
}

/* The inodes of the two ends of a connection of unix sockets. */
struct inodes {
	uint32_t own, peer; /* 0: unknown */
};

/* Asks the kernel for the inode of the peer's socket; the netlink socket never enters the program's descriptor table. */
static int query_peer_on_fd_thread(void *data)
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
		/* The answer is ready, because the kernel has answered when send() returns. */
		got = recv(kernel, answer, sizeof answer, MSG_DONTWAIT);
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

/* Returns whether another query of the kernel is allowed now.  The program waits during a query, and a server may accept
 * thousands of connections per second, so at most 100 per second are queried, in bursts of at most 20. */
static bool may_query(void)
{
	enum { MIN_INTERVAL_NS = 10000000, MAX_BURST = 20 };
	static uint64_t queried_until_ns;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	uint64_t until_ns = __atomic_load_n(&queried_until_ns, __ATOMIC_RELAXED);
	until_ns = until_ns < now_ns ? now_ns : until_ns;
	if (until_ns >= now_ns + (uint64_t)MIN_INTERVAL_NS * MAX_BURST)
		return false;
	__atomic_store_n(&queried_until_ns, until_ns + MIN_INTERVAL_NS, __ATOMIC_RELAXED);
	return true;
}

/* Formats the name of a unix stream socket. *peer is the inode of the other end's socket; 0 if it must be queried. */
static bool format_unix_name(char *name, int fd, uint32_t *peer)
{
	struct stat about;
	int type = 0;
	socklen_t bytes = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) || type != SOCK_STREAM || fstat(fd, &about))
		return false;
	struct inodes inodes = {(uint32_t)about.st_ino, *peer};
	if (inodes.peer == 0 && (!may_query() || weft__fd_thread_run(query_peer_on_fd_thread, &inodes) < 0))
		return false;
	*peer = inodes.peer;
	snprintf(name, NAME_BYTES, "unix %" PRIu32 " %" PRIu32, inodes.own, inodes.peer);
	return inodes.peer != 0;
}

static bool format_pipe_name(char *name, int fd)
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

/* Returns whether a seccomp filter is active, which may kill the caller of an unexpected system call. */
static bool has_seccomp_filter(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

static bool query_connection(char *name, int fd, bool did_connect, struct weft_positions *positions, bool is_known)
{
	union address local = {.local = {0}};
	socklen_t bytes = sizeof local;
	if (has_seccomp_filter())
		return false;
	if (getsockname(fd, &local.any, &bytes))
		return errno == ENOTSOCK && format_pipe_name(name, fd);
	if (local.any.sa_family == AF_UNIX)
		return format_unix_name(name, fd, &positions->weft__peer);
	return (local.any.sa_family == AF_INET || local.any.sa_family == AF_INET6) && format_tcp_name(name, &local, fd) &&
	       (is_known || query_positions(fd, did_connect, positions));
}

static bool record_connection(weft_id promise, int fd, bool did_connect, struct weft_positions *positions, bool is_known)
{
	char name[NAME_BYTES], text[NAME_BYTES + 24];
	const int saved = errno;
	const bool is_one = query_connection(name, fd, did_connect, positions, is_known);
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
	const bool is_reported = record_connection(promise, fd, did_connect, &found, false);
	if (is_reported)
		*positions = found;
	return is_reported;
}

void weft__still_connected(weft_id promise, int fd, const struct weft_positions *positions)
{
	struct weft_positions known = *positions;
	record_connection(promise, fd, false, &known, true);
}

/* ---- Datagrams ---- */

/* Finds the datagram's target: `to` or else the socket's peer if it is sent, the socket's own address if it is received. */
static bool find_target(union address *out, int fd, const struct sockaddr *to, bool is_sent)
{
	socklen_t bytes = sizeof *out;
	if (!to)
		return !has_seccomp_filter() && (is_sent ? getpeername : getsockname)(fd, &out->any, &bytes) == 0;
	if (to->sa_family == AF_INET)
		memcpy(&out->v4, to, sizeof out->v4);
	else if (to->sa_family == AF_INET6)
		memcpy(&out->v6, to, sizeof out->v6);
	return true;
}

/* Formats the target.  A socket that receives on all addresses of the machine does not know the target's address, so the text is
 * "*:53". */
static bool format_target(char *out, const union address *target)
{
	if (target->any.sa_family != AF_INET && target->any.sa_family != AF_INET6)
		return false;
	const bool is_v4 = target->any.sa_family == AF_INET;
	if (is_v4 ? target->v4.sin_addr.s_addr != INADDR_ANY : !IN6_IS_ADDR_UNSPECIFIED(&target->v6.sin6_addr))
		return format_address(out, target);
	snprintf(out, ADDRESS_BYTES, "*:%u", ntohs(is_v4 ? target->v4.sin_port : target->v6.sin6_port));
	return true;
}

void weft__datagram(weft_id promise, int fd, const struct sockaddr *to, const struct weft_digest *digest, bool is_sent)
{
	union address target = {.local = {0}};
	char text[ADDRESS_BYTES];
	const int saved = errno;
	const bool is_known = find_target(&target, fd, to, is_sent) && format_target(text, &target);
	errno = saved;
	if (!is_known)
		return;
	const int64_t number = (int64_t)((digest->sum ^ digest->bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 1 | 1);
	weft__slow_detail(promise, WEFT_DETAIL_DATAGRAM, is_sent ? number : -number, text);
}
