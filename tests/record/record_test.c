/* record_test.c: the reader returns exactly the events that were recorded.  SPDX-License-Identifier: ISC */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

static struct weft_record_text requests = WEFT_COUNTER("requests");

/* Records every call once, with ids around a and b; returns the number of events. */
static size_t say_everything(weft_id a, weft_id b, int64_t value)
{
	weft_label_text(a, WEFT_TEXT("literal"));
	weft_label(a, "copied");
	weft_label_bytes(a, "by\0tes", 6);
	weft_should_resolve(a);
	weft_await(a, b);
	weft_read(a, b);
	weft_read_later(a, b);
	weft_resolve(a, b);
	WEFT_FAIL(a, b, "lost");
	weft_fail(a, b, "broken");
	weft_become(a, b);
	weft_signal(a, b);
	weft_signal_only(a, b);
	weft_run(a);
	weft_idle(WEFT_IDLE_HIBERNATE);
	weft_resume(a);
	weft_counter_set(a, &requests, value);
	weft_counter_add(a, &requests, -value);
	WEFT_PAUSE_BEGIN("gc");
	weft_pause_end();
	WEFT_PAUSE("fault", 77);
	WEFT_NOTE(a, "noted");
	weft_note(a, "copied note");
	weft_pending(a, b, WEFT_KIND_TIMER, NULL, 0, "old");
	weft_still_awaits(b, a);
	weft_awaits_no_more(b, a);
	weft_hold(a, b);
	weft_release(a, b);
	weft_belongs(b, a);
	weft_message(a, 4000000000u, "bus :1.5", false);
	weft_message(b, 7, "bus :1.5", true);
	weft_spins(a, UINT64_C(1) << 40);
	weft_sent(a, UINT64_C(0x1fffffffe));
	weft_received(b, 3);
	return 34;
}

static void expect_everything(const struct weft_event *e, weft_id a, weft_id b, int64_t value)
{
	const struct {
		enum weft_op op;
		weft_id a, b;
		int64_t value;
		const char *text;
	} expected[] = {
	    {WEFT_OP_LABEL, a, 0, 0, "literal"},
	    {WEFT_OP_LABEL, a, 0, 0, "copied"},
	    {WEFT_OP_LABEL, a, 0, 0, "by\x1ates"},
	    {WEFT_OP_SHOULD_RESOLVE, a, 0, 0, ""},
	    {WEFT_OP_AWAIT, a, b, 0, ""},
	    {WEFT_OP_READ, a, b, 0, ""},
	    {WEFT_OP_READ_LATER, a, b, 0, ""},
	    {WEFT_OP_RESOLVE, a, b, 0, ""},
	    {WEFT_OP_FAIL, a, b, 0, "lost"},
	    {WEFT_OP_FAIL, a, b, 0, "broken"},
	    {WEFT_OP_BECOME, a, b, 0, ""},
	    {WEFT_OP_SIGNAL, a, b, 0, ""},
	    {WEFT_OP_SIGNAL_ONLY, a, b, 0, ""},
	    {WEFT_OP_RUN, a, 0, 0, ""},
	    {WEFT_OP_IDLE, 0, 0, WEFT_IDLE_HIBERNATE, ""},
	    {WEFT_OP_RESUME, a, 0, 0, ""},
	    {WEFT_OP_COUNTER, a, 0, value, "requests"},
	    {WEFT_OP_COUNTER_ADD, a, 0, -value, "requests"},
	    {WEFT_OP_PAUSE_BEGIN, 0, 0, 0, "gc"},
	    {WEFT_OP_PAUSE_END, 0, 0, 0, ""},
	    {WEFT_OP_PAUSE, 0, 0, 77, "fault"},
	    {WEFT_OP_NOTE, a, 0, 0, "noted"},
	    {WEFT_OP_NOTE, a, 0, 0, "copied note"},
	    {WEFT_OP_PENDING, a, b, 0, "old"},
	    {WEFT_OP_STILL_AWAITS, b, a, 0, ""},
	    {WEFT_OP_AWAITS_NO_MORE, b, a, 0, ""},
	    {WEFT_OP_HOLD, a, b, 0, ""},
	    {WEFT_OP_RELEASE, a, b, 0, ""},
	    {WEFT_OP_BELONGS, b, a, 0, ""},
	    {WEFT_OP_DETAIL, a, 0, 4000000000, "bus :1.5"},
	    {WEFT_OP_DETAIL, b, 0, -7, "bus :1.5"},
	    {WEFT_OP_DETAIL, a, 0, INT64_C(1) << 40, ""},
	    {WEFT_OP_SENT, a, 0, 0xfffffffe, ""},
	    {WEFT_OP_RECEIVED, b, 0, 3, ""},
	};
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		assert_int_equal(e[i].op, expected[i].op);
		assert_int_equal(e[i].a, expected[i].a);
		assert_int_equal(e[i].b, expected[i].b);
		assert_int_equal(e[i].value, expected[i].value);
		if (expected[i].op == WEFT_OP_DETAIL)
			assert_int_equal(e[i].kind, expected[i].text[0] ? WEFT_DETAIL_MESSAGE : WEFT_DETAIL_SPIN);
		if (!text_is(e[i].text, expected[i].text))
			fail_msg("event %zu: \"%.*s\"", i, (int)e[i].text.len, e[i].text.ptr);
	}
}

static void test_every_call_is_recorded(void **state)
{
	const weft_id ids[][2] = {{WEFT_SYSTEM_ID, 5}, {INT32_MAX, INT32_MIN}, {(weft_id)INT32_MAX + 1, 3},
	    {1, -((weft_id)1 << 40)}, {INT64_MAX, INT64_MIN}};
	const int64_t values[] = {0, INT32_MIN, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MAX};
	start((struct weft_record_options){0});
	size_t said = 0;
	/* Records all calls twice: the first time by the slow path, then with all texts and sites interned. */
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < 5; i++)
			said += say_everything(ids[i][0], ids[i][1], values[i]);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.info->skipped_count, 0);
	assert_int_equal(r.info->lost_no_stream, 0);
	assert_int_equal(r.events.count, said);
	for (size_t i = 0; i < 10; i++)
		expect_everything(r.events.items + said / 10 * i, ids[i % 5][0], ids[i % 5][1], values[i % 5]);
	for (size_t i = 1; i < said; i++)
		assert_true(r.events.items[i].time_ns >= r.events.items[i - 1].time_ns);
	forget(&r);
}

static void test_creation_has_its_site(void **state)
{
	start((struct weft_record_options){.first_id = 100});
	weft_run(7);
	assert_int_equal(weft_running(), 7);
	int line = __LINE__ + 1;
	weft_id first = WEFT_CREATE(WEFT_KIND_REQUEST);
	weft_id second = WEFT_CREATE_BY(first, WEFT_KIND_TIMER), third = weft_create(second, WEFT_KIND_BIND, NULL);
	weft_stop();
	assert_int_equal(weft_running(), WEFT_SYSTEM_ID);
	assert_int_equal(WEFT_CREATE(WEFT_KIND_REQUEST), 0);
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 4);
	const struct weft_event *e = r.events.items + 1;
	assert_true(first >= 100 && second != first && third != second);
	assert_int_equal(e[0].a, 7);
	assert_int_equal(e[0].b, first);
	assert_int_equal(e[0].kind, WEFT_KIND_REQUEST);
	assert_int_equal(e[1].a, first);
	assert_int_equal(e[1].kind, WEFT_KIND_TIMER);
	assert_int_equal(e[2].b, third);
	assert_int_equal(e[2].site, WEFT_NO_SITE);
	const struct weft_site *site = &r.info->sites[e[0].site];
	assert_int_equal(site->line, line);
	assert_true(text_is(site->file, __FILE__) && text_is(site->function, __func__));
	assert_true(text_is(r.info->process, "record_test"));
	assert_int_equal(r.info->pid, getpid());
	forget(&r);
}

