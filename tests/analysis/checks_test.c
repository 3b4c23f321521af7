/* checks_test.c: for some checks, a trace in which the check must report a fault, and a similar trace in which it must not.
 * SPDX-License-Identifier: ISC */
#include "findings.h"

static size_t count_of(enum weft_finding_kind kind)
{
	size_t count = 0;
	for (size_t i = 0; i < findings->count; i++)
		count += findings->findings[i].kind == kind;
	return count;
}

static const struct weft_finding *find(enum weft_finding_kind kind)
{
	for (size_t i = 0; i < findings->count; i++)
		if (findings->findings[i].kind == kind)
			return &findings->findings[i];
	return NULL;
}

static const struct weft_finding *assert_says(enum weft_finding_kind kind, weft_id where, const char *says)
{
	const struct weft_finding *finding = find(kind);
	assert_non_null(finding);
	assert_int_equal(model->promises[finding->promise].id, where);
	if (!strstr(finding->title, says))
		fail_msg("\"%s\" does not say \"%s\"", finding->title, says);
	return finding;
}

/* ---- Double resolve ---- */

static weft_id answer(void)
{
	return weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
}

static void promises_of_one_type_resolved_twice_are_one_finding(void **state)
{
	start_recording();
	weft_id first = 0;
	for (int i = 0; i < 3; i++) {
		weft_id task = answer();
		first = i == 0 ? task : first;
		weft_resolve(WEFT_SYSTEM_ID, task);
		now_ns += MS;
		if (i < 2)
			weft_resolve(WEFT_SYSTEM_ID, task);
	}
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_TWICE), 1);
	const struct weft_finding *twice =
	    assert_says(WEFT_FINDING_TWICE, first, "and 1 more were resolved a second time, 1.00 ms after its end");
	assert_true(twice->sure);
	assert_line(twice, WEFT_EVIDENCE_CAUSE, 1, first, "ends");
	forget();
}

/* With a stopped clock both ends have the same time. */
static void second_end_of_a_promise_at_the_same_time_is_reported(void **state)
{
	start_recording();
	weft_id task = answer();
	tick_ns = 0;
	weft_resolve(WEFT_SYSTEM_ID, task);
	weft_resolve(WEFT_SYSTEM_ID, task);
	tick_ns = 100;
	explain(true);
	assert_says(WEFT_FINDING_TWICE, task, "a second time");
	forget();
}

/* The result of a cancelled promise may still come. */
static void late_result_of_cancelled_promise_is_no_finding(void **state)
{
	start_recording();
	weft_id task = answer();
	weft_fail(WEFT_SYSTEM_ID, task, "cancelled");
	weft_resolve(WEFT_SYSTEM_ID, task);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_TWICE), 0);
	forget();
}

/* ---- Wasted work ---- */

/* Records a promise that awaits work and a timeout.  The timeout resolves first; the work runs on for `goes_on_ns`. */
static weft_id give_up(uint64_t goes_on_ns, bool somebody_reads)
{
	weft_id main_promise = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_id pick = weft_create(main_promise, WEFT_KIND_PICK, WEFT_SITE());
	weft_id work = weft_create(main_promise, WEFT_KIND_BIND, WEFT_SITE()),
		timer = weft_create(main_promise, WEFT_KIND_TIMER, WEFT_SITE());
	weft_await(pick, work);
	weft_await(pick, timer);
	sleep_for(20 * MS);
	weft_run(main_promise);
	weft_fail(WEFT_SYSTEM_ID, timer, "timeout");
	weft_read(pick, timer);
	weft_fail(pick, pick, "timeout");
	weft_resolve(main_promise, main_promise);
	sleep_for(MS);
	weft_run(work);
	now_ns += goes_on_ns;
	weft_resolve(work, work);
	if (somebody_reads) {
		weft_id reader = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_read(reader, work);
		weft_resolve(reader, reader);
	}
	sleep_for(MS);
	return work;
}

