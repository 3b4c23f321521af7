/* wrapped_test.c: findings of small wrapped rings: state dumps repeat promises that are older than the rings.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <unistd.h>

#include "findings.h"

static char folder[64];

/* The pending promises of the program, which it lists for the recorder as docs/instrument-api.md describes. */
static struct {
	weft_id id, by;
	uint64_t since;
	enum weft_kind kind;
	const char *label;
	bool is_set_anew;
} listed[200];
static size_t listed_count;

/* Creation site of all of them: repeated records have the same site. */
static struct weft_record_site *place(void)
{
	return WEFT_SITE();
}

static uint64_t list(void *data, uint64_t cursor, unsigned budget)
{
	for (; cursor < listed_count && budget > 0; cursor++)
		if (listed[cursor].id) {
			weft_pending(listed[cursor].by, listed[cursor].id, listed[cursor].kind, place(), listed[cursor].since,
			    listed[cursor].label);
			if (listed[cursor].is_set_anew)
				WEFT_NOTE(listed[cursor].id, "started again");
			budget--;
		}
	return cursor < listed_count ? cursor : 0;
}

static void record_ring(uint64_t bytes)
{
	strcpy(folder, "/tmp/weft-wrapped-XXXXXX");
	assert_non_null(mkdtemp(folder));
	char path[80];
	snprintf(path, sizeof path, "%s/trace", folder);
	now_ns = 1000000000;
	listed_count = 0;
	const struct weft_record_options options = {
	    .directory = path, .size_bytes = bytes, .packets = 4, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
	weft_list_pending(list, NULL);
}

static weft_id begin_listed(weft_id by, enum weft_kind kind, const char *label)
{
	weft_id id = weft_create(by, kind, place());
	weft_label(id, label);
	listed[listed_count].id = id;
	listed[listed_count].is_set_anew = false;
	listed[listed_count].by = by;
	listed[listed_count].since = now_ns;
	listed[listed_count].kind = kind;
	listed[listed_count++].label = label;
	return id;
}

static weft_id end_listed(size_t number)
{
	weft_id id = listed[number].id;
	listed[number].id = 0;
	weft_resolve(WEFT_SYSTEM_ID, id);
	return id;
}

static void explain_ring(void)
{
	char path[80], command[80];
	struct weft_error err;
	weft_list_pending(NULL, NULL);
	weft_stop();
	snprintf(path, sizeof path, "%s/trace", folder);
	assert_int_equal(weft_trace_open(&trace, path, &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, &err), WEFT_OK);
	assert_int_equal(weft_explain(&findings, model, NULL, &err), WEFT_OK);
	assert_true(weft_trace_info(trace)->wrapped);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static const struct weft_finding *find(enum weft_finding_kind kind)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == kind)
			return &findings->findings[i];
	return NULL;
}

/* Records tasks that each end within a ms. */
static void go_on(int count, const char *label)
{
	for (int i = 0; i < count; i++) {
		begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, label);
		sleep_for(MS);
		weft_run(WEFT_SYSTEM_ID);
		end_listed(--listed_count);
	}
}

/* ---- Tests ---- */

/* The recorder repeats as many pending promises as fit into half a lap.  It starts in the first lap, because a program that hangs
 * early records no further lap. */
static void each_lap_of_the_ring_repeats_pending_promises(void **state)
{
	record_ring(64 << 10);
	for (int i = 0; i < 100; i++)
		begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, "session");
	go_on(1500, "request");
	explain_ring();
	size_t known = 0;
	for (uint32_t p = 1; p < model->promise_count; p++)
		known += weft_first_label(model, p) != WEFT_NONE && model->promises[p].end == WEFT_END_PENDING &&
			 weft_model_text(model, model->labels[weft_first_label(model, p)].text).len == 7;
	assert_int_equal(known, 100);
	forget();
}

static void promise_older_than_ended_ones_of_its_type_is_stuck(void **state)
{
	record_ring(64 << 10);
	weft_id stuck = begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, "deliver");
	go_on(3000, "deliver");
	explain_ring();
	const struct weft_finding *finding = find(WEFT_FINDING_STUCK);
	assert_non_null(finding);
	assert_int_equal(model->promises[finding->promise].id, stuck);
	assert_false(finding->sure);
	assert_non_null(strstr(finding->title, "\"deliver\""));
	forget();
}

static void make_timers(int requests, bool is_set_anew)
{
	for (int i = 0; i < 60; i++) {
		weft_id connection = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
		weft_run(connection);
		begin_listed(connection, WEFT_KIND_TIMER, "every 20 s");
		listed[listed_count - 1].is_set_anew = is_set_anew;
		weft_resolve(connection, connection);
		go_on(requests, "request");
	}
}

/* The ring has lost the connections that created the timers; in the second case, it has also lost the creation times of the
 * timers. */
static void growing_number_of_timers_is_a_leak(void **state)
{
	for (int is_over = 0; is_over < 2; is_over++) {
		record_ring(64 << 10);
		make_timers(50, false);
		go_on(is_over ? 3000 : 0, "request");
		explain_ring();
		const struct weft_finding *finding = find(WEFT_FINDING_LEAK);
		assert_non_null(finding);
		assert_non_null(strstr(finding->title, "60 promises \"every 20 s\""));
		assert_false(finding->sure);
		forget();
	}
}

/* A cache has a timer for each key, and sets it again before it fires. */
static void rearmed_timers_are_no_leak(void **state)
{
	for (int is_set_anew = 0; is_set_anew < 2; is_set_anew++) {
		record_ring(64 << 10);
		make_timers(50, is_set_anew);
		explain_ring();
		assert_int_equal(find(WEFT_FINDING_LEAK) == NULL, is_set_anew);
		forget();
	}
}

