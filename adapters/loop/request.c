/* request.c: records connections of loops that belong to no runtime, and the requests on these connections.
 * SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "adapters/hook/address_cache.h"
#include "adapters/hook/callers.h"
#include "adapters/hook/fd_label.h"
#include "adapters/hook/fd_table.h"
#include "adapters/hook/session.h"
#include "adapters/hook/socket.h"
#include "adapters/loop/turn.h"
#include "base/known_strings.h"

/* ---- The state of a descriptor ---- */

struct weft__loop_fd *weft__loop_find(int fd)
{
	struct weft__hook_fd_info *info = weft__hook_fd_find(fd);
	info = info ? info : weft__hook_fd_at(fd);
	return info && weft__loop_is_known(&info->loop) ? &info->loop : NULL;
}

/* Returns whether the descriptor still has the promise that this file made; a runtime may have taken the descriptor over. */
static bool is_ours(int fd, const struct weft__loop_fd *c)
{
	return c->connection && (c->role == WEFT__LOOP_LISTENER || weft_hook_fd_promise(fd) == c->connection);
}

/* ---- Connections ---- */

static __thread char list_key __attribute__((tls_model("initial-exec"))); /* variable whose address identifies this thread */

void weft__loop_begin_entry(struct weft__loop_fd *c, enum weft__loop_role role)
{
	const size_t begin = offsetof(struct weft__loop_fd, role) + sizeof c->role;
	memset((char *)c + begin, 0, sizeof *c - begin);
	c->maker_fd = c->asker_fd = -1;
	__atomic_store_n(&c->role, (uint8_t)role, __ATOMIC_RELAXED);
	__atomic_store_n(&c->epoch, weft__hook_epoch, __ATOMIC_RELEASE);
}

static void set_role(struct weft__loop_fd *c, enum weft__loop_role role)
{
	__atomic_store_n(&c->role, (uint8_t)role, __ATOMIC_RELAXED);
}

static void begin_connection(int fd, struct weft__loop_fd *c, weft_id by, enum weft_kind kind, const void *caller)
{
	c->by = by;
	c->connection = weft_hook_create(by, kind, caller, &c->site);
	c->since = weft__stream->last;
	weft_hook_record_label(&c->label, c->connection);
	weft_hook_stack(c->connection, caller);
	if (kind == WEFT_KIND_CONNECTION)
		weft_hook_fd_attach(fd, c->connection, NULL);
	c->list = &list_key;
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t size = sizeof type;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Finds out the role of a descriptor whose creation was not recorded. */
static void classify(int fd, struct weft__loop_fd *c, const void *caller)
{
	bool has_datagrams = false;
	weft__loop_begin_entry(c, WEFT__LOOP_NOTHING);
	if (!is_stream(fd) || weft_hook_fd_promise(fd))
		return;
	const enum weft_kind kind = weft_hook_append_watched_fd(&c->label, fd, false, &has_datagrams);
	if (kind != WEFT_KIND_LISTEN && kind != WEFT_KIND_CONNECTION)
		return;
	const bool is_from = !strncmp(c->label.text, "from ", 5);
	set_role(c, kind == WEFT_KIND_LISTEN ? WEFT__LOOP_LISTENER : is_from ? WEFT__LOOP_ACCEPTED : WEFT__LOOP_EITHER);
	begin_connection(fd, c, WEFT_SYSTEM_ID, kind, caller);
}

/* Returns the locked state of a descriptor; NULL if the descriptor is not recorded.  The caller releases it. */
static struct weft__loop_fd *know(int fd, const void *caller)
{
	struct weft__hook_fd_info *info = weft__hook_fd_find(fd); /* for a duplicate descriptor: the entry of the original */
	info = info ? info : weft__hook_fd_make(fd);
	struct weft__loop_fd *c = info ? &info->loop : NULL;
	if (!c || weft__loop_is_nothing(c) || !weft__loop_take(c))
		return NULL;
	if (!weft__loop_is_known(c))
		classify(fd, c, caller);
	if (c->role != WEFT__LOOP_NOTHING && is_ours(fd, c))
		return c;
	weft__loop_release(c);
	return NULL;
}

static void know_listener(int fd)
{
	struct weft__loop_fd *c = know(fd, NULL);
	if (c)
		weft__loop_release(c);
}

void weft__loop_find_listeners(void)
{
	struct weft__hook_fd_search search = {0};
	weft__hook_find_listeners(&search, know_listener);
}

void weft__loop_leave_listener(int fd)
{
	struct weft__hook_fd_info *info = weft__hook_fd_make(fd);
	if (!info || !weft__loop_take(&info->loop))
		return;
	if (!weft__loop_is_known(&info->loop))
		weft__loop_begin_entry(&info->loop, WEFT__LOOP_NOTHING);
	weft__loop_release(&info->loop);
}

/* Returns whether the call is of the program, on a thread that this source watches. */
static bool is_watched_call(const void *caller)
{
	if (weft__hook_is_recorder(caller) || weft__hook_is_instrumented ||
	    (weft__hook_get_thread()->wait_owner == WEFT_HOOK_WAIT_OF_NOBODY && weft__hook_is_runtime(caller)))
		return false;
	weft_hook_thread();
	return true;
}

/* Registers this thread's connections for the checkpoints of a ring. */
static void list_talks(void)
{
	static __thread unsigned listed __attribute__((tls_model("initial-exec"))); /* the recording */
	if (listed != weft__hook_epoch)
		weft_hook_register_list(weft__loop_list, &list_key);
	listed = weft__hook_epoch;
}

/* The first thread of a program is excluded, because libraries connect to servers of the desktop there before the loop
 * begins. */
void weft__loop_begin_talk(int fd, const void *caller)
{
	const int saved_errno = errno, flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && !(flags & O_NONBLOCK) && gettid() != getpid() &&
	    weft__hook_get_thread()->wait_owner == WEFT_HOOK_WAIT_OF_NOBODY && !weft__hook_is_runtime(caller) &&
	    is_watched_call(caller) && is_stream(fd)) {
		__atomic_store_n(&weft__loop_epoch, weft__hook_epoch, __ATOMIC_RELAXED);
		list_talks();
	}
	errno = saved_errno;
}

