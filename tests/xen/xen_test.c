/* xen_test.c: rings shared by a guest and read by domain 0, without Xen (fake.h).  SPDX-License-Identifier: ISC */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "allocations.h"
#include "fake.h"

/* A mirage ring with an overwritten packet. */
static const char mirage_path[] = MIRAGE_RING;

static struct fake fake;
static struct weft_error err;

static int open_guest(struct weft_trace **out)
{
	const struct domain_host host = fake_host(&fake);
	int status = domain_open_on_host(&host, out, "xen:guest", &err);
	assert_int_equal(fake.mapped, 0);
	return status;
}

/* Checks that the trace cannot be opened, with this status and line. */
static void refuses(int status, const char *what)
{
	struct weft_trace *trace = NULL;
	assert_int_equal(open_guest(&trace), status);
	assert_null(trace);
	assert_string_equal(err.file, "xen:guest");
	if (!strstr(err.what, what))
		fail_msg("'%s' is not in '%s'", what, err.what);
}

static long count_events(struct weft_trace *trace)
{
	const struct weft_event *events;
	size_t count;
	long all = 0;
	while (weft_trace_next(trace, &events, &count) == 1)
		all += (long)count;
	return all;
}

static void record(long count)
{
	for (long i = 0; i < count; i++) {
		weft_id id = WEFT_CREATE(WEFT_KIND_TASK);
		WEFT_LABEL(id, "one of many");
		weft_run(id);
		weft_resolve(id, id);
	}
}

static uint32_t refs[8192];

static struct weft_xen xen_of(size_t pages)
{
	return (struct weft_xen){.guest = &fake_guest, .data = &fake, .pages = pages, .refs = refs};
}

/* ---- References ---- */

static void valid_grant_reference_lists_are_parsed_and_others_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
		uint32_t last;
		size_t count;
	} lists[] = {
	    {"7", WEFT_OK, 7, 1},
	    {"1,2,3", WEFT_OK, 3, 3},
	    {"4294967295,0", WEFT_OK, 0, 2},
	    {"0000000000000000000012", WEFT_OK, 12, 1},
	    {"1,2\n", WEFT_OK, 2, 2},
	    {"", WEFT_EFORMAT, 0, 0},
	    {"\n", WEFT_EFORMAT, 0, 0},
	    {",", WEFT_EFORMAT, 0, 0},
	    {"1,", WEFT_EFORMAT, 0, 0},
	    {",1", WEFT_EFORMAT, 0, 0},
	    {"1,,2", WEFT_EFORMAT, 0, 0},
	    {"1, 2", WEFT_EFORMAT, 0, 0},
	    {"-1", WEFT_EFORMAT, 0, 0},
	    {"+1", WEFT_EFORMAT, 0, 0},
	    {"0x10", WEFT_EFORMAT, 0, 0},
	    {"4294967296", WEFT_EFORMAT, 0, 0},
	    {"18446744073709551617", WEFT_EFORMAT, 0, 0},
	    {"hello", WEFT_EFORMAT, 0, 0},
	};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		domain_refs found = {0};
		assert_int_equal(domain_parse_refs(&found, lists[i].text, strlen(lists[i].text)), lists[i].status);
		if (lists[i].status == WEFT_OK) {
			assert_int_equal(found.count, lists[i].count);
			assert_int_equal(found.items[found.count - 1], lists[i].last);
		}
		weft_vec_free(&found);
	}
	domain_refs found = {0};
	assert_int_equal(domain_parse_refs(&found, "1\0002", 3), WEFT_EFORMAT);
	weft_vec_free(&found);
}

static void million_grant_references_are_refused(void **state)
{
	/* 1000 nodes of 1000. */
	char text[2001], path[64];
	for (int i = 0; i < 1000; i++)
		memcpy(text + 2 * (size_t)i, "8,", 2);
	text[1999] = 0;
	fake_init(&fake, 1);
	fake.granted[0] = true;
	for (int node = 0; node < 1000; node++) {
		snprintf(path, sizeof path, node ? WEFT_XEN_NODE "-%d" : WEFT_XEN_NODE, node);
		fake_write(&fake, path, text);
	}
	refuses(WEFT_ETOOBIG, "publishes more than 65536 pages");
	fake_finish(&fake);
}

