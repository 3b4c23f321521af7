/* transfer_test.c: a read is matched with the right write.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "model/live_state.h"
#include "model/model.h"

static _Alignas(8) unsigned char buffer[1 << 20];
static uint64_t now, seed;

static uint64_t tick(void)
{
	return ++now;
}

static uint64_t between(uint64_t least, uint64_t most)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return least + (z ^ (z >> 31)) % (most - least + 1);
}

static int begin(void **state)
{
	const struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = tick, .clock_hz = 1000000000};
	now = 1000;
	return weft_start(&options);
}

static weft_id connection(const char *own, const char *peer, uint64_t sent, uint64_t received)
{
	char text[100];
	weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, NULL);
	snprintf(text, sizeof text, "tcp %s %s %" PRIu64, own, peer, received);
	weft__slow_detail(id, WEFT_DETAIL_CONNECTION, (int64_t)sent, text);
	return id;
}

static struct weft_trace *trace;
static struct weft_model *model;

static void read_back(void)
{
	weft_stop();
	assert_int_equal(weft_trace_open_memory(&trace, buffer, sizeof buffer, "it", NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, NULL), WEFT_OK);
}

static void forget(void)
{
	weft_model_destroy(model);
	weft_trace_close(trace);
}

static weft_id id_of(uint32_t promise)
{
	return model->promises[promise].id;
}

/* Random writes and reads, with partial writes and positions beyond 2^32; the test knows the writer of each byte. */
static void read_matches_the_last_write_of_its_bytes(void **state)
{
	enum { BYTES = 40000, READS = 400 };
	static struct {
		weft_id by;
		int64_t ns;
	} truth[BYTES + 1];
	static struct {
		weft_id by;
		int64_t sent_ns, received_ns;
	} expected[READS];
	for (int round = 1; round < 30; round++) {
		seed = (uint64_t)round;
		const uint64_t base = between(0, 1) ? 0 : UINT32_MAX - between(0, BYTES);
		uint64_t written = 0, got = 0;
		size_t reads = 0;
		weft_id a = connection("1.1.1.1:1", "2.2.2.2:2", base, 0), b = connection("2.2.2.2:2", "1.1.1.1:1", 0, base);
		const uint64_t start = now - 3; /* time of the first event */
		while (reads < READS && written < BYTES) {
			weft_id by = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, NULL);
			uint64_t bytes = between(1, 300), taken = between(0, 3) ? bytes : between(0, bytes);
			bytes = written + bytes > BYTES ? BYTES - written : bytes;
			taken = taken < bytes ? taken : bytes;
			weft_run(by);
			weft_sent(a, base + written + bytes);
			for (uint64_t i = written; i < written + taken; i++) {
				truth[i].by = by;
				truth[i].ns = (int64_t)(now - start);
			}
			if (taken < bytes)
				weft_sent(a, base + written + taken);
			written += taken;
			weft_run(WEFT_SYSTEM_ID);
			while (got < written && between(0, 2) && reads < READS) {
				got += between(1, written - got);
				weft_received(b, base + got);
				expected[reads].by = truth[got - 1].by;
				expected[reads].sent_ns = truth[got - 1].ns;
				expected[reads++].received_ns = (int64_t)(now - start);
			}
		}
		read_back();
		assert_int_equal(model->transfer_count, reads);
		for (size_t i = 0; i < reads; i++) {
			const struct weft_transfer *t = &model->transfers[i];
			assert_int_equal(id_of(t->by), expected[i].by);
			assert_int_equal(id_of(t->from), a);
			assert_int_equal(id_of(t->to), b);
			assert_int_equal(t->received_ns, expected[i].received_ns);
			assert_int_equal(t->sent_ns, expected[i].sent_ns);
		}
		forget();
		assert_int_equal(begin(state), WEFT_OK);
	}
	weft_stop();
}

