/* live_test.c: traces that are written while they are read, and traces with gaps. SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "scratch.h"
#include "trace/trace.h"
#include "wire/wire.h"

/* ---- A program that records more during each read ---- */

static _Alignas(8) unsigned char buffer[1 << 17];
static int64_t next_number[2];
static int at_each_look, looks;
static sem_t asked, answered;

/* Both OS threads record the numbers 0, 1, 2, ...; this thread records each number first. */
static void record_number(int who)
{
	weft_await(next_number[who], 1);
	next_number[who]++;
}

static void *other_thread(void *arg)
{
	while (sem_wait(&asked) == 0 && at_each_look) {
		record_number(1);
		sem_post(&answered);
	}
	return NULL;
}

static void go_on(bool is_pair)
{
	for (int i = 0; i < at_each_look; i++) {
		record_number(0);
		if (is_pair) {
			sem_post(&asked);
			sem_wait(&answered);
		}
	}
}

static bool read_and_go_on(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	/* Copies two halves and records in between, so that the memory also changes during a copy. */
	size_t half = bytes / 16 * 8;
	memcpy(to, buffer + offset, half);
	if (looks++ < 4000)
		go_on(*(bool *)ctx);
	memcpy((char *)to + half, buffer + offset + half, bytes - half);
	return true;
}

/* Reads the buffer while threads record into it; fails unless the numbers of each stream are consecutive.  Stores the last number
 * of each stream. */
static void look(bool is_pair, int64_t last[2])
{
	struct weft_trace *trace;
	struct weft_error err = {0};
	const struct weft_event *events;
	size_t count;
	looks = 0;
	last[0] = last[1] = -1;
	if (weft_trace_open_live(&trace, read_and_go_on, &is_pair, sizeof buffer, "buffer", &err) < 0)
		fail_msg("%s", err.what);
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(events[i].op, WEFT_OP_AWAIT);
			assert_true(events[i].stream < 2);
			int64_t *known = &last[events[i].stream];
			if (*known >= 0 && events[i].a != *known + 1)
				fail_msg("stream %u: %lld comes after %lld", events[i].stream, (long long)events[i].a,
				    (long long)*known);
			*known = events[i].a;
		}
	const struct weft_trace_info *info = weft_trace_info(trace);
	if (info->skipped_count)
		fail_msg("%s", info->skipped[0].where.what);
	assert_int_equal(info->gap_count, 0);
	weft_trace_close(trace);
}

static void busy_ring_is_copied_without_gaps(void **state)
{
	for (unsigned packets = 2; packets <= 32; packets *= 2)
		for (at_each_look = 1; at_each_look <= 64; at_each_look *= 4) {
			struct weft_record_options options = {
			    .buffer = buffer, .buffer_bytes = sizeof buffer, .packets = packets};
			int64_t last[2];
			assert_int_equal(weft_start(&options), WEFT_OK);
			next_number[0] = 0;
			for (int i = 0; i < 20000; i++)
				record_number(0);
			look(false, last);
			assert_true(last[0] >= 20000);
			weft_stop();
		}
}

static void all_streams_of_a_copied_ring_end_at_the_same_moment(void **state)
{
	struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 16, .streams = 2};
	pthread_t thread;
	int64_t last[2];
	assert_int_equal(weft_start(&options), WEFT_OK);
	assert_int_equal(sem_init(&asked, 0, 0) | sem_init(&answered, 0, 0), 0);
	at_each_look = 3;
	next_number[0] = next_number[1] = 0;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	for (int i = 0; i < 2000; i++)
		go_on(true);
	for (int i = 0; i < 20; i++) {
		look(true, last);
		assert_true(last[0] >= 6000);
		/* This thread records each number before the other thread does, so at one moment it has recorded the same number
		 * or one more. */
		assert_in_range(last[0] - last[1], 0, 1);
	}
	at_each_look = 0;
	sem_post(&asked);
	pthread_join(thread, NULL);
}

