/* connection_test.c: the details that the recorder stores about real sockets and pipes.  SPDX-License-Identifier: ISC */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "trace/trace.h"

static _Alignas(8) unsigned char buffer[1 << 17];
static char told[2][256]; /* texts recorded for promises 1 and 2 */
static int64_t sent[2];

static int start(void **state)
{
	const struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer};
	memset(told, 0, sizeof told);
	return weft_start(&options);
}

static void read_back(void)
{
	struct weft_trace *trace = NULL;
	const struct weft_event *e;
	size_t count;
	weft_stop();
	assert_int_equal(weft_trace_open_memory(&trace, buffer, sizeof buffer, "it", NULL), WEFT_OK);
	while (weft_trace_next(trace, &e, &count) == 1)
		for (size_t i = 0; i < count; i++)
			if (e[i].op == WEFT_OP_DETAIL &&
			    (e[i].kind == WEFT_DETAIL_CONNECTION || e[i].kind == WEFT_DETAIL_DATAGRAM)) {
				snprintf(told[e[i].a - 1], sizeof told[0], "%.*s", (int)e[i].text.len, e[i].text.ptr);
				sent[e[i].a - 1] = e[i].value;
			}
	weft_trace_close(trace);
}

/* Checks that the texts of both ends, "PROTOCOL OWN PEER RECEIVED", have the same addresses in opposite order. */
static void assert_mirrored(const char *protocol)
{
	char word[2][4][100];
	for (int i = 0; i < 2; i++)
		assert_int_equal(sscanf(told[i], "%99s %99s %99s %99s", word[i][0], word[i][1], word[i][2], word[i][3]), 4);
	assert_string_equal(word[0][0], protocol);
	assert_string_equal(word[1][0], protocol);
	assert_string_equal(word[0][1], word[1][2]);
	assert_string_equal(word[0][2], word[1][1]);
	assert_string_not_equal(word[0][1], word[0][2]);
}

static void wait_for_input(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&poll_fd, 1, 60000), 1);
}

static void put(int fd, size_t bytes)
{
	char zeros[4096] = {0};
	assert_int_equal(write(fd, zeros, bytes), bytes);
}

static void get(int fd, size_t bytes)
{
	char some[4096];
	for (size_t got = 0; got < bytes;) {
		ssize_t n = read(fd, some, bytes - got < sizeof some ? bytes - got : sizeof some);
		assert_true(n > 0);
		got += (size_t)n;
	}
}

/* Connects a listener and a client of a family on this machine. */
static void connect_both(int family, int *asks, int *answers)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};
	if (family == AF_INET)
		at.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = family == AF_INET ? sizeof at.v4 : sizeof at.v6;
	int listens = socket(family, SOCK_STREAM, 0);
	if (listens < 0 || bind(listens, &at.any, size))
		skip(); /* this machine lacks the address family */
	assert_int_equal(listen(listens, 1), 0);
	assert_int_equal(getsockname(listens, &at.any, &size), 0);
	*asks = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(*asks, &at.any, size), 0);
	*answers = accept(listens, NULL, NULL);
	assert_true(*answers >= 0);
	close(listens);
}

static void tcp_of(int family)
{
	struct weft_positions first = {.sent = 7}, second = {.received = 7};
	int asks, answers;
	connect_both(family, &asks, &answers);
	/* No byte has been transferred. */
	assert_true(weft_connection(1, asks, true, &first) && weft_connection(2, answers, false, &second));
	assert_true(!first.sent && !first.received && !second.sent && !second.received);
	/* One end has written and closed; the other end has read a part of the bytes. */
	put(asks, 1000);
	shutdown(asks, SHUT_WR);
	wait_for_input(answers);
	get(answers, 300);
	put(answers, 1);
	wait_for_input(asks);
	assert_true(weft_connection(1, asks, true, &first) && weft_connection(2, answers, false, &second));
	read_back();
	assert_mirrored("tcp");
	assert_int_equal(second.received, 300);
	assert_int_equal(second.sent, 1);
	assert_int_equal(first.received, 0);
	assert_in_range(first.sent, 1000, 1001); /* the end of file may count as one byte, because no byte follows it */
	assert_int_equal(sent[1], 1);
	assert_string_equal(strrchr(told[1], ' '), " 300");
	close(asks);
	close(answers);
}

static void tcp_positions_come_from_the_kernel(void **state)
{
	tcp_of(AF_INET);
}

static void ipv6_positions_come_from_the_kernel(void **state)
{
	tcp_of(AF_INET6);
}

static void bytes_queued_in_the_kernel_count_as_sent(void **state)
{
	struct weft_positions first = {0}, second = {0};
	int asks, answers;
	char zeros[1 << 16] = {0};
	uint64_t written = 0;
	connect_both(AF_INET, &asks, &answers);
	fcntl(asks, F_SETFL, O_NONBLOCK);
	for (ssize_t n; (n = write(asks, zeros, sizeof zeros)) > 0;)
		written += (uint64_t)n;
	get(answers, 5000);
	assert_true(weft_connection(1, asks, true, &first) && weft_connection(2, answers, false, &second));
	assert_int_equal(first.sent, written);
	assert_int_equal(second.received, 5000);
	weft_stop();
	close(asks);
	close(answers);
}

