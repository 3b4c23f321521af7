/* protocol_test.c: requests have the right names, whether they are read whole or in pieces, and no secret is in a name.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/protocol.h"

#define BYTES(text) text, sizeof(text) - 1
#define EXAMPLE(text) .bytes = (text), .count = sizeof(text) - 1
#define HTTP " HTTP/1.1\r\nHost: a\r\n\r\n"

static const struct example {
	const char *bytes;
	size_t count;
	const char *name; /* NULL if the bytes are no request */
	unsigned questions;
	bool may_stay_unanswered;
	bool only_whole; /* only tested whole, because the first piece would give another protocol or a shorter name */
} examples[] = {
    {EXAMPLE("GET /" HTTP), .name = "GET /", .questions = 1},
    {EXAMPLE("GET /slow?token=secret" HTTP), .name = "GET /slow", .questions = 1},
    {EXAMPLE("POST /a/b;jsessionid=secret" HTTP), .name = "POST /a/b", .questions = 1},
    {EXAMPLE("GET /a#secret" HTTP), .name = "GET /a", .questions = 1},
    {EXAMPLE("GET /orders/4711/items" HTTP), .name = "GET /orders/:id/items", .questions = 1},
    {EXAMPLE("GET /u/123e4567-e89b-12d3-a456-426614174000" HTTP), .name = "GET /u/:id", .questions = 1},
    {EXAMPLE("GET /blob/0123456789abcdef" HTTP), .name = "GET /blob/:id", .questions = 1},
    {EXAMPLE("GET /reset/a8Kd93jdSDk20xkSldkQ1z" HTTP), .name = "GET /reset/:id", .questions = 1},
    {EXAMPLE("GET /v1/decade/facade" HTTP), .name = "GET /v1/decade/facade", .questions = 1},
    {EXAMPLE("GET http://user:secret@host/path" HTTP), .name = "GET /path", .questions = 1},
    {EXAMPLE("CONNECT host.example:443" HTTP), .name = "CONNECT host.example:443", .questions = 1},
    {EXAMPLE("OPTIONS *" HTTP), .name = "OPTIONS *", .questions = 1},
    {EXAMPLE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
    {EXAMPLE("GET /a b c\r\n")},
    {EXAMPLE("*1\r\n$4\r\nPING\r\n"), .name = "PING", .questions = 1},
    {EXAMPLE("*2\r\n$3\r\nget\r\n$6\r\nsecret\r\n"), .name = "GET", .questions = 1},
    {EXAMPLE("*3\r\n$3\r\nSET\r\n$6\r\nsecret\r\n$6\r\nsecret\r\n*2\r\n$4\r\nINCR\r\n$6\r\nsecret\r\n*1\r\n$4\r\nPING\r\n"),
	.name = "SET", .questions = 3, .only_whole = true},
    {EXAMPLE("*3\r\n$5\r\nDEBUG\r\n$5\r\nSLEEP\r\n$3\r\n0.3\r\n"), .name = "DEBUG SLEEP", .questions = 1},
    {EXAMPLE("*3\r\n$4\r\nEVAL\r\n$13\r\nreturn secret\r\n$1\r\n0\r\n"), .name = "EVAL", .questions = 1},
    {EXAMPLE("*2\r\n$9\r\nSUBSCRIBE\r\n$6\r\nsecret\r\n"), .name = "SUBSCRIBE", .questions = 1, .may_stay_unanswered = true},
    {EXAMPLE("*2\r\n$8\r\nSHUTDOWN\r\n$6\r\nNOSAVE\r\n"), .name = "SHUTDOWN", .questions = 1, .may_stay_unanswered = true},
    {EXAMPLE("*1\r\n$99999999999\r\n")},
    {EXAMPLE("*1\r\n$6\r\nse ret\r\n")},
    {EXAMPLE("get secret\r\n"), .name = "get", .questions = 1},
    {EXAMPLE("set secret 0 0 6\r\nsecret\r\n"), .name = "set", .questions = 1},
    {EXAMPLE("set secret 0 0 6 noreply\r\nsecret\r\n"), .name = "set", .questions = 1, .may_stay_unanswered = true,
	.only_whole = true},
    {EXAMPLE("secret\r\n")},
    {EXAMPLE("PASS secret\r\n"), .name = "PASS", .questions = 1, .may_stay_unanswered = true},
    {EXAMPLE("mail from:<secret>\r\n"), .name = "MAIL", .questions = 1, .may_stay_unanswered = true},
    {EXAMPLE("SECRET\r\n")},
    {EXAMPLE("\0\0\0\x10\0\x03\0\0user\0secret"), .name = "startup", .questions = 1},
    {EXAMPLE("\0\0\0\x08\x04\xd2\x16\x2f"), .name = "encryption request", .questions = 1},
    {EXAMPLE("Q\0\0\0\x14select secret\0\0"), .name = NULL},
    {EXAMPLE("Q\0\0\0\x12select secret\0"), .name = "SELECT", .questions = 1, .only_whole = true},
    {EXAMPLE("\x16\x03\x01\x02\x00\x01")},
};

static bool ask(struct weft_protocol_state *state, const char *bytes, size_t count, struct weft_question *question)
{
	/* the copy is on the heap and has exactly this size, so that a sanitizer reports a read beyond its end */
	char *copy = malloc(count ? count : 1);
	assert_non_null(copy);
	memcpy(copy, bytes, count);
	const bool is = weft_protocol_question(state, copy, count, false, question);
	free(copy);
	return is;
}

static void requests_have_names(void **test)
{
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		const struct example *e = &examples[i];
		struct weft_protocol_state state = {0};
		struct weft_question question = {0};
		print_message("%zu: %.*s\n", i, (int)strcspn(e->bytes, "\r"), e->bytes);
		assert_int_equal(ask(&state, e->bytes, e->count, &question), e->name != NULL);
		if (!e->name)
			continue;
		assert_string_equal(question.name, e->name);
		assert_int_equal(question.count, e->questions);
		assert_int_equal(question.must_answer, !e->may_stay_unanswered);
	}
}

