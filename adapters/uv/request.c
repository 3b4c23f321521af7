/* request.c: what is asked of libuv once, and its answer; and what the thread pool does.
 *
 * A request is made by who runs, and awaited by its owner: the stream for what is done to a stream, else who runs.  It ends as
 * its callback begins.  The callback runs as the owner, so that the story of a connection, told in ten callbacks, is one line;
 * but if the owner is no actor (an OS thread's promise, an earlier request) or has ended, as the request itself: "main ran for 60
 * ms" would help nobody.  SPDX-License-Identifier: ISC */
#include "adapters/uv/adapter.h"
#include "adapters/uv/slots.h"

static struct weft_record_text in_pool = WEFT_COUNTER("thread pool: requests"), at_work = WEFT_COUNTER("thread pool: at work");

#define INLINE inline __attribute__((always_inline))

static INLINE struct weft__uv_thing *make_request(struct weft__uv_copy *copy, const void *caller, const void *request,
    uv_loop_t *loop, enum weft_kind kind, const struct weft__uv_thing *owner)
{
	struct weft__uv_thing *thing = weft__uv_thing_of_request(copy, request, loop);
	weft__uv_dirty();
	if (!thing)
		return NULL;
	thing->kind = (uint8_t)kind;
	thing->by = weft__hook_thread.running;
	thing->site = weft__uv_site(caller);
	thing->owner = owner ? weft__uv_tag_of(owner) : weft__uv_here.actor;
	return thing;
}

/* With the label that it has by now. */
static INLINE void begin_request(struct weft__uv_thing *thing, const void *caller, const struct weft__uv_thing *owner)
{
	const struct weft_hook_label *label = &thing->label;
	thing->id = weft__create_awaited(thing->by, (enum weft_kind)thing->kind, thing->site,
	    owner && owner->id ? owner->id : thing->by, label->length ? label->text : NULL, label->length);
	thing->since = weft_is_on() ? weft__stream->last : 0;
	weft_hook_stack(thing->id, caller);
	struct weft__uv_thing *actor = owner ? NULL : weft__uv_find(thing->owner);
	if (actor && actor->is_datagram)
		actor->children++;
}

struct weft__uv_thing *weft__uv_request(struct weft__uv_copy *copy, const void *caller, const void *request, uv_loop_t *loop,
    enum weft_kind kind, const struct weft__uv_thing *owner)
{
	struct weft__uv_thing *thing = make_request(copy, caller, request, loop, kind, owner);
	if (thing)
		begin_request(thing, caller, owner);
	return thing;
}

struct weft__uv_thing *weft__uv_write_request(struct weft__uv_copy *copy, const void *caller, const uv_write_t *request,
    const struct weft__uv_thing *stream, const uv_buf_t bufs[], unsigned count)
{
	struct weft__uv_thing *thing = make_request(copy, caller, request, stream->loop, WEFT_KIND_STREAM_WRITE, stream);
	if (!thing)
		return NULL;
	weft__uv_label_bytes(thing, bufs, count);
	begin_request(thing, caller, stream);
	return thing;
}

static void leaves_pool(struct weft__uv_thing *thing)
{
	if (thing->in_pool)
		weft_counter_add(thing->id, &in_pool, -1);
}

void weft__uv_refused(struct weft__uv_thing *thing, int status)
{
	if (!thing)
		return;
	weft_fail(weft__hook_thread.running, thing->id, thing->copy->real.uv_strerror(status));
	weft_read_later(weft__hook_thread.running, thing->id); /* the caller has the status */
	leaves_pool(thing);
	weft__uv_tag datagram = thing->owner;
	weft__uv_thing_free(thing);
	weft__uv_datagram_release(datagram);
}