static void long_work_after_a_timeout_is_wasted_unless_its_result_is_read(void **state)
{
	start_recording();
	weft_id work = give_up(40 * MS, false);
	explain(true);
	const struct weft_finding *wasted = assert_says(WEFT_FINDING_WASTED, work, "ran for 40.0 ms");
	assert_non_null(strstr(wasted->title, "failed: timeout"));
	assert_int_equal(wasted->severity, WEFT_SEVERITY_INFORMATION);
	forget();
	start_recording();
	give_up(5 * MS, false);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_WASTED), 0);
	forget();
	start_recording();
	give_up(40 * MS, true);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_WASTED), 0);
	forget();
}

/* A runtime labels cancelled work "cancelled".  Only work that runs for long after its cancellation is wasted. */
static void work_running_for_long_after_its_cancellation_is_wasted(void **state)
{
	for (int is_long = 0; is_long < 2; is_long++) {
		start_recording();
		weft_id work = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
		sleep_for(MS);
		weft_label(work, "cancelled");
		weft_run(work);
		now_ns += is_long ? 60 * MS : 40 * MS;
		weft_resolve(work, work);
		sleep_for(MS);
		explain(true);
		assert_int_equal(count_of(WEFT_FINDING_WASTED), is_long);
		if (is_long)
			assert_says(WEFT_FINDING_WASTED, work, "after it was cancelled");
		forget();
	}
}

/* ---- OS threads that wait for a condition ---- */

static weft_id condition, signaller;

static void signal_and_end_the_thread(void)
{
	signaller = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
	weft_run(signaller);
	weft_signal_only(signaller, condition);
}

static void end_signaller(void)
{
	weft_resolve(signaller, signaller);
	weft_idle(WEFT_IDLE_WAIT);
}

static void thread_awaiting_a_condition_hangs_if_its_signaller_has_ended(void **state)
{
	for (int ends = 0; ends < 2; ends++) {
		start_recording();
		weft_id waiter = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_THREAD, WEFT_SITE());
		condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
		weft_run(waiter);
		begin_other_thread();
		on_other_thread(signal_and_end_the_thread);
		now_ns += 3 * MS;
		weft_await(waiter, condition);
		weft_idle(WEFT_IDLE_WAIT);
		if (ends)
			on_other_thread(end_signaller);
		now_ns += 2000 * MS;
		on_other_thread(NULL);
		explain(true);
		assert_int_equal(count_of(WEFT_FINDING_HANG), ends);
		if (ends) {
			const struct weft_finding *hang = assert_says(WEFT_FINDING_HANG, waiter, "sleeps forever");
			assert_int_equal(hang->verdict, WEFT_VERDICT_LOST_WAKEUP);
			assert_non_null(strstr(hang->title, "3.00 ms before the wait"));
		}
		forget();
	}
}

/* ---- Locks ---- */

/* A lock is released, and the program is killed 490 or 510 ms later; the waiter of the lock has not run until then. */
static void lock_released_shortly_before_a_kill_is_not_a_hang(void **state)
{
	for (int is_long = 0; is_long < 2; is_long++) {
		start_recording();
		weft_id lock = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
		weft_id holder = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE()),
			waiter = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		weft_should_resolve(waiter);
		weft_run(holder);
		weft_hold(holder, lock);
		weft_await(waiter, lock);
		sleep_for(MS);
		weft_run(holder);
		weft_release(holder, lock);
		weft_resolve(holder, holder);
		sleep_for(is_long ? 510 * MS : 490 * MS);
		weft_signal_only(WEFT_SYSTEM_ID, holder);
		explain(false);
		assert_int_equal(count_of(WEFT_FINDING_HANG), is_long);
		forget();
	}
}

static weft_id contended, taker;

static void wait_for_the_signal(void)
{
	taker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	weft_run(taker);
	weft_await(taker, contended);
}

static void wait_for_the_own_lock(void)
{
	wait_for_the_signal();
	weft_hold(taker, contended);
}

/* An OS thread that waits for a lock records the owner of the lock.  If the last event of the owner is a wait for the same lock,
 * the owner has got the lock since then.  Only a promise that records both its hold and its wait is deadlocked. */
