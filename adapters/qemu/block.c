/* block.c: records requests to block devices, and work of QEMU's thread pool.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "adapters/qemu/common.h"

/* ---- Devices ---- */

static void set_device_name(const void *blk, const char *file)
{
	if (!blk)
		return;
	weft_hook_object_table_lock(&weft__qemu_objects, blk);
	struct weft__qemu_object *device = weft_hook_object_find(&weft__qemu_objects, blk);
	if (device)
		weft_hook_object_remove(&weft__qemu_objects, &device->object);
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (file && (device = weft_hook_object_create(&weft__qemu_objects, blk)))
		weft_hook_append(&device->label, slash && slash[1] ? slash + 1 : file);
	weft_hook_object_table_unlock(&weft__qemu_objects, blk);
}

void *weft__blk_new(void *context, uint64_t permissions, uint64_t shared)
{
	void *blk = weft__qemu_real.blk_new(context, permissions, shared);
	set_device_name(blk, NULL); /* the table may hold the name of another device that was at this address */
	return blk;
}

void *weft__blk_new_open(const char *file, const char *reference, void *options, int flags, void *error)
{
	void *blk = weft__qemu_real.blk_new_open(file, reference, options, flags, error);
	if (file)
		set_device_name(blk, file);
	return blk;
}

/* ---- Requests ---- */

struct request {
	weft_id id, by;
	unsigned epoch;
	weft__qemu_done *done;
	void *data;
};

static void append_bytes(struct weft_hook_label *label, uint64_t bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB"};
	unsigned unit = 0;
	while (unit < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	weft_hook_append_number(label, bytes);
	weft_hook_append(label, units[unit]);
}

/* Appends a label such as "read 64 KiB at 1 MiB of disk.img". */
static void append_request(struct weft_hook_label *label, const void *blk, const char *verb, int64_t offset, uint64_t bytes)
{
	weft_hook_append(label, verb);
	if (offset >= 0) {
		weft_hook_append(label, " ");
		append_bytes(label, bytes);
		weft_hook_append(label, " at ");
		append_bytes(label, (uint64_t)offset);
	}
	const char *name = weft__qemu_real.blk_name(blk);
	weft_hook_object_table_lock(&weft__qemu_objects, blk);
	const struct weft__qemu_object *device = weft_hook_object_find(&weft__qemu_objects, blk);
	if ((name && *name) || device) {
		weft_hook_append(label, offset >= 0 ? " of " : " ");
		weft_hook_append(label, device ? device->label.text : name);
	}
	weft_hook_object_table_unlock(&weft__qemu_objects, blk);
}

static struct weft__qemu_object *begin_object(const void *key, enum weft_kind kind, const void *site)
{
	weft_hook_object_table_lock(&weft__qemu_objects, key);
	struct weft__qemu_object *object = weft_hook_object_create(&weft__qemu_objects, key);
	if (object)
		weft_hook_object_begin(&object->object, kind, site);
	weft_hook_object_table_unlock(&weft__qemu_objects, key);
	return object;
}

static void remove_object(const void *key)
{
	weft_hook_object_table_lock(&weft__qemu_objects, key);
	struct weft__qemu_object *object = weft_hook_object_find(&weft__qemu_objects, key);
	if (object)
		weft_hook_object_remove(&weft__qemu_objects, &object->object);
	weft_hook_object_table_unlock(&weft__qemu_objects, key);
}

static void record_end(weft_id id, int result)
{
	char text[128];
	if (result < 0)
		weft_fail(WEFT_SYSTEM_ID, id, strerror_r(-result, text, sizeof text));
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
}

static void finish_request(void *data, int result)
{
	struct request *request = data, copy = *request;
	bool is_recorded = weft_is_on() && copy.epoch == weft__hook_epoch;
	weft_id before = 0;
	if (is_recorded) {
		remove_object(request);
		record_end(copy.id, result);
		weft_read_later(copy.by, copy.id);
		weft_hook_thread();
		weft_hook_record_running(copy.id);
		before = weft__hook_get_thread()->running;
		weft__hook_get_thread()->running = copy.id;
	}
	free(request);
	copy.done(copy.data, result);
	if (is_recorded && weft_is_on())
		weft_hook_record_running(weft__hook_get_thread()->running = before);
}

/* Creates the promise of a request; returns NULL if the request is not recorded. */
static struct request *begin_request(
    const void *blk, const char *verb, int64_t offset, uint64_t bytes, weft__qemu_done *done, void *data, const void *caller)
{
	struct request *request = done && weft__qemu_should_record() ? malloc(sizeof *request) : NULL;
	struct weft__qemu_object *object = request ? begin_object(request, WEFT_KIND_REQUEST, caller) : NULL;
	if (!object) {
		free(request);
		return NULL;
	}
	*request = (struct request){object->id, object->by, weft__hook_epoch, done, data};
	append_request(&object->label, blk, verb, offset, bytes);
	weft_hook_record_label(&object->label, object->id);
	weft_should_resolve(object->id);
	weft__qemu_get_here()->pending_request = object->id;
	return request;
}

#define CALLBACK_REQUEST(result, name, parameters, arguments, verb, offset, bytes)                                               \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		struct request *request = begin_request(blk, verb, offset, bytes, done, data, __builtin_return_address(0));      \
		if (request) {                                                                                                   \
			done = finish_request;                                                                                   \
			data = request;                                                                                          \
		}                                                                                                                \
		result aiocb = weft__qemu_real.name arguments;                                                                   \
		weft__qemu_get_here()->pending_request = 0;                                                                      \
		return aiocb;                                                                                                    \
	}
