/* adapter.c: the tables of the sd-event adapter, a set for each copy, and its loops.  SPDX-License-Identifier: ISC */
#include "adapters/sd/adapter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapters/hook/sleep.h"

enum { COPIES = 2, LOOPS = 4 };

static struct weft__sd_copy copies[COPIES];
static void still_connected(const struct weft_hook_thing *known);

struct weft_hook_things weft__sd_things = {.bytes = sizeof(struct weft__sd_thing), .still = still_connected};
static __thread unsigned epoch __attribute__((tls_model("initial-exec")));

/* The sd_event_loop()s and sd_event_run()s of this OS thread that have not returned. */
static __thread struct run {
	const sd_event *event;
	const void *caller;
	unsigned epoch; /* of the recording that knows it */
	weft_id id, outer;
	weft_id turns; /* the promise of the loop whose turn this is, which outer awaits while the turn waits long */
	bool is_loop;  /* no turn, but a loop that runs until it is told to end */
} runs[LOOPS] __attribute__((tls_model("initial-exec")));
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

static void meet(void);

const struct weft__sd_copy *weft__sd_copy_of(const void *address)
{
	for (unsigned i = 0; i < COPIES; i++)
		if (copies[i].module && weft_hook_is_own(copies[i].module, address))
			return &copies[i];
	return NULL;
}

bool weft__sd_takes(void)
{
	if (!weft_hook_begin())
		return false;
	weft_hook_thread();
	if (epoch != weft__hook_epoch) {
		epoch = weft__hook_epoch;
		weft__sd_forget_unnamed();
		weft_hook_list((weft_list_pending_fn *)weft_hook_things_list, &weft__sd_things);
		if (weft__hook_stands_by)
			meet();
	}
	return true;
}

weft_id weft__sd_id(const void *key)
{
	weft__sd_lock(key);
	const struct weft__sd_thing *thing = weft__sd_find(key);
	weft_id id = thing ? thing->id : 0;
	weft__sd_unlock(key);
	return id;
}

/* ---- References ---- */

void weft__sd_hold(const void *key)
{
	if (!key || !weft__sd_knows())
		return;
	weft__sd_lock(key);
	struct weft__sd_thing *thing = weft__sd_find(key);
	if (thing)
		thing->references++;
	weft__sd_unlock(key);
}

void weft__sd_release(const void *key, const char *error)
{
	if (!key || !weft__sd_knows())
		return;
	weft__sd_lock(key);
	struct weft__sd_thing *thing = weft__sd_find(key);
	if (thing && --thing->references == 0) {
		weft_id by = weft__hook_thread.running ? weft__hook_thread.running : WEFT_SYSTEM_ID;
		const bool is_told = thing->id && weft_is_on();
		if (is_told)
			weft__sd_name(thing, NULL);
		if (is_told && error) {
			weft_fail(by, thing->id, error);
			weft_read_later(by, thing->id);
		} else if (is_told) {
			weft_resolve(by, thing->id);
		}
		weft_hook_carries_no_more(thing->fd, thing->id);
		weft_hook_things_drop(&weft__sd_things, &thing->thing);
	}
	weft__sd_unlock(key);
}

void weft__sd_carries(const struct weft__sd_thing *thing)
{
	if (thing->kind == WEFT_KIND_CONNECTION)
		weft_hook_may_carry(thing->fd, thing->id, thing->has_datagrams);
}

static void still_connected(const struct weft_hook_thing *known)
{
	weft_hook_still_connected(((const struct weft__sd_thing *)(const void *)known)->fd, known->id);
}

/* ---- Loops ---- */

struct keeping {
	const sd_event *event;
	weft_id loop;
};

static void keep(struct weft_hook_thing *known, void *data)
{
	struct weft__sd_thing *thing = (struct weft__sd_thing *)(void *)known;
	const struct keeping *k = data;
	if (thing->event == k->event && thing->is_enabled && thing->id)
		weft_await(thing->kept = k->loop, thing->id);
}

