/* uv_handle.c: ends and frees the program's handles on a loop, and wakes the promises that wait for them.
 * SPDX-License-Identifier: ISC
 */
#include "promise/loop.h"

#include <assert.h>
#include <limits.h>

/* Removes a handle's resolver from the handle, and returns it. */
static struct weft_resolver *detach_resolver(struct weft_resolver **resolver)
{
	struct weft_resolver *detached = *resolver;
	*resolver = NULL;
	return detached;
}

static void on_closed(uv_handle_t *handle)
{
	struct weft__handle *h = handle->data;
	struct weft_uv *uv = h->object.uv;
	struct weft_resolver *waiter = detach_resolver(&h->waiter), *close_resolver = detach_resolver(&h->close_resolver);
	h->closed = true;
	if (waiter)
		h->refs--;
	if (h->refs == 0)
		free(h);
	weft__uv_wakeup(uv, waiter, UV_ECANCELED, NULL, NULL);
	weft__uv_wakeup(uv, close_resolver, 0, NULL, NULL);
	uv->open--;
}

void weft__handle_close(void *handle)
{
	struct weft__handle *h = handle;
	if (h->closing)
		return;
	h->closing = true;
	weft__uv_object_unlist(&h->object);
	uv_close(h->handle, on_closed);
	if (h->on_closing)
		h->on_closing(h);
}

static void end_handle(struct weft__uv_object *object)
{
	weft__handle_close(object);
}

void weft__handle_add(struct weft__handle *h, struct weft_uv *uv, uv_handle_t *handle)
{
	h->handle = handle;
	h->handle->data = h;
	h->refs = 1;
	uv_unref(handle);
	weft__uv_object_add(uv, &h->object, end_handle);
}

void weft__handle_ref(struct weft__handle *h)
{
	assert(h->refs > 0 && h->refs < UINT_MAX);
	h->refs++;
}

void weft__handle_unref(struct weft__handle *h)
{
	if (!h || --h->refs > 0)
		return;
	if (h->closed)
		free(h);
	else
		weft__handle_close(h);
}

struct weft_promise *weft__handle_close_promise(struct weft_record_site *site, struct weft__handle *h)
{
	if (h->closing)
		return weft_promise_unit();
	struct weft_promise *p = weft__make(site, WEFT_KIND_CLOSE, false, NULL, true, &h->close_resolver);
	weft__handle_close(h);
	return p;
}

/* ---- Waiting promises ---- */

static void cancel_wait(void *ctx)
{
	struct weft__handle *h = ctx;
	weft_resolver_drop(detach_resolver(&h->waiter));
	if (!h->closing)
		uv_unref(h->handle);
	weft__handle_unref(h);
}

bool weft__handle_wait(
    struct weft_record_site *site, enum weft_kind kind, const char *label, struct weft__handle *h, struct weft_promise **p)
{
	if (h->closing || h->waiter) {
		*p = weft__uv_failed(h->closing ? WEFT_PROMISE_CLOSED : UV_EBUSY);
		return false;
	}
	*p = weft__uv_promise(site, kind, label, cancel_wait, h, &h->waiter);
	if (!h->waiter)
		return false;
	h->refs++;
	uv_ref(h->handle);
	return true;
}

void weft__handle_wake(struct weft__handle *h, int status, void *value, weft_destroy_fn *destroy)
{
	struct weft_resolver *waiter = detach_resolver(&h->waiter);
	if (!h->closing)
		uv_unref(h->handle);
	weft__uv_wakeup(h->object.uv, waiter, status, value, destroy);
	weft__handle_unref(h);
}
