/* uv_sendfile_test.c: promises for sending files into sockets and pipes.  SPDX-License-Identifier: ISC */
#include <fcntl.h>

#include "tests/promise/uv_support.h"

#define SIZE (24u << 20) /* more bytes than the kernel takes at once */

static char path[64];
static unsigned char *content;
static struct weft_promise *listener, *near_end, *far_end, *open_file;
static struct weft_uv_stream *to, *from;
static struct weft_uv_file *file;

static int begin_with_file(void **state)
{
	strcpy(path, "/tmp/weft-send-XXXXXX");
	int fd = mkstemp(path);
	content = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		content[i] = (unsigned char)(i * 31 >> 8);
	bool written = write(fd, content, SIZE) == SIZE;
	return close(fd) != 0 || !written;
}

static int end_with_file(void **state)
{
	free(content);
	return unlink(path);
}

static int connect_ends(void **state)
{
	struct sockaddr_in address;
	int bytes = sizeof address;
	begin(state);
	uv_ip4_addr("127.0.0.1", 0, &address);
	listener = weft_uv_tcp_listen(uv, (struct sockaddr *)&address, 1);
	uv_tcp_getsockname((uv_tcp_t *)weft_uv_stream_handle(weft_promise_value(listener)), (struct sockaddr *)&address, &bytes);
	near_end = ended(weft_uv_tcp_connect(uv, (struct sockaddr *)&address), 0);
	far_end = ended(weft_uv_accept(weft_promise_value(listener)), 0);
	open_file = ended(weft_uv_open(uv, path, O_RDONLY, 0), 0);
	to = weft_promise_value(near_end);
	from = weft_promise_value(far_end);
	file = weft_promise_value(open_file);
	return 0;
}

static int disconnect(void **state)
{
	weft_promise_unref(listener);
	weft_promise_unref(near_end);
	weft_promise_unref(far_end);
	weft_promise_unref(open_file);
	return end(state);
}

static void sent(struct weft_promise *p, uint64_t size)
{
	assert_int_equal(*(uint64_t *)weft_promise_value(ended(p, 0)), size);
	weft_promise_unref(p);
}

static void receives(const void *want, size_t size)
{
	for (size_t got = 0; got < size;) {
		struct weft_promise *p = ended(weft_uv_read(from, size - got), 0);
		struct weft_uv_bytes *bytes = weft_promise_value(p);
		assert_true(bytes->size > 0);
		assert_memory_equal(bytes->data, (const char *)want + got, bytes->size);
		got += bytes->size;
		weft_promise_unref(p);
	}
}

static void file_is_sent_between_writes(void **state)
{
	ends(weft_uv_write(to, "head", 4), 0);
	struct weft_promise *p = weft_uv_sendfile(to, file, 0, SIZE);
	ends(weft_uv_write(to, "x", 1), UV_EBUSY);
	ends(weft_uv_sendfile(to, file, 0, 1), UV_EBUSY);
	ends(weft_uv_shutdown(to), UV_EBUSY);
	ends(weft_uv_file_close(file), UV_EBUSY);
	receives("head", 4);
	receives(content, SIZE);
	sent(p, SIZE);
	sent(weft_uv_sendfile(to, file, SIZE - 10, UINT64_MAX), 10);
	sent(weft_uv_sendfile(to, file, SIZE, 10), 0);
	sent(weft_uv_sendfile(to, file, 5, 0), 0);
	ends(weft_uv_write(to, "tail", 4), 0);
	receives(content + SIZE - 10, 10);
	receives("tail", 4);
}

/* The kernel can send some files only through a buffer. */
static void sendfile_sends_a_file_of_proc(void **state)
{
	struct weft_promise *open = ended(weft_uv_open(uv, "/proc/version", O_RDONLY, 0), 0);
	struct weft_promise *read = ended(weft_uv_file_read(weft_promise_value(open), 4096, 0), 0);
	struct weft_uv_bytes *bytes = weft_promise_value(read);
	sent(weft_uv_sendfile(to, weft_promise_value(open), 0, 4096), bytes->size);
	receives(bytes->data, bytes->size);
	weft_promise_unref(open);
	weft_promise_unref(read);
}

