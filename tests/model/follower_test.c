/* follower_test.c: after each refresh, a follower has the same state as a read of the trace from its start or, for a ring, the
 * same pending promises as the program. SPDX-License-Identifier: ISC */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <weft/record.h>

#include "followed.h"
#include "model/kernel.h"
#include "scratch.h"
#include "wire/kernel.h"
#include "wire/wire.h"

/* ---- A random program on several OS threads, which take turns ---- */

enum { THREADS = 3, MOST = 60, SORTS = 3, OVER = 8, MOST_WINDOWS = 4 };

struct thing {
	weft_id id, awaits; /* id of the awaited thing, or 0 */
	char name[32];
};

static const char *const rules[] = {"count>-1", "failed>-1", "count(sort 0)>-1", "failed(sort 1)>-1", "pending(sort 1)>-1",
    "p50(sort 0)<20us", "p99(sort 1)<100us", "max(sort 2)<1ms", "lost=0", "pending=0"};
enum { RULES = sizeof rules / sizeof *rules };

static struct program {
	uint64_t random, made;
	uint64_t parts;            /* number of internal promises, which never end */
	struct thing things[MOST]; /* pending promises */
	size_t count;
	weft_id over[OVER]; /* some ended promises */
	int64_t counted;
	pthread_t threads[THREADS];
	sem_t go[THREADS], done;
	bool is_over[THREADS];
	uint32_t tids[THREADS];
	uint64_t kernel_ns, kernel_packets; /* end time of the kernel events, and number of their packets, or 0 */
} program;

static unsigned pick(unsigned below)
{
	program.random = program.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(program.random >> 33) % below;
}

static void make_thing(void)
{
	struct thing *t = &program.things[program.count];
	const weft_id by = program.count && pick(2) ? program.things[pick((unsigned)program.count)].id : WEFT_SYSTEM_ID;
	*t = (struct thing){.id = weft_create(by, pick(2) ? WEFT_KIND_TASK : WEFT_KIND_WAIT, WEFT_SITE())};
	snprintf(t->name, sizeof t->name, "sort %llu", (unsigned long long)program.made++ % SORTS);
	weft_label_bytes(t->id, t->name, strlen(t->name));
	if (pick(2))
		weft_note(t->id, "something is to be said of it");
	program.count++;
}

static void end_thing(size_t i)
{
	struct thing *t = &program.things[i];
	const weft_id id = t->id;
	if (pick(4))
		weft_resolve(WEFT_SYSTEM_ID, id);
	else
		weft_fail(WEFT_SYSTEM_ID, id, "it broke");
	program.over[pick(OVER)] = id;
	*t = program.things[--program.count];
	for (size_t k = 0; k < program.count; k++)
		if (program.things[k].awaits == id)
			program.things[k].awaits = 0;
}

/* The waiters of a promise that is merged now wait for the other promise. */
static void become_other(size_t i)
{
	const weft_id id = program.things[i].id;
	const struct thing *into = &program.things[(i + 1) % program.count];
	const weft_id into_id = into->id;
	if (into->awaits == id)
		return;
	weft_become(id, into_id);
	program.things[i] = program.things[--program.count];
	for (size_t k = 0; k < program.count; k++)
		if (program.things[k].awaits == id)
			program.things[k].awaits = into_id;
}

/* Creates a promise that is internal to a library, so that viewers do not show it. */
static void make_part(weft_id owner)
{
	static struct weft_record_place place;
	const weft_id part = weft_create_part(owner, WEFT_KIND_TASK, &place, owner);
	if (pick(2))
		weft_resolve(part, part);
	else
		program.parts++;
}

