/* trace_test.c: the readers of mirage and S-expression traces, and how they get the bytes of files, pipes and archives.
 * SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"
#include "mirage_writer.h"
#include "trace/source.h"
#include "trace/trace.h"

static struct mirage_writer w;

static struct weft_trace *open_bytes(const void *bytes, size_t size)
{
	struct weft_trace *trace = NULL;
	struct weft_error err = {0};
	if (weft_trace_open_memory(&trace, bytes, size, "test", &err) < 0)
		fail_msg("cannot open: %s", err.what);
	return trace;
}

static void assert_text(struct weft_str text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.ptr, expected, text.len);
}

/* Checks that the reader skipped exactly one part, and that it gives this description of the part. */
static void assert_skipped(const struct weft_trace *trace, const char *what, uint64_t bytes)
{
	const struct weft_trace_info *info = weft_trace_info(trace);
	char text[512] = "nothing";
	if (info->skipped_count)
		weft_error_format(&info->skipped[0].where, text, sizeof text);
	assert_int_equal(info->skipped_count, 1);
	assert_string_equal(text, what);
	assert_int_equal(info->skipped[0].bytes, bytes);
}

static void mirage_decodes_every_operation(void **state)
{
	struct weft_event ev[32];
	const int64_t t = 1700000000123456789;
	w.size = 0;
	mw_packet(&w, 0);
	mw_create(&w, t, -1, 1, WEFT_KIND_TASK);
	mw_link(&w, t + 1, WEFT_OP_READ, 2, 3);
	mw_link(&w, t + 2, WEFT_OP_RESOLVE, 4, 5);
	mw_text(&w, t + 3, WEFT_OP_FAIL, 6, 7, "Not_found");
	mw_link(&w, t + 4, WEFT_OP_BECOME, 8, 9);
	mw_label(&w, t + 5, 10, "name");
	mw_text(&w, t + 6, WEFT_OP_COUNTER_ADD, 11, -5, "q#1");
	mw_op(&w, t + 7, WEFT_OP_RUN, -1);
	mw_op(&w, t + 8, WEFT_OP_PAUSE, 7);
	mw_link(&w, t + 9, WEFT_OP_SIGNAL, 12, 13);
	mw_link(&w, t + 10, WEFT_OP_AWAIT, 14, 15);
	mw_text(&w, t + 11, WEFT_OP_COUNTER, 16, INT64_MIN, "");
	mw_link(&w, t + 12, WEFT_OP_READ_LATER, 17, INT64_MAX);
	mw_link(&w, t + 13, WEFT_OP_SIGNAL_ONLY, 18, 19);
	mw_label(&w, t + 14, 20, "__should_resolve");
	mw_create(&w, t + 15, 1, 2, 77);
	mw_end(&w, 0);
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 32), 16);
	for (int i = 0; i < 16; i++) {
		assert_true(ev[i].time_ns == t + i);
		assert_int_equal(ev[i].op, i == 15 ? WEFT_OP_CREATE : i);
		assert_int_equal(ev[i].stream, 0);
		assert_true(ev[i].site == WEFT_NO_SITE);
	}
	assert_true(ev[0].a == -1 && ev[0].b == 1 && ev[0].kind == WEFT_KIND_TASK);
	assert_true(ev[1].a == 2 && ev[1].b == 3);
	assert_true(ev[3].a == 6 && ev[3].b == 7);
	assert_text(ev[3].text, "Not_found");
	assert_text(ev[5].text, "name");
	assert_true(ev[6].a == 11 && ev[6].value == -5);
	assert_text(ev[6].text, "q#1");
	assert_true(ev[7].a == -1);
	assert_true(ev[8].a == 0 && ev[8].value == 7);
	assert_text(ev[8].text, "gc");
	assert_true(ev[9].a == 13 && ev[9].b == 12);
	assert_true(ev[10].a == 14 && ev[10].b == 15);
	assert_true(ev[11].value == INT64_MIN && ev[11].text.len == 0);
	assert_true(ev[12].b == INT64_MAX);
	assert_true(ev[13].a == 19 && ev[13].b == 18);
	assert_true(ev[14].a == 20 && ev[14].text.len == 0);
	assert_int_equal(ev[15].kind, 77);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_string_equal(info->format, "mirage");
	assert_int_equal(info->skipped_count, 0);
	assert_int_equal(info->stream_count, 1);
	assert_int_equal(info->streams[0].packets, 1);
	assert_int_equal(info->streams[0].bytes, w.size);
	assert_false(info->wrapped);
	weft_trace_rewind(trace);
	assert_int_equal(read_events(trace, ev, 32), 16);
	weft_trace_close(trace);
}