/* So many events fill several packets; the first event of each packet takes the slow path. */
static void test_creation_without_a_site_has_none(void **state)
{
	enum { COUNT = 5000 };
	start((struct weft_record_options){.size_bytes = 1 << 20, .packets = 16});
	WEFT_CREATE(WEFT_KIND_REQUEST);
	for (int i = 0; i < COUNT; i++)
		weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, NULL);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 1 + COUNT);
	assert_true(r.info->streams[0].packets > 1);
	assert_int_not_equal(r.events.items[0].site, WEFT_NO_SITE);
	for (size_t i = 1; i < r.events.count; i++)
		assert_int_equal(r.events.items[i].site, WEFT_NO_SITE);
	forget(&r);
}

static void test_internal_promise_has_owner_and_site(void **state)
{
	struct weft_record_place place = {.address = (const void *)(uintptr_t)test_internal_promise_has_owner_and_site};
	start((struct weft_record_options){.first_id = 100});
	weft_id owner = WEFT_CREATE(WEFT_KIND_REQUEST), part = weft_create_part(owner, WEFT_KIND_FS, &place, owner);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 3);
	const struct weft_event *e = r.events.items + 1;
	assert_int_equal(e[0].op, WEFT_OP_BELONGS);
	assert_int_equal(e[0].a, part);
	assert_int_equal(e[0].b, owner);
	assert_int_equal(e[1].a, owner);
	assert_int_equal(e[1].b, part);
	assert_int_equal(e[1].kind, WEFT_KIND_FS);
	assert_int_not_equal(e[1].site, WEFT_NO_SITE);
	assert_true(r.info->sites[e[1].site].offset > 0);
	forget(&r);
}

static void test_callers_have_sites(void **state)
{
	enum { CALLERS = WEFT_STACK_MAX };
	const char *code = (const char *)(uintptr_t)test_callers_have_sites;
	const void *callers[CALLERS];
	uint32_t sites[CALLERS];
	for (int i = 0; i < CALLERS; i++)
		callers[i] = code + (i * 7) % CALLERS;
	start((struct weft_record_options){.first_id = 100});
	weft_stack(100, callers, CALLERS);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 1);
	assert_int_equal(r.events.items[0].value, CALLERS);
	assert_int_equal(weft_trace_callers(r.info, r.events.items[0].text, sites, CALLERS), CALLERS);
	uint64_t first = r.info->sites[sites[0]].offset;
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(r.info->sites[sites[i]].offset - first, (i * 7) % CALLERS);
	forget(&r);
}

static void say_one(int which, int i)
{
	switch (which) {
	case 0: WEFT_CREATE(WEFT_KIND_TASK); break;
	case 1: weft_label(i, "a label"); break;
	case 2: weft_counter_add(i, &requests, 1); break;
	default: weft_await(i, i + 1);
	}
}

/* For every kind of event: an OS thread that is not inside the recorder at the stop has its packets counted. */
static void test_missing_last_trace_file_is_a_gap(void **state)
{
	for (int which = 0; which < 4; which++) {
		char name[256];
		int files = 0;
		start((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096, .overwrite = true});
		for (int i = 1; i < 1000; i++)
			say_one(which, i);
		weft_stop();
		do
			snprintf(name, sizeof name, "%s/stream-0-%d", directory, files++);
		while (access(name, F_OK) == 0);
		assert_true(files > 3);
		snprintf(name, sizeof name, "%s/stream-0-%d", directory, files - 2);
		assert_int_equal(unlink(name), 0);
		struct read_back r = read_directory(directory);
		assert_int_equal(r.info->gap_count, 1);
		assert_int_equal(r.info->gaps[0].packets, 1);
		forget(&r);
	}
}

static void test_ids_beyond_32_bits_are_kept(void **state)
{
	start((struct weft_record_options){.first_id = ((weft_id)1 << 32) - 3, .size_bytes = 1 << 20});
	weft_id ids[8];
	for (int i = 0; i < 8; i++)
		ids[i] = WEFT_CREATE(WEFT_KIND_TASK);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(r.events.items[i].b, ids[i]);
	assert_true(ids[7] > (weft_id)1 << 32);
	forget(&r);
}

static void expect_failure(struct weft_record_options options, int status)
{
	assert_int_equal(weft_start(&options), status);
	assert_true(weft_start_error()[0] != 0);
	assert_false(weft_is_on());
}