/* Returns the offset of the packet of events with this sequence number. */
static size_t find_packet(uint64_t sequence, struct weft_packet_header *header)
{
	for (size_t at = 0; at + sizeof *header <= sizeof buffer; at += 8) {
		memcpy(header, buffer + at, sizeof *header);
		if (header->magic == WEFT_PACKET_MAGIC && header->stream_id == WEFT_CLASS_EVENTS && header->sequence == sequence)
			return at;
	}
	fail_msg("there is no packet %llu", (unsigned long long)sequence);
	return 0;
}

/* One OS thread fills its ring more than once between any two reads. */
static void reader_slower_than_the_ring_reports_a_gap(void **state)
{
	struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 16, .streams = 2};
	struct weft_trace *trace;
	pthread_t thread;
	bool is_pair = false;
	assert_int_equal(weft_start(&options), WEFT_OK);
	assert_int_equal(sem_init(&asked, 0, 0) | sem_init(&answered, 0, 0), 0);
	at_each_look = 500;
	looks = 0;
	next_number[0] = next_number[1] = 0;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	go_on(true);
	assert_int_equal(weft_trace_open_live(&trace, read_and_go_on, &is_pair, sizeof buffer, "buffer", NULL), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->skipped_count, 1);
	assert_non_null(strstr(info->skipped[0].where.what, "faster than it can be read"));
	assert_true(info->stream_count > 0);
	assert_int_equal(info->gap_count, info->stream_count);
	for (size_t i = 0; i < info->gap_count; i++) {
		assert_int_equal(info->gaps[i].stream, i);
		assert_true(info->gaps[i].from_ns < INT64_MAX && info->gaps[i].to_ns == INT64_MAX);
	}
	weft_trace_close(trace);
	at_each_look = 0;
	sem_post(&asked);
	pthread_join(thread, NULL);
}

static bool read_before_its_header_came(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	memcpy(to, buffer + offset, bytes);
	if (looks++ == 0)
		memset((char *)to + *(size_t *)ctx, 0, sizeof(struct weft_packet_header));
	return true;
}

static void packet_started_after_the_copy_is_found(void **state)
{
	enum { COUNT = 2000 };
	struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 16};
	struct weft_packet_header header;
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count, seen = 0;
	memset(buffer, 0, sizeof buffer);
	assert_int_equal(weft_start(&options), WEFT_OK);
	for (int i = 0; i < COUNT; i++)
		weft_await(i, 1);
	size_t late = find_packet(1, &header);
	looks = 0;
	assert_int_equal(
	    weft_trace_open_live(&trace, read_before_its_header_came, &late, sizeof buffer, "buffer", NULL), WEFT_OK);
	while (weft_trace_next(trace, &events, &count) == 1)
		seen += count;
	assert_int_equal(seen, COUNT);
	assert_int_equal(weft_trace_info(trace)->skipped_count, 0);
	weft_trace_close(trace);
}

/* ---- Gaps in the middle ---- */

enum { EVENTS = 20000 };

static void record_files(void)
{
	struct weft_record_options options = {.mode = WEFT_RECORD_GROW, .packet_bytes = 16384, .directory = path};
	assert_int_equal(weft_start(&options), WEFT_OK);
	for (int i = 0; i < EVENTS; i++)
		weft_await(i, 1);
	weft_stop();
}

static const char *file(const char *name)
{
	static char full[160];
	snprintf(full, sizeof full, "%s/%s", path, name);
	return full;
}

struct seen {
	int events;
	int64_t jump_from, jump_to; /* the numbers before and behind the gap */
	int64_t before_ns, after_ns;
	size_t skipped, gaps;
	struct weft_gap gap;
};

static struct seen read_all(void)
{
	struct seen seen = {.jump_from = -1};
	struct weft_trace *trace;
	struct weft_error err = {0};
	const struct weft_event *events, last = {.a = -1};
	struct weft_event before = last;
	size_t count;
	if (weft_trace_open(&trace, path, &err) < 0)
		fail_msg("%s", err.what);
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++, seen.events++) {
			if (events[i].a != before.a + 1) {
				assert_int_equal(seen.jump_from, -1);
				seen.jump_from = before.a;
				seen.jump_to = events[i].a;
				seen.before_ns = before.time_ns;
				seen.after_ns = events[i].time_ns;
			}
			before = events[i];
		}
	const struct weft_trace_info *info = weft_trace_info(trace);
	seen.skipped = info->skipped_count;
	seen.gaps = info->gap_count;
	if (info->gap_count)
		seen.gap = info->gaps[0];
	weft_trace_close(trace);
	return seen;
}