/* Checks that packets with these counts are read in the order of time.  Each packet has one event; a time of 0 stands for none.
 */
static void assert_order(const uint16_t *counts, const int64_t *times, size_t n, bool wrapped)
{
	struct weft_event ev[8];
	w.size = 0;
	for (size_t i = 0; i < n; i++) {
		mw_packet(&w, counts[i]);
		if (times[i])
			mw_op(&w, times[i], WEFT_OP_RUN, 1);
		mw_end(&w, 10);
	}
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	size_t found = read_events(trace, ev, 8);
	for (size_t i = 0; i < found; i++)
		assert_true(ev[i].time_ns == (int64_t)i + 1);
	assert_int_equal(weft_trace_info(trace)->skipped_count, 0);
	assert_int_equal(weft_trace_info(trace)->wrapped, wrapped);
	weft_trace_close(trace);
}

static void mirage_puts_the_oldest_packet_first(void **state)
{
	assert_order((uint16_t[]){0, 1, 2, 3}, (int64_t[]){1, 2, 3, 4}, 4, false);
	assert_order((uint16_t[]){4, 5, 2, 3}, (int64_t[]){3, 4, 1, 2}, 4, true);
	assert_order((uint16_t[]){0, 1, 65534, 65535}, (int64_t[]){3, 4, 1, 2}, 4, true);
	assert_order((uint16_t[]){65535, 0, 1, 65534}, (int64_t[]){2, 3, 4, 1}, 4, true);
	assert_order((uint16_t[]){0, 1, 2, 3}, (int64_t[]){1, 0, 0, 0}, 4, false);
	assert_order((uint16_t[]){4, 1, 2, 3}, (int64_t[]){0, 1, 2, 3}, 4, true);
}

static void two_packets(void)
{
	w.size = 0;
	mw_packet(&w, 0);
	mw_op(&w, 1, WEFT_OP_RUN, 1);
	mw_label(&w, 2, 1, "first");
	mw_end(&w, 0);
}

static void second_packet(void)
{
	mw_packet(&w, 1);
	mw_op(&w, 3, WEFT_OP_RUN, 2);
	mw_end(&w, 0);
}

static void mirage_reads_complete_events(void **state)
{
	struct weft_event ev[8];
	struct weft_trace *trace;
	struct {
		uint32_t size, content;
		size_t events;
		const char *what;
		uint64_t bytes;
	} headers[] = {
	    {0, 70, 3, "test: packet size 0 bits is below the header's (packet 0, offset 0x0)", 0},
	    {29, 70, 3, "test: packet size 232 bits is below the header's (packet 0, offset 0x0)", 0},
	    {70, 1000, 3, "test: content size 1000 is above the 70 bytes of the packet (packet 0, offset 0x0)", 930},
	    {70, 29, 1, "test: content size 29 is below the header's (packet 0, offset 0x0)", 40},
	    {70, 0, 1, "test: content size 0 is below the header's (packet 0, offset 0x0)", 40},
	    {70, 69, 2, "test: a string without a terminating NUL; the rest of the packet is skipped (packet 0, offset 0x2f)",
		22},
	    {70, 50, 2, "test: the last event is cut off; the rest of the packet is skipped (packet 0, offset 0x2f)", 3},
	};
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
		two_packets();
		w.packet = 0;
		assert_int_equal(w.size, 70);
		mw_sizes(&w, headers[i].size, headers[i].content);
		second_packet();
		trace = open_bytes(w.bytes, w.size);
		assert_int_equal(read_events(trace, ev, 8), headers[i].events);
		assert_skipped(trace, headers[i].what, headers[i].bytes);
		/* After a rewind, damage is not reported a second time. */
		weft_trace_rewind(trace);
		assert_int_equal(read_events(trace, ev, 8), headers[i].events);
		assert_int_equal(weft_trace_info(trace)->skipped_count, 1);
		weft_trace_close(trace);
	}
}