static void grant_references_that_cannot_be_mapped_are_refused(void **state)
{
	fake_init(&fake, 4000);
	for (int i = 0; i < 3000; i++)
		fake.granted[i] = true;
	fake_write(&fake, WEFT_XEN_NODE, "8,9,3");
	refuses(WEFT_EACCES, "cannot map page 3 of 3: the program that shared them has ended, or reference 3 was never granted");
	/* The wrong reference is found in any part of the ring. */
	char text[40000] = "", *end = text;
	for (int i = 0; i < 2500; i++)
		end += sprintf(end, "%s%d", i ? "," : "", i == 2222 ? 99999 : 8 + i);
	fake_write(&fake, WEFT_XEN_NODE, text);
	refuses(WEFT_EACCES, "cannot map page 2223 of 2500");
	/* One page may be named many times. */
	fake_write(&fake, WEFT_XEN_NODE, "8,8,8,8");
	refuses(WEFT_EFORMAT, "the domain shares 4 pages, but no trace in a format that weft reads");
	fake_finish(&fake);
}

static void xen_domain_without_a_ring_or_of_an_unknown_name_is_refused(void **state)
{
	const struct domain_host host = fake_host(&fake);
	struct weft_trace *trace = NULL;
	fake_init(&fake, 1);
	static const struct {
		const char *path, *what;
	} wrong[] = {
	    {"xen:gues", "no such domain; there are Domain-0, guest"}, {"xen:", "no such domain"}, {"xen:6", "no such domain"},
	    {"xen:99999999999999999999", "no such domain"}, {"xen:odd", "no such domain"},
	    {"xen:guest", "the domain publishes no ring buffer: there is no data/mprof/ring-ref"},
	    {"xen:12", "publishes no ring buffer"},
	    {"xen:5", "publishes no ring buffer"}, /* an id takes precedence over a name */
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(domain_open_on_host(&host, &trace, wrong[i].path, &err), WEFT_ENOENT);
		assert_string_equal(err.file, wrong[i].path);
		assert_non_null(strstr(err.what, wrong[i].what));
		assert_int_equal(domain_open_on_host(&host, &trace, wrong[i].path, NULL), WEFT_ENOENT);
	}
	fake_finish(&fake);
}

/* ---- Rings ---- */

