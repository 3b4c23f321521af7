/* join_test.c: several traces are joined and read as one.  SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <weft/record.h>

#include "allocations.h"
#include "analysis/findings/explain.h"
#include "analysis/index/path.h"
#include "analysis/index/path_by_process.h"
#include "events.h"
#include "trace/clock_sync.h"
#include "trace/join.h"
#include "trace/kernel.h"

enum { MS = 1000000, PROCESSES = 3 };

/* ---- Processes: this process plays all of them, with clocks that the test sets ---- */

static _Alignas(8) unsigned char buffers[PROCESSES][1 << 17];
static uint64_t now;
static int64_t origin_ns; /* wall clock time of tick 0 */

static uint64_t tick(void)
{
	return now;
}

static uint64_t wall_ns(void)
{
	return (uint64_t)(origin_ns + (int64_t)now);
}

static void begin_in(void *buffer, size_t bytes, const char *process, const char *host, int64_t origin, weft_id first_id)
{
	origin_ns = origin;
	now = 0;
	struct weft_record_options options = {.buffer = buffer,
	    .buffer_bytes = bytes,
	    .clock = tick,
	    .clock_hz = 1000000000,
	    .wall_ns = wall_ns,
	    .host = host,
	    .process = process,
	    .first_id = first_id};
	if (weft_start(&options) < 0)
		fail_msg("%s", weft_start_error());
}

static void begin_at(unsigned number, const char *process, const char *host, int64_t origin, weft_id first_id)
{
	begin_in(buffers[number], sizeof buffers[number], process, host, origin, first_id);
}

static void begin(unsigned number, const char *process, int64_t origin)
{
	begin_at(number, process, "here", origin, 0);
}

static struct weft_trace *open_one(unsigned number)
{
	struct weft_trace *trace = NULL;
	struct weft_error err = {0};
	if (weft_trace_open_memory(&trace, buffers[number], sizeof buffers[number], "one of them", &err) < 0)
		fail_msg("%s", err.what);
	return trace;
}

static struct weft_trace *join(unsigned count)
{
	struct weft_trace *parts[PROCESSES], *trace = NULL;
	struct weft_error err = {0};
	for (unsigned i = 0; i < count; i++)
		parts[i] = open_one(i);
	if (weft_trace_join(&trace, parts, count, "all of them", &err) < 0)
		fail_msg("%s", err.what);
	return trace;
}

static struct weft_model *model_of(struct weft_trace *trace)
{
	struct weft_model *model = NULL;
	struct weft_error err = {0};
	if (weft_model_build(&model, trace, &(struct weft_model_options){.keep_binds = true}, &err) < 0)
		fail_msg("%s", err.what);
	return model;
}

static void assert_text(struct weft_str text, const char *expected)
{
	char copy[200];
	snprintf(copy, sizeof copy, "%.*s", (int)text.len, text.len ? text.ptr : "");
	assert_string_equal(copy, expected);
}

/* Joined events are in the order of their times, also after a rewind at any event. */
static void joined_events_are_sorted_by_time(void **state)
{
	enum { EVENTS = 60000, BYTES = 1 << 20 };
	static _Alignas(8) unsigned char large[PROCESSES][BYTES];
	struct weft_trace *parts[PROCESSES], *trace = NULL;
	struct weft_error err = {0};
	for (unsigned i = 0; i < PROCESSES; i++) {
		char name[] = {(char)('a' + i), 0};
		begin_in(large[i], BYTES, name, "here", 1000000, 0);
		now = i;
		for (int64_t e = 0; e < EVENTS; e++) {
			now += PROCESSES + (e % 64 == 0 ? 200 : 0);
			weft_run(1 + e);
		}
		weft_stop();
		assert_true(weft_trace_open_memory(&parts[i], large[i], BYTES, name, &err) == WEFT_OK);
	}
	assert_true(weft_trace_join(&trace, parts, PROCESSES, "all", &err) == WEFT_OK);
	for (size_t most = 0;; most = most * 3 + 1) {
		const struct weft_event *events;
		size_t count, got = 0;
		int64_t next[PROCESSES] = {1, 1, 1}, before_ns = INT64_MIN;
		unsigned ends = 0;
		while (got <= most && weft_trace_next(trace, &events, &count) > 0)
			for (size_t i = 0; i < count; i++, got++) {
				const struct weft_event *e = &events[i];
				assert_true(e->time_ns >= before_ns);
				before_ns = e->time_ns;
				ends += e->op == WEFT_EVENT_END;
				if (e->op == WEFT_EVENT_END)
					continue;
				assert_int_equal(e->op, WEFT_OP_RUN);
				assert_int_equal(e->a, next[e->stream]++ * 10 + e->stream);
			}
		if (got <= most) {
			assert_int_equal(got, PROCESSES * EVENTS + PROCESSES);
			assert_int_equal(ends, PROCESSES);
			break;
		}
		weft_trace_rewind(trace);
	}
	const struct weft_event *events;
	size_t count;
	weft_trace_rewind(trace);
	assert_int_equal(weft_trace_next(trace, &events, &count), 1);
	weft_trace_close(trace);
}