static weft_id get_running(void)
{
	return weft_hook_thread()->running;
}

void weft__loop_accepted(int listener, int fd, const void *caller)
{
	const int saved_errno = errno;
	struct weft__hook_fd_info *info = weft__hook_fd_make(fd);
	if (!info || !is_watched_call(caller) || !is_stream(fd))
		goto out;
	struct weft__loop_fd *from = know(listener, caller);
	const weft_id by = from ? from->connection : get_running();
	if (from && weft__loop_is_late())
		weft_signal_only(WEFT_SYSTEM_ID, from->connection);
	if (from)
		weft__loop_release(from);
	if (weft__loop_take(&info->loop)) {
		bool has_datagrams;
		struct weft__loop_fd *c = &info->loop;
		struct weft_hook_label peer = {0};
		weft__loop_begin_entry(c, WEFT__LOOP_ACCEPTED);
		weft_hook_append_watched_fd(&peer, fd, true, &has_datagrams);
		weft_hook_append(&c->label, "from ");
		weft_hook_append(&c->label, peer.text);
		begin_connection(fd, c, by, WEFT_KIND_CONNECTION, caller);
		weft__loop_release(c);
	}
out:
	errno = saved_errno;
}

void weft__loop_accept_failed(int listener, const void *caller)
{
	const int saved_errno = errno;
	struct weft__loop_fd *from = is_watched_call(caller) ? know(listener, caller) : NULL;
	if (from) {
		const uint32_t count = ++from->failed_accepts;
		if ((count & (count - 1)) == 0)
			WEFT_NOTE(from->connection, WEFT_STRING_NO_DESCRIPTORS);
		weft__loop_release(from);
	}
	errno = saved_errno;
}

void weft__loop_connects(int fd, const struct sockaddr *to, socklen_t size, const void *caller)
{
	const int saved_errno = errno;
	struct weft__hook_fd_info *info = weft__hook_fd_make(fd);
	struct sockaddr_storage address = {0};
	if (!info || !is_watched_call(caller) || weft_hook_fd_promise(fd) || !is_stream(fd) ||
	    !weft_hook_is_readable(to, sizeof to->sa_family))
		goto out;
	if ((to->sa_family != AF_INET && to->sa_family != AF_INET6 && to->sa_family != AF_UNIX) || !weft__loop_take(&info->loop))
		goto out;
	struct weft__loop_fd *c = &info->loop;
	memcpy(&address, to, size < sizeof address ? size : sizeof address);
	weft__loop_begin_entry(c, WEFT__LOOP_CONNECTED);
	weft_hook_append(&c->label, "to ");
	weft_hook_append_address(&c->label, (const struct sockaddr *)&address);
	c->maker_fd = weft__loop_running_fd();
	c->maker = get_running();
	begin_connection(fd, c, c->maker, WEFT_KIND_CONNECTION, caller);
	weft__loop_release(c);
out:
	errno = saved_errno;
}

