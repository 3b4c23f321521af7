/* handlers_test.c: signal handlers record at any place where they interrupt the recorder.  SPDX-License-Identifier: ISC */
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "wire/wire.h"

static uint64_t ticks;
static void (*in_clock)(void);

/* A clock that calls in_clock, which records as a signal handler would, between the clock reading of an event and the reservation
 * of its space. */
static uint64_t fake_clock(void)
{
	uint64_t now = ticks;
	void (*call)(void) = in_clock;
	in_clock = NULL;
	if (call)
		call();
	return now;
}

static void interrupt_now(void)
{
	ticks += 10;
	weft_run(1000);
	ticks += 10;
}

static void interrupt_after_a_long_time(void)
{
	ticks += (uint64_t)1 << 33;
	weft_run(1000);
}

static void test_handler_interrupting_a_reservation_keeps_both_events(void **state)
{
	ticks = 500;
	start((struct weft_record_options){.clock = fake_clock, .clock_hz = 1000000000, .size_bytes = 65536, .packets = 2});
	enum { ROUNDS = 500 };
	for (int i = 0; i < ROUNDS; i++) {
		in_clock = i % 7 ? interrupt_now : interrupt_after_a_long_time;
		weft_run(i);
		in_clock = interrupt_now;
		weft_label_bytes(i, "slow path", 9);
		ticks++;
	}
	weft_stop();
	struct read_back r = read_directory(directory);
	assert_int_equal(r.events.count, 4 * ROUNDS);
	int handled = 0, runs = 0;
	for (size_t i = 0; i < r.events.count; i++) {
		const struct weft_event *e = &r.events.items[i];
		assert_true(i == 0 || e->time_ns >= e[-1].time_ns);
		handled += e->a == 1000;
		runs += e->op == WEFT_OP_RUN && e->a != 1000;
	}
	assert_int_equal(handled, 2 * ROUNDS);
	assert_int_equal(runs, ROUNDS);
	forget(&r);
}

static int came, times_read;

/* An event that reads the clock a second time is switching to another packet. */
static void interrupt_the_second_reading(void)
{
	if (times_read++ == 0) {
		in_clock = interrupt_the_second_reading;
		return;
	}
	came++;
	weft_run(1000);
}

/* While the recorder switches packets, no packet has space for the events of a handler, so they count as lost. */
static void test_events_lost_in_handlers_are_counted(void **state)
{
	static uint64_t buffer[8192];
	enum { EVENTS = 20000, PACKET = 4096 };
	ticks = 500;
	came = 0;
	start((struct weft_record_options){.clock = fake_clock,
	    .clock_hz = 1000000000,
	    .buffer = buffer,
	    .buffer_bytes = sizeof buffer,
	    .packet_bytes = PACKET,
	    .mode = WEFT_RECORD_GROW});
	for (int i = 0; i < EVENTS; i++) {
		times_read = 0;
		in_clock = interrupt_the_second_reading;
		weft_run(i);
	}
	in_clock = NULL;
	weft_stop();
	struct read_back r = read_memory(buffer, sizeof buffer);
	const struct weft_stream_info *stream = &r.info->streams[0];
	assert_true(stream->lost_nested > 0);
	assert_int_equal(r.events.count + stream->lost_full + stream->lost_nested, EVENTS + came);
	/* CTF readers read only events_discarded, which is the sum of both counts. */
	uint64_t told = 0;
	for (size_t at = 0; at < sizeof buffer; at += PACKET) {
		struct weft_packet_header header;
		memcpy(&header, (char *)buffer + at, sizeof header);
		if (header.stream_id == WEFT_CLASS_EVENTS && header.events_discarded > told)
			told = header.events_discarded;
	}
	assert_int_equal(told, stream->lost_full + stream->lost_nested);
	forget(&r);
}

static char *guarded;

enum { AT_ONCE = 1000 };

static void on_fault(int number)
{
	mprotect(guarded, 4096, PROT_READ);
	for (int i = 0; i < AT_ONCE; i++)
		weft_run(1000);
}

