/* block.c: requests to block devices, and work that QEMU has done by its pool of OS threads.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "adapters/qemu/adapter.h"

/* ---- Devices ---- */

static void name_device(const void *blk, const char *file)
{
	if (!blk)
		return;
	weft_hook_things_lock(&weft__qemu_things, blk);
	struct weft__qemu_thing *device = weft_hook_things_find(&weft__qemu_things, blk);
	if (device)
		weft_hook_things_drop(&weft__qemu_things, &device->thing);
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (file && (device = weft_hook_things_make(&weft__qemu_things, blk)))
		weft_hook_put(&device->label, slash && slash[1] ? slash + 1 : file);
	weft_hook_things_unlock(&weft__qemu_things, blk);
}

void *weft__blk_new(void *context, uint64_t permissions, uint64_t shared)
{
	void *blk = weft__qemu_real.blk_new(context, permissions, shared);
	name_device(blk, NULL); /* its memory may have been another's */
	return blk;
}

void *weft__blk_new_open(const char *file, const char *reference, void *options, int flags, void *error)
{
	void *blk = weft__qemu_real.blk_new_open(file, reference, options, flags, error);
	if (file)
		name_device(blk, file);
	return blk;
}

/* ---- Requests ---- */

struct request {
	weft_id id, by;
	unsigned epoch;
	weft__qemu_done *done;
	void *data;
};

static void put_bytes(struct weft_hook_label *label, uint64_t bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB"};
	unsigned unit = 0;
	while (unit < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	weft_hook_put_number(label, bytes);
	weft_hook_put(label, units[unit]);
}

/* "read 64 KiB at 1 MiB of disk.img". */
static void put_request(struct weft_hook_label *label, const void *blk, const char *verb, int64_t offset, uint64_t bytes)
{
	weft_hook_put(label, verb);
	if (offset >= 0) {
		weft_hook_put(label, " ");
		put_bytes(label, bytes);
		weft_hook_put(label, " at ");
		put_bytes(label, (uint64_t)offset);
	}
	const char *name = weft__qemu_real.blk_name(blk);
	weft_hook_things_lock(&weft__qemu_things, blk);
	const struct weft__qemu_thing *device = weft_hook_things_find(&weft__qemu_things, blk);
	if ((name && *name) || device) {
		weft_hook_put(label, offset >= 0 ? " of " : " ");
		weft_hook_put(label, device ? device->label.text : name);
	}
	weft_hook_things_unlock(&weft__qemu_things, blk);
}

static struct weft__qemu_thing *begin(const void *key, enum weft_kind kind, const void *site)
{
	weft_hook_things_lock(&weft__qemu_things, key);
	struct weft__qemu_thing *thing = weft_hook_things_make(&weft__qemu_things, key);
	if (thing)
		weft_hook_things_begin(&thing->thing, kind, site);
	weft_hook_things_unlock(&weft__qemu_things, key);
	return thing;
}

static void end(const void *key)
{
	weft_hook_things_lock(&weft__qemu_things, key);
	struct weft__qemu_thing *thing = weft_hook_things_find(&weft__qemu_things, key);
	if (thing)
		weft_hook_things_drop(&weft__qemu_things, &thing->thing);
	weft_hook_things_unlock(&weft__qemu_things, key);
}

static void tell_end(weft_id id, int result)
{
	char text[128];
	if (result < 0)
		weft_fail(WEFT_SYSTEM_ID, id, strerror_r(-result, text, sizeof text));
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
}

static void request_done(void *data, int result)
{
	struct request *request = data, copy = *request;
	bool is_told = weft_is_on() && copy.epoch == weft__hook_epoch;
	weft_id before = 0;
	if (is_told) {
		end(request);
		tell_end(copy.id, result);
		weft_read_later(copy.by, copy.id);
		weft_hook_thread();
		weft_hook_show(copy.id);
		before = weft__hook_thread.running;
		weft__hook_thread.running = copy.id;
	}
	free(request);
	copy.done(copy.data, result);
	if (is_told && weft_is_on())
		weft_hook_show(weft__hook_thread.running = before);
}

/* NULL: nothing is told of it. */
static struct request *ask(
    const void *blk, const char *verb, int64_t offset, uint64_t bytes, weft__qemu_done *done, void *data, const void *caller)
{
	struct request *request = done && weft__qemu_takes() ? malloc(sizeof *request) : NULL;
	struct weft__qemu_thing *thing = request ? begin(request, WEFT_KIND_REQUEST, caller) : NULL;
	if (!thing) {
		free(request);
		return NULL;
	}
	*request = (struct request){thing->id, thing->by, weft__hook_epoch, done, data};
	put_request(&thing->label, blk, verb, offset, bytes);
	weft_hook_say(&thing->label, thing->id);
	weft_should_resolve(thing->id);
	weft__qemu_here.asking = thing->id;
	return request;
}

#define ASKED(result, name, parameters, arguments, verb, offset, bytes)                                                          \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		struct request *request = ask(blk, verb, offset, bytes, done, data, __builtin_return_address(0));                \
		if (request) {                                                                                                   \
			done = request_done;                                                                                     \
			data = request;                                                                                          \
		}                                                                                                                \
		result made = weft__qemu_real.name arguments;                                                                    \
		weft__qemu_here.asking = 0;                                                                                      \
		return made;                                                                                                     \
	}