struct weft__uv_frame weft__uv_enter_request(const void *request, int status)
{
	struct weft__uv_here *here = &weft__uv_here;
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_request(request) : NULL;
	if (!thing)
		return weft__uv_enter(weft__hook_thread.running, here->actor);
	weft_id id = thing->id;
	weft__uv_tag tag = thing->owner;
	struct weft__uv_thing *owner = weft__uv_find(tag);
	bool has_owner = owner && owner->id;
	if (status < 0)
		weft_fail(WEFT_SYSTEM_ID, id, thing->copy->real.uv_strerror(status));
	else if (has_owner)
		weft__resolve_read(WEFT_SYSTEM_ID, id, owner->id);
	else
		weft_resolve(WEFT_SYSTEM_ID, id);
	leaves_pool(thing);
	weft__uv_thing_free(thing); /* before the callback, which may free the memory, or use it again */
	weft__uv_dirty();
	struct weft__uv_frame frame;
	if (has_owner) {
		owner->home = here;
		if (status < 0)
			weft_read(owner->id, id);
		weft__hook_thread.shown = owner->id;
		frame = weft__uv_enter(owner->id, tag);
	} else {
		weft_read_later(weft__hook_thread.running, id);
		weft_hook_show(id);
		frame = weft__uv_enter(id, 0);
	}
	if (owner && owner->is_datagram)
		frame.datagram = tag;
	return frame;
}

/* ---- Work, names, random numbers ---- */

static void enters_pool(struct weft__uv_thing *thing)
{
	thing->in_pool = true;
	weft_counter_add(thing->id, &in_pool, 1);
}

int weft__uv_queue_work(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_work_t *req, uv_work_cb work, uv_after_work_cb after)
{
	if (!work || !weft__uv_takes(copy, caller))
		return copy->real.uv_queue_work(loop, req, work, after);
	/* Before the call: the work may be over when that returns. */
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, loop, WEFT_KIND_WORK, NULL);
	if (thing) {
		enters_pool(thing);
		weft__uv_put_function(thing, (void *)work);
		weft__uv_say(thing);
	}
	int status = WEFT__UV_INSIDE(
	    copy->real.uv_queue_work(loop, req, weft__uv_work_slot(work), weft__uv_after_work_slot_or_none(after)));
	if (status)
		weft__uv_refused(thing, status);
	return status;
}

/* On an OS thread of the pool. */
void weft__uv_work_called(uv_work_t *req, unsigned slot)
{
	uv_work_cb user = weft__uv_work_user(slot);
	struct weft__uv_thing *thing = weft_is_on() ? weft__uv_find_request(req) : NULL;
	if (!thing) {
		user(req);
		return;
	}
	weft_id id = thing->id;
	struct weft_hook_thread *here = weft_hook_thread();
	weft_hook_show(id);
	weft_counter_add(id, &at_work, 1);
	{
		WEFT__UV_FRAME frame = weft__uv_enter(id, 0);
		here->callbacks = 0; /* work that blocks holds up nobody: it is the sleep of this OS thread */
		user(req);
		(void)frame;
	}
	weft_counter_add(id, &at_work, -1);
	weft_hook_show(here->root);
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
	if (!cb || !weft__uv_takes(copy, caller)) /* without a callback it is synchronous */
		return copy->real.uv_getaddrinfo(loop, req, cb, node, service, hints);
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, loop, WEFT_KIND_GETADDRINFO, NULL);
	if (thing) {
		enters_pool(thing);
		weft__uv_put(thing, node ? node : "");
		weft__uv_put(thing, service ? ":" : "");
		weft__uv_put(thing, service ? service : "");
		weft__uv_say(thing);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_getaddrinfo(loop, req, weft__uv_getaddrinfo_slot(cb), node, service, hints));
	if (status)
		weft__uv_refused(thing, status);
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
	if (!cb || !weft__uv_takes(copy, caller))
		return copy->real.uv_getnameinfo(loop, req, cb, address, flags);
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, loop, WEFT_KIND_GETADDRINFO, NULL);
	if (thing) {
		enters_pool(thing);
		weft__uv_put(thing, "name of ");
		weft__uv_put_address(thing, address);
		weft__uv_say(thing);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_getnameinfo(loop, req, weft__uv_getnameinfo_slot(cb), address, flags));
	if (status)
		weft__uv_refused(thing, status);
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
	if (!cb || !weft__uv_takes(copy, caller))
		return copy->real.uv_random(loop, req, bytes, size, flags, cb);
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, loop, WEFT_KIND_WORK, NULL);
	if (thing) {
		enters_pool(thing);
		weft__uv_put(thing, "random");
		weft__uv_say(thing);
	}
	int status = WEFT__UV_INSIDE(copy->real.uv_random(loop, req, bytes, size, flags, weft__uv_random_slot(cb)));
	if (status)
		weft__uv_refused(thing, status);
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
	struct weft__uv_thing *thing = status == 0 && weft__uv_takes(copy, caller) ? weft__uv_find_request(req) : NULL;
	if (thing)
		WEFT_NOTE(thing->id, "cancelled");
	return status;
}