static void test_invalid_options_are_refused(void **state)
{
	static uint64_t buffer[64];
	expect_failure((struct weft_record_options){0}, WEFT_EINVAL);
	expect_failure((struct weft_record_options){.directory = directory, .buffer = buffer}, WEFT_EINVAL);
	expect_failure((struct weft_record_options){.directory = directory, .size_bytes = 1000}, WEFT_ETOOBIG);
	expect_failure((struct weft_record_options){.directory = directory, .packets = 1}, WEFT_EINVAL);
	expect_failure(
	    (struct weft_record_options){.directory = directory, .mode = WEFT_RECORD_GROW, .size_bytes = 100}, WEFT_ETOOBIG);
	expect_failure((struct weft_record_options){.directory = "/nowhere/at/all"}, WEFT_ENOENT);
	expect_failure((struct weft_record_options){.directory = ""}, WEFT_EINVAL);
	expect_failure((struct weft_record_options){.directory = directory, .clock = weft_now}, WEFT_EINVAL);
	expect_failure((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer}, WEFT_ETOOBIG);
	expect_failure((struct weft_record_options){.buffer = (char *)buffer + 1, .buffer_bytes = sizeof buffer}, WEFT_EINVAL);
	/* A size larger than any disk is an error at the start, and no signal later. */
	expect_failure(
	    (struct weft_record_options){.directory = directory, .size_bytes = (uint64_t)1 << 50, .packets = 65536}, WEFT_EINVAL);
	/* A failed start leaves no files. */
	assert_int_equal(access(directory, F_OK), -1);

	start((struct weft_record_options){0});
	struct weft_record_options again = {.directory = directory};
	assert_int_equal(weft_start(&again), WEFT_EBUSY);
	weft_stop();
	expect_failure((struct weft_record_options){.directory = directory}, WEFT_EEXIST);
	start((struct weft_record_options){.overwrite = true});
	weft_stop();
	char other[160];
	snprintf(other, sizeof other, "%s/mine.txt", directory);
	fclose(fopen(other, "w"));
	expect_failure((struct weft_record_options){.directory = directory, .overwrite = true}, WEFT_EEXIST);
	assert_int_equal(access(other, F_OK), 0);
	struct stat st;
	assert_int_equal(stat(directory, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	snprintf(other, sizeof other, "%s/metadata", directory);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_full_ring_keeps_the_newest_events(void **state)
{
	enum { COUNT = 40000 };
	start((struct weft_record_options){.size_bytes = 65536, .packets = 4});
	for (int i = 0; i < COUNT; i++)
		weft_await(i, i + 1);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_true(r.info->wrapped);
	assert_int_equal(r.info->skipped_count, 0);
	assert_int_equal(r.events.count + r.info->streams[0].lost_overwritten, COUNT);
	assert_true(r.events.count > 3 * 16384 / 13 - 200);
	for (size_t i = 0; i < r.events.count; i++)
		assert_int_equal(r.events.items[i].a, COUNT - r.events.count + i);
	forget(&r);
}

static void test_full_growing_trace_keeps_the_oldest_events(void **state)
{
	enum { COUNT = 40000 };
	start((struct weft_record_options){.mode = WEFT_RECORD_GROW, .size_bytes = 1 << 17, .packet_bytes = 1 << 15});
	for (int i = 0; i < COUNT; i++)
		weft_await(i, i + 1);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_false(r.info->wrapped);
	assert_int_equal(r.info->streams[0].packets, 4);
	assert_int_equal(r.events.count + r.info->streams[0].lost_full, COUNT);
	for (size_t i = 0; i < r.events.count; i++)
		assert_int_equal(r.events.items[i].a, i);
	forget(&r);
}

static void test_growing_trace_in_a_buffer_keeps_the_oldest_events(void **state)
{
	static uint64_t buffer[8192];
	enum { EVENTS = 20000 };
	memset(buffer, 0, sizeof buffer);
	start((struct weft_record_options){
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .packet_bytes = 4096, .mode = WEFT_RECORD_GROW});
	for (int i = 0; i < EVENTS; i++)
		weft_await(i, i + 1);
	weft_stop();
	struct read_back r = read_memory(buffer, sizeof buffer);
	assert_true(r.info->streams[0].packets > 8);
	assert_int_equal(r.events.count + r.info->streams[0].lost_full, EVENTS);
	for (size_t i = 0; i < r.events.count; i++)
		assert_int_equal(r.events.items[i].a, i);
	forget(&r);
}

static void test_ring_in_a_caller_buffer_is_readable_while_recording(void **state)
{
	static uint64_t buffer[8192];
	start((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer});
	for (int i = 0; i < 20000; i++) {
		weft_await(i, i + 1);
		if (i == 100 || i == 19999) {
			/* A reader of the memory during the recording gets all events up to the newest one. */
			struct read_back live = read_memory(buffer, sizeof buffer);
			assert_int_equal(live.events.items[live.events.count - 1].a, i);
			forget(&live);
		}
	}
	weft_stop();
	struct read_back r = read_memory(buffer, sizeof buffer);
	assert_true(r.info->wrapped);
	assert_int_equal(r.events.count + r.info->streams[0].lost_overwritten, 20000);
	forget(&r);
}

/* ---- Clocks ---- */

static uint64_t ticks;

static uint64_t fake_clock(void)
{
	return ticks;
}

static void test_large_clock_step_is_kept_and_negative_step_becomes_zero(void **state)
{
	const uint64_t times[] = {1000, 1001, 1001 + ((uint64_t)1 << 29), (uint64_t)1 << 32, ((uint64_t)1 << 32) + 1,
	    (uint64_t)1 << 45, ((uint64_t)1 << 45) - 77, ((uint64_t)1 << 45) + 1};
	ticks = 500;
	start((struct weft_record_options){.clock = fake_clock, .clock_hz = 1000000000});
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		ticks = times[i];
		weft_run((weft_id)i);
	}
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, sizeof times / sizeof times[0]);
	for (size_t i = 0; i < r.events.count; i++)
		assert_int_equal(r.events.items[i].time_ns, i == 6 ? times[5] : times[i]);
	forget(&r);
}

static int64_t utc_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void test_packet_headers_have_the_time_of_day(void **state)
{
	static uint64_t buffer[8192];
	int64_t before = utc_ns();
	ticks = 3600000000000;
	start((struct weft_record_options){
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .clock = fake_clock, .clock_hz = 1000000000});
	weft_run(1);
	weft_stop();
	int64_t after = utc_ns();
	/* The packet with the metadata is overwritten by zeros, like a page that was swapped out. */
	memset(buffer, 0, ((struct weft_packet_header *)buffer)->packet_size / 8);
	struct read_back r = read_memory(buffer, sizeof buffer);
	assert_true(r.info->has_origin);
	assert_int_equal(r.events.count, 1);
	assert_in_range(r.info->clock_origin_ns + r.events.items[0].time_ns, before, after);
	forget(&r);
}

/* Length of a tick of the test's clock, which may differ from the frequency in the metadata. */
static double ns_of_tick;

static uint64_t wall_of_ticks(void)
{
	return 1700000000000000000u + (uint64_t)((double)ticks * ns_of_tick + 0.5);
}

/* Replaces the text in a buffer's metadata that says how well the clock's frequency is known. */
static void say_measured(uint64_t *buffer, const char *how)
{
	struct weft_packet_header *h = (struct weft_packet_header *)buffer;
	char *text = (char *)(h + 1), *end = (char *)h + h->content_size / 8, *old = strstr(text, "clock_measured = \"");
	assert_non_null(old);
	old += strlen("clock_measured = \"");
	char *rest = strchr(old, '"');
	ptrdiff_t longer = (ptrdiff_t)strlen(how) - (rest - old);
	memmove(rest + longer, rest, (size_t)(end - rest));
	memcpy(old, how, strlen(how));
	h->content_size += (uint64_t)(longer * 8);
	assert_true(h->content_size <= h->packet_size);
}

static void test_badly_measured_clock_frequency_is_corrected_by_wall_time(void **state)
{
	const struct {
		const char *measured;
		uint64_t last;     /* tick */
		double ns_of_tick; /* 1 ns is the value in the metadata */
		bool corrected;
	} cases[] = {{"hurried", 4000000000, 1.0005, true}, {"hurried", 4000000000, 0.9995, true},
	    {"exact", 4000000000, 1.0005, false}, {"hurried", 499000000, 1.0005, false}, {"hurried", 700000000, 1.0005, true},
	    /* Wall time is not used if it was set during the recording. */
	    {"hurried", 4000000000, 1.002, false}, {"hurried", 4000000000, 0.998, false}};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		static uint64_t buffer[16384];
		enum { FIRST = 1000000000, EVENTS = 3000 };
		memset(buffer, 0, sizeof buffer);
		ticks = FIRST;
		ns_of_tick = cases[c].ns_of_tick;
		start((struct weft_record_options){.buffer = buffer,
		    .buffer_bytes = sizeof buffer,
		    .packets = 8,
		    .clock = fake_clock,
		    .clock_hz = 1000000000,
		    .wall_ns = wall_of_ticks});
		for (int i = 0; i < EVENTS; i++) {
			ticks = FIRST + cases[c].last / (EVENTS - 1) * (uint64_t)i;
			weft_await(i, i + 1);
		}
		double last_tick = (double)ticks;
		weft_stop();
		say_measured(buffer, cases[c].measured);
		struct read_back r = read_memory(buffer, sizeof buffer);
		assert_int_equal(r.events.count, EVENTS);
		double rate = cases[c].corrected ? ns_of_tick : 1;
		double error = (double)r.events.items[EVENTS - 1].time_ns - last_tick * rate;
		if (error < -20 || error > 20)
			fail_msg("case %zu: the last event is off by %.0f ns", c, error);
		/* The time of day of the first event is always right, because clock and time of day were read together at the
		 * start. */
		int64_t day = r.info->clock_origin_ns + r.events.items[0].time_ns;
		double day_error = (double)(day - (int64_t)1700000000000000000) - FIRST * ns_of_tick;
		if (day_error < -300 || day_error > 300)
			fail_msg("case %zu: the time of day is off by %.0f ns", c, day_error);
		forget(&r);
	}
}