static void mirage_notes_damage_between_packets(void **state)
{
	struct weft_event ev[8];
	two_packets();
	size_t first = w.size;
	mw_bytes(&w, "not a packet header", 19);
	second_packet();
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 8), 3);
	assert_skipped(trace, "test: no packet header (packet 1, offset 0x46)", 19);
	weft_trace_close(trace);
	/* A packet with another UUID is skipped. */
	two_packets();
	second_packet();
	w.bytes[first + 10] ^= 1;
	trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 8), 2);
	assert_skipped(trace, "test: no packet header (packet 1, offset 0x46)", w.size - first);
	weft_trace_close(trace);
}

static void mirage_file_truncated_anywhere_is_read(void **state)
{
	two_packets();
	second_packet();
	for (size_t size = 0; size < w.size; size++) {
		struct weft_event ev[8];
		struct weft_trace *trace = NULL;
		struct weft_error err = {0};
		unsigned char *bytes = malloc(size ? size : 1);
		assert_non_null(bytes);
		memcpy(bytes, w.bytes, size);
		int status = weft_trace_open_memory(&trace, bytes, size, "test", &err);
		if (size < 20) {
			assert_int_equal(status, WEFT_EFORMAT);
			assert_true(err.what[0] && strcmp(err.file, "test") == 0);
		} else {
			assert_int_equal(status, WEFT_OK);
			assert_int_equal(read_events(trace, ev, 8), size < 47 ? 0 : size < 70 ? 1 : 2);
			assert_true(size == 70 || weft_trace_info(trace)->skipped_count > 0);
			weft_trace_close(trace);
		}
		free(bytes);
	}
}

static void mirage_unknown_operation_ends_its_packet(void **state)
{
	struct weft_event ev[8];
	w.size = 0;
	mw_packet(&w, 0);
	mw_op(&w, 1, WEFT_OP_RUN, 1);
	mw_link(&w, 2, 14, 1, 2);
	mw_op(&w, 3, WEFT_OP_RUN, 1);
	mw_end(&w, 0);
	second_packet();
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 8), 2);
	assert_skipped(trace, "test: unknown operation; the rest of the packet is skipped (packet 0, offset 0x2f)", 25 + 17);
	weft_trace_close(trace);
}

static void mirage_event_going_back_in_time_gets_the_previous_time(void **state)
{
	struct weft_event ev[8];
	w.size = 0;
	mw_packet(&w, 0);
	mw_op(&w, 100, WEFT_OP_RUN, 1);
	mw_op(&w, 40, WEFT_OP_RUN, 2);
	mw_op(&w, 110, WEFT_OP_RUN, 3);
	mw_end(&w, 0);
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 8), 3);
	assert_true(ev[1].time_ns == 100 && ev[1].a == 2 && ev[2].time_ns == 110);
	assert_skipped(trace, "test: time goes back by 60 ns (packet 0, offset 0x2f)", 0);
	weft_trace_close(trace);
}

/* The recorder increases the content size of a packet before it writes an event, so the last event of a killed program may be all
 * zeros. */
static void mirage_drops_a_last_event_of_zeros(void **state)
{
	struct weft_event ev[8];
	w.size = 0;
	mw_packet(&w, 0);
	mw_op(&w, 100, WEFT_OP_RUN, 1);
	mw_create(&w, 0, 0, 0, 0);
	mw_end(&w, 0);
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 8), 1);
	assert_skipped(
	    trace, "test: the last event was never written; the rest of the packet is skipped (packet 0, offset 0x2f)", 26);
	weft_trace_close(trace);
}

