/* uv_stream_test.c: promises for TCP connections and pipes, on real sockets.  SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/uv.h>

#include "tests/allocations.h"

#define LIMIT_MS 20000

/* A listener and both ends of a connection to it. */
struct pair {
	struct weft_uv *uv;
	struct weft_promise *listener, *near, *far;
	struct sockaddr_in address;
};

static int code_of(const struct weft_promise *p)
{
	assert_int_equal(weft_promise_state(p), WEFT_FAILED);
	return weft_promise_failure(p)->code;
}

static struct sockaddr_in any_port(void)
{
	struct sockaddr_in address;
	assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
	return address;
}

static void listen_on_any(struct pair *pair)
{
	int bytes = sizeof pair->address;
	struct sockaddr_in any = any_port();
	pair->uv = weft_uv_create(NULL);
	pair->listener = weft_uv_tcp_listen(pair->uv, (struct sockaddr *)&any, 8);
	assert_int_equal(weft_promise_state(pair->listener), WEFT_RESOLVED);
	uv_tcp_t *tcp = (uv_tcp_t *)weft_uv_stream_handle(weft_promise_value(pair->listener));
	assert_int_equal(uv_tcp_getsockname(tcp, (struct sockaddr *)&pair->address, &bytes), 0);
}

static void open_pair(struct pair *pair)
{
	listen_on_any(pair);
	pair->near = weft_uv_tcp_connect(pair->uv, (struct sockaddr *)&pair->address);
	pair->far = weft_uv_accept(weft_promise_value(pair->listener));
	assert_int_equal(weft_uv_run(pair->uv, pair->near, LIMIT_MS), WEFT_OK);
	assert_int_equal(weft_uv_run(pair->uv, pair->far, LIMIT_MS), WEFT_OK);
	assert_int_equal(weft_promise_state(pair->near), WEFT_RESOLVED);
	assert_int_equal(weft_promise_state(pair->far), WEFT_RESOLVED);
}

static void close_pair(struct pair *pair)
{
	weft_promise_unref(pair->listener);
	weft_promise_unref(pair->near);
	weft_promise_unref(pair->far);
	weft_uv_destroy(pair->uv);
}

/* Runs the loop until p ends, and checks the status. */
static void ends(struct pair *pair, struct weft_promise *p, int code)
{
	assert_int_equal(weft_uv_run(pair->uv, p, LIMIT_MS), WEFT_OK);
	if (code == 0)
		assert_int_equal(weft_promise_state(p), WEFT_RESOLVED);
	else
		assert_int_equal(code_of(p), code);
	weft_promise_unref(p);
}

static void reads(struct pair *pair, struct weft_promise *p, const char *want)
{
	assert_int_equal(weft_uv_run(pair->uv, p, LIMIT_MS), WEFT_OK);
	struct weft_uv_bytes *got = weft_promise_value(p);
	assert_non_null(got);
	assert_int_equal(got->size, strlen(want));
	assert_memory_equal(got->data, want, got->size);
	weft_promise_unref(p);
}

static void stream_read_returns_the_written_bytes(void **state)
{
	struct pair pair;
	open_pair(&pair);
	struct weft_uv_stream *near = weft_promise_value(pair.near), *far = weft_promise_value(pair.far);
	struct weft_promise *read = weft_uv_read(far, 100), *second = weft_uv_read(far, 100);
	ends(&pair, second, UV_EBUSY);
	ends(&pair, weft_uv_read(near, 0), UV_EINVAL);
	ends(&pair, weft_uv_write(near, "ping", 4), 0);
	reads(&pair, read, "ping");
	ends(&pair, weft_uv_write(near, "", 0), 0);
	/* Input without a reader is kept, and is delivered in pieces of the requested size. */
	ends(&pair, weft_uv_write_owned(far, strdup("pong"), 4, free), 0);
	for (int i = 0; i < 5; i++)
		uv_run(weft_uv_loop(pair.uv), UV_RUN_NOWAIT);
	reads(&pair, weft_uv_read(near, 3), "pon");
	for (int i = 0; i < 5; i++)
		uv_run(weft_uv_loop(pair.uv), UV_RUN_NOWAIT);
	reads(&pair, weft_uv_read(near, 3), "g");
	/* A cancelled read loses no bytes. */
	read = weft_uv_read(near, 100);
	weft_promise_cancel(read);
	ends(&pair, read, WEFT_PROMISE_CANCELLED);
	ends(&pair, weft_uv_write(far, "more", 4), 0);
	reads(&pair, weft_uv_read(near, 100), "more");
	/* The end of file is delivered to every read. */
	ends(&pair, weft_uv_shutdown(far), 0);
	reads(&pair, weft_uv_read(near, 100), "");
	reads(&pair, weft_uv_read(near, 100), "");
	close_pair(&pair);
}