/* The ring, and the largest number of its packets that were locked for reuse at a reading of the time of day. */
static uint64_t reused_ring[4096];
static unsigned looks, locked_at_most;

static uint64_t wall_of_one_who_looks(void)
{
	unsigned locked = 0;
	for (size_t i = 0; i + sizeof(struct weft_packet_header) / 8 <= sizeof reused_ring / 8; i++) {
		const struct weft_packet_header *h = (const struct weft_packet_header *)(const void *)&reused_ring[i];
		locked += h->magic == WEFT_PACKET_MAGIC && h->lock % 2 == 1;
	}
	looks++;
	locked_at_most = locked > locked_at_most ? locked : locked_at_most;
	return 1700000000000000000u + looks;
}

/* The recorder reads the time of day while it fills the new header of a packet; at this time, the packet is locked, so that a
 * reader skips it. */
static void test_packet_is_locked_before_reuse(void **state)
{
	memset(reused_ring, 0, sizeof reused_ring);
	looks = locked_at_most = 0;
	start((struct weft_record_options){
	    .buffer = reused_ring, .buffer_bytes = sizeof reused_ring, .packets = 4, .wall_ns = wall_of_one_who_looks});
	for (int i = 0; i < 10000; i++)
		weft_await(i, i + 1);
	weft_stop();
	assert_true(looks > 20);
	assert_int_equal(locked_at_most, 1);
}

/* ---- OS threads and processes ---- */

static void *work(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (int i = 0; i < 100; i++)
		weft_resolve(WEFT_SYSTEM_ID, WEFT_CREATE(WEFT_KIND_WORK));
	return NULL;
}

static void in_thread(const char *name)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, work, (void *)name), 0);
	pthread_join(thread, NULL);
}

static int compare_ids(const void *a, const void *b)
{
	weft_id x = *(const weft_id *)a, y = *(const weft_id *)b;
	return (x > y) - (x < y);
}

static void test_thread_reuses_the_packets_of_an_ended_thread(void **state)
{
	start((struct weft_record_options){.size_bytes = 1 << 20});
	for (int i = 0; i < 20; i++) {
		in_thread("red");
		in_thread("green");
	}
	weft_stop();
	struct read_back r = read_directory(directory);
	weft_id ids[4000];
	size_t count = 0, red = 0;
	for (size_t i = 0; i < r.events.count; i++) {
		if (r.events.items[i].op == WEFT_OP_CREATE)
			ids[count++] = r.events.items[i].b;
		red += text_is(r.info->streams[r.events.items[i].stream].name, "red");
	}
	assert_int_equal(count, 4000);
	assert_int_equal(red, 4000);
	assert_int_equal(r.info->lost_no_stream, 0);
	qsort(ids, count, sizeof ids[0], compare_ids);
	for (size_t i = 1; i < count; i++)
		assert_true(ids[i] != ids[i - 1]);
	/* Only one thread runs at a time, and each continues in the packets of the previous one. */
	uint64_t packets = 0;
	for (size_t i = 0; i < r.info->stream_count; i++)
		packets += r.info->streams[i].packets;
	assert_true(packets <= 4);
	forget(&r);
}

static sem_t has_worked, may_end;

static void *work_and_wait(void *name)
{
	for (int i = 0; i < 3; i++)
		weft_label(WEFT_CREATE(WEFT_KIND_WORK), name);
	sem_post(&has_worked);
	while (sem_wait(&may_end))
		;
	return NULL;
}

/* Returns the total size of all files whose names start with `prefix`. */
static off_t bytes_of_files(const char *prefix)
{
	DIR *dir = opendir(directory);
	off_t bytes = 0;
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat of;
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && fstatat(dirfd(dir), entry->d_name, &of, 0) == 0)
			bytes += of.st_size;
	}
	closedir(dir);
	return bytes;
}

/* The stop also removes unused space from the files of threads that do not record at that moment. */
static void test_stop_releases_space_of_idle_threads(void **state)
{
	pthread_t thread;
	sem_init(&has_worked, 0, 0);
	sem_init(&may_end, 0, 0);
	start((struct weft_record_options){.size_bytes = 1 << 20});
	assert_int_equal(pthread_create(&thread, NULL, work_and_wait, "worker"), 0);
	while (sem_wait(&has_worked))
		;
	weft_stop();
	assert_in_range(bytes_of_files("stream"), 1, 16384);
	sem_post(&may_end);
	pthread_join(thread, NULL);
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 6);
	forget(&r);
}

static void test_events_of_a_thread_without_a_stream_are_counted_as_lost(void **state)
{
	static uint64_t buffer[4096];
	start((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 4});
	in_thread("late");
	weft_stop();
	struct read_back r = read_memory(buffer, sizeof buffer);
	assert_int_equal(r.info->lost_no_stream, 200);
	forget(&r);
}

static void test_fork_child_records_only_after_its_own_start(void **state)
{
	start((struct weft_record_options){0});
	weft_await(1, 2);
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < 1000; i++)
			weft_await(3, 4);
		char own[160];
		snprintf(own, sizeof own, "%s/child", scratch);
		struct weft_record_options options = {.directory = own};
		bool fine = !weft_is_on() && weft_start(&options) == WEFT_OK;
		weft_await(5, 6);
		weft_stop();
		_exit(fine ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	weft_await(7, 8);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 2);
	assert_int_equal(r.events.items[1].a, 7);
	forget(&r);
	char own[160];
	snprintf(own, sizeof own, "%s/child", scratch);
	r = read_directory(own);
	assert_int_equal(r.events.count, 1);
	assert_int_equal(r.events.items[0].a, 5);
	forget(&r);
}

static void test_child_of_a_fork_without_handlers_does_not_record(void **state)
{
	start((struct weft_record_options){0});
	weft_await(1, 2);
	pid_t child = _Fork(); /* a fork by system call, which runs no fork handlers */
	if (child == 0) {
		for (int i = 0; i < 1000; i++)
			weft_await(3, 4);
		_exit(weft_is_on());
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	weft_await(7, 8);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 2);
	assert_int_equal(r.events.items[1].a, 7);
	forget(&r);
}

