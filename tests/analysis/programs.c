/* programs.c: random programs of promises, healthy or with one fault.
 *
 * Each program has a simulated clock, so it runs as fast as it can, and each run of a seed gives the same trace.
 * SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/promise.h>

#include "planted.h"

/* ---- Chance, time ---- */

static uint64_t seed_state;

static uint64_t chance(void)
{
	uint64_t z = seed_state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t between(uint64_t least, uint64_t most)
{
	return least + chance() % (most - least + 1);
}

static uint64_t now_ns;

static uint64_t read_clock(void)
{
	return now_ns += 131;
}

static void burn(uint64_t ns)
{
	now_ns += ns;
}

/* ---- The outside: events at given times ---- */

typedef void action(void *ctx);

struct event {
	uint64_t due_ns, order;
	struct weft_resolver *resolver;
	const char *error; /* NULL: a value */
	action *act;
	void *ctx;
};

enum { EVENTS = 1 << 16 };
static struct event events[EVENTS];
static size_t event_count;
static uint64_t event_order;

static bool is_earlier(const struct event *a, const struct event *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void schedule(struct event event, uint64_t delay_ns)
{
	event.due_ns = now_ns + delay_ns;
	event.order = event_order++;
	if (event_count == EVENTS)
		exit(2);
	size_t at = event_count++;
	for (; at > 0 && is_earlier(&event, &events[(at - 1) / 2]); at = (at - 1) / 2)
		events[at] = events[(at - 1) / 2];
	events[at] = event;
}

static struct event take_event(void)
{
	struct event first = events[0], last = events[--event_count];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < event_count; at = child) {
		if (child + 1 < event_count && is_earlier(&events[child + 1], &events[child]))
			child++;
		if (is_earlier(&last, &events[child]))
			break;
		events[at] = events[child];
	}
	events[at] = last;
	return first;
}

static void loop_until(uint64_t limit_ns)
{
	while (event_count > 0 && (!limit_ns || events[0].due_ns < limit_ns)) {
		struct event event = take_event();
		if (event.due_ns > now_ns) {
			weft_idle(WEFT_IDLE_WAIT);
			now_ns = event.due_ns;
			weft_resume(WEFT_SYSTEM_ID);
		}
		if (event.act)
			event.act(event.ctx);
		else if (event.error)
			weft_wakeup_error(event.resolver, 1, event.error);
		else
			weft_wakeup(event.resolver, NULL, NULL);
	}
	weft_idle(WEFT_IDLE_WAIT);
}

/* ---- Healthy work ---- */

static struct weft_promise *work(int depth);
static unsigned works_left;

static struct weft_promise *sleep_for(uint64_t ns)
{
	struct weft_resolver *resolver;
	struct weft_promise *p;
	switch (chance() % 4) {
	case 0: p = weft_promise_task(&resolver); break;
	case 1: p = weft_promise_wait(&resolver); break;
	case 2: p = weft_promise_named_task("disk", &resolver); break;
	default: p = weft_promise_of_kind(WEFT_KIND_TIMER, true, NULL, &resolver); break;
	}
	schedule((struct event){.resolver = resolver}, ns);
	return p;
}

static struct weft_promise *some_sleep(void)
{
	return sleep_for(between(10000, 30 * MS));
}

static struct weft_promise *then_work(void *ctx, void *value)
{
	burn(between(100, 20000));
	return work((int)(intptr_t)ctx);
}

static struct weft_promise *then_unit(void *ctx, void *value)
{
	burn(between(100, 5000));
	return weft_promise_unit();
}

static struct weft_value then_map(void *ctx, void *value)
{
	burn(between(100, 5000));
	return (struct weft_value){NULL, NULL};
}

static struct weft_promise *rescued(void *ctx, const struct weft_failure *failure)
{
	return chance() % 2 ? weft_promise_unit() : some_sleep();
}

static struct weft_promise *start_work(void *ctx)
{
	return work((int)(intptr_t)ctx);
}

static struct weft_promise *cleanup(void *ctx)
{
	return some_sleep();
}

static struct weft_promise *failing(const char *error)
{
	struct weft_resolver *resolver;
	struct weft_promise *p = weft_promise_task(&resolver);
	schedule((struct event){.resolver = resolver, .error = error}, between(1000, 20 * MS));
	return p;
}

static void broadcast(void *condition)
{
	weft_condition_broadcast(condition, NULL, NULL);
}

static void put(void *mvar)
{
	weft_promise_unref(weft_mvar_put(mvar, NULL, NULL));
}

static void count_value(void *ctx, void *value)
{
	burn(500);
}

static void count_end(void *ctx)
{
	burn(500);
}

static struct weft_mutex *mutex;
static struct weft_semaphore *semaphore;
static struct weft_condition *deaf; /* signalled repeatedly, but never awaited */

static struct weft_promise *release(void *ctx)
{
	weft_semaphore_release(semaphore);
	return weft_promise_unit();
}

static struct weft_promise *with_semaphore(void *ctx, void *value)
{
	return weft_promise_finalize(some_sleep(), release, NULL, NULL);
}

static struct weft_promise *wait_for_condition(void)
{
	struct weft_condition *c = weft_condition_create(chance() % 2 ? "news" : NULL);
	struct weft_promise *waiting[3];
	size_t count = between(1, 3);
	if (chance() % 3 == 0)
		weft_condition_broadcast(
		    c, NULL, NULL); /* this broadcast comes before any wait; the later broadcast wakes the waiters */
	for (size_t i = 0; i < count; i++)
		waiting[i] = weft_condition_wait(c, NULL);
	schedule((struct event){.act = broadcast, .ctx = c}, between(1000, 20 * MS));
	return weft_promise_join(waiting, count);
}

static struct weft_promise *several(int depth, bool all)
{
	struct weft_promise *each[4];
	size_t count = between(2, 4);
	for (size_t i = 0; i < count; i++)
		each[i] = work(depth - 1);
	return all ? weft_promise_all(each, count) : weft_promise_join(each, count);
}

static struct weft_promise *first_of(bool pick)
{
	struct weft_promise *each[3];
	size_t count = between(2, 3);
	for (size_t i = 0; i < count; i++)
		each[i] = some_sleep();
	return pick ? weft_promise_pick(each, count) : weft_promise_choose(each, count);
}

static struct weft_promise *work(int depth)
{
	if (depth <= 0 || works_left == 0)
		return some_sleep();
	works_left--;
	void *less = (void *)(intptr_t)(depth - 1);
	switch (chance() % 16) {
	case 0: return some_sleep();
	case 1:
	case 2: return weft_promise_bind(work(depth - 1), then_work, less, NULL);
	case 3: return several(depth, false);
	case 4: return several(depth, true);
	case 5: return first_of(true);
	case 6: return first_of(false);
	case 7: return weft_promise_catch(failing("no such file"), rescued, NULL, NULL);
	case 8: return weft_promise_catch(weft_promise_bind(failing("refused"), then_work, less, NULL), rescued, NULL, NULL);
	case 9: return wait_for_condition();
	case 10: return weft_mutex_with_lock(mutex, start_work, (void *)(intptr_t)0, NULL);
	case 11: {
		struct weft_mvar *m = weft_mvar_create_empty("box");
		schedule((struct event){.act = put, .ctx = m}, between(1000, 20 * MS));
		return weft_promise_map(weft_mvar_take(m), then_map, NULL, NULL);
	}
	case 12: return weft_promise_finalize(work(depth - 1), cleanup, NULL, NULL);
	case 13: return weft_promise_bind(weft_semaphore_acquire(semaphore), with_semaphore, NULL, NULL);
	case 14: {
		struct weft_promise *p = work(depth - 1);
		if (chance() % 2)
			weft_promise_on_success(weft_promise_ref(p), count_value, NULL, NULL);
		else
			weft_promise_on_termination(weft_promise_ref(p), count_end, NULL, NULL);
		return chance() % 2 ? weft_promise_no_cancel(p) : weft_promise_protected(p);
	}
	default: return weft_promise_try_bind(work(depth - 1), then_unit, rescued, NULL, NULL);
	}
}

static void make_noise(void *ctx)
{
	weft_condition_signal(deaf, NULL, NULL);
	if (chance() % 2)
		weft_promise_async(start_work, (void *)(intptr_t)between(1, 3), NULL);
	else
		weft_promise_ignore_result(weft_promise_catch(work(2), rescued, NULL, NULL));
}

/* ---- Faults ---- */

struct plan plan;

/* Wraps the planted promise in a few levels of waiters. */
static struct weft_promise *wrapped(struct weft_promise *p)
{
	for (uint64_t levels = between(0, 3); levels > 0; levels--) {
		switch (chance() % 4) {
		case 0: p = weft_promise_bind(p, then_unit, NULL, NULL); break;
		case 1: {
			struct weft_promise *both[2] = {some_sleep(), p};
			p = weft_promise_join(both, 2);
			break;
		}
		case 2: p = weft_promise_catch(p, rescued, NULL, NULL); break;
		default: p = weft_promise_map(p, then_map, NULL, NULL); break;
		}
	}
	return p;
}

static struct weft_promise *wait_too_late(void *condition, void *value)
{
	return weft_condition_wait(condition, NULL);
}

static struct weft_promise *forget(void *ctx, void *value)
{
	struct weft_resolver *resolver;
	struct weft_promise *p = weft_promise_named_task("planted", &resolver);
	plan.ids[plan.count++] = weft_promise_id(p);
	return p;
}

static struct weft_promise *circle[6];

/* Each promise of the circle waits for the next one, and the last promise waits for the first. */
static struct weft_promise *next_in_circle(void *ctx, void *value)
{
	size_t i = (size_t)(intptr_t)ctx;
	return weft_promise_map(weft_promise_ref(circle[(i + 1) % plan.count]), then_map, NULL, NULL);
}

static struct weft_promise *fail_now(void *ctx, void *value)
{
	return weft_promise_fail(7, "planted error");
}

static struct weft_promise *fail_alone(void *ctx)
{
	return chance() % 2 ? weft_promise_bind(some_sleep(), fail_now, NULL, NULL) : failing("planted error");
}

static struct weft_promise *hog(void *ctx, void *value)
{
	plan.ids[plan.count++] = weft_running();
	burn(20 * MS);
	return weft_promise_unit();
}

/* Wakes 100 promises, one after the other; each of them runs before the promises that became ready earlier. */
static struct weft_promise *greedy(void *ctx, void *value)
{
	for (int i = 0; i < 100; i++) {
		struct weft_resolver *resolver;
		struct weft_promise *p = weft_promise_task(&resolver);
		p = weft_promise_bind(p, then_unit, NULL, NULL);
		weft_wakeup(resolver, NULL, NULL);
		weft_promise_unref(p);
		burn(250000);
	}
	return weft_promise_unit();
}

static void leak_one(void *ctx)
{
	struct weft_resolver *resolver;
	struct weft_promise *p = weft_promise_named_task("planted leak", &resolver);
	plan.ids[0] = weft_promise_id(p);
	plan.count = 1;
	if (chance() % 2)
		weft_promise_bind(weft_promise_ref(p), then_unit, NULL, NULL);
}

/* Adds the fault to the program; returns the promise for which the main promise has to wait, or NULL. */
static struct weft_promise *plant(enum fault fault)
{
	memset(&plan, 0, sizeof plan);
	plan.fault = fault;
	switch (fault) {
	case LOST_WAKEUP: {
		struct weft_condition *c = weft_condition_create("planted");
		uint64_t early_ns = between(1000, 40 * MS);
		schedule((struct event){.act = broadcast, .ctx = c}, early_ns);
		return wrapped(weft_promise_bind(sleep_for(early_ns + between(1000, 40 * MS)), wait_too_late, c, NULL));
	}
	case CYCLE:
		plan.count = between(2, 6);
		for (size_t i = 0; i < plan.count; i++)
			circle[i] = weft_promise_bind(some_sleep(), next_in_circle, (void *)(intptr_t)i, NULL);
		for (size_t i = 0; i < plan.count; i++)
			plan.ids[i] = weft_promise_id(circle[i]);
		return chance() % 2 ? wrapped(weft_promise_ref(circle[chance() % plan.count])) : NULL;
	case FORGOTTEN: return wrapped(weft_promise_bind(some_sleep(), forget, NULL, NULL));
	case FAILURE:
		if (chance() % 2)
			weft_promise_async(fail_alone, NULL, NULL);
		else
			weft_promise_unref(weft_promise_map(fail_alone(NULL), then_map, NULL, NULL));
		return NULL;
	case STALL: {
		struct weft_resolver *resolver;
		struct weft_promise *p = weft_promise_task(&resolver), *all[12];
		plan.victims = between(1, 11);
		for (size_t i = 0; i < plan.victims; i++)
			all[i] = weft_promise_bind(weft_promise_ref(p), then_unit, NULL, NULL);
		all[plan.victims] =
		    weft_promise_bind(p, hog, NULL, NULL); /* of the waiters of a promise, the last one runs first */
		schedule((struct event){.resolver = resolver}, between(1000, 60 * MS));
		return weft_promise_join(all, plan.victims + 1);
	}
	case LEAK:
		for (uint64_t at_ns = between(1000, 5 * MS), every_ns = between(2 * MS, 4 * MS), i = 0; i < 60;
		     i++, at_ns += every_ns)
			schedule((struct event){.act = leak_one}, at_ns);
		return NULL;
	case STARVATION: {
		struct weft_resolver *resolver;
		struct weft_promise *p = weft_promise_task(&resolver), *both[2];
		both[0] = weft_promise_bind(weft_promise_ref(p), then_unit, NULL, NULL);
		plan.ids[plan.count++] = weft_promise_id(both[0]);
		both[1] = weft_promise_bind(p, greedy, NULL, NULL);
		schedule((struct event){.resolver = resolver}, between(1000, 60 * MS));
		return weft_promise_join(both, 2);
	}
	default: return NULL;
	}
}

/* ---- One program ---- */

uint64_t *buffer, *copy;
static struct plan *planned; /* in memory that the child process of the program shares, as the buffers */

static void start_recording(size_t bytes, unsigned packets)
{
	memset(buffer, 0, PLANTED_BYTES);
	struct weft_record_options options = {
	    .buffer = buffer, .buffer_bytes = bytes, .packets = packets, .clock = read_clock, .clock_hz = 1000000000};
	if (weft_start(&options) != WEFT_OK) {
		fprintf(stderr, "planted: %s\n", weft_start_error());
		exit(2);
	}
}

static void run_here(enum fault fault, uint64_t seed, size_t bytes, uint64_t cut_ns)
{
	seed_state = seed;
	now_ns = 1000000000;
	event_count = event_order = 0;
	start_recording(bytes, bytes == PLANTED_BYTES ? 1024 : 8);
	mutex = weft_mutex_create();
	semaphore = weft_semaphore_create(2);
	deaf = weft_condition_create("deaf");
	works_left = (unsigned)between(40, 400);
	struct weft_promise *jobs[13];
	size_t count = between(2, 12);
	for (size_t i = 0; i < count; i++)
		jobs[i] = work((int)between(1, 5));
	for (uint64_t i = between(5, 15); i > 0; i--)
		schedule((struct event){.act = make_noise}, between(1000, 100 * MS));
	uint64_t noise_state = seed_state;
	struct weft_promise *planted = plant(fault);
	seed_state = noise_state; /* the noise is the same with and without the fault */
	if (planted)
		jobs[count++] = planted;
	struct weft_promise *main_promise = weft_promise_join(jobs, count);
	weft_promise_should_resolve(main_promise);
	uint64_t began_ns = now_ns;
	if (cut_ns) {
		loop_until(began_ns + cut_ns);
		memcpy(copy, buffer, PLANTED_BYTES);
	}
	loop_until(0);
	burn(50 * MS);
	weft_resume(WEFT_SYSTEM_ID);
	weft_stop();
}

void run_program(enum fault fault, uint64_t seed, size_t bytes, uint64_t cut_ns)
{
	if (!buffer) {
		void *shared =
		    mmap(NULL, 2 * PLANTED_BYTES + sizeof plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (shared == MAP_FAILED)
			exit(2);
		buffer = shared;
		copy = buffer + PLANTED_BYTES / 8;
		planned = (struct plan *)(copy + PLANTED_BYTES / 8);
	}
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		run_here(fault, seed, bytes, cut_ns);
		*planned = plan;
		_exit(0);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "planted: the program with fault %d and seed %llu died\n", (int)fault, (unsigned long long)seed);
		exit(2);
	}
	plan = *planned;
}
