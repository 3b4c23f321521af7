/* uv_signal.c: makes promises for system signals.  SPDX-License-Identifier: ISC */
#include "promise/loop.h"

#include <string.h>

struct weft_uv_signals {
	struct weft__handle h; /* handle, which waits for the next signal */
	uv_signal_t handle;
	int number;
	bool has_pending_signal; /* whether a signal came while no promise waited */
};

struct weft_uv_signals *weft_uv_signals_ref(struct weft_uv_signals *signals)
{
	weft__handle_ref(&signals->h);
	return signals;
}

void weft_uv_signals_unref(void *signals)
{
	weft__handle_unref(signals);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct weft_uv_signals *signals = handle->data;
	if (signals->h.waiter)
		weft__handle_wake(&signals->h, 0, NULL, NULL);
	else
		signals->has_pending_signal = true;
}

static struct weft_uv_signals *new_signals(struct weft_uv *uv, int number, int *status)
{
	struct weft_uv_signals *signals = calloc(1, sizeof *signals);
	*status = WEFT_PROMISE_ENOMEM;
	if (!signals)
		return NULL;
	*status = uv_signal_init(uv->loop, &signals->handle);
	if (*status < 0) {
		free(signals);
		return NULL;
	}
	weft__handle_add(&signals->h, uv, (uv_handle_t *)&signals->handle);
	signals->number = number;
	*status = uv_signal_start(&signals->handle, on_signal, number);
	return signals;
}

struct weft_promise *weft__uv_signals(struct weft_record_site *site, struct weft_uv *uv, int number)
{
	int status;
	struct weft_uv_signals *signals = new_signals(uv, number, &status);
	return weft__uv_ended(site, WEFT_KIND_LISTEN, status, signals, weft_uv_signals_unref);
}

struct weft_promise *weft__uv_signals_next(struct weft_record_site *site, struct weft_uv_signals *signals)
{
	struct weft_promise *p;
	const char *name = weft_is_on() ? strsignal(signals->number) : NULL;
	if (weft__handle_wait(site, WEFT_KIND_OS_SIGNAL, name, &signals->h, &p) && signals->has_pending_signal) {
		signals->has_pending_signal = false;
		weft__handle_wake(&signals->h, 0, NULL, NULL);
	}
	return p;
}

struct weft_promise *weft__uv_signal(struct weft_record_site *site, struct weft_uv *uv, int number)
{
	int status;
	struct weft_uv_signals *signals = new_signals(uv, number, &status);
	struct weft_promise *p = status < 0 ? weft__uv_failed(status) : weft__uv_signals_next(site, signals);
	weft_uv_signals_unref(signals); /* the promise that waits for a signal keeps a reference */
	return p;
}