/* The list of skipped parts has the first 64; their count includes all. */
static void list_of_damaged_parts_of_a_file_has_the_first_64(void **state)
{
	struct weft_event ev[256];
	w.size = 0;
	mw_packet(&w, 0);
	for (int i = 0; i < 200; i++)
		mw_op(&w, 1000 - i, WEFT_OP_RUN, i);
	mw_end(&w, 0);
	struct weft_trace *trace = open_bytes(w.bytes, w.size);
	assert_int_equal(read_events(trace, ev, 256), 200);
	assert_int_equal(weft_trace_info(trace)->skipped_count, 199);
	assert_string_equal(weft_trace_info(trace)->skipped[63].where.what, "time goes back by 64 ns");
	weft_trace_close(trace);
}

static void sexp_decodes_every_operation(void **state)
{
	static const char text[] = "((time 1.5)(op(Switch -1)))\n"
				   "((time 1.500000001)(op(Creates -1 1 Task)))\n"
				   "((time 1.6)(op(Creates 1 2)))\n"
				   "((time 1.7)(op(Label 1\"a \\\"b\\\"\\n\\065\\t\\\\\")))\n"
				   "((time 1.71)(op(Label 1 __should_resolve)))\n"
				   "((time 1.8)(op(Reads 2 1)))\n"
				   "((time 1.9)(op(Increases 2 \"my counter\" -5)))\n"
				   "((time 2)(op(Gc 4.9114227294921875e-05)))\n"
				   "((time 2.1)(op(Becomes 1 2)))\n"
				   "((time 2.2)(op(Resolves 2 3())))\n"
				   "((time 2.3)(op(Resolves 2 4(Not_found))))\r\n"
				   "\n ( ( time 1700000000.123456789 )\n ( op ( Creates 1 5 juggle ) ) ) ";
	struct weft_event ev[16];
	struct weft_trace *trace = open_bytes(text, sizeof text - 1);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(read_events(trace, ev, 16), 12);
		assert_int_equal(weft_trace_info(trace)->skipped_count, 0);
		assert_true(ev[0].time_ns == 1500000000 && ev[0].op == WEFT_OP_RUN && ev[0].a == -1);
		assert_true(
		    ev[1].time_ns == 1500000001 && ev[1].op == WEFT_OP_CREATE && ev[1].b == 1 && ev[1].kind == WEFT_KIND_TASK);
		assert_true(ev[2].kind == WEFT_KIND_UNKNOWN);
		assert_true(ev[3].op == WEFT_OP_LABEL);
		assert_text(ev[3].text, "a \"b\"\nA\t\\");
		assert_true(ev[4].op == WEFT_OP_SHOULD_RESOLVE && ev[4].a == 1 && ev[4].text.len == 0);
		assert_true(ev[5].op == WEFT_OP_READ && ev[5].a == 2 && ev[5].b == 1);
		assert_true(ev[6].op == WEFT_OP_COUNTER_ADD && ev[6].a == 2 && ev[6].value == -5);
		assert_text(ev[6].text, "my counter");
		assert_true(ev[7].op == WEFT_OP_PAUSE && ev[7].value == 49114);
		assert_true(ev[8].op == WEFT_OP_BECOME);
		assert_true(ev[9].op == WEFT_OP_RESOLVE && ev[9].a == 2 && ev[9].b == 3);
		assert_true(ev[10].op == WEFT_OP_FAIL && ev[10].b == 4);
		assert_text(ev[10].text, "Not_found");
		assert_true(ev[11].time_ns == 1700000000123456789 && ev[11].kind == WEFT_KIND_UNKNOWN);
		weft_trace_rewind(trace);
	}
	weft_trace_close(trace);
}