/* ---- Requests ---- */

static void begin_request(
    struct weft__loop_fd *c, const struct weft_question *question, weft_id by, bool is_asker, const void *caller)
{
	weft__loop_begin_promise();
	c->asker_fd = is_asker ? weft__loop_running_fd() : -1;
	c->written = c->answerer = 0;
	c->request.name = (struct weft_hook_label){0};
	weft_hook_append(&c->request.name, question->name);
	weft__hook_request_set_place(&c->request, caller);
	weft__hook_request_begin(&c->request, by, is_asker ? by : 0, is_asker ? c->connection : 0, question->must_answer);
	weft_hook_stack(c->request.id, caller);
	if (question->count > 1) {
		struct weft_hook_label note = {0};
		weft_hook_append_number(&note, question->count);
		weft_hook_append(&note, " questions came at once");
		weft_note(c->request.id, note.text);
	}
}

/* Notes that this thread is about to write the answer.  A worker thread that runs no other promise has worked for the request
 * itself, since a loop on another thread gave it the request. */
static void note_answerer(struct weft__loop_fd *c)
{
	const struct weft_hook_thread *thread = weft_hook_thread();
	c->written = c->request.id;
	c->answerer = thread->running == thread->root ? thread->root : 0;
}

/* Returns the promise that ends the request by its answer. */
static weft_id find_answerer(const struct weft__loop_fd *c)
{
	return c->request.asker ? WEFT_SYSTEM_ID : c->answerer ? c->answerer : c->request.id;
}

/* Ends the request of the connection, if there is one.  `error` says why the request has no answer; NULL if it has an answer. */
static void end_request(int fd, struct weft__loop_fd *c, struct weft_record_text *error)
{
	const weft_id request = c->request.id;
	if (!request)
		return;
	weft__loop_dequeue(fd);
	weft__hook_request_end(&c->request, error ? get_running() : find_answerer(c), error);
	if (weft__hook_get_thread()->running == request)
		weft__loop_run(0, -1);
}

/* Returns whether the program has answered the open request of the other end, and has written the whole answer. */
static bool is_answered(const struct weft__loop_fd *c)
{
	return c->request.id && !c->request.asker && !c->request.is_unanswered && !c->is_cut;
}

void weft__loop_end_answered(int fd)
{
	struct weft__loop_fd *c = weft__loop_find(fd);
	if (!weft__loop_take(c))
		return;
	c->is_used = false;
	if (is_answered(c))
		end_request(fd, c, NULL);
	weft__loop_release(c);
}

/* Returns the first piece of the message that is not empty. */
static struct iovec get_first_piece(const struct msghdr *message, size_t bytes)
{
	for (size_t i = 0; i < message->msg_iovlen; i++) {
		const struct iovec *piece = &message->msg_iov[i];
		if (piece->iov_len > 0)
			return (struct iovec){piece->iov_base, piece->iov_len < bytes ? piece->iov_len : bytes};
	}
	return (struct iovec){0};
}

/* The first bytes on a connection that is older than the recording may be an answer, so an unknown protocol is guessed again
 * later. */
static void forget_protocol(struct weft__loop_fd *c)
{
	if (c->protocol.protocol == WEFT_PROTOCOL_OTHER)
		c->protocol = (struct weft_protocol_state){0};
}

static void handle_question(int fd, struct weft__loop_fd *c, struct iovec piece, const void *caller)
{
	struct weft_question question;
	if (weft_protocol_question(&c->protocol, piece.iov_base, piece.iov_len, false, &question)) {
		if (c->role == WEFT__LOOP_EITHER)
			set_role(c, WEFT__LOOP_ACCEPTED);
		if (weft__loop_is_late())
			weft_signal_only(WEFT_SYSTEM_ID, c->connection);
		end_request(fd, c, NULL); /* the program has read the next question of a pipeline */
		begin_request(c, &question, c->connection, false, caller);
		weft__hook_request_note_parent(&c->request, &c->protocol, piece.iov_base, piece.iov_len);
		weft__loop_enqueue(fd);
	} else if (c->role == WEFT__LOOP_EITHER) {
		forget_protocol(c);
	} else if (is_answered(c)) {
		end_request(fd, c, NULL); /* the client sent a farewell, which is no question */
	}
	weft__loop_run(c->request.id ? c->request.id : c->connection, fd);
}

