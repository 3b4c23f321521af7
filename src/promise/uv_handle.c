/* uv_handle.c: the life of what the program holds on a loop, and who waits for what comes from it.  SPDX-License-Identifier: ISC
 */
#include "promise/loop.h"

#include <assert.h>
#include <limits.h>

/* Takes a resolver away from its handle. */
static struct weft_resolver *take(struct weft_resolver **resolver)
{
	struct weft_resolver *taken = *resolver;
	*resolver = NULL;
	return taken;
}

static void on_closed(uv_handle_t *handle)
{
	struct weft__handle *h = handle->data;
	struct weft_uv *uv = h->thing.uv;
	struct weft_resolver *asker = take(&h->asker), *closer = take(&h->closer);
	h->closed = true;
	if (asker)
		h->refs--;
	if (h->refs == 0)
		free(h);
	weft__uv_wakeup(uv, asker, UV_ECANCELED, NULL, NULL);
	weft__uv_wakeup(uv, closer, 0, NULL, NULL);
	uv->open--;
}

void weft__handle_close(void *handle)
{
	struct weft__handle *h = handle;
	if (h->closing)
		return;
	h->closing = true;
	weft__thing_remove(&h->thing);
	uv_close(h->handle, on_closed);
	if (h->on_closing)
		h->on_closing(h);
}

static void end_handle(struct weft__thing *thing)
{
	weft__handle_close(thing);
}

void weft__handle_add(struct weft__handle *h, struct weft_uv *uv, uv_handle_t *handle)
{
	h->handle = handle;
	h->handle->data = h;
	h->refs = 1;
	uv_unref(handle);
	weft__thing_add(uv, &h->thing, end_handle);
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
	struct weft_promise *p = weft__make(site, WEFT_KIND_CLOSE, false, NULL, true, &h->closer);
	weft__handle_close(h);
	return p;
}

/* ---- Who waits for what comes ---- */

static void asker_cancelled(void *ctx)
{
	struct weft__handle *h = ctx;
	weft_resolver_drop(take(&h->asker));
	if (!h->closing)
		uv_unref(h->handle);
	weft__handle_unref(h);
}

bool weft__handle_ask(
    struct weft_record_site *site, enum weft_kind kind, const char *label, struct weft__handle *h, struct weft_promise **p)
{
	if (h->closing || h->asker) {
		*p = weft__uv_failed(h->closing ? WEFT_PROMISE_CLOSED : UV_EBUSY);
		return false;
	}
	*p = weft__uv_promise(site, kind, label, asker_cancelled, h, &h->asker);
	if (!h->asker)
		return false;
	h->refs++;
	uv_ref(h->handle);
	return true;
}

void weft__handle_answer(struct weft__handle *h, int status, void *value, weft_destroy_fn *destroy)
{
	struct weft_resolver *asker = take(&h->asker);
	if (!h->closing)
		uv_unref(h->handle);
	weft__uv_wakeup(h->thing.uv, asker, status, value, destroy);
	weft__handle_unref(h);
}