/* Sessions last longer than a lap of the ring, so the number of ended sessions is unknown. */
static void long_lived_promises_are_no_leak(void **state)
{
	for (int all_early = 0; all_early < 2; all_early++) {
		record_ring(64 << 10);
		for (int i = 0; i < 60; i++) {
			begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, "session");
			sleep_for(MS);
		}
		for (size_t i = 0; i < 120; i++) {
			go_on(25, "request");
			if (!all_early) {
				listed_count = 60;
				end_listed(i % 60);
				begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, "session");
				listed[i % 60] = listed[--listed_count];
			}
		}
		explain_ring();
		assert_null(find(WEFT_FINDING_LEAK));
		forget();
	}
}

static void slow_promise_older_than_the_ring_is_reported(void **state)
{
	record_ring(64 << 10);
	weft_id slow = begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_TASK, "page");
	go_on(2000, "page");
	end_listed(0);
	listed_count = 0;
	go_on(20, "page");
	explain_ring();
	const struct weft_finding *finding = find(WEFT_FINDING_SLOW);
	assert_non_null(finding);
	assert_int_equal(model->promises[finding->promise].id, slow);
	assert_non_null(strstr(finding->title, "took 2.0"));
	forget();
}

/* The ring has kept only the last tries.  200 tries are reported; a program that made only 20 tries is not. */
static void retries_older_than_the_ring_are_reported(void **state)
{
	for (int are_more = 0; are_more < 2; are_more++) {
		record_ring(16 << 10);
		if (!are_more)
			go_on(200, "request");
		weft_id client = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_run(client);
		for (int i = 0; i < (are_more ? 200 : 20); i++) {
			weft_id try = weft_create(client, WEFT_KIND_CONNECT, WEFT_SITE());
			weft_label(try, "connect to the bank");
			for (int k = 0; k < 20; k++)
				weft_signal_only(client, try);
			weft_fail(client, try, "refused");
			weft_read_later(client, try);
			now_ns += 3 * MS;
			/* The client is replaced by a new promise from time to time, so that the ring always has the creation of
			 * the present client. */
			if (i % 10 == 9) {
				client = weft_create(client, WEFT_KIND_BIND, WEFT_SITE());
				weft_run(client);
			}
		}
		explain_ring();
		assert_int_equal(find(WEFT_FINDING_RETRIES) != NULL, are_more);
		forget();
	}
}

static struct weft_record_text parcels = WEFT_COUNTER("parcels");

/* Each event of a counter that is set has its value, so the rise is known although the ring has lost older events. */
static void rising_counter_is_a_backlog(void **state)
{
	for (int falls = 0; falls < 2; falls++) {
		record_ring(16 << 10);
		for (int i = 0; i < 600; i++) {
			go_on(4, "request");
			/* Two items are added for each that is removed; if `falls` is true, the number of items stays the same.
			 */
			const int wave = i % 3 == 2 ? -1 : 1, waves = i / 3 + (i % 3 == 1);
			weft_counter_set(WEFT_SYSTEM_ID, &parcels, falls ? 100 + wave : 20 + waves);
		}
		explain_ring();
		const struct weft_finding *finding = find(WEFT_FINDING_BACKLOG);
		assert_int_equal(finding != NULL, !falls);
		if (finding) {
			assert_false(finding->sure);
			assert_non_null(strstr(finding->title, "\"parcels\" grew to 2"));
		}
		forget();
	}
}

/* The peer sends a request on the connection, and gets the response. */
static void answer(weft_id connection)
{
	weft_run(connection);
	const weft_id read = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
	weft_await(connection, read);
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, read);
	weft_run(connection);
	weft_read(connection, read);
	const weft_id write = weft_create(connection, WEFT_KIND_STREAM_WRITE, WEFT_SITE());
	weft_await(connection, write);
	weft_resolve(WEFT_SYSTEM_ID, write);
	weft_read(connection, write);
	weft_run(WEFT_SYSTEM_ID);
}

/* The ring has lost the messages of a connection that is still open; all other connections have ended. */
static void silent_open_connection_is_reported(void **state)
{
	for (int is_silent = 0; is_silent < 2; is_silent++) {
		record_ring(64 << 10);
		const weft_id listener = begin_listed(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, "port 8080");
		const weft_id left = begin_listed(listener, WEFT_KIND_CONNECTION, "from 10.0.0.1:40001");
		answer(left);
		for (int i = 0; i < 600; i++) {
			const weft_id other = begin_listed(listener, WEFT_KIND_CONNECTION, "from 10.0.0.1:40002");
			answer(other);
			end_listed(--listed_count);
			if (!is_silent && i % 5 == 0)
				answer(left);
		}
		sleep_for(10 * MS);
		explain_ring();
		const struct weft_finding *finding = find(WEFT_FINDING_UNANSWERED);
		assert_int_equal(finding != NULL, is_silent);
		if (finding) {
			assert_int_equal(model->promises[finding->promise].id, left);
			assert_int_equal(finding->severity, WEFT_SEVERITY_INFORMATION);
			assert_non_null(strstr(finding->title, " has been silent for "));
		}
		forget();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_lap_of_the_ring_repeats_pending_promises),
	    cmocka_unit_test(promise_older_than_ended_ones_of_its_type_is_stuck),
	    cmocka_unit_test(growing_number_of_timers_is_a_leak),
	    cmocka_unit_test(rearmed_timers_are_no_leak),
	    cmocka_unit_test(long_lived_promises_are_no_leak),
	    cmocka_unit_test(slow_promise_older_than_the_ring_is_reported),
	    cmocka_unit_test(rising_counter_is_a_backlog),
	    cmocka_unit_test(silent_open_connection_is_reported),
	    cmocka_unit_test(retries_older_than_the_ring_are_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
