/* carried.c: see carried.h.  SPDX-License-Identifier: ISC */
#include "adapters/hook/carried.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapters/hook/connect.h"
#include "adapters/hook/label.h"
#include "adapters/hook/thread.h"

struct weft__hook_carried weft__hook_carried[WEFT__HOOK_DESCRIPTORS];

static bool did_connect[WEFT__HOOK_DESCRIPTORS];
static pid_t process;

typedef enum weft__hook_carried_state state;

static state state_of(const struct weft__hook_carried *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct weft__hook_carried *c, state to)
{
	__atomic_store_n(&c->state, to, __ATOMIC_RELEASE);
}

static bool changes(struct weft__hook_carried *c, state from, state to)
{
	return __atomic_compare_exchange_n(&c->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- Who stands for it ---- */

/* One that stands for what another one stood for goes on with its count: of what is no TCP nobody else knows that. */
static void begin(int fd, weft_id id, state first, weft_hook_is_own_write *is_own_write)
{
	struct weft__hook_carried *c = weft__hook_carried_at(fd);
	if (!id || (unsigned)fd >= WEFT__HOOK_DESCRIPTORS)
		return;
	if (c != &weft__hook_carried[fd]) /* it is one more name, and has now a promise of its own */
		c = NULL;
	const bool is_known =
	    c && first != WEFT__HOOK_DATAGRAMS && (state_of(c) == WEFT__HOOK_KNOWN || state_of(c) == WEFT__HOOK_MOVED);
	c = &weft__hook_carried[fd];
	c->epoch = weft__hook_epoch;
	c->is_own_write = is_own_write;
	c->is_idle = c->is_ended = false;
	process = getpid();
	__atomic_store_n(&c->id, id, __ATOMIC_RELAXED);
	set_state(c, is_known ? WEFT__HOOK_MOVED : first);
	weft__hook_connect_is_awaited(fd, id);
}

static bool is_carried_by(int fd, weft_id id)
{
	return id && weft_hook_carrier(fd) == id;
}

void weft_hook_carries(int fd, weft_id id, weft_hook_is_own_write *is_own_write)
{
	if (!is_carried_by(fd, id))
		begin(fd, id, WEFT__HOOK_NEW, is_own_write);
}

void weft_hook_carries_datagrams(int fd, weft_id id, weft_hook_is_own_write *is_own_write)
{
	if (!is_carried_by(fd, id))
		begin(fd, id, WEFT__HOOK_DATAGRAMS, is_own_write);
}

void weft_hook_may_carry(int fd, weft_id id, bool has_datagrams)
{
	struct weft__hook_carried *c = weft__hook_carried_at(fd);
	if (is_carried_by(fd, id))
		c->is_idle = false;
	else if (!weft_hook_carrier(fd) || c->is_idle)
		begin(fd, id, has_datagrams ? WEFT__HOOK_DATAGRAMS : WEFT__HOOK_NEW, NULL);
}

void weft_hook_gives_way(int fd, weft_id id)
{
	if (is_carried_by(fd, id))
		weft__hook_carried_at(fd)->is_idle = true;
}

void weft_hook_carries_no_more(int fd, weft_id id)
{
	struct weft__hook_carried *c = weft__hook_carried_at(fd);
	if (!is_carried_by(fd, id))
		return;
	c->is_own_write = NULL;
	c->is_ended = c->is_idle = true;
	if (state_of(c) == WEFT__HOOK_DATAGRAMS)
		set_state(c, WEFT__HOOK_NO_CONNECTION);
}

/* The child of a vfork() closes what is its own, in memory that is its parent's. */
void weft__hook_is_another(int fd)
{
	if ((unsigned)fd >= WEFT__HOOK_DESCRIPTORS)
		return;
	struct weft__hook_carried *c = &weft__hook_carried[fd];
	const bool may_connect = __atomic_load_n(&weft__hook_connecting, __ATOMIC_RELAXED) > 0;
	if ((!state_of(c) && !did_connect[fd] && !may_connect) || getpid() != process)
		return;
	if (may_connect)
		weft__hook_connect_ends(fd, -1);
	__atomic_store_n(&did_connect[fd], false, __ATOMIC_RELAXED);
	set_state(c, WEFT__HOOK_NO_CONNECTION);
	__atomic_store_n(&c->id, 0, __ATOMIC_RELAXED);
}

void weft__hook_is_same(int fd, int as)
{
	const struct weft__hook_carried *of = weft__hook_carried_at(as);
	if (fd == as || (unsigned)fd >= WEFT__HOOK_DESCRIPTORS || getpid() != process)
		return;
	weft__hook_is_another(fd);
	if (!of)
		return;
	struct weft__hook_carried *c = &weft__hook_carried[fd];
	c->epoch = weft__hook_epoch;
	c->first = (int)(of - weft__hook_carried);
	set_state(c, WEFT__HOOK_SAME);
}

void weft__hook_are_others(unsigned first, unsigned last)
{
	for (unsigned fd = first; fd <= last && fd < WEFT__HOOK_DESCRIPTORS; fd++)
		weft__hook_is_another((int)fd);
}

void weft__hook_connects(int fd)
{
	if ((unsigned)fd >= WEFT__HOOK_DESCRIPTORS)
		return;
	process = getpid();
	__atomic_store_n(&did_connect[fd], true, __ATOMIC_RELAXED);
}

/* ---- How far it has come ---- */

/* A filter of system calls may kill who asks for another than it knows. */
static bool may_ask(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
}

/* Whether the trace knows which connection it is; if not, it is told, and how far that has come but for the bytes that were read
 * just now.  What another OS thread moves meanwhile nobody counts: then it is asked again. */
static bool is_known(struct weft__hook_carried *c, int fd, size_t just_read)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	struct weft_positions found = c->positions;
	const state before = state_of(c);
	if (__builtin_expect(before == WEFT__HOOK_KNOWN, 1))
		return true;
	if (before == WEFT__HOOK_ASKING)
		changes(c, WEFT__HOOK_ASKING, WEFT__HOOK_MISSED);
	if ((before != WEFT__HOOK_NEW && before != WEFT__HOOK_MOVED) || !changes(c, before, WEFT__HOOK_ASKING))
		return false;
	const bool is_one = before == WEFT__HOOK_MOVED || weft_connection(id, fd, did_connect[fd], &found);
	/* Of TCP the kernel counts all that was read, of others nobody has before now. */
	const bool is_counted = before == WEFT__HOOK_NEW && just_read && found.received >= just_read;
	if (is_one && is_counted)
		found.received -= just_read;
	if (is_one && (is_counted || before == WEFT__HOOK_MOVED))
		weft_still_connected(id, fd, &found);
	c->positions = found;
	const state now = is_one                                     ? WEFT__HOOK_KNOWN
			  : may_ask() && weft_hook_has_datagrams(fd) ? WEFT__HOOK_DATAGRAMS
								     : WEFT__HOOK_STRANGER;
	return (changes(c, WEFT__HOOK_ASKING, now) || (changes(c, WEFT__HOOK_MISSED, WEFT__HOOK_NEW), false)) && is_one;
}

static void sends(struct weft__hook_carried *c, weft_id id, int64_t bytes)
{
	const uint64_t sent = __atomic_add_fetch(&c->positions.sent, (uint64_t)bytes, __ATOMIC_RELAXED);
	weft_sent(id, sent);
}

void weft_hook_goes_out(int fd, weft_id id, size_t bytes)
{
	struct weft__hook_carried *c = is_carried_by(fd, id) ? weft__hook_carried_at(fd) : NULL;
	if (c && is_known(c, fd, 0) && bytes > 0)
		sends(c, id, (int64_t)bytes);
}

void weft_hook_fell_short(int fd, weft_id id, size_t bytes)
{
	struct weft__hook_carried *c = bytes && is_carried_by(fd, id) ? weft__hook_carried_at(fd) : NULL;
	if (c && state_of(c) == WEFT__HOOK_KNOWN)
		sends(c, id, -(int64_t)bytes);
}

void weft_hook_still_connected(int fd, weft_id id)
{
	const struct weft__hook_carried *c = is_carried_by(fd, id) ? weft__hook_carried_at(fd) : NULL;
	weft__hook_still_connecting(fd, id);
	if (c && state_of(c) == WEFT__HOOK_KNOWN)
		weft_still_connected(id, fd, &c->positions);
}

/* Lists of pieces mostly lie on the stack, whose page needs no question. */
static bool can_be_read(const void *memory, size_t size)
{
	enum { LEAST_PAGE = 4096 };
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0) / LEAST_PAGE, first = (uintptr_t)memory;
	return (first / LEAST_PAGE == here && (first + size - 1) / LEAST_PAGE == here) || weft_hook_is_readable(memory, size);
}

