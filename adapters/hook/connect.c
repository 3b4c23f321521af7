/* connect.c: see connect.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/connect.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "adapters/hook/carried.h"
#include "adapters/hook/load.h"
#include "adapters/hook/thread.h"

unsigned weft__hook_connecting;

/* By descriptor. */
static struct connecting {
	weft_id id; /* 0: none is under way */
	unsigned epoch;
	weft_id by, awaited_by;
	uint64_t since;
	struct weft_record_place *site;
	struct weft_hook_label label;
} all[WEFT__HOOK_DESCRIPTORS];

static struct connecting *at(int fd)
{
	struct connecting *c = &all[(unsigned)fd % WEFT__HOOK_DESCRIPTORS];
	return (unsigned)fd < WEFT__HOOK_DESCRIPTORS && __atomic_load_n(&c->id, __ATOMIC_ACQUIRE) && c->epoch == weft__hook_epoch
		   ? c
		   : NULL;
}

bool weft__hook_put_connecting(struct weft_hook_label *label, int fd)
{
	const struct connecting *c = at(fd);
	if (c)
		weft_hook_put(label, c->label.text);
	return c;
}

static void end(int fd, const char *error)
{
	struct connecting *c = at(fd);
	const weft_id id = c ? __atomic_exchange_n(&c->id, 0, __ATOMIC_ACQ_REL) : 0;
	if (!id)
		return;
	__atomic_sub_fetch(&weft__hook_connecting, 1, __ATOMIC_RELAXED);
	const weft_id running = weft_hook_sender(), waits = c->awaited_by;
	if (error)
		weft_fail(WEFT_SYSTEM_ID, id, error);
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
	/* Of what has several events in a loop, one was called, and another may stand for the connection. */
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

/* The kernel forgets what it says here: only of one that nobody will ask again. */
static int ask_error(int fd)
{
	int error = 0;
	socklen_t size = sizeof error;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? 0 : error;
}

void weft__hook_connect_ends(int fd, int error)
{
	const int kept = errno;
	if (!at(fd))
		return;
	const bool is_asked = error < 0;
	error = is_asked ? ask_error(fd) : error;
	if (error == 0 && is_connected(fd))
		end(fd, NULL);
	else if (error == 0 && is_asked)
		end(fd, "given up");
	else if (error != 0 && error != EINPROGRESS && error != EAGAIN && error != EALREADY && error != EINTR &&
		 error != ENOTCONN)
		end(fd, strerrordesc_np(error));
	errno = kept;
}

static struct connecting *begin(int fd, const struct sockaddr *to, socklen_t size, const void *caller)
{
	struct sockaddr_storage address = {0};
	struct connecting *c = &all[fd];
	c->epoch = weft__hook_epoch;
	c->by = weft_hook_sender();
	c->awaited_by = 0;
	c->site = weft_hook_place(caller);
	c->label = (struct weft_hook_label){0};
	memcpy(&address, to, size < sizeof address ? size : sizeof address);
	weft_hook_put_address(&c->label, (const struct sockaddr *)&address);
	const weft_id id =
	    c->site ? weft_create_at(c->by, WEFT_KIND_CONNECT, c->site) : weft_create(c->by, WEFT_KIND_CONNECT, NULL);
	c->since = weft_is_on() ? weft__stream->last : 0;
	weft_hook_say(&c->label, id);
	__atomic_add_fetch(&weft__hook_connecting, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&c->id, id, __ATOMIC_RELEASE);
	weft__hook_connect_is_awaited(fd, weft_hook_carrier(fd));
	return c;
}

static bool is_stream(int fd, const struct sockaddr *to, socklen_t size)
{
	int type = 0;
	socklen_t bytes = sizeof type;
	return (unsigned)fd < WEFT__HOOK_DESCRIPTORS && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
	       type == SOCK_STREAM && size >= sizeof to->sa_family && weft_hook_is_readable(to, size) &&
	       (to->sa_family == AF_INET || to->sa_family == AF_INET6 || to->sa_family == AF_UNIX);
}

void weft__hook_has_connected(int fd, const struct sockaddr *to, socklen_t size, int result, const void *caller)
{
	const int error = result < 0 ? errno : 0;
	if (at(fd)) {
		weft__hook_connect_ends(fd, error == EISCONN ? 0 : error);
	} else if (error && error != EISCONN && error != EINTR && error != EALREADY && error != EBADF && error != ENOTSOCK &&
		   !weft__hook_is_runtime(caller) && !weft__hook_is_recorder(caller) && is_stream(fd, to, size)) {
		begin(fd, to, size, caller);
		weft__hook_connect_ends(fd, error);
	}
	errno = error ? error : errno;
}

void weft__hook_connect_is_awaited(int fd, weft_id id)
{
	struct connecting *c = id ? at(fd) : NULL;
	if (c && c->awaited_by != id)
		weft_await(c->awaited_by = id, c->id);
}

void weft__hook_still_connecting(int fd, weft_id id)
{
	const struct connecting *c = id ? at(fd) : NULL;
	if (!c || c->awaited_by != id)
		return;
	weft_pending_at(c->by, c->id, WEFT_KIND_CONNECT, c->site, c->since, c->label.text);
	weft_still_awaits(id, c->id);
}