static void sexp_decimal_times_are_exact(void **state)
{
	static const struct {
		const char *seconds;
		int64_t ns;
	} cases[] = {{"0", 0}, {"8249.521266", 8249521266000}, {"1700000000.123456789", 1700000000123456789}, {".5", 500000000},
	    {"5.", 5000000000}, {"-0.25", -250000000}, {"1e-9", 1}, {"0.0000000004", 0}, {"0.0000000005", 1},
	    {"1.5E3", 1500000000000}, {"9223372036.854775807", INT64_MAX}, {"1.00000000000000000000000000000000001", 1000000000},
	    {"000000000000000000000000000002", 2000000000}, {"0e99999", 0}, {"1e-99999", 0}, {"+1", -1},
	    {"9223372036.854775808", -1}, {"1e400", -1}, {".", -1}, {"-", -1}, {"1e", -1}, {"1.2.3", -1}, {"1x", -1}, {"", -1}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[128];
		struct weft_event ev[2];
		int len = snprintf(text, sizeof text, "((time %s)(op(Switch 1)))", cases[i].seconds);
		struct weft_trace *trace = open_bytes(text, (size_t)len);
		size_t count = read_events(trace, ev, 2);
		assert_int_equal(count, cases[i].ns != -1);
		assert_int_equal(weft_trace_info(trace)->skipped_count, cases[i].ns == -1);
		if (count)
			assert_true(ev[0].time_ns == cases[i].ns);
		weft_trace_close(trace);
	}
}

static void sexp_skips_bad_lines(void **state)
{
	static const struct {
		const char *line, *what;
	} cases[] = {{"((time 2)(op(Dance 1)))", "unknown operation"}, {"((time 2)(op(Switch)))", "expected an atom"},
	    {"((time 2)(op(Switch one)))", "expected a number"}, {"((time 2)(op(Switch 1 2)))", "expected ')'"},
	    {"((time 2)(op(Switch 99999999999999999999)))", "a number has more than 64 bits"},
	    {"((time 2)(op(Switch 1))", "expected ')'"}, {"((tune 2)(op(Switch 1)))", "expected (time SECONDS)"},
	    {"((time 2)(ap(Switch 1)))", "expected (op ...)"}, {"junk", "expected '('"},
	    {"((time 2)(op(Label 1\"abc)))", "a quoted atom has no closing quote"},
	    {"((time 2)(op(Resolves 1 2 3)))", "expected '('"}, {"((time 2)(op(Resolves 1 2(a b))))", "expected ')'"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[256], what[256];
		struct weft_event ev[4];
		int len = snprintf(text, sizeof text, "((time 1)(op(Switch 1)))\n%s\n((time 3)(op(Switch 3)))\n", cases[i].line);
		struct weft_trace *trace = open_bytes(text, (size_t)len);
		assert_int_equal(read_events(trace, ev, 4), 2);
		assert_true(ev[1].a == 3);
		snprintf(what, sizeof what, "test: %s; the line is skipped (offset 0x19)", cases[i].what);
		assert_skipped(trace, what, strlen(cases[i].line) + 1);
		weft_trace_close(trace);
	}
	static const char cut[] = "((time 1)(op(Switch 1)))\n((time 2)(op(Swi";
	struct weft_event ev[4];
	struct weft_trace *trace = open_bytes(cut, sizeof cut - 1);
	assert_int_equal(read_events(trace, ev, 4), 1);
	assert_skipped(trace, "test: the file ends in the middle of an event; the line is skipped (offset 0x19)", 16);
	weft_trace_close(trace);
}

static void file_in_no_known_format_is_refused(void **state)
{
	static const unsigned char other_uuid[64] = {0xC1, 0x1F, 0xFC, 0xC1, 1, 2, 3};
	static const struct {
		const void *bytes;
		size_t size;
		const char *what;
	} cases[] = {{"", 0, "test: the file is empty"}, {"hello", 5, "test: not a trace in a format that weft reads"},
	    {other_uuid, 64, "test: a CTF trace with the UUID of a format that weft does not read"},
	    {"\xC1\x1F\xFC", 3, "test: not a trace in a format that weft reads"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct weft_trace *trace = NULL;
		struct weft_error err;
		char text[512];
		assert_int_equal(weft_trace_open_memory(&trace, cases[i].bytes, cases[i].size, "test", &err), WEFT_EFORMAT);
		assert_null(trace);
		weft_error_format(&err, text, sizeof text);
		assert_string_equal(text, cases[i].what);
	}
}

#ifndef __wasi__ /* WASI has no processes, pipes or temporary folders, and the core of the page reads no files */

static char dir[] = "/tmp/weft-trace-test-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return path;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(in_dir(name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static size_t count_events(const char *path)
{
	struct weft_trace *trace = NULL;
	struct weft_event ev[16];
	struct weft_error err = {0};
	if (weft_trace_open(&trace, path, &err) < 0)
		fail_msg("%s: %s", path, err.what);
	size_t count = read_events(trace, ev, 16);
	weft_trace_close(trace);
	return count;
}

static void run_shell(const char *command)
{
	char line[1024];
	snprintf(line, sizeof line, "cd %s && %s", dir, command);
	assert_int_equal(system(line), 0);
}

static void traces_in_files_pipes_and_archives_are_opened(void **state)
{
	two_packets();
	put_file("t.ctf", w.bytes, w.size);
	assert_int_equal(count_events(in_dir("t.ctf")), 2);
	run_shell("tar cf t.tar t.ctf && tar cf old.tar --format=gnu t.ctf && mkdir -p d/sub && cp t.ctf d/ && tar cf d.tar d");
	assert_int_equal(count_events(in_dir("t.tar")), 2);
	assert_int_equal(count_events(in_dir("old.tar")), 2);
	assert_int_equal(count_events(in_dir("d")), 2);

	int saved = dup(STDIN_FILENO);
	int file = open(in_dir("t.ctf"), O_RDONLY);
	assert_true(saved >= 0 && file >= 0 && dup2(file, STDIN_FILENO) == STDIN_FILENO);
	assert_int_equal(count_events("-"), 2);
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], w.bytes, w.size), w.size);
	close(pipes[1]);
	assert_true(dup2(pipes[0], STDIN_FILENO) == STDIN_FILENO);
	assert_int_equal(count_events("-"), 2);
	/* The writer keeps this pipe open, so the reader must refuse an unknown format before it has read all. */
	assert_int_equal(pipe(pipes), 0);
	char junk[1024] = "junk";
	assert_int_equal(write(pipes[1], junk, sizeof junk), sizeof junk);
	assert_true(dup2(pipes[0], STDIN_FILENO) == STDIN_FILENO);
	struct weft_trace *trace;
	struct weft_error err;
	assert_int_equal(weft_trace_open(&trace, "-", &err), WEFT_EFORMAT);
	assert_string_equal(err.file, "standard input");
	close(pipes[1]);
	assert_true(dup2(saved, STDIN_FILENO) == STDIN_FILENO);
	close(saved);
	close(file);
}