/* A second connection has the same two addresses, while the first one still has unread bytes. */
static void reused_addresses_are_another_connection(void **state)
{
	weft_id first = connection("1.1.1.1:1", "2.2.2.2:2", 0, 0), reads = connection("2.2.2.2:2", "1.1.1.1:1", 0, 0);
	weft_sent(first, 10);
	weft_received(reads, 4);
	weft_id second = connection("1.1.1.1:1", "2.2.2.2:2", 0, 0);
	weft_sent(second, 3);
	weft_received(reads, 10);
	weft_id reads_second = connection("2.2.2.2:2", "1.1.1.1:1", 0, 0);
	weft_received(reads_second, 3);
	read_back();
	assert_int_equal(model->transfer_count, 3);
	const weft_id from[] = {first, first, second}, to[] = {reads, reads, reads_second};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(id_of(model->transfers[i].from), from[i]);
		assert_int_equal(id_of(model->transfers[i].to), to[i]);
	}
	forget();
}

/* A program that starts to watch a file descriptor for each read has a promise for each watch; all of these are one connection.
 */
static void several_promises_of_one_socket_are_one_connection(void **state)
{
	weft_id writes = connection("1.1.1.1:1", "2.2.2.2:2", 0, 0), reads[4];
	for (int i = 0; i < 4; i++) {
		reads[i] = connection("2.2.2.2:2", "1.1.1.1:1", 0, (uint64_t)(i * 10));
		weft_sent(writes, (uint64_t)(i * 10 + 10));
		weft_received(reads[i], (uint64_t)(i * 10 + 10));
		weft_resolve(WEFT_SYSTEM_ID, reads[i]);
		if (i == 1)
			writes = connection("1.1.1.1:1", "2.2.2.2:2", 20, 0);
	}
	read_back();
	assert_int_equal(model->transfer_count, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(id_of(model->transfers[i].to), reads[i]);
	assert_int_equal(model->end_count, 2);
	forget();
}

/* Reads with unknown addresses, positions that jump, or an invalid text have no match. */
static void inconsistent_transfers_are_not_matched(void **state)
{
	weft_id a = connection("1.1.1.1:1", "2.2.2.2:2", 0, 0), b = connection("2.2.2.2:2", "1.1.1.1:9", 0, 0);
	weft_sent(a, 10);
	weft_received(b, 10);
	weft_id c = connection("2.2.2.2:2", "1.1.1.1:1", 0, 0);
	weft_received(c, 5000);
	weft_received(c, 4000);
	weft_sent(77, 5);
	weft_received(78, 5);
	weft__slow_detail(79, WEFT_DETAIL_CONNECTION, 0, "tcp  1.1.1.1:1 5");
	weft__slow_detail(80, WEFT_DETAIL_CONNECTION, INT64_MIN, "tcp 1.1.1.1:1 2.2.2.2:2 x");
	read_back();
	assert_int_equal(model->transfer_count, 0);
	forget();
}

/* Matches are right in a copy of the end of a trace or in the window of a follower, whose first positions are not 0. */
static void checkpoint_has_the_byte_positions_of_each_connection(void **state)
{
	enum { MOST = 100 };
	for (int round = 1; round <= 20; round++) {
		seed = (uint64_t)round;
		const uint64_t base = between(0, 1) ? 0 : UINT32_MAX - between(0, 2000);
		weft_id a = connection("1.1.1.1:1", "2.2.2.2:2", base, 7), b = connection("2.2.2.2:2", "1.1.1.1:1", 7, base);
		const int steps = (int)between(0, MOST), later = (int)between(1, MOST);
		uint64_t sent = base, received = base, expected_sent = base, expected_received = base, from = 0;
		for (int i = 0; i < steps + later; i++) {
			if (i == steps) {
				expected_sent = sent;
				expected_received = received;
				from = now + 1;
			}
			if (between(0, 1))
				weft_sent(a, sent += between(1, 300));
			else
				weft_received(b, received += between(0, sent - received));
		}
		weft_stop();
		assert_int_equal(weft_trace_open_memory(&trace, buffer, sizeof buffer, "it", NULL), WEFT_OK);
		struct weft_checkpoint told;
		assert_int_equal(weft_checkpoint_before(&told, trace, (int64_t)from), WEFT_OK);
		unsigned ends = 0;
		for (size_t i = 0; i < told.events.count; i++) {
			const struct weft_event *e = &told.events.items[i];
			char text[100];
			if (e->op != WEFT_OP_DETAIL)
				continue;
			snprintf(text, sizeof text,
			    e->a == a ? "tcp 1.1.1.1:1 2.2.2.2:2 %" PRIu64 : "tcp 2.2.2.2:2 1.1.1.1:1 %" PRIu64,
			    e->a == a ? 7 : expected_received);
			assert_int_equal(e->value, e->a == a ? expected_sent : 7);
			assert_int_equal(e->text.len, strlen(text));
			assert_memory_equal(e->text.ptr, text, e->text.len);
			assert_true(e->a == a || e->a == b);
			ends++;
		}
		assert_int_equal(ends, 2);
		weft_checkpoint_free(&told);
		weft_trace_close(trace);
		assert_int_equal(begin(state), WEFT_OK);
	}
	weft_stop();
}

static void datagram(weft_id promise, const char *to, int64_t digest)
{
	weft__slow_detail(promise, WEFT_DETAIL_DATAGRAM, digest, to);
}

/* A repeated datagram counts from its last send.  A receiver for all addresses of a port gets the datagrams to each of them, and
 * no others. */
static void datagram_matches_the_newest_send(void **state)
{
	weft_id p[7];
	for (int i = 0; i < 7; i++)
		p[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, NULL);
	datagram(p[0], "1.1.1.1:53", 7);
	datagram(p[1], "2.2.2.2:53", 7);
	datagram(p[2], "1.1.1.1:53", -7);
	datagram(p[3], "*:53", -7);
	datagram(p[4], "1.1.1.1:53", 7);
	datagram(p[5], "1.1.1.1:53", -7);
	datagram(p[6], "1.1.1.1:153", -7);
	datagram(p[6], "*:3", -7);
	datagram(p[6], "*:", -7);
	datagram(p[6], "1.1.1.1:53", -8);
	datagram(p[6], "1.1.1.1:53", INT64_MIN);
	datagram(p[6], "1.1.1.1:53", INT64_MAX);
	datagram(p[6], "", -INT64_MAX);
	read_back();
	assert_int_equal(model->transfer_count, 3);
	const weft_id from[] = {p[0], p[1], p[4]}, to[] = {p[2], p[3], p[5]};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(id_of(model->transfers[i].from), from[i]);
		assert_int_equal(id_of(model->transfers[i].to), to[i]);
		assert_true(model->transfers[i].sent_ns < model->transfers[i].received_ns);
	}
	forget();
}

/* These sockets belong to one process, so their datagrams are no requests to another process. */
static void datagrams_within_one_process_are_no_requests(void **state)
{
	weft_id sockets[2];
	for (int i = 0; i < 2; i++)
		sockets[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, NULL);
	datagram(sockets[0], "1.1.1.1:53", 7);
	datagram(sockets[1], "*:53", -7);
	datagram(sockets[1], "1.1.1.2:4711", 8);
	datagram(sockets[0], "*:4711", -8);
	datagram(sockets[0], "1.1.1.1:53", 9);
	read_back();
	assert_int_equal(model->transfer_count, 2);
	assert_int_equal(model->request_count, 0);
	assert_int_equal(model->end_count, 0);
	forget();
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(read_matches_the_last_write_of_its_bytes),
	    TEST(reused_addresses_are_another_connection),
	    TEST(several_promises_of_one_socket_are_one_connection),
	    TEST(inconsistent_transfers_are_not_matched),
	    TEST(checkpoint_has_the_byte_positions_of_each_connection),
	    TEST(datagram_matches_the_newest_send),
	    TEST(datagrams_within_one_process_are_no_requests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