/* The promise of a loop that was called turn by turn ends.  Under the lock; NULL. */
static struct weft__sd_thing *end_turned(struct weft__sd_thing *loop)
{
	if (loop->id && weft_is_on())
		weft_resolve(weft__hook_thread.running ? weft__hook_thread.running : WEFT_SYSTEM_ID, loop->id);
	weft_hook_things_drop(&weft__sd_things, &loop->thing);
	return NULL;
}

/* A promise that awaits the sources that are enabled so far; it is found by its event loop.  Turns of one loop have one promise,
 * from the first that waits long until the loop is run as one, or its memory is another's. */
static weft_id begin_loop(const struct run *run, bool is_older)
{
	const sd_event *event = run->event;
	weft__sd_lock(event);
	struct weft__sd_thing *loop = weft__sd_find(event);
	if (loop && loop->is_turned && run->is_loop)
		loop = end_turned(loop);
	if (!loop)
		loop = weft_hook_things_make(&weft__sd_things, event);
	const bool is_new = loop && !loop->id;
	if (is_new) {
		loop->is_labelled = true;
		loop->is_turned = !run->is_loop;
		loop->label = (struct weft_hook_label){0};
		if (is_older)
			weft_hook_things_begin_older(&loop->thing, WEFT_KIND_LOOP);
		else
			weft_hook_things_begin(&loop->thing, WEFT_KIND_LOOP, run->caller);
		loop->by = run->outer;
		weft_hook_put(&loop->label, run->is_loop ? "sd_event_loop" : "sd_event_run, turn by turn");
		weft_hook_say(&loop->label, loop->id);
	}
	const weft_id id = is_new || (loop && loop->is_turned) ? loop->id : 0;
	if (id)
		weft_await(loop->kept = run->outer, id);
	weft__sd_unlock(event);
	if (is_new)
		weft_hook_things_each(&weft__sd_things, keep, &(struct keeping){event, id});
	return id;
}

/* Who called a turn goes on. */
static void end_turn(const struct run *run)
{
	weft__sd_lock(run->event);
	struct weft__sd_thing *loop = weft__sd_find(run->event);
	if (loop && loop->id == run->turns && loop->kept == run->outer) {
		weft_awaits_no_more(run->outer, run->turns);
		loop->kept = 0;
	}
	weft__sd_unlock(run->event);
}

static void end_loop(const sd_event *event, weft_id id, weft_id outer)
{
	weft__sd_lock(event);
	struct weft__sd_thing *loop = weft__sd_find(event);
	if (loop && loop->id == id) {
		weft_resolve(loop->ended_by ? loop->ended_by : WEFT_SYSTEM_ID, id);
		weft_hook_things_drop(&weft__sd_things, &loop->thing);
	}
	weft__sd_unlock(event);
	weft_read(outer, id);
	weft__hook_thread.shown = outer;
}

/* SD_EVENT_DEFAULT stands for the default loop of the OS thread. */
static const sd_event *loop_of(struct weft__sd_copy *copy, sd_event *event)
{
	if ((uintptr_t)event != 1)
		return event;
	sd_event *found = NULL;
	if (!copy->real.sd_event_default || !copy->real.sd_event_unref || copy->real.sd_event_default(&found) < 0)
		return NULL;
	copy->real.sd_event_unref(found);
	return found;
}

static struct run *begin_run(const sd_event *event, const void *caller, bool is_loop, bool is_on)
{
	struct run *run = &runs[depth++];
	*run = (struct run){.event = event, .caller = caller, .is_loop = is_loop};
	if (is_on) {
		run->epoch = weft__hook_epoch;
		run->outer = weft__hook_thread.running;
		run->id = is_loop ? begin_loop(run, false) : 0;
		if (run->id)
			weft__hook_thread.running = run->id;
	}
	return run;
}

static void end_run(const struct run *run)
{
	depth--;
	if (run->epoch != weft__hook_epoch)
		return;
	weft__hook_thread.running = run->outer;
	if (run->id && weft_is_on())
		end_loop(run->event, run->id, run->outer);
	else if (run->turns && weft_is_on())
		end_turn(run);
}