static void test_full_disk_fails_the_start(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit = {100000, 100000};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		struct weft_record_options options = {.directory = directory};
		int status = weft_start(&options);
		_exit(status == WEFT_ENOSPC && weft_start_error()[0] && access(directory, F_OK) ? 0 : 1);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

/* If no further file can be created, a growing trace counts all further events as lost. */
static void test_events_after_the_disk_is_full_are_counted_as_lost(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		struct weft_record_options options = {.directory = directory, .mode = WEFT_RECORD_GROW, .packet_bytes = 8192};
		if (weft_start(&options) < 0)
			_exit(1);
		struct rlimit limit = {4096, 4096};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		for (int i = 0; i < 10000; i++)
			weft_await(i, i + 1);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	struct read_back r = read_directory(directory);
	assert_int_equal(r.info->streams[0].packets, 1);
	assert_int_equal(r.events.count + r.info->streams[0].lost_full, 10000);
	assert_int_equal(r.events.items[r.events.count - 1].a, r.events.count - 1);
	forget(&r);
}

/* ---- Damage ---- */

static void test_damaged_packets_are_skipped(void **state)
{
	static uint64_t buffer[4096], copy[4096];
	start((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer, .packets = 4});
	for (int i = 0; i < 900; i++)
		weft_await(i, i + 1);
	WEFT_LABEL(1, "told");
	weft_stop();
	struct read_back r;
	struct weft_error err;
	/* A buffer that is cut at any size gives the first events, or an error. */
	for (size_t size = 0; size < sizeof buffer; size += 37) {
		r = (struct read_back){0};
		if (weft_trace_open_memory(&r.trace, buffer, size, "cut", &err) < 0)
			continue;
		read_all(&r);
		for (size_t i = 0; i < r.events.count && i < 900; i++)
			assert_int_equal(r.events.items[i].a, i);
		forget(&r);
	}
	/* Any changed byte in the header or the first events of a packet leaves the trace readable. */
	unsigned char *rings = (unsigned char *)copy + 2048 + 4096;
	for (size_t at = 0; at < 200; at++) {
		memcpy(copy, buffer, sizeof buffer);
		rings[at] ^= 0xff;
		r = (struct read_back){0};
		assert_int_equal(weft_trace_open_memory(&r.trace, copy, sizeof copy, "changed", &err), WEFT_OK);
		read_all(&r);
		forget(&r);
	}
	/* An invalid version hides only its own packet. */
	memcpy(copy, buffer, sizeof buffer);
	rings[offsetof(struct weft_packet_header, version)] ^= 0xff;
	r = (struct read_back){0};
	assert_int_equal(weft_trace_open_memory(&r.trace, copy, sizeof copy, "version", &err), WEFT_OK);
	read_all(&r);
	assert_int_equal(weft_trace_info(r.trace)->skipped_count, 1);
	assert_true(r.events.count > 100 && r.events.count < 800);
	assert_int_equal(r.events.items[r.events.count - 1].op, WEFT_OP_LABEL);
	forget(&r);
	/* An unknown stream class hides only its own packet, too. */
	memcpy(copy, buffer, sizeof buffer);
	((struct weft_packet_header *)(void *)rings)->stream_id = 99;
	r = read_memory(copy, sizeof copy);
	assert_int_equal(r.info->skipped_count, 1);
	assert_non_null(strstr(r.info->skipped[0].where.what, "an unknown class"));
	assert_true(r.events.count > 100 && r.events.count < 800);
	forget(&r);
	/* A packet with only a header ends where the header says. */
	static uint64_t longer[sizeof(struct weft_packet_header) / 8 + 4096];
	struct weft_packet_header *alone = (struct weft_packet_header *)(void *)longer;
	memcpy(alone, rings, sizeof *alone);
	memcpy(alone + 1, buffer, sizeof buffer);
	alone->stream_id = 99;
	alone->packet_size = alone->content_size = sizeof *alone * 8;
	r = read_memory(longer, sizeof longer);
	assert_int_equal(r.info->skipped_count, 1);
	assert_int_equal(r.info->skipped[0].bytes, sizeof *alone);
	struct read_back whole = read_memory(buffer, sizeof buffer);
	assert_int_equal(r.events.count, whole.events.count);
	forget(&whole);
	forget(&r);
	/* Content shorter than a header is invalid. */
	memcpy(copy, buffer, sizeof buffer);
	((struct weft_packet_header *)(void *)rings)->content_size = 8;
	r = read_memory(copy, sizeof copy);
	assert_int_equal(r.info->skipped_count, 1);
	assert_non_null(strstr(r.info->skipped[0].where.what, "impossible content size"));
	forget(&r);
	memcpy(copy, buffer, sizeof buffer);
	const unsigned char big[] = {0xC1, 0xFC, 0x1F, 0xC1};
	memcpy(copy, big, 4);
	memcpy((unsigned char *)copy + 28, "TFEW", 4);
	assert_int_equal(weft_trace_open_memory(&r.trace, copy, sizeof copy, "big", &err), WEFT_ENOTSUP);
	assert_non_null(strstr(err.what, "big-endian"));
}

/* A hole of zeros between packets is no damage; a non-zero byte at any position of it is reported as damage. */
static void test_nonzero_bytes_between_packets_are_reported(void **state)
{
	enum { RECORDED = 16384, HOLE = 8192 };
	static unsigned char buffer[RECORDED + HOLE] __attribute__((aligned(8)));
	static const size_t places[] = {0, 1, 7, 8, 63, 64, 71, 4095, 4096, HOLE - 64, HOLE - 1};
	start((struct weft_record_options){.buffer = buffer, .buffer_bytes = RECORDED, .packets = 4});
	for (int i = 0; i < 900; i++)
		weft_await(i, i + 1);
	weft_stop();
	struct read_back whole = read_memory(buffer, sizeof buffer);
	size_t count = whole.events.count;
	assert_int_equal(whole.info->skipped_count, 0);
	forget(&whole);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		buffer[RECORDED + places[i]] = 1;
		struct read_back r = read_memory(buffer, sizeof buffer);
		if (r.info->skipped_count != 1)
			fail_msg("a byte at %zu is told %zu times", places[i], (size_t)r.info->skipped_count);
		assert_int_equal(r.events.count, count);
		forget(&r);
		buffer[RECORDED + places[i]] = 0;
	}
}

