/* request.c: records requests of libuv, and work of its thread pool.
 *
 * The running promise creates a request, and the request's owner awaits it: the owner is the stream for a stream's request, and
 * otherwise the running promise.  The request ends when its callback begins.  The callback runs in the name of the owner, so
 * that a connection is one row.  If the owner is no actor (a thread, an earlier request) or has ended, the callback runs in the
 * name of the request itself, because "main ran for 60 ms" would not help a reader.  SPDX-License-Identifier: ISC */
#include <string.h>

#include "adapters/uv/callback.h"
#include "adapters/uv/object.h"
#include "adapters/uv/slots.h"

static struct weft_record_text in_pool = WEFT_COUNTER("thread pool: requests"),
			       working_requests = WEFT_COUNTER("thread pool: at work");

#define ALWAYS_INLINE inline __attribute__((always_inline))

static ALWAYS_INLINE struct weft__uv_object *make_request(struct weft__uv_copy *copy, const void *caller, const void *request,
    uv_loop_t *loop, enum weft_kind kind, const struct weft__uv_object *owner)
{
	struct weft__uv_object *object = weft__uv_object_of_request(copy, request, loop);
	weft__uv_mark_loop_dirty();
	if (!object)
		return NULL;
	object->kind = (uint8_t)kind;
	object->by = weft__hook_get_thread()->running;
	object->site = weft__uv_site(caller);
	object->line = weft__uv_find_line(false);
	if (!object->line && owner)
		object->line = owner->line;
	object->owner = owner ? weft__uv_tag_of(owner) : weft__uv_get_here()->actor;
	return object;
}

static weft_id create_at_line(const struct weft__uv_object *object, weft_id waiter)
{
	const enum weft_kind kind = (enum weft_kind)object->kind;
	const weft_id id = object->label.length
			       ? weft__create_labelled(object->by, kind, object->line, object->label.text, object->label.length)
			       : weft_create(object->by, kind, object->line);
	weft_await(waiter, id);
	return id;
}

/* Creates the promise of a request, with its label if it has one. */
static ALWAYS_INLINE void begin_request(struct weft__uv_object *object, const void *caller, const struct weft__uv_object *owner)
{
	const struct weft_hook_label *label = &object->label;
	const weft_id waiter = owner && owner->id ? owner->id : object->by;
	object->id = object->line ? create_at_line(object, waiter)
				  : weft__create_awaited(object->by, (enum weft_kind)object->kind, object->site, waiter,
					label->length ? label->text : NULL, label->length);
	object->since = weft_is_on() ? weft__stream->last : 0;
	weft_hook_stack(object->id, caller);
	struct weft__uv_object *actor = owner ? NULL : weft__uv_find(object->owner);
	if (actor && actor->is_datagram)
		actor->children++;
}

struct weft__uv_object *weft__uv_request(struct weft__uv_copy *copy, const void *caller, const void *request, uv_loop_t *loop,
    enum weft_kind kind, const struct weft__uv_object *owner)
{
	struct weft__uv_object *object = make_request(copy, caller, request, loop, kind, owner);
	if (object)
		begin_request(object, caller, owner);
	return object;
}

struct weft__uv_object *weft__uv_write_request(struct weft__uv_copy *copy, const void *caller, const uv_write_t *request,
    const struct weft__uv_object *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_object *object = make_request(copy, caller, request, stream->loop, WEFT_KIND_STREAM_WRITE, stream);
	if (!object)
		return NULL;
	weft__uv_label_bytes(object, bufs, count);
	begin_request(object, caller, stream);
	return object;
}

static void leave_pool(struct weft__uv_object *object)
{
	if (object->in_pool)
		weft_counter_add(object->id, &in_pool, -1);
	if (object->opens_file)
		weft__uv_pool_forget(object->id);
}

void weft__uv_fail_request(struct weft__uv_object *object, int status)
{
	if (!object)
		return;
	weft_fail(weft__hook_get_thread()->running, object->id, object->copy->real.uv_strerror(status));
	weft_read_later(weft__hook_get_thread()->running, object->id); /* the caller of the function gets the error status */
	leave_pool(object);
	weft__uv_tag datagram = object->owner;
	weft__uv_object_free(object);
	weft__uv_datagram_release(datagram);
}