static void act(void)
{
	const unsigned what = pick(13);
	const size_t i = program.count ? pick((unsigned)program.count) : 0;
	if (program.count < 2 || (what < 3 && program.count < MOST))
		make_thing();
	else if (what < 6)
		end_thing(i);
	else if (what < 8) {
		const weft_id other = program.things[pick((unsigned)program.count)].id;
		if (program.things[i].awaits || other == program.things[i].id)
			return;
		weft_await(program.things[i].id, other);
		program.things[i].awaits = other;
	} else if (what == 8)
		weft_counter_set(program.things[i].id, WEFT_TEXT("counted"), program.counted = 1 + (int64_t)pick(1000));
	else if (what == 9 && program.over[0])
		weft_signal(program.over[0], program.things[i].id);
	else if (what == 10)
		become_other(i);
	else if (what == 11)
		make_part(program.things[i].id);
	else if (pick(2))
		weft_run(program.things[i].id);
	else
		weft_idle(WEFT_IDLE_WAIT);
}

static void *work(void *number)
{
	const size_t own = (size_t)(uintptr_t)number;
	program.tids[own] = (uint32_t)gettid();
	while (sem_wait(&program.go[own]) == 0 && !program.is_over[own]) {
		act();
		sem_post(&program.done);
	}
	return NULL;
}

static void start_thread(size_t thread)
{
	program.is_over[thread] = false;
	assert_int_equal(pthread_create(&program.threads[thread], NULL, work, (void *)(uintptr_t)thread), 0);
}

static void end_thread(size_t thread)
{
	program.is_over[thread] = true;
	sem_post(&program.go[thread]);
	pthread_join(program.threads[thread], NULL);
}

static void step(size_t thread)
{
	sem_post(&program.go[thread]);
	sem_wait(&program.done);
}

/* ---- Kernel events ---- */

static uint64_t clock_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static unsigned char *add_kernel_event(unsigned char *at, uint64_t time_ns, enum weft_kernel_op op, uint32_t tid)
{
	const struct weft_wire_kernel event = {.op = (uint8_t)op,
	    .tid = tid,
	    .why = op == WEFT_KERNEL_LEVEL ? WEFT_LEVEL_OWN : WEFT_OFF_BLOCKED,
	    .call = WEFT_CALL_READ,
	    .text = ""};
	return weft__kernel_write(at, &event, time_ns, true);
}

/* Writes a packet of one CPU, as weft record --kernel does: each OS thread has the CPU now and then. */
static void write_kernel(void)
{
	enum { ROOM = 8192, STRETCHES = 8 };
	static unsigned char packet[ROOM];
	struct weft_packet_header first, *h = (struct weft_packet_header *)packet;
	char name[128];
	snprintf(name, sizeof name, "%s/definitions-0", path);
	FILE *file = fopen(name, "rb");
	assert_non_null(file);
	assert_int_equal(fread(&first, sizeof first, 1, file), 1);
	fclose(file);
	const uint64_t now_ns = clock_ns(), step_ns = (now_ns - program.kernel_ns) / (STRETCHES * THREADS * 2 + 1);
	uint64_t time_ns = program.kernel_ns;
	weft__packet_init(h, first.uuid, WEFT_CLASS_KERNEL, 0, ROOM);
	h->timestamp_begin = time_ns;
	h->clock_hz = first.clock_hz;
	h->sequence = program.kernel_packets - 1;
	unsigned char *at = add_kernel_event(packet + sizeof *h, time_ns, WEFT_KERNEL_LEVEL, 0);
	for (unsigned stretch = 0; stretch < STRETCHES; stretch++)
		for (unsigned t = 0; t < THREADS; t++) {
			at = add_kernel_event(at, time_ns, WEFT_KERNEL_ON, program.tids[t]);
			if (pick(2))
				at = add_kernel_event(at, time_ns + step_ns, WEFT_KERNEL_OFF, program.tids[t]);
			time_ns += 2 * step_ns;
		}
	h->content_size = h->packet_size = (uint64_t)(at - packet) * 8;
	snprintf(name, sizeof name, "%s/kernel-0-%llu", path, (unsigned long long)program.kernel_packets - 1);
	file = fopen(name, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(packet, (size_t)(at - packet), 1, file), 1);
	fclose(file);
	program.kernel_packets++;
	program.kernel_ns = now_ns;
}