static void unix_socket_and_pipe_ends_are_matched_by_inodes(void **state)
{
	struct weft_positions at[2];
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	if (!weft_connection(1, fds[0], true, &at[0])) {
		weft_stop();
		skip(); /* a kernel that does not report the peer of a socket */
	}
	assert_true(weft_connection(2, fds[1], false, &at[1]));
	read_back();
	assert_mirrored("unix");
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(start(state), WEFT_OK);
	assert_int_equal(pipe(fds), 0);
	assert_true(weft_connection(1, fds[0], false, &at[0]) && weft_connection(2, fds[1], false, &at[1]));
	read_back();
	assert_mirrored("pipe");
	close(fds[0]);
	close(fds[1]);
}

static void known_byte_positions_are_recorded_again(void **state)
{
	struct weft_positions at;
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	assert_true(weft_connection(1, fds[0], false, &at));
	at = (struct weft_positions){.sent = 5, .received = 6000000000};
	weft_still_connected(1, fds[0], &at);
	read_back();
	assert_int_equal(sent[0], 5);
	assert_string_equal(strrchr(told[0], ' '), " 6000000000");
	close(fds[0]);
	close(fds[1]);
}

static void descriptor_without_a_connection_is_not_recorded(void **state)
{
	struct weft_positions at = {.sent = 1, .received = 2};
	int file = open("/dev/null", O_RDWR), alone = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	const int fds[] = {file, alone, datagrams, -1};
	errno = EXDEV;
	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		assert_false(weft_connection(1, fds[i], false, &at));
	assert_int_equal(errno, EXDEV);
	assert_true(at.sent == 1 && at.received == 2);
	read_back();
	assert_string_equal(told[0], "");
	assert_false(weft_connection(1, file, false, &at));
	close(file);
	close(alone);
	close(datagrams);
}

static struct weft_digest digest_of(const char *bytes, size_t first_piece)
{
	struct weft_digest digest = {0};
	weft_digest(&digest, bytes, first_piece);
	weft_digest(&digest, bytes + first_piece, strlen(bytes) - first_piece);
	return digest;
}

/* Two sockets: one has a peer, the other receives datagrams for any address of its port. */
static void both_ends_record_the_same_datagram(void **state)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
	} at = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}},
	  anywhere = {.v4 = {.sin_family = AF_INET}};
	socklen_t size = sizeof at.v4;
	int takes = socket(AF_INET, SOCK_DGRAM, 0), sends = socket(AF_INET, SOCK_DGRAM, 0), all = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(takes, &at.any, size) | bind(all, &anywhere.any, size) | getsockname(takes, &at.any, &size), 0);
	assert_int_equal(connect(sends, &at.any, size), 0);
	struct weft_digest one = digest_of("a question", 0), other = digest_of("a question", 3);
	char own[32];
	errno = EXDEV;
	weft_datagram_sent(1, sends, NULL, &one);
	weft_datagram_received(2, takes, &other);
	assert_int_equal(errno, EXDEV);
	read_back();
	snprintf(own, sizeof own, "127.0.0.1:%u", ntohs(at.v4.sin_port));
	assert_string_equal(told[0], own);
	assert_string_equal(told[1], own);
	assert_true(sent[0] > 0 && sent[1] == -sent[0]);
	const int64_t before = sent[0];
	start(state);
	assert_int_equal(getsockname(all, &anywhere.any, &size), 0);
	one = digest_of("A question", 1);
	weft_datagram_sent(1, -1, &at.any, &one);
	weft_datagram_received(2, all, &one);
	read_back();
	assert_string_equal(told[0], own);
	snprintf(own, sizeof own, "*:%u", ntohs(anywhere.v4.sin_port));
	assert_string_equal(told[1], own);
	assert_true(sent[0] != before && sent[1] == -sent[0]);
	start(state);
	weft_datagram_received(1, -1, &one); /* an empty datagram is not recorded */
	weft_datagram_sent(2, all, NULL, &one);
	read_back();
	assert_string_equal(told[0], "");
	assert_string_equal(told[1], "");
	close(takes);
	close(sends);
	close(all);
}

#define TEST(f) cmocka_unit_test_setup(f, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(tcp_positions_come_from_the_kernel),
	    TEST(ipv6_positions_come_from_the_kernel),
	    TEST(bytes_queued_in_the_kernel_count_as_sent),
	    TEST(unix_socket_and_pipe_ends_are_matched_by_inodes),
	    TEST(known_byte_positions_are_recorded_again),
	    TEST(descriptor_without_a_connection_is_not_recorded),
	    TEST(both_ends_record_the_same_datagram),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
