/* fd_label.c: labels of file descriptors, from their addresses or paths.  SPDX-License-Identifier: ISC */
#include "adapters/hook/fd_label.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/hook/connect.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/socket.h"

static bool has_address(const struct sockaddr *address, socklen_t size)
{
	return address->sa_family == AF_NETLINK || size > sizeof address->sa_family;
}

typedef int get_address_fn(int fd, struct sockaddr *restrict address, socklen_t *restrict size);

static bool append_socket_address(struct weft_hook_label *label, get_address_fn *get_address, int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	struct sockaddr *found = (struct sockaddr *)&address;
	uint8_t before = label->length;
	if (get_address(fd, found, &size) == 0 && has_address(found, size))
		weft_hook_append_address(label, found);
	return label->length > before;
}

/* Appends the target without the inode number in "pipe:[4711]", which has no meaning for a reader. */
static bool append_link_target(struct weft_hook_label *label, int fd)
{
	char link[32] = "/proc/self/fd/", path[4096];
	char *at = link + strlen(link), digits[12], *digit = digits;
	unsigned rest = (unsigned)fd;
	do
		*digit++ = (char)('0' + rest % 10);
	while (rest /= 10);
	while (digit > digits)
		*at++ = *--digit;
	*at = 0;
	ssize_t bytes = readlink(link, path, sizeof path - 1);
	path[bytes > 0 ? bytes : 0] = 0;
	char *colon = strstr(path, ":[");
	if (colon)
		*colon = 0;
	weft_hook_append_path(label, path);
	return bytes > 0;
}

static void append_unconnected(struct weft_hook_label *label, int fd)
{
	if (!weft__hook_connect_append_label(label, fd) && !append_socket_address(label, getsockname, fd) &&
	    !append_link_target(label, fd)) {
		weft_hook_append(label, "fd ");
		weft_hook_append_number(label, (unsigned)fd);
	}
}

void weft_hook_append_fd(struct weft_hook_label *label, int fd)
{
	int saved_errno = errno;
	if (!append_socket_address(label, getpeername, fd))
		append_unconnected(label, fd);
	errno = saved_errno;
}

/* Appends the address of a datagram socket, unless the socket has no port. */
static void append_datagram_socket(struct weft_hook_label *label, int fd)
{
	struct sockaddr_in6 own = {0}; /* sockaddr_in and sockaddr_in6 have the port at the same offset */
	socklen_t size = sizeof own;
	weft_hook_append(label, "udp ");
	if (!append_socket_address(label, getpeername, fd) && getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
	    own.sin6_port)
		weft_hook_append_address(label, (const struct sockaddr *)&own);
}

/* Appends the socket's peer address, if the socket has a peer.  Returns whether the socket has a peer. */
static bool append_peer(struct weft_hook_label *label, int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t size = sizeof peer;
	if (getpeername(fd, (struct sockaddr *)&peer, &size))
		return false;
	if (has_address((const struct sockaddr *)&peer, size))
		weft_hook_append_address(label, (const struct sockaddr *)&peer);
	return true;
}

/* Returns the local port of a socket; 0 if there is none. */
static uint16_t get_own_port(int fd)
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof own;
	if (getsockname(fd, (struct sockaddr *)&own, &size))
		return 0;
	return own.ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)(const void *)&own)->sin_port)
	       : own.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)(const void *)&own)->sin6_port)
					   : 0;
}

/* Ports of watched listeners.  An accepted connection has the same local port as its listener. */
static uint16_t listener_ports[64];
enum { MAX_LISTENER_PORTS = sizeof listener_ports / sizeof *listener_ports };

static void note_listener(int fd)
{
	const uint16_t port = get_own_port(fd);
	for (unsigned i = 0; port && i < MAX_LISTENER_PORTS; i++) {
		uint16_t seen = __atomic_load_n(&listener_ports[i], __ATOMIC_RELAXED);
		if (seen == port || (!seen && (__atomic_compare_exchange_n(
						   &listener_ports[i], &seen, port, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
						  seen == port)))
			return;
	}
}

/* Notes listeners that are older than the recording, until each open descriptor was looked at once in the recording.  If two
 * threads search, the second one finds nothing. */
static void note_older_listeners(void)
{
	static unsigned epoch; /* the recording of the search */
	static struct weft__hook_fd_search search;
	static bool is_busy;
	if (__atomic_exchange_n(&is_busy, true, __ATOMIC_ACQUIRE))
		return;
	if (epoch != weft__hook_epoch)
		search = (struct weft__hook_fd_search){0};
	epoch = weft__hook_epoch;
	if (!search.is_over)
		weft__hook_find_listeners(&search, note_listener);
	__atomic_store_n(&is_busy, false, __ATOMIC_RELEASE);
}

static bool is_listener_port(uint16_t port)
{
	unsigned i = 0;
	while (i < MAX_LISTENER_PORTS && __atomic_load_n(&listener_ports[i], __ATOMIC_RELAXED) != port)
		i++;
	return i < MAX_LISTENER_PORTS;
}

static bool was_accepted(int fd)
{
	const uint16_t port = get_own_port(fd);
	if (port && !is_listener_port(port))
		note_older_listeners();
	return port && is_listener_port(port);
}

enum weft_kind weft_hook_append_watched_fd(struct weft_hook_label *label, int fd, bool reads, bool *has_datagrams)
{
	int saved_errno = errno;
	struct weft_hook_label peer = {0};
	const int protocol = weft__hook_socket_protocol(fd);
	*has_datagrams = protocol == IPPROTO_UDP;
	if (*has_datagrams) {
		append_datagram_socket(label, fd);
		errno = saved_errno;
		return WEFT_KIND_CONNECTION;
	}
	const bool listens = protocol >= 0 && weft__hook_is_listener(fd);
	const bool connects = protocol >= 0 && !listens && (append_peer(&peer, fd) || weft__hook_connect_append_label(&peer, fd));
	if (listens)
		note_listener(fd);
	weft_hook_append(label, listens ? "listen " : reads || !connects ? "" : was_accepted(fd) ? "from " : "to ");
	if (peer.length > 0)
		weft_hook_append(label, peer.text);
	else
		append_unconnected(label, fd);
	errno = saved_errno;
	return listens ? WEFT_KIND_LISTEN : connects ? WEFT_KIND_CONNECTION : WEFT_KIND_POLL;
}

bool weft_hook_may_connect(int fd)
{
	int saved_errno = errno, type = 0;
	socklen_t size = sizeof type;
	struct weft_hook_label peer = {0};
	const bool may = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
			 weft__hook_is_internet_socket(fd) && !weft__hook_is_listener(fd) && !append_peer(&peer, fd);
	errno = saved_errno;
	return may;
}