static void lock_owner_awaiting_its_lock_deadlocks_only_if_it_recorded_the_hold(void **state)
{
	for (int itself = 0; itself < 2; itself++) {
		start_recording();
		contended = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LOCK, WEFT_SITE());
		weft_id waiter = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
		begin_other_thread();
		on_other_thread(itself ? wait_for_the_own_lock : wait_for_the_signal);
		weft_run(waiter);
		weft_await(waiter, contended);
		if (!itself)
			weft_hold(taker, contended);
		now_ns += 2000 * MS;
		on_other_thread(NULL);
		explain(false);
		assert_int_equal(count_of(WEFT_FINDING_DEADLOCK), itself);
		forget();
	}
}

/* ---- Responses ---- */

static void read_of(weft_id connection)
{
	weft_id read = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
	weft_await(connection, read);
	sleep_for(MS);
	weft_resolve(WEFT_SYSTEM_ID, read);
	weft_read(connection, read);
}

static void write_of(weft_id connection)
{
	weft_id write = weft_create(connection, WEFT_KIND_STREAM_WRITE, WEFT_SITE());
	weft_await(connection, write);
	weft_resolve(WEFT_SYSTEM_ID, write);
	weft_read(connection, write);
}

/* Records a connection with six responses after 100 ms each and a missing one, either as the client or as the server sees it;
 * returns the number of findings. */
static size_t count_unanswered(bool is_accepted, bool asks_further, uint64_t silence_ns, const char *says)
{
	start_recording();
	weft_id listen = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, WEFT_SITE());
	weft_id connection = weft_create(is_accepted ? listen : WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
	if (!is_accepted) {
		weft_id connect = weft_create(connection, WEFT_KIND_CONNECT, WEFT_SITE());
		weft_await(connection, connect);
		weft_resolve(WEFT_SYSTEM_ID, connect);
		weft_read(connection, connect);
	}
	for (int i = 0; i < 7; i++) {
		(is_accepted ? read_of : write_of)(connection);
		if (i == 6 && asks_further)
			weft_create(connection, WEFT_KIND_TASK, WEFT_SITE());
		if (i == 6)
			break;
		sleep_for(100 * MS);
		(is_accepted ? write_of : read_of)(connection);
	}
	sleep_for(silence_ns);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	const size_t count = count_of(WEFT_FINDING_UNANSWERED);
	if (count > 0)
		assert_says(WEFT_FINDING_UNANSWERED, connection, says);
	forget();
	return count;
}

static void response_is_overdue_after_20_times_the_slowest(void **state)
{
	assert_int_equal(count_unanswered(true, false, 1950 * MS, ""), 0);
	assert_int_equal(count_unanswered(true, false, 2100 * MS, "has owed its peer an answer for 2.10 s"), 1);
	assert_int_equal(count_unanswered(false, false, 1950 * MS, ""), 0);
	assert_int_equal(count_unanswered(false, false, 2100 * MS, "has waited for an answer for 2.10 s"), 1);
	assert_int_equal(count_unanswered(true, true, 2100 * MS, ": it waits for task"), 1);
}

/* ---- Stuck promises ---- */

/* One of 60 pages is pending for 300 ms.  It awaits one input, one input after another, or inputs with doubling delays. */
static void stuck_finding_of_a_promise_with_new_inputs_is_uncertain(void **state)
{
	for (int goes_on = 0; goes_on < 3; goes_on++) {
		start_recording();
		weft_id slow = 0, input = 0;
		for (int i = 0; i < 60; i++) {
			weft_id page = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
			if (i == 10)
				slow = page;
			bool is_new = goes_on == 2 ? i == 11 || i == 13 || i == 17 || i == 25 || i == 41 : i > 10 && goes_on;
			if (i == 10 || is_new) {
				weft_id next = weft_create(slow, WEFT_KIND_TASK, WEFT_SITE());
				if (input)
					weft_resolve(WEFT_SYSTEM_ID, input);
				weft_await(slow, input = next);
			}
			sleep_for(6 * MS);
			if (i != 10)
				weft_resolve(WEFT_SYSTEM_ID, page);
		}
		explain(true);
		assert_int_equal(assert_says(WEFT_FINDING_STUCK, slow, "pending for")->sure, !goes_on);
		forget();
	}
}

/* A consumer waits for an item until the trace ends: either after it has got five items, which is no fault, or for its first
 * item. */