int weft__sd_event_loop(struct weft__sd_copy *copy, const void *caller, sd_event *event)
{
	const bool is_on = weft__sd_takes();
	const sd_event *key = depth < LOOPS && weft__sd_knows() ? loop_of(copy, event) : NULL;
	if (!key)
		return copy->real.sd_event_loop(event);
	const struct run *run = begin_run(key, caller, true, is_on);
	int status = copy->real.sd_event_loop(event);
	end_run(run);
	return status;
}

/* A turn.  sd_event_loop() takes its own by it. */
int weft__sd_event_run(struct weft__sd_copy *copy, const void *caller, sd_event *event, uint64_t timeout_us)
{
	const bool is_on = weft__sd_takes();
	const sd_event *key = depth < LOOPS && weft__sd_knows() ? loop_of(copy, event) : NULL;
	if (!key || (depth > 0 && runs[depth - 1].is_loop && runs[depth - 1].event == key))
		return copy->real.sd_event_run(event, timeout_us);
	const struct run *run = begin_run(key, caller, false, is_on);
	int status = copy->real.sd_event_run(event, timeout_us);
	end_run(run);
	return status;
}

/* What had this memory before is gone. */
int weft__sd_event_new(struct weft__sd_copy *copy, const void *caller, sd_event **event)
{
	int status = copy->real.sd_event_new(event);
	if (status < 0 || !weft__sd_knows())
		return status;
	weft__sd_lock(*event);
	struct weft__sd_thing *loop = weft__sd_find(*event);
	if (loop && loop->is_turned)
		end_turned(loop);
	weft__sd_unlock(*event);
	return status;
}

static void tell_older(struct weft_hook_thing *known, void *data)
{
	struct weft__sd_thing *thing = (struct weft__sd_thing *)(void *)known;
	if (thing->id || !thing->event) /* a loop, or a call */
		return;
	weft_hook_things_begin_older(known, (enum weft_kind)thing->kind);
	weft__sd_carries(thing);
	if (thing->is_labelled)
		weft_hook_say(&thing->label, thing->id);
	else
		weft__sd_name(thing, NULL);
}

/* The first call of this OS thread in this recording, or its first sleep: sources and loops may be older.  The first OS thread
 * tells of all sources; others tell of theirs again as soon as they call them. */
static void meet(void)
{
	weft_hook_things_each(&weft__sd_things, tell_older, NULL);
	for (struct run *run = runs; run < runs + depth; run++) {
		run->epoch = weft__hook_epoch;
		run->outer = weft__hook_thread.running;
		run->turns = 0;
		run->id = run->is_loop ? begin_loop(run, true) : 0;
		if (run->id)
			weft__hook_thread.running = run->id;
	}
}

int weft__sd_event_exit(struct weft__sd_copy *copy, const void *caller, sd_event *event, int code)
{
	const sd_event *key = weft_is_on() ? loop_of(copy, event) : NULL;
	if (key) {
		weft__sd_lock(key);
		struct weft__sd_thing *loop = weft__sd_find(key);
		if (loop && loop->id != weft__hook_thread.running)
			loop->ended_by = weft__hook_thread.running;
		weft__sd_unlock(key);
	}
	return copy->real.sd_event_exit(event, code);
}

/* A loop that is called turn by turn, and has nothing to do. */
static void still(const struct weft_hook_sleep *sleep)
{
	(void)sleep;
	if (depth > 0)
		runs[depth - 1].turns = begin_loop(&runs[depth - 1], false);
}

/* sd-event waits with epoll, and nothing else in these libraries does. */
static bool sleeps(struct weft_hook_sleep *sleep)
{
	enum { STILL_MS = 100 }; /* a busy loop never gets there */
	if (sleep->kind != WEFT_HOOK_SLEEP_FDS || sleep->epoll < 0 || (epoch != weft__hook_epoch && !weft__hook_stands_by))
		return false;
	const bool is_own = weft__sd_copy_of(sleep->caller) != NULL;
	if (epoch != weft__hook_epoch && (!is_own || !weft__sd_takes()))
		return false;
	weft__sd_name_all();
	const struct run *run = depth > 0 ? &runs[depth - 1] : NULL;
	if (is_own && run && !run->is_loop && !run->turns && run->epoch == epoch) {
		sleep->first_ms = STILL_MS;
		sleep->still = still;
	}
	return is_own;
}