/* Two processes record events at alternating times; the clock of the second process started 5 us earlier. */
static void events_of_two_processes_share_one_clock(void **state)
{
	static struct weft_event ev[64], again[64];
	static struct weft_record_text queue = WEFT_COUNTER("queue");
	begin(0, "client", 1000000);
	weft_id main_of_first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	for (now = 100; now < 1000; now += 100)
		weft_await(main_of_first, (weft_id)now);
	weft_stop();
	begin(1, "server", 1000000 - 5000);
	weft_id main_of_second = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	for (now = 5050; now < 6000; now += 100)
		weft_await(main_of_second, (weft_id)now);
	weft_label(main_of_second, "main");
	weft_counter_set(WEFT_SYSTEM_ID, &queue, 3);
	weft_stop();
	struct weft_trace *trace = join(2);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->part_count, 2);
	assert_true(info->parts[0].is_same_clock && !info->parts[1].is_same_clock);
	assert_text(info->process, "client and 1 more");
	size_t count = read_events(trace, ev, 64), awaits = 0;
	const struct weft_event *label = NULL, *counter = NULL;
	int64_t expected_ns = 50;
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || ev[i - 1].time_ns <= ev[i].time_ns);
		assert_true(ev[i].op == WEFT_EVENT_END || info->streams[ev[i].stream].part == ev[i].stream);
		label = ev[i].op == WEFT_OP_LABEL ? &ev[i] : label;
		counter = ev[i].op == WEFT_OP_COUNTER ? &ev[i] : counter;
		if (ev[i].op != WEFT_OP_AWAIT)
			continue;
		bool is_first = ev[i].time_ns % 100 == 0;
		assert_true(ev[i].time_ns == expected_ns && ev[i].stream == !is_first);
		assert_true(ev[i].a == (is_first ? main_of_first * 10 : main_of_second * 10 + 1));
		assert_true(ev[i].b == (is_first ? ev[i].time_ns * 10 : (ev[i].time_ns + 5000) * 10 + 1));
		expected_ns += 50;
		awaits++;
	}
	assert_int_equal(awaits, 19);
	assert_non_null(label);
	assert_text(label->text, "server: main");
	assert_non_null(counter);
	assert_text(counter->text, "server: queue");
	for (size_t i = 0; i < count; i++)
		if (ev[i].op == WEFT_OP_CREATE)
			assert_text(info->sites[ev[i].site].function, "events_of_two_processes_share_one_clock");
	weft_trace_rewind(trace);
	assert_int_equal(read_events(trace, again, 64), count);
	assert_memory_equal(ev, again, count * sizeof *ev);
	weft_trace_close(trace);
}