static void idle_wait_of_a_repeating_consumer_is_informational(void **state)
{
	for (int is_series = 0; is_series < 2; is_series++) {
		start_recording();
		weft_id first = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE()), idle = 0;
		WEFT_LABEL(first, "connection 1");
		for (int i = 0; i < 60; i++) {
			weft_id who =
			    i == 5 || (i < 5 && is_series) ? first : weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
			weft_id data = weft_create(who, WEFT_KIND_TASK, WEFT_SITE());
			WEFT_LABEL(data, "take data");
			weft_await(who, data);
			sleep_for(6 * MS);
			if (i == 5)
				idle = data;
			else {
				weft_resolve(WEFT_SYSTEM_ID, data);
				weft_read(who, data);
				weft_run(WEFT_SYSTEM_ID);
			}
		}
		explain(true);
		const struct weft_finding *finding = assert_says(WEFT_FINDING_STUCK, idle, "pending for");
		assert_int_equal(finding->sure, !is_series);
		assert_int_equal(finding->severity, is_series ? WEFT_SEVERITY_INFORMATION : WEFT_SEVERITY_ALARM);
		forget();
	}
}

/* ---- Counters as queues ---- */

static struct weft_record_text waiting = WEFT_COUNTER("waiting");

/* Three items are added and one is removed, until there are `count` changes; then `drained` items are removed. */
static void fill_and_drain(int count, int drained)
{
	weft_id worker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE());
	for (int i = 0; i < count; i++) {
		weft_counter_add(worker, &waiting, i % 4 == 3 ? -1 : 1);
		sleep_for(MS);
	}
	for (int i = 0; i < drained; i++) {
		weft_counter_add(worker, &waiting, -1);
		sleep_for(2 * MS);
	}
}

static void drained_backlog_is_informational(void **state)
{
	start_recording();
	fill_and_drain(200, 100);
	explain(true);
	assert_int_equal(findings->count, 1);
	const struct weft_finding *drained = find(WEFT_FINDING_BACKLOG);
	assert_int_equal(drained->severity, WEFT_SEVERITY_INFORMATION);
	assert_non_null(strstr(drained->title, "grew to 101 in "));
	assert_non_null(strstr(drained->title, " to fall to 0"));
	forget();
	start_recording();
	fill_and_drain(200, 0);
	explain(true);
	assert_int_equal(find(WEFT_FINDING_BACKLOG)->severity, WEFT_SEVERITY_ALARM);
	forget();
	/* A counter that rises to 50 may be a usual burst. */
	start_recording();
	fill_and_drain(100, 50);
	explain(true);
	assert_int_equal(findings->count, 0);
	forget();
}

static void take_some(void)
{
	for (int i = 0; i < 150; i++)
		weft_counter_add(condition, &waiting, -1);
}

/* The consumer records more events than the producer, so the ring of its thread has lost its older changes of the counter. */
static void counter_with_overwritten_changes_on_one_thread_is_no_backlog(void **state)
{
	start_recording();
	condition = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	begin_other_thread();
	for (int i = 0; i < 150; i++) {
		weft_counter_add(condition, &waiting, i % 4 == 3 ? -1 : 1);
		sleep_for(MS);
	}
	on_other_thread(take_some);
	for (int i = 0; i < 100000; i++)
		weft_signal_only(condition, condition);
	on_other_thread(NULL);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_BACKLOG), 0);
	forget();
}

/* ---- Retries whose start was overwritten ---- */

static void overwrite(void)
{
	weft_id filler = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONDITION, WEFT_SITE());
	for (int i = 0; i < 100000; i++)
		weft_signal_only(filler, filler);
}

static size_t count_storms(int tries, bool reads)
{
	start_recording();
	weft_id maker = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TASK, WEFT_SITE());
	overwrite();
	for (int i = 0; i < tries; i++) {
		weft_id ask = weft_create(maker, WEFT_KIND_REQUEST, WEFT_SITE());
		weft_await(maker, ask);
		sleep_for(MS);
		weft_resume(maker);
		weft_fail(WEFT_SYSTEM_ID, ask, "refused");
		if (reads)
			weft_read(maker, ask);
	}
	sleep_for(MS);
	explain(true);
	const size_t count = count_of(WEFT_FINDING_RETRIES);
	forget();
	return count;
}