static uint16_t stream_of(const struct weft_model *m, uint32_t tid)
{
	uint16_t found = UINT16_MAX;
	for (size_t i = 0; i < m->trace->stream_count; i++)
		if (m->trace->streams[i].tid == tid)
			found = (uint16_t)i;
	return found;
}

/* Compares the kernel times of the window, which need only the packets of the window. */
static void compare_kernel(const struct weft_follower *follower, const struct weft_model *all)
{
	const struct weft_model *m = weft_follower_model(follower);
	int64_t from_ns = weft_follower_window_start_ns(follower);
	const int64_t step_ns = (m->end_ns - from_ns) / 16 + 1;
	assert_non_null(m->kernel);
	assert_true(m->kernel->info.packets <= 3);
	for (; from_ns < m->end_ns; from_ns += step_ns)
		for (size_t t = 0; t < THREADS; t++) {
			const uint16_t own = stream_of(m, program.tids[t]), other = stream_of(all, program.tids[t]);
			if (own == UINT16_MAX || other == UINT16_MAX)
				continue;
			assert_int_equal(weft_kernel_off_ns(m, own, from_ns, from_ns + step_ns),
			    weft_kernel_off_ns(all, other, from_ns, from_ns + step_ns));
		}
}

/* ---- Comparison ---- */

static void describe_program(struct lines *out)
{
	out->count = 0;
	for (size_t i = 0; i < program.count; i++) {
		snprintf(add_line(out), 200, "%lld %s  0", (long long)program.things[i].id, program.things[i].name);
		if (program.things[i].awaits)
			snprintf(add_line(out), 200, "%lld waits for %lld since 0", (long long)program.things[i].id,
			    (long long)program.things[i].awaits);
	}
	if (program.counted)
		snprintf(add_line(out), 200, "counted is %lld", (long long)program.counted);
	weft_sort(out->text, out->count, sizeof *out->text, compare_lines);
}

static void read_anew(struct lines *out, struct weft_rule_result *followed, const struct weft_follower *follower,
    const struct weft_running_stats *stats)
{
	const struct weft_model_options options = {.keep_binds = true};
	struct weft_trace *trace;
	struct weft_model *model;
	assert_int_equal(weft_trace_open(&trace, path, NULL), WEFT_OK);
	assert_int_equal(weft_model_build(&model, trace, &options, NULL), WEFT_OK);
	describe(out, model, true);
	compare_rules(followed, follower, stats, model, rules, RULES);
	if (program.kernel_packets)
		compare_kernel(follower, model);
	weft_model_destroy(model);
	weft_trace_close(trace);
}

/* Follows a random program from its start, with at most `stride` actions between refreshes; is_told: the trace has kernel events.
 */