/* Records a client, whose call a server processes; the client ends long before the other processes. */
static void record_a_call(bool is_answered)
{
	begin(0, "client", 1000);
	now = 0;
	weft_id caller = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(caller);
	now = 1 * MS;
	weft_id call = weft_create(caller, WEFT_KIND_REQUEST, WEFT_SITE());
	WEFT_LABEL(call, "the call");
	weft_should_resolve(call);
	weft_await(caller, call);
	weft_message(call, 7, "bus :1.5", false);
	weft_idle(WEFT_IDLE_WAIT);
	now = 20 * MS;
	if (is_answered) {
		weft_resolve(WEFT_SYSTEM_ID, call);
		weft_read(caller, call);
	}
	now = 21 * MS;
	weft_idle(WEFT_IDLE_WAIT);
	weft_stop();
	begin(1, "server", 1000);
	now = 0;
	weft_id server = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(server);
	weft_idle(WEFT_IDLE_WAIT);
	now = 2 * MS;
	weft_id served = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
	WEFT_LABEL(served, "serve the call");
	weft_should_resolve(served);
	weft_signal(WEFT_SYSTEM_ID, served);
	weft_message(served, 7, "bus :1.5", true);
	now = 5 * MS;
	weft_idle(WEFT_IDLE_WAIT);
	now = 19 * MS;
	if (is_answered)
		weft_resolve(WEFT_SYSTEM_ID, served);
	now = 400 * MS;
	weft_idle(WEFT_IDLE_WAIT);
	weft_run(server);
	weft_idle(WEFT_IDLE_WAIT);
	weft_stop();
	begin(2, "bystander", 1000);
	now = 0;
	weft_id bystander = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(bystander);
	now = 900 * MS;
	weft_note(bystander, "still here");
	weft_stop();
}

static uint32_t promise_called(const struct weft_model *m, const char *name)
{
	for (uint32_t p = 1; p < m->promise_count; p++) {
		uint32_t text = weft_model_name_text(m, p);
		if (text != WEFT_NONE && weft_model_text(m, text).len == strlen(name) &&
		    !memcmp(weft_model_text(m, text).ptr, name, strlen(name)))
			return p;
	}
	fail_msg("no promise is called %s", name);
	return WEFT_NONE;
}