static void retries_without_a_recorded_start_are_found(void **state)
{
	assert_int_equal(count_storms(16, true), 1);
	assert_int_equal(count_storms(15, true), 0);
	assert_int_equal(count_storms(40, false), 0);
}

/* ---- Two stalls of one loop ---- */

/* A loop has two stalls and four older pending polls.  It calls `between` of the polls after the first stall, and the others
 * after the second. */
static void stall_twice(int between)
{
	weft_id loop = begin_loop(weft_create(WEFT_SYSTEM_ID, WEFT_KIND_BIND, WEFT_SITE())), slow[2], others[4];
	weft_run(loop);
	for (int i = 0; i < 2; i++) {
		slow[i] = weft_create(loop, WEFT_KIND_POLL, WEFT_SITE());
		weft_label(slow[i], i == 0 ? "first" : "second");
	}
	for (int i = 0; i < 4; i++)
		others[i] = weft_create(loop, WEFT_KIND_POLL, WEFT_SITE());
	sleep_for(MS);
	for (int i = 0; i < 2; i++) {
		weft_run(slow[i]);
		now_ns += 120 * MS;
		for (int k = i == 0 ? 0 : between; k < (i == 0 ? between : 4); k++)
			weft_run(others[k]);
		weft_run(loop);
		sleep_for(MS);
	}
	weft_resolve(WEFT_SYSTEM_ID, loop);
}

static void each_stall_lists_its_own_victims(void **state)
{
	start_recording();
	stall_twice(1);
	explain(true);
	size_t late[2] = {0, 0}, stalls = 0;
	for (size_t i = 0; i < findings->count; i++) {
		const struct weft_finding *finding = &findings->findings[i];
		if (finding->kind != WEFT_FINDING_STALL)
			continue;
		for (size_t k = 0; k < finding->evidence_count; k++)
			late[stalls < 2 ? (finding->start_ns > 100 * (int64_t)MS) : 0] +=
			    finding->evidence[k].role == WEFT_EVIDENCE_VICTIM;
		stalls++;
	}
	assert_int_equal(stalls, 2);
	assert_int_equal(late[0], 1);
	assert_int_equal(late[1], 3);
	forget();
}

/* Records a stall and a sleep of `after_ns`, behind which a timer is called back; returns the number of reported stalls. */
static size_t stalls_with_timer_after(uint64_t stall_ns, uint64_t after_ns)
{
	start_recording();
	weft_id slow = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE()),
		late = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
	sleep_for(5 * MS);
	weft_signal(WEFT_SYSTEM_ID, slow);
	now_ns += stall_ns;
	sleep_for(after_ns);
	weft_signal(WEFT_SYSTEM_ID, late);
	sleep_for(5 * MS);
	explain(true);
	const size_t count = count_of(WEFT_FINDING_STALL);
	forget();
	return count;
}

static void timer_shortly_after_a_stall_is_late(void **state)
{
	assert_int_equal(stalls_with_timer_after(100 * MS, 4 * MS), 1);
	assert_int_equal(stalls_with_timer_after(100 * MS, 6 * MS), 0);
	assert_int_equal(stalls_with_timer_after(300 * MS, 14 * MS), 1);
	assert_int_equal(stalls_with_timer_after(300 * MS, 16 * MS), 0);
}

/* ---- Slow dependencies ---- */

static weft_id ask_for_name(uint64_t took_ns)
{
	weft_id name = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_GETADDRINFO, WEFT_SITE());
	WEFT_LABEL(name, "example.org");
	sleep_for(took_ns);
	weft_resume(WEFT_SYSTEM_ID);
	weft_resolve(WEFT_SYSTEM_ID, name);
	return name;
}

static void slow_name_server_is_reported(void **state)
{
	start_recording();
	ask_for_name(MS);
	weft_id late = ask_for_name(300 * MS);
	ask_for_name(MS);
	explain(true);
	assert_says(WEFT_FINDING_SLOW, late, "took 300 ms (median of 3: 1.00 ms): the name server answered late");
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 1);
	forget();
}

