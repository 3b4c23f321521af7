/* uv_udp_test.c: promises for datagrams, on real sockets.  SPDX-License-Identifier: ISC */
#include "tests/promise/uv_support.h"

static struct weft_promise *here_p, *there_p;
static struct weft_uv_udp *here, *there;
static struct sockaddr_in here_address, there_address;

static struct weft_promise *opened(struct sockaddr_in *address)
{
	int bytes = sizeof *address;
	uv_ip4_addr("127.0.0.1", 0, address);
	struct weft_promise *p = weft_uv_udp_open(uv, (struct sockaddr *)address);
	assert_int_equal(weft_promise_state(p), WEFT_RESOLVED);
	uv_udp_getsockname(weft_uv_udp_handle(weft_promise_value(p)), (struct sockaddr *)address, &bytes);
	return p;
}

static int open_both(void **state)
{
	begin(state);
	here = weft_promise_value(here_p = opened(&here_address));
	there = weft_promise_value(there_p = opened(&there_address));
	return 0;
}

static int close_both(void **state)
{
	weft_promise_unref(here_p);
	weft_promise_unref(there_p);
	return end(state);
}

static void receives(struct weft_promise *p, const char *want, bool cut, uint16_t port)
{
	struct weft_uv_datagram *got = weft_promise_value(ended(p, 0));
	assert_int_equal(got->size, strlen(want));
	assert_memory_equal(got->data, want, got->size);
	assert_int_equal(got->cut, cut);
	assert_int_equal(((struct sockaddr_in *)&got->from)->sin_port, port);
	weft_promise_unref(p);
}

#define SEND(from, text, to) weft_uv_udp_send(from, text, strlen(text), (struct sockaddr *)&(to))

static void datagram_read_returns_the_sent_bytes(void **state)
{
	struct weft_promise *p = weft_uv_udp_receive(there, 100);
	ends(weft_uv_udp_receive(there, 100), UV_EBUSY);
	ends(weft_uv_udp_receive(there, 0), UV_EINVAL);
	ends(SEND(here, "ping", there_address), 0);
	receives(p, "ping", false, here_address.sin_port);
	ends(SEND(there, "pong", here_address), 0);
	receives(weft_uv_udp_receive(here, 3), "pon", true, there_address.sin_port);
	ends(weft_uv_udp_send(there, NULL, 0, (struct sockaddr *)&here_address), 0);
	receives(weft_uv_udp_receive(here, 3), "", false, there_address.sin_port);
}

static void datagrams_queue_until_received(void **state)
{
	cancelled(weft_uv_udp_receive(there, 100));
	ends(SEND(here, "one", there_address), 0);
	ends(SEND(here, "two", there_address), 0);
	for (int i = 0; i < 5; i++)
		uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT);
	receives(weft_uv_udp_receive(there, 100), "one", false, here_address.sin_port);
	for (int i = 0; i < 5; i++)
		uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT);
	receives(weft_uv_udp_receive(there, 100), "two", false, here_address.sin_port);
}

static void failed_socket_call_has_the_error_of_the_system(void **state)
{
	ends(weft_uv_udp_open(uv, (struct sockaddr *)&here_address), UV_EADDRINUSE);
	ends(weft_uv_udp_send(here, "x", 1, NULL), UV_EDESTADDRREQ);
	char *much = calloc(1, 100000);
	ends(weft_uv_udp_send(here, much, 100000, (struct sockaddr *)&there_address), UV_EMSGSIZE);
	free(much);
	/* The first send binds an unbound socket. */
	struct weft_promise *p = ended(weft_uv_udp_open(uv, NULL), 0);
	ends(SEND(weft_promise_value(p), "hello", there_address), 0);
	struct weft_promise *got = ended(weft_uv_udp_receive(there, 9), 0);
	weft_promise_unref(got);
	weft_promise_unref(p);
}

static void close_ends_pending_operations(void **state)
{
	struct weft_promise *p = weft_uv_udp_receive(here, 1), *closed = weft_uv_udp_close(here);
	ends(weft_uv_udp_close(here), 0);
	ends(weft_uv_udp_receive(here, 1), WEFT_PROMISE_CLOSED);
	ends(SEND(here, "x", there_address), WEFT_PROMISE_CLOSED);
	ends(closed, 0);
	ends(p, UV_ECANCELED);
}

static void destroy_ends_all_operations(void **state)
{
	struct weft_promise *p = weft_uv_udp_receive(here, 1);
	struct weft_uv_udp *kept = weft_uv_udp_ref(here);
	close_both(state);
	assert_int_equal(weft_promise_state(p), WEFT_PENDING);
	weft_promise_cancel(p);
	weft_promise_unref(p);
	open_both(state);
	ends(weft_uv_udp_receive(kept, 1), WEFT_PROMISE_CLOSED);
	weft_uv_udp_unref(kept);
}

/* Allocation n and all later ones fail. */
static void failed_allocation_fails_promises_of_datagrams(void **state)
{
	bool whole = false;
	long n = 0;
	for (; !whole && n < 50; n++) {
		open_both(state);
		allocations_left = n;
		struct weft_promise *all[] = {
		    weft_uv_udp_open(uv, NULL),
		    SEND(here, "abc", there_address),
		    weft_uv_udp_receive(there, 10),
		};
		uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT);
		uv_run(weft_uv_loop(uv), UV_RUN_NOWAIT);
		allocations_left = -1;
		whole = true;
		for (size_t i = 0; i < 3; i++) {
			whole &= weft_promise_state(all[i]) == WEFT_RESOLVED;
			weft_promise_unref(all[i]);
		}
		close_both(state);
	}
	assert_true(whole && n > 4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(datagram_read_returns_the_sent_bytes),
	    TEST(datagrams_queue_until_received),
	    TEST(failed_socket_call_has_the_error_of_the_system),
	    TEST(close_ends_pending_operations),
	    TEST(destroy_ends_all_operations),
	    cmocka_unit_test(failed_allocation_fails_promises_of_datagrams),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
