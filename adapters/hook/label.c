/* label.c: what things are called, and where the program calls from.  No printf: labels are on hot paths.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/hook/label.h"

#include "adapters/hook/connect.h"

static void put(struct weft_hook_label *label, const char *text, size_t bytes)
{
	size_t room = WEFT_HOOK_LABEL - 1 - label->length, n = bytes < room ? bytes : room;
	memcpy(label->text + label->length, text, n);
	label->length += (uint8_t)n;
	label->text[label->length] = 0;
}

void weft_hook_put(struct weft_hook_label *label, const char *text)
{
	put(label, text, strlen(text));
}

void weft_hook_put_number(struct weft_hook_label *label, uint64_t number)
{
	char digits[20], *at = digits + sizeof digits;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	put(label, at, (size_t)(digits + sizeof digits - at));
}

/* In the largest unit that says it exactly, or well enough: "100 s", "5 min", "1.5 s". */
void weft_hook_put_ms(struct weft_hook_label *label, uint64_t ms)
{
	enum { DAYS = 30 };
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {{24 * 3600 * 1000, " d"}, {3600 * 1000, " h"}, {60 * 1000, " min"}, {1000, " s"}, {1, " ms"}};
	unsigned unit = 0;
	/* Who waits for months waits for something else: that is how some say that there is no limit. */
	if (ms >= (uint64_t)DAYS * units[0].ms)
		weft_hook_put(label, "far off, ");
	while (units[unit].ms > 1 && (ms < units[unit].ms || (ms % units[unit].ms && ms < 10 * units[unit].ms)))
		unit++;
	if (units[unit].ms == 1 && ms >= 1000) {
		char part[] = {'.', (char)('0' + ms / 100 % 10), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10)};
		size_t len = sizeof part;
		while (part[len - 1] == '0')
			len--;
		weft_hook_put_number(label, ms / 1000);
		put(label, part, len);
		unit--;
	} else {
		weft_hook_put_number(label, ms / units[unit].ms);
	}
	weft_hook_put(label, units[unit].name);
}

void weft_hook_put_path(struct weft_hook_label *label, const char *path)
{
	enum { SHOWN = 48 };
	size_t bytes = strlen(path);
	if (bytes > SHOWN) {
		const char *tail = path + bytes - SHOWN, *slash = strchr(tail, '/');
		while (((unsigned char)*tail & 0xc0) == 0x80)
			tail++;
		put(label, "\u2026", 3);
		path = slash && slash[1] ? slash : tail;
	}
	weft_hook_put(label, path);
}

void weft_hook_put_address(struct weft_hook_label *label, const struct sockaddr *address)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		weft_hook_put(label, host);
		put(label, ":", 1);
		weft_hook_put_number(label, ntohs(in->sin_port));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)address;
		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
		put(label, "[", 1);
		weft_hook_put(label, host);
		put(label, "]:", 2);
		weft_hook_put_number(label, ntohs(in->sin6_port));
	} else if (address->sa_family == AF_UNIX) {
		char path[sizeof(struct sockaddr_un)] = "";
		memcpy(path, ((const struct sockaddr_un *)(const void *)address)->sun_path,
		    sizeof((struct sockaddr_un *)0)->sun_path);
		if (!path[0] && path[1])
			path[0] = '@';
		weft_hook_put_path(label, path);
	} else {
		weft_hook_put(label, address->sa_family == AF_NETLINK ? "netlink" : "address");
	}
}

static bool is_named(const struct sockaddr *address, socklen_t size)
{
	return address->sa_family == AF_NETLINK || size > sizeof address->sa_family;
}

typedef int ask_fn(int fd, struct sockaddr *restrict address, socklen_t *restrict size);

static bool put_socket(struct weft_hook_label *label, ask_fn *ask, int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	struct sockaddr *found = (struct sockaddr *)&address;
	uint8_t before = label->length;
	if (ask(fd, found, &size) == 0 && is_named(found, size))
		weft_hook_put_address(label, found);
	return label->length > before;
}

/* "pipe:[4711]" says nothing to anybody. */
static bool put_link(struct weft_hook_label *label, int fd)
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
	weft_hook_put_path(label, path);
	return bytes > 0;
}

static void put_unconnected(struct weft_hook_label *label, int fd)
{
	if (!weft__hook_put_connecting(label, fd) && !put_socket(label, getsockname, fd) && !put_link(label, fd)) {
		put(label, "fd ", 3);
		weft_hook_put_number(label, (unsigned)fd);
	}
}

void weft_hook_put_fd(struct weft_hook_label *label, int fd)
{
	int kept = errno;
	if (!put_socket(label, getpeername, fd))
		put_unconnected(label, fd);
	errno = kept;
}

static bool is_listener(int fd)
{
	int listens = 0;
	socklen_t size = sizeof listens;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens;
}

static bool is_of_internet(int fd)
{
	int family = 0;
	socklen_t size = sizeof family;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && (family == AF_INET || family == AF_INET6);
}

