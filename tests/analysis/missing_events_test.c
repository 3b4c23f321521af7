/* missing_events_test.c: findings of traces with cut files: findings from before the cut are certain, later ones are unknown.
 * SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "findings.h"

/* ---- Traces in files ---- */

static char folder[64], copy_of_it[80];

static void record_files(void)
{
	strcpy(folder, "/tmp/weft-missing-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(copy_of_it, sizeof copy_of_it, "%s/copy", folder);
	char path[80];
	snprintf(path, sizeof path, "%s/trace", folder);
	now_ns = 1000000000;
	const struct weft_record_options options = {
	    .directory = path, .mode = WEFT_RECORD_GROW, .clock = read_clock, .clock_hz = 1000000000};
	assert_int_equal(weft_start(&options), WEFT_OK);
}

static void run_command(const char *format, ...)
{
	char command[400];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

/* Copies the current trace into `copy_of_it`. */
static void copy_files(void)
{
	run_command("rm -rf %s && cp -r %s/trace %s", copy_of_it, folder, copy_of_it);
}

/* Truncates a file to `bytes`, or cuts -bytes off its end. */
static void cut(const char *file, long bytes)
{
	char path[120];
	struct stat now;
	snprintf(path, sizeof path, "%s/%s", copy_of_it, file);
	assert_int_equal(stat(path, &now), 0);
	assert_int_equal(truncate(path, bytes < 0 ? now.st_size + bytes : bytes), 0);
}

/* Truncates a file to a percentage of its size. */
static void cut_at(const char *file, int percent)
{
	char path[120];
	struct stat now;
	snprintf(path, sizeof path, "%s/%s", copy_of_it, file);
	assert_int_equal(stat(path, &now), 0);
	cut(file, now.st_size * percent / 100);
}

static void explain_copy(void)
{
	struct weft_error err;
	assert_int_equal(weft_trace_open(&trace, copy_of_it, &err), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, NULL, &err), WEFT_OK);
	assert_int_equal(weft_explain(&findings, model, NULL, &err), WEFT_OK);
}

static void end_files(void)
{
	forget();
	run_command("rm -rf %s", folder);
}

/* Records many events at the end, so that a cut affects only these. */
static void fill(void)
{
	weft_id filler = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	for (int i = 0; i < 4000; i++)
		weft_signal_only(WEFT_SYSTEM_ID, filler);
}

static const struct weft_finding *find(enum weft_finding_kind kind)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == kind)
			return &findings->findings[i];
	return NULL;
}

static size_t count_alarms(void)
{
	size_t count = 0;
	for (size_t i = 0; i < findings->count; i++)
		count += findings->findings[i].severity == WEFT_SEVERITY_ALARM;
	return count;
}

/* ---- Recorded faults ---- */

static weft_id fail_unread(const char *label)
{
	weft_id who = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()),
		lost = weft_create(who, WEFT_KIND_TASK, WEFT_SITE());
	weft_run(who);
	weft_label(lost, label);
	weft_fail(who, lost, "no such zone");
	weft_resolve(who, who);
	sleep_for(MS);
	return lost;
}

/* Three promises become ready while the OS thread is busy. */
static weft_id stall(void)
{
	weft_id work = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_ASYNC, WEFT_SITE()), waiters[3], inputs[3];
	for (int i = 0; i < 3; i++) {
		waiters[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		inputs[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_await(waiters[i], inputs[i]);
	}
	weft_run(work);
	for (int i = 0; i < 3; i++)
		weft_resolve(work, inputs[i]);
	now_ns += 80 * MS;
	for (int i = 0; i < 3; i++) {
		weft_run(waiters[i]);
		weft_read(waiters[i], inputs[i]);
		weft_resolve(waiters[i], waiters[i]);
	}
	weft_resolve(WEFT_SYSTEM_ID, work);
	sleep_for(MS);
	return work;
}

static void leak(int count)
{
	for (int i = 0; i < count; i++) {
		weft_id session = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_label(session, "session");
		sleep_for(MS);
	}
}

static weft_id shared;

static void begin_shared(void)
{
	shared = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_await(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()), shared);
}

/* A pool thread: runs promises of other threads, and ends none. */
static void work_a_little(void)
{
	for (int i = 0; i < 20; i++) {
		weft_run(shared);
		now_ns += MS / 100;
		weft_idle(WEFT_IDLE_WAIT);
	}
}

static struct weft_record_text requests = WEFT_COUNTER("requests");

static void work_and_count(void)
{
	work_a_little();
	weft_counter_add(shared, &requests, 1);
}

/* ---- Tests ---- */