/* Checks that the trace reports one gap, and that its place is that of the missing events. */
static void expect_gap(const struct seen *seen, int64_t events)
{
	assert_int_equal(seen->gaps, 1);
	assert_true(seen->skipped >= 1);
	assert_int_equal(seen->events + events, EVENTS);
	assert_int_equal(seen->jump_to - seen->jump_from - 1, events);
	assert_int_equal(seen->gap.events, events);
	assert_true(
	    seen->gap.from_ns >= seen->before_ns && seen->gap.from_ns <= seen->gap.to_ns && seen->gap.to_ns <= seen->after_ns);
}

static void missing_middle_file_is_a_gap(void **state)
{
	record_files();
	struct seen whole = read_all();
	assert_int_equal(whole.events, EVENTS);
	assert_int_equal(whole.gaps + whole.skipped, 0);
	assert_int_equal(unlink(file("stream-0-3")), 0);
	assert_int_equal(unlink(file("stream-0-4")), 0);
	struct seen seen = read_all();
	assert_int_equal(seen.gap.packets, 2);
	expect_gap(&seen, EVENTS - seen.events);
}

static void missing_first_file_is_a_gap(void **state)
{
	record_files();
	assert_int_equal(unlink(file("stream-0-0")), 0);
	struct seen seen = read_all();
	assert_int_equal(seen.gaps, 1);
	assert_true(seen.gap.from_ns == INT64_MIN && seen.gap.to_ns <= seen.after_ns);
	assert_int_equal(seen.gap.packets, 1);
	assert_int_equal(seen.gap.events, EVENTS - seen.events);
	assert_int_equal(seen.skipped, 1);
}

/* Zeros of any length at any place in a file are no events for the reader. */
static void zeros_in_a_middle_trace_file_are_reported_as_a_gap(void **state)
{
	static const char zeros[8192];
	static const struct {
		off_t at;
		size_t bytes;
	} places[] = {{4096, 4096}, {4096, 8192}, {8192, 200}, {1000, 300}, {5000, 40}, {161, 8000}, {12000, 4384}};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		record_files();
		int fd = open(file("stream-0-3"), O_WRONLY);
		assert_int_equal(pwrite(fd, zeros, places[i].bytes, places[i].at), places[i].bytes);
		close(fd);
		struct seen seen = read_all();
		expect_gap(&seen, EVENTS - seen.events);
		assert_int_equal(seen.gap.packets, 0);
		assert_int_equal(tear_down(state) | set_up(state), 0);
	}
}

static void zeros_at_the_end_of_the_last_file_are_a_gap_without_an_end_time(void **state)
{
	static const char zeros[300];
	record_files();
	char last[32];
	int number = 0;
	do
		snprintf(last, sizeof last, "stream-0-%d", number++);
	while (access(file(last), F_OK) == 0);
	snprintf(last, sizeof last, "stream-0-%d", number - 2);
	int fd = open(file(last), O_WRONLY);
	off_t end = lseek(fd, 0, SEEK_END);
	assert_int_equal(pwrite(fd, zeros, sizeof zeros, end - (off_t)sizeof zeros), sizeof zeros);
	close(fd);
	struct seen seen = read_all();
	assert_true(seen.events < EVENTS && seen.jump_from == -1);
	assert_int_equal(seen.gaps, 1);
	assert_true(seen.gap.to_ns == INT64_MAX);
}

static void *record_once(void *arg)
{
	weft_await(1, 2);
	return arg;
}