static void follow_program(struct weft_record_options record, struct weft_follower_options options, int looks, unsigned stride,
    uint64_t seed, bool is_told)
{
	static struct lines got, wanted;
	static struct weft_running_stats stats[RULES];
	struct weft_rule_result followed[RULES] = {0};
	struct weft_follower *follower;
	options.stats = stats;
	for (size_t i = 0; i < RULES; i++) {
		struct weft_rule rule;
		assert_int_equal(weft_rule_parse(&rule, rules[i], NULL), WEFT_OK);
		options.stats_count += weft_rule_running_stats(&stats[options.stats_count], &rule);
	}
	const bool is_ring = record.mode == WEFT_RECORD_RING;
	uint64_t events = 0;
	program = (struct program){.random = seed, .kernel_packets = is_told, .kernel_ns = clock_ns()};
	record.directory = path;
	record.use_monotonic = !is_ring; /* the rate of the monotonic clock need not be measured */
	options.model.keep_binds = true;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, &options, NULL), WEFT_OK);
	assert_int_equal(sem_init(&program.done, 0, 0), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(sem_init(&program.go[i], 0, 0), 0);
		start_thread(i);
	}
	for (int look = 0; look < looks; look++) {
		/* An OS thread starts late. */
		for (unsigned left = 1 + pick(stride); left > 0; left--) {
			step(pick(look < looks / 3 ? THREADS - 1 : THREADS));
			if (options.window_events && pick(stride) < 5)
				assert_true(weft_follower_skip(follower, NULL) >= 0);
		}
		if (pick(8) == 0) { /* some threads end, and others take their streams */
			const size_t ended = pick(THREADS);
			end_thread(ended);
			start_thread(ended);
		}
		if (is_told)
			write_kernel();
		const int found = options.begins_at_window ? weft_follower_refresh_newest(follower, NULL)
							   : weft_follower_refresh(follower, NULL);
		if (found == 0)
			continue; /* no action since the last refresh */
		/* After many new events the model has no more than a few windows. */
		const uint64_t before = events, told = 8 * (MOST + program.parts),
			       most = options.window_events * MOST_WINDOWS + told;
		events = weft_follower_events(follower);
		if (options.window_events && before && events - before > most)
			assert_true(weft_follower_model(follower)->events <= most);
		describe(&got, weft_follower_model(follower), !is_ring);
		if (is_ring)
			describe_program(&wanted);
		else
			read_anew(&wanted, followed, follower, stats);
		assert_same(&got, &wanted);
		assert_int_equal(weft_follower_refresh(follower, NULL), 0);
	}
	assert_int_equal(weft_follower_restarts(follower), 0);
	for (size_t i = 0; i < THREADS; i++)
		end_thread(i);
	weft_stop();
	if (weft_follower_refresh(follower, NULL) > 0 && !is_ring) {
		describe(&got, weft_follower_model(follower), true);
		read_anew(&wanted, followed, follower, stats);
		assert_same(&got, &wanted);
	}
	weft_follower_close(follower);
}

static void growing_trace_is_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = 0}, 150, 20, 1, false);
}

static void kernel_events_are_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = 0}, 60, 40, 6, true);
}

static void moving_window_is_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 100}, 150, 40, 2, false);
}

static void model_of_a_small_window_is_right_after_skipped_events(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 10}, 150, 40, 7, false);
}

static void model_of_a_small_window_of_a_ring_is_right_after_skipped_events(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_RING, .size_bytes = 16384, .packets = 4},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 10}, 250, 30, 8, false);
}

/* The window starts between two refreshes. */
static void more_events_per_refresh_than_the_window_are_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 1000}, 10, 8000, 9, false);
}

static void more_events_per_refresh_than_the_window_are_followed_with_kernel_events(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 65536},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 1000}, 10, 8000, 10, true);
}

static void ring_with_more_events_per_refresh_than_the_window_is_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_RING, .size_bytes = 1 << 20, .packets = 4},
	    (struct weft_follower_options){.window_ns = INT64_MAX, .window_events = 1000, .begins_at_window = true}, 15, 8000, 12,
	    false);
}

static void act_for(unsigned tasks)
{
	for (; tasks > 0; tasks--)
		weft_resolve(WEFT_SYSTEM_ID, WEFT_CREATE(WEFT_KIND_TASK));
}

/* A follower that opens a large trace has a whole window at once, and still has one after small additions. */
static void first_window_has_existing_events(void **state)
{
	enum { TASKS = 100000, FEW = 500, WINDOW = 10000, TOLD = 10 };
	const struct weft_record_options record = {.mode = WEFT_RECORD_GROW, .directory = path, .use_monotonic = true};
	const struct weft_follower_options options = {.window_ns = INT64_MAX, .window_events = WINDOW, .begins_at_window = true};
	struct weft_follower *follower;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, &options, NULL), WEFT_OK);
	act_for(TASKS);
	for (unsigned look = 0; look < 3; look++) {
		assert_int_equal(weft_follower_refresh_newest(follower, NULL), 1);
		assert_true(weft_follower_window_start_ns(follower) > 0 && weft_follower_is_filled(follower));
		const uint64_t events = weft_follower_model(follower)->events;
		assert_true(events >= WINDOW && events <= 2 * WINDOW + TOLD);
		act_for(FEW);
	}
	weft_stop();
	weft_follower_close(follower);
}