static void finding_before_missing_events_is_certain(void **state)
{
	record_files();
	weft_id lost = fail_unread("prefetch");
	leak(60);
	fill();
	copy_files();
	weft_stop();
	copy_files();
	cut_at("stream-0-0", 50);
	explain_copy();
	const struct weft_finding *failure = find(WEFT_FINDING_FAILURE), *leaks = find(WEFT_FINDING_LEAK);
	assert_non_null(failure);
	assert_int_equal(model->promises[failure->promise].id, lost);
	assert_true(failure->sure);
	assert_non_null(leaks);
	assert_non_null(strstr(leaks->title, "60 promises \"session\""));
	assert_true(leaks->sure);
	assert_non_null(findings->doubt);
	end_files();
}

/* The cut is inside an event or between two events. */
static void file_cut_anywhere_is_reported_as_missing_events(void **state)
{
	record_files();
	fail_unread("prefetch");
	begin_shared();
	weft_stop();
	for (long bytes = 1; bytes < 100; bytes++) {
		copy_files();
		cut("stream-0-0", -bytes);
		explain_copy();
		assert_int_equal(weft_trace_info(trace)->gap_count, 1);
		assert_true(weft_trace_info(trace)->gaps[0].to_ns == INT64_MAX);
		forget();
	}
	end_files();
}

/* The file of a killed program ends with space for further events; a cut in this space loses no event. */
static void cut_in_unused_space_loses_no_event(void **state)
{
	record_files();
	fail_unread("prefetch");
	copy_files();
	weft_stop();
	cut_at("stream-0-0", 50);
	cut_at("definitions-0", 50);
	explain_copy();
	assert_int_equal(weft_trace_info(trace)->gap_count, 0);
	assert_true(weft_trace_info(trace)->skipped_count > 0);
	assert_true(only(WEFT_FINDING_FAILURE, 0)->sure);
	assert_non_null(strstr(findings->findings[0].title, "\"prefetch\""));
	end_files();
}

/* Overwrites the first byte of each copy of the text in the file. */
static void spoil(const char *file, const char *text)
{
	char path[120];
	static char bytes[1 << 20];
	snprintf(path, sizeof path, "%s/%s", copy_of_it, file);
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	const size_t size = fread(bytes, 1, sizeof bytes, f);
	for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), text, strlen(text))); at++)
		*at = '?';
	rewind(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
}

static struct weft_record_text zones = WEFT_COUNTER("zones");

/* The first packets of each stream repeat the definitions that they use, so these names survive the loss of the definitions file.
 */
static void names_lost_with_the_definitions_are_read_from_the_streams(void **state)
{
	for (int is_lost = 0; is_lost < 2; is_lost++) {
		record_files();
		weft_id lost = fail_unread("prefetch");
		weft_counter_add(lost, &zones, 1);
		weft_stop();
		copy_files();
		if (is_lost)
			run_command("rm %s/definitions-0", copy_of_it);
		else
			cut("definitions-0", 165);
		explain_copy();
		const struct weft_finding *failure = only(WEFT_FINDING_FAILURE, lost);
		assert_true(failure->sure);
		assert_non_null(strstr(failure->evidence[0].text, "missing_events_test.c"));
		assert_int_equal(model->counter_count, 1);
		assert_memory_equal(model->counters[0].name.ptr, "zones", 6);
		end_files();
	}
}

/* No event is missing if only names are lost, but findings are uncertain, because objects without a name cannot be told apart. */
static void findings_without_names_are_uncertain(void **state)
{
	record_files();
	weft_id lost = fail_unread("prefetch");
	weft_stop();
	copy_files();
	cut("definitions-0", -20);
	spoil("stream-0-0", "\nfail_unread\n");
	explain_copy();
	const struct weft_finding *failure = only(WEFT_FINDING_FAILURE, lost);
	assert_false(failure->sure);
	assert_non_null(strstr(failure->doubt, "names"));
	end_files();
}

static void promise_pending_at_missing_events_is_no_alarm(void **state)
{
	record_files();
	for (int i = 0; i < 40; i++) {
		weft_id page = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE());
		weft_label(page, "page");
		weft_should_resolve(page);
		sleep_for(MS);
		weft_resolve(WEFT_SYSTEM_ID, page);
	}
	weft_id holder = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_REQUEST, WEFT_SITE()),
		lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
	weft_should_resolve(holder);
	weft_run(holder);
	weft_hold(holder, lock);
	fill();
	weft_release(holder, lock);
	weft_resolve(holder, holder);
	weft_stop();
	copy_files();
	cut_at("stream-0-0", 60);
	explain_copy();
	assert_int_equal(count_alarms(), 0);
	end_files();
}