/* A program may read its input byte by byte. */
static void test_request_read_in_pieces_has_the_same_name(void **test)
{
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		for (size_t first = 1; first < examples[i].count && !examples[i].only_whole; first++) {
			const struct example *e = &examples[i];
			struct weft_protocol_state state = {0};
			struct weft_question question = {0};
			unsigned found = 0;
			char name[WEFT_QUESTION_BYTES] = "";
			for (size_t at = 0; at < e->count && !found; at += first)
				if (ask(&state, e->bytes + at, first < e->count - at ? first : e->count - at, &question)) {
					found++;
					strcpy(name, question.name);
				}
			assert_int_equal(found, e->name != NULL);
			if (e->name)
				assert_string_equal(name, e->name);
		}
}

static void test_request_paths_are_kept_if_wanted(void **test)
{
	struct weft_protocol_state state = {0};
	struct weft_question question;
	assert_true(weft_protocol_question(&state, BYTES("GET /orders/4711?secret" HTTP), true, &question));
	assert_string_equal(question.name, "GET /orders/4711");
}

static void test_long_request_target_in_pieces_is_cut(void **test)
{
	struct weft_protocol_state state = {0};
	struct weft_question question;
	bool is = false;
	assert_false(ask(&state, BYTES("GET /"), &question));
	for (int i = 0; i < 100 && !is; i++)
		is = ask(&state, "a", 1, &question);
	assert_true(is);
	assert_int_equal(strlen(question.name), sizeof state.head);
}

static void sql_statement_name_has_keyword_and_table(void **test)
{
	static const struct {
		const char *statement, *name;
	} statements[] = {{"select * from orders where id = 'secret'", "SELECT orders"},
	    {"SELECT 'from secret', a FROM public.orders", "SELECT public.orders"}, {"SELECT pg_sleep(1)", "SELECT"},
	    {"SELECT E'\\' from secret'", "SELECT"}, {"SELECT $$ from secret $$", "SELECT"},
	    {"select 1 -- from secret", "SELECT"}, {"SELECT (select a from (select 1) x)", "SELECT"},
	    {"insert into t values ('secret')", "INSERT t"}, {"update Orders set a = 'secret'", "UPDATE orders"},
	    {"delete from t where a = 1", "DELETE t"}, {"select from 'secret'", "SELECT"}, {"begin", "BEGIN"},
	    {"secret", "statement"}, {"/* secret */ select 1", "statement"}, {"update set", "UPDATE set"},
	    {"select x from", "SELECT"}};
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
		struct weft_protocol_state state = {.protocol = WEFT_PROTOCOL_POSTGRES};
		struct weft_question question;
		char message[128] = "Q\0\0\0";
		const size_t length = strlen(statements[i].statement);
		message[4] = (char)(length + 5);
		strcpy(message + 5, statements[i].statement);
		print_message("%s\n", statements[i].statement);
		assert_true(ask(&state, message, length + 6, &question));
		assert_string_equal(question.name, statements[i].name);
	}
}

static void responses_have_results(void **test)
{
	struct weft_protocol_state state = {.protocol = WEFT_PROTOCOL_HTTP1};
	struct weft_answer answer;
	weft_protocol_answer(&state, BYTES("HTTP/1.1 404 Not Found\r\n"), &answer);
	assert_string_equal(answer.result, "404");
	assert_false(answer.is_error || answer.is_interim);
	weft_protocol_answer(&state, BYTES("HTTP/1.1 502 Bad Gateway\r\n"), &answer);
	assert_true(answer.is_error);
	weft_protocol_answer(&state, BYTES("HTTP/1.1 100 Continue\r\n\r\n"), &answer);
	assert_true(answer.is_interim);
	weft_protocol_answer(&state, BYTES("HTTP/1.1"), &answer);
	assert_string_equal(answer.result, "");
	state.protocol = WEFT_PROTOCOL_RESP;
	weft_protocol_answer(&state, BYTES("-ERR secret\r\n"), &answer);
	assert_string_equal(answer.result, "error");
}