static weft_id connection_to_store(void)
{
	weft_id store = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_CONNECTION, WEFT_SITE());
	WEFT_LABEL(store, "to 127.0.0.1:6379");
	weft__slow_detail(store, WEFT_DETAIL_CONNECTION, 0, "tcp 127.0.0.1:40000 127.0.0.1:6379 0");
	return store;
}

/* Records `questions` requests, numbered from `from` on.  Request `late` gets its response after `late_ns`, the others after 1
 * ms. */
static void ask_store(weft_id store, unsigned from, unsigned questions, unsigned late, uint64_t late_ns)
{
	for (unsigned i = from; i < from + questions; i++) {
		weft_sent(store, (i + 1) * 10);
		sleep_for(i == late ? late_ns : MS);
		weft_resume(WEFT_SYSTEM_ID);
		weft_received(store, (i + 1) * 10);
	}
}

static void slow_response_of_a_peer_is_reported(void **state)
{
	start_recording();
	weft_id store = connection_to_store();
	ask_store(store, 0, 20, 12, 300 * MS);
	explain(true);
	assert_says(WEFT_FINDING_SLOW, store, "was answered after 300 ms: the median of 20 answers is 1.00 ms");
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 1);
	forget();
}

/* A connection that sends rare notifications is no slow peer, although another connection of the same program has fast responses.
 */
static void connection_awaiting_notifications_is_not_slow(void **state)
{
	start_recording();
	weft_id store = connection_to_store(), news = connection_to_store();
	ask_store(store, 0, 40, 40, 0);
	for (unsigned i = 0; i < 3; i++)
		ask_store(news, i, 1, i, 2000 * MS);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 0);
	forget();
}

/* The program ran between request and response, so the response may have arrived long before the program read it. */
static void response_read_late_by_a_busy_program_is_not_slow(void **state)
{
	start_recording();
	weft_id store = connection_to_store();
	ask_store(store, 0, 20, 20, 0);
	weft_run(store);
	weft_sent(store, 210);
	now_ns += 300 * MS;
	weft_received(store, 210);
	weft_run(WEFT_SYSTEM_ID);
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 0);
	forget();
}

static void connection_without_a_response_to_its_request_is_unanswered(void **state)
{
	start_recording();
	weft_id store = connection_to_store();
	ask_store(store, 0, 20, 20, 0);
	weft_sent(store, 210);
	sleep_for(2000 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	explain(true);
	assert_says(WEFT_FINDING_UNANSWERED, store, "has waited for an answer for 2.00 s");
	forget();
}

/* Records 20 reads of a connection with a request and a response during each.  Request and response come after 1 ms each;
 * during one read, the request comes after `idle_ns`, and its response after `answer_ns`.
 */
static void read_store(uint64_t idle_ns, uint64_t answer_ns)
{
	enum { QUESTIONS = 20, ONE = 12 };
	start_recording();
	weft_id store = connection_to_store();
	for (unsigned i = 0; i < QUESTIONS; i++) {
		weft_id read = weft_create(store, WEFT_KIND_STREAM_READ, WEFT_SITE());
		weft_await(store, read);
		sleep_for(i == ONE ? idle_ns : MS);
		weft_run(store);
		weft_sent(store, (i + 1) * 10);
		weft_run(WEFT_SYSTEM_ID);
		sleep_for(i == ONE ? answer_ns : MS);
		weft_received(store, (i + 1) * 10);
		weft_resolve(WEFT_SYSTEM_ID, read);
		weft_read(store, read);
	}
	explain(true);
}

static void read_is_slow_only_if_the_time_after_its_request_is_long(void **state)
{
	read_store(MS, 300 * MS);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 1);
	const struct weft_finding *late = find(WEFT_FINDING_SLOW);
	bool is_told = false;
	for (size_t i = 0; i < late->evidence_count; i++)
		is_told |= strstr(late->evidence[i].text, "the answer arrives 300 ms later") != NULL;
	assert_true(is_told);
	forget();
	read_store(300 * MS, MS);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 0);
	forget();
}