/* Records in a child process that exits without a stop, so the files are as after a power failure. */
static void record_unfinished(struct weft_record_options options, int count)
{
	options.directory = directory;
	pid_t child = fork();
	if (child == 0) {
		if (weft_start(&options) < 0)
			_exit(1);
		for (int i = 0; i < count; i++)
			weft_await(i, i + 1);
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void get_page(unsigned file, long page, unsigned char bytes[4096])
{
	char name[160];
	snprintf(name, sizeof name, "%s/stream-0-%u", directory, file);
	FILE *f = fopen(name, "r");
	assert_non_null(f);
	assert_int_equal(fseek(f, page * 4096, SEEK_SET), 0);
	assert_int_equal(fread(bytes, 1, 4096, f), 4096);
	assert_int_equal(fclose(f), 0);
}

static void put_page(unsigned file, long page, const unsigned char bytes[4096])
{
	char name[160];
	snprintf(name, sizeof name, "%s/stream-0-%u", directory, file);
	FILE *f = fopen(name, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, page * 4096, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, 4096, f), 4096);
	assert_int_equal(fclose(f), 0);
}

/* The machine lost power after writing back the header of a packet, but not a page of its events. */
static void test_page_missing_on_disk_is_reported_as_skipped(void **state)
{
	enum { PACKETS = 4, PAGES = 4 };
	static const unsigned char zeros[4096];
	unsigned char page[4096], old[4096];
	record_unfinished((struct weft_record_options){.size_bytes = PACKETS * PAGES * 4096, .packets = PACKETS}, 40000);
	struct read_back whole = read_directory(directory);
	size_t all = whole.events.count;
	uint64_t overwritten = whole.info->streams[0].lost_overwritten;
	assert_int_equal(overwritten + all, 40000);
	forget(&whole);
	size_t missed = 0, unfinished = 0;
	for (unsigned file = 0; file < PACKETS; file++)
		for (long at = 1; at < PAGES; at++) {
			get_page(file, at, page);
			put_page(file, at, zeros);
			struct read_back r = read_directory(directory);
			/* Every event that is read was recorded, and no event is read twice. */
			for (size_t i = 0; i < r.events.count; i++) {
				const struct weft_event *e = &r.events.items[i];
				assert_true(e->op == WEFT_OP_AWAIT && e->b == e->a + 1 && (i == 0 || e->a > e[-1].a));
			}
			missed += r.events.count < all;
			assert_int_equal(r.info->skipped_count > 0, r.events.count < all);
			/* Missing events are counted, except in the newest packet, whose number of events is unknown. */
			unfinished += r.info->streams[0].lost_overwritten + r.events.count < 40000;
			forget(&r);
			put_page(file, at, page);
		}
	/* A page may also have its old content of the previous lap; here, it gets the events of an older packet at the same
	 * place. */
	unsigned noticed = 0;
	for (unsigned file = 0; file < PACKETS; file++)
		for (unsigned other = 0; other < PACKETS; other++) {
			get_page(file, 2, page);
			get_page(other, 2, old);
			put_page(file, 2, old);
			struct read_back r = read_directory(directory);
			bool is_whole = r.events.count == all && r.info->skipped_count == 0;
			noticed += r.info->skipped_count > 0;
			for (size_t i = 1; is_whole && i < all && other == file; i++)
				assert_int_equal(r.events.items[i].a, r.events.items[i - 1].a + 1);
			assert_true(is_whole || r.info->skipped_count > 0);
			forget(&r);
			put_page(file, 2, page);
		}
	/* weft notices this except if the page did not change, and perhaps in the newest packet. */
	assert_true(noticed >= (PACKETS - 1) * (PACKETS - 1));
	/* Some pages of the newest packet may not have been used. */
	assert_true(missed >= (PACKETS - 1) * (PAGES - 1) && unfinished <= PAGES - 1);
}

/* The child process is killed at its n-th clock reading, so between any two steps of starting, recording, and switching to
 * another packet or file. */
static unsigned looks_left;

static uint64_t deadly_clock(void)
{
	if (!--looks_left)
		raise(SIGKILL);
	return ++ticks;
}

static void test_trace_of_a_program_killed_at_any_clock_reading_is_readable(void **state)
{
	enum { EVENTS = 900, START = 40, SPAN = 50 };
	const struct weft_record_options modes[] = {
	    {.size_bytes = 3 * 4096, .packets = 3},
	    {.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	};
	unsigned whole = 0, ended = 0;
	for (size_t m = 0; m < 2; m++)
		/* A packet is full after about 264 events.  The test tries all clock readings around a switch of packets, and
		 * some of the others. */
		for (unsigned look = 1; look < EVENTS + 100; look += look < START || look % 264 < SPAN ? 1 : 13) {
			remove_tree(directory);
			pid_t child = fork();
			if (child == 0) {
				struct weft_record_options options = modes[m];
				options.directory = directory;
				options.clock = options.wall_ns =
				    deadly_clock; /* the recorder reads wall_ns between INVALIDATE and VALIDATE */
				options.clock_hz = 1000000000;
				looks_left = look;
				if (weft_start(&options) < 0)
					_exit(1);
				for (int i = 0; i < EVENTS; i++)
					weft_await(i, i + 1);
				weft_stop();
				_exit(0);
			}
			int status;
			waitpid(child, &status, 0);
			assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
			ended += !WIFSIGNALED(status);
			struct read_back r = {0};
			if (weft_trace_open(&r.trace, directory, NULL) < 0) {
				assert_true(look < START);
				continue;
			}
			read_all(&r);
			if (r.info->skipped_count && r.events.count)
				fail_msg("killed at look %u: %s: %s", look, r.info->skipped[0].where.file,
				    r.info->skipped[0].where.what);
			for (size_t i = 1; i < r.events.count; i++)
				assert_int_equal(r.events.items[i].a, r.events.items[i - 1].a + 1);
			if (m == 1 && r.events.count)
				assert_int_equal(r.events.items[0].a, 0);
			whole += r.events.count != 0;
			forget(&r);
		}
	assert_true(whole > 200 && ended > 2);
}

static void test_killed_program_leaves_its_events(void **state)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		struct weft_record_options options = {.directory = directory, .size_bytes = 1 << 20};
		if (weft_start(&options) < 0)
			_exit(1);
		for (int i = 0; i < 300000; i++)
			weft_await(i, i + 1);
		WEFT_LABEL(9, "the last words");
		_exit(write(ends[1], "x", 1) == 1 && raise(SIGKILL));
	}
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 1);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	struct read_back r = read_directory(directory);
	assert_int_equal(r.info->skipped_count, 0);
	assert_int_equal(r.events.count + r.info->streams[0].lost_overwritten, 300001);
	assert_true(text_is(r.events.items[r.events.count - 1].text, "the last words"));
	forget(&r);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void compute(void)
{
	int64_t begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < 20000000)
		;
}

static void block(void)
{
	usleep(20000);
}

