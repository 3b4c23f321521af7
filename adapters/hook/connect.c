/* connect.c: records calls of connect() that are in progress.  SPDX-License-Identifier: ISC */
#include "adapters/hook/connect.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/session.h"
#include "adapters/hook/thread.h"

unsigned weft__hook_connecting_count;

/* Connects in progress, indexed by file descriptor. */
static struct connecting {
	weft_id id; /* promise of the connect; 0 if no connect is in progress */
	unsigned epoch;
	weft_id by, awaited_by;
	uint64_t since;
	struct weft_record_place *site;
	struct weft_hook_label label;
} connects[WEFT__HOOK_MAX_FDS];

static struct connecting *find_connecting(int fd)
{
	struct connecting *c = &connects[(unsigned)fd % WEFT__HOOK_MAX_FDS];
	return (unsigned)fd < WEFT__HOOK_MAX_FDS && __atomic_load_n(&c->id, __ATOMIC_ACQUIRE) && c->epoch == weft__hook_epoch
		   ? c
		   : NULL;
}

bool weft__hook_connect_append_label(struct weft_hook_label *label, int fd)
{
	const struct connecting *c = find_connecting(fd);
	if (c)
		weft_hook_append(label, c->label.text);
	return c;
}

static void end_connect(int fd, const char *error)
{
	struct connecting *c = find_connecting(fd);
	const weft_id id = c ? __atomic_exchange_n(&c->id, 0, __ATOMIC_ACQ_REL) : 0;
	if (!id)
		return;
	__atomic_sub_fetch(&weft__hook_connecting_count, 1, __ATOMIC_RELAXED);
	const weft_id running = weft_hook_current_promise(), waits = c->awaited_by;
	if (error)
		weft_fail(WEFT_SYSTEM_ID, id, error);
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
	/* If several events watch the descriptor, the promise that awaits the connect may differ from the promise whose callback
	 * ran. */
	if (waits && waits != running)
		weft_read_later(waits, id);
	weft_read_later(running, id);
}

static bool is_connected(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;
	return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

/* Returns the socket's pending error and clears it.  Call this function only if the program can no longer ask for the error. */
static int get_socket_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof error;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? 0 : error;
}

void weft__hook_connect_check_end(int fd, int error)
{
	const int saved_errno = errno;
	if (!find_connecting(fd))
		return;
	const bool is_asked = error < 0;
	error = is_asked ? get_socket_error(fd) : error;
	if (error == 0 && is_connected(fd))
		end_connect(fd, NULL);
	else if (error == 0 && is_asked)
		end_connect(fd, "given up");
	else if (error != 0 && error != EINPROGRESS && error != EAGAIN && error != EALREADY && error != EINTR &&
		 error != ENOTCONN)
		end_connect(fd, strerrordesc_np(error));
	errno = saved_errno;
}

static struct connecting *begin_connect(int fd, const struct sockaddr *to, socklen_t size, weft_id connection, const void *caller)
{
	struct sockaddr_storage address = {0};
	struct connecting *c = &connects[fd];
	c->epoch = weft__hook_epoch;
	c->by = weft_hook_current_promise();
	c->awaited_by = 0;
	c->label = (struct weft_hook_label){0};
	memcpy(&address, to, size < sizeof address ? size : sizeof address);
	weft_hook_append_address(&c->label, (const struct sockaddr *)&address);
	const weft_id id = weft_hook_create(c->by, WEFT_KIND_CONNECT, caller, &c->site);
	c->since = weft_is_on() ? weft__stream->last : 0;
	weft_hook_record_label(&c->label, id);
	__atomic_add_fetch(&weft__hook_connecting_count, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->id, id, __ATOMIC_RELEASE);
	weft__hook_connect_await(fd, connection);
	return c;
}

static bool is_stream_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	int type = 0;
	socklen_t bytes = sizeof type;
	return (unsigned)fd < WEFT__HOOK_MAX_FDS && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
	       type == SOCK_STREAM && size >= sizeof to->sa_family && weft_hook_is_readable(to, size) &&
	       (to->sa_family == AF_INET || to->sa_family == AF_INET6 || to->sa_family == AF_UNIX);
}

void weft__hook_connect_returned(
    int fd, const struct sockaddr *to, socklen_t size, int result, weft_id connection, const void *caller)
{
	const int error = result < 0 ? errno : 0;
	if (find_connecting(fd)) {
		weft__hook_connect_check_end(fd, error == EISCONN ? 0 : error);
	} else if (error && error != EISCONN && error != EINTR && error != EALREADY && error != EBADF && error != ENOTSOCK &&
		   !weft__hook_is_runtime(caller) && !weft__hook_is_recorder(caller) && is_stream_connect(fd, to, size)) {
		begin_connect(fd, to, size, connection, caller);
		weft__hook_connect_check_end(fd, error);
	}
	errno = error ? error : errno;
}

void weft__hook_connect_await(int fd, weft_id id)
{
	struct connecting *c = id ? find_connecting(fd) : NULL;
	if (c && c->awaited_by != id)
		weft_await(c->awaited_by = id, c->id);
}

void weft__hook_connect_list_pending(int fd, weft_id id)
{
	const struct connecting *c = id ? find_connecting(fd) : NULL;
	if (!c || c->awaited_by != id)
		return;
	weft_pending_at(c->by, c->id, WEFT_KIND_CONNECT, c->site, c->since, c->label.text);
	weft_still_awaits(id, c->id);
}
