/* label.c: what things are called, and where the program calls from.  No printf: labels are on hot paths.
 * SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/uv/adapter.h"

static void put(struct weft__uv_thing *thing, const char *text, size_t bytes)
{
	size_t room = WEFT__UV_LABEL - 1 - thing->length, n = bytes < room ? bytes : room;
	memcpy(thing->label + thing->length, text, n);
	thing->length += (uint8_t)n;
	thing->label[thing->length] = 0;
}

void weft__uv_put(struct weft__uv_thing *thing, const char *text)
{
	put(thing, text, strlen(text));
}

void weft__uv_put_number(struct weft__uv_thing *thing, uint64_t number)
{
	char digits[20], *at = digits + sizeof digits;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	put(thing, at, (size_t)(digits + sizeof digits - at));
}

void weft__uv_put_bytes(struct weft__uv_thing *thing, const uv_buf_t bufs[], unsigned count)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += bufs[i].len;
	weft__uv_put_number(thing, bytes);
	put(thing, " bytes", 6);
}

/* In the largest unit that says it exactly, or well enough: "100 s", "5 min", "1500 ms". */
void weft__uv_put_ms(struct weft__uv_thing *thing, uint64_t ms)
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {{24 * 3600 * 1000, " d"}, {3600 * 1000, " h"}, {60 * 1000, " min"}, {1000, " s"}, {1, " ms"}};
	unsigned unit = 0;
	while (units[unit].ms > 1 && (ms < units[unit].ms || (ms % units[unit].ms && ms < 10 * units[unit].ms)))
		unit++;
	weft__uv_put_number(thing, ms / units[unit].ms);
	weft__uv_put(thing, units[unit].name);
}

void weft__uv_put_path(struct weft__uv_thing *thing, const char *path)
{
	enum { SHOWN = 48 };
	size_t bytes = strlen(path);
	if (bytes > SHOWN) {
		const char *tail = path + bytes - SHOWN, *slash = strchr(tail, '/');
		while (((unsigned char)*tail & 0xc0) == 0x80)
			tail++;
		put(thing, "\u2026", 3);
		path = slash && slash[1] ? slash : tail;
	}
	weft__uv_put(thing, path);
}

void weft__uv_put_address(struct weft__uv_thing *thing, const struct sockaddr *address)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (address->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;
		inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
		weft__uv_put(thing, host);
		put(thing, ":", 1);
		weft__uv_put_number(thing, ntohs(in->sin_port));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const void *)address;
		inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
		put(thing, "[", 1);
		weft__uv_put(thing, host);
		put(thing, "]:", 2);
		weft__uv_put_number(thing, ntohs(in->sin6_port));
	} else if (address->sa_family == AF_UNIX) {
		char path[sizeof(struct sockaddr_un)] = "";
		memcpy(path, ((const struct sockaddr_un *)(const void *)address)->sun_path,
		    sizeof((struct sockaddr_un *)0)->sun_path);
		if (!path[0] && path[1])
			path[0] = '@';
		weft__uv_put_path(thing, path);
	} else {
		weft__uv_put(thing, address->sa_family == AF_NETLINK ? "netlink" : "address");
	}
}

typedef int ask_fn(int fd, struct sockaddr *restrict address, socklen_t *restrict size);

static bool put_socket(struct weft__uv_thing *thing, ask_fn *ask, int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	struct sockaddr *found = (struct sockaddr *)&address;
	uint8_t before = thing->length;
	if (ask(fd, found, &size) == 0 && (found->sa_family == AF_NETLINK || size > sizeof found->sa_family))
		weft__uv_put_address(thing, found);
	return thing->length > before;
}

/* "pipe:[4711]" says nothing to anybody. */
static bool put_link(struct weft__uv_thing *thing, int fd)
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
	weft__uv_put_path(thing, path);
	return bytes > 0;
}

void weft__uv_put_fd(struct weft__uv_thing *thing, int fd)
{
	int kept = errno;
	if (!put_socket(thing, getpeername, fd) && !put_socket(thing, getsockname, fd) && !put_link(thing, fd)) {
		put(thing, "fd ", 3);
		weft__uv_put_number(thing, (unsigned)fd);
	}
	errno = kept;
}

void weft__uv_put_handle(struct weft__uv_thing *thing, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (thing->copy->real.uv_fileno(handle, &fd) == 0)
		weft__uv_put_fd(thing, fd);
}

void weft__uv_say(struct weft__uv_thing *thing)
{
	while (thing->length > 0 && thing->label[thing->length - 1] == ' ')
		thing->label[--thing->length] = 0;
	/* Cut in the middle of a character. */
	for (unsigned i = 1; i < 4 && thing->length == WEFT__UV_LABEL - 1; i++) {
		unsigned char byte = (unsigned char)thing->label[thing->length - i];
		if (byte >= 0xc0)
			thing->label[thing->length -= (uint8_t)i] = 0;
		if (byte < 0x80 || byte >= 0xc0)
			break;
	}
	if (thing->length > 0)
		weft_label(thing->id, thing->label);
}

void weft__uv_put_function(struct weft__uv_thing *thing, const void *function)
{
	const char *name = weft_hook_name(function);
	if (name) {
		put(thing, " ", 1);
		weft__uv_put(thing, name);
	}
}

struct weft_record_place *weft__uv_site(const void *caller)
{
	return weft_hook_place(caller);
}