static void critical_path_of_a_call_passes_through_its_server(void **state)
{
	record_a_call(true);
	struct weft_trace *trace = join(3);
	struct weft_model *m = model_of(trace);
	struct weft_path *path = NULL;
	uint32_t call = promise_called(m, "the call"), served = promise_called(m, "serve the call");
	assert_int_equal(m->promises[served].id % 10, 1);
	assert_int_equal(weft_path_create(&path, m, call, NULL), WEFT_OK);
	static const struct {
		bool is_served;
		enum weft_step_kind kind;
		int64_t start_ns, end_ns;
	} steps[] = {
	    {true, WEFT_STEP_WAITING, 1 * MS, 19 * MS},
	    {false, WEFT_STEP_WAITING, 19 * MS, 20 * MS},
	};
	int64_t in_served_ns = 0;
	for (size_t i = 0; i < path->count; i++)
		in_served_ns += path->steps[i].promise == served ? path->steps[i].end_ns - path->steps[i].start_ns : 0;
	assert_int_equal(in_served_ns, steps[0].end_ns - steps[0].start_ns);
	const struct weft_path_step *last = &path->steps[path->count - 1];
	assert_true(last->promise == call && last->start_ns == steps[1].start_ns && last->end_ns == steps[1].end_ns);
	weft_path_destroy(path);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

/* The client ended at 21 ms, so its sleeps and its promises end there, too. */
static void process_in_a_joined_trace_ends_when_its_recording_ends(void **state)
{
	record_a_call(false);
	struct weft_trace *trace = join(3);
	struct weft_model *m = model_of(trace);
	uint32_t call = promise_called(m, "the call"), served = promise_called(m, "serve the call");
	assert_int_equal(m->end_ns, 900 * MS);
	assert_int_equal(m->promises[call].end_ns, 21 * MS);
	assert_int_equal(m->promises[served].end_ns, 400 * MS);
	assert_int_equal(weft_model_until(m, call), 21 * MS);
	assert_int_equal(weft_model_until(m, served), 400 * MS);
	for (size_t i = 0; i < m->sleep_count; i++)
		assert_true(m->sleeps[i].end_ns <= weft_model_stream_until(m, m->sleeps[i].stream));
	struct weft_findings *findings = NULL;
	assert_int_equal(weft_explain(&findings, m, NULL, NULL), WEFT_OK);
	const struct weft_finding *hang = NULL;
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == WEFT_FINDING_HANG && findings->findings[i].promise == call)
			hang = &findings->findings[i];
	assert_non_null(hang);
	assert_int_equal(hang->root, served);
	assert_int_equal(hang->end_ns, 21 * MS);
	weft_findings_destroy(findings);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

/* ---- Clocks ---- */

static char scratch[64];

static int set_up(void **state)
{
	strcpy(scratch, "/tmp/weft-join-XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];
	weft_stop();
	snprintf(command, sizeof command, "rm -rf %s", scratch);
	return system(command);
}

/* Replaces `what` by `with` in the metadata of a trace. */
static void change_metadata(const char *trace, const char *what, const char *with)
{
	static char text[1 << 16];
	char path[128];
	snprintf(path, sizeof path, "%s/metadata", trace);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t size = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[size] = 0;
	char *at = strstr(text, what);
	assert_non_null(at);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
	fclose(file);
}

/* Two processes read the same CPU counter.  The second one measured twice the frequency, and the wall clock was set forward by an
 * hour before it started. */
static void traces_with_one_clock_need_no_wall_clock(void **state)
{
	struct weft_trace *parts[2], *trace = NULL;
	struct weft_event ev[16];
	struct weft_error err = {0};
	char path[2][96];
	for (unsigned i = 0; i < 2; i++) {
		snprintf(path[i], sizeof path[i], "%s/trace%u", scratch, i);
		origin_ns = i ? 3600000000000 : 1000;
		now = 0;
		struct weft_record_options options = {.directory = path[i],
		    .clock = tick,
		    .clock_hz = i ? 2000000000 : 1000000000,
		    .wall_ns = wall_ns,
		    .size_bytes = 1 << 16};
		if (weft_start(&options) < 0)
			fail_msg("%s", weft_start_error());
		for (now = 1000 + i * 100; now < 1800; now += 200)
			weft_await(1, 2);
		weft_stop();
		change_metadata(path[i], "clock_source = \"caller\"", "clock_source = \"tsc\"");
		assert_int_equal(weft_trace_open(&parts[i], path[i], &err), WEFT_OK);
	}
	assert_int_equal(weft_trace_join(&trace, parts, 2, "both", &err), WEFT_OK);
	assert_true(weft_trace_info(trace)->parts[1].is_same_clock);
	size_t count = read_events(trace, ev, 16);
	int64_t expected_ns = 1000;
	for (size_t i = 0; i < count; i++) {
		if (ev[i].op != WEFT_OP_AWAIT)
			continue;
		assert_int_equal(ev[i].time_ns, expected_ns);
		expected_ns += 100;
	}
	assert_int_equal(expected_ns, 1800);
	weft_trace_close(trace);
	/* If the second trace is from another boot, its counter has started again, so the wall clock aligns the traces. */
	change_metadata(path[1], "recorder = \"", "recorder = \"another-boot-");
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(weft_trace_open(&parts[i], path[i], &err), WEFT_OK);
	assert_int_equal(weft_trace_join(&trace, parts, 2, "both", &err), WEFT_OK);
	assert_false(weft_trace_info(trace)->parts[1].is_same_clock);
	count = read_events(trace, ev, 16);
	assert_true(ev[count - 1].time_ns > 3000000000000);
	weft_trace_close(trace);
}

/* ---- Several hosts ---- */

/* The other host's clock started long before, and is faster by 100 ppm. */
static uint64_t there_shows(uint64_t true_ns)
{
	return true_ns + true_ns / 10000 + UINT64_C(5000000000);
}

enum { CALLS = 50, ON_ITS_WAY_NS = 100000 };

static weft_id begin_end(const char *text, int64_t sent)
{
	weft_id id = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
	weft__slow_detail(id, WEFT_DETAIL_CONNECTION, sent, text);
	return id;
}

/* Records a client that calls a server on another host every 10 ms; the server answers after 4 ms, and each message takes 100 us.
 * The client records each send `late_ns` too late, and does not record its first `untold` calls. */
static void record_two_hosts(const char *peer, uint64_t late_ns, unsigned untold)
{
	static uint64_t asks_ns[CALLS];
	char text[80];
	snprintf(text, sizeof text, "tcp 10.0.0.1:4000 10.0.0.2:80 %u", 7 * untold);
	for (unsigned i = 0; i < CALLS; i++)
		asks_ns[i] = (i + 1) * 10 * (uint64_t)MS;
	begin_at(0, "client", "here", 1000, 0);
	now = untold ? asks_ns[untold] - MS : 0;
	weft_id asks = begin_end(text, 10 * untold);
	for (unsigned i = untold; i < CALLS; i++) {
		now = asks_ns[i];
		weft_run(asks);
		now += late_ns;
		weft_sent(asks, 10 * (i + 1));
		weft_id answer = weft_create(asks, WEFT_KIND_STREAM_READ, WEFT_SITE());
		weft_label(answer, i == 30 ? "an answer" : "answer");
		weft_await(asks, answer);
		weft_idle(WEFT_IDLE_WAIT);
		now = asks_ns[i] + 4 * MS + 2 * ON_ITS_WAY_NS;
		weft_received(asks, 7 * (i + 1));
		weft_resolve(WEFT_SYSTEM_ID, answer);
		weft_read(asks, answer);
	}
	weft_stop();
	begin_at(1, "server", "there", 1000, 0);
	now = there_shows(0);
	weft_id asked = begin_end(peer, 0);
	for (unsigned i = 0; i < CALLS; i++) {
		now = there_shows(asks_ns[i] + ON_ITS_WAY_NS);
		weft_run(asked);
		weft_received(asked, 10 * (i + 1));
		weft_id work = weft_create(asked, WEFT_KIND_TIMER, WEFT_SITE());
		weft_label(work, i == 30 ? "it works" : "works");
		weft_idle(WEFT_IDLE_WAIT);
		now = there_shows(asks_ns[i] + 4 * MS + ON_ITS_WAY_NS);
		weft_signal(WEFT_SYSTEM_ID, work);
		weft_sent(asked, 7 * (i + 1));
		weft_resolve(work, work);
		weft_idle(WEFT_IDLE_WAIT);
	}
	weft_stop();
}

static void clocks_of_two_hosts_are_aligned_by_messages(void **state)
{
	record_two_hosts("tcp 10.0.0.2:80 10.0.0.1:4000 0", 0, 0);
	struct weft_trace *trace = join(2);
	const struct weft_part *parts = weft_trace_info(trace)->parts;
	struct weft_model *m = model_of(trace);
	assert_int_equal(parts[0].bound_ns, 0);
	assert_in_range(parts[1].bound_ns, ON_ITS_WAY_NS, 2 * ON_ITS_WAY_NS);
	assert_int_equal(m->transfer_count, 2 * CALLS);
	for (size_t i = 0; i < m->transfer_count; i++) {
		int64_t took_ns = m->transfers[i].received_ns - m->transfers[i].sent_ns;
		assert_in_range(took_ns, 0, 2 * ON_ITS_WAY_NS + 4);
	}
	/* The server starts to work on the answer when the call has arrived, and needs 4 ms. */
	uint32_t answer = promise_called(m, "an answer"), works = promise_called(m, "it works");
	int64_t began_ns = m->promises[works].start_ns - m->promises[answer].start_ns;
	assert_in_range(began_ns, 0, 2 * ON_ITS_WAY_NS + 4);
	struct weft_path *path = NULL;
	int64_t in_works_ns = 0;
	assert_int_equal(weft_path_create(&path, m, answer, NULL), WEFT_OK);
	for (size_t i = 0; i < path->count; i++)
		in_works_ns += path->steps[i].promise == works ? path->steps[i].end_ns - path->steps[i].start_ns : 0;
	assert_in_range(in_works_ns, 4 * MS - ON_ITS_WAY_NS, 4 * MS + ON_ITS_WAY_NS);
	/* The clock of the other host gives its processing time exactly.  The sum of the times that both messages need has
	 * narrower bounds than the time of each one. */
	struct weft_process_share *shares;
	size_t count;
	int64_t apart_ns = 0;
	assert_int_equal(weft_path_by_process(&shares, &count, m, path), WEFT_OK);
	assert_true(count >= 2 && shares[0].part == 1 && shares[1].part == WEFT_IN_TRANSIT);
	assert_int_equal(shares[0].low_ns, shares[0].high_ns);
	assert_in_range(shares[0].low_ns, 4 * MS - 4 * MS / 1000, 4 * MS + 4 * MS / 1000);
	assert_true(shares[1].low_ns <= 2 * ON_ITS_WAY_NS && shares[1].high_ns >= 2 * ON_ITS_WAY_NS);
	for (size_t i = 0; i < path->count; i++) {
		const struct weft_process_share one = weft_step_share(m, &path->steps[i]);
		const bool is_on_the_way = path->steps[i].sent_by != WEFT_NONE;
		assert_true(
		    is_on_the_way ? one.low_ns <= ON_ITS_WAY_NS && one.high_ns >= ON_ITS_WAY_NS : one.low_ns == one.high_ns);
		apart_ns += one.high_ns - one.low_ns;
	}
	assert_true(shares[1].high_ns - shares[1].low_ns < apart_ns / 4);
	free(shares);
	weft_path_destroy(path);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

/* Bytes that were written before the recording of the connection, and that the peer reads during it, do not count as lost. */
static void bytes_written_before_the_recording_do_not_count_as_lost(void **state)
{
	record_two_hosts("tcp 10.0.0.2:80 10.0.0.1:4000 0", 0, 5);
	struct weft_trace *trace = join(2);
	assert_int_equal(weft_trace_clock_sync(trace)->unwritten, 0);
	assert_int_equal(weft_trace_clock_sync(trace)->messages, 2 * (CALLS - 5));
	weft_trace_close(trace);
}

static void stream(weft_id end, enum weft_kind kind, uint64_t position)
{
	weft_id one = weft_create(end, kind, WEFT_SITE());
	weft_await(end, one);
	if (kind == WEFT_KIND_STREAM_READ)
		weft_received(end, position);
	else
		weft_sent(end, position);
	weft_resolve(WEFT_SYSTEM_ID, one);
	weft_read(end, one);
}

/* Records requests every 10 ms; the last request gets no response for two seconds. */
static void record_silence(void)
{
	enum { QUESTIONS = 10 };
	begin_at(0, "client", "here", 1000, 0);
	weft_id asks = begin_end("tcp 10.0.0.1:4000 10.0.0.2:80 0", 0),
		connect = weft_create(asks, WEFT_KIND_CONNECT, WEFT_SITE());
	weft_label(asks, "asks");
	weft_await(asks, connect);
	weft_resolve(WEFT_SYSTEM_ID, connect);
	for (unsigned i = 1; i <= QUESTIONS; i++) {
		now = i * 10 * (uint64_t)MS;
		stream(asks, WEFT_KIND_STREAM_WRITE, 10 * i);
		now += MS + 2 * ON_ITS_WAY_NS;
		if (i < QUESTIONS)
			stream(asks, WEFT_KIND_STREAM_READ, 10 * i);
	}
	now += 2000 * (uint64_t)MS;
	weft_label(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()), "the end");
	weft_stop();
	begin_at(1, "server", "there", 1000, 0);
	now = there_shows(0);
	weft_id listens = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, WEFT_SITE());
	weft_id asked = weft_create(listens, WEFT_KIND_CONNECTION, WEFT_SITE());
	weft_label(asked, "asked");
	weft__slow_detail(asked, WEFT_DETAIL_CONNECTION, 0, "tcp 10.0.0.2:80 10.0.0.1:4000 0");
	for (unsigned i = 1; i <= QUESTIONS; i++) {
		now = there_shows(i * 10 * (uint64_t)MS + ON_ITS_WAY_NS);
		stream(asked, WEFT_KIND_STREAM_READ, 10 * i);
		now = there_shows(i * 10 * (uint64_t)MS + ON_ITS_WAY_NS + MS);
		if (i < QUESTIONS)
			stream(asked, WEFT_KIND_STREAM_WRITE, 10 * i);
	}
	now = there_shows(2100 * (uint64_t)MS);
	weft_label(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()), "the end");
	weft_stop();
}