static void archive_is_read_like_its_directory(void **state)
{
	struct weft_source source;
	static const char metadata[] = "env { tracer_name = \"weft\"; };";
	put_file("metadata", metadata, sizeof metadata - 1);
	put_file("b", "bb", 2);
	put_file("a", "aaa", 3);
	run_shell("mkdir -p x/trace/sub y && cp metadata a b x/trace && cp a x && cp b x/trace/sub && tar cf x.tar x y && tar cf "
		  "flat.tar metadata b a");
	const char *archives[] = {"x.tar", "flat.tar", "x/trace"};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weft_source_open(&source, in_dir(archives[i]), NULL), WEFT_OK);
		assert_true(source.is_dir);
		assert_int_equal(source.blob_count, 3);
		assert_string_equal(source.blobs[0].name, "a");
		assert_string_equal(source.blobs[1].name, "b");
		assert_string_equal(source.blobs[2].name, "metadata");
		const struct weft_blob *b = weft_source_find(&source, "b");
		assert_non_null(b);
		assert_int_equal(b->size, 2);
		assert_memory_equal(b->bytes, "bb", 2);
		assert_null(weft_source_find(&source, "c"));
		weft_source_close(&source);
	}
	/* The files in front of the cut in an archive are found. */
	FILE *file = fopen(in_dir("flat.tar"), "rb");
	unsigned char bytes[4096];
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
	fclose(file);
	for (size_t size = 512; size < sizeof bytes; size++) {
		assert_int_equal(weft_source_from_memory(&source, bytes, size, "test", NULL), WEFT_OK);
		assert_true(source.is_dir && source.blob_count <= 3);
		for (size_t i = 0; i < source.blob_count; i++)
			assert_true(source.blobs[i].bytes + source.blobs[i].size <= bytes + size);
		weft_source_close(&source);
	}
}