/* false also where it cannot be read: that the kernel says so is the program's to hear. */
static bool count_bytes(const struct iovec *pieces, size_t count, size_t *bytes)
{
	enum { AT_ONCE = 256 }; /* no more than a page */
	*bytes = 0;
	for (size_t i = 0; i < count && count <= IOV_MAX; i++) {
		const size_t left = count - i;
		if (i % AT_ONCE == 0 && !can_be_read(pieces + i, (left < AT_ONCE ? left : AT_ONCE) * sizeof *pieces))
			return false;
		*bytes += pieces[i].iov_len;
	}
	return count <= IOV_MAX;
}

/* Of what the program sends, as far as there is something; what is not is the kernel's to refuse. */
struct weft_digest weft_hook_digest(const struct iovec *pieces, size_t count)
{
	enum { MOST = 64 };
	struct weft_digest digest = {0};
	for (size_t i = 0; i < count; i++) {
		const bool is_looked_at = pieces[i].iov_len > 0 && digest.bytes < MOST;
		const size_t bytes = pieces[i].iov_len < MOST ? pieces[i].iov_len : MOST;
		if (is_looked_at && weft_hook_is_readable(pieces[i].iov_base, bytes))
			weft_digest(&digest, pieces[i].iov_base, bytes);
		digest.bytes += is_looked_at ? pieces[i].iov_len - bytes : pieces[i].iov_len;
	}
	return digest;
}

