/* follow_test.c: traces that change while they are read.  SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "scratch.h"
#include "trace/follow.h"
#include "trace/trace.h"

static const char *in_trace(const char *name)
{
	static char full[160];
	snprintf(full, sizeof full, "%s/%s", path, name);
	return full;
}

static void start(struct weft_record_options options)
{
	options.directory = path;
	assert_int_equal(weft_start(&options), WEFT_OK);
}

/* Opens the trace and reads it completely; returns the number of events, or the error. */
static long open_and_count(void)
{
	struct weft_trace *trace;
	struct weft_error err;
	const struct weft_event *events;
	size_t count;
	long all = 0;
	int status = weft_trace_open(&trace, path, &err);
	if (status < 0)
		return status;
	while (weft_trace_next(trace, &events, &count) == 1)
		all += (long)count;
	weft_trace_close(trace);
	return all;
}

/* Returns whether the fingerprint has changed since the last call. */
static bool has_changed(void)
{
	static uint64_t last;
	uint64_t before = last;
	last = weft_trace_fingerprint(path);
	assert_int_equal(last, weft_trace_fingerprint(path));
	return last != before;
}

static void each_new_event_changes_the_fingerprint(struct weft_record_options options)
{
	has_changed();
	start(options);
	assert_true(has_changed());
	for (int i = 0; i < 3000; i++) {
		weft_await(i, i + 1);
		assert_true(has_changed());
		assert_false(has_changed());
		if (i % 500 == 0)
			assert_true(open_and_count() > 0);
	}
	assert_true(weft_trace_is_recorded(path));
	weft_stop();
	assert_true(has_changed());
	assert_false(has_changed());
	assert_false(weft_trace_is_recorded(path));
}

static void new_ring_events_change_the_fingerprint(void **state)
{
	each_new_event_changes_the_fingerprint((struct weft_record_options){.size_bytes = 16384, .packets = 4});
}

static void new_file_events_change_the_fingerprint(void **state)
{
	each_new_event_changes_the_fingerprint((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096});
	assert_int_equal(open_and_count(), 3000);
}

/* Returns the last time at which the recorded program is known to run, or 0 if it has ended. */
static int64_t lived_until(void)
{
	struct weft_trace *trace;
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	int64_t until_ns = weft_trace_info(trace)->until_ns;
	weft_trace_close(trace);
	return until_ns;
}

static void trace_of_a_killed_program_does_not_count_as_being_recorded(void **state)
{
	int ends[2];
	char byte;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct weft_record_options options = {.directory = path};
		if (weft_start(&options) < 0)
			_exit(1);
		weft_await(1, 2);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(weft_trace_is_recorded(path));
	assert_true(lived_until() > 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_false(weft_trace_is_recorded(path));
	assert_true(lived_until() == 0);
	assert_int_equal(open_and_count(), 1);
	close(ends[0]);
	close(ends[1]);
}

/* Checks that the open trace and its events are unchanged. */
static void expect_all(struct weft_trace *trace)
{
	const struct weft_event *events;
	size_t count, all = 0;
	weft_trace_rewind(trace);
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++, all++) {
			char text[32];
			snprintf(text, sizeof text, "label %zu", all);
			assert_int_equal(events[i].a, all);
			assert_int_equal(events[i].text.len, strlen(text));
			assert_memory_equal(events[i].text.ptr, text, strlen(text));
		}
	assert_int_equal(all, 5000);
}

static void open_trace_survives_file_changes(void **state)
{
	struct weft_trace *trace;
	struct weft_error err;
	start((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 32768});
	for (int i = 0; i < 5000; i++) {
		char text[32];
		snprintf(text, sizeof text, "label %d", i);
		weft_label(i, text);
	}
	weft_stop();
	assert_int_equal(weft_trace_open(&trace, path, &err), WEFT_OK);
	has_changed();
	/* If the reader had mapped the file, the access to a page behind its new end would raise SIGBUS. */
	assert_int_equal(truncate(in_trace("stream-0-1"), 5000), 0);
	expect_all(trace);
	assert_true(has_changed());
	assert_true(open_and_count() > 0 && open_and_count() < 5000);
	assert_int_equal(truncate(in_trace("stream-0-0"), 0), 0);
	expect_all(trace);
	assert_true(has_changed());
	/* A file of the trace is overwritten by other bytes of the same length. */
	FILE *file = fopen(in_trace("stream-0-2"), "r+");
	assert_non_null(file);
	for (int i = 0; i < 32768; i++)
		fputc(i * 7, file);
	fclose(file);
	expect_all(trace);
	assert_true(has_changed());
	assert_true(open_and_count() >= 0);
	char away[128];
	snprintf(away, sizeof away, "%s.away", path);
	assert_int_equal(rename(path, away), 0);
	expect_all(trace);
	assert_true(has_changed());
	assert_false(has_changed());
	assert_int_equal(open_and_count(), WEFT_ENOENT);
	assert_int_equal(rename(away, path), 0);
	assert_true(has_changed());
	weft_trace_close(trace);
}

/* Another process truncates and extends a file while the trace is opened.  The reader gets no signal, and no more events than
 * were recorded. */
static void file_truncated_while_opened_raises_no_signal_in_the_reader(void **state)
{
	enum { TIMES = 300 };
	start((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 1 << 20});
	for (int i = 0; i < 100000; i++)
		weft_await(i, i + 1);
	weft_stop();
	long whole = open_and_count();
	struct stat st;
	assert_int_equal(stat(in_trace("stream-0-0"), &st), 0);
	pid_t child = fork();
	if (child == 0)
		for (;;)
			if (truncate(in_trace("stream-0-0"), 0) || truncate(in_trace("stream-0-0"), st.st_size))
				_exit(1);
	for (int i = 0; i < TIMES; i++) {
		long got = open_and_count();
		assert_true(got <= whole && (got >= 0 || got == WEFT_EFORMAT));
	}
	int status;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_true(WIFSIGNALED(status));
}

static void image_file_has_a_fingerprint_and_special_file_has_none(void **state)
{
	static uint64_t buffer[4096];
	assert_int_equal(weft_trace_fingerprint("-"), 0);
	assert_int_equal(weft_trace_fingerprint("/dev/zero"), 0);
	assert_false(weft_trace_is_recorded("/dev/zero"));
	assert_false(weft_trace_is_recorded(scratch));
	/* A FIFO is not opened, because open() would wait for its writer. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(weft_trace_fingerprint(path), 0);
	unlink(path);
	/* A file with the image of a buffer is overwritten so fast that its modification time may stay the same. */
	struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 4};
	assert_int_equal(weft_start(&options), WEFT_OK);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 2000; i++) {
		weft_await(i, i + 1);
		assert_int_equal(pwrite(fd, buffer, sizeof buffer, 0), sizeof buffer);
		assert_true(has_changed());
		assert_false(has_changed());
	}
	assert_true(open_and_count() > 0);
	close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(new_ring_events_change_the_fingerprint),
	    TEST(new_file_events_change_the_fingerprint),
	    TEST(trace_of_a_killed_program_does_not_count_as_being_recorded),
	    TEST(open_trace_survives_file_changes),
	    TEST(file_truncated_while_opened_raises_no_signal_in_the_reader),
	    TEST(image_file_has_a_fingerprint_and_special_file_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