/* ---- The adapter ---- */

#define WRAPPER(set, result, name, parameters, arguments)                                                                        \
	static result wrap_##set##_##name parameters                                                                             \
	{                                                                                                                        \
		return weft__##name(&copies[set], __builtin_return_address(0), WEFT__SD_LIST arguments);                         \
	}
#define ROW(set, result, name, parameters, arguments)                                                                            \
	{#name, (void *)wrap_##set##_##name, (void **)(void *)&copies[set].real.name},
#define CALLED_ROW(set, result, name, parameters) {#name, NULL, (void **)(void *)&copies[set].real.name},
#define WRAPPER_0(...) WRAPPER(0, __VA_ARGS__)
#define WRAPPER_1(...) WRAPPER(1, __VA_ARGS__)
#define ROW_0(...) ROW(0, __VA_ARGS__)
#define ROW_1(...) ROW(1, __VA_ARGS__)
#define CALLED_ROW_0(...) CALLED_ROW(0, __VA_ARGS__)
#define CALLED_ROW_1(...) CALLED_ROW(1, __VA_ARGS__)
#define SET(set)                                                                                                                 \
	WEFT__SD_CALLS(WRAPPER_##set)                                                                                            \
	static const struct weft_hook_function functions_##set[] = {                                                             \
	    WEFT__SD_CALLS(ROW_##set) WEFT__SD_ONLY_CALLED(CALLED_ROW_##set){0}};
SET(0)
SET(1)

static const struct weft_hook_function *const functions[COPIES] = {functions_0, functions_1};
static const struct weft_hook_module **const modules[COPIES] = {&copies[0].module, &copies[1].module};

/* libsystemd.so.0.35.0, libsystemd-shared-252.so.  Inside a program nothing tells which of its code is systemd's. */
static bool is_library(const struct weft_hook_module *module, char *version, size_t size)
{
	char target[256];
	ssize_t n = readlink(module->path, target, sizeof target - 1);
	target[n > 0 ? n : 0] = 0;
	const char *path = n > 0 ? target : module->path, *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	const char *shared = strstr(file, "-shared-"), *so = strstr(file, ".so.");
	bool is_known = !strncmp(file, "libsystemd", 10) && (shared || so);
	if (!is_known)
		snprintf(version, size, "(linked in)");
	else if (shared)
		snprintf(version, size, "%.*s", (int)strcspn(shared + 8, "."), shared + 8);
	else
		snprintf(version, size, "%s", so + 4);
	return is_known;
}

static void forget_promise(struct weft_hook_thing *known, void *data)
{
	struct weft__sd_thing *thing = (struct weft__sd_thing *)(void *)known;
	thing->id = thing->kept = thing->ended_by = 0;
	thing->calls = (struct weft_hook_calls){0};
}

/* Sources that are known while the process stands by stay so. */
static void forget(void)
{
	if (weft__hook_stands_by)
		weft_hook_things_each(&weft__sd_things, forget_promise, NULL);
	else
		weft_hook_things_forget(&weft__sd_things);
}

static void forks(enum weft_hook_fork when)
{
	weft_hook_things_fork(&weft__sd_things, when);
	if (when == WEFT_HOOK_IN_CHILD)
		weft__sd_forget_unnamed();
}

const struct weft_hook_adapter weft_sd_adapter = {
    .name = "sd-event",
    .library = "libsystemd",
    .prefix = "sd_",
    .mark = "sd_event_loop",
    .sets = COPIES,
    .functions = functions,
    .modules = modules,
    .accepts = is_library,
    .forget = forget,
    .fork = forks,
    .sleeps = sleeps,
};