/* The finding is about the end of the connection that owes the answer, and names the end that waits for it. */
static void finding_about_an_unanswered_request_names_the_waiting_end(void **state)
{
	record_silence();
	struct weft_trace *trace = join(2);
	struct weft_model *m = model_of(trace);
	struct weft_findings *findings = NULL;
	unsigned seen = 0, count = 0;
	assert_int_equal(weft_explain(&findings, m, NULL, NULL), WEFT_OK);
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *finding = &findings->findings[i];
		for (size_t e = 0; finding->kind == WEFT_FINDING_UNANSWERED && e < finding->evidence_count; e++) {
			const char *text = finding->evidence[e].text;
			seen |=
			    strstr(text, "\"asks\"") &&
				    strstr(text, " in client@here is the other end of the connection, and waits for the answer")
				? 1
				: 0;
		}
		count += finding->kind == WEFT_FINDING_UNANSWERED;
	}
	assert_int_equal(count, 1);
	assert_int_equal(seen, 1);
	weft_findings_destroy(findings);
	weft_model_destroy(m);
	weft_trace_close(trace);
}

/* Joining fails if a host is behind NAT, or if messages seem to arrive before they are sent. */
static void hosts_whose_clocks_cannot_be_aligned_are_not_joined(void **state)
{
	static const struct {
		const char *peer, *why;
		uint64_t late_ns;
	} cases[] = {
	    {"tcp 10.0.0.2:80 192.168.0.9:4000 0", "no connection has both ends", 0},
	    {"tcp 10.0.0.2:80 10.0.0.1:4000 0", "negative time", MS},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weft_trace *parts[2], *trace = NULL;
		struct weft_error err = {0};
		record_two_hosts(cases[i].peer, cases[i].late_ns, 0);
		parts[0] = open_one(0);
		parts[1] = open_one(1);
		assert_int_equal(weft_trace_join(&trace, parts, 2, "both", &err), WEFT_EINVAL);
		assert_non_null(strstr(err.what, cases[i].why));
		assert_null(trace);
		weft_trace_close(parts[0]);
		weft_trace_close(parts[1]);
	}
}