/* Some file systems, such as sysfs, report a larger size than the content of a file. */
static void file_shorter_than_its_size_is_read(void **state)
{
	struct weft_source source;
	const char *path = "/sys/kernel/mm/transparent_hugepage/enabled";
	if (access(path, R_OK) != 0)
		skip();
	assert_int_equal(weft_source_open(&source, path, NULL), WEFT_OK);
	assert_true(source.blobs[0].size > 0 && source.blobs[0].size < 4096);
	weft_source_close(&source);
	assert_int_equal(weft_source_open(&source, "/sys/kernel/mm/transparent_hugepage", NULL), WEFT_EFORMAT);
}

static void failed_open_of_a_trace_reports_the_reason(void **state)
{
	struct weft_trace *trace;
	struct weft_error err;
	char text[512];
	assert_int_equal(weft_trace_open(&trace, in_dir("nothing"), &err), WEFT_ENOENT);
	weft_error_format(&err, text, sizeof text);
	assert_true(strstr(text, "nothing: No such file or directory"));
	assert_int_equal(mkdir(in_dir("empty"), 0700), 0);
	assert_int_equal(weft_trace_open(&trace, in_dir("empty"), &err), WEFT_EFORMAT);
	weft_error_format(&err, text, sizeof text);
	assert_true(strstr(text, "empty: the directory has no trace in a format that weft reads"));
	put_file("zero", "", 0);
	assert_int_equal(weft_trace_open(&trace, in_dir("zero"), &err), WEFT_EFORMAT);
	assert_string_equal(err.what, "the file is empty");
	weft_trace_close(NULL);
}

/* The file of the ring has 3 GB, of which only a few bytes are not zero. */
static void sparse_ring_of_3_gb_is_read(void **state)
{
	const uint32_t packet_bytes = 400u << 20;
	int fd = open(in_dir("sparse"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	for (int i = 0; i < 8; i++) {
		w.size = 0;
		mw_packet(&w, (uint16_t)i);
		mw_op(&w, i + 1, WEFT_OP_RUN, i);
		mw_end(&w, 0);
		mw_sizes(&w, packet_bytes, (uint32_t)w.size);
		assert_int_equal(pwrite(fd, w.bytes, w.size, (off_t)i * packet_bytes), w.size);
	}
	assert_int_equal(ftruncate(fd, (off_t)8 * packet_bytes), 0);
	close(fd);
	assert_int_equal(count_events(in_dir("sparse")), 8);
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[256];
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mirage_decodes_every_operation),
	    cmocka_unit_test(mirage_puts_the_oldest_packet_first),
	    cmocka_unit_test(mirage_reads_complete_events),
	    cmocka_unit_test(mirage_notes_damage_between_packets),
	    cmocka_unit_test(mirage_file_truncated_anywhere_is_read),
	    cmocka_unit_test(mirage_unknown_operation_ends_its_packet),
	    cmocka_unit_test(mirage_event_going_back_in_time_gets_the_previous_time),
	    cmocka_unit_test(mirage_drops_a_last_event_of_zeros),
	    cmocka_unit_test(list_of_damaged_parts_of_a_file_has_the_first_64),
	    cmocka_unit_test(sexp_decodes_every_operation),
	    cmocka_unit_test(sexp_decimal_times_are_exact),
	    cmocka_unit_test(sexp_skips_bad_lines),
	    cmocka_unit_test(file_in_no_known_format_is_refused),
#ifdef __wasi__
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	    cmocka_unit_test(traces_in_files_pipes_and_archives_are_opened),
	    cmocka_unit_test(archive_is_read_like_its_directory),
	    cmocka_unit_test(file_shorter_than_its_size_is_read),
	    cmocka_unit_test(failed_open_of_a_trace_reports_the_reason),
	    cmocka_unit_test(sparse_ring_of_3_gb_is_read),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
#endif
}