/* Touches new pages. */
static void touch(void)
{
	enum { PAGES = 3000 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise((void *)memory, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
	munmap((void *)memory, PAGES * page);
	usleep(2000); /* long enough to be recorded on every machine */
}

struct told {
	int64_t ns;
	unsigned long had_ns, given, taken, minor, major;
};

static struct told told_of(const struct weft_event *event)
{
	struct told told = {.ns = event->value};
	char text[128] = {0};
	assert_true(event->text.len < sizeof text);
	memcpy(text, event->text.ptr, event->text.len);
	assert_int_equal(
	    sscanf(text, "%lu %lu %lu %lu %lu", &told.had_ns, &told.given, &told.taken, &told.minor, &told.major), 5);
	assert_true((int64_t)told.had_ns <= told.ns + 1000000);
	return told;
}

/* This list never ends, so each event takes the slow path. */
static uint64_t list_for_ever(void *data, uint64_t cursor, unsigned budget)
{
	return 1;
}

/* Long iterations are recorded with their CPU times, which differ for computing, blocking and page faults. */
static void test_long_iterations_have_their_cpu_times(void **state)
{
	void (*const rounds[])(void) = {compute, block, touch};
	start((struct weft_record_options){0});
	for (size_t i = 0; i < 6; i++) {
		usleep(2000);
		if (i == 3)
			weft_list_pending(list_for_ever, NULL);
		weft_resume(1);
		rounds[i % 3]();
		weft_idle(WEFT_IDLE_WAIT);
	}
	weft_list_pending(NULL, NULL);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.rounds.count, 6);
	for (size_t i = 0; i < 6; i += 3) {
		struct told worked = told_of(&r.rounds.items[i]), blocked = told_of(&r.rounds.items[i + 1]),
			    touched = told_of(&r.rounds.items[i + 2]);
		assert_true(worked.ns >= 20000000 && worked.had_ns >= 20000000 && worked.given <= 1);
		assert_true(blocked.ns >= 20000000 && (int64_t)blocked.had_ns <= blocked.ns - 19000000);
		assert_true(blocked.given >= 1 && blocked.given <= 2);
		assert_true(touched.minor >= 3000 && touched.minor < 3500 && worked.minor < 500);
	}
	forget(&r);
}

static void test_short_iterations_are_not_recorded(void **state)
{
	start((struct weft_record_options){0});
	size_t long_ones = 0;
	for (int i = 0; i < 2000; i++) {
		int64_t begin_ns = now_ns(CLOCK_MONOTONIC_RAW);
		weft_resume(1);
		weft_idle(WEFT_IDLE_WAIT);
		long_ones += now_ns(CLOCK_MONOTONIC_RAW) - begin_ns >= 990000;
	}
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_true(r.rounds.count <= long_ones);
	forget(&r);
}

/* If a program never records the end of a sleep, its iterations are recorded at most every 10 ms, except for the first. */
static void test_recorded_iterations_without_resume_are_limited(void **state)
{
	start((struct weft_record_options){0});
	int64_t begin_ns = now_ns(CLOCK_MONOTONIC_RAW);
	for (int i = 0; i < 30; i++) {
		weft_run(1);
		usleep(1500);
		weft_idle(WEFT_IDLE_WAIT);
	}
	int64_t length_ns = now_ns(CLOCK_MONOTONIC_RAW) - begin_ns;
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_true(r.rounds.count >= 1 && (int64_t)r.rounds.count <= length_ns / 9900000 + 1);
	forget(&r);
}

static void test_fatal_signal_is_recorded(void **state)
{
	static const struct {
		int number;
		const char *name;
	} deadly[] = {{SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGTRAP, "SIGTRAP"}, {SIGBUS, "SIGBUS"}, {SIGTERM, NULL}};
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
		pid_t child = fork();
		if (child == 0) {
			setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
			signal(deadly[i].number,
			    SIG_DFL); /* restores the default action of the signal, because the test framework has its own */
			if (weft_start(&(struct weft_record_options){.directory = directory, .overwrite = true}) < 0)
				_exit(1);
			weft_run(9);
			if (deadly[i].number == SIGABRT)
				abort();
			if (deadly[i].number == SIGSEGV)
				*(volatile char *)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
			raise(deadly[i].number);
			_exit(2);
		}
		int status;
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), deadly[i].number);
		struct read_back r = read_directory(directory);
		const struct weft_event *last = &r.events.items[r.events.count - 1];
		if (deadly[i].name) {
			assert_int_equal(last->op, WEFT_OP_DETAIL);
			assert_int_equal(last->kind, WEFT_DETAIL_DIED);
			assert_int_equal(last->a, 9);
			assert_int_equal(last->value, deadly[i].number);
			assert_true(text_is(last->text, deadly[i].name));
		} else {
			assert_int_equal(last->op, WEFT_OP_RUN);
		}
		forget(&r);
	}
}

static void test_repeated_start_and_stop_work(void **state)
{
	for (int i = 0; i < 300; i++) {
		start((struct weft_record_options){.overwrite = true, .size_bytes = 16384, .packets = 2});
		WEFT_LABEL(i, "again");
		in_thread("red");
		weft_stop();
		weft_run(1);
	}
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 201);
	bool found = false;
	for (size_t i = 0; i < r.events.count; i++)
		found |= r.events.items[i].a == 299 && text_is(r.events.items[i].text, "again");
	assert_true(found);
	forget(&r);
}

/* ---- Texts ---- */

static void test_long_text_is_cut_and_invalid_utf_8_is_kept(void **state)
{
	static char big[100000];
	memset(big, 'x', sizeof big - 1);
	start((struct weft_record_options){.size_bytes = 16384, .packets = 4});
	weft_label(1, big);
	weft_label(2, "");
	weft_label(3, "\xff\xfe not UTF-8");
	weft_label_bytes(4, NULL, 0);
	weft_message(5, 1, big, false);
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 5);
	struct weft_str cut = r.events.items[0].text;
	assert_true(cut.len > 3000 && cut.len < 4096);
	assert_memory_equal(cut.ptr + cut.len - 4, "x\xe2\x80\xa6", 4);
	assert_true(text_is(r.events.items[1].text, ""));
	assert_true(text_is(r.events.items[2].text, "\xff\xfe not UTF-8"));
	assert_true(text_is(r.events.items[3].text, ""));
	assert_memory_equal(r.events.items[4].text.ptr, cut.ptr, 3000);
	forget(&r);
}

static void test_errno_is_preserved(void **state)
{
	start((struct weft_record_options){.mode = WEFT_RECORD_GROW, .size_bytes = 16384, .packet_bytes = 8192});
	errno = 1234;
	for (int i = 0; i < 5000; i++)
		weft_label(i, "fills files, then finds no more");
	weft_stop();
	assert_int_equal(errno, 1234);
}

/* ---- Pending promises ---- */

struct runtime {
	weft_id forgotten, waits_for;
	struct weft_record_site *site;
	uint64_t since;
	unsigned calls, budget;
};

static uint64_t list_pending(void *data, uint64_t cursor, unsigned budget)
{
	struct runtime *runtime = data;
	/* Since one call lists all pending promises, the budget does not grow. */
	runtime->budget = runtime->calls++ > 0 ? runtime->budget : budget;
	assert_true(cursor == 0 && budget >= 1 && budget == runtime->budget);
	weft_pending(WEFT_SYSTEM_ID, runtime->forgotten, WEFT_KIND_REQUEST, runtime->site, runtime->since, "forgotten");
	weft_still_awaits(runtime->forgotten, runtime->waits_for);
	return 0;
}

static void test_ring_repeats_pending_promises(void **state)
{
	struct runtime runtime = {.forgotten = 77, .waits_for = 78, .site = WEFT_SITE(), .since = weft_now()};
	weft_list_pending(list_pending, &runtime);
	start((struct weft_record_options){.size_bytes = 1 << 16, .packets = 8});
	for (int i = 0; i < 100000; i++) {
		weft_run(1000 + i);
		weft_resolve(1000 + i, 5);
	}
	weft_list_pending(NULL, NULL);
	weft_stop();
	struct read_back r = read_directory(directory);
	size_t told = 0, awaited = 0;
	for (size_t i = 0; i < r.events.count; i++) {
		const struct weft_event *e = &r.events.items[i];
		if (e->op == WEFT_OP_PENDING) {
			told++;
			assert_int_equal(e->b, 77);
			assert_int_equal(e->kind, WEFT_KIND_REQUEST);
			assert_true(text_is(e->text, "forgotten"));
			assert_true(text_is(r.info->sites[e->site].function, "test_ring_repeats_pending_promises"));
			assert_true(e->value > 0 && e->value < r.events.items[0].time_ns);
		}
		awaited += e->op == WEFT_OP_STILL_AWAITS && e->a == 77 && e->b == 78;
	}
	assert_true(told >= 1 && told == awaited);
	/* The pending promises are repeated at most twice per lap. */
	assert_true(told <= 3);
	assert_in_range(runtime.calls * 10, 200000 / r.events.count * 11, 200000 / r.events.count * 17);
	forget(&r);
}

static uint64_t list_ten(void *data, uint64_t cursor, unsigned budget)
{
	weft_pending(WEFT_SYSTEM_ID, (weft_id)cursor + 1, WEFT_KIND_REQUEST, NULL, 0, "old");
	return cursor < 9 ? cursor + 1 : 0;
}

static uint64_t list_one(void *data, uint64_t cursor, unsigned budget)
{
	weft_pending(WEFT_SYSTEM_ID, 77, WEFT_KIND_REQUEST, NULL, 0, "of a library");
	return 0;
}