/* The text of the label is in memory without access, so a handler of SIGSEGV runs while the event is being written, and fills the
 * packet. */
static void test_events_of_a_handler_beyond_the_packet_are_counted_as_lost(void **state)
{
	enum { PACKET = 4096, LATER = 2000 };
	static uint64_t buffer[16384];
	struct sigaction action = {.sa_handler = on_fault}, before;
	sigaction(SIGSEGV, &action, &before);
	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(guarded != MAP_FAILED);
	start((struct weft_record_options){
	    .buffer = buffer, .buffer_bytes = sizeof buffer, .packet_bytes = PACKET, .mode = WEFT_RECORD_GROW});
	weft_run(1);
	weft_label_bytes(1, guarded, 5);
	for (int i = 0; i < LATER; i++)
		weft_run(2);
	weft_stop();
	sigaction(SIGSEGV, &before, NULL);
	munmap(guarded, 4096);
	struct read_back r = read_memory(buffer, sizeof buffer);
	const struct weft_stream_info *stream = &r.info->streams[0];
	assert_int_equal(stream->lost_full, 0);
	assert_in_range(stream->lost_nested, 1, AT_ONCE - 1);
	assert_int_equal(r.events.count + stream->lost_nested, 2 + AT_ONCE + LATER);
	/* Later packets have the count of lost events, too. */
	int packets = 0;
	for (size_t at = 0; at < sizeof buffer; at += PACKET) {
		struct weft_packet_header header;
		memcpy(&header, (char *)buffer + at, sizeof header);
		if (header.stream_id != WEFT_CLASS_EVENTS || header.content_size == 0)
			continue;
		packets++;
		assert_int_equal(header.events_discarded, stream->lost_nested);
	}
	assert_true(packets > 2);
	forget(&r);
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	weft_resolve(1, signals);
	weft_label(2, "in a handler");
	signals = signals + 1;
}

static void test_events_of_signal_handlers_are_recorded(void **state)
{
	signals = 0;
	struct sigaction action = {.sa_handler = on_signal}, before;
	sigaction(SIGPROF, &action, &before);
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	assert_int_equal(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0);
	start((struct weft_record_options){.size_bytes = 64 << 20, .packets = 1024});
	struct itimerspec often = {{0, 100000}, {0, 100000}}, never = {0};
	timer_settime(timer, 0, &often, NULL);
	enum { COUNT = 1000000 };
	for (int i = 0; i < COUNT; i++)
		weft_await(i, i + 1);
	timer_settime(timer, 0, &never, NULL);
	timer_delete(timer);
	weft_stop();
	sigaction(SIGPROF, &before, NULL);
	struct read_back r = read_directory(directory);
	assert_int_equal(r.info->skipped_count, 0);
	assert_int_equal(r.events.count, COUNT + 2 * signals);
	weft_id await = 0, resolve = 0;
	for (size_t i = 0; i < r.events.count; i++) {
		const struct weft_event *e = &r.events.items[i];
		assert_true(i == 0 || e->time_ns >= e[-1].time_ns);
		if (e->op == WEFT_OP_AWAIT)
			assert_int_equal(e->a, await++);
		else if (e->op == WEFT_OP_RESOLVE)
			assert_int_equal(e->b, resolve++);
	}
	forget(&r);
}

static void test_recording_leaves_no_signal_blocked(void **state)
{
	sigset_t none, after;
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	start((struct weft_record_options){.size_bytes = 1 << 16, .packets = 8});
	for (int i = 0; i < 20000; i++)
		WEFT_CREATE(WEFT_KIND_TASK);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < SIGRTMIN; number++)
		assert_int_equal(sigismember(&after, number), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_handler_interrupting_a_reservation_keeps_both_events),
	    TEST(test_events_lost_in_handlers_are_counted),
	    TEST(test_events_of_a_handler_beyond_the_packet_are_counted_as_lost),
	    TEST(test_events_of_signal_handlers_are_recorded),
	    TEST(test_recording_leaves_no_signal_blocked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