static void close_ends_pending_operations(void **state)
{
	struct pair pair;
	open_pair(&pair);
	struct weft_uv_stream *near = weft_promise_value(pair.near), *listener = weft_promise_value(pair.listener);
	struct weft_promise *read = weft_uv_read(near, 1), *accept = weft_uv_accept(listener);
	struct weft_promise *closed = weft_uv_close(near);
	ends(&pair, weft_uv_close(near), 0);
	ends(&pair, weft_uv_read(near, 1), WEFT_PROMISE_CLOSED);
	ends(&pair, weft_uv_write(near, "x", 1), WEFT_PROMISE_CLOSED);
	ends(&pair, weft_uv_write_owned(near, strdup("x"), 1, free), WEFT_PROMISE_CLOSED);
	ends(&pair, weft_uv_shutdown(near), WEFT_PROMISE_CLOSED);
	ends(&pair, closed, 0);
	ends(&pair, read, UV_ECANCELED);
	ends(&pair, weft_uv_close(listener), 0);
	ends(&pair, accept, UV_ECANCELED);
	reads(&pair, weft_uv_read(weft_promise_value(pair.far), 1), "");
	close_pair(&pair);
}

/* Writes more bytes than the kernel takes at once. */
#define MUCH (32u << 20)

static void large_writes_keep_their_order(void **state)
{
	struct pair pair;
	open_pair(&pair);
	struct weft_uv_stream *near = weft_promise_value(pair.near), *far = weft_promise_value(pair.far);
	unsigned char *much = malloc(MUCH);
	for (size_t i = 0; i < MUCH; i++)
		much[i] = (unsigned char)(i * 31 >> 8);
	struct weft_promise *first = weft_uv_write(near, much, MUCH), *last = weft_uv_write(near, "last", 4);
	assert_int_equal(weft_promise_state(first), WEFT_PENDING);
	assert_int_equal(weft_promise_state(last), WEFT_PENDING);
	struct weft_promise *shut = weft_uv_shutdown(near);
	size_t got = 0;
	for (;;) {
		struct weft_promise *p = weft_uv_read(far, 1 << 20);
		assert_int_equal(weft_uv_run(pair.uv, p, LIMIT_MS), WEFT_OK);
		struct weft_uv_bytes *bytes = weft_promise_value(p);
		assert_non_null(bytes);
		size_t size = bytes->size, whole = size < MUCH - got ? size : MUCH - got;
		assert_memory_equal(bytes->data, much + got, whole);
		got += size;
		weft_promise_unref(p);
		if (size == 0)
			break;
	}
	assert_int_equal(got, MUCH + 4);
	ends(&pair, first, 0);
	ends(&pair, last, 0);
	ends(&pair, shut, 0);
	free(much);
	close_pair(&pair);
}

static int freed;

static void count_and_free(void *bytes)
{
	freed++;
	free(bytes);
}

static void cancelled_write_closes_the_stream(void **state)
{
	struct pair pair;
	open_pair(&pair);
	struct weft_uv_stream *near = weft_promise_value(pair.near);
	struct weft_promise *write = weft_uv_write_owned(near, calloc(1, MUCH), MUCH, count_and_free);
	freed = 0;
	assert_int_equal(weft_promise_state(write), WEFT_PENDING);
	weft_promise_cancel(write);
	ends(&pair, write, WEFT_PROMISE_CANCELLED);
	ends(&pair, weft_uv_read(near, 1), WEFT_PROMISE_CLOSED);
	close_pair(&pair);
	assert_int_equal(freed, 1);
}