/* Of the socket, as of a connection: who runs is known. */
static void sends_datagram(weft_id socket, int fd, const struct msghdr *datagram)
{
	const struct sockaddr *to = datagram->msg_name;
	if (to && !can_be_read(to, sizeof(struct sockaddr_in6)))
		return;
	const struct weft_digest digest = weft_hook_digest(datagram->msg_iov, datagram->msg_iovlen);
	weft_datagram_sent(socket, fd, to, &digest);
}

size_t weft__hook_writes(struct weft__hook_carried *c, int fd, const struct msghdr *message)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	weft_hook_is_own_write *is_own_write = __atomic_load_n(&c->is_own_write, __ATOMIC_RELAXED);
	const int kept = errno;
	size_t bytes = 0, told = 0;
	if ((is_own_write && !is_own_write()) || !count_bytes(message->msg_iov, message->msg_iovlen, &bytes)) {
		told = 0;
	} else if (!weft__hook_has_datagrams(c) && bytes > 0 && is_known(c, fd, 0)) {
		sends(c, id, (int64_t)bytes);
		told = bytes;
	} else if (weft__hook_has_datagrams(c)) { /* maybe since it was asked just now */
		sends_datagram(id, fd, message);
	}
	errno = kept;
	return told;
}

void weft__hook_wrote_less(struct weft__hook_carried *c, size_t missing)
{
	const int kept = errno;
	sends(c, __atomic_load_n(&c->id, __ATOMIC_RELAXED), -(int64_t)missing);
	errno = kept;
}

void weft__hook_has_read(struct weft__hook_carried *c, int fd, size_t bytes)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	const int kept = errno;
	if (is_known(c, fd, bytes)) {
		const uint64_t received = __atomic_add_fetch(&c->positions.received, bytes, __ATOMIC_RELAXED);
		if (!c->is_ended)
			weft_received(id, received);
	}
	errno = kept;
}

/* The kernel has just written there.  Of what did not fit it is known no more which datagram it was. */
void weft__hook_datagram_came(const struct weft__hook_carried *c, int fd, const struct msghdr *into, size_t bytes)
{
	const int kept = errno;
	struct weft_digest digest = {0};
	size_t room = 0;
	if (__atomic_load_n(&c->is_own_write, __ATOMIC_RELAXED) || (into->msg_flags & MSG_TRUNC))
		return;
	for (size_t i = 0; i < into->msg_iovlen && room <= bytes; i++) {
		const size_t left = bytes - room, here = into->msg_iov[i].iov_len;
		weft_digest(&digest, into->msg_iov[i].iov_base, here < left ? here : left);
		room += here;
	}
	if (room > 0 && room >= bytes)
		weft_datagram_received(__atomic_load_n(&c->id, __ATOMIC_RELAXED), fd, &digest);
	errno = kept;
}