/* ---- Files ---- */

uint64_t weft__uv_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum { LONG_NS = 1000000 };

void weft__uv_blocked(struct weft_record_text *what, uint64_t begin_ns)
{
	uint64_t ns = begin_ns ? weft__uv_now_ns() - begin_ns : 0;
	if (ns > LONG_NS)
		weft_pause_text(what, ns);
}

static struct weft__uv_thing *fs_begins(
    struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_fs_t *req, const char *what, const char *path, int fd)
{
	struct weft__uv_thing *thing = weft__uv_request(copy, caller, req, loop, WEFT_KIND_FS, NULL);
	if (!thing)
		return NULL;
	enters_pool(thing);
	weft__uv_put(thing, what);
	weft__uv_put(thing, " ");
	if (path)
		weft__uv_put_path(thing, path);
	else if (fd >= 0)
		weft__uv_put_fd(thing, fd);
	weft__uv_say(thing);
	return thing;
}

#define PATH path, -1
#define FD NULL, fd
#define NONE NULL, -1
#define FS(since, name, file, parameters, arguments)                                                                             \
	int weft__uv_fs_##name(struct weft__uv_copy *copy, const void *caller, uv_loop_t *loop, uv_fs_t *req,                    \
	    WEFT__UV_LIST parameters, uv_fs_cb cb)                                                                               \
	{                                                                                                                        \
		static struct weft_record_text what = WEFT_COUNTER("blocked in uv_fs_" #name);                                   \
		if (!weft__uv_takes(copy, caller))                                                                               \
			return copy->real.uv_fs_##name(loop, req, WEFT__UV_LIST arguments, cb);                                  \
		struct weft__uv_thing *thing = cb ? fs_begins(copy, caller, loop, req, #name, file) : NULL;                      \
		uint64_t begin_ns = !cb && weft__hook_thread.callbacks > 0 ? weft__uv_now_ns() : 0;                              \
		int status = WEFT__UV_INSIDE(                                                                                    \
		    copy->real.uv_fs_##name(loop, req, WEFT__UV_LIST arguments, cb ? weft__uv_fs_slot(cb) : NULL));              \
		if (cb && status < 0)                                                                                            \
			weft__uv_refused(thing, status);                                                                         \
		weft__uv_blocked(&what, begin_ns);                                                                               \
		return status;                                                                                                   \
	}
WEFT__UV_FS_CALLS(FS)

/* That a file is not there, or there already, is an answer: many ask for just that. */
void weft__uv_fs_called(uv_fs_t *req, unsigned slot)
{
	ssize_t result = req->result;
	bool answers = result == UV_ENOENT || result == UV_EEXIST;
	struct weft__uv_thing *thing = answers && weft_is_on() ? weft__uv_find_request(req) : NULL;
	if (thing)
		weft_note(thing->id, thing->copy->real.uv_strerror((int)result));
	WEFT__UV_FRAME frame = weft__uv_enter_request(req, answers || result > 0 ? 0 : (int)result);
	(void)frame;
	weft__uv_fs_user(slot)(req);
}