struct weft__uv_frame weft__uv_enter_request(const void *request, int status)
{
	struct weft__uv_here *here = weft__uv_get_here();
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_request(request) : NULL;
	if (!object)
		return weft__uv_enter_callback(weft__hook_get_thread()->running, here->actor);
	weft_id id = object->id;
	struct weft_record_site *line = object->line;
	weft__uv_tag tag = object->owner;
	struct weft__uv_object *owner = weft__uv_find(tag);
	bool has_owner = owner && owner->id;
	if (status < 0)
		weft_fail(WEFT_SYSTEM_ID, id, object->copy->real.uv_strerror(status));
	else if (has_owner)
		weft__resolve_read(WEFT_SYSTEM_ID, id, owner->id);
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
	leave_pool(object);
	weft__uv_object_free(object); /* freed before the callback, which may free or reuse the request's memory */
	weft__uv_mark_loop_dirty();
	struct weft__uv_frame frame;
	if (has_owner) {
		weft__uv_own(owner);
		if (status < 0)
			weft_read(owner->id, id);
		weft__hook_get_thread()->recorded_running = owner->id;
		frame = weft__uv_enter_callback(owner->id, tag);
	} else {
		weft_read_later(weft__hook_get_thread()->running, id);
		weft_hook_record_running(id);
		frame = weft__uv_enter_callback(id, 0);
	}
	here->line = line;
	if (owner && owner->is_datagram)
		frame.datagram = tag;
	return frame;
}

/* ---- Work, names, random numbers ---- */

static void enter_pool(struct weft__uv_object *object)
{
	object->in_pool = true;
	weft_counter_add(object->id, &in_pool, 1);
}

int weft__uv_queue_work(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_work_t *req, uv_work_cb work, uv_after_work_cb after)
{
	if (!work || !weft__uv_should_record(copy, caller))
		return copy->real.uv_queue_work(loop, req, work, after);
	/* The request is created before the original call, because the work may end before that call returns. */
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, loop, WEFT_KIND_WORK, NULL);
	if (object) {
		enter_pool(object);
		weft__uv_append_function(object, (void *)work);
		weft__uv_record_label(object);
	}
	int status = WEFT__UV_INSIDE(
	    copy->real.uv_queue_work(loop, req, weft__uv_work_slot(work), weft__uv_after_work_slot_or_none(after)));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

/* Runs work on a thread of the pool. */
void weft__uv_work_called(uv_work_t *req, unsigned slot)
{
	uv_work_cb user = weft__uv_work_user(slot);
	struct weft__uv_object *object = weft_is_on() ? weft__uv_find_request(req) : NULL;
	if (!object) {
		user(req);
		return;
	}
	weft_id id = object->id;
	struct weft_hook_thread *here = weft_hook_thread();
	weft_hook_record_running(id);
	weft_counter_add(id, &working_requests, 1);
	{
		WEFT__UV_FRAME frame = weft__uv_enter_callback(id, 0);
		/* Work that blocks delays no other promise, so its waits are recorded as sleeps of the thread. */
		here->callbacks = 0;
		user(req);
		(void)frame;
	}
	weft_counter_add(id, &working_requests, -1);
	weft_hook_record_running(here->root);
}

void weft__uv_after_work_called(uv_work_t *req, int status, unsigned slot)
{
	uv_after_work_cb user = weft__uv_after_work_user(slot);
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	if (user)
		user(req, status);
}

int weft__uv_getaddrinfo(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_getaddrinfo_t *req,
    uv_getaddrinfo_cb cb, const char *node, const char *service, const struct addrinfo *hints)
{
	if (!cb || !weft__uv_should_record(copy, caller)) /* synchronous without a callback */
		return copy->real.uv_getaddrinfo(loop, req, cb, node, service, hints);
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, loop, WEFT_KIND_GETADDRINFO, NULL);
	if (object) {
		enter_pool(object);
		weft__uv_append(object, node ? node : "");
		weft__uv_append(object, service ? ":" : "");
		weft__uv_append(object, service ? service : "");
		weft__uv_record_label(object);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_getaddrinfo(loop, req, weft__uv_getaddrinfo_slot(cb), node, service, hints));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

void weft__uv_getaddrinfo_called(uv_getaddrinfo_t *req, int status, struct addrinfo *found, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	weft__uv_getaddrinfo_user(slot)(req, status, found);
}

int weft__uv_getnameinfo(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_getnameinfo_t *req,
    uv_getnameinfo_cb cb, const struct sockaddr *address, int flags)
{
	if (!cb || !weft__uv_should_record(copy, caller))
		return copy->real.uv_getnameinfo(loop, req, cb, address, flags);
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, loop, WEFT_KIND_GETADDRINFO, NULL);
	if (object) {
		enter_pool(object);
		weft__uv_append(object, "name of ");
		weft__uv_append_address(object, address);
		weft__uv_record_label(object);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_getnameinfo(loop, req, weft__uv_getnameinfo_slot(cb), address, flags));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