/* The last events of the pool's OS threads are missing, and the loop has recorded all of its own.  Findings about the loop are
 * uncertain. */
static void incomplete_pool_thread_makes_loop_findings_uncertain(void **state)
{
	record_files();
	begin_shared();
	sleep_for(MS);
	begin_other_thread();
	on_other_thread(work_a_little);
	weft_resolve(WEFT_SYSTEM_ID, shared);
	sleep_for(MS);
	weft_id lost = fail_unread("prefetch");
	on_other_thread(NULL);
	weft_stop();
	copy_files();
	cut("stream-1-0", -30);
	explain_copy();
	const struct weft_finding *failure = find(WEFT_FINDING_FAILURE);
	assert_non_null(failure);
	assert_int_equal(model->promises[failure->promise].id, lost);
	assert_false(failure->sure);
	assert_non_null(strstr(failure->doubt, "events of some threads"));
	end_files();
}

static void *do_deed(void *action)
{
	(*(void (**)(void))action)();
	return NULL;
}

/* Runs a function on a new OS thread, which then ends. */
static void run_on_a_new_thread(void (*action)(void))
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, do_deed, &action), 0);
	pthread_join(thread, NULL);
}

static void end_shared(void)
{
	weft_id worker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(worker);
	weft_resolve(worker, shared);
	weft_idle(WEFT_IDLE_WAIT);
}

/* All events of the second of two pool threads are lost.  If the first pool thread ended no promise, findings of the loop are
 * reported: the second thread is assumed to have ended none, either. */
static void pool_thread_without_events_is_treated_like_its_pool(void **state)
{
	for (int acts = 0; acts < 2; acts++) {
		record_files();
		begin_shared();
		sleep_for(MS);
		begin_other_thread();
		on_other_thread(acts ? end_shared : work_a_little);
		run_on_a_new_thread(work_a_little);
		on_other_thread(NULL);
		fail_unread("prefetch");
		weft_stop();
		copy_files();
		cut("stream-2-0", 210);
		explain_copy();
		assert_int_equal(find(WEFT_FINDING_FAILURE) != NULL, !acts);
		end_files();
	}
}

static weft_id jobs[3];

static void begin_jobs(void)
{
	for (int i = 0; i < 3; i++) {
		jobs[i] = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_WORK, WEFT_SITE());
		weft_should_resolve(jobs[i]);
	}
}

static void do_jobs(void)
{
	for (int i = 0; i < 3; i++) {
		weft_run(jobs[i]);
		now_ns += MS;
		weft_resolve(WEFT_SYSTEM_ID, jobs[i]);
	}
	weft_idle(WEFT_IDLE_WAIT);
}

/* A pool thread, as in GLib, ends only the promises that it runs.  If its last events are missing, hangs of its jobs are not
 * reported; failures of other promises are. */
static void incomplete_pool_thread_hides_hangs_of_its_jobs_but_no_failures(void **state)
{
	record_files();
	begin_jobs();
	begin_other_thread();
	on_other_thread(do_jobs);
	weft_id lost = fail_unread("prefetch");
	sleep_for(2000 * MS);
	fail_unread("fetch");
	on_other_thread(NULL);
	weft_stop();
	copy_files();
	cut("stream-1-0", -40); /* cuts the stream behind the events of its first job */
	explain_copy();
	const struct weft_finding *failure = find(WEFT_FINDING_FAILURE);
	assert_non_null(failure);
	assert_int_equal(model->promises[failure->promise].id, lost);
	assert_false(failure->sure);
	assert_null(find(WEFT_FINDING_HANG));
	end_files();
}

/* If a file has lost even its header, the definitions still say that its stream exists, so its events count as missing. */
static void stream_with_a_cut_header_makes_findings_uncertain(void **state)
{
	record_files();
	begin_shared();
	begin_other_thread();
	on_other_thread(work_a_little);
	run_on_a_new_thread(work_a_little);
	on_other_thread(NULL);
	fail_unread("prefetch");
	weft_stop();
	for (int i = 0; i < 2; i++) {
		copy_files();
		cut(i ? "definitions-0" : "stream-2-0", 100);
		explain_copy();
		assert_non_null(find(WEFT_FINDING_FAILURE));
		assert_int_equal(find(WEFT_FINDING_FAILURE)->sure, i);
		forget();
	}
	end_files();
}

