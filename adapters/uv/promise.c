/* promise.c: begins and ends the promises of handles, and assigns the descriptors of connections.
 * SPDX-License-Identifier: ISC */
#include "adapters/uv/promise.h"

#include "adapters/uv/callback.h"
#include "adapters/uv/question.h"

struct weft__uv_object *weft__uv_handle_create(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	struct weft__uv_object *object = weft__uv_object_of_handle(copy, handle);
	if (object) {
		object->site = weft__uv_site(caller);
		object->line = weft__uv_find_line(false);
		object->asker = weft__uv_question_note_asker(object);
	}
	return object;
}

static bool is_part_of_request(enum weft_kind kind)
{
	return kind == WEFT_KIND_CONNECTION || kind == WEFT_KIND_PROCESS;
}

weft_id weft__uv_create_promise(const struct weft__uv_object *object)
{
	const enum weft_kind kind = (enum weft_kind)object->kind;
	if (object->part_of)
		return weft_create_part(object->by, kind, object->site, object->part_of);
	return object->line ? weft_create(object->by, kind, object->line) : weft_create_at(object->by, kind, object->site);
}

void weft__uv_repeat_promise(const struct weft__uv_object *object)
{
	const enum weft_kind kind = (enum weft_kind)object->kind;
	if (object->part_of)
		weft_belongs(object->id, object->part_of);
	if (object->line)
		weft_pending(object->by, object->id, kind, object->line, object->since, object->label.text);
	else
		weft_pending_at(object->by, object->id, kind, object->site, object->since, object->label.text);
}

/* A line that is known from earlier, such as that of a connection's server, stays without a better one.  That of a connection
 * always does: a runtime may connect later than the program asks for it. */
static void set_place(struct weft__uv_object *object, const void *caller)
{
	const bool is_kept = object->line && object->kind == WEFT_KIND_CONNECTION;
	const bool may_be_fast = object->kind == WEFT_KIND_TIMER || object->kind == WEFT_KIND_HANDLE;
	struct weft_record_site *line = is_kept ? NULL : weft__uv_find_line(may_be_fast);
	object->site = weft__uv_site(caller);
	object->line = line ? line : object->line;
}

void weft__uv_begin_new(struct weft__uv_object *object, enum weft_kind kind, const void *caller)
{
	struct weft__uv_here *here = weft__uv_get_here();
	object->kind = (uint8_t)kind;
	object->by = weft__hook_get_thread()->running;
	if (caller)
		set_place(object, caller);
	object->id = weft__uv_create_promise(object);
	if (caller)
		weft_hook_stack(object->id, caller);
	object->since = weft_is_on() ? weft__stream->last : 0;
	object->awaited_by = 0;
	object->label.length = 0;
	struct weft__uv_object *actor = weft__uv_find(here->actor);
	object->owner = 0;
	if (actor && actor->is_datagram && is_part_of_request(kind)) {
		object->owner = here->actor;
		actor->children++;
		weft_await(actor->id, object->id);
	}
}

void weft__uv_drop_input(struct weft__uv_object *object)
{
	if (object->input) {
		weft_resolve(weft__hook_get_thread()->running, object->input);
		object->input = 0;
	}
}

void weft__uv_end(struct weft__uv_object *object, weft_id by)
{
	weft__uv_mark_loop_dirty();
	weft__uv_drop_input(object);
	if (!object->id)
		return;
	if (object->is_accepted || object->asks)
		weft__uv_question_end(object);
	weft_hook_fd_detach(object->fd, object->id);
	weft_resolve(by, object->id);
	__atomic_store_n(&object->id, 0, __ATOMIC_RELAXED);
	weft__uv_datagram_release(object->owner);
	object->owner = 0;
}

/* Returns whether the program itself writes to the connection through libc, as uvloop does.  Only writes in callbacks count,
 * because libuv itself writes through libc too.
 */
static bool is_own_write(void)
{
	return weft__uv_get_here()->nested_calls == 0 && weft__uv_get_here()->epoch == weft__hook_epoch;
}

void weft__uv_attach_fd(struct weft__uv_object *object, const uv_handle_t *handle)
{
	uv_os_fd_t fd;
	if (object->fd >= 0 || !object->id || object->connects || object->copy->real.uv_fileno(handle, &fd))
		return;
	object->fd = fd;
	if (handle->type == UV_UDP)
		weft_hook_fd_attach_datagrams(fd, object->id, is_own_write);
	else if (handle->type == UV_POLL)
		weft_hook_fd_attach_if_free(fd, object->id, object->has_datagrams);
	else
		weft_hook_fd_attach(fd, object->id, is_own_write);
}

void weft__uv_begin_older_read(struct weft__uv_object *object)
{
	object->input_since = object->since;
	object->input = weft_pending_at(object->id, 0, WEFT_KIND_STREAM_READ, NULL, object->since, NULL);
	weft_still_awaits(object->id, object->input);
}