static void sendfile_during_a_write_is_refused(void **state)
{
	struct weft_promise *much = weft_uv_write(to, content, SIZE);
	ends(weft_uv_sendfile(to, file, 0, 1), UV_EBUSY);
	receives(content, SIZE);
	ends(much, 0);
	sent(weft_uv_sendfile(to, file, 0, 1), 1);
}

/* Brings a sendfile into a state.  0: not started; 1: the pool has sent a part; more: the sendfile waits for the peer, which
 * reads nothing. */
static void get_along(struct weft_promise *p, int turns)
{
	if (turns == 1)
		uv_run(weft_uv_loop(uv), UV_RUN_ONCE);
	else if (turns > 1)
		assert_int_equal(weft_uv_run(uv, p, (uint64_t)turns * 10), WEFT_EBUSY);
}

/* The sendfile is cancelled, or its stream is closed: before its start, while it is on the pool, and while it waits for the peer.
 */
static void cancel_or_close_ends_a_sendfile_and_closes_its_stream(void **state)
{
	for (int turns = 0; turns < 8; turns++) {
		struct weft_promise *p = weft_uv_sendfile(to, file, 0, SIZE);
		get_along(p, turns % 4);
		if (turns < 4) {
			cancelled(p);
		} else {
			ends(weft_uv_close(to), 0);
			ends(p, UV_ECANCELED);
		}
		ends(weft_uv_write(to, "x", 1), WEFT_PROMISE_CLOSED);
		ends(weft_uv_sendfile(to, file, 0, 1), WEFT_PROMISE_CLOSED);
		disconnect(state);
		connect_ends(state);
	}
}

static void closed_peer_gets_nothing(void **state)
{
	struct weft_promise *p = weft_uv_sendfile(to, file, 0, SIZE);
	ends(weft_uv_close(from), 0);
	weft_uv_run(uv, p, LIMIT_MS);
	assert_int_equal(weft_promise_state(p), WEFT_FAILED);
	int code = weft_promise_failure(p)->code;
	assert_true(code == UV_ECONNRESET || code == UV_EPIPE);
	weft_promise_unref(p);
	ends(weft_uv_file_close(file), 0);
	ends(weft_uv_sendfile(to, file, 0, 1), WEFT_PROMISE_CLOSED);
}

static void destroy_ends_sendfile(void **state)
{
	for (int turns = 0; turns < 4; turns++) {
		struct weft_promise *p = weft_uv_sendfile(to, file, 0, SIZE);
		get_along(p, turns);
		disconnect(state);
		assert_int_equal(weft_promise_state(p), WEFT_PENDING);
		weft_promise_cancel(p);
		weft_promise_unref(p);
		connect_ends(state);
	}
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_the_promise_of_sendfile(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 50; n++) {
		allocations_left = n;
		struct weft_promise *p = weft_uv_sendfile(to, file, 0, 10);
		run_dry();
		allocations_left = -1;
		whole = weft_promise_state(p) == WEFT_RESOLVED;
		if (!whole)
			assert_int_equal(weft_promise_failure(p)->code, WEFT_PROMISE_ENOMEM);
		weft_promise_unref(p);
		weft_promise_trim();
	}
	assert_true(whole && n > 2);
	receives(content, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, connect_ends, disconnect)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(file_is_sent_between_writes),
	    TEST(sendfile_sends_a_file_of_proc),
	    TEST(sendfile_during_a_write_is_refused),
	    TEST(cancel_or_close_ends_a_sendfile_and_closes_its_stream),
	    TEST(closed_peer_gets_nothing),
	    TEST(destroy_ends_sendfile),
	    TEST(failed_allocation_fails_the_promise_of_sendfile),
	};
	return cmocka_run_group_tests(tests, begin_with_file, end_with_file);
}
