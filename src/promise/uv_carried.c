/* uv_carried.c: what the trace is told of connections, sockets and listeners, so that both ends of a connection can be put
 * together.
 *
 * Under `weft record` an adapter tells of each handle of libuv, also of ours: then nothing is told here but what is sent past
 * libuv.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

typedef void adapter_fn(int fd, int64_t bytes);

/* Of this OS thread, for the recorder, which asks again what is pending. */
static WEFT__PER_THREAD struct weft__carried *all, *listed_next;
static WEFT__PER_THREAD bool is_listed;

/* The adapter's, which is told how many bytes are about to be written to a descriptor, or were not; NULL: there is none. */
static adapter_fn *find_adapter(void)
{
	static adapter_fn *found;
	static int is_known;
	if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
		void *symbol = dlsym(RTLD_DEFAULT, "weft_hook_sends_past_libuv");
		memcpy(&found, &symbol, sizeof found);
		__atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
	}
	return found;
}

/* ---- Labels ---- */

enum { LABEL_BYTES = 120 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

/* false: it has none. */
static bool put_address(char *out, size_t room, const union address *from)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (from->any.sa_family == AF_INET || from->any.sa_family == AF_INET6)
		uv_ip_name(&from->any, host, sizeof host);
	if (from->any.sa_family == AF_INET)
		return snprintf(out, room, "%s:%u", host, ntohs(from->v4.sin_port)) > 0;
	if (from->any.sa_family == AF_INET6)
		return snprintf(out, room, "[%s]:%u", host, ntohs(from->v6.sin6_port)) > 0;
	return from->any.sa_family == AF_UNIX &&
	       snprintf(out, room, "%.*s", (int)sizeof from->local.sun_path, from->local.sun_path) > 0;
}

static bool ask_address(union address *out, const struct weft__carried *c, bool is_peer)
{
	socklen_t bytes = sizeof *out;
	uv_os_fd_t fd;
	*out = (union address){.local = {0}};
	return uv_fileno(c->h->handle, &fd) == 0 && (is_peer ? getpeername : getsockname)(fd, &out->any, &bytes) == 0;
}

static void put_label(char label[LABEL_BYTES], const struct weft__carried *c, const struct sockaddr *to)
{
	static const char *const says[] = {[WEFT__ACCEPTED] = "from ",
	    [WEFT__CONNECTED] = "to ",
	    [WEFT__GIVEN] = "pipe ",
	    [WEFT__LISTENS] = "listen ",
	    [WEFT__DATAGRAMS] = "udp "};
	const int begun = snprintf(label, LABEL_BYTES, "%s", says[c->role]);
	char *at = label + begun;
	const size_t room = LABEL_BYTES - (size_t)begun;
	union address found = {.local = {0}};
	if (to)
		memcpy(&found, to,
		    to->sa_family == AF_INET    ? sizeof found.v4
		    : to->sa_family == AF_INET6 ? sizeof found.v6
						: sizeof found.local);
	/* Of a unix socket only the listener's end has a name. */
	if (!(to && put_address(at, room, &found)) &&
	    !(c->role < WEFT__LISTENS && ask_address(&found, c, true) && put_address(at, room, &found)) &&
	    !(ask_address(&found, c, false) && put_address(at, room, &found)))
		at[-1] = 0;
}

/* ---- Beginning and end ---- */

static enum weft_kind kind_of(const struct weft__carried *c)
{
	return c->role == WEFT__LISTENS ? WEFT_KIND_LISTEN : WEFT_KIND_CONNECTION;
}

static uint64_t list(void *nothing, uint64_t cursor, unsigned budget)
{
	char label[LABEL_BYTES];
	struct weft__carried *c = cursor ? listed_next : all;
	for (; c && budget > 0; c = c->next, budget--) {
		put_label(label, c, NULL);
		if (!c->id)
			c->by = WEFT_SYSTEM_ID;
		c->id = weft_pending(c->by, c->id, kind_of(c), c->site, c->since, label);
		if (c->is_followed)
			weft_still_connected(c->id, c->fd, &c->positions);
		if (c->read && c->h->asker)
			weft_still_awaits(c->id, c->read);
	}
	listed_next = c;
	return c != NULL;
}

