/* uv_connection.c: records connections, sockets and listeners, so that a reader can join both ends of a connection.
 *
 * Under `weft record`, an adapter records each libuv handle, also the handles of this library; then this file records only bytes
 * that are sent without libuv.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

typedef void adapter_fn(int fd, int64_t bytes);

/* Connections of this OS thread, for the recorder's listing of pending promises. */
static WEFT__PER_THREAD struct weft__uv_connection *all_connections, *next_listed;
static WEFT__PER_THREAD bool is_listed;

/* Returns the adapter's function for bytes that are about to be written to a descriptor, or were not written; NULL without an
 * adapter. */
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

/* Formats an address; returns false if there is no address. */
static bool format_address(char *out, size_t capacity, const union address *from)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (from->any.sa_family == AF_INET || from->any.sa_family == AF_INET6)
		uv_ip_name(&from->any, host, sizeof host);
	if (from->any.sa_family == AF_INET)
		return snprintf(out, capacity, "%s:%u", host, ntohs(from->v4.sin_port)) > 0;
	if (from->any.sa_family == AF_INET6)
		return snprintf(out, capacity, "[%s]:%u", host, ntohs(from->v6.sin6_port)) > 0;
	return from->any.sa_family == AF_UNIX &&
	       snprintf(out, capacity, "%.*s", (int)sizeof from->local.sun_path, from->local.sun_path) > 0;
}

static bool query_address(union address *out, const struct weft__uv_connection *c, bool is_peer)
{
	socklen_t bytes = sizeof *out;
	uv_os_fd_t fd;
	*out = (union address){.local = {0}};
	return uv_fileno(c->h->handle, &fd) == 0 && (is_peer ? getpeername : getsockname)(fd, &out->any, &bytes) == 0;
}

static void format_label(char label[LABEL_BYTES], const struct weft__uv_connection *c, const struct sockaddr *to)
{
	static const char *const prefixes[] = {[WEFT__ACCEPTED] = "from ",
	    [WEFT__CONNECTED] = "to ",
	    [WEFT__INHERITED] = "pipe ",
	    [WEFT__LISTENER] = "listen ",
	    [WEFT__DATAGRAM_SOCKET] = "udp "};
	const int begun = snprintf(label, LABEL_BYTES, "%s", prefixes[c->role]);
	char *at = label + begun;
	const size_t capacity = LABEL_BYTES - (size_t)begun;
	union address found = {.local = {0}};
	if (to)
		memcpy(&found, to,
		    to->sa_family == AF_INET    ? sizeof found.v4
		    : to->sa_family == AF_INET6 ? sizeof found.v6
						: sizeof found.local);
	/* Only the listening end of a unix socket has a name. */
	if (!(to && format_address(at, capacity, &found)) &&
	    !(c->role < WEFT__LISTENER && query_address(&found, c, true) && format_address(at, capacity, &found)) &&
	    !(query_address(&found, c, false) && format_address(at, capacity, &found)))
		at[-1] = 0;
}

/* ---- Start and end ---- */

static enum weft_kind promise_kind(const struct weft__uv_connection *c)
{
	return c->role == WEFT__LISTENER ? WEFT_KIND_LISTEN : WEFT_KIND_CONNECTION;
}

static uint64_t list_connections(void *nothing, uint64_t cursor, unsigned budget)
{
	char label[LABEL_BYTES];
	struct weft__uv_connection *c = cursor ? next_listed : all_connections;
	for (; c && budget > 0; c = c->next, budget--) {
		format_label(label, c, NULL);
		if (!c->id)
			c->by = WEFT_SYSTEM_ID;
		c->id = weft_pending(c->by, c->id, promise_kind(c), c->site, c->since, label);
		if (c->is_identified)
			weft_still_connected(c->id, c->fd, &c->positions);
		if (c->read && c->h->waiter)
			weft_still_awaits(c->id, c->read);
	}
	next_listed = c;
	return c != NULL;
}

void weft__uv_connection_begin(struct weft__uv_connection *c, struct weft__handle *h, enum weft__role role,
    struct weft_record_site *site, weft_id by, const struct sockaddr *to)
{
	char label[LABEL_BYTES];
	if (find_adapter())
		return;
	*c = (struct weft__uv_connection){.h = h, .role = role, .site = site, .next = all_connections, .back = &all_connections};
	if (all_connections)
		all_connections->back = &c->next;
	all_connections = c;
	if (!is_listed)
		weft__list_pending_beside(list_connections, NULL);
	is_listed = true;
	if (!weft_is_on())
		return;
	c->by = by ? by : weft_running();
	c->id = weft_create(c->by, promise_kind(c), site);
	c->since = weft__stream->last;
	format_label(label, c, to);
	weft_label(c->id, label);
}

void weft__uv_connection_end(struct weft__uv_connection *c)
{
	if (!c->h)
		return;
	if (c->id)
		weft_resolve(weft_running(), c->id);
	if (next_listed == c)
		next_listed = c->next;
	*c->back = c->next;
	if (c->next)
		c->next->back = c->back;
	c->h = NULL;
}

/* ---- Bytes ---- */

bool weft__uv_connection_identify(struct weft__uv_connection *c)
{
	if (c->is_identified || c->is_unidentifiable || !c->h || !c->id || !weft_is_on())
		return c->is_identified;
	c->is_identified =
	    uv_fileno(c->h->handle, &c->fd) == 0 && weft_connection(c->id, c->fd, c->role == WEFT__CONNECTED, &c->positions);
	c->is_unidentifiable = !c->is_identified;
	return c->is_identified;
}

void weft__uv_connection_await_read(struct weft__uv_connection *c, const struct weft_promise *read)
{
	if (!c->h || !c->id || !weft_is_on())
		return;
	c->read = weft_promise_id(read);
	weft_await(c->id, c->read);
}

void weft__uv_connection_note_write(struct weft__uv_connection *c, int64_t bytes)
{
	if (bytes && weft__uv_connection_identify(c))
		weft_sent(c->id, c->positions.sent += (uint64_t)bytes);
}

void weft__uv_connection_note_read(struct weft__uv_connection *c, size_t bytes)
{
	if (c->is_identified)
		weft_received(c->id, c->positions.received += bytes);
}

void weft__uv_connection_note_raw_write(struct weft__uv_connection *c, const uv_handle_t *handle, int64_t bytes)
{
	adapter_fn *adapter = find_adapter();
	uv_os_fd_t fd;
	if (!adapter)
		weft__uv_connection_note_write(c, bytes);
	else if (bytes && weft_is_on() && uv_fileno(handle, &fd) == 0)
		adapter(fd, bytes);
}

/* ---- Datagrams ---- */

static struct weft_digest make_digest(const void *bytes, size_t size)
{
	struct weft_digest digest = {0};
	weft_digest(&digest, bytes, size);
	return digest;
}

void weft__uv_connection_note_send(struct weft__uv_connection *c, const struct sockaddr *to, const void *bytes, size_t size)
{
	const weft_id running = weft_running();
	uv_os_fd_t fd = -1;
	if (!c->id || !weft_is_on() || (!to && uv_fileno(c->h->handle, &fd)))
		return;
	const struct weft_digest digest = make_digest(bytes, size);
	weft_datagram_sent(running > 0 ? running : c->id, fd, to, &digest);
}

void weft__uv_connection_note_receive(struct weft__uv_connection *c, const void *bytes, size_t size)
{
	uv_os_fd_t fd;
	if (!c->id || !weft_is_on() || uv_fileno(c->h->handle, &fd))
		return;
	const struct weft_digest digest = make_digest(bytes, size);
	weft_datagram_received(c->id, fd, &digest);
}