static void expect_host(const char *bytes, size_t count, const char *want)
{
	char host[WEFT_HOST_BYTES], *copy = malloc(count);
	assert_non_null(copy);
	memcpy(copy, bytes, count);
	weft_protocol_host(copy, count, host);
	assert_string_equal(host, want);
	free(copy);
}

static void test_requests_have_hosts(void **test)
{
	static const char head[] = "GET / HTTP/1.1\r\nAccept: */*\r\nhOST: \t[::1]:8080\r\n\r\nHost: body\r\n";
	const size_t end = (size_t)(strstr(head, "8080\r") - head) + 5;
	for (size_t count = 1; count < sizeof head; count++)
		expect_host(head, count, count >= end ? "[::1]:8080" : "");
	expect_host(BYTES("GET / HTTP/1.1\r\nHos: a\r\n\r\nHost: body\r\n"), "");
	expect_host(BYTES("GET / HTTP/1.1\r\nHost: user@host\r\n"), "");
	expect_host(BYTES("GET / HTTP/1.1\r\nHost: a234567890123456789012345678901234567890\r\n"), "");
}

static void expect_trace_parent(const char *bytes, size_t count, const char *want)
{
	char parent[WEFT_TRACE_PARENT_BYTES], *copy = malloc(count);
	assert_non_null(copy);
	memcpy(copy, bytes, count);
	weft_protocol_trace_parent(copy, count, parent);
	assert_string_equal(parent, want);
	free(copy);
}

static void test_trace_parent_is_read_only_from_a_valid_request_header(void **test)
{
#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	static const char head[] = "GET / HTTP/1.1\r\nCookie: traceparent: 00-\r\nTraceParent:" PARENT "\r\n\r\n";
	const size_t end = (size_t)(strstr(head, "-01\r") - head) + 4;
	for (size_t count = 1; count < sizeof head; count++)
		expect_trace_parent(head, count, count >= end ? PARENT : "");
	expect_trace_parent(BYTES("GET / HTTP/1.1\r\n\r\ntraceparent: " PARENT "\r\n"), "");
	expect_trace_parent(BYTES("GET / HTTP/1.1\r\ntraceparent: " PARENT "0\r\n"), "");
	expect_trace_parent(BYTES("GET / HTTP/1.1\r\ntraceparent: my secret\r\n"), "");
	expect_trace_parent(
	    BYTES("GET / HTTP/1.1\r\ntraceparent: 00-00000000000000000000000000000000000000000000000000-01\r\n"), "");
#undef PARENT
}

static void test_requests_of_http2_have_names(void **test)
{
	char name[WEFT_QUESTION_BYTES], path[200];
	weft_protocol_http2_name(&(struct weft_http2_head){"GET", "/orders/4711/x?secret", "https", "a.example:8080"}, name);
	assert_string_equal(name, "GET https://a.example:8080/orders/:id/x");
	weft_protocol_http2_name(&(struct weft_http2_head){.method = "POST", .path = "/orders#secret"}, name);
	assert_string_equal(name, "POST /orders");
	weft_protocol_http2_name(&(struct weft_http2_head){"GET", "/", "https", "user@host"}, name);
	assert_string_equal(name, "GET /");
	weft_protocol_http2_name(&(struct weft_http2_head){0}, name);
	assert_string_equal(name, " ");
	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[sizeof path - 1] = 0;
	weft_protocol_http2_name(&(struct weft_http2_head){.method = "GET", .path = path}, name);
	assert_int_equal(strlen(name), WEFT_QUESTION_BYTES - 1);
}

static void test_dns_messages_have_names(void **test)
{
	static const char question[] = "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\4some\4host\7example\0\0\x1c\0\1";
	char answer[sizeof question];
	struct weft_dns dns;
	assert_true(weft_protocol_dns(question, sizeof question - 1, &dns));
	assert_string_equal(dns.name, "some.host.example AAAA");
	assert_int_equal(dns.number, 0x1234);
	assert_false(dns.is_answer);
	memcpy(answer, question, sizeof question);
	answer[2] = (char)0x81;
	answer[3] = 3;
	assert_true(weft_protocol_dns(answer, sizeof answer - 1, &dns));
	assert_true(dns.is_answer);
	assert_string_equal(dns.result, "NXDOMAIN");
	for (size_t cut = 0; cut < sizeof question - 1; cut++) {
		char *copy = malloc(cut ? cut : 1);
		assert_non_null(copy);
		memcpy(copy, question, cut);
		assert_false(weft_protocol_dns(copy, cut, &dns));
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requests_have_names),
	    cmocka_unit_test(test_request_read_in_pieces_has_the_same_name),
	    cmocka_unit_test(test_request_paths_are_kept_if_wanted),
	    cmocka_unit_test(test_long_request_target_in_pieces_is_cut),
	    cmocka_unit_test(sql_statement_name_has_keyword_and_table),
	    cmocka_unit_test(responses_have_results),
	    cmocka_unit_test(test_requests_have_hosts),
	    cmocka_unit_test(test_trace_parent_is_read_only_from_a_valid_request_header),
	    cmocka_unit_test(test_requests_of_http2_have_names),
	    cmocka_unit_test(test_dns_messages_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