/* Of a socket; -1: it is none.  What is UDP's number among protocols of the internet may be another one elsewhere. */
static int protocol_of(int fd)
{
	int protocol = -1;
	socklen_t size = sizeof protocol;
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size))
		return -1;
	return protocol == IPPROTO_UDP && !is_of_internet(fd) ? 0 : protocol;
}

bool weft_hook_has_datagrams(int fd)
{
	int kept = errno;
	const bool has = protocol_of(fd) == IPPROTO_UDP;
	errno = kept;
	return has;
}

/* Who has no port yet is called by none. */
static void put_datagrams(struct weft_hook_label *label, int fd)
{
	struct sockaddr_in6 own = {0}; /* IPv4 has the port at the same place */
	socklen_t size = sizeof own;
	weft_hook_put(label, "udp ");
	if (!put_socket(label, getpeername, fd) && getsockname(fd, (struct sockaddr *)&own, &size) == 0 && own.sin6_port)
		weft_hook_put_address(label, (const struct sockaddr *)&own);
}

/* Whether there is a peer, which need not have an address. */
static bool put_peer(struct weft_hook_label *label, int fd)
{
	struct sockaddr_storage peer = {0};
	socklen_t size = sizeof peer;
	if (getpeername(fd, (struct sockaddr *)&peer, &size))
		return false;
	if (is_named((const struct sockaddr *)&peer, size))
		weft_hook_put_address(label, (const struct sockaddr *)&peer);
	return true;
}

/* The port of its own; 0: it has none. */
static uint16_t own_port(int fd)
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof own;
	if (getsockname(fd, (struct sockaddr *)&own, &size))
		return 0;
	return own.ss_family == AF_INET    ? ntohs(((const struct sockaddr_in *)(const void *)&own)->sin_port)
	       : own.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)(const void *)&own)->sin6_port)
					   : 0;
}

/* Ports at which somebody listened that was watched: who is accepted there has the same. */
static uint16_t listened_at[64];
enum { LISTENED_AT = sizeof listened_at / sizeof *listened_at };

static void note_listener(int fd)
{
	const uint16_t port = own_port(fd);
	for (unsigned i = 0; port && i < LISTENED_AT; i++) {
		uint16_t seen = __atomic_load_n(&listened_at[i], __ATOMIC_RELAXED);
		if (seen == port || (!seen && (__atomic_compare_exchange_n(
						   &listened_at[i], &seen, port, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
						  seen == port)))
			return;
	}
}

static bool was_accepted(int fd)
{
	const uint16_t port = own_port(fd);
	unsigned i = 0;
	while (i < LISTENED_AT && __atomic_load_n(&listened_at[i], __ATOMIC_RELAXED) != port)
		i++;
	return port && i < LISTENED_AT;
}

enum weft_kind weft_hook_put_watched(struct weft_hook_label *label, int fd, bool reads, bool *has_datagrams)
{
	int kept = errno;
	struct weft_hook_label peer = {0};
	const int protocol = protocol_of(fd);
	*has_datagrams = protocol == IPPROTO_UDP;
	if (*has_datagrams) {
		put_datagrams(label, fd);
		errno = kept;
		return WEFT_KIND_CONNECTION;
	}
	const bool listens = protocol >= 0 && is_listener(fd);
	const bool connects = protocol >= 0 && !listens && (put_peer(&peer, fd) || weft__hook_put_connecting(&peer, fd));
	if (listens)
		note_listener(fd);
	weft_hook_put(label, listens ? "listen " : reads || !connects ? "" : was_accepted(fd) ? "from " : "to ");
	if (peer.length > 0)
		weft_hook_put(label, peer.text);
	else
		put_unconnected(label, fd);
	errno = kept;
	return listens ? WEFT_KIND_LISTEN : connects ? WEFT_KIND_CONNECTION : WEFT_KIND_POLL;
}

bool weft_hook_may_connect(int fd)
{
	int kept = errno, type = 0;
	socklen_t size = sizeof type;
	struct weft_hook_label peer = {0};
	const bool may = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM && is_of_internet(fd) &&
			 !is_listener(fd) && !put_peer(&peer, fd);
	errno = kept;
	return may;
}

void weft_hook_say(struct weft_hook_label *label, weft_id id)
{
	while (label->length > 0 && label->text[label->length - 1] == ' ')
		label->text[--label->length] = 0;
	/* Cut in the middle of a character. */
	for (unsigned i = 1; i < 4 && label->length == WEFT_HOOK_LABEL - 1; i++) {
		unsigned char byte = (unsigned char)label->text[label->length - i];
		if (byte >= 0xc0)
			label->text[label->length -= (uint8_t)i] = 0;
		if (byte < 0x80 || byte >= 0xc0)
			break;
	}
	if (label->length > 0)
		weft_label(id, label->text);
}

void weft_hook_put_function(struct weft_hook_label *label, const void *function)
{
	const char *name = weft_hook_name(function);
	if (name) {
		put(label, " ", 1);
		weft_hook_put(label, name);
	}
}