WEFT__QEMU_ASKED(ASKED)

/* One that QEMU makes while it answers another is a part of that.  NULL: nothing is told of it. */
static __attribute__((noinline)) struct weft__qemu_thing *begin_inside(
    const void *key, const void *blk, const char *verb, int64_t offset, uint64_t bytes, const void *caller)
{
	if (!weft_is_on() || !weft__qemu_takes())
		return NULL;
	const struct weft__qemu_here *here = &weft__qemu_here;
	const struct weft__qemu_thing *coroutine =
	    here->depth > 0 && here->depth <= WEFT__QEMU_DEPTH ? here->entered[here->depth - 1].coroutine : NULL;
	if (!coroutine || coroutine->is_request || weft__hook_thread.running != coroutine->id)
		return NULL;
	struct weft__qemu_thing *thing = begin(key, WEFT_KIND_REQUEST, caller);
	if (!thing)
		return NULL;
	put_request(&thing->label, blk, verb, offset, bytes);
	weft_hook_say(&thing->label, thing->id);
	weft_should_resolve(thing->id);
	weft_await(thing->by, thing->id);
	weft_hook_show(weft__hook_thread.running = thing->id);
	return thing;
}

/* Maybe on another OS thread than it began on. */
static __attribute__((noinline)) void end_inside(const void *key, weft_id by, weft_id id, unsigned epoch, int result)
{
	if (!weft_is_on() || epoch != weft__hook_epoch)
		return;
	end(key);
	tell_end(id, result);
	weft_read(by, id);
	weft__hook_thread.running = weft__hook_thread.shown = by;
}

#define INSIDE(result, name, parameters, arguments, verb, offset, bytes)                                                         \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		char key = 0;                                                                                                    \
		struct weft__qemu_thing *thing = begin_inside(&key, blk, verb, offset, bytes, __builtin_return_address(0));      \
		if (!thing)                                                                                                      \
			return weft__qemu_real.name arguments;                                                                   \
		weft_id id = thing->id, by = thing->by;                                                                          \
		unsigned epoch = weft__hook_epoch;                                                                               \
		result status = weft__qemu_real.name arguments;                                                                  \
		end_inside(&key, by, id, epoch, status);                                                                         \
		return status;                                                                                                   \
	}
WEFT__QEMU_INSIDE(INSIDE)

/* ---- Work ---- */

struct work {
	weft_id id, by;
	unsigned epoch;
	weft__qemu_work *function;
	void *argument;
	weft__qemu_done *done;
	void *data;
};

static bool is_told(const struct work *work)
{
	return weft_is_on() && work->epoch == weft__hook_epoch;
}

/* On an OS thread of the pool. */
static int work_called(void *data)
{
	struct work *work = data;
	if (!is_told(work))
		return work->function(work->argument);
	struct weft_hook_thread *here = weft_hook_thread();
	weft_id before = here->running;
	weft_hook_show(here->running = work->id);
	int result = work->function(work->argument);
	weft_hook_show(here->running = before);
	return result;
}

static void work_done(void *data, int result)
{
	struct work *work = data, copy = *work;
	if (is_told(&copy)) {
		end(work);
		tell_end(copy.id, result);
		weft_read_later(copy.by, copy.id);
	}
	free(work);
	copy.done(copy.data, result);
}

/* (pool, function, argument, done, data); without the pool since 8.1. */
void *weft__thread_pool_submit_aio(void *a, void *b, void *c, void *d, void *e)
{
	bool has_pool = !weft__qemu_is_own(a);
	void *function = has_pool ? b : a, *argument = has_pool ? c : b, *done = has_pool ? d : c, *data = has_pool ? e : d;
	struct work *work = done && weft__qemu_takes() ? malloc(sizeof *work) : NULL;
	struct weft__qemu_thing *thing = work ? begin(work, WEFT_KIND_WORK, (const char *)function + 1) : NULL;
	if (!thing) {
		free(work);
		return weft__qemu_real.thread_pool_submit_aio(a, b, c, d, e);
	}
	*work = (struct work){
	    thing->id, thing->by, weft__hook_epoch, (weft__qemu_work *)function, argument, (weft__qemu_done *)done, data};
	weft_hook_put_function(&thing->label, function);
	weft_hook_say(&thing->label, thing->id);
	weft_await(thing->by, thing->id);
	if (has_pool)
		return weft__qemu_real.thread_pool_submit_aio(a, (void *)work_called, work, (void *)work_done, work);
	return weft__qemu_real.thread_pool_submit_aio((void *)work_called, work, (void *)work_done, work, e);
}