/* Three OS threads run at once; the stream of the middle one is missing. */
static void missing_stream_is_a_gap(void **state)
{
	struct weft_record_options options = {.mode = WEFT_RECORD_GROW, .directory = path};
	pthread_t thread;
	assert_int_equal(weft_start(&options), WEFT_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, record_once, NULL), 0);
		if (i == 2)
			weft_await(3, 4);
		pthread_join(thread, NULL);
	}
	weft_await(5, 6);
	weft_stop();
	struct weft_trace *trace;
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	size_t streams = weft_trace_info(trace)->stream_count;
	weft_trace_close(trace);
	if (streams < 2)
		skip();
	assert_int_equal(unlink(file("stream-0-0")), 0);
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->stream_count, streams);
	assert_int_equal(info->gap_count, 1);
	assert_true(info->gaps[0].from_ns == INT64_MIN && info->gaps[0].to_ns == INT64_MAX);
	assert_int_equal(info->streams[info->gaps[0].stream].packets, 0);
	assert_int_equal(info->skipped_count, 1);
	weft_trace_close(trace);
}

static void *record_as(void *name)
{
	pthread_setname_np(pthread_self(), name);
	return record_once(name);
}

/* Packs the trace directory, without the files that match `without`, into an archive and opens it. */
static struct weft_trace *open_archive(const char *without)
{
	char command[512], archive[128];
	struct weft_trace *trace;
	struct weft_error err = {0};
	snprintf(archive, sizeof archive, "%s/archive.tar", scratch);
	snprintf(command, sizeof command, "cd %s && tar cf archive.tar --exclude='%s' trace", scratch, without);
	assert_int_equal(system(command), 0);
	if (weft_trace_open(&trace, archive, &err) < 0)
		fail_msg("%s", err.what);
	return trace;
}

/* A killed program has written no count of packets, but its definitions list the OS threads. */
static void definitions_list_the_threads_of_a_killed_program(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		struct weft_record_options options = {.mode = WEFT_RECORD_GROW, .directory = path};
		pthread_t thread;
		bool fine = weft_start(&options) == WEFT_OK;
		weft_await(3, 4);
		for (int i = 0; i < 2; i++)
			fine = fine && pthread_create(&thread, NULL, record_as, i ? "green" : "red") == 0 &&
			       pthread_join(thread, NULL) == 0;
		raise(fine ? SIGKILL : SIGTERM);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	struct weft_trace *trace = open_archive("none");
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_true(info->unfinished);
	/* A file that was prepared for the next OS thread is no stream. */
	assert_int_equal(info->stream_count, 3);
	assert_int_equal(info->gap_count, 0);
	weft_trace_close(trace);
	trace = open_archive("stream-1-*");
	info = weft_trace_info(trace);
	assert_int_equal(info->stream_count, 2);
	assert_int_equal(info->skipped_count, 1);
	assert_string_equal(info->skipped[0].where.what, "all packets of 1 stream are missing");
	assert_int_equal(info->gap_count, 1);
	assert_int_equal(info->gaps[0].stream, 1);
	weft_trace_close(trace);
}

/* ---- Packets without the rest of their trace ---- */

static void record_one(void)
{
	struct weft_record_options options = {.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 16};
	memset(buffer, 0, sizeof buffer);
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_await(1, 2);
	weft_stop();
}

static void packet_of_another_trace_after_the_end_is_skipped(void **state)
{
	enum { TAIL = 1000 };
	static _Alignas(8) unsigned char both[sizeof buffer + TAIL];
	struct weft_packet_header header;
	struct weft_trace *trace;
	record_one();
	memcpy(both, buffer, sizeof buffer);
	record_one();
	memcpy(both + sizeof buffer, buffer + find_packet(0, &header), TAIL);
	assert_int_equal(weft_trace_open_memory(&trace, both, sizeof both, "both", NULL), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->skipped_count, 1);
	assert_string_equal(info->skipped[0].where.what, "a packet of another trace");
	assert_int_equal(info->skipped[0].where.offset, sizeof buffer);
	assert_int_equal(info->skipped[0].bytes, TAIL);
	weft_trace_close(trace);
}

static void trace_without_metadata_has_no_process_name(void **state)
{
	struct weft_trace *trace;
	record_files();
	assert_int_equal(weft_trace_open(&trace, file("stream-0-0"), NULL), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->host.len + info->process.len + info->command.len + info->runtimes.len, 0);
	weft_trace_close(trace);
}

