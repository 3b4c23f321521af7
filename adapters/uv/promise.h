/* promise.h: begins and ends the promises of handles (private to adapters/uv).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_PROMISE_H
#define WEFT_ADAPTERS_UV_PROMISE_H

#include "adapters/uv/object.h"

/* Returns a new object for a handle, which has just been initialised or has no object, because it is older than the recording or
 * a copy of another handle.  An older object at the same address is not used any more. */
struct weft__uv_object *weft__uv_handle_create(struct weft__uv_copy *copy, const void *caller, const void *handle);

static inline struct weft__uv_object *weft__uv_handle(struct weft__uv_copy *copy, const void *caller, const void *handle)
{
	struct weft__uv_object *object = weft__uv_find_handle(handle);
	return object ? object : weft__uv_handle_create(copy, caller, handle);
}

/* Begins the promise of a handle that becomes active.  Returns whether the promise is new; its label may follow.  `object` may
 * be NULL. */
void weft__uv_begin_new(struct weft__uv_object *object, enum weft_kind kind, const void *caller);
static inline bool weft__uv_begin(struct weft__uv_object *object, enum weft_kind kind, const void *caller)
{
	weft__uv_mark_loop_dirty();
	if (!object || object->id)
		return false;
	weft__uv_begin_new(object, kind, caller);
	return true;
}
void weft__uv_end(struct weft__uv_object *object, weft_id by);
void weft__uv_drop_input(struct weft__uv_object *object);

/* Records the current read of a stream that is older than the recording. */
void weft__uv_begin_older_read(struct weft__uv_object *object);

/* Assigns the handle's descriptor to the handle's promise, so that transferred bytes are recorded. */
void weft__uv_attach_fd(struct weft__uv_object *object, const uv_handle_t *handle);

#endif