/* ---- Traces that cannot be joined ---- */

static void record_one(unsigned number, const char *process, const char *host, weft_id first_id)
{
	begin_at(number, process, host, 1000, first_id);
	now = 10;
	weft_id promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_label(promise, "main");
	weft_stop();
}

static void failed_join_leaves_its_parts_unchanged(void **state)
{
	struct weft_trace *parts[2], *trace = NULL;
	struct weft_error err = {0};
	record_one(0, "client", "here", 0);
	record_one(1, "server", "there", 0);
	parts[0] = open_one(0);
	parts[1] = open_one(1);
	assert_int_equal(weft_trace_join(&trace, parts, 2, "both", &err), WEFT_EINVAL);
	assert_non_null(strstr(err.what, "another host"));
	assert_int_equal(weft_trace_join(&trace, parts, 0, "none", &err), WEFT_EINVAL);
	assert_int_equal(weft_trace_join(&trace, parts, 1001, "many", &err), WEFT_EINVAL);
	assert_null(trace);
	assert_int_equal(weft_trace_info(parts[1])->stream_count, 1);
	weft_trace_close(parts[0]);
	weft_trace_close(parts[1]);
}

static void events_with_ids_too_large_for_a_joined_trace_are_skipped(void **state)
{
	struct weft_event ev[16];
	record_one(0, "client", "here", 0);
	record_one(1, "server", "here", INT64_MAX / 5);
	struct weft_trace *trace = join(2);
	size_t count = read_events(trace, ev, 16);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ev[i].stream, 0);
	const struct weft_trace_info *info = weft_trace_info(trace);
	assert_int_equal(info->skipped_count, 1);
	assert_int_equal(info->parts[1].skipped_count, 1);
	assert_non_null(strstr(info->skipped[0].where.what, "2 events of server"));
	weft_trace_close(trace);
}