void weft__carried_begin(struct weft__carried *c, struct weft__handle *h, enum weft__role role, struct weft_record_site *site,
    weft_id by, const struct sockaddr *to)
{
	char label[LABEL_BYTES];
	if (find_adapter())
		return;
	*c = (struct weft__carried){.h = h, .role = role, .site = site, .next = all, .back = &all};
	if (all)
		all->back = &c->next;
	all = c;
	if (!is_listed)
		weft__list_pending_beside(list, NULL);
	is_listed = true;
	if (!weft_is_on())
		return;
	c->by = by ? by : weft_running();
	c->id = weft_create(c->by, kind_of(c), site);
	c->since = weft__stream->last;
	put_label(label, c, to);
	weft_label(c->id, label);
}

void weft__carried_end(struct weft__carried *c)
{
	if (!c->h)
		return;
	if (c->id)
		weft_resolve(weft_running(), c->id);
	if (listed_next == c)
		listed_next = c->next;
	*c->back = c->next;
	if (c->next)
		c->next->back = c->back;
	c->h = NULL;
}

/* ---- Bytes ---- */

bool weft__carried_follow(struct weft__carried *c)
{
	if (c->is_followed || c->is_stranger || !c->h || !c->id || !weft_is_on())
		return c->is_followed;
	c->is_followed =
	    uv_fileno(c->h->handle, &c->fd) == 0 && weft_connection(c->id, c->fd, c->role == WEFT__CONNECTED, &c->positions);
	c->is_stranger = !c->is_followed;
	return c->is_followed;
}

void weft__carried_awaits(struct weft__carried *c, const struct weft_promise *read)
{
	if (!c->h || !c->id || !weft_is_on())
		return;
	c->read = weft_promise_id(read);
	weft_await(c->id, c->read);
}

void weft__carried_goes_out(struct weft__carried *c, int64_t bytes)
{
	if (bytes && weft__carried_follow(c))
		weft_sent(c->id, c->positions.sent += (uint64_t)bytes);
}

void weft__carried_came_in(struct weft__carried *c, size_t bytes)
{
	if (c->is_followed)
		weft_received(c->id, c->positions.received += bytes);
}

void weft__carried_past_libuv(struct weft__carried *c, const uv_handle_t *handle, int64_t bytes)
{
	adapter_fn *adapter = find_adapter();
	uv_os_fd_t fd;
	if (!adapter)
		weft__carried_goes_out(c, bytes);
	else if (bytes && weft_is_on() && uv_fileno(handle, &fd) == 0)
		adapter(fd, bytes);
}

/* ---- Datagrams ---- */

static struct weft_digest digest_of(const void *bytes, size_t size)
{
	struct weft_digest digest = {0};
	weft_digest(&digest, bytes, size);
	return digest;
}

void weft__carried_sends(struct weft__carried *c, const struct sockaddr *to, const void *bytes, size_t size)
{
	const weft_id running = weft_running();
	uv_os_fd_t fd = -1;
	if (!c->id || !weft_is_on() || (!to && uv_fileno(c->h->handle, &fd)))
		return;
	const struct weft_digest digest = digest_of(bytes, size);
	weft_datagram_sent(running > 0 ? running : c->id, fd, to, &digest);
}

void weft__carried_got(struct weft__carried *c, const void *bytes, size_t size)
{
	uv_os_fd_t fd;
	if (!c->id || !weft_is_on() || uv_fileno(c->h->handle, &fd))
		return;
	const struct weft_digest digest = digest_of(bytes, size);
	weft_datagram_received(c->id, fd, &digest);
}