void weft__uv_getnameinfo_called(uv_getnameinfo_t *req, int status, const char *host, const char *service, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	weft__uv_getnameinfo_user(slot)(req, status, host, service);
}

int weft__uv_random(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_random_t *req, void *bytes, size_t size,
    unsigned flags, uv_random_cb cb)
{
	if (!cb || !weft__uv_should_record(copy, caller))
		return copy->real.uv_random(loop, req, bytes, size, flags, cb);
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, loop, WEFT_KIND_WORK, NULL);
	if (object) {
		enter_pool(object);
		weft__uv_append(object, "random");
		weft__uv_record_label(object);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_random(loop, req, bytes, size, flags, weft__uv_random_slot(cb)));
	if (status)
		weft__uv_fail_request(object, status);
	return status;
}

void weft__uv_random_called(uv_random_t *req, int status, void *bytes, size_t size, unsigned slot)
{
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, status);
	(void)frame;
	weft__uv_random_user(slot)(req, status, bytes, size);
}

int weft__uv_cancel(struct weft__uv_copy *copy, const void *caller, uv_req_t *req)
{
	int status = copy->real.uv_cancel(req);
	struct weft__uv_object *object = status == 0 && weft__uv_should_record(copy, caller) ? weft__uv_find_request(req) : NULL;
	if (object)
		WEFT_NOTE(object->id, "cancelled");
	return status;
}

/* ---- Files ---- */

uint64_t weft__uv_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum { MIN_PAUSE_NS = 1000000 };

void weft__uv_record_pause(struct weft_record_text *what, struct weft_record_place *place, uint64_t begin_ns)
{
	uint64_t ns = begin_ns ? weft__uv_now_ns() - begin_ns : 0;
	if (ns <= MIN_PAUSE_NS)
		return;
	weft_place(weft__hook_get_thread()->running, place);
	weft_pause_text(what, ns);
}

static struct weft__uv_object *begin_fs_request(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_fs_t *req, const char *what, const char *path, int fd)
{
	struct weft__uv_object *object = weft__uv_request(copy, caller, req, loop, WEFT_KIND_FS, NULL);
	if (!object)
		return NULL;
	enter_pool(object);
	weft__uv_append(object, what);
	weft__uv_append(object, " ");
	if (path)
		weft__uv_append_path(object, path);
	else if (fd >= 0)
		weft__uv_append_fd(object, fd);
	weft__uv_record_label(object);
	object->opens_file = path && !strcmp(what, "open");
	if (object->opens_file)
		weft__uv_pool_will_open(object->id, path);
	return object;
}

#define PATH path, -1
#define FD NULL, fd
#define NONE NULL, -1
#define DEFINE_FS_CALL(since, name, file, parameters, arguments)                                                                 \
	int weft__uv_fs_##name(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_fs_t *req,                    \
	    WEFT__UV_LIST parameters, uv_fs_cb cb)                                                                               \
	{                                                                                                                        \
		static struct weft_record_text what = WEFT_COUNTER("blocked in uv_fs_" #name);                                   \
		if (!weft__uv_should_record(copy, caller))                                                                       \
			return copy->real.uv_fs_##name(loop, req, WEFT__UV_LIST arguments, cb);                                  \
		struct weft__uv_object *object = cb ? begin_fs_request(copy, caller, loop, req, #name, file) : NULL;             \
		uint64_t begin_ns = !cb && weft__hook_get_thread()->callbacks > 0 ? weft__uv_now_ns() : 0;                       \
		int status = WEFT__UV_INSIDE(                                                                                    \
		    copy->real.uv_fs_##name(loop, req, WEFT__UV_LIST arguments, cb ? weft__uv_fs_slot(cb) : NULL));              \
		if (cb && status < 0)                                                                                            \
			weft__uv_fail_request(object, status);                                                                   \
		weft__uv_record_pause(&what, weft_hook_site(caller), begin_ns);                                                  \
		return status;                                                                                                   \
	}
WEFT__UV_FS_CALLS(DEFINE_FS_CALL)

/* A missing or an existing file counts as an answer and not as a failure, because many programs ask just that. */
void weft__uv_fs_called(uv_fs_t *req, unsigned slot)
{
	ssize_t result = req->result;
	bool answers = result == UV_ENOENT || result == UV_EEXIST;
	struct weft__uv_object *object = answers && weft_is_on() ? weft__uv_find_request(req) : NULL;
	if (object)
		weft_note(object->id, object->copy->real.uv_strerror((int)result));
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, answers || result > 0 ? 0 : (int)result);
	(void)frame;
	weft__uv_fs_user(slot)(req);
}