static void timer_is_never_slow(void **state)
{
	start_recording();
	for (int i = 0; i < 20; i++) {
		weft_id timer = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_TIMER, WEFT_SITE());
		sleep_for(i == 10 ? 300 * MS : MS);
		weft_resume(WEFT_SYSTEM_ID);
		weft_resolve(WEFT_SYSTEM_ID, timer);
	}
	explain(true);
	assert_int_equal(count_of(WEFT_FINDING_SLOW), 0);
	forget();
}

/* ---- Connections that are left open ---- */

static weft_id talk_on(weft_id listen, bool closes)
{
	weft_id connection = weft_create(listen, WEFT_KIND_CONNECTION, WEFT_SITE());
	for (int i = 0; i < 2; i++) {
		weft_id input = weft_create(connection, WEFT_KIND_STREAM_READ, WEFT_SITE());
		now_ns += MS;
		weft_resolve(WEFT_SYSTEM_ID, input);
		weft_read_later(connection, input);
	}
	if (closes)
		weft_resolve(WEFT_SYSTEM_ID, connection);
	return connection;
}

static void single_connection_left_open_by_a_listener_is_reported(void **state)
{
	for (int left = 1; left <= 2; left++) {
		weft_id open = 0;
		start_recording();
		weft_id listen = weft_create(WEFT_SYSTEM_ID, WEFT_KIND_LISTEN, WEFT_SITE());
		for (int i = 0; i < 20; i++) {
			weft_id connection = talk_on(listen, i < 5 || i >= 5 + left);
			open = i == 5 ? connection : open;
		}
		sleep_for(200 * MS);
		weft_resume(listen);
		sleep_for(MS);
		explain(true);
		assert_int_equal(count_of(WEFT_FINDING_UNANSWERED), left == 1);
		if (left == 1) {
			const struct weft_finding *finding = assert_says(WEFT_FINDING_UNANSWERED, open, " has been silent for 2");
			assert_int_equal(finding->severity, WEFT_SEVERITY_INFORMATION);
			assert_non_null(strstr(finding->title, ": 19 others from this listener are closed"));
		}
		forget();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(slow_name_server_is_reported),
	    cmocka_unit_test(slow_response_of_a_peer_is_reported),
	    cmocka_unit_test(connection_awaiting_notifications_is_not_slow),
	    cmocka_unit_test(response_read_late_by_a_busy_program_is_not_slow),
	    cmocka_unit_test(connection_without_a_response_to_its_request_is_unanswered),
	    cmocka_unit_test(read_is_slow_only_if_the_time_after_its_request_is_long),
	    cmocka_unit_test(timer_is_never_slow),
	    cmocka_unit_test(single_connection_left_open_by_a_listener_is_reported),
	    cmocka_unit_test(promises_of_one_type_resolved_twice_are_one_finding),
	    cmocka_unit_test(second_end_of_a_promise_at_the_same_time_is_reported),
	    cmocka_unit_test(late_result_of_cancelled_promise_is_no_finding),
	    cmocka_unit_test(long_work_after_a_timeout_is_wasted_unless_its_result_is_read),
	    cmocka_unit_test(work_running_for_long_after_its_cancellation_is_wasted),
	    cmocka_unit_test(thread_awaiting_a_condition_hangs_if_its_signaller_has_ended),
	    cmocka_unit_test(lock_released_shortly_before_a_kill_is_not_a_hang),
	    cmocka_unit_test(response_is_overdue_after_20_times_the_slowest),
	    cmocka_unit_test(stuck_finding_of_a_promise_with_new_inputs_is_uncertain),
	    cmocka_unit_test(idle_wait_of_a_repeating_consumer_is_informational),
	    cmocka_unit_test(drained_backlog_is_informational),
	    cmocka_unit_test(counter_with_overwritten_changes_on_one_thread_is_no_backlog),
	    cmocka_unit_test(retries_without_a_recorded_start_are_found),
	    cmocka_unit_test(lock_owner_awaiting_its_lock_deadlocks_only_if_it_recorded_the_hold),
	    cmocka_unit_test(each_stall_lists_its_own_victims),
	    cmocka_unit_test(timer_shortly_after_a_stall_is_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