/* A late refresh reads the whole ring, and builds a model of one window only. */
static void late_refresh_builds_a_model_of_only_one_window(void **state)
{
	enum { TASKS = 100000, WINDOW = 1000, TOLD = 20 };
	const struct weft_record_options record = {
	    .mode = WEFT_RECORD_RING, .directory = path, .size_bytes = 1 << 20, .packets = 4, .use_monotonic = true};
	const struct weft_follower_options options = {.window_ns = INT64_MAX, .window_events = WINDOW};
	struct weft_follower *follower;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, &options, NULL), WEFT_OK);
	for (unsigned look = 0; look < 4; look++) {
		act_for(TASKS);
		assert_int_equal(weft_follower_refresh(follower, NULL), 1);
		const struct weft_model *m = weft_follower_model(follower);
		if (look)
			assert_true(m->events >= WINDOW / 2 && m->events <= 3 * WINDOW + TOLD);
		assert_int_equal(weft_follower_restarts(follower), look);
	}
	weft_stop();
	weft_follower_close(follower);
}

/* The notes of snapshots stay in the state although their window is long over. */
static void newest_64_snapshots_older_than_the_window_are_kept(void **state)
{
	enum { TASKS = 20000, MANY = 100, KEPT = 64 };
	const struct weft_record_options record = {.mode = WEFT_RECORD_GROW, .directory = path, .use_monotonic = true};
	const struct weft_follower_options options = {.window_ns = INT64_MAX, .window_events = 1000};
	struct weft_follower *follower;
	char text[32];
	size_t count;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, &options, NULL), WEFT_OK);
	act_for(1);
	assert_int_equal(weft_follower_refresh(follower, NULL), 1);
	assert_non_null(weft_follower_snapshots(follower, &count));
	assert_int_equal(count, 0);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "full for the %uth time", i);
		weft_snapshot(text);
		act_for(TASKS / MANY);
	}
	act_for(TASKS);
	assert_int_equal(weft_follower_refresh(follower, NULL), 1);
	const struct weft_event *kept = weft_follower_snapshots(follower, &count);
	assert_int_equal(count, KEPT);
	for (unsigned i = 0; i < KEPT; i++) {
		snprintf(text, sizeof text, "full for the %uth time", MANY - KEPT + i);
		assert_int_equal(kept[i].text.len, strlen(text));
		assert_memory_equal(kept[i].text.ptr, text, strlen(text));
	}
	weft_stop();
	weft_follower_close(follower);
}

static void window_as_large_as_the_trace_loses_no_event(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_GROW, .packet_bytes = 4096},
	    (struct weft_follower_options){.window_ns = INT64_MAX}, 60, 40, 3, false);
}

static void wrapping_ring_is_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_RING, .size_bytes = 16384, .packets = 4},
	    (struct weft_follower_options){.window_ns = 0}, 250, 30, 4, false);
}

static void ring_shorter_than_the_window_is_followed(void **state)
{
	follow_program((struct weft_record_options){.mode = WEFT_RECORD_RING, .size_bytes = 16384, .packets = 4},
	    (struct weft_follower_options){.window_ns = INT64_MAX}, 250, 30, 5, false);
}

static size_t count_pending(const struct weft_model *m)
{
	size_t pending = 0;
	for (uint32_t p = 1; p < m->promise_count; p++)
		pending += m->promises[p].end == WEFT_END_PENDING;
	return pending;
}

/* A promise library may record a connection as a chain: each request is merged with the next one, and events name the chain by
 * its first id. */