/* Ends the request by its answer.  The promise that asked then runs, unless it has ended, or it asked on another thread. */
static void handle_answer(int fd, struct weft__loop_fd *c, struct iovec piece)
{
	const weft_id asker = c->request.asker;
	const struct weft__loop_fd *from = c->asker_fd >= 0 ? weft__loop_find(c->asker_fd) : NULL;
	weft__hook_request_note_answer(&c->request, &c->protocol, piece.iov_base, piece.iov_len);
	if (c->request.is_unanswered)
		return;
	const bool continues = from ? from->request.id == asker : asker == weft_hook_thread()->root;
	if (continues) {
		weft__hook_request_deliver(&c->request, weft__loop_continue(asker, c->asker_fd) ? asker : 0);
		return;
	}
	end_request(fd, c, NULL);
	weft__loop_run(c->connection, fd);
}

void weft__loop_before_read(int fd, const void *caller)
{
	const int saved_errno = errno;
	struct weft__loop_fd *c = is_watched_call(caller) ? know(fd, caller) : NULL;
	if (c)
		weft__loop_release(c);
	errno = saved_errno;
}

void weft__loop_after_read(int fd, const struct msghdr *message, ssize_t result, const void *caller)
{
	const int saved_errno = errno;
	fd = weft__hook_fd_original(fd);
	struct weft__loop_fd *c = result >= 0 && is_watched_call(caller) ? know(fd, caller) : NULL;
	if (!c)
		goto out;
	const struct iovec piece = get_first_piece(message, (size_t)result);
	if (result == 0) {
		c->is_at_end = message->msg_iovlen > 0 && message->msg_iov[0].iov_len > 0;
		if (is_answered(c))
			end_request(fd, c, NULL);
	} else if (piece.iov_len > 0 && c->request.id && c->request.asker)
		handle_answer(fd, c, piece);
	else if (piece.iov_len > 0 && (c->role == WEFT__LOOP_ACCEPTED || c->role == WEFT__LOOP_EITHER))
		handle_question(fd, c, piece, caller);
	else if (c->role != WEFT__LOOP_LISTENER)
		weft__loop_run(c->connection, fd);
	weft__loop_release(c);
out:
	errno = saved_errno;
}

/* Returns the promise that asks: if a descriptor was connected for a request and is written to later, that request asks.
 */
static weft_id find_asker(const struct weft__loop_fd *c)
{
	const struct weft__loop_fd *maker = c->maker_fd >= 0 ? weft__loop_find(c->maker_fd) : NULL;
	const struct weft_hook_thread *thread = weft_hook_thread();
	const bool is_known = weft__loop_running_fd() >= 0 && thread->running != c->connection;
	if (!is_known && maker && maker->request.id && maker->request.id == c->maker) {
		weft__loop_run(c->maker, c->maker_fd);
		return c->maker;
	}
	return thread->running != c->connection ? thread->running : thread->root;
}

/* Notes the first bytes of an answer that the kernel has taken. */
static void note_answer(struct weft__loop_fd *c, const struct msghdr *message, size_t bytes)
{
	const struct iovec piece = get_first_piece(message, bytes);
	weft__hook_request_note_answer(&c->request, &c->protocol, piece.iov_base, piece.iov_len);
}

/* Returns the first bytes, at most a page, that the program is about to write; none if they cannot be read. */
static struct iovec get_readable_piece(const struct msghdr *message)
{
	enum { PAGE_BYTES = 4096, MAX_PIECES = 8 };
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0) / PAGE_BYTES;
	struct msghdr first = {
	    .msg_iov = message->msg_iov, .msg_iovlen = message->msg_iovlen < MAX_PIECES ? message->msg_iovlen : MAX_PIECES};
	const size_t bytes = first.msg_iovlen * sizeof *first.msg_iov;
	const uintptr_t begin = (uintptr_t)first.msg_iov, end = begin + bytes - 1;
	/* The message's list must be readable, unless it is this library's own list for a call with one piece. */
	if (bytes == 0 ||
	    ((begin / PAGE_BYTES != here || end / PAGE_BYTES != here) && !weft_hook_is_readable(first.msg_iov, bytes)))
		return (struct iovec){0};
	const struct iovec piece = get_first_piece(&first, PAGE_BYTES);
	return piece.iov_base && weft_hook_is_readable(piece.iov_base, piece.iov_len) ? piece : (struct iovec){0};
}