static void connect_can_fail_or_be_cancelled(void **state)
{
	struct pair pair;
	listen_on_any(&pair);
	/* The kernel may have made the connection when the connect is cancelled; weft closes this connection. */
	struct weft_promise *connect = weft_uv_tcp_connect(pair.uv, (struct sockaddr *)&pair.address);
	weft_promise_cancel(connect);
	ends(&pair, connect, WEFT_PROMISE_CANCELLED);
	ends(&pair, weft_uv_close(weft_promise_value(pair.listener)), 0);
	ends(&pair, weft_uv_accept(weft_promise_value(pair.listener)), WEFT_PROMISE_CLOSED);
	ends(&pair, weft_uv_tcp_connect(pair.uv, (struct sockaddr *)&pair.address), UV_ECONNREFUSED);
	ends(&pair, weft_uv_pipe_connect(pair.uv, "/nowhere/at/all"), UV_ENOENT);
	ends(&pair, weft_uv_pipe_listen(pair.uv, "/nowhere/at/all", 1), UV_EACCES);
	struct sockaddr_in any = any_port();
	any.sin_addr.s_addr = htonl(0x08080808); /* an address that no interface of this machine has */
	ends(&pair, weft_uv_tcp_listen(pair.uv, (struct sockaddr *)&any, 1), UV_EADDRNOTAVAIL);
	weft_promise_unref(pair.listener);
	weft_uv_destroy(pair.uv);
}

static void connections_queue_until_accepted(void **state)
{
	struct pair pair;
	struct weft_promise *near[3], *far[3];
	listen_on_any(&pair);
	struct weft_uv_stream *listener = weft_promise_value(pair.listener);
	struct weft_promise *cancelled = weft_uv_accept(listener);
	ends(&pair, weft_uv_accept(listener), UV_EBUSY);
	weft_promise_cancel(cancelled);
	ends(&pair, cancelled, WEFT_PROMISE_CANCELLED);
	for (int i = 0; i < 3; i++) {
		near[i] = weft_uv_tcp_connect(pair.uv, (struct sockaddr *)&pair.address);
		assert_int_equal(weft_uv_run(pair.uv, near[i], LIMIT_MS), WEFT_OK);
		ends(&pair, weft_uv_write(weft_promise_value(near[i]), &"abc"[i], 1), 0);
	}
	for (int i = 0; i < 3; i++) {
		far[i] = weft_uv_accept(listener);
		assert_int_equal(weft_uv_run(pair.uv, far[i], LIMIT_MS), WEFT_OK);
		reads(&pair, weft_uv_read(weft_promise_value(far[i]), 9), (const char *[]){"a", "b", "c"}[i]);
	}
	for (int i = 0; i < 3; i++) {
		weft_promise_unref(near[i]);
		weft_promise_unref(far[i]);
	}
	weft_promise_unref(pair.listener);
	weft_uv_destroy(pair.uv);
}

static void pipe_read_returns_the_written_bytes(void **state)
{
	char path[] = "/tmp/weft-pipe-XXXXXX";
	assert_non_null(mkdtemp(path));
	char name[sizeof path + 8];
	snprintf(name, sizeof name, "%s/pipe", path);
	struct pair pair = {.uv = weft_uv_create(NULL)};
	pair.listener = weft_uv_pipe_listen(pair.uv, name, 1);
	pair.near = weft_uv_pipe_connect(pair.uv, name);
	pair.far = weft_uv_accept(weft_promise_value(pair.listener));
	assert_int_equal(weft_uv_run(pair.uv, pair.near, LIMIT_MS), WEFT_OK);
	assert_int_equal(weft_uv_run(pair.uv, pair.far, LIMIT_MS), WEFT_OK);
	ends(&pair, weft_uv_write(weft_promise_value(pair.near), "hi", 2), 0);
	reads(&pair, weft_uv_read(weft_promise_value(pair.far), 9), "hi");
	close_pair(&pair);
	rmdir(path);
}