WEFT__QEMU_CALLBACK_REQUESTS(CALLBACK_REQUEST)

/* Creates the promise of a request that QEMU makes for a callback; returns NULL if QEMU makes the request while it answers
 * another request. */
static __attribute__((noinline)) struct weft__qemu_object *begin_nested_request(
    const void *key, const void *blk, const char *verb, int64_t offset, uint64_t bytes, const void *caller)
{
	if (!weft_is_on() || !weft__qemu_should_record())
		return NULL;
	const struct weft__qemu_here *here = weft__qemu_get_here();
	const struct weft__qemu_object *coroutine =
	    here->depth > 0 && here->depth <= WEFT__QEMU_MAX_ENTERED ? here->entered[here->depth - 1].coroutine : NULL;
	if (!coroutine || coroutine->is_request || weft__hook_get_thread()->running != coroutine->id)
		return NULL;
	struct weft__qemu_object *object = begin_object(key, WEFT_KIND_REQUEST, caller);
	if (!object)
		return NULL;
	append_request(&object->label, blk, verb, offset, bytes);
	weft_hook_record_label(&object->label, object->id);
	weft_should_resolve(object->id);
	weft_await(object->by, object->id);
	weft_hook_record_running(weft__hook_get_thread()->running = object->id);
	return object;
}

/* The request may end on another thread than it began. */
static __attribute__((noinline)) void end_nested_request(const void *key, weft_id by, weft_id id, unsigned epoch, int result)
{
	if (!weft_is_on() || epoch != weft__hook_epoch)
		return;
	remove_object(key);
	record_end(id, result);
	weft_read(by, id);
	weft__hook_get_thread()->running = weft__hook_get_thread()->recorded_running = by;
}

#define COROUTINE_REQUEST(result, name, parameters, arguments, verb, offset, bytes)                                              \
	result weft__##name parameters                                                                                           \
	{                                                                                                                        \
		char key = 0;                                                                                                    \
		struct weft__qemu_object *object =                                                                               \
		    begin_nested_request(&key, blk, verb, offset, bytes, __builtin_return_address(0));                           \
		if (!object)                                                                                                     \
			return weft__qemu_real.name arguments;                                                                   \
		weft_id id = object->id, by = object->by;                                                                        \
		unsigned epoch = weft__hook_epoch;                                                                               \
		result status = weft__qemu_real.name arguments;                                                                  \
		end_nested_request(&key, by, id, epoch, status);                                                                 \
		return status;                                                                                                   \
	}
WEFT__QEMU_COROUTINE_REQUESTS(COROUTINE_REQUEST)

/* ---- Work ---- */

struct work {
	weft_id id, by;
	unsigned epoch;
	weft__qemu_work *function;
	void *argument;
	weft__qemu_done *done;
	void *data;
};

static bool is_recorded(const struct work *work)
{
	return weft_is_on() && work->epoch == weft__hook_epoch;
}

/* Runs pushed work on a thread of QEMU's pool. */
static int run_work(void *data)
{
	struct work *work = data;
	if (!is_recorded(work))
		return work->function(work->argument);
	struct weft_hook_thread *here = weft_hook_thread();
	weft_id before = here->running;
	weft_hook_record_running(here->running = work->id);
	int result = work->function(work->argument);
	weft_hook_record_running(here->running = before);
	return result;
}

static void finish_work(void *data, int result)
{
	struct work *work = data, copy = *work;
	if (is_recorded(&copy)) {
		remove_object(work);
		record_end(copy.id, result);
		weft_read_later(copy.by, copy.id);
	}
	free(work);
	copy.done(copy.data, result);
}

/* The arguments are (pool, function, argument, done, data); since QEMU 8.1 there is no argument `pool`. */
void *weft__thread_pool_submit_aio(void *a, void *b, void *c, void *d, void *e)
{
	bool has_pool = !weft__qemu_is_own(a);
	void *function = has_pool ? b : a, *argument = has_pool ? c : b, *done = has_pool ? d : c, *data = has_pool ? e : d;
	struct work *work = done && weft__qemu_should_record() ? malloc(sizeof *work) : NULL;
	struct weft__qemu_object *object = work ? begin_object(work, WEFT_KIND_WORK, (const char *)function + 1) : NULL;
	if (!object) {
		free(work);
		return weft__qemu_real.thread_pool_submit_aio(a, b, c, d, e);
	}
	*work = (struct work){
	    object->id, object->by, weft__hook_epoch, (weft__qemu_work *)function, argument, (weft__qemu_done *)done, data};
	weft_hook_append_function(&object->label, function);
	weft_hook_record_label(&object->label, object->id);
	weft_await(object->by, object->id);
	if (has_pool)
		return weft__qemu_real.thread_pool_submit_aio(a, (void *)run_work, work, (void *)finish_work, work);
	return weft__qemu_real.thread_pool_submit_aio((void *)run_work, work, (void *)finish_work, work, e);
}