void weft__loop_before_write(int fd, const struct msghdr *message, const void *caller)
{
	const int saved_errno = errno;
	fd = weft__hook_fd_original(fd);
	struct weft__loop_fd *c = is_watched_call(caller) ? know(fd, caller) : NULL;
	struct weft_question question;
	if (!c)
		goto out;
	if (c->request.id && !c->request.asker) {
		note_answerer(c);
		weft__loop_claim(c->request.id, fd);
	} else if (!c->request.id && (c->role == WEFT__LOOP_CONNECTED || c->role == WEFT__LOOP_EITHER)) {
		const struct iovec piece = get_readable_piece(message);
		if (piece.iov_len > 0 && weft_protocol_question(&c->protocol, piece.iov_base, piece.iov_len, false, &question)) {
			set_role(c, WEFT__LOOP_CONNECTED);
			begin_request(c, &question, find_asker(c), true, caller);
		} else if (c->role == WEFT__LOOP_EITHER) {
			forget_protocol(c);
		}
	}
	weft__loop_release(c);
out:
	errno = saved_errno;
}

void weft__loop_after_write(int fd, const struct msghdr *message, size_t bytes, ssize_t result)
{
	const int saved_errno = errno;
	fd = weft__hook_fd_original(fd);
	struct weft__loop_fd *c = weft__loop_find(fd);
	if (!c || !c->connection || !c->request.id || c->request.asker || !weft__loop_take(c))
		return;
	/* Meanwhile another thread may have read the next request: the bytes do not answer that one. */
	const bool is_answer = c->request.id && !c->request.asker && c->request.id == c->written;
	if (is_answer && c->request.is_unanswered && result > 0)
		note_answer(c, message, (size_t)result);
	if (is_answer && !c->request.is_unanswered) {
		c->is_cut = result < 0 || (size_t)result < bytes;
		if (!c->is_cut)
			weft__loop_dequeue(fd);
		if (!c->is_used && weft__loop_use(fd))
			c->is_used = true;
		else if (!c->is_used && !c->is_cut) /* the request ends now, because no iteration of a loop will end it */
			end_request(fd, c, NULL);
	}
	weft__loop_release(c);
	errno = saved_errno;
}

void weft__loop_closes(int fd)
{
	const int saved_errno = errno;
	struct weft__loop_fd *c = weft__loop_find(fd);
	if (!weft__loop_take(c))
		return;
	if (c->connection) {
		weft_hook_thread();
		end_request(fd, c, weft__hook_request_get_loss(&c->request, c->request.asker != 0, c->is_at_end));
		weft_resolve(get_running(), c->connection);
		if (weft__hook_get_thread()->running == c->connection)
			weft__loop_run(0, -1);
	}
	c->connection = 0;
	__atomic_store_n(&c->epoch, 0, __ATOMIC_RELEASE);
	weft__loop_release(c);
	errno = saved_errno;
}

/* ---- Checkpoints of a ring ---- */

uint64_t weft__loop_list(void *data, uint64_t cursor, unsigned budget)
{
	int fd = (int)cursor;
	const int limit = weft__hook_fd_limit();
	(void)data;
	for (; fd < limit && budget > 0; fd++) {
		struct weft__loop_fd *c = weft__loop_find(fd);
		if (!c || !c->connection || c->list != &list_key || !weft__loop_take(c))
			continue;
		budget--;
		weft_pending_at(c->by, c->connection, c->role == WEFT__LOOP_LISTENER ? WEFT_KIND_LISTEN : WEFT_KIND_CONNECTION,
		    c->site, c->since, c->label.text);
		weft_hook_fd_still_connected(fd, c->connection);
		if (c->request.id)
			weft__hook_request_repeat(&c->request, c->request.asker ? c->connection : 0);
		weft__loop_release(c);
	}
	return fd < limit ? (uint64_t)fd : 0;
}
