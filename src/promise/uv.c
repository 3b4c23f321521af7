/* uv.c: promises on a libuv loop.  SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <weft/uv.h>

struct timer {
	uv_timer_t handle;
	struct timer *next, **back; /* in the list of those that run */
	struct weft_resolver *resolver;
	bool fails;
};

struct weft_uv {
	uv_loop_t *loop, own;
	uv_prepare_t prepare; /* before the loop sleeps */
	uv_check_t check;     /* after it */
	uv_idle_t idle;       /* active while something pauses: then the loop does not sleep */
	unsigned open;        /* handles of ours that are not closed yet */
	bool slept;
	struct timer *timers;
};

static void stay_awake(uv_idle_t *handle)
{
}

static void before_sleep(uv_prepare_t *handle)
{
	struct weft_uv *uv = handle->data;
	weft_promise_wakeup_paused();
	if (weft_promise_paused_count() > 0)
		uv_idle_start(&uv->idle, stay_awake);
	else
		uv_idle_stop(&uv->idle);
	uv->slept = uv_backend_timeout(uv->loop) != 0;
	if (uv->slept)
		weft_promise_idle(WEFT_IDLE_WAIT);
}

static void after_sleep(uv_check_t *handle)
{
	struct weft_uv *uv = handle->data;
	if (uv->slept)
		weft_promise_resume();
	uv->slept = false;
}

struct weft_uv *weft_uv_create(uv_loop_t *loop)
{
	struct weft_uv *uv = calloc(1, sizeof *uv);
	if (!uv)
		return NULL;
	if (!loop && uv_loop_init(&uv->own) != 0) {
		free(uv);
		return NULL;
	}
	uv->loop = loop ? loop : &uv->own;
	/* None of these can fail. */
	uv_prepare_init(uv->loop, &uv->prepare);
	uv_check_init(uv->loop, &uv->check);
	uv_idle_init(uv->loop, &uv->idle);
	uv->prepare.data = uv->check.data = uv->idle.data = uv;
	uv->open = 3;
	uv_prepare_start(&uv->prepare, before_sleep);
	uv_check_start(&uv->check, after_sleep);
	uv_unref((uv_handle_t *)&uv->prepare);
	uv_unref((uv_handle_t *)&uv->check);
	return uv;
}

static void closed(uv_handle_t *handle)
{
	struct weft_uv *uv = handle->data;
	uv->open--;
}

static void handle_freed(uv_handle_t *handle)
{
	struct weft_uv *uv = handle->data;
	uv->open--;
	free(handle);
}

/* Returns the resolver, which is now the caller's. */
static struct weft_resolver *timer_end(struct timer *timer)
{
	struct weft_resolver *resolver = timer->resolver;
	*timer->back = timer->next;
	if (timer->next)
		timer->next->back = timer->back;
	uv_close((uv_handle_t *)&timer->handle, handle_freed);
	return resolver;
}

void weft_uv_destroy(struct weft_uv *uv)
{
	if (!uv)
		return;
	while (uv->timers)
		weft_resolver_drop(timer_end(uv->timers));
	uv_close((uv_handle_t *)&uv->prepare, closed);
	uv_close((uv_handle_t *)&uv->check, closed);
	uv_close((uv_handle_t *)&uv->idle, closed);
	while (uv->open > 0)
		uv_run(uv->loop, UV_RUN_NOWAIT);
	if (uv->loop == &uv->own)
		uv_loop_close(&uv->own);
	free(uv);
}

uv_loop_t *weft_uv_loop(struct weft_uv *uv)
{
	return uv->loop;
}

static void limit_reached(uv_timer_t *limit)
{
	limit->data = NULL;
}

int weft_uv_run(struct weft_uv *uv, const struct weft_promise *p, uint64_t limit_ms)
{
	int status = WEFT_OK;
	uv_timer_t *limit = NULL;
	if (limit_ms > 0 && !(limit = malloc(sizeof *limit)))
		return WEFT_ENOMEM;
	if (limit) {
		uv_timer_init(uv->loop, limit);
		limit->data = uv;
		uv_update_time(uv->loop);
		uv_timer_start(limit, limit_reached, limit_ms, 0);
		uv_unref((uv_handle_t *)limit);
	}
	while (status == WEFT_OK && weft_promise_state(p) == WEFT_PENDING) {
		if (weft_promise_paused_count() > 0)
			uv_idle_start(&uv->idle, stay_awake);
		int alive = uv_run(uv->loop, UV_RUN_ONCE);
		if (weft_promise_state(p) != WEFT_PENDING)
			break;
		if (limit && !limit->data)
			status = WEFT_EBUSY;
		else if (!alive && weft_promise_paused_count() == 0)
			status = WEFT_ENOTFOUND;
	}
	if (limit) {
		limit->data = uv;
		uv->open++;
		uv_close((uv_handle_t *)limit, handle_freed);
	}
	return status;
}

static void timer_fires(uv_timer_t *handle)
{
	struct timer *timer = (struct timer *)handle;
	bool fails = timer->fails;
	struct weft_resolver *resolver = timer_end(timer);
	if (fails)
		weft_wakeup_error(resolver, WEFT_PROMISE_TIMEOUT, "timeout");
	else
		weft_wakeup(resolver, NULL, NULL);
}

static void timer_cancelled(void *ctx)
{
	weft_resolver_drop(timer_end(ctx));
}

static struct weft_promise *timer_start(
    struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, const char *label, bool fails)
{
	struct weft_resolver *resolver;
	struct timer *timer = malloc(sizeof *timer);
	if (!timer)
		return weft_promise_fail(WEFT_PROMISE_ENOMEM, "out of memory");
	struct weft_promise *p = weft__make(site, WEFT_KIND_TIMER, true, label, &resolver);
	if (!resolver || weft_promise_on_cancel(p, timer_cancelled, timer, NULL) != WEFT_OK) {
		free(timer);
		weft_resolver_drop(resolver);
		weft_promise_unref(p);
		return weft_promise_fail(WEFT_PROMISE_ENOMEM, "out of memory");
	}
	uv_timer_init(uv->loop, &timer->handle);
	timer->handle.data = uv;
	timer->resolver = resolver;
	timer->fails = fails;
	timer->next = uv->timers;
	timer->back = &uv->timers;
	if (timer->next)
		timer->next->back = &timer->next;
	uv->timers = timer;
	uv->open++;
	uv_update_time(uv->loop);
	uv_timer_start(&timer->handle, timer_fires, ms, 0);
	return p;
}

struct weft_promise *weft__uv_sleep(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return timer_start(site, uv, ms, "sleep", false);
}

struct weft_promise *weft__uv_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms)
{
	return timer_start(site, uv, ms, "timeout", true);
}

struct weft_promise *weft__uv_with_timeout(struct weft_record_site *site, struct weft_uv *uv, uint64_t ms, struct weft_promise *p)
{
	struct weft_promise *either[2] = {weft__uv_timeout(site, uv, ms), p};
	return weft__choose(site, WEFT_KIND_PICK, either, 2);
}