static void ring_of_few_pages_needs_one_xenstore_node(void **state)
{
	struct weft_trace *trace;
	fake_init(&fake, 64);
	struct weft_xen xen = xen_of(64);
	assert_int_equal(weft_xen_start(&xen, &(struct weft_record_options){.host = "mini", .process = "one"}), WEFT_OK);
	assert_int_equal(weft_xen_share(&xen), WEFT_EBUSY);
	assert_string_not_equal(xen.error, "");
	record(100);
	/* One node, as in the reference implementation. */
	assert_int_equal(fake.node_count, 1);
	assert_memory_equal(fake_read(&fake, "data/mprof/ring-ref"), "8,9,10,11,", 10);
	assert_int_equal(open_guest(&trace), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(count_events(trace), 400);
	assert_int_equal(info->skipped_count, 0);
	assert_true(info->unfinished);
	assert_memory_equal(info->host.ptr, "mini", 4);
	/* The trace is a copy: later changes of the domain do not affect it. */
	memset(fake.shared, 0xa5, 4096);
	weft_stop();
	weft_xen_unshare(&xen);
	weft_trace_rewind(trace);
	assert_int_equal(count_events(trace), 400);
	weft_trace_close(trace);
	refuses(WEFT_ENOENT, "the domain publishes no ring");
	assert_int_equal(fake.node_count, 0);
	weft_xen_unshare(&xen);
	fake_finish(&fake);
}

static void ring_of_many_pages_needs_several_xenstore_nodes(void **state)
{
	struct weft_trace *trace;
	fake_init(&fake, 8192);
	struct weft_xen xen = xen_of(8192);
	assert_int_equal(weft_xen_start(&xen, NULL), WEFT_OK);
	size_t nodes = fake.node_count;
	assert_true(nodes > 20);
	for (size_t i = 0; i < nodes; i++)
		assert_true(strlen(fake.nodes[i].value) <= 1920);
	record(700000);
	assert_int_equal(open_guest(&trace), WEFT_OK);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(count_events(trace) + (long)info->streams[0].lost_overwritten, 2800000);
	assert_int_equal(info->skipped_count, 0);
	assert_true(info->streams[0].bytes > 28 << 20);
	weft_trace_close(trace);

	/* A reader that knows only the first node still finds a trace. */
	char *first = strdup(fake_read(&fake, WEFT_XEN_NODE));
	struct fake other = fake;
	fake.nodes = NULL;
	fake.node_count = 0;
	fake_write(&fake, WEFT_XEN_NODE, first);
	assert_int_equal(open_guest(&trace), WEFT_OK);
	assert_true(count_events(trace) > 5000);
	weft_trace_close(trace);
	free(fake.nodes[0].path);
	free(fake.nodes[0].value);
	free(fake.nodes);
	fake = other;
	free(first);

	/* A program that was not asked to stop is followed by a shorter ring: its nodes are there, and no others. */
	weft_stop();
	struct weft_xen next = xen_of(700);
	assert_int_equal(weft_xen_start(&next, NULL), WEFT_OK);
	assert_int_equal(fake.node_count, 2);
	record(10);
	assert_int_equal(open_guest(&trace), WEFT_OK);
	assert_int_equal(count_events(trace), 40);
	weft_trace_close(trace);
	weft_stop();
	weft_xen_unshare(&next);
	fake_finish(&fake);
}

static void failed_call_of_a_guest_leaves_no_page_shared(void **state)
{
	/* If any call of the guest fails, nothing stays shared, nothing records, and there is an error text. */
	long calls = 0;
	for (;; calls++) {
		fake_init(&fake, 1000);
		struct weft_xen xen = xen_of(1000);
		fake.calls = calls;
		int status = weft_xen_start(&xen, NULL);
		if (status == WEFT_OK) {
			weft_stop();
			fake.calls = -1;
			weft_xen_unshare(&xen);
			fake_finish(&fake);
			break;
		}
		assert_string_not_equal(xen.error, "");
		assert_false(xen.is_shared);
		assert_false(weft_is_on());
		assert_null(fake.shared);
		fake_finish(&fake);
	}
	/* share, remove, 2 nodes, remove old nodes, the first node */
	assert_true(calls >= 5);

	fake_init(&fake, 2);
	struct weft_xen xen = xen_of(2);
	assert_int_equal(weft_xen_start(&xen, NULL), WEFT_ETOOBIG);
	assert_string_equal(xen.error, "the ring is too small for that many packets");
	assert_null(fake.shared);
	xen = xen_of(0);
	assert_int_equal(weft_xen_share(&xen), WEFT_EINVAL);
	xen = xen_of(2);
	xen.memory = (char *)refs + 8;
	assert_int_equal(weft_xen_share(&xen), WEFT_EINVAL);
	fake_finish(&fake);
}

/* Puts these bytes into the pages. */
static void share_bytes(struct weft_xen *xen, const void *bytes, size_t size)
{
	assert_int_equal(weft_xen_share(xen), WEFT_OK);
	assert_true(size <= xen->pages * WEFT_XEN_PAGE);
	memcpy(xen->memory, bytes, size);
	assert_int_equal(weft_xen_publish(xen), WEFT_OK);
}

static size_t read_mirage(unsigned char *to, size_t room)
{
	FILE *file = fopen(mirage_path, "rb");
	assert_non_null(file);
	size_t size = fread(to, 1, room, file);
	fclose(file);
	return size;
}

static void mirage_rings_are_read(void **state)
{
	unsigned char bytes[8192];
	size_t size = read_mirage(bytes, sizeof bytes);
	struct weft_trace *file, *trace;
	assert_int_equal(weft_trace_open_memory(&file, bytes, size, "file", &err), WEFT_OK);
	fake_init(&fake, 2);
	struct weft_xen xen = xen_of(2);
	share_bytes(&xen, bytes, size);
	assert_int_equal(open_guest(&trace), WEFT_OK);
	assert_string_equal(weft_trace_info(trace)->format, "mirage");
	long events = count_events(trace);
	assert_true(events > 0);
	assert_int_equal(events, count_events(file));
	weft_trace_close(trace);
	weft_trace_close(file);
	weft_xen_unshare(&xen);
	fake_finish(&fake);
}

/* ---- Changes during a read ---- */

static volatile bool stop;

static void *write_on(void *nothing)
{
	while (!stop)
		record(100);
	return NULL;
}

static void *scribble(void *pages)
{
	uint64_t random = 1;
	volatile unsigned char *memory = fake.shared;
	size_t size = *(size_t *)pages * DOMAIN_PAGE_BYTES;
	while (!stop)
		for (int i = 0; i < 1000; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			memory[4096 + (random >> 20) % (size - 4096)] = (unsigned char)(random >> 12);
		}
	return NULL;
}

/* Sanitizers slow the reader down so much that the writer is always ahead: then the ring is refused, rightly. */
#if defined(__SANITIZE_ADDRESS__)
#define READS_SLOWLY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define READS_SLOWLY 1
#endif
#endif

static void ring_is_read_while_written(void **state)
{
#ifdef READS_SLOWLY
	skip();
#endif
	pthread_t writer;
	fake_init(&fake, 128);
	struct weft_xen xen = xen_of(128);
	assert_int_equal(weft_xen_start(&xen, &(struct weft_record_options){.streams = 2}), WEFT_OK);
	stop = false;
	assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
	for (int i = 0; i < 200; i++) {
		struct weft_trace *trace;
		const struct weft_event *events;
		size_t count;
		assert_int_equal(open_guest(&trace), WEFT_OK);
		while (weft_trace_next(trace, &events, &count) == 1)
			for (size_t k = 0; k < count; k++)
				if (events[k].op == WEFT_OP_LABEL)
					assert_memory_equal(events[k].text.ptr, "one of many", 11);
		const struct weft_trace_info *info = weft_trace_info(trace);
		if (info->skipped_count)
			fail_msg("%s", info->skipped[0].where.what);
		weft_trace_close(trace);
	}
	stop = true;
	pthread_join(writer, NULL);
	weft_stop();
	weft_xen_unshare(&xen);
	fake_finish(&fake);
}

static void scribbled_over(bool mirage)
{
	unsigned char bytes[8192];
	pthread_t scribbler;
	size_t pages = mirage ? 2 : 32;
	for (int i = 0; i < 100; i++) {
		fake_init(&fake, pages);
		struct weft_xen xen = xen_of(pages);
		if (mirage) {
			/* Repeats the trace as long as there is space to scribble on. */
			size_t size = read_mirage(bytes, sizeof bytes);
			for (size_t at = size; at < sizeof bytes; at++)
				bytes[at] = bytes[at % size];
			share_bytes(&xen, bytes, sizeof bytes);
		} else {
			assert_int_equal(weft_xen_start(&xen, NULL), WEFT_OK);
			record(2000);
			weft_stop();
		}
		stop = false;
		assert_int_equal(pthread_create(&scribbler, NULL, scribble, &pages), 0);
		for (int k = 0; k < 3; k++) {
			struct weft_trace *trace;
			if (open_guest(&trace) == WEFT_OK) {
				count_events(trace);
				weft_trace_close(trace);
			}
		}
		stop = true;
		pthread_join(scribbler, NULL);
		weft_xen_unshare(&xen);
		fake_finish(&fake);
	}
}

static void ring_overwritten_by_the_guest_during_a_read_crashes_no_reader(void **state)
{
	scribbled_over(false);
	scribbled_over(true);
}

static void failed_allocation_while_reading_a_domain_is_reported(void **state)
{
	fake_init(&fake, 2048);
	struct weft_xen xen = xen_of(2048);
	assert_int_equal(weft_xen_start(&xen, NULL), WEFT_OK);
	record(10);
	weft_stop();
	for (long left = 0;; left++) {
		struct weft_trace *trace = NULL;
		allocations_left = left;
		int status = open_guest(&trace);
		allocations_left = -1;
		weft_trace_close(trace);
		if (status == WEFT_OK)
			break;
		assert_true(left < 1000);
		assert_null(trace);
		assert_string_equal(err.file, "xen:guest");
	}
	weft_xen_unshare(&xen);
	fake_finish(&fake);
}

/* Runs also after a failed test. */
static int clean_up(void **state)
{
	stop = true;
	weft_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(valid_grant_reference_lists_are_parsed_and_others_refused, clean_up),
	    cmocka_unit_test_teardown(million_grant_references_are_refused, clean_up),
	    cmocka_unit_test_teardown(grant_references_that_cannot_be_mapped_are_refused, clean_up),
	    cmocka_unit_test_teardown(xen_domain_without_a_ring_or_of_an_unknown_name_is_refused, clean_up),
	    cmocka_unit_test_teardown(ring_of_few_pages_needs_one_xenstore_node, clean_up),
	    cmocka_unit_test_teardown(ring_of_many_pages_needs_several_xenstore_nodes, clean_up),
	    cmocka_unit_test_teardown(failed_call_of_a_guest_leaves_no_page_shared, clean_up),
	    cmocka_unit_test_teardown(mirage_rings_are_read, clean_up),
	    cmocka_unit_test_teardown(ring_is_read_while_written, clean_up),
	    cmocka_unit_test_teardown(ring_overwritten_by_the_guest_during_a_read_crashes_no_reader, clean_up),
	    cmocka_unit_test_teardown(failed_allocation_while_reading_a_domain_is_reported, clean_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
