/* fd_table.c: records the bytes that go through connections and datagram sockets.  SPDX-License-Identifier: ISC */
#include "adapters/hook/fd_table.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "adapters/hook/connect.h"
#include "adapters/hook/session.h"
#include "adapters/hook/socket.h"
#include "adapters/hook/thread.h"

struct weft__hook_fd_info weft__hook_fd_info[WEFT__HOOK_MAX_FDS];
uint64_t weft__hook_fds_without_waits[WEFT__HOOK_MAX_FDS / 64];

/* Entries of further descriptors. */
enum { CHUNKS = 256 };
static struct weft__hook_fd_info *chunks[CHUNKS];
static int limit; /* highest descriptor with an entry, plus 1; scans stop there and touch no other memory */

static pid_t owner_pid;

struct weft__hook_fd_info *weft__hook_fd_beyond(int fd)
{
	const unsigned chunk = (unsigned)fd / WEFT__HOOK_MAX_FDS;
	struct weft__hook_fd_info *first = fd >= 0 && chunk < CHUNKS ? __atomic_load_n(&chunks[chunk], __ATOMIC_ACQUIRE) : NULL;
	return first ? &first[(unsigned)fd % WEFT__HOOK_MAX_FDS] : NULL;
}

/* Returns the descriptor's entry and maps memory for it, which is also allowed in signal handlers. */
struct weft__hook_fd_info *weft__hook_fd_make(int fd)
{
	const int chunk = fd / WEFT__HOOK_MAX_FDS;
	const size_t bytes = sizeof(struct weft__hook_fd_info) * WEFT__HOOK_MAX_FDS;
	if (fd < 0 || chunk >= CHUNKS)
		return NULL;
	int before = __atomic_load_n(&limit, __ATOMIC_RELAXED);
	while (before <= fd && !__atomic_compare_exchange_n(&limit, &before, fd + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		continue;
	struct weft__hook_fd_info *c = weft__hook_fd_at(fd), *none = NULL;
	if (c)
		return c;
	const int saved_errno = errno;
	void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made != MAP_FAILED &&
	    !__atomic_compare_exchange_n(&chunks[chunk], &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(made, bytes);
	errno = saved_errno;
	return weft__hook_fd_beyond(fd);
}

int weft__hook_fd_limit(void)
{
	return __atomic_load_n(&limit, __ATOMIC_ACQUIRE);
}

typedef enum weft__hook_fd_state fd_state;

static fd_state state_of(const struct weft__hook_fd_info *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct weft__hook_fd_info *c, fd_state to)
{
	__atomic_store_n(&c->state, to, __ATOMIC_RELEASE);
}

static bool exchange_state(struct weft__hook_fd_info *c, fd_state from, fd_state to)
{
	return __atomic_compare_exchange_n(&c->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* ---- The promise of a descriptor ---- */

/* Assigns the descriptor to promise `id`.  If the descriptor had another promise, the counts of bytes continue, because for
 * connections other than TCP only this table knows the counts. */
static void attach_promise(int fd, weft_id id, fd_state first, weft_hook_is_own_write *is_own_write)
{
	struct weft__hook_fd_info *c = weft__hook_fd_find(fd);
	struct weft__hook_fd_info *own = weft__hook_fd_make(fd);
	if (!id || !own)
		return;
	if (c != own) /* the descriptor is a duplicate that now has its own promise */
		c = NULL;
	const bool ensure_identified = c && first != WEFT__HOOK_FD_DATAGRAM &&
				       (state_of(c) == WEFT__HOOK_FD_IDENTIFIED || state_of(c) == WEFT__HOOK_FD_REATTACHED);
	c = own;
	c->epoch = weft__hook_epoch;
	c->is_own_write = is_own_write;
	c->is_idle = c->is_ended = false;
	owner_pid = getpid();
	__atomic_store_n(&c->id, id, __ATOMIC_RELAXED);
	set_state(c, ensure_identified ? WEFT__HOOK_FD_REATTACHED : first);
	weft__hook_connect_await(fd, id);
}

static bool is_attached_to(int fd, weft_id id)
{
	return id && weft_hook_fd_promise(fd) == id;
}

void weft_hook_fd_attach(int fd, weft_id id, weft_hook_is_own_write *is_own_write)
{
	if (!is_attached_to(fd, id))
		attach_promise(fd, id, WEFT__HOOK_FD_UNIDENTIFIED, is_own_write);
}

void weft_hook_fd_attach_datagrams(int fd, weft_id id, weft_hook_is_own_write *is_own_write)
{
	if (!is_attached_to(fd, id))
		attach_promise(fd, id, WEFT__HOOK_FD_DATAGRAM, is_own_write);
}

void weft_hook_fd_attach_if_free(int fd, weft_id id, bool has_datagrams)
{
	struct weft__hook_fd_info *c = weft__hook_fd_find(fd);
	if (is_attached_to(fd, id))
		c->is_idle = false;
	else if (!weft_hook_fd_promise(fd) || c->is_idle)
		attach_promise(fd, id, has_datagrams ? WEFT__HOOK_FD_DATAGRAM : WEFT__HOOK_FD_UNIDENTIFIED, NULL);
}

void weft_hook_fd_mark_idle(int fd, weft_id id)
{
	if (is_attached_to(fd, id))
		weft__hook_fd_find(fd)->is_idle = true;
}

void weft_hook_fd_detach(int fd, weft_id id)
{
	struct weft__hook_fd_info *c = weft__hook_fd_find(fd);
	if (!is_attached_to(fd, id))
		return;
	c->is_own_write = NULL;
	c->is_ended = c->is_idle = true;
	if (state_of(c) == WEFT__HOOK_FD_DATAGRAM)
		set_state(c, WEFT__HOOK_FD_UNUSED);
}

/* Forgets the descriptor; does nothing in the child of a vfork(), which closes its own descriptors but shares its parent's
 * memory. */
void weft__hook_fd_reset(int fd)
{
	struct weft__hook_fd_info *c = weft__hook_fd_at(fd);
	const bool may_connect = __atomic_load_n(&weft__hook_connecting_count, __ATOMIC_RELAXED) > 0;
	weft__hook_fd_may_wait(fd);
	if (c && weft__loop_is_nothing(&c->loop))
		__atomic_store_n(&c->loop.epoch, 0, __ATOMIC_RELAXED);
	if (!c || (!state_of(c) && !c->is_client && !may_connect && !weft__loop_is_known(&c->loop)) || getpid() != owner_pid)
		return;
	if (weft__loop_is_known(&c->loop))
		weft__loop_closes(fd);
	if (may_connect)
		weft__hook_connect_check_end(fd, -1);
	__atomic_store_n(&c->is_client, false, __ATOMIC_RELAXED);
	set_state(c, WEFT__HOOK_FD_UNUSED);
	__atomic_store_n(&c->id, 0, __ATOMIC_RELAXED);
}

void weft__hook_fd_duplicate(int fd, int as)
{
	const struct weft__hook_fd_info *source = weft__hook_fd_find(as), *direct = weft__hook_fd_at(as);
	if (fd == as || fd < 0 || getpid() != owner_pid)
		return;
	weft__hook_fd_reset(fd);
	struct weft__hook_fd_info *c = source ? weft__hook_fd_make(fd) : NULL;
	if (!c)
		return;
	c->epoch = weft__hook_epoch;
	c->first = source == direct ? as : direct->first;
	set_state(c, WEFT__HOOK_FD_DUPLICATE);
}

void weft__hook_fd_reset_range(unsigned first, unsigned last)
{
	for (unsigned fd = first, end = (unsigned)weft__hook_fd_limit(); fd <= last && fd < end; fd++)
		weft__hook_fd_reset((int)fd);
}

void weft__hook_fd_mark_client(int fd)
{
	struct weft__hook_fd_info *c = weft__hook_fd_make(fd);
	if (!c)
		return;
	owner_pid = getpid();
	__atomic_store_n(&c->is_client, true, __ATOMIC_RELAXED);
}

/* ---- Positions in connections ---- */

/* Returns false under seccomp, because a filter may kill the process for an unexpected system call. */
static bool has_no_seccomp(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
}

/* Returns whether the trace can identify the connection.  At the first call, the function records the connection's identity and
 * byte positions; `just_read` bytes of the kernel's count are not recorded yet.  If another thread transfers bytes meanwhile,
 * the byte positions are unknown, and a later call asks the kernel again. */
static bool ensure_identified(struct weft__hook_fd_info *c, int fd, size_t just_read)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	struct weft_positions found = c->positions;
	const fd_state before = state_of(c);
	if (__builtin_expect(before == WEFT__HOOK_FD_IDENTIFIED, 1))
		return true;
	if (before == WEFT__HOOK_FD_IDENTIFYING)
		exchange_state(c, WEFT__HOOK_FD_IDENTIFYING, WEFT__HOOK_FD_RACED);
	if ((before != WEFT__HOOK_FD_UNIDENTIFIED && before != WEFT__HOOK_FD_REATTACHED) ||
	    !exchange_state(c, before, WEFT__HOOK_FD_IDENTIFYING))
		return false;
	const bool is_one = before == WEFT__HOOK_FD_REATTACHED || weft_connection(id, fd, c->is_client, &found);
	/* For TCP the kernel counts all bytes that were read; for other connections this must be the first read. */
	const bool is_counted = before == WEFT__HOOK_FD_UNIDENTIFIED && just_read && found.received >= just_read;
	if (is_one && is_counted)
		found.received -= just_read;
	if (is_one && (is_counted || before == WEFT__HOOK_FD_REATTACHED))
		weft_still_connected(id, fd, &found);
	c->positions = found;
	const fd_state now = is_one                                            ? WEFT__HOOK_FD_IDENTIFIED
			     : has_no_seccomp() && weft_hook_has_datagrams(fd) ? WEFT__HOOK_FD_DATAGRAM
									       : WEFT__HOOK_FD_UNIDENTIFIABLE;
	return (exchange_state(c, WEFT__HOOK_FD_IDENTIFYING, now) ||
		   (exchange_state(c, WEFT__HOOK_FD_RACED, WEFT__HOOK_FD_UNIDENTIFIED), false)) &&
	       is_one;
}

static void record_sent(struct weft__hook_fd_info *c, weft_id id, int64_t bytes)
{
	const uint64_t sent = __atomic_add_fetch(&c->positions.sent, (uint64_t)bytes, __ATOMIC_RELAXED);
	weft_sent(id, sent);
}

void weft_hook_fd_record_write(int fd, weft_id id, size_t bytes)
{
	struct weft__hook_fd_info *c = is_attached_to(fd, id) ? weft__hook_fd_find(fd) : NULL;
	if (c && ensure_identified(c, fd, 0) && bytes > 0)
		record_sent(c, id, (int64_t)bytes);
}

void weft_hook_fd_retract_write(int fd, weft_id id, size_t bytes)
{
	struct weft__hook_fd_info *c = bytes && is_attached_to(fd, id) ? weft__hook_fd_find(fd) : NULL;
	if (c && state_of(c) == WEFT__HOOK_FD_IDENTIFIED)
		record_sent(c, id, -(int64_t)bytes);
}

void weft_hook_fd_still_connected(int fd, weft_id id)
{
	const struct weft__hook_fd_info *c = is_attached_to(fd, id) ? weft__hook_fd_find(fd) : NULL;
	weft__hook_connect_list_pending(fd, id);
	if (c && state_of(c) == WEFT__HOOK_FD_IDENTIFIED)
		weft_still_connected(id, fd, &c->positions);
}

/* Returns whether the memory can be read.  Most lists of pieces are on the stack, and memory in the stack's current page needs
 * no system call. */
static bool is_memory_readable(const void *memory, size_t size)
{
	enum { MIN_PAGE_BYTES = 4096 };
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0) / MIN_PAGE_BYTES, first = (uintptr_t)memory;
	return (first / MIN_PAGE_BYTES == here && (first + size - 1) / MIN_PAGE_BYTES == here) ||
	       weft_hook_is_readable(memory, size);
}

bool weft__hook_count_bytes(const struct iovec *pieces, size_t count, size_t *bytes)
{
	enum { PIECES_PER_CHECK = 256 }; /* at most a page */
	*bytes = 0;
	for (size_t i = 0; i < count && count <= IOV_MAX; i++) {
		const size_t left = count - i;
		if (i % PIECES_PER_CHECK == 0 &&
		    !is_memory_readable(pieces + i, (left < PIECES_PER_CHECK ? left : PIECES_PER_CHECK) * sizeof *pieces))
			return false;
		*bytes += pieces[i].iov_len;
	}
	return count <= IOV_MAX;
}

/* Computes a digest of the readable part of the pieces; the kernel rejects unreadable pieces. */
struct weft_digest weft_hook_digest(const struct iovec *pieces, size_t count)
{
	enum { MAX_DIGEST_BYTES = 64 };
	struct weft_digest digest = {0};
	for (size_t i = 0; i < count; i++) {
		const bool is_digested = pieces[i].iov_len > 0 && digest.bytes < MAX_DIGEST_BYTES;
		const size_t bytes = pieces[i].iov_len < MAX_DIGEST_BYTES ? pieces[i].iov_len : MAX_DIGEST_BYTES;
		if (is_digested && weft_hook_is_readable(pieces[i].iov_base, bytes))
			weft_digest(&digest, pieces[i].iov_base, bytes);
		digest.bytes += is_digested ? pieces[i].iov_len - bytes : pieces[i].iov_len;
	}
	return digest;
}

/* Records a sent datagram.  The sender of the message is the promise of the socket, as for connections; the trace contains the
 * running promise anyway. */
static void record_datagram(weft_id socket, int fd, const struct msghdr *datagram)
{
	const struct sockaddr *to = datagram->msg_name;
	if (to && !is_memory_readable(to, sizeof(struct sockaddr_in6)))
		return;
	const struct weft_digest digest = weft_hook_digest(datagram->msg_iov, datagram->msg_iovlen);
	weft_datagram_sent(socket, fd, to, &digest);
}

size_t weft__hook_fd_before_write(struct weft__hook_fd_info *c, int fd, const struct msghdr *message)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	weft_hook_is_own_write *is_own_write = __atomic_load_n(&c->is_own_write, __ATOMIC_RELAXED);
	const int saved_errno = errno;
	size_t bytes = 0, recorded = 0;
	if ((is_own_write && !is_own_write()) || !weft__hook_count_bytes(message->msg_iov, message->msg_iovlen, &bytes)) {
		recorded = 0;
	} else if (!weft__hook_fd_is_datagram(c) && bytes > 0 && ensure_identified(c, fd, 0)) {
		record_sent(c, id, (int64_t)bytes);
		recorded = bytes;
		/* ensure_identified() may have found out just now that the socket is a datagram socket. */
	} else if (weft__hook_fd_is_datagram(c)) {
		record_datagram(id, fd, message);
	}
	errno = saved_errno;
	return recorded;
}

void weft__hook_fd_short_write(struct weft__hook_fd_info *c, size_t missing)
{
	const int saved_errno = errno;
	record_sent(c, __atomic_load_n(&c->id, __ATOMIC_RELAXED), -(int64_t)missing);
	errno = saved_errno;
}

void weft__hook_fd_after_read(struct weft__hook_fd_info *c, int fd, size_t bytes)
{
	const weft_id id = __atomic_load_n(&c->id, __ATOMIC_RELAXED);
	const int saved_errno = errno;
	if (ensure_identified(c, fd, bytes)) {
		const uint64_t received = __atomic_add_fetch(&c->positions.received, bytes, __ATOMIC_RELAXED);
		if (!c->is_ended)
			weft_received(id, received);
	}
	errno = saved_errno;
}

/* Records a datagram that the kernel has just written to the pieces of `into`.  A truncated datagram cannot be identified. */
void weft__hook_fd_after_datagram(const struct weft__hook_fd_info *c, int fd, const struct msghdr *into, size_t bytes)
{
	const int saved_errno = errno;
	struct weft_digest digest = {0};
	size_t capacity = 0;
	if (__atomic_load_n(&c->is_own_write, __ATOMIC_RELAXED) || (into->msg_flags & MSG_TRUNC))
		return;
	for (size_t i = 0; i < into->msg_iovlen && capacity <= bytes; i++) {
		const size_t left = bytes - capacity, here = into->msg_iov[i].iov_len;
		weft_digest(&digest, into->msg_iov[i].iov_base, here < left ? here : left);
		capacity += here;
	}
	if (capacity > 0 && capacity >= bytes)
		weft_datagram_received(__atomic_load_n(&c->id, __ATOMIC_RELAXED), fd, &digest);
	errno = saved_errno;
}