/* struct weft_event has 16 bits for the number of a stream. */
static void streams_beyond_the_maximum_share_the_last_stream_number(void **state)
{
	enum { COUNT = UINT16_MAX + 5, BYTES = 256 };
	struct weft_packet_header header;
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count, seen = 0, shared = 0;
	unsigned char *all = malloc((size_t)COUNT * BYTES);
	assert_non_null(all);
	record_one();
	size_t from = find_packet(0, &header);
	assert_true(header.content_size <= BYTES * 8);
	header.packet_size = BYTES * 8;
	for (uint32_t i = 0; i < COUNT; i++) {
		header.stream_instance_id = i;
		memcpy(all + (size_t)i * BYTES, buffer + from, BYTES);
		memcpy(all + (size_t)i * BYTES, &header, sizeof header);
	}
	assert_int_equal(weft_trace_open_memory(&trace, all, (size_t)COUNT * BYTES, "all", NULL), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->stream_count, UINT16_MAX + 1);
	while (weft_trace_next(trace, &events, &count) == 1)
		for (size_t i = 0; i < count; i++, seen++)
			shared += events[i].stream == UINT16_MAX;
	assert_int_equal(seen, COUNT);
	assert_int_equal(shared, COUNT - UINT16_MAX);
	weft_trace_close(trace);
	free(all);
}

static void read_in_memory(const void *bytes, size_t size)
{
	struct weft_trace *trace;
	const struct weft_event *events;
	size_t count;
	assert_int_equal(weft_trace_open_memory(&trace, bytes, size, "memory", NULL), WEFT_OK);
	while (weft_trace_next(trace, &events, &count) == 1)
		;
	weft_trace_close(trace);
}

/* The reader gets a trace that is cut, or that is followed by other bytes; the page behind these bytes is unreadable. */
static void reader_of_a_trace_in_memory_reads_no_byte_after_its_end(void **state)
{
	enum { PAGE = 4096, ROOM = 16 * PAGE, TAIL = 200 };
	static const char *const names[] = {"definitions-0", "stream-0-0"};
	static unsigned char whole[ROOM];
	unsigned char *room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      *end = room + ROOM;
	size_t size = 0;
	assert_true(room != MAP_FAILED && mprotect(end, PAGE, PROT_NONE) == 0);
	record_files();
	for (int i = 0; i < 2; i++) {
		FILE *in = fopen(file(names[i]), "rb");
		assert_non_null(in);
		size += fread(whole + size, 1, ROOM - TAIL - size, in);
		assert_true(feof(in));
		fclose(in);
	}
	for (size_t cut = 1; cut < 2 * PAGE; cut += cut < 300 ? 1 : 61) {
		memcpy(end - (size - cut), whole, size - cut);
		read_in_memory(end - (size - cut), size - cut);
	}
	for (size_t tail = 0; tail <= TAIL; tail++)
		for (int fill = 0; fill < 2; fill++) {
			memset(end - tail, fill, tail);
			memcpy(end - tail - size, whole, size);
			read_in_memory(end - tail - size, size + tail);
		}
	munmap(room, ROOM + PAGE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(busy_ring_is_copied_without_gaps),
	    TEST(all_streams_of_a_copied_ring_end_at_the_same_moment),
	    TEST(reader_slower_than_the_ring_reports_a_gap),
	    TEST(packet_started_after_the_copy_is_found),
	    TEST(missing_middle_file_is_a_gap),
	    TEST(missing_first_file_is_a_gap),
	    TEST(zeros_in_a_middle_trace_file_are_reported_as_a_gap),
	    TEST(zeros_at_the_end_of_the_last_file_are_a_gap_without_an_end_time),
	    TEST(missing_stream_is_a_gap),
	    TEST(definitions_list_the_threads_of_a_killed_program),
	    TEST(packet_of_another_trace_after_the_end_is_skipped),
	    TEST(trace_without_metadata_has_no_process_name),
	    TEST(streams_beyond_the_maximum_share_the_last_stream_number),
	    TEST(reader_of_a_trace_in_memory_reads_no_byte_after_its_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
