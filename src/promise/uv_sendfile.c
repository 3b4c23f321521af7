/* uv_sendfile.c: sends a part of a file into a stream, inside of the kernel.
 *
 * A job on the thread pool reads the disk and sends as many bytes as the stream takes.  Until the stream takes more, the loop
 * polls a duplicate of the descriptor, because libuv watches each descriptor only once.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/sendfile.h>
#endif

#define CHUNK_BYTES (4u << 20) /* number of bytes that one job sends, so that other jobs of the pool run in between */

struct sending {
	struct weft__uv_object object;
	uv_work_t request;
	ssize_t result; /* result of the request: number of bytes, or -errno */
	uv_poll_t poll;
	bool on_pool, polls, ended;
	int out, in;
	struct weft_uv_stream *stream; /* borrowed */
	struct weft_uv_file *file;     /* in use */
	struct weft_resolver *resolver;
	int64_t offset;
	uint64_t left;
	uint64_t *sent;
};

static void free_sending(struct sending *sending)
{
	close(sending->out);
	weft__uv_object_closed(&sending->object);
	free(sending);
}

static void on_poll_closed(uv_handle_t *handle)
{
	free_sending(handle->data);
}

/* Ends the sendfile when none of its jobs runs on the pool. */
static void finish_sendfile(struct sending *sending, int status)
{
	struct weft_uv *uv = sending->object.uv;
	struct weft_resolver *resolver = sending->resolver;
	uint64_t *sent = sending->sent;
	/* The stream is kept alive, because the woken promise often uses it next. */
	struct weft_uv_stream *s = weft_uv_stream_ref(sending->stream);
	weft__uv_object_unlist(&sending->object);
	weft__file_release(sending->file);
	weft__stream_give_back(sending->stream);
	if (sending->polls)
		uv_close((uv_handle_t *)&sending->poll, on_poll_closed);
	else
		free_sending(sending);
	weft__uv_wakeup(uv, resolver, status, sent, free);
	weft_uv_stream_unref(s);
}

/* Handles the closing of the stream, because the sendfile was cancelled, the stream was closed, or weft_uv_destroy() was
 * called. */
static void on_stream_closed(void *ctx)
{
	struct sending *sending = ctx;
	if (sending->ended)
		return;
	sending->ended = true;
	if (sending->on_pool)
		uv_cancel((uv_req_t *)&sending->request);
	else
		finish_sendfile(sending, UV_ECANCELED);
}

static void close_stream(void *ctx)
{
	weft__handle_close(((struct sending *)ctx)->stream);
}

static void end_sending(struct weft__uv_object *object)
{
	weft__uv_object_unlist(object);
	close_stream(object);
}

static void send_chunk(struct sending *sending);

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct sending *sending = poll->data;
	uv_poll_stop(poll);
	send_chunk(sending); /* after an error, the next try finds the same error */
}

static void wait_until_writable(struct sending *sending)
{
	int status = sending->polls ? 0 : uv_poll_init(sending->object.uv->loop, &sending->poll, sending->out);
	if (status == 0) {
		sending->polls = true;
		sending->poll.data = sending;
		status = uv_poll_start(&sending->poll, UV_WRITABLE, on_writable);
	}
	if (status < 0)
		finish_sendfile(sending, status);
}

/* Copies bytes of a file for which sendfile(2) is refused. */
static ssize_t copy_chunk(int out, int in, int64_t offset, size_t size)
{
	char bytes[16384];
	ssize_t got = pread(in, bytes, size < sizeof bytes ? size : sizeof bytes, (off_t)offset);
	return got > 0 ? write(out, bytes, (size_t)got) : got;
}

/* Returns the number of bytes for one job; the file may end earlier. */
static size_t next_chunk_bytes(const struct sending *sending)
{
	return sending->left < CHUNK_BYTES ? (size_t)sending->left : CHUNK_BYTES;
}

/* Sends bytes on a thread of the pool. uv_fs_sendfile() is not used, because it would block the thread until the peer reads. */
static void do_send(uv_work_t *request)
{
	struct sending *sending = request->data;
	const size_t size = next_chunk_bytes(sending);
	ssize_t sent = -1;
	errno = EINVAL;
#ifdef __linux__
	off_t offset = (off_t)sending->offset;
	sent = sendfile(sending->out, sending->in, &offset, size);
#endif
	if (sent < 0 && (errno == EINVAL || errno == ENOSYS))
		sent = copy_chunk(sending->out, sending->in, sending->offset, size);
	sending->result = sent < 0 ? -errno : sent;
}

static void on_sent(uv_work_t *request, int status)
{
	struct sending *sending = request->data;
	ssize_t size = status < 0 ? status : sending->result;
	sending->on_pool = false;
	weft__stream_note_write(sending->stream, (size > 0 ? size : 0) - (int64_t)next_chunk_bytes(sending));
	if (size > 0) {
		*sending->sent += (uint64_t)size;
		sending->offset += size;
		sending->left -= (uint64_t)size;
	}
	if (sending->ended)
		finish_sendfile(sending, UV_ECANCELED);
	else if (size == -EAGAIN || size == -EINTR || (size > 0 && sending->left > 0))
		wait_until_writable(sending);
	else
		finish_sendfile(sending, size < 0 ? uv_translate_sys_error((int)-size) : 0);
}

static void send_chunk(struct sending *sending)
{
	sending->on_pool = true;
	weft__stream_note_write(sending->stream, (int64_t)next_chunk_bytes(sending));
	/* uv_queue_work() fails only if do_send is NULL. */
	uv_queue_work(sending->object.uv->loop, &sending->request, do_send, on_sent);
}

/* Borrows the file and the stream for this sendfile, and returns a status. */
static int borrow_stream_and_file(struct sending *sending, struct weft_uv **uv)
{
	int status;
	uv_os_fd_t fd = -1;
	*uv = weft__stream_lend(sending->stream, on_stream_closed, sending, &status);
	if (!*uv)
		return status;
	sending->in = weft__file_use(sending->file);
	if (sending->in < 0) {
		weft__stream_give_back(sending->stream);
		return WEFT_PROMISE_CLOSED;
	}
	status = uv_fileno((uv_handle_t *)weft_uv_stream_handle(sending->stream), &fd);
	if (status == 0 && (sending->out = fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		return 0;
	status = status < 0 ? status : uv_translate_sys_error(errno);
	weft__file_release(sending->file);
	weft__stream_give_back(sending->stream);
	return status;
}

struct weft_promise *weft__uv_sendfile(
    struct weft_record_site *site, struct weft_uv_stream *s, struct weft_uv_file *file, int64_t offset, uint64_t most_bytes)
{
	struct weft_uv *uv = NULL;
	struct sending *sending = calloc(1, sizeof *sending);
	uint64_t *sent = calloc(1, sizeof *sent);
	int status = WEFT_PROMISE_ENOMEM;
	if (sending && sent) {
		sending->stream = s;
		sending->file = file;
		status = borrow_stream_and_file(sending, &uv);
	}
	if (status < 0) {
		free(sending);
		free(sent);
		return weft__uv_failed(status);
	}
	struct weft_promise *p =
	    weft__uv_promise(site, WEFT_KIND_STREAM_WRITE, "sendfile", close_stream, sending, &sending->resolver);
	sending->request.data = sending;
	sending->sent = sent;
	sending->offset = offset;
	sending->left = most_bytes;
	weft__uv_object_add(uv, &sending->object, end_sending);
	if (sending->resolver)
		send_chunk(sending);
	else
		finish_sendfile(sending, WEFT_PROMISE_ENOMEM);
	return p;
}
