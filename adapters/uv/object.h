/* object.h: finds the adapter's objects by handle or request (private to adapters/uv).  SPDX-License-Identifier: ISC */
#ifndef WEFT_ADAPTERS_UV_OBJECT_H
#define WEFT_ADAPTERS_UV_OBJECT_H

#include "adapters/uv/common.h"

/* Create an object, and write its tag to reserved memory of the handle or request.  Return NULL without memory. */
struct weft__uv_object *weft__uv_object_of_handle(struct weft__uv_copy *copy, const void *handle);
struct weft__uv_object *weft__uv_object_of_request(struct weft__uv_copy *copy, const void *request, uv_loop_t *loop);
struct weft__uv_object *weft__uv_object_of_datagram(struct weft__uv_object *socket);
void weft__uv_object_free(struct weft__uv_object *object);

/* Notes that a child of the datagram's promise has ended; the last child ends the datagram. */
void weft__uv_datagram_release(weft__uv_tag datagram);

/* Return the next object after index *at that this thread owns, or the next request of a loop; NULL after the last one.  The
 * cost grows with the chunks of this thread or of the loop, and not with all objects of the process. */
struct weft__uv_object *weft__uv_own_next(uint32_t *at);
struct weft__uv_object *weft__uv_request_next(const uv_loop_t *loop, uint32_t *at);

void weft__uv_thread_end(void);

void weft__uv_objects_lock(void);
void weft__uv_objects_unlock(void);
void weft__uv_objects_clear(void); /* frees all objects and makes their tags invalid */

#endif