/* Processes with the same name get their process ids as numbers; a long name is cut in front of labels. */
static void joined_processes_of_equal_name_get_their_pid_in_the_name(void **state)
{
	static const char *const names[] = {"shell", "shell", "a name that is much longer than any name of a process"};
	struct weft_event ev[16];
	for (unsigned i = 0; i < 3; i++)
		record_one(i, names[i], "here", 0);
	struct weft_trace *trace = join(3);
	size_t count = read_events(trace, ev, 16);
	for (size_t i = 0; i < count; i++) {
		char expected[64];
		if (ev[i].op != WEFT_OP_LABEL)
			continue;
		if (ev[i].stream < 2)
			snprintf(expected, sizeof expected, "shell-%" PRIu64 ": main", weft_trace_info(trace)->parts[0].pid);
		else
			snprintf(expected, sizeof expected, "%.40s: main", names[2]);
		assert_text(ev[i].text, expected);
	}
	weft_trace_close(trace);
}

/* ---- Kernel events ---- */

struct told {
	struct weft_kernel_event first[64], last;
	size_t count;
};

static int tell(void *ctx, const struct weft_kernel_event *events, size_t count)
{
	struct told *told = ctx;
	for (size_t i = 0; i < count; i++, told->count++)
		if (told->count < 64)
			told->first[told->count] = events[i];
	told->last = events[count - 1];
	return 0;
}