/* The ring repeats the pending promises of the program's own list and of the list of libweft-hook.so for libuv. */
static void test_pending_promises_of_both_lists_are_recorded(void **state)
{
	weft_list_pending(list_ten, NULL);
	weft__list_pending_beside(list_one, NULL);
	for (int is_ended = 0; is_ended < 2; is_ended++) {
		start((struct weft_record_options){.size_bytes = 1 << 16, .packets = 8, .overwrite = true});
		for (int i = 0; i < 100000; i++) {
			weft_run(1000 + i);
			weft_resolve(1000 + i, 5);
		}
		weft_stop();
		struct read_back r = read_directory(directory);
		size_t told[100] = {0};
		for (size_t i = 0; i < r.events.count; i++)
			if (r.events.items[i].op == WEFT_OP_PENDING && r.events.items[i].b < 100)
				told[r.events.items[i].b]++;
		for (int id = 1; id <= 10; id++)
			assert_in_range(told[id], is_ended ? 0 : 1, is_ended ? 0 : 3);
		assert_in_range(told[77], 1, 3);
		forget(&r);
		weft_list_pending(NULL, NULL); /* removes the program's own list; the other one stays */
	}
	weft__list_pending_beside(NULL, NULL);
}

static void test_start_records_all_pending_promises(void **state)
{
	weft_list_pending(list_ten, NULL);
	start((struct weft_record_options){.size_bytes = 1 << 16, .packets = 8});
	for (int i = 0; i < 20; i++)
		weft_run(1000 + i);
	weft_list_pending(NULL, NULL);
	weft_stop();
	struct read_back r = read_directory(directory);
	weft_id told = 0;
	for (size_t i = 0; i < r.events.count; i++)
		if (r.events.items[i].op == WEFT_OP_PENDING)
			assert_int_equal(r.events.items[i].b, ++told);
	assert_int_equal(told, 10);
	assert_int_equal(r.events.count, 30);
	forget(&r);
}

/* Records a blocking call that has not returned. */
static enum weft_op inside;
static unsigned told_inside[32];

static uint64_t note_where(void *data, uint64_t cursor, unsigned budget)
{
	told_inside[inside]++;
	weft_pending(WEFT_SYSTEM_ID, 77, WEFT_KIND_REQUEST, NULL, 0, "forgotten");
	return 0;
}

static void test_pending_promises_are_not_listed_in_await_resolve_or_label(void **state)
{
	static const enum weft_op at_rest[] = {WEFT_OP_RUN, WEFT_OP_READ, WEFT_OP_SIGNAL, WEFT_OP_IDLE, WEFT_OP_RESUME};
	for (size_t k = 0; k < sizeof at_rest / sizeof *at_rest; k++) {
		static uint64_t buffer[8192];
		memset(told_inside, 0, sizeof told_inside);
		weft_list_pending(note_where, NULL);
		start((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer});
		for (int i = 0; i < 20000; i++) {
			inside = WEFT_OP_AWAIT;
			weft_await(i, i + 1);
			inside = WEFT_OP_RESOLVE;
			weft_resolve(i, i + 1);
			switch (inside = at_rest[k]) {
			case WEFT_OP_RUN: weft_run(i); break;
			case WEFT_OP_READ: weft_read(i, i + 1); break;
			case WEFT_OP_SIGNAL: weft_signal(i, i + 1); break;
			case WEFT_OP_IDLE: weft_idle(WEFT_IDLE_HIBERNATE); break;
			default: weft_resume(i);
			}
		}
		inside = WEFT_OP_LABEL;
		weft_list_pending(NULL, NULL);
		weft_stop();
		for (unsigned op = 0; op < 32; op++)
			if (op == at_rest[k] ? told_inside[op] < 10 : told_inside[op])
				fail_msg("at rest in op %u, told %u times in op %u", at_rest[k], told_inside[op], op);
	}
}

static void *create_two(void *ids)
{
	weft_id *id = ids;
	id[0] = WEFT_CREATE(WEFT_KIND_TASK);
	id[1] = WEFT_CREATE(WEFT_KIND_TASK);
	return NULL;
}

static void test_threads_without_a_stream_get_different_ids(void **state)
{
	static uint64_t buffer[8192];
	weft_id ids[2];
	pthread_t thread;
	start((struct weft_record_options){.buffer = buffer, .buffer_bytes = sizeof buffer, .streams = 1, .packets = 4});
	weft_id mine = WEFT_CREATE(WEFT_KIND_TASK);
	assert_int_equal(pthread_create(&thread, NULL, create_two, ids), 0);
	pthread_join(thread, NULL);
	assert_true(ids[0] > 0 && ids[1] > 0 && ids[0] != ids[1] && ids[0] != mine && ids[1] != mine);
}

/* record_test [PATTERN]: runs the tests whose names match the pattern; * stands for any text. */
int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_every_call_is_recorded),
	    TEST(test_creation_has_its_site),
	    TEST(test_creation_without_a_site_has_none),
	    TEST(test_internal_promise_has_owner_and_site),
	    TEST(test_callers_have_sites),
	    TEST(test_missing_last_trace_file_is_a_gap),
	    TEST(test_ids_beyond_32_bits_are_kept),
	    TEST(test_invalid_options_are_refused),
	    TEST(test_full_ring_keeps_the_newest_events),
	    TEST(test_full_growing_trace_keeps_the_oldest_events),
	    TEST(test_growing_trace_in_a_buffer_keeps_the_oldest_events),
	    TEST(test_ring_in_a_caller_buffer_is_readable_while_recording),
	    TEST(test_large_clock_step_is_kept_and_negative_step_becomes_zero),
	    TEST(test_packet_headers_have_the_time_of_day),
	    TEST(test_badly_measured_clock_frequency_is_corrected_by_wall_time),
	    TEST(test_packet_is_locked_before_reuse),
	    TEST(test_thread_reuses_the_packets_of_an_ended_thread),
	    TEST(test_stop_releases_space_of_idle_threads),
	    TEST(test_events_of_a_thread_without_a_stream_are_counted_as_lost),
	    TEST(test_threads_without_a_stream_get_different_ids),
	    TEST(test_fork_child_records_only_after_its_own_start),
	    TEST(test_child_of_a_fork_without_handlers_does_not_record),
	    TEST(test_full_disk_fails_the_start),
	    TEST(test_events_after_the_disk_is_full_are_counted_as_lost),
	    TEST(test_damaged_packets_are_skipped),
	    TEST(test_nonzero_bytes_between_packets_are_reported),
	    TEST(test_page_missing_on_disk_is_reported_as_skipped),
	    TEST(test_trace_of_a_program_killed_at_any_clock_reading_is_readable),
	    TEST(test_killed_program_leaves_its_events),
	    TEST(test_long_iterations_have_their_cpu_times),
	    TEST(test_short_iterations_are_not_recorded),
	    TEST(test_recorded_iterations_without_resume_are_limited),
	    TEST(test_fatal_signal_is_recorded),
	    TEST(test_repeated_start_and_stop_work),
	    TEST(test_long_text_is_cut_and_invalid_utf_8_is_kept),
	    TEST(test_errno_is_preserved),
	    TEST(test_ring_repeats_pending_promises),
	    TEST(test_pending_promises_of_both_lists_are_recorded),
	    TEST(test_start_records_all_pending_promises),
	    TEST(test_pending_promises_are_not_listed_in_await_resolve_or_label),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