/* A connection without a pending operation does not keep the loop running: the loop ends although a promise is pending. */
static void idle_streams_do_not_keep_the_loop_alive(void **state)
{
	struct pair pair;
	struct weft_resolver *resolver;
	open_pair(&pair);
	struct weft_promise *never = weft_promise_wait(&resolver);
	assert_int_equal(weft_uv_run(pair.uv, never, LIMIT_MS), WEFT_ENOTFOUND);
	struct weft_promise *read = weft_uv_read(weft_promise_value(pair.near), 1);
	assert_int_equal(weft_uv_run(pair.uv, never, 1), WEFT_EBUSY);
	weft_promise_cancel(read);
	weft_promise_unref(read);
	assert_int_equal(weft_uv_run(pair.uv, never, LIMIT_MS), WEFT_ENOTFOUND);
	weft_promise_unref(never);
	weft_resolver_drop(resolver);
	close_pair(&pair);
}

static void destroy_ends_all_operations(void **state)
{
	struct pair pair;
	open_pair(&pair);
	struct weft_uv_stream *near = weft_uv_stream_ref(weft_promise_value(pair.near));
	struct weft_promise *pending[] = {
	    weft_uv_read(near, 1),
	    weft_uv_accept(weft_promise_value(pair.listener)),
	    weft_uv_write_owned(near, calloc(1, MUCH), MUCH, free),
	    weft_uv_shutdown(near),
	    weft_uv_tcp_connect(pair.uv, (struct sockaddr *)&pair.address),
	    weft_uv_close(weft_promise_value(pair.far)),
	};
	close_pair(&pair);
	for (size_t i = 0; i < sizeof pending / sizeof *pending; i++) {
		assert_int_equal(weft_promise_state(pending[i]), WEFT_PENDING);
		weft_promise_cancel(pending[i]);
		weft_promise_unref(pending[i]);
	}
	struct weft_promise *late = weft_uv_read(near, 1);
	assert_int_equal(code_of(late), WEFT_PROMISE_CLOSED);
	weft_promise_unref(late);
	weft_uv_stream_unref(near);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_promises_of_streams(void **state)
{
	bool whole = false;
	for (long n = 0; !whole && n < 200; n++) {
		struct pair pair;
		open_pair(&pair);
		allocations_left = n;
		struct weft_uv_stream *near = weft_promise_value(pair.near), *far = weft_promise_value(pair.far);
		struct weft_promise *all[] = {
		    weft_uv_accept(weft_promise_value(pair.listener)),
		    weft_uv_tcp_connect(pair.uv, (struct sockaddr *)&pair.address),
		    weft_uv_read(far, 10),
		    weft_uv_write(near, "0123456789", 10),
		    weft_uv_shutdown(near),
		    weft_uv_close(weft_promise_value(pair.far)),
		};
		size_t resolved = 0;
		for (int i = 0; i < 100 && uv_run(weft_uv_loop(pair.uv), UV_RUN_NOWAIT); i++)
			;
		allocations_left = -1;
		for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
			resolved += weft_promise_state(all[i]) == WEFT_RESOLVED;
			weft_promise_unref(all[i]);
		}
		whole = resolved >= 4; /* the close ends the read */
		close_pair(&pair);
		weft_promise_trim();
	}
	assert_true(whole);
}

static int free_memory(void **state)
{
	weft_promise_trim();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(stream_read_returns_the_written_bytes),
	    cmocka_unit_test(close_ends_pending_operations),
	    cmocka_unit_test(large_writes_keep_their_order),
	    cmocka_unit_test(cancelled_write_closes_the_stream),
	    cmocka_unit_test(connect_can_fail_or_be_cancelled),
	    cmocka_unit_test(connections_queue_until_accepted),
	    cmocka_unit_test(pipe_read_returns_the_written_bytes),
	    cmocka_unit_test(idle_streams_do_not_keep_the_loop_alive),
	    cmocka_unit_test(destroy_ends_all_operations),
	    cmocka_unit_test(failed_allocation_fails_promises_of_streams),
	};
	return cmocka_run_group_tests(tests, NULL, free_memory);
}