static void kernel_events_of_each_joined_trace_are_kept(void **state)
{
	struct weft_trace *parts[2], *trace = NULL, *alone = NULL;
	struct weft_error err = {0};
	static struct told told, both;
	struct weft_kernel_info info, all;
	assert_int_equal(weft_trace_open(&alone, WEFT_CORPUS "/native/kernel", &err), WEFT_OK);
	assert_int_equal(weft_trace_kernel(alone, tell, &told, &info), 1);
	assert_true(told.count > 64 && told.count == info.events && info.is_whole);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weft_trace_open(&parts[i], WEFT_CORPUS "/native/kernel", &err), WEFT_OK);
	assert_int_equal(weft_trace_join(&trace, parts, 2, "both", &err), WEFT_OK);
	assert_int_equal(weft_trace_kernel(trace, tell, &both, &all), 1);
	assert_int_equal(both.count, 2 * told.count);
	assert_memory_equal(both.first, told.first, sizeof told.first);
	assert_int_equal(both.last.time_ns, told.last.time_ns);
	assert_int_equal(both.last.tid, told.last.tid);
	assert_int_equal(all.events, 2 * info.events);
	assert_int_equal(all.bytes, 2 * info.bytes);
	assert_int_equal(all.thread_count, info.thread_count);
	assert_int_equal(all.level, info.level);
	assert_int_equal(all.bound_ns, info.bound_ns);
	assert_int_equal(all.processors, info.processors);
	assert_int_equal(all.until_ns, info.until_ns);
	assert_true(all.is_whole);
	for (size_t i = 0; i < info.thread_count; i++)
		assert_int_equal(all.threads[i].tid, info.threads[i].tid);
	weft_trace_close(trace);
	weft_trace_close(alone);
}

/* ---- Memory ---- */

static void while_memory_is_short(bool one)
{
	bool failed = true;
	long n = 0;
	for (; failed; n++) {
		struct weft_trace *parts[] = {open_one(0), open_one(1), open_one(2)}, *trace = NULL;
		struct weft_model *model = NULL;
		struct weft_error err = {0};
		only_one_fails = one;
		allocations_left = n;
		int status = weft_trace_join(&trace, parts, 3, "all", &err);
		bool is_joined = status == WEFT_OK;
		if (is_joined)
			status = weft_model_build(&model, trace, NULL, &err);
		failed = one ? allocations_left < 0 : status != WEFT_OK;
		allocations_left = -1;
		if (status != WEFT_OK)
			assert_int_equal(err.status, WEFT_ENOMEM);
		weft_model_destroy(model);
		weft_trace_close(trace);
		for (int i = 0; i < 3 && !is_joined; i++)
			weft_trace_close(parts[i]);
	}
	assert_true(n > 10);
}

static void join_survives_failed_allocations(void **state)
{
	record_a_call(false);
	while_memory_is_short(true);
	while_memory_is_short(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events_of_two_processes_share_one_clock),
	    cmocka_unit_test(critical_path_of_a_call_passes_through_its_server),
	    cmocka_unit_test(process_in_a_joined_trace_ends_when_its_recording_ends),
	    cmocka_unit_test_setup_teardown(traces_with_one_clock_need_no_wall_clock, set_up, tear_down),
	    cmocka_unit_test(clocks_of_two_hosts_are_aligned_by_messages),
	    cmocka_unit_test(bytes_written_before_the_recording_do_not_count_as_lost),
	    cmocka_unit_test(finding_about_an_unanswered_request_names_the_waiting_end),
	    cmocka_unit_test(hosts_whose_clocks_cannot_be_aligned_are_not_joined),
	    cmocka_unit_test(failed_join_leaves_its_parts_unchanged),
	    cmocka_unit_test(events_with_ids_too_large_for_a_joined_trace_are_skipped),
	    cmocka_unit_test(joined_processes_of_equal_name_get_their_pid_in_the_name),
	    cmocka_unit_test(kernel_events_of_each_joined_trace_are_kept),
	    cmocka_unit_test(joined_events_are_sorted_by_time),
	    cmocka_unit_test(join_survives_failed_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