/* The missing events include changes of the counter, so its values are unknown. */
static void counter_of_an_incomplete_thread_is_no_backlog(void **state)
{
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		record_files();
		begin_shared();
		sleep_for(MS);
		begin_other_thread();
		on_other_thread(work_and_count);
		for (int i = 0; i < 200; i++) {
			weft_counter_add(shared, &requests, i % 3 ? 1 : -1);
			sleep_for(MS);
		}
		on_other_thread(work_a_little);
		on_other_thread(NULL);
		weft_stop();
		copy_files();
		if (is_cut)
			cut("stream-1-0", -30);
		explain_copy();
		assert_int_equal(find(WEFT_FINDING_BACKLOG) != NULL, !is_cut);
		end_files();
	}
}

static void await_and_go(void)
{
	weft_await(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()), shared);
	for (int i = 0; i < 100; i++)
		weft_signal_only(WEFT_SYSTEM_ID, shared);
}

/* The events of another thread, which awaits and ends promises, are missing from 10 ms on; the stall comes earlier. */
static void stall_before_missing_events_is_found(void **state)
{
	record_files();
	begin_shared();
	begin_other_thread();
	on_other_thread(await_and_go);
	weft_id work = stall();
	on_other_thread(NULL);
	weft_stop();
	copy_files();
	cut_at("stream-1-0", 90);
	explain_copy();
	assert_true(model->whole && model->whole->end_ns < 10 * MS);
	const struct weft_finding *found = find(WEFT_FINDING_STALL);
	assert_non_null(found);
	assert_int_equal(model->promises[found->promise].id, work);
	assert_false(found->sure);
	end_files();
}

static void continue_for_a_long_time(void)
{
	weft_id beat = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	for (int i = 0; i < 20; i++) {
		weft_await(shared, beat);
		now_ns += 10 * MS;
		weft_signal(WEFT_SYSTEM_ID, beat);
	}
}

/* A promise that runs in the last known event of its thread may have stopped right after that event. */
static void run_at_the_end_of_an_incomplete_trace_is_no_stall(void **state)
{
	record_files();
	begin_shared();
	weft_run(shared);
	for (int i = 0; i < 200; i++)
		weft_signal_only(shared, shared);
	begin_other_thread();
	on_other_thread(continue_for_a_long_time);
	on_other_thread(NULL);
	weft_stop();
	copy_files();
	cut_at("stream-0-0", 70);
	explain_copy();
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == WEFT_FINDING_STALL)
			assert_int_not_equal(model->promises[findings->findings[i].promise].id, shared);
	end_files();
}

static weft_id answer;

static void await_answer(void)
{
	answer = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	weft_should_resolve(answer);
	weft_fail(WEFT_SYSTEM_ID, shared, "no such zone");
	sleep_for(2000 * MS);
	for (int i = 0; i < 100; i++)
		weft_signal_only(WEFT_SYSTEM_ID, answer);
}

/* When the events of a thread end, one promise is pending, and the error of another one is unread.  Later events of the other
 * thread resolve the first and read the error. */
static void promise_ended_after_missing_events_does_not_hang(void **state)
{
	for (int ends = 0; ends < 2; ends++) {
		record_files();
		shared = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		weft_run(WEFT_SYSTEM_ID);
		begin_other_thread();
		on_other_thread(await_answer);
		now_ns += 100 * MS;
		if (ends) {
			weft_resolve(WEFT_SYSTEM_ID, answer);
			weft_read_later(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()), shared);
		}
		on_other_thread(NULL);
		weft_stop();
		copy_files();
		cut_at("stream-1-0", 90);
		explain_copy();
		assert_non_null(model->whole);
		assert_int_equal(find(WEFT_FINDING_HANG) != NULL, !ends);
		assert_int_equal(find(WEFT_FINDING_FAILURE) != NULL, !ends);
		end_files();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(finding_before_missing_events_is_certain),
	    cmocka_unit_test(file_cut_anywhere_is_reported_as_missing_events),
	    cmocka_unit_test(cut_in_unused_space_loses_no_event),
	    cmocka_unit_test(names_lost_with_the_definitions_are_read_from_the_streams),
	    cmocka_unit_test(findings_without_names_are_uncertain),
	    cmocka_unit_test(promise_pending_at_missing_events_is_no_alarm),
	    cmocka_unit_test(incomplete_pool_thread_makes_loop_findings_uncertain),
	    cmocka_unit_test(pool_thread_without_events_is_treated_like_its_pool),
	    cmocka_unit_test(incomplete_pool_thread_hides_hangs_of_its_jobs_but_no_failures),
	    cmocka_unit_test(stream_with_a_cut_header_makes_findings_uncertain),
	    cmocka_unit_test(counter_of_an_incomplete_thread_is_no_backlog),
	    cmocka_unit_test(stall_before_missing_events_is_found),
	    cmocka_unit_test(run_at_the_end_of_an_incomplete_trace_is_no_stall),
	    cmocka_unit_test(promise_ended_after_missing_events_does_not_hang),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