static void event_with_the_first_id_of_a_merged_chain_ends_the_chain(void **state)
{
	enum { REQUESTS = 40000, A_LOOK = 5000 };
	const struct weft_record_options record = {.mode = WEFT_RECORD_GROW, .directory = path, .use_monotonic = true};
	struct weft_follower *follower;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, NULL, NULL), WEFT_OK);
	const weft_id busy = WEFT_CREATE(WEFT_KIND_BIND), quiet = WEFT_CREATE(WEFT_KIND_BIND);
	weft_become(quiet, WEFT_CREATE(WEFT_KIND_BIND));
	for (unsigned request = 1; request <= REQUESTS; request++) {
		weft_become(busy, WEFT_CREATE(WEFT_KIND_BIND));
		if (request % A_LOOK)
			continue;
		assert_int_equal(weft_follower_refresh(follower, NULL), 1);
		assert_int_equal(count_pending(weft_follower_model(follower)), 2);
		/* The promise is recorded again before the ring overwrites it. */
		weft_pending(WEFT_SYSTEM_ID, busy, WEFT_KIND_BIND, WEFT_SITE(), 0, NULL);
	}
	weft_resolve(WEFT_SYSTEM_ID, busy);
	weft_resolve(WEFT_SYSTEM_ID, quiet);
	weft_stop();
	assert_int_equal(weft_follower_refresh(follower, NULL), 1);
	assert_int_equal(count_pending(weft_follower_model(follower)), 0);
	weft_follower_close(follower);
}

/* Records a server into a ring: connections await reads without read events, and the loop is merged with its next iteration. */
static void take_turns(weft_id connection, weft_id loop, unsigned turns, struct weft_follower *follower)
{
	enum { A_LOOK = 100 };
	for (unsigned turn = 1; turn <= turns; turn++) {
		const weft_id read = WEFT_CREATE(WEFT_KIND_WAIT);
		weft_await(connection, read);
		weft_become(loop, WEFT_CREATE(WEFT_KIND_BIND));
		weft_resolve(WEFT_SYSTEM_ID, read);
		if (turn % A_LOOK == 0)
			assert_int_equal(weft_follower_refresh(follower, NULL), 1);
	}
}

static size_t memory_in_use(void)
{
	const struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static void ended_promises_outside_of_the_window_take_no_memory(void **state)
{
	const struct weft_record_options record = {
	    .mode = WEFT_RECORD_RING, .size_bytes = 65536, .packets = 4, .directory = path, .use_monotonic = true};
	const struct weft_follower_options options = {.window_events = 1000};
	struct weft_follower *follower;
	assert_int_equal(weft_start(&record), WEFT_OK);
	assert_int_equal(weft_follower_open(&follower, path, &options, NULL), WEFT_OK);
	const weft_id connection = WEFT_CREATE(WEFT_KIND_TASK), loop = WEFT_CREATE(WEFT_KIND_BIND);
	take_turns(connection, loop, 20000, follower);
	const size_t before = memory_in_use();
	take_turns(connection, loop, 60000, follower);
	const size_t after = memory_in_use();
	assert_true(after < before + 500000);
	weft_stop();
	weft_follower_close(follower);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    CASE(growing_trace_is_followed),
	    CASE(kernel_events_are_followed),
	    CASE(moving_window_is_followed),
	    CASE(model_of_a_small_window_is_right_after_skipped_events),
	    CASE(more_events_per_refresh_than_the_window_are_followed),
	    CASE(more_events_per_refresh_than_the_window_are_followed_with_kernel_events),
	    CASE(ring_with_more_events_per_refresh_than_the_window_is_followed),
	    CASE(model_of_a_small_window_of_a_ring_is_right_after_skipped_events),
	    CASE(first_window_has_existing_events),
	    CASE(late_refresh_builds_a_model_of_only_one_window),
	    CASE(newest_64_snapshots_older_than_the_window_are_kept),
	    CASE(window_as_large_as_the_trace_loses_no_event),
	    CASE(wrapping_ring_is_followed),
	    CASE(ring_shorter_than_the_window_is_followed),
	    CASE(event_with_the_first_id_of_a_merged_chain_ends_the_chain),
	    CASE(ended_promises_outside_of_the_window_take_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
